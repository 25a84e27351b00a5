//! What is judged by itself: a world, a file of cases, a folder of a suite under one arm, texts of one source.

use serde_json::{Value, json};

use super::cases::Case;
use super::data::{CaseFile, Found, Kind, Recorded, Texts, World};
use super::recorded::{self, Arm};
use super::replay::{Judge, Judged, fate};
use super::sums::Part;
use super::table::{Cell, Row};
use super::texts::{self, BUCKETS, Bucket};
use super::{cases, scoring};
use crate::interval::Proportion;
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
    pub(super) rows: Vec<(Part, Row)>,
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
        for (_, row) in &mut self.rows {
            row.rules.clear();
        }
    }
}

fn run_world(world: &World, judge: &Judge) -> Result<Done, EvalError> {
    let judged = judge.lines(world.lines.iter().map(String::as_str))?;
    let score = scoring::score(world, &judged);
    let (kind, part) = match world.kind {
        Kind::Benign => ("benign", Part::Benign),
        Kind::Attack => ("attack", Part::Attacks),
    };
    let stops = [(part, score.stops), (Part::Unmarked, score.unmarked)];
    let rows = stops
        .into_iter()
        .filter(|(_, stops)| stops.stopped.of > 0)
        .map(|(part, stops)| (part, Row::of(&world.name, stops, score.rules.clone())));
    Ok(Done {
        rows: rows.collect(),
        judged: judged.len() - score.unreadable,
        unread: score.unreadable,
        predictions: lines(&world.name, kind, &judged),
        ..Done::default()
    })
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
    let none = Proportion::default();
    let figures = [
        (Part::Ordinary, [score.wrongly_denied, score.needlessly_held]),
        (Part::OrdinaryCalls, [score.calls_denied, score.calls_held]),
        (Part::Disturbed, [none, score.disturbed]),
        (Part::ToStop, [score.first_denied, score.stopped]),
        (Part::ToStopSomewhere, [none, score.stopped_somewhere]),
        (Part::Beside, [score.attack_wrongly_denied, score.attack_disturbed]),
        (Part::Pairs, [none, score.pairs]),
    ];
    let row = |(part, shares): (Part, [Proportion; 2])| {
        let n = shares.iter().map(|share| share.of).max().unwrap_or_default();
        let mut row = Row::new(&file.name, n, shares.map(Cell::Share));
        row.rules = match part {
            Part::Ordinary => scoring::rules(of_class(&cases, &judged, Kind::Benign)),
            Part::ToStop => scoring::rules(of_class(&cases, &judged, Kind::Attack)),
            _ => Vec::new(),
        };
        (part, row)
    };
    Ok(Done {
        rows: figures.into_iter().map(row).filter(|(_, row)| row.n > 0).collect(),
        judged: cases.len(),
        unread,
        predictions: lines(&file.name, "case", &judged),
        ..Done::default()
    })
}

/// What became of the cases of a class.
fn of_class<'j>(
    cases: &'j [(Case, String)],
    judged: &'j [Judged],
    class: Kind,
) -> impl Iterator<Item = &'j Judged> {
    let pairs = cases.iter().zip(judged);
    pairs.filter(move |((case, _), _)| case.class == class).map(|(_, judged)| judged)
}

fn run_texts(texts: &Texts, judge: &Judge) -> Result<Done, EvalError> {
    let cut = texts::read_all(texts, judge)?;
    let n = texts.texts.len();
    Ok(Done {
        rows: vec![
            (Part::Cut, Row::new(&texts.name, n, cut.characters.map(Cell::Clustered))),
            (Part::Touched, Row::new(&texts.name, n, cut.touched.map(Cell::Share))),
        ],
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
    let parts = [(Part::SuitesBenign, rows.benign), (Part::SuitesAttacks, rows.attacks)];
    Ok(Done {
        rows: parts.into_iter().filter_map(|(part, row)| Some((part, row?))).collect(),
        judged: rows.judged,
        unread: rows.unread,
        ..Done::default()
    })
}
