//! The same actions through every surface: the same verdicts, for the same reasons.
//!
//! `parity/actions.jsonl` has one action a line: the tool and the arguments in the words of bundles, the verdict, and the rule
//! that decides; of some also what the tool answers, and what is made of that. Other lines are what servers list. How each
//! agent would say it is written here a second time, independently of the adapters. What a surface cannot express is
//! counted, with the reason.

mod far;
mod hostile;
mod table;
mod through;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use portcullis_core::verdict::Verdict;
use portcullis_session::{policy, shipped};
use portcullis_sim::replay::{self, Item, Options, Source};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::daemon::Daemon;
use table::{Action, Listing, Row, beside, rows};
use through::{Judged, LISTS_MAX, Mcp, Through, list_line, result_line};

const PROJECT: &str = "/home/dev/shop";
const HOME: &str = "/home/dev";
const AGENTS: [&str; 14] = [
    "claude-code",
    "gemini-cli",
    "codex",
    "cursor",
    "copilot-cli",
    "opencode",
    "qwen-code",
    "droid",
    "kimi-code",
    "crush",
    "pi",
    "windsurf",
    "kiro",
    "cline",
];
/// Fewest rows of the table.
const ROWS_MIN: usize = 200;
/// How many rows are on their way at a time.
const AT_ONCE: usize = 24;

/// The shipped bundle of a developer's machine, which answers what is held at once, with tools of servers.
fn bundle(far: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = shipped::developer_bundle();
    let mut change = |name: &str, changes: &[(&str, &str)]| {
        let file = files.get_mut(name).unwrap();
        let mut text = String::from_utf8(file.clone()).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{name} has no {from}");
            text = text.replacen(from, to, 1);
        }
        *file = text.into_bytes();
    };
    // `check` has no surface that would name the folders.
    let folders = format!("[effects]\nworkspace = \"{PROJECT}\"\nhome = \"{HOME}\"");
    let servers =
        ["json", "events"].map(|name| format!("[server.{name}]\nurl = \"{far}/{name}\"\n")).concat();
    let servers = format!("{servers}\n[access]");
    change(
        "portcullis.toml",
        &[("approval_wait_s = 20", "approval_wait_s = 0"), ("[effects]", &folders), ("[access]", &servers)],
    );
    change("policies/developer.toml", &[("\"PLAN\"]", "\"PLAN\", \"QUERY_DB\", \"SEND_EMAIL\", \"PAY\"]")]);
    files.insert("tools/servers.toml".into(), fs::read(beside("servers.toml")).unwrap());
    files.insert("access/servers.cedar".into(), fs::read(beside("servers.cedar")).unwrap());
    files
}

