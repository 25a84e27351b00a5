//! Standard output: styled for terminals, plain elsewhere, JSON where asked.

use std::fmt;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use anstyle::{AnsiColor, Style};
use portcullis_core::display::write_json;
pub(crate) use portcullis_core::display::{line as clean_line, visible as clean};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use serde::Serialize;

use crate::advice::advice;
use crate::failure::Failure;

/// Standard output of one command. Once nobody reads it any more, as after `| head`, what is written is dropped: that is
/// no error, and the command still ends with its own exit code.
pub(crate) struct Out {
    to: BufWriter<anstream::AutoStream<StdoutLock<'static>>>,
    closed: bool,
}

impl Out {
    /// Locks standard output.
    pub(crate) fn new() -> Self {
        Self { to: BufWriter::new(anstream::stdout().lock()), closed: false }
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<anstream::AutoStream<StdoutLock<'static>>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        match write(&mut self.to) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            written => written?,
        }
        Ok(())
    }

    /// One line for people.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), Failure> {
        self.write(|to| writeln!(to, "{line}"))
    }

    /// One line that names commands as the next step.
    pub(crate) fn next_step(&mut self, line: fmt::Arguments<'_>) -> Result<(), Failure> {
        self.line(format_args!("{}", advice(&line.to_string())))
    }

    /// One line for programs, and for people who look at it: what cannot be seen is escaped.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.write(|to| {
            write_json(&mut *to, value).map_err(io::Error::from)?;
            to.write_all(b"\n")
        })
    }

    /// A line of somebody else's, byte for byte.
    pub(crate) fn verbatim(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.write(|to| {
            to.write_all(line)?;
            to.write_all(b"\n")
        })
    }

    /// Hands over what is buffered so far, for a command that goes on as long as somebody reads.
    ///
    /// # Errors
    /// [`Failure::OutputClosed`] once nobody does.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write(|to| to.flush())?;
        if self.closed { Err(Failure::OutputClosed) } else { Ok(()) }
    }

    /// Hands over what is buffered. Without it a failure to write could be lost.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.write(|to| to.flush())
    }
}

/// Bold.
pub(crate) const STRONG: Style = Style::new().bold();
/// For what matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Green: yes.
pub(crate) const GOOD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
/// Yellow: take notice.
pub(crate) const NOTICE: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
/// Red: no.
pub(crate) const BAD: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// The colour of a verdict.
pub(crate) fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Allow => GOOD,
        Verdict::Warn | Verdict::Modify | Verdict::Clarify | Verdict::Pause | Verdict::Review => NOTICE,
        Verdict::Deny | Verdict::Halt => BAD,
    }
}

/// The start of an id: enough to tell it from others and to type it.
pub(crate) fn short(id: &impl fmt::Display) -> String {
    /// The first twelve digits of an id are the time it was made at; four more tell neighbours apart.
    const DIGITS: usize = 16;
    let mut text = id.to_string();
    text.truncate(DIGITS);
    text
}

/// A time to the second.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.without_fraction()
}

/// Width of the terminal in columns; what fits a page when the output is not one.
pub(crate) fn terminal_width() -> usize {
    /// For files and pipes.
    const PAGE: usize = 160;
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal().or(columns).unwrap_or(PAGE)
}

/// A number with its noun.
pub(crate) fn count(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1_u64, "run", "runs"), "1 run");
        assert_eq!(count(0_usize, "run", "runs"), "0 runs");
        assert_eq!(count(u64::MAX, "leaf", "leaves"), "18446744073709551615 leaves");
    }
}
