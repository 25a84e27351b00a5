//! An export with its log: the chain of the one is held against the other.

use portcullis_proof::export::{SegmentRecord, SegmentState, read_record};
use portcullis_proof::log::{File, Leaf, LogAttack, RunHead, RunState, TrustPolicy};
use portcullis_proof::{
    Attack, Digest, Head, Hex, Id, LoggedError, LoggedReport, Parent, Status, Trust, verify, verify_files,
    verify_logged,
};

use super::world::{Log, Scene, WRITER, enrol, leaf_key, policy, policy_alone};
use crate::sample::{Builder, Export, ORIGIN, action, closed, resumed};

/// A segment as its record states it, and where it ends.
struct Segment {
    segment: Id,
    ordinal: u64,
    parent: Option<Parent>,
    start: Head,
    end: u64,
}

fn segments(export: &Export) -> Vec<Segment> {
    let lines = export.lines();
    let records = lines.iter().filter(|line| line.starts_with(b"{\"record\":\"segment\""));
    let records: Vec<SegmentRecord<'_>> =
        records.map(|line| read_record(line.strip_suffix(b"\n").unwrap()).unwrap()).collect();
    let last = export.heads.last().unwrap().count;
    let ends = records.iter().skip(1).map(|record| record.after).chain([last]);
    records
        .iter()
        .zip(ends)
        .map(|(record, end)| Segment {
            segment: record.segment,
            ordinal: record.ordinal,
            parent: record.parent,
            start: Head { count: record.after, link: record.link },
            end,
        })
        .collect()
}

/// Logs heads of an export, each given by segment, state and count, and proves them.
fn logged(export: &Export, heads: &[(usize, RunState, u64)]) -> Scene {
    let mut log = Log::default();
    let proven = add_heads(&mut log, export, heads);
    proven_scene(&log, &proven)
}

/// Logs the enrolment of a writer and heads of an export; name and index of each.
pub(super) fn add_heads(
    log: &mut Log,
    export: &Export,
    heads: &[(usize, RunState, u64)],
) -> Vec<(String, u64)> {
    let segments = segments(export);
    let mut proven = vec![("writer".to_owned(), log.add_signed(enrol(WRITER, 1), 1))];
    let writer = leaf_key(WRITER).id();
    for (number, (place, state, count)) in heads.iter().enumerate() {
        let segment = &segments[*place];
        let link = export.heads.iter().find(|head| head.count == *count && *count > segment.start.count);
        let head = RunHead {
            origin: ORIGIN.to_owned(),
            run: export.run,
            segment: segment.segment,
            ordinal: segment.ordinal,
            parent: segment.parent,
            writer,
            epoch: 0,
            run_no: *place as u64,
            state: *state,
            count: *count,
            link: link.copied().unwrap_or(segment.start).link,
            bundle: Hex([0xb0; 32]),
            previous: (*state != RunState::Open).then_some(Hex([0xe0 + number as u8; 32])),
            signer: writer,
        };
        proven.push((format!("head-{number}"), log.add_signed(Leaf::Head(head), WRITER)));
    }
    proven
}

/// Leaves by name and index with their proofs in the tree of all leaves.
pub(super) fn proven_scene(log: &Log, proven: &[(String, u64)]) -> Scene {
    let run = super::world::run(&[]);
    let mut scene = Scene { leaves: Vec::new(), consistency: Vec::new(), policy: policy(), run };
    for (name, index) in proven {
        scene.prove(log, name, *index, log.size());
    }
    scene
}

fn check(text: &[u8], trust: Option<&str>, scene: &Scene) -> LoggedReport {
    let policy = TrustPolicy::parse(scene.policy.as_bytes()).unwrap();
    let trust = trust.map(|text| Trust::parse(text).unwrap());
    scene.with_evidence(|evidence| verify_logged(text, trust.as_ref(), evidence, &policy).unwrap())
}

fn all_heads(export: &Export) -> Vec<(usize, RunState, u64)> {
    let segments = segments(export);
    let last = segments.len() - 1;
    let heads = segments.iter().enumerate().flat_map(|(place, segment)| {
        let state = if place == last { RunState::Closed } else { RunState::Abandoned };
        let middle = segment.start.count + 1;
        [
            (place, RunState::Open, segment.start.count),
            (place, RunState::Progress, middle),
            (place, state, segment.end),
        ]
    });
    heads.collect()
}

fn anchor_of(report: &LoggedReport) -> &str {
    &report.export.checks.iter().find(|check| check.name == "anchor").unwrap().detail
}

