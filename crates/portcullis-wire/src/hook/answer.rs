//! What is said about an event, before an agent's own form.

use serde_json::{Map, Value};

use super::{Agent, HookCall, HookEvent};

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It is made without asking anyone, with these arguments where they are not those of the agent.
    Allow(Option<Value>),
    /// The call is not made, and the agent is told why.
    Deny(String),
    /// The client asks its user, who is told why, and makes it with these arguments where they are not those of the agent.
    Ask(String, Option<Value>),
}

/// What is said about an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Everything is left to the client.
    Nothing,
    /// About a call that the agent wants to make.
    Call(Decision),
    /// The prompt does not reach the agent; the user is told why.
    PromptBlocked(String),
    /// The agent does not stop, and is told why.
    GoOn(String),
    /// About what a tool answered.
    Result(ResultAnswer),
}

/// What the agent is told of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultAnswer {
    /// Shown instead of the result, where the agent lets a hook do that ([`Agent::replaces`]).
    pub instead: Option<Value>,
    /// Shown beside the result.
    pub reason: Option<String>,
    /// Shown beside the result, and of Claude Code the only text shown beside a failure.
    pub context: Option<String>,
}

impl Answer {
    /// The answer in the agent's words, and within what it lets a hook do: what it would ignore is a denial.
    pub(super) fn within(&self, agent: Agent, event: &HookEvent) -> Self {
        let (Self::Call(decision), HookEvent::PreToolUse(call)) = (self, event) else { return self.clone() };
        Self::Call(match decision {
            Decision::Allow(None) | Decision::Deny(_) => decision.clone(),
            Decision::Allow(Some(arguments)) => match theirs(agent, call, arguments) {
                Some(arguments) => Decision::Allow(Some(arguments)),
                None => Decision::Deny(unchangeable(call)),
            },
            Decision::Ask(why, _) if !agent.asks() => Decision::Deny(why.clone()),
            Decision::Ask(why, None) => Decision::Ask(why.clone(), None),
            Decision::Ask(why, Some(arguments)) => match theirs(agent, call, arguments) {
                Some(arguments) => Decision::Ask(why.clone(), Some(arguments)),
                None => Decision::Deny(unchangeable(call)),
            },
        })
    }

    /// Whether the agent is told not to make the call, once the answer is in its words.
    #[must_use]
    pub fn denies(&self, agent: Agent, event: &HookEvent) -> bool {
        matches!(self.within(agent, event), Self::Call(Decision::Deny(_)))
    }
}

/// Changed arguments in the agent's words, or `None` if it cannot be given them.
fn theirs(agent: Agent, call: &HookCall, arguments: &Value) -> Option<Value> {
    if !agent.changes_arguments() {
        return None;
    }
    let lacks = |(name, _): (&String, &Value)| arguments.get(name).is_none();
    if agent.merges_arguments() && call.arguments.as_object().is_some_and(|all| all.iter().any(lacks)) {
        return None;
    }
    call.theirs.as_ref().map_or_else(|| Some(arguments.clone()), |theirs| theirs.words(arguments))
}

fn unchangeable(call: &HookCall) -> String {
    format!(
        "Portcullis permits the call of `{}` only with other arguments, and this client cannot be given them in a way that can be followed",
        call.shown()
    )
}

/// A reason as agents need it: one that says nothing makes some of them ignore the denial.
pub(super) fn reason(why: &str) -> Value {
    worded(why).into()
}

/// The words of a reason.
pub(super) fn worded(why: &str) -> &str {
    if why.trim().is_empty() { "Portcullis denied it" } else { why }
}

/// `{"decision": "deny", "reason": …}`.
pub(super) fn denied(why: &str) -> Map<String, Value> {
    object([("decision", "deny".into()), ("reason", reason(why))])
}

/// `{"decision": "block", "reason": …}`.
pub(super) fn blocked(why: &str) -> Map<String, Value> {
    object([("decision", "block".into()), ("reason", reason(why))])
}

/// A text beside a result, in the form of Claude Code.
pub(super) fn beside(answer: &ResultAnswer, event: &str) -> Map<String, Value> {
    let Some(text) = answer.context.as_ref().or(answer.reason.as_ref()) else { return Map::new() };
    let output = object([("hookEventName", event.into()), ("additionalContext", text.as_str().into())]);
    object([("hookSpecificOutput", output.into())])
}

/// Fields of an object.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What replaces a result as a text, and what is to be read beside it.
pub(super) fn whole_text(answer: &ResultAnswer) -> Option<String> {
    let instead = answer
        .instead
        .as_ref()
        .map(|instead| instead.as_str().map_or_else(|| instead.to_string(), str::to_owned));
    match (&answer.context, instead) {
        (Some(context), Some(instead)) => Some(format!("{context}\n\n{instead}")),
        (None, Some(instead)) => Some(instead),
        (_, None) => None,
    }
}
