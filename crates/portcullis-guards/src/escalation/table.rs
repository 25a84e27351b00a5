//! The escalation table as a guard.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::escalation::{Adaptive, Outcome, Row, Signal, Signals};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// What each report counts that a contained call did more than was predicted: two are the tool risk of row 5.
const MORE_RISK: f64 = 0.35;

/// ## What it does
/// Reads the signals of the run (violations, drift, uncertainty, uncovered tool risk) and gives the level of the first
/// row of the escalation table that matches.
///
/// ## Why it matters
/// One place says what the signals mean together; the record names the row that decided.
///
/// ## Fires on
/// The seed's eight rows, top down, boundaries inclusive: 1 a violation, 2 drift from 0.8: HARD_STOP (`halt`); 3 drift from
/// 0.6 with uncertainty from 0.4: HUMAN_REVIEW (`review`); 4 drift from 0.5, 5 tool risk from 0.7: SOFT_STOP (`pause`);
/// 6 uncertainty from 0.4: CLARIFY (`clarify`); 7 drift from 0.3: WARN (`warn`); 8 otherwise: NONE. The rule names the row:
/// `escalation/table/row-4`.
///
/// Drift and uncertainty are scores: unless `scores = "stop"`, a row on them alone gives CLARIFY at most. This applies
/// to rows 2, 3 and 4; if a stricter row below them also matches, that row decides.
///
/// *Uncertainty* is 1 - the confidence that a surface may report. *Tool risk* is the risk that the request does not
/// cover: the operator's figure for the tool if no word of the user's request names the tool or anything in its
/// arguments, otherwise 0. An inferred figure is a guess and is ignored, and without a request nothing can be compared.
/// Where contained calls of the tool [did more than was predicted](contain-more.md), it is at least 0.35, and 0.7 from the
/// second time on.
/// A row whose signal is missing is inactive, and the finding says so.
///
/// ## Does not cover
/// Anything that no monitor saw.
///
/// ## Configuration
/// `[escalation]`: rows, `adaptive`, `sensitivity`; `[monitors] scores`. Adaptive thresholds are computed from the base
/// each time.
///
/// ## False positives
/// Those of the signals. A person's resume resets drift to 0. Of 4,373 ordinary prompts and 822 READMEs, mails, recipes
/// and notes, none is stopped, whether it is the first or second input of a run or ten of a kind are said in one run.
///
/// ## References
/// Seed 001, escalation policy. OWASP ASI09, ASI10.
#[derive(Debug)]
pub struct EscalationTable;

static META: GuardMeta = GuardMeta {
    id: "escalation/table",
    hooks: &[Hook::Input, Hook::Action],
    owasp: &["ASI09", "ASI10"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for EscalationTable {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let memory = context.memory()?;
        let reading = &context.reading()?.monitors;
        let mut signals = Signals { drift: reading.drift, ..Signals::default() };
        let mut context_risk = reading.intent.action;
        match pending.subject {
            Subject::Input { label: Label::User, .. } => {}
            Subject::Action(action) => {
                let violations = memory.monitors.violations(reading, action, context.effects());
                signals.violations = u32::try_from(violations.len()).unwrap_or(u32::MAX);
                signals.uncertainty = action.confidence.map(|confidence| 1.0 - confidence);
                let did_more = action.tool().map_or(0, |tool| context.run.contained().more_by(tool));
                signals.tool_risk = risk(reading.tool_risk, did_more);
                let tool = action.tool().and_then(|name| context.bundle.registry.get(name));
                context_risk = tool.map_or(0.0, |tool| tool.risk);
            }
            _ => return Ok(Vec::new()),
        }
        let (settings, scores) = (&context.bundle.escalation, context.bundle.scores);
        let outcome = match settings.adaptive {
            None => settings.table.decide(&signals, scores),
            Some(sensitivity) => {
                let history = memory.monitors.history();
                settings
                    .table
                    .adapted(&Adaptive { sensitivity, context_risk, history })
                    .decide(&signals, scores)
            }
        };
        let verdict = outcome.level.verdict();
        if verdict == Verdict::Allow {
            return Ok(Vec::new());
        }
        let rule = format!("{}/row-{}", META.id, outcome.row);
        let rows = settings.table.rows();
        let mut finding = Finding::new(rule, verdict, message(&signals, &outcome, rows));
        match verdict {
            Verdict::Clarify => {
                finding = finding
                    .question("what exactly should be done, and why?")
                    .instead("ask the user and report the answer as input");
            }
            Verdict::Pause => {
                finding = finding.instead("wait for the user's next input, or for a person to resume the run")
            }
            _ => {}
        }
        Ok(vec![finding])
    }
}

/// The risk of a tool that the request does not cover, or that what the tool was seen to do shows, whichever is higher.
fn risk(uncovered: Option<f64>, did_more: u32) -> Option<f64> {
    if did_more == 0 {
        return uncovered;
    }
    let shown = (MORE_RISK * f64::from(did_more)).min(1.0);
    Some(uncovered.map_or(shown, |uncovered| uncovered.max(shown)))
}

/// `row 4 gives SOFT_STOP: drift 0.52; inactive without uncertainty: rows 3, 6`.
fn message(signals: &Signals, outcome: &Outcome, rows: &[Row]) -> String {
    let decided = outcome.row.checked_sub(1).and_then(|row| rows.get(row));
    let conditions = decided.map(|row| row.conditions.as_slice()).unwrap_or_default();
    let values: Vec<String> = conditions
        .iter()
        .filter_map(|condition| {
            let value = signals.get(condition.signal)?;
            Some(match condition.signal {
                Signal::Violations => format!("violations {value}"),
                signal => format!("{} {value:.2}", signal.as_str().replace('_', " ")),
            })
        })
        .collect();
    let mut message = format!("row {} gives {}: {}", outcome.row, outcome.level.as_str(), values.join(", "));
    if !outcome.inactive.is_empty() {
        let rows: Vec<String> = outcome.inactive.iter().map(ToString::to_string).collect();
        message.push_str(&format!("; inactive because a signal is not reported: row {}", rows.join(", ")));
    }
    message
}
