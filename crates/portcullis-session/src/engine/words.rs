//! What was said with calls that wait for a person: the agent's announcement, which is shown with the call, so that a
//! grant for one call covers it as well; and what a person gave in place of the agent's arguments or reply.

use std::collections::BTreeMap;

use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{About, Event, EventBody};
use portcullis_core::id::{ActionId, ApprovalId, Digest, DigestBuilder};
use portcullis_core::limits::APPROVALS_MAX;
use portcullis_core::memory::Texts;
use portcullis_core::state::{EDITED_ARGUMENTS, EDITED_TEXT, RunState};
use serde_json::Value;

use crate::batch::note_secrets;

/// The words by the call that they came with, as digests.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Of the latest proposal.
    latest: Option<(ActionId, Option<Digest>)>,
    /// Of calls that were held. None: there were none, or they are not known any more.
    held: BTreeMap<ActionId, Option<Digest>>,
    /// What a person gave in place of the agent's arguments or reply, by the approval.
    edited: BTreeMap<ApprovalId, Value>,
}

impl Words {
    /// Takes an event into account that is now part of the run, with its texts.
    pub(super) fn learn(&mut self, event: &Event, texts: &Texts, state: &RunState) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                self.latest = Some((proposed.action, texts.get("planned").map(|text| digest(text))));
            }
            EventBody::ApprovalRequested { about: About::Action(action), .. } => {
                let words = self.latest.take().filter(|(latest, _)| latest == action);
                if self.held.len() >= APPROVALS_MAX {
                    self.held.retain(|action, _| state.open_action(*action).is_some());
                }
                self.held.insert(*action, words.and_then(|(_, words)| words));
            }
            EventBody::ApprovalDecided { approval, .. } => {
                let arguments = texts.get(EDITED_ARGUMENTS).and_then(|text| serde_json::from_str(text).ok());
                let given =
                    arguments.or_else(|| texts.get(EDITED_TEXT).map(|text| Value::from(text.as_str())));
                if let Some(given) = given {
                    if self.edited.len() >= APPROVALS_MAX {
                        self.edited.retain(|approval, _| state.approval(*approval).is_some());
                    }
                    self.edited.insert(*approval, given);
                }
            }
            EventBody::GrantClaimed { approval, .. } => drop(self.edited.remove(approval)),
            _ => {}
        }
    }

    /// What a person gave in place of what waits for this approval.
    pub(super) fn edited(&self, approval: ApprovalId) -> Option<&Value> {
        self.edited.get(&approval)
    }

    /// Whether a call says nothing else than the held one did. Saying nothing is not saying something else. Secrets in
    /// the words were replaced before they were kept, as the bundle says.
    pub(super) fn same(&self, held: ActionId, action: &Action, bundle: &Bundle) -> bool {
        let Some(planned) = &action.planned else { return true };
        let Some(shown) = self.held.get(&held).copied().flatten() else { return false };
        let mut noted = planned.clone();
        note_secrets(&mut noted, bundle);
        shown == digest(planned) || shown == digest(&noted)
    }
}

fn digest(words: &str) -> Digest {
    DigestBuilder::new("portcullis/planned/v1").part(words.as_bytes()).finish()
}
