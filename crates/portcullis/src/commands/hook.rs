//! `portcullis hook`: answers the hooks of a coding agent.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use portcullis_gateway::hook::{self, Answered, BLOCKED, Change, HookOptions, Scope, Settings, Standing};
use portcullis_hook::limit::{ANSWER_MAX, WHOLE_MAX, within};
use portcullis_hook::place::project_variable;
use portcullis_wire::hook::{Agent, INPUT_BYTES_MAX};
use serde_json::json;

use crate::bundle::check_folder;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, STRONG, clean};

const EXAMPLES: &str = "\
Examples:
  portcullis hook install
  portcullis hook install codex --user --bundle ~/my-bundle
  portcullis hook status gemini-cli
  portcullis hook < input.json

Started by the client for each event of its session, with the event as JSON on standard input. The answer goes to \
standard output. The exit code is 0, or 2 whenever the gate could not answer, which blocks the call.";

const EXAMPLES_INSTALL: &str = "\
Examples:
  portcullis hook install
  portcullis hook install --local --ask
  portcullis hook install gemini-cli --user
  portcullis hook install codex --dry-run

Shows what is different in the settings. Everything else in them stays as it is.
Exit codes: 0 it is installed, 3 the settings cannot be read and were left alone.";

const EXAMPLES_UNINSTALL: &str = "\
Examples:
  portcullis hook uninstall
  portcullis hook uninstall codex --user
  portcullis hook uninstall gemini-cli --dry-run

Exit codes: 0 there is no entry left, 3 the settings cannot be read and were left \
alone.";

const EXAMPLES_STATUS: &str = "\
Examples:
  portcullis hook status
  portcullis hook status codex --json

Looks into the settings of this folder and of the user.
Exit codes: 0 the agent is governed in this folder, 1 it is not, 3 settings cannot \
be read.";

/// Judge what a coding agent does: answer its hooks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Whose hooks are answered
    #[arg(long, value_name = "AGENT", default_value = CLAUDE_CODE, value_parser = agents())]
    agent: Agent,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    earlier: Earlier,
}

/// What `portcullis-hook` did before it handed the event over.
#[derive(Debug, Clone, clap::Args)]
struct Earlier {
    /// The daemon may have been told of the event already
    #[arg(long, hide = true)]
    again: bool,
    /// How long the event has waited for an answer already
    #[arg(long, value_name = "MS", default_value_t = 0, hide = true)]
    spent_ms: u64,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write the hook into an agent's settings
    #[command(after_help = EXAMPLES_INSTALL)]
    Install {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        rules: Rules,
    },
    /// Take the hook out of an agent's settings
    #[command(after_help = EXAMPLES_UNINSTALL)]
    Uninstall {
        #[command(flatten)]
        place: Place,
    },
    /// Say whether an agent is governed
    #[command(after_help = EXAMPLES_STATUS)]
    Status {
        /// The agent
        #[arg(value_name = "AGENT", default_value = CLAUDE_CODE, value_parser = agents())]
        agent: Agent,
    },
}

/// Whose settings, and which.
#[derive(Debug, Clone, clap::Args)]
struct Place {
    /// The agent
    #[arg(value_name = "AGENT", default_value = CLAUDE_CODE, value_parser = agents())]
    agent: Agent,
    /// For you, in this project only; of Claude Code: `.claude/settings.local.json`
    #[arg(long, conflicts_with = "user")]
    local: bool,
    /// For you, in all projects
    #[arg(long)]
    user: bool,
    /// Show what would be different, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The agent where none is named.
const CLAUDE_CODE: &str = Agent::ClaudeCode.id();

fn agents() -> impl TypedValueParser<Value = Agent> {
    let named = |id: String| Agent::named(&id).ok_or_else(|| format!("`{id}` is no agent that is known"));
    PossibleValuesParser::new(Agent::ALL.map(Agent::id)).try_map(named)
}

/// By what is judged, and who is asked.
#[derive(Debug, Clone, clap::Args)]
struct Rules {
    /// Folder of the bundle; the shipped bundle for a developer's machine if left out
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Name of the runtime policy; otherwise that of the credential or of the bundle
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Leave what a person has to decide to the client's own prompt, where it shows one
    #[arg(long)]
    ask: bool,
    /// Leave what is permitted to the client's own rules and prompts, instead of allowing it
    #[arg(long)]
    defer: bool,
    /// Leave command lines as they are, whatever the bundle contains
    #[arg(long)]
    uncontained: bool,
}

/// Whether the command line answers hooks: then nothing but 0 and 2 may come out of it.
pub(crate) fn is_answering(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--home" | "--color") => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            Some("hook") => {
                let others = ["install", "uninstall", "status"];
                return words.next().is_none_or(|word| !others.iter().any(|other| word == *other));
            }
            _ => return false,
        }
    }
    false
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        None => answer(args, global),
        Some(Command::Install { place, rules }) => install(place, rules, global),
        Some(Command::Uninstall { place }) => uninstall(place, global),
        Some(Command::Status { agent }) => status(*agent, global),
    }
}

