//! Policy Guard's sample: replies with one to ten statements about each, in plain language.
//!
//! The statements are compiled, the reply is checked, repaired, and checked again: mechanically without asking a model, or
//! by as many strategies as are named ([`Arm`]), one after the other on the same replies. The set has no labels:
//! compliance is what the exact checkers say; a statement that only a judge could decide goes by the judge, and where there
//! is none counts as not complied with, before and after.

mod plot;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use portcullis_assist::record::Used;
use portcullis_assist::{
    Clock, Ended, Helpers, Judgement, ModelError, Repaired, Settings, Spent, Strategy, SystemClock, Task,
    repair,
};
use portcullis_contracts::{Contract, compile, conflicts, difference};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::Data;
use crate::interval::Proportion;
use crate::predictions::Predictions;
use crate::report::{Skipped, Table, Timing, percent};
use crate::stream;
use crate::suite::EvalError;

/// Name of the suite.
pub const NAME: &str = "policy-guard";

/// Most statements that are counted one after the other.
const MAX_COUNT: usize = 10;
/// How statements are called that no code decides.
const JUDGED: &str = "judged";

/// One way to repair, and who helps.
#[derive(Debug, Clone)]
pub struct Arm<'a> {
    /// How.
    pub settings: Settings,
    /// Whom it may ask.
    pub helpers: Helpers<'a>,
    /// What waits go by.
    pub clock: &'a dyn Clock,
}

/// A record, as far as it is read.
#[derive(Debug, Deserialize)]
struct Record {
    key: Value,
    prompt_request: String,
    instruction_text_list: Vec<String>,
    response: String,
}

/// What became of a record.
#[derive(Debug, Serialize)]
struct Line<'r> {
    key: &'r Value,
    compliance: &'r [bool],
    repaired: &'r str,
    compliance_after: &'r [bool],
    edit_ratio: f64,
}

/// What was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Name of the suite.
    pub suite: &'static str,
    /// Replies that were checked.
    pub judged: usize,
    /// Records of another form.
    pub skipped: Vec<Skipped>,
    /// Statements that became exact checkers.
    pub recognised: Proportion,
    /// All statements.
    pub all: Row,
    /// Statements that held before the repair and do not after it.
    pub broken: usize,
    /// As if there were only so many statements about each reply: the first ones of its list, repaired for them alone.
    pub by_count: Vec<Row>,
    /// Each strategy, in order. All else in the report is of the first.
    pub strategies: Vec<ByStrategy>,
    /// Statements of each family.
    pub families: Vec<Row>,
    /// Why statements fail still.
    pub left: Vec<Left>,
    /// Replies whose statements cannot hold together.
    pub conflicts: Vec<Clash>,
    /// How much of a reply a repair changed, over the replies that it changed.
    pub edits: Edits,
    /// How long a repair took, checks included.
    pub repairs: Timing,
}

/// Some of the statements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Which.
    pub name: String,
    /// Replies with such statements.
    pub replies: usize,
    /// Statements that hold on the reply as it was.
    pub before: Proportion,
    /// And after the repair.
    pub after: Proportion,
}

/// What one strategy reached.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ByStrategy {
    /// Its name.
    pub strategy: String,
    /// All statements.
    pub all: Row,
    /// Statements that held before the repair and do not after it.
    pub broken: usize,
    /// As in [`Report::by_count`].
    pub by_count: Vec<Row>,
    /// What a model cost, for all counts of statements together.
    pub spent: Used,
    /// Repairs that a budget ended.
    pub out_of_budget: usize,
    /// Repairs that the model did not answer for, or not to the end.
    pub unanswered: usize,
}

/// Statements that fail after the repair, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Their family.
    pub family: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub count: usize,
}

/// Statements about one reply that cannot hold together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clash {
    /// The reply.
    pub key: Value,
    /// The statements.
    pub statements: Vec<String>,
    /// Why.
    pub reason: String,
}

/// Shares of replies that were changed, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Edits {
    /// Replies that were changed.
    pub changed: usize,
    /// Half of them no more than this.
    pub p50: f64,
    /// Three of four.
    pub p75: f64,
    /// Nine of ten.
    pub p90: f64,
    /// None more.
    pub max: f64,
}

