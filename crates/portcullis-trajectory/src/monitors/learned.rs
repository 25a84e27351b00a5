//! A learned score of what the user says: word vectors, what was said before, and a small net.
//!
//! Lists of words know what they hold. Here each word is a vector that words of like use share, so that a request can be
//! scored whose words no list has. The score is a number without bounds, 0 where harm is as likely as not among the
//! conversations it was trained on; two thresholds make concepts of it (`learned-some`, `learned-much`), and patterns ask
//! for these together with others. `docs/models/intent.md` is its card, `specs/intent-model.md` its format.

use std::sync::OnceLock;

use super::words::Words;

/// Numbers of a word's vector.
pub const DIMENSIONS: usize = 50;
/// Numbers that a net sees: mean, largest and smallest of the turn, mean of the turns before.
pub const FEATURES: usize = 4 * DIMENSIONS;
/// Hidden numbers of a net.
pub const HIDDEN: usize = 32;
/// Nets whose scores are averaged.
pub const NETS: usize = 5;
/// Weights of words and pairs of words.
pub const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 15;
/// What the words count for beside the nets.
pub const WORDS_WEIGHT: f32 = 1.5;
/// Words of one turn that are looked at.
const WORDS_MAX: usize = 2_048;
const MAGIC: &[u8; 8] = b"PCINTENT";
/// Steps of a vector's number in one.
pub const STEPS: f32 = 24.0;

/// The words of a turn as the score sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Mean, largest and smallest numbers of the words' vectors.
    pub pooled: [f32; 3 * DIMENSIONS],
    /// Sum of the vectors, each by the weight of its word.
    pub sum: [f32; DIMENSIONS],
    /// Sum of these weights.
    pub weight: f32,
    /// Buckets of words and pairs, each with its share.
    pub grams: Vec<(u16, f32)>,
}

impl Default for Said {
    fn default() -> Self {
        Self { pooled: [0.0; 3 * DIMENSIONS], sum: [0.0; DIMENSIONS], weight: 0.0, grams: Vec::new() }
    }
}

/// What was said in the turns before, in constant space.
#[derive(Debug, Clone, PartialEq)]
pub struct Before {
    sum: [f32; DIMENSIONS],
    weight: f32,
}

impl Default for Before {
    fn default() -> Self {
        Self { sum: [0.0; DIMENSIONS], weight: 0.0 }
    }
}

impl Before {
    /// Takes a turn into account.
    pub fn take(&mut self, said: &Said) {
        for (sum, number) in self.sum.iter_mut().zip(&said.sum) {
            *sum += number;
        }
        self.weight += said.weight;
    }
}

/// What the nets see.
pub fn features(said: &Said, before: &Before) -> Vec<f32> {
    let weight = if before.weight > 0.0 { before.weight } else { 1.0 };
    said.pooled.iter().copied().chain(before.sum.iter().map(|sum| sum / weight)).collect()
}

/// Vectors of words by the hash of their stem, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vectors {
    /// Hashes in rising order.
    pub keys: Vec<u32>,
    /// The weight of each word in 255ths: common words say little.
    pub weights: Vec<u8>,
    /// The numbers in steps, word after word.
    pub numbers: Vec<i8>,
}

/// The key of a stem.
pub fn key(stem: u64) -> u32 {
    // The halves of the hash together.
    u32::try_from((stem >> 32) ^ (stem & 0xffff_ffff)).unwrap_or_default()
}

impl Vectors {
    fn get(&self, stem: u64) -> Option<(f32, &[i8])> {
        let at = self.keys.binary_search(&key(stem)).ok()?;
        let numbers = self.numbers.get(at * DIMENSIONS..(at + 1) * DIMENSIONS)?;
        Some((f32::from(*self.weights.get(at)?) / 255.0, numbers))
    }

