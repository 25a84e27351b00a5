//! Words of an event that are set aside: they are in a payload beside the line, not in it.
//!
//! A line is in the chain forever, and a payload can be erased. So what may quote arguments, results or other
//! texts (the messages of findings, the resources that they name, the resources of a grant) is in a payload of the
//! same event, under a salted commitment like any other, and so are answers of sources that hold text. In the line stay
//! rule, verdict, numbers of events, policies, questions to sources.
//!
//! In memory an event is whole. [`Event::to_line`] leaves the words out where the event names their payload;
//! [`Event::join`] puts them back into an event that was read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{ConfigChange, Event, EventBody, PayloadRef, VerdictRecord};
use crate::fact::{FactAnswer, FactRecord};
use crate::finding::{Finding, Span, SpanEdit};
use crate::grant::{GrantScope, GrantedEffects};
use crate::kept::{FACT, STATE};
use crate::label::Label;
use crate::work::WORK;

/// Name of the payload with the words of a verdict.
pub const FINDINGS: &str = "findings";
/// Name of the payload with the resources of a grant for effects.
pub const SCOPE: &str = "scope";
/// Name of the payload with the key of a run's digests: see [`Action::keyed`](crate::action::Action::keyed).
pub const DIGEST_KEY: &str = "digest-key";
/// Name of the payload with what an action put into things: see [`Taint`](crate::taint::Taint).
pub const TAINT: &str = "taint";
/// Name of the payload with what was seen of something contained: see [`Observed`](crate::observed::Observed).
pub const OBSERVED: &str = "observed";
/// What replaces words that were erased.
pub const ERASED: &str = "erased";
/// What replaces words that were withheld: the record was handed over without its payloads.
pub const WITHHELD: &str = "withheld";
/// How the note begins that replaces a secret.
pub const NOTE: &str = "[secret:";

/// The words of a verdict.
#[derive(Serialize, Deserialize)]
struct VerdictWords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// One for each finding, in their order.
    findings: Vec<FindingWords>,
    /// Where an answer of a source holds text: one for each fact, in their order, null for those that stay in the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    facts: Vec<Value>,
}

/// The words of a finding. The fields are those of [`Finding`].
#[derive(Serialize, Deserialize)]
struct FindingWords {
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spans: Vec<Span>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edits: Vec<SpanEdit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<String>,
}

impl VerdictWords {
    /// Takes the words out of a record.
    fn take(record: &mut VerdictRecord) -> Self {
        let findings = record.findings.iter_mut().map(FindingWords::take).collect();
        let facts = match record.facts.iter().any(FactRecord::has_words) {
            true => record.facts.iter_mut().map(take_answer).collect(),
            false => Vec::new(),
        };
        Self { reason: record.reason.take(), findings, facts }
    }

    /// Whether these are the words of that record.
    fn fit(&self, record: &VerdictRecord) -> bool {
        let facts = self.facts.is_empty() || self.facts.len() == record.facts.len();
        facts && self.findings.len() == record.findings.len()
    }

    fn put(self, record: &mut VerdictRecord) {
        record.reason = self.reason;
        let said = record.facts.iter_mut().zip(self.facts).filter(|(_, answer)| !answer.is_null());
        said.for_each(|(fact, answer)| fact.answer = FactAnswer::Known(answer));
        for (finding, words) in record.findings.iter_mut().zip(self.findings) {
            words.put(finding);
        }
    }
}

/// Takes an answer out of a fact, if it holds text.
fn take_answer(fact: &mut FactRecord) -> Value {
    if !fact.has_words() {
        return Value::Null;
    }
    match std::mem::replace(&mut fact.answer, FactAnswer::Known(Value::Null)) {
        FactAnswer::Known(answer) => answer,
        FactAnswer::Failed(_) => Value::Null,
    }
}

impl FindingWords {
    fn take(finding: &mut Finding) -> Self {
        use std::mem::take;
        Self {
            message: take(&mut finding.message),
            instead: finding.instead.take(),
            spans: take(&mut finding.spans),
            resources: take(&mut finding.resources),
            edits: take(&mut finding.edits),
            question: finding.question.take(),
        }
    }

