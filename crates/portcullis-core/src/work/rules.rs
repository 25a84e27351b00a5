//! What an operation does, or why it is refused.

use std::fmt;

use super::error::{Refusal, WorkError};
use super::{
    Call, Came, CheckResult, Covers, Criterion, DETAIL_BYTES_MAX, EVIDENCE_MAX, Evidence, ItemId, ItemState,
    Op, Operation, Owner, Party, TITLE_BYTES_MAX, Verified, WORDS_BYTES_MAX, WORK_ITEMS_MAX, WorkItem,
    WorkRecord, digest_of_criteria,
};
use crate::bundle::WorkSettings;
use crate::id::{ActionId, Digest};
use crate::state::Works;

/// What an operation depends on besides the items.
pub struct Around<'a> {
    /// How far items go without a person.
    pub settings: WorkSettings,
    /// The run's key.
    pub key: Option<&'a Digest>,
    /// Steps of the run.
    pub steps: u32,
    /// Number of the event that the operation will be.
    pub seq: u64,
    /// Number of the event, after a call began, by which something was written that bears on what an item covers. Of
    /// a call that nothing is known of any more, any number.
    pub written_since: &'a dyn Fn(ActionId, &Call, &Covers) -> Option<u64>,
}

impl fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, steps, seq, key: _, written_since: _ } = self;
        let mut debug = f.debug_struct("Around");
        debug.field("settings", settings).field("steps", steps).field("seq", seq).finish_non_exhaustive()
    }
}

/// What an operation does: the record to make durable. Changes nothing.
///
/// # Errors
/// The operation is refused. Record that, too: [`WorkRecord::refused`].
pub fn decide(
    works: &Works,
    party: Party,
    operation: Operation,
    around: &Around<'_>,
) -> Result<WorkRecord, WorkError> {
    let op = operation.op();
    permitted(op, party)?;
    let Some(id) = operation.item() else { return create(works, party, operation, around) };
    let Some(before) = works.item(id) else {
        let known = match works.len() {
            0 => "this run has no items; make one with `create`".to_owned(),
            last => format!("this run has the items #1 to #{last}"),
        };
        return Err(WorkError::new(Refusal::UnknownItem, "item", format!("there is no item {id}"), known));
    };
    in_state(op, before, party)?;
    let mut after = WorkItem { changed: around.seq, ..before.clone() };
    change(&mut after, works, operation, around)?;
    Ok(WorkRecord::done(op, Some(before.clone()), after))
}

/// Who may do what.
fn permitted(op: Op, party: Party) -> Result<(), WorkError> {
    let (may, who) = match op {
        Op::Create => (party != Party::Harness, "the agent or a person"),
        Op::Propose | Op::Start | Op::Claim => (party == Party::Agent, "the agent"),
        Op::Check | Op::Stale => (party == Party::Harness, "the gate"),
        Op::Accept | Op::Decline | Op::Require | Op::Attest | Op::AskChanges | Op::Bury => {
            (party == Party::Person, "a person, with an approver's credential")
        }
    };
    if may {
        return Ok(());
    }
    let next = match party {
        Party::Agent => "an agent may `create`, `propose`, `start`, `claim` and read",
        Party::Harness => "the gate only checks",
        Party::Person => {
            "a person may `create`, `require`, `accept`, `decline`, `attest`, `ask_changes` and `bury`"
        }
    };
    Err(WorkError::new(Refusal::NotPermitted, "operation", format!("`{op}` is done by {who}"), next))
}

