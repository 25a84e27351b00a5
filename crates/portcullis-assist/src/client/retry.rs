//! When to try again, and how long to wait before.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_ATTEMPTS, MAX_RETRY_AFTER};
use crate::model::ModelError;

/// How often and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retries {
    /// Attempts at one call, the first included; at most [`MAX_ATTEMPTS`].
    pub attempts: u32,
    /// The wait before the second attempt; each later one is twice as long.
    pub base: Duration,
    /// Longest wait.
    pub cap: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 4, base: Duration::from_millis(500), cap: Duration::from_secs(20) }
    }
}

impl Retries {
    /// How long to wait after an attempt (from 1) that failed; none where trying again is no use.
    ///
    /// Half of the wait is fixed and half is drawn (`random`), so that callers who failed together do not come back
    /// together. Where the server says how long, it is at least that; over [`MAX_RETRY_AFTER`] the call is given up.
    #[must_use]
    pub fn wait(&self, attempt: u32, error: &ModelError, random: u64) -> Option<Duration> {
        if attempt >= self.attempts.min(MAX_ATTEMPTS) || !error.is_passing() {
            return None;
        }
        let longest = self.base.saturating_mul(1 << (attempt - 1).min(16)).min(self.cap);
        let half = longest / 2;
        let share = u32::try_from(random >> 32).unwrap_or(0);
        let drawn = half.mul_f64(f64::from(share) / f64::from(u32::MAX));
        let wait = half + drawn;
        match error {
            ModelError::Refused { retry_after: Some(asked), .. } if *asked > MAX_RETRY_AFTER => None,
            ModelError::Refused { retry_after: Some(asked), .. } => Some(wait.max(*asked)),
            _ => Some(wait),
        }
    }
}

/// The header `Retry-After` in seconds, which may be a fraction. The form with a date is not read: then the waits double.
pub(super) fn retry_after(header: &str) -> Option<Duration> {
    let seconds: f64 = header.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> ModelError {
        let retry_after = retry_after.map(Duration::from_secs);
        ModelError::Refused { status: 429, message: String::new(), retry_after }
    }

    #[test]
    fn waits_double_up_to_the_cap_and_half_of_each_is_drawn() {
        let retries =
            Retries { attempts: 10, base: Duration::from_millis(100), cap: Duration::from_millis(300) };
        let waits = |random| -> Vec<u128> {
            (1..5)
                .filter_map(|attempt| retries.wait(attempt, &busy(None), random))
                .map(|wait| wait.as_millis())
                .collect()
        };
        assert_eq!(waits(0), [50, 100, 150, 150]);
        assert_eq!(waits(u64::MAX), [100, 200, 300, 300]);
    }

    #[test]
    fn attempts_end_and_some_errors_do_not_pass() {
        let retries = Retries { attempts: 2, ..Retries::default() };
        assert!(retries.wait(1, &busy(None), 0).is_some());
        assert_eq!(retries.wait(2, &busy(None), 0), None);
        let refused = ModelError::Refused { status: 401, message: String::new(), retry_after: None };
        assert_eq!(retries.wait(1, &refused, 0), None);
        assert_eq!(retries.wait(1, &ModelError::NotACompletion(String::new()), 0), None);
    }

    #[test]
    fn a_server_is_left_alone_for_as_long_as_it_asks_within_reason() {
        let retries = Retries::default();
        assert_eq!(retries.wait(1, &busy(Some(7)), 0), Some(Duration::from_secs(7)));
        assert_eq!(retries.wait(1, &busy(Some(3_600)), 0), None);
        assert_eq!(retry_after(" 1.5 "), Some(Duration::from_millis(1_500)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), None);
        assert_eq!(retry_after("-1"), None);
    }
}
