//! The patterns of a bundle, ready for matching: concepts are bits, a phrase is found by its first word.

use std::collections::HashMap;

use portcullis_core::bundle::{ACTS, Met, MonitorSettings, Weights};

use super::words::{self, Words};
use crate::lexicon::Hashed;

/// Ways to read one phrase with alternatives.
const EXPANSIONS_MAX: usize = 512;
/// Words that `*` may stand for.
const GAP_MAX: usize = 4;
/// Words of a text that is taken as one stretch; longer ones are read in pairs of sentences.
const STRETCH_MAX: usize = 60;

/// What a match counts for where the circumstances explain it.
const EXCUSED: f64 = 0.25;

/// A set of concepts.
pub type Bits = u128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Word(u64),
    /// A word with a colon after it.
    Head(u64),
    Number,
    Gap,
}

#[derive(Debug, Clone)]
struct Phrase {
    /// A colon follows its first word.
    heads: bool,
    rest: Vec<Step>,
    concept: Bits,
}

/// The phrases that begin with certain words, by the word that follows: a tree of words.
#[derive(Debug, Clone, Default)]
struct Begun {
    /// Those that are at their end, or go on with anything but a certain word.
    open: Vec<Phrase>,
    /// Those that go on with a certain word after a gap, by that word.
    gapped: Vec<(u64, Phrase)>,
    /// Those that go on with a certain word, without it.
    followed: Hashed<Begun>,
}

impl Begun {
    fn add(&mut self, mut phrase: Phrase) {
        match phrase.rest.as_slice() {
            [Step::Word(next), rest @ ..] => {
                let next = *next;
                phrase.rest = rest.to_vec();
                self.followed.entry(next).or_default().add(phrase);
            }
            [Step::Gap, Step::Word(next), ..] => self.gapped.push((*next, phrase)),
            _ => self.open.push(phrase),
        }
    }

    /// Calls `see` with those that go on as the text does.
    fn before<'a>(&'a self, rest: &[words::Word], see: &mut impl FnMut(&'a Phrase)) {
        self.open.iter().filter(|phrase| follows(&phrase.rest, rest, 0)).for_each(&mut *see);
        if !self.gapped.is_empty() {
            let near = rest.iter().take(GAP_MAX + 1).take_while(|word| !word.begins);
            let comes = |next: u64| near.clone().any(|word| word.stem == next || word.plain == next);
            let found = self.gapped.iter().filter(|(next, _)| comes(*next));
            let found = found.filter(|(_, phrase)| follows(&phrase.rest, rest, 0));
            found.for_each(|(_, phrase)| see(phrase));
        }
        let Some((next, rest)) = rest.split_first().filter(|(next, _)| !next.begins) else { return };
        if self.followed.is_empty() {
            return;
        }
        if let Some(begun) = self.followed.get(&next.stem) {
            begun.before(rest, see);
        }
        if next.plain != 0
            && next.plain != next.stem
            && let Some(begun) = self.followed.get(&next.plain)
        {
            begun.before(rest, see);
        }
    }
}

/// Where the alternatives of a need are looked for.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    here: Bits,
    earlier: Bits,
    seen: Bits,
    since: Bits,
}

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) name: String,
    pub(super) family: String,
    needs: Vec<Wanted>,
    unless: Bits,
    never: Bits,
    /// Itself as a concept, if it is one of results.
    itself: Bits,
    input: bool,
    call: bool,
    pub(super) matches: f64,
    pub(super) cues: f64,
    pub(super) risk: f64,
    violation: bool,
}

impl Pattern {
    /// Whether a stretch with these concepts has all that it needs.
    fn is_met(&self, here: Bits, before: &Before) -> bool {
        // A call is no turn of the user's: what its own words say was not asked for.
        let said = if before.speaks { here } else { 0 };
        let spoken = before.earlier | said;
        let since = before.since.map_or(0, |since| since | said);
        self.needs.iter().all(|need| {
            here & need.here != 0
                || spoken & need.earlier != 0
                || before.seen & need.seen != 0
                || since & need.since != 0
        })
    }
}

