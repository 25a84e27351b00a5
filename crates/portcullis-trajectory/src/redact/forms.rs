//! The forms of secrets: where to look, and what has to stand there.

use std::ops::Range;

use super::secret::Secret;

/// Longest value of a named field that is looked at, in bytes.
const VALUE_BYTES_MAX: usize = 512;
/// Shortest password, in bytes: shorter words are in such fields by chance.
const PASSWORD_BYTES_MIN: usize = 6;
/// Shortest value of fields such as `token`, whose names mean other things, too.
const TOKEN_BYTES_MIN: usize = 16;
/// Longest issued token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 8_192;
/// Longest private key in bytes, with its frame.
const PRIVATE_KEY_BYTES_MAX: usize = 16_384;
/// Longest authority of a URL that is looked at, in bytes.
const AUTHORITY_BYTES_MAX: usize = 512;

/// How a secret is told once its anchor was found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// A token whose issuer gives it a beginning: kind, alphabet, fewest further bytes.
    Issued(&'static str, Alphabet, usize),
    /// A token of this gate's own: kind, fewest hexadecimal digits. Whatever stands around it.
    Own(&'static str, usize),
    /// A key of the transparency log or of a writer, as C2SP's signed notes have them.
    NoteKey,
    /// Three parts of Base64, the first two of them JSON.
    Jwt,
    /// A frame in PEM.
    PrivateKey,
    /// A URL with a password.
    Url,
    /// `Authorization: SCHEME TOKEN`.
    Authorization,
    /// `Bearer TOKEN`, anywhere.
    Bearer,
    /// A field that is called so: kind, and whether its name can mean nothing else.
    Named(&'static str, bool),
}

/// Which bytes follow.
#[derive(Debug, Clone, Copy)]
pub(super) enum Alphabet {
    /// Letters and digits.
    Alphanumeric,
    /// Capitals and digits.
    Capitals,
    /// Hexadecimal digits.
    Hex,
    /// Letters, digits, hyphens and underscores.
    Url,
    /// The same and points.
    Dotted,
    /// The same as `Url`, with capitals and digits among them: words with hyphens have none.
    Mixed,
    /// Letters, digits and slashes.
    Path,
}

use Alphabet::{Alphanumeric, Capitals, Dotted, Hex, Mixed, Path, Url};
use Rule::{Authorization, Bearer, Issued, Jwt, Named, NoteKey, Own, PrivateKey};

/// Where to look for this gate's own tokens and keys, in any case of letters. They are kept from the store whatever
/// the bundle says, and their form is this program's: any text that begins so and is long enough is one.
pub(super) const OWN: &[(&str, Rule)] = &[
    ("pcag_", Own("portcullis-agent-token", 32)),
    ("pcap_", Own("portcullis-approver-token", 32)),
    ("PRIVATE+KEY+", NoteKey),
];

/// Where to look, in any case of letters: the beginnings must match exactly.
pub(super) const ANCHORS: &[(&str, Rule)] = &[
    ("AKIA", Issued("aws-access-key", Capitals, 16)),
    ("ASIA", Issued("aws-access-key", Capitals, 16)),
    ("ghp_", Issued("github-token", Alphanumeric, 36)),
    ("gho_", Issued("github-token", Alphanumeric, 36)),
    ("ghu_", Issued("github-token", Alphanumeric, 36)),
    ("ghs_", Issued("github-token", Alphanumeric, 36)),
    ("ghr_", Issued("github-token", Alphanumeric, 36)),
    ("github_pat_", Issued("github-token", Url, 36)),
    ("glpat-", Issued("gitlab-token", Url, 20)),
    ("sk-ant-", Issued("anthropic-key", Mixed, 24)),
    ("sk-proj-", Issued("openai-key", Mixed, 24)),
    ("sk-svcacct-", Issued("openai-key", Mixed, 24)),
    ("sk-", Issued("api-key", Mixed, 32)),
    ("sk_live_", Issued("stripe-key", Alphanumeric, 16)),
    ("sk_test_", Issued("stripe-key", Alphanumeric, 16)),
    ("rk_live_", Issued("stripe-key", Alphanumeric, 16)),
    ("whsec_", Issued("webhook-secret", Alphanumeric, 24)),
    ("xoxb-", Issued("slack-token", Mixed, 20)),
    ("xoxp-", Issued("slack-token", Mixed, 20)),
    ("xoxa-", Issued("slack-token", Mixed, 20)),
    ("xoxe-", Issued("slack-token", Mixed, 20)),
    ("xapp-", Issued("slack-token", Mixed, 20)),
    ("hooks.slack.com/services/", Issued("webhook-secret", Path, 30)),
    ("AIza", Issued("google-api-key", Url, 35)),
    ("ya29.", Issued("google-token", Url, 20)),
    ("GOCSPX-", Issued("google-client-secret", Url, 20)),
    ("npm_", Issued("npm-token", Alphanumeric, 36)),
    ("pypi-AgEI", Issued("pypi-token", Url, 50)),
    ("hf_", Issued("hugging-face-token", Alphanumeric, 30)),
    ("SG.", Issued("sendgrid-key", Dotted, 60)),
    ("dop_v1_", Issued("digitalocean-token", Hex, 64)),
    ("dckr_pat_", Issued("docker-token", Url, 20)),
    ("shpat_", Issued("shopify-token", Hex, 32)),
    ("shpss_", Issued("shopify-token", Hex, 32)),
    ("hvs.", Issued("vault-token", Url, 24)),
    ("AGE-SECRET-KEY-1", Issued("private-key", Capitals, 50)),
    ("eyJ", Jwt),
    ("-----BEGIN ", PrivateKey),
    ("://", Rule::Url),
    ("authorization", Authorization),
    ("bearer ", Bearer),
    ("password", Named("password", true)),
    ("passwd", Named("password", true)),
    ("passphrase", Named("password", true)),
    ("pwd", Named("password", true)),
    ("api_key", Named("api-key", false)),
    ("api-key", Named("api-key", false)),
    ("apikey", Named("api-key", false)),
    ("access_key", Named("access-key", false)),
    ("accesskey", Named("access-key", false)),
    ("account_key", Named("access-key", false)),
    ("accountkey", Named("access-key", false)),
    ("private_key", Named("private-key", false)),
    ("privatekey", Named("private-key", false)),
    ("secret", Named("secret", false)),
    ("token", Named("token", false)),
];

/// What may follow the word in the name of a field that holds a secret: `secret_key`, `secretAccessKey`.
const NAME_ENDS: &[&str] = &["", "key", "accesskey", "token", "value"];
/// Words before `token` that make it a place in a list or a number.
const NOT_CREDENTIALS: &[&str] = &["page", "next", "continuation", "sync", "cursor", "csrf", "xsrf"];
/// Longest name of a field, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Words that stand where a secret would.
const PLACEHOLDERS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "string",
    "number",
    "boolean",
    "object",
    "required",
    "optional",
    "undefined",
    "default",
    "private",
    "public",
    "unknown",
    "invalid",
    "missing",
    "expired",
    "bearer",
];
/// What such words have in them.
const PLACEHOLDER_PARTS: &[&str] = &[
    "your",
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "replace",
    "redacted",
    "dummy",
    "xxxx",
    "****",
    "....",
    "…",
    "insert",
    "sample",
    "hidden",
    "masked",
    "1234567890abcdef",
];

/// What was looked at already, so that no text is looked at again and again.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Where the latest value of a field that is not a secret ends.
    value_end: usize,
    /// Where the latest run of letters that is not a token with points in it ends.
    dotted_end: usize,
}

