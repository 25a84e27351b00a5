//! `portcullis monitor` as an auditor runs it, over logs that are honest and logs that lie.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::auditor::{Process, copy, free_port};
use crate::command::{Ran, portcullis, run};
use crate::log::Home;

/// An auditor's folder, with a policy that has the log's key.
struct Auditor {
    folder: tempfile::TempDir,
}

impl Auditor {
    fn of(home: &Home) -> Auditor {
        let auditor = Auditor { folder: tempfile::tempdir().unwrap() };
        fs::write(auditor.path("trust.policy"), home.ok(&["log", "policy"]).stdout).unwrap();
        auditor
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Looks at a log, and remembers.
    fn look(&self, log: &str, more: &[&str]) -> Ran {
        let (trust, state, forks) = (self.path("trust.policy"), self.path("state"), self.path("forks"));
        let args = ["monitor", log, "--trust", &trust, "--state", &state, "--forks", &forks];
        run(&[&args, more].concat())
    }

    fn finds(&self, log: &str, code: i32, expected: &str) -> Ran {
        let ran = self.look(log, &[]);
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(expected), "{expected} in {}", ran.stdout);
        ran
    }
}

fn public(home: &Home) -> String {
    home.file("state/log")
}

#[test]
fn an_honest_log_is_followed_from_its_folder_and_from_its_daemon() {
    let home = Home::new();
    home.grow();
    let auditor = Auditor::of(&home);
    let first =
        auditor.finds(&public(&home), 0, ": 3 leaves, 3 new; 0 segments without end, 0 numbers missing\n");
    assert_eq!(first.stdout.lines().count(), 1, "{}", first.stdout);
    assert!(first.stderr.is_empty(), "{}", first.stderr);
    home.grow();
    let address = format!("127.0.0.1:{}", free_port());
    let _daemon = home.serve(&["--http", &address]);
    let second = auditor.look(&format!("http://{address}/log"), &["--json"]);
    assert_eq!(second.code, 0, "{}", second.stdout);
    let [look] = second.json().try_into().unwrap();
    let origin = home.status()["origin"].clone();
    let counts =
        ["size", "leaves", "alerts", "standing", "missing", "open"].map(|name| look[name].as_u64().unwrap());
    assert_eq!((look["record"].as_str(), counts), (Some("look"), [5, 2, 0, 0, 0, 0]), "{look}");
    assert_eq!((&look["log"], &look["incomplete"], &look["cosigned"]), (&origin, &Value::Null, &Value::Null));
    assert_eq!(look["root"], home.status()["root"]);
    // What is asked of a witness that is not there is not there.
    let key = crate::auditor::Witness::new("w").key();
    let policy =
        home.ok(&["log", "policy"]).stdout.replace("quorum none", &format!("witness w {key}\nquorum w"));
    fs::write(auditor.path("trust.policy"), policy).unwrap();
    auditor.finds(&public(&home), 2, "incomplete: the quorum `w` is not reached: 0 of 1 witnesses cosigned");
    let stale = auditor.look(&public(&home), &["--stale", "0s"]);
    std::thread::sleep(Duration::from_secs(2));
    let stale = if stale.code == 1 { stale } else { auditor.look(&public(&home), &["--stale", "0s"]) };
    assert_eq!(stale.code, 1, "{}", stale.stdout);
    assert!(stale.stdout.contains("cosignature-stale: no witness has cosigned"), "{}", stale.stdout);
}

#[test]
fn a_log_that_lies_is_found_and_a_fork_is_proven_to_others() {
    let home = Home::new();
    home.grow();
    let auditor = Auditor::of(&home);
    let before = home.path("before");
    copy(&home.path("state"), &before);
    auditor.finds(&public(&home), 0, "3 leaves, 3 new");
    home.grow();
    auditor.finds(&public(&home), 0, "5 leaves, 2 new");

    // It shows what it showed before.
    let old = before.join("log");
    let back = auditor.finds(old.to_str().unwrap(), 1, "rolled-back: the log had 5 leaves and now shows 3\n");
    assert!(!back.stdout.contains("proof: "), "{}", back.stdout);
    assert!(!Path::new(&auditor.path("forks")).exists());
    // From a copy of before, it signs another history.
    let twin = Home::new();
    copy(&before, &twin.path("state"));
    twin.grow();
    let words =
        "log-forked: the tree of 5 leaves does not begin with the tree of 5 leaves that was signed before\n";
    let forked = auditor.finds(&public(&twin), 1, words);
    let proof = forked.stdout.lines().find_map(|line| line.strip_prefix("  proof: ")).unwrap().to_owned();
    assert!(proof.starts_with(&auditor.path("forks/fork-")), "{proof}");
    let [alert, look] = auditor.look(&public(&twin), &["--json"]).json().try_into().unwrap();
    assert_eq!((&alert["record"], &alert["kind"]), (&"alert".into(), &"log-forked".into()), "{alert}");
    assert_eq!((&alert["proof"], &alert["index"]), (&proof.as_str().into(), &Value::Null));
    assert_eq!((&look["alerts"], &look["standing"]), (&1.into(), &1.into()), "{look}");
    // The truth again.
    auditor.finds(&public(&home), 0, "5 leaves, 0 new");

    // Whoever has the log's key checks the proof, without the log.
    let trust = auditor.path("trust.policy");
    let check = |file: &str, more: &[&str]| {
        run(&[&["monitor", "--check-fork", file, "--trust", &trust], more].concat())
    };
    let shown = check(&proof, &[]);
    assert_eq!(shown.code, 0, "{}{}", shown.stdout, shown.stderr);
    let origin = home.status()["origin"].as_str().unwrap().to_owned();
    let words = format!(
        "FORKED: the log `{origin}` signed two trees that contradict each other, of 5 leaves and 5\n"
    );
    assert_eq!(shown.stdout, words);
    let [shown] = check(&proof, &["--json"]).json().try_into().unwrap();
    assert_eq!((&shown["forked"], &shown["sizes"]), (&true.into(), &serde_json::json!([5, 5])), "{shown}");
    let text = fs::read_to_string(&proof).unwrap();
    let other = auditor.path("other.fork");
    fs::write(&other, text.replacen("\\n5\\n", "\\n6\\n", 1)).unwrap();
    let refused = check(&other, &[]);
    assert_eq!(refused.code, 1, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stdout.starts_with("no fork is shown: "), "{}", refused.stdout);
    fs::write(&other, "{}").unwrap();
    assert_eq!(check(&other, &[]).code, 3);
    assert_eq!(check(&auditor.path("nowhere"), &[]).code, 3);

    // A leaf is changed on its way.
    let tile = twin.path("state/log/tile/entries/000.p/5");
    copy(&home.path("state/log"), &twin.path("state/log"));
    let mut bytes = fs::read(&tile).unwrap();
    bytes[100] ^= 1;
    fs::write(&tile, bytes).unwrap();
    let fresh = Auditor::of(&home);
    let differ = "leaves-differ: the leaves 0 to 4 that are shown are not those of the tree: ";
    fresh.finds(&public(&twin), 1, differ);
    // Another log in its place, and one that is signed by nobody.
    let stranger = Home::new();
    stranger.grow();
    auditor.finds(&public(&stranger), 1, "wrong-origin: a checkpoint of `");
    let checkpoint = home.checkpoint().replacen("\n5\n", "\n6\n", 1);
    fs::write(twin.path("state/log/checkpoint"), checkpoint).unwrap();
    auditor.finds(&public(&twin), 1, "checkpoint-forged: ");
}

