//! Work items as an MCP server: what an agent may do with them, and nothing else.
//!
//! The server belongs to the gate: its calls are operations, recorded as such, and no actions. It joins the run of the
//! client's other servers, so that calls of those can be cited as evidence.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_session::surface::Surface as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

use super::contained;
use super::kept::{self, Called};
use super::session_key::session_key;
use crate::api::{OpenRun, WorkAnswer, WorkOperation, WorkRequest};
use crate::client::{ClientError, Run, StartOptions};
use crate::home::Home;

/// How this surface is named in a run that it opens.
const SURFACE: &str = "work";
const INSTRUCTIONS: &str = "A list of work that counts as done only when it is shown to be. Make an item, start it, do \
    the work, then claim it and cite the calls of your tools that show it: `work_read` lists them. Claims are checked by \
    the gate, not by you. Without criteria a person decides. Beside it: `state_put` keeps a value for this session, and \
    `fact_write` a fact for later ones.";

/// How to serve.
#[derive(Debug, Clone)]
pub struct WorkServer {
    /// The state folder.
    pub home: Home,
    /// The client session, by which it joins the run of the client's other servers.
    pub session: Option<String>,
    /// Folder of the bundle, where it has to start the daemon.
    pub bundle: Option<PathBuf>,
    /// The folder in which the agent works; none: the current one.
    pub workspace: Option<PathBuf>,
    /// Name of the runtime policy of a run that it opens.
    pub policy: Option<String>,
}

/// Why the server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum WorkServerError {
    /// There is no run.
    #[error("there is no run to keep work items in: {0}")]
    Run(#[from] ClientError),
    /// The bundle's folder cannot be found.
    #[error("cannot find the bundle `{}`: {source}", path.display())]
    Bundle {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder in which the agent works cannot be found.
    #[error("cannot find the folder `{}`: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The client did not open an MCP session.
    #[error("the client opened no MCP session: {0}")]
    Session(#[source] Box<rmcp::service::ServerInitializeError>),
    /// A task of the server died.
    #[error("the server stopped: {0}")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves the work items of a run over standard input and output, until the client closes them.
///
/// # Errors
/// [`WorkServerError`].
pub async fn serve_work(options: WorkServer) -> Result<(), WorkServerError> {
    let bundle = match &options.bundle {
        None => None,
        Some(path) => {
            let failed = |source| WorkServerError::Bundle { path: path.clone(), source };
            Some(std::fs::canonicalize(path).map_err(failed)?)
        }
    };
    let mut place = contained::place();
    if let Some(folder) = &options.workspace {
        let failed = |source| WorkServerError::Folder { path: folder.clone(), source };
        let folder = std::fs::canonicalize(folder).map_err(failed)?;
        place.workspace = Some(folder.to_string_lossy().into_owned());
    }
    let open = OpenRun {
        surface: SURFACE.to_owned(),
        session: session_key(options.session),
        policy: options.policy,
        bundle: bundle.as_ref().map(|path| path.to_string_lossy().into_owned()),
        client: Some("portcullis work --mcp".to_owned()),
        place: Some(place),
        ..OpenRun::default()
    };
    let start = StartOptions { bundle, ..StartOptions::default() };
    let run = Arc::new(Run::open(&options.home, start, open).await?);
    let items = WorkItems { run: Arc::clone(&run) };
    let served = items.serve(rmcp::transport::stdio()).await;
    let session = served.map_err(|error| WorkServerError::Session(Box::new(error)))?;
    let ended = session.waiting().await.map_err(WorkServerError::Stopped);
    run.close().await?;
    ended.map(drop)
}

#[derive(Debug, Clone)]
struct WorkItems {
    run: Arc<Run>,
}

impl ServerHandler for WorkItems {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("portcullis-work", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools().map(Described::tool).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().find(|tool| tool.name == name).map(Described::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if kept::TOOLS.iter().any(|tool| tool.name == request.name) {
            return Ok(match kept::call(&self.run, &request.name, arguments).await {
                Called::Malformed(why) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
                Called::Answered(answer) => answered(answer),
            });
        }
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = tools().map(|tool| tool.name).collect();
            let message = format!("there is no tool `{}`; there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let result = match tool.op {
            None => self.run.work_list().await.map(|list| json!(list)),
            Some(op) => match operation(op, arguments) {
                Ok(operation) => {
                    let request = WorkRequest { operation, call: None, wait_ms: None };
                    self.run.work(&request).await.map(|answer| told(&answer))
                }
                Err(why) => return Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into()),
            },
        };
        Ok(answered(result))
    }
}

/// What the daemon answered, as the result of a call.
fn answered(answer: Result<Value, ClientError>) -> CallToolResponse {
    match answer {
        Ok(value) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
            result.structured_content = Some(value);
            result.into()
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into(),
    }
}

/// All tools.
fn tools() -> impl Iterator<Item = &'static Described> {
    TOOLS.iter().chain(&kept::TOOLS)
}

/// Reads the arguments of a tool as the operation that it stands for.
fn operation(op: &str, mut arguments: Map<String, Value>) -> Result<WorkOperation, String> {
    if arguments.contains_key("op") {
        return Err("`op`: is not an argument; the tool's name says what to do".to_owned());
    }
    arguments.insert("op".to_owned(), op.into());
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| format!("the arguments cannot be read: {error}"))
}

/// What an agent is told of an operation, with what comes next.
fn told(answer: &WorkAnswer) -> Value {
    use portcullis_core::work::ItemState::{Claimed, InProgress, Pending, Verified};
    let item = &answer.item;
    let next = match item.state {
        _ if answer.checking => "its criteria are being checked; read it again later",
        Pending if !item.proposed.is_empty() => "a person has to accept the criteria; then start it",
        Pending => "start it",
        InProgress if item.returned.is_some() => {
            "the claim was turned down: do what is missing, then claim it again with a new call"
        }
        InProgress => "do the work, then claim it",
        Claimed if item.waits => "a person has to decide",
        Claimed if item.criteria.is_empty() => "it has no criteria: a person has to attest it",
        Claimed => "a check gave no answer; it can be checked again with `work_verify`",
        Verified => "it is done",
    };
    json!({"item": item, "next": next})
}

/// A tool of the server.
pub(super) struct Described {
    pub(super) name: &'static str,
    /// The operation; none: it reads.
    pub(super) op: Option<&'static str>,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// Name, JSON type (empty: any) and description of each argument, and whether it is required.
    pub(super) arguments: &'static [(&'static str, &'static str, &'static str, bool)],
}