impl Rule {
    /// The secret at an anchor, if there is one.
    pub(super) fn secret(self, text: &str, anchor: Range<usize>, seen: &mut Seen) -> Option<Secret> {
        match self {
            Issued(kind, alphabet, fewest) => issued(text, &anchor, kind, alphabet, fewest, seen),
            Own(kind, fewest) => own(text, &anchor, kind, fewest),
            NoteKey => note_key(text, &anchor),
            Jwt => jwt(text, &anchor, seen),
            PrivateKey => private_key(text, &anchor),
            Rule::Url => url(text, &anchor),
            Authorization => authorization(text, &anchor),
            Bearer => bearer(text, &anchor),
            Named(kind, plain) => named(text, &anchor, kind, plain, seen),
        }
    }
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Alphanumeric => byte.is_ascii_alphanumeric(),
            Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Hex => byte.is_ascii_hexdigit(),
            Url | Mixed => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Path => byte.is_ascii_alphanumeric() || byte == b'/',
        }
    }
}

/// The bytes from `at` on for which `is` holds, at most `most`.
fn run(text: &str, at: usize, most: usize, is: impl Fn(u8) -> bool) -> &str {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let length = rest.iter().take(most).position(|byte| !is(*byte)).unwrap_or(rest.len().min(most));
    // All alphabets are ASCII, or end at a quote: a run that ends within a letter is none.
    text.get(at..at + length).unwrap_or_default()
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// Whether a token may begin here: after no letter or digit, save those of an escaped line break or tabulator.
fn begins(text: &str, at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| byte(text, before)) else { return true };
    if matches!(before, b'n' | b'r' | b't') && at.checked_sub(2).and_then(|at| byte(text, at)) == Some(b'\\')
    {
        return true;
    }
    !(before.is_ascii_alphanumeric() || matches!(before, b'_' | b'-'))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Whether someone wrote this in place of a secret.
fn is_placeholder(value: &str) -> bool {
    let first = value.bytes().next().unwrap_or_default();
    if matches!(first, b'<' | b'{' | b'$' | b'%' | b'[' | b'(')
        || value.contains("${")
        || value.contains("{{")
    {
        return true;
    }
    // A few letters over and over.
    let mut letters = [false; 256];
    value.bytes().for_each(|byte| {
        if let Some(seen) = letters.get_mut(usize::from(byte)) {
            *seen = true;
        }
    });
    if letters.iter().filter(|seen| **seen).count() <= 2 {
        return true;
    }
    let small = value.to_ascii_lowercase();
    PLACEHOLDERS.contains(&small.as_str()) || PLACEHOLDER_PARTS.iter().any(|part| small.contains(part))
}

fn issued(
    text: &str,
    anchor: &Range<usize>,
    kind: &'static str,
    alphabet: Alphabet,
    fewest: usize,
    seen: &mut Seen,
) -> Option<Secret> {
    let prefix = text.get(anchor.clone())?;
    let written = ANCHORS.iter().any(|(pattern, _)| *pattern == prefix);
    // The path of a webhook follows its host, which another name may come before.
    if !written || !(begins(text, anchor.start) || matches!(alphabet, Path)) {
        return None;
    }
    let dotted = matches!(alphabet, Dotted | Path);
    if dotted && anchor.start < seen.dotted_end {
        return None;
    }
    let rest = run(text, anchor.end, TOKEN_BYTES_MAX, |byte| alphabet.has(byte));
    if dotted {
        seen.dotted_end = anchor.end + rest.len();
    }
    let rest = rest.trim_end_matches(['.', '-', '/']);
    let exact = matches!(alphabet, Capitals) && fewest == 16;
    if rest.len() < fewest || (exact && rest.len() != fewest) || is_placeholder(rest) {
        return None;
    }
    let capitals = rest.bytes().any(|byte| byte.is_ascii_uppercase());
    if !has_digit(rest) || (matches!(alphabet, Mixed) && !capitals && !is_hex_key(rest)) {
        return None;
    }
    // Of a URL only what is secret; of a token all of it.
    let start = if matches!(alphabet, Path) { anchor.end } else { anchor.start };
    Some(Secret { range: start..anchor.end + rest.len(), kind })
}

/// A token of the gate's own is told by its beginning alone: what stands before it, or how it is set, does not matter.
fn own(text: &str, anchor: &Range<usize>, kind: &'static str, fewest: usize) -> Option<Secret> {
    let digits = run(text, anchor.end, TOKEN_BYTES_MAX, |byte| Hex.has(byte)).len();
    (digits >= fewest).then(|| Secret { range: anchor.start..anchor.end + digits, kind })
}

/// `PRIVATE+KEY+NAME+ID+BASE64`, in JSON with or without backslashes before slashes.
fn note_key(text: &str, anchor: &Range<usize>) -> Option<Secret> {
    /// Of 33 bytes in Base64: the kind of the key and its seed.
    const KEY_BYTES: usize = 44;
    let is_part =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b',');
    let key = run(text, anchor.end, TOKEN_BYTES_MAX, is_part);
    // Two pluses end name and id; the key may have more of them.
    let (_, rest) = key.split_once('+')?;
    let (id, _) = rest.split_once('+')?;
    let start = anchor.end + (key.len() - rest.len()) + id.len() + 1;
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\\');
    let found = run(text, start, TOKEN_BYTES_MAX, base64);
    // A backslash that ends it belongs to what follows: a line break, a quote.
    let found = found.split("\\n").next().unwrap_or(found).trim_end_matches('\\');
    (found.len() >= KEY_BYTES - 1)
        .then(|| Secret { range: anchor.start..start + found.len(), kind: "private-key" })
}

