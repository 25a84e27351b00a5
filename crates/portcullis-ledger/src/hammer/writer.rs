//! A writer: runs of actions, each action as a gate records it, every append awaited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portcullis_core::event::{
    Actor, ClosedState, EVENT_VERSION, Enforced, Event, EventBody, Mode, OutcomeStatus, PayloadRef, Proposed,
    RunOpened, VerdictRecord,
};
use portcullis_core::id::{ActionId, Digest, RunId, SegmentId};
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::verdict::Verdict;

use super::Random;
use super::times::{Probe, Times};
use super::{Closed, Shared};
use crate::clock::now;
use crate::error::LedgerError;
use crate::{Append, ChainedLine, Head, NewSegment, SqliteLedger, StoredPayload};

/// Actions of one run; with four events each, and those that open and close it, a run has 98.
pub(super) const ACTIONS_PER_RUN: usize = 24;
/// Decisions that are timed without other writers.
const ALONE: usize = 200;
/// Bytes of an action's arguments, and of its result.
const ARGUMENTS_BYTES: usize = 256;
const RESULT_BYTES: usize = 512;

const PRINCIPAL: &str = "hammer";
const POLICY: &str = "hammer";
const BUNDLE: Digest = Digest::from_bytes([0x68; 32]);

/// Writes runs until the goal is reached; how long each append took.
pub(super) fn write(shared: &Shared<'_>, slot: usize) -> Result<Times, String> {
    let mut random = Random::new()?;
    let mut times = Times::default();
    while shared.writes_on() {
        let mut run = Run::open(shared.ledger, &mut random).map_err(told)?;
        run.begin().map_err(told)?;
        run.commit(shared, slot, &mut times)?;
        for _ in 0..ACTIONS_PER_RUN {
            if !shared.writes_on() {
                break;
            }
            let action = run.decide(&mut random).map_err(told)?;
            run.commit(shared, slot, &mut times)?;
            run.outcome(action, &mut random).map_err(told)?;
            run.commit(shared, slot, &mut times)?;
        }
        run.close().map_err(told)?;
        run.commit(shared, slot, &mut times)?;
        shared.forget(slot);
        shared.closed(Closed { head: run.head, at: Instant::now() });
    }
    Ok(times)
}

/// Times decisions without other writers, and the disk alone, in turns.
pub(super) fn alone(ledger: &SqliteLedger, probe: &mut Probe) -> Result<(Times, Times), String> {
    let (mut decisions, mut disk) = (Times::default(), Times::default());
    let mut random = Random::new()?;
    let mut run = Run::open(ledger, &mut random).map_err(told)?;
    run.begin().map_err(told)?;
    run.append(ledger).map_err(told)?;
    for _ in 0..ALONE {
        let action = run.decide(&mut random).map_err(told)?;
        decisions.push(run.append(ledger).map_err(told)?);
        disk.push(probe.time().map_err(told)?);
        run.outcome(action, &mut random).map_err(told)?;
        run.append(ledger).map_err(told)?;
    }
    run.close().map_err(told)?;
    run.append(ledger).map_err(told)?;
    Ok((decisions, disk))
}

fn told(error: impl std::fmt::Display) -> String {
    format!("writing: {error}")
}

/// A run, and what was chained to it and not appended yet.
struct Run {
    head: Head,
    state: RunState,
    waiting: Append,
}

impl Run {
    fn open(ledger: &SqliteLedger, random: &mut Random) -> Result<Run, LedgerError> {
        let opened = ledger.open_segment_blocking(NewSegment {
            run: RunId::from_bytes(random.bytes()),
            segment: SegmentId::from_bytes(random.bytes()),
            principal: PRINCIPAL.to_owned(),
            session_key: None,
            opened: now(),
        })?;
        Ok(Run { head: opened.head, state: RunState::new(), waiting: Append::default() })
    }

