//! Every plan under both shipped policies, through the real gate and ledger, gives the trace that the seed
//! demands, and what it leaves behind verifies.

use std::path::Path;
use std::sync::Arc;

use portcullis_governance::trace::EventType;
use portcullis_ledger::{ExportOptions, OpenOptions, SqliteLedger};
use portcullis_proof::{Status, Trust, verify};
use portcullis_session::bundles::Bundles;
use portcullis_session::gate::Gate;
use portcullis_session::shipped;
use portcullis_sim::simulator::{Options, Simulation, simulate};

const STRICT: &str = "Strict Compliance Policy";
const PERMISSIVE: &str = "Permissive Exploration Policy";

fn gate(folder: &Path) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &shipped::default_bundle()).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles)
}

async fn run(plan: &str, policy: &str, options: Options) -> Simulation {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let simulation = simulate(&gate, plan, policy, &folder.path().join("tools"), options).await.unwrap();
    let mut export = Vec::new();
    let trust = gate
        .ledger()
        .read(|reader| {
            reader.export_run(simulation.run_id, &mut export, ExportOptions { payloads: true })?;
            reader.trust_text(&[simulation.run_id])
        })
        .unwrap();
    let report = verify(export.as_slice(), Some(&Trust::parse(&trust).unwrap())).unwrap();
    assert_eq!(report.status, Status::Valid, "{report}");
    simulation
}

/// The trace in short: step number, event, decision.
fn sketch(simulation: &Simulation) -> Vec<String> {
    simulation
        .trace
        .iter()
        .map(|row| format!("{} {} {}", row.step_number, row.event_type, row.policy_action))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_traces_of_the_seed() {
    let strict_stops = [
        ("Compliance Inquiry", Some((3, "runtime-policy/tool-type"))),
        ("Unauthorized Transfer Attempt", Some((2, "runtime-policy/tool-type"))),
        ("Email Policy Update", Some((2, "runtime-policy/tool-type"))),
        ("Calculation Task", None),
        ("Exceed Step Limit", Some((6, "runtime-policy/step-limit"))),
        ("Compliance Report Generation", None),
        ("Handle Data Access Request", Some((2, "runtime-policy/tool-type"))),
    ];
    for (plan, stop) in strict_stops {
        let simulation = run(plan, STRICT, Options::default()).await;
        let stopped = simulation.stopped.as_ref().map(|stopped| (stopped.step, stopped.rule.as_str()));
        assert_eq!(stopped, stop, "{plan}");
        let last = simulation.trace.last().unwrap();
        match stop {
            Some((step, _)) => {
                assert_eq!((last.event_type, last.step_number), (EventType::ToolBlocked, step), "{plan}");
                assert!(simulation.output.is_none());
            }
            None => assert_eq!(last.event_type, EventType::OutputGenerated, "{plan}"),
        }
        let permissive = run(plan, PERMISSIVE, Options::default()).await;
        assert!(permissive.stopped.is_none(), "{plan}: {:?}", permissive.stopped);
        assert_eq!(permissive.trace.last().unwrap().event_type, EventType::OutputGenerated, "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_trace_in_full_and_an_output_that_cites() {
    let simulation = run("Compliance Inquiry", STRICT, Options::default()).await;
    assert_eq!(
        sketch(&simulation),
        [
            "1 TOOL_SELECTED ALLOWED",
            "1 TOOL_EXECUTED ALLOWED",
            "2 LLM_THINKING ALLOWED",
            "3 TOOL_SELECTED DENIED",
            "3 TOOL_BLOCKED DENIED",
        ]
    );
    let report = run("Compliance Report Generation", STRICT, Options::default()).await;
    assert!(report.output.unwrap().contains("[DOC:doc_00"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn going_on_after_a_denial() {
    let simulation =
        run("Unauthorized Transfer Attempt", STRICT, Options { go_on: true, approve: false }).await;
    let blocked: Vec<u32> = simulation
        .trace
        .iter()
        .filter(|row| row.event_type == EventType::ToolBlocked)
        .map(|row| row.step_number)
        .collect();
    assert_eq!(blocked, [2, 3]);
    assert!(simulation.output.is_some());
    let executed = simulation.trace.iter().filter(|row| row.event_type == EventType::ToolExecuted).count();
    assert_eq!(executed, 1, "only the retrieval");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_held_waits_or_is_approved() {
    let mut files = shipped::default_bundle();
    let policy = "[[policy]]\nname = 'mail'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL', 'WRITE_FILE']\n\
                  max_steps = 9\nmax_side_effects = 1\napproval_for_side_effects = true\n";
    files.insert("policies/mail.toml".into(), policy.into());
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &files).unwrap();
    let gate = Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles);
    let tools = folder.path().join("tools");
    let held = simulate(&gate, "Email Policy Update", "mail", &tools, Options::default()).await.unwrap();
    let ended: Vec<EventType> = held.trace.iter().rev().take(2).map(|row| row.event_type).collect();
    assert_eq!(ended, [EventType::ToolBlocked, EventType::ApprovalRequested], "it lapses with the run");
    assert!(held.stopped.is_some_and(|stopped| stopped.held && stopped.step == 2));
    assert!(!tools.join("outbox").read_dir().is_ok_and(|mut mails| mails.next().is_some()));
    let options = Options { go_on: false, approve: true };
    let approved = simulate(&gate, "Email Policy Update", "mail", &tools, options).await.unwrap();
    // One side effect is permitted, approved or not.
    let stopped = approved.stopped.unwrap();
    assert_eq!((stopped.step, stopped.rule.as_str()), (3, "runtime-policy/side-effect-limit"));
    assert_eq!(tools.join("outbox").read_dir().unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unknown_names_are_errors_that_list_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let tools = folder.path().join("tools");
    let plan = simulate(&gate, "No Plan", STRICT, &tools, Options::default()).await.unwrap_err().to_string();
    assert!(plan.contains("`No Plan`") && plan.contains("`Calculation Task`"), "{plan}");
    let policy = simulate(&gate, "Calculation Task", "None", &tools, Options::default()).await.unwrap_err();
    assert!(policy.to_string().contains(STRICT), "{policy}");
}
