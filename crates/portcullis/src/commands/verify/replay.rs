//! `verify --replay`: every verdict computed again, beside the recorded one.

use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::event::RunOpened;
use portcullis_proof::log::files::EXPORT_FILE;
use portcullis_session::configuration;
use portcullis_sim::replay::{self, Comparison, Item, Lack, Lacking, Options, Outcome, Ruling, Source};
use serde::Serialize;
use serde_json::json;

use crate::archive::Archive;
use crate::bundle::{BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};

/// Verdicts that are shown to people; programs get them all.
const SHOWN_MAX: usize = 50;
/// Digits of a digest that are shown to people.
const DIGEST_SHOWN: usize = 16;

/// An export, and the bundle to judge it with.
pub(super) struct Replay {
    path: PathBuf,
    source: Source,
    opened: Opened,
}

/// A comparison for programs.
#[derive(Serialize)]
struct Line<'c> {
    record: &'static str,
    #[serde(flatten)]
    comparison: &'c Comparison,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Found {
    begin: Option<RunOpened>,
    same: usize,
    /// What did not come out as recorded.
    others: Vec<Comparison>,
}

impl Replay {
    /// Opens both before anything is judged. What can be read but once is kept.
    pub(super) fn open(path: &Path, bundle: &BundleArg, global: &Global) -> Result<Self, Failure> {
        let opened = bundle.open(global)?;
        let unreadable = |error: io::Error| super::unreadable(path, error);
        let is_file = || std::fs::metadata(path).is_ok_and(|kind| kind.is_file() || kind.is_dir());
        let source = if path == Path::new("-") || !is_file() {
            Source::stream(super::text(path)?).map_err(unreadable)?
        } else if let Some(mut archive) = Archive::open(path)? {
            match archive.names().iter().any(|name| name == EXPORT_FILE) {
                true => Source::stream(archive.reader(EXPORT_FILE)?).map_err(unreadable)?,
                // The verification says what is wrong with it.
                false => Source::memory(Vec::new()),
            }
        } else {
            Source::file(path).map_err(unreadable)?
        };
        Ok(Self { path: path.to_owned(), source, opened })
    }

    /// The text of the run, to be verified.
    pub(super) fn text(&self) -> Result<Box<dyn BufRead>, Failure> {
        self.source.open().map_err(|error| super::unreadable(&self.path, error))
    }

