//! `portcullis runs`: what agents do and did.

mod payloads;

use portcullis_core::event::{About, Control, Event, EventBody};
use portcullis_core::freeze::Frozen;
use portcullis_gateway::api::{ControlRun, RunInfo, RunPhase};

use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, FAINT, Out, clean_line, short};

/// Runs that are listed unless told otherwise.
const LIST_DEFAULT: u32 = 20;
/// Events asked for at a time.
const EVENTS_PAGE: u32 = 1_000;

const EXAMPLES: &str = "\
Examples:
  portcullis runs list
  portcullis runs events 0199ab3c
  portcullis runs halt 0199ab3c --note \"it writes to the wrong folder\"

An id may be shortened to six digits or more. Halting, pausing and resuming need the approver's credential of \
the state folder.";

/// List, show and take hold of runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the latest runs
    #[command(after_help = "Examples:\n  portcullis runs list --limit 5")]
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = LIST_DEFAULT)]
        limit: u32,
    },
    /// Show one run
    #[command(
        after_help = "Examples:\n  portcullis runs show 0199ab3c\n  portcullis runs show 0199ab3c --payloads"
    )]
    Show {
        /// The run, or the start of its id
        #[arg(add = run_ids())]
        run: String,
        /// The texts of the run too: what was asked, arguments, results, replies. Takes the approver's credential, or
        /// the agent's for runs of its own principal
        #[arg(long)]
        payloads: bool,
    },
    /// Print the events of a run; with --json the stored lines, byte for byte
    #[command(
        after_help = "Examples:\n  portcullis runs events 0199ab3c\n  portcullis runs events 0199ab3c --after 40 --json"
    )]
    Events {
        /// The run, or the start of its id
        #[arg(add = run_ids())]
        run: String,
        /// Only events with a higher number
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
    },
    /// End a run; only a person resumes it
    #[command(after_help = "Examples:\n  portcullis runs halt 0199ab3c --note \"wrong folder\"")]
    Halt(ControlArgs),
    /// Make a run wait for an input or a resume
    #[command(after_help = "Examples:\n  portcullis runs pause 0199ab3c")]
    Pause(ControlArgs),
    /// Let a halted or paused run go on
    #[command(after_help = "Examples:\n  portcullis runs resume 0199ab3c")]
    Resume(ControlArgs),
}

#[derive(Debug, clap::Args)]
struct ControlArgs {
    /// The run, or the start of its id
    #[arg(add = run_ids())]
    run: String,
    /// A note for the record
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let daemon = match &args.command {
        Command::Show { .. } => Daemon::as_reader(global)?,
        _ => Daemon::as_approver(global)?,
    };
    let mut out = Out::new();
    match &args.command {
        Command::List { limit } => {
            let runs = daemon.ask(|client| client.runs(limit.saturating_add(1)))?;
            list(&mut out, &runs, *limit, global)?;
        }
        Command::Show { run, payloads } => {
            show(&mut out, &daemon.ask(|client| client.run(run))?, global)?;
            if *payloads {
                payloads::show(&mut out, &daemon, run, global)?;
            }
        }
        Command::Events { run, after } => events(&mut out, &daemon, run, *after, global)?,
        Command::Halt(args) => control(&mut out, &daemon, args, Control::Halt, global)?,
        Command::Pause(args) => control(&mut out, &daemon, args, Control::Pause, global)?,
        Command::Resume(args) => control(&mut out, &daemon, args, Control::Resume, global)?,
    }
    out.finish()?;
    Ok(exit::YES)
}

fn word(run: &RunInfo) -> (&'static str, anstyle::Style) {
    match run.phase {
        RunPhase::Closed => ("closed", out::FAINT),
        RunPhase::Abandoned => ("abandoned", out::NOTICE),
        _ if run.frozen == Some(Frozen::Everything) => ("frozen", out::BAD),
        _ if run.frozen == Some(Frozen::SideEffects) => ("reads only", out::NOTICE),
        RunPhase::Running => ("running", out::GOOD),
        RunPhase::Clarifying => ("clarifying", out::NOTICE),
        RunPhase::Paused => ("paused", out::NOTICE),
        RunPhase::Halted => ("halted", out::BAD),
    }
}

