//! The times of many calls, as percentiles and as bars.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::BenchError;

/// The longest time that is told apart from longer ones, in nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;
/// Digits that are kept of a time.
const DIGITS: u8 = 3;

/// Times of calls, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Calls.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Half of the calls took no longer.
    pub p50_ns: u64,
    /// 90 % took no longer.
    pub p90_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// 99.9 % took no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many took how long; each bar reaches twice as far as the one before.
    pub bars: Vec<Bar>,
}

/// Calls that took longer than the bar before, and no longer than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// The end of the bar.
    pub up_to_ns: u64,
    /// Calls in it.
    pub count: u64,
}

/// Collects times.
#[derive(Debug, Clone)]
pub(super) struct Recorder(Histogram<u64>);

impl Recorder {
    pub(super) fn new() -> Result<Self, BenchError> {
        Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .map(Self)
            .map_err(|error| BenchError::Histogram(error.to_string()))
    }

    /// Adds a call; longer than a minute counts as a minute.
    pub(super) fn add(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all calls of another.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), BenchError> {
        self.0.add(&other.0).map_err(|error| BenchError::Histogram(error.to_string()))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(super) fn finish(&self) -> Distribution {
        let at = |quantile| self.0.value_at_quantile(quantile);
        let bars = self.0.iter_log(64, 2.0).map(|step| Bar {
            up_to_ns: step.value_iterated_to().saturating_add(1),
            count: step.count_since_last_iteration(),
        });
        let bars: Vec<Bar> = bars.skip_while(|bar| bar.count == 0).collect();
        Distribution {
            count: self.0.len(),
            mean_ns: self.0.mean(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.0.max(),
            bars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_bars_count_every_call() {
        let mut recorder = Recorder::new().unwrap();
        for nanos in 1..=1_000 {
            recorder.add(Duration::from_nanos(nanos));
        }
        recorder.add(Duration::from_secs(600));
        let seen = recorder.finish();
        assert_eq!((seen.count, seen.p50_ns, seen.p99_ns), (1_001, 501, 991));
        assert!(seen.max_ns >= LONGEST_NS);
        assert_eq!(seen.bars.iter().map(|bar| bar.count).sum::<u64>(), 1_001);
        assert_eq!(seen.bars.first().map(|bar| bar.up_to_ns), Some(64));
    }
}
