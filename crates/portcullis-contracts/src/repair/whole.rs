//! The reply as a whole: what it starts and ends with, what it is wrapped in, its format, its case, its marks.

use super::candidate::{Candidate, Change, StepKind, apply};
use crate::bound::Bound;
use crate::text::capitals::capital_words;
use crate::text::search::{find_all, prefix_length};
use crate::text::sentences::sentences;
use crate::text::{Span, cut, from, to, words};

pub(super) fn repeats(text: &str, request: Option<&str>) -> Vec<Candidate> {
    let Some(request) = request.map(str::trim).filter(|request| !request.is_empty()) else {
        return Vec::new();
    };
    ["\n\n", "\n", " "]
        .into_iter()
        .map(|join| {
            let text = format!("{request}{join}{}", text.trim_start());
            Candidate::new(StepKind::Literal, "repeated the request at the start", text)
        })
        .collect()
}

pub(super) fn begins(text: &str, phrase: &str) -> Vec<Candidate> {
    let body = text.trim_start().trim_start_matches('"');
    let lead = to(text, text.len() - body.len());
    let mut out = Vec::new();
    for join in [" ", "\n\n", "\n"] {
        out.push(Candidate::new(
            StepKind::Literal,
            "added the required beginning",
            format!("{lead}{phrase}{join}{body}"),
        ));
    }
    out
}

/// The demanded ending, completed where the reply has its first words already; inside quotation marks that wrap it all.
pub(super) fn ends(text: &str, phrase: &str) -> Vec<Candidate> {
    const WHAT: &str = "added the required ending";
    let mut out = Vec::new();
    let trimmed = text.trim_end();
    let fenced = trimmed.starts_with("```") && trimmed.ends_with("```");
    let bare = if fenced {
        let inner = trimmed.trim_start_matches('`');
        inner.find('\n').map_or("", |newline| from(inner, newline + 1)).trim_end_matches('`').trim_end()
    } else {
        trimmed
    };
    let (body, close) = match bare.strip_suffix('"') {
        Some(body) if bare.trim_start().starts_with('"') => (body.trim_end(), "\""),
        _ => (bare, ""),
    };
    let kind = if fenced { StepKind::Format } else { StepKind::Literal };
    // The longest end of the reply that is a beginning of the phrase, at a word's start.
    let overlap = phrase.char_indices().map(|(at, _)| at).filter(|&at| at > 3).rev().find(|&at| {
        let head = to(phrase, at).trim_end();
        body.len()
            .checked_sub(head.len())
            .and_then(|start| body.get(start..))
            .is_some_and(|tail| prefix_length(tail, head).is_some())
    });
    if let Some(at) = overlap {
        let head = to(phrase, at).trim_end();
        let kept = to(body, body.len() - head.len());
        out.push(Candidate::new(kind, "completed the required ending", format!("{kept}{phrase}{close}")));
    }
    for join in [" ", "\n", "\n\n"] {
        out.push(Candidate::new(kind, WHAT, format!("{body}{join}{phrase}{close}")));
    }
    if let Some(closed) = body.strip_suffix('.') {
        out.push(Candidate::new(kind, WHAT, format!("{closed}; {phrase}{close}")));
    }
    out
}

pub(super) fn quoted(text: &str) -> Vec<Candidate> {
    const WHAT: &str = "put double quotation marks around all of it";
    let body = text.trim();
    let mut out = Vec::new();
    if body.len() > 1 && body.starts_with('"') && !body.ends_with('"') {
        out.push(format!("{body}\""));
    } else if body.len() > 1 && body.ends_with('"') && !body.starts_with('"') {
        out.push(format!("\"{body}"));
    }
    out.push(format!("\"{body}\""));
    out.into_iter().map(|text| Candidate::layout(WHAT, text)).collect()
}

pub(super) fn json(text: &str) -> Vec<Candidate> {
    let mut out = Vec::new();
    let body = text.trim();
    if body.trim_start_matches('`').trim_start_matches("json").trim_start().starts_with(['{', '[']) {
        out.push(Candidate::new(
            StepKind::Format,
            "escaped line breaks inside JSON strings",
            escaped_strings(body),
        ));
        let cut_off = without_trailing_commas(&escaped_strings(body));
        out.push(Candidate::new(StepKind::Format, "repaired JSON's marks", cut_off));
    } else if let Ok(string) = serde_json::to_string(body) {
        out.push(Candidate::new(
            StepKind::Format,
            "wrapped the reply in JSON",
            format!("{{\"response\": {string}}}"),
        ));
    }
    out
}

/// Raw control characters inside strings, as escapes.
fn escaped_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => inside = !inside,
            '\n' if inside => {
                out.push_str("\\n");
                continue;
            }
            '\t' if inside => {
                out.push_str("\\t");
                continue;
            }
            '\r' if inside => {
                out.push_str("\\r");
                continue;
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out
}

