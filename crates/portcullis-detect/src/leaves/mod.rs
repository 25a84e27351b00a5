//! Taking the wrapping off: the string leaves of a text, each with its place in the raw bytes.
//!
//! Tools answer in JSON, in the notation in which Python prints its values, in YAML, in mail-like `key: value` lines, or
//! in plain text; often one inside the other, and escaped twice. Who reads the raw text sees keys as verbs
//! (`"cancel_reason": null`), takes a folded line for the start of a sentence, and reads `\nVisit` as the word `nVisit`.
//! So values are read one by one: names of fields are no text, folded lines are joined, escapes are undone, and what
//! looks like a wrapping but is none is read as lines. No byte that could be read by a model is left out: what a reader
//! of a notation does not understand falls to the next simpler one, and a name of a field that is a sentence is a leaf.

mod escapes;
mod lines;
mod structured;

use std::borrow::Cow;
use std::ops::Range;

use crate::limits;
use crate::places::Places;

/// One value of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// The text, decoded: escapes undone, folded lines joined with a blank.
    pub text: Cow<'a, str>,
    /// Where the bytes of [`text`](Self::text) stand in the raw text.
    pub places: Places,
    /// The name of the innermost field that holds the value, as written; for an item of a list, the list's.
    pub field: Option<Cow<'a, str>>,
    /// Whether the value reads as running text: at least three words, one of them in lower case, more letters than
    /// other signs. An address that stands in prose is weaker evidence of data than one that is the whole value.
    pub prose: bool,
    /// Whether the value is a number (JSON's or Python's, without quotes).
    pub number: bool,
    /// The record that the value belongs to: one mail of an inbox, one row. See [`Leaves::parent`].
    pub record: u32,
}

/// The record of what stands in no list: the text as a whole.
pub const WHOLE: u32 = 0;

/// The leaves of a text, in the order of the raw bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leaves<'a> {
    leaves: Vec<Leaf<'a>>,
    unread: Option<Range<usize>>,
    /// Of each record but [`WHOLE`] the one around it.
    parents: Vec<u32>,
    /// The record that is being read.
    record: u32,
}

impl<'a> Leaves<'a> {
    /// The leaves in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Leaf<'a>> {
        self.leaves.iter()
    }

    /// How many leaves there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The raw bytes behind a limit ([`limits::TEXT_BYTES`], [`limits::LEAVES`]), which nobody read. To be taken for
    /// suspect: whoever wrote the text chose its length.
    #[must_use]
    pub fn unread(&self) -> Option<Range<usize>> {
        self.unread.clone()
    }

    /// The record around a record; none around [`WHOLE`]. A parent's number is lower than its child's.
    #[must_use]
    pub fn parent(&self, record: u32) -> Option<u32> {
        self.parents.get(usize::try_from(record.checked_sub(1)?).ok()?).copied()
    }

    /// How many records there are, [`WHOLE`] among them.
    #[must_use]
    pub fn records(&self) -> usize {
        self.parents.len().saturating_add(1)
    }

    /// Begins a record inside `parent` and returns its number.
    fn begin_record(&mut self, parent: u32) -> u32 {
        if self.parents.len() >= limits::RECORDS {
            return parent;
        }
        self.parents.push(parent);
        self.record = u32::try_from(self.parents.len()).unwrap_or(parent);
        self.record
    }

    fn is_full(&self) -> bool {
        self.leaves.len() >= limits::LEAVES
    }

    fn push(&mut self, text: Cow<'a, str>, places: Places, field: Option<Cow<'a, str>>) {
        if !text.trim().is_empty() && !self.is_full() {
            let prose = is_prose(&text);
            self.leaves.push(Leaf { text, places, field, prose, number: false, record: self.record });
        }
    }

    fn push_number(&mut self, text: &'a str, at: usize, field: Option<Cow<'a, str>>) {
        if !self.is_full() {
            let places = Places::literal(at..at.saturating_add(text.len()));
            let (text, record) = (Cow::Borrowed(text), self.record);
            self.leaves.push(Leaf { text, places, field, prose: false, number: true, record });
        }
    }
}

impl<'a> IntoIterator for Leaves<'a> {
    type Item = Leaf<'a>;
    type IntoIter = std::vec::IntoIter<Leaf<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.leaves.into_iter()
    }
}

