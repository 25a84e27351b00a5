//! A guard comes with a Markdown test that shows it firing and one that shows it staying silent.
//!
//! A guard's file is one under `crates/portcullis-guards/src/` that implements the trait; its tests stand in
//! `crates/portcullis-guards/tests/cases/`, in a file of the same name, under headings that say `fires` and `silent`.

use super::Files;

const SOURCES: &str = "crates/portcullis-guards/src/";
const CASES: &str = "crates/portcullis-guards/tests/cases/";

/// Every guard without its tests, and every test without its guard.
pub(super) fn check(files: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wanted = Vec::new();
    for (path, text) in files {
        let Some(inside) = path.strip_prefix(SOURCES) else { continue };
        let guards = implementations(text);
        if guards == 0 {
            continue;
        }
        if guards > 1 {
            problems.push(format!("{path}: {guards} guards; one file each"));
        }
        let cases = format!("{CASES}{}.md", stem(inside));
        if wanted.contains(&cases) {
            problems.push(format!(
                "{path}: another guard has this file name already; `{cases}` can test one of them"
            ));
        }
        problems.extend(missing(path, &cases, files.get(&cases)));
        wanted.push(cases);
    }
    let unused = files
        .keys()
        .filter(|path| path.starts_with(CASES) && path.ends_with(".md") && !wanted.contains(path));
    problems.extend(unused.map(|path| format!("{path}: no guard of this name; rename it or remove it")));
    problems
}

/// How many guards a file implements, its own tests aside.
fn implementations(text: &str) -> usize {
    let code = text.split_once("#[cfg(test)]").map_or(text, |(code, _)| code);
    let is_guard = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("impl") && (line.contains(" Guard for ") || line.contains("::Guard for "))
    };
    code.lines().filter(is_guard).count()
}

/// `family/name.rs` and `family/name/mod.rs` are both `name`.
fn stem(inside: &str) -> &str {
    let path = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn missing(guard: &str, cases: &str, text: Option<&String>) -> Vec<String> {
    let Some(text) = text else {
        return vec![format!(
            "{guard}: a guard without tests; write `{cases}` with a case that fires and one that is silent"
        )];
    };
    let headings: Vec<String> =
        text.lines().filter(|line| line.starts_with('#')).map(str::to_lowercase).collect();
    let shown = |word: &str| {
        headings.iter().any(|heading| heading.split(|c: char| !c.is_alphanumeric()).any(|w| w == word))
    };
    let absent = ["fires", "silent"].into_iter().filter(|word| !shown(word));
    absent
        .map(|word| format!("{cases}: no heading says `{word}`, so nothing shows `{guard}` doing so"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: &str = "//! A guard.\nimpl Guard for Ladder {}\n";

    fn problems(entries: &[(&str, &str)]) -> Vec<String> {
        check(&entries.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn a_guard_without_tests_fires() {
        let found = problems(&[("crates/portcullis-guards/src/policy/ladder.rs", GUARD)]);
        assert!(found[0].contains("tests/cases/ladder.md"), "{found:?}");
    }

    #[test]
    fn a_guard_that_is_never_silent_fires() {
        let cases = "# It fires\ntext that says silent\n";
        let found = problems(&[
            ("crates/portcullis-guards/src/ladder.rs", GUARD),
            ("crates/portcullis-guards/tests/cases/ladder.md", cases),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`silent`"), "{found:?}");
    }

    #[test]
    fn two_guards_in_a_file_and_a_test_without_a_guard_fire() {
        let found = problems(&[
            (
                "crates/portcullis-guards/src/ladder.rs",
                "impl Guard for A {}\nimpl<T> core::Guard for B<T> {}\n",
            ),
            ("crates/portcullis-guards/tests/cases/ladder.md", "# fires\n# silent\n"),
            ("crates/portcullis-guards/tests/cases/gone.md", "# fires\n# silent\n"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn two_guards_of_one_name_fire() {
        let found = problems(&[
            ("crates/portcullis-guards/src/a/phase.rs", GUARD),
            ("crates/portcullis-guards/src/b/phase.rs", GUARD),
            ("crates/portcullis-guards/tests/cases/phase.md", "# Fires\n# Silent\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_guard_with_both_is_silent_and_so_is_any_other_file() {
        let found = problems(&[
            ("crates/portcullis-guards/src/ladder/mod.rs", GUARD),
            (
                "crates/portcullis-guards/tests/cases/ladder.md",
                "# The ladder\n## Fires: third call\n## Silent: first\n",
            ),
            (
                "crates/portcullis-guards/src/lib.rs",
                "pub trait X {}\n#[cfg(test)]\nmod tests { impl Guard for Fake {} }\n",
            ),
            ("crates/portcullis-core/src/guard.rs", GUARD),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
