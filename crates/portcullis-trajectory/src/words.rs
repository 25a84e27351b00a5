//! Words: how a text falls into them, and the stem under which forms of a word are the same.
//!
//! A word is kept as two hashes and a few properties, not as text: reading a text allocates one list.

use std::ops::Range;

/// Most bytes of a word that are looked at; what is longer is a word like no other.
pub const WORD_BYTES_MAX: usize = 48;
/// Most words taken from one text.
pub const WORDS_MAX: usize = 65_536;

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
    /// Where it stands.
    pub range: Range<usize>,
    /// What stands before it.
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

/// A 64-bit hash (FNV-1a) that is the same in every build.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The stem of a lower-case word by the general rules of English endings: *sends*, *sending* and *send* have the
/// same, so do *reserve* and *reserves*. It is a key, not a word.
pub fn stem(word: &str) -> &str {
    if word.len() > 4 {
        for ending in ["ies", "ied"] {
            if let Some(base) = word.strip_suffix(ending).filter(|base| base.len() > 1) {
                return trimmed(base);
            }
        }
        for ending in ["ing", "ed"] {
            if let Some(base) = word.strip_suffix(ending).filter(|base| base.len() > 2 && has_vowel(base)) {
                return trimmed(undoubled(base));
            }
        }
    }
    let plural = word.strip_suffix('s').filter(|base| base.len() > 2 && !base.ends_with(['s', 'u', 'i']));
    trimmed(plural.unwrap_or(word))
}

fn has_vowel(word: &str) -> bool {
    word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

fn undoubled(base: &str) -> &str {
    let mut end = base.chars().rev();
    match (end.next(), end.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, 'l' | 's' | 'z' | 'e' | 'd') => {
            base.strip_suffix(last).unwrap_or(base)
        }
        _ => base,
    }
}

/// Without the last *e* or *y*, in which forms of a word differ.
fn trimmed(word: &str) -> &str {
    if word.len() > 3 { word.strip_suffix(['e', 'y']).unwrap_or(word) } else { word }
}

/// Hash of the stem of a lower-case word.
pub fn stem_hash(word: &str) -> u64 {
    hash(stem(word).as_bytes())
}

/// Cuts a text into words: runs of letters, digits and inner apostrophes; at most [`WORDS_MAX`].
pub fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 6);
    let mut before = Before::Start;
    let mut lower = String::with_capacity(WORD_BYTES_MAX);
    let mut chars = text.char_indices().peekable();
    while let Some((start, letter)) = chars.next() {
        if !letter.is_alphanumeric() {
            before = after_sign(before, letter, chars.peek().is_none_or(|(_, next)| next.is_whitespace()));
            continue;
        }
        if words.len() >= WORDS_MAX {
            return words;
        }
        let mut end = start + letter.len_utf8();
        while let Some((at, next)) = chars.peek().copied() {
            let after = || text.get(at + next.len_utf8()..).and_then(|rest| rest.chars().next());
            let inner = matches!(next, '\'' | '’') && after().is_some_and(char::is_alphabetic);
            if !next.is_alphanumeric() && !inner {
                break;
            }
            end = at + next.len_utf8();
            chars.next();
        }
        words.push(word(text, start..end, before, &mut lower));
        before = Before::Space;
    }
    words
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
    let after = text.get(range.end..).unwrap_or_default();
    let mut shape = Shape::default();
    let (mut capitals, mut small, mut digit, mut first) = (0_usize, false, false, false);
    for (at, letter) in spelt.chars().enumerate() {
        capitals += usize::from(letter.is_uppercase());
        small |= letter.is_lowercase();
        digit |= letter.is_numeric();
        first |= at == 0 && letter.is_uppercase();
    }
    shape.set(Shape::CAPITAL, first);
    shape.set(Shape::CAMEL, capitals > usize::from(first) && small);
    shape.set(Shape::DIGIT, digit);
    shape.set(
        Shape::PART,
        after.starts_with(['_', '-', '(']) || text.get(..range.start).is_some_and(|text| text.ends_with('_')),
    );
    shape.set(Shape::HEADED, after.starts_with(':') && !after.starts_with("://"));
    let short_stem = base.len() <= 4;
    shape.set(Shape::PARTICIPLE, base.ends_with("ing") || base.ends_with("ed") && !short_stem);
    shape.set(Shape::PLURAL, base.ends_with('s') && !base.ends_with("ss"));
    shape.set(Shape::SHORT, base.len() <= 2);
    Word { range, before, hash: hash(base.as_bytes()), stem: stem_hash(base), shape }
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
        fn any_text_is_cut_within_bounds(text in "\\PC{0,200}") {
            for word in words(&text) {
                prop_assert!(text.get(word.range).is_some());
            }
        }
    }
}
