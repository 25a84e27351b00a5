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

use crate::context::Context;
use crate::contract::{Check, Contract};
use crate::family::Family;
use crate::limits::MAX_REPLY_BYTES;

/// Checks one contract on a reply. The context may be a prompt alone; most families read nothing of it.
///
/// A reply that is empty or longer than [`MAX_REPLY_BYTES`] fails every exact contract. A family that needs what the
/// context does not have ([`Context::lacks`]) is not applicable, and says what is missing.
#[must_use]
pub fn check<'a>(contract: &Contract, reply: &str, context: impl Into<Context<'a>>) -> Check {
    match contract.family() {
        Some(family) => check_family(family, reply, context),
        None => Check::not_applicable(
            "the statement is not in a family that is checked exactly, so it must be judged",
        ),
    }
}

/// Checks a family on a reply, as [`check`] does.
#[must_use]
pub fn check_family<'a>(family: &Family, reply: &str, context: impl Into<Context<'a>>) -> Check {
    let context = context.into();
    if let Some(need) = context.lacks(family) {
        return Check::not_applicable(need.missing());
    }
    if reply.trim().is_empty() {
        return Check::new(false, "the reply is empty".to_owned(), Vec::new());
    }
    if reply.len() > MAX_REPLY_BYTES {
        let explanation =
            format!("the reply has {} bytes; the limit is {MAX_REPLY_BYTES}: split it", reply.len());
        return Check::new(false, explanation, Vec::new());
    }
    by_family(family, reply, &context)
}

/// Checks a reply that is neither empty nor too long.
fn by_family(family: &Family, reply: &str, context: &Context<'_>) -> Check {
    match family {
        Family::Words { count } => length::words(reply, count),
        Family::Characters { count } => length::characters(reply, count),
        Family::Sentences { count } => length::sentences(reply, count),
        Family::SentenceLength { count } => length::sentence_length(reply, count),
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
        Family::NoSentenceCapitals => letters::no_sentence_capitals(reply),
        Family::Without { mark } => punctuation::without(reply, *mark),
        Family::Language { code } => language::language(reply, code),
        Family::Cites { .. } | Family::Grounded { .. } => verified::held(family, reply, context, None),
        Family::Refuses { instructions } => verified::held(family, reply, context, Some(instructions)),
        Family::Names { names } => verified::names(reply, names, context),
    }
}
