//! The credential of one upstream, while it is used.

use std::path::Path;
use std::time::{Duration, Instant};

use hyper::header::AUTHORIZATION;
use url::Url;

use super::secret::Secret;
use super::settings::{self, Grant, Oauth, Source, Upstream, same};
use super::store::{self, Kept, Stamp, Store, now_s, stamp};
use super::tokens::{self, Client, ENDED, NotIssued};
use super::{AuthError, Authorization};
use crate::home::Home;
use crate::oauth::keys::metadata;
use crate::oauth::outbound::Place;

/// A token that ends sooner is renewed first: the request has to arrive, too.
const ENDS_SOON_S: u64 = 30;
/// How long what a command printed is used.
const PRINTED_LASTS: Duration = Duration::from_secs(5 * 60);
/// A token that was refused so soon after it was had would be refused again.
const JUST_HAD: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Held {
    home: Home,
    name: String,
    url: Url,
    store: Store,
    /// The entry of the settings, and the state of the file that it was read from.
    entry: Option<(Option<Stamp>, Option<Upstream>)>,
    /// The login, likewise.
    login: Option<(Option<Stamp>, Option<Kept>)>,
    /// A token that is not kept: one that a command printed, or the gate's own.
    passing: Option<Passing>,
    /// When a token was last had.
    had: Option<Instant>,
}

#[derive(Debug)]
struct Passing {
    token: Secret,
    until: Until,
}

#[derive(Debug)]
enum Until {
    Then(Instant),
    /// In seconds since 1970; none: it did not say.
    Expires(Option<u64>),
}

impl Passing {
    fn is_good(&self) -> bool {
        match self.until {
            Until::Then(then) => Instant::now() < then,
            Until::Expires(at) => at.is_none_or(|at| now_s() + ENDS_SOON_S < at),
        }
    }
}

impl Held {
    pub(super) fn new(home: Home, name: String, url: Url) -> Self {
        let store = Store::of(&home, &name);
        Self { home, name, url, store, entry: None, login: None, passing: None, had: None }
    }

    fn unusable(&self, why: impl Into<String>) -> AuthError {
        AuthError::Unusable { name: self.name.clone(), why: why.into() }
    }

    fn no_token(&self, why: impl Into<String>) -> AuthError {
        AuthError::NoToken { name: self.name.clone(), why: why.into() }
    }

    fn login_needed(&self, why: Option<&str>) -> AuthError {
        let why = why.map(str::to_owned);
        AuthError::LoginNeeded { name: self.name.clone(), url: Box::new(self.url.clone()), why }
    }

    /// The header for the next request.
    pub(super) async fn header(&mut self) -> Result<Option<Authorization>, AuthError> {
        let Some(entry) = self.entry()? else { return self.of_login(None).await };
        let token = match &entry.source {
            Source::File(file) => Secret::read(file).map_err(|why| self.unusable(why))?,
            Source::Command(command) => self.printed(command).await?,
            Source::Oauth(oauth) if oauth.grant == Grant::ClientCredentials => self.own(oauth).await?,
            Source::Oauth(oauth) => return self.of_login(Some(oauth)).await,
        };
        let name = entry.header.clone().unwrap_or(AUTHORIZATION);
        let scheme = if name == AUTHORIZATION { "Bearer " } else { "" };
        let value = token.header(scheme).map_err(|why| self.unusable(why))?;
        Ok(Some((name, value)))
    }

