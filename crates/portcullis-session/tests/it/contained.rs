//! What is reported of contained actions and servers: with the ticket and once, judged beside what was predicted, and in
//! a record that verifies.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::aside::{FINDINGS, OBSERVED};
use portcullis_core::bundle::{CONTAIN_SOURCE, built_in_profile, level_answer};
use portcullis_core::event::{
    ClosedState, ConfigChange, ConnectionWord, Enforced, EventBody, ObservedWhat, OutcomeStatus, Place,
};
use portcullis_core::fact::FactAnswer;
use portcullis_core::id::{ActionId, Digest, RunId};
use portcullis_core::observed::{
    Connection, ConnectionVerdict, Ended, FileChange, FileChangeHow, Files, OBSERVED_ENTRIES_MAX, Observed,
    Programs, Refused, Seen,
};
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::profile::Level;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{ExportOptions, OpenOptions, Selection, SqliteEraser, SqliteLedger, Tombstone};
use portcullis_proof::Status;
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{
    Contain, Proposal, REPORT_REFUSED, Reach, Report, ReportError, ReportWhat, ReportedOf, Ticket,
};
use portcullis_session::error::SessionError;
use portcullis_session::facts::{FactSource, FactSources, Question};
use portcullis_session::gate::{Extensions, Gate, Opened, RunRequest};
use portcullis_session::policy;
use serde_json::json;

use crate::events;

const SHELL: &str = "[[tool]]\nname = 'shell'\ntype = 'QUERY_DB'\nside_effecting = false\n\
                     effects = { line = 'shell' }\n";
const POLICY: &str =
    "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB']\nmax_steps = 100\nmax_side_effects = 2\n";
const SERVER: &str = "npx -y files /srv";

/// A machine that reaches a level.
#[derive(Debug)]
struct Reaches(Level);

impl FactSource for Reaches {
    fn name(&self) -> &str {
        CONTAIN_SOURCE
    }

    fn answer<'a>(&'a self, _: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move { level_answer(self.0) })
    }
}

fn gate(folder: &Path, contain: &str) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let main =
        format!("version = 1\n[effects]\nunknown = 'contain'\n[contain]\ndefault = 'project'\n{contain}");
    let files = [("portcullis.toml", main.as_str()), ("tools/t.toml", SHELL), ("policies/p.toml", POLICY)];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
    let sources = FactSources::default().with(Arc::new(Reaches(Level::Process)));
    let extensions = Extensions { pipeline: policy::pipeline(), sources, observers: Vec::new() };
    Gate::extended(Arc::new(ledger), Bundles::new(None, &files).unwrap(), extensions).unwrap()
}

async fn open(gate: &Gate, resume: Option<RunId>) -> Opened {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    let folder = |path: &str| Some(path.to_owned());
    let place = Place { workspace: folder("/home/u/project"), home: folder("/home/u"), gate: None };
    let request = RunRequest { resume, place: Some(place), ..RunRequest::new(identity, "test") };
    gate.open(request).await.unwrap()
}

/// A call of a surface that runs command lines contained.
fn call(tool: &str, arguments: serde_json::Value) -> Proposal {
    Proposal { contains: true, ..crate::call(tool, arguments) }
}

/// A command line that goes ahead, with how it is to be contained.
async fn run(gate: &Gate, opened: &Opened, line: &str) -> (ActionId, Contain) {
    let (_, permit) =
        gate.propose(&opened.run, call("shell", json!({"line": line})), Duration::ZERO).await.unwrap();
    let permit = permit.expect("allowed");
    (permit.action(), permit.contain().expect("contained").clone())
}

