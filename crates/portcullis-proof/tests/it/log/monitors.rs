//! A monitor is silent over an honest log, and names everything that no export can show.

use std::collections::BTreeSet;

use portcullis_proof::export::SegmentState;
use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::monitor::MONITOR_MISSING_MAX;
use portcullis_proof::log::{AlertKind, CompactRange, Leaf, Monitor, RunHead, RunState, leaf_hash};
use portcullis_proof::{Digest, Hex};

use super::verdicts::cases::revoke;
use super::world::{WRITER, enrol, head_of, leaf_key, log_key, run};
use crate::sample::{ORIGIN, id};

/// The leaves of a log, as a writer makes them.
struct Writer {
    leaves: Vec<SignedLeaf>,
}

impl Writer {
    fn new() -> Writer {
        let mut writer = Writer { leaves: Vec::new() };
        writer.sign(enrol(WRITER, 1), 1);
        writer
    }

    fn sign(&mut self, leaf: Leaf, seed: u8) -> Digest {
        let leaf = leaf.sign(&leaf_key(seed)).unwrap();
        let hash = leaf.hash();
        self.leaves.push(leaf);
        hash
    }

    /// A head of segment `segment`, which has number `run_no`.
    fn head(
        &mut self,
        segment: u8,
        run_no: u64,
        state: RunState,
        count: u64,
        previous: Option<Digest>,
    ) -> Digest {
        self.changed(segment, run_no, state, count, previous, |_| ())
    }

    fn changed(
        &mut self,
        segment: u8,
        run_no: u64,
        state: RunState,
        count: u64,
        previous: Option<Digest>,
        change: impl Fn(&mut RunHead),
    ) -> Digest {
        let facts = run(&[(segment, 9, SegmentState::Closed)]);
        let mut head = RunHead { run_no, previous, ..head_of(&facts, 0, state, count) };
        change(&mut head);
        self.sign(Leaf::Head(head), WRITER)
    }

    fn epoch(&mut self, epoch: u64, runs: u64) {
        let writer = leaf_key(WRITER).id();
        self.sign(Leaf::Epoch { origin: ORIGIN.into(), writer, epoch, runs, last: None }, WRITER);
    }

    /// Every alert, as index and kind.
    fn alerts(&self) -> (Monitor, Vec<(u64, AlertKind)>) {
        let admins = || vec![log_key().verifier().clone()];
        let mut monitor = Monitor::new(ORIGIN, admins());
        let alerts =
            self.leaves.iter().flat_map(|leaf| monitor.read(leaf.bytes()).unwrap()).collect::<Vec<_>>();
        assert_eq!(monitor.next_index(), self.leaves.len() as u64);
        // One that is put aside and taken up again before every leaf says the same.
        let mut resumed = Monitor::new(ORIGIN, admins());
        let mut again = Vec::new();
        for leaf in &self.leaves {
            let text = serde_json::to_string(&resumed.state()).unwrap();
            resumed = Monitor::resume(ORIGIN, admins(), serde_json::from_str(&text).unwrap()).unwrap();
            again.extend(resumed.read(leaf.bytes()).unwrap());
        }
        assert_eq!(again, alerts);
        assert_eq!(resumed.state(), monitor.state());
        assert_eq!(resumed.state().next_index(), self.leaves.len() as u64);
        (monitor, alerts.into_iter().map(|alert| (alert.index, alert.kind)).collect())
    }
}

#[test]
fn an_honest_log_gives_no_alert() {
    let mut writer = Writer::new();
    let a = writer.head(0x51, 0, RunState::Open, 0, None);
    let b = writer.head(0x52, 1, RunState::Open, 0, None);
    let a = writer.head(0x51, 0, RunState::Progress, 4, Some(a));
    writer.head(0x52, 1, RunState::Closed, 7, Some(b));
    // The writer did not hear that a head arrived, and hands it in again, even after the end.
    let again = writer.leaves[3].clone();
    writer.leaves.push(again.clone());
    writer.head(0x51, 0, RunState::Closed, 9, Some(a));
    writer.leaves.push(again);
    // Nothing happened between what was the last progress and the end.
    let c = writer.head(0x54, 2, RunState::Open, 0, None);
    let c = writer.head(0x54, 2, RunState::Progress, 9, Some(c));
    writer.head(0x54, 2, RunState::Closed, 9, Some(c));
    writer.epoch(1, 3);
    writer.changed(0x53, 0, RunState::Open, 0, None, |head| head.epoch = 1);
    let (monitor, alerts) = writer.alerts();
    assert_eq!(alerts, []);
    assert_eq!(monitor.missing().count(), 0);
    assert_eq!(monitor.open().map(|open| (open.segment, open.count)).collect::<Vec<_>>(), [(id(0x53), 0)]);
}

