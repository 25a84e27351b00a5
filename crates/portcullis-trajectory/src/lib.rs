//! What a run has seen, and what follows for the next call.
//!
//! An agent reads text that anybody may have written, and acts on it. Whether an action is the user's or somebody
//! else's cannot be told from the action alone, nor from the text alone; it can often be told from both together with
//! what the user asked for. This crate remembers the three, in bounds, and weighs them:
//!
//! - [`request`]: what the user asked for, named, and handed on;
//! - [`orders`] and [`book`]: sentences in tools' results that tell their reader to do something;
//! - [`origins`]: where each value was first seen, as a field of data or inside a text;
//! - [`kind`]: what a call does, to what;
//! - [`rules`]: why a call should not pass;
//! - [`excise`]: which stretches of a result the agent should not be shown;
//! - [`monitors`]: intent, drift, violations and outcomes;
//! - [`sources`]: what a reply can rest on, and whether it does;
//! - [`redact`]: the same texts without the secrets in them, for the record;
//! - [`memory`]: all of it as the memory of a run.
//!
//! Everything is pure and deterministic. Reading a text is linear in it, judging a call does not grow with the run,
//! and an index that is full says *unknown origin* from then on.

pub mod arguments;
pub mod book;
pub mod classes;
pub mod excise;
mod fit;
pub mod flow;
pub mod kind;
pub mod lexicon;
pub mod memory;
pub mod monitors;
pub mod orders;
pub mod origins;
pub mod redact;
pub mod request;
pub mod rules;
pub mod secrets;
pub mod seen;
pub mod sources;
pub mod toolset;
pub mod trajectory;
pub mod values;
pub mod words;
