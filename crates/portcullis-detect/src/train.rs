//! Training and calibration: from labelled texts to a model, the same every time.
//!
//! Averaged stochastic gradient descent on the logistic loss, in an order that a fixed seed shuffles; both labels weigh
//! the same however many texts they have. Nothing is drawn from outside, so the same texts give the same file.

use std::collections::BTreeSet;

use ring::digest::{Context, SHA256};

use crate::features::features;
use crate::leaves::leaves;
use crate::model::{Head, Model, TRAINED_BITS, count, probability};
use crate::normalise::normalise;
use crate::sentences::sentences;

/// One labelled text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The text: a sentence or several. Every sentence gets the label.
    pub text: String,
    /// Whether it is what the head is to find.
    pub label: bool,
}

/// Why there is no model or threshold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// Both labels are needed.
    #[error("there are {with} texts with the label and {without} without; both are needed")]
    OneLabel {
        /// Texts with the label.
        with: usize,
        /// Texts without.
        without: usize,
    },
    /// More texts than are read.
    #[error("more than {EXAMPLES} texts; leave some out")]
    TooMany,
    /// The rate asked for is finer than the texts can show.
    #[error("{innocent} innocent sentences or texts cannot show a rate that low; {needed} are needed")]
    TooFew {
        /// Innocent texts that there are.
        innocent: usize,
        /// Innocent texts that the rate needs.
        needed: usize,
    },
    /// A rate is a number between 0 and 1.
    #[error("a false-positive rate lies between 0 and 1")]
    Rate,
}

/// Texts of one training.
pub const EXAMPLES: usize = 4_000_000;
const EPOCHS: usize = 12;
const RATE: f32 = 0.5;
/// What a weight loses at the end of an epoch.
const SHRINK: f32 = 0.02;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// A neighbour of a flagged sentence may be this many times as common among innocent texts.
const GROWTH: f64 = 10.0;

/// Words of a sentence that is judged alone; a shorter one says nothing.
const WORDS: usize = 3;

/// The sentences of a text as the detector sees them, in normal form.
fn units(text: &str) -> Vec<String> {
    let mut units = Vec::new();
    for leaf in &leaves(text) {
        let parts = sentences(&leaf.text).filter_map(|range| leaf.text.get(range));
        let long = parts.filter(|part| part.split_whitespace().nth(WORDS - 1).is_some());
        units.extend(long.map(|part| normalise(part).text));
    }
    units
}

struct Sample {
    buckets: Vec<u32>,
    label: bool,
}

/// Trains a model. `progress` is called after each epoch with how many are done and how many there are.
///
/// # Errors
/// One of the labels has no text, or there are too many texts.
pub fn train(
    head: Head,
    examples: &[Example],
    mut progress: impl FnMut(usize, usize),
) -> Result<Model, TrainError> {
    if examples.len() > EXAMPLES {
        return Err(TrainError::TooMany);
    }
    let mut recipe = Context::new(&SHA256);
    let settings = format!("portcullis detect 1 {head} {TRAINED_BITS} {EPOCHS} {RATE} {SHRINK} {SEED}\n");
    recipe.update(settings.as_bytes());
    let mut samples = Vec::new();
    let mut seen = BTreeSet::new();
    for example in examples {
        recipe.update(&[u8::from(example.label)]);
        recipe.update(&u64::try_from(example.text.len()).unwrap_or(u64::MAX).to_le_bytes());
        recipe.update(example.text.as_bytes());
        for normal in units(&example.text) {
            let mut buckets = Vec::new();
            features(&normal, |hash| buckets.push(hash >> (32 - u32::from(TRAINED_BITS))));
            if !buckets.is_empty() && seen.insert((example.label, normal)) {
                samples.push(Sample { buckets, label: example.label });
            }
        }
    }
    let with = samples.iter().filter(|sample| sample.label).count();
    let without = samples.len() - with;
    if with == 0 || without == 0 {
        return Err(TrainError::OneLabel { with, without });
    }
    let mut state = Descent::new(
        count(samples.len()) / (2.0 * count(with)),
        count(samples.len()) / (2.0 * count(without)),
    );
    let mut order: Vec<usize> = (0..samples.len()).collect();
    let mut random = SEED;
    for epoch in 0..EPOCHS {
        shuffle(&mut order, &mut random);
        for at in &order {
            if let Some(sample) = samples.get(*at) {
                state.step(sample, epoch);
            }
        }
        state.end_epoch(epoch);
        progress(epoch + 1, EPOCHS);
    }
    let (bias, weights) = state.average();
    let mut hash = [0; 32];
    hash.copy_from_slice(recipe.finish().as_ref());
    Ok(Model::quantised(head, TRAINED_BITS, bias, &weights, hash))
}

