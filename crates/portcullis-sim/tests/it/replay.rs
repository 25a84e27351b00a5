//! Replay: exports come to the verdicts that were recorded, and traces to those of a live run.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use portcullis_core::event::GrantScope;
use portcullis_core::fact::FactAnswer;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{ExportOptions, OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Edit, Lasts, Reach, Says};
use portcullis_session::facts::{FactSource, FactSources, Question};
use portcullis_session::gate::{Extensions, Gate, RunRequest};
use portcullis_session::shipped;
use portcullis_sim::replay::{self, Item, Outcome, ReplayError, Row, Source, Summary, UNREADABLE_ARGUMENTS};
use portcullis_sim::simulator::{Options, simulate};
use serde_json::json;

type Files = BTreeMap<String, Vec<u8>>;

fn judge(source: &Source, options: &replay::Options) -> Result<(Vec<Row>, Summary), ReplayError> {
    judge_under(&shipped::default_bundle(), source, options)
}

fn judge_under(
    files: &Files,
    source: &Source,
    options: &replay::Options,
) -> Result<(Vec<Row>, Summary), ReplayError> {
    let bundle = Arc::new(portcullis_session::policy::load(files).unwrap());
    let mut rows = Vec::new();
    let mut sink = |item: Item<'_>| {
        if let Item::Decision(row) = item {
            rows.push(row.clone());
        }
        ControlFlow::Continue(())
    };
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let summary = replay::replay(source, &bundle, &pipeline, options, &mut sink)?;
    Ok((rows, summary))
}

fn judge_text(text: &str) -> Vec<Row> {
    judge(&Source::memory(text.as_bytes().to_vec()), &replay::Options::default()).unwrap().0
}

async fn export(folder: &Path, plan: &str, policy: &str, options: Options, payloads: bool) -> Vec<u8> {
    export_under(&shipped::default_bundle(), folder, plan, policy, options, payloads).await
}

async fn export_under(
    files: &Files,
    folder: &Path,
    plan: &str,
    policy: &str,
    options: Options,
    payloads: bool,
) -> Vec<u8> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, files).unwrap();
    let gate = Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles);
    let simulation = simulate(&gate, plan, policy, &folder.join("tools"), options).await.unwrap();
    let mut export = Vec::new();
    gate.ledger()
        .read(|reader| reader.export_run(simulation.run_id, &mut export, ExportOptions { payloads }))
        .unwrap();
    export
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_plan_comes_to_the_recorded_verdicts() {
    let bundle = portcullis_session::policy::load(&shipped::default_bundle()).unwrap();
    for plan in &bundle.plans {
        for policy in bundle.policies() {
            let folder = tempfile::tempdir().unwrap();
            let options = Options { go_on: true, approve: true };
            let bytes = export(folder.path(), &plan.name, &policy.name, options, true).await;
            let (rows, summary) = judge(&Source::memory(bytes), &replay::Options::default()).unwrap();
            assert!(rows.len() >= plan.steps.len(), "{}: {rows:?}", plan.name);
            assert_eq!((summary.changed, summary.not_judged), (0, 0), "{}: {rows:?}", plan.name);
            assert_eq!(summary.policies.iter().collect::<Vec<_>>(), [&policy.name]);
        }
    }
}

/// The shipped bundle with approvals for side effects in the permissive policy.
fn with_approvals() -> Files {
    let mut files = shipped::default_bundle();
    let text = String::from_utf8(files["policies/permissive.toml"].clone()).unwrap();
    let asking = text.replace("approval_for_side_effects = false", "approval_for_side_effects = true");
    assert_ne!(asking, text);
    files.insert("policies/permissive.toml".into(), asking.into_bytes());
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn approvals_are_answered_as_they_were() {
    let files = with_approvals();
    let (plan, policy) = ("Handle Data Access Request", "Permissive Exploration Policy");
    for approve in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { go_on: true, approve };
        let bytes = export_under(&files, folder.path(), plan, policy, options, true).await;
        let source = Source::memory(bytes);
        let (rows, summary) = judge_under(&files, &source, &replay::Options::default()).unwrap();
        let reviews = rows.iter().filter(|row| row.verdict == Verdict::Review).count();
        let granted = rows.iter().filter(|row| row.verdict == Verdict::Warn).count();
        assert_eq!((reviews, granted), (3, if approve { 3 } else { 0 }), "{rows:?}");
        assert_eq!(summary.changed, 0, "{rows:?}");
        // Under another bundle nothing is asked for, and the recorded answers find nothing to answer.
        let (rows, summary) = judge(&source, &replay::Options::default()).unwrap();
        assert!(rows.iter().all(|row| row.verdict == Verdict::Allow), "{rows:?}");
        assert_eq!(summary.changed, 3);
    }
}

