//! The vectors of `specs/governance-pack.md`: whole packs, each with the answer that every checker must give.
//!
//! The record is that of `specs/vectors/run-chain/valid-closed.jsonl`, the log is made here with keys of known seeds, and
//! the reports are stand-ins: a checker reads none of them, and their wording may change. What is wrong with a pack and
//! what has to be found is stated by hand in [`cases`]. A change in a vector is a new version of the format;
//! `UPDATE_VECTORS=1` writes the files anew.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use portcullis_core::id::RunId;
use portcullis_governance::manifest::{FileHash, LineHash, LogHash, Manifest, ManifestHead, sha256, sign};
use portcullis_governance::zip::{self, Named};
use portcullis_governance::{FILES, PackCheck, check};
use portcullis_proof::export::SegmentState;
use portcullis_proof::log::leaf::{LeafSigner, SignedLeaf};
use portcullis_proof::log::proof::tlog_proof;
use portcullis_proof::log::tree::{NodeSource, prove_inclusion};
use portcullis_proof::log::{
    Checkpoint, CompactRange, KeyKind, Leaf, NoteSigner, RunHead, RunState, TreeHead, TrustPolicy, leaf_hash,
};
use portcullis_proof::{Digest, Hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const ORIGIN: &str = "portcullis/example";
const RECORD: &str = include_str!("../../../../specs/vectors/run-chain/valid-closed.jsonl");
const MANIFEST: &str = "evidence_manifest.json";
const NOTE: &str = "evidence_manifest.note";
/// Seeds of the keys: thirty-two times this byte.
const LOG: u8 = 1;
const WRITER: u8 = 0x20;
const STRANGER: u8 = 7;
/// The first link of the run's one segment, and the last.
const FIRST: &str = "7e925abb3fdc5b5cf4d31fa840fcfe817b455a59ccdc11136b02cc2dea763e46";
const LAST: &str = "268d45075d8c0f7623ac66e00306f416f91483a3b78bae4691ef4ea5d6f05c36";
/// The link before the last.
const NINTH: &str = "f3d79eccf4d27ce2748521d3db25219ede4f8f6fb4f05a29b2ab73dcfd5a3570";

/// A pack, what to believe, and the answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vector {
    file: String,
    /// What is believed; null for nothing.
    policy: Option<String>,
    says: String,
    status: String,
    exit_code: u8,
    /// Whether the writer of the run signed the manifest.
    signed: bool,
    /// The files that fail, in the order of their names.
    failed: Vec<Failed>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Failed {
    file: String,
    /// Part of what is found.
    found: String,
}

struct Case {
    vector: Vector,
    files: Vec<Named>,
}

fn hex(text: &str) -> Digest {
    serde_json::from_value(json!(text)).unwrap()
}

fn notes(name: &str, seed: u8) -> NoteSigner {
    NoteSigner::from_seed(name, KeyKind::Ed25519, &[seed; 32]).unwrap()
}

#[derive(Default)]
struct Nodes(HashMap<(u8, u64), Digest>);

impl NodeSource for Nodes {
    type Error = Infallible;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Infallible> {
        Ok(self.0[&(level, index)])
    }
}

fn head(state: RunState, count: u64, link: &str, previous: Option<Digest>) -> Leaf {
    let writer = LeafSigner::from_seed(&[WRITER; 32]).id();
    Leaf::Head(RunHead {
        origin: ORIGIN.to_owned(),
        run: Hex([1; 16]),
        segment: Hex([0x51; 16]),
        ordinal: 0,
        parent: None,
        writer,
        epoch: 0,
        run_no: 0,
        state,
        count,
        link: hex(link),
        bundle: Hex([0xb0; 32]),
        previous,
        signer: writer,
    })
}

/// A log of three leaves: the writer, the opening of the run and its end. Its files, and its tree.
fn log() -> (Vec<Named>, TreeHead) {
    let (admin, writer) = (LeafSigner::from_seed(&[LOG; 32]), LeafSigner::from_seed(&[WRITER; 32]));
    let enrolment = Leaf::Enrol {
        origin: ORIGIN.to_owned(),
        public: writer.public(),
        label: "the gate of the office".to_owned(),
        admin: admin.id(),
    };
    let opened = head(RunState::Open, 0, FIRST, None).sign(&writer).unwrap();
    let closed = head(RunState::Closed, 10, LAST, Some(opened.hash())).sign(&writer).unwrap();
    let leaves: [(&str, SignedLeaf); 3] =
        [("enrolment", enrolment.sign(&admin).unwrap()), ("open", opened), ("closed", closed)];
    let (mut nodes, mut range) = (Nodes::default(), CompactRange::new());
    for (_, leaf) in &leaves {
        range
            .push_with(leaf_hash(leaf.bytes()), |level, index, hash| {
                nodes.0.insert((level, index), hash);
            })
            .unwrap();
    }
    let checkpoint = Checkpoint::new(ORIGIN, range.head()).unwrap().sign(&[&notes(ORIGIN, LOG)]).unwrap();
    let files = leaves.iter().zip(0u64..).flat_map(|((name, leaf), index)| {
        let path = prove_inclusion(&nodes, index, 3).unwrap().unwrap();
        let named = |ending: &str| format!("log/{index:010}-{name}.{ending}");
        let proof = tlog_proof(None, index, &path, &checkpoint).into_bytes();
        [(named("leaf"), leaf.bytes().to_vec()), (named("tlog-proof"), proof)]
    });
    (files.collect(), range.head())
}

/// The lines of the audit log, each with the event that it tells of.
fn audit_lines() -> Vec<(u64, String)> {
    let row = |event: u64, step: u64, kind: &str, action: Option<&str>, reason: Option<&str>| {
        let line = json!({
            "run_id": "01010101-0101-0101-0101-010101010101", "step_number": step, "event_type": kind,
            "policy_action": action, "policy_reason": reason,
            "timestamp": format!("2026-11-21T01:02:{event:02}.000000Z"), "payload": {},
        });
        (event, line.to_string())
    };
    vec![
        row(1, 0, "RUN_OPENED", None, None),
        row(2, 0, "INPUT_RECEIVED", None, None),
        row(3, 1, "LLM_THINKING", Some("ALLOWED"), Some("nothing found")),
        row(6, 1, "TOOL_EXECUTED", Some("ALLOWED"), Some("nothing found")),
        row(7, 2, "LLM_THINKING", Some("DENIED"), Some("the tool is not allowed")),
        row(9, 2, "TOOL_BLOCKED", Some("DENIED"), Some("the tool is not allowed")),
        row(10, 2, "RUN_CLOSED", None, None),
    ]
}

/// The payloads of the record: those of inputs and proposals, and the others.
fn payloads() -> (Value, Value) {
    // An event has its link before it.
    let json = |line: &str| line.find('{').and_then(|at| line.split_at_checked(at)).unwrap().1.to_owned();
    let lines: Vec<Value> = RECORD.lines().map(|line| serde_json::from_str(&json(line)).unwrap()).collect();
    let bytes_of = |commitment: &Value| -> Vec<u8> {
        let record =
            lines.iter().find(|line| line["record"] == "payload" && line["commitment"] == *commitment);
        let record = record.unwrap();
        match record["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => {
                let digits: Vec<char> = record["hex"].as_str().unwrap().chars().collect();
                let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
                digits.chunks(2).map(byte).collect()
            }
        }
    };
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for event in lines.iter().filter(|line| line["seq"].is_u64()) {
        for (name, payload) in event["payloads"].as_object().unwrap() {
            let bytes = bytes_of(&payload["commitment"]);
            let row = json!({
                "event": event["seq"], "name": name, "media_type": payload["media_type"], "bytes": bytes.len(),
                "commitment": payload["commitment"], "sha256": sha256(&bytes),
            });
            let to = if event["kind"] == "input" || event["kind"] == "proposed" {
                &mut inputs
            } else {
                &mut outputs
            };
            to.push(row);
        }
    }
    (Value::from(inputs), Value::from(outputs))
}

