//! The tools of a trace that the bundle does not know, drafted once for the whole file.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::infer::{self, ARGUMENTS_MAX, Hints, Inferred};
use portcullis_core::limits::{NAME_BYTES_MAX, TOOLS_MAX};
use portcullis_core::tool::{ArgsSchema, Tool};
use portcullis_wire::mcp::list::ListedTool;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A tool that was registered by inference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InferredTool {
    /// Its name.
    pub name: String,
    /// Its drafted type.
    #[serde(rename = "type")]
    pub tool_type: String,
    /// Whether it is taken to change something.
    pub side_effecting: bool,
    /// 0 to 1.
    pub risk: f64,
    /// Whether the trace describes it; otherwise only its name and the arguments of its calls are known.
    pub described: bool,
    /// Why, in the order in which the evidence was weighed.
    pub reasons: Vec<String>,
}

/// What a trace shows of one tool.
#[derive(Default)]
struct Seen {
    /// Description and schema, as first offered.
    offered: Option<(String, Value)>,
    /// The draft over all descriptions that were offered.
    draft: Option<Inferred>,
    /// It was offered with different schemas: no one of them can be held against its calls.
    schemas_differ: bool,
    /// Arguments that calls gave, with the type of the first.
    arguments: Map<String, Value>,
}

/// Collects the tools of a trace; see the [module documentation](self).
#[derive(Default)]
pub(super) struct Collector {
    seen: BTreeMap<String, Seen>,
    left_unknown: usize,
}

impl Collector {
    /// The entry of a tool that the bundle does not know. None for tools that it knows, and beyond the limits.
    fn entry(&mut self, bundle: &Bundle, name: &str) -> Option<&mut Seen> {
        if bundle.registry.get(name).is_some() || name.is_empty() {
            return None;
        }
        if !self.seen.contains_key(name) && (self.seen.len() >= TOOLS_MAX || name.len() > NAME_BYTES_MAX) {
            self.left_unknown += 1;
            return None;
        }
        Some(self.seen.entry(name.to_owned()).or_default())
    }

    /// A tool that the agent was offered.
    pub(super) fn offered(&mut self, bundle: &Bundle, tool: &ListedTool) {
        let Some(seen) = self.entry(bundle, &tool.name) else { return };
        if let Some((description, schema)) = &seen.offered {
            if *description == tool.description && *schema == tool.input_schema {
                return;
            }
            seen.schemas_differ |= *schema != tool.input_schema;
        }
        let draft = infer::infer(&tool.name, &tool.description, &tool.input_schema, &tool.hints);
        seen.draft = Some(match seen.draft.take() {
            Some(before) => more_dangerous(before, draft),
            None => draft,
        });
        if seen.offered.is_none() {
            seen.offered = Some((tool.description.clone(), tool.input_schema.clone()));
        }
    }

    /// A call that the agent made.
    pub(super) fn called(&mut self, bundle: &Bundle, name: &str, arguments: Option<&Value>) {
        let Some(seen) = self.entry(bundle, name) else { return };
        for (argument, value) in arguments.and_then(Value::as_object).into_iter().flatten() {
            if seen.arguments.len() < ARGUMENTS_MAX && !seen.arguments.contains_key(argument) {
                seen.arguments.insert(argument.clone(), json!({"type": type_of(value)}));
            }
        }
    }

    /// The bundle with the tools registered, what was inferred, and how many tools were left unknown.
    pub(super) fn register(self, bundle: &Arc<Bundle>) -> (Arc<Bundle>, Vec<InferredTool>, usize) {
        let mut left_unknown = self.left_unknown;
        let mut tools = Vec::new();
        let mut inferred = Vec::new();
        for (name, seen) in self.seen {
            match tool(&name, seen) {
                Ok((tool, found)) => {
                    tools.push(tool);
                    inferred.push(found);
                }
                Err(_) => left_unknown += 1,
            }
        }
        if tools.is_empty() {
            return (Arc::clone(bundle), inferred, left_unknown);
        }
        (Arc::new(bundle.with_tools(tools)), inferred, left_unknown)
    }
}

fn tool(name: &str, seen: Seen) -> Result<(Tool, InferredTool), String> {
    let described = seen.draft.is_some();
    let draft = seen.draft.unwrap_or_else(|| {
        let schema = json!({"type": "object", "properties": seen.arguments});
        infer::infer(name, "", &schema, &Hints::default())
    });
    let (description, schema) = seen.offered.unwrap_or_default();
    // A schema that says nothing, or that cannot be used, asks for nothing.
    let says_something = schema.as_object().is_some_and(|schema| !schema.is_empty());
    let args = (says_something && !seen.schemas_differ).then(|| ArgsSchema::compile(&schema).ok()).flatten();
    let tool = Tool {
        id: name.to_owned(),
        name: name.to_owned(),
        tool_type: draft.tool_type.clone(),
        description,
        side_effecting: draft.side_effecting,
        risk: draft.risk,
        cost_micros: 0,
        trusted: false,
        excise: true,
        enabled: true,
        effects: draft.effects,
        inferred: true,
        args: match args {
            Some(args) => args,
            None => ArgsSchema::any()?,
        },
    };
    let inferred = InferredTool {
        name: name.to_owned(),
        tool_type: draft.tool_type,
        side_effecting: draft.side_effecting,
        risk: draft.risk,
        described,
        reasons: draft.reasons,
    };
    Ok((tool, inferred))
}

/// Of two drafts of one tool the more dangerous: side effects first, then risk.
fn more_dangerous(before: Inferred, now: Inferred) -> Inferred {
    let rank = |draft: &Inferred| (draft.side_effecting, draft.risk);
    if rank(&now) > rank(&before) { now } else { before }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
