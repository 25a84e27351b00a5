//! `portcullis monitor`: follows a log and says what no export can show.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_core::time::Timestamp;
use portcullis_gateway::monitor::{
    FORK_BYTES_MAX, ForkError, ForkProof, LogSource, Look, Watch, WatchAlert, WatchOptions,
};
use portcullis_ledger::log::put;
use portcullis_proof::log::{Fork, TrustPolicy};
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count, seconds};
use crate::trust;

const EXAMPLES: &str = "\
Examples:
  portcullis monitor http://127.0.0.1:7070/log --trust audit.policy \\
      --state audit.state
  portcullis monitor ~/.local/state/portcullis/log --trust audit.policy \\
      --every 10s
  portcullis monitor --check-fork fork-0f3a….json --trust audit.policy

Exit codes of one look: 0 nothing to report, 1 alerts, 2 the look did not come to its end. Without --state the \
whole log is read and all of it is reported on; with it, what is new since the last time.";

/// Follow a log and report what is wrong with it
///
/// Reads every leaf: numbers that are missing, runs that do not end, heads that contradict each other, writers that
/// nobody enrolled. A log that forks or goes back is found by what the monitor remembers, and of a fork it writes a
/// proof for everybody. Nothing is believed but the keys of the policy.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The log: its public folder, or an address that serves `checkpoint` and `tile/`
    #[arg(value_name = "LOG", required_unless_present = "check_fork")]
    log: Option<String>,
    /// The trust policy: whose logs and witnesses are believed
    #[arg(long, value_name = "FILE")]
    trust: PathBuf,
    /// Which log of the policy, where it names several
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// What the monitor remembers between two looks; made at the first
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The folder for proofs of forks
    #[arg(long, value_name = "DIR", default_value = ".")]
    forks: PathBuf,
    /// Look once, which is what happens without --every
    #[arg(long, conflicts_with = "every")]
    once: bool,
    /// Look again and again, this far apart, until stopped
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// Report a number that was passed over after this time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
    missing_for: Duration,
    /// Report a run without end and without a new head after this time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    open_for: Duration,
    /// Report when the newest cosignature is older than this, where the policy names witnesses
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    stale: Duration,
    /// Check a proof of a fork instead: exit code 0 when the log forked, 1 when nothing shows it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["log", "state", "every", "once"])]
    check_fork: Option<PathBuf>,
}

/// Reads a number and its unit: `90s`, `10m`, `24h`, `7d`.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    found
        .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(*seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a number and its unit, such as `90s`, `10m`, `24h` or `7d`".to_owned())
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let trust = trust::policy(&args.trust)?;
    if let Some(path) = &args.check_fork {
        return check_fork(path, &trust, global);
    }
    let source = LogSource::at(args.log.as_deref().unwrap_or_default()).map_err(Failure::usage)?;
    let origin = origin(args, &trust)?;
    let options = WatchOptions {
        trust,
        origin: origin.clone(),
        missing_for: args.missing_for.as_secs(),
        open_for: args.open_for.as_secs(),
        stale: args.stale.as_secs(),
    };
    let mut watch = Watch::open(options, args.state.as_deref()).map_err(Failure::unreadable)?;
    let mut incomplete = None;
    loop {
        let look = watch.look(&source, now()?);
        let told = args.every.is_some() && look.alerts.is_empty() && look.leaves == 0;
        if !told || look.incomplete != incomplete {
            tell(&origin, &look, args, global)?;
        }
        watch.remember().map_err(Failure::unreadable)?;
        let Some(every) = args.every else {
            file_leaves(&mut watch)?;
            return Ok(exit_code(&look));
        };
        incomplete = look.incomplete;
        thread::sleep(every);
    }
}

/// Keeps what was read for the next start.
fn file_leaves(watch: &mut Watch) -> Result<(), Failure> {
    if !watch.file_leaves().map_err(Failure::unreadable)? {
        let note =
            "note: the log is too long to keep all that was read of it; the next start reads the rest again";
        let _unwritten = writeln!(anstream::stderr(), "{note}");
    }
    Ok(())
}

fn exit_code(look: &Look) -> u8 {
    if !look.alerts.is_empty() {
        exit::NO
    } else if look.incomplete.is_some() {
        exit::INCOMPLETE
    } else {
        exit::YES
    }
}

fn now() -> Result<u64, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map(|since| since.as_secs()).map_err(|_| Failure::unreadable("the clock is before 1970; set it"))
}

fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot use `{}`: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    // One byte more shows that there are too many.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() > bytes_max { Err(failed(&format!("more than {bytes_max} bytes"))) } else { Ok(bytes) }
}