/// Lists the latest runs, of which there may be one more than the limit, and says that there are more.
fn list(out: &mut Out, runs: &[RunInfo], limit: u32, global: &Global) -> Result<(), Failure> {
    let (runs, more) = runs.split_at_checked(limit as usize).unwrap_or((runs, &[]));
    if global.json {
        return runs.iter().try_for_each(|run| out.json(run));
    }
    if runs.is_empty() {
        return out.line(format_args!("there are no runs yet"));
    }
    let strong = out::STRONG;
    let (run, phase, opened, steps, effects, policy) =
        ("run", "phase", "opened", "steps", "effects", "policy");
    out.line(format_args!(
        "{strong}{run:<16}  {phase:<10}  {opened:<20}  {steps:>5}  {effects:>7}  {policy}{strong:#}"
    ))?;
    for run in runs {
        let (word, style) = word(run);
        out.line(format_args!(
            "{:<16}  {style}{word:<10}{style:#}  {:<20}  {:>5}  {:>7}  {}",
            short(&run.run),
            out::seconds(run.opened_at),
            run.steps,
            run.side_effects,
            clean_line(&run.policy)
        ))?;
    }
    if !more.is_empty() {
        out.line(format_args!(
            "{FAINT}there are more: --limit {} shows as many{FAINT:#}",
            limit.saturating_mul(2).max(1)
        ))?;
    }
    Ok(())
}

fn show(out: &mut Out, run: &RunInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(run);
    }
    let (word, style) = word(run);
    out.line(format_args!("{style}{word}{style:#}  {}", run.run))?;
    let mode = serde_json::to_value(run.mode).unwrap_or_default();
    for (name, value) in [
        ("surface", run.surface.clone()),
        ("session", run.session.clone().unwrap_or_else(|| "uncorrelated".to_owned())),
        ("principal", run.principal.clone()),
        ("policy", run.policy.clone()),
        ("bundle", run.bundle.to_string()),
        ("mode", mode.as_str().unwrap_or_default().to_owned()),
        ("opened", out::seconds(run.opened_at)),
        ("steps", run.steps.to_string()),
        ("effects", format!("{} executed", run.side_effects)),
        ("events", run.events.to_string()),
    ] {
        out.line(format_args!("  {name:<9}  {}", clean_line(&value)))?;
    }
    if let Some(frozen) = run.frozen {
        let frozen = frozen.as_str().replace('_', " ");
        out.line(format_args!("  {:<9}  {frozen}; its phase is {}", "frozen", run.phase))?;
    }
    let kin = run.parent.iter().map(|parent| ("parent", parent));
    for (name, run) in kin.chain(run.children.iter().map(|child| ("child", child))) {
        out.line(format_args!("  {name:<9}  {run}"))?;
    }
    for erasure in &run.erasures {
        let reason = erasure.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        out.line(format_args!(
            "  {:<9}  {} on {} by {}{}",
            "erased",
            out::count(erasure.payloads, "payload", "payloads"),
            out::seconds(erasure.at),
            clean_line(&erasure.by),
            clean_line(&reason)
        ))?;
    }
    Ok(())
}

