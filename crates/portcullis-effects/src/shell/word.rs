//! Words of commands, after expansion.

use std::borrow::Cow;
use std::ops::Range;

/// What may be in the parts of a word that are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// Any text.
    #[default]
    Any,
    /// Letters and digits that `mktemp` chose, within one name.
    Letters,
    /// Each is the list of folders that programs were looked for in before the text.
    Search,
}

impl Gaps {
    /// The gaps of a word that is made of two.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

/// Words joined by blanks, if all are known.
pub(super) fn joined(words: &[Word]) -> Option<String> {
    let values: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    values.map(|values| values.join(" "))
}

/// A word after expansion as far as it is known from the text alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The value when it is known completely: quotes removed, variables and braces expanded.
    pub(crate) value: Option<String>,
    /// The value with `*` for each part that is not known; equals the value when that is known.
    pub(crate) shape: String,
    /// What may be in the parts that are not known.
    pub(crate) gaps: Gaps,
    /// Holds a glob character that the shell would expand.
    pub(crate) glob: bool,
    /// Where it is in the text.
    pub(crate) range: Range<usize>,
    /// Whether the shell has expanded all of it: a tilde that it begins with was quoted and is part of the name. In a
    /// part of a word, such as the value of an option, not all shells and programs leave a tilde as it is.
    pub(crate) expanded: bool,
}

impl Word {
    /// A word that is known.
    pub(crate) fn known(value: impl Into<String>, range: Range<usize>) -> Self {
        let value = value.into();
        Self { shape: value.clone(), value: Some(value), range, ..Self::default() }
    }

    /// A word of which nothing is known.
    pub(crate) fn unknown(range: Range<usize>) -> Self {
        Self { shape: "*".to_owned(), range, ..Self::default() }
    }

    /// The value, if it is known and stands for itself.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.value.as_deref().filter(|_| !self.glob)
    }

    /// The value as far as a path needs it: names that `mktemp` chose stand for one folder or file.
    pub(crate) fn place(&self) -> Option<&str> {
        match (&self.value, self.gaps) {
            (None, Gaps::Letters) if !self.glob => Some(&self.shape),
            _ => self.literal(),
        }
    }

    /// The value, or what is known of it, as a path is read in which a tilde means the home folder.
    pub(crate) fn path(&self) -> Cow<'_, str> {
        let letter = self.expanded && self.value.is_some() && self.shape.starts_with('~');
        if letter { Cow::Owned(format!("./{}", self.shape)) } else { Cow::Borrowed(&self.shape) }
    }

    /// The word without its first `skip` bytes: the value of `--file=VALUE`.
    pub(crate) fn tail(&self, skip: usize) -> Self {
        let tail = |text: &String| text.get(skip..).unwrap_or_default().to_owned();
        Self {
            value: self.value.as_ref().map(tail),
            shape: tail(&self.shape),
            expanded: false,
            ..self.clone()
        }
    }
}
