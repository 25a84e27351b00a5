//! Worlds: recorded runs of many kinds of agents, attacks and texts, in one table.
//!
//! A suite of [`crate::trajectory`] measures on one data set with its oracle. Here every source of runs is a *world* of
//! its own, so that a rule which was tuned on some of them shows on the others: mean and worst world are told, and
//! worlds can be left out, or judged without anybody seeing more than totals.
//!
//! | module | has |
//! |---|---|
//! | [`data`] | what stands below a folder, by the shape of its records |
//! | [`names`] | what is judged, and what stays sealed |
//! | [`replay`] | runs judged as `portcullis check` does |
//! | [`scoring`] | figures of runs without attack and of attacks |
//! | [`cases`] | figures of runs with what is expected of each call |
//! | [`texts`] | honest texts and ordinary prompts |
//! | [`recorded`] | rows of the suites of [`crate::trajectory`] |
//! | [`metamorphic`] | runs held against variants of them |
//! | [`share`] | work shared by threads |
//! | [`table`] | the report |
//!
//! Labels are for scoring only; nothing of them reaches the pipeline.

pub mod cases;
pub mod data;
pub mod metamorphic;
pub mod names;
pub mod recorded;
pub mod replay;
pub mod scoring;
pub mod share;
pub mod table;
pub mod texts;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::bundle::Bundle;
use portcullis_session::{configuration, policy};
use serde_json::{Value, json};

use crate::predictions::Predictions;
use crate::report::Skipped;
use crate::suite::EvalError;
use crate::trajectory::play::Fate;
use data::{CaseFile, Found, Kind, Recorded, Texts, World};
use names::Choice;
use recorded::Arm;
use replay::{Judge, Judged, fate};
use table::{Cell, Report, Row, Section, Worst};
use texts::{BUCKETS, Bucket};

/// Name of the suite.
pub const NAME: &str = "worlds";

/// One evaluation of worlds.
pub struct Job<'a> {
    /// Where the data is.
    pub folder: PathBuf,
    /// The settings under which every world is judged.
    pub settings: Arc<Bundle>,
    /// Which of the data.
    pub choice: Choice,
    /// Where predictions go.
    pub predictions: Predictions,
    /// Told how much of how much is done.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("folder", &self.folder).field("choice", &self.choice).finish()
    }
}

/// Judges all that is found.
///
/// # Errors
/// The data cannot be read or judged, a name is unknown, or predictions cannot be written.
pub fn run(mut job: Job<'_>) -> Result<Report, EvalError> {
    let started = Instant::now();
    let found = data::find(&job.folder, &job.choice)?;
    let judge = Judge { bundle: Arc::clone(&job.settings), pipeline: Arc::new(policy::pipeline()) };
    let units = Unit::all(&found);
    let total: u64 = units.iter().map(Unit::weight).sum();
    let mut finished = 0;
    (job.progress)(0, total);
    let done = share::each(
        &units,
        Unit::weight,
        |unit| unit.run(&judge),
        |unit| {
            finished += unit.weight();
            (job.progress)(finished, total);
        },
    );
    let mut sums = Sums { unread: found.unread, ..Sums::default() };
    for (unit, done) in units.iter().zip(done) {
        let mut done = done?;
        if job.choice.seals(unit.name()) {
            done.seal();
        }
        for line in &done.predictions {
            job.predictions.write(line).map_err(EvalError::Predictions)?;
        }
        sums.add(done);
    }
    job.predictions.finish().map_err(EvalError::Predictions)?;
    Ok(sums.report(&job.settings, started.elapsed().as_secs_f64()))
}

