//! Coming in and going out.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderValue, REFERER, SET_COOKIE};
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::door::Door;
use portcullis_console::frame::Theme;
use portcullis_core::principal::Principal;
use serde::Deserialize;
use tracing::{info, warn};

use super::links::Good;
use super::sessions::Came;
use super::visitor::{Form, THEME_COOKIE, Visitor, cookie, cookie_name, theme_of};
use super::{Console, Seen, page, people};

/// How long the theme is kept, in seconds: a year.
const THEME_FOR_S: u32 = 31_536_000;

#[derive(Debug, Deserialize)]
pub(super) struct Followed {
    #[serde(default)]
    token: String,
}

pub(super) async fn sign_in_page(State(seen): State<Seen>, headers: HeaderMap) -> Response {
    let door = Door::SignIn { name: "", refused: None, people: seen.console.people.are_there() };
    page::door(StatusCode::OK, &door, &seen.console, theme_of(&headers))
}

pub(super) async fn sign_in(State(seen): State<Seen>, headers: HeaderMap, form: Form) -> Response {
    let (name, theme) = (form.get("name").trim().to_owned(), theme_of(&headers));
    let console = &seen.console;
    if let Err(left) = console.sessions.may_try(&name) {
        let door = Door::Pause { seconds: left.as_secs().max(1) };
        return page::door(StatusCode::TOO_MANY_REQUESTS, &door, console, theme);
    }
    let is_theirs = console.people.is_password(&name, form.get("password")).await;
    let role = console.people.role_of(&name).filter(|_| is_theirs);
    let Some(role) = role else {
        console.sessions.failed(&name);
        warn!(name = %name.escape_debug(), "console: an attempt to sign in failed");
        // No hint which of the two is wrong.
        let door = Door::SignIn { name: &name, refused: Some("Name or password is wrong."), people: true };
        return page::door(StatusCode::UNAUTHORIZED, &door, console, theme);
    };
    let role = if people::may_decide(&seen) { role } else { Role::Viewer };
    let principal = Principal { roles: vec![role.as_str().to_owned()], ..Principal::named(name) };
    come_in(&seen, principal, role, Came::ByPassword)
}

/// What a link would do. Looking at it uses nothing up: chats and mail programs look at links.
pub(super) async fn link_page(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Query(followed): Query<Followed>,
) -> Response {
    let (token, theme) = (followed.token.as_str(), theme_of(&headers));
    match seen.console.links.look_at(token) {
        None => page::door(StatusCode::GONE, &Door::Spent, &seen.console, theme),
        Some(Good::SignIn { principal, .. }) => {
            let door = Door::Link { token, name: &principal.id, role: Role::Admin };
            page::door(StatusCode::OK, &door, &seen.console, theme)
        }
        Some(Good::Invitation { name, role, .. }) => {
            let door = Door::Invitation { token, name: &name, role, refused: None };
            page::door(StatusCode::OK, &door, &seen.console, theme)
        }
    }
}

pub(super) async fn follow_link(State(seen): State<Seen>, headers: HeaderMap, form: Form) -> Response {
    match seen.console.links.take(form.get("token")) {
        Some(Good::SignIn { principal, of_this_machine }) => {
            come_in(&seen, principal, Role::Admin, Came::ByLink { of_this_machine })
        }
        _ => page::door(StatusCode::GONE, &Door::Spent, &seen.console, theme_of(&headers)),
    }
}

