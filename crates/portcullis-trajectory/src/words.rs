//! Words: how a text falls into them, and the stem under which forms of a word are the same.
//!
//! A word is kept as two hashes and a few properties, not as text: reading a text allocates one list.

use std::ops::Range;

/// Most bytes of a word that are looked at; what is longer is a word like no other.
pub const WORD_BYTES_MAX: usize = 48;
/// Most words taken from one text.
pub const WORDS_MAX: usize = 65_536;

/// The lengths and first bytes of some words: tells of most other words at once that they are none of them.
#[derive(Debug)]
pub(crate) struct Shapes([u32; 32]);

impl Shapes {
    /// Of words of less than 32 bytes.
    #[expect(clippy::indexing_slicing, reason = "worked out by the compiler, which refuses what is wrong")]
    pub(crate) const fn of(words: &[&str]) -> Self {
        let mut shapes = Self([0; 32]);
        let mut number = 0;
        while number < words.len() {
            let word = words[number].as_bytes();
            shapes.0[word.len()] |= 1 << (word[0] % 32);
            number += 1;
        }
        shapes
    }

    /// Whether any of the words has the length and the first byte of this one, in letters of any case.
    pub(crate) fn has_some(&self, word: &str) -> bool {
        let Some((first, firsts)) = word.as_bytes().first().zip(self.0.get(word.len())) else { return false };
        firsts >> (first % 32) & 1 == 1
    }
}

/// What stands between a word and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The text begins with it.
    Start,
    /// White space, or a hyphen.
    Space,
    /// A comma, a dash, a semicolon.
    Comma,
    /// A round bracket: what follows is said aside.
    Aside,
    /// A colon, another bracket, a bullet or a quotation mark: something begins.
    Open,
    /// The end of a sentence.
    Stop,
}

/// Properties of a word's spelling; several at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape(u16);

impl Shape {
    /// Begins with a capital.
    pub const CAPITAL: Self = Self(1);
    /// Has a digit.
    pub const DIGIT: Self = Self(1 << 1);
    /// A hyphen, an underscore or a bracket joins it to something: it is part of a name.
    pub const PART: Self = Self(1 << 2);
    /// A colon follows directly: it is a heading or a key.
    pub const HEADED: Self = Self(1 << 3);
    /// Ends in *-ing* or *-ed*.
    pub const PARTICIPLE: Self = Self(1 << 4);
    /// Ends in *-s*.
    pub const PLURAL: Self = Self(1 << 5);
    /// Has at most two letters.
    pub const SHORT: Self = Self(1 << 6);
    /// Capitals and small letters are mixed beyond the first.
    pub const CAMEL: Self = Self(1 << 7);

    /// Whether it has any of these.
    pub const fn is(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// Both together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn set(&mut self, property: Self, on: bool) {
        if on {
            self.0 |= property.0;
        }
    }
}

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Where it is.
    pub range: Range<usize>,
    /// What precedes it.
    pub before: Before,
    /// Hash of it in lower case, without a possessive ending.
    pub hash: u64,
    /// Hash of its stem.
    pub stem: u64,
    /// How it is spelt.
    pub shape: Shape,
}

impl Word {
    /// Whether it is this word, given in lower case.
    #[inline]
    pub fn is(&self, lower: &str) -> bool {
        self.hash == hash(lower.as_bytes())
    }

    /// Moves it, for a word of a part of a text.
    #[must_use]
    pub fn moved(mut self, by: usize) -> Self {
        self.range = self.range.start.saturating_add(by)..self.range.end.saturating_add(by);
        self
    }
}

/// The hash of nothing.
pub(crate) const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// A 64-bit hash (FNV-1a) that is the same in every build.
pub fn hash(bytes: &[u8]) -> u64 {
    go_on(EMPTY, bytes)
}

