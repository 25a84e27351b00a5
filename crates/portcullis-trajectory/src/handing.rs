//! Handing on: the user leaves to a source what is to be done. *Do what the checklist says*, *follow Anna's
//! instructions*, *set it up as the README tells*, *pay the bill*.
//!
//! It is bound to the source that the words name: by a value (a path, a link, an id), else by a proper name, else by the
//! kind of source. What was handed on explains a call with the user's authority; what is in other sources does not.

use std::collections::HashSet;

use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::orders;
use crate::values::{Kind, Value};
use crate::words::{Before, Shape, Word, stem_hash};

/// How many words after a verb its source may stand.
const REACH: usize = 9;
/// How many words after *according to* its source may stand.
const SOURCE_REACH: usize = 5;
/// How many words after *as* or *what* someone may say something.
const CLAUSE: usize = 7;
/// Most words and values of one handing.
const PARTS_MAX: usize = 64;

/// A sentence of the user's that hands on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handing {
    /// Values that name the source.
    pub values: HashSet<u64>,
    /// Proper names in it.
    pub names: HashSet<u64>,
    /// The kinds of sources that it names.
    pub sources: HashSet<u64>,
}

impl Handing {
    /// Whether a source is meant: it has one of the values, else one of the names, else it is of one of the kinds. With
    /// none of the three any source that the user pointed at is.
    pub fn means(
        &self,
        has_value: impl Fn(u64) -> bool,
        has_name: impl Fn(u64) -> bool,
        is_source: impl Fn(u64) -> bool,
    ) -> bool {
        let any = |set: &HashSet<u64>, has: &dyn Fn(u64) -> bool| set.iter().any(|hash| has(*hash));
        if !self.values.is_empty() {
            return any(&self.values, &has_value);
        }
        if !self.names.is_empty() && any(&self.names, &has_name) {
            return true;
        }
        self.names.is_empty() && self.sources.is_empty() || any(&self.sources, &is_source)
    }
}

/// What a sentence hands on, if it does.
pub(crate) fn read(lexicon: &Lexicon, own: &[Word], named: &[Value], foreign: bool) -> Option<Handing> {
    let hands_on = follows(lexicon, own) || says(lexicon, own) || accords(lexicon, own) || uses(lexicon, own);
    if !(hands_on || foreign && abroad(own)) {
        return None;
    }
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return None };
    let range = first.range.start..last.range.end;
    let inside = |value: &&Value| {
        range.start <= value.range.start && value.range.start < range.end && value.kind != Kind::Quoted
    };
    // A site is meant with all its pages.
    let values = named.iter().filter(inside).flat_map(|value| [Some(value.hash), value.host]).flatten();
    let values = values.take(PARTS_MAX).collect();
    let proper = |(at, word): &(usize, &Word)| {
        let known = !orders::is_ordinary(lexicon, word);
        *at > 0
            && word.before == Before::Space
            && word.shape.is(Shape::CAPITAL)
            && !lexicon.classes(word).is(Classes::FUNCTION)
            && known
    };
    let names = own.iter().enumerate().filter(proper).map(|(_, word)| word.stem).take(PARTS_MAX).collect();
    let source = |word: &&Word| lexicon.classes(word).is(Classes::SOURCE);
    let general = |stem: &u64| {
        ["instruction", "task", "procedure", "order", "step", "request", "description"]
            .iter()
            .any(|word| *stem == lexicon.thing(stem_hash(word)))
    };
    let sources = own.iter().filter(source).map(|word| lexicon.thing(word.stem));
    let sources = sources.filter(|stem| !general(stem)).take(PARTS_MAX).collect();
    Some(Handing { values, names, sources })
}

fn is_any(lexicon: &Lexicon, word: &Word, verbs: &[&str]) -> bool {
    let base = lexicon.base(word.stem);
    verbs.iter().any(|verb| base == stem_hash(verb))
}

