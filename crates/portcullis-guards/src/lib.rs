//! The catalogue of built-in guards: one file each, in families.
//!
//! The doc comment of a guard is its user documentation. Its Markdown test, `tests/cases/<file>.md`, shows it
//! firing and staying silent; a guard without one does not pass the project's checks.

pub mod approval;
pub mod contain;
pub mod contracts;
pub mod effects;
pub mod escalation;
pub mod flow;
pub mod input;
pub mod outcome;
pub mod output;
pub mod policy;
pub mod program;
pub mod registry;
pub mod run;
pub mod trajectory;

use portcullis_core::guard::Guard;
use portcullis_trajectory::memory::RunMemory;

/// All built-in guards in their declared order, which is the order of reasons: first what concerns the run as
/// a whole, then the tool, then the policy.
pub fn catalogue() -> Vec<Box<dyn Guard<RunMemory>>> {
    vec![
        Box::new(run::phase::RunPhase),
        Box::new(run::loop_breaker::LoopBreaker),
        Box::new(run::budget::Budget),
        Box::new(run::parent::Parent),
        Box::new(run::children::Children),
        Box::new(approval::refused::ApprovalRefused),
        Box::new(registry::disabled_tool::DisabledTool),
        Box::new(registry::unknown_tool::UnknownTool),
        Box::new(registry::changed_tool::ChangedTool),
        Box::new(registry::args_schema::ArgsSchema),
        Box::new(effects::unread::Unread),
        Box::new(effects::contained::Contained),
        Box::new(policy::ladder::Ladder),
        Box::new(policy::sequence::SequenceRules),
        Box::new(program::check::ProgramCheck),
        Box::new(program::engine::EngineCheck),
        Box::new(input::intent::InputIntent),
        Box::new(input::injection::InputInjection),
        Box::new(trajectory::violations::Violations),
        Box::new(effects::own_state::OwnState),
        Box::new(trajectory::drift::Drift),
        Box::new(escalation::table::EscalationTable),
        Box::new(flow::authority::Authority),
        Box::new(flow::planted_order::PlantedOrder),
        Box::new(contain::more::MoreThanPredicted),
        Box::new(outcome::verifier::OutcomeVerifier),
        Box::new(outcome::anomaly::OutcomeAnomaly),
        Box::new(output::verification::OutputVerification),
        Box::new(output::contract::OutputContract),
        Box::new(output::open_work::OpenWork),
    ]
}
