//! The escalation table: from signals to a level, top down, the first row that holds decides.
//!
//! The seed's eight rows are [`Table::seed`]; a bundle may bring others. Every boundary is inclusive. A row holds
//! when each of its conditions does. A condition on a signal that nobody reports cannot hold, so the row is
//! *inactive*, and the answer says so: a surface without confidence has no CLARIFY row, and the answer must show
//! that.
//!
//! Rows are sorted from the strictest level to the mildest. Raising a signal can therefore only make an earlier row
//! hold, so the level never falls when a signal rises, and never falls when a threshold is lowered ([`Adaptive`]). A
//! table in another order is refused.
//!
//! Where scores only advise ([`Scores::Advise`]), a row on drift and uncertainty alone gives CLARIFY at most. Such a row
//! then stands above stricter ones, so the strictest of the rows that hold decides, which keeps the property above.

use crate::bundle::Scores;
use crate::verdict::{Escalation, Verdict};

/// Rows of one table.
pub const ROWS_MAX: usize = 64;

/// What the table reads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Signals {
    /// Violations in what is pending.
    pub violations: u32,
    /// How far the run has drifted from its stated goal, 0 to 1.
    pub drift: f64,
    /// 1 - confidence, where the surface reports a confidence.
    pub uncertainty: Option<f64>,
    /// The risk of the tool that the request does not cover, 0 to 1. `None` if no request is known, or if the tool's
    /// risk is inferred and not confirmed.
    pub tool_risk: Option<f64>,
}

/// A signal by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// [`Signals::violations`].
    Violations,
    /// [`Signals::drift`].
    Drift,
    /// [`Signals::uncertainty`].
    Uncertainty,
    /// [`Signals::tool_risk`].
    ToolRisk,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Violations, Self::Drift, Self::Uncertainty, Self::ToolRisk];

    /// The name in bundles and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Violations => "violations",
            Self::Drift => "drift",
            Self::Uncertainty => "uncertainty",
            Self::ToolRisk => "tool_risk",
        }
    }
}

impl Signals {
    /// The value of a signal, or `None` if it is not reported.
    pub fn get(&self, signal: Signal) -> Option<f64> {
        match signal {
            Signal::Violations => Some(f64::from(self.violations)),
            Signal::Drift => Some(self.drift),
            Signal::Uncertainty => self.uncertainty,
            Signal::ToolRisk => self.tool_risk,
        }
    }
}

/// A signal and the least value at which the condition holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// The signal.
    pub signal: Signal,
    /// The boundary, inclusive.
    pub at_least: f64,
}

/// A row: all conditions together mean the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// All must hold; a row without conditions always holds.
    pub conditions: Vec<Condition>,
    /// The level.
    pub level: Escalation,
}

impl Row {
    /// The level that the row gives.
    pub fn level_under(&self, scores: Scores) -> Escalation {
        let is_score =
            |condition: &Condition| matches!(condition.signal, Signal::Drift | Signal::Uncertainty);
        let alone = !self.conditions.is_empty() && self.conditions.iter().all(is_score);
        match scores {
            Scores::Advise if alone => self.level.min(Escalation::Clarify),
            _ => self.level,
        }
    }
}

/// The rows in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    rows: Vec<Row>,
}

/// A table whose rows are not in falling order of their levels, or that has too many.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A stricter row below a milder one could only be reached where the milder one does not hold.
    #[error("row {row} is stricter than the row above it; list rows from the highest level to the lowest")]
    Order {
        /// Number of the row, from 1.
        row: usize,
    },
    /// Too many.
    #[error("more than {ROWS_MAX} rows")]
    Rows,
}

/// What the table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The level.
    pub level: Escalation,
    /// Number of the row that decided, from 1; 0 where none holds.
    pub row: usize,
    /// Numbers of the rows that could not hold because a signal is not reported.
    pub inactive: Vec<usize>,
}

