//! Erasure: the bytes are in no file any more, the proofs hold, and the tombstones say what happened.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_core::event::{EventBody, Proposed, VerdictRecord};
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, Commitment, RunId};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{
    Erased, ExportOptions, LedgerError, OpenOptions, Refusal, Selection, SqliteEraser, SqliteLedger,
    SqliteReader, StoredPayload, Tombstone,
};
use portcullis_proof::{Report, Status};
use rusqlite::Connection;

use crate::sample::{Run, digest, fresh, open, verified, version_1};

/// All events of the samples carry this time.
const WRITTEN: i64 = 1_795_225_534_000_042;

fn tombstone(reason: &str) -> Tombstone {
    Tombstone {
        at: Timestamp::from_micros(WRITTEN + 1),
        by: "uid 1000".to_owned(),
        reason: Some(reason.to_owned()),
    }
}

fn of_run(run: RunId) -> Selection {
    Selection { run: Some(run), ..Selection::default() }
}

/// A closed run with an input of this text besides the arguments of an action.
fn spoken(ledger: &SqliteLedger, texts: &[&[u8]]) -> RunId {
    let mut run = Run::start(ledger);
    let action = run.act();
    run.outcome(action);
    for text in texts {
        run.chain_with(EventBody::Output {}, &[("text", text)]);
        // Each in a transaction of its own, so that pages are split and written more than once.
        run.commit(ledger).unwrap();
    }
    run.close();
    run.commit(ledger).unwrap();
    run.head.run
}

/// The files of the store in which the bytes stand.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&entry.path(), bytes));
        } else if fs::read(entry.path()).unwrap().windows(bytes.len()).any(|window| window == bytes) {
            found.push(entry.path());
        }
    }
    found
}

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join("ledger.db")).unwrap()
}

fn salts(folder: &Path) -> Vec<[u8; 32]> {
    let connection = database(folder);
    let mut statement = connection.prepare("SELECT salt FROM payloads").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn export(folder: &Path, run: RunId, payloads: bool) -> String {
    let mut text = Vec::new();
    SqliteReader::open(folder).unwrap().export_run(run, &mut text, ExportOptions { payloads }).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

fn counts(report: &Report) -> (Status, u64, u64, u64) {
    (report.status, report.payloads.verified, report.payloads.withheld, report.payloads.erased)
}

fn erase(folder: &Path, selection: &Selection) -> Result<Erased, LedgerError> {
    SqliteEraser::open(folder)?.erase(selection, &tombstone("request 17"))
}

#[test]
fn what_is_erased_is_in_no_file_and_every_proof_holds() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let ledger = open(store);
    let long = [b"long-begin ".as_slice(), &[b'x'; 300_000], b" long-end"].concat();
    let short: Vec<Vec<u8>> =
        (0..200).map(|n| format!("short-{n:03} {}", "y".repeat(n * 7)).into_bytes()).collect();
    let mut texts: Vec<&[u8]> = short.iter().map(Vec::as_slice).collect();
    texts.push(&long);
    let run = spoken(&ledger, &texts);
    let kept = spoken(&ledger, &[b"kept text"]);
    let trust = SqliteReader::open(store).unwrap().trust_text(&[run, kept]).unwrap();
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 202, 0, 0));
    let before = export(store, run, true);
    assert!(before.starts_with(r#"{"record":"export","format":"portcullis-export/v1""#));
    // The search finds what is there.
    let salts = salts(store);
    for bytes in [b"short-017".as_slice(), b"long-begin", b"long-end", &salts[0], &salts[100]] {
        assert_ne!(files_with(store, bytes), Vec::<PathBuf>::new());
    }
    // The daemon holds the store open meanwhile.
    let erased = erase(store, &of_run(run)).unwrap();
    assert_eq!((erased.payloads, erased.runs, erased.purged), (202, vec![run], true));
    for text in &texts {
        let text = text.get(..10).unwrap();
        assert_eq!(files_with(store, text), Vec::<PathBuf>::new(), "{}", String::from_utf8_lossy(text));
    }
    assert_eq!(files_with(store, b"long-end"), Vec::<PathBuf>::new());
    let left = self::salts(store);
    for salt in salts.iter().filter(|salt| !left.contains(salt)) {
        assert_eq!(files_with(store, salt), Vec::<PathBuf>::new());
    }
    assert_eq!((salts.len(), left.len()), (204, 2));
    // Head and chain are as they were, and the rest of the store.
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 0, 0, 202));
    assert_eq!(counts(&verified(store, kept)), (Status::Valid, 2, 0, 0));
    assert_eq!(SqliteReader::open(store).unwrap().trust_text(&[run, kept]).unwrap(), trust);
    let text = export(store, run, true);
    assert!(text.starts_with(r#"{"record":"export","format":"portcullis-export/v2""#));
    assert_eq!(text, export(store, run, false));
    let events = |export: &str| -> Vec<String> {
        export.lines().filter(|line| !line.starts_with('{')).map(str::to_owned).collect()
    };
    assert_eq!(events(&text), events(&before));
    let rows = ledger.read(|reader| reader.erasures(run)).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].payloads, rows[0].by.as_str(), rows[0].reason.as_deref()),
        (202, "uid 1000", Some("request 17"))
    );
    assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
    // The store goes on, and there is nothing more to erase.
    spoken(&ledger, &[b"later"]);
    assert_eq!(erase(store, &of_run(run)).unwrap().payloads, 0);
}

