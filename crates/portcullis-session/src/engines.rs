//! Engines of bundles as a source of facts: asked while the run is not locked.

use std::pin::Pin;
use std::sync::Arc;

use portcullis_core::fact::FactAnswer;
use portcullis_core::program::{ENGINE_SOURCE, engine_of};
use portcullis_program::engines;

use crate::facts::{FactSource, Question};

/// Answers with what the engines of the bundle in force say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineSource;

impl FactSource for EngineSource {
    fn name(&self) -> &str {
        ENGINE_SOURCE
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            let failed = |why: &str| FactAnswer::Failed(why.to_owned());
            let Some(engines) = engines::of(&question.shown.bundle).map(Arc::clone) else {
                return failed("the engines of this bundle were not loaded");
            };
            let Some(told) = question.shown.told.clone() else {
                return failed("what engines would be told cannot be written");
            };
            let (engine, of) = (engine_of(&question.question).to_owned(), question.run.to_string());
            let asked = tokio::task::spawn_blocking(move || engines.check(&engine, &told, &of));
            asked.await.unwrap_or_else(|_| failed("the source panicked"))
        })
    }
}
