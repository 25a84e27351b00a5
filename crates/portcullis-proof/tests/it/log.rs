//! Tests of the transparency log.

mod notes;
mod oracle;
mod policies;
mod tiles;
mod witnesses;