#[test]
fn payloads_are_chosen_by_event_name_commitment_text_principal_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let ledger = open(store);
    let run = spoken(&ledger, &[b"call 555-0100", br#"{"said":"\"quoted\" 555-0100"}"#, b"nothing"]);
    let other = spoken(&ledger, &[b"call 555-0100 too"]);
    drop(ledger);
    let rehearsed = |selection: Selection| {
        let erased = SqliteEraser::open(store).unwrap().rehearse(&selection).unwrap();
        assert!(!erased.purged);
        erased.payloads
    };
    let in_run = of_run(run);
    // Event 2 proposes, events 6 to 8 say something.
    assert_eq!(rehearsed(in_run.clone()), 4);
    assert_eq!(rehearsed(Selection { event: Some(6), ..in_run.clone() }), 1);
    assert_eq!(rehearsed(Selection { event: Some(3), ..in_run.clone() }), 0);
    assert_eq!(rehearsed(Selection { name: Some("text".to_owned()), ..in_run.clone() }), 3);
    assert_eq!(
        rehearsed(Selection { event: Some(6), name: Some("arguments".to_owned()), ..in_run.clone() }),
        0
    );
    let text = |text: &str| Selection { contains: Some(text.to_owned()), ..Selection::default() };
    assert_eq!(rehearsed(text("555-0100")), 3);
    assert_eq!(rehearsed(text("\"quoted\"")), 1);
    assert_eq!(rehearsed(Selection { run: Some(run), ..text("555-0100") }), 2);
    let of = |principal: &str| Selection { principal: Some(principal.to_owned()), ..Selection::default() };
    assert_eq!((rehearsed(of("alice")), rehearsed(of("bob"))), (6, 0));
    assert_eq!(rehearsed(Selection { principal: Some("bob".to_owned()), ..in_run.clone() }), 0);
    let before = |micros| Selection { before: Some(Timestamp::from_micros(micros)), ..Selection::default() };
    assert_eq!((rehearsed(before(WRITTEN)), rehearsed(before(WRITTEN + 1))), (0, 6));
    let commitment: [u8; 32] = database(store)
        .query_row("SELECT commitment FROM payloads WHERE bytes = CAST('nothing' AS BLOB)", [], |row| {
            row.get(0)
        })
        .unwrap();
    let only = Selection { commitment: Some(Commitment::from_bytes(commitment)), ..Selection::default() };
    assert_eq!(rehearsed(only.clone()), 1);
    // Nothing was done so far.
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 4, 0, 0));
    assert_eq!(erase(store, &only).unwrap().runs, [run]);
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 3, 0, 1));
    // What events themselves say stays, and is counted.
    let named = erase(store, &Selection { run: Some(other), ..text("write_file") }).unwrap();
    assert_eq!((named.payloads, named.lines_with_text), (0, 1));
    assert_eq!(erase(store, &text("555-0100")).unwrap().payloads, 3);
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 1, 0, 3));
    assert_eq!(counts(&verified(store, other)), (Status::Valid, 1, 0, 1));
    assert_eq!(files_with(store, b"555-0100"), Vec::<PathBuf>::new());
}

#[test]
fn a_selection_that_cannot_be_meant_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let refused = |selection: Selection, tombstone: Tombstone| {
        let result = SqliteEraser::open(folder.path()).unwrap().erase(&selection, &tombstone);
        assert!(
            matches!(result, Err(LedgerError::Refused(Refusal::Selection(_) | Refusal::RunUnknown(_)))),
            "{result:?}"
        );
    };
    refused(Selection::default(), tombstone(""));
    refused(Selection { name: Some("text".to_owned()), ..Selection::default() }, tombstone(""));
    let event = Selection { event: Some(1), contains: Some("text".to_owned()), ..Selection::default() };
    refused(event, tombstone(""));
    refused(Selection { contains: Some("ab".to_owned()), ..Selection::default() }, tombstone(""));
    refused(of_run(RunId::from_bytes([9; 16])), tombstone(""));
    let wide = Selection { principal: Some("alice".to_owned()), ..Selection::default() };
    refused(wide, tombstone(&"r".repeat(1_025)));
}

