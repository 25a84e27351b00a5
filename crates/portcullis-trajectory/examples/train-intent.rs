//! Trains the learned score of what users say: `cargo run --release -p portcullis-trajectory --example train-intent --
//! [--without FOLDER] OUT FOLDER...`.
//!
//! A folder holds conversations: scenarios (`*.toml`, `specs/scenarios.md`), harmless talks (`talks.jsonl`: `goal` and
//! `turns`) and harmless single requests (`singles.jsonl`: `user`). What is named by `--without` is not trained on but
//! scored: how many of its misuses reach each threshold, and how many of its harmless conversations. The card
//! `docs/models/intent.md` says what was used. The same files give the same model.

#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::error::Error;
use std::path::{Path, PathBuf};

use portcullis_trajectory::monitors::learned::grams::{Role, features};
use portcullis_trajectory::monitors::learned::{BUCKETS, Before, HEADS, Learned, share_of_each};
use serde_json::Value;

/// What a sample on the wrong side costs, against the length of the weights.
const COST: f64 = 0.3;
const PASSES: usize = 60;
/// Rarity in these units, so that shares stay about as long as they were.
const RARITY: f32 = 5.0;
/// Where the thresholds lie; chosen on authors that were left out, see the card.
const SOME: f32 = 0.055;
const MUCH: f32 = 0.41;
const GRAVE: f32 = 0.0;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A turn of the user's.
#[derive(Clone)]
struct Turn {
    user: String,
    harm: bool,
}

/// A conversation of one folder.
#[derive(Clone)]
struct Conversation {
    folder: PathBuf,
    turns: Vec<Turn>,
    misuse: bool,
    /// The level that is expected ends the run.
    grave: bool,
}

/// What is learned from: buckets with their shares, and whether it is of the kind.
struct Sample {
    features: Vec<(usize, f32)>,
    of_the_kind: bool,
}

/// Numbers that are the same in each run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let without = match arguments.first().map(String::as_str) {
        Some("--without") => arguments.drain(..2).nth(1).map(PathBuf::from),
        _ => None,
    };
    let [out, folders @ ..] = arguments.as_slice() else {
        return Err("usage: train-intent [--without FOLDER] OUT FOLDER...".into());
    };
    let mut conversations = Vec::new();
    for folder in folders {
        conversations.extend(read_folder(Path::new(folder))?);
    }
    let (left_out, kept): (Vec<_>, Vec<_>) =
        conversations.into_iter().partition(|conversation| Some(&conversation.folder) == without.as_ref());
    let harm = samples(&kept, |_, turn| Some(turn.harm));
    let grave = samples(&kept, |conversation, turn| turn.harm.then_some(conversation.grave));
    let count = |samples: &[Sample]| samples.iter().filter(|sample| sample.of_the_kind).count();
    println!("{} conversations, {} turns, {} of harm", kept.len(), harm.len(), count(&harm));
    let learned = pack(&[train(harm), train(grave)]);
    std::fs::write(out, learned.to_bytes())?;
    if !left_out.is_empty() {
        report(&learned, &left_out);
    }
    Ok(())
}

fn read_folder(folder: &Path) -> Result<Vec<Conversation>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let text = || std::fs::read_to_string(&path);
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if name.ends_with(".toml") => read_scenario(folder, &text()?, &mut found)?,
            Some("talks.jsonl") => read_harmless(folder, &text()?, "turns", &mut found)?,
            Some("singles.jsonl") => read_harmless(folder, &text()?, "user", &mut found)?,
            _ => {}
        }
    }
    Ok(found)
}

fn read_scenario(folder: &Path, text: &str, found: &mut Vec<Conversation>) -> Result<()> {
    let file: toml::Table = toml::from_str(text)?;
    let is = |key: &str, value: &str| file.get(key).and_then(toml::Value::as_str) == Some(value);
    let (misuse, grave) = (is("class", "misuse"), is("expected", "HARD_STOP"));
    let sets = file.get("paraphrase").and_then(toml::Value::as_array);
    let sets = sets.into_iter().flatten().filter_map(toml::Value::as_table);
    for set in std::iter::once(&file).chain(sets) {
        let turns = set.get("turn").and_then(toml::Value::as_array).into_iter().flatten();
        let turns = turns.filter_map(|turn| {
            let harm = misuse && turn.get("harm").and_then(toml::Value::as_bool).unwrap_or(false);
            Some(Turn { user: turn.get("user")?.as_str()?.to_owned(), harm })
        });
        let turns = turns.collect();
        found.push(Conversation { folder: folder.to_owned(), turns, misuse, grave });
    }
    Ok(())
}

