//! How sure a proportion is.

use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

/// The standard normal quantile of a two-sided interval of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proportion {
    /// How many had the property.
    pub hits: usize,
    /// How many there were.
    pub of: usize,
}

/// A range that holds the true proportion in 95 of 100 samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end, 0 to 1.
    pub low: f64,
    /// Upper end, 0 to 1.
    pub high: f64,
}

impl Proportion {
    /// Counts one more.
    pub fn count(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    /// Both counts together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { hits: self.hits + other.hits, of: self.of + other.of }
    }

    /// The proportion; none of nothing.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// Wilson's score interval (E. B. Wilson, 1927), which stays within 0 and 1 and means something at 0 and at
    /// 100 % too; none of nothing.
    pub fn interval(self) -> Option<Interval> {
        let p = self.value()?;
        let n = self.of as f64;
        let shrink = 1.0 + Z * Z / n;
        let centre = (p + Z * Z / (2.0 * n)) / shrink;
        let half = Z / shrink * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        Some(Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0) })
    }
}

impl Serialize for Proportion {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut record = to.serialize_struct("Proportion", 4)?;
        record.serialize_field("hits", &self.hits)?;
        record.serialize_field("of", &self.of)?;
        record.serialize_field("value", &self.value())?;
        record.serialize_field("interval_95", &self.interval())?;
        record.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // Computed by hand from the formula for 81 of 263 and for the ends.
        for (hits, of, low, high) in
            [(81, 263, 0.255_3, 0.366_2), (0, 10, 0.0, 0.277_5), (10, 10, 0.722_5, 1.0), (1, 1, 0.206_5, 1.0)]
        {
            let interval = Proportion { hits, of }.interval().unwrap();
            assert!((interval.low - low).abs() < 1e-4 && (interval.high - high).abs() < 1e-4, "{interval:?}");
        }
    }

    #[test]
    fn of_nothing_there_is_no_proportion() {
        assert_eq!(Proportion::default().value(), None);
        assert_eq!(Proportion::default().interval(), None);
    }
}
