//! How close a run came to limits that it did not reach: the signals of the monitors, computed again from the record,
//! and what it used up of its budgets.
//!
//! The monitors' memory is a fold over events and their texts, so anyone who holds both comes to the numbers that the
//! gate had. Where texts were withheld, later numbers rest on less than the gate knew, and that is said.

use std::collections::BTreeMap;

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::{Bundle, Scores};
use portcullis_core::escalation::{Adaptive, Signal};
use portcullis_core::event::{ConfigChange, Event, EventBody};
use portcullis_core::label::Label;
use portcullis_core::memory::{Memory as _, Remember as _};
use portcullis_core::state::RunState;
use portcullis_core::verdict::Escalation;
use portcullis_trajectory::memory::{RememberRun, RunMemory, RunReading};
use portcullis_trajectory::monitors::Intent;

use crate::input::PackInput;

/// From which part of a limit on it counts as near.
pub(crate) const NEAR: f64 = 0.8;

/// A figure that was held against a limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measure {
    /// What was measured.
    pub(crate) name: String,
    /// Its highest value.
    pub(crate) value: f64,
    /// The limit.
    pub(crate) limit: f64,
    /// What reaching the limit means.
    pub(crate) means: String,
    /// The event at which it stood highest, or `None` for totals of the run.
    pub(crate) event: Option<u64>,
    /// Whether it is a whole number.
    pub(crate) whole: bool,
    /// Whether only more than the limit is too much.
    pub(crate) inclusive: bool,
}

impl Measure {
    /// The fraction of the limit that it reached.
    pub(crate) fn part(&self) -> f64 {
        if self.limit > 0.0 { self.value / self.limit } else { 0.0 }
    }

    /// Close to the limit, without having passed it.
    pub(crate) fn is_near(&self) -> bool {
        let within = if self.inclusive { self.value <= self.limit } else { self.value < self.limit };
        self.value > 0.0 && within && self.part() >= NEAR
    }

    /// A figure as it is shown.
    pub(crate) fn shown(&self, value: f64) -> String {
        if self.whole { format!("{value:.0}") } else { format!("{value:.2}") }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// What was measured, in a fixed order.
    pub(crate) measures: Vec<Measure>,
    /// Events whose texts were not there to be read.
    pub(crate) unread: Vec<u64>,
    /// The event from which on the bundle in force was not at hand.
    pub(crate) unknown_from: Option<u64>,
}

impl Signals {
    /// Measures a run.
    pub(crate) fn of(input: &PackInput<'_>) -> Self {
        let mut fold = Fold::default();
        fold.run(input);
        fold.signals
    }

    /// Those close to their limit, closest first.
    pub(crate) fn near(&self) -> Vec<&Measure> {
        let mut near: Vec<&Measure> = self.measures.iter().filter(|measure| measure.is_near()).collect();
        near.sort_by(|a, b| b.part().total_cmp(&a.part()));
        near
    }
}

#[derive(Default)]
struct Fold {
    signals: Signals,
    state: RunState,
    /// The highest that came up below each limit, by name and limit.
    highest: BTreeMap<String, Measure>,
    /// Near-identical calls, and denials in a row of recent calls.
    alike: (u32, u64),
    denied: (u32, u64),
}

impl Fold {
    fn run(&mut self, input: &PackInput<'_>) {
        let mut memory = RememberRun::default().begin();
        let mut bundle: Option<&Bundle> = None;
        for event in input.record.events() {
            match &event.body {
                EventBody::RunOpened(opened) => bundle = input.bundle(opened.bundle),
                EventBody::Config(ConfigChange::BundleLoaded { bundle: digest, .. }) => {
                    bundle = input.bundle(*digest)
                }
                _ => {}
            }
            match bundle {
                Some(bundle) => self.event(input, bundle, &mut memory, event),
                None => {
                    self.signals.unknown_from.get_or_insert(event.seq);
                    break;
                }
            }
            if let EventBody::Proposed(proposed) = &event.body
                && let Some(likeness) = proposed.likeness
            {
                let alike = self.state.usage().alike(likeness) + 1;
                if alike > self.alike.0 {
                    self.alike = (alike, event.seq);
                }
            }
            self.state.apply(event);
            let denied = self.state.usage().denied_lately();
            if denied > self.denied.0 {
                self.denied = (denied, event.seq);
            }
        }
        if let Some(bundle) = bundle {
            self.budgets(bundle);
        }
        let mut measures: Vec<Measure> = std::mem::take(&mut self.highest).into_values().collect();
        self.signals.measures.append(&mut measures);
    }

