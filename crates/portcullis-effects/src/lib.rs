//! What an action would touch, read from its arguments.
//!
//! [`Reader`] takes the arguments that hold SQL, shell commands, paths, URLs, addresses, money, agent code or a task
//! ([`arguments`] says which), hands each to its parser and gathers the effects. Parsers read text and nothing
//! else: no file, name service or clock is asked. What a parser does not understand is an effect on *unknown*.
//!
//! | module | reads | with |
//! |---|---|---|
//! | [`sql`] | statements in several dialects | `sqlparser` |
//! | [`shell`] | command lines, whatever they are wrapped in | `brush-parser` |
//! | [`code`] | Python that agents write | `ruff_python_parser` |
//! | [`path`], [`url`], [`mail`], [`money`] | single values | |
//! | [`activity`] | tasks in plain language | |

pub mod activity;
mod answers;
pub mod arguments;
pub mod code;
pub mod limits;
pub mod mail;
pub mod money;
mod patch;
pub mod path;
pub mod place;
mod reader;
pub mod shell;
mod sink;
pub mod sql;
mod surroundings;
pub mod url;

pub use reader::{Reader, read_call};
pub use sink::Sink;
pub use surroundings::Surroundings;
