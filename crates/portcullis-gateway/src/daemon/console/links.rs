//! Links that work once: one signs in whoever holds the approver's token, one lets somebody choose a password.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use portcullis_console::Role;
use portcullis_core::principal::Principal;
use portcullis_session::credentials::{Identity, sha256_hex};

use super::super::Shared;
use super::super::auth::Approver;
use super::super::error::Failure;
use super::super::routes::JsonBody;
use super::people;
use super::sessions::random_hex;
use crate::api;

/// How long a link that signs in works.
const SIGN_IN_FOR: Duration = Duration::from_secs(5 * 60);
/// How long an invitation works.
const INVITATION_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Links at once.
const LINKS_MAX: usize = 256;

/// What a link is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Good {
    /// Signing in as the principal of a token.
    SignIn { principal: Principal, of_this_machine: bool },
    /// Choosing a password.
    Invitation { name: String, role: Role, by: String },
}

/// The links that were not used, by the digest of their tokens.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<BTreeMap<String, (Good, Instant)>>);

impl Links {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Good, Instant)>> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        links.retain(|_, (_, until)| *until > now);
        links
    }

    /// Makes a link; gives its token, or `None` if too many wait.
    pub(super) fn make(&self, good: Good) -> std::io::Result<Option<String>> {
        let token = random_hex(32)?;
        let lasts = match good {
            Good::SignIn { .. } => SIGN_IN_FOR,
            Good::Invitation { .. } => INVITATION_FOR,
        };
        let mut links = self.lock();
        if links.len() >= LINKS_MAX {
            return Ok(None);
        }
        links.insert(sha256_hex(&token), (good, Instant::now() + lasts));
        Ok(Some(token))
    }

    /// What a link is good for. It stays good.
    pub(super) fn look_at(&self, token: &str) -> Option<Good> {
        self.lock().get(&sha256_hex(token)).map(|(good, _)| good.clone())
    }

    /// Uses a link up.
    pub(super) fn take(&self, token: &str) -> Option<Good> {
        self.lock().remove(&sha256_hex(token)).map(|(good, _)| good)
    }
}

/// `POST /v1/console/links`: makes a link for whoever presents the approver's token.
pub(in super::super) async fn make(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::MakeLink>,
) -> Result<Json<api::MadeLink>, Failure> {
    let Some(console) = &shared.console else {
        let message = "the daemon serves no console; stop it, and start it with `portcullis serve --console`";
        return Err(Failure::new(StatusCode::CONFLICT, "no_console", message));
    };
    let Identity { principal, of_this_machine, .. } = identity;
    let good = match request.invite {
        None => Good::SignIn { principal, of_this_machine },
        Some(name) => {
            people::check_name(&name).map_err(Failure::bad_request)?;
            let role = request.role.as_deref().unwrap_or("viewer");
            let role = Role::from_name(role)
                .ok_or_else(|| Failure::bad_request("`role` is viewer, approver, editor or admin"))?;
            Good::Invitation { name, role, by: principal.id }
        }
    };
    let internal = |error: std::io::Error| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    };
    let token = console.links.make(good).map_err(internal)?.ok_or_else(|| {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", format!("{LINKS_MAX} links wait to be used"))
    })?;
    Ok(Json(api::MadeLink { url: address(&console.origin, &token), origin: console.origin.clone() }))
}

/// The address that a link opens.
pub(super) fn address(origin: &str, token: &str) -> String {
    format!("{origin}/sign-in/link?token={token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_looking_does_not_use_it() {
        let links = Links::default();
        let good = Good::Invitation { name: "ada".into(), role: Role::Viewer, by: "me".into() };
        let token = links.make(good.clone()).unwrap().unwrap();
        assert_eq!(links.look_at(&token), Some(good.clone()));
        assert_eq!(links.take(&token), Some(good));
        assert_eq!((links.take(&token), links.look_at(&token), links.take("guess")), (None, None, None));
    }
}
