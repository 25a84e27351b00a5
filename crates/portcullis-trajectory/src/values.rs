//! Values: the parts of a text that name one thing in the world, and can be recognised when they come back.

use std::borrow::Cow;
use std::ops::Range;

use portcullis_core::site;

use crate::words::{EMPTY, FOREIGN, SEPARATOR, SPACE, class, go_on, hash};

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
    /// What is in quotation marks.
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
    /// Hash of the site of a URL or mail address: what one owner registered, see [`owner`](portcullis_core::site::owner).
    pub host: Option<u64>,
    /// It is written as a link, with a scheme.
    pub link: bool,
    /// It is a link that carries data.
    pub query: bool,
    /// Stem of the name that a mail address begins with.
    pub person: Option<u64>,
    /// It is an account of a bank, by its form.
    pub iban: bool,
    /// The bundle vouches for it.
    pub vouched: bool,
    /// Where it is.
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

const fn separates(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '"' | '“' | '”' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|' | '`' | '*'
            // Quotation marks, brackets and stops of other scripts.
            | '«' | '»' | '„' | '‹' | '›' | '、' | '。' | '〈'
                ..='】' | '！' | '（' | '）' | '，' | '：' | '；' | '？'
        )
}

/// A URL or domain in lower case, without scheme, `www.` and a last slash.
fn without_scheme(lower: &str) -> &str {
    let rest = lower.split_once("://").map_or(lower, |(_, rest)| rest);
    rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches('/')
}

/// Hash of a text without regard to case and white space.
pub fn normal_hash(text: &str) -> u64 {
    let mut hash = EMPTY;
    for (number, word) in text.split_whitespace().enumerate() {
        if number > 0 {
            hash = go_on(hash, b" ");
        }
        for letter in word.chars() {
            if letter.is_ascii() {
                hash = go_on(hash, letter.to_ascii_lowercase().encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            for lower in letter.to_lowercase() {
                hash = go_on(hash, lower.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    hash
}

fn site_of(host: &str) -> Option<u64> {
    site::owner(host).map(|owner| hash(owner.as_bytes()))
}

/// The name that a mail address begins with: `odile.renard@…`.
fn person(address: &str) -> Option<u64> {
    let name = address.split(['@', '.', '_', '-', '+']).next().filter(|name| name.len() > 2)?;
    Some(crate::words::stem_hash(&name.to_lowercase()))
}

/// Classifies one token; `None` if it is a mere word or number.
fn classify(token: &str) -> Option<(Kind, u64, Option<u64>)> {
    if token.len() < 3 || token.len() > VALUE_BYTES_MAX {
        return None;
    }
    let small = token.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    let lower = if small { Cow::Borrowed(token) } else { Cow::Owned(token.to_lowercase()) };
    if let Some((name, host)) = lower.split_once('@')
        && !name.is_empty()
        && host.contains('.')
        && !host.contains(['@', '/'])
        && !name.contains("://")
    {
        let name = name.strip_prefix("mailto:").unwrap_or(name);
        let whole = go_on(go_on(hash(name.as_bytes()), b"@"), host.as_bytes());
        return Some((Kind::Mail, whole, site_of(host)));
    }
    let schemed = lower.contains("://") || lower.starts_with("www.");
    let normal = without_scheme(&lower);
    let host = normal.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let ending = host.rsplit_once('.').map(|(_, ending)| ending);
    let host_like = host.split('.').all(|label| {
        !label.is_empty()
            && label.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
    });
    if schemed && !lower.starts_with("file:") {
        return Some((Kind::Url, hash(normal.as_bytes()), site_of(host)));
    }
    if let Some(ending) = ending
        && host_like
        && DOMAIN_ENDINGS.contains(&ending)
        && host.chars().any(char::is_alphabetic)
        && !token.starts_with('/')
    {
        return Some((Kind::Url, hash(normal.as_bytes()), site_of(host)));
    }
    if is_ip(&lower) {
        return Some((Kind::Url, hash(normal.as_bytes()), None));
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
    let dense = || lower.chars().filter(|letter| letter.is_alphanumeric());
    let length: usize = dense().map(char::len_utf8).sum();
    let iban = length >= 10 && digits >= 6 && begins_as_iban(dense());
    let number = letters == 0 && digits >= 8 && !token.contains(['.', ':', '/']);
    if iban || number {
        let bytes = |hash, letter: char| go_on(hash, letter.encode_utf8(&mut [0; 4]).as_bytes());
        return Some((Kind::Account, dense().fold(EMPTY, bytes), None));
    }
    if letters > 0 && length >= 3 && !token.contains(':') && !is_measure(&lower) {
        return Some((Kind::Id, hash(lower.trim_start_matches('#').as_bytes()), None));
    }
    None
}

/// Two letters of a country and two digits.
fn begins_as_iban(mut dense: impl Iterator<Item = char>) -> bool {
    let mut next = |test: fn(char) -> bool| dense.next().is_some_and(test);
    next(char::is_alphabetic)
        && next(char::is_alphabetic)
        && next(|letter| letter.is_ascii_digit())
        && next(|letter| letter.is_ascii_digit())
}

/// A date or a time of day.
fn is_time(lower: &str) -> bool {
    let mut parts = lower.split(['-', ':', '/', 't', '.']);
    lower.contains(['-', ':', '/', 't', '.'])
        && parts.all(|part| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit()))
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

/// Whether values have at least one of these; most words have none. Without branches, so that a block is tested at once.
#[inline]
const fn tells(byte: u8) -> bool {
    // The full stop, the slash, digits and the colon are in a row.
    (byte.wrapping_sub(b'.') <= b':' - b'.') | (byte == b'@') | (byte == b'\\') | (byte == b'_')
}

/// Whether it opens or closes a quotation, or begins a sign that may.
#[inline]
const fn quotes(byte: u8) -> bool {
    (byte == b'\'') | (byte == b'"') | (byte == b'`') | (byte == 0xe2)
}

