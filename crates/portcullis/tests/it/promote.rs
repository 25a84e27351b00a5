//! `portcullis policy promote`, `rollback` and `versions`: drafts of requests become part of a bundle, and go again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{Ran, bundle_copy};
use crate::daemon::State;

const REQUEST: &str = "Files may only be written under /storage.\n";

/// A state folder, a bundle of its own, and drafts for it.
struct Office {
    state: State,
    bundle: tempfile::TempDir,
    drafts: tempfile::TempDir,
}

impl Office {
    fn new() -> Self {
        crate::engine::put_into(Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().unwrap());
        let bundle = bundle_copy();
        // They write files elsewhere, which the draft is about.
        fs::remove_file(bundle.path().join("tests/permissive.md")).unwrap();
        Self { state: State::new(), bundle, drafts: tempfile::tempdir().unwrap() }
    }

    fn draft(&self, name: &str, request: &str) -> PathBuf {
        let (file, draft) = (self.drafts.path().join(format!("{name}.md")), self.drafts.path().join(name));
        fs::write(&file, request).unwrap();
        let made = self.policy(&[
            "compile",
            file.to_str().unwrap(),
            "--accept-defaults",
            "-o",
            draft.to_str().unwrap(),
        ]);
        assert!(made.code == 0 || made.code == 2, "{}{}", made.stdout, made.stderr);
        draft
    }

    /// A command about the bundle.
    fn policy(&self, args: &[&str]) -> Ran {
        let bundle = self.bundle.path().to_str().unwrap();
        self.state.run(&[&["policy"], args, &["--bundle", bundle]].concat())
    }

    fn promote(&self, draft: &Path, more: &[&str]) -> Ran {
        self.policy(&[&["promote", draft.to_str().unwrap()], more].concat())
    }

    fn files(&self) -> Vec<String> {
        let files = portcullis_session::bundle_dir::read_files(self.bundle.path()).unwrap();
        files.into_iter().map(|(path, text)| format!("{path} {}", String::from_utf8_lossy(&text))).collect()
    }

