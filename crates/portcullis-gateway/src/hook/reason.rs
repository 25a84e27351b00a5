//! Why a call is not made as it was asked for, in words for the agent or its user.

use portcullis_core::finding::{Finding, Span};
use portcullis_wire::hook::HookCall;
use serde_json::Value;

use crate::client::{Judged, Stopped};
use crate::sentence::sentence;

/// Longest stretch of an argument that a message quotes, in characters.
const QUOTED_CHARS_MAX: usize = 120;
/// Most resources that a message names.
const RESOURCES_NAMED_MAX: usize = 4;

/// The denial as the agent reads it, with what it stands against.
pub(super) fn told(stopped: Stopped, call: &HookCall) -> String {
    let Stopped { judged, mut denial } = stopped;
    if denial.target == call.tool {
        call.shown().clone_into(&mut denial.target);
    }
    if let Some(finding) = headline(&judged) {
        denial.message = with_effects(denial.message, finding, &call.arguments);
    }
    sentence(&denial)
}

/// Why the user is asked for a call whose arguments were changed.
pub(super) fn replaced(call: &HookCall) -> String {
    format!("Portcullis changed the arguments of `{}` but cannot determine all its effects", call.shown())
}

/// Why the user is asked.
pub(super) fn reason(judged: &Judged, call: &HookCall) -> String {
    match headline(judged) {
        Some(finding) => {
            let message = with_effects(finding.message.clone(), finding, &call.arguments);
            format!("Portcullis ({}): {message}", finding.rule)
        }
        None => "Portcullis requires a person to decide".to_owned(),
    }
}

fn headline(judged: &Judged) -> Option<&Finding> {
    judged.findings.iter().find(|finding| finding.effective() == judged.verdict)
}

/// Names what a finding stands against, and quotes the stretch of the arguments that says so. The record has the
/// names; the stretch is in the arguments, which the reader of this has anyway.
fn with_effects(mut message: String, finding: &Finding, arguments: &Value) -> String {
    let names: Vec<&str> = finding.resources.iter().take(RESOURCES_NAMED_MAX).map(String::as_str).collect();
    if !names.is_empty() {
        message.push_str(&format!(": {}", names.join(", ")));
        let more = finding.resources.len() - names.len();
        if more > 0 {
            message.push_str(&format!(" and {more} more"));
        }
    }
    if let Some(text) = finding.spans.first().and_then(|span| stretch(arguments, span)) {
        message.push_str(&format!(" (`{text}`)"));
    }
    message
}

/// The text at a span of the arguments, quoted.
pub(super) fn stretch(arguments: &Value, span: &Span) -> Option<String> {
    let text = arguments.pointer(span.pointer.strip_prefix("/arguments")?)?.as_str()?;
    text.get(span.start..span.end).and_then(quoted)
}

/// A text on one line, cut to a readable length, or `None` for one that says nothing.
pub(super) fn quoted(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    let mut quoted: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() || c == '`' { ' ' } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        quoted.push('…');
    }
    Some(quoted)
}
