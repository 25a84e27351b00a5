//! `portcullis facts`: what agents had remembered across runs, where it is from, and a person's way to have it forgotten.

use portcullis_core::kept::{KeptId, KeptScope};
use portcullis_core::label::LabelSet;
use portcullis_gateway::api::{FactOperation, FactRequest, FactTold, OpenRun};

use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis facts list
  portcullis facts list --all
  portcullis facts show 0199ab3c.17
  portcullis facts forget 0199ab3c.17 --reason \"this was a test\"

A fact is named by the run that established it and the number of the event. Agents keep facts with `fact_write` of \
`portcullis work --mcp` or over HTTP.";

/// Facts that are asked for at a time.
const PAGE: usize = 200;
/// Characters of a fact in a list.
const LISTED_CHARS: usize = 100;

/// Show what agents remember across runs, and have it forgotten
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List facts, the newest first
    #[command(after_help = "Examples:\n  portcullis facts list\n  portcullis facts list --all --json")]
    List {
        /// Also those that were replaced or forgotten
        #[arg(long)]
        all: bool,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Show a fact, where it is from, and what became of it
    #[command(after_help = "Examples:\n  portcullis facts show 0199ab3c.17")]
    Show {
        /// The fact: its run, or the start of it, a dot, and the number of the event
        fact: String,
    },
    /// Have a fact not be read any more; the record keeps it, and the reason
    #[command(after_help = "Examples:\n  portcullis facts forget 0199ab3c.17 --reason \"this was a test\"")]
    Forget {
        /// The fact: its run, or the start of it, a dot, and the number of the event
        fact: String,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    match &args.command {
        Command::List { all, limit } => list(&mut out, *all, *limit, global)?,
        Command::Show { fact } => {
            let told = find(fact, global)?;
            if global.json { out.json(&told)? } else { described(&mut out, &told)? }
        }
        Command::Forget { fact, reason } => {
            let fact = find(fact, global)?.fact;
            forget(fact, reason, global)?;
            let told = find(&fact.to_string(), global)?;
            if global.json { out.json(&told)? } else { described(&mut out, &told)? }
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

fn list(out: &mut Out, all: bool, limit: usize, global: &Global) -> Result<(), Failure> {
    let daemon = Daemon::as_approver(global)?;
    let (mut shown, mut before) = (0, None);
    while shown < limit {
        let room = PAGE.min(limit - shown);
        let page = daemon.ask(|client| client.facts_list(all, before, room))?;
        for fact in &page.facts {
            if global.json { out.json(fact)? } else { line(out, fact)? }
        }
        shown += page.facts.len();
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    if shown == 0 && !global.json {
        out.line(format_args!("no facts are kept; agents keep them with `fact_write`"))?;
    }
    Ok(())
}

/// One line about a fact.
fn line(out: &mut Out, fact: &FactTold) -> Result<(), Failure> {
    let text = fact.text.as_deref().unwrap_or("(erased)");
    let text: String = clean_line(text).chars().take(LISTED_CHARS).collect();
    let topic = if fact.topic.is_empty() { String::new() } else { format!("{}: ", fact.topic) };
    let more = match (&fact.forgotten, &fact.replaced_by, fact.foreign.is_empty()) {
        (Some(_), ..) => "  (forgotten)".to_owned(),
        (_, Some(_), _) => "  (replaced)".to_owned(),
        (.., false) => format!("  (words of {})", told_labels(&fact.foreign)),
        _ => String::new(),
    };
    let faint = out::FAINT;
    let name = format!("{}.{}", out::short(&fact.fact.run), fact.fact.seq);
    out.line(format_args!("{name:<17}  {}{text}{faint}{}{faint:#}", clean_line(&topic), clean_line(&more)))
}

fn told_labels(labels: &LabelSet) -> String {
    let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
    labels.join(", ")
}

/// A fact with where it is from.
fn described(out: &mut Out, fact: &FactTold) -> Result<(), Failure> {
    let faint = out::FAINT;
    let mut field =
        |name: &str, value: &str| out.line(format_args!("{faint}{name:<12}{faint:#}{}", clean_line(value)));
    field("fact", &fact.fact.to_string())?;
    if !fact.topic.is_empty() {
        field("topic", &fact.topic)?;
    }
    field("text", fact.text.as_deref().unwrap_or("(erased)"))?;
    let scope = match fact.scope {
        KeptScope::Workspace => "in the folder where it was written",
        KeptScope::Principal => "everywhere",
    };
    field("read by", &format!("runs of {} {scope}", fact.principal))?;
    field("written", &format!("{} by {}, event {}", out::seconds(fact.t), fact.actor, fact.fact.seq))?;
    if let Some(action) = &fact.action {
        field("call", &action.to_string())?;
    }
    if !fact.labels.is_empty() {
        field("run had seen", &told_labels(&fact.labels))?;
    }
    if !fact.foreign.is_empty() {
        field("words of", &told_labels(&fact.foreign))?;
    }
    for replaced in &fact.replaces {
        field("replaces", &replaced.to_string())?;
    }
    if let Some(by) = &fact.replaced_by {
        field("replaced by", &by.to_string())?;
    }
    if let Some(forgotten) = &fact.forgotten {
        let at = out::seconds(forgotten.t);
        field("forgotten", &format!("{at} by {}, event {}", forgotten.actor, forgotten.by))?;
        field("because", &forgotten.reason)?;
    }
    Ok(())
}

fn find(fact: &str, global: &Global) -> Result<FactTold, Failure> {
    let name = fact.split_once('.').and_then(|(run, seq)| Some((run, seq.parse::<u64>().ok()?)));
    let Some((run, seq)) = name else {
        return Err(Failure::usage(format!("`{fact}` names no fact")).help(
            "give the run, a dot, and the number of the event, as `portcullis facts list` shows them",
        ));
    };
    Daemon::as_approver(global)?.ask(|client| client.fact(run, seq))
}

/// A person forgets in a run of their own, so that it is on record.
fn forget(fact: KeptId, reason: &str, global: &Global) -> Result<(), Failure> {
    let daemon = Daemon::as_approver(global)?;
    let open = OpenRun { surface: "facts".to_owned(), ..OpenRun::default() };
    let run = daemon.ask(|client| client.open_run(&open))?.run;
    let operation = FactOperation::Forget { fact, reason: reason.to_owned() };
    let request = FactRequest { operation, call: None, request: None };
    let name = run.to_string();
    let asked = daemon.ask(|client| client.facts(&name, &request));
    daemon.ask(|client| client.close(run))?;
    asked.map(drop)
}
