//! The editor of any file of the bundle: access policies, programs, tests, and the rest.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::policies::{self as pages, FileEditing, Tab, encoded};
use serde::Deserialize;

use super::super::desk::{self, Changes, Checked, Depth, Standing, check};
use super::super::visitor::{Form, Visitor};
use super::super::{Seen, page};
use super::{Pressed, draft, press_save, text_of, trouble, wrong};

#[derive(Debug, Default, Deserialize)]
pub(in super::super) struct Which {
    #[serde(default)]
    path: String,
    #[serde(default)]
    new: String,
}

pub(in super::super) async fn file(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let new = which.new == "yes";
    let there = standing.files.contains_key(&which.path);
    if !desk::is_own_path(&which.path) || (!new && !there) {
        return page::nothing_here(State(seen), visitor).await;
    }
    let text = standing.text(&which.path);
    let checked = match check(&seen, &standing, &Changes::new(), Depth::Files).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let given = Given { new: new && !there, path: which.path, text, told: None };
    rendered(&seen, &visitor, &standing, given, checked).await
}

struct Given {
    new: bool,
    path: String,
    text: String,
    told: Option<Told>,
}

async fn rendered(
    seen: &Seen,
    visitor: &Visitor,
    standing: &Standing,
    given: Given,
    mut checked: Checked,
) -> Response {
    let status = if given.told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    // Of the whole bundle, what is about other files is shown where these are edited.
    checked.outcome.lints.retain(|linted| linted.new || linted.lint.diagnostic.file == given.path);
    let editing = FileEditing {
        new: given.new,
        wrong: wrong(&checked.outcome, &given.path),
        text: given.text,
        draft: Draft { shown: checked.after, ..draft(visitor, standing, given.told) },
        outcome: checked.outcome,
        path: given.path,
    };
    page::framed_as(status, seen, visitor, Some(Place::Policies), "File of the bundle", pages::file(&editing))
        .await
}

pub(in super::super) async fn save_file(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let (path, new) = (form.get("path").trim().to_owned(), form.get("new") == "yes");
    let mut given = Given { new, path, text: text_of(&form, "text"), told: None };
    if !desk::is_own_path(&given.path) {
        let why = "A file of the bundle is below `access/`, `programs/`, `tests/`, `tools/`, `plans/`, `sequences/` or `contracts/`, and its name has letters, digits, `-`, `_` and `.`.";
        given.told = Some(Told::bad("Not saved.", why));
    } else if new && standing.files.contains_key(&given.path) {
        given.told = Some(Told::bad("Not saved.", format!("`{}` is there already.", given.path)));
    }
    let valid = given.told.is_none();
    // An empty file is taken out of the bundle.
    let text = (!given.text.is_empty()).then(|| given.text.clone());
    let changes: Changes = if valid { [(given.path.clone(), text)].into() } else { Changes::new() };
    let checked = match check(&seen, &standing, &changes, Depth::Runs).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    if valid && form.get("do") == "save" {
        match press_save(&seen, &visitor, &form, &changes, &checked).await {
            Pressed::Saved(version) => {
                let tab = Tab::of_file(&given.path).as_str();
                let to = format!("/policies?tab={tab}&saved={version}&name={}", encoded(&given.path));
                return Redirect::to(&to).into_response();
            }
            Pressed::Not(why) => given.told = Some(Told::bad("Not saved.", why)),
        }
    }
    rendered(&seen, &visitor, &standing, given, checked).await
}
