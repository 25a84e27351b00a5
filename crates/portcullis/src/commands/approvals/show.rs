//! How requests are shown at a terminal.

use portcullis_core::display::{block, line, start_of};
use portcullis_gateway::api::{ApprovalInfo, ApprovalPhase, Granted, QueuedInfo, Stats, Wanted, WebhookInfo};
use portcullis_gateway::request_text::fields;

use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{self, Out, short};

/// Columns before the values of `show`.
const INDENT: usize = 14;
/// Characters of a tool's name in a list.
const TOOL_CHARS: usize = 48;

fn word(phase: ApprovalPhase) -> (&'static str, anstyle::Style) {
    match phase {
        ApprovalPhase::Pending => ("pending", out::NOTICE),
        ApprovalPhase::Granted => ("granted", out::GOOD),
        ApprovalPhase::Claimed => ("claimed", out::GOOD),
        ApprovalPhase::Refused => ("refused", out::BAD),
        ApprovalPhase::Answered => ("answered", out::NOTICE),
        ApprovalPhase::Revoked => ("revoked", out::BAD),
        ApprovalPhase::Expired => ("expired", out::FAINT),
    }
}

pub(super) fn list(
    out: &mut Out,
    approvals: &[ApprovalInfo],
    queued: Option<&QueuedInfo>,
    all: bool,
    global: &Global,
) -> Result<(), Failure> {
    if global.json {
        return approvals.iter().try_for_each(|approval| out.json(approval));
    }
    if approvals.is_empty() && queued.is_none() {
        let nothing = if all { "there are no approvals" } else { "nothing is waiting for a person" };
        return out.line(format_args!("{nothing}"));
    }
    let strong = out::STRONG;
    let (id, state, run, requested, tool) = ("approval", "state", "run", "requested", "tool");
    out.line(format_args!("{strong}{id:<16}  {state:<7}  {run:<16}  {requested:<20}  {tool}{strong:#}"))?;
    for approval in approvals {
        let (word, style) = word(approval.state);
        out.line(format_args!(
            "{:<16}  {style}{word:<7}{style:#}  {:<16}  {:<20}  {}",
            short(&approval.approval),
            short(&approval.run),
            out::seconds(approval.requested_at),
            start_of(what(approval), TOOL_CHARS)
        ))?;
    }
    match queued {
        Some(queued) => out.line(format_args!("{}", waiting(queued))),
        None => Ok(()),
    }
}

/// What waits: the tool, or the agent's reply.
pub(super) fn what(approval: &ApprovalInfo) -> &str {
    match approval.action {
        Some(_) => &approval.tool,
        None => "reply",
    }
}

/// What waits beyond the questions of an hour, in a sentence.
pub(super) fn waiting(queued: &QueuedInfo) -> String {
    let most = queued.rule.as_ref().map_or_else(String::new, |rule| {
        format!("; `{}` asks most, {} in the last hour", line(rule), queued.of_rule)
    });
    format!("{} more are queued: the limit is {} questions an hour{most}", queued.waiting, queued.per_hour)
}

pub(super) fn show(out: &mut Out, approval: &ApprovalInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(approval);
    }
    let (word, style) = word(approval.state);
    out.line(format_args!("{style}{word}{style:#}  {}", approval.approval))?;
    let width = out::terminal_width();
    for (name, value) in fields(approval) {
        out.line(format_args!("  {name:<10}  {}", block(&value, INDENT, width)))?;
    }
    Ok(())
}

pub(super) fn decided(out: &mut Out, approval: &ApprovalInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(approval);
    }
    let (word, style) = match approval.state {
        // Others have to agree as well.
        ApprovalPhase::Pending => ("agreed", out::NOTICE),
        state => word(state),
    };
    let (tool, run) = (line(what(approval)), short(&approval.run));
    let missing = approval.wanted.as_ref().filter(|_| approval.state == ApprovalPhase::Pending).map(missing);
    let more = match missing {
        None => String::new(),
        Some(1) => "; 1 more approver must agree".to_owned(),
        Some(missing) => format!("; {missing} more approvers must agree"),
    };
    out.line(format_args!("{style}{word}{style:#}  {}  {tool} in run {run}{more}", short(&approval.approval)))
}

/// How many people still have to agree.
fn missing(wanted: &Wanted) -> u32 {
    wanted.quorum.saturating_sub(u32::try_from(wanted.agreed.len()).unwrap_or(u32::MAX))
}

/// What became of requests that were to be granted together.
pub(super) fn granted(out: &mut Out, granted: &Granted, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(granted);
    }
    for id in &granted.granted {
        let style = out::GOOD;
        out.line(format_args!("{style}granted{style:#}  {}", short(id)))?;
    }
    for skipped in &granted.skipped {
        let style = out::BAD;
        out.line(format_args!(
            "{style}skipped{style:#}  {}  {}",
            line(&skipped.approval),
            line(&skipped.message)
        ))?;
    }
    Ok(())
}

pub(super) fn webhooks(out: &mut Out, webhooks: &[WebhookInfo], global: &Global) -> Result<(), Failure> {
    if global.json {
        return webhooks.iter().try_for_each(|webhook| out.json(webhook));
    }
    if webhooks.is_empty() {
        return out.line(format_args!("the bundle has no webhooks; see docs/approvals.md"));
    }
    let strong = out::STRONG;
    let (name, host, waiting, delivered) = ("webhook", "host", "waiting", "delivered");
    out.line(format_args!(
        "{strong}{name:<20}  {host:<32}  {waiting:>7}  {delivered:>9}  last success{strong:#}"
    ))?;
    for webhook in webhooks {
        out.line(format_args!(
            "{:<20}  {:<32}  {:>7}  {:>9}  {}",
            line(&webhook.name),
            start_of(&webhook.host, 32),
            webhook.waiting,
            webhook.delivered,
            webhook.last_success.map_or_else(|| "never".to_owned(), out::seconds),
        ))?;
        if let Some(error) = &webhook.last_error {
            let bad = out::BAD;
            out.line(format_args!("{bad}  failed{bad:#}  {}", line(error)))?;
        }
    }
    Ok(())
}

pub(super) fn stats(out: &mut Out, stats: &Stats, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(stats);
    }
    let Some(since) = stats.since else { return out.line(format_args!("there are no approvals")) };
    let strong = out::STRONG;
    out.line(format_args!("since {}", out::seconds(since)))?;
    let (granted, refused, answered) = ("granted", "refused", "answered");
    let (approver, median, p90) = ("approver", "median", "90 %");
    out.line(format_args!(
        "{strong}{approver:<24}  {granted:>7}  {refused:>7}  {answered:>8}  {median:>8}  {p90:>8}{strong:#}"
    ))?;
    for one in &stats.approvers {
        out.line(format_args!(
            "{:<24}  {:>7}  {:>7}  {:>8}  {:>6} s  {:>6} s",
            start_of(&one.approver, 24),
            one.granted,
            one.refused,
            one.answered,
            one.median_s,
            one.p90_s
        ))?;
    }
    let (rule, asked, expired) = ("rule", "asked", "expired");
    out.line(format_args!(
        "{strong}{rule:<40}  {asked:>7}  {granted:>7}  {refused:>7}  {expired:>7}{strong:#}"
    ))?;
    for one in &stats.rules {
        out.line(format_args!(
            "{:<40}  {:>7}  {:>7}  {:>7}  {:>7}",
            start_of(&one.rule, 40),
            one.asked,
            one.granted,
            one.refused,
            one.expired
        ))?;
    }
    Ok(())
}
