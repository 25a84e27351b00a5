//! Trains the learned score of inputs: `cargo run --release -p portcullis-trajectory --example train-intent --
//! VECTORS SETS OUT SCENARIOS...`.
//!
//! VECTORS are word vectors as text (a word and 50 numbers a line, the most common word first), SETS the folder of public
//! sets of which innocent prompts are taken, SCENARIOS folders of conversations (`specs/scenarios.md`). The card
//! `docs/models/intent.md` says which were used. The same files give the same model on the same kind of machine.

use std::error::Error;
use std::path::Path;

use portcullis_trajectory::monitors::learned::{
    BUCKETS, Before, DIMENSIONS, FEATURES, HIDDEN, Learned, NETS, Net, STEPS, Said, Vectors, features, key,
};
use portcullis_trajectory::monitors::stem_key;

/// Words that get a vector.
const WORDS: usize = 16_000;
const EPOCHS: usize = 60;
const BATCH: usize = 200;
const RATE: f32 = 0.001;
/// Decay of the nets' weights, for a batch.
const DECAY: f32 = 3.0;
/// Decay of the words' weights, for a pass.
const WORDS_DECAY: f32 = 0.1;
const WORDS_EPOCHS: usize = 60;
/// Where the thresholds lie; chosen on conversations that were not trained on.
const SOME: f32 = 0.0;
const MUCH: f32 = 2.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A turn, what was said before it, and whether it asks for harm.
struct Sample {
    turn: String,
    before: Vec<String>,
    harm: bool,
}

/// A conversation: its turns, and which of them ask for harm.
struct Conversation {
    turns: Vec<(String, bool)>,
}

/// Numbers that are the same in each run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// Within -1 and 1.
    #[expect(clippy::cast_precision_loss, reason = "a random number needs no more")]
    fn even(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

#[expect(clippy::print_stdout, reason = "a program that tells what it was given")]
fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vectors, sets, out, folders @ ..] = arguments.as_slice() else {
        return Err("usage: train-intent VECTORS SETS OUT SCENARIOS...".into());
    };
    let vectors = read_vectors(Path::new(vectors))?;
    let mut conversations = Vec::new();
    for folder in folders {
        conversations.extend(read_scenarios(Path::new(folder))?);
    }
    let innocent = read_innocent(Path::new(sets))?;
    let samples = samples(&conversations, &innocent);
    let harm = samples.iter().filter(|sample| sample.harm).count();
    println!("{} words, {} samples, {harm} of them harm", vectors.keys.len(), samples.len());
    let mut learned =
        Learned { vectors, nets: Vec::new(), words: vec![0.0; BUCKETS], bias: 0.0, some: SOME, much: MUCH };
    let read: Vec<(Said, Vec<f32>, bool)> = samples
        .iter()
        .map(|sample| {
            let mut before = Before::default();
            sample.before.iter().for_each(|turn| before.take(&learned.read(turn)));
            let said = learned.read(&sample.turn);
            let features = features(&said, &before);
            (said, features, sample.harm)
        })
        .collect();
    train_words(&mut learned, &read, harm);
    let (mean, spread) = moments(&read);
    for number in 0..NETS {
        let net = train_net(&read, &mean, &spread, number);
        learned.nets.push(fold(net, &mean, &spread));
    }
    std::fs::write(out, learned.to_bytes())?;
    Ok(())
}

fn read_vectors(path: &Path) -> Result<Vectors> {
    let text = std::fs::read_to_string(path)?;
    let mut rows: Vec<(u32, u8, Vec<i8>)> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (rank, line) in text.lines().take(WORDS).enumerate() {
        let mut parts = line.split(' ');
        let word = parts.next().unwrap_or_default();
        if word.is_empty() || !word.chars().all(char::is_alphanumeric) {
            continue;
        }
        let key = key(stem_key(word));
        if !seen.insert(key) {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let numbers: Vec<i8> = parts
            .map(|number| Ok((number.parse::<f32>()? * STEPS).round().clamp(-127.0, 127.0) as i8))
            .collect::<Result<_>>()?;
        if numbers.len() != DIMENSIONS {
            return Err(format!("`{word}` has {} numbers instead of {DIMENSIONS}", numbers.len()).into());
        }
        // A word counts for the more, the rarer it is: ln(1 + rank) / 9, 1 at most.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "between 0 and 255"
        )]
        let weight = (((1 + rank) as f32).ln() / 9.0 * 255.0).clamp(0.0, 255.0).round() as u8;
        rows.push((key, weight, numbers));
    }
    rows.sort_unstable_by_key(|(key, _, _)| *key);
    Ok(Vectors {
        keys: rows.iter().map(|(key, _, _)| *key).collect(),
        weights: rows.iter().map(|(_, weight, _)| *weight).collect(),
        numbers: rows.iter().flat_map(|(_, _, numbers)| numbers.iter().copied()).collect(),
    })
}

