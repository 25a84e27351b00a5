//! What the functions of modules do: files, hosts, mail, databases.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::interpreter::{Arguments, Interpreter};
use super::modules;
use super::sql;
use super::text::Text;
use super::value::{Atom, Object, Value};
use crate::Surroundings;

/// An argument that is a path: its position, its name, what is done to it and how.
type PathArgument = (usize, &'static str, Verb, &'static [&'static str]);

/// Functions that take paths.
const PATHS: &[(&str, &[PathArgument])] = &[
    ("os.remove", &[(0, "path", Verb::Delete, &[])]),
    ("os.unlink", &[(0, "path", Verb::Delete, &[])]),
    ("os.rmdir", &[(0, "path", Verb::Delete, &[])]),
    ("os.removedirs", &[(0, "name", Verb::Delete, &["recursive"])]),
    ("os.rename", &[(0, "src", Verb::Delete, &[]), (1, "dst", Verb::Write, &[])]),
    ("os.renames", &[(0, "old", Verb::Delete, &[]), (1, "new", Verb::Write, &[])]),
    ("os.replace", &[(0, "src", Verb::Delete, &[]), (1, "dst", Verb::Write, &[])]),
    ("os.mkdir", &[(0, "path", Verb::Write, &[])]),
    ("os.makedirs", &[(0, "name", Verb::Write, &[])]),
    ("os.mkfifo", &[(0, "path", Verb::Write, &[])]),
    ("os.mknod", &[(0, "path", Verb::Write, &[])]),
    ("os.truncate", &[(0, "path", Verb::Delete, &[])]),
    ("os.symlink", &[(1, "dst", Verb::Write, &[])]),
    ("os.link", &[(1, "dst", Verb::Write, &[])]),
    ("os.listdir", &[(0, "path", Verb::Read, &[])]),
    ("os.scandir", &[(0, "path", Verb::Read, &[])]),
    ("os.walk", &[(0, "top", Verb::Read, &["recursive"])]),
    ("os.readlink", &[(0, "path", Verb::Read, &[])]),
    ("os.chmod", &[(0, "path", Verb::Configure, &[])]),
    ("os.chown", &[(0, "path", Verb::Configure, &[])]),
    ("os.lchown", &[(0, "path", Verb::Configure, &[])]),
    ("os.utime", &[(0, "path", Verb::Configure, &[])]),
    ("os.open", &[(0, "path", Verb::Read, &[]), (0, "path", Verb::Write, &[])]),
    ("shutil.rmtree", &[(0, "path", Verb::Delete, &["recursive"])]),
    ("shutil.copy", &[(0, "src", Verb::Read, &[]), (1, "dst", Verb::Write, &[])]),
    ("shutil.copy2", &[(0, "src", Verb::Read, &[]), (1, "dst", Verb::Write, &[])]),
    ("shutil.copyfile", &[(0, "src", Verb::Read, &[]), (1, "dst", Verb::Write, &[])]),
    ("shutil.copytree", &[(0, "src", Verb::Read, &["recursive"]), (1, "dst", Verb::Write, &["recursive"])]),
    ("shutil.move", &[(0, "src", Verb::Delete, &[]), (1, "dst", Verb::Write, &[])]),
    (
        "shutil.make_archive",
        &[(0, "base_name", Verb::Write, &[]), (2, "root_dir", Verb::Read, &["recursive"])],
    ),
    (
        "shutil.unpack_archive",
        &[(0, "filename", Verb::Read, &[]), (1, "extract_dir", Verb::Write, &["recursive"])],
    ),
    ("shutil.chown", &[(0, "path", Verb::Configure, &[])]),
    ("glob.glob", &[(0, "pathname", Verb::Read, &[])]),
    ("glob.iglob", &[(0, "pathname", Verb::Read, &[])]),
    ("fileinput.input", &[(0, "files", Verb::Read, &[])]),
    ("linecache.getline", &[(0, "filename", Verb::Read, &[])]),
    ("numpy.load", &[(0, "file", Verb::Read, &[])]),
    ("numpy.loadtxt", &[(0, "fname", Verb::Read, &[])]),
    ("numpy.genfromtxt", &[(0, "fname", Verb::Read, &[])]),
    ("numpy.fromfile", &[(0, "file", Verb::Read, &[])]),
    ("numpy.save", &[(0, "file", Verb::Write, &[])]),
    ("numpy.savez", &[(0, "file", Verb::Write, &[])]),
    ("numpy.savetxt", &[(0, "fname", Verb::Write, &[])]),
    ("PIL.Image.open", &[(0, "fp", Verb::Read, &[])]),
    ("matplotlib.pyplot.savefig", &[(0, "fname", Verb::Write, &[])]),
    ("sqlite3.connect", &[(0, "database", Verb::Read, &[])]),
];

/// Functions that open a file in a mode, as `open` does.
const OPENERS: &[&str] = &[
    "io.open",
    "io.FileIO",
    "codecs.open",
    "gzip.open",
    "bz2.open",
    "lzma.open",
    "zipfile.ZipFile",
    "tarfile.open",
    "gzip.GzipFile",
    "os.fdopen",
    "tokenize.open",
    "aiofiles.open",
    "bz2.BZ2File",
    "lzma.LZMAFile",
];

/// Functions of `os` and others that tell of the machine or of names, and touch nothing.
const QUIET: &[&str] = &[
    "os.getcwd",
    "os.getpid",
    "os.getppid",
    "os.cpu_count",
    "os.uname",
    "os.urandom",
    "os.strerror",
    "os.fspath",
    "os.fsencode",
    "os.fsdecode",
    "os.get_terminal_size",
    "os.getlogin",
    "os.getuid",
    "os.geteuid",
    "os.getgid",
    "os.umask",
    "os.times",
    "os.getloadavg",
    "os.close",
    "os.stat",
    "os.lstat",
    "os.access",
    "os.cpu_count",
    "os.sched_getaffinity",
    "os.get_exec_path",
    "os.path.exists",
    "os.path.isfile",
    "os.path.isdir",
    "os.path.islink",
    "os.path.getsize",
    "os.path.getmtime",
    "os.path.getctime",
    "os.path.split",
    "os.path.splitext",
    "os.path.isabs",
    "os.path.samefile",
    "os.path.commonpath",
    "os.path.commonprefix",
    "os.path.relpath",
    "os.path.ismount",
    "os.path.lexists",
    "shutil.which",
    "shutil.disk_usage",
    "shutil.get_terminal_size",
    "platform.system",
    "platform.machine",
    "platform.python_version",
    "platform.platform",
    "platform.node",
    "platform.release",
    "platform.processor",
    "platform.version",
    "urllib.parse.quote",
    "urllib.parse.unquote",
    "urllib.parse.urlencode",
    "urllib.parse.urljoin",
    "urllib.parse.urlparse",
    "urllib.parse.urlsplit",
    "urllib.parse.parse_qs",
    "urllib.parse.quote_plus",
    "socket.gethostname",
    "socket.inet_aton",
    "socket.inet_ntoa",
    "socket.htons",
    "socket.setdefaulttimeout",
    "email.message.EmailMessage",
    "email.mime.text.MIMEText",
    "email.mime.multipart.MIMEMultipart",
    "email.mime.base.MIMEBase",
    "email.utils.formataddr",
    "email.encoders.encode_base64",
    "email.policy",
    "mimetypes.guess_type",
    "ssl.create_default_context",
    "signal.signal",
    "atexit.register",
    "gc.collect",
    "tempfile.gettempdir",
    "getpass.getuser",
    "bs4.BeautifulSoup",
    "tomllib.loads",
    "yaml.safe_load",
    "yaml.safe_dump",
    "yaml.dump",
    "configparser.ConfigParser",
    "xml.etree.ElementTree.fromstring",
    "toml.loads",
    "toml.dumps",
    "multiprocessing.Process",
    "multiprocessing.Pool",
    "multiprocessing.cpu_count",
    "multiprocessing.Queue",
    "sched.scheduler",
    "sqlalchemy.text",
    "zlib.compress",
];

/// Modules of the standard library and well-known ones: importing them does nothing by itself.
const IMPORTABLE: &[&str] = &[
    "os",
    "shutil",
    "subprocess",
    "pathlib",
    "glob",
    "tempfile",
    "fileinput",
    "linecache",
    "requests",
    "urllib",
    "httpx",
    "http",
    "socket",
    "smtplib",
    "email",
    "ssl",
    "sqlite3",
    "psycopg2",
    "pymysql",
    "mysql",
    "sqlalchemy",
    "duckdb",
    "importlib",
    "pickle",
    "marshal",
    "shelve",
    "ctypes",
    "inspect",
    "gc",
    "pty",
    "code",
    "codeop",
    "runpy",
    "signal",
    "resource",
    "multiprocessing",
    "getpass",
    "platform",
    "site",
    "zipfile",
    "tarfile",
    "gzip",
    "bz2",
    "lzma",
    "codecs",
    "configparser",
    "xml",
    "mimetypes",
    "ftplib",
    "telnetlib",
    "imaplib",
    "poplib",
    "paramiko",
    "builtins",
    "atexit",
    "sched",
    "select",
    "selectors",
    "unittest",
    "doctest",
    "pdb",
    "cProfile",
    "profile",
    "dis",
    "bs4",
    "tomllib",
    "toml",
    "yaml",
    "matplotlib",
    "seaborn",
    "plotly",
    "PIL",
    "aiohttp",
    "aiofiles",
    "webbrowser",
    "urllib3",
    "pwd",
    "grp",
    "curses",
    "readline",
    "tkinter",
    "symtable",
    "sysconfig",
    "pkgutil",
    "boto3",
    "stat",
    "fnmatch",
    "filecmp",
    "psutil",
    "openpyxl",
    "nltk",
    "torch",
    "tensorflow",
    "statsmodels",
    "cffi",
    "dill",
];

/// Verbs of HTTP and what they do to a host.
const HTTP: &[(&str, Verb)] = &[
    ("get", Verb::Read),
    ("head", Verb::Read),
    ("options", Verb::Read),
    ("stream", Verb::Send),
    ("post", Verb::Send),
    ("put", Verb::Send),
    ("patch", Verb::Send),
    ("delete", Verb::Delete),
];

impl Interpreter<'_, '_> {
    /// A module is imported: what nobody knows may do anything when it is loaded.
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
            Some(("np", rest)) => format!("numpy.{rest}"),
            Some(("pd", rest)) => format!("pandas.{rest}"),
            _ => name.to_owned(),
        };
        if OPENERS.contains(&name) {
            self.builtin("open", arguments);
            return Atom::Client("archive").into();
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
                Some(path) => self.path_effect(*verb, &path, &range, how),
                None => {
                    let here = Value::text(Text::literal(".", range.clone()));
                    self.path_effect(*verb, &here, &range, how);
                }
            }
        }
        self.run_callbacks(arguments);
        if name == "sqlite3.connect" { Atom::Client("sql").into() } else { Value::data() }
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
                Atom::Partial(Rc::new((function.clone(), given.to_vec()))).into()
            }
            "functools.wraps" | "functools.lru_cache" | "functools.cache" => Value::data(),
            "functools.reduce" => {
                let (function, rest) = arguments.positional.split_first()?;
                let mut element = Value::none();
                for value in rest {
                    element = element.or(&self.elements(value, range.clone()));
                    element = element.or(value);
                }
                self.call(function, Arguments::of(vec![element.clone(), element.clone()], range)).or(&element)
            }
            "operator.itemgetter" => {
                Atom::Partial(Rc::new((Value::name("operator.itemgetter.get"), arguments.positional.clone())))
                    .into()
            }
            "operator.itemgetter.get" => self.item_got(arguments),
            "copy.copy" | "copy.deepcopy" | "typing.cast" => arguments.positional.last().cloned()?,
            "collections.defaultdict" => {
                let factory = first.unwrap_or_else(Value::data);
                let made = if factory.any(|atom| !matches!(atom, Atom::Data)) {
                    self.call(&factory, Arguments::of(Vec::new(), range.clone()))
                } else {
                    Value::data()
                };
                Atom::Dict(
                    self.allocate((range.start, 70), Object::Dict { entries: BTreeMap::new(), rest: made }),
                )
                .into()
            }
            "collections.deque" => return Some(self.builtin("list", arguments)),
            "collections.OrderedDict" => return Some(self.builtin("dict", arguments)),
            "itertools.chain.from_iterable" => {
                let lists = self.elements(&first?, range.clone());
                let element = self.elements(&lists, range.clone());
                self.list(element, (range.start, 71))
            }
            _ if name.starts_with("itertools.") => {
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
            "os.path.expandvars" => Value::text(Text::hole(range)),
            "os.path.dirname" | "os.path.basename" => Value::text(Text::hole(range)),
            "importlib.import_module" => self.import_by_name(arguments),
            _ => return None,
        };
        Some(value)
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
            let effect = how.iter().fold(Effect::new(verb, resource), |effect, name| effect.with(name, true));
            self.add(effect, text.range());
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

    /// Parts of a path put together; an absolute part begins anew.
    pub(super) fn path_join(&mut self, parts: &[Value], range: &Range<usize>, location: bool) -> Value {
        let mut paths = vec![Rc::new(Text::literal("", range.clone()))];
        for (at, part) in parts.iter().enumerate() {
            let part = self.strings(Some(part), range);
            let mut joined = Vec::new();
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
            _ => Atom::Method(Rc::new((Atom::Location(Rc::clone(path)).into(), name.to_owned()))).into(),
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
            "symlink_to" | "hardlink_to" | "link_to" => self.path_effect(Verb::Write, &itself, &range, &[]),
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

    pub(super) fn url_effect(&mut self, verb: Verb, url: &Value, range: &Range<usize>, how: &[&'static str]) {
        for text in self.strings(Some(url), range) {
            let place = text.range();
            // A hole behind the host does not change where it leads; one before or in it does.
            let shape = text.shape();
            let host = shape.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
            let ends = shape.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#']));
            let known = text.known().is_some() || (ends && host.is_some_and(|host| !host.contains('*')));
            let found = if known { crate::url::resource(&shape, self.surroundings) } else { None };
            match found {
                Some(host) => {
                    let effect =
                        how.iter().fold(Effect::new(verb, host), |effect, name| effect.with(name, true));
                    self.add(effect, place);
                }
                None => self.sink.unknown("url", "it is not known which host is meant", place),
            }
        }
    }

    fn host_effect(&mut self, verb: Verb, host: Option<&Value>, range: &Range<usize>) {
        let first = match host.and_then(Value::single) {
            // `(host, port)`
            Some(Atom::List(_)) => {
                host.and_then(|host| self.exact_items(host)).and_then(|items| items.first().cloned())
            }
            _ => host.cloned(),
        };
        for text in self.strings(first.as_ref(), range) {
            let found = text.known().and_then(crate::url::host_resource);
            match found {
                Some(host) => self.effect(verb, host, text.range()),
                None => self.sink.unknown("url", "it is not known which host is meant", range.clone()),
            }
        }
    }

    fn network_function(&mut self, name: &str, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        let (module, function) = name.rsplit_once('.')?;
        let upload: &[&'static str] = if arguments.named("files").is_some() { &["upload"] } else { &[] };
        match (module, function) {
            ("requests" | "httpx" | "requests.api", method) => {
                if matches!(method, "Session" | "Client" | "AsyncClient" | "session") {
                    return Some(Atom::Client("http").into());
                }
                self.http(method, arguments, upload)?;
            }
            ("aiohttp", "ClientSession") => return Some(Atom::Client("http").into()),
            ("urllib.request", "urlopen" | "Request") => {
                let sends = arguments.get(1, "data").is_some();
                let url = arguments.get(0, "url")?.clone();
                if url.any(|atom| *atom == Atom::Client("request")) {
                    return Some(Value::data());
                }
                self.url_effect(if sends { Verb::Send } else { Verb::Read }, &url, &range, &[]);
                if function == "Request" {
                    return Some(Atom::Client("request").into());
                }
            }
            ("urllib.request", "urlretrieve") => {
                self.url_effect(Verb::Read, &arguments.get(0, "url")?.clone(), &range, &[]);
                if let Some(path) = arguments.get(1, "filename").cloned() {
                    self.path_effect(Verb::Write, &path, &range, &[]);
                }
            }
            ("http.client", "HTTPConnection" | "HTTPSConnection")
            | ("ftplib", "FTP" | "FTP_TLS")
            | ("imaplib", "IMAP4" | "IMAP4_SSL")
            | ("poplib", "POP3" | "POP3_SSL")
            | ("telnetlib", "Telnet") => {
                self.host_effect(Verb::Send, arguments.get(0, "host"), &range);
            }
            ("socket", "create_connection") => {
                self.host_effect(Verb::Send, arguments.get(0, "address"), &range);
                return Some(Atom::Client("socket").into());
            }
            ("socket", "socket" | "socketpair") => return Some(Atom::Client("socket").into()),
            ("socket", "gethostbyname" | "getaddrinfo") => {
                self.host_effect(Verb::Read, arguments.positional.first(), &range);
            }
            ("smtplib", "SMTP" | "SMTP_SSL" | "LMTP") => {
                if arguments.get(0, "host").is_some() {
                    self.host_effect(Verb::Send, arguments.get(0, "host"), &range);
                }
                return Some(Atom::Client("mail").into());
            }
            ("webbrowser", _) => self.url_effect(Verb::Read, &arguments.get(0, "url")?.clone(), &range, &[]),
            ("psycopg2" | "pymysql" | "mysql.connector" | "duckdb", "connect")
            | ("sqlalchemy", "create_engine") => {
                if arguments.named("host").is_some() {
                    self.host_effect(Verb::Send, arguments.named("host"), &range);
                }
                return Some(Atom::Client("sql").into());
            }
            ("tempfile", _) => {
                let folder = Value::text(Text::literal("/tmp/*", range.clone()));
                let folder = arguments.named("dir").cloned().unwrap_or(folder);
                self.path_effect(Verb::Write, &folder, &range, &[]);
            }
            ("io", "StringIO" | "BytesIO") => {
                self.hand_over(arguments);
                return Some(Atom::Client("memory").into());
            }
            _ => return None,
        }
        for value in arguments.all().cloned().collect::<Vec<_>>() {
            self.escape(&value, range.clone());
        }
        Some(Value::data())
    }

    /// A request by a verb of HTTP; none if it is none.
    fn http(&mut self, method: &str, arguments: &Arguments, how: &[&'static str]) -> Option<()> {
        let range = arguments.range.clone();
        let (verb, url) = if method == "request" {
            let named = arguments.get(0, "method").and_then(Value::known_text).map(str::to_lowercase);
            let verb =
                HTTP.iter().find(|(name, _)| Some(*name) == named.as_deref()).map_or(Verb::Send, |it| it.1);
            (verb, arguments.get(1, "url"))
        } else {
            (HTTP.iter().find(|(name, _)| *name == method)?.1, arguments.get(0, "url"))
        };
        let url = url.cloned().unwrap_or_else(Value::unknown);
        let sends = ["data", "json", "files", "content"].iter().any(|name| arguments.named(name).is_some());
        let verb = if sends && verb == Verb::Read { Verb::Send } else { verb };
        self.url_effect(verb, &url, &range, how);
        Some(())
    }

    // Objects of modules.

    pub(super) fn client_attribute(&mut self, kind: &'static str, name: &str) -> Value {
        Atom::Method(Rc::new((Atom::Client(kind).into(), name.to_owned()))).into()
    }

    pub(super) fn client_method(&mut self, kind: &'static str, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let itself: Value = Atom::Client(kind).into();
        match (kind, name) {
            ("http", _) => {
                let upload: &[&'static str] =
                    if arguments.named("files").is_some() { &["upload"] } else { &[] };
                if self.http(name, arguments, upload).is_none() && name == "mount" {
                    self.unknown("a session is changed", range.clone());
                }
            }
            (
                "sql",
                "execute" | "executemany" | "executescript" | "sql" | "query" | "exec_driver_sql"
                | "read_sql",
            ) => {
                for text in self.strings(arguments.positional.first().or(arguments.rest.as_ref()), &range) {
                    sql::run(&text, self.surroundings, self.sink);
                }
                return itself;
            }
            ("sql", "cursor" | "connect" | "begin" | "connection" | "raw_connection") => return itself,
            ("sql", "load_extension" | "enable_load_extension" | "create_function") => {
                self.unknown("a database runs code", range.clone());
            }
            ("socket", "connect" | "connect_ex") => {
                self.host_effect(Verb::Send, arguments.positional.first(), &range)
            }
            ("socket", "sendto") => self.host_effect(Verb::Send, arguments.positional.last(), &range),
            ("socket", "bind" | "listen" | "accept") => self.unknown("a port is opened", range.clone()),
            ("mail", "connect") => self.host_effect(Verb::Send, arguments.positional.first(), &range),
            ("mail", "sendmail") => self.recipients(arguments.get(1, "to_addrs"), &range),
            ("mail", "send_message") => match arguments.get(2, "to_addrs") {
                Some(to) => self.recipients(Some(&to.clone()), &range),
                None => self.recipients(None, &range),
            },
            ("archive", "extractall" | "extract") => {
                let position = usize::from(name == "extract");
                let here = Value::text(Text::literal(".", range.clone()));
                let folder = arguments.get(position, "path").cloned().unwrap_or(here);
                self.path_effect(Verb::Write, &folder, &range, &["recursive"]);
            }
            ("archive", "add" | "write")
                if arguments
                    .positional
                    .first()
                    .is_some_and(|it| it.any(|atom| matches!(atom, Atom::Text(_) | Atom::Location(_))))
                    && kind == "archive"
                    && name == "add" =>
            {
                if let Some(path) = arguments.positional.first().cloned() {
                    self.path_effect(Verb::Read, &path, &range, &["recursive"]);
                }
            }
            _ => {}
        }
        self.hand_over(arguments);
        Value::data()
    }

    fn recipients(&mut self, to: Option<&Value>, range: &Range<usize>) {
        for text in self.strings(to, range) {
            let place = text.range();
            match text.known() {
                Some(addresses) => {
                    let addresses = addresses.to_owned();
                    if let Some(mut nested) = self.sink.nested(place) {
                        crate::mail::read(&addresses, self.surroundings, &mut nested);
                    }
                }
                None => {
                    let anybody = Resource::new(ResourceKind::Recipient, "*");
                    self.effect(Verb::Send, anybody, place);
                }
            }
        }
    }

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
