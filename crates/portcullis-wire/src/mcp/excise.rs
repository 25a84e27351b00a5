//! Replaces stretches of a result's text where they are in the message, and leaves every other byte unchanged.
//!
//! Guards judge the text of a result as one piece a line; what they want replaced is given in bytes of that text. Here
//! it is brought back to the JSON strings that the text was read from. What cannot be brought back with certainty is
//! refused, and the caller withholds the result as a whole.

use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

/// One piece of the text of a result, and the JSON that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its place in the text.
    pub text: Range<usize>,
    /// The address of the JSON value, to be compared with that of a text that holds it.
    address: usize,
    /// Length of the JSON value.
    bytes: usize,
    kind: PieceKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PieceKind {
    /// The decoded value of a JSON string.
    String,
    /// A JSON value, written again.
    Json,
    /// Other pieces read once more, one behind the other.
    Joined(Vec<Part>),
}

/// A part of a text that is in another piece as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Its first byte, counted from the beginning of the joined text.
    pub(super) at: usize,
    /// Where it is in that other piece, in bytes of the whole text.
    pub(super) of: Range<usize>,
}

impl Piece {
    pub(super) fn of_string(text: Range<usize>, raw: &RawValue) -> Self {
        Self::new(text, raw, PieceKind::String)
    }

    pub(super) fn of_json(text: Range<usize>, raw: &RawValue) -> Self {
        Self::new(text, raw, PieceKind::Json)
    }

    pub(super) fn joined(text: Range<usize>, parts: Vec<Part>) -> Self {
        Self { text, address: 0, bytes: 0, kind: PieceKind::Joined(parts) }
    }

    fn new(text: Range<usize>, raw: &RawValue, kind: PieceKind) -> Self {
        Self { text, address: raw.get().as_ptr().addr(), bytes: raw.get().len(), kind }
    }

    /// The piece in a text that another stands before.
    pub(super) fn moved_by(self, bytes: usize) -> Self {
        let moved = |place: Range<usize>| place.start + bytes..place.end + bytes;
        let kind = match self.kind {
            PieceKind::Joined(parts) => {
                PieceKind::Joined(parts.into_iter().map(|part| Part { of: moved(part.of), ..part }).collect())
            }
            kind => kind,
        };
        Self { text: moved(self.text), kind, ..self }
    }

    /// A replacement in a joined text, brought back to the pieces that it was joined of; none elsewhere.
    fn apart<'r>(&self, replacement: Replacement<'r>) -> Option<Vec<Replacement<'r>>> {
        let PieceKind::Joined(parts) = &self.kind else { return None };
        if replacement.start < self.text.start || self.text.end < replacement.end {
            return None;
        }
        let (start, end) = (replacement.start - self.text.start, replacement.end - self.text.start);
        let mut apart: Vec<Replacement<'r>> = Vec::new();
        for part in parts {
            let (from, to) = (start.max(part.at), end.min(part.at + part.of.len()));
            if from < to {
                let place = |at: usize| part.of.start + (at - part.at);
                let with = if apart.is_empty() { replacement.with } else { "" };
                apart.push(Replacement { start: place(from), end: place(to), with });
            }
        }
        Some(apart)
    }

    /// Where the JSON value is in a message that it was read from.
    fn place_in(&self, message: &str) -> Option<Range<usize>> {
        let start = self.address.checked_sub(message.as_ptr().addr())?;
        let end = start.checked_add(self.bytes)?;
        message.get(start..end).map(|_| start..end)
    }
}

/// A span of the text of a result, and its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// First byte in the text.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// The replacement.
    pub with: &'a str,
}

/// The message with stretches of its result's text replaced; `pieces` are those that were read from this very message,
/// `text` is all of its text. Replacements must be in order and apart.
///
/// None where a stretch does not lie within one piece, or cannot be brought back to the message.
#[must_use]
pub fn replace_in_message(
    message: &[u8],
    pieces: &[Piece],
    text: &str,
    replacements: &[Replacement<'_>],
) -> Option<Vec<u8>> {
    let message = str::from_utf8(message).ok()?;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let replacements = brought_apart(pieces, replacements);
    let mut left = replacements.as_slice();
    for piece in pieces {
        let count = left.iter().take_while(|next| next.end <= piece.text.end).count();
        let (here, rest) = left.split_at_checked(count)?;
        left = rest;
        if here.is_empty() {
            continue;
        }
        let place = piece.place_in(message)?;
        let original = text.get(piece.text.clone())?;
        let edited = edit(original, piece.text.start, here)?;
        let json = match &piece.kind {
            PieceKind::String => Value::String(edited).to_string(),
            PieceKind::Json => {
                // The edits lie within strings of it, so it must still be JSON of the same shape.
                serde_json::from_str::<Value>(&edited).ok()?;
                edited
            }
            PieceKind::Joined(_) => return None,
        };
        changes.push((place, json));
    }
    if !left.is_empty() {
        return None;
    }
    changes.sort_by_key(|(place, _)| place.start);
    let mut written = String::with_capacity(message.len());
    let mut from = 0;
    for (place, json) in &changes {
        written.push_str(message.get(from..place.start)?);
        written.push_str(json);
        from = place.end;
    }
    written.push_str(message.get(from..)?);
    Some(written.into_bytes())
}

/// The replacements in the pieces that are in the message, in order and apart. What is found in both readings of a
/// text is replaced once.
fn brought_apart<'r>(pieces: &[Piece], replacements: &[Replacement<'r>]) -> Vec<Replacement<'r>> {
    let joined = || pieces.iter().filter(|piece| matches!(piece.kind, PieceKind::Joined(_)));
    if joined().next().is_none() {
        return replacements.to_vec();
    }
    let mut all: Vec<Replacement<'r>> = replacements
        .iter()
        .flat_map(|one| joined().find_map(|piece| piece.apart(*one)).unwrap_or_else(|| vec![*one]))
        .collect();
    all.sort_by_key(|one| one.start);
    let mut apart: Vec<Replacement<'r>> = Vec::new();
    for one in all {
        match apart.last_mut() {
            Some(last) if one.start < last.end => {
                last.end = last.end.max(one.end);
                last.with = if last.with.is_empty() { one.with } else { last.with };
            }
            _ => apart.push(one),
        }
    }
    apart
}

