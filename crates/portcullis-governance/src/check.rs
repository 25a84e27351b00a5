//! Checks a pack: every hash computed again, the signature, the chain of the record, and what the log says of it.
//!
//! What to believe is the reader's to bring: a trust policy with the key of the log. The log enrolled the writer, the
//! writer signed the heads of the run, and the same key signs the manifest. Without a policy the pack is held against
//! itself, which shows damage and nothing else, and the best answer is `INCOMPLETE`.

use portcullis_proof::log::leaf::{Leaf, SignedLeaf, key_id};
use portcullis_proof::log::{File, LogReport, Note, TrustPolicy, VerifierKey};
use portcullis_proof::{Head, Report, Status, Trust, verify, verify_files};
use serde::Serialize;

use crate::manifest::{FileHash, LineHash, MANIFEST_FORMAT, Manifest, note_text, sha256};
use crate::pack::{AUDIT_LOG, EXPORT, LOG_FOLDER, MANIFEST, NOTE};
use crate::zip::Named;

/// The largest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// The result for a file.
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

/// A file that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    /// Its name.
    pub file: String,
    /// Its state.
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
    /// The head of the run.
    pub head: Head,
    /// The key that the pack names as its own.
    pub key: String,
}

/// The answer.
#[derive(Debug, Clone, Serialize)]
pub struct PackCheck {
    /// VALID, INVALID or INCOMPLETE.
    pub status: Status,
    /// What the pack says of itself, or `None` if its manifest cannot be read.
    pub pack: Option<CheckedPack>,
    /// Whether the key that signed the manifest is the one that signed the run's heads in a log that the reader
    /// believes.
    pub signed: bool,
    /// Every file, those that fail first.
    pub files: Vec<CheckedFile>,
    /// What the verifier found about the record.
    pub record: Option<Report>,
    /// What it found about the log, or `None` without a trust policy.
    pub log: Option<LogReport>,
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

/// Checks the files of a pack. `trust` are heads of runs, `policy` the logs and witnesses that the reader believes.
#[must_use]
pub fn check(files: &[Named], trust: Option<&Trust>, policy: Option<&TrustPolicy>) -> PackCheck {
    let mut checker = Checker { files, results: Vec::new() };
    let manifest = checker.manifest();
    let mut judged = None;
    let mut signed = false;
    if let Some((manifest, noted)) = &manifest {
        checker.artifacts(manifest);
        judged = checker.record(manifest, trust, policy);
        let anchored = judged.as_ref().is_some_and(|judged| judged.anchored);
        signed = *noted && anchored && checker.signer_is_writer(manifest);
        if *noted {
            checker.signature(signed, policy.is_some(), anchored);
        }
    }
    let failed = checker.results.iter().any(|file| file.result == FileResult::Fail);
    let sound = judged.as_ref().is_some_and(|judged| judged.status == Status::Valid);
    let status = match (failed, sound && signed) {
        (true, _) => Status::Invalid,
        (false, true) => Status::Valid,
        (false, false) => Status::Incomplete,
    };
    let mut results = checker.results;
    results.sort_by_key(|file| file.result != FileResult::Fail);
    let pack = manifest.map(|(manifest, _)| CheckedPack {
        run: manifest.run.to_string(),
        origin: manifest.origin,
        generated_at: manifest.generated_at.to_string(),
        head: Head { count: manifest.head.count, link: manifest.head.link },
        key: manifest.key,
    });
    let (record, log) = judged.map_or((None, None), |judged| (Some(judged.record), judged.log));
    PackCheck { status, pack, signed, files: results, record, log }
}

/// What was found about the record.
struct Judged {
    status: Status,
    record: Report,
    log: Option<LogReport>,
    /// Whether a log that the reader believes has heads of the run.
    anchored: bool,
}

struct Checker<'a> {
    files: &'a [Named],
    results: Vec<CheckedFile>,
}

