//! A log that comes back, from a backup or from a stop, and its witness over HTTP: each a process of its own.

use std::fs;
use std::time::Duration;

use portcullis_core::principal::CredentialKind;
use portcullis_gateway::client::Client;
use serde_json::Value;

use crate::auditor::{Process, Witness, copy, until};
use crate::browser::Browser;
use crate::command::bundle_copy;
use crate::log::Home;

/// A store whose log has three leaves, which a witness has cosigned.
struct Watched {
    home: Home,
    witness: Witness,
    log: String,
}

impl Watched {
    fn new() -> (Watched, Process) {
        let (home, witness) = (Home::new(), Witness::new("w"));
        home.grow();
        let log = home.log_key();
        home.ask(&format!("{}quorum w\n", witness.line(&witness.url())));
        let running = witness.start(&[&log]);
        home.ok(&["log", "enrol"]);
        let status = home.status();
        assert_eq!((&status["size"], &status["witnessed"]), (&4.into(), &4.into()), "{status}");
        (Watched { home, witness, log }, running)
    }

    /// What the log waits for, once it says this.
    fn waits(&self, why: &str) -> Value {
        until(why, || {
            let status = self.home.status();
            let found = status["waits"]["why"].as_str()?.contains(why);
            found.then_some(status)
        })
    }

    fn health(&self) -> String {
        let home = portcullis_gateway::home::Home::at(&self.home.path("state")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Client::new(home, CredentialKind::Agent).health()).unwrap().log
    }

    /// For a while, nothing that is published changes.
    fn nothing_is_signed(&self) {
        let (before, size) = (self.home.checkpoint(), self.home.status()["size"].clone());
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(self.home.checkpoint(), before);
        assert_eq!(self.home.status()["size"], size);
    }
}

#[test]
fn a_restored_log_signs_nothing_while_its_witness_is_away_and_nothing_when_it_is_back() {
    let (watched, witness) = Watched::new();
    let home = &watched.home;
    let backup = home.path("backup");
    copy(&home.path("state"), &backup);
    home.grow();
    assert_eq!(home.status()["witnessed"], 6);
    assert_eq!(witness.stop(), Some(0));
    fs::remove_dir_all(home.path("state")).unwrap();
    copy(&backup, &home.path("state"));
    let restored = home.checkpoint();

    let daemon = home.serve(&[]);
    // Recording goes on.
    home.simulate();
    let status = watched.waits("witness `w`: no answer");
    assert_eq!(status["size"], 4, "{status}");
    watched.nothing_is_signed();
    let since = status["waits"]["since"].as_str().unwrap();
    let expected = format!(
        "the log has been waiting since {since} for its witnesses to confirm that it is not an old copy"
    );
    let shown = home.ok(&["log", "status"]).stdout;
    assert!(shown.contains(&format!("waits     {expected}")), "{shown}");
    let health = watched.health();
    assert!(health.starts_with(&expected) && health.contains("witness `w`: no answer"), "{health}");
    let doctor = home.ok(&["doctor"]).stdout;
    assert!(doctor.contains(&expected) && doctor.contains("`log/witnesses.policy`"), "{doctor}");
    assert_eq!(daemon.errors().matches(&expected).count(), 1, "{}", daemon.errors());

    // It answers, and has seen more.
    let witness = watched.witness.start(&[&watched.log]);
    until("the reason is told", || {
        let told =
            "the log remembers 4 leaves, but the witness `w` shows 6: it was restored from an old copy";
        daemon.errors().contains(told).then_some(())
    });
    let status = watched.waits("witness `w`: it has seen 6 leaves, but this log has only 4");
    assert_eq!(status["size"], 4);
    watched.nothing_is_signed();
    let health = watched.health();
    assert!(health.starts_with("the log remembers 4 leaves, but the witness `w` shows 6"), "{health}");
    // Not when it goes away again, either, nor for another process.
    witness.stop();
    watched.nothing_is_signed();
    assert_eq!(daemon.stop(), Some(0));
    let refused = home.run(&["log", "enrol"]);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    assert!(refused.stderr.contains("no answer"), "{}", refused.stderr);
    assert_eq!(home.checkpoint(), restored);
}

