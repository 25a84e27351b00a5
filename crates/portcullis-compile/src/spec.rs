//! The tools that a request is about.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_core::tool::Registry;
use serde_json::{Map, Value};

/// Most tools of a spec.
pub const TOOLS_MAX: usize = 4_096;

/// The tools of one bundle or server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// The tools.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name on the wire.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Its type in the registry, where it is there.
    pub tool_type: Option<String>,
}

/// An argument of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its JSON type; `string` where the schema says none.
    pub kind: String,
    /// What it is.
    pub description: String,
    /// The values that it may have, where the schema lists them.
    pub values: Vec<String>,
}

impl Spec {
    /// Reads the result of MCP's `tools/list`, or the list in it. `arguments` in place of `inputSchema` is a map of
    /// properties.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn of_json(value: &Value) -> Result<Self, String> {
        let value = value.get("result").unwrap_or(value);
        let list = value.get("tools").unwrap_or(value).as_array();
        let list = list.ok_or("a spec is a list of tools, or an object with such a list as `tools`")?;
        if list.len() > TOOLS_MAX {
            return Err(format!("a spec has at most {TOOLS_MAX} tools, and this one has {}", list.len()));
        }
        let tools = list.iter().enumerate().map(|(place, tool)| {
            let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| format!("tool {} of the spec has no `name`", place + 1))?;
            let schema = tool.get("inputSchema").or_else(|| tool.get("input_schema"));
            let properties = match schema {
                Some(schema) => schema.get("properties"),
                None => tool.get("arguments"),
            };
            let arguments = properties.and_then(Value::as_object).map(arguments).unwrap_or_default();
            Ok(Tool {
                name: name.to_owned(),
                description: text(tool, "description"),
                arguments,
                tool_type: None,
            })
        });
        Ok(Self { tools: tools.collect::<Result<_, String>>()? })
    }

    /// The tools of a bundle.
    pub fn of_registry(registry: &Registry) -> Self {
        let tools = registry.iter().filter(|tool| tool.enabled).map(|tool| {
            let properties = tool.args.as_value().get("properties").and_then(Value::as_object);
            Tool {
                name: tool.id.clone(),
                description: tool.description.clone(),
                arguments: properties.map(arguments).unwrap_or_default(),
                tool_type: Some(tool.tool_type.clone()),
            }
        });
        Self { tools: tools.collect() }
    }

    /// Files of a bundle that has these tools and lets every call pass: what a draft is tried on.
    pub fn open_bundle(&self) -> BTreeMap<String, Vec<u8>> {
        let mut tools = String::new();
        let mut types: Vec<&str> = vec!["OTHER"];
        for tool in &self.tools {
            let kind = tool.tool_type.as_deref().unwrap_or("OTHER");
            types.push(kind);
            let (name, kind) = (quoted(&tool.name), quoted(kind));
            let _infallible = write!(
                tools,
                "[[tool]]\nname = {name}\ntype = {kind}\nside_effecting = false\neffects = {{}}\n\n"
            );
        }
        types.sort_unstable();
        types.dedup();
        let types: Vec<String> = types.into_iter().map(quoted).collect();
        let policy = format!(
            "[[policy]]\nname = \"open\"\nallowed_types = [{}]\nmax_steps = 1000000\nmax_side_effects = 1000000\n",
            types.join(", ")
        );
        let settings = "version = 1\nunknown_tools = \"allow\"\n[loops]\nalike = 0\ndenials = 0\n";
        [("portcullis.toml", settings.to_owned()), ("policies/open.toml", policy), ("tools/spec.toml", tools)]
            .map(|(path, text)| (path.to_owned(), text.into_bytes()))
            .into()
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl Tool {
    /// The argument of that name.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }
}

fn arguments(properties: &Map<String, Value>) -> Vec<Argument> {
    let read = |(name, schema): (&String, &Value)| {
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str);
                kinds.find(|kind| *kind != "null").unwrap_or("string").to_owned()
            }
            _ => "string".to_owned(),
        };
        let values = schema.get("enum").and_then(Value::as_array);
        let values =
            values.map(|values| values.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        Argument {
            name: name.clone(),
            kind,
            description: text(schema, "description"),
            values: values.unwrap_or_default(),
        }
    };
    properties.iter().map(read).collect()
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A text in TOML, and in Starlark.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
