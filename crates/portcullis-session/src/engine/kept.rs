//! Session state and facts of a run: operations become events, and facts that are read are an observation like any other.

use std::collections::HashSet;
use std::ops::Range;

use portcullis_core::action::Subject;
use portcullis_core::event::{Actor, Event, EventBody};
use portcullis_core::id::{ActionId, RequestId};
use portcullis_core::kept::{
    Cell, CellRecord, Foreign, KeptError, KeptFact, KeptId, KeptOp, KeptRecord, NewFact, Put, Refusal,
    Standing, forget, put, read, write,
};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::memory::Texts;
use portcullis_core::taint::Tainted;
use portcullis_core::time::Timestamp;
use portcullis_core::work::Party;
use portcullis_trajectory::marks;
use serde_json::json;

use super::texts::{Reach, TextJudgement};
use super::work::WorkBy;
use super::{Engine, TEXT};
use crate::batch::Batch;
use crate::env::Env;
use crate::facts::{Asked, FactSources, Sources};

/// What facts are labelled with that a run has read: they are not the run's own words, nor its user's.
pub const FACTS_SERVER: &str = "portcullis:facts";
/// Sentences and values of others, in facts, that a run can tell apart. It reads no more of them than that.
const ECHOES_MAX: usize = 16_384;

/// Facts as the agent gets them.
#[derive(Debug, Clone)]
pub struct FactsRead {
    /// Which.
    pub facts: Vec<KeptId>,
    /// They themselves, as a JSON list, as they were judged. What the agent gets is in the judgement, if it is another.
    pub content: String,
    /// What the guards say to them.
    pub judgement: TextJudgement,
}

/// Others' words among the facts that a run has read. Whoever reports what a tool returned may report those facts once
/// more, as the result of a call: they are others' there, too.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    marks: HashSet<u64>,
    labels: LabelSet,
}

impl Echoes {
    /// Takes an event into account that is now part of the run.
    pub(super) fn learn(&mut self, event: &Event, texts: &Texts) {
        let EventBody::Observation { action: None, label: Label::Server(server), tainted: Some(tainted) } =
            &event.body
        else {
            return;
        };
        let Some(content) = texts.get("content").filter(|_| server == FACTS_SERVER) else { return };
        self.labels.extend(tainted.labels.iter().cloned());
        for stretch in &tainted.stretches {
            self.marks.extend(marks::all(content.get(stretch.clone()).unwrap_or_default()));
        }
    }

    /// What of a text is others', with what is known of it otherwise. Costs nothing where no such fact was read.
    pub(super) fn joined(&self, known: Option<Tainted>, text: &str) -> Option<Tainted> {
        if self.marks.is_empty() {
            return known;
        }
        let found = marks::find(text, &self.marks);
        if found.stretches.is_empty() {
            return known;
        }
        let mut tainted = known.unwrap_or_default();
        tainted.labels.extend(self.labels.iter().cloned());
        tainted.stretches.extend(found.stretches);
        Some(Tainted { stretches: marks::joined(tainted.stretches), ..tainted })
    }
}

/// Facts as one JSON list, and what of it others wrote.
fn content_of(facts: &[KeptFact]) -> (String, Option<Tainted>) {
    let (mut content, mut wanted) = (String::from("["), HashSet::new());
    let (mut whole, mut labels): (Vec<Range<usize>>, _) = (Vec::new(), LabelSet::default());
    for fact in facts {
        if content.len() > 1 {
            content.push(',');
        }
        let from = content.len();
        let mut shown = json!({"fact": fact.id, "text": fact.text});
        if let (Some(map), false) = (shown.as_object_mut(), fact.topic.is_empty()) {
            map.insert("topic".to_owned(), fact.topic.as_str().into());
        }
        content.push_str(&shown.to_string());
        labels.extend(fact.foreign.labels.iter().cloned());
        match &fact.foreign.marks {
            _ if fact.foreign.labels.is_empty() => {}
            Some(marks) => wanted.extend(marks.as_slice()),
            None => whole.push(from..content.len()),
        }
    }
    content.push(']');
    if labels.is_empty() {
        return (content, None);
    }
    let found = marks::find(&content, &wanted);
    whole.extend(found.stretches);
    if found.cut {
        whole.push(0..content.len());
    }
    let stretches = marks::joined(whole);
    (content, Some(Tainted { labels, stretches }))
}

impl Engine {
    /// The latest event of an action.
    pub(super) fn event_of(&self, action: ActionId) -> Option<u64> {
        let open = self.state.open_action(action).map(|open| open.last_event);
        open.or_else(|| self.state.works().call(action).map(|call| call.outcome))
    }

    /// Puts a value in place of the version that is named. A refusal is recorded, too. `None` in place of a batch: the same
    /// request was made before, and this is what came of it.
    pub fn state_put(
        &self,
        env: &mut dyn Env,
        asked: Put,
        cause: Option<ActionId>,
    ) -> (Option<Batch>, Result<Cell, KeptError>) {
        let kept = self.state.kept();
        let known = asked.request.and_then(|request| kept.done(request));
        if let Some(cell) = kept.cell(&asked.key).filter(|cell| Some(cell.version) == known) {
            return (None, Ok(cell.clone()));
        }
        let mut batch = self.builder(env);
        let cause = cause.and_then(|action| self.event_of(action));
        let (record, answer) = match put(kept, asked.clone(), self.state.labels()) {
            Ok(record) => {
                let cell = Cell {
                    id: record.cell.unwrap_or(portcullis_core::kept::CellId(0)),
                    key: record.words.key.clone(),
                    value: record.words.after.clone(),
                    version: batch.seq() + 1,
                    labels: record.labels.clone(),
                };
                (record, Ok(cell))
            }
            Err(error) => (CellRecord::refused(kept, &asked, &error), Err(error)),
        };
        batch.push(Actor::agent(self.principal()), cause, EventBody::State(record));
        (Some(batch.finish()), answer)
    }

