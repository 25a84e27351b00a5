//! Criteria: what has to hold before an item counts as done, as typed data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::WorkError;
use super::fields::Fields;
use super::pull_request::PullRequest;
use super::{CRITERIA_BYTES_MAX, CRITERIA_MAX, Covers};
use crate::id::{Digest, DigestBuilder, canonical_json};

/// Longest time a command may take, in seconds.
const COMMAND_SECONDS_MAX: u32 = 3_600;
/// Longest time a URL may take to answer, in seconds.
const URL_SECONDS_MAX: u32 = 120;
/// Most redirects that are followed.
const REDIRECTS_MAX: u32 = 10;
/// Most tests that a report can be asked to have.
const TESTS_MAX: u32 = 10_000_000;

/// One criterion. Paths that are not absolute are in the folder in which the agent works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
pub struct Criterion {
    /// What has to hold.
    #[serde(flatten)]
    pub check: Check,
    /// Files that have to be as they were before the criterion is checked: what it reads may be what the agent wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<Pinned>,
}

/// What has to hold.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "CriterionCheck")]
pub enum Check {
    /// A command ends with status 0. It is run by the harness, contained, without a shell.
    CommandExitZero {
        /// Program and arguments.
        command: Vec<String>,
        /// Where it runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        /// How long it may take, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_seconds: Option<u32>,
    },
    /// There is such a file.
    FileExists {
        /// The file.
        path: String,
    },
    /// A file has a text in it.
    FileContains {
        /// The file.
        path: String,
        /// The text.
        text: String,
    },
    /// A file has this content.
    FileHash {
        /// The file.
        path: String,
        /// SHA-256 of its content.
        sha256: Digest,
    },
    /// A JSON file has this value at a place.
    JsonPath {
        /// The file.
        path: String,
        /// The place, as a JSON pointer (RFC 6901).
        pointer: String,
        /// The value.
        equals: Value,
    },
    /// A repository has this commit.
    GitCommitExists {
        /// The repository.
        #[serde(skip_serializing_if = "Option::is_none")]
        repository: Option<String>,
        /// The commit: a name of it, or 4 to 64 hex digits.
        commit: String,
        /// A branch that has to have it.
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// A repository has no changes that are not committed.
    GitClean {
        /// The repository.
        #[serde(skip_serializing_if = "Option::is_none")]
        repository: Option<String>,
    },
    /// Something has changed in these paths since a commit.
    GitDiffTouches {
        /// The repository.
        #[serde(skip_serializing_if = "Option::is_none")]
        repository: Option<String>,
        /// The commit.
        since: String,
        /// The paths, in the repository; each has to be touched.
        paths: Vec<String>,
    },
    /// A report of tests, as JUnit XML, has none that failed.
    TestReport {
        /// The file.
        path: String,
        /// How many tests it has at least, skipped ones not counted.
        tests_min: u32,
    },
    /// A call of this run succeeded, after the item was started.
    ToolCallSucceeded {
        /// The tool.
        tool: String,
    },
    /// A query of a SQLite file returns these rows.
    SqlReturns {
        /// The file.
        path: String,
        /// The query.
        query: String,
        /// The rows, each a list of values.
        rows: Vec<Value>,
    },
    /// A URL answers a GET with this status.
    HttpStatus {
        /// The URL.
        url: String,
        /// The status.
        status: u32,
        /// How many redirects are followed; none where left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        redirects: Option<u32>,
        /// Names may lead to private addresses.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        private: bool,
        /// How long it may take, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_seconds: Option<u32>,
    },
    /// There is such a pull request, open or merged.
    PrExists(PullRequest),
    /// A pull request is merged.
    PrMerged(PullRequest),
    /// A statement of the contract language holds of a text.
    Contract {
        /// The statement.
        statement: String,
        /// The text.
        #[serde(flatten)]
        of: Stated,
    },
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CriterionOf")]
pub enum Stated {
    /// A file.
    Path(String),
    /// The latest reply of the run. Always true.
    Reply(bool),
}

/// A file that has to be as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pinned {
    /// The file.
    pub path: String,
    /// As what.
    #[serde(flatten)]
    pub to: PinnedTo,
}

/// What a file has to be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinnedTo {
    /// SHA-256 of its content.
    Sha256(Digest),
    /// As it is in this commit of the repository that it is in.
    Commit(String),
}

