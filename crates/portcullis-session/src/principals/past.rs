//! What sequences over a principal go by: the marks of the calls of all its runs.
//!
//! Keys of marks are recorded under the key of their run, so they cannot be compared with those of other runs. Here they
//! are under one key of the store. For what is read from the store they are found in the arguments again and believed
//! if, under the run's key, they are what was recorded. A key that cannot be found, because arguments were erased, counts
//! for all.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use portcullis_core::action::Action;
use portcullis_core::aside::DIGEST_KEY;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, EventBody, OutcomeStatus};
use portcullis_core::fact::{FactAnswer, FactRequest};
use portcullis_core::id::{ActionId, Digest, RunId};
use portcullis_core::limits::{PRINCIPAL_MARK_KEYS_MAX, PRINCIPAL_WINDOW_MAX_MICROS};
use portcullis_core::sequence::{Mark, Sequences};
use portcullis_core::state::Marks;
use portcullis_core::state::marks::Now;
use portcullis_core::time::Timestamp;
use portcullis_ledger::Reader;
use serde_json::Value;

/// Calls that went ahead and of which it is remembered how they are marked, until they end. One that ends later than so
/// many others did not succeed, as far as sequences know.
const OPEN_CALLS_MAX: usize = 4_096;
/// So many calls go ahead before keys are looked through for old ones again.
const FORGET_EVERY: u64 = 1_000;

/// What happened to a call.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    pub(super) at: Timestamp,
    action: ActionId,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// It goes ahead, with these marks.
    Happened(Vec<Mark>),
    Succeeded,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Past {
    key: Digest,
    marks: Marks,
    order: u64,
    latest: Timestamp,
    forgotten: u64,
    open: VecDeque<(ActionId, Vec<Mark>)>,
    reading: Reading,
}

#[derive(Debug)]
enum Reading {
    /// Nothing asks for it.
    Unwanted,
    /// It is read for this bundle; this happened meanwhile.
    Begun(Arc<Bundle>, Vec<Noted>),
    /// It is complete, for a bundle with these sequences.
    Complete(Arc<Bundle>),
}

impl Past {
    /// That of a principal of which nothing is known, with keys under this one.
    pub(crate) fn new(key: Digest) -> Self {
        let marks = Marks::with_room(PRINCIPAL_MARK_KEYS_MAX);
        let latest = Timestamp::from_micros(i64::MIN);
        Self { key, marks, order: 0, latest, forgotten: 0, open: VecDeque::new(), reading: Reading::Unwanted }
    }

    /// That of a principal of which nothing is stored.
    pub(crate) fn complete(key: Digest, bundle: Arc<Bundle>) -> Self {
        Self { reading: Reading::Complete(bundle), ..Self::new(key) }
    }

    /// Whether it is complete for these sequences.
    pub(crate) fn is_for(&self, sequences: &Sequences) -> bool {
        matches!(&self.reading, Reading::Complete(bundle) if bundle.sequences == *sequences)
    }

    /// From here on what happens is noted for when it is read.
    pub(super) fn begin(&mut self, bundle: &Arc<Bundle>) {
        *self = Self { reading: Reading::Begun(Arc::clone(bundle), Vec::new()), ..Self::new(self.key) };
    }

    /// Takes over what was stored. Calls that were noted meanwhile are not counted again.
    pub(super) fn finish(&mut self, mut stored: Vec<Noted>) {
        let Reading::Begun(bundle, live) = std::mem::replace(&mut self.reading, Reading::Unwanted) else {
            return;
        };
        let known: HashSet<ActionId> = live.iter().map(|noted| noted.action).collect();
        stored.retain(|noted| !known.contains(&noted.action));
        stored.sort_by_key(|noted| noted.at);
        *self = Self::complete(self.key, bundle);
        stored.into_iter().chain(live).for_each(|noted| self.fold(noted));
    }

    /// Reading failed: the next one who asks tries again.
    pub(super) fn give_up(&mut self) {
        self.reading = Reading::Unwanted;
    }

