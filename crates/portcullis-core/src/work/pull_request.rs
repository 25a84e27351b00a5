//! Pull requests as criteria name them.

use schemars::JsonSchema;
use serde::Serialize;

use super::error::WorkError;
use super::fields::Fields;

/// A pull request of a forge, and the branch that it has to lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PullRequest {
    /// Whose API it is.
    pub forge: Forge,
    /// Where the API is, such as `https://api.github.com`.
    pub url: String,
    /// The name may lead to private addresses.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whose repository it is.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// Which one.
    #[serde(flatten)]
    pub which: Which,
    /// The branch that it has to lead to. Where nothing is said, one that has to be merged leads to the repository's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
}

/// Whose API a forge has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Forge {
    /// GitHub's, version 3.
    Github,
    /// Gitea's and Forgejo's, version 1.
    Gitea,
}

/// Which pull request of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PullRequestName")]
pub enum Which {
    /// The one with this number.
    Number(u32),
    /// The latest one from this branch: of the same repository, or of a fork as `OWNER:BRANCH`.
    Branch(String),
}

impl PullRequest {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, WorkError> {
        let forge = match fields.text("forge")?.as_str() {
            "github" => Forge::Github,
            "gitea" => Forge::Gitea,
            _ => return Err(fields.mistake("forge", "must be `github` or `gitea`")),
        };
        let (url, private) = (fields.url("url")?, fields.optional_bool("private")?);
        let (owner, repo) = (segment(fields, "owner")?, segment(fields, "repo")?);
        let number = fields.optional_integer("number", (1, u32::MAX))?;
        let branch = fields.optional_text("branch")?;
        let which = match (number, branch) {
            (Some(number), None) => Which::Number(number),
            (None, Some(branch)) => Which::Branch(branch),
            _ => return Err(fields.mistake("number", "give one of `number` and `branch`")),
        };
        let into = fields.optional_text("into")?;
        Ok(Self { forge, url, private, owner, repo, which, into })
    }

    pub(super) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        [&mut self.url, &mut self.owner, &mut self.repo].into_iter().for_each(&mut *show);
        if let Which::Branch(branch) = &mut self.which {
            show(branch);
        }
        self.into.iter_mut().for_each(show);
    }
}

/// A name that is one part of a path, whatever the forge takes it for.
fn segment(fields: &mut Fields<'_>, name: &'static str) -> Result<String, WorkError> {
    let text = fields.text(name)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match text.chars().all(allowed) && !text.chars().all(|c| c == '.') {
        true => Ok(text),
        false => Err(fields
            .mistake(name, "has letters, digits, `.`, `_` and `-`, as in the address of the repository")),
    }
}
