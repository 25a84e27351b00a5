//! The reply as data: JSON and YAML, perhaps in a fence of three backticks.

use saphyr_parser::{Event, Parser};
use serde::de::IgnoredAny;

use crate::contract::Check;
use crate::limits::MAX_YAML_BYTES;
use crate::text::{Span, one};

/// A text without the fence around it. A fence opens at the very start: text before it stays, and is not JSON.
fn unfenced<'a>(reply: &'a str, openings: &[&str]) -> &'a str {
    let mut body = reply.trim();
    for opening in openings {
        body = body.strip_prefix(opening).unwrap_or(body);
    }
    body.strip_suffix("```").unwrap_or(body).trim()
}

pub(super) fn json(reply: &str) -> Check {
    let body = unfenced(reply, &["```json", "```Json", "```JSON", "```"]);
    match serde_json::from_str::<IgnoredAny>(body) {
        Ok(_) => Check::new(true, "all of it is JSON".to_owned(), Vec::new()),
        Err(error) => {
            let at = byte_of(body, error.line(), error.column()) + offset(reply, body);
            Check::new(false, format!("not JSON: {error}"), around(reply, at))
        }
    }
}

pub(super) fn yaml(reply: &str) -> Check {
    let body = unfenced(reply, &["```yaml", "```yml", "```YAML", "```Yaml", "```"]);
    if body.len() > MAX_YAML_BYTES {
        let explanation = format!("more than {MAX_YAML_BYTES} bytes are not read as YAML: shorten the reply");
        return Check::new(false, explanation, Vec::new());
    }
    let mut documents = 0_usize;
    let mut structured = false;
    let mut before = None;
    for event in Parser::new_from_str(body) {
        match event {
            Err(error) => {
                let marker = error.marker();
                let at = byte_of(body, marker.line(), marker.col() + 1) + offset(reply, body);
                return Check::new(false, format!("not YAML: {error}"), around(reply, at));
            }
            Ok((event, _)) => {
                if matches!(before, Some(Event::DocumentStart(_))) {
                    documents += 1;
                    structured |= matches!(event, Event::MappingStart(..) | Event::SequenceStart(..));
                }
                before = Some(event);
            }
        }
    }
    let explanation = match (documents, structured) {
        (1, true) => "all of it is YAML",
        (1, false) => "a bare text: YAML needs a mapping or a sequence",
        _ => "not one YAML document",
    };
    Check::new(documents == 1 && structured, explanation.to_owned(), Vec::new())
}

fn offset(reply: &str, body: &str) -> usize {
    (body.as_ptr() as usize).saturating_sub(reply.as_ptr() as usize).min(reply.len())
}

/// The byte of a line and column, both from 1; columns are counted in bytes or characters by the parser, so this may
/// be some characters off, and never off a character's boundary.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = crate::text::from(text, start);
    start + rest.char_indices().map(|(at, _)| at).take_while(|&at| at < column).last().unwrap_or_default()
}

/// The character at a place, as a span.
fn around(reply: &str, at: usize) -> Vec<Span> {
    let length = crate::text::from(reply, at).chars().next().map_or(0, char::len_utf8);
    one(at..at + length)
}
