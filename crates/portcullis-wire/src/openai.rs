//! Chat messages in the OpenAI form, and the dialects of it that published traces are written in.
//!
//! | what | forms |
//! |---|---|
//! | `content` | a string, `null`, or a list of strings and blocks `{type, text}` or `{type, content}` |
//! | a call | `tool_calls[]` with `function: {name, arguments}`, or `function: "name"` beside `args`, or `name` beside `arguments`; the older `function_call` |
//! | `arguments` | a string of JSON, an object, or nothing |
//! | a tool's answer | role `tool` or `function`, `tool_call_id`, `name`, or `tool_call: {function, args, id}`; `error` |
//!
//! Arguments that cannot be read are kept with the reason: such a call is judged as one that cannot be read.

use crate::mcp::list::{Hints, ListedTool};
use crate::strict;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Longest `arguments` string of one call, in bytes: 4 MiB.
pub const ARGUMENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One step of a recorded run, in the order of the messages.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceStep {
    /// What was said to the agent: role `system`, `developer` or `user`.
    Input {
        /// The role as recorded.
        role: String,
        /// The text.
        text: String,
    },
    /// The agent calls a tool.
    Call {
        /// The call's id; made up from its position if the trace has none.
        id: String,
        /// The tool's name; empty where the call names none.
        tool: String,
        /// The arguments, an object; or why they cannot be read.
        arguments: Result<Value, String>,
        /// What the agent wrote before the call, in the same message.
        planned: Option<String>,
    },
    /// A tool's answer.
    Observation {
        /// The call it answers; of the latest call of that tool where the trace does not say.
        call_id: Option<String>,
        /// The tool's name; empty where neither the answer nor its call names it.
        tool: String,
        /// The text, or the error if there is no text.
        text: String,
        /// The tool failed.
        is_error: bool,
    },
    /// The agent's reply: an assistant message without calls.
    Output {
        /// The text.
        text: String,
    },
}

/// Why messages cannot be read; positions count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A message is not an object.
    #[error("message {0} is not an object")]
    NotAnObject(usize),
    /// A message has no role, or one that is not known.
    #[error("message {0} has role `{1}`; expected system, developer, user, assistant, tool or function")]
    Role(usize, String),
}

/// Turns messages into steps.
///
/// # Errors
/// [`MessageError`] if a message is not an object or has an unknown role.
pub fn steps(messages: &[Value]) -> Result<Vec<TraceStep>, MessageError> {
    let mut reader = Reader::default();
    for (position, message) in messages.iter().enumerate() {
        let message = message.as_object().ok_or(MessageError::NotAnObject(position))?;
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        match role {
            "system" | "developer" | "user" => {
                reader.steps.push(TraceStep::Input { role: role.to_owned(), text: content(message) });
            }
            "assistant" => reader.assistant(message),
            "tool" | "function" => reader.observation(message),
            other => return Err(MessageError::Role(position, strict::excerpt(other))),
        }
    }
    Ok(reader.steps)
}

/// The tools of a request's `tools` or `functions` field. Entries without a name are left out.
#[must_use]
pub fn tools(entries: &[Value]) -> Vec<ListedTool> {
    entries.iter().filter_map(tool).collect()
}

fn tool(entry: &Value) -> Option<ListedTool> {
    let body = entry.get("function").unwrap_or(entry);
    let schema = ["parameters", "inputSchema", "input_schema"].iter().find_map(|field| body.get(field));
    Some(ListedTool {
        name: body.get("name")?.as_str()?.to_owned(),
        title: None,
        description: body.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        input_schema: schema
            .filter(|schema| schema.is_object())
            .cloned()
            .unwrap_or(Value::Object(Map::new())),
        hints: Hints::default(),
        rest: Value::Object(Map::new()),
    })
}

#[derive(Default)]
struct Reader {
    steps: Vec<TraceStep>,
    tool_of_call: HashMap<String, String>,
    latest_call_of: HashMap<String, String>,
}