/// Digits and small letters without a word's length of letters in a row.
fn is_hex_key(rest: &str) -> bool {
    rest.split(['-', '_']).any(|part| part.len() >= 32 && has_digit(part) && has_letter(part))
}

fn jwt(text: &str, anchor: &Range<usize>, seen: &mut Seen) -> Option<Secret> {
    let written = text.get(anchor.clone()) == Some("eyJ") && begins(text, anchor.start);
    if !written || anchor.start < seen.dotted_end {
        return None;
    }
    let token =
        run(text, anchor.start, TOKEN_BYTES_MAX, |byte| Dotted.has(byte)).trim_end_matches(['.', '-']);
    seen.dotted_end = anchor.start + token.len();
    let mut parts = token.splitn(4, '.');
    let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let whole =
        header.len() >= 12 && claims.len() >= 12 && signature.len() >= 16 && claims.starts_with("eyJ");
    whole.then(|| Secret { range: anchor.start..anchor.start + token.len(), kind: "jwt" })
}

fn private_key(text: &str, anchor: &Range<usize>) -> Option<Secret> {
    const OPENED: &str = "PRIVATE KEY";
    const CLOSES: &str = "-----END ";
    let label =
        run(text, anchor.end, 40, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let dashes = anchor.end + label.len();
    if !(label.ends_with(OPENED) || label.ends_with("PRIVATE KEY BLOCK"))
        || !text.get(dashes..)?.starts_with("-----")
    {
        return None;
    }
    // Lines of Base64 and headers; no quote, so that the string of JSON that it is in is not left.
    let is_body = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b'\n' | b'\r' | b'\t' | b' ' | b':' | b',' | b'.')
    };
    let start = dashes + 5;
    // Hyphens are not in it, so that it ends where the next frame begins.
    let body = run(text, start, PRIVATE_KEY_BYTES_MAX, is_body);
    // A backslash before the quote that ends the text is the quote's.
    let body = body.strip_suffix('\\').unwrap_or(body);
    let key: usize = body.bytes().filter(u8::is_ascii_alphanumeric).count();
    if key < 32 || is_placeholder(body) {
        return None;
    }
    let mut end = start + body.len();
    if text.get(end..)?.starts_with(CLOSES) {
        let label = run(text, end + CLOSES.len(), 40, |byte| byte.is_ascii_uppercase() || byte == b' ');
        end += CLOSES.len() + label.len();
        end += run(text, end, 5, |byte| byte == b'-').len();
    }
    Some(Secret { range: anchor.start..end, kind: "private-key" })
}

