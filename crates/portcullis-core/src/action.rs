//! What is about to happen: the things guards judge.

use std::borrow::Cow;

use serde_json::Value;

use crate::contrast::More;
use crate::event::GrantScope;
use crate::id::{ActionId, ApprovalId, Digest, DigestBuilder, canonical_json};
use crate::label::Label;
use crate::likeness::Likeness;
use crate::sequence::{Marked, Sequences};
use crate::taint::Tainted;
use crate::time::Timestamp;

/// Where guards run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Something the user or the operator said.
    Input,
    /// Before an action.
    Action,
    /// A tool's result, before the agent sees it.
    Observation,
    /// A reply, before it leaves.
    Output,
}

/// What an action is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionKind {
    /// A call of the tool that the agent named so.
    Call(String),
    /// A thinking step: it touches nothing.
    Thought,
}

impl From<Option<String>> for ActionKind {
    /// As events and surfaces have it: without a tool it is a thinking step.
    fn from(tool: Option<String>) -> Self {
        tool.map_or(Self::Thought, Self::Call)
    }
}

/// What the agent wants to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Names the action within its run.
    pub id: ActionId,
    /// What it is.
    pub kind: ActionKind,
    /// What the server of the tool is known by, where the surface knows it. A tool of the same name of another server
    /// is another tool.
    pub server: Option<String>,
    /// The decoded arguments.
    pub arguments: Value,
    /// What the agent said it was about to do, where the surface has it.
    pub planned: Option<String>,
    /// What the call carries besides its arguments when it takes up one that asked for more input.
    pub continuation: Option<Value>,
    /// The working directory, where the surface knows it: what relative paths in the arguments start from.
    pub directory: Option<String>,
    /// How sure the agent or its planner is of this step, 0 to 1, where the surface reports it. A claim: it can make a
    /// verdict stricter, never milder than silence, and nothing is bound to it.
    pub confidence: Option<f64>,
    digest: Digest,
    likeness: Option<Likeness>,
    marked: Marked,
}

impl Action {
    /// An action with its digest. Cost is linear in the arguments.
    pub fn new(id: ActionId, kind: impl Into<ActionKind>, arguments: Value, planned: Option<String>) -> Self {
        let kind = kind.into();
        let (is_call, name) = match &kind {
            ActionKind::Call(tool) => (true, tool.as_str()),
            ActionKind::Thought => (false, ""),
        };
        let digest = DigestBuilder::new("portcullis/action/v1")
            .part(&[u8::from(is_call)])
            .part(name.as_bytes())
            .part(canonical_json(&arguments).as_bytes())
            .finish();
        let likeness = is_call.then(|| Likeness::of(name, &arguments)).flatten();
        Self {
            id,
            kind,
            server: None,
            arguments,
            planned,
            continuation: None,
            directory: None,
            confidence: None,
            digest,
            likeness,
            marked: Marked::default(),
        }
    }

    /// The same call with other arguments. Its digests are without the key of its run, see [`Self::keyed`], and it is not
    /// [marked](Self::marked_by).
    #[must_use]
    pub fn with_arguments(&self, arguments: Value) -> Self {
        Self::new(self.id, self.kind.clone(), arguments, self.planned.clone())
            .with_continuation(self.continuation.clone())
            .in_directory(self.directory.clone())
            .of_server(self.server.clone())
            .with_confidence(self.confidence)
    }

    /// The tool that it calls, as the agent named it, or `None` if it is no call.
    pub fn tool(&self) -> Option<&str> {
        match &self.kind {
            ActionKind::Call(tool) => Some(tool),
            ActionKind::Thought => None,
        }
    }

    /// Whether it is a call of a tool.
    pub fn is_call(&self) -> bool {
        matches!(self.kind, ActionKind::Call(_))
    }

    /// The action with what it carries besides its arguments, which is judged and bound like them.
    #[must_use]
    pub fn with_continuation(mut self, continuation: Option<Value>) -> Self {
        if let Some(continuation) = &continuation {
            self.digest = DigestBuilder::new("portcullis/action-continued/v1")
                .part(self.digest.as_bytes())
                .part(canonical_json(continuation).as_bytes())
                .finish();
        }
        self.continuation = continuation;
        self
    }

    /// The action in a working directory, which is bound like the arguments: `rm -r build` is another action
    /// elsewhere.
    #[must_use]
    pub fn in_directory(mut self, directory: Option<String>) -> Self {
        if let Some(directory) = &directory {
            self.digest = DigestBuilder::new("portcullis/action-in-directory/v1")
                .part(self.digest.as_bytes())
                .part(directory.as_bytes())
                .finish();
        }
        self.directory = directory;
        self
    }