pub(super) async fn accept_invitation(State(seen): State<Seen>, headers: HeaderMap, form: Form) -> Response {
    let (token, theme) = (form.get("token"), theme_of(&headers));
    let spent = || page::door(StatusCode::GONE, &Door::Spent, &seen.console, theme);
    let Some(Good::Invitation { name, role, .. }) = seen.console.links.look_at(token) else { return spent() };
    if let Err(why) = may_be_chosen(&form) {
        let door = Door::Invitation { token, name: &name, role, refused: Some(&why) };
        return page::door(StatusCode::UNPROCESSABLE_ENTITY, &door, &seen.console, theme);
    }
    // It is used up before the password is set: of two who follow it at once, one chooses.
    let Some(Good::Invitation { name, role, by }) = seen.console.links.take(token) else { return spent() };
    if let Err(why) = chosen(&seen, form.get("password"), (&name, role), &by).await {
        let refused = format!("The password was not set. {why} Ask {by} for another invitation.");
        let people = seen.console.people.are_there();
        let door = Door::SignIn { name: &name, refused: Some(&refused), people };
        return page::door(StatusCode::INTERNAL_SERVER_ERROR, &door, &seen.console, theme);
    }
    seen.console.sessions.end_all_of(&name);
    let role = if people::may_decide(&seen) { role } else { Role::Viewer };
    let principal = Principal { roles: vec![role.as_str().to_owned()], ..Principal::named(name) };
    come_in(&seen, principal, role, Came::ByPassword)
}

/// Whether the password that somebody chose can be one.
fn may_be_chosen(form: &Form) -> Result<(), String> {
    let password = form.get("password");
    if password != form.get("again") {
        return Err("The two are not the same.".to_owned());
    }
    people::check_password(password)
}

/// Takes a password that somebody chose.
async fn chosen(seen: &Seen, password: &str, (name, role): (&str, Role), by: &str) -> Result<(), String> {
    let what = format!("{name}, whom {by} invited to the console as {}, chose a password", role.as_str());
    let recorded = people::record(seen, Principal::named(name), what).await;
    recorded.map_err(|failure| failure.told().1)?;
    seen.console.people.set(name, role, by, password).await
}

fn come_in(seen: &Seen, principal: Principal, role: Role, came: Came) -> Response {
    info!(name = %principal.id, role = role.as_str(), "console: somebody signed in");
    match seen.console.sessions.begin(principal, role, came) {
        Ok(secret) => {
            with_cookie(Redirect::to("/"), &session_cookie(&seen.console, &secret, "Max-Age=86400"))
        }
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot begin a session: {error}\n")).into_response()
        }
    }
}

fn session_cookie(console: &Console, value: &str, lasts: &str) -> String {
    let secure = if console.is_https() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; {lasts}{secure}", cookie_name(console))
}

fn with_cookie(answer: Redirect, cookie: &str) -> Response {
    let mut response = answer.into_response();
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, value);
    }
    response
}

pub(super) async fn sign_out(
    State(seen): State<Seen>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if let Err(refused) = form.of(&visitor) {
        return refused.page(&seen, &visitor).await;
    }
    if let Some(secret) = cookie(&headers, cookie_name(&seen.console)) {
        seen.console.sessions.end(secret);
    }
    with_cookie(Redirect::to("/sign-in"), &session_cookie(&seen.console, "", "Max-Age=0"))
}

pub(super) async fn theme(
    State(seen): State<Seen>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if let Err(refused) = form.of(&visitor) {
        return refused.page(&seen, &visitor).await;
    }
    let theme = Theme::from_name(form.get("theme")).unwrap_or_default();
    let secure = if seen.console.is_https() { "; Secure" } else { "" };
    let cookie =
        format!("{THEME_COOKIE}={}; Path=/; SameSite=Strict; Max-Age={THEME_FOR_S}{secure}", theme.as_str());
    with_cookie(Redirect::to(&own_path(&seen.console, &headers)), &cookie)
}

/// The page of ours that a form stood on.
fn own_path(console: &Console, headers: &HeaderMap) -> String {
    let from = headers.get(REFERER).and_then(|value| value.to_str().ok()).unwrap_or("");
    let path = from
        .strip_prefix(console.origin.as_str())
        .filter(|path| path.starts_with('/') && !path.starts_with("//"));
    path.unwrap_or("/").to_owned()
}
