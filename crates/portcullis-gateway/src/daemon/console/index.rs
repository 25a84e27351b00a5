//! What is known of a run's events without their texts: enough to choose what a page shows, to draw its shape and to find.
//!
//! An index is made when a run is first looked at, and goes on from where it ended when it is looked at again, so that a
//! page of a long run costs as much as what is new and what it shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_console::chart::Density;
use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ApprovalDecision, ConfigChange, Control, Event, EventBody};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::label::Label;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{LedgerError, Reader, StoredEvent};
use portcullis_trajectory::memory::vocabulary;
use portcullis_trajectory::monitors::{self, Monitors};

/// Runs whose indexes are kept.
const KEPT_MAX: usize = 16;
/// Events that are read at a time.
const BATCH: usize = 1_000;
/// Events of a run that are indexed; of a longer one the beginning is.
const EVENTS_MAX: u64 = 200_000;
/// Events whose texts are read for drift, at one look. A run that is further behind has no chart until it is caught up.
const DRIFT_EVENTS: usize = 400;
/// Stretches of the strip.
const STRETCHES: u64 = 160;
/// Acts of people that are kept, the latest.
const ACTS_MAX: usize = 50;
/// Child runs that are named.
const CHILDREN_MAX: usize = 20;

/// An event.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) action: Option<ActionId>,
    pub(super) verdict: Option<Verdict>,
    /// The tool of a call, or the rule of a verdict.
    pub(super) name: Option<Arc<str>>,
    pub(super) kind: Kind,
}

/// What an event is, as far as that decides what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call, a text, the beginning or the end: a new step begins.
    Begins,
    /// The same, of a call: nothing to see where all is allowed.
    Call,
    /// A person did it.
    Person,
    /// Something that is worth a look: more happened than was predicted, an error.
    Notable,
    /// Belongs to what came before.
    Other,
}

/// Somebody did something.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) who: String,
    pub(super) what: String,
}

/// The index of a run.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The events from 1 on.
    pub(super) entries: Vec<Entry>,
    /// Those that have texts: inputs, replies, results.
    pub(super) texts: Vec<u64>,
    /// What people did, the latest last.
    pub(super) acts: Vec<Act>,
    /// Event and drift after it, where it changed.
    drift: Vec<(u64, f64)>,
    /// Event and the risk of its tool that the request does not cover.
    risk: Vec<(u64, f64)>,
    monitors: Option<Monitors>,
    /// The last event that the monitors saw.
    watched: u64,
    names: BTreeMap<Arc<str>, ()>,
    /// Runs that it opened, the first ones.
    pub(super) children: Vec<RunId>,
}

/// The indexes that are kept, with when each was last used.
#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<(u64, BTreeMap<RunId, Kept>)>);

type Kept = (u64, Arc<Mutex<Index>>);

impl Indexes {
    /// The index of a run.
    pub(super) fn of(&self, run: RunId) -> Arc<Mutex<Index>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0 += 1;
        let used = kept.0;
        if let Some(known) = kept.1.get_mut(&run) {
            known.0 = used;
            return Arc::clone(&known.1);
        }
        while kept.1.len() >= KEPT_MAX {
            let oldest = kept.1.iter().min_by_key(|(_, (used, _))| *used).map(|(run, _)| *run);
            let Some(oldest) = oldest else { break };
            kept.1.remove(&oldest);
        }
        let index = Arc::default();
        kept.1.insert(run, (used, Arc::clone(&index)));
        index
    }
}

