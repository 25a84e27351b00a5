//! Assignments: `NAME=value`, `NAME+=value`, `NAME[index]=value`.

use super::scan;

/// The parts of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Assignment<'t> {
    pub(super) name: &'t str,
    pub(super) index: Option<&'t str>,
    pub(super) append: bool,
    pub(super) value: &'t str,
}

/// Whether a text is a name that a variable may have.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|char: char| char.is_ascii_digit())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Takes an assignment apart, or `None` if the word is something else.
pub(super) fn split(raw: &str) -> Option<Assignment<'_>> {
    let length = raw.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count();
    let (name, mut rest) = raw.split_at_checked(length)?;
    if !is_name(name) {
        return None;
    }
    let mut index = None;
    if let Some(after) = rest.strip_prefix('[') {
        let mut at = 0;
        while scan::byte(after, at)? != b']' {
            at = scan::piece(after, at, 0).ok()?;
        }
        let (inside, after) = after.split_at_checked(at)?;
        index = Some(inside);
        rest = after.strip_prefix(']')?;
    }
    let append = rest.starts_with('+');
    let value = rest.strip_prefix('+').unwrap_or(rest).strip_prefix('=')?;
    Some(Assignment { name, index, append, value })
}
