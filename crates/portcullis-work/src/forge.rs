//! Pull requests, as the API of a forge has them. GitHub's and Gitea's answers have the same members where it matters.
//!
//! The token belongs to the owner of the daemon, who says to which URL it goes. What the agent can name is a repository
//! and a number; what it can write is the pull request itself, and who merged it is the forge's to say.

use std::time::Duration;

use portcullis_core::work::{Forge, PullRequest, Which};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::web::{Get, get, url};
use super::{Checker, Found, NotPassed, error, fail};

/// How long a forge may take for one answer.
const DEADLINE: Duration = Duration::from_secs(20);
/// Most bytes of an answer.
const BODY_BYTES_MAX: usize = 8 << 20;
/// Pull requests of a page, and pages that are looked through for a branch. Gitea gives no more than 50 at once.
const PAGE: usize = 50;
const PAGES_MAX: usize = 10;

/// A pull request as a forge describes it.
#[derive(Debug, Deserialize)]
struct Described {
    number: u64,
    state: String,
    #[serde(default)]
    merged: Option<bool>,
    #[serde(default)]
    merged_at: Option<String>,
    base: End,
    head: End,
}

/// Where a pull request comes from or leads to.
#[derive(Debug, Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: String,
    /// None where the repository is gone.
    #[serde(default)]
    repo: Option<Repository>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
    #[serde(default)]
    default_branch: Option<String>,
}

impl Described {
    /// Lists leave `merged` out.
    fn is_merged(&self) -> bool {
        self.merged.unwrap_or(self.merged_at.is_some())
    }

    fn comes_from(&self, branch: &str, request: &PullRequest) -> bool {
        let (owner, branch) = branch.split_once(':').unwrap_or((&request.owner, branch));
        let full = self.head.repo.as_ref().map(|repository| repository.full_name.as_str());
        let owned = full.and_then(|full| full.split_once('/'));
        self.head.branch == branch && owned.is_some_and(|(of, _)| of.eq_ignore_ascii_case(owner))
    }
}

/// Whether a pull request is there, open or merged, and whether it has to be merged.
pub(super) fn holds(checker: &Checker<'_>, request: &PullRequest, merged: bool) -> Found {
    let api = Api::of(checker, request)?;
    let found = match &request.which {
        Which::Number(number) => api.numbered(*number)?,
        Which::Branch(branch) => api.latest_from(branch)?,
    };
    let (number, into) = (found.number, &found.base.branch);
    let own = found.base.repo.as_ref().and_then(|repository| repository.default_branch.as_deref());
    let wanted = request.into.as_deref().or(own.filter(|_| merged));
    match wanted {
        Some(wanted) if wanted != into => {
            return fail(format!("#{number} leads to `{into}`, not to `{wanted}`"));
        }
        None if merged => {
            return error(
                "the forge does not say which branch is the repository's own; name one with `into`",
            );
        }
        _ => {}
    }
    match (found.is_merged(), found.state.as_str()) {
        (true, _) => Ok(format!("#{number} is merged into `{into}`")),
        (false, "open") if !merged => Ok(format!("#{number} is open, and leads to `{into}`")),
        (false, "open") => fail(format!("#{number} is open")),
        (false, _) => fail(format!("#{number} was closed, and not merged")),
    }
}

/// The API of a repository.
struct Api<'a> {
    request: &'a PullRequest,
    base: Url,
    authorization: Option<String>,
}

impl<'a> Api<'a> {
    fn of(checker: &Checker<'_>, request: &'a PullRequest) -> Result<Self, NotPassed> {
        let base = url(&request.url)?;
        let token = (checker.token_of)(&request.url).or_else(error)?;
        if token.is_some() && base.scheme() == "http" && !is_loopback(&base) {
            return error(format!("a token is not sent in clear: name `{}` with https", request.url));
        }
        let authorization = token.map(|token| match request.forge {
            Forge::Github => format!("Bearer {token}"),
            Forge::Gitea => format!("token {token}"),
        });
        Ok(Self { request, base, authorization })
    }

