//! All that a model may be shown of what a server says.
//!
//! Clients show more than the specification speaks of, and older or newer ones show fields that this gate has never
//! heard of. So every string counts as text, wherever it stands, except the values of fields that steer the protocol
//! ([`PLAIN`]) as long as each is one short word, and contents that are no text, like images.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::value::RawValue;

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
/// Decodes what any client might: with and without padding, whatever the last bits are.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Text that was taken out of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// One piece a line, at most [`RESULT_TEXT_BYTES_MAX`].
    pub text: String,
    /// What it was put together from, in its order.
    pub pieces: Vec<Piece>,
    /// Text was left out because of the limit: what is in `text` is not all.
    pub truncated: bool,
}

impl Told {
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
        let moved = other.pieces.into_iter().map(|piece| piece.moved_by(place.start));
        self.pieces.extend(moved);
        self
    }

    /// Adds a piece; returns its place.
    fn push(&mut self, piece: &str) -> Range<usize> {
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

    /// Written anew, so that no letter hides behind an escape. What readers may read differently, or cannot read at
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

    pub(super) fn push_blocks(&mut self, content: &RawValue) -> Result<(), FieldError> {
        for block in fields::read_array(content.get(), "content", CONTENT_BLOCKS_MAX)? {
            self.push_block(block)?;
        }
        Ok(())
    }

    fn push_block(&mut self, block: &RawValue) -> Result<(), FieldError> {
        let known = ["type", "text", "resource", "uri", "name", "title", "description", "data"];
        let ([kind, text, resource, uri, name, title, description, data], rest) =
            fields::read_with_rest(block.get(), &known)?;
        match kind.and_then(fields::string).as_deref() {
            Some("text" | "image" | "audio" | "resource" | "resource_link") => {}
            _ => return self.push_json(Some(block)),
        }
        if let Some(resource) = fields::present(resource) {
            self.push_resource(resource)?;
        }
        for piece in [uri, name, title, description, text] {
            self.push_string(piece)?;
        }
        self.push_encoded(data)?;
        self.push_rest(&rest)
    }

    fn push_resource(&mut self, resource: &RawValue) -> Result<(), FieldError> {
        let ([uri, text, blob], rest) = fields::read_with_rest(resource.get(), &["uri", "text", "blob"])?;
        self.push_string(uri)?;
        self.push_string(text)?;
        self.push_encoded(blob)?;
        self.push_rest(&rest)
    }

    /// Bytes in base64: text where they are text, and where they are no base64. Text has no piece that it could be
    /// excised from, so what is found in it withholds the message.
    fn push_encoded(&mut self, raw: Option<&RawValue>) -> Result<(), FieldError> {
        let Some(raw) = fields::present(raw) else { return Ok(()) };
        let Some(encoded) = fields::lossy_string(raw) else { return self.push_json(Some(raw)) };
        let standard = |letter: char| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        };
        let dense: String = encoded.chars().filter(|letter| !letter.is_whitespace()).map(standard).collect();
        let decoded = LENIENT.decode(&dense);
        // Words with white space between them may happen to be base64 as well.
        if decoded.is_err() || encoded.contains(char::is_whitespace) {
            self.push_string(Some(raw))?;
        }
        if let Some(text) =
            decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| is_text(text))
        {
            self.push(&text);
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

/// The elements of a list; what is none is its own only element.
fn list_of<'a>(raw: &'a RawValue, what: &'static str) -> Result<Vec<&'a RawValue>, FieldError> {
    if raw.get().starts_with('[') {
        fields::read_array(raw.get(), what, CONTENT_BLOCKS_MAX)
    } else {
        Ok(vec![raw])
    }
}

/// The text of a result of another method than `tools/call`, or of the parameters of what a server sends.
///
/// # Errors
/// [`FieldError`] where it cannot be read with certainty.
pub fn told(said: &RawValue) -> Result<Told, FieldError> {
    let mut told = Told::default();
    told.push_any(said)?;
    Ok(told)
}

/// The text of a JSON-RPC error: a model may be shown it like a result.
///
/// # Errors
/// [`FieldError`] where it cannot be read with certainty.
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

/// Whether decoded bytes read as text: no control characters but white space.
fn is_text(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() && !letter.is_whitespace())
}
