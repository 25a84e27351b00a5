//! All that a model may be shown of what a server says.
//!
//! Clients show more than the specification speaks of, and older or newer ones show fields that this gate has never
//! heard of. So every string counts as text, wherever it stands, except the values of fields that steer the protocol
//! ([`PLAIN`]) as long as each is one short word, and contents that are no text, like images.

use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::encoded::{UnknownCharset, decode};
use super::excise::Piece;
use crate::fields::{self, FieldError, Named};

/// Most text taken out of one message, in bytes: 1 MiB. The message itself passes whole.
pub const RESULT_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most content blocks in one result, and most entries of any other list in it that is taken apart.
pub const CONTENT_BLOCKS_MAX: usize = 16 * 1024;

/// Fields that steer the protocol. Their values are no text, as long as they are plain: see [`is_plain`].
const PLAIN: [&str; 21] = [
    "type",
    "mimeType",
    "role",
    "level",
    "status",
    "resultType",
    "taskId",
    "requestId",
    "progressToken",
    "createdAt",
    "lastUpdatedAt",
    "lastModified",
    "ttl",
    "ttlMs",
    "pollInterval",
    "pollIntervalMs",
    "cacheScope",
    "nextCursor",
    "size",
    "mode",
    "code",
];
/// Longest plain value, in bytes: room for ids and timestamps, not for an order.
const PLAIN_BYTES_MAX: usize = 64;
/// Most words that say nothing together, in bytes: names, versions and capabilities, not a page.
const TERSE_BYTES_MAX: usize = 512;

/// Text that was taken out of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// One piece a line, at most [`RESULT_TEXT_BYTES_MAX`].
    pub text: String,
    /// What it was put together from, in its order.
    pub pieces: Vec<Piece>,
    /// Text was left out because of the limit: what is in `text` is not all.
    pub truncated: bool,
    /// Which pieces are texts of content blocks, by their number: clients show them without anything in between.
    pub(super) blocks: Vec<usize>,
}

impl Told {
    /// All the text of a message, and what it was put together from.
    #[must_use]
    pub fn whole(text: String, pieces: Vec<Piece>) -> Self {
        Self { text, pieces, ..Self::default() }
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// This text and then another one, of the same message.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        let place = self.push(&other.text);
        self.truncated |= other.truncated;
        let before = self.pieces.len();
        self.blocks.extend(other.blocks.into_iter().map(|block| before + block));
        let moved = other.pieces.into_iter().map(|piece| piece.moved_by(place.start));
        self.pieces.extend(moved);
        self
    }

    /// Adds a piece; returns its place.
    pub(super) fn push(&mut self, piece: &str) -> Range<usize> {
        if piece.is_empty() {
            return self.text.len()..self.text.len();
        }
        let gap = usize::from(!self.text.is_empty());
        let room = RESULT_TEXT_BYTES_MAX.saturating_sub(self.text.len() + gap);
        let end = piece.floor_char_boundary(room);
        self.truncated |= end < piece.len();
        if end > 0 {
            if gap > 0 {
                self.text.push('\n');
            }
            self.text.push_str(piece.get(..end).unwrap_or_default());
        }
        self.text.len().saturating_sub(end)..self.text.len()
    }

    /// A string as it reads; anything else as JSON.
    pub(super) fn push_string(&mut self, raw: Option<&RawValue>) -> Result<(), FieldError> {
        let Some(raw) = fields::present(raw) else { return Ok(()) };
        match fields::lossy_string(raw) {
            Some(text) => {
                let place = self.push(&text);
                self.pieces.push(Piece::of_string(place, raw));
                Ok(())
            }
            None => self.push_json(Some(raw)),
        }
    }

    /// Written again, so that no letter hides behind an escape. What readers may read differently, or cannot read at
    /// all for its depth, is an error: it could not be judged as it will be shown.
    pub(super) fn push_json(&mut self, raw: Option<&RawValue>) -> Result<(), FieldError> {
        // Without a quote there is no string in it.
        if let Some(raw) = fields::present(raw).filter(|raw| raw.get().contains('"')) {
            let place = self.push(&fields::value(raw)?.to_string());
            self.pieces.push(Piece::of_json(place, raw));
        }
        Ok(())
    }

    /// Fields that nobody asked for.
    pub(super) fn push_rest(&mut self, rest: &Named<'_>) -> Result<(), FieldError> {
        for (name, raw) in rest {
            if PLAIN.contains(&name.as_str()) && is_plain(raw) || name == "annotations" && is_usual(raw) {
                continue;
            }
            if !is_word(name) {
                self.push(name);
            }
            self.push_string(Some(raw))?;
        }
        Ok(())
    }

    /// The value of a field that steers the protocol, where it is more than that.
    pub(super) fn push_unless_plain(&mut self, raw: Option<&RawValue>) -> Result<(), FieldError> {
        self.push_string(raw.filter(|raw| !is_plain(raw)))
    }