/// Commas before a closing bracket, outside strings, taken out.
fn without_trailing_commas(text: &str) -> String {
    let mut edits: Vec<Change> = Vec::new();
    let (mut inside, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if c == '"' && !escaped {
            inside = !inside;
        }
        escaped = c == '\\' && !escaped;
        if c == ',' && !inside && from(text, at + 1).trim_start().starts_with(['}', ']']) {
            edits.push((at..at + 1, String::new()));
        }
    }
    apply(text, &edits)
}

/// A mapping with the reply as a block: every line is indented, none is changed.
pub(super) fn yaml(text: &str) -> Vec<Candidate> {
    let body = text.trim_end();
    let open = body.trim_start();
    let fence = open.starts_with("```") && body.ends_with("```") && body.matches("```").count() == 2;
    let inner = if fence {
        let rest = open.trim_start_matches('`');
        rest.find('\n').map_or(rest, |newline| from(rest, newline + 1)).trim_end_matches('`').trim_end()
    } else {
        body
    };
    let block = |indicator: &str| {
        let lines: Vec<String> = inner
            .split('\n')
            .map(|line| {
                if line.trim().is_empty() { String::new() } else { format!("  {}", line.replace('\t', "  ")) }
            })
            .collect();
        format!("response: {indicator}\n{}", lines.join("\n"))
    };
    let indicator = if inner.starts_with(' ') { "|2" } else { "|" };
    vec![Candidate::new(StepKind::Format, "wrapped the reply in YAML", block(indicator))]
}

pub(super) fn upper(text: &str) -> Vec<Candidate> {
    vec![Candidate::layout("wrote all letters as capitals", text.to_uppercase())]
}

pub(super) fn lower(text: &str) -> Vec<Candidate> {
    vec![Candidate::layout("wrote all letters in lower case", text.to_lowercase())]
}

/// Words that are there, written in capitals until there are enough; long ones first.
pub(super) fn capitals(text: &str, count: &Bound) -> Vec<Candidate> {
    let have = capital_words(text);
    let need = (count.at_least as usize).saturating_sub(have.len());
    if need == 0 {
        return Vec::new();
    }
    let mut spans: Vec<Span> = words::words(text)
        .filter(|span| {
            let word = cut(text, span.clone());
            word.chars().all(char::is_alphabetic)
                && word.chars().any(char::is_lowercase)
                && word.chars().count() >= 4
        })
        .collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.end - span.start));
    let holds = |text: &str| count.holds(capital_words(text).len());
    (need..=spans.len().min(need + 40))
        .find_map(|n| {
            let mut some: Vec<Change> = spans
                .get(..n)?
                .iter()
                .map(|span| (span.clone(), cut(text, span.clone()).to_uppercase()))
                .collect();
            some.sort_by_key(|(span, _)| span.start);
            let changed = apply(text, &some);
            holds(&changed).then(|| Candidate::layout("wrote words in capitals", changed))
        })
        .into_iter()
        .collect()
}

/// First words of sentences in lower case; where that would break something else, the sentence is joined with `;`.
pub(super) fn sentence_capitals(text: &str, is_worse: impl Fn(&str) -> bool) -> Vec<Candidate> {
    let mut current = text.to_owned();
    let mut skipped = 0;
    for _ in 0..400 {
        let spans = sentences(&current);
        let mut opening = spans.iter().enumerate().filter_map(|(at, sentence)| {
            let word = words::words(cut(&current, sentence.clone())).next()?;
            let word = sentence.start + word.start..sentence.start + word.end;
            cut(&current, word.clone()).starts_with(char::is_uppercase).then_some((at, word))
        });
        let Some((at, word)) = opening.nth(skipped) else { break };
        let body = cut(&current, word.clone());
        let length = body.chars().next().map_or(0, char::len_utf8);
        let lower = (word.start..word.start + length, to(body, length).to_lowercase());
        let lowered = apply(&current, &[lower]);
        if !is_worse(&lowered) {
            current = lowered;
            continue;
        }
        let joined = at
            .checked_sub(1)
            .and_then(|before| spans.get(before))
            .filter(|before| cut(&current, (*before).clone()).ends_with('.'));
        let joined = joined.map(|before| apply(&current, &[(before.end - 1..before.end, ";".to_owned())]));
        match joined.filter(|joined| !is_worse(joined)) {
            Some(joined) => current = joined,
            None => skipped += 1,
        }
    }
    vec![Candidate::layout("wrote first words of sentences in lower case", current)]
}

