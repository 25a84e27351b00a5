//! Marks that must not occur.

use crate::contract::Check;
use crate::text::Span;
use crate::wording::often;

pub(super) fn without(reply: &str, mark: char) -> Check {
    let spans: Vec<Span> = reply.match_indices(mark).map(|(at, found)| at..at + found.len()).collect();
    let explanation = match spans.len() {
        0 => format!("no `{mark}`"),
        n => format!("`{mark}` occurs {}", often(n)),
    };
    Check::new(spans.is_empty(), explanation, spans)
}
