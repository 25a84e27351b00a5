//! The trajectory as a fold over the events of a run, with the calls whose results are awaited.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use portcullis_core::action::{Action, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::Effect;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::ActionId;
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::memory::Texts;
use portcullis_core::taint::{Marks, Taint, Tainted};
use portcullis_detect::normalise::normalise;
use portcullis_detect::{Detector, Head, Hit};
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::carried::{Carried, Foreign};
use crate::continued::carried;
use crate::excise;
use crate::judge::{self, Reason, Settings};
use crate::lexicon::{BUILT_IN, LANGUAGES, Lexicon, WORDNET};
use crate::passages::PASSAGES_MAX;
use crate::posing;
use crate::request::Said;
use crate::seen::Seen;
use crate::things::{Things, Touched};
use crate::toolset::Toolset;
use crate::trajectory::{Call, Trajectory};

/// Most calls whose results are still awaited. The result of a call that was forgotten is one of an unknown tool.
pub const OPEN_CALLS_MAX: usize = 1_024;

/// What is different about a memory, for experiments. The default is what ships.
#[derive(Debug, Clone, Default)]
pub struct Ablation {
    /// Other words than the lexicon that ships.
    pub lexicon: Option<Arc<Lexicon>>,
    /// Strict whatever the bundle says.
    pub strict: bool,
    /// Look at no passage; see [`Settings::blind`].
    pub blind: bool,
    /// No passage poses; see [`Settings::unposed`].
    pub unposed: bool,
}

/// What was read in something pending.
#[derive(Debug, Clone, Default)]
pub enum FlowReading {
    /// What an input says, and what in it reads like orders over orders.
    Input(Said, Overrides),
    /// A call, read; see [`Flow::judge`].
    Call(Call),
    /// What a result holds, and what of it was planted there; see [`excise::planted`].
    Result(Seen, Option<Vec<Range<usize>>>),
    /// Nothing that matters here.
    #[default]
    Nothing,
}

/// What in an input reads like an attempt to set aside the rules that hold, or to speak as someone else.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Overrides {
    /// There is no detector: its files do not load.
    #[default]
    Unread,
    /// What was found; nothing, most of the time.
    Read(Vec<Hit>),
}

impl Overrides {
    fn read(text: &str) -> Self {
        Detector::shipped().map_or(Self::Unread, |detector| Self::Read(detector.scan(text, Head::Override)))
    }
}

/// The lexicon that ships, read once. That it can be read is tested.
pub fn built_in() -> Arc<Lexicon> {
    static READ: OnceLock<Arc<Lexicon>> = OnceLock::new();
    Arc::clone(READ.get_or_init(|| {
        let whole = Lexicon::parse(BUILT_IN)
            .and_then(|lexicon| lexicon.with_wordnet(WORDNET))
            .and_then(|lexicon| lexicon.with_languages(LANGUAGES));
        Arc::new(whole.unwrap_or_default())
    }))
}

/// Whether letters are a word that matters for finding orders: one of the lexicon, or one that a text poses with, in
/// any spelling.
pub fn is_word(letters: &str) -> bool {
    let plain = normalise(letters).text;
    built_in().knows(&plain) || posing::is_hint(&plain)
}

/// What one run has seen, and the calls whose results are awaited.
#[derive(Debug, Clone)]
pub struct Flow {
    trajectory: Trajectory,
    /// Calls whose results are awaited, the oldest first.
    open: VecDeque<(ActionId, Call)>,
    /// Whose words events showed, by their numbers, the oldest first.
    shown: VecDeque<(u64, LabelSet)>,
    strict: bool,
    blind: bool,
    unposed: bool,
}

/// Whether what came from there is the operator's own word.
fn is_trusted(bundle: &Bundle, label: &Label) -> bool {
    matches!(label, Label::Tool(name) if bundle.registry.get(name).is_some_and(|tool| tool.trusted))
}

/// Whether the bundle names a tool as a directory: by its name, or as `server/tool` where a client writes both into the
/// name, as `mcp__server__tool`.
fn is_directory(bundle: &Bundle, name: &str) -> bool {
    let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let (server, tool) = parts.map_or((None, name), |(server, tool)| (Some(server), tool));
    bundle.authority.is_directory(server, tool)
}

