//! What is too much to be judged.

use portcullis_core::action::Action;
use portcullis_core::limits::{ARGUMENTS_BYTES_MAX, OPEN_ACTIONS_MAX, PLANNED_BYTES_MAX};
use serde_json::Value;

use super::Engine;

impl Engine {
    /// The limit that an action exceeds, in words.
    pub(super) fn exceeded(&self, action: &Action) -> Option<String> {
        if self.state.executing() >= OPEN_ACTIONS_MAX {
            return Some(format!("{OPEN_ACTIONS_MAX} actions of this run are still executing"));
        }
        let planned = action.planned.as_ref().map_or(0, String::len);
        if planned > PLANNED_BYTES_MAX {
            return Some(format!("the planned action has {planned} bytes; the limit is {PLANNED_BYTES_MAX}"));
        }
        let continuation = action.continuation.as_ref();
        let text = approximate_size(&action.arguments, ARGUMENTS_BYTES_MAX)
            .saturating_add(continuation.map_or(0, |value| approximate_size(value, ARGUMENTS_BYTES_MAX)));
        (text > ARGUMENTS_BYTES_MAX)
            .then(|| format!("the arguments exceed the limit of {ARGUMENTS_BYTES_MAX} bytes"))
    }
}

/// Size of a value as JSON, roughly; stops counting beyond `enough`.
fn approximate_size(value: &Value, enough: usize) -> usize {
    let mut size = 0_usize;
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        size = size.saturating_add(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                rest.extend(items);
                2 + items.len()
            }
            Value::Object(map) => {
                rest.extend(map.values());
                2 + map.keys().map(|key| key.len() + 4).sum::<usize>()
            }
        });
        if size > enough {
            break;
        }
    }
    size
}
