//! The schemas of requests and of answers in one list.
//!
//! A type that is both sent and answered has two schemas: what may be left out of a request is always in the answer.
//! Where they differ, that of requests gets a name of its own.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const SUFFIX: &str = "Request";
const PREFIX: &str = "#/components/schemas/";

/// One list of both, in the order of their names. References to schemas that get another name are followed, in `paths`
/// below `requestBody` and `parameters`.
pub(super) fn together(
    mut requests: Map<String, Value>,
    answers: Map<String, Value>,
    paths: &mut Value,
) -> Value {
    let differing = differing(&requests, &answers);
    requests.values_mut().for_each(|schema| rename(schema, &differing));
    for operation in paths.as_object_mut().into_iter().flat_map(Map::values_mut).flat_map(members) {
        ["requestBody", "parameters"]
            .iter()
            .filter_map(|part| operation.get_mut(*part).map(|part| rename(part, &differing)))
            .for_each(drop);
    }
    let renamed = |(name, schema): (String, Value)| {
        let name = if differing.contains(&name) { format!("{name}{SUFFIX}") } else { name };
        (name, schema)
    };
    let mut all: Vec<(String, Value)> = requests.into_iter().map(renamed).chain(answers).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let mut all = Value::Object(all.into_iter().collect());
    in_words(&mut all);
    in_words(paths);
    all
}

fn members(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(Map::values_mut)
}

/// The names of the types that are read otherwise than they are written, or have such a type in them.
fn differing(requests: &Map<String, Value>, answers: &Map<String, Value>) -> BTreeSet<String> {
    let in_both = |name: &String| answers.contains_key(name);
    let mut differing: BTreeSet<String> = requests
        .iter()
        .filter(|(name, schema)| answers.get(*name).is_some_and(|answer| answer != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    loop {
        let known = differing.len();
        for (name, schema) in requests.iter().filter(|(name, _)| in_both(name)) {
            if refers_to(schema, &differing) {
                differing.insert(name.clone());
            }
        }
        if differing.len() == known {
            return differing;
        }
    }
}

fn refers_to(schema: &Value, names: &BTreeSet<String>) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let named = (key == "$ref").then(|| value.as_str()?.strip_prefix(PREFIX)).flatten();
            named.is_some_and(|name| names.contains(name)) || refers_to(value, names)
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, names)),
        _ => false,
    }
}

fn rename(schema: &mut Value, names: &BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                let named = (key == "$ref").then(|| value.as_str()?.strip_prefix(PREFIX)).flatten();
                match named.filter(|name| names.contains(*name)).map(|name| format!("{PREFIX}{name}{SUFFIX}"))
                {
                    Some(renamed) => *value = Value::String(renamed),
                    None => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// Doc comments are wrapped and link to other items; who reads the document has neither.
fn in_words(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                match value {
                    Value::String(text) if key == "description" => *text = without_links(text),
                    _ => in_words(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(in_words),
        _ => {}
    }
}

/// `[words](target)` and ``[`name`]`` become their words.
fn without_links(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        words.push_str(before);
        // A bracket that nothing closes, or that another one follows first, is no link.
        let Some((inner, after)) = link.split_once(']').filter(|(inner, _)| !inner.contains('[')) else {
            words.push('[');
            rest = link;
            continue;
        };
        let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        rest = match target {
            Some((_, after)) => after,
            None if inner.starts_with('`') => after,
            None => {
                words.push('[');
                rest = link;
                continue;
            }
        };
        words.push_str(inner);
    }
    words.push_str(rest);
    words.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn links_become_words() {
        let text = "Where [`Finding::x`] is,\nsee [it](crate::aside); `[from, to)` stays, and [`Y`](Z).";
        assert_eq!(without_links(text), "Where `Finding::x` is, see it; `[from, to)` stays, and `Y`.");
    }

    #[test]
    fn what_is_read_otherwise_than_written_has_two_names() {
        let list = |value: Value| value.as_object().unwrap().clone();
        let outer = json!({ "properties": { "inner": { "$ref": "#/components/schemas/Inner" } } });
        let requests = list(json!({ "Outer": outer, "Inner": { "required": [] }, "Same": {} }));
        let answers = list(json!({ "Outer": outer, "Inner": { "required": ["a"] }, "Same": {} }));
        let mut paths = json!({ "/": { "post": {
            "requestBody": { "$ref": "#/components/schemas/Outer" },
            "responses": { "$ref": "#/components/schemas/Outer" },
        } } });
        let all = together(requests, answers, &mut paths);
        let names: Vec<&String> = all.as_object().unwrap().keys().collect();
        assert_eq!(names, ["Inner", "InnerRequest", "Outer", "OuterRequest", "Same"]);
        let inner = |name: &str| all[name]["properties"]["inner"]["$ref"].as_str().unwrap().to_owned();
        assert_eq!(inner("Outer"), "#/components/schemas/Inner");
        assert_eq!(inner("OuterRequest"), "#/components/schemas/InnerRequest");
        assert_eq!(paths["/"]["post"]["requestBody"]["$ref"], "#/components/schemas/OuterRequest");
        assert_eq!(paths["/"]["post"]["responses"]["$ref"], "#/components/schemas/Outer");
    }
}
