//! What guards want to know from outside before something is judged, and what they are told.

use std::sync::Arc;

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::bundle::CONTAIN_SOURCE;
use portcullis_core::delegation;
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::id::ActionId;
use portcullis_core::time::Timestamp;
use portcullis_core::{program, sequence};
use portcullis_guards::flow::{authority, second_opinion};
use portcullis_guards::program::{check, per_action};
use portcullis_trajectory::memory::Context;

use super::{Asking, Engine, Proposal};
use crate::facts::OfPrincipal;
use crate::facts::{Asked, FactSources, Shown, Sources};

impl Engine {
    /// What guards want to know before they judge a proposal, of sources that take time to ask. Changes nothing.
    pub fn needs(&self, at: Timestamp, proposal: &Proposal, sources: &FactSources) -> Asked {
        // Which level is reached matters only to a surface that contains.
        let is_asked = |name: &&str| match *name {
            CONTAIN_SOURCE => proposal.contains,
            program::SOURCE => !self.bundle.programs.is_empty(),
            program::ENGINE_SOURCE => !self.bundle.engines.is_empty(),
            second_opinion::SOURCE => self.bundle.call_models.second_opinion.is_some(),
            per_action::SOURCE => self.bundle.call_models.per_action.is_some(),
            _ => true,
        };
        let names = self.pipeline.sources(Hook::Action).filter(is_asked);
        if !sources.any_of(names) || self.is_stopped(proposal.tool.as_deref()) {
            return Asked::default();
        }
        let Some(context) = self.context() else { return Asked::default() };
        let (action, _) = self.action_of(proposal.clone(), ActionId::from_bytes([0; 16]));
        let pending = Pending { at, subject: Subject::Action(&action), grant: None };
        let read = self.read(pending, &action);
        let contains = proposal.contains;
        let context = read.in_context(context);
        let mut requests = sources.answerable(self.pipeline.needs(&context, &pending));
        requests.retain(|request| contains || request.source != CONTAIN_SOURCE);
        let asks = |source: &str| requests.iter().any(|request| request.source == source);
        // What cannot be told is not asked, which is a denial.
        let told = [program::SOURCE, program::ENGINE_SOURCE, per_action::SOURCE].into_iter().any(asks);
        let told = told.then(|| check::input(&context, &action, at).ok()).flatten();
        let opinion = asks(second_opinion::SOURCE).then(|| authority::asked(&context, &action)).flatten();
        let written = asks(per_action::SOURCE).then(|| per_action::Asked::of(&context, &action)).flatten();
        let shown =
            || Shown { told, second_opinion: opinion, per_action: written, ..self.shown(&pending.subject) };
        Asked::of(requests, shown)
    }

    /// The question to guard programs about a proposal, as things stand, where there are programs.
    pub(crate) fn asks_programs(&self, at: Timestamp, proposal: &Proposal) -> Option<FactRequest> {
        if self.bundle.programs.is_empty() || self.is_stopped(proposal.tool.as_deref()) {
            return None;
        }
        let (action, _) = self.action_of(proposal.clone(), ActionId::from_bytes([0; 16]));
        Some(program::request(self.bundle.programs.digest(), &action, &self.state, at))
    }

    /// What sources are shown of what is judged.
    pub(super) fn shown(&self, subject: &Subject<'_>) -> Shown {
        let memory = self.memory.as_ref().map(|memory| &memory.sources);
        let (prompt, documents) = match (subject, memory) {
            (Subject::Output { documents, .. }, Some(sources)) => {
                (sources.prompt(), sources.documents(&self.bundle, *documents))
            }
            _ => (None, None),
        };
        let text = subject.text().map(str::to_owned);
        Shown {
            bundle: Arc::clone(&self.bundle),
            text,
            prompt,
            documents,
            reply: None,
            told: None,
            second_opinion: None,
            per_action: None,
        }
    }

    /// Sends the guards' questions to the sources that answer them.
    pub(super) fn gather(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        sources: &dyn Sources,
    ) -> Facts {
        let mut facts = Facts::none();
        for request in self.pipeline.needs(context, pending) {
            let answer = match pending.subject {
                Subject::Action(action) if request.source == delegation::PARENT => {
                    let again = self.state.open_action(action.id).is_some();
                    let asking = Asking { action, grant: pending.grant, bundle: self.bundle.digest(), again };
                    sources.of_parent(&request, &asking, pending.at)
                }
                Subject::Action(action) if request.source == sequence::SOURCE => {
                    match OfPrincipal::of(&request, &self.bundle, action) {
                        Some(call) => sources.of_principal(&request, &call, pending.at),
                        None => sources.answer(&request, pending.at),
                    }
                }
                Subject::Action(action) if request.source == program::SOURCE => {
                    let told = || check::input(context, action, pending.at).ok();
                    sources.of_programs(&request, &self.bundle, &told, pending.at)
                }
                _ => sources.answer(&request, pending.at),
            };
            facts.insert(request, answer);
        }
        facts
    }
}
