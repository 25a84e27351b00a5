//! Runs to write, and the check that what was written verifies.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_core::event::{
    Actor, ClosedState, EVENT_VERSION, Enforced, Event, EventBody, Mode, OutcomeStatus, PayloadRef, Proposed,
    RunOpened, VerdictRecord,
};
use portcullis_core::id::{ActionId, Commitment, Digest, RunId, SegmentId};
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{
    Append, ChainedLine, ExportOptions, Head, LedgerError, NewSegment, OpenOptions, SqliteLedger,
    SqliteReader, StoredPayload,
};
use portcullis_proof::{Report, Trust, verify};

/// The schema of version 1, as the first releases wrote it.
const VERSION_1: &str = include_str!("schema-1.sql");

/// An id that this test process has not used before.
pub(crate) fn fresh() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    id[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    id
}

pub(crate) fn digest() -> Digest {
    Digest::from_bytes([7; 32])
}

pub(crate) fn open(folder: &Path) -> SqliteLedger {
    try_open(folder).unwrap()
}

pub(crate) fn try_open(folder: &Path) -> Result<SqliteLedger, LedgerError> {
    let options = OpenOptions { origin: Some("portcullis/test".to_owned()), ..OpenOptions::default() };
    SqliteLedger::open(folder, options)
}

/// A run as a session writes it: what is chained but not yet appended, and where it stands.
pub(crate) struct Run {
    pub(crate) head: Head,
    /// What the clock says when the next event happens.
    pub(crate) now: Timestamp,
    state: RunState,
    append: Append,
    /// The payload that each event names first.
    named: BTreeMap<u64, Commitment>,
}

impl Run {
    /// Opens a new run and chains its `run-opened`.
    pub(crate) fn start(ledger: &SqliteLedger) -> Run {
        Run::start_for(ledger, None).unwrap()
    }

    pub(crate) fn start_for(ledger: &SqliteLedger, session: Option<&str>) -> Result<Run, LedgerError> {
        let mut run = Run::segment(ledger, RunId::from_bytes(fresh()), session)?;
        run.chain(EventBody::RunOpened(RunOpened {
            principal: Principal::named("alice"),
            surface: "test".to_owned(),
            session: session.map(str::to_owned),
            policy: "strict".to_owned(),
            bundle: digest(),
            configuration: None,
            mode: Mode::Enforce,
            place: None,
            parent: None,
        }));
        Ok(run)
    }

    pub(crate) fn segment(
        ledger: &SqliteLedger,
        run: RunId,
        session: Option<&str>,
    ) -> Result<Run, LedgerError> {
        let opened = ledger.open_segment_blocking(NewSegment {
            run,
            segment: SegmentId::from_bytes(fresh()),
            principal: "alice".to_owned(),
            session_key: session.map(str::to_owned),
            opened: Timestamp::from_micros(1_795_225_534_000_042),
        })?;
        let now = Timestamp::from_micros(1_795_225_534_000_042);
        let mut state = RunState::new();
        for stored in ledger.read(|reader| reader.events(run, 0, usize::MAX))? {
            state.apply(&Event::from_line(&stored.line).unwrap());
        }
        Ok(Run { head: opened.head, now, state, append: Append::default(), named: BTreeMap::new() })
    }

    pub(crate) fn chain(&mut self, body: EventBody) {
        self.chain_with(body, &[]);
    }

    pub(crate) fn chain_with(&mut self, body: EventBody, payloads: &[(&str, &[u8])]) {
        let mut named = BTreeMap::new();
        for (name, bytes) in payloads {
            let mut salt = [0; 32];
            salt[..16].copy_from_slice(&fresh());
            let payload = StoredPayload::new(salt, "text/plain", bytes.to_vec()).unwrap();
            named.insert(
                (*name).to_owned(),
                PayloadRef {
                    commitment: payload.commitment(),
                    media_type: "text/plain".to_owned(),
                    bytes: bytes.len() as u64,
                },
            );
            self.append.payloads.push(payload);
        }
        let event = Event {
            v: EVENT_VERSION,
            seq: self.head.count + 1,
            t: self.now,
            actor: Actor::gate(),
            cause: None,
            payloads: named,
            body,
        };
        let line = ChainedLine::new(self.head, &event).unwrap();
        self.head = line.head();
        let named = event.payloads.values().next().map(|payload| (event.seq, payload.commitment));
        self.named.extend(named);
        self.state.apply(&event);
        self.append.events.push(line);
    }

