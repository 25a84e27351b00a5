//! Finds out what is to be told, and delivers it: one message at a time for each webhook, so that none waits for another.

use std::collections::BTreeSet;
use std::time::Duration;

use portcullis_core::bundle::Webhook;
use portcullis_core::id::ApprovalId;
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState, clock};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use super::message::{self, DECISIONS_LAST, Message};
use super::signing::Secret;
use super::{Stage, Standing, own};
use crate::daemon::Shared;
use crate::daemon::approvals::{bears_on_approvals, put_before_people, shown_whole};
use crate::daemon::error::Failure;
use crate::daemon::queries::read;
use crate::fetch::Fetcher;

/// For one delivery altogether.
const DELIVERY_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Messages of a webhook that wait at once. Requests beyond it are told when there is room.
const MESSAGES_MAX: usize = 1_000;
/// How often what is to be told is looked up without a commit: the queue of questions moves with time.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The pause after a commit, so that many at once cost one look.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Tells webhooks what waits and what was decided, until the daemon stops.
pub(in super::super) async fn keep_telling(shared: Shared) {
    let mut commits = shared.gate.watch();
    let (done, mut finished) = mpsc::unbounded_channel::<()>();
    loop {
        let webhooks = own(&shared);
        let idle = webhooks.is_empty();
        if let Err(failure) = look(&shared, webhooks).await {
            let (_, why) = failure.told();
            warn!(%why, "what webhooks are to be told could not be read; it is tried again");
        }
        let next = deliver(&shared, &done);
        let wake = next.unwrap_or_else(|| Instant::now() + LOOK_EVERY).min(Instant::now() + LOOK_EVERY);
        tokio::select! {
            () = bears_on_approvals(&mut commits) => tokio::time::sleep(LOOK_AGAIN).await,
            Some(()) = finished.recv(), if !idle => {}
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

/// Brings the webhooks up to the bundle, and their messages up to the store.
async fn look(shared: &Shared, webhooks: Vec<Webhook>) -> Result<(), Failure> {
    let fresh: Vec<Webhook> = {
        let mut standings = shared.webhooks.lock();
        standings.retain(|_, standing| webhooks.contains(&standing.webhook));
        webhooks.iter().filter(|webhook| !standings.contains_key(&webhook.name)).cloned().collect()
    };
    if webhooks.is_empty() {
        return Ok(());
    }
    if !fresh.is_empty() {
        begin(shared, fresh).await?;
    }
    let filter = ApprovalFilter {
        state: Some(ApprovalState::Pending),
        live: true,
        per_run: Some(APPROVALS_PENDING_MAX),
        ..ApprovalFilter::default()
    };
    let rows = read(shared, move |reader| reader.approvals(&filter)).await?;
    let rows = put_before_people(shared, rows).await?;
    let pending: BTreeSet<ApprovalId> = rows.iter().map(|row| row.approval).collect();
    for row in &rows {
        tell_pending(shared, &webhooks, row).await?;
    }
    tell_decided(shared, &pending).await
}

/// Begins with what was decided of late: nobody knows whether it was told before a start.
async fn begin(shared: &Shared, webhooks: Vec<Webhook>) -> Result<(), Failure> {
    let last = i64::try_from(DECISIONS_LAST.as_micros()).unwrap_or(i64::MAX);
    let filter = ApprovalFilter {
        decided_since: Some(Timestamp::from_micros(clock::now().as_micros().saturating_sub(last))),
        limit: Some(MESSAGES_MAX),
        ..ApprovalFilter::default()
    };
    let rows = read(shared, move |reader| reader.approvals(&filter)).await?;
    let mut standings = shared.webhooks.lock();
    for webhook in webhooks {
        let wanted = rows.iter().filter(|row| webhook.wants(row.rule.as_deref(), &row.tool));
        let told = wanted.map(|row| (row.approval, Stage::default())).collect();
        let standing = Standing { told, ..Standing::new(webhook) };
        standings.insert(standing.webhook.name.clone(), standing);
    }
    Ok(())
}

/// The stage of a request of a live run.
pub(super) async fn stage(shared: &Shared, row: &ApprovalRow) -> Option<Stage> {
    let run = shared.gate.look_at(row.run)?;
    run.with_engine(|engine| {
        let approval = engine.state().approval(row.approval)?;
        let escalated = engine.is_escalated(approval, clock::now());
        Some(Stage { agreed: approval.endorsed.len(), escalated })
    })
    .await
}

async fn tell_pending(shared: &Shared, webhooks: &[Webhook], row: &ApprovalRow) -> Result<(), Failure> {
    let Some(stage) = stage(shared, row).await else { return Ok(()) };
    let knows = |name: &str| {
        let standings = shared.webhooks.lock();
        standings.get(name).is_none_or(|standing| {
            standing.told.get(&row.approval) == Some(&stage) || standing.messages.len() >= MESSAGES_MAX
        })
    };
    let wanted = webhooks.iter().filter(|webhook| webhook.wants(row.rule.as_deref(), &row.tool));
    let wanted: Vec<&Webhook> = wanted.filter(|webhook| !knows(&webhook.name)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let info = shown_whole(shared, row.clone()).await?;
    for webhook in wanted {
        let secret = Secret::read(&webhook.secret_file);
        let mut standings = shared.webhooks.lock();
        let Some(standing) = standings.get_mut(&webhook.name) else { continue };
        match secret {
            Ok(secret) => {
                if let Some((id, message)) = message::requested(&webhook.name, &secret, &info, stage) {
                    standing.forget(row.approval);
                    standing.messages.insert(id, message);
                    standing.told.insert(row.approval, stage);
                }
            }
            Err(why) => standing.failed(&why),
        }
    }
    Ok(())
}

/// Decisions about what was told. What waits no longer for another reason is told again when it does.
async fn tell_decided(shared: &Shared, pending: &BTreeSet<ApprovalId>) -> Result<(), Failure> {
    let told: BTreeSet<ApprovalId> = {
        let standings = shared.webhooks.lock();
        standings.values().flat_map(|standing| standing.told.keys().copied()).collect()
    };
    for approval in told.difference(pending).copied() {
        let row = read(shared, move |reader| reader.approval(approval)).await?;
        let decided = row.filter(|row| row.state != ApprovalState::Pending);
        for standing in shared.webhooks.lock().values_mut() {
            if !standing.told.contains_key(&approval) || standing.messages.len() > MESSAGES_MAX {
                continue;
            }
            standing.told.remove(&approval);
            standing.forget(approval);
            if let Some(row) = &decided {
                let (id, message) = message::decided(row);
                standing.messages.insert(id, message);
            }
        }
    }
    Ok(())
}

impl Standing {
    /// What was to be told of a request is out of date.
    fn forget(&mut self, approval: ApprovalId) {
        self.messages.retain(|_, message| message.about != approval);
    }

    fn failed(&mut self, why: &str) {
        if self.last_error.as_deref() != Some(why) {
            warn!(webhook = %self.webhook.name, %why, "a webhook could not be told; it is tried again");
        }
        self.last_error = Some(why.to_owned());
    }
}

/// Starts the delivery of what is due. Returns when the next is.
fn deliver(shared: &Shared, done: &mpsc::UnboundedSender<()>) -> Option<Instant> {
    let mut next = None;
    for (name, standing) in shared.webhooks.lock().iter_mut() {
        if standing.in_flight {
            continue;
        }
        let Some((id, message)) = standing.messages.iter().min_by_key(|(_, message)| message.due) else {
            continue;
        };
        if message.due > Instant::now() {
            next = Some(next.map_or(message.due, |next: Instant| next.min(message.due)));
            continue;
        }
        let (id, message, webhook) = (id.clone(), message.clone(), standing.webhook.clone());
        standing.in_flight = true;
        let (shared, name, done) = (shared.clone(), name.clone(), done.clone());
        tokio::spawn(async move {
            let sent = send(&webhook, &id, &message).await;
            finish(&shared, &name, &id, sent);
            let _loop_is_gone = done.send(());
        });
    }
    next
}

async fn send(webhook: &Webhook, id: &str, message: &Message) -> Result<(), String> {
    let secret = Secret::read(&webhook.secret_file)?;
    let mut fetcher = Fetcher::new(&webhook.url, DELIVERY_TIME_MAX)?;
    let at_s = u64::try_from(clock::now().as_micros() / 1_000_000).unwrap_or(0);
    let headers = secret.headers(id, at_s, &message.body);
    match fetcher.post_here(&headers, message.body.clone(), ANSWER_BYTES_MAX).await? {
        (200..=299, _) => Ok(()),
        (status, _) => Err(format!("the endpoint answered with status {status}")),
    }
}

fn finish(shared: &Shared, name: &str, id: &str, sent: Result<(), String>) {
    let mut standings = shared.webhooks.lock();
    let Some(standing) = standings.get_mut(name) else { return };
    standing.in_flight = false;
    match sent {
        Ok(()) => {
            standing.messages.remove(id);
            standing.delivered += 1;
            standing.last_success = Some(clock::now());
            standing.last_error = None;
        }
        Err(why) => {
            standing.failed(&why);
            let given_up = standing.messages.get_mut(id).is_some_and(|message| !message.try_later());
            if given_up {
                standing.messages.remove(id);
                warn!(webhook = %name, message = %id, "a message is given up; `portcullis approvals list --all` has what it said");
            }
        }
    }
}
