//! Engines of a bundle: an executable of the operator, run contained by the daemon, asked about calls, recorded.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_contain::{Contained, Level, probe};
use portcullis_gateway::api::{OpenRun, ProposeAction};
use portcullis_gateway::client::{Proposed, Run, StartOptions};
use portcullis_gateway::home::Home;
use portcullis_session::surface::Surface as _;
use serde_json::json;

use crate::daemon::{State, runtime};
use crate::expected::is_skipped;

/// An engine that objects by what a text says, and tells whether it can read what it should not.
const ENGINE: &str = r#"#!/usr/bin/env python3
import json, os, struct, sys, time

def say(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()

def attempt(what):
    try:
        what()
        return "done"
    except Exception as error:
        return type(error).__name__

assert sys.argv[1:] == ["--strict", "worker"], sys.argv
say({"ready": {"protocol": 1, "engine": "tone", "version": "1"}})
while head := sys.stdin.buffer.read(4):
    asked = json.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    text = asked["check"]["input"]["action"]["args"].get("text", "")
    answer = {}
    if "wait" in text:
        time.sleep(60)
    elif "end" in text:
        sys.exit(0)
    elif "widen" in text:
        answer = {"objections": [{"program": "tone", "says": "allow", "reasons": []}]}
    elif "rude" in text:
        answer = {"objections": [{"program": "other", "says": "deny", "reasons": ["it is rude"]}]}
    elif "secret" in text:
        tried = attempt(lambda: open("SECRET").read()) + " " + attempt(lambda: open("SECRET.new", "w").write("x"))
        answer = {"objections": [{"program": "tone", "says": "hold", "reasons": [tried]}]}
    say({"checked": answer})
"#;

/// A bundle with the engine; nothing where this machine contains nothing.
fn bundle(folder: &Path) -> Option<PathBuf> {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    if is_skipped(Level::Process, probe(&helper).unwrap().reached, "") {
        return None;
    }
    let secret = folder.join("secret");
    fs::write(&secret, "it is secret").unwrap();
    let place = folder.join("tone");
    fs::create_dir(&place).unwrap();
    let engine = place.join("engine");
    let text = ENGINE.replace("SECRET", secret.to_str().unwrap());
    fs::write(&engine, &text).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    let digest = Command::new("sha256sum").arg(&engine).output().unwrap();
    let printed = String::from_utf8(digest.stdout).unwrap();
    let sha256 = printed.split_whitespace().next().unwrap();
    let bundle = folder.join("bundle");
    for (path, text) in [
        ("portcullis.toml", "version = 1\n".to_owned()),
        (
            "policies/p.toml",
            "[[policy]]\nname = \"p\"\nallowed_types = [\"SEND_EMAIL\", \"RETRIEVE_DOCS\"]\nmax_steps = 50\nmax_side_effects = 50\n"
                .to_owned(),
        ),
        (
            "tools/t.toml",
            "[[tool]]\nname = \"reply\"\ntype = \"SEND_EMAIL\"\nside_effecting = true\n\
             [[tool]]\nname = \"look_up\"\ntype = \"RETRIEVE_DOCS\"\nside_effecting = false\n"
                .to_owned(),
        ),
        (
            "engines.toml",
            format!(
                "[[engine]]\nname = \"tone\"\ncommand = \"{}\"\narguments = [\"--strict\"]\nsha256 = \"{sha256}\"\n\
                 tools = [\"reply\"]\nwait_ms = 2000\n",
                engine.display()
            ),
        ),
    ] {
        let path = bundle.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Some(bundle)
}

async fn open(state: &State, bundle: &Path) -> Run {
    let home = Home::at(&state.home()).unwrap();
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_portcullis")));
    let start = StartOptions { program, bundle: Some(bundle.to_owned()), ..StartOptions::default() };
    Run::open(&home, start, OpenRun { surface: "test".into(), ..OpenRun::default() }).await.unwrap()
}

/// The rule and the words with which a call is stopped, empty where it goes ahead.
async fn says(run: &Run, tool: &str, text: &str) -> (String, String) {
    let proposal = ProposeAction {
        tool: Some(tool.to_owned()),
        arguments: json!({ "text": text }),
        wait_ms: Some(0),
        ..ProposeAction::default()
    };
    match run.propose(proposal).await.unwrap() {
        Proposed::Permitted(..) => Default::default(),
        Proposed::Stopped(stopped) => {
            let denial = stopped.denial;
            (denial.rule, denial.message)
        }
    }
}

#[test]
fn an_engine_objects_within_its_profile_and_what_goes_wrong_with_it_denies() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(bundle) = bundle(folder.path()) else { return };
    let state = State::new();
    let id = runtime().block_on(async {
        let run = open(&state, &bundle).await;
        assert_eq!(says(&run, "reply", "Your order is on its way.").await, Default::default());
        let (rule, words) = says(&run, "reply", "Something rude.").await;
        assert_eq!(rule, "program/engine/tone");
        assert!(words.contains("it is rude"), "{words}");
        assert_eq!(
            says(&run, "look_up", "rude").await,
            Default::default(),
            "it is not asked about this tool"
        );

        let (rule, words) = says(&run, "reply", "secret").await;
        assert_eq!(rule, "program/engine/tone");
        assert!(!words.contains("done"), "it read or wrote outside of its profile: {words}");
        assert!(!folder.path().join("secret.new").exists());

        for (text, why) in
            [("wait", "longer than 2000 ms"), ("end", "went beyond"), ("widen", "something else")]
        {
            let (rule, words) = says(&run, "reply", text).await;
            assert_eq!(rule, "gate/fact-missing", "{text}: {words}");
            assert!(words.contains(why), "{text}: {words}");
        }
        assert_eq!(says(&run, "reply", "Another worker answers.").await, Default::default());
        let id = run.id().to_string();
        run.close().await.unwrap();
        drop(run);
        id
    });
    assert_eq!(state.until_closed()["run"], id.as_str());
    let export = folder.path().join("run.jsonl");
    let trust = folder.path().join("run.trust");
    let files = ["-o", export.to_str().unwrap(), "--trust-out", trust.to_str().unwrap()];
    let exported = state.run(&[&["export", id.as_str()], &files[..]].concat());
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    // The engine is not asked again: the answers of the record are what counts.
    fs::remove_file(folder.path().join("tone/engine")).unwrap();
    let files = [export.to_str().unwrap(), "--trust", trust.to_str().unwrap()];
    let replayed =
        state.run(&[&["verify", "--replay", "--bundle", bundle.to_str().unwrap()], &files[..]].concat());
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
}

/// A client may name a bundle for its runs, and must not have the daemon execute what that bundle names.
#[test]
fn an_engine_of_a_bundle_that_a_client_named_is_not_started() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(bundle) = bundle(folder.path()) else { return };
    let state = State::new();
    runtime().block_on(async {
        let home = Home::at(&state.home()).unwrap();
        let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_portcullis")));
        let start = StartOptions { program, ..StartOptions::default() };
        let named = OpenRun {
            surface: "test".into(),
            bundle: Some(bundle.to_str().unwrap().to_owned()),
            ..OpenRun::default()
        };
        let run = Run::open(&home, start, named).await.unwrap();
        let (rule, words) = says(&run, "reply", "Your order is on its way.").await;
        assert_eq!(rule, "gate/fact-missing");
        assert!(words.contains("only the bundle that the daemon serves"), "{words}");
    });
}

#[test]
fn an_engine_that_was_changed_is_not_started() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(bundle) = bundle(folder.path()) else { return };
    fs::write(folder.path().join("tone/engine"), "#!/bin/sh\n").unwrap();
    let state = State::new();
    runtime().block_on(async {
        let run = open(&state, &bundle).await;
        let (rule, words) = says(&run, "reply", "Your order is on its way.").await;
        assert_eq!(rule, "gate/fact-missing");
        assert!(words.contains("its digest is") && words.contains("is required"), "{words}");
    });
}