/// Bytes of a block that is searched as a whole.
const BLOCK: usize = 32;

/// Where the next byte of a sort stands.
#[inline]
pub(crate) fn next(text: &str, at: usize, is: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    let (blocks, end) = rest.as_chunks::<BLOCK>();
    // Without a branch for each byte a block costs a few instructions.
    let has = |block: &[u8; BLOCK]| block.iter().fold(0, |any, byte| any | u8::from(is(*byte))) != 0;
    let skipped = blocks.iter().position(has).map_or(rest.len() - end.len(), |number| number * BLOCK);
    let ahead = rest.get(skipped..)?.iter().position(|byte| is(*byte))?;
    Some(at + skipped + ahead)
}

/// The values of a text, at most [`VALUES_MAX`].
pub fn values(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut from = 0;
    // Most tokens have nothing that tells, and are not looked at.
    while let Some(told) = next(text, from, tells) {
        let (start, end) = (start_of_token(text, from, told), end_of_token(text, told));
        token(text, start..end, &mut values);
        from = end;
    }
    spaced_accounts(text, &mut values);
    quoted(text, &mut values);
    values
}

/// Whether a byte separates tokens, or begins a letter that may.
fn may_separate(byte: u8) -> bool {
    class(byte) & (SPACE | SEPARATOR | FOREIGN) != 0
}

/// Where the token begins that has a byte, of what follows `from`.
fn start_of_token(text: &str, from: usize, has: usize) -> usize {
    let before = text.get(from..has).unwrap_or_default();
    match before.bytes().enumerate().rfind(|(_, byte)| may_separate(*byte)) {
        None => from,
        Some((at, byte)) if byte.is_ascii() => from + at + 1,
        Some(_) => before.rfind(separates).map_or(from, |at| from + at + next_letter(before, at)),
    }
}

/// Where the token ends that has a byte.
fn end_of_token(text: &str, has: usize) -> usize {
    let after = text.get(has..).unwrap_or_default();
    match after.bytes().enumerate().find(|(_, byte)| may_separate(*byte)) {
        None => text.len(),
        Some((at, byte)) if byte.is_ascii() => has + at,
        Some(_) => has + after.find(separates).unwrap_or(after.len()),
    }
}

/// Fewest letters and digits of an IBAN.
const IBAN_MIN: usize = 15;

/// IBANs written in groups: `DE02 1203 0000 0000 2020 51`.
fn spaced_accounts(text: &str, values: &mut Vec<Value>) {
    let bytes = text.as_bytes();
    let begins = |at: usize| {
        let [a, b, c, d, space] = [0, 1, 2, 3, 4].map(|by| bytes.get(at + by).copied().unwrap_or_default());
        let start =
            at.checked_sub(1).and_then(|at| bytes.get(at)).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        start
            && a.is_ascii_uppercase()
            && b.is_ascii_uppercase()
            && c.is_ascii_digit()
            && d.is_ascii_digit()
            && space == b' '
    };
    let mut at = 0;
    while at + 5 < bytes.len() {
        let Some(ahead) = next(text, at, |byte| byte.is_ascii_digit()) else { return };
        let start = ahead.saturating_sub(2);
        at = ahead + 1;
        if start + 2 != ahead || !begins(start) {
            continue;
        }
        let (mut end, mut hash, mut count) = (start, EMPTY, 0);
        for (offset, group) in text.get(start..).unwrap_or_default().split(' ').scan(0, |offset, group| {
            let own = *offset;
            *offset += group.len() + 1;
            Some((own, group))
        }) {
            let plain = group.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']);
            let code = (1..=4).contains(&plain.len())
                && plain.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
            if !code {
                break;
            }
            hash = plain.bytes().fold(hash, |hash, byte| go_on(hash, &[byte.to_ascii_lowercase()]));
            (end, count) = (start + offset + plain.len(), count + plain.len());
            if plain.len() < group.len() {
                break;
            }
        }
        if count >= IBAN_MIN && values.len() < VALUES_MAX {
            values.push(Value {
                kind: Kind::Account,
                hash,
                host: None,
                link: false,
                query: false,
                person: None,
                iban: true,
                vouched: false,
                range: start..end,
            });
            at = end;
        }
    }
}

