//! `portcullis hook`: one event of a coding agent's session, sent to the daemon and answered.
//!
//! The client starts a process for each event and waits for it. That process is `portcullis-hook` (the crate of that
//! name), which has the daemon answer in one request; or, where that does not work, `portcullis hook`, which answers
//! here, starts the daemon where none runs and makes the same requests one by one. [`Door`] is all that differs.
//! The run is found by the client's session; it stays open between the events, and is continued in a new segment when
//! the daemon was restarted in between.
//!
//! | event, as Claude Code calls it | what becomes of it |
//! |---|---|
//! | `SessionStart` | the run is opened, or goes on |
//! | `UserPromptSubmit` | an input of the user; one that is withheld does not reach the agent |
//! | `PreToolUse` | the call is judged: allowed, denied, held, or left to the client's prompt |
//! | `PostToolUse`, `PostToolUseFailure` | the outcome, and what the agent sees of it: see [`shown`] |
//! | `PermissionDenied` | the outcome: not executed |
//! | `Stop` | an output, where the client tells the reply; the agent is told of open work items and goes on, once |
//! | `SessionEnd` | the run is closed |
//! | any other | evidence: its name and the digest of the input |
//!
//! Which agent says what, and how it is answered, is [`portcullis_wire::hook`]'s. Here all of them are alike.
//!
//! Whatever goes wrong, nothing goes ahead on the strength of it: the process ends with code 2, which blocks the call,
//! and says why on standard error, which the agent is shown. For events that stop nothing code 2 would mean something
//! else (after `Stop` it makes the agent go on), so they end with code 1, which the user is shown.

mod door;
mod install;
mod reason;
mod shown;

use std::path::PathBuf;
use std::time::Duration;

use portcullis_core::event::{Enforced, OutcomeStatus, Place};
use portcullis_core::id::{Digest, DigestBuilder, canonical_json};
use portcullis_hook::limit::ANSWER_MAX;
use portcullis_hook::place;
use portcullis_session::engine::{Reach, UNNAMED_CALL};
use portcullis_session::shipped;
use portcullis_session::surface::Surface;
use portcullis_wire::hook::{Agent, Answer, Decision, HookCall, HookEvent, HookInput, ToolResponse};
use serde_json::Value;

pub(crate) use door::{Door, Failed};
pub use install::{
    Change, InstallError, Scope, Settings, Standing, besides, install, is_there, settings_file, standing,
    uninstall,
};
pub use portcullis_hook::event::{Answered, BLOCKED};

use crate::api::{OpenRun, ProposeAction, ReportEvidence, ReportInput, ReportOutcome, ReportOutput, Role};
use crate::client::{ClientError, Permit, Proposed};
use crate::contained::{Runner, without_hooks};
use crate::home::Home;
use door::OverSocket;
use reason::{reason, replaced, told};

/// The client's tool that is given command lines, and the argument that holds them.
const SHELL: &str = "Bash";
const COMMAND: &str = "command";
/// The exit code of a failure that blocks nothing.
const FAILED: u8 = 1;
/// What the user is told where the daemon cannot say what is open.
const OLDER_DAEMON: &str = "the daemon that runs is older than this program and does not know of work items, so it \
    was not looked whether any are open. End it (`daemon.pid` in the state folder has its process); it is started again when \
    it is needed.";
/// Longest event name that is kept, in characters.
const EVENT_NAME_CHARS_MAX: usize = 60;

/// How to answer.
#[derive(Debug, Clone)]
pub struct HookOptions {
    /// Whose hooks are answered.
    pub agent: Agent,
    /// The state folder.
    pub home: Home,
    /// The bundle's folder, or `None` for the shipped bundle of a developer's machine.
    pub bundle: Option<PathBuf>,
    /// The runtime policy, or `None` for the bundle's default.
    pub policy: Option<String>,
    /// Calls that a person has to decide on are left to the client's own prompt, where it shows one.
    pub ask: bool,
    /// Calls that are permitted are left to the client's own rules and prompts.
    pub defer: bool,
    /// Command lines are left as they are, whatever the bundle contains.
    pub uncontained: bool,
    /// The folder that the agent was given to work in, where the client says it.
    pub project: Option<PathBuf>,
    /// The user's home folder.
    pub user_home: Option<PathBuf>,
    /// The program whose `serve` is the daemon; none: the one that is running.
    pub program: Option<PathBuf>,
    /// An earlier program may have told the daemon of this event.
    pub again: bool,
    /// How long the event has waited for an answer before this program was started.
    pub spent: Duration,
}

