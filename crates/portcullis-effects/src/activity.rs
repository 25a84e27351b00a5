//! Tasks in plain language: which of the bundle's activities a request is about.
//!
//! A task is a request such as *Find the cheapest hotel near the airport and sort by price*. It is read as English
//! requests are built, without a model, and so that a person can follow why:
//!
//! 1. [`Lexicon`](portcullis_core::lexicon::Lexicon) cuts it into words and finds the phrases that the activities
//!    list. The longest phrase of an activity wins, and what stands `apart` hides the words in it.
//! 2. A thing that only qualifies another one is not meant: in *movie poster* the poster is
//!    ([`qualifies`]).
//! 3. Each word gets its [`Place`]: a verb opens a clause, what follows is its object up to the first preposition,
//!    the rest circumstances. *List*, *price* and their like stand for what follows them. What comes after *near*
//!    only says where something is.
//! 4. An object or phrase of an activity in object position names the activity. Only where no activity is named
//!    do circumstances count, and then two of them are needed.
//! 5. An activity with the literal scope has to be asked for with one of its verbs; one that yields counts only
//!    where no other is named.
//!
//! What is about none of them is an effect on the activity `other`.

use std::ops::Range;

use portcullis_core::bundle::{Activities, ActivityScope, WordRole};
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::lexicon::{Class, Token};

use crate::limits::TEXT_BYTES_MAX;
use crate::{Sink, Surroundings};

/// Most words of a task. One that is longer is unknown.
pub const WORDS_MAX: usize = 1_024;
/// The activity of tasks that are about none of the bundle's.
pub const OTHER: &str = "other";
/// How many circumstances name an activity where no object does.
const CIRCUMSTANCES_MIN: usize = 2;

/// Reads `text` and adds the activities that it asks for to `sink`.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let activities = &surroundings.settings.activities;
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("the task has {} bytes; the limit is {TEXT_BYTES_MAX}", text.len());
        return sink.unknown("task", why, 0..text.len());
    }
    let Some(tokens) = activities.lexicon().tokens(text, WORDS_MAX) else {
        let why = format!("the task has more than {WORDS_MAX} words");
        return sink.unknown("task", why, 0..text.len());
    };
    if tokens.is_empty() {
        return sink.unknown("task", "the task has no words", 0..text.len());
    }
    let named = Task::new(activities, &tokens).named();
    for (number, range) in &named {
        if let Some(activity) = activities.get(*number) {
            add(sink, &activity.name, range.clone());
        }
    }
    if named.is_empty() {
        add(sink, OTHER, 0..text.len());
    }
}

fn add(sink: &mut Sink<'_>, name: &str, range: Range<usize>) {
    sink.add(Effect::new(Verb::Execute, Resource::new(ResourceKind::Activity, name)), range);
}

/// Where a word is in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// What a clause asks for.
    Object,
    /// What narrows the request: *sort by*, *filter*.
    Refinement,
    /// A circumstance.
    Circumstance,
    /// Says where something else is.
    Landmark,
}

/// A phrase of an activity in the task.
#[derive(Debug, Clone, Copy)]
struct Mention {
    activity: usize,
    role: WordRole,
    /// First token and one past the last.
    start: usize,
    end: usize,
}

struct Task<'a> {
    activities: &'a Activities,
    tokens: &'a [Token],
    mentions: Vec<Mention>,
    places: Vec<Place>,
    /// The clause of each token: the number of the token that opens it.
    clauses: Vec<usize>,
}

impl<'a> Task<'a> {
    fn new(activities: &'a Activities, tokens: &'a [Token]) -> Self {
        let mut mentions = mentions(activities, tokens);
        let (places, clauses) = places(tokens, &mentions);
        // The verb of a clause is nobody's thing: one does not look for a book when one books.
        mentions.retain(|mention| {
            let opens = mention.end == mention.start + 1
                && clauses.get(mention.start) == Some(&mention.start)
                && tokens.get(mention.start).is_some_and(|token| token.verb.is_some());
            !(opens && matches!(mention.role, WordRole::Object | WordRole::General))
        });
        Self { activities, tokens, mentions, places, clauses }
    }

