//! What of an input is read for the scores, by what scores may do.
//!
//! Where they stop runs, all of it is. Where they advise, the user's own words are ([`own_words`]), without what stands in
//! quotation marks, and what is found in them is held against their length: a long text has more of everything.

use portcullis_core::bundle::Scores;

use super::learned::{Learned, Said};
use super::own::own_words;
use super::to_gate::order_to_gate;
use super::vocabulary::{Bits, Match, Stretch, Vocabulary};
use super::words::{Words, words};

/// Words of a text in which each match counts in full. In a longer one it counts by its share.
const WORDS_FULL: f64 = 80.0;
/// Words of the turns on which the learned score was trained, most of them. It sums up over more, by their square root.
const WORDS_LEARNED: f32 = 40.0;
/// What one input or call may add to drift: it takes several to come near a row of the table.
const STEP_MAX: f64 = 0.3;

/// What is read of an input.
pub(super) struct Spoken {
    pub(super) stretches: Vec<Stretch>,
    /// Risky words.
    pub(super) keywords: f64,
    /// For the learned score.
    pub(super) said: Said,
    /// What a match counts for.
    pub(super) share: f64,
    /// Where the gate is told to stop judging.
    pub(super) to_gate: Option<(usize, usize)>,
}

impl Spoken {
    pub(super) fn of(text: &str, all: &Words, vocabulary: &Vocabulary, scores: Scores) -> Self {
        let own = own_words(text);
        let to_gate = order_to_gate(&own);
        if scores == Scores::Stop {
            let (stretches, keywords) = vocabulary.stretches(all);
            return Self {
                stretches,
                keywords: f64::from(keywords),
                said: learned(text),
                share: 1.0,
                to_gate,
            };
        }
        let words = words(&own);
        let (mut stretches, keywords) = vocabulary.stretches(&words);
        stretches.iter_mut().for_each(|stretch| stretch.all = stretch.own);
        let count = u32::try_from(words.list.len()).unwrap_or(u32::MAX).max(1);
        let share = (WORDS_FULL / f64::from(count)).min(1.0);
        #[expect(clippy::cast_precision_loss, reason = "a number of words")]
        let tempered = (WORDS_LEARNED / count as f32).sqrt().min(1.0);
        let said = learned(&own);
        let said =
            Said { turn: said.turn.map(|sum| sum * tempered), before: said.before.map(|sum| sum * tempered) };
        Self { stretches, keywords: f64::from(keywords) * share, said, share, to_gate }
    }
}

fn learned(text: &str) -> Said {
    Learned::built_in().map(|learned| learned.read(text)).unwrap_or_default()
}

/// What is remembered of the learned score. Where it advises, a score that no pattern bears out is forgotten: a call some
/// turns later would be judged by it.
pub(super) fn remembered(scores: Scores, heard: Bits, matches: &[Match]) -> Bits {
    match scores {
        Scores::Advise if matches.is_empty() => 0,
        _ => heard,
    }
}

/// What a step adds to drift.
pub(super) fn step_under(scores: Scores, step: f64) -> f64 {
    match scores {
        Scores::Advise => step.min(STEP_MAX),
        Scores::Stop => step,
    }
}