/// Writes a bundle into a folder.
fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// What `portcullis check` makes of a record of these actions, one a run: the verdict and the rule that decides.
fn checked(files: &BTreeMap<String, Vec<u8>>, actions: &[&Action]) -> Vec<(Verdict, Option<String>)> {
    let record = |action: &&Action| {
        let arguments = action.arguments.to_string();
        let call =
            json!({"id": "c", "type": "function", "function": {"name": action.tool, "arguments": arguments}});
        json!({"messages": [{"role": "user", "content": action.user.as_deref().unwrap_or("Go on.")}, {"role": "assistant", "content": null, "tool_calls": [call]}]})
            .to_string()
    };
    let text: Vec<String> = actions.iter().map(record).collect();
    let source = Source::stream(text.join("\n").as_bytes()).unwrap();
    let bundle = Arc::new(policy::load(files).unwrap());
    let options = Options { policy: None, strict_tools: true };
    let mut found = Vec::new();
    replay::replay(&source, &bundle, &Arc::new(policy::pipeline()), &options, &mut |item| {
        if let Item::Decision(row) = item {
            found.push((row.verdict, row.rule.clone()));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// What the scripted server answers to a request of a row.
fn answer_of(rows: &[Row], wanted: u64, request: &Value) -> String {
    let (id, wanted) = (&request["id"], usize::try_from(wanted).unwrap());
    if request["method"] == "tools/list" {
        let Some(Row::Listing(listing)) = rows.get(wanted / LISTS_MAX) else { return list_line(id, &[]) };
        return list_line(id, &listing.lists[wanted % LISTS_MAX]);
    }
    match rows.get(wanted) {
        Some(Row::Action(action)) => result_line(id, action.result.as_deref().unwrap_or_default()),
        _ => result_line(id, ""),
    }
}

/// What differs, and how often each surface was asked.
#[derive(Debug, Default)]
struct Report {
    wrong: Vec<String>,
    asked: BTreeMap<String, usize>,
    /// What a surface cannot express.
    left_out: BTreeMap<String, usize>,
}

impl Report {
    fn asked(&mut self, surface: &str) {
        *self.asked.entry(surface.to_owned()).or_default() += 1;
    }

    fn left_out(&mut self, surface: &str, why: &str) {
        *self.left_out.entry(format!("{surface}: {why}")).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.wrong.extend(other.wrong);
        for (to, from) in [(&mut self.asked, other.asked), (&mut self.left_out, other.left_out)] {
            from.into_iter().for_each(|(key, number)| *to.entry(key).or_default() += number);
        }
    }
}

/// The ways to an MCP server of which a row takes some: all of them, but one kind of answer of each.
fn ways(number: usize) -> [(&'static str, Mcp); 3] {
    match number % 2 {
        0 => [("mcp stdio", Mcp::Stdio), ("mcp --url", Mcp::Url), ("/mcp", Mcp::EndpointEvents)],
        _ => [("mcp stdio", Mcp::Stdio), ("mcp --url", Mcp::UrlEvents), ("/mcp", Mcp::Endpoint)],
    }
}

async fn act(
    through: &Through,
    number: usize,
    action: &Action,
    checked: &(Verdict, Option<String>),
) -> Report {
    let (mut report, words) =
        (Report::default(), format!("row {number} {} {}", action.tool, action.arguments));
    report.asked("check");
    if (action.verdict, &action.rule) != (checked.0, &checked.1) {
        report.wrong.push(format!("check: {words}: {} {:?}", checked.0.as_str(), checked.1));
    }
    if action.result.is_some() {
        report.left_out("check", "it judges calls, and what results say only by the calls after them");
    }
    report.asked("/v1");
    let v1 = through.v1(number, action).await;
    let told = |verdicts: &[Judged]| verdicts.iter().map(|judged| judged.verdict).collect::<Vec<_>>();
    let expected: Vec<Verdict> = [Some(action.verdict), action.seen].into_iter().flatten().collect();
    let rule = v1.get(1).and_then(|seen| seen.findings.first()?.split([' ', ':']).nth(1).map(str::to_owned));
    if told(&v1) != expected || rule != action.seen_rule {
        report.wrong.push(format!("/v1: {words}: {v1:?}"));
    }
    for agent in AGENTS {
        match words::theirs(agent, action) {
            Err(why) => report.left_out(agent, why),
            Ok(call) => {
                report.asked(agent);
                let hook = through.hook(agent, number, action, &call).await;
                if hook != v1 {
                    report.wrong.push(format!("{agent}: {words}: {hook:?}, not {v1:?}"));
                }
            }
        }
    }
    for (name, way) in ways(number) {
        report.asked(name);
        let mcp = through.mcp(way, number, action).await;
        if mcp != v1 {
            report.wrong.push(format!("{way:?}: {words}: {mcp:?}, not {v1:?}"));
        }
    }
    report
}

async fn list(through: &Through, number: usize, listing: &Listing) -> Report {
    let mut report = Report::default();
    report.left_out("check", "a record of calls has no lists of servers");
    for agent in AGENTS {
        report.left_out(agent, "hooks are not told of lists");
    }
    report.asked("/v1");
    let mut hidden = vec![("/v1", through.v1_hides(number, listing).await)];
    for (name, way) in ways(number) {
        report.asked(name);
        hidden.push((name, through.mcp_hides(way, number, listing).await));
    }
    for (surface, hidden) in hidden.into_iter().filter(|(_, hidden)| *hidden != listing.hidden) {
        report.wrong.push(format!("{surface}: row {number}, {}: hidden {hidden:?}", listing.what));
    }
    report
}

async fn start(files: impl FnOnce(&str) -> BTreeMap<String, Vec<u8>>, answers: far::Answers) -> Through {
    let far = far::serve(answers).await;
    let files = files(&far);
    let daemon = Daemon::start_with_bundle(|bundle| {
        fs::remove_dir_all(bundle).unwrap();
        write(bundle, &files);
    })
    .await;
    let bundle = daemon.bundle().to_str().unwrap().to_owned();
    Through { daemon, bundle, far }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_judges_the_same_action_alike() {
    let rows: Arc<Vec<Row>> = Arc::new(rows());
    assert!(rows.len() >= ROWS_MIN, "{}", rows.len());
    let actions: Vec<&Action> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Action(action) => Some(action),
            Row::Listing(_) => None,
        })
        .collect();
    let ordinary =
        actions.iter().filter(|action| action.verdict == Verdict::Allow && action.seen.is_none()).count();
    assert!(2 * ordinary >= actions.len(), "{ordinary} of {} are ordinary work", actions.len());
    let (served, mut checked) = (Arc::clone(&rows), Vec::new());
    let files = |far: &str| {
        let files = bundle(far);
        checked = self::checked(&files, &actions);
        files
    };
    let through =
        start(files, Arc::new(move |wanted, request| vec![answer_of(&served, wanted, request).into_bytes()]))
            .await;
    let through = Arc::new(through);
    assert_eq!(checked.len(), actions.len());
    let (mut tasks, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut checked = checked.into_iter();
    for number in 0..rows.len() {
        let (rows, through, places) = (Arc::clone(&rows), Arc::clone(&through), Arc::clone(&places));
        let checked = if matches!(rows[number], Row::Action(_)) { checked.next() } else { None };
        tasks.spawn(async move {
            let _place = places.acquire().await.unwrap();
            match (&rows[number], checked) {
                (Row::Action(action), Some(checked)) => act(&through, number, action, &checked).await,
                (Row::Listing(listing), _) => list(&through, number, listing).await,
                (Row::Action(action), None) => panic!("`check` says nothing of {}", action.tool),
            }
        });
    }
    let mut report = Report::default();
    while let Some(done) = tasks.join_next().await {
        report.add(done.unwrap());
    }
    assert!(report.wrong.is_empty(), "{} differ:\n{}", report.wrong.len(), report.wrong.join("\n"));
    println!("{} rows; asked {:#?}\nleft out {:#?}", rows.len(), report.asked, report.left_out);
    // A surface that is asked nothing would agree with everything.
    let asked = |surface: &str| report.asked.get(surface).copied().unwrap_or_default();
    let left_out = |surface: &str| {
        let of = report.left_out.iter().filter(|(key, _)| key.starts_with(&format!("{surface}: ")));
        of.map(|(_, number)| number).sum::<usize>()
    };
    for surface in ["/v1", "mcp stdio", "mcp --url", "/mcp"] {
        assert_eq!(asked(surface), rows.len(), "{surface}");
    }
    for agent in AGENTS {
        assert_eq!(asked(agent) + left_out(agent), rows.len(), "{agent}");
        assert!(asked(agent) >= 60, "{agent}");
    }
}
