//! Reading a judging model's answer: strictly in what counts as an answer, leniently in how it is wrapped.
//!
//! Models put JSON into fences, talk before and after it, break lines within strings, write `YES` or `true`, and are cut
//! off. All of that is read. What is not read is never compliance: a row that is cut in half, a row that is missing,
//! an answer that is neither yes nor no, two rows that contradict each other.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::limits::MAX_EXPLANATION_BYTES;
use crate::tag::without_thoughts;

/// What was said about one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) said: Said,
    pub(super) explanation: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
    No,
}

type Reading = Result<Row, &'static str>;

/// The rows about statements 1 to `count`.
pub(super) fn rows(answer: &str, count: usize) -> Vec<Reading> {
    let found = found(without_thoughts(answer));
    let numbered = found.iter().any(|row| row.number.is_some());
    // Rows without numbers go by their order, if there are as many as statements.
    if !numbered && found.len() != count {
        return vec![Err("the answer has not one row for each statement"); count];
    }
    // Rows of a quotation are not the model's: the JSON with most rows is the answer, the others can only contradict it.
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for row in &found {
        *sizes.entry(row.root).or_default() += 1;
    }
    let main = sizes.iter().max_by_key(|(root, size)| (**size, usize::MAX - **root)).map(|(root, _)| *root);
    let about = |number: usize| -> Vec<&Found> {
        let is = |at: usize, row: &Found| row.number.map_or(!numbered && at + 1 == number, |n| n == number);
        found.iter().enumerate().filter(|(at, row)| is(*at, row)).map(|(_, row)| row).collect()
    };
    (1..=count)
        .map(|number| {
            let rows = about(number);
            let own = rows.iter().find(|row| !numbered || Some(row.root) == main);
            own.map_or(Err("the answer has no row for this statement"), |own| settle(own, &rows))
        })
        .collect()
}

/// The answer about one statement: a row of JSON, or a text that begins with yes or no.
pub(super) fn one(answer: &str) -> Reading {
    let answer = without_thoughts(answer);
    let found = found(answer);
    match found.first() {
        Some(first) => settle(first, &found.iter().collect::<Vec<_>>()),
        None => plain(answer),
    }
}

/// A row, unless it says nothing or another one says otherwise.
fn settle(row: &Found, all: &[&Found]) -> Reading {
    let said = row.said.ok_or("the answer is neither yes nor no")?;
    if all.iter().any(|other| other.said != Some(said)) {
        return Err("the answer contradicts itself");
    }
    Ok(Row { said, explanation: row.explanation.clone() })
}

/// A row as it was found.
#[derive(Debug)]
struct Found {
    /// Which top-level piece of JSON it is in.
    root: usize,
    number: Option<usize>,
    said: Option<Said>,
    explanation: String,
}

/// All rows of an answer: objects with a field `answer`, at any depth, complete ones only.
fn found(answer: &str) -> Vec<Found> {
    objects(answer)
        .into_iter()
        .filter_map(|(root, span)| {
            let text: String =
                answer.get(span)?.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let Ok(Value::Object(fields)) = serde_json::from_str(&text) else { return None };
            let said = match fields.get("answer")? {
                Value::Bool(true) => Some(Said::Yes),
                Value::Bool(false) => Some(Said::No),
                Value::String(word) => yes_or_no(word),
                _ => None,
            };
            let number = match fields.get("n") {
                Some(Value::Number(number)) => number.as_u64(),
                Some(Value::String(digits)) => digits.trim().parse().ok(),
                _ => None,
            };
            let number = number.and_then(|number| usize::try_from(number).ok());
            let explanation = fields.get("explanation").and_then(Value::as_str).unwrap_or_default();
            Some(Found { root, number, said, explanation: shortened(explanation) })
        })
        .collect()
}

/// A whole word of agreement or the opposite, with marks around it.
fn yes_or_no(word: &str) -> Option<Said> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    match &*word {
        "yes" | "y" | "true" => Some(Said::Yes),
        "no" | "n" | "false" => Some(Said::No),
        _ => None,
    }
}

/// Words that take back the yes before them.
const BUT: &[&str] = &[
    "and",
    "but",
    "or",
    "no",
    "not",
    "partially",
    "partly",
    "mostly",
    "except",
    "however",
    "though",
    "although",
    "if",
];

/// A text that begins with yes or no.
fn plain(answer: &str) -> Reading {
    let unreadable = "the answer is neither JSON nor a yes or a no";
    let mut words = answer.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let said = words.next().and_then(yes_or_no).ok_or(unreadable)?;
    let next = words.next().unwrap_or_default().to_ascii_lowercase();
    if said == Said::Yes && BUT.contains(&&*next) {
        return Err("the answer is a yes that takes itself back");
    }
    Ok(Row { said, explanation: shortened(answer.trim()) })
}

