//! Sessions that do nothing, each with its stream open: what they cost the daemon.

use std::fs;
use std::time::Duration;

use serde::Serialize;

use super::super::BenchError;
use super::super::daemon::Daemon;
use super::client::{At, Client, refused};

/// Sessions that are opened before anything is measured, so that what the first ones need is there.
const WARM: usize = 20;
/// How long nothing is done before the memory is read: until connections that nobody uses are closed.
const QUIET: Duration = Duration::from_secs(40);

/// What idle streams cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct McpIdleStreams {
    /// Sessions, each with its stream open, and a server behind it which has one open to the gate.
    pub streams: usize,
    /// Resident memory of the daemon before them, in bytes.
    pub before_bytes: u64,
    /// Resident memory when the last one was open.
    pub opened_bytes: u64,
    /// Resident memory after a while in which nothing was done.
    pub idle_bytes: u64,
}

impl McpIdleStreams {
    /// What all of them take, in bytes.
    pub fn cost_bytes(&self) -> u64 {
        self.idle_bytes.saturating_sub(self.before_bytes)
    }
}

pub(super) async fn measure(
    daemon: &Daemon,
    gate: &At,
    streams: usize,
) -> Result<McpIdleStreams, BenchError> {
    let mut client = Client::new(gate).await?;
    let mut warm = Vec::new();
    for _ in 0..WARM {
        client.open().await?;
        warm.push(client.beside().await?);
    }
    for client in warm {
        client.end().await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before_bytes = resident_bytes(daemon.id())?;
    let mut open = Vec::new();
    for _ in 0..streams {
        client.open().await?;
        open.push(client.beside().await?.listen().await?);
    }
    let opened_bytes = resident_bytes(daemon.id())?;
    tokio::time::sleep(QUIET).await;
    let idle_bytes = resident_bytes(daemon.id())?;
    Ok(McpIdleStreams { streams: open.len(), before_bytes, opened_bytes, idle_bytes })
}

/// Resident memory of a process (proc(5), `status`).
fn resident_bytes(pid: u32) -> Result<u64, BenchError> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(BenchError::io("read the memory of the daemon"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib =
        line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| refused("the system does not say what memory the daemon uses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_the_process() {
        let before = resident_bytes(std::process::id()).unwrap();
        let taken = vec![1_u8; 64 << 20];
        let after = resident_bytes(std::process::id()).unwrap();
        assert!(after >= before + (32 << 20), "{before} {after}");
        drop(taken);
    }
}
