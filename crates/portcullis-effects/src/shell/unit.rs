//! One shell text, parsed: its tree and where the tree's words stand.

use std::ops::Range;

use brush_parser::{ParserOptions, SourceSpan, ast};

use super::lexer::{Kind, Lexed, Lexeme, Lexer};
use crate::limits::TEXT_BYTES_MAX;

/// A parsed text.
#[derive(Debug)]
pub(super) struct Unit {
    text: String,
    lexemes: Vec<Lexeme>,
    pub(super) program: ast::Program,
}

impl Unit {
    /// Parses a text; the error says why it cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("it is longer than {TEXT_BYTES_MAX} bytes"));
        }
        if text.contains('\0') {
            return Err("it holds a NUL byte".to_owned());
        }
        let Lexed { tokens, lexemes } = Lexer::tokens(text).map_err(|refusal| refusal.0.to_owned())?;
        let program = brush_parser::parse_tokens(&tokens, &ParserOptions::default())
            .map_err(|_| "it is not the grammar of bash".to_owned())?;
        Ok(Self { text: text.to_owned(), lexemes, program })
    }

    /// The lexeme where a span of the tree starts.
    fn lexeme(&self, span: &SourceSpan) -> Option<&Lexeme> {
        self.lexemes.get(span.start.index / 2)
    }

    /// The bytes of the text that a span of the tree covers.
    pub(super) fn range(&self, span: &SourceSpan) -> Range<usize> {
        let start = self.lexeme(span).map_or(0, |lexeme| lexeme.range.start);
        let last = self.lexemes.get(span.end.index.saturating_sub(1) / 2);
        let end = last.map_or(self.text.len(), |lexeme| lexeme.range.end);
        start..end.max(start)
    }

    /// A word as it was written, and where.
    pub(super) fn raw(&self, span: Option<&SourceSpan>) -> Option<(&str, Range<usize>)> {
        let lexeme = self.lexeme(span?)?;
        Some((self.text.get(lexeme.range.clone())?, lexeme.range.clone()))
    }

    /// The text of a stretch.
    pub(super) fn text(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// The insides of `((…))` and `[[…]]` that a span covers.
    pub(super) fn insides(&self, span: &SourceSpan) -> impl Iterator<Item = (&str, Range<usize>)> {
        let first = span.start.index / 2;
        let last = span.end.index.saturating_sub(1) / 2;
        let lexemes = self.lexemes.get(first..=last).unwrap_or_default();
        lexemes
            .iter()
            .filter(|lexeme| matches!(lexeme.kind, Kind::Arithmetic | Kind::Test))
            .filter_map(|lexeme| Some((self.text.get(lexeme.range.clone())?, lexeme.range.clone())))
    }

    /// The elements of an array assignment as they were written.
    pub(super) fn elements(&self, span: &SourceSpan) -> Vec<(&str, Range<usize>)> {
        let first = span.start.index / 2 + 2;
        let last = span.end.index.saturating_sub(1) / 2;
        let lexemes = self.lexemes.get(first..last).unwrap_or_default();
        let words = lexemes
            .iter()
            .filter_map(|lexeme| Some((self.text.get(lexeme.range.clone())?, lexeme.range.clone())));
        words.filter(|(text, _)| *text != "\n").collect()
    }

    /// A here-document and whether it is expanded.
    pub(super) fn document(&self, span: Option<&SourceSpan>) -> Option<(&str, bool, Range<usize>)> {
        let lexeme = self.lexeme(span?)?;
        match &lexeme.kind {
            Kind::Document { expands, body } => Some((body, *expands, lexeme.range.clone())),
            _ => None,
        }
    }

    /// Whether the text is one simple command, which prints all that it prints.
    pub(super) fn is_one_command(&self) -> bool {
        let [ast::CompoundList(items)] = self.program.complete_commands.as_slice() else { return false };
        let [ast::CompoundListItem(list, _)] = items.as_slice() else { return false };
        list.additional.is_empty() && matches!(list.first.seq.as_slice(), [ast::Command::Simple(_)])
    }
}
