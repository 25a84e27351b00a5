//! What `find` finds, as words for what is done with it.
//!
//! The names that its tests ask for are told, so that who looks for `.env` and shows what was found reads `.env`.

use super::find_words::{command_length, values};
use super::word::Word;
use crate::path::glob::overlap;

/// Most names that are told of one action.
const NAMES_MAX: usize = 8;

/// What an action gets, with the attributes of its removal: all, or what the tests before it leave, and what they name
/// beside that. Where a start may itself be what they look for, it is among it.
pub(super) fn found(
    starts: &[Word],
    narrowed: bool,
    tests: &[Word],
    expression: &[Word],
) -> Vec<(Word, &'static [&'static str])> {
    let names = names(tests);
    let mut found: Vec<(Word, &'static [&'static str])> = Vec::new();
    for start in starts {
        if !narrowed {
            found.push((start.clone(), &["recursive"]));
            continue;
        }
        found.push((below(start, "*"), &["recursive"]));
        found.extend(names.iter().map(|name| (below(start, name), ["recursive"].as_slice())));
        if !starts_deeper(expression) && !leave_out(tests, start) {
            found.push((start.clone(), &[]));
        }
    }
    found
}

/// Something below a folder.
fn below(start: &Word, name: &str) -> Word {
    let shape = format!("{}/{name}", start.path().trim_end_matches('/'));
    // No shell has expanded the pattern: each match is a word of its own.
    Word {
        value: start.value.as_ref().map(|_| shape.clone()),
        shape,
        glob: true,
        expanded: false,
        ..start.clone()
    }
}

/// What tests of names look for, as patterns below the start.
fn names(tests: &[Word]) -> Vec<String> {
    let mut names = Vec::new();
    let mut before = "";
    for (test, value) in tests.iter().zip(tests.iter().skip(1)) {
        let negated = matches!(before, "!" | "-not");
        before = &test.shape;
        let (Some(value), false) = (&value.value, negated) else { continue };
        let name = match test.shape.as_str() {
            // Names contain no folders: such a test holds for nothing.
            "-name" | "-iname" | "-lname" | "-ilname" if !value.contains('/') => format!("**/{value}"),
            "-path" | "-ipath" | "-wholename" | "-iwholename" => below_any(value),
            "-regex" | "-iregex" => below_any(&value.replace(".*", "*").replace("\\.", ".")),
            _ => continue,
        };
        if !names.contains(&name) && names.len() < NAMES_MAX {
            names.push(name);
        }
    }
    names
}

/// A pattern of whole paths as one of paths below the start: a star there stands for folders too.
fn below_any(pattern: &str) -> String {
    let parts = pattern.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.map(|part| if part == "*" { "**" } else { part }).collect();
    let parts = parts.strip_prefix(&["**"]).unwrap_or(&parts);
    let lead = if parts.is_empty() { "**" } else { "**/" };
    format!("{lead}{}", parts.join("/"))
}

/// Whether `-mindepth` keeps the starts out.
fn starts_deeper(expression: &[Word]) -> bool {
    let mut words = expression.iter().skip_while(|word| word.shape != "-mindepth").skip(1);
    words
        .next()
        .and_then(Word::literal)
        .and_then(|depth| depth.parse::<u32>().ok())
        .is_some_and(|depth| depth > 0)
}

/// Whether the tests before an action surely do not hold for the start itself: in each alternative there is one that
/// it fails. Groups are not told apart, which asks for more than is needed.
fn leave_out(tests: &[Word], start: &Word) -> bool {
    let (mut all, mut here, mut negated) = (true, false, false);
    let mut at = 0;
    while let Some(word) = tests.get(at) {
        at += 1;
        let Some(test) = word.literal() else { return false };
        let rest = tests.get(at..).unwrap_or_default();
        match test {
            "," => return false,
            "!" | "-not" => {
                if rest.first().is_none_or(|next| matches!(next.shape.as_str(), "(" | "!" | "-not")) {
                    return false;
                }
                negated = true;
                continue;
            }
            "-o" | "-or" => {
                all &= here;
                here = false;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => at += command_length(rest) + 1,
            _ => {
                let value = rest.first().and_then(Word::literal);
                here |= !negated && value.is_some_and(|value| fails(start, test, value));
                at += values(test);
            }
        }
        negated = false;
    }
    all && here
}

/// Whether a start surely fails a test.
fn fails(start: &Word, test: &str, value: &str) -> bool {
    let Some(path) = &start.value else { return false };
    let trimmed = path.trim_end_matches('/');
    let name = trimmed.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
    let apart = |text: &str| !value.contains('\\') && !overlap(&value.to_lowercase(), &text.to_lowercase());
    match test {
        "-name" | "-iname" => apart(name),
        "-path" | "-ipath" | "-wholename" | "-iwholename" => apart(path),
        "-type" => {
            let folder = path.ends_with('/') || matches!(name, "." | "..");
            folder && !value.contains('d')
        }
        _ => false,
    }
}
