//! Checks a pack: every hash computed again, the signature, and the chain of the record itself.
//!
//! The reader brings the key. Without it the pack is held against itself, which shows damage and nothing else, and the
//! best answer is `INCOMPLETE`.

use portcullis_proof::log::{Note, VerifierKey};
use portcullis_proof::trust::{head_line, preamble};
use portcullis_proof::{Head, Hex, Report, Status, Trust, verify};
use serde::Serialize;

use crate::manifest::{FileHash, LineHash, MANIFEST_FORMAT, Manifest, note_text, sha256};
use crate::pack::{AUDIT_LOG, EXPORT, MANIFEST, NOTE};
use crate::zip::Named;

/// The largest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// How a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileResult {
    /// It is the one that the manifest names.
    Pass,
    /// It is another, is missing, or is not named.
    Fail,
    /// Nothing vouches for it.
    NotChecked,
}

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    /// Its name.
    pub file: String,
    /// How it stands.
    pub result: FileResult,
    /// What was found.
    pub message: String,
}

/// What the pack says of itself, once the manifest could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedPack {
    /// The run.
    pub run: String,
    /// The store.
    pub origin: String,
    /// When the pack was made, as it claims.
    pub generated_at: String,
    /// Where the run stands.
    pub head: Head,
    /// The key that the pack names as its own.
    pub key: String,
}

/// The answer.
#[derive(Debug, Clone, Serialize)]
pub struct PackCheck {
    /// VALID, INVALID or INCOMPLETE.
    pub status: Status,
    /// What the pack says of itself; none where its manifest cannot be read.
    pub pack: Option<CheckedPack>,
    /// Whether the signature holds under the reader's key.
    pub signed: bool,
    /// Every file, those that fail first.
    pub files: Vec<CheckedFile>,
    /// What the verifier found about the record.
    pub record: Option<Report>,
}

impl PackCheck {
    /// The exit code of a program: 0 valid, 1 invalid, 2 incomplete.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Valid => 0,
            Status::Invalid => 1,
            Status::Incomplete => 2,
        }
    }

    /// The files that fail.
    pub fn failed(&self) -> impl Iterator<Item = &CheckedFile> {
        self.files.iter().filter(|file| file.result == FileResult::Fail)
    }
}

/// Checks the files of a pack. `key` is the store's, as the reader got it from elsewhere; `trust` are heads that the
/// reader kept.
#[must_use]
pub fn check(files: &[Named], key: Option<&VerifierKey>, trust: Option<&Trust>) -> PackCheck {
    let mut checker = Checker { files, key, results: Vec::new(), signed: false };
    let manifest = checker.manifest();
    let record = manifest.as_ref().and_then(|manifest| {
        checker.artifacts(manifest);
        checker.record(manifest, trust)
    });
    let failed = checker.results.iter().any(|file| file.result == FileResult::Fail);
    let sound = record.as_ref().is_some_and(|report| report.status == Status::Valid);
    let status = match (failed, sound && checker.signed) {
        (true, _) => Status::Invalid,
        (false, true) => Status::Valid,
        (false, false) => Status::Incomplete,
    };
    let mut results = checker.results;
    results.sort_by_key(|file| file.result != FileResult::Fail);
    let pack = manifest.map(|manifest| CheckedPack {
        run: manifest.run.to_string(),
        origin: manifest.origin,
        generated_at: manifest.generated_at.to_string(),
        head: Head { count: manifest.head.count, link: manifest.head.link },
        key: manifest.key,
    });
    PackCheck { status, pack, signed: checker.signed, files: results, record }
}

struct Checker<'a> {
    files: &'a [Named],
    key: Option<&'a VerifierKey>,
    results: Vec<CheckedFile>,
    signed: bool,
}

