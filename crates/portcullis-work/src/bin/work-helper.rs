//! The helper as the tests of this crate start it. The one that is installed is `portcullis-contain`, a program of the
//! package `portcullis`.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis_contain::helper(std::env::args_os())
}