#[test]
fn a_logged_run_is_valid_without_a_trust_file() {
    for export in [closed(0x01, "what is due?"), resumed(0x02)] {
        let scene = logged(&export, &all_heads(&export));
        assert_eq!(verify(&*export.text, None).unwrap().status, Status::Incomplete);
        let report = check(&export.text, None, &scene);
        assert_eq!(report.status, Status::Valid, "{}{:?}", report.export, report.log);
        assert_eq!((report.export.status, report.export.exit_code()), (Status::Valid, 0));
        let events = export.heads.last().unwrap().count;
        assert_eq!(report.export.anchored, Some(events));
        assert_eq!(anchor_of(&report), format!("the log has the end of the run, after {events} events"));
        // A trust file that covers the run, or a part of it, keeps its say.
        let report = check(&export.text, Some(&export.trust_text()), &scene);
        assert_eq!((report.status, report.export.anchored), (Status::Valid, Some(events)));
        assert_eq!(anchor_of(&report), format!("a trusted head covers all {events} events"));
        let report = check(&export.text, Some(&export.trust_at(2)), &scene);
        assert_eq!((report.status, report.export.anchored), (Status::Valid, Some(events)));
        // The last head alone is enough: the chain leads from it to everything before.
        let last = *all_heads(&export).last().unwrap();
        assert_eq!(check(&export.text, None, &logged(&export, &[last])).status, Status::Valid);
    }
}

#[test]
fn what_is_missing_makes_the_answer_incomplete() {
    let export = closed(0x01, "what is due?");
    let heads = all_heads(&export);
    let report = check(&export.text, None, &logged(&export, &heads[..2]));
    assert_eq!((report.status, report.export.status), (Status::Incomplete, Status::Incomplete));
    let mut scene = logged(&export, &heads);
    scene.policy = policy_alone();
    assert_eq!(check(&export.text, None, &scene).status, Status::Incomplete);
    // With a trust file the export is valid by itself; what the log was asked for still lacks.
    let report = check(&export.text, Some(&export.trust_text()), &scene);
    assert_eq!((report.export.status, report.status), (Status::Valid, Status::Incomplete));
}

#[test]
fn a_chain_that_was_written_anew_meets_the_log() {
    let honest = closed(0x01, "what is due?");
    let other = closed(0x01, "what is done?");
    let scene = logged(&honest, &all_heads(&honest));
    assert_eq!(verify(&*other.text, None).unwrap().status, Status::Incomplete, "it agrees with itself");
    let report = check(&other.text, None, &scene);
    let failure = report.log.unwrap().failure.unwrap();
    assert_eq!((report.status, failure.attack), (Status::Invalid, LogAttack::ChainRewritten));
    assert_eq!(failure.file, "head-2.leaf", "event 1 is the same in both");
    let another = closed(0x03, "what is due?");
    let failure = check(&another.text, None, &scene).log.unwrap().failure.unwrap();
    assert_eq!(failure.attack, LogAttack::HeadOfAnotherRun);
}