/// *Follow*, *work through*, *implement* … the *instructions*, *tickets*, *README*.
fn follows(lexicon: &Lexicon, own: &[Word]) -> bool {
    const VERBS: [&str; 30] = [
        "follow",
        "complete",
        "do",
        "perform",
        "handle",
        "process",
        "work",
        "implement",
        "resolve",
        "apply",
        "execute",
        "finish",
        "accomplish",
        "solve",
        "carry",
        "fulfil",
        "fulfill",
        "address",
        "fix",
        "clear",
        "pay",
        "settle",
        "act",
        "go",
        "tackle",
        "install",
        "replicate",
        "run",
        "set",
        "comply",
    ];
    for (at, word) in own.iter().enumerate() {
        if !is_any(lexicon, word, &VERBS) || word.shape.is(Shape::PARTICIPLE) && !word.is("following") {
            continue;
        }
        let determined = at.checked_sub(1).and_then(|at| own.get(at));
        if determined.is_some_and(|word| lexicon.classes(word).is(Classes::DETERMINER)) {
            continue;
        }
        // *What did she say in her mail*: the auxiliary does nothing.
        if word.is("did") || word.is("does") {
            continue;
        }
        // *Go through my inbox* is to read it.
        if word.is("go") && !own.get(at + 1).is_some_and(|next| next.is("by")) {
            continue;
        }
        // *The bill is on the page, pay it*.
        if ["pay", "settle"].iter().any(|verb| word.is(verb))
            && own.iter().any(|word| lexicon.classes(word).is(Classes::SOURCE) || word.shape.is(Shape::PART))
        {
            return true;
        }
        let mut near = own.iter().skip(at + 1).take(REACH).take_while(|word| word.before != Before::Stop);
        // *The following tasks* are the user's own.
        let listed = own.iter().skip(at + 1).take(REACH).any(|word| word.is("following"));
        let source = |word: &Word| lexicon.classes(word).is(Classes::SOURCE.or(Classes::DELEGATE_NOUN));
        if !listed && near.any(source) {
            return true;
        }
    }
    false
}

/// *As she asks*, *what the letter wants*, *the way the bank describes*.
fn says(lexicon: &Lexicon, own: &[Word]) -> bool {
    const OPENERS: [&str; 9] =
        ["as", "like", "what", "whatever", "how", "way", "everything", "anything", "that"];
    const SAY: [&str; 28] = [
        "stand",
        "show",
        "give",
        "say",
        "ask",
        "want",
        "need",
        "recommend",
        "describe",
        "suggest",
        "tell",
        "state",
        "specify",
        "list",
        "require",
        "explain",
        "propose",
        "instruct",
        "mention",
        "outline",
        "prescribe",
        "request",
        "advise",
        "demand",
        "write",
        "contain",
        "expect",
        "document",
    ];
    own.iter().enumerate().any(|(at, word)| {
        let opens = OPENERS.iter().any(|opener| word.is(opener));
        let clause = own.iter().skip(at + 1).take(CLAUSE).take_while(|word| word.before != Before::Stop);
        // *What did she say* asks to be told.
        let asks = own.get(at + 1).is_some_and(|next| ["did", "does", "do"].iter().any(|verb| next.is(verb)));
        // *What I need*, *as you like* are the user's own.
        let mut own_clause = clause.clone().take(1);
        let mine = asks || own_clause.any(|word| ["i", "we", "you"].iter().any(|pronoun| word.is(pronoun)));
        let said = |(before, word): (&Word, &Word)| {
            let third = word.shape.is(Shape::PLURAL.or(Shape::PARTICIPLE)) || lexicon.is_form(word.stem);
            let they = ["they", "he", "she", "it"].iter().any(|pronoun| before.is(pronoun));
            is_any(lexicon, word, &SAY) && (third || they)
        };
        opens && !mine && clause.clone().zip(clause.skip(1)).any(said)
            || opens
                && !mine
                && word.is("as")
                && own.get(at + 1).is_some_and(|next| is_any(lexicon, next, &SAY))
    })
}

/// *Petra mailed the new number, use that*: what someone told is to be used.
fn uses(lexicon: &Lexicon, own: &[Word]) -> bool {
    const USES: [&str; 4] = ["use", "take", "apply", "enter"];
    const TOLD: [&str; 7] = ["mail", "email", "send", "write", "give", "text", "tell"];
    const BACK: [&str; 8] = ["that", "it", "this", "those", "them", "hers", "his", "theirs"];
    let back = |at: usize| own.get(at + 1).is_some_and(|next| BACK.iter().any(|word| next.is(word)));
    own.iter().enumerate().any(|(at, word)| {
        let told = |word: &Word| {
            is_any(lexicon, word, &TOLD) && (word.shape.is(Shape::PARTICIPLE) || lexicon.is_form(word.stem))
        };
        USES.iter().any(|verb| word.is(verb)) && back(at) && own.iter().take(at).any(told)
    })
}

/// *According to the plan*, *per the README*, *following the steps*, *by the procedure*.
fn accords(lexicon: &Lexicon, own: &[Word]) -> bool {
    const OPENERS: [&str; 3] = ["according", "per", "following"];
    const WEAK: [&str; 3] = ["by", "with", "using"];
    const RULES: [&str; 11] = [
        "procedure",
        "instruction",
        "guideline",
        "guide",
        "runbook",
        "playbook",
        "checklist",
        "template",
        "policy",
        "recipe",
        "rule",
    ];
    own.iter().enumerate().any(|(at, word)| {
        let mut near = own.iter().skip(at + 1).take(REACH).take_while(|word| word.before != Before::Stop);
        let next = own.get(at + 1).map(|word| lexicon.classes(word)).unwrap_or_default();
        let begins =
            next.is(Classes::DETERMINER.or(Classes::POSSESSIVE)) || word.is("according") || word.is("per");
        let strong = OPENERS.iter().any(|opener| word.is(opener)) && begins;
        let weak = WEAK.iter().any(|opener| word.is(opener));
        let source = |word: &Word| {
            lexicon.classes(word).is(Classes::SOURCE.or(Classes::DELEGATE_NOUN))
                || word.shape.is(Shape::CAPITAL.or(Shape::PART))
        };
        strong && near.clone().take(SOURCE_REACH).any(source)
            || weak && near.any(|word| is_any(lexicon, word, &RULES))
    })
}

