//! The client's requests that have no answer yet.
//!
//! A response is matched to its request by id alone, so two things must never happen: that an id stands for two
//! requests at once, and that a response is passed on which answers nothing. Both could carry the result of a
//! gated call past the gate.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::{ActionId, Digest};
use portcullis_wire::jsonrpc::Id;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// Tool calls that may be waiting or executing at once.
pub const OPEN_CALLS_MAX: usize = 64;
/// Requests of all kinds that may be unanswered at once.
pub const OPEN_REQUESTS_MAX: usize = 4096;
/// Requests that were given up by the client and are remembered, in case the server answers all the same.
pub const CANCELLED_MAX: usize = 1024;
/// Tasks that are followed, from the call that created them to their result.
pub const TASKS_MAX: usize = 1024;

/// A tool call and how to answer it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The id as sent.
    pub(super) id_raw: Box<RawValue>,
    /// The tool's name.
    pub(super) tool: String,
    /// Whether answers carry `resultType`.
    pub(super) with_result_type: bool,
    /// What a state for it is bound to: see [`super::held`].
    pub(super) bound_to: Digest,
}

/// What a request waits for.
#[derive(Debug, Clone)]
pub(super) enum Open {
    /// Something whose text is judged as the server's word, lists of resources and of prompts too. Like in the
    /// following: the id as sent.
    Other(Box<RawValue>),
    /// `initialize` or `server/discover`.
    Hello(Box<RawValue>),
    /// `tools/list`.
    List(Box<RawValue>),
    /// A call that the daemon is judging; the server has not seen it. Notified when the client gives it up.
    Waiting(Call, Arc<Notify>),
    /// A call that the server has.
    Executing {
        call: Call,
        action: ActionId,
        /// The client has given it up.
        given_up: bool,
    },
    /// The state (`tasks/get`) or the result (`tasks/result`) of a task that a call created.
    Task {
        /// The request that asks, with the tool of the call that created the task.
        request: Call,
        /// The task.
        task: String,
        /// The action that goes on as this task.
        action: ActionId,
        /// The result, if it is there, is a field of the answer rather than the answer itself.
        nested: bool,
    },
}

impl Open {
    /// The id as sent, for answering.
    pub(super) fn id_raw(&self) -> &RawValue {
        match self {
            Self::Other(id) | Self::Hello(id) | Self::List(id) => id,
            Self::Waiting(call, _) | Self::Executing { call, .. } | Self::Task { request: call, .. } => {
                &call.id_raw
            }
        }
    }

    fn is_call(&self) -> bool {
        matches!(self, Self::Waiting(..) | Self::Executing { .. })
    }
}

/// Why a request cannot be let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    #[error("the id {0} belongs to a request that is not answered yet; use another")]
    IdInUse(Id),
    #[error("{OPEN_CALLS_MAX} tool calls are open already; wait for one to be answered")]
    Calls,
    #[error("{OPEN_REQUESTS_MAX} requests are not answered yet; wait for one of them")]
    Requests,
}

/// What to do about a request that the client no longer waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// Nobody has executed it and nobody will: the server need not hear of it.
    Stopped,
    /// The server has it; what becomes of the action is still open.
    Executing(ActionId),
    /// The server has it, and the client has said this before.
    Again,
    /// Not a call.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    table: Mutex<Table>,
    /// Notified whenever a call has been dealt with.
    judged: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Id, Open>,
    calls: usize,
    /// Calls that are not dealt with yet.
    judging: usize,
    cancelled: VecDeque<Id>,
    tasks: HashMap<String, Task>,
}

/// An action that goes on after its call was answered.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// The tool's name.
    pub(super) tool: String,
    pub(super) action: ActionId,
    /// Digest of the result, once it was recorded: the same may be fetched again, another may not.
    pub(super) result: Option<Digest>,
    /// The server said that it failed; how may still be fetched.
    failed: bool,
}

impl Calls {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request in.
    pub(super) fn insert(&self, id: Id, open: Open) -> Result<(), Full> {
        let mut table = self.table();
        if table.open.contains_key(&id) {
            return Err(Full::IdInUse(id));
        }
        if table.open.len() >= OPEN_REQUESTS_MAX {
            return Err(Full::Requests);
        }
        if open.is_call() {
            if table.calls >= OPEN_CALLS_MAX {
                return Err(Full::Calls);
            }
            table.calls += 1;
            table.judging += 1;
        }
        table.open.insert(id, open);
        Ok(())
    }

    /// A waiting call has its permit. False where the client has given it up meanwhile.
    pub(super) fn execute(&self, id: &Id, action: ActionId) -> bool {
        let mut table = self.table();
        match table.open.get_mut(id) {
            Some(open @ Open::Waiting(..)) => {
                if let Open::Waiting(call, _) = open {
                    *open = Open::Executing { call: call.clone(), action, given_up: false };
                }
                true
            }
            _ => false,
        }
    }

