//! An export of many runs: which numbers of a writer are there, and when that is all of them.

use portcullis_proof::Hex;
use portcullis_proof::log::completeness::{
    ACCOUNTED_LEAVES_MAX, Completeness, Exported, NumberSpan, complete,
};
use portcullis_proof::log::verdict::TooMuchEvidence;
use portcullis_proof::log::{
    Evidence, File, Leaf, LogAttack, LogFailure, LoggedLeaf, RunHead, RunState, TrustPolicy,
};

use super::world::{Log, Scene, enrol, leaf_key, policy, policy_alone, run};
use crate::sample::{ORIGIN, id};

const FIRST: u8 = 0x20;
const SECOND: u8 = 0x21;

/// The head that opens segment `segment` as number `run_no` of a writer.
fn opened(writer: u8, run_no: u64, segment: u8) -> Leaf {
    let key = leaf_key(writer).id();
    Leaf::Head(RunHead {
        origin: ORIGIN.to_owned(),
        run: id(segment),
        segment: id(segment),
        ordinal: 0,
        parent: None,
        writer: key,
        epoch: 0,
        run_no,
        state: RunState::Open,
        count: 0,
        link: Hex([segment; 32]),
        bundle: Hex([0xb0; 32]),
        previous: None,
        signer: key,
    })
}

/// The evidence of a log with these heads, each by writer, number and segment.
fn logged(heads: &[(u8, u64, u8)]) -> Scene {
    let mut log = Log::default();
    let mut proven = vec![("first", log.add_signed(enrol(FIRST, 1), 1))];
    proven.push(("second", log.add_signed(enrol(SECOND, 1), 1)));
    for (writer, number, segment) in heads {
        proven.push(("head", log.add_signed(opened(*writer, *number, *segment), *writer)));
    }
    let mut scene = Scene { leaves: Vec::new(), consistency: Vec::new(), policy: policy(), run: run(&[]) };
    for (name, index) in proven {
        scene.prove(&log, name, index, log.size());
    }
    scene
}

/// What is found when the log shows some heads and the runs of others are in the export.
fn found(shown: &Scene, exported: &[(u8, u64, u8)]) -> Completeness {
    let trust = TrustPolicy::parse(shown.policy.as_bytes()).unwrap();
    let exported = logged(exported);
    shown.with_evidence(|shown| {
        exported.with_evidence(|exported| {
            let exported = Exported { folder: "runs/a/", evidence: exported.clone() };
            complete(shown, &trust, ORIGIN, &[exported]).unwrap()
        })
    })
}

fn span(writer: u8, first: u64, last: u64) -> NumberSpan {
    NumberSpan {
        writer: leaf_key(writer).id(),
        epoch: 0,
        first,
        last,
        exported: last - first + 1,
        withheld: 0,
        missing: 0,
        missing_named: Vec::new(),
    }
}

fn all(spans: Vec<NumberSpan>) -> Completeness {
    Completeness { failure: None, open: None, spans, unaccounted: 0 }
}

const HEADS: [(u8, u64, u8); 4] = [(FIRST, 3, 0x51), (FIRST, 4, 0x52), (FIRST, 5, 0x53), (FIRST, 6, 0x54)];

#[test]
fn all_numbers_from_the_first_to_the_last() {
    let complete = found(&logged(&HEADS), &HEADS);
    assert_eq!(complete, all(vec![span(FIRST, 3, 6)]));
    assert!(complete.holds());

    let one = found(&logged(&HEADS[..1]), &HEADS[..1]);
    assert_eq!(one, all(vec![span(FIRST, 3, 3)]));
    assert!(one.holds());

    // Each writer counts for itself.
    let both = [&HEADS[..], &[(SECOND, 0, 0x61), (SECOND, 1, 0x62)]].concat();
    let mut spans = vec![span(FIRST, 3, 6), span(SECOND, 0, 1)];
    spans.sort_by_key(|span| span.writer);
    let complete = found(&logged(&both), &both);
    assert_eq!(complete, all(spans));
    assert!(complete.holds());
}

#[test]
fn numbers_that_are_not_there_are_named() {
    let with_hole = [HEADS[0], HEADS[1], HEADS[3]];
    let found_hole = found(&logged(&with_hole), &with_hole);
    let hole = NumberSpan { exported: 3, missing: 1, missing_named: vec![5], ..span(FIRST, 3, 6) };
    assert_eq!(found_hole, all(vec![hole]));
    assert!(!found_hole.holds());

    // The first hundred of them, through however many holes.
    let far = [(FIRST, 0, 0x51), (FIRST, 60, 0x52), (FIRST, 61, 0x53), (FIRST, 200, 0x54)];
    let named = (1..60).chain(62..103).collect::<Vec<_>>();
    assert_eq!(named.len(), 100);
    let holes = NumberSpan { exported: 4, missing: 197, missing_named: named, ..span(FIRST, 0, 200) };
    assert_eq!(found(&logged(&far), &far).spans, [holes]);
    let last = [(FIRST, 0, 0x51), (FIRST, u64::MAX, 0x52)];
    let span = found(&logged(&last), &last).spans.remove(0);
    assert_eq!((span.missing, span.missing_named.len()), (u64::MAX - 2, 100));
}

