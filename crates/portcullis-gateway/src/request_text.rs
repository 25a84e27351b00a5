//! A request for approval as text: what every surface shows of it, field by field.
//!
//! The texts are as they were written. Whoever shows them passes them through [`visible`](portcullis_core::display::visible)
//! or [`block`](portcullis_core::display::block), so that none can pass for a field.

use portcullis_core::display::line;
use portcullis_core::time::Timestamp;

use crate::api::{ApprovalInfo, Before, Wanted};

/// The fewest digits of the digest of what was shown by which a grant may name it.
pub const SHOWN_DIGITS_MIN: usize = 12;

/// Why a request expired though there was time left.
pub(crate) const RUN_ENDED: &str = "its run has ended, and with it what waited there: the client's session was closed, or \
the daemon was ended; if the agent makes the call again, it waits again";

/// The names and texts of all that there is to say about a request, in the order of importance for a decision.
#[must_use]
pub fn fields(approval: &ApprovalInfo) -> Vec<(&'static str, String)> {
    let labels: Vec<String> = approval.labels.iter().map(ToString::to_string).collect();
    let json = |value: &serde_json::Value| format!("{value:#}");
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    let gone = || "not available".to_owned();
    let (arguments, reply) = match approval.action {
        Some(_) => (approval.arguments.as_ref().map_or_else(gone, json), String::new()),
        None => (String::new(), approval.reply.clone().unwrap_or_else(gone)),
    };
    let fields = [
        ("run", approval.run.to_string()),
        ("principal", approval.principal.clone()),
        ("policy", approval.policy.clone()),
        ("tool", approval.tool.clone()),
        ("server", given(&approval.server)),
        ("arguments", arguments),
        ("reply", reply),
        ("answers", approval.continuation.as_ref().map(json).unwrap_or_default()),
        ("directory", given(&approval.directory)),
        ("planned", given(&approval.planned)),
        ("rule", given(&approval.rule)),
        ("reason", given(&approval.reason)),
        ("instead", approval.instead.join("\n")),
        ("touches", touches(approval)),
        ("holds", effects(approval)),
        ("before", before(approval)),
        ("has seen", labels.join(", ")),
        ("requested", seconds(approval.requested_at)),
        ("expires", approval.expires_at.map(seconds).unwrap_or_default()),
        ("ended", if approval.run_ended { RUN_ENDED.to_owned() } else { String::new() }),
        ("requires", approval.wanted.as_ref().map(required).unwrap_or_default()),
        ("decided", approval.decided_at.map(seconds).unwrap_or_default()),
        ("by", given(&approval.decided_by)),
        ("note", given(&approval.note)),
        (
            "shown",
            approval.shown.as_ref().map(|shown| format!("{shown:.SHOWN_DIGITS_MIN$}")).unwrap_or_default(),
        ),
    ];
    fields.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn seconds(at: Timestamp) -> String {
    at.without_fraction()
}

/// What the call would touch, an effect a line.
fn touches(approval: &ApprovalInfo) -> String {
    let Some(touches) = &approval.touches else { return String::new() };
    if touches.is_empty() {
        return "nothing that could be read from the call".to_owned();
    }
    touches.iter().map(|effect| line(effect).into_owned()).collect::<Vec<_>>().join("\n")
}

/// What happened before, an event a line.
fn before(approval: &ApprovalInfo) -> String {
    let entry = |entry: &Before| {
        let more = if entry.cut { " (the text goes on)" } else { "" };
        format!("{}  {}: {}{more}", entry.seq, line(&entry.who), line(&entry.text))
    };
    let more = approval.earlier.then(|| "(not all that happened before is shown)".to_owned());
    more.into_iter().chain(approval.before.iter().map(entry)).collect::<Vec<_>>().join("\n")
}

/// What a decision requires, or nothing if any approver may make it alone.
fn required(wanted: &Wanted) -> String {
    let mut lines = Vec::new();
    if !wanted.roles.is_empty() {
        lines.push(format!("granted by role {}", line(&wanted.roles.join(" or "))));
    }
    if let Some(at) = wanted.escalates_at {
        let to = wanted.escalates_to.join(" or ");
        lines.push(format!("from {} on, role {} may grant as well", seconds(at), line(&to)));
    }
    if wanted.quorum > 1 {
        let agreed = match wanted.agreed.as_slice() {
            [] => "none so far".to_owned(),
            agreed => line(&agreed.join(", ")).into_owned(),
        };
        lines.push(format!("{} approvers must agree; {agreed}", wanted.quorum));
    }
    if wanted.four_eyes {
        lines.push("someone other than the person it is for must grant it".to_owned());
    }
    if wanted.note {
        lines.push("a note is required".to_owned());
    }
    lines.join("\n")
}

/// What a grant for effects would cover, a rule a line.
fn effects(approval: &ApprovalInfo) -> String {
    let granted = approval.effects.iter().flatten();
    let lines: Vec<String> = granted
        .map(|granted| line(&format!("{}: {}", granted.rule, granted.resources.join(", "))).into_owned())
        .collect();
    lines.join("\n")
}
