//! What a URL answers.

use std::time::Duration;

use super::web::{Get, get};
use super::{Found, fail};

/// How long a URL may take to answer where its criterion does not say, in seconds.
const DEADLINE_SECONDS: u32 = 10;

pub(super) fn answers(
    url: &str,
    status: u32,
    redirects: Option<u32>,
    private: bool,
    timeout_seconds: Option<u32>,
) -> Found {
    let answer = get(&Get {
        url,
        private,
        redirects: redirects.unwrap_or(0),
        deadline: Duration::from_secs(timeout_seconds.unwrap_or(DEADLINE_SECONDS).into()),
        accept: "*/*",
        authorization: None,
        body_bytes_max: None,
    })?;
    match (u32::from(answer.status) == status, answer.location) {
        (true, _) => Ok(format!("`{}` answers {status}", answer.url)),
        (false, Some(next)) => {
            let next: String = next.chars().take(200).collect();
            fail(format!("`{}` answers {}, and redirects to `{next}`", answer.url, answer.status))
        }
        (false, None) => fail(format!("`{}` answers {}", answer.url, answer.status)),
    }
}
