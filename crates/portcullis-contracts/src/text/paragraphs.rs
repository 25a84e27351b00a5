//! Pieces of a text between separators: paragraphs, parts, several replies in one.

use super::Span;

/// Pieces between occurrences of `separator`, empty ones included.
#[must_use]
pub fn pieces(text: &str, separator: &str) -> Vec<Span> {
    let mut start = 0;
    let mut out = Vec::new();
    for (at, found) in text.match_indices(separator) {
        out.push(start..at);
        start = at + found.len();
    }
    out.push(start..text.len());
    out
}

/// Pieces between runs of marks that are exactly `separator`: fourteen dashes are not twelve. A separator of other
/// text is taken wherever it stands.
#[must_use]
pub fn exact_pieces(text: &str, separator: &str) -> Vec<Span> {
    let Some(mark) = separator.chars().next().filter(|&mark| separator.chars().all(|c| c == mark)) else {
        return pieces(text, separator);
    };
    let mut start = 0;
    let mut at = 0;
    let mut out = Vec::new();
    while let Some(found) = super::from(text, at).find(mark).map(|found| at + found) {
        let run = super::from(text, found);
        at = found + run.len() - run.trim_start_matches(mark).len();
        if at - found == separator.len() {
            out.push(start..found);
            start = at;
        }
    }
    out.push(start..text.len());
    out
}

/// Pieces between lines of three asterisks: the divider is `***` with at most one white-space character on either side.
#[must_use]
pub fn star_pieces(text: &str) -> Vec<Span> {
    let space = |c: Option<char>| c.filter(|c| c.is_whitespace()).map_or(0, char::len_utf8);
    let mut start = 0;
    let mut out = Vec::new();
    for (at, found) in text.match_indices("***") {
        let before = space(super::cut(text, start..at).chars().next_back());
        let after = space(super::from(text, at + found.len()).chars().next());
        out.push(start..at - before);
        start = at + found.len() + after;
    }
    out.push(start..text.len());
    out
}

/// Whether a piece has nothing but white space.
#[must_use]
pub fn is_blank(text: &str, span: &Span) -> bool {
    super::cut(text, span.clone()).trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_empty_ones() {
        assert_eq!(pieces("a\n\n\n\nb", "\n\n"), [0..1, 3..3, 5..6]);
        assert_eq!(pieces("a\n\n\nb", "\n\n"), [0..1, 3..5]);
        assert_eq!(star_pieces("a\n***\nb***c"), [0..1, 6..7, 10..11]);
        assert_eq!(star_pieces("******"), [0..0, 3..3, 6..6]);
    }
}
