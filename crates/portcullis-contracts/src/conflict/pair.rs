//! Two contracts of which one rules out the other.

use super::literal::literals;
use crate::bound::Bound;
use crate::context::Context;
use crate::family::{Divider, Family, shown};
use crate::text::search::{find_words, prefix_length};
use crate::text::sentences::sentences;
use crate::text::{cut, words};
use crate::verify::OPENING;
use crate::wording::{self, CHARACTERS, PARAGRAPHS, RESPONSES, WORDS, bounded, often, verb};

/// Why `a` rules out `b`. Rules have a direction: ask both ways.
pub(super) fn conflict(a: &Family, b: &Family, context: &Context<'_>) -> Option<String> {
    counts(a, b)
        .or_else(|| formats(a, b, context))
        .or_else(|| edges(a, b, context))
        .or_else(|| cases(a, b))
        .or_else(|| citations(a, b, context))
        .or_else(|| texts(a, b, context))
        .or_else(|| paragraphs(a, b))
}

/// Two bounds on the same count with nothing between them.
fn counts(a: &Family, b: &Family) -> Option<String> {
    let (first, second): (&Bound, &Bound) = match (a, b) {
        (Family::Words { count: a }, Family::Words { count: b })
        | (Family::Characters { count: a }, Family::Characters { count: b })
        | (Family::Sentences { count: a }, Family::Sentences { count: b })
        | (Family::SentenceLength { count: a }, Family::SentenceLength { count: b })
        | (Family::Bullets { count: a }, Family::Bullets { count: b })
        | (Family::Highlights { count: a }, Family::Highlights { count: b })
        | (Family::Placeholders { count: a }, Family::Placeholders { count: b })
        | (Family::CapitalWords { count: a }, Family::CapitalWords { count: b }) => (a, b),
        (Family::Paragraphs { count: a, divider: d }, Family::Paragraphs { count: b, divider: e })
            if d == e =>
        {
            (a, b)
        }
        (Family::Sections { marker: m, count: a }, Family::Sections { marker: n, count: b }) if m == n => {
            (a, b)
        }
        (Family::LetterCount { letter: l, count: a }, Family::LetterCount { letter: m, count: b })
            if l == m =>
        {
            (a, b)
        }
        (Family::KeywordCount { keyword: k, count: a }, Family::KeywordCount { keyword: l, count: b })
            if k.to_lowercase() == l.to_lowercase() =>
        {
            (a, b)
        }
        (Family::Responses { count: a, separator: s }, Family::Responses { count: b, separator: t })
            if s == t && a != b =>
        {
            return Some(format!(
                "{} {} not {b}",
                wording::count(*a as usize, RESPONSES),
                verb(*a as usize, "is", "are")
            ));
        }
        _ => return None,
    };
    first.and(second).is_empty().then(|| format!("no count is both {first} and {second}"))
}

/// Formats of the whole reply rule out what stands outside them.
fn formats(a: &Family, b: &Family, context: &Context<'_>) -> Option<String> {
    let name = match a {
        Family::Json => "JSON",
        Family::Yaml => "YAML",
        _ => return None,
    };
    match b {
        Family::Bullets { count } if name == "JSON" && count.at_least > 0 => {
            Some("line breaks in JSON strings are escaped: no line starts with a bullet".to_owned())
        }
        Family::RepeatRequest { .. } | Family::BeginsWith { .. } => {
            let structured = literals(b, context).first().is_some_and(|literal| {
                literal.starts_with(['{', '[']) || name == "YAML" && literal.starts_with("- ")
            });
            (!structured).then(|| format!("{name} starts with a mapping or a sequence, not with a text"))
        }
        Family::EndsWith { phrase } if name == "JSON" => {
            let closes = phrase.trim_end().ends_with(['}', ']', '`']);
            (!closes).then(|| "JSON ends with a bracket, not with a text".to_owned())
        }
        Family::Quoted if name == "YAML" => {
            Some("a text in quotation marks is neither a mapping nor a sequence".to_owned())
        }
        _ => None,
    }
}

/// What comes first or last.
fn edges(a: &Family, b: &Family, context: &Context<'_>) -> Option<String> {
    let first = |family: &Family| matches!(family, Family::BeginsWith { .. } | Family::RepeatRequest { .. });
    let both = |same: bool| {
        let (a, b) = (literals(a, context), literals(b, context));
        let (a, b) = (a.first()?, b.first()?);
        let alike = if same { starts_alike(a, b) } else { ends_alike(a, b) };
        let place = if same { "first" } else { "last" };
        (!alike).then(|| format!("both `{}` and `{}` cannot come {place}", shown(a), shown(b)))
    };
    match (a, b) {
        (a, b) if first(a) && first(b) => both(true),
        (Family::EndsWith { .. }, Family::EndsWith { .. }) => both(false),
        (Family::Quoted, Family::RepeatRequest { .. }) => {
            let literals = literals(b, context);
            let request = literals.first()?;
            (!request.starts_with('"'))
                .then(|| "the request has to come first, before any quotation mark".to_owned())
        }
        _ => None,
    }
}

