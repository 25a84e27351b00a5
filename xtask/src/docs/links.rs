//! Links between pages lead somewhere, and tests that a page names are there.

use std::path::Path;

use super::Files;
use crate::process::root;

/// Every link to a file of the repository that is not there. `exists` is asked for paths from its top.
pub(super) fn check(pages: &Files) -> Vec<String> {
    broken(pages, |path| root().join(path).exists())
}

fn broken(pages: &Files, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in pages {
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            for target in targets(line).filter(|_| !fenced) {
                let file = target.split_once('#').map_or(target, |(file, _)| file);
                let foreign = file.is_empty() || target.contains("://") || target.starts_with("mailto:");
                if !foreign && !exists(&folder.join(file)) {
                    problems.push(format!("{path}:{}: the link to `{target}` leads nowhere", index + 1));
                }
            }
        }
    }
    problems
}

/// What the links of a line, `[text](target)`, and the pictures in HTML, `src="target"`, point at.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let between = |before: &'static str, after: char| {
        line.match_indices(before).filter_map(move |(at, _)| {
            line.get(at + before.len()..)?.split_once(after).map(|(target, _)| target)
        })
    };
    between("](", ')').chain(between("src=\"", '"')).chain(between("srcset=\"", '"'))
}

/// Every test that a page names, as `crate: name` in backticks, and that its crate does not have. `sources` are the
/// files of all crates.
pub(super) fn missing_tests(pages: &Files, sources: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in pages {
        for (index, line) in text.lines().enumerate() {
            for (name, test) in line.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(": ")) {
                let named = !test.is_empty() && test.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                // The binary's crate has no suffix.
                let suffix = if name == "portcullis" { String::new() } else { format!("-{name}") };
                let folder = format!("crates/portcullis{suffix}/");
                let mut files = sources.iter().filter(|(path, _)| path.starts_with(&folder)).peekable();
                if named
                    && files.peek().is_some()
                    && !files.any(|(_, text)| text.contains(&format!("fn {test}(")))
                {
                    problems.push(format!("{path}:{}: {folder} has no test `{test}`", index + 1));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let page = "[a](a.md), [b](../b.md#part) and [c](c.md)\n[web](https://example.com) [here](#part)\n\
            ```\n[d](d.md)\n```\n<img src=\"e.svg\">\n";
        let pages = Files::from([("docs/page.md".to_owned(), page.to_owned())]);
        let there = ["docs/a.md", "docs/../b.md"];
        let problems = broken(&pages, |path| there.iter().any(|known| Path::new(known) == path));
        assert_eq!(
            problems,
            [
                "docs/page.md:1: the link to `c.md` leads nowhere",
                "docs/page.md:6: the link to `e.svg` leads nowhere"
            ]
        );
    }

    #[test]
    fn tests_that_are_not_there_are_named() {
        let page = "Held by `core: a_test` and `core: another_test`; `error: what_it_says` is no test.\n";
        let pages = Files::from([("A.md".to_owned(), page.to_owned())]);
        let source = ("crates/portcullis-core/src/a.rs".to_owned(), "fn a_test() {}".to_owned());
        let problems = missing_tests(&pages, &Files::from([source]));
        assert_eq!(problems, ["A.md:1: crates/portcullis-core/ has no test `another_test`"]);
    }
}
