//! Escapes of JSON and Python strings, and the `\n` that somebody escaped once too often.

use std::ops::Range;

use crate::places::Draft;

/// Reads the escape whose backslash stands at `at` and puts what it means into `draft`. Returns where it ends. An
/// escape that no notation knows stays as it is, with its backslash.
pub(super) fn string_escape(text: &str, at: usize, draft: &mut Draft<'_>) -> usize {
    let bytes = text.as_bytes();
    let Some(kind) = bytes.get(at.saturating_add(1)) else {
        draft.literal(at..text.len());
        return text.len();
    };
    let short = match kind {
        b'n' => Some("\n"),
        b't' => Some("\t"),
        b'r' => Some("\r"),
        b'b' => Some("\u{8}"),
        b'f' => Some("\u{c}"),
        b'0' => Some("\0"),
        b'"' => Some("\""),
        b'\'' => Some("'"),
        b'/' => Some("/"),
        _ => None,
    };
    let end = at.saturating_add(2);
    if let Some(short) = short {
        draft.atom(at..end, short);
        return end;
    }
    match kind {
        b'\\' => twice(text, at, draft),
        b'x' => coded(text, at, 2, draft),
        b'u' => utf16(text, at, draft),
        b'U' => coded(text, at, 8, draft),
        _ => {
            draft.literal(at..at.saturating_add(1));
            at.saturating_add(1)
        }
    }
}

/// `\\`: a backslash; or, before an `n`, `r`, `t` or `"`, one half of an escape that was itself escaped.
fn twice(text: &str, at: usize, draft: &mut Draft<'_>) -> usize {
    let end = at.saturating_add(3);
    let meant = match text.as_bytes().get(at.saturating_add(2)) {
        Some(b'n') if !in_windows_path(text, at) => "\n",
        Some(b'r') if !in_windows_path(text, at) => "\r",
        Some(b't') if !in_windows_path(text, at) => "\t",
        _ => {
            draft.atom(at..at.saturating_add(2), "\\");
            return at.saturating_add(2);
        }
    };
    draft.atom(at..end, meant);
    end
}

fn hex(text: &str, digits: Range<usize>) -> Option<u32> {
    let digits = text.get(digits)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn coded(text: &str, at: usize, digits: usize, draft: &mut Draft<'_>) -> usize {
    let start = at.saturating_add(2);
    let end = start.saturating_add(digits);
    match hex(text, start..end).and_then(char::from_u32) {
        Some(character) => {
            draft.atom(at..end, character.encode_utf8(&mut [0; 4]));
            end
        }
        None => {
            draft.literal(at..start);
            start
        }
    }
}

fn utf16(text: &str, at: usize, draft: &mut Draft<'_>) -> usize {
    let end = at.saturating_add(6);
    let Some(high) = hex(text, at.saturating_add(2)..end) else {
        draft.literal(at..at.saturating_add(2));
        return at.saturating_add(2);
    };
    if let Some(character) = char::from_u32(high) {
        draft.atom(at..end, character.encode_utf8(&mut [0; 4]));
        return end;
    }
    let second = end.saturating_add(6);
    let low = match text.get(end..end.saturating_add(2)) {
        Some("\\u") => hex(text, end.saturating_add(2)..second),
        _ => None,
    };
    let pair = low.filter(|low| (0xdc00..0xe000).contains(low)).and_then(|low| {
        let high = high.checked_sub(0xd800)?.checked_mul(0x400)?;
        char::from_u32(high.checked_add(low.checked_sub(0xdc00)?)?.checked_add(0x1_0000)?)
    });
    if let Some(character) = pair {
        draft.atom(at..second, character.encode_utf8(&mut [0; 4]));
        return second;
    }
    draft.atom(at..end, "\u{fffd}");
    end
}

/// Puts a stretch of text without a notation of its own into `draft`; a literal backslash-n in it is a line break.
pub(super) fn plain(text: &str, range: Range<usize>, draft: &mut Draft<'_>) {
    let mut from = range.start;
    let mut at = range.start;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at).filter(|_| at < range.end) {
        if *byte == b'\\' && at.saturating_add(1) < range.end {
            let meant = match bytes.get(at.saturating_add(1)) {
                Some(b'n') => Some("\n"),
                Some(b't') => Some("\t"),
                Some(b'r') => Some("\r"),
                _ => None,
            };
            if let Some(meant) = meant.filter(|_| !in_windows_path(text, at)) {
                draft.literal(from..at);
                draft.atom(at..at.saturating_add(2), meant);
                from = at.saturating_add(2);
                at = from;
                continue;
            }
        }
        at = at.saturating_add(1);
    }
    draft.literal(from..range.end);
}

/// Whether the word that the backslash at `at` belongs to begins with a drive letter: `C:\new` holds no line break.
/// Looks back a bounded way.
fn in_windows_path(text: &str, at: usize) -> bool {
    const LOOK_BACK: usize = 64;
    let bytes = text.as_bytes();
    let from = at.saturating_sub(LOOK_BACK);
    let word = bytes.get(from..at).unwrap_or_default();
    let start = word
        .iter()
        .rposition(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'(' | b'`'))
        .map_or(0, |gap| gap.saturating_add(1));
    let word = word.get(start..).unwrap_or_default();
    match word {
        [drive, b':'] => drive.is_ascii_alphabetic(),
        [drive, b':', b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}