fn read_harmless(folder: &Path, text: &str, field: &str, found: &mut Vec<Conversation>) -> Result<()> {
    for line in text.lines() {
        let record: Value = serde_json::from_str(line)?;
        let turns: Vec<&str> = match record.get(field) {
            Some(Value::String(turn)) => vec![turn],
            Some(Value::Array(turns)) => turns.iter().filter_map(Value::as_str).collect(),
            _ => return Err(format!("a line without `{field}`").into()),
        };
        let turn = |user: &str| Turn { user: user.to_owned(), harm: false };
        let turns = turns.into_iter().map(turn).collect();
        found.push(Conversation { folder: folder.to_owned(), turns, misuse: false, grave: false });
    }
    Ok(())
}

/// The turns that `kind` answers for: as they are, and in other company, so that what
/// was said before a harmless turn says little by itself.
fn samples(
    conversations: &[Conversation],
    kind: impl Fn(&Conversation, &Turn) -> Option<bool>,
) -> Vec<Sample> {
    let mut random = Random(1);
    let harmless: Vec<&Conversation> =
        conversations.iter().filter(|conversation| !conversation.misuse).collect();
    let mut found = Vec::new();
    for conversation in conversations {
        let mut before: Vec<&str> = Vec::new();
        for turn in &conversation.turns {
            if let Some(of_the_kind) = kind(conversation, turn) {
                let mut add = |before: &[&str]| {
                    let features = features_of(before, &turn.user);
                    found.push(Sample { features, of_the_kind });
                };
                add(&before);
                let other = harmless.get(random.below(harmless.len()));
                let mut company: Vec<&str> = other
                    .into_iter()
                    .flat_map(|other| other.turns.iter().map(|turn| turn.user.as_str()))
                    .collect();
                company.extend(before.iter().filter(|_| of_the_kind));
                add(&company);
            }
            before.push(&turn.user);
        }
    }
    found
}

fn features_of(before: &[&str], turn: &str) -> Vec<(usize, f32)> {
    let mut found = features(turn, Role::Turn);
    #[expect(clippy::cast_precision_loss, reason = "a few turns")]
    let share = share_of_each(before.len() as f32);
    let mut add = |more: Vec<(usize, f32)>, weight: f32| {
        found.extend(more.into_iter().map(|(bucket, share)| (bucket, share * weight)));
    };
    before.iter().for_each(|text| add(features(text, Role::Before), share));
    found.sort_unstable_by_key(|(bucket, _)| *bucket);
    found.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    found
}

/// How telling a bucket is before anything is learned: the rarer, the more (inverse document frequency). Learning sees
/// shares times this, and it goes into the weights afterwards.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn rarity(samples: &[Sample]) -> Vec<f32> {
    let mut counts = vec![0_u32; BUCKETS];
    for (bucket, _) in samples.iter().flat_map(|sample| &sample.features) {
        if let Some(count) = counts.get_mut(*bucket) {
            *count += 1;
        }
    }
    let all = (1 + samples.len()) as f32;
    counts.iter().map(|count| (all / (1 + count) as f32).ln() / RARITY).collect()
}