    fn place(&self, mention: &Mention) -> Place {
        self.places.get(mention.start).copied().unwrap_or(Place::Circumstance)
    }

    fn clause(&self, token: usize) -> usize {
        self.clauses.get(token).copied().unwrap_or(0)
    }

    fn yields(&self, activity: usize) -> bool {
        self.activities.get(activity).is_some_and(|activity| activity.yields)
    }

    /// The activities that are asked for, each with the words that say so.
    fn named(&self) -> Vec<(usize, Range<usize>)> {
        let mut named: Vec<Mention> = Vec::new();
        let mut claim = |mention: &Mention| {
            if !named.iter().any(|other| other.activity == mention.activity) {
                named.push(*mention);
            }
        };
        let names = |mention: &&Mention| match mention.role {
            WordRole::Object => self.place(mention) == Place::Object,
            WordRole::Phrase => self.place(mention) != Place::Landmark,
            _ => false,
        };
        self.mentions.iter().filter(names).for_each(&mut claim);
        if named.is_empty() {
            let refined = |mention: &&Mention| {
                mention.role == WordRole::Object && self.place(mention) == Place::Refinement
            };
            self.mentions.iter().filter(refined).take(1).for_each(|mention| named.push(*mention));
        }
        if named.iter().any(|mention| !self.yields(mention.activity)) {
            named.retain(|mention| !self.yields(mention.activity));
        }
        if named.is_empty() {
            named.extend(self.by_verb_alone());
        }
        if named.is_empty() {
            named.extend(self.by_circumstances());
        }
        named.retain(|mention| self.in_scope(mention.activity));
        named.iter().map(|mention| (mention.activity, self.range(mention))).collect()
    }

    fn range(&self, mention: &Mention) -> Range<usize> {
        let first = self.tokens.get(mention.start).map_or(0, |token| token.range.start);
        let last = self.tokens.get(mention.end.saturating_sub(1)).map_or(first, |token| token.range.end);
        first..last
    }

    /// An object that could be anything: an *apartment* for a night or for years, by the circumstances. Else *buy*
    /// whatever it is, *watch* whatever it is.
    fn by_verb_alone(&self) -> Option<Mention> {
        let general =
            |mention: &&Mention| mention.role == WordRole::General && self.place(mention) == Place::Object;
        let alone = |mention: &&Mention| mention.role == WordRole::VerbOfAnything && self.opens(mention);
        let mut best: Option<(usize, Mention)> = None;
        for mention in self.mentions.iter().filter(general) {
            let count = self.circumstances(mention.activity);
            let better = best.is_none_or(|(most, other)| {
                count > most
                    || (count == most && self.yields(other.activity) && !self.yields(mention.activity))
            });
            if better {
                best = Some((count, *mention));
            }
        }
        best.map(|(_, mention)| mention).or_else(|| self.mentions.iter().find(alone).copied())
    }

    fn is_circumstance(&self, mention: &Mention) -> bool {
        matches!(mention.role, WordRole::Object | WordRole::General | WordRole::Cue)
            && self.place(mention) != Place::Landmark
    }

    fn circumstances(&self, activity: usize) -> usize {
        let of = |mention: &&Mention| mention.activity == activity && self.is_circumstance(mention);
        distinct(self.mentions.iter().filter(of))
    }

    /// Whether a mention is the verb of its clause.
    fn opens(&self, mention: &Mention) -> bool {
        self.clause(mention.start) == mention.start
    }

