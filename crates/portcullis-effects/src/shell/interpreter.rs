//! The state of a walk, and what models of commands do with it.
//!
//! The walk goes through a command line as a shell would run it, every branch taken, and notes what is touched.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::state::{State, Value};
use super::unit::Unit;
use super::word::{Gaps, Word};
use crate::{Sink, Surroundings};

/// Most commands that are walked for one text: loops and functions repeat.
const STEPS_MAX: usize = 20_000;
/// Deepest the walk goes: commands within commands, texts within texts, functions.
pub(super) const WALK_DEPTH_MAX: usize = 64;

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

/// The same, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    None,
    Text(Rc<str>),
    /// Names of files that another command prints.
    Names(Rc<Names>),
    Pipe,
    File,
}

/// What a command prints, where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Printed {
    Text(String),
    Names(Rc<Names>),
    /// A path that `mktemp` made, with a star for what it chose.
    Made(String),
}

/// Text that runs when something happens to the shell.
#[derive(Debug)]
pub(super) struct Trap {
    pub(super) text: String,
    pub(super) range: Range<usize>,
    /// What was known when it was set, and how much had changed by then.
    pub(super) state: State,
    pub(super) changes: u64,
}

/// Names of files, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Words that mean all of them.
    pub(super) words: Vec<Word>,
    /// Whether they end with a zero byte, so that no name can look like several.
    pub(super) zero: bool,
}

impl Input {
    pub(super) fn as_stdin(&self) -> Stdin<'_> {
        match self {
            Self::None => Stdin::None,
            Self::Text(text) => Stdin::Text(text),
            Self::Pipe | Self::Names(_) => Stdin::Pipe,
            Self::File => Stdin::File,
        }
    }
}

/// One simple command, after expansion.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    /// The program without its folder: `rm` of `/bin/rm`.
    pub(crate) program: &'t str,
    /// The words after it.
    pub(crate) args: &'t [Word],
    /// Where it is.
    pub(crate) range: Range<usize>,
    /// What it reads.
    pub(crate) stdin: Stdin<'t>,
}

/// The state of the walk.
#[derive(Debug)]
pub(crate) struct Interpreter<'s, 'e> {
    surroundings: Surroundings<'s>,
    pub(super) sink: Sink<'e>,
    pub(super) state: State,
    pub(super) input: Input,
    /// What the last simple command printed, where that is known.
    pub(super) output: Option<Printed>,
    /// What is known where a loop was left or begun again from its middle, or a function left.
    pub(super) escapes: Option<State>,
    /// Variables that end with the function.
    pub(super) locals: Vec<String>,
    /// What the shell has put off.
    pub(super) traps: Vec<Trap>,
    steps: Rc<Cell<usize>>,
    pub(super) depth: usize,
    privileged: bool,
    remote: bool,
    /// Values are only compared: what a credential is stays untold.
    pub(super) compares: bool,
    /// What the program that is being read runs is named by its path, and that path was told.
    pub(super) by_path: bool,
}

impl<'s, 'e> Interpreter<'s, 'e> {
    /// At the start of a text.
    pub(crate) fn new(surroundings: &Surroundings<'s>, sink: Sink<'e>) -> Self {
        Self {
            surroundings: *surroundings,
            sink,
            state: State::new(surroundings.directory),
            input: Input::None,
            output: None,
            escapes: None,
            locals: Vec::new(),
            traps: Vec::new(),
            steps: Rc::new(Cell::new(STEPS_MAX)),
            depth: 0,
            privileged: false,
            remote: false,
            compares: false,
            by_path: false,
        }
    }

    /// What paths and URLs are read against here.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { directory: self.state.directory(), ..self.surroundings }
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

    /// Runs the program that a file holds.
    pub(super) fn program_file(&mut self, word: &Word) {
        self.path(Verb::Execute, word);
        self.by_path = word.literal().is_some();
    }