    fn begin(&mut self) -> Result<(), LedgerError> {
        self.chain(EventBody::RunOpened(RunOpened {
            principal: Principal::named(PRINCIPAL),
            surface: "hammer".to_owned(),
            session: None,
            policy: POLICY.to_owned(),
            bundle: BUNDLE,
            configuration: None,
            mode: Mode::Enforce,
            place: None,
            parent: None,
        }))
    }

    /// What is on the disk before an action goes ahead.
    fn decide(&mut self, random: &mut Random) -> Result<ActionId, LedgerError> {
        let action = ActionId::from_bytes(random.bytes());
        let proposed = Proposed {
            action,
            step: 1,
            tool: Some("write_file".to_owned()),
            server: None,
            side_effecting: true,
            likeness: None,
            cost_micros: 0,
            digest: BUNDLE,
            directory: None,
            call: None,
            confidence: None,
        };
        self.chain_with(EventBody::Proposed(proposed), "arguments", ARGUMENTS_BYTES, random)?;
        self.chain(EventBody::Verdict(VerdictRecord {
            action: Some(action),
            verdict: Verdict::Allow,
            policy_action: Verdict::Allow.policy_action(),
            escalation: Verdict::Allow.escalation(),
            rule: None,
            reason: None,
            findings: Vec::new(),
            bundle: BUNDLE,
            policy: POLICY.to_owned(),
            facts: Vec::new(),
            grant: None,
            marks: Vec::new(),
        }))?;
        self.chain(EventBody::Enforcement {
            action: Some(action),
            enforced: Enforced::Executed,
            call: None,
            contained: None,
        })?;
        Ok(action)
    }

    fn outcome(&mut self, action: ActionId, random: &mut Random) -> Result<(), LedgerError> {
        let outcome = EventBody::Outcome { action, status: OutcomeStatus::Ok };
        self.chain_with(outcome, "result", RESULT_BYTES, random)
    }

    fn close(&mut self) -> Result<(), LedgerError> {
        let count = self.head.count + 1;
        self.chain(EventBody::RunClosed { state: ClosedState::Closed, count, successor: None })
    }

    fn chain_with(
        &mut self,
        body: EventBody,
        name: &str,
        bytes: usize,
        random: &mut Random,
    ) -> Result<(), LedgerError> {
        let media_type = "text/plain";
        let text = vec![if random.next().is_multiple_of(2) { b'x' } else { b'y' }; bytes];
        let payload = StoredPayload::new(random.bytes(), media_type, text)?;
        let reference = PayloadRef {
            commitment: payload.commitment(),
            media_type: media_type.to_owned(),
            bytes: bytes as u64,
        };
        self.waiting.payloads.push(payload);
        self.event(body, BTreeMap::from([(name.to_owned(), reference)]))
    }

    fn chain(&mut self, body: EventBody) -> Result<(), LedgerError> {
        self.event(body, BTreeMap::new())
    }

    fn event(&mut self, body: EventBody, payloads: BTreeMap<String, PayloadRef>) -> Result<(), LedgerError> {
        let seq = self.head.count + 1;
        let event =
            Event { v: EVENT_VERSION, seq, t: now(), actor: Actor::gate(), cause: None, payloads, body };
        let line = ChainedLine::new(self.head, &event)?;
        self.head = line.head();
        self.state.apply(&event);
        self.waiting.events.push(line);
        Ok(())
    }

    /// Appends and waits; how long that took.
    fn append(&mut self, ledger: &SqliteLedger) -> Result<Duration, LedgerError> {
        let append = Append { progress: self.state.progress(), ..std::mem::take(&mut self.waiting) };
        let start = Instant::now();
        ledger.append_blocking(append)?;
        Ok(start.elapsed())
    }

    /// Appends, and says so: from here on readers hold the store to it.
    fn commit(&mut self, shared: &Shared<'_>, slot: usize, times: &mut Times) -> Result<(), String> {
        let events = self.waiting.events.len() as u64;
        times.push(self.append(shared.ledger).map_err(told)?);
        shared.acknowledged(slot, self.head, events);
        Ok(())
    }
}
