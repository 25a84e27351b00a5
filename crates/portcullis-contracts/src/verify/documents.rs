//! Documents as tools return them and as people hand them over.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{MAX_DOCUMENT_ID_BYTES, MAX_DOCUMENTS};

/// Deepest nesting of a result that is looked through.
const DEPTH_MAX: usize = 16;
/// Values of a result that are looked at.
const VALUES_MAX: usize = 65_536;
/// What the id of a document is called.
const ID_FIELDS: [&str; 6] = ["id", "doc_id", "document_id", "docId", "documentId", "doc"];
/// What its text is called.
const TEXT_FIELDS: [&str; 6] = ["text", "snippet", "content", "body", "page_content", "passage"];

/// A document that a reply may cite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its id, as citations have it.
    pub id: String,
    /// Its text, or what was retrieved of it.
    pub text: String,
    /// The event of the run that brought it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
}

impl Document {
    /// A document outside of any run.
    #[must_use]
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), event: None }
    }
}

/// Why documents that were handed over cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentsError {
    /// Neither of the two shapes.
    #[error("documents must be a list of `{{\"id\", \"text\"}}` or an object from id to text; {0}")]
    Shape(String),
    /// An id that no citation can have.
    #[error(
        "document {0} has an id that cannot be cited: 1 to {MAX_DOCUMENT_ID_BYTES} bytes without `]`, and no white space at its ends"
    )]
    Id(usize),
    /// The same id twice.
    #[error("two documents have the id of document {0}")]
    Twice(usize),
    /// More than the limit.
    #[error("there are {0} documents; the limit is {MAX_DOCUMENTS}")]
    TooMany(usize),
}

/// Documents as people hand them over: a list of `{"id", "text"}`, or an object from id to text.
///
/// # Errors
/// Another shape, an id that cannot be cited, one id twice, or too many.
pub fn documents_given(value: &Value) -> Result<Vec<Document>, DocumentsError> {
    let shape = |message: String| DocumentsError::Shape(message);
    let documents: Vec<Document> = match value {
        Value::Array(items) => {
            if items.len() > MAX_DOCUMENTS {
                return Err(DocumentsError::TooMany(items.len()));
            }
            let one = |(number, item): (usize, &Value)| {
                let found = Given::deserialize(item);
                let Given { id, text } =
                    found.map_err(|error| shape(format!("document {}: {error}", number + 1)))?;
                Ok(Document { id, text, event: None })
            };
            items.iter().enumerate().map(one).collect::<Result<_, _>>()?
        }
        Value::Object(map) => {
            let one = |(id, text): (&String, &Value)| match text {
                Value::String(text) => Ok(Document::new(id, text)),
                _ => Err(shape("a value is not a string".to_owned())),
            };
            map.iter().map(one).collect::<Result<_, _>>()?
        }
        _ => return Err(shape("found neither".to_owned())),
    };
    if documents.len() > MAX_DOCUMENTS {
        return Err(DocumentsError::TooMany(documents.len()));
    }
    let mut ids = std::collections::BTreeSet::new();
    for (number, document) in documents.iter().enumerate() {
        if !can_be_cited(&document.id) {
            return Err(DocumentsError::Id(number + 1));
        }
        if !ids.insert(document.id.as_str()) {
            return Err(DocumentsError::Twice(number + 1));
        }
    }
    Ok(documents)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    id: String,
    text: String,
}

fn can_be_cited(id: &str) -> bool {
    (1..=MAX_DOCUMENT_ID_BYTES).contains(&id.len()) && !id.contains(']') && id.trim() == id
}

/// The documents in what a tool returned, which is JSON with objects that have an id and a text (the parts of an MCP
/// result are looked through), or lines of `id: text`. A line without an id goes on with the document above it. What has
/// none of these has no documents. At most [`MAX_DOCUMENTS`].
#[must_use]
pub fn documents_in(result: &str) -> Vec<Document> {
    let mut found = Vec::new();
    read(result, 0, &mut found);
    found
}

fn read(result: &str, depth: usize, found: &mut Vec<Document>) {
    let trimmed = result.trim();
    if trimmed.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(trimmed)
    {
        return walk(&value, depth, found);
    }
    lines(trimmed, found);
}

/// Objects with id and text, in order. What one holds inside is not looked at.
fn walk(value: &Value, depth: usize, found: &mut Vec<Document>) {
    let mut rest = vec![(value, depth)];
    let mut seen = 0;
    while let Some((value, depth)) = rest.pop() {
        seen += 1;
        if seen > VALUES_MAX || depth > DEPTH_MAX || found.len() >= MAX_DOCUMENTS {
            return;
        }
        match value {
            Value::Array(items) => rest.extend(items.iter().rev().map(|item| (item, depth + 1))),
            Value::Object(map) => {
                let id = ID_FIELDS.iter().find_map(|name| match map.get(*name)? {
                    Value::String(id) => Some(id.trim().to_owned()),
                    Value::Number(id) => Some(id.to_string()),
                    _ => None,
                });
                let text = TEXT_FIELDS.iter().find_map(|name| map.get(*name)?.as_str());
                match (id.filter(|id| can_be_cited(id)), text) {
                    (Some(id), Some(text)) => add(found, &id, text),
                    // A part of an MCP result.
                    (None, Some(text)) if map.get("type").is_some_and(|kind| kind == "text") => {
                        read(text, depth + 1, found);
                    }
                    _ => rest.extend(map.values().rev().map(|item| (item, depth + 1))),
                }
            }
            _ => {}
        }
    }
}

/// Whether the beginning of a line is an id rather than a part of something else.
fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#' | '@' | '+');
    can_be_cited(id) && id.chars().all(plain)
}

fn lines(text: &str, found: &mut Vec<Document>) {
    let mut current: Option<usize> = None;
    for line in text.lines() {
        let headed = line.split_once(": ").filter(|(id, _)| is_plain(id));
        match (headed, current) {
            (Some((id, text)), _) => {
                if found.len() >= MAX_DOCUMENTS {
                    return;
                }
                add(found, id, text);
                current = found.iter().position(|document| document.id == id);
            }
            (None, Some(number)) => {
                if let Some(document) = found.get_mut(number) {
                    document.text.push('\n');
                    document.text.push_str(line);
                }
            }
            (None, None) => {}
        }
    }
}

/// One document may come in several parts, and one part twice.
fn add(found: &mut Vec<Document>, id: &str, text: &str) {
    /// Bytes of a document in which a part is looked for before it is added.
    const LOOKED_THROUGH: usize = 16 * 1024;
    match found.iter_mut().find(|document| document.id == id) {
        Some(document) if document.text.len() <= LOOKED_THROUGH && document.text.contains(text) => {}
        Some(document) => {
            document.text.push('\n');
            document.text.push_str(text);
        }
        None => found.push(Document::new(id, text)),
    }
}
