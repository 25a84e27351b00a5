//! A stand-in for a language model: a server of chat completions on loopback that answers by rule.
//!
//! It judges a statement that the reply *thanks* somebody by whether the reply has the word, and rewrites by a list that
//! the test gives. Guard programs it copies from `examples/guardagent`, with a mistake in the first one where the input is
//! about an animal. So it shows what the program does with a model, and nothing about models.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Rewrites in order; the last one stays.
type Rewrites = Arc<Mutex<Vec<String>>>;

/// A server that lives as long as the test.
pub(crate) struct StandIn {
    pub(crate) port: u16,
    /// The kinds of the questions, in order: `D` detection, `R` rewrite, `M` merge, `A` whether the reply still answers, `P`
    /// a plan, `C` a program, `X` one that failed, `O` an opinion, `S` a sentence to restate, `H` a task under rules.
    asked: Arc<Mutex<String>>,
    /// Bytes of the longest question.
    longest: Arc<AtomicUsize>,
}

impl StandIn {
    pub(crate) fn start(rewrites: &[&str]) -> Self {
        Self::answering(rewrites, false)
    }

    /// Answers questions for programs by a list, one after the other.
    pub(crate) fn writing(programs: &[&str]) -> Self {
        Self::answering(programs, true)
    }

    fn answering(rewrites: &[&str], writes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rewrites: Vec<String> = rewrites.iter().rev().map(|text| (*text).to_owned()).collect();
        let (rewrites, asked): (Rewrites, _) =
            (Arc::new(Mutex::new(rewrites)), Arc::<Mutex<String>>::default());
        let longest = Arc::<AtomicUsize>::default();
        let (shared, most) = (Arc::clone(&asked), Arc::clone(&longest));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bytes = answer(stream, (&rewrites, writes), &shared);
                most.fetch_max(bytes, Ordering::Relaxed);
            }
        });
        Self { port, asked, longest }
    }

    /// What `--model` takes.
    pub(crate) fn model(&self) -> String {
        format!("http://127.0.0.1:{}/v1/stand-in", self.port)
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }

    pub(crate) fn asked(&self) -> String {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers one question; its length.
fn answer(stream: TcpStream, (rewrites, writes): (&Rewrites, bool), asked: &Mutex<String>) -> usize {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return 0;
        }
        if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
            length = bytes.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let said = |at: usize| body["messages"][at]["content"].as_str().unwrap().to_owned();
    let (system, user) = (said(0), said(1));
    let kind = match &*system {
        system if system.starts_with("You check whether a reply keeps") => 'D',
        system if system.starts_with("You check whether a reply answers") => 'A',
        system if system.starts_with("You plan how a guard") => 'P',
        system if system.starts_with("You write programs") && user.contains("</error>") => 'X',
        system if system.starts_with("You write programs") => 'C',
        system if system.starts_with("You restate a sentence") => 'S',
        system if system.starts_with("You judge whether what an agent") => 'O',
        system if system.contains("Rules that you keep:") => 'H',
        _ if user.contains("Merge the revisions") => 'M',
        _ => 'R',
    };
    asked.lock().unwrap().push(kind);
    let text = match kind {
        'D' => judged(&user),
        'A' => json!({"explanation": "It names what is served.", "answer": "Yes"}).to_string(),
        'P' => "1. The requests are short.\n2. All of them matter.\n3. The log is short.\n4. Compare them."
            .to_owned(),
        'S' => next(rewrites),
        'C' | 'X' if writes => next(rewrites),
        'C' | 'X' => program(&user, kind == 'X'),
        'O' => json!({"explanation": "It sees nothing.", "violated": [], "answer": "allow"}).to_string(),
        'H' => "B".to_owned(),
        _ => format!("<revised>\n{}\n</revised>", next(rewrites)),
    };
    let events = [
        json!({"choices": [{"delta": {"content": text}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 200, "completion_tokens": 30}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let body = body + "data: [DONE]\n\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // A client may have gone.
    let _gone = reader.get_mut().write_all((head + &body).as_bytes());
    length
}

fn next(rewrites: &Rewrites) -> String {
    let mut rewrites = rewrites.lock().unwrap();
    if rewrites.len() > 1 { rewrites.pop().unwrap() } else { rewrites[0].clone() }
}

/// Thanks are thanks; of anything else it says no.
fn judged(user: &str) -> String {
    let (reply, statements) = user.split_once("\n</reply>").unwrap();
    let (_, reply) = reply.rsplit_once("<reply>\n").unwrap();
    let row = |at: usize, statement: &str| {
        let holds = statement.contains("thanks") && reply.contains("Thank");
        let explanation = if holds { "The reply says thank you." } else { "The reply thanks nobody." };
        json!({"n": at + 1, "explanation": explanation, "answer": if holds { "Yes" } else { "No" }})
    };
    let mut statements = statements.lines().filter(|line| line.ends_with('"'));
    if user.contains("\nStatement:\n") {
        return row(0, statements.next_back().unwrap()).to_string();
    }
    json!({"answers": statements.enumerate().map(|(at, line)| row(at, line)).collect::<Vec<_>>()}).to_string()
}

/// A program of the examples; what the case at hand stands for is below the demonstrations.
fn program(user: &str, again: bool) -> String {
    let file = match user {
        user if user.contains("rule 1: when two") => "csqa",
        _ => "eicu-ac",
    };
    let path = crate::command::project().join("examples/guardagent").join(file).join("program.star");
    let mut program = std::fs::read_to_string(path).unwrap();
    let (_, case) = user.rsplit_once("<input>").unwrap();
    let (case, _) = case.split_once("</output-log>").unwrap();
    if !again && ["dog", "cat", "fish", "cost"].iter().any(|word| case.contains(word)) {
        program = program
            .replace("    if broken:", "    if len(brokn):")
            .replace("    if denied:", "    if len(denid):");
    }
    if !user.contains("`words(text)`") {
        program.push_str("\ndef words(text):\n    return text.lower().replace(\"?\", \"\").split(\" \")\n");
    }
    format!("<program>\n{program}</program>")
}