fn starts_alike(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim().trim_start_matches('"'), b.trim().trim_start_matches('"'));
    prefix_length(a, b).is_some() || prefix_length(b, a).is_some()
}

fn ends_alike(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim().to_lowercase(), b.trim().to_lowercase());
    let (a, b) = (a.trim_end_matches('"'), b.trim_end_matches('"'));
    a.ends_with(b) || b.ends_with(a)
}

fn first_word(text: &str) -> &str {
    words::words(text).next().map_or("", |span| cut(text, span))
}

/// Letters of one case only.
fn cases(a: &Family, b: &Family) -> Option<String> {
    let lower_only = |text: &str| !text.chars().any(char::is_uppercase);
    let upper_only = |text: &str| !text.chars().any(char::is_lowercase);
    match (a, b) {
        (Family::AllCapitals { .. }, Family::AllLowercase { .. } | Family::NoSentenceCapitals) => {
            Some("letters cannot be capitals and not".to_owned())
        }
        (Family::NoSentenceCapitals | Family::AllLowercase { .. }, Family::BeginsWith { phrase })
            if first_word(phrase).starts_with(char::is_uppercase) =>
        {
            Some(format!("`{}` starts with a capital", shown(phrase)))
        }
        (Family::AllLowercase { .. }, Family::CapitalWords { count }) if count.at_least > 0 => {
            Some("without capital letters no word is in capitals".to_owned())
        }
        (Family::AllLowercase { .. }, Family::Options { options })
            if !options.iter().any(|option| lower_only(option)) =>
        {
            Some("every answer has a capital letter".to_owned())
        }
        (Family::AllCapitals { .. }, Family::Options { options })
            if !options.iter().any(|option| upper_only(option)) =>
        {
            Some("every answer has a lower-case letter".to_owned())
        }
        (Family::AllLowercase { .. }, Family::Sections { marker, count })
            if count.at_least > 0 && !lower_only(marker) =>
        {
            Some(format!("the marker `{}` has a capital letter", shown(marker)))
        }
        (Family::AllCapitals { .. }, Family::Sections { marker, count })
            if count.at_least > 0 && !upper_only(marker) =>
        {
            Some(format!("the marker `{}` has a lower-case letter", shown(marker)))
        }
        (
            Family::AllCapitals { english: true } | Family::AllLowercase { english: true },
            Family::Language { code },
        ) if code != "en" => Some("the reply cannot be in English and in another language".to_owned()),
        (Family::Language { code: a }, Family::Language { code: b }) if a != b => {
            Some("the reply cannot be in two languages".to_owned())
        }
        _ => None,
    }
}

/// What rules citations out: no capital letters, no square brackets, or none of the known documents can be named.
fn citations(a: &Family, b: &Family, context: &Context<'_>) -> Option<String> {
    let Family::Cites { present: true, known } = b else { return None };
    let mut markers =
        context.documents.filter(|_| *known).unwrap_or_default().iter().map(|document| marker(&document.id));
    match a {
        Family::AllLowercase { .. } => Some(format!("`{OPENING}` has capital letters")),
        Family::Placeholders { count: Bound { below: Some(0 | 1), .. } } => {
            Some("a citation stands in square brackets, as placeholders do".to_owned())
        }
        Family::AllCapitals { .. } => (markers.len() > 0
            && markers.all(|marker| marker.chars().any(char::is_lowercase)))
        .then(|| "the id of every known document has lower-case letters".to_owned()),
        limit if is_limit(limit) => {
            let each = markers.map(|marker| against(limit, &marker, false, context));
            each.collect::<Option<Vec<String>>>().and_then(|reasons| reasons.into_iter().next())
        }
        _ => None,
    }
}

fn marker(id: &str) -> String {
    format!("{OPENING}{id}]")
}