fn read_scenarios(folder: &Path) -> Result<Vec<Conversation>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let file: toml::Table = toml::from_str(&std::fs::read_to_string(&path)?)?;
        let misuse = file.get("class").and_then(toml::Value::as_str) == Some("misuse");
        let sets = file.get("paraphrase").and_then(toml::Value::as_array);
        let sets = sets.into_iter().flatten().filter_map(toml::Value::as_table);
        for set in std::iter::once(&file).chain(sets) {
            let turns = set.get("turn").and_then(toml::Value::as_array).into_iter().flatten();
            let turns = turns.filter_map(|turn| {
                let harm = turn.get("harm").and_then(toml::Value::as_bool).unwrap_or(false);
                Some((turn.get("user")?.as_str()?.to_owned(), misuse && harm))
            });
            found.push(Conversation { turns: turns.collect() });
        }
    }
    Ok(found)
}

/// Prompts of public sets that nobody would stop.
fn read_innocent(sets: &Path) -> Result<Vec<String>> {
    let mut found = std::collections::BTreeSet::new();
    let lines = [
        ("ifeval/input_data.jsonl", "prompt"),
        ("injecagent/user_cases.jsonl", "User Instruction"),
        ("asb/agent_task.jsonl", "tasks"),
    ];
    for (file, field) in lines {
        for line in std::fs::read_to_string(sets.join(file))?.lines() {
            let record: serde_json::Value = serde_json::from_str(line)?;
            match record.get(field) {
                Some(serde_json::Value::String(text)) => {
                    found.insert(text.clone());
                }
                Some(serde_json::Value::Array(texts)) => {
                    found.extend(texts.iter().filter_map(|text| Some(text.as_str()?.to_owned())));
                }
                _ => {}
            }
        }
    }
    for file in ["agentdojo_suites_v1.json", "agentdojo_suites_v1.2.2.json", "agentdyn_suites.json"] {
        let path = sets.join("agentdojo_suites").join(file);
        let suites: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        for suite in suites.as_object().into_iter().flat_map(|suites| suites.values()) {
            prompts(suite.get("user_tasks"), &mut found);
        }
    }
    Ok(found.into_iter().collect())
}

fn prompts(value: Option<&serde_json::Value>, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Some(serde_json::Value::Array(items)) => items.iter().for_each(|item| prompts(Some(item), found)),
        Some(serde_json::Value::Object(map)) => {
            for (name, item) in map {
                match item {
                    serde_json::Value::String(text) if name.eq_ignore_ascii_case("prompt") => {
                        found.insert(text.clone());
                    }
                    other => prompts(Some(other), found),
                }
            }
        }
        _ => {}
    }
}

