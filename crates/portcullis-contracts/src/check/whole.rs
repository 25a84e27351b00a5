//! How the reply starts and ends, and what it is wrapped in.

use crate::contract::Check;
use crate::family::shown;
use crate::text::search::prefix_length;
use crate::text::{Span, cut, one, trimmed};

pub(super) fn repeats(reply: &str, request: Option<&str>) -> Check {
    let Some(request) = request.map(str::trim).filter(|request| !request.is_empty()) else {
        return Check::not_applicable("there is no request for the reply to repeat");
    };
    let body = trimmed(reply, 0);
    match prefix_length(cut(reply, body.clone()), request) {
        Some(length) => {
            Check::new(true, "the request comes first".to_owned(), one(body.start..body.start + length))
        }
        None => {
            Check::new(false, "the request does not come first, word for word".to_owned(), first_line(reply))
        }
    }
}

pub(super) fn begins(reply: &str, phrase: &str) -> Check {
    let body = reply.trim_start().trim_start_matches('"');
    let start = reply.len() - body.len();
    let phrase = phrase.trim();
    let wanted = phrase.trim_start_matches('"');
    match body.starts_with(wanted).then_some(wanted.len()) {
        Some(length) => Check::new(true, "the phrase comes first".to_owned(), one(start..start + length)),
        None => Check::new(false, format!("does not begin with `{}`", shown(phrase)), first_line(reply)),
    }
}

pub(super) fn ends(reply: &str, phrase: &str) -> Check {
    let body = reply.trim().trim_matches('"');
    let phrase = phrase.trim().trim_end_matches('"');
    let end = reply.trim_end().trim_end_matches('"').len();
    if let Some(length) = suffix_length(body, phrase).filter(|&length| length <= end) {
        return Check::new(true, "the phrase comes last".to_owned(), one(end - length..end));
    }
    let last = reply.trim_end().rfind('\n').map_or(0, |newline| newline + 1);
    let spans = one(last..reply.trim_end().len().max(last));
    Check::new(false, format!("does not end with `{}`", shown(phrase)), spans)
}

/// How many bytes at the end of `text` spell `suffix`, letters of either case alike.
fn suffix_length(text: &str, suffix: &str) -> Option<usize> {
    let mut chars = text.char_indices().rev();
    let mut start = text.len();
    for wanted in suffix.chars().rev() {
        let (at, found) = chars.next()?;
        if found != wanted && !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
        start = at;
    }
    Some(text.len() - start)
}

pub(super) fn quoted(reply: &str) -> Check {
    let body = trimmed(reply, 0);
    let text = cut(reply, body.clone());
    let holds = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    let explanation =
        if holds { "within double quotation marks" } else { "not within double quotation marks" };
    let end = body.end - text.chars().next_back().map_or(0, char::len_utf8);
    let first = text.chars().next().map_or(0, char::len_utf8);
    Check::new(holds, explanation.to_owned(), vec![body.start..body.start + first, end..body.end])
}

fn first_line(reply: &str) -> Vec<Span> {
    let body = trimmed(reply, 0);
    let line = cut(reply, body.clone()).find('\n').unwrap_or(body.end - body.start);
    one(body.start..body.start + line)
}
