//! The way to the server: a tool call takes a permit, and nothing else can be a tool call.

use std::io;
use std::sync::Arc;

use portcullis_core::id::ActionId;
use portcullis_wire::jsonrpc::{INVALID_REQUEST, Id, Message, error_response, peek};
use portcullis_wire::mcp::TOOLS_CALL;
use portcullis_wire::mcp::call::{CallError, replace_arguments};
use portcullis_wire::mcp::translate::{Turn, Unmatched};
use serde_json::value::RawValue;

use super::gate::{LineWriter, is_blank};
use super::translation::Translation;
use crate::client::Permit;

/// A line of the client in which no tool is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoCall<'l>(&'l [u8]);

impl<'l> NoCall<'l> {
    /// A line that says nothing, or `None` for any other.
    pub(super) fn blank(line: &'l [u8]) -> Option<Self> {
        is_blank(line).then_some(Self(line))
    }

    /// A line with the message that was read from it, or `None` if it calls a tool, or may.
    pub(super) fn of(line: &'l [u8], message: &Message<'_>) -> Option<Self> {
        let is_none = match message {
            Message::Batch(elements) => elements
                .iter()
                .all(|element| peek(element.get().as_bytes()).is_ok_and(|one| calls_none(&one))),
            message => calls_none(message),
        };
        is_none.then_some(Self(line))
    }
}

/// Whether a message by itself calls no tool.
fn calls_none(message: &Message<'_>) -> bool {
    match message {
        Message::Request { method, .. } | Message::Notification { method, .. } => method != TOOLS_CALL,
        Message::Response { .. } => true,
        Message::Batch(_) => false,
    }
}

/// The line of a call as it was permitted.
#[derive(Debug)]
pub(super) struct PermittedCall {
    action: ActionId,
    line: Vec<u8>,
}

impl PermittedCall {
    /// The line that was judged, with the arguments that are permitted. Uses up the permit.
    ///
    /// # Errors
    /// The arguments cannot be replaced; the action does not happen then.
    pub(super) fn new(permit: Permit, line: Vec<u8>) -> Result<Self, CallError> {
        let action = permit.action();
        let line = match permit.into_edited_arguments() {
            None => line,
            Some(arguments) => replace_arguments(&line, &arguments)?,
        };
        Ok(Self { action, line })
    }

    /// The action.
    pub(super) fn action(&self) -> ActionId {
        self.action
    }
}

/// The server's standard input, behind the translation into its generation of the protocol.
#[derive(Debug)]
pub(super) struct ToServer {
    writer: Arc<LineWriter>,
    pub(super) translation: Translation,
}

impl ToServer {
    pub(super) fn new(writer: LineWriter, unmatched: Unmatched) -> Self {
        let writer = Arc::new(writer);
        Self { translation: Translation::new(unmatched, &writer), writer }
    }

    /// Makes the call, once.
    pub(super) async fn call(&self, call: PermittedCall) -> io::Result<()> {
        self.translation.client_says(&call.line, &self.writer).await
    }

    /// Makes a call again that was translated already, once.
    pub(super) async fn call_again(&self, call: PermittedCall) -> io::Result<()> {
        self.translation.again(call.line).await
    }

    /// Passes on a line in which no tool is called.
    pub(super) async fn pass(&self, line: NoCall<'_>) -> io::Result<()> {
        self.translation.client_says(line.0, &self.writer).await
    }

    /// Answers a request of the server with an error.
    pub(super) async fn refuse(&self, id: &RawValue, why: &str) -> io::Result<()> {
        let line = error_response(Some(id), INVALID_REQUEST, why, None);
        self.translation.client_says(&line, &self.writer).await
    }

    /// What a line of the server becomes for the client, and what follows from it. `None`: it stays as it is.
    pub(super) fn heard(&self, line: &[u8]) -> Option<Turn> {
        self.translation.server_says(line)
    }

    /// What follows from a request that gets no answer.
    pub(super) fn lost(&self, id: &Id, refused: bool, why: &str) -> Turn {
        self.translation.lost(id, refused, why)
    }

    /// The client got something else than the answer.
    pub(super) fn withheld(&self, answer: &[u8], told: &[u8]) {
        self.translation.withheld(answer, told);
    }

    /// Goes on with a call that was to be made again.
    pub(super) fn due(&self, call: &Id) -> Turn {
        self.translation.due(call)
    }

    /// Closes this end; what is written later fails.
    pub(super) async fn close(&self) {
        self.writer.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(line: &str) -> bool {
        NoCall::of(line.as_bytes(), &peek(line.as_bytes()).unwrap()).is_some()
    }

    #[test]
    fn no_line_with_a_tool_call_passes_without_a_permit() {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools\/call","params":{"name":"t"}}"#;
        let silent_call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#;
        for line in [note, list, answer, &format!("[{note},{list},{answer}]")] {
            assert!(passes(line), "{line}");
        }
        for line in
            [call, silent_call, &format!("[{note},{call}]"), &format!("[{silent_call}]"), "[[]]", "[7]"]
        {
            assert!(!passes(line), "{line}");
        }
    }
}
