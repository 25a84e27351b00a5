//! What is said and seen: inputs, results of tools, replies. Each is recorded unchanged, judged, and shown to its
//! reader whole, with spans replaced, or not at all.
//!
//! A text against which nothing was found leaves no verdict in the record, unless facts were asked for it: having been
//! recorded at all, it was judged.
//!
//! Not every surface can still do what the verdict asks for. Each says how far it reaches, and the record says what was
//! really done.

use portcullis_core::action::{Pending, Subject};
use portcullis_core::denial::Denial;
use portcullis_core::event::{Actor, Enforced, EventBody, Mode, OutcomeStatus};
use portcullis_core::fact::Facts;
use portcullis_core::id::{ActionId, ApprovalId, DigestBuilder};
use portcullis_core::label::Label;
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::Phase;
use portcullis_core::state::confirmations::CONFIRMED;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::RunReading;
use portcullis_trajectory::sources::Verification;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::replies::Reply;
use super::server::server_name;
use super::{Engine, JSON, TEXT, Teller, denied};
use crate::batch::{Batch, BatchBuilder};
use crate::denial::explain_text;
use crate::env::Env;
use crate::facts::{Asked, FactSources, Sources};

/// Name of the evidence that holds what the checks say of a reply.
pub const VERIFICATION: &str = "verification";
/// The version of its payload.
const VERIFICATION_VERSION: u8 = 1;

/// What a surface can still do about a text when the gate has judged it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Show it with stretches replaced, or not at all.
    #[default]
    Replace,
    /// Keep it back whole. What would be replaced is withheld.
    Withhold,
    /// Nothing: the reader has the text, or gets it regardless of the verdict. The verdict may stop the run, but the
    /// text passes.
    Tell,
}

impl Reach {
    /// What is done, where this is asked for.
    pub(super) fn done(self, asked: Enforced) -> Enforced {
        match (self, asked) {
            (Self::Withhold, Enforced::Replaced) => Enforced::Withheld,
            (Self::Tell, Enforced::Replaced | Enforced::Withheld) => Enforced::LetPass,
            _ => asked,
        }
    }
}

/// What became of an action, as it is reported.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The action.
    pub action: ActionId,
    /// How it ended.
    pub status: OutcomeStatus,
    /// The text or JSON text of the tool's answer; without one there is nothing to judge.
    pub content: Option<&'a str>,
    /// What can still be done about the text.
    pub reach: Reach,
    /// Who reports it.
    pub teller: Teller,
}

impl Reported<'_> {
    /// The gate knows of itself how an action ended; nobody sees anything of it.
    pub(crate) fn by_gate(action: ActionId, status: OutcomeStatus) -> Self {
        Self { action, status, content: None, reach: Reach::Tell, teller: Teller::Gate }
    }
}

/// What the gate says to something that was said or seen.
#[derive(Debug, Clone)]
pub struct TextJudgement {
    /// The verdict with all reasons.
    pub decision: Decision,
    /// What is done about it: executed (it passes as it is), replaced, let-pass or withheld.
    pub enforced: Enforced,
    /// What its reader should get instead, where stretches are to be replaced.
    pub shown: Option<String>,
    /// Why it should not pass.
    pub denial: Option<Denial>,
    /// Of a reply that is held: the approval that it waits for.
    pub approval: Option<ApprovalId>,
    /// Of a reply: what the checks say, where the bundle wants it verified.
    pub verification: Option<Verification>,
    /// Number of the last event about it.
    pub seq: u64,
}

impl Engine {
    /// What guards want to know before they judge something said or seen, of sources that take time to ask.
    pub fn needs_of_text(&self, at: Timestamp, subject: Subject<'_>, sources: &FactSources) -> Asked {
        if !sources.any_of(self.pipeline.sources(subject.hook())) || self.frozen(&subject).is_some() {
            return Asked::default();
        }
        let Some(context) = self.context() else { return Asked::default() };
        let pending = Pending { at, subject, grant: None };
        let reading = self.reading(pending);
        let requests = sources.answerable(self.pipeline.needs(&context.with_reading(&reading), &pending));
        Asked::of(requests, || self.shown(&subject))
    }

