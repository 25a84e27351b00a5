//! The English that the memory knows: families of verbs of doing, the nouns that stand for them, and the closed
//! classes of words.
//!
//! It is data (`data/lexicon.txt`), general English and nothing of any attack. What an unknown word is follows from
//! its place: see [`orders`](crate::orders).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::classes::Classes;
use crate::deed::Deed;
use crate::words::{Word, hash, stem_hash};

/// The lexicon that is compiled in.
pub const BUILT_IN: &str = include_str!("data/lexicon.txt");

/// What WordNet knows of words that the lexicon does not have, by the closure of a few of their senses: verbs, and nouns of
/// people and addresses.
pub const WORDNET: &str = include_str!("data/wordnet.txt");

/// Words of other languages for what the lexicon knows.
pub const LANGUAGES: &str = include_str!("data/languages.txt");

/// Most families: each is one bit.
pub const FAMILIES_MAX: usize = 64;

/// A set of families.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Families(u64);

impl Families {
    /// None.
    pub const NONE: Self = Self(0);

    /// Those in both.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without those of the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two share a family.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The numbers of the families.
    pub fn bits(self) -> impl Iterator<Item = usize> {
        (0..FAMILIES_MAX).filter(move |bit| self.0 >> bit & 1 == 1)
    }
}

/// Keys that are hashes already are not hashed again. Only for maps that are made of the lexicon and the bundle: nobody
/// else chooses their keys.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

pub(crate) type Hashed<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

/// What is known of a stem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stem {
    verb: Families,
    noun: Families,
    /// The base of which it is a form.
    base: Option<u64>,
    /// What it names.
    thing: Option<u64>,
    classes: Classes,
    /// What it does as the verb of a tool's name.
    deed: Option<Deed>,
    /// The same of a word that is as often a noun.
    noun_deed: Option<Deed>,
    /// It is a word of another language; its base is the English one.
    translated: bool,
    /// It asks to know something, as WordNet has it: enough to understand a request, not to believe a tool's name.
    asks_to_know: bool,
}

/// What is known of a word as it is spelt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Spelt {
    classes: Classes,
    /// It is the base of a verb, or a noun that stands for one.
    base: bool,
}

/// What a word of an argument says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgumentWord {
    /// It says nothing by itself.
    pub(crate) is_function: bool,
    /// What it names.
    pub(crate) thing: u64,
    /// It names something private.
    pub(crate) secretive: bool,
}

/// Verbs, nouns and closed classes. See the [module documentation](self).
#[derive(Debug, Clone, Default)]
pub struct Lexicon {
    names: Vec<String>,
    stems: Hashed<Stem>,
    words: Hashed<Spelt>,
}

/// Why a lexicon could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LexiconError {
    /// The line, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
}

impl std::fmt::Display for LexiconError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} of the lexicon: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for LexiconError {}

