//! IFEval: replies of language models, and which instructions each follows by the published grader (Zhou and others,
//! 2023).
//!
//! Every instruction is read by [`family_of`] and checked on the reply; the figure is how often that verdict is the
//! grader's strict one. Four kinds stand apart, since the grader itself is not sure of them: three ask a statistical
//! detector what language a text is in, and a `letter_frequency` without a letter makes the grader draw one.
//!
//! A record without the grader's verdicts is checked and predicted all the same; so is one that was graded on another
//! wording of its prompt, but neither counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_contracts::ifeval::{INSTRUCTION_IDS, family_of};
use portcullis_contracts::{Family, check_family};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::Data;
use crate::interval::Proportion;
use crate::predictions::Predictions;
use crate::report::{Skipped, Table, Timing, percent};
use crate::stream;
use crate::suite::EvalError;

/// Name of the suite.
pub const NAME: &str = "ifeval";

/// Types whose grader detects a language.
pub const LANGUAGE_TYPES: [&str; 3] =
    ["change_case:english_capital", "change_case:english_lowercase", "language:response_language"];
/// How instructions about the frequency of something that is no letter are called.
pub const NON_LETTER: &str = "keywords:letter_frequency without a letter";

const NO_REPLY: &str = "no reply with instructions";
const OTHER_PROMPT: &str = "graded on another wording of the prompt: predicted, not counted";
const NOT_GRADED: &str = "without the grader's verdicts: predicted, not counted";

/// A record, as far as it is read.
#[derive(Debug, Deserialize)]
struct Record {
    key: Value,
    instruction_id_list: Vec<String>,
    kwargs: Vec<Option<Map<String, Value>>>,
    /// The reply; nothing where the model gave none.
    response: Value,
    prompt: Option<String>,
    official_strict: Option<Vec<bool>>,
    prompt_match: Option<bool>,
}

/// What was decided about a record.
#[derive(Debug, Serialize)]
struct Line<'r> {
    key: &'r Value,
    model: &'r str,
    follow: &'r [bool],
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the suite.
    pub suite: &'static str,
    /// Replies that were checked.
    pub judged: usize,
    /// Records that do not count, and why.
    pub skipped: Vec<Skipped>,
    /// Instructions that could not be read; they count as not followed.
    pub unread: usize,
    /// All instructions but those of [`NON_LETTER`].
    pub all: Row,
    /// The same without [`LANGUAGE_TYPES`].
    pub without_language: Row,
    /// Each type of instruction that needs no detection of a language.
    pub types: Vec<Row>,
    /// [`LANGUAGE_TYPES`] and [`NON_LETTER`].
    pub apart: Vec<Row>,
    /// Each model: all instructions but those of [`NON_LETTER`].
    pub models: Vec<Row>,
    /// How long a check took.
    pub checks: Timing,
}

/// Instructions of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Which.
    pub name: String,
    /// Our verdict is the grader's.
    pub agreement: Proportion,
    /// Followed by our verdict.
    pub followed: Proportion,
    /// Followed by the grader's.
    pub official: Proportion,
}

impl Row {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn count(&mut self, ours: bool, official: bool) {
        self.agreement.count(ours == official);
        self.followed.count(ours);
        self.official.count(official);
    }

    fn cells(&self) -> Vec<String> {
        let share = |part: Proportion| part.value().map_or("-".to_owned(), |v| format!("{:.1}", v * 100.0));
        let same = format!("{} of {}", self.agreement.hits, self.agreement.of);
        vec![self.name.clone(), same, percent(self.agreement), share(self.followed), share(self.official)]
    }
}

#[derive(Debug, Default)]
struct Tally {
    judged: usize,
    unread: usize,
    skipped: BTreeMap<&'static str, usize>,
    types: BTreeMap<String, Row>,
    models: BTreeMap<String, Row>,
    times: Vec<Duration>,
}

/// Checks every reply. `progress` is told the bytes of the files dealt with.
///
/// # Errors
/// The data cannot be read or predictions cannot be written.
pub fn run(
    data: &Data,
    mut predictions: Predictions,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, EvalError> {
    let mut tally = Tally::default();
    let mut done = 0_u64;
    for path in &data.files {
        let model = model_of(path);
        stream::records(path, |_, record| {
            let record = record.ok().and_then(|record| serde_json::from_value::<Record>(record).ok());
            match record {
                None => tally.skip(NO_REPLY),
                Some(record) => {
                    let follow = tally.judge(&model, &record);
                    let line = Line { key: &record.key, model: &model, follow: &follow };
                    predictions.write(&line).map_err(EvalError::Predictions)?;
                }
            }
            Ok::<bool, EvalError>(true)
        })?;
        done += std::fs::metadata(path).map_or(0, |meta| meta.len());
        progress(done);
    }
    predictions.finish().map_err(EvalError::Predictions)?;
    Ok(tally.report())
}

/// The name of the file without its endings.
fn model_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".jsonl").unwrap_or(name).to_owned()
}

