//! `portcullis approvals`: what waits for a person.

mod decide;
mod show;
mod watch;

use portcullis_core::limits::NOTE_BYTES_MAX;
use portcullis_gateway::api::{AnswerApproval, ApprovalFilter, RefuseApproval, RevokeApproval};

use self::decide::GrantArgs;
use self::watch::{Watching, watch};
use crate::cli::Global;
use crate::commands::completions::approval_ids;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

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

/// List calls that wait for a person, and decide on them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the calls that wait
    #[command(
        after_help = "Examples:\n  portcullis approvals list\n  portcullis approvals list --all --json"
    )]
    List {
        /// Those that were decided too
        #[arg(long)]
        all: bool,
    },
    /// Show one, with all that is needed to decide
    #[command(after_help = "Examples:\n  portcullis approvals show 3f81c2")]
    Show {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
    },
    /// Say yes: this call with these arguments, once
    #[command(after_help = decide::EXAMPLES)]
    Grant(GrantArgs),
    /// Say no, for the rest of the run
    #[command(
        after_help = "Examples:\n  portcullis approvals refuse 3f81c2 --note \"not without an invoice\""
    )]
    Refuse {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
        /// A note for the record and for the agent, which is told why
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Say neither: the agent gets a sentence, and may go on otherwise
    #[command(after_help = "Examples:\n  portcullis approvals answer 3f81c2 --note \"use the staging host\"")]
    Answer {
        /// The approval, or the start of its id
        #[arg(add = approval_ids())]
        id: String,
        /// What the agent is told
        #[arg(long, value_name = "TEXT")]
        note: String,
    },
    /// Take a yes back that was not used, or not used up
    #[command(after_help = "Examples:\n  portcullis approvals revoke 3f81c2")]
    Revoke {
        /// The approval, or the start of its id
        id: String,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Show who decided how much and how fast, and which rules ask most
    #[command(after_help = "Examples:\n  portcullis approvals stats\n  portcullis approvals stats --json")]
    Stats,
    /// Show the webhooks of the bundle, and what they still have to be told
    #[command(
        after_help = "Examples:\n  portcullis approvals webhooks\n  portcullis approvals webhooks --json"
    )]
    Webhooks,
    /// Wait for what comes next, show it and, at a terminal, decide it
    #[command(
        after_help = "Examples:\n  portcullis approvals watch\n  portcullis approvals watch --notify\n  portcullis approvals watch --once --json"
    )]
    Watch {
        /// Stop after the first
        #[arg(long)]
        once: bool,
        /// Show a desktop notification for each, with notify-send
        #[arg(long)]
        notify: bool,
    },
}

impl Command {
    fn note(&self) -> Option<&str> {
        match self {
            Self::Grant(args) => args.note.as_deref(),
            Self::Refuse { note, .. } | Self::Revoke { note, .. } => note.as_deref(),
            Self::Answer { note, .. } => Some(note),
            Self::List { .. } | Self::Show { .. } | Self::Stats | Self::Webhooks | Self::Watch { .. } => None,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(note) = args.command.note().filter(|note| note.len() > NOTE_BYTES_MAX) {
        let message = format!("the note has {} bytes; the limit is {NOTE_BYTES_MAX}", note.len());
        return Err(Failure::usage(message).help("shorten it, and refer to a longer text elsewhere"));
    }
    let daemon = Daemon::as_approver(global)?;
    let mut out = Out::new();
    let mut code = exit::YES;
    match &args.command {
        Command::List { all } => {
            let filter = if *all { ApprovalFilter::All } else { ApprovalFilter::Pending };
            let list = daemon.ask(|client| client.list_approvals(filter))?;
            show::list(&mut out, &list.approvals, list.queued.as_ref(), *all, global)?;
        }
        Command::Show { id } => {
            let approval = daemon.ask(|client| client.approval(id))?;
            show::show(&mut out, &approval, global)?;
        }
        Command::Grant(args) => code = decide::grant(&mut out, &daemon, args, global)?,
        Command::Refuse { id, note } => {
            let refusal = RefuseApproval { note: note.clone() };
            let approval = daemon.ask(|client| client.refuse(id, &refusal))?;
            show::decided(&mut out, &approval, global)?;
        }
        Command::Answer { id, note } => {
            let answer = AnswerApproval { note: note.clone() };
            let approval = daemon.ask(|client| client.answer(id, &answer))?;
            show::decided(&mut out, &approval, global)?;
        }
        Command::Revoke { id, note } => {
            let revocation = RevokeApproval { note: note.clone() };
            let approval = daemon.ask(|client| client.revoke(id, &revocation))?;
            show::decided(&mut out, &approval, global)?;
        }
        Command::Stats => {
            let stats = daemon.ask(|client| client.approval_stats())?;
            show::stats(&mut out, &stats, global)?;
        }
        Command::Webhooks => {
            let list = daemon.ask(|client| client.webhooks())?;
            show::webhooks(&mut out, &list.webhooks, global)?;
        }
        Command::Watch { once, notify } => {
            let watching = Watching { once: *once, notify: *notify };
            watch(&mut out, &daemon, watching, global)?;
        }
    }
    out.finish()?;
    Ok(code)
}
