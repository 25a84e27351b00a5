//! What judges and lets in besides the bundle itself: bundles that clients named, and issuers of access tokens.

use std::collections::BTreeMap;

use portcullis_core::bundle::Bundle;
use portcullis_core::id::Digest;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::RunPhase;
use portcullis_gateway::client::Client;
use portcullis_gateway::home::Home;
use portcullis_gateway::oauth::unreachable_issuers;

use super::{Check, Health, PROBLEMS_SHOWN_MAX};
use crate::daemon::runtime;
use crate::failure::Failure;
use crate::out::count;

/// The latest runs among which those are looked for that another bundle judges.
const LIVE_LOOKED_AT: u32 = 1_000;

/// Live runs that another bundle judges than the one in force, because their client named it.
pub(super) fn other_bundles(home: &Home, in_force: Digest) -> Result<String, Failure> {
    let client = Client::new(home.clone(), CredentialKind::Approver);
    // Without the approver's token, nobody can say.
    let runs = runtime()?.block_on(client.runs(LIVE_LOOKED_AT)).unwrap_or_default();
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    let is_live = |phase| !matches!(phase, RunPhase::Closed | RunPhase::Abandoned);
    for run in runs.iter().filter(|run| is_live(run.phase) && run.bundle != in_force) {
        *others.entry(run.bundle.to_string()).or_default() += 1;
    }
    let of = |(bundle, number): (&String, &usize)| {
        format!("\n{} under another bundle ({bundle})", count(*number, "live run", "live runs"))
    };
    Ok(others.iter().take(PROBLEMS_SHOWN_MAX).map(of).collect())
}

/// The issuers of access tokens that cannot be reached, if the bundle names any.
pub(super) fn issuers(bundle: Option<&Bundle>) -> Result<Option<Check>, Failure> {
    let Some(oauth) = bundle.and_then(|bundle| bundle.oauth.as_ref()) else { return Ok(None) };
    let away = runtime()?.block_on(unreachable_issuers(oauth));
    if away.is_empty() {
        let all = count(oauth.issuers.len(), "issuer", "issuers");
        return Ok(Some(Check::new("issuers", Health::Ok, format!("the keys of {all} can be fetched"))));
    }
    let lines: Vec<String> = away.iter().map(|(issuer, why)| format!("`{issuer}`: {why}")).collect();
    Ok(Some(Check::new("issuers", Health::Warn, lines.join("\n")).remedy(
        "their tokens are refused until the keys can be fetched: see that the issuer runs, and that its address in the bundle is right",
    )))
}