/// Tells of most stems at once that no phrase begins with them: a bit for each that one begins with.
#[derive(Debug, Clone)]
struct Firsts([u64; FIRSTS]);

/// Words of [`Firsts`]: 4 KiB, of which the phrases that ship set a bit in twenty.
const FIRSTS: usize = 512;

impl Default for Firsts {
    fn default() -> Self {
        Self([0; FIRSTS])
    }
}

impl Firsts {
    fn of<'s>(stems: impl Iterator<Item = &'s u64>) -> Self {
        let mut firsts = Self::default();
        for stem in stems {
            if let Some(bits) = firsts.0.get_mut(Self::place(*stem)) {
                *bits |= Self::bit(*stem);
            }
        }
        firsts
    }

    fn may_have(&self, stem: u64) -> bool {
        self.0.get(Self::place(stem)).is_some_and(|bits| bits & Self::bit(stem) != 0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "cut to what there are words of")]
    const fn place(stem: u64) -> usize {
        (stem >> u64::BITS.ilog2()) as usize % FIRSTS
    }

    const fn bit(stem: u64) -> u64 {
        1 << (stem % u64::BITS as u64)
    }
}

/// What was met before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// In the user's turns.
    pub(super) earlier: Bits,
    /// In results.
    pub(super) seen: Bits,
    /// In the user's turns after a result that reported a restriction, or `None` if no result did.
    pub(super) since: Option<Bits>,
    /// Whether what is looked at is a turn of the user's, which then counts as one of them.
    pub(super) speaks: bool,
}

/// A pattern that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Number of the pattern.
    pub pattern: usize,
    /// 1, or a quarter where the circumstances explain it.
    pub weight: f64,
}

/// A stretch of a text with the concepts in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) all: Bits,
    /// Outside of quotation marks.
    pub(super) own: Bits,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// See the [module documentation](self).
#[derive(Debug, Clone)]
pub struct Vocabulary {
    phrases: Hashed<Begun>,
    firsts: Firsts,
    bits: HashMap<String, Bits>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) weights: Weights,
    /// Numbers of the patterns, by what they are of.
    inputs: Vec<usize>,
    calls: Vec<usize>,
    violations: Vec<usize>,
    results: Vec<usize>,
    /// What rules a violation out.
    pub(super) unviolated: Bits,
    pub(super) known: Known,
}

/// The concepts that the monitors themselves speak of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) address: Bits,
    pub(super) ai_order: Bits,
    pub(super) asked: Bits,
    keyword: Bits,
    pub(super) legitimate: Bits,
    pub(super) log_file: Bits,
    mention: Bits,
    pub(super) notice: Bits,
    pub(super) restricted: Bits,
    pub(super) restricted_twice: Bits,
    pub(super) act_after_talk: Bits,
    pub(super) act_beside: Bits,
    pub(super) act_change: Bits,
    pub(super) act_destroy: Bits,
    pub(super) act_outside: Bits,
    pub(super) act_own_rules: Bits,
    pub(super) act_read: Bits,
    pub(super) act_run: Bits,
    pub(super) act_secret: Bits,
    pub(super) act_send: Bits,
    pub(super) act_trail: Bits,
    pub(super) act_wipe: Bits,
}

impl Known {
    fn of(bit: impl Fn(&str) -> Bits) -> Self {
        Self {
            address: bit("address"),
            ai_order: bit("ai-order"),
            asked: bit("asked"),
            keyword: bit("keyword"),
            legitimate: bit("legitimate"),
            log_file: bit("log-file"),
            mention: bit("mention"),
            notice: bit("notice"),
            restricted: bit("restricted"),
            restricted_twice: bit("restricted-twice"),
            act_after_talk: bit("act-after-talk"),
            act_beside: bit("act-beside"),
            act_change: bit("act-change"),
            act_destroy: bit("act-destroy"),
            act_outside: bit("act-outside"),
            act_own_rules: bit("act-own-rules"),
            act_read: bit("act-read"),
            act_run: bit("act-run"),
            act_secret: bit("act-secret"),
            act_send: bit("act-send"),
            act_trail: bit("act-trail"),
            act_wipe: bit("act-wipe"),
        }
    }
}