/// The weights while they descend, and the sum of what they were at the ends of the later epochs.
struct Descent {
    weights: Vec<f32>,
    bias: f32,
    summed: Vec<f32>,
    summed_bias: f32,
    epochs: f32,
    with: f32,
    without: f32,
}

impl Descent {
    fn new(with: f32, without: f32) -> Self {
        let zeros = vec![0.0; 1 << TRAINED_BITS];
        Self {
            weights: zeros.clone(),
            bias: 0.0,
            summed: zeros,
            summed_bias: 0.0,
            epochs: 0.0,
            with,
            without,
        }
    }

    fn step(&mut self, sample: &Sample, epoch: usize) {
        let value = 1.0 / count(sample.buckets.len()).sqrt();
        let buckets = || sample.buckets.iter().filter_map(|bucket| usize::try_from(*bucket).ok());
        let sum: f32 = buckets().filter_map(|bucket| self.weights.get(bucket)).sum();
        let wanted = if sample.label { 1.0 } else { 0.0 };
        let weight = if sample.label { self.with } else { self.without };
        let error = wanted - probability(self.bias + sum * value);
        let step = RATE * weight * error / (1.0 + count(epoch));
        for bucket in buckets() {
            if let Some(weight) = self.weights.get_mut(bucket) {
                *weight += step * value;
            }
        }
        self.bias += step * 0.1;
    }

    fn end_epoch(&mut self, epoch: usize) {
        for weight in &mut self.weights {
            *weight *= 1.0 - SHRINK;
        }
        // The first half wanders; the mean of the second is steadier than any of it.
        if epoch >= EPOCHS / 2 {
            for (sum, weight) in self.summed.iter_mut().zip(&self.weights) {
                *sum += weight;
            }
            self.summed_bias += self.bias;
            self.epochs += 1.0;
        }
    }

    fn average(mut self) -> (f32, Vec<f32>) {
        for sum in &mut self.summed {
            *sum /= self.epochs;
        }
        (self.summed_bias / self.epochs, self.summed)
    }
}

/// Puts `order` into another order, which depends on nothing but `random`.
fn shuffle(order: &mut [usize], random: &mut u64) {
    for last in (1..order.len()).rev() {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let range = u64::try_from(last + 1).unwrap_or(u64::MAX);
        let other = usize::try_from(*random % range).unwrap_or_default();
        order.swap(last, other);
    }
}

/// What calibration found.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The model with its thresholds.
    pub model: Model,
    /// What is innocent, sentences or texts, and how many of them the threshold flags.
    pub innocent: (usize, usize),
    /// What is to be found, and how many of them are flagged.
    pub wanted: (usize, usize),
}

/// The highest score of the sentences of a text less what its length is allowed, as the detector would judge it.
#[must_use]
pub fn text_score(model: &Model, text: &str) -> f32 {
    let units = units(text);
    let highest = units.iter().map(|unit| model.score(unit)).fold(f32::NEG_INFINITY, f32::max);
    highest - model.allowance(units.len())
}

/// The scores that a threshold is held against: of an observation every sentence, of an input the highest.
fn scores(model: &Model, text: &str) -> Vec<f32> {
    match model.head() {
        Head::Order => units(text).iter().map(|unit| model.score(unit)).collect(),
        Head::Override => vec![text_score(model, text)],
    }
}

