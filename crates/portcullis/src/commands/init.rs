//! `portcullis init`: drafts a bundle for an MCP server.

use std::ffi::OsString;
use std::path::PathBuf;

use portcullis_gateway::init::{self, DraftOptions, DraftSummary, InitError};
use serde_json::json;

use crate::cli::Global;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;
use crate::out::{FAINT, GOOD, NOTICE, Out, STRONG, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis init -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  portcullis init -o my-bundle -- portcullis demo-server /tmp/workspace
  portcullis init -o my-bundle --add -- uvx mcp-server-git

Type, side effects, risk and effect arguments of each tool are inferred from its name, description, schema and \
hints, and marked `inferred`: read them and mend what is wrong. Existing files are never overwritten.";

/// Draft a bundle from the tools that an MCP server lists
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder of the bundle
    #[arg(long, short, value_name = "DIR", default_value = "portcullis-bundle")]
    output: PathBuf,
    /// Add the tools to the bundle in that folder; none of its files changes
    #[arg(long)]
    add: bool,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let options = DraftOptions { command: args.command.clone(), folder: args.output.clone(), add: args.add };
    let runtime = runtime()?;
    let drafted = runtime.block_on(init::draft(options));
    runtime.shutdown_background();
    let summary = drafted.map_err(|error| match error {
        InitError::NoCommand => Failure::usage(error),
        error => Failure::unreadable(error),
    })?;
    tell(&summary, args.add, global)?;
    Ok(exit::YES)
}

fn tell(summary: &DraftSummary, added: bool, global: &Global) -> Result<(), Failure> {
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
    match added {
        true => out.line(format_args!("added {server} ({tools}) to {STRONG}{folder}{STRONG:#}"))?,
        false => out.line(format_args!("drafted {STRONG}{folder}{STRONG:#} for {server} ({tools})"))?,
    }
    out.line(format_args!("next: read {folder}/tools, then `portcullis mcp --bundle {folder} -- …`"))?;
    out.finish()
}
