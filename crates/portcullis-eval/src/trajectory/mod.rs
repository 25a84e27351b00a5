//! Recorded runs of agents, replayed through the engine that judges live runs.
//!
//! An adapter turns a record of a data set into a [`Replay`]: the tools the agent had, what it was told, what it called
//! and what came back. [`play`](play::play) lets the pipeline judge it **open loop**: nobody reacts to a verdict, so
//! the replay ends with the first denial, after which nothing of the record would have happened. A call that is held
//! counts as held, is then granted as if a person had looked, and the run goes on, unless it was the attacker's.
//!
//! | module | has |
//! |---|---|
//! | [`tools`] | the registry of a suite, drafted from its schemas as `portcullis init` drafts it |
//! | [`chat`] | messages of the common chat formats |
//! | [`literal`] | values written as Python or JSON |
//! | [`payload`] | where injected text stands in a tool's result, and the template around the goal |
//! | [`definitions`] | goals and ground truth of the AgentDojo family, and the oracle of the attacker's call |
//! | [`adapter`] | which records belong to which suite |
//! | [`dojo`], [`injecagent`], [`asb`], [`tau`] | the adapters |
//! | [`splice`] | goals that nobody recorded, set into runs without attack |
//! | [`rehearsed`] | runs of suites that nobody recorded, made of their definitions |
//! | [`enact`] | calls for goals whose definitions have none |
//! | [`play`] | the replay |
//! | [`tally`], [`ratio`] | the figures, with intervals by bootstrap over tasks |
//! | [`outline`] | the report |
//! | [`switches`] | arms that change the guards |
//! | [`suites`] | the evaluation of a suite |
//!
//! Labels are for scoring only: nothing of [`Part`] or [`Truth`] reaches the pipeline.

pub mod adapter;
pub mod asb;
pub mod chat;
pub mod definitions;
pub mod dojo;
pub mod enact;
pub mod injecagent;
pub mod literal;
pub mod outline;
pub mod payload;
pub mod play;
pub mod ratio;
pub mod rehearsed;
pub mod splice;
pub mod suites;
pub mod switches;
pub mod tally;
pub mod tau;
pub mod tools;

use std::ops::Range;
use std::sync::Arc;

use portcullis_core::label::Label;
use serde_json::Value;

use tools::ToolSpec;

/// A recorded run, ready to be judged.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Data set and environment: `agentdojo/banking`.
    pub suite: String,
    /// The agent that was recorded.
    pub agent: String,
    /// The task. Runs of one task are not independent, whatever agent ran it.
    pub cluster: String,
    /// The tools the agent had.
    pub tools: Arc<Vec<ToolSpec>>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// What is true of the run.
    pub truth: Truth,
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Somebody told the agent something.
    Input {
        /// Who.
        label: Label,
        /// What.
        text: String,
    },
    /// The agent called a tool.
    Call(Call),
    /// The agent replied.
    Output(String),
}

/// A call and what came back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What the agent said it was about to do.
    pub planned: Option<String>,
    /// It was made in one breath with the call before it: the agent had not seen that one's result.
    pub together: bool,
    /// What came back; none where the record ends before.
    pub result: Option<Observed>,
    /// Whose call it is.
    pub part: Part,
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The text, as the agent was shown it.
    pub text: String,
    /// The tool failed.
    pub error: bool,
    /// Where injected text stands in it, in bytes, ascending, without overlap.
    pub payload: Vec<Range<usize>>,
}

/// Whose call it is, by the oracle of the data set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The user's task, as far as is known.
    #[default]
    Innocent,
    /// A step that the attacker's goal needs first, such as looking something up.
    Preparation,
    /// It carries the attacker's goal out.
    Malicious,
}

/// What is true of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// What kind of run it is.
    pub kind: Kind,
    /// Whether the user's task was completed, where that is known.
    pub utility: Option<bool>,
}

/// Kinds of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nobody attacks.
    Benign,
    /// Somebody attacks.
    Attack {
        /// And succeeds, by the data set's own check.
        succeeded: bool,
    },
    /// The goal of an attack as the user's own request: legitimate, and reported apart.
    OwnGoal,
}

impl Replay {
    /// The calls in order: the numbers that predictions use.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.steps.iter().filter_map(|step| if let Step::Call(call) = step { Some(call) } else { None })
    }

    /// Number of the first call that carries the attacker's goal out.
    pub fn malicious(&self) -> Option<usize> {
        self.calls().position(|call| call.part == Part::Malicious)
    }

    /// Number of the first call whose result holds injected text.
    pub fn exposed(&self) -> Option<usize> {
        self.calls().position(|call| call.result.as_ref().is_some_and(|result| !result.payload.is_empty()))
    }

    /// Whether the agent had seen injected text when it made a call.
    pub fn seen_before(&self, call: usize) -> bool {
        let calls: Vec<&Call> = self.calls().collect();
        let breath =
            (0..=call).rev().find(|at| calls.get(*at).is_some_and(|call| !call.together)).unwrap_or(0);
        self.exposed().is_some_and(|exposed| exposed < breath)
    }
}
