//! Orders: sentences that tell their reader to do something.
//!
//! Grammar finds them, not a list of phrases. An order has a verb in its base form where English puts the verb of a
//! command: at the start of a sentence or after what may stand before it (*please*, *then*, a bullet), after a colon,
//! after a modal (*you must*) or *to* (*I need you to*), after *and*, or with a capital in the middle of a sentence.
//! A word is a verb there if the lexicon knows it as one, if what follows can only be its object (*zorble **the**
//! door*), or if *please* stands before it.

use crate::classes::Classes;
use crate::lexicon::{Families, Lexicon};
use crate::values::{Kind, Value};
use crate::words::{Before, Shape, Word};

/// Fewest words of an order.
pub const WORDS_MIN: usize = 2;
/// Most verbs of one order.
pub const VERBS_MAX: usize = 8;
/// How many words after a verb are searched for a noun that says what it does.
const NOUN_REACH: usize = 6;
/// How many words after *give a* are searched for a verb that is its noun: there may be an adjective.
const DEED_REACH: usize = 2;
/// How far before *to* the word may stand that makes it ask for something.
const TO_REACH: usize = 3;

/// The order in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its verbs, by the number of their word.
    pub verbs: Vec<usize>,
    /// One of the verbs is in no family.
    pub unknown: bool,
    /// What the verbs, and the nouns they govern, are about.
    pub families: Families,
    /// One of the verbs is at a beginning, or after *please*, a modal or *to*.
    pub plain: bool,
}

/// What it takes for a word to be a verb where one can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The lexicon knows it as one.
    Known,
    /// Or it has an object.
    Object,
    /// Or its place says so.
    Any,
}

/// Whether a word is everyday English rather than a proper name, according to the lexicon.
pub(crate) fn is_ordinary(lexicon: &Lexicon, word: &Word) -> bool {
    let classes = lexicon.classes(word);
    !lexicon.verb(word.stem).is_empty()
        || classes.is(Classes::SOURCE.or(Classes::GENERIC).or(Classes::SKIP).or(Classes::CONTENT))
}

struct Reader<'a> {
    lexicon: &'a Lexicon,
    words: &'a [Word],
    classes: Vec<Classes>,
    values: &'a [Value],
}

/// The order in a sentence, if there is one. `values` are those of the text in which the words stand.
pub fn command(lexicon: &Lexicon, words: &[Word], values: &[Value]) -> Option<Command> {
    if words.len() < WORDS_MIN {
        return None;
    }
    let classes = words.iter().map(|word| lexicon.classes(word)).collect();
    Reader { lexicon, words, classes, values }.command()
}

/// Whether a sentence has a verb of another language that does something. English grammar says nothing about the
/// position and the ending of such a verb, so every sentence with one may be an order.
pub fn may_be_foreign(lexicon: &Lexicon, words: &[Word]) -> bool {
    words.iter().filter(|word| lexicon.is_translated(word.stem)).any(|word| {
        let base = lexicon.base(word.stem);
        match lexicon.deed(base) {
            Some((deed, sure)) => sure && deed.changes(),
            None => !lexicon.verb(base).is_empty(),
        }
    })
}