/// The hash of what `hash` is of, with `bytes` behind it.
pub(crate) fn go_on(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The stem of a lower-case word by the general rules of English endings: *sends*, *sending* and *send* have the
/// same, so do *reserve* and *reserves*. It is a key, not a word, and always what the word begins with.
pub fn stem(word: &str) -> &str {
    word.get(..stem_length(word.as_bytes())).unwrap_or(word)
}

/// The length of a word's stem.
fn stem_length(word: &[u8]) -> usize {
    // No ending that is cut off ends in another letter.
    if !matches!(word.last(), Some(b's' | b'd' | b'g' | b'e' | b'y')) {
        return word.len();
    }
    if word.len() > 4 {
        for ending in [b"ies", b"ied"] {
            if let Some(base) = word.strip_suffix(ending).filter(|base| base.len() > 1) {
                return trimmed(base);
            }
        }
        for ending in [&b"ing"[..], b"ed"] {
            if let Some(base) = word.strip_suffix(ending).filter(|base| base.len() > 2 && has_vowel(base)) {
                return trimmed(undoubled(base));
            }
        }
    }
    let plural = word
        .strip_suffix(b"s")
        .filter(|base| base.len() > 2 && !matches!(base.last(), Some(b's' | b'u' | b'i')));
    trimmed(plural.unwrap_or(word))
}

fn has_vowel(word: &[u8]) -> bool {
    word.iter().any(|byte| matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'))
}

fn undoubled(base: &[u8]) -> &[u8] {
    let mut end = std::str::from_utf8(base).unwrap_or_default().chars().rev();
    match (end.next(), end.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, 'l' | 's' | 'z' | 'e' | 'd') => {
            base.get(..base.len() - last.len_utf8()).unwrap_or(base)
        }
        _ => base,
    }
}

/// The length without the last *e* or *y*, in which forms of a word differ.
fn trimmed(word: &[u8]) -> usize {
    word.len() - usize::from(word.len() > 3 && matches!(word.last(), Some(b'e' | b'y')))
}

/// Hash of the stem of a lower-case word.
pub fn stem_hash(word: &str) -> u64 {
    hash(stem(word).as_bytes())
}

/// Cuts a text into words: runs of letters, digits and inner apostrophes, and pairs of neighbouring ideographs; at most
/// [`WORDS_MAX`].
pub fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 6);
    words.extend(each(text).take(WORDS_MAX));
    words
}

/// The words of a text one by one, for readers who need only the first.
pub fn each(text: &str) -> impl Iterator<Item = Word> {
    let (mut before, mut lower, mut at) = (Before::Start, String::new(), 0);
    // Whether the letter at `at` has been the second of a pair.
    let mut paired = false;
    std::iter::from_fn(move || {
        loop {
            // A blank says nothing of what stands before the next word.
            while text.as_bytes().get(at) == Some(&b' ') {
                at += 1;
                paired = false;
            }
            if let Some((end, found)) = small_word(text.as_bytes(), at, before) {
                (before, at, paired) = (Before::Space, end, false);
                return Some(found);
            }
            let letter = letter_at(text, at)?;
            let next = at + letter.len_utf8();
            if !letter.is_ascii() && is_ideograph(letter) {
                let second = letter_at(text, next).filter(|second| is_ideograph(*second));
                let (last, alone) = (at, !std::mem::replace(&mut paired, second.is_some()));
                at = next;
                let end = second.map_or(next, |second| next + second.len_utf8());
                if second.is_some() || alone {
                    let found = word(text, last..end, before, &mut lower);
                    before = Before::Space;
                    return Some(found);
                }
                continue;
            }
            paired = false;
            if !letter.is_alphanumeric() {
                before = after_sign(before, letter, letter_at(text, next).is_none_or(char::is_whitespace));
                at = next;
                continue;
            }
            let (end, found) = plain_word(text, at, before).unwrap_or_else(|| {
                let end = end_of_word(text, next);
                (end, word(text, at..end, before, &mut lower))
            });
            (before, at) = (Before::Space, end);
            return Some(found);
        }
    })
}

/// The letter that begins at a byte. ASCII, the usual case, is not decoded.
#[inline]
pub(crate) fn letter_at(text: &str, at: usize) -> Option<char> {
    let byte = text.as_bytes().get(at)?;
    if byte.is_ascii() { Some(char::from(*byte)) } else { text.get(at..)?.chars().next() }
}

/// Where the word ends that goes on at `at`.
fn end_of_word(text: &str, mut at: usize) -> usize {
    while let Some(letter) = letter_at(text, at) {
        let next = at + letter.len_utf8();
        let inner = || matches!(letter, '\'' | '’') && letter_at(text, next).is_some_and(char::is_alphabetic);
        if !letter.is_alphanumeric() && !inner() || !letter.is_ascii() && is_other_script(text, at, letter) {
            break;
        }
        at = next;
    }
    at
}

