//! Three runs with the real engine and the real register of freezes. Their store is in memory: the lines and payloads that
//! a ledger would keep, from which they are taken up again after a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::aside::ERASED;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{
    Actor, ClosedState, Control, EVENT_VERSION, Event, EventBody, Mode, OutcomeStatus, RunOpened,
};
use portcullis_core::freeze::{Freeze, FreezeOrder, FreezeScope};
use portcullis_core::grant::GrantedEffects;
use portcullis_core::id::{ApprovalId, Commitment, RunId};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::memory::Texts;
use portcullis_core::principal::Principal;
use portcullis_core::time::Timestamp;

use super::{Ask, Gate, Order, Told};
use crate::batch::Batch;
use crate::engine::{Answer, Engine, Proposal, Reach, Reported, Teller};
use crate::env::Env;
use crate::facts::NoSources;
use crate::freezes::{Due, Freezes};
use crate::policy::{self, Pipeline};

pub(super) const RUNS: usize = 3;
/// On whose behalf each run acts, and under which policy: the first holds all side effects, the second only what an
/// access policy holds.
pub(super) const PRINCIPALS: [&str; RUNS] = ["ida", "ida", "otto"];
pub(super) const POLICIES: [&str; RUNS] = ["held", "held", "free"];

const ACCESS: &str = "@rule(\"outside\")\n@decision(\"review\")\nforbid (principal, action, resource is Path)\n\
                      unless { resource.inside };\n";
const TOOLS: &str = "[[tool]]\nname = 'read'\ntype = 'R'\nside_effecting = false\n\
                     [[tool]]\nname = 'send'\ntype = 'S'\nside_effecting = true\n\
                     [[tool]]\nname = 'remove'\ntype = 'D'\nside_effecting = true\neffects = { path = 'path' }\n";
const CONTRACT: &str = "[[contract]]\nname = 'short'\nstatement = 'The reply has at most 3 words.'\n\
                        on_fail = 'review'\n";

pub(super) fn run_id(run: usize) -> RunId {
    RunId::from_bytes([u8::try_from(run).unwrap() + 1; 16])
}

/// What all worlds of a quorum have in common, loaded once.
pub(super) struct Shared {
    /// Those that come into force by turns. They differ in nothing that is asked for here.
    bundles: [Arc<Bundle>; 2],
    pipeline: Arc<Pipeline>,
}

impl Shared {
    pub(super) fn new(quorum: usize) -> Self {
        let bundles = [100_000, 100_001].map(|steps| Arc::new(Self::bundle(quorum, steps)));
        Self { bundles, pipeline: Arc::new(policy::pipeline()) }
    }

    fn bundle(quorum: usize, max_steps: u32) -> Bundle {
        let settings = format!(
            "version = 1\n[effects]\nworkspace = '/project'\n[loops]\nalike = 0\ndenials = 0\n\
             [approvals]\nquorum = {quorum}\n"
        );
        let policy = |name: &str, asks: bool| {
            format!(
                "[[policy]]\nname = '{name}'\nallowed_types = ['R', 'S', 'D']\nmax_steps = {max_steps}\n\
                 max_side_effects = 100000\napproval_for_side_effects = {asks}\n"
            )
        };
        let files = [
            ("portcullis.toml", settings),
            ("tools/t.toml", TOOLS.to_owned()),
            ("policies/p.toml", policy("held", true) + &policy("free", false)),
            ("access/paths.cedar", ACCESS.to_owned()),
            ("contracts/c.toml", CONTRACT.to_owned()),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes())).into();
        policy::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
    }

    fn engine(&self, run: usize, bundle: usize) -> Engine {
        Engine::new(run_id(run), Arc::clone(&self.bundles[bundle]), Arc::clone(&self.pipeline))
            .waiting_at_most(APPROVALS_PENDING_MAX)
    }
}

/// A clock that stands until it is moved.
struct Clock {
    micros: i64,
    ids: u64,
}

impl Env for Clock {
    fn now(&mut self) -> Timestamp {
        Timestamp::from_micros(self.micros)
    }

    fn id(&mut self) -> [u8; 16] {
        self.ids += 1;
        let mut id = [0; 16];
        id[8..].copy_from_slice(&self.ids.to_be_bytes());
        id
    }

    fn salt(&mut self) -> [u8; 32] {
        [1; 32]
    }
}

struct Run {
    engine: Engine,
    events: Vec<Event>,
    payloads: BTreeMap<Commitment, String>,
}

/// See the [module documentation](self).
pub(super) struct World<'s> {
    shared: &'s Shared,
    /// Which of the bundles is in force.
    bundle: usize,
    clock: Clock,
    runs: Vec<Run>,
    freezes: Freezes,
    /// Every freeze that was ever stored.
    stored: Vec<Freeze>,
}

