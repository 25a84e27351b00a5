//! The transparency log as a user meets it: archives, policies, keys, its end, and what a check of the store finds.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::command::{Ran, bundle_copy, project, run};

pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let state = self.path("state");
        let mut all = vec!["--home", state.to_str().unwrap()];
        all.extend(args);
        run(&all)
    }

    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}\n{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Records a run of the simulator; its id.
    pub(crate) fn simulate(&self) -> String {
        let ran = self.ok(&["simulate", "--plan", "Calculation Task"]);
        ran.stdout.lines().rev().find_map(|line| line.strip_prefix("run ")).unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn policy(&self) -> String {
        let text = self.ok(&["log", "policy", "--remember"]).stdout;
        std::fs::write(self.path("trust.policy"), text).unwrap();
        self.file("trust.policy")
    }
}

/// The files of an archive.
pub(crate) fn unpack(path: &str) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    (0..archive.len())
        .map(|index| {
            let mut file = archive.by_index(index).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (file.name().unwrap().into_owned(), bytes)
        })
        .collect()
}

pub(crate) fn pack(path: &Path, files: &[(String, Vec<u8>)]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        archive.start_file(name.as_str(), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn an_archive_and_a_policy_are_all_that_a_stranger_needs() {
    let home = Home::new();
    let run_id = home.simulate();
    let archive = home.file("run.zip");
    let told = home.ok(&["export", &run_id, "-o", &archive]);
    assert!(told.stdout.contains("the log has its position in 3 leaves"), "{}", told.stdout);
    let policy = home.policy();
    // Another program on another machine: no state folder.
    let valid = run(&["verify", &archive, "--trust", &policy]);
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    assert!(
        valid.stdout.starts_with("VALID\n") && valid.stdout.contains("    split-view  pass"),
        "{}",
        valid.stdout
    );
    let [json] = run(&["verify", &archive, "--trust", &policy, "--json"]).json().try_into().unwrap();
    assert_eq!((&json["status"], &json["log"]["tree_size"]), (&"VALID".into(), &3.into()));
    let alone = run(&["verify", &archive]);
    assert_eq!(alone.code, 2, "{}", alone.stdout);

    // The same files in a folder.
    let folder = home.path("folder");
    for (name, bytes) in unpack(&archive) {
        std::fs::create_dir_all(folder.join(&name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(&name), bytes).unwrap();
    }
    assert_eq!(run(&["verify", folder.to_str().unwrap(), "--trust", &policy]).code, 0);

    // Another log's key.
    let other = Home::new();
    other.simulate();
    other.ok(&["export", &other.simulate(), "-o", &other.file("run.zip")]);
    let invalid = run(&["verify", &archive, "--trust", &other.policy()]);
    assert_eq!(invalid.code, 1);
    assert!(invalid.stdout.starts_with("INVALID unknown-log\n  at `log/"), "{}", invalid.stdout);
}

#[test]
fn whoever_remembers_an_older_tree_is_shown_that_the_log_only_grew() {
    let home = Home::new();
    home.ok(&["export", &home.simulate(), "-o", &home.file("first.zip")]);
    let policy = home.policy();
    let later = home.simulate();
    home.ok(&["export", &later, "-o", &home.file("later.zip")]);
    let open = run(&["verify", &home.file("later.zip"), "--trust", &policy]);
    assert_eq!(open.code, 2);
    assert!(open.stdout.contains("no proof leads from the tree of 3 leaves to that of 5"), "{}", open.stdout);
    home.ok(&["export", &later, "-o", &home.file("later.zip"), "--trust", &policy]);
    let shown = run(&["verify", &home.file("later.zip"), "--trust", &policy]);
    assert!(shown.stdout.contains("    history     pass         2 trees"), "{}", shown.stdout);
}

#[test]
fn an_archive_that_programs_could_read_differently_is_refused() {
    let home = Home::new();
    let archive = home.file("run.zip");
    home.ok(&["export", &home.simulate(), "-o", &archive]);
    let policy = home.policy();
    let mut bytes = std::fs::read(&archive).unwrap();
    // Wherever it stands, the one name becomes the other.
    let name = b"README.txt";
    let export = b"run.export";
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(name.len()).position(|window| window == name) {
        bytes[at + found..at + found + name.len()].copy_from_slice(export);
        at += found + name.len();
    }
    std::fs::write(&archive, bytes).unwrap();
    let refused = run(&["verify", &archive, "--trust", &policy]);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    assert!(refused.stderr.contains("two files of one name"), "{}", refused.stderr);
}

/// Whole exports as files, which the second verifier answers too: `specs/vectors/archives`.
#[test]
fn every_archive_gets_its_answer() {
    let folder = project().join("specs/vectors/archives");
    let vectors = std::fs::read(folder.join("vectors.json")).unwrap();
    let vectors: Vec<serde_json::Value> = serde_json::from_slice(&vectors).unwrap();
    assert!(vectors.len() > 90, "{}", vectors.len());
    for vector in &vectors {
        let path = |key: &str| folder.join(vector[key].as_str().unwrap()).to_str().unwrap().to_owned();
        let ran = run(&["verify", &path("file"), "--trust", &path("policy"), "--json"]);
        assert_eq!(ran.code, vector["exit_code"], "{vector}\n{}{}", ran.stdout, ran.stderr);
        if ran.code == 3 {
            continue;
        }
        let [report] = ran.json().try_into().unwrap();
        assert_eq!(report["status"], vector["status"], "{vector}");
        // What is wrong with the run itself is said without its file, unless there are many.
        let mut failure = report["failure"].clone();
        if failure.is_null() {
            failure = report["log"]["failure"].clone();
        } else if failure["file"].is_null() {
            failure["file"] = "run.export".into();
        }
        for key in ["attack", "file", "line", "byte", "seq"] {
            assert_eq!(failure[key], vector["failure"][key], "{key} of {vector}");
        }
    }
}

#[test]
fn an_export_of_many_runs_shows_what_was_left_out() {
    let home = Home::new();
    let runs: Vec<String> = (0..4).map(|_| home.simulate()).collect();
    let archive = home.file("all.zip");
    home.ok(&["export", "--since", "2020-01-01", "-o", &archive]);
    let policy = home.policy();
    let valid = run(&["verify", &archive, "--trust", &policy]);
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    assert!(
        valid.stdout.contains("0 to 3 of writer") && valid.stdout.contains("4 exported"),
        "{}",
        valid.stdout
    );

    // A run is dropped: its number stands without it.
    let files = unpack(&archive);
    let dropped: Vec<_> = files.iter().filter(|(name, _)| !name.contains(&runs[1])).cloned().collect();
    pack(&home.path("dropped.zip"), &dropped);
    let open = run(&["verify", &home.file("dropped.zip"), "--trust", &policy]);
    assert_eq!(open.code, 2, "{}", open.stdout);
    assert!(open.stdout.contains("3 exported, 1 known by their heads alone, 0 missing"), "{}", open.stdout);

    // And its head with it: the number is missing.
    let holed: Vec<_> =
        dropped.iter().filter(|(name, _)| !name.starts_with("log/0000000004-")).cloned().collect();
    assert_eq!(dropped.len() - holed.len(), 2);
    pack(&home.path("holed.zip"), &holed);
    let open = run(&["verify", &home.file("holed.zip"), "--trust", &policy]);
    assert_eq!(open.code, 2, "{}", open.stdout);
    assert!(open.stdout.contains("1 missing"), "{}", open.stdout);

    // A leaf is changed.
    let mut forged = files;
    let (_, leaf) =
        forged.iter_mut().find(|(name, _)| name.starts_with("log/") && name.ends_with(".leaf")).unwrap();
    leaf[30] ^= 1;
    pack(&home.path("forged.zip"), &forged);
    assert_eq!(run(&["verify", &home.file("forged.zip"), "--trust", &policy]).code, 1);

    let none = home.run(&["export", "--since", "2099-01-01", "-o", &archive]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("no run was opened in that time"), "{}", none.stderr);
}

#[test]
fn keys_are_replaced_and_revoked_and_a_store_is_put_aside() {
    let home = Home::new();
    let run_id = home.simulate();
    home.ok(&["export", &run_id, "-o", &home.file("run.zip")]);
    let [before] = home.ok(&["log", "status", "--json"]).json().try_into().unwrap();
    let old = before["writers"][0]["key"].as_str().unwrap().to_owned();
    home.ok(&["log", "enrol", "--label", "second"]);
    home.ok(&["log", "revoke", old.split_at(8).0, "--reason", "lost"]);
    let [after] = home.ok(&["log", "status", "--json"]).json().try_into().unwrap();
    let states: Vec<_> =
        after["writers"].as_array().unwrap().iter().map(|writer| writer["state"].clone()).collect();
    assert!(states.contains(&"revoked".into()) && states.contains(&"current".into()), "{states:?}");
    // What was signed before counts.
    home.ok(&["export", &run_id, "-o", &home.file("run.zip")]);
    let policy = home.policy();
    assert_eq!(run(&["verify", &home.file("run.zip"), "--trust", &policy]).code, 0);
    let unknown = home.run(&["log", "revoke", "ffffffff", "--reason", "lost"]);
    assert_eq!(unknown.code, 1);

    let rotated = home.ok(&["log", "rotate", "--reason", "the year is over"]);
    let archive = rotated.stdout.split('`').nth(1).unwrap().to_owned();
    let aside = run(&["--home", &archive, "log", "status"]);
    assert!(aside.stdout.contains("frozen    the year is over"), "{}{}", aside.stdout, aside.stderr);
    assert_eq!(run(&["--home", &archive, "fsck"]).code, 0);
    // The next run begins another store under another name.
    home.ok(&["export", &home.simulate(), "-o", &home.file("new.zip")]);
    let [new] = home.ok(&["log", "status", "--json"]).json().try_into().unwrap();
    assert_ne!(new["origin"], before["origin"]);
    assert_ne!(new["key"], before["key"]);
}

#[test]
fn a_check_of_the_store_names_what_was_changed() {
    let home = Home::new();
    let run_id = home.simulate();
    home.ok(&["export", &run_id, "-o", &home.file("run.zip")]);
    let sound = home.ok(&["fsck"]);
    assert!(sound.stdout.contains("2 heads held against the store"), "{}", sound.stdout);

    // A tile.
    let tile = home.path("state/log/tile/entries/000.p/3");
    let whole = std::fs::read(&tile).unwrap();
    let mut changed = whole.clone();
    changed[40] ^= 1;
    std::fs::write(&tile, &changed).unwrap();
    let found = home.run(&["fsck"]);
    assert_eq!(found.code, 1, "{}", found.stdout);
    assert!(found.stdout.contains("the leaves lead to another root"), "{}", found.stdout);
    std::fs::write(&tile, whole).unwrap();

    // The store: a whole run replaced by a shorter one, every link of which holds.
    let database = rusqlite::Connection::open(home.path("state/ledger/ledger.db")).unwrap();
    database.execute("DELETE FROM payloads", []).unwrap();
    database.execute("DELETE FROM events WHERE key & 4294967295 > 5", []).unwrap();
    drop(database);
    let found = home.run(&["fsck"]);
    assert_eq!(found.code, 1, "{}", found.stdout);
    assert!(found.stdout.contains("the store does not have its event 14"), "{}", found.stdout);

    let nothing = Home::new();
    let ran = nothing.run(&["fsck"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("help:"), "{}", ran.stderr);
}

#[test]
fn a_bundle_can_have_every_effect_wait_for_the_log() {
    let home = Home::new();
    let bundle = bundle_copy();
    let main = bundle.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, format!("{text}\n[ledger]\nanchor = \"before-effects\"\n")).unwrap();
    let bundle = bundle.path().to_str().unwrap();
    let (plan, policy) = ("Email Policy Update", "Permissive Exploration Policy");
    let plan = ["simulate", "--plan", plan, "--policy", policy, "--continue", "--bundle", bundle];
    let went = home.run(&plan);
    assert_ne!(went.code, 3, "{}{}", went.stdout, went.stderr);
    // Nobody exported anything and no daemon ran: the run is in the log all the same.
    let [status] = home.ok(&["log", "status", "--json"]).json().try_into().unwrap();
    assert!(status["size"].as_u64() >= Some(2), "{status}");

    std::fs::remove_file(home.path("state/keys/log.key")).unwrap();
    let stopped = home.run(&plan);
    assert_eq!(stopped.code, 3, "{}", stopped.stdout);
    assert!(stopped.stderr.contains("not in the transparency log yet"), "{}", stopped.stderr);
}

#[test]
fn a_restored_copy_refuses_to_sign() {
    let home = Home::new();
    home.ok(&["export", &home.simulate(), "-o", &home.file("run.zip")]);
    let (ledger, backup) = (home.path("state/ledger"), home.path("backup"));
    std::fs::create_dir(&backup).unwrap();
    for name in ["ledger.db", "log.db"] {
        let from = rusqlite::Connection::open(ledger.join(name)).unwrap();
        from.execute("VACUUM INTO ?1", [backup.join(name).to_str().unwrap()]).unwrap();
    }
    home.ok(&["export", &home.simulate(), "-o", &home.file("run.zip")]);
    std::fs::remove_dir_all(&ledger).unwrap();
    std::fs::create_dir(&ledger).unwrap();
    std::fs::create_dir(ledger.join("writers")).unwrap();
    for name in ["ledger.db", "log.db"] {
        std::fs::copy(backup.join(name), ledger.join(name)).unwrap();
    }
    let run_id = home.simulate();
    let refused = home.run(&["export", &run_id, "-o", &home.file("run.zip")]);
    assert_eq!(refused.code, 3, "{}", refused.stdout);
    assert!(refused.stderr.contains("restored from an old copy"), "{}", refused.stderr);
    // Without the log's word there is an export all the same.
    home.ok(&["export", &run_id, "-o", &home.file("run.export")]);
    // Is there no newer copy, the store is put aside, and the next run begins another one.
    let rotated = home.ok(&["log", "rotate"]);
    assert!(rotated.stdout.contains("was put aside as it is"), "{}", rotated.stdout);
    home.ok(&["export", &home.simulate(), "-o", &home.file("new.zip")]);
}
