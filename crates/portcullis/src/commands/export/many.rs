//! An export of many runs: those of a span of time, or of one principal.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::log::LogReader;
use portcullis_ledger::{ExportOptions, Kin, Location, Reader, RunFilter};
use portcullis_proof::Hex;
use portcullis_proof::kin::{TREE_FILE, tree_file};
use portcullis_proof::log::files::{EXPORT_FILE, README_FILE, RUNS_FOLDER};
use portcullis_proof::log::{Checkpoint, TrustPolicy};
use serde_json::json;

use super::{anchored, refused, write_to};
use crate::archive::ArchiveWriter;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, count};

/// The most runs of one export.
const RUNS_MAX: usize = 9_999;

const README: &str = "\
This archive holds the recorded runs of a span of time, or of one principal, and what a transparency log says of them.

runs/RUN/run.export   a run: events, and the payloads that were handed over
runs/RUN/log/         leaves of the log on this run, each with the proof that the log has it
log/                  one leaf for every number between the first and the last run's, so that a dropped run shows

Verify it with a trust policy that you already have, never with one that came along:

    portcullis verify THIS.zip --trust trust.policy
";

const README_TREE: &str = "\
This archive holds a recorded run, all runs that it opened for delegated agents, and what a transparency log says of \
them.

tree                  which run all others are below
runs/RUN/run.export   a run: events, and the payloads that were handed over
runs/RUN/log/         leaves of the log on this run, each with the proof that the log has it

Verify it with a trust policy that you already have, never with one that came along:

    portcullis verify THIS.zip --trust trust.policy
";

/// Which runs.
pub(super) struct Selection<'a> {
    /// Opened at this time or later.
    pub(super) since: Option<Timestamp>,
    /// Opened before this time.
    pub(super) until: Option<Timestamp>,
    /// On whose behalf.
    pub(super) principal: Option<&'a str>,
}

pub(super) fn run(
    reader: &dyn Reader,
    store: &Location,
    selection: &Selection<'_>,
    options: ExportOptions,
    policy: Option<&TrustPolicy>,
    path: &Path,
    global: &Global,
) -> Result<u8, Failure> {
    let runs = selected(reader, selection)?;
    let Some(latest) = runs.last() else {
        return Err(Failure::no("no run was opened in that time, or for that principal")
            .help("`portcullis runs list` lists the runs"));
    };
    // Those before the latest run are in the log by the time that it is.
    anchored::evidence(reader, store, *latest, policy)?;
    write(reader, store, &runs, None, options, policy, path, global)
}

/// A run and all that it opened, and that those opened.
pub(super) fn tree(
    reader: &dyn Reader,
    store: &Location,
    root: RunId,
    options: ExportOptions,
    policy: Option<&TrustPolicy>,
    path: &Path,
    global: &Global,
) -> Result<u8, Failure> {
    let Below { runs, missing } = below(reader, root)?;
    for (opener, child) in &missing {
        note_missing(*opener, *child);
    }
    for run in &runs {
        anchored::evidence(reader, store, *run, policy)?;
    }
    let code = write(reader, store, &runs, Some(root), options, policy, path, global)?;
    if below(reader, root)?.runs != runs {
        return Err(Failure::no("a run of the tree opened another one while the tree was written")
            .help("export it again, or close its runs first"));
    }
    Ok(code)
}

/// A run and all runs below it.
struct Below {
    /// Each after the one that opened it.
    runs: Vec<RunId>,
    /// Those that have no events, each behind its opener.
    missing: Vec<(RunId, RunId)>,
}

fn below(reader: &dyn Reader, root: RunId) -> Result<Below, Failure> {
    let (mut runs, mut missing) = (vec![root], Vec::new());
    let mut next = 0;
    while let Some(run) = runs.get(next) {
        let opener = *run;
        for child in Kin::of(reader, opener).map_err(|error| refused(&error))?.children {
            match reader.head(child).map_err(|error| refused(&error))? {
                Some(head) if head.count > 0 => runs.push(child),
                _ => missing.push((opener, child)),
            }
        }
        next += 1;
        if runs.len() > RUNS_MAX {
            return Err(Failure::no(format!("more than {RUNS_MAX} runs, which is the limit of an export"))
                .help("export the runs below it one by one"));
        }
    }
    Ok(Below { runs, missing })
}

