//! The record of an operation: body of the event `work`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ItemId, ItemState, Op, Refusal, WorkItem};

/// Name of the payload with the words of an operation.
pub const WORK: &str = "work";

/// What was done to an item, or refused. In the line stand numbers, states and digests; words are in the payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkRecord {
    /// What.
    pub op: Op,
    /// The item. `None` where none was made, and of what makes evidence stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// Its state now. `None` where the operation was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ItemState>,
    /// The item as it was, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<WorkItem>>,
    /// The item as it is. `None` where the operation was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<WorkItem>>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// The same in words. Not in the line, but in the payload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The items whose evidence is stale now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemId>,
}

/// The words of a record.
#[derive(Serialize, Deserialize)]
struct Words {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<WorkItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Box<WorkItem>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
}

impl WorkRecord {
    /// A record of something that is about no item as a whole.
    pub(super) fn new(op: Op, item: Option<ItemId>) -> Self {
        let (state, before, after, refused) = (None, None, None, None);
        Self { op, item, state, before, after, refused, why: String::new(), items: Vec::new() }
    }

    /// What an operation made of an item.
    pub(super) fn done(op: Op, before: Option<WorkItem>, after: WorkItem) -> Self {
        let (item, state) = (Some(after.id), Some(after.state));
        Self { state, before: before.map(Box::new), after: Some(Box::new(after)), ..Self::new(op, item) }
    }

    /// That evidence of these items is stale.
    #[must_use]
    pub fn stale(items: Vec<ItemId>) -> Self {
        Self { items, ..Self::new(Op::Stale, None) }
    }

    /// That an operation was refused.
    #[must_use]
    pub fn refused(op: Op, item: Option<ItemId>, refusal: Refusal, why: String) -> Self {
        Self { refused: Some(refusal), why, ..Self::new(op, item) }
    }

    /// Whether it has words.
    pub(crate) fn has_words(&self) -> bool {
        self.before.is_some() || self.after.is_some() || !self.why.is_empty()
    }

    /// Takes the words out, as JSON.
    pub(crate) fn take_words(&mut self) -> serde_json::Result<String> {
        let bare = |item: &WorkItem| Box::new(item.bare());
        let (before, after) = (self.before.as_deref().map(bare), self.after.as_deref().map(bare));
        let words = Words {
            before: std::mem::replace(&mut self.before, before),
            after: std::mem::replace(&mut self.after, after),
            why: std::mem::take(&mut self.why),
        };
        serde_json::to_string(&words)
    }

    /// Puts the words back; whether they fit.
    pub(crate) fn put_words(&mut self, text: &str) -> bool {
        let Ok(Words { before, after, why }) = serde_json::from_str(text) else { return false };
        let fits =
            |line: Option<&WorkItem>, words: Option<&WorkItem>| line == words.map(WorkItem::bare).as_ref();
        if !fits(self.before.as_deref(), before.as_deref()) || !fits(self.after.as_deref(), after.as_deref())
        {
            return false;
        }
        (self.before, self.after, self.why) = (before, after, why);
        true
    }

    /// Says of the words that they are gone.
    pub(crate) fn lose_words(&mut self, gone: &str) {
        for item in self.before.iter_mut().chain(&mut self.after) {
            gone.clone_into(&mut item.title);
        }
    }

    pub(crate) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        self.before.iter_mut().chain(&mut self.after).for_each(|item| item.each_text(show));
        show(&mut self.why);
    }
}

impl fmt::Display for WorkRecord {
    /// `claim #3: in_progress -> claimed`, `check #3: refused, changed`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op.as_str())?;
        if let Some(item) = self.item {
            write!(f, " {item}")?;
        }
        match (&self.refused, &self.before, &self.after) {
            (Some(refused), _, _) => {
                let word = serde_json::to_string(refused).unwrap_or_default();
                write!(f, ": refused, {}", word.trim_matches('"'))
            }
            (None, Some(before), Some(after)) if before.state != after.state => {
                write!(f, ": {} -> {}", before.state, after.state)
            }
            (None, _, Some(after)) => write!(f, ": {}", after.state),
            (None, _, None) => {
                let mut before = " ";
                for item in &self.items {
                    write!(f, "{before}{item}")?;
                    before = ", ";
                }
                Ok(())
            }
        }
    }
}
