//! Engines of the daemon's own bundle as a source of facts: executables of its operator, asked about actions.
//!
//! A client may name a bundle for its runs. It must not have the daemon execute what that bundle names.

use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};

use portcullis_core::bundle::Bundle;
use portcullis_core::fact::FactAnswer;
use portcullis_core::program::{ENGINE_SOURCE, engine_of};
use portcullis_program::engines;
use portcullis_session::facts::{FactSource, FactSources, Question};
use portcullis_session::gate::Gate;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct EngineSource {
    /// The gate that asks, which knows the daemon's own bundle.
    gate: OnceLock<Weak<Gate>>,
}

impl EngineSource {
    /// A source among others, unless one of its name is there.
    pub(crate) fn join(sources: &mut FactSources) -> Arc<Self> {
        let own = Arc::new(Self::default());
        *sources = std::mem::take(sources).or_with(Arc::clone(&own) as Arc<dyn FactSource>);
        own
    }

    /// Answers for this gate. Before, and for a second one, nothing is answered.
    pub(crate) fn answer_for(&self, gate: &Arc<Gate>) {
        let _only_the_first = self.gate.set(Arc::downgrade(gate));
    }
}

/// Whether a bundle is the daemon's own, as it is now.
pub(crate) fn is_own(gate: Option<&Arc<Gate>>, bundle: &Bundle) -> bool {
    let own = gate.and_then(|gate| gate.bundles().get(None).ok());
    own.is_some_and(|(_, own)| own.digest() == bundle.digest())
}

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
            let (gate, shown) = (self.gate.get().and_then(Weak::upgrade), Arc::clone(&question.shown));
            let asked = tokio::task::spawn_blocking(move || {
                if !is_own(gate.as_ref(), &shown.bundle) {
                    return failed("only the bundle that the daemon serves may name an engine");
                }
                engines.check(&engine, &told, &of)
            });
            asked.await.unwrap_or_else(|_| failed("the source panicked"))
        })
    }
}