impl Flow {
    /// Of a run that has seen nothing.
    pub fn new(ablation: &Ablation) -> Self {
        let lexicon = ablation.lexicon.clone().unwrap_or_else(built_in);
        Self {
            trajectory: Trajectory::new(lexicon),
            open: VecDeque::new(),
            shown: VecDeque::new(),
            strict: ablation.strict,
            blind: ablation.blind,
            unposed: ablation.unposed,
        }
    }

    /// What the run has seen.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// Judges a call that was read, with what it would touch: the reason against it, if there is one.
    pub fn judge(&self, bundle: &Bundle, action: &Action, call: &Call, effects: &[Effect]) -> Option<Reason> {
        let strict = self.strict || bundle.flow.strict;
        let settings = Settings { strict, blind: self.blind, unposed: self.unposed };
        let arguments = carried(&action.arguments, action.continuation.as_ref());
        judge::judge(&self.trajectory, call, &arguments, effects, settings)
    }

    /// The call that an observation answers. Of one that nobody remembers only the tool's name is known.
    fn call(&self, bundle: &Bundle, action: Option<ActionId>, label: &Label) -> Call {
        let open = self.open.iter().rev().find(|(id, _)| Some(*id) == action);
        open.map(|(_, call)| call.clone()).unwrap_or_else(|| {
            let name = match label {
                Label::Tool(name) => name.as_str(),
                _ => "",
            };
            self.new_call(bundle, name, &Json::Null)
        })
    }

    fn tools(&self, bundle: &Bundle) -> Arc<Toolset> {
        Toolset::of(self.trajectory.lexicon(), &bundle.registry)
    }

    fn new_call(&self, bundle: &Bundle, name: &str, arguments: &Json) -> Call {
        let tools = self.tools(bundle);
        let kind = tools.kind(&bundle.registry, name);
        Call::read(self.trajectory.lexicon(), tools.names(), &bundle.authority, kind, arguments)
    }

    /// What was planted in a result.
    fn planted(
        &self,
        call: &Call,
        text: &str,
        seen: &Seen,
        tainted: Option<&Tainted>,
    ) -> Option<Vec<Range<usize>>> {
        if self.blind || self.unposed {
            return Some(Vec::new());
        }
        excise::planted(&self.trajectory, call, text, seen, tainted)
    }

    /// What an action reads and writes that outlives the run. `shown_by` says whether it was a thing itself that showed
    /// what is written into it now: that stays what it was there.
    ///
    /// Linear in the arguments if it writes something and others'
    /// words were read; O(effects) otherwise.
    pub fn touched(
        &self,
        bundle: &Bundle,
        action: &Action,
        reading: Option<&FlowReading>,
        effects: &[Effect],
        shown_by: impl Fn(&str, &Foreign) -> bool,
    ) -> Touched {
        let Some(name) = action.tool() else { return Touched::default() };
        let arguments = carried(&action.arguments, action.continuation.as_ref());
        let Things { reads, writes, replaces } = match reading {
            Some(FlowReading::Call(call)) => Things::of(call, action, effects),
            _ => Things::of(&self.new_call(bundle, name, &arguments), action, effects),
        };
        if writes.is_empty() {
            return Touched { reads, writes: Vec::new() };
        }
        let others = Carried::by(&self.trajectory, &arguments);
        let taint = |thing: String| {
            let others = others.without(|foreign| shown_by(&thing, foreign));
            let (labels, replaces) = (self.labels_of(&others), replaces && !Things::is_gathered(&thing));
            Taint { labels, marks: others.into_marks(), replaces, thing }
        };
        Touched { reads, writes: writes.into_iter().map(taint).collect() }
    }

    /// What of a text others wrote: their labels, and which of its words are theirs, or `None` for all of them. Linear in
    /// the text if others' words were read.
    pub fn others_in(&self, text: &str) -> (LabelSet, Option<Marks>) {
        let others = Carried::by(&self.trajectory, &Json::String(text.to_owned()));
        (self.labels_of(&others), others.into_marks())
    }

    /// Whose words they are.
    fn labels_of(&self, others: &Carried) -> LabelSet {
        let mut labels = LabelSet::default();
        for seq in others.found.iter().filter_map(|foreign| foreign.seq) {
            let shown = self.shown.binary_search_by_key(&seq, |(shown, _)| *shown).ok();
            match shown.and_then(|at| self.shown.get(at)) {
                Some((_, by)) => labels.extend(by.iter().cloned()),
                None => labels.insert(Label::Unknown),
            }
        }
        if others.unknown {
            labels.insert(Label::Unknown);
        }
        labels
    }

