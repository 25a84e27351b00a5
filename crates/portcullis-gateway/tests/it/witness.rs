//! The witness over real HTTP, against logs that are honest, confused and malicious.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_gateway::monitor::ForkProof;
use portcullis_gateway::witness::{Witness, WitnessError, WitnessOptions};
use portcullis_proof::log::note::signature_lines;
use portcullis_proof::log::tree::prove_consistency;
use portcullis_proof::log::witness::add_checkpoint;
use portcullis_proof::log::{Checkpoint, KeyKind, Note, NoteSigner, Policy, VerifierKey};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::lying::{ORIGIN, Tree, honest, log_key, other_history, request, runtime};

struct Running {
    folder: tempfile::TempDir,
    key: VerifierKey,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
}

fn options(folder: &tempfile::TempDir) -> WitnessOptions {
    WitnessOptions {
        key: folder.path().join("w.key"),
        name: "auditor.example/w".to_owned(),
        logs: vec![log_key().verifier().clone()],
        state: folder.path().join("w.state"),
    }
}

impl Running {
    fn start() -> Running {
        Running::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(folder: tempfile::TempDir) -> Running {
        let witness = Witness::open(&options(&folder)).unwrap();
        let key = witness.verifier().clone();
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        runtime.spawn(Arc::new(witness).serve(listener, stopped));
        Running { folder, key, address, stop: Some(stop), runtime: Some(runtime) }
    }

    /// Stops it and hands over its folder.
    fn stop(mut self) -> tempfile::TempDir {
        self.stop.take().unwrap().send(()).unwrap();
        // Nothing of it lives on, its lock included.
        self.runtime.take().unwrap().shutdown_timeout(std::time::Duration::from_secs(5));
        self.folder
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("w.state")
    }

    fn ask(&self, body: &str) -> (u16, String, String) {
        request(self.address, "POST", "/add-checkpoint", body.as_bytes())
    }

    /// Asks as an honest log does, and checks the cosignature.
    fn cosigns(&self, old: u64, tree: &Tree) {
        let signed = tree.signed();
        let (status, _, body) = self.ask(&body(old, tree, &signed));
        assert_eq!(status, 200, "{body}");
        let lines = signature_lines(body.as_bytes()).unwrap();
        assert_eq!(lines.len(), 1);
        let note = format!("{signed}{}", lines[0].line());
        let note = Note::parse(note.as_bytes()).unwrap();
        let time = note.verify([&self.key]).unwrap()[0].time.unwrap();
        assert!(time > 1_700_000_000, "{time}");
        // What was signed is on the disk.
        assert!(fs::read_to_string(self.state()).unwrap().contains(&format!("\\n{}\\n", tree.size())));
    }

    fn refuses(&self, request: &str, status: u16, expected: &str) {
        let before = fs::read(self.state()).unwrap();
        let (found, head, body) = self.ask(request);
        assert_eq!(found, status, "{body}");
        assert!(body.contains(expected), "{expected} in {body}");
        assert_eq!(status == 409, head.contains("content-type: text/x.tlog.size"), "{head}");
        assert_eq!(fs::read(self.state()).unwrap(), before, "what is refused changes nothing");
    }
}

fn body(old: u64, tree: &Tree, signed: &str) -> String {
    let path = prove_consistency(tree, old, tree.size()).unwrap().unwrap();
    add_checkpoint(old, &path, signed)
}

#[test]
fn an_honest_log_is_cosigned_from_one_tree_to_the_next() {
    let witness = Running::start();
    let tree = honest(150);
    let mut old = 0;
    for size in [0, 1, 2, 7, 7, 255, 256, 301] {
        witness.cosigns(old, &tree.first(size));
        old = size;
    }
    // It goes on where it was when it comes back.
    let witness = Running::start_in(witness.stop());
    witness.refuses(&body(0, &tree, &tree.signed()), 409, "301\n");
    witness.cosigns(301, &tree);
}

#[test]
fn every_lie_has_its_status() {
    let witness = Running::start();
    let (tree, fork) = (honest(60), other_history(10, 60));
    let (seen, grown) = (tree.first(41), tree.first(101));
    let signed = grown.signed();
    witness.cosigns(0, &seen);
    let path = prove_consistency(&grown, 41, 101).unwrap().unwrap();
    let mut reordered = path.clone();
    reordered.reverse();
    let mut shortened = path.clone();
    shortened.pop();
    let other_log = NoteSigner::from_seed("portcullis/other", KeyKind::Ed25519, &[1; 32]).unwrap();
    let thief = NoteSigner::from_seed(ORIGIN, KeyKind::Ed25519, &[9; 32]).unwrap();
    let broken = signed.replacen("101", "102", 1);
    // A tree that is padded with copies of its last leaf.
    let mut padded = seen.clone();
    padded.leaves.extend(std::iter::repeat_n(seen.leaves[40].clone(), 60));
    padded.leaves[20] = b"changed".to_vec();
    let padding = padded.signed();
    for (request, status, expected) in [
        (String::new(), 400, "line 1"),
        ("old 41\n".to_owned(), 400, "line 2"),
        (format!("old 041\n\n{signed}"), 400, "leading zeros"),
        (add_checkpoint(41, &path, "no note"), 400, "newline"),
        (body(41, &grown, &grown.signed_by(&other_log)), 404, "does not watch the log `portcullis/other`"),
        (body(41, &grown, &grown.signed_by(&thief)), 403, "no trusted key signed"),
        (add_checkpoint(41, &path, &broken), 403, "does not hold"),
        (add_checkpoint(102, &[], &signed), 400, "past the size"),
        (body(0, &grown, &signed), 409, "41\n"),
        (body(40, &grown, &signed), 409, "41\n"),
        // Rollback: an old checkpoint, replayed.
        (body(7, &tree.first(7), &tree.first(7).signed()), 409, "41\n"),
        (add_checkpoint(41, &[], &tree.first(7).signed()), 400, "past the size"),
        // Forks: of the same size, and grown on.
        (add_checkpoint(41, &[], &fork.first(41).signed()), 422, "another root"),
        (body(41, &fork.first(101), &fork.first(101).signed()), 422, "another root of the first tree"),
        (body(41, &padded, &padding), 422, "another root"),
        (add_checkpoint(41, &reordered, &signed), 422, "another root"),
        (add_checkpoint(41, &shortened, &signed), 422, "these sizes ask for"),
        (add_checkpoint(41, &[], &signed), 422, "these sizes ask for"),
    ] {
        witness.refuses(&request, status, expected);
    }
    // The two trees of one size are kept, as a proof for everybody.
    let proof = fs::read(witness.folder.path().join("w.state.fork")).unwrap();
    let policy = format!("log {}\nquorum none\n", log_key().verifier());
    let fork = ForkProof::parse(&proof).unwrap().check(&Policy::parse(policy.as_bytes()).unwrap());
    assert!(fork.is_ok(), "{fork:?}");
    let (status, ..) = request(witness.address, "GET", "/add-checkpoint", b"");
    assert_eq!(status, 405);
    assert_eq!(request(witness.address, "POST", "/", b"").0, 404);
    assert_eq!(request(witness.address, "POST", "/add-checkpoint", &vec![b'x'; 300 << 10]).0, 413);
    // After all that it still takes the truth.
    witness.cosigns(41, &grown);
}

#[test]
fn of_requests_at_once_that_contradict_each_other_one_is_cosigned() {
    let witness = Running::start();
    let base = honest(10);
    witness.cosigns(0, &base);
    let old = base.size();
    let bodies: Vec<String> = (11..27)
        .map(|runs| {
            // Each goes on from the base in a way of its own.
            let mut tree = base.clone();
            tree.leaves.push(format!("history {runs}").into_bytes());
            body(old, &tree, &tree.signed())
        })
        .collect();
    let answers: Vec<(u16, String)> = std::thread::scope(|scope| {
        let ask = |body: &String| {
            let (status, _, answer) = witness.ask(body);
            (status, answer)
        };
        let threads: Vec<_> = bodies.iter().map(|body| scope.spawn(move || ask(body))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let cosigned = answers.iter().filter(|(status, _)| *status == 200).count();
    let told = answers.iter().filter(|answer| **answer == (409, format!("{}\n", old + 1))).count();
    assert_eq!((cosigned, told), (1, bodies.len() - 1), "{answers:?}");
}

#[test]
fn a_witness_that_forgot_does_not_start() {
    let witness = Running::start();
    witness.cosigns(0, &honest(3));
    let busy = Witness::open(&options(&witness.folder)).unwrap_err();
    assert!(busy.to_string().starts_with("another process has the state"), "{busy}");
    let folder = witness.stop();
    let options = options(&folder);
    let good = fs::read_to_string(&options.state).unwrap();

    // A log that is not watched any more is not forgotten.
    let other = NoteSigner::from_seed("portcullis/other", KeyKind::Ed25519, &[3; 32]).unwrap();
    let elsewhere = WitnessOptions { logs: vec![other.verifier().clone()], ..options.clone() };
    drop(Witness::open(&elsewhere).unwrap());
    assert_eq!(fs::read_to_string(&options.state).unwrap(), good);

    for wrong in [
        String::new(),
        "{}".to_owned(),
        good.replace("portcullis-witness/v1", "portcullis-witness/v2"),
        good.replace("\"checkpoints\"", "\"checkpoint\""),
        good.replace("\\n7\\n", "\\n6\\n"),
        good.replace("\"checkpoints\": [", &format!("\"checkpoints\": [{:?},", honest(2).signed())),
        good.replace("}", ", \"more\": 1}"),
        good.trim_end().trim_end_matches('}').to_owned(),
        "x".repeat(17 << 20),
    ] {
        fs::write(&options.state, &wrong).unwrap();
        let error = Witness::open(&options).unwrap_err().to_string();
        assert!(error.contains("cannot be read") && error.contains("restore the newest copy"), "{error}");
        assert_eq!(fs::read_to_string(&options.state).unwrap(), wrong, "and nothing is written over it");
    }
    fs::remove_file(&options.state).unwrap();
    let error = Witness::open(&options).unwrap_err();
    assert!(matches!(error, WitnessError::StateLost { .. }), "{error}");
    assert!(!options.state.exists());
    fs::write(&options.state, &good).unwrap();
    let key = fs::read(&options.key).unwrap();
    fs::remove_file(&options.key).unwrap();
    let error = Witness::open(&options).unwrap_err();
    assert!(matches!(error, WitnessError::KeyLost { .. }), "{error}");
    assert!(!options.key.exists());
    fs::write(&options.key, key).unwrap();
    let witness = Witness::open(&options).unwrap();
    assert_eq!(witness.add_checkpoint(body(0, &honest(4), &honest(4).signed()).as_bytes(), 1).body, "7\n");
    drop(witness);

    let renamed = WitnessOptions { name: "auditor.example/other".to_owned(), ..options.clone() };
    assert!(Witness::open(&renamed).unwrap_err().to_string().contains("not of `auditor.example/other`"));
    let wrong = WitnessOptions { name: "two words".to_owned(), ..options.clone() };
    assert!(matches!(Witness::open(&wrong), Err(WitnessError::Name(_))));
    let own = NoteSigner::from_seed("w", KeyKind::Cosignature, &[3; 32]).unwrap();
    let wrong = WitnessOptions { logs: vec![own.verifier().clone()], ..options };
    assert!(matches!(Witness::open(&wrong), Err(WitnessError::NotALog(_))));
}

#[test]
fn no_cosignature_leaves_that_is_not_durable() {
    let folder = tempfile::tempdir().unwrap();
    let witness = Witness::open(&options(&folder)).unwrap();
    let (small, large) = (honest(1), honest(2));
    assert_eq!(witness.add_checkpoint(body(0, &small, &small.signed()).as_bytes(), 1).status, 200);
    // The new state cannot be put: a folder stands where it is written.
    let blocked = folder.path().join(".w.state.new");
    fs::create_dir(&blocked).unwrap();
    let request = body(small.size(), &large, &large.signed());
    let answer = witness.add_checkpoint(request.as_bytes(), 2);
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(!answer.body.contains('—'), "{answer:?}");
    // Nothing is remembered of it, so the same request is good once there is room again.
    fs::remove_dir(&blocked).unwrap();
    assert_eq!(witness.add_checkpoint(request.as_bytes(), 3).status, 200);
}

#[test]
fn what_others_write_on_a_note_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let witness = Witness::open(&options(&folder)).unwrap();
    let tree = honest(1);
    let stranger = NoteSigner::from_seed("stranger", KeyKind::Ed25519, &[8; 32]).unwrap();
    let checkpoint = Checkpoint::new(ORIGIN, tree.head()).unwrap();
    let signed = checkpoint.sign(&[&stranger, &log_key()]).unwrap();
    assert_eq!(witness.add_checkpoint(body(0, &tree, &signed).as_bytes(), 1).status, 200);
    let state = fs::read_to_string(folder.path().join("w.state")).unwrap();
    assert!(state.contains(&format!("— {ORIGIN} ")) && !state.contains("stranger"), "{state}");
}