impl Lexicon {
    /// Reads a lexicon.
    ///
    /// # Errors
    /// A line of another form, or too many families.
    pub fn parse(text: &str) -> Result<Self, LexiconError> {
        let mut lexicon = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |expected| LexiconError { line: number + 1, expected };
            let (head, words) = line.split_once(':').ok_or_else(|| bad("`what name: words`"))?;
            let (what, name) = head.split_once(' ').ok_or_else(|| bad("`what name: words`"))?;
            let words = words.split_whitespace();
            match what {
                "family" | "nouns" => {
                    let bit = lexicon.bit(name).ok_or_else(|| bad("at most 64 families"))?;
                    for word in words {
                        lexicon.words.entry(hash(word.as_bytes())).or_default().base = true;
                        let stem = lexicon.stems.entry(stem_hash(word)).or_default();
                        let families = if what == "family" { &mut stem.verb } else { &mut stem.noun };
                        *families = families.or(bit);
                    }
                }
                "deed" | "deed?" => {
                    let deed = Deed::named(name).ok_or_else(|| bad("a deed that is known"))?;
                    for word in words {
                        let stem = lexicon.stems.entry(stem_hash(word)).or_default();
                        match what {
                            "deed" => stem.deed = stem.deed.or(Some(deed)),
                            _ => stem.noun_deed = stem.noun_deed.or(Some(deed)),
                        }
                    }
                }
                "form" => {
                    let base = stem_hash(name);
                    for form in words {
                        lexicon.stems.entry(stem_hash(form)).or_default().base = Some(base);
                    }
                }
                "thing" => {
                    let thing = hash(head.as_bytes());
                    for word in words {
                        lexicon.stems.entry(stem_hash(word)).or_default().thing = Some(thing);
                    }
                }
                "class" | "exact" => {
                    let class = Classes::named(name).ok_or_else(|| bad("a class that is known"))?;
                    for word in words {
                        let spelt = lexicon.words.entry(hash(word.as_bytes())).or_default();
                        spelt.classes = spelt.classes.or(class);
                        if what == "class" && Classes::IN_ALL_FORMS.is(class) {
                            let stem = lexicon.stems.entry(stem_hash(word)).or_default();
                            stem.classes = stem.classes.or(class);
                        }
                    }
                }
                _ => return Err(bad("`family`, `nouns`, `form` or `class`")),
            }
        }
        Ok(lexicon)
    }

    /// Adds what WordNet says of words that are not known yet: `v KIND,...: WORD ...` and `n KIND,...: WORD ...`.
    ///
    /// # Errors
    /// A line of another form.
    pub fn with_wordnet(mut self, text: &str) -> Result<Self, LexiconError> {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let bad = || LexiconError { line: number + 1, expected: "`v kinds: words` or `n kinds: words`" };
            let (head, words) = line.split_once(": ").ok_or_else(bad)?;
            let (part, kinds) = head.split_once(' ').ok_or_else(bad)?;
            for word in words.split(' ') {
                match part {
                    "v" => self.add_verb(word, kinds),
                    "n" => self.add_noun(word, kinds),
                    _ => return Err(bad()),
                }
            }
        }
        Ok(self)
    }

    /// Adds words of other languages: `LEMMA: WORD ...`. What is known already stays as it is.
    ///
    /// # Errors
    /// A line of another form.
    pub fn with_languages(mut self, text: &str) -> Result<Self, LexiconError> {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let bad = || LexiconError { line: number + 1, expected: "`lemma: words`" };
            let (lemma, words) = line.split_once(": ").ok_or_else(bad)?;
            let stem = self.base(stem_hash(lemma));
            let (of_stem, of_word) = (self.stem(stem), self.words.get(&hash(lemma.as_bytes())).copied());
            for word in words.split(' ') {
                let spelt = hash(word.as_bytes());
                if self.words.contains_key(&spelt) || self.stems.contains_key(&stem_hash(word)) {
                    continue;
                }
                let classes = of_word.map(|spelt| spelt.classes).unwrap_or_default();
                self.words.insert(spelt, Spelt { classes, base: false });
                let known = Stem {
                    base: Some(stem),
                    thing: of_stem.thing,
                    classes: of_stem.classes,
                    translated: true,
                    ..Stem::default()
                };
                self.stems.insert(stem_hash(word), known);
            }
        }
        Ok(self)
    }

    /// Whether a word is known, in lower case.
    pub fn knows(&self, word: &str) -> bool {
        self.words.contains_key(&hash(word.as_bytes())) || self.stems.contains_key(&stem_hash(word))
    }

    /// Whether it is a word of another language.
    pub fn is_translated(&self, stem: u64) -> bool {
        self.stem(stem).translated
    }

    fn add_verb(&mut self, word: &str, kinds: &str) {
        let stem = self.stems.entry(stem_hash(word)).or_default();
        if stem.deed.is_some() || stem.noun_deed.is_some() || stem.base.is_some() {
            return;
        }
        // The gravest of its kinds.
        let gravest = [
            ("pay", Deed::Pay),
            ("delete", Deed::Delete),
            ("grant", Deed::Grant),
            ("disable", Deed::Disable),
            ("send", Deed::Send),
            ("execute", Deed::Execute),
            ("change", Deed::Change),
            ("create", Deed::Change),
        ];
        let has = |name: &str| kinds.split(',').any(|kind| kind == name);
        // A word that is often a noun, or has a kind beside, is no sure verb.
        let deed = gravest.into_iter().find(|(name, _)| has(name)).map(|(_, deed)| deed);
        (stem.noun_deed, stem.asks_to_know) = (deed, deed.is_none() && has("read"));
    }

    fn add_noun(&mut self, word: &str, kinds: &str) {
        let known = self.stem(stem_hash(word));
        if known.deed.is_some() || !known.verb.is_empty() || known.classes != Classes::default() {
            return;
        }
        let has = |names: &[&str]| kinds.split(',').any(|kind| names.contains(&kind));
        let mut class = Classes::default();
        if has(&["person", "address"]) {
            class = class.or(Classes::TARGET);
        }
        for spelt in [word.to_owned(), format!("{word}s")] {
            let spelt = self.words.entry(hash(spelt.as_bytes())).or_default();
            if spelt.classes == Classes::default() {
                spelt.classes = class;
            }
        }
    }

    /// Whether a verb asks to know something.
    pub fn asks_to_know(&self, stem: u64) -> bool {
        self.stem(self.base(stem)).asks_to_know
    }

    fn bit(&mut self, name: &str) -> Option<Families> {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        (at < FAMILIES_MAX).then(|| Families(1 << at))
    }

    /// The same without a share of its verbs, chosen by a seed: what is left of the rules where words are missing.
    #[must_use]
    pub fn without(mut self, percent: u64, seed: u64) -> Self {
        let kept = |stem: &u64| {
            hash(&(stem ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()) % 100 >= percent
        };
        for (stem, known) in &mut self.stems {
            if !kept(stem) {
                (known.verb, known.deed, known.noun_deed) = (Families::NONE, None, None);
            }
        }
        self
    }

    /// The family of this name; empty if there is none.
    pub fn family(&self, name: &str) -> Families {
        self.names.iter().position(|known| known == name).map_or(Families::NONE, |at| Families(1 << at))
    }

    /// The name of a family.
    pub fn name(&self, bit: usize) -> &str {
        self.names.get(bit).map_or("", String::as_str)
    }

    fn stem(&self, stem: u64) -> Stem {
        self.stems.get(&stem).copied().unwrap_or_default()
    }

    /// The base of an irregular form; other stems are their own.
    pub fn base(&self, stem: u64) -> u64 {
        self.stem(stem).base.unwrap_or(stem)
    }

    /// Whether it is another form than the base: *sent*.
    pub fn is_form(&self, stem: u64) -> bool {
        self.stem(stem).base.is_some_and(|base| base != stem)
    }

    /// What a noun names: the same for nouns that people use for the same thing.
    pub fn thing(&self, stem: u64) -> u64 {
        self.base_and_thing(stem).1
    }

    /// [`base`](Self::base) and [`thing`](Self::thing).
    pub(crate) fn base_and_thing(&self, stem: u64) -> (u64, u64) {
        let known = self.stem(stem);
        let base = known.base.unwrap_or(stem);
        (base, known.thing.unwrap_or(base))
    }

    /// What a word of an argument says, in one search.
    pub(crate) fn argument_word(&self, word: &Word) -> ArgumentWord {
        let exact = self.words.get(&word.hash).map(|spelt| spelt.classes).unwrap_or_default();
        let Some(known) = self.stems.get(&word.stem) else {
            return ArgumentWord {
                is_function: exact.is(Classes::FUNCTION),
                thing: word.stem,
                secretive: false,
            };
        };
        let of_base = known.base.map_or(known.classes, |base| self.stem_classes(base));
        ArgumentWord {
            is_function: exact.or(known.classes).is(Classes::FUNCTION),
            thing: known.thing.or(known.base).unwrap_or(word.stem),
            secretive: of_base.is(Classes::SECRETIVE),
        }
    }

    /// The families of a verb by its stem.
    pub fn verb(&self, stem: u64) -> Families {
        let known = self.stem(stem);
        known.base.map_or(known.verb, |base| self.stem(base).verb)
    }

    /// The families of a noun.
    pub fn noun(&self, stem: u64) -> Families {
        self.stem(stem).noun
    }

    /// The classes of a word.
    pub fn classes(&self, word: &Word) -> Classes {
        self.classes_of(word.hash, word.stem)
    }

    /// The classes of a word by its two hashes.
    pub fn classes_of(&self, hash: u64, stem: u64) -> Classes {
        let exact = self.words.get(&hash).map(|spelt| spelt.classes).unwrap_or_default();
        exact.or(self.stem_classes(stem))
    }

    /// Whether a word names a thing whose change is grave.
    pub fn is_grave(&self, hash: u64, stem: u64) -> bool {
        let spelt = self.words.get(&hash).map(|spelt| spelt.classes).unwrap_or_default();
        spelt.or(self.stem_classes(stem)).is(Classes::GRAVE) && !spelt.is(Classes::EVERYDAY)
    }

    /// Whether a word that ends in *s* is the base of a verb and not a form of one: *access*, *focus*.
    pub fn is_base(&self, word: &Word) -> bool {
        self.words.get(&word.hash).is_some_and(|spelt| spelt.base)
    }

    /// What a word of a tool's name does; whether it is surely a verb.
    pub fn deed(&self, stem: u64) -> Option<(Deed, bool)> {
        let known = self.stem(self.base(stem));
        known.deed.map(|deed| (deed, true)).or(known.noun_deed.map(|deed| (deed, false)))
    }

    /// The classes of a stem that hold in all its forms.
    pub fn stem_classes(&self, stem: u64) -> Classes {
        self.stem(stem).classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_lexicon_is_read_and_a_broken_one_names_its_line() {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        assert!(lexicon.verb(stem_hash("sends")).meets(lexicon.family("send")));
        assert!(lexicon.verb(stem_hash("sent")).meets(lexicon.family("send")));
        assert_eq!(lexicon.thing(stem_hash("webpages")), lexicon.thing(stem_hash("website")));
        assert_eq!(lexicon.family("nothing"), Families::NONE);
        assert_eq!(Lexicon::parse("\nfamily send send").unwrap_err().line, 2);
        assert_eq!(Lexicon::parse("class none: a").unwrap_err().line, 1);
    }

    #[test]
    fn words_of_other_languages_stand_for_english_ones() {
        let lexicon = crate::flow::built_in();
        for (word, lemma) in [
            ("löschen", "delete"),
            ("loeschen", "delete"),
            ("déverrouiller", "unlock"),
            ("zamknij", "close"),
            ("удалить", "delete"),
            ("删除", "delete"),
            ("承認", "approve"),
        ] {
            assert_eq!(lexicon.base(stem_hash(word)), lexicon.base(stem_hash(lemma)), "{word}");
            assert!(lexicon.is_translated(stem_hash(word)), "{word}");
        }
        let own = lexicon.stems.values().filter(|known| known.translated && known.deed.is_some()).count();
        assert_eq!(own, 0, "a translation does what its lemma does, and nothing by itself");
        assert!(!lexicon.is_translated(stem_hash("delete")));
        assert_eq!(Lexicon::default().with_languages("delete löschen").unwrap_err().line, 1);
    }

    #[test]
    fn a_share_of_the_verbs_can_be_left_out() {
        let whole = Lexicon::parse(BUILT_IN).unwrap();
        let some = whole.clone().without(20, 1);
        let verbs = |lexicon: &Lexicon| lexicon.stems.values().filter(|known| !known.verb.is_empty()).count();
        let share = verbs(&some) * 100 / verbs(&whole);
        assert!((70..=90).contains(&share), "{share} %");
        assert_eq!(verbs(&whole.clone().without(20, 1)), verbs(&some));
        assert_eq!(verbs(&whole.without(100, 1)), 0);
    }
}