/// Which patterns are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Those of inputs.
    Inputs,
    /// Those of calls that are no violations.
    Calls,
    /// Violations.
    Violations,
    /// Those of results.
    Results,
}

impl Vocabulary {
    /// Makes the settings of a bundle ready.
    pub fn new(settings: &MonitorSettings) -> Self {
        let mut vocabulary = Self {
            phrases: Hashed::default(),
            firsts: Firsts::default(),
            bits: HashMap::new(),
            patterns: Vec::new(),
            weights: settings.weights,
            inputs: Vec::new(),
            calls: Vec::new(),
            violations: Vec::new(),
            results: Vec::new(),
            unviolated: 0,
            known: Known::default(),
        };
        for act in ACTS {
            vocabulary.bit(act);
        }
        for (name, phrases) in &settings.concepts {
            let concept = vocabulary.bit(name);
            for phrase in phrases {
                vocabulary.add(phrase, concept);
            }
        }
        for pattern in settings.patterns.iter().filter(|pattern| pattern.on.result) {
            vocabulary.bit(&pattern.name);
        }
        vocabulary.patterns = settings.patterns.iter().map(|pattern| vocabulary.compile(pattern)).collect();
        let numbers = |wanted: fn(&Pattern) -> bool| -> Vec<usize> {
            let numbered = vocabulary.patterns.iter().enumerate();
            numbered.filter(|(_, pattern)| wanted(pattern)).map(|(number, _)| number).collect()
        };
        let firsts = Firsts::of(vocabulary.phrases.keys());
        let inputs = numbers(|pattern| pattern.input);
        let calls = numbers(|pattern| pattern.call && !pattern.violation);
        let violations = numbers(|pattern| pattern.call && pattern.violation);
        let results = numbers(|pattern| pattern.itself != 0);
        let known = Known::of(|name| vocabulary.of(name));
        let nevers = violations.iter().filter_map(|number| vocabulary.patterns.get(*number));
        let unviolated = nevers.fold(0, |bits, pattern| bits | pattern.never);
        Self { firsts, inputs, calls, violations, results, unviolated, known, ..vocabulary }
    }

    /// The bit of a concept; a further one where there is room for it.
    fn bit(&mut self, name: &str) -> Bits {
        let next = self.bits.len();
        *self.bits.entry(name.to_owned()).or_insert_with(|| {
            u32::try_from(next).ok().and_then(|next| Bits::checked_shl(1, next)).unwrap_or(0)
        })
    }

    /// The bit of a concept; empty if there is no such concept.
    pub(super) fn of(&self, name: &str) -> Bits {
        self.bits.get(name).copied().unwrap_or(0)
    }

    fn add(&mut self, phrase: &str, concept: Bits) {
        let mut readings = vec![String::new()];
        for part in phrase.split_whitespace() {
            let alternatives: Vec<&str> = part.split('|').collect();
            readings = readings
                .iter()
                .flat_map(|reading| alternatives.iter().map(move |word| format!("{reading} {word}")))
                .take(EXPANSIONS_MAX)
                .collect();
        }
        for reading in readings {
            let mut steps = Vec::new();
            for part in reading.split_whitespace() {
                match part {
                    "*" => steps.push(Step::Gap),
                    "#" => steps.push(Step::Number),
                    word => steps.extend(words::words(word).list.iter().map(|word| match word.heads {
                        true => Step::Head(word.stem),
                        false => Step::Word(word.stem),
                    })),
                }
            }
            let Some((Step::Word(first) | Step::Head(first), rest)) = steps.split_first() else { continue };
            let heads = matches!(steps.first(), Some(Step::Head(_)));
            let phrase = Phrase { heads, rest: rest.to_vec(), concept };
            self.phrases.entry(*first).or_default().add(phrase);
        }
    }

