//! `--version` of the small programs, which have no command line for people: the same words as of the large one.

use std::io::Write as _;
use std::process::ExitCode;

/// Answers where `--version` is all that was said.
pub(crate) fn answered(name: &str) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|first| first == "--version") && arguments.next().is_none();
    asked.then(|| {
        let said = writeln!(std::io::stdout(), "{name} {}", env!("PORTCULLIS_VERSION"));
        if said.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}
