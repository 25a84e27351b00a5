//! `portcullis upstream`: the gate's own logins for remote MCP servers.

use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use portcullis_gateway::upstream_auth::{Login, Standing, login, logout, probe, standings};
use serde_json::json;
use url::Url;

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
    /// Forget a login; the authorization server is not told
    #[command(after_help = "Examples:\n  portcullis upstream logout tickets")]
    Logout {
        /// The upstream
        name: String,
    },
}

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
    /// The client that is registered there; otherwise the gate registers itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The file with its secret, if it has one
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    /// A scope to ask for, besides those of the login before; otherwise what the upstream wants
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The port of 127.0.0.1 where the browser comes back to; otherwise any
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
  portcullis upstream login tickets --client-id gate";

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Login(args) => log_in(args, global),
        Command::Status { name } => status(name.as_deref(), global),
        Command::Try { name } => try_out(name, global),
        Command::Logout { name } => log_out(name, global),
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
    let waits = shown.iter().any(|of| of.state == "login-needed");
    Ok(if waits { exit::INCOMPLETE } else { exit::YES })
}

fn line(out: &mut Out, standing: &Standing) -> Result<(), Failure> {
    let Standing { name, url, source, state, issuer, scopes, expires_at_s: _ } = standing;
    let (style, words) = match *state {
        "ready" => (out::GOOD, "ready"),
        "renewable" => (out::GOOD, "ready, renewed with the next request"),
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
    ))
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

fn log_out(name: &str, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let there_was = runtime()?.block_on(logout(&home, name)).map_err(Failure::unreadable)?;
    if !there_was {
        return Err(Failure::no(format!("there is no login for an upstream `{}`", clean_line(name))));
    }
    let mut out = Out::new();
    match global.json {
        true => out.json(&json!({ "logged_out": name }))?,
        false => out.line(format_args!("the login for `{}` is forgotten", clean_line(name)))?,
    }
    out.finish()?;
    Ok(exit::YES)
}
