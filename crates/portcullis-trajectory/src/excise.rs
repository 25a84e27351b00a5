//! Planted orders: the stretches of a result that tell the agent to do what one of its tools does and the user did not
//! ask for.
//!
//! An order is looked at before anybody obeys it, so there is no call to hold it against. Instead it is held against
//! every tool that the agent has: one that it names, or whose verb and thing it speaks of, and that the request has no
//! use for. What the user pointed at and may mean, what the user said to follow, and what an action answers in its own
//! words stays. A stretch that is found grows, within its value, over the neighbours that go with it: further orders
//! that nobody asked for, what stands between two of them, and a tag around all of it.

use std::ops::Range;

use portcullis_detect::{Leaf, leaves, sentences};

use crate::book::Entry;
use crate::fit::Fit;
use crate::kind::CallKind;
use crate::seen::Seen;
use crate::trajectory::{Call, Source, Trajectory};

/// Most tools that an order is held against; of a larger registry the first.
pub const TOOLS_MAX: usize = 1_024;
/// Most stretches that are cut out of one result.
pub const STRETCHES_MAX: usize = 64;
/// How far a tag may stand from what it holds, in bytes.
const TAG_REACH: usize = 1_024;
/// Sentences between two planted orders that go with them.
const GAP: usize = 3;

/// The stretches of a result that were planted in it, in bytes of the raw text: ascending, without overlap.
pub fn planted(run: &Trajectory, tools: &[CallKind], call: &Call, text: &str, seen: &Seen) -> Vec<Range<usize>> {
    if seen.orders.is_empty() || tools.is_empty() || run.request().is_empty() {
        return Vec::new();
    }
    let source = run.source(call, seen);
    let orders: Vec<(&Range<usize>, bool)> = seen
        .orders
        .iter()
        .map(|order| {
            let Source { status, pointed, delegated } = source;
            let entry = Entry { order: order.clone(), seq: 0, tool: call.kind.name, status, pointed, delegated };
            (&order.range, is_foreign(run, tools, &entry))
        })
        .collect();
    if !orders.iter().any(|(_, foreign)| *foreign) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for leaf in &leaves(text) {
        grow(leaf, text, &orders, &mut found);
    }
    found.truncate(STRETCHES_MAX);
    found
}

/// Whether an order asks for what a tool does and the user does not.
fn is_foreign(run: &Trajectory, tools: &[CallKind], entry: &Entry) -> bool {
    if entry.status || entry.delegated {
        return false;
    }
    let wanted = |kind: &CallKind| run.request().support(kind, &[], |_| false).kind();
    let asks = |kind: &&CallKind| {
        let fit = Fit::of(run, entry, kind, &[]);
        !kind.harmless && (fit.named || fit.verb && fit.object + fit.described > 0 || fit.foreign > 1)
    };
    let mut asked = tools.iter().take(TOOLS_MAX).filter(asks).peekable();
    asked.peek().is_some() && !asked.any(wanted)
}

/// Joins the planted orders of a leaf and what goes with them.
fn grow(leaf: &Leaf<'_>, text: &str, orders: &[(&Range<usize>, bool)], found: &mut Vec<Range<usize>>) {
    let whole = leaf.places.all();
    let inside = |range: &Range<usize>| whole.start <= range.start && range.end <= whole.end;
    if !orders.iter().any(|(range, foreign)| *foreign && inside(range)) {
        return;
    }
    let mut run: Option<(Range<usize>, usize)> = None;
    for sentence in sentences(&leaf.text) {
        let raw = leaf.places.raw(sentence);
        let foreign = orders.iter().any(|(range, foreign)| *foreign && **range == raw);
        run = match (run.take(), foreign) {
            (Some((stretch, _)), true) => Some((stretch.start..raw.end, 0)),
            (Some((stretch, gap)), false) if gap < GAP => Some((stretch, gap + 1)),
            (Some((stretch, _)), false) => {
                found.push(tagged(text, &whole, stretch));
                None
            }
            (None, true) => Some((raw, 0)),
            (None, false) => None,
        };
    }
    found.extend(run.map(|(stretch, _)| tagged(text, &whole, stretch)));
}

/// The stretch with the tag around it, if one opens shortly before it and closes shortly behind.
fn tagged(text: &str, leaf: &Range<usize>, stretch: Range<usize>) -> Range<usize> {
    let from = text.ceil_char_boundary(leaf.start.max(stretch.start.saturating_sub(TAG_REACH)));
    let to = text.floor_char_boundary(leaf.end.min(stretch.end + TAG_REACH));
    let before = text.get(from..stretch.start).unwrap_or_default();
    let behind = text.get(stretch.end..to).unwrap_or_default();
    for (at, _) in before.rmatch_indices('<') {
        let name = before.get(at + 1..).and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
        let Some(name) = name.filter(|name| is_tag(name)) else { continue };
        let closing = format!("</{name}>");
        if let Some(end) = behind.find(&closing) {
            return from + at..stretch.end + end + closing.len();
        }
    }
    stretch
}

fn is_tag(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}
