//! Programs that code starts.

use portcullis_core::effect::{Resource, ResourceKind, Verb};

use super::interpreter::{Arguments, Interpreter};
use super::text::{Part, Text};
use super::value::{Atom, Value};

/// What stands for an unknown part in a command line: a variable that is not set.
const UNKNOWN_PART: &str = "$PORTCULLIS_UNKNOWN_PART";

/// Functions whose first argument is a command line for the shell.
const SHELL: &[&str] = &[
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
    "asyncio.create_subprocess_shell",
    "pty.spawn",
];
/// Functions whose first argument is a program with its arguments, or a command line.
const RUN: &[&str] = &[
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.Popen",
];
/// Functions whose arguments are the program and what follows it.
const SPREAD: &[&str] =
    &["asyncio.create_subprocess_exec", "os.execl", "os.execlp", "os.execle", "os.execlpe"];
/// Functions whose first argument is a program and whose second is the list of its words.
const LISTED: &[&str] =
    &["os.execv", "os.execvp", "os.execve", "os.execvpe", "os.posix_spawn", "os.posix_spawnp"];

impl Interpreter<'_, '_> {
    /// Functions that start programs, or change what those that follow see.
    pub(super) fn process_function(&mut self, name: &str, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        if SHELL.contains(&name) {
            for text in self.strings(arguments.positional.first().or(arguments.rest.as_ref()), &range) {
                self.shell(&text, "");
            }
        } else if RUN.contains(&name) {
            self.run(arguments);
        } else if SPREAD.contains(&name) {
            // `os.execl(path, name, …)`: the second is what the program is told to be called.
            let skip = usize::from(name.starts_with("os."));
            let words: Vec<Value> = arguments
                .positional
                .iter()
                .enumerate()
                .filter(|(at, _)| *at == 0 || *at > skip)
                .map(|(_, word)| word.clone())
                .collect();
            self.words(&words, arguments.rest.as_ref(), "", &range);
        } else if LISTED.contains(&name) {
            let mut words = arguments.positional.first().cloned().into_iter().collect::<Vec<_>>();
            match arguments.positional.get(1).and_then(|list| self.exact_items(list)) {
                Some(list) => words.extend(list.into_iter().skip(1)),
                None => words.push(Value::unknown()),
            }
            self.words(&words, None, "", &range);
        } else {
            return self.surroundings_function(name, arguments);
        }
        // Programs inherit the environment anyway.
        let named = arguments.named.iter().filter(|(name, _)| name != "env").map(|(_, value)| value);
        let leaving = arguments.positional.iter().chain(named).chain(&arguments.rest);
        for value in leaving.cloned().collect::<Vec<_>>() {
            self.escape(&value, range.clone());
        }
        Some(Value::data())
    }

    fn surroundings_function(&mut self, name: &str, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        let unknown = Value::unknown();
        let first = arguments.positional.first().or(arguments.rest.as_ref()).unwrap_or(&unknown).clone();
        match name {
            "os.getenv" | "os.environ.get" | "os.environ.pop" => self.environment(Verb::Read, &first, &range),
            "os.environ.copy" | "os.environ.items" | "os.environ.values" | "os.environ.keys" => {
                self.environment(Verb::Read, &unknown, &range);
            }
            "os.putenv" | "os.unsetenv" | "os.environ.setdefault" => {
                self.environment(Verb::Configure, &first, &range)
            }
            "os.environ.update" | "os.environ.clear" => self.environment(Verb::Configure, &unknown, &range),
            "os.kill" | "os.killpg" => {
                let process =
                    self.strings(Some(&first), &range).first().map_or("*".to_owned(), |text| text.shape());
                self.effect(Verb::Configure, Resource::new(ResourceKind::Process, process), range);
            }
            "os.chdir" => {
                self.directory = match self.strings(Some(&first), &range).as_slice() {
                    [text] => text.known().and_then(|folder| self.below(folder)),
                    _ => None,
                };
            }
            _ => return None,
        }
        Some(Value::data())
    }

    /// A folder as seen from the working directory.
    fn below(&self, folder: &str) -> Option<String> {
        let surroundings = crate::Surroundings { directory: self.directory.as_deref(), ..*self.surroundings };
        let folder = crate::path::resource(folder, &surroundings);
        folder.is("resolved").then_some(folder.name)
    }

