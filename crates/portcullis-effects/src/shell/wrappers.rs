//! Programs that run other programs.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::environment::{self, Influence};
use super::interpreter::{Call, Input, Interpreter, Stdin};
use super::options::{Options, Spec, joined};
use super::state::Value;
use super::word::{Gaps, Word};
use super::{assignment, find};

/// A program that runs the words after its own options.
struct Plain {
    name: &'static str,
    spec: Spec,
    /// Words of its own between options and command.
    operands: usize,
}

const fn plain(name: &'static str, flags: &'static str, valued: &'static str, operands: usize) -> Plain {
    Plain { name, spec: Spec { flags, valued, optional: "", long: LONG, long_valued: LONG_VALUED }, operands }
}

/// Long options of them all.
const LONG: &[&str] = &[
    "foreground",
    "preserve-status",
    "verbose",
    "wait",
    "fork",
    "ctty",
    "quiet",
    "portability",
    "append",
    "no-buffer",
    "shared",
    "exclusive",
    "nonblock",
    "close",
    "no-fork",
    "group",
    "follow-forks",
    "summary-only",
    "background",
];
const LONG_VALUED: &[&str] = &[
    "kill-after",
    "signal",
    "adjustment",
    "class",
    "classdata",
    "input",
    "output",
    "error",
    "format",
    "timeout",
    "wait-time",
    "interval",
];

const PLAIN: &[Plain] = &[
    plain("nohup", "", "", 0),
    plain("nice", "0123456789", "n", 0),
    plain("ionice", "t", "cn", 0),
    plain("time", "apvqlh", "fo", 0),
    plain("timeout", "vfp", "ks", 1),
    plain("gtimeout", "vfp", "ks", 1),
    plain("stdbuf", "", "ioe", 0),
    plain("setsid", "cfw", "", 0),
    plain("strace", "cCdDfFhikqrtTvVxyzZ", "abeEIoOpPsSuUX", 0),
    plain("ltrace", "bcCfhiLrStTV", "aADeFlnopsuwx", 0),
    plain("taskset", "ac", "", 1),
    plain("chrt", "abdfiormRv", "TPD", 1),
    plain("unbuffer", "p", "", 0),
    plain("chronic", "ve", "", 0),
    plain("caffeinate", "disum", "tw", 0),
    plain("xvfb-run", "ahl", "efnpsw", 0),
    plain("dbus-run-session", "", "", 0),
    plain("proxychains", "q", "f", 0),
    plain("proxychains4", "q", "f", 0),
    plain("torsocks", "", "", 0),
    plain("ccache", "", "", 0),
    plain("sccache", "", "", 0),
    plain("busybox", "", "", 0),
    plain("toybox", "", "", 0),
];

