//! `portcullis work`: the work items of a run, what they are measured by, and a person's say in them.

mod audit;
mod statement;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use portcullis_core::event::{Event, EventBody};
use portcullis_core::state::RunState;
use portcullis_core::work::{Came, ItemId, ItemState, Owner, Verified, WorkItem};
use portcullis_gateway::api::{WAIT_MS_MAX, WorkAnswer, WorkOperation, WorkRequest};
use portcullis_gateway::mcp::{WorkServer, serve_work};
use serde::Serialize;
use serde_json::Value;

use crate::bundle::{BundleArg, check_folder};
use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::daemon::{Daemon, runtime};
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis work list 0199ab3c
  portcullis work add 0199ab3c \"fix the parser\" --criteria criteria.json
  portcullis work show 0199ab3c 1
  portcullis work verify 0199ab3c 1
  portcullis work attest 0199ab3c 2 --reason \"read it, it is right\"
  portcullis work audit 0199ab3c
  portcullis work statement 0199ab3c 1 > statement.json
  portcullis work --mcp

An item is done when its criteria pass or a person attests it; the agent's word is not enough. `--mcp` serves the items \
to an agent: put it into the client's configuration beside the other servers.";

/// Most bytes of a file with criteria.
const CRITERIA_FILE_BYTES_MAX: u64 = 256 << 10;
/// Events that are read at a time.
const EVENTS_PAGE: u32 = 1_000;

/// List, check and attest work items of a run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve the items to an agent, as an MCP server on standard input and output
    #[arg(long, required = true)]
    mcp: bool,
    #[command(flatten)]
    bundle: BundleArg,
    /// Name of the runtime policy of a run that this opens
    #[arg(long, value_name = "NAME", requires = "mcp")]
    policy: Option<String>,
    /// The folder in which the agent works; otherwise this one
    #[arg(long, value_name = "DIR", requires = "mcp")]
    workspace: Option<PathBuf>,
    /// The client session, by which the items belong to the run of its other servers
    #[arg(long, value_name = "ID", requires = "mcp")]
    session: Option<String>,
}

/// A run and one of its items.
#[derive(Debug, clap::Args)]
struct Which {
    /// The run, by its id or the start of it
    #[arg(add = run_ids())]
    run: String,
    /// The number of the item
    item: u32,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the items of a run
    #[command(
        after_help = "Examples:\n  portcullis work list 0199ab3c\n  portcullis work list 0199ab3c --json"
    )]
    List {
        /// The run, by its id or the start of it
        #[arg(add = run_ids())]
        run: String,
    },
    /// Show an item, with what was done to it
    #[command(after_help = "Examples:\n  portcullis work show 0199ab3c 1")]
    Show(Which),
    /// List what was done to the items of a run, one line for each
    #[command(after_help = "Examples:\n  portcullis work audit 0199ab3c")]
    Audit {
        /// The run, by its id or the start of it
        #[arg(add = run_ids())]
        run: String,
    },
    /// Print a signed statement that an item is verified
    ///
    /// An in-toto statement in a DSSE envelope, signed with the key of the store's log. `portcullis verify FILE --trust
    /// trust.policy` checks it.
    #[command(after_help = "Examples:\n  portcullis work statement 0199ab3c 1 > statement.json")]
    Statement(Which),
    /// Make an item
    #[command(
        after_help = "Examples:\n  portcullis work add 0199ab3c \"fix the parser\" --criteria tests.json"
    )]
    Add {
        /// The run, by its id or the start of it
        #[arg(add = run_ids())]
        run: String,
        /// What is to be done
        title: String,
        /// A JSON file with a list of criteria; `-` is standard input
        #[arg(long, value_name = "FILE")]
        criteria: Option<PathBuf>,
        /// A path that has to stay as it is for evidence to count; otherwise the whole project
        #[arg(long, value_name = "PATH")]
        covers: Vec<String>,
    },
    /// Set the criteria of an item that has not started
    #[command(after_help = "Examples:\n  portcullis work require 0199ab3c 1 --criteria criteria.json")]
    Require {
        #[command(flatten)]
        which: Which,
        /// A JSON file with a list of criteria; `-` is standard input
        #[arg(long, value_name = "FILE")]
        criteria: PathBuf,
    },
    /// Accept the criteria that the agent proposes
    #[command(after_help = "Examples:\n  portcullis work accept 0199ab3c 1")]
    Accept(Which),
    /// Do not accept the criteria that the agent proposes
    #[command(after_help = "Examples:\n  portcullis work decline 0199ab3c 1 --reason \"run the tests\"")]
    Decline(Said),
    /// Have the criteria of a claimed item checked
    #[command(after_help = "Examples:\n  portcullis work verify 0199ab3c 1")]
    Verify(Which),
    /// Say that a claimed item is done
    #[command(
        after_help = "Examples:\n  portcullis work attest 0199ab3c 1 --reason \"read it, it is right\""
    )]
    Attest(Said),
    /// Send a claimed item back
    #[command(
        after_help = "Examples:\n  portcullis work ask-changes 0199ab3c 1 --reason \"the log is missing\""
    )]
    AskChanges(Said),
    /// Take an item out of the list; its history stays
    #[command(after_help = "Examples:\n  portcullis work bury 0199ab3c 1 --reason \"no longer wanted\"")]
    Bury(Said),
}

