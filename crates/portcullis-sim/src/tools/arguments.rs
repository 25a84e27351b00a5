//! Reading the arguments of a call: a JSON object with exactly the declared strings in it.

use serde_json::{Map, Value};

use super::{Tool, ToolError, quoted};

/// Arguments that fit the tool's declaration: all there, all strings, none too long, none unknown.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    tool: &'static str,
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    pub(super) fn read(tool: &'static Tool, args: &'a Value) -> Result<Self, ToolError> {
        let whole = |problem: String| ToolError::Argument {
            tool: tool.id,
            argument: "the arguments".to_owned(),
            problem,
        };
        let values = args
            .as_object()
            .ok_or_else(|| whole(format!("must be a JSON object; this is {}", kind(args))))?;
        if let Some(unknown) = values.keys().find(|key| tool.arguments.iter().all(|a| a.name != **key)) {
            let known: Vec<String> = tool.arguments.iter().map(|a| format!("`{}`", a.name)).collect();
            return Err(whole(format!(
                "hold an unknown name `{}`; it takes {}",
                quoted(unknown),
                known.join(", ")
            )));
        }
        let arguments = Self { tool: tool.id, values };
        for declared in tool.arguments {
            let text = arguments.text(declared.name)?;
            if text.len() > declared.max_bytes {
                let problem = format!("is {} bytes long; the limit is {}", text.len(), declared.max_bytes);
                return Err(arguments.refuse(declared.name, problem));
            }
        }
        Ok(arguments)
    }

    /// The value of the argument `name`.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, ToolError> {
        match self.values.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.refuse(name, format!("must be a string; this is {}", kind(other)))),
            None => Err(self.refuse(name, "is missing".to_owned())),
        }
    }

    /// The error that says what is wrong with the argument `name`.
    pub(super) fn refuse(&self, name: &str, problem: String) -> ToolError {
        ToolError::Argument { tool: self.tool, argument: format!("argument `{name}`"), problem }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::perform_calculation::TOOL;

    fn refusal(args: &Value) -> String {
        Arguments::read(&TOOL, args).unwrap_err().to_string()
    }

    #[test]
    fn only_the_declared_strings_are_read() {
        assert!(Arguments::read(&TOOL, &json!({"expression": "1"})).is_ok());
        assert_eq!(
            refusal(&json!(["1"])),
            "the arguments of `perform_calculation` must be a JSON object; this is an array"
        );
        assert_eq!(refusal(&json!({})), "argument `expression` of `perform_calculation` is missing");
        assert_eq!(
            refusal(&json!({"expression": 1})),
            "argument `expression` of `perform_calculation` must be a string; this is a number"
        );
        assert_eq!(
            refusal(&json!({"expression": "1", "bcc": "x"})),
            "the arguments of `perform_calculation` hold an unknown name `bcc`; it takes `expression`"
        );
    }

    #[test]
    fn the_length_limit_is_exact() {
        let limit = TOOL.arguments[0].max_bytes;
        assert!(Arguments::read(&TOOL, &json!({"expression": "1".repeat(limit)})).is_ok());
        assert!(refusal(&json!({"expression": "1".repeat(limit + 1)})).ends_with("the limit is 1000"));
    }
}
