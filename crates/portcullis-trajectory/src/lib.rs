//! What a run has seen, and what follows for the next call.
//!
//! An agent reads text that anyone may have written, and acts on it. Whether an action is the user's or someone
//! else's cannot be told from the action alone, nor from the text alone; it can often be told from both together with
//! what the user asked for. This crate remembers the three, in bounds, and weighs them:
//!
//! - [`request`]: what the user wants and names, and [`handing`]: what the user leaves to a source;
//! - [`seen`]: whose words the parts of a result are; [`passages`]: what others wrote, found again by its particulars;
//! - [`origins`]: who is behind each value;
//! - [`kind`]: what a call does, to what;
//! - [`judge`]: what is known of a call, and [`table`]: what becomes of it;
//! - [`excise`]: which stretches of a result the agent should not be shown;
//! - [`monitors`]: intent, drift, violations and outcomes;
//! - [`sources`]: what a reply can rest on, and whether it does;
//! - [`redact`]: the same texts without the secrets in them, for the record;
//! - [`things`]: what a call writes that outlives the run, [`carried`]: what of it is others', and [`marks`]: by which it
//!   is found again;
//! - [`memory`]: all of it as the memory of a run.
//!
//! Everything is pure and deterministic. Reading a text is linear in it, judging a call does not grow with the run,
//! and an index that is full says *unknown origin* from then on.

mod acts;
pub mod answer;
mod argument_name;
pub mod arguments;
pub mod carried;
mod claims;
mod classes;
mod continued;
mod deed;
mod disguises;
pub mod excise;
pub mod flow;
mod grey;
pub mod handing;
pub mod judge;
pub mod kind;
pub mod lexicon;
pub mod marks;
pub mod memory;
pub mod monitors;
mod names;
pub mod numbers;
pub mod orders;
pub mod origins;
mod particulars;
pub mod passages;
pub mod posing;
mod protections;
pub mod redact;
pub mod request;
pub mod secrets;
pub mod seen;
pub mod signs;
pub mod sources;
mod statements;
pub mod table;
pub mod things;
pub mod toolset;
pub mod trajectory;
pub mod values;
pub mod words;
