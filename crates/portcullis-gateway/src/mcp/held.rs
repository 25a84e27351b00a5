//! Held calls of clients that speak 2026-07-28: the answer is `input_required` with a `requestState`, and the client
//! retries the call with it.
//!
//! A state is a random number that means something only to this process, which serves one client for one principal. It
//! is known here by its digest, with the call that it was given for, and is gone once it was presented, so it can be
//! neither altered nor used twice nor used for another call. A retry waits like any held call, and never less than
//! [`RETRY_WAITS_MIN`], so that a client that retries at once does not spin.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_core::denial::{Denial, DenialClass};
use portcullis_core::id::{Digest, DigestBuilder, canonical_json};
use serde_json::{Value, json};

use super::calls::Call;

/// How a state of the gate begins. Others are the server's own.
const PREFIX: &str = "portcullis-held-";
/// Random bytes of a state.
const STATE_BYTES: usize = 32;
/// States that are known at once: a client has at most [`OPEN_CALLS_MAX`](super::calls::OPEN_CALLS_MAX) calls open, and
/// may have dropped others.
const STATES_MAX: usize = 256;
/// How long a state can be used.
const STATE_LASTS: Duration = Duration::from_secs(600);
/// States in a row for one call. The official clients give up after ten; before they do, the agent is told that its call
/// waits, and by what name.
const ROUNDS_MAX: u32 = 8;
/// The shortest time after which a retry is answered with another state.
pub(super) const RETRY_WAITS_MIN: Duration = Duration::from_secs(2);

/// The states that were given out, the oldest first.
#[derive(Debug, Default)]
pub(super) struct HeldCalls(Mutex<VecDeque<State>>);

#[derive(Debug)]
struct State {
    digest: Digest,
    /// Tool and arguments.
    call: Digest,
    held: HeldCall,
    since: Instant,
}

/// What a retry goes on with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HeldCall {
    /// What the held call carried for the server besides its arguments.
    pub(super) continuation: Option<Value>,
    /// States that were given for it so far.
    rounds: u32,
}

impl HeldCall {
    /// A call that is held for the first time.
    pub(super) fn new(continuation: Option<Value>) -> Self {
        Self { continuation, rounds: 0 }
    }
}

/// A state that is not one, or not any more, or not of this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this `requestState` was not given for this call, was used before, or is too old; make the call again without it"
)]
pub(super) struct NotAState;

/// The state of the gate that a call brings back, if it brings one.
pub(super) fn state_of(continuation: Option<&Value>) -> Option<&str> {
    continuation?.get("requestState")?.as_str().filter(|state| state.starts_with(PREFIX))
}

/// What a state is bound to.
pub(super) fn bound_to(tool: &str, arguments: &Value) -> Digest {
    let arguments = canonical_json(arguments);
    DigestBuilder::new("portcullis/held-call/v1").part(tool.as_bytes()).part(arguments.as_bytes()).finish()
}

fn digest(state: &str) -> Digest {
    DigestBuilder::new("portcullis/request-state/v1").part(state.as_bytes()).finish()
}

impl HeldCalls {
    fn lock(&self) -> MutexGuard<'_, VecDeque<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses a state up. It is gone even if it does not fit the call.
    pub(super) fn take(&self, state: &str, call: Digest) -> Result<HeldCall, NotAState> {
        let digest = digest(state);
        let mut states = self.lock();
        let at = states.iter().position(|state| state.digest == digest).ok_or(NotAState)?;
        let state = states.remove(at).ok_or(NotAState)?;
        match state.call == call && state.since.elapsed() <= STATE_LASTS {
            true => Ok(state.held),
            false => Err(NotAState),
        }
    }

