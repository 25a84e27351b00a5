//! The gate's own credentials for upstreams: remote MCP servers that want some.
//!
//! What a client sends to the gate is never passed on. An upstream gets what the owner of the state folder has for its
//! address: a token from a file or a command, one for which the gate asks an authorization server in its own name, or one
//! that a person got for it with `portcullis upstream login`. Secrets are in `upstreams.toml` (where they come from) and in
//! `credentials/upstreams/` (what logins gave), which nobody else reads; they are in no message and no log.
//!
//! Who sends requests asks for the header before each of them ([`UpstreamAuth::authorization`]) and tells of a refusal
//! ([`UpstreamAuth::challenged`]), after which it may try once more, or has an error that says what a person can do.

mod callback;
mod client;
mod document;
mod held;
mod login;
mod logout;
mod probe;
mod secret;
mod settings;
mod standing;
mod store;
mod tokens;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use hyper::header::{HeaderName, HeaderValue};
use url::Url;

pub use document::client_document;
pub use login::{Login, LoginError, login};
pub use logout::{LoggedOut, Revocation, logout};
pub use probe::probe;
pub use standing::{Standing, login_for, standings};

use crate::home::Home;
use crate::oauth::challenge::Challenge;
use held::Held;

/// An upstream, and what the gate has for it.
#[derive(Debug)]
pub struct UpstreamAuth {
    name: String,
    url: Url,
    /// Held while a token is being fetched: once for all who wait.
    held: Arc<tokio::sync::Mutex<Held>>,
}

/// The header of a request that shows who the gate is.
pub type Authorization = (HeaderName, HeaderValue);

/// What to do after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Ask for the header, and send the request once more. A second refusal is final.
    Again,
    /// It is not about credentials.
    No,
}

/// Why there is no credential, or the one that there is does not do. It names the upstream and what a person can do, and
/// repeats nothing that a server said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nobody has logged in, or the login has ended.
    #[error("the upstream `{name}` wants a login{}; run `portcullis upstream login {name} --url {url}`", .why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default())]
    LoginNeeded {
        /// The upstream.
        name: String,
        /// Its address.
        url: Box<Url>,
        /// What became of the one that there was.
        why: Option<String>,
    },
    /// The upstream does not take what the settings have for it.
    #[error(
        "the upstream `{name}` refuses the credential that {source_of} has for it; renew that, or correct it"
    )]
    Refused {
        /// The upstream.
        name: String,
        /// Where the credential is from.
        source_of: String,
    },
    /// The token may not do this.
    #[error("the upstream `{name}` wants more scopes than its token has; run `portcullis upstream login {name} --url {url}{}`", .scopes.iter().map(|scope| format!(" --scope {scope}")).collect::<String>())]
    MoreScopes {
        /// The upstream.
        name: String,
        /// Its address.
        url: Box<Url>,
        /// What it wants.
        scopes: Vec<String>,
    },
    /// The upstream forbids it, whatever the scopes.
    #[error("the upstream `{0}` forbids this to the gate's credential")]
    Forbidden(String),
    /// The upstream forbids it, and was shown no credential.
    #[error(
        "the upstream `{name}` forbids this, and the gate has no credential for it; if it wants one, run `portcullis upstream login {name} --url {url}`"
    )]
    NoCredential {
        /// The upstream.
        name: String,
        /// Its address.
        url: Box<Url>,
    },
    /// The settings, or a secret that they name.
    #[error("the credential for the upstream `{name}` cannot be used: {why}")]
    Unusable {
        /// The upstream.
        name: String,
        /// What is wrong, and what to do about it.
        why: String,
    },
    /// The authorization server.
    #[error("no token for the upstream `{name}` could be had: {why}")]
    NoToken {
        /// The upstream.
        name: String,
        /// What is wrong.
        why: String,
    },
}

impl UpstreamAuth {
    /// What the gate has for the upstream at an address. Nothing is read yet.
    ///
    /// # Errors
    /// The name is none that a file could have.
    pub fn new(home: &Home, name: &str, url: Url) -> Result<Self, AuthError> {
        settings::check_name(name)
            .map_err(|why| AuthError::Unusable { name: name.escape_debug().to_string(), why })?;
        let held = Held::new(home.clone(), name.to_owned(), url.clone());
        Ok(Self { name: name.to_owned(), url, held: Arc::new(tokio::sync::Mutex::new(held)) })
    }

    /// The header for the next request; none: the gate has no credential for this upstream.
    ///
    /// # Errors
    /// There should be one, but it cannot be had.
    pub async fn authorization(&self) -> Result<Option<Authorization>, AuthError> {
        let held = Arc::clone(&self.held);
        self.settled(async move { held.lock().await.header().await }).await
    }

    /// Does something to its end, even if the request for which it is done is given up: a token that was renewed and not
    /// kept is lost, and the one before it is no good any more. What is done at once needs no task.
    async fn settled<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AuthError>> + Send + 'static,
    ) -> Result<T, AuthError> {
        let mut work = Box::pin(work);
        match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
            Poll::Ready(done) => done,
            Poll::Pending => tokio::spawn(work).await.unwrap_or_else(|_| {
                let why = "the gate ended before it was there".to_owned();
                Err(AuthError::NoToken { name: self.name.clone(), why })
            }),
        }
    }

    /// Tells of a refusal: HTTP status and `WWW-Authenticate` of the answer to a request with this header.
    ///
    /// # Errors
    /// What a person has to do.
    pub async fn challenged(
        &self,
        status: u16,
        www_authenticate: &str,
        used: Option<&Authorization>,
    ) -> Result<Retry, AuthError> {
        let challenge = Challenge::read(www_authenticate).unwrap_or_default();
        let of_scopes = challenge.error.as_deref() == Some("insufficient_scope");
        match status {
            401 => {
                let (held, used) = (Arc::clone(&self.held), used.cloned());
                let refused = async move { held.lock().await.refused(used.as_ref()).await };
                self.settled(refused).await.map(|()| Retry::Again)
            }
            403 if of_scopes => Err(AuthError::MoreScopes {
                name: self.name.clone(),
                url: Box::new(self.url.clone()),
                scopes: challenge.scopes(),
            }),
            403 if used.is_none() => {
                Err(AuthError::NoCredential { name: self.name.clone(), url: Box::new(self.url.clone()) })
            }
            403 => Err(AuthError::Forbidden(self.name.clone())),
            _ => Ok(Retry::No),
        }
    }
}
