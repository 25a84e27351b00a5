//! Judges an export of the gate again.
//!
//! The record's inputs, outcomes, observations and people's decisions are fed in their places, its verdicts
//! are computed anew and compared. Salts open the commitments: what was withheld cannot be judged.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::aside::{DIGEST_KEY, ERASED, OBSERVED};
use portcullis_core::bundle::{Bundle, built_in_profile};
use portcullis_core::event::{
    About, Actor, ApprovalDecision, ConfigChange, Enforced, Event, EventBody, GrantScope, Lasting,
    ObservedRecord, ObservedWhat, OutcomeStatus, PayloadRef, Proposed, RunOpened, VerdictRecord,
};
use portcullis_core::fact::FactRecord;
use portcullis_core::id::{ActionId, ApprovalId, Commitment};
use portcullis_core::label::Label;
use portcullis_core::profile::Profile;
use portcullis_core::state::confirmations::CONFIRMED;
use portcullis_core::state::{EDITED_ARGUMENTS, EDITED_TEXT};
use portcullis_proof::export::{
    ErasedRecord, LineError, Lines, PAYLOAD_RECORD_BYTES_MAX, PayloadRecord, event_parts, read_record,
    record_kind,
};
use portcullis_proof::{ReadError, Status};
use portcullis_session::dry::{DryOpening, DryRun};
use portcullis_session::engine::{Answer, Contain, Edit, Lasts, Proposal, ReportWhat, ReportedOf, Says};
use portcullis_wire::strict;
use serde_json::{Map, Value};

use super::recompute::{Comparer, Texts};
use super::source::Source;
use super::tools::Collector;
use super::{
    EXPORT_EVENTS_MAX, EXPORT_PAYLOAD_BYTES_MAX, Item, Judge, ReplayError, ReplyRow, Row, Sink, Summary,
    reply_row, row, send,
};

pub(super) fn replay(judge: &Judge<'_>, sink: Sink<'_>) -> Result<Summary, ReplayError> {
    verify(judge.source)?;
    let export = Export::read(judge.source)?;
    let opened = export.opened()?;
    send(sink, Item::Opened(opened))?;
    let mut summary = Summary { runs: 1, ..Summary::default() };
    let mut bundle = Arc::clone(judge.bundle);
    // The bundle that judged the run knows what it knew then.
    if !judge.options.strict_tools && bundle.digest() != opened.bundle {
        let tools = export.tools(judge.bundle);
        (bundle, summary.inferred, summary.left_unknown) = tools.register(judge.bundle);
        send(sink, Item::Tools(&summary.inferred))?;
    }
    let recorded = Some(opened.policy.as_str()).filter(|name| bundle.policy(name).is_some());
    let policy = judge.options.policy.as_deref().or(recorded).unwrap_or(bundle.default_policy()).to_owned();
    let (principal, place) = (opened.principal.clone(), opened.place.clone());
    let pipeline = Arc::clone(judge.pipeline);
    let (policy_name, surface, parent) = (policy.as_str(), opened.surface.as_str(), opened.parent.clone());
    let opening = DryOpening { policy: policy_name, principal, place, surface, parent };
    let dry = DryRun::open_on(Arc::clone(&bundle), pipeline, opening)?;
    let texts = export.texts();
    let mut rerun = Rerun {
        comparer: Comparer::new(&texts, bundle.digest()),
        dry,
        asked: export.asked(),
        bundle: &bundle,
        export: &export,
        actions: HashMap::new(),
        requested: HashMap::new(),
        approvals: HashMap::new(),
        executing: HashMap::new(),
        contained: HashMap::new(),
        servers: HashMap::new(),
        rows: Vec::new(),
        replies: Vec::new(),
        replies_given: HashMap::new(),
        replied: 0,
        numbers: HashMap::new(),
        not_judged: Vec::new(),
    };
    let started = Instant::now();
    for (line, event) in &export.events {
        rerun.event(*line, event);
    }
    summary.judging = started.elapsed();
    for (index, mut row) in std::mem::take(&mut rerun.rows).into_iter().enumerate() {
        (row.run, row.call) = (1, index + 1);
        summary.count_row(&row);
        send(sink, Item::Decision(&row))?;
    }
    for comparison in &rerun.comparer.comparisons {
        send(sink, Item::Compared(comparison))?;
    }
    for row in &mut rerun.replies {
        row.run = 1;
        summary.count_reply(row);
        send(sink, Item::Verified(row))?;
    }
    summary.not_judged = rerun.not_judged.len();
    for (line, tool) in &rerun.not_judged {
        send(sink, Item::NotJudged { line: *line, tool: tool.as_deref() })?;
    }
    summary.policies.insert(policy);
    send(sink, Item::Progress(judge.source.bytes_read()))?;
    Ok(summary)
}

