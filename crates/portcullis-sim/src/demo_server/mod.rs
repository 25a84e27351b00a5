//! A small MCP server with the five simulated tools: something real to put behind the gate.
//!
//! It speaks MCP over standard input and output like any server that `portcullis mcp -- CMD` wraps, and
//! knows nothing of the gate: it executes whatever it is asked. So what a policy prevents can be seen
//! in the folder it works on, where a denied mail or file is simply not there.
//!
//! Its hints (`readOnlyHint` and similar) are true of the folder, and still no substitute for a
//! registry: a query really is read-only, and the shipped registry calls it side-effecting all the
//! same, because of what it may reveal. A server cannot know that; an operator does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::tools::{TOOLS, ToolError, Workspace};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::IntoTransport;
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::Semaphore;

#[cfg(test)]
mod tests;

/// The documents of the shipped bundle.
const KNOWLEDGE: &str = include_str!("../../../../examples/bundle/knowledge.json");
/// Most calls that run at once; each takes a thread.
const MAX_CALLS_AT_ONCE: usize = 16;

/// Why the demo server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum DemoServerError {
    /// The folder cannot be used.
    #[error("the demo server cannot use its folder: {0}")]
    Workspace(#[source] ToolError),
    /// The documents that ship with the program cannot be read.
    #[error("the shipped documents are damaged: {0}")]
    Knowledge(#[source] serde_json::Error),
    /// The client did not open an MCP session.
    #[error("the demo server got no MCP session: {0}")]
    Session(#[source] Box<rmcp::service::ServerInitializeError>),
    /// A task of the server died.
    #[error("the demo server stopped: {0}")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves the five tools on the folder `dir` over standard input and output, until the client closes
/// them. The folder is made if it is missing; what is in it stays.
///
/// # Errors
/// [`DemoServerError`].
pub async fn run(dir: &Path) -> Result<(), DemoServerError> {
    let (input, output) = rmcp::transport::stdio();
    serve(dir, (input, output)).await
}

/// Like [`run`], over any transport.
async fn serve<T, E, A>(dir: &Path, transport: T) -> Result<(), DemoServerError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let knowledge: BTreeMap<String, String> =
        serde_json::from_str(KNOWLEDGE).map_err(DemoServerError::Knowledge)?;
    let workspace = Workspace::create(dir, &knowledge).map_err(DemoServerError::Workspace)?;
    let server =
        DemoServer { workspace: Arc::new(workspace), calls: Arc::new(Semaphore::new(MAX_CALLS_AT_ONCE)) };
    let session = server.serve(transport).await.map_err(|error| DemoServerError::Session(Box::new(error)))?;
    session.waiting().await.map_err(DemoServerError::Stopped)?;
    Ok(())
}

#[derive(Debug, Clone)]
struct DemoServer {
    workspace: Arc<Workspace>,
    calls: Arc<Semaphore>,
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("portcullis-demo-server", env!("CARGO_PKG_VERSION")))
            .with_instructions("Five compliance tools on a private folder; nothing leaves this machine.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(|tool| describe(tool)).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|tool| tool.id == name).map(|tool| describe(tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Waiting calls would be a queue without an end.
        let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() else {
            let message = format!("{MAX_CALLS_AT_ONCE} calls are running already; try again");
            return Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into());
        };
        let workspace = Arc::clone(&self.workspace);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let called = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            workspace.call(&request.name, &arguments)
        });
        match called.await {
            Ok(Ok(output)) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(output.text)]);
                result.structured_content = Some(output.structured);
                Ok(result.into())
            }
            Ok(Err(error @ ToolError::UnknownTool { .. })) => {
                Err(ErrorData::invalid_params(error.to_string(), None))
            }
            Ok(Err(error)) => Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
            Err(error) => Err(ErrorData::internal_error(format!("the call was not finished: {error}"), None)),
        }
    }
}

/// A simulated tool as MCP describes tools.
fn describe(tool: &crate::tools::Tool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.name)
        .read_only(tool.read_only)
        .destructive(tool.destructive)
        .idempotent(tool.idempotent)
        // Even the mail stays in the folder.
        .open_world(false);
    Tool::new(tool.id, tool.description, Arc::new(tool.input_schema()))
        .with_title(tool.name)
        .with_annotations(hints)
}
