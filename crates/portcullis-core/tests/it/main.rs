//! The laws of the core, as tests over guards made up for the purpose.
#![cfg(test)]

mod bundle;
mod containment;
mod freeze;
mod laws;
mod run_state;

use std::collections::BTreeMap;

use portcullis_core::action::{Action, Hook, Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::id::ActionId;
use portcullis_core::pipeline::{Decision, Pipeline};
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;

static META: GuardMeta =
    GuardMeta { id: "test/guard", hooks: &[Hook::Action], owasp: &[], unfaithful_to: None };

/// What a made-up guard does.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    Find(Vec<Finding>),
    Fail,
    Panic,
    Need(FactRequest),
}

/// A guard made up for a test.
#[derive(Debug, Clone)]
pub(crate) struct MadeUp(pub(crate) Does);

impl Guard for MadeUp {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn needs(&self, _: &Context<'_>, _: &Pending<'_>) -> Vec<FactRequest> {
        match &self.0 {
            Does::Need(request) => vec![request.clone()],
            _ => Vec::new(),
        }
    }

    fn decide(&self, _: &Context<'_>, _: &Pending<'_>, _: &Facts) -> Result<Vec<Finding>, GuardFailure> {
        match &self.0 {
            Does::Find(findings) => Ok(findings.clone()),
            Does::Fail => Err(GuardFailure("out of luck".into())),
            Does::Panic => panic!("a guard that panics on purpose"),
            Does::Need(_) => Ok(Vec::new()),
        }
    }
}

pub(crate) fn files(more: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let policy =
        "[[policy]]\nname = 'p'\nallowed_types = ['CALCULATE']\nmax_steps = 5\nmax_side_effects = 1\n";
    let mut files = BTreeMap::from([
        ("portcullis.toml".to_owned(), b"version = 1\n".to_vec()),
        ("policies/p.toml".to_owned(), policy.as_bytes().to_vec()),
    ]);
    files.extend(more.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    files
}

pub(crate) fn decide(guards: &[MadeUp], arguments: serde_json::Value, facts: &Facts) -> Decision {
    let bundle = Bundle::load(&files(&[])).unwrap();
    let state = RunState::new();
    let context = Context::new(&bundle, bundle.policy("p").unwrap(), &state);
    let action = Action::new(ActionId::from_bytes([1; 16]), Some("t".into()), arguments, None);
    let pending = Pending { at: Timestamp::from_micros(1), subject: Subject::Action(&action), grant: None };
    let guards = guards.iter().cloned().map(|guard| Box::new(guard) as Box<dyn Guard>).collect();
    Pipeline::new(guards).decide(&context, &pending, facts)
}
