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
mod sums;
pub mod table;
pub mod texts;
mod unit;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::bundle::Bundle;
use portcullis_session::policy;

use crate::predictions::Predictions;
use crate::suite::EvalError;
use data::World;
use names::Choice;
use replay::Judge;
use sums::Sums;
use table::Report;
use unit::Unit;

/// Name of the suite.
pub const NAME: &str = "worlds";
/// How the names of sections begin whose rows are of other suites.
pub const OF_SUITES: &str = "suites: ";

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
    let mut sums = Sums::new(found.unread);
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
    let sums = Sums::new(found.unread);
    let report = sums.report(&job.settings, started.elapsed().as_secs_f64());
    Ok(Report { judged: pairs, sections: vec![table], details, ..report })
}
