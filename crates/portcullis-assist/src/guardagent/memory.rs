//! What was done before, and finding what is like the case at hand.
//!
//! Near is what has the smallest Levenshtein distance over input and output, as in the seed. A memory holds thousands of
//! texts, so each keeps how often it has each letter: the difference in letters is never more than the distance, costs next
//! to nothing, and decides in which order texts are compared and when the rest cannot be nearer. Where no text is like the
//! case, that rules out nothing; then the steps of comparing are bounded, and the search says that it is not complete.

use rapidfuzz::distance::levenshtein::{Args, BatchComparator};

use crate::limits::{MAX_EXAMPLE_BYTES, MAX_MEMORIES, MAX_SEARCH_STEPS};

/// Letters of each text that are compared: its beginning.
const COMPARED: usize = 4_096;
/// Letters that a comparison deals with in one step.
const STEP: usize = 64;
/// Counters for letters. Letters that share one make the bound weaker, never wrong.
const COUNTERS: usize = 64;

/// One case with what was made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// How it is called in reports.
    pub name: String,
    /// What the target agent was asked.
    pub input: String,
    /// What it did.
    pub output: String,
    /// The plan.
    pub plan: String,
    /// The program.
    pub program: String,
}

/// Which examples are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The most similar ones.
    Nearest,
    /// The least similar ones, to see what similarity is worth.
    Farthest,
}

/// An example that does not go into a memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// It is full.
    #[error("the memory has {MAX_MEMORIES} examples already; remove some")]
    Full,
    /// A text is too long.
    #[error("`{0}` has more than {MAX_EXAMPLE_BYTES} bytes; shorten it")]
    TooLong(&'static str),
}

/// Examples that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'m> {
    /// The examples, the most similar first, or the least similar.
    pub examples: Vec<&'m Example>,
    /// Their distances.
    pub distances: Vec<usize>,
    /// Whether no other can come before them. Otherwise the limit of steps was reached.
    pub complete: bool,
    /// Examples that were compared letter by letter.
    pub compared: usize,
}

/// Past cases. Nothing enters by itself: whoever has one adds it.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    kept: Vec<Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    example: Example,
    input: Letters,
    output: Letters,
}

/// How often a text has each letter, as far as it is compared.
#[derive(Debug, Clone)]
struct Letters {
    counts: [u16; COUNTERS],
    length: usize,
    ascii: bool,
}

impl Letters {
    fn of(text: &str) -> Self {
        let text = compared(text);
        let mut counts = [0_u16; COUNTERS];
        let mut length = 0;
        for letter in text.chars() {
            length += 1;
            if let Some(count) = counts.get_mut(letter as usize % COUNTERS) {
                *count += 1;
            }
        }
        Self { counts, length, ascii: text.is_ascii() }
    }

    /// Letters that one has and the other lacks, the larger number of both directions. Each costs an edit.
    fn least(&self, other: &Self) -> usize {
        let (mut more, mut less) = (0_usize, 0_usize);
        for (a, b) in self.counts.iter().zip(&other.counts) {
            more += usize::from(a.saturating_sub(*b));
            less += usize::from(b.saturating_sub(*a));
        }
        more.max(less)
    }

    /// No two texts of these lengths are farther apart.
    fn most(&self, other: &Self) -> usize {
        self.length.max(other.length)
    }
}