impl Reader {
    fn assistant(&mut self, message: &Map<String, Value>) {
        let text = content(message);
        let calls =
            message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let old_call = message.get("function_call").filter(|call| call.is_object());
        if calls.is_empty() && old_call.is_none() {
            self.steps.push(TraceStep::Output { text });
            return;
        }
        let planned = (!text.is_empty()).then_some(text);
        for call in calls.iter().chain(old_call) {
            self.call(call, planned.clone());
        }
    }

    fn call(&mut self, call: &Value, planned: Option<String>) {
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("step-{}", self.steps.len()), str::to_owned);
        let function = call.get("function").filter(|function| !function.is_null());
        let (name, body) = match function {
            Some(Value::String(name)) => (Some(name.as_str()), call),
            Some(function) => (function.get("name").and_then(Value::as_str), function),
            None => (call.get("name").and_then(Value::as_str), call),
        };
        let arguments = body.get("arguments").or_else(|| body.get("args"));
        let arguments = match name {
            Some(_) => read_arguments(arguments),
            None => Err("the call does not name a tool".to_owned()),
        };
        let tool = name.unwrap_or_default().to_owned();
        self.tool_of_call.insert(id.clone(), tool.clone());
        self.latest_call_of.insert(tool.clone(), id.clone());
        self.steps.push(TraceStep::Call { id, tool, arguments, planned });
    }

    fn observation(&mut self, message: &Map<String, Value>) {
        let call = message.get("tool_call").and_then(Value::as_object);
        let text_of = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let named = text_of(message.get("name")).or_else(|| {
            let function = call?.get("function")?;
            text_of(Some(function)).or_else(|| text_of(function.get("name")))
        });
        let call_id = text_of(message.get("tool_call_id"))
            .or_else(|| text_of(call?.get("id")))
            .filter(|id| !id.is_empty())
            .or_else(|| self.latest_call_of.get(named.as_ref()?).cloned());
        let tool = named.or_else(|| self.tool_of_call.get(call_id.as_ref()?).cloned()).unwrap_or_default();
        let error = match message.get("error") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::String(error)) if error.is_empty() => None,
            Some(Value::String(error)) => Some(error.clone()),
            Some(other) => Some(other.to_string()),
        };
        let mut text = content(message);
        let is_error = error.is_some() || message.get("is_error") == Some(&Value::Bool(true));
        if text.is_empty() {
            text = error.unwrap_or_default();
        }
        self.steps.push(TraceStep::Observation { call_id, tool, text, is_error });
    }
}

/// The text of a message: blocks one a line, `refusal` if there is no content.
fn content(message: &Map<String, Value>) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        None | Some(Value::Null) => {
            message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        Some(other) => other.to_string(),
    }
}

fn block_text(block: &Value) -> Option<&str> {
    let fields = ["text", "content", "refusal"];
    block.as_str().or_else(|| fields.iter().find_map(|field| block.get(field).and_then(Value::as_str)))
}

