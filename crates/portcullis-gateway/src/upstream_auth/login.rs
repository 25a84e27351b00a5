//! A person's login for an upstream: authorization code with PKCE (OAuth 2.1, 4.1), as MCP has it.
//!
//! The upstream says which authorization server it trusts (RFC 9728), the server says where its endpoints are (RFC 8414), the
//! person agrees in a browser, and the code comes back to loopback. Each step is held to the one before: the metadata are
//! those of the address that was asked for, the server is the one that they name, the answer has our state and its issuer,
//! and the token is asked for this resource alone.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use url::Url;

use super::callback::{Callback, Expected, NoCode};
use super::client::Way;
use super::held::resource_of;
use super::probe::ping;
use super::settings::{self, Source, same};
use super::store::{Kept, Store};
use super::tokens::{self, Client};
use crate::home::Home;
use crate::oauth::challenge::Challenge;
use crate::oauth::keys::metadata;
use crate::oauth::metadata::{ResourceMetadata, ServerMetadata, of_resource, secure};
use crate::oauth::outbound::{self, Asked, Place};
use crate::oauth::shown;

/// The most scopes of a login.
const SCOPES_MAX: usize = 64;

/// What a login is for.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// The name of the upstream.
    pub name: String,
    /// Its address; none: that of its entry in `upstreams.toml`, or of the login before.
    pub url: Option<Url>,
    /// The authorization server, of those that the upstream names; none: the first.
    pub issuer: Option<String>,
    /// The client that is registered there.
    pub client_id: Option<String>,
    /// The file with its secret; none: it has none.
    pub client_secret_file: Option<PathBuf>,
    /// The address of the gate's client id metadata document, which is its id where no client is registered and the server
    /// reads such documents; none: that of `upstreams.toml`. Otherwise the gate registers itself.
    pub client_document: Option<String>,
    /// Scopes besides those of the login before; empty: those that the upstream wants.
    pub scopes: Vec<String>,
    /// The port of 127.0.0.1 where the browser comes back to; 0: one of those that the gate's document has by itself if it
    /// is used, otherwise any.
    pub port: u16,
    /// How long the person may take.
    pub patience: Duration,
}

/// Why a login failed: a sentence that says where, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoginError(String);

impl From<String> for LoginError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

/// What is known of an upstream and of its authorization server before anybody agrees.
struct Found {
    server: ServerMetadata,
    learned_from: Place,
    resource: String,
    scopes: Vec<String>,
}

/// Logs in, and keeps what the server gives. `open` has the address that the person has to visit.
///
/// # Errors
/// What went wrong, and at which of the parties.
pub async fn login(home: &Home, mut login: Login, open: impl FnOnce(&Url)) -> Result<(), LoginError> {
    settings::check_name(&login.name)?;
    let store = Store::of(home, &login.name);
    let before = store.read()?;
    let url = fill(home, &mut login, before.as_ref())?;
    secure(&url)?;
    let found = discover(&url, login.issuer.as_deref()).await?;
    let endpoint = checked(&found.server)?;
    let way = Way::of(&login, &found.server)?;
    let named = [login.port];
    let callback = Callback::listen(if login.port == 0 { way.ports() } else { &named }).await?;
    let client = way.client(&login, (&found.server, found.learned_from), &callback.address).await?;
    let scopes =
        scopes(&login, &found, before.as_ref().filter(|before| before.issuer == found.server.issuer));
    let proof = Proof::new()?;
    let address = ask_for(&found, endpoint, &client, &proof, (&scopes, &callback.address));
    let back = callback.address.clone();
    open(&address);
    let expected = Expected {
        state: &proof.state,
        issuer: &found.server.issuer,
        names_issuer: found.server.authorization_response_iss_parameter_supported,
    };
    let code = tokio::time::timeout(login.patience, callback.code(&expected)).await;
    let code = code
        .map_err(|_| format!("nobody agreed within {} s; run the command again", login.patience.as_secs()))?;
    let code = code.map_err(|why| said(&why, &found.server.issuer))?;
    let issued = redeem(&found, &client, &proof, (&code, &back)).await?;
    let kept = Kept {
        version: Kept::VERSION,
        url: url.into(),
        resource: found.resource,
        token_endpoint: found.server.token_endpoint.map(String::from).unwrap_or_default(),
        issuer: found.server.issuer,
        learned_from: found.learned_from,
        client_auth: client.auth,
        client_id: client.id,
        // A secret that a file has stays there.
        client_secret: client.secret.filter(|_| login.client_secret_file.is_none()),
        access_token: Some(issued.access_token),
        expires_at_s: issued.expires_at_s,
        refresh_token: issued.refresh_token,
        scopes: issued.scopes.unwrap_or(scopes),
    };
    let locked = store.lock().await?;
    store.write(&kept, &locked)?;
    Ok(())
}

