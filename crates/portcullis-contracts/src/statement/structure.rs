//! Statements about layout: bullets, highlights, title, postscript, sections, placeholders, several responses.

use super::reading::{Found, Reading};
use super::token::{Kind, Token};
use crate::bound::Bound;
use crate::family::Family;

pub(super) fn bullets(reading: &Reading) -> Option<Found> {
    reading.find(&["bullet", "bullets", "bulleted", "bulletpoint", "bulletpoints"])?;
    if reading.has(&["each", "every", "per", "sentence", "word"]) {
        return None;
    }
    let quantity = reading.quantity()?;
    Some(
        Found::new(
            Family::Bullets { count: quantity.bound },
            &[
                "bullet",
                "bullets",
                "bulleted",
                "bulletpoint",
                "bulletpoints",
                "point",
                "points",
                "markdown",
                "list",
                "item",
                "items",
                "indicate",
                "mark",
                "unordered",
                "organized",
                "presented",
                "asterisk",
                "symbol",
                "entries",
                "dash",
                "exceed",
                "style",
            ],
        )
        .counting(quantity)
        .using(marks_shown(reading, &["*", "* ", "-", "- "])),
    )
}

/// Literals that only show a mark.
fn marks_shown(reading: &Reading, marks: &[&str]) -> Vec<usize> {
    let shows = |token: &Token| matches!(&token.kind, Kind::Literal(text) if marks.contains(&text.as_str()));
    (0..reading.head).filter(|&at| reading.tokens.get(at).is_some_and(shows)).collect()
}

pub(super) fn highlights(reading: &Reading) -> Option<Found> {
    reading.find(&[
        "highlight",
        "highlighted",
        "highlighting",
        "highlights",
        "emphasize",
        "italicize",
        "bold",
        "emphasise",
    ])?;
    let quantity = reading.quantity()?;
    let count = if quantity.is_explicit { quantity.bound } else { Bound::at_least(quantity.number) };
    Some(
        Found::new(
            Family::Highlights { count },
            &[
                "highlight",
                "highlighted",
                "highlighting",
                "highlights",
                "section",
                "sections",
                "markdown",
                "part",
                "parts",
                "phrase",
                "phrases",
                "asterisk",
                "asterisks",
                "emphasize",
                "italicize",
                "bold",
                "italic",
                "text",
                "passage",
                "passages",
                "portions",
                "portion",
                "key",
                "syntax",
                "segments",
                "segment",
                "emphasise",
                "surround",
                "title",
                "titles",
                "has",
                "span",
                "spans",
                "word",
                "words",
            ],
        )
        .counting(quantity)
        .using(literal_tokens(reading)),
    )
}

fn literal_tokens(reading: &Reading) -> Vec<usize> {
    reading.literals().into_iter().map(|(at, _)| at).collect()
}

pub(super) fn placeholders(reading: &Reading) -> Option<Found> {
    reading.find(&["placeholder", "placeholders"])?;
    let quantity = reading.quantity()?;
    let count = if quantity.is_explicit { quantity.bound } else { Bound::at_least(quantity.number) };
    Some(
        Found::new(
            Family::Placeholders { count },
            &[
                "placeholder",
                "placeholders",
                "represented",
                "square",
                "bracket",
                "brackets",
                "bracketed",
                "enclosed",
                "written",
                "marked",
                "denoted",
                "template",
                "fill",
                "surrounded",
                "shape",
                "indicated",
                "like",
            ],
        )
        .counting(quantity)
        .using(literal_tokens(reading)),
    )
}

pub(super) fn title(reading: &Reading) -> Option<Found> {
    reading.find(&["title", "titled", "heading", "titles"])?;
    let brackets = reading.text.contains("<<")
        || reading.has(&["angular", "angle", "chevrons", "guillemets"])
            && reading.has(&["double", "two", "bracket", "brackets", "chevrons"]);
    if !brackets {
        return None;
    }
    // `double` and `two` are about the brackets; another number is not.
    let others = reading.quantities.iter().any(|quantity| quantity.number > 2);
    (!others).then(|| {
        Found::new(
            Family::Title,
            &[
                "title",
                "titled",
                "wrapped",
                "wrap",
                "double",
                "angular",
                "angle",
                "bracket",
                "brackets",
                "enclosed",
                "enclose",
                "surround",
                "surrounded",
                "two",
                "pair",
                "inside",
                "between",
                "chevrons",
                "heading",
                "placed",
                "pairs",
                "one",
                "two",
                "poem",
                "joy",
            ],
        )
        .using(reading.quantities.iter().flat_map(|quantity| quantity.start..quantity.end))
        .using(literal_tokens(reading))
    })
}

