//! `portcullis hook`: answers the hooks of a coding agent.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use portcullis_gateway::hook::{self, Answered, BLOCKED, HookOptions, Settings};
use portcullis_hook::limit::{ANSWER_MAX, WHOLE_MAX, within};
use portcullis_wire::hook::INPUT_BYTES_MAX;
use serde_json::json;

use crate::bundle::check_folder;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, STRONG};

const EXAMPLES: &str = "\
Examples:
  portcullis hook install
  portcullis hook install --user --bundle ~/my-bundle
  portcullis hook < input.json

Started by the client for each event of its session, with the event as JSON on standard input. The answer goes to \
standard output. The exit code is 0, or 2 whenever the gate could not answer, which blocks the call.";

const EXAMPLES_INSTALL: &str = "\
Examples:
  portcullis hook install
  portcullis hook install --local --ask
  portcullis hook install --user";

/// Judge what a coding agent does: answer the hooks of Claude Code
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
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
    /// Write the hook into the client's settings
    #[command(after_help = EXAMPLES_INSTALL)]
    Install {
        /// For you, in this project only: `.claude/settings.local.json`
        #[arg(long, conflicts_with = "user")]
        local: bool,
        /// For you, in all projects: `~/.claude/settings.json`
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        rules: Rules,
    },
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
            Some("hook") => return words.next().is_none_or(|word| word != "install"),
            _ => return false,
        }
    }
    false
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        None => answer(args, global),
        Some(Command::Install { local, user, rules }) => install(*local, *user, rules, global),
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
    let Args { rules, earlier, .. } = args;
    Ok(HookOptions {
        home: global.home()?,
        bundle: rules.bundle.clone(),
        policy: rules.policy.clone(),
        ask: rules.ask,
        defer: rules.defer,
        uncontained: rules.uncontained,
        project: folder("CLAUDE_PROJECT_DIR"),
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

fn install(local: bool, user: bool, rules: &Rules, global: &Global) -> Result<u8, Failure> {
    let folder = if user {
        std::env::var_os("HOME").map(PathBuf::from).ok_or_else(|| Failure::unreadable("HOME is not set"))?
    } else {
        std::env::current_dir().map_err(|error| Failure::unreadable(format!("no current folder: {error}")))?
    };
    let name = if local { "settings.local.json" } else { "settings.json" };
    let program = std::env::current_exe()
        .map_err(|error| Failure::unreadable(format!("cannot tell where this program is: {error}")))?;
    let settings =
        Settings { file: folder.join(".claude").join(name), program, arguments: arguments(rules, global)? };
    let installed = hook::install(&settings).map_err(Failure::unreadable)?;
    let mut out = Out::new();
    if global.json {
        out.json(&json!({"file": settings.file, "command": installed.command, "events": installed.events,
                         "replaced": installed.replaced}))?;
    } else {
        let file = settings.file.display();
        out.line(format_args!("{STRONG}{file}{STRONG:#} starts `{}`", installed.command))?;
        out.line(format_args!("for {}", installed.events.join(", ")))?;
        out.line(format_args!(
            "it answers within {} s; what is held: `portcullis approvals list`",
            ANSWER_MAX.as_secs()
        ))?;
    }
    out.finish()?;
    Ok(exit::YES)
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
