//! Reading a tool's result: its values and its orders. Pure and linear in the text; what the reading means for the run
//! is decided when it is recorded.

use std::ops::Range;

use portcullis_core::infer::words_of;
use portcullis_detect::{Leaf, leaves, sentences};

use crate::book::{KEYS_MAX, Order};
use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::orders;
use crate::secrets;
use crate::values::{Kind, Value, normal_hash, values};
use crate::words::{Before, Shape, Word, hash, stem_hash, words};

/// Sentences that an order may go on for, its own among them.
pub const WINDOW: usize = 3;
/// Most orders taken from one text.
pub const ORDERS_MAX: usize = 512;
/// Shorter leaves hold no order, in bytes.
const ORDER_BYTES_MIN: usize = 8;
/// Longest leaf that counts as one value, in bytes.
const FIELD_BYTES_MAX: usize = 80;
/// How much longer than a value a leaf may be that is nothing else.
const FIELD_MARGIN: usize = 4;

/// A value and how it stood in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Its hash.
    pub hash: u64,
    /// It was a whole field.
    pub field: bool,
}

/// What a tool's result holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its values.
    pub values: Vec<Sighting>,
    /// Its orders.
    pub orders: Vec<Order>,
    /// Hashes of the credentials in it.
    pub secrets: Vec<u64>,
    /// It holds an address.
    pub addresses: bool,
    /// Something was left out for its length.
    pub cut: bool,
    /// Length in bytes.
    pub length: usize,
}

/// Reads a result. `own` are the values of the call that it answers: repeating them says nothing new.
pub fn read(lexicon: &Lexicon, text: &str, own: &[u64]) -> Seen {
    let leaves = leaves(text);
    let mut seen = Seen { cut: leaves.unread().is_some(), length: text.len(), ..Seen::default() };
    for leaf in leaves.iter() {
        let mut found = values(&leaf.text);
        let trimmed = leaf.text.trim();
        for value in &found {
            let alone = value.range.len() + FIELD_MARGIN >= trimmed.len();
            let field = alone || is_cell(&leaf.text, &value.range);
            seen.values.push(Sighting { hash: value.hash, field });
            seen.addresses |= value.kind.is_address();
        }
        if (2..=FIELD_BYTES_MAX).contains(&trimmed.len()) {
            seen.values.push(Sighting { hash: normal_hash(trimmed), field: true });
        }
        seen.secrets.extend(secrets::in_leaf(lexicon, leaf));
        if trimmed.len() >= ORDER_BYTES_MIN {
            found.retain(|value| !own.contains(&value.hash));
            Reader { lexicon, leaf, values: &found }.orders(&mut seen);
        }
    }
    seen
}

/// Whether a value is all of a cell in a row of a table, between two bars with nothing else there.
fn is_cell(text: &str, range: &Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    before.trim_end().ends_with('|') && after.trim_start().starts_with('|')
}

/// A sentence of a leaf that holds an order.
struct Sentence {
    range: Range<usize>,
    words: Vec<Word>,
    stems: Vec<u64>,
    /// It speaks of sending.
    sends: bool,
}

struct Reader<'a> {
    lexicon: &'a Lexicon,
    leaf: &'a Leaf<'a>,
    values: &'a [Value],
}