/// On every page it outweighs everything else, and on the page of the log it stands with what to do.
fn console_says_so(home: &Home) {
    let daemon = home.serve(&["--console", "127.0.0.1:0"]);
    let link = home.ok(&["console"]).stdout;
    let origin = link.split("/sign-in").next().unwrap().to_owned();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let Some(browser) = Browser::start().await else { return };
        browser.sign_in(link.trim()).await;
        for _ in 0..100 {
            browser.open(&format!("{origin}/audit")).await;
            if browser.text("main").await.contains("A witness saw another tree.") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let page = browser.text("main").await;
        assert!(page.contains("A witness saw another tree."), "{page}");
        assert!(!page.contains("have seen all of it"), "{page}");
        browser.pictures("audit-forked").await;
        browser.accessible("audit-forked").await;
        for (path, name, part) in [
            ("/", "overview-forked", "Tell everyone who relies on this log"),
            ("/runs", "runs-forked", "Somebody signed two histories"),
        ] {
            browser.open(&format!("{origin}{path}")).await;
            let page = browser.text("main").await;
            assert!(page.starts_with("A witness saw another tree.") && page.contains(part), "{page}");
            assert!(browser.text(".bar").await.contains("log contradicted"), "{path}");
            browser.pictures(name).await;
            browser.accessible(name).await;
        }
        browser.end().await;
    });
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_log_that_a_witness_saw_otherwise_is_put_aside_without_another_signature() {
    let (watched, witness) = Watched::new();
    let home = &watched.home;
    let backup = home.path("backup");
    copy(&home.path("state"), &backup);
    home.grow();
    assert_eq!(home.status()["witnessed"], 6);
    fs::remove_dir_all(home.path("state")).unwrap();
    copy(&backup, &home.path("state"));
    // Its owner has it sign all the same.
    fs::remove_file(home.path("state/log/witnesses.policy")).unwrap();
    home.grow();
    home.ask(&format!("{}quorum w\n", watched.witness.line(&watched.witness.url())));
    let forked = home.checkpoint();
    home.simulate();

    let refused = home.run(&["log", "enrol"]);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    for text in ["it saw a different history of this log (422)", " log rotate`"] {
        assert!(refused.stderr.contains(text), "{text} in {}", refused.stderr);
    }
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("it must not sign any more"), "{doctor}");
    console_says_so(home);
    let [frozen] = home.ok(&["log", "freeze", "--reason", "forked", "--json"]).json().try_into().unwrap();
    assert_eq!(frozen, serde_json::json!({"record": "frozen", "size": 6, "cosigned": null}));
    assert_eq!(home.checkpoint(), forked);
    // A daemon says so.
    let daemon = home.serve(&[]);
    assert!(watched.health().starts_with("the log is frozen: forked"), "{}", watched.health());
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains(": the log is frozen: forked"), "{doctor}");
    assert_eq!(daemon.stop(), Some(0));
    let [rotated] = home.ok(&["log", "rotate", "--json"]).json().try_into().unwrap();
    assert_eq!((&rotated["cosigned"], &rotated["not_frozen"]), (&Value::Null, &Value::Null), "{rotated}");
    let archive = rotated["archive"].as_str().unwrap();
    assert_eq!(fs::read_to_string(format!("{archive}/log/checkpoint")).unwrap(), forked);
    assert_eq!(witness.stop(), Some(0));
}

#[test]
fn a_log_that_was_merely_stopped_goes_on_by_itself_when_its_witness_is_back() {
    let (watched, witness) = Watched::new();
    let home = &watched.home;
    witness.stop();
    // Effects wait as for any head that is not published.
    let bundle = bundle_copy();
    let main = bundle.path().join("portcullis.toml");
    let text = fs::read_to_string(&main).unwrap();
    fs::write(&main, format!("{text}\n[ledger]\nanchor = \"before-effects\"\n")).unwrap();
    let policy = "Permissive Exploration Policy";
    let plan = ["simulate", "--plan", "Email Policy Update", "--policy", policy, "--continue", "--bundle"];
    let plan = [&plan[..], &[bundle.path().to_str().unwrap()]].concat();
    let before = home.checkpoint();
    let held = home.run(&plan);
    assert_eq!(held.code, 3, "{}", held.stdout);
    assert!(held.stderr.contains("not in the transparency log yet"), "{}", held.stderr);
    assert_eq!(home.checkpoint(), before);

    let daemon = home.serve(&[]);
    let run = home.simulate();
    watched.waits("witness `w`: no answer");
    watched.nothing_is_signed();
    assert_eq!(home.checkpoint(), before);
    let _witness = watched.witness.start(&[&watched.log]);
    let status = until("the log goes on", || {
        let status = home.status();
        // The runs of before, and the two that were recorded meanwhile.
        (status["size"].as_u64() >= Some(8) && status["witnessed"] == status["size"]).then_some(status)
    });
    assert!(status["waits"].is_null(), "{status}");
    assert_eq!(watched.health(), "ok");
    let doctor = home.ok(&["doctor"]).stdout;
    assert!(!doctor.contains("waits"), "{doctor}");
    assert_ne!(home.run(&plan).code, 3, "and effects go ahead");
    drop(daemon);
    let archive = home.file("run.zip");
    home.ok(&["export", &run, "-o", &archive]);
    let policy = home.path("audit.policy");
    let witness = watched.witness.line(&watched.witness.url());
    fs::write(&policy, format!("log {}\n{witness}quorum w\n", watched.log)).unwrap();
    home.ok(&["verify", &archive, "--trust", policy.to_str().unwrap()]);
}