/// Runs a wrapper, or `None` if the program is none. Otherwise whether it was understood.
pub(super) fn run(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> Option<bool> {
    Some(match call.program {
        "sudo" | "doas" | "sudoedit" => sudo(shell, call),
        "su" | "runuser" | "pkexec" => su(shell, call),
        "env" | "genv" => env(shell, call),
        "xargs" | "gxargs" => xargs(shell, call),
        "find" | "gfind" => find::find(shell, call),
        "ssh" => ssh(shell, call),
        "watch" => watch(shell, call),
        "parallel" => parallel(shell, call),
        "flock" => flock(shell, call),
        "chroot" => chroot(shell, call),
        "script" => script(shell, call),
        "unshare" | "nsenter" | "setpriv" | "firejail" | "bwrap" | "prlimit" | "numactl"
        | "systemd-inhibit" => odd_wrapper(shell, call),
        name => {
            let wrapper = PLAIN.iter().find(|wrapper| wrapper.name == name)?;
            let options = Options::read(call.args, &wrapper.spec);
            let known = check(shell, call, &options);
            for file in
                options.values(&["o", "output"]).filter(|_| matches!(name, "time" | "strace" | "ltrace"))
            {
                output(shell, name, file);
            }
            for word in options.values(&["E", "env"]).filter(|_| name == "strace") {
                set_variable(shell, word);
            }
            let rest = call.args.get(options.end + wrapper.operands..).unwrap_or_default();
            shell.run(rest, call.range.clone());
            known
        }
    })
}

/// Where a wrapper writes what it has to tell: a file, or for `strace` a command that reads it.
fn output(shell: &mut Interpreter<'_, '_>, program: &str, file: &Word) {
    match file.shape.strip_prefix(['|', '!']).filter(|_| program == "strace") {
        Some(command) => {
            let value = file.value.as_ref().map(|_| command.to_owned());
            shell.script(&Word { value, shape: command.to_owned(), ..file.clone() });
        }
        None => shell.path(Verb::Write, file),
    }
}

/// `NAME=VALUE` for the program that runs.
fn set_variable(shell: &mut Interpreter<'_, '_>, word: &Word) {
    match assignment::split(&word.shape) {
        Some(found) if word.value.is_some() => {
            shell.exported(found.name, &Value::Text(found.value.to_owned()), &word.range);
        }
        Some(found) => shell.exported(found.name, &Value::Unknown, &word.range),
        // Without a value the variable is taken away.
        None if word.value.is_some() => {}
        None => shell.unknown("shell", "a variable is set that is not known", word.range.clone()),
    }
}

/// Notes an option that is not known: what runs may be another word.
fn check(shell: &mut Interpreter<'_, '_>, call: &Call<'_>, options: &Options) -> bool {
    if options.odd {
        shell.unknown(call.program, "an option is not known", call.range.clone());
    }
    !options.odd
}

fn rest<'w>(call: &Call<'w>, options: &Options) -> &'w [Word] {
    call.args.get(options.end..).unwrap_or_default()
}

/// Splits `NAME=value` words off a command.
fn assignments(words: &[Word]) -> (&[Word], &[Word]) {
    let count = words.iter().take_while(|word| assignment::split(&word.shape).is_some()).count();
    words.split_at_checked(count).unwrap_or((&[], words))
}

fn sudo(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = match call.program {
        "doas" => Spec { flags: "Lns", valued: "aCu", ..Spec::default() },
        _ => Spec {
            flags: "AbBEeHiKklnPSsVvN",
            valued: "CDghpRrTtUu",
            long: &[
                "askpass",
                "background",
                "preserve-env",
                "edit",
                "set-home",
                "login",
                "non-interactive",
                "stdin",
                "shell",
                "validate",
                "reset-timestamp",
                "list",
                "version",
                "help",
                "remove-timestamp",
            ],
            long_valued: &[
                "user",
                "group",
                "chdir",
                "chroot",
                "prompt",
                "host",
                "role",
                "type",
                "close-from",
                "command-timeout",
                "other-user",
            ],
            ..Spec::default()
        },
    };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    let words = rest(call, &options);
    if call.program == "sudoedit" || options.has(&["e", "edit"]) {
        shell.privileged(|shell| {
            for word in words {
                shell.path(Verb::Write, word);
            }
        });
        return known;
    }
    let shells = options.has(&["s", "shell", "i", "login"]);
    shell.privileged(|shell| {
        shell.subshell(|shell| {
            if let Some(folder) = options.values(&["D", "chdir"]).next() {
                shell.set_directory(folder);
            }
            let (set, words) = assignments(words);
            environment_of(shell, set);
            if shells && words.is_empty() {
                standard_input(shell, call);
            } else if options.has(&["R", "chroot"]) {
                shell.remote(|shell| shell.run(words, call.range.clone()));
            } else {
                shell.run(words, call.range.clone());
            }
        });
    });
    known
}

/// A shell that reads its standard input.
fn standard_input(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) {
    match call.stdin {
        Stdin::Text(text) => shell.script(&Word::known(text, call.range.clone())),
        Stdin::None => shell.unknown("shell", "an interactive shell", call.range.clone()),
        Stdin::Pipe | Stdin::File => {
            shell.unknown("shell", "the script comes from somewhere else", call.range.clone());
        }
    }
}

