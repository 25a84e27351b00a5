//! Session state and facts of a live run. Each operation is one batch, durable before it is answered. What has to be read
//! from the store is read while the run is not locked; what the run itself has forgotten meanwhile counts.

use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::{ActionId, Digest, RequestId};
use portcullis_core::kept::{
    Cell, FACT, FACTS_READ_MAX, KeptError, KeptFact, KeptId, KeptOp, KeptScope, NewFact, Put, REPLACES_MAX,
    Refusal, Standing, known,
};
use portcullis_core::work::Party;
use portcullis_ledger::{
    FACTS_MAX, FactChange, FactFilter, FactReader, LedgerError, NewFactRow, Reader, read_aside,
};

use super::{Live, Run};
use crate::engine::{FactsRead, Reach, WorkBy};
use crate::error::SessionError;
use crate::kept::{StateVersion, stored, version_of};
use crate::taints::Taints;

/// Most versions of a key that are told at once.
pub const HISTORY_PAGE_MAX: usize = 100;
/// Most bytes of facts that are read at once, so that they fit into what an agent can take.
const READ_BYTES_MAX: usize = 128 << 10;

/// Which facts are to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactsAsked {
    /// These, by name; none: those that are not replaced, the newest first.
    pub facts: Vec<KeptId>,
    /// Only those about this.
    pub topic: Option<String>,
    /// At most so many, and [`FACTS_READ_MAX`].
    pub limit: usize,
    /// Only those before this place: [`FactsPage::next`] of the page before.
    pub before: Option<u64>,
}

/// Facts that were read.
#[derive(Debug, Clone)]
pub struct FactsPage {
    /// They themselves, judged; `None` where there are none.
    pub read: Option<FactsRead>,
    /// Where to go on, if there may be more.
    pub next: Option<u64>,
    /// Those that were asked for by name and whose text was erased.
    pub erased: Vec<KeptId>,
}

/// What is known by a folder or topic in the index.
fn keyed(taints: &Taints, what: &str, name: &str) -> Digest {
    taints.digest(&format!("{what} {name}"))
}

impl Run {
    /// Puts a value into the session state, in place of the version that is named. A refusal is recorded, and then is the
    /// error. The same request, made again, counts once.
    ///
    /// # Errors
    /// Besides those of every write: [`KeptError`].
    pub async fn state_put(&self, put: Put, cause: Option<ActionId>) -> Result<Cell, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let (batch, answer) = engine.state_put(env, put, cause);
        if let Some(batch) = batch {
            live.commit(batch).await?;
        }
        Ok(answer?)
    }

    /// The versions of a key, the newest first: at most `limit` and [`HISTORY_PAGE_MAX`], from the one before `before`, and
    /// whether there are more.
    ///
    /// # Errors
    /// There is no such key, or the store cannot be read.
    pub async fn state_history(
        &self,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<StateVersion>, bool), SessionError> {
        let latest = self.with_state(|state, _| state.kept().cell(key).map(|cell| cell.version)).await;
        let Some(latest) = latest else {
            let next = "`state_get` without a key lists those that there are";
            return Err(KeptError::new(Refusal::Unknown, "key", format!("there is no `{key}`"), next).into());
        };
        let (run, limit) = (self.id, limit.clamp(1, HISTORY_PAGE_MAX));
        let (versions, more) = read_aside(&self.ledger, move |reader| {
            let (mut versions, mut next) = (Vec::new(), Some(latest));
            while let Some(version) = next {
                if versions.len() == limit {
                    return Ok((versions, true));
                }
                let Some(found) = version_of(reader, run, version)? else { break };
                next = found.replaces;
                if before.is_none_or(|before| version < before) {
                    versions.push(found);
                }
            }
            Ok((versions, false))
        })
        .await?;
        Ok((versions, more))
    }

    /// Establishes a fact. A refusal is recorded, and then is the error. The same request, made again, counts once.
    ///
    /// # Errors
    /// Besides those of every write: [`KeptError`].
    pub async fn fact_write(&self, new: NewFact, cause: Option<ActionId>) -> Result<KeptId, SessionError> {
        let (reader, named) = (self.fact_reader().await, new.replaces.clone());
        let (standings, ever) = read_aside(&self.ledger, move |store| {
            let named = named.into_iter().take(REPLACES_MAX);
            let standings = named.map(|id| Ok((id, standing(store, &reader, id)?)));
            Ok((standings.collect::<Result<Vec<_>, LedgerError>>()?, store.facts_ever()?))
        })
        .await?;
        if ever >= FACTS_MAX {
            let reason = format!("the store has {FACTS_MAX} facts, which is the limit");
            return Err(KeptError::new(
                Refusal::Full,
                "text",
                reason,
                "have the operator begin another store",
            )
            .into());
        }
        let look = |id: KeptId| {
            let known = standings.iter().find(|(known, _)| *known == id);
            known.map_or(Standing::Unknown, |(_, standing)| *standing)
        };
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let (batch, answer) = engine.fact_write(env, new, &look, cause);
        if let Some(batch) = batch {
            live.commit(batch).await?;
        }
        Ok(answer?)
    }

    /// Hands facts to the agent. They are judged like whatever else it sees.
    ///
    /// # Errors
    /// Besides those of every write: [`KeptError`] where a fact that is named is not there.
    pub async fn fact_read(
        &self,
        asked: FactsAsked,
        cause: Option<ActionId>,
        reach: Reach,
    ) -> Result<FactsPage, SessionError> {
        let reader = self.fact_reader().await;
        let topic = match &asked.topic {
            Some(topic) => Some(keyed(&self.live.lock().await.taints, "topic", topic)),
            None => None,
        };
        let found = read_aside(&self.ledger, move |store| match asked.facts.is_empty() {
            true => newest(store, reader, topic, asked.before, asked.limit).map(Ok),
            false => by_name(store, &reader, &asked.facts),
        })
        .await?;
        let Found { facts, next, erased } = found?;
        if facts.is_empty() {
            return Ok(FactsPage { read: None, next, erased });
        }
        let of = facts.clone();
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_facts(at, &of, sources),
            |engine, env, sources| Ok(engine.fact_read(env, facts, cause, reach, sources)?),
        );
        Ok(FactsPage { read: Some(judged.await?.1), next, erased })
    }

    /// Forgets a fact: of the run's own principal and folder, or, where a person asks, any. A refusal is recorded, and then
    /// is the error. The same request, made again, counts once.
    ///
    /// # Errors
    /// Besides those of every write: [`KeptError`].
    pub async fn fact_forget(
        &self,
        by: WorkBy,
        id: KeptId,
        reason: String,
        request: Option<RequestId>,
        cause: Option<ActionId>,
    ) -> Result<(), SessionError> {
        let (reader, person) = (self.fact_reader().await, by.party == Party::Person);
        let standing = read_aside(&self.ledger, move |store| match person {
            false => standing(store, &reader, id),
            true => Ok(match store.fact(id)? {
                Some(row) if row.is_forgotten() => Standing::Forgotten,
                Some(_) => Standing::Held,
                None => Standing::Unknown,
            }),
        })
        .await?;
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let (batch, answer) = engine.fact_forget(env, &by, (id, reason), request, standing, cause);
        if let Some(batch) = batch {
            live.commit(batch).await?;
        }
        Ok(answer?)
    }

    /// Whose facts this run reads.
    async fn fact_reader(&self) -> FactReader {
        let live = self.live.lock().await;
        FactReader { principal: self.principal.id.clone(), workspace: live.fact_folder() }
    }
}

