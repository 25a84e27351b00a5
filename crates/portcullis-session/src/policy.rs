//! Policy ready for use: bundles with everything compiled, and the pipeline of all guards.
//!
//! Everything that judges goes through these two, so that no surface can leave a part of a bundle out.

use std::collections::BTreeMap;

use portcullis_access::{AccessCompiler, AccessGuard};
use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic};
use portcullis_core::guard::Guard;
use portcullis_core::pipeline;
use portcullis_guards::contracts::ContractCompiler;
use portcullis_program::compile::ProgramCompiler;
use portcullis_program::engines::EngineCompiler;
use portcullis_trajectory::memory::{MonitorCompiler, RememberRun, RunMemory};

use crate::cases::CaseFile;

/// The guards of runs with their memory.
pub type Pipeline = pipeline::Pipeline<RunMemory>;

/// Loads a bundle from its files with all its parts made ready; see [`Bundle::load`].
pub fn load(files: &BTreeMap<String, Vec<u8>>) -> Result<Bundle, Vec<Diagnostic>> {
    Bundle::load_with(
        files,
        &[
            &AccessCompiler,
            &MonitorCompiler,
            &ContractCompiler,
            &ProgramCompiler,
            &EngineCompiler,
            &CaseReader,
        ],
    )
}

/// Reads the tests of a bundle: one that cannot be read would test nothing.
#[derive(Debug)]
struct CaseReader;

impl Compiler for CaseReader {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        let mistakes: Vec<Diagnostic> = bundle
            .tests
            .iter()
            .filter_map(|(path, text)| Some(CaseFile::parse(text).err()?.diagnostic(path, text)))
            .collect();
        if mistakes.is_empty() { Ok(None) } else { Err(mistakes) }
    }
}

/// All guards in their declared order.
pub fn guards() -> Vec<Box<dyn Guard<RunMemory>>> {
    let mut guards = portcullis_guards::catalogue();
    guards.push(Box::new(AccessGuard));
    guards
}

/// All guards, with what they need.
pub fn pipeline() -> Pipeline {
    pipeline_of(guards())
}

/// The pipeline of other guards: fewer, or further ones of one's own.
pub fn pipeline_of(guards: Vec<Box<dyn Guard<RunMemory>>>) -> Pipeline {
    pipeline_with(guards, RememberRun::default())
}

/// As [`pipeline_of`], with another memory.
pub fn pipeline_with(guards: Vec<Box<dyn Guard<RunMemory>>>, memory: RememberRun) -> Pipeline {
    Pipeline::new(guards).with_effects(Box::new(portcullis_effects::Reader)).with_memory(Box::new(memory))
}
