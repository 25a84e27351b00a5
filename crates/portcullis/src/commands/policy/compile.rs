//! `portcullis policy compile`: from a request in plain English to a draft.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::Level;
use portcullis_compile::answers::Answer;
use portcullis_compile::cases;
use portcullis_compile::draft::{Draft, REQUEST_BYTES_MAX};
use portcullis_compile::enumerate::{Enumerated, enumerated};
use portcullis_compile::mutants;
use portcullis_compile::spec::Spec;
use portcullis_core::bundle::Diagnostic;
use portcullis_session::cases::{CaseFile, run_file};
use serde_json::{Value, json};

use super::recorded::{self, Recorded};
use super::{suggested, written};
use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::exit;
use crate::failure::{Failure, render};
use crate::input;
use crate::model::ModelArgs;
use crate::out::{self, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis policy compile refunds.md --bundle mine
  portcullis policy compile refunds.md --spec tools.json -o draft
  portcullis policy compile refunds.md --answer 'window=per day' -o draft
  portcullis policy compile refunds.md --bundle mine --runs traces.jsonl
  portcullis policy compile refunds.md --model URL/NAME --suggest \\
      --cassette said.cassette --record

Reads a request such as `Only support leads may issue refunds`, and writes a \
draft: files of a bundle, tests, and what was understood, in other words. No \
model is asked, unless --model names one to write the program, which is held \
to the same tests, or, with --suggest, to restate what cannot be read. What \
the request leaves open is a question: answer it with --answer, or accept the \
defaults that are shown with --accept-defaults. Read the sentences: a request \
can be misunderstood without a question.

Exit codes: 0 compiled and its tests pass, 1 its tests fail, 2 questions are \
open or a part is refused, 3 a file could not be read.";

/// The largest file of tools that is read.
const SPEC_BYTES_MAX: usize = 4 << 20;
/// Short runs whose outcome differs that are shown.
const SHORT_SHOWN_MAX: usize = 3;
/// How often accepted defaults may raise further questions.
const ROUNDS_MAX: usize = 8;

/// Compile a request in plain English to a draft of rules
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The request; `-` for standard input
    #[arg(value_name = "REQUEST")]
    request: PathBuf,
    /// The tools as `tools/list` of MCP gives them; those of the bundle if left out
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    bundle: BundleArg,
    /// Answer a question; can be given several times
    #[arg(long = "answer", value_name = "QUESTION=ANSWER")]
    answers: Vec<String>,
    /// Accept the default of every question that has one
    #[arg(long)]
    accept_defaults: bool,
    /// Judge recorded runs with the draft in the bundle: state folders, exports, or chat traces
    #[arg(long, value_name = "PATH", num_args = 1..)]
    runs: Vec<PathBuf>,
    /// Write the draft into this folder, which must not exist
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A guard program of your own in place of what would be written
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    program: Option<PathBuf>,
    /// Have the model restate what cannot be read, in place of writing a program. What it says is shown as an answer that
    /// can be given: `--answer QUESTION=suggestion`
    #[arg(long, requires = "model")]
    suggest: bool,
    #[command(flatten)]
    model: ModelArgs,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let request = input::text(&args.request, REQUEST_BYTES_MAX)?;
    let spec = spec(args, global)?;
    let name = name(&args.request);
    let mut answers: Vec<Answer> = args
        .answers
        .iter()
        .map(|text| Answer::parse(text).map_err(Failure::usage))
        .collect::<Result<_, _>>()?;
    let mut draft = Draft::compile(&name, &request, &spec, &[]);
    let suggestions = match args.suggest {
        true => Some(suggested::suggestions(&draft, &spec, &args.model)?),
        false => None,
    };
    if let Some(suggestions) = &suggestions {
        suggestions.put_into(&mut answers)?;
    }
    draft = Draft::compile(&name, &request, &spec, &answers);
    for _ in 0..ROUNDS_MAX {
        let defaults =
            draft.questions.iter().filter(|question| args.accept_defaults && question.default.is_some());
        let accepted: Vec<Answer> = defaults.map(|question| Answer::accepting(&question.id)).collect();
        if accepted.is_empty() {
            break;
        }
        answers.extend(accepted);
        draft = Draft::compile(&name, &request, &spec, &answers);
    }
    // Nobody is asked to write what is not known yet.
    if draft.questions.is_empty() && draft.refusals.is_empty() {
        if let Some(file) = &args.program {
            draft = written::by_person(&draft, file)?;
        } else if args.model.is_named() && !args.suggest {
            draft = written::by_model(&draft, &args.model)?;
        }
    }
    if let Some(suggestions) = &suggestions {
        suggestions.show_in(&mut draft);
    }
    let is_open = !draft.questions.is_empty() || !draft.refusals.is_empty();
    let short = enumerated(&draft.rules, &spec);
    let tried = if is_open { Vec::new() } else { tried(&draft, &spec, &short) };
    if let Some(folder) = &args.output {
        write(&draft, folder)?;
    }
    let recorded = match args.runs.is_empty() || is_open {
        true => None,
        false => Some(recorded::judged(&draft, &args.bundle.open(global)?, &args.runs)?),
    };
    let unshown = if is_open { Vec::new() } else { unshown(&draft, &spec, recorded.as_ref()) };
    show(&draft, (&tried, &unshown, &short), recorded.as_ref(), (args, global))?;
    Ok(match (is_open, tried.is_empty()) {
        (true, _) => exit::INCOMPLETE,
        (false, true) => exit::YES,
        (false, false) => exit::NO,
    })
}

