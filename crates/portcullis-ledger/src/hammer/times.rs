//! Times: how long things took, and how long the disk takes by itself.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Bytes of one probe of the disk: a page of SQLite.
const PROBE_BYTES: usize = 4096;

/// Times of one kind.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<u64>);

/// How times of one kind are spread, in nanoseconds. All are 0 where nothing was timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many were timed.
    pub count: u64,
    /// Half of them took at most this long.
    pub p50_ns: u64,
    /// 99 of 100 took at most this long.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Spread {
    /// How many times another one's median this one's is; 0 where either is missing.
    pub(super) fn over(self, other: Spread) -> f64 {
        if other.p50_ns == 0 { 0.0 } else { self.p50_ns as f64 / other.p50_ns as f64 }
    }
}

impl Times {
    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    pub(super) fn spread(mut self) -> Spread {
        self.0.sort_unstable();
        let count = self.0.len();
        // The nearest rank: the smallest time that this share of all does not exceed.
        let rank = |percent: usize| {
            let place = (count * percent).div_ceil(100).saturating_sub(1);
            self.0.get(place).copied().unwrap_or(0)
        };
        Spread { count: count as u64, p50_ns: rank(50), p99_ns: rank(99), max_ns: rank(100) }
    }
}

/// A file beside the store that is appended to, so that the disk's own time is known.
pub(super) struct Probe(File);

impl Probe {
    pub(super) fn new(folder: &Path) -> io::Result<Probe> {
        File::options().create(true).append(true).open(folder.join("fdatasync.probe")).map(Probe)
    }

    /// Appends a page and waits until it is on the disk; how long the waiting took.
    pub(super) fn time(&mut self) -> io::Result<Duration> {
        self.0.write_all(&[0x5a; PROBE_BYTES])?;
        let start = Instant::now();
        self.0.sync_data()?;
        Ok(start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_times_that_were_taken() {
        let times = |all: &[u64]| Times(all.to_vec()).spread();
        assert_eq!(times(&[]), Spread::default());
        assert_eq!(times(&[7]), Spread { count: 1, p50_ns: 7, p99_ns: 7, max_ns: 7 });
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(times(&hundred), Spread { count: 100, p50_ns: 50, p99_ns: 99, max_ns: 100 });
        assert_eq!(times(&[4]).over(times(&[2])), 2.0);
        assert_eq!(times(&[4]).over(Spread::default()), 0.0);
    }
}
