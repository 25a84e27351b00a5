//! Witnesses that answer, lie, die and know better; what the log stores and publishes of it.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use portcullis_ledger::log::{
    Ask, CONFIRM_EVERY, COSIGN_AGAIN_EVERY, Cosigner, Log, LogError, LogPlaces, LogReader, WitnessAnswer,
    WitnessNews, verifier_key,
};
use portcullis_proof::Status;
use portcullis_proof::log::witness::answer;
use portcullis_proof::log::{Checkpoint, KeyKind, NoteSigner, Policy, PolicyError, TreeHead, VerifierKey};

use crate::log::{Place, closed, judged};
use crate::sample::{Run, open};

/// A witness as the specification has it.
struct Witness {
    signer: NoteSigner,
    logs: Vec<VerifierKey>,
    seen: Option<TreeHead>,
    time: u64,
}

impl Witness {
    fn new(seed: u8, log: &VerifierKey) -> Witness {
        let signer = NoteSigner::from_seed(&format!("w{seed}"), KeyKind::Cosignature, &[seed; 32]).unwrap();
        Witness { signer, logs: vec![log.clone()], seen: None, time: 1_800_000_000 }
    }

    fn take(&mut self, body: &str) -> WitnessAnswer {
        self.time += 1;
        let (status, body) = match answer(body.as_bytes(), &self.logs, |_| self.seen) {
            Ok(request) => {
                self.seen = Some(request.checkpoint.head());
                (200, self.signer.sign(request.note.text(), self.time).unwrap())
            }
            Err(refusal) => (refusal.status(), refusal.body()),
        };
        WitnessAnswer::Answered { status, body: body.into_bytes() }
    }
}

/// The witnesses of a log, by address; one that is not here is dead.
struct World {
    place: Place,
    alive: BTreeMap<String, Witness>,
    cosigner: Cosigner,
    now: Instant,
    asked: usize,
}

impl World {
    /// A log with witnesses 1 to `count`, and this quorum.
    fn new(count: u8, quorum: &str) -> (World, Log) {
        let place = Place::new();
        let _ledger = open(&place.ledger());
        let log = Log::open(&place.places()).unwrap();
        let key = log.verifier().clone();
        let mut text = String::new();
        let mut alive = BTreeMap::new();
        for seed in 1..=count {
            let witness = Witness::new(seed, &key);
            text.push_str(&format!("witness w{seed} {} http://w{seed}\n", witness.signer.verifier()));
            alive.insert(format!("http://w{seed}"), witness);
        }
        text.push_str(quorum);
        fs::write(place.places().witnesses(), text).unwrap();
        let (cosigner, now) = (Cosigner::new(), Instant::now());
        (World { place, alive, cosigner, now, asked: 0 }, log)
    }

    fn round(&mut self, log: &mut Log) -> Result<Vec<WitnessNews>, LogError> {
        let (alive, asked) = (&mut self.alive, &mut self.asked);
        self.cosigner.round(log, self.now, |asks: Vec<Ask>| {
            *asked += asks.len();
            let dead = || WitnessAnswer::Unreachable("connection refused".to_owned());
            asks.iter().map(|ask| alive.get_mut(&ask.url).map_or_else(dead, |w| w.take(&ask.body))).collect()
        })
    }

    fn policy(&self, quorum: &str) -> Policy {
        let text = fs::read_to_string(self.place.places().witnesses()).unwrap();
        let witnesses: String =
            text.lines().filter(|line| line.starts_with("witness")).map(|line| format!("{line}\n")).collect();
        let key = verifier_key(&self.place.places()).unwrap();
        Policy::parse(format!("log {key}\n{witnesses}{quorum}").as_bytes()).unwrap()
    }

    /// Who cosigned what is published, as a reader of this quorum sees it.
    fn published(&self, quorum: &str) -> Result<(u64, usize), PolicyError> {
        let (note, _) = self.place.places().published().unwrap().unwrap();
        let (note, _) = Checkpoint::from_note(note.as_bytes()).unwrap();
        let endorsed = self.policy(quorum).check(&note)?;
        Ok((endorsed.checkpoint.size(), endorsed.cosigned.len()))
    }
}