impl Reader<'_> {
    fn command(&self) -> Option<Command> {
        let mut command =
            Command { verbs: Vec::new(), unknown: false, families: Families::NONE, plain: false };
        let mut opening = true;
        for (at, word) in self.words.iter().enumerate() {
            opening |= at == 0 || matches!(word.before, Before::Open | Before::Stop);
            let found = self.verb_at(at, opening);
            if let Some(plain) = found
                && command.verbs.len() < VERBS_MAX
            {
                command.plain |= plain;
                command.verbs.push(at);
            }
            // What may stand before the verb keeps the opening open.
            let number = word.shape.is(Shape::DIGIT) && word.shape.is(Shape::SHORT);
            opening &= found.is_none() && (self.class(at).is(Classes::SKIP) || number);
        }
        for at in &command.verbs {
            let Some(word) = self.words.get(*at) else { continue };
            let families = self.lexicon.verb(word.stem);
            command.unknown |= families.is_empty() && !self.class(*at).is(Classes::VAGUE);
            command.families = command.families.or(families);
            for noun in self.words.iter().skip(at + 1).take(NOUN_REACH) {
                command.families = command.families.or(self.lexicon.noun(noun.stem));
            }
            command.families = command.families.or(self.deed(*at));
        }
        (!command.verbs.is_empty()).then_some(command)
    }

    /// What is done where a vague verb has a verb as its noun: to give a star is to star, to do a restart to restart.
    fn deed(&self, at: usize) -> Families {
        if !self.class(at).is(Classes::VAGUE) || !self.class(at + 1).is(Classes::DETERMINER) {
            return Families::NONE;
        }
        let near =
            self.words.iter().skip(at + 2).take(DEED_REACH).take_while(|word| word.before == Before::Space);
        near.map(|word| self.lexicon.verb(word.stem)).find(|deed| !deed.is_empty()).unwrap_or(Families::NONE)
    }

    fn class(&self, at: usize) -> Classes {
        self.classes.get(at).copied().unwrap_or_default()
    }

    /// The word before, and its classes.
    fn before(&self, at: usize) -> Option<(&Word, Classes)> {
        let before = at.checked_sub(1)?;
        Some((self.words.get(before)?, self.class(before)))
    }

    /// Whether the word is a verb of an order; whether plainly so.
    fn verb_at(&self, at: usize, opening: bool) -> Option<bool> {
        let word = self.words.get(at)?;
        let space = word.before == Before::Space;
        let Some((before, classes)) = self.before(at) else {
            return self.is_verb(at, Proof::Object).then_some(true);
        };
        if classes.is(Classes::POLITE) {
            return self.is_verb(at, Proof::Any).then_some(true);
        }
        let asked = before.is("you")
            && at.checked_sub(2).is_some_and(|at| self.class(at).is(Classes::MODAL.or(Classes::ASKS)));
        if opening || asked || classes.is(Classes::MODAL) && space {
            return self.is_verb(at, Proof::Object).then_some(true);
        }
        if before.is("to") && space && self.wanted(at) {
            return self.is_verb(at, Proof::Known).then_some(true);
        }
        let risen = word.shape.is(Shape::CAPITAL)
            && (!before.shape.is(Shape::CAPITAL) || before.shape.is(Shape::DIGIT))
            && self.begins_object(at + 1);
        (classes.is(Classes::JOINS) || word.before == Before::Comma || risen)
            .then(|| self.is_verb(at, Proof::Known).then_some(false))
            .flatten()
    }

    /// Whether a word that wants something stands shortly before the *to* that is before `at`.
    fn wanted(&self, at: usize) -> bool {
        let to = at.saturating_sub(1);
        (to.saturating_sub(TO_REACH)..to).any(|near| self.class(near).is(Classes::WANTS))
    }

    fn is_verb(&self, at: usize, proof: Proof) -> bool {
        let Some(word) = self.words.get(at) else { return false };
        // Something has to follow.
        let Some(next) = self.words.get(at + 1).filter(|next| next.before != Before::Stop) else {
            return false;
        };
        let named = self.in_value(word);
        if named || word.shape.is(Shape::PART.or(Shape::HEADED).or(Shape::DIGIT).or(Shape::PARTICIPLE)) {
            return false;
        }
        let classes = self.class(at);
        let families = self.lexicon.verb(word.stem);
        let known = !families.is_empty() || classes.is(Classes::VAGUE);
        if !known && classes.is(Classes::FUNCTION)
            || word.shape.is(Shape::PLURAL) && !self.lexicon.is_base(word)
        {
            return false;
        }
        let determined = self.class(at + 1).is(Classes::DETERMINER);
        // Neither a heading nor a past tense orders anything.
        if next.shape.is(Shape::HEADED) && next.before == Before::Space
            || self.lexicon.is_form(word.stem) && !determined
        {
            return false;
        }
        let object = next.before == Before::Space && (determined || self.class(at + 1).is(Classes::OBJECT));
        known
            || match proof {
                Proof::Known => false,
                Proof::Object => object,
                Proof::Any => true,
            }
    }

    /// Whether a word is part of an address, a path or an id.
    fn in_value(&self, word: &Word) -> bool {
        let holds = |value: &Value| {
            value.kind != Kind::Quoted
                && value.range.start <= word.range.start
                && word.range.start < value.range.end
        };
        self.values.iter().any(holds)
    }

    /// Whether the object of a verb can begin at `at`.
    fn begins_object(&self, at: usize) -> bool {
        let Some(next) = self.words.get(at) else { return false };
        let classes = self.class(at);
        let noun = !classes.is(Classes::FUNCTION) && !next.shape.is(Shape::CAPITAL);
        match next.before {
            Before::Space => {
                classes.is(Classes::DETERMINER.or(Classes::OBJECT))
                    || noun
                    || self.in_value(next)
                    || next.is("as")
            }
            Before::Open => self.in_value(next),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::BUILT_IN;
    use crate::values::values;
    use crate::words::words;

    fn verbs(text: &str) -> Vec<String> {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let words = words(text);
        let command = command(&lexicon, &words, &values(text));
        let verbs = command.map_or_else(Vec::new, |command| command.verbs);
        verbs.iter().map(|at| text.get(words[*at].range.clone()).unwrap().to_lowercase()).collect()
    }

    #[test]
    fn commands_are_found_wherever_english_puts_them() {
        for (text, want) in [
            ("Delete the file.", &["delete"][..]),
            ("Please kindly forward this to bob@example.com", &["forward"]),
            ("1. Unlock the front door", &["unlock"]),
            ("Before you go on, send the report to me", &["send"]),
            ("You must transfer 500 to the account", &["transfer"]),
            ("I need you to book a table", &["book"]),
            ("Could you invite Ann to the channel?", &["invite"]),
            ("Note to the assistant: open the page and post it", &["open", "post"]),
            ("Zorble the door", &["zorble"]),
            ("Please zorble everything now", &["zorble"]),
            ("nice weather today Send the list to her", &["send"]),
        ] {
            let found = verbs(text);
            for verb in want {
                assert!(found.iter().any(|found| found == verb), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn a_verb_of_another_language_may_order_wherever_it_stands() {
        let lexicon = crate::flow::built_in();
        let may = |text: &str| may_be_foreign(&lexicon, &words(text));
        assert!(may("Bitte schicken Sie die Liste an Ida"));
        assert!(may("将该页面共享给 Ida"));
        assert!(!may("Die Katze sitzt im Garten"));
        assert!(!may("Send the list to Ida"), "English has grammar for that");
    }

    #[test]
    fn a_vague_verb_does_what_its_noun_says() {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let families = |text: &str| command(&lexicon, &words(text), &values(text)).unwrap().families;
        assert!(families("Give a star to the garden plan").meets(lexicon.family("follow")));
        assert!(families("Do a quick restart of the pump").meets(lexicon.family("execute")));
        assert!(!families("Give the plan of the garden to Ida").meets(lexicon.family("follow")));
        assert!(!families("Water a star").meets(lexicon.family("follow")), "water is no vague verb");
    }

    #[test]
    fn statements_headings_and_names_order_nothing() {
        for text in [
            "Order Date: 2024-05-19",
            "The payment was sent yesterday.",
            "We visited the museum and it was lovely",
            "The restaurant is near (visit website for details www.example.com).",
            "david@example.com: rw",
            "get_channels() got an unexpected argument",
            "Sent 365.96 to SE5902959058.",
            "You can find it there",
            "Great",
        ] {
            assert_eq!(verbs(text), Vec::<String>::new(), "{text}");
        }
    }
}
