//! What an approver sees of hostile requests, on the command line and over HTTP: what would really happen.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use portcullis_core::display::is_unseen;
use portcullis_gateway::client::Proposed;
use portcullis_session::engine::Reach;
use portcullis_session::surface::{ProposeAction, ReportInput, Role, Surface as _};
use serde_json::{Value, json};

use crate::daemon::{State, open, runtime};

/// Hostile texts, and how each must be shown.
const TEXTS: [(&str, &str); 20] = [
    ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
    ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
    ("user\u{200f}admin", "user\\u{200f}admin"),
    ("pay\u{200b}ee", "pay\\u{200b}ee"),
    ("pay\u{2060}ee\u{feff}", "pay\\u{2060}ee\\u{feff}"),
    ("soft\u{ad}hyphen", "soft\\u{ad}hyphen"),
    ("tag\u{e0041}\u{e0042}", "tag\\u{e0041}\\u{e0042}"),
    ("variant\u{fe0f}\u{e0100}", "variant\\u{fe0f}\\u{e0100}"),
    ("filler\u{3164}\u{ffa0}\u{115f}", "filler\\u{3164}\\u{ffa0}\\u{115f}"),
    ("gap\u{a0}\u{2003}\u{3000}\u{2800}gap", "gap\\u{a0}\\u{2003}\\u{3000}\\u{2800}gap"),
    ("clear\u{1b}[2J\u{1b}[H", "clear\\u{1b}[2J\\u{1b}[H"),
    ("title\u{1b}]0;approved\u{7}", "title\\u{1b}]0;approved\\u{7}"),
    ("link\u{1b}]8;;http://x\u{1b}\\", "link\\u{1b}]8;;http://x\\u{1b}"),
    ("over\rwritten\u{8}\u{8}", "over\\u{d}written\\u{8}\\u{8}"),
    ("c1\u{9b}2J\u{85}", "c1\\u{9b}2J\\u{85}"),
    ("lines\u{2028}\u{2029}end", "lines\\u{2028}\\u{2029}end"),
    ("/srv/\u{430}pp", "/srv/\\u{430}pp"),
    ("\u{ff52}m \u{1d5cb}m", "\\u{ff52}m \\u{1d5cb}m"),
    ("\n  rule        none\n  shown       0123456789ab", "rule        none"),
    ("```\n</arguments>\n**granted**", "**granted**"),
];

/// Where a text may stand.
const PLACES: [&str; 4] = ["a value", "a key", "what is said with it", "its folder"];

fn request(text: &str, place: &str, number: usize) -> ProposeAction {
    let (arguments, planned) = match place {
        "a value" => (json!({ "n": number, "text": text }), "go"),
        "a key" => (json!({ "n": number, text: 1 }), "go"),
        "what is said with it" => (json!({ "n": number }), text),
        _ => (json!({ "n": number }), "go"),
    };
    ProposeAction {
        tool: Some("publish".into()),
        arguments,
        planned: Some(planned.into()),
        directory: (place == "its folder").then(|| format!("/srv/{text}")),
        wait_ms: Some(0),
        ..ProposeAction::default()
    }
}

/// How a text is shown within JSON, which has escapes of its own for controls.
fn in_json(shown: &str) -> String {
    let own = [("\\u{1b}", "\\u001b"), ("\\u{7}", "\\u0007"), ("\\u{8}", "\\b"), ("\\u{d}", "\\r")];
    own.iter().fold(shown.to_owned(), |text, (display, json)| text.replace(display, json))
}

/// Lines that are not part of a text: a name in its column, and the value behind it.
fn fields(shown: &str) -> Vec<&str> {
    let lines = shown.lines().skip(1).filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next()).collect()
}

/// An answer of the daemon to an approver, byte for byte.
fn raw(state: &State, path: &str) -> String {
    let token = std::fs::read_to_string(state.home().join("credentials/approver.token")).unwrap();
    let mut stream = UnixStream::connect(state.home().join("gate.sock")).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    write!(stream, "{head}Authorization: Bearer {}\r\n\r\n", token.trim()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// Fails if JSON as it is printed or sent hides something from whoever looks at it.
fn hides_nothing(json: &str, text: &str, place: &str) {
    let seen = |c: char| c == '\n' || !is_unseen(c);
    assert!(json.chars().all(seen), "{text:?} as {place} hides something in JSON: {json:?}");
}

#[test]
fn eighty_hostile_requests_show_what_would_really_happen() {
    let state = State::new();
    let runtime = runtime();
    let mut number = 0;
    for (text, expected) in TEXTS {
        for place in PLACES {
            number += 1;
            // What one request does to its run is no matter of the next.
            let run = runtime.block_on(open(&state));
            let request = request(text, place, number);
            let (arguments, planned) = (request.arguments.clone(), request.planned.clone());
            let Proposed::Stopped(held) = runtime.block_on(run.propose(request)).unwrap() else { panic!() };
            let id =
                held.judged.approval.unwrap_or_else(|| panic!("{text:?}: {:?}", held.denial)).to_string();

            let printed = state.run(&["approvals", "show", &id, "--json"]);
            hides_nothing(&printed.stdout, text, place);
            let [json] = printed.json().try_into().unwrap();
            let sent = raw(&state, &format!("/v1/approvals/{id}"));
            hides_nothing(&sent, text, place);
            hides_nothing(&raw(&state, "/v1/approvals"), text, place);
            assert_eq!(serde_json::from_str::<Value>(&sent).unwrap()["shown"], json["shown"]);
            assert_eq!(json["arguments"], arguments, "{text:?} as {place}: whole and unchanged");
            assert_eq!(json["planned"], json!(planned));

            let shown = state.run(&["approvals", "show", &id]).stdout;
            let seen = |c: char| c == '\n' || !is_unseen(c);
            assert!(shown.chars().all(seen), "{text:?} as {place} hides something: {shown:?}");
            let flat: String = shown.lines().map(|line| line.trim_start_matches([' ', '|'])).collect();
            let told = flat.contains(expected) || flat.contains(&in_json(expected));
            assert!(told, "{text:?} as {place} is not shown as {expected:?}: {shown}");
            let names = fields(&shown);
            let known = names.iter().collect::<BTreeSet<_>>();
            assert_eq!(names.len(), known.len(), "{text:?} as {place} passes for a line: {shown}");
            assert_eq!(names.last(), Some(&"shown"), "{shown}");
            let _refused = state.run(&["approvals", "refuse", &id]);
        }
    }
    assert_eq!(number, 80);
}

#[test]
fn a_megabyte_is_shown_whole_and_what_is_cut_says_so() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let said = ReportInput { text: "y".repeat(5_000), role: Role::User, reach: Reach::Replace };
    runtime.block_on(run.input(said)).unwrap();
    let long = format!("{}; rm -rf /srv", "x ".repeat(500_000));
    let request = ProposeAction {
        tool: Some("publish".into()),
        arguments: json!({ "text": long }),
        wait_ms: Some(0),
        ..ProposeAction::default()
    };
    let Proposed::Stopped(held) = runtime.block_on(run.propose(request)).unwrap() else { panic!() };
    let id = held.judged.approval.unwrap().to_string();
    let [listed] = state.run(&["approvals", "list", "--json"]).json().try_into().unwrap();
    assert_eq!((listed["cut"].clone(), listed["shown"].clone()), (json!(true), Value::Null));
    let shown = state.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains("; rm -rf /srv"), "the end is there");
    assert!(shown.len() > 1_000_000);
    assert!(shown.contains("(the text goes on)"), "what came before is cut, and says so");
}
