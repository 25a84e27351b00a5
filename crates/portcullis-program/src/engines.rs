//! Engines that a bundle names: executables of its operator, such as a classifier, that are asked about actions.
//!
//! They speak the protocol of `specs/program-worker.md`, run contained, and answer *deny*, *hold* or nothing. What they
//! answer is recorded, and a replay goes by the record: nobody can tell what they would say again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic, EngineSettings};
use portcullis_core::fact::FactAnswer;
use portcullis_core::profile::Profile;

use crate::engine::{Engine, EngineError};
use crate::pool::Pool;
use crate::set::ProgramSet;

/// Prepares the engines of a bundle. None is started before it is asked, so that a bundle can be looked at anywhere.
#[derive(Debug, Clone, Copy)]
pub struct EngineCompiler;

impl Compiler for EngineCompiler {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        if bundle.engines.is_empty() {
            return Ok(None);
        }
        let portcullis = std::env::current_exe().map_err(|error| error.to_string());
        Ok(Some(Compiled::new(Arc::new(Engines::of(bundle, &portcullis)))))
    }
}

/// The engines of one bundle.
#[derive(Debug)]
pub struct Engines {
    by_name: BTreeMap<String, Named>,
}

#[derive(Debug)]
struct Named {
    settings: EngineSettings,
    /// `None` where the bundle has none of that name.
    profile: Option<Profile>,
    portcullis: Result<PathBuf, String>,
    /// Once it is started.
    set: Mutex<Option<Arc<ProgramSet>>>,
}

impl Engines {
    /// Those of a bundle, which this `portcullis` runs.
    #[must_use]
    pub fn of(bundle: &Bundle, portcullis: &Result<PathBuf, String>) -> Self {
        let named = |settings: &EngineSettings| Named {
            profile: bundle.contain.profile(&settings.profile),
            settings: settings.clone(),
            portcullis: portcullis.clone(),
            set: Mutex::default(),
        };
        let all = bundle.engines.iter().map(|settings| (settings.name.clone(), named(settings)));
        Self { by_name: all.collect() }
    }

    /// Asks one, and waits for its answer until it is late. `of` is who asks, as with [`ProgramSet::check`]. Blocks.
    #[must_use]
    pub fn check(&self, engine: &str, input: &str, of: &str) -> FactAnswer {
        let Some(named) = self.by_name.get(engine) else {
            return FactAnswer::Failed(format!("the bundle has no engine `{engine}`"));
        };
        match named.set() {
            Ok(set) => set.check(input, of),
            Err(error) => FactAnswer::Failed(format!("the engine `{engine}`: {error}")),
        }
    }
}

impl Named {
    /// Its workers, which are started where they are not yet. One that could not be started is tried again.
    fn set(&self) -> Result<Arc<ProgramSet>, EngineError> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = &*set {
            return Ok(Arc::clone(set));
        }
        let wrong = |problem: String| EngineError { path: self.settings.command.clone(), problem };
        let portcullis = self.portcullis.clone().map_err(wrong)?;
        let profile = self.profile.clone();
        let profile =
            profile.ok_or_else(|| wrong(format!("there is no profile `{}`", self.settings.profile)))?;
        let pool = Pool::start(Engine::of_bundle(&self.settings, profile, portcullis)?)?;
        let started = Arc::new(ProgramSet::new(String::new(), Vec::new(), Ok(pool)));
        *set = Some(Arc::clone(&started));
        Ok(started)
    }
}

/// The engines that a bundle was compiled to.
#[must_use]
pub fn of(bundle: &Bundle) -> Option<&Arc<Engines>> {
    bundle.compiled::<Arc<Engines>>()
}
