//! What the reader of an export believes before it is read.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use portcullis_proof::Trust;
use portcullis_proof::log::TrustPolicy;
use portcullis_proof::trust::{TRUST_FORMAT, TRUST_HEADS_MAX};

use crate::failure::Failure;

/// The longest trust file in bytes: all the heads it may hold, and as much again for comments. A policy is shorter.
const TRUST_BYTES_MAX: u64 = TRUST_HEADS_MAX as u64 * 256;

/// What the reader believes already.
#[derive(Default)]
pub(crate) struct Believed {
    /// Heads of runs that somebody kept.
    pub(crate) heads: Option<Trust>,
    /// Logs and witnesses.
    pub(crate) policy: Option<TrustPolicy>,
}

impl Believed {
    /// Reads at most one trust policy and one trust file.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Believed, Failure> {
        let mut believed = Believed::default();
        for path in paths {
            let bytes = bytes(path)?;
            let twice = if is_trust_file(&bytes) {
                believed.heads.replace(heads(path, bytes)?).is_some()
            } else {
                believed.policy.replace(parse(path, &bytes)?).is_some()
            };
            if twice {
                return Err(Failure::usage(format!("`{}` is a second file of its kind", path.display()))
                    .help("--trust takes one trust policy and one trust file"));
            }
        }
        Ok(believed)
    }
}

/// A trust file says what it is in the first line that says anything; a policy never begins so.
fn is_trust_file(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.find(|line| !line.is_empty() && !line.starts_with(b"#")) == Some(TRUST_FORMAT.as_bytes())
}

/// Reads a trust policy.
pub(crate) fn policy(path: &Path) -> Result<TrustPolicy, Failure> {
    parse(path, &bytes(path)?)
}

fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot use `{}`: {why}", path.display()))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let mut bytes = Vec::new();
    file.take(TRUST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
    if bytes.len() as u64 > TRUST_BYTES_MAX {
        return Err(failed(path, format!("a trust file has at most {TRUST_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn heads(path: &Path, bytes: Vec<u8>) -> Result<Trust, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| failed(path, error))?;
    Trust::parse(&text).map_err(|error| {
        failed(path, error).help("see specs/run-chain.md for the format; the first line is its name")
    })
}

fn parse(path: &Path, bytes: &[u8]) -> Result<TrustPolicy, Failure> {
    TrustPolicy::parse(bytes).map_err(|error| {
        failed(path, error)
            .help("see specs/trust-policy.md for the format of a policy; a trust file begins with its name")
    })
}