/// The files of a pack without manifest and note.
fn artifacts() -> Vec<Named> {
    let lines: String = audit_lines().iter().map(|(_, line)| format!("{line}\n")).collect();
    let stand_in = |name: &str| match name {
        "audit_log.jsonl" => lines.clone().into_bytes(),
        "run.export" => RECORD.as_bytes().to_vec(),
        _ if name.ends_with(".json") => format!("{{\"stands_in_for\": \"{name}\"}}\n").into_bytes(),
        _ => format!("# {name}\n\nStands in for the report.\n").into_bytes(),
    };
    let files = FILES.into_iter().filter(|name| *name != MANIFEST && *name != NOTE);
    files.map(|name| (name.to_owned(), stand_in(name))).chain(log().0).collect()
}

fn manifest(files: &[Named], key: &NoteSigner) -> Manifest {
    let (inputs, outputs) = payloads();
    let tree = log().1;
    Manifest {
        format: "portcullis-evidence-manifest/v1".to_owned(),
        run: RunId::from_bytes([1; 16]),
        origin: ORIGIN.to_owned(),
        generated_at: serde_json::from_value(json!("2026-11-22T00:00:00.000000Z")).unwrap(),
        program: "vectors".to_owned(),
        key: key.verifier().to_string(),
        head: ManifestHead { count: 10, link: hex(LAST), state: SegmentState::Closed },
        policies: Vec::new(),
        inputs: serde_json::from_value(inputs).unwrap(),
        outputs: serde_json::from_value(outputs).unwrap(),
        knowledge: Vec::new(),
        plan: None,
        artifacts: files.iter().map(|(name, bytes)| FileHash::of(name, bytes)).collect(),
        audit_log: audit_lines()
            .iter()
            .map(|(event, line)| LineHash { event: *event, sha256: sha256(line.as_bytes()) })
            .collect(),
        log: Some(LogHash { size: tree.size, root: tree.root, leaves: 3, cosignatures: 0 }),
    }
}

