//! What commands read: a file, or standard input where the file is `-`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portcullis_eval::data::DataError;
use portcullis_eval::stream;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line};

/// Name of standard input.
pub(crate) const STDIN: &str = "-";

/// Says which file cannot be read, and why.
pub(crate) fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot read `{}`: {error}", clean(&path.display().to_string())))
}

/// Hands over the records of JSON Lines with the numbers of their lines, one in memory at a time, with a bar on the
/// terminal where it disturbs nothing. `each` says whether to go on.
pub(crate) fn for_each_record<E: From<DataError> + From<Failure>>(
    path: &Path,
    each: impl FnMut(usize, Result<Value, String>) -> Result<bool, E>,
) -> Result<(), E> {
    if path == Path::new(STDIN) {
        return stream::records_of(path, io::stdin().lock(), each).map(drop);
    }
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let bar = progress(file.metadata().map_or(0, |meta| meta.len()));
    let from: Box<dyn Read> = Box::new(bar.wrap_read(file));
    let read = stream::records_of(path, from, each);
    bar.finish_and_clear();
    read.map(drop)
}

/// Rows and a bar on one terminal would overwrite each other.
fn progress(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() || io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {percent}%  {eta}");
    // Only a wrong template gives the default.
    bar.with_style(style.unwrap_or(ProgressStyle::default_bar()))
}

/// How rows about a record begin.
pub(crate) fn place(line: usize, key: &Value) -> String {
    match key {
        Value::Null => format!("line {line}  "),
        key => format!("line {line} (key {})  ", clean_line(&key.to_string())),
    }
}

/// A row, or a record, about a record that cannot be read.
pub(crate) fn tell_unreadable(out: &mut Out, json: bool, line: usize, message: &str) -> Result<(), Failure> {
    if json {
        return out.json(&json!({"record": "unreadable", "line": line, "message": message}));
    }
    let notice = out::NOTICE;
    out.line(format_args!("{notice}unreadable{notice:#}  {}", clean_line(message)))
}
