//! The command line: what can be said, and how mistakes in it are answered.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use portcullis_gateway::home::Home;
use portcullis_gateway::hook::BLOCKED;

use crate::advice::keep_home;
use crate::commands::{
    approvals, backup, bench, calibrate, check, completions, console, contract, demo, demo_server, doctor,
    erase, eval, export, facts, freeze, fsck, governance, hammer, hook, init, log, manual, mcp, monitor,
    openapi, policy, program, retention, run, runs, serve, simulate, tools, train, upstream, verify,
    verify_output, witness, work,
};
use crate::exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis demo
  portcullis mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  portcullis approvals list
  portcullis check examples/traces/assistant.jsonl

Exit codes, of every command:
   0  yes: allowed, valid, passed
   1  no: denied, invalid, failed
   2  incomplete, or blocked until a person decides
   3  something could not be read
  64  the command line is wrong";

/// The gate between an AI agent and the world.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version = env!("PORTCULLIS_VERSION"), after_help = EXAMPLES, propagate_version = true)]
#[command(arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArgs {
    /// Print JSON, one object a line
    #[arg(long, global = true, action = clap::ArgAction::SetTrue, value_parser = Json::flag)]
    json: Json,
    /// State folder; otherwise $PORTCULLIS_HOME, or `portcullis` in the user's state folder
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// When to use colour; `auto` is for terminals only and honours NO_COLOR
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,
}

/// `--json`: a flag of nearly all commands; `eval` takes the name of a file there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    /// It was not given.
    No,
    /// Objects on standard output.
    Lines,
    /// A report in a file.
    File(PathBuf),
}

impl Json {
    /// How a file that was not given is spelt.
    pub(crate) const NONE: &str = "";

    #[expect(clippy::unnecessary_wraps, reason = "the form that the parser of the command line wants")]
    fn flag(text: &str) -> Result<Self, String> {
        Ok(if text == "true" { Self::Lines } else { Self::No })
    }

    /// The file that follows.
    #[expect(clippy::unnecessary_wraps, reason = "the form that the parser of the command line wants")]
    pub(crate) fn file(text: &str) -> Result<Self, String> {
        Ok(if text == Self::NONE { Self::No } else { Self::File(text.into()) })
    }
}

/// What every command is told.
#[derive(Debug, Clone)]
pub(crate) struct Global {
    /// Print JSON, one object a line.
    pub(crate) json: bool,
    home: Option<PathBuf>,
}

impl Global {
    /// What was said before the command; one that `speaks` a protocol prints nothing else.
    fn of(args: GlobalArgs, speaks: bool) -> Self {
        if let Some(home) = &args.home {
            keep_home(home);
        }
        Self { json: args.json == Json::Lines && !speaks, home: args.home }
    }

    /// The state folder.
    pub(crate) fn home(&self) -> Result<Home, Failure> {
        Home::resolve(self.home.as_deref()).map_err(Failure::unreadable)
    }

    /// The state folder, where it was named on the command line.
    pub(crate) fn home_given(&self) -> Result<Option<Home>, Failure> {
        self.home.as_deref().map(Home::at).transpose().map_err(Failure::unreadable)
    }

