//! A project with a repository in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_contain::{Contained, Level, probe};
use portcullis_core::work::{Came, CheckResult, Criterion};
use portcullis_work::Checker;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::expected::is_skipped;

pub(super) struct World {
    folder: TempDir,
    contained: Contained,
    /// Tools of which a call succeeded.
    pub(super) called: Vec<&'static str>,
    /// The latest reply of the run.
    pub(super) reply: Option<String>,
    /// URLs of forges, with the token for each.
    pub(super) tokens: Vec<(String, &'static str)>,
}

impl World {
    pub(super) fn new() -> Self {
        let contained = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_work-helper"))).unwrap();
        // Not among temporary files, which every command may write.
        let world = Self {
            folder: tempfile::tempdir_in("/var/tmp").unwrap(),
            contained,
            called: Vec::new(),
            reply: None,
            tokens: Vec::new(),
        };
        std::fs::create_dir(world.project()).unwrap();
        world
    }

    /// Whether commands can be contained here at all.
    pub(super) fn contains(&self) -> bool {
        !is_skipped(Level::Process, probe(&self.contained).unwrap().reached, "")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    /// A folder beside the project, whose name begins like the project's.
    pub(super) fn outside(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project-of-others")
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
        let ran = Command::new("git").args(who).args(arguments).current_dir(self.project()).output().unwrap();
        assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// A commit of all that there is, and of nothing where there is nothing.
    pub(super) fn commit(&self) -> String {
        self.git(&["init", "--quiet"]);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "all"]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(super) fn check(&self, criterion: Value) -> CheckResult {
        let criteria = Criterion::read_all("criteria", &json!([criterion])).unwrap();
        let succeeded = |tool: &str| self.called.contains(&tool);
        let token_of = |url: &str| {
            let found = self.tokens.iter().find(|(of, _)| of == url);
            Ok(found.map(|(_, token)| (*token).to_owned()))
        };
        let checker = Checker {
            contained: Some(&self.contained),
            workspace: Some(self.project()),
            home: None,
            succeeded: &succeeded,
            reply: self.reply.clone(),
            token_of: &token_of,
        };
        checker.check_all(&criteria).remove(0)
    }

    /// What came of it, and that it says so.
    #[track_caller]
    pub(super) fn expect(&self, criterion: Value, came: Came, says: &str) {
        let result = self.check(criterion.clone());
        assert!(result.came == came && result.detail.contains(says), "{criterion} gave {result:?}");
    }
}
