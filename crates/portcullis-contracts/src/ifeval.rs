//! The structured instructions of IFEval: an id and its arguments, as its data has them, to a family.
//!
//! The 25 ids are those of *Instruction-Following Evaluation for Large Language Models* (Zhou and others, 2023).

use serde_json::{Map, Value};
use thiserror::Error;

use crate::bound::Bound;
use crate::family::{Divider, Family};
use crate::text::language;

/// The ids that this module knows.
pub const INSTRUCTION_IDS: &[&str] = &[
    "change_case:capital_word_frequency",
    "change_case:english_capital",
    "change_case:english_lowercase",
    "combination:repeat_prompt",
    "combination:two_responses",
    "detectable_content:number_placeholders",
    "detectable_content:postscript",
    "detectable_format:constrained_response",
    "detectable_format:json_format",
    "detectable_format:multiple_sections",
    "detectable_format:number_bullet_lists",
    "detectable_format:number_highlighted_sections",
    "detectable_format:title",
    "keywords:existence",
    "keywords:forbidden_words",
    "keywords:frequency",
    "keywords:letter_frequency",
    "language:response_language",
    "length_constraints:nth_paragraph_first_word",
    "length_constraints:number_paragraphs",
    "length_constraints:number_sentences",
    "length_constraints:number_words",
    "punctuation:no_comma",
    "startend:end_checker",
    "startend:quotation",
];

/// The answers that `constrained_response` allows.
const ANSWERS: [&str; 3] = ["My answer is yes.", "My answer is no.", "My answer is maybe."];

/// Why an instruction could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InstructionError {
    /// The id is none of [`INSTRUCTION_IDS`].
    #[error("unknown instruction id `{0}`; the known ones are in `INSTRUCTION_IDS`")]
    UnknownId(String),
    /// An argument is missing or of another type or value than the id needs.
    #[error("`{id}` needs `{argument}` as {expected}")]
    Argument {
        /// The instruction.
        id: String,
        /// Its argument.
        argument: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

/// The family of an instruction.
///
/// # Errors
/// The id is not known, or an argument is missing or malformed.
pub fn family_of(id: &str, arguments: &Map<String, Value>) -> Result<Family, InstructionError> {
    let of = Arguments { id, arguments };
    Ok(match id {
        "change_case:capital_word_frequency" => {
            Family::CapitalWords { count: of.relation("capital_relation", "capital_frequency")? }
        }
        "change_case:english_capital" => Family::AllCapitals { english: true },
        "change_case:english_lowercase" => Family::AllLowercase { english: true },
        "combination:repeat_prompt" => Family::RepeatRequest { request: Some(of.text("prompt_to_repeat")?) },
        "combination:two_responses" => Family::Responses { count: 2, separator: "******".to_owned() },
        "detectable_content:number_placeholders" => {
            Family::Placeholders { count: Bound::at_least(of.number("num_placeholders")?) }
        }
        "detectable_content:postscript" => Family::Postscript { marker: of.text("postscript_marker")? },
        "detectable_format:constrained_response" => {
            Family::Options { options: ANSWERS.map(str::to_owned).to_vec() }
        }
        "detectable_format:json_format" => Family::Json,
        "detectable_format:multiple_sections" => Family::Sections {
            marker: of.text("section_spliter")?,
            count: Bound::at_least(of.number("num_sections")?),
        },
        "detectable_format:number_bullet_lists" => {
            Family::Bullets { count: Bound::exactly(of.number("num_bullets")?) }
        }
        "detectable_format:number_highlighted_sections" => {
            Family::Highlights { count: Bound::at_least(of.number("num_highlights")?) }
        }
        "detectable_format:title" => Family::Title,
        "keywords:existence" => Family::Includes { keywords: of.texts("keywords")? },
        "keywords:forbidden_words" => Family::Excludes { words: of.texts("forbidden_words")? },
        "keywords:frequency" => Family::KeywordCount {
            keyword: of.text("keyword")?,
            count: of.relation("relation", "frequency")?,
        },
        "keywords:letter_frequency" => Family::LetterCount {
            letter: of.letter("letter")?,
            count: of.relation("let_relation", "let_frequency")?,
        },
        "language:response_language" => Family::Language { code: of.language("language")? },
        "length_constraints:nth_paragraph_first_word" => Family::ParagraphWord {
            paragraph: of.number("nth_paragraph")?,
            word: of.text("first_word")?,
            within: 1,
            total: Some(of.number("num_paragraphs")?),
        },
        "length_constraints:number_paragraphs" => Family::Paragraphs {
            count: Bound::exactly(of.number("num_paragraphs")?),
            divider: Divider::Stars,
        },
        "length_constraints:number_sentences" => {
            Family::Sentences { count: of.relation("relation", "num_sentences")? }
        }
        "length_constraints:number_words" => Family::Words { count: of.relation("relation", "num_words")? },
        "punctuation:no_comma" => Family::Without { mark: ',' },
        "startend:end_checker" => Family::EndsWith { phrase: of.text("end_phrase")? },
        "startend:quotation" => Family::Quoted,
        _ => return Err(InstructionError::UnknownId(id.to_owned())),
    })
}

struct Arguments<'a> {
    id: &'a str,
    arguments: &'a Map<String, Value>,
}

impl Arguments<'_> {
    fn wrong(&self, argument: &'static str, expected: &'static str) -> InstructionError {
        InstructionError::Argument { id: self.id.to_owned(), argument, expected }
    }

    fn text(&self, name: &'static str) -> Result<String, InstructionError> {
        let text = self.arguments.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| self.wrong(name, "a text"))
    }

    fn number(&self, name: &'static str) -> Result<u32, InstructionError> {
        let value = self.arguments.get(name);
        value
            .and_then(Value::as_u64)
            .or_else(|| {
                // Tables write whole numbers as 3.0.
                value.and_then(Value::as_f64).filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64)
            })
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| self.wrong(name, "a whole number of at most 32 bits"))
    }

    fn relation(&self, relation: &'static str, number: &'static str) -> Result<Bound, InstructionError> {
        let n = self.number(number)?;
        match self.arguments.get(relation).and_then(Value::as_str) {
            Some("at least") => Ok(Bound::at_least(n)),
            Some("less than") => Ok(Bound::less_than(n)),
            _ => Err(self.wrong(relation, "`at least` or `less than`")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<String>, InstructionError> {
        let list = self.arguments.get(name).and_then(Value::as_array);
        list.and_then(|list| list.iter().map(|item| item.as_str().map(str::to_owned)).collect())
            .ok_or_else(|| self.wrong(name, "a list of texts"))
    }

    fn letter(&self, name: &'static str) -> Result<char, InstructionError> {
        let text = self.text(name)?;
        let mut chars = text.chars().flat_map(char::to_lowercase);
        match (chars.next(), chars.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err(self.wrong(name, "one letter")),
        }
    }

    fn language(&self, name: &'static str) -> Result<String, InstructionError> {
        let text = self.text(name)?;
        let base = text.split('-').next().unwrap_or_default();
        language::code_of(base)
            .map(str::to_owned)
            .ok_or_else(|| self.wrong(name, "the code of a known language"))
    }
}
