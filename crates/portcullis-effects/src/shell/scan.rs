//! Where quoted and substituted stretches of shell text end.
//!
//! Finding the end of `"…"`, `$(…)` or `${…}` is what decides whether something is a command or an argument, so the
//! rules are bash's own and whatever bash versions read differently is refused ([`Refusal`]) instead of guessed.
//! Each byte is looked at once a level of nesting, and levels are bounded.

use super::lexer::Lexer;
use crate::limits::NESTING_MAX;

/// Why a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) &'static str);

type End = Result<usize, Refusal>;

/// The depth one further in, if there is one.
pub(super) fn deeper(depth: usize) -> Result<usize, Refusal> {
    if depth < NESTING_MAX { Ok(depth + 1) } else { Err(Refusal("it is nested too deeply")) }
}

pub(super) fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// Whether a byte ends a word when it is not quoted.
pub(super) const fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// The end of the word that starts at `at`.
pub(super) fn word(text: &str, start: usize, depth: usize) -> End {
    let mut at = start;
    while let Some(here) = byte(text, at) {
        at = match here {
            b'<' | b'>' if byte(text, at + 1) == Some(b'(') => command(text, at + 2, depth)?,
            b'(' if at > start && starts_extended_glob(text, at) => group(text, at + 1, depth)?,
            here if is_meta(here) => break,
            _ => piece(text, at, depth)?,
        };
    }
    Ok(at)
}

fn starts_extended_glob(text: &str, paren: usize) -> bool {
    matches!(byte(text, paren.wrapping_sub(1)), Some(b'@' | b'!' | b'?' | b'+' | b'*'))
}

/// The end of the piece of unquoted text that starts at `at`: one byte, or a quoted or substituted stretch.
pub(super) fn piece(text: &str, at: usize, depth: usize) -> End {
    match byte(text, at) {
        Some(b'\\') => Ok(escape(text, at)),
        Some(b'\'') => single(text, at + 1),
        Some(b'"') => double(text, at + 1, deeper(depth)?),
        Some(b'`') => backquote(text, at + 1),
        Some(b'$') => dollar(text, at, false, depth),
        _ => Ok(at + 1),
    }
}

/// The end of a backslash and what it quotes, a whole character.
pub(super) fn escape(text: &str, at: usize) -> usize {
    let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
    at + 1 + next.map_or(0, char::len_utf8)
}

/// The end of single-quoted text whose content starts at `at`.
fn single(text: &str, at: usize) -> End {
    let rest = text.get(at..).unwrap_or_default();
    rest.find('\'').map(|length| at + length + 1).ok_or(Refusal("a single quote is not closed"))
}

/// The end of `$'…'` whose content starts at `at`.
fn ansi(text: &str, mut at: usize) -> End {
    loop {
        match byte(text, at) {
            Some(b'\\') => at = escape(text, at),
            Some(b'\'') => return Ok(at + 1),
            Some(_) => at += 1,
            None => return Err(Refusal("a `$'` is not closed")),
        }
    }
}

/// The end of double-quoted text whose content starts at `at`.
fn double(text: &str, mut at: usize, depth: usize) -> End {
    loop {
        at = match byte(text, at) {
            Some(b'"') => return Ok(at + 1),
            Some(_) => double_piece(text, at, depth)?,
            None => return Err(Refusal("a double quote is not closed")),
        };
    }
}

/// The end of the piece of double-quoted text that starts at `at`.
pub(super) fn double_piece(text: &str, at: usize, depth: usize) -> End {
    match byte(text, at) {
        Some(b'\\') => Ok(escape(text, at)),
        Some(b'`') => backquote(text, at + 1),
        Some(b'$') => dollar(text, at, true, depth),
        _ => Ok(at + 1),
    }
}

/// The end of a command substitution in backquotes whose content starts at `at`.
fn backquote(text: &str, mut at: usize) -> End {
    loop {
        match byte(text, at) {
            Some(b'\\') => at = escape(text, at),
            Some(b'`') => return Ok(at + 1),
            Some(_) => at += 1,
            None => return Err(Refusal("a backquote is not closed")),
        }
    }
}

/// The end of what the dollar sign at `at` starts.
pub(super) fn dollar(text: &str, at: usize, quoted: bool, depth: usize) -> End {
    match byte(text, at + 1) {
        Some(b'(') if byte(text, at + 2) == Some(b'(') => arithmetic(text, at + 3, depth),
        Some(b'(') => command(text, at + 2, depth),
        Some(b'{') => braces(text, at + 2, quoted, deeper(depth)?),
        Some(b'[') => brackets(text, at + 2, deeper(depth)?),
        Some(b'\'') if !quoted => ansi(text, at + 2),
        Some(b'"') if !quoted => double(text, at + 2, deeper(depth)?),
        _ => Ok(at + 1),
    }
}

/// The end of a command substitution whose content starts at `at`: after its closing parenthesis.
pub(super) fn command(text: &str, at: usize, depth: usize) -> End {
    Lexer::skip(text, at, deeper(depth)?)
}

/// The end of arithmetic whose content starts at `at`, after both closing parentheses.
///
/// `((` may also start two subshells; that is decided by how it ends. Shells disagree about it, and it can always
/// be written `( (`, so it is refused.
pub(super) fn arithmetic(text: &str, at: usize, depth: usize) -> End {
    let close = balanced(text, at, b'(', b')', deeper(depth)?)?;
    if byte(text, close) == Some(b')') {
        return Ok(close + 1);
    }
    Err(Refusal("`((` starts something other than arithmetic"))
}

fn brackets(text: &str, at: usize, depth: usize) -> End {
    balanced(text, at, b'[', b']', depth)
}

/// The end of `@(…)` whose content starts at `at`.
pub(super) fn group(text: &str, at: usize, depth: usize) -> End {
    let end = balanced(text, at, b'(', b')', deeper(depth)?)?;
    Ok(end)
}

/// After the bracket that closes the one before `at`.
fn balanced(text: &str, mut at: usize, open: u8, close: u8, depth: usize) -> End {
    let mut level = 1usize;
    loop {
        let Some(here) = byte(text, at) else { return Err(Refusal("a bracket is not closed")) };
        if here == b'\'' {
            // A quote in arithmetic means something else in each version of bash; in a glob it is unusual.
            return Err(Refusal("an apostrophe stands inside of brackets"));
        }
        if here == open {
            level += 1;
            if level > NESTING_MAX {
                return Err(Refusal("it is nested too deeply"));
            }
        } else if here == close {
            level -= 1;
            if level == 0 {
                return Ok(at + 1);
            }
        }
        at = piece(text, at, depth)?;
    }
}

/// The end of `${…}` whose content starts at `at`.
fn braces(text: &str, mut at: usize, quoted: bool, depth: usize) -> End {
    let length = matches!(byte(text, at), Some(b'#')) && byte(text, at + 1) != Some(b'}');
    at += usize::from(length);
    loop {
        at = match byte(text, at) {
            None => return Err(Refusal("a `${` is not closed")),
            Some(b'}') => return Ok(at + 1),
            Some(b'\'') if quoted => return Err(Refusal("an apostrophe stands inside of `\"${…}\"`")),
            Some(b'<' | b'>') if byte(text, at + 1) == Some(b'(') => command(text, at + 2, depth)?,
            Some(_) => piece(text, at, depth)?,
        };
    }
}