impl<'s> World<'s> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        let clock = Clock { micros: 1_000_000, ids: 0 };
        let (runs, freezes, stored) = (Vec::new(), Freezes::default(), Vec::new());
        let mut world = Self { shared, bundle: 0, clock, runs, freezes, stored };
        for run in 0..RUNS {
            let engine = shared.engine(run, 0);
            let opened = RunOpened {
                principal: Principal::named(PRINCIPALS[run]),
                surface: "test".to_owned(),
                session: None,
                policy: POLICIES[run].to_owned(),
                bundle: shared.bundles[0].digest(),
                configuration: None,
                mode: Mode::Enforce,
                place: None,
                parent: None,
            };
            let first = engine.open(&mut world.clock, opened);
            world.runs.push(Run { engine, events: Vec::new(), payloads: BTreeMap::new() });
            world.commit(run, first);
        }
        world
    }

    fn commit(&mut self, run: usize, batch: Batch) {
        assert!(batch.refusal.is_none(), "{:?}", batch.refusal);
        let run = &mut self.runs[run];
        for payload in &batch.payloads {
            let text = String::from_utf8(payload.bytes().to_vec()).unwrap();
            run.payloads.insert(payload.commitment(), text);
        }
        run.engine.commit(&batch.events, batch.said);
        run.events.extend(batch.events);
    }

    /// What a run does before each judgement: see `Live::follow_freezes`.
    fn follow_freezes(&mut self, run: usize) {
        loop {
            let (id, principal) = (run_id(run), PRINCIPALS[run]);
            let stands = self.runs[run].engine.state().freeze().map(|freeze| freeze.stops);
            let Some(due) = self.freezes.due(id, principal, stands) else { return };
            let (control, order) = match due {
                Due::Freeze(order) => (Control::Freeze, order),
                Due::ReleaseReads(order) => (Control::ReleaseReads, order),
                Due::Release(Some(order)) => (Control::Release, order),
                Due::Release(None) => {
                    let covering = self.stored.iter().filter(|freeze| freeze.scope.covers(id, principal));
                    let released = covering.filter_map(|freeze| freeze.released.clone());
                    let Some(order) = released.max_by_key(|order| order.at) else { return };
                    (Control::Release, order)
                }
            };
            let batch = self.runs[run].engine.control(&mut self.clock, control, &order.by, order.note);
            self.commit(run, batch);
        }
    }

    /// Dies, and takes up the runs from those of the stored events that `keeps` says are still there.
    pub(super) fn restart_with(&mut self, keeps: impl Fn(&Event) -> bool) {
        self.freezes = Freezes::default();
        let in_force = self.stored.iter().filter(|freeze| freeze.stops().is_some());
        in_force.for_each(|freeze| self.freezes.set(Arc::new(freeze.clone()), true));
        for run in 0..RUNS {
            self.abandon(run);
            let mut engine = self.shared.engine(run, self.bundle);
            let stored = &mut self.runs[run];
            stored.events.retain(&keeps);
            for event in &mut stored.events {
                *event = Event::from_line(&event.to_line().unwrap()).unwrap();
                let text_of = |commitment| stored.payloads.get(commitment).cloned();
                let texts = event.payloads.iter();
                let texts: Texts = texts
                    .filter_map(|(name, payload)| Some((name.clone(), text_of(&payload.commitment)?)))
                    .collect();
                let words = event.aside_name().and_then(|name| texts.get(name));
                event.join(words.map(String::as_str), ERASED);
                engine.recall(event, &texts);
            }
            stored.engine = engine;
            let first = self.runs[run].engine.resume(&mut self.clock, ClosedState::Abandoned, Mode::Enforce);
            self.commit(run, first);
            self.follow_freezes(run);
        }
    }

    /// What the next process writes for the one that died.
    fn abandon(&mut self, run: usize) {
        let seq = self.runs[run].engine.state().seq() + 1;
        let state = ClosedState::Abandoned;
        let body = EventBody::RunClosed { state, count: seq, successor: None };
        let t = self.clock.now();
        let (actor, payloads) = (Actor::gate(), BTreeMap::new());
        let event = Event { v: EVENT_VERSION, seq, t, actor, cause: None, payloads, body };
        self.runs[run].events.push(event);
    }

    fn call(&mut self, run: usize, ask: Ask) -> Told {
        let proposal = Proposal {
            tool: ask.tool().map(str::to_owned),
            arguments: serde_json::from_str(&ask.content()).unwrap(),
            ..Proposal::default()
        };
        let (batch, judged) = self.runs[run].engine.propose(&mut self.clock, proposal, &NoSources);
        let claimed = claimed(&batch);
        if judged.enforced.proceeds() {
            assert_eq!(claimed, judged.grant, "the record and the answer differ");
        }
        self.commit(run, batch);
        if !judged.enforced.proceeds() {
            return Told { ahead: None, claimed, waits: judged.approval };
        }
        let action = judged.action.id;
        let content = (ask == Ask::Read).then_some("some words");
        let (reach, teller) = (Reach::Replace, Teller::Surface);
        let reported = Reported { action, status: OutcomeStatus::Ok, content, reach, teller };
        let (batch, _) = self.runs[run].engine.outcome(&mut self.clock, reported, &NoSources);
        self.commit(run, batch);
        let with = judged.decision.modified.unwrap_or(judged.action.arguments);
        Told { ahead: Some(with.to_string()), claimed, waits: None }
    }

    fn reply(&mut self, run: usize, ask: Ask) -> Told {
        let text = ask.content();
        let (clock, engine) = (&mut self.clock, &self.runs[run].engine);
        let (batch, judged) = engine.output(clock, &text, None, Reach::Replace, &NoSources);
        let claimed = claimed(&batch);
        self.commit(run, batch);
        let ahead = judged.enforced.proceeds().then(|| judged.shown.unwrap_or(text));
        Told { waits: judged.approval.filter(|_| ahead.is_none()), ahead, claimed }
    }
}

