//! What the functions of modules do: files, hosts, mail, databases.

mod names;

mod network;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource, Verb};
use smallvec::smallvec;

use super::expression::add_item;
use super::interpreter::{Arguments, Interpreter};
use super::modules;
use super::sql;
use super::text::{Text, Texts};
use super::value::{Atom, Object, Partial, Value};
use crate::Surroundings;
use names::{IMPORTABLE, OPENERS, PATHS, PathArgument, QUIET};

/// Whether a library that evaluates texts finds nothing but a formula in this one.
fn is_formula(atom: &Atom) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " +-*/^().,=<>:".contains(c);
    match atom {
        Atom::Text(text) => text.known().is_some_and(|text| {
            let names = text.split(|c: char| !c.is_alphanumeric() && c != '.');
            // `a.b` reaches into an object; `0.5` is a number.
            let mut dotted = names.filter(|name| name.contains('.'));
            text.chars().all(plain) && dotted.all(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        }),
        Atom::Unknown => false,
        _ => true,
    }
}

impl Interpreter<'_, '_> {
    /// A module is imported: an unknown module may do anything when it is loaded.
    pub(super) fn imported(&mut self, name: &str, range: Range<usize>) {
        let top = name.split('.').next().unwrap_or(name);
        let known = IMPORTABLE.contains(&top) || modules::is_harmless(&format!("{top}.x"));
        if !known && !self.only_declared(&range) {
            self.unknown_module(name, range);
        }
    }

    /// Whether an import takes nothing but functions of the bundle.
    fn only_declared(&self, range: &Range<usize>) -> bool {
        let text = self.source.get(range.clone()).unwrap_or_default();
        let Some((_, names)) = text.split_once(" import ") else { return false };
        let functions = &self.surroundings.settings.functions;
        let names = names.trim_matches(|edge: char| edge.is_whitespace() || "()".contains(edge));
        let mut names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.all(|name| functions.contains_key(name.split_whitespace().next().unwrap_or(name)))
    }

    fn unknown_module(&mut self, name: &str, range: Range<usize>) {
        let top = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
        self.sink.unknown(&format!("python module {top}"), format!("what `{name}` does is not known"), range);
    }

    /// Calls a function or class of a module.
    pub(super) fn call_name(&mut self, name: &str, arguments: &Arguments) -> Value {
        if let Some(name) = name.strip_prefix("builtins.") {
            return self.builtin(name, arguments);
        }
        // Short names by which these libraries are known when an earlier piece of code imported them.
        let name = &*match name.split_once('.') {
            Some(("np", rest)) => Cow::Owned(format!("numpy.{rest}")),
            Some(("pd", rest)) => Cow::Owned(format!("pandas.{rest}")),
            _ => Cow::Borrowed(name),
        };
        if OPENERS.contains(&name) {
            self.builtin("open", arguments);
            let files = name == "zipfile.ZipFile";
            return Atom::Client(if files { "files" } else { "archive" }).into();
        }
        if let Some((_, paths)) = PATHS.iter().find(|(known, _)| *known == name) {
            return self.path_function(name, paths, arguments);
        }
        if QUIET.contains(&name) {
            self.hand_over(arguments);
            return Value::data();
        }
        if let Some(value) = self.calculating(name, arguments) {
            return value;
        }
        if let Some(value) = self.process_function(name, arguments) {
            return value;
        }
        if let Some(value) = self.network_function(name, arguments) {
            return value;
        }
        if modules::is_harmless(name) {
            if name.starts_with("sympy.") && arguments.any(|atom| !is_formula(atom)) {
                self.unknown_module(name, arguments.range.clone());
            }
            return self.harmless(arguments);
        }
        self.unknown_module(name, arguments.range.clone());
        self.hand_over(arguments);
        Value::unknown()
    }

    fn path_function(&mut self, name: &str, paths: &[PathArgument], arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        for (position, keyword, verb, how) in paths {
            match arguments.get(*position, keyword).cloned() {
                Some(path) if name == "sqlite3.connect" && path.known_text() == Some(":memory:") => {}
                Some(path) => self.path_effect(*verb, &path, &range, how),
                None => {
                    let here = Value::text(Text::literal(".", range.clone()));
                    self.path_effect(*verb, &here, &range, how);
                }
            }
        }
        let unpickled = arguments.get(2, "allow_pickle").is_some_and(|value| *value != Value::nothing());
        if name == "numpy.load" && unpickled {
            self.unknown_module("pickle", range);
        }
        self.run_callbacks(arguments);
        if name == "sqlite3.connect" { Atom::Client("sql").into() } else { Value::data() }
    }

