//! Random sequences of what agents, the harness and people do never reach an illegal state, and the record explains
//! every state.
//!
//! A [`World`] has the real rules and the real fold. The [`Auditor`] sees what was asked for, what was recorded and what
//! happened to calls and files, and keeps books of its own, by rules that are written down a second time. At the end of
//! each sequence the run is folded again from its lines and payloads alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::*;
use crate::bundle::WorkSettings;
use crate::event::{Actor, EVENT_VERSION, Enforced, Event, EventBody, PayloadRef, Proposed};
use crate::state::RunState;
use crate::time::Timestamp;

/// Sequences that are played: 240,000 operations.
const SEQUENCES: u64 = 10_000;
/// The same in the long form.
const SEQUENCES_LONG: u64 = 1_000_000;
/// Operations of a sequence.
const STEPS: usize = 24;
/// Files that calls write; an item covers the one of its number, modulo this.
const FILES: u64 = 3;

const SETTINGS: WorkSettings =
    WorkSettings { attempts: 1, revisions: 1, steps: 8, accept_agent_criteria: false };

/// A small generator, so that a sequence is known by its number.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }
}

/// The run, with its record.
pub(super) struct World {
    pub(super) state: RunState,
    record: Vec<(Vec<u8>, Option<String>)>,
    seq: u64,
    calls: u64,
    /// Writes of files: when the call began, when it ended, which file.
    writes: Vec<(u64, u64, u64)>,
    settings: WorkSettings,
}

impl World {
    pub(super) fn new(settings: WorkSettings) -> Self {
        Self { state: RunState::new(), record: Vec::new(), seq: 0, calls: 0, writes: Vec::new(), settings }
    }

    fn push(&mut self, body: EventBody) -> u64 {
        self.seq += 1;
        let words = body.aside();
        let named = words.as_ref().map(|(name, text)| {
            let payload = PayloadRef {
                commitment: Commitment::from_bytes([7; 32]),
                media_type: "application/json".into(),
                bytes: text.len() as u64,
            };
            ((*name).to_owned(), payload)
        });
        let event = Event {
            v: EVENT_VERSION,
            seq: self.seq,
            t: Timestamp::from_micros(0),
            actor: Actor::gate(),
            cause: None,
            payloads: BTreeMap::from_iter(named),
            body,
        };
        self.record.push((event.to_line().unwrap(), words.map(|(_, text)| text)));
        self.state.apply(&event);
        self.seq
    }

    /// A call that goes ahead and ends. It may write a file.
    pub(super) fn call(&mut self, status: OutcomeStatus, writes: Option<u64>) -> ActionId {
        self.calls += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.calls.to_be_bytes());
        let action = ActionId::from_bytes(id);
        self.push(EventBody::Proposed(Proposed {
            action,
            step: self.state.steps() + 1,
            tool: Some("t".into()),
            server: None,
            side_effecting: true,
            digest: Digest::from_bytes([1; 32]),
            directory: None,
            call: None,
            likeness: None,
            cost_micros: 0,
            confidence: None,
        }));
        let enforced = EventBody::Enforcement {
            action: Some(action),
            enforced: Enforced::Executed,
            call: None,
            contained: None,
        };
        let began = self.push(enforced);
        self.push(EventBody::Outcome { action, status });
        if let Some(file) = writes {
            self.writes.push((began, self.seq, file));
            let covered = |item: &&WorkItem| covers_file(&item.covers, file);
            let items: Vec<ItemId> = self.state.works().fresh().filter(covered).map(|item| item.id).collect();
            if !items.is_empty() {
                self.push(EventBody::Work(WorkRecord::stale(items)));
            }
        }
        action
    }

    /// An operation, recorded whatever comes of it.
    pub(super) fn operate(&mut self, party: Party, operation: Operation) -> Result<WorkItem, WorkError> {
        let (op, item) = (operation.op(), operation.item());
        let writes = self.writes.clone();
        let written_since = |_: ActionId, call: &Call, covers: &Covers| {
            let bears = |(began, ended, file): &&(u64, u64, u64)| {
                *ended > call.started && *began != call.started && covers_file(covers, *file)
            };
            writes.iter().find(bears).map(|(_, ended, _)| *ended)
        };
        let around = Around {
            settings: self.settings,
            key: None,
            steps: self.state.steps(),
            seq: self.seq + 1,
            written_since: &written_since,
        };
        match decide(self.state.works(), party, operation, &around) {
            Ok(record) => {
                let after = record.after.clone().unwrap();
                self.push(EventBody::Work(record));
                Ok(*after)
            }
            Err(error) => {
                let known = item.filter(|item| self.state.works().item(*item).is_some());
                let record = WorkRecord::refused(op, known, error.refusal, error.to_string());
                self.push(EventBody::Work(record));
                Err(error)
            }
        }
    }

    /// The state as its lines and payloads alone give it.
    fn folded_again(&self) -> RunState {
        let mut state = RunState::new();
        for (line, words) in &self.record {
            let mut event = Event::from_line(line).unwrap();
            event.join(words.as_deref(), crate::aside::ERASED);
            state.apply(&event);
        }
        state
    }
}