    /// The activity with most circumstances, if it has enough of them. One that yields has to have more.
    fn by_circumstances(&self) -> Option<Mention> {
        let mut best: Option<(usize, Mention)> = None;
        for activity in 0..self.activities.len() {
            let counts = |mention: &&Mention| mention.activity == activity && self.is_circumstance(mention);
            let count = self.circumstances(activity);
            let Some(first) = self.mentions.iter().find(counts) else { continue };
            let better = best.is_none_or(|(most, other)| {
                count > most || (count == most && self.yields(other.activity) && !self.yields(activity))
            });
            if count >= CIRCUMSTANCES_MIN && better {
                best = Some((count, *first));
            }
        }
        best.map(|(_, mention)| mention)
    }

    /// Whether the activity reaches as far as this request. The literal scope wants one of its verbs, in the
    /// clause of one of its things or in one that names nobody's.
    fn in_scope(&self, activity: usize) -> bool {
        if self.activities.get(activity).is_none_or(|activity| activity.scope == ActivityScope::Intent) {
            return true;
        }
        let verbs = self.mentions.iter().filter(|mention| {
            mention.activity == activity
                && matches!(mention.role, WordRole::Verb | WordRole::VerbOfAnything)
                && self.opens(mention)
        });
        let mut clauses = verbs.map(|verb| self.clause(verb.start));
        clauses.any(|clause| {
            let mut owners = self.mentions.iter().filter(|mention| {
                self.clause(mention.start) == clause
                    && matches!(mention.role, WordRole::Object | WordRole::Phrase)
                    && self.place(mention) == Place::Object
                    && !self.yields(mention.activity)
            });
            let mine = owners.clone().any(|mention| mention.activity == activity);
            mine || owners.next().is_none()
        })
    }
}

/// The phrases in the task: of each activity the longest at each place, without those that stand apart and those
/// that only qualify another thing.
fn mentions(activities: &Activities, tokens: &[Token]) -> Vec<Mention> {
    let mut all: Vec<Mention> = Vec::new();
    for start in 0..tokens.len() {
        let rest = tokens.get(start..).unwrap_or_default();
        for ((activity, role), length) in activities.lexicon().phrases_at(rest) {
            all.push(Mention { activity: *activity, role: *role, start, end: start + length });
        }
    }
    // Mentions are in the order of their first words, so those that could hide one are neighbours of it.
    let longest = all.iter().map(|mention| mention.end - mention.start).max().unwrap_or(0);
    let first_at = |token: usize| all.partition_point(|mention| mention.start < token);
    let verb = |role| matches!(role, WordRole::Verb | WordRole::VerbOfAnything);
    let hides = |other: &Mention, mention: &Mention| {
        let around = other.start <= mention.start && mention.end <= other.end;
        let longer = other.end - other.start > mention.end - mention.start;
        let of_it = other.activity == mention.activity;
        let same = of_it && (verb(other.role) == verb(mention.role) || other.role == WordRole::Apart);
        (around && longer && same) || qualifies(mention, other, tokens)
    };
    let hidden = |mention: &Mention| {
        let near = first_at(mention.end.saturating_sub(longest))..first_at(mention.end + 1);
        all.get(near).unwrap_or_default().iter().any(|other| hides(other, mention))
    };
    all.iter().filter(|mention| mention.role != WordRole::Apart && !hidden(mention)).copied().collect()
}

/// How many mentions do not overlap an earlier one.
fn distinct<'m>(mentions: impl Iterator<Item = &'m Mention>) -> usize {
    let mut end = 0;
    mentions
        .filter(|mention| {
            mention.start >= end && {
                end = mention.end;
                true
            }
        })
        .count()
}

/// Whether a thing of one activity only says of which sort a thing of another one is: it stands within the other's
/// name, or directly before it.
fn qualifies(mention: &Mention, other: &Mention, tokens: &[Token]) -> bool {
    if mention.activity == other.activity
        || other.role != WordRole::Object
        || !matches!(mention.role, WordRole::Object | WordRole::General | WordRole::Cue)
    {
        return false;
    }
    let longer = other.end - other.start > mention.end - mention.start;
    let within = other.start <= mention.start && mention.end <= other.end && longer;
    let joined = tokens.get(other.start).is_some_and(|token| !token.after_comma && !token.begins);
    let before = mention.role != WordRole::Cue && mention.end == other.start && joined;
    within || before
}