#[test]
fn a_run_in_progress_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let ledger = open(store);
    let done = spoken(&ledger, &[b"done"]);
    let mut run = Run::start(&ledger);
    run.chain_with(EventBody::Output {}, &[("text", b"open")]);
    run.commit(&ledger).unwrap();
    let id = run.head.run;
    assert_eq!(erase(store, &of_run(id)), Err(LedgerError::Refused(Refusal::RunInProgress(id))));
    let wide = Selection { principal: Some("alice".to_owned()), ..Selection::default() };
    let erased = erase(store, &wide).unwrap();
    assert_eq!((erased.runs, erased.in_progress), (vec![done], vec![id]));
    assert_eq!(counts(&verified(store, id)), (Status::Incomplete, 1, 0, 0));
    run.close();
    run.commit(&ledger).unwrap();
    assert_eq!(erase(store, &of_run(id)).unwrap().payloads, 1);
    assert_eq!(counts(&verified(store, id)), (Status::Valid, 0, 0, 1));
}

#[test]
fn a_reader_in_the_way_is_said_and_erasing_again_purges() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let ledger = open(store);
    let run = spoken(&ledger, &[b"held by a reader"]);
    let reader = database(store);
    reader.execute_batch("BEGIN; SELECT count(*) FROM events;").unwrap();
    let erased = erase(store, &of_run(run)).unwrap();
    assert_eq!((erased.payloads, erased.purged), (2, false));
    assert_ne!(files_with(store, b"held by a reader"), Vec::<PathBuf>::new());
    reader.execute_batch("COMMIT").unwrap();
    let again = erase(store, &of_run(run)).unwrap();
    assert_eq!((again.payloads, again.purged), (0, true));
    assert_eq!(files_with(store, b"held by a reader"), Vec::<PathBuf>::new());
    assert_eq!(counts(&verified(store, run)), (Status::Valid, 0, 0, 2));
}

/// A closed run with long arguments, findings that were made of them, and a key that comes last.
fn found_in_arguments(ledger: &SqliteLedger) -> RunId {
    let mut run = Run::start(ledger);
    let action = ActionId::from_bytes(fresh());
    let proposed = EventBody::Proposed(Proposed {
        action,
        step: 1,
        tool: None,
        server: None,
        side_effecting: true,
        likeness: None,
        cost_micros: 0,
        digest: digest(),
        directory: None,
        call: None,
        confidence: None,
    });
    // More than a step overwrites besides others.
    let long = [b"call 555-0100 ".as_slice(), &[b'.'; 2 << 20]].concat();
    run.chain_with(proposed, &[("arguments", &long)]);
    let verdict = EventBody::Verdict(VerdictRecord {
        action: Some(action),
        verdict: Verdict::Deny,
        policy_action: Verdict::Deny.policy_action(),
        escalation: Verdict::Deny.escalation(),
        rule: None,
        reason: None,
        findings: vec![Finding::new("test/number", Verdict::Deny, "a number")],
        bundle: digest(),
        policy: "strict".to_owned(),
        facts: Vec::new(),
        grant: None,
        marks: Vec::new(),
    });
    run.chain_with(verdict, &[("findings", b"a number of ten digits")]);
    run.chain_with(EventBody::Output {}, &[("digest-key", b"the key")]);
    run.close();
    run.commit(ledger).unwrap();
    run.head.run
}

#[test]
fn an_erasure_that_is_cut_short_purges_and_is_finished_by_the_same_selection() {
    let text = || Some("555-0100".to_owned());
    for place in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path();
        let run = found_in_arguments(&open(store));
        let direct = database(store);
        let commitment = || {
            let first = "SELECT commitment FROM payloads ORDER BY number LIMIT 1";
            Commitment::from_bytes(direct.query_row(first, [], |row| row.get(0)).unwrap())
        };
        let selection = match place {
            0 => Selection { run: Some(run), contains: text(), ..Selection::default() },
            1 => Selection { contains: text(), ..Selection::default() },
            _ => Selection { commitment: Some(commitment()), ..Selection::default() },
        };
        // After its first step, the run is taken up again.
        let trigger = "CREATE TRIGGER taken_up AFTER UPDATE ON payloads
                       BEGIN UPDATE segments SET state = 'open' WHERE run = new.run; END";
        direct.execute_batch(trigger).unwrap();
        match erase(store, &selection) {
            Ok(erased) => {
                assert_ne!(place, 0);
                assert_eq!((erased.payloads, erased.in_progress, erased.purged), (2, vec![run], true));
            }
            Err(error) => {
                assert_eq!(place, 0);
                let said = error.to_string();
                assert!(said.contains("2 payloads were erased before"), "{said}");
                let error_inside = Box::new(LedgerError::Refused(Refusal::RunInProgress(run)));
                let cut = LedgerError::CutShort { payloads: 2, purged: true, error: error_inside };
                assert_eq!(error, cut);
            }
        }
        // The key and what was made of the arguments, but not what they are found by.
        let none = Vec::<PathBuf>::new();
        for gone in [b"ten digits".as_slice(), b"the key"] {
            assert_eq!(files_with(store, gone), none);
        }
        assert_ne!(files_with(store, b"555-0100"), none);
        direct.execute_batch("DROP TRIGGER taken_up; UPDATE segments SET state = 'closed'").unwrap();
        let rest = erase(store, &selection).unwrap();
        assert_eq!((rest.payloads, rest.purged), (1, true));
        assert_eq!(files_with(store, b"555-0100"), none);
        assert_eq!(counts(&verified(store, run)), (Status::Valid, 0, 0, 3));
    }
}

