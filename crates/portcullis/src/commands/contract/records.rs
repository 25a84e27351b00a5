//! Many replies: records of JSON Lines, one in memory at a time.

use std::io::Write as _;
use std::path::Path;

use portcullis_assist::record::{Reply, check_reply, repair_reply};
use portcullis_assist::{Compiled, ModelError, Written};
use portcullis_contracts::Given;
use serde::Deserialize;
use serde_json::Value;

use super::Deed;
use super::asking::{Desk, unanswered};
use super::verdict::{self, Sums};
use crate::failure::Failure;
use crate::input::{self, Stop};
use crate::out::Out;

/// A reply and what it must hold.
#[derive(Debug, Deserialize)]
struct Record {
    #[serde(default)]
    key: Value,
    #[serde(default)]
    prompt: Option<String>,
    response: String,
    #[serde(default)]
    contracts: Vec<Written>,
    #[serde(default)]
    documents: Option<Value>,
    #[serde(default)]
    names: Option<Vec<String>>,
    #[serde(default)]
    high_risk: Option<Vec<String>>,
}

/// A line at which who judges or rewrites gave no answer, and would not for the next record.
type Unanswered = (usize, ModelError);

struct Many<'a> {
    /// Contracts of every reply.
    written: &'a [Written],
    /// What replies are held against whose records do not say.
    given: &'a Given,
    deed: Deed,
    desk: &'a Desk<'a>,
    json: bool,
    out: Out,
    sums: Sums,
    /// The contracts of the latest record, which the next one often has too.
    latest: Option<(Vec<Written>, Compiled)>,
}

/// Checks or repairs every record of a file. `written` are contracts of every reply, before those of the record; what is
/// `given` counts for records that do not bring it.
pub(super) fn run(
    path: &Path,
    written: &[Written],
    given: &Given,
    deed: Deed,
    desk: &Desk<'_>,
    json: bool,
) -> Result<u8, Failure> {
    let mut many =
        Many { written, given, deed, desk, json, out: Out::new(), sums: Sums::default(), latest: None };
    let read = input::for_each_record(path, |line, record| many.record(line, record));
    match read {
        Ok(()) => many.finish(),
        Err(Stop::Failure(failure)) => Err(failure),
        Err(Stop::Early((line, error))) => {
            many.finish()?;
            Err(unanswered(&format!("stopped at line {line}: "), &error))
        }
        Err(Stop::Data(error)) => {
            many.out.finish()?;
            Err(Failure::unreadable(error))
        }
    }
}

impl Many<'_> {
    fn record(&mut self, line: usize, record: Result<Value, String>) -> Result<bool, Stop<Unanswered>> {
        let record = record.and_then(|value| {
            serde_json::from_value::<Record>(value).map_err(|error| format!("line {line}: {error}"))
        });
        let compiled = record.and_then(|mut record| {
            let Record { prompt, documents, names, high_risk, .. } = &mut record;
            let (documents, names) = (documents.take(), names.take());
            let given = Given::of(prompt.take(), documents.as_ref(), names.as_deref(), high_risk.take());
            let given = given.map_err(|error| format!("line {line}: {error}"))?;
            let written: Vec<Written> = self.written.iter().chain(&record.contracts).cloned().collect();
            if written.is_empty() {
                return Err(format!(
                    "line {line}: there is no contract, in the record or on the command line"
                ));
            }
            let compiled = match self.latest.take().filter(|(known, _)| *known == written) {
                Some((_, compiled)) => compiled,
                None => Compiled::of(&written).map_err(|error| format!("line {line}: {error}"))?,
            };
            Ok((record, given, written, compiled))
        });
        match compiled {
            Ok((record, given, written, compiled)) => {
                let error = self.reply(line, &record, &given, &compiled)?;
                self.latest = Some((written, compiled));
                if let Some(error) = error.filter(ModelError::is_lasting) {
                    return Err(Stop::Early((line, error)));
                }
            }
            Err(message) => self.unreadable(line, &message)?,
        }
        Ok(true)
    }

    /// Deals with one reply; why nobody answered, where nobody did.
    fn reply(
        &mut self,
        line: usize,
        record: &Record,
        given: &Given,
        compiled: &Compiled,
    ) -> Result<Option<ModelError>, Failure> {
        let place = input::place(line, &record.key);
        let context = given.context_or(self.given);
        let reply = Reply { key: Some(&record.key), context, text: &record.response };
        let Desk { helpers, settings, clock, runtime } = self.desk;
        match self.deed {
            Deed::Check => {
                let checked = runtime.block_on(check_reply(reply, compiled, *helpers, settings, *clock));
                self.sums.checked(&checked);
                if self.json {
                    self.out.json(&checked)?;
                } else {
                    let lines = verdict::of_checked(&checked, &place, true);
                    lines.iter().try_for_each(|line| self.out.line(format_args!("{line}")))?;
                }
                Ok(checked.error().cloned())
            }
            Deed::Repair => {
                let mended = runtime.block_on(repair_reply(reply, compiled, *helpers, settings, *clock));
                let mended = mended.map_err(Failure::usage)?;
                self.sums.mended(&mended);
                self.out.json(&mended)?;
                Ok(mended.error().cloned())
            }
        }
    }

    fn unreadable(&mut self, line: usize, message: &str) -> Result<(), Failure> {
        self.sums.unreadable += 1;
        // What a repair leaves is records, whoever reads it.
        let json = self.json || self.deed == Deed::Repair;
        input::tell_unreadable(&mut self.out, json, line, message)
    }

    fn finish(mut self) -> Result<u8, Failure> {
        match (self.json, self.deed) {
            (true, _) => self.out.json(&self.sums)?,
            (false, Deed::Check) => self.out.line(format_args!("{}", self.sums.line()))?,
            (false, Deed::Repair) => {}
        }
        self.out.finish()?;
        if !self.json && self.deed == Deed::Repair {
            writeln!(anstream::stderr(), "{}", self.sums.line())?;
        }
        Ok(self.sums.code())
    }
}
