//! Governance packs over HTTP.

use portcullis_core::event::OutcomeStatus;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{ReportInput, ReportOutcome, ReportOutput, Role};
use portcullis_governance::{FILES, check};
use portcullis_proof::Status;
use portcullis_session::engine::Reach;
use serde_json::{Value, json};

use crate::daemon::{Daemon, call, open};

#[tokio::test(flavor = "multi_thread")]
async fn approvers_get_the_pack_and_each_file_and_agents_do_not() {
    let daemon = Daemon::start().await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("Strict Compliance Policy", None)).await.unwrap().run;
    let said = |text: &str| ReportInput { text: text.into(), role: Role::User, reach: Reach::Replace };
    agent.input(run, &said("What is 6 times 7?")).await.unwrap();
    let answer =
        agent.propose(run, &call("perform_calculation", json!({"expression": "6*7"}), 0)).await.unwrap();
    agent
        .outcome(run, &ReportOutcome::of(answer.judged().action, OutcomeStatus::Ok, Some("42".into())))
        .await
        .unwrap();
    let reply = ReportOutput {
        text: "42".into(),
        documents: None,
        reach: Reach::Replace,
        wait_ms: None,
        last: false,
    };
    agent.output(run, &reply).await.unwrap();
    agent.close(run).await.unwrap();

    let (approver, path) = (daemon.gets(CredentialKind::Approver), format!("/v1/runs/{run}/governance"));
    let (status, headers, archive) = approver.get(&path).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&archive));
    assert!(
        headers.contains("application/zip") && headers.contains(&format!("governance-{run}.zip")),
        "{headers}"
    );
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).unwrap();
    let count = archive.len();
    let files: Vec<(String, Vec<u8>)> = (0..count)
        .map(|number| {
            let mut file = archive.by_index(number).unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
            (file.name().unwrap().into_owned(), bytes)
        })
        .collect();
    let report = check(&files, None, None);
    assert_eq!(
        (report.status, report.failed().count()),
        (Status::Incomplete, 0),
        "only what to believe is missing"
    );
    let policy = daemon.policy();
    let report = check(&files, None, Some(&policy));
    assert!(report.status == Status::Valid && report.signed, "{report:#?}");

    for (name, bytes) in files.iter().filter(|(name, _)| FILES[..10].contains(&name.as_str())) {
        let (status, _, alone) = approver.get(&format!("{path}/{name}")).await;
        assert_eq!((status, &alone), (200, bytes), "{name}");
    }
    let (_, headers, summary) = approver.get(&format!("{path}/{}", FILES[0])).await;
    assert!(headers.contains("application/json"), "{headers}");
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["metrics"][0]["value"], 1);

    let said = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    let (status, _, body) = daemon.gets(CredentialKind::Agent).get(&path).await;
    assert_eq!(status, 403, "{}", said(&body));
    let (status, _, body) = approver.get(&format!("{path}/passwords.txt")).await;
    assert!(status == 404 && said(&body).contains("summary_report.json"), "{}", said(&body));
    let (status, _, body) = approver.get("/v1/runs/abcdefabcdef/governance").await;
    assert!(status == 404 && said(&body).contains("no run id starts with"), "{}", said(&body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_verification_is_told() {
    let daemon = Daemon::start_with_bundle(|bundle| {
        let main = bundle.join("portcullis.toml");
        let text = std::fs::read_to_string(&main).unwrap();
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("verification.")).collect();
        std::fs::write(&main, kept.join("\n")).unwrap();
    })
    .await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("Strict Compliance Policy", None)).await.unwrap().run;
    let reply = ReportOutput {
        text: "42".into(),
        documents: None,
        reach: Reach::Replace,
        wait_ms: None,
        last: false,
    };
    agent.output(run, &reply).await.unwrap();
    let (approver, path) = (daemon.gets(CredentialKind::Approver), format!("/v1/runs/{run}/governance"));
    let (status, _, body) = approver.get(&path).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["error"]["code"]), (409, &"not_verified".into()));
    assert!(body["error"]["message"].as_str().unwrap().contains("?unverified=true"), "{body}");
    let (status, _, risks) = approver.get(&format!("{path}/residual_risk_summary.md?unverified=true")).await;
    let risks = String::from_utf8(risks).unwrap();
    assert_eq!(status, 200, "{risks}");
    assert!(
        risks.contains("1 reply was delivered without a check") && risks.contains("The run is still open"),
        "{risks}"
    );
    let (status, _, _) = approver.get(&format!("{path}?unverifed=true")).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn packs_of_a_daemon_have_its_own_controls() {
    let own = tempfile::tempdir().unwrap();
    let mapping = "source = 'House rules'\ndocument = 'd'\napplies = 'all'\n[[control]]\nid = 'house/1'\nclause = '1'\n\
                   title = 't'\nevents = ['verdict']\nfiles = []\nshows = 's'\nnot_shown = ['n']\n";
    std::fs::write(own.path().join("house.toml"), mapping).unwrap();
    let folder = own.path().to_owned();
    let daemon = Daemon::start_with(|options| options.controls = vec![folder]).await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("Strict Compliance Policy", None)).await.unwrap().run;
    agent.close(run).await.unwrap();
    let path = format!("/v1/runs/{run}/governance/controls.json");
    let (status, _, body) = daemon.gets(CredentialKind::Approver).get(&path).await;
    let shown: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["sources"][4]["controls"][0]["id"], "house/1");
}