impl<'a> Checker<'a> {
    fn file(&self, name: &str) -> Option<&'a [u8]> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, bytes)| bytes.as_slice())
    }

    fn found(&mut self, file: &str, result: FileResult, message: impl Into<String>) {
        self.results.push(CheckedFile { file: file.to_owned(), result, message: message.into() });
    }

    /// The manifest, where it can be read; its signature is checked on the way.
    fn manifest(&mut self) -> Option<Manifest> {
        let Some(bytes) = self.file(MANIFEST) else {
            self.found(
                MANIFEST,
                FileResult::Fail,
                "it is missing, and nothing else can be checked without it",
            );
            return None;
        };
        if bytes.len() > MANIFEST_BYTES_MAX {
            self.found(MANIFEST, FileResult::Fail, format!("it has more than {MANIFEST_BYTES_MAX} bytes"));
            return None;
        }
        let manifest = match serde_json::from_slice::<Manifest>(bytes) {
            Ok(manifest) if manifest.format == MANIFEST_FORMAT => Some(manifest),
            Ok(manifest) => {
                let format = manifest.format.chars().take(80).collect::<String>().escape_debug().to_string();
                self.found(
                    MANIFEST,
                    FileResult::Fail,
                    format!("its format is `{format}`, this program reads `{MANIFEST_FORMAT}`"),
                );
                None
            }
            Err(error) => {
                self.found(MANIFEST, FileResult::Fail, format!("it cannot be read: {error}"));
                None
            }
        };
        self.note(manifest.as_ref(), bytes);
        manifest
    }

    /// The note that signs the manifest.
    fn note(&mut self, manifest: Option<&Manifest>, bytes: &[u8]) {
        let Some(note_bytes) = self.file(NOTE) else {
            return self.found(NOTE, FileResult::Fail, "it is missing: nobody vouches for the manifest");
        };
        let note = match Note::parse(note_bytes) {
            Ok(note) => note,
            Err(error) => return self.found(NOTE, FileResult::Fail, error.to_string()),
        };
        // Without a key of the reader's, the one that the pack names shows whether note and manifest are whole.
        let own = manifest.and_then(|manifest| manifest.key.parse::<VerifierKey>().ok());
        let Some(key) = self.key.or(own.as_ref()) else {
            return self.found(NOTE, FileResult::NotChecked, "there is no key to check the signature with");
        };
        if let Err(error) = note.verify([key]) {
            let whose = if self.key.is_some() { "your key" } else { "the key that the pack names" };
            return self.found(
                NOTE,
                FileResult::Fail,
                format!("the signature does not hold under {whose}: {error}"),
            );
        }
        let expected = manifest.map(|manifest| note_text(manifest, bytes));
        match expected {
            Some(expected) if expected != note.text() => {
                let message = "it is not the manifest that the note signs";
                self.found(MANIFEST, FileResult::Fail, message);
                self.found(NOTE, FileResult::Pass, "the signature holds, over another manifest");
            }
            None => self.found(NOTE, FileResult::Pass, "the signature holds"),
            Some(_) => {
                self.signed = self.key.is_some();
                let (result, message) = match self.key {
                    Some(key) => (FileResult::Pass, format!("signed by `{}`", key.name())),
                    None => (
                        FileResult::NotChecked,
                        "the signature holds under the key that the pack itself names: anybody could have made it".to_owned(),
                    ),
                };
                self.found(MANIFEST, FileResult::Pass, "the note signs it");
                self.found(NOTE, result, message);
            }
        }
    }

    /// Every file that the manifest names, and every one that it does not.
    fn artifacts(&mut self, manifest: &Manifest) {
        for artifact in &manifest.artifacts {
            match self.file(&artifact.name) {
                None => self.found(&artifact.name, FileResult::Fail, "it is missing"),
                Some(bytes) => match differs(artifact, bytes) {
                    None => self.found(&artifact.name, FileResult::Pass, format!("{} bytes", artifact.bytes)),
                    Some(message) if artifact.name == AUDIT_LOG => {
                        let line = changed_line(bytes, &manifest.audit_log);
                        self.found(&artifact.name, FileResult::Fail, line.unwrap_or(message));
                    }
                    Some(message) => self.found(&artifact.name, FileResult::Fail, message),
                },
            }
        }
        let unknown: Vec<&str> = self
            .files
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| *name != MANIFEST && *name != NOTE)
            .filter(|name| !manifest.artifacts.iter().any(|artifact| artifact.name == *name))
            .collect();
        for name in unknown {
            self.found(name, FileResult::Fail, "the manifest does not name it");
        }
    }

    /// The record by its own chain, held against the head that was signed and those of the reader.
    fn record(&mut self, manifest: &Manifest, trust: Option<&Trust>) -> Option<Report> {
        let bytes = self.file(EXPORT)?;
        let head = Head { count: manifest.head.count, link: manifest.head.link };
        let mut text = preamble(&manifest.origin);
        text.push_str(&head_line(Hex(*manifest.run.as_bytes()), head));
        text.push('\n');
        let signed = Trust::parse(&text).ok().filter(|_| self.signed);
        let mut report = self.verified(bytes, signed.as_ref())?;
        if report.head != Some(head) && report.status != Status::Invalid {
            self.found(EXPORT, FileResult::Fail, "its head is not the one of the manifest");
        }
        if let Some(trust) = trust
            && report.status != Status::Invalid
        {
            let kept = self.verified(bytes, Some(trust))?;
            if kept.status == Status::Invalid || !self.signed {
                report = kept;
            }
        }
        Some(report)
    }

    fn verified(&mut self, bytes: &[u8], trust: Option<&Trust>) -> Option<Report> {
        match verify(bytes, trust) {
            Ok(report) => {
                if let Some(failure) = &report.failure {
                    let event = failure.seq.map_or_else(String::new, |seq| format!(", event {seq}"));
                    let at = format!("line {}, byte {}{event}", failure.line, failure.byte);
                    self.found(
                        EXPORT,
                        FileResult::Fail,
                        format!("{} at {at}: {}", failure.attack, failure.message),
                    );
                }
                Some(report)
            }
            Err(error) => {
                self.found(EXPORT, FileResult::Fail, error.to_string());
                None
            }
        }
    }
}