/// An item, and why.
#[derive(Debug, clap::Args)]
struct Said {
    #[command(flatten)]
    which: Which,
    /// Why: for the record, and for the agent
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let Some(command) = &args.command else { return serve(args, global) };
    let mut out = Out::new();
    let code = match command {
        Command::List { run } => list(&mut out, run, global)?,
        Command::Show(which) => show(&mut out, which, global)?,
        Command::Audit { run } => audit(&mut out, run, global)?,
        Command::Statement(which) => statement::state(&mut out, which, global)?,
        Command::Add { run, title, criteria, covers } => {
            let criteria = criteria.as_deref().map(read_criteria).transpose()?.unwrap_or_default();
            let (title, covers, owner) = (title.clone(), covers.clone(), Some(Owner::User));
            operate(&mut out, run, WorkOperation::Create { title, criteria, owner, covers }, global)?
        }
        Command::Require { which, criteria } => {
            let (item, criteria, owner) = (which.id(), read_criteria(criteria)?, Some(Owner::User));
            operate(&mut out, &which.run, WorkOperation::Require { item, criteria, owner }, global)?
        }
        Command::Accept(which) => {
            operate(&mut out, &which.run, WorkOperation::Accept { item: which.id() }, global)?
        }
        Command::Verify(which) => {
            operate(&mut out, &which.run, WorkOperation::Verify { item: which.id() }, global)?
        }
        Command::Decline(Said { which, reason }) => {
            let (item, reason) = (which.id(), reason.clone());
            operate(&mut out, &which.run, WorkOperation::Decline { item, reason }, global)?
        }
        Command::Attest(Said { which, reason }) => {
            let (item, reason) = (which.id(), reason.clone());
            operate(&mut out, &which.run, WorkOperation::Attest { item, reason }, global)?
        }
        Command::AskChanges(Said { which, reason }) => {
            let (item, reason) = (which.id(), reason.clone());
            operate(&mut out, &which.run, WorkOperation::AskChanges { item, reason }, global)?
        }
        Command::Bury(Said { which, reason }) => {
            let (item, reason) = (which.id(), reason.clone());
            operate(&mut out, &which.run, WorkOperation::Bury { item, reason }, global)?
        }
    };
    out.finish()?;
    Ok(code)
}

impl Args {
    /// Whether standard output belongs to a protocol.
    pub(crate) fn speaks(&self) -> bool {
        self.mcp
    }
}

impl Which {
    fn id(&self) -> ItemId {
        ItemId(self.item)
    }
}