/// The files with their manifest, signed.
fn signed(mut files: Vec<Named>, key: &NoteSigner, change: impl FnOnce(&mut Manifest)) -> Vec<Named> {
    let mut manifest = manifest(&files, key);
    change(&mut manifest);
    let bytes = [serde_json::to_vec_pretty(&manifest).unwrap(), b"\n".to_vec()].concat();
    let note = sign(&manifest, &bytes, key).unwrap();
    files.push((MANIFEST.to_owned(), bytes));
    files.push((NOTE.to_owned(), note.into_bytes()));
    files
}

fn valid() -> Vec<Named> {
    signed(artifacts(), &notes(ORIGIN, WRITER), |_| ())
}

/// The files with one of them changed; it has to be there.
fn with(mut files: Vec<Named>, name: &str, change: impl FnOnce(&str) -> String) -> Vec<Named> {
    let (_, bytes) = files.iter_mut().find(|(known, _)| known == name).unwrap();
    let before = String::from_utf8(bytes.clone()).unwrap();
    let after = change(&before);
    assert_ne!(before, after, "{name} is as it was");
    *bytes = after.into_bytes();
    files
}

fn without(files: Vec<Named>, gone: impl Fn(&str) -> bool) -> Vec<Named> {
    files.into_iter().filter(|(name, _)| !gone(name)).collect()
}

fn lines(text: &str, change: impl FnOnce(&mut Vec<&str>)) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    change(&mut lines);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The record without its last event, as of a run that goes on.
fn cut(record: &str) -> String {
    lines(record, |lines| lines.retain(|line| !line.contains("\"kind\":\"run-closed\"")))
        .replace("\"state\":\"closed\",\"count\":10,", "\"state\":\"open\",\"count\":9,")
        .replace(&format!("\"link\":\"{LAST}\""), &format!("\"link\":\"{NINTH}\""))
        .replace("\"events\":10", "\"events\":9")
}

fn case(name: &str, says: &str, files: Vec<Named>, answer: (&str, bool), failed: &[(&str, &str)]) -> Case {
    believing(name, Some("trust.policy"), says, files, answer, failed)
}

fn believing(
    name: &str,
    policy: Option<&str>,
    says: &str,
    files: Vec<Named>,
    (status, signed): (&str, bool),
    failed: &[(&str, &str)],
) -> Case {
    let exit_code = match status {
        "VALID" => 0,
        "INVALID" => 1,
        _ => 2,
    };
    let failed = failed
        .iter()
        .map(|(file, found)| Failed { file: (*file).to_owned(), found: (*found).to_owned() })
        .collect();
    let vector = Vector {
        file: format!("{name}.zip"),
        policy: policy.map(str::to_owned),
        says: says.to_owned(),
        status: status.to_owned(),
        exit_code,
        signed,
        failed,
    };
    Case { vector, files }
}

fn cases() -> Vec<Case> {
    [believed(), files_changed(), manifests(), records(), parts_missing()].into_iter().flatten().collect()
}

/// A nicer report than the run deserves.
fn nicer(files: Vec<Named>) -> Vec<Named> {
    with(files, "residual_risk_summary.md", |text| text.replace("Stands in", "None. Stands in"))
}

/// An event at another time.
fn altered(files: Vec<Named>) -> Vec<Named> {
    with(files, "run.export", |text| text.replace("01:02:04.0", "01:02:04.5"))
}

/// A sound pack, to readers who believe different things.
fn believed() -> Vec<Case> {
    vec![
        case("valid", "a closed run, in a tree that the reader remembers", valid(), ("VALID", true), &[]),
        believing("valid", None, "nothing is believed", valid(), ("INCOMPLETE", false), &[]),
        believing(
            "valid",
            Some("plain.policy"),
            "nobody but the log vouches for the tree",
            valid(),
            ("INCOMPLETE", true),
            &[],
        ),
        believing(
            "valid",
            Some("other.policy"),
            "the policy believes another log",
            valid(),
            ("INVALID", false),
            &[("log/0000000000-enrolment.tlog-proof", "unknown-log")],
        ),
    ]
}

