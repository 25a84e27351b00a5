//! The surfaces: how a row of the table goes through each, and what was judged.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use portcullis_core::event::{EventBody, OutcomeStatus, Place};
use portcullis_core::finding::Finding;
use portcullis_core::id::RunId;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{
    OpenRun, ProposeAction, ReportInput, ReportOutcome, ReportTools, ReportedTool, Role,
};
use portcullis_gateway::mcp::{ClientEnds, GateOptions, RemoteServer, ServerAt, relay};
use portcullis_session::engine::Reach;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::far::WANTED;
use super::table::{Action, Listing, name_of};
use super::{HOME, PROJECT, words};
use crate::daemon::{Daemon, events, raw_unix, token};
use portcullis_core::principal::CredentialKind;

const PATIENCE: Duration = Duration::from_secs(30);
/// Prints one of its arguments for each line that it is given.
const SCRIPTED: &str = "while IFS= read -r line; do printf '%s\\n' \"$1\"; shift; done";

/// What was judged, in words that do not depend on ids, times and places in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) findings: Vec<String>,
}

impl Judged {
    fn of(verdict: Verdict, findings: &[Finding]) -> Self {
        let words = |finding: &Finding| {
            let verdict = finding.effective().as_str();
            format!("{verdict} {}: {} {:?}", finding.rule, finding.message, finding.resources)
        };
        Self { verdict, findings: findings.iter().map(words).collect() }
    }
}

/// Where an MCP server is, and what is spoken on the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mcp {
    /// `portcullis mcp -- COMMAND`.
    Stdio,
    /// `portcullis mcp --url`, answered with JSON.
    Url,
    /// The same, answered with events.
    UrlEvents,
    /// `/mcp` of the daemon.
    Endpoint,
    /// The same, where the server answers with events.
    EndpointEvents,
}

/// Runs through the daemon, under its bundle.
pub(super) struct Through {
    pub(super) daemon: Daemon,
    /// The folder of the bundle.
    pub(super) bundle: String,
    /// The scripted server.
    pub(super) far: String,
}

