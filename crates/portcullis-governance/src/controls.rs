//! Controls of regulations, standards and lists, as data: which events, guards and checks of a run are evidence for
//! which of them.
//!
//! A mapping is a TOML file. It names kinds of events, ids of guards, types of checks and files of the pack, and one
//! that does not exist is a mistake: a mapping must not go on naming a guard that is gone. What a run shows is counted
//! from its record. It is evidence *for* a control; that an organisation meets it is never said.

use std::collections::BTreeSet;

use portcullis_contracts::verify::{Check, Status};
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::RunId;
use portcullis_proof::event::KINDS;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::markdown::{Document, code, count, events, text};
use crate::pack::FILES;
use crate::record::Record;

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
/// What stands over every form of the evidence.
pub const DISCLAIMER: &str = "What this run shows that may serve as evidence for a control. It says of no control that it is met, and nothing here \
     is a statement of compliance: that takes the organisation, its other records, and the text of the source.";

/// A mapping of one source.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mapping {
    source: String,
    document: String,
    applies: String,
    control: Vec<Control>,
}

/// A control, and what of a run is evidence for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Control {
    id: String,
    clause: String,
    title: String,
    events: Vec<String>,
    #[serde(default)]
    guards: Vec<String>,
    #[serde(default)]
    checks: Vec<Check>,
    files: Vec<String>,
    shows: String,
    not_shown: Vec<String>,
}

/// A mapping with a mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("controls/{file}: {message}")]
pub struct ControlsError {
    /// The file.
    pub file: String,
    /// What is wrong.
    pub message: String,
}

/// All mappings.
#[derive(Debug, Clone)]
pub struct Controls {
    mappings: Vec<Mapping>,
}

impl Controls {
    /// The mappings that ship, held against the guards of this release.
    ///
    /// # Errors
    /// The first mistake.
    pub fn embedded(guards: &[&'static GuardMeta]) -> Result<Self, ControlsError> {
        Self::load(EMBEDDED, guards)
    }

    /// Reads mappings.
    ///
    /// # Errors
    /// The first mistake: an unknown field, kind of event, guard, check or file of the pack; an id that is used twice.
    pub fn load(files: &[(&str, &str)], guards: &[&'static GuardMeta]) -> Result<Self, ControlsError> {
        let mut mappings = Vec::with_capacity(files.len());
        let mut ids = BTreeSet::new();
        for (file, toml) in files {
            let fail = |message: String| ControlsError { file: (*file).to_owned(), message };
            let mapping: Mapping = toml::from_str(toml).map_err(|error| fail(error.to_string()))?;
            for control in &mapping.control {
                control.validate(guards).map_err(fail)?;
                if !ids.insert(control.id.clone()) {
                    return Err(fail(format!("the control `{}` is there twice", control.id)));
                }
            }
            if ids.len() > CONTROLS_MAX {
                return Err(fail(format!("more than {CONTROLS_MAX} controls")));
            }
            mappings.push(mapping);
        }
        Ok(Self { mappings })
    }

    /// The guards that the control of that id names; none where there is no such control.
    #[must_use]
    pub fn guards_of(&self, id: &str) -> Option<&[String]> {
        let mut controls = self.mappings.iter().flat_map(|mapping| &mapping.control);
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
            source: mapping.source.clone(),
            document: mapping.document.clone(),
            applies: mapping.applies.clone(),
            controls: mapping.control.iter().map(|control| control.evidence(facts, guards)).collect(),
        };
        ControlEvidence {
            format: "portcullis-controls/v1".to_owned(),
            run: record.run(),
            note: DISCLAIMER.to_owned(),
            sources: self.mappings.iter().map(source).collect(),
        }
    }
}

impl Control {
    fn validate(&self, guards: &[&'static GuardMeta]) -> Result<(), String> {
        let in_control =
            |what: &str, name: &str| format!("control `{}`: there is no {what} `{name}`", self.id);
        if self.id.is_empty() || self.title.is_empty() || self.events.is_empty() || self.not_shown.is_empty()
        {
            return Err(format!("control `{}`: id, title, events and not_shown must say something", self.id));
        }
        if let Some(kind) = self.events.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(in_control("kind of event", kind));
        }
        if let Some(id) = self.guards.iter().find(|id| !guards.iter().any(|guard| guard.id == id.as_str())) {
            return Err(in_control("guard", id));
        }
        if let Some(file) = self.files.iter().find(|file| !FILES.contains(&file.as_str())) {
            return Err(in_control("file of the pack", file));
        }
        Ok(())
    }

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
    /// Where it stands.
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
    /// The verdicts that its findings stand in.
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
            let title = format!("{} ({})", source.source, source.document);
            let columns = ["control", "this run shows", "not in this run", "not shown by any run"];
            document.table(&title, &columns, &rows);
            document.paragraph(&format!("Applies to: {}.", source.applies));
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
        shown.push(format!("{} looked and found nothing", count(silent, "guard", "guards")));
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
        format!("{}: {}", control.clause, text(&control.title)),
        shows,
        missing,
        control.not_shown.join("; "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_core::action::Hook;

    static GUARD: GuardMeta =
        GuardMeta { id: "a/b", hooks: &[Hook::Action], owasp: &[], unfaithful_to: None };

    fn load(body: &str) -> Result<Controls, ControlsError> {
        let head = "source = 's'\ndocument = 'd'\napplies = 'x'\n[[control]]\nid = 'c'\nclause = '1'\ntitle = 't'\nshows = 'x'\n";
        Controls::load(&[("c.toml", &format!("{head}{body}"))], &[&GUARD])
    }

    #[test]
    fn a_mapping_that_names_what_is_not_there_is_refused() {
        let rest = "files = ['audit_log.jsonl']\nnot_shown = ['y']\n";
        assert!(
            load(&format!("events = ['verdict']\nguards = ['a/b']\nchecks = ['CITATION_MATCH']\n{rest}"))
                .is_ok()
        );
        let error = |body: &str| load(body).unwrap_err().to_string();
        assert!(error(&format!("events = ['verdicts']\n{rest}")).contains("no kind of event `verdicts`"));
        assert!(error(&format!("events = ['verdict']\nguards = ['a/c']\n{rest}")).contains("no guard `a/c`"));
        assert!(
            error(&format!("events = ['verdict']\nchecks = ['X']\n{rest}")).contains("unknown variant `X`")
        );
        assert!(
            error("events = ['verdict']\nfiles = ['x.md']\nnot_shown = ['y']\n")
                .contains("file of the pack `x.md`")
        );
        assert!(
            error(&format!("events = ['verdict']\nguard = []\n{rest}")).contains("unknown field `guard`")
        );
        assert!(error("events = ['verdict']\nfiles = []\nnot_shown = []\n").contains("must say something"));
    }

    #[test]
    fn what_ships_speaks_of_evidence_and_never_of_compliance() {
        for (file, toml) in EMBEDDED {
            assert!(!toml.to_lowercase().contains("complian"), "{file}");
            assert!(toml.contains("not_shown = ["), "{file}");
        }
        assert!(DISCLAIMER.contains("statement of compliance"));
    }
}
