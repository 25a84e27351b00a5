//! Columns that events are found by, held against the events: no link covers them.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::aside::TAINT;
use portcullis_core::event::{About, ClosedState, Event, EventBody, GrantScope};
use portcullis_core::id::{ActionId, ApprovalId, Commitment, Digest, RunId};
use portcullis_core::kept::{FACT, KeptOp};
use rusqlite::{Connection, Row, params};

use super::PROBLEMS_MAX;
use super::facts::fact_rows;
use super::taints::taint_rows;
use crate::error::LedgerError;
use crate::rows::ApprovalState;
use crate::sqlite::approvals::{self};
use crate::sqlite::backfill;
use crate::sqlite::read::SqliteReader;
use crate::sqlite::schema::{event_key, has_summaries, unsigned};
use crate::sqlite::summaries::{self, Fold};

/// What the events of a run say that its indexes must say too.
#[derive(Default)]
struct Said {
    principal: Option<String>,
    session: Option<String>,
    approvals: BTreeMap<ApprovalId, Approval>,
    proposed: BTreeMap<ActionId, u64>,
    /// The latest verdict on an action: the rule that it rests on.
    held: Option<(Option<ActionId>, Option<String>)>,
    /// How each segment that has ended did, by its number in the store.
    ended: BTreeMap<i64, ClosedState>,
    segments: BTreeSet<i64>,
    commitments: BTreeSet<[u8; 32]>,
    /// Payloads that say what was written with the words of others, by event.
    taints: BTreeMap<u64, Commitment>,
    /// Payloads of the events that establish facts.
    facts: BTreeMap<u64, Commitment>,
    summary: Fold,
}

struct Approval {
    action: Option<ActionId>,
    digest: Digest,
    state: ApprovalState,
    once: bool,
    tool: String,
    /// How far the answer reaches, without the resources of one for effects: those may be erased.
    scope: Option<GrantScope>,
    decided_by: Option<String>,
    note: Option<String>,
    /// The rule that holds the call.
    rule: Option<String>,
    /// Number of the proposal.
    proposed: Option<u64>,
}

impl SqliteReader {
    /// Names the rows that say something else than the events of the run, and payloads that are neither there nor erased.
    pub(super) fn check_index(
        &self,
        number: i64,
        run: RunId,
        problems: &mut Vec<String>,
    ) -> Result<(), LedgerError> {
        let erasures = self.has_erasures()?;
        let found = self.query(|connection| {
            let mut found = Vec::new();
            let said = read_events(connection, number, &mut found)?;
            run_row(connection, number, &said, &mut found)?;
            segment_rows(connection, number, &said, &mut found)?;
            approval_rows(connection, number, &said, &mut found)?;
            payload_rows(connection, number, &said, erasures, &mut found)?;
            taint_rows(connection, number, &said.taints, &mut found)?;
            fact_rows(connection, number, &said.facts, said.principal.as_deref(), &mut found)?;
            summary_row(connection, number, &said, &mut found)?;
            Ok(found)
        })?;
        let room = PROBLEMS_MAX.saturating_sub(problems.len());
        problems.extend(found.into_iter().take(room).map(|problem| format!("run {run}: {problem}")));
        Ok(())
    }
}