/// How an event is answered, whichever process does it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// The bundle's folder, absolute, or `None` for the shipped bundle of a developer's machine.
    pub(crate) bundle: Option<String>,
    /// The runtime policy, or `None` for the bundle's default.
    pub(crate) policy: Option<String>,
    /// See [`HookOptions::ask`].
    pub(crate) ask: bool,
    /// See [`HookOptions::defer`].
    pub(crate) defer: bool,
    /// Where the agent works.
    pub(crate) place: Place,
    /// How command lines are rewritten so that they run contained; none: they are not.
    pub(crate) runner: Option<Runner>,
}

/// Answers one event by requests over the socket. Never fails: what goes wrong is an answer too.
pub async fn answer(input: &[u8], options: &HookOptions) -> Answered {
    let parsed = match options.agent.parse(input) {
        Ok(parsed) => parsed,
        Err(error) => return Answered::blocked(error),
    };
    let told = async {
        let rules = options.rules(&parsed)?;
        tell(input, &parsed, &rules, options.again, || OverSocket::new(options)).await
    };
    within(&parsed, ANSWER_MAX.saturating_sub(options.spent), told).await
}

/// Answers one event inside the daemon.
pub(crate) async fn answer_here<D: Door>(
    input: &[u8],
    parsed: &HookInput,
    rules: &Rules,
    door: impl Fn() -> D,
) -> Answered {
    within(parsed, ANSWER_MAX, tell(input, parsed, rules, false, door)).await
}

/// The answer to an event, in time, whatever goes wrong.
async fn within(
    parsed: &HookInput,
    limit: Duration,
    told: impl Future<Output = Result<Answered, impl Failed>>,
) -> Answered {
    let answered = match tokio::time::timeout(limit, told).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s; run `portcullis doctor`", ANSWER_MAX.as_secs())),
    };
    match answered {
        Ok(answered) => answered,
        Err(why) if blocks(parsed) => {
            shown::not_judged(parsed, &why).unwrap_or_else(|| Answered::blocked(why))
        }
        Err(why) => Answered {
            output: String::new(),
            error: format!("portcullis: not recorded: {why}"),
            exit: FAILED,
        },
    }
}

/// Whether exit code 2 keeps something from happening, or from being seen unrecorded.
fn blocks(input: &HookInput) -> bool {
    match input.event {
        HookEvent::PreToolUse(_)
        | HookEvent::PostToolUse(..)
        | HookEvent::PostToolUseFailure(..)
        | HookEvent::Prompt(_) => true,
        HookEvent::Other => input.name == "PermissionRequest",
        HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::PermissionDenied(_)
        | HookEvent::Stop(_) => false,
    }
}

/// Tells the daemon of an event, and again where it ended or closed the run in between. `again` says that an earlier
/// program may have told it already.
async fn tell<D: Door>(
    input: &[u8],
    parsed: &HookInput,
    rules: &Rules,
    mut again: bool,
    door: impl Fn() -> D,
) -> Result<Answered, D::Error> {
    let open = open_request(parsed, rules);
    let mut tries = 1;
    loop {
        let door = door();
        let told = async {
            let run = door.open(open.clone()).await?;
            let told_before = std::mem::replace(&mut again, true);
            let told = event(&run, input, parsed, rules, told_before).await?;
            Ok::<_, D::Error>(answered(parsed, &told))
        };
        match told.await {
            // Nobody listens, or the daemon ended a moment ago: what was recorded is taken up by the next one.
            Err(error) if error.calls_for_starting() && tries < TRIES_MAX => {
                door.start_daemon().await?;
                tries += 1;
            }
            // The run was closed between the two requests.
            Err(error) if error.calls_for_resuming() && tries < TRIES_MAX => tries += 1,
            answered => return answered,
        }
    }
}

/// An answer in the client's form.
fn answered(parsed: &HookInput, told: &Told) -> Answered {
    match parsed.agent.refusal(&told.answer, &parsed.event) {
        Some(why) => Answered { output: String::new(), error: why, exit: BLOCKED },
        None => Answered::with(parsed.agent.line(&told.answer, told.note.as_deref(), &parsed.event)),
    }
}

