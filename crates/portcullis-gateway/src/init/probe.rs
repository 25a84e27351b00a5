//! Just enough of an MCP client to list a server's tools, in either generation of the protocol.
//!
//! It opens with `initialize`; a server that does not know that is asked again in the stateless way, where each
//! request says by itself what the handshake would have said.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{Id, METHOD_NOT_FOUND, Message, error_response, peek};
use portcullis_wire::mcp::list::{ListedTool, TOOLS_MAX, Unreadable, listed_tools};
use portcullis_wire::mcp::{
    INITIALIZE, INITIALIZED, META_CLIENT_INFO, META_PROTOCOL_VERSION, TOOLS_LIST, V_2025_11_25, V_2026_07_28,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::InitError;
use crate::mcp::hint;

/// How long the server may take for one answer, in seconds. The first start of a server that is installed on
/// the fly takes its time.
pub const ANSWER_S_MAX: u64 = 120;
/// Most pages of a list.
pub const PAGES_MAX: usize = 100;
/// How long the server may take to end once its input is closed.
const END_MAX: Duration = Duration::from_secs(5);
/// Characters of an error of the server's that are looked at and shown.
const ERROR_CHARS_MAX: usize = 500;
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// Key in `_meta` with the client's capabilities, in the stateless protocol.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a server offers.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) server: String,
    pub(super) tools: Vec<ListedTool>,
    pub(super) warnings: Vec<String>,
}

/// Why the tools are not known.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The server cannot be started.
    #[error("cannot start the server `{server}`: {source}{}", hint(server))]
    Spawn {
        /// Its program.
        server: String,
        /// Why.
        source: std::io::Error,
    },
    /// The server went away.
    #[error(
        "the server ended or closed its output before it answered `{method}`; what it says about that is above"
    )]
    Ended {
        /// What it was asked.
        method: &'static str,
    },
    /// The server does not answer.
    #[error(
        "the server did not answer `{method}` within {ANSWER_S_MAX} s; is it an MCP server on standard input and output?"
    )]
    Silent {
        /// What it was asked.
        method: &'static str,
    },
    /// The server answered with an error.
    #[error("the server answered `{method}` with an error: {error}")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// The error.
        error: String,
    },
    /// The server's answer cannot be read.
    #[error("the server's answer to `{method}` cannot be read: {why}")]
    Answer {
        /// What it was asked.
        method: &'static str,
        /// Why.
        why: String,
    },
    /// The list does not end.
    #[error("the server lists more than {PAGES_MAX} pages or {TOOLS_MAX} tools")]
    Endless,
}

/// Starts the server, lists its tools and ends it.
pub(super) async fn probe(command: &[OsString]) -> Result<Found, InitError> {
    let (program, arguments) = command.split_first().ok_or(InitError::NoCommand)?;
    let server = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn();
    let mut child = spawned
        .map_err(|source| ProbeError::Spawn { server: program.to_string_lossy().into_owned(), source })?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(ProbeError::Ended { method: INITIALIZE }.into());
    };
    let found = converse(input, output, server).await;
    // Also after a failure: a gate in front of a server closes its run.
    if timeout(END_MAX, child.wait()).await.is_err() {
        tracing::warn!("the server did not end within {} s and is killed", END_MAX.as_secs());
    }
    Ok(found?)
}

/// The whole conversation; both ends are closed afterwards.
pub(super) async fn converse(
    input: impl AsyncWrite + Unpin,
    output: impl AsyncRead + Unpin,
    server: String,
) -> Result<Found, ProbeError> {
    let splitter = LineSplitter::default();
    let mut session = Session { input, output, splitter, next_id: 1 };
    let mut found = Found { server, tools: Vec::new(), warnings: Vec::new() };
    let stateless = match session.ask(INITIALIZE, hello()).await? {
        Ok(result) => {
            if let Some(name) = introduction(&result) {
                found.server = name;
            }
            session.send(&json!({"jsonrpc": "2.0", "method": INITIALIZED}), INITIALIZED).await?;
            false
        }
        Err(Refusal { code: METHOD_NOT_FOUND, .. }) => true,
        Err(Refusal { raw, .. }) if raw.contains(V_2026_07_28) => true,
        Err(Refusal { text, .. }) => return Err(ProbeError::Refused { method: INITIALIZE, error: text }),
    };
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let answer = session.ask(TOOLS_LIST, page(stateless, cursor.as_deref())).await?;
        let result =
            answer.map_err(|refusal| ProbeError::Refused { method: TOOLS_LIST, error: refusal.text })?;
        let unreadable = |why: String| ProbeError::Answer { method: TOOLS_LIST, why };
        let list = listed_tools(&result).map_err(|error| unreadable(error.to_string()))?;
        for Unreadable { position, why, .. } in list.unreadable {
            found.warnings.push(format!("tool {position} of a page was left out: {why}"));
        }
        found.tools.extend(list.tools);
        if found.tools.len() > TOOLS_MAX {
            return Err(ProbeError::Endless);
        }
        if !list.has_more {
            return Ok(found);
        }
        cursor = Some(next_cursor(&result).ok_or_else(|| unreadable("`nextCursor` is not a string".into()))?);
    }
    Err(ProbeError::Endless)
}

