//! What a text asks for, read from the text alone: pure functions from bytes to spans.
//!
//! What tools return and users write is wrapped in JSON, YAML, HTML or nothing, escaped once or twice. [`leaves()`] takes
//! the wrapping off and keeps, for every piece of text, its exact place in the raw bytes; [`sentences()`] cuts a leaf into
//! sentences. Everything that is found in a text is reported as a range of the raw bytes that never cuts an escape.

pub mod leaves;
pub mod limits;
mod places;
mod sentences;

pub use leaves::{Leaf, Leaves, leaves};
pub use places::Places;
pub use sentences::{Sentences, sentences};
