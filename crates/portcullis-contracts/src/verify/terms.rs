//! Key terms of a prompt, and whether the cited documents have them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use super::citation::Cited;
use super::reply::Reply;
use super::result::{Absence, Finding, Place, Side};
use crate::limits::MAX_TERMS;
use crate::text::{Span, cut};

/// Words of grammar and of time.
const GRAMMAR: &str = "\
    a about above after again against ago all already also always am an and any are as at be because been \
     before being below between both but by can could current currently day days did do does doing don \
     down during each either else ever every few for from further had has have having he her here hers \
     him his how i if in into is it its just kind last let ll lot many may me might mine month months \
     more most much must my next no nor not now of off on once only or other our ours out over own \
     previous quarter re recent recently same shall she should so some soon sort still such than that the \
     their theirs them then there these they thing things this those through time times to today tomorrow \
     too under until up upon us ve very was way ways we week weeks were what when where whether which \
     while who whom whose why will with within without would year years yesterday yet you your yours";
/// Words by which one asks for something.
const REQUESTS: &str = "\
    advise answer answers ask asks based brief briefly cite cites compare compose concerning create \
     describe detail details draft explain explanation find following generate get give gives handle \
     happen happens help how know like list make matter matters mean means need needs note outline \
     overview paragraph please prepare produce provide question questions regarding reply respond \
     response say says search see sentence sentences show shows source sources state states summarise \
     summarize summary tell thank thanks use used using want write writes";

/// Words that say nothing of the subject.
static STOP_WORDS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| GRAMMAR.split(' ').chain(REQUESTS.split(' ')).collect());

/// Endings of inflected words, the longer before the shorter that they end with.
const ENDINGS: &[&str] =
    &["ments", "ment", "ings", "ing", "ions", "ion", "ies", "ied", "ed", "es", "ly", "e", "y", "s"];
/// Fewest characters that are left of a word without its ending.
const STEM_CHARS_MIN: usize = 3;

/// A key term, and where it stands first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// As it was written.
    pub word: String,
    /// What words of one kind have in common, see [`stem`].
    pub stem: String,
    /// Bytes of the text.
    pub span: Span,
}

/// The key terms of a text, each once, at most [`MAX_TERMS`].
///
/// A term is a run of letters and digits. Left out are words of grammar and of time (*the*, *which*, *last*, *year*), words by which one
/// asks for something (*please*, *summarize*, *explain*), numbers, and what has fewer than three letters unless it is
/// written in capitals. Words that differ in their endings only are one term.
#[must_use]
pub fn key_terms(text: &str) -> Vec<Term> {
    let mut seen = BTreeSet::new();
    let mut terms = Vec::new();
    for span in words(text) {
        let word = cut(text, span.clone());
        if terms.len() >= MAX_TERMS {
            break;
        }
        if !is_key(word) {
            continue;
        }
        let stem = stem(word);
        if seen.insert(stem.clone()) {
            terms.push(Term { word: word.to_owned(), stem, span });
        }
    }
    terms
}

fn is_key(word: &str) -> bool {
    /// Fewest letters of an abbreviation.
    const ABBREVIATION_CHARS_MIN: usize = 2;
    let chars = word.chars().count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let abbreviation = chars >= ABBREVIATION_CHARS_MIN && !word.chars().any(char::is_lowercase);
    let long = letters >= STEM_CHARS_MIN || (abbreviation && letters > 0);
    long && !STOP_WORDS.contains(word.to_lowercase().as_str())
}

/// Runs of letters and digits.
pub(super) fn words(text: &str) -> impl Iterator<Item = Span> + '_ {
    let mut chars = text.char_indices();
    std::iter::from_fn(move || {
        let (start, _) = chars.by_ref().find(|&(_, c)| c.is_alphanumeric())?;
        let end = chars.by_ref().find(|&(_, c)| !c.is_alphanumeric()).map_or(text.len(), |(at, _)| at);
        Some(start..end)
    })
}

/// What a word and its inflections have in common: *anonymized* and *anonymization*, *policy* and *policies*. In lower
/// case, in Unicode's compatibility form, without one English ending, without *-at-* before it, and with one letter where
/// a consonant stood twice at the end. Rough, and the same for both sides of every comparison.
#[must_use]
pub fn stem(word: &str) -> String {
    let mut stem: String = word.nfkc().flat_map(char::to_lowercase).collect();
    let long = |rest: &str| rest.chars().count() >= STEM_CHARS_MIN;
    let plain_s = |rest: &str, ending: &str| ending == "s" && rest.ends_with(['s', 'u', 'i']);
    let rest = ENDINGS.iter().find_map(|ending| {
        let rest = stem.strip_suffix(ending)?;
        (long(rest) && !plain_s(rest, ending)).then_some(rest.len())
    });
    stem.truncate(rest.unwrap_or(stem.len()));
    if let Some(rest) = stem.strip_suffix("at").filter(|rest| long(rest)) {
        stem.truncate(rest.len());
    }
    let mut last = stem.chars().rev();
    if let (Some(one), Some(two)) = (last.next(), last.next())
        && one == two
        && !"aeiou".contains(one)
        && stem.chars().count() > STEM_CHARS_MIN
    {
        stem.pop();
    }
    stem
}

/// More than half of the key terms have to be there: a prompt has words that no document answers with.
fn enough(found: usize, terms: usize) -> bool {
    found * 2 > terms
}

pub(super) fn consistency(cited: &Cited<'_>, reply: &Reply<'_>, refused: bool) -> Finding {
    if reply.prompts.is_empty() {
        return Finding::not_applicable(Absence::Knowledge, "the prompt is not known");
    }
    if reply.documents.is_none() {
        return Finding::not_applicable(
            Absence::Knowledge,
            "the documents that could be cited are not known",
        );
    }
    if refused {
        return Finding::not_applicable(
            Absence::Nothing,
            "the reply refuses, so it answers nothing that was asked",
        );
    }
    if !cited.cites() {
        return Finding::not_applicable(Absence::Knowledge, "the reply cites nothing");
    }
    let mut terms: Vec<(Term, Option<u64>)> = Vec::new();
    for prompt in reply.prompts {
        for term in key_terms(prompt.text) {
            if terms.len() < MAX_TERMS && !terms.iter().any(|(known, _)| known.stem == term.stem) {
                terms.push((term, prompt.event));
            }
        }
    }
    if terms.is_empty() {
        return Finding::not_applicable(Absence::Knowledge, "the prompt has no key terms");
    }
    let mut stems = BTreeSet::new();
    for document in &cited.documents {
        stems.extend(words(&document.text).map(|span| stem(cut(&document.text, span))));
    }
    let missing: Vec<&(Term, Option<u64>)> =
        terms.iter().filter(|(term, _)| !stems.contains(&term.stem)).collect();
    let found = terms.len() - missing.len();
    let explanation =
        format!("{found} of {} key terms of the prompt occur in the cited documents", terms.len());
    let status = if enough(found, terms.len()) { Finding::pass } else { Finding::fail };
    let prompts = reply.prompts.iter().map(|prompt| prompt.event);
    let mut finding = status(explanation)
        .named(missing.iter().map(|(term, _)| term.word.to_lowercase()))
        .resting_on(prompts.chain(cited.events()));
    finding.places = missing
        .iter()
        .map(|(term, event)| Place {
            text: Side::Prompt,
            event: *event,
            start: term.span.start,
            end: term.span.end,
        })
        .collect();
    finding
}