fn events(out: &mut Out, daemon: &Daemon, run: &str, after: u64, global: &Global) -> Result<(), Failure> {
    let mut after = after;
    loop {
        // Machines get the stored lines, byte for byte; people the words that belong to them, too.
        let page = match global.json {
            true => daemon.ask(|client| client.events(run, after, EVENTS_PAGE))?,
            false => daemon.ask(|client| client.events_joined(run, after, EVENTS_PAGE))?,
        };
        for line in page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if global.json {
                out.verbatim(line)?;
                continue;
            }
            let event = Event::from_line(line)
                .map_err(|error| Failure::unreadable(error).help("--json prints the lines as they are"))?;
            let (kind, faint) = (event.body.kind(), out::FAINT);
            let line = format!(
                "{:>6}  {faint}{}{faint:#}  {kind:<18}  {}",
                event.seq,
                out::seconds(event.t),
                clean_line(&detail(&event))
            );
            out.line(format_args!("{}", line.trim_end()))?;
        }
        match page.next {
            Some(next) if next > after => {
                // Nobody waits for the rest once nobody reads.
                out.flush()?;
                after = next;
            }
            _ => return Ok(()),
        }
    }
}

/// What an event says, in a few words.
fn detail(event: &Event) -> String {
    let name = |value: Result<serde_json::Value, serde_json::Error>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    match &event.body {
        EventBody::RunOpened(opened) => {
            format!("{} for {}, policy {}", opened.surface, opened.principal.id, opened.policy)
        }
        EventBody::Config(change) => {
            let change = serde_json::to_value(change).unwrap_or_default();
            change.get("change").and_then(|change| change.as_str()).unwrap_or_default().to_owned()
        }
        EventBody::Observation { label, tainted: Some(tainted), .. } => {
            format!("from {label}, with what {tainted} wrote there before")
        }
        EventBody::Input { label } | EventBody::Observation { label, .. } => format!("from {label}"),
        EventBody::Proposed(proposed) => {
            format!("step {}: {}", proposed.step, proposed.tool.as_deref().unwrap_or("thinking"))
        }
        EventBody::Verdict(record) => match (&record.rule, &record.reason) {
            (Some(rule), Some(reason)) => format!("{} {rule}: {reason}", record.verdict),
            _ => record.verdict.to_string(),
        },
        EventBody::Enforcement { enforced, contained: Some(contained), .. } => {
            format!("{}, contained: {}", name(serde_json::to_value(enforced)), contained.profile)
        }
        EventBody::Enforcement { enforced, .. } => name(serde_json::to_value(enforced)),
        EventBody::Observed(record) => record.to_string(),
        EventBody::ApprovalRequested { approval, about: About::Text(reply), .. } => {
            format!("{} for the reply of event {reply}", short(approval))
        }
        EventBody::ApprovalRequested { approval, tool, .. } => format!("{} for {tool}", short(approval)),
        EventBody::ApprovalDecided { approval, decision, note, .. } => {
            let note = note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
            format!("{} {} by {}{note}", short(approval), name(serde_json::to_value(decision)), event.actor)
        }
        EventBody::GrantClaimed { approval, .. } => short(approval),
        EventBody::Outcome { status, .. } => name(serde_json::to_value(status)),
        EventBody::Output {} => String::new(),
        EventBody::Evidence { name, .. } => name.clone(),
        EventBody::Work(record) => record.to_string(),
        EventBody::State(record) => record.to_string(),
        EventBody::Fact(record) => record.to_string(),
        EventBody::Control { control, note } => {
            let note = note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
            format!("{} by {}{note}", name(serde_json::to_value(control)), event.actor)
        }
        EventBody::Gap { from, to, cause } => format!("events {from} to {to} are lost: {cause}"),
        EventBody::RunClosed { state, .. } => name(serde_json::to_value(state)),
    }
}

fn control(
    out: &mut Out,
    daemon: &Daemon,
    args: &ControlArgs,
    control: Control,
    global: &Global,
) -> Result<(), Failure> {
    let request = ControlRun { control, note: args.note.clone() };
    daemon.ask(|client| client.control(&args.run, &request))?;
    let run = daemon.ask(|client| client.run(&args.run))?;
    if global.json {
        return out.json(&run);
    }
    let (word, style) = word(&run);
    out.line(format_args!("{style}{word}{style:#}  {}", run.run))
}
