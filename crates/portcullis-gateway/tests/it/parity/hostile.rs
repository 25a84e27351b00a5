//! Hostile servers: what they answer has the same outcome over standard output, as JSON over HTTP, on a stream of events,
//! and behind `/mcp` of the daemon.
//!
//! `hostile.jsonl` has one attack a line, with `ID` for the id of the request and `TOOL` for a tool of its own. Where more
//! than one message can be sent, an honest answer follows: where the attack is dropped, the client gets that one. An HTTP
//! answer that is one body has no room for a second message, so the client gets an error of the gate's instead.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::far::{Answers, WANTED};
use super::table::beside;
use super::through::{Judged, Mcp, Through, call_of, result_line};
use super::{AT_ONCE, start};

/// What nobody may be shown.
const MARK: &str = "eve@evil.example";
const HONEST: &str = "nothing to see";
/// What is no attack, and what is in it.
const CONTROL: &str = "no attack";
const HARMLESS: &str = "is from seven to ten";
const USER: &str = "When is breakfast in our hotel?";
const WAYS: [Mcp; 5] = [Mcp::Stdio, Mcp::Url, Mcp::UrlEvents, Mcp::Endpoint, Mcp::EndpointEvents];
/// Fewest attacks.
const ATTACKS_MIN: usize = 80;
/// Most requests of an attack.
const REQUESTS_MAX: usize = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attack {
    what: String,
    /// The request; a call of a tool, if it is none.
    method: Option<String>,
    params: Option<Value>,
    /// What is answered.
    line: Option<String>,
    /// Entries of a list of tools that is asked for time after time, before the tool is called.
    lists: Option<Vec<String>>,
}

fn tool(number: usize) -> String {
    format!("read_page_{number}")
}

impl Attack {
    fn requests(&self, number: usize) -> Vec<Value> {
        let request = |index: usize, method: &str, params: &Value| {
            let mut params = params.clone();
            params["_meta"][WANTED] = (number * REQUESTS_MAX + index).into();
            json!({"jsonrpc": "2.0", "id": index + 1, "method": method, "params": params})
        };
        let call = |index: usize| {
            let mut call = call_of(&tool(number), &json!({}), number * REQUESTS_MAX + index);
            call["id"] = (index + 1).into();
            call
        };
        match (&self.lists, &self.method) {
            (Some(lists), _) => {
                let lists = (0..lists.len()).map(|index| request(index, "tools/list", &json!({})));
                let mut requests: Vec<Value> = lists.collect();
                requests.push(call(requests.len()));
                requests
            }
            (None, Some(method)) => vec![request(0, method, self.params.as_ref().unwrap())],
            (None, None) => vec![call(0)],
        }
    }

    /// The messages that answer one of its requests.
    fn answers(&self, number: usize, index: usize, id: &Value) -> Vec<Vec<u8>> {
        let line = match (&self.lists, &self.line) {
            (Some(lists), _) => match lists.get(index) {
                Some(entries) if entries.starts_with('"') => {
                    format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"tools":{entries}}}}}"#)
                }
                Some(entries) => format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"tools":[{entries}]}}}}"#),
                None => return vec![result_line(id, HONEST).into_bytes()],
            },
            (None, line) => line.clone().unwrap(),
        };
        let line = line.replace("TOOL", &tool(number)).replace("ID", &id.to_string());
        let parts: Vec<&[u8]> = line.split("<FF>").map(str::as_bytes).collect();
        vec![parts.join(&0xff), result_line(id, HONEST).into_bytes()]
    }
}

/// A bundle that lets everything pass but what servers do wrong.
fn bundle(far: &str, attacks: usize) -> BTreeMap<String, Vec<u8>> {
    let servers =
        ["json", "events"].map(|name| format!("[server.{name}]\nurl = \"{far}/{name}\"\n")).concat();
    let main = format!(
        "version = 1\napproval_wait_s = 0\npolicy = \"P\"\n[loops]\nalike = 0\ndenials = 0\n{servers}"
    );
    let policy = "[[policy]]\nname = 'P'\nallowed_types = ['WEB_FETCH', 'SEND_EMAIL']\nmax_steps = 1000\nmax_side_effects = 1000\n";
    let tool = |id: &str, kind: &str, description: &str| {
        format!(
            "[[tool]]\nid = '{id}'\nname = '{id}'\ntype = '{kind}'\ndescription = '{description}'\nrisk = 0.1\n\
             side_effecting = {}\nenabled = true\nargs = {{ type = 'object' }}\n",
            kind == "SEND_EMAIL"
        )
    };
    // Orders are cut out where there is a tool that could carry them out.
    let tools = (0..attacks).map(|number| tool(&self::tool(number), "WEB_FETCH", "Reads a web page."));
    let tools: String = tools.chain([tool("send_mail", "SEND_EMAIL", "Sends a mail.")]).collect();
    let files = [("portcullis.toml", main), ("policies/p.toml", policy.into()), ("tools/t.toml", tools)];
    files.map(|(name, text)| (name.to_owned(), text.into_bytes())).into()
}

