//! A governance pack that somebody brings, as one archive: its manifest, its files and the record in it are checked.

use std::io::{Cursor, Read as _};

use portcullis_console::log::{Upload, Verified};
use portcullis_governance::check;
use portcullis_governance::check::{FileResult, PackCheck};
use portcullis_governance::zip::Named;
use portcullis_ledger::log::{LogPlaces, LogReader, verifier_key};
use portcullis_proof::log::TrustPolicy;
use portcullis_session::gate::Gate;

use super::{answer, word};

/// Files of an archive; a pack has its artefacts, the record and tiles of the log.
const FILES_MAX: usize = 1_024;
/// Bytes of all of them when they are unpacked.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;

/// Whether it is a ZIP archive.
pub(super) fn is_archive(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04")
}

/// What the check of packs says of an archive.
pub(super) fn verified(gate: &Gate, places: &LogPlaces, name: String, file: &[u8]) -> Upload {
    let files = match unpacked(file) {
        Ok(files) => files,
        Err(why) => return Upload::Refused(format!("{why}.")),
    };
    // What this gate's own log has is believed.
    let policy = own_policy(places);
    let report = check(&files, None, policy.as_ref());
    let run = report.pack.as_ref().map(|pack| pack.run.clone());
    let own = run.as_deref().and_then(|run| run.parse().ok());
    let here =
        own.is_some_and(|run| gate.ledger().read(|reader| reader.run(run)).is_ok_and(|run| run.is_some()));
    let payloads = report.record.as_ref().map(|record| record.payloads);
    let payloads = payloads.map(|of| (of.named, of.verified, of.withheld, of.erased)).unwrap_or_default();
    Upload::Verified(Box::new(Verified {
        status: answer(report.status),
        failure: report.failed().next().map(|failed| {
            ("a file of the pack".to_owned(), format!("`{}`", failed.file), failed.message.clone())
        }),
        events: report.pack.as_ref().map_or(0, |pack| pack.head.count),
        checks: checks(&report),
        run,
        here,
        payloads,
        name,
        all_checked: true,
        against: match policy {
            Some(_) => "The pack was held against the log of this gate.".to_owned(),
            None => "This gate has no log yet, so the pack was held against itself: that shows damage alone."
                .to_owned(),
        },
    }))
}

fn checks(report: &PackCheck) -> Vec<(String, &'static str, String)> {
    let of_file = |result| match result {
        FileResult::Pass => "pass",
        FileResult::Fail => "FAIL",
        FileResult::NotChecked => "not checked",
    };
    let files =
        report.files.iter().map(|file| (file.file.clone(), of_file(file.result), file.message.clone()));
    let record = report.record.iter().flat_map(|record| &record.checks);
    let record =
        record.map(|check| (format!("record: {}", check.name), word(check.result), check.detail.clone()));
    let log = report.log.iter().flat_map(|log| &log.checks);
    let log = log.map(|check| (format!("log: {}", check.name), word(check.result), check.detail.clone()));
    files.chain(record).chain(log).collect()
}

fn own_policy(places: &LogPlaces) -> Option<TrustPolicy> {
    let key = verifier_key(places).ok()?;
    let text = LogReader::open(places).ok()?.policy_text(&key, true).ok()?;
    TrustPolicy::parse(text.as_bytes()).ok()
}

/// The files of an archive, within limits: a small archive can hold a lot.
fn unpacked(file: &[u8]) -> Result<Vec<Named>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("the archive cannot be read: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).map_err(|error| unreadable(&error))?;
    if archive.len() > FILES_MAX {
        return Err(format!("the archive has {} files; a pack has at most {FILES_MAX}", archive.len()));
    }
    let mut files = Vec::with_capacity(archive.len());
    let mut left = UNPACKED_BYTES_MAX;
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).map_err(|error| unreadable(&error))?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(|error| unreadable(&error))?.into_owned();
        let mut bytes = Vec::new();
        // An archive holds a sum of each file, which reading checks.
        let read = (&mut entry).take(left + 1).read_to_end(&mut bytes);
        read.map_err(|error| {
            format!("`{}` in it is damaged: {error}", name.chars().take(80).collect::<String>())
        })?;
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            format!(
                "its files have more than {} MiB together; check it with `portcullis governance --check`",
                UNPACKED_BYTES_MAX >> 20
            )
        })?;
        files.push((name, bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn archive(files: &[(&str, usize)]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&vec![0; *bytes]).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused() {
        let small = archive(&[("a", 10), ("b", 0)]);
        assert!(is_archive(&small));
        assert_eq!(unpacked(&small).unwrap().len(), 2);
        let bomb = archive(&[("a", 100 << 20), ("b", 40 << 20)]);
        assert!(bomb.len() < 1 << 20);
        assert!(unpacked(&bomb).unwrap_err().contains("128 MiB"));
        let mut damaged = archive(&[("a", 1 << 16)]);
        let middle = 40;
        damaged[middle] ^= 0xff;
        assert!(unpacked(&damaged).is_err());
        assert!(unpacked(b"PK\x03\x04nothing").unwrap_err().contains("cannot be read"));
    }
}