#[derive(Debug, Default)]
struct Tally {
    report: Report,
    strategies: Vec<Reached>,
    families: BTreeMap<&'static str, Row>,
    left: BTreeMap<(String, String), usize>,
    ratios: Vec<f64>,
    times: Vec<Duration>,
    unread: usize,
}

/// What one strategy reached until now.
#[derive(Debug, Default)]
struct Reached {
    row: ByStrategy,
    spent: Spent,
}

/// Checks every reply and repairs it by each of the strategies; mechanically where none is named. `progress` is told the
/// bytes of the files dealt with.
///
/// # Errors
/// The data cannot be read, predictions cannot be written, or a model that is asked can answer nothing.
pub fn run(
    data: &Data,
    mut predictions: Predictions,
    arms: &[Arm<'_>],
    progress: &mut dyn FnMut(u64),
) -> Result<Report, EvalError> {
    let clock = SystemClock::new();
    let settings = Settings { strategy: Strategy::Mechanical, ..Settings::default() };
    let mechanical = [Arm { settings, helpers: Helpers::default(), clock: &clock }];
    let arms = if arms.is_empty() { &mechanical } else { arms };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(EvalError::Runtime)?;
    let mut tally = Tally::default();
    let mut done = 0_u64;
    for path in &data.files {
        stream::records(path, |_, record| {
            let record = record.ok().and_then(|record| serde_json::from_value::<Record>(record).ok());
            let compiled = record.and_then(|record| {
                let statements: Vec<&str> = record.instruction_text_list.iter().map(String::as_str).collect();
                compile(&statements).ok().map(|contracts| (record, contracts))
            });
            let Some((record, contracts)) = compiled else {
                tally.unread += 1;
                return Ok::<bool, EvalError>(true);
            };
            tally.clashes(&record, &contracts);
            for (at, arm) in arms.iter().enumerate() {
                tally.judge(at, arm, &runtime, &record, &contracts, &mut predictions)?;
            }
            Ok(true)
        })?;
        done += std::fs::metadata(path).map_or(0, |meta| meta.len());
        progress(done);
    }
    predictions.finish().map_err(EvalError::Predictions)?;
    Ok(tally.report())
}

impl Tally {
    /// One strategy on one reply: for all statements, and for the first ones alone.
    fn judge(
        &mut self,
        at: usize,
        arm: &Arm<'_>,
        runtime: &Runtime,
        record: &Record,
        contracts: &[Contract],
        predictions: &mut Predictions,
    ) -> Result<(), EvalError> {
        while self.strategies.len() <= at {
            self.strategies.push(Reached::default());
        }
        let Some(reached) = self.strategies.get_mut(at) else { return Ok(()) };
        reached.row.strategy = arm.settings.strategy.to_string();
        let start = Instant::now();
        let whole = reached.repair(arm, runtime, record, contracts)?;
        let took = start.elapsed();
        for count in 1..=contracts.len().min(MAX_COUNT) {
            let first = contracts.get(..count).unwrap_or(contracts);
            let part = (count < contracts.len()).then(|| reached.repair(arm, runtime, record, first));
            let part = part.transpose()?;
            let (before, after) = held(part.as_ref().unwrap_or(&whole));
            count_first(&mut reached.row.by_count, count, &before, &after);
        }
        let (before, after) = held(&whole);
        reached.row.all.replies += 1;
        for (before, after) in before.iter().zip(&after) {
            reached.row.broken += usize::from(*before && !after);
            reached.row.all.before.count(*before);
            reached.row.all.after.count(*after);
        }
        if at > 0 {
            return Ok(());
        }
        self.times.push(took);
        let edit_ratio = difference(&record.response, &whole.reply).1;
        let line = Line {
            key: &record.key,
            compliance: &before,
            repaired: &whole.reply,
            compliance_after: &after,
            edit_ratio,
        };
        predictions.write(&line).map_err(EvalError::Predictions)?;
        if whole.reply != record.response {
            self.ratios.push(edit_ratio);
        }
        self.count(contracts, &before, &after, &whole);
        Ok(())
    }

    fn clashes(&mut self, record: &Record, contracts: &[Contract]) {
        let statement = |id: &String| {
            contracts.iter().find(|contract| contract.id == *id).map(|contract| contract.statement.clone())
        };
        for conflict in conflicts(contracts, Some(record.prompt_request.as_str())) {
            self.report.conflicts.push(Clash {
                key: record.key.clone(),
                statements: conflict.contracts.iter().filter_map(statement).collect(),
                reason: conflict.reason,
            });
        }
    }

    fn count(&mut self, contracts: &[Contract], before: &[bool], after: &[bool], repaired: &Repaired) {
        self.report.judged += 1;
        let mut seen = Vec::new();
        for ((contract, before), after) in contracts.iter().zip(before).zip(after) {
            let family = contract.family().map_or(JUDGED, |family| family.name());
            self.report.recognised.count(contract.family().is_some());
            let of_family = self.families.entry(family).or_default();
            of_family.replies += usize::from(!seen.contains(&family));
            seen.push(family);
            of_family.before.count(*before);
            of_family.after.count(*after);
            if !after {
                let reason = why_left(&contract.id, repaired);
                *self.left.entry((family.to_owned(), reason)).or_default() += 1;
            }
        }
    }

    fn report(self) -> Report {
        let left = self.left.into_iter().map(|((family, reason), count)| Left { family, reason, count });
        let why = "of another form".to_owned();
        let strategies: Vec<ByStrategy> = self.strategies.into_iter().map(Reached::done).collect();
        let first = strategies.first().cloned().unwrap_or_default();
        let skipped = if self.unread > 0 { vec![Skipped { count: self.unread, why }] } else { Vec::new() };
        Report {
            suite: NAME,
            skipped,
            all: first.all,
            broken: first.broken,
            by_count: first.by_count,
            strategies,
            families: self
                .families
                .into_iter()
                .map(|(name, row)| Row { name: name.to_owned(), ..row })
                .collect(),
            left: left.collect(),
            edits: Edits::of(self.ratios),
            repairs: Timing::of(self.times),
            ..self.report
        }
    }
}

impl Reached {
    /// Repairs a reply for some of its statements.
    fn repair(
        &mut self,
        arm: &Arm<'_>,
        runtime: &Runtime,
        record: &Record,
        contracts: &[Contract],
    ) -> Result<Repaired, EvalError> {
        let task =
            Task { context: Some(record.prompt_request.as_str()).into(), reply: &record.response, contracts };
        let repaired = runtime.block_on(repair(arm.helpers, arm.clock, &task, &arm.settings))?;
        self.spent.add(&repaired.spent);
        match &repaired.ended {
            Ended::Clean | Ended::Done => {}
            Ended::Budget(_) | Ended::Model(ModelError::Budget(_)) => self.row.out_of_budget += 1,
            Ended::Model(error) if error.is_lasting() => return Err(EvalError::Model(error.clone())),
            Ended::Model(_) => self.row.unanswered += 1,
        }
        Ok(repaired)
    }

    fn done(self) -> ByStrategy {
        let all = Row { name: "all".to_owned(), ..self.row.all };
        ByStrategy { all, spent: self.spent.into(), ..self.row }
    }
}

/// What held before, and what holds after.
fn held(repaired: &Repaired) -> (Vec<bool>, Vec<bool>) {
    let of = |judgements: &[Judgement]| judgements.iter().map(Judgement::holds).collect();
    (of(&repaired.before), of(&repaired.after))
}

fn count_first(rows: &mut Vec<Row>, count: usize, before: &[bool], after: &[bool]) {
    while rows.len() < count {
        let name = match rows.len() + 1 {
            1 => "the first statement".to_owned(),
            more => format!("the first {more}"),
        };
        rows.push(Row { name, ..Row::default() });
    }
    let Some(row) = rows.get_mut(count - 1) else { return };
    row.replies += 1;
    for (before, after) in before.iter().zip(after) {
        row.before.count(*before);
        row.after.count(*after);
    }
}

/// Why a statement does not hold after the repair: what code says of it or, of others, who judged it.
fn why_left(id: &str, repaired: &Repaired) -> String {
    let by_code = repaired.mechanical.iter().flat_map(|repair| &repair.unrepaired);
    let by_code = by_code.filter(|left| left.contract == id).map(|left| &left.reason);
    match by_code.chain(repaired.after.iter().filter(|one| one.id == id).map(|one| &one.explanation)).next() {
        Some(reason) => reason.clone(),
        None => String::new(),
    }
}

impl Edits {
    fn of(mut ratios: Vec<f64>) -> Self {
        ratios.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (ratios.len() * percent / 100).min(ratios.len().saturating_sub(1));
            ratios.get(index).copied().unwrap_or_default()
        };
        Self { changed: ratios.len(), p50: at(50), p75: at(75), p90: at(90), max: at(100) }
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let left = self.after.of - self.after.hits;
        let counts = [self.replies, self.before.of, self.before.hits, self.after.hits, left];
        let mut cells = vec![self.name.clone()];
        cells.extend(counts.iter().map(usize::to_string));
        cells.extend([self.before, self.after].map(percent));
        cells
    }
}

