//! Where a server is, and how to connect to it: over TLS, or in clear.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

/// Scheme, host and port of an address.
pub(crate) struct Origin {
    tls: Option<TlsConnector>,
    host: String,
    port: u16,
    /// What requests name as their host.
    authority: String,
    /// It is on this machine, by its name or number.
    loopback: bool,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("tls", &self.tls.is_some()).field("at", &self.authority).finish()
    }
}

impl Origin {
    /// The origin of an `http` or `https` address.
    ///
    /// # Errors
    /// What is wrong with the address, or that the system trusts no certificate authorities.
    pub(crate) fn of(url: &Url) -> Result<Self, String> {
        let tls = match url.scheme() {
            "https" => Some(connector()?),
            "http" => None,
            _ => return Err("neither http nor https".to_owned()),
        };
        let (host, loopback) = match url.host() {
            Some(Host::Domain(name)) => {
                (name.to_owned(), name == "localhost" || name.ends_with(".localhost"))
            }
            Some(Host::Ipv4(ip)) => (ip.to_string(), ip.is_loopback()),
            Some(Host::Ipv6(ip)) => (ip.to_string(), ip.is_loopback()),
            None => return Err("no host".to_owned()),
        };
        let port = url.port_or_known_default().ok_or("no port")?;
        let name = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        Ok(Self { tls, host, port, authority, loopback })
    }

    /// What requests name as their host.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether it is spoken to over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether nobody on the way can read what is said: it goes over TLS, or does not leave this machine.
    pub(crate) fn is_private(&self) -> bool {
        self.tls.is_some() || self.loopback
    }

    /// Makes a connection.
    pub(crate) async fn connect(&self) -> std::io::Result<SendRequest<Full<Bytes>>> {
        let stream =
            TcpStream::connect((&*self.host, self.port)).await.map_err(|error| match error.kind() {
                ErrorKind::ConnectionRefused => {
                    Error::new(error.kind(), format!("nothing listens at `{}:{}`", self.host, self.port))
                }
                _ => error,
            })?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => converse(stream).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(Error::other)?;
                converse(tls.connect(name, stream).await.map_err(told)?).await
            }
        }
    }
}

/// An error of a TLS handshake in the words of who typed the address.
fn told(error: Error) -> Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(_)) => {
            Error::new(error.kind(), "it does not speak TLS there; does its address begin with `http://`?")
        }
        _ => error,
    }
}

async fn converse<S>(stream: S) -> std::io::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(Error::other)?;
    // It ends with its sender, and what goes wrong on it also ends the request, which says so.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
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

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn an_origin_is_read_from_an_address() {
        let at = origin("http://[::1]:8080/mcp?x=1");
        assert_eq!((&*at.host, at.port, at.authority(), at.is_private()), ("::1", 8080, "[::1]:8080", true));
        let at = origin("http://mcp.example/");
        assert_eq!((at.port, at.authority(), at.is_private()), (80, "mcp.example", false));
        assert!(
            origin("http://localhost:1/").is_private() && !origin("http://localhost.example/").is_private()
        );
        assert!(Origin::of(&Url::parse("ftp://h/").unwrap()).is_err());
        assert!(Origin::of(&Url::parse("unix:/run/x").unwrap()).is_err());
    }
}
