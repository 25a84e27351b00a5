//! The registry of a suite, drafted from what its data says of the tools, by the inference of `portcullis init`.
//! Nothing here knows a tool by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::infer::{Hints, infer};
use portcullis_core::tool::{ArgsSchema, Tool};
use serde_json::{Map, Value, json};

/// Registries that are kept ready.
const REGISTRIES_MAX: usize = 256;

/// A tool as a data set describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, in the words of whoever offers it.
    pub description: String,
    /// JSON schema of its arguments; null where there is none.
    pub schema: Value,
}

impl ToolSpec {
    /// Reads `{name, description, parameters}`, with or without OpenAI's `{type, function}` around it.
    pub fn from_json(value: &Value) -> Option<Self> {
        let tool = value.get("function").unwrap_or(value);
        Some(Self {
            name: tool.get("name")?.as_str()?.to_owned(),
            description: tool.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
            schema: tool.get("parameters").cloned().unwrap_or_default(),
        })
    }

    /// A tool of which only calls are known.
    pub fn observed(name: &str, arguments: &[&Value]) -> Self {
        let mut properties = Map::new();
        for (name, value) in arguments.iter().filter_map(|arguments| arguments.as_object()).flatten() {
            properties.entry(name.clone()).or_insert_with(|| json!({ "type": type_of(value) }));
        }
        let schema = json!({ "properties": properties });
        Self { name: name.to_owned(), description: String::new(), schema }
    }

    /// The registry's entry. A schema that says nothing, or that cannot be used, asks for nothing.
    pub fn register(&self) -> Option<Tool> {
        let draft = infer(&self.name, &self.description, &self.schema, &Hints::default());
        // As in the protocol: what is not said to be an object describes one.
        let full = self.schema.get("type").is_some();
        let args = full.then(|| ArgsSchema::compile(&self.schema).ok()).flatten();
        Some(Tool {
            id: self.name.clone(),
            name: self.name.clone(),
            tool_type: draft.tool_type,
            description: self.description.clone(),
            side_effecting: draft.side_effecting,
            risk: draft.risk,
            cost_micros: 0,
            trusted: false,
            excise: true,
            enabled: true,
            effects: draft.effects,
            inferred: true,
            args: args.or_else(|| ArgsSchema::any().ok())?,
        })
    }
}

/// Whether a call of the tool is taken to change something: what nobody described may.
pub fn acts(tools: &[ToolSpec], name: &str) -> bool {
    let spec = tools.iter().find(|spec| spec.name == name);
    spec.is_none_or(|spec| {
        infer(&spec.name, &spec.description, &spec.schema, &Hints::default()).side_effecting
    })
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

/// Tools, and the settings with them.
type Made = (Arc<Vec<ToolSpec>>, Arc<Bundle>);

/// The settings with the tools of each environment registered, made once for each.
#[derive(Debug)]
pub struct Registries {
    settings: Arc<Bundle>,
    made: BTreeMap<String, Vec<Made>>,
    kept: usize,
}

impl Registries {
    /// Registries under these settings.
    pub fn new(settings: Arc<Bundle>) -> Self {
        Self { settings, made: BTreeMap::new(), kept: 0 }
    }

    /// The bundle for an agent with these tools.
    pub fn bundle(&mut self, suite: &str, tools: &Arc<Vec<ToolSpec>>) -> Arc<Bundle> {
        let known = self
            .made
            .get(suite)
            .into_iter()
            .flatten()
            .find(|(specs, _)| Arc::ptr_eq(specs, tools) || specs == tools);
        if let Some((_, bundle)) = known {
            return Arc::clone(bundle);
        }
        if self.kept >= REGISTRIES_MAX {
            self.made.clear();
            self.kept = 0;
        }
        let bundle = Arc::new(self.settings.with_tools(tools.iter().filter_map(ToolSpec::register)));
        self.made.entry(suite.to_owned()).or_default().push((Arc::clone(tools), Arc::clone(&bundle)));
        self.kept += 1;
        bundle
    }
}
