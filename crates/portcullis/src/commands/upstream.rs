//! `portcullis upstream`: the gate's own logins for remote MCP servers.

use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use portcullis_gateway::upstream_auth::{
    LoggedOut, Login, Revocation, Standing, client_document, login, logout, probe, standings,
};
use serde_json::json;
use url::Url;

use crate::advice::advice;
use crate::cli::Global;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis upstream login tickets --url https://mcp.tickets.example/mcp
  portcullis upstream login tickets --scope tickets:write
  portcullis upstream status
  portcullis upstream try tickets
  portcullis upstream logout tickets
  portcullis upstream document https://gate.example/portcullis.json

Tokens are kept in `credentials/upstreams/` of the state folder, for this user alone, and go to that address alone. Tokens from \
files and commands, and credentials of the gate's own, stand in `upstreams.toml` there (docs/remote-auth.md).";

/// Log in to remote MCP servers on the gate's behalf
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Login(LoginArgs),
    /// Show what there is for which upstream, without secrets
    #[command(
        after_help = "Examples:\n  portcullis upstream status\n  portcullis upstream status tickets --json\n\nExit code 2: an upstream needs a login."
    )]
    Status {
        /// Only this one
        name: Option<String>,
    },
    /// Ask an upstream for nothing, to see whether it refuses the credential
    #[command(
        after_help = "Examples:\n  portcullis upstream try tickets\n  portcullis upstream try tickets --json"
    )]
    Try {
        /// The upstream
        name: String,
    },
    /// Forget a login, and have its tokens revoked where the authorization server offers that
    #[command(
        after_help = "Examples:\n  portcullis upstream logout tickets\n  portcullis upstream logout tickets --json\n\nExit code 2: the login is forgotten here, but its tokens could not be revoked."
    )]
    Logout {
        /// The upstream
        name: String,
    },
    Document(DocumentArgs),
}

/// Print the gate's client id metadata document, to be hosted at an address
///
/// Authorization servers that read such documents know the gate by that address, so that nobody has to register it: give it
/// to logins with `--client-document`, or to all of them as `client_document` in `upstreams.toml`.
#[derive(Debug, clap::Args)]
#[command(after_help = DOCUMENT_EXAMPLES)]
struct DocumentArgs {
    /// Where the document will be: `https`, with a path
    url: String,
    /// What people are shown when they agree
    #[arg(long, value_name = "NAME", default_value = "Portcullis")]
    name: String,
    /// A port of 127.0.0.1 where logins come back to, for servers that allow no others; otherwise the three that logins try
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
}

const DOCUMENT_EXAMPLES: &str = "\
Examples:
  portcullis upstream document https://gate.example/portcullis.json
  portcullis upstream document https://gate.example/portcullis.json --port 8765";

/// Log in: a browser opens, and comes back to this machine
#[derive(Debug, clap::Args)]
#[command(after_help = LOGIN_EXAMPLES)]
struct LoginArgs {
    /// A name for the upstream, as in the bundle
    name: String,
    /// Its address, unless it is known from before
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// The authorization server, where the upstream names several or none
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// The client that is registered there; otherwise the gate's document, or the gate registers itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The file with its secret, if it has one
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    /// The address of the gate's client id metadata document, for servers that read such documents
    #[arg(long, value_name = "URL")]
    client_document: Option<String>,
    /// A scope to ask for, besides those of the login before; otherwise what the upstream wants
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The port of 127.0.0.1 where the browser comes back to; otherwise one of the document, or any
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address alone; open no browser
    #[arg(long)]
    no_browser: bool,
    /// How long to wait for the person, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

const LOGIN_EXAMPLES: &str = "\
Examples:
  portcullis upstream login tickets --url https://mcp.tickets.example/mcp
  portcullis upstream login tickets --no-browser --port 8765
  portcullis upstream login tickets --issuer https://login.example
  portcullis upstream login tickets --client-id gate
  portcullis upstream login tickets --client-document https://g.example/c.json";

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Login(args) => log_in(args, global),
        Command::Status { name } => status(name.as_deref(), global),
        Command::Try { name } => try_out(name, global),
        Command::Logout { name } => log_out(name, global),
        Command::Document(args) => document(args),
    }
}

fn log_in(args: &LoginArgs, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let wanted = Login {
        name: args.name.clone(),
        url: args.url.clone(),
        issuer: args.issuer.clone(),
        client_id: args.client_id.clone(),
        client_secret_file: args.client_secret_file.clone(),
        client_document: args.client_document.clone(),
        scopes: args.scopes.clone(),
        port: args.port,
        patience: Duration::from_secs(args.timeout),
    };
    let mut told = Ok(());
    let done = runtime()?.block_on(login(&home, wanted, |address| {
        told = tell(address, global.json);
        if !args.no_browser {
            browse(address);
        }
    }));
    told?;
    done.map_err(|error| Failure::no(format!("the login for `{}` failed: {error}", args.name)))?;
    status(Some(&args.name), global)
}