    fn event(&mut self, input: &PackInput<'_>, bundle: &Bundle, memory: &mut RunMemory, event: &Event) {
        let texts = input.record.texts(event);
        let missing = event.payloads.keys().any(|name| !texts.contains_key(name));
        if missing {
            self.signals.unread.push(event.seq);
        }
        let reading = match &event.body {
            EventBody::Input { label } => texts.get("text").map(|text| {
                let subject = Subject::Input { text, label };
                let reading = memory.read(bundle, &Pending { at: event.t, subject, grant: None });
                if *label == Label::User {
                    self.input(bundle, event.seq, &reading);
                    let signals = [(Signal::Drift, Some(reading.monitors.drift))];
                    self.rows(bundle, memory, event.seq, reading.monitors.intent.action, &signals);
                }
                reading
            }),
            EventBody::Proposed(proposed) if !missing => {
                let arguments = texts.get("arguments").and_then(|text| serde_json::from_str(text).ok());
                let planned = texts.get("planned").cloned();
                let action = Action::new(
                    proposed.action,
                    proposed.tool.clone(),
                    arguments.unwrap_or_default(),
                    planned,
                )
                .in_directory(proposed.directory.clone())
                .with_confidence(proposed.confidence);
                let subject = Subject::Action(&action);
                let reading = memory.read(bundle, &Pending { at: event.t, subject, grant: None });
                let risk = proposed.tool.as_deref().and_then(|name| bundle.registry.get(name));
                let risk = risk.map_or(0.0, |tool| tool.risk);
                let signals = [
                    (Signal::Drift, Some(reading.monitors.drift)),
                    (Signal::Uncertainty, action.confidence.map(|confidence| 1.0 - confidence)),
                    (Signal::ToolRisk, reading.monitors.tool_risk),
                ];
                self.rows(bundle, memory, event.seq, risk, &signals);
                Some(reading)
            }
            _ => None,
        };
        memory.record(bundle, event, &texts, reading);
    }

    fn input(&mut self, bundle: &Bundle, event: u64, read: &RunReading) {
        let weights = &bundle.monitors.weights;
        let thresholds = [
            (weights.warn, "the intent guard warns"),
            (Intent::threshold(weights.soft, weights), "the intent guard pauses the run"),
            (Intent::threshold(weights.hard, weights), "the intent guard ends the run"),
        ];
        let meant = match bundle.scores {
            Scores::Advise => 1,
            Scores::Stop => thresholds.len(),
        };
        for (limit, means) in thresholds.into_iter().take(meant) {
            self.note("intent score of an input", read.monitors.intent.score, limit, means.to_owned(), event);
        }
    }

    /// Holds signals against the rows of the escalation table that they decide alone.
    fn rows(
        &mut self,
        bundle: &Bundle,
        memory: &RunMemory,
        event: u64,
        context_risk: f64,
        signals: &[(Signal, Option<f64>)],
    ) {
        let settings = &bundle.escalation;
        let history = memory.monitors.history();
        let table = match settings.adaptive {
            None => settings.table.clone(),
            Some(sensitivity) => settings.table.adapted(&Adaptive { sensitivity, context_risk, history }),
        };
        for (number, row) in table.rows().iter().enumerate() {
            let [condition] = row.conditions.as_slice() else { continue };
            let value = signals.iter().find(|(signal, _)| *signal == condition.signal);
            let Some((signal, Some(value))) = value else { continue };
            let level = row.level_under(bundle.scores);
            if level == Escalation::None {
                continue;
            }
            let means = format!("row {} of the escalation table gives {}", number + 1, level.as_str());
            let name = signal.as_str().replace('_', " ");
            self.note(&name, *value, condition.at_least, means, event);
        }
    }

    /// Keeps the highest value for each limit.
    fn note(&mut self, name: &str, value: f64, limit: f64, means: String, event: u64) {
        let key = format!("{name} {limit:.4} {means}");
        let new = Measure {
            name: name.to_owned(),
            value,
            limit,
            means,
            event: Some(event),
            whole: false,
            inclusive: false,
        };
        match self.highest.get_mut(&key) {
            Some(known) if known.value >= value => {}
            Some(known) => *known = new,
            None => {
                self.highest.insert(key, new);
            }
        }
    }

    /// What the run used up of what its policy permits.
    fn budgets(&mut self, bundle: &Bundle) {
        let used = self.state.used();
        let Some(policy) = bundle.policy(self.state.policy()) else { return };
        let name = &policy.name;
        let budget = |what: &str, used: u64, limit: Option<u64>| {
            #[expect(clippy::cast_precision_loss, reason = "shown and compared, never counted with")]
            limit.map(|limit| Measure {
                name: what.to_owned(),
                value: used as f64,
                limit: limit as f64,
                means: format!("the next one is denied by `{name}`"),
                event: None,
                whole: true,
                inclusive: true,
            })
        };
        let budgets = [
            budget("steps", used.steps, Some(u64::from(policy.max_steps))),
            budget("side effects", used.side_effects, Some(u64::from(policy.max_side_effects))),
            budget("bytes of arguments and results", used.bytes, policy.max_bytes),
            budget("cost in millionths", used.cost_micros, policy.max_cost_micros),
        ];
        self.signals.measures.extend(budgets.into_iter().flatten());
        let loops = [
            ("near-identical calls", self.alike, bundle.loops.alike, "the loop breaker denies the next one"),
            ("recent calls denied", self.denied, bundle.loops.denials, "the loop breaker pauses the run"),
        ];
        for (what, (value, event), limit, means) in loops {
            if limit > 0 {
                self.signals.measures.push(Measure {
                    name: what.to_owned(),
                    value: f64::from(value),
                    limit: f64::from(limit),
                    means: means.to_owned(),
                    event: Some(event).filter(|_| value > 0),
                    whole: true,
                    inclusive: true,
                });
            }
        }
    }
}
