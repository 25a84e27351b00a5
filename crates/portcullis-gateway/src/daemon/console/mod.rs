//! The console: pages for people, on a TCP address of its own.
//!
//! It is another surface of the same daemon: what a person may see and decide is checked by the code behind `/v1`, with
//! the identity of whoever signed in. The pages themselves are made in `portcullis-console`, which sees no request.
//!
//! A browser hands its cookies to every port of a host. On this machine the console therefore has a host name of its own
//! under `localhost`, which nobody learns but who signs in: a page that another process serves cannot be opened under
//! that name, so it is sent no cookie of the console.

mod approvals;
mod audit;
mod desk;
mod door;
mod evals;
mod health;
mod index;
mod links;
mod live;
mod log;
mod overview;
mod page;
mod people;
mod policies;
mod replay;
mod rows;
mod run;
mod runs;
mod selftest;
mod sessions;
mod setup;
mod simulate;
mod tally;
mod tools;
mod traced;
mod upload;
mod visitor;
mod window;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{FromRef, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use portcullis_console::assets;
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::links::Links;
pub(super) use self::links::make as make_link;
use self::people::People;
use self::sessions::Sessions;
pub(super) use self::tally::{Tally, TallyObserver};
use super::Shared;
use super::approvals::stats_now;
use super::error::DaemonError;
use crate::api;
use crate::home::Home;
use crate::state_file;

/// Bytes of a form: arguments that somebody edited are the longest.
const FORM_BYTES_MAX: usize = 2 << 20;
/// How old figures about decisions may be.
const STATS_FRESH: Duration = Duration::from_secs(60);
/// File in the state folder with the console's host name.
const HOST_FILE: &str = "host";

/// Where to serve the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleAt {
    /// The address to listen on.
    pub address: SocketAddr,
    /// How browsers reach it, such as `https://gate.example.com`, where something in front of it speaks TLS. `None` on
    /// this machine alone.
    pub origin: Option<String>,
}

/// What belongs to the console alone.
#[derive(Debug)]
pub(super) struct Console {
    /// `http://HOST:PORT`, as browsers send it.
    pub(super) origin: String,
    sessions: Sessions,
    links: Links,
    people: People,
    waits: live::Waiting,
    hub: live::Hub,
    indexes: index::Indexes,
    /// How approvals were decided, looked up now and then.
    decided: Mutex<Option<(Instant, Arc<api::Stats>)>>,
    pub(super) tally: Arc<Tally>,
    /// Where the bundle is changed.
    desk: desk::Desk,
    backtests: desk::KnownBacktests,
    simulations: simulate::Simulations,
    health: health::Health,
    forked: log::Known,
    /// Turns true before the daemon closes its runs.
    closing: watch::Receiver<bool>,
}

/// A console that listens already and serves nothing yet.
#[derive(Debug)]
pub(super) struct Listening {
    listener: TcpListener,
    /// Where it listens.
    pub(super) address: SocketAddr,
    console: Arc<Console>,
    close: watch::Sender<bool>,
}

/// What the handlers of the console see.
#[derive(Debug, Clone)]
struct Seen {
    shared: Shared,
    console: Arc<Console>,
}

impl FromRef<Seen> for Shared {
    fn from_ref(seen: &Seen) -> Self {
        seen.shared.clone()
    }
}

impl Console {
    fn host(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, host)| host)
    }

    /// How approvals were decided, at most so old. Not worth a failed page.
    async fn stats(&self, seen: &Seen) -> Option<Arc<api::Stats>> {
        let known = self.decided.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, stats)) = known.filter(|(at, _)| at.elapsed() < STATS_FRESH) {
            return Some(stats);
        }
        let stats = Arc::new(stats_now(&seen.shared).await.ok()?);
        *self.decided.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), Arc::clone(&stats)));
        Some(stats)
    }

    fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }
}

/// Listens where it is said to, and reads who may sign in.
pub(super) async fn listen(
    at: Option<&ConsoleAt>,
    home: &Home,
    tally: Arc<Tally>,
) -> Result<Option<Listening>, DaemonError> {
    let Some(at) = at else { return Ok(None) };
    if at.origin.is_none() && !at.address.ip().is_loopback() {
        return Err(DaemonError::ConsoleExposed(at.address));
    }
    let folder = home.console();
    let io = |source| DaemonError::Io { path: home.console(), source };
    state_file::make_private(&folder).map_err(io)?;
    state_file::make_private(&home.path().join(evals::FOLDER)).map_err(io)?;
    let listener = TcpListener::bind(at.address).await;
    let listener = listener.map_err(|source| DaemonError::Listen { address: at.address, source })?;
    let address = listener.local_addr().map_err(io)?;
    let port = address.port();
    let origin = match &at.origin {
        Some(origin) => checked_origin(origin)?,
        None => format!("http://{}.localhost:{port}", own_host(&folder.join(HOST_FILE)).map_err(io)?),
    };
    let people = People::load(&folder).map_err(|(path, source)| DaemonError::Io { path, source })?;
    let (close, closing) = watch::channel(false);
    let console = Console {
        origin,
        people,
        sessions: Sessions::default(),
        links: Links::default(),
        waits: live::Waiting::default(),
        hub: live::Hub::default(),
        indexes: index::Indexes::default(),
        decided: Mutex::default(),
        tally,
        desk: desk::Desk::of(home),
        backtests: desk::KnownBacktests::default(),
        simulations: simulate::Simulations::default(),
        health: health::Health::default(),
        forked: log::Known::default(),
        closing,
    };
    Ok(Some(Listening { listener, address, console: Arc::new(console), close }))
}

