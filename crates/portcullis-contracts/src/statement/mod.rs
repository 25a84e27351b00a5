//! Plain-language statements to families with parameters.
//!
//! A statement is cut into tokens ([`token`]), its numbers are read with what is said about them ([`quantity`]), and
//! recognisers, a file a group, look for their family. A recogniser that matches is not enough: what is left of the
//! statement beside its family must be words that add nothing ([`vocabulary`]). *At least 300 words* is exact; *at least
//! 300 words about cats* is more than a machine can check, so it is judged, and [`explain`] says why.

mod conduct;
mod documents;
mod keywords;
mod length;
mod letters;
mod quantity;
mod reading;
mod structure;
mod token;
mod vocabulary;
mod whole;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::context::Need;
use crate::contract::{Checker, Contract, Priority};
use crate::family::{Family, list};
use crate::limits::{MAX_STATEMENT_BYTES, MAX_STATEMENTS};
use crate::verify::Check;
use reading::{Found, Reading};
use token::Kind;

/// Words that may be left over unexplained where none of them narrows the statement.
const MAX_UNKNOWN: usize = 2;

/// Why statements could not be compiled. A statement that is not understood is not an error: it becomes judged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatementError {
    /// Too many statements.
    #[error("{0} statements; the limit is {MAX_STATEMENTS}: compile them in parts")]
    TooMany(usize),
    /// A statement is too long.
    #[error("statement {number} has {bytes} bytes; the limit is {MAX_STATEMENT_BYTES}: split it")]
    TooLong {
        /// Which, from 1.
        number: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// A statement says nothing.
    #[error("statement {0} is empty; remove it")]
    Empty(usize),
}

/// What a statement became, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The statement.
    pub statement: String,
    /// Whether code or a model decides.
    pub checker: Checker,
    /// What is checked, in words; or why nothing can be.
    pub reading: String,
    /// What had to be decided on the way: a number without *at least* or *at most*, stray marks in a list.
    pub notes: Vec<String>,
    /// Words that no reading explains.
    pub not_understood: Vec<String>,
    /// The family it would have been, had the rest been understood.
    pub nearest: Option<Family>,
    /// What is needed beside the reply. Where it is not given, the statement is judged after all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The checks of [`verify`](crate::verify) that decide, where they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
}

impl Explanation {
    /// Whether something had to be decided, or kept the statement from being exact.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        !self.notes.is_empty() || self.nearest.is_some()
    }
}

/// Compiles statements to contracts, in order; their ids are `c1`, `c2`, and so on.
///
/// # Errors
/// Too many statements, one that is too long, or an empty one.
pub fn compile(statements: &[&str]) -> Result<Vec<Contract>, StatementError> {
    Ok(compile_explained(statements)?.into_iter().map(|(contract, _)| contract).collect())
}

/// As [`compile`], each contract with how its statement was read.
///
/// # Errors
/// As those of [`compile`].
pub fn compile_explained(statements: &[&str]) -> Result<Vec<(Contract, Explanation)>, StatementError> {
    if statements.len() > MAX_STATEMENTS {
        return Err(StatementError::TooMany(statements.len()));
    }
    let contract = |(at, statement): (usize, &&str)| {
        let number = at + 1;
        if statement.len() > MAX_STATEMENT_BYTES {
            return Err(StatementError::TooLong { number, bytes: statement.len() });
        }
        if statement.trim().is_empty() {
            return Err(StatementError::Empty(number));
        }
        let explanation = explain(statement);
        let contract = Contract {
            id: format!("c{number}"),
            statement: (*statement).to_owned(),
            checker: explanation.checker.clone(),
            priority: Priority::MEDIUM,
        };
        Ok((contract, explanation))
    };
    statements.iter().enumerate().map(contract).collect()
}

type Recogniser = fn(&Reading) -> Option<Found>;

