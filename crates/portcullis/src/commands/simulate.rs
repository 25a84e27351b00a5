//! `portcullis simulate`: a rehearsed agent through the real gate.

mod request;

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_contracts::verify::Status;
use portcullis_core::bundle::AnchorTime;
use portcullis_gateway::cosign;
use portcullis_governance::trace;
use portcullis_governance::verification::VerificationRow;
use portcullis_ledger::log::{LogError, LogPlaces, LogThread, Round};
use portcullis_ledger::{Ledger, OpenOptions};
use portcullis_session::bundles::Bundles;
use portcullis_session::gate::Gate;
use portcullis_sim::simulator::{self, Options, Simulation};
use serde_json::json;

use crate::bundle::{self, BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{BAD, FAINT, GOOD, NOTICE, Out, clean, clean_line, terminal_width};

const EXAMPLES: &str = "\
Examples:
  portcullis simulate --list
  portcullis simulate --plan \"Calculation Task\" \\
      --policy \"Strict Compliance Policy\"
  portcullis simulate --plan \"Unauthorized Transfer Attempt\" \\
      --policy \"Strict Compliance Policy\" --continue
  portcullis simulate --plan \"Email Policy Update\" \\
      --policy \"Permissive Exploration Policy\" --json
  portcullis simulate --request \"Plan a trip to Lisbon\"

The run of a plan is recorded in the store like any other: `portcullis export RUN` exports it.

Exit codes: 0 the plan completed, 1 a step was denied, 2 a step or the answer waits for a person, or a step for an \
answer, 3 something could not be \
read.";

/// Run a plan of the bundle under one of its policies, with simulated tools
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the plan
    #[arg(long, value_name = "NAME", required_unless_present_any = ["list", "request"])]
    plan: Option<String>,
    /// Plan this request by its keywords instead, and say what would become of each step; nothing is done or recorded
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["plan", "list", "go_on", "approve", "tools"])]
    request: Option<String>,
    /// Name of the runtime policy; the bundle's default if left out
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Go on after a step that does not happen
    #[arg(long = "continue")]
    go_on: bool,
    /// Let a simulated approver grant what is held
    #[arg(long)]
    approve: bool,
    /// Keep the folder that the simulated tools act on
    #[arg(long, value_name = "DIR")]
    tools: Option<PathBuf>,
    /// List the plans and policies of the bundle
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    bundle: BundleArg,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(text) = &args.request {
        return request::run(text, args.policy.as_deref(), &args.bundle, global);
    }
    let opened = args.bundle.open(global)?;
    if args.list {
        return list(&opened, global);
    }
    bundle::check_policy(&opened.bundle, args.policy.as_deref())?;
    let plan = args.plan.as_deref().unwrap_or_default();
    check_plan(&opened, plan)?;
    let policy = args.policy.as_deref().unwrap_or(opened.bundle.default_policy());
    let scratch =
        tempfile::tempdir().map_err(|error| Failure::unreadable(format!("cannot make a folder: {error}")))?;
    let tools = args.tools.clone().unwrap_or_else(|| scratch.path().join("tools"));
    let home = global.home()?;
    let store = home.store();
    let ledger = store.open(OpenOptions::default()).map_err(Failure::unreadable)?;
    let _log = keep_log(&opened, ledger.as_ref(), store.log())?;
    let bundles = Bundles::new(None, &opened.files).map_err(Failure::unreadable)?;
    let gate = Gate::new(ledger, Arc::new(portcullis_session::policy::pipeline()), bundles);
    let options = Options { go_on: args.go_on, approve: args.approve };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::unreadable(format!("cannot start: {error}")))?;
    let simulation = runtime
        .block_on(simulator::simulate(&gate, plan, policy, &tools, options))
        .map_err(Failure::unreadable)?;
    tell(&simulation, global)?;
    Ok(match &simulation.stopped {
        None => match &simulation.withheld {
            None => exit::YES,
            Some(withheld) if withheld.review => exit::INCOMPLETE,
            Some(_) => exit::NO,
        },
        Some(stopped) if stopped.held => exit::INCOMPLETE,
        Some(_) => exit::NO,
    })
}

