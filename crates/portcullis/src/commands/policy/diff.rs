//! `portcullis policy diff`: which verdicts a change of policy changes, over recorded runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Difference, Direction};
use portcullis_core::verdict::Verdict;
use portcullis_gateway::home::Home;
use portcullis_ledger::{ExportOptions, RunFilter};
use portcullis_session::policy::Pipeline;
use portcullis_sim::backtest::compare;
use portcullis_sim::replay::{Row, Source};
use serde_json::json;

use super::{differences, prove};
use crate::bundle::{self, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count, verdict_style};

const EXAMPLES: &str = "\
Examples:
  portcullis policy diff old-bundle new-bundle traces.jsonl
  portcullis policy diff old-bundle new-bundle --runs 200
  portcullis policy diff old-bundle new-bundle run.export --json
  portcullis policy diff old-bundle new-bundle --prove

Lists the parts of the bundles that differ (mode, limits, tools, how arguments are read, credentials, ...) and which way \
they changed. Then judges recorded runs under both bundles and shows every call whose verdict differs: OpenAI chat \
messages, exports, or the latest runs of the state folder's store. Runs that the gate recorded are judged with the \
principals, approvals and places that they had.

With --prove nothing is replayed: an SMT solver (`cvc5`, a package of most systems) shows that the access policies of \
NEW permit nothing that OLD denied, or gives a request that they do. Every other part is compared: a loosened one is \
never covered by the proof.

Exit codes: 0 no verdict changes and every part is the same or stricter, 1 a verdict changes or a part is loosened, 2 a \
part changed in a way that nothing general can be said of (unless --allow-changed is given) or there was no call to judge. \
With --prove: 0 proved, and no other part may allow more; 1 there is a counterexample, or another part is loosened; 2 neither \
could be found, another part changed in a way that no proof covers, or there is no solver.";

/// Show which verdicts change from one bundle to another, over recorded runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of the bundle in force
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Folder of the bundle that would replace it
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Recorded runs; without any, the latest of the store are taken
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// How many runs of the store to take
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "traces")]
    runs: u32,
    /// Exit with 0 even if parts changed of which nobody can say whether they allow more
    #[arg(long, conflicts_with = "prove")]
    allow_changed: bool,
    /// Prove that the new access policies permit nothing that the old ones did not, instead of judging runs
    #[arg(long, conflicts_with_all = ["traces", "runs", "policy"])]
    prove: bool,
    /// The SMT solver for --prove
    #[arg(long, value_name = "PROGRAM", default_value = portcullis_prove::SOLVER, requires = "prove")]
    solver: PathBuf,
    /// Name of the runtime policy in both bundles; the default of each if left out
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
}

pub(super) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let old = bundle::open(&args.old)?;
    let new = bundle::open(&args.new)?;
    if args.prove {
        return prove::run(&old, &new, &args.solver, global);
    }
    for opened in [&old, &new] {
        bundle::check_policy(&opened.bundle, args.policy.as_deref())?;
    }
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let mut comparison = Comparison::default();
    for (name, source) in sources(args, global)? {
        comparison.add(&name, &source, [&old.bundle, &new.bundle], &pipeline, args.policy.as_deref())?;
    }
    comparison.parts = old.bundle.differences(&new.bundle);
    let has = |direction| comparison.parts.iter().any(|part| part.direction == direction);
    let loosened = has(Direction::Loosened);
    let unknown = has(Direction::Changed) && !args.allow_changed;
    let mut out = Out::new();
    comparison.show(&mut out, global, &old, &new)?;
    out.finish()?;
    Ok(match (comparison.calls, comparison.changes.is_empty()) {
        (_, true) if loosened => exit::NO,
        (0, _) => exit::INCOMPLETE,
        (_, true) if unknown => exit::INCOMPLETE,
        (_, true) => exit::YES,
        _ => exit::NO,
    })
}

/// What is judged, with the names to show.
fn sources(args: &Args, global: &Global) -> Result<Vec<(String, Source)>, Failure> {
    if !args.traces.is_empty() {
        let open = |path: &PathBuf| {
            let source = Source::file(path)
                .map_err(|error| Failure::unreadable(format!("cannot read `{}`: {error}", path.display())))?;
            Ok((path.display().to_string(), source))
        };
        return args.traces.iter().map(open).collect();
    }
    stored(&global.home()?, args.runs)
}

/// The latest runs of a state folder.
pub(super) fn stored(home: &Home, runs: u32) -> Result<Vec<(String, Source)>, Failure> {
    let reader = home.store().reader().map_err(|error| {
        Failure::unreadable(error).help("name traces, or give --home a state folder that has a store")
    })?;
    let latest = RunFilter { limit: Some(runs as usize), ..RunFilter::default() };
    let runs = reader.runs(&latest).map_err(Failure::unreadable)?;
    let mut sources = Vec::new();
    for run in runs {
        let mut bytes = Vec::new();
        reader
            .export_run(run.run, &mut bytes, ExportOptions { payloads: true })
            .map_err(Failure::unreadable)?;
        sources.push((format!("run {}", out::short(&run.run)), Source::memory(bytes)));
    }
    Ok(sources)
}

/// A call whose verdict differs.
struct Change {
    source: String,
    old: Row,
    new: Row,
}

/// What differs over all sources.
#[derive(Default)]
pub(super) struct Comparison {
    runs: usize,
    calls: usize,
    /// Calls that stand in one of the two replays only, because an earlier verdict differs.
    unmatched: usize,
    changes: Vec<Change>,
    /// Parts of the bundles that differ.
    parts: Vec<Difference>,
    runs_changed: BTreeSet<(String, usize)>,
}

