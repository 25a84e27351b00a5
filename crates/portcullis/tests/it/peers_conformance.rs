//! The MCP conformance suite, with and without the gate: the results are the same, check by check, but for the committed
//! list `peers/conformance.json`, which says why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::peers::{Stage, shown};
use crate::peers_remote::{Served, endpoint, open};

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
/// For one scenario; some machines have more to do than this.
const SCENARIO_MS: &str = "60000";
/// What the suite writes behind a scenario's name: `-2026-11-29T07-08-02-318Z`.
const STAMP_BYTES: usize = 25;

/// The types of tools that `portcullis init` infers for the suite's.
const TYPES: [&str; 4] = ["RETRIEVE_DOCS", "QUERY_DB", "MODIFY", "OTHER"];

/// The worst status of each check, by scenario and check. What only informs is left out.
type Results = BTreeMap<(String, String), Status>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Info,
    Success,
    Skipped,
    Warning,
    Failure,
}

#[derive(Debug, Deserialize)]
struct Check {
    id: String,
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[expect(dead_code, reason = "for readers")]
    about: String,
    /// Scenarios that fail without the gate.
    alone: Vec<Alone>,
    differences: Vec<Difference>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alone {
    leg: String,
    revisions: Vec<String>,
    scenarios: Vec<String>,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    leg: String,
    ways: Vec<String>,
    revisions: Vec<String>,
    scenario: String,
    /// `*`: any of the scenario.
    check: String,
    /// The statuses; absent where no check has this id, or one differs from the other for `*`.
    alone: Option<Status>,
    gated: Option<Status>,
    reason: String,
}

fn list(stage: &Stage) -> List {
    let text = std::fs::read_to_string(stage.script("conformance.json")).unwrap();
    let list: List = serde_json::from_str(&text).unwrap();
    let reasons =
        list.alone.iter().map(|one| &one.reason).chain(list.differences.iter().map(|one| &one.reason));
    assert!(reasons.into_iter().all(|reason| reason.len() > 20), "a reason is missing");
    list
}

/// Runs what a revision requires of one side, and reads what came of it.
fn run(stage: &Stage, leg: &str, revision: &str, more: &[&str], variables: &[(&str, &str)]) -> Results {
    let place = tempfile::tempdir_in(stage.path("")).unwrap();
    let mut suite = stage.node();
    suite.arg(stage.npm(SUITE)).args([leg, "--requirements", revision, "--timeout", SCENARIO_MS]);
    suite.arg("-o").arg(place.path()).args(more).envs(variables.iter().copied());
    // Its status says whether all scenarios passed, which the list knows better.
    let output = suite.output().unwrap();
    let mut results = Results::new();
    read(place.path(), "", &mut results);
    assert!(!results.is_empty(), "{}", shown(&output));
    results
}

/// Reads the checks below a folder. Names of scenarios can have folders too.
fn read(folder: &Path, above: &str, results: &mut Results) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{above}{}", path.file_name().unwrap().to_str().unwrap());
        if let Ok(text) = std::fs::read_to_string(path.join("checks.json")) {
            let scenario = name.get(..name.len() - STAMP_BYTES).unwrap().to_owned();
            let checks: Vec<Check> = serde_json::from_str(&text).unwrap();
            for check in checks.into_iter().filter(|check| check.status != Status::Info) {
                let worst = results.entry((scenario.clone(), check.id)).or_insert(check.status);
                *worst = check.status.max(*worst);
            }
        } else if path.is_dir() {
            read(&path, &format!("{name}/"), results);
        }
    }
}

/// What is wrong with the results of the implementations by themselves: the list says which scenarios fail.
fn alone_as_listed(list: &List, leg: &str, revision: &str, alone: &Results) -> Vec<String> {
    let failing: BTreeSet<&str> = alone
        .iter()
        .filter(|(_, status)| matches!(status, Status::Warning | Status::Failure))
        .map(|((scenario, _), _)| scenario.as_str())
        .collect();
    let entries =
        list.alone.iter().filter(|one| one.leg == leg && one.revisions.iter().any(|r| r == revision));
    let listed: BTreeSet<&str> = entries.flat_map(|one| one.scenarios.iter().map(String::as_str)).collect();
    failing.symmetric_difference(&listed).map(|scenario| format!("alone: {scenario}")).collect()
}

/// What differs with the gate and is not on the list, or the other way round.
fn gated_as_listed(list: &List, way: (&str, &str, &str), alone: &Results, gated: &Results) -> Vec<String> {
    let (leg, way, revision) = way;
    let listed = list.differences.iter().filter(|one| {
        one.leg == leg && one.ways.iter().any(|w| w == way) && one.revisions.iter().any(|r| r == revision)
    });
    let listed: Vec<&Difference> = listed.collect();
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    let all: BTreeSet<_> = alone.keys().chain(gated.keys()).collect();
    for key in all {
        let (before, after) = (alone.get(key).copied(), gated.get(key).copied());
        if before == after {
            continue;
        }
        let at = listed.iter().position(|one| {
            one.scenario == key.0
                && (one.check == "*" || (one.check == key.1 && (one.alone, one.gated) == (before, after)))
        });
        match at {
            Some(at) => drop(used.insert(at)),
            None => wrong.push(format!("{way}: {} {}: {before:?} alone, {after:?} gated", key.0, key.1)),
        }
    }
    let unused = listed.iter().enumerate().filter(|(at, _)| !used.contains(at));
    wrong.extend(
        unused.map(|(_, one)| format!("{way}: {} {}: listed, but the same", one.scenario, one.check)),
    );
    wrong
}

