//! Session state: a cell is a key with its value and the version of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CELLS_MAX, KEY_BYTES_MAX, KeptError, Refusal, STATE_BYTES_MAX, VALUE_BYTES_MAX, text_within};
use crate::aside::label_text;
use crate::id::RequestId;
use crate::label::LabelSet;
use crate::state::Kept;

/// Name of the payload with the words of an operation on session state.
pub const STATE: &str = "state";

/// Numbers a cell in its run: 1, 2, 3, ... in the order in which the keys were first written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellId(pub u32);

/// A key of the session state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number.
    pub id: CellId,
    /// The key; empty where its words were erased.
    pub key: String,
    /// The value as JSON, or `None` where it was erased.
    pub value: Option<String>,
    /// Number of the event that put this value.
    pub version: u64,
    /// Labels of the run when it was put.
    pub labels: LabelSet,
}

impl Cell {
    /// What it counts in [`STATE_BYTES_MAX`].
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, String::len)
    }
}

/// What is asked for: one key, and the version that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The key.
    pub key: String,
    /// The value, as JSON.
    pub value: String,
    /// The version that it replaces; `None` for a new key.
    pub replaces: Option<u64>,
    /// Names the request, where it may be made again.
    pub request: Option<RequestId>,
}

/// What was done, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellOp {
    /// A value was put.
    Put,
}

/// Body of `state`. In the line stand numbers and labels; key and values are in the payload [`STATE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// What was done.
    pub op: CellOp,
    /// The cell. `None` where a refused operation named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellId>,
    /// The version that it replaced, or was to replace; `None` for a new key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    /// Names the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// Labels of the run at this moment.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// The words. Not in the line, but in the payload.
    #[serde(default, skip_serializing_if = "CellWords::is_empty")]
    pub words: CellWords,
}

/// The words of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellWords {
    /// The key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The value before, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The value after, as JSON. `None` where it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl CellWords {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a put does: the record to make durable. Changes nothing.
///
/// # Errors
/// It is refused. Record that, too: [`CellRecord::refused`].
pub fn put(kept: &Kept, asked: Put, labels: &LabelSet) -> Result<CellRecord, KeptError> {
    text_within("key", &asked.key, KEY_BYTES_MAX)?;
    if asked.value.len() > VALUE_BYTES_MAX {
        let bytes = asked.value.len();
        return Err(KeptError::field(
            "value",
            format!("has {bytes} bytes as JSON; the limit is {VALUE_BYTES_MAX}"),
        ));
    }
    let before = kept.cell(&asked.key);
    let current = before.map(|cell| cell.version);
    if asked.replaces != current {
        return Err(stale(&asked, current));
    }
    let added = match before {
        Some(cell) => asked.value.len().saturating_sub(cell.bytes() - cell.key.len()),
        None => asked.key.len() + asked.value.len(),
    };
    if kept.state_bytes() + added > STATE_BYTES_MAX {
        let reason = format!("the state of this run would take more than {STATE_BYTES_MAX} bytes");
        return Err(KeptError::new(
            Refusal::Full,
            "value",
            reason,
            "put a shorter value, or shorten another",
        ));
    }
    let cell = match before {
        Some(cell) => cell.id,
        None if kept.cells_made() >= CELLS_MAX => {
            let reason = format!("the state of this run has {CELLS_MAX} keys, which is the limit");
            return Err(KeptError::new(
                Refusal::Full,
                "key",
                reason,
                "put the value under a key that is there",
            ));
        }
        None => kept.next_cell(),
    };
    let before = before.and_then(|cell| cell.value.clone());
    let Put { key, value, replaces, request } = asked;
    Ok(CellRecord {
        op: CellOp::Put,
        cell: Some(cell),
        replaces,
        request,
        labels: labels.clone(),
        refused: None,
        words: CellWords { key, before, after: Some(value), why: String::new() },
    })
}

/// The version that was named is not the current one.
fn stale(asked: &Put, current: Option<u64>) -> KeptError {
    let key = &asked.key;
    let (reason, next) = match (current, asked.replaces) {
        (Some(current), Some(_)) => (
            format!("`{key}` is at version {current}"),
            format!("read it, then put it again with `replaces` {current}"),
        ),
        (Some(current), None) => (
            format!("`{key}` is there, at version {current}"),
            format!("read it, then put it with `replaces` {current}"),
        ),
        (None, _) => (format!("there is no `{key}`"), "leave `replaces` out".to_owned()),
    };
    KeptError::new(Refusal::Stale, "replaces", reason, next)
}

impl CellRecord {
    /// That a put was refused. What was to be put is not kept.
    #[must_use]
    pub fn refused(kept: &Kept, asked: &Put, error: &KeptError) -> Self {
        let short = |key: &str| key.chars().take(KEY_BYTES_MAX / 4).collect();
        let words = CellWords { key: short(&asked.key), why: error.to_string(), ..CellWords::default() };
        Self {
            op: CellOp::Put,
            cell: kept.cell(&asked.key).map(|cell| cell.id),
            replaces: asked.replaces,
            request: asked.request,
            labels: LabelSet::default(),
            refused: Some(error.refusal),
            words,
        }
    }

    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Takes the words out, as JSON.
    pub(crate) fn take_words(&mut self) -> serde_json::Result<String> {
        serde_json::to_string(&std::mem::take(&mut self.words))
    }

    /// Puts the words back; whether they fit.
    pub(crate) fn put_words(&mut self, text: &str) -> bool {
        let Ok(words) = serde_json::from_str::<CellWords>(text) else { return false };
        let fits = words.after.is_some() == self.refused.is_none();
        if fits {
            self.words = words;
        }
        fits
    }

    pub(crate) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        let CellWords { key, before, after, why } = &mut self.words;
        show(key);
        before.iter_mut().chain(after).for_each(&mut *show);
        show(why);
        self.labels.each_mut(&mut |label| label_text(label, show));
    }
}

impl fmt::Display for CellRecord {
    /// `put cell 3, replacing 12`, `put cell 3: refused, stale`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("put")?;
        if let Some(CellId(cell)) = self.cell {
            write!(f, " cell {cell}")?;
        }
        match (self.refused, self.replaces) {
            (Some(refused), _) => write!(f, ": refused, {}", refused.as_str()),
            (None, Some(version)) => write!(f, ", replacing {version}"),
            (None, None) => Ok(()),
        }
    }
}