/// What `a` forbids or limits, and `b` demands word for word.
fn texts(a: &Family, b: &Family, context: &Context<'_>) -> Option<String> {
    if let (Family::Options { options }, true) = (b, is_limit(a)) {
        let each = options.iter().map(|option| against(a, option, false, context));
        return each.collect::<Option<Vec<String>>>().and_then(|reasons| reasons.into_iter().next());
    }
    if let (Family::LetterCount { letter, count }, Family::KeywordCount { keyword, count: times }) = (a, b) {
        let needed = occurrences(keyword, *letter).saturating_mul(times.at_least as usize);
        return count
            .below
            .filter(|&below| needed >= below as usize)
            .map(|_| format!("`{}` so often has the letter `{letter}` {}", shown(keyword), often(needed)));
    }
    let whole = matches!(b, Family::RepeatRequest { .. });
    literals(b, context).iter().find_map(|literal| against(a, literal, whole, context)).or_else(|| {
        // Keywords add up; one within another is counted once.
        let (
            Family::LetterCount { letter, count: Bound { below: Some(below), .. } },
            Family::Includes { keywords },
        ) = (a, b)
        else {
            return None;
        };
        let within = |keyword: &String| {
            keywords.iter().any(|other| {
                other.len() > keyword.len() && other.to_lowercase().contains(&keyword.to_lowercase())
            })
        };
        let needed: usize = keywords
            .iter()
            .filter(|keyword| !within(keyword))
            .map(|keyword| occurrences(keyword, *letter))
            .sum();
        (needed >= *below as usize)
            .then(|| format!("the keywords have the letter `{letter}` {}", often(needed)))
    })
}

const fn is_limit(family: &Family) -> bool {
    matches!(
        family,
        Family::Without { .. }
            | Family::Excludes { .. }
            | Family::LetterCount { .. }
            | Family::KeywordCount { .. }
            | Family::Words { .. }
            | Family::Characters { .. }
            | Family::SentenceLength { .. }
            | Family::Names { .. }
    )
}

/// Why a demanded text cannot stand where `limit` holds. `whole` says that the text stands by itself, from the start.
fn against(limit: &Family, text: &str, whole: bool, context: &Context<'_>) -> Option<String> {
    let shown_text = shown(text);
    let over = |count: &Bound, found: usize| count.below.is_some_and(|below| found >= below as usize);
    match limit {
        Family::Without { mark } => text.contains(*mark).then(|| format!("`{shown_text}` has a `{mark}`")),
        Family::Excludes { words } => words
            .iter()
            .find(|word| find_words(text, word).next().is_some())
            .map(|word| format!("`{shown_text}` has the word `{}`", shown(word))),
        Family::LetterCount { letter, count } => {
            let found = occurrences(text, *letter);
            over(count, found).then(|| format!("`{shown_text}` has the letter `{letter}` {}", often(found)))
        }
        Family::KeywordCount { keyword, count } => {
            let found = crate::text::search::find_all(text, keyword).count();
            over(count, found).then(|| format!("`{shown_text}` has `{}` {}", shown(keyword), often(found)))
        }
        Family::Words { count } => {
            let found = words::count(text);
            over(count, found).then(|| format!("`{shown_text}` has {}", wording::count(found, WORDS)))
        }
        Family::Characters { count } => {
            let found = text.chars().count();
            over(count, found).then(|| format!("`{shown_text}` has {}", wording::count(found, CHARACTERS)))
        }
        Family::SentenceLength { count } => sentence(count, text, whole),
        Family::Names { names } => {
            let (spans, _) = context.names_of(names)?.find(text);
            (!spans.is_empty()).then(|| format!("`{shown_text}` has a name of the list"))
        }
        _ => None,
    }
}

/// A sentence of a demanded text that is too long, or, where the text opens the reply, a closed one that is too short.
fn sentence(count: &Bound, text: &str, whole: bool) -> Option<String> {
    let spans = sentences(text);
    let last = spans.len().saturating_sub(1);
    spans.iter().enumerate().find_map(|(at, span)| {
        let body = cut(text, span.clone());
        let found = words::count(body);
        let is_closed = at < last || body.ends_with(['.', '!', '?']);
        let short = whole && is_closed && found > 0 && found < count.at_least as usize;
        let long = count.below.is_some_and(|below| found >= below as usize);
        (short || long)
            .then(|| format!("`{}` is a sentence of {}", shown(body), wording::count(found, WORDS)))
    })
}

fn occurrences(text: &str, letter: char) -> usize {
    text.chars().flat_map(char::to_lowercase).filter(|&c| c == letter).count()
}

/// Paragraphs that are not there, and two first words of one paragraph.
fn paragraphs(a: &Family, b: &Family) -> Option<String> {
    let Family::ParagraphWord { paragraph, word, within, total } = a else { return None };
    match b {
        Family::Paragraphs { count, divider: Divider::BlankLine } => {
            if count.most().is_some_and(|most| *paragraph > most) {
                return Some(format!(
                    "with {} there is no paragraph {paragraph}",
                    bounded(count, PARAGRAPHS)
                ));
            }
            total.filter(|&total| !count.holds(total as usize)).map(|total| {
                format!(
                    "{} {} not {count}",
                    wording::count(total as usize, PARAGRAPHS),
                    verb(total as usize, "is", "are")
                )
            })
        }
        Family::ParagraphWord { paragraph: other, word: second, within: 1, .. }
            if paragraph == other && *within == 1 && word.to_lowercase() != second.to_lowercase() =>
        {
            Some(format!("paragraph {paragraph} has one first word"))
        }
        _ => None,
    }
}
