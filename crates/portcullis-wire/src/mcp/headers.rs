//! Fields of a request that HTTP headers repeat (from 2026-07-28).
//!
//! `Mcp-Method` and `Mcp-Name` repeat the method and what it is about; a tool's input schema can have arguments repeated as
//! `Mcp-Param-…`. They are for whoever routes by headers; the body is what counts. So a header that disagrees with the body
//! is refused, and headers are written from the body that goes out.
//!
//! Source: [Streamable HTTP, 2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{PROMPTS_GET, RESOURCES_READ, TOOLS_CALL};
use crate::fields::{self, FieldError};

/// The error code of a header that disagrees with the body, or is missing.
pub const HEADER_MISMATCH: i64 = -32020;
/// The error code of a revision that is not spoken.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// Repeats the protocol revision.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Names the session (up to 2025-11-25).
pub const SESSION_ID: &str = "mcp-session-id";
/// Repeats the method.
pub const METHOD: &str = "mcp-method";
/// Repeats the name of a tool or prompt, or the address of a resource.
pub const NAME: &str = "mcp-name";
/// What names of headers begin with that repeat an argument.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// Most arguments of one tool that are repeated.
pub const PARAMS_MAX: usize = 64;
/// How deep in the arguments one may lie.
const PATH_MAX: usize = 16;
/// Longest name of such a header, in bytes.
const PARAM_NAME_BYTES_MAX: usize = 128;
/// The keyword of a schema that has an argument repeated.
const KEYWORD: &str = "x-mcp-header";
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// What a request is about, for [`NAME`].
///
/// # Errors
/// [`FieldError`] if the parameters say it twice or are no object.
pub fn name_of(method: &str, params: Option<&RawValue>) -> Result<Option<String>, FieldError> {
    let field = match method {
        TOOLS_CALL | PROMPTS_GET => "name",
        RESOURCES_READ => "uri",
        _ => return Ok(None),
    };
    let Some(params) = fields::present(params) else { return Ok(None) };
    let [name] = fields::read(params.get(), &[field])?;
    Ok(name.and_then(fields::string).map(std::borrow::Cow::into_owned))
}

/// A value as a header carries it: as it is where it is plain, and in base64 otherwise.
#[must_use]
pub fn encode(value: &str) -> String {
    let printable = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e | b'\t'));
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_encoded = value.starts_with(ENCODED.0) && value.ends_with(ENCODED.1);
    let plain = printable && !padded && !looks_encoded;
    match plain {
        true => value.to_owned(),
        false => format!("{}{}{}", ENCODED.0, STANDARD.encode(value), ENCODED.1),
    }
}

/// The value that a header carries. `None` if it cannot be decoded.
#[must_use]
pub fn decode(header: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(header).ok()?;
    if !text.bytes().all(|byte| matches!(byte, 0x20..=0x7e | b'\t')) {
        return None;
    }
    match text.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1)) {
        None => Some(text.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

/// An argument of a tool that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The header's name, in small letters.
    pub header: String,
    /// Where the argument is: the keys from the arguments down to it.
    path: Vec<String>,
}

impl Repeated {
    /// What the header says for these arguments, before it is encoded. `None`: there is no header.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        match self.path.iter().try_fold(arguments, |value, key| value.get(key))? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Whether a header with this value, which was decoded, agrees with the arguments. Integers agree by value.
    #[must_use]
    pub fn agrees(&self, header: &str, arguments: &Value) -> bool {
        let Some(value) = self.value(arguments) else { return false };
        let integer = |text: &str| text.strip_suffix(".0").unwrap_or(text).parse::<i64>().ok();
        value == header || integer(&value).is_some_and(|value| integer(header) == Some(value))
    }
}

/// The arguments that a tool's input schema has repeated.
///
/// # Errors
/// Why the schema is invalid; a tool with such a schema is not shown.
pub fn repeated(schema: &Value) -> Result<Vec<Repeated>, String> {
    let mut found = Vec::new();
    in_schema(schema, &mut Vec::new(), &mut found)?;
    if found.len() > PARAMS_MAX {
        return Err(format!("it has {} values of `{KEYWORD}`; the limit is {PARAMS_MAX}", found.len()));
    }
    Ok(found)
}

/// Collects what a schema at `path` has repeated. Below anything but `properties` there may be none.
fn in_schema(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Repeated>) -> Result<(), String> {
    let Value::Object(schema) = schema else { return Ok(()) };
    for (key, value) in schema {
        match (key.as_str(), value) {
            (KEYWORD, name) => found.push(annotated(name, schema, path, found)?),
            ("properties", Value::Object(properties)) => {
                if path.len() >= PATH_MAX {
                    return elsewhere(value);
                }
                for (property, schema) in properties {
                    path.push(property.clone());
                    in_schema(schema, path, found)?;
                    path.pop();
                }
            }
            // Values, not schemas: the keyword means nothing in them.
            ("const" | "enum" | "default" | "examples", _) => {}
            (_, value) => elsewhere(value)?,
        }
    }
    Ok(())
}

fn annotated(
    name: &Value,
    schema: &Map<String, Value>,
    path: &[String],
    found: &[Repeated],
) -> Result<Repeated, String> {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() || name.len() > PARAM_NAME_BYTES_MAX || !name.bytes().all(is_token) {
        return Err(format!("`{KEYWORD}` must be a name of an HTTP header"));
    }
    if path.is_empty() {
        return Err(format!("`{KEYWORD}` stands beside no argument"));
    }
    if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!("`{KEYWORD}` stands beside something that is no string, integer or boolean"));
    }
    let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
    if found.iter().any(|other| other.header == header) {
        return Err(format!("`{KEYWORD}` has the same name twice"));
    }
    Ok(Repeated { header, path: path.to_vec() })
}