/// An export that was tampered with is evidence of nothing.
fn verify(source: &Source) -> Result<(), ReplayError> {
    let report = portcullis_proof::verify(source.open()?, None).map_err(|error| match error {
        ReadError::Io(error) => ReplayError::Io(error),
        ReadError::TooLarge { what, limit, .. } => ReplayError::TooLarge { what, limit },
    })?;
    match report.failure {
        Some(failure) if report.status == Status::Invalid => {
            let message = format!("{}: {}", failure.attack, failure.message);
            Err(ReplayError::UnsoundExport { line: failure.line, message })
        }
        _ => Ok(()),
    }
}

/// The events and the payloads that are there, in memory.
struct Export {
    events: Vec<(usize, Event)>,
    payloads: HashMap<Commitment, Vec<u8>>,
    /// Those that the store erased, as the file says.
    erased: HashSet<Commitment>,
}

impl Export {
    /// Reads a file that was verified before.
    fn read(source: &Source) -> Result<Self, ReplayError> {
        let mut lines = Lines::new(source.open()?);
        let mut export = Self { events: Vec::new(), payloads: HashMap::new(), erased: HashSet::new() };
        let mut payload_bytes = 0;
        loop {
            match lines.advance(PAYLOAD_RECORD_BYTES_MAX) {
                Ok(true) => {}
                Ok(false) => {
                    export.join();
                    return Ok(export);
                }
                Err(LineError::Read(error)) => return Err(error.into()),
                // It was whole a moment ago.
                Err(_) => return Err(io::Error::other("the file changed while it was read").into()),
            }
            let unsound = |message: String| ReplayError::UnsoundExport { line: lines.number, message };
            if let Some((_, bytes)) = event_parts(lines.line()) {
                let event = Event::from_line(bytes).map_err(|error| unsound(error.to_string()))?;
                if export.events.len() >= EXPORT_EVENTS_MAX {
                    return Err(ReplayError::TooLarge { what: "events", limit: EXPORT_EVENTS_MAX });
                }
                export.events.push((usize::try_from(lines.number).unwrap_or(usize::MAX), event));
            } else if record_kind(lines.line()) == Some("erased") {
                let record: ErasedRecord = read_record(lines.line()).map_err(unsound)?;
                export.erased.insert(Commitment::from_bytes(record.commitment.0));
            } else if record_kind(lines.line()) == Some("payload") {
                let record: PayloadRecord<'_> = read_record(lines.line()).map_err(unsound)?;
                let bytes = record.bytes().map_err(unsound)?;
                payload_bytes += bytes.len();
                if payload_bytes > EXPORT_PAYLOAD_BYTES_MAX {
                    let limit = EXPORT_PAYLOAD_BYTES_MAX;
                    return Err(ReplayError::TooLarge { what: "bytes of payloads", limit });
                }
                export.payloads.insert(Commitment::from_bytes(record.commitment.0), bytes.into_owned());
            }
        }
    }

    /// Puts the words back that events have set aside: grants for effects need theirs.
    fn join(&mut self) {
        for (_, event) in &mut self.events {
            let words = event.aside().and_then(|reference| self.payloads.get(&reference.commitment));
            event.join(words.and_then(|words| str::from_utf8(words).ok()), ERASED);
        }
    }

    fn texts(&self) -> Texts {
        let given = |commitment: Commitment| self.payloads.contains_key(&commitment);
        Texts::of(self.events.iter().map(|(_, event)| event), given, &self.erased)
    }

