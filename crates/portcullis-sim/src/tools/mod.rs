//! The five simulated tools, working for real on a folder of their own.
//!
//! "Simulated" means that the world they act on is small and private: mail lands in `outbox/`,
//! files in `storage/`, the database is a SQLite file of invented customers, documents come from
//! the bundle's knowledge base. Inside that world nothing is pretended: a mail that was sent exists,
//! a query runs, a file is there afterwards. That is what makes them useful behind the gate: a
//! denied call leaves no trace in the folder, and a test can look.
//!
//! The tools do not trust their caller any more than real ones should. Arguments are checked here
//! again although the gate checked them, every size has a limit, and a path, a header or a statement
//! that tries to reach outside the folder is an error. All calls block; a caller on an async runtime
//! runs them on a thread that may.

mod arguments;
mod perform_calculation;
mod query_internal_database;
mod retrieve_compliance_documents;
mod send_email;
mod workspace;
mod write_file_to_storage;

use serde_json::{Map, Value, json};

use arguments::Arguments;
pub use perform_calculation::{CalculationError, calculate};
pub use workspace::Workspace;

/// Longest piece of a caller's input that an error message repeats, in characters.
const MAX_QUOTED_CHARS: usize = 80;

/// What a call of a simulated tool returned.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The result for a reader, person or model.
    pub text: String,
    /// The same result for a program: a JSON object, its fields named in the tool's file.
    pub structured: Value,
}

/// Why a call had no result. In every case the tool has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No tool of this id.
    #[error("there is no tool `{id}` here; the tools are {known}")]
    UnknownTool {
        /// The id asked for, shortened.
        id: String,
        /// The ids that exist, each in backticks.
        known: String,
    },
    /// The arguments as a whole, or one of them, cannot be used.
    #[error("{argument} of `{tool}` {problem}")]
    Argument {
        /// The tool's id.
        tool: &'static str,
        /// Which argument: "argument `query`", or "the arguments".
        argument: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A limit of the folder was reached.
    #[error("{what} is limited to {limit}; {remedy}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
        /// What the caller can do.
        remedy: &'static str,
    },
    /// An expression cannot be worked out.
    #[error("cannot calculate `{expression}`: {error}")]
    Calculation {
        /// The expression, shortened.
        expression: String,
        /// What is wrong with it, and where.
        error: CalculationError,
    },
    /// A query was refused or failed.
    #[error("the query was not answered: {problem}")]
    Query {
        /// What is wrong with it, in the words of the database where it said any.
        problem: String,
    },
    /// A document of the knowledge base cannot be used.
    #[error("document `{id}` of the knowledge base {problem}")]
    Knowledge {
        /// The document's id, shortened.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The folder could not be read or written.
    #[error("cannot {doing} `{path}`: {error}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On which path.
        path: String,
        /// What the operating system said.
        error: std::io::Error,
    },
}

/// An argument of a simulated tool. All of them are strings, and all are required.
#[derive(Debug)]
pub struct ArgumentSpec {
    /// Its name.
    pub name: &'static str,
    /// What it means, for a model that fills it in.
    pub description: &'static str,
    /// Longest value accepted, in bytes of UTF-8.
    pub max_bytes: usize,
}

/// A simulated tool: what it says about itself, and the function behind it.
#[derive(Debug)]
pub struct Tool {
    /// Machine name, as used over MCP.
    pub id: &'static str,
    /// Name for people; plans use it.
    pub name: &'static str,
    /// What it does, for a model that chooses a tool.
    pub description: &'static str,
    /// True if a call changes nothing in the folder. Not the opposite of the registry's
    /// `side_effecting`, which is also true of a query that may reveal personal data.
    pub read_only: bool,
    /// True if a call may overwrite something that was there.
    pub destructive: bool,
    /// True if repeating a call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Its arguments.
    pub arguments: &'static [ArgumentSpec],
    run: fn(&Workspace, &Arguments<'_>) -> Result<ToolOutput, ToolError>,
}

/// The five tools, in the order of the shipped registry.
pub static TOOLS: [&Tool; 5] = [
    &retrieve_compliance_documents::TOOL,
    &send_email::TOOL,
    &query_internal_database::TOOL,
    &write_file_to_storage::TOOL,
    &perform_calculation::TOOL,
];

impl Tool {
    /// The JSON Schema of the arguments: an object of required strings and nothing else.
    #[must_use]
    pub fn input_schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> = self
            .arguments
            .iter()
            .map(|argument| {
                (argument.name.to_owned(), json!({"type": "string", "description": argument.description}))
            })
            .collect();
        let required: Vec<&str> = self.arguments.iter().map(|argument| argument.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        schema
    }
}

impl Workspace {
    /// Calls the tool `tool_id` with `args`, a JSON object of its arguments. Blocks until done; the
    /// slowest call is a query, which ends after one second at the latest.
    ///
    /// # Errors
    /// [`ToolError`], whatever was wrong; then nothing has changed.
    pub fn call(&self, tool_id: &str, args: &Value) -> Result<ToolOutput, ToolError> {
        let tool = TOOLS.iter().find(|tool| tool.id == tool_id).ok_or_else(|| ToolError::UnknownTool {
            id: quoted(tool_id),
            known: TOOLS.map(|tool| format!("`{}`", tool.id)).join(", "),
        })?;
        let arguments = Arguments::read(tool, args)?;
        (tool.run)(self, &arguments)
    }
}

/// `text` fit to stand in an error message: shortened, control characters escaped.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED_CHARS).flat_map(visible).collect();
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// A character as it may be printed: control characters as their escape, others as they are.
fn visible(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_tool_names_the_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), &std::collections::BTreeMap::new()).unwrap();
        let error = workspace.call("launch\nmissile", &json!({})).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no tool `launch\\nmissile` here; the tools are `retrieve_compliance_documents`, \
             `send_email`, `query_internal_database`, `write_file_to_storage`, `perform_calculation`"
        );
    }

    #[test]
    fn quoting_shortens_and_escapes() {
        assert_eq!(quoted("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(quoted(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(quoted(&"é".repeat(80)), "é".repeat(80));
    }
}