    /// A call that the server has, and its action, unless the client has given it up.
    pub(super) fn executing(&self, id: &Id) -> Option<(Call, ActionId)> {
        match self.table().open.get(id) {
            Some(Open::Executing { call, action, given_up: false }) => Some((call.clone(), *action)),
            _ => None,
        }
    }

    /// A call goes on as another action. False where the client has given it up meanwhile.
    pub(super) fn goes_on(&self, id: &Id, before: ActionId, after: ActionId) -> bool {
        match self.table().open.get_mut(id) {
            Some(Open::Executing { action, given_up: false, .. }) if *action == before => {
                *action = after;
                true
            }
            _ => false,
        }
    }

    /// The request that a response of the server answers; it is open no longer. A waiting call is not the
    /// server's to answer.
    pub(super) fn answered(&self, id: &Id) -> Option<Open> {
        let mut table = self.table();
        if matches!(table.open.get(id), None | Some(Open::Waiting(..))) {
            return None;
        }
        table.remove(id)
    }

    /// A waiting call has been answered by the gate. False where the client has given it up meanwhile.
    pub(super) fn refused(&self, id: &Id) -> bool {
        let mut table = self.table();
        let waiting = matches!(table.open.get(id), Some(Open::Waiting(..)));
        if waiting {
            table.remove(id);
        }
        waiting
    }

    /// A call that was let in has been dealt with: forwarded, answered or given up.
    pub(super) fn judged(&self) {
        let mut table = self.table();
        table.judging = table.judging.saturating_sub(1);
        self.judged.notify_waiters();
    }

    /// Resolves when every call that was let in has been dealt with.
    pub(super) async fn all_judged(&self) {
        loop {
            // Before looking, so that nothing is missed in between.
            let judged = self.judged.notified();
            if self.table().judging == 0 {
                return;
            }
            judged.await;
        }
    }

    /// Calls that wait for the daemon wait no longer; they stay open.
    pub(super) fn give_up_waiting(&self) {
        for open in self.table().open.values() {
            if let Open::Waiting(_, given_up) = open {
                given_up.notify_one();
            }
        }
    }

    /// A request that was let in is not sent after all.
    pub(super) fn withdraw(&self, id: &Id) {
        self.table().remove(id);
    }

    /// The client no longer waits for a request.
    pub(super) fn cancel(&self, id: &Id) -> Cancelled {
        let mut table = self.table();
        match table.open.get_mut(id) {
            Some(Open::Waiting(_, given_up)) => {
                given_up.notify_one();
                table.remove(id);
                Cancelled::Stopped
            }
            Some(Open::Executing { given_up: true, .. }) => Cancelled::Again,
            Some(Open::Executing { action, given_up, .. }) => {
                *given_up = true;
                Cancelled::Executing(*action)
            }
            Some(_) => {
                if !table.cancelled.contains(id) {
                    table.cancelled.push_back(id.clone());
                }
                if table.cancelled.len() > CANCELLED_MAX
                    && let Some(oldest) = table.cancelled.pop_front()
                {
                    table.remove(&oldest);
                }
                Cancelled::Other
            }
            None => Cancelled::Other,
        }
    }

    /// Gives up on a call that the server still has. False where it was answered meanwhile.
    pub(super) fn expire(&self, id: &Id, action: ActionId) -> bool {
        let mut table = self.table();
        let same =
            matches!(table.open.get(id), Some(Open::Executing { action: open, .. }) if *open == action);
        if same {
            table.remove(id);
        }
        same
    }

    /// A call continues as a task. False where that task is known already or there are too many to follow; tasks
    /// whose result was recorded make room.
    pub(super) fn follow_task(&self, id: String, tool: String, action: ActionId) -> bool {
        let mut table = self.table();
        if table.tasks.len() >= TASKS_MAX {
            table.tasks.retain(|_, task| task.result.is_none());
        }
        let room = table.tasks.len() < TASKS_MAX && !table.tasks.contains_key(&id);
        if room {
            table.tasks.insert(id, Task { tool, action, result: None, failed: false });
        }
        room
    }

    /// A task that a call created.
    pub(super) fn task(&self, id: &str) -> Option<Task> {
        self.table().tasks.get(id).cloned()
    }

    /// The result of a task was recorded.
    pub(super) fn task_done(&self, id: &str, result: Digest) {
        if let Some(task) = self.table().tasks.get_mut(id) {
            task.result = Some(result);
        }
    }

    /// A task has failed; its result, which says how, is still to be fetched.
    pub(super) fn task_failed(&self, id: &str) {
        if let Some(task) = self.table().tasks.get_mut(id) {
            task.failed = true;
        }
    }