/// A mark written otherwise: commas out of numbers and before conjunctions, and as `;` elsewhere; `!` as `.`; `;` as `,`.
pub(super) fn without(text: &str, mark: char) -> Vec<Candidate> {
    let replacement = match mark {
        ',' => ";",
        '!' => ".",
        ';' => ",",
        '—' => "-",
        _ => return Vec::new(),
    };
    let mut edits: Vec<Change> = Vec::new();
    for (at, found) in text.match_indices(mark) {
        let after = from(text, at + found.len());
        let conjunction = mark == ','
            && [" and ", " or ", " but ", " so ", " because ", " which ", " while ", " as ", " with "]
                .iter()
                .any(|word| after.starts_with(word));
        let in_number = mark == ','
            && to(text, at).ends_with(|c: char| c.is_ascii_digit())
            && after.starts_with(|c: char| c.is_ascii_digit());
        let new = if conjunction || in_number { "" } else { replacement };
        edits.push((at..at + found.len(), new.to_owned()));
    }
    let dropped: Vec<Change> = edits.iter().map(|(span, _)| (span.clone(), String::new())).collect();
    let mut out = vec![Candidate::new(StepKind::Layout, "replaced marks", apply(text, &edits))];
    if mark == ',' {
        // A number without its comma is another run of word characters, and still the same number.
        out = vec![
            Candidate::new(
                StepKind::Format,
                "wrote commas as semicolons or removed them",
                apply(text, &edits),
            ),
            Candidate::new(StepKind::Format, "removed commas", apply(text, &dropped)),
        ];
    }
    out
}

/// An answer that is there in other case, with other marks between its words or at its end, as it is demanded.
pub(super) fn options(text: &str, options: &[String]) -> Vec<Candidate> {
    let all = lower_words(text);
    let mut stated: Vec<(usize, Span)> = Vec::new();
    for (n, option) in options.iter().enumerate() {
        let wanted: Vec<String> = words::words(option).map(|span| cut(option, span).to_lowercase()).collect();
        if wanted.is_empty() {
            continue;
        }
        for window in all.windows(wanted.len()) {
            let same = window.iter().zip(&wanted).all(|((_, found), word)| found == word);
            if let (true, Some((first, _)), Some((last, _))) = (same, window.first(), window.last())
                && !cut(text, first.start..last.end).contains("\n\n")
            {
                stated.push((n, first.start..last.end));
            }
        }
    }
    // Two answers are none: to choose between them is to answer.
    let Some(&(answer, _)) = stated.first() else { return Vec::new() };
    if stated.iter().any(|&(n, _)| n != answer) {
        return Vec::new();
    }
    let Some(option) = options.get(answer) else { return Vec::new() };
    let end_mark = option.chars().next_back().filter(|c| !c.is_alphanumeric());
    stated
        .iter()
        .rev()
        .map(|(_, span)| {
            let follow = from(text, span.end);
            let replaced = match follow.chars().next() {
                Some(c) if end_mark.is_some() && matches!(c, '.' | ',' | ';' | ':' | '!') => c.len_utf8(),
                _ => 0,
            };
            let edit = (span.start..span.end + replaced, option.clone());
            Candidate::layout("wrote the answer in the required form", apply(text, &[edit]))
        })
        .collect()
}

/// Words with their places, in lower case.
fn lower_words(text: &str) -> Vec<(Span, String)> {
    words::words(text).map(|span| (span.clone(), cut(text, span).to_lowercase())).collect()
}

/// A keyword that is there with other marks between its words, as it is demanded.
pub(super) fn includes(text: &str, keywords: &[String]) -> Vec<Candidate> {
    let all = lower_words(text);
    let mut edits: Vec<Change> = Vec::new();
    for keyword in keywords.iter().filter(|keyword| find_all(text, keyword).next().is_none()) {
        let wanted: Vec<String> =
            words::words(keyword).map(|span| cut(keyword, span).to_lowercase()).collect();
        let Some(window) = all.windows(wanted.len().max(1)).find(|window| {
            window.len() == wanted.len() && window.iter().zip(&wanted).all(|((_, found), word)| found == word)
        }) else {
            return Vec::new();
        };
        let (Some((first, _)), Some((last, _))) = (window.first(), window.last()) else { return Vec::new() };
        edits.push((first.start..last.end, keyword.clone()));
    }
    edits.sort_by_key(|(span, _)| span.start);
    if edits.is_empty() {
        return Vec::new();
    }
    vec![Candidate::layout("wrote keywords with their marks", apply(text, &edits))]
}

/// Placeholders written with other brackets, in square ones.
pub(super) fn placeholders(text: &str) -> Vec<Candidate> {
    let mut edits: Vec<Change> = Vec::new();
    for (open, close) in [("{{", "}}"), ("{", "}"), ("<", ">")] {
        let mut at = 0;
        while let Some(start) = from(text, at).find(open).map(|found| at + found) {
            let body = from(text, start + open.len());
            let Some(length) = body.find(close) else { break };
            let inside = to(body, length);
            let end = start + open.len() + length + close.len();
            at = start + open.len();
            let plain = !inside.is_empty()
                && inside.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '\'' | '-'));
            if plain && (1..=5).contains(&words::count(inside)) {
                edits.push((start..end, format!("[{inside}]")));
                at = end;
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    if edits.is_empty() {
        Vec::new()
    } else {
        vec![Candidate::layout("wrote placeholders in square brackets", apply(text, &edits))]
    }
}

/// `\n` written out, as a line break.
pub(super) fn unescaped(text: &str) -> Option<Candidate> {
    let context = text.contains("\\n").then(|| text.replace("\\n", "\n"))?;
    Some(Candidate::new(StepKind::Format, "read `\\n` as a line break", context))
}