    /// The items of a list may be in another order from here on.
    pub(super) fn disorder(&mut self, value: &Value) {
        for atom in value.atoms() {
            if let Atom::List(id) = atom {
                self.change(*id, |object| add_item(object, &Value::none()));
            }
        }
    }

    /// A function that computes: nothing is touched, and what comes out is data.
    fn harmless(&mut self, arguments: &Arguments) -> Value {
        self.hand_over(arguments);
        if arguments.any(|atom| matches!(atom, Atom::Series)) { Atom::Series.into() } else { Value::data() }
    }

    /// Functions of harmless modules that give back what they are given.
    fn calculating(&mut self, name: &str, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        let first = arguments.positional.first().cloned();
        let value = match name {
            "functools.partial" => {
                let (function, given) = arguments.positional.split_first()?;
                let named = arguments.named.clone();
                let partial = Partial { function: function.clone(), positional: given.to_vec(), named };
                Atom::Partial(Rc::new(partial)).into()
            }
            "functools.wraps" | "functools.lru_cache" | "functools.cache" => Value::data(),
            "contextlib.closing" | "contextlib.aclosing" | "contextlib.nullcontext" => {
                first.unwrap_or_else(Value::nothing)
            }
            "contextlib.suppress" => Atom::Client("suppression").into(),
            "contextlib.ExitStack" | "contextlib.AsyncExitStack" => Atom::Client("exit stack").into(),
            // Parts of one command line: read as the whole line, which they are no more than.
            "shlex.split" => first?,
            "random.shuffle" | "heapq.heapify" | "heapq.heappush" | "bisect.insort" => {
                self.disorder(&first?);
                self.hand_over(arguments);
                Value::nothing()
            }
            "functools.reduce" => self.reduced(arguments)?,
            "operator.itemgetter" => {
                let function = Value::name("operator.itemgetter.get");
                let positional = arguments.positional.clone();
                Atom::Partial(Rc::new(Partial { function, positional, named: Vec::new() })).into()
            }
            "operator.itemgetter.get" => self.item_got(arguments),
            "copy.copy" | "copy.deepcopy" | "typing.cast" => arguments.positional.last().cloned()?,
            "collections.defaultdict" => self.default_dict(&first.unwrap_or_else(Value::data), range),
            "collections.deque" => return Some(self.builtin("list", arguments)),
            "collections.OrderedDict" => return Some(self.builtin("dict", arguments)),
            "itertools.chain.from_iterable" => {
                let lists = self.elements(&first?, range.clone());
                let element = self.elements(&lists, range.clone());
                self.list(element, (range.start, 71))
            }
            _ if name.starts_with("itertools.") => self.iterated(name, arguments),
            "pandas.concat" | "pandas.DataFrame" | "pandas.Series" | "pandas.merge" | "pandas.melt"
            | "pandas.crosstab" | "pandas.pivot_table" => self.made_frame(name, arguments),
            "pandas.read_sql" | "pandas.read_sql_query" => {
                for text in self.strings(arguments.get(0, "sql"), &range) {
                    sql::run(&text, self.surroundings, self.sink);
                }
                Value::data()
            }
            _ if name.starts_with("pandas.read_")
                || name.starts_with("polars.read_")
                || name.starts_with("polars.scan_") =>
            {
                let path = first.or_else(|| arguments.named.first().map(|(_, value)| value.clone()))?;
                self.path_or_url(&path, &range);
                if name == "pandas.read_pickle" {
                    self.unknown_module("pickle", range);
                }
                Value::data()
            }
            "pathlib.Path"
            | "pathlib.PurePath"
            | "pathlib.PosixPath"
            | "pathlib.PurePosixPath"
            | "os.path.join" => self.path_join(&arguments.positional, &range, name != "os.path.join"),
            "pathlib.Path.home" => Atom::Location(Rc::new(Text::literal("~", range))).into(),
            "pathlib.Path.cwd" => Atom::Location(Rc::new(Text::literal(".", range))).into(),
            "os.path.expanduser" | "os.path.abspath" | "os.path.realpath" | "os.path.normpath" => first?,
            "os.path.expandvars" | "os.path.dirname" | "os.path.basename" => Value::text(Text::hole(range)),
            "importlib.import_module" => self.import_by_name(arguments),
            _ => return None,
        };
        Some(value)
    }

    /// `reduce(function, values, first)`
    fn reduced(&mut self, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        let (function, rest) = arguments.positional.split_first()?;
        let mut element = Value::none();
        for value in rest {
            element = element.or(&self.elements(value, range.clone()));
            element = element.or(value);
        }
        let both = Arguments::of(vec![element.clone(), element.clone()], range);
        Some(self.call(function, both).or(&element))
    }