impl Check {
    /// The word for it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::CommandExitZero { .. } => "command_exit_zero",
            Self::FileExists { .. } => "file_exists",
            Self::FileContains { .. } => "file_contains",
            Self::FileHash { .. } => "file_hash",
            Self::JsonPath { .. } => "json_path",
            Self::GitCommitExists { .. } => "git_commit_exists",
            Self::GitClean { .. } => "git_clean",
            Self::GitDiffTouches { .. } => "git_diff_touches",
            Self::TestReport { .. } => "test_report",
            Self::ToolCallSucceeded { .. } => "tool_call_succeeded",
            Self::SqlReturns { .. } => "sql_returns",
            Self::HttpStatus { .. } => "http_status",
            Self::PrExists(_) => "pr_exists",
            Self::PrMerged(_) => "pr_merged",
            Self::Contract { .. } => "contract",
        }
    }

    /// Whether checking it sends something to others.
    #[must_use]
    pub fn reaches_out(&self) -> bool {
        matches!(self, Self::HttpStatus { .. } | Self::PrExists(_) | Self::PrMerged(_))
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, WorkError> {
        let kind = fields.text("type")?;
        Ok(match kind.as_str() {
            "command_exit_zero" => Self::CommandExitZero {
                command: fields.texts("command")?,
                directory: fields.optional_text("directory")?,
                timeout_seconds: fields.optional_integer("timeout_seconds", (1, COMMAND_SECONDS_MAX))?,
            },
            "file_exists" => Self::FileExists { path: fields.text("path")? },
            "file_contains" => Self::FileContains { path: fields.text("path")?, text: fields.text("text")? },
            "file_hash" => Self::FileHash { path: fields.text("path")?, sha256: sha256(fields)? },
            "json_path" => Self::JsonPath {
                path: fields.text("path")?,
                pointer: pointer(fields)?,
                equals: fields.any("equals")?,
            },
            "git_commit_exists" => Self::GitCommitExists {
                repository: fields.optional_text("repository")?,
                commit: revision(fields, "commit")?,
                branch: optional_revision(fields, "branch")?,
            },
            "git_clean" => Self::GitClean { repository: fields.optional_text("repository")? },
            "git_diff_touches" => Self::GitDiffTouches {
                repository: fields.optional_text("repository")?,
                since: revision(fields, "since")?,
                paths: fields.texts("paths")?,
            },
            "test_report" => Self::TestReport {
                path: fields.text("path")?,
                tests_min: fields.integer("tests_min", (1, TESTS_MAX))?,
            },
            "tool_call_succeeded" => Self::ToolCallSucceeded { tool: fields.text("tool")? },
            "sql_returns" => Self::SqlReturns {
                path: fields.text("path")?,
                query: fields.text("query")?,
                rows: rows(fields)?,
            },
            "http_status" => Self::HttpStatus {
                url: fields.url("url")?,
                status: fields.integer("status", (100, 599))?,
                redirects: fields.optional_integer("redirects", (0, REDIRECTS_MAX))?,
                private: fields.optional_bool("private")?,
                timeout_seconds: fields.optional_integer("timeout_seconds", (1, URL_SECONDS_MAX))?,
            },
            "pr_exists" => Self::PrExists(PullRequest::read(fields)?),
            "pr_merged" => Self::PrMerged(PullRequest::read(fields)?),
            "contract" => Self::Contract { statement: fields.text("statement")?, of: stated(fields)? },
            other => {
                let shown: String = other.chars().take(40).collect();
                return Err(fields.mistake("type", format!("`{shown}` is no type of criterion")));
            }
        })
    }

    fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        match self {
            Self::CommandExitZero { command, directory, timeout_seconds: _ } => {
                command.iter_mut().chain(directory).for_each(show);
            }
            Self::FileExists { path }
            | Self::FileHash { path, sha256: _ }
            | Self::TestReport { path, tests_min: _ } => show(path),
            Self::FileContains { path, text } => [path, text].into_iter().for_each(show),
            Self::JsonPath { path, pointer, equals } => {
                [path, pointer].into_iter().for_each(&mut *show);
                crate::aside::value_texts(equals, show);
            }
            Self::GitCommitExists { repository, commit, branch } => {
                repository.iter_mut().chain([commit]).chain(branch).for_each(show);
            }
            Self::GitClean { repository } => repository.iter_mut().for_each(show),
            Self::GitDiffTouches { repository, since, paths } => {
                repository.iter_mut().chain([since]).chain(paths).for_each(show);
            }
            Self::ToolCallSucceeded { tool } => show(tool),
            Self::SqlReturns { path, query, rows } => {
                [path, query].into_iter().for_each(&mut *show);
                rows.iter_mut().for_each(|row| crate::aside::value_texts(row, show));
            }
            Self::HttpStatus { url, status: _, redirects: _, private: _, timeout_seconds: _ } => show(url),
            Self::PrExists(request) | Self::PrMerged(request) => request.each_text(show),
            Self::Contract { statement, of } => {
                show(statement);
                if let Stated::Path(path) = of {
                    show(path);
                }
            }
        }
    }
}