    fn compile(&self, pattern: &portcullis_core::bundle::Pattern) -> Pattern {
        let wanted = |needs: &Vec<portcullis_core::bundle::Need>| {
            let mut wanted = Wanted::default();
            for need in needs {
                let bit = self.of(&need.concept);
                match need.met {
                    Met::Here => wanted.here |= bit,
                    Met::Earlier => wanted.earlier |= bit,
                    Met::Seen => wanted.seen |= bit,
                    Met::Since => wanted.since |= bit,
                }
            }
            wanted
        };
        let all = |names: &Vec<String>| names.iter().fold(0, |bits, name| bits | self.of(name));
        Pattern {
            name: pattern.name.clone(),
            family: pattern.family.clone(),
            needs: pattern.needs.iter().map(wanted).collect(),
            unless: all(&pattern.unless),
            never: all(&pattern.never),
            itself: if pattern.on.result { self.of(&pattern.name) } else { 0 },
            input: pattern.on.input,
            call: pattern.on.call,
            matches: f64::from(pattern.matches),
            cues: f64::from(pattern.cues),
            risk: f64::from(pattern.risk_permille) / 1_000.0,
            violation: pattern.violation,
        }
    }

    /// The stretches of a text with their concepts, and how many risky words it has.
    pub(super) fn stretches(&self, words: &Words) -> (Vec<Stretch>, u32) {
        let mut sentences: Vec<Stretch> = Vec::new();
        let mut keywords = 0_u32;
        for (at, first) in words.list.iter().enumerate() {
            if first.begins || sentences.is_empty() {
                sentences.push(Stretch { start: first.start, end: first.end, ..Stretch::default() });
            }
            let Some(sentence) = sentences.last_mut() else { break };
            sentence.end = first.end;
            if first.plain == 0 && !self.firsts.may_have(first.stem) {
                continue;
            }
            let rest = words.list.get(at + 1..).unwrap_or_default();
            let mut see = |phrase: &Phrase| {
                if first.heads || !phrase.heads {
                    sentence.all |= phrase.concept;
                    if !first.quoted {
                        sentence.own |= phrase.concept;
                    }
                    keywords = keywords.saturating_add(u32::from(phrase.concept == self.known.keyword));
                }
            };
            if let Some(begun) = self.phrases.get(&first.stem) {
                begun.before(rest, &mut see);
            }
            if first.plain != 0
                && let Some(begun) = self.phrases.get(&first.plain)
            {
                begun.before(rest, &mut see);
            }
        }
        if words.address
            && let Some(last) = sentences.last_mut()
        {
            last.all |= self.known.address;
            last.own |= self.known.address;
        }
        (join(sentences, words.list.len()), keywords)
    }

    /// The patterns that match in the stretches of one text, each once, with the stretch of the first that matters.
    pub(super) fn matches(
        &self,
        stretches: &[Stretch],
        acts: Bits,
        before: Before,
        of: Of,
    ) -> (Vec<Match>, Option<Stretch>) {
        let empty = [Stretch::default()];
        let searched = if stretches.is_empty() { empty.as_slice() } else { stretches };
        let own = searched.iter().fold(acts, |bits, stretch| bits | stretch.own);
        let all = searched.iter().fold(acts, |bits, stretch| bits | stretch.all);
        // What is quoted by someone who speaks about quotations is not asked for.
        let mentioned = own & self.known.mention != 0;
        let excused = own | before.earlier & self.known.legitimate;
        let anywhere = if mentioned { own } else { all };
        let mut found = Vec::new();
        let mut place = None;
        let wanted = match of {
            Of::Inputs => &self.inputs,
            Of::Calls => &self.calls,
            Of::Violations => &self.violations,
            Of::Results => &self.results,
        };
        let patterns = wanted.iter().filter_map(|number| Some((*number, self.patterns.get(*number)?)));
        for (number, pattern) in patterns {
            // What the text as a whole does not have, no stretch of it has.
            if own & pattern.never != 0 || !pattern.is_met(anywhere, &before) {
                continue;
            }
            let here = |stretch: &Stretch| acts | if mentioned { stretch.own } else { stretch.all };
            let hit = searched.iter().find(|stretch| pattern.is_met(here(stretch), &before));
            if let Some(stretch) = hit {
                let weight = if excused & pattern.unless != 0 { EXCUSED } else { 1.0 };
                found.push(Match { pattern: number, weight });
                place.get_or_insert(*stretch);
            }
        }
        (found, place)
    }

