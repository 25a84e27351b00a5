//! What the user wants: the deeds of the user's own sentences, what they name, what they forbid, and what they hand on.
//!
//! Only the user's turns ask for anything. What the operator says is trusted and makes nothing wanted by itself, but what
//! it speaks of is not unheard of.

use std::collections::HashSet;

use portcullis_detect::sentences;

use crate::arguments::{Argument, Role};
use crate::classes::Classes;
use crate::handing::{self, Handing};
use crate::kind::{CallKind, Deed};
use crate::lexicon::{Families, Lexicon};
use crate::numbers::numbers;
use crate::orders;
use crate::values::{Kind, Value, values};
use crate::words::{Before, Shape, Word, stem_hash, words};

/// Most stems of the user's words that are remembered.
pub const STEMS_MAX: usize = 16_384;
/// Most sentences that hand on.
pub const HANDINGS_MAX: usize = 32;
/// How many words after a vague verb its noun may stand.
const NOUN_REACH: usize = 5;
/// Fewest words of a text whose language is looked at.
const LANGUAGE_WORDS_MIN: usize = 4;
/// Of so many words one must be a function word of English, or the text is in another language.
const FUNCTION_SHARE: usize = 8;

/// A set of deeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deeds(u16);

impl Deeds {
    /// With one more.
    pub const fn add(&mut self, deed: Deed) {
        self.0 |= 1 << deed as u16;
    }

    /// Whether it is among them.
    pub const fn has(self, deed: Deed) -> bool {
        self.0 & 1 << deed as u16 != 0
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether none of them changes anything.
    pub const fn only_read(self) -> bool {
        self.0 & !(1 << Deed::Read as u16 | 1 << Deed::Visit as u16) == 0
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Verbs, by deed, family and stem.
#[derive(Debug, Clone, Default)]
struct Verbs {
    deeds: Deeds,
    families: Families,
    stems: HashSet<u64>,
    /// A verb that may mean any change: *handle it*, *sort it out*.
    vague: bool,
}

impl Verbs {
    fn take(&mut self, lexicon: &Lexicon, word: &Word, told: bool) {
        let (stem, classes) = (lexicon.base(word.stem), lexicon.classes(word));
        if told {
            return self.deeds.add(Deed::Read);
        }
        if let Some((deed, _)) = lexicon.deed(stem) {
            self.deeds.add(deed);
        } else if lexicon.asks_to_know(stem) {
            self.deeds.add(Deed::Read);
        }
        self.vague |= classes.is(Classes::OPEN);
        if classes.is(Classes::VAGUE.or(Classes::DELEGATE_VERB).or(Classes::OPEN)) {
            self.deeds.add(Deed::Change);
        }
        self.families = self.families.or(lexicon.verb(stem));
        if self.stems.len() < STEMS_MAX {
            self.stems.insert(stem);
        }
    }

    fn add(&mut self, more: Self) {
        self.deeds = self.deeds.or(more.deeds);
        self.families = self.families.or(more.families);
        self.vague |= more.vague;
        let room = STEMS_MAX.saturating_sub(self.stems.len());
        self.stems.extend(more.stems.into_iter().take(room));
    }

    /// Whether the very verb of a tool is among them.
    fn names(&self, kind: &CallKind) -> bool {
        kind.verbs.iter().any(|verb| self.stems.contains(verb))
    }

    /// Whether they ask for what a call of a tool does.
    fn meets(&self, kind: &CallKind, deed: Deed) -> bool {
        if deed != kind.deed && deed.is_grave() {
            return self.deeds.has(deed);
        }
        if self.names(kind) {
            return true;
        }
        match kind.deed {
            // Programs are how anything is done on a machine.
            Deed::Execute => !self.deeds.only_read() || self.families.meets(kind.families),
            // Pages are how anything is found out, or filled in.
            Deed::Read | Deed::Visit => true,
            Deed::Pay | Deed::Delete | Deed::Send => {
                self.deeds.has(kind.deed) || self.families.meets(kind.verb_families)
            }
            Deed::Change => {
                kind.objects.is_empty() && !self.deeds.only_read()
                    || self.families.meets(kind.families)
                    || self.vague
                    || !kind.known && !self.deeds.only_read()
                    || self.deeds.has(Deed::Change)
            }
            Deed::Grant | Deed::Disable => self.families.meets(kind.verb_families),
        }
    }
}

/// What an input says.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The values it names.
    pub values: Vec<Value>,
    /// Its numbers.
    pub numbers: Vec<u64>,
    request: Request,
}

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    wanted: Verbs,
    forbidden: Verbs,
    stems: HashSet<u64>,
    handings: Vec<Handing>,
    /// Someone said something.
    said: bool,
    /// Something was said in a language that is not read here.
    foreign: bool,
    /// It names someone: by an address, or by a name.
    names_people: bool,
    /// It speaks of something that has been settled: *the refunds that Ida approved*.
    settled: bool,
    /// Deeds that are spoken of in any form: *the purchase of*, *interested in buying*.
    mentioned: Deeds,
}

/// Whether the user wants a call's kind of deed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// The user asked for it: the deed, and what it is done to.
    Yes,
    /// No request is known, it is in another language, or it asks for one of the two.
    Unknown,
    /// The user asked for something else, or forbade it.
    No,
}

