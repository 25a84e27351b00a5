//! Shell commands.

#[expect(dead_code, reason = "the walker that calls them follows")]
mod commands;
#[expect(dead_code, reason = "the walker that calls them follows")]
mod interpreter;
#[expect(dead_code, reason = "the walker that calls them follows")]
mod word;

use crate::{Sink, Surroundings};

/// Reads `text` and adds what it would touch to `sink`.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let _ = surroundings;
    sink.unknown("shell", "not read yet", 0..text.len());
}