/// Law 1: what other runs had used up is in the record, so one run's export suffices.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_other_runs_had_used_up_is_recalled_from_the_record() {
    let mut files = shipped::default_bundle();
    let mut text = String::from_utf8(files["policies/strict.toml"].clone()).unwrap();
    text.push_str("\n[policy.principal]\nper = \"day\"\nmax_steps = 3\n");
    files.insert("policies/strict.toml".into(), text.into_bytes());
    let (plan, policy) = ("Calculation Task", "Strict Compliance Policy");
    let folder = tempfile::tempdir().unwrap();
    let options = Options { go_on: true, approve: true };
    let mut denied = Vec::new();
    for _ in 0..2 {
        let _ = std::fs::remove_dir_all(folder.path().join("tools"));
        let bytes = export_under(&files, folder.path(), plan, policy, options, true).await;
        let (rows, summary) =
            judge_under(&files, &Source::memory(bytes), &replay::Options::default()).unwrap();
        assert_eq!((summary.changed, rows.len()), (0, 2), "{rows:?}");
        denied.push(rows.iter().filter(|row| row.verdict == Verdict::Deny).count());
    }
    assert_eq!(denied, [0, 1], "the second run has one of three steps left");
}

/// A judge and a model that follow a script; a replay has neither.
#[derive(Debug)]
struct ScriptedJudge;

impl FactSource for ScriptedJudge {
    fn name(&self) -> &'static str {
        "contracts"
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        let text = question.shown.text.as_deref().unwrap_or_default();
        let said = |holds| json!({"kind": {"holds": holds, "why": "as the script says"}});
        let rewritten = json!({"text": "Tea and coffee for you my dear.", "judged": said(true)});
        let answer = match text {
            "dead" => FactAnswer::Failed("nobody answers".to_owned()),
            "Tea." => FactAnswer::Known(json!({"judged": said(true), "rewritten": rewritten})),
            text => FactAnswer::Known(json!({"judged": said(!text.contains("rude"))})),
        };
        Box::pin(std::future::ready(answer))
    }
}

const REPLIES: &str = r#"
[[contract]]
statement = "Answer with at least 6 words."
on_fail = "repair"
repair = "retry"
surfaces = ["http"]

[[contract]]
statement = "Do not use commas."
on_fail = "repair"

[[contract]]
statement = "Be kind."
name = "kind"
judge = true
"#;

