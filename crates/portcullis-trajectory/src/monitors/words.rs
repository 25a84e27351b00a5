//! Texts as the monitors see them: words by the hash of their stem, sentences, and what is in quotation marks.

use portcullis_core::normalise::Normalised;

use crate::words::{
    DIGIT, FOREIGN, JOINT, LOWER, SIGN, SPACE, UPPER, class, letter_at, plain, small_letters,
};

/// Most words of one text that are read. Further words are not read, and the reading says so.
pub(super) const WORDS_MAX: usize = 65_536;
/// Most letters of one word that are looked at.
const LETTERS_MAX: usize = 32;
/// Most addresses of one text that are kept.
pub(super) const ADDRESSES_MAX: usize = 256;
/// The shortest IBAN.
const IBAN_MIN: usize = 15;
/// The shortest number of a telephone abroad, with its sign.
const TELEPHONE_MIN: usize = 9;

/// Bytes of a block that is tested as a whole.
const BLOCK: usize = 64;
/// Bytes of a text for whose words room is made at once.
const RESERVED_MAX: usize = 65_536;

/// A word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Hash of its stem.
    pub stem: u64,
    /// The same with digits and signs read as the letters that they resemble; 0 if there are none.
    pub plain: u64,
    /// Where it begins in the text as given.
    pub start: usize,
    /// One past its end.
    pub end: usize,
    /// It begins a sentence.
    pub begins: bool,
    /// It is in quotation marks.
    pub quoted: bool,
    /// A colon follows: it heads what comes.
    pub heads: bool,
    /// It is a number.
    pub number: bool,
    /// It is short and of a closed class, or has less than three letters.
    pub slight: bool,
}

/// A text cut into words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// The words in order.
    pub list: Vec<Word>,
    /// A mail address, URL, network address, account or telephone number is in it.
    pub address: bool,
    /// Hashes of the first of them, without the signs around them.
    pub addresses: Vec<u64>,
    /// There were more words.
    pub cut: bool,
}

/// The hash of a text, eight bytes at a time; of at most eight bytes no two have the same.
fn hash(text: &[u8]) -> u64 {
    let (chunks, rest) = text.as_chunks();
    let hash = chunks.iter().fold(0, |hash, chunk| mixed(hash ^ u64::from_le_bytes(*chunk)));
    if rest.is_empty() { hash } else { mixed(hash ^ packed(rest)) }
}