fn su(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "lmpfPh",
        valued: "cgGsuwT",
        long: &["login", "preserve-environment", "pty", "disable-internal-agent", "keep-cwd"],
        long_valued: &["command", "group", "shell", "user", "session-command"],
        ..Spec::default()
    };
    let options = Options::read(call.args, &spec);
    let mut known = check(shell, call, &options);
    let mut words: Vec<Word> = rest(call, &options).to_vec();
    let mut scripts: Vec<Word> = options.values(&["c", "command", "session-command"]).cloned().collect();
    // `su root -c X`, `su - root -c X`: options may follow.
    while let Some(at) = words.iter().position(|word| matches!(word.literal(), Some("-c" | "--command"))) {
        scripts.extend(words.get(at + 1).cloned());
        words.drain(at..words.len().min(at + 2));
    }
    let runs = call.program == "pkexec" || options.has(&["u", "user"]);
    shell.privileged(|shell| {
        for script in &scripts {
            shell.script(script);
        }
        if runs {
            shell.run(&words, call.range.clone());
        } else if scripts.is_empty() {
            standard_input(shell, call);
            known = false;
        }
    });
    known
}

/// Applies `NAME=value` words to what runs inside.
fn environment_of(shell: &mut Interpreter<'_, '_>, words: &[Word]) {
    for word in words {
        let Some(found) = assignment::split(&word.shape) else { continue };
        let value = match &word.value {
            Some(_) => Value::Text(found.value.to_owned()),
            None if word.gaps == Gaps::Any => Value::Unknown,
            None => Value::Shape(found.value.to_owned(), word.gaps),
        };
        shell.exported(found.name, &value, &word.range);
        shell.state.assign(found.name, value);
    }
}

fn env(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "i0v",
        valued: "uCSP",
        long: &["ignore-environment", "null", "debug", "version", "help"],
        long_valued: &["unset", "chdir", "split-string"],
        ..Spec::default()
    };
    let options = Options::read(call.args, &spec);
    let mut known = check(shell, call, &options);
    let words = rest(call, &options);
    let mut split = Vec::new();
    for text in options.values(&["S", "split-string"]) {
        match text.literal().filter(|text| !text.contains(['\\', '\'', '"', '$', '#'])) {
            Some(plain) => {
                split.extend(plain.split_whitespace().map(|part| Word::known(part, text.range.clone())));
            }
            None => {
                shell.unknown("env", "the text to split is not plain", text.range.clone());
                known = false;
            }
        }
    }
    split.extend(words.iter().cloned());
    shell.subshell(|shell| {
        if let Some(folder) = options.values(&["C", "chdir"]).next() {
            shell.set_directory(folder);
        }
        if options.has(&["P"]) {
            shell.state.tampered = true;
        }
        let words = match split.split_first() {
            Some((first, rest)) if first.literal() == Some("-") => rest,
            _ => &split,
        };
        let (set, words) = assignments(words);
        environment_of(shell, set);
        let plain = set.iter().all(|word| {
            let name = word.shape.split('=').next().unwrap_or_default();
            environment::influence(name, word.value.as_deref()) != Influence::Splitting
        });
        shell.state.splits_elsewhere &= !plain;
        if words.is_empty() {
            let all = Resource::new(ResourceKind::Environment, "*").with("secret", true);
            shell.add(Effect::new(Verb::Read, all), call.range.clone());
        }
        shell.run(words, call.range.clone());
    });
    known
}

