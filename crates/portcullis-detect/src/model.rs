//! The small linear model: one signed byte a bucket, a bias, and the thresholds that calibration set.
//!
//! The score of a sentence is `bias + scale * sum / sqrt(n)`: the sum of the weights of its `n` features, tempered by
//! their number so that long sentences are not louder than short ones. The format of the file is
//! `specs/detector-model.md`.

use std::fmt;

use ring::digest::{SHA256, digest};

use crate::features::features;

/// What a model was trained to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Head {
    /// For what tools return: sentences that tell the reader to do something.
    Order,
    /// For what users write: sentences that try to change the rules. A user's prompt is an order by nature, so the
    /// other head would flag it.
    Override,
}

impl Head {
    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Override => "override",
        }
    }

    /// The head of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Order, Self::Override].into_iter().find(|head| head.name() == name)
    }

    fn code(self) -> u8 {
        match self {
            Self::Order => 1,
            Self::Override => 2,
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What is wrong with the file of a model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It does not begin like one.
    #[error("no detector model: it does not begin with `PCDETECT`")]
    Magic,
    /// A version that this program does not know.
    #[error("version {0} of detector models is not known here; this program reads version {VERSION}")]
    Version(u16),
    /// A field that has no such value.
    #[error("the header's {0} has no such value")]
    Header(&'static str),
    /// Too short or too long for what its header says.
    #[error("the file has {found} bytes; its header asks for {expected}")]
    Length {
        /// Bytes that the header asks for.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The checksum at its end does not fit.
    #[error("the checksum does not fit: the file was changed or cut")]
    Checksum,
}

/// What a text has to score more for each factor of *e* in the number of its sentences. They are alike, being of one text,
/// so it is less than the whole logarithm.
const CHANCES: f32 = 0.3;
const MAGIC: &[u8; 8] = b"PCDETECT";
const VERSION: u16 = 1;
const HEADER: usize = 64;
const CHECKSUM: usize = 32;
/// Buckets are 2 to a power between these.
const BITS: std::ops::RangeInclusive<u8> = 8..=20;
/// Buckets of a model that is trained now, as a power of two.
pub(crate) const TRAINED_BITS: u8 = 16;

/// A linear model with its thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    head: Head,
    bits: u8,
    bias: f32,
    scale: f32,
    threshold: f32,
    grow: f32,
    fpr: f32,
    recipe: [u8; 32],
    weights: Vec<i8>,
}

impl Model {
    /// A model of trained weights, quantised to one byte each. Thresholds are infinite until it is calibrated: it flags
    /// nothing.
    pub(crate) fn quantised(head: Head, bits: u8, bias: f32, weights: &[f32], recipe: [u8; 32]) -> Self {
        let squares: f32 = weights.iter().map(|weight| weight * weight).sum();
        let used = weights.iter().filter(|weight| **weight != 0.0).count();
        // Few weights are large; cutting them at some deviations leaves the many small ones their digits.
        const DEVIATIONS: f32 = 10.0;
        let largest = weights.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
        let limit = ((squares / count(used.max(1))).sqrt() * DEVIATIONS).min(largest).max(f32::MIN_POSITIVE);
        let scale = limit / 127.0;
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a signed byte; casting saturates")]
        let weights =
            weights.iter().map(|weight| (weight / scale).round().clamp(-127.0, 127.0) as i8).collect();
        let (threshold, grow, fpr) = (f32::INFINITY, f32::INFINITY, 0.0);
        Self { head, bits, bias, scale, threshold, grow, fpr, recipe, weights }
    }

    /// What it was trained for.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The score from which on a sentence is flagged; infinite before calibration.
    #[must_use]
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// The score from which on a sentence beside a flagged one belongs to it.
    #[must_use]
    pub fn grow(&self) -> f32 {
        self.grow
    }

    /// What a sentence of a text of so many has to score beyond the threshold. A long text has as many chances to be
    /// flagged as sentences; the logarithm of their number is what that adds to a score that is the logarithm of odds.
    /// Inputs are judged as a whole; of an observation each sentence stands for itself.
    #[must_use]
    pub fn allowance(&self, sentences: usize) -> f32 {
        match self.head {
            Head::Order => 0.0,
            Head::Override => count(sentences.max(1)).ln() * CHANCES,
        }
    }

    /// The share of innocent texts that calibration allowed to be flagged.
    #[must_use]
    pub fn fpr(&self) -> f32 {
        self.fpr
    }

    /// The digest of what it was trained on, and how.
    #[must_use]
    pub fn recipe(&self) -> &[u8; 32] {
        &self.recipe
    }

    /// The same with other thresholds.
    #[must_use]
    pub fn with_thresholds(mut self, threshold: f32, grow: f32, fpr: f32) -> Self {
        (self.threshold, self.grow, self.fpr) = (threshold, grow, fpr);
        self
    }

    /// The score of a sentence in normal form (see [`crate::normalise`]): the logarithm of its odds, as trained.
    #[must_use]
    pub fn score(&self, normal: &str) -> f32 {
        let shift = 32 - u32::from(self.bits);
        let weights = self.weights.as_slice();
        // No text that is read is long enough to bring either to its limit.
        let (mut sum, mut seen) = (0_i64, 0_usize);
        features(normal, |hash| {
            let bucket = usize::try_from(hash >> shift).unwrap_or_default();
            sum = sum.wrapping_add(weights.get(bucket).copied().map_or(0, i64::from));
            seen = seen.wrapping_add(1);
        });
        #[expect(clippy::cast_precision_loss, reason = "a sum of bytes over one sentence is far below 2^24")]
        let sum = sum as f32;
        self.bias + self.scale * sum / count(seen.max(1)).sqrt()
    }

    /// The file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + self.weights.len() + CHECKSUM);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(self.head.code());
        out.push(self.bits);
        for number in [self.bias, self.scale, self.threshold, self.grow, self.fpr] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.recipe);
        out.extend(self.weights.iter().flat_map(|weight| weight.to_le_bytes()));
        let checksum = digest(&SHA256, &out);
        out.extend_from_slice(checksum.as_ref());
        out
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It is no model, one of another version, or was changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let body = bytes.strip_prefix(MAGIC).ok_or(ModelError::Magic)?;
        let (version, body) = body.split_first_chunk::<2>().ok_or(ModelError::Magic)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(ModelError::Version(version));
        }
        let (&[head, bits], body) = body.split_first_chunk::<2>().ok_or(ModelError::Header("head"))?;
        let head = [Head::Order, Head::Override]
            .into_iter()
            .find(|known| known.code() == head)
            .ok_or(ModelError::Header("head"))?;
        if !BITS.contains(&bits) {
            return Err(ModelError::Header("number of buckets"));
        }
        let expected = HEADER + (1 << bits) + CHECKSUM;
        if bytes.len() != expected {
            return Err(ModelError::Length { expected, found: bytes.len() });
        }
        let (content, checksum) = bytes.split_at_checked(expected - CHECKSUM).ok_or(ModelError::Checksum)?;
        if digest(&SHA256, content).as_ref() != checksum {
            return Err(ModelError::Checksum);
        }
        let mut body = body;
        let mut number = || {
            let (number, rest) = body.split_first_chunk::<4>()?;
            body = rest;
            Some(f32::from_le_bytes(*number)).filter(|number| !number.is_nan())
        };
        let mut field = |name| number().ok_or(ModelError::Header(name));
        let (bias, scale) = (field("bias")?, field("scale")?);
        let (threshold, grow, fpr) = (field("threshold")?, field("threshold of growth")?, field("rate")?);
        let (recipe, body) = body.split_first_chunk::<32>().ok_or(ModelError::Header("recipe"))?;
        let weights = body.get(..1 << bits).ok_or(ModelError::Checksum)?;
        let weights = weights.iter().map(|byte| i8::from_le_bytes([*byte])).collect();
        Ok(Self { head, bits, bias, scale, threshold, grow, fpr, recipe: *recipe, weights })
    }
}

