//! What was predicted beside what was seen.

use std::path::PathBuf;

use super::*;
use crate::observed::{Ended, FileChange, Files, Programs, Refused, Seen};
use crate::profile::Level;

const GROUNDS: Grounds<'_> = Grounds { workspace: Some("/home/u/p"), home: Some("/home/u") };

fn seen() -> Observed {
    Observed {
        level: Level::Namespace,
        profile: "project".into(),
        ended: Ended::Status(0),
        wall_ms: 1,
        cpu_ms: 1,
        survivors: 0,
        limits: Vec::new(),
        put_back: Vec::new(),
        programs: Programs::default(),
        files: Files { seen: Seen::All, changes: Vec::new() },
        connections: Vec::new(),
        connections_left_out: 0,
        refused: Refused::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

/// What is known of a path, as far as these tests need it.
fn path(name: &str) -> Resource {
    let is = |part: &str| name.split('/').any(|name| name == part);
    Resource::new(ResourceKind::Path, name)
        .with("temporary", name.starts_with("/tmp/"))
        .with("control", is(".git") || is(".claude") || is(".vscode"))
        .with("secret", is(".ssh") || is(".env"))
        .with("gate", is("portcullis"))
        .with("device", name == "/dev/null")
}

fn write(name: &str) -> Effect {
    Effect::new(Verb::Write, Resource::new(ResourceKind::Path, name).with("resolved", true))
}

fn delete(name: &str) -> Effect {
    Effect::new(Verb::Delete, Resource::new(ResourceKind::Path, name).with("resolved", true))
}

fn make() -> Effect {
    Effect::new(Verb::Execute, Resource::new(ResourceKind::Unknown, "shell"))
}

fn of_change(predicted: &[Effect], how: FileChangeHow, name: &str) -> Option<MoreKind> {
    let change = FileChange { path: PathBuf::from(name), how, bytes: None, digest: None };
    let observed = Observed { files: Files { seen: Seen::All, changes: vec![change] }, ..seen() };
    let found = more(&Prediction::of(predicted), &observed, GROUNDS, &path);
    assert!(found.len() <= 1, "{found:?}");
    found.first().map(|more| more.kind)
}

#[test]
fn what_builds_and_git_write_is_no_more() {
    use FileChangeHow::{Changed, Deleted, Made};
    for (how, name) in [
        (Made, "/home/u/p/target/debug/app"),
        (Made, "/home/u/p/src/new.rs"),
        (Deleted, "/home/u/p/old.rs"),
        (Made, "/tmp/x/.git/hooks/pre-commit"),
        (Made, "/home/u/.cargo/registry/index/x"),
        (Changed, "/home/u/.cargo/.package-cache"),
        (Made, "/home/u/.npm/_cacache/x"),
        (Made, "/home/u/.cache/pip/x"),
        (Made, "/home/u/p/node_modules/pad/.vscode/settings.json"),
        (Made, "/home/u/p/.git/objects/ab/c"),
        (Deleted, "/home/u/p/.git/index.lock"),
        (Changed, "/home/u/p/.git/refs/heads/main"),
        (Changed, "/home/u/p/.git/worktrees/w/index"),
        (Changed, "/home/u/p/.git/modules/m/HEAD"),
        (Changed, "/dev/null"),
    ] {
        assert_eq!(of_change(&[make()], how, name), None, "{name}");
    }
}

#[test]
fn what_git_brings_is_no_more_unless_something_else_may_have_written_it() {
    let git = || {
        let git = Resource::new(ResourceKind::Command, "git").with("known", true);
        Effect::new(Verb::Execute, git)
    };
    for name in [
        "/home/u/p/.vscode/settings.json",
        "/home/u/p/.claude/x",
        "/home/u/p/.git/config",
        "/home/u/p/.w/.git",
        "/home/u/p/.git/worktrees/w/commondir",
    ] {
        assert_eq!(of_change(&[git()], FileChangeHow::Changed, name), None, "{name}");
        assert_eq!(
            of_change(&[git(), make()], FileChangeHow::Changed, name),
            Some(MoreKind::Control),
            "{name}"
        );
    }
    let hook = "/home/u/p/.git/hooks/pre-commit";
    assert_eq!(of_change(&[git()], FileChangeHow::Made, hook), Some(MoreKind::Control));
}

#[test]
fn what_leads_out_of_the_work_is_more() {
    use FileChangeHow::{Changed, Deleted, Made};
    use MoreKind::{Control, Outside, Secret};
    for (how, name, kind) in [
        (Made, "/home/u/x", Outside),
        (Made, "/home/u/project2/x", Outside),
        (Made, "/home/u/p2", Outside),
        (Changed, "/home/u/.cargo/bin/cargo", Outside),
        (Changed, "/home/u/.cargo/config.toml", Outside),
        (Deleted, "/srv/data/x", Outside),
        (Changed, "/home/u/.ssh/authorized_keys", Secret),
        (Changed, "/home/u/p/.env", Secret),
        (Made, "/tmp/portcullis/credentials", Secret),
        (Made, "/home/u/p/.git/hooks/pre-commit", Control),
        (Changed, "/home/u/p/.git/config", Control),
        (Changed, "/home/u/p/.git/modules/m/config", Control),
        (Made, "/home/u/p/.git/modules/m/hooks/x", Control),
        (Made, "/home/u/p/.git/objects/info/alternates", Control),
        (Made, "/home/u/p/.git/info/attributes", Control),
        (Deleted, "/home/u/p/.git/HEAD", Control),
        (Changed, "/home/u/p/.claude/settings.json", Control),
    ] {
        assert_eq!(of_change(&[make()], how, name), Some(kind), "{name}");
    }
}

#[test]
fn what_was_predicted_is_no_more_with_what_is_below_and_not_the_other_way_round() {
    use FileChangeHow::{Changed, Deleted, Made};
    let predicted = [write("/srv/site"), delete("/srv/old"), write("/home/u/p/.env")];
    for (how, name, more) in [
        (Made, "/srv/site", false),
        (Changed, "/srv/site/a/b", false),
        (Deleted, "/srv/old/x", false),
        (Changed, "/home/u/p/.env", false),
        (Made, "/srv/site2", true),
        (Made, "/srv", true),
        (Deleted, "/srv/site/a", true),
        (Made, "/srv/old/x", true),
    ] {
        assert_eq!(of_change(&predicted, how, name).is_some(), more, "{name}");
    }
    // A folder of the project does not stand for what something obeys in it.
    let whole = [write("/home/u/p")];
    assert_eq!(of_change(&whole, Made, "/home/u/p/.git/hooks/x"), Some(MoreKind::Control));
    assert_eq!(of_change(&whole, Changed, "/home/u/p/.env"), Some(MoreKind::Secret));
    let hooks = [Effect::new(Verb::Write, path("/home/u/p/.git/hooks"))];
    assert_eq!(of_change(&hooks, Made, "/home/u/p/.git/hooks/x"), None);
    // A pattern covers the folder that it is in, and what could not be resolved covers nothing.
    let pattern = Resource::new(ResourceKind::Path, "/srv/logs/*.log").with("glob", true);
    let pattern = [Effect::new(Verb::Write, pattern)];
    assert_eq!(of_change(&pattern, Made, "/srv/logs/a.log"), None);
    assert_eq!(of_change(&pattern, Made, "/srv/b.log"), Some(MoreKind::Outside));
    assert_eq!(of_change(&[write("$X/site")], Made, "/srv/site"), Some(MoreKind::Outside));
    assert_eq!(of_change(&[write("/")], Made, "/srv/site"), Some(MoreKind::Outside));
}

#[test]
fn hosts_are_more_where_nothing_named_them() {
    let host =
        |name: &str| Effect::new(Verb::Send, Resource::new(ResourceKind::Host, name).with("resolved", true));
    let whole = Prediction::of(&[host("docs.rs")]);
    let open = Prediction::of(&[host("docs.rs"), make()]);
    assert!(whole.is_whole() && !open.is_whole() && !Prediction::unread().is_whole());
    let of = |prediction: &Prediction, name: &str, verdict: ConnectionVerdict| {
        let (host, address) = (name.to_owned(), None);
        let connection = Connection { host, port: 443, address, sent: 0, received: 0, verdict };
        let found = more_of_connection(prediction, &connection);
        found.first().map(ToString::to_string)
    };
    let refused = || ConnectionVerdict::Refused("not named".into());
    assert_eq!(of(&whole, "DOCS.rs.", ConnectionVerdict::Permitted), None);
    let reached = Some("connected to evil.example:443".to_owned());
    assert_eq!(of(&whole, "evil.example", ConnectionVerdict::Permitted), reached);
    // What runs programs of its own reaches what its profile names, and that was meant.
    assert_eq!(of(&open, "static.crates.io", ConnectionVerdict::Permitted), None);
    for prediction in [&whole, &open, &Prediction::unread()] {
        let tried = Some("tried to connect to evil.example:443".to_owned());
        assert_eq!(of(prediction, "evil.example", refused()), tried);
    }
    assert_eq!(of(&open, "docs.rs", refused()), None, "it was predicted, and the profile said no");
}

#[test]
fn attempts_put_back_files_and_limits() {
    let attempt = |what, target: &str| Attempt { what, target: target.to_owned(), times: 3 };
    let attempts = vec![
        attempt(AttemptWhat::Read, "/home/u/.ssh/id"),
        attempt(AttemptWhat::Read, "/home/u/.claude/settings.json"),
        attempt(AttemptWhat::Write, "/home/u/.claude/settings.json"),
        attempt(AttemptWhat::Read, "/home/u/.pdbrc"),
        attempt(AttemptWhat::Write, "/usr/lib/x"),
        attempt(AttemptWhat::Connect, "169.254.169.254:80"),
        attempt(AttemptWhat::Connect, "169.254.169.2540"),
        attempt(AttemptWhat::Connect, "10.0.0.1:53"),
        attempt(AttemptWhat::Call, "io_uring_setup"),
    ];
    let put_back = |name: &str, how| PutBack { path: PathBuf::from(name), how };
    let observed = Observed {
        refused: Refused { seen: Seen::All, attempts },
        put_back: vec![
            put_back("/home/u/p/.envrc", PutBackHow::Restored),
            put_back("/home/u/p/.git/config", PutBackHow::Restored),
            put_back("/home/u/p/.git/hooks/x", PutBackHow::Failed("busy".into())),
        ],
        limits: vec![Limit::Wall],
        ..seen()
    };
    let predicted = [write("/home/u/p/.git/config"), write("/home/u/p/.git/hooks/x")];
    let found = more(&Prediction::of(&predicted), &observed, GROUNDS, &path);
    let found: Vec<String> = found.iter().map(|more| format!("{} {more}", more.kind.as_str())).collect();
    assert_eq!(
        found,
        [
            "attempt tried to connect to 169.254.169.254:80",
            "attempt tried to read /home/u/.ssh/id",
            "attempt tried to write /home/u/.claude/settings.json",
            "protected changed, and it could not be put back: /home/u/p/.git/hooks/x",
            "protected changed, and it was restored: /home/u/p/.envrc",
            "limit reached `wall_seconds`",
        ]
    );
}

#[test]
fn without_a_workspace_the_attribute_decides() {
    let change = |name: &str| FileChange {
        path: PathBuf::from(name),
        how: FileChangeHow::Made,
        bytes: None,
        digest: None,
    };
    let observed = Observed {
        files: Files { seen: Seen::All, changes: vec![change("/w/a"), change("/x/a")] },
        ..seen()
    };
    let inside = |name: &str| path(name).with("inside", name.starts_with("/w/"));
    let found = more(&Prediction::default(), &observed, Grounds::default(), &inside);
    assert_eq!(found.iter().map(|more| more.what.as_str()).collect::<Vec<_>>(), ["/x/a"]);
}
