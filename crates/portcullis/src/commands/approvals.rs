//! `portcullis approvals`: what waits for a person.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use portcullis_core::display::{block, line, start_of};
use portcullis_core::id::Digest;
use portcullis_core::limits::NOTE_BYTES_MAX;
use portcullis_gateway::api::{
    ApprovalFilter, ApprovalInfo, ApprovalPhase, GrantApproval, RefuseApproval, Scope,
};
use portcullis_gateway::client::ClientError;

use crate::cli::Global;
use crate::commands::completions::approval_ids;
use crate::daemon::{Daemon, told};
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, short};

/// Fewest digits of what `--shown` names.
const SHOWN_DIGITS_MIN: usize = 12;
/// Columns before the values of `show`.
const INDENT: usize = 14;
/// Characters of a tool's name in a list.
const TOOL_CHARS: usize = 48;
/// How often `watch` looks.
const WATCH: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  portcullis approvals list
  portcullis approvals show 3f81c2
  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be \\
      --note \"checked with the team\"
  portcullis approvals refuse 3f81c2
  portcullis approvals watch

A grant covers what was looked at and nothing that came after: at a terminal `grant` shows the request and asks, \
elsewhere `--shown` names the digest that `show` ends with. An id may be shortened to six digits or more. Deciding needs the approver's credential of the state folder.";

/// List and decide what waits for a person
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List what waits
    #[command(
        after_help = "Examples:\n  portcullis approvals list\n  portcullis approvals list --all --json"
    )]
    List {
        /// Those that were decided too
        #[arg(long)]
        all: bool,
    },
    /// Show one, with all that is needed to decide
    #[command(after_help = "Example:\n  portcullis approvals show 3f81c2")]
    Show {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
    },
    /// Say yes: this call with these arguments, once
    #[command(
        after_help = "Examples:\n  portcullis approvals grant 3f81c2\n  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be --effects\n  portcullis approvals grant 3f81c2 --shown 0d2f61c9a4be --tool \\\n      --note \"for today's import\""
    )]
    Grant {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
        /// What was looked at: the digest at the end of `show`, or the start of it
        #[arg(long, value_name = "DIGEST")]
        shown: Option<String>,
        /// Every call of the tool for the rest of the run
        #[arg(long, conflicts_with = "effects")]
        tool: bool,
        /// What holds this call, for the rest of the run: the same rules against the same resources
        #[arg(long)]
        effects: bool,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Say no, for the rest of the run
    #[command(
        after_help = "Example:\n  portcullis approvals refuse 3f81c2 --note \"not without an invoice\""
    )]
    Refuse {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
        /// A note for the record and for the agent, which is told why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Wait for what comes next, and show it
    #[command(
        after_help = "Examples:\n  portcullis approvals watch\n  portcullis approvals watch --once --json"
    )]
    Watch {
        /// Stop after the first
        #[arg(long)]
        once: bool,
    },
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Command::Grant { note: Some(note), .. } | Command::Refuse { note: Some(note), .. } = &args.command
        && note.len() > NOTE_BYTES_MAX
    {
        let message = format!("the note has {} bytes; the limit is {NOTE_BYTES_MAX}", note.len());
        return Err(Failure::usage(message).help("shorten it, and refer to a longer text elsewhere"));
    }
    let daemon = Daemon::as_approver(global)?;
    let mut out = Out::new();
    match &args.command {
        Command::List { all } => {
            let filter = if *all { ApprovalFilter::All } else { ApprovalFilter::Pending };
            let approvals = daemon.ask(|client| client.approvals(filter))?;
            list(&mut out, &approvals, *all, global)?;
        }
        Command::Show { id } => {
            let approval = daemon.ask(|client| client.approval(id))?;
            show(&mut out, &approval, global)?;
        }
        Command::Grant { id, shown, tool, effects, note } => {
            let scope = match (tool, effects) {
                (true, _) => Scope::Tool,
                (false, true) => Scope::Effects,
                (false, false) => Scope::Once,
            };
            let seen = daemon.ask(|client| client.approval(id))?;
            let Some(shown) = looked_at(&mut out, &seen, shown.as_deref(), global)? else {
                out.finish()?;
                return Ok(exit::NO);
            };
            let grant = GrantApproval { scope, shown: Some(shown), note: note.clone() };
            let approval = daemon.ask(|client| client.grant(id, &grant))?;
            decided(&mut out, &approval, global)?;
        }
        Command::Refuse { id, note } => {
            let refusal = RefuseApproval { note: note.clone() };
            let approval = daemon.ask(|client| client.refuse(id, &refusal))?;
            decided(&mut out, &approval, global)?;
        }
        Command::Watch { once } => watch(&mut out, &daemon, *once, global)?,
    }
    out.finish()?;
    Ok(exit::YES)
}

/// The digest of what the person looked at: the one that is given, or that of the request that is shown now, if the
/// person says yes to it. None where the person says no.
fn looked_at(
    out: &mut Out,
    seen: &ApprovalInfo,
    given: Option<&str>,
    global: &Global,
) -> Result<Option<Digest>, Failure> {
    let Some(shown) = seen.shown else {
        return Err(Failure::unreadable(
            "the daemon shows no digest of the request: it is older than this command",
        )
        .help("stop it and start it again: portcullis serve"));
    };
    if let Some(given) = given {
        let digest = shown.to_string();
        if given.len() >= SHOWN_DIGITS_MIN && digest.starts_with(given) {
            return Ok(Some(shown));
        }
        let id = short(&seen.approval);
        return Err(Failure::no(format!(
            "`--shown {given}` is not what approval {id} shows now: the run went on since, or there are fewer than {SHOWN_DIGITS_MIN} digits"
        ))
        .help(format!("review it again: portcullis approvals show {id}")));
    }
    if seen.state != ApprovalPhase::Pending {
        // The daemon says what is the matter with it.
        return Ok(Some(shown));
    }
    if global.json || !std::io::stdin().is_terminal() {
        let id = short(&seen.approval);
        return Err(Failure::usage(
            "a grant must name what was reviewed, and standard input is not a terminal",
        )
        .help(format!("give `--shown` with the digest that `portcullis approvals show {id}` ends with")));
    }
    show(out, seen, global)?;
    out.flush()?;
    let mut asks = std::io::stderr();
    write!(asks, "Let this call go ahead? [y/N] ")?;
    asks.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes").then_some(shown))
}