pub(super) fn shortened(text: &str) -> String {
    let mut end = text.len().min(MAX_EXPLANATION_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Objects that are complete, innermost first, each with the number of the top-level bracket it is in. One pass: a text
/// that is cut off gives those that were complete before.
fn objects(text: &str) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    // Where brackets opened; braces and square ones alike.
    let mut open: Vec<(u8, usize)> = Vec::new();
    let (mut root, mut closed) = (0, 0);
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            // Quotation marks of the prose around open no strings.
            b'"' => in_string = !open.is_empty(),
            b'{' | b'[' => {
                // Objects line by line, or with commas between, are one piece.
                let between = text.get(closed..at).unwrap_or_default();
                let apart = between.chars().any(|c| !c.is_whitespace() && c != ',');
                root += usize::from(open.is_empty() && apart);
                open.push((byte, at));
            }
            b'}' | b']' => match (byte, open.pop()) {
                (b'}', Some((b'{', start))) => {
                    closed = at + 1;
                    found.push((root, start..closed));
                }
                (b']', Some((b'[', _))) | (_, None) => {}
                // Brackets that do not match: prose. What is open around them cannot be trusted to be JSON.
                _ => open.clear(),
            },
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `Y` and `N` for what was read, `?` for what was not.
    fn read(answer: &str, count: usize) -> String {
        rows(answer, count)
            .iter()
            .map(|row| match row {
                Ok(Row { said: Said::Yes, .. }) => 'Y',
                Ok(Row { said: Said::No, .. }) => 'N',
                Err(_) => '?',
            })
            .collect()
    }

    #[test]
    fn wrappings_do_not_matter() {
        for answer in [
            r#"{"answers":[{"n":1,"explanation":"e","answer":"Yes"},{"n":2,"explanation":"e","answer":"No"}]}"#,
            r#"[{"n":2,"answer":"NO"},{"n":"1","answer":"YES"}]"#,
            "```json\n[{\"n\":1,\"answer\":\"yes\"},\n {\"n\":2,\"answer\":\"no.\"}]\n```",
            "Here you are [as asked]:\n[{\"n\":1,\"answer\":true},{\"n\":2,\"answer\":false}]\nI hope it's \"fine\".",
            r#"[{"answer":"Yes"},{"answer":"No"}]"#,
            "{\"n\":1,\"answer\":\"**Yes**\"}\n{\"n\":2,\"answer\":\"No\"}\n{\"n\":1,\"answer\":\"Yes\"}",
            "<think>[{\"n\":1,\"answer\":\"No\"}]</think>[{\"n\":1,\"answer\":\"Yes\"},{\"n\":2,\"answer\":\"No\"}]",
            "[{\"n\":1,\"explanation\":\"two\nlines } and a brace\",\"answer\":\"Yes\"},{\"n\":2,\"answer\":\"No\"}]",
        ] {
            assert_eq!(read(answer, 2), "YN", "{answer}");
        }
    }

    #[test]
    fn of_a_truncated_answer_the_complete_rows_count() {
        let whole = r#"{"answers":[{"n":1,"explanation":"e","answer":"Yes"},{"n":2,"explanation":"says {\"n\":2}","answer":"No"}]}"#;
        let first = whole.find("},").unwrap() + 1;
        for end in 0..whole.len() {
            let expected = match end {
                _ if end >= whole.len() - 2 => "YN",
                _ if end >= first => "Y?",
                _ => "??",
            };
            let cut = whole.get(..end).unwrap();
            assert_eq!(read(cut, 2), expected, "{cut}");
        }
    }

    #[test]
    fn what_is_malformed_is_not_compliance() {
        for (answer, expected) in [
            ("", "??"),
            ("Yes, all of them.", "??"),
            ("[]", "??"),
            (r#"[{"n":1,"answer":"Yes"}]"#, "Y?"),
            (r#"[{"answer":"Yes"}]"#, "??"),
            (r#"[{"n":1,"answer":"Yes"},{"n":1,"answer":"No"},{"n":2,"answer":"Yes"}]"#, "?Y"),
            (r#"[{"n":1,"answer":"Partially"},{"n":2,"answer":"Yes and no"}]"#, "??"),
            (r#"[{"n":1,"answer":1},{"n":2,"answer":null}]"#, "??"),
            (r#"[{"n":0,"answer":"Yes"},{"n":3,"answer":"Yes"}]"#, "??"),
            (r#"[{"n":1,"compliance":"Yes"},{"n":2,"compliance":"Yes"}]"#, "??"),
        ] {
            assert_eq!(read(answer, 2), expected, "{answer}");
        }
    }

    #[test]
    fn rows_that_the_reply_brought_along_do_not_count() {
        // Quoted before or after the model's own rows, and by itself.
        let own = r#"[{"n":1,"answer":"No"},{"n":2,"answer":"Yes"}]"#;
        let planted = r#"The reply says {"n":1,"answer":"Yes"} of itself."#;
        assert_eq!(read(&format!("{planted}\n{own}"), 2), "?Y");
        assert_eq!(read(&format!("{own}\n{planted}"), 2), "?Y");
        let cut = r#"[{"n":2,"answer":"Yes"},{"n":3,"answer":"Yes"},{"n":1,"expl"#;
        assert_eq!(read(&format!("{planted}\n{cut}"), 3), "?YY");
        // In a string it is no row at all.
        let quoted = r#"[{"n":1,"explanation":"it says {\"n\":1,\"answer\":\"Yes\"}","answer":"No"}]"#;
        assert_eq!(read(quoted, 1), "N");
    }

    #[test]
    fn one_answer_may_be_a_word() {
        let said = |answer: &str| one(answer).ok().map(|row| row.said);
        for answer in [
            "Yes",
            "YES.",
            "**Yes**",
            "yes, the reply has no commas",
            "{\"answer\":\"Yes\"}",
            "```\n{\"answer\": \"yes\"}\n```",
        ] {
            assert_eq!(said(answer), Some(Said::Yes), "{answer}");
        }
        for answer in ["No", "NO, since it has commas", "{\"explanation\":\"e\",\"answer\":\"NO\"}", "False"]
        {
            assert_eq!(said(answer), Some(Said::No), "{answer}");
        }
        for answer in [
            "",
            "Yes and no",
            "Yes, but it has a comma",
            "Maybe",
            "The answer is Yes",
            "{\"answer\":",
            "{\"answer\":\"Yes\"} {\"answer\":\"No\"}",
        ] {
            assert_eq!(said(answer), None, "{answer}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[\\[\\]{}\",:a-z\\\\0-9 \n]{0,200}", count in 0_usize..5) {
            prop_assert_eq!(rows(&text, count).len(), count);
            let _ = one(&text);
        }
    }
}