    /// A dictionary whose missing entries a function makes.
    fn default_dict(&mut self, factory: &Value, range: Range<usize>) -> Value {
        let start = range.start;
        let made = if factory.any(|atom| !matches!(atom, Atom::Data)) {
            self.call(factory, Arguments::of(Vec::new(), range))
        } else {
            Value::data()
        };
        Atom::Dict(self.allocate((start, 70), Object::Dict { entries: BTreeMap::new(), rest: made })).into()
    }

    /// What functions of `itertools` give: elements of all their arguments, or tuples of these.
    fn iterated(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        self.run_callbacks(arguments);
        let values: Vec<Value> = arguments.all().cloned().collect();
        let mut element = Value::none();
        for value in values {
            element = element.or(&self.elements(&value, range.clone()));
        }
        let tuple = self.list(element.clone(), (range.start, 72));
        let element = if name == "itertools.chain" { element } else { element.or(&tuple) };
        self.list(element, (range.start, 73))
    }

    /// `itemgetter('a', 'b')(row)`
    fn item_got(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let (items, rest) = match (&arguments.rest, arguments.positional.split_last()) {
            (Some(items), _) => (items.clone(), arguments.positional.as_slice()),
            (None, Some((items, rest))) => (items.clone(), rest),
            (None, None) => return Value::data(),
        };
        for atom in items.atoms() {
            if let Atom::Row(frame) | Atom::Table(frame) = atom {
                for index in rest {
                    self.row_subscript(&Rc::clone(frame), index, range.clone());
                }
            }
        }
        self.elements(
            &items
                .atoms()
                .iter()
                .filter(|atom| !matches!(atom, Atom::Row(_) | Atom::Table(_)))
                .cloned()
                .collect(),
            range,
        )
        .or(&Value::data())
    }

    fn made_frame(&mut self, name: &str, arguments: &Arguments) -> Value {
        let combined = self.combined(arguments.all());
        for atom in combined.atoms() {
            if let Atom::Table(frame) = atom {
                for keyword in ["on", "left_on", "right_on", "index", "values", "id_vars", "value_vars"] {
                    if let Some(value) =
                        arguments.named(keyword).filter(|_| name != "pandas.DataFrame").cloned()
                    {
                        self.read_named(&Rc::clone(frame), &value, &arguments.range);
                    }
                }
            }
        }
        combined
    }

    // Paths.