/// Brings all bits of a number together, those of a map's places among them.
const fn mixed(number: u64) -> u64 {
    let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// The stem of a lower-case word by the general rules of English endings; a key, not a word.
fn stem(word: &[u8]) -> &[u8] {
    /// Words without endings that others would be taken for: *they* for *the*, *here* for *her*.
    const WHOLE: [[u8; 4]; 4] = [*b"they", *b"here", *b"were", *b"mine"];
    // No ending that is cut off ends in another letter.
    if !matches!(word.last(), Some(b's' | b'd' | b'g' | b'e' | b'y')) {
        return word;
    }
    let vowel = |base: &[u8]| base.iter().any(|byte| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'));
    match word {
        [_, _, _, _] if WHOLE.iter().any(|whole| word == whole) => word,
        [base @ .., b'i', b'e', b's' | b'd'] if base.len() > 1 => base,
        [base @ .., b'i', b'n', b'g'] | [base @ .., b'e', b'd'] if base.len() > 2 && vowel(base) => {
            trim(undouble(base))
        }
        [base @ .., before, b's'] if base.len() > 1 && !matches!(before, b's' | b'u' | b'i') => {
            trim(word.get(..word.len() - 1).unwrap_or(word))
        }
        [.., b'e' | b'y'] => trim(word),
        _ => word,
    }
}

/// Without the last *e* or *y*, in which forms of a word differ.
fn trim(word: &[u8]) -> &[u8] {
    match word {
        [base @ .., b'e' | b'y'] if word.len() > 3 => base,
        _ => word,
    }
}

fn undouble(base: &[u8]) -> &[u8] {
    let mut end = std::str::from_utf8(base).unwrap_or_default().chars().rev();
    match (end.next(), end.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, 'l' | 's' | 'z' | 'e') => {
            base.get(..base.len() - last.len_utf8()).unwrap_or(base)
        }
        _ => base,
    }
}

/// Hash of the stem of a word.
pub(super) fn stem_hash(word: &str) -> u64 {
    hash(stem(word.as_bytes()))
}

/// The letter that a digit or sign resembles.
fn resembles(c: char) -> char {
    match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

const SLIGHT: &[&str] = &[
    "the", "and", "for", "you", "your", "with", "that", "this", "from", "have", "has", "are", "was", "were",
    "not", "but", "all", "any", "can", "will", "what", "which", "when", "where", "how", "please", "into",
    "out", "its", "our", "their", "them", "they", "then", "than", "some", "there", "here", "would", "could",
    "should", "about", "also", "just", "only", "very", "who", "his", "her", "him", "she", "com", "example",
    "org", "net", "www", "http", "https", "true", "false", "null", "none",
];

/// What words of ASCII are made of.
const LETTERS: u8 = UPPER | LOWER | DIGIT;

/// Letters of a word that is packed into a number.
const PACKED_MAX: usize = 7;

/// A word of at most [`PACKED_MAX`] bytes as a number, its first letter the lowest byte; 0 for others.
const fn packed(mut word: &[u8]) -> u64 {
    if word.len() > PACKED_MAX {
        return 0;
    }
    let mut number = 0;
    while let [rest @ .., last] = word {
        number = number << 8 | *last as u64;
        word = rest;
    }
    number
}

/// The first bytes of a packed text.
const fn first_bytes(packed: u64, count: usize) -> u64 {
    packed & !(u64::MAX << (8 * count))
}

/// Places of [`SLIGHT_TABLE`], as a power of two: many more than there are words, so that a search is short.
const SLIGHT_BITS: u32 = 9;

/// Where the search for a packed word begins.
const fn slight_place(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLIGHT_BITS)) as usize
}

/// [`SLIGHT`], each word packed, where the search for it ends.
#[expect(clippy::indexing_slicing, reason = "worked out by the compiler, which refuses what is wrong")]
const SLIGHT_TABLE: [u64; 1 << SLIGHT_BITS] = {
    let mut table = [0; 1 << SLIGHT_BITS];
    let mut number = 0;
    while number < SLIGHT.len() {
        let word = packed(SLIGHT[number].as_bytes());
        assert!(word != 0, "a word that is too long to be packed");
        let mut at = slight_place(word);
        while table[at] != 0 {
            at = (at + 1) % table.len();
        }
        table[at] = word;
        number += 1;
    }
    table
};

/// Whether a packed word is slight.
fn is_slight(word: u64) -> bool {
    let mut at = slight_place(word);
    // The table has places that are empty, so this ends. What is too long to be packed is none of its words.
    while let Some(known) = SLIGHT_TABLE.get(at % SLIGHT_TABLE.len()).filter(|known| **known != 0) {
        if *known == word {
            return true;
        }
        at += 1;
    }
    false
}

/// Cuts a text into words. Linear in its length.
pub(super) fn words(text: &str) -> Words {
    let mut cutter = Cutter::default();
    // Of shown ASCII the normal form has other letters' cases and one blank for several, and neither moves a word.
    let shown =
        |byte: &u8| (byte.wrapping_sub(b' ') <= b'~' - b' ') | (byte.wrapping_sub(b'\t') <= b'\r' - b'\t');
    // In blocks, without a branch for each byte.
    let (blocks, end) = text.as_bytes().as_chunks::<BLOCK>();
    if blocks.iter().all(|block| block.iter().fold(true, |all, byte| all & shown(byte)))
        && end.iter().all(shown)
    {
        // English has a word in six bytes or so.
        cutter.out.list.reserve(text.len().min(RESERVED_MAX) / 6);
        cutter.read(text);
        return cutter.out;
    }
    of_normal_form(text, cutter)
}

fn of_normal_form(text: &str, mut cutter: Cutter) -> Words {
    let normalised = Normalised::new(text);
    cutter.read(normalised.texts().next().unwrap_or_default());
    for word in &mut cutter.out.list {
        (word.start, word.end) = normalised.original_span(0, word.start, word.end);
    }
    cutter.out
}

