//! The keys of issuers: found through their metadata, kept for a while, and fetched again when a token names one that is
//! not among them, at a bounded rate, because who sends such tokens is unknown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_core::bundle::ISSUERS_MAX;
use url::Url;

use super::jwk::KeySet;
use super::metadata::{ServerMetadata, of_server};
use super::outbound::{self, Asked, Place};

/// How long keys are used without being fetched again.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How long they are used while the issuer cannot be reached. A key that was withdrawn is believed no longer than that.
const USABLE: Duration = Duration::from_secs(60 * 60);
/// The shortest time between two fetches from one issuer.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The keys of all issuers that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<String, Arc<OfIssuer>>>);

#[derive(Debug, Default)]
struct OfIssuer {
    kept: Mutex<Option<Kept>>,
    /// When they were asked for last, and why there are none since. Held while they are fetched, which is done once for
    /// all who wait.
    asked: tokio::sync::Mutex<Option<(Instant, Option<String>)>>,
}

/// Keys as they were fetched.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) keys: Arc<KeySet>,
    at: Instant,
}

impl Keys {
    /// The keys of an issuer, fetched where they are not kept or are old.
    ///
    /// # Errors
    /// They cannot be had, with the reason, which is for the log: it repeats what the issuer says.
    pub(crate) async fn of(&self, issuer: &str) -> Result<Kept, String> {
        let of = self.entry(issuer);
        match of.kept() {
            Some(kept) if kept.at.elapsed() < FRESH => Ok(kept),
            // Somebody fetches newer ones, and whoever comes meanwhile does not wait for a slow issuer.
            Some(kept) if kept.at.elapsed() < USABLE && of.asked.try_lock().is_err() => Ok(kept),
            old => of.fetched(issuer, old.map(|old| old.at)).await,
        }
    }

    /// The keys of an issuer that are newer than these, where it may be asked again by now; else these.
    pub(crate) async fn newer(&self, issuer: &str, than: Kept) -> Kept {
        let of = self.entry(issuer);
        of.fetched(issuer, Some(than.at)).await.unwrap_or(than)
    }

    fn entry(&self, issuer: &str) -> Arc<OfIssuer> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only issuers of the bundle are asked for: more are those of bundles that are gone.
        if all.len() >= ISSUERS_MAX * 2 && !all.contains_key(issuer) {
            all.clear();
        }
        Arc::clone(all.entry(issuer.to_owned()).or_default())
    }
}

impl OfIssuer {
    fn kept(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches keys that are newer than `than`, unless somebody just did.
    async fn fetched(&self, issuer: &str, than: Option<Instant>) -> Result<Kept, String> {
        let mut asked = self.asked.lock().await;
        let kept = self.kept();
        if let Some(kept) = kept.as_ref().filter(|kept| than.is_none_or(|than| kept.at > than)) {
            return Ok(kept.clone());
        }
        let usable = || kept.clone().filter(|kept| kept.at.elapsed() < USABLE);
        if let Some((at, why)) = &*asked
            && at.elapsed() < AGAIN_AFTER
        {
            let why = why.clone().unwrap_or_else(|| "its keys were just fetched".to_owned());
            return usable().ok_or(why);
        }
        let fetched = fetch(issuer).await;
        *asked = Some((Instant::now(), fetched.as_ref().err().cloned()));
        match fetched {
            Ok(keys) => {
                let fresh = Kept { keys: Arc::new(keys), at: Instant::now() };
                *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.clone());
                Ok(fresh)
            }
            Err(why) => {
                tracing::warn!(%issuer, "the keys of an issuer cannot be fetched: {why}");
                usable().ok_or(why)
            }
        }
    }
}

/// The metadata of an issuer that the operator named, and where they came from.
pub(crate) async fn metadata(issuer: &str, learned_from: Place) -> Result<(ServerMetadata, Place), String> {
    let url = Url::parse(issuer).map_err(|error| format!("`{}`: {error}", super::shown(issuer)))?;
    let mut why = String::new();
    for place in of_server(&url) {
        // A server that cannot be reached is not tried in other places.
        let answer = outbound::ask(Asked::document(&place), learned_from).await?;
        match answer.document(&place) {
            Ok(document) => {
                let read = ServerMetadata::read(document, issuer);
                return Ok((read.map_err(|why| format!("`{place}`: {why}"))?, answer.place));
            }
            Err(status) => why = status,
        }
    }
    Err(format!("no metadata of the authorization server were found; last, {why}"))
}

async fn fetch(issuer: &str) -> Result<KeySet, String> {
    // The operator named it, wherever it is.
    let (metadata, place) = metadata(issuer, Place::Loopback).await?;
    let at = metadata.jwks_uri.ok_or("its metadata have no `jwks_uri`")?;
    let answer = outbound::ask(Asked::document(&at), place).await?;
    KeySet::read(answer.document(&at)?).map_err(|why| format!("`{at}`: {why}"))
}