    /// The payload of an event; zeros if it names none.
    pub(crate) fn commitment(&self, seq: u64) -> Commitment {
        self.named.get(&seq).copied().unwrap_or(Commitment::from_bytes([0; 32]))
    }

    /// An action that is proposed, judged and let go ahead; its outcome is left open.
    pub(crate) fn act(&mut self) -> ActionId {
        let action = ActionId::from_bytes(fresh());
        self.chain_with(
            EventBody::Proposed(Proposed {
                action,
                step: 1,
                tool: Some("write_file".to_owned()),
                server: None,
                side_effecting: true,
                likeness: None,
                cost_micros: 0,
                digest: digest(),
                directory: None,
                call: None,
                confidence: None,
            }),
            &[("arguments", b"{\"path\":\"notes.txt\"}")],
        );
        self.chain(EventBody::Verdict(VerdictRecord {
            action: Some(action),
            verdict: Verdict::Allow,
            policy_action: Verdict::Allow.policy_action(),
            escalation: Verdict::Allow.escalation(),
            rule: None,
            reason: None,
            findings: Vec::new(),
            bundle: digest(),
            policy: "strict".to_owned(),
            facts: Vec::new(),
            grant: None,
            marks: Vec::new(),
        }));
        self.chain(EventBody::Enforcement {
            action: Some(action),
            enforced: Enforced::Executed,
            call: None,
            contained: None,
        });
        action
    }

    pub(crate) fn outcome(&mut self, action: ActionId) {
        self.chain(EventBody::Outcome { action, status: OutcomeStatus::Ok });
    }

    pub(crate) fn close(&mut self) {
        let count = self.head.count + 1;
        self.chain(EventBody::RunClosed { state: ClosedState::Closed, count, successor: None });
    }

    /// Takes what was chained since the last time.
    pub(crate) fn take(&mut self) -> Append {
        Append { progress: self.state.progress(), ..std::mem::take(&mut self.append) }
    }

    pub(crate) fn commit(&mut self, ledger: &SqliteLedger) -> Result<Head, LedgerError> {
        ledger.append_blocking(self.take())
    }
}

/// Exports a run and verifies it against the store's own trust line.
pub(crate) fn verified(folder: &Path, run: RunId) -> Report {
    let reader = SqliteReader::open(folder).unwrap();
    let mut text = Vec::new();
    let summary = reader.export_run(run, &mut text, ExportOptions { payloads: true }).unwrap();
    let trust = Trust::parse(&reader.trust_text(&[run]).unwrap()).unwrap();
    let report = verify(&*text, Some(&trust)).unwrap();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!(report.head, summary.head);
    report
}

/// A store as version 1 wrote it, with the rows of a store of today.
pub(crate) fn version_1(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.join("writers")).unwrap();
    let connection = rusqlite::Connection::open(to.join("ledger.db")).unwrap();
    connection.execute_batch(VERSION_1).unwrap();
    connection.execute("ATTACH ?1 AS today", [from.join("ledger.db").to_str().unwrap()]).unwrap();
    for table in ["meta", "runs", "segments", "events", "payloads"] {
        connection.execute(&format!("INSERT INTO main.{table} SELECT * FROM today.{table}"), []).unwrap();
    }
    connection.execute("DELETE FROM main.meta WHERE key = 'taint key'", []).unwrap();
    let detail = "json_object('tool', tool, 'policy', policy, 'proposed', proposed, 'note', note, 'message', 'old words')";
    connection
        .execute(
            &format!(
                "INSERT INTO main.approvals SELECT approval, run, action, digest, principal, state, scope, requested,
                     decided, decided_by, {detail} FROM today.approvals"
            ),
            [],
        )
        .unwrap();
    connection.execute_batch("PRAGMA main.journal_mode = wal").unwrap();
}