    /// A request with this header was refused with 401.
    pub(super) async fn refused(&mut self, used: Option<&Authorization>) -> Result<(), AuthError> {
        let entry = self.entry()?;
        let is_printed = matches!(&entry, Some(Upstream { source: Source::Command(_), .. }));
        if is_printed {
            self.passing = None;
        }
        // Another token may be there by now.
        let current = self.header().await?;
        if current.as_ref() != used {
            return Ok(());
        }
        let of = match entry.as_ref().map(|entry| &entry.source) {
            Some(Source::File(_)) => Some("`token_file`"),
            Some(Source::Command(_)) => Some("`token_command`"),
            Some(Source::Oauth(_)) | None => None,
        };
        if let Some(of) = of {
            let source_of = format!("{of} in `upstreams.toml`");
            return Err(AuthError::Refused { name: self.name.clone(), source_of });
        }
        if current.is_none() {
            return Err(self.login_needed(None));
        }
        let just_had = self.had.is_some_and(|had| had.elapsed() < JUST_HAD);
        self.passing = None;
        match entry_oauth(entry.as_ref()) {
            Some(oauth) if oauth.grant == Grant::ClientCredentials => {
                if just_had {
                    let source_of = "`[upstream.oauth]` in `upstreams.toml`".to_owned();
                    return Err(AuthError::Refused { name: self.name.clone(), source_of });
                }
                self.own(&oauth).await.map(drop)
            }
            _ if just_had => Err(self.login_needed(Some("a new token was refused, too"))),
            oauth => {
                let Some(kept) = self.login()? else { return Err(self.login_needed(None)) };
                self.renewed(&kept, oauth.as_ref()).await.map(drop)
            }
        }
    }

    /// The entry of the settings for this name and address.
    fn entry(&mut self) -> Result<Option<Upstream>, AuthError> {
        let file = self.home.upstreams_toml();
        let now = stamp(&file);
        if let Some((then, entry)) = &self.entry
            && *then == now
        {
            return Ok(entry.clone());
        }
        let settings = settings::read(&file).map_err(|why| self.unusable(why))?;
        let entry = settings.upstreams.into_iter().find(|entry| same(&entry.url, &self.url));
        self.entry = Some((now, entry.clone()));
        self.passing = None;
        Ok(entry)
    }

    /// The login for this address.
    fn login(&mut self) -> Result<Option<Kept>, AuthError> {
        let now = stamp(&self.store.file());
        if let Some((then, login)) = &self.login
            && *then == now
        {
            return Ok(login.clone());
        }
        let kept = self.store.read().map_err(|why| self.unusable(why))?;
        // A login for another address that was named so is none for this one.
        let here = |kept: &Kept| Url::parse(&kept.url).is_ok_and(|url| same(&url, &self.url));
        let kept = kept.filter(here);
        self.login = Some((now, kept.clone()));
        Ok(kept)
    }

    async fn printed(&mut self, command: &[String]) -> Result<Secret, AuthError> {
        if let Some(passing) = self.passing.as_ref().filter(|passing| passing.is_good()) {
            return Ok(passing.token.clone());
        }
        let token = Secret::printed(command).await.map_err(|why| self.unusable(why))?;
        self.had = Some(Instant::now());
        let until = Until::Then(Instant::now() + PRINTED_LASTS);
        self.passing = Some(Passing { token: token.clone(), until });
        Ok(token)
    }

    /// A token of the gate's own (OAuth 2.1, 4.2).
    async fn own(&mut self, oauth: &Oauth) -> Result<Secret, AuthError> {
        if let Some(passing) = self.passing.as_ref().filter(|passing| passing.is_good()) {
            return Ok(passing.token.clone());
        }
        let (Some(issuer), Some(id)) = (&oauth.issuer, &oauth.client_id) else {
            return Err(self.unusable("client credentials need `issuer` and `client_id`"));
        };
        let secret = oauth.client_secret_file.as_deref().map(Secret::read).transpose();
        let secret = secret.map_err(|why| self.unusable(why))?;
        // The operator named it, wherever it is.
        let (server, place) = metadata(issuer, Place::Loopback).await.map_err(|why| self.no_token(why))?;
        let endpoint = server.token_endpoint.clone();
        let endpoint =
            endpoint.ok_or_else(|| self.no_token("the metadata of its issuer have no `token_endpoint`"))?;
        let client = Client::of(id.clone(), secret, &server).map_err(|why| self.no_token(why))?;
        let (resource, scope) = (resource_of(&self.url), oauth.scopes.join(" "));
        let mut fields = vec![("grant_type", "client_credentials"), ("resource", resource.as_str())];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let issued = tokens::ask((&endpoint, place), &client, &fields).await;
        let issued = issued.map_err(|why| self.no_token(why.to_string()))?;
        self.had = Some(Instant::now());
        let until = Until::Expires(issued.expires_at_s);
        self.passing = Some(Passing { token: issued.access_token.clone(), until });
        Ok(issued.access_token)
    }