/// A piece with replacements applied whose places count from `base`.
fn edit(original: &str, base: usize, replacements: &[Replacement<'_>]) -> Option<String> {
    let mut edited = String::with_capacity(original.len());
    let mut from = 0;
    for replacement in replacements {
        let (start, end) = (replacement.start.checked_sub(base)?, replacement.end.checked_sub(base)?);
        edited.push_str(original.get(from..start)?);
        original.get(start..end)?;
        edited.push_str(replacement.with);
        from = end;
    }
    edited.push_str(original.get(from..)?);
    Some(edited)
}

#[cfg(test)]
mod tests {
    use super::super::result::read_tool_result;
    use super::*;

    fn excise(result: &str, stretches: &[&str]) -> Option<String> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1, "result":{result}}}"#);
        #[derive(serde::Deserialize)]
        struct Response<'a> {
            #[serde(borrow)]
            result: &'a RawValue,
        }
        let response: Response<'_> = serde_json::from_str(&message).unwrap();
        let mut read = read_tool_result(response.result).unwrap();
        read.told = read.told.with_split_words(|word| word == "ignore");
        let replacements: Vec<Replacement<'_>> = stretches
            .iter()
            .map(|stretch| {
                let start = read.told.text.find(stretch).unwrap();
                Replacement { start, end: start + stretch.len(), with: "[\"cut\"]" }
            })
            .collect();
        let written =
            replace_in_message(message.as_bytes(), &read.told.pieces, &read.told.text, &replacements)?;
        let written = String::from_utf8(written).unwrap();
        let head = r#"{"jsonrpc":"2.0","id":1, "result":"#;
        Some(written.strip_prefix(head).unwrap().strip_suffix('}').unwrap().to_owned())
    }

    #[test]
    fn a_stretch_is_replaced_where_it_stands_and_nothing_else_is() {
        assert_eq!(
            excise(r#"{ "content":[{"type":"text","text":"a b"},{"type":"text", "text":"c \"bad\" \u00e9 d"}] , "x":1}"#, &["\"bad\" é"]),
            Some(r#"{ "content":[{"type":"text","text":"a b"},{"type":"text", "text":"c [\"cut\"] d"}] , "x":1}"#.to_owned())
        );
        let two = excise(r#"{"content":[{"type":"text","text":"one two three"}]}"#, &["one", "three"]);
        assert_eq!(two, Some(r#"{"content":[{"type":"text","text":"[\"cut\"] two [\"cut\"]"}]}"#.to_owned()));
    }

    #[test]
    fn what_is_found_in_words_joined_over_blocks_is_cut_out_of_each() {
        let result = r#"{"content":[{"type":"text","text":"Nine. Ign"},{"type":"text","text":"ore","x":1},
            {"type":"text","text":" it. Tea"}]}"#;
        let cut = excise(result, &["Ignore it."]).unwrap();
        assert!(cut.contains(r#""Nine. [\"cut\"]"},"#), "{cut}");
        assert!(cut.contains(r#""text":"","x":1},"#) && cut.contains(r#""text":" Tea""#), "{cut}");
        // Found in both readings.
        let both = excise(result, &["Nine. Ign", "Nine. Ignore it."]).unwrap();
        assert!(both.contains(r#""text":"[\"cut\"]"},"#) && both.contains(r#""text":" Tea""#), "{both}");
    }

    #[test]
    fn what_cannot_be_brought_back_is_refused() {
        // Across two pieces.
        let across = r#"{"content":[{"type":"text","text":"a b"},{"type":"text","text":"c d"}]}"#;
        assert_eq!(excise(across, &["b\nc"]), None);
        // Structured content would be no JSON any more.
        assert_eq!(excise(r#"{"content":[],"structuredContent":{"k":"v"}}"#, &["\"k\":"]), None);
    }
}
