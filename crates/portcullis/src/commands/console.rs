//! `portcullis console`: links into the console.

use portcullis_gateway::api::MakeLink;
use serde_json::json;

use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

const EXAMPLES: &str = "\
Examples:
  portcullis console
  portcullis console --invite ada --role approver

Each link works once: one that signs in for five minutes, an invitation for a day. Making one needs the approver's \
credential of the state folder, and a daemon that was started with `portcullis serve --console`.";

/// Print a link that signs in to the console, or one that invites somebody
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Invite somebody of this name, who chooses a password with the link
    #[arg(long, value_name = "NAME")]
    invite: Option<String>,
    /// What they may do: viewer, approver, editor or admin
    #[arg(long, value_name = "ROLE", requires = "invite", default_value = "viewer", value_parser = ["viewer", "approver", "editor", "admin"])]
    role: String,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let daemon = Daemon::as_approver(global)?;
    let role = args.invite.is_some().then(|| args.role.clone());
    let make = MakeLink { invite: args.invite.clone(), role };
    let link = daemon.ask(|client| client.console_link(&make))?;
    let mut out = Out::new();
    match global.json {
        true => out.json(&json!({ "url": link.url, "origin": link.origin }))?,
        false => out.line(format_args!("{}", link.url))?,
    }
    out.finish()?;
    Ok(exit::YES)
}
