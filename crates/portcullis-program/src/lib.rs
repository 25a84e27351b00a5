//! Guard programs: conditions that have to be computed, in files of the bundle.
//!
//! A program answers *deny*, *hold* or nothing, so that it can only narrow. It is parsed and run by a worker: a process of
//! its own that has no files, no network and little memory, is started beforehand, and is killed when it is late. The
//! language is not linked here. The engine is a program that lies beside `portcullis`, with its digest, and speaks the
//! protocol of `specs/program-worker.md`.
//!
//! A bundle can name engines of its own, executables that speak the same protocol ([`engines`]).
//!
//! [`compile::ProgramCompiler`] checks and loads the programs of a bundle, [`set::ProgramSet`] asks them, [`pool::Pool`] has
//! the workers, and [`scan`] refuses sources that no parser should be given.

pub mod compile;
mod engine;
pub mod engines;
pub mod pool;
mod protocol;
pub mod scan;
pub mod set;
mod worker;

pub use engine::{Engine, EngineError};