impl Listening {
    pub(super) fn console(&self) -> Arc<Console> {
        Arc::clone(&self.console)
    }

    /// The listener and what it serves, and the hand that ends its streams.
    pub(super) fn router(self, shared: Shared) -> (TcpListener, Router, watch::Sender<bool>) {
        let seen = Seen { shared, console: self.console };
        tokio::spawn(live::keep_counting(seen.clone()));
        tokio::spawn(live::keep_telling(seen.clone()));
        health::look(&seen);
        (self.listener, router(seen), self.close)
    }
}

/// `https://HOST[:PORT]` and nothing more.
fn checked_origin(text: &str) -> Result<String, DaemonError> {
    let refused = || DaemonError::ConsoleOrigin(text.chars().take(200).collect());
    let url = url::Url::parse(text).map_err(|_| refused())?;
    let bare =
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if url.scheme() != "https" || !bare || !url.has_host() {
        return Err(refused());
    }
    Ok(url.origin().ascii_serialization())
}

/// The host name of this state folder's console: made once, so that the browser's bookmarks stay.
fn own_host(file: &std::path::Path) -> std::io::Result<String> {
    if let Ok(text) = std::fs::read_to_string(file) {
        let name = text.trim();
        if name.len() == 26 && name.starts_with("p-") && name.bytes().skip(2).all(|b| b.is_ascii_hexdigit()) {
            return Ok(name.to_owned());
        }
    }
    let name = format!("p-{}", sessions::random_hex(12)?);
    state_file::write_private(file, name.as_bytes())?;
    Ok(name)
}

fn router(seen: Seen) -> Router {
    let style = assets::style_path();
    let script = assets::script_path();
    Router::new()
        .route("/", get(overview::overview))
        .route("/sign-in", get(door::sign_in_page).post(door::sign_in))
        .route("/sign-in/link", get(door::link_page).post(door::follow_link))
        .route("/sign-in/invitation", post(door::accept_invitation))
        .route("/sign-out", post(door::sign_out))
        .route("/theme", post(door::theme))
        .route("/people", get(people::page).post(people::invite))
        .route("/people/remove", post(people::remove))
        .route("/approvals", get(approvals::inbox))
        .route("/approvals/together", get(approvals::together).post(approvals::grant_together))
        .route("/approvals/{approval}", get(approvals::open).post(approvals::decide))
        .route("/runs", get(runs::list))
        .route("/runs/{run}", get(run::page).post(run::control))
        .route("/runs/{run}/replay", get(replay::replayed))
        .route("/runs/{run}/verify", get(replay::verified))
        .route("/setup", get(setup::page).post(setup::update))
        .route("/tools", get(tools::list))
        .route("/tools/edit", get(tools::edit).post(tools::save))
        .route("/tools/accept", post(tools::accept))
        .route("/policies", get(policies::list))
        .route("/policies/edit", get(policies::edit).post(policies::save))
        .route("/policies/file", get(policies::file).post(policies::save_file))
        .route("/policies/version", get(policies::version).post(policies::roll_back))
        .route("/policies/dismiss", post(policies::dismiss))
        .route("/simulate", get(simulate::page).post(simulate::start))
        .route("/simulate/plan", get(simulate::plan).post(simulate::save_plan))
        .route("/simulate/{number}", get(simulate::watched).post(simulate::step))
        .route("/verification", get(audit::verification))
        .route("/audit", get(audit::audit))
        .route(
            "/audit/verify",
            post(upload::verify_upload).layer(axum::extract::DefaultBodyLimit::max(upload::UPLOAD_BYTES_MAX)),
        )
        .route("/audit/{run}/{file}", get(audit::download))
        .route("/evaluation", get(evals::page))
        .route("/live", get(live::stream))
        .route("/live/now", get(live::now))
        .route(style, get(|| async { asset("text/css; charset=utf-8", assets::STYLE) }))
        .route(script, get(|| async { asset("text/javascript; charset=utf-8", assets::SCRIPT) }))
        .fallback(page::nothing_here)
        .layer(middleware::from_fn_with_state(seen.clone(), guarded))
        .layer(axum::extract::DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(seen)
}

/// Named by its content, so it never changes under its name.
fn asset(media_type: &'static str, text: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, text).into_response()
}

/// What holds for every request and every answer.
async fn guarded(State(seen): State<Seen>, request: axum::extract::Request, next: Next) -> Response {
    let theme = visitor::theme_of(request.headers());
    let mut response = match visitor::foreign(&seen.console, &request) {
        None => next.run(request).await,
        Some(visitor::Foreign::Host) => {
            let text = "this is not the address of the console; `portcullis console` prints a link to it\n";
            (StatusCode::MISDIRECTED_REQUEST, text).into_response()
        }
        Some(visitor::Foreign::Origin) => page::door(
            StatusCode::FORBIDDEN,
            &portcullis_console::door::Door::Elsewhere,
            &seen.console,
            theme,
        ),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, assets::CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Others learn no address of ours, and our own forms keep their origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (
            header::HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=()",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
