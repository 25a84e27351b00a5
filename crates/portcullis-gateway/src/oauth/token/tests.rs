//! Tokens that fit, and everything that makes one not fit.

use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::*;

const NOW_S: f64 = 1_800_000_000.0;
const ISSUER: &str = "https://login.example";
const RESOURCE: &str = "https://gate.example/mcp";

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn keys(seed: u8, id: &str) -> KeySet {
    let x = encoded(pair(seed).public_key());
    let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x }] });
    KeySet::read(set.to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": NOW_S + 300.0, "iat": NOW_S, "scope": "a mcp" })
}

fn signed(header: &Value, claims: &Value) -> String {
    let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
    let signature = pair(1).sign(message.as_bytes());
    format!("{message}.{}", encoded(signature))
}

fn header() -> Value {
    json!({ "alg": "EdDSA", "kid": "k1", "typ": "at+jwt" })
}

fn check(token: &str) -> Result<Claims, Refused> {
    let expected = Expected { issuer: ISSUER, resource: RESOURCE, now_s: NOW_S };
    Opened::of(token)?.check(&keys(1, "k1"), expected)
}

/// The token with one member of its claims or header set to a value, or without it.
fn with(part: &str, name: &str, value: Value) -> Result<Claims, Refused> {
    let (mut header, mut claims) = (header(), claims());
    let object = if part == "header" { &mut header } else { &mut claims };
    match value {
        Value::Null => object.as_object_mut().unwrap().remove(name),
        value => object.as_object_mut().unwrap().insert(name.to_owned(), value),
    };
    check(&signed(&header, &claims))
}