    /// The concepts of a result, those of its patterns included.
    pub(super) fn result(&self, stretches: &[Stretch]) -> Bits {
        let bits = stretches.iter().fold(0, |bits, stretch| bits | stretch.all);
        let (found, _) = self.matches(stretches, 0, Before::default(), Of::Results);
        let patterns = found.iter().filter_map(|found| self.patterns.get(found.pattern));
        patterns.fold(bits, |bits, pattern| bits | pattern.itself)
    }

    /// A set of concepts of another vocabulary in this one.
    pub(super) fn translate(&self, other: &Self, bits: Bits) -> Bits {
        let met = other.bits.iter().filter(|(_, bit)| bits & **bit != 0);
        met.fold(0, |all, (name, _)| all | self.of(name))
    }

    /// Whether the concept of that name is in the set.
    pub fn has(&self, bits: Bits, name: &str) -> bool {
        bits & self.of(name) != 0
    }
}

/// Whether the words go on as the phrase does. A phrase does not reach into the next sentence.
fn follows(steps: &[Step], words: &[words::Word], depth: usize) -> bool {
    let Some((step, steps)) = steps.split_first() else { return true };
    match step {
        Step::Gap => {
            let mut rest = words;
            // Gaps within gaps would be tried in all combinations; two are enough for any phrase.
            (depth < 2)
                && (0..=GAP_MAX).any(|_| {
                    let found = follows(steps, rest, depth + 1);
                    // No word is left out that begins a sentence.
                    let next = rest.split_first().filter(|(word, _)| !word.begins);
                    rest = next.map_or(&[], |(_, after)| after);
                    found
                })
        }
        Step::Word(stem) => words.split_first().is_some_and(|(word, rest)| {
            !word.begins && (word.stem == *stem || word.plain == *stem) && follows(steps, rest, depth)
        }),
        Step::Head(stem) => words.split_first().is_some_and(|(word, rest)| {
            !word.begins && word.heads && word.stem == *stem && follows(steps, rest, depth)
        }),
        Step::Number => words
            .split_first()
            .is_some_and(|(word, rest)| !word.begins && word.number && follows(steps, rest, depth)),
    }
}

/// A short text is one stretch; of a longer one, each sentence with the next.
fn join(sentences: Vec<Stretch>, words: usize) -> Vec<Stretch> {
    let both = |a: &Stretch, b: &Stretch| Stretch {
        all: a.all | b.all,
        own: a.own | b.own,
        start: a.start,
        end: b.end,
    };
    if words <= STRETCH_MAX {
        return sentences.into_iter().reduce(|a, b| both(&a, &b)).into_iter().collect();
    }
    if sentences.len() < 2 {
        return sentences;
    }
    sentences.iter().zip(sentences.iter().skip(1)).map(|(a, b)| both(a, b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        Vocabulary::new(&MonitorSettings::built_in())
    }

    fn concepts(text: &str) -> Bits {
        let (stretches, _) = vocabulary().stretches(&words::words(text));
        stretches.iter().fold(0, |bits, stretch| bits | stretch.all)
    }

    #[test]
    fn every_concept_that_ships_has_a_bit_of_its_own() {
        let vocabulary = vocabulary();
        let mut bits: Vec<Bits> = vocabulary.bits.values().copied().collect();
        bits.sort_unstable();
        bits.dedup();
        assert!(bits.len() == vocabulary.bits.len() && bits.iter().all(|bit| bit.count_ones() == 1));
    }

    #[test]
    fn phrases_are_found_in_other_forms_and_spellings() {
        let vocabulary = vocabulary();
        for (text, concept) in [
            ("Do it without anyone ever noticing.", "conceal"),
            ("WITH0UT anybody N0TICING it", "conceal"),
            ("She can’t find out", "conceal"),
            ("their p4ssw0rds", "credential"),
            ("gps logs go there; log gps", "capture"),
        ] {
            assert!(vocabulary.has(concepts(text), concept), "{text}");
        }
        assert!(!vocabulary.has(concepts("Without. Anyone noticing?"), "conceal"), "two sentences");
    }
}