/// The place of each token and the clause it belongs to.
fn places(tokens: &[Token], mentions: &[Mention]) -> (Vec<Place>, Vec<usize>) {
    let mut places = Vec::with_capacity(tokens.len());
    let mut clauses = Vec::with_capacity(tokens.len());
    let things = Things::of(tokens, mentions);
    let (mut place, mut clause) = (Place::Object, 0);
    // Whether the object was named, not only alluded to.
    let mut named = false;
    // Whether the circumstance is something that comes along.
    let mut along = false;
    // Whether anything was named before.
    let mut any_named = false;
    // Whether a verb may stand here.
    let mut open = true;
    for (index, token) in tokens.iter().enumerate() {
        let class = token.class;
        open |= token.begins || token.after_comma;
        let verb = token.verb.is_some()
            && (open && !token.participle || token.begins)
            && !things.begins_a_name(index);
        if verb || token.begins {
            clause = index;
            place = if class.is(Class::REFINE) && any_named { Place::Refinement } else { Place::Object };
            // In *a car to rent in Rome* the verb's object is what was named before.
            let infinitive = index.checked_sub(1).and_then(|before| tokens.get(before));
            named = match verb {
                true => any_named && infinitive.is_some_and(|before| before.class.is(Class::TO)),
                false => names(token, index, &things),
            };
        } else if class.is(Class::LANDMARK) {
            place = Place::Landmark;
        } else if class.is(Class::RELATIVE) && place == Place::Object && named {
            place = Place::Circumstance;
        } else if class.is(Class::PREPOSITION) {
            let ends = place == Place::Object && named && !class.is(Class::OF);
            if ends || place == Place::Landmark {
                place = Place::Circumstance;
            }
        } else if place == Place::Object {
            named |= names(token, index, &things);
        } else if place == Place::Circumstance && !along && class.is(Class::ARTICLE) && joins(index, tokens) {
            // *A flight to Oslo and a hotel*.
            place = Place::Object;
        }
        along = (along && place == Place::Circumstance) || class.is(Class::ALONG);
        any_named |= named;
        let leads_in = class.is(Class::CONJUNCTION.with(Class::TO));
        open = leads_in || (open && !verb && class.is(Class::FILLER));
        places.push(place);
        clauses.push(clause);
    }
    (places, clauses)
}

/// Whether the word before is *and* or similar.
fn joins(index: usize, tokens: &[Token]) -> bool {
    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
    before.is_some_and(|before| before.class.is(Class::CONJUNCTION))
}

/// Which tokens belong to things that are named.
struct Things(Vec<(bool, bool)>);

impl Things {
    fn of(tokens: &[Token], mentions: &[Mention]) -> Self {
        let mut marks = vec![(false, false); tokens.len()];
        for mention in mentions.iter().filter(|mention| mention.role == WordRole::Object) {
            for mark in marks.get_mut(mention.start..mention.end).unwrap_or_default() {
                mark.0 = true;
            }
            if let Some(mark) = marks.get_mut(mention.start).filter(|_| mention.end > mention.start + 1) {
                mark.1 = true;
            }
        }
        Self(marks)
    }

    fn cover(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|(thing, _)| *thing)
    }

    /// Whether a name of several words begins there: *watch list* is not a request to watch.
    fn begins_a_name(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|(_, begins)| *begins)
    }
}