    fn refused(&self, draft: &Path, code: i32, why: &str) {
        let before = self.files();
        let ran = self.promote(draft, &[]);
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(self.files(), before);
        assert!(self.policy(&["versions", "--json"]).json().is_empty());
    }
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_draft_that_narrows_is_promoted_recorded_and_put_back_by_a_person() {
    let office = Office::new();
    let draft = office.draft("folders", REQUEST);
    let before = office.files();
    let checked = office.promote(&draft, &["--check"]);
    ok(&checked);
    assert!(
        checked.stdout.contains("narrows") && checked.stdout.contains("nothing was written"),
        "{}",
        checked.stdout
    );
    assert_eq!(office.files(), before);

    let promoted = office.promote(&draft, &[]);
    ok(&promoted);
    assert!(promoted.stdout.contains("as version 2"), "{}", promoted.stdout);
    assert!(office.files().iter().any(|file| file.starts_with("programs/folders-")));
    ok(&office.policy(&["test"]));
    let again = office.promote(&draft, &[]);
    assert!(again.code == 0 && again.stdout.contains("already"), "{}{}", again.stdout, again.stderr);

    // The record says who did what, and with what.
    let versions = office.policy(&["versions", "--json"]).json();
    let [new, old] = versions.as_slice() else { panic!("{versions:?}") };
    assert_eq!(
        (&new["number"], &new["by"], &new["in_force"]),
        (&2.into(), &"local-approver".into(), &true.into())
    );
    assert_eq!(
        (&old["number"], &old["by"], &old["what"]),
        (&1.into(), &Value::Null, &"as it was found".into())
    );
    let run = new["recorded_in"].as_str().unwrap();
    let exported = office.state.run(&["export", run]);
    ok(&exported);
    let said = exported.stdout;
    for part in ["promotes the draft", "request_sha256", "tests_sha256", "narrows", "programs/folders-"] {
        assert!(said.contains(part), "{part}: {said}");
    }

    // Putting back takes a rule out, which may allow more: a person says so, of what was shown.
    let waits = office.policy(&["rollback"]);
    assert_eq!(waits.code, 2, "{}{}", waits.stdout, waits.stderr);
    assert!(waits.stdout.contains("loosened") && waits.stdout.contains("--widen"), "{}", waits.stdout);
    let unseen = office.policy(&["rollback", "--widen", "stopped ordinary work"]);
    assert_eq!(unseen.code, 64, "{}", unseen.stderr);
    let other = office.policy(&["rollback", "--widen", "stopped ordinary work", "--shown", "0123456789ab"]);
    assert_eq!(other.code, 1, "{}", other.stderr);
    assert_ne!(office.files(), before);
    let digest = old["bundle"].as_str().unwrap();
    let back = office.policy(&["rollback", "--widen", "stopped ordinary work", "--shown", digest, "--json"]);
    ok(&back);
    assert_eq!(back.json()[0]["version"], 3);
    assert_eq!(office.files(), before);
    let forth = office.policy(&["rollback", "--to", "2"]);
    ok(&forth);
    assert!(forth.stdout.contains("narrows"), "{}", forth.stdout);
    assert_eq!(office.policy(&["versions", "--json"]).json().len(), 4);
}

#[test]
fn sequences_and_approvals_of_a_role_narrow_as_well() {
    let office = Office::new();
    let request = "At most three emails to the same recipient per day.\n\
                   Writing a file needs approval from a manager.\n";
    let draft = office.draft("mail", request);
    let promoted = office.promote(&draft, &["--json"]);
    ok(&promoted);
    let record = &promoted.json()[0];
    assert_eq!((&record["result"], &record["widening"]), (&"promoted".into(), &Value::Array(Vec::new())));
    let settings = fs::read_to_string(office.bundle.path().join("portcullis.toml")).unwrap();
    assert!(settings.contains("[[approvals.rule]]") && settings.contains("manager"), "{settings}");
    ok(&office.policy(&["test"]));
}

#[test]
fn what_may_be_wrong_with_a_draft_keeps_it_out() {
    let office = Office::new();
    let draft = office.draft("folders", REQUEST);
    let program = fs::read_dir(draft.join("programs")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&program).unwrap();

    fs::write(&program, text.replace("deny", "hold")).unwrap();
    office.refused(&draft, 1, "was changed since the draft was compiled");
    // Also where the record was changed with it.
    let record = fs::read_to_string(draft.join("draft.json")).unwrap();
    let inner = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    fs::write(draft.join("draft.json"), record.replace(&inner(&text), &inner(&text.replace("deny", "hold"))))
        .unwrap();
    office.refused(&draft, 1, "does not compile to this draft");
    fs::write(&program, &text).unwrap();
    fs::write(draft.join("draft.json"), &record).unwrap();
    fs::write(draft.join("programs/more.star"), "").unwrap();
    office.refused(&draft, 1, "was added since");
    fs::remove_file(draft.join("programs/more.star")).unwrap();

    let open = office.draft("open", "Large refunds need approval.\n");
    office.refused(&open, 2, "open");

    // Something else of that name.
    let there = office.bundle.path().join("programs").join(program.file_name().unwrap());
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::write(&there, "def check(action, run, principal):\n    return None\n").unwrap();
    office.refused(&draft, 1, "has another `programs/folders-");
    fs::remove_file(&there).unwrap();

    // A test of the bundle that needs what the draft stops.
    let test = "# Own\n\n```run\ncall perform_calculation {\"expression\": \"1\"} => deny\n```\n";
    fs::write(office.bundle.path().join("tests/own.md"), test).unwrap();
    office.refused(&draft, 1, "does not hold with the draft in the bundle");
    fs::remove_file(office.bundle.path().join("tests/own.md")).unwrap();

    // A tool that the bundle does not have.
    let tools = office.drafts.path().join("tools.json");
    fs::write(&tools, r#"[{"name": "issue_refund", "arguments": {"amount": {"type": "number"}}}]"#).unwrap();
    let (file, foreign) = (office.drafts.path().join("foreign.md"), office.drafts.path().join("foreign"));
    fs::write(&file, "Only support leads may issue refunds.\n").unwrap();
    let (tools, file) = (tools.to_str().unwrap(), file.to_str().unwrap());
    ok(&office.policy(&["compile", file, "--spec", tools, "-o", foreign.to_str().unwrap()]));
    office.refused(&foreign, 1, "lists no tool `issue_refund`");
    ok(&office.promote(&draft, &[]));
}

#[test]
fn without_the_approvers_token_nothing_is_promoted() {
    let office = Office::new();
    let draft = office.draft("folders", REQUEST);
    ok(&office.state.run(&["runs", "list"]));
    let token = office.state.home().join("credentials/approver.token");
    assert!(token.exists());
    fs::remove_file(&token).unwrap();
    let before = office.files();
    let ran = office.promote(&draft, &[]);
    assert_ne!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(office.files(), before);
}

#[test]
fn in_a_folder_of_git_the_commit_is_left_to_the_person() {
    let office = Office::new();
    let draft = office.draft("folders", REQUEST);
    fs::create_dir(office.bundle.path().join(".git")).unwrap();
    let promoted = office.promote(&draft, &[]);
    ok(&promoted);
    assert!(promoted.stdout.contains("the commit is left to you"), "{}", promoted.stdout);
    assert!(office.files().iter().any(|file| file.starts_with("programs/folders-")));
    let listed = office.policy(&["versions"]);
    assert!(listed.stdout.contains("git log"), "{}", listed.stdout);
    let back = office.policy(&["rollback"]);
    assert_eq!(back.code, 1, "{}", back.stderr);
    assert!(back.stderr.contains("git restore"), "{}", back.stderr);
}