/// Whether an operation may happen to an item as it is.
fn in_state(op: Op, item: &WorkItem, party: Party) -> Result<(), WorkError> {
    use ItemState::{Claimed, InProgress, Pending, Verified};
    let wrong = |reason: String, next: &str| Err(WorkError::new(Refusal::WrongState, "item", reason, next));
    if item.buried {
        return wrong(format!("{} was taken out of the list", item.id), "make another item with `create`");
    }
    let wanted = match op {
        Op::Propose | Op::Accept | Op::Decline | Op::Require | Op::Start => Some(Pending),
        Op::Claim => Some(InProgress),
        Op::Check | Op::Attest | Op::AskChanges => Some(Claimed),
        Op::Bury | Op::Create | Op::Stale => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != item.state) {
        let next = match (item.state, party) {
            (Pending, Party::Agent) => "the next operation is `start`",
            (InProgress, Party::Agent) => "the next operation is `claim`, with evidence",
            (Claimed, Party::Agent) => "its claim is being decided; read it again later",
            (Verified, _) => "it is done; make another item for further work",
            (Pending, _) => "the agent has to start it first",
            (InProgress, _) => "the agent has to claim it first",
            (Claimed, _) => "the next operation is `attest` or `ask_changes`",
        };
        return wrong(format!("{} is {}, and `{op}` needs one that is {wanted}", item.id, item.state), next);
    }
    if item.waits && matches!(op, Op::Claim | Op::Check) {
        let reason = format!("{} has reached a limit and waits for a person", item.id);
        let next = "a person has to `attest`, `ask_changes` or `bury`";
        return Err(WorkError::new(Refusal::WaitsForPerson, "item", reason, next));
    }
    Ok(())
}

fn create(
    works: &Works,
    party: Party,
    operation: Operation,
    around: &Around<'_>,
) -> Result<WorkRecord, WorkError> {
    let Operation::Create { title, criteria, owner, covers } = operation else {
        return Err(WorkError::field("operation", "is about an item, and names none"));
    };
    if works.len() >= WORK_ITEMS_MAX {
        let reason = format!("this run has {WORK_ITEMS_MAX} items, which is the limit");
        return Err(WorkError::new(Refusal::Full, "item", reason, "use a new run for further ones"));
    }
    words("title", &title, TITLE_BYTES_MAX)?;
    let id = ItemId(u32::try_from(works.len()).unwrap_or(u32::MAX).saturating_add(1));
    let mut item = WorkItem { title, covers, ..WorkItem::new(id, around.seq) };
    if party == Party::Agent {
        propose(&mut item, criteria, around);
    } else {
        require(&mut item, criteria, owner)?;
    }
    Ok(WorkRecord::done(Op::Create, None, item))
}

/// What the agent proposes counts where the bundle says so, and waits for a person elsewhere. A request that the gate is to
/// send always does: an agent could put what it must not send into a URL.
fn propose(item: &mut WorkItem, criteria: Vec<Criterion>, around: &Around<'_>) {
    let reaches_out = criteria.iter().any(|criterion| criterion.check.reaches_out());
    if around.settings.accept_agent_criteria && !criteria.is_empty() && !reaches_out {
        (item.owner, item.criteria) = (Some(Owner::Policy), criteria);
    } else {
        item.proposed = criteria;
    }
}

fn require(item: &mut WorkItem, criteria: Vec<Criterion>, owner: Owner) -> Result<(), WorkError> {
    if matches!(owner, Owner::Person | Owner::Policy) {
        return Err(WorkError::field("owner", "must be one of `operator`, `user`, `plan`"));
    }
    item.owner = (!criteria.is_empty()).then_some(owner);
    (item.criteria, item.proposed) = (criteria, Vec::new());
    Ok(())
}