    fn opened(&self) -> Result<&RunOpened, ReplayError> {
        let opened = self.events.iter().find_map(|(_, event)| match &event.body {
            EventBody::RunOpened(opened) => Some(opened),
            _ => None,
        });
        opened.ok_or_else(|| ReplayError::UnsoundExport { line: 1, message: "it has no `run-opened`".into() })
    }

    /// A payload of an event: none where the event has none of that name, or it was withheld.
    fn payload(&self, event: &Event, name: &str) -> Option<&[u8]> {
        let PayloadRef { commitment, .. } = event.payloads.get(name)?;
        self.payloads.get(commitment).map(Vec::as_slice)
    }

    fn text(&self, event: &Event, name: &str) -> Option<String> {
        self.payload(event, name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn arguments(&self, event: &Event, proposed: &Proposed) -> Option<Value> {
        if proposed.tool.is_none() {
            return Some(Value::Object(Map::new()));
        }
        strict::parse_recorded(self.payload(event, "arguments")?, PAYLOAD_RECORD_BYTES_MAX).ok()
    }

    fn tools(&self, bundle: &Bundle) -> Collector {
        let mut tools = Collector::default();
        for (_, event) in &self.events {
            if let EventBody::Proposed(proposed) = &event.body
                && let Some(name) = &proposed.tool
            {
                tools.called(bundle, name, self.arguments(event, proposed).as_ref());
            }
        }
        tools
    }

    /// The answers to what guards asked about the text of an event.
    fn facts(&self, said: u64) -> Vec<FactRecord> {
        let after = self.events.partition_point(|(_, event)| event.seq <= said);
        let near = self.events.get(after..).unwrap_or_default().iter().take(EVENTS_BETWEEN_MAX);
        let of_text =
            near.filter(|(_, event)| event.cause == Some(said)).find_map(|(_, event)| match &event.body {
                EventBody::Verdict(record) => Some(record.facts.clone()),
                _ => None,
            });
        of_text.unwrap_or_default()
    }

    /// The actions that were left to the client's own prompt.
    fn asked(&self) -> HashSet<ActionId> {
        let asked = self.events.iter().filter_map(|(_, event)| match event.body {
            EventBody::Enforcement { action, enforced: Enforced::Asked, .. } => action,
            _ => None,
        });
        asked.collect()
    }

    /// The event that shows the agent the result of an outcome.
    fn observation(&self, outcome: &Event) -> Option<&Event> {
        let follows = |event: &&(usize, Event)| {
            matches!(event.1.body, EventBody::Observation { .. }) && event.1.cause == Some(outcome.seq)
        };
        let after = self.events.partition_point(|(_, event)| event.seq <= outcome.seq);
        let near = self.events.get(after..).unwrap_or_default().iter().take(EVENTS_BETWEEN_MAX);
        near.clone().find(follows).map(|(_, event)| event)
    }
}

/// An observation is written together with its outcome, a verdict together with its text.
const EVENTS_BETWEEN_MAX: usize = 4;

struct Rerun<'e> {
    dry: DryRun,
    comparer: Comparer<'e>,
    bundle: &'e Bundle,
    export: &'e Export,
    /// What was proposed, by the recorded action: the event, and the proposal where its arguments are there.
    actions: HashMap<ActionId, (u64, Option<Proposal>)>,
    /// Recorded actions that were left to the client's own prompt.
    asked: HashSet<ActionId>,
    /// Requests for approval that were made here, by what was recorded.
    requested: HashMap<About, ApprovalId>,
    /// Replies by their recorded event: the text with the documents, while it is held here.
    replies_given: HashMap<u64, Option<(String, Option<String>)>>,
    /// Recorded approvals and the approvals that stand for them here.
    approvals: HashMap<ApprovalId, ApprovalId>,
    /// Recorded actions that go ahead here, and the actions that stand for them.
    executing: HashMap<ActionId, ActionId>,
    /// Recorded actions that run contained here, with the actions that stand for them and their tickets.
    contained: HashMap<ActionId, (ActionId, Contain)>,
    /// The tickets of servers that run contained here.
    servers: HashMap<String, Contain>,
    rows: Vec<Row>,
    replies: Vec<ReplyRow>,
    /// Replies, verified or not.
    replied: usize,
    /// Numbers of recorded events by those of the events that tell them here.
    numbers: HashMap<u64, u64>,
    not_judged: Vec<(usize, Option<String>)>,
}

impl Rerun<'_> {
    /// The next event, or the one after so many others, tells this recorded one.
    fn told(&mut self, recorded: u64, after: u64) {
        self.numbers.insert(self.dry.state().seq() + 1 + after, recorded);
    }