fn serve(args: &Args, global: &Global) -> Result<u8, Failure> {
    args.bundle.folder().map_or(Ok(()), check_folder)?;
    let server = WorkServer {
        home: global.home()?,
        session: args.session.clone(),
        bundle: args.bundle.folder().map(ToOwned::to_owned),
        policy: args.policy.clone(),
        workspace: args.workspace.clone(),
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(serve_work(server));
    // A read of standard input may never return, and nobody waits for it any more.
    runtime.shutdown_background();
    ended.map_err(Failure::unreadable)?;
    Ok(exit::YES)
}

fn read_criteria(file: &Path) -> Result<Vec<Value>, Failure> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot read the criteria `{}`: {why}", file.display()))
            .help("give a JSON list, such as [{\"type\": \"file_exists\", \"path\": \"report.md\"}]; see docs/work.md")
    };
    let mut text = String::new();
    let limit = CRITERIA_FILE_BYTES_MAX + 1;
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().take(limit).read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|file| file.take(limit).read_to_string(&mut text)),
    };
    read.map_err(|error| unreadable(&error))?;
    if text.len() as u64 > CRITERIA_FILE_BYTES_MAX {
        return Err(unreadable(&format!("it has more than {CRITERIA_FILE_BYTES_MAX} bytes")));
    }
    serde_json::from_str(&text).map_err(|error| unreadable(&error))
}

/// The run as its record says, live or not, with what was done to one item, or to all.
fn recorded(run: &str, item: Option<ItemId>, global: &Global) -> Result<(RunState, Vec<Event>), Failure> {
    let daemon = Daemon::as_reader(global)?;
    let (mut state, mut history, mut after) = (RunState::new(), Vec::new(), 0);
    loop {
        let page = daemon.ask(|client| client.events_joined(run, after, EVENTS_PAGE))?;
        for line in page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event = Event::from_line(line).map_err(Failure::unreadable)?;
            state.apply(&event);
            let concerns = |event: &Event| match &event.body {
                EventBody::Work(record) => {
                    item.is_none_or(|item| record.item == Some(item) || record.items.contains(&item))
                }
                _ => false,
            };
            if concerns(&event) {
                history.push(event);
            }
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => return Ok((state, history)),
        }
    }
}

fn list(out: &mut Out, run: &str, global: &Global) -> Result<u8, Failure> {
    let (state, _) = recorded(run, None, global)?;
    let items: Vec<&WorkItem> = state.works().items().collect();
    if global.json {
        items.iter().try_for_each(|item| out.json(item))?;
    } else if items.is_empty() {
        out.next_step(format_args!("this run has no work items; `portcullis work add` makes one"))?;
    } else {
        items.iter().try_for_each(|item| line(out, item))?;
    }
    Ok(exit::YES)
}

fn audit(out: &mut Out, run: &str, global: &Global) -> Result<u8, Failure> {
    let (_, history) = recorded(run, None, global)?;
    for event in &history {
        if let EventBody::Work(record) = &event.body {
            audit::lines(event, record).iter().try_for_each(|line| out.line(format_args!("{line}")))?;
        }
    }
    Ok(exit::YES)
}

/// One line about an item.
fn line(out: &mut Out, item: &WorkItem) -> Result<(), Failure> {
    let (word, style) = standing(item);
    let title = clean_line(&item.title);
    let more = match (item.buried, item.stale(), item.waits, item.proposed.is_empty()) {
        (true, ..) => String::new(),
        (_, Some(event), ..) => format!("  (evidence is stale since event {event})"),
        (_, _, true, _) => "  (waits for a person)".to_owned(),
        (.., false) => "  (criteria are proposed)".to_owned(),
        _ => String::new(),
    };
    let faint = out::FAINT;
    out.line(format_args!(
        "{:>4}  {style}{word:<11}{style:#}  {title}{faint}{more}{faint:#}",
        item.id.to_string()
    ))
}

fn standing(item: &WorkItem) -> (&'static str, anstyle::Style) {
    match (item.state, item.verified) {
        _ if item.buried => ("buried", out::FAINT),
        (ItemState::Verified, Some(Verified::Attested)) => ("attested", out::GOOD),
        (ItemState::Verified, _) => ("verified", out::GOOD),
        (ItemState::Claimed, _) => ("claimed", out::NOTICE),
        (ItemState::InProgress, _) => ("in progress", out::STRONG),
        (ItemState::Pending, _) => ("pending", out::FAINT),
    }
}

