//! Pass, fail, error and timeout of every kind of criterion.

use portcullis_core::work::Came::{Error, Fail, Pass, Timeout};
use serde_json::json;

use crate::world::World;

/// C4, of files.
#[test]
fn c4_files_exist_contain_hash_and_hold_values() {
    let world = World::new();
    world.write("a.json", r#"{"version": "1.2", "list": [1, null]}"#);
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    world.write("abc", "abc");
    world.expect(json!({"type": "file_exists", "path": "abc"}), Pass, "3 bytes");
    world.expect(json!({"type": "file_exists", "path": "b"}), Fail, "no file `b`");
    world.expect(json!({"type": "file_exists", "path": "abc/d"}), Fail, "no file");
    world.expect(json!({"type": "file_exists", "path": world.project()}), Fail, "is a folder");
    world.expect(json!({"type": "file_contains", "path": "abc", "text": "bc"}), Pass, "byte 1");
    world.expect(json!({"type": "file_contains", "path": "abc", "text": "bd"}), Fail, "not have the text");
    world.expect(json!({"type": "file_hash", "path": "abc", "sha256": abc}), Pass, "");
    world.expect(json!({"type": "file_hash", "path": "a.json", "sha256": abc}), Fail, "has the digest");
    let path = |pointer, equals| json!({"type": "json_path", "path": "a.json", "pointer": pointer, "equals": equals});
    world.expect(path("/version", json!("1.2")), Pass, "");
    world.expect(path("", json!({"list": [1, null], "version": "1.2"})), Pass, "");
    world.expect(path("/list/0", json!("1")), Fail, "has 1 at");
    world.expect(path("/list/2", json!(1)), Fail, "has nothing at");
    world.expect(json!({"type": "json_path", "path": "abc", "pointer": "", "equals": 1}), Fail, "is no JSON");
}

#[test]
fn links_out_of_the_project_and_pipes_are_not_read() {
    let world = World::new();
    std::os::unix::fs::symlink("/etc/passwd", world.project().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", world.project().join("etc")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(world.project().join("pipe")).status().unwrap();
    assert!(made.success());
    let contains = |path: &str| json!({"type": "file_contains", "path": path, "text": "root"});
    for path in ["link", "etc/passwd", "../../../../../../etc/passwd"] {
        world.expect(contains(path), Error, "leads out of the folder");
    }
    world.expect(contains("pipe"), Fail, "no regular file");
    world.expect(contains("/etc/passwd"), Pass, "byte 0");
    world.expect(contains(&format!("{}/link", world.project().display())), Error, "leads out");
}

/// C4 of commands, with their real exit status.
#[test]
fn c4_a_command_passes_fails_errs_and_takes_too_long() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    let run = |words: &[&str]| json!({"type": "command_exit_zero", "command": words, "timeout_seconds": 2});
    world.expect(run(&["true"]), Pass, "status 0");
    world.expect(run(&["sh", "-c", "echo tests passed; exit 3"]), Fail, "status 3: tests passed");
    world.expect(run(&["sh", "-c", "kill -9 $$"]), Fail, "signal 9");
    world.expect(run(&["no-such-program"]), Error, "was not run");
    world.expect(run(&["sleep", "60"]), Timeout, "not done after 2 s");
    let elsewhere = json!({"type": "command_exit_zero", "command": ["true"], "directory": "../.."});
    world.expect(elsewhere, Error, "leads out of the folder");
}

/// The environment is the harness's: a program that the agent put where it works is not found by its name.
#[test]
fn a_command_has_a_clean_environment() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    world.write("bin/true", "#!/bin/sh\nexit 7\n");
    let result = world.check(json!({"type": "command_exit_zero", "command": ["sh", "-c", "env; exit 1"]}));
    assert_eq!(result.came, Fail);
    for line in result.detail.lines().filter_map(|line| line.split_once('=')) {
        let name = line.0.rsplit(": ").next().unwrap();
        let known =
            ["PATH", "HOME", "LANG", "TERM", "PWD", "SHLVL", "_", "OLDPWD", "TMPDIR", "GIT_CONFIG_NOSYSTEM"];
        // What containment sets for every command.
        let is_set = name == "npm_config_update_notifier";
        assert!(is_set || known.contains(&name) || name.starts_with("PORTCULLIS"), "{line:?}");
    }
}