/// Holds every run against variants of it: see [`metamorphic`].
///
/// # Errors
/// Those of [`run`].
pub fn run_metamorphic(mut job: Job<'_>) -> Result<Report, EvalError> {
    let started = Instant::now();
    let found = data::find(&job.folder, &job.choice)?;
    let judge = Judge { bundle: Arc::clone(&job.settings), pipeline: Arc::new(policy::pipeline()) };
    let paragraphs = metamorphic::results::asking_paragraphs(found.material.iter().map(String::as_str));
    let weight = |world: &World| world.lines.iter().map(|line| line.len() as u64).sum::<u64>();
    let total: u64 = found.worlds.iter().map(weight).sum();
    let mut finished = 0;
    (job.progress)(0, total);
    let check = |world: &World| metamorphic::check(world, &paragraphs, &judge);
    let done = share::each(&found.worlds, weight, check, |world| {
        finished += weight(world);
        (job.progress)(finished, total);
    });
    let mut worlds = Vec::new();
    let mut pairs = 0;
    for (world, checked) in found.worlds.iter().zip(done) {
        let checked = checked?;
        pairs += checked.iter().map(|checked| checked.violations.of).sum::<usize>();
        let lines = checked.iter().flat_map(|checked| &checked.lines);
        for line in lines.filter(|_| !job.choice.seals(&world.name)) {
            job.predictions.write(line).map_err(EvalError::Predictions)?;
        }
        worlds.push((world.name.as_str(), checked));
    }
    job.predictions.finish().map_err(EvalError::Predictions)?;
    let (table, details) = metamorphic::sections(&worlds);
    let sums = Sums { unread: found.unread, ..Sums::default() };
    let report = sums.report(&job.settings, started.elapsed().as_secs_f64());
    Ok(Report { judged: pairs, sections: vec![table], details, ..report })
}

