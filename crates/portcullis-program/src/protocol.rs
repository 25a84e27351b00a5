//! The messages of gate and engine: `specs/program-worker.md`.

use portcullis_core::program::Answer;
use serde::{Deserialize, Serialize};

/// The version that is spoken.
pub(crate) const VERSION: u32 = 1;
/// Longest answer that is read, in bytes: what all programs of a bundle may say at most is cut by the engine.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What is asked, besides checks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask<'a> {
    /// To read a module of a set.
    Module { set: &'a str, file: &'a str, source: &'a str },
    /// To read a program of a set.
    Load { set: &'a str, program: &'a str, file: &'a str, source: &'a str },
    /// To forget a set.
    Forget { set: &'a str },
}

/// What is answered.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Said {
    Ready(Ready),
    Loaded(Vec<Mistake>),
    Checked(Answer),
    Forgotten,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) protocol: u32,
}

/// A mistake in a program, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mistake {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: String,
}

/// A message with its length before it. One that is too long for its length is refused by whoever reads it.
pub(crate) fn frame(ask: &Ask<'_>) -> std::io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, ask)?;
    Ok(closed(frame))
}

/// A check of a set. What programs are told is JSON already.
pub(crate) fn check(set: &str, input: &str) -> Vec<u8> {
    let mut frame = Vec::with_capacity(input.len() + set.len() + 40);
    frame.extend([0; 4]);
    // A set is named by hex digits.
    frame.extend(format!("{{\"check\":{{\"set\":\"{set}\",\"input\":").bytes());
    frame.extend(input.bytes());
    frame.extend(b"}}");
    closed(frame)
}

fn closed(mut frame: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(frame.len().saturating_sub(4)).unwrap_or(u32::MAX);
    if let Some(head) = frame.get_mut(..4) {
        head.copy_from_slice(&length.to_le_bytes());
    }
    frame
}
