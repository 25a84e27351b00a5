//! Contracts on replies: what a machine can check exactly, a machine checks.
//!
//! A *contract* is a statement about a reply (`no commas`, `at least 300 words`, `valid JSON`) with a checker. [`check`]
//! decides one contract exactly, with a reason and the places that matter; what is of no known [`Family`] is *judged*, by
//! a model or a guard program elsewhere, and so is what needs a [`Context`] that is not given. [`compile`] reads statements in plain language, and [`explain`] says how. [`ifeval::family_of`] reads the structured instructions of IFEval.
//!
//! [`verify`] holds a reply against what was asked and the documents it cites.
//!
//! Everything here is pure: no I/O, no clock, no randomness, and limits on all of it ([`limits`]).

pub mod bound;
mod check;
mod conflict;
mod context;
mod contract;
mod family;
pub mod ifeval;
pub mod limits;
mod names;
mod repair;
mod statement;
pub mod text;
pub mod verify;
mod wording;

pub use bound::Bound;
pub use check::{Reading, check, check_family};
pub use conflict::{Conflict, conflicts};
pub use context::{Context, ContextError, Given, Need};
pub use contract::{Check, Checker, Contract, Priority, Verdict};
pub use family::{Divider, Family};
pub use names::{Names, NamesError};
pub use repair::{Edit, Repair, Step, StepKind, Unrepaired, difference, no_repair, repair, repair_within};
pub use statement::{Explanation, StatementError, compile, compile_explained, explain};
pub use text::Span;