fn assert_as_listed(revision: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{revision}: not as in peers/conformance.json:\n{}", wrong.join("\n"));
}

/// The gate in front of the suite's server, as an address: as `/mcp` of a daemon, which only observes or enforces, or as
/// `mcp --url`.
fn gated(stage: &Stage, way: &str, server: &Served) -> Vec<Served> {
    if way == "stdio" {
        let gate = stage.governed("mcp", "open", &["--url", &server.url]);
        let gate: Vec<&str> = gate.iter().map(String::as_str).collect();
        return vec![Served::script(stage, "over-stdio.mjs", &gate)];
    }
    let daemon = endpoint(stage, server);
    let token = stage.path("home/credentials/agent.token").display().to_string();
    let proxy = Served::script(stage, "with-token.mjs", &[&token, &daemon.url]);
    vec![daemon, proxy]
}

/// A stage for one way. The one that enforces has the server's tools in its registry, as `portcullis init` drafts them, and
/// a policy that allows their types.
fn stage_for(way: &str, server: &Served) -> Option<Stage> {
    let stage = Stage::set("everything")?;
    open(&stage);
    if way == "enforced" {
        let mut init = stage.portcullis(&["init", "--add", "-o"]);
        let drafted = init.arg(stage.bundle()).arg("--").args(stage.bridge(&[&server.url])).output().unwrap();
        assert!(drafted.status.success(), "{}", shown(&drafted));
        stage.set_main("mode = \"enforce\"");
        stage.set_main("unknown_tools = \"allow\"");
        // Nobody decides here.
        stage.set_main("approval_wait_s = 1");
        let policy = format!(
            "[[policy]]\nname = 'open'\nallowed_types = {TYPES:?}\nmax_steps = 1000\nmax_side_effects = 1000\n"
        );
        stage.add("policies/open.toml", &policy);
    }
    Some(stage)
}

/// The suite as the client of a server, which it calls directly, and through the gate.
fn servers(ways: &[&str]) {
    let Some(stage) = Stage::set("everything") else { return };
    let list = list(&stage);
    let server = Served::script(&stage, "conformance-server.mjs", &[]);
    let run = |revision: &str, url: &str| -> Results {
        let named = |scenario: String| scenario.strip_prefix("server-").unwrap().to_owned();
        let results = run(&stage, "server", revision, &["--url", url], &[]);
        results.into_iter().map(|((scenario, id), status)| ((named(scenario), id), status)).collect()
    };
    let gates: Vec<(&str, Stage, Vec<Served>)> = ways
        .iter()
        .map(|way| {
            let stage = stage_for(way, &server).unwrap();
            let gate = gated(&stage, way, &server);
            (*way, stage, gate)
        })
        .collect();
    for revision in ["2025-11-25", "2026-07-28"] {
        let alone = run(revision, &server.url);
        let mut wrong = alone_as_listed(&list, "server", revision, &alone);
        for (way, _, gate) in &gates {
            let through = run(revision, &gate.last().unwrap().url);
            wrong.extend(gated_as_listed(&list, ("server", way, revision), &alone, &through));
        }
        assert_as_listed(revision, &wrong);
    }
}

#[test]
fn a_server_conforms_behind_the_gate_as_it_does_alone() {
    servers(&["endpoint"]);
}

#[test]
fn a_server_conforms_behind_the_gate_on_standard_input_and_under_rules() {
    match is_long() {
        true => servers(&["stdio", "enforced"]),
        false => eprintln!("SKIPPED: it takes a minute; set PORTCULLIS_TEST_LONG=1"),
    }
}

/// The suite as the server of a client, which reaches it by itself, through `mcp --url`, and through `/mcp`. Where the
/// suite's server wants credentials, the gate is the client that gets them.
fn clients(revision: &str, ways: &[&str]) {
    let Some(stage) = Stage::set("everything") else { return };
    let list = list(&stage);
    let command =
        format!("{} {}", stage.node().get_program().display(), stage.script("conformance-client.mjs"));
    let program = env!("CARGO_BIN_EXE_portcullis");
    let through = |way: Option<&str>| {
        let mut variables = vec![("PORTCULLIS", program)];
        variables.extend(way.map(|way| ("PORTCULLIS_GATE", way)));
        run(&stage, "client", revision, &["--command", &command], &variables)
    };
    let alone = through(None);
    let mut wrong = alone_as_listed(&list, "client", revision, &alone);
    for way in ways {
        wrong.extend(gated_as_listed(&list, ("client", way, revision), &alone, &through(Some(way))));
    }
    assert_as_listed(revision, &wrong);
}

fn is_long() -> bool {
    std::env::var("PORTCULLIS_TEST_LONG").as_deref() == Ok("1")
}

#[test]
fn a_client_of_sessions_conforms_through_the_gate_as_it_does_alone() {
    clients("2025-11-25", if is_long() { &["stdio", "endpoint"] } else { &["stdio"] });
}

#[test]
fn a_client_without_sessions_conforms_through_the_gate_as_it_does_alone() {
    clients("2026-07-28", if is_long() { &["stdio", "endpoint"] } else { &["endpoint"] });
}