/// The part of a text that is compared.
fn compared(text: &str) -> &str {
    text.char_indices().nth(COMPARED).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// A text that others are compared with.
struct Wanted {
    letters: Letters,
    bytes: Option<BatchComparator<u8>>,
    chars: BatchComparator<char>,
}

impl Wanted {
    fn new(text: &str) -> Self {
        let text = compared(text);
        let bytes = text.is_ascii().then(|| BatchComparator::new(text.bytes()));
        Self { letters: Letters::of(text), bytes, chars: BatchComparator::new(text.chars()) }
    }

    /// The distance, unless it is more than `most`.
    fn distance(&self, text: &str, letters: &Letters, most: usize) -> Option<usize> {
        let (text, args) = (compared(text), Args::default().score_cutoff(most));
        match &self.bytes {
            Some(bytes) if letters.ascii => bytes.distance_with_args(text.bytes(), &args),
            _ => self.chars.distance_with_args(text.chars(), &args),
        }
    }

    /// Steps that comparing takes at most.
    fn steps(&self, letters: &Letters, most: usize) -> u64 {
        let band = most.saturating_mul(2) / STEP + 2;
        let across = self.letters.length.div_ceil(STEP).min(band);
        (across as u64).saturating_mul(letters.length as u64)
    }
}

impl Memory {
    /// One without examples.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an example.
    ///
    /// # Errors
    /// It is too long, or the memory is full.
    pub fn add(&mut self, example: Example) -> Result<(), MemoryError> {
        if self.kept.len() >= MAX_MEMORIES {
            return Err(MemoryError::Full);
        }
        for (name, text) in [
            ("input", &example.input),
            ("output", &example.output),
            ("plan", &example.plan),
            ("program", &example.program),
        ] {
            if text.len() > MAX_EXAMPLE_BYTES {
                return Err(MemoryError::TooLong(name));
            }
        }
        let (input, output) = (Letters::of(&example.input), Letters::of(&example.output));
        self.kept.push(Kept { example, input, output });
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// All of them, as they were added.
    pub fn examples(&self) -> impl Iterator<Item = &Example> {
        self.kept.iter().map(|kept| &kept.example)
    }

    /// The `count` examples that are nearest to a case, or farthest from it. Of several at the same distance, any.
    #[must_use]
    pub fn nearest(&self, input: &str, output: &str, count: usize, order: Order) -> Found<'_> {
        if count == 0 || self.kept.is_empty() {
            return Found { examples: Vec::new(), distances: Vec::new(), complete: true, compared: 0 };
        }
        let wanted = (Wanted::new(input), Wanted::new(output));
        let mut search = Search { best: Vec::new(), count, steps: MAX_SEARCH_STEPS, compared: 0 };
        let complete = match order {
            Order::Nearest => search.nearest(&self.kept, &wanted),
            Order::Farthest => search.farthest(&self.kept, &wanted),
        };
        let (distances, examples) =
            search.best.iter().map(|(distance, kept)| (*distance, &kept.example)).unzip();
        Found { examples, distances, complete, compared: search.compared }
    }
}

struct Search<'m> {
    /// The best so far, the best one first.
    best: Vec<(usize, &'m Kept)>,
    count: usize,
    /// What is left of them.
    steps: u64,
    compared: usize,
}

impl<'m> Search<'m> {
    /// The last of the best, once there are enough.
    fn worst(&self) -> Option<usize> {
        self.best.get(self.count - 1).map(|(distance, _)| *distance)
    }

    fn nearest(&mut self, all: &'m [Kept], (input, output): &(Wanted, Wanted)) -> bool {
        let least = |kept: &Kept| input.letters.least(&kept.input) + output.letters.least(&kept.output);
        let mut order: Vec<(usize, &Kept)> = all.iter().map(|kept| (least(kept), kept)).collect();
        order.sort_by_key(|(least, _)| *least);
        for (least, kept) in order {
            let worst = self.worst();
            if worst.is_some_and(|worst| least >= worst) {
                return true;
            }
            let most = worst.map_or(usize::MAX, |worst| worst - 1);
            if !self.may_compare(kept, (input, output), most) {
                return false;
            }
            let distance = input.distance(&kept.example.input, &kept.input, most).and_then(|first| {
                let second = output.distance(&kept.example.output, &kept.output, most - first);
                second.map(|second| first + second)
            });
            if let Some(distance) = distance {
                self.insert(distance, kept, |held| held <= distance);
            }
        }
        true
    }

    fn farthest(&mut self, all: &'m [Kept], (input, output): &(Wanted, Wanted)) -> bool {
        let most = |kept: &Kept| input.letters.most(&kept.input) + output.letters.most(&kept.output);
        let mut order: Vec<(usize, &Kept)> = all.iter().map(|kept| (most(kept), kept)).collect();
        order.sort_by_key(|(most, _)| std::cmp::Reverse(*most));
        for (most, kept) in order {
            if self.worst().is_some_and(|worst| most <= worst) {
                return true;
            }
            if !self.may_compare(kept, (input, output), usize::MAX) {
                return false;
            }
            let of = |wanted: &Wanted, text, letters| {
                wanted.distance(text, letters, usize::MAX).unwrap_or(usize::MAX)
            };
            let first = of(input, &kept.example.input, &kept.input);
            let distance = first.saturating_add(of(output, &kept.example.output, &kept.output));
            self.insert(distance, kept, |held| held >= distance);
        }
        true
    }

    /// Takes the steps of a comparison, if there are any left. As many as are wanted are compared in any case.
    fn may_compare(&mut self, kept: &Kept, (input, output): (&Wanted, &Wanted), most: usize) -> bool {
        let steps = input.steps(&kept.input, most).saturating_add(output.steps(&kept.output, most));
        if steps > self.steps && self.best.len() >= self.count {
            return false;
        }
        self.steps = self.steps.saturating_sub(steps);
        self.compared += 1;
        true
    }

    fn insert(&mut self, distance: usize, kept: &'m Kept, stays: impl Fn(usize) -> bool) {
        let at = self.best.partition_point(|(held, _)| stays(*held));
        self.best.insert(at, (distance, kept));
        self.best.truncate(self.count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example(name: &str, input: &str, output: &str) -> Example {
        let [plan, program] = ["", ""].map(str::to_owned);
        Example { name: name.to_owned(), input: input.to_owned(), output: output.to_owned(), plan, program }
    }

    fn memory(of: &[(&str, &str)]) -> Memory {
        let mut memory = Memory::new();
        for (number, (input, output)) in of.iter().enumerate() {
            memory.add(example(&number.to_string(), input, output)).unwrap();
        }
        memory
    }

    fn names(found: &Found<'_>) -> Vec<String> {
        found.examples.iter().map(|example| example.name.clone()).collect()
    }

    /// By the book: one row of the table after the other.
    fn distance(a: &str, b: &str) -> usize {
        let b: Vec<char> = b.chars().collect();
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (at, letter) in a.chars().enumerate() {
            let mut corner = row[0];
            row[0] = at + 1;
            for (column, other) in b.iter().enumerate() {
                let cost = corner + usize::from(letter != *other);
                corner = row[column + 1];
                row[column + 1] = cost.min(row[column] + 1).min(corner + 1);
            }
        }
        row[b.len()]
    }

    #[test]
    fn input_and_output_both_count() {
        let memory = memory(&[("kitten", "x"), ("sitting", "x"), ("kitten", "far away"), ("kätzchen", "y")]);
        let found = memory.nearest("kitten", "x", 2, Order::Nearest);
        assert_eq!((names(&found), found.distances.clone()), (vec!["0".into(), "1".into()], vec![0, 3]));
        let found = memory.nearest("kitten", "x", 1, Order::Farthest);
        assert_eq!((names(&found), found.distances), (vec!["2".into()], vec![8]));
        assert!(memory.nearest("kitten", "x", 0, Order::Nearest).examples.is_empty());
        assert_eq!(memory.nearest("kitten", "x", 9, Order::Nearest).examples.len(), 4);
    }

    #[test]
    fn what_is_too_long_does_not_enter() {
        let mut memory = Memory::new();
        let long = "x".repeat(MAX_EXAMPLE_BYTES + 1);
        assert_eq!(memory.add(example("a", "", &long)), Err(MemoryError::TooLong("output")));
        assert!(memory.is_empty());
        for _ in 0..MAX_MEMORIES {
            memory.add(example("a", "", "")).unwrap();
        }
        assert_eq!(memory.add(example("a", "", "")), Err(MemoryError::Full));
    }

    #[test]
    fn a_search_among_texts_without_anything_in_common_ends_and_says_so() {
        // The same letters in other orders: nothing can be ruled out without comparing.
        let text = |seed: usize| -> String {
            let mut state = (seed as u32).wrapping_mul(2_654_435_761);
            let mut letters: Vec<u8> = (0..2_048).map(|at| b'a' + (at % 26) as u8).collect();
            for at in (1..letters.len()).rev() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                letters.swap(at, (state >> 8) as usize % (at + 1));
            }
            String::from_utf8(letters).unwrap()
        };
        let mut memory = Memory::new();
        for seed in 1..600 {
            memory.add(example("a", "", &text(seed))).unwrap();
        }
        let found = memory.nearest("", &text(0), 3, Order::Nearest);
        assert_eq!(found.examples.len(), 3);
        assert!(!found.complete && found.compared < 600, "{}", found.compared);
        // One that is near is found all the same, for its letters put it first.
        let like = text(0).replacen('a', "b", 2);
        memory.add(example("like", "", &like)).unwrap();
        let near = memory.nearest("", &like.replacen('c', "b", 1), 1, Order::Nearest);
        assert_eq!((names(&near), near.complete), (vec!["like".to_owned()], true));
    }

    proptest! {
        #[test]
        fn the_nearest_are_those_of_comparing_with_all(
            texts in prop::collection::vec(("[abä]{0,12}", "[abc]{0,80}"), 1..20),
            wanted in ("[abä]{0,12}", "[abc]{0,80}"),
            count in 1_usize..5,
        ) {
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let memory = memory(&pairs);
            let mut all: Vec<usize> =
                pairs.iter().map(|(a, b)| distance(a, &wanted.0) + distance(b, &wanted.1)).collect();
            all.sort_unstable();
            let found = memory.nearest(&wanted.0, &wanted.1, count, Order::Nearest);
            prop_assert!(found.complete);
            prop_assert_eq!(&found.distances, &all[..count.min(all.len())]);
            all.reverse();
            let found = memory.nearest(&wanted.0, &wanted.1, count, Order::Farthest);
            prop_assert_eq!(&found.distances, &all[..count.min(all.len())]);
        }
    }
}