/// Reads the event, answers it, and ends.
fn answer(args: &Args, global: &Global) -> Result<u8, Failure> {
    let answered = match options(args, global) {
        Ok(options) => {
            let left = WHOLE_MAX.saturating_sub(options.spent);
            within(left, move || judge(&options)).unwrap_or_else(|blocked| blocked)
        }
        Err(failure) => Answered::blocked(failure.message()),
    };
    Ok(answered.say())
}

fn options(args: &Args, global: &Global) -> Result<HookOptions, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Args { agent, rules, earlier, .. } = args;
    Ok(HookOptions {
        agent: *agent,
        home: global.home()?,
        bundle: rules.bundle.clone(),
        policy: rules.policy.clone(),
        ask: rules.ask,
        defer: rules.defer,
        uncontained: rules.uncontained,
        project: project_variable(Some(agent.id())).and_then(folder),
        user_home: folder("HOME"),
        program: None,
        again: earlier.again,
        spent: Duration::from_millis(earlier.spent_ms),
    })
}

fn judge(options: &HookOptions) -> Answered {
    let mut input = Vec::new();
    let limit = INPUT_BYTES_MAX as u64 + 1;
    if let Err(error) = io::stdin().lock().take(limit).read_to_end(&mut input) {
        return Answered::blocked(format!("the hook input cannot be read: {error}"));
    }
    // One thread is enough for two requests, and starts sooner than several.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let answered = runtime.block_on(hook::answer(&input, options));
            runtime.shutdown_background();
            answered
        }
        Err(error) => Answered::blocked(format!("cannot start: {error}")),
    }
}

