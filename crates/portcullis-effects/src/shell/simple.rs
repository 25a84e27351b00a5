//! Simple commands: assignments, redirections, a program and its words.

use std::ops::Range;
use std::rc::Rc;

use brush_parser::ast;
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::environment::{self, Influence};
use super::interpreter::{Call, Input, Interpreter, Names, Printed};
use super::state::{Meaning, Value};
use super::unit::Unit;
use super::walk::Failure;
use super::word::{Gaps, Word};
use super::{assignment, builtins, commands, runners, wrappers};

/// Folders whose programs are those that their names say.
const PROGRAM_FOLDERS: [&str; 9] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/snap/bin",
];

/// Commands of the shell that keep the assignments before them in some shells.
const SPECIAL: [&str; 15] = [
    ":", ".", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift",
    "source", "trap", "unset",
];

impl Interpreter<'_, '_> {
    pub(super) fn simple(&mut self, unit: &Rc<Unit>, simple: &ast::SimpleCommand, input: Input) -> Failure {
        self.output = None;
        let mut parts = Parts { input, words: Vec::new(), assigned: Vec::new(), range: 0..0 };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(unit, item, true, &mut parts);
        }
        if let Some((raw, range)) = simple.word_or_name.as_ref().and_then(|word| unit.raw(word.loc.as_ref()))
        {
            parts.at(&range);
            parts.words.extend(self.expand(raw, &range));
        }
        self.compares =
            matches!(parts.words.as_slice(), [one] if matches!(one.literal(), Some("[" | "test")));
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(unit, item, false, &mut parts);
        }
        self.compares = false;
        let Parts { input, words, assigned, range } = parts;
        if words.is_empty() {
            for (name, value) in assigned {
                self.influence(&name, &value, &range);
                self.state.assign(&name, value);
            }
            return None;
        }
        if assigned.is_empty() {
            return self.command_words(&words, range, input);
        }
        // Assignments before a command hold while it runs.
        let before: Vec<_> =
            assigned.iter().map(|(name, _)| (name.clone(), self.state.variable(name))).collect();
        let (tampered, splits) = (self.state.tampered, self.state.splits_elsewhere);
        // Of the shell's own commands some keep what stands before them.
        let keeps = words.first().and_then(Word::literal).is_none_or(|name| SPECIAL.contains(&name));
        let searches = self.state.assigns("PATH");
        for (name, value) in assigned {
            self.exported(&name, &value, &range);
            self.state.assign(&name, value);
        }
        let failure = self.command_words(&words, range, input);
        for (name, value) in before {
            self.state.assign(&name, value);
            if name == "PATH" && !searches && !keeps {
                self.state.unassign(&name);
            }
        }
        (self.state.tampered, self.state.splits_elsewhere) = (tampered, splits);
        failure
    }

    /// The same for a variable that programs certainly get: the effect of an unknown one is presumed.
    pub(super) fn exported(&mut self, name: &str, value: &Value, range: &Range<usize>) {
        let text = if let Value::Text(text) = value { Some(text.as_str()) } else { None };
        if environment::influence(name, text) == Influence::None
            && !environment::has_influence(name)
            && !environment::is_harmless(name)
        {
            self.sink.presume();
        }
        self.influence(name, value, range);
    }

    /// What giving a variable a value does to programs that run later.
    pub(super) fn influence(&mut self, name: &str, value: &Value, range: &Range<usize>) {
        let word = match value {
            Value::Text(text) => Word::known(text.clone(), range.clone()),
            Value::Shape(shape, gaps) => {
                Word { shape: shape.clone(), gaps: *gaps, ..Word::unknown(range.clone()) }
            }
            _ => Word::unknown(range.clone()),
        };
        match environment::influence(name, word.value.as_deref()) {
            Influence::None => {}
            Influence::Programs if name == "PATH" => self.search(&word),
            Influence::Programs => self.state.tampered = true,
            Influence::Splitting => self.state.splits_elsewhere = true,
            Influence::Command => self.script(&word),
            Influence::Places(verbs) => self.places(verbs, &word),
            Influence::Contacts(verb) => self.contacts(verb, &word),
            Influence::Unclear => self.unknown("shell", "a variable holds text that runs", range.clone()),
        }
    }

    /// Programs are looked for in other folders. One of the project, or of the user's own, whose name is known is
    /// told: a program is then one of that folder, or the one that its name says. With any other folder names say
    /// nothing any more.
    fn search(&mut self, word: &Word) {
        let kept = word.value.is_none() && word.gaps == Gaps::Search;
        if !kept && word.value.is_none() {
            self.state.tampered = true;
            return;
        }
        for part in word.shape.split(':') {
            if kept && part == "*" || PROGRAM_FOLDERS.contains(&part) {
                continue;
            }
            let folder = Word::known(part, word.range.clone());
            if part.starts_with(['/', '~']) && self.is_own_folder(&folder) {
                self.path(Verb::Execute, &folder);
            } else {
                self.state.tampered = true;
            }
        }
    }

    /// Whether a folder is in the project or the user's home, and is none for temporary files or secrets.
    fn is_own_folder(&self, folder: &Word) -> bool {
        let surroundings = self.surroundings();
        let place = crate::path::resource(&folder.path(), &surroundings);
        let below_home = surroundings
            .home
            .and_then(|home| place.name.strip_prefix(home.trim_end_matches('/')))
            .is_some_and(|below| below.starts_with('/'));
        let doubtful = ["glob", "secret", "control", "temporary", "device"].iter().any(|name| place.is(name));
        place.is("resolved") && !doubtful && (place.is("inside") || below_home)
    }

    /// Effects on places that a variable names, separated by colons.
    fn places(&mut self, verbs: &[Verb], word: &Word) {
        let parts: Vec<&str> = word.shape.split(':').collect();
        for part in &parts {
            // What the variable held before, or nothing.
            if part.is_empty() || *part == "*" && parts.len() > 1 {
                continue;
            }
            let known = word.value.is_some() || !part.contains('*');
            let place = Word {
                value: known.then(|| (*part).to_owned()),
                shape: (*part).to_owned(),
                glob: false,
                gaps: word.gaps,
                expanded: false,
                range: word.range.clone(),
            };
            for verb in verbs {
                self.path(*verb, &place);
            }
        }
    }

    /// Effects on machines that a variable names, separated by commas.
    fn contacts(&mut self, verb: Verb, word: &Word) {
        for part in word.shape.split([',', '|']).map(str::trim) {
            if part.is_empty() || matches!(part, "direct" | "off" | "none") {
                continue;
            }
            let known = word.value.is_some() || !part.contains('*');
            let place = Word {
                value: known.then(|| part.to_owned()),
                shape: part.to_owned(),
                glob: false,
                gaps: Gaps::Any,
                expanded: false,
                range: word.range.clone(),
            };
            // A folder is where the socket of a server on this machine lies.
            match part.starts_with('/') {
                true => self.path(Verb::Write, &place),
                false => self.url(verb, &place, &[]),
            }
        }
    }

    /// A variable gets a value that is not followed, by something other than an assignment.
    pub(super) fn assign_unread(&mut self, name: &str, range: &Range<usize>) {
        self.influence(name, &Value::Unknown, range);
        self.state.assign(name, Value::Unknown);
    }

    fn item(
        &mut self,
        unit: &Rc<Unit>,
        item: &ast::CommandPrefixOrSuffixItem,
        prefix: bool,
        parts: &mut Parts,
    ) {
        use ast::CommandPrefixOrSuffixItem as Item;
        match item {
            Item::IoRedirect(redirect) => {
                let around = parts.range.clone();
                self.redirect(unit, redirect, &mut parts.input, &around);
            }
            Item::Word(word) => {
                if let Some((raw, range)) = unit.raw(word.loc.as_ref()) {
                    parts.at(&range);
                    parts.words.extend(self.expand(raw, &range));
                }
            }
            Item::AssignmentWord(found, word) => self.assignment(unit, found, word, prefix, parts),
            Item::ProcessSubstitution(..) => {
                self.unknown("shell", "a process substitution cannot be read", parts.range.clone());
            }
        }
    }

    fn assignment(
        &mut self,
        unit: &Rc<Unit>,
        found: &ast::Assignment,
        word: &ast::Word,
        prefix: bool,
        parts: &mut Parts,
    ) {
        let range = unit.range(&found.loc);
        parts.at(&range);
        let Some((raw, place)) = unit.raw(word.loc.as_ref()) else { return };
        let Some(split) = assignment::split(raw) else { return };
        let value = if matches!(found.value, ast::AssignmentValue::Array(_)) {
            let mut values = Some(Vec::new());
            for (raw, range) in unit.elements(&found.loc) {
                for word in self.expand(raw, &range) {
                    // `[3]=x` and globs: which element is which is not followed.
                    match word.literal().filter(|text| !text.starts_with('[')) {
                        Some(text) => {
                            if let Some(values) = &mut values {
                                values.push(text.to_owned());
                            }
                        }
                        None => values = None,
                    }
                }
            }
            values.filter(|_| !split.append).map_or(Value::Unknown, Value::List)
        } else if prefix {
            let word = self.assigned_value(split.value, &place);
            let known = match word.value {
                Some(text) => Value::Text(text),
                None if word.shape == "*" => Value::Unknown,
                None => Value::Shape(word.shape, word.gaps),
            };
            match (split.append, self.state.variable(split.name), known) {
                (false, _, value) => value,
                (true, Value::Text(before), Value::Text(after)) => Value::Text(before + &after),
                (true, ..) => Value::Unknown,
            }
        } else {
            // An argument that looks like an assignment.
            parts.words.extend(self.expand(raw, &place));
            return;
        };
        if let Some(index) = split.index {
            self.arithmetic(index, &place);
        }
        self.evaluated_on_assignment(&value, &place);
        let value = if split.index.is_some() { Value::Unknown } else { value };
        if prefix {
            parts.assigned.push((split.name.to_owned(), value));
        } else {
            // `declare x=(…)`: the builtin sees the name, the value is kept here.
            self.influence(split.name, &value, &place);
            self.state.assign(split.name, value);
            parts.words.push(Word::known(split.name, place));
        }
    }

    /// The value of an assignment: not split, tildes expanded.
    fn assigned_value(&mut self, raw: &str, range: &Range<usize>) -> Word {
        self.expand_one(raw, range)
    }

    /// Runs a program with its words, the first of which names it.
    pub(super) fn command_words(&mut self, words: &[Word], range: Range<usize>, input: Input) -> Failure {
        let (first, args) = words.split_first()?;
        if !self.step(&range) {
            return None;
        }
        let Some(name) = first.literal() else {
            self.unknown("shell", "which program runs is not known", first.range.clone());
            return None;
        };
        match self.state.meaning(name).cloned() {
            Some(Meaning::Function(function)) => {
                self.function(&function, args, &range, input);
                return None;
            }
            // Shells that run scripts leave aliases alone, others do not: both are read.
            Some(Meaning::Alias(text)) => self.alias(name, &text, args, &range),
            Some(Meaning::Unclear) => {
                self.unknown("shell", "the name of a program has another meaning here", first.range.clone());
            }
            None => {}
        }
        self.program_words(first, args, range, input)
    }

    /// Runs what an alias stands for, with the words that follow it.
    fn alias(&mut self, name: &str, text: &str, args: &[Word], range: &Range<usize>) {
        let mut script = text.to_owned();
        for arg in args {
            let Some(text) = arg.literal() else {
                return self.unknown("shell", "a word that an alias gets is not known", arg.range.clone());
            };
            script.push_str(&format!(" '{}'", text.replace('\'', "'\\''")));
        }
        let before = self.state.clone();
        // Within its own text an alias means the program.
        self.state.define(name, None);
        self.deeper(range, |shell| shell.text(&script, range));
        let meaning = before.meaning(name).cloned();
        self.state = self.state.clone().join(before);
        self.state.define(name, meaning);
    }

    /// The same, functions and aliases left aside.
    pub(super) fn program_words(
        &mut self,
        first: &Word,
        args: &[Word],
        range: Range<usize>,
        input: Input,
    ) -> Failure {
        let name = first.literal().unwrap_or_default();
        let program = match name.rsplit_once('/') {
            Some((folder, program)) if PROGRAM_FOLDERS.contains(&folder) => program,
            Some((_, program)) => {
                self.path(Verb::Execute, first);
                self.note_tampering(&range);
                self.by_path = true;
                self.mention(program, false, None, first.range.clone());
                self.by_path = false;
                return None;
            }
            None => name,
        };
        if program.is_empty() {
            // An empty name runs nothing.
            return None;
        }
        let program = program.to_owned();
        let call = Call { program: &program, args, range: range.clone(), stdin: input.as_stdin() };
        let outside = (std::mem::replace(&mut self.input, input.clone()), std::mem::take(&mut self.by_path));
        let (known, failure) = self.dispatch(&call, &input);
        self.input = outside.0;
        let known = known && !self.state.tampered;
        let subcommand = commands::subcommand(&program, args).map(ToOwned::to_owned);
        self.mention(&program, known, subcommand, range);
        self.by_path = outside.1;
        failure
    }

    fn dispatch(&mut self, call: &Call<'_>, input: &Input) -> (bool, Failure) {
        if let Some(done) = builtins::run(self, call, input) {
            return done;
        }
        self.note_tampering(&call.range);
        if let Some(known) = wrappers::run(self, call).or_else(|| runners::run(self, call)) {
            return (known, None);
        }
        match (call.program, call.args, input) {
            ("cat", [], Input::Text(text)) => self.output = Some(Printed::Text(text.to_string())),
            // Whatever they leave out, what they print are some of these names.
            (
                "cat" | "tac" | "grep" | "egrep" | "fgrep" | "head" | "tail" | "sort" | "uniq" | "shuf",
                _,
                Input::Names(names),
            ) => {
                let names = Names { words: names.words.clone(), zero: false };
                self.output = Some(Printed::Names(names.into()));
            }
            _ => {}
        }
        (commands::effects(call, self), None)
    }

    /// What a changed `PATH` or a preloaded library makes of a program is no matter of the program's name.
    fn note_tampering(&mut self, range: &Range<usize>) {
        if self.state.tampered {
            self.unknown("shell", "what names of programs mean was changed before", range.clone());
        }
    }

    /// Adds that a program runs.
    fn mention(&mut self, program: &str, known: bool, subcommand: Option<String>, range: Range<usize>) {
        let mut resource = Resource::new(ResourceKind::Command, program).with("known", known);
        if self.by_path {
            resource = resource.with("by_path", true);
        }
        if let Some(subcommand) = subcommand {
            resource = resource.with("subcommand", subcommand);
        }
        self.add(Effect::new(Verb::Execute, resource), range);
    }
}

/// A simple command as far as it is read.
struct Parts {
    input: Input,
    words: Vec<Word>,
    assigned: Vec<(String, Value)>,
    range: Range<usize>,
}

impl Parts {
    fn at(&mut self, range: &Range<usize>) {
        if self.range.end == 0 {
            self.range = range.clone();
        } else {
            self.range.end = self.range.end.max(range.end);
        }
    }
}