    fn event(&mut self, line: usize, event: &Event) {
        match &event.body {
            EventBody::Input { label } => {
                let text = self.export.text(event, "text").unwrap_or_default();
                self.told(event.seq, 0);
                self.dry.recall_facts(self.export.facts(event.seq));
                let judged = self.dry.input(&text, label.clone());
                self.comparer.text("input", event.seq, Some(&judged.decision));
            }
            EventBody::Observation { action: None, label: Label::Server(server), tainted } => {
                let text = self.export.text(event, "content").unwrap_or_default();
                self.told(event.seq, 0);
                self.dry.recall_facts(self.export.facts(event.seq));
                self.dry.recall_tainted(tainted.clone());
                let judged = self.dry.told(server, &text);
                self.comparer.text("observation", event.seq, Some(&judged.decision));
            }
            EventBody::Output {} => {
                let text = self.export.text(event, "text").unwrap_or_default();
                self.told(event.seq, 0);
                self.dry.recall_facts(self.export.facts(event.seq));
                let documents = self.export.text(event, "documents");
                let judged = self.dry.output_with(&text, documents.clone());
                self.comparer.text("output", event.seq, Some(&judged.decision));
                if let Some(asked) = judged.approval {
                    self.requested.insert(About::Text(event.seq), asked);
                }
                let held = judged.approval.map(|_| (text, documents));
                self.replies_given.insert(event.seq, held);
                self.replied += 1;
                let reply = reply_row(judged, self.replied, |event| self.numbers.get(&event).copied());
                self.replies.extend(reply.map(|row| ReplyRow { line, ..row }));
            }
            EventBody::Control { control, note } => self.dry.control(*control, note.clone()),
            EventBody::Config(change) => self.config(event, change),
            EventBody::Proposed(proposed) => self.proposed(line, event, proposed),
            EventBody::Verdict(record) => {
                if let Some(action) = record.action {
                    self.judge(line, event.seq, action, record);
                } else if let Some(said) = event.cause {
                    self.judge_reply_again(said, event.seq, record);
                }
            }
            EventBody::ApprovalRequested { approval, about, .. } => {
                if let Some(here) = self.requested.remove(about) {
                    self.approvals.insert(*approval, here);
                }
            }
            EventBody::ApprovalDecided { approval, decision, .. } => {
                let Some(here) = self.approvals.get(approval).copied() else { return };
                // Where this run stands otherwise than the recorded one, the answer finds nothing to answer.
                let _nothing_waits = match self.answer(event, *decision) {
                    Some(answer) => self.dry.answer(here, answer),
                    None if *decision == ApprovalDecision::Expired => self.dry.lapse(here),
                    None => Ok(()),
                };
            }
            EventBody::Outcome { action, status } => self.outcome(event, *action, *status),
            EventBody::Evidence { name, .. } if name == CONFIRMED && event.actor == Actor::user() => {
                self.dry.confirmed();
            }
            EventBody::Observed(record) => self.observed(event, record),
            _ => {}
        }
    }

