//! Programs that run other programs.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::commands::opt::{Opt, attached, flags, values};
use super::commands::options::Parsed;
use super::environment::{self, Influence};
use super::interpreter::{Call, Input, Interpreter, Stdin};
use super::state::Value;
use super::word::{Gaps, Word, joined};
use super::{assignment, find};

/// A program that runs the words after its own options.
struct Plain {
    name: &'static str,
    options: &'static [Opt],
    /// Words of its own between options and command.
    operands: usize,
}

const fn plain(name: &'static str, options: &'static [Opt], operands: usize) -> Plain {
    Plain { name, options, operands }
}

/// Long options of them all.
const LONG: &[Opt] = &[
    flags(
        "--foreground --preserve-status --verbose --wait --fork --ctty --quiet --portability --append --no-buffer --shared --exclusive --nonblock --close --no-fork --group --follow-forks --summary-only --background",
    ),
    values(
        "--kill-after --signal --adjustment --class --classdata --input --output --error --format --timeout --wait-time --interval",
    ),
];

const PLAIN: &[Plain] = &[
    plain("nohup", &[], 0),
    plain("nice", &[flags("-0 -1 -2 -3 -4 -5 -6 -7 -8 -9"), values("-n")], 0),
    plain("ionice", &[flags("-t"), values("-c -n")], 0),
    plain("time", &[flags("-a -p -v -q -l -h"), values("-f -o")], 0),
    plain("timeout", &[flags("-v -f -p"), values("-k -s")], 1),
    plain("gtimeout", &[flags("-v -f -p"), values("-k -s")], 1),
    plain("stdbuf", &[values("-i -o -e")], 0),
    plain("setsid", &[flags("-c -f -w")], 0),
    plain(
        "strace",
        &[
            flags("-c -C -d -D -f -F -h -i -k -q -r -t -T -v -V -x -y -z -Z"),
            values("-a -b -e -E -I -o -O -p -P -s -S -u -U -X --env"),
        ],
        0,
    ),
    plain(
        "ltrace",
        &[flags("-b -c -C -f -h -i -L -r -S -t -T -V"), values("-a -A -D -e -F -l -n -o -p -s -u -w -x")],
        0,
    ),
    plain("taskset", &[flags("-a -c")], 1),
    plain("chrt", &[flags("-a -b -d -f -i -o -r -m -R -v"), values("-T -P -D")], 1),
    plain("unbuffer", &[flags("-p")], 0),
    plain("chronic", &[flags("-v -e")], 0),
    plain("caffeinate", &[flags("-d -i -s -u -m"), values("-t -w")], 0),
    plain("xvfb-run", &[flags("-a -h -l"), values("-e -f -n -p -s -w")], 0),
    plain("dbus-run-session", &[], 0),
    plain("proxychains", &[flags("-q"), values("-f")], 0),
    plain("proxychains4", &[flags("-q"), values("-f")], 0),
    plain("torsocks", &[], 0),
    plain("ccache", &[], 0),
    plain("sccache", &[], 0),
    plain("busybox", &[], 0),
    plain("toybox", &[], 0),
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
            let options = Parsed::before_words(call, &[wrapper.options, LONG]);
            let known = check(shell, call, &options);
            for file in
                options.given(&["-o", "--output"]).filter(|_| matches!(name, "time" | "strace" | "ltrace"))
            {
                output(shell, name, file);
            }
            for word in options.given(&["-E", "--env"]).filter(|_| name == "strace") {
                set_variable(shell, word);
            }
            shell.run(options.rest(wrapper.operands), call.range.clone());
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
fn check(shell: &mut Interpreter<'_, '_>, call: &Call<'_>, options: &Parsed<'_>) -> bool {
    if options.unlisted {
        shell.unknown(call.program, "an option is not known", call.range.clone());
    }
    !options.unlisted
}

/// Splits `NAME=value` words off a command.
fn assignments(words: &[Word]) -> (&[Word], &[Word]) {
    let count = words.iter().take_while(|word| assignment::split(&word.shape).is_some()).count();
    words.split_at_checked(count).unwrap_or((&[], words))
}

const SUDO: &[Opt] = &[
    flags(
        "-A -b -B -E -e -H -i -K -k -l -n -P -S -s -V -v -N --askpass --background --preserve-env --edit --set-home --login --non-interactive --stdin --shell --validate --reset-timestamp --list --version --help --remove-timestamp",
    ),
    values(
        "-C -D -g -h -p -R -r -T -t -U -u --user --group --chdir --chroot --prompt --host --role --type --close-from --command-timeout --other-user",
    ),
];
const DOAS: &[Opt] = &[flags("-L -n -s"), values("-a -C -u")];

fn sudo(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let listed = if call.program == "doas" { DOAS } else { SUDO };
    let options = Parsed::before_words(call, &[listed]);
    let known = check(shell, call, &options);
    let words = options.operands.as_slice();
    if call.program == "sudoedit" || options.has_any(&["-e", "--edit"]) {
        shell.privileged(|shell| {
            for word in words {
                shell.path(Verb::Write, word);
            }
        });
        return known;
    }
    let shells = options.has_any(&["-s", "--shell", "-i", "--login"]);
    shell.privileged(|shell| {
        shell.subshell(|shell| {
            if let Some(folder) = options.given(&["-D", "--chdir"]).next() {
                shell.set_directory(folder);
            }
            let (set, words) = assignments(words);
            environment_of(shell, set);
            if shells && words.is_empty() {
                standard_input(shell, call);
            } else if options.has_any(&["-R", "--chroot"]) {
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

const SU: &[Opt] = &[
    flags("-l -m -p -f -P -h --login --preserve-environment --pty --disable-internal-agent --keep-cwd"),
    values("-c -g -G -s -u -w -T --command --group --shell --user --session-command"),
];

fn su(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[SU]);
    let mut known = check(shell, call, &options);
    let mut words: Vec<Word> = options.operands.clone();
    let mut scripts: Vec<Word> = options.given(&["-c", "--command", "--session-command"]).cloned().collect();
    // `su root -c X`, `su - root -c X`: options may follow.
    while let Some(at) = words.iter().position(|word| matches!(word.literal(), Some("-c" | "--command"))) {
        scripts.extend(words.get(at + 1).cloned());
        words.drain(at..words.len().min(at + 2));
    }
    let runs = call.program == "pkexec" || options.has_any(&["-u", "--user"]);
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

const ENV: &[Opt] = &[
    flags("-i -0 -v --ignore-environment --null --debug --version --help"),
    values("-u -C -S -P --unset --chdir --split-string"),
];

fn env(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[ENV]);
    let mut known = check(shell, call, &options);
    let words = options.operands.as_slice();
    let mut split = Vec::new();
    for text in options.given(&["-S", "--split-string"]) {
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
        if let Some(folder) = options.given(&["-C", "--chdir"]).next() {
            shell.set_directory(folder);
        }
        if options.has("-P") {
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

const XARGS: &[Opt] = &[
    flags(
        "-0 -r -t -x -p -o --null --no-run-if-empty --verbose --interactive --exit --open-tty --replace --eof --max-lines",
    ),
    values(
        "-a -E -I -L -n -P -s -d -J -R -S --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var",
    ),
    attached("-i -e -l"),
];

fn xargs(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[XARGS]);
    let known = check(shell, call, &options);
    for file in options.given(&["-a", "--arg-file"]) {
        shell.path(Verb::Read, file);
    }
    let mark = options.given(&["-I", "-i", "--replace", "-J"]).next().map(|word| word.shape.clone());
    let mark = mark.or_else(|| options.has_any(&["-i", "--replace"]).then(|| "{}".to_owned()));
    let command = options.operands.as_slice();
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
fn arguments(shell: &Interpreter<'_, '_>, call: &Call<'_>, options: &Parsed<'_>) -> Vec<Word> {
    if let Input::Names(names) = &shell.input
        && !options.has_any(&["-a", "--arg-file"])
    {
        let mut words = names.words.clone();
        // A name with a blank or an end of line in it is read as several.
        if !(names.zero && options.has_any(&["-0", "--null"])) {
            words.push(Word::unknown(call.range.clone()));
        }
        return words;
    }
    let plain =
        !options.has_any(&["-a", "--arg-file", "-0", "--null", "-d", "--delimiter", "-L", "-l", "-E"]);
    match call.stdin {
        Stdin::Text(text) if plain && !text.contains(['\\', '\'', '"']) => {
            text.split_whitespace().map(|word| Word::known(word, call.range.clone())).collect()
        }
        _ => vec![Word::unknown(call.range.clone())],
    }
}

const SSH: &[Opt] = &[
    flags("-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y"),
    values("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w"),
];

fn ssh(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[SSH]);
    let mut known = check(shell, call, &options);
    for file in options.given(&["-i", "-F"]) {
        shell.path(Verb::Read, file);
    }
    // Settings can name commands; a provider of keys is a library.
    for file in options.given(&["-F", "-I"]) {
        shell.path(Verb::Execute, file);
    }
    for file in options.given(&["-E"]) {
        shell.path(Verb::Write, file);
    }
    for option in options.given(&["-o"]) {
        let (name, value) = option.shape.split_once(['=', ' ']).unwrap_or((&option.shape, ""));
        if name.to_ascii_lowercase().ends_with("command") {
            shell.script(&Word::known(value.trim(), option.range.clone()));
        }
        known &= option.value.is_some();
    }
    let words = options.operands.as_slice();
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

const WATCH: &[Opt] = &[
    flags(
        "-b -c -e -g -h -p -r -t -v -w -x -C --beep --color --no-color --errexit --chgexit --no-title --exec --differences --precise",
    ),
    values("-n -q --interval --equexit"),
    attached("-d"),
];

fn watch(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[WATCH]);
    let known = check(shell, call, &options);
    let words = options.operands.as_slice();
    if options.has_any(&["-x", "--exec"]) {
        shell.run(words, call.range.clone());
    } else {
        let text = joined(words)
            .map_or_else(|| Word::unknown(call.range.clone()), |text| Word::known(text, call.range.clone()));
        shell.script(&text);
    }
    known
}

const PARALLEL: &[Opt] = &[
    flags(
        "-0 -k -q -u -v -t -m -X -d --bar --dry-run --keep-order --line-buffer --lb --will-cite --no-notice --eta --pipe --null",
    ),
    values(
        "-j -N -n -L -P -I -a -S -C --jobs --max-args --colsep --delay --timeout --retries --halt --arg-file --tag",
    ),
];

fn parallel(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[PARALLEL]);
    let known = check(shell, call, &options) && !options.has("-S");
    let words = options.operands.as_slice();
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

const FLOCK: &[Opt] = &[flags("-s -x -e -u -n -F -o"), values("-w -E")];

fn flock(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[FLOCK, LONG]);
    let known = check(shell, call, &options);
    let Some((file, command)) = options.operands.split_first() else { return known };
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

const CHROOT: &[Opt] = &[flags("--skip-chdir"), values("--userspec --groups")];

fn chroot(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[CHROOT]);
    let known = check(shell, call, &options);
    let Some((root, command)) = options.operands.split_first() else { return known };
    shell.path(Verb::Execute, root);
    shell.privileged(|shell| shell.remote(|shell| shell.run(command, call.range.clone())));
    known
}

const SCRIPT: &[Opt] = &[
    flags("-a -e -f -q -V -h -r --append --flush --quiet --return --force"),
    values("-c -B -I -O -T -m -o -E --command --log-io --log-in --log-out --log-timing"),
    attached("-t"),
];

fn script(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[SCRIPT]);
    let known = check(shell, call, &options);
    for text in options.given(&["-c", "--command"]) {
        shell.script(text);
    }
    for file in options.given(&["-B", "-I", "-O", "-T", "--log-io", "--log-in", "--log-out", "--log-timing"])
    {
        shell.path(Verb::Write, file);
    }
    match options.operands.split_first() {
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
