//! What commands read: a file, or standard input where the file is `-`; replies with their documents and names, and
//! records of them.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portcullis_contracts::limits::{MAX_DOCUMENT_BYTES, MAX_NAME_BYTES, MAX_NAMES, MAX_REPLY_BYTES};
use portcullis_contracts::verify::{Document, documents_given};
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

/// All of a file or of standard input as text, of at most so many bytes and the line break that files end with.
pub(crate) fn text(path: &Path, limit: usize) -> Result<String, Failure> {
    /// The line break.
    const MORE: usize = 2;
    let limit = (limit + MORE) as u64;
    let mut bytes = Vec::new();
    let done = if path == Path::new(STDIN) {
        io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
    };
    done.map_err(|error| unreadable(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(unreadable(path, format!("it has more than {limit} bytes")).help("split it"));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(path, error.utf8_error()))
}

/// A reply or a prompt without the line break at its end, which files have and replies have not.
pub(crate) fn reply(path: &Path) -> Result<String, Failure> {
    let mut text = text(path, MAX_REPLY_BYTES)?;
    let whole = text.strip_suffix('\n').map(|rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    text.truncate(whole.unwrap_or(text.len()));
    Ok(text)
}

/// The lines of a text that say something; `#` begins a comment.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Names, one a line.
pub(crate) fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let text = text(path, MAX_NAMES * MAX_NAME_BYTES)?;
    Ok(lines(text.trim_start_matches('\u{feff}')).map(str::to_owned).collect())
}

/// Documents: one JSON value, or one a line.
pub(crate) fn documents(path: &Path) -> Result<Vec<Document>, Failure> {
    /// The text of the documents, and what JSON adds to it.
    const BYTES_MAX: usize = 2 * MAX_DOCUMENT_BYTES;
    let text = text(path, BYTES_MAX)?;
    let value = match serde_json::from_str(&text) {
        // One document a line, and only one line.
        Ok(Value::Object(map)) if map.len() == 2 && map.contains_key("id") && map.contains_key("text") => {
            Value::Array(vec![Value::Object(map)])
        }
        Ok(value) => value,
        Err(whole) => {
            let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
            let read: Result<Vec<Value>, Failure> = lines
                .map(|(number, line)| {
                    serde_json::from_str(line).map_err(|error| {
                        // A value over many lines has its mistake elsewhere.
                        let why =
                            if number == 1 { whole.to_string() } else { format!("line {number}: {error}") };
                        unreadable(path, why)
                            .help("documents are JSON, or JSON Lines of `{\"id\", \"text\"}`")
                    })
                })
                .collect();
            Value::Array(read?)
        }
    };
    documents_given(&value).map_err(|error| unreadable(path, error))
}

/// Why reading records stopped.
#[derive(Debug)]
pub(crate) enum Stop<E = Infallible> {
    Data(DataError),
    Failure(Failure),
    /// What the reader found no use in going on after.
    Early(E),
}

impl<E> From<DataError> for Stop<E> {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl<E> From<Failure> for Stop<E> {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Hands over the records of JSON Lines with the numbers of their lines, one in memory at a time, with a bar on the
/// terminal where it disturbs nothing. `each` says whether to go on.
pub(crate) fn for_each_record<E>(
    path: &Path,
    each: impl FnMut(usize, Result<Value, String>) -> Result<bool, Stop<E>>,
) -> Result<(), Stop<E>> {
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