/// Recognisers in order: the narrower first, since the first that matches decides.
const RECOGNISERS: &[Recogniser] = &[
    documents::cites,
    documents::grounded,
    conduct::refuses,
    whole::repeat_request,
    length::paragraph_word,
    structure::responses,
    structure::title,
    structure::postscript,
    keywords::options,
    structure::placeholders,
    structure::highlights,
    structure::bullets,
    structure::sections,
    letters::capital_words,
    letters::letter_count,
    letters::no_sentence_capitals,
    keywords::keyword_count,
    length::paragraphs,
    length::sentence_length,
    length::sentences,
    length::words,
    length::characters,
    whole::json,
    whole::yaml,
    whole::quoted,
    letters::without,
    letters::whole_case,
    whole::begins,
    whole::ends,
    keywords::excludes,
    keywords::includes,
    letters::language,
    conduct::names,
];

/// Says what a statement becomes and why. One that is longer than [`MAX_STATEMENT_BYTES`] is judged, unread.
#[must_use]
pub fn explain(statement: &str) -> Explanation {
    let judged = |reading: String, nearest: Option<&Found>, not_understood: Vec<String>| Explanation {
        statement: statement.to_owned(),
        checker: Checker::Judged,
        reading,
        notes: nearest.map(|found| found.notes.clone()).unwrap_or_default(),
        not_understood,
        nearest: nearest.map(|found| found.family.clone()),
        needs: Vec::new(),
        checks: Vec::new(),
    };
    if statement.len() > MAX_STATEMENT_BYTES {
        return judged("too long to be read".to_owned(), None, Vec::new());
    }
    let reading = Reading::new(statement);
    let mut nearest = None;
    for found in RECOGNISERS.iter().filter_map(|recogniser| recogniser(&reading)) {
        if let Some(obstacle) = &found.obstacle {
            return judged(obstacle.clone(), Some(&found), Vec::new());
        }
        let left = left_over(&reading, &found);
        let unknown = if found.is_strict { 0 } else { MAX_UNKNOWN };
        if !left.strong && left.words.len() <= unknown {
            return Explanation {
                statement: statement.to_owned(),
                reading: found.family.to_string(),
                needs: found.family.needs().to_vec(),
                checks: found.family.checks(),
                checker: Checker::Exact(found.family),
                notes: found.notes,
                not_understood: left.words,
                nearest: None,
            };
        }
        nearest.get_or_insert((found, left.words));
    }
    match nearest {
        Some((found, words)) => {
            let reading = format!("reads like {}, but says more: {}", found.family, list(&words));
            judged(reading, Some(&found), words)
        }
        None => judged("not in a family that is checked exactly".to_owned(), None, Vec::new()),
    }
}

struct LeftOver {
    words: Vec<String>,
    strong: bool,
}

/// What of a statement its family does not explain.
fn left_over(reading: &Reading, found: &Found) -> LeftOver {
    let mut left = LeftOver { words: Vec::new(), strong: false };
    let is_filler = if found.is_strict { vocabulary::is_plain } else { vocabulary::is_filler };
    for (at, token) in reading.tokens.iter().enumerate() {
        if found.used.contains(&at) {
            continue;
        }
        if at >= reading.head {
            // An example demands nothing, unless it goes on to.
            if token.is(&["must", "should", "ensure", "don't"]) {
                left.strong = true;
                left.words.push(token.raw.clone());
            }
            continue;
        }
        match &token.kind {
            Kind::Mark => {}
            Kind::Literal(_) | Kind::List(_) => {
                left.strong = true;
                left.words.push(token.raw.clone());
            }
            Kind::Word if token.is(found.vocabulary) || token.is(found.listed) => {}
            Kind::Word if is_filler(token) || quantity::is_negation(token) => {}
            Kind::Word => {
                let number =
                    reading.quantities.iter().any(|quantity| (quantity.start..quantity.end).contains(&at));
                left.strong |= number || vocabulary::is_strong(token);
                left.words.push(token.raw.clone());
            }
        }
    }
    left
}
