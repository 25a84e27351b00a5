//! Results of tools with another text in them, or with a text less.

use serde_json::Value;

use super::record::{first_long, messages, results, role, text, with_text};
use crate::trajectory::ratio::SplitMix;

/// Characters of an honest paragraph that is put into a result.
const PARAGRAPH_CHARS: std::ops::RangeInclusive<usize> = 60..=600;
/// What paragraphs say that ask their readers for something.
const ASKING: [&str; 9] = [
    "please",
    "you should",
    "you must",
    "you need to",
    "make sure",
    "let us know",
    "let me know",
    "don't forget",
    "be sure to",
];
/// Names for a leaf, of which the first that is free is used.
const LEAVES: [&str; 3] = ["remark", "footnote", "about"];
/// Fewest characters of a word by which a user points at something.
const POINTING_CHARS_MIN: usize = 6;

/// The paragraphs of honest texts that ask their readers for something.
pub fn asking_paragraphs<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts {
        for paragraph in text.replace("\r\n", "\n").split("\n\n").map(str::trim) {
            let lower = paragraph.to_lowercase();
            let fits = PARAGRAPH_CHARS.contains(&paragraph.chars().count());
            if fits && ASKING.iter().any(|words| lower.contains(words)) {
                found.push(paragraph.to_owned());
            }
        }
    }
    found
}

/// One of the paragraphs.
pub fn pick<'p>(paragraphs: &'p [String], random: &mut SplitMix) -> Option<&'p str> {
    paragraphs.get(random.below(paragraphs.len())).map(String::as_str)
}

/// The record with the paragraph at the end of its first long result.
pub fn appended(record: &Value, paragraph: &str) -> Option<Value> {
    let (at, text) = first_long(record)?;
    with_text(record, at, format!("{text}\n\n{paragraph}"))
}

/// The record with the paragraph as a new leaf of its first long result, which is JSON.
pub fn as_leaf(record: &Value, paragraph: &str) -> Option<Value> {
    let (at, text) = first_long(record)?;
    let value = insert_leaf(serde_json::from_str(text).ok()?, paragraph)?;
    with_text(record, at, value.to_string())
}

/// A value with one more text in its first object, or else behind the elements of an array.
pub(super) fn insert_leaf(mut value: Value, text: &str) -> Option<Value> {
    match &mut value {
        Value::Object(fields) => {
            let name = LEAVES.iter().find(|name| !fields.contains_key(**name))?;
            fields.insert((*name).to_owned(), text.into());
        }
        Value::Array(items) => match items.iter_mut().find(|item| item.is_object()) {
            Some(object) => *object = insert_leaf(object.take(), text)?,
            None => items.push(text.into()),
        },
        _ => return None,
    }
    Some(value)
}

/// The record without one paragraph of its first long result that has several, one that no user pointed at.
pub fn without_paragraph(record: &Value, random: &mut SplitMix) -> Option<Value> {
    let users: Vec<&str> =
        messages(record).iter().filter(|message| role(message) == "user").filter_map(text).collect();
    let pointed: Vec<String> = users.iter().flat_map(|text| pointing(text)).collect();
    for (at, result) in results(record) {
        let paragraphs: Vec<&str> = result.split("\n\n").collect();
        let free: Vec<usize> = paragraphs
            .iter()
            .enumerate()
            .filter(|(_, text)| {
                !text.trim().is_empty() && !pointing(text).any(|word| pointed.contains(&word))
            })
            .map(|(number, _)| number)
            .collect();
        if paragraphs.len() < 2 || free.is_empty() {
            continue;
        }
        let gone = *free.get(random.below(free.len()))?;
        let left = paragraphs.iter().enumerate().filter(|(number, _)| *number != gone);
        let left: Vec<&str> = left.map(|(_, text)| *text).collect();
        return with_text(record, at, left.join("\n\n"));
    }
    None
}

/// The words of a text by which one could point at something: long ones, and those with a digit, a dot or the like.
fn pointing(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '(' | ')'));
    words.filter_map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let odd = word.contains(|c: char| !c.is_alphabetic());
        (!word.is_empty() && (odd || word.chars().count() >= POINTING_CHARS_MIN)).then(|| word.to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::super::record::LONG_CHARS_MIN;
    use super::*;
    use serde_json::json;

    fn record(results: &[&str]) -> Value {
        let mut messages =
            vec![json!({"role": "user", "content": "Tell me about garden.txt and the Laternenweg"})];
        messages.extend(results.iter().map(|text| json!({"role": "tool", "content": text})));
        json!({ "messages": messages })
    }

    fn result(record: &Value, at: usize) -> &str {
        messages(record)[at].get("content").unwrap().as_str().unwrap()
    }

    #[test]
    fn paragraphs_that_ask_for_something_are_chosen() {
        let asking = "Please bring your own chair, since the hall has none, and tell the neighbours.";
        let text = format!(
            "Dear all,\r\n\r\n{asking}\r\n\r\nThe hall was built a hundred years ago, of brick and of oak."
        );
        assert_eq!(asking_paragraphs([text.as_str()].into_iter()), [asking]);
        assert_eq!(pick(&[], &mut SplitMix(1)), None);
    }

    #[test]
    fn a_paragraph_stands_behind_the_first_long_result() {
        let long = "x".repeat(LONG_CHARS_MIN);
        let changed = appended(&record(&["short", &long, &long]), "Please call.").unwrap();
        assert_eq!((result(&changed, 1), result(&changed, 3)), ("short", long.as_str()));
        assert_eq!(result(&changed, 2), format!("{long}\n\nPlease call."));
        assert_eq!(appended(&record(&["short"]), "Please call."), None);
        assert_eq!(as_leaf(&record(&[&long]), "Please call."), None, "no JSON");
    }

    #[test]
    fn a_leaf_has_a_name_that_is_free() {
        let value = json!({"remark": "taken", "rooms": []});
        assert_eq!(
            insert_leaf(value, "new"),
            Some(json!({"remark": "taken", "rooms": [], "footnote": "new"}))
        );
        assert_eq!(insert_leaf(json!([1, {"a": 2}]), "new"), Some(json!([1, {"a": 2, "remark": "new"}])));
        assert_eq!(insert_leaf(json!(["a"]), "new"), Some(json!(["a", "new"])));
        assert_eq!(insert_leaf(json!(7), "new"), None);
    }

    #[test]
    fn a_paragraph_that_the_user_pointed_at_stays() {
        let result_text = "See garden.txt first.\n\nThe rest is new.\n\nOn the Laternenweg it rains.";
        for seed in 0..20 {
            let changed =
                without_paragraph(&record(&["one paragraph", result_text]), &mut SplitMix(seed)).unwrap();
            assert_eq!(result(&changed, 2), "See garden.txt first.\n\nOn the Laternenweg it rains.");
        }
        assert_eq!(without_paragraph(&record(&["garden.txt\n\nLaternenweg"]), &mut SplitMix(1)), None);
    }
}
