//! The arguments of a call as values and words.

use serde_json::Value as Json;

use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::values::{Kind, Value, normal_hash, values};
use crate::words::{Shape, WORDS_MAX, Word, each};

/// Most string leaves of one call's arguments that are looked at.
pub const ARGUMENTS_MAX: usize = 64;
/// Deepest nesting that is looked at.
pub const DEPTH_MAX: usize = 16;
/// More words than this make an argument a text.
pub const TARGET_WORDS_MAX: usize = 12;
/// Longest argument that counts as one value whatever it looks like, in bytes.
pub const WHOLE_BYTES_MAX: usize = 80;
/// Most values of one argument that are looked at.
pub const PARTS_MAX: usize = 256;

/// One string or number among the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Whether it holds a text, such as a message's body, rather than what the call is done to.
    pub content: bool,
    /// The values in it; a short one without any is a value as a whole.
    pub values: Vec<Value>,
    /// Stems of the words of what the call is done to, without those that say nothing; a text has none.
    pub stems: Vec<u64>,
    /// Whether it has more than two letters or digits.
    pub speaks: bool,
}

/// The leaves of a call's arguments, at most [`ARGUMENTS_MAX`]. What is left out is reported by the second value.
pub fn arguments(lexicon: &Lexicon, json: &Json) -> (Vec<Argument>, bool) {
    let mut found = Vec::new();
    let whole = flatten(lexicon, "", json, &mut found, 0);
    (found, !whole)
}

fn flatten(lexicon: &Lexicon, name: &str, json: &Json, found: &mut Vec<Argument>, depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    let mut push = |text: &str| {
        let room = found.len() < ARGUMENTS_MAX;
        if room {
            found.push(argument(lexicon, name, text));
        }
        room
    };
    match json {
        Json::String(text) => push(text),
        Json::Number(number) => push(&number.to_string()),
        Json::Array(items) => items.iter().all(|item| flatten(lexicon, name, item, found, depth + 1)),
        Json::Object(map) => map.iter().all(|(key, item)| flatten(lexicon, key, item, found, depth + 1)),
        Json::Null | Json::Bool(_) => true,
    }
}

fn argument(lexicon: &Lexicon, name: &str, text: &str) -> Argument {
    let names_a_text = each(name).take(WORDS_MAX).any(|word| lexicon.classes(&word).is(Classes::CONTENT));
    // Of a text nobody asks for the words, only for the values.
    let spoken: Vec<Word> = match names_a_text {
        true => Vec::new(),
        false => each(text).take(TARGET_WORDS_MAX + 1).collect(),
    };
    let content = names_a_text || spoken.len() > TARGET_WORDS_MAX;
    let mut found = values(text);
    found.truncate(PARTS_MAX);
    let trimmed = text.trim().len();
    if found.is_empty() && (2..=WHOLE_BYTES_MAX).contains(&trimmed) {
        found.push(Value { kind: Kind::Quoted, hash: normal_hash(text), host: None, range: 0..text.len() });
    }
    let says = |word: &&Word| {
        let number = word.shape.is(Shape::DIGIT) && word.shape.is(Shape::SHORT);
        !number && !lexicon.classes(word).is(Classes::FUNCTION)
    };
    let stems = spoken.iter().filter(|_| !content).filter(says).map(|word| lexicon.base(word.stem));
    Argument { content, values: found, stems: stems.collect(), speaks: trimmed > 2 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lexicon::BUILT_IN;

    #[test]
    fn leaves_are_found_and_bounded() {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let (found, cut) =
            arguments(&lexicon, &json!({"to": ["a@b.com"], "body": "hello there", "n": 5, "x": null}));
        assert_eq!((found.len(), cut), (3, false));
        assert!(!found[0].content && found[0].values[0].kind == Kind::Mail);
        assert!(found[1].content);
        let many: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(arguments(&lexicon, &json!(many)).0.len(), ARGUMENTS_MAX);
        let mut deep = json!("x");
        for _ in 0..50 {
            deep = json!([deep]);
        }
        assert_eq!(arguments(&lexicon, &deep), (Vec::new(), true));
    }
}
