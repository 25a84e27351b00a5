//! What was found.

use std::ops::Range;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Where it is.
    pub range: Range<usize>,
    /// What it is, in words joined by hyphens: `github-token`, `password`, `private-key`, ...
    pub kind: &'static str,
}