    /// A call is judged, and these events come of it.
    pub(crate) fn judged(&mut self, action: &Action, sequences: &Sequences, events: &[Event]) {
        let Some(tool) = action.tool() else { return };
        for event in events {
            if may_happen(event) == Some(action.id) {
                let marked = sequences.marked(tool, &action.arguments).keyed(&self.key);
                let what = What::Happened(marked.marks().to_vec());
                self.note(Noted { at: event.t, action: action.id, what });
            }
        }
    }

    /// A call went ahead and succeeded, whatever its record.
    pub(crate) fn elsewhere(&mut self, at: Timestamp, action: &Action, sequences: &Sequences) {
        let Some(tool) = action.tool() else { return };
        let marked = sequences.marked(tool, &action.arguments).keyed(&self.key);
        for what in [What::Happened(marked.marks().to_vec()), What::Succeeded] {
            self.note(Noted { at, action: action.id, what });
        }
    }

    /// What became of calls.
    pub(crate) fn ended(&mut self, events: &[Event]) {
        for event in events {
            if let Some(action) = succeeded(event) {
                self.note(Noted { at: event.t, action, what: What::Succeeded });
            }
        }
    }

    /// What counts for a call, for the rules that the question names.
    pub(crate) fn answer(&self, call: &OfPrincipal<'_>, at: Timestamp) -> FactAnswer {
        let OfPrincipal { sequences, tool, arguments } = call;
        if !self.is_for(sequences) {
            return FactAnswer::Failed(
                "what all runs of the principal did is not read yet; try again".to_owned(),
            );
        }
        let marked = sequences.marked(tool, arguments).keyed(&self.key);
        let now = Now { at, step: 0, seq: self.order.saturating_add(1) };
        match serde_json::to_value(sequences.tallies(tool, &marked, &self.marks, now)) {
            Ok(value) => FactAnswer::Known(value),
            Err(error) => FactAnswer::Failed(error.to_string()),
        }
    }

    /// Whether nothing happened in any window that ends now.
    pub(super) fn is_over(&self, at: Timestamp) -> bool {
        self.latest < window_start(at)
    }

    fn note(&mut self, noted: Noted) {
        match &mut self.reading {
            Reading::Unwanted => {}
            Reading::Begun(_, live) => live.push(noted),
            Reading::Complete(_) => self.fold(noted),
        }
    }

    fn fold(&mut self, Noted { at, action, what }: Noted) {
        self.order = self.order.saturating_add(1);
        self.latest = self.latest.max(at);
        let now = Now { at, step: 0, seq: self.order };
        let open = self.open.iter().rposition(|(id, _)| *id == action);
        match (what, open) {
            // What was left to the client's prompt goes ahead once.
            (What::Happened(_), Some(_)) | (What::Succeeded, None) => {}
            (What::Happened(marks), None) if marks.is_empty() => {}
            (What::Happened(marks), None) => {
                self.make_room(at);
                self.marks.happened(&marks, now);
                if self.open.len() >= OPEN_CALLS_MAX {
                    self.open.pop_front();
                }
                self.open.push_back((action, marks));
            }
            (What::Succeeded, Some(open)) => {
                if let Some((_, marks)) = self.open.remove(open) {
                    self.marks.succeeded(&marks, now);
                }
            }
        }
    }

    /// Forgets keys of which nothing happened for longer than any window, where there are too many.
    fn make_room(&mut self, at: Timestamp) {
        if self.marks.is_full() && self.order >= self.forgotten.saturating_add(FORGET_EVERY) {
            self.marks.forget_before(window_start(at));
            self.forgotten = self.order;
        }
    }
}

/// A call of which it is asked what of the principal's past counts for it.
#[derive(Debug, Clone, Copy)]
pub struct OfPrincipal<'a> {
    /// The rules.
    pub sequences: &'a Sequences,
    /// Its tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
}

impl<'a> OfPrincipal<'a> {
    /// The call, if it is one and the question is about it.
    pub(crate) fn of(request: &FactRequest, bundle: &'a Bundle, action: &'a Action) -> Option<Self> {
        let tool = action.tool().filter(|_| request.source == portcullis_core::sequence::SOURCE)?;
        Some(Self { sequences: &bundle.sequences, tool, arguments: &action.arguments })
    }
}