fn xargs(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "0rtxpo",
        valued: "aEILnPsdJRS",
        optional: "iel",
        long: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "replace",
            "eof",
            "max-lines",
        ],
        long_valued: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
    };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    for file in options.values(&["a", "arg-file"]) {
        shell.path(Verb::Read, file);
    }
    let mark = options.values(&["I", "i", "replace", "J"]).next().map(|word| word.shape.clone());
    let mark = mark.or_else(|| options.has(&["i", "replace"]).then(|| "{}".to_owned()));
    let command = rest(call, &options);
    let given = arguments(shell, call, &options);
    let commands: Vec<Vec<Word>> = match mark.filter(|mark| !mark.is_empty()) {
        Some(mark) => given.iter().map(|name| filled(command, &mark, name)).collect(),
        None => vec![command.iter().chain(&given).cloned().collect()],
    };
    shell.subshell(|shell| {
        shell.input = Input::None;
        for words in &commands {
            shell.run(words, call.range.clone());
        }
    });
    known
}

/// The words of a command with one that was read in place of a mark.
fn filled(command: &[Word], mark: &str, name: &Word) -> Vec<Word> {
    let fill = |word: &Word| match word.shape.contains(mark) {
        true if word.shape == mark && name.glob => Word { range: word.range.clone(), ..name.clone() },
        // In a longer word, such as a script, it is text that nobody knows.
        true => Word { value: None, shape: word.shape.replace(mark, "*"), gaps: Gaps::Any, ..word.clone() },
        false => word.clone(),
    };
    command.iter().map(fill).collect()
}

/// What `xargs` reads: words, where the text is known and plain.
fn arguments(shell: &Interpreter<'_, '_>, call: &Call<'_>, options: &Options) -> Vec<Word> {
    if let Input::Names(names) = &shell.input
        && !options.has(&["a", "arg-file"])
    {
        let mut words = names.words.clone();
        // A name with a blank or an end of line in it is read as several.
        if !(names.zero && options.has(&["0", "null"])) {
            words.push(Word::unknown(call.range.clone()));
        }
        return words;
    }
    let plain = !options.has(&["a", "arg-file", "0", "null", "d", "delimiter", "L", "l", "E"]);
    match call.stdin {
        Stdin::Text(text) if plain && !text.contains(['\\', '\'', '"']) => {
            text.split_whitespace().map(|word| Word::known(word, call.range.clone())).collect()
        }
        _ => vec![Word::unknown(call.range.clone())],
    }
}

fn ssh(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec { flags: "46AaCfGgKkMNnqsTtVvXxYy", valued: "BbcDEeFIiJLlmOopPQRSWw", ..Spec::default() };
    let options = Options::read(call.args, &spec);
    let mut known = check(shell, call, &options);
    for file in options.values(&["i", "F"]) {
        shell.path(Verb::Read, file);
    }
    // Settings can name commands; a provider of keys is a library.
    for file in options.values(&["F", "I"]) {
        shell.path(Verb::Execute, file);
    }
    for file in options.values(&["E"]) {
        shell.path(Verb::Write, file);
    }
    for option in options.values(&["o"]) {
        let (name, value) = option.shape.split_once(['=', ' ']).unwrap_or((&option.shape, ""));
        if name.to_ascii_lowercase().ends_with("command") {
            shell.script(&Word::known(value.trim(), option.range.clone()));
        }
        known &= option.value.is_some();
    }
    let words = rest(call, &options);
    let Some((host, command)) = words.split_first() else { return known };
    let address =
        if host.shape.contains("://") { host.shape.clone() } else { format!("ssh://{}", host.shape) };
    let address =
        Word { value: host.value.as_ref().map(|_| address.clone()), shape: address, ..host.clone() };
    shell.url(Verb::Send, &address, &[]);
    shell.remote(|shell| match (command, joined(command)) {
        ([], _) if call.stdin == Stdin::None => {}
        ([], _) => standard_input(shell, call),
        (_, Some(text)) => shell.script(&Word::known(text, call.range.clone())),
        (_, None) => {
            shell.unknown("shell", "the command on the other machine is not known", call.range.clone())
        }
    });
    known
}