    fn run(&mut self, arguments: &Arguments) {
        let range = arguments.range.clone();
        let Some(command) = arguments.get(0, "args").cloned() else { return };
        let mut before = String::new();
        if let Some(folder) = arguments.named("cwd").filter(|folder| **folder != Value::data()).cloned() {
            for text in self.strings(Some(&folder), &range) {
                before = format!("cd {} && ", quoted(&text));
            }
        }
        let input = ["input", "stdin"].iter().find_map(|name| arguments.named(name));
        let input = input.filter(|input| input.any(|atom| matches!(atom, Atom::Text(_)))).cloned();
        let after = match input {
            Some(input) => {
                self.strings(Some(&input), &range).first().map(|text| format!(" <<< {}", quoted(text)))
            }
            None => None,
        };
        let after = after.unwrap_or_default();
        if let Some(program) = arguments.get(2, "executable").filter(|it| **it != Value::nothing()).cloned() {
            // What runs is this; the first word is only what it is told to be called.
            let words = self.exact_items(&command).unwrap_or_else(|| vec![Value::unknown(); 2]);
            let words: Vec<Value> = std::iter::once(program).chain(words.into_iter().skip(1)).collect();
            self.words_in(&words, None, &before, &after, &range);
        }
        for atom in command.atoms() {
            match atom {
                Atom::List(_) => {
                    let list: Value = atom.clone().into();
                    match self.exact_items(&list) {
                        Some(words) => self.words_in(&words, None, &before, &after, &range),
                        None => {
                            let any = self.elements(&list, range.clone());
                            self.words_in(&[], Some(&any), &before, &after, &range);
                        }
                    }
                }
                Atom::Text(text) => {
                    let text = text.clone();
                    self.shell_in(&text, &before, &after);
                }
                other => self.words_in(&[other.clone().into()], None, &before, &after, &range),
            }
        }
    }

    /// A command line. A part that is not known may be anything, further commands included.
    fn shell(&mut self, text: &Text, before: &str) {
        self.shell_in(text, before, "");
    }

    fn shell_in(&mut self, text: &Text, before: &str, after: &str) {
        let range = text.range();
        if text.known().is_none() {
            self.sink.unknown("shell", "a part of the command line is not known", range.clone());
        }
        let line = text.filled(|_| UNKNOWN_PART.to_owned());
        self.read_shell(&format!("{before}{line}{after}"), range);
    }

    fn words(&mut self, words: &[Value], rest: Option<&Value>, before: &str, range: &std::ops::Range<usize>) {
        self.words_in(words, rest, before, "", range);
    }

    /// A program with its words: no shell takes them apart.
    fn words_in(
        &mut self,
        words: &[Value],
        rest: Option<&Value>,
        before: &str,
        after: &str,
        range: &std::ops::Range<usize>,
    ) {
        let mut line = String::from(before);
        for word in words.iter().chain(rest) {
            let texts = self.strings(Some(word), range);
            match texts.as_slice() {
                [text] => line.push_str(&quoted(text)),
                // One of several: to be sure, any.
                _ => {
                    line.push('"');
                    line.push_str(UNKNOWN_PART);
                    line.push('"');
                }
            }
            line.push(' ');
        }
        if rest.is_some() {
            self.sink.unknown("shell", "the words of a command are not known", range.clone());
        }
        line.push_str(after);
        self.read_shell(&line, range.clone());
    }

    fn read_shell(&mut self, line: &str, range: std::ops::Range<usize>) {
        let surroundings = crate::Surroundings { directory: self.directory.as_deref(), ..*self.surroundings };
        if let Some(mut nested) = self.sink.nested(range) {
            crate::shell::read(line, &surroundings, &mut nested);
        }
    }
}

/// A word of a command line that stands for exactly this text.
fn quoted(text: &Text) -> String {
    let mut word = String::new();
    for part in text.parts() {
        match part {
            Part::Literal(literal) => {
                word.push('\'');
                word.push_str(&literal.replace('\'', r"'\''"));
                word.push('\'');
            }
            Part::Hole => {
                word.push('"');
                word.push_str(UNKNOWN_PART);
                word.push('"');
            }
        }
    }
    if word.is_empty() { "''".to_owned() } else { word }
}
