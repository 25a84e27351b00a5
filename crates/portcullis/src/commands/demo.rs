//! `portcullis demo`: the product at work, without set-up and without a network.

use std::path::PathBuf;

use portcullis_core::denial::{Denial, DenialClass};
use portcullis_gateway::demo::{self, ACTS, DemoError, DemoOptions, Scene};
use portcullis_proof::{Report, Status};
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{BAD, FAINT, GOOD, NOTICE, Out, STRONG, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis demo
  portcullis demo --keep /tmp/evidence
  portcullis verify /tmp/evidence/run-1.export --trust /tmp/evidence/demo.trust";

/// Longest result of a tool that is shown, in characters.
const RESULT_CHARS_MAX: usize = 72;

/// Show the gate at work: scripted agents, real MCP sessions, real tools, a real record
///
/// Starts a daemon in a folder of its own, puts the demo server behind the gate, lets scripted agents work
/// under different policies, exports and verifies their runs, tampers with a copy and verifies that. Nothing
/// is installed and nothing is left behind.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Leave the exports and the trust file in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    // A short path: the socket is in it.
    let folder = tempfile::Builder::new()
        .prefix("portcullis-demo-")
        .tempdir_in("/tmp")
        .or_else(|_| tempfile::tempdir())
        .map_err(|error| Failure::unreadable(format!("cannot make a folder for the demo: {error}")))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::unreadable(format!("cannot tell where this program is: {error}")))?;
    let options = DemoOptions {
        folder: folder.path().to_owned(),
        exports: args.keep.clone().unwrap_or_else(|| folder.path().join("exports")),
        program,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unreadable(format!("cannot start: {error}")))?;
    let mut stage = Stage { json: global.json, failed: None };
    let shown = runtime.block_on(demo::run(&options, &mut |scene| stage.tell(&scene)));
    if let Some(failure) = stage.failed {
        return Err(failure);
    }
    match shown {
        Ok(()) => {}
        Err(error @ DemoError::Stopped(_)) => return Err(Failure::incomplete(error)),
        Err(error @ DemoError::Astray(_)) => {
            return Err(Failure::no(error).help("this is a defect; please report it"));
        }
        Err(error) => {
            // What the gate said may be needed to understand it.
            let kept = folder.keep();
            let help = format!("the folder of the demo is kept: {}", kept.display());
            return Err(Failure::unreadable(error).help(help));
        }
    }
    stage.epilogue(args)?;
    Ok(exit::YES)
}

struct Stage {
    json: bool,
    failed: Option<Failure>,
}

impl Stage {
    /// Each scene is written out at once, so that it is seen when it happens.
    fn tell(&mut self, scene: &Scene<'_>) {
        if self.failed.is_some() {
            return;
        }
        let mut out = Out::new();
        let told = if self.json { out.json(&as_json(scene)) } else { for_people(&mut out, scene) };
        self.failed = told.and_then(|()| out.finish()).err();
    }

    fn epilogue(&self, args: &Args) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let mut out = Out::new();
        out.line(format_args!(""))?;
        match &args.keep {
            Some(folder) => {
                let folder = folder.display();
                out.line(format_args!("{STRONG}Check it yourself{STRONG:#}"))?;
                out.line(format_args!(
                    "  portcullis verify {folder}/run-1.export --trust {folder}/demo.trust"
                ))?;
                out.line(format_args!(
                    "  portcullis verify {folder}/tampered.export --trust {folder}/demo.trust"
                ))?;
            }
            None => out.line(format_args!(
                "{FAINT}--keep DIR leaves the exports and the trust file in DIR{FAINT:#}"
            ))?,
        }
        out.line(format_args!("{STRONG}Next{STRONG:#}"))?;
        out.line(format_args!(
            "  portcullis init -- COMMAND      drafts a bundle for an MCP server of yours"
        ))?;
        out.line(format_args!("  portcullis mcp -- COMMAND       puts the gate in front of it"))?;
        out.finish()
    }
}

