//! Work items of a run: operations become events, and what actions write makes evidence stale.

use std::path::Path;
use std::sync::Arc;

use portcullis_core::action::Action;
use portcullis_core::effect::Effects;
use portcullis_core::event::{Actor, EventBody, Place};
use portcullis_core::id::{ActionId, DigestBuilder};
use portcullis_core::observed::Observed;
use portcullis_core::state::Phase;
use portcullis_core::work::{
    Around, Call, Covers, Criterion, Evidence, ItemId, OPEN_TOLD, Operation, Party, Refusal, WorkError,
    WorkItem, WorkRecord, Written, decide, digest_of_criteria,
};
use portcullis_guards::output::open_work::{self, Unshown, is_unshown};

use super::{Engine, Read};
use crate::batch::{Batch, BatchBuilder};
use crate::env::Env;
use crate::facts::{Asked, FactSources, ReplyShown, Shown};

/// Most open items that the agent is told by name.
const OPEN_NAMED_MAX: usize = 10;

/// Who does something to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkBy {
    /// As what.
    pub party: Party,
    /// The approver's name, where it is a person.
    pub person: String,
}

/// What an item is to be checked by, as the run is now.
#[derive(Debug, Clone)]
pub struct ToCheck {
    /// Its criteria.
    pub criteria: Vec<Criterion>,
    /// The event that changed it last.
    pub version: u64,
    /// The event by which it was started: calls before do not count.
    pub since: u64,
}

/// What a call with these effects writes. Where nothing is read of a call that has some effect, it may be any.
pub(super) fn written(effects: &Effects, side_effecting: bool) -> Written {
    match effects.is_empty() && side_effecting {
        true => Written::anything(),
        false => Written::of(effects),
    }
}

impl Engine {
    /// The folder that criteria and what items cover are about.
    pub fn work_folder(&self) -> Option<&str> {
        let place = self.state.place().and_then(|place| place.workspace.as_deref());
        let started = || self.started_in.as_ref().and_then(|place| place.workspace.as_deref());
        place.or(self.bundle.effects.workspace.as_deref()).or_else(started)
    }

    /// The home folder of the user, where toolchains are.
    pub fn work_home(&self) -> Option<&str> {
        let place = self.state.place().and_then(|place| place.home.as_deref());
        place.or_else(|| self.started_in.as_ref().and_then(|place| place.home.as_deref()))
    }

    /// A server of the run was started here. It says nothing of what calls may do: who judges them goes by what the surface
    /// or the bundle say of the agent's folder. A folder that holds the user's home is no project.
    pub(crate) fn started_in(&mut self, place: Place) {
        let wide = |folder: &str| {
            let home = place.home.as_deref().map(Path::new);
            folder == "/" || home.is_some_and(|home| home.starts_with(folder))
        };
        if self.started_in.is_none() && place.workspace.as_deref().is_some_and(|folder| !wide(folder)) {
            self.started_in = Some(place);
        }
    }

    /// What an action writes that may happen.
    pub(super) fn written_by(&self, action: &Action, read: &Read<'_>) -> Option<Written> {
        let side_effecting = self.is_side_effecting(action.tool());
        action.is_call().then(|| written(read.effects.get(), side_effecting))
    }

    /// Reads a list of what an item covers, in the folder in which the agent works.
    ///
    /// # Errors
    /// See [`Covers::read`].
    pub fn covers(&self, list: &[String]) -> Result<Covers, WorkError> {
        Covers::read(list, self.work_folder())
    }

    /// An operation on an item: the events, and the item as it is then. A refusal is recorded, too.
    pub fn work(
        &self,
        env: &mut dyn Env,
        by: &WorkBy,
        operation: Operation,
        cause: Option<ActionId>,
    ) -> (Batch, Result<WorkItem, WorkError>) {
        let mut batch = self.builder(env);
        let (op, item) = (operation.op(), operation.item());
        let folder = self.work_folder();
        let written_since =
            |action: ActionId, call: &Call, covers: &Covers| self.writes.since(action, call, covers, folder);
        let around = Around {
            settings: self.bundle.work,
            key: self.key.as_ref(),
            steps: self.state.steps(),
            seq: batch.seq() + 1,
            written_since: &written_since,
        };
        let works = self.state.works();
        let (record, answer) = match decide(works, by.party, operation, &around) {
            Ok(record) => {
                let after = record.after.as_deref().cloned();
                (record, after.ok_or_else(|| WorkError::field("operation", "makes no item")))
            }
            Err(error) => {
                let known = item.filter(|item| works.item(*item).is_some());
                (WorkRecord::refused(op, known, error.refusal, error.to_string()), Err(error))
            }
        };
        let actor = match by.party {
            Party::Agent => Actor::agent(self.principal()),
            Party::Harness => Actor::gate(),
            Party::Person => Actor::approver(&by.person),
        };
        let cause = cause.and_then(|action| self.event_of(action));
        batch.push(actor, cause, EventBody::Work(record));
        (batch.finish(), answer)
    }

