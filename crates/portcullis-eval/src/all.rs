//! Every suite whose data stands below a folder, in one table.
//!
//! Files are known by the shape of their records, as in [`crate::worlds`]. A suite without data, or whose data cannot be
//! judged, is listed as skipped with the reason: a table that leaves a suite out in silence looks like a better one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use portcullis_assist::{Helpers, Settings, Strategy, SystemClock};
use portcullis_core::bundle::Bundle;
use portcullis_detect::Detector;
use portcullis_session::{configuration, policy};
use serde::Serialize;
use serde_json::Value;

use crate::data::Data;
use crate::interval::Proportion;
use crate::metrics::Score;
use crate::predictions::Predictions;
use crate::report::Table;
use crate::suite::{self, EvalError};
use crate::trajectory::suites::Name;
use crate::trajectory::tau;
use crate::worlds::names::Choice;
use crate::worlds::table::{Cell, Section};
use crate::{
    claims, eicu_ac, health_records, ifeval, mind2web_sc, policy_guard, scenarios, stream, text, web_rules,
    worlds,
};

/// Name of the suite.
pub const NAME: &str = "all";

/// Records of a file that are looked at to know it.
const RECORDS_PEEKED: usize = 3;
/// Suites of recorded runs, which are judged with the worlds.
const RECORDED: [Name; 5] = [Name::AgentDojo, Name::AgentDyn, Name::InjecAgent, Name::Asb, Name::Benign];
/// What the suite of scenarios is called.
const SCENARIOS: &str = "scenarios";

/// One evaluation of everything.
pub struct Job<'a> {
    /// Where the data is.
    pub folder: PathBuf,
    /// The folder with the scenarios, which are part of the repository.
    pub scenarios: PathBuf,
    /// The bundle that they are rehearsed under; that of agents stops nothing by a score.
    pub rehearsed_under: Arc<Bundle>,
    /// The settings under which agents are judged. Suites with rules of their own have their own.
    pub settings: Arc<Bundle>,
    /// Told how much of how much is done.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("folder", &self.folder).field("scenarios", &self.scenarios).finish()
    }
}

/// What all suites found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the suite.
    pub suite: &'static str,
    /// Digest of the settings under which agents were judged.
    pub bundle: String,
    /// Digest of all that judged them: the bundle, what is compiled in, and the engine.
    pub configuration: String,
    /// The figures.
    pub rows: Vec<Row>,
    /// Suites that were not run.
    pub skipped: Vec<Missing>,
    /// How long it took.
    pub seconds: f64,
}

/// A figure of a suite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The suite.
    pub suite: &'static str,
    /// What it says.
    pub figure: String,
    /// The figure.
    pub value: Cell,
}

/// A suite that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The suite.
    pub suite: &'static str,
    /// Why.
    pub why: String,
}

/// Suites whose data is a set of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    EicuAc,
    Mind2WebSc,
    Text,
    Ifeval,
    PolicyGuard,
    Claims,
}

impl Set {
    fn of(path: &Path, record: &Value) -> Option<Self> {
        let has = |fields: &[&str]| fields.iter().all(|field| record.get(field).is_some());
        if has(&["access_gt", "identity"]) {
            return Some(Self::EicuAc);
        }
        if has(&["confirmed_task", "user_info"]) {
            return Some(Self::Mind2WebSc);
        }
        if has(&["instruction_id_list", "response"]) {
            return Some(Self::Ifeval);
        }
        if has(&["instruction_text_list", "response"]) {
            return Some(Self::PolicyGuard);
        }
        if tau::set_of(record).is_some() {
            return Some(Self::Claims);
        }
        text::knows(path, record).then_some(Self::Text)
    }
}

/// The files of each set. Their root is the folder of the first: what belongs to records stands beside them.
fn find(folder: &Path) -> Result<BTreeMap<Set, Data>, EvalError> {
    let mut sets: BTreeMap<Set, Data> = BTreeMap::new();
    for path in Data::at(folder)?.ending(&[".jsonl"]).files {
        let mut set = None;
        let mut peeked = 0;
        stream::records::<EvalError>(&path, |_, record| {
            set = record.ok().and_then(|record| Set::of(&path, &record));
            peeked += 1;
            Ok(set.is_none() && peeked < RECORDS_PEEKED)
        })?;
        if let Some(set) = set {
            let root = path.parent().map(Path::to_owned).unwrap_or_default();
            let data = sets.entry(set).or_insert_with(|| Data { root, files: Vec::new(), bytes: 0 });
            data.bytes += std::fs::metadata(&path).map_or(0, |meta| meta.len());
            data.files.push(path);
        }
    }
    Ok(sets)
}