#[test]
fn what_cannot_be_read_or_meant_has_its_exit_code() {
    let home = Home::new();
    home.grow();
    let auditor = Auditor::of(&home);
    auditor.finds(&format!("http://127.0.0.1:{}/log", free_port()), 2, "incomplete: `127.0.0.1:");
    auditor.finds(&home.file("nothing"), 2, "incomplete: `");
    let log = public(&home);
    let trust = auditor.path("trust.policy");
    for (args, expected) in [
        (&["monitor", "--trust", &trust][..], "<LOG>"),
        (&["monitor", &log], "--trust"),
        (&["monitor", &log, "--trust", &trust, "--every", "10"], "expected a number and its unit"),
        (&["monitor", &log, "--trust", &trust, "--every", "1s", "--once"], "cannot be used with"),
        (&["monitor", &log, "--trust", &trust, "--check-fork", "f"], "cannot be used with"),
        (&["monitor", &log, "--trust", &trust, "--origin", "other"], "names no log `other`"),
        (&["monitor", "http://me:secret@127.0.0.1/", "--trust", &trust], "no credential is needed here"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 64, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{expected} in {}", ran.stderr);
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    }
    assert_eq!(run(&["monitor", &log, "--trust", &auditor.path("nothing")]).code, 3);
    fs::write(auditor.path("no.policy"), "quorum some\n").unwrap();
    assert_eq!(run(&["monitor", &log, "--trust", &auditor.path("no.policy")]).code, 3);

    // A state that cannot be used is told, set aside, and everything begins anew.
    auditor.finds(&log, 0, "3 leaves, 3 new");
    fs::write(auditor.path("state"), "{").unwrap();
    let told = auditor.finds(&log, 1, "state-unusable: the state `");
    assert!(
        told.stdout.contains("it is set aside") && told.stdout.contains("3 leaves, 3 new"),
        "{}",
        told.stdout
    );
    assert_eq!(fs::read_to_string(auditor.path("state.unusable-1")).unwrap(), "{");
    auditor.finds(&log, 0, "3 leaves, 0 new");
    fs::write(auditor.path("state.leaves"), "no").unwrap();
    auditor.finds(&log, 1, "all leaves are read again\n");
    auditor.finds(&log, 0, "3 leaves, 0 new");
}

#[test]
fn a_monitor_that_goes_on_tells_what_is_new_and_nothing_else() {
    let home = Home::new();
    home.grow();
    let auditor = Auditor::of(&home);
    let (trust, state, log) = (auditor.path("trust.policy"), auditor.path("state"), public(&home));
    let args = ["monitor", &log, "--trust", &trust, "--state", &state, "--every", "1s", "--json"];
    let mut process = Process::start(portcullis(&args), auditor.path("errors").into());
    let mut lines = process.lines().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let first = lines.next().unwrap();
    assert_eq!((&first["record"], &first["size"], &first["leaves"]), (&"look".into(), &3.into(), &3.into()));
    let busy = auditor.look(&log, &[]);
    assert_eq!(busy.code, 3, "{}", busy.stdout);
    assert!(busy.stderr.contains("another process has the state"), "{}", busy.stderr);
    home.grow();
    let begun = SystemTime::now();
    // The next line is of the next leaves: the looks between had nothing to tell.
    let second = lines.next().unwrap();
    assert_eq!((&second["size"], &second["leaves"]), (&5.into(), &2.into()), "{second}");
    assert!(begun.elapsed().unwrap() < Duration::from_secs(30));
    fs::write(home.path("state/log/checkpoint"), "no").unwrap();
    let third = lines.next().unwrap();
    assert_eq!(
        third["incomplete"],
        "what is shown is not a checkpoint: line 1, byte 0: the text ends without a newline",
        "{third}"
    );
    drop(process);
    auditor.finds(&log, 2, "incomplete: what is shown is not a checkpoint");
}
