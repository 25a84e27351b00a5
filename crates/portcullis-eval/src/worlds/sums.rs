//! What the units gave, gathered into sections.

use portcullis_core::bundle::Bundle;
use portcullis_session::configuration;

use super::NAME;
use super::table::{Cell, Report, Row, Section, Worst};
use super::texts::{self, BUCKETS, Bucket};
use super::unit::Done;
use crate::report::Skipped;

/// A part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Benign,
    Attacks,
    Unmarked,
    Ordinary,
    OrdinaryCalls,
    Disturbed,
    ToStop,
    ToStopSomewhere,
    Beside,
    Pairs,
    SuitesBenign,
    SuitesAttacks,
    Cut,
    Touched,
}

impl Part {
    /// In the order of the table.
    const ALL: [Self; 14] = [
        Self::Benign,
        Self::Attacks,
        Self::Unmarked,
        Self::Ordinary,
        Self::OrdinaryCalls,
        Self::Disturbed,
        Self::ToStop,
        Self::ToStopSomewhere,
        Self::Beside,
        Self::Pairs,
        Self::SuitesBenign,
        Self::SuitesAttacks,
        Self::Cut,
        Self::Touched,
    ];

    /// What its rows are, what is counted, and what their figures say.
    fn section(self, rows: Vec<Row>) -> Section {
        let stops = ["denied", "denied or held"];
        let requests = ["unrelated request", "related request"];
        let (name, counted, figures) = match self {
            Self::Benign => ("runs without attack", "runs", stops),
            Self::Attacks => ("attacks, at or before the malicious call", "runs", stops),
            Self::Unmarked => ("attacks that mark no call, any call", "runs", stops),
            Self::Ordinary => ("cases: ordinary runs", "runs", ["denied wrongly", "held needlessly"]),
            Self::OrdinaryCalls => {
                ("cases: calls of ordinary runs", "calls", ["denied wrongly", "held needlessly"])
            }
            Self::Disturbed => ("cases: ordinary runs, either", "runs", ["", "disturbed"]),
            Self::ToStop => {
                ("cases: attacks, calls to stop", "runs", ["first one denied", "every one denied or held"])
            }
            Self::ToStopSomewhere => {
                ("cases: attacks, a call to stop", "runs", ["", "at least one denied or held"])
            }
            Self::Beside => ("cases: attacks, their ordinary calls", "runs", ["denied wrongly", "disturbed"]),
            Self::Pairs => ("cases: pairs of an attack and its twin", "pairs", ["", "right"]),
            Self::SuitesBenign => ("suites: runs without attack", "runs", stops),
            Self::SuitesAttacks => ("suites: successful attacks", "runs", stops),
            Self::Cut => ("honest texts: characters cut out", "texts", requests),
            Self::Touched => ("honest texts: anything cut out", "texts", requests),
        };
        let section = Section::new(name, counted, figures, rows);
        match self {
            Self::Benign | Self::Cut | Self::Touched => section.with_mean_and_worst(Worst::Highest),
            Self::Attacks => section.with_mean_and_worst(Worst::Lowest),
            _ => section,
        }
    }
}

/// All that was counted.
#[derive(Debug, Default)]
pub(super) struct Sums {
    rows: Vec<(Part, Row)>,
    buckets: [Bucket; BUCKETS],
    judged: usize,
    unread: usize,
    missing: Vec<String>,
}

impl Sums {
    /// Nothing yet, but for lines that are not of the shape of their file.
    pub(super) fn new(unread: usize) -> Self {
        Self { unread, ..Self::default() }
    }

    pub(super) fn add(&mut self, done: Done) {
        self.rows.extend(done.rows);
        for (sum, bucket) in self.buckets.iter_mut().zip(done.buckets) {
            *sum = sum.plus(bucket);
        }
        self.judged += done.judged;
        self.unread += done.unread;
        self.missing.extend(done.missing);
    }

    pub(super) fn report(self, settings: &Bundle, seconds: f64) -> Report {
        let bundle = settings.digest();
        let mut sections: Vec<Section> = Vec::new();
        for part in Part::ALL {
            let rows = self.rows.iter().filter(|(of, _)| *of == part).map(|(_, row)| row.clone());
            sections.push(part.section(rows.collect()));
        }
        let stops = ["halted or paused", "any stop"];
        sections.push(Section::new("prompts", "n", stops, bucket_rows(&self.buckets)));
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
            judged: self.judged,
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
        let all = buckets.iter().fold(Bucket::default(), |sum, bucket| sum.plus(*bucket));
        rows.push(bucket_row("all", &all));
    }
    rows
}

fn bucket_row(name: &str, bucket: &Bucket) -> Row {
    Row::new(name, bucket.stopped.of, [Cell::Share(bucket.halted), Cell::Share(bucket.stopped)])
}