/// Reads an input. Linear in the text.
pub fn read(lexicon: &Lexicon, text: &str) -> Said {
    let named = values(text);
    let mut request = Request { said: !text.trim().is_empty(), ..Request::default() };
    for value in &named {
        request.names_people |= value.kind == Kind::Mail;
    }
    let all = words(text);
    request.foreign = is_foreign(lexicon, text, &all);
    for range in sentences(text) {
        let own: Vec<Word> = words(text.get(range.clone()).unwrap_or_default())
            .into_iter()
            .map(|word| word.moved(range.start))
            .collect();
        request.take_verbs(lexicon, &own, &named);
        request.names_people |= names_somebody(lexicon, &own);
        if request.handings.len() < HANDINGS_MAX {
            request.handings.extend(handing::read(lexicon, &own, &named, request.foreign));
        }
    }
    for word in &all {
        request.settled |= lexicon.classes(word).is(Classes::SETTLED);
        if let Some((deed, _)) = lexicon.deed(lexicon.base(word.stem)) {
            request.mentioned.add(deed);
        }
        if request.stems.len() < STEMS_MAX {
            request.stems.extend([word.stem, lexicon.base(word.stem), lexicon.thing(word.stem)]);
        }
    }
    request.take_joined(text, &all);
    // *Summarise it into our reading list* writes.
    if all.iter().any(|word| word.is("into")) {
        request.wanted.deeds.add(Deed::Change);
    }
    // *Tell me what Anna wrote* leaves nothing to Anna.
    if !request.wanted.deeds.is_empty() && request.wanted.deeds.only_read() {
        request.handings.clear();
    }
    let numbers = numbers(text).into_iter().map(|(hash, _)| hash).collect();
    Said { values: named, numbers, request }
}

/// Whether a text is in a language of which the lexicon has no verbs.
fn is_foreign(lexicon: &Lexicon, text: &str, words: &[Word]) -> bool {
    let ascii = text.chars().filter(char::is_ascii).count();
    if ascii * 2 < text.chars().count() {
        return true;
    }
    let function = words.iter().filter(|word| lexicon.classes(word).is(Classes::FUNCTION)).count();
    let verb = words
        .iter()
        .any(|word| !lexicon.is_translated(word.stem) && lexicon.deed(lexicon.base(word.stem)).is_some());
    words.len() >= LANGUAGE_WORDS_MIN && function * FUNCTION_SHARE < words.len() && !verb
}