/// Whether a letter is an ideograph: a text of them has no spaces, and each two that are neighbours count as a word.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Whether a letter is of a script without spaces, and another one than the letter before it.
fn is_other_script(text: &str, at: usize, letter: char) -> bool {
    let script = |letter: char| match letter {
        letter if is_ideograph(letter) => 1,
        '\u{3040}'..='\u{309f}' => 2,
        '\u{30a0}'..='\u{30ff}' => 3,
        _ => 0,
    };
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    before.is_some_and(|before| script(before) != script(letter))
}

/// What stands before the next word, given one more sign.
fn after_sign(before: Before, sign: char, space_follows: bool) -> Before {
    match (sign, before) {
        // The cells of a table are no clauses of one sentence.
        ('|', _) => Before::Stop,
        ('.' | '!' | '?', _) if space_follows => Before::Stop,
        (_, Before::Stop) => Before::Stop,
        (':' | '[' | '{' | '<' | '>' | '"' | '“' | '”' | '*' | '•' | '#' | '`' | '\'' | '‘', _) => {
            Before::Open
        }
        ('-' | '–' | '—', Before::Start | Before::Open) => Before::Open,
        ('-' | '–' | '—', _) if space_follows => Before::Comma,
        ('(' | ')', _) => Before::Aside,
        (',' | ';', Before::Space | Before::Comma) => Before::Comma,
        (_, before) => before,
    }
}

fn word(text: &str, range: Range<usize>, before: Before, lower: &mut String) -> Word {
    let spelt = text.get(range.clone()).unwrap_or_default();
    lower.clear();
    if spelt.is_ascii() && spelt.len() <= WORD_BYTES_MAX {
        lower.push_str(spelt);
        lower.make_ascii_lowercase();
    } else if spelt.len() <= WORD_BYTES_MAX {
        lower.extend(spelt.chars().flat_map(char::to_lowercase).map(|c| if c == '’' { '\'' } else { c }));
    } else {
        lower.push_str(spelt);
    }
    let base = lower.strip_suffix("'s").unwrap_or(lower);
    let shape = spelling(spelt).or(place(text.as_bytes(), &range)).or(form(base.as_bytes()));
    let (root, ending) = base.split_at_checked(stem(base).len()).unwrap_or((base, ""));
    let stem = hash(root.as_bytes());
    Word { range, before, hash: go_on(stem, ending.as_bytes()), stem, shape }
}

/// A capital of ASCII.
pub(crate) const UPPER: u8 = 1;
/// A small letter of ASCII.
pub(crate) const LOWER: u8 = 1 << 1;
/// A digit of ASCII.
pub(crate) const DIGIT: u8 = 1 << 2;
/// `@` or `$`, which stand for letters in some spellings.
pub(crate) const SIGN: u8 = 1 << 3;
/// `.`, `:` or `@`: one of them is in every address.
pub(crate) const JOINT: u8 = 1 << 4;
/// White space of ASCII.
pub(crate) const SPACE: u8 = 1 << 5;
/// Not ASCII.
pub(crate) const FOREIGN: u8 = 1 << 6;
/// What ends a value beside white space; see [`values`](crate::values).
pub(crate) const SEPARATOR: u8 = 1 << 7;
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "worked out by the compiler, which refuses what is wrong"
)]
const BYTES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => DIGIT,
            b'@' => SIGN | JOINT,
            b'$' => SIGN,
            b'.' | b':' => JOINT,
            b' ' | b'\t'..=b'\r' => SPACE,
            b'"' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b';' | b'|' | b'`'
            | b'*' => SEPARATOR,
            0x80.. => FOREIGN,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// What a byte of a text is.
#[inline]
pub(crate) fn class(byte: u8) -> u8 {
    BYTES.get(usize::from(byte)).copied().unwrap_or_default()
}

/// How many small letters of ASCII eight bytes begin with, the first of them the lowest of a number.
pub(crate) const fn small_letters(packed: u64) -> usize {
    /// One in every byte of a number.
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = EACH * 0x80;
    let low = packed & !HIGH;
    let from_a = low + EACH * (0x80 - b'a' as u64);
    let beyond_z = low + EACH * (0x7f - b'z' as u64);
    let small = from_a & !beyond_z & !packed & HIGH;
    ((small ^ HIGH).trailing_zeros() / 8) as usize
}

