//! The state of the transparency log, and whether a witness contradicts it: that stands on every page.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_console::log::{Forked, Log, Status};
use portcullis_console::marks::Standing;
use portcullis_console::overview::Reliance;
use portcullis_ledger::log::{LogError, LogReader, witness_policy};

use super::Seen;

/// How long it is believed whether a witness contradicts the log: each look opens its database.
const FRESH: Duration = Duration::from_secs(5);

/// Whether a witness contradicted the log when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<(Instant, Option<Forked>)>>);

/// What a witness that saw another tree says, or `None` if there is none.
pub(super) async fn forked(seen: &Seen) -> Option<Forked> {
    let known = &seen.console.forked.0;
    let before = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, forked)) = before.filter(|(at, _)| at.elapsed() < FRESH) {
        return forked;
    }
    let places = seen.shared.home.store().log();
    let at = Instant::now();
    let wait = tokio::task::spawn_blocking(move || LogReader::open(&places).and_then(|log| log.waits()));
    let wait = wait.await.ok().and_then(Result::ok).flatten().filter(|wait| wait.contradicted);
    let forked = wait.map(|wait| Forked { why: wait.why, since: wait.since.without_fraction() });
    *known.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, forked.clone()));
    forked
}

/// The state of the log.
pub(super) async fn log(seen: &Seen) -> Log {
    let places = seen.shared.home.store().log();
    let failure = seen.shared.log_failure.borrow().clone();
    let read = tokio::task::spawn_blocking(move || {
        let status = match LogReader::open(&places).and_then(|log| log.status()) {
            Ok(status) => status,
            Err(LogError::NoLog { .. }) if failure.is_none() => return Log::None,
            Err(error) => return Log::Unreadable(failure.unwrap_or_else(|| error.to_string())),
        };
        let policy = witness_policy(&places).ok().flatten();
        let names = policy.map(|policy| {
            policy.witnesses().iter().map(|one| String::from_utf8_lossy(&one.name).into_owned()).collect()
        });
        Log::Is(Status {
            origin: status.origin,
            size: status.size,
            root: status.root.to_string().chars().take(16).collect(),
            witnesses: names.unwrap_or_default(),
            witnessed: status.witnessed,
            waiting: status.waiting,
            open: status.open_segments,
            writers: status.writers.len(),
            frozen: status.frozen,
            waits: status.waits.map(|wait| (wait.why, wait.since.without_fraction(), wait.contradicted)),
            failure,
        })
    });
    read.await.unwrap_or_else(|error| Log::Unreadable(error.to_string()))
}

/// The log among what one relies on.
pub(super) fn reliance(log: &Log) -> Reliance {
    let (standing, word, detail) = match log {
        Log::None => (Standing::Ok, "none yet", "the first run makes it".to_owned()),
        Log::Unreadable(why) => (Standing::Bad, "unreadable", why.clone()),
        Log::Is(status) => match (&status.waits, &status.frozen, &status.failure) {
            (Some((why, _, true)), ..) => (Standing::Bad, "contradicted", why.clone()),
            (_, Some(why), _) => (Standing::Bad, "frozen", why.clone()),
            (_, _, Some(why)) => (Standing::Bad, "stopped", why.clone()),
            (Some((why, ..)), ..) => (Standing::Alert, "waits", why.clone()),
            _ => (Standing::Ok, "growing", "what is recorded is anchored in the transparency log".to_owned()),
        },
    };
    Reliance { what: "Log", standing, word: word.to_owned(), detail }
}