    /// Establishes a fact. A refusal is recorded, too. `None` in place of a batch: the same request was made before.
    pub fn fact_write(
        &self,
        env: &mut dyn Env,
        mut new: NewFact,
        look: &dyn Fn(KeptId) -> Standing,
        cause: Option<ActionId>,
    ) -> (Option<Batch>, Result<KeptId, KeptError>) {
        let kept = self.state.kept();
        let named = |seq| KeptId { run: self.run, seq };
        let known = new.request.and_then(|request| kept.done(request)).filter(|seq| kept.wrote(*seq));
        if let Some(seq) = known {
            return (None, Ok(named(seq)));
        }
        if let Some(memory) = &self.memory {
            let (labels, marks) = memory.flow.others_in(&format!("{}\n{}", new.topic, new.text));
            new.foreign = Foreign { marks: marks.filter(|_| !labels.is_empty()), labels };
        }
        let request = new.request;
        let record = write(kept, new, self.state.labels(), &|id| self.standing(id, look));
        let (batch, seq) =
            self.recorded(env, Actor::agent(self.principal()), cause, request, KeptOp::Write, record);
        (Some(batch), seq.map(named))
    }

    /// Forgets a fact. A refusal is recorded, too. `None` in place of a batch: the same request was made before.
    pub fn fact_forget(
        &self,
        env: &mut dyn Env,
        by: &WorkBy,
        (id, reason): (KeptId, String),
        request: Option<RequestId>,
        standing: Standing,
        cause: Option<ActionId>,
    ) -> (Option<Batch>, Result<(), KeptError>) {
        let kept = self.state.kept();
        if request.is_some_and(|request| kept.done(request).is_some()) {
            return (None, Ok(()));
        }
        let record = forget(kept, id, reason, request, self.standing(id, &|_| standing));
        let actor = match by.party {
            Party::Person => Actor::approver(&by.person),
            Party::Agent | Party::Harness => Actor::agent(self.principal()),
        };
        let (batch, seq) = self.recorded(env, actor, cause, request, KeptOp::Forget, record);
        (Some(batch), seq.map(drop))
    }

    /// How a fact stands: what this run has forgotten is not there, whatever the store said when it was looked up.
    fn standing(&self, id: KeptId, look: &dyn Fn(KeptId) -> Standing) -> Standing {
        if self.state.kept().forgot(id) { Standing::Forgotten } else { look(id) }
    }

    fn recorded(
        &self,
        env: &mut dyn Env,
        actor: Actor,
        cause: Option<ActionId>,
        request: Option<RequestId>,
        op: KeptOp,
        record: Result<KeptRecord, KeptError>,
    ) -> (Batch, Result<u64, KeptError>) {
        let mut batch = self.builder(env);
        let cause = cause.and_then(|action| self.event_of(action));
        let (record, error) = match record {
            Ok(record) => (record, None),
            Err(error) => (KeptRecord::refused(op, request, &error), Some(error)),
        };
        let seq = batch.push(actor, cause, EventBody::Fact(record));
        (batch.finish(), error.map_or(Ok(seq), Err))
    }

    /// What guards want to know before they judge facts that are read.
    pub fn needs_of_facts(&self, at: Timestamp, facts: &[KeptFact], sources: &FactSources) -> Asked {
        let label = Label::Server(FACTS_SERVER.to_owned());
        let (content, _) = content_of(facts);
        let subject = Subject::Observation { action: None, text: &content, label: &label, tainted: None };
        self.needs_of_text(at, subject, sources)
    }

    /// Hands facts to the agent: the run has then seen what those had seen that wrote them, and what others wrote in them is
    /// theirs.
    ///
    /// # Errors
    /// The run has read more of others' words than it can tell apart.
    pub fn fact_read(
        &self,
        env: &mut dyn Env,
        mut facts: Vec<KeptFact>,
        cause: Option<ActionId>,
        reach: Reach,
        sources: &dyn Sources,
    ) -> Result<(Batch, FactsRead), KeptError> {
        facts.retain(|fact| !self.state.kept().forgot(fact.id));
        if self.echoes.marks.len() >= ECHOES_MAX && facts.iter().any(|fact| !fact.foreign.labels.is_empty()) {
            let reason = "this run has read as many words of others, in facts, as it can tell apart";
            return Err(KeptError::new(Refusal::Full, "facts", reason, "go on in another run"));
        }
        let mut batch = self.builder(env);
        let (content, tainted) = content_of(&facts);
        let cause = cause.and_then(|action| self.event_of(action));
        let record = read(&facts);
        let ids = record.facts.clone();
        let asked = batch.push(Actor::agent(self.principal()), cause, EventBody::Fact(record));
        let label = Label::Server(FACTS_SERVER.to_owned());
        let body = EventBody::Observation { action: None, label: label.clone(), tainted: tainted.clone() };
        let payload = ("content", TEXT, content.as_bytes().to_vec());
        let seen = batch.push_with(Actor::gate(), Some(asked), body, [Some(payload)]);
        let tainted = tainted.as_ref();
        let subject = Subject::Observation { action: None, text: &content, label: &label, tainted };
        let judgement = self.judge_text(&mut batch, subject, seen, reach, sources);
        Ok((batch.finish(), FactsRead { facts: ids, content, judgement }))
    }
}
