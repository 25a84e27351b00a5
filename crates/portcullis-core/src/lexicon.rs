//! The words of activities, ready for finding them in a text.
//!
//! A bundle describes what people do by the words they use ([`Activity`](crate::bundle::Activity)). Here these
//! become numbers and phrases become sequences of numbers, so that a text is looked up once a word. Both sides go
//! through the same reduction: lower case, no hyphens, nouns in the singular, numbers all alike, and of verbs the
//! forms in *-ing*, *-ed* and *-s* count as the verb. Besides the bundle's words there are the general ones of
//! English that say how a request is built: prepositions, determiners, verbs such as *find* and *show*, and nouns
//! such as *list* and *price* that stand for what follows them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// A known word.
pub type WordId = u32;

/// What a word does in a request; several at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Class(u16);

impl Class {
    /// Begins a circumstance: *in*, *from*, *with*.
    pub const PREPOSITION: Self = Self(1);
    /// Names a place only to say where something else is: *near*.
    pub const LANDMARK: Self = Self(1 << 1);
    /// Says nothing about what is meant: *the*, *me*, *is*.
    pub const FILLER: Self = Self(1 << 2);
    /// Joins: *and*, *then*.
    pub const CONJUNCTION: Self = Self(1 << 3);
    /// Asks for something: *find*, *show*.
    pub const REQUEST: Self = Self(1 << 4);
    /// Narrows what was asked for: *filter*, *sort*.
    pub const REFINE: Self = Self(1 << 5);
    /// Stands for what follows it: *list* of hotels, *price* for a room.
    pub const TRANSPARENT: Self = Self(1 << 6);
    /// Qualifies what follows: *cheapest*, *new*.
    pub const MODIFIER: Self = Self(1 << 7);
    /// Begins a clause about what was named before: *that*, *where*.
    pub const RELATIVE: Self = Self(1 << 8);
    /// A verb of an activity.
    pub const VERB: Self = Self(1 << 9);
    /// *Of*, which goes on with what was begun: a *pair of shoes*.
    pub const OF: Self = Self(1 << 10);
    /// *A* or *an*, which begins a thing.
    pub const ARTICLE: Self = Self(1 << 12);
    /// Says what comes along: *with*, *including*.
    pub const ALONG: Self = Self(1 << 13);
    /// *To*, after which a verb may follow.
    pub const TO: Self = Self(1 << 11);