#[test]
fn a_tail_that_was_cut_off_meets_the_log() {
    let honest = resumed(0x02);
    let scene = logged(&honest, &all_heads(&honest));
    // The same run, handed over as it stood when its first segment ended.
    let mut builder = Builder::new(0x02);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.event("proposed", &action(0xa1, ""));
    builder.event("verdict", &action(0xa1, r#","verdict":"warn""#));
    builder.event("enforcement", &action(0xa1, r#","enforced":"executed""#));
    builder.event("outcome", &action(0xa1, r#","status":"unknown""#));
    builder.close(SegmentState::Abandoned);
    let cut = builder.finish();
    assert_eq!(check(&cut.text, None, &logged(&honest, &all_heads(&honest)[..3])).status, Status::Valid);
    let report = check(&cut.text, None, &scene);
    let failure = report.log.unwrap().failure.unwrap();
    assert_eq!((report.status, failure.attack), (Status::Invalid, LogAttack::TailMissing));
    // Cut within a segment: the head of the log says how far it went.
    let mut builder = Builder::new(0x02);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.event("proposed", &action(0xa1, ""));
    builder.head(SegmentState::Open);
    let report = check(&builder.finish().text, None, &scene);
    let failure = report.log.unwrap().failure.unwrap();
    assert_eq!((failure.attack, failure.file.as_str()), (LogAttack::TailMissing, "head-2.leaf"));
}

#[test]
fn an_export_that_was_changed_is_not_held_against_the_log() {
    let export = closed(0x01, "what is due?");
    let scene = logged(&export, &all_heads(&export));
    let mut text = export.text.clone();
    let at = text.windows(8).position(|window| window == b"proposed").unwrap();
    text[at] = b'P';
    let report = check(&text, None, &scene);
    assert_eq!(report.export.failure.unwrap().attack, Attack::EventAltered);
    assert_eq!((report.status, report.log), (Status::Invalid, None));
    let report = check(b"", None, &scene);
    assert_eq!((report.status, report.log), (Status::Invalid, None));
}

#[test]
fn a_report_is_one_object() {
    let export = closed(0x01, "what is due?");
    let report = check(&export.text, None, &logged(&export, &all_heads(&export)));
    let json: serde_json::Value = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["status"], &json["export"]["status"], &json["log"]["status"]),
        (&"VALID".into(), &"VALID".into(), &"VALID".into())
    );
    assert_eq!(json["log"]["root"].as_str().map(str::len), Some(2 * size_of::<Digest>()));
}

/// Names and bytes, as a folder or an archive has them.
pub(super) type Files = Vec<(String, Vec<u8>)>;

fn files(export: &Export) -> (Files, TrustPolicy) {
    let scene = logged(export, &all_heads(export));
    (scene_files(export, &scene), TrustPolicy::parse(scene.policy.as_bytes()).unwrap())
}

pub(super) fn scene_files(export: &Export, scene: &Scene) -> Files {
    let mut files = vec![("run.export".to_owned(), export.text.clone())];
    let evidence = scene.leaves.iter().flatten().chain(&scene.consistency);
    files.extend(evidence.map(|(name, bytes)| (format!("log/{name}"), bytes.clone())));
    files
}

pub(super) fn check_files(files: &Files, policy: &TrustPolicy) -> Result<LoggedReport, LoggedError> {
    let files: Vec<File<'_>> = files.iter().map(|(name, bytes)| File { name, bytes }).collect();
    verify_files(&files, None, policy)
}

/// The attack and the file.
fn named(files: &Files, policy: &TrustPolicy) -> (LogAttack, String) {
    let report = check_files(files, policy).unwrap();
    assert_eq!(report.status, Status::Invalid);
    let failure = report.log.unwrap().failure.unwrap();
    (failure.attack, failure.file)
}

#[test]
fn an_export_is_verified_from_its_files() {
    let export = resumed(0x02);
    let (mut files, policy) = files(&export);
    assert_eq!(check_files(&files, &policy).unwrap().status, Status::Valid);
    files.reverse();
    files.push(("README.txt".to_owned(), b"how to verify by hand".to_vec()));
    files.push(("trust.policy".to_owned(), b"log mine\n".to_vec()));
    let report = check_files(&files, &policy).unwrap();
    assert_eq!((report.status, report.ignored), (Status::Valid, vec!["trust.policy".to_owned()]));
}

#[test]
fn every_file_that_is_dropped_doubled_renamed_or_swapped_is_found() {
    let export = closed(0x01, "what is due?");
    let (files, policy) = files(&export);
    let mut tried = 0;
    for place in 1..files.len() {
        let mut dropped = files.clone();
        let (name, bytes) = dropped.remove(place);
        let stem = name.split_once('.').unwrap().0.to_owned();
        let (attack, file) = named(&dropped, &policy);
        assert!(attack == LogAttack::FilesMismatched && file.starts_with(&stem), "{name} dropped: {file}");
        let mut doubled = files.clone();
        doubled.push((name.clone(), bytes.clone()));
        assert_eq!(named(&doubled, &policy), (LogAttack::FilesMismatched, name.clone()));
        for other in 1..files.len() {
            if other == place {
                continue;
            }
            let mut swapped = files.clone();
            let (one, two) = (swapped[place].1.clone(), swapped[other].1.clone());
            (swapped[place].1, swapped[other].1) = (two, one);
            assert_eq!(
                check_files(&swapped, &policy).unwrap().status,
                Status::Invalid,
                "{name}, {}",
                files[other].0
            );
            tried += 1;
        }
        let mut empty = files.clone();
        empty[place].1.clear();
        assert_eq!(check_files(&empty, &policy).unwrap().status, Status::Invalid);
    }
    assert_eq!(tried, 8 * 7);
    // Names that mean something to an archive or a file system, and names that mean nothing.
    for name in [
        "",
        "run.export/",
        "./run.export",
        "../run.export",
        "/run.export",
        "RUN.EXPORT",
        "log/../run.leaf",
        "log//a.leaf",
        "log/a",
        "log/.leaf",
        "log/A.leaf",
        "log/a.leaf.leaf",
        "log/a b.leaf",
        "log\\a.leaf",
        "log/a.leaf ",
        "log/\u{e9}.leaf",
        "other/a.leaf",
        "trust.policy.txt",
    ] {
        let mut strange = files.clone();
        strange.push((name.to_owned(), Vec::new()));
        assert_eq!(named(&strange, &policy), (LogAttack::FilesMismatched, name.to_owned()));
    }
    let long = format!("log/{}.leaf", "a".repeat(65));
    let mut strange = files.clone();
    strange.push((long.clone(), Vec::new()));
    assert_eq!(named(&strange, &policy), (LogAttack::FilesMismatched, long));
    assert!(matches!(check_files(&files[1..].to_vec(), &policy), Err(LoggedError::NoExport)));
    let mut twice = files.clone();
    twice.push(files[0].clone());
    assert_eq!(named(&twice, &policy), (LogAttack::FilesMismatched, "run.export".to_owned()));
}