/// What became of an attack: what the client was told, without the ids, and what was judged.
#[derive(Debug, PartialEq, Eq)]
struct Became {
    told: Vec<String>,
    judged: Vec<Judged>,
}

impl Became {
    /// The attack was dropped, and nothing else came.
    fn is_dropped(&self) -> bool {
        let last = self.told.last().unwrap();
        last.contains(HONEST) || last.contains("server_failed")
    }

    fn is_like(&self, other: &Self) -> bool {
        self == other || (self.is_dropped() && other.is_dropped() && self.judged == other.judged)
    }
}

async fn attack(through: &Through, way: Mcp, number: usize, attack: &Attack) -> Became {
    let requests = attack.requests(number);
    let answer =
        |(index, request): (usize, &Value)| attack.answers(number, index, &request["id"]).join(&b'\n');
    let lines: Vec<Vec<u8>> = requests.iter().enumerate().map(answer).collect();
    let session = format!("{way:?}-{number}");
    let (run, answers) = through.converse(way, &session, Some(USER), requests, &lines).await;
    let told = answers.iter().zip(1..).map(|(answer, id)| without_ids(answer, id));
    Became { told: told.collect(), judged: through.verdicts(run).await }
}

/// What an answer says: the gate's own by its rule and message, because ids and the forms of the two generations differ; any
/// other as it is, but for its id.
fn without_ids(answer: &str, id: u32) -> String {
    let Ok(mut parsed) = serde_json::from_str::<Value>(answer) else {
        return answer.replacen(&format!("\"id\":{id},"), "", 1);
    };
    let result = &parsed["result"];
    for denial in [&result["structuredContent"], &result["_meta"]["portcullis/held"]] {
        if let (Some(rule), Some(message)) = (denial["rule"].as_str(), denial["message"].as_str()) {
            // Ids differ in length, and with them the places of mistakes.
            let message = message.split_once(" at line ").map_or(message, |(message, _)| message);
            return format!("stopped by {rule}: {message}");
        }
    }
    parsed.as_object_mut().and_then(|answer| answer.remove("id"));
    parsed.to_string()
}

fn attacks() -> Vec<Attack> {
    let text = fs::read_to_string(beside("hostile.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_server_achieves_no_more_over_http() {
    let attacks = Arc::new(attacks());
    let number = attacks.len();
    assert!(number >= ATTACKS_MIN, "{number}");
    let served = Arc::clone(&attacks);
    let answers: Answers = Arc::new(move |wanted, request| {
        let (row, index) = (
            usize::try_from(wanted).unwrap() / REQUESTS_MAX,
            usize::try_from(wanted).unwrap() % REQUESTS_MAX,
        );
        served[row].answers(row, index, &request["id"])
    });
    let through = Arc::new(start(|far| bundle(far, number), answers).await);
    let (mut tasks, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for number in 0..attacks.len() {
        let (attacks, through, places) = (Arc::clone(&attacks), Arc::clone(&through), Arc::clone(&places));
        tasks.spawn(async move {
            let _place = places.acquire().await.unwrap();
            let mut became = Vec::new();
            for way in WAYS {
                became.push(attack(&through, way, number, &attacks[number]).await);
            }
            (number, became)
        });
    }
    let mut wrong = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (number, became) = done.unwrap();
        let what = &attacks[number].what;
        let (first, others) = became.split_first().unwrap();
        let (told, is_control) = (first.told.concat(), what == CONTROL);
        if told.contains(MARK) || told.contains(HARMLESS) != is_control {
            wrong.push(format!("{what}: the client is shown {told}"));
        }
        for (way, other) in WAYS[1..].iter().zip(others).filter(|(_, other)| !other.is_like(first)) {
            wrong.push(format!("{what}: {way:?}: {other:?}\n    not {first:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{number} attacks by {} ways: nothing of them is shown", WAYS.len());
}