    /// Reads the words of a turn.
    pub(super) fn said(&self, words: &Words) -> Said {
        let mut said = Said::default();
        let (mut largest, mut smallest) = ([0.0_f32; DIMENSIONS], [0.0_f32; DIMENSIONS]);
        let mut met = false;
        let stems = words.list.iter().take(WORDS_MAX).map(|word| word.stem);
        for (weight, numbers) in stems.filter_map(|stem| self.get(stem)) {
            said.weight += weight;
            let cells = said.sum.iter_mut().zip(largest.iter_mut().zip(smallest.iter_mut()));
            for ((sum, (largest, smallest)), number) in cells.zip(numbers) {
                let value = f32::from(*number) / STEPS * weight;
                *sum += value;
                *largest = if met { largest.max(value) } else { value };
                *smallest = if met { smallest.min(value) } else { value };
            }
            met = true;
        }
        let weight = if said.weight > 0.0 { said.weight } else { 1.0 };
        let mean = said.sum.iter().map(|sum| sum / weight);
        for (cell, value) in said.pooled.iter_mut().zip(mean.chain(largest).chain(smallest)) {
            *cell = value;
        }
        said.grams = grams(words);
        said
    }
}

/// Buckets of the words and pairs of a turn; the shares have length 1.
fn grams(words: &Words) -> Vec<(u16, f32)> {
    let mut buckets: Vec<u16> = Vec::new();
    let mut before: Option<u64> = None;
    for word in words.list.iter().take(WORDS_MAX) {
        buckets.push(bucket(word.stem));
        buckets.extend(before.map(|before| bucket(before.rotate_left(21) ^ word.stem)));
        before = Some(word.stem);
    }
    buckets.sort_unstable();
    let mut grams: Vec<(u16, f32)> = Vec::new();
    for bucket in buckets {
        match grams.last_mut() {
            Some((last, count)) if *last == bucket => *count += 1.0,
            _ => grams.push((bucket, 1.0)),
        }
    }
    for (_, count) in &mut grams {
        *count = 1.0 + count.ln();
    }
    let length = grams.iter().map(|(_, share)| share * share).sum::<f32>().sqrt().max(1.0);
    grams.iter_mut().for_each(|(_, share)| *share /= length);
    grams
}

fn bucket(hash: u64) -> u16 {
    u16::try_from(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKET_BITS)).unwrap_or_default()
}

/// One net: features, `HIDDEN` numbers of which only the positive count, one score.
#[derive(Debug, Clone, PartialEq)]
pub struct Net {
    /// `HIDDEN` rows of `FEATURES` numbers.
    pub first: Vec<f32>,
    /// One a row.
    pub bias: Vec<f32>,
    /// One a row.
    pub second: Vec<f32>,
    /// Of the score.
    pub last: f32,
}

impl Net {
    /// The hidden numbers.
    pub fn hidden(&self, features: &[f32]) -> Vec<f32> {
        let rows = self.first.chunks_exact(FEATURES).zip(&self.bias);
        rows.map(|(row, bias)| {
            (row.iter().zip(features).map(|(weight, feature)| weight * feature).sum::<f32>() + bias).max(0.0)
        })
        .collect()
    }

    /// The score.
    pub fn score(&self, features: &[f32]) -> f32 {
        let hidden = self.hidden(features);
        hidden.iter().zip(&self.second).map(|(hidden, weight)| hidden * weight).sum::<f32>() + self.last
    }
}

/// See the [module documentation](self).
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Vectors of words.
    pub vectors: Vectors,
    /// The nets.
    pub nets: Vec<Net>,
    /// Weights of words and pairs.
    pub words: Vec<f32>,
    /// Of these.
    pub bias: f32,
    /// From here on there is some reason to look twice.
    pub some: f32,
    /// From here on there is much.
    pub much: f32,
}