/// A score as a probability.
#[must_use]
pub fn probability(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}

#[expect(clippy::cast_precision_loss, reason = "numbers of features and weights are far below 2^24")]
pub(crate) fn count(number: usize) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let weights: Vec<f32> = (0..1_u16 << 8).map(|at| (f32::from(at) - 128.0) / 64.0).collect();
        Model::quantised(Head::Order, 8, -0.5, &weights, [7; 32]).with_thresholds(1.5, 0.5, 0.01)
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let model = model();
        assert_eq!(Model::from_bytes(&model.to_bytes()), Ok(model));
    }

    #[test]
    fn a_file_that_was_changed_or_is_another_is_refused() {
        let good = model().to_bytes();
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Model::from_bytes(&bad).is_err(), "{at}");
        }
        assert_eq!(Model::from_bytes(b"PK"), Err(ModelError::Magic));
        assert!(matches!(Model::from_bytes(good.get(..100).unwrap()), Err(ModelError::Length { .. })));
        let mut later = good;
        later[8] = 9;
        assert_eq!(Model::from_bytes(&later), Err(ModelError::Version(9)));
    }

    #[test]
    fn length_is_tempered_and_nothing_scores_the_bias() {
        let model = model();
        assert_eq!(model.score(""), -0.5);
        assert!(probability(0.0) > 0.49 && probability(9.0) > 0.99);
    }
}
