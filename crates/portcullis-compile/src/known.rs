//! The tools of a request as a draft keeps them, so that it can be compiled again where it is judged.

use serde::{Deserialize, Serialize};

use crate::spec::{Argument, Spec, Tool};

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTool {
    name: String,
    description: String,
    arguments: Vec<KnownArgument>,
    tool_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownArgument {
    name: String,
    kind: String,
    description: String,
    values: Vec<String>,
}

/// The tools of a spec.
pub fn of_spec(spec: &Spec) -> Vec<KnownTool> {
    let argument = |argument: &Argument| {
        let Argument { name, kind, description, values } = argument.clone();
        KnownArgument { name, kind, description, values }
    };
    let tool = |tool: &Tool| KnownTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        arguments: tool.arguments.iter().map(argument).collect(),
        tool_type: tool.tool_type.clone(),
    };
    spec.tools.iter().map(tool).collect()
}

/// The spec of tools.
pub fn spec(tools: &[KnownTool]) -> Spec {
    let argument = |argument: &KnownArgument| {
        let KnownArgument { name, kind, description, values } = argument.clone();
        Argument { name, kind, description, values }
    };
    let tool = |tool: &KnownTool| Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        arguments: tool.arguments.iter().map(argument).collect(),
        tool_type: tool.tool_type.clone(),
    };
    Spec { tools: tools.iter().map(tool).collect() }
}
