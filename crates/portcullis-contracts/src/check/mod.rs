//! The checkers: one file a group of families. Each counts or looks for what its family names, and says what it found.

mod format;
mod keywords;
mod language;
mod length;
mod letters;
mod punctuation;
mod structure;
mod verified;
mod whole;

pub(crate) use structure::bare;

use std::cell::OnceCell;

use crate::context::Context;
use crate::contract::{Check, Contract};
use crate::family::Family;
use crate::limits::MAX_REPLY_BYTES;
use crate::text::{Span, sentences, words};

/// Checks one contract on a reply. The context may be a prompt alone; most families read nothing of it.
///
/// A reply that is empty or longer than [`MAX_REPLY_BYTES`] fails every exact contract. A family that needs what the
/// context does not have ([`Context::lacks`]) is not applicable, and says what is missing.
#[must_use]
pub fn check<'a>(contract: &Contract, reply: &str, context: impl Into<Context<'a>>) -> Check {
    Reading::new(reply).check(contract, context)
}

/// Checks a family on a reply, as [`check`] does.
#[must_use]
pub fn check_family<'a>(family: &Family, reply: &str, context: impl Into<Context<'a>>) -> Check {
    Reading::new(reply).check_family(family, context)
}

/// A reply that is checked against many contracts. Words and sentences are cut once, when the first of them asks.
#[derive(Debug)]
pub struct Reading<'r> {
    reply: &'r str,
    is_empty: bool,
    words: OnceCell<usize>,
    sentences: OnceCell<Vec<Span>>,
}

impl<'r> Reading<'r> {
    /// A reply of which nothing was read yet.
    #[must_use]
    pub fn new(reply: &'r str) -> Self {
        let is_empty = reply.trim().is_empty();
        Self { reply, is_empty, words: OnceCell::new(), sentences: OnceCell::new() }
    }

    fn words(&self) -> usize {
        *self.words.get_or_init(|| words::count(self.reply))
    }

    fn sentences(&self) -> &[Span] {
        self.sentences.get_or_init(|| sentences::sentences(self.reply))
    }

    /// Checks one contract, as [`check()`] does.
    #[must_use]
    pub fn check<'a>(&self, contract: &Contract, context: impl Into<Context<'a>>) -> Check {
        match contract.family() {
            Some(family) => self.check_family(family, context),
            None => Check::not_applicable(
                "the statement is not in a family that is checked exactly, so it must be judged",
            ),
        }
    }

    /// Checks a family, as [`check()`] does.
    #[must_use]
    pub fn check_family<'a>(&self, family: &Family, context: impl Into<Context<'a>>) -> Check {
        let (reply, context) = (self.reply, context.into());
        if let Some(need) = context.lacks(family) {
            return Check::not_applicable(need.missing());
        }
        if self.is_empty {
            return Check::new(false, "the reply is empty".to_owned(), Vec::new());
        }
        if reply.len() > MAX_REPLY_BYTES {
            let explanation =
                format!("the reply has {} bytes; the limit is {MAX_REPLY_BYTES}: split it", reply.len());
            return Check::new(false, explanation, Vec::new());
        }
        by_family(family, self, &context)
    }
}

/// Checks a reply that is neither empty nor too long.
fn by_family(family: &Family, reading: &Reading<'_>, context: &Context<'_>) -> Check {
    let reply = reading.reply;
    match family {
        Family::Words { count } => length::words(reading.words(), count),
        Family::Characters { count } => length::characters(reply, count),
        Family::Sentences { count } => length::sentences(reading.sentences(), count),
        Family::SentenceLength { count } => length::sentence_length(reply, reading.sentences(), count),
        Family::Paragraphs { count, divider } => structure::paragraphs(reply, count, *divider),
        Family::ParagraphWord { paragraph, word, within, total } => {
            structure::paragraph_word(reply, *paragraph, word, *within, *total)
        }
        Family::Bullets { count } => structure::bullets(reply, count),
        Family::Highlights { count } => structure::highlights(reply, count),
        Family::Title => structure::title(reply),
        Family::Postscript { marker } => structure::postscript(reply, marker),
        Family::Sections { marker, count } => structure::sections(reply, marker, count),
        Family::Responses { count, separator } => structure::responses(reply, *count, separator),
        Family::Options { options } => keywords::options(reply, options),
        Family::Placeholders { count } => structure::placeholders(reply, count),
        Family::Json => format::json(reply),
        Family::Yaml => format::yaml(reply),
        Family::RepeatRequest { request } => whole::repeats(reply, request.as_deref().or(context.prompt)),
        Family::BeginsWith { phrase } => whole::begins(reply, phrase),
        Family::EndsWith { phrase } => whole::ends(reply, phrase),
        Family::Quoted => whole::quoted(reply),
        Family::Includes { keywords } => keywords::includes(reply, keywords),
        Family::Excludes { words } => keywords::excludes(reply, words),
        Family::KeywordCount { keyword, count } => keywords::keyword_count(reply, keyword, count),
        Family::LetterCount { letter, count } => letters::letter_count(reply, *letter, count),
        Family::CapitalWords { count } => letters::capital_words(reply, count),
        Family::AllCapitals { english } => letters::all_capitals(reply, *english),
        Family::AllLowercase { english } => letters::all_lowercase(reply, *english),
        Family::NoSentenceCapitals => letters::no_sentence_capitals(reply, reading.sentences()),
        Family::Without { mark } => punctuation::without(reply, *mark),
        Family::Language { code } => language::language(reply, code),
        Family::Cites { .. } | Family::Grounded { .. } => verified::held(family, reply, context, None),
        Family::Refuses { instructions } => verified::held(family, reply, context, Some(instructions)),
        Family::Names { names } => verified::names(reply, names, context),
    }
}