fn covers_file(covers: &Covers, file: u64) -> bool {
    covers.names().iter().any(|name| *name == format!("/w/{file}"))
}

pub(super) fn criteria(count: usize) -> Vec<Criterion> {
    Criterion::read_all("criteria", &json!(vec![json!({"type": "file_exists", "path": "a"}); count])).unwrap()
}

/// What the auditor knows of an item.
#[derive(Debug, Clone)]
struct Books {
    item: WorkItem,
    /// The criteria when it was started.
    frozen: Option<Vec<Criterion>>,
    /// Everything that any claim cited.
    cited: BTreeSet<ActionId>,
}

/// Books of its own.
#[derive(Debug, Default)]
struct Auditor {
    items: Vec<Books>,
    /// Calls that succeeded: when they began.
    good: BTreeMap<ActionId, u64>,
    /// Writes of files: when the call ended, and which one.
    writes: Vec<(u64, u64, u64)>,
}

impl Auditor {
    /// An operation was taken: whether it may have been.
    fn taken(&mut self, party: Party, operation: &Operation, after: &WorkItem) -> Result<(), String> {
        use ItemState::{Claimed, InProgress, Pending};
        let at = after.id.0 as usize - 1;
        if let Operation::Create { .. } = operation {
            if at != self.items.len() {
                return Err(format!("{} is not the next number", after.id));
            }
            if party == Party::Agent && !after.criteria.is_empty() {
                return Err("an agent set criteria".into());
            }
            let (item, cited) = (after.clone(), BTreeSet::new());
            self.items.push(Books { item, frozen: None, cited });
            return Ok(());
        }
        let Some(books) = self.items.get_mut(at) else { return Err(format!("{} was never made", after.id)) };
        let before = books.item.clone();
        if before.buried {
            return Err(format!("{} was buried", after.id));
        }
        match (before.state, after.state) {
            (before, after) if before == after => {}
            (Pending, InProgress) | (InProgress, Claimed) if party == Party::Agent => {}
            (Claimed, ItemState::Verified) | (Claimed, InProgress) if party != Party::Agent => {}
            (from, to) => return Err(format!("{from} -> {to} by {party:?}")),
        }
        if after.buried && party != Party::Person {
            return Err("buried by no person".into());
        }
        if before.state == Pending && after.state == InProgress {
            books.frozen = Some(after.criteria.clone());
        }
        if books.frozen.as_ref().is_some_and(|frozen| *frozen != after.criteria) {
            return Err("criteria changed after the start".into());
        }
        if let (Operation::Claim { evidence, .. }, InProgress) = (operation, before.state) {
            let began = |action| self.good.get(action).ok_or("a call that did not succeed is cited");
            for action in evidence {
                let began = *began(action)?;
                let over = |(from, to, file): &&(u64, u64, u64)| {
                    *to > began && *from != began && covers_file(&after.covers, *file)
                };
                if let Some((_, to, _)) = self.writes.iter().find(over) {
                    return Err(format!("a call from before event {to}, which wrote, is cited"));
                }
            }
            if before.returned.is_some() && evidence.iter().all(|action| books.cited.contains(action)) {
                return Err("nothing new is cited".into());
            }
            books.cited.extend(evidence);
        }
        if after.state == ItemState::Verified && party == Party::Harness {
            let Operation::Check { results, .. } = operation else { return Err("not by a check".into()) };
            let passed = results.iter().all(|result| result.came == Came::Pass);
            if !passed || results.is_empty() || results.len() != after.criteria.len() {
                return Err("verified, and not all criteria passed".into());
            }
            if before.evidence.iter().any(|evidence| evidence.stale.is_some()) {
                return Err("verified by stale evidence".into());
            }
            if before.waits {
                return Err("verified while it waits for a person".into());
            }
        }
        if after.revisions > SETTINGS.revisions + 1 || after.attempts > SETTINGS.attempts {
            return Err(format!("{} revisions, {} attempts", after.revisions, after.attempts));
        }
        books.item = after.clone();
        Ok(())
    }

