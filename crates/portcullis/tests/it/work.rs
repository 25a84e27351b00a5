//! Work items at the command line and across crashes: audit lines, signed statements, and what is left after `kill -9`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_core::event::{OutcomeStatus, Place};
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_core::work::{ItemId, ItemState, WorkItem};
use portcullis_gateway::api::{
    OpenRun, ProposeAction, ReportOutcome, WorkAnswer, WorkOperation, WorkRequest,
};
use portcullis_gateway::client::{Client, ClientError, StartOptions, ensure_daemon};
use portcullis_gateway::home::Home;
use serde_json::{Value, json};

use crate::daemon::{State, runtime};

/// Kills, and in the long form.
const KILLS: u64 = 12;
const KILLS_LONG: u64 = 300;
const POLICY: &str = "[[policy]]\nname = 'work'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 100000\n\
                      max_side_effects = 2\n";
/// The longest pause before a kill, in milliseconds.
const PAUSE_MS_MAX: u64 = 120;

/// A run whose daemon may be killed.
struct Worker {
    state: State,
    home: Home,
    project: tempfile::TempDir,
    bundle: tempfile::TempDir,
    run: RunId,
}

impl Worker {
    async fn start() -> Self {
        let state = State::new();
        let home = Home::at(&state.home()).unwrap();
        let project = tempfile::tempdir().unwrap();
        let run = RunId::from_bytes([0; 16]);
        let bundle = crate::command::bundle_copy();
        std::fs::write(bundle.path().join("policies/work.toml"), POLICY).unwrap();
        let mut worker = Self { state, home, project, bundle, run };
        worker.run = worker.open().await;
        worker
    }

    /// Opens the run, or takes it up where its daemon died.
    async fn open(&self) -> RunId {
        let (program, bundle) = (env!("CARGO_BIN_EXE_portcullis").into(), self.bundle.path().to_owned());
        let start = StartOptions { program: Some(program), bundle: Some(bundle), ..StartOptions::default() };
        ensure_daemon(&self.home, &start).await.unwrap();
        let workspace = self.project.path().canonicalize().unwrap().to_str().map(str::to_owned);
        let open = OpenRun {
            surface: "test".into(),
            session: Some("s".into()),
            rejoin: true,
            policy: Some("work".into()),
            place: Some(Place { workspace, home: Some("/home/u".into()), gate: None }),
            ..OpenRun::default()
        };
        self.client(CredentialKind::Agent).open_run(&open).await.unwrap().run
    }

    fn client(&self, kind: CredentialKind) -> Client {
        Client::new(self.home.clone(), kind)
    }

    async fn ask(&self, kind: CredentialKind, operation: WorkOperation) -> Result<WorkAnswer, ClientError> {
        let request = WorkRequest { operation, call: None, wait_ms: None };
        self.client(kind).work(&self.run.to_string(), &request).await
    }

    async fn add(&self, title: &str, criteria: Vec<Value>) -> Result<WorkItem, ClientError> {
        let create = WorkOperation::Create { title: title.into(), criteria, owner: None, covers: Vec::new() };
        Ok(self.ask(CredentialKind::Approver, create).await?.item)
    }

    async fn begin(&self, item: ItemId) -> Result<WorkItem, ClientError> {
        Ok(self.ask(CredentialKind::Agent, WorkOperation::Start { item }).await?.item)
    }

    /// Makes a call, and claims the item with it.
    async fn claim(&self, item: ItemId) -> Result<WorkItem, ClientError> {
        let agent = self.client(CredentialKind::Agent);
        let search = ProposeAction {
            tool: Some("retrieve_compliance_documents".into()),
            arguments: json!({"query": format!("{item} at {:?}", SystemTime::now())}),
            ..ProposeAction::default()
        };
        let action = agent.propose(self.run, &search).await?.judged().action;
        agent.outcome(self.run, &ReportOutcome::of(action, OutcomeStatus::Ok, Some("found".into()))).await?;
        let evidence = vec![action.to_string()];
        let claim = WorkOperation::Claim { item, evidence, statement: "it is there".into() };
        Ok(self.ask(CredentialKind::Agent, claim).await?.item)
    }