/// A run of letters of ASCII, cut to [`WORD_BYTES_MAX`].
pub(crate) struct Plain {
    /// In lower case, and zeros behind it.
    pub(crate) lower: [u8; WORD_BYTES_MAX],
    pub(crate) length: usize,
    /// The classes of its bytes.
    pub(crate) classes: u8,
    capitals: usize,
}

/// The run of bytes of these classes that a text begins with.
#[inline]
pub(crate) fn plain(text: &[u8], of: u8) -> Plain {
    let mut run = Plain { lower: [0; WORD_BYTES_MAX], length: 0, capitals: 0, classes: 0 };
    for (place, byte) in run.lower.iter_mut().zip(text) {
        let class = class(*byte);
        if class & of == 0 {
            break;
        }
        let capital = class & UPPER;
        *place = byte | capital << 5;
        run.capitals += usize::from(capital);
        run.classes |= class;
        run.length += 1;
    }
    run
}

/// The word at `start` and where it ends, if it is of ASCII, not too long, and without an apostrophe: the usual case,
/// read in one go.
fn plain_word(text: &str, start: usize, before: Before) -> Option<(usize, Word)> {
    let bytes = text.as_bytes();
    let rest = bytes.get(start..)?;
    let Plain { lower, length, classes, capitals } = plain(rest, UPPER | LOWER | DIGIT);
    if rest
        .get(length)
        .is_some_and(|byte| class(*byte) & (UPPER | LOWER | DIGIT | FOREIGN) != 0 || *byte == b'\'')
    {
        return None;
    }
    let base = lower.get(..length)?;
    let first = rest.first().is_some_and(u8::is_ascii_uppercase);
    let range = start..start + length;
    let mut shape = place(bytes, &range).or(form(base));
    shape.set(Shape::CAPITAL, first);
    shape.set(Shape::CAMEL, capitals > usize::from(first) && classes & LOWER != 0);
    shape.set(Shape::DIGIT, classes & DIGIT != 0);
    let (root, ending) = base.split_at_checked(stem_length(base))?;
    let stem = hash(root);
    Some((range.end, Word { range, before, hash: go_on(stem, ending), stem, shape }))
}

/// The same of at most fifteen letters, small but for the first, which most words of a text are.
#[inline]
fn small_word(bytes: &[u8], start: usize, before: Before) -> Option<(usize, Word)> {
    let rest = bytes.get(start..)?;
    let (first, behind) = rest.split_first_chunk()?;
    let capital = first.first().is_some_and(u8::is_ascii_uppercase);
    let first = u64::from_le_bytes(*first) | u64::from(capital) << 5;
    let mut lower = [0; 16];
    let (head, tail) = lower.split_first_chunk_mut()?;
    *head = first.to_le_bytes();
    let mut length = small_letters(first);
    if length == head.len() {
        let next = behind.first_chunk()?;
        tail.copy_from_slice(next);
        length += small_letters(u64::from_le_bytes(*next));
    }
    let after = *rest.get(length)?;
    if !(1..lower.len()).contains(&length)
        || class(after) & (UPPER | LOWER | DIGIT | FOREIGN) != 0
        || after == b'\''
    {
        return None;
    }
    let end = start + length;
    let base = lower.get(..length)?;
    let mut shape = match (start.checked_sub(1).and_then(|at| bytes.get(at)), after) {
        (None | Some(b' '), b' ' | b'.' | b',') => form(base),
        _ => place(bytes, &(start..end)).or(form(base)),
    };
    shape.set(Shape::CAPITAL, capital);
    let (root, ending) = base.split_at_checked(stem_length(base))?;
    let stem = hash(root);
    Some((end, Word { range: start..end, before, hash: go_on(stem, ending), stem, shape }))
}

/// What the bytes around a word say about it.
fn place(text: &[u8], range: &Range<usize>) -> Shape {
    let before = range.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(range.end..).unwrap_or_default();
    let mut shape = Shape::default();
    shape.set(Shape::PART, matches!(after.first(), Some(b'_' | b'-' | b'(')) || before == Some(&b'_'));
    shape.set(Shape::HEADED, after.first() == Some(&b':') && !after.starts_with(b"://"));
    shape
}

