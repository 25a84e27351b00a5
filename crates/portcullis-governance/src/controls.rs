//! Controls of regulations, standards and lists, as data: which events, guards and checks of a run are evidence for
//! which of them.
//!
//! A mapping is a TOML file, one that ships or someone's own. It names kinds of events, ids of guards, types of checks
//! and files of the pack, and one that does not exist is a mistake, told with its place: a mapping must not go on naming
//! a guard that is gone. What a run shows is counted from its record. It is evidence *for* a control; that an
//! organisation meets it is never said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use portcullis_contracts::verify::{Check, Status};
use portcullis_core::bundle::Diagnostic;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::RunId;
use portcullis_proof::event::KINDS;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::facts::Facts;
use crate::files::FILES;
use crate::markdown::{Document, code, count, events, text};
use crate::record::Record;
use crate::sha::{Sha, sha256};

/// The mappings that ship, by the name of their file.
const EMBEDDED: &[(&str, &str)] = &[
    ("eu-ai-act.toml", include_str!("../../../controls/eu-ai-act.toml")),
    ("iso-42001.toml", include_str!("../../../controls/iso-42001.toml")),
    ("nist-ai-rmf.toml", include_str!("../../../controls/nist-ai-rmf.toml")),
    ("owasp-agentic.toml", include_str!("../../../controls/owasp-agentic.toml")),
];

/// The most controls of all mappings together.
pub const CONTROLS_MAX: usize = 1_024;
/// The most events that the evidence for a control names.
const EVENTS_LISTED_MAX: usize = 100;
/// The text above every form of the evidence.
pub const DISCLAIMER: &str = "What this run shows that may serve as evidence for a control. It says of no control that it is met, and nothing here \
     is a statement of compliance: that takes the organisation, its other records, and the text of the source.";

/// The most mappings of someone's own.
pub const OWN_FILES_MAX: usize = 64;
/// The largest of them, in bytes.
pub const OWN_FILE_BYTES_MAX: usize = 1 << 20;

/// A mapping of one source as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    source: Spanned<String>,
    document: Spanned<String>,
    applies: Spanned<String>,
    control: Vec<WrittenControl>,
}

/// A control as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenControl {
    id: Spanned<String>,
    clause: Spanned<String>,
    title: Spanned<String>,
    events: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    guards: Vec<Spanned<String>>,
    #[serde(default)]
    checks: Vec<Check>,
    files: Vec<Spanned<String>>,
    shows: Spanned<String>,
    not_shown: Spanned<Vec<Spanned<String>>>,
}

/// A mapping of one source.
#[derive(Debug, Clone)]
struct Mapping {
    file: String,
    sha256: Sha,
    source: String,
    document: String,
    applies: String,
    controls: Vec<Control>,
}

/// A control, and what of a run is evidence for it.
#[derive(Debug, Clone)]
struct Control {
    id: String,
    clause: String,
    title: String,
    events: Vec<String>,
    guards: Vec<String>,
    checks: Vec<Check>,
    files: Vec<String>,
    shows: String,
    not_shown: Vec<String>,
}

