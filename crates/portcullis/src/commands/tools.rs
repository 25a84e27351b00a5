//! `portcullis tools`: what tools are, how their arguments are read, and what servers made of them since.

mod explain;

use portcullis_core::id::Digest;
use portcullis_gateway::api::{AcceptTool, ChangedTool, ToolWords};
use similar::{ChangeTag, TextDiff};

use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis tools list
  portcullis tools explain send_email --arguments '{\"recipient\": \"ann@corp.example\"}'
  portcullis tools changed
  portcullis tools accept read_file --digest 9f2b…

A server can describe its tools anew at any time. What it listed first stands accepted; a tool that changed since is
kept from the agent, and its calls are held, until a person accepts the change.";

/// See the registry and how arguments are read; what servers changed about their tools, and accept it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the tools of a bundle, with the arguments that say what a call touches
    #[command(
        after_help = "Examples:\n  portcullis tools list\n  portcullis tools list --bundle my-bundle --json"
    )]
    List(explain::ListArgs),
    /// Show how a tool is classified, what its arguments hold and why, and the effects of a call
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Show the tools that changed since they were accepted; exits with 1 if there are any
    #[command(after_help = "Examples:\n  portcullis tools changed\n  portcullis tools changed --json")]
    Changed,
    /// Accept a tool as its server describes it now
    #[command(
        after_help = "Example:\n  portcullis tools accept read_file --server \"npx -y @modelcontextprotocol/server-filesystem /data\""
    )]
    Accept {
        /// Name of the tool
        tool: String,
        /// The command that starts its server, where several changed a tool of that name
        #[arg(long, value_name = "COMMAND")]
        server: Option<String>,
        /// Digest of the change that you read: if the tool changed again since, nothing is accepted
        #[arg(long, value_name = "HEX")]
        digest: Option<Digest>,
    },
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::List(args) => explain::list(args, global),
        Command::Explain(args) => explain::explain(args, global),
        command => changes(command, global),
    }
}

/// The commands that ask the daemon.
fn changes(command: &Command, global: &Global) -> Result<u8, Failure> {
    let daemon = Daemon::as_approver(global)?;
    let mut out = Out::new();
    let code = match command {
        Command::Changed => {
            let changed = daemon.ask(|client| client.changed_tools())?;
            show(&mut out, &changed, global)?;
            if changed.is_empty() { exit::YES } else { exit::NO }
        }
        Command::Accept { tool, server, digest } => {
            let accept = AcceptTool { tool: tool.clone(), server: server.clone(), digest: *digest };
            let accepted = daemon.ask(|client| client.accept_tool(&accept))?;
            if global.json {
                out.json(&accepted)?;
            } else {
                let good = out::GOOD;
                let runs = out::count(accepted.runs, "live run was told", "live runs were told");
                out.line(format_args!("{good}accepted{good:#}  {}  {runs}", clean_line(&accepted.tool)))?;
            }
            exit::YES
        }
        // These need no daemon.
        Command::List(_) | Command::Explain(_) => exit::YES,
    };
    out.finish()?;
    Ok(code)
}

fn show(out: &mut Out, changed: &[ChangedTool], global: &Global) -> Result<(), Failure> {
    if global.json {
        return changed.iter().try_for_each(|change| out.json(change));
    }
    if changed.is_empty() {
        return out.line(format_args!("no tool changed since it was accepted"));
    }
    let strong = out::STRONG;
    for change in changed {
        out.line(format_args!(
            "{strong}{}{strong:#}  of {}",
            clean_line(&change.tool),
            clean_line(&change.server)
        ))?;
        let (before, after) = (text(&change.accepted), text(&change.offered));
        for line in TextDiff::from_lines(&before, &after).iter_all_changes() {
            let (sign, style) = match line.tag() {
                ChangeTag::Delete => ('-', out::BAD),
                ChangeTag::Insert => ('+', out::GOOD),
                ChangeTag::Equal => (' ', out::FAINT),
            };
            let line = line.value().trim_end_matches('\n');
            out.line(format_args!("  {style}{sign} {}{style:#}", clean(line)))?;
        }
        out.line(format_args!(
            "  accept: portcullis tools accept {} --digest {}",
            clean_line(&change.tool),
            change.digest
        ))?;
    }
    Ok(())
}

/// A tool as text, for comparing line by line.
fn text(words: &ToolWords) -> String {
    format!("{}\n{:#}\n", words.description, words.input_schema)
}
