//! Holds the recorded verdicts of an export against those that are computed anew.
//!
//! A verdict follows from the bundle, all that was recorded before it, and what it judges. So where a bundle and a
//! whole record are at hand, each verdict can be computed again, and one that comes out otherwise was not made by this
//! gate from this record. Where a text is not there, or not as it was when it was judged (a secret became a note), the
//! verdict on it cannot be computed, and a later one that comes out otherwise proves nothing: it may rest on that text.

use std::collections::{BTreeMap, HashMap, HashSet};

use portcullis_core::aside::{ERASED, FINDINGS, NOTE};
use portcullis_core::event::{Event, EventBody, Proposed, VerdictRecord};
use portcullis_core::fact::{FactAnswer, FactRecord};
use portcullis_core::id::{Commitment, Digest};
use portcullis_core::pipeline::Decision;
use portcullis_core::verdict::Verdict;
use portcullis_session::batch::REDACTED;
use serde::Serialize;

/// A verdict with the rule that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule; none where nothing was found.
    pub rule: Option<String>,
}

impl Ruling {
    pub(super) fn recorded(record: Option<&VerdictRecord>) -> Self {
        // A text against which nothing was found has no verdict in the record.
        let verdict = record.map_or(Verdict::Allow, |record| record.verdict);
        Self { verdict, rule: record.and_then(|record| record.rule.clone()) }
    }

    pub(super) fn computed(decision: &Decision) -> Self {
        let rule = decision.headline().map(|finding| finding.rule.to_string());
        Self { verdict: decision.verdict, rule }
    }
}

/// Why a text is not what was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// It is not in the export.
    Withheld,
    /// The store erased it.
    Erased,
    /// Secrets in it became notes before it was stored.
    Redacted,
}

/// A text that is not what was judged: the event, the name of the payload, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lacking {
    /// The seq of the event.
    pub event: u64,
    /// What the event calls it.
    pub payload: String,
    /// Why.
    pub why: Lack,
}

/// How one verdict came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// As recorded.
    Same,
    /// Otherwise, with all that it rests on at hand.
    Differs,
    /// What it judges, or may rest on, is not at hand.
    Lacks {
        /// Which.
        lacking: Lacking,
    },
    /// It follows on a difference before it: the runs went apart there.
    Follows {
        /// The seq of the verdict, or text, that came out otherwise.
        after: u64,
    },
}

/// One recorded verdict beside the one that was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The seq of the verdict; of the text, where the record has none on it.
    pub event: u64,
    /// What was judged: `action`, `input`, `observation`, `observed` or `output`.
    pub subject: &'static str,
    /// The tool of an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In the record.
    pub recorded: Ruling,
    /// Here; none where it could not be computed at all.
    pub computed: Option<Ruling>,
    /// The bundle in the record, where it is another than the one it was computed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
    /// How they compare.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What an export lacks, and the verdicts on its texts.
pub(super) struct Texts {
    lacking: BTreeMap<u64, Lacking>,
    /// Verdicts on texts, by the event of the text.
    texts: HashMap<u64, (u64, VerdictRecord)>,
}

impl Texts {
    pub(super) fn of<'e>(
        events: impl Iterator<Item = &'e Event>,
        given: impl Fn(Commitment) -> bool,
        erased: &HashSet<Commitment>,
    ) -> Self {
        let mut found = Self { lacking: BTreeMap::new(), texts: HashMap::new() };
        for event in events {
            let missing = event.payloads.iter().filter_map(|(name, payload)| {
                let why = match given(payload.commitment) {
                    true if is_redacted(&payload.media_type) => Lack::Redacted,
                    true => return None,
                    false if erased.contains(&payload.commitment) => Lack::Erased,
                    false => Lack::Withheld,
                };
                Some(Lacking { event: event.seq, payload: name.clone(), why })
            });
            let missing = missing.chain(noted_name(event));
            // What says least of the text counts.
            if let Some(lacking) = missing.min_by_key(|lacking| lacking.why)
                && judged(&event.body)
            {
                found.lacking.insert(event.seq, lacking);
            }
            if let Some((judged, lacking)) = lacking_facts(event, erased) {
                found.lacking.entry(judged).or_insert(lacking);
            }
            if let (EventBody::Verdict(record), Some(cause)) = (&event.body, event.cause)
                && record.action.is_none()
            {
                // A reply that was held is judged again with the grant.
                found.texts.entry(cause).or_insert_with(|| (event.seq, record.clone()));
            }
        }
        found
    }

    /// The recorded verdict on a text, with its event.
    pub(super) fn on_text(&self, text: u64) -> Option<&(u64, VerdictRecord)> {
        self.texts.get(&text)
    }

    /// What an event's own texts lack.
    fn own(&self, event: u64) -> Option<&Lacking> {
        self.lacking.get(&event)
    }

    /// The first lack before an event.
    fn before(&self, event: u64) -> Option<&Lacking> {
        self.lacking.range(..event).next().map(|(_, lacking)| lacking)
    }
}

