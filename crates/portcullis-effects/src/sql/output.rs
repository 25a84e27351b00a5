//! Where effects go, and where in the text they came from.

use std::collections::BTreeSet;
use std::ops::Range;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use sqlparser::tokenizer::{Location, Span, TokenWithSpan};

use super::names::TableName;
use crate::{Sink, Surroundings};

/// Turns the parser's lines and columns (both from one, columns in characters) into byte offsets.
#[derive(Debug)]
pub(super) struct Places {
    /// Byte offset of every line.
    lines: Vec<usize>,
    /// Byte offset of every character, where not all of them are one byte.
    characters: Option<Vec<usize>>,
    length: usize,
}

impl Places {
    pub(super) fn of(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let characters = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { lines, characters, length: text.len() }
    }

    /// The offset of a place; the end of the text for places beyond it.
    fn offset(&self, place: Location) -> usize {
        let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let start = self.lines.get(line).copied().unwrap_or(self.length);
        let offset = match &self.characters {
            None => start.saturating_add(column),
            Some(characters) => {
                let first = characters.partition_point(|at| *at < start);
                characters.get(first.saturating_add(column)).copied().unwrap_or(self.length)
            }
        };
        offset.min(self.length)
    }

    /// The bytes of a span; all of the text for an empty span, which the parser gives where it knows none.
    pub(super) fn range(&self, span: Span) -> Range<usize> {
        if span.start.line == 0 || span.end.line == 0 {
            return 0..self.length;
        }
        let start = self.offset(span.start);
        start..self.offset(span.end).max(start)
    }
}

/// Properties of an effect on a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct How {
    /// No condition limits it.
    pub(super) unbounded: bool,
    /// Overrides protections.
    pub(super) force: bool,
}

/// Effects on their way into the sink: each once.
#[derive(Debug)]
pub(super) struct Output<'r, 'e, 's> {
    sink: &'r mut Sink<'e>,
    pub(super) surroundings: &'r Surroundings<'s>,
    places: &'r Places,
    seen: BTreeSet<(Verb, ResourceKind, String, How)>,
    /// Set while a statement is read that is only explained, not run.
    pub(super) explained: bool,
}

impl<'r, 'e, 's> Output<'r, 'e, 's> {
    pub(super) fn new(
        sink: &'r mut Sink<'e>,
        surroundings: &'r Surroundings<'s>,
        places: &'r Places,
    ) -> Self {
        Self { sink, surroundings, places, seen: BTreeSet::new(), explained: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.sink.is_full()
    }

    pub(super) fn range(&self, span: Span) -> Range<usize> {
        self.places.range(span)
    }

    pub(super) fn range_of(&self, tokens: &[TokenWithSpan]) -> Range<usize> {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => {
                let start = self.places.range(first.span).start;
                start..self.places.range(last.span).end.max(start)
            }
            _ => 0..self.places.length,
        }
    }

    fn first(&mut self, verb: Verb, kind: ResourceKind, name: &str, how: How) -> bool {
        self.seen.insert((verb, kind, name.to_owned(), how))
    }

    fn add(&mut self, verb: Verb, resource: Resource, how: How, range: Range<usize>) {
        if !self.first(verb, resource.kind, &resource.name, how) {
            return;
        }
        let mut effect = Effect::new(verb, resource);
        if how.unbounded {
            effect = effect.with("unbounded", true);
        }
        if how.force {
            effect = effect.with("force", true);
        }
        self.sink.add(effect, range);
    }

    /// An effect on a table. What is only explained reads what the database knows about the table.
    pub(super) fn table(&mut self, verb: Verb, table: &TableName<'_>, how: How, span: Span) {
        let (verb, how) = if self.explained { (Verb::Read, How::default()) } else { (verb, how) };
        let resource = Resource::new(ResourceKind::Table, table.name.as_str())
            .with("catalogued", table.columns.is_some());
        let range = self.range(span);
        self.add(verb, resource, how, range);
    }

    /// An effect on a column, and with it on its table.
    pub(super) fn column(&mut self, verb: Verb, table: &TableName<'_>, column: &str, span: Span) {
        if self.explained || self.is_full() {
            return;
        }
        let name = format!("{}.{column}", table.name);
        if self.seen.contains(&(verb, ResourceKind::Column, name.clone(), How::default())) {
            return;
        }
        // An update or delete was noted for the table with the statement; reading a column reads the table.
        if verb == Verb::Read {
            self.table(Verb::Read, table, How::default(), span);
        }
        let catalogued = table.columns.is_some_and(|columns| columns.contains(column));
        let resource = Resource::new(ResourceKind::Column, name)
            .with("catalogued", catalogued)
            .with("table", table.name.as_str());
        let range = self.range(span);
        self.add(verb, resource, How::default(), range);
    }

    /// An effect on all columns of a table: each by name where the table is catalogued.
    pub(super) fn all_columns(&mut self, verb: Verb, table: &TableName<'_>, span: Span) {
        match table.columns {
            Some(columns) => columns.iter().for_each(|column| self.column(verb, table, column, span)),
            None => self.column(verb, table, "*", span),
        }
    }

    /// An effect on a resource of another kind.
    pub(super) fn other(&mut self, verb: Verb, kind: ResourceKind, name: &str, how: How, span: Span) {
        let range = self.range(span);
        self.add(verb, Resource::new(kind, name), how, range);
    }

    /// A setting of the database is changed.
    pub(super) fn setting(&mut self, name: &str, span: Span) {
        self.other(Verb::Configure, ResourceKind::Setting, name, How::default(), span);
    }

    /// A file on the machine of the database, or something that its name reaches on the network.
    pub(super) fn path(&mut self, verb: Verb, text: &str, range: Range<usize>) {
        if text.contains("://") && !text.starts_with("file:") {
            // What is written there leaves.
            let verb = if verb == Verb::Write { Verb::Send } else { verb };
            if self.first(verb, ResourceKind::Host, text, How::default())
                && let Some(mut sink) = self.sink.nested(range)
            {
                crate::url::read_as(verb, text, self.surroundings, &mut sink);
            }
            return;
        }
        let resource = crate::path::resource(text, self.surroundings);
        self.add(verb, resource, How::default(), range);
    }

    /// Something that could not be read.
    pub(super) fn unknown(&mut self, what: &str, why: impl Into<String>, range: Range<usize>) {
        if self.first(Verb::Execute, ResourceKind::Unknown, what, How::default()) {
            self.sink.unknown(what, why, range);
        }
    }

    /// A command line that the shell of the database's machine runs.
    pub(super) fn shell(&mut self, line: &str, range: Range<usize>) {
        if let Some(mut sink) = self.sink.nested(range) {
            // Nothing is known of the folders of that machine.
            let surroundings =
                Surroundings { workspace: None, home: None, directory: None, ..*self.surroundings };
            crate::shell::read(line, &surroundings, &mut sink);
        }
    }

    /// SQL in a string that the statement runs.
    pub(super) fn nested(&mut self, text: &str, range: Range<usize>) {
        if let Some(mut sink) = self.sink.nested(range) {
            super::read(text, self.surroundings, &mut sink);
        }
    }
}