/// Keeps the transparency log up with the run where the bundle lets nothing happen before the log has it.
fn keep_log(opened: &Opened, ledger: &dyn Ledger, places: LogPlaces) -> Result<Option<LogThread>, Failure> {
    if opened.bundle.ledger.anchor != AnchorTime::BeforeEffects {
        return Ok(None);
    }
    let told = |round: Result<Round, &LogError>| {
        if let Err(error) = round {
            tracing::warn!(%error, "the log does not go on");
        }
    };
    let thread = LogThread::start(places, told, cosign::after_round());
    let thread = thread.map_err(Failure::unreadable)?;
    ledger.set_anchor(thread.anchor());
    Ok(Some(thread))
}

fn check_plan(opened: &Opened, name: &str) -> Result<(), Failure> {
    if opened.bundle.plan(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = opened.bundle.plans.iter().map(|plan| plan.name.as_str()).collect();
    let help = match portcullis_core::bundle::nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`portcullis simulate --list` lists the plans".to_owned(),
    };
    Err(Failure::usage(format!("there is no plan `{name}` in the bundle")).help(help))
}

fn list(opened: &Opened, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    let plans: Vec<&str> = opened.bundle.plans.iter().map(|plan| plan.name.as_str()).collect();
    let policies: Vec<&str> = opened.bundle.policies().iter().map(|policy| policy.name.as_str()).collect();
    if global.json {
        out.json(&json!({"plans": plans, "policies": policies}))?;
    } else {
        for (title, names) in [("plans", plans), ("policies", policies)] {
            out.line(format_args!("{title}:"))?;
            for name in names {
                out.line(format_args!("  {}", clean(name)))?;
            }
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

/// The checks of the answer, one a line.
fn verification(rows: &[VerificationRow]) -> String {
    let line = |row: &VerificationRow| {
        let style = match row.status {
            Status::Pass => GOOD,
            Status::Fail => BAD,
            Status::NotApplicable => FAINT,
        };
        let (step, action) = (row.related_audit_event_step, row.related_audit_event_action);
        let details = clean_line(&row.details);
        format!(
            "{style}{:<4}{style:#}  {:<19}  step {step} {action}  {details}\n",
            row.status, row.check_type
        )
    };
    rows.iter().map(line).collect()
}

fn tell(simulation: &Simulation, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(simulation)?;
        return out.finish();
    }
    out.line(format_args!("{}", trace::table(&simulation.trace, terminal_width())))?;
    if let Some(output) = &simulation.output {
        out.line(format_args!("{}\n", clean(output)))?;
    }
    if !simulation.verification.is_empty() {
        out.line(format_args!("{}", verification(&simulation.verification)))?;
    }
    if let Some(withheld) = &simulation.withheld {
        let (style, what) =
            if withheld.review { (NOTICE, "a person has to look at it") } else { (BAD, "it is denied") };
        out.line(format_args!(
            "{style}The answer is withheld: {what}{style:#}: {} ({})",
            withheld.message, withheld.rule
        ))?;
    }
    match &simulation.stopped {
        None => out.line(format_args!("{GOOD}Simulation completed{GOOD:#}"))?,
        Some(stopped) => {
            let (style, what) = if stopped.held { (NOTICE, "held") } else { (BAD, "denied") };
            let ended = if simulation.output.is_some() { "completed, but" } else { "stopped:" };
            out.line(format_args!(
                "{style}Simulation {ended} step {} was {what}{style:#}: {} ({})",
                stopped.step, stopped.message, stopped.rule
            ))?;
        }
    }
    out.line(format_args!("{FAINT}run {}{FAINT:#}", simulation.run_id))?;
    out.finish()
}
