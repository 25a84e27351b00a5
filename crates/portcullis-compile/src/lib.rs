//! From a guard request in plain English to a *draft*: files of a bundle, tests, a back-translation, and what the request
//! leaves open. There is no model here. A request can be misunderstood, so a person reads the back-translation.
//!
//! ```text
//! request -> read -> rules -> emit -> files of a bundle
//!               \-> questions     \-> tests, by a model of the rules that shares no code with what is emitted
//! ```
//!
//! [`read`] is a tolerant grammar over normalised English: it looks for who, which calls, how many, how much, when, and
//! what came before, and every word that it cannot place is a question with the word underlined. [`rule::Rule`] is what
//! it finds. [`draft::Draft`] is the one room that everything enters, also a program that somebody else wrote: a person,
//! or a model. [`mutants`] are rules with one thing changed, which the generated tests have to tell from the rules.
//!
//! The crate is pure. It knows the bundle's formats and never runs one.

pub mod answers;
pub mod cases;
pub mod draft;
pub mod emit;
pub mod english;
pub mod enumerate;
pub mod known;
pub mod meaning;
pub mod mutants;
pub mod promote;
pub mod read;
pub mod restate;
pub mod rule;
pub mod spec;
pub mod tables;
