//! Holds the ledger against the books of the writers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use portcullis_core::event::{Enforced, Event, EventBody, OutcomeStatus};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{ExportOptions, RunFilter, SegmentState, SqliteReader};
use portcullis_proof::{Status, Trust};

use super::world::Story;
use super::writer::{ANSWERS, EFFECTS, TROUBLE, is_forbidden};

/// Events read at a time.
const PAGE: usize = 10_000;

/// What there was to check.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) runs: u64,
    pub(super) segments: u64,
    pub(super) events: u64,
    pub(super) answers: u64,
    pub(super) executed: u64,
    pub(super) outcomes_refused: u64,
}

pub(super) fn audit(story: &Story) -> Seen {
    let reader = SqliteReader::open(&story.home.ledger()).unwrap();
    let mut seen = Seen::default();
    let runs = reader.runs(&RunFilter::default()).unwrap();
    let states: BTreeMap<RunId, SegmentState> = runs.iter().map(|run| (run.run, run.state)).collect();
    for run in &runs {
        seen.runs += 1;
        seen.segments += run.segments;
        seen.events += run.events;
        assert_ne!(run.state, SegmentState::Open, "run {} is open, and nobody writes it", run.run);
        verify(&reader, run.run);
    }
    for folder in &story.killed {
        if let Some(run) = check_writer(&reader, folder, &mut seen) {
            assert_eq!(states.get(&run), Some(&SegmentState::Abandoned), "{run}, whose writer was killed");
        }
    }
    for folder in &story.ended {
        let run = check_writer(&reader, folder, &mut seen).expect("a writer that ended had a run");
        assert_eq!(states.get(&run), Some(&SegmentState::Closed), "{run}, whose writer left in good order");
    }
    seen
}

/// Exports a run and verifies it as a stranger would.
pub(super) fn verify(reader: &SqliteReader, run: RunId) {
    let mut export = Vec::new();
    reader.export_run(run, &mut export, ExportOptions { payloads: true }).unwrap();
    let trust = Trust::parse(&reader.trust_text(&[run]).unwrap()).unwrap();
    let report = portcullis_proof::verify(export.as_slice(), Some(&trust)).unwrap();
    assert_eq!(report.status, Status::Valid, "run {run}: {report:#?}");
}

pub(super) fn events(reader: &SqliteReader, run: RunId) -> BTreeMap<u64, Event> {
    let mut events = BTreeMap::new();
    loop {
        let after = events.last_key_value().map_or(0, |(seq, _)| *seq);
        let page = reader.events(run, after, PAGE).unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page.iter().map(|stored| (stored.seq, Event::from_line(&stored.line).unwrap())));
    }
}

/// Holds one writer's books against its run; none when it was killed before it had one.
fn check_writer(reader: &SqliteReader, folder: &Path, seen: &mut Seen) -> Option<RunId> {
    let answers = lines(&folder.join(ANSWERS));
    let run: RunId = answers.first()?.strip_prefix("run ").expect("the run comes first").parse().unwrap();
    let events = events(reader, run);
    let by_action = by_action(&events);
    let at = |seq: u64| events.get(&seq).unwrap_or_else(|| panic!("event {seq} of run {run} is missing"));
    let mut permitted = BTreeMap::new();
    for answer in &answers[1..] {
        seen.answers += 1;
        let words: Vec<&str> = answer.split(' ').collect();
        let (kind, action): (_, ActionId) = (words[0], words[1].parse().unwrap());
        let story =
            by_action.get(&action).unwrap_or_else(|| panic!("{answer}: {run} does not know the action"));
        match kind {
            "verdict" if words[3] == "true" => {
                let seq: u64 = words[2].parse().unwrap();
                assert_eq!(at(seq).body.action(), Some(action), "{answer} of {run}");
                check_permitted(story, seq, answer);
                permitted.insert(action, words[4].parse::<u64>().unwrap());
            }
            "verdict" => {
                assert!(story.iter().any(|event| verdict(event) == Some(Verdict::Deny)), "{answer} of {run}");
                assert!(!story.iter().any(|event| proceeds(event)), "{answer} of {run} was denied");
                assert!(
                    is_forbidden(words[4].parse().unwrap()),
                    "{answer} of {run} was denied for no reason"
                );
            }
            "outcome" => {
                let outcome = at(words[2].parse().unwrap());
                assert_eq!(outcome.body.action(), Some(action), "{answer} of {run}");
                assert!(
                    story.iter().any(|event| matches!(event.body, EventBody::Outcome { .. })),
                    "{answer}"
                );
            }
            other => panic!("{other} in the books of {}", folder.display()),
        }
    }
    let mut executed = BTreeSet::new();
    for effect in lines(&folder.join(EFFECTS)) {
        let (action, number) = effect.split_once(' ').unwrap();
        let (action, number) = (action.parse().unwrap(), number.parse::<u64>().unwrap());
        assert_eq!(permitted.get(&action), Some(&number), "{effect} of {run} was executed without a permit");
        assert!(!is_forbidden(number) && executed.insert(action), "{effect} of {run}");
    }
    seen.executed += executed.len() as u64;
    // A writer reports each outcome until it is taken, so only that of its last call may be missing.
    let told = |action: &&ActionId| {
        let ok = |event: &&Event| matches!(event.body, EventBody::Outcome { status: OutcomeStatus::Ok, .. });
        by_action.get(*action).is_some_and(|story| story.iter().any(ok))
    };
    let untold = executed.iter().filter(|action| !told(action)).count();
    assert!(untold <= 1, "{untold} outcomes of {run} were lost");
    let trouble = lines(&folder.join(TROUBLE));
    seen.outcomes_refused += trouble.iter().filter(|line| line.starts_with("outcome ")).count() as u64;
    Some(run)
}

/// Proposed, then allowed, then let go ahead, once, and all of it no later than what the permit speaks of.
fn check_permitted(story: &[&Event], seq: u64, answer: &str) {
    let number = |wanted: &dyn Fn(&Event) -> bool| {
        let mut found = story.iter().filter(|event| wanted(event)).map(|event| event.seq);
        let first = found.next().unwrap_or_else(|| panic!("{answer}: {story:#?}"));
        assert_eq!(found.next(), None, "{answer}: {story:#?}");
        first
    };
    let proposed = number(&|event| matches!(event.body, EventBody::Proposed(_)));
    let allowed = number(&|event| verdict(event) == Some(Verdict::Allow));
    let enforced = number(&proceeds);
    assert!(proposed < allowed && allowed < enforced && enforced <= seq, "{answer}: {story:#?}");
    let outcomes = story.iter().filter(|event| matches!(event.body, EventBody::Outcome { .. }));
    assert!(outcomes.map(|event| event.seq).all(|outcome| enforced < outcome), "{answer}: {story:#?}");
}

fn verdict(event: &Event) -> Option<Verdict> {
    match &event.body {
        EventBody::Verdict(record) => Some(record.verdict),
        _ => None,
    }
}

fn proceeds(event: &Event) -> bool {
    matches!(&event.body, EventBody::Enforcement { enforced: Enforced::Executed, .. })
}

fn by_action(events: &BTreeMap<u64, Event>) -> BTreeMap<ActionId, Vec<&Event>> {
    let mut by_action: BTreeMap<ActionId, Vec<&Event>> = BTreeMap::new();
    for event in events.values() {
        if let Some(action) = event.body.action() {
            by_action.entry(action).or_default().push(event);
        }
    }
    by_action
}

/// The whole lines of a file; what a killed writer did not finish was not written.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}