impl Criterion {
    /// Reads the criteria of an item from JSON. `at` is the field that they are in.
    ///
    /// # Errors
    /// The first field that is not of its form.
    pub fn read_all(at: &str, value: &Value) -> Result<Vec<Self>, WorkError> {
        let Some(list) = value.as_array() else { return Err(WorkError::field(at, "must be a list")) };
        if list.len() > CRITERIA_MAX {
            return Err(WorkError::field(at, format!("has more than {CRITERIA_MAX} entries")));
        }
        let bytes = value.to_string().len();
        if bytes > CRITERIA_BYTES_MAX {
            let reason = format!("has {bytes} bytes as JSON; the limit is {CRITERIA_BYTES_MAX}");
            return Err(WorkError::field(at, reason));
        }
        list.iter().enumerate().map(|(number, one)| Self::read(&format!("{at}[{number}]"), one)).collect()
    }

    fn read(at: &str, value: &Value) -> Result<Self, WorkError> {
        let mut fields = Fields::of(at, value)?;
        let check = Check::read(&mut fields)?;
        let mut pinned = Vec::new();
        if let Some(value) = fields.value("pinned") {
            let list = value.as_array().filter(|list| (1..=CRITERIA_MAX).contains(&list.len()));
            let Some(list) = list else {
                return Err(fields.mistake("pinned", format!("must be a list of 1 to {CRITERIA_MAX} files")));
            };
            for (number, one) in list.iter().enumerate() {
                pinned.push(Pinned::read(&fields.place(&format!("pinned[{number}]")), one)?);
            }
        }
        fields.finish()?;
        Ok(Self { check, pinned })
    }

    pub(super) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        self.check.each_text(show);
        for pinned in &mut self.pinned {
            show(&mut pinned.path);
            if let PinnedTo::Commit(commit) = &mut pinned.to {
                show(commit);
            }
        }
    }
}

impl Pinned {
    fn read(at: &str, value: &Value) -> Result<Self, WorkError> {
        let mut fields = Fields::of(at, value)?;
        let path = fields.text("path")?;
        let digest = fields.optional_text("sha256")?;
        let commit = fields.optional_text("commit")?;
        if commit.as_ref().is_some_and(|name| !is_full_name(name)) {
            // Who works in a repository can move its branches.
            return Err(
                fields.mistake("commit", "must be the full name of a commit, 40 or 64 lower-case hex digits")
            );
        }
        let to = match (digest, commit) {
            (Some(digest), None) => PinnedTo::Sha256(parse_sha256(&fields, &digest)?),
            (None, Some(commit)) => PinnedTo::Commit(commit),
            _ => return Err(fields.mistake("sha256", "a file is pinned by one of `sha256` and `commit`")),
        };
        fields.finish()?;
        Ok(Self { path, to })
    }
}