fn change(
    item: &mut WorkItem,
    works: &Works,
    operation: Operation,
    around: &Around<'_>,
) -> Result<(), WorkError> {
    match operation {
        Operation::Create { .. } => {}
        Operation::Propose { criteria, .. } => {
            if item.owner.is_some_and(|owner| owner != Owner::Policy) {
                let reason = format!("the criteria of {} are not the agent's", item.id);
                return Err(WorkError::new(Refusal::NotPermitted, "criteria", reason, "start it as it is"));
            }
            propose(item, criteria, around);
        }
        Operation::Accept { .. } => {
            if item.proposed.is_empty() {
                let next = "set criteria with `require`";
                let reason = format!("nothing is proposed for {}", item.id);
                return Err(WorkError::new(Refusal::WrongState, "item", reason, next));
            }
            item.criteria = std::mem::take(&mut item.proposed);
            item.owner = Some(Owner::Person);
        }
        Operation::Decline { reason, .. } => {
            words("reason", &reason, WORDS_BYTES_MAX)?;
            (item.proposed, item.reason) = (Vec::new(), reason);
        }
        Operation::Require { criteria, owner, .. } => require(item, criteria, owner)?,
        Operation::Start { .. } => start(item, around)?,
        Operation::Claim { evidence, statement, .. } => claim(item, works, &evidence, statement, around)?,
        Operation::Check { version, results, .. } => check(item, works, version, results, around)?,
        Operation::Attest { reason, .. } => {
            words("reason", &reason, WORDS_BYTES_MAX)?;
            (item.state, item.verified, item.reason) =
                (ItemState::Verified, Some(Verified::Attested), reason);
            item.waits = false;
        }
        Operation::AskChanges { reason, .. } => {
            words("reason", &reason, WORDS_BYTES_MAX)?;
            turn_back(item, reason, around);
            (item.revisions, item.attempts, item.since_step) = (0, 0, around.steps);
            item.waits = false;
        }
        Operation::Bury { reason, .. } => {
            words("reason", &reason, WORDS_BYTES_MAX)?;
            (item.buried, item.reason) = (true, reason);
        }
    }
    Ok(())
}

fn start(item: &mut WorkItem, around: &Around<'_>) -> Result<(), WorkError> {
    if !item.proposed.is_empty() {
        let reason = format!("what {} is to be measured by is proposed, and nobody has accepted it", item.id);
        let next = "a person has to `accept`, `decline` or `require`";
        return Err(WorkError::new(Refusal::WaitsForPerson, "criteria", reason, next));
    }
    item.state = ItemState::InProgress;
    item.frozen = Some(digest_of_criteria(&item.criteria, &item.covers, around.key));
    (item.since_step, item.started) = (around.steps, Some(around.seq));
    Ok(())
}

fn claim(
    item: &mut WorkItem,
    works: &Works,
    cited: &[ActionId],
    statement: String,
    around: &Around<'_>,
) -> Result<(), WorkError> {
    words("statement", &statement, WORDS_BYTES_MAX)?;
    if cited.is_empty() || cited.len() > EVIDENCE_MAX {
        let reason = format!("a claim cites 1 to {EVIDENCE_MAX} calls of this run");
        return Err(WorkError::new(Refusal::NoEvidence, "evidence", reason, "cite the calls that show it"));
    }
    let mut evidence: Vec<Evidence> = Vec::with_capacity(cited.len());
    for (at, action) in cited.iter().enumerate() {
        let field = format!("evidence[{at}]");
        if evidence.iter().any(|earlier| earlier.action == *action) {
            let reason = format!("call {action} is cited twice");
            return Err(WorkError::new(Refusal::NoEvidence, field, reason, "cite each call once"));
        }
        evidence.push(cite(item, works, *action, &field, around)?);
    }
    if let Some(returned) = item.returned
        && !evidence.iter().any(|one| one.outcome > returned)
    {
        let reason =
            format!("all of it is from before event {returned}, by which the last claim was turned down");
        let next = "do what was missing, and cite at least one call made since";
        return Err(WorkError::new(Refusal::OldEvidence, "evidence", reason, next));
    }
    item.waits = around.steps.saturating_sub(item.since_step) > around.settings.steps;
    (item.state, item.statement, item.evidence) = (ItemState::Claimed, statement, evidence);
    (item.results, item.attempts) = (Vec::new(), 0);
    Ok(())
}