#[test]
fn a_suppressed_run_leaves_a_hole() {
    let mut writer = Writer::new();
    writer.head(0x51, 0, RunState::Open, 0, None);
    writer.head(0x54, 3, RunState::Open, 0, None);
    let holes = |writer: &Writer| {
        let (monitor, alerts) = writer.alerts();
        assert_eq!(alerts, []);
        monitor.missing().map(|missing| (missing.run_no, missing.since)).collect::<Vec<_>>()
    };
    assert_eq!(holes(&writer), [(1, 2), (2, 2)]);
    // Heads of runs that go on at once may come in another order.
    writer.head(0x53, 2, RunState::Open, 0, None);
    assert_eq!(holes(&writer), [(1, 2)]);
    writer.head(0x52, 1, RunState::Open, 0, None);
    assert_eq!(holes(&writer), []);
    writer.head(0x55, 4 + MONITOR_MISSING_MAX + 1, RunState::Open, 0, None);
    assert_eq!(writer.alerts().1, [(5, AlertKind::RunsMissing)]);
    // As many as are remembered one by one are no alert yet.
    let mut writer = Writer::new();
    writer.head(0x51, 0, RunState::Open, 0, None);
    writer.head(0x52, 1 + MONITOR_MISSING_MAX, RunState::Open, 0, None);
    assert_eq!(holes(&writer).len() as u64, MONITOR_MISSING_MAX);
}

fn open(writer: &mut Writer) -> Digest {
    writer.head(0x51, 0, RunState::Open, 0, None)
}

fn closed(writer: &mut Writer) -> Digest {
    let head = open(writer);
    writer.head(0x51, 0, RunState::Closed, 9, Some(head))
}

/// The alert that a lie gives, and the lie.
type Lie = (AlertKind, fn(&mut Writer));

fn lies() -> Vec<Lie> {
    vec![
        (AlertKind::AdminUnknown, |writer| {
            writer.sign(enrol(0x30, 8), 8);
        }),
        (AlertKind::WrongOrigin, |writer| {
            writer.changed(0x51, 0, RunState::Open, 0, None, |head| head.origin = "portcullis/other".into());
        }),
        (AlertKind::LeafForged, |writer| {
            open(writer);
            let mut bytes = writer.leaves.pop().unwrap().bytes().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            writer.leaves.push(SignedLeaf::parse(&bytes).unwrap());
        }),
        (AlertKind::WriterNotEnrolled, |writer| {
            writer.leaves.remove(0);
            open(writer);
        }),
        (AlertKind::WriterNotEnrolled, |writer| {
            let previous = open(writer);
            writer
                .changed(0x51, 0, RunState::Abandoned, 9, Some(previous), |head| head.writer = Hex([9; 32]));
        }),
        (AlertKind::WriterRevoked, |writer| {
            writer.sign(revoke(WRITER, 1), 1);
            open(writer);
        }),
        (AlertKind::NotOpened, |writer| {
            writer.head(0x51, 0, RunState::Closed, 9, Some(Hex([1; 32])));
        }),
        (AlertKind::RunNumberReused, |writer| {
            open(writer);
            writer.head(0x52, 0, RunState::Open, 0, None);
        }),
        (AlertKind::RunNumberReused, |writer| {
            let previous = open(writer);
            writer.head(0x51, 1, RunState::Closed, 9, Some(previous));
        }),
        (AlertKind::HeadRegressed, |writer| {
            let previous = open(writer);
            let previous = writer.head(0x51, 0, RunState::Progress, 5, Some(previous));
            writer.head(0x51, 0, RunState::Closed, 3, Some(previous));
        }),
        (AlertKind::HeadRegressed, |writer| {
            let previous = closed(writer);
            writer.head(0x51, 0, RunState::Progress, 9, Some(previous));
        }),
        (AlertKind::HeadForked, |writer| {
            let previous = open(writer);
            writer.head(0x51, 0, RunState::Progress, 5, Some(previous));
            writer.head(0x51, 0, RunState::Closed, 6, Some(previous));
        }),
        (AlertKind::ClosedTwice, |writer| {
            let previous = closed(writer);
            writer.head(0x51, 0, RunState::Abandoned, 9, Some(previous));
        }),
        (AlertKind::EpochSkipped, |writer| writer.epoch(2, 0)),
        (AlertKind::EpochSkipped, |writer| {
            writer.changed(0x51, 0, RunState::Open, 0, None, |head| head.epoch = 1);
        }),
        (AlertKind::EpochForgot, |writer| {
            closed(writer);
            writer.epoch(1, 0);
        }),
        (AlertKind::RunsMissing, |writer| {
            closed(writer);
            writer.epoch(1, 5);
        }),
    ]
}

