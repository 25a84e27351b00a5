//! Answers from a webhook's side. They are signed like the messages that they answer, name the nonce of the request, and
//! carry the credential of the approver who decides: a secret that a service holds is nobody's decision.

use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use portcullis_core::bundle::Webhook;
use portcullis_ledger::{ApprovalState, clock};
use portcullis_session::engine::Says;

use super::message::is_shown;
use super::own;
use super::signing::{NotSigned, Secret};
use super::telling::stage;
use crate::api::{self, WebhookDecision};
use crate::daemon::Shared;
use crate::daemon::approvals::{find, granted, say, shown_whole};
use crate::daemon::auth::{Approver, Caller};
use crate::daemon::error::Failure;
use crate::daemon::seen::Seen;

/// A body of that type as it was sent: its bytes are signed.
pub(in super::super) struct SignedBody<T> {
    bytes: Bytes,
    of: PhantomData<T>,
}

impl<T> FromRequest<Shared> for SignedBody<T> {
    type Rejection = BytesRejection;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, BytesRejection> {
        Ok(Self { bytes: Bytes::from_request(request, shared).await?, of: PhantomData })
    }
}

pub(in super::super) async fn answer(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(name): Path<String>,
    headers: HeaderMap,
    SignedBody { bytes: body, .. }: SignedBody<api::WebhookAnswer>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    let webhook = named(&shared, &name)?;
    let secret = Secret::read(&webhook.secret_file).map_err(|why| {
        let message = format!("the secret of the webhook `{name}` cannot be used: {why}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "webhook_secret", message)
    })?;
    let now_s = u64::try_from(clock::now().as_micros() / 1_000_000).unwrap_or(0);
    secret.verify(&headers, now_s, &body).map_err(not_signed)?;
    let answer: api::WebhookAnswer = serde_json::from_slice(&body)
        .map_err(|error| Failure::bad_request(format!("the answer cannot be read: {error}")))?;
    let row = find(&shared, &Caller(identity.clone()), &answer.approval.to_string()).await?;
    let stage = stage(&shared, &row).await.filter(|_| row.state == ApprovalState::Pending);
    let expected = stage.map(|stage| secret.nonce(&name, row.approval, answer.shown, stage.agreed));
    if !expected.is_some_and(|expected| secret.is_nonce(&answer.nonce, &expected)) {
        let message = "this nonce was not given for this request as it stands, or was used; \
                       wait for the next message, or review the request with `GET /v1/approvals/{id}`";
        return Err(Failure::new(StatusCode::CONFLICT, api::code::WEBHOOK_NONCE, message));
    }
    match answer.decision {
        WebhookDecision::Grant => {
            let grant =
                api::GrantApproval { shown: Some(answer.shown), note: answer.note, ..Default::default() };
            let done = granted(&shared, &identity, &row.approval.to_string(), grant).await;
            if done.is_err() && !is_shown(&shown_whole(&shared, row.clone()).await?, answer.shown) {
                // The run went on: it is told again as it stands now.
                if let Some(standing) = shared.webhooks.lock().get_mut(&name) {
                    standing.told.remove(&row.approval);
                }
            }
            Ok(Seen(done?.told(&shared).await?))
        }
        WebhookDecision::Refuse => {
            say(&shared, identity, &row.approval.to_string(), Says::Refuse, answer.note).await
        }
        WebhookDecision::Answer => {
            say(&shared, identity, &row.approval.to_string(), Says::Answer, answer.note).await
        }
    }
}

fn named(shared: &Shared, name: &str) -> Result<Webhook, Failure> {
    let webhook = own(shared).into_iter().find(|webhook| webhook.name == name);
    webhook.ok_or_else(|| Failure::not_found(format!("the bundle has no webhook `{name}`")))
}

fn not_signed(why: NotSigned) -> Failure {
    let code = match why {
        NotSigned::Headers | NotSigned::Signature => api::code::WEBHOOK_SIGNATURE,
        NotSigned::Time => api::code::WEBHOOK_TIME,
    };
    Failure::new(StatusCode::UNAUTHORIZED, code, why.to_string())
}