    /// The action as one of a server's tool, which is bound like the arguments.
    #[must_use]
    pub fn of_server(mut self, server: Option<String>) -> Self {
        if let Some(server) = &server {
            self.digest = DigestBuilder::new("portcullis/action-of-server/v1")
                .part(self.digest.as_bytes())
                .part(server.as_bytes())
                .finish();
        }
        self.server = server;
        self
    }

    /// The action with a confidence. Values outside 0 to 1 are clamped; a value that is not a number counts as 0.
    #[must_use]
    pub fn with_confidence(mut self, confidence: Option<f64>) -> Self {
        let cut = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        self.confidence = confidence.map(cut);
        self
    }

    /// The action with its marks by a bundle's rules. Linear in the marks and rules that concern its tool.
    #[must_use]
    pub fn marked_by(mut self, sequences: &Sequences) -> Self {
        self.marked = self.tool().map(|tool| sequences.marked(tool, &self.arguments)).unwrap_or_default();
        self
    }

    /// The action in a run: digest, likeness and marks are keyed with the run's key. They stay in the record forever, and
    /// without a key anyone who can guess all arguments could test the guess. The key is a payload of the run and is
    /// erased with the first of its other payloads. Call this after setting everything that the digest covers.
    #[must_use]
    pub fn keyed(mut self, key: Option<&Digest>) -> Self {
        if let Some(key) = key {
            self.digest = DigestBuilder::new("portcullis/action-in-run/v1")
                .part(key.as_bytes())
                .part(self.digest.as_bytes())
                .finish();
            self.likeness = self.likeness.map(|likeness| likeness.keyed(key));
            self.marked = self.marked.keyed(key);
        }
        self
    }

    /// Digest of tool and arguments, whatever the order of keys and the white space were. Two actions with the
    /// same digest, under the same key, are the same call.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What near-identical calls have in common, or `None` without a tool or arguments. See [`Likeness`].
    pub fn likeness(&self) -> Option<Likeness> {
        self.likeness
    }

    /// What it does, by the bundle's marks.
    pub fn marked(&self) -> &Marked {
        &self.marked
    }

    /// What a `once` grant is bound to: action, arguments, bundle and principal.
    pub fn grant_digest(&self, bundle: Digest, principal: &str) -> Digest {
        DigestBuilder::new("portcullis/grant/v1")
            .part(self.digest.as_bytes())
            .part(bundle.as_bytes())
            .part(principal.as_bytes())
            .finish()
    }
}

/// All that goes to the tool: the arguments, and beside them as members what the call carries besides. Both have their
/// say of what the call does.
pub fn carried<'a>(arguments: &'a Value, continuation: Option<&Value>) -> Cow<'a, Value> {
    let Some(continuation) = continuation else { return Cow::Borrowed(arguments) };
    let mut all = arguments.as_object().cloned().unwrap_or_default();
    let mut name = "continuation".to_owned();
    while all.contains_key(&name) {
        name.push('_');
    }
    all.insert(name, continuation.clone());
    Cow::Owned(Value::Object(all))
}

/// Something that waits for a verdict.
#[derive(Debug, Clone, Copy)]
pub struct Pending<'a> {
    /// The timestamp of its event. This is the only time that a guard can know.
    pub at: Timestamp,
    /// What it is.
    pub subject: Subject<'a>,
    /// The grant that covers it, if a person approved.
    pub grant: Option<&'a Grant>,
}

/// The thing itself.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Something said to the agent.
    Input {
        /// The words.
        text: &'a str,
        /// The speaker.
        label: &'a Label,
    },
    /// A tool call or thinking step.
    Action(&'a Action),
    /// A tool's result.
    Observation {
        /// The action that it answers, where that is known.
        action: Option<ActionId>,
        /// The words, or the JSON text.
        text: &'a str,
        /// Their source.
        label: &'a Label,
        /// What of them others had written into the thing that was read.
        tainted: Option<&'a Tainted>,
    },
    /// What something contained did beyond what was predicted of it. It has happened.
    Contained {
        /// The action that ran contained, or `None` for a server.
        action: Option<ActionId>,
        /// The tool or server.
        label: &'a Label,
        /// What it did that was not predicted, where it matters.
        more: &'a [More],
    },
    /// The agent's reply.
    Output {
        /// The words.
        text: &'a str,
        /// The documents that were handed over with it, as JSON.
        documents: Option<&'a str>,
    },
}

impl<'a> Subject<'a> {
    /// The hook at which it is judged.
    pub fn hook(&self) -> Hook {
        match self {
            Self::Input { .. } => Hook::Input,
            Self::Action(_) => Hook::Action,
            Self::Observation { .. } | Self::Contained { .. } => Hook::Observation,
            Self::Output { .. } => Hook::Output,
        }
    }

