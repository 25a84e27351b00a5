//! Signatures of messages, as Standard Webhooks 1.0 has them (<https://www.standardwebhooks.com>): HMAC-SHA-256 under a
//! shared secret over `ID.TIMESTAMP.BODY`, in base64 after `v1,`.

use std::path::Path;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_session::credentials::read_token;
use sha2::Sha256;

/// The header with the id of a message.
pub(super) const ID: &str = "webhook-id";
/// The header with its time, in seconds since 1970.
pub(super) const TIMESTAMP: &str = "webhook-timestamp";
/// The header with its signatures, separated by spaces.
pub(super) const SIGNATURE: &str = "webhook-signature";

/// How a secret begins.
const PREFIX: &str = "whsec_";
/// Fewest bytes of a secret.
const SECRET_BYTES_MIN: usize = 24;
/// How far the time of a message may be from ours, in seconds.
const CLOCKS_APART_MAX: u64 = 300;
/// Signatures of a message that are looked at.
const SIGNATURES_MAX: usize = 8;

/// The secret that both sides of a webhook sign with.
pub(super) struct Secret(Vec<u8>);

/// Why a message is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotSigned {
    #[error("the message needs the headers `{ID}`, `{TIMESTAMP}` and `{SIGNATURE}`")]
    Headers,
    #[error("the message is older or newer than {CLOCKS_APART_MAX} s; sign it again, and compare the clocks")]
    Time,
    #[error("no signature of the message is right")]
    Signature,
}

impl Secret {
    /// Reads the secret from a file that only this user can read.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = read_token(path).map_err(|error| error.to_string())?;
        let shape = || {
            format!(
                "`{}` must hold `{PREFIX}` and at least {SECRET_BYTES_MIN} random bytes in base64, such as from `echo \
                 {PREFIX}$(openssl rand -base64 32)`",
                path.display()
            )
        };
        let encoded = text.strip_prefix(PREFIX).ok_or_else(shape)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| shape())?;
        if bytes.len() < SECRET_BYTES_MIN {
            return Err(shape());
        }
        Ok(Self(bytes))
    }

    fn mac(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        for part in parts {
            mac.update(part);
        }
        Some(mac)
    }

    /// The headers of a message.
    pub(super) fn headers(&self, id: &str, at_s: u64, body: &[u8]) -> Vec<(&'static str, String)> {
        let at = at_s.to_string();
        let mac = self.mac(&[id.as_bytes(), b".", at.as_bytes(), b".", body]);
        let signature = mac.map(|mac| format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
        vec![
            ("content-type", "application/json".to_owned()),
            (ID, id.to_owned()),
            (TIMESTAMP, at),
            (SIGNATURE, signature.unwrap_or_default()),
        ]
    }

    /// Whether a message was signed with the secret, not long ago. Signatures are compared in constant time.
    pub(super) fn verify(&self, headers: &HeaderMap, now_s: u64, body: &[u8]) -> Result<(), NotSigned> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).ok_or(NotSigned::Headers);
        let (id, at, signatures) = (header(ID)?, header(TIMESTAMP)?, header(SIGNATURE)?);
        let at_s: u64 = at.parse().map_err(|_| NotSigned::Headers)?;
        if now_s.abs_diff(at_s) > CLOCKS_APART_MAX {
            return Err(NotSigned::Time);
        }
        let right = |signature: &str| {
            let given = signature.strip_prefix("v1,").and_then(|encoded| STANDARD.decode(encoded).ok());
            let mac = self.mac(&[id.as_bytes(), b".", at.as_bytes(), b".", body]);
            given.zip(mac).is_some_and(|(given, mac)| mac.verify_slice(&given).is_ok())
        };
        match signatures.split(' ').take(SIGNATURES_MAX).any(right) {
            true => Ok(()),
            false => Err(NotSigned::Signature),
        }
    }

    /// The nonce of a request as it stands: of what is shown, and how many people have agreed. It is used up by the
    /// decision, after which the request stands otherwise.
    pub(super) fn nonce(&self, webhook: &str, approval: ApprovalId, shown: Digest, agreed: usize) -> String {
        let agreed = u64::try_from(agreed).unwrap_or(u64::MAX).to_be_bytes();
        let parts: [&[u8]; 6] = [
            b"portcullis/webhook-nonce/v1\0",
            approval.as_bytes(),
            shown.as_bytes(),
            &agreed,
            webhook.as_bytes(),
            b"",
        ];
        let mac = self.mac(&parts).map(|mac| mac.finalize().into_bytes());
        mac.map(|mac| STANDARD.encode(mac)).unwrap_or_default()
    }

    /// Whether a nonce is that of a request as it stands, in constant time.
    pub(super) fn is_nonce(&self, given: &str, expected: &str) -> bool {
        let of = |text: &str| self.mac(&[text.as_bytes()]).map(|mac| mac.finalize().into_bytes());
        match (self.mac(&[given.as_bytes()]), of(expected)) {
            (Some(given), Some(expected)) => !expected.is_empty() && given.verify(&expected).is_ok(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// The example of the specification's reference libraries.
    #[test]
    fn a_known_message_has_its_known_signature() {
        let secret = Secret(STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let signed =
            secret.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed[3].1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_was_altered_is_not_believed() {
        let (secret, body) = (Secret(vec![7; 32]), b"{\"a\":1}");
        let signed = secret.headers("m", 1_000, body);
        assert_eq!(secret.verify(&headers(&signed), 1_000, body), Ok(()));
        assert_eq!(secret.verify(&headers(&signed), 1_300, body), Ok(()));
        assert_eq!(secret.verify(&headers(&signed), 1_301, body), Err(NotSigned::Time));
        assert_eq!(secret.verify(&headers(&signed), 699, body), Err(NotSigned::Time));
        assert_eq!(secret.verify(&headers(&signed), 1_000, b"{\"a\":2}"), Err(NotSigned::Signature));
        assert_eq!(Secret(vec![8; 32]).verify(&headers(&signed), 1_000, body), Err(NotSigned::Signature));
        assert_eq!(secret.verify(&headers(&signed[..3]), 1_000, body), Err(NotSigned::Headers));
        let mut other = signed.clone();
        other[1].1 = "n".into();
        assert_eq!(secret.verify(&headers(&other), 1_000, body), Err(NotSigned::Signature), "another id");
        let mut rotated = signed;
        rotated[3].1 = format!("v1,AAAA v1a,x {}", rotated[3].1);
        assert_eq!(secret.verify(&headers(&rotated), 1_000, body), Ok(()), "several signatures");
    }

    #[test]
    fn a_nonce_is_of_a_request_as_it_stands() {
        let secret = Secret(vec![7; 32]);
        let (approval, shown) = (ApprovalId::from_bytes([1; 16]), Digest::from_bytes([2; 32]));
        let nonce = secret.nonce("oncall", approval, shown, 0);
        assert!(secret.is_nonce(&nonce, &secret.nonce("oncall", approval, shown, 0)));
        for other in [
            secret.nonce("oncall", approval, shown, 1),
            secret.nonce("other", approval, shown, 0),
            secret.nonce("oncall", ApprovalId::from_bytes([3; 16]), shown, 0),
            secret.nonce("oncall", approval, Digest::from_bytes([4; 32]), 0),
            Secret(vec![8; 32]).nonce("oncall", approval, shown, 0),
            String::new(),
        ] {
            assert!(!secret.is_nonce(&nonce, &other));
        }
    }
}