fn watch(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "bceghprtvwxC",
        valued: "nq",
        optional: "d",
        long: &[
            "beep",
            "color",
            "no-color",
            "errexit",
            "chgexit",
            "no-title",
            "exec",
            "differences",
            "precise",
        ],
        long_valued: &["interval", "equexit"],
    };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    let words = rest(call, &options);
    if options.has(&["x", "exec"]) {
        shell.run(words, call.range.clone());
    } else {
        let text = joined(words)
            .map_or_else(|| Word::unknown(call.range.clone()), |text| Word::known(text, call.range.clone()));
        shell.script(&text);
    }
    known
}

fn parallel(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "0kquvtmXd",
        valued: "jNnLPIaSC",
        long: &[
            "bar",
            "dry-run",
            "keep-order",
            "line-buffer",
            "lb",
            "will-cite",
            "no-notice",
            "eta",
            "pipe",
            "null",
        ],
        long_valued: &[
            "jobs", "max-args", "colsep", "delay", "timeout", "retries", "halt", "arg-file", "tag",
        ],
        ..Spec::default()
    };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options) && !options.has(&["S"]);
    let words = rest(call, &options);
    let end = words.iter().position(|word| word.shape.starts_with(":::")).unwrap_or(words.len());
    let command = words.get(..end).unwrap_or_default();
    match command {
        [] => shell.unknown("shell", "the commands come from somewhere else", call.range.clone()),
        [only] if only.shape.contains([' ', ';', '|', '&']) => {
            // Each value stands for `{}`; a variable that nothing set is just as unknown.
            let text = only.value.as_ref().map(|text| text.replace("{}", "\"$1\""));
            shell.script(&Word { value: text, ..only.clone() });
        }
        _ => {
            let mut words = command.to_vec();
            let mut marked = false;
            for word in words.iter_mut().filter(|word| word.shape.contains('{')) {
                *word = Word::unknown(word.range.clone());
                marked = true;
            }
            if !marked {
                words.push(Word::unknown(call.range.clone()));
            }
            shell.run(&words, call.range.clone());
        }
    }
    known
}

fn flock(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec { flags: "sxeunFo", valued: "wE", optional: "", long: LONG, long_valued: LONG_VALUED };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    let Some((file, command)) = rest(call, &options).split_first() else { return known };
    if command.is_empty() {
        return known;
    }
    shell.path(Verb::Write, file);
    match command {
        [flag, text, ..] if matches!(flag.literal(), Some("-c" | "--command")) => shell.script(text),
        words => shell.run(words, call.range.clone()),
    }
    known
}

fn chroot(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec { long: &["skip-chdir"], long_valued: &["userspec", "groups"], ..Spec::default() };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    let Some((root, command)) = rest(call, &options).split_first() else { return known };
    shell.path(Verb::Execute, root);
    shell.privileged(|shell| shell.remote(|shell| shell.run(command, call.range.clone())));
    known
}

fn script(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let spec = Spec {
        flags: "aefqVhr",
        valued: "cBIOTmoE",
        optional: "t",
        long: &["append", "flush", "quiet", "return", "force"],
        long_valued: &["command", "log-io", "log-in", "log-out", "log-timing"],
    };
    let options = Options::read(call.args, &spec);
    let known = check(shell, call, &options);
    for text in options.values(&["c", "command"]) {
        shell.script(text);
    }
    for file in options.values(&["B", "I", "O", "T", "log-io", "log-in", "log-out", "log-timing"]) {
        shell.path(Verb::Write, file);
    }
    match rest(call, &options).split_first() {
        Some((file, command)) => {
            shell.path(Verb::Write, file);
            shell.run(command, call.range.clone());
        }
        None => shell.path(Verb::Write, &Word::known("typescript", call.range.clone())),
    }
    known
}

/// Wrappers with too many options to know all: the command is read where it seems to start.
fn odd_wrapper(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    shell.unknown(call.program, "its options are not followed", call.range.clone());
    let start = call.args.iter().position(|word| !word.shape.starts_with('-')).unwrap_or(call.args.len());
    shell.run(call.args.get(start..).unwrap_or_default(), call.range.clone());
    false
}
