//! HTTP/1.1 to a model's server, over TLS or in clear.
//!
//! A call takes seconds and a connection milliseconds, so each call opens its own and nothing is kept: no call ever
//! fails because a server closed an idle connection. Redirects are not followed, since they would carry the key along.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig as TlsConfig, RootCertStore};

use super::endpoint::{Endpoint, EndpointError, Key};
use super::transport::{Head, Sink, Transport};
use crate::clock::BoxFuture;
use crate::model::ModelError;

/// How long a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To take the connection, TLS included.
    pub connect: Duration,
    /// To send anything, from one piece to the next.
    pub idle: Duration,
    /// For one attempt altogether.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(300),
        }
    }
}

/// A server of chat completions.
#[derive(Clone)]
pub struct Http {
    endpoint: Endpoint,
    key: Option<Key>,
    timeouts: Timeouts,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("endpoint", &self.endpoint)
            .field("key", &self.key)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl Http {
    /// A server at a base address such as `https://host/v1`.
    ///
    /// # Errors
    /// The address cannot be used, or the key would travel in clear, or the system trusts no certificate authority.
    pub fn new(address: &str, key: Option<Key>, timeouts: Timeouts) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::new(address, key.is_some())?;
        let tls = if endpoint.tls { Some(connector()?) } else { None };
        Ok(Self { endpoint, key, timeouts, tls })
    }

    fn request(&self, body: &str) -> Result<Request<Full<Bytes>>, ModelError> {
        let mut request = Request::post(&self.endpoint.path)
            .header(HOST, &self.endpoint.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .header(CONNECTION, "close")
            .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")));
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.secret()));
            let mut value = value.map_err(|_| ModelError::Connect("the key cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        request.body(body).map_err(|error| ModelError::Connect(error.to_string()))
    }

    async fn exchange(&self, body: &str, sink: &mut dyn Sink) -> Result<(), ModelError> {
        let request = self.request(body)?;
        let slow = || late("took no connection", self.timeouts.connect);
        let connecting = async {
            let stream = TcpStream::connect((&*self.endpoint.host, self.endpoint.port)).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = &self.tls else { return Ok::<_, std::io::Error>(Stream::Plain(stream)) };
            let name = ServerName::try_from(self.endpoint.host.clone()).map_err(std::io::Error::other)?;
            Ok(Stream::Tls(Box::new(tls.connect(name, stream).await?)))
        };
        let stream = timeout(self.timeouts.connect, connecting).await.map_err(|_| slow())?;
        match stream.map_err(|error| ModelError::Connect(error.to_string()))? {
            Stream::Plain(stream) => self.converse(stream, request, sink).await,
            Stream::Tls(stream) => self.converse(*stream, request, sink).await,
        }
    }

    async fn converse<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
        sink: &mut dyn Sink,
    ) -> Result<(), ModelError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error: hyper::Error| ModelError::Broken(error.to_string());
        let silent = || late("sent nothing", self.timeouts.idle);
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let _task = Task(tokio::spawn(async move {
            // What goes wrong here also ends the request, which says so.
            let _ = connection.await;
        }));
        let response: Response<Incoming> = timeout(self.timeouts.idle, sender.send_request(request))
            .await
            .map_err(|_| silent())?
            .map_err(broken)?;
        sink.head(&head(response.status().as_u16(), response.headers()));
        let mut body = response.into_body();
        while let Some(frame) = timeout(self.timeouts.idle, body.frame()).await.map_err(|_| silent())? {
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if sink.bytes(&data).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Transport for Http {
    fn post<'a>(
        &'a self,
        body: &'a str,
        time_left: Option<Duration>,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), ModelError>> {
        let total = time_left.map_or(self.timeouts.total, |left| left.min(self.timeouts.total));
        Box::pin(async move {
            let slow = || late("did not finish its answer", total);
            timeout(total, self.exchange(body, sink)).await.map_err(|_| slow())?
        })
    }

    fn is_secret(&self, bytes: &[u8]) -> bool {
        self.key.as_ref().is_some_and(|key| {
            bytes.windows(key.secret().len()).any(|window| window == key.secret().as_bytes())
        })
    }
}

fn late(what: &str, time: Duration) -> ModelError {
    ModelError::TimedOut(format!("{what} for {} s", time.as_secs_f64()))
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// The connection's own work, which ends with the call.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn head(status: u16, headers: &HeaderMap) -> Head {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = text(&CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default();
    Head {
        status,
        media_type: media_type.trim().to_ascii_lowercase(),
        retry_after: text(&RETRY_AFTER).map(str::to_owned),
    }
}

/// TLS with the certificate authorities that the system trusts.
fn connector() -> Result<TlsConnector, EndpointError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        return Err(EndpointError::Roots(why));
    }
    let config = TlsConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
