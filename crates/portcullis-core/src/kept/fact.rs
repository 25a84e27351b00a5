//! Facts that outlive a run. A fact is named by the event that established it, so that its name says where it is from.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    FACT_BYTES_MAX, FACTS_OF_RUN_MAX, KeptError, REASON_BYTES_MAX, REPLACES_MAX, Refusal, TOPIC_BYTES_MAX,
    text_within,
};
use crate::aside::label_text;
use crate::id::{RequestId, RunId};
use crate::label::LabelSet;
use crate::state::Kept;
use crate::taint::Marks;

/// Name of the payload with the words of an operation on facts.
pub const FACT: &str = "fact";

/// Names a fact by the event that established it: `RUN.SEQ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeptId {
    /// The run.
    pub run: RunId,
    /// The number of the event.
    pub seq: u64,
}

impl fmt::Display for KeptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.run, self.seq))
    }
}

/// Text that names no fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no fact; a fact is named by run and event, as `0199ab3c....17` with all 32 digits of the run"
)]
pub struct ParseKeptIdError(String);

impl FromStr for KeptId {
    type Err = ParseKeptIdError;

    fn from_str(text: &str) -> Result<Self, ParseKeptIdError> {
        let error = || ParseKeptIdError(text.chars().take(80).collect());
        let (run, seq) = text.split_once('.').ok_or_else(error)?;
        let is_number =
            !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit()) && !seq.starts_with('0');
        let seq = seq.parse().ok().filter(|_| is_number).ok_or_else(error)?;
        Ok(Self { run: run.parse().map_err(|_| error())?, seq })
    }
}

impl Serialize for KeptId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeptId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for KeptId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FactId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}\\.[1-9][0-9]*$" })
    }
}

/// Which runs may read a fact. All of them are the principal's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptScope {
    /// Those in the folder in which it was written; those that name no folder, where that was so then.
    #[default]
    Workspace,
    /// All runs of the principal.
    Principal,
}

/// What was done, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptOp {
    /// A fact was established.
    Write,
    /// Facts were handed to the agent, as the observation that follows.
    Read,
    /// A fact was forgotten.
    Forget,
}

impl KeptOp {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Forget => "forget",
        }
    }
}

/// What of a fact others wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Their labels; none where nothing of it is theirs.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
    /// Which of its words are theirs, or `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
}

/// A fact to be established.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewFact {
    /// What it is about; may be empty.
    pub topic: String,
    /// The fact.
    pub text: String,
    /// The facts that it replaces: they are no longer listed, and can still be read by name.
    pub replaces: Vec<KeptId>,
    /// Who may read it.
    pub scope: KeptScope,
    /// What of it others wrote, as the run knows.
    pub foreign: Foreign,
    /// Names the request, where it may be made again.
    pub request: Option<RequestId>,
}

/// How a fact stands that an operation names, for the run that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is none, or it is another's.
    Unknown,
    /// It can be read.
    Held,
    /// It was forgotten.
    Forgotten,
}

/// A fact as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptFact {
    /// Names it.
    pub id: KeptId,
    /// What it is about.
    pub topic: String,
    /// The fact.
    pub text: String,
    /// Labels of the run in which it was written.
    pub labels: LabelSet,
    /// What of it others wrote.
    pub foreign: Foreign,
}

/// Body of `fact`. In the line stand names, labels and numbers; texts are in the payload [`FACT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// What was done.
    pub op: KeptOp,
    /// The fact that is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<KeptId>,
    /// The facts that are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<KeptId>,
    /// The facts that a new one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<KeptId>,
    /// Who may read a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<KeptScope>,
    /// Names the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// Of a new one the labels of the run; of those that are read, theirs, which are the run's from here on.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
    /// The labels of those whose words are in a new one, or in those that are read.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub foreign: LabelSet,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// The words. Not in the line, but in the payload.
    #[serde(default, skip_serializing_if = "KeptWords::is_empty")]
    pub words: KeptWords,
}

/// The words of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptWords {
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The fact.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Which of its words are others'; none with `foreign` in the line: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// Why it was forgotten.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl KeptWords {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What establishing a fact does: the record to make durable. `look` says how those stand that it names.
///
/// # Errors
/// It is refused. Record that, too: [`KeptRecord::refused`].
pub fn write(
    kept: &Kept,
    new: NewFact,
    labels: &LabelSet,
    look: &dyn Fn(KeptId) -> Standing,
) -> Result<KeptRecord, KeptError> {
    if !new.topic.is_empty() {
        text_within("topic", &new.topic, TOPIC_BYTES_MAX)?;
    }
    text_within("text", &new.text, FACT_BYTES_MAX)?;
    if new.replaces.len() > REPLACES_MAX {
        return Err(KeptError::field("replaces", format!("has more than {REPLACES_MAX} entries")));
    }
    for (at, id) in new.replaces.iter().enumerate() {
        let field = format!("replaces[{at}]");
        if new.replaces.iter().take(at).any(|earlier| earlier == id) {
            return Err(KeptError::field(field, format!("names {id} a second time")));
        }
        known(field, *id, look(*id))?;
    }
    if kept.facts_written() >= FACTS_OF_RUN_MAX {
        let reason = format!("this run has written {FACTS_OF_RUN_MAX} facts, which is the limit");
        return Err(KeptError::new(Refusal::Full, "text", reason, "go on in another run"));
    }
    let NewFact { topic, text, replaces, scope, foreign, request } = new;
    let words = KeptWords { topic, text, marks: foreign.marks, ..KeptWords::default() };
    Ok(KeptRecord {
        replaces,
        scope: Some(scope),
        request,
        labels: labels.clone(),
        foreign: foreign.labels,
        words,
        ..KeptRecord::new(KeptOp::Write)
    })
}