/// Law 1: what judges and models said is in the record, so that replies come to the same verdicts without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn replies_under_contract_come_to_the_recorded_verdicts_without_a_model() {
    let mut files = shipped::default_bundle();
    let mut main = String::from_utf8(files["portcullis.toml"].clone()).unwrap();
    main.push_str("\n[contracts]\nendpoint = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n");
    files.insert("portcullis.toml".into(), main.into_bytes());
    files.insert("contracts/replies.toml".into(), REPLIES.into());
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap();
    let sources = FactSources::default().with(Arc::new(ScriptedJudge));
    let extensions = Extensions { sources, ..Extensions::default() };
    let bundles = Bundles::new(None, &files).unwrap();
    let gate = Gate::extended(Arc::new(ledger), bundles, extensions).unwrap();
    let principal = Principal::named("agent");
    let identity = Identity { kind: CredentialKind::Agent, principal, policy: None, of_this_machine: true };
    let run = gate.open(RunRequest::new(identity, "http")).await.unwrap().run;
    let mut verdicts = Vec::new();
    let (rude, dead) = ("a rude reply of six words now", "dead");
    for text in ["Tea and coffee, for you my dear.", "Tea.", rude, dead] {
        let judged = run.output(text.into(), None, Reach::Replace).await.unwrap();
        verdicts.push(judged.decision.verdict);
        let Some(held) = judged.approval else { continue };
        // A person releases the one, and gives other words for the other, which the judge is asked about.
        let edit = (text == dead).then(|| Edit::Text("six words, kind for a change".into()));
        let says = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit };
        gate.answer(held, run.id(), Answer::rehearsed(says, "ann")).await.unwrap();
        verdicts.push(run.output(text.into(), None, Reach::Replace).await.unwrap().decision.verdict);
    }
    let (review, modify) = (Verdict::Review, Verdict::Modify);
    assert_eq!(verdicts, [modify, modify, review, Verdict::Warn, review, modify]);
    let export = |payloads| {
        let mut export = Vec::new();
        let options = ExportOptions { payloads };
        gate.ledger().read(|reader| reader.export_run(run.id(), &mut export, options)).unwrap();
        Source::memory(export)
    };
    let compared = |source: &Source| {
        let bundle = Arc::new(portcullis_session::policy::load(&files).unwrap());
        let pipeline = Arc::new(portcullis_session::policy::pipeline());
        let mut outcomes = Vec::new();
        let mut sink = |item: Item<'_>| {
            if let Item::Compared(comparison) = item {
                outcomes.push((comparison.recorded.verdict, comparison.outcome.clone()));
            }
            ControlFlow::Continue(())
        };
        replay::replay(source, &bundle, &pipeline, &replay::Options::default(), &mut sink).unwrap();
        outcomes
    };
    let same: Vec<_> = verdicts.iter().map(|verdict| (*verdict, Outcome::Same)).collect();
    assert_eq!(compared(&export(true)), same);
    assert!(compared(&export(false)).iter().all(|(_, outcome)| matches!(outcome, Outcome::Lacks { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_withheld_is_counted_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let plan = "Calculation Task";
    let bytes = export(folder.path(), plan, "Strict Compliance Policy", Options::default(), false).await;
    let (_, summary) = judge(&Source::memory(bytes), &replay::Options::default()).unwrap();
    assert_eq!(summary.not_judged, 1, "the one call; the thinking step has no arguments");
    assert_eq!(summary.changed, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_altered_export_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let bytes =
        export(folder.path(), "Calculation Task", "Strict Compliance Policy", Options::default(), true).await;
    let altered = String::from_utf8(bytes).unwrap().replacen("\"allow\"", "\"alloy\"", 1);
    let result = judge(&Source::memory(altered.into_bytes()), &replay::Options::default());
    assert!(matches!(result, Err(ReplayError::UnsoundExport { .. })), "{result:?}");
}

#[test]
fn one_registry_for_the_whole_file() {
    let offered = r#"{"tools":[{"function":{"name":"fetch","parameters":{"type":"object","required":["url"]}}}],"messages":[]}"#;
    let call = r#"[{"role":"assistant","tool_calls":[{"function":{"name":"fetch","arguments":"{}"}}]}]"#;
    let rows = judge_text(&format!("{call}\n{offered}\n"));
    assert_eq!(rows[0].rule.as_deref(), Some("registry/args-schema"), "a schema that comes later counts");
    let other = offered.replace("[\"url\"]", "[\"page\"]");
    let rows = judge_text(&format!("{call}\n{offered}\n{other}\n"));
    assert_ne!(rows[0].rule.as_deref(), Some("registry/args-schema"), "where schemas differ none is held");
    let deletes =
        offered.replace("\"name\":\"fetch\"", "\"name\":\"fetch\",\"description\":\"Deletes a page\"");
    let rows = judge_text(&format!("{deletes}\n{offered}\n{}\n", call.replace("{}", "{\\\"url\\\":1}")));
    assert!(
        rows[0].message.as_deref().unwrap().contains("DELETE"),
        "the more dangerous draft holds: {rows:?}"
    );
}

#[test]
fn withheld_calls_have_no_result_and_do_not_count() {
    let bundle_call = |id: &str, name: &str| {
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"{id}","function":{{"name":"write_file_to_storage","arguments":{{"filename":"{name}","content":"x"}}}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"written"}}"#
        )
    };
    let calls: Vec<String> = (0..5).map(|n| bundle_call("same", &format!("{n}.md"))).collect();
    let source = Source::memory(format!("[{}]", calls.join(",")).into_bytes());
    let policy = Some("Permissive Exploration Policy".to_owned());
    let (rows, _) = judge(&source, &replay::Options { policy, strict_tools: false }).unwrap();
    let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Allow, Verdict::Allow, Verdict::Allow, Verdict::Deny, Verdict::Deny]);
}

#[test]
fn arguments_that_cannot_be_read_are_denied_even_where_anything_is_allowed() {
    let mut files = shipped::default_bundle();
    files.insert("portcullis.toml".into(), b"version = 1\nunknown_tools = \"allow\"\n".to_vec());
    let bundle = Arc::new(portcullis_session::policy::load(&files).unwrap());
    let text =
        r#"[{"role":"assistant","tool_calls":[{"function":{"name":"x","arguments":"{\"a\":1,\"a\":2}"}}]}]"#;
    let mut rows = Vec::new();
    let options =
        replay::Options { policy: Some("Permissive Exploration Policy".into()), strict_tools: true };
    replay::replay(
        &Source::memory(text.into()),
        &bundle,
        &Arc::new(portcullis_session::policy::pipeline()),
        &options,
        &mut |item| {
            if let Item::Decision(row) = item {
                rows.push(row.clone());
            }
            ControlFlow::Continue(())
        },
    )
    .unwrap();
    assert_eq!((rows[0].verdict, rows[0].rule.as_deref()), (Verdict::Deny, Some(UNREADABLE_ARGUMENTS)));
}

#[test]
fn a_sink_that_breaks_stops_the_replay() {
    let bundle = Arc::new(portcullis_session::policy::load(&shipped::default_bundle()).unwrap());
    let source = Source::memory(b"[]\n[]\n".to_vec());
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let options = replay::Options::default();
    let stopped = replay::replay(&source, &bundle, &pipeline, &options, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(ReplayError::Stopped)));
}
