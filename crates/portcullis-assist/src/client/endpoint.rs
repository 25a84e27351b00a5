//! Where a model is served, and the key that opens it.

use std::fmt;

use url::{Host, Url};

use crate::limits::MAX_KEY_BYTES;

/// Why an address or a key cannot be used. No message holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address cannot be read.
    #[error("`{address}` is not an address: {why}; give one like `https://host/v1`")]
    Address {
        /// The address.
        address: String,
        /// Why.
        why: String,
    },
    /// The address holds more than a place, possibly a secret, and is not repeated.
    #[error(
        "the model's address holds a user, a password, a query or a fragment; name a variable with the key instead"
    )]
    Secretive,
    /// The key would travel in clear.
    #[error("a key is not sent to `{0}` over plain http; use https, or no key")]
    PlainKey(String),
    /// The variable is not set.
    #[error("the environment has no variable `{0}` with the model's key; set it")]
    NoKey(String),
    /// The variable holds something else.
    #[error("the variable `{0}` holds no key: visible ASCII, at most {MAX_KEY_BYTES} bytes")]
    NotAKey(String),
    /// The system's list of certificate authorities.
    #[error("cannot read the system's certificate authorities: {0}; install them (`ca-certificates`)")]
    Roots(String),
}

/// A key, from the environment and nowhere else. It is never shown, written or recorded.
#[derive(Clone)]
pub struct Key {
    variable: String,
    secret: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("variable", &self.variable).finish_non_exhaustive()
    }
}

impl Key {
    /// Reads a variable of the environment.
    ///
    /// # Errors
    /// It is not set, or what it holds can be no key.
    pub fn from_env(variable: &str) -> Result<Self, EndpointError> {
        let secret = std::env::var_os(variable).ok_or_else(|| EndpointError::NoKey(variable.to_owned()))?;
        let secret = secret.into_string().unwrap_or_default();
        let secret = secret.trim();
        if secret.is_empty() || secret.len() > MAX_KEY_BYTES || !secret.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(EndpointError::NotAKey(variable.to_owned()));
        }
        Ok(Self { variable: variable.to_owned(), secret: secret.to_owned() })
    }

    /// The variable's name.
    #[must_use]
    pub fn variable(&self) -> &str {
        &self.variable
    }

    pub(super) fn secret(&self) -> &str {
        &self.secret
    }
}

/// Host, port and path of a server.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Where chats are completed.
    pub(super) path: String,
    /// What the request names as its host.
    pub(super) authority: String,
}

impl Endpoint {
    /// Reads a base address such as `https://host/v1`.
    pub(super) fn new(address: &str, has_key: bool) -> Result<Self, EndpointError> {
        let wrong = |why: &str| EndpointError::Address { address: address.to_owned(), why: why.to_owned() };
        // What may hold a secret is not repeated, not even where it cannot be read.
        if address.contains(['@', '?', '#']) {
            return Err(EndpointError::Secretive);
        }
        let url = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("neither http nor https")),
        };
        let (host, local) = match url.host() {
            Some(Host::Domain(name)) => (name.to_owned(), name == "localhost"),
            Some(Host::Ipv4(ip)) => (ip.to_string(), ip.is_loopback()),
            Some(Host::Ipv6(ip)) => (ip.to_string(), ip.is_loopback()),
            None => return Err(wrong("no host")),
        };
        if has_key && !tls && !local {
            return Err(EndpointError::PlainKey(host));
        }
        let port = url.port_or_known_default().ok_or_else(|| wrong("no port"))?;
        let name = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
        Ok(Self { tls, host, port, path, authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_host_port_and_path() {
        for (address, host, port, path, authority) in [
            ("https://api.example.com/v1", "api.example.com", 443, "/v1/chat/completions", "api.example.com"),
            (
                "https://api.example.com/v1/",
                "api.example.com",
                443,
                "/v1/chat/completions",
                "api.example.com",
            ),
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, "/chat/completions", "127.0.0.1:8080"),
            ("http://[::1]:8080/v1", "::1", 8080, "/v1/chat/completions", "[::1]:8080"),
        ] {
            let endpoint = Endpoint::new(address, true).unwrap();
            assert_eq!(
                (&*endpoint.host, endpoint.port, &*endpoint.path, &*endpoint.authority),
                (host, port, path, authority)
            );
        }
    }

    #[test]
    fn secrets_in_an_address_are_refused_and_not_repeated() {
        for address in
            ["https://user:s3cret@host/v1", "https://host/v1?key=s3cret", "https://host/#s3cret", "s3cret@"]
        {
            let error = Endpoint::new(address, false).unwrap_err();
            assert_eq!(error, EndpointError::Secretive);
            assert!(!error.to_string().contains("s3cret"));
        }
    }

    #[test]
    fn a_key_travels_over_tls_or_stays_on_the_machine() {
        assert_eq!(
            Endpoint::new("http://models.lan/v1", true).unwrap_err(),
            EndpointError::PlainKey("models.lan".into())
        );
        assert!(Endpoint::new("http://models.lan/v1", false).is_ok());
        assert!(Endpoint::new("http://localhost:1/v1", true).is_ok());
        assert!(Endpoint::new("ftp://models.lan/v1", false).is_err());
    }

    #[test]
    fn a_key_is_read_from_the_environment_and_never_shown() {
        // Cargo sets this variable for every test; it stands for a key here.
        let key = Key::from_env("CARGO_PKG_NAME").unwrap();
        assert_eq!(key.secret(), "portcullis-assist");
        assert!(!format!("{key:?}").contains("portcullis-assist"));
        assert_eq!(
            Key::from_env("PORTCULLIS_NOT_SET").unwrap_err(),
            EndpointError::NoKey("PORTCULLIS_NOT_SET".into())
        );
        // A description has spaces in it.
        assert!(matches!(Key::from_env("CARGO_PKG_DESCRIPTION"), Err(EndpointError::NotAKey(_))));
    }
}
