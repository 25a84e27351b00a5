//! Freezes: kept with their history, checked, copied, and missing in stores of earlier releases.

use std::path::Path;

use portcullis_core::event::{Control, EventBody};
use portcullis_core::freeze::{Freeze, FreezeOrder, FreezeScope, Frozen};
use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::log::LogPlaces;
use portcullis_ledger::{FreezeFilter, OpenOptions, RunFilter, SqliteLedger, SqliteReader, copy_store};

use crate::sample::{Run, open};

fn order(by: &str, at: i64) -> FreezeOrder {
    FreezeOrder { at: Timestamp::from_micros(at), by: by.to_owned(), note: Some(format!("by {by}")) }
}

fn frozen(scope: FreezeScope, by: &str, at: i64) -> Freeze {
    Freeze { scope, frozen: order(by, at), reads_released: None, released: None }
}

async fn put(ledger: &SqliteLedger, freezes: &[Freeze]) {
    ledger.put_freezes(freezes.to_vec()).await.unwrap();
}

fn listed(folder: &Path, filter: &FreezeFilter) -> Vec<Freeze> {
    SqliteReader::open(folder).unwrap().freezes(filter).unwrap()
}

fn problems(folder: &Path) -> Vec<String> {
    SqliteReader::open(folder).unwrap().integrity_check().unwrap().problems
}

#[tokio::test]
async fn a_freeze_is_kept_from_its_order_to_its_release_and_after() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunId::from_bytes([7; 16]);
    let ledger = open(folder.path());
    let all = frozen(FreezeScope::All, "ann", 10);
    let one = frozen(FreezeScope::Run(run), "bob", 20);
    put(&ledger, &[all.clone(), one.clone()]).await;
    assert_eq!(listed(folder.path(), &FreezeFilter::InForce), [all.clone(), one.clone()]);
    let reads = Freeze { reads_released: Some(order("bob", 30)), ..all.clone() };
    put(&ledger, std::slice::from_ref(&reads)).await;
    assert_eq!(listed(folder.path(), &FreezeFilter::InForce), [reads.clone(), one.clone()]);
    let ended = Freeze { released: Some(order("ann", 40)), ..reads };
    let again = frozen(FreezeScope::All, "ann", 40);
    put(&ledger, &[ended.clone(), again.clone()]).await;
    drop(ledger);
    assert_eq!(listed(folder.path(), &FreezeFilter::InForce), [one.clone(), again.clone()]);
    assert_eq!(listed(folder.path(), &FreezeFilter::Latest(2)), [again.clone(), one.clone()]);
    assert_eq!(listed(folder.path(), &FreezeFilter::Latest(9)).len(), 3);

    // A second freeze of a scope that is in force is a mistake of the writer, and writes nothing of the request.
    let ledger = open(folder.path());
    let twice =
        [frozen(FreezeScope::Run(run), "eve", 50), frozen(FreezeScope::Principal("ida".into()), "eve", 50)];
    assert!(ledger.put_freezes(twice.to_vec()).await.is_err());
    assert_eq!(listed(folder.path(), &FreezeFilter::Latest(9)).len(), 3);

    let last = |principal: &str, since| {
        let filter = FreezeFilter::LastReleaseOf {
            run,
            principal: principal.into(),
            since: Timestamp::from_micros(since),
        };
        listed(folder.path(), &filter)
    };
    assert_eq!(last("ida", 40), [ended]);
    assert_eq!(last("ida", 41), []);
    let of_ida = frozen(FreezeScope::Principal("ida".into()), "ann", 60);
    put(&ledger, &[Freeze { released: Some(order("bob", 70)), ..of_ida }]).await;
    assert_eq!((last("ida", 41).len(), last("otto", 41).len()), (1, 0));
    assert_eq!(problems(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_check_of_the_store_names_freezes_that_make_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    put(
        &ledger,
        &[
            frozen(FreezeScope::All, "ann", 10),
            frozen(FreezeScope::Run(RunId::from_bytes([7; 16])), "ann", 10),
        ],
    )
    .await;
    drop(ledger);
    let database = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    database
        .execute("UPDATE freezes SET released_at = 5, released_by = 'eve' WHERE scope = 'all'", [])
        .unwrap();
    database.execute("UPDATE freezes SET key = 'x' WHERE scope = 'run'", []).unwrap();
    drop(database);
    let problems = problems(folder.path());
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0], "freeze 1, of all runs, was released before it was made");
    assert!(problems[1].starts_with("freeze 2 cannot be read"), "{}", problems[1]);
}

#[tokio::test]
async fn a_copy_of_a_store_has_its_freezes() {
    let folder = tempfile::tempdir().unwrap();
    let [store, copy] = ["store", "copy"].map(|name| folder.path().join(name));
    let ledger = open(&store);
    let all = frozen(FreezeScope::All, "ann", 10);
    put(&ledger, std::slice::from_ref(&all)).await;
    copy_store(&LogPlaces::beside(&store), &LogPlaces::beside(&copy)).unwrap();
    assert_eq!(listed(&copy, &FreezeFilter::InForce), [all]);
}

#[tokio::test]
async fn a_store_of_version_4_is_read_as_it_is_and_has_freezes_once_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    run.act();
    run.commit(&ledger).unwrap();
    drop(ledger);
    let database = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    let earlier =
        "DROP TABLE facts; DROP TABLE freezes; ALTER TABLE summaries DROP COLUMN frozen; DROP TABLE taints;
        DROP TABLE forgotten_taints; DELETE FROM meta WHERE key = 'taint key'; DROP INDEX approvals_by_time;
        ALTER TABLE approvals DROP COLUMN rule; PRAGMA user_version = 4;";
    database.execute_batch(earlier).unwrap();
    drop(database);

    let runs = |folder: &Path| SqliteReader::open(folder).unwrap().runs(&RunFilter::default()).unwrap();
    assert_eq!(runs(folder.path())[0].progress.as_ref().unwrap().frozen, None);
    assert_eq!(listed(folder.path(), &FreezeFilter::InForce), []);
    assert_eq!(problems(folder.path()), Vec::<String>::new());

    let ledger = SqliteLedger::open(folder.path(), OpenOptions::default()).unwrap();
    put(&ledger, &[frozen(FreezeScope::All, "ann", 10)]).await;
    assert_eq!(listed(folder.path(), &FreezeFilter::InForce).len(), 1);
    let mut run = Run::start(&ledger);
    run.chain(EventBody::Control { control: Control::Freeze, note: None });
    run.commit(&ledger).unwrap();
    assert_eq!(runs(folder.path())[0].progress.as_ref().unwrap().frozen, Some(Frozen::Everything));
    assert_eq!(problems(folder.path()), Vec::<String>::new());
}
