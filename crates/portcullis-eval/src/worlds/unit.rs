//! What is judged by itself: a world, a file of cases, a folder of a suite under one arm, texts of one source.

use serde_json::{Value, json};

use super::data::{CaseFile, Found, Kind, Recorded, Texts, World};
use super::recorded::{self, Arm};
use super::replay::{Judge, Judged, fate};
use super::table::{Cell, Row, Section};
use super::texts::{self, BUCKETS, Bucket};
use super::{cases, scoring};
use crate::suite::EvalError;
use crate::trajectory::play::Fate;

/// Something that is judged by itself.
#[derive(Debug)]
pub(super) enum Unit<'f> {
    World(&'f World),
    Cases(&'f CaseFile),
    Texts(&'f Texts),
    Prompts(&'f Texts),
    Recorded(&'f Recorded, Arm),
}

impl<'f> Unit<'f> {
    pub(super) fn all(found: &'f Found) -> Vec<Self> {
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

    pub(super) fn name(&self) -> &str {
        match self {
            Self::World(world) => &world.name,
            Self::Cases(cases) => &cases.name,
            Self::Texts(texts) | Self::Prompts(texts) => &texts.name,
            Self::Recorded(folder, _) => &folder.name,
        }
    }

    /// About how long it takes, in bytes that are read.
    pub(super) fn weight(&self) -> u64 {
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

    pub(super) fn run(&self, judge: &Judge) -> Result<Done, EvalError> {
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
pub(super) struct Done {
    pub(super) benign: Vec<Row>,
    pub(super) attacks: Vec<Row>,
    pub(super) unmarked: Vec<Row>,
    pub(super) cases: Vec<Section>,
    pub(super) suites_benign: Vec<Row>,
    pub(super) suites_attacks: Vec<Row>,
    pub(super) cut: Vec<Row>,
    pub(super) touched: Vec<Row>,
    pub(super) buckets: [Bucket; BUCKETS],
    pub(super) judged: usize,
    pub(super) unread: usize,
    pub(super) missing: Option<String>,
    pub(super) predictions: Vec<Value>,
}

impl Done {
    /// Leaves nothing but totals.
    pub(super) fn seal(&mut self) {
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
