//! Messages with other members in their objects. Every value that stays keeps its bytes.

use serde_json::value::RawValue;

use crate::fields::{self, FieldError};
use crate::jsonrpc;
use crate::mcp::replace::ReplaceError;

/// The object with some members left out and others put at its end.
pub(super) fn edited(object: &str, without: &[&str], with: &[(&str, &str)]) -> Result<String, FieldError> {
    let (_, members) = fields::read_with_rest::<0>(object, &[])?;
    let stays = |name: &str| !without.contains(&name) && !with.iter().any(|(put, _)| *put == name);
    let kept =
        members.iter().map(|(name, value)| (name.as_str(), value.get())).filter(|(name, _)| stays(name));
    let members = kept.chain(with.iter().copied());
    let members: Vec<String> =
        members.map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

/// The message with edited parameters; it gets some if it has none.
pub(super) fn with_params(
    line: &[u8],
    edit: impl FnOnce(&str) -> Result<String, FieldError>,
) -> Result<Vec<u8>, ReplaceError> {
    let text = jsonrpc::check(line)?;
    let [params] = fields::read(text, &["params"])?;
    let params = edit(fields::present(params).map_or("{}", RawValue::get))?;
    Ok(edited(text, &[], &[("params", &params)])?.into_bytes())
}

/// The message with other members in `_meta` of its parameters. One that is empty is left out.
pub(super) fn with_meta(
    line: &[u8],
    without: &[&str],
    with: &[(&str, &str)],
) -> Result<Vec<u8>, ReplaceError> {
    with_params(line, |params| {
        let [meta] = fields::read(params, &["_meta"])?;
        let meta = edited(fields::present(meta).map_or("{}", RawValue::get), without, with)?;
        match meta.as_str() {
            "{}" => edited(params, &["_meta"], &[]),
            meta => edited(params, &[], &[("_meta", meta)]),
        }
    })
}

/// The response with another id, and an edited result.
pub(super) fn with_result(
    line: &[u8],
    id: &RawValue,
    edit: impl FnOnce(&str) -> Result<String, FieldError>,
) -> Result<Vec<u8>, ReplaceError> {
    let text = jsonrpc::check(line)?;
    let [result] = fields::read(text, &["result"])?;
    let mut with = vec![("id", id.get().to_owned())];
    if let Some(result) = result {
        with.push(("result", edit(result.get())?));
    }
    let with: Vec<(&str, &str)> = with.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Ok(edited(text, &[], &with)?.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_stay_keep_their_bytes() {
        let line = br#"{"id":1.0,"method":"m","params":{"x": [1e5, "\u0061"],"_meta":{"progressToken":3,"k":null}}}"#;
        let put = with_meta(line, &["k"], &[("v", "\"2\"")]).unwrap();
        assert_eq!(
            String::from_utf8(put).unwrap(),
            r#"{"id":1.0,"method":"m","params":{"x":[1e5, "\u0061"],"_meta":{"progressToken":3,"v":"2"}}}"#
        );
        let gone = with_meta(line, &["k", "progressToken"], &[]).unwrap();
        assert_eq!(
            String::from_utf8(gone).unwrap(),
            r#"{"id":1.0,"method":"m","params":{"x":[1e5, "\u0061"]}}"#
        );
        let made = with_meta(br#"{"id":1,"method":"m","params":null}"#, &[], &[("v", "1")]).unwrap();
        assert_eq!(String::from_utf8(made).unwrap(), r#"{"id":1,"method":"m","params":{"_meta":{"v":1}}}"#);
        for wrong in
            [&b"{"[..], br#"{"params":[1]}"#, br#"{"params":{"_meta":1}}"#, br#"{"params":1,"params":2}"#]
        {
            assert!(with_meta(wrong, &[], &[("v", "1")]).is_err());
        }
    }
}
