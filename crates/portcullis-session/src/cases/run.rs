//! Runs Markdown tests against a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{GrantScope, ListedTool, OutcomeStatus, Parent};
use portcullis_core::id::{ApprovalId, Digest, RunId};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::observed::Observed;
use portcullis_core::pipeline::Decision;
use portcullis_core::principal::Principal;
use portcullis_core::verdict::Verdict;
use portcullis_guards::contracts::answer::{ContractAnswer, Rewritten, Said};

use super::parse::{Case, CaseFile, Expectation, Step, StepKind};
use crate::dry::{DryOpening, DryRun, TRACE};
use crate::engine::{Answer, Judgement, Proposal, ReportWhat, ReportedOf, Says, TextJudgement};
use crate::policy::{self, Pipeline};

/// What running a file showed.
#[derive(Debug, Default)]
pub struct Report {
    /// Runs whose every expectation held.
    pub passed: usize,
    /// Names of the runs that failed.
    pub failed: BTreeSet<String>,
    /// What did not hold, or could not be run.
    pub mismatches: Vec<Mismatch>,
    /// The rules that were a headline, with how often: which rules the tests exercise.
    pub rules: BTreeMap<String, usize>,
    /// The access policies that determined a finding, whether it was the headline or not.
    pub policies: BTreeSet<String>,
    /// Steps that were expected to be allowed and were.
    pub allowed: usize,
}

/// An expectation that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the run.
    pub case: String,
    /// Line in the file; 0 when it concerns the whole run.
    pub line: usize,
    /// The expected and the actual answer.
    pub message: String,
}

/// Runs every case of a file. `base` are the files of the bundle that the cases' blocks are laid over.
pub fn run_file(file: &CaseFile, base: &BTreeMap<String, Vec<u8>>, pipeline: &Arc<Pipeline>) -> Report {
    let mut report = Report::default();
    // Most cases of a file are about one bundle, and loading it takes longer than all else.
    let mut last: Option<Arc<Bundle>> = None;
    for case in &file.cases {
        let before = report.mismatches.len();
        let mut files = base.clone();
        files.extend(case.files.clone());
        let digest = Bundle::digest_of(&files);
        let bundle = match last.take().filter(|last| last.digest() == digest) {
            Some(last) => Ok(last),
            None => policy::load(&files).map(Arc::new),
        };
        match bundle {
            Ok(bundle) => {
                run_case(case, &bundle, pipeline, &mut report);
                last = Some(bundle);
            }
            Err(diagnostics) => report.mismatches.extend(diagnostics.iter().map(|diagnostic| Mismatch {
                case: case.name.clone(),
                line: 0,
                message: format!("cannot load the bundle: {diagnostic}"),
            })),
        }
        if report.mismatches.len() == before {
            report.passed += 1;
        } else {
            report.failed.insert(case.name.clone());
        }
    }
    report
}

struct Runner<'r> {
    case: &'r Case,
    dry: DryRun,
    report: &'r mut Report,
    planned: Option<String>,
    confidence: Option<f64>,
    last: Option<Judgement>,
    held: Option<(ApprovalId, String)>,
    directory: Option<String>,
    /// What was shown of the last result or reply.
    seen: Option<String>,
    /// What judges and models say of the next one.
    said: Option<ContractAnswer>,
}

fn run_case(case: &Case, bundle: &Arc<Bundle>, pipeline: &Arc<Pipeline>, report: &mut Report) {
    let policy = case.steps.iter().find_map(|step| match &step.kind {
        StepKind::Policy(name) => Some(name.as_str()),
        _ => None,
    });
    let policy = policy.unwrap_or(bundle.default_policy());
    let principal = case.steps.iter().find_map(|step| match &step.kind {
        StepKind::Principal(principal) => Some(principal.clone()),
        _ => None,
    });
    let place = case.steps.iter().find_map(|step| match &step.kind {
        StepKind::Place(place) => Some(place.clone()),
        _ => None,
    });
    let principal = principal.unwrap_or_else(|| Principal::named("recorded"));
    let surface = case.steps.iter().find_map(|step| match &step.kind {
        StepKind::Surface(name) => Some(name.as_str()),
        _ => None,
    });
    let directory = place.as_ref().and_then(|place| place.workspace.clone());
    let surface = surface.unwrap_or(TRACE);
    let below = case.steps.iter().any(|step| matches!(step.kind, StepKind::Parent(_)));
    let parent = below.then(|| Parent {
        run: RunId::from_bytes([1; 16]),
        seq: 1,
        link: Digest::from_bytes([0; 32]),
        depth: 1,
        labels: LabelSet::default(),
    });
    let opening = DryOpening { policy, principal, place, surface, parent };
    match DryRun::open_on(Arc::clone(bundle), Arc::clone(pipeline), opening) {
        Ok(dry) => {
            let mut runner = Runner {
                case,
                dry: dry.with_silent_engines(),
                report,
                planned: None,
                confidence: None,
                last: None,
                held: None,
                directory,
                seen: None,
                said: None,
            };
            for step in &case.steps {
                runner.step(step);
            }
        }
        Err(unknown) => {
            let message = unknown.to_string();
            report.mismatches.push(Mismatch { case: case.name.clone(), line: 0, message });
        }
    }
}

