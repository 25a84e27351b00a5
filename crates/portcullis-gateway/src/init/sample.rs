//! Arguments that fit a schema, for an example. Best effort: what does not fit is not used.

use portcullis_core::infer::EffectArgument;
use portcullis_core::tool::ArgsSchema;
use serde_json::{Map, Value, json};

/// What a text says about which nothing is known.
const EXAMPLE: &str = "example";
/// Deepest schema that is followed.
const DEPTH_MAX: usize = 8;
/// Longest text and array that is made up.
const LENGTH_MAX: u64 = 64;

/// Arguments that `schema` accepts, if any were found. What an argument holds is followed where the schema lets it:
/// an example that cannot be read for its effects would be held for that reason alone.
pub(super) fn arguments(schema: &ArgsSchema, effects: &[EffectArgument]) -> Option<Value> {
    let plain = value(schema.as_value(), 0)?;
    let mut fitting = plain.clone();
    for EffectArgument { argument, effect } in effects {
        let Some(held) = fitting.get_mut(argument) else { continue };
        let example = example_of(effect);
        match held {
            Value::String(text) if text.starts_with(EXAMPLE) => *text = example.to_owned(),
            Value::Array(items) => items.iter_mut().for_each(|item| {
                if item.as_str().is_some_and(|text| text.starts_with(EXAMPLE)) {
                    *item = json!(example);
                }
            }),
            _ => {}
        }
    }
    [fitting, plain].into_iter().find(|sample| sample.is_object() && schema.check(sample).is_ok())
}

/// The same with `text` for one of the arguments: a call of something that was chosen.
pub(super) fn arguments_with(
    schema: &ArgsSchema,
    effects: &[EffectArgument],
    argument: &str,
    text: &str,
) -> Option<Value> {
    let mut sample = arguments(schema, effects)?;
    let held = sample.as_object_mut()?.entry(argument).or_insert_with(|| Value::String(String::new()));
    match held {
        Value::String(held) => *held = text.to_owned(),
        Value::Array(items) => *items = vec![json!(text)],
        _ => return None,
    }
    schema.check(&sample).is_ok().then_some(sample)
}

/// A text that can be read for what it touches, by what the argument holds.
fn example_of(effect: &str) -> &'static str {
    match effect {
        "email" => "someone@example.com",
        "url" => "https://example.com/",
        "path" => "example.txt",
        "sql" => "select 1",
        "shell" => "true",
        "code" => "1 + 1",
        "money" => "1.00",
        _ => EXAMPLE,
    }
}

fn value(schema: &Value, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema.pointer("/enum/0")) {
        return Some(fixed.clone());
    }
    if let Some(first) = schema.pointer("/anyOf/0").or_else(|| schema.pointer("/oneOf/0"))
        && schema.get("type").is_none()
    {
        return value(first, depth + 1);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    Some(match kind {
        None | Some("string") => text(schema),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        Some("array") => {
            let count = limit(schema, "minItems");
            let item = schema.get("items").map_or(Some(json!("example")), |item| value(item, depth + 1));
            Value::Array((0..count).map(|_| item.clone()).collect::<Option<_>>()?)
        }
        Some("object") => object(schema, depth)?,
        Some(_) => return None,
    })
}

fn object(schema: &Value, depth: usize) -> Option<Value> {
    let required = schema.get("required").and_then(Value::as_array);
    let mut object = Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        object.insert(name.to_owned(), property.map_or(Some(json!("example")), |p| value(p, depth + 1))?);
    }
    Some(Value::Object(object))
}

fn text(schema: &Value) -> Value {
    let mut text = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url" | "iri" | "uri-reference") => "https://example.com/",
        Some("email") => "someone@example.com",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        _ => "example",
    }
    .to_owned();
    while (text.len() as u64) < limit(schema, "minLength") {
        text.push('x');
    }
    Value::String(text)
}

fn limit(schema: &Value, name: &str) -> u64 {
    schema.get(name).and_then(Value::as_u64).unwrap_or(0).min(LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fit_or_are_not_given() {
        let schema = json!({"type": "object", "required": ["a", "b", "c", "d"], "properties": {
            "a": {"type": "string", "minLength": 9}, "b": {"enum": [3, 4]},
            "c": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["x"],
                  "properties": {"x": {"type": ["integer", "null"], "minimum": 5}}}},
            "d": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "optional": {"type": "string"}}});
        let sample = arguments(&ArgsSchema::compile(&schema).unwrap(), &[]);
        assert_eq!(sample, Some(json!({"a": "examplexx", "b": 3, "c": [{"x": 5}], "d": false})));
        let never =
            json!({"type": "object", "required": ["a"], "properties": {"a": {"pattern": "^[0-9]+$"}}});
        assert_eq!(arguments(&ArgsSchema::compile(&never).unwrap(), &[]), None);
        let mail = ArgsSchema::compile(&json!({"to": {"type": "string"}})).unwrap();
        let to = EffectArgument { argument: "to".into(), effect: "email".into() };
        assert_eq!(arguments(&mail, &[to]), Some(json!({"to": "someone@example.com"})));
    }
}
