//! Which records belong to which suite, and what turns them into replays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::asb::Attacks;
use super::definitions::Definitions;
use super::injecagent::Cases;
use super::splice::{AGENTS_MAX, Place, splice, unrecorded, unseen};
use super::suites::{Job, Name};
use super::tools::ToolSpec;
use super::{Kind, Replay, asb, dojo, injecagent, rehearsed, tau};
use crate::suite::EvalError;

/// Id of the goals that AgentDojo's recorded attacks have.
const RECORDED_GOAL: &str = "injection_task_3";

/// Turns the records of a suite into replays. What defines the tools of a set is read when its first record comes.
#[derive(Debug)]
pub struct Adapter {
    suite: Name,
    root: PathBuf,
    named: Option<PathBuf>,
    templates: bool,
    splice: Option<Place>,
    /// Agents whose runs goals are put into.
    agents: Vec<String>,
    /// Suites of which a run was recorded.
    recorded: BTreeSet<String>,
    file: PathBuf,
    definitions: Option<Definitions>,
    cases: Option<Cases>,
    attacks: Option<Attacks>,
    tau_tools: Option<Arc<Vec<ToolSpec>>>,
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Exported,
    RunFile,
    Output,
    Asb,
    Tau(tau::Set),
}

impl Form {
    fn of(record: &Value) -> Option<Self> {
        if dojo::is_exported(record) {
            return Some(Self::Exported);
        }
        if dojo::is_run_file(record) {
            return Some(Self::RunFile);
        }
        if injecagent::is_output(record) {
            return Some(Self::Output);
        }
        if asb::is_run(record) {
            return Some(Self::Asb);
        }
        tau::set_of(record).map(Self::Tau)
    }
}

impl Adapter {
    /// For the suite of a job.
    ///
    /// # Errors
    /// An arm that the suite does not have.
    pub fn new(suite: Name, job: &Job<'_>) -> Result<Self, EvalError> {
        if job.splice.is_some() && !matches!(suite, Name::AgentDojo | Name::AgentDyn) {
            return Err(EvalError::Arm { arm: "--splice", suite: suite.as_str() });
        }
        if job.without_template && !matches!(suite, Name::AgentDojo | Name::AgentDyn) {
            return Err(EvalError::Arm { arm: "--without-template", suite: suite.as_str() });
        }
        Ok(Self {
            suite,
            root: job.data.root.clone(),
            named: job.definitions.clone(),
            templates: !job.without_template,
            splice: job.splice,
            agents: Vec::new(),
            recorded: BTreeSet::new(),
            file: PathBuf::new(),
            definitions: None,
            cases: None,
            attacks: None,
            tau_tools: None,
        })
    }

    /// The records of another file follow.
    pub fn begin(&mut self, file: &Path) {
        self.file = file.to_owned();
        self.tau_tools = None;
    }

    /// The runs of a record: none where it does not belong to the suite, an error inside where it cannot be read.
    ///
    /// # Errors
    /// What defines the set cannot be read.
    pub fn read(&mut self, record: Value) -> Result<Result<Vec<Replay>, String>, EvalError> {
        let Some(form) = Form::of(&record) else { return Ok(Ok(Vec::new())) };
        let wanted = match self.suite {
            Name::AgentDojo => form == Form::Exported,
            Name::AgentDyn => form == Form::RunFile,
            Name::InjecAgent => form == Form::Output,
            Name::Asb => form == Form::Asb,
            Name::Benign => form != Form::Output,
        };
        if !wanted {
            return Ok(Ok(Vec::new()));
        }
        let templates = self.templates;
        let replay = match form {
            Form::Exported => dojo::exported(record, self.definitions()?, templates),
            Form::RunFile => dojo::run_file(record, self.definitions()?, templates),
            Form::Output => self.cases()?.read(record),
            Form::Asb => {
                let clean = asb::is_clean(&self.file);
                self.attacks()?.read(record, clean)
            }
            Form::Tau(set) => Ok(tau::read(&record, set, &self.tau_tools()?)),
        };
        let replay = match replay {
            Ok(replay) => replay,
            Err(why) => return Ok(Err(why)),
        };
        let benign = replay.truth.kind == Kind::Benign;
        Ok(Ok(match self.splice {
            Some(_) if !benign => Vec::new(),
            Some(place) => self.spliced(&replay, place)?,
            None if self.suite == Name::Benign && !benign => Vec::new(),
            None => vec![replay],
        }))
    }

    /// The run with each unseen goal of its suite put into it.
    fn spliced(&mut self, run: &Replay, place: Place) -> Result<Vec<Replay>, EvalError> {
        if !self.agents.contains(&run.agent) {
            if self.agents.len() >= AGENTS_MAX {
                return Ok(Vec::new());
            }
            self.agents.push(run.agent.clone());
        }
        let suite = run.suite.rsplit('/').next().unwrap_or_default();
        if self.suite == Name::AgentDyn {
            self.recorded.insert(suite.to_owned());
            let goals = unrecorded(self.definitions()?, suite, true);
            return Ok(goals.iter().filter_map(|(name, goal)| splice(run, name, goal, place)).collect());
        }
        let goals = unseen(self.definitions()?, suite, &[RECORDED_GOAL]);
        Ok(goals.iter().filter_map(|(name, goal)| splice(run, name, goal, place)).collect())
    }

    /// What follows when all records were read: goals put into runs of suites that nobody recorded.
    ///
    /// # Errors
    /// What defines the set cannot be read.
    pub fn rest(&mut self) -> Result<Vec<Replay>, EvalError> {
        let (Name::AgentDyn, Some(place)) = (self.suite, self.splice) else { return Ok(Vec::new()) };
        let recorded = std::mem::take(&mut self.recorded);
        let definitions = self.definitions()?;
        let mut replays = Vec::new();
        for (name, suite) in &definitions.agentdyn {
            if recorded.contains(name) {
                continue;
            }
            let goals = unrecorded(definitions, name, false);
            for run in rehearsed::runs(name, suite) {
                replays.extend(goals.iter().filter_map(|(goal, text)| splice(&run, goal, text, place)));
            }
        }
        Ok(replays)
    }

    fn definitions(&mut self) -> Result<&Definitions, EvalError> {
        match &mut self.definitions {
            Some(known) => Ok(known),
            none => Ok(none.insert(Definitions::find(&self.root, self.named.as_deref())?)),
        }
    }

    fn cases(&mut self) -> Result<&Cases, EvalError> {
        match &mut self.cases {
            Some(known) => Ok(known),
            none => Ok(none.insert(Cases::find(self.file.parent().unwrap_or(&self.root))?)),
        }
    }

    fn attacks(&mut self) -> Result<&Attacks, EvalError> {
        match &mut self.attacks {
            Some(known) => Ok(known),
            none => Ok(none.insert(Attacks::find(self.file.parent().unwrap_or(&self.root))?)),
        }
    }

    fn tau_tools(&mut self) -> Result<Arc<Vec<ToolSpec>>, EvalError> {
        match &self.tau_tools {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::clone(self.tau_tools.insert(tau::tools(&self.file)?))),
        }
    }
}
