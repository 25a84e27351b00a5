//! Many calls at a time over several servers, of which one never answers: what it costs the others.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use super::super::BenchError;
use super::super::distribution::{Distribution, Recorder};
use super::client::{At, Client};
use super::upstream::WORK;

/// Sessions at a time. Each has one call open at each of its servers.
const SESSIONS: usize = 40;
/// Servers of a session that answer, each call after [`WORK`].
pub(super) const ANSWERING: usize = 4;
/// What their names begin with, and that of the one that does not answer.
pub(super) const PREFIXES: [&str; ANSWERING] = ["a__", "b__", "c__", "d__"];
pub(super) const STALLED_PREFIX: &str = "s__";
/// Rounds of each kind, in turn.
const ROUNDS: usize = 3;

/// Calls beside a server that stalls, and without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpStalled {
    /// Calls at a time that are answered, and that are not.
    pub answered_at_once: usize,
    /// The latter.
    pub stalled_at_once: usize,
    /// How long the servers work on each call, which is part of the times.
    pub work_ms: u64,
    /// Calls while the last server is asked nothing.
    pub without: Distribution,
    /// Calls while it has all of its calls open, and answers none.
    pub with: Distribution,
    /// By how much it delays the others, p50, in nanoseconds; less than nothing where they are faster.
    pub delay_p50_ns: i64,
    /// The same, p99.
    pub delay_p99_ns: i64,
}

pub(super) async fn measure(gate: &At, time: Duration) -> Result<McpStalled, BenchError> {
    let (mut without, mut with) = (Recorder::new()?, Recorder::new()?);
    for _ in 0..ROUNDS {
        without.merge(&round(gate, time, false).await?)?;
        with.merge(&round(gate, time, true).await?)?;
    }
    let (without, with) = (without.finish(), with.finish());
    let delay = |with: u64, without: u64| with.cast_signed() - without.cast_signed();
    Ok(McpStalled {
        answered_at_once: SESSIONS * ANSWERING,
        stalled_at_once: SESSIONS,
        work_ms: u64::try_from(WORK.as_millis()).unwrap_or(u64::MAX),
        delay_p50_ns: delay(with.p50_ns, without.p50_ns),
        delay_p99_ns: delay(with.p99_ns, without.p99_ns),
        without,
        with,
    })
}

/// Sessions that call for a while, and end.
async fn round(gate: &At, time: Duration, stalls: bool) -> Result<Recorder, BenchError> {
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let mut client = Client::new(gate).await?;
        client.open().await?;
        client.tools().await?;
        sessions.push(client);
    }
    let until = Instant::now() + time;
    let (mut tasks, mut stalled) = (JoinSet::new(), JoinSet::new());
    for (at, session) in sessions.iter().enumerate() {
        if stalls {
            let mut client = session.beside().await?;
            stalled.spawn(async move { client.call(STALLED_PREFIX, 0).await });
        }
        for (server, prefix) in PREFIXES.into_iter().enumerate() {
            let client = session.beside().await?;
            // Not all at the same moment: what is measured is the gate, not how a queue of calls is worked off.
            let place = u32::try_from(at * ANSWERING + server).unwrap_or_default();
            let start = WORK * place / u32::try_from(SESSIONS * ANSWERING).unwrap_or(1);
            tasks.spawn(caller(client, prefix, start, until));
        }
    }
    let mut all = Recorder::new()?;
    while let Some(done) = tasks.join_next().await {
        let lost = |error| BenchError::io("run a client")(std::io::Error::other(error));
        all.merge(&done.map_err(lost)??)?;
    }
    if let Some(answered) = stalled.try_join_next() {
        let how = format!("the server that stalls let a call return: {answered:?}");
        return Err(super::client::refused(&how));
    }
    stalled.shutdown().await;
    for session in sessions {
        session.end().await?;
    }
    Ok(all)
}

async fn caller(
    mut client: Client,
    prefix: &'static str,
    start: Duration,
    until: Instant,
) -> Result<Recorder, BenchError> {
    let mut recorder = Recorder::new()?;
    tokio::time::sleep(start).await;
    let mut number = 0;
    while Instant::now() < until {
        let took = client.call(prefix, number).await?;
        // The first one makes connections.
        if number > 0 {
            recorder.add(took);
        }
        number += 1;
    }
    Ok(recorder)
}
