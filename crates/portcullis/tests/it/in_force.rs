//! Which bundle a command takes when none is named: the one in force in the state folder.

use std::fs;
use std::path::PathBuf;

use crate::command::{bundle_copy, run};
use crate::daemon::State;

/// A state folder that was served with a bundle of one tool, which no bundle that ships has.
fn with_own_bundle() -> (State, tempfile::TempDir, PathBuf) {
    let (state, own) = (State::new(), bundle_copy());
    for name in ["tools/compliance.toml", "plans/compliance.toml", "plans/misuse.toml"] {
        fs::remove_file(own.path().join(name)).unwrap();
    }
    fs::remove_dir_all(own.path().join("tests")).unwrap();
    let tool = "[[tool]]\nname = \"water_the_roses\"\ntype = \"MODIFY\"\ndescription = \"Waters.\"\n\
                side_effecting = true\nrisk = 0.5\nenabled = true\n";
    fs::write(own.path().join("tools/roses.toml"), tool).unwrap();
    let toml = own.path().join("portcullis.toml");
    let text = fs::read_to_string(&toml).unwrap();
    let kept: Vec<&str> =
        text.lines().filter(|line| !line.contains("retrieve_compliance_documents")).collect();
    fs::write(&toml, kept.join("\n")).unwrap();
    fs::create_dir_all(state.home()).unwrap();
    let folder = own.path().to_owned();
    fs::write(state.home().join("bundle.path"), format!("{}\n", folder.display())).unwrap();
    (state, own, folder)
}

#[test]
fn commands_take_the_bundle_in_force_and_say_so() {
    let (state, _own, folder) = with_own_bundle();
    let said = format!("bundle: {}, in force in the state folder\n", folder.display());
    let trace = "examples/traces/assistant.jsonl";
    for args in [
        &["tools", "list"][..],
        &["tools", "explain", "water_the_roses"],
        &["policy", "test"],
        &["policy", "lint"],
        &["policy", "schema"],
        &["check", trace],
        &["simulate", "--list"],
        &["simulate", "--request", "Water the roses"],
    ] {
        let ran = state.run(args);
        assert!(ran.stderr.starts_with(&said), "{args:?}: {}", ran.stderr);
    }
    assert!(state.run(&["tools", "list"]).stdout.contains("water_the_roses"));
    let lines = state.run(&["tools", "list", "--json"]);
    assert_eq!((lines.stderr.as_str(), &lines.json()[0]["id"]), ("", &"water_the_roses".into()));
    for args in
        [&["check", trace, "--json"][..], &["policy", "test", "--json"], &["policy", "schema", "--json"]]
    {
        let ran = state.run(args);
        let last = ran.json().pop().unwrap();
        assert_eq!((ran.stderr.as_str(), &last["bundle_folder"]), ("", &folder.display().to_string().into()));
    }
    // What is named counts, and the figures of a suite depend on no state folder.
    let named = state.run(&["tools", "list", "--bundle", "examples/bundle"]);
    assert!(named.stderr.is_empty() && named.stdout.contains("send_email"), "{}", named.stderr);
    let scenarios = state.run(&["eval", "scenarios", "--data", "no/such/folder"]);
    assert!(!scenarios.stderr.contains("in force"), "{}", scenarios.stderr);
    assert_eq!(run(&["tools", "list"]).stderr, "bundle: the shipped one\n");
}

#[test]
fn a_bundle_in_force_that_does_not_load_is_no_choice_of_another() {
    let (state, own, folder) = with_own_bundle();
    fs::write(folder.join("portcullis.toml"), "version = 1\nnonsense = true\n").unwrap();
    let broken = state.run(&["tools", "list"]);
    assert_eq!((broken.code, broken.stdout.as_str()), (3, ""), "{}", broken.stderr);
    assert!(
        broken.stderr.contains("serve --bundle DIR") && broken.stderr.contains("nonsense"),
        "{}",
        broken.stderr
    );
    drop(own);
    let gone = state.run(&["check", "examples/traces/assistant.jsonl"]);
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    fs::write(state.home().join("bundle.path"), "not a path\n").unwrap();
    let unread = state.run(&["policy", "test"]);
    assert_eq!(unread.code, 3);
    assert!(unread.stderr.contains("bundle.path"), "{}", unread.stderr);
}

#[test]
fn advice_keeps_the_state_folder_that_was_named() {
    let state = State::new();
    let home = state.path("a home");
    let home = home.to_str().unwrap();
    let ran = state.run(&["--home", home, "upstream", "status", "files"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let advice = format!("`portcullis --home '{home}' upstream login NAME --url URL`");
    assert!(ran.stderr.contains(&advice), "{}", ran.stderr);
    let json = state.run(&["--home", home, "upstream", "status", "files", "--json"]);
    assert!(json.json()[0]["error"]["message"].as_str().unwrap().contains(&advice), "{}", json.stdout);
    let without = state.run(&["upstream", "status", "files"]);
    assert!(without.stderr.contains("`portcullis upstream login"), "{}", without.stderr);
}

#[test]
fn the_doctor_tries_the_issuers_and_counts_runs_under_another_bundle() {
    let (state, own) = (State::new(), bundle_copy());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let toml = own.path().join("portcullis.toml");
    let mut text = fs::read_to_string(&toml).unwrap();
    text.push_str(&format!(
        "\n[oauth]\nresource = \"http://127.0.0.1:7777/mcp\"\n[[oauth.issuer]]\nurl = \"http://{nobody}\"\n"
    ));
    fs::write(&toml, text).unwrap();
    fs::create_dir_all(state.home()).unwrap();
    fs::write(state.home().join("bundle.path"), format!("{}\n", own.path().display())).unwrap();
    let runtime = crate::daemon::runtime();
    let other = bundle_copy();
    let _run = runtime.block_on(crate::daemon::open_under(&state, other.path()));
    let doctor = state.run(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("warn  issuers         `http://{nobody}`: ")), "{doctor}");
    assert!(doctor.contains("1 live run under another bundle ("), "{doctor}");
    let missing = state.run(&["doctor", "--bundle", "no/such/folder"]).stdout;
    assert!(!missing.contains("policy test --bundle no/such/folder"), "{missing}");
}
