//! What the record of a run does not show.

use portcullis_core::event::{Actor, EventBody};
use portcullis_proof::export::SegmentState;

use super::entry::{Risk, risk};
use crate::facts::Facts;
use crate::input::PackInput;
use crate::manifest;
use crate::markdown::{code, count, events};
use crate::period::periods;
use crate::record::Record;
use crate::signals::Signals;
use crate::summary::SIMULATOR;

/// What the record itself leaves open.
pub(super) fn record(input: &PackInput<'_>, facts: &Facts, signals: &Signals) -> Vec<Risk> {
    let mut risks = Vec::new();
    risks.extend(unclosed(input.record));
    risks.extend(missing_texts(input.record));
    risks.extend(unread_signals(signals));
    risks.extend(missing_bundles(input));
    risks.extend(unchecked_evidence(input.record));
    risks.extend(lost_events(facts));
    risks.extend(no_session(input.record));
    risks.extend(other_release(input));
    risks.extend(witnesses(input));
    risks
}

/// A run that may go on, or whose writer died.
fn unclosed(record: &Record) -> Option<Risk> {
    let head = record.head();
    match record.state() {
        SegmentState::Closed => None,
        SegmentState::Open => Some(Risk {
            title: "The run is still open",
            fact: format!("The record ends with event {}, and more events may follow.", head.count),
            reduce: "close the run and create the pack again",
        }),
        SegmentState::Abandoned => Some(Risk {
            title: "The writer ended before the run did",
            fact: format!(
                "The last segment was closed by another writer (event {}): what happened between its last event and the close is not known.",
                head.count
            ),
            reduce: "check in the tools what was done",
        }),
    }
}

/// Payloads of which only the commitment is here.
fn missing_texts(record: &Record) -> Option<Risk> {
    let payloads = record.report().payloads;
    let missing = payloads.withheld + payloads.erased;
    (missing > 0).then(|| Risk {
        title: "Texts that are not available",
        fact: format!(
            "{missing} of {} payloads are missing from the pack, which has only their commitments: {} erased, {} withheld from this export.",
            payloads.named, payloads.erased, payloads.withheld
        ),
        reduce: "create the pack with payloads, if they still exist",
    })
}

/// Signals that could not be computed as the gate computed them, for want of a text.
fn unread_signals(signals: &Signals) -> Option<Risk> {
    risk(
        &signals.unread,
        "Signals computed from less than the gate knew",
        || {
            format!(
                "Texts of {} were not available, so values close to a limit after them are not known.",
                events(&signals.unread)
            )
        },
        "create the pack with payloads",
    )
}

/// Where the run came under a bundle that is not at hand.
fn missing_bundles(input: &PackInput<'_>) -> Option<Risk> {
    let gone: Vec<u64> = periods(input.record.events())
        .into_iter()
        .filter(|period| input.bundle(period.bundle).is_none())
        .map(|period| period.from)
        .collect();
    risk(
        &gone,
        "Bundles that are not available",
        || format!("From {} on, the run was judged by a bundle that is not in this pack.", events(&gone)),
        "pass its folder with `--bundle`",
    )
}

/// Evidence that the gate took from somebody else.
fn unchecked_evidence(record: &Record) -> Option<Risk> {
    let gate = Actor::gate();
    let said: Vec<u64> = record
        .events()
        .iter()
        .filter(|event| event.actor != gate && matches!(event.body, EventBody::Evidence { .. }))
        .map(|event| event.seq)
        .collect();
    risk(
        &said,
        "Evidence from the agent alone",
        || {
            format!(
                "{} not recorded by the gate ({}) and not checked.",
                count(said.len(), "piece of evidence was", "pieces of evidence were"),
                events(&said)
            )
        },
        "compare the digests with the originals",
    )
}

/// Gaps that the record admits.
fn lost_events(facts: &Facts) -> Option<Risk> {
    let lost = facts.of_kind("gap");
    risk(
        lost,
        "Lost events",
        || format!("The record states that it has gaps ({}).", events(lost)),
        "find out why; `portcullis doctor` checks the store",
    )
}

/// A run that nothing connects to others of its agent.
fn no_session(record: &Record) -> Option<Risk> {
    let opened = record.opened()?;
    (opened.session.is_none() && opened.surface != SIMULATOR).then(|| Risk {
        title: "No client session",
        fact: "The run names no session of its client (event 1): other runs of the same agent are not connected to it.".to_owned(),
        reduce: "use a surface that names its session",
    })
}

/// Where the run was judged by other code than makes this pack.
fn other_release(input: &PackInput<'_>) -> Option<Risk> {
    let other: Vec<u64> = periods(input.record.events())
        .into_iter()
        .filter(|period| {
            let here = input.source(period.bundle).map(|source| source.configuration);
            period.configuration.is_some() && here.is_some() && period.configuration != here
        })
        .map(|period| period.from)
        .collect();
    risk(
        &other,
        "Signals of another release",
        || {
            format!(
                "From {} on the run was judged by other built-in patterns, models or code than made this pack, so values close to a limit may have been different then.",
                events(&other)
            )
        },
        "create the pack with the release that judged the run",
    )
}

/// Who vouches for the record besides its writer.
fn witnesses(input: &PackInput<'_>) -> Option<Risk> {
    let head = input.record.head();
    let fact = match manifest::logged(input.evidence) {
        Some(log) if log.cosignatures > 0 => return None,
        Some(log) => format!(
            "The log has the run in a tree of {}, and its checkpoint is signed by the log alone: others could be shown \
             another tree.",
            count(usize::try_from(log.size).unwrap_or(usize::MAX), "leaf", "leaves")
        ),
        None => format!(
            "No checkpoint of the transparency log covers the head ({} events, link {}): anyone who holds the store and its key could write a different record.",
            head.count,
            code(&head.link.to_string())
        ),
    };
    Some(Risk {
        title: "No witness other than the store",
        fact,
        reduce: "have witnesses cosign the log, or keep its checkpoint where the store's owner cannot write",
    })
}