fn spec(args: &Args, global: &Global) -> Result<Spec, Failure> {
    let Some(path) = &args.spec else {
        return Ok(Spec::of_registry(&args.bundle.open(global)?.bundle.registry));
    };
    let text = input::text(path, SPEC_BYTES_MAX)?;
    let value: Value = serde_json::from_str(&text).map_err(|error| input::unreadable(path, error))?;
    Spec::of_json(&value)
        .map_err(|error| input::unreadable(path, error).help("give it the answer of `tools/list`"))
}

/// The name of a draft: that of the request's file.
fn name(request: &Path) -> String {
    let stem = request.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != input::STDIN);
    let plain: String = stem
        .unwrap_or("request")
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let plain: String = plain.trim_matches('-').chars().take(20).collect();
    if plain.is_empty() { "request".to_owned() } else { plain }
}

/// What its tests, and all short runs, show on a bundle that has these tools, and lets every call pass that the draft does not stop.
fn tried(draft: &Draft, spec: &Spec, short: &Enumerated) -> Vec<String> {
    let files = draft.laid_over(&spec.open_bundle());
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let failures = |text: &str| -> Vec<String> {
        let file = match CaseFile::parse(text) {
            Ok(file) => file,
            Err(error) => return vec![format!("line {} of its tests: {}", error.line, error.message)],
        };
        let report = run_file(&file, &files, &pipeline);
        report.mismatches.iter().map(|mismatch| format!("{}: {}", mismatch.case, mismatch.message)).collect()
    };
    let mut all = failures(&draft.tests);
    let short = cases::markdown_of(&short.runs, &draft.rules, spec);
    // One that differs says as much as a hundred.
    all.extend(failures(&short).into_iter().take(SHORT_SHOWN_MAX));
    all
}

fn write(draft: &Draft, folder: &Path) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::unreadable(format!("cannot write `{}`: {error}", folder.display()));
    fs::create_dir(folder).map_err(failed)?;
    let record =
        serde_json::to_string_pretty(draft).map_err(|error| Failure::unreadable(error.to_string()))?;
    fs::write(folder.join("draft.json"), record + "\n").map_err(failed)?;
    fs::write(folder.join("request.md"), &draft.request).map_err(failed)?;
    let tests = (draft.tests_path(), draft.tests.clone());
    for (path, text) in draft.files.iter().map(|(path, text)| (path.clone(), text.clone())).chain([tests]) {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(path, text).map_err(failed)?;
    }
    if !draft.settings.is_empty() {
        fs::write(folder.join("portcullis.toml.add"), &draft.settings).map_err(failed)?;
    }
    Ok(())
}

