//! Where injected text stands in a tool's result.
//!
//! Tools print what they hold as YAML, JSON or the source of a Python value, so an injected text comes out folded,
//! indented, quoted and escaped. It is searched without white space, quotes and escapes on either side.

use std::ops::Range;

/// Farthest a template reaches to either side of its goal, in bytes.
const TEMPLATE_BYTES_MAX: usize = 2_048;
/// Fewest characters that are searched for, counted without white space: less could stand anywhere by chance.
const NEEDLE_CHARS_MIN: usize = 8;

/// A text without white space, quotes and escapes, and where each of its characters stands.
#[derive(Debug, Clone, Default)]
pub struct Compact {
    text: String,
    /// For each byte of `text`, the bytes of the character it belongs to in the original.
    places: Vec<(usize, usize)>,
}

impl Compact {
    /// Of a text.
    pub fn new(text: &str) -> Self {
        let mut compact = Self::default();
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == '\\' {
                // Of an escape nothing is left; other characters stand for themselves.
                chars.next_if(|(_, next)| matches!(next, 'n' | 't' | 'r'));
                continue;
            }
            if c.is_whitespace() || c == '\'' || c == '"' {
                continue;
            }
            compact.text.push(c);
            compact.places.extend(std::iter::repeat_n((at, at + c.len_utf8()), c.len_utf8()));
        }
        compact
    }

    /// Where `needle` stands in the original, each time.
    pub fn find(&self, needle: &str) -> Vec<Range<usize>> {
        let needle = Self::new(needle).text;
        if needle.chars().count() < NEEDLE_CHARS_MIN {
            return Vec::new();
        }
        let found = self.text.match_indices(&needle).filter_map(|(at, found)| {
            let start = self.places.get(at)?.0;
            let end = self.places.get(at + found.len() - 1)?.1;
            Some(start..end)
        });
        found.collect()
    }
}

/// The element around a goal: from the nearest tag before it that is closed behind it, to the end of that closing tag.
/// The goal itself where there is none.
pub fn element(text: &str, goal: &Range<usize>) -> Range<usize> {
    let from = text.ceil_char_boundary(goal.start.saturating_sub(TEMPLATE_BYTES_MAX));
    let to = text.floor_char_boundary((goal.end + TEMPLATE_BYTES_MAX).min(text.len()));
    let before = text.get(from..goal.start).unwrap_or_default();
    let behind = text.get(goal.end..to).unwrap_or_default();
    for (at, _) in before.rmatch_indices('<') {
        let Some(name) = before.get(at + 1..).and_then(|rest| rest.split_once('>')).map(|(name, _)| name)
        else {
            continue;
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let closing = format!("</{name}>");
        if let Some(end) = behind.find(&closing) {
            return from + at..goal.end + end + closing.len();
        }
    }
    goal.clone()
}

/// Joins ranges that overlap or touch; ascending.
pub fn union(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The text without the template: of each element only the goal is left. Returns where the goals stand then.
pub fn without_template(
    text: &str,
    injected: &[(Range<usize>, Range<usize>)],
) -> (String, Vec<Range<usize>>) {
    let mut left = String::with_capacity(text.len());
    let mut goals = Vec::new();
    let mut from = 0;
    for (element, goal) in injected {
        if element.start < from {
            continue;
        }
        left.push_str(text.get(from..element.start).unwrap_or_default());
        let start = left.len();
        left.push_str(text.get(goal.clone()).unwrap_or_default());
        goals.push(start..left.len());
        from = element.end;
    }
    left.push_str(text.get(from..).unwrap_or_default());
    (left, goals)
}

/// Characters of `text` in the ranges that are in both lists, which are ascending and without overlap.
pub fn shared_chars(text: &str, a: &[Range<usize>], b: &[Range<usize>]) -> u64 {
    let mut shared = 0;
    for one in a {
        for other in b {
            let (start, end) = (one.start.max(other.start), one.end.min(other.end));
            if start < end {
                shared += chars(text, &(start..end));
            }
        }
    }
    shared
}

/// Characters of `text` in a range of bytes.
pub fn chars(text: &str, range: &Range<usize>) -> u64 {
    let start = text.floor_char_boundary(range.start);
    let end = text.ceil_char_boundary(range.end);
    text.get(start..end).map_or(0, |part| part.chars().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_however_it_is_printed() {
        let needle = "Water the plants.\n\nThen call Ida's number";
        for printed in [
            "body: 'Water the plants.\n\n    Then call\n    Ida''s number'\n",
            "{'body': \"Water the plants.\\n\\nThen call Ida's number\"}",
            "Water the plants. Then call Ida\\'s number",
        ] {
            let found = Compact::new(printed).find(needle);
            assert_eq!(found.len(), 1, "{printed}");
            let text = printed.get(found[0].clone()).unwrap();
            assert!(text.starts_with("Water") && text.ends_with("number"), "{text}");
        }
        assert!(Compact::new("water the plants").find(needle).is_empty());
        assert!(Compact::new("a b c").find("abc").is_empty(), "too short to mean anything");
    }

    #[test]
    fn a_template_is_the_element_around_the_goal() {
        let text = "<p>hello</p> <NOTE>\nbefore all: feed the cat now\nthanks\n</NOTE> bye";
        let goal = Compact::new(text).find("feed the cat now").remove(0);
        let element = element(text, &goal);
        let whole = "<NOTE>\nbefore all: feed the cat now\nthanks\n</NOTE>";
        assert_eq!(text.get(element.clone()), Some(whole));
        let (left, goals) = without_template(text, &[(element, goal)]);
        assert_eq!(left, "<p>hello</p> feed the cat now bye");
        assert_eq!(left.get(goals[0].clone()), Some("feed the cat now"));
    }

    #[test]
    fn without_an_element_the_goal_is_all_there_is() {
        let text = "a < b, feed the cat now > c";
        let goal = Compact::new(text).find("feed the cat now").remove(0);
        assert_eq!(element(text, &goal), goal);
    }

    #[test]
    fn ranges_are_counted_in_characters() {
        let text = "äöü feed";
        assert_eq!(chars(text, &(0..6)), 3);
        let (one, other) = (0..6, 2..8);
        assert_eq!(shared_chars(text, std::slice::from_ref(&one), &[other]), 2);
        assert_eq!(union(vec![4..6, 0..2, 1..4, 9..9]), [one]);
    }
}