/// Where a call stands.
pub(super) fn place(source: &str, row: &Row) -> String {
    match row.recorded {
        Some(_) => format!("{source}, line {}", row.line),
        None => format!("{source}, run {} call {}", row.run, row.call),
    }
}

/// Most changes that are kept; the counts go on.
const CHANGES_MAX: usize = 100_000;

impl Comparison {
    /// How many runs were judged.
    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    /// How many calls were judged.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Calls that pass under the old bundle and not under the new one, with their sources.
    pub(super) fn newly_stopped(&self) -> impl Iterator<Item = (&str, &Row, &Row)> {
        let stopped = self
            .changes
            .iter()
            .filter(|change| change.old.verdict.permits() && !change.new.verdict.permits());
        stopped.map(|change| (change.source.as_str(), &change.old, &change.new))
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        source: &Source,
        bundles: [&Arc<Bundle>; 2],
        pipeline: &Arc<Pipeline>,
        policy: Option<&str>,
    ) -> Result<(), Failure> {
        let compared = compare(source, bundles, pipeline, policy)
            .map_err(|error| Failure::unreadable(format!("cannot judge `{name}`: {error}")))?;
        self.runs += compared.runs;
        self.calls += compared.calls;
        self.unmatched += compared.unmatched;
        for (old, new) in compared.changes {
            self.runs_changed.insert((name.to_owned(), old.run));
            if self.changes.len() < CHANGES_MAX {
                self.changes.push(Change { source: name.to_owned(), old, new });
            }
        }
        Ok(())
    }

    fn show(&self, out: &mut Out, global: &Global, old: &Opened, new: &Opened) -> Result<(), Failure> {
        let of = |what: fn(Verdict, Verdict) -> bool| {
            self.changes.iter().filter(|change| what(change.old.verdict, change.new.verdict)).count()
        };
        let stopped = of(|old, new| old.permits() && !new.permits());
        let passing = of(|old, new| !old.permits() && new.permits());
        let reasons = of(|old, new| old == new);
        let parts = |direction| self.parts.iter().filter(|part| part.direction == direction).count();
        let (loosened, other) = (parts(Direction::Loosened), parts(Direction::Changed));
        if global.json {
            for part in &self.parts {
                out.json(&differences::record(part))?;
            }
            for change in &self.changes {
                out.json(&json!({
                    "record": "change", "source": change.source, "run": change.old.run, "line": change.old.line,
                    "call": change.old.call, "tool": change.old.tool,
                    "old": {"verdict": change.old.verdict, "rule": change.old.rule, "message": change.old.message},
                    "new": {"verdict": change.new.verdict, "rule": change.new.rule, "message": change.new.message},
                }))?;
            }
            return out.json(&json!({
                "record": "summary", "runs": self.runs, "calls": self.calls, "changed": self.changes.len(),
                "runs_changed": self.runs_changed.len(), "newly_stopped": stopped, "newly_passing": passing,
                "same_verdict_other_rule": reasons, "unmatched": self.unmatched,
                "parts": self.parts.len(), "loosened": loosened, "parts_changed": other,
                "old": old.bundle.digest(), "new": new.bundle.digest(),
            }));
        }
        differences::show(out, &self.parts)?;
        self.table(out)?;
        let (good, bad) = (out::GOOD, out::BAD);
        let style = if self.changes.is_empty() { good } else { bad };
        let (calls, runs) = (count(self.calls, "call", "calls"), count(self.runs, "run", "runs"));
        out.line(format_args!(
            "{style}{} of {calls}{style:#} in {} of {runs}: {stopped} newly stopped, {passing} newly passing, \
             {reasons} for another rule",
            count(self.changes.len(), "verdict changes", "verdicts change"),
            self.runs_changed.len()
        ))?;
        if !self.parts.is_empty() {
            let style = if loosened > 0 { bad } else { good };
            let unsure = match other {
                0 => String::new(),
                other => format!(", {other} changed in a way that may allow more"),
            };
            out.line(format_args!(
                "{}, {style}{loosened} loosened{style:#}{unsure}; recorded calls show only what they reached",
                count(self.parts.len(), "part of the bundles differs", "parts of the bundles differ")
            ))?;
        }
        if self.unmatched > 0 {
            let calls = count(self.unmatched, "call is", "calls are");
            out.line(format_args!(
                "{calls} judged under one bundle only, because an earlier verdict differs"
            ))?;
        }
        Ok(())
    }

    /// The changes, alike ones together, the most frequent first.
    fn table(&self, out: &mut Out) -> Result<(), Failure> {
        let mut groups: BTreeMap<_, Vec<&Change>> = BTreeMap::new();
        for change in &self.changes {
            let (old, new) = (&change.old, &change.new);
            let key = (&old.tool, old.verdict, &old.rule, new.verdict, &new.rule);
            groups.entry(key).or_default().push(change);
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|changes| std::cmp::Reverse(changes.len()));
        for changes in groups {
            let Some(first) = changes.first() else { continue };
            let (old, new) = (&first.old, &first.new);
            let (from, to) = (verdict_style(old.verdict), verdict_style(new.verdict));
            let tool = clean_line(old.tool.as_deref().unwrap_or("(thinking)"));
            out.line(format_args!(
                "{:>6}x  {from}{}{from:#} -> {to}{}{to:#}  {tool}",
                changes.len(),
                old.verdict,
                new.verdict
            ))?;
            for (word, row) in [("old", old), ("new", new)] {
                if let (Some(rule), Some(message)) = (&row.rule, &row.message) {
                    out.line(format_args!("         {word}  {rule}: {}", clean_line(message)))?;
                }
            }
            out.line(format_args!("         first in {}", clean_line(&place(&first.source, old))))?;
        }
        Ok(())
    }
}
