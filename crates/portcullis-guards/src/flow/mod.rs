//! What flows where: orders, addresses and credentials from tools' results into calls, weighed against what the user
//! asked for. The rules are those of `portcullis-trajectory`; each guard here stands for some of them.

pub mod off_task;
pub mod planted_order;
pub mod secrets_leaving;
pub mod sensitive_then_send;
pub mod tainted_argument;
pub mod unrequested_action;

use portcullis_core::action::{Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Context, GuardFailure};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::FlowReading;
use portcullis_trajectory::memory::RunReading;
use portcullis_trajectory::rules::{Rule, Weight};

/// The findings of a guard that stands for some rules. The sentence that a rule rests on is named by the event that
/// showed it, and by its bytes in that event's text.
fn findings(
    context: &Context<'_>,
    pending: &Pending<'_>,
    id: &'static str,
    rules: &[Rule],
    instead: &'static str,
) -> Result<Vec<Finding>, GuardFailure> {
    if !matches!(pending.subject, Subject::Action(_)) {
        return Ok(Vec::new());
    }
    let reading = context.reading::<RunReading>()?;
    let FlowReading::Call(judged) = &reading.flow else { return Ok(Vec::new()) };
    let own = judged.reasons.iter().filter(|reason| rules.contains(&reason.rule));
    Ok(own
        .map(|reason| {
            let verdict = match reason.weight {
                Weight::Hold => Verdict::Review,
                Weight::Deny => Verdict::Deny,
            };
            let mut message = reason.rule.says().to_owned();
            if let Some(source) = &reason.source {
                message.push_str(&format!("; see event {}", source.seq));
                if !source.range.is_empty() {
                    message.push_str(&format!(", bytes {} to {}", source.range.start, source.range.end));
                }
            }
            let mut finding = Finding::new(id, verdict, message).instead(instead);
            if let Some(source) = &reason.source {
                finding.evidence.push(source.seq);
                if !source.range.is_empty() {
                    let (start, end) = (source.range.start, source.range.end);
                    finding = finding.at(Span { pointer: TEXT.to_owned(), start, end });
                }
            }
            finding
        })
        .collect())
}
