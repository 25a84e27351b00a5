//! What a request for a run may ask for.

use portcullis_core::limits::NAME_BYTES_MAX;

use super::RunRequest;
use crate::error::SessionError;

/// Longest name of a client's session, in bytes.
pub const SESSION_BYTES_MAX: usize = 1_024;

/// Refuses names that no event should hold, before anything is stored of the run.
pub(super) fn check_names(request: &RunRequest) -> Result<(), SessionError> {
    let lengths = [
        ("surface", Some(&request.surface), NAME_BYTES_MAX),
        ("session", request.session.as_ref(), SESSION_BYTES_MAX),
        ("policy", request.policy.as_ref(), NAME_BYTES_MAX),
    ];
    for (what, name, limit) in lengths {
        if name.is_some_and(|name| name.len() > limit) {
            return Err(SessionError::NameTooLong { what, limit });
        }
    }
    Ok(())
}

/// Only the agent's credential of this machine, which the gate's own shims use, names a bundle. A credential that
/// the bundle maps to a policy is bound to it.
pub(super) fn check_bound(request: &RunRequest) -> Result<(), SessionError> {
    if request.bundle.is_some() && !request.identity.of_this_machine {
        return Err(SessionError::ForeignBundle);
    }
    let Some(bound) = &request.identity.policy else { return Ok(()) };
    let other_policy = request.policy.as_ref().filter(|wanted| *wanted != bound);
    if other_policy.is_none() && request.bundle.is_none() {
        return Ok(());
    }
    let wanted = match other_policy {
        Some(policy) => format!("the policy `{policy}`"),
        None => "another bundle".to_owned(),
    };
    Err(SessionError::Bound { policy: bound.clone(), wanted })
}