impl Reader<'_> {
    fn orders(&self, seen: &mut Seen) {
        let cut: Vec<(Range<usize>, Vec<Word>)> = sentences(&self.leaf.text)
            .map(|range| {
                let text = self.leaf.text.get(range.clone()).unwrap_or_default();
                let words = words(text).into_iter().map(|word| word.moved(range.start)).collect();
                (range, words)
            })
            .collect();
        // Values in the order of the text, so that each sentence looks at its own.
        let mut sorted: Vec<&Value> = self.values.iter().collect();
        sorted.sort_by_key(|value| value.range.start);
        let commands: Vec<Option<orders::Command>> = cut
            .iter()
            .map(|(range, own)| {
                let near: Vec<Value> = between(&sorted, range).cloned().collect();
                orders::command(self.lexicon, own, &near)
            })
            .collect();
        if commands.iter().all(Option::is_none) {
            return;
        }
        // Only what stands in the window of an order is read further.
        let near = |at: usize| {
            let from = (at + 1).saturating_sub(WINDOW);
            commands.iter().take(at + 2).skip(from).any(Option::is_some)
        };
        let cut = cut.into_iter().enumerate();
        let sentences: Vec<Sentence> =
            cut.map(|(at, (range, own))| self.sentence(range, own, near(at))).collect();
        for (at, command) in commands.iter().enumerate() {
            let (Some(command), Some(own)) = (command, sentences.get(at)) else { continue };
            if seen.orders.len() >= ORDERS_MAX {
                seen.cut = true;
                return;
            }
            let from = at.saturating_sub(1);
            let window = sentences.get(from..(at + WINDOW).min(sentences.len())).unwrap_or_default();
            seen.orders.push(self.order(command, own, window, &sorted));
        }
    }

    fn sentence(&self, range: Range<usize>, words: Vec<Word>, near: bool) -> Sentence {
        if !near {
            return Sentence { range, words, stems: Vec::new(), sends: false };
        }
        let lexicon = self.lexicon;
        let outward = lexicon.family("send").or(lexicon.family("publish"));
        let sends = words.iter().any(|word| lexicon.verb(word.stem).meets(outward));
        let stems = self.stems(&words);
        Sentence { range, words, stems, sends }
    }

    fn order(
        &self,
        command: &orders::Command,
        own: &Sentence,
        window: &[Sentence],
        values: &[&Value],
    ) -> Order {
        let lexicon = self.lexicon;
        let range = &own.range;
        let since = window.first().map_or(range.start, |sentence| sentence.range.start);
        let until = window.last().map_or(range.end, |sentence| sentence.range.end);
        let after = || between(values, &(range.start..until));
        let verbs =
            command.verbs.iter().filter_map(|at| own.words.get(*at)).map(|word| lexicon.base(word.stem));
        Order {
            range: self.leaf.places.raw(self.clause(command, own)..range.end),
            families: command.families,
            verbs: verbs.collect(),
            own: sorted(own.stems.iter().copied()),
            window: sorted(window.iter().flat_map(|sentence| &sentence.stems).copied()),
            names: sorted(self.names(&own.words)),
            values: sorted(between(values, &(since..until)).map(|value| value.hash)),
            unknown: command.unknown,
            plain: command.plain,
            principal: self.speaks_as_principal(&own.words),
            addresses: after().any(|value| value.kind.is_address()),
            sends: window.iter().any(|sentence| sentence.sends)
                || after().any(|value| value.kind == Kind::Mail),
        }
    }

    /// Where the part of a sentence begins in which its first verb stands. What comes before, *our new flavour, please
    /// send*, is not the order's.
    fn clause(&self, command: &orders::Command, own: &Sentence) -> usize {
        let Some(verb) = command.verbs.first() else { return own.range.start };
        let mut opening = own.range.start;
        // *First, please send* is all of it the order's.
        let mut leads = own.words.first().is_some_and(|word| self.lexicon.classes(word).is(Classes::SKIP));
        for word in own.words.iter().take(*verb + 1).skip(1) {
            if word.before != Before::Space && !leads {
                opening = word.range.start;
                leads = true;
            }
            leads &= self.lexicon.classes(word).is(Classes::SKIP);
        }
        opening
    }

    /// Stems of the words that say something: as verbs, as things, and the parts of compounds.
    fn stems(&self, words: &[Word]) -> Vec<u64> {
        let mut stems = Vec::with_capacity(words.len() * 2);
        for word in words.iter().filter(|word| !self.lexicon.classes(word).is(Classes::FUNCTION)) {
            let (base, thing) = self.lexicon.base_and_thing(word.stem);
            stems.extend([base, thing]);
            if word.shape.is(Shape::CAMEL) {
                let parts = words_of(self.spelt(word));
                stems.extend(parts.iter().map(|part| self.lexicon.thing(stem_hash(part))));
            }
        }
        stems
    }

    fn spelt(&self, word: &Word) -> &str {
        self.leaf.text.get(word.range.clone()).unwrap_or_default()
    }

    /// Words and compounds by which a sentence may name a tool.
    fn names(&self, own: &[Word]) -> Vec<u64> {
        let mut names: Vec<u64> = own.iter().map(|word| word.hash).collect();
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return names };
        let text = self.leaf.text.get(first.range.start..last.range.end).unwrap_or_default();
        let compounds = text.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '-'));
        let joined = compounds.filter(|part| part.contains(['_', '-']));
        names.extend(joined.map(|part| hash(part.to_lowercase().as_bytes())));
        names
    }

    fn speaks_as_principal(&self, own: &[Word]) -> bool {
        own.iter().any(|word| self.lexicon.classes(word).is(Classes::FIRST))
            || own
                .iter()
                .zip(own.iter().skip(1))
                .any(|(before, word)| word.is("user") && self.lexicon.classes(before).is(Classes::DETERMINER))
    }
}

/// The values that lie inside a stretch, of values sorted by their beginning.
fn between<'s, 'v>(
    sorted: &'s [&'v Value],
    range: &Range<usize>,
) -> impl Iterator<Item = &'v Value> + use<'s, 'v> {
    let first = sorted.partition_point(|value| value.range.start < range.start);
    let end = range.end;
    let rest = sorted.get(first..).unwrap_or_default().iter().copied();
    rest.take_while(move |value| value.range.start < end).filter(move |value| value.range.end <= end)
}

fn sorted(hashes: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut hashes: Vec<u64> = hashes.into_iter().collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(KEYS_MAX * 4);
    hashes
}
