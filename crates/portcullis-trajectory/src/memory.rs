//! The memory of a run as the engine keeps it: the parts of this crate, told of each event.

use std::sync::Arc;

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic, MonitorSettings};
use portcullis_core::event::{ConfigChange, Control, Event, EventBody};
use portcullis_core::guard;
use portcullis_core::label::Label;
use portcullis_core::memory::{Memory, Remember, Texts};

use crate::flow::{Ablation, Flow, FlowReading};
use crate::monitors::{self, Monitors, Vocabulary};
use crate::sources::{Sources, Verification};

/// Begins memories.
#[derive(Debug, Clone, Default)]
pub struct RememberRun {
    /// What is different about them.
    pub ablation: Ablation,
}

impl Remember<RunMemory> for RememberRun {
    fn begin(&self) -> RunMemory {
        RunMemory::new(monitors::built_in(), &self.ablation)
    }
}

/// What guards that ask this memory look at.
pub type Context<'a> = guard::Context<'a, RunMemory>;

/// What is remembered of one run.
#[derive(Debug, Clone)]
pub struct RunMemory {
    /// Intent, drift, violations, outcomes.
    pub monitors: Monitors,
    /// Orders, origins of values, the request.
    pub flow: Flow,
    /// What a reply can rest on.
    pub sources: Sources,
}

/// What was read in something pending.
#[derive(Debug, Clone, Default)]
pub struct RunReading {
    /// By the monitors.
    pub monitors: monitors::Reading,
    /// By the rules of flow.
    pub flow: FlowReading,
    /// What was found of a reply, where the bundle wants it verified.
    pub verification: Option<Verification>,
}

impl RunMemory {
    /// A memory of a run of which nothing is known yet.
    pub fn new(vocabulary: Arc<Vocabulary>, ablation: &Ablation) -> Self {
        Self { monitors: Monitors::new(vocabulary), flow: Flow::new(ablation), sources: Sources::default() }
    }

    fn read_monitors(&self, bundle: &Bundle, subject: &Subject<'_>) -> monitors::Reading {
        match subject {
            Subject::Input { text, .. } => self.monitors.read_input(text, bundle.scores),
            Subject::Action(action) => self.monitors.read_call(bundle, action),
            Subject::Observation { action, text, .. } => self.monitors.read_result(*action, text),
            Subject::Output { text, .. } => self.monitors.read_output(text),
            Subject::Contained { .. } => monitors::Reading::default(),
        }
    }
}

/// Whether replies are held against what was asked and read.
fn verifies(bundle: &Bundle) -> bool {
    bundle.verification.is_some() || !bundle.contracts.is_empty()
}

/// Whether somebody is told what the user asked: who verifies replies, guard programs, engines, and models.
fn asks_for_prompts(bundle: &Bundle) -> bool {
    let models = &bundle.call_models;
    verifies(bundle)
        || !bundle.programs.is_empty()
        || !bundle.engines.is_empty()
        || models.second_opinion.is_some()
        || models.per_action.is_some()
}

impl Memory for RunMemory {
    type Reading = RunReading;

    fn read(&self, bundle: &Bundle, pending: &Pending<'_>) -> RunReading {
        let subject = &pending.subject;
        let monitors = self.read_monitors(bundle, subject);
        let verification = match subject {
            Subject::Output { text, documents } => self.sources.verify(bundle, text, *documents),
            _ => None,
        };
        RunReading { monitors, flow: self.flow.read(bundle, subject), verification }
    }

    fn record(&mut self, bundle: &Bundle, event: &Event, texts: &Texts, reading: Option<RunReading>) {
        let (read, flow) = match reading {
            Some(RunReading { monitors, flow, .. }) => (Some(monitors), Some(flow)),
            None => (None, None),
        };
        self.flow.record(bundle, event, texts, flow);
        let text = |name: &str| texts.get(name).map(String::as_str);
        match &event.body {
            EventBody::Input { label: Label::User } if asks_for_prompts(bundle) => {
                self.sources.input(event.seq, text("text"));
            }
            EventBody::Observation { label, .. } if verifies(bundle) => {
                self.sources.result(bundle, event.seq, label, text("content"));
            }
            EventBody::Output {} => self.sources.output(),
            _ => {}
        }
        match &event.body {
            EventBody::RunOpened(_) | EventBody::Config(ConfigChange::BundleLoaded { .. }) => {
                self.monitors.follow(&vocabulary(bundle));
            }
            EventBody::Input { label } => {
                let read = read.or_else(|| {
                    Some(self.read_monitors(bundle, &Subject::Input { text: text("text")?, label }))
                });
                if let Some(read) = read {
                    self.monitors.record_input(&read, *label == Label::User);
                }
            }
            EventBody::Proposed(proposed) => {
                let read = read.unwrap_or_else(|| {
                    let json = |name: &str| text(name).and_then(|text| serde_json::from_str(text).ok());
                    let action = Action::new(
                        proposed.action,
                        proposed.tool.clone(),
                        json("arguments").unwrap_or_default(),
                        texts.get("planned").cloned(),
                    )
                    .with_continuation(json("continuation"));
                    self.read_monitors(bundle, &Subject::Action(&action))
                });
                self.monitors.record_call(proposed.action, proposed.tool.as_deref(), &read);
            }
            EventBody::Outcome { action, status } => self.monitors.record_outcome(*action, *status),
            EventBody::Observation { action, label, tainted } => {
                let read = read.or_else(|| {
                    let text = text("content")?;
                    Some(self.read_monitors(
                        bundle,
                        &Subject::Observation { action: *action, text, label, tainted: tainted.as_ref() },
                    ))
                });
                if let Some(read) = read {
                    self.monitors.record_result(*action, &read);
                }
            }
            EventBody::Control { control: Control::Resume, .. } => self.monitors.resumed(),
            _ => {}
        }
    }
}

/// The patterns of a bundle.
pub fn vocabulary(bundle: &Bundle) -> Arc<Vocabulary> {
    bundle.compiled::<Arc<Vocabulary>>().cloned().unwrap_or_else(monitors::built_in)
}

/// Makes the patterns of a bundle ready when it is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonitorCompiler;

impl Compiler for MonitorCompiler {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        let shipped = Arc::ptr_eq(&bundle.monitors, &MonitorSettings::built_in());
        Ok((!shipped).then(|| Compiled::new(Arc::new(Vocabulary::new(&bundle.monitors)))))
    }
}