#[test]
fn runs_that_are_not_exported_leave_it_open() {
    let less = [HEADS[0], HEADS[2], HEADS[3]];
    let withheld = found(&logged(&HEADS), &less);
    let expected = NumberSpan { exported: 3, withheld: 1, ..span(FIRST, 3, 6) };
    assert_eq!(withheld, all(vec![expected]));
    assert!(!withheld.holds());
}

#[test]
fn runs_that_no_head_accounts_for_are_counted() {
    for stray in [(FIRST, 9, 0x59), (SECOND, 3, 0x61)] {
        let more = found(&logged(&HEADS[..2]), &[HEADS[0], HEADS[1], stray]);
        assert_eq!((more.unaccounted, more.holds()), (1, false), "{stray:?}");
        assert_eq!(more.spans, [span(FIRST, 3, 4)]);
    }
}

/// A writer that gives a number twice has a run to hide, wherever the second one shows.
#[test]
fn a_number_has_one_segment_and_a_segment_one_number() {
    let failed = |shown: &[(u8, u64, u8)], exported: &[(u8, u64, u8)]| {
        let report = found(&logged(shown), exported);
        assert!(!report.holds() && report.spans.is_empty());
        report.failure.map(|failure| (failure.attack, failure.file, failure.byte)).unwrap()
    };
    let twice = [HEADS[0], HEADS[1], (FIRST, 4, 0x59)];
    let in_run = (LogAttack::RunNumberReused, "runs/a/head.leaf".to_owned(), 0);
    assert_eq!(failed(&HEADS[..2], &twice), in_run);
    assert_eq!(failed(&HEADS[..2], &[(FIRST, 4, 0x59)]), in_run);
    assert_eq!(failed(&twice, &HEADS[..2]), (LogAttack::RunNumberReused, "head.leaf".to_owned(), 0));
    let renumbered = (LogAttack::HeadMismatch, "runs/a/head.leaf".to_owned(), 0);
    assert_eq!(failed(&HEADS[..2], &[(SECOND, 3, 0x51)]), renumbered);
}

#[test]
fn what_the_log_shows_has_to_hold_itself() {
    let mut forged = logged(&HEADS);
    *forged.leaves[3][0].1.last_mut().unwrap() ^= 1;
    let report = found(&forged, &HEADS);
    assert_eq!(report.failure.as_ref().map(|failure| failure.attack), Some(LogAttack::NotInLog));
    assert!(report.spans.is_empty() && !report.holds());

    let mut alone = logged(&HEADS);
    alone.policy = policy_alone();
    let report = found(&alone, &HEADS);
    assert!(report.failure.is_none() && report.open.is_some() && !report.holds());
    assert_eq!(report.spans, [span(FIRST, 3, 6)]);

    let nothing = found(&logged(&[]), &[]);
    assert_eq!((nothing.spans.len(), nothing.holds()), (0, false));
}

#[test]
fn each_thing_that_is_wrong_is_enough() {
    let good = all(vec![span(FIRST, 3, 6), span(SECOND, 0, 1)]);
    assert!(good.holds());
    let failure = LogFailure {
        attack: LogAttack::LogForked,
        file: "a".to_owned(),
        line: None,
        byte: 0,
        message: String::new(),
    };
    let missing = NumberSpan { missing: 1, ..span(SECOND, 0, 1) };
    let withheld = NumberSpan { withheld: 1, ..span(SECOND, 0, 1) };
    for bad in [
        Completeness { failure: Some(failure), ..good.clone() },
        Completeness { open: Some(String::new()), ..good.clone() },
        Completeness { unaccounted: 1, ..good.clone() },
        all(Vec::new()),
        all(vec![span(FIRST, 3, 6), missing]),
        all(vec![span(FIRST, 3, 6), withheld]),
    ] {
        assert!(!bad.holds(), "{bad:?}");
    }
}

#[test]
fn there_is_a_limit_to_what_accounts() {
    let file = File { name: "a.leaf", bytes: b"no leaf" };
    let trust = TrustPolicy::parse(policy().as_bytes()).unwrap();
    let evidence = |count| Evidence {
        leaves: vec![LoggedLeaf { leaf: file, proof: file }; count],
        consistency: Vec::new(),
    };
    let most = complete(&evidence(ACCOUNTED_LEAVES_MAX), &trust, ORIGIN, &[]).unwrap();
    assert_eq!(most.failure.map(|failure| failure.attack), Some(LogAttack::LeafMalformed));
    let (found, limit) = (ACCOUNTED_LEAVES_MAX + 1, 131_072);
    let what = "leaves that account for numbers";
    assert_eq!(complete(&evidence(found), &trust, ORIGIN, &[]), Err(TooMuchEvidence { what, found, limit }));
}
