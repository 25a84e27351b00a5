//! HTTP/1.1 to a log, a witness or a webhook, over TLS or in clear.
//!
//! Nothing that comes back is believed: checkpoints are signed, leaves are hashed. So plain HTTP is as good as TLS for
//! what is read, no credential is ever sent, and redirects are not followed. A
//! connection is kept while it lasts; one that the server closed meanwhile is made again, once.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

/// A server, at a base address.
pub(crate) struct Fetcher {
    tls: Option<TlsConnector>,
    host: String,
    port: u16,
    /// What requests name as their host.
    authority: String,
    /// The path of the base address, without a slash at its end.
    base: String,
    /// For one request altogether.
    time_max: Duration,
    kept: Option<SendRequest<Full<Bytes>>>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (tls, authority, base) = (self.tls.is_some(), &self.authority, &self.base);
        f.debug_struct("Fetcher").field("tls", &tls).field("at", &(authority, base)).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// A server at an address such as `https://host/log`.
    pub(crate) fn new(address: &str, time_max: Duration) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{}` is not an address: {why}", address.escape_debug());
        let url = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "an address with a user or password is not used: no credential is needed here".to_owned()
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        let tls = match url.scheme() {
            "https" => Some(connector()?),
            "http" => None,
            _ => return Err(wrong("neither http nor https")),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(ip)) => ip.to_string(),
            Some(Host::Ipv6(ip)) => ip.to_string(),
            None => return Err(wrong("no host")),
        };
        let port = url.port_or_known_default().ok_or_else(|| wrong("no port"))?;
        let name = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let base = url.path().trim_end_matches('/').to_owned();
        Ok(Self { tls, host, port, authority, base, time_max, kept: None })
    }

    /// Status and body of what is at `path` below the base address; a body over `bytes_max` is an error.
    pub(crate) async fn get(&mut self, path: &str, bytes_max: usize) -> Result<(u16, Vec<u8>), String> {
        self.fetch((Method::GET, path), &[], Bytes::new(), bytes_max).await
    }

    /// Posts a body.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        body: String,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), String> {
        self.fetch((Method::POST, path), &[], Bytes::from(body), bytes_max).await
    }

    /// Posts a body to the base address itself, with headers.
    pub(crate) async fn post_here(
        &mut self,
        headers: &[(&'static str, String)],
        body: Bytes,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), String> {
        self.fetch((Method::POST, ""), headers, body, bytes_max).await
    }

    async fn fetch(
        &mut self,
        place: (Method, &str),
        headers: &[(&'static str, String)],
        body: Bytes,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), String> {
        let (time_max, authority) = (self.time_max, self.authority.clone());
        let done = timeout(time_max, self.exchange(place, headers, body, bytes_max)).await;
        let done = done.unwrap_or_else(|_| {
            // What comes on this connection later would be the answer to another question.
            Err(format!("no answer within {} s", time_max.as_secs_f64()))
        });
        if done.is_err() {
            self.kept = None;
        }
        done.map_err(|error| format!("`{authority}`: {error}"))
    }

    async fn exchange(
        &mut self,
        (method, path): (Method, &str),
        headers: &[(&'static str, String)],
        body: Bytes,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), String> {
        let uri = match path {
            "" if !self.base.is_empty() => self.base.clone(),
            path => format!("{}/{path}", self.base),
        };
        let request = || {
            let plain = Request::builder().method(&method).uri(&uri);
            headers
                .iter()
                .fold(plain, |request, (name, value)| request.header(*name, value))
                .header(HOST, &self.authority)
                .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
                .body(Full::new(body.clone()))
                .map_err(|error| error.to_string())
        };
        let (first, second) = (request()?, request()?);
        if let Some(mut kept) = self.kept.take()
            && kept.ready().await.is_ok()
            && let Ok(response) = kept.send_request(first).await
        {
            let read = read(response, bytes_max).await?;
            self.kept = Some(kept);
            return Ok(read);
        }
        let mut sender = self.connect().await.map_err(|error| error.to_string())?;
        let response = sender.send_request(second).await.map_err(|error| error.to_string())?;
        let read = read(response, bytes_max).await?;
        self.kept = Some(sender);
        Ok(read)
    }

    async fn connect(&self) -> std::io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect((&*self.host, self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => converse(stream).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(std::io::Error::other)?;
                converse(tls.connect(name, stream).await?).await
            }
        }
    }
}

async fn converse<S>(stream: S) -> std::io::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
    // It ends with its sender, and what goes wrong on it also ends the request, which says so.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

async fn read(response: Response<Incoming>, bytes_max: usize) -> Result<(u16, Vec<u8>), String> {
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), bytes_max).collect().await;
    let body = body.map_err(|error| match error.downcast::<http_body_util::LengthLimitError>() {
        Ok(_) => format!("the answer has more than {bytes_max} bytes"),
        Err(error) => error.to_string(),
    })?;
    Ok((status, body.to_bytes().to_vec()))
}

/// TLS with the certificate authorities that the system trusts.
pub(crate) fn connector() -> Result<TlsConnector, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(format!(
            "cannot read the system's certificate authorities: {why}; install them (`ca-certificates`)"
        ));
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_place_and_nothing_else() {
        let second = Duration::from_secs(1);
        let fetcher = Fetcher::new("http://[::1]:8080/log/", second).unwrap();
        assert_eq!(
            (&*fetcher.host, fetcher.port, &*fetcher.authority, &*fetcher.base),
            ("::1", 8080, "[::1]:8080", "/log")
        );
        assert_eq!(Fetcher::new("http://logs.example", second).unwrap().base, "");
        for wrong in ["", "logs.example", "ftp://logs.example", "http://", "http://h/?q", "http://h/#f"] {
            assert!(Fetcher::new(wrong, second).unwrap_err().contains("is not an address"), "{wrong}");
        }
        let secret = Fetcher::new("http://me:s3cret@h/", second).unwrap_err();
        assert!(!secret.contains("s3cret"));
    }
}