    /// Notes whose words an event shows.
    fn show(&mut self, seq: u64, label: &Label, tainted: Option<&Tainted>) {
        if self.shown.len() >= PASSAGES_MAX {
            self.shown.pop_front();
        }
        let mut labels = LabelSet::default();
        labels.insert(label.clone());
        labels.extend(tainted.iter().flat_map(|tainted| tainted.labels.iter().cloned()));
        self.shown.push_back((seq, labels));
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
            Label::Operator => self.trajectory.record_operator(said),
            Label::Tool(_) | Label::Server(_) | Label::Run(_) | Label::Unknown => {}
        }
    }

    /// Reads what is pending.
    pub fn read(&self, bundle: &Bundle, subject: &Subject<'_>) -> FlowReading {
        match subject {
            Subject::Input { text, .. } => {
                FlowReading::Input(self.trajectory.read_input(text), Overrides::read(text))
            }
            Subject::Action(action) => match action.tool() {
                Some(name) => {
                    let arguments = carried(&action.arguments, action.continuation.as_ref());
                    FlowReading::Call(self.new_call(bundle, name, &arguments))
                }
                None => FlowReading::Nothing,
            },
            Subject::Observation { label, tainted: None, .. } if is_trusted(bundle, label) => {
                FlowReading::Nothing
            }
            Subject::Observation { action, text, label, tainted } => {
                let call = self.call(bundle, *action, label);
                let seen = self.trajectory.read_result(&call, text);
                let whole = matches!(label, Label::Tool(name)
                    if bundle.registry.get(name).is_some_and(|tool| !tool.excise));
                let planted =
                    if whole { Some(Vec::new()) } else { self.planted(&call, text, &seen, *tainted) };
                FlowReading::Result(seen, planted)
            }
            Subject::Output { .. } | Subject::Contained { .. } => FlowReading::Nothing,
        }
    }

    /// Takes one more event into account; see [`Memory::record`](portcullis_core::memory::Memory::record).
    pub fn record(&mut self, bundle: &Bundle, event: &Event, texts: &Texts, reading: Option<FlowReading>) {
        match &event.body {
            EventBody::Input { label } => match (reading, texts.get("text")) {
                (Some(FlowReading::Input(said, _)), _) => self.said(label, said),
                (_, Some(text)) => {
                    let said = self.trajectory.read_input(text);
                    self.said(label, said);
                }
                _ => self.trajectory.forget(),
            },
            EventBody::Proposed(proposed) => {
                let Some(name) = proposed.tool.as_deref() else { return };
                let call = match reading {
                    Some(FlowReading::Call(call)) => call,
                    _ => {
                        let read =
                            |name: &str| texts.get(name).and_then(|text| serde_json::from_str(text).ok());
                        let arguments: Json = read("arguments").unwrap_or_default();
                        self.new_call(bundle, name, &carried(&arguments, read("continuation").as_ref()))
                    }
                };
                self.propose(proposed.action, call);
            }
            // What others had written is not the operator's word, whatever tool reads it.
            EventBody::Observation { action, label, tainted: None } if is_trusted(bundle, label) => {
                match texts.get("content") {
                    Some(text) => {
                        let said = self.trajectory.read_input(text);
                        self.trajectory.record_operator(said);
                    }
                    None => self.trajectory.forget(),
                }
                self.open.retain(|(id, _)| Some(*id) != *action);
            }
            EventBody::Observation { action, label, tainted } => {
                let call = self.call(bundle, *action, label);
                let seen = match (reading, texts.get("content")) {
                    (Some(FlowReading::Result(seen, _)), _) => seen,
                    (_, Some(text)) => self.trajectory.read_result(&call, text),
                    _ => return self.trajectory.forget(),
                };
                let directory = matches!(label, Label::Tool(name) if is_directory(bundle, name));
                self.show(event.seq, label, tainted.as_ref());
                let tainted = tainted.as_ref().zip(texts.get("content").map(String::as_str));
                let answer = Answer { directory, tainted };
                self.trajectory.record_answer(event.seq, &call, seen, &answer);
                self.open.retain(|(id, _)| Some(*id) != *action);
            }
            _ => {}
        }
    }
}
