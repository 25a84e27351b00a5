//! Proportions of things that come in clusters, and how sure they are.
//!
//! Seventeen agents that run one task are not seventeen independent runs. The interval is that of the cluster
//! bootstrap: tasks are drawn with replacement, each with all that belongs to it, and the proportion is computed
//! anew; of 1,000 such draws the interval leaves 2.5 % out at either end (B. Efron and R. Tibshirani, *An Introduction
//! to the Bootstrap*, 1993, ch. 13).

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

use crate::interval::Interval;

/// Draws of the bootstrap.
pub const DRAWS: usize = 1_000;
/// Seed of the bootstrap: the same data gives the same interval.
pub const SEED: u64 = 0x5eed_0b00_757a_9001;

/// So many of so many, by cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ratio {
    clusters: BTreeMap<String, (u64, u64)>,
}

impl Ratio {
    /// Adds `hits` of `of`.
    pub fn add(&mut self, cluster: &str, hits: u64, of: u64) {
        if of == 0 {
            return;
        }
        let entry = match self.clusters.get_mut(cluster) {
            Some(entry) => entry,
            None => self.clusters.entry(cluster.to_owned()).or_default(),
        };
        entry.0 += hits;
        entry.1 += of;
    }

    /// Counts one more.
    pub fn count(&mut self, cluster: &str, hit: bool) {
        self.add(cluster, u64::from(hit), 1);
    }

    /// How many had the property, and how many there were.
    pub fn sums(&self) -> (u64, u64) {
        self.clusters.values().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
    }

    /// The proportion; none of nothing.
    pub fn value(&self) -> Option<f64> {
        let (hits, of) = self.sums();
        (of > 0).then(|| hits as f64 / of as f64)
    }

    /// The interval of 95 %; none of fewer than two clusters.
    pub fn interval(&self) -> Option<Interval> {
        let clusters: Vec<(u64, u64)> = self.clusters.values().copied().collect();
        if clusters.len() < 2 {
            return None;
        }
        let mut random = SplitMix(SEED);
        let mut draws: Vec<f64> = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let (mut hits, mut of) = (0, 0);
            for _ in 0..clusters.len() {
                if let Some(drawn) = clusters.get(random.below(clusters.len())) {
                    hits += drawn.0;
                    of += drawn.1;
                }
            }
            draws.push(hits as f64 / of as f64);
        }
        draws.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| draws.get((share * (DRAWS - 1) as f64).round() as usize).copied();
        Some(Interval { low: at(0.025)?, high: at(0.975)? })
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (hits, of) = self.sums();
        let mut record = to.serialize_struct("Ratio", 5)?;
        record.serialize_field("hits", &hits)?;
        record.serialize_field("of", &of)?;
        record.serialize_field("clusters", &self.clusters.len())?;
        record.serialize_field("value", &self.value())?;
        record.serialize_field("interval_95", &self.interval())?;
        record.end()
    }
}

/// Random numbers from a seed: SplitMix64 (G. Steele, D. Lea, C. Flood, 2014).
#[derive(Debug, Clone)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, as evenly as 64 bits allow; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let wide = u128::from(self.draw()) * (n as u128);
        (wide >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = SplitMix(1_234_567);
        let numbers: Vec<u64> = (0..3).map(|_| random.draw()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn runs_of_one_task_do_not_make_a_figure_surer() {
        let (mut few, mut many) = (Ratio::default(), Ratio::default());
        for task in 0..20 {
            few.count(&task.to_string(), task % 4 == 0);
            many.add(&task.to_string(), if task % 4 == 0 { 17 } else { 0 }, 17);
        }
        assert_eq!(few.value(), many.value());
        assert_eq!(few.interval(), many.interval());
        let interval = few.interval().unwrap();
        assert!(interval.low > 0.0 && interval.low < 0.15 && interval.high > 0.4, "{interval:?}");
    }

    #[test]
    fn one_cluster_says_nothing_about_others() {
        let mut ratio = Ratio::default();
        ratio.add("a", 5, 10);
        assert_eq!((ratio.value(), ratio.interval()), (Some(0.5), None));
        assert_eq!(Ratio::default().value(), None);
    }
}
