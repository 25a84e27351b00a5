//! A signed statement that an item is verified.

use std::time::Duration;

use portcullis_core::event::{Event, EventBody};
use portcullis_core::work::{ItemState, Verified, WorkItem};
use portcullis_ledger::log::statement_signer;
use portcullis_proof::event_hash;
use portcullis_proof::log::{Envelope, Predicate, Statement};
use serde_json::Value;

use super::{Which, recorded};
use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

/// How often, and after which pause, it is looked whether the log is there.
const LOG_LOOKS: u32 = 30;
const LOG_PAUSE: Duration = Duration::from_millis(100);

/// Prints the statement, signed with the key of the store's log.
pub(super) fn state(out: &mut Out, which: &Which, global: &Global) -> Result<u8, Failure> {
    let id = which.id();
    let (state, history) = recorded(&which.run, Some(id), global)?;
    let Some(item) = state.works().item(id) else {
        return Err(Failure::no(format!("run {} has no item {id}", which.run))
            .help("`portcullis work list` shows the items of a run"));
    };
    let verifies = |event: &&Event| match &event.body {
        EventBody::Work(record) => {
            let was = record.before.as_ref().map(|before| before.state);
            record.state == Some(ItemState::Verified) && was != Some(ItemState::Verified)
        }
        _ => false,
    };
    let Some(event) = history.iter().rev().find(verifies).filter(|_| is_verified(item)) else {
        let how = if item.buried { "buried" } else { item.state.as_str() };
        return Err(Failure::no(format!("{id} is not verified, but {how}: nothing is stated of it"))
            .help("`portcullis work show` tells what is missing"));
    };
    // The line as it is stored: what is hashed is that, and not the joined one.
    let page = Daemon::as_reader(global)?.ask(|client| client.events(&which.run, event.seq - 1, 1))?;
    let line = page.lines.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let stored = Event::from_line(line).map_err(Failure::unreadable)?;
    if stored.seq != event.seq {
        return Err(Failure::unreadable(format!("event {} cannot be read", event.seq)));
    }
    let run = Daemon::as_reader(global)?.ask(|client| client.run(&which.run))?.run;
    let statement = Statement::of(predicate(run.to_string(), event, item)?, event_hash(line));
    let statement = statement.map_err(Failure::unreadable)?;
    let places = global.home()?.store().log();
    // The daemon makes the log once there is a run, which may be just now.
    for _ in 0..LOG_LOOKS {
        if places.log_key().exists() {
            break;
        }
        std::thread::sleep(LOG_PAUSE);
    }
    let signer = statement_signer(&places).map_err(Failure::unreadable)?;
    let envelope = Envelope::sign(&statement, &signer).map_err(Failure::unreadable)?;
    out.json(&envelope)?;
    Ok(exit::YES)
}

fn is_verified(item: &WorkItem) -> bool {
    item.state == ItemState::Verified && !item.buried
}

fn predicate(run: String, event: &Event, item: &WorkItem) -> Result<Predicate, Failure> {
    let values = |value: Result<Value, serde_json::Error>| match value {
        Ok(Value::Array(list)) => Ok(list),
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(Failure::unreadable(error)),
    };
    let verified = if item.verified == Some(Verified::Attested) { "attested" } else { "checked" };
    Ok(Predicate {
        run: run.parse().map_err(Failure::unreadable)?,
        event: event.seq,
        at: event.t.to_string(),
        by: event.actor.as_str().to_owned(),
        item: item.id.0.into(),
        title: item.title.clone(),
        state: item.state.as_str().to_owned(),
        verified: verified.to_owned(),
        stale: item.stale().is_some(),
        criteria: values(serde_json::to_value(&item.criteria))?,
        results: values(serde_json::to_value(&item.results))?,
        evidence: values(serde_json::to_value(&item.evidence))?,
    })
}