    /// A file was written: evidence of items that cover it is stale, and of no others.
    fn wrote(&mut self, began: u64, ended: u64, file: u64, state: &RunState) -> Result<(), String> {
        self.writes.push((began, ended, file));
        for books in &mut self.items {
            let Some(now) = state.works().item(books.item.id) else { return Err("an item is gone".into()) };
            // Evidence of a claim that was turned down shows nothing anyway.
            let counts = matches!(books.item.state, ItemState::Claimed | ItemState::Verified);
            let covered = counts && covers_file(&books.item.covers, file);
            for (was, is) in books.item.evidence.iter().zip(&now.evidence) {
                let wanted = was.stale.is_some() || (covered && !now.buried);
                if is.stale.is_some() != wanted && !now.buried {
                    return Err(format!("{}: stale {:?}, wanted {wanted}", now.id, is.stale));
                }
            }
            books.item = now.clone();
        }
        Ok(())
    }
}

/// One operation by anybody, often a sensible one.
fn any_operation(rng: &mut Rng, world: &World, calls: &[ActionId]) -> (Party, Operation) {
    let count = world.state.works().len() as u64;
    // Mostly the first two, so that they get far.
    let of = if rng.one_in(12) { count + 1 } else { count.clamp(1, 2) };
    let item = ItemId(u32::try_from(1 + rng.below(of)).unwrap());
    let party = match rng.below(8) {
        0..5 => Party::Agent,
        5 | 6 => Party::Harness,
        _ => Party::Person,
    };
    let text = || "because".to_owned();
    let known = world.state.works().item(item);
    let operation = match rng.below(24) {
        0..2 => Operation::Create {
            title: "t".into(),
            criteria: criteria(usize::try_from(rng.below(3)).unwrap()),
            owner: [Owner::User, Owner::Operator, Owner::Policy][usize::try_from(rng.below(3)).unwrap()],
            covers: Covers::read(&[format!("/w/{}", rng.below(FILES))], None).unwrap(),
        },
        2 | 3 => Operation::Propose { item, criteria: criteria(1) },
        4 => Operation::Accept { item },
        5 => Operation::Decline { item, reason: text() },
        6 => Operation::Require { item, criteria: criteria(2), owner: Owner::User },
        7..11 => Operation::Start { item },
        11..16 => {
            let cited = (0..1 + rng.below(2)).filter_map(|_| {
                let recent = rng.below((calls.len() as u64).clamp(1, 4));
                calls.iter().rev().nth(usize::try_from(recent).unwrap()).copied()
            });
            Operation::Claim { item, evidence: cited.collect(), statement: text() }
        }
        16..20 => {
            let came = |rng: &mut Rng| match rng.below(5) {
                0 => Came::Fail,
                1 => Came::Error,
                2 => Came::Timeout,
                _ => Came::Pass,
            };
            let count = known.map_or(1, |item| item.criteria.len());
            let results =
                (0..count).map(|_| CheckResult { came: came(rng), detail: String::new(), took_ms: 1 });
            let results = results.collect();
            let version = known.map_or(0, |item| item.changed).saturating_sub(u64::from(rng.one_in(9)));
            Operation::Check { item, version, results }
        }
        20 => Operation::Attest { item, reason: text() },
        21 | 22 => Operation::AskChanges { item, reason: text() },
        _ => Operation::Bury { item, reason: text() },
    };
    // Mostly those ask that may.
    let sensible = match operation.op() {
        Op::Check => Party::Harness,
        Op::Create | Op::Propose | Op::Start | Op::Claim => Party::Agent,
        _ => Party::Person,
    };
    (if rng.one_in(4) { party } else { sensible }, operation)
}