impl Tally {
    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// Which instructions the reply follows, in order.
    fn judge(&mut self, model: &str, record: &Record) -> Vec<bool> {
        self.judged += 1;
        let reply = record.response.as_str().unwrap_or_default();
        let none = Map::new();
        let mut follow = Vec::with_capacity(record.instruction_id_list.len());
        let mut names = Vec::with_capacity(record.instruction_id_list.len());
        for (at, id) in record.instruction_id_list.iter().enumerate() {
            let arguments = record.kwargs.get(at).and_then(Option::as_ref).unwrap_or(&none);
            let family = family_of(id, arguments);
            let start = Instant::now();
            let holds = family
                .as_ref()
                .is_ok_and(|family| check_family(family, reply, record.prompt.as_deref()).holds());
            self.times.push(start.elapsed());
            self.unread += usize::from(family.is_err());
            let non_letter =
                matches!(&family, Ok(Family::LetterCount { letter, .. }) if !letter.is_ascii_alphabetic());
            names.push(if non_letter { NON_LETTER } else { id.as_str() });
            follow.push(holds);
        }
        match &record.official_strict {
            _ if record.prompt_match == Some(false) => self.skip(OTHER_PROMPT),
            Some(official) if official.len() == follow.len() => {
                for ((name, ours), official) in names.into_iter().zip(&follow).zip(official) {
                    self.count(model, name, *ours, *official);
                }
            }
            _ => self.skip(NOT_GRADED),
        }
        follow
    }

    fn count(&mut self, model: &str, name: &str, ours: bool, official: bool) {
        let row = |name: &str| Row::named(name);
        self.types.entry(name.to_owned()).or_insert_with(|| row(name)).count(ours, official);
        let of_model = self.models.entry(model.to_owned()).or_insert_with(|| row(model));
        if name != NON_LETTER {
            of_model.count(ours, official);
        }
    }

    fn report(self) -> Report {
        let is_apart = |row: &Row| row.name == NON_LETTER || LANGUAGE_TYPES.contains(&row.name.as_str());
        let (apart, types): (Vec<Row>, Vec<Row>) = self.types.into_values().partition(is_apart);
        let without = INSTRUCTION_IDS.len() - LANGUAGE_TYPES.len();
        let without_language = sum(&format!("the {without} types without a language"), types.iter());
        let graded = types.iter().chain(apart.iter().filter(|row| row.name != NON_LETTER));
        Report {
            suite: NAME,
            judged: self.judged,
            skipped: self
                .skipped
                .into_iter()
                .map(|(why, count)| Skipped { count, why: why.to_owned() })
                .collect(),
            unread: self.unread,
            all: sum(&format!("all {} types", INSTRUCTION_IDS.len()), graded),
            without_language,
            types,
            apart,
            models: self.models.into_values().collect(),
            checks: Timing::of(self.times),
        }
    }
}

fn sum<'r>(name: &str, rows: impl Iterator<Item = &'r Row>) -> Row {
    let add = |a: Proportion, b: Proportion| Proportion { hits: a.hits + b.hits, of: a.of + b.of };
    rows.fold(Row::named(name), |all, row| Row {
        name: all.name,
        agreement: add(all.agreement, row.agreement),
        followed: add(all.followed, row.followed),
        official: add(all.official, row.official),
    })
}

impl Report {
    /// All of it, then each type, those that stand apart, and each model.
    pub fn table(&self) -> Table {
        let head = ["", "same", "agreement %", "followed %", "by the grader %"].map(str::to_owned).to_vec();
        let mut rows = vec![self.all.cells(), self.without_language.cells()];
        for part in [&self.types, &self.apart, &self.models] {
            rows.push(Vec::new());
            rows.extend(part.iter().map(Row::cells));
        }
        Table { head, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replies_are_checked_predicted_and_compared() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let record = |key: u32, ids: Value, kwargs: Value, response: &str, official: Value| {
            json!({"key": key, "instruction_id_list": ids, "kwargs": kwargs, "response": response,
                "official_strict": official, "prompt_match": key != 4})
            .to_string()
        };
        let comma = json!(["punctuation:no_comma"]);
        let letter = json!([{"letter": "#", "let_frequency": 1, "let_relation": "at least"}]);
        let lines = [
            record(1, comma.clone(), json!([{}]), "One two.", json!([true])),
            // The grader is contradicted.
            record(2, comma.clone(), json!([{}]), "One, two.", json!([true])),
            record(3, json!(["keywords:letter_frequency"]), letter, "#", json!([false])),
            record(4, comma.clone(), json!([{}]), "One, two.", json!([true])),
            record(5, json!(["no:such"]), json!([{}]), "One.", json!([false])),
            record(6, comma.clone(), json!([{}]), "One.", Value::Null),
            // The model gave no reply.
            json!({"key": 7, "instruction_id_list": comma, "kwargs": [{}], "response": null, "official_strict": [false]})
                .to_string(),
        ];
        std::fs::write(data.join("some.model-v0.3.jsonl"), lines.join("\n")).unwrap();
        std::fs::write(data.join("input_data.jsonl"), "{\"key\": 1, \"prompt\": \"x\"}").unwrap();
        let out = folder.path().join("out.jsonl");
        let report = run(&Data::at(&data).unwrap(), Predictions::create(&out).unwrap(), &mut |_| {}).unwrap();
        assert_eq!((report.judged, report.unread), (7, 1));
        assert_eq!(report.all.agreement, Proportion { hits: 3, of: 4 });
        assert_eq!(report.all.followed, Proportion { hits: 1, of: 4 });
        let apart: Vec<&str> = report.apart.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(apart, [NON_LETTER]);
        let skipped: Vec<(usize, &str)> =
            report.skipped.iter().map(|skipped| (skipped.count, skipped.why.as_str())).collect();
        assert_eq!(skipped, [(1, OTHER_PROMPT), (1, NO_REPLY), (1, NOT_GRADED)]);
        let predicted: Vec<Value> = std::fs::read_to_string(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(predicted.len(), 7);
        assert_eq!(predicted[0], json!({"key": 1, "model": "some.model-v0.3", "follow": [true]}));
        assert_eq!(predicted[4], json!({"key": 5, "model": "some.model-v0.3", "follow": [false]}));
    }
}
