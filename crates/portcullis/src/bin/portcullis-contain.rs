//! The program that takes powers away from a command before it is started; `portcullis run` starts it.
//!
//! A program of its own, since each command starts it two or three times: the large one takes milliseconds to load.

#[path = "../version.rs"]
mod version;

use std::process::ExitCode;

fn main() -> ExitCode {
    version::answered("portcullis-contain").unwrap_or_else(|| portcullis_contain::helper(std::env::args_os()))
}