/// The log again, which this process has just let go of. A child that another test starts at that moment has the lock
/// until it has become another program.
fn reopened(places: &LogPlaces) -> Log {
    for _ in 0..500 {
        match Log::open(places) {
            Err(LogError::Busy { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("another process has the log");
}

const BOTH: &str = "group both all w1 w2\nquorum both\n";

#[test]
fn what_witnesses_sign_is_published_and_handed_out() {
    let (mut world, mut log) = World::new(2, BOTH);
    let ledger = open(&world.place.ledger());
    let run = closed(&ledger);
    log.round().unwrap();
    assert!(matches!(world.published(BOTH), Err(PolicyError::Quorum { .. })));
    let places = world.place.places();
    let reader = LogReader::open(&places).unwrap();
    assert_eq!(reader.evidence(run, &[]).unwrap(), [], "no quorum has seen it yet");
    let news = world.round(&mut log).unwrap();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news.iter().all(|news| news.failure.is_none()));
    assert_eq!(world.published(BOTH).unwrap(), (3, 2));
    assert_eq!(reader.status().unwrap().witnessed, Some(3));
    let policy = String::from_utf8(world.policy(BOTH).to_bytes()).unwrap();
    let report = judged(&places, run, &policy);
    assert_eq!(report.status, Status::Valid, "a quorum saw it: nothing has to be remembered; {report:?}");

    // The tree does not grow: nobody is asked before it is time, and then all are.
    let asked = world.asked;
    assert_eq!(world.round(&mut log).unwrap(), []);
    assert_eq!(world.asked, asked);
    world.now += COSIGN_AGAIN_EVERY;
    assert_eq!(world.round(&mut log).unwrap(), []);
    assert_eq!(world.asked, asked + 2);
    let (note, _) = reader.checkpoint().unwrap();
    assert!(note.contains("— w1 ") && note.contains("— w2 "), "{note}");
    assert_eq!(fs::read_to_string(places.checkpoint()).unwrap(), note);

    // It grows: the size that they saw is known, so each is asked once.
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    assert_eq!(world.asked, asked + 4);
    assert_eq!(world.published(BOTH).unwrap(), (5, 2));
    assert_eq!(judged(&places, run, &policy).status, Status::Valid);
}

#[test]
fn a_dead_witness_costs_its_cosignature_and_is_told_once() {
    let (mut world, mut log) = World::new(2, BOTH);
    let ledger = open(&world.place.ledger());
    let run = closed(&ledger);
    let dead = world.alive.remove("http://w2").unwrap();
    log.round().unwrap();
    let news = world.round(&mut log).unwrap();
    let failures: Vec<_> = news.iter().filter_map(|news| news.failure.as_deref()).collect();
    assert_eq!(failures, ["no answer: connection refused"]);
    assert_eq!(world.published("quorum w1\n").unwrap(), (3, 1), "what there is, is published");
    let reader = LogReader::open(&world.place.places()).unwrap();
    assert_eq!(reader.status().unwrap().witnessed, None, "and no quorum is claimed");
    assert!(!reader.is_settled(run, &[]).unwrap());
    let asked = world.asked;
    assert_eq!(world.round(&mut log).unwrap(), [], "told once");
    assert_eq!(world.asked, asked, "and left alone for a while");
    let mut waits = Vec::new();
    for _ in 0..2_000 {
        world.now += Duration::from_secs(5);
        let asked = world.asked;
        assert_eq!(world.round(&mut log).unwrap(), []);
        if world.asked > asked {
            waits.push(world.now);
        }
    }
    // The living one is asked every ten minutes for the sake of its time, and so is the dead one in the end.
    assert!(waits.len() < 2 * 10_000 / 600 + 10, "{}", waits.len());
    world.alive.insert("http://w2".to_owned(), dead);
    world.now += COSIGN_AGAIN_EVERY;
    let news = world.round(&mut log).unwrap();
    assert_eq!(news, [WitnessNews { witness: "w2".to_owned(), failure: None }]);
    assert_eq!(world.published(BOTH).unwrap(), (3, 2));
    assert!(reader.is_settled(run, &[]).unwrap());
}

#[test]
fn a_witness_with_an_old_state_is_led_on_from_there() {
    let (mut world, mut log) = World::new(1, "quorum w1\n");
    let ledger = open(&world.place.ledger());
    log.round().unwrap();
    world.round(&mut log).unwrap();
    let old = world.alive["http://w1"].seen;
    for _ in 0..3 {
        closed(&ledger);
        log.round().unwrap();
        world.round(&mut log).unwrap();
    }
    world.alive.get_mut("http://w1").unwrap().seen = old;
    closed(&ledger);
    log.round().unwrap();
    assert_eq!(world.round(&mut log).unwrap(), []);
    assert_eq!(world.published("quorum w1\n").unwrap(), (9, 1));
    // A log that does not know what its witness saw finds out.
    world.cosigner = Cosigner::new();
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    assert_eq!(world.published("quorum w1\n").unwrap(), (11, 1));
}

#[test]
fn a_witness_that_saw_more_stops_a_restored_log_before_it_signs() {
    let (mut world, mut log) = World::new(1, "quorum none\n");
    let ledger = open(&world.place.ledger());
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    drop(log);
    let places = world.place.places();
    let saved = fs::read(places.database_file()).unwrap();
    let checkpoint = fs::read(places.checkpoint()).unwrap();
    let mut log = reopened(&places);
    world.round(&mut log).unwrap();
    let mut open_run = Run::start(&ledger);
    let action = open_run.act();
    open_run.commit(&ledger).unwrap();
    log.round().unwrap();
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    drop(log);

    // The state folder comes back from a backup: database and published tree alike.
    for ending in ["-wal", "-shm"] {
        let mut path = places.database_file().into_os_string();
        path.push(ending);
        let _there = fs::remove_file(path);
    }
    fs::write(places.database_file(), saved).unwrap();
    fs::write(places.checkpoint(), &checkpoint).unwrap();
    let mut log = reopened(&places);
    world.cosigner = Cosigner::new();
    let error = world.round(&mut log).unwrap_err();
    let expected = LogError::RolledBack { known: 3, seen: 6, seen_by: "the witness `w1`".to_owned() };
    assert_eq!(error, expected);
    // Not even when the witness goes away does it sign.
    let witness = world.alive.remove("http://w1").unwrap();
    assert_eq!(world.round(&mut log).unwrap_err(), expected);
    assert_eq!(fs::read(places.checkpoint()).unwrap(), checkpoint);
    world.alive.insert("http://w1".to_owned(), witness);

    open_run.outcome(action);
    open_run.close();
    open_run.commit(&ledger).unwrap();
    assert!(matches!(log.round(), Err(LogError::Unconfirmed(_))));
    // Its owner takes the witness away and has it sign all the same, past what the witness saw: the witness says that
    // this is another history.
    let policy = fs::read(places.witnesses()).unwrap();
    fs::remove_file(places.witnesses()).unwrap();
    world.round(&mut log).unwrap();
    log.round().unwrap();
    fs::write(places.witnesses(), &policy).unwrap();
    let news = world.round(&mut log).unwrap();
    let [WitnessNews { failure: Some(failure), .. }] = news.as_slice() else { panic!("{news:?}") };
    assert!(failure.starts_with("it saw a different history of this log (422)"), "{failure}");
    assert!(world.published("quorum w1\n").is_err());

    // The next process does not go on from there.
    drop(log);
    let mut log = reopened(&places);
    world.cosigner = Cosigner::new();
    world.round(&mut log).unwrap();
    let Err(LogError::Unconfirmed(wait)) = log.round() else { panic!("it signs") };
    assert!(wait.why.starts_with("witness `w1`: it saw a different history of this log (422)"), "{wait}");
    assert!(wait.contradicted);
    let status = || LogReader::open(&places).unwrap().status().unwrap();
    assert_eq!(status().waits, Some(wait));
    // It can be ended, and nothing is signed for that.
    let before = fs::read(places.checkpoint()).unwrap();
    log.freeze_as_it_is("forked").unwrap();
    assert_eq!(status().frozen.as_deref(), Some("forked"));
    assert!(matches!(log.round(), Err(LogError::Frozen { .. })));
    assert_eq!(fs::read(places.checkpoint()).unwrap(), before);
}

/// The rounds that a log is asked for until it signs, by which witnesses are alive in each.
fn confirmed_by(count: u8, quorum: &str, alive: &[&[&str]]) -> Vec<bool> {
    let (mut world, mut log) = World::new(count, quorum);
    let ledger = open(&world.place.ledger());
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    drop(log);
    let places = world.place.places();
    let published = fs::read(places.checkpoint()).unwrap();
    let mut log = reopened(&places);
    world.cosigner = Cosigner::new();
    closed(&ledger);
    let mut all = std::mem::take(&mut world.alive);
    alive
        .iter()
        .map(|names| {
            let here = |url: &String| names.iter().any(|name| url.ends_with(name));
            world.alive = all.extract_if(.., |url, _| here(url)).collect();
            world.now += CONFIRM_EVERY;
            world.round(&mut log).unwrap();
            all.append(&mut world.alive);
            let status = LogReader::open(&places).unwrap().status().unwrap();
            match log.round() {
                Ok(round) => {
                    assert_eq!((round.size, &status.waits), (5, &None));
                    true
                }
                Err(LogError::Unconfirmed(wait)) => {
                    assert_eq!(status.waits, Some(wait), "as others see it");
                    assert_eq!(status.size, 3);
                    let text =
                        |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().take(3).collect::<String>();
                    assert_eq!(text(&fs::read(places.checkpoint()).unwrap()), text(&published));
                    false
                }
                Err(error) => panic!("{error}"),
            }
        })
        .collect()
}

#[test]
fn a_process_signs_once_as_many_have_confirmed_as_no_quorum_can_do_without() {
    let two_of_three = "group two 2 w1 w2 w3\nquorum two\n";
    for (count, quorum, alive, signs) in [
        (1, "quorum w1\n", [&[][..], &["w1"]], [false, true]),
        (1, "quorum none\n", [&[], &["w1"]], [false, true]),
        // Nobody's word is no word; but one is enough where the policy asks for nobody, or for any.
        (2, "quorum none\n", [&[], &["w2"]], [false, true]),
        (2, "group one any w1 w2\nquorum one\n", [&[], &["w2"]], [false, true]),
        // Every quorum has w2 in it.
        (2, BOTH, [&[], &["w2"]], [false, true]),
        // A witness that no quorum needs does not speak for those that it needs.
        (2, "quorum w1\n", [&["w2"], &["w1"]], [false, true]),
        // Without w1, the two others could have seen more.
        (3, two_of_three, [&["w1"], &["w3"]], [false, true]),
        (3, two_of_three, [&["w1"], &[]], [false, false]),
        (3, two_of_three, [&["w1", "w2"], &[]], [true, true]),
    ] {
        assert_eq!(confirmed_by(count, quorum, &alive), signs, "{quorum} {alive:?}");
    }
}

#[test]
fn a_log_of_this_process_waits_for_nobody_and_a_foreign_hand_makes_it_wait() {
    let (mut world, mut log) = World::new(1, "quorum w1\n");
    let ledger = open(&world.place.ledger());
    let places = world.place.places();
    assert_eq!(log.waits(), None, "its key is new");
    log.round().unwrap();
    let witness = world.alive.remove("http://w1").unwrap();
    closed(&ledger);
    log.round().unwrap();
    world.round(&mut log).unwrap();
    let left = log.vouched().unwrap();
    drop(log);
    // Opened again by the same process, as it was left.
    let mut log = reopened(&places);
    assert!(log.waits().is_some() && log.vouched().is_none());
    log.resume(left).unwrap();
    assert_eq!(log.waits(), None);
    closed(&ledger);
    log.round().unwrap();
    drop(log);
    // Somebody else signed meanwhile.
    let mut log = reopened(&places);
    log.resume(left).unwrap();
    world.round(&mut log).unwrap();
    let error = log.round().unwrap_err();
    assert!(error.to_string().contains("witness `w1`: no answer: connection refused"), "{error}");
    let frozen = log.freeze("the end").unwrap_err();
    assert!(matches!(frozen, LogError::Unconfirmed(_)), "{frozen}");
    assert!(matches!(log.rotate_writer("other"), Err(LogError::Unconfirmed(_))));
    let writers = LogReader::open(&places).unwrap().status().unwrap().writers;
    assert!(matches!(log.revoke(writers[0].key, "stolen"), Err(LogError::Unconfirmed(_))));
    assert_eq!(LogReader::open(&places).unwrap().status().unwrap().writers, writers);
    // It is asked again within seconds, not within minutes.
    world.alive.insert("http://w1".to_owned(), witness);
    world.now += CONFIRM_EVERY;
    world.round(&mut log).unwrap();
    log.round().unwrap();

    // What was cosigned before a restart says nothing after it, though the tree is the same.
    world.round(&mut log).unwrap();
    drop(log);
    let witness = world.alive.remove("http://w1").unwrap();
    let mut log = reopened(&places);
    world.round(&mut log).unwrap();
    assert!(log.waits().is_some());
    // Whoever takes the witnesses away goes on without.
    let policy = fs::read_to_string(places.witnesses()).unwrap();
    fs::remove_file(places.witnesses()).unwrap();
    assert_eq!(LogReader::open(&places).unwrap().status().unwrap().waits, None);
    world.round(&mut log).unwrap();
    assert_eq!(log.waits(), None);
    drop(log);
    // A policy that cannot be read is not one without witnesses.
    for (wrong, why) in [
        ("quorum some\n".to_owned(), "`some` is not a witness or group"),
        (policy.replace(" http://w1", ""), "no address"),
    ] {
        fs::write(places.witnesses(), wrong).unwrap();
        let mut log = reopened(&places);
        assert!(log.waits().is_some());
        assert!(matches!(world.round(&mut log), Err(LogError::WitnessPolicy { .. })));
        let waits = LogReader::open(&places).unwrap().status().unwrap().waits.unwrap();
        assert!(waits.why.contains(why), "{why} in {waits}");
        assert!(matches!(log.round(), Err(LogError::Unconfirmed(_))));
    }
    let mut log = reopened(&places);
    fs::write(places.witnesses(), policy).unwrap();
    world.alive.insert("http://w1".to_owned(), witness);
    world.round(&mut log).unwrap();
    log.round().unwrap();
}

#[test]
fn signatures_that_do_not_hold_are_neither_stored_nor_published() {
    let (mut world, mut log) = World::new(1, "quorum w1\n");
    log.round().unwrap();
    let places = world.place.places();
    let before = fs::read(places.checkpoint()).unwrap();
    let note = String::from_utf8(before.clone()).unwrap();
    let (text, _) = note.split_once("\n\n").unwrap();
    let other = NoteSigner::from_seed("w1", KeyKind::Cosignature, &[9; 32]).unwrap();
    let own = NoteSigner::from_seed("w1", KeyKind::Cosignature, &[1; 32]).unwrap();
    let lies: [(u16, Vec<u8>, &str); 9] = [
        (200, Vec::new(), "there is no signature"),
        (200, b"ok\n".to_vec(), "expected a signature"),
        (200, other.sign(&format!("{text}\n"), 1).unwrap().into_bytes(), "it was not signed by the key"),
        (200, own.sign("another text\n", 1).unwrap().into_bytes(), "does not hold"),
        (200, note.clone().into_bytes(), "expected a signature"),
        (409, b"many\n".to_vec(), "409 without a size"),
        (409, b"0\n".to_vec(), "accepts no proof from that size"),
        (500, b"out of\x1b[2J order".to_vec(), "it answers 500: out of\\u{1b}[2J order"),
        (301, Vec::new(), "it answers 301: "),
    ];
    for (status, body, expected) in lies {
        world.now += Duration::from_secs(3600);
        let lie = WitnessAnswer::Answered { status, body };
        let news = world.cosigner.round(&mut log, world.now, |asks| vec![lie.clone(); asks.len()]).unwrap();
        let [WitnessNews { failure: Some(failure), .. }] = news.as_slice() else { panic!("{news:?}") };
        assert!(failure.contains(expected), "{expected} in {failure}");
        assert_eq!(fs::read(places.checkpoint()).unwrap(), before);
    }
    // Fewer answers than questions are no answers.
    world.now += Duration::from_secs(3600);
    world.cosigner.round(&mut log, world.now, |_| Vec::new()).unwrap();
    assert_eq!(LogReader::open(&places).unwrap().status().unwrap().witnessed, None);
}

#[test]
fn a_policy_that_cannot_be_used_stops_the_log_and_says_why() {
    let (mut world, mut log) = World::new(1, "quorum w1\n");
    let path = world.place.places().witnesses();
    let good = fs::read_to_string(&path).unwrap();
    for (text, expected) in [
        (good.replace(" http://w1", ""), "the witness `w1` has no address"),
        ("quorum some\n".to_owned(), "line 1, byte 0: `some` is not a witness or group"),
        (format!("{good}admin x\n"), "line 3"),
        ("x".repeat(300 << 10), "more than 262144 bytes"),
    ] {
        fs::write(&path, text).unwrap();
        let error = world.round(&mut log).unwrap_err();
        assert!(matches!(error, LogError::WitnessPolicy { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{expected} in {error}");
    }
    // It is taken up when it is put right, and forgotten when it is taken away.
    fs::write(&path, good).unwrap();
    assert_eq!(world.round(&mut log).unwrap().len(), 1);
    fs::remove_file(&path).unwrap();
    let asked = world.asked;
    world.now += Duration::from_secs(3600);
    world.round(&mut log).unwrap();
    assert_eq!(world.asked, asked);
}
