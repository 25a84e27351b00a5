//! Answers: framed pages, and the pages at the door.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::html;
use portcullis_console::Markup;
use portcullis_console::door::{self, Door};
use portcullis_console::frame::{Frame, GateStands, Page, Place, Theme, trouble};
use portcullis_core::event::Mode;

use super::super::error::Failure;
use super::super::freezes;
use super::visitor::Visitor;
use super::{Console, Seen, log};

fn document(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// A page at the door.
pub(super) fn door(status: StatusCode, door: &Door<'_>, console: &Console, theme: Theme) -> Response {
    document(status, door::page(door, console.host(), theme))
}

/// A page that opens another one of ours, as ourselves.
pub(super) fn again(path: &str) -> Response {
    let text = html! {
        (maud::DOCTYPE)
        html lang="en" { head { meta charset="utf-8"; meta http-equiv="refresh" content={ "0; url=" (path) }; title { "Portcullis" } } body { a href=(path) { "Continue" } } }
    };
    document(StatusCode::OK, text.into_string())
}

/// A page with the bar and the places around it.
pub(super) async fn framed(
    seen: &Seen,
    visitor: &Visitor,
    place: Place,
    title: &str,
    body: Markup,
) -> Response {
    framed_as(StatusCode::OK, seen, visitor, Some(place), title, body).await
}

pub(super) async fn framed_as(
    status: StatusCode,
    seen: &Seen,
    visitor: &Visitor,
    place: Option<Place>,
    title: &str,
    body: Markup,
) -> Response {
    let frame = Frame {
        name: visitor.session.principal.id.clone(),
        role: visitor.session.role,
        csrf: visitor.session.csrf.clone(),
        theme: visitor.theme,
        waits: seen.console.waits.now(seen).await,
        gate: gate_stands(seen).await,
    };
    document(status, frame.page(&Page { place, title, body }))
}

async fn gate_stands(seen: &Seen) -> GateStands {
    let gate = &seen.shared.gate;
    let bundle = gate.bundles().get(None).ok().map(|(_, bundle)| bundle);
    let digest = bundle.as_ref().map(|bundle| bundle.digest().to_string()).unwrap_or_default();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    GateStands {
        enforcing: bundle.is_some_and(|bundle| bundle.mode == Mode::Enforce),
        bundle: hex.get(..8).unwrap_or_default().to_owned(),
        unrecorded: gate.ledger().check_present().err().map(|error| error.to_string()),
        freezes: freezes::in_force(&seen.shared).await.map_or(0, |freezes| freezes.len()),
        forked: log::forked(seen).await,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// A failure of the code behind, as a page.
pub(super) async fn failed(seen: &Seen, visitor: &Visitor, failure: Failure) -> Response {
    let status = failure.status();
    let (_, message) = failure.told();
    let heading = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Refused",
        status if status.is_server_error() => "The gate could not do this",
        _ => "This did not work",
    };
    let body = trouble(heading, &message, &html! { a .btn href="/" { "To the overview" } });
    framed_as(status, seen, visitor, None, heading, body).await
}

pub(super) async fn nothing_here(State(seen): State<Seen>, visitor: Visitor) -> Response {
    let body =
        trouble("Not found", "There is no such page.", &html! { a .btn href="/" { "To the overview" } });
    framed_as(StatusCode::NOT_FOUND, &seen, &visitor, None, "Not found", body).await
}
