//! `portcullis log`: the transparency log of the store, and what an operator does to it.

use std::fs;
use std::path::PathBuf;

use clap::Subcommand;
use portcullis_gateway::cosign;
use portcullis_gateway::home::Home;
use portcullis_ledger::OpenOptions;
use portcullis_ledger::log::{
    Log, LogError, LogPlaces, LogReader, LogStatus, put, verifier_key, witness_policy,
};
use portcullis_proof::log::KeyId;
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{NOTICE, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis log status
  portcullis log policy --remember > trust.policy
  portcullis log enrol --label \"key of 2027\"
  portcullis log revoke 3f1c90aa --reason \"the laptop was stolen\"
  portcullis log freeze --reason \"moved to the cluster\"
  portcullis log rotate

A log is made with the first run and kept up by the daemon. Its keys are in `keys/` of the state folder; \
docs/transparency-log.md says what to do when one is lost.";

/// The transparency log: status, trust policy, keys, its end
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// How the log stands
    #[command(after_help = "Examples:\n  portcullis log status --json")]
    Status,
    /// Print the trust policy that believes this log, for others to verify exports with
    #[command(after_help = "Examples:\n  portcullis log policy --remember > trust.policy")]
    Policy {
        /// Remember the tree of now: whoever holds this line is shown no other history
        #[arg(long)]
        remember: bool,
    },
    /// Have a new key sign the heads of runs
    #[command(after_help = "Examples:\n  portcullis log enrol --label \"key of 2027\"")]
    Enrol {
        /// What people call it
        #[arg(long, default_value = "gate")]
        label: String,
    },
    /// Say in the log that a writer's key counts no more
    #[command(after_help = "Examples:\n  portcullis log revoke 3f1c90aa --reason \"the laptop was stolen\"")]
    Revoke {
        /// The key's id, or its beginning
        key: String,
        /// Why; it stands in the log for everybody
        #[arg(long)]
        reason: String,
    },
    /// End the log: nothing more enters it
    #[command(after_help = "Examples:\n  portcullis log freeze --reason \"moved to the cluster\"")]
    Freeze {
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// End the log and put its store aside; the next run begins a new one
    #[command(after_help = "Examples:\n  portcullis log rotate --reason \"the year is over\"")]
    Rotate {
        /// Why
        #[arg(long, default_value = "rotated")]
        reason: String,
    },
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let places = home.store().log();
    match &args.command {
        Command::Status => status(&places, global),
        Command::Policy { remember } => policy(&places, *remember, global),
        Command::Enrol { label } => {
            let text = |key: &KeyId| format!("writer {key} signs from now on");
            let key = signing(&places, |log| log.rotate_writer(label), text)?;
            told(global, &json!({"record": "enrolled", "key": key}), &text(&key))
        }
        Command::Revoke { key, reason } => {
            let key = find_writer(&places, key)?;
            let text = format!("writer {key} counts no more");
            signing(&places, |log| log.revoke(key, reason), |_| text.clone())?;
            told(global, &json!({"record": "revoked", "key": key}), &text)
        }
        Command::Freeze { reason } => {
            let Frozen { size, cosigned, .. } = freeze(&places, reason)?;
            let text = match cosigned {
                Some(false) => format!(
                    "the log is frozen with {}\n\
                     its witnesses have not cosigned the last tree; run `portcullis log freeze` again when they answer",
                    count(size, "leaf", "leaves")
                ),
                _ => format!("the log is frozen with {}", count(size, "leaf", "leaves")),
            };
            told(global, &json!({"record": "frozen", "size": size, "cosigned": cosigned}), &text)
        }
        Command::Rotate { reason } => rotate(&home, &places, reason, global),
    }
}

fn failed(error: LogError) -> Failure {
    let help = match &error {
        LogError::Busy { .. } => Some("stop the daemon first: it has the log while it runs"),
        LogError::Unconfirmed(wait) if wait.contradicted => Some(
            "nothing was done, and this log must not sign any more: keep everything, notify everyone who relies on it, and start a new one with `portcullis log rotate`. Only where the witness is known to have lost its state, \
             take it out of `log/witnesses.policy`",
        ),
        LogError::Unconfirmed(_) => Some(
            "nothing was done: try again when they answer, or take those who are gone for good out of \
             `log/witnesses.policy`",
        ),
        _ => None,
    };
    let failure = Failure::unreadable(&error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// Has the log do something, which `done` tells. Its witnesses are asked before, so that nothing is signed that one of
/// them has seen otherwise, and after.
fn signing<T>(
    places: &LogPlaces,
    act: impl FnOnce(&mut Log) -> Result<T, LogError>,
    done: impl FnOnce(&T) -> String,
) -> Result<T, Failure> {
    let mut log = Log::open(places).map_err(failed)?;
    let mut ask_witnesses = cosign::after_round();
    ask_witnesses(&mut log).map_err(failed)?;
    let acted = act(&mut log).map_err(failed)?;
    match ask_witnesses(&mut log) {
        Ok(()) => Ok(acted),
        Err(error) => {
            Err(Failure::unreadable(format!("{}, but its witnesses missed it: {error}", done(&acted)))
                .help("do not repeat the command; `portcullis log status` shows the log as it is now"))
        }
    }
}

fn told(global: &Global, value: &serde_json::Value, text: &str) -> Result<u8, Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(value)?
    } else {
        out.line(format_args!("{text}"))?
    }
    out.finish()?;
    Ok(exit::YES)
}

fn status(places: &LogPlaces, global: &Global) -> Result<u8, Failure> {
    let status = LogReader::open(places).and_then(|log| log.status()).map_err(failed)?;
    let key = verifier_key(places).map(|key| key.to_string());
    let mut out = Out::new();
    if global.json {
        let writer = |writer: &portcullis_ledger::log::LogWriter| {
            json!({"key": writer.key, "state": writer.state.as_str(), "segments": writer.segments,
                "key_here": writer.key_here})
        };
        let writers: Vec<_> = status.writers.iter().map(writer).collect();
        out.json(&json!({
            "record": "log", "origin": status.origin, "key": key.as_ref().ok(), "size": status.size,
            "root": status.root, "witnessed": status.witnessed, "waiting": status.waiting,
            "open_segments": status.open_segments, "frozen": status.frozen, "writers": writers,
            "waits": status.waits.as_ref().map(|wait| json!({"since": wait.since, "why": wait.why})),
        }))?;
    } else {
        show(&status, key.as_deref().ok(), &mut out)?;
    }
    out.finish()?;
    Ok(exit::YES)
}

fn show(status: &LogStatus, key: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    out.line(format_args!("log       {}", clean_line(&status.origin)))?;
    out.line(format_args!("key       {}", key.unwrap_or("missing: it signs nothing until it is restored")))?;
    out.line(format_args!("tree      {}, root {}", count(status.size, "leaf", "leaves"), status.root))?;
    match status.witnessed {
        Some(size) => out.line(format_args!("witnesses have seen {}", count(size, "leaf", "leaves")))?,
        None => out.line(format_args!(
            "witnesses none: only the log itself says that everyone is shown the same tree"
        ))?,
    }
    out.line(format_args!(
        "waiting   {}; {} without end",
        count(status.waiting, "leaf", "leaves"),
        count(status.open_segments, "segment", "segments")
    ))?;
    for writer in &status.writers {
        let gone = if writer.key_here { "" } else { ", its key file is gone" };
        out.line(format_args!(
            "writer    {} {}, {}{gone}",
            writer.key,
            writer.state.as_str(),
            count(writer.segments, "segment", "segments")
        ))?;
    }
    if let Some(wait) = &status.waits {
        out.line(format_args!("{NOTICE}waits{NOTICE:#}     {}", clean_line(&wait.to_string())))?;
    }
    if let Some(reason) = &status.frozen {
        out.line(format_args!("{NOTICE}frozen    {}{NOTICE:#}", clean_line(reason)))?;
    }
    Ok(())
}

fn policy(places: &LogPlaces, remember: bool, global: &Global) -> Result<u8, Failure> {
    // Where there is no log there is no key either, and that is not a lost one.
    let log = LogReader::open(places).map_err(failed)?;
    let key = verifier_key(places).map_err(failed)?;
    let text = log.policy_text(&key, remember).map_err(failed)?;
    told(global, &json!({"record": "policy", "text": text}), text.trim_end())
}

fn find_writer(places: &LogPlaces, start: &str) -> Result<KeyId, Failure> {
    let status = LogReader::open(places).and_then(|log| log.status()).map_err(failed)?;
    let mut keys =
        status.writers.iter().map(|writer| writer.key).filter(|key| key.to_string().starts_with(start));
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err(Failure::no(format!("the log has no writer `{start}`"))
            .help("`portcullis log status` lists the writers")),
        (Some(_), Some(_)) => Err(Failure::no(format!("several writers begin with `{start}`"))
            .help("give more digits of the key's id")),
    }
}