    async fn of_login(&mut self, oauth: Option<&Oauth>) -> Result<Option<Authorization>, AuthError> {
        let Some(kept) = self.login()? else {
            // Whoever wrote that it needs a login has not made one yet.
            return if oauth.is_some() { Err(self.login_needed(None)) } else { Ok(None) };
        };
        let kept = match &kept.access_token {
            None => return Err(self.login_needed(Some("the last one has ended"))),
            Some(_) if kept.expires_at_s.is_none_or(|at| now_s() + ENDS_SOON_S < at) => kept,
            Some(_) => match self.renewed(&kept, oauth).await {
                // The server cannot be asked, and the token has a few seconds left.
                Err(AuthError::NoToken { .. }) if kept.expires_at_s.is_some_and(|at| now_s() < at) => kept,
                renewed => renewed?,
            },
        };
        let token = kept.access_token.ok_or_else(|| self.login_needed(None))?;
        let value = token.header("Bearer ").map_err(|why| self.unusable(why))?;
        Ok(Some((AUTHORIZATION, value)))
    }

    /// Has new tokens for those of a login. Whoever else did that meanwhile has done it for us, too.
    async fn renewed(&mut self, old: &Kept, oauth: Option<&Oauth>) -> Result<Kept, AuthError> {
        let locked = self.store.lock().await.map_err(|why| self.no_token(why))?;
        self.login = None;
        let kept = self.login()?.ok_or_else(|| self.login_needed(None))?;
        if kept != *old && kept.access_token.is_some() {
            self.had = Some(Instant::now());
            return Ok(kept);
        }
        let Some(refresh) = kept.refresh_token.clone() else {
            return Err(
                self.login_needed(Some("the token has ended, and the server gave none to renew it with"))
            );
        };
        let file = oauth.and_then(|oauth| oauth.client_secret_file.as_deref());
        let secret = secret_of(&kept, file).map_err(|why| self.unusable(why))?;
        let client = Client { id: kept.client_id.clone(), secret, auth: kept.client_auth };
        let endpoint = store::endpoint(&kept).map_err(|why| self.unusable(why))?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.text()),
            ("resource", &kept.resource),
        ];
        let renewed = match tokens::ask((&endpoint, kept.learned_from), &client, &fields).await {
            Ok(issued) => Kept {
                access_token: Some(issued.access_token),
                expires_at_s: issued.expires_at_s,
                // A server that does not rotate gives none, and the old one goes on.
                refresh_token: issued.refresh_token.or(Some(refresh)),
                scopes: issued.scopes.unwrap_or_else(|| kept.scopes.clone()),
                ..kept
            },
            Err(NotIssued::Refused(ENDED)) => {
                let ended = Kept { access_token: None, expires_at_s: None, refresh_token: None, ..kept };
                self.store.write(&ended, &locked).map_err(|why| self.no_token(why))?;
                return Err(self.login_needed(Some("the authorization server has ended the last one")));
            }
            Err(why) => return Err(self.no_token(why.to_string())),
        };
        self.store.write(&renewed, &locked).map_err(|why| self.no_token(why))?;
        self.had = Some(Instant::now());
        self.login = Some((stamp(&self.store.file()), Some(renewed.clone())));
        Ok(renewed)
    }
}

/// The secret of a login's client: the one that the server gave it, or that of a file.
pub(super) fn secret_of(kept: &Kept, file: Option<&Path>) -> Result<Option<Secret>, String> {
    match (&kept.client_secret, file) {
        (None, Some(file)) => Secret::read(file).map(Some),
        (own, _) => Ok(own.clone()),
    }
}

fn entry_oauth(entry: Option<&Upstream>) -> Option<Oauth> {
    match entry.map(|entry| &entry.source) {
        Some(Source::Oauth(oauth)) => Some(oauth.clone()),
        _ => None,
    }
}

/// What the server at an address is called as a resource (RFC 8707): the address without its fragment.
pub(super) fn resource_of(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}
