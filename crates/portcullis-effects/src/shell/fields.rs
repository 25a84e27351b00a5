//! Expansion in the making: the words that one written word becomes.

use std::ops::Range;

use super::state::VALUE_BYTES_MAX;
use super::word::{Gaps, Word};

/// Most words that one word becomes.
pub(super) const FIELDS_MAX: usize = 256;

#[derive(Debug, Default)]
struct Field {
    text: String,
    /// What may be in parts that are not known, if there are such.
    gaps: Option<Gaps>,
    /// How many there are.
    gap_count: usize,
    glob: bool,
    /// There is a word, though it may be empty: something of it was quoted.
    present: bool,
}

/// Gathers words.
#[derive(Debug)]
pub(super) struct Fields {
    done: Vec<Field>,
    current: Field,
    /// Whether unquoted values are split at blanks.
    splits: bool,
    /// Whether they are split at other places than blanks: what comes of it is not known.
    elsewhere: bool,
    overflowed: bool,
}

impl Fields {
    pub(super) fn new(splits: bool) -> Self {
        Self { done: Vec::new(), current: Field::default(), splits, elsewhere: false, overflowed: false }
    }

    /// The same where values are split elsewhere.
    pub(super) fn elsewhere(mut self, elsewhere: bool) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// Text that is in the word itself.
    pub(super) fn literal(&mut self, text: &str, quoted: bool) {
        self.current.present |= quoted || !text.is_empty();
        self.current.glob |= !quoted && text.contains(['*', '?', '[']);
        if self.current.text.len() + text.len() > VALUE_BYTES_MAX {
            self.overflowed = true;
        } else {
            self.current.text.push_str(text);
        }
    }

    /// A part that is not known.
    pub(super) fn unknown(&mut self) {
        self.shape("*");
    }

    /// A part of which only the shape is known.
    pub(super) fn shape(&mut self, shape: &str) {
        self.gap(shape, Gaps::Any, true);
    }

    /// A part with gaps.
    pub(super) fn gap(&mut self, shape: &str, gaps: Gaps, quoted: bool) {
        let splits = self.splits && !quoted && (self.elsewhere || shape.contains([' ', '\t', '\n']));
        let gaps = if splits { Gaps::Any } else { gaps };
        self.literal(shape, true);
        self.current.gaps = Some(self.current.gaps.map_or(gaps, |before| before.and(gaps)));
        self.current.gap_count += shape.matches('*').count();
    }

    /// What a variable or command is replaced by.
    pub(super) fn value(&mut self, value: &str, quoted: bool) {
        if quoted || !self.splits {
            // Values that are neither quoted nor split stand where globs are not expanded.
            self.literal(value, true);
            return;
        }
        if self.elsewhere {
            return self.unknown();
        }
        for (index, part) in value.split([' ', '\t', '\n']).enumerate() {
            if index > 0 {
                self.cut();
            }
            self.literal(part, false);
        }
    }

    /// Several values, a word each.
    pub(super) fn list<'v>(&mut self, values: impl Iterator<Item = Option<&'v str>>, quoted: bool) {
        for (index, value) in values.enumerate() {
            if index > 0 {
                if self.splits { self.cut() } else { self.literal(" ", true) }
            }
            match value {
                Some(value) => self.value(value, quoted),
                None => self.unknown(),
            }
        }
    }

    /// The word ends here.
    fn cut(&mut self) {
        let field = std::mem::take(&mut self.current);
        if !field.present {
            return;
        }
        if self.done.len() < FIELDS_MAX {
            self.done.push(field);
        } else {
            self.overflowed = true;
        }
    }

    /// The words.
    pub(super) fn words(mut self, range: &Range<usize>) -> Vec<Word> {
        self.cut();
        if self.overflowed {
            return vec![Word::unknown(range.clone())];
        }
        let word = |field: Field| Word {
            value: field.gaps.is_none().then(|| field.text.clone()),
            gaps: match field.gaps {
                // A star that was written is not a list of folders.
                Some(Gaps::Search) if field.text.matches('*').count() != field.gap_count => Gaps::Any,
                gaps => gaps.unwrap_or_default(),
            },
            // A bracket alone is the name of a command.
            glob: field.glob && field.text != "[",
            shape: field.text,
            range: range.clone(),
            expanded: true,
        };
        self.done.into_iter().map(word).collect()
    }
}