    fn numbered(&self, number: u32) -> Result<Described, NotPassed> {
        match self.ask(&["pulls", &number.to_string()], &[])? {
            Some(found) => Ok(found),
            None => {
                self.repository()?;
                fail(format!("there is no pull request #{number}"))
            }
        }
    }

    /// The latest one from a branch. Forges list the newest first.
    fn latest_from(&self, branch: &str) -> Result<Described, NotPassed> {
        let (size, owner) = (PAGE.to_string(), &self.request.owner);
        let head = if branch.contains(':') { branch.to_owned() } else { format!("{owner}:{branch}") };
        for page in 1..=PAGES_MAX {
            let number = page.to_string();
            let mut query = vec![("state", "all"), ("page", number.as_str())];
            match self.request.forge {
                Forge::Github => query.extend([("head", head.as_str()), ("per_page", size.as_str())]),
                Forge::Gitea => query.push(("limit", size.as_str())),
            }
            let Some(found) = self.ask::<Vec<Described>>(&["pulls"], &query)? else {
                self.repository()?;
                return error("the repository has no pull requests");
            };
            if found.is_empty() {
                return fail(format!("there is no pull request from `{branch}`"));
            }
            let fits = found.into_iter().filter(|one| one.comes_from(branch, self.request));
            if let Some(latest) = fits.max_by_key(|one| one.number) {
                return Ok(latest);
            }
        }
        let seen = PAGE * PAGES_MAX;
        error(format!("none of the latest {seen} pull requests is from `{branch}`; name it by its number"))
    }

    /// That the repository is there for whoever asks: many forges say of what must not be seen that it is not there.
    fn repository(&self) -> Result<(), NotPassed> {
        let PullRequest { owner, repo, .. } = self.request;
        match self.ask::<Repository>(&[], &[])? {
            Some(_) => Ok(()),
            None => error(format!(
                "there is no repository `{owner}/{repo}`, or it may not be seen{}",
                self.as_whom()
            )),
        }
    }

    fn as_whom(&self) -> &'static str {
        match self.authorization {
            Some(_) => " with the token of this URL",
            None => "; a token for this URL goes into `forges.toml` of the state folder",
        }
    }

    /// What is at a path of the repository; nothing where the forge has nothing there.
    fn ask<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<T>, NotPassed> {
        let mut at = self.base.clone();
        match at.path_segments_mut() {
            Ok(mut segments) => {
                let PullRequest { owner, repo, .. } = self.request;
                segments.pop_if_empty().extend(["repos", owner, repo]).extend(path);
            }
            Err(()) => return error(format!("`{}` has no path", self.request.url)),
        }
        if !query.is_empty() {
            at.query_pairs_mut().extend_pairs(query);
        }
        let answer = get(&Get {
            url: at.as_str(),
            private: self.request.private,
            redirects: 0,
            deadline: DEADLINE,
            accept: "application/json",
            authorization: self.authorization.as_deref(),
            body_bytes_max: Some(BODY_BYTES_MAX),
        })?;
        match answer.status {
            200 => match serde_json::from_slice(&answer.body) {
                Ok(read) => Ok(Some(read)),
                Err(why) => error(format!("`{at}` answers what is no answer of a forge: {why}")),
            },
            404 => Ok(None),
            401 | 403 | 429 => error(format!(
                "`{at}` answers {}: it may not be seen, or was asked too often{}",
                answer.status,
                self.as_whom()
            )),
            301 | 302 | 307 | 308 => {
                let to = answer.location.unwrap_or_default();
                error(format!("`{at}` has moved to `{to}`; name the repository as it is called now"))
            }
            status => error(format!("`{at}` answers {status}")),
        }
    }
}

fn is_loopback(at: &Url) -> bool {
    match at.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
