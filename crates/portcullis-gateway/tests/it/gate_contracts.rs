//! Contracts of a bundle, held against what passes a daemon. The models are stand-ins that answer by script.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_core::denial::DenialClass;
use portcullis_core::event::{Enforced, Event, EventBody, OutcomeStatus};
use portcullis_core::id::RunId;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{
    ApprovalFilter, ApprovalPhase, GrantApproval, OpenRun, RefuseApproval, ReportOutcome, ReportOutput,
    Scope, TextAnswer,
};
use portcullis_gateway::client::Client;
use portcullis_session::engine::Reach;
use portcullis_session::shipped;
use serde_json::json;

use crate::daemon::{Daemon, call, open};

const POLICY: &str = "Strict Compliance Policy";
const NO_COMMAS: &str = "[[contract]]\nstatement = 'Do not use commas.'\nname = 'no-commas'\n";
const KIND: &str = "[[contract]]\nstatement = 'Be kind.'\nname = 'kind'\njudge = true\n";
const LONG: &str = "[[contract]]\nstatement = 'Answer with at least 6 words.'\nname = 'long'\non_fail = 'repair'\nrepair = 'retry'\n";

/// A model that follows a script: what it says of contracts, and to what it rewrites. How often it was asked.
fn scripted_model(judges: &'static str, rewrites: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let revise = String::from_utf8(body).unwrap().contains("You revise");
            let text = match revise {
                true => format!("<revised>{rewrites}</revised>"),
                false => json!({"answers": [{"n": 1, "explanation": "It is Zanzibar.", "answer": judges}]})
                    .to_string(),
            };
            let answer =
                json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _gone = reader.get_mut().write_all((head + &answer).as_bytes());
        }
    });
    (address, calls)
}

/// A model that takes connections and never answers.
fn dead_model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    address
}

fn model(endpoint: &str) -> String {
    format!("[contracts]\nendpoint = \"{endpoint}\"\nmodel = \"m\"\ntime_s = 1\n")
}

fn write_contracts(bundle: &Path, main: &str, contracts: &str) {
    let file = bundle.join("portcullis.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n{main}")).unwrap();
    std::fs::create_dir(bundle.join("contracts")).unwrap();
    std::fs::write(bundle.join("contracts/replies.toml"), contracts).unwrap();
}

/// A daemon whose bundle has these contracts, with an open run.
struct Gated {
    daemon: Daemon,
    agent: Client,
    run: RunId,
}

impl Gated {
    async fn new(main: &str, contracts: &str) -> Self {
        let daemon = Daemon::start_with_bundle(|bundle| write_contracts(bundle, main, contracts)).await;
        let agent = daemon.agent();
        let run = agent.open_run(&open(POLICY, None)).await.unwrap().run;
        Self { daemon, agent, run }
    }

    async fn reply(&self, text: &str) -> TextAnswer {
        let output = ReportOutput {
            text: text.into(),
            documents: None,
            reach: Reach::Replace,
            wait_ms: None,
            last: false,
        };
        self.agent.output(self.run, &output).await.unwrap()
    }

    /// The lines of the run as they are stored.
    async fn lines(&self) -> String {
        let page = self.agent.events(&self.run.to_string(), 0, 1_000).await.unwrap();
        String::from_utf8(page.lines.to_vec()).unwrap()
    }

