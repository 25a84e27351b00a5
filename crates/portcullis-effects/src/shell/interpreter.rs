//! Walks a command line as a shell would run it, and notes what it touches.

use std::ops::Range;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::word::Word;
use crate::{Sink, Surroundings};

/// What a command finds on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin<'t> {
    /// Nothing of this command line.
    None,
    /// This text: a here-document, a here-string, what `echo` prints.
    Text(&'t str),
    /// What another command prints.
    Pipe,
    /// A file.
    File,
}

/// One simple command, after expansion.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    /// The program without its folder: `rm` of `/bin/rm`.
    pub(crate) program: &'t str,
    /// The words after it.
    pub(crate) args: &'t [Word],
    /// Where it stands.
    pub(crate) range: Range<usize>,
    /// What it reads.
    pub(crate) stdin: Stdin<'t>,
}

/// The state of the walk.
#[derive(Debug)]
pub(crate) struct Interpreter<'s, 'e> {
    surroundings: Surroundings<'s>,
    sink: Sink<'e>,
    /// Where relative paths start; none when that is not known.
    directory: Option<String>,
    privileged: bool,
    remote: bool,
}

impl<'s, 'e> Interpreter<'s, 'e> {
    /// At the start of a text.
    pub(crate) fn new(surroundings: &Surroundings<'s>, sink: Sink<'e>) -> Self {
        let directory = surroundings.directory.map(ToOwned::to_owned);
        Self { surroundings: *surroundings, sink, directory, privileged: false, remote: false }
    }

    /// What paths and URLs are read against here.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { directory: self.directory.as_deref(), ..self.surroundings }
    }

    /// Adds an effect.
    pub(crate) fn add(&mut self, mut effect: Effect, range: Range<usize>) {
        if self.privileged {
            effect = effect.with("privileged", true);
        }
        if self.remote {
            effect = effect.with("remote", true);
        }
        self.sink.add(effect, range);
    }

    /// Adds that something could not be read: `what` is the language or the construct.
    pub(crate) fn unknown(&mut self, what: &str, why: &str, range: Range<usize>) {
        let resource = Resource::new(ResourceKind::Unknown, what).with("why", why);
        self.add(Effect::new(Verb::Execute, resource), range);
    }

    /// Adds an effect on the path that a word names.
    pub(crate) fn path(&mut self, verb: Verb, word: &Word) {
        self.path_with(verb, word, &[]);
    }

    /// The same with attributes of the effect.
    pub(crate) fn path_with(&mut self, verb: Verb, word: &Word, attributes: &[&'static str]) {
        self.resource(verb, ResourceKind::Path, word, attributes);
    }

    /// Adds an effect on the host that a word names as a URL or by name.
    pub(crate) fn url(&mut self, verb: Verb, word: &Word, attributes: &[&'static str]) {
        self.resource(verb, ResourceKind::Host, word, attributes);
    }

    /// Adds an effect on what a word names.
    pub(crate) fn resource(
        &mut self,
        verb: Verb,
        kind: ResourceKind,
        word: &Word,
        attributes: &[&'static str],
    ) {
        let mut effect = Effect::new(verb, Resource::new(kind, word.shape.clone()));
        for attribute in attributes {
            effect = effect.with(attribute, true);
        }
        self.add(effect, word.range.clone());
    }

    /// Runs a simple command that stands in the words of another: `sudo X…`, `xargs X…`, `find -exec X… ;`.
    pub(crate) fn run(&mut self, args: &[Word], range: Range<usize>) {
        let _ = args;
        self.unknown("shell", "not read yet", range);
    }

    /// Runs text that is a shell script: `bash -c WORD`.
    pub(crate) fn script(&mut self, word: &Word) {
        self.unknown("shell", "not read yet", word.range.clone());
    }

    /// Runs text in another language: `python -c WORD`.
    pub(crate) fn code(&mut self, language: &str, word: &Word) {
        self.unknown(language, "not read yet", word.range.clone());
    }

    /// Runs SQL.
    pub(crate) fn sql(&mut self, word: &Word) {
        self.unknown("sql", "not read yet", word.range.clone());
    }

    /// What happens inside happens on another machine, or in another root: paths here say nothing about it.
    pub(crate) fn remote(&mut self, inside: impl FnOnce(&mut Self)) {
        let before = (self.remote, self.directory.take(), self.surroundings);
        self.remote = true;
        self.surroundings = Surroundings { workspace: None, home: None, directory: None, ..before.2 };
        inside(self);
        (self.remote, self.directory, self.surroundings) = before;
    }

    /// What happens inside happens as another user.
    pub(crate) fn privileged(&mut self, inside: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.privileged, true);
        inside(self);
        self.privileged = before;
    }

    /// Changes the working directory; it is not known afterwards if the word is not.
    pub(crate) fn set_directory(&mut self, word: &Word) {
        self.directory = word.literal().map(ToOwned::to_owned);
    }
}