impl Live {
    /// What the folder of the run is known by.
    fn fact_folder(&self) -> Digest {
        let folder = self.engine.work_folder().unwrap_or_default();
        keyed(&self.taints, "folder of facts", folder.trim_end_matches('/'))
    }

    /// What events do to the index of facts.
    pub(super) fn fact_changes(&self, events: &[Event]) -> Vec<FactChange> {
        let change = |event: &Event| {
            let EventBody::Fact(record) = &event.body else { return None };
            match record.op {
                _ if record.refused.is_some() => None,
                KeptOp::Read => None,
                KeptOp::Forget => Some(FactChange::Forgotten { seq: event.seq, fact: record.fact? }),
                KeptOp::Write => {
                    let topic = &record.words.topic;
                    let of_folder = record.scope != Some(KeptScope::Principal);
                    Some(FactChange::Written(NewFactRow {
                        seq: event.seq,
                        principal: self.engine.principal().to_owned(),
                        workspace: of_folder.then(|| self.fact_folder()),
                        topic: (!topic.is_empty()).then(|| keyed(&self.taints, "topic", topic)),
                        commitment: event.payloads.get(FACT)?.commitment,
                        replaces: record.replaces.clone(),
                    }))
                }
            }
        };
        events.iter().filter_map(change).collect()
    }
}

/// How a fact stands for a run.
fn standing(store: &dyn Reader, reader: &FactReader, id: KeptId) -> Result<Standing, LedgerError> {
    Ok(match store.fact(id)?.filter(|row| row.is_read_by(reader)) {
        None => Standing::Unknown,
        Some(row) if row.is_forgotten() => Standing::Forgotten,
        Some(_) => Standing::Held,
    })
}

/// Facts as they are stored.
#[derive(Default)]
struct Found {
    facts: Vec<KeptFact>,
    next: Option<u64>,
    erased: Vec<KeptId>,
}

fn newest(
    store: &dyn Reader,
    reader: FactReader,
    topic: Option<Digest>,
    before: Option<u64>,
    limit: usize,
) -> Result<Found, LedgerError> {
    let limit = limit.clamp(1, FACTS_READ_MAX);
    let filter = FactFilter { reader: Some(reader), topic, before, limit, ..FactFilter::default() };
    let rows = store.facts(&filter)?;
    let (mut found, mut bytes) = (Found::default(), 0);
    let full = rows.len() == limit;
    for row in rows {
        let fact = stored(store, row.id)?;
        bytes += fact.as_ref().map_or(0, |fact| fact.text.len());
        if bytes > READ_BYTES_MAX {
            return Ok(found);
        }
        found.next = Some(row.number);
        // Where the text was erased there is nothing to read.
        found.facts.extend(fact);
    }
    found.next = found.next.filter(|_| full);
    Ok(found)
}

fn by_name(
    store: &dyn Reader,
    reader: &FactReader,
    ids: &[KeptId],
) -> Result<Result<Found, KeptError>, LedgerError> {
    let mut found = Found::default();
    if ids.len() > FACTS_READ_MAX {
        return Ok(Err(KeptError::field("facts", format!("has more than {FACTS_READ_MAX} entries"))));
    }
    for (at, id) in ids.iter().enumerate() {
        if let Err(error) = known(format!("facts[{at}]"), *id, standing(store, reader, *id)?) {
            return Ok(Err(error));
        }
        match stored(store, *id)? {
            Some(fact) => found.facts.push(fact),
            None => found.erased.push(*id),
        }
    }
    Ok(Ok(found))
}