    /// What guards want to know before they judge the outcome of an action, of sources that take time to ask.
    pub fn needs_of_outcome(&self, at: Timestamp, reported: Reported<'_>, sources: &FactSources) -> Asked {
        let Some(text) = reported.content else { return Asked::default() };
        let tool = self.state.awaits_outcome(reported.action).and_then(|open| open.tool.clone());
        let label = tool.map_or(Label::Unknown, Label::Tool);
        self.needs_of_text(
            at,
            Subject::Observation { action: Some(reported.action), text, label: &label, tainted: None },
            sources,
        )
    }

    /// The same for what a server says that answers no action.
    pub fn needs_of_told(&self, at: Timestamp, server: &str, text: &str, sources: &FactSources) -> Asked {
        let label = Label::Server(server_name(server));
        let subject = Subject::Observation { action: None, text, label: &label, tainted: None };
        self.needs_of_text(at, subject, sources)
    }

    /// The user or the operator says something.
    pub fn input(
        &self,
        env: &mut dyn Env,
        text: &str,
        label: &Label,
        reach: Reach,
        sources: &dyn Sources,
    ) -> (Batch, TextJudgement) {
        let mut batch = self.builder(env);
        let actor = if *label == Label::User { Actor::user() } else { Actor::gate() };
        let payload = ("text", TEXT, text.as_bytes().to_vec());
        let said = batch.push_with(actor, None, EventBody::Input { label: label.clone() }, [Some(payload)]);
        let judgement = self.judge_text(&mut batch, Subject::Input { text, label }, said, reach, sources);
        (batch.finish(), judgement)
    }

    /// The user says yes to the action that the latest question was about. The words are judged like all others; where they
    /// do not pass, nothing is confirmed. `None` where this action is not what the run waits for, or where these are not
    /// the user's words.
    pub fn confirmation(
        &self,
        env: &mut dyn Env,
        action: ActionId,
        (text, label): (&str, &Label),
        sources: &dyn Sources,
    ) -> Option<(Batch, TextJudgement)> {
        let asked = self.state.confirmations().asked_about(action)?;
        if *label != Label::User || !matches!(self.state.phase(), Phase::Clarifying { .. }) {
            return None;
        }
        let mut batch = self.builder(env);
        let payload = ("text", TEXT, text.as_bytes().to_vec());
        let body = EventBody::Input { label: label.clone() };
        let said = batch.push_with(Actor::user(), None, body, [Some(payload)]);
        let subject = Subject::Input { text, label };
        let mut judgement = self.judge_text(&mut batch, subject, said, Reach::Withhold, sources);
        if judgement.enforced.proceeds() {
            let body = EventBody::Evidence { name: CONFIRMED.to_owned(), digest: asked };
            judgement.seq = batch.push(Actor::user(), Some(said), body);
        }
        Some((batch.finish(), judgement))
    }

    /// That the user confirmed the action that the latest question is about, if there is one: for who repeats a record,
    /// where actions have other digests.
    pub fn confirmed(&self, env: &mut dyn Env) -> Option<Batch> {
        let digest = self.state.confirmations().asked()?;
        let mut batch = self.builder(env);
        batch.push(Actor::user(), None, EventBody::Evidence { name: CONFIRMED.to_owned(), digest });
        Some(batch.finish())
    }

    /// The agent replies. `documents` are those that were handed over with the reply, as JSON. A reply that waits for a
    /// person meets its approval again.
    pub fn output(
        &self,
        env: &mut dyn Env,
        text: &str,
        documents: Option<&str>,
        reach: Reach,
        sources: &dyn Sources,
    ) -> (Batch, TextJudgement) {
        let mut batch = self.builder(env);
        if let Some(judgement) = self.meet_reply(&mut batch, Reply { text, documents, reach }, sources) {
            return (batch.finish(), judgement);
        }
        let payload = ("text", TEXT, text.as_bytes().to_vec());
        let actor = Actor::agent(self.principal());
        let given = documents.map(|documents| ("documents", JSON, documents.as_bytes().to_vec()));
        let said = batch.push_with(actor, None, EventBody::Output {}, [Some(payload), given]);
        let subject = Subject::Output { text, documents };
        let judgement = self.judge_text(&mut batch, subject, said, reach, sources);
        (batch.finish(), judgement)
    }