    /// The state folder, where it was named on the command line or by `PORTCULLIS_HOME`.
    pub(crate) fn home_named(&self) -> Result<Option<Home>, Failure> {
        let variable = std::env::var_os("PORTCULLIS_HOME").filter(|folder| !folder.is_empty());
        match variable.filter(|_| self.home.is_none()) {
            Some(folder) => Home::at(Path::new(&folder)).map(Some).map_err(Failure::unreadable),
            None => self.home_given(),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Init(init::Args),
    Mcp(mcp::Args),
    Hook(hook::Args),
    Run(run::Args),
    Approvals(approvals::Args),
    Console(console::Args),
    Runs(runs::Args),
    Freeze(freeze::Args),
    Work(work::Args),
    Facts(facts::Args),
    Export(export::Args),
    Erase(erase::Args),
    Retention(retention::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    Log(log::Args),
    Fsck(fsck::Args),
    Governance(governance::Args),
    Monitor(monitor::Args),
    Witness(witness::Args),
    Check(check::Args),
    Contract(contract::Args),
    VerifyOutput(verify_output::Args),
    Simulate(simulate::Args),
    Policy(policy::Args),
    Program(program::Args),
    Tools(tools::Args),
    Upstream(upstream::Args),
    Serve(serve::Args),
    Openapi(openapi::Args),
    Doctor(doctor::Args),
    DemoServer(demo_server::Args),
    Bench(bench::Args),
    Hammer(hammer::Args),
    Eval(eval::Args),
    Train(train::Args),
    Calibrate(calibrate::Args),
    Completions(completions::Args),
    Manual(manual::Args),
}

/// Runs the command line.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if completions::answered(&arguments) {
        return ExitCode::from(exit::YES);
    }
    // Mistakes in the command line are answered in the wanted form too, so these are read before it is.
    let as_json = said(&arguments, "--json");
    if said(&arguments, "--color=never") || said_twice(&arguments, "--color", "never") {
        ColorChoice::Never.write_global();
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let code = answer(&error, as_json);
            // A mistake in the client's settings must not let its agent pass the gate.
            let blocks = code != exit::YES && hook::is_answering(&arguments);
            return ExitCode::from(if blocks { BLOCKED } else { code });
        }
    };
    match cli.global.color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
    // These speak a protocol on standard output: even a failure must not stand there.
    let speaks = match &cli.command {
        Command::Mcp(_) | Command::DemoServer(_) => true,
        Command::Work(args) => args.speaks(),
        _ => false,
    };
    let global = Global::of(cli.global, speaks);
    let done = match cli.command {
        Command::Init(args) => init::run(&args, &global),
        Command::Mcp(args) => mcp::run(&args, &global),
        Command::Hook(args) => hook::run(&args, &global),
        Command::Run(args) => run::run(&args, &global),
        Command::Approvals(args) => approvals::run(&args, &global),
        Command::Console(args) => console::run(&args, &global),
        Command::Runs(args) => runs::run(&args, &global),
        Command::Freeze(args) => freeze::run(&args, &global),
        Command::Work(args) => work::run(&args, &global),
        Command::Facts(args) => facts::run(&args, &global),
        Command::Export(args) => export::run(&args, &global),
        Command::Governance(args) => governance::run(&args, &global),
        Command::Erase(args) => erase::run(&args, &global),
        Command::Retention(args) => retention::run(&args, &global),
        Command::Serve(args) => serve::run(&args, &global),
        Command::Openapi(args) => openapi::run(&args),
        Command::Doctor(args) => doctor::run(&args, &global),
        Command::Check(args) => check::run(&args, &global),
        Command::Contract(args) => contract::run(&args, &global),
        Command::VerifyOutput(args) => verify_output::run(&args, &global),
        Command::Verify(args) => verify::run(&args, &global),
        Command::Backup(args) => backup::run(&args, &global),
        Command::Log(args) => log::run(&args, &global),
        Command::Fsck(args) => fsck::run(&args, &global),
        Command::Monitor(args) => monitor::run(&args, &global),
        Command::Witness(args) => witness::run(&args, &global),
        Command::Policy(args) => policy::run(&args, &global),
        Command::Program(args) => program::run(&args, &global),
        Command::Tools(args) => tools::run(&args, &global),
        Command::Upstream(args) => upstream::run(&args, &global),
        Command::Simulate(args) => simulate::run(&args, &global),
        Command::Demo(args) => demo::run(&args, &global),
        Command::DemoServer(args) => demo_server::run(&args),
        Command::Bench(args) => bench::run(&args, &global),
        Command::Hammer(args) => hammer::run(&args, &global),
        Command::Eval(args) => eval::run(&args),
        Command::Train(args) => train::run(&args, &global),
        Command::Calibrate(args) => calibrate::run(&args, &global),
        Command::Completions(args) => completions::run(&args),
        Command::Manual(args) => manual::run(&args),
    };
    ExitCode::from(done.unwrap_or_else(|failure| failure.tell(global.json)))
}

/// The arguments of our own: what follows `--` belongs to somebody else's command.
fn own(arguments: &[OsString]) -> impl Iterator<Item = &OsString> {
    arguments.iter().take_while(|argument| *argument != "--")
}

fn said(arguments: &[OsString], wanted: &str) -> bool {
    own(arguments).any(|argument| argument == wanted)
}

fn said_twice(arguments: &[OsString], first: &str, second: &str) -> bool {
    own(arguments).zip(own(arguments).skip(1)).any(|(one, two)| one == first && two == second)
}

/// Help, version, or what is wrong with the command line.
fn answer(error: &clap::Error, as_json: bool) -> u8 {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked_for {
        let mut out = anstream::stdout().lock();
        return match write!(out, "{}", error.render().ansi()).and_then(|()| out.flush()) {
            Ok(()) => exit::YES,
            // Whoever looked at the first lines has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit::YES,
            Err(error) => Failure::from(error).tell(as_json),
        };
    }
    if as_json {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        return Failure::usage(message).help("see `portcullis --help`").tell(true);
    }
    // Nobody to tell when standard error is closed; the exit code stands.
    let _unwritten = write!(anstream::stderr(), "{}", error.render().ansi());
    exit::USAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_arguments_of_others_are_not_ours() {
        let arguments: Vec<OsString> = ["p", "--color", "never", "--", "--json"].map(OsString::from).into();
        assert!(said_twice(&arguments, "--color", "never"));
        assert!(!said(&arguments, "--json"));
    }
}