/// An item with its history, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    item: &'a WorkItem,
    history: &'a [Event],
}

fn show(out: &mut Out, which: &Which, global: &Global) -> Result<u8, Failure> {
    let (state, history) = recorded(&which.run, Some(which.id()), global)?;
    let Some(item) = state.works().item(which.id()) else {
        return Err(Failure::no(format!("run {} has no item {}", which.run, which.id()))
            .help("`portcullis work list` shows the items of a run"));
    };
    if global.json {
        out.json(&Shown { item, history: &history })?;
        return Ok(exit::YES);
    }
    described(out, item)?;
    let faint = out::FAINT;
    for event in &history {
        if let EventBody::Work(record) = &event.body {
            let (at, told) = (out::seconds(event.t), record.to_string());
            let why = if record.why.is_empty() { String::new() } else { format!(": {}", record.why) };
            let (told, actor) =
                (clean_line(&told).into_owned(), clean_line(event.actor.as_str()).into_owned());
            out.line(format_args!(
                "{:>6}  {faint}{at}{faint:#}  {actor}  {told}{}",
                event.seq,
                clean_line(&why)
            ))?;
        }
    }
    Ok(exit::YES)
}

/// An item, what it is measured by, and what is known of that.
fn described(out: &mut Out, item: &WorkItem) -> Result<(), Failure> {
    line(out, item)?;
    for (number, criterion) in item.criteria.iter().enumerate() {
        let result = item.results.get(number);
        let (word, style) = match result.map(|result| result.came) {
            Some(Came::Pass) => ("pass", out::GOOD),
            Some(Came::Fail) => ("fail", out::BAD),
            Some(Came::Error) => ("error", out::NOTICE),
            Some(Came::Timeout) => ("timeout", out::NOTICE),
            None => ("open", out::FAINT),
        };
        let text = serde_json::to_string(criterion).unwrap_or_default();
        out.line(format_args!("      {style}{word:<8}{style:#}{}", clean_line(&text)))?;
        if let Some(detail) = result.map(|result| &result.detail).filter(|detail| !detail.is_empty()) {
            out.line(format_args!("              {}", clean_line(detail)))?;
        }
    }
    for evidence in &item.evidence {
        let (tool, faint) = (evidence.tool.as_deref().unwrap_or("call"), out::FAINT);
        let stale = evidence.stale.map_or_else(String::new, |event| format!(", stale since event {event}"));
        out.line(format_args!(
            "      {faint}cites{faint:#}   {} {} (event {}{stale})",
            clean_line(tool),
            out::short(&evidence.action),
            evidence.outcome
        ))?;
    }
    match item.reason.is_empty() {
        true => Ok(()),
        false => out.line(format_args!("      {}", clean_line(&item.reason))),
    }
}

/// Asks for an operation. What is verified by it is a yes; a check that did not pass is a no.
fn operate(out: &mut Out, run: &str, operation: WorkOperation, global: &Global) -> Result<u8, Failure> {
    let checks = matches!(operation, WorkOperation::Verify { .. });
    let request = WorkRequest { operation, call: None, wait_ms: Some(WAIT_MS_MAX) };
    let WorkAnswer { item, checking } =
        Daemon::as_approver(global)?.ask(|client| client.work(run, &request))?;
    if global.json {
        out.json(&WorkAnswer { item: item.clone(), checking })?;
    } else {
        described(out, &item)?;
        if checking {
            out.next_step(format_args!(
                "its criteria are still being checked; `portcullis work show` tells what came of it"
            ))?;
        }
    }
    Ok(match (checks, checking, item.state) {
        (false, ..) | (true, _, ItemState::Verified) => exit::YES,
        (true, true, _) | (true, _, ItemState::Claimed) => exit::INCOMPLETE,
        (true, false, _) => exit::NO,
    })
}