    /// The same with attributes of the effect.
    pub(crate) fn path_with(&mut self, verb: Verb, word: &Word, attributes: &[&'static str]) {
        if word.literal() == Some(super::expand::PROCESS) {
            return;
        }
        let mut resources: Vec<Resource> = Vec::new();
        for directory in &self.state.directories {
            let surroundings = Surroundings { directory: directory.as_deref(), ..self.surroundings };
            crate::path::note_length(&word.path(), &surroundings, word.range.clone(), &mut self.sink);
            let mut resource = match word.value {
                Some(_) => crate::path::resource(&word.path(), &surroundings),
                None if word.gaps == Gaps::Letters => crate::path::resource(&word.shape, &surroundings),
                None => crate::path::unresolved(&word.shape, &surroundings),
            };
            if word.glob {
                resource = resource.with("glob", true);
            }
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
        // Two stars are folders at any depth to some shells, and to others by an option.
        let mut attributes = attributes.to_vec();
        let deep = word.glob && word.expanded && word.shape.split('/').any(|part| part == "**");
        if deep && !attributes.contains(&"recursive") {
            attributes.push("recursive");
        }
        for resource in resources {
            self.add_with(verb, resource, &attributes, word.range.clone());
        }
    }

    /// Adds that the repository in the workspace is deleted, if it is in the folder that a word names.
    pub(crate) fn delete_repository_in(&mut self, word: &Word, attributes: &[&'static str]) {
        let Some(text) = word.value.as_ref().filter(|_| !word.glob) else { return };
        let directories = self.state.directories.clone();
        let repositories = directories.iter().filter_map(|directory| {
            let surroundings = Surroundings { directory: directory.as_deref(), ..self.surroundings };
            crate::path::repository_in(&crate::path::resource(text, &surroundings), &surroundings)
        });
        for repository in repositories.collect::<Vec<_>>() {
            self.add_with(Verb::Delete, repository, attributes, word.range.clone());
        }
    }

    fn add_with(&mut self, verb: Verb, resource: Resource, attributes: &[&'static str], range: Range<usize>) {
        let mut effect = Effect::new(verb, resource);
        for attribute in attributes {
            effect = effect.with(attribute, true);
        }
        self.add(effect, range);
    }

    /// Where programs put temporary files.
    pub(crate) fn temporary_folder(&self, range: Range<usize>) -> Word {
        match self.state.assigns("TMPDIR").then(|| self.state.variable("TMPDIR")) {
            None if self.state.forgets_variables() => Word::unknown(range),
            None => Word::known("/tmp", range),
            Some(Value::Text(folder)) => Word::known(folder, range),
            Some(Value::Shape(shape, gaps)) => Word { shape, gaps, ..Word::unknown(range) },
            Some(_) => Word::unknown(range),
        }
    }

    /// Adds an effect on the host that a word names as a URL or by name.
    pub(crate) fn url(&mut self, verb: Verb, word: &Word, attributes: &[&'static str]) {
        if word.shape.starts_with("file:") {
            return self.path_with(verb, word, attributes);
        }
        let found = crate::url::resource(&word.shape, &self.surroundings())
            .or_else(|| crate::url::host_resource(&word.shape))
            .unwrap_or_else(|| Resource::new(ResourceKind::Host, word.shape.clone()).with("resolved", false));
        let resource = if word.value.is_none() { found.with("resolved", false) } else { found };
        self.add_with(verb, resource, attributes, word.range.clone());
    }

    /// Adds an effect on what a word names.
    pub(crate) fn resource(
        &mut self,
        verb: Verb,
        kind: ResourceKind,
        word: &Word,
        attributes: &[&'static str],
    ) {
        self.add_with(verb, Resource::new(kind, word.shape.clone()), attributes, word.range.clone());
    }

    /// Runs a simple command that is in the words of another: `sudo X…`, `xargs X…`, `find -exec X… ;`.
    pub(crate) fn run(&mut self, args: &[Word], range: Range<usize>) {
        let input = self.input.clone();
        let Some((first, rest)) = args.split_first() else { return };
        if first.literal().is_none() {
            return self.unknown("shell", "which program runs is not known", first.range.clone());
        }
        // Functions and aliases are the shell's own.
        self.deeper(&range.clone(), |shell| {
            if shell.step(&range) {
                shell.program_words(first, rest, range, input);
            }
        });
    }

    /// Runs text that is a script for another shell: `bash -c WORD`.
    pub(crate) fn script(&mut self, word: &Word) {
        self.script_with(word, None);
    }

    /// The same with positional parameters.
    pub(super) fn script_with(&mut self, word: &Word, positional: Option<Rc<Vec<Value>>>) {
        match word.value.as_ref().filter(|_| !word.glob) {
            Some(text) => {
                let before = self.state.clone();
                // The other shell has only what was exported, and nobody said what was.
                self.state.forget_locals();
                self.state.positional = positional;
                let traps = std::mem::take(&mut self.traps);
                self.text(text, &word.range);
                self.end();
                self.traps = traps;
                self.state = before;
            }
            None => self.unknown("shell", "the text of a script is not known", word.range.clone()),
        }
    }

    /// Walks a text within the text, in the state that is; none is left that says what it prints.
    pub(super) fn text(&mut self, text: &str, range: &Range<usize>) {
        let unit = match Unit::parse(text) {
            Ok(unit) => Rc::new(unit),
            Err(why) => return self.unknown("shell", &why, range.clone()),
        };
        self.nested(range, |shell| shell.program(&unit));
    }

    /// Walks something whose places are not those of the text that is being read.
    pub(super) fn nested(&mut self, range: &Range<usize>, walk: impl FnOnce(&mut Interpreter<'_, '_>)) {
        let depth = self.depth;
        if depth >= WALK_DEPTH_MAX {
            return self.unknown("shell", "commands are nested too deeply", range.clone());
        }
        let (surroundings, privileged, remote) = (self.surroundings, self.privileged, self.remote);
        let Some(sink) = self.sink.nested(range.clone()) else { return };
        let mut shell = Interpreter {
            surroundings,
            sink,
            state: self.state.clone(),
            input: self.input.clone(),
            output: None,
            escapes: None,
            locals: Vec::new(),
            traps: Vec::new(),
            steps: Rc::clone(&self.steps),
            depth: depth + 1,
            privileged,
            remote,
            compares: false,
            by_path: false,
        };
        walk(&mut shell);
        let Interpreter { state, output, locals, traps, .. } = shell;
        self.locals.extend(locals);
        self.traps.extend(traps.into_iter().map(|trap| Trap { range: range.clone(), ..trap }));
        self.state = state;
        self.output = output;
    }

    /// Goes one level further in; that there is none is noted.
    pub(super) fn deeper(&mut self, range: &Range<usize>, walk: impl FnOnce(&mut Self)) {
        if self.depth >= WALK_DEPTH_MAX {
            return self.unknown("shell", "commands are nested too deeply", range.clone());
        }
        self.depth += 1;
        walk(self);
        self.depth -= 1;
    }

    /// Takes a step; false when none are left, which is noted.
    pub(super) fn step(&mut self, range: &Range<usize>) -> bool {
        let left = self.steps.get();
        if left == 0 {
            self.unknown("shell", &format!("it runs more than {STEPS_MAX} commands"), range.clone());
            return false;
        }
        self.steps.set(left - 1);
        !self.sink.is_full()
    }

    /// Walks a command substitution; gives what it prints where that is known.
    pub(super) fn substitute(&mut self, script: &str, range: &Range<usize>) -> Option<Printed> {
        let unit = match Unit::parse(script) {
            Ok(unit) => Rc::new(unit),
            Err(why) => {
                self.unknown("shell", &why, range.clone());
                return None;
            }
        };
        let (before, output) = (self.state.clone(), self.output.take());
        self.nested(range, |shell| {
            shell.program(&unit);
            let output = shell.output.take();
            shell.end();
            shell.output = output;
        });
        self.state = before;
        let printed = std::mem::replace(&mut self.output, output);
        if unit.is_one_command() { printed } else { None }
    }

    /// Runs text in another language: `python -c WORD`.
    pub(crate) fn code(&mut self, language: &str, word: &Word) {
        match (language, &word.value) {
            ("python", Some(text)) => {
                let directory = self.state.directory().map(ToOwned::to_owned);
                let surroundings = Surroundings { directory: directory.as_deref(), ..self.surroundings };
                let (privileged, remote) = (self.privileged, self.remote);
                if let Some(sink) = self.sink.nested(word.range.clone()) {
                    crate::code::read(text, &surroundings, &mut sink.privileged(privileged).remote(remote));
                }
            }
            (_, Some(_)) => self.unknown(language, "code in this language is not read", word.range.clone()),
            (_, None) => self.unknown(language, "the text of the code is not known", word.range.clone()),
        }
    }

    /// Runs SQL.
    pub(crate) fn sql(&mut self, word: &Word) {
        let Some(text) = &word.value else {
            return self.unknown("sql", "the text of the statement is not known", word.range.clone());
        };
        let surroundings = self.surroundings;
        let (privileged, remote) = (self.privileged, self.remote);
        if let Some(sink) = self.sink.nested(word.range.clone()) {
            crate::sql::read(text, &surroundings, &mut sink.privileged(privileged).remote(remote));
        }
    }

    /// What happens inside happens on another machine, or in another root: paths here say nothing about it.
    pub(crate) fn remote(&mut self, inside: impl FnOnce(&mut Self)) {
        let before = (self.remote, self.state.clone(), self.surroundings);
        self.remote = true;
        self.state.forget_locals();
        self.state.lose_directories();
        self.surroundings = Surroundings { workspace: None, home: None, directory: None, ..before.2 };
        inside(self);
        (self.remote, self.state, self.surroundings) = before;
    }

    /// What happens inside happens as another user.
    pub(crate) fn privileged(&mut self, inside: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.privileged, true);
        inside(self);
        self.privileged = before;
    }

    /// Changes the working directory; it is not known afterwards if the word is not.
    pub(crate) fn set_directory(&mut self, word: &Word) {
        let directories = self.directories_at(word);
        self.state.enter(directories);
    }

    /// The folders that a word may name from here.
    pub(super) fn directories_at(&self, word: &Word) -> Vec<Option<String>> {
        let follows = !self.state.assigns("CDPATH");
        let target = word.place().filter(|target| follows || target.starts_with(['/', '.']));
        let mut directories: Vec<Option<String>> = Vec::new();
        for directory in &self.state.directories {
            let next = match (target, directory) {
                (Some(target), _) if target.starts_with('/') => Some(normalised(target)),
                (Some(target), Some(directory)) => Some(normalised(&format!("{directory}/{target}"))),
                _ => None,
            };
            if !directories.contains(&next) {
                directories.push(next);
            }
        }
        directories
    }

    /// The value of a variable becomes that of a word.
    pub(super) fn assign(&mut self, name: &str, word: &Word) {
        let value = match &word.value {
            Some(value) => Value::Text(value.clone()),
            None if word.shape == "*" && word.gaps == Gaps::Any => Value::Unknown,
            None => Value::Shape(word.shape.clone(), word.gaps),
        };
        self.influence(name, &value, &word.range);
        self.state.assign(name, value);
    }
}

/// An absolute path without `.`, `..` and doubled slashes.
fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
