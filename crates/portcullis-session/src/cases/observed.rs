//! What a contained call was seen to do, as a step of a case says it.

use std::path::PathBuf;

use portcullis_core::observed::{
    Attempt, AttemptWhat, Connection, ConnectionVerdict, Ended, FileChange, FileChangeHow, Files, Limit,
    Observed, Programs, PutBack, PutBackHow, Refused, Seen,
};
use portcullis_core::profile::Level;
use serde::Deserialize;
use serde_json::Value;

/// The fields of the step.
const FIELDS: [&str; 9] = [
    "made",
    "changed",
    "deleted",
    "connected",
    "refused",
    "tried_to_read",
    "tried_to_write",
    "put_back",
    "limits",
];

/// What a step says; what it leaves out did not happen.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Said {
    made: Vec<String>,
    changed: Vec<String>,
    deleted: Vec<String>,
    /// Hosts, with a port.
    connected: Vec<String>,
    /// Hosts that the proxy refused, with a port.
    refused: Vec<String>,
    tried_to_read: Vec<String>,
    tried_to_write: Vec<String>,
    put_back: Vec<String>,
    limits: Vec<Limit>,
}

/// Reads the JSON of a step.
pub(super) fn observed(given: Value) -> Result<Observed, String> {
    let said: Said = serde_json::from_value(given)
        .map_err(|error| format!("not what was observed: {error}; the fields are {}", FIELDS.join(", ")))?;
    let change =
        |how| move |path: String| FileChange { path: PathBuf::from(path), how, bytes: None, digest: None };
    let mut changes: Vec<FileChange> = said.made.into_iter().map(change(FileChangeHow::Made)).collect();
    changes.extend(said.changed.into_iter().map(change(FileChangeHow::Changed)));
    changes.extend(said.deleted.into_iter().map(change(FileChangeHow::Deleted)));
    let mut connections = Vec::new();
    for (hosts, verdict) in [
        (said.connected, ConnectionVerdict::Permitted),
        (said.refused, ConnectionVerdict::Refused("the profile does not name it".to_owned())),
    ] {
        for host in hosts {
            connections.push(connection(&host, verdict.clone())?);
        }
    }
    let attempt = |what| move |target: String| Attempt { what, target, times: 1 };
    let mut attempts: Vec<Attempt> = said.tried_to_read.into_iter().map(attempt(AttemptWhat::Read)).collect();
    attempts.extend(said.tried_to_write.into_iter().map(attempt(AttemptWhat::Write)));
    let put_back = |path: String| PutBack { path: PathBuf::from(path), how: PutBackHow::Restored };
    Ok(Observed {
        level: Level::Process,
        profile: String::new(),
        ended: Ended::Status(0),
        wall_ms: 1,
        cpu_ms: 1,
        survivors: 0,
        limits: said.limits,
        put_back: said.put_back.into_iter().map(put_back).collect(),
        programs: Programs::default(),
        files: Files { seen: Seen::All, changes },
        connections,
        connections_left_out: 0,
        refused: Refused { seen: Seen::Some, attempts },
        stdout: Vec::new(),
        stderr: Vec::new(),
    })
}

fn connection(host: &str, verdict: ConnectionVerdict) -> Result<Connection, String> {
    let parts = host.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else { return Err(format!("`{host}` is no host with a port")) };
    Ok(Connection { host: host.to_owned(), port, address: None, sent: 1, received: 1, verdict })
}
