//! `portcullis tools`: what tools are, how their arguments are read, and what servers made of them since.

mod explain;

use portcullis_gateway::api::{AcceptTool, AcceptTools, AcceptedTool, ChangedTool, ChangedTools, ToolWords};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::ask::{can_ask, says_yes};
use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis tools list
  portcullis tools explain send_email \\
      --arguments '{\"recipient\": \"ann@corp.example\"}'
  portcullis tools changed
  portcullis tools accept read_file --digest 9f2b41c07d3e

A server can describe its tools anew at any time. What it listed first stands accepted; a tool that changed since is \
kept from the agent, and its calls are held, until a person accepts the change. An upgrade of a server changes many \
tools at once: `tools changed` shows them all, and how to accept the whole list.";

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
    /// Accept a tool as its server describes it now, or all that `tools changed` shows
    #[command(
        after_help = "Examples:\n  portcullis tools accept read_file --digest 9f2b41c07d3e \\\n      --server \"npx -y @modelcontextprotocol/server-filesystem /data\"\n  portcullis tools accept --all --digest 9f2b41c07d3e"
    )]
    Accept {
        /// Name of the tool
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        tool: Option<String>,
        /// Accept every change of the list that you read, which --digest names
        #[arg(long, requires = "digest", conflicts_with = "server")]
        all: bool,
        /// The command that starts its server, where several changed a tool of that name
        #[arg(long, value_name = "COMMAND")]
        server: Option<String>,
        /// What you read, as `tools changed` names it: if it changed again since, nothing is accepted. Without it, at a
        /// terminal, the change is shown and you are asked
        #[arg(long, value_name = "HEX", value_parser = digits)]
        digest: Option<String>,
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
            if changed.changed.is_empty() { exit::YES } else { exit::NO }
        }
        Command::Accept { tool: Some(tool), server, digest, .. } => {
            let digest = match digest {
                Some(digest) => Some(digest.clone()),
                None => read_now(&mut out, &daemon, (tool, server.as_deref()), global)?,
            };
            let Some(digest) = digest else { return Ok(exit::NO) };
            let accept = AcceptTool { tool: tool.clone(), server: server.clone(), digest: Some(digest) };
            accepted(&mut out, &daemon.ask(|client| client.accept_tool(&accept))?, global)?;
            exit::YES
        }
        Command::Accept { tool: None, digest, .. } => {
            let accept = AcceptTools { digest: digest.clone().unwrap_or_default() };
            let all = daemon.ask(|client| client.accept_tools(&accept))?.accepted;
            all.iter().try_for_each(|one| accepted(&mut out, one, global))?;
            if all.is_empty() && !global.json {
                out.line(format_args!("none of the changes can be accepted, because none can be read"))?;
            }
            if all.is_empty() { exit::NO } else { exit::YES }
        }
        // These need no daemon.
        Command::List(_) | Command::Explain(_) => exit::YES,
    };
    out.finish()?;
    Ok(code)
}

/// The digest of a change that a person reads now and says yes to; none where they say no.
fn read_now(
    out: &mut Out,
    daemon: &Daemon,
    (tool, server): (&str, Option<&str>),
    global: &Global,
) -> Result<Option<String>, Failure> {
    if !can_ask(global) {
        return Err(Failure::usage(
            "whoever accepts a tool must name what they read, and standard input is not a terminal",
        )
        .help("give `--digest` with the digits that `portcullis tools changed` shows"));
    }
    let mut list = daemon.ask(|client| client.changed_tools())?;
    list.changed.retain(|change| change.tool == tool && server.is_none_or(|server| change.server == server));
    let Ok([change]) = <[ChangedTool; 1]>::try_from(list.changed) else {
        return Err(Failure::no(format!("there is not one change of a tool `{tool}` to accept"))
            .help("`portcullis tools changed` shows what changed; where several servers have a tool of that name, --server names one"));
    };
    entry(out, &change)?;
    // The daemon says what is the matter with one that cannot be read.
    if change.unreadable.is_some() || says_yes(out, "Accept this tool as it is now?")? {
        return Ok(Some(change.digest.to_string()));
    }
    Ok(None)
}

/// A digest, or the start of one.
fn digits(text: &str) -> Result<String, String> {
    let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hex && (12..=64).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err("give the 12 to 64 lower-case hex digits that `portcullis tools changed` shows".to_owned())
    }
}

fn accepted(out: &mut Out, accepted: &AcceptedTool, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(accepted);
    }
    let good = out::GOOD;
    let runs = out::count(accepted.runs, "live run was told", "live runs were told");
    out.line(format_args!("{good}accepted{good:#}  {}  {runs}", clean_line(&accepted.tool)))
}

fn show(out: &mut Out, list: &ChangedTools, global: &Global) -> Result<(), Failure> {
    if global.json {
        return list.changed.iter().try_for_each(|change| out.json(change));
    }
    if list.changed.is_empty() {
        return out.line(format_args!("no tool changed since it was accepted"));
    }
    for change in &list.changed {
        entry(out, change)?;
        if change.unreadable.is_none() {
            let command = format!("portcullis tools accept {} --digest {}", word(&change.tool), change.short);
            out.next_step(format_args!("  accept: {command}"))?;
        }
    }
    if list.changed.len() > 1 {
        let command = format!("portcullis tools accept --all --digest {}", list.short);
        out.next_step(format_args!("accept all of them: {command}"))?;
    }
    Ok(())
}

/// A tool that changed, and how.
fn entry(out: &mut Out, change: &ChangedTool) -> Result<(), Failure> {
    let strong = out::STRONG;
    out.line(format_args!(
        "{strong}{}{strong:#}  of {}",
        clean_line(&change.tool),
        clean_line(&change.server)
    ))?;
    let Some(why) = &change.unreadable else { return difference(out, change) };
    let bad = out::BAD;
    out.line(format_args!("  {bad}cannot be read{bad:#}: {}", clean_line(why)))?;
    out.line(format_args!("  It stays hidden until its server lists it otherwise."))
}

/// A name as a word of a shell command; a placeholder where it would need more than quotes.
fn word(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@".contains(&byte);
    match name {
        name if !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain) => name.to_owned(),
        name if name.chars().all(|letter| !letter.is_control() && letter != '\'')
            && !name.starts_with('-') =>
        {
            format!("'{}'", clean_line(name))
        }
        _ => "NAME".to_owned(),
    }
}

fn difference(out: &mut Out, change: &ChangedTool) -> Result<(), Failure> {
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
    Ok(())
}

/// A tool as text, for comparing line by line.
fn text(words: &ToolWords) -> String {
    let rest = words.rest.as_ref().and_then(Value::as_object).filter(|rest| !rest.is_empty());
    let rest = rest.map(|rest| format!("{:#}\n", Value::Object(rest.clone()))).unwrap_or_default();
    let schema = match &words.input_schema {
        Value::Null => String::new(),
        schema => format!("{schema:#}\n"),
    };
    format!("{}\n{schema}{rest}", words.description)
}