impl TryFrom<Value> for Criterion {
    type Error = WorkError;

    fn try_from(value: Value) -> Result<Self, WorkError> {
        Self::read("criterion", &value)
    }
}

/// Names criteria and what their item covers, keyed with the run's key, so that a guess of them cannot be tested once the
/// key is erased.
#[must_use]
pub fn digest_of_criteria(criteria: &[Criterion], covers: &Covers, key: Option<&Digest>) -> Digest {
    let text = |value: Value| canonical_json(&value);
    DigestBuilder::new("portcullis/criteria-in-run/v1")
        .part(key.map_or(&[][..], |key| key.as_bytes()))
        .part(text(serde_json::json!(criteria)).as_bytes())
        .part(text(serde_json::json!(covers)).as_bytes())
        .finish()
}

fn is_full_name(name: &str) -> bool {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    matches!(name.len(), 40 | 64) && name.chars().all(is_hex)
}

fn sha256(fields: &mut Fields<'_>) -> Result<Digest, WorkError> {
    let text = fields.text("sha256")?;
    parse_sha256(fields, &text)
}

fn parse_sha256(fields: &Fields<'_>, text: &str) -> Result<Digest, WorkError> {
    text.parse().map_err(|_| fields.mistake("sha256", "must be 64 lower-case hex digits"))
}

fn pointer(fields: &mut Fields<'_>) -> Result<String, WorkError> {
    let pointer = match fields.value("pointer") {
        Some(Value::String(pointer)) => pointer.clone(),
        _ => return Err(fields.mistake("pointer", "must be a text; the whole file is the empty one")),
    };
    if !(pointer.is_empty() || pointer.starts_with('/')) || pointer.len() > super::fields::FIELD_BYTES_MAX {
        return Err(fields.mistake("pointer", "must be a JSON pointer, such as `/version` or `/list/0`"));
    }
    Ok(pointer)
}

fn stated(fields: &mut Fields<'_>) -> Result<Stated, WorkError> {
    match (fields.optional_text("path")?, fields.optional_bool("reply")?) {
        (Some(path), false) => Ok(Stated::Path(path)),
        (None, true) => Ok(Stated::Reply(true)),
        _ => Err(fields.mistake("path", "give one of `path` and `\"reply\": true`")),
    }
}

fn revision(fields: &mut Fields<'_>, name: &'static str) -> Result<String, WorkError> {
    match optional_revision(fields, name)? {
        Some(revision) => Ok(revision),
        None => Err(fields.mistake(name, "is missing")),
    }
}

/// A revision as git takes it, and not as an option of git.
fn optional_revision(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<String>, WorkError> {
    let revision = fields.optional_text(name)?;
    let is_plain = |text: &String| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._/-~^@+".contains(c);
        !text.starts_with('-') && text.chars().all(allowed) && text.len() <= 256
    };
    if revision.as_ref().is_some_and(|text| !is_plain(text)) {
        return Err(fields.mistake(name, "must be the name of a commit, such as `main` or `3fa2b1c`"));
    }
    Ok(revision)
}

fn rows(fields: &mut Fields<'_>) -> Result<Vec<Value>, WorkError> {
    let rows = fields.any("rows")?;
    let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
    let is_row = |row: &Value| row.as_array().is_some_and(|row| row.iter().all(is_scalar));
    match rows {
        Value::Array(rows) if rows.iter().all(is_row) => Ok(rows),
        _ => Err(fields
            .mistake("rows", "must be a list of rows, each a list of texts, numbers, true, false, null")),
    }
}