impl Request {
    /// The verbs of a sentence, by whether they are asked for or forbidden.
    fn take_verbs(&mut self, lexicon: &Lexicon, own: &[Word], named: &[Value]) {
        let command = orders::command(lexicon, own, named);
        match &command {
            // A verb that nobody knows may be any but a graver one.
            Some(command) if command.unknown => self.wanted.deeds.add(Deed::Change),
            None if is_question(own) => self.wanted.deeds.add(Deed::Read),
            _ => {}
        }
        let mut negated = false;
        for (at, word) in own.iter().enumerate() {
            let classes = lexicon.classes(word);
            if matches!(word.before, Before::Stop | Before::Open) {
                negated = false;
            }
            let next = own.get(at + 1);
            if classes.is(Classes::NEGATION) {
                let before = at.checked_sub(1).and_then(|at| own.get(at));
                let idle = |next: &Word| ["sure", "only", "just", "yet"].iter().any(|idle| next.is(idle));
                // *If not, pay it*; *I am not sure*.
                negated =
                    !before.is_some_and(|word| word.is("if") || word.is("or")) && !next.is_some_and(idle);
                continue;
            }
            // *Do not archive it, but answer it*; *don't send, just draft*.
            if word.is("but") || word.is("just") || word.is("only") || word.is("instead") {
                negated = false;
            }
            // *Help me to find it* asks to find it.
            let helped = || (at + 1..at + 4).any(|at| is_verb(lexicon, own, at));
            if word.is("help") && helped() {
                continue;
            }
            let commanded = command.as_ref().is_some_and(|command| command.verbs.contains(&at));
            // *What does it do*, *do you know*: the auxiliary asks for nothing.
            if word.is("do") && !next.is_some_and(|next| does_something(lexicon, next)) {
                continue;
            }
            if !commanded && !is_verb(lexicon, own, at) {
                continue;
            }
            let told = next.is_some_and(|next| next.is("me") || next.is("us"))
                && ["tell", "show", "give", "send", "let", "bring", "get"].iter().any(|verb| word.is(verb));
            let verbs = if negated { &mut self.forbidden } else { &mut self.wanted };
            verbs.take(lexicon, word, told);
            // To request a refund is to refund.
            if classes.is(Classes::VAGUE) {
                let near =
                    own.iter().skip(at + 1).take(NOUN_REACH).take_while(|word| word.before == Before::Space);
                for noun in near.filter_map(|noun| Some((noun, lexicon.deed(lexicon.base(noun.stem))?.0))) {
                    verbs.deeds.add(noun.1);
                    verbs.families = verbs.families.or(lexicon.noun(noun.0.stem));
                    verbs.stems.insert(lexicon.base(noun.0.stem));
                }
            }
        }
    }

    /// Two words that a tool's name writes as one: *shift book*, `shiftbook_add`.
    fn take_joined(&mut self, text: &str, all: &[Word]) {
        let spelt = |word: &Word| text.get(word.range.clone()).unwrap_or_default();
        for (first, second) in all.iter().zip(all.iter().skip(1)) {
            if second.before == Before::Space && self.stems.len() < STEMS_MAX {
                let joined = format!("{}{}", spelt(first), spelt(second)).to_lowercase();
                self.stems.insert(stem_hash(&joined));
            }
        }
    }

    /// Adds what a further input says.
    pub fn add(&mut self, said: Said) {
        let more = said.request;
        self.wanted.add(more.wanted);
        self.forbidden.add(more.forbidden);
        let room = STEMS_MAX.saturating_sub(self.stems.len());
        self.stems.extend(more.stems.into_iter().take(room));
        let room = HANDINGS_MAX.saturating_sub(self.handings.len());
        self.handings.extend(more.handings.into_iter().take(room));
        self.said |= more.said;
        self.names_people |= more.names_people;
        self.foreign |= more.foreign;
        self.settled |= more.settled;
        self.mentioned = self.mentioned.or(more.mentioned);
    }

    /// Whether nothing was asked for yet.
    pub fn is_empty(&self) -> bool {
        !self.said
    }

    /// Whether it has this word.
    pub fn says(&self, stem: u64) -> bool {
        self.stems.contains(&stem)
    }

    /// Whether all words of an argument are its own.
    pub fn says_all(&self, argument: &Argument) -> bool {
        !argument.stems.is_empty() && argument.stems.iter().all(|stem| self.says(*stem))
    }

    /// Whether it names someone.
    pub fn names_people(&self) -> bool {
        self.names_people
    }

    /// Whether it mentions something that has been settled.
    pub fn speaks_of_settled(&self) -> bool {
        self.settled
    }

    /// The sentences that hand on to a source.
    pub fn handings(&self) -> &[Handing] {
        &self.handings
    }

    /// Whether it hands on to any source.
    pub fn hands_on(&self) -> bool {
        !self.handings.is_empty()
    }

    /// Whether it asks to know something, and for nothing else.
    pub fn only_reads(&self) -> bool {
        self.said
            && !self.foreign
            && !self.wanted.deeds.is_empty()
            && self.wanted.deeds.only_read()
            && self.handings.is_empty()
    }

