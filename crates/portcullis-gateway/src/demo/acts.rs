//! The acts: plans of the shipped bundle, played by a scripted agent over a real MCP session.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use portcullis_core::bundle::{Bundle, Plan};
use portcullis_core::denial::Denial;
use portcullis_core::id::{ApprovalId, RunId};
use portcullis_core::principal::CredentialKind;
use portcullis_session::shipped;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::Value;
use tokio::process::Command;

use super::{DemoError, DemoOptions, Scene};
use crate::api::{ApprovalFilter, GrantApproval, RunPhase};
use crate::client::Client;
use crate::home::Home;

/// The policy of the third act: side effects wait for a person.
const SUPERVISED: &str = "Supervised Policy";
const SUPERVISED_TOML: &str = r#"
[[policy]]
name = "Supervised Policy"
allowed_types = ["RETRIEVE_DOCS", "CALCULATE", "SEND_EMAIL"]
max_steps = 10
max_side_effects = 1
approval_for_side_effects = true
"#;

/// Plan and policy of each act.
pub const ACTS: [(&str, &str); 5] = [
    ("Compliance Inquiry", "Strict Compliance Policy"),
    ("Unauthorized Transfer Attempt", "Strict Compliance Policy"),
    ("Unauthorized Transfer Attempt", "Permissive Exploration Policy"),
    ("Exceed Step Limit", "Strict Compliance Policy"),
    ("Email Policy Update", SUPERVISED),
];

/// How long the daemon may take to answer at first, and a run to close.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The shipped bundle, with the policy of the last act.
pub(super) fn write_bundle(folder: &Path) -> Result<(), DemoError> {
    let mut files = shipped::default_bundle();
    files.insert("policies/supervised.toml".into(), SUPERVISED_TOML.into());
    for (name, bytes) in files {
        let path = folder.join(name);
        let failed = |source| DemoError::Io { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, bytes).map_err(failed)?;
    }
    Ok(())
}

