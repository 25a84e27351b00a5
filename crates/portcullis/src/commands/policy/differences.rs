//! Parts of two bundles that differ, for people and programs.

use portcullis_core::bundle::{Difference, Direction};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

/// One line a part: which way it changed, what it was and is.
pub(super) fn show(out: &mut Out, differences: &[Difference]) -> Result<(), Failure> {
    for found in differences {
        let style = match found.direction {
            Direction::Loosened => out::BAD,
            Direction::Changed => out::NOTICE,
            Direction::Tightened => out::GOOD,
            Direction::Neutral => out::FAINT,
        };
        let direction = found.direction.to_string();
        let (part, old, new) = (clean_line(&found.part), clean_line(&found.old), clean_line(&found.new));
        out.line(format_args!("  {style}{direction:<9}{style:#}  {part}: {old} -> {new}"))?;
    }
    Ok(())
}

/// A part as a record.
pub(super) fn record(found: &Difference) -> Value {
    json!({
        "record": "part", "part": found.part, "direction": found.direction, "old": found.old, "new": found.new,
    })
}