/// How often one event is told.
const TRIES_MAX: u32 = 3;

impl HookOptions {
    fn rules(&self, input: &HookInput) -> Result<Rules, ClientError> {
        let bundle = match &self.bundle {
            None => None,
            Some(path) => Some(
                std::fs::canonicalize(path)
                    .map_err(|source| ClientError::File { path: path.clone(), source })?
                    .to_string_lossy()
                    .into_owned(),
            ),
        };
        Ok(Rules {
            bundle,
            policy: self.policy.clone(),
            ask: self.ask,
            defer: self.defer,
            place: place(input, self),
            runner: Runner::new(self.program.as_deref(), self.home.path()).filter(|_| !self.uncontained),
        })
    }
}

fn open_request(input: &HookInput, rules: &Rules) -> OpenRun {
    OpenRun {
        surface: "hook".into(),
        session: Some(input.session.clone()),
        policy: rules.policy.clone(),
        bundle: Some(rules.bundle.clone().unwrap_or_else(|| shipped::DEVELOPER.to_owned())),
        rejoin: true,
        place: Some(rules.place.clone()),
        ..OpenRun::default()
    }
}

/// Where the agent works: the project's folder, else the folder of the first event.
fn place(input: &HookInput, options: &HookOptions) -> Place {
    let project = options.project.clone().or_else(|| input.directory.as_ref().map(PathBuf::from));
    let home = options.user_home.as_deref();
    Place {
        workspace: place::workspace(project.as_deref(), home),
        home: home.and_then(place::absolute),
        gate: None,
    }
}

/// What is said about an event, and to the user beside it.
struct Told {
    answer: Answer,
    note: Option<String>,
}

impl From<Answer> for Told {
    fn from(answer: Answer) -> Self {
        Self { answer, note: None }
    }
}

async fn event<S: Surface<Error: Failed>>(
    run: &S,
    input: &[u8],
    parsed: &HookInput,
    rules: &Rules,
    again: bool,
) -> Result<Told, S::Error> {
    match &parsed.event {
        HookEvent::SessionStart => {}
        HookEvent::SessionEnd => run.close().await?,
        HookEvent::Prompt(text) => {
            let reach = if parsed.agent.withholds_prompts() { Reach::Withhold } else { Reach::Tell };
            let said = ReportInput { text: text.clone(), role: Role::User, reach };
            let judged = run.input(said).await?;
            return Ok(shown::prompt(&judged).into());
        }
        HookEvent::Stop(Some(text)) => {
            // The user has read it.
            let reply = ReportOutput {
                text: text.clone(),
                documents: None,
                reach: Reach::Tell,
                wait_ms: None,
                last: true,
            };
            let note = run.output(reply).await?.note;
            return stopped(run, parsed, note).await;
        }
        HookEvent::Stop(None) => {
            evidence(run, &parsed.name, input).await?;
            return stopped(run, parsed, None).await;
        }
        HookEvent::PreToolUse(call) => {
            return judge(run, parsed, call, rules).await;
        }
        HookEvent::PostToolUse(call, response) => {
            return outcome(run, parsed.agent, call, OutcomeStatus::Ok, Some(response), again).await;
        }
        HookEvent::PostToolUseFailure(call, error) => {
            let response = ToolResponse { text: error.clone(), json: false };
            return outcome(run, parsed.agent, call, OutcomeStatus::Error, Some(&response), again).await;
        }
        HookEvent::PermissionDenied(call) => {
            return outcome(run, parsed.agent, call, OutcomeStatus::NotExecuted, None, again).await;
        }
        HookEvent::Other => {
            let name: String = parsed.name.chars().take(EVENT_NAME_CHARS_MAX).collect();
            evidence(run, &name, input).await?;
        }
    }
    Ok(Answer::Nothing.into())
}

/// The agent wants to stop. It is kept going once for what is open, and never twice in a row: what it was told and did not
/// do is the user's to know. `note` is what its reply does not say of work.
async fn stopped<S: Surface<Error: Failed>>(
    run: &S,
    parsed: &HookInput,
    note: Option<String>,
) -> Result<Told, S::Error> {
    let for_user = |note: Option<String>| Told {
        answer: Answer::Nothing,
        note: note.map(|note| format!("Portcullis: {note}")),
    };
    if parsed.kept_going {
        return Ok(for_user(note));
    }
    let answer = match run.stopping().await {
        Ok(answer) => answer,
        Err(error) if error.is_unknown_route() => {
            return Ok(for_user(Some(OLDER_DAEMON.to_owned())));
        }
        Err(error) => return Err(error),
    };
    Ok(match answer.open {
        Some(open) => Answer::GoOn(open).into(),
        None => for_user(note.or(answer.unshown)),
    })
}

