//! What became of a reply, for people and for programs.

use portcullis_contracts::{
    Conflict, Contract, Edit, Span, Step, Unrepaired, Verdict, check, conflicts, repair,
};
use serde::Serialize;
use serde_json::Value;

use super::Compiled;
use crate::exit;
use crate::out::{self, clean_line, count};

/// A contract and its verdict.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    id: String,
    statement: String,
    /// None where it is left to a judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    /// What is checked, in words.
    reading: String,
    verdict: Verdict,
    explanation: String,
    spans: Vec<Span>,
    ambiguous: bool,
}

fn held(compiled: &Compiled, reply: &str, prompt: Option<&str>) -> Vec<Held> {
    let one = |contract: &Contract| {
        let checked = check(contract, reply, prompt);
        Held {
            id: contract.id.clone(),
            statement: contract.statement.clone(),
            family: contract.family().map(|family| family.name()),
            reading: contract.family().map_or_else(|| contract.statement.clone(), ToString::to_string),
            verdict: checked.verdict,
            explanation: checked.explanation,
            spans: checked.spans,
            ambiguous: compiled.ambiguous.contains(&contract.id),
        }
    };
    compiled.contracts.iter().map(one).collect()
}

/// A reply that was checked.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    record: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
    contracts: Vec<Held>,
    conflicts: Vec<Conflict>,
}

impl Checked {
    pub(super) fn of(key: Option<Value>, compiled: &Compiled, reply: &str, prompt: Option<&str>) -> Self {
        let contracts = held(compiled, reply, prompt);
        Self { record: "check", key, contracts, conflicts: conflicts(&compiled.contracts, prompt) }
    }

    /// A line a contract, or a line a contract that does not hold, then a line a conflict.
    pub(super) fn lines(&self, place: &str, only_failed: bool) -> Vec<String> {
        let shown = self.contracts.iter().filter(|held| !only_failed || held.verdict != Verdict::Pass);
        shown
            .map(|held| held.line(place))
            .chain(self.conflicts.iter().map(|one| conflict(place, one)))
            .collect()
    }
}

impl Held {
    fn line(&self, place: &str) -> String {
        let (style, word) = match self.verdict {
            Verdict::Pass => (out::GOOD, "pass"),
            Verdict::Fail => (out::BAD, "FAIL"),
            Verdict::NotApplicable => (out::NOTICE, "n/a"),
        };
        let unsure = if self.ambiguous { " (ambiguous: `contract explain` says why)" } else { "" };
        format!(
            "{style}{word:<4}{style:#}  {place}{}  {}: {}{unsure}",
            self.id,
            clean_line(&self.reading),
            clean_line(&self.explanation)
        )
    }
}

pub(super) fn conflict(place: &str, conflict: &Conflict) -> String {
    let notice = out::NOTICE;
    let reason = clean_line(&conflict.reason);
    format!("{notice}conflict{notice:#}  {place}{}: {reason}", conflict.contracts.join(", "))
}

/// A reply that was repaired.
#[derive(Debug, Serialize)]
pub(super) struct Repaired {
    record: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
    /// Whether each contract held before; one that is left to a judge does not.
    compliance: Vec<bool>,
    pub(super) repaired: String,
    /// And after.
    compliance_after: Vec<bool>,
    edit_ratio: f64,
    edits: Vec<Edit>,
    steps: Vec<Step>,
    unrepaired: Vec<Unrepaired>,
    conflicts: Vec<Conflict>,
    #[serde(skip)]
    after: Vec<Held>,
}

impl Repaired {
    pub(super) fn of(key: Option<Value>, compiled: &Compiled, reply: &str, prompt: Option<&str>) -> Self {
        let holds = |held: &Held| held.verdict == Verdict::Pass;
        let before = held(compiled, reply, prompt);
        let repaired = repair(&compiled.contracts, reply, prompt);
        let after = held(compiled, &repaired.text, prompt);
        Self {
            record: "repair",
            key,
            compliance: before.iter().map(holds).collect(),
            compliance_after: after.iter().map(holds).collect(),
            repaired: repaired.text,
            edit_ratio: repaired.edit_ratio,
            edits: repaired.edits,
            steps: repaired.steps,
            unrepaired: repaired.unrepaired,
            conflicts: conflicts(&compiled.contracts, prompt),
            after,
        }
    }