/// Refuses the keyword where no header can be taken from: in arrays, alternatives and whatever else is no plain property.
fn elsewhere(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(object) if object.contains_key(KEYWORD) => {
            Err(format!("`{KEYWORD}` stands where no single argument is meant"))
        }
        Value::Object(object) => object.values().try_for_each(elsewhere),
        Value::Array(elements) => elements.iter().try_for_each(elsewhere),
        _ => Ok(()),
    }
}

/// A character of names of headers (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header.as_bytes()).as_deref(), Some(value));
        }
        for wrong in ["=?base64?%?=", "=?base64?/w==?=", "a\u{e4}", "a\nb"] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_a_request_is_about_is_named() {
        let named = |method, params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            name_of(method, Some(&params)).unwrap()
        };
        assert_eq!(named(TOOLS_CALL, r#"{"name":"a\u0062"}"#).as_deref(), Some("ab"));
        assert_eq!(named(RESOURCES_READ, r#"{"uri":"file:///x","name":"y"}"#).as_deref(), Some("file:///x"));
        assert_eq!(named("tools/list", r#"{"name":"y"}"#), None);
        assert_eq!(named(TOOLS_CALL, r#"{"name":7}"#), None);
        let twice = RawValue::from_string(r#"{"name":"a","name":"b"}"#.to_owned()).unwrap();
        assert!(name_of(TOOLS_CALL, Some(&twice)).is_err());
    }

    #[test]
    fn arguments_are_found_by_their_path() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "on": {"type": "boolean", "x-mcp-header": "On", "default": {"x-mcp-header": 1}}}});
        let found = repeated(&schema).unwrap();
        let arguments = json!({"region": "eu", "deep": {"n": 42}, "on": null});
        let values: Vec<_> = found.iter().map(|one| (one.header.as_str(), one.value(&arguments))).collect();
        assert_eq!(
            values,
            [
                ("mcp-param-region", Some("eu".into())),
                ("mcp-param-n", Some("42".into())),
                ("mcp-param-on", None)
            ]
        );
        assert!(found[1].agrees("42.0", &arguments) && !found[1].agrees("43", &arguments));
        assert!(found[0].agrees("eu", &arguments) && !found[0].agrees("EU", &arguments));
        assert!(!found[2].agrees("true", &arguments), "a header without an argument");
    }

    #[test]
    fn invalid_schemas_are_refused() {
        let of = |property: Value| json!({"type": "object", "properties": {"a": property}});
        for schema in [
            of(json!({"type": "string", "x-mcp-header": ""})),
            of(json!({"type": "string", "x-mcp-header": "a b"})),
            of(json!({"type": "string", "x-mcp-header": "a\r\nb"})),
            of(json!({"type": "string", "x-mcp-header": 7})),
            of(json!({"type": "number", "x-mcp-header": "A"})),
            of(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            of(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
            json!({"type": "string", "x-mcp-header": "A"}),
            json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}}),
            json!({"$defs": {"x": {"type": "string", "x-mcp-header": "A"}}}),
        ] {
            assert!(repeated(&schema).is_err(), "{schema}");
        }
        assert_eq!(repeated(&json!(true)), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_is_decoded(value in any::<String>()) {
            let header = encode(&value);
            prop_assert_eq!(decode(header.as_bytes()), Some(value));
        }
    }
}
