//! Programs that a model writes for single calls of the tools that the bundle names.
//!
//! A program is written and run outside of the run's lock, and what it says is a fact that the guard of programs needs: where
//! it is missing, the call is denied. It can only narrow, and a replay goes by the record: the same model might write another
//! program today.

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::PerAction;
use portcullis_core::fact::FactRequest;
use portcullis_core::id::DigestBuilder;
use portcullis_trajectory::memory::Context;

/// The source of facts that has programs written.
pub const SOURCE: &str = "per-action";
/// The name under which such a program objects.
pub const NAME: &str = "per-action";
/// Hex digits of a digest in a question.
const DIGITS: usize = 32;

/// What the model is told of a call, besides what programs are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What the user said since the latest reply, where the run remembers it.
    pub request: String,
    /// The call: its tool and arguments.
    pub call: String,
}

impl Asked {
    /// What is asked about an action; none where its tool is not named, or the bundle names no model.
    pub fn of(context: &Context<'_>, action: &Action) -> Option<Self> {
        let settings = context.bundle.call_models.per_action.as_ref()?;
        let tool = action.tool()?;
        if !settings.tools.iter().any(|name| name == tool) {
            return None;
        }
        let request = context.memory().ok().and_then(|memory| memory.sources.prompt()).unwrap_or_default();
        Some(Self { request, call: format!("{tool} {}", action.arguments) })
    }

    /// The question. It is recorded with the verdict on the call, so the call need not be named, and a digest of what the
    /// user said would outlive the erasure of the words.
    fn question(&self, settings: &PerAction) -> FactRequest {
        let told = DigestBuilder::new("portcullis/per-action/v1")
            .part(settings.requests.as_bytes())
            .part(settings.specification.as_bytes());
        let told = told.finish().to_string();
        let told = told.get(..DIGITS).unwrap_or(&told);
        let question = format!("{told} on this call, after a request of {} bytes", self.request.len());
        FactRequest { source: SOURCE.to_owned(), question }
    }
}

/// The question about what is pending.
pub(super) fn question(context: &Context<'_>, pending: &Pending<'_>) -> Option<FactRequest> {
    let Subject::Action(action) = pending.subject else { return None };
    Some(Asked::of(context, action)?.question(context.bundle.call_models.per_action.as_ref()?))
}