/// The log to watch: the one that was named, or the only one.
fn origin(args: &Args, trust: &TrustPolicy) -> Result<String, Failure> {
    let mut names: Vec<&str> = trust.policy.logs().iter().map(|log| log.key.name()).collect();
    names.sort_unstable();
    names.dedup();
    let policy = args.trust.display();
    match (&args.origin, names.as_slice()) {
        (Some(wanted), names) if names.contains(&wanted.as_str()) => Ok(wanted.clone()),
        (Some(wanted), _) => Err(Failure::usage(format!("the policy `{policy}` names no log `{wanted}`"))),
        (None, [one]) => Ok((*one).to_owned()),
        (None, []) => Err(Failure::usage(format!("the policy `{policy}` names no log"))),
        (None, names) => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("the policy `{policy}` names several logs; say which with --origin");
            Err(Failure::usage(message).help(names.join(", ")))
        }
    }
}

/// Prints a look, and puts the proofs of forks into their files.
fn tell(origin: &str, look: &Look, args: &Args, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    for alert in &look.alerts {
        let proof = alert.fork.as_ref().map(|fork| keep(fork, &args.forks)).transpose()?;
        show(origin, alert, proof.as_deref(), global, &mut out)?;
    }
    if global.json {
        out.json(&json!({
            "record": "look", "log": origin, "size": look.tree.map(|tree| tree.size),
            "root": look.tree.map(|tree| tree.root), "leaves": look.leaves,
            "alerts": look.alerts.len() as u64 + look.more, "standing": look.standing,
            "missing": look.missing, "open": look.open, "cosigned": look.cosigned,
            "incomplete": look.incomplete,
        }))?;
        return done(out, args);
    }
    if look.more > 0 {
        out.line(format_args!("... and {} more alerts", look.more))?;
    }
    out.line(format_args!(
        "{}: {}, {} new; {} without end, {} missing{}",
        clean_line(origin),
        count(look.tree.map_or(0, |tree| tree.size), "leaf", "leaves"),
        look.leaves,
        count(look.open, "segment", "segments"),
        count(look.missing, "number", "numbers"),
        match look.cosigned {
            Some(time) => format!("; cosigned {}", seconds(time_of(time))),
            None => String::new(),
        }
    ))?;
    if let Some(why) = &look.incomplete {
        let style = out::NOTICE;
        out.line(format_args!("{style}incomplete{style:#}: {}", clean_line(why)))?;
    }
    done(out, args)
}

/// Hands over what was said. Who watches stops when nobody reads any more.
fn done(mut out: Out, args: &Args) -> Result<(), Failure> {
    if args.every.is_some() {
        out.flush()?;
    }
    out.finish()
}

fn time_of(seconds: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

fn show(
    origin: &str,
    alert: &WatchAlert,
    proof: Option<&Path>,
    global: &Global,
    out: &mut Out,
) -> Result<(), Failure> {
    if global.json {
        return out.json(&json!({
            "record": "alert", "log": origin, "kind": alert.kind, "index": alert.index,
            "message": alert.message, "proof": proof,
        }));
    }
    let style = out::BAD;
    let place = alert.index.map_or_else(String::new, |index| format!(" at index {index}"));
    out.line(format_args!("{style}{}{style:#}{place}: {}", alert.kind, clean_line(&alert.message)))?;
    match proof {
        Some(path) => out.line(format_args!("  proof: {}", path.display())),
        None => Ok(()),
    }
}

/// Puts a proof into its file; the same proof has the same name.
fn keep(fork: &ForkProof, folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join(fork.file_name());
    put(&path, &fork.to_bytes(), 0o644).map_err(Failure::unreadable)?;
    Ok(path)
}

fn check_fork(path: &Path, trust: &TrustPolicy, global: &Global) -> Result<u8, Failure> {
    let unreadable = |error: ForkError| Failure::unreadable(format!("`{}`: {error}", path.display()));
    let proof = ForkProof::parse(&read(path, FORK_BYTES_MAX)?).map_err(unreadable)?;
    let (code, why, trees) = match proof.check(&trust.policy) {
        Ok(Fork::Beginnings { trees, .. } | Fork::Roots { trees } | Fork::Leaves { trees, .. }) => {
            (exit::YES, None, Some(trees))
        }
        Err(error) => (exit::NO, Some(error.to_string()), None),
    };
    let origin = trees.as_ref().map(|[one, _]| one.origin().to_owned());
    let sizes = trees.map(|[one, other]| [one.size(), other.size()]);
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "record": "fork", "file": path, "forked": why.is_none(), "log": origin, "sizes": sizes, "why": why,
        }))?;
    } else if let (Some(origin), Some([smaller, larger])) = (origin, sizes) {
        let (origin, style) = (clean_line(&origin), out::BAD);
        out.line(format_args!(
            "{style}FORKED{style:#}: the log `{origin}` signed two trees that contradict each other, of {} and {larger}",
            count(smaller, "leaf", "leaves"),
        ))?;
    } else {
        out.line(format_args!("no fork is shown: {}", clean_line(&why.unwrap_or_default())))?;
    }
    out.finish()?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "s", "10", "-1s", "+1s", "1.5h", "1w", " 1s", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(duration("213503982334602d").is_err());
    }
}