impl Runner<'_> {
    fn complain(&mut self, line: usize, message: impl Into<String>) {
        self.report.mismatches.push(Mismatch { case: self.case.name.clone(), line, message: message.into() });
    }

    fn step(&mut self, step: &Step) {
        if !step.kind.leaves_call_open() {
            self.finish_last(OutcomeStatus::Ok, String::new());
        }
        match &step.kind {
            StepKind::Directory(folder) => self.directory = Some(folder.clone()),
            StepKind::Time(at) => self.dry.not_before(*at),
            StepKind::Policy(_) | StepKind::Principal(_) | StepKind::Place(_) | StepKind::Surface(_) => {}
            StepKind::Judged(contract, holds) => self.judged(contract, *holds),
            StepKind::Rewritten(text) => self.rewritten(text),
            StepKind::Changed(tool) => self.changed(tool),
            StepKind::Accepted(tool) => self.dry.tool_accepted("tester", tool, changed_digest()),
            StepKind::Input(text) => {
                let judgement = self.dry.input(text, Label::User);
                self.check(step, &judgement.decision);
            }
            StepKind::Output(text) => {
                self.say();
                let judgement = self.dry.output(text);
                self.check(step, &judgement.decision);
                self.seen = shown(judgement, text);
            }
            StepKind::Plan(text) => self.planned = Some(text.clone()),
            StepKind::Confidence(value) => self.confidence = Some(*value),
            StepKind::Call { tool, arguments } => {
                self.propose(step, Some(tool.clone()), arguments.clone());
            }
            StepKind::Think(text) => {
                self.planned = Some(text.clone());
                self.propose(step, None, serde_json::Value::Object(serde_json::Map::new()));
            }
            StepKind::Result(status, content) => {
                if self.last.is_none() {
                    self.complain(step.line, "there is no executed call for this result");
                }
                self.say();
                if let Some(judgement) = self.finish_last(*status, content.clone()) {
                    self.check(step, &judgement.decision);
                    self.seen = shown(judgement, content);
                }
            }
            StepKind::Sees(text) if self.seen.as_ref() == Some(text) => {}
            StepKind::Sees(_) => {
                let message = match &self.seen {
                    Some(seen) => format!("{seen:?} is shown"),
                    None => "nothing is shown".to_owned(),
                };
                self.complain(step.line, message);
            }
            StepKind::Grant(tool) => self.answer(step.line, Some(*tool)),
            StepKind::Refuse => self.answer(step.line, None),
            StepKind::Control(control) => self.dry.control(*control, None),
            StepKind::Used(used) => self.dry.used_elsewhere(*used),
            StepKind::Engine(name, answer) => self.dry.engine_says(name, answer.clone()),
            StepKind::Opinion(opinion) => self.dry.model_says(*opinion),
            StepKind::Elsewhere { tool, arguments } => self.dry.called_elsewhere(tool, arguments.clone()),
            StepKind::Parent(answer) => self.dry.parent_says(answer.clone()),
            StepKind::Observed(observed) => self.observed(step, observed),
            StepKind::Contained(level) => self.dry.contains_at(*level),
            StepKind::Unshown(title, missing) => self.dry.work_comes_to(title, missing),
            StepKind::Children(used) => {
                self.dry.open_child(RunId::from_bytes([2; 16]));
                self.dry.used_below(*used);
            }
        }
    }

    /// What the server says of a tool is not what was accepted.
    fn changed(&mut self, tool: &str) {
        let (before, after) = (Digest::from_bytes([0; 32]), changed_digest());
        let listed = ListedTool {
            name: tool.to_owned(),
            digest: after,
            read_only_hint: None,
            destructive_hint: None,
            changed_from: Some(before),
        };
        self.dry.tools_listed("tester", None, vec![listed]);
    }

    fn observed(&mut self, step: &Step, observed: &Observed) {
        let contained = self.last.as_ref().and_then(|last| Some((last.action.id, last.contain.clone()?)));
        let Some((action, contain)) = contained else {
            return self.complain(step.line, "the last call does not run contained");
        };
        let observed = Observed { profile: contain.profile.name.clone(), ..observed.clone() };
        match self.dry.observed(ReportedOf::Action(action), &contain, ReportWhat::Ended(Box::new(observed))) {
            Ok(judgement) => self.check(step, &judgement.decision),
            Err(error) => self.complain(step.line, error.to_string()),
        }
    }

    fn judged(&mut self, contract: &str, holds: Option<bool>) {
        let said = Said { holds, why: "as the test says".to_owned() };
        self.said.get_or_insert_default().judged.insert(contract.to_owned(), said);
    }

    /// On the rewritten text every judge agrees.
    fn rewritten(&mut self, text: &str) {
        let said = self.said.get_or_insert_default();
        let agrees = |(contract, said): (&String, &Said)| {
            (contract.clone(), Said { holds: Some(true), ..said.clone() })
        };
        let judged = said.judged.iter().map(agrees).collect();
        said.rewritten = Some(Rewritten { text: text.to_owned(), judged });
    }

    fn say(&mut self) {
        if let Some(said) = self.said.take() {
            self.dry.say_of_contracts(said);
        }
    }

    fn propose(&mut self, step: &Step, tool: Option<String>, arguments: serde_json::Value) {
        let planned = self.planned.take();
        let confidence = self.confidence.take();
        let (name, directory) = (tool.clone().unwrap_or_default(), self.directory.clone());
        let judgement = self.dry.propose(Proposal {
            tool,
            arguments,
            planned,
            directory,
            confidence,
            ..Proposal::default()
        });
        self.check(step, &judgement.decision);
        if let Some(approval) = judgement.approval {
            self.held = Some((approval, name));
        }
        if judgement.enforced.proceeds() && judgement.action.is_call() {
            self.last = Some(judgement);
        }
    }

    /// Holds a decision to what the step expects, and counts what it rests on.
    fn check(&mut self, step: &Step, decision: &Decision) {
        for finding in &decision.findings {
            self.report.policies.extend(finding.policies.iter().cloned());
        }
        if let Some(headline) = decision.headline() {
            *self.report.rules.entry(headline.rule.to_string()).or_default() += 1;
        } else if step.expect.as_ref().is_some_and(|expect| expect.verdict == Verdict::Allow) {
            self.report.allowed += 1;
        }
        if let Some(expect) = &step.expect
            && let Err(message) = compare(expect, decision)
        {
            self.complain(step.line, message);
        }
    }

    fn finish_last(&mut self, status: OutcomeStatus, content: String) -> Option<TextJudgement> {
        let last = self.last.take()?;
        self.dry.outcome(last.action.id, status, Some(content))
    }

    /// Refuses the call that was held last or, with `Some`, grants it; with `true`, every call of the tool.
    fn answer(&mut self, line: usize, granted: Option<bool>) {
        let Some((approval, name)) = self.held.take() else {
            return self.complain(line, "no call is held");
        };
        let says = match granted {
            Some(false) => Says::grant(GrantScope::Once),
            Some(true) => Says::grant(GrantScope::Tool(name)),
            None => Says::Refuse,
        };
        if let Err(error) = self.dry.answer(approval, Answer::rehearsed(says, "tester")) {
            self.complain(line, error.to_string());
        }
    }
}

