//! The pure part of the gate: vocabulary, hooks, guards, pipeline, run state, tool registry and bundle.
//!
//! Nothing here reads a clock, a file or a socket. [`pipeline::Pipeline::decide`] gives the same decision for
//! the same bundle, run state, pending action and facts; that is how policies are back-tested and verdicts
//! audited. Read [`guard`], [`verdict`] and [`pipeline`] first.

pub mod action;
pub mod aside;
pub mod bundle;
pub mod contrast;
pub mod delegation;
pub mod denial;
pub mod display;
pub mod edit;
pub mod effect;
pub mod escalation;
pub mod event;
pub mod fact;
pub mod finding;
pub mod freeze;
pub mod grant;
pub mod guard;
pub mod host;
pub mod id;
pub mod infer;
pub mod kept;
pub mod keywords;
pub mod label;
pub mod lexicon;
pub mod likeness;
pub mod limits;
mod listed;
pub mod memory;
pub mod names;
pub mod normalise;
pub mod observed;
pub mod pipeline;
pub mod policy;
pub mod principal;
pub mod profile;
pub mod program;
mod recent;
pub mod sequence;
pub mod site;
pub mod state;
pub mod taint;
pub mod time;
pub mod tool;
pub mod usage;
pub mod verdict;
pub mod work;