#[test]
fn a_token_that_fits_is_believed() {
    let claims = check(&signed(&header(), &claims())).unwrap();
    assert_eq!(claims.text("sub"), Some("alice"));
    assert!(claims.has_scope("mcp") && claims.has_scope("a") && !claims.has_scope("m"));
    for (part, name, value) in [
        ("claims", "aud", json!(["https://other.example", RESOURCE])),
        ("claims", "nbf", json!(NOW_S + LEEWAY_S)),
        ("claims", "exp", json!(NOW_S - LEEWAY_S + 1.0)),
        ("claims", "iat", Value::Null),
        ("claims", "tenant", json!(9_007_199_254_740_993_u64)),
        ("header", "typ", Value::Null),
        ("header", "typ", json!("application/AT+JWT")),
        ("header", "typ", json!("JWT")),
        ("header", "kid", Value::Null),
        ("header", "jku", json!("https://evil.example/keys")),
        ("header", "jwk", json!({ "kty": "OKP" })),
    ] {
        assert!(with(part, name, value.clone()).is_ok(), "{name} {value}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_says_why() {
    for (part, name, value, why) in [
        ("claims", "iss", json!("https://login.example/"), Refused::Issuer),
        ("claims", "iss", json!("https://LOGIN.example"), Refused::Issuer),
        ("claims", "iss", Value::Null, Refused::Issuer),
        ("claims", "aud", json!("https://gate.example"), Refused::Audience),
        ("claims", "aud", json!("https://gate.example/mcp/"), Refused::Audience),
        ("claims", "aud", json!([]), Refused::Audience),
        ("claims", "aud", json!({ "a": RESOURCE }), Refused::Audience),
        ("claims", "aud", Value::Null, Refused::Audience),
        ("claims", "exp", json!(NOW_S - LEEWAY_S), Refused::Expired),
        ("claims", "exp", json!("1900000000"), Refused::Malformed),
        ("claims", "exp", Value::Null, Refused::NoExpiry),
        ("claims", "nbf", json!(NOW_S + LEEWAY_S + 1.0), Refused::NotYet),
        ("claims", "iat", json!(NOW_S + LEEWAY_S + 1.0), Refused::NotYet),
        ("claims", "cnf", json!({ "jkt": "x" }), Refused::Bound),
        ("header", "alg", json!("none"), Refused::Algorithm),
        ("header", "alg", json!("None"), Refused::Algorithm),
        ("header", "alg", json!("HS256"), Refused::Algorithm),
        ("header", "alg", json!("RS512"), Refused::Algorithm),
        ("header", "alg", json!(1), Refused::Malformed),
        ("header", "alg", Value::Null, Refused::Algorithm),
        ("header", "alg", json!("RS256"), Refused::UnknownKey),
        ("header", "kid", json!("k2"), Refused::UnknownKey),
        ("header", "kid", json!("../k1"), Refused::UnknownKey),
        ("header", "crit", json!(["b64"]), Refused::Critical),
        ("header", "typ", json!("logout+jwt"), Refused::Type),
        ("header", "typ", json!("dpop+jwt"), Refused::Type),
    ] {
        assert_eq!(with(part, name, value.clone()), Err(why), "{name} {value}");
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let token = signed(&header(), &claims());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let none = format!("{}.{}.", encoded(r#"{"alg":"none"}"#), encoded(claims().to_string()));
    for (token, why) in [
        (none, Refused::Algorithm),
        (format!("{message}."), Refused::Signature),
        (format!("{token}.x"), Refused::Malformed),
        (format!("{token}=="), Refused::Malformed),
        (format!(" {token}"), Refused::Malformed),
        (message.to_owned(), Refused::Malformed),
        (format!("{}.e30.{signature}", encoded("[]")), Refused::Malformed),
        (format!("{}.e30.{signature}", encoded(r#"{"alg":"EdDSA","alg":"none"}"#)), Refused::Malformed),
        ("x".repeat(TOKEN_BYTES_MAX + 1), Refused::TooLong),
        (String::new(), Refused::Malformed),
    ] {
        assert_eq!(check(&token), Err(why), "{token}");
    }
    assert!(check(&token).is_ok());
}

/// The public key of an issuer as the secret of an HMAC (RFC 8725, 2.1), and as the key of another algorithm.
#[test]
fn a_public_key_is_never_a_shared_secret() {
    let public = pair(1).public_key().as_ref().to_vec();
    let message = format!("{}.{}", encoded(r#"{"alg":"HS256","kid":"k1"}"#), encoded(claims().to_string()));
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public), message.as_bytes());
    assert_eq!(check(&format!("{message}.{}", encoded(tag))), Err(Refused::Algorithm));

    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let own = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let message = format!("{}.{}", encoded(r#"{"alg":"ES256","kid":"k1"}"#), encoded(claims().to_string()));
    let signature = own.sign(&random, message.as_bytes()).unwrap();
    assert_eq!(check(&format!("{message}.{}", encoded(signature))), Err(Refused::UnknownKey));
}

#[test]
fn a_key_of_another_issuer_signs_nothing_here() {
    let token = signed(&header(), &claims());
    let expected = Expected { issuer: ISSUER, resource: RESOURCE, now_s: NOW_S };
    let opened = Opened::of(&token).unwrap();
    assert_eq!(opened.check(&keys(2, "k1"), expected), Err(Refused::Signature));
    let other = Expected { issuer: "https://other.example", ..expected };
    assert_eq!(opened.check(&keys(1, "k1"), other), Err(Refused::Issuer));
}

/// All three signatures that are not Ed25519, with a key of RSA that is for tests alone.
#[test]
fn every_algorithm_of_the_list_is_checked() {
    let text: String = include_str!("../../../tests/keys/rsa-2048.pkcs8.b64").split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let rsa = ring::signature::RsaKeyPair::from_pkcs8(&der).unwrap();
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
    let point = ec.public_key().as_ref();
    let set = json!({ "keys": [
        { "kty": "RSA", "kid": "r", "n": encoded(&public.n), "e": encoded(&public.e) },
        { "kty": "EC", "crv": "P-256", "kid": "e", "x": encoded(&point[1..33]), "y": encoded(&point[33..]) },
    ] });
    let set = KeySet::read(set.to_string().as_bytes()).unwrap();
    let expected = Expected { issuer: ISSUER, resource: RESOURCE, now_s: NOW_S };
    for (name, id) in [("RS256", "r"), ("PS256", "r"), ("ES256", "e")] {
        let header = json!({ "alg": name, "kid": id });
        let message = format!("{}.{}", encoded(header.to_string()), encoded(claims().to_string()));
        let signature = if id == "e" {
            ec.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec()
        } else {
            let padding: &dyn ring::signature::RsaEncoding = match name {
                "RS256" => &ring::signature::RSA_PKCS1_SHA256,
                _ => &ring::signature::RSA_PSS_SHA256,
            };
            let mut signature = vec![0; rsa.public().modulus_len()];
            rsa.sign(padding, &random, message.as_bytes(), &mut signature).unwrap();
            signature
        };
        let token = format!("{message}.{}", encoded(&signature));
        assert!(Opened::of(&token).unwrap().check(&set, expected).is_ok(), "{name}");
        let other = token.replacen(&encoded(header.to_string()), &encoded(r#"{"alg":"PS256","kid":"e"}"#), 1);
        assert_eq!(Opened::of(&other).unwrap().check(&set, expected), Err(Refused::UnknownKey), "{name}");
    }
}

proptest! {
    /// Nothing that arrives makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(token in "[A-Za-z0-9_.=-]{0,200}|\\PC{0,100}") {
        prop_assert!(check(&token).is_err());
    }

    /// One character of a token that was changed, and it is not believed.
    #[test]
    fn a_changed_token_is_refused(place in any::<prop::sample::Index>(), to in "[A-Za-z0-9_-]") {
        let token = signed(&header(), &claims());
        let place = place.index(token.len());
        let mut changed = token.clone();
        changed.replace_range(place..=place, &to);
        prop_assume!(changed != token);
        prop_assert!(check(&changed).is_err(), "{}", changed);
    }

    /// Whatever the times are, a token is believed only within them.
    #[test]
    fn times_are_kept(exp in -1e10..1e10f64, nbf in -1e10..1e10f64) {
        let mut claims = claims();
        claims["exp"] = json!((NOW_S + exp).floor());
        claims["nbf"] = json!((NOW_S + nbf).floor());
        let within = NOW_S < (NOW_S + exp).floor() + LEEWAY_S && NOW_S + LEEWAY_S >= (NOW_S + nbf).floor();
        prop_assert_eq!(check(&signed(&header(), &claims)).is_ok(), within);
    }

    /// Whatever the audience is, only the one of the gate opens it.
    #[test]
    fn an_audience_is_compared_whole(audience in "https://(gate|evil)\\.example(/mcp)?(/|\\.|%20)?") {
        let mut claims = claims();
        claims["aud"] = json!(audience);
        prop_assert_eq!(check(&signed(&header(), &claims)).is_ok(), audience == RESOURCE);
    }
}
