//! What is stored of session state and of facts, as their events say. Blocks: always off the async threads.

use portcullis_core::aside::ERASED;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::kept::{FACT, KeptFact, KeptId, KeptOp, KeptRecord, KeptScope, STATE};
use portcullis_core::label::LabelSet;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{FactRow, Gone, LedgerError, Reader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of a key of the session state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateVersion {
    /// Number of the event that put it.
    pub version: u64,
    /// When.
    pub t: Timestamp,
    /// Who.
    pub actor: String,
    /// The version that it replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    /// The value before, as JSON. `None` where there was none, or it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value after, as JSON, unless it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The call that caused it, where the surface said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// Labels of the run then.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
}

/// A fact with where it is from, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactTold {
    /// Names it: the run, and the event that established it.
    pub fact: KeptId,
    /// Whose it is.
    pub principal: String,
    /// Which runs read it.
    pub scope: KeptScope,
    /// When it was established.
    pub t: Timestamp,
    /// By whom.
    pub actor: String,
    /// The call that caused it, where the surface said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The fact; `None` where it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Labels of the run then.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
    /// The labels of those whose words are in it.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub foreign: LabelSet,
    /// The facts that it replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<KeptId>,
    /// The fact that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<KeptId>,
    /// By which event it was forgotten, and what that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<Forgotten>,
}

/// That a fact was forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forgotten {
    /// The run, and the event that says so.
    pub by: KeptId,
    /// When.
    pub t: Timestamp,
    /// Who.
    pub actor: String,
    /// Why, unless that was erased.
    pub reason: String,
}

/// An event with the words that were set aside as that payload.
fn joined(store: &dyn Reader, run: RunId, seq: u64, name: &str) -> Result<Option<Event>, LedgerError> {
    let stored = store.events(run, seq.saturating_sub(1), 1)?;
    let event = stored.first().and_then(|stored| Event::from_line(&stored.line).ok());
    let Some(mut event) = event.filter(|event| event.seq == seq) else { return Ok(None) };
    let words = match event.payloads.get(name) {
        Some(payload) => store.payload(run, payload.commitment)?,
        None => None,
    };
    let words = words.and_then(|words| String::from_utf8(words.bytes().to_vec()).ok());
    event.join(words.as_deref(), ERASED);
    Ok(Some(event))
}

/// The action that an event was caused by.
fn action_of(store: &dyn Reader, run: RunId, event: &Event) -> Result<Option<ActionId>, LedgerError> {
    match event.cause {
        Some(cause) => Ok(joined(store, run, cause, "")?.and_then(|cause| cause.body.action())),
        None => Ok(None),
    }
}

/// The record of an event about a fact.
fn record_of(store: &dyn Reader, id: KeptId) -> Result<Option<(Event, KeptRecord)>, LedgerError> {
    let event = joined(store, id.run, id.seq, FACT)?;
    Ok(event.and_then(|event| match &event.body {
        EventBody::Fact(record) => {
            let record = record.clone();
            Some((event, record))
        }
        _ => None,
    }))
}

/// The fact that an event established, unless its text was erased.
pub(crate) fn stored(store: &dyn Reader, id: KeptId) -> Result<Option<KeptFact>, LedgerError> {
    Ok(record_of(store, id)?.and_then(|(_, record)| record.established(id)))
}

/// The version of a key that an event put.
pub(crate) fn version_of(
    store: &dyn Reader,
    run: RunId,
    version: u64,
) -> Result<Option<StateVersion>, LedgerError> {
    let Some(event) = joined(store, run, version, STATE)? else { return Ok(None) };
    let action = action_of(store, run, &event)?;
    let EventBody::State(record) = event.body else { return Ok(None) };
    Ok(Some(StateVersion {
        version,
        t: event.t,
        actor: event.actor.as_str().to_owned(),
        replaces: record.replaces,
        before: record.words.before,
        after: record.words.after,
        action,
        labels: record.labels,
    }))
}

/// What is stored of a fact of the index: nothing where the event is not what the index says.
///
/// # Errors
/// The store cannot be read.
pub fn told(store: &dyn Reader, row: &FactRow) -> Result<Option<FactTold>, LedgerError> {
    let Some((event, record)) = record_of(store, row.id)? else { return Ok(None) };
    if record.op != KeptOp::Write || record.refused.is_some() {
        return Ok(None);
    }
    let action = action_of(store, row.id.run, &event)?;
    let (mut replaced_by, mut forgotten) = (None, None);
    match row.gone {
        Some((Gone::Replaced, by)) => replaced_by = Some(by),
        Some((Gone::Forgotten, by)) => {
            forgotten = record_of(store, by)?.map(|(event, record)| Forgotten {
                by,
                t: event.t,
                actor: event.actor.as_str().to_owned(),
                reason: record.words.reason,
            });
        }
        None => {}
    }
    Ok(Some(FactTold {
        fact: row.id,
        principal: row.principal.clone(),
        scope: record.scope.unwrap_or_default(),
        t: event.t,
        actor: event.actor.as_str().to_owned(),
        action,
        topic: record.words.topic,
        text: Some(record.words.text).filter(|text| !text.is_empty()),
        labels: record.labels,
        foreign: record.foreign,
        replaces: record.replaces,
        replaced_by,
        forgotten,
    }))
}
