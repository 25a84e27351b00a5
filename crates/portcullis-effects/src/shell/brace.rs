//! Brace expansion: `a{b,c}` is `ab ac`, `{1..3}` is `1 2 3`.

use super::fields::FIELDS_MAX;
use super::scan::{self, byte};
use super::state::VALUE_BYTES_MAX;

/// Most braces in one word: looking for the pair of each reads the rest of the word.
const BRACES_MAX: usize = 32;

/// The words that braces make of one, or `None` if there are too many.
pub(super) fn expand(raw: &str) -> Option<Vec<String>> {
    if raw.len() > VALUE_BYTES_MAX || raw.bytes().filter(|byte| *byte == b'{').count() > BRACES_MAX {
        return None;
    }
    let mut words = Vec::new();
    let mut todo = vec![(String::new(), raw.to_owned())];
    // Bounded: each round takes one pair of braces away or finishes a word.
    let mut rounds = 0usize;
    while let Some((done, rest)) = todo.pop() {
        rounds += 1;
        if words.len() + todo.len() > FIELDS_MAX || rounds > 4 * FIELDS_MAX {
            return None;
        }
        match first_braces(&rest) {
            None => words.push(done + &rest),
            Some((open, close, members)) => {
                let (before, after) = (rest.get(..open)?, rest.get(close + 1..)?);
                if members.len() > FIELDS_MAX {
                    return None;
                }
                for member in members.iter().rev() {
                    todo.push((format!("{done}{before}"), format!("{member}{after}")));
                }
            }
        }
    }
    Some(words)
}

/// The first pair of braces that expands: where it opens, where it closes, what stands between.
fn first_braces(text: &str) -> Option<(usize, usize, Vec<String>)> {
    let mut at = 0;
    while let Some(here) = byte(text, at) {
        if here == b'{' {
            if let Some((close, members)) = members(text, at + 1) {
                return Some((at, close, members));
            }
            at += 1;
        } else {
            at = scan::piece(text, at, 0).unwrap_or(text.len());
        }
    }
    None
}

fn members(text: &str, start: usize) -> Option<(usize, Vec<String>)> {
    let (mut at, mut level, mut from) = (start, 0usize, start);
    let mut members = Vec::new();
    loop {
        match byte(text, at)? {
            b'{' => level += 1,
            b'}' if level == 0 => break,
            b'}' => level -= 1,
            b',' if level == 0 => {
                members.push(text.get(from..at)?.to_owned());
                from = at + 1;
            }
            _ => {
                at = scan::piece(text, at, 0).ok()?;
                continue;
            }
        }
        at += 1;
    }
    let last = text.get(from..at)?;
    if members.is_empty() {
        return sequence(last).map(|members| (at, members));
    }
    members.push(last.to_owned());
    Some((at, members))
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence(text: &str) -> Option<Vec<String>> {
    let mut parts = text.split("..");
    let (first, last, step) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    let (from, to, letters) = match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(from), Ok(to)) => (from, to, false),
        _ => (letter(first)?, letter(last)?, true),
    };
    let width = if first.starts_with('0') || last.starts_with('0') { first.len().max(last.len()) } else { 0 };
    let count = usize::try_from(from.abs_diff(to) / step).ok()?.saturating_add(1).min(FIELDS_MAX + 1);
    let mut members = Vec::with_capacity(count);
    for index in 0..count {
        let offset = i64::try_from(u64::try_from(index).ok()?.checked_mul(step)?).ok()?;
        let value = if from <= to { from.checked_add(offset)? } else { from.checked_sub(offset)? };
        members.push(match u32::try_from(value).ok().and_then(char::from_u32) {
            Some(char) if letters => char.to_string(),
            _ => format!("{value:0width$}"),
        });
    }
    Some(members)
}

fn letter(text: &str) -> Option<i64> {
    let mut chars = text.chars();
    let char = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().is_none().then(|| i64::from(u32::from(char)))
}
