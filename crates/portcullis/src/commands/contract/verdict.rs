//! What became of a reply, for people; and what all replies come to.

use portcullis_assist::record::{Assisted, Checked, Held, Mended};
use portcullis_assist::{Answers, Decider};
use portcullis_contracts::{Conflict, Need, Verdict};
use serde::Serialize;

use crate::exit;
use crate::out::{self, clean_line, count};

/// A line a contract, or a line a contract that does not hold, then a line a conflict.
pub(super) fn of_checked(checked: &Checked, place: &str, only_failed: bool) -> Vec<String> {
    let shown = checked.contracts.iter().filter(|held| !only_failed || held.verdict != Verdict::Pass);
    shown
        .map(|held| of_held(held, place))
        .chain(checked.conflicts.iter().map(|one| conflict(place, one)))
        .collect()
}

fn of_held(held: &Held, place: &str) -> String {
    let (style, word) = match held.verdict {
        Verdict::Pass => (out::GOOD, "pass"),
        Verdict::Fail => (out::BAD, "FAIL"),
        Verdict::NotApplicable => (out::NOTICE, "n/a"),
    };
    let by = match held.by {
        _ if held.verdict == Verdict::NotApplicable => "",
        Decider::Model => " (by the model)",
        Decider::Program => " (by the judge)",
        Decider::Exact | Decider::Nobody => "",
    };
    let unsure = if held.ambiguous { " (ambiguous: `contract explain` says why)" } else { "" };
    let needs = held.needs.map_or_else(String::new, |need| format!(" (exact with `{}`)", option(need)));
    format!(
        "{style}{word:<4}{style:#}  {place}{}  {}: {}{by}{needs}{unsure}",
        held.id,
        clean_line(&held.reading),
        clean_line(&held.explanation)
    )
}

/// The option of the command line that gives what is needed.
pub(super) fn option(need: Need) -> String {
    format!("--{}", need.name().replace('_', "-"))
}

pub(super) fn conflict(place: &str, conflict: &Conflict) -> String {
    let notice = out::NOTICE;
    let reason = clean_line(&conflict.reason);
    format!("{notice}conflict{notice:#}  {place}{}: {reason}", conflict.contracts.join(", "))
}

/// What was done, by code and by a model, what is left, and what cannot hold together.
pub(super) fn of_mended(mended: &Mended, place: &str) -> Vec<String> {
    let (good, bad) = (out::GOOD, out::BAD);
    let steps = mended.steps.iter().map(|step| {
        format!(
            "{good}done{good:#}  {place}{}  {} (edit ratio {:.3})",
            step.contract,
            clean_line(&step.what),
            step.edit_ratio
        )
    });
    let assist = mended.assist.iter().filter(|assist| assist.spent.calls > 0);
    let assist = assist.map(|assist| format!("{good}asked{good:#} {place}{}", of_assisted(assist)));
    let left = mended
        .unrepaired
        .iter()
        .map(|left| format!("{bad}left{bad:#}  {place}{}  {}", left.contract, clean_line(&left.reason)));
    let open = mended.after.iter().filter(|held| held.verdict == Verdict::NotApplicable);
    let open = open.map(|held| of_held(held, place));
    let clashes = mended.conflicts.iter().map(|one| conflict(place, one));
    steps.chain(assist).chain(left).chain(open).chain(clashes).collect()
}

fn of_assisted(assist: &Assisted) -> String {
    let chosen = match (assist.rewrites, assist.chosen) {
        (0, _) => "nothing was rewritten".to_owned(),
        (rewrites, 0) => format!("{}, none is better", count(rewrites, "rewrite", "rewrites")),
        (1, _) => "1 rewrite, taken".to_owned(),
        (rewrites, chosen) => format!("{rewrites} rewrites, number {chosen} taken"),
    };
    let answers = match assist.answers {
        Answers::NotAsked => "",
        Answers::Yes => "; it still answers the request",
        Answers::No => "; but the rewrite no longer answers the request, so it is dropped",
        Answers::Undecided => {
            "; but it is not known whether the rewrite still answers the request, so it is dropped"
        }
    };
    let calls = count(assist.spent.calls as usize, "call", "calls");
    let stopped = match (assist.ended, &assist.error) {
        ("budget", Some(error)) => format!("; stopped: {}", clean_line(&error.to_string())),
        _ => String::new(),
    };
    format!("{}: {chosen}{answers} ({calls}){stopped}", assist.strategy)
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
    /// Replies about which a model or a judge gave no answer.
    unanswered: usize,
    /// Replies at which a budget was used up.
    out_of_budget: usize,
    /// Replies that a repair changed.
    changed: usize,
    /// Contracts that held before any repair.
    held_before: usize,
}

impl Sums {
    pub(super) fn checked(&mut self, checked: &Checked) {
        self.add(&checked.contracts, checked.conflicts.len());
        self.held_before = self.hold;
        self.unanswered += usize::from(checked.error().is_some());
        self.out_of_budget += usize::from(checked.error.is_some() && checked.error().is_none());
    }

    pub(super) fn mended(&mut self, mended: &Mended) {
        self.add(&mended.after, mended.conflicts.len());
        self.changed += usize::from(!mended.edits.is_empty());
        self.held_before += mended.compliance.iter().filter(|held| **held).count();
        self.unanswered += usize::from(mended.error().is_some());
        self.out_of_budget +=
            usize::from(mended.assist.as_ref().is_some_and(|assist| assist.ended == "budget"));
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
            (self.not_told, "is not decided", "are not decided"),
            (self.ambiguous, "is ambiguous", "are ambiguous"),
            (self.conflicts, "conflict", "conflicts"),
            (self.unreadable, "record could not be read", "records could not be read"),
            (
                self.unanswered,
                "reply without an answer of the judge",
                "replies without an answer of the judge",
            ),
            (self.out_of_budget, "reply beyond the budget", "replies beyond the budget"),
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
        } else if self.unreadable + self.unanswered > 0 {
            exit::UNREADABLE
        } else if self.not_told + self.ambiguous + self.conflicts > 0 || self.replies == 0 {
            exit::INCOMPLETE
        } else {
            exit::YES
        }
    }
}