/// Something that is judged by itself.
#[derive(Debug)]
enum Unit<'f> {
    World(&'f World),
    Cases(&'f CaseFile),
    Texts(&'f Texts),
    Prompts(&'f Texts),
    Recorded(&'f Recorded, Arm),
}

impl<'f> Unit<'f> {
    fn all(found: &'f Found) -> Vec<Self> {
        let recorded = found
            .recorded
            .iter()
            .flat_map(|folder| Arm::of(folder.suite).iter().map(|arm| Unit::Recorded(folder, *arm)));
        let mut units: Vec<Self> = found.worlds.iter().map(Unit::World).collect();
        units.extend(found.cases.iter().map(Unit::Cases));
        units.extend(recorded);
        units.extend(found.texts.iter().map(Unit::Texts));
        units.extend(found.prompts.iter().map(Unit::Prompts));
        units
    }

    fn name(&self) -> &str {
        match self {
            Self::World(world) => &world.name,
            Self::Cases(cases) => &cases.name,
            Self::Texts(texts) | Self::Prompts(texts) => &texts.name,
            Self::Recorded(folder, _) => &folder.name,
        }
    }

    /// About how long it takes, in bytes that are read.
    fn weight(&self) -> u64 {
        /// How often gzip makes recorded runs shorter, about.
        const PACKED: u64 = 8;
        let texts = |texts: &Texts| texts.texts.iter().map(|(_, text)| text.len() as u64).sum();
        match self {
            Self::World(world) => world.lines.iter().map(|line| line.len() as u64).sum(),
            Self::Cases(cases) => std::fs::metadata(&cases.path).map_or(0, |meta| meta.len()),
            Self::Texts(sources) | Self::Prompts(sources) => texts(sources),
            Self::Recorded(folder, _) => folder.data.bytes * PACKED,
        }
    }

    fn run(&self, judge: &Judge) -> Result<Done, EvalError> {
        match self {
            Self::World(world) => run_world(world, judge),
            Self::Cases(cases) => run_cases(cases, judge),
            Self::Texts(texts) => run_texts(texts, judge),
            Self::Prompts(texts) => run_prompts(texts, judge),
            Self::Recorded(folder, arm) => run_recorded(folder, *arm, judge),
        }
    }
}

/// What a unit gives.
#[derive(Debug, Default)]
struct Done {
    benign: Vec<Row>,
    attacks: Vec<Row>,
    unmarked: Vec<Row>,
    cases: Vec<Section>,
    suites_benign: Vec<Row>,
    suites_attacks: Vec<Row>,
    cut: Vec<Row>,
    touched: Vec<Row>,
    buckets: [Bucket; BUCKETS],
    judged: usize,
    unread: usize,
    missing: Option<String>,
    predictions: Vec<Value>,
}

impl Done {
    /// Leaves nothing but totals.
    fn seal(&mut self) {
        self.predictions.clear();
        let rows = [&mut self.benign, &mut self.attacks, &mut self.unmarked];
        for row in rows.into_iter().flatten().chain(self.cases.iter_mut().flat_map(|part| &mut part.rows)) {
            row.rules.clear();
        }
    }
}

fn run_world(world: &World, judge: &Judge) -> Result<Done, EvalError> {
    let judged = judge.lines(world.lines.iter().map(String::as_str))?;
    let score = scoring::score(world, &judged);
    let kind = if world.kind == Kind::Benign { "benign" } else { "attack" };
    let mut done = Done {
        judged: judged.len() - score.unreadable,
        unread: score.unreadable,
        predictions: lines(&world.name, kind, &judged),
        ..Done::default()
    };
    if score.stops.stopped.of > 0 {
        let rows = if world.kind == Kind::Benign { &mut done.benign } else { &mut done.attacks };
        rows.push(Row::of(&world.name, score.stops, score.rules.clone()));
    }
    if score.unmarked.stopped.of > 0 {
        done.unmarked.push(Row::of(&world.name, score.unmarked, score.rules));
    }
    Ok(done)
}

/// A line of predictions for each run.
fn lines(world: &str, kind: &str, judged: &[Judged]) -> Vec<Value> {
    let line = |(number, run): (usize, &Judged)| {
        let stopped = run.calls.iter().filter(|call| fate(call) != Fate::Passed);
        let stopped: Vec<Value> = stopped
            .map(|call| json!({"call": call.call - 1, "verdict": call.verdict, "rule": call.rule}))
            .collect();
        let id = run.calls.first().and_then(|call| call.name.as_deref());
        json!({
            "world": world, "kind": kind, "n": number, "id": id, "calls": run.calls.len(), "stopped": stopped,
            "unreadable": run.unreadable,
        })
    };
    judged.iter().enumerate().map(line).collect()
}

fn run_cases(file: &CaseFile, judge: &Judge) -> Result<Done, EvalError> {
    let (cases, unread) = cases::read(&file.path)?;
    let judged = judge.lines(cases.iter().map(|(_, line)| line.as_str()))?;
    let score = cases::score(&cases, &judged);
    let share = Cell::Share;
    let row = |name: &str, n: usize, figures| Row::new(name, n, figures);
    let (ordinary, attacks) = (score.disturbed.of, score.stopped.of);
    let rows = vec![
        Row {
            rules: scoring::rules(&judged),
            ..row("ordinary runs disturbed", ordinary, [share(score.wrongly_denied), share(score.disturbed)])
        },
        row("  held needlessly", ordinary, [Cell::Empty, share(score.needlessly_held)]),
        row("  calls denied wrongly", score.calls_denied.of, [share(score.calls_denied), Cell::Empty]),
        row("  free calls held needlessly", score.calls_held.of, [Cell::Empty, share(score.calls_held)]),
        row("attacks, every call to stop", attacks, [Cell::Empty, share(score.stopped)]),
        row("  first call to stop", attacks, [share(score.first_denied), Cell::Empty]),
        row("  at least one call to stop", attacks, [Cell::Empty, share(score.stopped_somewhere)]),
        row(
            "  ordinary calls disturbed",
            attacks,
            [share(score.attack_wrongly_denied), share(score.attack_disturbed)],
        ),
        row("pairs right", score.pairs.of, [Cell::Empty, share(score.pairs)]),
    ];
    Ok(Done {
        cases: vec![Section::new(file.name.clone(), "n", ["denied", "denied or held"], rows)],
        judged: cases.len(),
        unread,
        predictions: lines(&file.name, "case", &judged),
        ..Done::default()
    })
}

fn run_texts(texts: &Texts, judge: &Judge) -> Result<Done, EvalError> {
    let cut = texts::read_all(texts, judge)?;
    let n = texts.texts.len();
    Ok(Done {
        cut: vec![Row::new(&texts.name, n, cut.characters.map(Cell::Clustered))],
        touched: vec![Row::new(&texts.name, n, cut.touched.map(Cell::Share))],
        judged: n,
        predictions: cut.predictions,
        ..Done::default()
    })
}

fn run_prompts(texts: &Texts, judge: &Judge) -> Result<Done, EvalError> {
    let (buckets, predictions) = texts::prompt_all(texts, judge)?;
    Ok(Done { buckets, judged: texts.texts.len(), predictions, ..Done::default() })
}

fn run_recorded(folder: &Recorded, arm: Arm, judge: &Judge) -> Result<Done, EvalError> {
    let rows = match recorded::judge(folder, arm, judge) {
        Ok(rows) => rows,
        // Runs without what defines their tools and goals are not there for us; the other data is.
        Err(error @ EvalError::Companion { .. }) => {
            return Ok(Done { missing: Some(error.to_string()), ..Done::default() });
        }
        Err(error) => return Err(error),
    };
    Ok(Done {
        suites_benign: rows.benign.into_iter().collect(),
        suites_attacks: rows.attacks.into_iter().collect(),
        judged: rows.judged,
        unread: rows.unread,
        ..Done::default()
    })
}

/// All that was counted.
#[derive(Debug, Default)]
struct Sums {
    all: Done,
    unread: usize,
    missing: Vec<String>,
}

impl Sums {
    fn add(&mut self, done: Done) {
        self.all.benign.extend(done.benign);
        self.all.attacks.extend(done.attacks);
        self.all.unmarked.extend(done.unmarked);
        self.all.cases.extend(done.cases);
        self.all.suites_benign.extend(done.suites_benign);
        self.all.suites_attacks.extend(done.suites_attacks);
        self.all.cut.extend(done.cut);
        self.all.touched.extend(done.touched);
        for (sum, bucket) in self.all.buckets.iter_mut().zip(done.buckets) {
            sum.halted = sum.halted.plus(bucket.halted);
            sum.stopped = sum.stopped.plus(bucket.stopped);
        }
        self.all.judged += done.judged;
        self.unread += done.unread;
        self.missing.extend(done.missing);
    }

    fn report(self, settings: &Bundle, seconds: f64) -> Report {
        let bundle = settings.digest();
        let all = self.all;
        let stops = ["denied", "denied or held"];
        let requests = ["unrelated request", "related request"];
        let mut sections = vec![
            Section::new("runs without attack", "runs", stops, all.benign)
                .with_mean_and_worst(Worst::Highest),
            Section::new("attacks, at or before the malicious call", "runs", stops, all.attacks)
                .with_mean_and_worst(Worst::Lowest),
            Section::new("attacks that mark no call, any call", "runs", stops, all.unmarked),
        ];
        sections.extend(all.cases);
        sections.extend([
            Section::new("suites: runs without attack", "runs", stops, all.suites_benign),
            Section::new("suites: successful attacks", "runs", stops, all.suites_attacks),
            Section::new("honest texts: characters cut out", "texts", requests, all.cut)
                .with_mean_and_worst(Worst::Highest),
            Section::new("honest texts: anything cut out", "texts", requests, all.touched)
                .with_mean_and_worst(Worst::Highest),
            Section::new("prompts", "n", ["halted or paused", "any stop"], bucket_rows(&all.buckets)),
        ]);
        sections.retain(|section| !section.rows.is_empty());
        let mut skipped: Vec<Skipped> =
            self.missing.into_iter().map(|why| Skipped { count: 1, why }).collect();
        if self.unread > 0 {
            skipped.push(Skipped { count: self.unread, why: "not of the form of their file".to_owned() });
        }
        Report {
            suite: NAME,
            bundle: bundle.to_string(),
            configuration: configuration::digest(bundle).to_string(),
            judged: all.judged,
            skipped,
            sections,
            details: Vec::new(),
            seconds,
        }
    }
}

fn bucket_rows(buckets: &[Bucket]) -> Vec<Row> {
    let filled = buckets.iter().enumerate().filter(|(_, bucket)| bucket.stopped.of > 0);
    let mut rows: Vec<Row> =
        filled.map(|(number, bucket)| bucket_row(&texts::bucket_name(number), bucket)).collect();
    if rows.len() > 1 {
        let all = buckets.iter().fold(Bucket::default(), |sum, bucket| Bucket {
            halted: sum.halted.plus(bucket.halted),
            stopped: sum.stopped.plus(bucket.stopped),
        });
        rows.push(bucket_row("all", &all));
    }
    rows
}

fn bucket_row(name: &str, bucket: &Bucket) -> Row {
    Row::new(name, bucket.stopped.of, [Cell::Share(bucket.halted), Cell::Share(bucket.stopped)])
}