    /// What was done, what is left, and what cannot hold together.
    pub(super) fn lines(&self, place: &str) -> Vec<String> {
        let (good, bad) = (out::GOOD, out::BAD);
        let steps = self.steps.iter().map(|step| {
            format!(
                "{good}done{good:#}  {place}{}  {} (edit ratio {:.3})",
                step.contract,
                clean_line(&step.what),
                step.edit_ratio
            )
        });
        let left = self
            .unrepaired
            .iter()
            .map(|left| format!("{bad}left{bad:#}  {place}{}  {}", left.contract, clean_line(&left.reason)));
        let judged = self.after.iter().filter(|held| held.verdict == Verdict::NotApplicable);
        let judged = judged.map(|held| held.line(place));
        let clashes = self.conflicts.iter().map(|one| conflict(place, one));
        steps.chain(left).chain(judged).chain(clashes).collect()
    }
}

/// What all replies come to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sums {
    record: &'static str,
    replies: usize,
    contracts: usize,
    hold: usize,
    fail: usize,
    not_told: usize,
    ambiguous: usize,
    conflicts: usize,
    pub(super) unreadable: usize,
    /// Replies that a repair changed.
    changed: usize,
    /// Contracts that held before any repair.
    held_before: usize,
}

impl Sums {
    pub(super) fn checked(&mut self, checked: &Checked) {
        self.add(&checked.contracts, checked.conflicts.len());
        self.held_before = self.hold;
    }

    pub(super) fn repaired(&mut self, repaired: &Repaired) {
        self.add(&repaired.after, repaired.conflicts.len());
        self.changed += usize::from(!repaired.edits.is_empty());
        self.held_before += repaired.compliance.iter().filter(|held| **held).count();
    }

    fn add(&mut self, contracts: &[Held], conflicts: usize) {
        let verdicts = |wanted| contracts.iter().filter(|held| held.verdict == wanted).count();
        self.record = "summary";
        self.replies += 1;
        self.contracts += contracts.len();
        self.hold += verdicts(Verdict::Pass);
        self.fail += verdicts(Verdict::Fail);
        self.not_told += verdicts(Verdict::NotApplicable);
        self.ambiguous += contracts.iter().filter(|held| held.ambiguous).count();
        self.conflicts += conflicts;
    }

    pub(super) fn line(&self) -> String {
        let strong = out::STRONG;
        let mut line = format!(
            "{strong}{} of {} hold{strong:#}",
            self.hold,
            count(self.contracts, "contract", "contracts")
        );
        if self.replies != 1 {
            line.push_str(&format!(" on {}", count(self.replies, "reply", "replies")));
        }
        if self.changed > 0 {
            line.push_str(&format!(", {} before the repair", self.held_before));
        }
        let parts = [
            (self.fail, "fails", "fail"),
            (self.not_told, "is left to a judge", "are left to a judge"),
            (self.ambiguous, "is ambiguous", "are ambiguous"),
            (self.conflicts, "conflict", "conflicts"),
            (self.unreadable, "record could not be read", "records could not be read"),
        ];
        for (number, one, many) in parts.into_iter().filter(|part| part.0 > 0) {
            line.push_str(&format!(", {}", count(number, one, many)));
        }
        line
    }

    /// What could not be read weighs less than a failure and more than what cannot be told.
    pub(super) fn code(&self) -> u8 {
        if self.fail > 0 {
            exit::NO
        } else if self.unreadable > 0 {
            exit::UNREADABLE
        } else if self.not_told + self.ambiguous + self.conflicts > 0 || self.replies == 0 {
            exit::INCOMPLETE
        } else {
            exit::YES
        }
    }
}
