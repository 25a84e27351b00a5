//! The clock of this machine. It stands here, and not beside [`Timestamp`], because this is the lowest crate that
//! may ask: those below are pure, and decide by the times of events alone.

use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_core::time::Timestamp;

/// The time by the clock of this machine; the epoch if the clock is set before it.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
