//! Strings that are known in part: literals with holes.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};
use smol_str::{SmolStr, format_smolstr};

use crate::limits::{CODE_STRING_BYTES_MAX, CODE_VALUES_MAX};

/// A piece of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Known characters.
    Literal(SmolStr),
    /// Any characters, also none.
    Hole,
}

/// A string as far as it is known, and where its first literal is in the code.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// Nearly every text is one literal, and needs no list of its own.
    parts: SmallVec<[Part; 1]>,
    range: Range<usize>,
}

impl PartialEq for Text {
    /// Where a text comes from is no part of what it is.
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Text {
    pub(super) fn literal(text: impl Into<SmolStr>, range: Range<usize>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() { SmallVec::new() } else { smallvec![Part::Literal(text)] };
        Self { parts, range }
    }

    pub(super) fn hole(range: Range<usize>) -> Self {
        Self { parts: smallvec![Part::Hole], range }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The whole string, when it is known.
    pub(super) fn known(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The string with `*` for each hole.
    pub(super) fn shape(&self) -> String {
        self.filled(|_| "*".to_owned())
    }

    /// The string with each hole filled by what `fill` makes of the text before it.
    pub(super) fn filled(&self, mut fill: impl FnMut(&str) -> String) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Hole => {
                    let filling = fill(&out);
                    out.push_str(&filling);
                }
            }
        }
        out
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|part| if let Part::Literal(text) = part { text.len() } else { 1 }).sum()
    }

    /// This text followed by another.
    pub(super) fn then(&self, other: &Self) -> Self {
        if self.bytes() + other.bytes() > CODE_STRING_BYTES_MAX {
            return Self::hole(self.range.clone());
        }
        let mut parts = self.parts.clone();
        for part in &other.parts {
            match (parts.last_mut(), part) {
                (Some(Part::Literal(last)), Part::Literal(next)) => {
                    *last = format_smolstr!("{last}{next}");
                }
                (Some(Part::Hole), Part::Hole) => {}
                _ => parts.push(part.clone()),
            }
        }
        let range = if self.parts.iter().any(|part| matches!(part, Part::Literal(_))) {
            self.range.clone()
        } else {
            other.range.clone()
        };
        Self { parts, range }
    }

    /// The text with every known character changed; holes stay holes.
    pub(super) fn map(&self, change: impl Fn(&str) -> String) -> Self {
        let parts = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Part::Literal(change(text).into()),
                Part::Hole => Part::Hole,
            })
            .filter(|part| !matches!(part, Part::Literal(text) if text.is_empty()))
            .collect();
        Self { parts, range: self.range.clone() }
    }
}

/// Several strings of which one is meant.
pub(super) type Texts = SmallVec<[Rc<Text>; 1]>;

/// Every string of `left` followed by every one of `right`; one with a hole for all when they are too many.
pub(super) fn concatenate(left: &[Rc<Text>], right: &[Rc<Text>]) -> Texts {
    let hole = |texts: &[Rc<Text>]| -> Texts {
        texts.first().map(|text| Rc::new(Text::hole(text.range()))).into_iter().collect()
    };
    let too_many = left.len() * right.len() > CODE_VALUES_MAX;
    let held;
    let (left, right) = match too_many {
        true if left.len() >= right.len() => {
            held = hole(left);
            (&*held, right)
        }
        true => {
            held = hole(right);
            (left, &*held)
        }
        false => (left, right),
    };
    let mut all = Texts::new();
    for a in left {
        for b in right {
            let text = a.then(b);
            if !all.iter().any(|known| **known == text) {
                all.push(Rc::new(text));
            }
        }
    }
    all
}

/// The text in lower case, which names in code mostly are already.
pub(super) fn lowercase(text: &str) -> Cow<'_, str> {
    let lower = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

/// A piece of a format string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it stands.
    Literal(String),
    /// What stands between braces or behind a percent sign: a position, a name, or the next one (empty).
    Field { name: String, plain: bool },
}

/// The pieces of a template of `str.format`, or `None` if it is not well formed.
pub(super) fn brace_template(template: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '{' if characters.next_if_eq(&'{').is_some() => literal.push('{'),
            '}' if characters.next_if_eq(&'}').is_some() => literal.push('}'),
            '}' => return None,
            '{' => {
                let mut field = String::new();
                let mut depth = 0_usize;
                loop {
                    match characters.next()? {
                        '}' if depth == 0 => break,
                        inner => {
                            depth = match inner {
                                '{' => depth + 1,
                                '}' => depth - 1,
                                _ => depth,
                            };
                            field.push(inner);
                        }
                    }
                }
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                let end = field.find(['!', ':']).unwrap_or(field.len());
                let name = field.get(..end).unwrap_or_default().to_owned();
                pieces.push(Piece::Field { plain: end == field.len(), name });
            }
            other => literal.push(other),
        }
    }
    pieces.push(Piece::Literal(literal));
    Some(pieces)
}

/// The pieces of a template of the `%` operator, or `None` if it is not well formed.
pub(super) fn percent_template(template: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            literal.push(character);
            continue;
        }
        let mut name = String::new();
        if characters.next_if_eq(&'(').is_some() {
            loop {
                match characters.next()? {
                    ')' => break,
                    inner => name.push(inner),
                }
            }
        }
        let mut plain = true;
        loop {
            match characters.next()? {
                '%' => {
                    literal.push('%');
                    break;
                }
                '*' => return None,
                kind if kind.is_ascii_alphabetic() => {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    plain &= matches!(kind, 's' | 'd' | 'i');
                    pieces.push(Piece::Field { name, plain });
                    break;
                }
                _ => plain = false,
            }
        }
    }
    pieces.push(Piece::Literal(literal));
    Some(pieces)
}
