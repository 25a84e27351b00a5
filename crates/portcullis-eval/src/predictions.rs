//! What was decided, one line a record in the order of the input, so that anyone can score it.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use serde::Serialize;

/// A file of predictions that is being written, or none.
#[derive(Debug)]
pub struct Predictions(Option<BufWriter<File>>);

impl Predictions {
    /// Predictions that nobody wants.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// Those of creating a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Some(BufWriter::new(File::create(path)?))))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, prediction: &impl Serialize) -> io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        serde_json::to_writer(&mut *file, prediction)?;
        file.write_all(b"\n")
    }

    /// Hands over what is buffered. Without it a failure to write could be lost.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |mut file| file.flush())
    }
}
