//! Requests to authorization servers and for metadata, whose addresses others have named.
//!
//! A document may send us to another address, and its author may want us somewhere that only this machine can reach. So an
//! address that was learned is followed only to places that are as open as the one it was learned from: from the public
//! network to the public network, from a private one to that or the public one, from loopback anywhere. What a name
//! resolves to is looked at, and exactly that is connected to. Redirects are not followed, and size and time have limits.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue, USER_AGENT, WWW_AUTHENTICATE};
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use portcullis_contain::address::refusal;
use portcullis_core::host::Reach;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use super::metadata::secure;
use super::shown;
use crate::origin::connector;

/// Longest answer, in bytes: keys and metadata have a few thousand.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Longest time for a request, from the look-up of its name to the end of the answer.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(10);
/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

/// How open a place is, the most open first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    /// The public network.
    Public,
    /// A private network.
    Private,
    /// This machine.
    Loopback,
}

impl Place {
    /// Where an address is; an error says what it is, where nothing of ours goes.
    fn of(address: IpAddr) -> Result<Self, &'static str> {
        match refusal(Reach::Private, address) {
            Some(what) => Err(what),
            None if refusal(Reach::Loopback, address).is_none() => Ok(Self::Loopback),
            None if refusal(Reach::Public, address).is_none() => Ok(Self::Public),
            None => Ok(Self::Private),
        }
    }
}

/// A request, to be sent once.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl<'a> Asked<'a> {
    /// Asks for a document.
    pub(crate) fn document(url: &'a Url) -> Self {
        let headers = vec![(ACCEPT, HeaderValue::from_static("application/json"))];
        Self { method: Method::GET, url, headers, body: Bytes::new() }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The challenges of the answer.
    pub(crate) challenges: String,
    pub(crate) body: Vec<u8>,
    /// Where it came from.
    pub(crate) place: Place,
}

impl Answer {
    /// The body of an answer that is a document.
    pub(crate) fn document(&self, url: &Url) -> Result<&[u8], String> {
        let at = shown(url.as_str());
        match self.status {
            200 => Ok(&self.body),
            300..400 => Err(format!("`{at}`: HTTP status {}; redirects are not followed", self.status)),
            other => Err(format!("`{at}`: HTTP status {other}")),
        }
    }
}

/// Sends a request to a place that is as open as `learned_from`, and reads the answer whole.
///
/// # Errors
/// What keeps it from being sent or answered, with the address, and nothing of what was sent or answered.
pub(crate) async fn ask(asked: Asked<'_>, learned_from: Place) -> Result<Answer, String> {
    send(asked, learned_from, true).await
}

/// The same, without reading what comes after the head of the answer: a stream may come there.
pub(crate) async fn ask_head(asked: Asked<'_>, learned_from: Place) -> Result<Answer, String> {
    send(asked, learned_from, false).await
}

async fn send(asked: Asked<'_>, learned_from: Place, whole: bool) -> Result<Answer, String> {
    secure(asked.url)?;
    let at = shown(asked.url.as_str());
    let answered = timeout(TIME_MAX, exchange(asked, learned_from, whole)).await;
    let answered = answered.unwrap_or_else(|_| Err(format!("no answer within {} s", TIME_MAX.as_secs())));
    answered.map_err(|why| format!("`{at}`: {why}"))
}

async fn exchange(asked: Asked<'_>, learned_from: Place, whole: bool) -> Result<Answer, String> {
    let (stream, place) = connect(asked.url, learned_from).await?;
    let mut sender = match asked.url.scheme() {
        "https" => {
            let name = host(asked.url)?;
            let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
            let tls = connector()?.connect(name, stream).await.map_err(|error| error.to_string())?;
            converse(tls).await?
        }
        _ => converse(stream).await?,
    };
    let response = sender.send_request(request(asked)?).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let challenges: Vec<&str> =
        response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    let challenges = challenges.join(", ");
    let body = if whole && !status.is_redirection() { read(response).await? } else { Vec::new() };
    Ok(Answer { status: status.as_u16(), challenges, body, place })
}

