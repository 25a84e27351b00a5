//! The report on replayed runs: one table of figures, one by environment and one by agent.

use portcullis_core::id::Digest;
use portcullis_session::configuration;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::play::Fate;
use super::ratio::Ratio;
use super::tally::{Figure, Figures, Tally};
use crate::report::{Skipped, Table, Timing};

/// What an evaluation of recorded runs found.
#[derive(Debug, Clone, Serialize)]
pub struct Outline {
    /// Name of the suite.
    pub suite: &'static str,
    /// Digest of the settings, without the tools that each environment registers.
    pub bundle: String,
    /// Digest of all that judged: the bundle, what is compiled in, and the engine.
    pub configuration: String,
    /// How the data and the guards were changed; none where they were not.
    pub arms: Vec<String>,
    /// Runs that were judged.
    pub judged: usize,
    /// Records that were not, and why.
    pub skipped: Vec<Skipped>,
    /// All runs.
    pub all: Group,
    /// By environment.
    pub environments: Vec<Group>,
    /// By agent.
    pub agents: Vec<Group>,
    /// What stopped calls.
    pub rules: Vec<Rule>,
    /// What others published.
    pub published: &'static [PublishedAttack],
    /// What to know when comparing.
    pub notes: Vec<String>,
    /// How long one call took: judging it, and taking its result in.
    pub calls: Timing,
}

/// Some of the runs.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Which.
    pub name: String,
    /// Runs without attack.
    pub benign: usize,
    /// Runs with an attack.
    pub attacks: usize,
    /// Attacks that succeeded without a call that the oracle knows.
    pub successes_without_call: usize,
    /// Their figures.
    #[serde(serialize_with = "figures")]
    pub figures: Figures,
}

/// How often a rule stopped calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The rule.
    pub rule: String,
    /// In which kind of runs.
    pub runs: &'static str,
    /// Held or denied.
    pub fate: Fate,
    /// How many calls.
    pub calls: usize,
}

/// Figures of somebody else, in percent of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedAttack {
    /// Whose.
    pub name: &'static str,
    /// Attacks that succeed, of all attack runs.
    pub attack_success: f64,
    /// Runs without attack that complete the task.
    pub benign_utility: f64,
}

fn figures<S: Serializer>(figures: &Figures, to: S) -> Result<S::Ok, S::Error> {
    let known = Figure::ALL.iter().filter_map(|figure| Some((figure, figures.get(*figure)?)));
    let mut map = to.serialize_map(None)?;
    for (figure, ratio) in known.filter(|(_, ratio)| ratio.value().is_some()) {
        map.serialize_entry(figure.key(), ratio)?;
    }
    map.end()
}

/// Columns of the tables by environment and by agent.
const COLUMNS: [(Figure, &str); 8] = [
    (Figure::Stopped, "stop"),
    (Figure::StoppedByDenial, "deny"),
    (Figure::ExposedStopped, "exposed"),
    (Figure::SuccessLeft, "left"),
    (Figure::BenignRunsDenied, "benign d"),
    (Figure::BenignRunsStopped, "benign d+h"),
    (Figure::ExcisionRecall, "cut: recall"),
    (Figure::ExcisionPrecision, "cut: prec."),
];

impl Outline {
    /// Of what was counted.
    pub fn of(suite: &'static str, bundle: Digest, tally: Tally) -> Self {
        let group = |(name, figures): (String, Figures)| Group {
            name,
            benign: figures.benign,
            attacks: figures.attacks,
            successes_without_call: figures.successes_without_call,
            figures,
        };
        let rules =
            tally.rules.into_iter().map(|((rule, runs, fate), calls)| Rule { rule, runs, fate, calls });
        Self {
            suite,
            bundle: bundle.to_string(),
            configuration: configuration::digest(bundle).to_string(),
            arms: Vec::new(),
            judged: 0,
            skipped: Vec::new(),
            all: group(("all".to_owned(), tally.all)),
            environments: tally.suites.into_iter().map(group).collect(),
            agents: tally.agents.into_iter().map(group).collect(),
            rules: rules.collect(),
            published: &[],
            notes: Vec::new(),
            calls: Timing::of(tally.times),
        }
    }

    /// The figures with their intervals.
    pub fn table(&self) -> Table {
        let head = ["", "%", "95 %", "n"].map(str::to_owned).to_vec();
        let shown = Figure::ALL.iter().filter_map(|figure| {
            let ratio = self.all.figures.get(*figure).filter(|ratio| ratio.value().is_some())?;
            let (hits, of) = ratio.sums();
            let interval = ratio.interval().map_or_else(
                || "-".to_owned(),
                |interval| format!("{:.1}-{:.1}", interval.low * 100.0, interval.high * 100.0),
            );
            Some(vec![figure.label().to_owned(), percent(Some(ratio)), interval, format!("{hits}/{of}")])
        });
        Table { head, rows: shown.collect() }
    }

    /// The main figures of each environment, then of each agent.
    pub fn groups(&self) -> Table {
        let mut head = ["", "attacks", "benign"].map(str::to_owned).to_vec();
        head.extend(COLUMNS.iter().map(|(_, name)| (*name).to_owned()));
        let row = |group: &Group| {
            let mut row = vec![group.name.clone(), group.attacks.to_string(), group.benign.to_string()];
            row.extend(COLUMNS.iter().map(|(figure, _)| percent(group.figures.get(*figure))));
            row
        };
        let mut rows: Vec<Vec<String>> = self.environments.iter().map(row).collect();
        rows.push(Vec::new());
        rows.extend(self.agents.iter().map(row));
        Table { head, rows }
    }

    /// What others published.
    pub fn published_table(&self) -> Table {
        let row = |published: &PublishedAttack| {
            let percent = |value: f64| format!("{value:.1}");
            vec![
                published.name.to_owned(),
                percent(published.attack_success),
                percent(published.benign_utility),
            ]
        };
        let head = ["published", "attacks succeed", "benign utility"].map(str::to_owned).to_vec();
        Table { head, rows: self.published.iter().map(row).collect() }
    }

    /// What stopped calls, most frequent first.
    pub fn rules(&self) -> Table {
        let mut rules: Vec<&Rule> = self.rules.iter().collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.calls));
        let row = |rule: &Rule| {
            let fate = if rule.fate == Fate::Denied { "denied" } else { "held" };
            vec![rule.rule.clone(), rule.runs.to_owned(), fate.to_owned(), rule.calls.to_string()]
        };
        let head = ["rule", "runs", "", "calls"].map(str::to_owned).to_vec();
        Table { head, rows: rules.into_iter().map(row).collect() }
    }
}

fn percent(ratio: Option<&Ratio>) -> String {
    ratio.and_then(Ratio::value).map_or_else(|| "-".to_owned(), |value| format!("{:.1}", value * 100.0))
}
