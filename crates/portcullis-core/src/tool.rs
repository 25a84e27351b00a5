//! The tool registry: what the agent may be able to do, and how each tool is classified.

mod references;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};

use crate::infer::{EffectArgument, words_of};
use crate::names::ByName;

/// The tool types of seed 000 §2. Operators add their own by using them.
pub const SEED_TYPES: [&str; 6] =
    ["RETRIEVE_DOCS", "QUERY_DB", "SEND_EMAIL", "WRITE_FILE", "WEB_FETCH", "CALCULATE"];

/// A tool as the operator classified it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Machine name; usable on the wire like the name.
    pub id: String,
    /// Unique name.
    pub name: String,
    /// Category that policies allow or not.
    pub tool_type: String,
    /// What it does.
    pub description: String,
    /// Whether it changes anything outside the agent, or reveals something sensitive.
    pub side_effecting: bool,
    /// How dangerous it is, 0 to 1.
    pub risk: f64,
    /// What one call costs, in millionths of the bundle's unit.
    pub cost_micros: u64,
    /// Whether what it returns is the operator's own word, such as documents of the bundle: orders in it are honest.
    pub trusted: bool,
    /// Orders that were planted in what it returns are replaced before the agent reads them.
    pub excise: bool,
    /// Whether agents may use it at all.
    pub enabled: bool,
    /// Which arguments hold SQL, paths, addresses and similar.
    pub effects: Vec<EffectArgument>,
    /// Whether the classification was inferred rather than written by the operator.
    pub inferred: bool,
    /// What its arguments must look like.
    pub args: ArgsSchema,
}

impl Tool {
    /// The argument in which a call says which files a search is to leave out, if the schema declares one.
    pub fn exclusion_argument(&self) -> Option<&str> {
        let properties = self.args.as_value().get("properties")?.as_object()?;
        let leaves_out = |name: &str| {
            words_of(name).iter().any(|word| {
                matches!(
                    word.as_str(),
                    "exclude" | "excludes" | "excluded" | "exclusions" | "ignore" | "ignores" | "ignored"
                )
            })
        };
        let takes_patterns = |property: &Value| {
            matches!(property.get("type").and_then(Value::as_str), None | Some("string" | "array"))
        };
        let (name, _) =
            properties.iter().find(|(name, property)| leaves_out(name) && takes_patterns(property))?;
        Some(name)
    }
}

/// The arguments schema of a tool, compiled once.
#[derive(Clone)]
pub struct ArgsSchema {
    schema: Value,
    validator: std::sync::Arc<jsonschema::Validator>,
}

impl fmt::Debug for ArgsSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArgsSchema").field(&self.schema).finish()
    }
}

/// Arguments that do not fit their schema. Names the place, never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsMismatch {
    /// JSON pointer into the arguments; empty for the whole.
    pub pointer: String,
    /// What was expected there.
    pub expected: String,
}

impl ArgsSchema {
    /// Compiles a schema given as a full JSON Schema or as a bare property map such as
    /// `{"query": {"type": "string"}}`. In a bare map every property is required unless it says
    /// `"required": false` or has a default, and no others are accepted. References outside the schema are
    /// refused, patterns run in linear time.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let full = if is_full_schema(schema) { schema.clone() } else { from_property_map(schema)? };
        references::check(&full)?;
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .build(&full)
            .map_err(|error| format!("not a usable schema: {error}"))?;
        Ok(Self { schema: full, validator: std::sync::Arc::new(validator) })
    }

    /// The arguments that calls may have, or `None` if they may have others than those that the schema names.
    pub fn declared_arguments(&self) -> Option<BTreeSet<&str>> {
        references::declared_arguments(&self.schema)
    }

    /// Accepts any object.
    pub fn any() -> Result<Self, String> {
        Self::compile(&json!({"type": "object"}))
    }

    /// The full JSON Schema.
    pub fn as_value(&self) -> &Value {
        &self.schema
    }

    /// Checks arguments, reporting the first place that does not fit.
    pub fn check(&self, arguments: &Value) -> Result<(), ArgsMismatch> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        let first = self.validator.iter_errors(arguments).next();
        Err(first.map_or_else(
            || ArgsMismatch { pointer: String::new(), expected: "arguments that fit the schema".into() },
            |error| ArgsMismatch {
                pointer: error.instance_path().to_string(),
                expected: expectation(error.kind()),
            },
        ))
    }
}

fn is_full_schema(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return true };
    object.iter().any(|(key, value)| match key.as_str() {
        "$schema" | "$ref" | "$id" => value.is_string(),
        "type" => value.is_string() || value.is_array(),
        "properties" => value.as_object().is_some_and(|map| map.values().all(is_property)),
        "required" | "allOf" | "anyOf" | "oneOf" => value.is_array(),
        "additionalProperties" => value.is_boolean(),
        _ => false,
    })
}

