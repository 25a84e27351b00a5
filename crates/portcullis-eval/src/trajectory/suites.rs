//! The suites of recorded runs: which records belong to which, and how they are run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;

use super::Replay;
use super::adapter::Adapter;
use super::outline::{Outline, PublishedAttack};
use super::play::{Line, play};
use super::splice::Place;
use super::switches::Switches;
use super::tally::Tally;
use super::tools::Registries;
use crate::data::Data;
use crate::predictions::Predictions;
use crate::report::Skipped;
use crate::stream;
use crate::suite::EvalError;

/// A suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Published runs of AgentDojo: with one attack on every task, and without.
    AgentDojo,
    /// AgentDyn: newer attacks, and tasks in which third parties legitimately ask for things.
    AgentDyn,
    /// InjecAgent: a result that says what it wants, without a marker.
    InjecAgent,
    /// Agent Security Bench: results that tell the agent to use one more tool.
    Asb,
    /// Runs without attack, of all these and of tau-bench and tau2.
    Benign,
}

impl Name {
    /// As it stands on the command line and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentDojo => "agentdojo",
            Self::AgentDyn => "agentdyn",
            Self::InjecAgent => "injecagent",
            Self::Asb => "asb",
            Self::Benign => "benign",
        }
    }
}

/// Means over the defended runs that come with AgentDyn (arXiv 2602.03117); ten undefended agents.
const AGENTDYN_PUBLISHED: &[PublishedAttack] = &[
    published("no defence", 19.8, 37.7),
    published("repeat_user_prompt", 18.6, 41.9),
    published("spotlighting", 20.0, 40.0),
    published("PromptGuard-2", 17.8, 41.7),
    published("Meta-SecAlign", 7.3, 30.0),
    published("Progent", 4.0, 11.2),
    published("DRIFT", 3.0, 20.4),
    published("tool_filter", 1.9, 3.3),
    published("PIGuard", 1.4, 10.2),
    published("transformers_pi_detector", 0.7, 1.2),
];

const fn published(name: &'static str, attack_success: f64, benign_utility: f64) -> PublishedAttack {
    PublishedAttack { name, attack_success, benign_utility }
}

/// One evaluation of recorded runs.
pub struct Job<'a> {
    /// The records.
    pub data: Data,
    /// Where tools and goals are defined, where that is not beside the data.
    pub definitions: Option<PathBuf>,
    /// The settings under which every environment is judged.
    pub settings: Arc<Bundle>,
    /// How the guards are changed.
    pub switches: Switches,
    /// Leave of what was injected the goal alone.
    pub without_template: bool,
    /// Put unseen goals into runs without attack, instead of judging what was recorded.
    pub splice: Option<Place>,
    /// Read no more records than that.
    pub limit: Option<usize>,
    /// Where predictions go.
    pub predictions: Predictions,
    /// Told how many files were dealt with.
    pub progress: &'a mut dyn FnMut(u64),
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("data", &self.data).field("settings", &self.settings.digest()).finish()
    }
}

/// Judges all runs of a suite.
///
/// # Errors
/// The data or what defines it cannot be read, predictions cannot be written, or the settings cannot judge it.
pub fn run(suite: Name, mut job: Job<'_>) -> Result<Outline, EvalError> {
    let mut adapter = Adapter::new(suite, &job)?;
    let mut judge = Judge {
        pipeline: job.switches.pipeline(),
        registries: Registries::new(Arc::clone(&job.settings)),
        tally: Tally::default(),
        unread: 0,
        judged: 0,
        n: 0,
    };
    let mut done = 0;
    for path in &job.data.files {
        adapter.begin(path);
        let more = stream::records(path, |_, record| {
            match record {
                Ok(record) => match adapter.read(record)? {
                    Ok(replays) => {
                        for replay in &replays {
                            judge.run(replay, &mut job.predictions)?;
                        }
                    }
                    Err(_) => judge.unread(&mut job.predictions)?,
                },
                Err(_) => judge.unread(&mut job.predictions)?,
            }
            Ok::<bool, EvalError>(job.limit.is_none_or(|limit| judge.n < limit))
        })?;
        done += std::fs::metadata(path).map_or(0, |meta| meta.len());
        (job.progress)(done);
        if !more {
            break;
        }
    }
    for replay in adapter.rest()? {
        judge.run(&replay, &mut job.predictions)?;
    }
    job.predictions.finish().map_err(EvalError::Predictions)?;
    let mut outline = Outline::of(suite.as_str(), job.settings.digest(), judge.tally);
    outline.judged = judge.judged;
    if judge.unread > 0 {
        outline.skipped.push(Skipped { count: judge.unread, why: "not a record of this set".to_owned() });
    }
    if job.without_template {
        outline.arms.push("template removed from results".to_owned());
    }
    if let Some(place) = job.splice {
        outline.arms.push(format!("unseen goals put into benign runs, {}", place.as_str()));
    }
    outline.arms.extend(job.switches.arms());
    if suite == Name::AgentDyn {
        outline.published = AGENTDYN_PUBLISHED;
    }
    if outline.all.attacks > 0 {
        outline.notes.push(format!(
            "stopped: denied or held at or before the malicious call; {} successful attacks have no such call by the \
             oracle and are not among them",
            outline.all.successes_without_call
        ));
    }
    Ok(outline)
}

struct Judge {
    pipeline: Arc<portcullis_session::policy::Pipeline>,
    registries: Registries,
    tally: Tally,
    unread: usize,
    judged: usize,
    n: usize,
}

impl Judge {
    fn run(&mut self, replay: &Replay, predictions: &mut Predictions) -> Result<(), EvalError> {
        let bundle = self.registries.bundle(&replay.suite, &replay.tools);
        let trial = play(replay, &bundle, &self.pipeline)?;
        self.tally.run(replay, &trial);
        predictions.write(&Line::of(self.n, replay, &trial)).map_err(EvalError::Predictions)?;
        self.n += 1;
        self.judged += 1;
        Ok(())
    }

    fn unread(&mut self, predictions: &mut Predictions) -> Result<(), EvalError> {
        predictions.write(&Line::unread(self.n)).map_err(EvalError::Predictions)?;
        self.n += 1;
        self.unread += 1;
        Ok(())
    }
}
