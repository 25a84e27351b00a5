//! The trajectory as a fold over the events of a run, with the calls whose results are awaited.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use portcullis_core::action::{Action, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::ActionId;
use portcullis_core::label::Label;
use portcullis_core::memory::Texts;
use serde_json::Value as Json;

use crate::kind::ToolView;
use crate::lexicon::{BUILT_IN, Lexicon};
use crate::request::Said;
use crate::rules::{self, Reason, Settings};
use crate::seen::Seen;
use crate::trajectory::{Call, Trajectory};

/// Most calls whose results are still awaited. The result of a call that was forgotten is one of an unknown tool.
pub const OPEN_CALLS_MAX: usize = 1_024;

/// What was read in something pending.
#[derive(Debug, Clone, Default)]
pub enum FlowReading {
    /// What an input says.
    Input(Said),
    /// What the rules say about a call.
    Call(Judged),
    /// What a result holds.
    Result(Seen),
    /// Nothing that matters here.
    #[default]
    Nothing,
}

/// What the rules say about a pending call.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// Every reason against it.
    pub reasons: Vec<Reason>,
    call: Option<Call>,
}

/// The lexicon that ships, read once. That it can be read is tested.
pub fn built_in() -> Arc<Lexicon> {
    static READ: OnceLock<Arc<Lexicon>> = OnceLock::new();
    Arc::clone(READ.get_or_init(|| Arc::new(Lexicon::parse(BUILT_IN).unwrap_or_default())))
}

/// What one run has seen, and the calls whose results are awaited.
#[derive(Debug, Clone)]
pub struct Flow {
    trajectory: Trajectory,
    /// Calls whose results are awaited, the oldest first.
    open: VecDeque<(ActionId, Call)>,
}

fn view<'a>(bundle: &'a Bundle, name: &'a str) -> ToolView<'a> {
    bundle.registry.get(name).map_or(ToolView::unknown(name), |tool| ToolView {
        name,
        description: &tool.description,
        tool_type: &tool.tool_type,
        side_effecting: tool.side_effecting,
    })
}

/// Whether what came from there is the operator's own word.
fn is_trusted(bundle: &Bundle, label: &Label) -> bool {
    matches!(label, Label::Tool(name) if bundle.registry.get(name).is_some_and(|tool| tool.trusted))
}

impl Flow {
    /// Of a run that has seen nothing.
    pub fn new(lexicon: Arc<Lexicon>) -> Self {
        Self { trajectory: Trajectory::new(lexicon), open: VecDeque::new() }
    }

    /// What the run has seen.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    fn judge(&self, bundle: &Bundle, action: &Action) -> Judged {
        let Some(name) = action.tool.as_deref() else { return Judged::default() };
        let call = Call::new(self.trajectory.lexicon(), &view(bundle, name), &action.arguments);
        let settings = Settings { strict: bundle.flow.strict, blind: false };
        let reasons = rules::judge(&self.trajectory, &call, &action.arguments, settings);
        Judged { reasons, call: Some(call) }
    }

    /// The call that an observation answers. Of one that nobody remembers only the tool's name is known.
    fn call(&self, bundle: &Bundle, action: Option<ActionId>, label: &Label) -> Call {
        let open = self.open.iter().rev().find(|(id, _)| Some(*id) == action);
        open.map(|(_, call)| call.clone()).unwrap_or_else(|| {
            let name = match label {
                Label::Tool(name) => name.as_str(),
                _ => "",
            };
            Call::new(self.trajectory.lexicon(), &view(bundle, name), &Json::Null)
        })
    }

    fn propose(&mut self, id: ActionId, call: Call) {
        if self.open.len() >= OPEN_CALLS_MAX {
            self.open.pop_front();
        }
        self.open.push_back((id, call));
    }

    fn said(&mut self, label: &Label, said: Said) {
        match label {
            Label::User => self.trajectory.record_input(said),
            Label::Operator => self.trajectory.record_operator(&said),
            Label::Tool(_) | Label::Unknown => {}
        }
    }

    /// Reads what is pending.
    pub fn read(&self, bundle: &Bundle, subject: &Subject<'_>) -> FlowReading {
        match subject {
            Subject::Input { text, .. } => FlowReading::Input(self.trajectory.read_input(text)),
            Subject::Action(action) => FlowReading::Call(self.judge(bundle, action)),
            Subject::Observation { label, .. } if is_trusted(bundle, label) => FlowReading::Nothing,
            Subject::Observation { action, text, label } => {
                FlowReading::Result(self.trajectory.read_result(&self.call(bundle, *action, label), text))
            }
            Subject::Output { .. } => FlowReading::Nothing,
        }
    }

    /// Takes one more event into account; see [`Memory::record`](portcullis_core::memory::Memory::record).
    pub fn record(&mut self, bundle: &Bundle, event: &Event, texts: &Texts, reading: Option<FlowReading>) {
        match &event.body {
            EventBody::Input { label } => match (reading, texts.get("text")) {
                (Some(FlowReading::Input(said)), _) => self.said(label, said),
                (_, Some(text)) => {
                    let said = self.trajectory.read_input(text);
                    self.said(label, said);
                }
                _ => self.trajectory.forget(),
            },
            EventBody::Proposed(proposed) => {
                let Some(name) = proposed.tool.as_deref() else { return };
                let call = match reading {
                    Some(FlowReading::Call(Judged { call: Some(call), .. })) => call,
                    _ => {
                        let arguments =
                            texts.get("arguments").and_then(|text| serde_json::from_str(text).ok());
                        let arguments: Json = arguments.unwrap_or_default();
                        Call::new(self.trajectory.lexicon(), &view(bundle, name), &arguments)
                    }
                };
                self.propose(proposed.action, call);
            }
            EventBody::Observation { action, label } if is_trusted(bundle, label) => {
                match texts.get("content") {
                    Some(text) => {
                        let said = self.trajectory.read_input(text);
                        self.trajectory.record_operator(&said);
                    }
                    None => self.trajectory.forget(),
                }
                self.open.retain(|(id, _)| Some(*id) != *action);
            }
            EventBody::Observation { action, label } => {
                let call = self.call(bundle, *action, label);
                let seen = match (reading, texts.get("content")) {
                    (Some(FlowReading::Result(seen)), _) => seen,
                    (_, Some(text)) => self.trajectory.read_result(&call, text),
                    _ => return self.trajectory.forget(),
                };
                self.trajectory.record_result(event.seq, &call, seen);
                self.open.retain(|(id, _)| Some(*id) != *action);
            }
            _ => {}
        }
    }
}