#[test]
fn a_payload_that_was_changed_behind_the_ledgers_back_is_not_believed() {
    for change in
        ["bytes = CAST('[[\"path /\"]]' AS BLOB)", "media_type = 'text/html'", "salt = randomblob(32)"]
    {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path();
        let run = spoken(&open(store), &[b"as it was said"]);
        let reader = SqliteReader::open(store).unwrap();
        let commitment: [u8; 32] = database(store)
            .query_row("SELECT commitment FROM payloads ORDER BY number DESC LIMIT 1", [], |row| row.get(0))
            .unwrap();
        let commitment = Commitment::from_bytes(commitment);
        assert_eq!(reader.payload(run, commitment).unwrap().unwrap().bytes(), b"as it was said");
        assert_eq!(reader.integrity_check().unwrap().problems, Vec::<String>::new());
        let changed = format!("UPDATE payloads SET {change} WHERE commitment = ?1");
        assert_eq!(database(store).execute(&changed, [commitment.as_bytes()]).unwrap(), 1);
        let error = reader.payload(run, commitment).unwrap_err();
        assert!(matches!(error, LedgerError::PayloadAltered { .. }), "{error:?}");
        assert!(error.to_string().contains("restore a copy"), "{error}");
        let problem = format!("run {run}: payload {commitment} does not match its commitment");
        assert_eq!(reader.integrity_check().unwrap().problems, [problem]);
    }
}

#[test]
fn a_salt_of_zeros_is_refused() {
    let refused = StoredPayload::new([0; 32], "text/plain", b"text".to_vec()).unwrap_err();
    assert_eq!(refused, Refusal::SaltZero);
}

fn version(folder: &Path) -> i64 {
    database(folder).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_store_of_version_1_is_read_as_it_is_and_migrated_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let [today, written, erased] = ["today", "written", "erased"].map(|name| folder.path().join(name));
    let run = spoken(&open(&today), &[b"of the first version"]);
    for old in [&written, &erased] {
        version_1(&today, old);
        // Who only reads changes nothing.
        assert_eq!(counts(&verified(old, run)), (Status::Valid, 2, 0, 0));
        assert_eq!(SqliteReader::open(old).unwrap().erasures(run).unwrap(), []);
        assert_eq!(
            SqliteReader::open(old).unwrap().integrity_check().unwrap().problems,
            Vec::<String>::new()
        );
        assert_eq!(version(old), 1);
        assert_eq!(export(old, run, true), export(&today, run, true));
    }
    let ledger = SqliteLedger::open(&written, OpenOptions::default()).unwrap();
    assert_eq!(version(&written), 7);
    let next = spoken(&ledger, &[b"of the second"]);
    assert_eq!(counts(&verified(&written, next)), (Status::Valid, 2, 0, 0));
    assert_eq!(counts(&verified(&written, run)), (Status::Valid, 2, 0, 0));
    assert!(erase(&erased, &of_run(run)).unwrap().purged);
    assert_eq!(version(&erased), 7);
    assert_eq!(counts(&verified(&erased, run)), (Status::Valid, 0, 0, 2));
    assert_eq!(files_with(&erased, b"of the first version"), Vec::<PathBuf>::new());
    // Made anew or migrated, the tables are the same.
    let tables = |folder: &Path| -> Vec<String> {
        let connection = database(folder);
        let mut statement =
            connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(tables(&written), tables(&today));
    database(&today).pragma_update(None, "user_version", 8).unwrap();
    assert!(matches!(SqliteReader::open(&today), Err(LedgerError::NewerVersion { found: 8, known: 7, .. })));
}