fn hello() -> Value {
    json!({"protocolVersion": V_2025_11_25, "capabilities": {}, "clientInfo": client_info()})
}

fn client_info() -> Value {
    json!({"name": "portcullis-init", "version": env!("CARGO_PKG_VERSION")})
}

fn page(stateless: bool, cursor: Option<&str>) -> Value {
    let mut params = Map::new();
    if stateless {
        let meta = json!({
            META_PROTOCOL_VERSION: V_2026_07_28, META_CLIENT_INFO: client_info(), META_CAPABILITIES: {},
        });
        params.insert("_meta".to_owned(), meta);
    }
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor.into());
    }
    params.into()
}

fn introduction(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Hello {
        #[serde(rename = "serverInfo")]
        server: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let hello: Hello = serde_json::from_str(result.get()).ok()?;
    Some(hello.server.name).filter(|name| !name.trim().is_empty())
}

fn next_cursor(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(rename = "nextCursor")]
        cursor: String,
    }
    serde_json::from_str::<Page>(result.get()).ok().map(|page| page.cursor)
}

/// An error that the server answered with.
struct Refusal {
    code: i64,
    /// Its message.
    text: String,
    /// All of it.
    raw: String,
}

impl Refusal {
    fn of(error: &RawValue) -> Self {
        let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
        let code = value.get("code").and_then(Value::as_i64).unwrap_or_default();
        let raw: String = error.get().chars().take(ERROR_CHARS_MAX).collect();
        let text = match value.get("message").and_then(Value::as_str) {
            Some(message) if !message.trim().is_empty() => message.chars().take(ERROR_CHARS_MAX).collect(),
            _ => raw.clone(),
        };
        Self { code, text, raw }
    }
}

struct Session<W, R> {
    input: W,
    output: R,
    splitter: LineSplitter,
    next_id: i64,
}

impl<W: AsyncWrite + Unpin, R: AsyncRead + Unpin> Session<W, R> {
    async fn send(&mut self, message: &Value, method: &'static str) -> Result<(), ProbeError> {
        let line = format!("{message}\n");
        let sent = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        sent.await.map_err(|_| ProbeError::Ended { method })
    }

    /// One request and its answer; what the server says in between is passed over.
    async fn ask(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> Result<Result<Box<RawValue>, Refusal>, ProbeError> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}), method).await?;
        timeout(Duration::from_secs(ANSWER_S_MAX), self.answer(id, method))
            .await
            .unwrap_or(Err(ProbeError::Silent { method }))
    }

    async fn answer(
        &mut self,
        wanted: i64,
        method: &'static str,
    ) -> Result<Result<Box<RawValue>, Refusal>, ProbeError> {
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let mut refused = Vec::new();
            while let Some(line) = self.splitter.next_line() {
                let line = line.map_err(|error| ProbeError::Answer { method, why: error.to_string() })?;
                match peek(line) {
                    Ok(Message::Response { id, result, error }) if id == Id::Integer(i128::from(wanted)) => {
                        return match (result, error) {
                            (Some(result), _) => Ok(Ok(result.to_owned())),
                            (None, Some(error)) => Ok(Err(Refusal::of(error))),
                            (None, None) => {
                                Err(ProbeError::Answer { method, why: "it says nothing".to_owned() })
                            }
                        };
                    }
                    Ok(Message::Request { id_raw, .. }) => {
                        let why = "portcullis init only lists tools";
                        refused.push(error_response(Some(id_raw), METHOD_NOT_FOUND, why, None));
                    }
                    // Notifications, log lines on the wrong stream.
                    _ => {}
                }
            }
            for mut line in refused {
                line.push(b'\n');
                self.input.write_all(&line).await.map_err(|_| ProbeError::Ended { method })?;
            }
            let read = self.output.read(&mut chunk).await.unwrap_or(0);
            if read == 0 {
                return Err(ProbeError::Ended { method });
            }
            self.splitter.feed(chunk.get(..read).unwrap_or_default());
        }
    }
}
