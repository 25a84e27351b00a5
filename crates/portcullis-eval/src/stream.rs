//! Records of JSON Lines one at a time, so that a data set of any size is read in the memory of its longest record.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::data::DataError;

/// Longest record in bytes.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Hands the records of a file to `each` in order, with the number of their lines from 1; in place of one that is not
/// JSON stands why. Goes on until `each` says false.
///
/// # Errors
/// Those of reading and of `each`, and a record of more than [`RECORD_BYTES_MAX`] bytes.
pub fn records<E: From<DataError>>(
    path: &Path,
    each: impl FnMut(usize, Result<Value, String>) -> Result<bool, E>,
) -> Result<bool, E> {
    let file = File::open(path).map_err(|source| DataError { path: path.to_owned(), source })?;
    records_of(path, file, each)
}

/// The same for what stands in a file, or comes from elsewhere: `path` is only its name.
///
/// # Errors
/// Those of [`records`].
pub fn records_of<E: From<DataError>>(
    path: &Path,
    mut file: impl Read,
    mut each: impl FnMut(usize, Result<Value, String>) -> Result<bool, E>,
) -> Result<bool, E> {
    let failed = |source: io::Error| DataError { path: path.to_owned(), source };
    let mut head = Vec::new();
    file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head).map_err(failed)?;
    let gzip = head == GZIP_MAGIC;
    let whole = head.as_slice().chain(file);
    let reader: Box<dyn Read + '_> =
        if gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let read = reader.by_ref().take(RECORD_BYTES_MAX + 1).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(true);
        }
        number += 1;
        if read as u64 > RECORD_BYTES_MAX {
            let why = format!("line {number} has more than {RECORD_BYTES_MAX} bytes");
            return Err(failed(io::Error::other(why)).into());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let record = serde_json::from_slice(&line).map_err(|error| format!("line {number}: {error}"));
        if !each(number, record)? {
            return Ok(false);
        }
    }
}
