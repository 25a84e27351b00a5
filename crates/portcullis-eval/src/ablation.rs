//! What each stage of safeguards is worth: the scenarios without any, with those before an action is planned, with those
//! along the trajectory as well, and with those after it.
//!
//! Everything else of the pipeline (registry, policy, access) stays in place, so the first line is what the scenarios get
//! without the safeguards of seed 001. All figures are measured here.

use std::path::Path;
use std::sync::Arc;

use portcullis_core::action::Hook;
use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_session::{configuration, policy};
use serde::Serialize;

use crate::interval::Proportion;
use crate::predictions::Predictions;
use crate::report::{Table, Timing};
use crate::scenarios::{self, Figures, Job};
use crate::suite::EvalError;

/// Where in the course of an action a safeguard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// On inputs.
    Pre,
    /// On the trajectory.
    Mid,
    /// On results and replies.
    Post,
}

/// One variant of the pipeline.
#[derive(Debug, Clone, Serialize)]
pub struct Variant {
    /// `none`, `pre`, `pre+mid`, `pre+mid+post`.
    pub name: &'static str,
    /// Its guards.
    pub guards: usize,
    /// All sets of turns together.
    pub figures: Figures,
    /// How long a decision took.
    pub decisions: Timing,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Digest of the bundle.
    pub bundle: String,
    /// Digest of all that judged: the bundle, what is compiled in, and the engine.
    pub configuration: String,
    /// The variants, from none to all.
    pub variants: Vec<Variant>,
}

const VARIANTS: [(&str, Option<Stage>); 4] = [
    ("none", None),
    ("pre", Some(Stage::Pre)),
    ("pre+mid", Some(Stage::Mid)),
    ("pre+mid+post", Some(Stage::Post)),
];

/// The stage of a safeguard; none for what belongs to every variant.
fn stage(meta: &GuardMeta) -> Option<Stage> {
    match meta.id.split('/').next() {
        Some("input") => Some(Stage::Pre),
        Some("trajectory" | "escalation" | "flow") => Some(Stage::Mid),
        Some("outcome") => Some(Stage::Post),
        _ if meta.hooks.contains(&Hook::Action) => None,
        _ => Some(Stage::Mid),
    }
}

/// Runs the base forms and the seen paraphrases through each variant.
///
/// # Errors
/// The scenarios cannot be read.
pub fn run(folder: &Path, bundle: &Arc<Bundle>) -> Result<Report, EvalError> {
    let mut variants = Vec::new();
    for (name, upto) in VARIANTS {
        let mut guards = policy::guards();
        guards.retain(|guard| stage(guard.meta()).is_none_or(|stage| upto.is_some_and(|upto| stage <= upto)));
        let count = guards.len();
        let report = scenarios::run(Job {
            folder: folder.to_owned(),
            unseen: false,
            sensitivity: None,
            bundle: Arc::clone(bundle),
            pipeline: Arc::new(policy::pipeline_of(guards)),
            predictions: Predictions::none(),
        })?;
        let figures = report.lines.values().fold(Figures::default(), |sum, line| sum.with(line));
        variants.push(Variant { name, guards: count, figures, decisions: report.decisions });
    }
    let digest = bundle.digest();
    let configuration = configuration::digest(digest).to_string();
    Ok(Report { bundle: digest.to_string(), configuration, variants })
}

impl Report {
    /// The seed's table: how often misuse goes through, how often harmless work is stopped, what it costs.
    pub fn table(&self) -> Table {
        let head = [
            "safeguards",
            "guards",
            "misuse",
            "not stopped",
            "below level",
            "benign",
            "stopped",
            "p50 us",
            "p99 us",
        ];
        let rows = self.variants.iter().map(|variant| {
            let Figures { misuse, stopped, reached, benign, benign_stopped, .. } = variant.figures;
            vec![
                variant.name.to_owned(),
                variant.guards.to_string(),
                misuse.to_string(),
                percent(misuse - stopped, misuse),
                percent(misuse - reached, misuse),
                benign.to_string(),
                percent(benign_stopped, benign),
                format!("{:.1}", variant.decisions.p50_us),
                format!("{:.1}", variant.decisions.p99_us),
            ]
        });
        Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
    }

    /// What to know when reading it.
    pub fn notes(&self) -> Vec<String> {
        vec![
            "measured on the base forms and seen paraphrases; intervals by Wilson, as if each run were drawn alone"
                .to_owned(),
            "safeguards after an action note and never stop, so the last line can only equal the one before".to_owned(),
        ]
    }
}

/// `33.3 [20.6-49.0]`, in percent.
fn percent(hits: usize, of: usize) -> String {
    let share = Proportion { hits, of };
    match (share.value(), share.interval()) {
        (Some(value), Some(interval)) => {
            format!("{:.1} [{:.1}-{:.1}]", value * 100.0, interval.low * 100.0, interval.high * 100.0)
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_stops_no_less_than_the_one_before() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
        let bundle = Arc::new(policy::load(&crate::agent_bundle::stopping()).unwrap());
        let report = run(&folder, &bundle).unwrap();
        let stopped: Vec<usize> = report.variants.iter().map(|variant| variant.figures.stopped).collect();
        assert!(stopped.is_sorted() && stopped[0] < stopped[1], "{stopped:?}");
        assert_eq!(report.table().rows.len(), 4);
    }
}