    /// Whether it does any of these.
    pub const fn is(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const GENERAL: &[(Class, &str)] = &[
    (
        Class::PREPOSITION,
        "in from to with at on for of by about into via per during before after until within without under over \
         below above between through across against as than since starting using including than between including \
         plus like featuring",
    ),
    (Class::LANDMARK, "near around beside outside opposite behind"),
    (
        Class::FILLER,
        "a an the this these those my your our their his her its me us i you we it them is are was be do does can \
         could would will should please any some all each every there here which what who whose how much many i'm \
         i'd let's want need like up down out off another other one both more most less least very just only also \
         not no if so too",
    ),
    (Class::CONJUNCTION, "and or then but & plus while"),
    (
        Class::REQUEST,
        "find search look show see browse view check compare get list locate display explore discover identify tell \
         give need want pick open go read save track visit help figure research calculate estimate request make \
         create start continue navigate watch play know learn determine report return print download upload share \
         follow update change view use complete take select choose book buy reserve rent add plan schedule sign \
         register submit apply post rate review click",
    ),
    (
        Class::REFINE,
        "filter sort narrow refine limit restrict order set apply select choose arrange exclude include",
    ),
    (
        Class::TRANSPARENT,
        "list price cost review detail info information availability number pair set option type status rating result \
         page deal offer rate kind variety selection range schedule choice section category overview summary picture \
         photo image link website site specification feature spec description comparison quote ticket seat reservation \
         booking value total amount name version recommendation suggestion policy fee amenity top best popularity \
         data date time duration history location inventory one search profile copy bit part way tab menu payment estimate upgrade kind score form",
    ),
    (
        Class::MODIFIER,
        "cheap cheaper cheapest low lowest lower high highest best good top new newest latest last first next \
         available nice popular recent oldest old earliest early fastest shortest longest biggest largest smallest \
         large small big great local affordable expensive current upcoming specific same different favorite \
         recommended rated sorted listed priced free most least two-way second third final whole full late quick \
         similar random certain right left main own closest nearest nearby friendly monthly weekly daily \
         today tonight tomorrow yesterday morning afternoon evening week weekend month year day monday tuesday wednesday \
         thursday friday saturday sunday january february march april may june july august september october november \
         december soon now later",
    ),
    (Class::OF, "of"),
    (Class::TO, "to"),
    (Class::ARTICLE, "a an"),
    (Class::ALONG, "with without including featuring between by near as like have has offer"),
    (Class::RELATIVE, "that who where when whose while because whether so"),
];

const NUMBERS: &[&str] =
    &["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Plural forms whose singular means something else, or that have none.
const PLURAL_ONLY: &[&str] = &[
    "shorts",
    "goods",
    "glasses",
    "news",
    "series",
    "tights",
    "briefs",
    "boxers",
    "trunks",
    "species",
    "always",
    "this",
    "his",
    "its",
    "is",
    "was",
    "has",
    "does",
    "as",
    "us",
    "yes",
    "plus",
    "less",
    "various",
    "arts",
    "los",
    "las",
    "ss",
    "vegas",
    "texas",
    "paris",
    "kansas",
    "christmas",
    "gas",
    "bus",
    "atlas",
    "canvas",
    "lens",
];

const IRREGULAR: &[(&str, &str)] = &[
    ("men", "man"),
    ("women", "woman"),
    ("children", "child"),
    ("feet", "foot"),
    ("people", "person"),
    ("shelves", "shelf"),
    ("knives", "knife"),
    ("bookshelves", "bookshelf"),
    ("scarves", "scarf"),
    ("movies", "movie"),
    ("cookies", "cookie"),
    ("hoodies", "hoodie"),
    ("beanies", "beanie"),
    ("selfies", "selfie"),
    ("ties", "tie"),
    ("caches", "cache"),
    ("shoes", "shoe"),
    ("aches", "ache"),
    ("rookies", "rookie"),
    ("tees", "tee"),
    ("bought", "buy"),
    ("drove", "drive"),
    ("flew", "fly"),
    ("found", "find"),
    ("lenses", "lens"),
    ("buses", "bus"),
    ("got", "get"),
    ("made", "make"),
    ("cds", "cd"),
    ("dvds", "dvd"),
    ("zombies", "zombie"),
];

/// A noun in the singular, by the general rules.
fn singular(word: &str) -> Cow<'_, str> {
    if let Some((_, base)) = IRREGULAR.iter().find(|(form, _)| *form == word) {
        return Cow::Borrowed(base);
    }
    let Some(stem) = word.strip_suffix('s') else { return Cow::Borrowed(word) };
    if stem.len() < 2 || PLURAL_ONLY.contains(&word) || stem.ends_with(['s', 'u', 'i']) {
        return Cow::Borrowed(word);
    }
    if let Some(base) = stem.strip_suffix("ie").filter(|base| base.len() > 1) {
        return Cow::Owned(format!("{base}y"));
    }
    for ending in ["sse", "she", "che", "xe", "zze"] {
        if let Some(base) = stem.strip_suffix('e').filter(|_| stem.ends_with(ending)) {
            return Cow::Borrowed(base);
        }
    }
    Cow::Borrowed(stem)
}

/// One of the pieces that a text is cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub range: Range<usize>,
    /// It as a noun or other word.
    pub word: Option<WordId>,
    /// It as a verb.
    pub verb: Option<WordId>,
    /// What it does in a request.
    pub class: Class,
    /// It follows a comma, semicolon or colon.
    pub after_comma: bool,
    /// It begins a sentence.
    pub begins: bool,
    /// A number.
    pub number: bool,
    /// A form in *-ing*, which no request begins a further clause with.
    pub participle: bool,
}

/// Numbered words, and phrases made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexicon<T> {
    words: HashMap<String, (WordId, Class), BuildHasherDefault<Fnv>>,
    /// Phrases at the number of their first word: the further words and what the phrase is. Longest first.
    phrases: Vec<Vec<(Vec<WordId>, T)>>,
}

const NUMBER_WORD: &str = "#";

/// FNV-1a (Fowler, Noll, Vo): quick for single words. Its keys come from the bundle alone, so no text can make it
/// slow.
#[derive(Debug, Clone)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> Default for Lexicon<T> {
    fn default() -> Self {
        let mut lexicon = Self { words: HashMap::default(), phrases: Vec::new() };
        for (class, words) in GENERAL {
            for word in words.split_whitespace() {
                lexicon.intern(word, *class);
            }
        }
        lexicon.intern(NUMBER_WORD, Class::default());
        lexicon
    }
}

impl<T> Lexicon<T> {
    fn intern(&mut self, word: &str, class: Class) -> WordId {
        let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        let entry = self.words.entry(singular(word).into_owned()).or_insert((next, Class::default()));
        entry.1 = entry.1.with(class);
        entry.0
    }