/// Says where to agree.
fn tell(address: &Url, as_json: bool) -> Result<(), Failure> {
    let mut out = Out::new();
    match as_json {
        true => out.json(&json!({ "visit": address.as_str() }))?,
        false => out.line(format_args!("agree in a browser:\n  {address}"))?,
    }
    out.flush()
}

/// Opens a browser, where there is one. Whether it worked is nobody's business: the address was printed.
fn browse(address: &Url) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Program::new(program);
    command.arg(address.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut started) = command.spawn() {
        std::thread::spawn(move || started.wait());
    }
}

fn status(name: Option<&str>, global: &Global) -> Result<u8, Failure> {
    let all = standings(&global.home()?).map_err(Failure::unreadable)?;
    let shown: Vec<&Standing> = all.iter().filter(|of| name.is_none_or(|name| name == of.name)).collect();
    if let (Some(name), true) = (name, shown.is_empty()) {
        return Err(Failure::no(format!(
            "there is no credential for an upstream `{}`; run `portcullis upstream login NAME --url URL`",
            clean_line(name)
        )));
    }
    let mut out = Out::new();
    for standing in &shown {
        if global.json { out.json(standing)? } else { line(&mut out, standing)? }
    }
    if shown.is_empty() && !global.json {
        out.line(format_args!("there is no credential for any upstream"))?;
    }
    out.finish()?;
    let waits = shown.iter().any(|of| matches!(of.state, "login-needed" | "unusable"));
    Ok(if waits { exit::INCOMPLETE } else { exit::YES })
}

fn line(out: &mut Out, standing: &Standing) -> Result<(), Failure> {
    let Standing { name, url, source, state, why, issuer, scopes, expires_at_s: _ } = standing;
    let (style, words) = match *state {
        "ready" => (out::GOOD, "ready"),
        "renewable" => (out::GOOD, "ready, renewed with the next request"),
        "configured" => (out::GOOD, "configured, not tried"),
        "unusable" => (out::BAD, "cannot be used"),
        _ => (out::NOTICE, "needs a login"),
    };
    let from = issuer.as_deref().map(|issuer| format!(" at {issuer}")).unwrap_or_default();
    let of = if scopes.is_empty() { String::new() } else { format!(", scopes {}", scopes.join(" ")) };
    out.line(format_args!(
        "{:<16}  {style}{words}{style:#}  {}  ({source}{}{})",
        clean_line(name),
        clean_line(url),
        clean_line(&from),
        clean_line(&of)
    ))?;
    match why {
        Some(why) => out.line(format_args!("{:<16}  {}", "", clean_line(&advice(why)))),
        None => Ok(()),
    }
}

fn try_out(name: &str, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let status = runtime()?.block_on(probe(&home, name)).map_err(Failure::no)?;
    let mut out = Out::new();
    match global.json {
        true => out.json(&json!({ "name": name, "status": status }))?,
        false => out.line(format_args!(
            "`{}` does not refuse the credential (HTTP status {status})",
            clean_line(name)
        ))?,
    }
    out.finish()?;
    Ok(exit::YES)
}

fn document(args: &DocumentArgs) -> Result<u8, Failure> {
    let document = client_document(&args.url, &args.name, &args.ports).map_err(Failure::usage)?;
    let text = serde_json::to_string_pretty(&document).map_err(Failure::no)?;
    let mut out = Out::new();
    out.line(format_args!("{text}"))?;
    out.finish()?;
    Ok(exit::YES)
}

fn log_out(name: &str, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let out_of = runtime()?.block_on(logout(&home, name)).map_err(Failure::unreadable)?;
    let Some(LoggedOut { issuer, revocation }) = out_of else {
        return Err(Failure::no(format!("there is no login for an upstream `{}`", clean_line(name))));
    };
    let mut out = Out::new();
    if global.json {
        let why = if let Revocation::Failed(why) = &revocation { Some(why) } else { None };
        let revoked = revocation == Revocation::Revoked;
        out.json(&json!({ "logged_out": name, "issuer": issuer, "revoked": revoked, "why_not": why }))?;
    } else {
        let at =
            issuer.as_deref().map_or("the authorization server".to_owned(), |issuer| format!("`{issuer}`"));
        let told = match &revocation {
            Revocation::Revoked => format!("{at} has revoked its tokens"),
            Revocation::Ended => "it had ended, so that there was nothing to revoke".to_owned(),
            Revocation::NotOffered => {
                format!("{at} offers no revocation, so that copies of its tokens work until they expire")
            }
            Revocation::Failed(why) => format!(
                "its tokens could not be revoked ({why}); copies of them may work until they expire, so revoke them at {at}"
            ),
        };
        out.line(format_args!("the login for `{}` is forgotten; {}", clean_line(name), clean_line(&told)))?;
    }
    out.finish()?;
    Ok(if matches!(revocation, Revocation::Failed(_)) { exit::INCOMPLETE } else { exit::YES })
}