/// The daemon ended between the opening of a run and its first event. Its parent says so once it is taken up.
fn note_missing(opener: RunId, child: RunId) {
    // Nobody reads it: verifying says the same.
    let _unread = writeln!(
        anstream::stderr(),
        "note: run {child}, which run {opener} opened, has no events: the daemon ended before it began. Resume run {opener}, \
         which then records that, and export again; until then `portcullis verify` says `kin-missing`"
    );
}

#[expect(clippy::too_many_arguments, reason = "what an export is made of")]
fn write(
    reader: &dyn Reader,
    store: &Location,
    runs: &[RunId],
    root: Option<RunId>,
    options: ExportOptions,
    policy: Option<&TrustPolicy>,
    path: &Path,
    global: &Global,
) -> Result<u8, Failure> {
    let places = store.log();
    let failed = |error| anchored::failed(error);
    let log = LogReader::open(&places).map_err(failed)?;
    let remembered: Vec<u64> =
        policy.iter().flat_map(|policy| &policy.remembered).map(Checkpoint::size).collect();
    let bar = progress(runs.len() as u64);
    let mut events = 0;
    let numbers = write_to(path, |file: &mut File| {
        let mut archive = ArchiveWriter::new(file);
        archive.put(README_FILE, if root.is_some() { README_TREE } else { README }.as_bytes())?;
        if let Some(root) = root {
            archive.put(TREE_FILE, tree_file(Hex(*root.as_bytes())).as_bytes())?;
        }
        for run in runs {
            let folder = format!("{RUNS_FOLDER}{run}/");
            let evidence = log.evidence(*run, &remembered).map_err(failed)?;
            let export = archive.begin(&format!("{folder}{EXPORT_FILE}"))?;
            events += reader.export_run(*run, export, options).map_err(|error| refused(&error))?.events;
            for file in &evidence {
                archive.put(&format!("{folder}{}", file.name), &file.bytes)?;
            }
            bar.inc(1);
        }
        // What is below a run is known from the records of the runs.
        let numbers = match root {
            Some(_) => Vec::new(),
            None => log.numbers(runs, &remembered).map_err(failed)?,
        };
        for file in &numbers {
            archive.put(&file.name, &file.bytes)?;
        }
        archive.finish()?;
        Ok(numbers.len())
    })?;
    bar.finish_and_clear();
    let mut out = Out::new();
    if global.json {
        out.json(&json!({"record": "exported", "file": path, "runs": runs, "events": events}))?;
    } else {
        out.line(format_args!(
            "{}: {} with {}",
            path.display(),
            count(runs.len(), "run", "runs"),
            count(events, "event", "events"),
        ))?;
        if numbers == 0 && root.is_none() {
            out.line(format_args!("the log does not have these runs yet"))?;
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

/// A bar over runs, on terminals.
fn progress(runs: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// The runs in the order in which they were opened.
fn selected(reader: &dyn Reader, selection: &Selection<'_>) -> Result<Vec<RunId>, Failure> {
    let filter = RunFilter {
        principal: selection.principal.map(str::to_owned),
        since: selection.since,
        until: selection.until,
        older_than: None,
        limit: Some(RUNS_MAX + 1),
    };
    let all = reader.runs(&filter).map_err(|error| refused(&error))?;
    if all.len() > RUNS_MAX {
        return Err(Failure::no(format!("more than {RUNS_MAX} runs, which is the limit of an export"))
            .help("choose a shorter span of time, or one principal"));
    }
    let mut runs: Vec<RunId> = all.iter().map(|run| run.run).collect();
    runs.reverse();
    Ok(runs)
}

/// A day (from its beginning, in UTC) or a time.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let whole = match (text.len(), text.strip_suffix('Z')) {
        (10, _) => format!("{text}T00:00:00.000000Z"),
        (20, Some(seconds)) => format!("{seconds}.000000Z"),
        _ => text.to_owned(),
    };
    whole.parse().map_err(|_| {
        format!(
            "`{}` is neither a day like 2026-11-30 nor a time like 2026-11-30T08:00:00Z",
            text.escape_debug()
        )
    })
}
