//! `portcullis freeze`: a person stops runs at once, and releases them in two steps.

use portcullis_core::freeze::{FreezeOrder, FreezeScope, Frozen};
use portcullis_gateway::api::{
    FreezeAnswer, FreezeInfo, FreezeRuns, FreezeTarget, ReleaseRuns, ReleaseStage,
};

use crate::cli::Global;
use crate::commands::completions::{principals, run_ids};
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis freeze --all --note \"odd payments, we are looking\"
  portcullis freeze --run 0199ab3c
  portcullis freeze list
  portcullis freeze release --all --reads
  portcullis freeze release --all

No agent gets a permit once this has answered; calls that wait for a person are answered. A call that a server is \
already working on is not undone. Grants and requests stay, and time does not run for them. Freezing and releasing \
need the approver's credential of the state folder.";

/// Freeze runs: nothing goes ahead until a person releases them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    scope: Option<ScopeArgs>,
    /// Why: for the record, and for the agents, who are told
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// What to freeze or to release.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ScopeArgs {
    /// One run, by its id or the start of it
    #[arg(long, value_name = "ID", add = run_ids())]
    run: Option<String>,
    /// All runs of a principal, and those that it opens
    #[arg(long, value_name = "NAME", add = principals())]
    principal: Option<String>,
    /// All runs, and those that are opened
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the freezes that are in force
    #[command(after_help = "Examples:\n  portcullis freeze list\n  portcullis freeze list --history --json")]
    List {
        /// Those that were released as well, the latest first
        #[arg(long)]
        history: bool,
    },
    /// Release exactly what was frozen
    #[command(
        after_help = "Examples:\n  portcullis freeze release --principal ida --reads\n  portcullis freeze release --principal ida --note \"it was the test\""
    )]
    Release {
        #[command(flatten)]
        scope: ScopeArgs,
        /// Only what has no side effect; the rest stays frozen
        #[arg(long)]
        reads: bool,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
}

