//! Names that code finds in the world: built-in functions, and modules whose functions touch nothing.

/// Built-in functions and types that touch nothing, besides those that [`super::builtins`] treats.
const PLAIN: &[&str] = &[
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "complex",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "format",
    "frozenset",
    "hasattr",
    "hash",
    "hex",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "ord",
    "pow",
    "print",
    "property",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "zip",
    "display",
    "exit",
    "quit",
    "help",
    "dir",
    "__name__",
    "__file__",
    "__doc__",
    "NotImplemented",
    "Ellipsis",
    "__debug__",
];

/// Built-in functions that have effects, or through which code reaches what it does not name.
const WEIGHTY: &[&str] = &[
    "open",
    "exec",
    "eval",
    "compile",
    "__import__",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "input",
    "breakpoint",
    "__builtins__",
    "__loader__",
    "__spec__",
];

/// Modules whose functions compute and touch nothing.
const HARMLESS: &[&str] = &[
    "__future__",
    "abc",
    "array",
    "base64",
    "binascii",
    "bisect",
    "calendar",
    "cmath",
    "collections",
    "colorsys",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "dateutil",
    "decimal",
    "difflib",
    "enum",
    "errno",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "io",
    "ipaddress",
    "itertools",
    "json",
    "keyword",
    "locale",
    "math",
    "numbers",
    "numpy",
    "operator",
    "pandas",
    "pprint",
    "queue",
    "random",
    "re",
    "scipy",
    "secrets",
    "shlex",
    "sklearn",
    "statistics",
    "string",
    "struct",
    "sys",
    "tabulate",
    "textwrap",
    "threading",
    "time",
    "timeit",
    "token",
    "tqdm",
    "traceback",
    "types",
    "typing",
    "typing_extensions",
    "unicodedata",
    "uuid",
    "warnings",
    "weakref",
    "zlib",
    "zoneinfo",
    "asyncio",
    "concurrent",
    "argparse",
    "logging",
    "pytz",
    "np",
    "pd",
    "gettext",
    "tokenize",
    "ast",
    "polars",
    "sympy",
    "networkx",
];

/// Functions of harmless modules that are not.
const NOT_HARMLESS: &[&str] = &[
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.open_connection",
    "asyncio.open_unix_connection",
    "asyncio.start_server",
    "asyncio.start_unix_server",
    "io.FileIO",
    "io.open",
    "io.open_code",
    "logging.FileHandler",
    "logging.basicConfig",
    "logging.config",
    "logging.handlers",
    "operator.attrgetter",
    "operator.methodcaller",
    "sys.modules",
    "sys.settrace",
    "sys.setprofile",
    "sys.path",
    "sys.meta_path",
    "sys.path_hooks",
    "sys._getframe",
    "sys.addaudithook",
    "types.CodeType",
    "types.FunctionType",
    "types.MethodType",
    "types.ModuleType",
    "typing.get_type_hints",
    "timeit.timeit",
    "timeit.repeat",
    "timeit.Timer",
    "timeit.main",
    "timeit.template",
    "typing.ForwardRef",
    "numpy.DataSource",
    "json.tool",
    "calendar.main",
    "pandas.ExcelFile",
    "pandas.ExcelWriter",
    "pandas.HDFStore",
    "trace",
    "sys.excepthook",
    "sys.displayhook",
    "asyncio.subprocess",
    "traceback.StackSummary",
    "pandas.eval",
    "pandas.io",
    "numpy.f2py",
    "numpy.ctypeslib",
    "numpy.distutils",
    "numpy.testing",
    "numpy.lib",
    "scipy.io",
    "scipy.weave",
    "sklearn.datasets",
    "sympy.parsing",
    "sympy.sympify",
    "sympy.S",
    "sympy.lambdify",
    "sympy.preview",
    "networkx.readwrite",
    "unittest",
    "enum.sys",
    "re.sys",
    "random._os",
    "json.codecs",
    "collections._sys",
    "dataclasses.sys",
    "dataclasses.inspect",
    "dataclasses.builtins",
    "statistics.sys",
    "concurrent.futures.process",
    "typing.sys",
    "weakref.sys",
    "uuid.os",
    "warnings.sys",
    "logging.os",
    "random._urandom",
    "contextlib.os",
    "contextlib.sys",
    "tokenize.open",
    "threading._os",
    "argparse._os",
    "csv.sys",
];

/// What is in some modules under a name of its own: reached that way, it is what it is elsewhere.
const REACHED: &[&str] = &[
    "os",
    "_os",
    "sys",
    "_sys",
    "subprocess",
    "builtins",
    "importlib",
    "socket",
    "shutil",
    "ctypes",
    "linecache",
    "io",
    "_io",
    "pickle",
    "inspect",
    "runpy",
    "tempfile",
    "glob",
    "urllib",
    "http",
    "ssl",
    "pathlib",
    "zipfile",
    "tarfile",
    "marshal",
    "shelve",
    "sqlite3",
    "mmap",
    "posix",
    "gc",
    "pkgutil",
    "zipimport",
    "pty",
    "codecs",
    "_builtin_open",
    "fileinput",
    "eval",
    "exec",
    "system",
    "popen",
    "Popen",
];

pub(super) fn is_builtin(name: &str) -> bool {
    PLAIN.contains(&name) || WEIGHTY.contains(&name) || is_exception(name)
}

/// Whether a built-in function has effects.
pub(super) fn is_weighty_builtin(name: &str) -> bool {
    WEIGHTY.contains(&name)
}

/// Names such as `ValueError`.
pub(super) fn is_exception(name: &str) -> bool {
    let ends = ["Error", "Exception", "Warning", "Interrupt", "Iteration", "Exit"];
    name.starts_with(char::is_uppercase) && ends.iter().any(|end| name.ends_with(end))
}

/// Whether a function of that full name touches nothing.
pub(super) fn is_harmless(name: &str) -> bool {
    let mut parts = name.split('.');
    let top = parts.next().unwrap_or(name);
    if !HARMLESS.contains(&top) || parts.any(|part| REACHED.contains(&part)) {
        return false;
    }
    let within =
        |known: &str| name == known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'));
    if NOT_HARMLESS.iter().any(|known| within(known)) {
        return false;
    }
    // Libraries that compute also read and write files.
    let last = name.rsplit('.').next().unwrap_or(name);
    let files = [
        "read_",
        "scan_",
        "write_",
        "load",
        "save",
        "fromfile",
        "tofile",
        "genfromtxt",
        "memmap",
        "fromregex",
    ];
    let library =
        matches!(top, "pandas" | "numpy" | "scipy" | "polars" | "networkx" | "sklearn" | "pd" | "np");
    !(library && files.iter().any(|start| last.starts_with(start)))
}

/// Whether a decorator gives back a function that does what the decorated one does.
pub(super) fn keeps_function(name: &str) -> bool {
    matches!(
        name,
        "functools.lru_cache"
            | "functools.cache"
            | "functools.wraps"
            | "functools.total_ordering"
            | "dataclasses.dataclass"
            | "abc.abstractmethod"
            | "typing.overload"
            | "typing.final"
            | "contextlib.contextmanager"
            | "builtins.classmethod"
            | "enum.unique"
    )
}