impl<'a> Checker<'a> {
    fn file(&self, name: &str) -> Option<&'a [u8]> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, bytes)| bytes.as_slice())
    }

    fn found(&mut self, file: &str, result: FileResult, message: impl Into<String>) {
        self.results.push(CheckedFile { file: file.to_owned(), result, message: message.into() });
    }

    /// The manifest, where it can be read, and whether the note beside it is whole and signs it.
    fn manifest(&mut self) -> Option<(Manifest, bool)> {
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
            Ok(manifest) if manifest.format == MANIFEST_FORMAT => manifest,
            Ok(manifest) => {
                let format = manifest.format.chars().take(80).collect::<String>().escape_debug().to_string();
                let message = format!("its format is `{format}`, this release reads `{MANIFEST_FORMAT}`");
                self.found(MANIFEST, FileResult::Fail, message);
                return None;
            }
            Err(error) => {
                self.found(MANIFEST, FileResult::Fail, format!("it cannot be read: {error}"));
                return None;
            }
        };
        let noted = self.note(&manifest, bytes);
        Some((manifest, noted))
    }

    /// Holds the note against the manifest, under the key that the manifest names. Whose key that is comes later.
    fn note(&mut self, manifest: &Manifest, bytes: &[u8]) -> bool {
        let Some(note) = self.file(NOTE) else {
            self.found(NOTE, FileResult::Fail, "it is missing, so nothing vouches for the manifest");
            return false;
        };
        let note = match Note::parse(note) {
            Ok(note) => note,
            Err(error) => {
                self.found(NOTE, FileResult::Fail, error.to_string());
                return false;
            }
        };
        let key = match manifest.key.parse::<VerifierKey>() {
            Ok(key) => key,
            Err(error) => {
                self.found(MANIFEST, FileResult::Fail, format!("its key: {error}"));
                return false;
            }
        };
        let said = note_text(manifest, bytes) == note.text();
        match (note.verify([&key]), said) {
            (Ok(_), true) => {
                self.found(MANIFEST, FileResult::Pass, "the note signs this manifest");
                true
            }
            (Ok(_), false) => {
                self.found(MANIFEST, FileResult::Fail, "it is not the manifest that the note signs");
                false
            }
            (Err(error), true) => {
                self.found(NOTE, FileResult::Fail, format!("its signature does not hold: {error}"));
                false
            }
            // Either of them may be the changed one: the key is in the manifest.
            (Err(error), false) => {
                self.found(MANIFEST, FileResult::Fail, "it is not the manifest that the note names");
                self.found(NOTE, FileResult::Fail, format!("its signature does not hold: {error}"));
                false
            }
        }
    }

    /// Whether the key of the manifest is that of a writer who signed heads of the run in the log. Only asked once the
    /// log's verdict has let those heads pass.
    fn signer_is_writer(&self, manifest: &Manifest) -> bool {
        let Ok(key) = manifest.key.parse::<VerifierKey>() else { return false };
        let id = key_id(key.public());
        let mut leaves =
            self.files.iter().filter(|(name, _)| name.starts_with(LOG_FOLDER) && name.ends_with(".leaf"));
        leaves.any(|(_, bytes)| match SignedLeaf::parse(bytes).map(|leaf| leaf.leaf) {
            Ok(Leaf::Head(head)) => {
                head.run.0 == *manifest.run.as_bytes() && (head.writer == id || head.signer == id)
            }
            _ => false,
        })
    }

    /// What the signature is worth to the reader.
    fn signature(&mut self, signed: bool, policy: bool, anchored: bool) {
        let (result, message) = match (signed, policy, anchored) {
            (true, ..) => (FileResult::Pass, "signed by the writer of the run, whom the log enrolled"),
            (false, false, _) => (
                FileResult::NotChecked,
                "the signature holds under a key from the pack itself: without a trust policy, it could be anyone's",
            ),
            (false, true, false) => (
                FileResult::NotChecked,
                "no log trusted by the policy has this run, so the key could be anyone's",
            ),
            (false, true, true) => (
                FileResult::NotChecked,
                "the key is not that of the run's writer, and nothing identifies its owner",
            ),
        };
        self.found(NOTE, result, message);
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

    /// The record by its own chain, held against the head of the manifest, and what the reader believes.
    fn record(
        &mut self,
        manifest: &Manifest,
        trust: Option<&Trust>,
        policy: Option<&TrustPolicy>,
    ) -> Option<Judged> {
        let bytes = self.file(EXPORT)?;
        let judged = match policy {
            None => verify(bytes, trust)
                .map(|record| Judged { status: record.status, record, log: None, anchored: false })
                .map_err(|error| error.to_string()),
            Some(policy) => {
                let of_export =
                    self.files.iter().filter(|(name, _)| name == EXPORT || name.starts_with(LOG_FOLDER));
                let files: Vec<File<'_>> = of_export.map(|(name, bytes)| File { name, bytes }).collect();
                verify_files(&files, trust, policy)
                    .map(|report| Judged {
                        status: report.status,
                        anchored: report
                            .log
                            .as_ref()
                            .is_some_and(|log| log.status != Status::Invalid && log.anchored.is_some()),
                        record: report.export,
                        log: report.log,
                    })
                    .map_err(|error| error.to_string())
            }
        };
        let judged = match judged {
            Ok(judged) => judged,
            Err(error) => {
                self.found(EXPORT, FileResult::Fail, error);
                return None;
            }
        };
        if let Some(failure) = &judged.record.failure {
            let event = failure.seq.map_or_else(String::new, |seq| format!(", event {seq}"));
            let at = format!("line {}, byte {}{event}", failure.line, failure.byte);
            self.found(EXPORT, FileResult::Fail, format!("{} at {at}: {}", failure.attack, failure.message));
        } else if judged.record.run.map(|run| run.0) != Some(*manifest.run.as_bytes())
            || judged.record.origin.as_ref() != Some(&manifest.origin)
        {
            self.found(EXPORT, FileResult::Fail, "it is not the run of the manifest");
        } else if judged.record.head != Some(Head { count: manifest.head.count, link: manifest.head.link }) {
            self.found(EXPORT, FileResult::Fail, "its head is not the one of the manifest");
        }
        if let Some(failure) = judged.log.as_ref().and_then(|log| log.failure.as_ref()) {
            let message = format!("{} at byte {}: {}", failure.attack, failure.byte, failure.message);
            self.found(&failure.file, FileResult::Fail, message);
        }
        Some(judged)
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