impl Table {
    /// A table of these rows.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn new(rows: Vec<Row>) -> Result<Self, TableError> {
        if rows.len() > ROWS_MAX {
            return Err(TableError::Rows);
        }
        let rises = rows.iter().zip(rows.iter().skip(1)).position(|(above, below)| below.level > above.level);
        match rises {
            Some(above) => Err(TableError::Order { row: above + 2 }),
            None => Ok(Self { rows }),
        }
    }

    /// The eight rows of seed 001.
    pub fn seed() -> Self {
        use Signal::{Drift, ToolRisk, Uncertainty, Violations};
        let row = |conditions: &[(Signal, f64)], level| Row {
            conditions: conditions
                .iter()
                .map(|(signal, at_least)| Condition { signal: *signal, at_least: *at_least })
                .collect(),
            level,
        };
        Self {
            rows: vec![
                row(&[(Violations, 1.0)], Escalation::HardStop),
                row(&[(Drift, 0.8)], Escalation::HardStop),
                row(&[(Drift, 0.6), (Uncertainty, 0.4)], Escalation::HumanReview),
                row(&[(Drift, 0.5)], Escalation::SoftStop),
                row(&[(ToolRisk, 0.7)], Escalation::SoftStop),
                row(&[(Uncertainty, 0.4)], Escalation::Clarify),
                row(&[(Drift, 0.3)], Escalation::Warn),
                row(&[], Escalation::None),
            ],
        }
    }

    /// The rows in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The strictest row that holds, the first of those that are alike.
    pub fn decide(&self, signals: &Signals, scores: Scores) -> Outcome {
        let mut inactive = Vec::new();
        let mut decided: Option<(Escalation, usize)> = None;
        for (number, row) in self.rows.iter().enumerate().map(|(at, row)| (at + 1, row)) {
            if row.conditions.iter().any(|condition| signals.get(condition.signal).is_none()) {
                inactive.push(number);
                continue;
            }
            let holds = |condition: &Condition| {
                // A signal that is not a number fails closed: it counts as the highest value.
                signals
                    .get(condition.signal)
                    .is_some_and(|value| value.is_nan() || value >= condition.at_least)
            };
            if !row.conditions.iter().all(holds) {
                continue;
            }
            let level = row.level_under(scores);
            if decided.is_none_or(|(strictest, _)| level > strictest) {
                decided = Some((level, number));
            }
            // No row below is stricter than this one would be without the limit.
            if level == row.level {
                break;
            }
        }
        let (level, row) = decided.unwrap_or((Escalation::None, 0));
        Outcome { level, row, inactive }
    }

    /// The table with the thresholds of drift, uncertainty and tool risk scaled by [`Adaptive::factor`]. Always made
    /// from the base, so that adjusting twice is not adjusting more.
    #[must_use]
    pub fn adapted(&self, adaptive: &Adaptive) -> Self {
        let factor = adaptive.factor();
        let mut rows = self.rows.clone();
        for condition in rows.iter_mut().flat_map(|row| &mut row.conditions) {
            if condition.signal != Signal::Violations {
                condition.at_least *= factor;
            }
        }
        Self { rows }
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::seed()
    }
}

/// What thresholds adapt to. Each is 0 to 1; values outside are clamped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptive {
    /// The base sensitivity: thresholds are multiplied by 1.1 - s.
    pub sensitivity: f64,
    /// How risky the surroundings are: thresholds are multiplied by 1 - 0.3 r.
    pub context_risk: f64,
    /// Which part of the turns so far was at WARN or above: thresholds are multiplied by 1 - 0.2 h.
    pub history: f64,
}

impl Adaptive {
    /// What thresholds are multiplied by: 1.1 at most, 0.056 at least.
    pub fn factor(&self) -> f64 {
        let part = |value: f64| if value.is_nan() { 1.0 } else { value.clamp(0.0, 1.0) };
        (1.1 - part(self.sensitivity))
            * (1.0 - 0.3 * part(self.context_risk))
            * (1.0 - 0.2 * part(self.history))
    }
}

/// `[escalation]` of the bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EscalationSettings {
    /// The table.
    pub table: Table,
    /// Whether thresholds adapt, with the base sensitivity. Off unless the bundle says otherwise.
    pub adaptive: Option<f64>,
}

