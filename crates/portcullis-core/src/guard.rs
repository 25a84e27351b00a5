//! The [`Guard`] trait, which every guard implements.
//!
//! A guard judges one pending action, observation, input or reply in the light of everything that happened
//! before it in the run. It is a pure function: no clock, no randomness, no I/O, no memory between calls. What
//! it needs from outside it asks for in [`Guard::needs`]; the driver of the run gathers and records the
//! answers, and [`Guard::decide`] receives them. That is why anyone who holds the record of a run can compute
//! every verdict again.
//!
//! A guard that fails, panics or lacks a fact is a denial with a reserved reason. There is no switch that makes
//! a failure pass.

use crate::action::{Hook, Pending};
use crate::bundle::{Bundle, PolicyRef};
use crate::effect::{Effects, LazyEffects};
use crate::fact::{FactRequest, Facts};
use crate::finding::Finding;
use crate::memory::{LazyReading, Memory, NoMemory};
use crate::state::RunState;

/// What is known of a guard without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardMeta {
    /// Unique name, `family/name`; its findings' rules begin with it.
    pub id: &'static str,
    /// Where it runs.
    pub hooks: &'static [Hook],
    /// Risks of the OWASP lists for agentic and LLM applications that it covers.
    pub owasp: &'static [&'static str],
    /// The kind of unfaithfulness it catches.
    pub unfaithful_to: Option<Unfaithful>,
}

/// What an agent's step can be unfaithful to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfaithful {
    /// The task it was given.
    Task,
    /// What happened before.
    History,
    /// What it observed.
    Observations,
}

/// Everything a guard may look at besides the pending thing itself.
#[derive(Debug)]
pub struct Context<'a, M: Memory = NoMemory> {
    /// The bundle in force.
    pub bundle: &'a Bundle,
    /// The runtime policy of the run.
    pub policy: PolicyRef<'a>,
    /// What happened so far.
    pub run: &'a RunState,
    effects: Option<&'a LazyEffects<'a>>,
    reading: Option<&'a LazyReading<'a, M>>,
}

impl<M: Memory> Clone for Context<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for Context<'_, M> {}

impl<'a, M: Memory> Context<'a, M> {
    /// The context of a run.
    pub fn new(bundle: &'a Bundle, policy: PolicyRef<'a>, run: &'a RunState) -> Self {
        Self { bundle, policy, run, effects: None, reading: None }
    }

    /// The same with the effects of what is pending.
    #[must_use]
    pub fn with_effects(self, effects: &'a LazyEffects<'a>) -> Self {
        Self { effects: Some(effects), ..self }
    }

    /// The same with these effects, unless it has some already.
    pub(crate) fn or_effects(self, effects: &'a LazyEffects<'a>) -> Self {
        Self { effects: self.effects.or(Some(effects)), ..self }
    }

    /// What the pending action would touch. Read when the first guard asks; a pipeline without a reader says
    /// *nothing*.
    pub fn effects(&self) -> &'a Effects {
        static NOTHING: Effects = Effects::none();
        self.effects.map_or(&NOTHING, |effects| effects.get())
    }

    /// The same with what is remembered of the run and read in what is pending.
    #[must_use]
    pub fn with_reading(self, reading: &'a LazyReading<'a, M>) -> Self {
        Self { reading: Some(reading), ..self }
    }

    /// What is remembered of the run.
    ///
    /// # Errors
    /// The run has no memory. A guard that needs one cannot judge then, which is a denial.
    pub fn memory(&self) -> Result<&'a M, GuardFailure> {
        let memory = self.reading.and_then(LazyReading::memory);
        memory.ok_or_else(|| GuardFailure("the run has no memory".to_owned()))
    }

    /// What the run's memory read in what is pending. The first guard that asks pays for it.
    ///
    /// # Errors
    /// As [`Self::memory`].
    pub fn reading(&self) -> Result<&'a M::Reading, GuardFailure> {
        let reading = self.reading.and_then(LazyReading::get);
        reading.ok_or_else(|| GuardFailure("nothing was read in what is pending".to_owned()))
    }

    /// Whether a call of the tool counts as a side effect. An unknown tool is not classified, so it counts as one,
    /// unless the bundle trusts hints and the tool's server calls it read-only.
    pub fn is_side_effecting(&self, tool: &str) -> bool {
        match self.bundle.registry.get(tool) {
            Some(tool) => tool.side_effecting,
            None => !self.is_trusted_reader(tool),
        }
    }

    /// Whether an unknown tool is taken to be a reader on its server's word.
    pub fn is_trusted_reader(&self, tool: &str) -> bool {
        self.bundle.trust_hints && self.run.hinted_read_only(tool)
    }
}

/// Why a guard could not judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GuardFailure(pub String);

/// Judges what is pending. See the [module documentation](self).
///
/// `M` is the memory that it asks. A guard that asks for none is one for every memory: `impl<M: Memory> Guard<M>`.
pub trait Guard<M: Memory = NoMemory>: Send + Sync + std::fmt::Debug {
    /// Name, hooks and coverage. Constant.
    fn meta(&self) -> &'static GuardMeta;

    /// Names of the sources that [`Self::needs`] and [`Self::wants`] may ask, so that nothing is prepared where no guard
    /// asks. Constant.
    fn sources(&self) -> &'static [&'static str] {
        &[]
    }

    /// The facts without which the guard cannot judge, each of one of its [sources](Self::sources). Most need none.
    fn needs(&self, _context: &Context<'_, M>, _pending: &Pending<'_>) -> Vec<FactRequest> {
        Vec::new()
    }

    /// The facts with which it judges better, each of one of its [sources](Self::sources). A failed answer is handed to
    /// [`Self::decide`], which must not take it for a good one.
    fn wants(&self, _context: &Context<'_, M>, _pending: &Pending<'_>) -> Vec<FactRequest> {
        Vec::new()
    }

    /// The findings, strictest first where the headline depends on it; empty if there is no objection.
    fn decide(
        &self,
        context: &Context<'_, M>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure>;
}