    /// A value as JSON, unless there are nothing but a few words in it.
    pub(super) fn push_unless_terse(&mut self, raw: Option<&RawValue>) -> Result<(), FieldError> {
        let Some(raw) = fields::present(raw) else { return Ok(()) };
        let mut room = TERSE_BYTES_MAX;
        if is_terse(&fields::value(raw)?, &mut room) { Ok(()) } else { self.push_string(Some(raw)) }
    }

    /// The same of each of some fields.
    pub(super) fn push_rest_unless_terse(&mut self, rest: &Named<'_>) -> Result<(), FieldError> {
        for (name, raw) in rest {
            if !is_word(name) {
                self.push(name);
            }
            self.push_unless_terse(Some(raw))?;
        }
        Ok(())
    }

    pub(super) fn push_blocks(&mut self, content: &RawValue) -> Result<(), FieldError> {
        for block in fields::read_array(content.get(), "content", CONTENT_BLOCKS_MAX)? {
            self.push_block(block)?;
        }
        Ok(())
    }

    fn push_block(&mut self, block: &RawValue) -> Result<(), FieldError> {
        let known = ["type", "text", "resource", "uri", "name", "title", "description", "data", "mimeType"];
        let ([kind, text, resource, uri, name, title, description, data, media_type], rest) =
            fields::read_with_rest(block.get(), &known)?;
        match kind.and_then(fields::string).as_deref() {
            Some("text" | "image" | "audio" | "resource" | "resource_link") => {}
            _ => return self.push_unknown(block),
        }
        if let Some(resource) = fields::present(resource) {
            self.push_resource(resource)?;
        }
        for piece in [uri, name, title, description] {
            self.push_string(piece)?;
        }
        self.push_text(text)?;
        self.push_encoded(data, media_type)?;
        self.push_unless_plain(media_type)?;
        self.push_rest(&rest)
    }

    fn push_resource(&mut self, resource: &RawValue) -> Result<(), FieldError> {
        let ([uri, text, blob, media_type], rest) =
            fields::read_with_rest(resource.get(), &["uri", "text", "blob", "mimeType"])?;
        self.push_string(uri)?;
        self.push_text(text)?;
        self.push_encoded(blob, media_type)?;
        self.push_unless_plain(media_type)?;
        self.push_rest(&rest)
    }

    /// The text of a block.
    fn push_text(&mut self, text: Option<&RawValue>) -> Result<(), FieldError> {
        let number = self.pieces.len();
        self.push_string(text)?;
        self.blocks.extend((self.pieces.len() > number).then_some(number));
        Ok(())
    }

    /// Bytes in base64: the text in them, and the string itself where it is not base64. What is decoded has no piece
    /// that it could be excised from, so what is found in it withholds the message.
    fn push_encoded(
        &mut self,
        raw: Option<&RawValue>,
        media_type: Option<&RawValue>,
    ) -> Result<(), FieldError> {
        let Some(raw) = fields::present(raw) else { return Ok(()) };
        let Some(encoded) = fields::lossy_string(raw) else { return self.push_json(Some(raw)) };
        let media_type = media_type.and_then(fields::lossy_string);
        let decoded = decode(&encoded, media_type.as_deref()).map_err(unknown_charset)?;
        if decoded.is_text {
            self.push_string(Some(raw))?;
        }
        for text in &decoded.texts {
            self.push(text);
        }
        Ok(())
    }

