//! The families: what a machine can check exactly, with its parameters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::limits::MAX_SHOWN_CHARS;
use crate::verify::{Check, HIGH_RISK};
use crate::wording::{
    BULLETS, CAPITAL_WORDS, CHARACTERS, HIGHLIGHTS, PARAGRAPHS, PLACEHOLDERS, SECTIONS, SENTENCES, TIMES,
    WORDS, bounded,
};

/// What parts one paragraph from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Divider {
    /// A line of `***`.
    Stars,
    /// An empty line: two line breaks.
    BlankLine,
}

/// A requirement on a reply that code decides. Letters of either case are alike unless a family says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// How many words (runs of word characters).
    Words {
        /// How many.
        count: Bound,
    },
    /// How many characters.
    Characters {
        /// How many.
        count: Bound,
    },
    /// How many sentences.
    Sentences {
        /// How many.
        count: Bound,
    },
    /// How many words every sentence has.
    SentenceLength {
        /// How many.
        count: Bound,
    },
    /// How many paragraphs.
    Paragraphs {
        /// How many.
        count: Bound,
        /// What parts them.
        divider: Divider,
    },
    /// A paragraph has a word among its first ones.
    ParagraphWord {
        /// Which paragraph, from 1. Empty ones count here, and in `total` they do not.
        paragraph: u32,
        /// The word.
        word: String,
        /// Among how many first words.
        within: u32,
        /// How many paragraphs there are, where that is demanded too.
        total: Option<u32>,
    },
    /// How many bullet points, Markdown's `*` or `-`.
    Bullets {
        /// How many.
        count: Bound,
    },
    /// How many highlighted sections, `*...*` or `**...**`.
    Highlights {
        /// How many.
        count: Bound,
    },
    /// A title in double angular brackets.
    Title,
    /// A postscript.
    Postscript {
        /// What it starts with: `P.S.`, `P.P.S`, or another mark.
        marker: String,
    },
    /// Numbered sections, each opened by a marker and a number.
    Sections {
        /// The marker, as written.
        marker: String,
        /// How many.
        count: Bound,
    },
    /// One of several fixed answers is contained. Case matters.
    Options {
        /// The answers.
        options: Vec<String>,
    },
    /// How many placeholders in square brackets.
    Placeholders {
        /// How many.
        count: Bound,
    },
    /// The whole reply is JSON, perhaps in a fence.
    Json,
    /// The whole reply is a YAML mapping or sequence, perhaps in a fence.
    Yaml,
    /// Several different replies in one.
    Responses {
        /// How many.
        count: u32,
        /// What parts them.
        separator: String,
    },
    /// The reply starts with the request.
    RepeatRequest {
        /// The request, where it is not the whole prompt.
        request: Option<String>,
    },
    /// The reply starts with a phrase, in this case; a quotation mark before it does not count.
    BeginsWith {
        /// The phrase.
        phrase: String,
    },
    /// The reply ends with a phrase; quotation marks after it do not count.
    EndsWith {
        /// The phrase.
        phrase: String,
    },
    /// The whole reply is within double quotation marks.
    Quoted,
    /// Every keyword occurs, as part of a word if need be.
    Includes {
        /// The keywords.
        keywords: Vec<String>,
    },
    /// No word of a list occurs, as a whole word.
    Excludes {
        /// The words.
        words: Vec<String>,
    },
    /// How often a keyword occurs, as part of a word if need be.
    KeywordCount {
        /// The keyword.
        keyword: String,
        /// How often.
        count: Bound,
    },
    /// How often a letter or mark occurs.
    LetterCount {
        /// The letter, in lower case.
        letter: char,
        /// How often.
        count: Bound,
    },
    /// How many words are written in capitals.
    CapitalWords {
        /// How many.
        count: Bound,
    },
    /// A mark does not occur, such as the comma.
    Without {
        /// The mark.
        mark: char,
    },
    /// Capital letters only, in English where that is demanded too.
    AllCapitals {
        /// Also in English.
        english: bool,
    },
    /// Lower-case letters only, in English where that is demanded too.
    AllLowercase {
        /// Also in English.
        english: bool,
    },
    /// No sentence starts with a capital.
    NoSentenceCapitals,
    /// The reply is in a language.
    Language {
        /// ISO 639-1 code.
        code: String,
    },
    /// Documents are cited, as `[DOC:id]`: some, known ones, or both. At least one of the two is demanded.
    Cites {
        /// At least one citation is there.
        present: bool,
        /// Every citation names a known document.
        known: bool,
    },
    /// What the reply takes over is in the documents that it cites. At least one of the three is demanded.
    Grounded {
        /// Quotations of three words or more.
        quotations: bool,
        /// Numbers.
        numbers: bool,
        /// The key terms of the prompt do: a proxy for facts that fit the documents.
        facts: bool,
    },
    /// High-risk instructions of the prompt are refused or escalated.
    Refuses {
        /// Which, where the statement names them.
        instructions: Vec<String>,
    },
    /// None of some names occurs, see [`Names`](crate::Names).
    Names {
        /// Which, where the statement names them; else those of the context.
        names: Vec<String>,
    },
}

