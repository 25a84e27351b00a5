//! `portcullis run --ticket T`: an action that the daemon permitted to run contained.
//!
//! The daemon gives the profile for the ticket, once. Where it does not, nothing is run. Afterwards it is told what was
//! observed.

use std::io::Write as _;
use std::path::PathBuf;

use portcullis_contain::{Contained, Invocation, Missing, settle};
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::ReportObserved;
use portcullis_gateway::client::Client;
use portcullis_session::engine::Ticket;
use tokio::runtime::Runtime;

use super::{Args, refused, say, tell};
use crate::cli::Global;
use crate::failure::Failure;
use crate::out::clean_line;

pub(super) fn run(text: &str, args: &Args, global: &Global) -> Result<u8, Failure> {
    let ticket = Ticket::from_text(text)
        .ok_or_else(|| Failure::usage("a ticket has 64 hex digits").help("the command was not run"))?;
    // The thread that waits for the command has to be the one that begins it, so nothing of it is asynchronous.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::unreadable(format!("cannot start: {error}")))?;
    let client = Client::new(global.home()?, CredentialKind::Agent);
    let taken = runtime.block_on(client.take_ticket(ticket)).map_err(|error| {
        Failure::unreadable(format!("the daemon gives no profile: {error}"))
            .help("the command was not run; have the agent make the call again")
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let digest = taken.profile.digest();
    let profile = settle(taken.profile, home.as_deref(), Missing::Made).map_err(refused)?;
    let mut words = args.command.iter().cloned();
    let command = Invocation {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        forward_signals: true,
        ..Invocation::default()
    };
    let observed =
        Contained::new().and_then(|contained| contained.run(&profile, &command)).map_err(refused)?;
    tell(&args.json, &observed)?;
    say(&observed, &profile, true);
    let code = observed.ended.code();
    let report = ReportObserved {
        action: Some(taken.action),
        call: None,
        server: None,
        ticket: Some(ticket),
        profile_digest: digest,
        observed: Some(observed),
        connection: None,
    };
    report_to(&runtime, &client, &report, taken.run);
    Ok(code)
}

/// The command has run: that this fails changes nothing about it, and is said.
fn report_to(runtime: &Runtime, client: &Client, report: &ReportObserved, run: portcullis_core::id::RunId) {
    if let Err(error) = runtime.block_on(client.observed(run, report)) {
        let line = format!("what the command did could not be recorded: {error}");
        let _unwritten = writeln!(std::io::stderr(), "portcullis: {}", clean_line(&line));
    }
}
