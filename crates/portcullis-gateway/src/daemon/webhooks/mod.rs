//! Webhooks: others are told of what waits for a person, and may answer.
//!
//! ```text
//! commits of runs ─> telling: what is pending, what was decided ─> messages ─> one delivery at a time a webhook
//! POST /v1/webhooks/NAME/answers ─> signature, approver's credential, nonce ─> the same decision as any other
//! ```
//!
//! Nothing is kept on disk. What is to be told follows from the store: after a start everything that is pending is told
//! again, and so is what was decided in the hour before, under the same ids, by which receivers know repeats.

mod answers;
mod message;
mod signing;
mod telling;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use portcullis_core::bundle::Webhook;
use portcullis_core::id::ApprovalId;
use portcullis_core::time::Timestamp;

pub(super) use self::answers::{SignedBody, answer};
use self::message::Message;
pub(super) use self::telling::keep_telling;

use super::Shared;
use super::auth::Approver;
use super::error::Failure;
use crate::api;

/// What the webhooks of the daemon's own bundle were told, by name.
#[derive(Debug, Default)]
pub(super) struct Webhooks(Mutex<BTreeMap<String, Standing>>);

/// How far the decision about a request has come. A request is told again when it is at another stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stage {
    /// People who have agreed.
    agreed: usize,
    /// It has waited so long that other roles may grant it as well.
    escalated: bool,
}

/// How one webhook stands.
#[derive(Debug)]
struct Standing {
    webhook: Webhook,
    /// What is still to be delivered, by id.
    messages: BTreeMap<String, Message>,
    /// Requests that it knows of or will, each as it stood by then. What was decided before a start is among them until
    /// it is told again.
    told: BTreeMap<ApprovalId, Stage>,
    in_flight: bool,
    delivered: u64,
    last_success: Option<Timestamp>,
    last_error: Option<String>,
}

impl Standing {
    fn new(webhook: Webhook) -> Self {
        Self {
            webhook,
            messages: BTreeMap::new(),
            told: BTreeMap::new(),
            in_flight: false,
            delivered: 0,
            last_success: None,
            last_error: None,
        }
    }
}

impl Webhooks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The webhooks of the daemon's own bundle: what an agent names for its run says nothing about people.
fn own(shared: &Shared) -> Vec<Webhook> {
    let bundles = shared.gate.bundles();
    let bundle = bundles.known(&bundles.source(None));
    bundle.map(|bundle| bundle.approvals.webhooks.clone()).unwrap_or_default()
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Approver(_): Approver,
) -> Result<Json<api::WebhookList>, Failure> {
    let webhooks = shared.webhooks.lock().values().map(info).collect();
    Ok(Json(api::WebhookList { webhooks }))
}

fn info(standing: &Standing) -> api::WebhookInfo {
    let url = &standing.webhook.url;
    // A path may hold a secret.
    let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest.split('/').next().unwrap_or(rest));
    api::WebhookInfo {
        name: standing.webhook.name.clone(),
        host: host.to_owned(),
        waiting: standing.messages.len(),
        delivered: standing.delivered,
        last_success: standing.last_success,
        last_error: standing.last_error.clone(),
    }
}
