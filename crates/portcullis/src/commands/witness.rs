//! `portcullis witness`: cosigns the logs of others.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anstream::ColorChoice;
use portcullis_gateway::signals::StopSignals;
use portcullis_gateway::witness::{Witness, WitnessError, WitnessOptions};
use portcullis_proof::log::VerifierKey;
use serde_json::json;
use tokio::net::TcpListener;

use crate::cli::Global;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;

const EXAMPLES: &str = "\
Examples:
  portcullis witness --key w.key --name auditor.example/w1 --state w.state \\
      --print-key
  portcullis witness --key w.key --name auditor.example/w1 --state w.state \\
      --log VKEY --listen 127.0.0.1:7800

Key and state are made at the first start, together. Keep the state: a witness that forgets would cosign a second \
history, so one whose key is there and whose state is not refuses to start. Of the two, only the key is secret.";

/// Cosign logs: a witness that an auditor runs
///
/// Speaks C2SP tlog-witness. It remembers one tree of each log and cosigns another only when the log proves that
/// nothing before it changed; what it cosigns is durable before the signature leaves. Run it where whoever runs the
/// log cannot reach it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The witness's key; made at the first start
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The witness's name, as it stands in its signatures: a domain of yours, a slash, a word
    #[arg(long)]
    name: String,
    /// What the witness remembers; made at the first start
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// A log to watch, by its verifier key; may be given several times
    #[arg(long, value_name = "VKEY", required_unless_present = "print_key")]
    log: Vec<VerifierKey>,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7800")]
    listen: SocketAddr,
    /// Print the verifier key, which goes into policies, and end
    #[arg(long)]
    print_key: bool,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let options = WitnessOptions {
        key: args.key.clone(),
        name: args.name.clone(),
        logs: args.log.clone(),
        state: args.state.clone(),
    };
    let witness = Witness::open(&options).map_err(refused)?;
    if args.print_key {
        tell(&witness, None, global)?;
        return Ok(exit::YES);
    }
    let ansi = anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(ansi).with_target(false).init();
    runtime()?.block_on(serve(witness, args.listen, global))?;
    Ok(exit::YES)
}

async fn serve(witness: Witness, address: SocketAddr, global: &Global) -> Result<(), Failure> {
    let failed = |source| Failure::unreadable(WitnessError::Listen { address, source });
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    tell(&witness, Some(listener.local_addr().map_err(failed)?), global)?;
    let listening = StopSignals::listen();
    let mut signals =
        listening.map_err(|error| Failure::unreadable(format!("cannot listen for signals: {error}")))?;
    let stop = async move {
        signals.next().await;
    };
    Arc::new(witness).serve(listener, stop).await.map_err(failed)
}

fn refused(error: WitnessError) -> Failure {
    match error {
        WitnessError::NotALog(_) | WitnessError::TooManyLogs | WitnessError::Name(_) => Failure::usage(error),
        error => Failure::unreadable(error),
    }
}

fn tell(witness: &Witness, address: Option<SocketAddr>, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    let key = witness.verifier().to_string();
    let url = address.map(|address| format!("http://{address}"));
    if global.json {
        out.json(&json!({"record": "witness", "key": key, "url": url}))?;
    } else {
        out.line(format_args!("{key}"))?;
        if let Some(url) = url {
            out.line(format_args!("listening at {url}"))?;
        }
    }
    out.finish()
}
