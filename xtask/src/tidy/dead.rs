//! Public functions and constants that no code uses.
//!
//! The compiler finds private ones. A public item counts as used when its name stands anywhere in code besides its
//! definition, tests and comments aside: this misses dead items that share a name, and accuses none that live.

use std::collections::{BTreeMap, BTreeSet};

use super::Files;

/// What only tests use, and has to be public since they are in another crate or file.
const FOR_TESTS: [(&str, &str); 11] = [
    ("as_with_landlock", "shows what a level holds on older kernels"),
    ("check_root", "holds a whole log to its root, tile by tile"),
    ("degraded", "says which contracts a repair has broken"),
    ("forked_leaves", "a way to show a fork that the commands do not need"),
    ("forked_roots", "a way to show a fork that the commands do not need"),
    ("guards_of", "holds the pages of controls to the catalogue of guards"),
    ("idle_processes", "finds the workers whose memory is measured"),
    ("recover_blocking", "recovers at a moment of the test's choice"),
    ("with_names", "names of tests lead to servers on loopback, which no name server says"),
    ("writer_id", "finds the lock of a writer"),
    ("ARGUMENTS_BYTES_MIN", "the smallest call of the benchmarks"),
];

/// This file, whose list is no use.
const LIST: &str = "xtask/src/tidy/dead.rs";

/// Every public item without a use.
pub(super) fn check(files: &Files) -> Vec<String> {
    let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
    let mut tested = BTreeSet::new();
    let mut defined = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs") && *path != LIST) {
        let (code, tests) = if is_test(path) { ("", text.as_str()) } else { apart(text) };
        tested.extend(words(tests));
        for word in words(code) {
            *uses.entry(word).or_default() += 1;
        }
        if path.starts_with("crates/") {
            defined.extend(definitions(code).map(|name| (path, name)));
        }
    }
    let mut problems = Vec::new();
    for (path, name) in defined {
        if uses.get(name) != Some(&1) {
            continue;
        }
        let listed = FOR_TESTS.iter().any(|(known, _)| *known == name);
        match (tested.contains(name), listed) {
            (false, false) => problems.push(format!("{path}: nothing uses `{name}`; remove it")),
            (true, false) => problems.push(format!(
                "{path}: only tests use `{name}`; remove it, or list it in `{LIST}` with a reason"
            )),
            (_, true) => {}
        }
    }
    let in_use = |name: &str| uses.get(name).is_some_and(|count| *count > 1);
    let unused = FOR_TESTS.iter().filter(|(name, _)| in_use(name));
    problems.extend(unused.map(|(name, _)| format!("{LIST}: `{name}` need not be listed")));
    problems
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs" || part == "stand_in.rs")
}

/// The code of a file, and the tests at its end.
fn apart(text: &str) -> (&str, &str) {
    text.find("#[cfg(test)]\nmod tests {").map_or((text, ""), |at| text.split_at(at))
}

/// The names in a text, comments aside.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    code.flat_map(move |line| line.split(move |letter| !is_part(letter))).filter(|word| !word.is_empty())
}

/// The names of public functions and constants, unless they are compiled for tests alone.
fn definitions(code: &str) -> impl Iterator<Item = &str> {
    let mut for_tests = false;
    code.lines().filter_map(move |line| {
        let line = line.trim_start();
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(doctest)]") {
            for_tests = true;
            return None;
        }
        if line.starts_with('#') || line.starts_with("//") {
            return None;
        }
        let skipped = std::mem::take(&mut for_tests);
        let rest = line.strip_prefix("pub ").or_else(|| {
            line.split_once("pub(").and_then(|(_, rest)| rest.split_once(") ").map(|(_, rest)| rest))
        })?;
        let mut words =
            words(rest).skip_while(|word| matches!(*word, "const" | "async" | "unsafe" | "static"));
        let (keyword, name) = (rest.split_whitespace().next()?, words.next()?);
        let name = if name == "fn" { words.next()? } else { name };
        let counts = rest.contains("fn ") || matches!(keyword, "const" | "static");
        (counts && !skipped).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    fn check(files: &[(&str, &str)]) -> Vec<String> {
        super::check(&files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn what_nothing_uses_is_reported() {
        let code = "pub fn used() {}\npub fn unused() {}\n/// `unused`\npub(crate) const SIZE: u8 = 1;\n";
        let other = "fn f() { used(); }\n// unused()\n";
        let problems = check(&[("crates/a/src/lib.rs", code), ("crates/b/src/lib.rs", other)]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("nothing uses `unused`") && problems[1].contains("`SIZE`"));
    }

    #[test]
    fn tests_are_no_use_and_code_for_tests_needs_none() {
        let code = "pub fn f() {}\n#[cfg(test)]\npub fn helper() {}\n#[cfg(test)]\nmod tests {\n f() }\n";
        let problems = check(&[("crates/a/src/lib.rs", code)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("only tests use `f`"), "{problems:?}");
        let used = check(&[("crates/a/src/lib.rs", code), ("xtask/src/main.rs", "fn m() { f() }")]);
        assert_eq!(used, Vec::<String>::new());
    }
}
