//! System Setup: the knowledge base, which simulator and verifier read.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::Told;
use portcullis_console::frame::Place;
use portcullis_console::setup::{self as pages, Setup};
use portcullis_core::event::Mode;
use serde::Deserialize;

use super::desk::{self, Changes, NotSaved, Standing, short};
use super::policies::{draft, text_of, trouble};
use super::visitor::{Form, Visitor};
use super::{Seen, page as pages_of};

/// The file.
const FILE: &str = "knowledge.json";

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    saved: Option<u64>,
}

pub(super) async fn page(State(seen): State<Seen>, visitor: Visitor, Query(which): Query<Which>) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let told = which.saved.map(|version| {
        let rest =
            format!("Simulator and verifier read it from now on. It is version {version} of the bundle.");
        Told::good("Knowledge Base updated successfully!", rest)
    });
    let text = standing.text(FILE);
    shown(&seen, &visitor, &standing, Given { text, wrong: None, refused: None, told }).await
}

struct Given {
    text: String,
    wrong: Option<usize>,
    refused: Option<String>,
    told: Option<Told>,
}

async fn shown(seen: &Seen, visitor: &Visitor, standing: &Standing, given: Given) -> Response {
    let bad = given.refused.is_some()
        || given.told.as_ref().is_some_and(|told| told.standing == portcullis_console::marks::Standing::Bad);
    let bundle = &standing.bundle;
    let mode = if bundle.mode == Mode::Enforce { "enforce" } else { "observe" };
    let managed = match &standing.closed {
        Some(desk::Closed::Git(_)) => "git",
        Some(desk::Closed::ReadOnly(_)) => "others: the gate may not write there",
        None => "this console",
    };
    let page = Setup {
        text: given.text,
        wrong: given.wrong.into_iter().collect::<BTreeSet<_>>(),
        refused: given.refused,
        documents: bundle.knowledge.len(),
        facts: vec![
            ("digest", short(&bundle.digest().to_string()).to_owned()),
            ("mode", mode.to_owned()),
            ("folder", standing.place()),
            ("managed by", managed.to_owned()),
            ("unknown tools", bundle.unknown_tools.as_str().to_owned()),
            ("default policy", bundle.default_policy().to_owned()),
        ],
        draft: draft(visitor, standing, given.told),
    };
    let status = if bad { StatusCode::CONFLICT } else { StatusCode::OK };
    pages_of::framed_as(status, seen, visitor, Some(Place::Setup), Place::Setup.name(), pages::page(&page))
        .await
}

/// The line and the reason where a text is no knowledge base.
fn refused(text: &str) -> Option<(usize, String)> {
    let error = serde_json::from_str::<BTreeMap<String, String>>(text).err()?;
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default().to_owned();
    Some((error.line(), format!("Line {}, column {}: {what}.", error.line(), error.column())))
}

/// Puts a knowledge base in force, if it is one.
pub(super) async fn update(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let text = text_of(&form, "knowledge");
    if let Some((line, why)) = refused(&text) {
        let given = Given { text, wrong: Some(line), refused: Some(why), told: None };
        return shown(&seen, &visitor, &standing, given).await;
    }
    let changes: Changes = [(FILE.to_owned(), Some(text.clone()))].into();
    let saved =
        seen.console.desk.save(&seen, &visitor, form.get("base"), &changes, "the knowledge base").await;
    let told = match saved {
        Ok(version) => return Redirect::to(&format!("/setup?saved={version}")).into_response(),
        Err(NotSaved::Mistakes(mistakes)) => {
            let first = mistakes.first();
            let given = Given {
                wrong: first.map(|mistake| mistake.line),
                refused: first.map(|mistake| format!("{mistake}.")),
                told: None,
                text,
            };
            return shown(&seen, &visitor, &standing, given).await;
        }
        Err(why) => Told::bad("Not updated.", why.sentence()),
    };
    shown(&seen, &visitor, &standing, Given { text, wrong: None, refused: None, told: Some(told) }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_knowledge_base_says_where() {
        assert_eq!(refused("{\"doc_001\": \"text\"}"), None);
        let (line, why) = refused("{\n  \"a\": \"x\"\n  \"b\": \"y\"\n}").unwrap();
        assert_eq!(line, 3);
        assert!(why.starts_with("Line 3, column 3: expected"), "{why}");
        for wrong in ["[]", "{\"a\": 1}", "", "{\"a\": \"b\"} x"] {
            assert!(refused(wrong).is_some(), "{wrong}");
        }
    }
}
