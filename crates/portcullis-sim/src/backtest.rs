//! Back-test: what another bundle would have said of recorded runs.
//!
//! Each run is judged twice by the same engine, under the bundle in force and under the one that would replace it, and
//! compared call by call. See [`replay`](crate::replay)
//! for what a record can and cannot show.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_session::policy::Pipeline;

use crate::replay::{self, Item, Options, ReplayError, Row, Source};

/// What judging records under two bundles showed.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// Runs that were judged.
    pub runs: usize,
    /// Calls that were judged under the old bundle.
    pub calls: usize,
    /// Those whose verdict or rule differs: under the old bundle, under the new one.
    pub changes: Vec<(Row, Row)>,
    /// Calls that were judged under one bundle only, because an earlier verdict differs.
    pub unmatched: usize,
}

/// Judges an export, or traces of others, under two bundles; under the runtime policy of that name in both, or the default
/// of each.
///
/// # Errors
/// [`ReplayError`]: the record cannot be judged.
pub fn compare(
    source: &Source,
    [old, new]: [&Arc<Bundle>; 2],
    pipeline: &Arc<Pipeline>,
    policy: Option<&str>,
) -> Result<Compared, ReplayError> {
    // What the gate recorded is judged by the registries alone, so that only policy makes a difference. Traces of others
    // need tools to be inferred, for both bundles alike.
    let export = replay::is_export(source)?;
    let options = Options { policy: policy.map(str::to_owned), strict_tools: export };
    let (before, runs) = judged(source, old, pipeline, &options)?;
    let (mut after, _) = judged(source, new, pipeline, &options)?;
    let mut compared = Compared { runs, ..Compared::default() };
    for (place, old) in before {
        compared.calls += 1;
        let Some(new) = after.remove(&place) else {
            compared.unmatched += 1;
            continue;
        };
        if old.verdict != new.verdict || old.rule != new.rule {
            compared.changes.push((old, new));
        }
    }
    compared.unmatched += after.len();
    Ok(compared)
}

/// Calls by their run and place in it.
type Rows = BTreeMap<(usize, usize), Row>;

/// The calls, and how many runs there are.
fn judged(
    source: &Source,
    bundle: &Arc<Bundle>,
    pipeline: &Arc<Pipeline>,
    options: &Options,
) -> Result<(Rows, usize), ReplayError> {
    let mut rows = Rows::new();
    let summary = replay::replay(source, bundle, pipeline, options, &mut |item: Item<'_>| {
        if let Item::Decision(row) = item {
            let place = if options.strict_tools { row.line } else { row.call };
            rows.insert((row.run, place), row.clone());
        }
        ControlFlow::Continue(())
    })?;
    Ok((rows, summary.runs))
}