    /// Everything that is open, which it is no longer, and the actions of tasks without a result, with what is
    /// known of them.
    pub(super) fn drain(&self) -> (Vec<Open>, Vec<(ActionId, OutcomeStatus)>) {
        let mut table = self.table();
        table.calls = 0;
        table.cancelled.clear();
        let open: Vec<Open> = table.open.drain().map(|(_, open)| open).collect();
        let tasks = table.tasks.drain().filter(|(_, task)| task.result.is_none());
        let status = |failed| if failed { OutcomeStatus::Error } else { OutcomeStatus::Unknown };
        (open, tasks.map(|(_, task)| (task.action, status(task.failed))).collect())
    }
}

impl Table {
    fn remove(&mut self, id: &Id) -> Option<Open> {
        let open = self.open.remove(id)?;
        if open.is_call() {
            self.calls -= 1;
        }
        if !self.cancelled.is_empty() {
            self.cancelled.retain(|cancelled| cancelled != id);
        }
        Some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        let id_raw = RawValue::from_string("1".into()).unwrap();
        Call { id_raw, tool: "t".into(), with_result_type: false, bound_to: Digest::from_bytes([0; 32]) }
    }

    fn waiting() -> Open {
        Open::Waiting(call(), Arc::default())
    }

    const ACTION: ActionId = ActionId::from_bytes([7; 16]);

    #[test]
    fn limits_hold_and_free_again() {
        let calls = Calls::default();
        for number in 0..OPEN_CALLS_MAX as i128 {
            calls.insert(Id::Integer(number), waiting()).unwrap();
        }
        assert_eq!(calls.insert(Id::Integer(-1), waiting()), Err(Full::Calls));
        assert_eq!(
            calls.insert(Id::Integer(3), Open::Other(call().id_raw)),
            Err(Full::IdInUse(Id::Integer(3)))
        );
        assert!(calls.execute(&Id::Integer(3), ACTION));
        assert!(calls.answered(&Id::Integer(3)).is_some());
        calls.insert(Id::Integer(-1), waiting()).unwrap();
        for number in 1000..(1000 + OPEN_REQUESTS_MAX - OPEN_CALLS_MAX) as i128 {
            calls.insert(Id::Integer(number), Open::Other(call().id_raw)).unwrap();
        }
        assert_eq!(calls.insert(Id::Integer(-2), Open::Other(call().id_raw)), Err(Full::Requests));
    }

    #[test]
    fn what_the_client_gave_up_does_not_go_ahead() {
        let calls = Calls::default();
        calls.insert(Id::Integer(1), waiting()).unwrap();
        assert!(calls.answered(&Id::Integer(1)).is_none(), "the server has not seen it");
        assert_eq!(calls.cancel(&Id::Integer(1)), Cancelled::Stopped);
        assert!(!calls.execute(&Id::Integer(1), ACTION) && !calls.refused(&Id::Integer(1)));
        calls.insert(Id::Integer(1), waiting()).unwrap();
        assert!(calls.execute(&Id::Integer(1), ACTION));
        assert_eq!(calls.cancel(&Id::Integer(1)), Cancelled::Executing(ACTION));
        assert_eq!(calls.cancel(&Id::Integer(1)), Cancelled::Again, "one timer is enough");
        assert!(calls.expire(&Id::Integer(1), ACTION) && !calls.expire(&Id::Integer(1), ACTION));
    }

    #[test]
    fn a_call_that_expired_is_followed_no_longer() {
        let calls = Calls::default();
        calls.insert(Id::Integer(1), waiting()).unwrap();
        assert!(calls.execute(&Id::Integer(1), ACTION));
        assert_eq!(calls.cancel(&Id::Integer(1)), Cancelled::Executing(ACTION));
        assert!(calls.expire(&Id::Integer(1), ACTION));
        assert!(calls.answered(&Id::Integer(1)).is_none(), "nor can it become a task");
    }

    #[test]
    fn what_is_known_of_a_task_at_the_end_is_its_outcome() {
        let calls = Calls::default();
        for (name, number) in [("failed", 1), ("working", 2), ("done", 3)] {
            assert!(calls.follow_task(name.into(), "t".into(), ActionId::from_bytes([number; 16])));
        }
        calls.task_failed("failed");
        calls.task_done("done", portcullis_core::id::DigestBuilder::new("d").finish());
        let (_, mut tasks) = calls.drain();
        tasks.sort_by_key(|(action, _)| action.to_string());
        let expected = [(1, OutcomeStatus::Error), (2, OutcomeStatus::Unknown)];
        assert_eq!(tasks, expected.map(|(number, status)| (ActionId::from_bytes([number; 16]), status)));
    }

    #[test]
    fn requests_that_were_given_up_are_forgotten_in_time() {
        let calls = Calls::default();
        for number in 0..2 * OPEN_REQUESTS_MAX as i128 {
            calls.insert(Id::Integer(number), Open::Other(call().id_raw)).unwrap();
            assert_eq!(calls.cancel(&Id::Integer(number)), Cancelled::Other);
        }
        assert!(calls.answered(&Id::Integer(0)).is_none());
        assert!(calls.answered(&Id::Integer(2 * OPEN_REQUESTS_MAX as i128 - 1)).is_some());
    }
}
