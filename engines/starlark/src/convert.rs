//! From what the gate tells to Starlark's values, and from a program's value to objections.

use serde_json::{Map, Value as Json};
use starlark::values::dict::AllocDict;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::structs::{AllocStruct, StructRef};
use starlark::values::{FrozenHeap, FrozenValue, UnpackValue as _, Value};

use crate::frames::Objection;

/// Most objections of one program to one action.
const OBJECTIONS_MAX: usize = 16;
/// Most reasons of one objection.
const REASONS_MAX: usize = 16;
/// Most resources of one objection.
const RESOURCES_MAX: usize = 256;
/// Longest reason or resource, in bytes.
const TEXT_BYTES_MAX: usize = 2_048;

/// Something with fields: `action.tool`.
pub(crate) fn structure(fields: &Map<String, Json>, heap: &FrozenHeap) -> FrozenValue {
    let fields = fields.iter().map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("effects", Json::Array(items)) => heap.alloc(AllocList(items.iter().map(|item| match item {
                Json::Object(fields) => structure(fields, heap),
                other => value_of(other, heap),
            }))),
            (_, value) => value_of(value, heap),
        };
        (name.as_str(), value)
    });
    heap.alloc(AllocStruct(fields))
}

/// Any value; an object is a dictionary.
fn value_of(value: &Json, heap: &FrozenHeap) -> FrozenValue {
    match value {
        Json::Null => FrozenValue::new_none(),
        Json::Bool(value) => FrozenValue::new_bool(*value),
        Json::Number(number) => number_of(number, heap),
        Json::String(text) => heap.alloc(text.as_str()),
        Json::Array(items) => heap.alloc(AllocList(items.iter().map(|item| value_of(item, heap)))),
        Json::Object(fields) => {
            heap.alloc(AllocDict(fields.iter().map(|(name, value)| (name.as_str(), value_of(value, heap)))))
        }
    }
}

fn number_of(number: &serde_json::Number, heap: &FrozenHeap) -> FrozenValue {
    if let Some(whole) = number.as_i64() {
        heap.alloc(whole)
    } else if let Some(whole) = number.as_u64() {
        heap.alloc(whole)
    } else {
        heap.alloc(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// What a program answered: nothing, one of `deny(…)` and `hold(…)`, or a list of these.
pub(crate) fn objections(program: &str, answer: Value<'_>) -> Result<Vec<Objection>, String> {
    if answer.is_none() {
        return Ok(Vec::new());
    }
    let Some(list) = ListRef::from_value(answer) else {
        return Ok(vec![objection(program, answer)?]);
    };
    if list.content().len() > OBJECTIONS_MAX {
        return Err(format!(
            "it answers with {} objections; the limit is {OBJECTIONS_MAX}",
            list.content().len()
        ));
    }
    list.iter().map(|one| objection(program, one)).collect()
}

fn objection(program: &str, answer: Value<'_>) -> Result<Objection, String> {
    let wrong = || {
        format!(
            "`check` answers with {}; it may answer with `deny(…)`, `hold(…)`, a list of these, or nothing",
            answer.get_type()
        )
    };
    let fields = StructRef::from_value(answer).ok_or_else(wrong)?;
    let field =
        |wanted: &str| fields.iter().find(|(name, _)| name.as_str() == wanted).map(|(_, value)| value);
    let says = field("says").and_then(|says| says.unpack_str());
    let says = says.filter(|says| ["deny", "hold"].contains(says)).ok_or_else(wrong)?;
    let reasons = texts(field("reasons"), REASONS_MAX, "reasons")?;
    let denied = texts(field("resources"), RESOURCES_MAX, "resources")?;
    Ok(Objection { program: program.to_owned(), says: says.to_owned(), reasons, denied })
}

/// A text or a list of texts. Long ones are cut; too many are a mistake of the program.
fn texts(value: Option<Value<'_>>, most: usize, what: &str) -> Result<Vec<String>, String> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Vec::new()) };
    let all: Vec<Value<'_>> = match value.unpack_str() {
        Some(_) => vec![value],
        None => match ListRef::from_value(value) {
            Some(list) => list.content().to_vec(),
            None => return Err(format!("the {what} are {}, not text or a list of texts", value.get_type())),
        },
    };
    if all.len() > most {
        return Err(format!("it gives {} {what}; the limit is {most}", all.len()));
    }
    let text = |value: Value<'_>| match <&str>::unpack_value(value) {
        Ok(Some(text)) => Ok(cut(text).to_owned()),
        _ => Err(format!("one of the {what} is {}, not text", value.get_type())),
    };
    all.into_iter().map(text).collect()
}

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default()
}
