//! `portcullis policy promote`: a draft becomes part of a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_compile::draft::Draft;
use portcullis_compile::emit;
use portcullis_core::bundle::{ApprovalSettings, Bundle, Difference};
use portcullis_gateway::versions::{Changes, changes_between, sha};
use portcullis_session::bundle_dir;
use portcullis_session::cases::{CaseFile, Report, run_file};
use portcullis_session::policy::Pipeline;
use serde_json::{Value, json};

use super::change::{self, Change, ChangeArgs, Failed};
use super::lint;
use crate::bundle::{self, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::input;
use crate::out::{self, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis policy promote draft --bundle mine --check
  portcullis policy promote draft --bundle mine
  portcullis policy promote draft --bundle mine --widen \"ticket 812\"

Adds the files of a draft of `policy compile -o` to a bundle, if nothing is open, nothing there is in the way, and all \
tests pass: the draft's and the bundle's. A change that can only stop more is made at once; one that may allow more needs \
a person, who is asked at a terminal or names with --shown what was shown. The bundle before is kept as a version, \
and the ledger says who promoted what. Needs the approver's credential of the state folder.

Exit codes: 0 promoted, 1 something is in the way, 2 questions are open or a person has to decide, 3 unreadable.";

/// Size of the record of a draft, in bytes: a request, its files and tests.
const DRAFT_BYTES_MAX: usize = 16 << 20;
/// Failures that are shown.
const SHOWN_MAX: usize = 20;

/// Put a draft in force
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of the draft, as `policy compile -o` writes it
    #[arg(value_name = "DRAFT")]
    draft: PathBuf,
    #[command(flatten)]
    change: ChangeArgs,
}

/// What a draft makes of a bundle.
struct Promotion {
    files: BTreeMap<String, Vec<u8>>,
    bundle: Arc<Bundle>,
    changes: Changes,
    widening: Vec<Difference>,
    /// Runs of its tests that the bundle stops for reasons of its own.
    left_out: BTreeSet<String>,
    tests: String,
    passed: usize,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let draft = read(&args.draft)?;
    let folder = args.change.folder(global)?;
    let old = change::open(&folder)?;
    let mut out = Out::new();
    if let Some(open) = open_points(&draft) {
        return Err(open);
    }
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    if let Some(failed) = alone(&draft, &pipeline) {
        return Err(Failure::no(format!("the draft's own tests fail: {failed}")).help("compile it again"));
    }
    let promotion = promotion(&draft, &old, &folder, &pipeline)?;
    let (before, after) = (old.bundle.digest(), promotion.bundle.digest());
    if promotion.changes.is_empty() {
        out.line(format_args!("the bundle has all of the draft already"))?;
        out.finish()?;
        return Ok(exit::YES);
    }
    if !global.json {
        shown(&mut out, &draft, &promotion, &old)?;
    }
    let change = Change {
        verb: format!("promotes the draft `{}` into", draft.name),
        what: format!("draft `{}` promoted", draft.name),
        provenance: provenance(&draft, &promotion),
        changes: &promotion.changes,
        old: &old,
        files: &promotion.files,
        widening: &promotion.widening,
    };
    let done = args.change.make(&mut out, &change, &folder, global)?;
    let code = if global.json {
        let mut record = change::record(&done, "promoted", (before, after), &promotion.widening);
        if let Some(record) = record.as_object_mut() {
            record.insert(
                "tests".to_owned(),
                json!({"passed": promotion.passed, "left_out": promotion.left_out}),
            );
        }
        out.json(&record)?;
        change::code(&done)
    } else {
        change::told(&mut out, &done, ("promoted", after), &folder)?
    };
    out.finish()?;
    Ok(code)
}

/// The draft in a folder, if the folder has what was compiled.
fn read(folder: &Path) -> Result<Draft, Failure> {
    let path = folder.join("draft.json");
    let text = input::text(&path, DRAFT_BYTES_MAX)?;
    let draft: Draft = serde_json::from_str(&text).map_err(|error| {
        input::unreadable(&path, error).help("it is not as this version writes it; compile the request again")
    })?;
    let changed = |what: &str| {
        Failure::no(format!("{what} since the draft was compiled"))
            .help("compile the request again; for a program of your own, give it as `policy compile --program FILE`")
    };
    let files = bundle_dir::read_files(folder).map_err(Failure::unreadable)?;
    let mut wanted: BTreeMap<String, &str> =
        draft.files.iter().map(|(path, text)| (path.clone(), text.as_str())).collect();
    wanted.insert(draft.tests_path(), &draft.tests);
    wanted.insert("request.md".to_owned(), &draft.request);
    if !draft.settings.is_empty() {
        wanted.insert("portcullis.toml.add".to_owned(), &draft.settings);
    }
    for (path, text) in &wanted {
        if files.get(path).map(Vec::as_slice) != Some(text.as_bytes()) {
            return Err(changed(&format!("`{path}` was changed")));
        }
    }
    if let Some(path) = files.keys().find(|path| *path != "draft.json" && !wanted.contains_key(*path)) {
        return Err(changed(&format!("`{path}` was added")));
    }
    if draft.again() != draft {
        let message =
            "the request does not compile to this draft: it was changed, or made by another version";
        return Err(Failure::no(message).help("compile the request again"));
    }
    Ok(draft)
}

fn open_points(draft: &Draft) -> Option<Failure> {
    let questions = draft.questions.iter().map(|question| format!("{} [{}]", question.text, question.id));
    let refusals = draft.refusals.iter().map(|refusal| refusal.message.clone());
    let open: Vec<String> = questions.chain(refusals).collect();
    let first = open.first()?;
    let points = count(open.len(), "point is open", "points are open");
    Some(Failure::incomplete(format!("{points}: {first}")).help("compile the request again with answers"))
}

/// What fails of the draft's tests on a bundle that stops nothing else.
fn alone(draft: &Draft, pipeline: &Arc<Pipeline>) -> Option<String> {
    let cases = match CaseFile::parse(&draft.tests) {
        Ok(cases) => cases,
        Err(error) => return Some(error.message),
    };
    let report = run_file(&cases, &draft.laid_over(&draft.spec().open_bundle()), pipeline);
    report.mismatches.first().map(|found| format!("{}: {}", found.case, found.message))
}

fn promotion(
    draft: &Draft,
    old: &Opened,
    folder: &Path,
    pipeline: &Arc<Pipeline>,
) -> Result<Promotion, Failure> {
    let in_the_way = |why: &str| {
        Failure::no(format!("the draft cannot be added: {why}"))
            .help("rename the request's file, or take out of the bundle what is replaced")
    };
    let added = draft.added_to(&old.files).map_err(|conflicts| in_the_way(&conflicts.join("; ")))?;
    if let Some(tool) = draft.tools_unknown_to(&old.bundle.registry).first() {
        return Err(Failure::no(format!(
            "the bundle lists no tool `{tool}`, so the rule would never stop a call"
        ))
        .help("compile the request for this bundle, with `--bundle`, or add the tool to it"));
    }
    let mut files = old.files.clone();
    files.extend(added.into_iter().map(|(path, text)| (path, text.into_bytes())));
    let (left_out, tests) = fitting_tests(draft, &old.files, &files, pipeline)?;
    match old.files.get(&draft.tests_path()) {
        Some(there) if there != tests.as_bytes() => {
            return Err(in_the_way(&format!("the bundle has another `{}`", draft.tests_path())));
        }
        _ => drop(files.insert(draft.tests_path(), tests.clone().into_bytes())),
    }
    let new = bundle::load_files(folder, files)?;
    let (failed, passed) = change::failing(&new.bundle, &new.files, pipeline);
    if let Some(failure) = refusal(&failed) {
        return Err(failure);
    }
    let own: BTreeSet<String> = draft.rules.iter().map(|rule| emit::finding(&draft.name, rule)).collect();
    let mut widening = change::widening(&old.bundle, &new.bundle);
    if approvals_narrow(&old.bundle.approvals, &new.bundle.approvals, &own) {
        widening.retain(|part| part.part != "[[approvals.rule]]");
    }
    let changes = changes_between(&old.files, &new.files);
    Ok(Promotion { files: new.files, bundle: new.bundle, changes, widening, left_out, tests, passed })
}

/// The draft's tests without the runs that the bundle stops for reasons of its own, which are no matter of the draft.
fn fitting_tests(
    draft: &Draft,
    base: &BTreeMap<String, Vec<u8>>,
    files: &BTreeMap<String, Vec<u8>>,
    pipeline: &Arc<Pipeline>,
) -> Result<(BTreeSet<String>, String), Failure> {
    let cases = CaseFile::parse(&draft.tests).map_err(|error| Failure::no(error.message))?;
    let (without, with) = (run_file(&cases, base, pipeline), run_file(&cases, files, pipeline));
    let first =
        |report: &Report, case: &str| report.mismatches.iter().find(|found| found.case == case).cloned();
    let stopped_anyway = |case: &&String| {
        let found = first(&with, case.as_str());
        found.is_some_and(|found| {
            found.message.starts_with("expected allow, got ") && first(&without, case.as_str()) == Some(found)
        })
    };
    let left_out: BTreeSet<String> = with.failed.iter().filter(stopped_anyway).cloned().collect();
    let tests = draft.tests_without(&left_out);
    Ok((left_out, tests))
}

fn refusal(failed: &[Failed]) -> Option<Failure> {
    if failed.is_empty() {
        return None;
    }
    let tests = count(failed.len(), "expectation does", "expectations do");
    let mut text = format!("{tests} not hold with the draft in the bundle:");
    for Failed { file, case, line, message } in failed.iter().take(SHOWN_MAX) {
        let _infallible = write!(text, "\n  {file}:{line} [{case}]: {message}");
    }
    Some(Failure::no(text).help("change the request, or the tests where they are about what is to change"))
}

/// Whether approval rules were only added, at the end, for what this draft holds, and let nobody approve who may not
/// approve otherwise.
fn approvals_narrow(old: &ApprovalSettings, new: &ApprovalSettings, own: &BTreeSet<String>) -> bool {
    let Some(added) = new.rules.strip_prefix(old.rules.as_slice()) else { return false };
    let general = &old.requirement;
    added.iter().all(|rule| {
        let mut inherited = rule.requirement.clone();
        inherited.roles.clone_from(&general.roles);
        let roles = &rule.requirement.roles;
        let fewer = general.roles.is_empty() || (!roles.is_empty() && roles.is_subset(&general.roles));
        !rule.rules.is_empty() && rule.rules.is_subset(own) && inherited == *general && fewer
    })
}

fn provenance(draft: &Draft, promotion: &Promotion) -> Value {
    let digest = |path: &String| promotion.files.get(path).map(|bytes| sha(bytes));
    let files: BTreeMap<&String, Option<String>> =
        promotion.changes.keys().map(|path| (path, digest(path))).collect();
    json!({
        "draft": draft.name, "request_sha256": sha(draft.request.as_bytes()), "answers": draft.answers,
        "origin": draft.origin, "compiled_by": env!("CARGO_PKG_VERSION"),
        "tests_sha256": sha(promotion.tests.as_bytes()), "tests_left_out": promotion.left_out.len(),
        "meaning": draft.meaning, "files_sha256": files,
    })
}

fn shown(out: &mut Out, draft: &Draft, promotion: &Promotion, old: &Opened) -> Result<(), Failure> {
    for sentence in &draft.meaning {
        out.line(format_args!("  {}", clean_line(sentence)))?;
    }
    let known: BTreeSet<String> =
        lint::all(&old.bundle).into_iter().map(|lint| lint.diagnostic.message).collect();
    for lint in lint::all(&promotion.bundle) {
        if !known.contains(&lint.diagnostic.message) {
            let (notice, message) = (out::NOTICE, clean_line(&lint.diagnostic.message));
            out.line(format_args!("{notice}lint{notice:#} {message} [{}]", lint.name))?;
        }
    }
    if !promotion.left_out.is_empty() {
        let runs = count(promotion.left_out.len(), "generated test", "generated tests");
        out.line(format_args!(
            "{}note{:#} {runs} left out, whose calls other rules of the bundle stop already",
            out::NOTICE,
            out::NOTICE
        ))?;
    }
    out.line(format_args!(
        "{}{} passed{:#}",
        out::GOOD,
        count(promotion.passed, "test", "tests"),
        out::GOOD
    ))?;
    change::show(out, &old.bundle, &promotion.bundle, &promotion.widening)
}
