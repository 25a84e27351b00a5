//! Keys of an issuer (RFC 7517), and signatures under them.
//!
//! A key is used for the one algorithm that fits its type, and for nothing that it does not say of itself. Symmetric keys
//! are not read at all: a public key that is taken for one (RFC 8725, 2.1) finds nothing here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// The most keys of an issuer that are kept; more is no set of keys that anybody rotates.
const KEYS_MAX: usize = 64;
/// The longest id of a key, in bytes.
const ID_BYTES_MAX: usize = 256;

/// How a token may be signed. Nothing else is: neither `none` nor what needs a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSA, PKCS #1 v1.5, SHA-256.
    Rs256,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// ECDSA over P-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// What a header names (RFC 7518; RFC 8037, and its newer name in RFC 9864).
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// The keys of one issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The algorithm that the key is said to be for.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why no key vouches for a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSigned {
    /// No key of that name is for that algorithm. The issuer may have a new one.
    UnknownKey,
    /// The token names no key, and several would do.
    Ambiguous,
    /// It is not the signature.
    Wrong,
}

#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<serde_json::Value>,
}

/// A key as it is written. What is not here is of no use to us.
#[derive(Deserialize)]
struct Written {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys of which no use can be made are left out, as RFC 7517 has it.
    ///
    /// # Errors
    /// It is no set of keys, has too many, or none that a token can be checked with.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let set: WrittenSet =
            serde_json::from_slice(bytes).map_err(|_| "it is not a JSON Web Key set".to_owned())?;
        if set.keys.len() > KEYS_MAX {
            return Err(format!("it has {} keys; the limit is {KEYS_MAX}", set.keys.len()));
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err("it has no key for RS256, PS256, ES256 or EdDSA".to_owned());
        }
        Ok(Self(keys))
    }

    /// Whether a key of the set made the signature.
    pub(crate) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), NotSigned> {
        let fits = |key: &&Key| key.is_for(algorithm) && (id.is_none() || key.id.as_deref() == id);
        let found: Vec<&Key> = self.0.iter().filter(fits).collect();
        match (found.len(), id) {
            (0, _) => Err(NotSigned::UnknownKey),
            (2.., None) => Err(NotSigned::Ambiguous),
            _ if found.iter().any(|key| key.signed(algorithm, message, signature)) => Ok(()),
            _ => Err(NotSigned::Wrong),
        }
    }
}

impl Key {
    fn read(value: serde_json::Value) -> Option<Self> {
        let written: Written = serde_json::from_value(value).ok()?;
        if written.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if written.key_ops.as_ref().is_some_and(|operations| !operations.iter().any(|of| of == "verify")) {
            return None;
        }
        if written.kid.as_ref().is_some_and(|id| id.len() > ID_BYTES_MAX) {
            return None;
        }
        let algorithm = match &written.alg {
            Some(name) => Some(Algorithm::of(name)?),
            None => None,
        };
        let decoded = |field: &Option<String>| URL_SAFE_NO_PAD.decode(field.as_deref()?).ok();
        let material = match (written.kty.as_str(), written.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { modulus: decoded(&written.n)?, exponent: decoded(&written.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (decoded(&written.x)?, decoded(&written.y)?);
                // RFC 7518, 6.2.1.2: both have the length of the field.
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Material::P256([&[4][..], &x, &y].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(decoded(&written.x).filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(Self { id: written.kid, algorithm, material })
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let of_type = match self.material {
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        of_type && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.material, algorithm) {
            (Material::Rsa { modulus, exponent }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            (Material::Rsa { modulus, exponent }, Algorithm::Ps256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PSS_2048_8192_SHA256, message, signature).is_ok()
            }
            (Material::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Material::Ed25519(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515, appendix A.3, and RFC 8037, appendix A.4.
    const KNOWN: [(&str, &str, &str); 2] = [
        (
            r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ];

    fn set(keys: &[&str]) -> Result<KeySet, String> {
        KeySet::read(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes())
    }

    #[test]
    fn known_signatures_are_right_and_others_are_not() {
        for (key, message, signature) in KNOWN {
            let algorithm = if key.contains("OKP") { Algorithm::EdDsa } else { Algorithm::Es256 };
            let keys = set(&[key]).unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            let check = |message: &str| keys.verify(None, algorithm, message.as_bytes(), &signature);
            assert_eq!(check(message), Ok(()));
            assert_eq!(check(&message.replacen('e', "f", 1)), Err(NotSigned::Wrong));
            assert_eq!(
                keys.verify(None, Algorithm::Rs256, message.as_bytes(), &signature),
                Err(NotSigned::UnknownKey),
                "a key is for the algorithm of its type"
            );
        }
    }

    #[test]
    fn a_key_is_used_for_what_it_says_of_itself() {
        let (key, message, signature) = KNOWN[0];
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let with = |more: &str| set(&[&key.replacen('{', &format!("{{{more},"), 1)]);
        let check = |keys: &KeySet, id| keys.verify(id, Algorithm::Es256, message.as_bytes(), &signature);
        assert_eq!(check(&with(r#""kid":"a","use":"sig","alg":"ES256""#).unwrap(), Some("a")), Ok(()));
        assert_eq!(check(&with(r#""kid":"a""#).unwrap(), Some("b")), Err(NotSigned::UnknownKey));
        assert_eq!(
            check(&set(&[key]).unwrap(), Some("b")),
            Err(NotSigned::UnknownKey),
            "a key without a name"
        );
        for useless in [r#""use":"enc""#, r#""key_ops":["sign"]"#, r#""alg":"HS256""#, r#""alg":"none""#] {
            assert!(with(useless).unwrap_err().contains("no key for"), "{useless}");
        }
        assert!(set(&[r#"{"kty":"oct","k":"c2VjcmV0"}"#]).is_err(), "a shared secret");
        assert!(set(&[r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#]).is_err(), "half a point");
        assert_eq!(check(&set(&[key, key]).unwrap(), None), Err(NotSigned::Ambiguous));
        let many = vec![key; KEYS_MAX + 1];
        assert!(set(&many).unwrap_err().contains("the limit is"));
        assert!(KeySet::read(b"[]").is_err() && KeySet::read(b"<html>").is_err());
    }

    #[test]
    fn two_keys_of_one_name_are_told_apart_by_their_type() {
        let named = |key: &str| key.replacen('{', r#"{"kid":"same","#, 1);
        let keys = set(&[&named(KNOWN[1].0), &named(KNOWN[0].0)]).unwrap();
        for ((_, message, signature), algorithm) in
            KNOWN.into_iter().zip([Algorithm::Es256, Algorithm::EdDsa])
        {
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            assert_eq!(keys.verify(Some("same"), algorithm, message.as_bytes(), &signature), Ok(()));
        }
    }
}
