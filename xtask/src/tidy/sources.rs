//! Rules on the text of files: length, module docs, no reminders left in the code, no places that only one machine
//! has.

use super::Files;

/// A file of code is read in one go, so it fits what one can hold in mind.
const LINES_MAX: usize = 600;

/// Files that are longer, with the number of lines each may have. This list only ever gets shorter: a file that has
/// shrunk has its number lowered, one that fits is taken out.
const LONG_FILES: &[(&str, usize)] = &[];

/// Reminders and gaps: what is not done is not in the code. Put together from halves, so that this file passes.
const UNFINISHED: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Where the unfinished is looked for: code, not prose.
const CODE: &[&str] = &[".rs", ".py", ".sh", ".toml", ".cedar", ".star", ".sql", ".js"];

/// Folders that exist on one machine only. They count where a path starts, not inside another path or address.
const FOREIGN_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("sha", "red/")];

/// Files whose subject is which hosts a contained command may fetch packages from.
const NAMES_REGISTRIES: &[&str] = &[
    "crates/portcullis-core/src/bundle/profiles.rs",
    "crates/portcullis-core/src/bundle/profiles.toml",
    "crates/portcullis-core/src/contrast/tests.rs",
    "crates/portcullis-core/src/profile/permitted.rs",
    "crates/portcullis-core/tests/it/containment.rs",
    "crates/portcullis-effects/tests/it/contained.rs",
];

/// Hosts that serve packages: whoever builds chooses where from, so no address of theirs is written down.
const FOREIGN_HOSTS: &[&str] = &[
    concat!("registry.", "npmjs.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("py", "pi.org"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("proxy.", "golang.org"),
];

/// Every problem in the text of the files.
pub(super) fn check(files: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in files {
        if path.ends_with(".rs") {
            problems.extend(length(path, text.lines().count(), LONG_FILES));
            problems.extend(module_docs(path, text));
        }
        if CODE.iter().any(|ending| path.ends_with(ending)) || path.starts_with(".ci/") {
            problems.extend(each_line(path, text, unfinished));
        }
        problems.extend(each_line(path, text, foreign));
        if !NAMES_REGISTRIES.contains(&path.as_str()) {
            problems.extend(each_line(path, text, registry));
        }
    }
    problems.extend(stale(files, LONG_FILES));
    problems
}

fn length(path: &str, lines: usize, long: &[(&str, usize)]) -> Option<String> {
    let max = long.iter().find(|(listed, _)| *listed == path).map_or(LINES_MAX, |(_, max)| *max);
    (lines > max).then(|| format!("{path}: {lines} lines, {max} at most; split it where its subject divides"))
}

fn stale(files: &Files, long: &[(&str, usize)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, max) in long {
        let lines = files.get(*path).map_or(0, |text| text.lines().count());
        if lines <= LINES_MAX {
            problems.push(format!("{path}: fits in {LINES_MAX} lines; take it out of LONG_FILES"));
        } else if lines < *max {
            problems.push(format!("{path}: {lines} lines; lower its number in LONG_FILES from {max}"));
        }
    }
    problems
}

fn module_docs(path: &str, text: &str) -> Option<String> {
    let documented =
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//! "));
    (!documented).then(|| format!("{path}:1: begin with `//! ` and what this file is for"))
}

fn each_line(path: &str, text: &str, rule: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let found = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, rule(line)?)));
    found.map(|(number, problem)| format!("{path}:{number}: {problem}")).collect()
}

fn unfinished(line: &str) -> Option<String> {
    let found = UNFINISHED
        .iter()
        .find(|marker| occurrences(line, marker).any(|(before, after)| whole(before, after, marker)))?;
    Some(format!("`{found}`: finish it, or open an issue and leave the code out"))
}

/// A word stands by itself; a macro or an attribute, which ends in punctuation, may be followed by anything.
fn whole(before: Option<char>, after: Option<char>, marker: &str) -> bool {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let is_word = marker.chars().all(|c| c.is_ascii_uppercase());
    !is_word || (!in_word(before) && !in_word(after))
}