async fn evidence<S: Surface>(run: &S, name: &str, input: &[u8]) -> Result<(), S::Error> {
    let digest = DigestBuilder::new("portcullis/hook-input/v1").part(input).finish();
    run.evidence(ReportEvidence { name: format!("hook/{name}"), digest }).await.map(drop)
}

/// The client's id of a call; older clients have none, so that equal calls cannot be told apart.
fn call_id(call: &HookCall) -> String {
    call.id.clone().unwrap_or_else(|| {
        let digest: Digest = DigestBuilder::new("portcullis/hook-call/v1")
            .part(call.tool.as_bytes())
            .part(canonical_json(&call.arguments).as_bytes())
            .finish();
        format!("{UNNAMED_CALL}{digest}")
    })
}

async fn judge<S: Surface>(
    run: &S,
    input: &HookInput,
    call: &HookCall,
    rules: &Rules,
) -> Result<Told, S::Error> {
    let contains = input.agent.runs_contained() && !rules.defer;
    let runner = rules.runner.as_ref().filter(|runner| contains && can_contain(runner, call));
    let proposal = ProposeAction {
        contains: runner.is_some(),
        tool: Some(call.tool.clone()),
        arguments: call.arguments.clone(),
        call: Some(call_id(call)),
        directory: input.directory.clone(),
        ask: rules.ask && input.agent.asks() && shows_prompts(input.permission_mode.as_deref()),
        ..ProposeAction::default()
    };
    let proposed = run.propose(proposal).await?;
    let permitted = matches!(proposed, Proposed::Permitted(_));
    let answer = decide(proposed, call, rules.defer, runner).map_or(Answer::Nothing, Answer::Call);
    // It is not made after all, because the client cannot be told how; or nothing will be told of it, and it would count as
    // going on for the rest of the session.
    let known = match answer.denies(input.agent, &input.event) {
        true => Some(OutcomeStatus::NotExecuted),
        false => input.agent.hides_outcomes().then_some(OutcomeStatus::Unknown),
    };
    if let Some(status) = known.filter(|_| permitted) {
        run.outcome(ReportOutcome::of_call(call_id(call), status, None)).await?;
    }
    Ok(answer.into())
}

/// Whether the client asks its user in this mode. In the others something else answers: nobody, or a model.
fn shows_prompts(mode: Option<&str>) -> bool {
    matches!(mode, None | Some("default" | "plan" | "acceptEdits"))
}

/// Whether a call is a command line that the client lets be rewritten. Clients that name their calls honour
/// `updatedInput`, which is older (2.0.10 and 2.0.43 of Claude Code); without the name the outcome would be that of
/// another call.
fn can_contain(runner: &Runner, call: &HookCall) -> bool {
    let command = call.arguments.get(COMMAND).and_then(Value::as_str);
    call.tool == SHELL && call.id.is_some() && command.is_some_and(|command| runner.can_run(command))
}

/// From the gate's answer to the client's words; none leaves the call to the client. `allow` takes the client's own
/// prompt away, so it is said only of what was seen: a build or a script may do anything, and is the client's to ask for.
fn decide(proposed: Proposed, call: &HookCall, defer: bool, runner: Option<&Runner>) -> Option<Decision> {
    match proposed {
        // Whatever it does, it can do no more than was permitted.
        Proposed::Permitted(permit) if permit.contain().is_some() => Some(contained(permit, call, runner)),
        // Observe mode watches: the client asks as it would without the gate.
        Proposed::Permitted(permit) if permit.is_let_pass() => None,
        Proposed::Permitted(permit) if permit.is_without_hooks() && permit.is_seen() && runner.is_some() => {
            Some(hookless(permit, call))
        }
        // Arguments are replaced only where there is an answer.
        Proposed::Permitted(permit) if permit.edited_arguments().is_some() => Some(match permit.is_seen() {
            true => allow(permit),
            false => Decision::Ask(replaced(call), permit.into_edited_arguments()),
        }),
        Proposed::Permitted(permit) => (permit.is_seen() && !defer).then(|| allow(permit)),
        Proposed::Stopped(stopped) if stopped.judged.enforced == Enforced::Asked => {
            Some(Decision::Ask(reason(&stopped.judged, call), None))
        }
        Proposed::Stopped(stopped) => Some(Decision::Deny(told(stopped, call))),
    }
}