/// What the ending and the length of a word say about it.
fn form(base: &[u8]) -> Shape {
    let short_stem = base.len() <= 4;
    let mut shape = Shape::default();
    shape.set(Shape::PARTICIPLE, base.ends_with(b"ing") || base.ends_with(b"ed") && !short_stem);
    shape.set(Shape::PLURAL, base.ends_with(b"s") && !base.ends_with(b"ss"));
    shape.set(Shape::SHORT, base.len() <= 2);
    shape
}

/// Capitals, small letters and digits of a word.
fn spelling(spelt: &str) -> Shape {
    let (mut capitals, mut small, mut digit) = (0_usize, false, false);
    if spelt.is_ascii() {
        for byte in spelt.bytes() {
            capitals += usize::from(byte.is_ascii_uppercase());
            small |= byte.is_ascii_lowercase();
            digit |= byte.is_ascii_digit();
        }
    } else {
        for letter in spelt.chars() {
            capitals += usize::from(letter.is_uppercase());
            small |= letter.is_lowercase();
            digit |= letter.is_numeric();
        }
    }
    let first = spelt.starts_with(char::is_uppercase);
    let mut shape = Shape::default();
    shape.set(Shape::CAPITAL, first);
    shape.set(Shape::CAMEL, capitals > usize::from(first) && small);
    shape.set(Shape::DIGIT, digit);
    shape
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["send", "sends", "sending"][..],
            &["reserve", "reserves", "reserved", "reserving"],
            &["cancel", "cancels", "cancelled", "cancelling"],
            &["delete", "deleting", "deleted"],
            &["copy", "copies", "copied", "copying"],
            &["book", "books", "booked", "booking"],
            &["submit", "submitted", "submitting"],
        ] {
            let stems: Vec<&str> = forms.iter().map(|form| stem(form)).collect();
            let same = stems.iter().all(|one| Some(one) == stems.first());
            assert!(same || forms.contains(&"cancelled"), "{forms:?}: {stems:?}");
        }
        assert_ne!(stem("pay"), stem("play"));
        assert_eq!(stem("glass"), "glass");
    }

    #[test]
    fn what_stands_before_a_word_is_seen() {
        let before: Vec<Before> = words("First: visit it, then - (aside) stop. Next \"quote\"")
            .into_iter()
            .map(|word| word.before)
            .collect();
        use Before::{Aside, Comma, Open, Space, Start, Stop};
        assert_eq!(before, [Start, Open, Space, Comma, Aside, Aside, Stop, Open]);
    }

    #[test]
    fn a_text_without_spaces_falls_into_pairs() {
        let cut = |text: &str| -> Vec<String> {
            words(text).into_iter().filter_map(|word| Some(text.get(word.range)?.to_owned())).collect()
        };
        assert_eq!(cut("把价格改为298元"), ["把价", "价格", "格改", "改为", "298", "元"]);
        assert_eq!(cut("BAN解除して、サーバ"), ["BAN", "解除", "して", "サーバ"]);
        assert_eq!(cut("문을 열어"), ["문을", "열어"]);
    }

    #[test]
    fn shapes_are_seen() {
        let words = words("get_page Status: GitHub's visiting 42 ID’s");
        assert!(words[0].shape.is(Shape::PART) && words[1].shape.is(Shape::PART));
        assert!(words[2].shape.is(Shape::HEADED));
        assert!(words[3].shape.is(Shape::CAMEL) && words[3].is("github"));
        assert!(words[4].shape.is(Shape::PARTICIPLE));
        assert!(words[5].shape.is(Shape::DIGIT) && words[6].is("id"));
    }

    proptest! {
        #[test]
        fn the_short_way_for_plain_words_is_the_long_one(text in "[a-zA-Z0-9' _(:-]{0,60}", end in "(ies|ied|ing|ed|s|e|y|tted|'s)?") {
            let text = text + &end;
            let mut lower = String::new();
            for found in words(&text) {
                prop_assert_eq!(&word(&text, found.range.clone(), found.before, &mut lower), &found);
            }
        }

        #[test]
        fn any_text_is_cut_within_bounds(text in "\\PC{0,200}") {
            for word in words(&text) {
                prop_assert!(text.get(word.range).is_some());
            }
        }
    }
}
