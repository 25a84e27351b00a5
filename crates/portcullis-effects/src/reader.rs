//! From an action to its effects.

use std::borrow::Cow;

use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{Effect, EffectReader, Effects, Resource, Verb};
use portcullis_core::infer::words_of;
use portcullis_core::state::RunState;
use portcullis_core::tool::Tool;
use serde_json::{Map, Value};

use crate::arguments::plan::{Held, Plan, Plans, Says, escaped};
use crate::arguments::{self, Holds, Verbs};
use crate::limits::{ARGUMENTS_BYTES_MAX, LEAVES_MAX, NESTING_MAX};
use crate::{Sink, Surroundings, activity, answers, code, mail, money, patch, path, place, shell, sql, url};

/// Reads the effects of tool calls. See the [crate documentation](crate).
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader;

impl EffectReader for Reader {
    /// A thinking step touches nothing.
    fn read(&self, bundle: &Bundle, run: &RunState, action: &Action) -> Effects {
        let Some(name) = action.tool() else { return Effects::none() };
        let surroundings = Surroundings::of(bundle, run, action);
        let registry = &bundle.registry;
        let effects = match &action.continuation {
            None => read_by_plan(bundle, name, action, &surroundings),
            Some(continuation) => {
                let mut effects = read_call(registry.get(name), name, &action.arguments, &surroundings);
                answers::read(registry.get(name), name, action, continuation, &surroundings, &mut effects);
                effects
            }
        };
        match run.place().and_then(|place| place.gate.as_deref()) {
            Some(folder) => path::own::mark(effects, folder, registry.get(name), &action.arguments),
            None => effects,
        }
    }

    fn path(&self, bundle: &Bundle, run: &RunState, path: &str) -> Resource {
        let resource = path::resource(path, &Surroundings::of_run(bundle, run));
        let Some(folder) = run.place().and_then(|place| place.gate.as_deref()) else { return resource };
        let mut written = Effects::none();
        written.push(Effect::new(Verb::Write, resource.clone()));
        let marked = path::own::mark(written, folder, None, &Value::Null);
        marked.first().map_or(resource, |effect| effect.resource.clone())
    }
}

/// The effects of a call, by the plan of its tool where there is one.
fn read_by_plan(bundle: &Bundle, name: &str, action: &Action, surroundings: &Surroundings<'_>) -> Effects {
    let registry = &bundle.registry;
    // Nearly every call is of a tool that is known and has no arguments but those that are written down.
    if let (Some(plans), Value::Object(arguments)) = (Plans::of(registry), &action.arguments)
        && let Some(plan) = plans.get(registry, name)
        && let Some(named) = named(plan, arguments)
    {
        return follow(plan, &named, arguments, surroundings);
    }
    read_call(registry.get(name), name, &action.arguments, surroundings)
}

/// The effects of a call of the tool `name`, which is `tool` where the bundle knows it.
pub fn read_call(
    tool: Option<&Tool>,
    name: &str,
    arguments: &Value,
    surroundings: &Surroundings<'_>,
) -> Effects {
    let mut effects = Effects::none();
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => return effects,
        _ => {
            let why = "the arguments are no object";
            Sink::new(&mut effects, "/arguments").unknown("arguments", why, 0..0);
            return effects;
        }
    };
    let plan = Plan::of(tool, name, arguments);
    let named = named(&plan, arguments).unwrap_or_default();
    follow(&plan, &named, arguments, surroundings)
}

/// The effects of an object at `pointer` that goes to the tool beside its arguments. `arguments` say how it is meant: the
/// working directory that they name is that of its paths too.
pub(crate) fn read_answer(
    tool: Option<&Tool>,
    name: &str,
    members: &Map<String, Value>,
    arguments: &Map<String, Value>,
    pointer: &str,
    surroundings: &Surroundings<'_>,
) -> Effects {
    let plan = Plan::of_answers(tool, name, members, arguments, pointer);
    let mut all = arguments.clone();
    all.extend(members.iter().map(|(name, value)| (name.clone(), value.clone())));
    let named = named(&plan, &all).unwrap_or_default();
    follow(&plan, &named, &all, surroundings)
}

/// An argument of a call, with what its name says.
type Named<'a> = (Says, &'a Value);