    /// Whether the user wants a call of this kind that does this, with these arguments. `named` says whether the user named a value.
    pub fn wants(
        &self,
        kind: &CallKind,
        deed: Deed,
        arguments: &[Argument],
        named: impl Fn(&Value) -> bool,
    ) -> Wanted {
        if !self.said {
            return Wanted::Unknown;
        }
        if self.forbids(kind) {
            return Wanted::No;
        }
        // What is done in a browser, and in a cart, is how pages are used and things are bought.
        let shops =
            self.wanted.deeds.has(Deed::Pay) && (kind.cart || kind.families.meets(self.wanted.families));
        let means = deed == Deed::Change && (kind.fetches || shops);
        let verb = self.wanted.meets(kind, deed) || means;
        let about = |argument: &Argument| {
            argument.values.iter().any(&named) || argument.speaks && self.says_all(argument)
        };
        let speaks_of = |argument: &Argument| argument.grave_things.iter().any(|thing| self.says(*thing));
        // Files are how anything is changed on a machine.
        let file = deed == Deed::Change
            && arguments.iter().any(|argument| {
                !argument.is_content() && argument.values.iter().any(|value| value.kind == Kind::File)
            });
        if file && !self.wanted.deeds.only_read() {
            return Wanted::Yes;
        }
        let object = kind.objects.iter().any(|object| self.says(*object))
            || kind.bare && self.wanted.names(kind)
            || arguments.iter().filter(|argument| argument.role != Role::Content).any(speaks_of)
            || arguments.iter().filter(|argument| argument.role != Role::Content).any(about);
        let enough = matches!(deed, Deed::Send | Deed::Execute | Deed::Visit | Deed::Pay)
            || kind.objects.is_empty() && !deed.is_grave();
        let spoken_of = deed.is_grave() && self.mentioned.has(deed);
        match (verb, object) {
            (true, true) => Wanted::Yes,
            (true, false) if enough => Wanted::Yes,
            // In another language, or in words that say nothing of what is to be done.
            _ if self.foreign || self.wanted.deeds.is_empty() => Wanted::Unknown,
            (false, _) if spoken_of => Wanted::Unknown,
            (false, _) if self.only_reads() => Wanted::No,
            // The thing alone asks for nothing that ends, pays, lets in or switches off.
            (false, true) if deed.is_grave() && !self.wanted.vague && !self.hands_on() => Wanted::No,
            // Some change was asked for, of something else.
            (true, false)
                if deed == Deed::Change && !self.wanted.vague && !means && !self.wanted.names(kind) =>
            {
                Wanted::No
            }
            (false, false) => Wanted::No,
            _ => Wanted::Unknown,
        }
    }

    /// Whether the user asked with the very verb of a tool, and not for some change.
    pub fn asks_by_name(&self, kind: &CallKind) -> bool {
        self.wanted.names(kind)
    }

    /// Whether the user said not to do this kind of thing.
    pub(crate) fn forbids(&self, kind: &CallKind) -> bool {
        let verb = kind
            .verbs
            .iter()
            .any(|verb| self.forbidden.stems.contains(verb) && !self.wanted.stems.contains(verb));
        let deed = matches!(kind.deed, Deed::Send | Deed::Pay | Deed::Delete | Deed::Execute)
            && self.forbidden.deeds.has(kind.deed)
            && !self.wanted.deeds.has(kind.deed);
        kind.changes && (verb || deed)
    }
}

/// Whether a sentence says *to Ann*, *with Ann*, *Ann's*.
fn names_somebody(lexicon: &Lexicon, own: &[Word]) -> bool {
    own.iter().zip(own.iter().skip(1)).any(|(before, word)| {
        let to = [
            "to", "with", "for", "invite", "email", "mail", "tell", "ask", "message", "write", "answer",
            "reply",
        ]
        .iter()
        .any(|to| before.is(to));
        let name =
            word.shape.is(Shape::CAPITAL) && !word.shape.is(Shape::CAMEL.or(Shape::DIGIT).or(Shape::PART));
        to && name && word.before == Before::Space && !orders::is_ordinary(lexicon, word)
    })
}

/// Whether a sentence begins as a question does.
fn is_question(own: &[Word]) -> bool {
    const OPENERS: [&str; 20] = [
        "what", "which", "who", "whose", "when", "where", "why", "how", "is", "are", "was", "were", "does",
        "did", "has", "have", "whats", "what's", "who's", "am",
    ];
    own.first().is_some_and(|first| OPENERS.iter().any(|opener| first.is(opener)))
}

