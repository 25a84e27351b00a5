//! What the server says of itself and of its tools: compared with what a person accepted, and hidden where it changed.

use portcullis_core::id::DigestBuilder;
use portcullis_wire::jsonrpc::{INTERNAL_ERROR, error_response};
use portcullis_wire::mcp::hello::{read_hello, without_instructions};
use portcullis_wire::mcp::list::{INSTRUCTIONS, ListedTool, Unreadable, hide_tools, listed_tools};
use serde_json::Value;
use serde_json::value::RawValue;

use super::downstream::{Heard, overheard};
use super::gate::{Gate, shown};
use crate::api::{ReportedTool, UnreadableTool};

/// Names of hidden tools that one warning tells.
const NAMES_SHOWN_MAX: usize = 8;

/// Notes how the server introduces itself. Instructions that changed since a person accepted them are taken out.
pub(super) async fn hello(gate: &Gate, line: &[u8], id: &RawValue, result: &RawValue) -> Option<Vec<u8>> {
    let hello = match read_hello(result) {
        Ok(hello) => hello,
        Err(error) => return refused(id, format!("Portcullis does not pass on this answer: {error}")),
    };
    if gate.should_be_contained(hello.server.as_deref()) {
        gate.to_server.close().await;
        return refused(
            id,
            "the bundle has this server run contained, and it was not started so: give its name in the bundle with `--server`"
                .to_owned(),
        );
    }
    let changed = match overheard(gate, line, Ok(hello.besides)).await {
        Heard::Passes => None,
        Heard::Changed(line) => Some(line),
        Heard::Withheld(why) => return refused(id, why),
    };
    gate.introduced(hello.server.map(String::from), hello.version.map(String::from));
    let instructions = ReportedTool {
        name: INSTRUCTIONS.to_owned(),
        description: hello.instructions.into_owned(),
        input_schema: Value::Null,
        rest: None,
        read_only_hint: None,
        destructive_hint: None,
    };
    let says_nothing = instructions.description.is_empty();
    let hidden = match gate.report_tools(vec![instructions], Vec::new()).await {
        Ok((_, changed)) => changed,
        Err(error) => {
            return refused(id, format!("the server's description of itself could not be recorded: {error}"));
        }
    };
    if hidden.is_empty() || says_nothing {
        return changed;
    }
    tracing::warn!(
        "the server's instructions are hidden, because they changed since a person accepted them: \
         portcullis tools changed"
    );
    without_instructions(changed.as_deref().unwrap_or(line)).or_else(|| {
        refused(
            id,
            "the instructions of the server changed, and cannot be taken out of this answer".to_owned(),
        )
    })
}

/// Reports a list of tools and hides what is disabled, what changed, and what cannot be read. A list that cannot be
/// recorded is not shown: an agent that does not know a tool does no harm with it.
pub(super) async fn list(gate: &Gate, line: &[u8], id: &RawValue, result: &RawValue) -> Option<Vec<u8>> {
    let unread = |error: &dyn std::fmt::Display| {
        refused(id, format!("Portcullis does not pass on this list of tools: {error}"))
    };
    let listed = match listed_tools(result) {
        Ok(listed) => listed,
        Err(error) => return unread(&error),
    };
    let besides = match overheard(gate, line, Ok(listed.besides)).await {
        Heard::Passes => None,
        Heard::Changed(line) => Some(line),
        Heard::Withheld(why) => return refused(id, why),
    };
    for Unreadable { position, why, .. } in &listed.unreadable {
        tracing::warn!(
            "entry {position} of the server's list of tools is hidden, because it cannot be read: {why}"
        );
    }
    let tools = listed.tools.into_iter().map(reported).collect();
    let unreadable = listed.unreadable.into_iter().flat_map(unreadable).collect();
    let (disabled, changed) = match gate.report_tools(tools, unreadable).await {
        Ok(answer) => answer,
        Err(error) => return refused(id, format!("the list of tools could not be recorded: {error}")),
    };
    if !changed.is_empty() {
        tracing::warn!(
            "{} of the server's tools are hidden and their calls held, because they changed since a person accepted them: {}; review and accept the changes: portcullis tools changed",
            changed.len(),
            some_of(&changed)
        );
    }
    if !disabled.is_empty() {
        tracing::warn!(
            "{} of the server's tools are hidden, because the bundle disables them: {}",
            disabled.len(),
            some_of(&disabled)
        );
    }
    let line = besides.as_deref().unwrap_or(line);
    match hide_tools(line, |name| disabled.iter().chain(&changed).any(|hidden| hidden == name)) {
        Ok(shorter) => shorter.or(besides),
        Err(error) => unread(&error),
    }
}

/// Names for a warning.
fn some_of(names: &[String]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{}`", shown(name.as_bytes()))).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn refused(id: &RawValue, why: String) -> Option<Vec<u8>> {
    tracing::warn!("{why}");
    Some(error_response(Some(id), INTERNAL_ERROR, &why, None))
}

fn reported(tool: ListedTool) -> ReportedTool {
    ReportedTool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        rest: Some(tool.rest),
        read_only_hint: tool.hints.read_only,
        destructive_hint: tool.hints.destructive,
    }
}

/// One for each name that a reader might take for that of the entry.
fn unreadable(entry: Unreadable) -> Vec<UnreadableTool> {
    let digest = DigestBuilder::new("portcullis/unreadable-tool/v1").part(entry.raw.as_bytes()).finish();
    let Unreadable { names, why, .. } = entry;
    names.into_iter().map(|name| UnreadableTool { name, digest, why: why.clone() }).collect()
}
