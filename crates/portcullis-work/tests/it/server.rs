//! A server of HTTP on loopback that answers as a script says, and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is answered: a status, headers, a body, and how long it takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Scripted {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
    pub(super) after: Duration,
}

/// A request: its target, and what it says of who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) target: String,
    pub(super) authorization: Option<String>,
}

pub(super) struct Server {
    port: u16,
    script: Arc<Mutex<BTreeMap<String, Scripted>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (script, asked) = (Arc::default(), Arc::default());
        let server = Self { port, script: Arc::clone(&script), asked: Arc::clone(&asked) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream.unwrap(), &script, &asked));
            }
        });
        server
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What is answered to a target, with its query, from now on.
    pub(super) fn says(&self, target: &str, status: u16, body: &str) {
        self.scripted(target, Scripted { status, body: body.to_owned(), ..Scripted::default() });
    }

    pub(super) fn scripted(&self, target: &str, scripted: Scripted) {
        self.script.lock().unwrap().insert(target.to_owned(), scripted);
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn answer(mut stream: TcpStream, script: &Mutex<BTreeMap<String, Scripted>>, asked: &Mutex<Vec<Asked>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let target = first.split(' ').nth(1).unwrap().to_owned();
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let authorization = head.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
    });
    asked.lock().unwrap().push(Asked { target: target.clone(), authorization });
    let nothing = Scripted { status: 404, body: "{}".to_owned(), ..Scripted::default() };
    let Scripted { status, headers, body, after } =
        script.lock().unwrap().get(&target).cloned().unwrap_or(nothing);
    std::thread::sleep(after);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    // Who gave up waiting does not read it.
    let _gone = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    );
}