/// Runs every suite whose data is there.
///
/// # Errors
/// The folder cannot be read.
pub fn run(job: Job<'_>) -> Result<Report, EvalError> {
    let started = Instant::now();
    let sets = find(&job.folder)?;
    let digest = job.settings.digest();
    let mut all = Figures::default();
    all.access(&sets);
    let settings = Arc::clone(&job.settings);
    let (recorded, worlds) = match judged_worlds(job.folder, settings, job.progress) {
        Ok(sections) => split(&sections),
        Err(error) => {
            all.skip(worlds::NAME, error.to_string());
            Default::default()
        }
    };
    for name in RECORDED.map(Name::as_str) {
        let rows: Vec<Row> = recorded.iter().filter(|row| row.suite == name).cloned().collect();
        all.took(name, rows);
    }
    all.texts(&sets);
    all.claims(&sets);
    all.rehearsed(&job.scenarios, &job.rehearsed_under);
    all.took(worlds::NAME, worlds);
    Ok(Report {
        suite: NAME,
        bundle: digest.to_string(),
        configuration: configuration::digest(digest).to_string(),
        rows: all.rows,
        skipped: all.skipped,
        seconds: started.elapsed().as_secs_f64(),
    })
}

fn judged_worlds(
    folder: PathBuf,
    settings: Arc<Bundle>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Section>, EvalError> {
    let predictions = Predictions::none();
    let job = worlds::Job { folder, settings, choice: Choice::default(), predictions, progress };
    Ok(worlds::run(job)?.sections)
}

/// The figures of other suites among the worlds, and those of the worlds.
fn split(sections: &[Section]) -> (Vec<Row>, Vec<Row>) {
    let (mut recorded, mut worlds) = (Vec::new(), Vec::new());
    for section in sections {
        for row in &section.rows {
            let cells = section.figures.iter().zip(&row.figures);
            for (column, value) in cells.filter(|(_, value)| value.value().is_some()) {
                let (suite, kind) = match row.suite {
                    Some(suite) => (suite, section.name.trim_start_matches(worlds::OF_SUITES)),
                    None => (worlds::NAME, section.name.as_str()),
                };
                let figure = format!("{kind}: {}, {column}", row.name.trim());
                let row = Row { suite, figure, value: value.clone() };
                if suite == worlds::NAME { &mut worlds } else { &mut recorded }.push(row);
            }
        }
    }
    (recorded, worlds)
}

#[derive(Debug, Default)]
struct Figures {
    rows: Vec<Row>,
    skipped: Vec<Missing>,
}

impl Figures {
    fn skip(&mut self, suite: &'static str, why: String) {
        self.skipped.push(Missing { suite, why });
    }

    /// Adds the rows of a suite, which is skipped where there are none.
    fn took(&mut self, suite: &'static str, rows: Vec<Row>) {
        let known = self.skipped.iter().any(|missing| missing.suite == suite);
        if rows.is_empty() && !known {
            self.skip(suite, "no data".to_owned());
        }
        self.rows.extend(rows);
    }

    /// Adds what a suite made of its data: shares with what they say.
    fn suite(
        &mut self,
        suite: &'static str,
        data: Option<&Data>,
        run: impl FnOnce(&Data) -> Result<Vec<(String, Proportion)>, EvalError>,
    ) {
        match data.map(run) {
            None => self.took(suite, Vec::new()),
            Some(Err(error)) => self.skip(suite, error.to_string()),
            Some(Ok(shares)) => {
                let filled = shares.into_iter().filter(|(_, share)| share.of > 0);
                let row = |(figure, share)| Row { suite, figure, value: Cell::Share(share) };
                self.took(suite, filled.map(row).collect());
            }
        }
    }

    /// The suites of access policies, each under its own bundle.
    fn access(&mut self, sets: &BTreeMap<Set, Data>) {
        self.suite(eicu_ac::NAME, sets.get(&Set::EicuAc), |data| {
            let code = eicu_ac::run_code(under(health_records::files, data, &mut |_| {})?)?;
            let access = eicu_ac::run_access(under(health_records::files, data, &mut |_| {})?)?;
            let mut shares = scored("from code", &code.all);
            shares.extend(scored("from access", &access.all));
            Ok(shares)
        });
        self.suite(mind2web_sc::NAME, sets.get(&Set::Mind2WebSc), |data| {
            let report = mind2web_sc::run(under(web_rules::files, data, &mut |_| {})?)?;
            Ok(scored("as shipped", &report.all))
        });
    }

    /// The suites of prompts and replies.
    fn texts(&mut self, sets: &BTreeMap<Set, Data>) {
        self.suite(text::NAME, sets.get(&Set::Text), |data| {
            let detector = Detector::shipped().map_err(|error| EvalError::Bundle(error.to_string()))?;
            let report = text::run(data, detector, Predictions::none(), &mut |_| {})?;
            Ok(report.parts.iter().map(|part| (format!("{}, flagged", part.name), part.flagged)).collect())
        });
        self.suite(ifeval::NAME, sets.get(&Set::Ifeval), |data| {
            let report = ifeval::run(data, Predictions::none(), &mut |_| {})?;
            Ok(vec![
                ("the grader's verdict, all types".to_owned(), report.all.agreement),
                ("without detection of a language".to_owned(), report.without_language.agreement),
            ])
        });
        self.suite(policy_guard::NAME, sets.get(&Set::PolicyGuard), |data| {
            let clock = SystemClock::new();
            let settings = Settings { strategy: Strategy::Mechanical, ..Settings::default() };
            let arms = [policy_guard::Arm { settings, helpers: Helpers::default(), clock: &clock }];
            let report = policy_guard::run(data, Predictions::none(), &arms, &mut |_| {})?;
            Ok(vec![
                ("statements recognised".to_owned(), report.recognised),
                ("complied with before the repair".to_owned(), report.all.before),
                ("after the repair".to_owned(), report.all.after),
            ])
        });
    }

    fn claims(&mut self, sets: &BTreeMap<Set, Data>) {
        self.suite(claims::NAME, sets.get(&Set::Claims), |data| {
            let claims::Report { left_out, .. } = claims::run(data, Predictions::none(), &mut |_| {})?;
            Ok(vec![
                ("without evidence, of runs that ended wrong".to_owned(), left_out.recall),
                ("without evidence, of runs that ended right".to_owned(), left_out.false_alarms),
                ("without evidence, calls cut out".to_owned(), left_out.without_calls),
            ])
        });
    }

    fn rehearsed(&mut self, folder: &Path, settings: &Arc<Bundle>) {
        let data = Data { root: folder.to_owned(), files: Vec::new(), bytes: 0 };
        self.suite(SCENARIOS, folder.is_dir().then_some(&data), |data| {
            let report = scenarios::run(scenarios::Job {
                folder: data.root.clone(),
                unseen: false,
                sensitivity: None,
                bundle: Arc::clone(settings),
                pipeline: Arc::new(policy::pipeline()),
                predictions: Predictions::none(),
            })?;
            let shares = report.lines.iter().flat_map(|(name, line)| {
                let reached = Proportion { hits: line.reached, of: line.misuse };
                let stopped = Proportion { hits: line.benign_stopped, of: line.benign };
                [(format!("{name}: misuse at level"), reached), (format!("{name}: benign stopped"), stopped)]
            });
            Ok(shares.collect())
        });
    }
}

/// A suite's job under the bundle that ships for it.
fn under<'a>(
    files: fn() -> BTreeMap<String, Vec<u8>>,
    data: &Data,
    progress: &'a mut dyn FnMut(u64),
) -> Result<suite::Job<'a>, EvalError> {
    let bundle = policy::load(&files()).map_err(|mistakes| {
        let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
        EvalError::Bundle(first)
    })?;
    let predictions = Predictions::none();
    Ok(suite::Job { data: data.clone(), bundle: Arc::new(bundle), predictions, progress })
}

fn scored(how: &str, score: &Score) -> Vec<(String, Proportion)> {
    let shares = [
        ("LPA", score.labels.accuracy()),
        ("LPP", score.labels.precision()),
        ("LPR", score.labels.recall()),
        ("EA", score.explained),
        ("EA exact", score.explained_exactly),
        ("FRA", score.answered),
    ];
    shares.map(|(name, share)| (format!("{how}: {name}"), share)).to_vec()
}

impl Report {
    /// A row for each figure, and one for each suite that was skipped.
    pub fn table(&self) -> Table {
        let head = ["suite", "figure", "% [95 %]", "n"].map(str::to_owned).to_vec();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for row in &self.rows {
            let n = match &row.value {
                Cell::Mean(_, worlds) => format!("{worlds} worlds"),
                value => value.sums().map(|(_, of)| of.to_string()).unwrap_or_default(),
            };
            rows.push(vec![row.suite.to_owned(), row.figure.clone(), row.value.text(), n]);
        }
        rows.extend(self.skipped.iter().map(|missing| {
            vec![missing.suite.to_owned(), format!("SKIPPED: {}", missing.why), String::new(), String::new()]
        }));
        Table { head, rows }
    }
}