    /// What governs the run changed, or something about its surroundings became known.
    fn config(&mut self, event: &Event, change: &ConfigChange) {
        match change {
            ConfigChange::Resumed { .. } if event.payloads.contains_key(DIGEST_KEY) => {
                self.dry.renew_key(event.seq);
            }
            ConfigChange::ToolsListed { server, origin, tools } => {
                self.dry.tools_listed(server, origin.as_deref(), tools.clone());
            }
            ConfigChange::ToolAccepted { server, tool, digest } => {
                self.dry.tool_accepted(server, tool, *digest);
            }
            ConfigChange::ServerContained { server, contained } => {
                // What the profile says is not in the record, and no verdict rests on it.
                let profile = built_in_profile("read-only");
                let profile = profile.map(|profile| Profile { name: contained.profile.clone(), ..profile });
                let contain = profile.and_then(|profile| self.dry.contain_server(server, profile).ok());
                self.servers.extend(contain.map(|contain| (server.clone(), contain)));
            }
            ConfigChange::ChildOpened { run } => self.dry.open_child(*run),
            ConfigChange::ParentSaw { labels } => self.dry.parent_saw(labels.clone()),
            closed @ ConfigChange::ChildClosed { .. } => self.child_closed(event, closed),
            _ => {}
        }
    }

    /// What a person answered, if that is what a decision was. Where several people had to agree, the last one decided.
    fn answer(&self, event: &Event, decision: ApprovalDecision) -> Option<Answer> {
        let EventBody::ApprovalDecided { scope, lasting, note, .. } = &event.body else { return None };
        let says = match decision {
            ApprovalDecision::Granted => {
                let arguments = self.export.payload(event, EDITED_ARGUMENTS);
                let arguments =
                    arguments.and_then(|given| strict::parse_recorded(given, PAYLOAD_RECORD_BYTES_MAX).ok());
                let edit = arguments
                    .map(Edit::Arguments)
                    .or_else(|| self.export.text(event, EDITED_TEXT).map(Edit::Text));
                let lasts = match lasting {
                    Lasting { task: true, .. } => Lasts::Task,
                    Lasting { until: Some(until), .. } => Lasts::Until(*until),
                    Lasting { until: None, .. } => Lasts::Usual,
                };
                Says::Grant { scope: scope.clone().unwrap_or(GrantScope::Once), lasts, edit }
            }
            ApprovalDecision::Refused => Says::Refuse,
            ApprovalDecision::Answered => Says::Answer,
            ApprovalDecision::Revoked => Says::Revoke,
            ApprovalDecision::Endorsed | ApprovalDecision::Expired => return None,
        };
        let by = event.actor.as_str().trim_start_matches("approver:");
        Some(Answer { note: note.clone(), ..Answer::rehearsed(says, by) })
    }

    /// An action was proposed: it waits for its verdict, if its arguments are there to be judged.
    fn proposed(&mut self, line: usize, event: &Event, proposed: &Proposed) {
        let Some(arguments) = self.export.arguments(event, proposed) else {
            self.actions.insert(proposed.action, (event.seq, None));
            self.not_judged.push((line, proposed.tool.clone()));
            return;
        };
        let continuation = self.export.text(event, "continuation");
        let proposal = Proposal {
            tool: proposed.tool.clone(),
            server: proposed.server.clone(),
            arguments,
            planned: self.export.text(event, "planned"),
            continuation: continuation.and_then(|text| serde_json::from_str(&text).ok()),
            call: proposed.call.clone(),
            directory: proposed.directory.clone(),
            ask: self.asked.contains(&proposed.action),
            confidence: proposed.confidence,
            contains: false,
        };
        self.actions.insert(proposed.action, (event.seq, Some(proposal)));
    }

    /// A run ended that this one had opened: what was seen of it is judged.
    fn child_closed(&mut self, event: &Event, closed: &ConfigChange) {
        let Some(seen) = self.export.observation(event) else {
            self.dry.child_closed(closed, None);
            return;
        };
        let EventBody::Observation { tainted, .. } = &seen.body else { return };
        let labels = tainted.as_ref().map(|tainted| tainted.labels.clone()).unwrap_or_default();
        self.told(seen.seq, 1);
        self.dry.recall_facts(self.export.facts(seen.seq));
        let text = self.export.text(seen, "content").unwrap_or_default();
        let judged = self.dry.child_closed(closed, Some((labels, text)));
        self.comparer.text("observation", seen.seq, judged.as_ref().map(|judged| &judged.decision));
    }

