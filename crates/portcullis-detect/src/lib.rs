//! What a text asks for, read from the text alone: pure functions from bytes to spans.
//!
//! What tools return and users write is wrapped in JSON, YAML, HTML or nothing, escaped once or twice. [`leaves()`] takes
//! the wrapping off and keeps, for every piece of text, its exact place in the raw bytes; [`sentences()`] cuts a leaf into
//! sentences; [`Detector::scan`] says which of them read like orders or like attempts to change the rules. Everything that is found in a text is reported as a range of the raw bytes that never cuts an escape.

pub mod automaton;
mod detector;
mod features;
pub mod hidden;
pub mod leaves;
pub mod limits;
pub mod material;
pub mod model;
pub mod normalise;
mod places;
mod sentences;
pub mod train;
pub mod undisguise;
pub mod views;

pub use detector::{Detector, DetectorError, Hit, Kind};
pub use leaves::{Leaf, Leaves, leaves};
pub use model::{Head, Model};
pub use places::Places;
pub use sentences::{Sentences, sentences};
