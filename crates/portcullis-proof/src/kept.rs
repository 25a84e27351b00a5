//! What may happen to the session state and to facts: the law "of two writers of one version, one is refused" checked
//! over the record, and that what a run forgets of its own was there.

use std::collections::{HashMap, HashSet};

use crate::chain::Id;
use crate::event::Event;
use crate::state::StateError;
use crate::work::by;

/// The most cells of one run that are followed.
pub(crate) const CELLS_MAX: usize = 1 << 20;
/// The most facts of one run that are followed.
pub(crate) const FACTS_MAX: usize = 1 << 20;

const AGENT: &[&str] = &["agent:"];
const ANYBODY: &[&str] = &["agent:", "approver:"];

fn violation<T>(message: String) -> Result<T, StateError> {
    Err(StateError::Violation(message))
}

/// The keys of the session state so far.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// The event that put the value of each, by the number of the cell.
    versions: HashMap<u64, u64>,
}

impl Cells {
    /// Takes the next event about the state.
    pub(crate) fn apply(&mut self, event: &Event<'_>) -> Result<(), StateError> {
        let body = &event.body;
        let op = body.text("op")?;
        if op != "put" {
            return violation(format!("`body.op` is `{op}`, which is no operation"));
        }
        if body.has("refused") {
            return Ok(());
        }
        by(op, event.actor.as_ref(), AGENT)?;
        let cell = body.number("cell")?;
        let (now, next) = (self.versions.get(&cell).copied(), self.versions.len() as u64 + 1);
        if body.has("replaces") {
            let replaces = body.number("replaces")?;
            if now != Some(replaces) {
                return violation(format!(
                    "cell {cell} is put in place of event {replaces}, which did not put it"
                ));
            }
        } else if now.is_some() {
            return violation(format!("cell {cell} is put without the version that it replaces"));
        } else if cell != next {
            return violation(format!("cell {cell} is new, but the next number is {next}"));
        } else if self.versions.len() == CELLS_MAX {
            return Err(StateError::TooMany("cells", CELLS_MAX));
        }
        self.versions.insert(cell, event.seq);
        Ok(())
    }
}

/// The facts that a run established so far, and has not forgotten.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    run: Option<Id>,
    held: HashSet<u64>,
    written: usize,
}

impl Facts {
    /// Of this run.
    pub(crate) fn of(run: Id) -> Facts {
        Facts { run: Some(run), ..Facts::default() }
    }

    /// Takes the next event about facts.
    pub(crate) fn apply(&mut self, event: &Event<'_>) -> Result<(), StateError> {
        let (body, actor) = (&event.body, event.actor.as_ref());
        let op = body.text("op")?;
        let who = match op {
            "write" | "read" => AGENT,
            "forget" => ANYBODY,
            _ => return violation(format!("`body.op` is `{op}`, which is no operation")),
        };
        if body.has("refused") {
            return Ok(());
        }
        by(op, actor, who)?;
        match op {
            "write" => {
                if self.written == FACTS_MAX {
                    return Err(StateError::TooMany("facts", FACTS_MAX));
                }
                self.written += 1;
                self.held.insert(event.seq);
            }
            "forget" => {
                let (run, seq) = named(body.text("fact")?)?;
                if self.run == Some(run) && !self.held.remove(&seq) {
                    return violation(format!("fact {seq} of this run is forgotten, and is not there"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The run and the event that a fact is named by.
fn named(text: &str) -> Result<(Id, u64), StateError> {
    let wrong = || StateError::Violation(format!("`body.fact` is `{text}`, which names no fact"));
    let (run, seq) = text.split_once('.').ok_or_else(wrong)?;
    let is_number = seq.bytes().all(|byte| byte.is_ascii_digit()) && !seq.starts_with('0');
    let seq = seq.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    Ok((run.parse().map_err(|_| wrong())?, seq))
}
