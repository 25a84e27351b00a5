//! A run judged again under another bundle, and verified where it is stored.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use portcullis_console::Role;
use portcullis_console::frame::Place;
use portcullis_console::log::Upload;
use portcullis_console::replayed::{self as pages, Call, Replayed};
use portcullis_core::bundle::Bundle;
use portcullis_core::id::RunId;
use portcullis_ledger::ExportOptions;
use portcullis_session::gate::Gate;
use portcullis_session::policy;
use portcullis_sim::replay::{Item, Options, Source, replay};
use serde::Deserialize;

use super::super::auth::Caller;
use super::super::error::Failure;
use super::super::queries::{complete, find_run, read};
use super::desk::short;
use super::visitor::Visitor;
use super::{Seen, page, upload};

/// Versions that can be chosen from.
const VERSIONS: usize = 50;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    with: u64,
}

fn exported(gate: &Gate, run: RunId) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let exported =
        gate.ledger().read(|reader| reader.export_run(run, &mut bytes, ExportOptions { payloads: true }));
    exported.map(|_| bytes).map_err(|error| error.to_string())
}

/// The bundle of a version, or the one in force.
fn bundle(seen: &Seen, number: u64) -> Result<Arc<Bundle>, String> {
    if number == 0 {
        return seen
            .shared
            .gate
            .bundles()
            .get(None)
            .map(|(_, bundle)| bundle)
            .map_err(|error| error.to_string());
    }
    let versions = seen.console.desk.versions();
    let found = versions.get(number).map_err(|error| error.to_string())?;
    let version = found.ok_or_else(|| format!("there is no version {number}"))?;
    let files = versions.files(&version).map_err(|error| error.to_string())?;
    let loaded = policy::load(&files);
    loaded.map(Arc::new).map_err(|mistakes| {
        let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
        format!("version {number} does not load any more: {first}")
    })
}

/// The calls of a run, and how many could not be judged.
fn judged(seen: &Seen, run: RunId, number: u64) -> Result<(Vec<Call>, usize, String), String> {
    let gate = &seen.shared.gate;
    let bundle = bundle(seen, number)?;
    let source = Source::memory(exported(gate, run)?);
    let (mut calls, mut not_judged) = (Vec::new(), 0);
    let options = Options { policy: None, strict_tools: true };
    let found = replay(&source, &bundle, gate.pipeline(), &options, &mut |item: Item<'_>| {
        match item {
            Item::Decision(row) => calls.push(Call {
                event: row.seq.unwrap_or(1),
                tool: row.tool.clone(),
                recorded: row.recorded.unwrap_or(row.verdict),
                now: row.verdict,
                rule: row.rule.clone(),
                message: row.message.clone(),
            }),
            Item::NotJudged { .. } => not_judged += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found.map_err(|error| error.to_string())?;
    // Of a long run, what differs is shown first.
    calls.sort_by_key(|call| call.recorded == call.now);
    Ok((calls, not_judged, short(&bundle.digest().to_string()).to_owned()))
}

pub(super) async fn replayed(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(run): Path<String>,
    Query(which): Query<Which>,
) -> Response {
    // What another policy says of a run tells of the policy.
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let made = async {
        let id = find_run(&seen.shared, &Caller(visitor.looking()), &run).await?;
        let own = read(&seen.shared, move |reader| {
            let Some(mut summary) = reader.run(id)? else { return Ok(None) };
            complete(reader, &mut summary)?;
            Ok(summary.progress.and_then(|progress| progress.bundle))
        });
        let own = own.await?.map(|digest| digest.to_string()).unwrap_or_default();
        let served = seen.shared.gate.bundles().get(None).ok().and_then(|(source, _)| source);
        let versions = seen.console.desk.versions().list(served.as_deref()).unwrap_or_default();
        let mut page = Replayed {
            run: id.to_string(),
            own: short(&own).to_owned(),
            versions: versions
                .into_iter()
                .take(VERSIONS)
                .map(|version| {
                    let what = version.what.chars().take(80).collect();
                    (version.number, what, version.number == which.with)
                })
                .collect(),
            ..Replayed::default()
        };
        let of = seen.clone();
        let judged = tokio::task::spawn_blocking(move || judged(&of, id, which.with)).await;
        match judged.unwrap_or_else(|error| Err(error.to_string())) {
            Ok((calls, not_judged, bundle)) => {
                (page.calls, page.not_judged, page.bundle) = (calls, not_judged, bundle);
            }
            Err(why) => page.refused = Some(why),
        }
        Ok::<Replayed, Failure>(page)
    };
    match made.await {
        Ok(found) => page::framed(&seen, &visitor, Place::Runs, "Replay", pages::page(&found)).await,
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

/// The record of a run, as the verifier reads it.
pub(super) async fn verified(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(run): Path<String>,
) -> Response {
    let made = async {
        let id = find_run(&seen.shared, &Caller(visitor.looking()), &run).await?;
        let gate = Arc::clone(&seen.shared.gate);
        let name = format!("run {}", id.to_string().get(..8).unwrap_or_default());
        let found = tokio::task::spawn_blocking(move || match exported(&gate, id) {
            Ok(bytes) => upload::verified(&gate, name, &bytes),
            Err(why) => Upload::Refused(why),
        });
        let found = found.await.unwrap_or_else(|error| Upload::Refused(error.to_string()));
        Ok::<(RunId, Upload), Failure>((id, found))
    };
    match made.await {
        Ok((id, Upload::Verified(found))) => {
            let body = pages::verified(&id.to_string(), &found);
            page::framed(&seen, &visitor, Place::Runs, "The record of a run", body).await
        }
        Ok((_, Upload::Refused(why))) => {
            let failure = Failure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "internal", why);
            page::failed(&seen, &visitor, failure).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}