#[test]
fn every_lie_is_named() {
    let mut named = BTreeSet::new();
    for (kind, lie) in lies() {
        let mut writer = Writer::new();
        lie(&mut writer);
        let (_, alerts) = writer.alerts();
        assert_eq!(alerts, [(writer.leaves.len() as u64 - 1, kind)]);
        named.insert(kind);
    }
    let mut monitor = Monitor::new(ORIGIN, Vec::new());
    let alerts = monitor.read(b"no leaf").unwrap();
    assert_eq!((alerts.len(), alerts[0].kind), (1, AlertKind::LeafMalformed));
    named.insert(alerts[0].kind);
    assert_eq!(named.len(), 14, "every kind of alert: {named:?}");
    let json = serde_json::to_string(&alerts[0]).unwrap();
    assert!(
        json.starts_with(r#"{"index":0,"kind":"leaf-malformed","message":"byte 0 of the leaf"#),
        "{json}"
    );
}

#[test]
fn a_state_that_no_monitor_left_is_refused() {
    let mut writer = Writer::new();
    let a = writer.head(0x51, 0, RunState::Open, 0, None);
    writer.head(0x51, 0, RunState::Progress, 4, Some(a));
    writer.head(0x54, 3, RunState::Open, 0, None);
    let state = serde_json::to_value(writer.alerts().0.state()).unwrap();
    let resume = |state: &serde_json::Value| {
        let state = serde_json::from_value(state.clone()).map_err(|error| error.to_string())?;
        Monitor::resume(ORIGIN, Vec::new(), state).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(resume(&state), Ok(()));
    assert_eq!(state["segments"].as_array().unwrap().len(), 2, "{state}");
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 7] = [
        (|state| state["segments"][0][2] = 1.into(), "a writer that it does not have"),
        (|state| state["missing"][0][0] = 1.into(), "a writer that it does not have"),
        (|state| state["segments"][0][5] = 4.into(), "no such state"),
        (|state| state["segments"][1] = state["segments"][0].clone(), "a segment twice"),
        (
            |state| state["writers"] = serde_json::json!([state["writers"][0], state["writers"][0]]),
            "a writer twice",
        ),
        (|state| state["more"] = 1.into(), "unknown field"),
        (|state| state["next"] = (-1).into(), "invalid value"),
    ];
    for (change, expected) in changes {
        let mut changed = state.clone();
        change(&mut changed);
        let error = resume(&changed).unwrap_err();
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn a_tree_goes_on_from_its_peaks() {
    let mut range = CompactRange::new();
    for number in 0..70u8 {
        let resumed = CompactRange::from_peaks(range.size(), range.peaks().to_vec()).unwrap();
        assert_eq!(resumed, range);
        assert_eq!(CompactRange::from_peaks(range.size() ^ 64, range.peaks().to_vec()), None);
        range.push(leaf_hash(&[number])).unwrap();
    }
    assert_eq!(CompactRange::from_peaks(1 << 63, vec![range.head().root]), None);
}
