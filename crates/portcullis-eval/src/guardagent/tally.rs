//! Counting what one arm reached.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_assist::Spent;

use super::cases::Case;
use super::{Arm, Judged, Suite, csqa};
use crate::interval::Proportion;
use crate::metrics::{Prediction, Score, Truth};

#[derive(Debug)]
pub(super) struct Tally {
    pub(super) arm: Arm,
    suite: Suite,
    pub(super) all: Score,
    pub(super) groups: BTreeMap<String, Score>,
    /// Records whose number of broken rules was found, by level.
    pub(super) levels: BTreeMap<&'static str, Proportion>,
    /// First programs that ran, and records for which one did.
    pub(super) ran: Option<(Proportion, Proportion)>,
    pub(super) unanswered: usize,
    pub(super) spent: Spent,
    pub(super) times: Vec<Duration>,
}

impl Tally {
    pub(super) fn new(arm: Arm, suite: Suite) -> Self {
        Self {
            arm,
            suite,
            all: Score::default(),
            groups: BTreeMap::new(),
            levels: BTreeMap::new(),
            ran: None,
            unanswered: 0,
            spent: Spent::default(),
            times: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, case: &Case, judged: &Judged) {
        let mut truth = case.truth.clone();
        if let Some(did_right) = judged.did_right {
            truth.answer_right = did_right;
        }
        self.unanswered += usize::from(judged.prediction.is_none());
        let prediction = judged.prediction.clone().unwrap_or_else(|| wrong(&truth));
        self.all.count(&truth, &prediction);
        self.groups.entry(case.group.clone()).or_default().count(&truth, &prediction);
        if self.suite == Suite::Csqa {
            let found = judged.prediction.is_some() && prediction.named.len() == truth.wrong.len();
            self.levels.entry(csqa::level(truth.wrong.len())).or_default().count(found);
        }
        if let Some((first, any)) = judged.ran {
            let ran = self.ran.get_or_insert_default();
            ran.0.count(first);
            ran.1.count(any);
        }
        self.spent.add(&judged.spent);
        self.times.push(judged.took);
    }
}

/// What counts as wrong whatever the label is.
fn wrong(truth: &Truth) -> Prediction {
    let message = (!truth.denied).then(|| "no answer".to_owned());
    Prediction { denied: !truth.denied, message, ..Prediction::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_wrong_under_either_label() {
        let mut score = Score::default();
        for denied in [true, false] {
            let truth = Truth { denied, answer_right: true, ..Truth::default() };
            score.count(&truth, &wrong(&truth));
        }
        assert_eq!(score.labels.accuracy(), Proportion { hits: 0, of: 2 });
        assert_eq!((score.explained.hits, score.answered.hits), (0, 0));
    }
}
