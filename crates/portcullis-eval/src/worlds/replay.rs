//! Runs judged as `portcullis check` judges them: open loop, tools inferred over all runs of a world, and a call that
//! is stopped gets no result while the record goes on.

use std::ops::ControlFlow;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::verdict::Verdict;
use portcullis_session::policy::Pipeline;
use portcullis_sim::replay::{self, Item, Options, Row, Source};

use crate::suite::EvalError;
use crate::trajectory::play::Fate;

/// What judges.
#[derive(Debug, Clone)]
pub struct Judge {
    /// The policy.
    pub bundle: Arc<Bundle>,
    /// The guards.
    pub pipeline: Arc<Pipeline>,
}

/// What became of a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    /// Its calls in order.
    pub calls: Vec<Row>,
    /// It could not be read.
    pub unreadable: bool,
}

impl Judged {
    /// Number of the first call, from 0, with that fate or a worse one.
    pub fn first(&self, worst: Fate) -> Option<usize> {
        self.calls.iter().position(|call| fate(call) >= worst)
    }
}

/// Whether a call went ahead.
pub fn fate(row: &Row) -> Fate {
    match row.verdict {
        _ if row.enforced.proceeds() => Fate::Passed,
        Verdict::Deny | Verdict::Halt => Fate::Denied,
        _ => Fate::Held,
    }
}

impl Judge {
    /// Judges records, one a line, under one registry. Returns what became of each.
    ///
    /// # Errors
    /// They cannot be judged as a whole.
    pub fn lines<'l>(&self, lines: impl IntoIterator<Item = &'l str>) -> Result<Vec<Judged>, EvalError> {
        let mut bytes = Vec::new();
        let mut judged = Vec::new();
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
            judged.push(Judged::default());
        }
        if judged.is_empty() {
            return Ok(judged);
        }
        let source = Source::memory(bytes);
        let mut sink = |item: Item<'_>| {
            let (line, row) = match item {
                Item::Decision(row) => (row.line, Some(row)),
                Item::Unreadable { line, .. } => (line, None),
                _ => return ControlFlow::Continue(()),
            };
            if let Some(judged) = line.checked_sub(1).and_then(|at| judged.get_mut(at)) {
                judged.calls.extend(row.cloned());
                judged.unreadable |= row.is_none();
            }
            ControlFlow::Continue(())
        };
        replay::replay(&source, &self.bundle, &self.pipeline, &Options::default(), &mut sink)
            .map_err(EvalError::Replay)?;
        Ok(judged)
    }
}