impl<'s, 'a> IntoIterator for &'s Leaves<'a> {
    type Item = &'s Leaf<'a>;
    type IntoIter = std::slice::Iter<'s, Leaf<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The string leaves of `raw`, which may be JSON, Python's notation of values, YAML, `key: value` lines, plain text, or
/// JSON inside any of them. Never fails and never panics; takes time linear in the length of `raw`.
#[must_use]
pub fn leaves(raw: &str) -> Leaves<'_> {
    let read = raw.get(..floor_char(raw, limits::TEXT_BYTES)).unwrap_or(raw);
    let mut leaves = read_text(read, 0);
    if leaves.is_full() {
        let from = leaves.leaves.last().map_or(0, |leaf| leaf.places.all().end);
        leaves.unread = Some(from..raw.len());
    } else if read.len() < raw.len() {
        leaves.unread = Some(read.len()..raw.len());
    }
    leaves
}

/// The leaves of one text, `opened` times inside other texts.
fn read_text(text: &str, opened: usize) -> Leaves<'_> {
    let mut flat = Leaves::default();
    let at = structured::read_document(text, &mut flat);
    lines::read(text, at, &mut flat);
    if opened >= limits::NESTED_TEXTS
        || !flat.leaves.iter().any(|leaf| structured::looks_structured(&leaf.text))
    {
        return flat;
    }
    let mut out = Leaves { parents: flat.parents, ..Leaves::default() };
    for leaf in flat.leaves {
        if structured::looks_structured(&leaf.text) {
            open(leaf, opened, &mut out);
        } else if !out.is_full() {
            out.leaves.push(leaf);
        }
    }
    out
}

/// Puts the leaves of a leaf that is itself JSON in its place.
fn open<'a>(leaf: Leaf<'a>, opened: usize, out: &mut Leaves<'a>) {
    let Leaf { text, places, field, record, .. } = leaf;
    let inner = read_text(&text, opened.saturating_add(1));
    // Its records become records inside the one that it stands in.
    let mut numbers = vec![record];
    for parent in &inner.parents {
        let parent = numbers.get(*parent as usize).copied().unwrap_or(record);
        numbers.push(out.begin_record(parent));
    }
    for found in inner.leaves {
        if out.is_full() {
            return;
        }
        out.leaves.push(Leaf {
            text: Cow::Owned(found.text.into_owned()),
            places: found.places.within(&places),
            field: found.field.map(|field| Cow::Owned(field.into_owned())).or_else(|| field.clone()),
            prose: found.prose,
            number: found.number,
            record: numbers.get(found.record as usize).copied().unwrap_or(record),
        });
    }
}

fn is_prose(text: &str) -> bool {
    if text.is_ascii() { is_ascii_prose(text.as_bytes()) } else { is_any_prose(text) }
}

fn is_any_prose(text: &str) -> bool {
    let (mut words, mut lower) = (0_usize, false);
    let (mut letters, mut others) = (0_usize, 0_usize);
    for word in text.split_whitespace() {
        words = words.saturating_add(1);
        let mut signs = 0_usize;
        for character in word.chars() {
            if character.is_alphabetic() {
                letters = letters.saturating_add(1);
            } else {
                signs = signs.saturating_add(1);
            }
        }
        others = others.saturating_add(signs);
        lower |= signs == 0 && word.chars().next().is_some_and(|first| !first.is_uppercase());
    }
    words >= 3 && lower && letters > others
}

/// [`is_prose`] for ASCII, the usual case: bytes are counted without regard to words, and words are looked at only
/// until it is known.
fn is_ascii_prose(text: &[u8]) -> bool {
    // In blocks that are counted whole: the compiler makes vector code of it.
    const BLOCK: usize = 128;
    let is_space = |byte: &u8| *byte == b' ' || (b'\t'..=b'\r').contains(byte);
    let count = |test: fn(&u8) -> bool| -> usize {
        let of_block =
            |block: &[u8]| block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(test(byte))));
        text.chunks(BLOCK).map(|block| usize::from(of_block(block))).sum()
    };
    let letters = count(u8::is_ascii_alphabetic);
    let others = text.len().saturating_sub(letters).saturating_sub(count(is_space));
    let words = || text.split(is_space).filter(|word| !word.is_empty());
    let is_lower = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_lowercase) && word.iter().all(u8::is_ascii_alphabetic)
    };
    letters > others && words().nth(2).is_some() && words().any(is_lower)
}

/// The largest boundary of a character at or below `at`.
pub(crate) fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at = at.saturating_sub(1);
    }
    at
}

#[cfg(test)]
mod tests;
