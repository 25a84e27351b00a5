//! The messages that webhooks get.

use std::time::Duration;

use axum::body::Bytes;
use portcullis_core::display::visible;
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_ledger::{ApprovalRow, clock};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Stage;
use super::signing::Secret;
use crate::api::ApprovalInfo;
use crate::request_text::fields;

/// The longest body of a message, in bytes. A request that does not fit is told without its texts, and cannot be granted
/// by an answer: it has to be opened.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The wait before the second attempt.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest wait between two attempts.
const RETRY_MAX: Duration = Duration::from_secs(600);
/// How long the delivery of a decision is tried. A request is tried for as long as it is pending.
pub(super) const DECISIONS_LAST: Duration = Duration::from_secs(3_600);

/// A message that is still to be delivered.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) about: ApprovalId,
    pub(super) body: Bytes,
    attempts: u32,
    /// When it is tried next.
    pub(super) due: Instant,
    /// When it is given up, if ever.
    until: Option<Instant>,
}

impl Message {
    fn new(about: ApprovalId, body: &Value, until: Option<Instant>) -> Self {
        Self { about, body: Bytes::from(body.to_string()), attempts: 0, due: Instant::now(), until }
    }

    /// An attempt failed. No, if there will be no other.
    pub(super) fn try_later(&mut self) -> bool {
        let wait = RETRY_FIRST.saturating_mul(3u32.saturating_pow(self.attempts)).min(RETRY_MAX);
        // Up to a fifth more, so that many messages do not come back at once.
        let jitter = getrandom::u32().map_or(0.0, |random| f64::from(random) / f64::from(u32::MAX) / 5.0);
        self.attempts = self.attempts.saturating_add(1);
        self.due = Instant::now() + wait.mul_f64(1.0 + jitter);
        self.until.is_none_or(|until| self.due <= until)
    }
}

/// A request waits. Its id names what is shown and the stage.
pub(super) fn requested(
    webhook: &str,
    secret: &Secret,
    info: &ApprovalInfo,
    stage: Stage,
) -> Option<(String, Message)> {
    let shown = info.shown?;
    let Stage { agreed, escalated } = stage;
    let late = if escalated { ".escalated" } else { "" };
    let id = format!("{}.requested.{agreed}{late}.{shown:.8}", info.approval);
    let texts: Vec<Value> =
        fields(info).into_iter().map(|(name, text)| json!([name, visible(&text)])).collect();
    let of = |texts: Vec<Value>, whole: bool| {
        let nonce = whole.then(|| secret.nonce(webhook, info.approval, shown, agreed));
        json!({
            "type": "approval.requested", "timestamp": clock::now(),
            "data": {
                "approval": info.approval, "run": info.run, "principal": visible(&info.principal),
                "tool": visible(&info.tool), "rule": info.rule, "requested_at": info.requested_at,
                "expires_at": info.expires_at, "wanted": info.wanted, "escalated": escalated, "fields": texts, "whole": whole,
                "shown": shown, "nonce": nonce, "answers": format!("/v1/webhooks/{webhook}/answers"),
            },
        })
    };
    let body = of(texts, true);
    let body = if body.to_string().len() > BODY_BYTES_MAX { of(Vec::new(), false) } else { body };
    Some((id, Message::new(info.approval, &body, None)))
}

/// A request was decided, or lapsed.
pub(super) fn decided(row: &ApprovalRow) -> (String, Message) {
    let note = row.note.as_deref().map(visible);
    let by = row.decided_by.as_deref().map(visible);
    let body = json!({
        "type": "approval.decided", "timestamp": clock::now(),
        "data": {
            "approval": row.approval, "run": row.run, "state": row.state.as_str(), "by": by, "note": note,
            "decided_at": row.decided,
        },
    });
    let until = Instant::now() + DECISIONS_LAST;
    (format!("{}.decided", row.approval), Message::new(row.approval, &body, Some(until)))
}

/// Whether a digest is that of a request as it is shown now.
pub(super) fn is_shown(info: &ApprovalInfo, shown: Digest) -> bool {
    info.shown == Some(shown)
}
