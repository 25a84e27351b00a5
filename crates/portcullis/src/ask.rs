//! Questions to the person at the terminal.

use std::io::{IsTerminal as _, Write as _};

use crate::cli::Global;
use crate::failure::Failure;
use crate::out::Out;

/// Whether somebody is there to be asked, and to see what about.
pub(crate) fn can_ask(global: &Global) -> bool {
    !global.json && std::io::stdin().is_terminal()
}

/// Asks after all that was printed so far. Anything but a yes is a no.
pub(crate) fn says_yes(out: &mut Out, question: &str) -> Result<bool, Failure> {
    out.flush()?;
    let mut asks = std::io::stderr();
    write!(asks, "{question} [y/N] ")?;
    asks.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