    /// What became of an action, and what the agent would see of it.
    pub fn outcome(
        &self,
        env: &mut dyn Env,
        reported: Reported<'_>,
        sources: &dyn Sources,
    ) -> (Batch, Option<TextJudgement>) {
        let Reported { action, status, content, reach, teller } = reported;
        let open = self.state.awaits_outcome(action);
        let cause = open.map(|open| open.last_event);
        let tool = open.and_then(|open| open.tool.clone());
        let mut batch = self.builder(env);
        let actor = match (teller, tool.as_deref()) {
            (Teller::Surface, Some(tool)) => Actor::tool(tool),
            (Teller::Surface, None) => Actor::agent(self.principal()),
            (Teller::Gate, _) => Actor::gate(),
        };
        let anew = self.written_anew(action, status, sources);
        let body = EventBody::Outcome { action, status };
        let outcome = batch.push_tainted(actor.clone(), cause, body, anew);
        let judgement = content.map(|content| {
            let label = tool.map_or(Label::Unknown, Label::Tool);
            let tainted = self.tainted(action, content, sources);
            let body = EventBody::Observation {
                action: Some(action),
                label: label.clone(),
                tainted: tainted.clone(),
            };
            let payload = ("content", TEXT, content.as_bytes().to_vec());
            let seen = batch.push_with(actor, Some(outcome), body, [Some(payload)]);
            let tainted = tainted.as_ref();
            let subject =
                Subject::Observation { action: Some(action), text: content, label: &label, tainted };
            self.judge_text(&mut batch, subject, seen, reach, sources)
        });
        self.push_stale(&mut batch, action, None, outcome);
        (batch.finish(), judgement)
    }

    /// A server says something that is not the answer to an action: contents of a resource, a prompt, a notification,
    /// a question. `server` is the command that started it.
    pub fn told(
        &self,
        env: &mut dyn Env,
        server: &str,
        content: &str,
        reach: Reach,
        sources: &dyn Sources,
    ) -> (Batch, TextJudgement) {
        let mut batch = self.builder(env);
        let name = server_name(server);
        let tainted = self.tainted_of(&name, content, sources);
        let (actor, label) = (Actor::server(&name), Label::Server(name));
        let payload = ("content", TEXT, content.as_bytes().to_vec());
        let body = EventBody::Observation { action: None, label: label.clone(), tainted: tainted.clone() };
        let seen = batch.push_with(actor, None, body, [Some(payload)]);
        let tainted = tainted.as_ref();
        let subject = Subject::Observation { action: None, text: content, label: &label, tainted };
        let judgement = self.judge_text(&mut batch, subject, seen, reach, sources);
        (batch.finish(), judgement)
    }

    /// Judges a text that was recorded as event `said`.
    pub(super) fn judge_text(
        &self,
        batch: &mut BatchBuilder<'_>,
        subject: Subject<'_>,
        said: u64,
        reach: Reach,
        sources: &dyn Sources,
    ) -> TextJudgement {
        let pending = Pending { at: batch.at(), subject, grant: None };
        let (facts, decision, reading) = self.decide_text(&pending, sources);
        let verification = reading.as_ref().and_then(|reading| reading.verification.clone());
        let verification = verification.map(|verification| verification.of_event(said));
        batch.keep_reading(said, reading);
        if let Some(verification) = &verification {
            self.verified(batch, said, verification);
        }
        let (decision, held) = self.held_text(subject, reach, decision);
        let asked = if held { Enforced::Held } else { self.enforced_text(&decision) };
        let enforced = reach.done(asked);
        // What was asked outside is part of the record, whatever was found.
        let mut approval = None;
        if !decision.findings.is_empty() || !facts.records().is_empty() {
            let mut last = said;
            if let Some(context) = self.context() {
                let record = decision.record(&context, &pending, &facts);
                last = batch.push(Actor::gate(), Some(said), EventBody::Verdict(record));
            }
            let body = EventBody::Enforcement { action: None, enforced, call: None, contained: None };
            let enforcement = batch.push(Actor::gate(), Some(last), body);
            if let (Enforced::Held, Subject::Output { text, documents }) = (enforced, subject) {
                let reply = Reply { text, documents, reach };
                approval = Some(self.ask_about_reply(batch, reply, said, enforcement));
            }
        }
        let shown = shown_text(&decision, asked, enforced);
        let stopped = !asked.proceeds() || !enforced.proceeds();
        let denial = stopped.then(|| Denial { approval, ..explain_text(self.run, &subject, &decision) });
        TextJudgement { decision, enforced, shown, denial, approval, verification, seq: batch.seq() }
    }