    /// What an item is to be checked by. Its criteria are those that were frozen when it was started.
    ///
    /// # Errors
    /// There is nothing to check, or the criteria are no longer there as they were.
    pub fn to_check(&self, id: ItemId) -> Result<ToCheck, WorkError> {
        let Some(item) = self.state.works().item(id) else {
            let next = "read the items of this run";
            return Err(WorkError::new(Refusal::UnknownItem, "item", format!("there is no item {id}"), next));
        };
        if self.state.freeze().is_some() || *self.state.phase() == Phase::Halted {
            // What a check runs may have effects, and a person stopped those.
            let (reason, next) = ("a person stopped this run", "check it once the run goes on");
            return Err(WorkError::new(Refusal::WaitsForPerson, "item", reason, next));
        }
        let frozen = digest_of_criteria(&item.criteria, &item.covers, self.key.as_ref());
        if item.frozen.is_some_and(|digest| digest != frozen) {
            let reason = format!("the criteria of {id} are not there as they were frozen: words were erased");
            return Err(WorkError::new(Refusal::Changed, "criteria", reason, "a person has to attest it"));
        }
        let since = item.started.unwrap_or_default();
        Ok(ToCheck { criteria: item.criteria.clone(), version: item.changed, since })
    }

    /// Whether a tool's call succeeded since an item was started.
    pub fn succeeded_since(&self, tool: &str, seq: u64) -> bool {
        self.state.works().succeeded_since(tool, seq).is_some()
    }

    /// What the agent is told when it wants to stop, where items are open that it can do something about: once for all that
    /// happened since it was last told.
    /// `unshown` is what a source says of the items that were begun, if one was asked.
    pub fn stopping(&self, env: &mut dyn Env, unshown: Option<&Unshown>) -> Option<(Batch, String)> {
        if !self.may_be_told() {
            return None;
        }
        let open: Vec<&WorkItem> = self.state.works().open().collect();
        let found = |item: &WorkItem| {
            let found = unshown?.items.iter().find(|one| one.item == item.id)?;
            Some(found.missing.join("; ")).filter(|missing| !missing.is_empty())
        };
        let mut digest = DigestBuilder::new("portcullis/work-open/v1");
        let mut told = String::from("These work items are not shown to be done:");
        for (number, item) in open.iter().enumerate() {
            digest = digest.part(item.id.to_string().as_bytes()).part(item.state.as_str().as_bytes());
            if number < OPEN_NAMED_MAX {
                let why = found(item).or_else(|| (!item.reason.is_empty()).then(|| item.reason.clone()));
                let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                told.push_str(&format!("\n- {} {}: {}{why}", item.id, item.title, item.state));
            }
        }
        if let Some(more) = open.len().checked_sub(OPEN_NAMED_MAX).filter(|more| *more > 0) {
            told.push_str(&format!("\n- and {more} more"));
        }
        told.push_str(
            "\nDo what is missing and claim them with evidence, or tell the user that they are open.",
        );
        let mut batch = self.builder(env);
        let body = EventBody::Evidence { name: OPEN_TOLD.to_owned(), digest: digest.finish() };
        batch.push(Actor::gate(), None, body);
        Some((batch.finish(), told))
    }

    /// Whether anything is open that the agent can do something about, and has not been told of since anything happened.
    pub(crate) fn may_be_told(&self) -> bool {
        let works = self.state.works();
        works.has_news() && works.open().next().is_some()
    }

    /// What sources are asked about work when the agent wants to stop.
    pub(crate) fn needs_of_stopping(&self, sources: &FactSources) -> Asked {
        let begun = self.state.works().items().any(is_unshown);
        let requests = if begun { vec![open_work::request()] } else { Vec::new() };
        let bundle = Arc::clone(&self.bundle);
        let shown = ReplyShown { last: true, replaces: false };
        Asked::of(sources.answerable(requests), || Shown {
            bundle,
            text: None,
            prompt: None,
            documents: None,
            told: None,
            second_opinion: None,
            per_action: None,
            reply: Some(shown),
        })
    }

    /// Says that the evidence of an item is stale where what happened since says so: of what ran contained, and was not
    /// waited for. `None` where it is not.
    pub fn work_outdated(&self, env: &mut dyn Env, id: ItemId) -> Option<Batch> {
        let works = self.state.works();
        let item = works.fresh().find(|item| item.id == id)?;
        let is_old = |evidence: &Evidence| {
            let since = |call| self.writes.since(evidence.action, call, &item.covers, self.work_folder());
            match works.call(evidence.action) {
                Some(call) => evidence.stale.is_none() && since(call).is_some(),
                // Of so many calls since that it is not remembered, somebody may have written anything.
                None => true,
            }
        };
        item.evidence.iter().any(is_old).then(|| {
            let mut batch = self.builder(env);
            batch.push(Actor::gate(), None, EventBody::Work(WorkRecord::stale(vec![id])));
            batch.finish()
        })
    }

    /// Adds that evidence is stale, where what an action wrote bears on it.
    pub(super) fn push_stale(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: ActionId,
        seen: Option<&Observed>,
        cause: u64,
    ) {
        let folder = self.work_folder();
        let outdated = |item: &&WorkItem| self.writes.outdates(action, seen, item, folder);
        let items: Vec<ItemId> = self.state.works().fresh().filter(outdated).map(|item| item.id).collect();
        if !items.is_empty() {
            batch.push(Actor::gate(), Some(cause), EventBody::Work(WorkRecord::stale(items)));
        }
    }
}
