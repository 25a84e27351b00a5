//! Foreign JSON (MCP, hooks of coding agents, OpenAI chat traces) to and from the gate's vocabulary, without I/O.
//!
//! Everything here works on bytes that someone else wrote and someone else will read. Two rules follow.
//! What passes through keeps its bytes: a message is *peeked* at, and where it must change, the change is
//! spliced in and nothing around it is written again. And what is judged is read strictly: a text that two
//! readers could understand differently is refused, so that no argument can be hidden from a guard.
//!
//! | module | reads |
//! |---|---|
//! | [`strict`] | one JSON value, refusing all ambiguity |
//! | [`framing`] | newline-framed messages out of a byte stream |
//! | [`jsonrpc`] | the outline of one JSON-RPC message, and writes replies |
//! | [`hook`] | the events that a coding agent tells its hooks, and writes the answers |
//! | [`mcp`] | tool calls, tool lists and tool results of the Model Context Protocol |
//! | [`sse`] | server-sent events, and writes them |
//! | [`trace`] | recorded traces, with [`openai`] for the messages in them |

mod fields;
pub mod framing;
pub mod hook;
pub mod jsonrpc;
pub mod mcp;
pub mod openai;
pub mod sse;
pub mod strict;
pub mod trace;

pub use fields::FieldError;