fn install(place: &Place, rules: &Rules, global: &Global) -> Result<u8, Failure> {
    let agent = place.agent;
    if rules.ask && !agent.asks() {
        return Err(Failure::usage(format!(
            "{} does not let a hook have its user asked; leave `--ask` out, and decide with `portcullis approvals`",
            agent.name()
        )));
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::unreadable(format!("cannot tell where this program is: {error}")))?;
    let file = place.file()?;
    let settings = Settings { agent, file, program, arguments: arguments(rules, global)? };
    let change = hook::install(&settings).map_err(Failure::unreadable)?;
    let mut out = Out::new();
    carry_out(&change, place, &mut out, global)?;
    if !global.json {
        let file = change.file.display();
        let command = change.command.as_deref().unwrap_or_default();
        let starts = if place.dry_run { "would start" } else { "starts" };
        out.line(format_args!("{STRONG}{file}{STRONG:#} {starts} `{command}`"))?;
        out.line(format_args!("for {}", change.events.join(", ")))?;
        out.line(format_args!(
            "it answers within {} s; held calls: `portcullis approvals list`",
            ANSWER_MAX.as_secs()
        ))?;
        if let Some(besides) = hook::besides(agent) {
            out.line(format_args!("{besides}"))?;
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

fn uninstall(place: &Place, global: &Global) -> Result<u8, Failure> {
    let change = hook::uninstall(place.agent, &place.file()?).map_err(Failure::unreadable)?;
    let mut out = Out::new();
    carry_out(&change, place, &mut out, global)?;
    if !global.json {
        let file = change.file.display();
        let state = match (change.replaced, place.dry_run) {
            (0, _) => "has no entry of the hook",
            (_, true) => "would have no entry of the hook any more",
            (_, false) => "has no entry of the hook any more",
        };
        out.line(format_args!("{STRONG}{file}{STRONG:#} {state}"))?;
    }
    out.finish()?;
    Ok(exit::YES)
}

/// Shows a change and makes it, unless it is only to be shown.
fn carry_out(change: &Change, place: &Place, out: &mut Out, global: &Global) -> Result<(), Failure> {
    if !place.dry_run {
        change.write().map_err(Failure::unreadable)?;
    }
    if global.json {
        return out.json(&json!({
            "agent": place.agent.id(), "file": change.file, "command": change.command,
            "events": change.events, "replaced": change.replaced, "changed": !change.is_nothing(),
            "written": !place.dry_run && !change.is_nothing(), "difference": change.difference(),
        }));
    }
    change.difference().lines().try_for_each(|line| out.line(format_args!("{}", clean(line))))
}

impl Place {
    fn file(&self) -> Result<PathBuf, Failure> {
        let scope = match (self.local, self.user) {
            (true, _) => Scope::Local,
            (_, true) => Scope::User,
            _ => Scope::Project,
        };
        let folder = if scope == Scope::User { home()? } else { current()? };
        hook::settings_file(self.agent, scope, &folder).ok_or_else(|| {
            let none = match scope {
                Scope::Local => "for one project and one user",
                _ => "for one project; use `--user`",
            };
            Failure::usage(format!("{} has no settings {none}", self.agent.name()))
        })
    }
}

fn home() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.ok_or_else(|| Failure::unreadable("HOME is not set"))
}

fn current() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::unreadable(format!("no current folder: {error}")))
}

/// What stands in the settings that count in this folder.
fn status(agent: Agent, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    let mut governed = false;
    for (scope, word) in [(Scope::Project, "project"), (Scope::Local, "local"), (Scope::User, "user")] {
        let folder = if scope == Scope::User { home()? } else { current()? };
        let Some(file) = hook::settings_file(agent, scope, &folder) else { continue };
        let standing = hook::standing(agent, &file).map_err(Failure::unreadable)?;
        let (state, detail) = match &standing {
            Standing::Governed(command) => ("governed", Some(command)),
            Standing::Changed(why) => ("changed", Some(why)),
            Standing::Broken(why) => ("broken", Some(why)),
            Standing::Absent => ("absent", None),
        };
        governed |= state == "governed";
        if global.json {
            out.json(
                &json!({"agent": agent.id(), "scope": word, "file": file, "state": state, "detail": detail}),
            )?;
        } else {
            let detail = detail.map(|detail| format!(": {}", clean(detail))).unwrap_or_default();
            out.line(format_args!("{state:<8}  {word:<7}  {}{detail}", file.display()))?;
        }
    }
    if !global.json {
        match (governed, hook::besides(agent)) {
            (true, Some(besides)) => out.line(format_args!("{besides}"))?,
            (true, None) => {}
            (false, _) => out.line(format_args!("-> portcullis hook install {}", agent.id()))?,
        }
    }
    out.finish()?;
    Ok(if governed { exit::YES } else { exit::NO })
}

/// The options as they stand in the settings: absolute, since the client starts the hook anywhere.
fn arguments(rules: &Rules, global: &Global) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    if let Some(home) = global.home_given()? {
        words.extend(["--home".to_owned(), home.path().display().to_string()]);
    }
    if let Some(bundle) = &rules.bundle {
        check_folder(bundle)?;
        let folder = std::path::absolute(bundle).map_err(|error| Failure::unreadable(error.to_string()))?;
        words.extend(["--bundle".to_owned(), folder.display().to_string()]);
    }
    if let Some(policy) = &rules.policy {
        words.extend(["--policy".to_owned(), policy.clone()]);
    }
    words.extend(rules.ask.then(|| "--ask".to_owned()));
    words.extend(rules.defer.then(|| "--defer".to_owned()));
    words.extend(rules.uncontained.then(|| "--uncontained".to_owned()));
    Ok(words)
}

const _: () = assert!(BLOCKED == exit::INCOMPLETE, "code 2 is what blocks");