/// Sets the thresholds of a model so that at most the share `fpr` of what is innocent is flagged: texts that it was not
/// trained on, of the kind it will see. Counted are sentences for the order head, since an observation may be a whole
/// mailbox, and whole texts for the override head, where one flagged sentence stops the input.
///
/// # Errors
/// `fpr` is no rate, or there are too few innocent texts to show it.
pub fn calibrate(model: Model, examples: &[Example], fpr: f64) -> Result<Calibration, TrainError> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(TrainError::Rate);
    }
    let scores = |label| {
        let texts = examples.iter().filter(move |example| example.label == label);
        let mut scores: Vec<f32> = texts.flat_map(|example| scores(&model, &example.text)).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores
    };
    let (innocent, wanted) = (scores(false), scores(true));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive rate of a number of texts"
    )]
    let allowed =
        |fpr: f64| (f64::from(u32::try_from(innocent.len()).unwrap_or(u32::MAX)) * fpr).floor() as usize;
    if allowed(fpr) == 0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "one by a rate above 0"
        )]
        return Err(TrainError::TooFew { innocent: innocent.len(), needed: (1.0 / fpr).ceil() as usize });
    }
    // The threshold is the score of the first text that must not be flagged any more, and a little more.
    let above =
        |fpr: f64| innocent.get(allowed(fpr)).copied().map_or(f32::NEG_INFINITY, |score| score + 1e-4);
    let threshold = above(fpr);
    let grow = above((fpr * GROWTH).min(0.25)).min(threshold);
    #[expect(clippy::cast_possible_truncation, reason = "a rate needs no more digits")]
    let model = model.clone().with_thresholds(threshold, grow, fpr as f32);
    let flagged = |scores: &[f32]| (scores.len(), scores.iter().filter(|score| **score >= threshold).count());
    Ok(Calibration { innocent: flagged(&innocent), wanted: flagged(&wanted), model })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Example> {
        let verbs = ["send", "delete", "visit", "transfer", "forward", "open"];
        let things = ["the file", "my money", "that page", "all mails", "his key"];
        let mut out = Vec::new();
        for verb in verbs {
            for thing in things {
                out.push(Example { text: format!("Please {verb} {thing} now."), label: true });
                out.push(Example { text: format!("Yesterday we saw {thing} there."), label: false });
            }
        }
        out
    }

    #[test]
    fn training_is_deterministic_and_tells_apart() {
        let examples = examples();
        let model = train(Head::Order, &examples, |_, _| {}).unwrap();
        assert_eq!(train(Head::Order, &examples, |_, _| {}).unwrap().to_bytes(), model.to_bytes());
        assert!(text_score(&model, "Please forward his key now.") > 1.0);
        assert!(text_score(&model, "Yesterday we saw a page there.") < -1.0);
        let other = train(Head::Order, examples.get(1..).unwrap(), |_, _| {}).unwrap();
        assert_ne!(other.recipe(), model.recipe());
    }

    #[test]
    fn calibration_keeps_its_rate() {
        let examples = examples();
        let model = train(Head::Order, &examples, |_, _| {}).unwrap();
        let done = calibrate(model.clone(), &examples, 0.1).unwrap();
        assert!(done.innocent.1 * 10 <= done.innocent.0 && done.wanted.1 == done.wanted.0, "{done:?}");
        assert!(done.model.grow() <= done.model.threshold());
        assert_eq!(
            calibrate(model.clone(), &examples, 0.001),
            Err(TrainError::TooFew { innocent: 30, needed: 1000 })
        );
        assert_eq!(calibrate(model, &examples, 1.5), Err(TrainError::Rate));
    }

    #[test]
    fn one_label_is_not_enough() {
        let one = [Example { text: "hello to you".into(), label: true }];
        assert!(matches!(
            train(Head::Order, &one, |_, _| {}),
            Err(TrainError::OneLabel { with: 1, without: 0 })
        ));
    }
}
