//! Folders of the suites of [`crate::trajectory`], as rows: as recorded, without the template around goals, and with
//! goals that nobody recorded.

use std::sync::Arc;

use super::data::Recorded;
use super::replay::Judge;
use super::table::{Cell, FIGURES, Row};
use crate::predictions::Predictions;
use crate::suite::EvalError;
use crate::trajectory::outline::{Group, Outline};
use crate::trajectory::splice::Place;
use crate::trajectory::suites::{self, Job, Name};
use crate::trajectory::switches::Switches;
use crate::trajectory::tally::Figure;

/// How the data is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// Not at all.
    Recorded,
    /// Of what was injected the goal alone is left: nothing poses as anything.
    WithoutTemplate,
    /// Goals that nobody recorded are put into runs without attack.
    Unseen(Place),
}

impl Arm {
    /// The arms of a suite.
    pub const fn of(suite: Name) -> &'static [Self] {
        match suite {
            Name::AgentDojo | Name::AgentDyn => &[
                Self::Recorded,
                Self::WithoutTemplate,
                Self::Unseen(Place::OwnLine),
                Self::Unseen(Place::MidSentence),
            ],
            Name::InjecAgent | Name::Asb | Name::Benign => &[Self::Recorded],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "",
            Self::WithoutTemplate => ", without template",
            Self::Unseen(Place::OwnLine) => ", unseen goals on their own line",
            Self::Unseen(Place::MidSentence) => ", unseen goals in mid sentence",
        }
    }
}

/// Figures of a folder under an arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Of the runs without attack.
    pub benign: Option<Row>,
    /// Of the attacks.
    pub attacks: Option<Row>,
    /// Runs that were judged.
    pub judged: usize,
    /// Records that were not.
    pub unread: usize,
}

/// Judges a folder.
///
/// # Errors
/// Those of [`suites::run`].
pub fn judge(folder: &Recorded, arm: Arm, judge: &Judge) -> Result<Rows, EvalError> {
    let job = Job {
        data: folder.data.clone(),
        definitions: None,
        settings: Arc::clone(&judge.bundle),
        switches: Switches::default(),
        without_template: arm == Arm::WithoutTemplate,
        splice: if let Arm::Unseen(place) = arm { Some(place) } else { None },
        limit: None,
        predictions: Predictions::none(),
        progress: &mut |_| {},
    };
    Ok(rows(folder, arm, &suites::run(folder.suite, job)?))
}

fn rows(folder: &Recorded, arm: Arm, outline: &Outline) -> Rows {
    let name = format!("{}{}", folder.name, arm.name());
    let row = |figures: [Figure; FIGURES]| {
        let figures = figures.map(|figure| cell(&outline.all, figure));
        let n = figures.iter().filter_map(Cell::sums).map(|(_, of)| of).max()?;
        let row = Row::new(name.clone(), usize::try_from(n).ok()?, figures);
        Some(Row { suite: Some(folder.suite.as_str()), ..row })
    };
    Rows {
        // The template changes attacks alone.
        benign: row([Figure::BenignRunsDenied, Figure::BenignRunsStopped])
            .filter(|_| arm != Arm::WithoutTemplate),
        attacks: row([Figure::StoppedByDenial, Figure::Stopped]),
        judged: outline.judged,
        unread: outline.skipped.iter().map(|skipped| skipped.count).sum(),
    }
}

fn cell(group: &Group, figure: Figure) -> Cell {
    group.figures.get(figure).map_or(Cell::Empty, |ratio| Cell::Clustered(ratio.clone()))
}