fn read_events(connection: &Connection, number: i64, found: &mut Vec<String>) -> rusqlite::Result<Said> {
    let mut said = Said::default();
    let mut statement = connection.prepare_cached(
        "SELECT segment, kind, action, t, line FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    )?;
    let mut rows = statement.query(params![event_key(number, 0), event_key(number, u64::MAX)])?;
    while let Some(row) = rows.next()? {
        // What cannot be read is reported by the check of the links.
        let Ok(event) = Event::from_line(row.get_ref(4)?.as_blob()?) else { continue };
        let (kind, action, t): (String, Option<Vec<u8>>, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let indexed = event.body.action().map(|action| action.as_bytes().to_vec());
        if kind != event.body.kind() || action != indexed || t != event.t.as_micros() {
            found.push(format!("the index row of event {} does not match it: `{kind}`", event.seq));
        }
        said.take(row.get(0)?, &event);
    }
    Ok(said)
}

impl Said {
    fn take(&mut self, segment: i64, event: &Event) {
        self.summary.take(event);
        self.segments.insert(segment);
        self.commitments.extend(event.payloads.values().map(|payload| *payload.commitment.as_bytes()));
        let taint = event.payloads.get(TAINT).map(|payload| (event.seq, payload.commitment));
        self.taints.extend(taint);
        match &event.body {
            EventBody::RunOpened(opened) => {
                self.principal.get_or_insert_with(|| opened.principal.id.clone());
                self.session.clone_from(&opened.session);
            }
            EventBody::Fact(record) if record.op == KeptOp::Write && record.refused.is_none() => {
                let payload = event.payloads.get(FACT).map(|payload| (event.seq, payload.commitment));
                self.facts.extend(payload);
            }
            EventBody::RunClosed { state, .. } => drop(self.ended.insert(segment, *state)),
            EventBody::Proposed(proposed) => drop(self.proposed.insert(proposed.action, event.seq)),
            EventBody::Verdict(record) => {
                self.held = Some((record.action, record.rule.clone()));
            }
            EventBody::ApprovalRequested { approval, about, digest, tool, .. } => {
                let action = about.action();
                let asked = Approval {
                    action,
                    digest: *digest,
                    state: ApprovalState::Pending,
                    once: false,
                    tool: tool.clone(),
                    scope: None,
                    decided_by: None,
                    note: None,
                    rule: self.held.take().filter(|(held, _)| *held == action).and_then(|(_, rule)| rule),
                    proposed: match about {
                        About::Action(action) => self.proposed.get(action).copied(),
                        About::Text(said) => Some(*said),
                    },
                };
                self.approvals.insert(*approval, asked);
            }
            EventBody::ApprovalDecided { approval, decision, scope, note, .. } => {
                let state = ApprovalState::after(*decision);
                if let (Some(asked), Some(state)) = (self.approvals.get_mut(approval), state) {
                    asked.scope.clone_from(scope);
                    asked.decided_by = Some(event.actor.to_string());
                    asked.note = note.clone().or(asked.note.take());
                    asked.once = *scope == Some(GrantScope::Once);
                    asked.state = state;
                }
            }
            EventBody::GrantClaimed { approval, .. } => {
                // A grant with a wider scope is not used up.
                if let Some(asked) = self.approvals.get_mut(approval).filter(|asked| asked.once) {
                    asked.state = ApprovalState::Claimed;
                }
            }
            _ => {}
        }
    }
}

impl Approval {
    fn is_scope(&self, indexed: Option<&str>) -> bool {
        match (indexed.map(serde_json::from_str::<GrantScope>), &self.scope) {
            (None, None) => true,
            (Some(Ok(GrantScope::Effects(_))), Some(GrantScope::Effects(_)))
            | (Some(Ok(GrantScope::Pattern(_))), Some(GrantScope::Pattern(_))) => true,
            (Some(Ok(indexed)), Some(said)) => indexed == *said,
            _ => false,
        }
    }

    /// The columns of the row that say something else than the events. A note of an earlier release may be missing.
    fn unlike(&self, row: &Row<'_>, first: usize) -> rusqlite::Result<Vec<&'static str>> {
        let tool: String = row.get(first)?;
        let proposed = row.get::<_, Option<i64>>(first + 1)?.map(unsigned);
        let (note, rule): (Option<String>, Option<String>) = (row.get(first + 2)?, row.get(first + 3)?);
        let fields = [
            ("tool", tool.is_empty() || tool == self.tool),
            ("proposed", proposed.is_none() || proposed == self.proposed),
            ("note", note.is_none() || note == self.note),
            ("rule", rule.is_none() || rule == self.rule),
        ];
        Ok(fields.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect())
    }
}

fn run_row(
    connection: &Connection,
    number: i64,
    said: &Said,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let Some(principal) = &said.principal else { return Ok(()) };
    let (indexed, session): (String, Option<String>) = connection
        .prepare_cached("SELECT principal, session_key FROM runs WHERE number = ?1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if indexed != *principal {
        found
            .push(format!("it is indexed under the principal `{indexed}`, but its events say `{principal}`"));
    }
    if session != said.session {
        found.push("it is indexed under a different session than its events say".to_owned());
    }
    Ok(())
}

fn segment_rows(
    connection: &Connection,
    number: i64,
    said: &Said,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("SELECT number, state FROM segments WHERE run = ?1")?;
    let mut rows = statement.query([number])?;
    while let Some(row) = rows.next()? {
        let (segment, state): (i64, String) = (row.get(0)?, row.get(1)?);
        let expected = match said.ended.get(&segment) {
            Some(ClosedState::Closed) => "closed",
            Some(ClosedState::Abandoned) => "abandoned",
            None => "open",
        };
        if said.segments.contains(&segment) && state != expected {
            found.push(format!("a segment is indexed as {state}, but its events say {expected}"));
        }
    }
    Ok(())
}

fn approval_rows(
    connection: &Connection,
    number: i64,
    said: &Said,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT approval, action, digest, principal, state, scope, decided_by, tool, proposed, note, rule FROM {}
         WHERE run = ?1",
        approvals::table(connection)?
    ))?;
    let mut rows = statement.query([number])?;
    let mut indexed = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let approval = ApprovalId::from_bytes(row.get(0)?);
        indexed.insert(approval);
        let Some(asked) = said.approvals.get(&approval) else {
            found.push(format!("approval {approval} is indexed, but no event requests it"));
            continue;
        };
        let (action, digest): (Option<Vec<u8>>, Vec<u8>) = (row.get(1)?, row.get(2)?);
        let asked_of = asked.action.as_ref().map(|action| &action.as_bytes()[..]);
        let (principal, state): (String, String) = (row.get(3)?, row.get(4)?);
        let of = said.principal.as_ref().is_none_or(|of| *of == principal);
        if action.as_deref() != asked_of || digest != asked.digest.as_bytes() || !of {
            found.push(format!("approval {approval} is indexed under a different action or principal"));
        }
        if state != asked.state.as_str() {
            let expected = asked.state.as_str();
            found.push(format!("approval {approval} is indexed as {state}, but the events say {expected}"));
        }
        let (scope, decided_by): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
        if !asked.is_scope(scope.as_deref()) {
            found.push(format!("approval {approval} is indexed with a different scope than was granted"));
        }
        if decided_by != asked.decided_by {
            found.push(format!("approval {approval} is indexed under a different approver"));
        }
        for field in asked.unlike(row, 7)? {
            found.push(format!(
                "approval {approval} is indexed with a different `{field}` than the events say"
            ));
        }
    }
    let missing = said.approvals.keys().filter(|approval| !indexed.contains(*approval));
    found.extend(missing.map(|approval| format!("approval {approval} is missing from the index")));
    Ok(())
}