impl Report {
    /// All statements, by strategy where there are several; then, of the first, only the first ones, and each family.
    pub fn table(&self) -> Table {
        let head = ["", "replies", "statements", "before", "after", "left", "before %", "after %"];
        let mut rows = match &*self.strategies {
            [] | [_] => vec![self.all.cells()],
            several => several
                .iter()
                .map(|one| Row { name: one.strategy.clone(), ..one.all.clone() }.cells())
                .collect(),
        };
        for part in [&self.by_count, &self.families] {
            rows.push(Vec::new());
            rows.extend(part.iter().map(Row::cells));
        }
        Table { head: head.map(str::to_owned).to_vec(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replies_are_checked_repaired_and_predicted() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a.jsonl");
        let record = |key: u32, statements: &[&str], response: &str| {
            json!({"key": key, "prompt_request": "Say something.", "instruction_text_list": statements,
                "response": response})
            .to_string()
        };
        let json_and_title =
            ["Entire output should be wrapped in JSON format.", "Write in an inspiring way."];
        let lines = [
            record(1, &["In your entire response, refrain from the use of any commas."], "One, two."),
            record(2, &["Answer with at least 300 words."], "Too short."),
            record(3, &json_and_title, "{\"a\": 1}"),
            record(
                4,
                &[
                    "Entire output should be wrapped in JSON format.",
                    "Your answer must contain exactly 3 bullet points.",
                ],
                "x",
            ),
            "{\"not\": \"a record\"}".to_owned(),
        ];
        std::fs::write(&data, lines.join("\n")).unwrap();
        let out = folder.path().join("out.jsonl");
        let report = run(&Data::at(&data).unwrap(), Predictions::create(&out).unwrap(), &[], &mut |_| {});
        let report = report.unwrap();
        assert_eq!(report.judged, 4);
        assert_eq!(report.skipped.iter().map(|skipped| skipped.count).sum::<usize>(), 1);
        assert_eq!(report.recognised, Proportion { hits: 5, of: 6 });
        assert_eq!(report.broken, 0);
        assert_eq!(report.all.before, Proportion { hits: 1, of: 6 });
        assert!(report.all.after.hits > 1, "{report:?}");
        assert_eq!(report.by_count.iter().map(|row| row.replies).collect::<Vec<_>>(), [4, 2]);
        assert!(report.left.iter().any(|left| left.family == "words" && left.count == 1));
        assert!(report.edits.changed >= 1 && report.edits.max <= 1.0);
        assert!(report.conflicts.iter().any(|clash| clash.key == json!(4) && clash.statements.len() == 2));
        let plot = report.plot();
        assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n"), "{plot}");
        // A point for one statement and one for two, before and after.
        assert_eq!(plot.matches("<circle").count(), 4);
        let predicted: Vec<Value> = std::fs::read_to_string(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(predicted[0]["compliance"], json!([false]));
        assert_eq!(predicted[0]["compliance_after"], json!([true]));
        assert_eq!(predicted[2]["compliance"], json!([true, false]));
        assert_eq!(predicted[2]["repaired"], "{\"a\": 1}");
    }
}