pub(super) fn postscript(reading: &Reading) -> Option<Found> {
    let is_marker = |text: &str| text.len() >= 3 && text.to_lowercase().starts_with("p.");
    let named = reading.has(&["postscript", "postscripts"]);
    let marker = reading.tokens.iter().enumerate().find_map(|(at, token)| match &token.kind {
        Kind::Word if matches!(token.raw.to_lowercase().as_str(), "p.s." | "p.s" | "p.p.s" | "p.p.s.") => {
            Some((at, token.raw.clone()))
        }
        Kind::Literal(text) if is_marker(text) || named && text.split_whitespace().count() <= 2 => {
            Some((at, text.clone()))
        }
        Kind::Word if matches!(token.raw.as_str(), "PS" | "PPS") => {
            Some((at, if token.raw.len() == 2 { "P.S.".to_owned() } else { "P.P.S".to_owned() }))
        }
        _ => None,
    });
    if !named && !marker.as_ref().is_some_and(|(_, text)| is_marker(text)) || reading.has_negation() {
        return None;
    }
    const VOCABULARY: &[&str] = &[
        "postscript",
        "end",
        "start",
        "starts",
        "starting",
        "begin",
        "begins",
        "beginning",
        "close",
        "closing",
        "mark",
        "marked",
        "bottom",
        "label",
        "labelled",
        "labeled",
        "explicitly",
        "prefix",
        "append",
        "finish",
        "conclude",
        "introduced",
        "last",
        "after",
        "opens",
        "opening",
        "denoted",
        "indicated",
        "p",
        "s",
        "that",
    ];
    Some(match marker {
        Some((at, marker)) => {
            let marker = normal_marker(&marker);
            Found::new(Family::Postscript { marker }, VOCABULARY).using([at])
        }
        None => Found::new(Family::Postscript { marker: "P.S.".to_owned() }, VOCABULARY)
            .note("no mark is named: `P.S.` is assumed"),
    })
}

/// `P.S.` and `P.P.S` however they are written.
fn normal_marker(marker: &str) -> String {
    match marker.to_lowercase().trim_end_matches('.') {
        "p.s" => "P.S.".to_owned(),
        "p.p.s" => "P.P.S".to_owned(),
        _ => marker.to_owned(),
    }
}

pub(super) fn sections(reading: &Reading) -> Option<Found> {
    let (used, marker) = section_marker(reading)?;
    let of_marker = |token: &Token| {
        token.raw.to_lowercase().starts_with(&marker.to_lowercase().trim_matches('*').to_string())
    };
    let quantity = reading
        .quantity_of(&["section", "sections", "part", "parts", "chapter", "chapters", "segments", "pieces"])
        .or_else(|| {
            reading.quantities.iter().find(|quantity| reading.head().get(quantity.end).is_some_and(of_marker))
        })
        .or_else(|| reading.quantities.first())?;
    let count = if quantity.is_explicit { quantity.bound } else { Bound::at_least(quantity.number) };
    Some(
        Found::new(
            Family::Sections { marker, count },
            &[
                "section",
                "sections",
                "part",
                "parts",
                "chapter",
                "chapters",
                "mark",
                "marked",
                "beginning",
                "begin",
                "start",
                "each",
                "labelled",
                "labeled",
                "label",
                "header",
                "headers",
                "heading",
                "headings",
                "split",
                "divided",
                "divide",
                "separate",
                "separated",
                "x",
                "n",
                "number",
                "numbered",
                "sectioned",
                "organized",
                "headed",
                "titled",
                "title",
                "day",
                "segments",
                "pieces",
                "broken",
                "introduce",
                "introduced",
                "opening",
                "opens",
                "prefixed",
                "prefix",
                "where",
                "every",
                "organize",
                "using",
                "arrange",
                "arranged",
                "structure",
            ],
        )
        .counting(quantity)
        .using(used),
    )
}

