//! Versions of the bundle: what each changed, and how it is put back.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::policies::{self as pages, Compared, Version as Shown};
use serde::Deserialize;

use super::super::desk::check::differences;
use super::super::desk::{self, Depth, Files, Standing, Version, changes_between, check, short};
use super::super::visitor::{Form, Visitor};
use super::super::{Seen, page};
use super::{Pressed, draft, press_save, trouble};

#[derive(Debug, Deserialize)]
pub(in super::super) struct Which {
    number: u64,
}

/// All versions, the newest first.
pub(super) fn listed(seen: &Seen, standing: &Standing) -> Result<Vec<Shown>, String> {
    let all =
        seen.console.desk.versions().list(standing.source.as_deref()).map_err(|error| error.to_string())?;
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

/// A version, its files, and what it had changed then.
fn read(
    seen: &Seen,
    standing: &Standing,
    number: u64,
) -> Result<Option<(Version, Files, Option<Files>)>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let versions = seen.console.desk.versions();
    // A version of another bundle is none of this one.
    let all = versions.list(standing.source.as_deref()).map_err(failed)?;
    let Some(version) = all.into_iter().find(|version| version.number == number) else { return Ok(None) };
    let files = versions.files(&version).map_err(failed)?;
    let before = match versions.before(&version).map_err(failed)? {
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
    let (version, files, before) = match read(seen, &standing, number) {
        Ok(Some(found)) => found,
        Ok(None) => return page::nothing_here(State(seen.clone()), visitor).await,
        Err(why) => return trouble(seen, &visitor, &why).await,
    };
    let checked = match check(seen, &standing, &changes_between(&standing.files, &files), Depth::Runs).await {
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
    let files = match read(&seen, &standing, number) {
        Ok(Some((_, files, _))) => files,
        Ok(None) => return page::nothing_here(State(seen), visitor).await,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let changes = changes_between(&standing.files, &files);
    let checked = match check(&seen, &standing, &changes, Depth::Files).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    match press_save(&seen, &visitor, &form, &changes, &checked).await {
        Pressed::Saved(_) => Redirect::to("/policies?tab=versions").into_response(),
        Pressed::Not(why) => compared(&seen, visitor, number, Some(Told::bad("Not rolled back.", why))).await,
    }
}