const ITEM: (&str, &str, &str, bool) = ("item", "integer", "The number of the item", true);
const CRITERIA: &str = "What it is to be measured by, a list of objects such as {\"type\": \"file_exists\", \"path\": \"report.md\"}. A person has to accept it";

const TOOLS: [Described; 6] = [
    Described {
        name: "work_read",
        op: None,
        title: "Read the work items",
        description: "All items of this run with their state, and the latest calls that evidence can cite.",
        arguments: &[],
    },
    Described {
        name: "work_create",
        op: Some("create"),
        title: "Make an item",
        description: "Makes an item of work. It is never deleted.",
        arguments: &[
            ("title", "string", "What is to be done", true),
            ("criteria", "array", CRITERIA, false),
            (
                "covers",
                "array",
                "Paths that have to stay as they are for evidence to count; otherwise the whole project",
                false,
            ),
        ],
    },
    Described {
        name: "work_propose",
        op: Some("propose"),
        title: "Propose criteria",
        description: "Proposes what an item that has not started is to be measured by.",
        arguments: &[ITEM, ("criteria", "array", CRITERIA, true)],
    },
    Described {
        name: "work_start",
        op: Some("start"),
        title: "Start an item",
        description: "Starts an item. Its criteria are frozen from here on.",
        arguments: &[ITEM],
    },
    Described {
        name: "work_claim",
        op: Some("claim"),
        title: "Claim that an item is done",
        description: "Claims that an item is done. Its criteria are then checked by the gate.",
        arguments: &[
            ITEM,
            ("evidence", "array", "The calls that show it: values of `action` in `work_read`", true),
            ("statement", "string", "What was done, in a sentence or two", true),
        ],
    },
    Described {
        name: "work_verify",
        op: Some("verify"),
        title: "Have a claimed item checked again",
        description: "Has the gate check a claimed item again, where a check gave no answer.",
        arguments: &[ITEM],
    },
];

impl Described {
    fn tool(&self) -> Tool {
        let property = |(name, kind, description, _): &(&str, &str, &str, bool)| {
            let mut property = json!({"description": description});
            if let (Some(map), false) = (property.as_object_mut(), kind.is_empty()) {
                map.insert("type".to_owned(), (*kind).into());
            }
            ((*name).to_owned(), property)
        };
        let required: Vec<&str> =
            self.arguments.iter().filter(|(.., required)| *required).map(|(name, ..)| *name).collect();
        let schema = json!({
            "type": "object",
            "properties": self.arguments.iter().map(property).collect::<Map<String, Value>>(),
            "required": required,
            "additionalProperties": false,
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(self.op.is_none())
            .destructive(false)
            .open_world(false);
        Tool::new(self.name, self.description, Arc::new(schema))
            .with_title(self.title)
            .with_annotations(hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_stands_for_its_operation_and_its_arguments_are_read_strictly() {
        let read = |op: &str, arguments: Value| operation(op, arguments.as_object().cloned().unwrap());
        assert!(matches!(read("start", json!({"item": 1})), Ok(WorkOperation::Start { .. })));
        assert!(read("start", json!({"item": 1, "op": "attest", "reason": "x"})).is_err());
        assert!(read("start", json!({"item": 1, "force": true})).unwrap_err().contains("force"));
        assert!(read("claim", json!({"item": 1})).unwrap_err().contains("evidence"));
        // No tool stands for what an agent may not do; were there one, the daemon would refuse it.
        let ops: Vec<&str> = TOOLS.iter().filter_map(|tool| tool.op).collect();
        assert_eq!(ops, ["create", "propose", "start", "claim", "verify"]);
    }
}
