//! Session state and facts as tools of `portcullis work --mcp`.

use serde_json::{Map, Value, json};

use super::work_items::Described;
use crate::api::{FactOperation, FactRequest, StateOperation, StateRequest};
use crate::client::{ClientError, Run};

/// What a call of one of the tools gives: its arguments cannot be read, or the daemon's answer.
pub(super) enum Called {
    Malformed(String),
    Answered(Result<Value, ClientError>),
}

const KEY: (&str, &str, &str, bool) = ("key", "string", "The key", true);

pub(super) const TOOLS: [Described; 6] = [
    Described {
        name: "state_get",
        op: None,
        title: "Read the state of this session",
        description: "The value of a key with its version, or, without a key, all keys.",
        arguments: &[("key", "string", "The key", false)],
    },
    Described {
        name: "state_put",
        op: Some("put"),
        title: "Put a value into the state of this session",
        description: "Puts one key. Name the version that you replace; if the value was changed since, this is refused.",
        arguments: &[
            KEY,
            ("value", "", "The value, any JSON", true),
            ("replaces", "integer", "The version that it replaces; leave it out for a new key", false),
        ],
    },
    Described {
        name: "state_history",
        op: None,
        title: "Read earlier values of a key",
        description: "The versions of a key, the newest first, each with the value before and after.",
        arguments: &[
            KEY,
            ("before", "integer", "Only those before this version", false),
            ("limit", "integer", "At most so many", false),
        ],
    },
    Described {
        name: "fact_write",
        op: Some("write"),
        title: "Remember a fact",
        description: "Keeps a short text that later sessions can read. It cannot be changed; a later fact may replace it.",
        arguments: &[
            ("text", "string", "The fact, in a sentence or two", true),
            ("topic", "string", "What it is about, to find it by", false),
            ("replaces", "array", "Names of the facts that this one sums up or corrects", false),
            ("scope", "string", "`principal` for all folders; otherwise it is for this one", false),
        ],
    },
    Described {
        name: "fact_read",
        op: None,
        title: "Read facts",
        description: "Facts that earlier sessions kept, the newest first, or those that you name. What others wrote in \
            them is still theirs.",
        arguments: &[
            ("facts", "array", "Names of facts", false),
            ("topic", "string", "Only those about this", false),
            ("limit", "integer", "At most so many", false),
            ("before", "integer", "Where the page before said to go on, as `next`", false),
        ],
    },
    Described {
        name: "fact_forget",
        op: Some("forget"),
        title: "Forget a fact",
        description: "Says that a fact is not to be read any more. The record keeps that it was there, and the reason.",
        arguments: &[("fact", "string", "The name of the fact", true), ("reason", "string", "Why", true)],
    },
];

/// Calls a tool of these.
pub(super) async fn call(run: &Run, name: &str, mut arguments: Map<String, Value>) -> Called {
    if arguments.contains_key("op") {
        return Called::Malformed("`op`: is not an argument; the tool's name says what to do".to_owned());
    }
    let (of, op) = name.split_once('_').unwrap_or((name, ""));
    arguments.insert("op".to_owned(), op.into());
    let arguments = Value::Object(arguments);
    let malformed =
        |error: serde_json::Error| Called::Malformed(format!("the arguments cannot be read: {error}"));
    match of {
        "state" => match serde_json::from_value::<StateOperation>(arguments) {
            Ok(operation) => {
                let request = StateRequest { operation, call: None, request: None };
                Called::Answered(run.state(request).await.map(|answer| json!(answer)))
            }
            Err(error) => malformed(error),
        },
        _ => match serde_json::from_value::<FactOperation>(arguments) {
            Ok(operation) => {
                let request = FactRequest { operation, call: None, request: None };
                Called::Answered(run.facts(request).await.map(|answer| json!(answer)))
            }
            Err(error) => malformed(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tool stands for an operation of the API, with the arguments that it describes and no others.
    #[test]
    fn each_tool_is_an_operation() {
        for tool in &TOOLS {
            let (of, op) = tool.name.split_once('_').unwrap();
            let value = |name: &str, kind: &str| match (name, kind) {
                ("fact", _) => json!(format!("{}.7", "ab".repeat(16))),
                ("scope", _) => json!("principal"),
                (_, "integer") => json!(7),
                (_, "array") => json!([]),
                _ => json!("text"),
            };
            let mut all = json!({"op": op});
            for (name, kind, ..) in tool.arguments {
                all[*name] = value(name, kind);
            }
            let read = |arguments: Value| match of {
                "state" => serde_json::from_value::<StateOperation>(arguments).err(),
                _ => serde_json::from_value::<FactOperation>(arguments).err(),
            };
            assert!(read(all.clone()).is_none(), "{}: {all}: {:?}", tool.name, read(all.clone()));
            for (name, .., required) in tool.arguments {
                let mut without = all.clone();
                without.as_object_mut().unwrap().remove(*name);
                assert_eq!(read(without).is_some(), *required, "{}: {name}", tool.name);
            }
            all["other"] = json!(1);
            assert!(read(all).is_some(), "{}: an unknown argument", tool.name);
        }
    }
}
