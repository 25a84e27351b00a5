//! The Cedar schema of a bundle: what policies may speak of, with types.
//!
//! It is made from the tables of effects, the attributes of principals that the bundle declares, and the argument
//! schemas of the registry's tools. What Cedar has no type for is left out, so that a policy that needs it does
//! not load instead of failing later.

use std::fmt::Write as _;

use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{
    AttributeMeta, AttributeType, EFFECT_ATTRIBUTES, RESOURCE_ATTRIBUTES, ResourceKind, Verb,
};
use serde_json::Value;

/// Deepest nesting of objects in arguments that policies can reach.
const ARGUMENTS_DEPTH_MAX: usize = 8;

/// The type of a resource in policies.
pub(crate) const fn type_name(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Path => "Path",
        ResourceKind::Host => "Host",
        ResourceKind::Recipient => "Recipient",
        ResourceKind::Payee => "Payee",
        ResourceKind::Table => "Table",
        ResourceKind::Column => "Column",
        ResourceKind::Command => "Command",
        ResourceKind::Package => "Package",
        ResourceKind::Repository => "Repository",
        ResourceKind::Container => "Container",
        ResourceKind::Cluster => "Cluster",
        ResourceKind::Process => "Process",
        ResourceKind::Setting => "Setting",
        ResourceKind::Environment => "Environment",
        ResourceKind::Tool => "Tool",
        ResourceKind::Activity => "Activity",
        ResourceKind::Unknown => "Unknown",
    }
}

/// What a resource of a kind can be in.
const fn parents(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Path => " in [Path]",
        ResourceKind::Host | ResourceKind::Recipient => " in [Domain]",
        ResourceKind::Column => " in [Table]",
        _ => "",
    }
}

/// The attributes of a kind, from [`RESOURCE_ATTRIBUTES`].
pub(crate) fn resource_attributes(kind: ResourceKind) -> &'static [AttributeMeta] {
    RESOURCE_ATTRIBUTES.iter().find(|(of, _)| *of == kind).map_or(&[], |(_, attributes)| attributes)
}

/// The attributes of tools, in calls and in agent code. An unclassified tool has the worst value of each.
pub(crate) const TOOL_ATTRIBUTES: &[(&str, &str, &str)] = &[
    ("id", "String", "its machine name"),
    ("known", "Bool", "the registry lists it"),
    ("risk", "decimal", "how dangerous it is, 0 to 1"),
    ("side_effecting", "Bool", "it changes something, or reveals something sensitive"),
    ("type", "String", "its category"),
];

/// The facts about the run that every request carries as `context.run`.
pub(crate) const RUN_ATTRIBUTES: &[(&str, &str, &str)] = &[
    ("labels", "Set<String>", "where everything came from that the agent has seen: user, tool:NAME, ..."),
    ("side_effects", "Long", "side effects that executed or are executing"),
    ("steps", "Long", "actions proposed so far, this one not counted"),
    (
        "tainted",
        "Bool",
        "the agent has seen something that a tool returned, that a server said, or whose source is unknown",
    ),
];

/// The action of a tool's calls.
pub(crate) fn call_action(tool_id: &str) -> String {
    format!("call:{tool_id}")
}

/// The shape of arguments that Cedar can express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Integer,
    Boolean,
    Set(Box<Shape>),
    Record(Vec<Field>),
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

impl Shape {
    /// The shape that a JSON Schema describes, or `None` if Cedar has no such type.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        Self::at_depth(schema, 0)
    }

    fn at_depth(schema: &Value, depth: usize) -> Option<Self> {
        match type_of(schema)? {
            "string" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            "array" => match Self::at_depth(schema.get("items")?, depth + 1)? {
                Self::Set(_) | Self::Record(_) => None,
                scalar => Some(Self::Set(Box::new(scalar))),
            },
            "object" if depth < ARGUMENTS_DEPTH_MAX => {
                let fields = fields(schema, depth);
                (depth == 0 || !fields.is_empty()).then_some(Self::Record(fields))
            }
            _ => None,
        }
    }
}

fn fields(schema: &Value, depth: usize) -> Vec<Field> {
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields: Vec<Field> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| {
            let shape = Shape::at_depth(property, depth + 1)?;
            let required = required.contains(&name.as_str()) && !is_nullable(property);
            Some(Field { name: name.clone(), shape, required })
        })
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

/// The one type that a schema names beside `null`.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let name = names.next()?;
            names.next().is_none().then_some(name)
        }
        Some(_) => None,
        None if schema.get("properties").is_some() => Some("object"),
        None => {
            let words = schema.get("enum").and_then(Value::as_array)?;
            words.iter().all(Value::is_string).then_some("string")
        }
    }
}

fn is_nullable(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
        _ => false,
    }
}

/// The schema in Cedar's own syntax.
pub fn schema_text(bundle: &Bundle) -> String {
    let mut out = String::from("// What access policies of this bundle may speak of.\n\n");
    principals(&mut out, bundle);
    for kind in ResourceKind::ALL {
        resource(&mut out, kind);
    }
    contexts(&mut out);
    actions(&mut out, bundle);
    out
}

