//! What the shell does itself: variables, folders, evaluation.

use super::assignment;
use super::commands::environment;
use super::commands::opt::{Opt, flags, values};
use super::commands::options::Parsed;
use super::interpreter::{Call, Input, Interpreter, Printed, Stdin, Trap};
use super::state::{Meaning, Value};
use super::walk::Failure;
use super::word::{Gaps, Word, joined};
use portcullis_core::effect::Verb;

/// Most traps that one shell sets.
const TRAPS_MAX: usize = 64;

const WAIT: &[Opt] = &[flags("-n -f"), values("-p")];
/// `cd`, `pushd`.
const CD: &[Opt] = &[flags("-L -P -e -@ -n")];
/// `export` and all that declare variables.
const DECLARE: &[Opt] = &[flags("-a -A -f -F -g -i -I -l -n -r -t -u -x -p -c")];
const READ: &[Opt] = &[flags("-e -r -s -E"), values("-a -d -i -n -N -p -t -u")];
/// `mapfile`, `readarray`, `getopts`.
const MAPFILE: &[Opt] = &[flags("-e -r -E"), values("-a -d -i -n -N -p -t -u -O -s -C -c")];
const COMPGEN: &[Opt] =
    &[flags("-a -b -c -d -e -f -g -j -k -s -u -v"), values("-A -o -G -W -F -C -X -P -S -V")];
const EXEC: &[Opt] = &[flags("-c -l"), values("-a")];
/// `command`, `builtin`.
const COMMAND: &[Opt] = &[flags("-p -v -V")];

/// Runs a builtin, or `None` if the program is none. Otherwise whether all that it does is known.
pub(super) fn run(
    shell: &mut Interpreter<'_, '_>,
    call: &Call<'_>,
    input: &Input,
) -> Option<(bool, Failure)> {
    let args = call.args;
    match call.program {
        "test" | "[" | "let" | "unset" | "read" | "printf" | "declare" | "typeset" | "local" | "export"
        | "readonly" | "wait" | "getopts" | "mapfile" | "readarray" => evaluated_subscripts(shell, call),
        _ => {}
    }
    let known = match call.program {
        "dirs" => {
            // `dirs -c` forgets what is kept.
            if !call.args.is_empty() {
                shell.state.lose_directories();
            }
            true
        }
        ":" | "true" | "false" | "test" | "[" | "jobs" | "umask" | "ulimit" | "times" | "type" | "help"
        | "shopt" | "caller" | "logout" | "suspend" | "fg" | "bg" | "disown" => true,
        "compgen" => generate(shell, call),
        "wait" => {
            let options = Parsed::before_words(call, &[WAIT]);
            let names: Vec<Word> = options.given(&["-p"]).cloned().collect();
            names.iter().for_each(|name| shell.assign_unread(&name.shape, &name.range));
            true
        }
        "echo" | "printf" | "pwd" => {
            shell.output = printed(shell, call).map(Printed::Text);
            true
        }
        "cd" | "pushd" => return Some((true, change_directory(shell, call))),
        "popd" => return Some((true, go_back(shell, call))),
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(shell, call),
        "read" | "mapfile" | "readarray" | "getopts" => read(shell, call),
        "let" => {
            for word in args {
                shell.arithmetic(&word.shape.clone(), &word.range);
            }
            true
        }
        "unset" => unset(shell, args),
        "set" => {
            if args.is_empty() {
                print_variables(shell, call);
            }
            set(shell, args)
        }
        "shift" => shift(shell, args),
        "exit" | "return" | "break" | "continue" => leave(shell, call),
        "alias" => alias(shell, args),
        "unalias" => true,
        "hash" => {
            shell.state.tampered |= args.iter().any(|word| word.shape.starts_with("-p"));
            true
        }
        "eval" => eval(shell, call),
        "exec" | "command" | "builtin" => return Some(again(shell, call, input)),
        "source" | "." => source(shell, call),
        "trap" => trap(shell, args),
        "bind" | "complete" | "enable" | "fc" | "coproc" => {
            shell.unknown("shell", "this builtin can run text that is not followed", call.range.clone());
            shell.state.tampered |= call.program == "enable";
            false
        }
        _ => return None,
    };
    Some((known, None))
}