impl ScopeArgs {
    fn target(&self) -> FreezeTarget {
        match (&self.run, &self.principal) {
            (Some(run), _) => FreezeTarget::Run(run.clone()),
            (None, Some(name)) => FreezeTarget::Principal(name.clone()),
            (None, None) => FreezeTarget::All,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.command.is_some() && (args.scope.is_some() || args.note.is_some()) {
        return Err(Failure::usage("options of `freeze` stand after `list` or `release`, not before")
            .help("see `portcullis freeze --help`"));
    }
    let mut out = Out::new();
    match (&args.command, &args.scope) {
        (Some(Command::List { history }), _) => {
            let freezes = Daemon::as_reader(global)?.ask(|client| client.freezes(*history))?;
            list(&mut out, &freezes, *history, global)?;
        }
        (Some(Command::Release { scope, reads, note }), _) => {
            let stage = if *reads { ReleaseStage::Reads } else { ReleaseStage::All };
            let release = ReleaseRuns { scope: scope.target(), stage, note: note.clone() };
            let answer = Daemon::as_approver(global)?.ask(|client| client.release(&release))?;
            released(&mut out, &answer, global)?;
        }
        (None, Some(scope)) => {
            let freeze = FreezeRuns { scope: scope.target(), note: args.note.clone() };
            let answer = Daemon::as_approver(global)?.ask(|client| client.freeze(&freeze))?;
            frozen(&mut out, &answer, global)?;
        }
        (None, None) => {
            return Err(Failure::usage("say what to freeze: `--run ID`, `--principal NAME` or `--all`"));
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

/// What a freeze covers, in words.
fn covered(scope: &FreezeScope) -> String {
    clean_line(&scope.to_string()).into_owned()
}

/// The options that name a scope.
fn options(scope: &FreezeScope) -> String {
    match scope {
        FreezeScope::Run(run) => format!("--run {}", out::short(run)),
        FreezeScope::Principal(name) => format!("--principal {}", word(name)),
        FreezeScope::All => "--all".to_owned(),
    }
}

/// A name as a word of a command line.
fn word(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:/".contains(&byte);
    match name.bytes().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", clean_line(name).replace('\'', "'\\''")),
    }
}

fn live(runs: u64) -> String {
    count(runs, "live run", "live runs")
}

fn frozen(out: &mut Out, answer: &FreezeAnswer, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(answer);
    }
    let (freeze, bad, faint) = (&answer.freeze.freeze, out::BAD, out::FAINT);
    let scope = covered(&freeze.scope);
    if answer.already {
        out.line(format_args!(
            "{bad}already frozen{bad:#}  {scope}: {}; nothing changed",
            ordered(&freeze.frozen)
        ))?;
    } else {
        out.line(format_args!("{bad}frozen{bad:#}  {scope}, {} stopped", live(answer.runs)))?;
    }
    let notice = out::NOTICE;
    if !answer.known {
        out.next_step(format_args!(
            "{notice}the store has no run of this principal; `portcullis runs show` names the principal of a run{notice:#}"
        ))?;
    }
    unrecorded(out, answer)?;
    out.next_step(format_args!(
        "{faint}calls that servers are already working on are not undone; release with `portcullis freeze release {}`{faint:#}",
        options(&freeze.scope)
    ))
}

fn released(out: &mut Out, answer: &FreezeAnswer, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(answer);
    }
    let (freeze, good, notice) = (&answer.freeze.freeze, out::GOOD, out::NOTICE);
    let (scope, options) = (covered(&freeze.scope), options(&freeze.scope));
    match answer.freeze.stops {
        Some(_) if answer.already => {
            out.line(format_args!("{notice}reads already released{notice:#}  {scope}; nothing changed"))?
        }
        Some(_) => {
            out.line(format_args!("{notice}reads released{notice:#}  {scope}, {}", live(answer.runs)))?
        }
        None => out.line(format_args!("{good}released{good:#}  {scope}, {}", live(answer.runs)))?,
    }
    if answer.freeze.stops.is_some() {
        out.next_step(format_args!(
            "calls with side effects stay frozen; release them with `portcullis freeze release {options}`"
        ))?;
    }
    if answer.held_by_others > 0 {
        out.next_step(format_args!(
            "{notice}still frozen by other freezes: {}; `portcullis freeze list` shows them{notice:#}",
            live(answer.held_by_others)
        ))?;
    }
    unrecorded(out, answer)
}

fn unrecorded(out: &mut Out, answer: &FreezeAnswer) -> Result<(), Failure> {
    let notice = out::NOTICE;
    match answer.unrecorded {
        0 => Ok(()),
        runs => out.line(format_args!(
            "{notice}{} could not record it yet, and will do so before anything else; the daemon's log says why{notice:#}",
            live(runs)
        )),
    }
}

/// Who ordered something, when and why.
fn ordered(order: &FreezeOrder) -> String {
    let note = order.note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
    format!("{} by {}{}", out::seconds(order.at), clean_line(&order.by), clean_line(&note))
}

fn list(out: &mut Out, freezes: &[FreezeInfo], history: bool, global: &Global) -> Result<(), Failure> {
    if global.json {
        return freezes.iter().try_for_each(|freeze| out.json(freeze));
    }
    if freezes.is_empty() {
        return out
            .line(format_args!("{}", if history { "nothing was ever frozen" } else { "nothing is frozen" }));
    }
    for FreezeInfo { freeze, stops } in freezes {
        let (word, style) = match stops {
            Some(Frozen::Everything) => ("frozen", out::BAD),
            Some(Frozen::SideEffects) => ("reads", out::NOTICE),
            None => ("released", out::FAINT),
        };
        out.line(format_args!("{style}{word}{style:#}  {}", covered(&freeze.scope)))?;
        let orders = [
            ("frozen", Some(&freeze.frozen)),
            ("reads", freeze.reads_released.as_ref()),
            ("released", freeze.released.as_ref()),
        ];
        for (name, order) in orders {
            if let Some(order) = order {
                out.line(format_args!("  {name:<8}  {}", ordered(order)))?;
            }
        }
    }
    Ok(())
}