    /// A new state for a call that a denial says is held; none where the client is told so instead: it speaks an older
    /// revision, has waited for long enough, or the system gives no random numbers.
    pub(super) fn give(&self, call: &Call, held: &HeldCall, denial: &Denial) -> Option<String> {
        let waits = denial.class == DenialClass::ApprovalPending && denial.approval.is_some();
        if !waits || !call.with_result_type || held.rounds >= ROUNDS_MAX {
            return None;
        }
        let mut random = [0; STATE_BYTES];
        getrandom::fill(&mut random).ok()?;
        let state = format!("{PREFIX}{}", Digest::from_bytes(random));
        let held = HeldCall { rounds: held.rounds + 1, ..held.clone() };
        let mut states = self.lock();
        if states.len() >= STATES_MAX {
            states.pop_front();
        }
        states.push_back(State { digest: digest(&state), call: call.bound_to, held, since: Instant::now() });
        Some(state)
    }
}

/// What programs are told of a held call, beside the state.
pub(super) fn told(denial: &Denial) -> Value {
    json!({"portcullis/held": denial})
}

#[cfg(test)]
mod tests {
    use portcullis_core::denial::Retry;
    use portcullis_core::id::{ApprovalId, RunId};
    use portcullis_core::verdict::Verdict;
    use serde_json::value::RawValue;

    use super::*;

    fn denial(class: DenialClass) -> Denial {
        Denial {
            class,
            verdict: Verdict::Review,
            rule: "r".into(),
            target: "t".into(),
            message: "m".into(),
            instead: None,
            retry: Retry::After { seconds: 10 },
            approval: Some(ApprovalId::from_bytes([1; 16])),
            run: RunId::from_bytes([2; 16]),
            action: None,
        }
    }

    fn call(with_result_type: bool) -> Call {
        let id_raw = RawValue::from_string("1".into()).unwrap();
        Call { id_raw, tool: "t".into(), with_result_type, bound_to: bound_to("t", &json!({"a": 1})) }
    }

    #[test]
    fn a_state_is_used_once_and_for_its_call() {
        let states = HeldCalls::default();
        let call = call(true);
        let held = HeldCall { continuation: Some(json!({"requestState": "the server's"})), rounds: 0 };
        let give = || states.give(&call, &held, &denial(DenialClass::ApprovalPending)).unwrap();
        let state = give();
        assert_eq!(state_of(Some(&json!({"requestState": state}))), Some(state.as_str()));
        assert_eq!(states.take(&state, bound_to("t", &json!({"a": 2}))), Err(NotAState), "another call");
        assert_eq!(states.take(&state, call.bound_to), Err(NotAState), "and it is used up by that");
        let state = give();
        assert_eq!(states.take(&format!("{state}0"), call.bound_to), Err(NotAState));
        assert_eq!(states.take(&state, call.bound_to), Ok(HeldCall { rounds: 1, ..held.clone() }));
        assert_eq!(states.take(&state, call.bound_to), Err(NotAState), "twice");
        let state = give();
        states.lock()[0].since = Instant::now().checked_sub(STATE_LASTS + Duration::from_secs(1)).unwrap();
        assert_eq!(states.take(&state, call.bound_to), Err(NotAState), "too old");
    }

    #[test]
    fn older_clients_and_those_that_waited_long_are_told_instead() {
        let states = HeldCalls::default();
        let pending = denial(DenialClass::ApprovalPending);
        assert_eq!(states.give(&call(false), &HeldCall::default(), &pending), None);
        assert_eq!(states.give(&call(true), &HeldCall::default(), &denial(DenialClass::Denied)), None);
        let mut held = HeldCall::default();
        for _ in 0..ROUNDS_MAX {
            let state = states.give(&call(true), &held, &pending).unwrap();
            held = states.take(&state, call(true).bound_to).unwrap();
        }
        assert_eq!(states.give(&call(true), &held, &pending), None);
        for _ in 0..2 * STATES_MAX {
            states.give(&call(true), &HeldCall::default(), &pending).unwrap();
        }
        assert_eq!(states.lock().len(), STATES_MAX);
    }

    #[test]
    fn a_state_of_the_server_is_the_servers() {
        for continuation in
            [json!({"requestState": "x"}), json!({"requestState": 1}), json!({"inputResponses": {}})]
        {
            assert_eq!(state_of(Some(&continuation)), None);
        }
        assert_eq!(state_of(None), None);
    }
}