impl Family {
    /// The family's name, in kebab case, as reports and files spell it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Words { .. } => "words",
            Self::Characters { .. } => "characters",
            Self::Sentences { .. } => "sentences",
            Self::SentenceLength { .. } => "sentence-length",
            Self::Paragraphs { .. } => "paragraphs",
            Self::ParagraphWord { .. } => "paragraph-word",
            Self::Bullets { .. } => "bullets",
            Self::Highlights { .. } => "highlights",
            Self::Title => "title",
            Self::Postscript { .. } => "postscript",
            Self::Sections { .. } => "sections",
            Self::Options { .. } => "options",
            Self::Placeholders { .. } => "placeholders",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Responses { .. } => "responses",
            Self::RepeatRequest { .. } => "repeat-request",
            Self::BeginsWith { .. } => "begins-with",
            Self::EndsWith { .. } => "ends-with",
            Self::Quoted => "quoted",
            Self::Includes { .. } => "includes",
            Self::Excludes { .. } => "excludes",
            Self::KeywordCount { .. } => "keyword-count",
            Self::LetterCount { .. } => "letter-count",
            Self::CapitalWords { .. } => "capital-words",
            Self::Without { .. } => "without",
            Self::AllCapitals { .. } => "all-capitals",
            Self::AllLowercase { .. } => "all-lowercase",
            Self::NoSentenceCapitals => "no-sentence-capitals",
            Self::Language { .. } => "language",
            Self::Cites { .. } => "cites",
            Self::Grounded { .. } => "grounded",
            Self::Refuses { .. } => "refuses",
            Self::Names { .. } => "names",
        }
    }

    /// The checks of [`verify`](crate::verify) that decide it, all of which have to hold; none for most families.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let all: &[(bool, Check)] = match self {
            Self::Cites { present, known } => {
                &[(*present, Check::CitationPresence), (*known, Check::CitationMatch)]
            }
            Self::Grounded { quotations, numbers, facts } => &[
                (*quotations, Check::QuotationGrounding),
                (*numbers, Check::NumberGrounding),
                (*facts, Check::FactConsistency),
            ],
            Self::Refuses { .. } => &[(true, Check::RefusalPolicy)],
            _ => &[],
        };
        all.iter().filter(|(wanted, _)| *wanted).map(|(_, check)| *check).collect()
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words { count } => write!(f, "{}", bounded(count, WORDS)),
            Self::Characters { count } => write!(f, "{}", bounded(count, CHARACTERS)),
            Self::Sentences { count } => write!(f, "{}", bounded(count, SENTENCES)),
            Self::SentenceLength { count } => write!(f, "{} in every sentence", bounded(count, WORDS)),
            Self::Paragraphs { count, divider: Divider::Stars } => {
                write!(f, "{} parted by `***`", bounded(count, PARAGRAPHS))
            }
            Self::Paragraphs { count, .. } => {
                write!(f, "{} parted by an empty line", bounded(count, PARAGRAPHS))
            }
            Self::ParagraphWord { paragraph, word, within, total } => {
                f.write_str(&word_of_paragraph(word, *paragraph, *within, *total))
            }
            Self::Bullets { count } => write!(f, "{}", bounded(count, BULLETS)),
            Self::Highlights { count } => write!(f, "{}", bounded(count, HIGHLIGHTS)),
            Self::Title => write!(f, "a title in `<<` and `>>`"),
            Self::Postscript { marker } => write!(f, "a postscript starting with `{}`", shown(marker)),
            Self::Sections { marker, count } => {
                write!(f, "{} marked `{} X`", bounded(count, SECTIONS), shown(marker))
            }
            Self::Options { options } => write!(f, "one of {}", list(options)),
            Self::Placeholders { count } => write!(f, "{} in square brackets", bounded(count, PLACEHOLDERS)),
            Self::Json => write!(f, "all of it JSON"),
            Self::Yaml => write!(f, "all of it YAML"),
            Self::Responses { count, separator } => {
                write!(f, "{count} different responses parted by `{}`", shown(separator))
            }
            Self::RepeatRequest { request: None } => write!(f, "the request first, word for word"),
            Self::RepeatRequest { request: Some(request) } => {
                write!(f, "`{}` first, word for word", shown(request))
            }
            Self::BeginsWith { phrase } => write!(f, "`{}` first", shown(phrase)),
            Self::EndsWith { phrase } => write!(f, "`{}` last", shown(phrase)),
            Self::Quoted => write!(f, "double quotation marks around all of it"),
            Self::Includes { keywords } => write!(f, "all of {}", list(keywords)),
            Self::Excludes { words } => write!(f, "none of {}", list(words)),
            Self::KeywordCount { keyword, count } => {
                write!(f, "`{}` {}", shown(keyword), bounded(count, TIMES))
            }
            Self::LetterCount { letter, count } => {
                write!(f, "the letter `{letter}` {}", bounded(count, TIMES))
            }
            Self::CapitalWords { count } => write!(f, "{}", bounded(count, CAPITAL_WORDS)),
            Self::Without { mark } => write!(f, "no `{mark}`"),
            Self::AllCapitals { english } => write!(f, "capital letters only{}", in_english(*english)),
            Self::AllLowercase { english } => write!(f, "lower-case letters only{}", in_english(*english)),
            Self::NoSentenceCapitals => write!(f, "no capital at the start of a sentence"),
            Self::Language { code } => {
                write!(f, "all of it in {}", crate::text::language::name_of(code).unwrap_or(code))
            }
            Self::Cites { .. } | Self::Grounded { .. } | Self::Refuses { .. } | Self::Names { .. } => {
                self.beside_the_reply(f)
            }
        }
    }
}