/// Whether a word tells what is meant, rather than how much or which of it.
fn names(token: &Token, index: usize, things: &Things) -> bool {
    let vague = Class::FILLER.with(Class::TRANSPARENT).with(Class::MODIFIER).with(Class::CONJUNCTION);
    things.cover(index) || !(token.number || token.class.is(vague))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use portcullis_core::bundle::Bundle;
    use portcullis_core::effect::Effects;
    use proptest::prelude::*;

    use super::*;

    fn bundle(scope: &str) -> Bundle {
        let activities = format!(
            "[[activity]]\nname = \"book-hotel\"\nscope = \"{scope}\"\nverbs = [\"book\"]\n\
             objects = [\"hotel\", \"room\"]\ncues = [\"# night\", \"guest\"]\napart = [\"hotel manager\"]\n\
             [[activity]]\nname = \"shop\"\nyields = true\nverbs_of_anything = [\"buy\"]\n\
             objects = [\"poster\"]\ngeneral = [\"item\"]\n"
        );
        let policy = "[[policy]]\nname = \"p\"\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
        let files = [
            ("portcullis.toml", "version = 1\n"),
            ("policies/p.toml", policy),
            ("activities/a.toml", &activities),
        ];
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
        Bundle::load(&files).unwrap()
    }

    fn read_with(bundle: &Bundle, text: &str) -> Vec<String> {
        let surroundings =
            Surroundings { settings: &bundle.effects, workspace: None, home: None, directory: None };
        let mut effects = Effects::none();
        read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/task"));
        effects
            .iter()
            .map(|effect| {
                let span = effect.span.as_ref().unwrap();
                format!("{} <{}>", effect.resource, text.get(span.start..span.end).unwrap())
            })
            .collect()
    }

    #[test]
    fn the_scope_decides_whether_a_step_towards_it_counts() {
        let (intent, literal) = (bundle("intent"), bundle("literal"));
        for (task, with_intent, with_literal) in [
            ("Find a cheap hotel in Rome", "book-hotel <hotel>", "other <Find a cheap hotel in Rome>"),
            ("Book a hotel in Rome", "book-hotel <hotel>", "book-hotel <hotel>"),
            ("Find a hotel and book it", "book-hotel <hotel>", "book-hotel <hotel>"),
            ("I want to book a room", "book-hotel <room>", "book-hotel <room>"),
        ] {
            assert_eq!(read_with(&intent, task), [format!("activity {with_intent}")], "{task}");
            assert_eq!(read_with(&literal, task), [format!("activity {with_literal}")], "{task}");
        }
    }

    #[test]
    fn the_head_of_a_name_counts_and_a_landmark_does_not() {
        let bundle = bundle("intent");
        for (task, want) in [
            ("Buy a hotel poster", "shop <poster>"),
            ("Find a hotel manager", "other <Find a hotel manager>"),
            ("Find a park near the hotel", "other <Find a park near the hotel>"),
            ("Find the prices of rooms", "book-hotel <rooms>"),
            ("Somewhere for 3 nights, 2 guests", "book-hotel <3 nights>"),
            ("Buy something", "shop <Buy>"),
            ("Buy a hotel", "book-hotel <hotel>"),
        ] {
            assert_eq!(read_with(&bundle, task), [format!("activity {want}")], "{task}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let bundle = bundle("intent");
        assert_eq!(read_with(&bundle, ""), ["unknown task <>"]);
        let long = "a ".repeat(WORDS_MAX + 1);
        assert!(read_with(&bundle, &long)[0].starts_with("unknown task"));
    }

    proptest! {
        #[test]
        fn any_text_has_an_effect_in_its_place(text in any::<String>()) {
            prop_assert!(!read_with(&bundle("intent"), &text).is_empty());
        }

        #[test]
        fn any_words_have_an_effect(words in proptest::collection::vec("book|a|hotel|near|of|the|,|and|\\PC{0,4}|3|nights|to|-", 0..40)) {
            prop_assert!(!read_with(&bundle("literal"), &words.join(" ")).is_empty());
        }
    }
}
