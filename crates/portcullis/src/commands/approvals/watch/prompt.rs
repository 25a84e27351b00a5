//! Questions at the terminal, which go on being told what comes while nobody has answered yet.

use std::io::Write as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::failure::Failure;

/// Longest pause before it is looked for something new while a question is open.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The lines that a person types.
pub(super) struct Prompt {
    lines: Receiver<std::io::Result<String>>,
}

impl Prompt {
    /// Begins to read standard input. Nothing else may read it from then on.
    pub(super) fn open() -> Self {
        let (to, lines) = mpsc::channel();
        // It ends with the process: a read of a terminal cannot be broken off.
        std::thread::spawn(move || {
            for line in std::io::stdin().lines() {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// The answer to a question, or none where there are no more lines. What `news` finds meanwhile is said, and the
    /// question asked again.
    pub(super) fn ask(
        &self,
        question: &str,
        mut news: impl FnMut() -> Option<String>,
    ) -> Result<Option<String>, Failure> {
        say(question)?;
        loop {
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => return Ok(Some(line?.trim().to_owned())),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(news) = news() {
                        say(&format!("\n{news}\n{question}"))?;
                    }
                }
            }
        }
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut asks = std::io::stderr();
    write!(asks, "{text}")?;
    Ok(asks.flush()?)
}
