//! Which of two candidates is better, and what is mended first.

use std::cmp::Reverse;

use portcullis_contracts::{Contract, Priority};

use super::settings::{Priorities, SettingsError};
use crate::judge::{Decider, Judgement};

/// What each contract counts.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    counts: Counts,
}

#[derive(Debug, Clone)]
enum Counts {
    /// By level, the highest first.
    Levels(Vec<Priority>),
    Weights(Vec<u32>),
}

/// Compares as candidates do: for levels what holds of the highest, then of the next; for weights their sum.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score(Vec<u64>);

impl Scale {
    /// The scale, and the contracts with the priorities that it gives them.
    pub(super) fn new(
        priorities: &Priorities,
        contracts: &[Contract],
    ) -> Result<(Self, Vec<Contract>), SettingsError> {
        let fits = |what, given: usize| {
            if given == contracts.len() {
                return Ok(());
            }
            Err(SettingsError::Priorities { what, given, contracts: contracts.len() })
        };
        let levels: Vec<Priority> = match priorities {
            Priorities::Contracts => contracts.iter().map(|contract| contract.priority).collect(),
            Priorities::Ranks(ranks) => {
                fits("ranks", ranks.len())?;
                ranks.iter().map(|rank| Priority::of_rank(*rank)).collect()
            }
            Priorities::Weights(weights) => {
                fits("weights", weights.len())?;
                weights.iter().map(|weight| Priority(i64::from(*weight))).collect()
            }
        };
        let with = |(contract, priority): (&Contract, &Priority)| Contract {
            priority: *priority,
            ..contract.clone()
        };
        let contracts = contracts.iter().zip(&levels).map(with).collect();
        let counts = match priorities {
            Priorities::Weights(weights) => Counts::Weights(weights.clone()),
            Priorities::Contracts | Priorities::Ranks(_) => Counts::Levels(levels),
        };
        Ok((Self { counts }, contracts))
    }

    /// Of all contracts.
    pub(super) fn score(&self, judgements: &[Judgement]) -> Score {
        self.score_of(judgements, |_| true)
    }

    /// Of those that code decides.
    pub(super) fn exact_score(&self, judgements: &[Judgement]) -> Score {
        self.score_of(judgements, |judgement| judgement.by == Decider::Exact)
    }

    fn score_of(&self, judgements: &[Judgement], counted: impl Fn(&Judgement) -> bool) -> Score {
        let holds = |judgement: &Judgement| judgement.holds() && counted(judgement);
        match &self.counts {
            Counts::Weights(weights) => {
                let held = weights.iter().zip(judgements).filter(|(_, judgement)| holds(judgement));
                Score(vec![held.map(|(weight, _)| u64::from(*weight)).sum()])
            }
            Counts::Levels(levels) => {
                let mut order: Vec<Priority> = levels.clone();
                order.sort_unstable_by_key(|level| Reverse(*level));
                order.dedup();
                let count = |level: &Priority| {
                    let of_level = levels.iter().zip(judgements).filter(|(own, _)| *own == level);
                    of_level.filter(|(_, judgement)| holds(judgement)).count() as u64
                };
                Score(order.iter().map(count).collect())
            }
        }
    }
}

/// Sorts places of contracts, what matters most first; equal ones stay in order.
pub(super) fn sort(places: &mut [usize], contracts: &[Contract]) {
    places.sort_by_key(|at| Reverse(contracts.get(*at).map(|contract| contract.priority)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Standing;

    fn judgements(standings: &str) -> Vec<Judgement> {
        let judge = |c| Judgement {
            id: String::new(),
            standing: if c == 'y' { Standing::Holds } else { Standing::Broken },
            by: Decider::Model,
            explanation: String::new(),
            spans: Vec::new(),
        };
        standings.chars().map(judge).collect()
    }

    fn contracts(priorities: &[Priority]) -> Vec<Contract> {
        let statements = vec!["Be kind."; priorities.len()];
        let mut contracts = portcullis_contracts::compile(&statements).unwrap();
        for (contract, priority) in contracts.iter_mut().zip(priorities) {
            contract.priority = *priority;
        }
        contracts
    }

    #[test]
    fn a_higher_level_outweighs_lower_ones_and_weights_add_up() {
        let tagged = contracts(&[Priority::LOW, Priority::HIGH, Priority::LOW]);
        let (high, lows) = (judgements("nyn"), judgements("yny"));
        let (levels, _) = Scale::new(&Priorities::Contracts, &tagged).unwrap();
        assert!(levels.score(&high) > levels.score(&lows));
        let (weights, _) = Scale::new(&Priorities::Weights(vec![2, 3, 2]), &tagged).unwrap();
        assert!(weights.score(&high) < weights.score(&lows));
        let (equal, _) = Scale::new(&Priorities::Contracts, &contracts(&[Priority::MEDIUM; 3])).unwrap();
        assert!(equal.score(&high) < equal.score(&lows));
    }

    #[test]
    fn rank_1_comes_first() {
        let three = contracts(&[Priority::MEDIUM; 3]);
        let mut places = vec![0, 1, 2];
        sort(&mut places, &Scale::new(&Priorities::Ranks(vec![3, 1, 2]), &three).unwrap().1);
        assert_eq!(places, [1, 2, 0]);
        sort(&mut places, &Scale::new(&Priorities::Weights(vec![5, 5, 9]), &three).unwrap().1);
        assert_eq!(places, [2, 1, 0]);
        let error = Scale::new(&Priorities::Ranks(vec![1]), &three).unwrap_err();
        assert_eq!(error.to_string(), "1 ranks for 3 contracts; give one for each");
    }
}
