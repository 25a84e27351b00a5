//! Reports of tests as JUnit XML. Only what counts is read: which elements there are, and how they nest. A document with
//! a type of its own is refused, since entities can make it mean anything.

use super::{Found, fail};

/// Deepest nesting of elements.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u32,
    failed: u32,
    skipped: u32,
}

pub(super) fn passes(content: &[u8], path: &str, tests_min: u32) -> Found {
    let text = match std::str::from_utf8(content) {
        Ok(text) => text,
        Err(_) => return fail(format!("`{path}` is not UTF-8")),
    };
    let counts = match read(text) {
        Ok(counts) => counts,
        Err(why) => return fail(format!("`{path}` is no report of tests: {why}")),
    };
    let Counts { passed, failed, skipped } = counts;
    let said = format!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 {
        return fail(said);
    }
    if passed < tests_min {
        return fail(format!("{said}; at least {tests_min} have to pass"));
    }
    Ok(said)
}

/// What lies between `<` and `>`.
enum Tag<'t> {
    Open(&'t str),
    Close(&'t str),
    Empty(&'t str),
    Other,
}

fn read(text: &str) -> Result<Counts, String> {
    let (mut counts, mut open, mut rest) = (Counts::default(), Vec::<&str>::new(), text);
    let mut seen_root = false;
    // Whether the test case that is open failed, or was skipped.
    let (mut failed, mut skipped) = (false, false);
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, next) = tag(after)?;
        rest = next;
        match tag {
            Tag::Other => {}
            Tag::Open(name) | Tag::Empty(name) => {
                if open.is_empty() && (seen_root || !matches!(name, "testsuites" | "testsuite")) {
                    return Err(format!("`{}` at the top", name.chars().take(40).collect::<String>()));
                }
                seen_root = true;
                let in_case = open.contains(&"testcase");
                failed |= in_case && matches!(name, "failure" | "error");
                skipped |= in_case && name == "skipped";
                let is_empty = matches!(tag, Tag::Empty(_));
                match (name, is_empty) {
                    ("testcase", _) if in_case => return Err("a test case within another one".to_owned()),
                    ("testcase", true) => counts.passed = counts.passed.saturating_add(1),
                    ("testcase", false) => (failed, skipped) = (false, false),
                    _ => {}
                }
                // A suite that could not be set up fails outside of any case.
                if !in_case && matches!(name, "failure" | "error") {
                    counts.failed = counts.failed.saturating_add(1);
                }
                if !is_empty {
                    if open.len() == DEPTH_MAX {
                        return Err(format!("nested deeper than {DEPTH_MAX} elements"));
                    }
                    open.push(name);
                }
            }
            Tag::Close(name) => {
                if open.pop() != Some(name) {
                    return Err("elements that do not nest".to_owned());
                }
                if name == "testcase" {
                    let count = match (failed, skipped) {
                        (true, _) => &mut counts.failed,
                        (false, true) => &mut counts.skipped,
                        (false, false) => &mut counts.passed,
                    };
                    *count = count.saturating_add(1);
                }
            }
        }
    }
    match (seen_root, open.is_empty()) {
        (false, _) => Err("no element".to_owned()),
        (true, false) => Err("it ends within an element".to_owned()),
        (true, true) => Ok(counts),
    }
}

/// Reads a tag after its `<`, and what follows it.
fn tag(text: &str) -> Result<(Tag<'_>, &str), String> {
    let past = |text: &'_ str, end: &str| match text.split_once(end) {
        Some((_, rest)) => Ok(text.len() - rest.len()),
        None => Err("it ends within a tag".to_owned()),
    };
    let from = |at: usize| text.get(at..).unwrap_or_default();
    if text.starts_with("!--") {
        return Ok((Tag::Other, from(past(text, "-->")?)));
    }
    if text.starts_with("![CDATA[") {
        return Ok((Tag::Other, from(past(text, "]]>")?)));
    }
    if text.starts_with('?') {
        return Ok((Tag::Other, from(past(text, "?>")?)));
    }
    if text.starts_with('!') {
        return Err("it has a document type".to_owned());
    }
    let mut quote = None;
    let end = text.char_indices().find(|(_, c)| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (Some(open), c) if open == *c => {
            quote = None;
            false
        }
        (None, '>') => true,
        _ => false,
    });
    let Some((end, _)) = end else { return Err("it ends within a tag".to_owned()) };
    let inner = text.get(..end).unwrap_or_default();
    let rest = from(end + 1);
    let name = |text: &'_ str| text.split(|c: char| c.is_whitespace() || c == '/').next().map(str::len);
    let named = |text: &'_ str| name(text).filter(|length| *length > 0);
    if let Some(closed) = inner.strip_prefix('/') {
        return Ok((Tag::Close(closed.trim_end()), rest));
    }
    let Some(length) = named(inner) else { return Err("a tag without a name".to_owned()) };
    let name = inner.get(..length).unwrap_or_default();
    Ok((if inner.ends_with('/') { Tag::Empty(name) } else { Tag::Open(name) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_by_what_is_in_them() {
        let report = r#"<?xml version="1.0"?><!-- <testcase> --><testsuites>
            <testsuite name="a > b"><testcase name="1"/><testcase name='2'></testcase>
            <testcase name="3"><failure message="&lt;"><![CDATA[</testcase>]]></failure></testcase>
            <testcase name="4"><skipped/></testcase>
            <testcase name="5"><system-out>ok</system-out></testcase></testsuite></testsuites>"#;
        assert_eq!(read(report), Ok(Counts { passed: 3, failed: 1, skipped: 1 }));
        let of_a_suite = "<testsuite><error/><testcase/></testsuite>";
        assert_eq!(read(of_a_suite), Ok(Counts { passed: 1, failed: 1, skipped: 0 }));
    }

    #[test]
    fn what_is_no_report_is_not_read_as_one() {
        for (text, wanted) in [
            ("", "no element"),
            ("all tests passed", "no element"),
            ("<html><testcase/></html>", "at the top"),
            ("<testsuite><testcase></testsuite></testcase>", "do not nest"),
            ("<testsuite><testcase>", "ends within an element"),
            ("<testsuite><testcase name=\"", "ends within a tag"),
            ("<!DOCTYPE x [<!ENTITY a \"b\">]><testsuite/>", "document type"),
            ("<testsuite/><testsuite><testcase/></testsuite>", "at the top"),
            ("<testsuite><testcase><testcase/></testcase></testsuite>", "within another one"),
        ] {
            assert!(read(text).is_err_and(|why| why.contains(wanted)), "{text} gave {:?}", read(text));
        }
        let deep = format!("<testsuite>{}", "<a>".repeat(DEPTH_MAX));
        assert!(read(&deep).is_err_and(|why| why.contains("nested deeper")));
    }

    #[test]
    fn too_few_tests_do_not_pass() {
        let report = b"<testsuite><testcase/><testcase><skipped/></testcase></testsuite>";
        assert!(passes(report, "r.xml", 1).is_ok());
        assert!(passes(report, "r.xml", 2).is_err());
        assert!(passes(b"<testsuite/>", "r.xml", 1).is_err());
    }
}