    /// A contained action was seen to do something: it is judged, if the action runs contained here too, and the report is
    /// there.
    fn observed(&mut self, event: &Event, record: &ObservedRecord) {
        let reported = self.export.text(event, OBSERVED).and_then(|text| match record.what {
            ObservedWhat::Ended(_) => Some(ReportWhat::Ended(serde_json::from_str(&text).ok()?)),
            ObservedWhat::Connection(_) => Some(ReportWhat::Connection(serde_json::from_str(&text).ok()?)),
        });
        let contained = match (record.action, &record.server) {
            (Some(action), _) => {
                let here = self.contained.get(&action);
                here.map(|(here, contain)| (ReportedOf::Action(*here), contain.clone()))
            }
            (None, Some(server)) => {
                let contain = self.servers.get(server);
                contain.map(|contain| (ReportedOf::Server(server.clone()), contain.clone()))
            }
            (None, None) => None,
        };
        let judged = contained.zip(reported).and_then(|((of, contain), what)| {
            self.told(event.seq, 0);
            self.dry.recall_facts(self.export.facts(event.seq));
            self.dry.observed(of, &contain, what).ok()
        });
        self.comparer.text("observed", event.seq, judged.as_ref().map(|judged| &judged.decision));
    }

    /// An action went ahead: what was seen of it is judged, if it went ahead here too.
    fn outcome(&mut self, event: &Event, action: ActionId, status: OutcomeStatus) {
        let seen = self.export.observation(event);
        let seq = seen.map(|seen| seen.seq);
        let mut judged = None;
        if let Some(here) = self.executing.remove(&action) {
            let content = seen.and_then(|seen| self.export.text(seen, "content"));
            if let (Some(seq), Some(_)) = (seq, &content) {
                // An outcome comes before its observation.
                self.told(seq, 1);
                self.dry.recall_facts(self.export.facts(seq));
            }
            if let Some(EventBody::Observation { tainted, .. }) = seen.map(|seen| &seen.body) {
                self.dry.recall_tainted(tainted.clone());
            }
            judged = self.dry.outcome(here, status, content);
        }
        if let Some(seq) = seq {
            self.comparer.text("observation", seq, judged.as_ref().map(|judged| &judged.decision));
        }
    }

    /// Another verdict was recorded on a reply that was held: it is computed anew, if the reply is held here too.
    fn judge_reply_again(&mut self, said: u64, seq: u64, record: &VerdictRecord) {
        let Some(held) = self.replies_given.get(&said).cloned() else { return };
        if self.comparer.is_first(said, seq) {
            return;
        }
        let judged = held.map(|(text, documents)| {
            self.dry.recall_facts(record.facts.clone());
            self.dry.output_with(&text, documents)
        });
        if judged.as_ref().is_some_and(|judged| judged.enforced != Enforced::Held) {
            self.replies_given.insert(said, None);
        }
        self.comparer.text_again(said, seq, record, judged.as_ref().map(|judged| &judged.decision));
    }

    /// A verdict was recorded: it is computed anew. An action that was held has several.
    fn judge(&mut self, line: usize, seq: u64, action: ActionId, record: &VerdictRecord) {
        // What goes ahead here already needs no second verdict.
        let (proposed, proposal) = self.actions.get(&action).cloned().unwrap_or_default();
        let (Some(proposal), false) = (proposal.clone(), self.executing.contains_key(&action)) else {
            let tool = proposal.and_then(|proposal| proposal.tool);
            return self.comparer.action(proposed, seq, tool, record, None);
        };
        let call = proposal.call.clone();
        self.dry.recall_facts(record.facts.clone());
        let judgement = self.dry.propose(proposal);
        let tool = judgement.action.tool().map(str::to_owned);
        self.comparer.action(proposed, seq, tool, record, Some(&judgement.decision));
        if judgement.enforced.may_happen() && judgement.action.is_call() {
            self.executing.insert(action, judgement.action.id);
        }
        if let Some(contain) = judgement.contain.clone() {
            self.contained.insert(action, (judgement.action.id, contain));
        }
        if let Some(asked) = judgement.approval {
            self.requested.insert(About::Action(action), asked);
        }
        let mut row = row(self.bundle, &judgement);
        (row.line, row.id, row.recorded) = (line, call, Some(record.verdict));
        row.seq = Some(seq);
        self.rows.push(row);
    }
}