fn for_people(out: &mut Out, scene: &Scene<'_>) -> Result<(), Failure> {
    match scene {
        Scene::Act { number, policy, prompt } => {
            out.line(format_args!(""))?;
            out.line(format_args!("{STRONG}{number}/{}  {policy}{STRONG:#}", ACTS.len()))?;
            out.line(format_args!("{FAINT}user:{FAINT:#} {}", clean_line(prompt)))
        }
        Scene::Decision { planned, tool, denial: None, result } => {
            out.line(format_args!("  {GOOD}allow {GOOD:#} {tool}  {FAINT}{}{FAINT:#}", clean_line(planned)))?;
            let result: String = clean_line(result).chars().take(RESULT_CHARS_MAX).collect();
            out.line(format_args!("         {FAINT}-> {result}{FAINT:#}"))
        }
        Scene::Decision { planned, tool, denial: Some(denial), .. } => {
            let (style, word) = word(denial);
            out.line(format_args!(
                "  {style}{word:<6}{style:#} {tool}  {FAINT}{}{FAINT:#}",
                clean_line(planned)
            ))?;
            out.line(format_args!(
                "         {} {FAINT}({}){FAINT:#}",
                clean_line(&denial.message),
                denial.rule
            ))
        }
        Scene::Granted { approval, tool } => {
            let id = approval.to_string();
            let id = id.get(..8).unwrap_or_default();
            out.line(format_args!(
                "  {NOTICE}review{NOTICE:#} {tool}  {FAINT}held as approval {id}{FAINT:#}"
            ))?;
            out.line(format_args!("         an approver grants it, once"))
        }
        Scene::Verified { run, file, report } => {
            let id = run.to_string();
            let id = id.get(id.len().saturating_sub(8)..).unwrap_or_default();
            if file.file_name().is_some_and(|name| name == "run-1.export") {
                out.line(format_args!("\n{STRONG}The record{STRONG:#}"))?;
            }
            let style = status_style(report);
            let file = file.file_name().unwrap_or_default().display();
            out.line(format_args!(
                "  {style}{}{style:#}  {file}  {FAINT}run …{id}, {}{FAINT:#}",
                status(report),
                count(report.events, "event", "events")
            ))
        }
        Scene::Tampered { change, file, report } => {
            out.line(format_args!("\n{STRONG}A forger{STRONG:#} {FAINT}edits a copy: {change}{FAINT:#}"))?;
            let style = status_style(report);
            let file = file.file_name().unwrap_or_default().display();
            out.line(format_args!("  {style}{}{style:#}  {file}", status(report)))?;
            match &report.failure {
                Some(failure) => {
                    out.line(format_args!("           line {}: {}", failure.line, failure.message))
                }
                None => Ok(()),
            }
        }
    }
}

fn word(denial: &Denial) -> (anstyle::Style, &'static str) {
    match denial.class {
        DenialClass::ApprovalPending => (NOTICE, "held"),
        _ => (BAD, denial.verdict.as_str()),
    }
}

fn status(report: &Report) -> &'static str {
    match report.status {
        Status::Valid => "VALID",
        Status::Invalid => "INVALID",
        Status::Incomplete => "INCOMPLETE",
    }
}

fn status_style(report: &Report) -> anstyle::Style {
    match report.status {
        Status::Valid => GOOD,
        Status::Invalid => BAD,
        Status::Incomplete => NOTICE,
    }
}

fn as_json(scene: &Scene<'_>) -> serde_json::Value {
    match scene {
        Scene::Act { number, policy, prompt } => {
            json!({"scene": "act", "number": number, "policy": policy, "prompt": prompt})
        }
        Scene::Decision { planned, tool, denial, result } => {
            let allowed = denial.is_none();
            json!({"scene": "decision", "tool": tool, "planned": planned, "allowed": allowed, "denial": denial,
                   "result": allowed.then_some(result)})
        }
        Scene::Granted { approval, tool } => json!({"scene": "granted", "approval": approval, "tool": tool}),
        Scene::Verified { run, file, report } => {
            json!({"scene": "verified", "run": run, "file": file, "report": report})
        }
        Scene::Tampered { change, file, report } => {
            json!({"scene": "tampered", "change": change, "file": file, "report": report})
        }
    }
}