/// Whether a token is an address of the internet protocol.
fn is_ip(token: &str) -> bool {
    let host = token.split(['/', ':']).next().unwrap_or_default();
    host.split('.').count() == 4 && host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// The length of the letter that begins at `at`.
fn next_letter(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

/// The part of ASCII of a token in a script without spaces, where that part is an address: `发送到ida@fen.example谢谢`.
/// The whole is a value beside it, since addresses may have such letters too.
fn address_among_letters(token: &str) -> Option<Range<usize>> {
    if token.is_ascii() {
        return None;
    }
    let joint = token.find('@').or_else(|| token.find("://"))?;
    let start = token
        .get(..joint)?
        .rfind(|letter: char| !letter.is_ascii())
        .map_or(0, |at| at + next_letter(token, at));
    let end =
        token.get(joint..)?.find(|letter: char| !letter.is_ascii()).map_or(token.len(), |at| joint + at);
    (start < joint && token.get(joint..end)?.contains('.')).then_some(start..end)
}

/// The address in a token that has more around it: `_ida@fen.example_` of Markdown, `to=ida@fen.example`. The whole is a
/// value beside it, since addresses may have such signs too.
fn address_in_marks(token: &str) -> Option<Range<usize>> {
    let at = token.find('@')?;
    let marks = |letter: char| matches!(letter, '_' | '~' | '=' | '/' | ':' | '\\' | '|');
    let (name, host) = (token.get(..at)?, token.get(at..)?);
    let from = name.rfind(['=', '/', ':', '\\']).map_or(0, |mark| mark + 1);
    let start = from + name.get(from..)?.len() - name.get(from..)?.trim_start_matches(marks).len();
    let end = at + host.trim_end_matches(marks).len();
    (start < at && (start > 0 || end < token.len()) && !token.contains("://")).then_some(start..end)
}

/// Takes a token that is a value, where there is room for it.
fn token(text: &str, range: Range<usize>, values: &mut Vec<Value>) {
    let Some(token) = text.get(range.clone()) else { return };
    if let Some(inner) = address_among_letters(token) {
        self::token(text, range.start + inner.start..range.start + inner.end, values);
    }
    let edge = |letter: char| matches!(letter, '\'' | '’' | '‘' | '.' | '!' | '?' | ':' | '=');
    let started = token.trim_start_matches(edge);
    let trimmed = started.trim_end_matches(edge);
    if values.len() >= VALUES_MAX || !trimmed.bytes().any(tells) {
        return;
    }
    let start = range.start + token.len() - started.len();
    if let Some(inner) = address_in_marks(trimmed) {
        self::token(text, start + inner.start..start + inner.end, values);
    }
    if let Some((kind, hash, host)) = classify(trimmed) {
        let link = kind == Kind::Url && trimmed.contains("://");
        let query = kind == Kind::Url && trimmed.contains('?');
        let iban = kind == Kind::Account && trimmed.starts_with(|letter: char| letter.is_ascii_uppercase());
        let person = (kind == Kind::Mail).then(|| person(trimmed)).flatten();
        values.push(Value {
            kind,
            hash,
            host,
            link,
            query,
            person,
            iban,
            vouched: false,
            range: start..start + trimmed.len(),
        });
    }
}

/// Most bytes of what is in quotation marks.
const QUOTED_BYTES_MAX: usize = 80;

/// What is in quotation marks: 2 to [`QUOTED_BYTES_MAX`] bytes.
fn quoted(text: &str, values: &mut Vec<Value>) {
    let mut open: Option<(char, usize)> = None;
    let mut at = 0;
    while let Some(sign) = next(text, at, quotes) {
        at = sign;
        let (past, rest) = text.split_at_checked(at).unwrap_or((text, ""));
        let mut letters = rest.chars();
        let Some(letter) = letters.next() else { return };
        let after = letters.next().unwrap_or(' ');
        let before = past.chars().next_back().unwrap_or(' ');
        // Quotations that went on for too long were given up where that was seen, before this sign.
        let seen = at.saturating_sub(before.len_utf8());
        open = open.filter(|(_, from)| seen <= from + QUOTED_BYTES_MAX);
        at += letter.len_utf8();
        match open {
            None => {
                let close = match letter {
                    '“' => '”',
                    '‘' => '’',
                    '\'' | '"' | '`' => letter,
                    _ => continue,
                };
                if !before.is_alphanumeric() && !after.is_whitespace() {
                    open = Some((close, at));
                }
            }
            Some((close, from)) if letter == close && !after.is_alphanumeric() => {
                let end = at - letter.len_utf8();
                if (2..=QUOTED_BYTES_MAX).contains(&(end - from)) && values.len() < VALUES_MAX {
                    let inner = text.get(from..end).unwrap_or_default();
                    let hash = normal_hash(inner);
                    values.push(Value {
                        kind: Kind::Quoted,
                        hash,
                        host: None,
                        link: false,
                        query: false,
                        person: None,
                        iban: false,
                        vouched: false,
                        range: from..end,
                    });
                }
                open = None;
            }
            Some((_, from)) if at - letter.len_utf8() > from + QUOTED_BYTES_MAX => open = None,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The hashes of what is in quotation marks, by the definition: every letter is looked at.
    fn quotations(text: &str) -> Vec<&str> {
        let letters: Vec<(usize, char)> = text.char_indices().collect();
        let letter = |at: Option<usize>| at.and_then(|at| letters.get(at)).map_or(' ', |(_, letter)| *letter);
        let mut found = Vec::new();
        let mut open: Option<(char, usize)> = None;
        for (number, (at, sign)) in letters.iter().enumerate() {
            let (before, after) = (letter(number.checked_sub(1)), letter(Some(number + 1)));
            match open {
                None if "'\"“‘`".contains(*sign) && !before.is_alphanumeric() && !after.is_whitespace() =>
                {
                    let close = match sign {
                        '“' => '”',
                        '‘' => '’',
                        same => *same,
                    };
                    open = Some((close, at + sign.len_utf8()));
                }
                Some((close, from)) if *sign == close && !after.is_alphanumeric() => {
                    found.extend(
                        text.get(from..*at).filter(|inner| (2..=QUOTED_BYTES_MAX).contains(&inner.len())),
                    );
                    open = None;
                }
                Some((_, from)) if at - from > QUOTED_BYTES_MAX => open = None,
                _ => {}
            }
        }
        found
    }

    #[test]
    fn an_address_is_found_among_letters_without_spaces() {
        let ida = values("ida@fen.example")[0].hash;
        for text in [
            "发送到ida@fen.example谢谢",
            "共享给 ida@fen.example，并设为编辑者",
            "（ida@fen.example）",
            "«ida@fen.example»",
        ] {
            assert!(values(text).iter().any(|value| value.hash == ida), "{text}");
        }
        for text in ["_ida@fen.example_", "~~ida@fen.example~~", "to=ida@fen.example", "x/ida@fen.example"] {
            assert!(values(text).iter().any(|value| value.hash == ida), "{text}");
        }
        let link = values("https://fen.example/a")[0].hash;
        assert!(values("参见https://fen.example/a。").iter().any(|value| value.hash == link));
        assert!(values("müller@fen.example").len() <= 2);
    }

    proptest! {
        #[test]
        fn quotations_are_those_of_the_definition(
            texts in prop::collection::vec("[ab '\"“”‘’`é]{0,12}|[a ]{60,100}", 0..8)
        ) {
            let text = texts.concat();
            let mut found = Vec::new();
            quoted(&text, &mut found);
            let found: Vec<&str> = found.into_iter().map(|value| text.get(value.range).unwrap()).collect();
            prop_assert_eq!(found, quotations(&text));
        }

        #[test]
        fn values_are_those_of_all_tokens(
            parts in prop::collection::vec("[a-z]{1,40}|[ ,;|\u{a0}]|a@b\\.de|www\\.a\\.com/x|AB-[0-9]{3}|é|[.:/_@]", 0..20)
        ) {
            let text = parts.concat();
            let mut all = Vec::new();
            let mut from = 0;
            for (at, sign) in text.char_indices().filter(|(_, letter)| separates(*letter)) {
                token(&text, from..at, &mut all);
                from = at + sign.len_utf8();
            }
            token(&text, from..text.len(), &mut all);
            prop_assert_eq!(values(&text), all);
        }

        #[test]
        fn a_hash_does_not_regard_case_and_space(text in "\\PC{0,40}") {
            let words: Vec<String> =
                text.split_whitespace().map(|word| word.chars().flat_map(char::to_lowercase).collect()).collect();
            prop_assert_eq!(normal_hash(&text), hash(words.join(" ").as_bytes()));
        }
    }
}
