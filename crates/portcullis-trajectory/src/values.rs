//! Values: the parts of a text that name one thing in the world, and can be recognised when they come back.

use std::ops::Range;

use crate::words::hash;

/// Most values taken from one text.
pub const VALUES_MAX: usize = 4_096;
/// Most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 512;

/// What a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A mail address.
    Mail,
    /// A URL, or a domain name.
    Url,
    /// An IBAN, the number of an account or of a phone.
    Account,
    /// A word with digits in it: an order's number, a user's id.
    Id,
    /// A path or the name of a file.
    File,
    /// What stands in quotation marks.
    Quoted,
}

impl Kind {
    /// Whether something can be sent there.
    pub fn is_address(self) -> bool {
        matches!(self, Self::Mail | Self::Url | Self::Account)
    }
}

/// A value in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What it names.
    pub kind: Kind,
    /// Hash of its normal form.
    pub hash: u64,
    /// Hash of the host of a URL or mail address.
    pub host: Option<u64>,
    /// Where it stands.
    pub range: Range<usize>,
}

const FILE_ENDINGS: &[&str] = &[
    "txt", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "csv", "md", "json", "yaml", "yml", "toml",
    "xml", "html", "htm", "py", "rs", "js", "ts", "sh", "bat", "exe", "zip", "tar", "gz", "jpg", "jpeg",
    "png", "gif", "svg", "mp3", "mp4", "wav", "log", "cfg", "conf", "ini", "sql", "db", "env", "pem", "key",
    "bak", "tsv", "c", "h", "cpp", "java", "go", "rb", "lock", "ipynb",
];

const DOMAIN_ENDINGS: &[&str] = &[
    "com", "org", "net", "io", "edu", "gov", "mil", "int", "info", "biz", "co", "uk", "de", "ch", "fr", "eu",
    "us", "ca", "au", "nl", "it", "es", "at", "be", "se", "no", "fi", "dk", "pl", "cz", "ru", "cn", "jp",
    "kr", "in", "br", "mx", "za", "nz", "ie", "pt", "gr", "tr", "il", "app", "dev", "ai", "me", "tv", "xyz",
    "site", "online", "shop", "store", "tech", "cloud", "page", "link", "click", "live", "news", "blog",
    "example", "test", "local", "internal",
];