/// `test -v 'a[$(rm x)]'`: subscripts are evaluated though they are quoted.
fn evaluated_subscripts(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) {
    let runs =
        |word: &&Word| word.shape.contains('[') && (word.shape.contains("$(") || word.shape.contains('`'));
    if let Some(word) = call.args.iter().find(runs) {
        shell.unknown("shell", "a subscript is evaluated", word.range.clone());
    }
    // `unset 'a[x]'` evaluates the variable x.
    for word in call.args.iter().filter(|word| word.shape.contains('[')) {
        shell.evaluated_names(&word.shape.clone(), &word.range);
    }
}

/// What a command prints, where it is its words.
fn printed(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> Option<String> {
    match call.program {
        "pwd" => {
            let folder = shell.state.directory().filter(|folder| !folder.contains('*'));
            return folder.map(|folder| format!("{folder}\n"));
        }
        "printf" => {
            if let [flag, name, ..] = call.args
                && flag.literal() == Some("-v")
            {
                shell.assign_unread(&name.shape, &name.range);
                return None;
            }
            let (format, rest) = call.args.split_first()?;
            return match (format.literal()?, rest) {
                ("%s", [word]) => word.literal().map(ToOwned::to_owned),
                ("%s\\n", [word]) => word.literal().map(|text| format!("{text}\n")),
                (text, []) if !text.contains(['%', '\\']) => Some(text.to_owned()),
                (text, []) => {
                    let text = text.strip_suffix("\\n")?;
                    (!text.contains(['%', '\\'])).then(|| format!("{text}\n"))
                }
                _ => None,
            };
        }
        _ => {}
    }
    let (args, end) = match call.args.split_first() {
        Some((first, rest)) if first.literal() == Some("-n") => (rest, ""),
        Some((first, _)) if first.shape.starts_with('-') => return None,
        _ => (call.args, "\n"),
    };
    let text = joined(args)?;
    // Some shells decode backslashes here, some do not.
    (!text.contains('\\')).then(|| text + end)
}

fn change_directory(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> Failure {
    let options = Parsed::before_words(call, &[CD]);
    let before = shell.state.clone();
    match options.operands.first() {
        Some(word) if call.program == "cd" && word.literal() == Some("-") => shell.state.go_back(),
        Some(word) if call.program == "cd" => shell.set_directory(word),
        None if call.program == "cd" => {
            let home = vec![shell.home()];
            shell.state.enter(home);
        }
        // `pushd`, `pushd +2` and `pushd -n` move what is kept.
        Some(word) if call.args.len() == 1 && !word.shape.starts_with(['+', '-']) => {
            let directories = shell.directories_at(word);
            shell.state.enter_and_keep(directories);
        }
        _ => shell.state.lose_directories(),
    }
    Some(before)
}

fn go_back(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> Failure {
    let before = shell.state.clone();
    if call.args.is_empty() {
        shell.state.pop();
    } else {
        shell.state.lose_directories();
    }
    Some(before)
}

fn declare(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[DECLARE]);
    // References, numbers and changes of case give a variable another value than the text says.
    if options.unlisted || options.has_any(&["-n", "-i", "-l", "-u", "-c"]) {
        shell.state.forget_variables();
    }
    if options.operands.is_empty() && !options.has_any(&["-f", "-F"]) && call.program != "local" {
        // Without names they print all there are.
        print_variables(shell, call);
    }
    if options.has_any(&["-f", "-F"]) {
        // Functions that other shells will have.
        shell.state.tampered |= call.program == "export" || options.has("-x");
        return true;
    }
    let local = matches!(call.program, "local" | "declare" | "typeset");
    for word in &options.operands {
        let Some(found) = assignment::split(&word.shape) else {
            if options.has("-p") {
                tell_variable(shell, word);
            }
            if local && options.has("-n") {
                shell.unknown("shell", "which variable a name stands for is not known", word.range.clone());
            }
            if word.value.is_none() {
                shell.state.forget_all();
            // Outside of functions it keeps the value that it had from the environment.
            } else if local && !shell.state.assigns(&word.shape) && !environment::is_secret(&word.shape) {
                shell.state.assign(&word.shape, Value::Unknown);
            }
            continue;
        };
        let value = match word.literal() {
            Some(_) if found.append || found.index.is_some() => Value::Unknown,
            Some(_) => Value::Text(found.value.to_owned()),
            None if found.value == "*" && word.gaps == Gaps::Any => Value::Unknown,
            None => Value::Shape(found.value.to_owned(), word.gaps),
        };
        shell.influence(found.name, &value, &word.range);
        if options.has("-n") {
            // What is assigned to the reference later is assigned to the other, and its value is the other's.
            tell_variable(shell, &Word::known(found.value, word.range.clone()));
            shell.assign_unread(found.value, &word.range);
        }
        shell.state.assign(found.name, value);
        if local {
            shell.locals.push(found.name.to_owned());
        }
    }
    true
}

fn read(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[if call.program == "read" { READ } else { MAPFILE }]);
    if options.has("-C") {
        shell.unknown("shell", "a callback is not followed", call.range.clone());
    }
    let arrays: Vec<String> = options.given(&["-a"]).map(|word| word.shape.clone()).collect();
    let operands = options.operands.iter().map(|word| word.shape.clone());
    for name in operands.chain(arrays).chain(["REPLY", "MAPFILE", "OPTARG"].map(str::to_owned)) {
        shell.assign_unread(&name, &call.range);
    }
    true
}

fn unset(shell: &mut Interpreter<'_, '_>, args: &[Word]) -> bool {
    for word in args {
        let name = word.shape.as_str();
        if shell.state.meaning(name).is_some() {
            shell.state.define(name, Some(Meaning::Unclear));
        }
        if word.value.is_none() {
            shell.state.forget_variables();
        } else if !name.starts_with('-') {
            shell.state.assign(name, Value::Unset);
        }
    }
    true
}

fn shift(shell: &mut Interpreter<'_, '_>, args: &[Word]) -> bool {
    let count = args.first().map_or(Some(1), |word| word.literal().and_then(|text| text.parse().ok()));
    shell.state.positional = match (shell.state.positional.take(), count) {
        (Some(values), Some(count)) => {
            Some(values.get(count..).map(<[_]>::to_vec).unwrap_or_default().into())
        }
        _ => None,
    };
    true
}

/// What follows does not run, here or, of all but `exit`, in the function or loop.
fn leave(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let state = shell.state.clone();
    if call.program != "exit" {
        shell.escapes = Some(match shell.escapes.take() {
            Some(escaped) => escaped.join(state),
            None => state,
        });
    }
    // With more than one word they fail, and what follows runs.
    shell.state.dead = call.args.len() <= 1;
    true
}

fn set(shell: &mut Interpreter<'_, '_>, args: &[Word]) -> bool {
    let first = args.first().map(|word| word.shape.as_str());
    let values = match first {
        None => return true,
        Some("--") => args.get(1..).unwrap_or_default(),
        Some(text) if text.starts_with(['-', '+']) => {
            // `set -e a b` sets them too; rare enough not to follow.
            if args.len() > 2 {
                shell.state.positional = None;
            }
            return true;
        }
        Some(_) => args,
    };
    // A word that may be several, or none, moves all others.
    let known: Option<Vec<Value>> =
        values.iter().map(|word| word.literal().map(|text| Value::Text(text.to_owned()))).collect();
    shell.state.positional = known.map(Into::into);
    true
}

/// The value of a variable is told, which may be a credential of the environment.
fn tell_variable(shell: &mut Interpreter<'_, '_>, word: &Word) {
    let name = &word.shape;
    if !shell.state.assigns(name) && environment::is_secret(name) {
        environment::read(Verb::Read, word, shell);
    }
}

/// The values of all variables are printed, those of the environment among them.
fn print_variables(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) {
    environment::read(Verb::Read, &Word::known("*", call.range.clone()), shell);
}

/// `compgen` completes words, and can run what finds them.
fn generate(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let options = Parsed::before_words(call, &[COMPGEN]);
    let scripts: Vec<Word> = options.given(&["-C"]).cloned().collect();
    scripts.iter().for_each(|script| shell.script(script));
    if let Some(script) = scripts.first() {
        // It gets further words, empty ones among them.
        shell.unknown("shell", "a command that completes words gets more of them", script.range.clone());
    }
    let expands = |word: &Word| word.shape.contains(['$', '`']) || word.value.is_none();
    if options.has("-F") || options.given(&["-W"]).any(expands) {
        shell.unknown("shell", "what completes words is not followed", call.range.clone());
    }
    if options.has_any(&["-v", "-e"]) || options.given(&["-A"]).any(|kind| kind.shape.contains("variable")) {
        print_variables(shell, call);
    }
    !options.unlisted
}

fn alias(shell: &mut Interpreter<'_, '_>, args: &[Word]) -> bool {
    for word in args {
        match word.shape.split_once('=') {
            Some((name, text)) => {
                // After an alias that ends with a blank, the next word may be one too.
                let plain = word.value.is_some() && !text.ends_with([' ', '\t']);
                let meaning = if plain { Meaning::Alias(text.to_owned()) } else { Meaning::Unclear };
                shell.state.define(name, Some(meaning));
            }
            // Some shells have aliases for words anywhere in a command.
            None if word.shape.starts_with('-') && word.shape != "-p" => shell.state.tampered = true,
            None if word.value.is_none() => shell.state.tampered = true,
            None => {}
        }
    }
    true
}

fn eval(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    match joined(call.args) {
        Some(text) => {
            shell.text(&text, &call.range);
            true
        }
        None => {
            shell.unknown("shell", "the text that is evaluated is not known", call.range.clone());
            shell.state.forget_all();
            false
        }
    }
}

/// `exec X…`, `command X…`, `builtin X…`.
fn again(shell: &mut Interpreter<'_, '_>, call: &Call<'_>, input: &Input) -> (bool, Failure) {
    let options = Parsed::before_words(call, &[if call.program == "exec" { EXEC } else { COMMAND }]);
    if options.has_any(&["-v", "-V"]) {
        return (true, None);
    }
    if options.unlisted {
        shell.unknown("shell", "an option is not known", call.range.clone());
    }
    let words = &options.operands;
    let Some((first, args)) = words.split_first() else { return (true, None) };
    if first.literal().is_none() {
        shell.unknown("shell", "which program runs is not known", first.range.clone());
        return (false, None);
    }
    let mut failure = None;
    shell.deeper(&call.range.clone(), |shell| {
        failure = shell.program_words(first, args, call.range.clone(), input.clone());
    });
    (true, failure)
}

fn source(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    match call.args.first() {
        Some(word) if word.literal() == Some("/dev/stdin") => match call.stdin {
            Stdin::Text(text) => {
                shell.text(text, &call.range);
                return true;
            }
            _ => shell.unknown("shell", "the script comes from another program", call.range.clone()),
        },
        Some(word) if word.shape.starts_with("/dev/fd/") => {
            shell.unknown("shell", "the script comes from another program", word.range.clone());
        }
        // A virtual environment of Python puts its own tools first, and that is all.
        Some(word) if word.literal().is_some_and(|path| path.ends_with("/bin/activate")) => {
            shell.path(Verb::Execute, word);
            return true;
        }
        Some(word) => shell.path(Verb::Execute, word),
        None => {}
    }
    shell.state.forget_all();
    false
}

/// Puts text off until the shell ends, when variables that are set until then hold what nobody knows now.
fn trap(shell: &mut Interpreter<'_, '_>, args: &[Word]) -> bool {
    let args = match args.split_first() {
        Some((first, rest)) if first.literal() == Some("--") => rest,
        _ => args,
    };
    match args.first() {
        Some(word) if args.len() > 1 && !matches!(word.literal(), Some("" | "-" | "-l" | "-p")) => {
            if shell.traps.len() >= TRAPS_MAX {
                shell.unknown("shell", "too many traps are set", word.range.clone());
                return false;
            }
            match &word.value {
                Some(text) => {
                    let (state, changes) = (shell.state.clone(), shell.state.changes());
                    let trap = Trap { text: text.clone(), range: word.range.clone(), state, changes };
                    shell.traps.push(trap);
                }
                None => shell.unknown("shell", "the text of a trap is not known", word.range.clone()),
            }
        }
        _ => {}
    }
    true
}
