//! A daemon with a guard at every hook, an escalation policy and a metrics subscriber of one's own:
//! `cargo run -p portcullis-gateway --example own_daemon -- STATE_FOLDER`.

use std::io::Write as _;

use portcullis_core::action::{Hook, Pending};
use portcullis_core::event::Event;
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::id::RunId;
use portcullis_core::memory::Memory;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::{daemon, home::Home};
use portcullis_session::{gate::Extensions, observers::Observer, policy, shipped};

static EVERYWHERE: GuardMeta = GuardMeta {
    id: "house/code-name",
    hooks: &[Hook::Input, Hook::Action, Hook::Observation, Hook::Output],
    owasp: &["LLM02"],
    unfaithful_to: None,
};
static STEPS: GuardMeta = GuardMeta { id: "house/steps", hooks: &[Hook::Action], ..EVERYWHERE };

/// A safeguard: the code name passes in no direction. It is shown at every hook, and looks at calls and texts alike.
#[derive(Debug)]
struct CodeName;

impl<M: Memory> Guard<M> for CodeName {
    fn meta(&self) -> &'static GuardMeta {
        &EVERYWHERE
    }

    fn decide(
        &self,
        _: &Context<'_, M>,
        pending: &Pending<'_>,
        _: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let arguments = pending.subject.action().map(|action| action.arguments.to_string());
        let text = arguments.as_deref().or(pending.subject.text()).unwrap_or_default();
        let found = text.contains("Heron").then(|| Finding::new(EVERYWHERE.id, Verdict::Deny, "a code name"));
        Ok(found.into_iter().collect())
    }
}

/// An escalation policy: from its third step on, a run is warned; from its fourth on, a person decides.
#[derive(Debug)]
struct Steps;

impl<M: Memory> Guard<M> for Steps {
    fn meta(&self) -> &'static GuardMeta {
        &STEPS
    }

    fn decide(
        &self,
        context: &Context<'_, M>,
        _: &Pending<'_>,
        _: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let level = match context.run.steps() {
            0..2 => return Ok(Vec::new()),
            2 => Verdict::Warn,
            _ => Verdict::Review,
        };
        Ok(vec![Finding::new(STEPS.id, level, "the run goes on for long")])
    }
}

/// A metrics subscriber: the events recorded so far, by kind.
#[derive(Debug)]
struct Kinds(std::collections::BTreeMap<&'static str, u64>);

impl Observer for Kinds {
    fn committed(&mut self, _: RunId, events: &[Event]) {
        events.iter().for_each(|event| *self.0.entry(event.body.kind()).or_default() += 1);
        // Whoever reads it may have gone.
        let _ = writeln!(std::io::stdout(), "{:?}", self.0);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Home::at(std::env::args().nth(1).ok_or("name a state folder")?.as_ref())?;
    let mut guards = policy::guards();
    guards.extend([Box::new(CodeName) as Box<dyn Guard<_>>, Box::new(Steps)]);
    let extensions = Extensions {
        pipeline: policy::pipeline_of(guards),
        observers: vec![Box::new(Kinds(Default::default()))],
        ..Extensions::default()
    };
    let shipped = shipped::default_bundle();
    let options = daemon::DaemonOptions {
        home,
        bundle: None,
        shipped,
        http: None,
        console: None,
        controls: Vec::new(),
        build: None,
    };
    Ok(daemon::serve(options, extensions).await?)
}