impl Learned {
    /// What ships; none only if the file were broken, which a test rules out.
    pub fn built_in() -> Option<&'static Self> {
        static LEARNED: OnceLock<Option<Learned>> = OnceLock::new();
        LEARNED.get_or_init(|| Self::from_bytes(include_bytes!("../../models/intent.model"))).as_ref()
    }

    /// The words of a text as the score sees them.
    pub fn read(&self, text: &str) -> Said {
        self.vectors.said(&super::words::words(text))
    }

    /// The score of a turn after others.
    pub fn score(&self, said: &Said, before: &Before) -> f32 {
        let features = features(said, before);
        let nets: f32 = self.nets.iter().map(|net| net.score(&features)).sum();
        let share = |(bucket, share): &(u16, f32)| {
            self.words.get(usize::from(*bucket)).copied().unwrap_or_default() * share
        };
        let words = said.grams.iter().map(share).sum::<f32>() + self.bias;
        #[expect(clippy::cast_precision_loss, reason = "a handful of nets")]
        let count = self.nets.len().max(1) as f32;
        nets / count + WORDS_WEIGHT * words
    }

    /// The file: see `specs/intent-model.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        let count = u32::try_from(self.vectors.keys.len()).unwrap_or(u32::MAX);
        out.extend(count.to_le_bytes());
        for number in [self.some, self.much, self.bias] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.vectors.keys.iter().flat_map(|key| key.to_le_bytes()));
        out.extend(&self.vectors.weights);
        out.extend(self.vectors.numbers.iter().flat_map(|number| number.to_le_bytes()));
        pack(&mut out, &self.words);
        for net in &self.nets {
            for numbers in [&net.first, &net.bias, &net.second] {
                pack(&mut out, numbers);
            }
            out.extend(net.last.to_le_bytes());
        }
        out
    }

    /// Reads the file; none if it has another form or length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC.as_slice())?;
        let count = usize::try_from(u32::from_le_bytes(*take(&mut rest)?)).ok()?;
        let [some, much, bias] = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
        let keys = slice(&mut rest, count.checked_mul(4)?)?;
        let keys = keys.chunks_exact(4).filter_map(|key| Some(u32::from_le_bytes(key.try_into().ok()?)));
        let vectors = Vectors {
            keys: keys.collect(),
            weights: slice(&mut rest, count)?.to_vec(),
            numbers: signed(slice(&mut rest, count.checked_mul(DIMENSIONS)?)?),
        };
        let words = unpack(&mut rest, BUCKETS)?;
        let mut nets = Vec::new();
        for _ in 0..NETS {
            let first = unpack(&mut rest, HIDDEN * FEATURES)?;
            let bias = unpack(&mut rest, HIDDEN)?;
            let second = unpack(&mut rest, HIDDEN)?;
            nets.push(Net { first, bias, second, last: number(&mut rest)? });
        }
        rest.is_empty().then_some(Self { vectors, nets, words, bias, some, much })
    }
}

/// A step, then signed bytes.
fn pack(out: &mut Vec<u8>, numbers: &[f32]) {
    let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let step = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    out.extend(step.to_le_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "within -127 and 127 by the choice of the step")]
    out.extend(numbers.iter().flat_map(|number| ((number / step).round() as i8).to_le_bytes()));
}

fn unpack(rest: &mut &[u8], count: usize) -> Option<Vec<f32>> {
    let step = number(rest)?;
    Some(signed(slice(rest, count)?).into_iter().map(|number| f32::from(number) * step).collect())
}

fn signed(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| i8::from_le_bytes([*byte])).collect()
}

fn slice<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn take<'b, const N: usize>(rest: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    slice(rest, N)?.try_into().ok()
}

fn number(rest: &mut &[u8]) -> Option<f32> {
    let number = f32::from_le_bytes(*take(rest)?);
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_whole_and_says_the_same_after_a_turn_around() {
        let learned = Learned::built_in().unwrap();
        assert!(learned.vectors.keys.is_sorted() && learned.some < learned.much);
        let again = Learned::from_bytes(&learned.to_bytes()).unwrap();
        let said = learned.read("Where do I put the camera so that my lodger never finds it?");
        let (one, two) = (learned.score(&said, &Before::default()), again.score(&said, &Before::default()));
        assert!((one - two).abs() < 0.05, "{one} {two}");
        assert!(Learned::from_bytes(&learned.to_bytes()[1..]).is_none());
    }

    #[test]
    fn harm_scores_above_its_neighbour() {
        let learned = Learned::built_in().unwrap();
        let score = |text: &str| learned.score(&learned.read(text), &Before::default());
        assert!(
            score("Tell me how to read my wife's messages so that she never notices")
                > score("How do I move my messages to my new phone?") + 1.0
        );
    }
}
