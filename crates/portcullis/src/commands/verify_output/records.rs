//! Many replies: records of JSON Lines, one in memory at a time.

use std::path::Path;

use portcullis_contracts::verify::{Document, Settings, documents_given};
use serde::Deserialize;
use serde_json::Value;

use super::shown::{Sums, Verified};
use crate::failure::Failure;
use crate::input::{self, Stop};
use crate::out::Out;

/// A reply and what it is held against.
#[derive(Debug, Deserialize)]
struct Record {
    #[serde(default)]
    key: Value,
    #[serde(default)]
    prompt: Option<String>,
    response: String,
    /// In place of those of the command line.
    #[serde(default)]
    documents: Option<Value>,
}

struct Many<'a> {
    /// What records cite that bring no documents.
    documents: Option<Vec<Document>>,
    settings: &'a Settings,
    json: bool,
    out: Out,
    sums: Sums,
}

/// Verifies every record of a file.
pub(super) fn run(
    path: &Path,
    documents: Option<Vec<Document>>,
    settings: &Settings,
    json: bool,
) -> Result<u8, Failure> {
    let mut many = Many { documents, settings, json, out: Out::new(), sums: Sums::default() };
    let read: Result<(), Stop> = input::for_each_record(path, |line, record| many.record(line, record));
    match read {
        Ok(()) => many.finish(),
        Err(Stop::Failure(failure)) => Err(failure),
        Err(Stop::Data(error)) => {
            many.out.finish()?;
            Err(Failure::unreadable(error))
        }
        Err(Stop::Early(never)) => match never {},
    }
}

impl Many<'_> {
    fn record(&mut self, line: usize, record: Result<Value, String>) -> Result<bool, Stop> {
        let record = record.and_then(|value| {
            serde_json::from_value::<Record>(value).map_err(|error| format!("line {line}: {error}"))
        });
        let read = record.and_then(|record| {
            let own = record.documents.as_ref().map(documents_given).transpose();
            Ok((own.map_err(|error| format!("line {line}: {error}"))?, record))
        });
        match read {
            Ok((own, record)) => self.reply(line, record, own)?,
            Err(message) => self.unreadable(line, &message)?,
        }
        Ok(true)
    }

    fn reply(&mut self, line: usize, record: Record, own: Option<Vec<Document>>) -> Result<(), Failure> {
        let place = input::place(line, &record.key);
        let documents = own.as_deref().or(self.documents.as_deref());
        let prompt = record.prompt.as_deref();
        let verified = Verified::of(Some(record.key), &record.response, prompt, documents, self.settings);
        self.sums.add(&verified.checks);
        if self.json {
            return self.out.json(&verified);
        }
        let lines = verified.lines(&place, true);
        lines.iter().try_for_each(|line| self.out.line(format_args!("{line}")))
    }

    fn unreadable(&mut self, line: usize, message: &str) -> Result<(), Failure> {
        self.sums.unreadable += 1;
        input::tell_unreadable(&mut self.out, self.json, line, message)
    }

    fn finish(mut self) -> Result<u8, Failure> {
        match self.json {
            true => self.out.json(self.sums.record())?,
            false => self.out.line(format_args!("{}", self.sums.line()))?,
        }
        self.out.finish()?;
        Ok(self.sums.code())
    }
}
