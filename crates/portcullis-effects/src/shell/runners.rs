//! Programs that run text: shells and interpreters of other languages.

use std::rc::Rc;

use portcullis_core::effect::Verb;

use super::interpreter::{Call, Interpreter, Stdin};
use super::state::Value;
use super::word::Word;

/// An interpreter: the options that hold code, and those with another value.
struct Language {
    programs: &'static [&'static str],
    name: &'static str,
    code: &'static str,
    long_code: &'static [&'static str],
    valued: &'static str,
    /// Options after which it does nothing but say something about itself.
    harmless: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language {
        programs: &["python", "python2", "python3", "pypy", "pypy3", "ipython", "ipython3"],
        name: "python",
        code: "c",
        long_code: &[],
        valued: "mQWX",
        harmless: &["-V", "-VV", "--version", "-h", "--help"],
    },
    Language {
        programs: &["node", "nodejs"],
        name: "javascript",
        code: "ep",
        long_code: &["--eval", "--print"],
        valued: "rC",
        harmless: &["-v", "--version", "-h", "--help"],
    },
    Language {
        programs: &["perl"],
        name: "perl",
        code: "eE",
        long_code: &[],
        valued: "IMm",
        harmless: &["-v", "--version", "-V", "--help"],
    },
    Language {
        programs: &["ruby"],
        name: "ruby",
        code: "e",
        long_code: &[],
        valued: "IrCE",
        harmless: &["-v", "--version", "--help"],
    },
    Language {
        programs: &["php"],
        name: "php",
        code: "rBRE",
        long_code: &["--run"],
        valued: "cdftSz",
        harmless: &["-v", "--version", "-m", "-i", "--help"],
    },
    Language {
        programs: &["lua", "luajit", "lua5.3", "lua5.4"],
        name: "lua",
        code: "e",
        long_code: &[],
        valued: "l",
        harmless: &["-v"],
    },
    Language {
        programs: &["osascript", "Rscript", "julia", "elixir", "groovy", "racket", "tclsh", "scala", "guile"],
        name: "code",
        code: "eEc",
        long_code: &["--eval"],
        valued: "l",
        harmless: &["--version", "--help"],
    },
];

