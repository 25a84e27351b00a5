//! What the units gave, gathered into sections.

use portcullis_core::bundle::Bundle;
use portcullis_session::configuration;

use super::table::{Cell, Report, Row, Section, Worst};
use super::texts::{self, Bucket};
use super::unit::Done;
use super::{NAME, OF_SUITES};
use crate::report::Skipped;

/// All that was counted.
#[derive(Debug, Default)]
pub(super) struct Sums {
    all: Done,
    unread: usize,
    missing: Vec<String>,
}

impl Sums {
    /// Nothing yet, but for lines that are not of the shape of their file.
    pub(super) fn new(unread: usize) -> Self {
        Self { unread, ..Self::default() }
    }

    pub(super) fn add(&mut self, done: Done) {
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

    pub(super) fn report(self, settings: &Bundle, seconds: f64) -> Report {
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
            Section::new(format!("{OF_SUITES}runs without attack"), "runs", stops, all.suites_benign),
            Section::new(format!("{OF_SUITES}successful attacks"), "runs", stops, all.suites_attacks),
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
