//! What a reply can rest on: what was asked since the last one, the documents that were retrieved, and what other tools
//! returned. Kept only in runs whose bundle verifies replies or has contracts.
//!
//! Documents that are too many, or whose texts were erased, are remembered as lost: a citation that names none of the
//! others fails all the same, and says so.

use portcullis_contracts::limits::{MAX_DOCUMENTS, MAX_REPLY_BYTES};
use portcullis_contracts::verify::{
    Check, CheckResult, CitationDuty, Document, Place, Reply, Said, Settings, Side, Status, documents_given,
    documents_in, verify,
};
use portcullis_core::bundle::{Bundle, Citations, VerificationSettings};
use portcullis_core::label::Label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of all documents of a run.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of what other tools returned, the latest.
const OTHER_BYTES_MAX: usize = 256 << 10;
/// Inputs between two replies that are kept apart; further ones are added to the last.
const PROMPTS_MAX: usize = 64;

/// What was found of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The answers of all checks.
    pub checks: Vec<CheckResult>,
    /// The documents that the reply could cite.
    pub documents: Vec<DocumentRef>,
}

/// A document that a reply could cite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentRef {
    /// Its id.
    pub id: String,
    /// The event that brought it up, or `None` for one that was handed over with the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
}

impl Verification {
    /// Whether a check fails.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.checks.iter().any(|result| result.status == Status::Fail)
    }

    /// The same with other numbers of events, for a run that is told again; a number that `number` does not know is left
    /// out.
    #[must_use]
    pub fn renumbered(mut self, number: impl Fn(u64) -> Option<u64>) -> Self {
        for result in &mut self.checks {
            result.event = result.event.and_then(&number);
            result.places.iter_mut().for_each(|place| place.event = place.event.and_then(&number));
            result.related = result.related.iter().copied().filter_map(&number).collect();
        }
        self.documents.iter_mut().for_each(|document| document.event = document.event.and_then(&number));
        self
    }

    /// The same of a reply that was recorded as this event.
    #[must_use]
    pub fn of_event(mut self, reply: u64) -> Self {
        for result in &mut self.checks {
            result.event = Some(reply);
            let places = result.places.iter_mut().filter(|place| place.text == Side::Reply);
            places.for_each(|place: &mut Place| place.event = Some(reply));
        }
        self
    }
}

/// See the [module documentation](self).
#[derive(Debug, Clone, Default)]
pub struct Sources {
    prompts: Vec<(u64, String)>,
    /// A reply was given to these prompts: the next input begins again.
    answered: bool,
    documents: Vec<Document>,
    document_bytes: usize,
    lost: bool,
    others: Vec<String>,
}

impl Sources {
    /// Notes what the user said as this event, or `None` if the text was erased.
    pub fn input(&mut self, event: u64, text: Option<&str>) {
        if std::mem::take(&mut self.answered) {
            self.prompts.clear();
        }
        let Some(text) = text else { return };
        let kept: usize = self.prompts.iter().map(|(_, text)| text.len()).sum();
        // One byte more than is read, so that what is too long is known to be.
        let room = (MAX_REPLY_BYTES + 1).saturating_sub(kept);
        let text = text.get(..text.ceil_char_boundary(room.min(text.len()))).unwrap_or(text);
        let full = self.prompts.len() >= PROMPTS_MAX;
        match self.prompts.last_mut() {
            Some((_, last)) if full => {
                last.push('\n');
                last.push_str(text);
            }
            _ => self.prompts.push((event, text.to_owned())),
        }
    }

    /// Notes what a tool returned as this event, or `None` if the text was erased.
    pub fn result(&mut self, bundle: &Bundle, event: u64, label: &Label, text: Option<&str>) {
        let source = matches!(label, Label::Tool(tool) if bundle.is_document_source(tool));
        match text {
            Some(text) if source => documents_in(text).into_iter().for_each(|one| self.document(event, one)),
            Some(text) => self.other(text),
            None => self.lost |= source,
        }
    }

