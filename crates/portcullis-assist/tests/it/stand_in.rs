//! A scripted stand-in for a language model: a server of chat completions on loopback that speaks real HTTP.
//!
//! It judges by a rule: a statement such as `The reply sounds calm.` holds where the reply has the word `calm`. What it
//! rewrites a reply to is a list given by the test, and so is how it misbehaves. It writes down every call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis_assist::{Client, Clock, Http, Key, Options, Timeouts, Transport, VirtualClock};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How one request is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// As the kind of question asks for: judged by the rule, or the next text of the list.
    Proper,
    /// A text, streamed.
    Text(&'static str),
    /// A text that the limit of tokens has cut.
    Cut(&'static str),
    /// A status, more headers, and a body.
    Status(u16, &'static str, String),
    /// Bytes of a stream, after which the connection is closed.
    Dies(&'static str),
    /// Nothing, ever.
    Silent,
    /// A byte of comment every 20 ms, for ever.
    Drips,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// `D` detection, `R` rewrite, `M` merge, `A` whether the reply still answers, `?` anything else.
    pub(crate) kind: char,
    pub(crate) headers: String,
    pub(crate) body: Value,
    /// What the user's message says.
    pub(crate) user: String,
}

#[derive(Debug, Default)]
struct Script {
    /// How the next requests are answered; properly when there are no more.
    answers: VecDeque<Answer>,
    /// Rewrites and merges, in order; the last one stays.
    rewrites: VecDeque<String>,
    /// What the post-check is told.
    still_answers: &'static str,
    calls: Vec<Call>,
}

#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) port: u16,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StandIn {
    pub(crate) async fn start(rewrites: &[&str]) -> Self {
        Self::scripted(rewrites, &[]).await
    }

    pub(crate) async fn scripted(rewrites: &[&str], answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(Script {
            answers: answers.iter().cloned().collect(),
            rewrites: rewrites.iter().map(|text| (*text).to_owned()).collect(),
            still_answers: "Yes",
            calls: Vec::new(),
        }));
        let shared = Arc::clone(&script);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { port, script, task }
    }

    pub(crate) fn still_answers(&self, said: &'static str) {
        self.script.lock().unwrap().still_answers = said;
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.script.lock().unwrap().calls.clone()
    }

    /// The kinds of all requests, in order.
    pub(crate) fn kinds(&self) -> String {
        self.calls().iter().map(|call| call.kind).collect()
    }

    pub(crate) fn http(&self, key: Option<Key>) -> Arc<dyn Transport> {
        self.http_with(key, Duration::from_secs(20))
    }

    /// A transport that waits for so long between pieces.
    pub(crate) fn http_with(&self, key: Option<Key>, idle: Duration) -> Arc<dyn Transport> {
        // Long enough for a machine that is busy with other tests.
        let long = Duration::from_secs(20);
        let timeouts = Timeouts { connect: long, idle, total: long };
        Arc::new(Http::new(&format!("http://127.0.0.1:{}/v1", self.port), key, timeouts).unwrap())
    }

    /// A client whose waits take no time.
    pub(crate) fn client(&self) -> (Client, Arc<VirtualClock>) {
        let clock = Arc::new(VirtualClock::new());
        let waits: Arc<dyn Clock> = Arc::<VirtualClock>::clone(&clock);
        (Client::new(Options::new("stand-in"), self.http(None), waits), clock)
    }
}

async fn serve(stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut stream = BufReader::new(stream);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        if stream.read_line(&mut headers).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let length = headers.to_lowercase();
    let length =
        length.split_once("content-length: ").and_then(|(_, rest)| rest.split_once("\r\n")).unwrap().0;
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let answer = answer(&headers, &body, &mut script.lock().unwrap());
    respond(stream.get_mut(), answer).await;
}

fn answer(headers: &str, body: &[u8], script: &mut Script) -> Answer {
    assert!(headers.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{headers}");
    let body: Value = serde_json::from_slice(body).unwrap();
    let said = |at: usize| body["messages"][at]["content"].as_str().unwrap_or_default().to_owned();
    let (system, user) = (said(0), said(1));
    let kind = match () {
        () if system.contains("keeps statements about it. The request")
            && system.starts_with("You check") =>
        {
            'D'
        }
        () if system.starts_with("You check whether a reply answers") => 'A',
        () if system.starts_with("You revise") && user.contains("Merge the revisions") => 'M',
        () if system.starts_with("You revise") => 'R',
        () => '?',
    };
    script.calls.push(Call { kind, headers: headers.to_owned(), body: body.clone(), user: user.clone() });
    match script.answers.pop_front().unwrap_or(Answer::Proper) {
        Answer::Proper => proper(kind, &user, script),
        answer => answer,
    }
}

fn proper(kind: char, user: &str, script: &mut Script) -> Answer {
    let text = match kind {
        'D' => judge(user),
        'A' => script.still_answers.to_owned(),
        'R' | 'M' => {
            let next = script.rewrites.pop_front().expect("the test's list of rewrites is too short");
            if script.rewrites.is_empty() {
                script.rewrites.push_back(next.clone());
            }
            format!("<revised>\n{next}\n</revised>")
        }
        _ => "Hello".to_owned(),
    };
    Answer::Status(200, "", stream(&text, "stop"))
}

/// Judges by the last word of each statement.
fn judge(user: &str) -> String {
    let tag = user.lines().find(|line| line.starts_with("<reply")).unwrap();
    let (_, rest) = user.split_once(&format!("{tag}\n")).unwrap();
    let (reply, rest) = rest.split_once(&format!("\n</{}", tag.trim_start_matches('<'))).unwrap();
    let holds = |statement: &str| {
        let word = statement.trim_end_matches(['"', '.']).rsplit(' ').next().unwrap();
        if reply.contains(word) { "Yes" } else { "No" }
    };
    let statements: Vec<&str> = rest.lines().filter(|line| line.ends_with(".\"")).collect();
    if rest.contains("\nStatement:\n") {
        return json!({"explanation": "by rule", "answer": holds(statements[0])}).to_string();
    }
    let row = |(at, statement): (usize, &&str)| json!({"n": at + 1, "explanation": "by rule", "answer": holds(statement)});
    json!({"answers": statements.iter().enumerate().map(row).collect::<Vec<_>>()}).to_string()
}

/// A text as a stream, a few characters an event.
fn stream(text: &str, finish: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut events: Vec<Value> =
        characters.chunks(9).map(|piece| json!({"delta": {"content": String::from_iter(piece)}})).collect();
    events.push(json!({"delta": {}, "finish_reason": finish}));
    let mut body = String::new();
    for event in events {
        body.push_str(&format!("data: {}\n\n", json!({"choices": [event]})));
    }
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
    body + &format!("data: {usage}\n\ndata: [DONE]\n\n")
}

async fn respond(stream: &mut TcpStream, answer: Answer) {
    let head = |status: u16, more: &str, length: usize| {
        let kind = if status == 200 && !more.contains("content-type") {
            "text/event-stream"
        } else {
            "application/json"
        };
        let kind =
            if more.contains("content-type") { String::new() } else { format!("content-type: {kind}\r\n") };
        format!("HTTP/1.1 {status} x\r\n{kind}{more}content-length: {length}\r\n\r\n")
    };
    let (text, then) = match answer {
        Answer::Proper => return,
        Answer::Text(text) => (stream_response(&head, text, "stop"), None),
        Answer::Cut(text) => (stream_response(&head, text, "length"), None),
        Answer::Status(status, more, body) => (head(status, more, body.len()) + &body, None),
        Answer::Dies(part) => (head(200, "", 100_000) + part, None),
        Answer::Silent => (String::new(), Some("")),
        Answer::Drips => (head(200, "", 100_000), Some(":")),
    };
    // A client may have gone before the end.
    let _ = stream.write_all(text.as_bytes()).await;
    while let Some(drip) = then {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if stream.write_all(drip.as_bytes()).await.is_err() {
            break;
        }
    }
}

fn stream_response(head: &dyn Fn(u16, &str, usize) -> String, text: &str, finish: &str) -> String {
    let body = stream(text, finish);
    head(200, "", body.len()) + &body
}
