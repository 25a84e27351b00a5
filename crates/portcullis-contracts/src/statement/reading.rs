//! A statement cut into tokens and quantities, and what a recogniser says it found there.

use super::quantity::{Quantity, is_negation, quantities};
use super::token::{Kind, Token, tokens};
use crate::bound::Bound;
use crate::family::Family;

/// A statement as recognisers see it.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    /// Where an example starts, such as after `for instance`; what follows demands nothing.
    pub(super) head: usize,
    pub(super) quantities: Vec<Quantity>,
}

/// What a recogniser found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) family: Family,
    /// Words that the family explains.
    pub(super) vocabulary: &'static [&'static str],
    /// More of them, from a list that has another use too.
    pub(super) listed: &'static [&'static str],
    /// Tokens that became parameters.
    pub(super) used: Vec<usize>,
    /// What had to be decided.
    pub(super) notes: Vec<String>,
    /// What makes the statement undecidable, where something does.
    pub(super) obstacle: Option<String>,
    /// Whether one word that nothing explains is one too many.
    pub(super) is_strict: bool,
}

impl Found {
    pub(super) fn new(family: Family, vocabulary: &'static [&'static str]) -> Self {
        Self {
            family,
            vocabulary,
            listed: &[],
            used: Vec::new(),
            notes: Vec::new(),
            obstacle: None,
            is_strict: false,
        }
    }

    /// Explains the words of a list besides.
    pub(super) fn explaining(mut self, listed: &'static [&'static str]) -> Self {
        self.listed = listed;
        self
    }

    pub(super) fn using(mut self, tokens: impl IntoIterator<Item = usize>) -> Self {
        self.used.extend(tokens);
        self
    }

    /// Leaves no word unexplained.
    pub(super) fn strictly(mut self) -> Self {
        self.is_strict = true;
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Takes the tokens of a quantity, and says what is unclear about it.
    pub(super) fn counting(mut self, quantity: &Quantity) -> Self {
        self.used.extend(quantity.start..quantity.end);
        if quantity.is_rough {
            self.obstacle = Some(format!(
                "`about {}` is not a bound: write `at least`, `at most` or `exactly`",
                quantity.number
            ));
        } else if !quantity.is_explicit {
            self.notes.push(format!(
                "`{}` alone is read as {}",
                quantity.number,
                bound_of(&self.family, quantity)
            ));
        }
        self
    }
}

fn bound_of(family: &Family, quantity: &Quantity) -> Bound {
    match family {
        Family::Highlights { count }
        | Family::Placeholders { count }
        | Family::Sections { count, .. }
        | Family::CapitalWords { count } => *count,
        _ => quantity.bound,
    }
}

impl Reading {
    pub(super) fn new(statement: &str) -> Self {
        let tokens = tokens(statement);
        let head = example(&tokens).unwrap_or(tokens.len());
        let quantities = quantities(tokens.get(..head).unwrap_or_default());
        Self { text: statement.to_owned(), tokens, head, quantities }
    }

    /// The tokens before an example.
    pub(super) fn head(&self) -> &[Token] {
        self.tokens.get(..self.head).unwrap_or_default()
    }

    /// The first of some words before an example.
    pub(super) fn find(&self, words: &[&str]) -> Option<usize> {
        self.head().iter().position(|token| token.is(words))
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.find(words).is_some()
    }

    pub(super) fn has_negation(&self) -> bool {
        self.head().iter().any(is_negation)
    }

    /// Some word of `first` with one of `second` right behind it.
    pub(super) fn pair(&self, first: &[&str], second: &[&str]) -> Option<usize> {
        self.head().windows(2).position(|pair| matches!(pair, [a, b] if a.is(first) && b.is(second)))
    }

    /// The only quantity, or `None` if there are several.
    pub(super) fn quantity(&self) -> Option<&Quantity> {
        match self.quantities.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The quantity whose unit is one of some words, within the next three.
    pub(super) fn quantity_of(&self, units: &[&str]) -> Option<&Quantity> {
        self.quantities
            .iter()
            .find(|quantity| self.head().iter().skip(quantity.end).take(3).any(|token| token.is(units)))
    }

    /// Every literal, those of lists included, with its token; those of examples only if there are no others.
    pub(super) fn literals(&self) -> Vec<(usize, String)> {
        let of = |range: std::ops::Range<usize>| -> Vec<(usize, String)> {
            range
                .filter_map(|at| Some((at, self.tokens.get(at)?)))
                .flat_map(|(at, token)| match &token.kind {
                    Kind::Literal(text) => vec![(at, text.clone())],
                    Kind::List(items) => items.iter().map(|item| (at, item.clone())).collect(),
                    _ => Vec::new(),
                })
                .collect()
        };
        let head = of(0..self.head);
        if head.is_empty() { of(self.head..self.tokens.len()) } else { head }
    }
}

/// Where an example starts.
fn example(tokens: &[Token]) -> Option<usize> {
    (0..tokens.len()).find(|&at| {
        let word =
            |offset: usize, words: &[&str]| tokens.get(at + offset).is_some_and(|token| token.is(words));
        let dot = |offset: usize| tokens.get(at + offset).is_some_and(|token| token.is_mark('.'));
        word(0, &["such"]) && word(1, &["as"])
            || word(0, &["for"]) && word(1, &["example", "instance"])
            || word(0, &["e", "i"]) && dot(1) && word(2, &["g", "e"])
            || word(0, &["eg", "ie", "namely"])
            || word(0, &["like"]) && tokens.get(at + 1).is_some_and(|t| t.is_mark(':') || t.is_mark('['))
            || word(0, &["like", "as"])
                && word(1, &["this", "so", "follows"])
                && tokens.get(at + 2).is_some_and(|t| t.is_mark(':'))
    })
}