/// The arguments with what their names say, or `None` if the plan does not know all of them.
fn named<'a>(plan: &Plan, arguments: &'a Map<String, Value>) -> Option<Vec<Named<'a>>> {
    arguments.iter().map(|(name, value)| Some((plan.says(name)?, value))).collect()
}

/// Reads a call by a plan.
fn follow(
    plan: &Plan,
    named: &[Named<'_>],
    arguments: &Map<String, Value>,
    surroundings: &Surroundings<'_>,
) -> Effects {
    let directory = working_directory(named, surroundings);
    let surroundings = match &directory {
        None => *surroundings,
        Some(stated) => Surroundings { directory: stated.as_deref(), ..*surroundings },
    };
    // Only patterns ask where they start from.
    let patterns = plan.held.iter().any(|held| held.says.pattern);
    let searched = patterns.then(|| searched_folder(&plan.held, arguments, &surroundings)).flatten();
    let mut call = Call {
        arguments,
        surroundings,
        searched: searched.as_ref().map(Option::as_deref),
        recursive: plan.searches || goes_below(named) || plan.goes_below && !stays_there(named),
        searches: plan.searches || goes_below(named),
        has_body: has_body(named),
        effects: Effects::none(),
        leaves: 0,
        bytes: 0,
        full: false,
    };
    for held in &plan.held {
        let Some(value) = arguments.get(&held.argument).filter(|value| !value.is_null()) else {
            call.folder_left_out(held);
            continue;
        };
        call.value(held, value, &held.pointer, 0);
    }
    if plan.held.iter().any(|held| held.holds == Holds::Email && held.verbs.contains(&Verb::Send)) {
        call.headers(plan, named);
    }
    call.effects
}

/// The working directory that the arguments themselves name: the outer option whether they do, the inner one
/// whether it can be known.
fn working_directory(named: &[Named<'_>], surroundings: &Surroundings<'_>) -> Option<Option<String>> {
    let mut stated = named.iter().filter(|(says, value)| says.directory && !value.is_null());
    let first = stated.next()?.1.as_str().filter(|text| !text.is_empty());
    // Two could contradict each other.
    let only = first.filter(|_| stated.next().is_none());
    let resource = only.map(|text| path::resource(text, surroundings));
    Some(
        resource
            .filter(|resource| resource.is("resolved") && !resource.is("glob"))
            .map(|resource| resource.name),
    )
}

/// Where patterns of paths start from, if another argument says it: the outer option whether it does, the inner one
/// whether it can be known.
fn searched_folder(
    held: &[Held],
    arguments: &Map<String, Value>,
    surroundings: &Surroundings<'_>,
) -> Option<Option<String>> {
    let folders = held.iter().filter(|held| held.holds == Holds::Path && held.says.folder);
    let stated = folders.map(|held| &held.argument).find_map(|name| arguments.get(name))?;
    if stated.is_null() {
        return None;
    }
    let folder = stated.as_str().map(|text| path::resource(text, surroundings));
    let known = folder.filter(|folder| folder.is("resolved") && !folder.is("glob"));
    Some(known.map(|folder| folder.name))
}

/// Whether an argument says that what is below the folders is taken too.
fn goes_below(named: &[Named<'_>]) -> bool {
    named.iter().any(|(says, value)| says.recursive && !matches!(value, Value::Null | Value::Bool(false)))
}

/// Whether an argument says that what is below the folders is left out.
fn stays_there(named: &[Named<'_>]) -> bool {
    named.iter().any(|(says, value)| says.recursive && **value == Value::Bool(false))
}

/// Whether a request carries something, or is made with a method that does.
fn has_body(named: &[Named<'_>]) -> bool {
    named.iter().any(|(says, value)| {
        let filled = || match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => true,
        };
        let sends = || {
            value.as_str().is_none_or(|method| {
                !["get", "head", "options"].iter().any(|safe| method.trim().eq_ignore_ascii_case(safe))
            })
        };
        says.method && sends() || says.body && filled()
    })
}

/// One call while it is read.
struct Call<'a> {
    arguments: &'a Map<String, Value>,
    surroundings: Surroundings<'a>,
    /// Where patterns of paths start from, where that is not the working directory.
    searched: Option<Option<&'a str>>,
    /// Whether paths stand for what is below them too.
    recursive: bool,
    /// Whether a folder that is left out is the working directory.
    searches: bool,
    has_body: bool,
    effects: Effects,
    leaves: usize,
    bytes: usize,
    full: bool,
}

impl Call<'_> {
    fn unknown(&mut self, what: &str, why: String, pointer: &str, length: usize) {
        Sink::new(&mut self.effects, pointer).unknown(what, why, 0..length);
    }

    /// Whether another value of that many bytes may be read. Says so once if not.
    fn take(&mut self, bytes: usize, pointer: &str) -> bool {
        self.leaves += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let over = self.leaves > LEAVES_MAX || self.bytes > ARGUMENTS_BYTES_MAX;
        if over && !self.full {
            self.full = true;
            let why = format!("more than {LEAVES_MAX} values or {ARGUMENTS_BYTES_MAX} bytes");
            self.unknown("arguments", why, pointer, 0);
        }
        !over && !self.effects.is_full()
    }

    fn value(&mut self, leaf: &Held, value: &Value, pointer: &str, depth: usize) {
        if depth > NESTING_MAX {
            let why = format!("values are nested deeper than {NESTING_MAX} levels");
            return self.unknown("arguments", why, pointer, 0);
        }
        match (leaf.holds, value) {
            (_, Value::Null) => {}
            (Holds::Money, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(leaf, item, &format!("{pointer}/{at}"), depth + 1);
                }
            }
            (Holds::Money, _) => {
                if self.take(value.as_str().map_or(0, str::len), pointer) {
                    money::read(value, self.arguments, &mut Sink::new(&mut self.effects, pointer));
                }
            }
            (_, Value::String(text)) => {
                if self.take(text.len(), pointer) {
                    self.text(leaf, text, pointer);
                }
            }
            (Holds::Shell, Value::Array(words)) if is_word_list(&leaf.argument, words) => {
                let line = quoted(words.iter().filter_map(Value::as_str));
                if self.take(line.len(), pointer) {
                    self.joined_line(&line, pointer, 0);
                }
            }
            (_, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    if self.full {
                        return;
                    }
                    self.value(leaf, item, &format!("{pointer}/{at}"), depth + 1);
                }
            }
            (holds, Value::Object(object)) => {
                // `{"path": …, "content": …}`: the content is not a path.
                let some_fit = object.keys().any(|name| arguments::fits(holds, name));
                for (name, member) in object {
                    if self.full {
                        return;
                    }
                    if !some_fit || arguments::fits(holds, name) {
                        self.value(leaf, member, &format!("{pointer}/{}", escaped(name)), depth + 1);
                    }
                }
            }
            (holds, Value::Bool(_) | Value::Number(_)) => {
                if self.take(0, pointer) {
                    self.unknown(holds.as_str(), "a text was expected".to_owned(), pointer, 0);
                }
            }
        }
    }

    fn text(&mut self, leaf: &Held, text: &str, pointer: &str) {
        let surroundings = self.surroundings;
        let verbs = self.verbs(leaf);
        if leaf.holds == Holds::Shell
            && let Some(rest) = self.further_words()
        {
            return self.joined_line(&format!("{text} {rest}"), pointer, text.len());
        }
        let mut sink = Sink::new(&mut self.effects, pointer);
        match leaf.holds {
            Holds::Sql => sql::read(text, &surroundings, &mut sink),
            Holds::Shell => shell::read(text, &surroundings, &mut sink),
            Holds::Code => code::read(text, &surroundings, &mut sink),
            Holds::Task => activity::read(text, &surroundings, &mut sink),
            Holds::Patch => patch::read(text, &surroundings, &mut sink),
            Holds::Path => {
                let below = self.recursive;
                let surroundings = match self.searched.filter(|_| leaf.says.pattern) {
                    Some(directory) => Surroundings { directory, ..surroundings },
                    None => surroundings,
                };
                // A filter of what to leave out names nothing that is touched.
                if !(leaf.says.pattern && text.starts_with('!')) {
                    verbs.iter().for_each(|&verb| read_path(verb, text, below, &surroundings, &mut sink));
                }
            }
            Holds::Url => verbs.iter().for_each(|&verb| url::read_as(verb, text, &surroundings, &mut sink)),
            Holds::Email => {
                verbs.iter().for_each(|&verb| mail::read_as(verb, text, &surroundings, &mut sink))
            }
            Holds::Money => {}
        }
    }

    /// Fields of a message's header beside its recipients.
    fn headers(&mut self, plan: &Plan, named: &[Named<'_>]) {
        let is_field = |name: &str| plan.says(name).is_some_and(|says| says.header);
        if !named.iter().any(|(says, _)| says.header) {
            return;
        }
        for (name, value) in self.arguments.iter().filter(|(name, _)| is_field(name)) {
            self.header(value, &format!("{}/{}", plan.pointer, escaped(name)), 0);
        }
    }

    fn header(&mut self, value: &Value, pointer: &str, depth: usize) {
        match value {
            Value::String(text) if self.take(text.len(), pointer) => {
                mail::read_header(text, &mut Sink::new(&mut self.effects, pointer));
            }
            Value::Array(items) if depth <= NESTING_MAX => {
                for (at, item) in items.iter().enumerate() {
                    self.header(item, &format!("{pointer}/{at}"), depth + 1);
                }
            }
            Value::Object(members) if depth <= NESTING_MAX => {
                for (name, member) in members {
                    self.header(member, &format!("{pointer}/{}", escaped(name)), depth + 1);
                }
            }
            _ => {}
        }
    }

    /// A search that is told no folder takes the working directory.
    fn folder_left_out(&mut self, held: &Held) {
        if self.searches && held.holds == Holds::Path && held.says.folder {
            let surroundings = self.surroundings;
            let mut sink = Sink::new(&mut self.effects, "/arguments");
            sink.add(
                Effect::new(Verb::Read, path::resource(".", &surroundings)).with("recursive", true),
                0..0,
            );
        }
    }

    fn verbs(&self, leaf: &Held) -> Verbs {
        let mut verbs = leaf.verbs.clone();
        if leaf.holds == Holds::Url && self.has_body && !verbs.contains(&Verb::Send) {
            verbs.push(Verb::Send);
        }
        verbs
    }

    /// `{"command": "rm", "args": ["-r", "x"]}`: the words that belong to the command.
    fn further_words(&self) -> Option<String> {
        let names = ["args", "argv", "arguments", "parameters"];
        let (_, value) =
            self.arguments.iter().find(|(name, _)| names.contains(&name.to_lowercase().as_str()))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(words)
                if !words.is_empty() && words.iter().all(|word| !word.is_object() && !word.is_array()) =>
            {
                let words: Vec<Cow<'_, str>> = words
                    .iter()
                    .map(|word| word.as_str().map_or_else(|| Cow::Owned(word.to_string()), Cow::Borrowed))
                    .collect();
                Some(quoted(words.iter().map(AsRef::as_ref)))
            }
            _ => None,
        }
    }

    /// Reads a command line that is in no single text.
    fn joined_line(&mut self, line: &str, pointer: &str, length: usize) {
        let surroundings = self.surroundings;
        let mut sink = Sink::new(&mut self.effects, pointer);
        if let Some(mut sink) = sink.nested(0..length) {
            shell::read(line, &surroundings, &mut sink);
        }
    }
}

/// Reads a path, with what is below it where `below` or the path itself (`**`) says so.
fn read_path(verb: Verb, text: &str, below: bool, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    if (below || text.contains("**")) && !text.contains("://") {
        let effect = Effect::new(verb, path::resource(text, surroundings)).with("recursive", true);
        sink.add(effect, 0..text.len());
        path::note_length(text, surroundings, 0..text.len(), sink);
    } else {
        place::read_as(verb, text, surroundings, sink);
    }
}

/// Whether a list of texts is one command in words rather than several commands.
fn is_word_list(argument: &str, items: &[Value]) -> bool {
    let several = words_of(argument)
        .pop()
        .is_some_and(|last| matches!(last.as_str(), "commands" | "cmds" | "scripts" | "lines"));
    let first_is_a_word =
        items.first().and_then(Value::as_str).is_some_and(|first| !first.contains(char::is_whitespace));
    !several && first_is_a_word && items.iter().all(Value::is_string)
}

/// Words as a command line that a shell takes apart into the same words.
fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}