/// Runs a shell or an interpreter, or `None` if the program is none. Otherwise whether all that it does is known.
pub(super) fn run(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> Option<bool> {
    match call.program {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "rbash" | "ksh93" => {
            return Some(run_shell(shell, call));
        }
        "fish" | "csh" | "tcsh" | "pwsh" | "powershell" | "nu" | "xonsh" | "elvish" => {
            shell.unknown(call.program, "scripts of this shell are not read", call.range.clone());
            return Some(false);
        }
        _ => {}
    }
    let plain = call.program.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let named = |language: &&Language| {
        language.programs.contains(&call.program) || (plain == "python" && language.name == "python")
    };
    LANGUAGES.iter().find(named).map(|language| interpreter(shell, call, language))
}

fn run_shell(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let mut at = 0;
    let (mut commands, mut standard) = (false, false);
    while let Some(word) = call.args.get(at) {
        let Some(text) = word.literal() else {
            if !word.shape.starts_with(['-', '+']) {
                break;
            }
            shell.unknown("shell", "an option of a shell is not known", word.range.clone());
            at += 1;
            continue;
        };
        match text {
            "--" | "-" => {
                at += 1;
                break;
            }
            "--rcfile" | "--init-file" => {
                if let Some(file) = call.args.get(at + 1) {
                    shell.path(Verb::Execute, file);
                }
                at += 2;
            }
            "--version" | "--help" => return true,
            _ if text.starts_with("--") => at += 1,
            _ if text.starts_with(['-', '+']) => {
                commands |= text.starts_with('-') && text.contains('c');
                standard |= text.starts_with('-') && text.contains('s');
                // Each `o` among the letters takes a word: `-oc NAME TEXT`.
                at += 1 + text.matches(['o', 'O']).count();
            }
            _ => break,
        }
    }
    let operands = call.args.get(at..).unwrap_or_default();
    match operands.split_first() {
        Some((text, rest)) if commands => {
            let values = rest.iter().skip(1).map(Value::of).collect();
            shell_text(shell, call, text, Some(values))
        }
        Some((file, _)) if !standard => script_file(shell, call, file),
        _ if commands => true,
        _ => standard_input(shell, call),
    }
}

/// Text for a shell with its positional parameters.
fn shell_text(
    shell: &mut Interpreter<'_, '_>,
    call: &Call<'_>,
    text: &Word,
    values: Option<Vec<Value>>,
) -> bool {
    let odd = |text: &String| ["(e", "(+", "=("].iter().any(|mark| text.contains(mark));
    if call.program == "zsh" && text.value.as_ref().is_some_and(odd) {
        shell.unknown("shell", "globs of zsh can run commands", text.range.clone());
    }
    shell.script_with(text, values.map(Rc::new));
    text.value.is_some()
}

fn script_file(shell: &mut Interpreter<'_, '_>, call: &Call<'_>, file: &Word) -> bool {
    match file.shape.as_str() {
        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => standard_input(shell, call),
        path if path.starts_with("/dev/fd/") => {
            shell.unknown("shell", "the script comes from another program", file.range.clone());
            false
        }
        _ => {
            shell.program_file(file);
            false
        }
    }
}

fn standard_input(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    match call.stdin {
        Stdin::Text(text) => shell_text(shell, call, &Word::known(text, call.range.clone()), None),
        Stdin::Pipe | Stdin::File => {
            shell.unknown("shell", "the script comes from somewhere else", call.range.clone());
            false
        }
        Stdin::None => {
            shell.unknown("shell", "an interactive shell", call.range.clone());
            false
        }
    }
}

fn interpreter(shell: &mut Interpreter<'_, '_>, call: &Call<'_>, language: &Language) -> bool {
    let mut at = 0;
    let mut known = true;
    let (mut ran, mut more) = (false, false);
    while let Some(word) = call.args.get(at) {
        let text = word.shape.as_str();
        let next = call.args.get(at + 1);
        if !text.starts_with('-') || text == "-" || text == "--" {
            break;
        }
        if call.args.len() == 1 && word.literal().is_some_and(|text| language.harmless.contains(&text)) {
            return true;
        }
        at += 1;
        more |= text.starts_with("--") || word.value.is_none();
        if text.starts_with("--") {
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, _)| (name, Some(name.len() + 1)));
            if language.long_code.contains(&name) {
                let code = value.map_or_else(|| next.cloned(), |skip| Some(word.tail(skip)));
                known &= run_code(shell, call, language, code);
                at += usize::from(value.is_none());
                ran = true;
            }
            continue;
        }
        let cluster = text.char_indices().skip(1);
        for (offset, letter) in cluster {
            let after = offset + letter.len_utf8();
            let joined = (after < text.len()).then(|| word.tail(after));
            more |= language.valued.contains(letter);
            if language.code.contains(letter) {
                at += usize::from(joined.is_none());
                known &= run_code(shell, call, language, joined.or_else(|| next.cloned()));
                ran = true;
                break;
            }
            if letter == 'm' && language.name == "python" {
                let mut words: Vec<Word> = joined.into_iter().collect();
                words.extend(call.args.get(at..).unwrap_or_default().iter().cloned());
                shell.run(&words, call.range.clone());
                return known;
            }
            if language.valued.contains(letter) {
                at += usize::from(joined.is_none());
                break;
            }
        }
    }
    if ran { known } else { run_file(shell, call, language, call.args.get(at), more) }
}

/// Runs a file, or without one the standard input. `more` where options may name more that runs.
fn run_file(
    shell: &mut Interpreter<'_, '_>,
    call: &Call<'_>,
    language: &Language,
    file: Option<&Word>,
    more: bool,
) -> bool {
    match file {
        Some(file) if !matches!(file.shape.as_str(), "-" | "/dev/stdin" | "--") => {
            if file.shape.starts_with("/dev/fd/") {
                shell.unknown(language.name, "the code comes from another program", file.range.clone());
            } else {
                shell.program_file(file);
                shell.by_path &= !more;
            }
            false
        }
        _ => match call.stdin {
            Stdin::Text(text) => run_code(shell, call, language, Some(Word::known(text, call.range.clone()))),
            Stdin::Pipe | Stdin::File => {
                shell.unknown(language.name, "the code comes from somewhere else", call.range.clone());
                false
            }
            Stdin::None => {
                shell.unknown(language.name, "an interactive interpreter", call.range.clone());
                false
            }
        },
    }
}

fn run_code(
    shell: &mut Interpreter<'_, '_>,
    call: &Call<'_>,
    language: &Language,
    code: Option<Word>,
) -> bool {
    let code = code.unwrap_or_else(|| Word::unknown(call.range.clone()));
    shell.code(language.name, &code);
    language.name == "python" && code.value.is_some()
}