struct Chunk<'t> {
    text: &'t str,
    start: usize,
    /// It may be an address.
    joined: bool,
}

/// The next stretch without white space.
fn next_chunk(text: &str, at: usize) -> Option<Chunk<'_>> {
    let start = at + text.get(at..)?.find(|c: char| !c.is_whitespace())?;
    let rest = text.get(start..)?;
    // Most stretches end at a blank, and are of ASCII until then.
    let mut met = 0;
    let mut ends = |byte: u8| {
        met |= class(byte);
        met & (SPACE | FOREIGN) != 0
    };
    let near = rest.bytes().position(&mut ends).unwrap_or(rest.len());
    let length = near + rest.get(near..)?.find(char::is_whitespace).unwrap_or(rest.len() - near);
    let number = met & DIGIT != 0 && length >= TELEPHONE_MIN;
    Some(Chunk { text: rest.get(..length)?, start, joined: number || met & (JOINT | FOREIGN) != 0 })
}

fn is_address(chunk: &str) -> bool {
    let chunk = chunk.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '+'));
    if chunk.contains("://") || is_account(chunk) {
        return true;
    }
    if let Some((name, domain)) = chunk.split_once('@') {
        return !name.is_empty() && domain.contains('.');
    }
    let host = chunk.split(['/', ':']).next().unwrap_or_default();
    host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// An IBAN, or a telephone number with its country.