    /// Notes that a reply was given.
    pub fn output(&mut self) {
        self.answered = true;
    }

    fn document(&mut self, event: u64, document: Document) {
        /// Bytes of a document in which a part is looked for before it is added.
        const LOOKED_THROUGH: usize = 16 * 1024;
        self.document_bytes = self.document_bytes.saturating_add(document.text.len());
        if self.document_bytes > DOCUMENT_BYTES_MAX {
            self.lost = true;
            return;
        }
        let full = self.documents.len() >= MAX_DOCUMENTS;
        let known = self.documents.iter_mut().find(|known| known.id == document.id);
        match known {
            Some(known) if known.text.len() <= LOOKED_THROUGH && known.text.contains(&document.text) => {
                self.document_bytes -= document.text.len();
            }
            Some(known) => {
                known.text.push('\n');
                known.text.push_str(&document.text);
            }
            None if full => self.lost = true,
            None => self.documents.push(Document { event: Some(event), ..document }),
        }
    }

    fn other(&mut self, text: &str) {
        if text.len() > OTHER_BYTES_MAX {
            return;
        }
        self.others.push(text.to_owned());
        let mut bytes: usize = self.others.iter().map(String::len).sum();
        while bytes > OTHER_BYTES_MAX {
            bytes -= self.others.remove(0).len();
        }
    }

    /// What the reply answers: all that was asked since the reply before, or `None` if nothing is known of it.
    #[must_use]
    pub fn prompt(&self) -> Option<String> {
        let prompts: Vec<&str> = self.prompts.iter().map(|(_, text)| text.as_str()).collect();
        (!prompts.is_empty()).then(|| prompts.join("\n"))
    }

    /// The documents that a reply may cite, those that were handed over with it as JSON included, or `None` if the bundle
    /// does not say what documents are.
    #[must_use]
    pub fn documents(&self, bundle: &Bundle, given: Option<&str>) -> Option<Vec<Document>> {
        let settings = bundle.verification.as_ref()?;
        let mut documents = self.documents.clone();
        if let (Some(given), true) = (given, settings.given_documents) {
            let given = serde_json::from_str(given).ok().and_then(|value| documents_given(&value).ok());
            // What was retrieved is not overwritten by what someone says it is.
            let new = |one: &Document| self.documents.iter().all(|known| known.id != one.id);
            documents.extend(given.unwrap_or_default().into_iter().filter(new));
        }
        Some(documents)
    }

    /// Verifies a reply, with documents that were handed over with it as JSON, or `None` if the bundle wants no reply
    /// verified.
    #[must_use]
    pub fn verify(&self, bundle: &Bundle, reply: &str, given: Option<&str>) -> Option<Verification> {
        let settings = bundle.verification.as_ref()?;
        let documents = self.documents(bundle, given)?;
        let prompts: Vec<Said<'_>> =
            self.prompts.iter().map(|(event, text)| Said { text, event: Some(*event) }).collect();
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        let reply =
            Reply { said: Said::new(reply), prompts: &prompts, documents: Some(&documents), others: &others };
        let mut checks = verify(&reply, &settings_of(settings));
        if self.lost {
            let matches = checks.iter_mut().find(|result| result.check == Check::CitationMatch);
            if let Some(result) = matches.filter(|result| result.status == Status::Fail) {
                result.explanation.push_str("; more documents were retrieved than are at hand");
            }
        }
        let documents = documents.into_iter().map(|one| DocumentRef { id: one.id, event: one.event });
        Some(Verification { checks, documents: documents.collect() })
    }
}

fn settings_of(settings: &VerificationSettings) -> Settings {
    let shipped = Settings::default();
    Settings {
        citations: match settings.citations {
            Citations::Always => CitationDuty::Always,
            Citations::WithDocuments => CitationDuty::WithDocuments,
            Citations::Never => CitationDuty::Never,
        },
        high_risk: settings.high_risk.clone().unwrap_or(shipped.high_risk),
    }
}