/// An answer of a server, as the result of a call.
pub(super) fn result_line(id: &Value, text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

impl Through {
    pub(super) async fn open(&self, session: &str) -> RunId {
        let open = OpenRun {
            surface: "http".into(),
            session: Some(session.into()),
            rejoin: true,
            ..OpenRun::default()
        };
        self.daemon.agent().open_run(&open).await.unwrap().run
    }

    /// The user speaks.
    pub(super) async fn say(&self, run: RunId, user: Option<&str>) {
        let Some(text) = user else { return };
        let input = ReportInput { text: text.into(), role: Role::User, reach: Reach::Withhold };
        self.daemon.agent().input(run, &input).await.unwrap();
    }

    /// The verdicts of a run, in their order.
    pub(super) async fn verdicts(&self, run: RunId) -> Vec<Judged> {
        let page = self.daemon.agent().events_joined(&run.to_string(), 0, 1_000).await.unwrap();
        let verdict = |body| match body {
            EventBody::Verdict(record) => Some(Judged::of(record.verdict, &record.findings)),
            _ => None,
        };
        events(&page.lines).into_iter().filter_map(|event| verdict(event.body)).collect()
    }

    pub(super) async fn v1(&self, number: usize, action: &Action) -> Vec<Judged> {
        let client = self.daemon.agent();
        let open = OpenRun {
            surface: "http".into(),
            session: Some(format!("v1-{number}")),
            place: Some(Place { workspace: Some(PROJECT.into()), home: Some(HOME.into()), gate: None }),
            ..OpenRun::default()
        };
        let run = client.open_run(&open).await.unwrap().run;
        self.say(run, action.user.as_deref()).await;
        let proposal = ProposeAction {
            tool: Some(action.tool.clone()),
            arguments: action.arguments.clone(),
            directory: Some(PROJECT.into()),
            ..ProposeAction::default()
        };
        let proposed = client.propose(run, &proposal).await.unwrap();
        let answered = Judged::of(proposed.judged().verdict, &proposed.judged().findings);
        if let (Some(permit), Some(result)) = (proposed.permit(), &action.result) {
            let outcome = ReportOutcome::of(permit.action(), OutcomeStatus::Ok, Some(result.clone()));
            client.outcome(run, &outcome).await.unwrap();
        }
        let verdicts = self.verdicts(run).await;
        assert_eq!(verdicts.first(), Some(&answered), "the record says what was answered");
        client.close(run).await.unwrap();
        verdicts
    }

    /// What the record says after an agent's hook has asked.
    pub(super) async fn hook(
        &self,
        agent: &str,
        number: usize,
        action: &Action,
        call: &words::Call,
    ) -> Vec<Judged> {
        let session = format!("{agent}-{number}");
        let ask = async |event: String| {
            let mut asked = json!({
                "input": event, "bundle": self.bundle, "workspace": PROJECT, "home": HOME, "uncontained": true,
            });
            if agent != "claude-code" {
                asked["agent"] = agent.into();
            }
            let (status, answer) = self.daemon.requests().post("/v1/hook", &asked).await;
            // Of some, a denial is the exit code; what could not be judged says so.
            let denied = matches!(agent, "windsurf" | "kiro") && answer["exit"] == 2;
            let judged = !answer["error"].as_str().unwrap().contains("could not be judged");
            assert!(
                status == 200 && judged && (denied || answer["exit"] == 0),
                "{agent} {}: {status} {answer}",
                action.tool
            );
        };
        if let Some(user) = &action.user {
            ask(words::prompt(agent, &session, user)).await;
        }
        ask(words::before(agent, &session, call).to_string()).await;
        if let (Some(result), Verdict::Allow) = (&action.result, action.verdict) {
            ask(words::after(agent, &session, call, result)).await;
        }
        let run = self.open(&session).await;
        let verdicts = self.verdicts(run).await;
        self.daemon.agent().close(run).await.unwrap();
        verdicts
    }

    /// What the record says after a client of an MCP server has called.
    pub(super) async fn mcp(&self, way: Mcp, number: usize, action: &Action) -> Vec<Judged> {
        let session = format!("{way:?}-{number}");
        let call = call_of(&action.tool, &action.arguments, number);
        let line = result_line(&json!(1), action.result.as_deref().unwrap_or_default());
        let (run, answers) =
            self.converse(way, &session, action.user.as_deref(), vec![call], &[line.into_bytes()]).await;
        assert_eq!(json_of(&answers[0])["id"], 1, "{answers:?}");
        self.verdicts(run).await
    }

    /// Which tools of the last list a client is not shown.
    pub(super) async fn mcp_hides(&self, way: Mcp, number: usize, listing: &Listing) -> Vec<String> {
        let session = format!("{way:?}-list-{number}");
        let place = |index: usize| json!({WANTED: number * LISTS_MAX + index});
        let request = |index: usize| json!({"jsonrpc": "2.0", "id": index + 1, "method": "tools/list", "params": {"_meta": place(index)}});
        let requests = (0..listing.lists.len()).map(request).collect();
        let lines: Vec<Vec<u8>> = (0..)
            .zip(&listing.lists)
            .map(|(index, list)| list_line(&json!(index + 1), list).into_bytes())
            .collect();
        let (_, answers) = self.converse(way, &session, None, requests, &lines).await;
        let shown = json_of(answers.last().unwrap())["result"]["tools"].as_array().unwrap().clone();
        let shown: Vec<String> = shown.iter().map(name_of).collect();
        hidden(listing, |name| !shown.contains(name))
    }

    pub(super) async fn v1_hides(&self, number: usize, listing: &Listing) -> Vec<String> {
        let client = self.daemon.agent();
        let run = self.open(&format!("v1-list-{number}")).await;
        let mut answer = None;
        for list in &listing.lists {
            let tools = list.iter().map(reported).collect();
            let server = format!("v1-list-{number}");
            let report = ReportTools { server, command: None, tools, unreadable: Vec::new() };
            answer = Some(client.tools(run, &report).await.unwrap());
        }
        let disabled = answer.unwrap().disabled;
        hidden(listing, |name| disabled.contains(name))
    }

    /// Sends requests one after the other; the run, and what the client was answered.
    pub(super) async fn converse(
        &self,
        way: Mcp,
        session: &str,
        user: Option<&str>,
        requests: Vec<Value>,
        lines: &[Vec<u8>],
    ) -> (RunId, Vec<String>) {
        let url = |path: &str| ServerAt::Address(RemoteServer::new(&format!("{}/{path}", self.far)).unwrap());
        match way {
            Mcp::Stdio => {
                let script = ["sh", "-c", SCRIPTED, session].map(Into::into).into_iter();
                let command =
                    script.chain(lines.iter().map(|line| OsString::from_vec(line.clone()))).collect();
                self.relayed(ServerAt::Command(command), session, user, &requests).await
            }
            Mcp::Url => self.relayed(url(&format!("json/{session}")), session, user, &requests).await,
            Mcp::UrlEvents => self.relayed(url(&format!("events/{session}")), session, user, &requests).await,
            Mcp::Endpoint => self.asked("json", session, user, requests).await,
            Mcp::EndpointEvents => self.asked("events", session, user, requests).await,
        }
    }

    async fn relayed(
        &self,
        server_at: ServerAt,
        session: &str,
        user: Option<&str>,
        requests: &[Value],
    ) -> (RunId, Vec<String>) {
        let run = self.open(session).await;
        self.say(run, user).await;
        let options = GateOptions {
            home: self.daemon.home.clone(),
            bundle: None,
            policy: None,
            session: Some(session.into()),
            parent: None,
            server_at,
            server: None,
            contain: None,
            program: None,
        };
        let ((mut to_gate, input), (output, from_gate)) =
            (tokio::io::duplex(1 << 20), tokio::io::duplex(1 << 20));
        let client = ClientEnds { input, output, stop: std::future::pending() };
        let gate = tokio::spawn(relay(options, client));
        let mut from_gate = BufReader::new(from_gate);
        let mut answers = Vec::new();
        for request in requests {
            to_gate.write_all(format!("{request}\n").as_bytes()).await.unwrap();
            let mut line = String::new();
            let read = timeout(PATIENCE, from_gate.read_line(&mut line)).await.expect("no answer").unwrap();
            if read == 0 {
                panic!("the gate ended: {:?}", gate.await);
            }
            answers.push(line.trim_end_matches('\n').to_owned());
        }
        drop(to_gate);
        assert_eq!(timeout(PATIENCE, gate).await.unwrap().unwrap().unwrap().run, run);
        (run, answers)
    }

    /// As a client that speaks HTTP: with a session, or without where servers answer with events.
    async fn asked(
        &self,
        server: &str,
        session: &str,
        user: Option<&str>,
        requests: Vec<Value>,
    ) -> (RunId, Vec<String>) {
        let run = self.open(&format!("mcp:{session}")).await;
        self.say(run, user).await;
        let client = json!({"name": "parity", "version": "1"});
        let path = format!("/mcp/{server}");
        let mut headers = format!("Portcullis-Session: {session}\r\n");
        let stateless = server == "events";
        if !stateless {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            let answer = self.http("POST", &path, &headers, Some(&hello)).await;
            let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            headers = format!("{headers}Mcp-Session-Id: {}\r\n", id.unwrap_or_else(|| panic!("{answer}")));
        }
        let mut answers = Vec::new();
        for mut request in requests {
            let mut headers = headers.clone();
            if stateless {
                let meta = &mut request["params"]["_meta"];
                meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
                meta["io.modelcontextprotocol/clientInfo"] = client.clone();
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
                let method = request["method"].as_str().unwrap();
                headers += &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
                if let Some(name) = request["params"]["name"].as_str().or(request["params"]["uri"].as_str()) {
                    headers += &format!("Mcp-Name: {name}\r\n");
                }
            }
            let answer = self.http("POST", &path, &headers, Some(&request)).await;
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            answers.push(body.to_owned());
        }
        if !stateless {
            let ended = self.http("DELETE", &path, &headers, None).await;
            assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
        }
        (run, answers)
    }

    async fn http(&self, method: &str, path: &str, headers: &str, body: Option<&Value>) -> String {
        let token = token(&self.daemon.home, CredentialKind::Agent);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        timeout(PATIENCE, raw_unix(self.daemon.home.socket(), request)).await.unwrap()
    }
}

fn json_of(answer: &str) -> Value {
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Most lists of a row.
pub(super) const LISTS_MAX: usize = 8;

pub(super) fn list_line(id: &Value, list: &[Value]) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"tools": list}}).to_string()
}

pub(super) fn call_of(tool: &str, arguments: &Value, wanted: usize) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {WANTED: wanted}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// A tool of a list as `/v1` is told of it.
fn reported(tool: &Value) -> ReportedTool {
    let mut rest = tool.as_object().unwrap().clone();
    rest.retain(|name, _| !["name", "description", "inputSchema"].contains(&name.as_str()));
    ReportedTool {
        name: name_of(tool),
        description: tool["description"].as_str().unwrap().into(),
        input_schema: tool["inputSchema"].clone(),
        rest: Some(rest.into()),
        read_only_hint: tool["annotations"]["readOnlyHint"].as_bool(),
        destructive_hint: None,
    }
}

fn hidden(listing: &Listing, is: impl Fn(&String) -> bool) -> Vec<String> {
    listing.lists.last().unwrap().iter().map(name_of).filter(is).collect()
}
