//! What it costs to check an access token of an issuer: the check by itself, and a request with one.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::BenchError;
use super::super::distribution::{Distribution, Recorder};
use super::client::{At, Client, refused};
use crate::oauth::jwk::KeySet;
use crate::oauth::token::{Expected, Opened};

/// Whom the tokens are meant for.
pub(super) const RESOURCE: &str = "https://gate.example/mcp";
/// Whom they are about.
pub(super) const SUBJECT: &str = "ada";
/// A token of RS256, made once with a key of the tests, because `ring` makes no such keys. It is valid until 2100.
const RS256: &str = include_str!("rs256.jwt");
const RS256_KEYS: &str = include_str!("rs256.json");
const RS256_ISSUER: &str = "https://issuer.example";
/// Checks that are timed of each algorithm.
const CHECKS: usize = 2_000;
/// How long the tokens are valid, in seconds.
const VALID_S: u64 = 24 * 3_600;

/// What tokens cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpTokens {
    /// Taking a token apart and checking signature and claims, RS256 with 2,048 bits.
    pub rs256: Distribution,
    /// The same with ES256.
    pub es256: Distribution,
    /// The same with `EdDSA` over Ed25519.
    pub eddsa: Distribution,
    /// A request to the daemon with a token of its own.
    pub own_request: Distribution,
    /// The same with a token of ES256.
    pub es256_request: Distribution,
    /// What the latter takes more, p50.
    pub request_adds_ns: u64,
}

/// Keys of an issuer, made for the measurement.
pub(super) struct Keys {
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
    random: SystemRandom,
}

impl Keys {
    pub(super) fn new() -> Result<Self, BenchError> {
        let random = SystemRandom::new();
        let made = || {
            let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
            let p256 =
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, p256.as_ref(), &random).ok()?;
            let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).ok()?;
            Some((p256, Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).ok()?))
        };
        let (p256, ed25519) = made().ok_or_else(|| refused("no keys can be made"))?;
        Ok(Self { p256, ed25519, random })
    }

    /// What the issuer publishes.
    pub(super) fn published(&self) -> Value {
        let point = self.p256.public_key().as_ref();
        let coordinate = |range| encoded(point.get(range).unwrap_or_default());
        json!({"keys": [
            {"kty": "EC", "crv": "P-256", "kid": "es256", "x": coordinate(1..33), "y": coordinate(33..65)},
            {"kty": "OKP", "crv": "Ed25519", "kid": "eddsa", "x": encoded(self.ed25519.public_key().as_ref())},
        ]})
    }

    fn token(&self, algorithm: &str, key: &str, issuer: &str) -> Result<String, BenchError> {
        let header = json!({"alg": algorithm, "kid": key, "typ": "at+jwt"}).to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = json!({
            "iss": issuer, "aud": RESOURCE, "sub": SUBJECT, "iat": now, "exp": now + VALID_S, "client_id": "bench",
            "jti": "0f8fad5b-d9cb-469f-a165-70867728950e", "scope": "mcp",
        });
        let message = format!("{}.{}", encoded(header.as_bytes()), encoded(claims.to_string().as_bytes()));
        let signature = match algorithm {
            "ES256" => self.p256.sign(&self.random, message.as_bytes()).ok(),
            _ => Some(self.ed25519.sign(message.as_bytes())),
        };
        let signature = signature.ok_or_else(|| refused("a token cannot be signed"))?;
        Ok(format!("{message}.{}", encoded(signature.as_ref())))
    }
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Measures the checks, and requests in turn for a while.
pub(super) async fn measure(
    keys: &Keys,
    issuer: &str,
    (caller, time): (&At, Duration),
) -> Result<McpTokens, BenchError> {
    let published = keys.published().to_string();
    let es256 = keys.token("ES256", "es256", issuer)?;
    let eddsa = keys.token("EdDSA", "eddsa", issuer)?;
    let rs256_check = check(RS256.trim(), RS256_KEYS, RS256_ISSUER)?;
    let es256_check = check(&es256, &published, issuer)?;
    let eddsa_check = check(&eddsa, &published, issuer)?;
    let mut own = Client::new(caller).await?;
    let mut of_issuer = Client::new(&caller.with_token(es256)).await?;
    let (mut own_request, mut es256_request) = (Recorder::new()?, Recorder::new()?);
    // The first requests fetch the keys and warm up.
    for _ in 0..20 {
        own.get().await?;
        of_issuer.get().await?;
    }
    let begin = Instant::now();
    while begin.elapsed() < time {
        own_request.add(own.get().await?);
        es256_request.add(of_issuer.get().await?);
    }
    let (own_request, es256_request) = (own_request.finish(), es256_request.finish());
    let request_adds_ns = es256_request.p50_ns.saturating_sub(own_request.p50_ns);
    let (rs256, es256, eddsa) = (rs256_check, es256_check, eddsa_check);
    Ok(McpTokens { rs256, es256, eddsa, own_request, es256_request, request_adds_ns })
}

/// Times the whole check of a token.
fn check(token: &str, keys: &str, issuer: &str) -> Result<Distribution, BenchError> {
    let keys = KeySet::read(keys.as_bytes()).map_err(|why| refused(&why))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let expected = Expected { issuer, resource: RESOURCE, now_s: now };
    let mut recorder = Recorder::new()?;
    for _ in 0..CHECKS {
        let begin = Instant::now();
        let checked = Opened::of(black_box(token)).and_then(|opened| opened.check(&keys, expected));
        recorder.add(begin.elapsed());
        black_box(&checked);
        if let Err(why) = checked {
            return Err(refused(&why.to_string()));
        }
    }
    Ok(recorder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_token_is_believed() {
        let keys = Keys::new().unwrap();
        let published = keys.published().to_string();
        for (algorithm, key) in [("ES256", "es256"), ("EdDSA", "eddsa")] {
            let token = keys.token(algorithm, key, "http://127.0.0.1:1").unwrap();
            assert_eq!(check(&token, &published, "http://127.0.0.1:1").unwrap().count, CHECKS as u64);
            assert!(check(&token, RS256_KEYS, "http://127.0.0.1:1").is_err());
        }
        check(RS256.trim(), RS256_KEYS, RS256_ISSUER).unwrap();
    }
}
