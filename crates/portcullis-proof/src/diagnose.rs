//! What was done to an event that does not follow from the one before it.
//!
//! That the chain is broken is proven by then. Which of the many ways to break it was used is an inference from
//! the lines that follow, made so that a person knows where to look; nothing depends on it.

use std::io::BufRead;

use crate::chain::{Digest, Id, event_hash, event_link};
use crate::event::Event;
use crate::export::{HeadRecord, LINE_BYTES_MAX, Lines, event_parts, read_record};
use crate::report::{Attack, Failure};

/// A line of the file.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) byte: u64,
}

impl Place {
    pub(crate) fn failure(self, attack: Attack, seq: Option<u64>, message: impl Into<String>) -> Failure {
        Failure { attack, line: self.line, byte: self.byte, seq, message: message.into() }
    }
}

/// How far the chain holds: up to event `seq`.
pub(crate) struct Chain {
    pub(crate) run: Id,
    pub(crate) segment: Id,
    pub(crate) seq: u64,
}

/// The event line at which it breaks.
pub(crate) struct Broken {
    pub(crate) place: Place,
    /// The seq that the line states, where it could be read.
    pub(crate) seq: Option<u64>,
    /// The link that it carries.
    pub(crate) link: Digest,
}

/// Names the attack, reading further `lines` if necessary.
pub(crate) fn diagnose<R: BufRead>(lines: &mut Lines<R>, chain: &Chain, broken: Broken) -> Failure {
    let Broken { place, seq, link } = broken;
    let expected = chain.seq.saturating_add(1);
    let altered = place.failure(
        Attack::EventAltered,
        Some(expected),
        format!(
            "event {expected} does not hash to its link: it or its link was altered, or belongs to another run"
        ),
    );
    let Some(found) = seq.filter(|found| *found != expected) else { return altered };
    let mut next = true;
    let mut later = false;
    while !later && matches!(lines.advance(LINE_BYTES_MAX), Ok(true)) {
        let line = lines.line();
        let Some((next_link, bytes)) = event_parts(line) else {
            // A head that agrees with the link shows that only the text of the event was touched.
            let head = read_record::<HeadRecord>(line).ok();
            if next && head.is_some_and(|head| head.count == expected && head.link == link) {
                return altered;
            }
            next = false;
            continue;
        };
        let Ok(event) = Event::from_line(bytes) else { continue };
        let follows = event_link(chain.run, chain.segment, event.seq, link, event_hash(bytes)) == next_link;
        if next && event.seq == expected.saturating_add(1) && follows {
            return altered;
        }
        next = false;
        later = event.seq == expected;
    }
    let (attack, what) = if found < expected {
        (Attack::EventDuplicated, "it appears here a second time")
    } else if later {
        (Attack::EventReordered, "the expected one appears later")
    } else {
        (Attack::EventMissing, "the expected one is missing")
    };
    place.failure(attack, Some(expected), format!("expected event {expected}, found event {found}: {what}"))
}
