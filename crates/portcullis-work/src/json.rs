//! Values in JSON files.

use serde_json::Value;

use super::{Found, fail};

/// Most bytes of a value that is shown.
const SHOWN_BYTES_MAX: usize = 200;

pub(super) fn has_value(content: &[u8], path: &str, pointer: &str, equals: &Value) -> Found {
    let value: Value = match serde_json::from_slice(content) {
        Ok(value) => value,
        Err(why) => return fail(format!("`{path}` is no JSON: {why}")),
    };
    match value.pointer(pointer) {
        Some(found) if found == equals => Ok(format!("`{path}` has it at `{pointer}`")),
        Some(found) => {
            let found: String = found.to_string().chars().take(SHOWN_BYTES_MAX).collect();
            fail(format!("`{path}` has {found} at `{pointer}`"))
        }
        None => fail(format!("`{path}` has nothing at `{pointer}`")),
    }
}