#[test]
fn a_log_is_frozen_with_the_cosignature_of_its_witnesses_or_not_at_all() {
    let (watched, witness) = Watched::new();
    let home = &watched.home;
    let run = home.simulate();
    witness.stop();
    for command in [["log", "freeze", "--reason", "the end"], ["log", "rotate", "--reason", "the end"]] {
        let refused = home.run(&command);
        assert_eq!(refused.code, 3, "{}", refused.stdout);
        for text in ["signs nothing until then", "witness `w`: no answer", "help: nothing was done"] {
            assert!(refused.stderr.contains(text), "{text} in {}", refused.stderr);
        }
    }
    let status = home.status();
    assert!(status["frozen"].is_null() && status["size"] == 4, "{status}");
    assert!(!home.path("state/archive").exists());

    let witness = watched.witness.start(&[&watched.log]);
    let [frozen] = home.ok(&["log", "freeze", "--reason", "the end", "--json"]).json().try_into().unwrap();
    assert_eq!(frozen, serde_json::json!({"record": "frozen", "size": 6, "cosigned": true}));
    let note = home.checkpoint();
    assert!(note.lines().nth(1) == Some("6") && note.contains("— auditor.example/w "), "{note}");
    witness.stop();
    // What is in it is proved for ever, without a witness that answers.
    let archive = home.file("run.zip");
    home.ok(&["export", &run, "-o", &archive]);
    let policy = home.path("audit.policy");
    let line = watched.witness.line(&watched.witness.url());
    fs::write(&policy, format!("log {}\n{line}quorum w\n", watched.log)).unwrap();
    home.ok(&["verify", &archive, "--trust", policy.to_str().unwrap()]);
    // It is put aside although nobody answers: it signs nothing any more.
    let [rotated] = home.ok(&["log", "rotate", "--json"]).json().try_into().unwrap();
    assert_eq!((&rotated["cosigned"], &rotated["not_frozen"]), (&true.into(), &Value::Null), "{rotated}");
}

#[test]
fn a_frozen_log_that_a_witness_missed_is_cosigned_later() {
    let (home, one, two) = (Home::new(), Witness::new("w1"), Witness::new("w2"));
    home.grow();
    let log = home.log_key();
    let lines = one.line(&one.url()) + &two.line(&two.url());
    home.ask(&format!("{lines}group both all w1 w2\nquorum both\n"));
    let _one = one.start(&[&log]);
    home.simulate();
    // No quorum is without the first, so its word is enough to go on, and not enough for an export.
    let frozen = home.ok(&["log", "freeze", "--reason", "the end"]);
    let expected = "the log is frozen with 5 leaves\nits witnesses have not cosigned the last tree; run";
    assert!(frozen.stdout.starts_with(expected), "{}", frozen.stdout);
    let _two = two.start(&[&log]);
    let [frozen] = home.ok(&["log", "freeze", "--reason", "again", "--json"]).json().try_into().unwrap();
    assert_eq!(frozen, serde_json::json!({"record": "frozen", "size": 5, "cosigned": true}));
    assert_eq!(home.status()["frozen"], "the end");
}

#[test]
fn a_log_that_is_rotated_is_cosigned_to_its_end_and_its_successor_from_its_beginning() {
    let (watched, witness) = Watched::new();
    let home = &watched.home;
    home.simulate();
    let [rotated] = home.ok(&["log", "rotate", "--json"]).json().try_into().unwrap();
    assert_eq!(rotated["cosigned"], true, "{rotated}");
    let archive = rotated["archive"].as_str().unwrap();
    let old = fs::read_to_string(format!("{archive}/log/checkpoint")).unwrap();
    assert!(old.lines().nth(1) == Some("6") && old.contains("— auditor.example/w "), "{old}");

    // The successor has a new key, so the process that makes it needs nobody's word for it.
    home.grow();
    let new = home.log_key();
    assert_ne!(new, watched.log);
    let status = home.status();
    assert_eq!(
        (&status["size"], &status["witnessed"], &status["waits"]),
        (&3.into(), &Value::Null, &Value::Null)
    );
    // The next one does, and the witness does not know the key.
    let run = home.simulate();
    let checkpoint = home.checkpoint();
    let waiting = home.ok(&["export", &run, "-o", &home.file("run.zip")]);
    assert!(waiting.stderr.starts_with("note: the log has been waiting since "), "{}", waiting.stderr);
    assert!(waiting.stderr.contains("witness `w`: it answers 404"), "{}", waiting.stderr);
    assert_eq!(home.checkpoint(), checkpoint, "nothing is signed for it");
    let policy = home.file("trust.policy");
    fs::write(&policy, home.ok(&["log", "policy"]).stdout).unwrap();
    let incomplete = home.run(&["verify", &home.file("run.zip"), "--trust", &policy]);
    assert_eq!(incomplete.code, 2, "{}", incomplete.stdout);
    witness.stop();
    let _witness = watched.witness.start(&[&watched.log, &new]);
    home.ok(&["export", &run, "-o", &home.file("run.zip")]);
    let status = home.status();
    assert_eq!((&status["size"], &status["witnessed"]), (&5.into(), &5.into()), "{status}");
}
