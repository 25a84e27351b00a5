//! Who makes a request, and whether it comes from a page of the console.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::html;
use portcullis_console::Role;
use portcullis_console::door::Door;
use portcullis_console::frame::{Theme, trouble};
use portcullis_core::principal::CredentialKind;
use portcullis_session::credentials::Identity;

use super::sessions::{Came, Known, Session};
use super::{Console, Seen, page, people};

/// Cookie of the theme.
pub(super) const THEME_COOKIE: &str = "portcullis-theme";
/// Fields of a form.
const FIELDS_MAX: usize = 400;

/// Why a request is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreign {
    /// It is for another host.
    Host,
    /// A page of another origin may have caused it.
    Origin,
}

/// Refuses what a page of others could have caused: another `Host` (a name that was pointed here), and changes from
/// another `Origin`. A browser names the origin with every change.
pub(super) fn foreign(console: &Console, request: &Request) -> Option<Foreign> {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let host = text(HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    if !host.is_some_and(|host| host.eq_ignore_ascii_case(console.host())) {
        return Some(Foreign::Host);
    }
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = text(ORIGIN);
    let own = origin.is_some_and(|origin| origin.eq_ignore_ascii_case(&console.origin));
    let fine = own || (looks && origin.is_none());
    (!fine).then_some(Foreign::Origin)
}

/// The name of the session's cookie. With TLS the browser takes it from this host alone.
pub(super) fn cookie_name(console: &Console) -> &'static str {
    if console.is_https() { "__Host-portcullis" } else { "portcullis" }
}

pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

pub(super) fn theme_of(headers: &HeaderMap) -> Theme {
    cookie(headers, THEME_COOKIE).and_then(Theme::from_name).unwrap_or_default()
}

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    pub(super) session: Session,
    pub(super) theme: Theme,
}

/// A request that is refused to somebody who is signed in.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    heading: &'static str,
    what: String,
}

impl Refused {
    pub(super) async fn page(self, seen: &Seen, visitor: &Visitor) -> Response {
        let body = trouble(self.heading, &self.what, &html! { a .btn href="/" { "To the overview" } });
        page::framed_as(self.status, seen, visitor, None, self.heading, body).await
    }
}

impl Visitor {
    /// Whether they may do what takes that role.
    pub(super) fn at_least(&self, role: Role) -> Result<(), Refused> {
        if self.session.role >= role {
            return Ok(());
        }
        let what = format!(
            "This takes the role {}, and you are signed in as {}. Nothing was changed.",
            role.as_str(),
            self.session.role.as_str()
        );
        Err(Refused { status: StatusCode::FORBIDDEN, heading: "Not with this role", what })
    }

    /// What the code behind `/v1` knows them as. Whoever may not decide is no approver there either.
    pub(super) fn identity(&self) -> Identity {
        let kind = match self.session.role {
            Role::Viewer => CredentialKind::Agent,
            Role::Approver | Role::Editor | Role::Admin => CredentialKind::Approver,
        };
        Identity { kind, principal: self.session.principal.clone(), policy: None, of_this_machine: false }
    }

    /// What they may look at: everything that an approver sees.
    pub(super) fn looking(&self) -> Identity {
        Identity { kind: CredentialKind::Approver, ..self.identity() }
    }
}

/// The session as it stands now: whom the bundle no longer maps, or who was removed, is signed out; whose role changed
/// has the new one.
fn as_it_stands(seen: &Seen, mut session: Session) -> Option<Session> {
    let (_, bundle) = seen.shared.gate.bundles().get(None).ok()?;
    let name = &session.principal.id;
    let maps =
        |credential: &&portcullis_core::bundle::Credential| credential.kind == CredentialKind::Approver;
    match session.came {
        Came::ByLink { of_this_machine: true } => {
            bundle.credentials.iter().find(maps).is_none().then_some(session)
        }
        Came::ByLink { of_this_machine: false } => {
            let mapped =
                bundle.credentials.iter().filter(maps).find(|credential| credential.principal.id == *name)?;
            session.principal = mapped.principal.clone();
            Some(session)
        }
        Came::ByPassword => {
            let role = seen.console.people.role_of(name)?;
            session.role = if people::may_decide(seen) { role } else { Role::Viewer };
            Some(session)
        }
    }
}

impl FromRequestParts<Seen> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, seen: &Seen) -> Result<Self, Response> {
        let theme = theme_of(&parts.headers);
        let secret = cookie(&parts.headers, cookie_name(&seen.console));
        let known = secret.map_or(Known::No, |secret| seen.console.sessions.request(secret));
        let session = match known {
            Known::Yes(session) => as_it_stands(seen, session),
            Known::No => None,
            Known::TooMany => {
                let door = Door::Pause { seconds: 10 };
                return Err(page::door(StatusCode::TOO_MANY_REQUESTS, &door, &seen.console, theme));
            }
        };
        session.map(|session| Self { session, theme }).ok_or_else(|| not_signed_in(parts, seen, theme))
    }
}

/// Where somebody who is not signed in gets to. A link in a chat or a mail is followed without the cookie, which the
/// browser keeps from requests that others cause; the same page opened by ourselves is sent it.
fn not_signed_in(parts: &Parts, seen: &Seen, theme: Theme) -> Response {
    let site = parts.headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let accepts_pages = parts.method == Method::GET && !parts.uri.path().starts_with("/live");
    if accepts_pages && site == Some("cross-site") {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        return page::again(path);
    }
    if accepts_pages {
        return Redirect::to("/sign-in").into_response();
    }
    let refused = Some("You are not signed in any more. Sign in, and try again: nothing was changed.");
    let people = seen.console.people.are_there();
    page::door(StatusCode::UNAUTHORIZED, &Door::SignIn { name: "", refused, people }, &seen.console, theme)
}

/// The fields of a form.
#[derive(Debug)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// The first field of that name, or nothing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field that says something.
    pub(super) fn said(&self, name: &str) -> Option<String> {
        let text = self.get(name).trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Whether it comes from a page of this session.
    pub(super) fn of(&self, visitor: &Visitor) -> Result<(), Refused> {
        visitor.is_own_form(self.get("csrf"))
    }
}

impl Visitor {
    /// Whether a form that carries this token comes from a page of this session.
    pub(super) fn is_own_form(&self, token: &str) -> Result<(), Refused> {
        let (given, known) = (token.as_bytes(), self.session.csrf.as_bytes());
        let differ = given.iter().zip(known).fold(0, |differ, (one, other)| differ | (one ^ other));
        if given.len() == known.len() && differ == 0 {
            return Ok(());
        }
        let what = "The form does not come from a page of your session. Nothing was changed. Open the page again, and repeat it there.";
        Err(Refused { status: StatusCode::FORBIDDEN, heading: "Refused", what: what.to_owned() })
    }
}

impl FromRequest<Seen> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, seen: &Seen) -> Result<Self, Response> {
        let refused = |status: StatusCode, message: &'static str| (status, message).into_response();
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        if kind.split(';').next() != Some("application/x-www-form-urlencoded") {
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send a form\n"));
        }
        let read = super::super::connections::in_time(axum::body::Bytes::from_request(request, seen)).await;
        let Ok(Ok(body)) = read else {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                "the form is too long, or did not arrive in time\n",
            ));
        };
        let fields: Vec<_> = url::form_urlencoded::parse(&body).into_owned().take(FIELDS_MAX).collect();
        Ok(Self(fields))
    }
}