    fn put(self, finding: &mut Finding) {
        let Self { message, instead, spans, resources, edits, question } = self;
        finding.message = message;
        finding.instead = instead;
        finding.spans = spans;
        finding.resources = resources;
        finding.edits = edits;
        finding.question = question;
    }
}

/// Takes the resources out of a grant.
fn take_resources(granted: &mut [GrantedEffects]) -> Vec<Vec<String>> {
    granted.iter_mut().map(|granted| std::mem::take(&mut granted.resources)).collect()
}

impl EventBody {
    /// Takes out the words that are to be set aside: the name of their payload and its text, as JSON.
    fn take_aside(&mut self) -> Option<(&'static str, String)> {
        let (name, words) = match self {
            Self::Verdict(record)
                if !record.findings.is_empty() || record.facts.iter().any(FactRecord::has_words) =>
            {
                (FINDINGS, serde_json::to_string(&VerdictWords::take(record)))
            }
            Self::ApprovalDecided { scope: Some(scope), .. } => {
                (SCOPE, serde_json::to_string(&take_resources(scope.resources_mut()?)))
            }
            Self::Work(record) if record.has_words() => (WORK, record.take_words()),
            Self::State(record) if record.has_words() => (STATE, record.take_words()),
            Self::Fact(record) if record.has_words() => (FACT, record.take_words()),
            _ => return None,
        };
        // Texts, numbers and lists of them always have a JSON text.
        Some((name, words.unwrap_or_default()))
    }

    /// The words that are to be set aside: the name of their payload and its text, as JSON.
    pub fn aside(&self) -> Option<(&'static str, String)> {
        self.may_be_aside().is_some().then(|| self.clone().take_aside()).flatten()
    }

    /// The payload that an event of this kind has its words in, where it has any.
    fn may_be_aside(&self) -> Option<&'static str> {
        match self {
            Self::Verdict(_) => Some(FINDINGS),
            Self::ApprovalDecided { .. } => Some(SCOPE),
            Self::Work(_) => Some(WORK),
            Self::State(_) => Some(STATE),
            Self::Fact(_) => Some(FACT),
            _ => None,
        }
    }

    /// Puts words back that were set aside; whether they fit.
    fn put_aside(&mut self, text: &str) -> bool {
        match self {
            Self::Verdict(record) => match serde_json::from_str::<VerdictWords>(text) {
                Ok(words) if words.fit(record) => {
                    words.put(record);
                    true
                }
                _ => false,
            },
            Self::ApprovalDecided { scope: Some(scope), .. } => {
                let Some(granted) = scope.resources_mut() else { return true };
                match serde_json::from_str::<Vec<Vec<String>>>(text) {
                    Ok(resources) if resources.len() == granted.len() => {
                        for (granted, resources) in granted.iter_mut().zip(resources) {
                            granted.resources = resources;
                        }
                        true
                    }
                    _ => false,
                }
            }
            Self::Work(record) => record.put_words(text),
            Self::State(record) => record.put_words(text),
            Self::Fact(record) => record.put_words(text),
            _ => true,
        }
    }
}

impl Event {
    /// The payload with the words of this event that were set aside.
    pub fn aside(&self) -> Option<&PayloadRef> {
        self.payloads.get(self.body.may_be_aside()?)
    }