fn play(number: u64, seen: &mut BTreeSet<String>) -> Result<(), String> {
    let mut rng = Rng(number);
    let (mut world, mut auditor, mut calls) = (World::new(SETTINGS), Auditor::default(), Vec::new());
    for _ in 0..STEPS {
        if rng.one_in(3) {
            let status = if rng.one_in(4) { OutcomeStatus::Error } else { OutcomeStatus::Ok };
            let file = rng.one_in(3).then(|| rng.below(FILES));
            let began = world.seq + 2;
            let action = world.call(status, file);
            calls.push(action);
            if status == OutcomeStatus::Ok {
                auditor.good.insert(action, began);
            }
            if let Some(file) = file {
                auditor.wrote(began, began + 1, file, &world.state)?;
            }
            continue;
        }
        let (party, operation) = any_operation(&mut rng, &world, &calls);
        match world.operate(party, operation.clone()) {
            Ok(after) => {
                auditor.taken(party, &operation, &after)?;
                seen.insert(format!("{} {}", operation.op(), after.state));
            }
            Err(error) => {
                seen.insert(format!("{} refused {:?}", operation.op(), error.refusal));
                let same = auditor.items.iter().all(|b| world.state.works().item(b.item.id) == Some(&b.item));
                if !same {
                    return Err(format!("{:?} was refused and changed something", operation.op()));
                }
            }
        }
    }
    let again = world.folded_again();
    let (live, again): (Vec<_>, Vec<_>) =
        (world.state.works().items().collect(), again.works().items().collect());
    if live != again {
        return Err(format!("the record does not explain the state:\n{live:#?}\n{again:#?}"));
    }
    Ok(())
}

#[test]
fn no_sequence_reaches_an_illegal_state_and_the_record_explains_it() {
    let long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    let sequences = if long { SEQUENCES_LONG } else { SEQUENCES };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let some = |first: u64| {
        let mut seen = BTreeSet::new();
        for number in (first..sequences).step_by(usize::try_from(threads).unwrap()) {
            if let Err(error) = play(number, &mut seen) {
                panic!("sequence {number}: {error}");
            }
        }
        seen
    };
    let seen: BTreeSet<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || some(first))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    // All of it was reached, or the test says little.
    for wanted in [
        "create pending",
        "start in_progress",
        "claim claimed",
        "check verified",
        "check in_progress",
        "check claimed",
        "attest verified",
        "ask_changes in_progress",
        "bury pending",
        "accept pending",
        "claim refused NoEvidence",
        "claim refused OldEvidence",
        "claim refused WrongState",
        "check refused Changed",
        "check refused WaitsForPerson",
        "start refused WaitsForPerson",
        "attest refused NotPermitted",
        "start refused UnknownItem",
    ] {
        assert!(seen.contains(wanted), "never reached: {wanted}; reached: {seen:?}");
    }
}

/// What the auditor is for: it finds what no rules permit.
#[test]
fn the_auditor_finds_what_rules_do_not_permit() {
    let made = |state| WorkItem { state, criteria: criteria(1), ..WorkItem::new(ItemId(1), 1) };
    let books = |state| Auditor {
        items: vec![Books { item: made(state), frozen: Some(criteria(1)), cited: BTreeSet::new() }],
        ..Auditor::default()
    };
    let item = ItemId(1);
    let check = |came| {
        let results = vec![CheckResult { came, detail: String::new(), took_ms: 0 }];
        Operation::Check { item, version: 1, results }
    };
    let claim =
        Operation::Claim { item, evidence: vec![ActionId::from_bytes([9; 16])], statement: "s".into() };
    let (attest, start) = (Operation::Attest { item, reason: "r".into() }, Operation::Start { item });
    let other = WorkItem { criteria: criteria(2), ..made(ItemState::Claimed) };
    let cases = [
        (ItemState::Claimed, Party::Agent, &attest, made(ItemState::Verified), "by Agent"),
        (ItemState::Pending, Party::Agent, &claim, made(ItemState::Claimed), "pending -> claimed"),
        (
            ItemState::Claimed,
            Party::Harness,
            &check(Came::Error),
            made(ItemState::Verified),
            "not all criteria",
        ),
        (ItemState::InProgress, Party::Agent, &claim, made(ItemState::Claimed), "did not succeed"),
        (ItemState::InProgress, Party::Agent, &start, other, "criteria changed|in_progress -> claimed"),
        (ItemState::Verified, Party::Person, &attest, made(ItemState::Pending), "verified -> pending"),
    ];
    for (before, party, operation, after, wanted) in cases {
        let error = books(before).taken(party, operation, &after).unwrap_err();
        assert!(wanted.split('|').any(|wanted| error.contains(wanted)), "{error}, wanted {wanted}");
    }
}
