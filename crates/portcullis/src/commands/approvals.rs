//! `portcullis approvals`: what waits for a person.

use portcullis_gateway::api::{
    ApprovalFilter, ApprovalInfo, ApprovalPhase, GrantApproval, RefuseApproval, Scope,
};

use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line, short};

const EXAMPLES: &str = "\
Examples:
  portcullis approvals list
  portcullis approvals show 3f81c2
  portcullis approvals grant 3f81c2 --note \"checked with the team\"
  portcullis approvals refuse 3f81c2

An id may be shortened to six digits or more. Deciding needs the approver's credential of the state folder.";

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
        id: String,
    },
    /// Say yes: this call with these arguments, once
    #[command(
        after_help = "Examples:\n  portcullis approvals grant 3f81c2\n  portcullis approvals grant 3f81c2 --effects\n  portcullis approvals grant 3f81c2 --tool --note \"for today's import\""
    )]
    Grant {
        /// The approval, or the start of its id
        id: String,
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
    /// Say no
    #[command(
        after_help = "Example:\n  portcullis approvals refuse 3f81c2 --note \"not without an invoice\""
    )]
    Refuse {
        /// The approval, or the start of its id
        id: String,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
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
        Command::Grant { id, tool, effects, note } => {
            let scope = match (tool, effects) {
                (true, _) => Scope::Tool,
                (false, true) => Scope::Effects,
                (false, false) => Scope::Once,
            };
            let grant = GrantApproval { scope, note: note.clone() };
            let approval = daemon.ask(|client| client.grant(id, &grant))?;
            decided(&mut out, &approval, global)?;
        }
        Command::Refuse { id, note } => {
            let refusal = RefuseApproval { note: note.clone() };
            let approval = daemon.ask(|client| client.refuse(id, &refusal))?;
            decided(&mut out, &approval, global)?;
        }
    }
    out.finish()?;
    Ok(exit::YES)
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
        let nothing = if all { "there are no approvals" } else { "nothing waits for a person" };
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
            clean_line(&approval.tool)
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
    let arguments = match &approval.arguments {
        Some(arguments) => format!("{arguments:#}").replace('\n', "\n             "),
        None => "not at hand".to_owned(),
    };
    for (name, value) in [
        ("run", approval.run.to_string()),
        ("principal", approval.principal.clone()),
        ("policy", approval.policy.clone()),
        ("tool", approval.tool.clone()),
        ("arguments", arguments),
        ("planned", approval.planned.clone().unwrap_or_default()),
        ("rule", approval.rule.clone().unwrap_or_default()),
        ("reason", approval.reason.clone().unwrap_or_default()),
        ("effects", effects(approval)),
        ("has seen", labels.join(", ")),
        ("requested", out::seconds(approval.requested_at)),
        ("expires", approval.expires_at.map(out::seconds).unwrap_or_default()),
    ] {
        if !value.is_empty() {
            out.line(format_args!("  {name:<9}  {}", clean(&value)))?;
        }
    }
    Ok(())
}

/// What a grant for effects would cover, a rule a line.
fn effects(approval: &ApprovalInfo) -> String {
    let granted = approval.effects.iter().flatten();
    let lines: Vec<String> =
        granted.map(|granted| format!("{}: {}", granted.rule, granted.resources.join(", "))).collect();
    lines.join("\n             ")
}

fn decided(out: &mut Out, approval: &ApprovalInfo, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(approval);
    }
    let (word, style) = word(approval.state);
    let (tool, run) = (clean_line(&approval.tool), short(&approval.run));
    out.line(format_args!("{style}{word}{style:#}  {}  {tool} in run {run}", short(&approval.approval)))
}
