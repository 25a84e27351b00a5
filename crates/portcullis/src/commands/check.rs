//! `portcullis check`: judges recorded traces.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portcullis_contracts::verify::Status;
use portcullis_core::verdict::Verdict;
use portcullis_governance::verification;
use portcullis_session::configuration;
use portcullis_sim::replay::{
    self, InferredTool, Item, Options, ReplayError, ReplyRow, Row, Source, Summary,
};
use serde::Serialize;
use serde_json::json;

use crate::bundle::{self, BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis check examples/traces/assistant.jsonl
  portcullis check runs/*.jsonl.gz --bundle my-bundle --quiet
  portcullis check trace.json --policy \"Permissive Exploration Policy\" --json
  portcullis check run.export --bundle my-bundle

Traces are OpenAI chat messages (JSON, or JSON Lines with one run a line) or the gate's own exports, gzip or \
not. Tools that the bundle does not know are classified by inference from the trace's schemas, or from names \
and arguments; they are marked `~`. With --strict-tools the bundle's `unknown_tools` decides instead.

The agent of a record does not react to the gate: a call that would be denied or held gets no result, and the \
record goes on with its next message. Of an export, recorded and recomputed verdicts are compared. \
Replies are verified where the bundle has `[verification]`; those that fail are shown.

Exit codes: 0 nothing stopped, 1 something was denied, 2 something was held or could not be judged, or there \
was no run, 3 a file or record could not be read.";

/// Judge recorded traces as if they happened now
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Traces; `-` for standard input
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    bundle: BundleArg,
    /// Name of the runtime policy; the bundle's default if left out
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Do not infer tools that the bundle does not know
    #[arg(long)]
    strict_tools: bool,
    /// List the inferred tools
    #[arg(long)]
    tools: bool,
    /// Print the summary only
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let started = Instant::now();
    let opened = args.bundle.open(global)?;
    bundle::check_policy(&opened.bundle, args.policy.as_deref())?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let options = Options { policy: args.policy.clone(), strict_tools: args.strict_tools };
    let mut sums = Summary::default();
    let mut show = Show {
        out: Out::new(),
        args,
        json: global.json,
        file: Path::new(""),
        bar: None,
        tool_width: TOOL_WIDTH,
        headed: false,
        failed: None,
    };
    for path in &args.traces {
        let source = open(path)?;
        show.start(path, source.size)?;
        let judged =
            replay::replay(&source, &opened.bundle, &pipeline, &options, &mut |item| show.item(&item));
        if let Some(bar) = show.bar.take() {
            bar.finish_and_clear();
        }
        match (judged, show.failed.take()) {
            (_, Some(failure)) => return Err(failure),
            (Ok(summary), None) => sums.add(summary),
            (Err(error), None) => {
                show.out.finish()?;
                return Err(unreadable(path, &error));
            }
        }
    }
    show.summary(&sums, &opened, started.elapsed())?;
    show.out.finish()?;
    Ok(code(&sums))
}

fn open(path: &Path) -> Result<Source, Failure> {
    let source = if path == Path::new("-") { Source::stream(io::stdin().lock()) } else { Source::file(path) };
    source.map_err(|error| {
        Failure::unreadable(format!("cannot read `{}`: {error}", path.display()))
            .help("give the path of a trace, or `-` for standard input")
    })
}

fn unreadable(path: &Path, error: &ReplayError) -> Failure {
    let failure = Failure::unreadable(format!("cannot judge `{}`: {error}", path.display()));
    match error {
        ReplayError::UnsoundExport { .. } => failure.help("`portcullis verify` shows what was done to it"),
        ReplayError::Empty => failure.help("a trace is OpenAI chat messages, one run a line, or an export"),
        _ => failure,
    }
}

/// What the verdicts come to. What could not be read weighs less than a denial and more than a call that waits.
fn code(sums: &Summary) -> u8 {
    if denied(sums) > 0 {
        exit::NO
    } else if sums.unreadable > 0 {
        exit::UNREADABLE
    } else if held(sums) > 0 || sums.replies_stopped > 0 || sums.not_judged > 0 || sums.runs == 0 {
        exit::INCOMPLETE
    } else {
        exit::YES
    }
}

fn denied(sums: &Summary) -> usize {
    sums.count(|verdict| verdict >= Verdict::Deny)
}

fn held(sums: &Summary) -> usize {
    sums.count(|verdict| !verdict.permits() && verdict < Verdict::Deny)
}

/// A decision for programs.
#[derive(Serialize)]
struct DecisionLine<'r> {
    record: &'static str,
    file: &'r Path,
    #[serde(flatten)]
    row: &'r Row,
}

/// A verified reply for programs.
#[derive(Serialize)]
struct ReplyLine<'r> {
    record: &'static str,
    file: &'r Path,
    #[serde(flatten)]
    row: &'r ReplyRow,
}

/// An inferred tool for programs.
#[derive(Serialize)]
struct ToolLine<'r> {
    record: &'static str,
    file: &'r Path,
    #[serde(flatten)]
    tool: &'r InferredTool,
}

/// Prints as the replay goes.
struct Show<'a> {
    out: Out,
    args: &'a Args,
    json: bool,
    file: &'a Path,
    bar: Option<ProgressBar>,
    /// Columns of a tool's name in this file.
    tool_width: usize,
    /// The heads of the columns were printed.
    headed: bool,
    /// Why printing stopped.
    failed: Option<Failure>,
}

impl<'a> Show<'a> {
    fn start(&mut self, file: &'a Path, bytes: u64) -> Result<(), Failure> {
        (self.file, self.tool_width, self.headed) = (file, TOOL_WIDTH, false);
        // Rows and a bar on one terminal would overwrite each other.
        let rows = !self.args.quiet && io::stdout().is_terminal();
        if io::stderr().is_terminal() && !rows {
            /// A file is read twice.
            const PASSES: u64 = 2;
            let bar = ProgressBar::with_draw_target(Some(bytes * PASSES), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_bar} {percent}%  {eta}").unwrap_or(
                // Only reached if the template above were wrong.
                ProgressStyle::default_bar(),
            );
            self.bar = Some(bar.with_style(style));
        }
        if self.args.quiet || self.json {
            return Ok(());
        }
        if self.args.traces.len() > 1 {
            let strong = out::STRONG;
            self.out.line(format_args!("{strong}{}{strong:#}", clean_line(&file.display().to_string())))?;
        }
        Ok(())
    }

    /// The heads of the columns, once it is known how wide they are.
    fn head(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.headed, true) {
            return Ok(());
        }
        let (strong, width) = (out::STRONG, self.tool_width);
        let (run, call, verdict, tool) = ("run", "call", "verdict", "tool");
        self.out
            .line(format_args!("{strong}{run:>5}  {call:>4}  {verdict:<7}  {tool:<width$}  why{strong:#}"))
    }

    fn item(&mut self, item: &Item<'_>) -> ControlFlow<()> {
        match self.print(item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn print(&mut self, item: &Item<'_>) -> Result<(), Failure> {
        match item {
            Item::Progress(bytes) => {
                if let Some(bar) = &self.bar {
                    bar.set_position(*bytes);
                }
                Ok(())
            }
            Item::Tools(tools) => {
                let longest = tools.iter().map(|tool| tool.name.chars().count() + 1).max().unwrap_or(0);
                self.tool_width = longest.clamp(TOOL_WIDTH, TOOL_WIDTH_MAX);
                let listed = if self.args.tools { *tools } else { &[] };
                listed.iter().try_for_each(|tool| self.tool(tool))
            }
            Item::Decision(row) if !self.args.quiet => self.decision(row),
            Item::Verified(row) if !self.args.quiet => self.reply(row),
            Item::Unreadable { line, message } => self.remark("unreadable", *line, message),
            Item::NotJudged { line, tool } => {
                let message =
                    format!("the arguments of `{}` were withheld or erased", tool.unwrap_or_default());
                self.remark("not-judged", *line, &message)
            }
            Item::Decision(_) | Item::Verified(_) | Item::Opened(_) | Item::Compared(_) => Ok(()),
        }
    }

    fn decision(&mut self, row: &Row) -> Result<(), Failure> {
        if self.json {
            return self.out.json(&DecisionLine { record: "decision", file: self.file, row });
        }
        self.head()?;
        let width = self.tool_width;
        let style = out::verdict_style(row.verdict);
        let mark = if row.inferred { "~" } else { "" };
        let tool = format!("{mark}{}", clean_line(row.tool.as_deref().unwrap_or("(thinking)")));
        let changed = match row.recorded.filter(|_| row.changed()) {
            Some(recorded) => format!("{}recorded {recorded}; {}", out::NOTICE, anstyle::Reset),
            None => String::new(),
        };
        let why = match (&row.rule, &row.message) {
            (Some(rule), Some(message)) => format!("{rule}: {}", clean_line(message)),
            _ => String::new(),
        };
        let line = format!(
            "{:>5}  {:>4}  {style}{:<7}{style:#}  {tool:<width$}  {changed}{why}",
            row.run, row.call, row.verdict
        );
        self.out.line(format_args!("{}", line.trim_end()))
    }

    /// A reply of which a check fails; `verify-output --recorded` shows the others, too.
    fn reply(&mut self, row: &ReplyRow) -> Result<(), Failure> {
        if !row.verification.fails() {
            return Ok(());
        }
        if self.json {
            return self.out.json(&ReplyLine { record: "verification", file: self.file, row });
        }
        let failed = row.verification.checks.iter().filter(|result| result.status == Status::Fail);
        for result in failed {
            self.head()?;
            let (style, width) = (out::verdict_style(row.verdict), self.tool_width);
            self.out.line(format_args!(
                "{:>5}  {:>4}  {style}{:<7}{style:#}  {:<width$}  {}: {}",
                row.run,
                row.reply,
                row.verdict,
                "(reply)",
                result.check.name(),
                clean_line(&verification::details(result))
            ))?;
        }
        Ok(())
    }

    fn tool(&mut self, tool: &InferredTool) -> Result<(), Failure> {
        if self.json {
            return self.out.json(&ToolLine { record: "inferred-tool", file: self.file, tool });
        }
        let width = self.tool_width;
        let effects = if tool.side_effecting { "side effects" } else { "" };
        let reasons = tool.reasons.join("; ");
        self.out.line(format_args!(
            "{:<width$}  {:<13}  {effects:<12}  risk {:<4}  {}",
            format!("~{}", clean_line(&tool.name)),
            tool.tool_type,
            tool.risk,
            clean_line(&reasons)
        ))
    }

    fn remark(&mut self, record: &str, line: usize, message: &str) -> Result<(), Failure> {
        if self.json {
            let remark = json!({"record": record, "file": self.file, "line": line, "message": message});
            return self.out.json(&remark);
        }
        let (notice, word) = (out::NOTICE, record.replace('-', " "));
        let place = format!("{}:{line}", self.file.display());
        self.out.line(format_args!(
            "{notice}{word}{notice:#} {}: {}",
            clean_line(&place),
            clean_line(message)
        ))
    }

    fn summary(&mut self, sums: &Summary, opened: &Opened, elapsed: Duration) -> Result<(), Failure> {
        let bundle = opened.bundle.digest();
        let (configuration, bundle) = (configuration::digest(bundle).to_string(), bundle.to_string());
        let judging = sums.judging.as_secs_f64();
        let rate = if judging > 0.0 { sums.calls as f64 / judging } else { 0.0 };
        if self.json {
            return self.out.json(&json!({
                "record": "summary", "runs": sums.runs, "calls": sums.calls, "verdicts": verdicts(sums),
                "denied": denied(sums), "held": held(sums), "replies": sums.replies,
                "replies_failed": sums.replies_failed, "replies_stopped": sums.replies_stopped, "unreadable": sums.unreadable,
                "not_judged": sums.not_judged, "changed": sums.changed,
                "inferred_tools": sums.inferred.len(), "left_unknown": sums.left_unknown,
                "policies": sums.policies, "bundle": bundle, "bundle_folder": opened.folder(), "configuration": configuration, "decisions_per_second": rate.round(),
                "seconds_judging": judging, "seconds": elapsed.as_secs_f64(),
            }));
        }
        if !self.args.quiet {
            self.out.line(format_args!(""))?;
        }
        let counts: Vec<String> = sums
            .verdicts
            .iter()
            .map(|(verdict, count)| {
                let style = out::verdict_style(*verdict);
                format!("{style}{count} {verdict}{style:#}")
            })
            .collect();
        let strong = out::STRONG;
        self.out.line(format_args!(
            "{strong}{}, {}{strong:#}: {}",
            count(sums.runs, "run", "runs"),
            count(sums.calls, "call", "calls"),
            if counts.is_empty() { "nothing to judge".to_owned() } else { counts.join(", ") }
        ))?;
        self.remarks(sums)?;
        let policies = sums.policies.iter().map(String::as_str).collect::<Vec<&str>>().join(", ");
        let [bundle, configuration] =
            [&bundle, &configuration].map(|digest| digest.get(..DIGEST_SHOWN).unwrap_or(digest));
        self.out.line(format_args!(
            "policy {}, bundle {bundle}, configuration {configuration}",
            clean_line(&policies)
        ))?;
        self.out.line(format_args!(
            "{rate:.0} decisions/s ({:.1} ms judging), {:.2} s in all",
            judging * 1_000.0,
            elapsed.as_secs_f64()
        ))
    }

    fn remarks(&mut self, sums: &Summary) -> Result<(), Failure> {
        if !sums.inferred.is_empty() {
            let effects = sums.inferred.iter().filter(|tool| tool.side_effecting).count();
            let tools = count(sums.inferred.len(), "tool", "tools");
            let more = if self.args.tools { "" } else { "; --tools lists them" };
            self.out.line(format_args!("{tools} inferred (~), {effects} with side effects{more}"))?;
        }
        let remarks = [
            (sums.changed, "verdict differs from", "verdicts differ from", "the recorded one"),
            (sums.replies_failed, "reply", "replies", "failed a check"),
            (sums.unreadable, "record", "records", "could not be read"),
            (sums.not_judged, "action", "actions", "could not be judged"),
            (sums.left_unknown, "tool", "tools", "could not be inferred and stays unknown"),
        ];
        let notice = out::NOTICE;
        for (number, one, many, what) in remarks.into_iter().filter(|remark| remark.0 > 0) {
            self.out.line(format_args!("{notice}{} {what}{notice:#}", count(number, one, many)))?;
        }
        Ok(())
    }
}

/// Fewest columns of a tool's name.
const TOOL_WIDTH: usize = 28;
/// Most columns of a tool's name; longer names push the rest to the right.
const TOOL_WIDTH_MAX: usize = 48;
/// Digits of a digest that are shown to people.
const DIGEST_SHOWN: usize = 16;

fn verdicts(sums: &Summary) -> serde_json::Map<String, serde_json::Value> {
    sums.verdicts.iter().map(|(verdict, count)| (verdict.as_str().to_owned(), (*count).into())).collect()
}
