//! Words of commands, after expansion.

use std::ops::Range;

/// A word after expansion as far as it is known from the text alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The value when it is known completely: quotes removed, variables and braces expanded.
    pub(crate) value: Option<String>,
    /// The value with `*` for each part that is not known; equals the value when that is known.
    pub(crate) shape: String,
    /// Holds a glob character that the shell would expand.
    pub(crate) glob: bool,
    /// Where it stands in the text.
    pub(crate) range: Range<usize>,
}

impl Word {
    /// A word that is known.
    pub(crate) fn known(value: impl Into<String>, range: Range<usize>) -> Self {
        let value = value.into();
        Self { shape: value.clone(), value: Some(value), glob: false, range }
    }

    /// A word of which nothing is known.
    pub(crate) fn unknown(range: Range<usize>) -> Self {
        Self { value: None, shape: "*".to_owned(), glob: false, range }
    }

    /// The value, if it is known and stands for itself.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.value.as_deref().filter(|_| !self.glob)
    }

    /// The word without its first `skip` bytes: the value of `--file=VALUE`.
    pub(crate) fn tail(&self, skip: usize) -> Self {
        let tail = |text: &String| text.get(skip..).unwrap_or_default().to_owned();
        Self { value: self.value.as_ref().map(tail), shape: tail(&self.shape), ..self.clone() }
    }
}