/// A support vector machine with squared hinge loss, both labels of equal weight, by descent along the coordinates of the
/// dual (Hsieh et al., ICML 2008). The last weight is the bias.
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
fn train(mut samples: Vec<Sample>) -> Vec<f64> {
    let rarity = rarity(&samples);
    for (bucket, share) in samples.iter_mut().flat_map(|sample| &mut sample.features) {
        *share *= rarity.get(*bucket).copied().unwrap_or_default();
    }
    let of_the_kind = samples.iter().filter(|sample| sample.of_the_kind).count();
    let half = samples.len() as f64 / 2.0;
    let cost =
        |kind: bool| COST * half / if kind { of_the_kind } else { samples.len() - of_the_kind }.max(1) as f64;
    let mut weights = vec![0.0_f64; BUCKETS + 1];
    let mut duals = vec![0.0_f64; samples.len()];
    let mut order: Vec<usize> = (0..samples.len()).collect();
    let mut random = Random(2);
    for _ in 0..PASSES {
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        for at in &order {
            let (Some(sample), Some(dual)) = (samples.get(*at), duals.get_mut(*at)) else { continue };
            let sign = if sample.of_the_kind { 1.0 } else { -1.0 };
            let diagonal = 0.5 / cost(sample.of_the_kind);
            let with_bias = || sample.features.iter().copied().chain(std::iter::once((BUCKETS, 1.0)));
            let length: f64 = with_bias().map(|(_, share)| f64::from(share * share)).sum();
            let score: f64 =
                with_bias().filter_map(|(at, share)| Some(weights.get(at)? * f64::from(share))).sum();
            let slope = sign * score - 1.0 + diagonal * *dual;
            let next = (*dual - slope / (length + diagonal)).max(0.0);
            for (at, share) in with_bias() {
                if let Some(weight) = weights.get_mut(at) {
                    *weight += (next - *dual) * sign * f64::from(share);
                }
            }
            *dual = next;
        }
    }
    weights.iter_mut().zip(rarity).for_each(|(weight, rarity)| *weight *= f64::from(rarity));
    weights
}

fn pack(heads: &[Vec<f64>; HEADS]) -> Learned {
    let largest = heads
        .each_ref()
        .map(|head| head.iter().take(BUCKETS).fold(1e-9_f64, |largest, weight| largest.max(weight.abs())));
    #[expect(clippy::cast_possible_truncation, reason = "within -127 and 127 by the choice of the step")]
    let step = |head: &[f64], largest: f64, at: usize| {
        (head.get(at).copied().unwrap_or_default() / largest * 127.0).round() as i8
    };
    let [harm, grave] = heads;
    let weights = (0..BUCKETS).map(|at| [step(harm, largest[0], at), step(grave, largest[1], at)]).collect();
    #[expect(clippy::cast_possible_truncation, reason = "single precision is enough")]
    let single = |number: f64| number as f32;
    let bias = heads.each_ref().map(|head| single(head.last().copied().unwrap_or_default()));
    let steps = largest.map(|largest| single(largest / 127.0));
    Learned { weights, steps, bias, some: SOME, much: MUCH, grave: GRAVE }
}

/// How conversations that were not trained on score: the highest of each.
fn report(learned: &Learned, conversations: &[Conversation]) {
    let highest = |conversation: &Conversation| {
        let mut before = Before::default();
        let mut scores: Vec<(f32, f32)> = Vec::new();
        for turn in &conversation.turns {
            let said = learned.read(&turn.user);
            let [harm, grave] = learned.score(&said, &before);
            before.take(&said);
            scores.push((harm, grave));
        }
        scores.into_iter().max_by(|one, two| one.0.total_cmp(&two.0)).unwrap_or((f32::MIN, f32::MIN))
    };
    let scored: Vec<(&Conversation, (f32, f32))> =
        conversations.iter().map(|conversation| (conversation, highest(conversation))).collect();
    let of = |misuse: bool| scored.iter().filter(move |(conversation, _)| conversation.misuse == misuse);
    for step in -4_i16..=10 {
        let from = f32::from(step) / 10.0;
        let over = |misuse: bool| of(misuse).filter(|(_, (harm, _))| *harm >= from).count();
        println!(
            "{from:5.1}: {:3} of {} misuse, {:3} of {} harmless",
            over(true),
            of(true).count(),
            over(false),
            of(false).count()
        );
    }
    for from in [-0.4_f32, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2] {
        let over = |is: bool| of(true).filter(|(c, (_, grave))| c.grave == is && *grave >= from).count();
        println!("grave from {from:4.1}: {} grave, {} not", over(true), over(false));
    }
}
