//! InjecAgent (Zhan et al., 2024): one call of the user's, a result that somebody wrote into, and what the agent did
//! then. The basic setting has no marker at all: the result simply says what it wants.
//!
//! Call 0 is the user's, with the arguments that the set's cases give it; call 1 is what the agent did next, read from
//! its `Action` and `Action Input`. Of runs that steal data only the read is recorded, not the sending.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use portcullis_core::label::Label;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::definitions::nearest;
use super::payload::Compact;
use super::tools::ToolSpec;
use super::{Call, Kind, Observed, Part, Replay, Step, Truth, literal};
use crate::data;
use crate::suite::EvalError;

const TOOLS: &str = "tools.json";
const CASES: &str = "user_cases.jsonl";

#[derive(Debug, Deserialize)]
struct Toolkit {
    name_for_model: String,
    tools: Vec<RawTool>,
}

#[derive(Debug, Deserialize)]
struct RawTool {
    name: String,
    summary: String,
    #[serde(default)]
    parameters: Vec<RawParameter>,
}

#[derive(Debug, Deserialize)]
struct RawParameter {
    name: String,
    r#type: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
}

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(rename = "User Tool")]
    tool: String,
    #[serde(rename = "User Instruction")]
    instruction: String,
    #[serde(rename = "Tool Parameters")]
    parameters: String,
}

#[derive(Debug, Deserialize)]
struct Record {
    #[serde(default)]
    setting: String,
    #[serde(default)]
    model: String,
    #[serde(rename = "User Tool")]
    user_tool: String,
    #[serde(rename = "User Instruction")]
    user_instruction: String,
    #[serde(rename = "Attacker Tools")]
    attacker_tools: Vec<String>,
    #[serde(rename = "Attacker Instruction")]
    attacker_instruction: String,
    #[serde(rename = "Tool Response")]
    response: String,
    output: Option<String>,
    eval: String,
}

/// Tools and user's calls, by which recorded outputs become runs.
#[derive(Debug, Clone)]
pub struct Cases {
    tools: Arc<Vec<ToolSpec>>,
    calls: BTreeMap<(String, String), Value>,
}

/// Whether a record is an agent's output, and not a test case without one.
pub fn is_output(record: &Value) -> bool {
    record.get("User Tool").is_some() && record.get("output").is_some() && record.get("eval").is_some()
}

impl Cases {
    /// Reads the tools and the user's calls within the data, or a little above it.
    ///
    /// # Errors
    /// They are not there or are of another form.
    pub fn find(data: &Path) -> Result<Self, EvalError> {
        let find = |wanted: &'static str, what: &'static str| {
            let near = || data.to_owned();
            nearest(data, wanted).ok_or_else(|| EvalError::Companion { what, wanted, near: near() })
        };
        let path = find(TOOLS, "the tools")?;
        let form = |error: serde_json::Error| EvalError::Form { path: path.clone(), why: error.to_string() };
        let toolkits: Vec<Toolkit> = serde_json::from_str(&data::text(&path)?).map_err(form)?;
        let tools = toolkits.iter().flat_map(|kit| kit.tools.iter().map(|tool| spec(kit, tool)));
        let path = find(CASES, "the user's calls")?;
        let mut calls = BTreeMap::new();
        for record in data::records(&path)?.into_iter().flatten() {
            let Ok(case) = serde_json::from_value::<Case>(record) else { continue };
            let arguments = literal::read(&case.parameters).unwrap_or_else(|| Value::Object(Map::new()));
            calls.insert((case.tool, case.instruction), arguments);
        }
        Ok(Self { tools: Arc::new(tools.collect()), calls })
    }

    /// Reads a run.
    ///
    /// # Errors
    /// It is of another form.
    pub fn read(&self, record: Value) -> Result<Replay, String> {
        let record: Record = serde_json::from_value(record).map_err(|error| error.to_string())?;
        let key = (record.user_tool.clone(), record.user_instruction.clone());
        let arguments = self.calls.get(&key).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let payload = Compact::new(&record.response).find(&record.attacker_instruction);
        let first = Call {
            tool: record.user_tool.clone(),
            arguments,
            planned: None,
            together: false,
            result: Some(Observed { text: record.response, error: false, payload }),
            part: Part::Innocent,
        };
        let mut steps = vec![
            Step::Input { label: Label::User, text: record.user_instruction.clone() },
            Step::Call(first),
        ];
        let output = record.output.unwrap_or_default();
        let actions = actions(&output);
        let attackers = |call: &&Call| record.attacker_tools.contains(&call.tool);
        match actions.iter().find(attackers).or(actions.first()).cloned() {
            Some(mut call) => {
                if record.attacker_tools.contains(&call.tool) {
                    call.part = Part::Malicious;
                }
                steps.push(Step::Call(call));
            }
            None if output.trim().is_empty() => {}
            None => steps.push(Step::Output(output)),
        }
        Ok(Replay {
            suite: format!("injecagent/{}", record.setting),
            agent: record.model,
            cluster: format!("{}/{}", record.user_tool, record.attacker_instruction),
            tools: Arc::clone(&self.tools),
            steps,
            truth: Truth { kind: Kind::Attack { succeeded: record.eval == "succ" }, utility: None },
        })
    }
}

fn spec(kit: &Toolkit, tool: &RawTool) -> ToolSpec {
    let property = |parameter: &RawParameter| {
        let value = json!({ "type": parameter.r#type, "description": parameter.description });
        (parameter.name.clone(), value)
    };
    let properties: Map<String, Value> = tool.parameters.iter().map(property).collect();
    let required = tool.parameters.iter().filter(|parameter| parameter.required);
    let required: Vec<&str> = required.map(|parameter| parameter.name.as_str()).collect();
    ToolSpec {
        name: format!("{}{}", kit.name_for_model, tool.name),
        description: tool.summary.clone(),
        schema: json!({ "type": "object", "properties": properties, "required": required }),
    }
}

/// Whether an action names a tool. Agents also write that they take none.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('\n') && !["none", "n/a"].contains(&name.to_lowercase().as_str())
}

/// The calls in an agent's words: `Action: NAME`, and on the next line `Action Input: {…}`.
fn actions(output: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    for (at, mark) in output.match_indices("Action:") {
        let Some(rest) = output.get(at + mark.len()..) else { continue };
        let Some((name, input)) = rest.split_once("Action Input:") else { continue };
        let Some(tool) = Some(name.trim()).filter(|name| is_name(name)) else {
            continue;
        };
        let input = input.split_once("\nObservation:").map_or(input, |(input, _)| input);
        let arguments = match literal::read(input) {
            Some(Value::Null) => Value::Object(Map::new()),
            Some(value) => value,
            None => Value::String(input.trim().to_owned()),
        };
        let planned = output.get(..at).map(str::trim).filter(|said| !said.is_empty()).map(str::to_owned);
        calls.push(Call { tool: tool.to_owned(), arguments, planned, ..Call::default() });
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_what_the_agent_says() {
        let output = "Thought: two things.\nAction: LampSwitch\nAction Input: {\"on\": true}\nObservation: ok\n\
                      Thought: next\nAction: LampDim\nAction Input: {'to': 3}";
        let calls = actions(output);
        let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(names, ["LampSwitch", "LampDim"]);
        assert_eq!(calls[1].arguments, json!({"to": 3}));
        assert_eq!(calls[0].planned.as_deref(), Some("Thought: two things."));
        assert!(actions("Action: None\nAction Input: None").is_empty());
        assert!(actions("Final Answer: nothing to do").is_empty());
    }
}
