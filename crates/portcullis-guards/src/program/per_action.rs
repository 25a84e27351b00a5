//! Programs that a model writes for single calls of the tools that the bundle names.
//!
//! A program is written and run outside of the run's lock, and what it says is a fact that the guard of programs needs: where
//! it is missing, the call is denied. It can only narrow, and a replay goes by the record: the same model might write another
//! program today.

use portcullis_core::action::{Action, Pending, Subject};
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
        let settings = context.bundle.per_action.as_ref()?;
        let tool = action.tool()?;
        if !settings.tools.iter().any(|name| name == tool) {
            return None;
        }
        let request = context.memory().ok().and_then(|memory| memory.sources.prompt()).unwrap_or_default();
        Some(Self { request, call: format!("{tool} {}", action.arguments) })
    }

    fn question(&self, context: &Context<'_>, action: &Action) -> FactRequest {
        let short = |digest: String| digest.get(..DIGITS).map(str::to_owned).unwrap_or(digest);
        let (requests, specification) = match &context.bundle.per_action {
            Some(settings) => (settings.requests.as_str(), settings.specification.as_str()),
            None => ("", ""),
        };
        let told = DigestBuilder::new("portcullis/per-action/v1")
            .part(requests.as_bytes())
            .part(specification.as_bytes())
            .part(self.request.as_bytes());
        let (action, told) = (short(action.digest().to_string()), short(told.finish().to_string()));
        FactRequest { source: SOURCE.to_owned(), question: format!("{told} on {action}") }
    }
}

/// The question about what is pending.
pub(super) fn question(context: &Context<'_>, pending: &Pending<'_>) -> Option<FactRequest> {
    let Subject::Action(action) = pending.subject else { return None };
    Some(Asked::of(context, action)?.question(context, action))
}
