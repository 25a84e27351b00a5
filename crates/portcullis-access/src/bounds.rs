//! Bounds on the text of policies, checked before Cedar's parser sees it.
//!
//! The parser and everything behind it recurse over the tree of an expression, so a few kilobytes of `((((…`
//! would overflow the stack and end the process. A tree gets deep by brackets, by chains of operators (`a && b
//! && …` leans to the left), by chains of dots and by nested `if`s; this lexer counts each of them, along the way
//! from the outermost bracket to the innermost.

use portcullis_core::bundle::Diagnostic;

/// Deepest nesting of brackets.
pub const BRACKETS_MAX: usize = 64;
/// Most operators on the way from the outermost bracket to any place.
pub const OPERATORS_MAX: usize = 512;
/// Longest chain of dots in one operand.
pub const DOTS_MAX: usize = 64;

/// What was counted within one bracket.
#[derive(Default)]
struct Group {
    operators: usize,
    dots: usize,
}

/// The first place at which `source` exceeds a bound, if any.
pub(crate) fn check(file: &str, source: &str) -> Result<(), Diagnostic> {
    let mut groups = vec![Group::default()];
    let mut operators = 0;
    let bytes = source.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let next = bytes.get(at + 1).copied();
        let length = match byte {
            b'"' => string(bytes, at),
            b'/' if next == Some(b'/') => line(bytes, at),
            b'(' | b'[' | b'{' => {
                // `a["b"]["c"]` is a chain like `a.b.c`.
                if let Some(group) = groups.last_mut() {
                    group.dots += 1;
                }
                groups.push(Group::default());
                1
            }
            b')' | b']' | b'}' => {
                if groups.len() > 1
                    && let Some(group) = groups.pop()
                {
                    operators -= group.operators;
                }
                1
            }
            // The end of a policy, of an argument, of a field.
            b';' | b',' => {
                if let Some(group) = groups.last_mut() {
                    operators -= group.operators;
                    *group = Group::default();
                }
                1
            }
            b'&' | b'|' | b'+' | b'-' | b'*' | b'!' | b'=' | b'<' | b'>' => {
                operators += usize::from(!matches!(byte, b'<' | b'>' | b'='));
                let length = if matches!(next, Some(b'&' | b'|' | b'=')) { 2 } else { 1 };
                if let Some(group) = groups.last_mut() {
                    group.operators += usize::from(!matches!(byte, b'<' | b'>' | b'='));
                    group.dots = 0;
                }
                length
            }
            b'.' => {
                if let Some(group) = groups.last_mut() {
                    group.dots += 1;
                }
                1
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let word = word(bytes, at);
                // Each condition of a policy is joined to the ones before, each `if` nests in its `else`.
                if matches!(bytes.get(at..at + word), Some(b"if" | b"when" | b"unless")) {
                    operators += 1;
                    if let Some(group) = groups.last_mut() {
                        group.operators += 1;
                    }
                }
                word
            }
            _ => 1,
        };
        let dots = groups.iter().rev().take(2).map(|group| group.dots).max().unwrap_or_default();
        if let Some(message) = exceeded(groups.len() - 1, operators, dots) {
            return Err(Diagnostic::new(file, source, at..at + length, message)
                .help("write the policy in several, or list the names in one set"));
        }
        at += length;
    }
    Ok(())
}

fn exceeded(brackets: usize, operators: usize, dots: usize) -> Option<String> {
    if brackets > BRACKETS_MAX {
        Some(format!("brackets are nested deeper than {BRACKETS_MAX}"))
    } else if operators > OPERATORS_MAX {
        Some(format!("more than {OPERATORS_MAX} operators in one expression"))
    } else if dots > DOTS_MAX {
        Some(format!("more than {DOTS_MAX} dots in one operand"))
    } else {
        None
    }
}

/// Length of the string that starts at `at`; an unclosed one reaches to the end.
fn string(bytes: &[u8], at: usize) -> usize {
    let mut escaped = false;
    for (length, byte) in bytes.iter().skip(at + 1).enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return length + 2,
            _ => {}
        }
    }
    bytes.len() - at
}

fn line(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(condition: &str) -> Option<String> {
        let source = format!("permit (principal, action, resource)\nwhen {{ {condition} }};\n");
        check("access/x.cedar", &source).err().map(|diagnostic| diagnostic.to_string())
    }

    #[test]
    fn each_way_to_nest_is_bounded() {
        let deep = |open: &str, close: &str, n: usize| format!("{}true{}", open.repeat(n), close.repeat(n));
        for (condition, wanted) in [
            (deep("(", ")", 5_000), "brackets are nested"),
            (deep("[", "]", 5_000), "brackets are nested"),
            (deep("{a: ", "}", 5_000), "brackets are nested"),
            (deep("if true then true else ", "", 5_000), "operators"),
            (deep("true || ", "", 5_000), "operators"),
            (deep("1 + ", "", 5_000), "operators"),
            (deep("!", "", 5_000), "operators"),
            (format!("context{}", ".a".repeat(5_000)), "dots"),
            (format!("context{}", "[\"a\"]".repeat(5_000)), "dots"),
            (format!("context{}", "[\"a\"]".repeat(5)), ""),
            (deep("(true || true || ", ")", 60), ""),
            (deep(&format!("({}", "true && ".repeat(20)), ")", 50), "operators"),
        ] {
            let found = complaint(&condition);
            assert_eq!(found.is_some(), !wanted.is_empty(), "{found:?}");
            assert!(found.unwrap_or_default().contains(wanted));
        }
    }

    #[test]
    fn places_are_lines_and_columns() {
        let found = complaint(&"(".repeat(70)).unwrap();
        assert!(found.starts_with("access/x.cedar:2:71: brackets are nested deeper than 64"), "{found}");
    }

    #[test]
    fn strings_and_comments_are_not_brackets() {
        let open = "(".repeat(100);
        assert_eq!(complaint(&format!("\"{open}\\\"{open}\" == \"a\" // {open}\n")), None);
        assert_eq!(complaint(&format!("\"{open}")), None, "unclosed: the parser says so");
    }

    #[test]
    fn policies_and_arguments_count_for_themselves() {
        let policy = "permit (principal, action, resource) when { 1 + 1 == 2 };";
        assert!(check("x", &policy.repeat(2_000)).is_ok());
        let names: Vec<String> = (0..2_000).map(|n| format!("-{n}")).collect();
        assert_eq!(complaint(&format!("[{}].contains(1)", names.join(", "))), None);
    }
}