/// What nobody would notice: rules that no generated test reaches, and those that could say something else.
fn unshown(draft: &Draft, spec: &Spec, recorded: Option<&Recorded>) -> Vec<String> {
    let shown = mutants::shown(&draft.rules, &cases::runs(&draft.rules, spec));
    let unreached = |place: &&usize| recorded.is_none_or(|recorded| !recorded.reaches(draft, **place));
    let idle = shown.vacuous.iter().filter(unreached).filter_map(|place| draft.meaning.get(*place));
    let what = if recorded.is_some() { "neither a test nor a recorded call" } else { "no generated test" };
    let idle = idle.map(|sentence| format!("{what} reaches this rule: {sentence}"));
    let survivors = shown
        .survivors
        .iter()
        .map(|mutant| format!("no generated test tells it from: {}", mutant.sentence()));
    idle.chain(survivors).collect()
}

fn show(
    draft: &Draft,
    (tried, unshown, short): (&[String], &[String], &Enumerated),
    recorded: Option<&Recorded>,
    (args, global): (&Args, &Global),
) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "record": "draft", "draft": draft, "failures": tried, "unshown": unshown,
            "short_runs": {"runs": short.runs.len(), "is_cut": short.is_cut}, "recorded": recorded.map(Recorded::record),
        }))?;
        return out.finish();
    }
    let path = args.request.display().to_string();
    for sentence in &draft.meaning {
        out.line(format_args!("  {}", clean_line(sentence)))?;
    }
    for question in &draft.questions {
        let help = match &question.default {
            Some(default) => format!("--answer {}=…, or --accept-defaults for `{default}`", question.id),
            None => format!("--answer '{}=…'", question.id),
        };
        let message = format!("{} [{}]", question.text, question.id);
        let place = Diagnostic::new(&path, &draft.read_as, question.span.clone(), message).help(help);
        out.line(format_args!("{}\n", render(Level::WARNING, &place, &path, &draft.read_as)))?;
    }
    for refusal in &draft.refusals {
        let place = Diagnostic::new(&path, &draft.read_as, refusal.span.clone(), refusal.message.clone())
            .help(refusal.help.clone());
        out.line(format_args!("{}\n", render(Level::ERROR, &place, &path, &draft.read_as)))?;
    }
    for failure in tried {
        out.line(format_args!("{}FAIL{:#} {}", out::BAD, out::BAD, clean_line(failure)))?;
    }
    if let Some(recorded) = recorded {
        recorded.show(&mut out)?;
    }
    for what in unshown {
        out.line(format_args!("{}note{:#} {}", out::NOTICE, out::NOTICE, clean_line(what)))?;
    }
    let rules = count(draft.meaning.len(), "rule", "rules");
    let open = count(draft.questions.len() + draft.refusals.len(), "point is open", "points are open");
    let good = tried.is_empty() && draft.questions.is_empty() && draft.refusals.is_empty();
    let style = if good { out::GOOD } else { out::NOTICE };
    if good && tried.is_empty() && !draft.rules.is_empty() {
        let runs = count(short.runs.len(), "short run of its calls comes", "short runs of its calls come");
        let not_all = if short.is_cut { "; there are more" } else { ", and there are no others" };
        out.line(format_args!("{runs} to what the rules mean{not_all}"))?;
    }
    let tests = draft.tests.matches("```run").count();
    let shown = match (good, tried.len()) {
        (true, _) => format!("all {tests} generated tests pass"),
        // They say nothing before it is known what the rules are.
        (false, 0) => {
            format!("{} when nothing is open", count(tests, "generated test runs", "generated tests run"))
        }
        (false, failed) => format!("{failed} of {tests} generated tests fail"),
    };
    out.line(format_args!("{style}{rules}, {open}{style:#}; {shown}"))?;
    out.finish()
}
