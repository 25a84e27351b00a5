//! Done means proven, end to end: an agent behind the official Python client breaks a program, says that it is done, makes
//! the test pass instead, and is believed only when the program is right.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use portcullis_core::event::EventBody;
use portcullis_core::principal::CredentialKind;
use serde_json::{Value, json};

use crate::peers::{PATIENCE, Stage, events, report, shown, step};

const POLICY: &str = "[[policy]]\nname = 'work'\nallowed_types = ['RETRIEVE_DOCS', 'WRITE_FILE']\nmax_steps = 50\n\
                      max_side_effects = 20\n";
const RIGHT: &str = "def add(a, b):\n    return a + b\n";
const WRONG: &str = "def add(a, b):\n    return a - b\n";
const TEST: &str = "import calc\nassert calc.add(2, 2) == 4, 'two and two'\n";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
    let ran = Command::new("git").args(who).args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", shown(&ran));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

/// What a command of the person prints as JSON.
fn told(stage: &Stage, arguments: &[&str]) -> Value {
    let ran = stage.portcullis(arguments).arg("--json").output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", shown(&ran));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn appears(file: &Path) {
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < PATIENCE, "`{}` did not appear", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_believed_only_when_the_work_is_shown_to_be_done() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/work.toml", POLICY);
    let project = stage.path("files");
    std::fs::create_dir(project.join("tests")).unwrap();
    std::fs::write(project.join("calc.py"), RIGHT).unwrap();
    std::fs::write(project.join("tests/test_calc.py"), TEST).unwrap();
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", "a test that passes"]);
    let commit = git(&project, &["rev-parse", "HEAD"]);
    let criteria = json!([{
        "type": "command_exit_zero",
        "command": ["env", "PYTHONPATH=.", "python3", "-B", "tests/test_calc.py"],
        "timeout_seconds": 60,
        "pinned": [{"path": "tests/test_calc.py", "commit": commit}],
    }]);
    let file = stage.path("criteria.json");
    std::fs::write(&file, criteria.to_string()).unwrap();

    let (opened, added) = (stage.path("opened"), stage.path("added"));
    let (calc, test) = (project.join("calc.py"), project.join("tests/test_calc.py"));
    let write = |path: &Path, content: &str| json!({"tool": "write_file", "arguments": {"path": path, "content": content}, "server": 1});
    let claim = json!({"claim": 1, "statement": "the program is right", "cites": "write_file"});
    let steps = json!([
        {"tool": "work_read", "arguments": {}, "write_result": opened},
        {"wait_file": added, "timeout_s": 60},
        {"tool": "work_start", "arguments": {"item": 1}},
        write(&calc, WRONG),
        claim,
        write(&test, "print('all tests passed')\n"),
        claim,
        write(&test, TEST),
        write(&calc, &format!("{RIGHT}# right again\n")),
        claim,
        write(&calc, WRONG),
        {"tool": "work_read", "arguments": {}},
    ]);
    let folder = project.display().to_string();
    // The run keeps the place of whoever opens it.
    let items = stage.governed("work", "work", &["--mcp", "--session", "s", "--workspace", &folder]);
    let gated = stage.gated_with("filesystem", "work", &["--session", "s"]);
    let servers = serde_json::to_string(&[items, gated]).unwrap();
    let client = stage.client("work.py", &["--servers".into(), servers, "--steps".into(), steps.to_string()]);
    appears(&opened);
    let approver = stage.api(CredentialKind::Approver);
    let run = approver.runs(1).await.unwrap().first().unwrap().run.to_string();
    let added_item =
        told(&stage, &["work", "add", &run, "make the test pass", "--criteria", &file.display().to_string()]);
    assert_eq!(added_item["item"]["state"], "pending");
    std::fs::write(&added, "").unwrap();
    let report = report(client);

    let state = |number: usize| step(&report, number)["structuredContent"]["item"]["state"].clone();
    let detail = |number: usize| {
        step(&report, number)["structuredContent"]["item"]["results"][0]["detail"].to_string()
    };
    assert_eq!(state(2), "in_progress", "{report}");
    assert_eq!(state(4), "in_progress", "broken: {}", step(&report, 4));
    assert!(detail(4).contains("two and two"), "the failing command's output: {}", detail(4));
    assert_eq!(state(6), "in_progress", "the test was changed: {}", step(&report, 6));
    assert!(detail(6).contains("pinned file"), "{}", detail(6));
    assert_eq!(state(9), "verified", "{}", step(&report, 9));
    let item = &step(&report, 11)["structuredContent"]["items"][0];
    assert_eq!(item["state"], "verified");
    assert!(item["evidence"][0]["stale"].is_u64(), "written afterwards: {item}");

    let listed = told(&stage, &["work", "list", &run]);
    assert_eq!(listed["title"], "make the test pass");
    let shown = told(&stage, &["work", "show", &run, "1"]);
    assert_eq!(shown["history"].as_array().unwrap().len(), 9, "{shown}");
    let events = events(&approver, &run).await;
    let works = events.iter().filter(|event| matches!(event.body, EventBody::Work(_)));
    assert_eq!(works.count(), 9);
}
