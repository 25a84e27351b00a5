//! How a server introduces itself: the results of `initialize` and `server/discover`.

use serde_json::value::RawValue;
use std::borrow::Cow;

use super::META_SERVER_INFO;
use super::text::Told;
use crate::fields::{self, FieldError};
use crate::jsonrpc;

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Its name.
    pub server: Option<Cow<'a, str>>,
    /// The protocol revision of the session.
    pub version: Option<Cow<'a, str>>,
    /// How a model should use it: clients put that into their prompts. Empty where it says nothing.
    pub instructions: Cow<'a, str>,
    /// Everything else that it says: titles, descriptions, metadata, and fields of unknown kind. Empty where there
    /// are words only, such as names, versions and capabilities.
    pub besides: Told,
}

/// Reads how a server introduces itself.
///
/// # Errors
/// [`FieldError`] if it is not an object, says a field twice, or its instructions are no text.
pub fn read_hello(result: &RawValue) -> Result<Hello<'_>, FieldError> {
    let ([server, version, instructions], rest) =
        fields::read_with_rest(result.get(), &["serverInfo", "protocolVersion", "instructions"])?;
    let mut besides = Told::default();
    besides.push_unless_terse(server)?;
    besides.push_unless_terse(version)?;
    besides.push_rest_unless_terse(&rest)?;
    // From 2026-07-28 it is in `_meta`.
    let meta = rest.iter().find(|(name, _)| name == "_meta").map(|(_, meta)| *meta);
    let in_meta = match fields::present(meta).filter(|meta| meta.get().starts_with('{')) {
        Some(meta) => {
            let [server] = fields::read(meta.get(), &[META_SERVER_INFO])?;
            server
        }
        None => None,
    };
    let server = match fields::present(server).or(fields::present(in_meta)) {
        Some(server) => {
            let [name] = fields::read(server.get(), &["name"])?;
            name
        }
        None => None,
    };
    let instructions = match fields::present(instructions) {
        None => Cow::Borrowed(""),
        Some(raw) => fields::string(raw)
            .ok_or_else(|| FieldError::Json("field `instructions` must be a string".to_owned()))?,
    };
    Ok(Hello {
        server: server.and_then(fields::string),
        version: version.and_then(fields::string),
        instructions,
        besides,
    })
}

/// The same response with empty instructions; all other bytes stay. `None` if it has none.
#[must_use]
pub fn without_instructions(line: &[u8]) -> Option<Vec<u8>> {
    let text = jsonrpc::check(line).ok()?;
    let [result] = fields::read(text, &["result"]).ok()?;
    let [instructions] = fields::read(result?.get(), &["instructions"]).ok()?;
    let place = fields::span(text, instructions?)?;
    Some([text.get(..place.start)?, "\"\"", text.get(place.end..)?].concat().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_server_introduces_itself() {
        let result = raw(
            r#"{"protocolVersion":"2025-11-25","serverInfo":{"name":"n\u0041"},"instructions":"Be \"x\"."}"#,
        );
        let hello = read_hello(&result).unwrap();
        assert_eq!((hello.server.as_deref(), hello.version.as_deref()), (Some("nA"), Some("2025-11-25")));
        assert_eq!(hello.instructions, "Be \"x\".");
        let modern = raw(r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"1"}}}"#);
        assert_eq!(read_hello(&modern).unwrap().server.as_deref(), Some("new"));
        assert_eq!(read_hello(&raw("{}")).unwrap(), Hello::default());
        for result in [r#"{"instructions":"a","instructions":"b"}"#, r#"{"instructions":["a"]}"#, r#""a""#] {
            assert!(read_hello(&raw(result)).is_err(), "{result}");
        }
    }

    #[test]
    fn what_it_says_beside_words_is_text() {
        for quiet in [
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"experimental":{}},
                "serverInfo":{"name":"a/b","version":"1.0.0","websiteUrl":"https://example.org"},"ttlMs":1}"#,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{},"_meta":{}}"#,
        ] {
            assert!(read_hello(&raw(quiet)).unwrap().besides.is_empty(), "{quiet}");
        }
        for said in [
            r#"{"serverInfo":{"name":"n","title":"an order"}}"#,
            r#"{"serverInfo":{"name":"an order"}}"#,
            r#"{"protocolVersion":"an order"}"#,
            r#"{"_meta":{"x":"an order"}}"#,
            r#"{"capabilities":{"experimental":{"an order":{}}}}"#,
        ] {
            assert!(read_hello(&raw(said)).unwrap().besides.text.contains("an order"), "{said}");
        }
    }

    #[test]
    fn instructions_are_taken_out_and_nothing_else() {
        let line = br#"{"id":1.0, "result" :{"instructions": "do \"this\"" ,"x":1e5}}"#;
        let without = br#"{"id":1.0, "result" :{"instructions": "" ,"x":1e5}}"#;
        assert_eq!(without_instructions(line).as_deref(), Some(without.as_slice()));
        assert_eq!(without_instructions(br#"{"result":{}}"#), None);
    }
}
