//! `portcullis init`: drafts a bundle for an MCP server.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use portcullis_contain::{Contained, Drafted, Invocation, Output, Profile, Seen, Watch, draft};
use portcullis_gateway::init::{self, BehindGate, DraftOptions, DraftSummary, InitError};
use portcullis_gateway::mcp::RemoteServer;
use serde_json::json;

use crate::cli::Global;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;
use crate::out::{FAINT, GOOD, NOTICE, Out, STRONG, clean_line, count};

/// Folder of the bundle where none is named.
const BUNDLE: &str = "portcullis-bundle";

/// What to do where no tool is left.
const NO_TOOLS: &str = "a bundle classifies tools: see that the server lists some (its settings, or your rights there), \
and accept those that changed (`portcullis tools changed`); a server without tools needs no draft";

const EXAMPLES: &str = "\
Examples:
  portcullis init -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  portcullis init -o my-bundle -- portcullis demo-server /tmp/workspace
  portcullis init -o my-bundle --add -- uvx mcp-server-git
  portcullis init -o my-bundle --url https://mcp.example.com/mcp
  portcullis init --learn -o make.toml -- make
  portcullis init --learn --server files -o files.toml \\
      -- npx -y @modelcontextprotocol/server-filesystem .

Type, side effects, risk and effect arguments of each tool are inferred from its name, description, schema and \
hints, and marked `inferred`: read them and mend what is wrong. Existing files are never overwritten.";

/// Draft a bundle from the tools that an MCP server lists
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder of the bundle, `portcullis-bundle` without it; with --learn a new file for the profile
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Add the tools to the bundle in that folder; none of its files changes
    #[arg(long)]
    add: bool,
    /// Draft no bundle: run the command as `portcullis run` does, and print a profile from what it did. Without -o the
    /// command's standard output goes to standard error
    #[arg(long, conflicts_with = "add")]
    learn: bool,
    /// The command is the MCP server of this name: draft the table `[server."NAME".contain]` of a bundle. Put the whole
    /// line in place of the server in your client's configuration for a session; the draft is written when it ends
    #[arg(long, value_name = "NAME", requires_all = ["learn", "output"])]
    server: Option<String>,
    /// The address of a server that speaks Streamable HTTP, in place of a command. It is asked as `portcullis mcp --url`
    /// asks it, with the credential that is stored for it
    #[arg(long, value_name = "URL", value_parser = RemoteServer::new, conflicts_with_all = ["learn", "command"])]
    url: Option<RemoteServer>,
    /// The server and its arguments
    #[arg(last = true, required_unless_present = "url", value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.learn {
        return learn(args);
    }
    let folder = args.output.clone().unwrap_or_else(|| BUNDLE.into());
    let command = match &args.url {
        Some(server) => gate_in_front_of(server, global)?,
        None => args.command.clone(),
    };
    let behind_gate = match &args.url {
        Some(server) => Some(BehindGate { home: global.home()?, known_as: server.known_as() }),
        None => None,
    };
    let options = DraftOptions { command, folder, add: args.add, behind_gate };
    let runtime = runtime()?;
    let drafted = runtime.block_on(init::draft(options));
    runtime.shutdown_background();
    let summary = drafted.map_err(|error| match error {
        InitError::NoCommand => Failure::usage(error),
        InitError::NoTools { .. } => Failure::no(error).help(NO_TOOLS),
        error => Failure::unreadable(error),
    })?;
    tell(&summary, args, global)?;
    Ok(exit::YES)
}

/// The command by which a remote server is spoken to on standard input and output: the gate itself. So its credential
/// stays where it is kept, and both generations of the protocol are spoken.
fn gate_in_front_of(server: &RemoteServer, global: &Global) -> Result<Vec<OsString>, Failure> {
    let this = std::env::current_exe()
        .map_err(|error| Failure::unreadable(format!("this program's own file is not known: {error}")))?;
    let home = global.home()?.path().as_os_str().to_owned();
    let words = ["--home".into(), home, "mcp".into(), "--url".into(), server.address().into()];
    Ok([vec![this.into_os_string()], words.to_vec()].concat())
}

/// Runs a command contained with all that it does looked at, and prints a profile for review.
fn learn(args: &Args) -> Result<u8, Failure> {
    let (profile, root) = super::run::project_here()?;
    let profile = Profile { watch: Watch::All, ..profile };
    let mut words = args.command.iter().cloned();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned();
    let output = if args.output.is_some() { Output::Inherited } else { Output::ToErrors };
    let arguments = words.collect();
    let command = Invocation { program, arguments, output, forward_signals: true, ..Invocation::default() };
    // A file that cannot be made should not be found out after a long session.
    let mut file = match &args.output {
        Some(path) => Some(File::create_new(path).map_err(|error| unwritten(path, &error))?),
        None => None,
    };
    let (observed, did) = Contained::new()
        .and_then(|contained| contained.learn(&profile, &command))
        .map_err(super::run::refused)?;
    if observed.programs.seen == Seen::Nothing {
        return Err(Failure::unreadable(
            "this system does not let processes be traced: nothing could be learned",
        ));
    }
    let what = args.server.as_deref().map_or(Drafted::File(&name), Drafted::Server);
    let text = draft(what, &observed, &did, &profile, &root);
    if let (Some(file), Some(path)) = (&mut file, &args.output) {
        file.write_all(text.as_bytes()).map_err(|error| unwritten(path, &error))?;
        return Ok(observed.ended.code());
    }
    let mut out = Out::new();
    for line in text.lines() {
        out.line(format_args!("{}", clean_line(line)))?;
    }
    out.finish()?;
    Ok(observed.ended.code())
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unreadable(format!("`{}`: {error}", path.display()))
}

fn tell(summary: &DraftSummary, args: &Args, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        let tools: Vec<_> = summary
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "type": tool.tool_type, "risk": tool.risk,
                       "side_effecting": tool.side_effecting, "reasons": tool.reasons})
            })
            .collect();
        out.json(&json!({"folder": summary.folder, "files": summary.files, "server": summary.server,
                         "tools": tools, "warnings": summary.warnings}))?;
        return out.finish();
    }
    let width = summary.tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or(0);
    for tool in &summary.tools {
        let (style, effects) = if tool.side_effecting { (NOTICE, "side effects") } else { (GOOD, "reads") };
        out.line(format_args!(
            "  {:<width$}  {:<13} {style}{effects:<12}{style:#}  {FAINT}risk {:.1}{FAINT:#}",
            clean_line(&tool.name),
            tool.tool_type,
            tool.risk
        ))?;
    }
    for warning in &summary.warnings {
        out.line(format_args!("{NOTICE}warning{NOTICE:#}: {}", clean_line(warning)))?;
    }
    let tools = count(summary.tools.len(), "tool", "tools");
    let folder = summary.folder.display();
    let server = clean_line(&summary.server);
    match args.add {
        true => out.line(format_args!("added {server} ({tools}) to {STRONG}{folder}{STRONG:#}"))?,
        false => out.line(format_args!("drafted {STRONG}{folder}{STRONG:#} for {server} ({tools})"))?,
    }
    let server =
        args.url.as_ref().map_or_else(|| "-- …".to_owned(), |server| format!("--url {}", server.known_as()));
    out.next_step(format_args!(
        "next: read {folder}/tools, then `portcullis mcp --bundle {folder} {server}`"
    ))?;
    out.finish()
}