/// Files that are not as the manifest has them.
fn files_changed() -> Vec<Case> {
    vec![
        case(
            "file-changed",
            "a report says something else",
            nicer(valid()),
            ("INVALID", true),
            &[("residual_risk_summary.md", "it has ")],
        ),
        case(
            "file-added",
            "a file that the manifest does not name",
            [valid(), vec![("notes.txt".to_owned(), b"all is well\n".to_vec())]].concat(),
            ("INVALID", true),
            &[("notes.txt", "the manifest does not name it")],
        ),
        case(
            "file-missing",
            "a file that the manifest names",
            without(valid(), |name| name == "controls.json"),
            ("INVALID", true),
            &[("controls.json", "it is missing")],
        ),
        case(
            "audit-line-deleted",
            "the second line of the audit log is gone",
            with(valid(), "audit_log.jsonl", |text| {
                lines(text, |lines| lines.retain(|line| !line.contains("INPUT_RECEIVED")))
            }),
            ("INVALID", true),
            &[("audit_log.jsonl", "line 2, event 2, is missing")],
        ),
        case(
            "audit-lines-swapped",
            "two lines of the audit log changed places",
            with(valid(), "audit_log.jsonl", |text| lines(text, |lines| lines.swap(3, 4))),
            ("INVALID", true),
            &[("audit_log.jsonl", "lines 4 and 5, events 6 and 7, are swapped")],
        ),
        case(
            "audit-line-changed",
            "a denial became a permission",
            with(valid(), "audit_log.jsonl", |text| text.replacen("DENIED", "ALLOWED", 1)),
            ("INVALID", true),
            &[("audit_log.jsonl", "line 5, event 7, was changed")],
        ),
        case(
            "hashes-reordered",
            "the hashes in the manifest stand in another order than was signed",
            with(valid(), MANIFEST, |text| {
                let mut manifest: Manifest = serde_json::from_str(text).unwrap();
                manifest.artifacts.swap(0, 1);
                serde_json::to_string_pretty(&manifest).unwrap() + "\n"
            }),
            ("INVALID", false),
            &[(MANIFEST, "it is not the manifest that the note signs")],
        ),
    ]
}

/// Manifests that somebody else signed, or for something else.
fn manifests() -> Vec<Case> {
    let writer = notes(ORIGIN, WRITER);
    let stranger = notes(ORIGIN, STRANGER);
    vec![
        case(
            "key-of-a-stranger",
            "a nicer report, and a manifest of it that somebody else signed under the name of the store",
            signed(nicer(artifacts()), &stranger, |_| ()),
            ("INCOMPLETE", false),
            &[],
        ),
        case(
            "key-claimed",
            "a stranger's signature under the key of the writer",
            signed(nicer(artifacts()), &stranger, |manifest| manifest.key = writer.verifier().to_string()),
            ("INVALID", false),
            &[(NOTE, "its signature does not hold")],
        ),
        case(
            "manifest-of-another-run",
            "the writer signed it, for another run that ended with another event",
            signed(artifacts(), &writer, |manifest| {
                manifest.run = RunId::from_bytes([2; 16]);
                manifest.head.link = Hex([2; 32]);
            }),
            ("INVALID", false),
            &[("run.export", "it is not the run of the manifest")],
        ),
        case(
            "manifest-of-another-end",
            "the writer signed it, for this run with another last event",
            signed(artifacts(), &writer, |manifest| manifest.head.link = Hex([2; 32])),
            ("INVALID", true),
            &[("run.export", "its head is not the one of the manifest")],
        ),
    ]
}

/// Records that were changed.
fn records() -> Vec<Case> {
    let writer = notes(ORIGIN, WRITER);
    vec![
        case(
            "event-altered",
            "an event of the record has another time",
            altered(valid()),
            ("INVALID", false),
            &[("run.export", "its SHA-256 is "), ("run.export", "event-altered at line 6")],
        ),
        case(
            "event-altered-and-signed",
            "the same, and the writer signed a manifest of it",
            signed(altered(artifacts()), &writer, |_| ()),
            ("INVALID", false),
            &[("run.export", "event-altered at line 6")],
        ),
        case(
            "head-not-in-log",
            "the record lacks its end and the writer signed that; the log has another end",
            signed(with(artifacts(), "run.export", cut), &writer, |manifest| {
                manifest.head = ManifestHead { count: 9, link: hex(NINTH), state: SegmentState::Open };
            }),
            ("INVALID", false),
            &[("log/0000000002-closed.leaf", "tail-missing")],
        ),
    ]
}