/// Fills in what the settings or the login before say, and gives the address.
fn fill(home: &Home, login: &mut Login, before: Option<&Kept>) -> Result<Url, String> {
    let settings = settings::read(&home.upstreams_toml())?;
    login.client_document = login.client_document.take().or(settings.client_document);
    let entry = settings.upstreams.into_iter().find(|entry| match &login.url {
        Some(url) => same(&entry.url, url),
        None => entry.name == login.name,
    });
    let kept = || before.and_then(|before| Url::parse(&before.url).ok());
    let url = login.url.clone().or_else(|| entry.as_ref().map(|entry| entry.url.clone())).or_else(kept);
    let url = url.ok_or_else(|| {
        format!("the upstream `{}` is not known yet; say where it is with `--url URL`", login.name)
    })?;
    match entry.map(|entry| entry.source) {
        None => {}
        Some(Source::Oauth(oauth)) if oauth.grant == settings::Grant::Login => {
            login.issuer = login.issuer.take().or(oauth.issuer);
            if login.client_id.is_none() {
                login.client_id = oauth.client_id;
                login.client_secret_file = oauth.client_secret_file;
            }
            if login.scopes.is_empty() {
                login.scopes = oauth.scopes;
            }
        }
        Some(_) => {
            return Err(format!(
                "`upstreams.toml` has another credential for `{url}`, which a login would not replace; remove that first"
            ));
        }
    }
    if login.client_secret_file.is_some() && login.issuer.is_none() {
        return Err("a client's secret is for one server; say which with `--issuer URL`".to_owned());
    }
    Ok(url)
}

/// Finds the authorization server of an upstream, as MCP has it.
async fn discover(url: &Url, issuer: Option<&str>) -> Result<Found, String> {
    let answer = ping(url, None).await?;
    let challenge = Challenge::read(&answer.challenges).unwrap_or_default();
    let (resource, place) = match resource_metadata(url, &challenge, answer.place).await? {
        Some(found) => found,
        None => {
            let issuer = issuer.ok_or_else(|| {
                format!(
                    "`{url}` does not say which authorization server it trusts; name it with `--issuer URL`"
                )
            })?;
            let (server, learned_from) = metadata(issuer, Place::Loopback).await?;
            return Ok(Found {
                server,
                learned_from,
                resource: resource_of(url),
                scopes: challenge.scopes(),
            });
        }
    };
    let named = &resource.authorization_servers;
    let issuer = match issuer {
        Some(issuer) => named.iter().find(|named| *named == issuer).ok_or_else(|| {
            format!(
                "`{url}` does not trust the authorization server `{}`; it names `{}`",
                shown(issuer),
                shown(&named.join("`, `"))
            )
        })?,
        None => named.first().ok_or("the upstream names no authorization server")?,
    };
    let (server, learned_from) = metadata(issuer, place).await?;
    let wanted = match challenge.scopes() {
        none if none.is_empty() => resource.scopes_supported.clone(),
        wanted => wanted,
    };
    Ok(Found { server, learned_from, resource: resource.resource, scopes: wanted })
}