fn url(text: &str, anchor: &Range<usize>) -> Option<Secret> {
    let scheme = anchor.start.checked_sub(1).and_then(|at| byte(text, at))?;
    if !scheme.is_ascii_alphanumeric() {
        return None;
    }
    let authority = run(text, anchor.end, AUTHORITY_BYTES_MAX, |byte| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'\\' | b'<' | b'>' | b'`')
    });
    let (user, host) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    if host.is_empty() || password.len() < 3 || is_placeholder(password) {
        return None;
    }
    let start = anchor.end + name.len() + 1;
    Some(Secret { range: start..start + password.len(), kind: "password" })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

fn authorization(text: &str, anchor: &Range<usize>) -> Option<Secret> {
    let (value, _) = value_at(text, anchor.end)?;
    let scheme = run(text, value, 16, |byte| byte.is_ascii_alphabetic());
    let kind = match scheme.to_ascii_lowercase().as_str() {
        "basic" => "basic-authorization",
        "bearer" | "token" | "apikey" => "bearer-token",
        _ => return None,
    };
    let start = value + scheme.len() + run(text, value + scheme.len(), 2, |byte| byte == b' ').len();
    let token = run(text, start, TOKEN_BYTES_MAX, is_token);
    let holds = start > value + scheme.len() && token.len() >= 8 && !is_placeholder(token);
    holds.then(|| Secret { range: start..start + token.len(), kind })
}

fn bearer(text: &str, anchor: &Range<usize>) -> Option<Secret> {
    if !begins(text, anchor.start) {
        return None;
    }
    let token = run(text, anchor.end, TOKEN_BYTES_MAX, is_token).trim_end_matches(['.', '-']);
    let holds =
        token.len() >= TOKEN_BYTES_MIN && has_digit(token) && has_letter(token) && !is_placeholder(token);
    holds.then(|| Secret { range: anchor.end..anchor.end + token.len(), kind: "bearer-token" })
}

/// How a value is told from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// In quotes.
    Quoted(u8),
    /// Until the next white space or mark.
    Bare,
    /// Until the next tag.
    Element,
}