    /// The same with the words that are set aside.
    async fn joined(&self) -> String {
        let page = self.agent.events_joined(&self.run.to_string(), 0, 1_000).await.unwrap();
        String::from_utf8(page.lines.to_vec()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_is_broken_does_what_its_on_fail_says() {
    let contracts = format!(
        "{NO_COMMAS}on_fail = 'repair'\n\
         [[contract]]\nstatement = 'Answer with at most 8 words.'\nname = 'brief'\n\
         [[contract]]\nstatement = \"Do not include keywords ['guarantee'] in the response.\"\nname = 'promise'\non_fail = 'deny'\n\
         [[contract]]\nstatement = 'Your answer must contain a title, wrapped in double angular brackets, such as <<poem of joy>>.'\nname = 'titled'\non_fail = 'annotate'\n"
    );
    let gated = Gated::new("", &contracts).await;
    let kept = gated.reply("<<T>> Tea and then coffee").await;
    assert_eq!((kept.verdict, kept.enforced, kept.shown), (Verdict::Allow, Enforced::Executed, None));
    let noted = gated.reply("Tea and then coffee").await;
    assert_eq!((noted.verdict, noted.enforced), (Verdict::Warn, Enforced::Executed));
    let repaired = gated.reply("<<T>> Tea, then coffee").await;
    assert_eq!((repaired.verdict, repaired.enforced), (Verdict::Modify, Enforced::Replaced));
    assert_eq!(repaired.shown.as_deref(), Some("<<T>> Tea; then coffee"));
    let edit = &repaired.edits[0];
    assert_eq!((edit.start, edit.end, edit.replacement.as_str()), (9, 10, ";"));
    let held = gated.reply("<<T>> One two three four five six seven eight").await;
    assert_eq!((held.verdict, held.enforced), (Verdict::Review, Enforced::Held));
    let denial = held.denial.unwrap();
    assert_eq!(denial.rule, "output/contract/brief");
    assert!(denial.message.contains("9 words; demanded: less than 9"), "{}", denial.message);
    let denied = gated.reply("<<T>> We guarantee tea, too").await;
    assert_eq!((denied.verdict, denied.shown), (Verdict::Deny, None));
    assert_eq!(denied.denial.unwrap().rule, "output/contract/promise");
}

/// What the record of a run proves: the offline verifier, and a replay that computes every verdict again.
async fn proven(gated: &Gated) {
    let mut export = Vec::new();
    gated.agent.export(&gated.run.to_string(), &mut export).await.unwrap();
    let report = portcullis_proof::verify(export.as_slice(), None).unwrap();
    assert_eq!(report.failure, None, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_under_review_is_released_edited_or_refused_by_an_approver() {
    let contracts =
        "[[contract]]\nstatement = 'Answer with at most 3 words.'\nname = 'brief'\non_fail = 'review'\n";
    let gated = Gated::new("", contracts).await;
    let approver = gated.daemon.approver();
    let waiting = |text: &'static str| {
        let (agent, run) = (gated.daemon.agent(), gated.run);
        let output = ReportOutput {
            text: text.into(),
            documents: None,
            reach: Reach::Replace,
            wait_ms: Some(20_000),
            last: false,
        };
        tokio::spawn(async move { agent.output(run, &output).await.unwrap() })
    };
    let request = async |text: &str| loop {
        let pending = approver.approvals(ApprovalFilter::Pending).await.unwrap();
        if let Some(request) = pending.iter().find(|request| request.reply.as_deref() == Some(text)) {
            return approver.approval(&request.approval.to_string()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };

    let reply = waiting("One two three four");
    let shown = request("One two three four").await;
    assert_eq!((shown.action, shown.tool.as_str()), (None, ""));
    assert_eq!(shown.rule.as_deref(), Some("output/contract/brief"));
    let id = shown.approval.to_string();
    let wide = GrantApproval { scope: Scope::Arguments, ..GrantApproval::of(&shown) };
    assert_eq!(approver.grant(&id, &wide).await.unwrap_err().code(), Some("conflict"));
    let own = gated.agent.grant(&id, &GrantApproval::of(&shown)).await.unwrap_err();
    assert_eq!(own.code(), Some("forbidden"));
    approver.grant(&id, &GrantApproval::of(&shown)).await.unwrap();
    assert_eq!(reply.await.unwrap().enforced, Enforced::Executed);
    assert_eq!(approver.approval(&id).await.unwrap().state, ApprovalPhase::Claimed);

    let reply = waiting("Five six seven eight");
    let shown = request("Five six seven eight").await;
    let edit =
        GrantApproval { text: Some("Five to eight, four of them".into()), ..GrantApproval::of(&shown) };
    approver.grant(&shown.approval.to_string(), &edit).await.unwrap();
    let edited = reply.await.unwrap();
    assert_eq!((edited.enforced, edited.edits), (Enforced::Replaced, Vec::new()));
    assert_eq!(edited.shown.as_deref(), Some("Five to eight, four of them"));

    let reply = waiting("Nine ten eleven twelve");
    let shown = request("Nine ten eleven twelve").await;
    let no = RefuseApproval { note: Some("not that".into()) };
    approver.refuse(&shown.approval.to_string(), &no).await.unwrap();
    let refused = reply.await.unwrap();
    let denial = refused.denial.unwrap();
    assert_eq!((refused.enforced, denial.class), (Enforced::Withheld, DenialClass::ApprovalRefused));
    assert!(denial.message.ends_with("not that"), "{}", denial.message);
    proven(&gated).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surface_that_cannot_replace_withholds_a_reply_that_needs_a_repair() {
    let gated = Gated::new("", &format!("{NO_COMMAS}on_fail = 'repair'\n")).await;
    for (reach, enforced) in [(Reach::Withhold, Enforced::Withheld), (Reach::Tell, Enforced::LetPass)] {
        let output = ReportOutput {
            text: "Tea, then coffee.".into(),
            documents: None,
            reach,
            wait_ms: None,
            last: false,
        };
        let answer = gated.agent.output(gated.run, &output).await.unwrap();
        assert_eq!((answer.verdict, answer.enforced), (Verdict::Modify, enforced));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_under_contract_is_repaired_before_the_agent_sees_it() {
    let contracts = format!("{NO_COMMAS}on_fail = 'repair'\ntools = ['retrieve_compliance_documents']\n");
    let gated = Gated::new("", &contracts).await;
    let mut shown = Vec::new();
    for (tool, arguments) in [
        ("retrieve_compliance_documents", json!({"query": "x"})),
        ("perform_calculation", json!({"expression": "1"})),
    ] {
        let permitted = gated.agent.propose(gated.run, &call(tool, arguments, 0)).await.unwrap();
        assert!(permitted.is_permitted());
        let content = Some("tea, coffee".to_owned());
        let outcome = ReportOutcome::of(permitted.judged().action, OutcomeStatus::Ok, content);
        shown.push(gated.agent.outcome(gated.run, &outcome).await.unwrap().shown);
    }
    assert_eq!(shown, [Some("tea; coffee".to_owned()), None]);
    assert_eq!(gated.reply("Tea, then coffee.").await.verdict, Verdict::Allow);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_can_decide_fails_as_its_on_fail_says() {
    for (on_fail, verdict) in [
        ("annotate", Verdict::Warn),
        ("repair", Verdict::Review),
        ("review", Verdict::Review),
        ("deny", Verdict::Deny),
    ] {
        let contracts = format!("[[contract]]\nstatement = 'Be kind.'\non_fail = '{on_fail}'\n");
        let gated = Gated::new("", &contracts).await;
        let answer = gated.reply("Tea.").await;
        assert_eq!(answer.verdict, verdict, "{on_fail}");
        let joined = gated.joined().await;
        assert!(joined.contains("code cannot check it, and no judge is named"), "{joined}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_that_does_not_answer_fails_as_on_fail_says() {
    let contract = |name: &str, on_fail: &str| {
        format!(
            "[[contract]]\nstatement = 'Be {name}.'\nname = '{name}'\njudge = true\non_fail = '{on_fail}'\n"
        )
    };
    let dead = model(&dead_model());
    for (on_fail, verdict) in
        [("annotate", Verdict::Warn), ("repair", Verdict::Review), ("deny", Verdict::Deny)]
    {
        let gated = Gated::new(&dead, &contract("kind", on_fail)).await;
        let answer = gated.reply("Tea.").await;
        assert_eq!(answer.verdict, verdict, "{on_fail}");
        let joined = gated.joined().await;
        assert!(joined.contains("is not known to hold: the detection failed"), "{joined}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_judge_says_decides_and_its_words_are_not_in_the_line() {
    for (says, verdict) in [("Yes", Verdict::Allow), ("No", Verdict::Review)] {
        let (endpoint, calls) = scripted_model(says, "");
        let gated = Gated::new(&model(&endpoint), KIND).await;
        assert_eq!(gated.reply("Tea.").await.verdict, verdict);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let lines = gated.lines().await;
        assert!(lines.contains("contracts") && !lines.contains("Zanzibar"), "{lines}");
        let joined = gated.joined().await;
        assert!(joined.contains("Zanzibar"), "{joined}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_decides_without_asking_the_judge() {
    let (endpoint, calls) = scripted_model("Yes", "");
    let gated = Gated::new(&model(&endpoint), &format!("{NO_COMMAS}judge = true\n{LONG}")).await;
    assert_eq!(gated.reply("Tea and coffee for you my dear.").await.verdict, Verdict::Allow);
    assert_eq!(gated.reply("Tea, and coffee for you my dear.").await.verdict, Verdict::Review);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_rewrite_is_shown_only_if_it_keeps_every_contract() {
    let promise = "[[contract]]\nstatement = \"Do not include keywords ['guarantee'] in the response.\"\n";
    let contracts = format!("{LONG}{promise}");
    let (good, calls) = scripted_model("Yes", "Tea and coffee for you my dear.");
    let gated = Gated::new(&model(&good), &contracts).await;
    let rewritten = gated.reply("Tea.").await;
    assert_eq!((rewritten.verdict, rewritten.enforced), (Verdict::Modify, Enforced::Replaced));
    assert_eq!(rewritten.shown.as_deref(), Some("Tea and coffee for you my dear."));
    assert!(calls.load(Ordering::Relaxed) > 0);
    let lines = gated.lines().await;
    assert!(!lines.contains("my dear"), "a rewrite can be erased, so it is not in a line");
    let facts = lines.lines().filter_map(|line| match Event::from_line(line.as_bytes()).ok()?.body {
        EventBody::Verdict(record) => Some(record.facts.len()),
        _ => None,
    });
    assert_eq!(facts.collect::<Vec<_>>(), [1]);

    for (bad, why) in [
        ("We guarantee tea and coffee my dear.", "keeps more contracts without breaking others"),
        ("Tea for you.", "keeps more contracts without breaking others"),
    ] {
        let (endpoint, _) = scripted_model("Yes", bad);
        let gated = Gated::new(&model(&endpoint), &contracts).await;
        let answer = gated.reply("Tea.").await;
        assert_eq!((answer.verdict, answer.shown), (Verdict::Review, None));
        let denial = answer.denial.unwrap();
        assert_eq!(denial.rule, "output/contract/long");
        assert!(denial.message.contains(why), "{}", denial.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_judges_where_a_contract_names_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kind");
    let script = "#!/bin/sh\nif grep -qi 'thank you'; then holds=true; else holds=false; fi\n\
                  echo \"{\\\"verdicts\\\": [{\\\"id\\\": \\\"kind\\\", \\\"holds\\\": $holds}]}\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let contract = |path: &Path| {
        format!("[[contract]]\nstatement = 'Be kind.'\nname = 'kind'\nprogram = '{}'\n", path.display())
    };
    let gated = Gated::new("", &contract(&program)).await;
    assert_eq!(gated.reply("Thank you for asking.").await.verdict, Verdict::Allow);
    assert_eq!(gated.reply("What?").await.verdict, Verdict::Review);
    let gated = Gated::new("", &contract(&folder.path().join("missing"))).await;
    assert_eq!(gated.reply("Thank you for asking.").await.verdict, Verdict::Review);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_a_run_names_for_itself_starts_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("judge"), folder.path().join("ran"));
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let contract =
        format!("[[contract]]\nstatement = 'Be kind.'\nname = 'kind'\nprogram = '{}'\n", program.display());
    let bundle = folder.path().join("bundle");
    for (path, bytes) in shipped::default_bundle() {
        let path = bundle.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    write_contracts(&bundle, "", &contract);
    let own = Gated::new("", &contract).await;
    own.reply("Tea.").await;
    assert!(std::fs::remove_file(&trace).is_ok(), "the daemon's own bundle may name a program");
    let named = OpenRun { bundle: Some(bundle.display().to_string()), ..open(POLICY, None) };
    let run = own.agent.open_run(&named).await.unwrap().run;
    let output = ReportOutput {
        text: "Tea.".into(),
        documents: None,
        reach: Reach::Replace,
        wait_ms: None,
        last: false,
    };
    let answer = own.agent.output(run, &output).await.unwrap();
    assert_eq!((answer.verdict, trace.exists()), (Verdict::Review, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_that_cannot_hold_together_keep_the_daemon_from_starting() {
    let contracts = "[[contract]]\nstatement = 'Answer with at least 300 words.'\n\
                     [[contract]]\nstatement = 'Answer with at most 120 words.'\nname = 'brief'\n";
    let daemon = Daemon::start_with_bundle(|bundle| write_contracts(bundle, "", contracts)).await;
    let error = daemon.failed().await;
    assert!(
        error.contains("contracts/replies.toml:4:13: `brief` (\"Answer with at most 120 words.\") cannot hold together")
            && error.contains("`answer-with-at-least-300-words` (\"Answer with at least 300 words.\") at contracts/replies.toml:2:13"),
        "{error}"
    );
}
