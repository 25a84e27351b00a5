//! Back-test: what another bundle would have said of recorded runs.
//!
//! Each run is judged twice by the same engine, under the bundle in force and under the one that would replace it, and
//! compared call by call. Tools are not inferred, so that only policy makes a difference. See [`replay`](crate::replay)
//! for what a record can and cannot show.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_session::policy::Pipeline;

use crate::replay::{self, Item, Options, ReplayError, Row, Source};

/// What judging one record under two bundles showed.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// Calls that were judged under both.
    pub calls: usize,
    /// Those whose verdict or rule differs: under the old bundle, under the new one.
    pub changes: Vec<(Row, Row)>,
    /// Calls that were judged under one bundle only, because an earlier verdict differs.
    pub unmatched: usize,
}

/// Judges an export under two bundles.
///
/// # Errors
/// [`ReplayError`]: the record cannot be judged.
pub fn compare(
    source: &Source,
    old: &Arc<Bundle>,
    new: &Arc<Bundle>,
    pipeline: &Arc<Pipeline>,
) -> Result<Compared, ReplayError> {
    let before = judged(source, old, pipeline)?;
    let mut after = judged(source, new, pipeline)?;
    let mut compared = Compared::default();
    for (line, old) in before {
        let Some(new) = after.remove(&line) else {
            compared.unmatched += 1;
            continue;
        };
        compared.calls += 1;
        if old.verdict != new.verdict || old.rule != new.rule {
            compared.changes.push((old, new));
        }
    }
    compared.unmatched += after.len();
    Ok(compared)
}

/// The calls of an export by the line of their event.
fn judged(
    source: &Source,
    bundle: &Arc<Bundle>,
    pipeline: &Arc<Pipeline>,
) -> Result<BTreeMap<usize, Row>, ReplayError> {
    let options = Options { policy: None, strict_tools: true };
    let mut rows = BTreeMap::new();
    replay::replay(source, bundle, pipeline, &options, &mut |item: Item<'_>| {
        if let Item::Decision(row) = item {
            rows.insert(row.line, row.clone());
        }
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}
