//! The second half of the demo: exports, a verifier that needs nothing else, and a forger.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use portcullis_core::id::RunId;
use portcullis_ledger::ExportOptions;
use portcullis_proof::{Report, Status, Trust, verify};

use super::{DemoError, Scene};
use crate::home::Home;

/// What the forger wants to hide, and what he writes instead.
const DENIED: &[u8] = br#""enforced":"withheld""#;
const FORGED: &[u8] = br#""enforced":"executed""#;

/// Exports and verifies the runs, then tampers with a copy.
pub(super) fn present(
    folder: &Path,
    home: &Home,
    runs: &[RunId],
    tell: &mut (dyn FnMut(Scene<'_>) + Send),
) -> Result<(), DemoError> {
    let failed = |path: &Path, source| DemoError::Io { path: path.to_owned(), source };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let reader = home.store().reader()?;
    let trust_text = reader.trust_text(runs)?;
    let trust_file = folder.join("demo.trust");
    fs::write(&trust_file, &trust_text).map_err(|error| failed(&trust_file, error))?;
    let trust = Trust::parse(&trust_text).map_err(|error| DemoError::Unreadable(error.to_string()))?;
    let mut forged = false;
    for (number, run) in (1..).zip(runs) {
        let file = folder.join(format!("run-{number}.export"));
        let mut out = BufWriter::new(File::create(&file).map_err(|error| failed(&file, error))?);
        reader.export_run(*run, &mut out, ExportOptions { payloads: true })?;
        out.flush().map_err(|error| failed(&file, error))?;
        let report = check(&file, &trust)?;
        tell(Scene::Verified { run: *run, file: &file, report: &report });
        expect(&report, Status::Valid, &file)?;
        if !forged && forge(&file, &folder.join("tampered.export"))? {
            forged = true;
        }
    }
    let copy = folder.join("tampered.export");
    let report = check(&copy, &trust)?;
    let change = "a call that was withheld is made to look executed";
    tell(Scene::Tampered { change, file: &copy, report: &report });
    expect(&report, Status::Invalid, &copy)
}

fn check(file: &Path, trust: &Trust) -> Result<Report, DemoError> {
    let opened = File::open(file).map_err(|source| DemoError::Io { path: file.to_owned(), source })?;
    verify(BufReader::new(opened), Some(trust)).map_err(|error| DemoError::Unreadable(error.to_string()))
}

fn expect(report: &Report, wanted: Status, file: &Path) -> Result<(), DemoError> {
    if report.status == wanted {
        return Ok(());
    }
    Err(DemoError::Astray(format!("`{}` is {:?}, not {wanted:?}", file.display(), report.status)))
}

/// Writes a copy of an export in which the first withheld action reads as executed; false when there is none.
fn forge(export: &Path, copy: &Path) -> Result<bool, DemoError> {
    let failed = |path: &Path, source| DemoError::Io { path: path.to_owned(), source };
    let mut bytes = fs::read(export).map_err(|error| failed(export, error))?;
    let Some(at) = bytes.windows(DENIED.len()).position(|window| window == DENIED) else { return Ok(false) };
    bytes.splice(at..at + DENIED.len(), FORGED.iter().copied());
    fs::write(copy, bytes).map_err(|error| failed(copy, error))?;
    Ok(true)
}