/// What is shown of a text, if it is shown.
fn shown(judgement: TextJudgement, text: &str) -> Option<String> {
    judgement.enforced.proceeds().then(|| judgement.shown.unwrap_or_else(|| text.to_owned()))
}

/// What a tool is in a case after it changed.
fn changed_digest() -> Digest {
    Digest::from_bytes([1; 32])
}

fn compare(expect: &Expectation, decision: &Decision) -> Result<(), String> {
    let headline = decision.headline();
    let rule = headline.map(|finding| finding.rule.as_ref());
    let got = || match headline {
        Some(finding) => format!("{} {} ({})", decision.verdict, finding.rule, finding.message),
        None => decision.verdict.to_string(),
    };
    let wanted = expect.rule.as_deref().map_or_else(String::new, |rule| format!(" {rule}"));
    if decision.verdict != expect.verdict || (expect.rule.is_some() && expect.rule.as_deref() != rule) {
        return Err(format!("expected {}{wanted}, got {}", expect.verdict, got()));
    }
    let spans = headline.map(|finding| finding.spans.as_slice()).unwrap_or_default();
    match &expect.at {
        Some(at) if !spans.iter().any(|span| span.pointer == *at) => {
            let places: Vec<&str> = spans.iter().map(|span| span.pointer.as_str()).collect();
            Err(format!("expected a span at {at}, got {}", places.join(", ")))
        }
        _ => Ok(()),
    }
}