    /// Adds a phrase. One without words is left out; `false` says so.
    pub fn add(&mut self, phrase: &str, verb: bool, what: T) -> bool {
        let phrase = phrase.to_lowercase();
        let ids: Vec<WordId> = pieces(&phrase)
            .enumerate()
            .map(|(at, piece)| {
                let class = if verb && at == 0 { Class::VERB } else { Class::default() };
                self.intern(piece.reduced(&phrase), class)
            })
            .collect();
        let Some((first, rest)) = ids.split_first() else { return false };
        let at = *first as usize;
        if self.phrases.len() <= at {
            self.phrases.resize_with(at + 1, Vec::new);
        }
        if let Some(phrases) = self.phrases.get_mut(at) {
            phrases.push((rest.to_vec(), what));
            phrases.sort_by_key(|(rest, _)| std::cmp::Reverse(rest.len()));
        }
        true
    }

    /// Cuts a text into at most `max` tokens; `None` if it has more.
    pub fn tokens(&self, text: &str, max: usize) -> Option<Vec<Token>> {
        let lower = text.to_ascii_lowercase();
        let mut tokens = Vec::with_capacity((lower.len() / 5).min(max));
        let mut sentence = true;
        for piece in pieces(&lower) {
            if tokens.len() == max {
                return None;
            }
            let (word, verb, class) = self.look_up(piece.reduced(&lower));
            let end = piece.range.end;
            let class = if piece.joined { Class::MODIFIER } else { class };
            if let Some(before) = tokens.last_mut().filter(|_| piece.joined) {
                let before: &mut Token = before;
                before.class = Class::MODIFIER;
            }
            tokens.push(Token {
                range: piece.range,
                word,
                verb,
                class,
                after_comma: piece.comma,
                begins: sentence || piece.stop,
                number: piece.number,
                participle: lower.get(..end).is_some_and(|text| text.ends_with("ing")),
            });
            sentence = false;
        }
        Some(tokens)
    }

    fn look_up(&self, word: &str) -> (Option<WordId>, Option<WordId>, Class) {
        // Words are kept in the singular, and the singular of a singular is itself.
        let known = self.words.get(word).or_else(|| match singular(word) {
            Cow::Borrowed(same) if same == word => None,
            other => self.words.get(other.as_ref()),
        });
        let known = known.copied();
        if let Some((id, class)) = known {
            let verb = class.is(Class::VERB.with(Class::REQUEST).with(Class::REFINE)).then_some(id);
            if verb.is_some() || !(word.ends_with("ing") || word.ends_with("ed")) {
                return (Some(id), verb, class);
            }
        }
        let base = self.verb_of(word);
        let class = known.map_or(Class::default(), |(_, class)| class);
        let class = base.map_or(class, |(_, verb)| class.with(verb));
        (known.map(|(id, _)| id), base.map(|(id, _)| id), class)
    }

    /// The verb whose form this is.
    fn verb_of(&self, word: &str) -> Option<(WordId, Class)> {
        let stem = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed"))?;
        if stem.len() < 2 {
            return None;
        }
        let mut end = stem.chars().rev();
        let doubled = end.next().is_some_and(|last| end.next() == Some(last));
        let shorter = stem.split_at_checked(stem.len().saturating_sub(1)).map(|(start, _)| start);
        let with_e = format!("{stem}e");
        [Some(stem), Some(with_e.as_str()), shorter.filter(|_| doubled)]
            .into_iter()
            .flatten()
            .filter_map(|form| self.words.get(form))
            .find(|(_, class)| class.is(Class::VERB.with(Class::REQUEST).with(Class::REFINE)))
            .copied()
    }

    /// Every phrase that begins at the first of the tokens, with its length in tokens. A phrase does not go
    /// across the end of a sentence.
    pub fn phrases_at<'l>(&'l self, tokens: &'l [Token]) -> impl Iterator<Item = (&'l T, usize)> {
        let first = tokens.first();
        let ids = [first.and_then(|token| token.word), first.and_then(|token| token.verb)];
        let second = ids[1].filter(|id| ids[0] != Some(*id));
        [ids[0], second]
            .into_iter()
            .flatten()
            .filter_map(|id| self.phrases.get(id as usize))
            .flatten()
            .filter(move |(rest, _)| {
                let goes_on = |(at, id): (usize, &WordId)| {
                    tokens.get(at + 1).is_some_and(|token| {
                        (token.word == Some(*id) || token.verb == Some(*id))
                            && !token.begins
                            && !token.after_comma
                    })
                };
                rest.iter().enumerate().all(goes_on)
            })
            .map(|(rest, what)| (what, rest.len() + 1))
    }
}

/// A stretch of letters and digits.
struct Piece {
    range: Range<usize>,
    number: bool,
    comma: bool,
    stop: bool,
    /// A hyphen joins it to the word before.
    joined: bool,
}

impl Piece {
    /// What is looked up.
    fn reduced<'t>(&self, lower: &'t str) -> &'t str {
        if self.number {
            return NUMBER_WORD;
        }
        let word = lower.get(self.range.clone()).unwrap_or_default();
        // The shortest and the longest of them.
        if (3..=6).contains(&word.len()) && NUMBERS.contains(&word) {
            return NUMBER_WORD;
        }
        word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
    }
}

