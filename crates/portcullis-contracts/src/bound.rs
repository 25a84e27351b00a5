//! How many of something: at least so many, fewer than so many, or both.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A half-open interval of counts. `below` is exclusive, so that *less than 0*, which nothing satisfies, can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bound {
    /// Fewest that hold.
    pub at_least: u32,
    /// Every count that holds is below this one; `None` means no upper bound.
    pub below: Option<u32>,
}

impl Bound {
    /// `count >= n`.
    #[must_use]
    pub const fn at_least(n: u32) -> Self {
        Self { at_least: n, below: None }
    }

    /// `count < n`.
    #[must_use]
    pub const fn less_than(n: u32) -> Self {
        Self { at_least: 0, below: Some(n) }
    }

    /// `count <= n`.
    #[must_use]
    pub const fn at_most(n: u32) -> Self {
        Self { at_least: 0, below: Some(n.saturating_add(1)) }
    }

    /// `count == n`.
    #[must_use]
    pub const fn exactly(n: u32) -> Self {
        Self::between(n, n)
    }

    /// `low <= count <= high`.
    #[must_use]
    pub const fn between(low: u32, high: u32) -> Self {
        Self { at_least: low, below: Some(high.saturating_add(1)) }
    }

    /// Whether `count` is within the bound.
    #[must_use]
    pub fn holds(&self, count: usize) -> bool {
        count >= self.at_least as usize && self.below.is_none_or(|below| count < below as usize)
    }

    /// The largest count that holds, if there is an upper bound, or `None` for *less than 0* too.
    #[must_use]
    pub fn most(&self) -> Option<u32> {
        self.below.and_then(|below| below.checked_sub(1))
    }

    /// Whether no count holds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.below.is_some_and(|below| below <= self.at_least)
    }

    /// What both bounds allow.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let below = match (self.below, other.below) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { at_least: self.at_least.max(other.at_least), below }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_least, self.below) {
            (low, None) => write!(f, "at least {low}"),
            (0, Some(below)) => write!(f, "less than {below}"),
            (low, Some(below)) if below == low.saturating_add(1) => write!(f, "exactly {low}"),
            (low, Some(below)) => write!(f, "at least {low} and less than {below}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_and_say_so() {
        for (bound, text, yes, no) in [
            (Bound::at_least(3), "at least 3", 3, 2),
            (Bound::less_than(3), "less than 3", 2, 3),
            (Bound::at_most(3), "less than 4", 3, 4),
            (Bound::exactly(3), "exactly 3", 3, 4),
            (Bound::between(3, 5), "at least 3 and less than 6", 5, 6),
        ] {
            assert_eq!(bound.to_string(), text);
            assert!(bound.holds(yes) && !bound.holds(no) && !bound.is_empty(), "{text}");
        }
        assert!(Bound::less_than(0).is_empty() && Bound::at_least(5).and(&Bound::less_than(5)).is_empty());
        assert_eq!(Bound::less_than(0).most(), None);
    }
}