/// The only *allow*: it uses up the permit.
fn allow(permit: Permit) -> Decision {
    Decision::Allow(permit.into_edited_arguments())
}

/// The call as it runs without hooks of git's.
fn hookless(permit: Permit, call: &HookCall) -> Decision {
    let mut arguments = permit.edited_arguments().unwrap_or(&call.arguments).clone();
    let command = arguments.get(COMMAND).and_then(Value::as_str).map(without_hooks);
    if let (Some(rewritten), Some(command)) = (command, arguments.get_mut(COMMAND)) {
        *command = rewritten.into();
    }
    match allow(permit) {
        Decision::Allow(_) => Decision::Allow(Some(arguments)),
        other => other,
    }
}

/// The call as it runs under its profile. What cannot be rewritten must not run otherwise.
fn contained(permit: Permit, call: &HookCall, runner: Option<&Runner>) -> Decision {
    let ticket = permit.contain().map(|contain| contain.ticket.to_text());
    let mut arguments = permit.edited_arguments().unwrap_or(&call.arguments).clone();
    let rewritten = match (runner, ticket, arguments.get(COMMAND).and_then(Value::as_str)) {
        (Some(runner), Some(ticket), Some(command)) if runner.can_run(command) => {
            Some(runner.rewritten(command, &ticket))
        }
        _ => None,
    };
    match (rewritten, arguments.get_mut(COMMAND)) {
        (Some(rewritten), Some(command)) => {
            *command = rewritten.into();
            match allow(permit) {
                Decision::Allow(_) => Decision::Allow(Some(arguments)),
                other => other,
            }
        }
        _ => Decision::Deny(format!("Portcullis: the call of `{}` cannot be run contained", call.shown())),
    }
}

async fn outcome<S: Surface<Error: Failed>>(
    run: &S,
    agent: Agent,
    call: &HookCall,
    status: OutcomeStatus,
    response: Option<&ToolResponse>,
    again: bool,
) -> Result<Told, S::Error> {
    let content = response.map(|response| response.text.clone());
    let failed = status != OutcomeStatus::Ok;
    let report =
        ReportOutcome::of_call(call_id(call), status, content).within(shown::reach(agent, call, failed));
    match (run.outcome(report).await, response) {
        (Ok(_), None) => Ok(Answer::Nothing.into()),
        (Ok(judged), Some(response)) => {
            let answer = shown::result(agent, call, failed, response, &judged);
            Ok(Told { answer, note: judged.uncontained.then(|| not_contained(call)) })
        }
        (Err(error), _) if !error.is_not_executing() => Err(error),
        (Err(_), None) => Ok(Answer::Nothing.into()),
        (Err(_), Some(_)) if failed && agent.tells_denials_as_failures() => Ok(Answer::Nothing.into()),
        // It was recorded the first time, and the answer was lost with the daemon.
        (Err(_), Some(_)) if again => Ok(shown::lost(agent, call, failed).into()),
        // The client made a call that the gate did not permit, or never saw. It has happened; it is recorded as what
        // it is, and the user is told.
        (Err(_), Some(_)) => {
            evidence(run, "call-without-permit", call_id(call).as_bytes()).await?;
            let message = format!(
                "portcullis: `{}` was called without a permit from Portcullis; is the hook set up for every tool, before it is called? `portcullis hook status` says so",
                call.shown()
            );
            Ok(Told { answer: Answer::Nothing, note: Some(message) })
        }
    }
}

/// What the user is told if the client ran a call otherwise than it was permitted.
fn not_contained(call: &HookCall) -> String {
    format!(
        "portcullis: a call of `{}` was permitted contained, and the client ran it otherwise; does it honour changed arguments, or does another hook change the call?",
        call.shown()
    )
}

const _: () = assert!(
    portcullis_hook::limit::INPUT_BYTES_MAX == portcullis_wire::hook::INPUT_BYTES_MAX,
    "both read the same"
);

#[cfg(test)]
mod tests;