fn inner(c: char) -> bool {
    matches!(c, '\'' | '’' | '&' | '.' | ',' | '+')
}

/// Cuts lower-case text into words, numbers, and the signs `$` and `&`.
fn pieces(lower: &str) -> impl Iterator<Item = Piece> {
    let mut chars = lower.char_indices().peekable();
    let (mut comma, mut stop) = (false, false);
    let mut last = None;
    std::iter::from_fn(move || {
        loop {
            let (start, c) = chars.next()?;
            if !c.is_alphanumeric() && !matches!(c, '$' | '€' | '£' | '#') {
                if c == '-' && last != Some(start) {
                    // A dash.
                    comma = true;
                }
                comma |= matches!(c, ',' | ';' | ':' | '(' | ')' | '|');
                stop |= matches!(c, '.' | '!' | '?' | '\n');
                continue;
            }
            let mut end = start + c.len_utf8();
            let digit = c.is_ascii_digit();
            if c.is_alphanumeric() {
                while let Some((at, next)) = chars.peek().copied() {
                    let goes_on = next.is_alphanumeric() || {
                        let number_sign = digit && matches!(next, '.' | ',');
                        let sign = inner(next) && !matches!(next, '.' | ',' | '+');
                        let after = lower.get(at + next.len_utf8()..).and_then(|rest| rest.chars().next());
                        let follows = |test: fn(char) -> bool| after.is_some_and(test);
                        (number_sign && follows(|c| c.is_ascii_digit()))
                            || (sign && follows(char::is_alphanumeric))
                    };
                    if !goes_on {
                        break;
                    }
                    chars.next();
                    end = at + next.len_utf8();
                }
            }
            let word = lower.get(start..end).unwrap_or_default();
            let number = digit && !matches!(word, "4k" | "4wd" | "4x4" | "2wd" | "3d") || c == '#';
            let joined = last.is_some_and(|last: usize| last + 1 == start)
                && lower.get(..start).is_some_and(|before| before.ends_with('-'));
            let piece = Piece { range: start..end, number, comma, stop, joined };
            (comma, stop, last) = (false, false, Some(end));
            return Some(piece);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon<u8> {
        let mut lexicon = Lexicon::default();
        for (phrase, verb, what) in [
            ("hotel", false, 1),
            ("round-trip", false, 2),
            ("rent", true, 3),
            ("# night", false, 4),
            ("city", false, 5),
        ] {
            assert!(lexicon.add(phrase, verb, what));
        }
        lexicon
    }

    fn found(text: &str) -> Vec<(u8, String)> {
        let lexicon = lexicon();
        let tokens = lexicon.tokens(text, 100).unwrap();
        let mut found = Vec::new();
        for at in 0..tokens.len() {
            for (what, length) in lexicon.phrases_at(&tokens[at..]) {
                let range = tokens[at].range.start..tokens[at + length - 1].range.end;
                found.push((*what, text.get(range).unwrap().to_owned()));
            }
        }
        found
    }

    #[test]
    fn words_are_found_in_their_forms() {
        let text = "Renting HOTELS, round trip; the hotel's 3 nights or two nights. Cities rented";
        let want = [
            (3, "Renting"),
            (1, "HOTELS"),
            (2, "round trip"),
            (1, "hotel's"),
            (4, "3 nights"),
            (4, "two nights"),
            (5, "Cities"),
            (3, "rented"),
        ];
        assert_eq!(found(text), want.map(|(what, text)| (what, text.to_owned())));
    }

    #[test]
    fn the_singular_of_a_singular_is_itself() {
        let lists = GENERAL.iter().flat_map(|(_, words)| words.split_whitespace());
        let irregular = IRREGULAR.iter().flat_map(|(form, base)| [*form, *base]);
        let made =
            ["glass", "boxes", "buzzes", "classes", "dishes", "cities", "s", "ss", "xs", "ies", "bies"];
        for word in lists.chain(irregular).chain(PLURAL_ONLY.iter().copied()).chain(made) {
            let once = singular(word).into_owned();
            assert_eq!(singular(&once), once, "{word}");
        }
    }

    #[test]
    fn a_phrase_does_not_go_across_a_comma() {
        assert_eq!(found("round, trip"), []);
        assert_eq!(found("round. Trip"), []);
    }

    #[test]
    fn texts_of_any_kind_are_cut_and_bounded() {
        for text in ["", "’’", "é$ß日本 4.5.6", "a.b,c", "\u{130}nn", "it's & b&b"] {
            for token in lexicon().tokens(text, 100).unwrap() {
                assert!(text.get(token.range).is_some(), "{text:?}");
            }
        }
        assert_eq!(lexicon().tokens("a b c", 2), None);
        assert!(!lexicon().add(" - ", false, 9));
    }
}