/// What reading facts does.
#[must_use]
pub fn read(facts: &[KeptFact]) -> KeptRecord {
    let (mut labels, mut foreign) = (LabelSet::default(), LabelSet::default());
    for fact in facts {
        labels.extend(fact.labels.iter().cloned());
        foreign.extend(fact.foreign.labels.iter().cloned());
    }
    let facts = facts.iter().map(|fact| fact.id).collect();
    KeptRecord { facts, labels, foreign, ..KeptRecord::new(KeptOp::Read) }
}

/// What forgetting a fact does.
///
/// # Errors
/// It is refused. Record that, too: [`KeptRecord::refused`].
pub fn forget(
    kept: &Kept,
    id: KeptId,
    reason: String,
    request: Option<RequestId>,
    standing: Standing,
) -> Result<KeptRecord, KeptError> {
    text_within("reason", &reason, REASON_BYTES_MAX)?;
    known("fact", id, standing)?;
    if kept.facts_forgotten() >= FACTS_OF_RUN_MAX {
        let reason = format!("this run has forgotten {FACTS_OF_RUN_MAX} facts, which is the limit");
        return Err(KeptError::new(Refusal::Full, "fact", reason, "go on in another run"));
    }
    let words = KeptWords { reason, ..KeptWords::default() };
    Ok(KeptRecord { fact: Some(id), request, words, ..KeptRecord::new(KeptOp::Forget) })
}

/// Refuses what names a fact that cannot be read.
///
/// # Errors
/// It is not there for this run, or was forgotten.
pub fn known(field: impl Into<String>, id: KeptId, standing: Standing) -> Result<(), KeptError> {
    let (refusal, reason) = match standing {
        Standing::Held => return Ok(()),
        Standing::Forgotten => (Refusal::Forgotten, format!("fact {id} was forgotten")),
        Standing::Unknown => (Refusal::Unknown, format!("there is no fact {id} that this run may read")),
    };
    Err(KeptError::new(refusal, field, reason, "`fact_read` lists the facts that there are"))
}

impl KeptRecord {
    fn new(op: KeptOp) -> Self {
        Self {
            op,
            fact: None,
            facts: Vec::new(),
            replaces: Vec::new(),
            scope: None,
            request: None,
            labels: LabelSet::default(),
            foreign: LabelSet::default(),
            refused: None,
            words: KeptWords::default(),
        }
    }

    /// That an operation was refused. What was to be kept is not.
    #[must_use]
    pub fn refused(op: KeptOp, request: Option<RequestId>, error: &KeptError) -> Self {
        let words = KeptWords { why: error.to_string(), ..KeptWords::default() };
        Self { request, refused: Some(error.refusal), words, ..Self::new(op) }
    }

    /// The fact that it establishes as an event of that name, if it does and its words are there.
    #[must_use]
    pub fn established(&self, id: KeptId) -> Option<KeptFact> {
        let is_there = self.op == KeptOp::Write && self.refused.is_none() && !self.words.text.is_empty();
        is_there.then(|| KeptFact {
            id,
            topic: self.words.topic.clone(),
            text: self.words.text.clone(),
            labels: self.labels.clone(),
            foreign: Foreign { labels: self.foreign.clone(), marks: self.words.marks.clone() },
        })
    }

    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Takes the words out, as JSON.
    pub(crate) fn take_words(&mut self) -> serde_json::Result<String> {
        serde_json::to_string(&std::mem::take(&mut self.words))
    }

    /// Puts the words back; whether they fit.
    pub(crate) fn put_words(&mut self, text: &str) -> bool {
        let Ok(words) = serde_json::from_str::<KeptWords>(text) else { return false };
        let writes = self.op == KeptOp::Write && self.refused.is_none();
        let fits = writes != words.text.is_empty();
        if fits {
            self.words = words;
        }
        fits
    }

    pub(crate) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        let KeptWords { topic, text, marks: _, reason, why } = &mut self.words;
        [topic, text, reason, why].into_iter().for_each(&mut *show);
        for labels in [&mut self.labels, &mut self.foreign] {
            labels.each_mut(&mut |label| label_text(label, show));
        }
    }
}

impl fmt::Display for KeptRecord {
    /// `write a fact`, `read 3 facts`, `forget a fact: refused, unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.op, self.fact) {
            (KeptOp::Write, _) => f.write_str("write a fact")?,
            (KeptOp::Read, _) if self.facts.len() == 1 => f.write_str("read 1 fact")?,
            (KeptOp::Read, _) => write!(f, "read {} facts", self.facts.len())?,
            (KeptOp::Forget, Some(fact)) => write!(f, "forget fact {fact}")?,
            (KeptOp::Forget, None) => f.write_str("forget a fact")?,
        }
        match self.refused {
            Some(refused) => write!(f, ": refused, {}", refused.as_str()),
            None if !self.replaces.is_empty() => write!(f, ", replacing {}", self.replaces.len()),
            None => Ok(()),
        }
    }
}