    /// A block of unknown kind: as JSON, and the text in what may be bytes in it.
    fn push_unknown(&mut self, block: &RawValue) -> Result<(), FieldError> {
        self.push_json(Some(block))?;
        let mut left = vec![fields::value(block)?];
        while let Some(value) = left.pop() {
            match value {
                Value::Array(items) => left.extend(items),
                Value::Object(mut fields) => {
                    let media_type = fields.get("mimeType").and_then(Value::as_str).map(str::to_owned);
                    for name in ["data", "blob"] {
                        let Some(Value::String(encoded)) = fields.shift_remove(name) else { continue };
                        let decoded = decode(&encoded, media_type.as_deref()).map_err(unknown_charset)?;
                        for text in &decoded.texts {
                            self.push(text);
                        }
                    }
                    left.extend(fields.into_iter().map(|(_, value)| value));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The parameters of a message, or a result of whatever method: contents of resources, messages of prompts and
    /// blocks are read as such, all else as it comes.
    fn push_any(&mut self, told: &RawValue) -> Result<(), FieldError> {
        if !told.get().starts_with('{') {
            return self.push_string(Some(told));
        }
        let ([contents, messages, content], rest) =
            fields::read_with_rest(told.get(), &["contents", "messages", "content"])?;
        if let Some(contents) = fields::present(contents) {
            for resource in list_of(contents, "contents")? {
                if resource.get().starts_with('{') {
                    self.push_resource(resource)?;
                } else {
                    self.push_string(Some(resource))?;
                }
            }
        }
        if let Some(messages) = fields::present(messages) {
            for message in list_of(messages, "messages")? {
                if message.get().starts_with('{') {
                    let ([content], rest) = fields::read_with_rest(message.get(), &["content"])?;
                    self.push_content(content)?;
                    self.push_rest(&rest)?;
                } else {
                    self.push_string(Some(message))?;
                }
            }
        }
        self.push_content(content)?;
        self.push_rest(&rest)
    }

    /// One block, several, or something else.
    fn push_content(&mut self, content: Option<&RawValue>) -> Result<(), FieldError> {
        let Some(content) = fields::present(content) else { return Ok(()) };
        if content.get().starts_with('{') {
            return self.push_block(content);
        }
        for block in list_of(content, "content")? {
            if block.get().starts_with('{') {
                self.push_block(block)?;
            } else {
                self.push_string(Some(block))?;
            }
        }
        Ok(())
    }
}

fn unknown_charset(_: UnknownCharset) -> FieldError {
    FieldError::Json(
        "a text in base64 has a character set that the gate does not read; send it as UTF-8".to_owned(),
    )
}

/// The elements of a list; what is none is its own only element.
fn list_of<'a>(raw: &'a RawValue, what: &'static str) -> Result<Vec<&'a RawValue>, FieldError> {
    if raw.get().starts_with('[') {
        fields::read_array(raw.get(), what, CONTENT_BLOCKS_MAX)
    } else {
        Ok(vec![raw])
    }
}

/// The text of a request or a notification of the server: of its id, where that is more than a word, and of its
/// parameters.
///
/// # Errors
/// [`FieldError`] if it cannot be read with certainty.
pub fn asked(id: Option<&RawValue>, params: Option<&RawValue>) -> Result<Told, FieldError> {
    let mut asked = Told::default();
    asked.push_unless_plain(id)?;
    if let Some(params) = params {
        asked.push_any(params)?;
    }
    Ok(asked)
}

/// The text of a result of another method than `tools/call`, or of the parameters of what a server sends.
///
/// # Errors
/// [`FieldError`] if it cannot be read with certainty.
pub fn told(said: &RawValue) -> Result<Told, FieldError> {
    let mut told = Told::default();
    told.push_any(said)?;
    Ok(told)
}

/// The text of a JSON-RPC error: a model may be shown it like a result.
///
/// # Errors
/// [`FieldError`] if it cannot be read with certainty.
pub fn error_text(error: &RawValue) -> Result<Told, FieldError> {
    let mut told = Told::default();
    if !error.get().starts_with('{') {
        told.push_string(Some(error))?;
        return Ok(told);
    }
    let ([message, data], rest) = fields::read_with_rest(error.get(), &["message", "data"])?;
    told.push_string(message)?;
    told.push_string(data)?;
    told.push_rest(&rest)?;
    Ok(told)
}

/// Whether a text is one of those that JSON-RPC 2.0 (section 5.1) has for its own errors: such an error is the
/// protocol's word and not the server's.
#[must_use]
pub fn is_standard_error(text: &str) -> bool {
    ["parse error", "invalid request", "method not found", "invalid params", "internal error"]
        .iter()
        .any(|standard| text.eq_ignore_ascii_case(standard))
}

/// Whether a value is none that says anything: a number, a truth value, or one short word.
fn is_plain(raw: &RawValue) -> bool {
    match fields::string(raw) {
        Some(text) => is_word(&text),
        None => !raw.get().contains('"'),
    }
}

/// Whether all keys and strings of a value are words, and together not many.
fn is_terse(value: &Value, room: &mut usize) -> bool {
    let fits = |text: &str, room: &mut usize| {
        let left = room.checked_sub(text.len());
        *room = left.unwrap_or(0);
        left.is_some() && is_word(text)
    };
    match value {
        Value::String(text) => fits(text, room),
        Value::Array(items) => items.iter().all(|item| is_terse(item, room)),
        Value::Object(map) => map.iter().all(|(name, value)| fits(name, room) && is_terse(value, room)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_word(text: &str) -> bool {
    text.len() <= PLAIN_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte))
}

/// Whether annotations of a block are what the protocol has, and no more.
fn is_usual(annotations: &RawValue) -> bool {
    let Ok(([audience, priority, modified], rest)) =
        fields::read_with_rest(annotations.get(), &["audience", "priority", "lastModified"])
    else {
        return false;
    };
    let readers =
        fields::present(audience).map_or(Ok(Vec::new()), |raw| fields::read_array(raw.get(), "audience", 2));
    let known = |reader: &&RawValue| matches!(reader.get(), "\"user\"" | "\"assistant\"");
    rest.is_empty()
        && readers.is_ok_and(|readers| readers.iter().all(known))
        && [priority, modified].into_iter().flatten().all(is_plain)
}