impl Index {
    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Takes in what was stored since the last look.
    pub(super) fn go_on(&mut self, reader: &dyn Reader, run: RunId) -> Result<(), LedgerError> {
        while self.last() < EVENTS_MAX {
            let batch = reader.events(run, self.last(), BATCH)?;
            let full = batch.len() == BATCH;
            batch.iter().for_each(|stored| self.add(stored));
            if !full {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, stored: &StoredEvent) {
        let mut entry = Entry { action: stored.action, verdict: None, name: None, kind: Kind::Other };
        // The others have nothing that is asked for here, and most events are of them.
        let read = matches!(
            stored.kind.as_str(),
            "proposed" | "verdict" | "approval-decided" | "control" | "outcome" | "work" | "fact"
        );
        let event = if read { Event::from_line(&stored.line).ok() } else { None };
        entry.kind = match stored.kind.as_str() {
            "input" | "output" | "run-opened" | "run-closed" | "gap" => Kind::Begins,
            "config" => Kind::Begins,
            "observed" => Kind::Notable,
            _ => Kind::Other,
        };
        if matches!(stored.kind.as_str(), "input" | "output" | "observation") {
            self.texts.push(stored.seq);
        }
        if stored.kind == "config"
            && self.children.len() < CHILDREN_MAX
            && let Ok(Event { body: EventBody::Config(ConfigChange::ChildOpened { run }), .. }) =
                Event::from_line(&stored.line)
        {
            self.children.push(run);
        }
        if let Some(event) = event {
            self.look_into(&event, &mut entry);
        }
        self.entries.push(entry);
    }

    fn look_into(&mut self, event: &Event, entry: &mut Entry) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                entry.kind = Kind::Call;
                entry.name = proposed.tool.as_deref().map(|tool| self.name(tool));
            }
            EventBody::Verdict(record) => {
                entry.verdict = Some(record.verdict);
                entry.name = record.rule.as_deref().map(|rule| self.name(rule));
            }
            EventBody::ApprovalDecided { decision, .. } => {
                entry.kind = Kind::Person;
                let what = match decision {
                    ApprovalDecision::Granted => "granted a call",
                    ApprovalDecision::Endorsed => "agreed to a call",
                    ApprovalDecision::Refused => "refused a call",
                    ApprovalDecision::Answered => "answered a call",
                    ApprovalDecision::Revoked => "revoked a grant",
                    ApprovalDecision::Expired => "let a request lapse",
                };
                self.act(event, what);
            }
            EventBody::Control { control, .. } => {
                entry.kind = Kind::Person;
                let what = match control {
                    Control::Halt => "halted the run",
                    Control::Pause => "paused the run",
                    Control::Resume => "let the run go on",
                    Control::Freeze => "froze the run",
                    Control::ReleaseReads => "released reads",
                    Control::Release => "released the run",
                };
                self.act(event, what);
            }
            EventBody::Outcome { status, .. } if *status != portcullis_core::event::OutcomeStatus::Ok => {
                entry.kind = Kind::Notable;
            }
            EventBody::Work(_) | EventBody::Fact(_) => entry.kind = Kind::Notable,
            _ => {}
        }
    }

    /// Names repeat: each is kept once.
    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some((name, ())) = self.names.get_key_value(text) {
            return Arc::clone(name);
        }
        let name: Arc<str> = Arc::from(text);
        self.names.insert(Arc::clone(&name), ());
        name
    }

    fn act(&mut self, event: &Event, what: &str) {
        let who = event.actor.as_str().trim_start_matches("approver:").to_owned();
        self.acts.push(Act { seq: event.seq, at: event.t, who, what: what.to_owned() });
        if self.acts.len() > ACTS_MAX {
            self.acts.remove(0);
        }
    }

    /// Whether the monitors have seen everything.
    pub(super) fn is_watched(&self) -> bool {
        self.watched >= self.last()
    }

    /// Lets the monitors see some of what they have not seen, as they did when it was judged.
    pub(super) fn watch(
        &mut self,
        reader: &dyn Reader,
        run: RunId,
        bundle: &Bundle,
    ) -> Result<(), LedgerError> {
        let behind = self.last().saturating_sub(self.watched);
        let limit = DRIFT_EVENTS.min(usize::try_from(behind).unwrap_or(DRIFT_EVENTS));
        let mut monitors = self.monitors.take().unwrap_or_else(|| Monitors::new(monitors::built_in()));
        let mut left = limit;
        while left > 0 {
            let batch = reader.events(run, self.watched, left.min(BATCH))?;
            let Some(last) = batch.last() else { break };
            let (seq, count) = (last.seq, batch.len());
            for stored in batch {
                let Ok(event) = Event::from_line(&stored.line) else { continue };
                self.see(&mut monitors, &event, reader, run, bundle)?;
            }
            self.watched = seq;
            left -= count.min(left);
        }
        self.monitors = Some(monitors);
        Ok(())
    }

    fn see(
        &mut self,
        monitors: &mut Monitors,
        event: &Event,
        reader: &dyn Reader,
        run: RunId,
        bundle: &Bundle,
    ) -> Result<(), LedgerError> {
        let text = |name: &str| -> Result<Option<String>, LedgerError> {
            let Some(payload) = event.payloads.get(name) else { return Ok(None) };
            let stored = reader.payload(run, payload.commitment)?;
            Ok(stored.map(|stored| String::from_utf8_lossy(stored.bytes()).into_owned()))
        };
        match &event.body {
            EventBody::RunOpened(_) | EventBody::Config(ConfigChange::BundleLoaded { .. }) => {
                monitors.follow(&vocabulary(bundle));
            }
            EventBody::Input { label } => {
                if let Some(text) = text("text")? {
                    let read = monitors.read_input(&text, bundle.scores);
                    monitors.record_input(&read, *label == Label::User);
                }
            }
            EventBody::Proposed(proposed) => {
                let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
                let arguments = json(text("arguments")?).unwrap_or_default();
                let action = Action::new(proposed.action, proposed.tool.clone(), arguments, text("planned")?)
                    .with_continuation(json(text("continuation")?));
                let read = monitors.read_call(bundle, &action);
                self.risk.extend(read.tool_risk.filter(|risk| *risk > 0.0).map(|risk| (event.seq, risk)));
                monitors.record_call(proposed.action, proposed.tool.as_deref(), &read);
            }
            EventBody::Outcome { action, status } => monitors.record_outcome(*action, *status),
            EventBody::Observation { action, .. } => {
                if let Some(text) = text("content")? {
                    let read = monitors.read_result(*action, &text);
                    monitors.record_result(*action, &read);
                }
            }
            EventBody::Control { control: Control::Resume, .. } => monitors.resumed(),
            _ => return Ok(()),
        }
        let drift = monitors.drift();
        if self.drift.last().map_or(drift > 0.0, |(_, last)| (last - drift).abs() > f64::EPSILON) {
            self.drift.push((event.seq, drift));
        }
        Ok(())
    }

    /// The shape of the run, with the window that is shown.
    pub(super) fn density(&self, window: (u64, u64)) -> Density {
        let last = self.last();
        let stretches = STRETCHES.min(last.max(1));
        let mut strip = vec![(0_u32, None); usize::try_from(stretches).unwrap_or(1)];
        for (place, entry) in self.entries.iter().enumerate() {
            let place = (place as u64).saturating_mul(stretches) / last.max(1);
            let Some(stretch) = usize::try_from(place).ok().and_then(|place| strip.get_mut(place)) else {
                continue;
            };
            stretch.0 += 1;
            stretch.1 = stretch.1.max(entry.verdict);
        }
        let watched = self.watched == last && self.monitors.is_some();
        // Nothing happened to it: no chart of a flat line.
        let moved = watched && !(self.drift.is_empty() && self.risk.is_empty());
        Density {
            events: last,
            stretches: strip,
            window,
            drift: if moved { self.drift.clone() } else { Vec::new() },
            risk: if moved { thin(&self.risk) } else { Vec::new() },
            thresholds: Vec::new(),
        }
    }

    /// How often each verdict was given.
    pub(super) fn counts(&self) -> Vec<(Verdict, u64)> {
        let mut counts = Verdict::ALL.map(|verdict| (verdict, 0));
        for verdict in self.entries.iter().filter_map(|entry| entry.verdict) {
            if let Some(count) = counts.iter_mut().find(|(of, _)| *of == verdict) {
                count.1 += 1;
            }
        }
        counts.to_vec()
    }
}

/// At most two hundred of them: a picture has no room for more.
fn thin(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let each = points.len().div_ceil(200).max(1);
    let strongest =
        |chunk: &[(u64, f64)]| chunk.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
    points.chunks(each).filter_map(strongest).collect()
}
