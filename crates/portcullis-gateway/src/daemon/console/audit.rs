//! Verification Results, and Audit Log & Exports: the governance pack of a run, on pages.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::html;
use portcullis_console::audit::{
    self as pages, Check, Choice, File, Files, LOG_ROWS, LogRow, Metric, Verified,
};
use portcullis_console::frame::Place;
use portcullis_console::log::{self as log_pages, Upload};
use portcullis_console::runs::{Line, Wanted as Runs};
use portcullis_console::{Markup, Role};
use portcullis_core::id::RunId;
use portcullis_governance::{FILES, Pack};
use portcullis_ledger::clock;
use serde::Deserialize;
use serde_json::Value;

use super::super::auth::Caller;
use super::super::error::Failure;
use super::super::governance::{answer, file_answer, made};
use super::super::queries::{find_run, read};
use super::visitor::Visitor;
use super::{Seen, page, runs};

/// Runs that can be chosen from.
const CHOICE: usize = 30;
/// What the archive is called.
const ARCHIVE: &str = "audit_artifacts.zip";

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    run: String,
    #[serde(default)]
    show: String,
    #[serde(default)]
    unverified: bool,
}

/// The latest runs, and the one that is asked for: otherwise the latest.
async fn choices(
    seen: &Seen,
    visitor: &Visitor,
    which: &Which,
) -> Result<(Vec<Line>, Option<RunId>), Failure> {
    let latest = read(&seen.shared, |reader| runs::lines(reader, &Runs::default(), None));
    let (mut lines, _) = latest.await?;
    lines.truncate(CHOICE);
    if which.run.is_empty() {
        let first = lines.first().and_then(|line| line.run.parse().ok());
        return Ok((lines, first));
    }
    let run = find_run(&seen.shared, &Caller(visitor.looking()), &which.run).await?;
    if !lines.iter().any(|line| line.run == run.to_string()) {
        let wanted = Runs { find: run.to_string(), ..Runs::default() };
        lines.extend(read(&seen.shared, move |reader| runs::lines(reader, &wanted, None)).await?.0);
    }
    Ok((lines, Some(run)))
}

pub(super) async fn verification(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    // A pack holds the policy.
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let shown = async {
        let (lines, run) = choices(&seen, &visitor, &which).await?;
        let verified = match run {
            None => Verified::Nothing,
            Some(_) if which.show.is_empty() => Verified::NotAsked,
            Some(run) => checks(&seen, run).await,
        };
        let id = run.map(|run| run.to_string());
        Ok(pages::verification(&Choice { runs: &lines, run: id.as_deref(), now: clock::now() }, &verified))
    };
    answered(&seen, &visitor, Place::Verification, shown.await).await
}

async fn answered(seen: &Seen, visitor: &Visitor, place: Place, shown: Result<Markup, Failure>) -> Response {
    match shown {
        Ok(body) => page::framed(seen, visitor, place, place.name(), body).await,
        Err(failure) => page::failed(seen, visitor, failure).await,
    }
}