/// Plays all acts and gives their runs.
pub(super) async fn perform(
    options: &DemoOptions,
    home: &Home,
    folder: &Path,
    tell: &mut (dyn FnMut(Scene<'_>) + Send),
) -> Result<Vec<RunId>, DemoError> {
    let bundle =
        portcullis_session::bundle_dir::load(folder).map_err(|error| DemoError::Astray(error.to_string()))?;
    let approver = Client::new(home.clone(), CredentialKind::Approver);
    await_daemon(&approver).await?;
    let mut runs = Vec::with_capacity(ACTS.len());
    for (number, (plan, policy)) in (1..).zip(ACTS) {
        let plan =
            bundle.plan(plan).ok_or_else(|| DemoError::Astray(format!("the plan `{plan}` is missing")))?;
        tell(Scene::Act { number, policy, prompt: &plan.prompt });
        let session = format!("demo-{number}");
        let agent = Agent::connect(options, home, folder, policy, &session).await?;
        agent.play(plan, &bundle, &approver, tell).await?;
        agent.leave().await?;
        runs.push(closed_run(&approver, &session).await?);
    }
    Ok(runs)
}

async fn await_daemon(client: &Client) -> Result<(), DemoError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match client.health().await {
            Ok(_) => return Ok(()),
            Err(error) if tokio::time::Instant::now() >= deadline => return Err(error.into()),
            Err(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// The run of a session, once it is closed.
async fn closed_run(client: &Client, session: &str) -> Result<RunId, DemoError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let runs = client.runs(100).await?;
        let run = runs.iter().find(|run| run.session.as_deref() == Some(session));
        match run {
            Some(run) if run.phase == RunPhase::Closed => return Ok(run.run),
            _ if tokio::time::Instant::now() >= deadline => {
                let found = run.map_or("does not exist".to_owned(), |run| format!("is {:?}", run.phase));
                return Err(DemoError::Astray(format!("the run of session {session} {found}, not closed")));
            }
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// A scripted agent with an MCP session through the gate.
struct Agent {
    session: RunningService<RoleClient, ()>,
    log: PathBuf,
}

impl Agent {
    /// Starts `portcullis mcp -- portcullis demo-server` and connects to it.
    async fn connect(
        options: &DemoOptions,
        home: &Home,
        bundle: &Path,
        policy: &str,
        session: &str,
    ) -> Result<Self, DemoError> {
        let log = options.folder.join("gate.log");
        let failed = |source| DemoError::Io { path: log.clone(), source };
        let stderr = std::fs::File::options().create(true).append(true).open(&log).map_err(failed)?;
        let mut command = Command::new(&options.program);
        command.arg("mcp").arg("--home").arg(home.path()).arg("--bundle").arg(bundle);
        command.args(["--policy", policy, "--session", session, "--"]);
        command.arg(&options.program).arg("demo-server").arg(options.folder.join("tools"));
        let (process, _) = TokioChildProcess::builder(command)
            .stderr(Stdio::from(stderr))
            .spawn()
            .map_err(|source| DemoError::Io { path: options.program.clone(), source })?;
        let session =
            ().serve(process)
                .await
                .map_err(|error| DemoError::Session { why: error.to_string(), log: log.clone() })?;
        Ok(Self { session, log })
    }

    /// Follows the plan. A denial does not stop this agent: it tries what comes next.
    async fn play(
        &self,
        plan: &Plan,
        bundle: &Bundle,
        approver: &Client,
        tell: &mut (dyn FnMut(Scene<'_>) + Send),
    ) -> Result<(), DemoError> {
        for step in &plan.steps {
            let Some(tool) = &step.tool else { continue };
            let id = bundle.registry.get(tool).map_or(tool.as_str(), |tool| &tool.id);
            let call = self.call(id, &step.args);
            let mut call = std::pin::pin!(call);
            let held = OnceLock::new();
            let answer = tokio::select! {
                answer = &mut call => {
                    let answer = answer?;
                    // The call may be answered before the approver hears that the grant was recorded.
                    if let (Some(approval), None) = (held.get(), &answer.denial) {
                        tell(Scene::Granted { approval: *approval, tool: id });
                    }
                    answer
                }
                // While the call is held, a person decides.
                granted = grant_next(approver, &held) => {
                    tell(Scene::Granted { approval: granted?, tool: id });
                    call.await?
                }
            };
            let (denial, result) = (answer.denial.as_ref(), answer.text.as_str());
            tell(Scene::Decision { planned: &step.action, tool: id, denial, result });
        }
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Result<Answer, DemoError> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self
            .session
            .call_tool(request)
            .await
            .map_err(|error| DemoError::Session { why: error.to_string(), log: self.log.clone() })?;
        let text =
            result.content.iter().filter_map(|content| content.as_text()).map(|text| text.text.as_str());
        let text: String = text.collect::<Vec<_>>().join("\n");
        let refused = result.is_error == Some(true);
        let denial = result.structured_content.filter(|_| refused);
        let denial = denial.and_then(|denial| serde_json::from_value(denial).ok());
        Ok(Answer { denial, text })
    }

    async fn leave(self) -> Result<(), DemoError> {
        let ended = self.session.cancel().await;
        ended.map(|_| ()).map_err(|error| DemoError::Session { why: error.to_string(), log: self.log })
    }
}

struct Answer {
    denial: Option<Denial>,
    text: String,
}

/// Waits for a held call, says which in `held`, and grants it, as an approver with the approver's credential.
async fn grant_next(approver: &Client, held: &OnceLock<ApprovalId>) -> Result<ApprovalId, DemoError> {
    loop {
        if let Some(waiting) = approver.approvals(ApprovalFilter::Pending).await?.first() {
            let id = waiting.approval.to_string();
            let shown = approver.approval(&id).await?;
            let note = Some("granted in the demo".into());
            held.get_or_init(|| waiting.approval);
            approver.grant(&id, &GrantApproval { note, ..GrantApproval::of(&shown) }).await?;
            return Ok(waiting.approval);
        }
        tokio::time::sleep(LOOK_EVERY * 5).await;
    }
}
