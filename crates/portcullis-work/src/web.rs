//! Requests that criteria make: a GET, with a deadline over all of it.
//!
//! Whoever wrote the criterion said where it goes, and it goes nowhere else. A name leads to public addresses unless the
//! criterion says `private`; it is looked up once, and exactly the addresses that were looked at are dialled. A redirect
//! is another place that nobody named, so that it never leads to private addresses but those of the same host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use portcullis_contain::address::refusal;
use portcullis_core::host::Reach;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

use super::{NotPassed, error, fail};

/// Most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Get<'a> {
    pub(super) url: &'a str,
    /// Names may lead to private addresses.
    pub(super) private: bool,
    /// Redirects that are followed.
    pub(super) redirects: u32,
    pub(super) deadline: Duration,
    /// What goes into `Accept` and `Authorization`.
    pub(super) accept: &'a str,
    pub(super) authorization: Option<&'a str>,
    /// Most bytes of the body; none: it is not read.
    pub(super) body_bytes_max: Option<usize>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Where it came from, which redirects may have changed.
    pub(super) url: Url,
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Reads a URL.
pub(super) fn url(text: &str) -> Result<Url, NotPassed> {
    let wrong = |why: &str| error(format!("`{text}` cannot be asked: {why}"));
    let url = Url::parse(text).or_else(|why| wrong(&why.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("it is neither http nor https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it has a user or a password in it");
    }
    Ok(url)
}

/// Asks, and waits for the answer on this thread.
pub(super) fn get(request: &Get<'_>) -> Result<Answer, NotPassed> {
    let first = url(request.url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_else(|why| error(format!("no request can be made: {why}")))?;
    let answer = runtime.block_on(async {
        match tokio::time::timeout(request.deadline, follow(request, first)).await {
            Ok(answer) => answer,
            Err(_) => {
                Err(NotPassed::Timeout(format!("no answer after {} s", request.deadline.as_secs_f32())))
            }
        }
    });
    // A lookup of a name may take minutes, and nobody waits for it any more.
    runtime.shutdown_background();
    answer
}

async fn follow(request: &Get<'_>, first: Url) -> Result<Answer, NotPassed> {
    let mut at = first.clone();
    for followed in 0..=request.redirects {
        let answer = ask(request, &first, at.clone()).await?;
        let next = match (answer.status, &answer.location) {
            (301 | 302 | 303 | 307 | 308, Some(next)) if followed < request.redirects => next,
            _ => return Ok(answer),
        };
        let next = at.join(next).or_else(|why| error(format!("`{at}` redirects to no URL: {why}")))?;
        at = url(next.as_str())?;
    }
    error("more redirects than are followed")
}

async fn ask(request: &Get<'_>, first: &Url, at: Url) -> Result<Answer, NotPassed> {
    let host = host(&at)?;
    let reach = reach(&host, request.private, at.host() == first.host());
    let port = at.port_or_known_default().unwrap_or(80);
    let addresses = addresses(&host, port, reach).await?;
    let stream = dial(&at, &addresses).await?;
    let connected = match at.scheme() {
        "https" => {
            let name = host.to_string();
            let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned());
            let name = name.or_else(|_| error(format!("`{host}` is no name for TLS")))?;
            let secured = connector()?.connect(name, stream).await;
            converse(secured.or_else(|why| error(format!("`{at}`: TLS failed: {why}")))?).await
        }
        _ => converse(stream).await,
    };
    let mut sender = connected.or_else(|why| error(format!("`{at}`: {why}")))?;
    // Nothing is sent to a place that the author of the criterion did not give it to.
    let authorization = request.authorization.filter(|_| at.origin() == first.origin());
    let sent = sender.send_request(written(request, &at, authorization)?).await;
    let response = sent.or_else(|why| error(format!("`{at}` gave no answer of HTTP: {why}")))?;
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = match request.body_bytes_max {
        Some(limit) => read(response, limit).await.or_else(|why| error(format!("`{at}`: {why}")))?,
        None => Vec::new(),
    };
    Ok(Answer { status, url: at, location, body })
}

fn written(
    request: &Get<'_>,
    at: &Url,
    authorization: Option<&str>,
) -> Result<Request<Empty<Bytes>>, NotPassed> {
    let target = match at.query() {
        Some(query) => format!("{}?{query}", at.path()),
        None => at.path().to_owned(),
    };
    let name = at.host_str().unwrap_or_default();
    let host = at.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    let mut written = Request::get(target)
        .header(HOST, host)
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, request.accept);
    if let Some(authorization) = authorization {
        written = written.header(AUTHORIZATION, authorization);
    }
    written.body(Empty::new()).or_else(|why| error(format!("`{at}` cannot be asked: {why}")))
}

fn host(at: &Url) -> Result<Host<String>, NotPassed> {
    match at.host() {
        Some(host) => Ok(host.to_owned()),
        None => error(format!("`{at}` has no host")),
    }
}

/// Which addresses a host may have. `named`: whoever wrote the criterion named it.
fn reach(host: &Host<String>, private: bool, named: bool) -> Reach {
    match host {
        Host::Ipv4(_) | Host::Ipv6(_) if named => Reach::Literal,
        Host::Domain(name) if named && (name == "localhost" || name.ends_with(".localhost")) => {
            Reach::Loopback
        }
        _ if private => Reach::Private,
        _ => Reach::Public,
    }
}

async fn addresses(host: &Host<String>, port: u16, reach: Reach) -> Result<Vec<SocketAddr>, NotPassed> {
    let found: Vec<IpAddr> = match host {
        Host::Ipv4(address) => vec![(*address).into()],
        Host::Ipv6(address) => vec![(*address).into()],
        Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(why) => return error(format!("the name `{host}` was not found: {why}")),
        },
    };
    for address in &found {
        if let Some(why) = refusal(reach, *address) {
            return error(format!(
                "`{host}` leads to {address}, {why}; where that is meant, name the address in the URL, or say `\"private\": true` of a name"
            ));
        }
    }
    Ok(found.into_iter().take(ADDRESSES_MAX).map(|address| SocketAddr::new(address, port)).collect())
}

/// A connection to the first address that takes one. Where all of them say that nobody listens, the service is not there,
/// which is a failure of the work and no error.
async fn dial(at: &Url, addresses: &[SocketAddr]) -> Result<TcpStream, NotPassed> {
    let mut problem = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(why) => problem = Some((address, why)),
        }
    }
    match problem {
        Some((address, why)) if why.kind() == std::io::ErrorKind::ConnectionRefused => {
            fail(format!("nobody listens at {address}"))
        }
        Some((address, why)) => error(format!("`{at}` was not reached at {address}: {why}")),
        None => error(format!("`{at}`: its name has no address")),
    }
}

async fn converse<S>(stream: S) -> hyper::Result<SendRequest<Empty<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) =
        Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await?;
    // It ends with its sender, and what goes wrong on it also ends the request, which says so.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Vec<u8>, String> {
    let body = Limited::new(response.into_body(), limit).collect().await;
    let body = body.map_err(|why| match why.is::<LengthLimitError>() {
        true => format!("the answer has more than {limit} bytes, which is the limit"),
        false => format!("the answer was cut short: {why}"),
    })?;
    Ok(body.to_bytes().to_vec())
}

/// TLS with the certificate authorities that the system trusts.
fn connector() -> Result<TlsConnector, NotPassed> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return error("the system's certificate authorities cannot be read; install `ca-certificates`");
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
