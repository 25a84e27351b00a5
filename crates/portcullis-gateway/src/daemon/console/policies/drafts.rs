//! Drafts of policy, made of what people and rules did again and again: to be looked at, saved or dismissed.
//!
//! A draft is a name (`approval-off:POLICY`) and is made anew each time the page is opened. Nothing of it is stored but
//! that somebody dismissed it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::policies::{Fields, Proposal, encoded};
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState};

use super::super::super::queries::read;
use super::super::Seen;
use super::super::desk::{self, Standing};
use super::super::visitor::{Form, Visitor};
use super::{fields_of, with_fields};
use crate::state_file;

/// How often something happened before it becomes a draft.
const TIMES_MIN: u64 = 5;
/// Of so many decisions in a hundred the same must have come.
const SAME_PERCENT: u64 = 95;
/// Drafts that are shown.
const DRAFTS_MAX: usize = 12;
/// Dismissed drafts that are remembered; the oldest are forgotten.
const DISMISSED_MAX: usize = 500;
/// File in the console's folder.
const FILE: &str = "dismissed.json";

const APPROVAL: &str = "runtime-policy/approval";

/// What people said of a rule's holds.
#[derive(Default)]
struct Said {
    granted: u64,
    refused: u64,
}

impl Said {
    fn nearly_all(&self, of: u64) -> bool {
        of >= TIMES_MIN && of * 100 >= (self.granted + self.refused) * SAME_PERCENT
    }
}

/// All drafts that nobody dismissed.
pub(super) async fn all(seen: &Seen, standing: &Standing) -> Vec<Proposal> {
    let rows = read(&seen.shared, |reader| reader.approvals(&ApprovalFilter::default())).await;
    let dismissed = dismissed(seen);
    let mut drafts = of_approvals(standing, &rows.unwrap_or_default());
    drafts.extend(of_denials(standing, &seen.console.tally.type_denials()));
    drafts.retain(|draft| !dismissed.contains(&draft.id));
    drafts.truncate(DRAFTS_MAX);
    drafts
}

fn of_approvals(standing: &Standing, rows: &[ApprovalRow]) -> Vec<Proposal> {
    let mut by_policy: BTreeMap<&str, Said> = BTreeMap::new();
    let mut by_type: BTreeMap<(&str, String), Said> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, Said> = BTreeMap::new();
    for row in rows {
        let (granted, refused) = match row.state {
            ApprovalState::Granted | ApprovalState::Claimed | ApprovalState::Revoked => (1, 0),
            ApprovalState::Refused => (0, 1),
            _ => continue,
        };
        let add = |said: &mut Said| {
            said.granted += granted;
            said.refused += refused;
        };
        let tool = standing.bundle.registry.get(&row.tool);
        if row.rule.as_deref() == Some(APPROVAL) {
            add(by_policy.entry(&row.policy).or_default());
            if let Some(tool) = tool {
                add(by_type.entry((&row.policy, tool.tool_type.clone())).or_default());
            }
        } else if tool.is_none() && !row.tool.is_empty() {
            add(unknown.entry(&row.tool).or_default());
        }
    }
    let mut drafts = Vec::new();
    for (policy, said) in by_policy.iter().filter(|(_, said)| said.nearly_all(said.granted)) {
        let holds = standing.bundle.policy(policy).is_some_and(|policy| policy.approval_for_side_effects);
        if holds {
            let heading = format!("Let the side effects of `{policy}` pass without a person");
            let because = format!(
                "Held by `{APPROVAL}`, granted {} times of {}. The limit on side effects stays.",
                said.granted,
                said.granted + said.refused
            );
            drafts.push(proposal("approval-off", policy, "", heading, because, true));
        }
    }
    for ((policy, kind), said) in by_type.iter().filter(|(_, said)| said.nearly_all(said.refused)) {
        let allows = standing.bundle.policy(policy).is_some_and(|policy| policy.allowed_types.contains(kind));
        if allows {
            let heading = format!("Deny {kind} in `{policy}` at once");
            let because = format!(
                "Held for a person, refused {} times of {}.",
                said.refused,
                said.granted + said.refused
            );
            drafts.push(proposal("type-drop", policy, kind, heading, because, false));
        }
    }
    for (tool, said) in unknown.iter().filter(|(_, said)| said.nearly_all(said.granted)) {
        let heading = format!("Classify the tool `{tool}`");
        let because = format!(
            "The registry does not list it, so each call is held; granted {} times of {}.",
            said.granted,
            said.granted + said.refused
        );
        let open = format!("/tools/edit?tool={}", encoded(tool));
        drafts.push(Proposal { id: format!("classify:{tool}"), heading, because, open, looser: true });
    }
    drafts
}