fn seen(made: &[&str]) -> Observed {
    let change = |path: &&str| FileChange {
        path: PathBuf::from(path),
        how: FileChangeHow::Made,
        bytes: Some(1),
        digest: Some(Digest::from_bytes([1; 32])),
    };
    Observed {
        level: Level::Process,
        profile: "project".into(),
        ended: Ended::Status(0),
        wall_ms: 12,
        cpu_ms: 3,
        survivors: 0,
        limits: Vec::new(),
        put_back: Vec::new(),
        programs: Programs::default(),
        files: Files { seen: Seen::All, changes: made.iter().map(change).collect() },
        connections: Vec::new(),
        connections_left_out: 0,
        refused: Refused::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

fn report(of: ReportedOf, contain: &Contain, what: ReportWhat) -> Report {
    Report { of, ticket: Some(contain.ticket), profile: contain.profile.digest(), what }
}

fn ended(action: ActionId, contain: &Contain, made: &[&str]) -> Report {
    report(ReportedOf::Action(action), contain, ReportWhat::Ended(Box::new(seen(made))))
}

fn connection(host: &str, verdict: ConnectionVerdict) -> ReportWhat {
    let (host, address) = (host.to_owned(), None);
    ReportWhat::Connection(Connection { host, port: 443, address, sent: 5, received: 7, verdict })
}

fn is_valid(gate: &Gate, run: RunId) {
    let mut export = Vec::new();
    let options = ExportOptions { payloads: true };
    gate.ledger().read(|reader| reader.export_run(run, &mut export, options)).unwrap();
    let trust = gate.ledger().read(|reader| reader.trust_text(&[run])).unwrap();
    let trust = portcullis_proof::Trust::parse(&trust).unwrap();
    let verified = portcullis_proof::verify(export.as_slice(), Some(&trust)).unwrap();
    assert_eq!(verified.status, Status::Valid, "{verified}");
}

fn refused(result: Result<(u64, portcullis_session::engine::TextJudgement), SessionError>) -> ReportError {
    match result.unwrap_err() {
        SessionError::Report(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_needs_the_ticket_of_its_permit_and_is_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "");
    let opened = open(&gate, None).await;
    let (action, contain) = run(&gate, &opened, "make").await;
    let (other, other_contain) = run(&gate, &opened, "make check").await;
    let whole = ended(action, &contain, &["/home/u/project/app"]);

    let unknown = ActionId::from_bytes([9; 16]);
    let stranger = Ticket::from_text(&"0".repeat(64)).unwrap();
    for (report, why) in [
        (Report { ticket: None, ..whole.clone() }, "no ticket"),
        (Report { ticket: Some(stranger), ..whole.clone() }, "not that of"),
        (Report { ticket: Some(other_contain.ticket), ..whole.clone() }, "not that of"),
        (Report { of: ReportedOf::Action(unknown), ..whole.clone() }, "not permitted to run contained"),
        (
            Report { of: ReportedOf::Server("files".into()), ..whole.clone() },
            "not permitted to run contained",
        ),
        (Report { profile: Digest::from_bytes([0; 32]), ..whole.clone() }, "ran under another"),
    ] {
        let error = refused(opened.run.observed(report).await).to_string();
        assert!(error.contains(why), "{error}");
    }
    let (_, judged) = opened.run.observed(whole.clone()).await.unwrap();
    assert_eq!(judged.decision.verdict, Verdict::Allow);
    assert!(matches!(refused(opened.run.observed(whole).await), ReportError::TicketUsed(_)));
    // A restart of the gate's process forgets none of it.
    opened.run.outcome(other, OutcomeStatus::Unknown, None, Reach::Replace).await.unwrap();
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let resumed = open(&gate, Some(opened.run.id())).await;
    let again = refused(resumed.run.observed(ended(action, &contain, &[])).await);
    assert!(matches!(again, ReportError::TicketUsed(_)));
    resumed.run.observed(ended(other, &other_contain, &[])).await.unwrap();
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();

    let events = events(&gate, &opened);
    let refusals = events
        .iter()
        .filter(|event| matches!(&event.body, EventBody::Evidence { name, .. } if name == REPORT_REFUSED));
    assert_eq!(refusals.count(), 8, "each attempt is in the record");
    let permitted = events.iter().find(|event| {
        matches!(&event.body, EventBody::Enforcement { action: Some(this), contained: Some(contained), .. }
            if *this == action && contained.profile == "project" && contained.digest == contain.profile.digest())
    });
    let observed = events.iter().find(|event| matches!(event.body, EventBody::Observed(_))).unwrap();
    assert_eq!(observed.cause, Some(permitted.unwrap().seq));
    assert!(observed.payloads.contains_key(OBSERVED));
    let lines: String =
        events.iter().map(|event| String::from_utf8(event.to_line().unwrap()).unwrap()).collect();
    assert!(!lines.contains(&contain.ticket.to_text()), "a ticket in the record is anybody's");
    assert!(!format!("{contain:?}").contains(&contain.ticket.to_text()), "nor in a log");
    is_valid(&gate, opened.run.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_contained_gets_no_ticket_and_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "[contain.commands]\nls = 'none'\n");
    let opened = open(&gate, None).await;
    for (tool, goes_ahead) in [("shell", true), ("unheard_of", false)] {
        let proposal = call(tool, json!({"line": "ls"}));
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        assert_eq!(permit.is_some(), goes_ahead, "{tool}");
        assert!(judgement.contain.is_none() && permit.is_none_or(|permit| permit.contain().is_none()));
        let (_, contain) = run(&gate, &opened, &format!("make {tool}")).await;
        let error = refused(opened.run.observed(ended(judgement.action.id, &contain, &[])).await);
        assert!(matches!(error, ReportError::NotContained(_)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_was_predicted_is_a_verdict_and_keeps_the_result_back() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "more = 'deny'\n");
    let opened = open(&gate, None).await;
    let (action, contain) = run(&gate, &opened, "cp a /srv/site/b").await;
    let made = ["/srv/site/b", "/home/u/project/target/x", "/home/u/bin/tool"];
    let (seq, judged) = opened.run.observed(ended(action, &contain, &made)).await.unwrap();
    assert_eq!((judged.decision.verdict, judged.enforced), (Verdict::Deny, Enforced::LetPass));
    let [finding] = judged.decision.findings.as_slice() else { panic!("{judged:?}") };
    assert_eq!(finding.rule, "contain/more/outside");
    assert_eq!(finding.resources, ["path /home/u/bin/tool"]);
    let content = Some("copied".to_owned());
    let (_, result) = opened.run.outcome(action, OutcomeStatus::Ok, content, Reach::Replace).await.unwrap();
    let result = result.unwrap();
    assert_eq!((result.decision.verdict, result.enforced), (Verdict::Deny, Enforced::Withheld));
    let message = &result.decision.headline().unwrap().message;
    let observed =
        events(&gate, &opened).into_iter().find(|event| matches!(event.body, EventBody::Observed(_)));
    assert!(message.ends_with(&format!("see event {}", observed.unwrap().seq)), "{message}");
    assert!(opened.run.with_state(|state, _| state.contained().more_by("shell")).await == 2);
    assert!(judged.seq == seq);
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    is_valid(&gate, opened.run.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn predictions_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "");
    let opened = open(&gate, None).await;
    let (action, contain) = run(&gate, &opened, "cp a /srv/site/b").await;
    let (lost, of_lost) = run(&gate, &opened, "cp a /srv/site/c").await;
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let resumed = open(&gate, Some(opened.run.id())).await;
    for (action, contain, made, verdict) in
        [(action, contain, "/srv/site/b", Verdict::Allow), (lost, of_lost, "/srv/site/b", Verdict::Warn)]
    {
        let (_, judged) = resumed.run.observed(ended(action, &contain, &[made])).await.unwrap();
        assert_eq!(judged.decision.verdict, verdict);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_report_is_cut_and_says_so_and_what_matters_stays() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "");
    let opened = open(&gate, None).await;
    let (action, contain) = run(&gate, &opened, "make").await;
    let files = OBSERVED_ENTRIES_MAX + 100;
    let mut made: Vec<String> = (0..files).map(|file| format!("/home/u/project/out/{file}")).collect();
    made.push("/srv/planted".into());
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let (_, judged) = opened.run.observed(ended(action, &contain, &made)).await.unwrap();
    assert_eq!(judged.decision.headline().unwrap().rule, "contain/more/outside");
    let event = events(&gate, &opened).into_iter().find(|event| matches!(event.body, EventBody::Observed(_)));
    let event = event.unwrap();
    let EventBody::Observed(record) = &event.body else { panic!("{event:?}") };
    let ObservedWhat::Ended(ended) = &record.what else { panic!("{record:?}") };
    assert_eq!((ended.counts.files, ended.cut.files), (files as u64 + 1, 101));
    let commitment = event.payloads[OBSERVED].commitment;
    let payload = gate.ledger().read(|reader| reader.payload(opened.run.id(), commitment)).unwrap().unwrap();
    let kept: Observed = serde_json::from_slice(payload.bytes()).unwrap();
    assert_eq!(kept.files.changes.len(), OBSERVED_ENTRIES_MAX);
    assert_eq!(kept.files.changes[0].path, PathBuf::from("/srv/planted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_report_connections_as_they_happen() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "");
    let opened = open(&gate, None).await;
    let profile = built_in_profile("read-only").unwrap();
    let contain = opened.run.contain_server(SERVER, profile).await.unwrap();
    let of = || ReportedOf::Server(SERVER.into());
    for (host, verdict, found) in [
        ("docs.rs", ConnectionVerdict::Permitted, Verdict::Allow),
        ("collector.example", ConnectionVerdict::Refused("not named".into()), Verdict::Warn),
    ] {
        let what = connection(host, verdict);
        let (_, judged) = opened.run.observed(report(of(), &contain, what)).await.unwrap();
        assert_eq!(judged.decision.verdict, found, "{host}");
    }
    let what = ReportWhat::Ended(Box::new(seen(&[])));
    opened.run.observed(report(of(), &contain, what)).await.unwrap();
    let events = events(&gate, &opened);
    let contained = events.iter().filter(|event| {
        matches!(&event.body, EventBody::Config(ConfigChange::ServerContained { server, .. }) if server == SERVER)
    });
    assert_eq!(contained.count(), 1);
    let words: Vec<ConnectionWord> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Observed(record) => match &record.what {
                ObservedWhat::Connection(connection) => Some(connection.verdict),
                ObservedWhat::Ended(_) => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(words, [ConnectionWord::Permitted, ConnectionWord::Refused]);
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    is_valid(&gate, opened.run.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_of_an_action_is_erased_with_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "");
    let opened = open(&gate, None).await;
    let (action, contain) = run(&gate, &opened, "make mallory-7731").await;
    opened.run.observed(ended(action, &contain, &["/srv/mallory-7731"])).await.unwrap();
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let run = opened.run.id();
    let commitments: Vec<_> = events(&gate, &opened)
        .iter()
        .flat_map(|event| {
            [OBSERVED, FINDINGS].map(|name| event.payloads.get(name).map(|named| named.commitment))
        })
        .flatten()
        .collect();
    assert_eq!(commitments.len(), 2, "the report, and what was found in it");
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "ann".into(), reason: None };
    let selection = Selection { run: Some(run), name: Some("arguments".into()), ..Selection::default() };
    SqliteEraser::open(&folder.path().join("ledger")).unwrap().erase(&selection, &tombstone).unwrap();
    for commitment in commitments {
        let left = gate.ledger().read(|reader| reader.payload(run, commitment)).unwrap();
        assert!(left.is_none_or(|left| left.bytes().is_empty()));
    }
    is_valid(&gate, run);
}