/// Shows each request that comes, until the command is ended or its credential refused. A daemon that is gone is waited
/// for: who watches would otherwise miss what comes after it is back.
fn watch(out: &mut Out, daemon: &Daemon, once: bool, global: &Global) -> Result<(), Failure> {
    let mut known: Option<BTreeSet<_>> = None;
    let mut away = false;
    let mut version = None;
    loop {
        let waiting = match daemon.try_ask(|client| client.next_approvals(version)) {
            Ok(list) => {
                version = list.version;
                list.approvals
            }
            Err(error @ ClientError::Refused { status: 400..500, .. }) => return Err(told(&error)),
            Err(error) => {
                if !std::mem::replace(&mut away, true) {
                    anstream::eprintln!("waiting for the daemon: {}", line(&error.to_string()));
                }
                std::thread::sleep(WATCH);
                continue;
            }
        };
        if std::mem::take(&mut away) {
            anstream::eprintln!("the daemon is back");
        }
        let known = known.get_or_insert_with(|| waiting.iter().map(|request| request.approval).collect());
        for request in waiting.iter().rev() {
            if !known.insert(request.approval) {
                continue;
            }
            let id = request.approval.to_string();
            let Ok(request) = daemon.try_ask(|client| client.approval(&id)) else {
                // It is looked at again; if it is gone by then, so is the question.
                known.remove(&request.approval);
                version = None;
                break;
            };
            show(out, &request, global)?;
            out.flush()?;
            if once {
                return Ok(());
            }
        }
        // The daemon waits for the next list, unless it is to be asked again or is of an earlier release.
        if version.is_none() {
            std::thread::sleep(WATCH);
        }
    }
}

fn word(phase: ApprovalPhase) -> (&'static str, anstyle::Style) {
    match phase {
        ApprovalPhase::Pending => ("pending", out::NOTICE),
        ApprovalPhase::Granted => ("granted", out::GOOD),
        ApprovalPhase::Claimed => ("claimed", out::GOOD),
        ApprovalPhase::Refused => ("refused", out::BAD),
        ApprovalPhase::Expired => ("expired", out::FAINT),
    }
}

fn list(out: &mut Out, approvals: &[ApprovalInfo], all: bool, global: &Global) -> Result<(), Failure> {
    if global.json {
        return approvals.iter().try_for_each(|approval| out.json(approval));
    }
    if approvals.is_empty() {
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
            start_of(&approval.tool, TOOL_CHARS)
        ))?;
    }
    Ok(())
}

fn show(out: &mut Out, approval: &ApprovalInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(approval);
    }
    let (word, style) = word(approval.state);
    out.line(format_args!("{style}{word}{style:#}  {}", approval.approval))?;
    let labels: Vec<String> = approval.labels.iter().map(ToString::to_string).collect();
    let json = |value: &serde_json::Value| format!("{value:#}");
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    let arguments = approval.arguments.as_ref().map_or_else(|| "not available".to_owned(), json);
    let width = out::terminal_width();
    for (name, value) in [
        ("run", approval.run.to_string()),
        ("principal", approval.principal.clone()),
        ("policy", approval.policy.clone()),
        ("tool", approval.tool.clone()),
        ("server", given(&approval.server)),
        ("arguments", arguments),
        ("answers", approval.continuation.as_ref().map(json).unwrap_or_default()),
        ("directory", given(&approval.directory)),
        ("planned", given(&approval.planned)),
        ("rule", given(&approval.rule)),
        ("reason", given(&approval.reason)),
        ("effects", effects(approval)),
        ("has seen", labels.join(", ")),
        ("requested", out::seconds(approval.requested_at)),
        ("expires", approval.expires_at.map(out::seconds).unwrap_or_default()),
        ("decided", approval.decided_at.map(out::seconds).unwrap_or_default()),
        ("by", given(&approval.decided_by)),
        ("note", given(&approval.note)),
        (
            "shown",
            approval.shown.as_ref().map(|shown| format!("{shown:.SHOWN_DIGITS_MIN$}")).unwrap_or_default(),
        ),
    ] {
        if !value.is_empty() {
            out.line(format_args!("  {name:<10}  {}", block(&value, INDENT, width)))?;
        }
    }
    Ok(())
}

/// What a grant for effects would cover, a rule a line.
fn effects(approval: &ApprovalInfo) -> String {
    let granted = approval.effects.iter().flatten();
    let lines: Vec<String> = granted
        .map(|granted| line(&format!("{}: {}", granted.rule, granted.resources.join(", "))).into_owned())
        .collect();
    lines.join("\n")
}

fn decided(out: &mut Out, approval: &ApprovalInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(approval);
    }
    let (word, style) = word(approval.state);
    let (tool, run) = (line(&approval.tool), short(&approval.run));
    out.line(format_args!("{style}{word}{style:#}  {}  {tool} in run {run}", short(&approval.approval)))
}