fn request(asked: Asked<'_>) -> Result<hyper::Request<Full<Bytes>>, String> {
    let Asked { method, url, headers, body } = asked;
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let name = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    let plain = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")));
    let request = headers.into_iter().fold(plain, |request, (name, value)| request.header(name, value));
    request.body(Full::new(body)).map_err(|error| error.to_string())
}

fn host(url: &Url) -> Result<String, String> {
    match url.host() {
        Some(Host::Domain(name)) => Ok(name.to_owned()),
        Some(Host::Ipv4(ip)) => Ok(ip.to_string()),
        Some(Host::Ipv6(ip)) => Ok(ip.to_string()),
        None => Err("it has no host".to_owned()),
    }
}

/// Connects to one of the addresses of a name that may be reached, and says where it is.
async fn connect(url: &Url, learned_from: Place) -> Result<(TcpStream, Place), String> {
    let port = url.port_or_known_default().ok_or("it has no port")?;
    let found = tokio::net::lookup_host((host(url)?, port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.take(ADDRESSES_MAX).collect();
    let mut why = "its name has no address".to_owned();
    for address in found {
        let place = match Place::of(address.ip()) {
            Ok(place) if place <= learned_from => place,
            Ok(place) => {
                why = refused(place);
                continue;
            }
            Err(what) => {
                why = format!("it leads to {what}, where nothing is asked for");
                continue;
            }
        };
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok((stream, place)),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

fn refused(place: Place) -> String {
    let what = if place == Place::Loopback { "this machine" } else { "a private network" };
    format!("it leads to {what}, but was named by a document from outside; nothing is asked for there")
}

async fn converse<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // It ends with its sender, and what goes wrong on it also ends the request, which says so.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

async fn read(response: Response<Incoming>) -> Result<Vec<u8>, String> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.downcast::<http_body_util::LengthLimitError>() {
        Ok(_) => format!("the answer has more than {ANSWER_BYTES_MAX} bytes"),
        Err(error) => error.to_string(),
    })?;
    Ok(body.to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_as_open_as_its_address() {
        let place = |address: &str| Place::of(address.parse().unwrap());
        assert_eq!(place("127.0.0.1"), Ok(Place::Loopback));
        assert_eq!(place("::1"), Ok(Place::Loopback));
        assert_eq!(place("10.1.2.3"), Ok(Place::Private));
        assert_eq!(place("fd00::1"), Ok(Place::Private));
        assert_eq!(place("::ffff:192.168.0.1"), Ok(Place::Private));
        assert_eq!(place("1.1.1.1"), Ok(Place::Public));
        for never in ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "64:ff9b::a9fe:a9fe"] {
            assert!(place(never).is_err(), "{never}");
        }
    }

    #[tokio::test]
    async fn what_was_learned_outside_leads_to_nothing_inside() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let reached = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
        for (url, learned_from, says) in [
            (format!("http://{at}/keys"), Place::Public, "leads to this machine"),
            (format!("http://localhost:{}/keys", at.port()), Place::Private, "leads to this machine"),
            (format!("https://127.1:{}/", at.port()), Place::Public, "leads to this machine"),
            ("https://10.0.0.1/".to_owned(), Place::Public, "a private network"),
            ("https://[fd00::1]/".to_owned(), Place::Public, "a private network"),
            ("https://169.254.169.254/latest".to_owned(), Place::Loopback, "metadata"),
            ("http://10.0.0.1/".to_owned(), Place::Loopback, "in clear"),
        ] {
            let url = Url::parse(&url).unwrap();
            let error = ask(Asked::document(&url), learned_from).await.unwrap_err();
            assert!(error.contains(says), "{url}: {error}");
        }
        assert!(!reached.is_finished(), "nothing was connected to");
        reached.abort();
    }
}