/// A log that has ended.
struct Frozen {
    size: u64,
    /// Whether its witnesses have cosigned the last tree, as many as its policy asks for; none where it has none, or
    /// they contradict it.
    cosigned: Option<bool>,
    /// Nobody else has it.
    _log: Log,
}

/// Ends the log. What is due is logged and cosigned, unless a witness has seen more than the log remembers, or another
/// history: such a log signs nothing any more.
fn freeze(places: &LogPlaces, reason: &str) -> Result<Frozen, Failure> {
    let mut log = Log::open(places).map_err(failed)?;
    let mut ask_witnesses = cosign::after_round();
    let mut contradicted = false;
    let frozen = match ask_witnesses(&mut log) {
        Ok(()) if log.waits().is_some_and(|wait| wait.contradicted) => {
            contradicted = true;
            log.freeze_as_it_is(reason)
        }
        Ok(()) => log.freeze(reason).and_then(|_| ask_witnesses(&mut log)),
        Err(LogError::RolledBack { .. }) => {
            contradicted = true;
            log.freeze_as_it_is(reason)
        }
        Err(error) => Err(error),
    };
    match frozen {
        Ok(()) | Err(LogError::Frozen { .. }) => {}
        Err(error) => return Err(failed(error)),
    }
    let status = LogReader::open(places).and_then(|log| log.status()).map_err(failed)?;
    let witnesses = witness_policy(places).map_err(failed)?;
    let cosigned = witnesses
        .filter(|policy| !contradicted && !policy.witnesses().is_empty())
        .map(|_| status.witnessed == Some(status.size));
    Ok(Frozen { size: status.size, cosigned, _log: log })
}