fn of_denials(standing: &Standing, denials: &[((String, String), u64)]) -> Vec<Proposal> {
    let mut drafts = Vec::new();
    for ((policy, tool), times) in denials.iter().filter(|(_, times)| *times >= TIMES_MIN) {
        let kind = standing.bundle.registry.get(tool).map(|tool| tool.tool_type.clone());
        let known = standing.bundle.policy(policy);
        let (Some(kind), Some(known)) = (kind, known) else { continue };
        if !known.allowed_types.contains(&kind) {
            let heading = format!("Allow {kind} in `{policy}`");
            let because = format!(
                "`{tool}` was denied {times} times by `runtime-policy/tool-type` since the gate started. If agents need it, allow the type; if not, dismiss this."
            );
            drafts.push(proposal("type-add", policy, &kind, heading, because, true));
        }
    }
    drafts
}

fn proposal(
    what: &str,
    policy: &str,
    kind: &str,
    heading: String,
    because: String,
    looser: bool,
) -> Proposal {
    let id = format!("{what}:{kind}:{policy}");
    let open = format!("/policies/edit?name={}&draft={}", encoded(policy), encoded(&id));
    Proposal { id, heading, because, open, looser }
}

/// Form and text with a draft in them.
pub(super) async fn applied(seen: &Seen, draft: &str, fields: Fields, text: String) -> (Fields, String) {
    let mut parts = draft.splitn(3, ':');
    let (Some(what), Some(kind), Some(policy)) = (parts.next(), parts.next(), parts.next()) else {
        return (fields, text);
    };
    if policy != fields.name {
        return (fields, text);
    }
    let mut changed = fields.clone();
    match what {
        "approval-off" => changed.approval = false,
        "type-add" => drop(changed.types.insert(kind.to_owned())),
        "type-drop" => drop(changed.types.remove(kind)),
        _ => return (fields, text),
    }
    let Ok(standing) = desk::standing(seen).await else { return (fields, text) };
    let before = standing.bundle.policy(policy);
    // A text that cannot be changed stays, and the form with it.
    match with_fields(&text, policy, before.as_deref(), &changed) {
        Some(text) => (before.map_or(changed.clone(), |_| changed), text),
        None => (before.map_or(fields, |policy| fields_of(&policy)), text),
    }
}

fn file(seen: &Seen) -> PathBuf {
    seen.shared.home.console().join(FILE)
}

fn dismissed(seen: &Seen) -> Vec<String> {
    let bytes = fs::read(file(seen)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// A draft is not wanted: it is not made again.
pub(in super::super) async fn dismiss(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let draft: String = form.get("draft").chars().take(1_000).collect();
    let mut all = dismissed(&seen);
    if !draft.is_empty() && !all.contains(&draft) {
        all.push(draft);
        let surplus = all.len().saturating_sub(DISMISSED_MAX);
        all.drain(..surplus);
    }
    let written = serde_json::to_vec(&all)
        .map_err(io::Error::other)
        .and_then(|bytes| state_file::write_private(&file(&seen), &bytes));
    match written {
        Ok(()) => Redirect::to("/policies").into_response(),
        Err(error) => super::trouble(&seen, &visitor, &error.to_string()).await,
    }
}