/// Mappings with mistakes: there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlsError {
    /// The mistakes, in the order of the files and of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for ControlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, diagnostic) in self.diagnostics.iter().enumerate() {
            write!(f, "{}{diagnostic}", if place == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for ControlsError {}

/// All mappings.
#[derive(Debug, Clone)]
pub struct Controls {
    mappings: Vec<Mapping>,
}

impl Controls {
    /// The mappings that ship, held against the guards of this release.
    ///
    /// # Errors
    /// The mistakes.
    pub fn embedded(guards: &[&'static GuardMeta]) -> Result<Self, ControlsError> {
        Self::with_own(&BTreeMap::new(), guards)
    }

    /// The mappings that ship and someone's own, by the paths of their files. In a pack these are called `own/` and the
    /// name of the file.
    ///
    /// # Errors
    /// All mistakes: an unknown field, kind of event, guard, check or file of the pack; a text that says nothing; an id
    /// that is used twice; too many controls.
    pub fn with_own(
        own: &BTreeMap<String, String>,
        guards: &[&'static GuardMeta],
    ) -> Result<Self, ControlsError> {
        let shipped = EMBEDDED.iter().map(|(file, toml)| (format!("controls/{file}"), *toml));
        let own = own.iter().map(|(file, toml)| (file.clone(), toml.as_str()));
        let mut loader = Loader { guards, ids: BTreeMap::new(), diagnostics: Vec::new() };
        let mut mappings: Vec<Mapping> =
            shipped.filter_map(|(file, toml)| loader.mapping(file, toml)).collect();
        let own = own.filter_map(|(file, toml)| loader.mapping(file, toml));
        // Mistakes are told with the whole path; a pack leaves the house and does not say where the file lies.
        mappings.extend(own.map(|mapping| Mapping { file: own_name(&mapping.file), ..mapping }));
        if loader.diagnostics.is_empty() {
            Ok(Self { mappings })
        } else {
            Err(ControlsError { diagnostics: loader.diagnostics })
        }
    }

    /// The guards that the control of that id names, or `None` if there is no such control.
    #[must_use]
    pub fn guards_of(&self, id: &str) -> Option<&[String]> {
        let mut controls = self.mappings.iter().flat_map(|mapping| &mapping.controls);
        controls.find(|control| control.id == id).map(|control| control.guards.as_slice())
    }

    /// What a run shows for each of them.
    pub(crate) fn evidence(
        &self,
        record: &Record,
        facts: &Facts,
        guards: &[&'static GuardMeta],
    ) -> ControlEvidence {
        let source = |mapping: &Mapping| SourceEvidence {
            mapping: mapping.file.clone(),
            mapping_sha256: mapping.sha256,
            source: mapping.source.clone(),
            document: mapping.document.clone(),
            applies: mapping.applies.clone(),
            controls: mapping.controls.iter().map(|control| control.evidence(facts, guards)).collect(),
        };
        ControlEvidence {
            format: "portcullis-controls/v1".to_owned(),
            run: record.run(),
            note: DISCLAIMER.to_owned(),
            sources: self.mappings.iter().map(source).collect(),
        }
    }
}

/// What a mapping of someone's own is called in a pack: never like one that ships.
fn own_name(path: &str) -> String {
    let name = Path::new(path).file_name().map_or_else(|| path.into(), OsStr::to_string_lossy);
    format!("own/{name}")
}

/// Reads mappings, and gathers their mistakes.
struct Loader<'a> {
    guards: &'a [&'static GuardMeta],
    /// The file of each control.
    ids: BTreeMap<String, String>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_> {
    fn mapping(&mut self, file: String, toml: &str) -> Option<Mapping> {
        let written: Written = match toml::from_str(toml) {
            Ok(written) => written,
            Err(error) => {
                let span = error.span().unwrap_or_default();
                self.diagnostics.push(Diagnostic::new(&file, toml, span, error.message()));
                return None;
            }
        };
        for (text, name) in
            [(&written.source, "source"), (&written.document, "document"), (&written.applies, "applies")]
        {
            self.says_something(&file, toml, text, name);
        }
        let controls =
            written.control.into_iter().map(|control| self.control(&file, toml, control)).collect();
        let [source, document, applies] =
            [written.source, written.document, written.applies].map(Spanned::into_inner);
        Some(Mapping { sha256: sha256(toml.as_bytes()), file, source, document, applies, controls })
    }

    fn control(&mut self, file: &str, toml: &str, control: WrittenControl) -> Control {
        for (text, name) in [
            (&control.id, "id"),
            (&control.clause, "clause"),
            (&control.title, "title"),
            (&control.shows, "shows"),
        ] {
            self.says_something(file, toml, text, name);
        }
        for (list, name) in [(&control.events, "events"), (&control.not_shown, "not_shown")] {
            if list.as_ref().is_empty() {
                let message = format!("`{name}` must not be empty");
                self.diagnostics.push(Diagnostic::new(file, toml, list.span(), message));
            }
        }
        let id = control.id.as_ref();
        let mut fail =
            |span, message: String| self.diagnostics.push(Diagnostic::new(file, toml, span, message));
        if let Some(other) = self.ids.get(id) {
            fail(control.id.span(), format!("the control `{id}` is already defined in `{other}`"));
        } else if self.ids.len() == CONTROLS_MAX {
            fail(control.id.span(), format!("there are more than {CONTROLS_MAX} controls"));
        }
        self.ids.entry(id.clone()).or_insert_with(|| file.to_owned());
        self.known(file, toml, control.events.as_ref(), "kind of event", &KINDS);
        let guards: Vec<&str> = self.guards.iter().map(|guard| guard.id).collect();
        self.known(file, toml, &control.guards, "guard", &guards);
        self.known(file, toml, &control.files, "file of the pack", &FILES);
        let plain = |list: Vec<Spanned<String>>| list.into_iter().map(Spanned::into_inner).collect();
        Control {
            id: control.id.into_inner(),
            clause: control.clause.into_inner(),
            title: control.title.into_inner(),
            events: plain(control.events.into_inner()),
            guards: plain(control.guards),
            checks: control.checks,
            files: plain(control.files),
            shows: control.shows.into_inner(),
            not_shown: plain(control.not_shown.into_inner()),
        }
    }

    fn says_something(&mut self, file: &str, toml: &str, text: &Spanned<String>, name: &str) {
        if text.as_ref().trim().is_empty() {
            let message = format!("`{name}` must contain text");
            self.diagnostics.push(Diagnostic::new(file, toml, text.span(), message));
        }
    }

    /// Names that do not exist are mistakes.
    fn known(&mut self, file: &str, toml: &str, names: &[Spanned<String>], what: &str, known: &[&str]) {
        for name in names.iter().filter(|name| !known.contains(&name.as_ref().as_str())) {
            let message = format!("there is no {what} `{}`", name.as_ref());
            let mistake = Diagnostic::new(file, toml, name.span(), message);
            self.diagnostics.push(mistake.did_you_mean(name.as_ref(), known.iter().copied()));
        }
    }
}

impl Control {
    fn evidence(&self, facts: &Facts, guards: &[&'static GuardMeta]) -> ControlShown {
        let mut missing = Vec::new();
        let mut shown = Vec::new();
        for kind in &self.events {
            match facts.of_kind(kind) {
                [] => missing.push(format!("no `{kind}` event")),
                found => shown.push(EventsShown::of(kind, found)),
            }
        }
        let mut guards_shown = Vec::new();
        for guard in self.guards.iter().filter_map(|id| guards.iter().find(|guard| guard.id == id.as_str())) {
            let looked = guard.hooks.iter().map(|hook| facts.looked_at(*hook).len()).sum();
            let mut found: Vec<u64> =
                facts.rules_of(guard, guards).flat_map(|(_, fact)| fact.events.iter().copied()).collect();
            found.sort_unstable();
            found.dedup();
            if looked == 0 {
                missing.push(format!("`{}` never ran", guard.id));
            } else {
                guards_shown.push(GuardShown {
                    guard: guard.id.to_owned(),
                    looked,
                    found: EventsShown::of("verdict", &found),
                });
            }
        }
        let mut checks = Vec::new();
        for check in &self.checks {
            let of =
                |status| facts.checks(status).iter().filter(|(_, result)| result.check == *check).count();
            let (passed, failed, not_applicable) =
                (of(Status::Pass), of(Status::Fail), of(Status::NotApplicable));
            if passed + failed + not_applicable == 0 {
                missing.push(format!("`{}` was not made", check.check_type()));
            } else {
                checks.push(CheckShown { check: *check, passed, failed, not_applicable });
            }
        }
        ControlShown {
            id: self.id.clone(),
            clause: self.clause.clone(),
            title: self.title.clone(),
            shows: self.shows.clone(),
            not_shown: self.not_shown.clone(),
            files: self.files.clone(),
            events: shown,
            guards: guards_shown,
            checks,
            not_in_this_run: missing,
        }
    }
}

/// `controls.json`.
#[derive(Debug, Clone, Serialize)]
pub struct ControlEvidence {
    /// Name and version of the format.
    pub format: String,
    /// The run.
    pub run: RunId,
    /// [`DISCLAIMER`].
    pub note: String,
    /// By source.
    pub sources: Vec<SourceEvidence>,
}

/// The controls of one source.
#[derive(Debug, Clone, Serialize)]
pub struct SourceEvidence {
    /// The file of the mapping.
    pub mapping: String,
    /// SHA-256 of it.
    pub mapping_sha256: Sha,
    /// Its short name.
    pub source: String,
    /// The document.
    pub document: String,
    /// To whom it applies.
    pub applies: String,
    /// Its controls.
    pub controls: Vec<ControlShown>,
}

/// What a run shows for one control.
#[derive(Debug, Clone, Serialize)]
pub struct ControlShown {
    /// The control.
    pub id: String,
    /// Where it is.
    pub clause: String,
    /// What it asks for, in our words.
    pub title: String,
    /// What the evidence shows.
    pub shows: String,
    /// What it does not.
    pub not_shown: Vec<String>,
    /// The files of the pack to look into.
    pub files: Vec<String>,
    /// Events of this run.
    pub events: Vec<EventsShown>,
    /// Guards that looked.
    pub guards: Vec<GuardShown>,
    /// Checks that were made.
    pub checks: Vec<CheckShown>,
    /// What the control names and this run does not have.
    pub not_in_this_run: Vec<String>,
}

/// Events of a kind.
#[derive(Debug, Clone, Serialize)]
pub struct EventsShown {
    /// The kind.
    pub kind: String,
    /// How many.
    pub count: usize,
    /// The first of them.
    pub events: Vec<u64>,
}

impl EventsShown {
    fn of(kind: &str, found: &[u64]) -> Self {
        let events = found.iter().copied().take(EVENTS_LISTED_MAX).collect();
        Self { kind: kind.to_owned(), count: found.len(), events }
    }
}

/// A guard that looked.
#[derive(Debug, Clone, Serialize)]
pub struct GuardShown {
    /// Its id.
    pub guard: String,
    /// How often.
    pub looked: usize,
    /// The verdicts that contain its findings.
    pub found: EventsShown,
}

/// The answers of a check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckShown {
    /// Its type.
    pub check: Check,
    /// PASS.
    pub passed: usize,
    /// FAIL.
    pub failed: usize,
    /// N/A.
    pub not_applicable: usize,
}

impl ControlEvidence {
    /// `controls.md`.
    #[must_use]
    pub fn markdown(&self) -> Vec<u8> {
        let mut document = Document::new(&format!("Run {} as evidence for controls", self.run));
        document.paragraph(&self.note);
        for source in &self.sources {
            let rows: Vec<Vec<String>> = source.controls.iter().map(row).collect();
            let title = format!("{} ({})", text(&source.source), text(&source.document));
            let columns = ["control", "this run shows", "not in this run", "not shown by any run"];
            document.table(&title, &columns, &rows);
            document.paragraph(&format!("Applies to: {}.", text(&source.applies)));
        }
        document.finish()
    }
}

fn row(control: &ControlShown) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    if !control.events.is_empty() {
        let kinds = control.events.iter().map(|kind| format!("{} {}", kind.count, code(&kind.kind)));
        shown.push(format!("events: {}", kinds.collect::<Vec<_>>().join(", ")));
    }
    let found = control
        .guards
        .iter()
        .filter(|guard| guard.found.count > 0)
        .map(|guard| format!("{} in {}", code(&guard.guard), events(&guard.found.events)));
    let found: Vec<String> = found.collect();
    if !found.is_empty() {
        shown.push(format!("found something: {}", found.join(", ")));
    }
    let silent = control.guards.iter().filter(|guard| guard.found.count == 0).count();
    if silent > 0 {
        shown.push(format!("{} ran and found nothing", count(silent, "guard", "guards")));
    }
    let sum = |of: fn(&CheckShown) -> usize| control.checks.iter().map(of).sum::<usize>();
    if !control.checks.is_empty() {
        shown.push(format!(
            "checks: {} PASS, {} FAIL, {} N/A",
            sum(|check| check.passed),
            sum(|check| check.failed),
            sum(|check| check.not_applicable)
        ));
    }
    // Guards that looked in vain show nothing by themselves.
    let shows = match (shown.as_slice(), control.events.as_slice()) {
        ([], _) => "nothing".to_owned(),
        (shown, []) if found.is_empty() && control.checks.is_empty() => {
            format!("only that {}", shown.join("; "))
        }
        (shown, _) => format!("{} ({})", text(&control.shows), shown.join("; ")),
    };
    let missing =
        if control.not_in_this_run.is_empty() { "-".to_owned() } else { control.not_in_this_run.join("; ") };
    vec![
        format!("{}: {}", text(&control.clause), text(&control.title)),
        shows,
        missing,
        control.not_shown.iter().map(|said| text(said)).collect::<Vec<_>>().join("; "),
    ]
}

#[cfg(test)]
mod tests;