fn is_account(chunk: &str) -> bool {
    if let Some(number) = chunk.strip_prefix('+') {
        return chunk.len() >= TELEPHONE_MIN && number.bytes().all(|byte| byte.is_ascii_digit());
    }
    let bytes = chunk.as_bytes();
    let [country, other, check, digit, ..] = bytes else { return false };
    let head = country.is_ascii_uppercase() && other.is_ascii_uppercase();
    head && check.is_ascii_digit()
        && digit.is_ascii_digit()
        && bytes.len() >= IBAN_MIN
        && bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

struct Cutter {
    out: Words,
    begins: bool,
    /// The sign that ends the quotation.
    quote: Option<char>,
}

impl Default for Cutter {
    fn default() -> Self {
        Self { out: Words::default(), begins: true, quote: None }
    }
}

impl Cutter {
    /// Takes the words of a text.
    fn read(&mut self, text: &str) {
        let mut buffer = String::new();
        let mut at = self.bare(text, 0);
        while let Some(chunk) = next_chunk(text, at) {
            if !self.take(&chunk, &mut buffer) {
                break;
            }
            at = self.bare(text, chunk.start + chunk.text.len());
        }
    }

    /// Takes the words of a chunk, and its address; false when there are too many words.
    fn take(&mut self, chunk: &Chunk<'_>, buffer: &mut String) -> bool {
        let address = chunk.joined && is_address(chunk.text);
        if address {
            self.out.address = true;
            if self.out.addresses.len() < ADDRESSES_MAX {
                let bare = chunk.text.trim_matches(|c: char| !c.is_alphanumeric());
                self.out.addresses.push(hash(bare.to_lowercase().as_bytes()));
            }
        }
        self.chunk(chunk.text, chunk.start, address, buffer)
    }

    /// Takes words of small letters between blanks, which most words of a text are, for as long as there are such.
    /// Returns where the first other stretch begins, or the white space before it.
    fn bare(&mut self, text: &str, mut at: usize) -> usize {
        let bytes = text.as_bytes();
        while let Some(mut rest) = bytes.get(at..) {
            while let [b' ', after @ ..] = rest {
                (at, rest) = (at + 1, after);
            }
            if self.out.list.len() >= WORDS_MAX {
                return at;
            }
            if let Some(packed) = rest.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
                && let length @ 1..=PACKED_MAX = small_letters(packed)
                && packed >> (8 * length) & 0xff == u64::from(b' ')
                && let Some(word) = rest.get(..length)
            {
                self.push_packed(word, first_bytes(packed, length), at);
                at += length;
                continue;
            }
            let length = rest.iter().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(rest.len());
            let ends = rest.get(length).is_none_or(|byte| *byte == b' ');
            let fits = (1..=LETTERS_MAX).contains(&length);
            let Some(word) = rest.get(..length).filter(|_| ends && fits) else { return at };
            self.push(word, LOWER, at, at + length);
            at += length;
        }
        at
    }

    /// Takes the words of a chunk; false when there are too many.
    fn chunk(&mut self, chunk: &str, start: usize, address: bool, buffer: &mut String) -> bool {
        let mut before = None;
        let mut at = 0;
        while let Some(c) = letter_at(chunk, at) {
            let next = at + c.len_utf8();
            if !is_letter(c, address) {
                self.sign(c, before, letter_at(chunk, next));
                before = Some(c);
                at = next;
                continue;
            }
            // *w/o* is one word.
            let without = matches!(c, 'w' | 'W')
                .then(|| without(chunk.get(at..).unwrap_or_default()))
                .flatten()
                .map(|length| at + length);
            if self.out.list.len() >= WORDS_MAX {
                self.out.cut = true;
                return false;
            }
            let rest = chunk.as_bytes().get(at..).unwrap_or_default();
            let run = plain(rest, if address { LETTERS } else { LETTERS | SIGN });
            let goes_on = rest.get(run.length).is_some_and(|byte| *byte == b'\'' || class(*byte) == FOREIGN);
            let end = if let Some(end) = without {
                self.push(b"without", LOWER, start + at, start + end);
                end
            } else if run.length > LETTERS_MAX || goes_on {
                let end = Self::letters(chunk, at, address, buffer);
                let classes = buffer.bytes().fold(0, |classes, byte| classes | class(byte));
                self.push(buffer.as_bytes(), classes, start + at, start + end);
                end
            } else {
                let word = run.lower.get(..run.length).unwrap_or_default();
                self.push(word, run.classes, start + at, start + at + run.length);
                at + run.length
            };
            before = Some('a');
            at = end;
        }
        true
    }

    /// Puts the word at `at` into the buffer, without apostrophes. Returns where it ends.
    fn letters(chunk: &str, mut at: usize, address: bool, buffer: &mut String) -> usize {
        buffer.clear();
        loop {
            // Letters of ASCII are put in together.
            let rest = chunk.get(at..).unwrap_or_default();
            let plain = |byte: u8| byte.is_ascii() && is_letter(char::from(byte), address);
            let length = rest.bytes().position(|byte| !plain(byte)).unwrap_or(rest.len());
            let room = LETTERS_MAX.saturating_sub(buffer.len());
            buffer.push_str(rest.get(..length.min(room)).unwrap_or_default());
            at += length;
            let Some(c) = letter_at(chunk, at) else { break };
            let next = at + c.len_utf8();
            let apostrophe =
                || matches!(c, '\'' | '’') && letter_at(chunk, next).is_some_and(char::is_alphabetic);
            if is_letter(c, address) {
                if buffer.len() < LETTERS_MAX {
                    buffer.extend(c.to_lowercase());
                }
            } else if !apostrophe() {
                break;
            }
            at = next;
        }
        buffer.make_ascii_lowercase();
        at
    }

    /// Ends of sentences, and quotation marks.
    fn sign(&mut self, c: char, before: Option<char>, next: Option<char>) {
        let ends =
            next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '”' | '\'' | ')' | ']'));
        if matches!(c, '.' | '!' | '?' | ';') && ends {
            self.begins = true;
        }
        if c == ':'
            && let Some(last) = self.out.list.last_mut()
        {
            last.heads = true;
        }
        match (self.quote, c) {
            (Some(end), c) if c == end && (end != '\'' || !next.is_some_and(char::is_alphanumeric)) => {
                self.quote = None;
            }
            (None, '"') => self.quote = Some('"'),
            (None, '“') => self.quote = Some('”'),
            (None, '«') => self.quote = Some('»'),
            (None, '\'' | '‘') if before.is_none() && next.is_some_and(char::is_alphanumeric) => {
                self.quote = Some(if c == '‘' { '’' } else { '\'' });
            }
            _ => {}
        }
    }

    /// Takes a word of at most [`PACKED_MAX`] small letters, which is `packed`.
    fn push_packed(&mut self, word: &[u8], packed: u64, start: usize) {
        let end = start + word.len();
        if let Some(long) = abbreviated(word, packed) {
            return self.push(long, LOWER, start, end);
        }
        let slight = word.len() < 3 || is_slight(packed);
        let stem = mixed(first_bytes(packed, stem(word).len()));
        self.add(Word { stem, start, end, slight, ..Word::default() });
    }

    /// Takes a word in lower case whose bytes are of these classes.
    fn push(&mut self, word: &[u8], classes: u8, start: usize, end: usize) {
        let word = abbreviated(word, packed(word)).unwrap_or(word);
        let number = classes == DIGIT;
        let plain = if classes & (DIGIT | SIGN) != 0 && !number {
            let letters: String =
                std::str::from_utf8(word).unwrap_or_default().chars().map(resembles).collect();
            stem_hash(&letters)
        } else {
            0
        };
        let letters = || word.iter().filter(|byte| !matches!(byte, 0x80..=0xbf)).take(3).count();
        let slight =
            number || word.len() < 3 || classes & FOREIGN != 0 && letters() < 3 || is_slight(packed(word));
        self.add(Word { stem: hash(stem(word)), plain, start, end, number, slight, ..Word::default() });
    }

    /// Takes a word with what is known of its place.
    fn add(&mut self, word: Word) {
        let begins = std::mem::take(&mut self.begins);
        self.out.list.push(Word { begins, quoted: self.quote.is_some(), ..word });
    }
}