fn differs(expected: &FileHash, bytes: &[u8]) -> Option<String> {
    if bytes.len() as u64 != expected.bytes {
        return Some(format!("it has {} bytes, the manifest says {}", bytes.len(), expected.bytes));
    }
    let found = sha256(bytes);
    (found != expected.sha256)
        .then(|| format!("its SHA-256 is {found}, the manifest says {}", expected.sha256))
}

/// Where an audit log departs from the lines of the manifest.
fn changed_line(bytes: &[u8], expected: &[LineHash]) -> Option<String> {
    let whole = bytes.strip_suffix(b"\n");
    let lines: Vec<_> = whole.unwrap_or(bytes).split(|byte| *byte == b'\n').map(sha256).collect();
    let lines = if bytes.is_empty() { Vec::new() } else { lines };
    let at = lines.iter().zip(expected).position(|(line, expected)| *line != expected.sha256);
    let at = at.unwrap_or(lines.len().min(expected.len()));
    let (line, here, next) = (at + 1, expected.get(at), expected.get(at + 1));
    let found = |number: usize| lines.get(number).copied();
    Some(match here {
        None if lines.len() > at => format!("line {line} is one too many: the log ends with line {at}"),
        None => "its last line does not end in one newline".to_owned(),
        Some(here) if at == lines.len() => {
            format!("it is cut short: line {line}, event {}, and what follows are missing", here.event)
        }
        Some(here) => match next {
            Some(next) if found(at) == Some(next.sha256) && found(at + 1) == Some(here.sha256) => {
                format!(
                    "lines {line} and {}, events {} and {}, are swapped",
                    line + 1,
                    here.event,
                    next.event
                )
            }
            Some(next) if found(at) == Some(next.sha256) => {
                format!("line {line}, event {}, is missing", here.event)
            }
            _ if found(at + 1) == Some(here.sha256) => {
                format!("line {line} is one too many: event {} belongs there", here.event)
            }
            _ if lines.len() < expected.len() && at + 1 == lines.len() && whole.is_none() => {
                format!("it is cut short within line {line}, event {}", here.event)
            }
            _ => format!("line {line}, event {}, was changed", here.event),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_log_names_the_line_and_the_event() {
        let lines = ["a", "b", "c", "d"];
        let event = |number: usize| 10 + number as u64;
        let expected: Vec<LineHash> = lines
            .iter()
            .enumerate()
            .map(|(number, line)| LineHash { event: event(number), sha256: sha256(line.as_bytes()) })
            .collect();
        for (text, wanted) in [
            ("a\nx\nc\nd\n", "line 2, event 11, was changed"),
            ("a\nc\nd\n", "line 2, event 11, is missing"),
            ("a\nc\nb\nd\n", "lines 2 and 3, events 11 and 12, are swapped"),
            ("a\nb\n", "it is cut short: line 3, event 12, and what follows are missing"),
            ("a\nb\nc\n", "it is cut short: line 4, event 13, and what follows are missing"),
            ("", "it is cut short: line 1, event 10, and what follows are missing"),
            ("a\nx\nb\nc\nd\n", "line 2 is one too many: event 11 belongs there"),
            ("a\nb\nc\nd\ne\n", "line 5 is one too many: the log ends with line 4"),
            ("a\nb\nc\nd", "its last line does not end in one newline"),
        ] {
            assert_eq!(changed_line(text.as_bytes(), &expected).as_deref(), Some(wanted), "{text:?}");
        }
    }
}
