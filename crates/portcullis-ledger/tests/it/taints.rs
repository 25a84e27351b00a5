//! The index of taints: bounded, never silently, and held against the events.

use std::path::Path;

use portcullis_core::aside::TAINT;
use portcullis_core::event::{Enforced, EventBody};
use portcullis_core::id::{ActionId, Digest};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::taint::{Marks, Taint, thing_digest};
use portcullis_ledger::{
    Refusal, SqliteLedger, SqliteReader, StoredTaints, TAINTS_OF_PRINCIPAL_MAX, TAINTS_OF_THING_MAX, TaintRow,
};

use crate::sample::{Run, fresh, open, version_1};

fn taints(folder: &Path) -> StoredTaints {
    SqliteReader::open(folder).unwrap().taints().unwrap()
}

fn problems(folder: &Path) -> Vec<String> {
    SqliteReader::open(folder).unwrap().integrity_check().unwrap().problems
}

fn taint(thing: &str, replaces: bool) -> Taint {
    let mut labels = LabelSet::default();
    labels.insert(Label::Tool("read_mail".to_owned()));
    Taint { thing: thing.to_owned(), labels, marks: Marks::new(vec![1, 2]), replaces }
}

/// Writes an event for each of these, in one commit.
fn write(run: &mut Run, ledger: &SqliteLedger, key: &Digest, taints: &[Taint]) {
    let mut rows = Vec::new();
    for taint in taints {
        let text = serde_json::to_vec(&[taint]).unwrap();
        let action = Some(ActionId::from_bytes(fresh()));
        let body =
            EventBody::Enforcement { action, enforced: Enforced::Executed, call: None, contained: None };
        run.chain_with(body, &[(TAINT, &text)]);
        rows.push((run.head.count, taint));
    }
    let mut append = run.take();
    append.taints = rows
        .into_iter()
        .map(|(seq, taint)| TaintRow {
            thing: thing_digest(key, &taint.thing),
            principal: "alice".to_owned(),
            seq,
            commitment: run.commitment(seq),
            labels: taint.labels.clone(),
            marks: taint.marks.clone(),
            replaces: taint.replaces,
        })
        .collect();
    ledger.append_blocking(append).unwrap();
}

#[test]
fn the_oldest_taints_of_a_principal_and_of_a_thing_are_forgotten_and_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let key = taints(folder.path()).key.unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    let often: Vec<Taint> = (0..=TAINTS_OF_THING_MAX).map(|_| taint("path /often", false)).collect();
    write(&mut run, &ledger, &key, &often);
    let stored = taints(folder.path());
    assert_eq!(stored.rows.len(), TAINTS_OF_THING_MAX);
    assert!(stored.forgotten.has(&thing_digest(&key, "path /often")));
    let many: Vec<Taint> =
        (0..TAINTS_OF_PRINCIPAL_MAX).map(|number| taint(&format!("path /{number}"), false)).collect();
    many.chunks(1_000).for_each(|part| write(&mut run, &ledger, &key, part));
    write(&mut run, &ledger, &key, &[taint("path /last", false)]);
    let stored = taints(folder.path());
    assert_eq!(stored.rows.len(), TAINTS_OF_PRINCIPAL_MAX);
    assert!(stored.forgotten.has(&thing_digest(&key, "path /0")));
    assert!(!stored.forgotten.has(&thing_digest(&key, "path /1")));
    assert_eq!(problems(folder.path()), Vec::<String>::new());
}

#[test]
fn a_thing_that_is_written_anew_has_one_row() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let key = taints(folder.path()).key.unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    write(
        &mut run,
        &ledger,
        &key,
        &[taint("path /a", false), taint("path /a", false), taint("path /b", false)],
    );
    assert_eq!(taints(folder.path()).rows.len(), 3);
    write(&mut run, &ledger, &key, &[taint("path /a", true)]);
    let stored = taints(folder.path());
    let rows: Vec<(bool, bool)> =
        stored.rows.iter().map(|row| (row.thing == thing_digest(&key, "path /a"), row.replaces)).collect();
    assert_eq!(rows, [(false, false), (true, true)]);
    assert_eq!(problems(folder.path()), Vec::<String>::new());
}

#[test]
fn rows_that_no_event_backs_and_events_without_a_row_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let key = taints(folder.path()).key.unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    write(&mut run, &ledger, &key, &[taint("path /a", false)]);
    assert_eq!(problems(folder.path()), Vec::<String>::new());
    let database = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    for change in ["labels = '[\"tool:other\"]'", "marks = NULL", "seq = 1", "thing = randomblob(32)"] {
        let kept: Vec<u8> = database.query_row("SELECT marks FROM taints", [], |row| row.get(0)).unwrap();
        let before: (Vec<u8>, String, i64) = database
            .query_row("SELECT thing, labels, seq FROM taints", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        database.execute(&format!("UPDATE taints SET {change}"), []).unwrap();
        let found = problems(folder.path());
        assert!(found.iter().any(|problem| problem.contains("indexed otherwise")), "{change}: {found:?}");
        let restore = "UPDATE taints SET thing = ?1, labels = ?2, seq = ?3, marks = ?4";
        database.execute(restore, rusqlite::params![before.0, before.1, before.2, kept]).unwrap();
    }
    database.execute("DELETE FROM taints", []).unwrap();
    let found = problems(folder.path());
    assert!(found.iter().any(|problem| problem.contains("missing from the index")), "{found:?}");
}

#[test]
fn a_taint_without_a_payload_that_says_so_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    let mut append = run.take();
    let commitment = run.commitment(1);
    let row = |seq: u64| TaintRow {
        thing: Digest::from_bytes([0; 32]),
        principal: "alice".to_owned(),
        seq,
        commitment,
        labels: LabelSet::default(),
        marks: None,
        replaces: false,
    };
    append.taints = vec![row(9)];
    let refused = ledger.append_blocking(append).unwrap_err();
    assert!(refused.to_string().contains(&Refusal::PayloadUnnamed(commitment).to_string()), "{refused}");
}

#[test]
fn a_store_of_an_earlier_release_has_no_taints_until_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let [today, old] = ["today", "old"].map(|name| folder.path().join(name));
    let ledger = open(&today);
    Run::start(&ledger).commit(&ledger).unwrap();
    version_1(&today, &old);
    let stored = taints(&old);
    assert!(stored.key.is_none() && stored.rows.is_empty());
    drop(SqliteLedger::open(&old, portcullis_ledger::OpenOptions::default()).unwrap());
    assert!(taints(&old).key.is_some());
}