/// The approval whose grant a batch uses.
fn claimed(batch: &Batch) -> Option<ApprovalId> {
    let mut claims = batch.events.iter().filter_map(|event| match &event.body {
        EventBody::GrantClaimed { approval, .. } => Some(*approval),
        _ => None,
    });
    let claimed = claims.next();
    assert_eq!(claims.next(), None, "one answer used two grants");
    claimed
}

impl Gate for World<'_> {
    fn ask(&mut self, run: usize, ask: Ask) -> Told {
        self.follow_freezes(run);
        if ask.tool().is_some() { self.call(run, ask) } else { self.reply(run, ask) }
    }

    fn labels(&self, run: usize) -> LabelSet {
        self.runs[run].engine.state().labels().clone()
    }

    fn held_by(&self, run: usize, approval: ApprovalId) -> Vec<GrantedEffects> {
        let approval = self.runs[run].engine.state().approval(approval);
        approval.map(|approval| approval.held_by.clone()).unwrap_or_default()
    }

    fn answer(&mut self, run: usize, approval: ApprovalId, answer: Answer) -> bool {
        match self.runs[run].engine.answer(&mut self.clock, approval, answer) {
            Ok(batch) => {
                self.commit(run, batch);
                true
            }
            Err(_) => false,
        }
    }

    fn read(&mut self, run: usize, server: u8) {
        let (server, reach) = (format!("server {server}"), Reach::Replace);
        let (batch, _) = self.runs[run].engine.told(&mut self.clock, &server, "words", reach, &NoSources);
        self.commit(run, batch);
    }

    fn speak(&mut self, run: usize) {
        let (clock, engine) = (&mut self.clock, &self.runs[run].engine);
        let (batch, _) = engine.input(clock, "go on", &Label::User, Reach::Replace, &NoSources);
        self.commit(run, batch);
    }

    fn pass(&mut self, micros: i64) {
        self.clock.micros += micros;
    }

    /// Memory first where runs are frozen, the store first where they are released; then the runs.
    fn order(&mut self, scope: &FreezeScope, order: Order) {
        let now = FreezeOrder { at: self.clock.now(), by: "ann".to_owned(), note: None };
        let before = self.freezes.of(scope).map(|in_force| in_force.freeze.as_ref().clone());
        let freeze = match (order, before) {
            (Order::Freeze, before) => {
                let replaced = before.map(|before| Freeze { released: Some(now.clone()), ..before });
                replaced.into_iter().for_each(|replaced| self.store(replaced));
                Freeze { scope: scope.clone(), frozen: now, reads_released: None, released: None }
            }
            (_, None) => return,
            (Order::ReleaseReads, Some(before)) => Freeze { reads_released: Some(now), ..before },
            (Order::Release, Some(before)) => Freeze { released: Some(now), ..before },
        };
        self.store(freeze.clone());
        self.freezes.set(Arc::new(freeze), true);
        (0..RUNS).for_each(|run| self.follow_freezes(run));
    }

    fn restart(&mut self) {
        self.restart_with(|_| true);
    }

    fn reload(&mut self) {
        self.bundle = 1 - self.bundle;
        for run in 0..RUNS {
            let bundle = Arc::clone(&self.shared.bundles[self.bundle]);
            let batch = self.runs[run].engine.reload(&mut self.clock, &bundle);
            self.runs[run].engine.set_bundle(bundle);
            self.commit(run, batch);
        }
    }
}

impl World<'_> {
    /// Loses what is frozen.
    pub(super) fn forget_freezes(&mut self) {
        self.stored.clear();
    }

    fn store(&mut self, freeze: Freeze) {
        self.stored.retain(|one| one.scope != freeze.scope || one.frozen.at != freeze.frozen.at);
        self.stored.push(freeze);
    }
}
