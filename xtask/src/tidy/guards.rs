//! A guard comes with a Markdown test that shows it firing and one that shows it staying silent.
//!
//! A guard's file is one under `crates/CRATE/src/` that implements the trait; its tests stand in
//! `crates/CRATE/tests/cases/`, in a file of the same name, under headings that say `fires` and `silent`.

use super::Files;

/// Every guard without its tests, and, in crates with guards, every test without its guard.
pub(super) fn check(files: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wanted = Vec::new();
    let mut folders = Vec::new();
    for (path, text) in files {
        let Some((folder, inside)) = product(path) else { continue };
        let guards = implementations(text);
        if guards == 0 {
            continue;
        }
        if guards > 1 {
            problems.push(format!("{path}: {guards} guards; one file each"));
        }
        let cases = format!("{folder}/tests/cases/{}.md", stem(inside));
        if wanted.contains(&cases) {
            problems.push(format!(
                "{path}: another guard has this file name already; `{cases}` can test one of them"
            ));
        }
        problems.extend(missing(path, &cases, files.get(&cases)));
        wanted.push(cases);
        folders.push(format!("{folder}/tests/cases/"));
    }
    let is_case = |path: &&String| folders.iter().any(|folder| path.starts_with(folder));
    let unused = files.keys().filter(is_case).filter(|path| path.ends_with(".md") && !wanted.contains(path));
    problems.extend(unused.map(|path| format!("{path}: no guard of this name; rename it or remove it")));
    problems
}

/// A source file of a crate that is no test: the crate's folder, and where in its `src/`.
fn product(path: &str) -> Option<(&str, &str)> {
    let (folder, inside) = path.split_once("/src/")?;
    let is_test = inside.split('/').any(|part| part == "tests" || part == "tests.rs");
    // The evaluation breaks guards on purpose; those judge nobody.
    let judges = folder.starts_with("crates/") && folder != "crates/portcullis-eval";
    (judges && path.ends_with(".rs") && !is_test).then_some((folder, inside))
}

/// How many guards a file implements, its own tests aside.
fn implementations(text: &str) -> usize {
    let code = text.split_once("#[cfg(test)]").map_or(text, |(code, _)| code);
    code.lines().filter_map(guard_of).count()
}

/// The type for which a line of code implements `Guard`, of whatever memory.
pub(crate) fn guard_of(line: &str) -> Option<&str> {
    let (head, rest) = line.trim_start().strip_prefix("impl")?.split_once(" for ")?;
    let of_memory = head.strip_suffix('>').and_then(|head| head.rsplit_once('<'));
    let name = of_memory.map_or(head, |(name, _)| name);
    let is_guard = name.ends_with(" Guard") || name.ends_with("::Guard");
    is_guard.then(|| rest.split([' ', '<', '{']).next()).flatten()
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
    fn a_guard_of_any_crate_without_tests_fires() {
        let found = problems(&[("crates/portcullis-access/src/guard.rs", GUARD)]);
        assert!(found[0].contains("crates/portcullis-access/tests/cases/guard.md"), "{found:?}");
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
    fn guards_are_told_whatever_memory_they_ask() {
        for line in [
            "impl Guard for No {",
            "impl Guard<RunMemory> for No {",
            "    impl<M: Memory> Guard<M> for No {",
            "impl<T> core::Guard for No<T> {}",
        ] {
            assert_eq!(guard_of(line), Some("No"), "{line}");
        }
        for line in
            ["impl EffectReader for No {", "impl<G: Guard<M>> Other for No<G> {", "// impl Guard for No"]
        {
            assert_eq!(guard_of(line), None, "{line}");
        }
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
            ("crates/portcullis-core/tests/it/main.rs", GUARD),
            ("crates/portcullis-core/src/tests/made_up.rs", GUARD),
            ("crates/portcullis-effects/tests/cases/README.md", "# Cases\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
