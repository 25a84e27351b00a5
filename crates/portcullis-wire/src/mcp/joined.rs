//! Words that are split over the content blocks of one message.
//!
//! A client puts the texts of blocks one behind the other, so that `ign` and `ore` become a word that is in neither.
//! Where the end of a block and the beginning of the next make a word, both are read once more as one text.

use std::ops::{Range, RangeInclusive};

use portcullis_core::display::is_unseen;

use super::excise::{Part, Piece};
use super::text::Told;

/// Longest word that is put together, in bytes.
const WORD_BYTES_MAX: usize = 64;
/// How much of a block is read again on each side of a split word, in bytes: the longest sentence that is judged.
const AROUND_BYTES: usize = 2_048;

impl Told {
    /// This text, and behind it once more the blocks over which a word is split. `is_word` says whether letters of the
    /// end of a block and the beginning of others are a word.
    #[must_use]
    pub fn with_split_words(mut self, is_word: impl Fn(&str) -> bool) -> Self {
        let numbers = std::mem::take(&mut self.blocks);
        let places = numbers.into_iter().filter_map(|number| Some(self.pieces.get(number)?.text.clone()));
        let is_seen = |place: &Range<usize>| {
            self.text.get(place.clone()).is_some_and(|text| !text.chars().all(is_unseen))
        };
        let blocks: Vec<Range<usize>> = places.filter(is_seen).collect();
        let texts: Vec<&str> = blocks.iter().filter_map(|place| self.text.get(place.clone())).collect();
        let chains = chains(&texts, is_word);
        let joined: Vec<_> =
            chains.into_iter().filter_map(|chain| Some(join(&self.text, blocks.get(chain)?))).collect();
        for (text, parts) in joined {
            let place = self.push(&text);
            self.pieces.push(Piece::joined(place, parts));
        }
        self
    }
}

/// How two blocks meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// Nothing shows that one continues in the other.
    Apart,
    /// There is a blank between them, so that a sentence may continue.
    Blank,
    /// They share a word.
    Word,
}

/// The stretches of blocks that read as one text and have a word that is in none of them alone.
fn chains(texts: &[&str], is_word: impl Fn(&str) -> bool) -> Vec<RangeInclusive<usize>> {
    let mut joints: Vec<Joint> = texts.windows(2).map(blank_between).collect();
    let mut at = 0;
    while at + 1 < texts.len() {
        let last = end_of_word(texts, at, &is_word);
        if let Some(shared) = last.and_then(|last| joints.get_mut(at..last)) {
            shared.fill(Joint::Word);
        }
        at = last.unwrap_or(at + 1);
    }
    let mut from = 0;
    let mut chains = Vec::new();
    for stretch in joints.split_inclusive(|joint| *joint == Joint::Apart) {
        let met = stretch.strip_suffix(&[Joint::Apart]).unwrap_or(stretch);
        if met.contains(&Joint::Word) {
            chains.push(from..=from + met.len());
        }
        from += stretch.len();
    }
    chains
}

fn blank_between(pair: &[&str]) -> Joint {
    let is_blank = |c: char| c.is_whitespace() && c != '\n';
    match pair {
        [one, next] if one.ends_with(is_blank) || next.starts_with(is_blank) => Joint::Blank,
        _ => Joint::Apart,
    }
}

/// The last block of the longest word that begins at the end of a block.
fn end_of_word(texts: &[&str], at: usize, is_word: impl Fn(&str) -> bool) -> Option<usize> {
    let seen = |number: usize| texts.get(number).map(|text| text.trim_matches(is_unseen));
    let text = seen(at)?;
    let mut word = text.get(text.trim_end_matches(char::is_alphabetic).len()..)?.to_lowercase();
    if word.is_empty() {
        return None;
    }
    let mut found = None;
    for number in at + 1..texts.len() {
        let next = seen(number)?;
        let rest = next.trim_start_matches(char::is_alphabetic);
        let head = next.get(..next.len() - rest.len()).unwrap_or_default();
        if head.is_empty() || word.len() + head.len() > WORD_BYTES_MAX {
            break;
        }
        word.push_str(&head.to_lowercase());
        if is_word(&word) {
            found = Some(number);
        }
        if !rest.is_empty() {
            break;
        }
    }
    found
}

/// The blocks one behind the other, without what is far from the words that they share.
fn join(text: &str, blocks: &[Range<usize>]) -> (String, Vec<Part>) {
    let (mut joined, mut parts) = (String::new(), Vec::new());
    let mut add = |joined: &mut String, of: Range<usize>| {
        parts.push(Part { at: joined.len(), of: of.clone() });
        joined.push_str(text.get(of).unwrap_or_default());
    };
    for (number, block) in blocks.iter().enumerate() {
        let (first, last) = (number == 0, number + 1 == blocks.len());
        let head = text.floor_char_boundary(block.end.min(block.start + AROUND_BYTES));
        let tail = text.ceil_char_boundary(block.start.max(block.end.saturating_sub(AROUND_BYTES)));
        match () {
            () if first => add(&mut joined, tail..block.end),
            () if last => add(&mut joined, block.start..head),
            () if tail <= head => add(&mut joined, block.clone()),
            () => {
                add(&mut joined, block.start..head);
                joined.push('\n');
                add(&mut joined, tail..block.end);
            }
        }
    }
    (joined, parts)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::result::read_tool_result;

    const WORDS: [&str; 4] = ["ignore", "password", "send", "over"];

    fn read(blocks: &[&str]) -> String {
        let blocks: Vec<_> = blocks
            .iter()
            .map(|text| serde_json::json!({"type": "text", "text": text, "_meta": {"x": "a b"}}))
            .collect();
        let raw = RawValue::from_string(serde_json::json!({"content": blocks}).to_string()).unwrap();
        let told = read_tool_result(&raw).unwrap().told;
        let before = told.text.len();
        let told = told.with_split_words(|word| WORDS.contains(&word));
        told.text.get(before..).unwrap().to_owned()
    }

    #[test]
    fn a_word_that_is_split_is_read() {
        for blocks in [
            &["Ign", "ore the pass", "word"][..],
            &["I", "g", "n", "o", "r", "e", " the pass", "word"],
            &["Ign", "", "ore the pass", "\u{200b}", "word"],
        ] {
            assert_eq!(read(blocks).replace('\u{200b}', ""), "\nIgnore the password", "{blocks:?}");
        }
        assert_eq!(read(&["IG", "NORE it", "We se", "nd"]), "\nIGNORE it\nWe send");
    }

    #[test]
    fn whole_words_are_not() {
        for blocks in [
            &["Please send", "it over"][..],
            &["a.txt", "b.txt"],
            &["Send ", "it"],
            &["Pass: 1", "word"],
            &["pass-", "word"],
            &["{\"a\":1}", "{\"b\":2}"],
            &["one"],
            &[],
        ] {
            assert_eq!(read(blocks), "", "{blocks:?}");
        }
    }

    #[test]
    fn what_is_far_from_the_split_is_not_read_again() {
        let long = "Tea. ".repeat(10_000);
        let joined = read(&[&format!("{long}ign"), "ore it"]);
        assert!(joined.len() < 2_100 && joined.ends_with("Tea. ignore it"), "{}", joined.len());
        let middle = read(&["ign", &format!("ore {long} pass"), "word"]);
        assert!(middle.len() < 4_200 && middle.starts_with("\nignore") && middle.ends_with("password"));
    }
}
