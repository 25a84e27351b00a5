//! Agent code that is arbitrary, mangled or hostile: no panic, no overflow, an answer.

use portcullis_core::bundle::Bundle;
use portcullis_core::effect::ResourceKind;
use proptest::prelude::*;

use crate::cases::{bundle, effects_of};
use crate::cpu_time;

/// The stack of a thread that Rust makes when nothing else is said.
const STACK_BYTES: usize = 2 << 20;

fn shop() -> Bundle {
    bundle(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/code/flow.toml"))
}

/// Words that programs are made of, so that arbitrary sequences of them often parse.
const WORDS: &[&str] = &[
    "t",
    "x",
    "open_table",
    "column",
    "pick",
    "ask",
    "'orders'",
    "'id'",
    "'{}=1'",
    "f'{x}'",
    "f'{t[\"a\"]!r:>{x}}'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "+",
    "%",
    "*",
    "**",
    "-",
    " if ",
    " else ",
    " for ",
    " in ",
    " lambda ",
    "not ",
    "\n",
    "\n    ",
    "\n        ",
    "def f(x):",
    "return ",
    "while x:",
    "for x in t:",
    "if x:",
    "else:",
    "try:",
    "except:",
    "finally:",
    "break",
    "continue",
    "class C:",
    "yield x",
    "await ",
    ":=",
    "with t as x:",
    "import os",
    "os.system",
    "match x:",
    "case _:",
    "x.append",
    "x[0]",
    "x['a']",
    ".format",
    "global x",
    "print",
    "1",
    "None",
    "t.iloc",
    "[::2]",
    "@",
    "del x",
    "x += 1",
    "'\\",
    "\"\"\"",
    "#",
    "\\\n",
    "é",
    "\u{0}",
    ";",
    "exec",
    "'column(t, x)'",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_has_an_answer(text in ".{0,200}") {
        effects_of("python", &text, &shop());
    }

    #[test]
    fn any_words_have_an_answer(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        effects_of("python", &words.concat(), &shop());
    }

    #[test]
    fn mangled_programs_have_an_answer(
        which in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        word in prop::sample::select(WORDS),
    ) {
        let corpus = include_str!("../cases/code/flow.md");
        let programs: Vec<&str> =
            corpus.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let program = which.get(&programs);
        let places: Vec<usize> = program.char_indices().map(|(at, _)| at).collect();
        let (from, to) = (*cut.get(&places), *other.get(&places));
        let (before, _) = program.split_at(from.min(to));
        let (_, after) = program.split_at(from.max(to));
        let mangled = format!("{before}{word}{after}");
        effects_of("python", &mangled, &shop());
    }
}

/// Texts that nest or repeat without end are refused or followed within bounds, on an ordinary stack.
#[test]
fn hostile_texts_end() {
    let many = 20_000;
    let texts = [
        "(".repeat(many),
        format!("x = {}1{}", "(".repeat(60), ")".repeat(60)),
        format!("x = {}1", "-".repeat(250)),
        format!("x = {}1", "not ".repeat(250)),
        format!("x = a{}", ".b".repeat(120)),
        format!("x = a{}", "()".repeat(120)),
        format!("x = 1{}", " + 1".repeat(250)),
        format!("x = {}1", "lambda: ".repeat(200)),
        format!("x = {}1", "1 if a else ".repeat(120)),
        format!("x = {}1{}", "f(".repeat(30), ")".repeat(30)),
        (0..60).map(|depth| format!("{}for x in t:\n", " ".repeat(depth))).collect::<String>()
            + &" ".repeat(60)
            + "x = x + 1",
        (0..40).map(|depth| format!("{}while x:\n", " ".repeat(depth))).collect::<String>()
            + &" ".repeat(40)
            + "x = 'a' + x",
        "x = []\nx.append(x)\nprint(x)\n".repeat(2_000),
        "def f(x):\n    return f(f(x))\nf(1)\n".to_owned(),
        "def f(x):\n    return g(x, x)\ndef g(x, y):\n    return f(x + y)\nf('a')\n".to_owned(),
        format!("x = 'a'\n{}", "x = x + x\n".repeat(60)),
        format!("x = [1]\n{}", "x = x + x\n".repeat(60)),
        format!("x = 'a'\nfor y in ['b', 'c']:\n{}", "    x = x + y if y else y + x\n".repeat(60)),
        format!("x = {{}}\n{}", "x['a'] = x\n".repeat(500)),
        "class A:\n    def __init__(self):\n        self.a = A()\nA()\n".to_owned(),
        "class A(B): pass\nclass B(A): pass\nclass A(B): pass\nA().x()\n".to_owned(),
        "exec(\"exec('exec(x)')\")\n".to_owned(),
        format!("x = 1{}", " if x else 2".repeat(80)),
        format!("match x:\n    case {}1{}:\n        pass\n", "[".repeat(50), "]".repeat(50)),
        format!("f'{}1{}'", "{f\"{".repeat(10), "}\"}".repeat(10)),
        format!("'{}'.format(1)", "{".repeat(5_000)),
        format!("'{}' % 1", "%(".repeat(5_000)),
        format!("column(open_table('orders'), '{}')", "a,".repeat(5_000)),
        format!("pick(open_table('orders'), '{}')", "max(".repeat(5_000)),
    ];
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let bundle = shop();
        for text in &texts {
            let (effects, took) = cpu_time::of(|| effects_of("python", text, &bundle));
            assert!(
                took.as_secs() < 20,
                "{}…: {took:?}, {} effects",
                text.chars().take(60).collect::<String>(),
                effects.len()
            );
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn what_is_too_long_or_no_code_is_unknown() {
    let bundle = shop();
    for text in ["x = (", "the answer, in prose.", &"x = 1\n".repeat(50_000), &"(".repeat(100)] {
        let effects = effects_of("python", text, &bundle);
        assert_eq!(effects.len(), 1);
        assert_eq!(effects[0].resource.kind, ResourceKind::Unknown);
    }
    assert!(effects_of("python", "", &bundle).is_empty());
}
