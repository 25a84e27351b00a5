//! What a JSON Schema says of a value by way of other schemas: references, and schemas that apply side by side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Most schemas that one leads to for the same value. Servers' schemas have two or three; the validator recurses as deep.
const DEPTH_MAX: usize = 32;
/// Most schemas of one that are followed.
const SCHEMAS_MAX: usize = 4_096;

/// Keys whose schema applies to the same value.
const BESIDE: [&str; 4] = ["not", "if", "then", "else"];
/// Keys with a list of such schemas.
const LISTS_BESIDE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Refuses references that lead back to themselves without going into the value: such a schema says nothing, and a
/// validator that follows it never ends. A list whose items are lists of the same kind is another thing, and allowed.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut walk = Walk { schema, heights: BTreeMap::new() };
    let mut open = vec![schema];
    let mut seen = 0_usize;
    while let Some(value) = open.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            seen += 1;
            if seen > SCHEMAS_MAX {
                return Err(format!("a schema with more than {SCHEMAS_MAX} references"));
            }
            walk.height(target, 0)?;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    Ok(())
}

struct Walk<'s> {
    schema: &'s Value,
    /// How many further schemas a reference leads to; 0 while it is being followed.
    heights: BTreeMap<&'s str, usize>,
}

impl<'s> Walk<'s> {
    /// How many schemas a reference leads to, one after the other.
    fn height(&mut self, target: &'s str, depth: usize) -> Result<usize, String> {
        match self.heights.get(target) {
            Some(0) => return Err(format!("a schema in which `{target}` leads back to itself")),
            Some(height) if depth + height <= DEPTH_MAX => return Ok(*height),
            None if depth < DEPTH_MAX => {}
            _ => return Err(format!("a schema with more than {DEPTH_MAX} references in a row")),
        }
        self.heights.insert(target, 0);
        let mut height = 1;
        // What cannot be found here is the validator's to complain about.
        if let Some(found) = resolved(self.schema, target) {
            for next in beside(found) {
                height = height.max(1 + self.height(next, depth + 1)?);
            }
        }
        self.heights.insert(target, height);
        Ok(height)
    }
}

/// The schema that a reference within the document leads to.
fn resolved<'s>(schema: &'s Value, target: &str) -> Option<&'s Value> {
    match target.strip_prefix('#')? {
        "" => Some(schema),
        pointer => schema.pointer(pointer),
    }
}

/// The references that apply to the same value as a schema does.
fn beside(schema: &Value) -> Vec<&str> {
    let mut references = Vec::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        references.extend(value.get("$ref").and_then(Value::as_str));
        open.extend(BESIDE.iter().filter_map(|key| value.get(*key)));
        let lists = LISTS_BESIDE.iter().filter_map(|key| value.get(*key)?.as_array());
        open.extend(lists.flatten());
        open.extend(
            value.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|all| all.values()),
        );
    }
    references
}

/// The properties that a schema of an object names, in whatever schema beside it, or `None` if it names none, or
/// takes names by a pattern. `additionalProperties` that are not forbidden do not count: an effect is declared for an
/// argument that someone knows by name.
pub(super) fn declared_arguments(schema: &Value) -> Option<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    let mut followed = BTreeSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        if value.get("patternProperties").is_some() {
            return None;
        }
        names.extend(
            value
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|all| all.keys())
                .map(String::as_str),
        );
        open.extend(BESIDE.iter().filter_map(|key| value.get(*key)));
        let lists = LISTS_BESIDE.iter().filter_map(|key| value.get(*key)?.as_array());
        open.extend(lists.flatten());
        open.extend(
            value.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|all| all.values()),
        );
        for target in beside(value) {
            if followed.insert(target) {
                open.push(resolved(schema, target)?);
            }
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    (closed || !names.is_empty()).then_some(names)
}