fn principals(out: &mut String, bundle: &Bundle) {
    out.push_str("/// A role, by the name that policies use.\nentity Role;\n\n");
    out.push_str("/// On whose behalf the agent acts.\nentity Principal in [Role] {\n");
    line(out, "id", false, "String", "unique name");
    for (name, type_) in &bundle.access.attributes {
        line(out, name, true, cedar_type(*type_), "declared by the bundle");
    }
    out.push_str("};\n\n");
    out.push_str(
        "/// A domain of host names: the host of that name, and all below.\nentity Domain in [Domain];\n\n",
    );
}

fn resource(out: &mut String, kind: ResourceKind) {
    let _ = writeln!(out, "entity {}{} {{", type_name(kind), parents(kind));
    line(out, "name", false, "String", "canonical name");
    for attribute in resource_attributes(kind) {
        line(out, attribute.name, !attribute.always, cedar_type(attribute.type_), attribute.meaning);
    }
    if kind == ResourceKind::Tool {
        for (name, type_, meaning) in TOOL_ATTRIBUTES {
            line(out, name, false, type_, meaning);
        }
    }
    out.push_str("};\n\n");
}

fn contexts(out: &mut String) {
    out.push_str("/// The run so far.\ntype Run = {\n");
    for (name, type_, meaning) in RUN_ATTRIBUTES {
        line(out, name, false, type_, meaning);
    }
    out.push_str("};\n\n/// How something is touched, and by which tool.\ntype Effect = {\n");
    line(out, "run", false, "Run", "the run so far");
    line(out, "tool", false, "String", "name of the tool that is called");
    for attribute in EFFECT_ATTRIBUTES {
        line(out, attribute.name, !attribute.always, cedar_type(attribute.type_), attribute.meaning);
    }
    out.push_str("};\n\n");
}

fn actions(out: &mut String, bundle: &Bundle) {
    let kinds: Vec<&str> = ResourceKind::ALL.into_iter().map(type_name).collect();
    let kinds = kinds.join(", ");
    for verb in Verb::ALL {
        let _ = writeln!(out, "action \"{verb}\" appliesTo {{");
        let _ = writeln!(out, "  principal: [Principal], resource: [{kinds}], context: Effect");
        out.push_str("};\n\n");
    }
    out.push_str("/// The call of any tool; of one that the registry does not list, this very action.\n");
    out.push_str("action \"call\" appliesTo {\n");
    out.push_str("  principal: [Principal], resource: [Tool], context: { run: Run, tool: String }\n};\n\n");
    for tool in bundle.registry.iter() {
        let _ = writeln!(out, "action {} in [\"call\"] appliesTo {{", quoted(&call_action(&tool.id)));
        out.push_str("  principal: [Principal], resource: [Tool], context: {\n");
        if let Some(Shape::Record(fields)) = Shape::of(tool.args.as_value()) {
            let _ = writeln!(out, "    args: {},", record(&fields));
        }
        out.push_str("    run: Run,\n    tool: String\n  }\n};\n\n");
    }
}

fn line(out: &mut String, name: &str, optional: bool, type_: &str, meaning: &str) {
    let mark = if optional { "?" } else { "" };
    let _ = writeln!(out, "  /// {meaning}\n  {}{mark}: {type_},", key(name));
}

fn record(fields: &[Field]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|field| {
            let mark = if field.required { "" } else { "?" };
            format!("{}{mark}: {}", key(&field.name), shape_text(&field.shape))
        })
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Text => "String".to_owned(),
        Shape::Integer => "Long".to_owned(),
        Shape::Boolean => "Bool".to_owned(),
        Shape::Set(of) => format!("Set<{}>", shape_text(of)),
        Shape::Record(fields) => record(fields),
    }
}

pub(crate) const fn cedar_type(type_: AttributeType) -> &'static str {
    match type_ {
        AttributeType::Boolean => "Bool",
        AttributeType::Integer => "Long",
        AttributeType::Decimal => "decimal",
        AttributeType::Text => "String",
    }
}

/// A name of an attribute: bare where the syntax allows it.
fn key(name: &str) -> String {
    const RESERVED: [&str; 12] =
        ["true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar", "Set", "type"];
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let bare = starts
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !RESERVED.contains(&name);
    if bare { name.to_owned() } else { quoted(name) }
}

/// A string as Cedar writes it.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}

/// The actions of the schema, for suggestions.
pub(crate) fn action_names(bundle: &Bundle) -> Vec<String> {
    let verbs = Verb::ALL.into_iter().map(|verb| verb.as_str().to_owned());
    let calls = bundle.registry.iter().map(|tool| call_action(&tool.id));
    verbs.chain(["call".to_owned()]).chain(calls).collect()
}

/// The entity types of the schema, for suggestions.
pub(crate) fn type_names() -> Vec<&'static str> {
    let kinds = ResourceKind::ALL.into_iter().map(type_name);
    ["Principal", "Role", "Domain", "Action"].into_iter().chain(kinds).collect()
}