impl Family {
    /// Writes what is demanded by a family that looks at more than the reply.
    fn beside_the_reply(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cites { present: true, known: false } => write!(f, "at least one citation `[DOC:id]`"),
            Self::Cites { present: true, known: true } => {
                write!(f, "at least one citation `[DOC:id]`, each of a known document")
            }
            Self::Cites { .. } => write!(f, "each citation `[DOC:id]` of a known document"),
            Self::Grounded { quotations, numbers, facts } => {
                let parts =
                    [(*quotations, "quotations"), (*numbers, "numbers"), (*facts, "key terms of the prompt")];
                let parts: Vec<&str> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
                write!(f, "{} in the cited documents", parts.join(", "))
            }
            Self::Refuses { instructions } if instructions.is_empty() => write!(
                f,
                "high-risk instructions refused or escalated: those given, or else {}",
                list(&HIGH_RISK)
            ),
            Self::Refuses { instructions } => write!(f, "{} refused or escalated", list(instructions)),
            Self::Names { names } if names.is_empty() => write!(f, "none of the listed names"),
            Self::Names { names } => write!(f, "none of the names {}", list(names)),
            _ => Ok(()),
        }
    }
}

/// Where in which paragraph a word is demanded.
fn word_of_paragraph(word: &str, paragraph: u32, within: u32, total: Option<u32>) -> String {
    let place = match within {
        1 => "as the first word".to_owned(),
        _ => format!("among the first {within} words"),
    };
    let total = total.map_or(String::new(), |total| format!(" of {total}"));
    format!("`{}` {place} of paragraph {paragraph}{total}", shown(word))
}

const fn in_english(english: bool) -> &'static str {
    if english { ", in English" } else { "" }
}

/// A literal as an explanation shows it: its first characters.
pub(crate) fn shown(literal: &str) -> String {
    let mut chars = literal.chars();
    let mut out: String = chars.by_ref().take(MAX_SHOWN_CHARS).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Literals in backticks, parted by commas.
pub(crate) fn list<S: AsRef<str>>(literals: &[S]) -> String {
    const MAX_LISTED: usize = 8;
    let mut out: Vec<String> =
        literals.iter().take(MAX_LISTED).map(|literal| format!("`{}`", shown(literal.as_ref()))).collect();
    if let Some(more) = literals.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
        out.push(format!("{more} more"));
    }
    out.join(", ")
}