    /// Computes the verdicts.
    pub(super) fn compare(&self) -> Result<Found, Failure> {
        let pipeline = Arc::new(portcullis_session::policy::pipeline());
        // Tools that the bundle does not know were unknown then, too.
        let options = Options { policy: None, strict_tools: true };
        let mut found = Found::default();
        replay::replay(&self.source, &self.opened.bundle, &pipeline, &options, &mut |item| {
            match item {
                Item::Opened(opened) => found.begin = Some(opened.clone()),
                Item::Compared(comparison) if comparison.outcome == Outcome::Same => found.same += 1,
                Item::Compared(comparison) => found.others.push(comparison.clone()),
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| super::unreadable(&self.path, error))?;
        Ok(found)
    }

    /// Says what came of it.
    pub(super) fn tell(&self, found: &Found, out: &mut Out, global: &Global) -> Result<(), Failure> {
        let (differ, lacking) = (found.differ(), found.others.len() - found.differ());
        if global.json {
            for comparison in &found.others {
                out.json(&Line { record: "verdict", comparison })?;
            }
            let bundle = self.opened.bundle.digest();
            out.json(&json!({
                "record": "replay", "verdicts": found.same + found.others.len(), "same": found.same,
                "differ": differ, "not_computed": lacking, "bundle": bundle,
                "recorded_bundle": found.begin.as_ref().map(|begin| begin.bundle),
                "configuration": configuration::digest(bundle),
                "recorded_configuration": found.begin.as_ref().and_then(|begin| begin.configuration),
            }))
        } else {
            self.show(found, out)
        }
    }

    fn show(&self, found: &Found, out: &mut Out) -> Result<(), Failure> {
        let (differ, lacking) = (found.differ(), found.others.len() - found.differ());
        let (word, style) = match (differ, lacking) {
            (0, 0) => ("pass", out::GOOD),
            (0, _) => ("not checked", out::NOTICE),
            _ => ("FAIL", out::BAD),
        };
        out.line(format_args!(
            "  {:<11} {style}{word:<11}{style:#}  {} computed as recorded, {differ} otherwise, {lacking} not computed",
            "verdicts",
            count(found.same, "verdict", "verdicts"),
        ))?;
        self.bundles(found, out)?;
        for comparison in found.others.iter().take(SHOWN_MAX) {
            out.line(format_args!("    {}", clean_line(&told(comparison))))?;
        }
        if let Some(more) = found.others.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            out.line(format_args!("    ... and {more} more; --json gives all"))?;
        }
        Ok(())
    }

    /// Says where the run was judged by another bundle or another gate.
    fn bundles(&self, found: &Found, out: &mut Out) -> Result<(), Failure> {
        let Some(begin) = &found.begin else { return Ok(()) };
        let (bundle, notice) = (&self.opened.bundle, out::NOTICE);
        let start = |digest: &dyn std::fmt::Display| -> String {
            digest.to_string().chars().take(DIGEST_SHOWN).collect()
        };
        if begin.bundle != bundle.digest() {
            out.line(format_args!(
                "    {notice}another bundle{notice:#}: the run began under {}, this one is {}",
                start(&begin.bundle),
                start(&bundle.digest())
            ))?;
        }
        let here = configuration::digest(bundle.digest());
        if let Some(there) =
            begin.configuration.filter(|there| begin.bundle == bundle.digest() && *there != here)
        {
            out.line(format_args!(
                "    {notice}another gate{notice:#}: the configuration was {}, this one is {}",
                start(&there),
                start(&here)
            ))?;
        }
        if bundle.policy(&begin.policy).is_none() {
            out.line(format_args!(
                "    {notice}another policy{notice:#}: the bundle has no runtime policy `{}`",
                clean_line(&begin.policy)
            ))?;
        }
        Ok(())
    }
}

impl Found {
    /// The exit code of both answers, of which `verified` is one.
    pub(super) fn code(&self, verified: u8) -> u8 {
        match (self.differ(), self.others.len() - self.differ()) {
            (1.., _) => exit::NO,
            (0, 1..) => exit::INCOMPLETE,
            (0, 0) => verified,
        }
    }

    fn differ(&self) -> usize {
        let differs = |one: &&Comparison| matches!(one.outcome, Outcome::Differs | Outcome::Follows { .. });
        self.others.iter().filter(differs).count()
    }
}

fn ruling(ruling: &Ruling) -> String {
    match &ruling.rule {
        Some(rule) => format!("{} ({rule})", ruling.verdict),
        None => ruling.verdict.to_string(),
    }
}

/// A verdict that did not come out as recorded, in words.
fn told(comparison: &Comparison) -> String {
    let Comparison { event, subject, tool, recorded, computed, bundle, outcome } = comparison;
    let tool = tool.as_deref().map_or_else(String::new, |tool| format!(" `{tool}`"));
    let computed = computed.as_ref().map_or_else(|| "nothing to judge".to_owned(), ruling);
    let bundle = bundle.map_or_else(String::new, |bundle| {
        let start: String = bundle.to_string().chars().take(DIGEST_SHOWN).collect();
        format!("; judged under bundle {start}")
    });
    let recorded = ruling(recorded);
    let what = match outcome {
        Outcome::Same => "as recorded".to_owned(),
        Outcome::Differs => format!("recorded {recorded}, computed {computed}"),
        Outcome::Follows { after } => format!("recorded {recorded}; the runs went apart at event {after}"),
        Outcome::Lacks { lacking: Lacking { event, payload, why } } => {
            let why = match why {
                Lack::Withheld => "is withheld",
                Lack::Erased => "was erased",
                Lack::Redacted => "was redacted",
            };
            format!("recorded {recorded}, not computed: `{payload}` of event {event} {why}")
        }
    };
    format!("event {event}, {subject}{tool}: {what}{bundle}")
}