/// Where the value of a name that ends at `at` begins.
fn value_at(text: &str, at: usize) -> Option<(usize, Frame)> {
    let skip = |at: usize, most: usize, is: &dyn Fn(u8) -> bool| at + run(text, at, most, is).len();
    // Escaped quotes have one backslash or more before them.
    let quote = |at: usize| {
        let escaped = skip(at, 3, &|byte| byte == b'\\');
        byte(text, escaped)
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))
            .map(|quote| (escaped + 1, quote))
    };
    let after_name = quote(at).map_or(at, |(after, _)| after);
    let spaced = skip(after_name, 4, &|byte| byte == b' ');
    let sign = run(text, spaced, 2, |byte| matches!(byte, b':' | b'=' | b'>'));
    let after_sign = spaced + sign.len();
    match sign {
        ":" | "=" | ":=" | "=>" => {}
        // `--password VALUE`.
        "" if spaced > at && spaced == after_sign => {
            let flag = text
                .get(..at)?
                .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
                .next()?;
            if !flag.starts_with("--") {
                return None;
            }
        }
        ">" if spaced == at => return Some((after_sign, Frame::Element)),
        _ => return None,
    }
    let value = skip(after_sign, 4, &|byte| byte == b' ');
    Some(quote(value).map_or((value, Frame::Bare), |(after, quote)| (after, Frame::Quoted(quote))))
}

fn named(
    text: &str,
    anchor: &Range<usize>,
    kind: &'static str,
    plain: bool,
    seen: &mut Seen,
) -> Option<Secret> {
    if anchor.start < seen.value_end {
        return None;
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = run(text, anchor.end, NAME_BYTES_MAX, is_name);
    let bare_end: String = end.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    if !NAME_ENDS.contains(&bare_end.to_ascii_lowercase().as_str()) {
        return None;
    }
    let before = text.as_bytes().get(anchor.start.saturating_sub(NAME_BYTES_MAX)..anchor.start)?;
    let name = before.rsplit(|byte| !is_name(*byte)).next().unwrap_or_default().to_ascii_lowercase();
    let name = String::from_utf8(name).unwrap_or_default();
    if NOT_CREDENTIALS.iter().any(|word| name.trim_end_matches(['_', '-']).ends_with(word)) {
        return None;
    }
    let (start, frame) = value_at(text, anchor.end + end.len())?;
    let value = run(text, start, VALUE_BYTES_MAX, |byte| match frame {
        Frame::Quoted(quote) => byte != quote && byte != b'\\' && !byte.is_ascii_control(),
        Frame::Element => byte != b'<' && byte != b'"' && byte != b'\\' && !byte.is_ascii_whitespace(),
        Frame::Bare => {
            !byte.is_ascii_whitespace()
                && !matches!(
                    byte,
                    b'"' | b'\''
                        | b'`'
                        | b','
                        | b';'
                        | b'&'
                        | b'<'
                        | b'>'
                        | b')'
                        | b'}'
                        | b']'
                        | b'|'
                        | b'\\'
                )
        }
    });
    let holds = is_secret_value(value, kind, plain, frame) && value.len() < VALUE_BYTES_MAX;
    if !holds {
        seen.value_end = start + value.len();
        return None;
    }
    Some(Secret { range: start..start + value.len(), kind })
}

fn is_secret_value(value: &str, kind: &str, plain: bool, frame: Frame) -> bool {
    let fewest = if plain { PASSWORD_BYTES_MIN } else { TOKEN_BYTES_MIN };
    if value.len() < fewest || value.contains([' ', '\t']) || is_placeholder(value) {
        return false;
    }
    if plain && frame != Frame::Bare {
        return true;
    }
    // Code and prose: calls, members of objects, words.
    let code = value.contains(['(', '[', '{', '$', '*']) || value.contains("::") || value.contains("->");
    let mixed =
        has_letter(value) && (has_digit(value) || value.contains(['!', '@', '#', '%', '^', '+', '~']));
    if code && frame == Frame::Bare {
        return false;
    }
    // A path or an address of where the secret is kept is not it.
    let elsewhere = value.contains("://")
        || value.starts_with(['/', '.', '~'])
        || (kind != "access-key" && value.matches('/').count() > 2);
    mixed && !elsewhere && (plain || !is_sentence(value))
}

/// Words joined by hyphens, underscores or points, with a number perhaps: names, not keys.
fn is_sentence(value: &str) -> bool {
    let parts = value.split(['-', '_', '.', '/', ':']);
    parts.clone().count() > 1
        && parts.clone().all(|part| {
            part.bytes().all(|byte| byte.is_ascii_lowercase())
                || part.bytes().all(|byte| byte.is_ascii_digit())
        })
        && parts.filter(|part| has_letter(part)).count() > 1
}
