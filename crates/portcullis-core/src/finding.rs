//! What a guard saw.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{FINDING_POLICIES_MAX, FINDING_RESOURCES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX};
use crate::verdict::Verdict;

/// One reason for a verdict. A decision keeps all of them, in the declared order of the guards.
///
/// Messages name tools, rules, policies and places. What may quote an argument (message, resources, places, edits) does
/// are not in the event, but in a payload of it, which can be erased: see [`crate::aside`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule that fired, `family/name`, e.g. `runtime-policy/step-limit`.
    pub rule: Cow<'static, str>,
    /// What this finding alone asks for.
    pub verdict: Verdict,
    /// One sentence for a person: lower case, no full stop.
    pub message: String,
    /// What would be allowed instead, if the guard knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Where the reason is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    /// Sequence numbers of earlier events that the finding rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<u64>,
    /// The resources that it is about, such as `column lab.labname`. These names may come from the arguments. At most
    /// [`FINDING_RESOURCES_MAX`], each cut at [`NAME_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Ids of the access policies that determined it. At most [`FINDING_POLICIES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// For `modify`: the edits to apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<SpanEdit>,
    /// For `clarify`: the question to put to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Set when a grant answered this finding, so that it no longer counts towards the verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub granted: bool,
    /// Set when the user confirmed the action that this `clarify` asked about, so that it no longer counts either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
}

impl Finding {
    /// A finding of `rule` that asks for `verdict`. Overlong messages are cut at [`MESSAGE_BYTES_MAX`].
    pub fn new(rule: impl Into<Cow<'static, str>>, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            verdict,
            message: cut(message.into(), MESSAGE_BYTES_MAX),
            instead: None,
            spans: Vec::new(),
            evidence: Vec::new(),
            resources: Vec::new(),
            policies: Vec::new(),
            edits: Vec::new(),
            question: None,
            granted: false,
            confirmed: false,
        }
    }

    /// Adds what would be allowed instead.
    #[must_use]
    pub fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.spans.push(span);
        self
    }

    /// Adds an edit, for `modify`.
    #[must_use]
    pub fn edit(mut self, edit: SpanEdit) -> Self {
        self.edits.push(edit);
        self
    }

    /// Adds the resources that it is about. Repetitions, and those over the limit, are left out.
    #[must_use]
    pub fn against(mut self, resources: impl IntoIterator<Item = String>) -> Self {
        add(&mut self.resources, resources, FINDING_RESOURCES_MAX);
        self
    }

    /// Adds the access policies that determined it. Repetitions, and what is over the limit, are left out.
    #[must_use]
    pub fn by_policies(mut self, policies: impl IntoIterator<Item = String>) -> Self {
        add(&mut self.policies, policies, FINDING_POLICIES_MAX);
        self
    }

    /// Adds the question of a `clarify`.
    #[must_use]
    pub fn question(mut self, question: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self
    }

    /// What this finding contributes to the verdict: nothing more than a warning once a grant or the user answered it.
    pub fn effective(&self) -> Verdict {
        if self.granted || self.confirmed { self.verdict.min(Verdict::Warn) } else { self.verdict }
    }
}

fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

fn add(to: &mut Vec<String>, names: impl IntoIterator<Item = String>, limit: usize) {
    for name in names {
        let name = cut(name, NAME_BYTES_MAX);
        if to.len() >= limit {
            return;
        }
        if !to.contains(&name) {
            to.push(name);
        }
    }
}

/// A stretch of judged text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Which text: `/planned`, or `/arguments` followed by a JSON pointer (RFC 6901) to a string in the
    /// arguments, or `/text` for an input, observation or output: the judged one, or for an action the one that
    /// the first event of [`evidence`](Finding::evidence) recorded.
    pub pointer: String,
    /// First byte of the decoded text.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A replacement of one span. Edits refer to the original text; the union of all edits is applied at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SpanEdit {
    /// What is replaced.
    pub span: Span,
    /// The text that replaces the span.
    pub replacement: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_bounded_and_without_repetitions() {
        let long = format!("path /{}", "ä".repeat(NAME_BYTES_MAX));
        let finding = Finding::new("access/x", Verdict::Deny, "no").against([long.clone(), long]);
        assert_eq!(finding.resources.len(), 1);
        assert!(finding.resources[0].len() <= NAME_BYTES_MAX);
        let many = (0..1_000).map(|n| n.to_string());
        let finding = finding.against(many.clone()).by_policies(many);
        assert_eq!(finding.resources.len(), FINDING_RESOURCES_MAX);
        assert_eq!(finding.policies.len(), FINDING_POLICIES_MAX);
    }

    #[test]
    fn older_records_have_neither() {
        let line = r#"{"rule":"a/b","verdict":"deny","message":"no"}"#;
        let finding: Finding = serde_json::from_str(line).unwrap();
        assert!(finding.resources.is_empty() && finding.policies.is_empty());
        assert_eq!(serde_json::to_string(&finding).unwrap(), line);
    }
}