/// C4 of git.
#[test]
fn c4_repositories_are_asked_and_run_nothing_of_their_own() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    world.expect(json!({"type": "git_clean"}), Error, "git ended with");
    world.write("src/a.rs", "fn a() {}\n");
    let commit = world.commit();
    let has =
        |commit: &str, branch: &str| json!({"type": "git_commit_exists", "commit": commit, "branch": branch});
    world.expect(json!({"type": "git_commit_exists", "commit": commit}), Pass, &commit);
    world.expect(has("main", "main"), Pass, "`main` has");
    world.expect(has(&commit, "release"), Fail, "no branch `release`");
    world.expect(json!({"type": "git_commit_exists", "commit": "0123456789"}), Fail, "there is no commit");
    world.expect(json!({"type": "git_clean"}), Pass, "nothing is uncommitted");
    let touches = |paths: &[&str]| json!({"type": "git_diff_touches", "since": commit, "paths": paths});
    world.expect(touches(&["src"]), Fail, "nothing in `src`");
    world.write("src/b.rs", "fn b() {}\n");
    // What a repository says is to be run is not.
    let marker = world.project().join("ran");
    world.git(&["config", "core.fsmonitor", &format!("touch {}", marker.display())]);
    world.git(&["config", "diff.external", &format!("touch {}", marker.display())]);
    world.expect(json!({"type": "git_clean"}), Fail, "1 uncommitted: ?? src/b.rs");
    world.expect(touches(&["src"]), Pass, "1 changed");
    world.expect(touches(&["src", "doc"]), Fail, "nothing in `doc`");
    world.expect(touches(&["sr"]), Fail, "nothing in `sr`");
    assert!(!marker.exists(), "git ran what the repository says");
}

/// A criterion looks at nothing where a file that it pins was changed.
#[test]
fn pinned_files_have_to_be_as_they_were() {
    let world = World::new();
    if !world.contains() {
        return;
    }
    world.write("tests/t.sh", "exit 1\n");
    let commit = world.commit();
    let pinned = |to: &serde_json::Value| {
        let mut pin = json!({"path": "tests/t.sh"});
        pin.as_object_mut().unwrap().extend(to.as_object().unwrap().clone());
        json!({"type": "command_exit_zero", "command": ["sh", "tests/t.sh"], "pinned": [pin]})
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, b"exit 1\n");
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let (by_digest, by_commit) = (pinned(&json!({"sha256": digest})), pinned(&json!({"commit": commit})));
    for criterion in [&by_digest, &by_commit] {
        world.expect(criterion.clone(), Fail, "status 1");
    }
    world.write("tests/t.sh", "exit 0\n");
    for criterion in [&by_digest, &by_commit] {
        world.expect(criterion.clone(), Fail, "pinned file: `tests/t.sh` is not as in");
    }
    // Neither a new commit nor a replacement of the old one makes it the same.
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "make it pass"]);
    let new = world.git(&["rev-parse", "HEAD"]);
    world.git(&["replace", &commit, &new]);
    world.expect(by_commit.clone(), Fail, "pinned file");
    // Nor do other bytes under its name.
    let place = |name: &str| {
        let (folder, file) = name.split_at(2);
        world.project().join(".git/objects").join(folder).join(file)
    };
    std::fs::remove_file(place(&commit)).unwrap();
    std::fs::copy(place(&new), place(&commit)).unwrap();
    let result = world.check(by_commit);
    assert!(result.came == Error, "{result:?}");
}

#[test]
fn reports_of_tests_are_counted() {
    let world = World::new();
    world.write("r.xml", "<testsuite><testcase/><testcase><failure/></testcase></testsuite>");
    world.write("ok.xml", "<testsuite><testcase/><testcase/></testsuite>");
    let report = |path: &str, min: u32| json!({"type": "test_report", "path": path, "tests_min": min});
    world.expect(report("r.xml", 1), Fail, "1 passed, 1 failed, 0 skipped");
    world.expect(report("ok.xml", 2), Pass, "2 passed");
    world.expect(report("ok.xml", 3), Fail, "at least 3");
    world.expect(report("none.xml", 1), Fail, "no file");
}

#[test]
fn calls_and_rows_are_asked_for() {
    let mut world = World::new();
    world.called = vec!["deploy"];
    world.expect(json!({"type": "tool_call_succeeded", "tool": "deploy"}), Pass, "");
    world.expect(json!({"type": "tool_call_succeeded", "tool": "other"}), Fail, "no call of `other`");
    let file = world.project().join("a.db");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("create table t (a, b); insert into t values (1, 'x'), (2, null)").unwrap();
    drop(connection);
    let query = |query: &str, rows: serde_json::Value| json!({"type": "sql_returns", "path": "a.db", "query": query, "rows": rows});
    world.expect(query("select * from t", json!([[1, "x"], [2, null]])), Pass, "2 rows");
    world.expect(query("select count(*) from t", json!([[3]])), Fail, "returned [[2]]");
    world.expect(query("select * from u", json!([])), Error, "no such table");
    world.expect(query("delete from t", json!([])), Error, "readonly");
    let forever = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r";
    if std::env::var_os("PORTCULLIS_TEST_LONG").is_some() {
        world.expect(query(forever, json!([[0]])), Timeout, "no answer");
    }
    world.write("abc", "abc");
    world.expect(
        json!({"type": "sql_returns", "path": "abc", "query": "select 1 from sqlite_master", "rows": []}),
        Error,
        "",
    );
}