/// Ends the log and moves store, log and keys into a folder that is a state folder of its own.
fn rotate(home: &Home, places: &LogPlaces, reason: &str, global: &Global) -> Result<u8, Failure> {
    let ledger = home.store().open(OpenOptions::default()).map_err(Failure::unreadable)?;
    if ledger.recovery_report().living > 0 {
        return Err(Failure::no("runs of this store are being written")
            .help("stop the daemon and other commands first"));
    }
    let origin = ledger.origin().to_owned();
    drop(ledger);
    // A log that must not sign any more is put aside as it is.
    let (frozen, unfrozen) = match Log::open(places) {
        Ok(log) => {
            drop(log);
            (Some(freeze(places, reason)?), None)
        }
        Err(error @ LogError::Busy { .. }) => return Err(failed(error)),
        Err(error) => (None, Some(error.to_string())),
    };
    let name: String = origin.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let archive = home.path().join("archive").join(name);
    let moved = |from: &PathBuf| -> Result<(), Failure> {
        let to = archive.join(from.file_name().unwrap_or_default());
        fs::rename(from, &to).map_err(|error| {
            Failure::unreadable(format!("cannot move `{}` to `{}`: {error}", from.display(), to.display()))
                .help("move what is left there by hand before the next run")
        })
    };
    fs::create_dir_all(&archive)
        .map_err(|error| Failure::unreadable(format!("cannot make `{}`: {error}", archive.display())))?;
    // The store last: as long as it is there, nobody begins a new one beside half of the old.
    let witnesses = fs::read(places.witnesses()).ok();
    for folder in
        [&places.public, &places.keys, &places.database].into_iter().filter(|folder| folder.exists())
    {
        moved(folder)?;
    }
    // The new log asks the same witnesses; until they know its key, each says so.
    if let Some(policy) = witnesses {
        put(&places.witnesses(), &policy, 0o644).map_err(failed)?;
    }
    let cosigned = frozen.and_then(|frozen| frozen.cosigned);
    let became = match &unfrozen {
        None => "is frozen".to_owned(),
        Some(why) => format!("was put aside as it is, since it could not go on ({})", clean_line(why)),
    };
    let mut text = format!(
        "the log of {} {became}; its store is in `{}`, which `--home` opens",
        clean_line(&origin),
        archive.display()
    );
    if cosigned == Some(false) {
        let ask = format!("portcullis log freeze --reason again --home {}", archive.display());
        text.push_str(&format!(
            "\nits witnesses have not cosigned the last tree; run `{ask}` when they answer"
        ));
    }
    told(
        global,
        &json!({"record": "rotated", "origin": origin, "archive": archive, "not_frozen": unfrozen,
            "cosigned": cosigned}),
        &text,
    )
}
