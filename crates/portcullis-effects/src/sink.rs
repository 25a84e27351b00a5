//! Where parsers put the effects that they find.

use std::ops::Range;

use portcullis_core::effect::{Effect, Effects, Resource, ResourceKind, Verb};
use portcullis_core::finding::Span;

use crate::limits::EMBEDDING_MAX;

/// Gathers effects found in one text and places them in it.
#[derive(Debug)]
pub struct Sink<'e> {
    effects: &'e mut Effects,
    pointer: String,
    /// Where the text that is being read begins in the text at the pointer.
    offset: usize,
    /// Set while a text within the text is read: its own offsets mean nothing outside.
    within: Option<Range<usize>>,
    depth: usize,
    privileged: bool,
    remote: bool,
}

impl<'e> Sink<'e> {
    /// A sink for the text at `pointer`: `/arguments` and a JSON pointer.
    pub fn new(effects: &'e mut Effects, pointer: impl Into<String>) -> Self {
        Self {
            effects,
            pointer: pointer.into(),
            offset: 0,
            within: None,
            depth: 0,
            privileged: false,
            remote: false,
        }
    }

    /// Adds an effect found at `range` of the text that is being read.
    pub fn add(&mut self, effect: Effect, range: Range<usize>) {
        let range = self.placed(range);
        let span = Span { pointer: self.pointer.clone(), start: range.start, end: range.end };
        let mut effect = Effect { span: Some(span), ..effect };
        if self.privileged {
            effect = effect.with("privileged", true);
        }
        if self.remote {
            effect = effect.with("remote", true);
        }
        self.effects.push(effect);
    }

    /// Adds that something could not be read: `what` is the language or the construct.
    pub fn unknown(&mut self, what: &str, why: impl Into<String>, range: Range<usize>) {
        let resource = Resource::new(ResourceKind::Unknown, what).with("why", why.into());
        self.add(Effect::new(Verb::Execute, resource), range);
    }

    /// Notes that a part of the text that is not known was taken for harmless.
    pub fn presume(&mut self) {
        self.effects.presume();
    }

    /// Where a range of the text that is being read is in the text at the pointer.
    fn placed(&self, range: Range<usize>) -> Range<usize> {
        self.within.clone().unwrap_or(range.start + self.offset..range.end + self.offset)
    }

    /// A sink for the same text, for a reader that keeps it.
    pub fn again(&mut self) -> Sink<'_> {
        self.part(0)
    }

    /// A sink for a reader that is given only the part of the text that begins at `start`, as it is there.
    pub fn part(&mut self, start: usize) -> Sink<'_> {
        Sink {
            effects: self.effects,
            pointer: self.pointer.clone(),
            offset: self.offset + start,
            within: self.within.clone(),
            depth: self.depth,
            privileged: self.privileged,
            remote: self.remote,
        }
    }

    /// Whether no more effects are taken.
    pub fn is_full(&self) -> bool {
        self.effects.is_full()
    }

    /// A sink for a text within this one, which is at `range`, or `None` if texts are embedded deeper than
    /// [`EMBEDDING_MAX`], which is noted as unknown.
    pub fn nested(&mut self, range: Range<usize>) -> Option<Sink<'_>> {
        if self.depth + 1 > EMBEDDING_MAX {
            self.unknown(
                "embedding",
                format!("texts are embedded deeper than {EMBEDDING_MAX} levels"),
                range,
            );
            return None;
        }
        let within = self.placed(range);
        Some(Sink {
            effects: self.effects,
            pointer: self.pointer.clone(),
            offset: 0,
            within: Some(within),
            depth: self.depth + 1,
            privileged: self.privileged,
            remote: self.remote,
        })
    }

    /// Marks what is found from here on as done by another user (`sudo`).
    #[must_use]
    pub fn privileged(mut self, privileged: bool) -> Self {
        self.privileged |= privileged;
        self
    }

    /// Marks what is found from here on as done on another machine (`ssh`).
    #[must_use]
    pub fn remote(mut self, remote: bool) -> Self {
        self.remote |= remote;
        self
    }
}
