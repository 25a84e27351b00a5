//! The parts of the Model Context Protocol that a gate must understand.
//!
//! Two generations are spoken. Up to 2025-11-25 a session opens with `initialize`. From 2026-07-28 there is no
//! session: every request carries its protocol version and client in `_meta`, `server/discover` replaces the
//! handshake, and a server that needs something from the client answers `resultType: "input_required"`, upon
//! which the client sends the same request again with `inputResponses` and the echoed `requestState`.
//!
//! Tool calls, tool lists, tool results and the tasks that calls go on as are taken apart; of all else that a server says
//! the text is read.

pub mod call;
pub mod elicitation;
mod encoded;
pub mod excise;
pub mod headers;
pub mod hello;
mod joined;
pub mod list;
pub mod replace;
pub mod result;
pub mod task;
mod text;
pub mod translate;

use crate::fields::{self, FieldError};
use crate::jsonrpc::Id;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The revision of June 2025, the first that has a server ask the user.
pub const V_2025_06_18: &str = "2025-06-18";
/// The revision of November 2025, the last that opens with [`INITIALIZE`].
pub const V_2025_11_25: &str = "2025-11-25";
/// The stateless revision of July 2026.
pub const V_2026_07_28: &str = "2026-07-28";

/// Opens a session (up to [`V_2025_11_25`]).
pub const INITIALIZE: &str = "initialize";
/// The client has read the answer to [`INITIALIZE`].
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks what a server offers (from [`V_2026_07_28`]).
pub const DISCOVER: &str = "server/discover";
/// Lists tools, a page at a time.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// The sender no longer waits for a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Asks for the state of a task that a call created.
pub const TASKS_GET: &str = "tasks/get";
/// Asks for the result of a task (up to [`V_2025_11_25`]; later it comes with [`TASKS_GET`]).
pub const TASKS_RESULT: &str = "tasks/result";
/// Answers what a task asks for (from [`V_2026_07_28`]).
pub const TASKS_UPDATE: &str = "tasks/update";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Gets a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Opens a stream of notifications (from [`V_2026_07_28`]).
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// What the server agrees to tell on such a stream.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Is anyone there (up to [`V_2025_11_25`]).
pub const PING: &str = "ping";
/// Asks for log messages from a level on (up to [`V_2025_11_25`]).
pub const SET_LEVEL: &str = "logging/setLevel";
/// A log message of the server.
pub const LOG_MESSAGE: &str = "notifications/message";
/// How far a request has come.
pub const PROGRESS: &str = "notifications/progress";
/// Asks to be told of changes to a resource (up to [`V_2025_11_25`]).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// No longer asks for that.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// A resource has changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
/// The client's roots have changed (up to [`V_2025_11_25`]).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// A server asks for the client's roots.
pub const ROOTS_LIST: &str = "roots/list";
/// A server asks the client's model.
pub const SAMPLING_CREATE: &str = "sampling/createMessage";

/// The revisions with sessions that servers are known to speak.
pub const SESSION_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", V_2025_06_18, V_2025_11_25];

/// Key in `_meta` of a request: the protocol revision it is written in (from [`V_2026_07_28`]).
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Key in `_meta` of a request: the client's name and version (from [`V_2026_07_28`]).
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Key in `_meta` of a request: what the client can do (from [`V_2026_07_28`]).
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Key in `_meta` of a request: the log messages that it wants (from [`V_2026_07_28`]).
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Key in `_meta` of a result: the server's name and version (from [`V_2026_07_28`]).
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Key in `_meta` of a notification: the request that opened its stream (from [`V_2026_07_28`]).
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Key in `_meta` of a request: the token for progress notifications.
pub const META_PROGRESS_TOKEN: &str = "progressToken";

/// What a request says about itself in `_meta`; all absent where it says nothing.
#[derive(Debug, Clone, Default)]
pub struct RequestMeta<'a> {
    /// The protocol revision; present on every request from [`V_2026_07_28`], on none before.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The client's name and version, as sent.
    pub client_info: Option<&'a RawValue>,
    /// What the client can do, as sent; required from [`V_2026_07_28`].
    pub client_capabilities: Option<&'a RawValue>,
    /// The token for progress notifications, as sent.
    pub progress_token: Option<&'a RawValue>,
}

/// Reads what a request says about itself, from its parameters.
///
/// # Errors
/// [`FieldError`] if the parameters or `_meta` are no objects or say one of these fields twice.
pub fn request_meta(params: Option<&RawValue>) -> Result<RequestMeta<'_>, FieldError> {
    let Some(params) = fields::present(params).filter(|params| !params.get().starts_with('[')) else {
        return Ok(RequestMeta::default());
    };
    let [meta] = fields::read(params.get(), &["_meta"])?;
    let Some(meta) = fields::present(meta) else {
        return Ok(RequestMeta::default());
    };
    let [version, client_info, client_capabilities, progress_token] = fields::read(
        meta.get(),
        &[META_PROTOCOL_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_PROGRESS_TOKEN],
    )?;
    let protocol_version = version.and_then(fields::string);
    Ok(RequestMeta { protocol_version, client_info, client_capabilities, progress_token })
}

/// The request that a [`CANCELLED`] notification is about. `None` if it names none.
#[must_use]
pub fn cancelled_request(params: Option<&RawValue>) -> Option<Id> {
    let [id] = fields::read(fields::present(params)?.get(), &["requestId"]).ok()?;
    Id::of(id?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_its_revision() {
        let params =
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":3,"x":1}}"#;
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let meta = request_meta(Some(&params)).unwrap();
        assert_eq!(meta.protocol_version.as_deref(), Some(V_2026_07_28));
        assert_eq!(meta.progress_token.map(RawValue::get), Some("3"));
        for silent in ["{}", "null", "[1]", r#"{"_meta":null}"#] {
            let silent = RawValue::from_string(silent.to_owned()).unwrap();
            assert!(request_meta(Some(&silent)).unwrap().protocol_version.is_none());
        }
        assert!(request_meta(None).unwrap().protocol_version.is_none());
    }
}