    /// Whether a text is held for a person: a reply under review that its surface can keep back. Unless too many wait.
    fn held_text(&self, subject: Subject<'_>, reach: Reach, decision: Decision) -> (Decision, bool) {
        let reply = matches!(subject, Subject::Output { .. }) && reach != Reach::Tell;
        let observed = self.state.mode() == Mode::Observe && !self.binds_always(&decision);
        if !reply || observed {
            return (decision, false);
        }
        let decision = self.unless_too_many_wait(decision);
        let held = decision.verdict == Verdict::Review;
        (decision, held)
    }

    /// Records what the checks say of a reply: the whole as a payload, which can be erased, and of the answers alone a
    /// digest. The format is `specs/verification.md`.
    fn verified(&self, batch: &mut BatchBuilder<'_>, reply: u64, verification: &Verification) {
        let mut digest = DigestBuilder::new("portcullis/verification/v1").part(&reply.to_be_bytes());
        for result in &verification.checks {
            digest = digest.part(format!("{} {}", result.check.check_type(), result.status).as_bytes());
        }
        let body = EventBody::Evidence { name: VERIFICATION.to_owned(), digest: digest.finish() };
        let results = json!({
            "v": VERIFICATION_VERSION, "reply": reply,
            "documents": verification.documents, "checks": verification.checks,
        });
        let payload = ("results", JSON, results.to_string().into_bytes());
        batch.push_with(Actor::gate(), Some(reply), body, [Some(payload)]);
    }

    pub(super) fn decide_text(
        &self,
        pending: &Pending<'_>,
        sources: &dyn Sources,
    ) -> (Facts, Decision, Option<RunReading>) {
        if let Some(denial) = self.frozen(&pending.subject) {
            return (Facts::none(), denial, None);
        }
        let reading = self.reading(*pending);
        let Some(context) = self.context() else {
            let message = format!("the bundle no longer has the runtime policy `{}`", self.state.policy());
            return (Facts::none(), denied(reserved::LIMIT, message), None);
        };
        let context = context.with_reading(&reading);
        let facts = self.gather(&context, pending, sources);
        let decision = self.pipeline.decide(&context, pending, &facts);
        (facts, decision, reading.into_reading())
    }

    /// As for actions, but nothing is held: see [`Self::held_text`].
    pub(super) fn enforced_text(&self, decision: &Decision) -> Enforced {
        match decision.verdict {
            Verdict::Allow | Verdict::Warn => Enforced::Executed,
            _ if self.state.mode() == Mode::Observe && !self.binds_always(decision) => Enforced::LetPass,
            Verdict::Modify if decision.modified.is_some() => Enforced::Replaced,
            Verdict::Modify => Enforced::Executed,
            Verdict::Review | Verdict::Clarify | Verdict::Pause | Verdict::Deny | Verdict::Halt => {
                Enforced::Withheld
            }
        }
    }
}

/// What its reader gets in place of a text, where stretches of it are replaced.
pub(super) fn shown_text(decision: &Decision, asked: Enforced, enforced: Enforced) -> Option<String> {
    match (&decision.modified, asked) {
        (Some(Value::String(text)), Enforced::Replaced) if enforced != Enforced::Withheld => {
            Some(text.clone())
        }
        _ => None,
    }
}
