//! Versions of the bundle: what each changed, and how it is put back.

use std::collections::BTreeSet;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::policies::{self as pages, Compared, Version as Shown};
use serde::Deserialize;

use super::super::desk::check::differences;
use super::super::desk::{self, Changes, Depth, Files, Standing, Version, check, short};
use super::super::visitor::{Form, Visitor};
use super::super::{Seen, page};
use super::{Pressed, draft, press_save, trouble};

#[derive(Debug, Deserialize)]
pub(in super::super) struct Which {
    number: u64,
}

/// All versions, the newest first.
pub(super) fn listed(seen: &Seen, standing: &Standing) -> Result<Vec<Shown>, String> {
    let all = seen.console.desk.versions().list().map_err(|error| error.to_string())?;
    let digest = standing.digest();
    // The same files may have been in force before: the latest of them is what is in force.
    let now = all.iter().find(|version| version.digest == digest).map(|version| version.number);
    Ok(all.iter().map(|version| shown(version, now)).collect())
}

fn shown(version: &Version, now: Option<u64>) -> Shown {
    Shown {
        number: version.number,
        at: version.at.get(..16).unwrap_or(&version.at).replace('T', " "),
        by: version.by.clone(),
        what: version.what.clone(),
        digest: short(&version.digest).to_owned(),
        now: now == Some(version.number),
    }
}

/// The changes that make the files those of a version. Files that the console does not write stay as they are.
fn changes_to(standing: &Standing, files: &Files) -> Changes {
    let paths: BTreeSet<&String> = standing.files.keys().chain(files.keys()).collect();
    paths
        .into_iter()
        .filter(|path| desk::is_own_path(path) && standing.files.get(*path) != files.get(*path))
        .map(|path| {
            let text = files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            (path.clone(), text)
        })
        .collect()
}

/// A version, its files, and what it had changed then.
fn read(seen: &Seen, number: u64) -> Result<Option<(Version, Files, Option<Files>)>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let versions = seen.console.desk.versions();
    let Some(version) = versions.get(number).map_err(failed)? else { return Ok(None) };
    let files = versions.files(&version).map_err(failed)?;
    let before = match versions.get(number.saturating_sub(1)).map_err(failed)? {
        Some(before) => Some(versions.files(&before).map_err(failed)?),
        None => None,
    };
    Ok(Some((version, files, before)))
}

pub(in super::super) async fn version(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    compared(&seen, visitor, which.number, None).await
}

async fn compared(seen: &Seen, visitor: Visitor, number: u64, told: Option<Told>) -> Response {
    let standing = match desk::standing(seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(seen, &visitor, &why).await,
    };
    let (version, files, before) = match read(seen, number) {
        Ok(Some(found)) => found,
        Ok(None) => return page::nothing_here(State(seen.clone()), visitor).await,
        Err(why) => return trouble(seen, &visitor, &why).await,
    };
    let checked = match check(seen, &standing, &changes_to(&standing, &files), Depth::Runs).await {
        Ok(checked) => checked,
        Err(why) => return trouble(seen, &visitor, &why).await,
    };
    let now = (version.digest == standing.digest()).then_some(number);
    let status = if told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let page = Compared {
        version: Some(shown(&version, now)),
        then: before.map(|before| differences(&before, &files)).unwrap_or_default(),
        draft: Draft { shown: checked.after, ..draft(&visitor, &standing, told) },
        outcome: checked.outcome,
    };
    page::framed_as(status, seen, &visitor, Some(Place::Policies), "Version", pages::version(&page)).await
}

/// Puts a version back, as a new one.
pub(in super::super) async fn roll_back(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let number: u64 = form.get("number").parse().unwrap_or(0);
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let files = match read(&seen, number) {
        Ok(Some((_, files, _))) => files,
        Ok(None) => return page::nothing_here(State(seen), visitor).await,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let changes = changes_to(&standing, &files);
    let checked = match check(&seen, &standing, &changes, Depth::Files).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    match press_save(&seen, &visitor, &form, &changes, &checked).await {
        Pressed::Saved(_) => Redirect::to("/policies?tab=versions").into_response(),
        Pressed::Not(why) => compared(&seen, visitor, number, Some(Told::bad("Not rolled back.", why))).await,
    }
}
