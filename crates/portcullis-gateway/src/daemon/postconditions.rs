//! Looks, after a call that was to write a file has ended, whether the file has in it what was written, and records what
//! was found. No call waits for that: the outcome was answered before.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::{ActionId, RunId};
use portcullis_ledger::{LedgerError, Reader, read_aside};
use portcullis_session::batch::REDACTED;
use portcullis_session::commits::{Commit, Missed, Wrote};
use portcullis_session::engine::{WriteCame, WriteCheck};
use portcullis_session::gate::Gate;
use portcullis_session::run::Run;
use portcullis_work::postcondition::{Looked, look, texts_written};
use serde_json::Value;

/// From an outcome to its proposal there are a few events at most: enforcement, claim of a grant, verdict.
const CAUSES_MAX: usize = 8;

/// Looks at what is written until the gate is gone.
pub(super) async fn keep_looking(gate: Arc<Gate>) {
    let mut commits = gate.watch();
    loop {
        match commits.next().await {
            Ok(Commit { run, wrote, .. }) => {
                for wrote in wrote {
                    let Ok(run) = gate.run(run) else { continue };
                    // A run that has ended meanwhile takes no record any more.
                    if let Err(error) = check(&gate, &run, wrote).await {
                        tracing::debug!("run {}: what was written is not recorded: {error}", run.id());
                    }
                }
            }
            Err(Missed::Lagged(missed)) => {
                tracing::warn!("files that were written are not looked at: {missed} commits came too fast");
            }
            Err(Missed::Closed) => return,
        }
    }
}

async fn check(gate: &Gate, run: &Run, wrote: Wrote) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (id, of) = (run.id(), (wrote.action, wrote.outcome));
    let asked = read_aside(gate.ledger(), move |reader| asked(reader, id, of)).await?;
    let Some(asked) = asked else { return Ok(()) };
    let workspace = run.with_state(|state, _| state.place().and_then(|place| place.workspace.clone())).await;
    let paths = wrote.paths.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let workspace = workspace.map(PathBuf::from);
        let texts = asked.as_ref().map(texts_written);
        let look = |path: &String| match &texts {
            None => Looked::NotChecked("secrets in what was written were not kept".to_owned()),
            Some(None) => Looked::NotChecked("the call writes too many texts to look for".to_owned()),
            Some(Some(texts)) => look(workspace.as_deref(), path, texts),
        };
        // A call that says nothing of what it writes is none of a tool for files.
        match &texts {
            Some(Some(texts)) if texts.is_empty() => Vec::new(),
            _ => paths.iter().map(look).collect(),
        }
    });
    let looked = looked.await?;
    let mut checks = Vec::with_capacity(looked.len());
    for (path, looked) in wrote.paths.into_iter().zip(looked) {
        let again = run.with_engine(|engine| engine.written_again(wrote.action, &path)).await;
        checks.push(told(path, looked, again));
    }
    if !checks.is_empty() {
        run.writes_checked(wrote.outcome, &checks).await?;
    }
    Ok(())
}

/// What was found, unless another call may have written the file meanwhile.
fn told(path: String, looked: Looked, again: bool) -> WriteCheck {
    let (came, why) = match looked {
        Looked::Broken(_) if again => {
            (WriteCame::NotChecked, "another call may have written it meanwhile".to_owned())
        }
        Looked::Holds(why) => (WriteCame::Holds, why),
        Looked::Broken(why) => (WriteCame::Broken, why),
        Looked::NotChecked(why) => (WriteCame::NotChecked, why),
    };
    WriteCheck { path, came, why }
}

/// The arguments of the action that an outcome is of: `Some(None)` where secrets in them were not kept, none where they
/// are gone or are no JSON.
fn asked(
    reader: &dyn Reader,
    run: RunId,
    (action, outcome): (ActionId, u64),
) -> Result<Option<Option<Value>>, LedgerError> {
    let mut next = Some(outcome);
    for _ in 0..CAUSES_MAX {
        let Some(seq) = next else { return Ok(None) };
        let stored = reader.events(run, seq.saturating_sub(1), 1)?;
        let Some(event) = stored.first().and_then(|stored| Event::from_line(&stored.line).ok()) else {
            return Ok(None);
        };
        if !matches!(&event.body, EventBody::Proposed(proposed) if proposed.action == action) {
            next = event.cause;
            continue;
        }
        let Some(payload) = event.payloads.get("arguments") else { return Ok(None) };
        let Some(stored) = reader.payload(run, payload.commitment)? else { return Ok(None) };
        if stored.media_type().contains(&format!("; {REDACTED}=")) {
            return Ok(Some(None));
        }
        return Ok(serde_json::from_slice(stored.bytes()).ok().map(Some));
    }
    Ok(None)
}