/// Where the longest window begins that ends now.
pub(super) fn window_start(at: Timestamp) -> Timestamp {
    let back = i64::try_from(PRINCIPAL_WINDOW_MAX_MICROS).unwrap_or(i64::MAX);
    Timestamp::from_micros(at.as_micros().saturating_sub(back))
}

/// The call that goes ahead with this event.
fn may_happen(event: &Event) -> Option<ActionId> {
    match &event.body {
        EventBody::Enforcement { action: Some(action), enforced, .. } if enforced.may_happen() => {
            Some(*action)
        }
        _ => None,
    }
}

/// The call that succeeded with this event.
fn succeeded(event: &Event) -> Option<ActionId> {
    match &event.body {
        EventBody::Outcome { action, status: OutcomeStatus::Ok } => Some(*action),
        _ => None,
    }
}

/// Reads one stored run, event by event.
#[derive(Debug)]
pub(super) struct StoredRun<'a> {
    run: RunId,
    reader: &'a dyn Reader,
    sequences: &'a Sequences,
    key: Digest,
    /// The run's own.
    run_key: Option<Digest>,
    calls: HashMap<ActionId, StoredCall>,
}

/// A call that is not over.
#[derive(Debug, Default)]
struct StoredCall {
    arguments: Value,
    /// As recorded.
    marks: Vec<Mark>,
}

impl<'a> StoredRun<'a> {
    pub(super) fn new(run: RunId, reader: &'a dyn Reader, sequences: &'a Sequences, key: Digest) -> Self {
        Self { run, reader, sequences, key, run_key: None, calls: HashMap::new() }
    }

    /// What an event says of a call, if it says something.
    pub(super) fn note(&mut self, event: &Event) -> Result<Option<Noted>, String> {
        if let Some(key) = self.text(event, DIGEST_KEY)? {
            self.run_key = key.parse().ok();
        }
        match &event.body {
            EventBody::Proposed(proposed) if proposed.tool.is_some() => {
                self.calls.insert(proposed.action, StoredCall::default());
                if self.has_keys()
                    && let Some(text) = self.text(event, "arguments")?
                {
                    let arguments = serde_json::from_str(&text).unwrap_or_default();
                    self.calls.insert(proposed.action, StoredCall { arguments, marks: Vec::new() });
                }
            }
            EventBody::Verdict(record) => {
                if let Some(call) = record.action.and_then(|action| self.calls.get_mut(&action)) {
                    call.marks.clone_from(&record.marks);
                }
            }
            EventBody::Outcome { action, status } => {
                self.calls.remove(action);
                let what = What::Succeeded;
                return Ok((*status == OutcomeStatus::Ok).then_some(Noted {
                    at: event.t,
                    action: *action,
                    what,
                }));
            }
            _ => {}
        }
        let happened = may_happen(event).and_then(|action| Some((action, self.calls.get(&action)?)));
        Ok(happened.map(|(action, call)| {
            let what =
                What::Happened(call.marks.iter().map(|mark| self.shared(mark, &call.arguments)).collect());
            Noted { at: event.t, action, what }
        }))
    }

    /// Whether a mark has a key, for which arguments are read.
    fn has_keys(&self) -> bool {
        self.sequences.marks().iter().any(|mark| mark.key.is_some())
    }

    /// A mark under the key that all runs share.
    fn shared(&self, mark: &Mark, arguments: &Value) -> Mark {
        let rule = self.sequences.marks().iter().find(|rule| rule.name == mark.name);
        let found = rule.and_then(|rule| rule.mark(arguments)?.key).filter(|found| {
            let recorded = self.run_key.map(|key| found.keyed(&key));
            recorded.is_some() && recorded == mark.key
        });
        Mark { key: found.map(|found| found.keyed(&self.key)), ..mark.clone() }
    }

    fn text(&self, event: &Event, name: &str) -> Result<Option<String>, String> {
        let Some(payload) = event.payloads.get(name) else { return Ok(None) };
        let stored = self.reader.payload(self.run, payload.commitment).map_err(|error| error.to_string())?;
        Ok(stored.and_then(|stored| String::from_utf8(stored.bytes().to_vec()).ok()))
    }
}