    /// What was said or seen, when it is a text.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Self::Action(_) | Self::Contained { .. } => None,
            Self::Input { text, .. } | Self::Observation { text, .. } | Self::Output { text, .. } => {
                Some(text)
            }
        }
    }

    /// The action, when it is one.
    pub fn action(&self) -> Option<&'a Action> {
        match self {
            Self::Action(action) => Some(action),
            _ => None,
        }
    }
}

/// A person's yes, as the guards see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The approval that it belongs to.
    pub approval: ApprovalId,
    /// How far it reaches.
    pub scope: GrantScope,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(tool: Option<&str>, arguments: &str) -> Action {
        let arguments = serde_json::from_str(arguments).unwrap();
        Action::new(ActionId::from_bytes([0; 16]), tool.map(str::to_owned), arguments, None)
    }

    #[test]
    fn the_digest_sees_the_call_and_not_its_spelling() {
        let digest = |tool, arguments| action(tool, arguments).digest();
        assert_eq!(digest(Some("t"), r#"{"a":1,"b":"x"}"#), digest(Some("t"), r#"{ "b":"\u0078", "a":1 }"#));
        assert_ne!(digest(Some("t"), r#"{"a":1}"#), digest(Some("t"), r#"{"a":"1"}"#));
        assert_ne!(digest(Some("t"), "{}"), digest(Some("u"), "{}"));
        assert_ne!(digest(Some(""), "{}"), digest(None, "{}"));
        let continued = action(Some("t"), "{}").with_continuation(Some(json!({"answer": "yes"})));
        assert_ne!(continued.digest(), digest(Some("t"), "{}"));
        assert_eq!(action(Some("t"), "{}").with_continuation(None).digest(), digest(Some("t"), "{}"));
        let all =
            carried(&json!({"a": 1, "continuation": 2}), Some(&json!({"requestState": "s"}))).into_owned();
        assert_eq!(all, json!({"a": 1, "continuation": 2, "continuation_": {"requestState": "s"}}));
        assert_eq!(carried(&json!({"a": 1}), None).into_owned(), json!({"a": 1}));
        let of = |server: &str| action(Some("t"), "{}").of_server(Some(server.to_owned())).digest();
        assert!(of("a") != of("b") && of("a") != digest(Some("t"), "{}"));
        assert_eq!(action(Some("t"), "{}").of_server(None).digest(), digest(Some("t"), "{}"));
    }

    #[test]
    fn a_key_tells_runs_apart_and_keeps_calls_alike() {
        let (one, two) = (Digest::from_bytes([1; 32]), Digest::from_bytes([2; 32]));
        let call = |arguments, key: Option<&Digest>| action(Some("t"), arguments).keyed(key);
        let plain = call(r#"{"a":"x y"}"#, None);
        let [here, there] = [&one, &two].map(|key| call(r#"{"a":"x y"}"#, Some(key)));
        assert!(plain.digest() != here.digest() && here.digest() != there.digest());
        assert!(plain.likeness() != here.likeness() && here.likeness() != there.likeness());
        assert_eq!(here.digest(), call(r#"{ "a": "x y" }"#, Some(&one)).digest());
        assert_eq!(here.likeness(), call(r#"{"a":"X, y"}"#, Some(&one)).likeness());
        assert_ne!(here.digest(), call(r#"{"a":"X, y"}"#, Some(&one)).digest());
        assert_ne!(here.grant_digest(one, "a"), there.grant_digest(one, "a"));
    }

    /// The vector of `specs/run-chain.md`, computed from its words alone.
    #[test]
    fn keyed_digests_are_those_of_the_specification() {
        let call = action(Some("t"), r#"{"a":1}"#).keyed(Some(&Digest::from_bytes([7; 32])));
        let grant = call.grant_digest(Digest::from_bytes([1; 32]), "ann");
        let expected = "8c15c1d36b74ad16fa7e298003ec2f40f8b32e1378bd9c585ce67f885b57959e";
        assert_eq!(call.digest().to_string(), expected);
        let expected = "5cb42cecab4ecb903d47a83bf66f83b0ad03ca5601023cc66580f8c317bea571";
        assert_eq!(grant.to_string(), expected);
    }

    #[test]
    fn a_grant_is_bound_to_bundle_and_principal() {
        let action = Action::new(ActionId::from_bytes([0; 16]), ActionKind::Thought, json!({}), None);
        let (one, two) = (Digest::from_bytes([1; 32]), Digest::from_bytes([2; 32]));
        assert_ne!(action.grant_digest(one, "a"), action.grant_digest(two, "a"));
        assert_ne!(action.grant_digest(one, "a"), action.grant_digest(one, "b"));
    }
}
