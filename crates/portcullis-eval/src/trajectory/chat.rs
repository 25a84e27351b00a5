//! Messages of the common chat formats: OpenAI's, AgentDojo's run files, and Anthropic's content blocks.

use portcullis_core::label::Label;
use portcullis_core::limits::PLANNED_BYTES_MAX;
use serde_json::{Map, Value};

use super::{Call, Observed, Step};

/// Most messages of a run that are read.
pub const MESSAGES_MAX: usize = 10_000;

/// What happened, in the order of the messages. The result of a call is kept with the call.
pub fn steps(messages: &[Value]) -> Vec<Step> {
    let mut reader = Reader::default();
    for message in messages.iter().take(MESSAGES_MAX) {
        reader.message(message);
    }
    reader.steps
}

/// The text of a message's content: a string, or the texts of a list of parts.
pub fn text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(part_text);
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn part_text(part: &Value) -> Option<&str> {
    match part {
        Value::String(text) => Some(text),
        _ if part.get("type").and_then(Value::as_str) == Some("text") => {
            part.get("text").or_else(|| part.get("content")).and_then(Value::as_str)
        }
        _ => None,
    }
}

/// A call that waits for its result: where it stands among the steps, and its id.
type Pending = (usize, String);

#[derive(Default)]
struct Reader {
    steps: Vec<Step>,
    pending: Vec<Pending>,
}

impl Reader {
    fn message(&mut self, message: &Value) {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let content = message.get("content");
        match role {
            "system" | "developer" => self.input(Label::Operator, text(content)),
            "user" => {
                self.results(content);
                self.input(Label::User, text(content));
            }
            "assistant" => self.assistant(message, content),
            "tool" => {
                let failed = message.get("error").and_then(Value::as_str).filter(|error| !error.is_empty());
                let shown = match text(content) {
                    text if text.is_empty() => failed.unwrap_or_default().to_owned(),
                    text => text,
                };
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                let name = message.get("name").and_then(Value::as_str);
                let name = name.or_else(|| message.get("tool_call")?.get("function")?.as_str());
                self.result(id, name.unwrap_or_default(), shown, failed.is_some());
            }
            _ => {}
        }
    }

    fn input(&mut self, label: Label, text: String) {
        if !text.trim().is_empty() {
            self.steps.push(Step::Input { label, text });
        }
    }

    fn assistant(&mut self, message: &Value, content: Option<&Value>) {
        let said = text(content);
        let mut planned = Some(said.clone()).filter(|said| !said.trim().is_empty());
        let listed = message.get("tool_calls").and_then(Value::as_array);
        let blocks = content.and_then(Value::as_array).into_iter().flatten();
        let blocks = blocks.filter(|part| part.get("type").and_then(Value::as_str) == Some("tool_use"));
        let mut called = false;
        for call in listed.into_iter().flatten().chain(blocks) {
            let Some((tool, arguments, id)) = call_parts(call) else { continue };
            let together = std::mem::replace(&mut called, true);
            self.pending.push((self.steps.len(), id));
            let planned = planned.take().map(|mut text| {
                text.truncate(text.floor_char_boundary(PLANNED_BYTES_MAX));
                text
            });
            self.steps.push(Step::Call(Call { tool, arguments, planned, together, ..Call::default() }));
        }
        if !called && !said.trim().is_empty() {
            self.steps.push(Step::Output(said));
        }
    }

    /// The results among the parts of a user's message, as Anthropic's format has them.
    fn results(&mut self, content: Option<&Value>) {
        for part in content.and_then(Value::as_array).into_iter().flatten() {
            if part.get("type").and_then(Value::as_str) == Some("tool_result") {
                let id = part.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
                let error = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                self.result(id, "", text(part.get("content")), error);
            }
        }
    }

    /// A result belongs to the call of its id, else to the first open call of its tool, else to the first open one.
    fn result(&mut self, id: &str, tool: &str, text: String, error: bool) {
        let by_id = self.pending.iter().position(|(_, other)| !id.is_empty() && other == id);
        let by_tool = || {
            self.pending.iter().position(|(at, _)| match self.steps.get(*at) {
                Some(Step::Call(call)) => call.tool == tool,
                _ => false,
            })
        };
        let found = by_id.or_else(by_tool).unwrap_or(0);
        if found >= self.pending.len() {
            return;
        }
        let (at, _) = self.pending.remove(found);
        if let Some(Step::Call(call)) = self.steps.get_mut(at) {
            call.result = Some(Observed { text, error, payload: Vec::new() });
        }
    }
}

/// Tool, arguments and id of a call in any of the formats.
fn call_parts(call: &Value) -> Option<(String, Value, String)> {
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let function = call.get("function");
    let (name, arguments) = match function {
        Some(Value::String(name)) => (name.as_str(), call.get("args")),
        Some(function) => (function.get("name")?.as_str()?, function.get("arguments")),
        None => (call.get("name")?.as_str()?, call.get("input")),
    };
    let arguments = match arguments {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
        }
        Some(Value::Null) | None => Value::Object(Map::new()),
        Some(arguments) => arguments.clone(),
    };
    Some((name.to_owned(), arguments, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(step: &Step) -> &Call {
        match step {
            Step::Call(call) => call,
            _ => panic!("{step:?}"),
        }
    }

    #[test]
    fn results_find_their_calls_in_all_three_formats() {
        let openai = json!([
            {"role": "user", "content": "weigh the parcels"},
            {"role": "assistant", "content": "two at once", "tool_calls": [
                {"id": "a", "function": {"name": "weigh", "arguments": "{\"n\": 1}"}},
                {"id": "b", "function": {"name": "weigh", "arguments": {"n": 2}}}]},
            {"role": "tool", "tool_call_id": "b", "content": "2 kg"},
            {"role": "tool", "tool_call_id": "a", "content": "", "error": "no scale"},
            {"role": "assistant", "content": "done"},
        ]);
        let read = steps(openai.as_array().unwrap());
        assert_eq!(read.len(), 4);
        let (first, second) = (call(&read[1]), call(&read[2]));
        assert_eq!((&first.arguments, &second.arguments), (&json!({"n": 1}), &json!({"n": 2})));
        assert_eq!(first.planned.as_deref(), Some("two at once"));
        assert_eq!(second.planned, None);
        assert_eq!((first.together, second.together), (false, true));
        assert_eq!(first.result.as_ref().map(|r| (r.text.as_str(), r.error)), Some(("no scale", true)));
        assert_eq!(second.result.as_ref().map(|r| r.text.as_str()), Some("2 kg"));
        assert_eq!(read[3], Step::Output("done".into()));

        let dojo = json!([
            {"role": "assistant", "content": null, "tool_calls": [{"function": "weigh", "args": {"n": 1}, "id": ""}]},
            {"role": "tool", "content": [{"type": "text", "content": "1 kg"}], "tool_call": {"function": "weigh"}},
        ]);
        let read = steps(dojo.as_array().unwrap());
        assert_eq!(call(&read[0]).result.as_ref().map(|r| r.text.as_str()), Some("1 kg"));

        let anthropic = json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "weigh", "input": {"n": 3}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x",
                "content": [{"type": "text", "text": "3 kg"}]}]},
        ]);
        let read = steps(anthropic.as_array().unwrap());
        assert_eq!(read.len(), 1, "the result is no word of the user");
        assert_eq!(call(&read[0]).result.as_ref().map(|r| r.text.as_str()), Some("3 kg"));
    }
}