/// A call as evidence: it happened in this run, it succeeded, and nothing was written over it since.
fn cite(
    item: &WorkItem,
    works: &Works,
    action: ActionId,
    field: &str,
    around: &Around<'_>,
) -> Result<Evidence, WorkError> {
    let Some(call) = works.call(action) else {
        let reason = format!("call {action} is no finished call of this run, or no longer remembered");
        return Err(WorkError::new(Refusal::NoEvidence, field, reason, "cite a finished call of this run"));
    };
    if !call.succeeded() {
        let reason = format!("call {action} did not succeed");
        return Err(WorkError::new(Refusal::NoEvidence, field, reason, "cite a call that succeeded"));
    }
    if let Some(written) = (around.written_since)(action, call, &item.covers) {
        let reason =
            format!("what {} covers was written after call {action} began, by event {written}", item.id);
        return Err(WorkError::new(
            Refusal::OldEvidence,
            field,
            reason,
            "make the call again, and cite that one",
        ));
    }
    Ok(Evidence {
        action,
        tool: call.tool.clone(),
        outcome: call.outcome,
        status: call.status,
        digest: call.digest(action),
        stale: None,
    })
}

fn check(
    item: &mut WorkItem,
    works: &Works,
    version: u64,
    mut results: Vec<CheckResult>,
    around: &Around<'_>,
) -> Result<(), WorkError> {
    if item.criteria.is_empty() {
        let reason = format!("{} has no criteria", item.id);
        return Err(WorkError::new(Refusal::WrongState, "item", reason, "a person has to attest it"));
    }
    let before = works.item(item.id).map_or(0, |before| before.changed);
    if before != version {
        let reason = format!("{} was changed by event {before} while it was checked", item.id);
        return Err(WorkError::new(Refusal::Changed, "item", reason, "check it again"));
    }
    if results.len() != item.criteria.len() {
        return Err(WorkError::field("results", format!("there are {} criteria", item.criteria.len())));
    }
    results.iter_mut().for_each(|result| cut_detail(&mut result.detail));
    let came = |wanted: Came| results.iter().any(|result| result.came == wanted);
    if let Some(written) = item.stale() {
        item.results = results;
        turn_down(item, format!("its evidence is stale since event {written}"), around);
        return Ok(());
    }
    if came(Came::Fail) {
        let failed = results.iter().zip(&item.criteria).position(|(result, _)| result.came == Came::Fail);
        let failed = failed.and_then(|at| item.criteria.get(at).map(|criterion| (at, criterion)));
        let reason = failed
            .map(|(at, criterion)| format!("criterion {} (`{}`) failed", at + 1, criterion.check.kind()))
            .unwrap_or_default();
        item.results = results;
        turn_down(item, reason, around);
    } else if came(Came::Error) || came(Came::Timeout) {
        item.results = results;
        item.attempts = item.attempts.saturating_add(1);
        item.waits |= item.attempts >= around.settings.attempts;
    } else {
        item.results = results;
        (item.state, item.verified) = (ItemState::Verified, Some(Verified::Checked));
    }
    Ok(())
}

/// A claim is turned down. Work goes on, unless that happened too often: then a person decides on the claim.
fn turn_down(item: &mut WorkItem, reason: String, around: &Around<'_>) {
    item.revisions = item.revisions.saturating_add(1);
    if item.revisions > around.settings.revisions {
        (item.waits, item.reason) = (true, reason);
    } else {
        turn_back(item, reason, around);
    }
}

fn turn_back(item: &mut WorkItem, reason: String, around: &Around<'_>) {
    (item.state, item.reason, item.returned) = (ItemState::InProgress, reason, Some(around.seq));
}

fn words(field: &str, text: &str, limit: usize) -> Result<(), WorkError> {
    match text.len() {
        _ if text.trim().is_empty() => Err(WorkError::field(field, "is empty")),
        bytes if bytes > limit => {
            Err(WorkError::field(field, format!("has {bytes} bytes; the limit is {limit}")))
        }
        _ => Ok(()),
    }
}

/// Keeps the end, where commands say what went wrong.
fn cut_detail(detail: &mut String) {
    let Some(mut from) = detail.len().checked_sub(DETAIL_BYTES_MAX) else { return };
    while !detail.is_char_boundary(from) {
        from += 1;
    }
    detail.drain(..from);
}