/// What a word stands for that people shorten when they type.
fn abbreviated(word: &[u8], packed: u64) -> Option<&'static [u8]> {
    let begins = |first: &u8| SHORT_BEGINNINGS >> (first % 32) & 1 == 1;
    if word.len() > SHORT_MAX || !word.first().is_some_and(begins) || !SHORT.contains(&packed) {
        return None;
    }
    ABBREVIATIONS.iter().find(|(short, _)| short.as_bytes() == word).map(|(_, long)| long.as_bytes())
}

/// Letters of the longest of [`ABBREVIATIONS`].
const SHORT_MAX: usize = 4;
/// [`ABBREVIATIONS`], packed.
#[expect(clippy::indexing_slicing, reason = "worked out by the compiler, which refuses what is wrong")]
const SHORT: [u64; ABBREVIATIONS.len()] = {
    let mut short = [0; ABBREVIATIONS.len()];
    let mut number = 0;
    while number < short.len() {
        let word = ABBREVIATIONS[number].0.as_bytes();
        assert!(word.len() <= SHORT_MAX, "an abbreviation that is too long");
        short[number] = packed(word);
        number += 1;
    }
    short
};
/// How [`ABBREVIATIONS`] begin: a bit for each letter.
#[expect(clippy::indexing_slicing, reason = "worked out by the compiler, which refuses what is wrong")]
const SHORT_BEGINNINGS: u32 = {
    let (mut letters, mut number) = (0, 0);
    while number < ABBREVIATIONS.len() {
        letters |= 1 << (ABBREVIATIONS[number].0.as_bytes()[0] % 32);
        number += 1;
    }
    letters
};
/// How people shorten words when they type.
const ABBREVIATIONS: [(&str, &str); 14] = [
    ("u", "you"),
    ("ur", "your"),
    ("ya", "you"),
    ("ppl", "people"),
    ("pls", "please"),
    ("plz", "please"),
    ("msg", "message"),
    ("msgs", "messages"),
    ("pw", "password"),
    ("pwd", "password"),
    ("pws", "passwords"),
    ("acct", "account"),
    ("bc", "because"),
    ("gf", "girlfriend"),
];

/// The length of a *w/o* that stands alone.
fn without(chunk: &str) -> Option<usize> {
    let rest = chunk.strip_prefix(['w', 'W'])?.strip_prefix("/")?.strip_prefix(['o', 'O'])?;
    (!rest.starts_with(char::is_alphanumeric)).then_some(3)
}

fn is_letter(c: char, address: bool) -> bool {
    c.is_alphanumeric() || !address && matches!(c, '@' | '$')
}

#[cfg(test)]
mod tests;
