//! Shell text of any shape: read within bounds of stack and time, without panics.

use std::time::Duration;

use portcullis_core::bundle::EffectSettings;
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings, shell};

use crate::cpu_time;

fn effects(text: &str) -> Effects {
    let settings = EffectSettings::default();
    let surroundings = Surroundings {
        settings: &settings,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let mut effects = Effects::none();
    shell::read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/command"));
    effects
}

/// On a stack of the size that threads have.
fn on_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

/// What nests: a name, what opens it, what is inside, what closes it.
const NESTS: &[(&str, &str, &str, &str)] = &[
    ("subshells", "(", "a", ")"),
    ("subshells apart", "( ", "a", " )"),
    ("groups", "{ ", "a;", " }"),
    ("substitutions", "$(", "a", ")"),
    ("quoted substitutions", "\"$(", "a", ")\""),
    ("arithmetic", "$((", "1", "))"),
    ("arithmetic commands", "((", "1", "))"),
    ("old arithmetic", "$[", "1", "]"),
    ("parameters", "${a:-", "a", "}"),
    ("quoted parameters", "\"${a:-", "a", "}\""),
    ("subscripts", "a[", "1", "]"),
    ("assigned subscripts", "a[", "1", "]=1"),
    ("braces", "{a,", "b", "}"),
    ("globs", "@(", "a", ")"),
    ("process substitutions", "<(", "a", ")"),
    ("process substitutions of cat", "cat <(", "a", ")"),
    ("if", "if ", "a", "; then b; fi"),
    ("then", "if a; then ", "b", "; fi"),
    ("while", "while ", "a", "; do b; done"),
    ("for", "for i in a; do ", "a", "; done"),
    ("for of two", "for i in a b; do ", "a", "; done"),
    ("for of unknown", "for i in $x; do ", "a", "; done"),
    ("case", "case a in a) ", "b", ";; esac"),
    ("case without end", "case a in a) ", "b", " ; esac"),
    ("coproc", "coproc ", "a", ""),
    ("functions", "f() { ", "a", "; }"),
    ("function words", "function f { ", "a", "; }"),
    ("not", "! ", "a", ""),
    ("tests", "[[ ", "a", " ]]"),
    ("tests in brackets", "[[ ( ", "a", " ) ]]"),
    ("backquotes", "`", "a", "`"),
    ("eval", "eval ", "a", ""),
    ("sudo", "sudo ", "a", ""),
    ("bash", "bash -c '", "a", "'"),
    ("time", "time ", "a", ""),
    ("dollar quotes", "$\"", "a", "\""),
    ("arrays", "a=(", "a", ")"),
];

/// What is repeated.
const REPEATS: &[&str] = &[
    "a|",
    "a;",
    "a&&",
    "a||",
    "a&",
    "a\n",
    "! ",
    "a ",
    "$a",
    "${a}",
    "$(a)",
    "`a`",
    "\"a\"",
    "'a'",
    "\\",
    "{a,b}",
    "{1..9}",
    "a=1;",
    "a=1 ",
    "a=$a$a;",
    ">a ",
    "<<a\n",
    "<<a ",
    "<a ",
    "[[ a && ",
    "f() { a; };",
    "f(){ f;f;};",
    "#",
    "~",
    "((a)) ",
    "(a)",
    "case",
    "a() ",
    "((",
    "))",
    ";;",
    "<(",
    "2>&1 ",
    "cd a;",
    "cd a||",
    "eval a;",
    "$'",
    "$'\\x41'",
    "\u{e9}",
    "X+=a;",
    "export A=1;",
    "!",
    "|",
    "&",
    "if a; then b; elif ",
];

/// Text that nests, repeats or stays open, some of it 256 KiB long.
fn hostile() -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    for &(name, open, middle, close) in NESTS {
        for depth in [8, 30, 60, 70, 1_000, 20_000] {
            let text = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            if text.len() <= 256 << 10 {
                texts.push((name, text));
            }
        }
        for depth in [5, 20, 60] {
            texts.push((name, format!("{}{middle}", open.repeat(depth))));
            texts.push((name, format!("{}fi{}", open.repeat(depth), close.repeat(depth))));
        }
        texts.push((name, open.repeat((256 << 10) / open.len())));
        texts.push((
            name,
            format!("{open}{middle}{close};")
                .repeat((256 << 10) / (open.len() + middle.len() + close.len() + 1)),
        ));
    }
    for repeat in REPEATS {
        texts.push(("repeated", repeat.repeat((256 << 10) / repeat.len())));
        texts.push(("repeated less", repeat.repeat(5_000)));
    }
    let doubling: String = (0..40).map(|n| format!("f{n}() {{ f{}; f{}; }}; ", n + 1, n + 1)).collect();
    texts.push(("functions that double", format!("{doubling}f0")));
    let doubling: String = (0..40).map(|n| format!("a{}=$a{n}$a{n}; ", n + 1)).collect();
    texts.push(("values that double", format!("a0=xxxxxxxx; {doubling} x $a40")));
    texts.push((
        "loops in loops",
        format!("{}a $i{}", "for i in 1 2 3 4 5 6 7 8 9; do ".repeat(12), "; done".repeat(12)),
    ));
    texts.push(("braces that multiply", format!("a {}", "{1,2,3,4}".repeat(12))));
    texts.push(("a fork bomb", ":(){ :|:& };:".to_owned()));
    texts.push((
        "a long sequence",
        "a {1..9999999999} {-9223372036854775808..9223372036854775807}".to_owned(),
    ));
    texts.push(("a large descriptor", "a 99999999999999999999>b".to_owned()));
    texts
}

