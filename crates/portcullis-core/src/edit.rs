//! Applies span edits to arguments, or to a text. All edits refer to the original; their union is applied at once, and
//! edits that overlap without being equal are a conflict.

use serde_json::Value;

use crate::finding::SpanEdit;

/// Pointer prefix of spans within the arguments of an action.
pub const ARGUMENTS: &str = "/arguments";
/// Pointer of spans within an input, observation or output.
pub const TEXT: &str = "/text";

/// Edits that cannot be applied together, or at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Two edits replace the same bytes differently.
    #[error("two edits overlap at `{pointer}`, byte {at}")]
    Conflict {
        /// Where.
        pointer: String,
        /// First byte of the second edit.
        at: usize,
    },
    /// The place is not text, or not on character boundaries.
    #[error("there is no text at `{pointer}`, bytes {start} to {end}")]
    NoSuchSpan {
        /// Where.
        pointer: String,
        /// First byte.
        start: usize,
        /// One past the last.
        end: usize,
    },
}

/// The arguments with all edits applied.
pub fn apply_to_arguments<'e>(
    arguments: &Value,
    edits: impl IntoIterator<Item = &'e SpanEdit>,
) -> Result<Value, EditError> {
    apply(ARGUMENTS, arguments.clone(), edits)
}

/// A text with all edits applied, as a JSON string.
pub fn apply_to_text<'e>(
    text: &str,
    edits: impl IntoIterator<Item = &'e SpanEdit>,
) -> Result<Value, EditError> {
    apply(TEXT, Value::String(text.to_owned()), edits)
}

fn apply<'e>(
    root: &str,
    mut edited: Value,
    edits: impl IntoIterator<Item = &'e SpanEdit>,
) -> Result<Value, EditError> {
    let mut edits: Vec<&SpanEdit> = edits.into_iter().collect();
    edits.sort();
    edits.dedup();
    for pair in edits.windows(2) {
        if let [a, b] = pair
            && a.span.pointer == b.span.pointer
            && (b.span.start < a.span.end || b.span.start == a.span.start)
        {
            return Err(EditError::Conflict { pointer: b.span.pointer.clone(), at: b.span.start });
        }
    }
    // From the back, so that earlier offsets stay those of the original.
    for edit in edits.into_iter().rev() {
        let span = &edit.span;
        let missing =
            || EditError::NoSuchSpan { pointer: span.pointer.clone(), start: span.start, end: span.end };
        let pointer = span.pointer.strip_prefix(root).ok_or_else(missing)?;
        let Some(Value::String(text)) = edited.pointer_mut(pointer) else { return Err(missing()) };
        if text.get(span.start..span.end).is_none() {
            return Err(missing());
        }
        text.replace_range(span.start..span.end, &edit.replacement);
    }
    Ok(edited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Span;
    use serde_json::json;

    fn edit(pointer: &str, start: usize, end: usize, replacement: &str) -> SpanEdit {
        let span = Span { pointer: pointer.into(), start, end };
        SpanEdit { span, replacement: replacement.into() }
    }

    #[test]
    fn the_union_is_applied_to_the_original() {
        let arguments = json!({"body": "card 4111 and pin 99", "to": ["x"]});
        let edits = [
            edit("/arguments/body", 18, 20, "[pin]"),
            edit("/arguments/body", 5, 9, "[card]"),
            edit("/arguments/body", 5, 9, "[card]"),
            edit("/arguments/to/0", 0, 1, "y"),
        ];
        assert_eq!(
            apply_to_arguments(&arguments, &edits),
            Ok(json!({"body": "card [card] and pin [pin]", "to": ["y"]}))
        );
    }

    #[test]
    fn overlaps_and_missing_places_are_errors() {
        let arguments = json!({"a": "héllo", "n": 1});
        let overlapping = [edit("/arguments/a", 0, 3, "x"), edit("/arguments/a", 1, 4, "y")];
        assert!(matches!(apply_to_arguments(&arguments, &overlapping), Err(EditError::Conflict { .. })));
        let insertions = [edit("/arguments/a", 0, 0, "x"), edit("/arguments/a", 0, 0, "y")];
        assert!(matches!(apply_to_arguments(&arguments, &insertions), Err(EditError::Conflict { .. })));
        for bad in [
            edit("/arguments/a", 0, 2, ""),
            edit("/arguments/b", 0, 1, ""),
            edit("/arguments/n", 0, 1, ""),
            edit("/planned", 0, 1, ""),
        ] {
            assert!(matches!(apply_to_arguments(&arguments, [&bad]), Err(EditError::NoSuchSpan { .. })));
        }
    }
}