async fn checks(seen: &Seen, run: RunId) -> Verified {
    let results = made(&seen.shared, run, true, |pack| {
        Ok(pack.file("verification_results.json").unwrap_or_default().to_vec())
    });
    match results.await {
        Err(failure) => Verified::Refused(failure.told().1),
        Ok(bytes) => Verified::Checks(rows_of(&serde_json::from_slice(&bytes).unwrap_or_default())),
    }
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The rows of a file that is a list, or has one.
fn rows_of(results: &Value) -> Vec<Check> {
    let list = results.as_array().or_else(|| results.get("results").and_then(Value::as_array));
    let check = |row: &Value| Check {
        status: text(row, "status"),
        kind: text(row, "check_type"),
        description: text(row, "description"),
        details: text(row, "details"),
        step: number(row, "related_audit_event_step"),
        event: text(row, "check_id")
            .split('-')
            .next()
            .and_then(|event| event.parse().ok())
            .filter(|event| *event > 0),
    };
    list.map(Vec::as_slice).unwrap_or_default().iter().map(check).collect()
}

pub(super) async fn audit(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    // A pack holds the policy.
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let shown = body(&seen, &visitor, Query(which), None).await;
    answered(&seen, &visitor, Place::Audit, shown).await
}

/// The page of files, with what was found of an upload.
pub(super) async fn body(
    seen: &Seen,
    visitor: &Visitor,
    Query(which): Query<Which>,
    upload: Option<&Upload>,
) -> Result<Markup, Failure> {
    let (lines, run) = choices(seen, visitor, &which).await?;
    let files = match run {
        None => Files::Nothing,
        Some(_) if which.show.is_empty() => Files::NotAsked,
        Some(run) => files(seen, run, which.unverified).await,
    };
    let id = run.map(|run| run.to_string());
    let choice = Choice { runs: &lines, run: id.as_deref(), now: clock::now() };
    let log = super::log::log(seen).await;
    Ok(html! {
        (pages::audit(&choice, &files))
        div .cols.gapped {
            (log_pages::upload(&visitor.session.csrf, upload))
            (log_pages::view(&log))
        }
    })
}

/// What is taken of a pack for the page, as JSON: it is made on another thread.
fn taken(pack: &Pack) -> Value {
    let file = |name: &str| pack.file(name).unwrap_or_default();
    let log = String::from_utf8_lossy(file("audit_log.jsonl")).into_owned();
    let rows: Vec<Value> =
        log.lines().take(LOG_ROWS).filter_map(|line| serde_json::from_str(line).ok()).collect();
    let sizes: Vec<Value> =
        FILES.into_iter().map(|name| serde_json::json!([name, file(name).len()])).collect();
    let results: Value = serde_json::from_slice(file("verification_results.json")).unwrap_or_default();
    serde_json::json!({
        "checked": !rows_of(&results).is_empty(),
        "summary": serde_json::from_slice::<Value>(file("summary_report.json")).unwrap_or_default(),
        "log": rows, "lines": log.lines().count(), "files": sizes,
    })
}

async fn files(seen: &Seen, run: RunId, unverified: bool) -> Files {
    let made = made(&seen.shared, run, unverified, |pack| Ok(taken(pack).to_string().into_bytes()));
    let bytes = match made.await {
        Ok(bytes) => bytes,
        Err(failure) => {
            let (code, why) = failure.told();
            let unverified = code == "not_verified";
            let why = why.split("; `?unverified").next().unwrap_or_default().to_owned();
            return Files::Refused { why, unverified };
        }
    };
    let taken: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let metric = |metric: &Value| Metric {
        label: text(metric, "label"),
        value: number(metric, "value"),
        definition: text(metric, "definition"),
    };
    let file = |file: &Value| {
        let name = file.get(0).and_then(Value::as_str)?.to_owned();
        Some(File { name, bytes: file.get(1).and_then(Value::as_u64)? })
    };
    let log = list(taken.get("log"));
    let lines = usize::try_from(number(&taken, "lines")).unwrap_or(usize::MAX);
    Files::Pack {
        metrics: list(taken.get("summary").and_then(|summary| summary.get("metrics")))
            .iter()
            .map(metric)
            .collect(),
        files: list(taken.get("files")).iter().filter_map(file).collect(),
        more: lines.saturating_sub(log.len()),
        log: log.iter().map(log_row).collect(),
        unverified,
        checked: taken.get("checked") == Some(&Value::Bool(true)),
    }
}

fn log_row(row: &Value) -> LogRow {
    let reason = text(row, "policy_reason");
    let payload = row.get("payload").filter(|payload| !payload.is_null());
    let payload = payload.map(ToString::to_string).unwrap_or_default();
    LogRow {
        step: number(row, "step_number"),
        event_type: text(row, "event_type"),
        policy_action: text(row, "policy_action"),
        reason: [reason, payload].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · "),
        at: text(row, "timestamp").get(11..23).unwrap_or_default().to_owned(),
    }
}

/// A file of a run's pack, or all of them as one archive.
pub(super) async fn download(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path((run, name)): Path<(String, String)>,
    Query(which): Query<Which>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let made = async {
        let run = find_run(&seen.shared, &Caller(visitor.looking()), &run).await?;
        if name == ARCHIVE {
            let zip = made(&seen.shared, run, which.unverified, |pack| {
                Ok(pack.zip().map_err(portcullis_governance::PackError::from)?)
            });
            return answer("application/zip", ARCHIVE, zip.await?);
        }
        let name = FILES.into_iter().find(|file| *file == name);
        let name =
            name.ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, "not_found", "a pack has no such file"))?;
        file_answer(&seen.shared, run, name, which.unverified).await
    };
    match made.await {
        Ok(response) => response.into_response(),
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}