/// Packs that lack a part.
fn parts_missing() -> Vec<Case> {
    let writer = notes(ORIGIN, WRITER);
    vec![
        case(
            "log-left-out",
            "the writer signed a pack without what the log says",
            signed(without(artifacts(), |name| name.starts_with("log/")), &writer, |manifest| {
                manifest.log = None
            }),
            ("INCOMPLETE", false),
            &[],
        ),
        case(
            "leaf-missing",
            "the log's word on the end of the run is gone",
            without(valid(), |name| name.starts_with("log/0000000002")),
            ("INVALID", true),
            &[
                ("log/0000000002-closed.leaf", "it is missing"),
                ("log/0000000002-closed.tlog-proof", "it is missing"),
            ],
        ),
        case(
            "note-missing",
            "nobody signed",
            without(valid(), |name| name == NOTE),
            ("INVALID", false),
            &[(NOTE, "it is missing")],
        ),
        case(
            "manifest-missing",
            "there is nothing to check against",
            without(valid(), |name| name == MANIFEST),
            ("INVALID", false),
            &[(MANIFEST, "it is missing")],
        ),
        case(
            "format-unknown",
            "a manifest of a later version",
            signed(artifacts(), &writer, |manifest| manifest.format.push('0')),
            ("INVALID", false),
            &[(MANIFEST, "its format is ")],
        ),
    ]
}

fn policies() -> Vec<(&'static str, String)> {
    let plain = format!("log {}\nquorum none\n", notes(ORIGIN, LOG).verifier());
    let tree = log().1;
    let root = Checkpoint::new(ORIGIN, tree).unwrap().text().lines().nth(2).unwrap().to_owned();
    vec![
        ("trust.policy", format!("{plain}remember {ORIGIN} {} {root}\n", tree.size)),
        ("plain.policy", plain),
        ("other.policy", format!("log {}\nquorum none\n", notes("portcullis/other", STRANGER).verifier())),
    ]
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/packs")
}

fn unpacked(archive: &[u8]) -> Vec<Named> {
    let mut archive = ::zip::ZipArchive::new(std::io::Cursor::new(archive)).unwrap();
    (0..archive.len())
        .map(|number| {
            let mut file = archive.by_index(number).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (file.name().unwrap().into_owned(), bytes)
        })
        .collect()
}

fn answer(files: &[Named], policy: Option<&str>) -> PackCheck {
    let policy = policy.map(|name| TrustPolicy::parse(&fs::read(folder().join(name)).unwrap()).unwrap());
    check(files, None, policy.as_ref())
}

#[test]
fn every_pack_is_as_it_was_and_gets_its_answer() {
    let cases = cases();
    let vectors: Vec<&Vector> = cases.iter().map(|case| &case.vector).collect();
    let text = serde_json::to_string_pretty(&vectors).unwrap() + "\n";
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for (name, text) in policies() {
            fs::write(folder().join(name), text).unwrap();
        }
        for case in &cases {
            fs::write(folder().join(&case.vector.file), zip::write(&case.files).unwrap()).unwrap();
        }
        fs::write(folder().join("vectors.json"), &text).unwrap();
    }
    assert_eq!(fs::read_to_string(folder().join("vectors.json")).unwrap(), text);
    for (name, text) in policies() {
        assert_eq!(fs::read_to_string(folder().join(name)).unwrap(), text, "{name}");
    }
    let tampered = cases.iter().filter(|case| case.vector.file != "valid.zip").count();
    assert!(tampered >= 8, "{tampered}");
    for Case { vector, files } in &cases {
        // How well an archive is packed is no part of the format.
        assert_eq!(unpacked(&fs::read(folder().join(&vector.file)).unwrap()), *files, "{}", vector.file);
        let report = answer(files, vector.policy.as_deref());
        let failed: Vec<_> = report.failed().map(|file| (&file.file, &file.message)).collect();
        let said = format!("{}: {failed:#?}", vector.file);
        assert_eq!(json!(report.status), vector.status, "{said}");
        assert_eq!((report.exit_code(), report.signed), (vector.exit_code, vector.signed), "{said}");
        assert_eq!(failed.len(), vector.failed.len(), "{said}");
        for (Failed { file, found }, (failed, message)) in vector.failed.iter().zip(&failed) {
            assert!(file == *failed && message.contains(found), "{said}");
        }
    }
}