fn separates(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '“' | '”' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|' | '`' | '*'
        )
}

/// The normal form of a URL or domain: without scheme, `www.` and a last slash, in lower case.
pub fn normal_url(text: &str) -> String {
    let lower = text.to_lowercase();
    let rest = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
    rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches('/').to_owned()
}

/// Hash of a text without regard to case and white space.
pub fn normal_hash(text: &str) -> u64 {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    hash(normal.as_bytes())
}

/// Classifies one token; `None` where it is a mere word or number.
fn classify(token: &str) -> Option<(Kind, u64, Option<u64>)> {
    if token.len() < 3 || token.len() > VALUE_BYTES_MAX {
        return None;
    }
    let lower = token.to_lowercase();
    if let Some((name, host)) = lower.split_once('@')
        && !name.is_empty()
        && host.contains('.')
        && !host.contains(['@', '/'])
    {
        let name = name.strip_prefix("mailto:").unwrap_or(name);
        return Some((Kind::Mail, hash(format!("{name}@{host}").as_bytes()), Some(hash(host.as_bytes()))));
    }
    let schemed = lower.contains("://") || lower.starts_with("www.");
    let normal = normal_url(&lower);
    let host = normal.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let ending = host.rsplit_once('.').map(|(_, ending)| ending);
    let host_like = host.split('.').all(|label| {
        !label.is_empty()
            && label.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
    });
    if schemed && !lower.starts_with("file:") {
        return Some((Kind::Url, hash(normal.as_bytes()), Some(hash(host.as_bytes()))));
    }
    if let Some(ending) = ending
        && host_like
        && DOMAIN_ENDINGS.contains(&ending)
        && host.chars().any(char::is_alphabetic)
        && !token.starts_with('/')
    {
        return Some((Kind::Url, hash(normal.as_bytes()), Some(hash(host.as_bytes()))));
    }
    let digits = token.chars().filter(char::is_ascii_digit).count();
    let letters = token.chars().filter(|letter| letter.is_alphabetic()).count();
    let last = lower.rsplit(['/', '\\']).next().unwrap_or_default();
    if last.rsplit_once('.').is_some_and(|(name, ending)| !name.is_empty() && FILE_ENDINGS.contains(&ending))
        || ((lower.starts_with('/') || lower.starts_with("~/") || lower.starts_with("./")) && letters > 1)
        || (lower.contains('\\') && lower.chars().nth(1) == Some(':'))
    {
        return Some((Kind::File, hash(lower.trim_end_matches('/').as_bytes()), None));
    }
    let plain = token
        .chars()
        .all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '#' | '+' | '.' | ':' | '/'));
    if !plain || digits == 0 && !token.contains('_') {
        return None;
    }
    if is_time(&lower) {
        return None;
    }
    let dense: String = lower.chars().filter(|letter| letter.is_alphanumeric()).collect();
    let iban = dense.len() >= 10 && digits >= 6 && {
        let mut letters = dense.chars();
        let mut next = |test: fn(char) -> bool| letters.next().is_some_and(test);
        next(char::is_alphabetic)
            && next(char::is_alphabetic)
            && next(|letter| letter.is_ascii_digit())
            && next(|letter| letter.is_ascii_digit())
    };
    let number = letters == 0 && digits >= 8 && !token.contains(['.', ':', '/']);
    if iban || number {
        return Some((Kind::Account, hash(dense.as_bytes()), None));
    }
    if letters > 0 && dense.len() >= 3 && !token.contains(':') && !is_measure(&lower) {
        return Some((Kind::Id, hash(lower.trim_start_matches('#').as_bytes()), None));
    }
    None
}

/// A date or a time of day.
fn is_time(lower: &str) -> bool {
    let parts: Vec<&str> = lower.split(['-', ':', '/', 't', '.']).collect();
    parts.len() >= 2
        && parts.iter().all(|part| part.len() <= 4 && part.chars().all(|letter| letter.is_ascii_digit()))
        || lower.ends_with("am") && lower.chars().next().is_some_and(|letter| letter.is_ascii_digit())
        || lower.ends_with("pm") && lower.chars().next().is_some_and(|letter| letter.is_ascii_digit())
}

/// A number with an ending: *13th*, *80km*, *1-hour*.
fn is_measure(lower: &str) -> bool {
    let rest = lower.trim_start_matches(|letter: char| {
        letter.is_ascii_digit() || matches!(letter, '.' | ',' | '-' | '+')
    });
    rest.len() != lower.len() && rest.len() <= 6 && !rest.contains(|letter: char| letter.is_ascii_digit())
}

/// The values of a text, at most [`VALUES_MAX`].
pub fn values(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut start = None;
    let push = |from: usize, to: usize, values: &mut Vec<Value>| {
        let Some(token) = text.get(from..to) else { return };
        // Most words are no values.
        let telling =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'@' | b'.' | b'/' | b'\\' | b'_' | b':');
        if !token.bytes().any(telling) {
            return;
        }
        let edge = |letter: char| matches!(letter, '\'' | '’' | '‘' | '.' | '!' | '?' | ':' | '=');
        let started = token.trim_start_matches(edge);
        let trimmed = started.trim_end_matches(edge);
        let start = from + token.len() - started.len();
        if let Some((kind, hash, host)) = classify(trimmed) {
            values.push(Value { kind, hash, host, range: start..start + trimmed.len() });
        }
    };
    for (at, letter) in text.char_indices() {
        if values.len() >= VALUES_MAX {
            return values;
        }
        match (separates(letter), start) {
            (true, Some(from)) => {
                push(from, at, &mut values);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    if let Some(from) = start {
        push(from, text.len(), &mut values);
    }
    quoted(text, &mut values);
    values
}

/// What stands in quotation marks: 2 to 80 bytes.
fn quoted(text: &str, values: &mut Vec<Value>) {
    let mut open: Option<(char, usize)> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, letter)) = chars.next() {
        let after = chars.peek().map_or(' ', |(_, next)| *next);
        match open {
            None if matches!(letter, '\'' | '"' | '“' | '‘' | '`')
                && !before.is_alphanumeric()
                && !after.is_whitespace() =>
            {
                let close = match letter {
                    '“' => '”',
                    '‘' => '’',
                    same => same,
                };
                open = Some((close, at + letter.len_utf8()));
            }
            Some((close, from)) if letter == close && !after.is_alphanumeric() => {
                if (2..=80).contains(&(at - from)) && values.len() < VALUES_MAX {
                    let inner = text.get(from..at).unwrap_or_default();
                    values.push(Value {
                        kind: Kind::Quoted,
                        hash: normal_hash(inner),
                        host: None,
                        range: from..at,
                    });
                }
                open = None;
            }
            Some((_, from)) if at - from > 80 => open = None,
            _ => {}
        }
        before = letter;
    }
}
