//! Who decided what, with which note, and what was erased from the record, by whom and why.

use portcullis_core::event::{ApprovalDecision, Control, Event, EventBody, GrantScope};
use portcullis_core::id::ApprovalId;
use portcullis_core::state::EDITED_ARGUMENTS;

use crate::facts::Facts;
use crate::input::PackInput;
use crate::markdown::{code, count, events, text};
use crate::record::Record;

/// The most decisions, and the most erased payloads, that are listed; how many there are more is said.
const LISTED_MAX: usize = 1_000;

/// Each answer to a request, and each time that somebody took hold of the run, in order.
pub(super) fn decisions(record: &Record, facts: &Facts) -> Vec<String> {
    let decided = record.events().iter().filter_map(|event| decision(event, facts));
    limited(decided.collect(), "decision", "decisions")
}

fn decision(event: &Event, facts: &Facts) -> Option<String> {
    let (what, note) = match &event.body {
        EventBody::ApprovalDecided { approval, decision, scope, note, .. } => {
            (answer(event, *approval, *decision, scope.as_ref(), facts), note)
        }
        EventBody::Control { control, note } => {
            let did = match control {
                Control::Halt => "halted the run",
                Control::Pause => "paused the run",
                Control::Resume => "let the run go on",
                Control::Freeze => "froze the run",
                Control::ReleaseReads => "released of its freeze what has no side effect",
                Control::Release => "released the run from its freeze",
            };
            (format!("{} {did} ({})", code(event.actor.as_str()), events(&[event.seq])), note)
        }
        _ => return None,
    };
    Some(match note {
        Some(note) => format!("{what}. Note: {}", code(note)),
        None => format!("{what}, without a note"),
    })
}

fn answer(
    event: &Event,
    approval: ApprovalId,
    decision: ApprovalDecision,
    scope: Option<&GrantScope>,
    facts: &Facts,
) -> String {
    let fact = facts.approvals.get(&approval);
    let call = fact.map_or_else(|| "a call".to_owned(), |fact| code(&fact.tool));
    let requested = fact.and_then(|fact| fact.requested);
    let place = match requested {
        Some(requested) => format!("requested in event {requested}, decided in event {}", event.seq),
        None => format!("decided in event {}", event.seq),
    };
    let who = code(event.actor.as_str());
    match decision {
        ApprovalDecision::Granted => {
            let reach = match scope {
                None | Some(GrantScope::Once) => "this call, once",
                Some(GrantScope::Arguments) => "this call, as often as it is made",
                Some(GrantScope::Tool(_)) => "every call of the tool",
                Some(GrantScope::Effects(_)) => "every call with these effects",
                Some(GrantScope::Pattern(_)) => "every call whose effects fit the pattern",
            };
            let changed = match event.payloads.contains_key(EDITED_ARGUMENTS) {
                true => " with other arguments",
                false => "",
            };
            format!("{who} granted {call}{changed} ({reach}; {place})")
        }
        ApprovalDecision::Endorsed => format!("{who} agreed to {call}, as others have to ({place})"),
        ApprovalDecision::Answered => format!("{who} answered {call} with a sentence to the agent ({place})"),
        ApprovalDecision::Revoked => format!("{who} revoked the grant of {call} ({place})"),
        ApprovalDecision::Refused => format!("{who} refused {call} ({place})"),
        ApprovalDecision::Expired => format!("Nobody answered in time for {call} ({place})"),
    }
}

/// Each act of erasing that the store knows of, and each payload that is gone.
pub(super) fn erased(input: &PackInput<'_>) -> Vec<String> {
    let acts = input.erasures.iter().map(|erasure| {
        let reason = match &erasure.reason {
            Some(reason) => format!("Reason: {}", code(reason)),
            None => "No reason was given".to_owned(),
        };
        let payloads = usize::try_from(erasure.payloads).unwrap_or(usize::MAX);
        let (who, when) = (code(&erasure.by), text(&erasure.at.to_string()));
        format!(
            "{who} erased {} on {when}, by the word of the store. {reason}",
            count(payloads, "payload", "payloads")
        )
    });
    let mut points: Vec<String> = acts.collect();
    let gone = input.record.events().iter().flat_map(|event| {
        let names = event.payloads.iter().filter(|(_, payload)| input.record.is_erased(&payload.commitment));
        names.map(|(name, _)| format!("{} of {} is erased", code(name), events(&[event.seq])))
    });
    points.extend(limited(gone.collect(), "erased payload", "erased payloads"));
    points
}

fn limited(mut points: Vec<String>, one: &str, many: &str) -> Vec<String> {
    let more = points.len().saturating_sub(LISTED_MAX);
    points.truncate(LISTED_MAX);
    if more > 0 {
        points.push(format!("{} more; `audit_log.jsonl` and `run.export` have all", count(more, one, many)));
    }
    points
}
