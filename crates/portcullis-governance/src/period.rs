//! Under which bundle and policy a run was, from which event on.

use portcullis_core::event::{ConfigChange, Event, EventBody, Mode};
use portcullis_core::id::Digest;

/// A stretch of the run under one bundle and policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: u64,
    pub(crate) bundle: Digest,
    /// All that judged, where the run says.
    pub(crate) configuration: Option<Digest>,
    pub(crate) policy: String,
    pub(crate) mode: Mode,
}

/// The stretches in order.
pub(crate) fn periods(events: &[Event]) -> Vec<Period> {
    let mut periods: Vec<Period> = Vec::new();
    for event in events {
        let period = match &event.body {
            EventBody::RunOpened(opened) => Period {
                from: event.seq,
                bundle: opened.bundle,
                configuration: opened.configuration,
                policy: opened.policy.clone(),
                mode: opened.mode,
            },
            EventBody::Config(ConfigChange::BundleLoaded { bundle, configuration, policy, mode }) => Period {
                from: event.seq,
                bundle: *bundle,
                configuration: *configuration,
                policy: policy.clone(),
                mode: *mode,
            },
            _ => continue,
        };
        let same = |last: &Period| {
            (last.bundle, &last.policy, last.mode) == (period.bundle, &period.policy, period.mode)
        };
        if !periods.last().is_some_and(same) {
            periods.push(period);
        }
    }
    periods
}
