//! What the user asked for: the verbs and nouns of the inputs, what they name, and what they hand on.

use std::collections::HashSet;
use std::ops::Range;

use portcullis_detect::sentences;

use crate::arguments::Argument;
use crate::classes::Classes;
use crate::kind::CallKind;
use crate::lexicon::{Families, Lexicon};
use crate::orders;
use crate::values::{Kind, Value, values};
use crate::words::{Before, Word, words};

/// Most stems of the user's words that are remembered.
pub const STEMS_MAX: usize = 16_384;
/// Most sentences that hand on, and most values and words of each.
pub const DELEGATIONS_MAX: usize = 16;
/// Most words and values of one such sentence.
pub const DELEGATION_PARTS_MAX: usize = 256;
/// How many words a *do* may stand before its *tasks*.
const DELEGATION_REACH: usize = 8;

/// What an input says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The values it names.
    pub values: Vec<Value>,
    request: Request,
}

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Families of its verbs, wherever they stand.
    families: Families,
    /// Families of the verbs that stand where an order has them.
    ordered: Families,
    stems: HashSet<u64>,
    kinds: Vec<Kind>,
    /// Sentences that say to do what a source says, as the hashes of their values and things.
    delegations: Vec<HashSet<u64>>,
}

/// What the request says for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Support {
    /// It wants something of this family done.
    pub family: bool,
    /// It orders something of this family.
    pub ordered: bool,
    /// It speaks of what the tool is for.
    pub object: bool,
    /// It names what the call is done to.
    pub target: bool,
}

impl Support {
    /// Whether the request wants this kind of action: two of the three.
    pub fn kind(self) -> bool {
        u8::from(self.family) + u8::from(self.object) + u8::from(self.target) > 1
    }

    /// Whether it shares nothing with the call.
    pub fn none(self) -> bool {
        !self.ordered && !self.object && !self.target
    }
}

/// Reads an input. Linear in the text.
pub fn read(lexicon: &Lexicon, text: &str) -> Said {
    let named = values(text);
    let mut request = Request::default();
    for value in &named {
        if !request.kinds.contains(&value.kind) {
            request.kinds.push(value.kind);
        }
    }
    let mut before = HashSet::new();
    for range in sentences(text) {
        let own: Vec<Word> = words(text.get(range.clone()).unwrap_or_default())
            .into_iter()
            .map(|word| word.moved(range.start))
            .collect();
        let said = things(lexicon, &own, &range, &named);
        if delegates(lexicon, &own) && request.delegations.len() < DELEGATIONS_MAX {
            request.delegations.push(said.union(&before).copied().collect());
        }
        before = said;
        if let Some(command) = orders::command(lexicon, &own, &named) {
            request.ordered = request.ordered.or(command.families);
        }
    }
    request.take_words(lexicon, &words(text));
    Said { values: named, request }
}

/// The values and things of a sentence.
fn things(lexicon: &Lexicon, own: &[Word], range: &Range<usize>, named: &[Value]) -> HashSet<u64> {
    let things = own
        .iter()
        .filter(|word| !lexicon.classes(word).is(Classes::FUNCTION))
        .map(|word| lexicon.thing(word.stem));
    let inside = |value: &&Value| range.start <= value.range.start && value.range.end <= range.end;
    let values = named.iter().filter(inside).map(|value| value.hash);
    things.chain(values).take(DELEGATION_PARTS_MAX).collect()
}

/// Whether a sentence says to do what something else says: *do the tasks on*, *fulfil her request*. Tasks that
/// *follow* are the user's own.
fn delegates(lexicon: &Lexicon, own: &[Word]) -> bool {
    let mut verb: Option<usize> = None;
    for (at, word) in own.iter().enumerate() {
        let classes = lexicon.classes(word);
        let listed = at.checked_sub(1).and_then(|at| own.get(at)).is_some_and(|word| word.is("following"));
        let near = verb.is_some_and(|verb| at.saturating_sub(verb) <= DELEGATION_REACH);
        if classes.is(Classes::DELEGATE_NOUN) && near && !listed {
            return true;
        }
        if classes.is(Classes::DELEGATE_VERB) {
            verb = Some(at);
        }
    }
    false
}

impl Request {
    fn take_words(&mut self, lexicon: &Lexicon, words: &[Word]) {
        let mut verb = false;
        for (at, word) in words.iter().enumerate() {
            if self.stems.len() < STEMS_MAX {
                self.stems.extend([word.stem, lexicon.base(word.stem), lexicon.thing(word.stem)]);
            }
            let families = lexicon.verb(word.stem);
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let determined = word.before == Before::Space
                && before.is_some_and(|word| lexicon.classes(word).is(Classes::DETERMINER));
            if !families.is_empty() && !determined {
                self.families = self.families.or(families);
                verb = true;
            }
            if verb {
                self.families = self.families.or(lexicon.noun(word.stem));
            }
        }
    }

    /// Adds what a further input says.
    pub fn add(&mut self, said: Said) {
        let more = said.request;
        self.families = self.families.or(more.families);
        self.ordered = self.ordered.or(more.ordered);
        let room = STEMS_MAX.saturating_sub(self.stems.len());
        self.stems.extend(more.stems.into_iter().take(room));
        self.kinds
            .extend(more.kinds.into_iter().filter(|kind| !self.kinds.contains(kind)).collect::<Vec<_>>());
        let room = DELEGATIONS_MAX.saturating_sub(self.delegations.len());
        self.delegations.extend(more.delegations.into_iter().take(room));
    }

    /// Whether nothing was asked for yet.
    pub fn is_empty(&self) -> bool {
        self.stems.is_empty()
    }

    /// Whether it has this word.
    pub fn says(&self, stem: u64) -> bool {
        self.stems.contains(&stem)
    }

    /// Whether all words of an argument are its own.
    pub fn says_all(&self, argument: &Argument) -> bool {
        !argument.stems.is_empty() && argument.stems.iter().all(|stem| self.says(*stem))
    }

    /// Whether it names a value of this kind.
    pub fn names_a(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Whether it hands on to any source.
    pub fn hands_on(&self) -> bool {
        !self.delegations.is_empty()
    }

    /// Whether it says to do what the results of this call say.
    pub fn hands_on_to(&self, kind: &CallKind, arguments: &[Argument]) -> bool {
        self.delegations.iter().any(|sentence| {
            kind.objects.iter().any(|object| sentence.contains(object))
                || arguments
                    .iter()
                    .flat_map(|argument| &argument.values)
                    .any(|value| sentence.contains(&value.hash))
        })
    }

    /// What it says for a call. `named` tells whether the user named a value.
    pub fn support(
        &self,
        kind: &CallKind,
        arguments: &[Argument],
        named: impl Fn(&Value) -> bool,
    ) -> Support {
        let verb = kind.verbs.iter().any(|verb| self.says(*verb));
        let family = verb || self.families.meets(kind.families);
        Support {
            family,
            ordered: verb || self.ordered.meets(kind.families),
            object: kind.objects.iter().any(|object| self.says(*object)) || kind.objects.is_empty() && family,
            target: arguments
                .iter()
                .filter(|argument| !argument.content)
                .any(|argument| argument.values.iter().any(&named) || self.says_all(argument)),
        }
    }
}