    /// The name of that payload.
    pub fn aside_name(&self) -> Option<&'static str> {
        self.body.may_be_aside().filter(|name| self.payloads.contains_key(*name))
    }

    /// The event as it appears in its line, where that is another than the event itself.
    pub(crate) fn without_aside(&self) -> Option<Self> {
        self.aside()?;
        let mut line = self.clone();
        line.body.take_aside();
        Some(line)
    }

    /// Puts back the words that were set aside. Without their text, or with one that does not fit, `gone` says why:
    /// [`ERASED`] or [`WITHHELD`]. A grant has no resources then, and covers nothing.
    pub fn join(&mut self, text: Option<&str>, gone: &str) {
        if self.aside().is_none() || text.is_some_and(|text| self.body.put_aside(text)) {
            return;
        }
        if let EventBody::Work(record) = &mut self.body {
            record.lose_words(gone);
        }
        if let EventBody::Verdict(record) = &mut self.body {
            if !record.findings.is_empty() {
                record.reason = Some(gone.to_owned());
            }
            for finding in &mut record.findings {
                gone.clone_into(&mut finding.message);
            }
            let aside = record.facts.iter_mut().filter(|fact| fact.answer == FactAnswer::Known(Value::Null));
            aside.for_each(|fact| fact.answer = FactAnswer::Failed(gone.to_owned()));
        }
    }

    /// Shows every free text of the event: whatever agents, servers, surfaces and people put into it, and what guards
    /// say about that. Not shown are names that come from the bundle, who the principal is, and numbers.
    pub fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        show(self.actor.text_mut());
        match &mut self.body {
            EventBody::RunOpened(opened) => {
                opened.session.iter_mut().for_each(&mut *show);
                if let Some(place) = &mut opened.place {
                    place.workspace.iter_mut().chain(&mut place.home).for_each(&mut *show);
                }
                show(&mut opened.surface);
                let labels = opened.parent.iter_mut().map(|parent| &mut parent.labels);
                labels.for_each(|labels| labels.each_mut(&mut |label| label_text(label, show)));
            }
            EventBody::Config(change) => config_texts(change, show),
            EventBody::Input { label } => label_text(label, show),
            EventBody::Observation { label, tainted, action: _ } => {
                label_text(label, show);
                if let Some(tainted) = tainted {
                    tainted.labels.each_mut(&mut |label| label_text(label, show));
                }
            }
            EventBody::Proposed(proposed) => {
                let texts = proposed.tool.iter_mut().chain(&mut proposed.server);
                let texts = texts.chain(&mut proposed.directory).chain(&mut proposed.call);
                texts.for_each(show);
            }
            EventBody::Verdict(record) => verdict_texts(record, show),
            EventBody::Enforcement { call, action: _, enforced: _, contained: _ } => {
                call.iter_mut().for_each(show)
            }
            EventBody::Observed(record) => record.server.iter_mut().for_each(show),
            EventBody::ApprovalRequested {
                tool,
                approval: _,
                about: _,
                digest: _,
                effects: _,
                patterns: _,
            } => show(tool),
            EventBody::ApprovalDecided {
                scope,
                labels,
                note,
                approval: _,
                decision: _,
                lasting: _,
                shown: _,
            } => {
                match scope {
                    Some(GrantScope::Tool(tool)) => show(tool),
                    Some(GrantScope::Effects(granted) | GrantScope::Pattern(granted)) => {
                        granted.iter_mut().flat_map(|granted| &mut granted.resources).for_each(&mut *show);
                    }
                    Some(GrantScope::Once | GrantScope::Arguments) | None => {}
                }
                note.iter_mut().for_each(&mut *show);
                labels.each_mut(&mut |label| label_text(label, show));
            }
            EventBody::Evidence { name, digest: _ } => show(name),
            EventBody::Work(record) => record.each_text(show),
            EventBody::State(record) => record.each_text(show),
            EventBody::Fact(record) => record.each_text(show),
            EventBody::Control { note, control: _ } => note.iter_mut().for_each(show),
            EventBody::Gap { cause, from: _, to: _ } => show(cause),
            EventBody::RunClosed { successor, state: _, count: _ } => successor.iter_mut().for_each(show),
            EventBody::GrantClaimed { .. } | EventBody::Outcome { .. } | EventBody::Output {} => {}
        }
    }
}

pub(crate) fn label_text(label: &mut Label, show: &mut dyn FnMut(&mut String)) {
    match label {
        Label::Tool(name) | Label::Server(name) => show(name),
        Label::User | Label::Operator | Label::Run(_) | Label::Unknown => {}
    }
}

fn config_texts(change: &mut ConfigChange, show: &mut dyn FnMut(&mut String)) {
    match change {
        ConfigChange::ToolsListed { server, origin, tools } => {
            show(server);
            origin.iter_mut().for_each(&mut *show);
            tools.iter_mut().for_each(|tool| show(&mut tool.name));
        }
        ConfigChange::ToolAccepted { server, tool, digest: _ } => {
            show(server);
            show(tool);
        }
        ConfigChange::ServerContained { server, contained: _ } => show(server),
        ConfigChange::ParentSaw { labels } => labels.each_mut(&mut |label| label_text(label, show)),
        ConfigChange::BundleLoaded { .. }
        | ConfigChange::Resumed { .. }
        | ConfigChange::ChildOpened { .. }
        | ConfigChange::ChildClosed { .. } => {}
    }
}

