//! `portcullis-hook`: the program that a coding agent starts for each event of its session.
//!
//! The agent waits for this program before each tool call, so it must start quickly: it links the standard library, a
//! JSON parser and nothing else of ours. It reads the event, sends it to the daemon in one request (`POST /v1/hook`) and
//! prints the answer. The daemon reads and judges the event; nothing is decided here.
//!
//! Whatever is not that simple is handed over to `portcullis hook`, the program beside this one, with the same options
//! and the same input: no daemon listens, the credential cannot be read, an option or an answer is not understood. So
//! there is one behaviour, and one place that says what a failure means for each event. What cannot even be handed over
//! blocks (exit code 2).
//!
//! The other modules hold what this program and the rest of Portcullis must agree on.

mod arguments;
pub mod event;
mod exchange;
pub mod folder;
mod hand_over;
pub mod limit;
pub mod place;
mod program;

pub use program::main;
