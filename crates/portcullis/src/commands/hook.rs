//! `portcullis hook`: answers the hooks of a coding agent.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use portcullis_gateway::hook::{
    self, Answered, BLOCKED, Change, HookOptions, InstallError, Scope, Settings, Standing,
};
use portcullis_hook::limit::{ANSWER_MAX, WHOLE_MAX, within};
use portcullis_hook::place::project_variable;
use portcullis_session::shipped;
use portcullis_wire::hook::{Agent, INPUT_BYTES_MAX};
use serde_json::json;

use crate::bundle::{check_policy, open_in};
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

Shows what is added to the settings. Everything else in them stays as it is
written, and `uninstall` gives the file that was there before.
Exit codes: 0 it is installed, 3 the settings cannot be read and were left alone,
64 the agent has no such settings, or the bundle no such policy.";

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
    let change = hook::install(&settings).map_err(not_installed)?;
    let mut out = Out::new();
    carry_out(&change, place, &mut out, global)?;
    if !global.json {
        let file = change.file.display();
        let command = change.command.as_deref().unwrap_or_default();
        let starts = match (change.is_nothing(), place.dry_run) {
            (true, _) => "is as it was, because the hook is already installed: it starts",
            (false, true) => "would start",
            (false, false) => "starts",
        };
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

/// Why it is not, with what a person can do instead.
fn not_installed(error: InstallError) -> Failure {
    let by_hand = match &error {
        InstallError::Unfit { by_hand, .. } => by_hand.clone(),
        InstallError::Io { .. } => None,
    };
    let failure = Failure::unreadable(error);
    match by_hand {
        Some(entries) => failure.help(format!("if it does read them, add these entries by hand:\n{entries}")),
        None => failure,
    }
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
        still_elsewhere(place.agent, &change.file, &mut out)?;
    }
    out.finish()?;
    Ok(exit::YES)
}

/// The agent's settings that count in this folder.
fn all_settings(agent: Agent) -> Result<Vec<(Scope, PathBuf)>, Failure> {
    let mut all = Vec::new();
    for scope in [Scope::Project, Scope::Local, Scope::User] {
        let folder = if scope == Scope::User { home()? } else { current()? };
        all.extend(hook::settings_file(agent, scope, &folder).map(|file| (scope, file)));
    }
    Ok(all)
}

/// Names the other settings that still have the hook.
fn still_elsewhere(agent: Agent, taken_out: &Path, out: &mut Out) -> Result<(), Failure> {
    for (scope, file) in all_settings(agent)? {
        // What cannot be read here was not asked for.
        let is_there = !matches!(hook::standing(agent, &file), Ok(Standing::Absent) | Err(_));
        if file != taken_out && is_there {
            let option = match scope {
                Scope::Project => "",
                Scope::Local => " --local",
                Scope::User => " --user",
            };
            let (file, agent) = (file.display(), agent.id());
            out.line(format_args!("it is still in {file}: portcullis hook uninstall {agent}{option}"))?;
        }
    }
    Ok(())
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
    // A tab does no harm, and is how some settings are indented.
    let shown =
        |line: &str| line.split('\t').map(|part| clean(part).to_string()).collect::<Vec<_>>().join("\t");
    change.difference().lines().try_for_each(|line| out.line(format_args!("{}", shown(line))))
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
            let name = self.agent.name();
            Failure::usage(match scope {
                Scope::Local => format!(
                    "`--local` is for Claude Code only: {name} has no settings for one person in one project; \
                     use `--user`"
                ),
                _ => format!("{name} has no settings for one project; use `--user`"),
            })
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
    for (scope, file) in all_settings(agent)? {
        let word = match scope {
            Scope::Project => "project",
            Scope::Local => "local",
            Scope::User => "user",
        };
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

/// The options as they stand in the settings: absolute, since the client starts the hook anywhere, and with the state
/// folder that a variable names here, since the client may not have the variable.
fn arguments(rules: &Rules, global: &Global) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    if let Some(home) = global.home_named()? {
        words.extend(["--home".to_owned(), plain(home.path())?]);
    }
    if rules.bundle.is_some() || rules.policy.is_some() {
        let opened = open_in(rules.bundle.clone(), shipped::developer_bundle)?;
        check_policy(&opened.bundle, rules.policy.as_deref())?;
    }
    if let Some(bundle) = &rules.bundle {
        words.extend(["--bundle".to_owned(), plain(bundle)?]);
    }
    if let Some(policy) = &rules.policy {
        words.extend(["--policy".to_owned(), policy.clone()]);
    }
    words.extend(rules.ask.then(|| "--ask".to_owned()));
    words.extend(rules.defer.then(|| "--defer".to_owned()));
    words.extend(rules.uncontained.then(|| "--uncontained".to_owned()));
    Ok(words)
}

/// A folder from the root on, without `..`, which leads elsewhere once a link above it changes.
fn plain(folder: &Path) -> Result<String, Failure> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot name `{}` in settings: {why}", folder.display()))
    };
    let mut whole = std::path::absolute(folder).map_err(|error| unreadable(&error))?;
    if whole.components().any(|part| part == Component::ParentDir) {
        let (above, name) = match (fs::canonicalize(&whole), whole.parent(), whole.file_name()) {
            (Ok(there), ..) => (there, None),
            (Err(_), Some(above), Some(name)) => {
                (fs::canonicalize(above).map_err(|error| unreadable(&error))?, Some(name))
            }
            (Err(error), ..) => return Err(unreadable(&error)),
        };
        whole = name.map_or(above.clone(), |name| above.join(name));
    }
    whole.to_str().map(str::to_owned).ok_or_else(|| unreadable(&"its path is not UTF-8"))
}

const _: () = assert!(BLOCKED == exit::INCOMPLETE, "code 2 is what blocks");