fn payload_rows(
    connection: &Connection,
    number: i64,
    said: &Said,
    erasures: bool,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut known: BTreeSet<[u8; 32]> = BTreeSet::new();
    let mut take = |sql: &str| -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([number])?;
        while let Some(row) = rows.next()? {
            known.insert(row.get(0)?);
        }
        Ok(())
    };
    take("SELECT commitment FROM payloads WHERE run = ?1 AND salt <> zeroblob(32)")?;
    if erasures {
        take("SELECT commitment FROM erasures WHERE run = ?1")?;
    }
    for commitment in known.difference(&said.commitments) {
        let commitment = Commitment::from_bytes(*commitment);
        found.push(format!("payload {commitment} is stored or erased, but no event names it"));
    }
    for commitment in said.commitments.difference(&known) {
        let commitment = Commitment::from_bytes(*commitment);
        found.push(format!("payload {commitment} is neither stored nor erased"));
    }
    Ok(())
}

/// Holds the summary of a run against its events. A run of an earlier release may still lack one.
fn summary_row(
    connection: &Connection,
    number: i64,
    said: &Said,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let Some(expected) = said.summary.summary().filter(|_| has_summaries(connection).unwrap_or(false)) else {
        return Ok(());
    };
    match summaries::get(connection, number)?.map(|stored| stored.unlike(&expected)) {
        Some(parts) if parts.is_empty() => {}
        Some(parts) => found.push(format!("its summary differs from its events in {}", parts.join(", "))),
        None if unsigned(number) <= backfill::due(connection)? => {}
        None => found.push("it has no summary".to_owned()),
    }
    Ok(())
}
