//! How the reply is laid out: paragraphs, bullets, highlights, title, postscript, sections, several replies in one.

use crate::bound::Bound;
use crate::contract::Check;
use crate::family::{Divider, shown};
use crate::text::paragraphs::{exact_pieces, is_blank, pieces, star_pieces};
use crate::text::{Span, cut, marks, trimmed};
use crate::wording::{self, BULLETS, HIGHLIGHTS, PARAGRAPHS, PLACEHOLDERS, RESPONSES, SECTION_MARKERS};

pub(super) fn bullets(reply: &str, count: &Bound) -> Check {
    let spans = marks::bullets(reply);
    Check::counted(spans.len(), count, BULLETS, spans)
}

pub(super) fn highlights(reply: &str, count: &Bound) -> Check {
    let mut spans = marks::highlights(reply);
    let found = spans.len();
    spans.sort_by_key(|span| (span.start, span.end));
    Check::counted(found, count, HIGHLIGHTS, spans)
}

pub(super) fn placeholders(reply: &str, count: &Bound) -> Check {
    let spans = marks::placeholders(reply);
    Check::counted(spans.len(), count, PLACEHOLDERS, spans)
}

pub(super) fn sections(reply: &str, marker: &str, count: &Bound) -> Check {
    let spans = marks::sections(reply, marker);
    Check::counted(spans.len(), count, SECTION_MARKERS, spans)
}

pub(super) fn title(reply: &str) -> Check {
    match marks::title(reply) {
        Some(span) => {
            Check::new(true, format!("the title is `{}`", shown(cut(reply, span.clone()))), vec![span])
        }
        None => Check::new(false, "no title in `<<` and `>>`".to_owned(), Vec::new()),
    }
}

pub(super) fn postscript(reply: &str, marker: &str) -> Check {
    match marks::postscript(reply, marker) {
        Some(span) => Check::new(true, "has a postscript".to_owned(), vec![span]),
        None => Check::new(false, format!("no postscript starting with `{}`", shown(marker)), Vec::new()),
    }
}

/// Paragraphs between dividers. Between `***`, an empty one in the middle fails, and one at an end does not count;
/// between empty lines, empty ones never count.
pub(super) fn paragraphs(reply: &str, count: &Bound, divider: Divider) -> Check {
    let all = match divider {
        Divider::Stars => star_pieces(reply),
        Divider::BlankLine => pieces(reply, "\n\n"),
    };
    let last = all.len().saturating_sub(1);
    let empty_inside =
        all.iter().enumerate().any(|(at, span)| at != 0 && at != last && is_blank(reply, span));
    let spans: Vec<Span> = all.into_iter().filter(|span| !is_blank(reply, span)).collect();
    if divider == Divider::Stars && empty_inside {
        return Check::new(false, "a paragraph between two dividers is empty".to_owned(), spans);
    }
    Check::counted(spans.len(), count, PARAGRAPHS, spans)
}

/// Empty paragraphs count for the place of the one that is meant, and not for their number.
pub(super) fn paragraph_word(reply: &str, nth: u32, word: &str, within: u32, total: Option<u32>) -> Check {
    let all = pieces(reply, "\n\n");
    let filled = all.iter().filter(|span| !is_blank(reply, span)).count();
    let meant = (nth as usize).checked_sub(1).and_then(|at| all.get(at)).filter(|_| nth as usize <= filled);
    let Some(paragraph) = meant.cloned() else {
        return Check::new(
            false,
            format!("{}; paragraph {nth} is demanded", wording::count(filled, PARAGRAPHS)),
            Vec::new(),
        );
    };
    let body = trimmed(cut(reply, paragraph.clone()), paragraph.start);
    let first: Vec<&str> = cut(reply, body.clone()).split_whitespace().take(within as usize).collect();
    let found = first.iter().any(|token| alike(bare(token), word));
    let right_total = total.is_none_or(|total| total as usize == filled);
    let explanation = if !right_total {
        format!("{}; demanded: {}", wording::count(filled, PARAGRAPHS), total.unwrap_or_default())
    } else if found {
        match within {
            1 => format!("paragraph {nth} begins with `{}`", shown(word)),
            _ => format!("paragraph {nth} has `{}` among its first {within} words", shown(word)),
        }
    } else {
        format!("paragraph {nth} begins with `{}`, without `{}`", shown(&first.join(" ")), shown(word))
    };
    Check::new(found && right_total, explanation, vec![body])
}

/// A token without quotation marks before it, up to the first mark in it.
pub(crate) fn bare(token: &str) -> &str {
    let token = token.trim_start_matches('\'').trim_start_matches('"');
    let end = token.find(['.', ',', '?', '!', '\'', '"']).unwrap_or(token.len());
    crate::text::to(token, end)
}

fn alike(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// The separator of the published grader, which takes it wherever it stands, within a longer run too. Any other has to
/// be a run of just its length.
const ANYWHERE: &str = "******";

pub(super) fn responses(reply: &str, count: u32, separator: &str) -> Check {
    let all = if separator == ANYWHERE { pieces(reply, separator) } else { exact_pieces(reply, separator) };
    let last = all.len().saturating_sub(1);
    if all.iter().enumerate().any(|(at, span)| at != 0 && at != last && is_blank(reply, span)) {
        return Check::new(false, "a response between two separators is empty".to_owned(), Vec::new());
    }
    let spans: Vec<Span> = all
        .into_iter()
        .filter(|span| !is_blank(reply, span))
        .map(|span| trimmed(cut(reply, span.clone()), span.start))
        .collect();
    let mut texts: Vec<&str> = spans.iter().map(|span| cut(reply, span.clone())).collect();
    texts.sort_unstable();
    if texts.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        return Check::new(false, "two of the responses are the same".to_owned(), spans);
    }
    Check::counted(spans.len(), &Bound::exactly(count), RESPONSES, spans)
}