    /// Something is done to what a value names as a path.
    pub(super) fn path_effect(
        &mut self,
        verb: Verb,
        path: &Value,
        range: &Range<usize>,
        how: &[&'static str],
    ) {
        if path.atoms().iter().all(|atom| *atom == Atom::Client("memory")) && !path.is_none() {
            return;
        }
        for text in self.strings(Some(path), range) {
            let resource = self.path_resource(&text);
            let takes = verb == Verb::Delete && how.contains(&"recursive");
            let repository =
                takes.then(|| crate::path::repository_in(&resource, self.surroundings)).flatten();
            for resource in std::iter::once(resource).chain(repository) {
                let effect =
                    how.iter().fold(Effect::new(verb, resource), |effect, name| effect.with(name, true));
                self.add(effect, text.range());
            }
        }
    }

    fn path_resource(&self, text: &Text) -> Resource {
        let surroundings = Surroundings { directory: self.directory.as_deref(), ..*self.surroundings };
        match text.known() {
            Some(path) => crate::path::resource(path, &surroundings),
            None => crate::path::unresolved(&text.shape(), &surroundings),
        }
    }

    fn path_or_url(&mut self, value: &Value, range: &Range<usize>) {
        for text in self.strings(Some(value), range) {
            if text.shape().contains("://") {
                self.url_effect(Verb::Read, &Atom::Text(Rc::clone(&text)).into(), range, &[]);
            } else {
                self.path_effect(Verb::Read, &Atom::Text(Rc::clone(&text)).into(), range, &[]);
            }
        }
    }

    /// Parts of a path put together; an absolute part begins again.
    pub(super) fn path_join(&mut self, parts: &[Value], range: &Range<usize>, location: bool) -> Value {
        let mut paths: Texts = smallvec![Rc::new(Text::literal("", range.clone()))];
        for (at, part) in parts.iter().enumerate() {
            let part = self.strings(Some(part), range);
            let mut joined = Texts::new();
            for right in &part {
                if right.known().is_some_and(|path| path.starts_with('/')) || at == 0 {
                    joined.push(Rc::clone(right));
                    continue;
                }
                let begins_unknown = super::tables::begins_unknown(right.parts());
                for left in &paths {
                    let slash = Text::literal(if left.known() == Some("") { "" } else { "/" }, range.clone());
                    let whole =
                        if begins_unknown { (**right).clone() } else { left.then(&slash).then(right) };
                    joined.push(Rc::new(whole));
                }
            }
            joined.truncate(crate::limits::CODE_VALUES_MAX);
            paths = joined;
        }
        paths.into_iter().map(|path| if location { Atom::Location(path) } else { Atom::Text(path) }).collect()
    }

    /// `path.name`
    pub(super) fn location_attribute(&mut self, path: &Rc<Text>, name: &str) -> Value {
        let range = path.range();
        match name {
            "parent" => {
                let up = Text::literal("/..", range.clone());
                Atom::Location(Rc::new(path.then(&up))).into()
            }
            "name" | "stem" | "suffix" | "parts" | "suffixes" | "anchor" | "root" | "drive" => Value::data(),
            _ => Atom::Method(Rc::new((Atom::Location(Rc::clone(path)).into(), name.into()))).into(),
        }
    }

    /// Calls a method of a path of `pathlib`.
    pub(super) fn location_method(&mut self, path: &Rc<Text>, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let itself: Value = Atom::Location(Rc::clone(path)).into();
        let target = arguments.positional.first().cloned();
        match name {
            "read_text" | "read_bytes" | "iterdir" | "readlink" => {
                self.path_effect(Verb::Read, &itself, &range, &[])
            }
            "write_text" | "write_bytes" | "mkdir" | "touch" => {
                self.path_effect(Verb::Write, &itself, &range, &[])
            }
            "unlink" | "rmdir" => self.path_effect(Verb::Delete, &itself, &range, &[]),
            "chmod" | "lchmod" => self.path_effect(Verb::Configure, &itself, &range, &[]),
            "symlink_to" | "hardlink_to" | "link_to" => {
                // By its new name, what is linked can be read and written.
                let linked = target.unwrap_or_else(Value::unknown);
                self.path_effect(Verb::Read, &linked, &range, &[]);
                self.path_effect(Verb::Write, &linked, &range, &[]);
                self.path_effect(Verb::Write, &itself, &range, &[]);
            }
            "rename" | "replace" | "move" | "move_into" => {
                self.path_effect(Verb::Delete, &itself, &range, &[]);
                self.path_effect(Verb::Write, &target.unwrap_or_else(Value::unknown), &range, &[]);
                return itself;
            }
            "copy" | "copy_into" => {
                self.path_effect(Verb::Read, &itself, &range, &[]);
                self.path_effect(Verb::Write, &target.unwrap_or_else(Value::unknown), &range, &[]);
            }
            "open" => {
                let mode = arguments.get(0, "mode").cloned();
                for verb in self.modes(mode.as_ref(), &range) {
                    self.path_effect(verb, &itself, &range, &[]);
                }
            }
            "glob" | "rglob" => {
                let below =
                    self.path_join(&[itself.clone(), target.unwrap_or_else(Value::unknown)], &range, true);
                let how: &[&'static str] = if name == "rglob" { &["recursive"] } else { &[] };
                self.path_effect(Verb::Read, &below, &range, how);
                let found = path.then(&Text::literal("/", range.clone())).then(&Text::hole(range.clone()));
                return self.list(Atom::Location(Rc::new(found)).into(), (range.start, 74));
            }
            "joinpath" => {
                let mut parts = vec![itself];
                parts.extend(arguments.positional.iter().cloned());
                return self.path_join(&parts, &range, true);
            }
            "with_name" | "with_suffix" | "with_stem" | "relative_to" => {
                let below = path.then(&Text::literal("/../", range.clone())).then(&Text::hole(range));
                return Atom::Location(Rc::new(below)).into();
            }
            "resolve" | "absolute" | "expanduser" => return itself,
            "as_posix" | "__str__" | "as_uri" => return Atom::Text(Rc::clone(path)).into(),
            "exists" | "is_file" | "is_dir" | "is_symlink" | "stat" | "lstat" | "match" | "is_absolute"
            | "samefile" | "owner" | "group" | "is_relative_to" | "is_mount" => {}
            _ => self.unknown(format!("the method `{name}` of a path is not known"), range),
        }
        Value::data()
    }

    // Networks.

    // Objects of modules.

    /// What `with … as` gives.
    pub(super) fn entered(&mut self, value: &Value, range: Range<usize>) -> Value {
        let mut all = Value::none();
        for atom in value.atoms() {
            let entered = match atom {
                Atom::Object(_) => {
                    let method = self.attribute(&atom.clone().into(), "__enter__", range.clone());
                    if method.any(|atom| matches!(atom, Atom::Method(_))) {
                        self.call(&method, Arguments::of(Vec::new(), range.clone()))
                    } else {
                        atom.clone().into()
                    }
                }
                Atom::List(id) => self.items_of(*id),
                other => other.clone().into(),
            };
            all = all.or(&entered);
        }
        all
    }
}