#[test]
fn hostile_text_is_read_within_bounds() {
    // Without optimisation everything takes some twenty times longer.
    let limit = if cfg!(debug_assertions) { Duration::from_secs(20) } else { Duration::from_secs(1) };
    let verbose = std::env::var_os("VERBOSE").is_some();
    on_a_small_stack(move || {
        for (name, text) in hostile() {
            let length = text.len();
            if verbose {
                eprint!("{name} {length}:");
            }
            let ((), time) = cpu_time::of(|| drop(effects(&text)));
            if verbose {
                eprintln!(" {time:?}");
            }
            assert!(verbose || time < limit, "{name}, {length} bytes: {time:?}");
        }
    });
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_without_panic(text in ".{0,300}") {
        effects(&text);
    }

    #[test]
    fn what_looks_like_shell_is_read_without_panic(parts in proptest::collection::vec(part(), 0..40)) {
        let text = parts.concat();
        let found = effects(&text);
        for effect in found.iter() {
            let span = effect.span.as_ref().unwrap();
            proptest::prop_assert!(text.get(span.start..span.end).is_some(), "{effect} of {text:?}");
        }
    }
}

/// What scripts are made of; blanks are twice as likely.
const PARTS: &[&str] = &[
    "a",
    "rm",
    " ",
    " ",
    "\n",
    ";",
    "|",
    "&",
    "&&",
    "||",
    "(",
    ")",
    "{ ",
    " }",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "$",
    "${",
    "}",
    "if ",
    "then ",
    "fi",
    "for ",
    "in ",
    "do ",
    "done",
    "case ",
    "esac",
    ";;",
    "[[ ",
    " ]]",
    "((",
    "))",
    "<<E\n",
    "E\n",
    "<",
    ">",
    ">&",
    "2",
    "<(",
    "=",
    "X",
    "X=",
    "+=",
    "[",
    "]",
    "*",
    "~",
    "/",
    "{a,b}",
    "{1..3}",
    "$'",
    "#",
    "!",
    "eval ",
    "exec ",
    "sudo ",
    "bash -c ",
    "xargs ",
    "find . -exec ",
    "é",
    "$@",
    "${X:-",
    "${X/a/b}",
    "f() ",
    "function ",
    "env ",
    "cd ",
    "select ",
    "coproc ",
    "time ",
    "export ",
    "local ",
    "read ",
    "set -- ",
    "trap ",
    "declare -n ",
    "@(",
];

fn part() -> impl proptest::strategy::Strategy<Value = &'static str> {
    proptest::sample::select(PARTS)
}

/// Scripts of all cases: of one file after the other.
fn cases() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/shell");
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(path).unwrap();
            let blocks = text.split("```sh\n").skip(1);
            scripts.extend(blocks.map(|block| block.split("\n```").next().unwrap().to_owned()));
        }
    }
    scripts
}

#[test]
fn cases_have_distinct_syntax_trees() {
    let mut trees = std::collections::BTreeMap::new();
    for script in cases() {
        let options = brush_parser::ParserOptions::default();
        let program = brush_parser::Parser::new(script.as_bytes(), &options).parse_program();
        // Without places: blanks make no other tree.
        let tree = match program {
            Ok(program) => format!("{program:?}"),
            Err(_) => script.clone(),
        };
        let places = ["index: ", "line: ", "column: "];
        let words = tree.split([' ', ',']).scan(false, |skip, word| {
            let skipped = std::mem::replace(skip, places.contains(&format!("{word} ").as_str()));
            Some(if skipped { "" } else { word })
        });
        let tree: String = words.collect::<Vec<_>>().join(" ");
        if let Some(other) = trees.insert(tree, script.clone()) {
            panic!("two cases are one:\n{other}\n---\n{script}");
        }
    }
    assert!(trees.len() >= 300, "only {} cases", trees.len());
}