fn verdict_texts(record: &mut VerdictRecord, show: &mut dyn FnMut(&mut String)) {
    record.reason.iter_mut().for_each(&mut *show);
    for finding in &mut record.findings {
        show(&mut finding.message);
        let words = finding.instead.iter_mut().chain(&mut finding.question).chain(&mut finding.resources);
        words.for_each(&mut *show);
        finding.spans.iter_mut().for_each(|span| show(&mut span.pointer));
        for edit in &mut finding.edits {
            show(&mut edit.span.pointer);
            show(&mut edit.replacement);
        }
    }
    for fact in &mut record.facts {
        show(&mut fact.request.question);
        match &mut fact.answer {
            FactAnswer::Failed(why) => show(why),
            FactAnswer::Known(value) => value_texts(value, show),
        }
    }
}

pub(crate) fn value_texts(value: &mut Value, show: &mut dyn FnMut(&mut String)) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => show(text),
            Value::Array(items) => rest.extend(items),
            Value::Object(map) => rest.extend(map.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::event::{Actor, ApprovalDecision, EVENT_VERSION};
    use crate::fact::FactRequest;
    use crate::grant::Lasting;
    use crate::id::{ApprovalId, Commitment, Digest};
    use crate::label::LabelSet;
    use crate::time::Timestamp;
    use crate::verdict::{Escalation, PolicyAction, Verdict};

    const MARKER: &str = "Mallory";

    fn event(body: EventBody) -> Event {
        let payload = PayloadRef {
            commitment: Commitment::from_bytes([7; 32]),
            media_type: "application/json".into(),
            bytes: 1,
        };
        let named = body.aside().map(|(name, _)| (name.to_owned(), payload));
        Event {
            v: EVENT_VERSION,
            seq: 3,
            t: Timestamp::from_micros(0),
            actor: Actor::gate(),
            cause: Some(2),
            payloads: BTreeMap::from_iter(named),
            body,
        }
    }

    fn verdict(findings: Vec<Finding>) -> EventBody {
        EventBody::Verdict(VerdictRecord {
            action: None,
            verdict: Verdict::Clarify,
            policy_action: PolicyAction::Denied,
            escalation: Escalation::Clarify,
            rule: findings.first().map(|finding| finding.rule.to_string()),
            reason: findings.first().map(|finding| finding.message.clone()),
            findings,
            bundle: Digest::from_bytes([1; 32]),
            policy: "p".into(),
            facts: Vec::new(),
            grant: None,
            marks: Vec::new(),
        })
    }

    fn finding() -> Finding {
        let span = Span { pointer: format!("/arguments/{MARKER}"), start: 0, end: 3 };
        let mut finding = Finding::new("a/b", Verdict::Clarify, format!("{MARKER} is not known"))
            .instead(format!("not {MARKER}"))
            .at(span.clone())
            .edit(SpanEdit { span, replacement: MARKER.to_owned() })
            .against([format!("path /home/{MARKER}")])
            .by_policies(["rule-1".to_owned()])
            .question(format!("who is {MARKER}?"));
        finding.evidence = vec![1];
        finding
    }

    fn decided(resource: &str) -> EventBody {
        let granted = GrantedEffects { rule: "access/x".into(), resources: vec![resource.to_owned()] };
        EventBody::ApprovalDecided {
            approval: ApprovalId::from_bytes([4; 16]),
            decision: ApprovalDecision::Granted,
            scope: Some(GrantScope::Effects(vec![granted])),
            lasting: Lasting::default(),
            shown: None,
            labels: LabelSet::default(),
            note: None,
        }
    }

    #[test]
    fn a_line_has_none_of_the_words_and_they_come_back() {
        for body in [verdict(vec![finding(), finding()]), decided("path /home/Mallory/x")] {
            let whole = event(body);
            let line = whole.to_line().unwrap();
            assert!(!String::from_utf8_lossy(&line).contains(MARKER), "{}", String::from_utf8_lossy(&line));
            let mut read = Event::from_line(&line).unwrap();
            assert_eq!(read.to_line().unwrap(), line, "what is left out once stays out");
            read.join(Some(&whole.body.aside().unwrap().1), ERASED);
            assert_eq!(read, whole);
        }
    }

    #[test]
    fn answers_that_hold_text_are_not_in_the_line() {
        let fact = |question: &str, answer| FactRecord {
            request: FactRequest { source: "judge".into(), question: question.into() },
            answer,
        };
        let count = fact("count", FactAnswer::Known(json!({"steps": 3})));
        let said = fact("said", FactAnswer::Known(json!({"holds": true, "why": [MARKER]})));
        let late = fact("late", FactAnswer::Failed("no answer in time".into()));
        for findings in [vec![finding()], Vec::new()] {
            let mut body = verdict(findings);
            let EventBody::Verdict(record) = &mut body else { panic!("not a verdict") };
            record.facts = vec![count.clone(), said.clone(), late.clone()];
            let whole = event(body);
            let line = String::from_utf8(whole.to_line().unwrap()).unwrap();
            assert!(!line.contains(MARKER) && line.contains("no answer in time"), "{line}");
            let read = Event::from_line(line.as_bytes()).unwrap();
            let mut joined = read.clone();
            joined.join(Some(&whole.body.aside().unwrap().1), ERASED);
            assert_eq!(joined, whole);
            let mut gone = read;
            gone.join(None, ERASED);
            let EventBody::Verdict(record) = &gone.body else { panic!("not a verdict") };
            let lost = fact("said", FactAnswer::Failed(ERASED.into()));
            assert_eq!(record.facts, [count.clone(), lost, late.clone()]);
        }
        // Numbers alone make no payload.
        let mut body = verdict(Vec::new());
        let EventBody::Verdict(record) = &mut body else { panic!("not a verdict") };
        record.facts = vec![count, late];
        assert!(body.aside().is_none());
    }

    #[test]
    fn what_is_gone_is_said_and_grants_nothing() {
        let whole = event(verdict(vec![finding()]));
        for text in [None, Some("{}"), Some(r#"{"findings":[]}"#)] {
            let mut read = Event::from_line(&whole.to_line().unwrap()).unwrap();
            read.join(text, ERASED);
            let EventBody::Verdict(record) = &read.body else { panic!("not a verdict") };
            assert_eq!((record.reason.as_deref(), record.rule.as_deref()), (Some(ERASED), Some("a/b")));
            let [left] = record.findings.as_slice() else { panic!("{:?}", record.findings) };
            assert_eq!((left.message.as_str(), left.verdict), (ERASED, Verdict::Clarify));
            assert_eq!((&left.policies[..], &left.evidence[..]), (&["rule-1".to_owned()][..], &[1][..]));
        }
        let mut read = Event::from_line(&event(decided("path /a")).to_line().unwrap()).unwrap();
        read.join(None, ERASED);
        let EventBody::ApprovalDecided { scope: Some(scope), .. } = &read.body else { panic!("no scope") };
        let wanted = Finding::new("access/x", Verdict::Review, "held").against(["path /a".to_owned()]);
        assert!(!scope.answers(&wanted.by_policies(["p".to_owned()])));
    }

    #[test]
    fn older_lines_and_other_events_stay_as_they_are() {
        let mut older = event(verdict(vec![finding()]));
        older.payloads.clear();
        let mut read = Event::from_line(&older.to_line().unwrap()).unwrap();
        read.join(None, ERASED);
        assert_eq!(read, older, "the words stand in the line");
        assert!(verdict(Vec::new()).aside().is_none());
        assert!(EventBody::Output {}.aside().is_none());
    }

    #[test]
    fn every_free_text_is_shown() {
        let mut shown = event(verdict(vec![finding()]));
        let mut seen = 0;
        shown.each_text(&mut |text| {
            seen += usize::from(text.contains(MARKER));
            *text = text.replace(MARKER, "X");
        });
        assert_eq!(seen, 8);
        assert!(!serde_json::to_string(&shown).unwrap().contains(MARKER));
        let mut shown = event(decided("path /home/Mallory/x"));
        shown.each_text(&mut |text| *text = text.replace(MARKER, "X"));
        assert!(!serde_json::to_string(&shown).unwrap().contains(MARKER));
    }
}