/// Whether texts of this event bear on verdicts: what the gate itself notes does not.
fn judged(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::Input { .. }
            | EventBody::Proposed(_)
            | EventBody::Observation { .. }
            | EventBody::Observed(_)
            | EventBody::Output {}
            | EventBody::ApprovalDecided { .. }
    )
}

/// An answer of a source that a verdict rests on and that is not there as it was given, with the event that was judged.
fn lacking_facts(event: &Event, erased: &HashSet<Commitment>) -> Option<(u64, Lacking)> {
    let EventBody::Verdict(record) = &event.body else { return None };
    let is_gone = |fact: &FactRecord| fact.answer == FactAnswer::Failed(ERASED.to_owned());
    let is_noted = |fact: &FactRecord| match &fact.answer {
        FactAnswer::Known(answer) => fact.has_words() && answer.to_string().contains(NOTE),
        FactAnswer::Failed(_) => false,
    };
    let why = if record.facts.iter().any(is_gone) {
        let is_erased = event.aside().is_some_and(|payload| erased.contains(&payload.commitment));
        if is_erased { Lack::Erased } else { Lack::Withheld }
    } else if record.facts.iter().any(is_noted) {
        Lack::Redacted
    } else {
        return None;
    };
    Some((event.cause?, Lacking { event: event.seq, payload: FINDINGS.to_owned(), why }))
}

/// A name in the line itself that had a secret in it.
fn noted_name(event: &Event) -> Option<Lacking> {
    let EventBody::Proposed(Proposed { tool, directory, .. }) = &event.body else { return None };
    let (payload, _) = [("tool", tool), ("directory", directory)]
        .into_iter()
        .find(|(_, name)| name.as_ref().is_some_and(|name| name.contains(NOTE)))?;
    Some(Lacking { event: event.seq, payload: payload.to_owned(), why: Lack::Redacted })
}

fn is_redacted(media_type: &str) -> bool {
    let parameter = |part: &str| part.trim().strip_prefix(REDACTED).is_some_and(|rest| rest.starts_with('='));
    media_type.split(';').skip(1).any(parameter)
}

/// Compares verdicts in their order.
pub(super) struct Comparer<'l> {
    texts: &'l Texts,
    bundle: Digest,
    /// The first that came out otherwise.
    apart: Option<u64>,
    pub(super) comparisons: Vec<Comparison>,
}

impl<'l> Comparer<'l> {
    pub(super) fn new(texts: &'l Texts, bundle: Digest) -> Self {
        Self { texts, bundle, apart: None, comparisons: Vec::new() }
    }

    /// An action that was proposed as event `proposed` was judged as event `verdict`.
    pub(super) fn action(
        &mut self,
        proposed: u64,
        verdict: u64,
        tool: Option<String>,
        record: &VerdictRecord,
        computed: Option<&Decision>,
    ) {
        self.compare("action", proposed, verdict, tool, Some(record), computed);
    }

    /// A text that was recorded as event `text` was judged.
    pub(super) fn text(&mut self, subject: &'static str, text: u64, computed: Option<&Decision>) {
        let recorded = self.texts.on_text(text);
        let event = recorded.map_or(text, |(seq, _)| *seq);
        self.compare(subject, text, event, None, recorded.map(|(_, record)| record), computed);
    }

    /// Whether a verdict is the first on a text.
    pub(super) fn is_first(&self, text: u64, verdict: u64) -> bool {
        self.texts.on_text(text).is_some_and(|(seq, _)| *seq == verdict)
    }

    /// A reply that was held, recorded as event `text`, was judged again as event `verdict`.
    pub(super) fn text_again(
        &mut self,
        text: u64,
        verdict: u64,
        record: &VerdictRecord,
        computed: Option<&Decision>,
    ) {
        self.compare("output", text, verdict, None, Some(record), computed);
    }

    fn compare(
        &mut self,
        subject: &'static str,
        judged: u64,
        event: u64,
        tool: Option<String>,
        record: Option<&VerdictRecord>,
        computed: Option<&Decision>,
    ) {
        let recorded = Ruling::recorded(record);
        let own = self.texts.own(judged);
        // Of a text that is not there nothing was judged.
        let computed =
            computed.filter(|_| own.is_none_or(|own| own.why == Lack::Redacted)).map(Ruling::computed);
        let outcome = if let Some(lacking) = own {
            Outcome::Lacks { lacking: lacking.clone() }
        } else if computed.as_ref() == Some(&recorded) {
            Outcome::Same
        } else if let Some(lacking) = self.texts.before(judged) {
            Outcome::Lacks { lacking: lacking.clone() }
        } else if let (None, Some(after)) = (&computed, self.apart) {
            Outcome::Follows { after }
        } else {
            self.apart.get_or_insert(event);
            Outcome::Differs
        };
        let bundle = record.map(|record| record.bundle).filter(|bundle| *bundle != self.bundle);
        self.comparisons.push(Comparison { event, subject, tool, recorded, computed, bundle, outcome });
    }
}
