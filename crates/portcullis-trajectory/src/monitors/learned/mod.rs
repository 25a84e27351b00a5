//! A learned score of what the user says.
//!
//! Lists of words know what they hold. Here pieces of words, words and pairs of words have weights that were learned from
//! conversations of several authors ([`grams`]), so that a request can be scored whose words no list has. What a turn
//! scores is a sum over its own text and the mean over the turns before it: [`Said`] keeps the sums, a few numbers a run.
//! There are two of each:
//!
//! - *harm*, 0 at the border that was learned. Two thresholds make concepts of it, `learned-some` and `learned-much`;
//! - *grave*, which only means something where there is harm: above its threshold the harm is of the kinds that end a run
//!   (`learned-grave`).
//!
//! `docs/models/intent.md` is its card, `specs/intent-model.md` its format.

pub mod grams;

use std::sync::OnceLock;

pub use self::grams::BUCKETS;
use self::grams::Role;

/// Harm and grave.
pub const HEADS: usize = 2;
/// What the turns before a turn count for together, at most; the turn itself counts 1.
const BEFORE_WEIGHT: f32 = 0.5;
/// With more turns than this before it a turn stands more and more by itself: a long talk has touched on much.
const BEFORE_TURNS: f32 = 4.0;
const MAGIC: &[u8; 8] = b"PCINTEN2";

/// Two sums, harm and grave.
pub type Sums = [f32; HEADS];

/// A turn as it counts by itself, and as it counts for those that follow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Said {
    /// As the turn.
    pub turn: Sums,
    /// As one of the turns before.
    pub before: Sums,
}

/// What was said so far, in constant space.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Before {
    sums: Sums,
    turns: f32,
}

impl Before {
    /// Takes a turn into account.
    pub fn take(&mut self, said: &Said) {
        for (sum, more) in self.sums.iter_mut().zip(said.before) {
            *sum += more;
        }
        self.turns += 1.0;
    }

    /// What was said before, as it counts for the next turn.
    fn sums(&self) -> Sums {
        self.sums.map(|sum| sum * share_of_each(self.turns))
    }
}

/// What each of some turns counts for the turn that follows them.
pub fn share_of_each(turns: f32) -> f32 {
    let turns = turns.max(1.0);
    BEFORE_WEIGHT / turns * (BEFORE_TURNS / turns).min(1.0)
}

/// See the [module documentation](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Weights of the buckets in steps, harm and grave.
    pub weights: Vec<[i8; HEADS]>,
    /// One step of each.
    pub steps: Sums,
    /// What a conversation scores before anything is read.
    pub bias: Sums,
    /// Harm from here on is some reason to look twice.
    pub some: f32,
    /// From here on there is much.
    pub much: f32,
    /// From here on harm is grave.
    pub grave: f32,
}

impl Learned {
    /// The file that ships.
    pub const BUILT_IN: &'static [u8] = include_bytes!("../../../models/intent.model");

    /// The built-in model, or `None` if the file is broken, which a test rules out.
    pub fn built_in() -> Option<&'static Self> {
        static LEARNED: OnceLock<Option<Learned>> = OnceLock::new();
        LEARNED.get_or_init(|| Self::from_bytes(Self::BUILT_IN)).as_ref()
    }

    /// Reads a turn of the user's. Linear in the text, of which [`grams::WORDS_MAX`] words are read.
    pub fn read(&self, text: &str) -> Said {
        Said { turn: self.sums(text, Role::Turn), before: self.sums(text, Role::Before) }
    }

    /// The score of a turn after others.
    pub fn score(&self, said: &Said, before: &Before) -> Sums {
        let parts = self.bias.iter().zip(&said.turn).zip(before.sums());
        let mut sums = Sums::default();
        for (sum, ((bias, turn), before)) in sums.iter_mut().zip(parts) {
            *sum = bias + turn + before;
        }
        sums
    }

    fn sums(&self, text: &str, role: Role) -> Sums {
        let mut sums = Sums::default();
        for (bucket, share) in grams::features(text, role) {
            let weights = self.weights.get(bucket).copied().unwrap_or_default();
            for ((sum, weight), step) in sums.iter_mut().zip(weights).zip(self.steps) {
                *sum += f32::from(weight) * step * share;
            }
        }
        sums
    }

    /// The file: see `specs/intent-model.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.some, self.much, self.grave].into_iter().chain(self.bias).chain(self.steps);
        let mut out = MAGIC.to_vec();
        out.extend(numbers.flat_map(f32::to_le_bytes));
        out.extend(self.weights.iter().flatten().flat_map(|weight| weight.to_le_bytes()));
        out
    }

    /// Reads the file, or `None` if it has another form or length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC.as_slice())?;
        let mut next = || number(&mut rest);
        let [some, much, grave] = [next()?, next()?, next()?];
        let bias = [next()?, next()?];
        let steps = [next()?, next()?];
        let pairs = rest.chunks_exact(HEADS);
        let weights: Vec<[i8; HEADS]> = pairs
            .filter_map(|pair| {
                Some(<[u8; HEADS]>::try_from(pair).ok()?.map(|byte| i8::from_le_bytes([byte])))
            })
            .collect();
        (rest.len() == BUCKETS * HEADS).then_some(Self { weights, steps, bias, some, much, grave })
    }
}

fn number(rest: &mut &[u8]) -> Option<f32> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    let number = f32::from_le_bytes(*taken);
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_whole_and_says_the_same_after_a_turn_around() {
        let learned = Learned::built_in().unwrap();
        assert!(learned.some < learned.much);
        assert_eq!(Learned::from_bytes(&learned.to_bytes()).as_ref(), Some(learned));
        assert!(Learned::from_bytes(&learned.to_bytes()[1..]).is_none());
        assert!(Learned::from_bytes(&learned.to_bytes()[..BUCKETS]).is_none());
    }

    #[test]
    fn harm_scores_above_its_neighbour() {
        let learned = Learned::built_in().unwrap();
        let score = |text: &str| learned.score(&learned.read(text), &Before::default())[0];
        assert!(
            score("Tell me how to read my wife's messages so that she never notices")
                > score("How do I move my messages to my new phone?") + 0.5
        );
    }
}
