//! What may happen to a work item, in which order, and by whom: the law "only evidence or a person makes it verified"
//! checked over the record.
//!
//! ```text
//! create -> pending -> start -> in_progress -> claim -> claimed -> check, attest -> verified
//!                                   ^                      |
//!                                   +-- check, ask_changes +
//! ```

use std::collections::HashMap;

use crate::event::Event;
use crate::state::StateError;

/// The most items of one run that are followed.
pub(crate) const ITEMS_MAX: usize = 1 << 20;

/// What may be done.
struct Move {
    op: &'static str,
    /// Who may; one that ends with a colon stands for all that begin so.
    actors: &'static [&'static str],
    /// The states that it may follow; none where it makes an item.
    before: &'static [&'static str],
    /// The states that it leads to; none where it changes none.
    after: &'static [&'static str],
}

const fn by_agent(op: &'static str, before: &'static [&'static str], after: &'static [&'static str]) -> Move {
    Move { op, actors: &["agent:"], before, after }
}

const fn by_person(
    op: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
) -> Move {
    Move { op, actors: &["approver:"], before, after }
}

const MOVES: [Move; 11] = [
    Move { op: "create", actors: &["agent:", "approver:"], before: &[], after: &["pending"] },
    by_agent("propose", &["pending"], &[]),
    by_person("accept", &["pending"], &[]),
    by_person("decline", &["pending"], &[]),
    by_person("require", &["pending"], &[]),
    by_agent("start", &["pending"], &["in_progress"]),
    by_agent("claim", &["in_progress"], &["claimed"]),
    Move {
        op: "check",
        actors: &["gate"],
        before: &["claimed"],
        after: &["claimed", "in_progress", "verified"],
    },
    by_person("attest", &["claimed"], &["verified"]),
    by_person("ask_changes", &["claimed"], &["in_progress"]),
    by_person("bury", &["pending", "in_progress", "claimed", "verified"], &[]),
];

/// What is done to no item as a whole.
const STALE: &str = "stale";

/// The items of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// The state of each, none of one that was buried.
    states: HashMap<u64, Option<&'static str>>,
}

impl Items {
    /// Takes the next event about items.
    pub(crate) fn apply(&mut self, event: &Event<'_>) -> Result<(), StateError> {
        let (body, actor) = (&event.body, event.actor.as_ref());
        let op = body.text("op")?;
        if op == STALE {
            return by(op, actor, &["gate"]);
        }
        let Some(Move { op, actors, before, after }) = MOVES.iter().find(|known| known.op == op) else {
            return Err(StateError::Violation(format!("`body.op` is `{op}`, which is no operation")));
        };
        if body.has("refused") {
            return Ok(());
        }
        by(op, actor, actors)?;
        let (item, state) = (body.number("item")?, body.text("state")?);
        let violation = |message: String| Err(StateError::Violation(message));
        let now = match self.states.get(&item) {
            Some(Some(_)) if before.is_empty() => {
                return violation(format!("item {item} is made a second time"));
            }
            Some(Some(now)) if before.contains(now) => Some(*now),
            Some(Some(now)) => {
                return violation(format!("item {item} is {now}, which `{op}` does not follow"));
            }
            Some(None) => return violation(format!("item {item} was buried, and then came `{op}`")),
            None if before.is_empty() => None,
            None => return violation(format!("item {item} was never made")),
        };
        let next = self.states.len() as u64 + 1;
        if now.is_none() && item != next {
            return violation(format!("item {item} is made, but the next number is {next}"));
        }
        if now.is_none() && self.states.len() == ITEMS_MAX {
            return Err(StateError::TooMany("items", ITEMS_MAX));
        }
        let stays = now.filter(|now| after.is_empty() && *now == state);
        let Some(state) = stays.or_else(|| after.iter().find(|after| **after == state).copied()) else {
            return violation(format!("item {item} is `{state}` after `{op}`"));
        };
        self.states.insert(item, (*op != "bury").then_some(state));
        Ok(())
    }
}

/// Who did it is one that may.
pub(crate) fn by(op: &str, actor: &str, actors: &[&str]) -> Result<(), StateError> {
    let may = |known: &&str| if known.ends_with(':') { actor.starts_with(*known) } else { actor == *known };
    if actors.iter().any(may) {
        return Ok(());
    }
    Err(StateError::Violation(format!("`{op}` is done by `{actor}`, which may not")))
}