fn foreign(line: &str) -> Option<String> {
    let starts = |before: Option<char>| before.is_none_or(|c| !c.is_alphanumeric() && !"._-~".contains(c));
    // `../` before it is still the start; a name and a slash before it is not.
    let path = FOREIGN_PATHS.iter().find(|path| {
        occurrences(line, path).any(|(before, _)| starts(before) && before != Some('/'))
            || line.contains(&format!("../{}", path.trim_start_matches('/')))
    });
    if let Some(path) = path {
        return Some(format!(
            "`{path}`: a folder that other machines do not have; say what is meant instead"
        ));
    }
    None
}

fn registry(line: &str) -> Option<String> {
    let host = FOREIGN_HOSTS.iter().find(|host| line.contains(**host))?;
    Some(format!("`{host}`: leave the choice of a registry to whoever builds"))
}

/// The characters on either side of each place where `marker` stands in `line`.
fn occurrences<'a>(
    line: &'a str,
    marker: &'a str,
) -> impl Iterator<Item = (Option<char>, Option<char>)> + 'a {
    line.match_indices(marker).map(move |(start, _)| {
        let before = line.get(..start).and_then(|text| text.chars().next_back());
        let after = line.get(start + marker.len()..).and_then(|text| text.chars().next());
        (before, after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_long_file_fires_unless_listed() {
        assert!(length("a.rs", 601, &[]).unwrap().contains("601 lines, 600 at most"));
        assert_eq!(length("a.rs", 600, &[]), None);
        assert_eq!(length("a.rs", 700, &[("a.rs", 700)]), None);
        assert!(length("a.rs", 701, &[("a.rs", 700)]).is_some());
    }

    #[test]
    fn the_list_of_long_files_only_shrinks() {
        let tree = files(&[("a.rs", &"x\n".repeat(650)), ("b.rs", "x\n")]);
        assert_eq!(stale(&tree, &[("a.rs", 650)]), Vec::<String>::new());
        assert!(stale(&tree, &[("a.rs", 700)])[0].contains("lower its number"));
        assert!(stale(&tree, &[("b.rs", 700)])[0].contains("take it out"));
        assert!(stale(&tree, &[("gone.rs", 700)])[0].contains("take it out"));
    }

    #[test]
    fn a_file_begins_with_what_it_is_for() {
        assert_eq!(module_docs("a.rs", "\n//! What it is.\n"), None);
        for text in ["use std::fs;\n//! Late.\n", "// Not docs.\n", "", "//!\n"] {
            assert!(module_docs("a.rs", text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn what_is_unfinished_fires() {
        let to_do = concat!("TO", "DO");
        for line in [
            concat!("    to", "do!()"),
            concat!("unimple", "mented!(\"x\")"),
            concat!("#[ig", "nore]"),
            concat!("#[ig", "nore = \"slow\"]"),
            concat!("// FIX", "ME: x"),
            to_do,
        ] {
            assert!(unfinished(line).is_some(), "{line}");
        }
        for line in [format!("MASTODON {to_do}S _{to_do}"), concat!("ssn = \"XX", "X-XX-0000\"").to_owned()] {
            assert_eq!(unfinished(&line), None, "{line}");
        }
        let tree = files(&[("notes.md", to_do), ("run.py", to_do)]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn foreign_places_fire() {
        let work = concat!("/wo", "rk/");
        let common = concat!("sha", "red/");
        let host = concat!("https://registry.", "npmjs.org/x");
        for line in [
            format!("see {work}x"),
            format!("`{common}x`"),
            format!("(../{common}x)"),
            format!("../..{work}x"),
            format!("\"{work}\""),
        ] {
            assert!(foreign(&line).is_some(), "{line}");
        }
        assert!(registry(host).is_some());
        for line in [
            format!("GET /v1{work}7"),
            format!("src/{common}mod.rs"),
            format!("portcullis-{}", work.trim_start_matches('/')),
        ] {
            assert_eq!(foreign(&line), None, "{line}");
        }
    }
}