fn read_arguments(arguments: Option<&Value>) -> Result<Value, String> {
    let value = match arguments {
        None | Some(Value::Null) => return Ok(Value::Object(Map::new())),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Value::Object(Map::new())),
        Some(Value::String(text)) => {
            strict::parse_recorded(text.as_bytes(), ARGUMENTS_BYTES_MAX).map_err(|error| error.to_string())?
        }
        Some(value) => value.clone(),
    };
    if value.is_object() { Ok(value) } else { Err("the arguments are not an object".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(messages: &Value) -> Vec<TraceStep> {
        steps(messages.as_array().unwrap()).unwrap()
    }

    fn call(id: &str, tool: &str, arguments: Result<Value, String>, planned: Option<&str>) -> TraceStep {
        TraceStep::Call { id: id.into(), tool: tool.into(), arguments, planned: planned.map(str::to_owned) }
    }

    #[test]
    fn every_form_of_a_call_is_read() {
        let messages = json!([
            {"role": "assistant", "content": "I will look.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
                {"id": "b", "function": {"name": "f", "arguments": {"x": 2}}},
                {"id": "c", "function": "g", "args": {"y": 3}},
                {"name": "h", "arguments": ""}]},
            {"role": "assistant", "content": null, "function_call": {"name": "old", "arguments": "{}"}},
        ]);
        let planned = Some("I will look.");
        assert_eq!(
            read(&messages),
            [
                call("a", "f", Ok(json!({"x": 1})), planned),
                call("b", "f", Ok(json!({"x": 2})), planned),
                call("c", "g", Ok(json!({"y": 3})), planned),
                call("step-3", "h", Ok(json!({})), planned),
                call("step-4", "old", Ok(json!({})), None),
            ]
        );
    }

    #[test]
    fn calls_that_cannot_be_read_are_kept_with_the_reason() {
        let calls = [
            (json!({"name": "f", "arguments": "{\"x\": 1"}), "ends inside a value"),
            (json!({"name": "f", "arguments": "{\"x\":1,\"x\":2}"}), "duplicate key `x`"),
            (json!({"name": "f", "arguments": "[1]"}), "not an object"),
            (json!({"name": "f", "arguments": 7}), "not an object"),
            (json!({"arguments": "{}"}), "does not name a tool"),
        ];
        for (function, words) in calls {
            let messages = json!([{"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}]);
            let [TraceStep::Call { arguments: Err(reason), .. }] = &read(&messages)[..] else {
                panic!("{function}")
            };
            assert!(reason.contains(words), "{reason}");
        }
    }

    #[test]
    fn observations_find_their_call() {
        let messages = json!([
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}, {"type": "text", "content": "two"}, "three"]},
            {"role": "tool", "content": "", "tool_call": {"id": "z", "function": "g", "args": {}}, "error": "ValueError: no"},
            {"role": "assistant", "function_call": {"name": "old"}},
            {"role": "function", "name": "old", "content": "ok", "error": null},
        ]);
        let seen = |call_id: &str, tool: &str, text: &str, is_error| TraceStep::Observation {
            call_id: Some(call_id.into()),
            tool: tool.into(),
            text: text.into(),
            is_error,
        };
        let observations: Vec<_> = read(&messages)
            .into_iter()
            .filter(|step| matches!(step, TraceStep::Observation { .. }))
            .collect();
        assert_eq!(
            observations,
            [
                seen("a", "f", "one\ntwo\nthree", false),
                seen("z", "g", "ValueError: no", true),
                seen("step-3", "old", "ok", false),
            ]
        );
    }

    #[test]
    fn inputs_outputs_and_errors() {
        let messages = json!([
            {"role": "developer", "content": "rules"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello", "tool_calls": null}, {"role": "assistant", "refusal": "no"},
        ]);
        let input = |role: &str, text: &str| TraceStep::Input { role: role.into(), text: text.into() };
        let output = |text: &str| TraceStep::Output { text: text.into() };
        assert_eq!(
            read(&messages),
            [input("developer", "rules"), input("user", "hi"), output("hello"), output("no")]
        );
        assert_eq!(steps(&[json!(1)]), Err(MessageError::NotAnObject(0)));
        assert_eq!(steps(&[json!({"role": "robot"})]), Err(MessageError::Role(0, "robot".to_owned())));
    }

    #[test]
    fn tools_of_a_request() {
        let entries = [
            json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}),
            json!({"name": "g", "inputSchema": {"properties": {}}}),
            json!({"description": "nameless"}),
        ];
        let tools = tools(&entries);
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
        assert_eq!(
            (tools[0].description.as_str(), &tools[0].input_schema),
            ("d", &json!({"type": "object"}))
        );
        assert_eq!(tools[1].input_schema, json!({"properties": {}}));
    }
}
