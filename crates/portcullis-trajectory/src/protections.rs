//! Protections that a text lowers: `verify_peer: false`, `--no-verify`, `requiredReviews = 0`.
//!
//! A setting is a key and a value behind a colon, an equals sign or a flag's name. It lowers a protection where the key
//! speaks of one and the value says *off*.

use portcullis_core::infer::words_of;

use crate::words::Shapes;

/// Most settings of one text that are looked at.
const SETTINGS_MAX: usize = 256;

/// Words of keys that speak of a protection. Words that forms and schemas use for other things as well (`required`,
/// `strict`, `check`) are left out.
const PROTECTIONS: [&str; 36] = [
    "verify",
    "verification",
    "signature",
    "signatures",
    "validate",
    "validation",
    "auth",
    "authentication",
    "authorization",
    "ssl",
    "tls",
    "encrypt",
    "encryption",
    "protect",
    "protection",
    "audit",
    "auditing",
    "firewall",
    "mfa",
    "2fa",
    "totp",
    "sandbox",
    "secure",
    "security",
    "approval",
    "approvals",
    "reviews",
    "reviewers",
    "enforce",
    "quarantine",
    "antivirus",
    "guard",
    "csrf",
    "hardening",
    "backup",
    "backups",
];

/// How [`PROTECTIONS`] look.
static PROTECTION_SHAPES: Shapes = Shapes::of(&PROTECTIONS);
/// How [`WATCHING`] look.
static WATCHING_SHAPES: Shapes = Shapes::of(&WATCHING);

/// Values that switch something off.
const OFF: [&str; 11] =
    ["false", "$false", "off", "no", "none", "0", "disabled", "disable", "never", "optional", "skip"];

/// Beginnings of flags that switch off what follows.
const NEGATING: [&str; 4] = ["--no-", "--skip-", "--disable-", "--without-"];

/// Whether the words of a key speak of a protection.
pub(crate) fn are_protections(key: &[impl AsRef<str>]) -> bool {
    key.iter().any(|word| PROTECTION_SHAPES.has_some(word.as_ref()) && PROTECTIONS.contains(&word.as_ref()))
}

/// Things that protect or watch, by the names of devices and services.
const WATCHING: [&str; 24] = [
    "alert",
    "alerts",
    "alarm",
    "alarms",
    "smoke",
    "smk",
    "sensor",
    "sensors",
    "camera",
    "cameras",
    "cctv",
    "detector",
    "siren",
    "sprinkler",
    "interlock",
    "firewall",
    "waf",
    "antivirus",
    "defender",
    "backup",
    "backups",
    "audit",
    "monitoring",
    "logging",
];

/// Whether some words name what protects or watches.
pub(crate) fn are_watching(words: &[impl AsRef<str>]) -> bool {
    words.iter().any(|word| WATCHING_SHAPES.has_some(word.as_ref()) && WATCHING.contains(&word.as_ref()))
}

/// Whether a value switches something off.
pub(crate) fn is_off(value: &str) -> bool {
    OFF.iter().any(|off| value.eq_ignore_ascii_case(off))
}

fn is_on(value: &str) -> bool {
    ["true", "$true", "on", "yes", "1"].iter().any(|on| value.eq_ignore_ascii_case(on))
}

/// Whether the words of a key say that something which protects is switched off: `bypassApproval`, `DisableRealtimeMonitoring`.
pub(crate) fn disable(key: &[String]) -> bool {
    let off = |word: &String| {
        ["disable", "disabled", "bypass", "skip", "ignore", "suppress"].contains(&word.as_str())
    };
    key.iter().any(off) && (are_protections(key) || are_watching(key))
}

/// The words of the names of the protections that a text switches off. Linear in the text.
pub(crate) fn lowered(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Nothing else ties a value to a key, or negates one.
    if memchr::memchr3(b':', b'=', b'-', text.as_bytes()).is_none() {
        return found;
    }
    let mut key: Option<&str> = None;
    // Whether a colon, an equals sign or a flag's dash ties the next token to the key.
    let mut tied = false;
    for token in tokens(text).take(SETTINGS_MAX * 4) {
        match token {
            ":" | "=" | "=>" => tied = key.is_some(),
            "\n" | "," | ";" => (key, tied) = (None, false),
            // `DisableRealtimeMonitoring $true`
            value if tied && is_on(value) => {
                found.extend(key.map(words_of).filter(|key| disable(key)).into_iter().flatten());
                (key, tied) = (None, false);
            }
            value if tied && is_off(value) => {
                found.extend(key.map(words_of).filter(|key| are_protections(key)).into_iter().flatten());
                (key, tied) = (None, false);
            }
            flag if NEGATING.iter().any(|negating| flag.starts_with(negating)) => {
                found.extend(Some(words_of(flag)).filter(|flag| are_protections(flag)).into_iter().flatten());
                (key, tied) = (None, false);
            }
            word => (key, tied) = (Some(word), word.starts_with('-')),
        }
        if found.len() >= SETTINGS_MAX {
            break;
        }
    }
    found
}

/// Names, values and the signs between them; quotation marks and brackets fall away.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '$');
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let length = match first {
                letter if is_name(letter) => rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at_checked(length)?;
            rest = after;
            if is_name(first) || matches!(first, ':' | '=' | '\n' | ',' | ';') {
                return Some(token);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_that_switch_a_protection_off_are_found() {
        for (text, keys) in [
            ("tls:\n  verify_peer: false\n  bundle: /etc/ca.pem", &["verify", "peer"][..]),
            ("{\"requiredReviews\": 0, \"name\": \"main\"}", &["required", "reviews"]),
            ("requests.get(url, ssl_verify=False)", &["ssl", "verify"]),
            ("git commit --no-verify -m x", &["no", "verify"]),
            (
                "Set-AdminAuditLogConfig -UnifiedAuditLogIngestionEnabled $false",
                &["unified", "audit", "log", "ingestion", "enabled"],
            ),
            ("verify_peer: true\nsecurity:\n  level: 3", &[]),
            ("Is the audit over? No, it is off until May.", &[]),
            ("required: false, strict: false", &[]),
        ] {
            assert_eq!(lowered(text), keys, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            lowered(&text);
        }
    }
}