/// The marker: what stands before a lone `X`, in a literal before a number, or before numbers that count up.
fn section_marker(reading: &Reading) -> Option<(Vec<usize>, String)> {
    if !reading.has(&[
        "section", "sections", "part", "parts", "chapter", "chapters", "mark", "marked", "label", "labeled",
        "labelled", "header", "headed",
    ]) {
        return None;
    }
    let counter = |text: &str| matches!(text, "X" | "N" | "x" | "#" | "1");
    for (at, literal) in reading.literals() {
        let literal = literal.trim();
        if let Some((marker, last)) = literal.rsplit_once(' ')
            && (counter(last) || matches!(last, "[X]" | "{X}" | "[number]" | "<number>"))
        {
            return Some((vec![at], marker.trim().to_owned()));
        }
    }
    let raw: Vec<&str> = reading.text.split_whitespace().collect();
    let bare =
        |text: &str| text.trim_matches(['"', '\'', '`', ',', '.', ':', ';', '(', ')', '“', '”']).to_owned();
    let marker = raw.windows(2).find_map(|pair| match pair {
        [marker, x] if matches!(bare(x).as_str(), "X" | "N" | "#") => Some(bare(marker)),
        _ => None,
    });
    let counted = || {
        raw.windows(2).find_map(|pair| match pair {
            [marker, one] if bare(one) == "1" && marker.chars().any(char::is_alphabetic) => {
                let marker = bare(marker);
                raw.windows(2)
                    .any(|pair| matches!(pair, [again, two] if bare(again) == marker && bare(two) == "2"))
                    .then_some(marker)
            }
            _ => None,
        })
    };
    let marker = marker.or_else(counted).filter(|marker| !marker.is_empty())?;
    let used = (0..reading.head)
        .filter(|&at| {
            reading.tokens.get(at).is_some_and(|token| {
                marker.contains(token.raw.as_str()) || matches!(token.raw.as_str(), "X" | "N" | "#")
            })
        })
        .collect();
    Some((used, marker))
}

/// Marks by the names that separators are described with.
const SYMBOLS: &[(&[&str], char)] = &[
    (&["asterisk", "asterisks", "star", "stars"], '*'),
    (&["dash", "dashes", "hyphen", "hyphens", "minus"], '-'),
    (&["plus", "pluses"], '+'),
    (&["equal", "equals"], '='),
    (&["hash", "hashes", "pound"], '#'),
    (&["tilde", "tildes"], '~'),
    (&["underscore", "underscores"], '_'),
];

/// Words that a demand on the number of responses may have.
const RESPONSES: &[&str] = &[
    "response",
    "responses",
    "answers",
    "versions",
    "replies",
    "alternatives",
    "variants",
    "different",
    "distinct",
    "separated",
    "separate",
    "divided",
    "split",
    "delimited",
    "asterisk",
    "asterisks",
    "symbol",
    "symbols",
    "dash",
    "dashes",
    "plus",
    "equal",
    "equals",
    "sign",
    "signs",
    "hash",
    "hyphen",
    "hyphens",
    "tilde",
    "star",
    "stars",
    "unique",
    "two",
    "between",
    "separator",
    "divide",
    "alternative",
    "character",
    "characters",
    "underscore",
    "marks",
    "mark",
    "line",
    "parted",
    "delimiter",
    "pluses",
];

pub(super) fn responses(reading: &Reading) -> Option<Found> {
    let plural =
        &["responses", "answers", "versions", "replies", "alternatives", "variants", "options", "outputs"];
    let quantity = reading
        .quantity_of(plural)
        .or_else(|| reading.has(&["different"]).then(|| reading.quantity_of(&["different"])).flatten())?;
    let separated = reading.find(&[
        "separated",
        "separate",
        "divided",
        "split",
        "delimited",
        "divide",
        "between",
        "separator",
        "parted",
        "delimiter",
    ])?;
    let run = reading.tokens.iter().enumerate().skip(separated).find_map(|(at, token)| match &token.kind {
        Kind::Mark if token.raw.chars().count() >= 3 && !token.raw.starts_with('.') => {
            Some((at, token.raw.clone()))
        }
        Kind::Literal(text) if text.chars().count() >= 2 && !text.chars().any(char::is_alphanumeric) => {
            Some((at, text.clone()))
        }
        _ => None,
    });
    let spelled = || {
        SYMBOLS.iter().find_map(|&(names, mark)| {
            let at = reading.find(names)?;
            let number =
                reading.quantities.iter().find(|q| q.end <= at && q.end + 2 > at && *q != quantity)?;
            Some((at, mark.to_string().repeat(number.number.min(64) as usize)))
        })
    };
    let (at, separator) = run.or_else(spelled)?;
    let others = reading.quantities.iter().filter(|q| q.start > separated).flat_map(|q| q.start..q.end);
    let bound = quantity.bound;
    (bound == Bound::exactly(quantity.number)).then(|| {
        Found::new(Family::Responses { count: quantity.number, separator }, RESPONSES)
            .counting(quantity)
            .using(others)
            .using([at])
    })
}