fn is_property(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn from_property_map(map: &Value) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, property) in map.as_object().into_iter().flatten() {
        let Some(object) = property.as_object() else {
            return Err(format!("property `{name}` must be a table such as {{ type = \"string\" }}"));
        };
        let mut object = object.clone();
        let optional = match object.get("required") {
            Some(Value::Bool(flag)) => {
                let optional = !flag;
                object.remove("required");
                optional
            }
            _ => object.contains_key("default"),
        };
        if !optional {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name.clone(), Value::Object(object));
    }
    Ok(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

/// What the schema wants, in words that hold nothing of the arguments.
fn expectation(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Required { property } => match property.as_str() {
            Some(name) => format!("the argument `{name}`, which is missing"),
            None => "an argument that is missing".into(),
        },
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => "no arguments beyond those declared".into(),
        ValidationErrorKind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(kind) => format!("a value of type {kind}"),
            jsonschema::error::TypeKind::Multiple(kinds) => {
                let names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
                format!("a value of type {}", names.join(" or "))
            }
        },
        ValidationErrorKind::Enum { .. } => "one of the values the schema lists".into(),
        ValidationErrorKind::Constant { .. } => "the constant the schema names".into(),
        ValidationErrorKind::Format { format } => format!("text in the format `{format}`"),
        ValidationErrorKind::Pattern { pattern } => format!("text that matches `{pattern}`"),
        ValidationErrorKind::MaxLength { limit } => format!("at most {limit} characters"),
        ValidationErrorKind::MinLength { limit } => format!("at least {limit} characters"),
        ValidationErrorKind::Maximum { limit } => format!("a number of at most {limit}"),
        ValidationErrorKind::Minimum { limit } => format!("a number of at least {limit}"),
        ValidationErrorKind::MaxItems { limit } => format!("at most {limit} items"),
        ValidationErrorKind::MinItems { limit } => format!("at least {limit} items"),
        _ => "a value that matches the schema".into(),
    }
}

/// The tools of a bundle, found by name or id.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    tools: Vec<Tool>,
    by_name: ByName<usize>,
    derived: [OnceLock<Arc<dyn Any + Send + Sync>>; DERIVED_MAX],
}

/// Most types of what is made of all tools and kept: how texts speak of them, and how their calls are read.
pub const DERIVED_MAX: usize = 2;

impl Registry {
    /// Builds a registry. Returns the name that is used twice, if any.
    pub fn new(tools: Vec<Tool>) -> Result<Self, String> {
        let mut by_name = ByName::with_capacity_and_hasher(tools.len() * 2, Default::default());
        for (number, tool) in tools.iter().enumerate() {
            for name in [&tool.name, &tool.id] {
                match by_name.insert(name.clone(), number) {
                    Some(other) if other != number => return Err(name.clone()),
                    _ => {}
                }
            }
        }
        Ok(Self { tools, by_name, derived: Default::default() })
    }

    /// The tool with that name or id.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(self.position(name)?)
    }

    /// Its place in the order of the bundle.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// What someone made of all tools, kept from the first time on. A registry never changes, so neither does that.
    /// There is room for [`DERIVED_MAX`] types: a further one gets `None`.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl Fn(&Self) -> T) -> Option<Arc<T>> {
        self.derived
            .iter()
            .find_map(|place| Arc::clone(place.get_or_init(|| Arc::new(make(self)))).downcast().ok())
    }

    /// All tools in bundle order.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
        let schema = ArgsSchema::compile(schema).unwrap();
        schema.check(arguments).map_err(|m| format!("{}: {}", m.pointer, m.expected))
    }

    #[test]
    fn both_shapes_of_schema_validate() {
        let bare = json!({"query": {"type": "string", "description": "what to look for"}});
        let full = json!({"type": "object", "properties": bare, "required": ["query"]});
        for schema in [&bare, &full] {
            assert_eq!(check(schema, &json!({"query": "x"})), Ok(()));
            assert_eq!(check(schema, &json!({"query": 7})), Err("/query: a value of type string".into()));
            assert_eq!(check(schema, &json!({})), Err(": the argument `query`, which is missing".into()));
        }
        assert_eq!(
            check(&bare, &json!({"query": "x", "extra": 1})),
            Err(": no arguments beyond those declared".into())
        );
        assert_eq!(check(&full, &json!({"query": "x", "extra": 1})), Ok(()));
    }

    #[test]
    fn a_bare_map_may_have_a_property_called_type() {
        let bare = json!({"type": {"type": "string"}, "limit": {"type": "integer", "required": false}});
        assert_eq!(check(&bare, &json!({"type": "a"})), Ok(()));
        assert_eq!(
            check(&bare, &json!({"type": "a", "limit": "b"})),
            Err("/limit: a value of type integer".into())
        );
    }

    #[test]
    fn an_empty_map_accepts_only_nothing() {
        assert_eq!(check(&json!({}), &json!({})), Ok(()));
        assert!(check(&json!({}), &json!({"a": 1})).is_err());
    }

    #[test]
    fn references_outside_the_schema_and_unusable_schemas_are_errors() {
        assert!(ArgsSchema::compile(&json!({"$ref": "https://example.com/schema.json"})).is_err());
        assert!(ArgsSchema::compile(&json!({"type": "strnig"})).is_err());
        assert!(ArgsSchema::compile(&json!({"query": "string"})).is_err());
    }

    #[test]
    fn messages_do_not_quote_the_arguments() {
        let schema = json!({"pin": {"enum": ["a"]}, "n": {"type": "number", "maximum": 3}});
        for arguments in [json!({"pin": "s3cret", "n": 1}), json!({"pin": "a", "n": 99887766})] {
            let message = check(&schema, &arguments).unwrap_err();
            assert!(!message.contains("s3cret") && !message.contains("99887766"), "{message}");
        }
    }
}