/// *According to* in other languages.
const ACCORDING: [&str; 32] = [
    "laut",
    "gemäß",
    "gemaess",
    "entsprechend",
    "selon",
    "conformément",
    "conformement",
    "según",
    "segun",
    "conforme",
    "siguiendo",
    "secondo",
    "seguendo",
    "segundo",
    "volgens",
    "według",
    "wedlug",
    "zgodnie",
    "podle",
    "enligt",
    "ifølge",
    "ifoelge",
    "göre",
    "gore",
    "согласно",
    "按照",
    "根据",
    "依照",
    "根據",
    "通り",
    "대로",
    "따라",
];

/// *What*, *as*.
const WHAT: [&str; 12] =
    ["was", "wie", "wat", "zoals", "vad", "hvad", "ce", "lo", "quello", "o", "co", "что"];

/// *Writes*, *says*, *asks*, *wants*.
const SAYS: [&str; 60] = [
    "schreibt",
    "geschrieben",
    "sagt",
    "bittet",
    "will",
    "verlangt",
    "braucht",
    "steht",
    "dit",
    "demande",
    "demandé",
    "écrit",
    "veut",
    "dice",
    "pide",
    "escribe",
    "escribió",
    "quiere",
    "pone",
    "chiede",
    "scrive",
    "scritto",
    "vuole",
    "diz",
    "pede",
    "escreveu",
    "quer",
    "zegt",
    "vraagt",
    "schrijft",
    "staat",
    "wil",
    "pisze",
    "napisała",
    "napisał",
    "prosi",
    "chce",
    "mówi",
    "píše",
    "napsal",
    "napsala",
    "prosí",
    "säger",
    "ber",
    "skriver",
    "skrev",
    "vill",
    "siger",
    "beder",
    "vil",
    "står",
    "пишет",
    "написал",
    "написала",
    "просит",
    "сказал",
    "сказала",
    "хочет",
    "istiyor",
    "yazdı",
];

/// The same in other languages: *laut Checkliste*, *lo que pide Ana*, *co Anna napisała*.
fn abroad(own: &[Word]) -> bool {
    let any = |word: &Word, list: &[&str]| list.iter().any(|one| word.is(one));
    own.iter().enumerate().any(|(at, word)| {
        let clause = || own.iter().skip(at + 1).take(CLAUSE).take_while(|word| word.before != Before::Stop);
        any(word, &ACCORDING) || any(word, &WHAT) && clause().any(|word| any(word, &SAYS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::built_in;
    use crate::values::values;
    use crate::words::words;

    fn hands_on(text: &str) -> bool {
        read(&built_in(), &words(text), &values(text), false).is_some()
    }

    #[test]
    fn other_languages_hand_on_too() {
        for text in [
            "Mach bitte, was Anna in ihrer Mail schreibt",
            "Haz lo que pide Ana en su correo",
            "Zrób, co Anna napisała w mailu",
            "Richte es laut Anleitung ein",
        ] {
            assert!(read(&built_in(), &words(text), &values(text), true).is_some(), "{text}");
        }
        let own = "Was steht heute an? Trag die Termine ein";
        assert!(!hands_on(own), "{own}");
    }

    #[test]
    fn handing_on_is_found_in_many_wordings() {
        for text in [
            "Do the tasks in todo.txt",
            "Follow Anna's instructions",
            "Set it up as the README says",
            "Do what the letter asks",
            "Complete the form the way the bank described it",
            "Deploy it according to the runbook",
            "Pay the bill that came in",
            "Careful, Petra mailed the new account number last week, use that",
        ] {
            assert!(hands_on(text), "{text}");
        }
    }

    #[test]
    fn the_users_own_wishes_hand_nothing_on() {
        for text in [
            "Summarise the letter from the bank",
            "Perform the following tasks: read the page, then write to Bob",
            "What did she say in her mail?",
            "Can you see what is up and tell me?",
        ] {
            assert!(!hands_on(text), "{text}");
        }
    }

    #[test]
    fn it_is_bound_to_what_the_words_name() {
        let text = "Do the tasks in todo.txt";
        let handing = read(&built_in(), &words(text), &values(text), false).unwrap();
        let named = values("todo.txt")[0].hash;
        assert!(handing.means(|hash| hash == named, |_| false, |_| false));
        assert!(!handing.means(|_| false, |_| true, |_| true), "another source of the same kind");
    }
}