/// What an upstream says of itself: where its challenge points to, or else at the well-known places.
async fn resource_metadata(
    url: &Url,
    challenge: &Challenge,
    place: Place,
) -> Result<Option<(ResourceMetadata, Place)>, String> {
    let named = challenge.resource_metadata.as_deref().map(|named| {
        Url::parse(named)
            .map_err(|_| format!("`{url}` names `{}` as its metadata, which is no address", shown(named)))
    });
    let places = match named.transpose()? {
        Some(named) => vec![named],
        None => of_resource(url),
    };
    for at in places {
        let answer = outbound::ask(Asked::document(&at), place).await?;
        if answer.status == 404 && challenge.resource_metadata.is_none() {
            continue;
        }
        let read = answer.document(&at).and_then(|document| {
            ResourceMetadata::read(document, url).map_err(|why| format!("`{at}`: {why}"))
        });
        return Ok(Some((read?, answer.place)));
    }
    Ok(None)
}

/// Where the person agrees. A server without PKCE is not used: a stolen code would be as good as the token.
fn checked(server: &ServerMetadata) -> Result<&Url, String> {
    let issuer = shown(&server.issuer);
    if !server.has_s256() {
        return Err(format!(
            "the authorization server `{issuer}` does not say that it supports PKCE with S256, and is not used"
        ));
    }
    if server.token_endpoint.is_none() {
        return Err(format!("the metadata of `{issuer}` have no `token_endpoint`"));
    }
    server
        .authorization_endpoint
        .as_ref()
        .ok_or_else(|| format!("the metadata of `{issuer}` have no `authorization_endpoint`"))
}

/// What is asked for: more than before where scopes are named, since a new token replaces the old one.
fn scopes(login: &Login, found: &Found, before: Option<&Kept>) -> Vec<String> {
    let mut scopes = if login.scopes.is_empty() { found.scopes.clone() } else { login.scopes.clone() };
    for scope in before.into_iter().flat_map(|before| &before.scopes) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes.truncate(SCOPES_MAX);
    scopes
}

/// What shows that the answer and the code are ours.
struct Proof {
    state: String,
    verifier: String,
}

impl Proof {
    fn new() -> Result<Self, String> {
        let random = || {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| format!("there are no random bytes: {error}"))?;
            Ok::<_, String>(URL_SAFE_NO_PAD.encode(bytes))
        };
        Ok(Self { state: random()?, verifier: random()? })
    }

    /// RFC 7636, 4.2.
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()))
    }
}

/// The address that the person visits.
fn ask_for(
    found: &Found,
    endpoint: &Url,
    client: &Client,
    proof: &Proof,
    (scopes, back): (&[String], &str),
) -> Url {
    let mut address = endpoint.clone();
    let scope = scopes.join(" ");
    let challenge = proof.challenge();
    {
        let mut query = address.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", client.id.as_str()),
            ("redirect_uri", back),
            ("state", &proof.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &found.resource),
        ]);
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
    }
    address
}

async fn redeem(
    found: &Found,
    client: &Client,
    proof: &Proof,
    (code, back): (&str, &str),
) -> Result<tokens::Issued, String> {
    let issuer = shown(&found.server.issuer);
    let endpoint = found.server.token_endpoint.as_ref().ok_or("the server has no token endpoint")?;
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", back),
        ("code_verifier", &proof.verifier),
        ("resource", &found.resource),
    ];
    let issued = tokens::ask((endpoint, found.learned_from), client, &fields).await;
    issued.map_err(|why| format!("the login at `{issuer}` gave no token: {why}"))
}

fn said(why: &NoCode, issuer: &str) -> String {
    let issuer = shown(issuer);
    match why {
        NoCode::OtherIssuer => {
            format!("the browser came back from another server than `{issuer}`; its code was sent nowhere")
        }
        NoCode::NoIssuer => format!(
            "the browser came back without the name of its server, which `{issuer}` gives; its code was sent nowhere"
        ),
        NoCode::Denied(error) => format!("`{issuer}` did not agree: {error}"),
        NoCode::Empty => format!("the browser came back from `{issuer}` without a code"),
    }
}