impl Escalation {
    /// All levels in rising order.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Warn, Self::Clarify, Self::SoftStop, Self::HumanReview, Self::HardStop];

    /// The verdict that a level asks for.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::None => Verdict::Allow,
            Self::Warn => Verdict::Warn,
            Self::Clarify => Verdict::Clarify,
            Self::SoftStop => Verdict::Pause,
            Self::HumanReview => Verdict::Review,
            Self::HardStop => Verdict::Halt,
        }
    }

    /// The seed's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Warn => "WARN",
            Self::Clarify => "CLARIFY",
            Self::SoftStop => "SOFT_STOP",
            Self::HumanReview => "HUMAN_REVIEW",
            Self::HardStop => "HARD_STOP",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signals(violations: u32, drift: f64, uncertainty: f64, tool_risk: f64) -> Signals {
        Signals { violations, drift, uncertainty: Some(uncertainty), tool_risk: Some(tool_risk) }
    }

    #[test]
    fn the_vectors_of_the_seed() {
        let vectors = [
            ("E1", signals(1, 0.0, 0.0, 0.0), Escalation::HardStop, 1),
            ("E2", signals(0, 0.8, 0.0, 0.0), Escalation::HardStop, 2),
            ("E3", signals(0, 0.79, 0.4, 0.0), Escalation::HumanReview, 3),
            ("E4", signals(0, 0.6, 0.39, 0.0), Escalation::SoftStop, 4),
            ("E5", signals(0, 0.5, 0.0, 0.0), Escalation::SoftStop, 4),
            ("E6", signals(0, 0.49, 0.0, 0.7), Escalation::SoftStop, 5),
            ("E7", signals(0, 0.4, 0.4, 0.0), Escalation::Clarify, 6),
            ("E8", signals(0, 0.3, 0.0, 0.0), Escalation::Warn, 7),
            ("E9", signals(0, 0.29, 0.0, 0.0), Escalation::None, 8),
        ];
        for (name, signals, level, row) in vectors {
            let outcome = Table::seed().decide(&signals, Scores::Stop);
            assert_eq!((outcome.level, outcome.row), (level, row), "{name}");
        }
    }

    #[test]
    fn scores_that_advise_clarify_at_most_and_hide_no_stricter_row() {
        for (signals, level, row) in [
            (signals(1, 1.0, 1.0, 1.0), Escalation::HardStop, 1),
            (signals(0, 1.0, 0.0, 0.0), Escalation::Clarify, 2),
            (signals(0, 0.7, 0.5, 0.0), Escalation::Clarify, 3),
            (signals(0, 0.5, 0.0, 0.0), Escalation::Clarify, 4),
            (signals(0, 1.0, 0.0, 0.7), Escalation::SoftStop, 5),
            (signals(0, 0.0, 0.4, 0.0), Escalation::Clarify, 6),
            (signals(0, 0.3, 0.0, 0.0), Escalation::Warn, 7),
            (signals(0, 0.0, 0.0, 0.0), Escalation::None, 8),
        ] {
            let outcome = Table::seed().decide(&signals, Scores::Advise);
            assert_eq!((outcome.level, outcome.row), (level, row), "{signals:?}");
        }
        let both = Row {
            conditions: vec![
                Condition { signal: Signal::Drift, at_least: 0.5 },
                Condition { signal: Signal::ToolRisk, at_least: 0.3 },
            ],
            level: Escalation::HumanReview,
        };
        assert_eq!(both.level_under(Scores::Advise), Escalation::HumanReview, "not alone");
        let always = Row { conditions: Vec::new(), level: Escalation::SoftStop };
        assert_eq!(always.level_under(Scores::Advise), Escalation::SoftStop, "on no score at all");
    }

    #[test]
    fn a_missing_signal_makes_its_rows_inactive() {
        let outcome = Table::seed().decide(&Signals { drift: 0.4, ..Signals::default() }, Scores::Stop);
        assert_eq!(outcome, Outcome { level: Escalation::Warn, row: 7, inactive: vec![3, 5, 6] });
        let nan = Signals { drift: f64::NAN, ..Signals::default() };
        assert_eq!(Table::seed().decide(&nan, Scores::Stop).level, Escalation::HardStop);
    }

    #[test]
    fn a_table_that_rises_is_refused() {
        let row = |level| Row { conditions: Vec::new(), level };
        let rising = vec![row(Escalation::Warn), row(Escalation::HardStop)];
        assert_eq!(Table::new(rising), Err(TableError::Order { row: 2 }));
        assert_eq!(Table::new(vec![row(Escalation::None); ROWS_MAX + 1]), Err(TableError::Rows));
        assert_eq!(Table::new(Table::seed().rows().to_vec()), Ok(Table::seed()));
    }

    #[test]
    fn adapting_starts_from_the_base_each_time() {
        let adaptive = Adaptive { sensitivity: 0.5, context_risk: 1.0, history: 0.0 };
        let (once, factor) = (Table::seed().adapted(&adaptive), adaptive.factor());
        assert!((factor - 0.42).abs() < 1e-12);
        assert_eq!(Table::seed().adapted(&adaptive), once);
        // The seed's formulas: 0.5 (1.1 - s) and 0.4 (1.1 - s).
        let calm = Table::seed().adapted(&Adaptive { sensitivity: 0.5, context_risk: 0.0, history: 0.0 });
        let threshold = |row: usize| calm.rows()[row - 1].conditions[0].at_least;
        assert!((threshold(4) - 0.30).abs() < 1e-12 && (threshold(6) - 0.24).abs() < 1e-12);
        assert!((threshold(1) - 1.0).abs() < 1e-12, "one violation is one violation");
    }

    #[test]
    fn levels_and_verdicts_belong_together() {
        for level in Escalation::ALL {
            assert_eq!(level.verdict().escalation(), level);
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
    }

    fn part() -> impl Strategy<Value = f64> {
        prop_oneof![0.0..=1.0, proptest::sample::select(vec![0.29, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])]
    }

    fn scores() -> impl Strategy<Value = Scores> {
        proptest::sample::select(vec![Scores::Advise, Scores::Stop])
    }

    proptest! {
        #[test]
        fn a_rising_signal_never_lowers_the_level(
            (v, d, u, t) in (0..3_u32, part(), part(), part()),
            (v2, d2, u2, t2) in (0..3_u32, part(), part(), part()),
            (s, r, h) in (part(), part(), part()), scores in scores(),
        ) {
            let table = Table::seed().adapted(&Adaptive { sensitivity: s, context_risk: r, history: h });
            let level = |signals: &Signals| table.decide(signals, scores).level;
            let low = level(&signals(v.min(v2), d.min(d2), u.min(u2), t.min(t2)));
            let high = level(&signals(v.max(v2), d.max(d2), u.max(u2), t.max(t2)));
            prop_assert!(low <= high);
            // To report a signal never lowers it either, and advice is never stricter.
            let silent = Signals { violations: v, drift: d, uncertainty: None, tool_risk: None };
            prop_assert!(level(&silent) <= level(&signals(v, d, u, t)));
            let stops = table.decide(&signals(v, d, u, t), Scores::Stop).level;
            prop_assert!(level(&signals(v, d, u, t)) <= stops);
        }

        #[test]
        fn a_rising_sensitivity_never_lowers_the_level(
            (v, d, u, t) in (0..2_u32, part(), part(), part()),
            (s, s2) in (part(), part()), (r, r2) in (part(), part()), (h, h2) in (part(), part()),
            scores in scores(),
        ) {
            let at = |s, r, h| {
                Table::seed().adapted(&Adaptive { sensitivity: s, context_risk: r, history: h })
                    .decide(&signals(v, d, u, t), scores).level
            };
            prop_assert!(at(s.min(s2), r.min(r2), h.min(h2)) <= at(s.max(s2), r.max(r2), h.max(h2)));
        }
    }
}
