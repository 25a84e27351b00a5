//! The index of approvals, as the events of a commit leave it.

use std::collections::BTreeMap;

use portcullis_core::event::{About, Event, EventBody, GrantScope};
use portcullis_core::id::ApprovalId;
use portcullis_ledger::{ApprovalRow, ApprovalState, read_aside};

use super::Live;
use crate::error::SessionError;

impl Live {
    /// Rows for the index of approvals, as these events leave them.
    pub(super) async fn approval_rows(&self, events: &[Event]) -> Result<Vec<ApprovalRow>, SessionError> {
        let state = self.engine.state();
        let mut stored = self.stored_rows(events).await?;
        let mut rows = Vec::new();
        let (mut proposed, mut rule) = (None, None);
        for event in events {
            match &event.body {
                EventBody::Proposed(_) => proposed = Some(event.seq),
                EventBody::Verdict(record) => rule.clone_from(&record.rule),
                EventBody::ApprovalRequested { approval, about, digest, tool, .. } => {
                    rows.push(ApprovalRow {
                        approval: *approval,
                        run: self.engine.run(),
                        action: about.action(),
                        digest: *digest,
                        principal: state.principal().map(|p| p.id.clone()).unwrap_or_default(),
                        state: ApprovalState::Pending,
                        scope: None,
                        requested: event.t,
                        decided: None,
                        decided_by: None,
                        tool: tool.clone(),
                        policy: state.policy().to_owned(),
                        proposed: match about {
                            About::Action(_) => proposed,
                            About::Text(said) => Some(*said),
                        },
                        note: None,
                        rule: rule.clone(),
                    });
                }
                EventBody::ApprovalDecided { approval, decision, scope, note, .. } => {
                    let Some(state) = ApprovalState::after(*decision) else { continue };
                    rows.extend(stored.remove(approval).map(|row| ApprovalRow {
                        state,
                        scope: scope.clone(),
                        decided: Some(event.t),
                        decided_by: Some(event.actor.to_string()),
                        note: note.clone().or(row.note),
                        ..row
                    }));
                }
                EventBody::GrantClaimed { approval, .. } => {
                    // A grant with a wider scope is not used up.
                    let once = stored.remove(approval).filter(|row| row.scope == Some(GrantScope::Once));
                    rows.extend(once.map(|row| ApprovalRow { state: ApprovalState::Claimed, ..row }));
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    /// The rows as they are of the approvals that these events decide or use up.
    async fn stored_rows(&self, events: &[Event]) -> Result<BTreeMap<ApprovalId, ApprovalRow>, SessionError> {
        let changed = |event: &Event| match &event.body {
            EventBody::ApprovalDecided { approval, .. } | EventBody::GrantClaimed { approval, .. } => {
                Some(*approval)
            }
            _ => None,
        };
        let wanted: Vec<ApprovalId> = events.iter().filter_map(changed).collect();
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = read_aside(&self.ledger, move |reader| {
            wanted.into_iter().map(|approval| reader.approval(approval)).collect::<Result<Vec<_>, _>>()
        });
        Ok(rows.await?.into_iter().flatten().map(|row| (row.approval, row)).collect())
    }
}