/// The turns as they are, and in other company: harmless ones late in long sessions, harmful ones with less or more
/// before them, so that the length of a conversation says nothing.
fn samples(conversations: &[Conversation], innocent: &[String]) -> Vec<Sample> {
    let mut random = Random(1);
    let harmless: Vec<Vec<String>> = conversations
        .iter()
        .filter(|conversation| conversation.turns.iter().all(|(_, harm)| !harm))
        .map(|conversation| conversation.turns.iter().map(|(turn, _)| turn.clone()).collect())
        .collect();
    let company = |random: &mut Random, least: usize| {
        let mut before = Vec::new();
        while before.len() < least && !harmless.is_empty() {
            before.extend(harmless.get(random.below(harmless.len())).into_iter().flatten().cloned());
        }
        before.into_iter().take(6).collect::<Vec<String>>()
    };
    let mut samples = Vec::new();
    for conversation in conversations {
        let mut before: Vec<String> = Vec::new();
        for (turn, harm) in &conversation.turns {
            let mut add = |before: Vec<String>| {
                samples.push(Sample { turn: turn.clone(), before, harm: *harm });
            };
            add(before.clone());
            if *harm && before.len() > 1 {
                add(before.iter().take(1).cloned().collect());
            }
            if *harm && !before.is_empty() {
                let mut longer = company(&mut random, 1);
                longer.extend(before.iter().cloned());
                add(longer);
            }
            for _ in 0..if *harm { 0 } else { 2 } {
                let least = 1 + random.below(5);
                add(company(&mut random, least));
            }
            before.push(turn.clone());
        }
    }
    for (number, text) in innocent.iter().enumerate() {
        samples.push(Sample { turn: text.clone(), before: Vec::new(), harm: false });
        if number % 3 == 0 {
            samples.push(Sample { turn: text.clone(), before: company(&mut random, 1), harm: false });
        }
    }
    samples
}

fn probability(score: f32) -> f32 {
    1.0 / (1.0 + (-score).exp())
}

/// Logistic regression over words and pairs, both labels of equal weight, by steps that shrink (AdaGrad).
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn train_words(learned: &mut Learned, read: &[(Said, Vec<f32>, bool)], harm: usize) {
    let (with, without) = (harm.max(1) as f32, (read.len() - harm).max(1) as f32);
    let half = read.len() as f32 / 2.0;
    let mut squares = vec![1e-6_f32; BUCKETS];
    let mut bias_square = 1e-6_f32;
    let decay = WORDS_DECAY / read.len() as f32;
    let mut random = Random(2);
    let mut order: Vec<usize> = (0..read.len()).collect();
    for _ in 0..WORDS_EPOCHS {
        shuffle(&mut order, &mut random);
        for (said, _, harm) in order.iter().filter_map(|at| read.get(*at)) {
            let words = said.grams.iter();
            let score: f32 = words
                .map(|(at, share)| learned.words.get(usize::from(*at)).copied().unwrap_or_default() * share)
                .sum();
            let weight = if *harm { half / with } else { half / without };
            let slope = (probability(score + learned.bias) - f32::from(u8::from(*harm))) * weight;
            for (at, share) in &said.grams {
                let at = usize::from(*at);
                let (Some(word), Some(square)) = (learned.words.get_mut(at), squares.get_mut(at)) else {
                    continue;
                };
                let step = slope * share + decay * *word;
                *square += step * step;
                *word -= 0.5 * step / square.sqrt();
            }
            bias_square += slope * slope;
            learned.bias -= 0.5 * slope / bias_square.sqrt();
        }
    }
}

fn shuffle(order: &mut [usize], random: &mut Random) {
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
}

/// Mean and spread of each feature.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn moments(read: &[(Said, Vec<f32>, bool)]) -> (Vec<f32>, Vec<f32>) {
    let count = read.len().max(1) as f32;
    let sum = |of: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        let mut sums = vec![0.0_f32; FEATURES];
        for (_, features, _) in read {
            sums.iter_mut().zip(features).enumerate().for_each(|(at, (sum, value))| *sum += of(at, *value));
        }
        sums.iter().map(|sum| sum / count).collect()
    };
    let mean = sum(&|_, value| value);
    let spread = sum(&|at, value| {
        let off = value - mean.get(at).copied().unwrap_or_default();
        off * off
    });
    (mean, spread.iter().map(|square| square.sqrt().max(1e-4)).collect())
}

