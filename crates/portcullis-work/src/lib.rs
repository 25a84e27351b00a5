//! Checks what work items are measured by.
//!
//! A [`Checker`] belongs to the harness: the agent neither runs nor sees it. Commands run contained, from an environment
//! of the harness's own, and their real exit status counts. Where nothing can be contained, or a file that a criterion
//! pins is not as it was, the result is an error and not a failure: it says nothing about the work.
//!
//! Everything here blocks, a command for as long as it may take. Call it from a thread that may.

mod command;
mod contract;
mod database;
mod file;
mod forge;
mod git;
mod http;
mod json;
mod place;
pub mod postcondition;
mod report;
mod web;
mod wording;

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use portcullis_contain::Contained;
use portcullis_core::work::{Came, Check, CheckResult, Criterion, PinnedTo, Stated};

pub use self::command::DEADLINE_SECONDS;
pub use self::contract::unreadable;
use self::place::Place;
pub use self::wording::may_say_done;

/// Whether a call of this tool succeeded since the item was started.
pub type Succeeded<'a> = &'a (dyn Fn(&str) -> bool + Send + Sync);

/// The token for the API of a forge at this URL, if there is one, or why it cannot be read. It is the daemon's owner who
/// says which goes where.
pub type TokenOf<'a> = &'a (dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync);

/// What came of a check, and what was found.
type Found = Result<String, NotPassed>;

/// Why a criterion did not pass.
#[derive(Debug)]
enum NotPassed {
    /// It does not hold.
    Fail(String),
    /// It could not be checked.
    Error(String),
    /// It was not known in time.
    Timeout(String),
}

fn fail<T>(why: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::Fail(why.into()))
}

fn error<T>(why: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::Error(why.into()))
}

/// Checks criteria in a folder.
pub struct Checker<'a> {
    /// Runs commands. Without it, what needs one is an error.
    pub contained: Option<&'a Contained>,
    /// The folder in which the agent works.
    pub workspace: Option<PathBuf>,
    /// The home folder of the user, where toolchains are.
    pub home: Option<PathBuf>,
    /// What is known of the run's calls.
    pub succeeded: Succeeded<'a>,
    /// The latest reply of the run.
    pub reply: Option<String>,
    /// Tokens for forges.
    pub token_of: TokenOf<'a>,
}

impl fmt::Debug for Checker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Checker<'_> {
    /// Checks all criteria, in their order: an earlier one may make what a later one reads, such as a report of tests.
    #[must_use]
    pub fn check_all(&self, criteria: &[Criterion]) -> Vec<CheckResult> {
        criteria.iter().map(|criterion| self.check(criterion)).collect()
    }

    /// Checks one criterion.
    #[must_use]
    pub fn check(&self, criterion: &Criterion) -> CheckResult {
        let begun = Instant::now();
        let found = self.pinned(criterion).and_then(|()| self.holds(&criterion.check));
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (came, detail) = match found {
            Ok(found) => (Came::Pass, found),
            Err(NotPassed::Fail(why)) => (Came::Fail, why),
            Err(NotPassed::Error(why)) => (Came::Error, why),
            Err(NotPassed::Timeout(why)) => (Came::Timeout, why),
        };
        CheckResult { came, detail, took_ms }
    }

    fn place(&self) -> Place<'_> {
        Place { workspace: self.workspace.as_deref() }
    }

    /// Whether the files that the criterion names are as they were. Where one is not, nothing else of it is looked at: a
    /// test that the agent has changed says nothing about the work, whatever it says.
    fn pinned(&self, criterion: &Criterion) -> Result<(), NotPassed> {
        for pinned in &criterion.pinned {
            let content = match self.place().read(&pinned.path) {
                Ok(content) => content,
                Err(NotPassed::Fail(why)) => return fail(format!("pinned file: {why}")),
                Err(other) => return Err(other),
            };
            let (same, as_what) = match &pinned.to {
                PinnedTo::Sha256(digest) => {
                    (file::sha256(&content) == *digest.as_bytes(), "its digest".to_owned())
                }
                PinnedTo::Commit(commit) => {
                    (self.git(None)?.has_file(commit, &pinned.path, &content)?, format!("commit {commit}"))
                }
            };
            if !same {
                return fail(format!("pinned file: `{}` is not as in {as_what}", pinned.path));
            }
        }
        Ok(())
    }

    fn holds(&self, check: &Check) -> Found {
        match check {
            Check::CommandExitZero { command, directory, timeout_seconds } => {
                self.command(command, directory.as_deref(), *timeout_seconds)
            }
            Check::FileExists { path } => self.place().exists(path),
            Check::FileContains { path, text } => file::contains(&self.place().read(path)?, path, text),
            Check::FileHash { path, sha256 } => file::has_hash(&self.place().read(path)?, path, sha256),
            Check::JsonPath { path, pointer, equals } => {
                json::has_value(&self.place().read(path)?, path, pointer, equals)
            }
            Check::GitCommitExists { repository, commit, branch } => {
                self.git(repository.as_deref())?.has_commit(commit, branch.as_deref())
            }
            Check::GitClean { repository } => self.git(repository.as_deref())?.is_clean(),
            Check::GitDiffTouches { repository, since, paths } => {
                self.git(repository.as_deref())?.touches(since, paths)
            }
            Check::TestReport { path, tests_min } => {
                report::passes(&self.place().read(path)?, path, *tests_min)
            }
            Check::ToolCallSucceeded { tool } => match (self.succeeded)(tool) {
                true => Ok(format!("a call of `{tool}` succeeded")),
                false => fail(format!("no call of `{tool}` succeeded since the item was started")),
            },
            Check::SqlReturns { path, query, rows } => {
                database::returns(&self.place().find(path)?, path, query, rows)
            }
            Check::HttpStatus { url, status, redirects, private, timeout_seconds } => {
                http::answers(url, *status, *redirects, *private, *timeout_seconds)
            }
            Check::PrExists(request) => forge::holds(self, request, false),
            Check::PrMerged(request) => forge::holds(self, request, true),
            Check::Contract { statement, of } => contract::holds(statement, &self.text(of)?),
        }
    }

    /// The text that a statement is about.
    fn text(&self, of: &Stated) -> Result<String, NotPassed> {
        match of {
            Stated::Path(path) => String::from_utf8(self.place().read(path)?)
                .or_else(|_| fail(format!("`{path}` is not UTF-8"))),
            Stated::Reply(_) => match &self.reply {
                Some(reply) => Ok(reply.clone()),
                None => error("no reply of this run is known; they are told over `/v1` and by the hook"),
            },
        }
    }
}