/// Whether *do* before a word means doing something.
fn does_something(lexicon: &Lexicon, next: &Word) -> bool {
    let classes = lexicon.classes(next);
    next.before == Before::Space
        && (classes.is(Classes::DETERMINER.or(Classes::DELEGATE_NOUN))
            || ["it", "that", "this", "so", "them", "what", "whatever", "as"]
                .iter()
                .any(|word| next.is(word)))
}

/// Whether a word is a verb that asks for something. One that is as often a noun must stand where a verb stands.
fn is_verb(lexicon: &Lexicon, own: &[Word], at: usize) -> bool {
    let Some(word) = own.get(at) else { return false };
    let stem = lexicon.base(word.stem);
    let (deed, classes) = (lexicon.deed(stem), lexicon.classes(word));
    let known = deed.is_some()
        || lexicon.asks_to_know(stem)
        || !lexicon.verb(stem).is_empty()
        || classes.is(Classes::VAGUE.or(Classes::DELEGATE_VERB).or(Classes::OPEN));
    // In other languages a verb may stand anywhere, and its endings are others.
    if lexicon.is_translated(word.stem) {
        return known && !classes.is(Classes::FUNCTION);
    }
    let shaped = word.shape.is(Shape::PARTICIPLE.or(Shape::PART).or(Shape::HEADED))
        || word.shape.is(Shape::PLURAL) && !lexicon.is_base(word)
        || lexicon.is_form(word.stem);
    if !known || shaped || classes.is(Classes::FUNCTION) && !word.is("do") {
        return false;
    }
    let sure = deed.is_some_and(|(_, sure)| sure) && lexicon.noun(stem).is_empty();
    let before = at.checked_sub(1).and_then(|at| own.get(at));
    let Some(before) = before.filter(|_| word.before == Before::Space) else {
        return sure || before.is_none() || matches!(word.before, Before::Stop | Before::Open);
    };
    let before_classes = lexicon.classes(before);
    if before_classes.is(Classes::DETERMINER.or(Classes::POSSESSIVE)) {
        return false;
    }
    let opens = before_classes.is(Classes::POLITE
        .or(Classes::MODAL)
        .or(Classes::JOINS)
        .or(Classes::SKIP)
        .or(Classes::ASKS))
        || ["to", "you", "i", "we", "let's", "lets", "not", "it", "them", "just"]
            .iter()
            .any(|word| before.is(word));
    sure || opens
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::built_in;
    use crate::kind::ToolView;
    use crate::trajectory::Call;

    fn wanted(request: &str, tool: &str, arguments: &serde_json::Value) -> Wanted {
        let lexicon = built_in();
        let said = read(&lexicon, request);
        let named: Vec<u64> = said.values.iter().map(|value| value.hash).collect();
        let mut whole = Request::default();
        whole.add(said);
        let call = Call::new(&lexicon, CallKind::of(&lexicon, &ToolView::unknown(tool)), arguments);
        whole.wants(&call.kind, call.kind.deed, &call.arguments, |value| named.contains(&value.hash))
    }

    #[test]
    fn a_deed_and_what_it_is_done_to_are_wanted_together() {
        let door = json!({"door": "front"});
        assert_eq!(wanted("Please unlock the front door", "unlock_door", &door), Wanted::Yes);
        assert_eq!(wanted("Is the front door locked?", "unlock_door", &door), Wanted::No);
        assert_eq!(wanted("", "unlock_door", &door), Wanted::Unknown);
        assert_eq!(wanted("裏口を開けてください", "unlock_door", &door), Wanted::Unknown);
    }

    #[test]
    fn what_the_user_forbids_is_not_wanted() {
        let mail = json!({"to": "ida@example.com", "body": "Hello"});
        assert_eq!(wanted("Send ida@example.com a mail", "send_mail", &mail), Wanted::Yes);
        assert_eq!(
            wanted("Draft a mail to ida@example.com, but don't send it", "send_mail", &mail),
            Wanted::No
        );
        assert_eq!(wanted("Tell me what ida@example.com wrote", "send_mail", &mail), Wanted::No);
    }

    #[test]
    fn a_noun_after_a_vague_verb_is_its_deed() {
        let order = json!({"order_id": "A-113"});
        assert_eq!(wanted("Please request a refund for order A-113", "refund_order", &order), Wanted::Yes);
    }
}