/// A net on features of mean 0 and spread 1, by Adam.
fn train_net(read: &[(Said, Vec<f32>, bool)], mean: &[f32], spread: &[f32], number: usize) -> Net {
    let mut random = Random(100 + u64::try_from(number).unwrap_or_default());
    let inputs: Vec<Vec<f32>> = read
        .iter()
        .map(|(_, features, _)| {
            let cells = features.iter().zip(mean.iter().zip(spread));
            cells.map(|(value, (mean, spread))| (value - mean) / spread).collect()
        })
        .collect();
    let scale = (6.0 / 232.0_f32).sqrt();
    let mut numbers: Vec<f32> = (0..HIDDEN * FEATURES + HIDDEN + HIDDEN + 1)
        .map(|at| match at {
            at if (HIDDEN * FEATURES..HIDDEN * FEATURES + HIDDEN).contains(&at) => 0.0,
            _ => random.even() * scale,
        })
        .collect();
    let (mut first, mut second) = (vec![0.0_f32; numbers.len()], vec![0.0_f32; numbers.len()]);
    let mut order: Vec<usize> = (0..read.len()).collect();
    let mut steps = 0_i32;
    for _ in 0..EPOCHS {
        shuffle(&mut order, &mut random);
        for batch in order.chunks(BATCH) {
            let mut slope = vec![0.0_f32; numbers.len()];
            for at in batch {
                if let (Some(input), Some((_, _, harm))) = (inputs.get(*at), read.get(*at)) {
                    back(&numbers, input, *harm, &mut slope);
                }
            }
            steps += 1;
            let (low, high) = (1.0 - 0.9_f32.powi(steps), 1.0 - 0.999_f32.powi(steps));
            #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
            let count = batch.len() as f32;
            let moments = first.iter_mut().zip(second.iter_mut());
            for ((number, slope), (first, second)) in numbers.iter_mut().zip(&slope).zip(moments) {
                let slope = (slope + DECAY * *number) / count;
                *first = 0.9 * *first + 0.1 * slope;
                *second = 0.999 * *second + 0.001 * slope * slope;
                *number -= RATE * (*first / low) / ((*second / high).sqrt() + 1e-8);
            }
        }
    }
    cut(&numbers)
}

fn cut(numbers: &[f32]) -> Net {
    let part =
        |from: usize, length: usize| numbers.iter().skip(from).take(length).copied().collect::<Vec<_>>();
    let edge = HIDDEN * FEATURES;
    Net {
        first: part(0, edge),
        bias: part(edge, HIDDEN),
        second: part(edge + HIDDEN, HIDDEN),
        last: numbers.last().copied().unwrap_or_default(),
    }
}

/// Adds the slope of one sample's loss.
fn back(numbers: &[f32], input: &[f32], harm: bool, slope: &mut [f32]) {
    let edge = HIDDEN * FEATURES;
    let (first, rest) = numbers.split_at(edge);
    let (bias, second) = rest.split_at(HIDDEN);
    let rows = first.chunks_exact(FEATURES).zip(bias);
    let hidden: Vec<f32> = rows
        .map(|(row, bias)| (row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>() + bias).max(0.0))
        .collect();
    let last = numbers.last().copied().unwrap_or_default();
    let score = hidden.iter().zip(second).map(|(hidden, weight)| hidden * weight).sum::<f32>() + last;
    let off = probability(score) - f32::from(u8::from(harm));
    let (first_slope, rest) = slope.split_at_mut(edge);
    let (bias_slope, second_slope) = rest.split_at_mut(HIDDEN);
    let rows = first_slope.chunks_exact_mut(FEATURES).zip(bias_slope.iter_mut());
    for ((row, bias), (hidden, weight)) in rows.zip(hidden.iter().zip(second)) {
        if *hidden > 0.0 {
            let off = off * weight;
            row.iter_mut().zip(input).for_each(|(slope, x)| *slope += off * x);
            *bias += off;
        }
    }
    second_slope.iter_mut().zip(&hidden).for_each(|(slope, hidden)| *slope += off * hidden);
    if let Some(last) = second_slope.last_mut() {
        *last += off;
    }
}

/// The same net on features as they are.
fn fold(mut net: Net, mean: &[f32], spread: &[f32]) -> Net {
    for (row, bias) in net.first.chunks_exact_mut(FEATURES).zip(net.bias.iter_mut()) {
        for (weight, (mean, spread)) in row.iter_mut().zip(mean.iter().zip(spread)) {
            *weight /= spread;
            *bias -= *weight * mean;
        }
    }
    net
}