    async fn items(&self) -> BTreeMap<ItemId, WorkItem> {
        let agent = self.client(CredentialKind::Agent);
        let list = agent.work_list(&self.run.to_string()).await.unwrap();
        list.items.into_iter().map(|item| (item.id, item)).collect()
    }

    /// Goes on with the items until the daemon is gone. Keeps what was acknowledged; the item that was being worked on.
    async fn work(&self, known: &mut BTreeMap<ItemId, WorkItem>) -> ItemId {
        loop {
            let open = known.values().find(|item| !matches!(item.state, ItemState::Verified));
            let next = ItemId(u32::try_from(known.len()).unwrap() + 1);
            let at = open.map_or(next, |item| item.id);
            let done = match open.map(|item| item.state) {
                None | Some(ItemState::Verified) => {
                    let file = format!("{}.txt", next.0);
                    self.add("make a file", vec![json!({"type": "file_exists", "path": file})]).await
                }
                Some(ItemState::Pending) => self.begin(at).await,
                Some(ItemState::InProgress) => {
                    // The first claim of each is turned down, since its file is made after that.
                    let again = known[&at].returned.is_some();
                    let file = self.project.path().join(format!("{}.txt", at.0));
                    if again {
                        std::fs::write(file, "x").unwrap();
                    }
                    self.claim(at).await
                }
                Some(ItemState::Claimed) => {
                    let verify = WorkOperation::Verify { item: at };
                    self.ask(CredentialKind::Agent, verify).await.map(|answer| answer.item)
                }
            };
            match done {
                Ok(item) => drop(known.insert(item.id, item)),
                Err(ClientError::NotRunning { .. } | ClientError::Lost(_)) => return at,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn kill(home: &Home) {
    let pid = std::fs::read_to_string(home.pid()).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
}

/// What was acknowledged is there after the daemon was killed: items, their evidence and results, and nothing else.
#[test]
fn items_and_their_evidence_outlive_kills_at_random_points() {
    let long = std::env::var("PORTCULLIS_TEST_LONG").as_deref() == Ok("1");
    let kills = if long { KILLS_LONG } else { KILLS };
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let seed = std::env::var("PORTCULLIS_TEST_SEED").map_or_else(|_| clock(), |seed| seed.parse().unwrap());
    println!("again with PORTCULLIS_TEST_SEED={seed}");
    let mut random = crate::crash::Rng::of(seed);
    let begin = Instant::now();
    runtime().block_on(async {
        let worker = Worker::start().await;
        let mut known = BTreeMap::new();
        for _ in 0..kills {
            let (home, pause) = (worker.home.clone(), Duration::from_millis(random.below(PAUSE_MS_MAX)));
            let killer = std::thread::spawn(move || {
                std::thread::sleep(pause);
                kill(&home);
            });
            let at = worker.work(&mut known).await;
            killer.join().unwrap();
            assert_eq!(worker.open().await, worker.run, "it is taken up again");
            let found = worker.items().await;
            for (id, item) in &known {
                assert!(*id == at || found.get(id) == Some(item), "{item:?}\nis now\n{:?}", found.get(id));
            }
            let more: Vec<_> = found.keys().filter(|id| !known.contains_key(id)).collect();
            assert!(more.is_empty() || more == [&at], "{more:?}");
            // The operation that nobody answered was done, or not.
            let was = known.get(&at).map_or(0, |item| item.changed);
            assert!(found.get(&at).map_or(0, |item| item.changed) >= was);
            known = found;
        }
        let evidence = known.values().filter(|item| !item.evidence.is_empty()).count();
        println!("{} items, {evidence} of them with evidence, {:.0?}", known.len(), begin.elapsed());
        assert!(evidence > 0, "too little happened");
        let file = worker.home.path().join("run.export");
        let run = worker.run.to_string();
        let exported = worker.state.run(&["export", &run, "-o", file.to_str().unwrap()]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        let verified = worker.state.run(&["verify", file.to_str().unwrap()]);
        assert_eq!(
            verified.code, 2,
            "nothing is wrong with it, and nobody said what to believe: {}",
            verified.stdout
        );
    });
}

/// The policy that believes the log of a state folder, which its daemon makes once it serves.
fn policy(state: &State, file: &Path) {
    for _ in 0..200 {
        let policy = state.run(&["log", "policy"]);
        if policy.code == 0 {
            return std::fs::write(file, policy.stdout).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no log was made: {}", state.run(&["log", "policy"]).stderr);
}

#[test]
fn a_verified_item_is_stated_and_the_statement_holds_under_its_logs_key_alone() {
    let (worker, other) = runtime().block_on(async {
        let worker = Worker::start().await;
        for (title, item) in [("read the draft", ItemId(1)), ("read the other one", ItemId(2))] {
            worker.add(title, Vec::new()).await.unwrap();
            worker.begin(item).await.unwrap();
        }
        worker.claim(ItemId(1)).await.unwrap();
        let attest = WorkOperation::Attest { item: ItemId(1), reason: "read it".into() };
        worker.ask(CredentialKind::Approver, attest).await.unwrap();
        (worker, Worker::start().await)
    });
    let (state, run) = (&worker.state, worker.run.to_string());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, trust, wrong) = (path("item.json"), path("trust.policy"), path("other.policy"));
    policy(state, Path::new(&trust));
    policy(&other.state, Path::new(&wrong));
    let stated = state.run(&["work", "statement", &run, "1"]);
    assert_eq!(stated.code, 0, "{}", stated.stderr);
    let refused = state.run(&["work", "statement", &run, "2"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.contains("#2 is not verified, but in_progress"), "{}", refused.stderr);

    std::fs::write(&file, &stated.stdout).unwrap();
    let verify = |arguments: &[&str]| crate::command::run(&[&["verify"], arguments].concat());
    let valid = verify(&[&file, "--trust", &trust]);
    assert_eq!(valid.code, 0, "{}{}", valid.stdout, valid.stderr);
    assert!(valid.stdout.starts_with("VALID\n  item        #1 read the draft\n"), "{}", valid.stdout);
    assert!(valid.stdout.contains("attested by approver:"), "{}", valid.stdout);
    let alone = verify(&[&file]);
    assert!(alone.code == 2 && alone.stdout.starts_with("INCOMPLETE"), "{}", alone.stdout);
    let stranger = verify(&[&file, "--trust", &wrong]);
    assert!(stranger.code == 1 && stranger.stdout.contains("did not sign it"), "{}", stranger.stdout);
    // One letter of the payload, which is base64.
    let mut envelope: Value = serde_json::from_str(&stated.stdout).unwrap();
    let payload = envelope["payload"].as_str().unwrap();
    let changed =
        if payload.starts_with("eyJ") { payload.replacen("eyJ", "eyK", 1) } else { panic!("{payload}") };
    envelope["payload"] = changed.into();
    std::fs::write(&file, envelope.to_string()).unwrap();
    for arguments in [&[file.as_str(), "--trust", &trust][..], &[&file]] {
        let changed = verify(arguments);
        assert!(changed.code == 1 && changed.stdout.starts_with("INVALID"), "{}", changed.stdout);
    }
    let mut json = verify(&[&file, "--trust", &trust, "--json"]).json();
    assert_eq!(json.remove(0)["status"], "INVALID");
}

/// C10, from the record.
#[test]
fn c10_the_audit_has_a_line_for_each_operation_in_the_seeds_format() {
    let worker = runtime().block_on(async {
        let worker = Worker::start().await;
        worker.add("make a file", vec![json!({"type": "file_exists", "path": "1.txt"})]).await.unwrap();
        worker.begin(ItemId(1)).await.unwrap();
        let attest = WorkOperation::Attest { item: ItemId(1), reason: "trust me".into() };
        assert!(worker.ask(CredentialKind::Agent, attest).await.is_err());
        std::fs::write(worker.project.path().join("1.txt"), "x").unwrap();
        worker.claim(ItemId(1)).await.unwrap();
        worker
    });
    let audit = worker.state.run(&["work", "audit", &worker.run.to_string()]);
    assert_eq!(audit.code, 0, "{}", audit.stderr);
    let lines: Vec<&str> = audit.stdout.lines().collect();
    let begins: Vec<String> = lines
        .iter()
        .map(|line| {
            let (time, rest) = line.split_once("] ").unwrap();
            assert!(time.len() == 21 && time.starts_with('[') && time.ends_with('Z'), "{line}");
            rest.split(" cause=").next().unwrap().to_owned()
        })
        .collect();
    assert!(begins[0].starts_with(r#"TODO_CREATE id=1 content="make a file" actor=person:"#), "{begins:?}");
    assert_eq!(begins[1], "TODO_START id=1 actor=agent");
    assert!(begins[2].starts_with(r#"TODO_ATTEST_REFUSED id=1 reason="#), "{begins:?}");
    assert!(begins[3].starts_with("TODO_CLAIM id=1 evidence=[tool_call_id="), "{begins:?}");
    assert_eq!(begins[4], "TODO_VERIFY id=1 result=PASS criteria=[file_exists] actor=harness");
    assert_eq!(begins.len(), 5);
}

/// A run that the MCP gate opened: the folder of the server is where its items are about.
#[test]
fn a_run_that_the_mcp_gate_opened_has_its_servers_folder_for_work() {
    let (state, project) = (State::new(), tempfile::tempdir().unwrap());
    let (binary, files) = (env!("CARGO_BIN_EXE_portcullis"), state.home().join("files"));
    let mut gate = state
        .command(&["mcp", "--", binary, "demo-server", files.to_str().unwrap()])
        .current_dir(project.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to_gate = gate.stdin.take().unwrap();
    let mut answers = BufReader::new(gate.stdout.take().unwrap()).lines();
    let mut ask = |id: u32, method: &str, params: Value| -> Value {
        writeln!(to_gate, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    let client = json!({"name": "test", "version": "1"});
    ask(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
    let [run] = state.run(&["runs", "list", "--json"]).json().try_into().unwrap();
    let run = run["run"].as_str().unwrap().to_owned();
    let criteria = project.path().join("criteria.json");
    std::fs::write(&criteria, r#"[{"type": "file_exists", "path": "report.md"}]"#).unwrap();
    let added = state.run(&["work", "add", &run, "write it", "--criteria", criteria.to_str().unwrap()]);
    assert_eq!(added.code, 0, "{}", added.stderr);

    let agent = Client::new(Home::at(&state.home()).unwrap(), CredentialKind::Agent);
    let runtime = runtime();
    let work = |operation| {
        let request = WorkRequest { operation, call: None, wait_ms: None };
        runtime.block_on(agent.work(&run, &request)).unwrap().item
    };
    let item = ItemId(1);
    work(WorkOperation::Start { item });
    let mut claim = |id: u32| {
        let sum = json!({"name": "perform_calculation", "arguments": {"expression": format!("40 + {id}")}});
        assert_eq!(ask(id, "tools/call", sum)["result"]["isError"], false);
        let latest = runtime.block_on(agent.work_list(&run)).unwrap().calls.remove(0);
        let evidence = vec![latest.action.to_string()];
        work(WorkOperation::Claim { item, evidence, statement: "written".into() })
    };
    let turned_down = claim(2);
    assert_eq!(turned_down.state, ItemState::InProgress);
    assert_eq!(turned_down.results[0].detail, "there is no file `report.md`");
    std::fs::write(project.path().join("report.md"), "x").unwrap();
    assert_eq!(claim(3).state, ItemState::Verified);
    drop(to_gate);
    assert_eq!(gate.wait().unwrap().code(), Some(0));
}
