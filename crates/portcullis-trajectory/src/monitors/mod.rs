//! The monitors of a run: intent, drift, violations, outcomes, anomalies.
//!
//! A text becomes concepts, concepts that meet become matches of patterns ([`Vocabulary`]), and matches become numbers:
//!
//! - the *intent score* of an input: 0.4 malicious + 0.3 risky words + 0.3 risk of what is asked for;
//! - *drift*: of each input and call 0.6 rise over the stated goal + 0.4 escalation, added to one accumulator that stays
//!   within 0 and 1. The step and the total are both kept;
//! - *violations*: calls that do what nobody may ask for, whatever the words.
//!
//! The first thing said in a run is its stated goal, by which drift is measured. What is remembered is bounded: two sets of
//! concepts, the folders of restricted sources, and a few numbers a tool.

mod acts;
mod advise;
mod arguments;
pub mod learned;
mod outcome;
mod own;
mod to_gate;
mod vocabulary;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use portcullis_core::action::Action;
use portcullis_core::bundle::{Bundle, MonitorSettings, Scores, Weights};
use portcullis_core::effect::Effect;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::ActionId;
use portcullis_core::tool::Tool;

use self::advise::{Spoken, remembered, step_under};
use self::arguments::{AllWords, Arguments};
use self::learned::{Learned, Said};
pub use self::outcome::{Anomaly, Claim};
use self::vocabulary::{Before, Of, Stretch};
pub use self::vocabulary::{Bits, Match, Vocabulary};
use self::words::{Word, Words, words};

/// Words of requests that are remembered, to tell whether a request covers a tool.
pub const REQUEST_WORDS_MAX: usize = 16_384;
/// Calls whose result is waited for.
pub const CALLS_MAX: usize = 1_024;
/// Folders of restricted sources that are remembered; the oldest go first.
pub const FOLDERS_MAX: usize = 256;
/// Addresses that are remembered, of results and of what the user said; the oldest go first.
pub const ADDRESSES_MAX: usize = 1_024;
/// What a turn without any match takes off drift: who returns to the goal is given credit, slowly.
const RETURN: f64 = 0.1;
/// Uncertainty of a call from which the user is asked what is meant.
const UNSURE: f64 = 0.4;
/// Words of a result that is a notice as a whole. In a longer one a restriction may be of something else.
const NOTICE_WORDS: usize = 60;
/// Turns of talk without any result, after a notice, from which a call looks talked into.
const TALK: u32 = 2;

/// What was read in one text or call.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The concepts in it.
    pub bits: Bits,
    /// The patterns that match.
    pub matches: Vec<Match>,
    /// Where the first of them matches, in bytes of the text; of inputs only.
    pub place: Option<(usize, usize)>,
    /// Where an input tells the gate or its approver to stop judging.
    pub to_gate: Option<(usize, usize)>,
    /// The intent score, of inputs only.
    pub intent: Intent,
    /// What this adds to drift.
    pub step: f64,
    /// Drift with it.
    pub drift: f64,
    /// The risk that the request does not cover, of calls only; see [`Monitors::uncovered_risk`].
    pub tool_risk: Option<f64>,
    /// Words of an input, for the record.
    request: Vec<u64>,
    /// Folders that a call names.
    folders: Vec<u64>,
    /// Addresses of an input or a result.
    addresses: Vec<u64>,
    /// An input as the learned score counts it.
    said: Said,
    /// A result tells of a restriction; the second, as a whole.
    restricted: bool,
    notice: bool,
    /// A call whose planner is so unsure that the user is asked.
    unsure: bool,
    /// Scores advise: neither a learned score nor what others wrote makes a call a violation.
    advised: bool,
    stretches: Vec<Stretch>,
    violations: OnceLock<Vec<Violation>>,
    /// What is odd in a result.
    pub anomalies: Vec<Anomaly>,
    /// A result that says of itself that it failed.
    pub failed: bool,
    /// A reply that says that something was done.
    pub claim: Option<Claim>,
    bytes: usize,
}

/// The parts of an intent score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Intent {
    /// min(matches / 3, 1).
    pub malicious: f64,
    /// min(risky words / 5, 1).
    pub keywords: f64,
    /// The highest risk of what is asked for.
    pub action: f64,
    /// The sum by the weights of the bundle.
    pub score: f64,
}

impl Intent {
    /// The score of `matches` malicious matches, `hits` risky words, and an action of `risk`.
    pub fn of(matches: f64, hits: f64, risk: f64, weights: &Weights) -> Self {
        let (malicious, keywords) = ((matches / 3.0).min(1.0), (hits / 5.0).min(1.0));
        let score = weights.malicious * malicious + weights.keywords * keywords + weights.action * risk;
        Self { malicious, keywords, action: risk, score }
    }

    /// A threshold at the sensitivity of the weights: base (1 - s/2).
    pub fn threshold(base: f64, weights: &Weights) -> f64 {
        base * (1.0 - 0.5 * weights.sensitivity)
    }
}

/// A violation: the pattern and its family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the pattern.
    pub name: String,
    /// Its family.
    pub family: String,
}

#[derive(Debug, Clone)]
struct Call {
    tool: Option<String>,
    folders: Vec<u64>,
}

/// What the monitors remember of a run.
#[derive(Debug, Clone)]
pub struct Monitors {
    vocabulary: Arc<Vocabulary>,
    earlier: Bits,
    seen: Bits,
    /// Matches that the stated goal counts for.
    goal: Option<f64>,
    drift: f64,
    step: f64,
    turns: u32,
    turns_noted: u32,
    /// Patterns that were counted since the user last spoke.
    counted: BTreeSet<usize>,
    /// Patterns that were counted since the run began, or a person let it go on.
    moved: BTreeSet<usize>,
    request: BTreeSet<u64>,
    calls: BTreeMap<ActionId, Call>,
    restricted: VecDeque<u64>,
    /// Met in the user's turns after the first result that told of a restriction.
    since: Option<Bits>,
    /// What the user said so far, as the learned score sees it.
    said: learned::Before,
    /// Results that were notices of a restriction.
    notices: u32,
    /// Turns of the user's since the latest result.
    talk: u32,
    found: Addresses,
    named: Addresses,
    outcomes: outcome::Outcomes,
}

impl Monitors {
    /// Monitors that have seen nothing.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self {
            vocabulary,
            earlier: 0,
            seen: 0,
            goal: None,
            drift: 0.0,
            step: 0.0,
            turns: 0,
            turns_noted: 0,
            counted: BTreeSet::new(),
            moved: BTreeSet::new(),
            request: BTreeSet::new(),
            calls: BTreeMap::new(),
            restricted: VecDeque::new(),
            since: None,
            said: learned::Before::default(),
            notices: 0,
            talk: 0,
            found: Addresses::default(),
            named: Addresses::default(),
            outcomes: outcome::Outcomes::default(),
        }
    }

    /// The patterns.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Drift so far, 0 to 1.
    pub fn drift(&self) -> f64 {
        self.drift
    }

    /// What the latest input or call added to it.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Which part of the user's turns was noted as risky.
    pub fn history(&self) -> f64 {
        f64::from(self.turns_noted) / f64::from(self.turns.max(1))
    }

    fn before(&self, speaks: bool) -> Before {
        Before { earlier: self.earlier, seen: self.seen, since: self.since, speaks }
    }

    /// What came before without what others wrote and without learned scores.
    fn own_before(&self) -> Before {
        let learned = ["learned-some", "learned-much", "learned-grave"];
        let scored = learned.iter().fold(0, |all, name| all | self.vocabulary.of(name));
        Before {
            earlier: self.earlier & !scored,
            seen: 0,
            since: self.since.map(|since| since & !scored),
            speaks: false,
        }
    }

    /// Reads what the user, or the operator, says.
    pub fn read_input(&self, text: &str, scores: Scores) -> Reading {
        let words = words(text);
        let Spoken { stretches, keywords, said, share, to_gate } =
            Spoken::of(text, &words, &self.vocabulary, scores);
        let learned = Learned::built_in().map(|learned| learned.score(&said, &self.said));
        let heard = self.heard(learned);
        let (mut matches, place) = self.vocabulary.matches(&stretches, heard, self.before(true), Of::Inputs);
        matches.iter_mut().for_each(|found| found.weight *= share);
        let excused = (self.earlier | union(&stretches)) & self.vocabulary.known.legitimate != 0;
        let total = self.totals(&matches);
        let hits = keywords * if excused { 0.5 } else { 1.0 };
        let intent = Intent::of(total.matches, hits, total.risk, &self.vocabulary.weights);
        let step = self.step_of(&matches, scores);
        Reading {
            bits: union(&stretches) | remembered(scores, heard, &matches),
            said,
            place: place.map(|stretch| (stretch.start, stretch.end)),
            to_gate,
            intent,
            step,
            drift: (self.drift + step).clamp(0.0, 1.0),
            request: request_words(&words),
            addresses: words.addresses,
            matches,
            ..Reading::default()
        }
    }

    /// What the learned score of an input means.
    fn heard(&self, scores: Option<learned::Sums>) -> Bits {
        let (Some([harm, grave]), Some(learned)) = (scores, Learned::built_in()) else { return 0 };
        let bit = |holds: bool, name| if holds { self.vocabulary.of(name) } else { 0 };
        bit(harm >= learned.some, "learned-some")
            | bit(harm >= learned.much, "learned-much")
            | bit(harm >= learned.some && grave >= learned.grave, "learned-grave")
    }

    /// Reads a call. What it would do beyond its words is added by [`Self::violations`].
    pub fn read_call(&self, bundle: &Bundle, action: &Action) -> Reading {
        let tool = action.tool().and_then(|name| bundle.registry.get(name));
        let said = Arguments::of(action, bundle.scores, tool);
        let words = words(&said.text);
        let (stretches, _) = self.vocabulary.stretches(&words);
        let all = AllWords::of(&said, &words);
        let acts = self.acts(action, tool, &said.folders, &all);
        let (mut matches, _) = self.vocabulary.matches(&stretches, acts, self.before(false), Of::Calls);
        matches.retain(|found| !self.counted.contains(&found.pattern));
        let step = self.step_of(&matches, bundle.scores);
        Reading {
            bits: union(&stretches) | acts,
            matches,
            step,
            drift: (self.drift + step).clamp(0.0, 1.0),
            tool_risk: self.uncovered_risk(tool, &all),
            folders: said.folders,
            stretches,
            advised: bundle.scores == Scores::Advise,
            unsure: action.confidence.is_some_and(|confidence| 1.0 - confidence >= UNSURE),
            ..Reading::default()
        }
    }

    /// Reads the result of a call.
    pub fn read_result(&self, action: Option<ActionId>, text: &str) -> Reading {
        let words = words(text);
        let (stretches, _) = self.vocabulary.stretches(&words);
        let mut bits = self.vocabulary.result(&stretches);
        let call = action.and_then(|action| self.calls.get(&action));
        // Of a document, by its path; a row or a list of names is no notice.
        let document = call.is_some_and(|call| !call.folders.is_empty());
        let notice = document && words.list.len() <= NOTICE_WORDS && bits & self.vocabulary.known.notice != 0;
        if notice {
            bits |= self.vocabulary.known.restricted;
        }
        let tool = call.and_then(|call| call.tool.as_deref());
        let mut anomalies = self.outcomes.anomalies(tool, text);
        if bits & self.vocabulary.known.ai_order != 0 {
            anomalies.push(Anomaly::Order);
        }
        Reading {
            bits,
            anomalies,
            failed: outcome::says_failed(text),
            restricted: bits & self.vocabulary.known.restricted != 0,
            notice,
            addresses: words.addresses,
            bytes: text.len(),
            ..Reading::default()
        }
    }

    /// Reads a reply.
    pub fn read_output(&self, text: &str) -> Reading {
        Reading { claim: self.outcomes.claim(text), ..Reading::default() }
    }

    /// The violations of the call that was read: patterns that need what it would do. They are computed on first use.
    pub fn violations<'r>(
        &self,
        reading: &'r Reading,
        action: &Action,
        effects: &[Effect],
    ) -> &'r [Violation] {
        reading.violations.get_or_init(|| {
            let before = if reading.advised { self.own_before() } else { self.before(false) };
            let matches = |acts| self.vocabulary.matches(&reading.stretches, acts, before, Of::Violations).0;
            let acts = reading.bits | self.effect_acts(action, effects);
            // The names of files are read only where it matters that one of them is a log.
            let trail = self.vocabulary.known.act_trail;
            if self.vocabulary.unviolated & trail == 0 && matches(acts | trail).is_empty() {
                return Vec::new();
            }
            let matches = matches(acts | self.trail(action, effects));
            let patterns = matches.iter().filter_map(|found| self.vocabulary.patterns.get(found.pattern));
            patterns
                .map(|pattern| Violation { name: pattern.name.clone(), family: pattern.family.clone() })
                .collect()
        })
    }

    /// The names of the patterns that match in a reading, each with its family.
    pub fn names<'m>(&'m self, reading: &'m Reading) -> impl Iterator<Item = (&'m str, &'m str)> {
        let patterns = reading.matches.iter().filter_map(|found| self.vocabulary.patterns.get(found.pattern));
        patterns.map(|pattern| (pattern.name.as_str(), pattern.family.as_str()))
    }

    /// The risk of a tool that the request does not cover. The operator's figure counts, and only where no word of the
    /// request names the tool or anything in its arguments: who asks for a mail to Bob has asked for the risk of mail. A
    /// figure that was inferred is a guess, so it stops nothing; and without a request nothing can be compared. Both give
    /// none, which makes the rows that need it inactive.
    fn uncovered_risk(&self, tool: Option<&Tool>, arguments: &AllWords<'_>) -> Option<f64> {
        let tool = tool.filter(|tool| !tool.inferred)?;
        if self.request.is_empty() {
            return None;
        }
        let name = words(&format!("{} {} {}", tool.name, tool.id, tool.tool_type).replace('_', " "));
        let is_named = |word: &Word| !word.slight && self.request.contains(&word.stem);
        Some(if name.list.iter().any(is_named) || arguments.any(is_named) { 0.0 } else { tool.risk })
    }

    /// Takes an input into account. What the operator says states the goal and the circumstances, and is no risk.
    pub fn record_input(&mut self, reading: &Reading, by_user: bool) {
        if self.goal.is_none() {
            self.goal = Some(self.totals(&reading.matches).matches);
        }
        if !by_user {
            self.earlier |= reading.bits & self.vocabulary.known.legitimate;
            return;
        }
        self.counted.clear();
        self.said.take(&reading.said);
        self.take(reading);
        if reading.matches.is_empty() {
            self.drift = (self.drift - RETURN).max(0.0);
        }
        // What was asked is answered now.
        self.earlier = (self.earlier | reading.bits) & !self.vocabulary.known.asked;
        self.since = self.since.map(|since| since | reading.bits);
        self.named.extend(&reading.addresses);
        self.turns = self.turns.saturating_add(1);
        self.talk = self.talk.saturating_add(1);
        self.turns_noted = self.turns_noted.saturating_add(u32::from(!reading.matches.is_empty()));
        let room = REQUEST_WORDS_MAX.saturating_sub(self.request.len());
        self.request.extend(reading.request.iter().take(room));
    }

    /// A person resumed the run: the accumulated score is reset.
    pub fn resumed(&mut self) {
        (self.drift, self.step) = (0.0, 0.0);
        self.moved.clear();
    }

    /// Goes over to another set of patterns. What was met stays met, by the names of the concepts.
    pub fn follow(&mut self, vocabulary: &Arc<Vocabulary>) {
        if Arc::ptr_eq(&self.vocabulary, vocabulary) {
            return;
        }
        self.earlier = vocabulary.translate(&self.vocabulary, self.earlier);
        self.seen = vocabulary.translate(&self.vocabulary, self.seen);
        self.since = self.since.map(|since| vocabulary.translate(&self.vocabulary, since));
        self.counted.clear();
        self.moved.clear();
        self.vocabulary = Arc::clone(vocabulary);
    }

    /// Takes a proposed call into account.
    pub fn record_call(&mut self, action: ActionId, tool: Option<&str>, reading: &Reading) {
        self.take(reading);
        if reading.unsure {
            self.earlier |= self.vocabulary.known.asked;
        }
        if self.calls.len() >= CALLS_MAX {
            self.calls.pop_first();
        }
        let call = Call { tool: tool.map(str::to_owned), folders: reading.folders.clone() };
        self.calls.insert(action, call);
    }

    /// Takes into account how an action ended.
    pub fn record_outcome(&mut self, action: ActionId, status: OutcomeStatus) {
        self.outcomes.status(self.calls.get(&action).and_then(|call| call.tool.as_deref()), status);
    }

    /// Takes a result into account.
    pub fn record_result(&mut self, action: Option<ActionId>, reading: &Reading) {
        self.talk = 0;
        self.notices = self.notices.saturating_add(u32::from(reading.notice));
        if self.notices > 1 {
            self.seen |= self.vocabulary.known.restricted_twice;
        }
        if reading.restricted {
            self.since.get_or_insert(0);
        }
        self.seen |= reading.bits;
        self.found.extend(&reading.addresses);
        let Some(call) = action.and_then(|action| self.calls.remove(&action)) else { return };
        self.outcomes.result(call.tool.as_deref(), reading.bytes, reading.failed);
        if reading.restricted {
            for folder in call.folders {
                if self.restricted.len() >= FOLDERS_MAX {
                    self.restricted.pop_front();
                }
                self.restricted.push_back(folder);
            }
        }
    }

    fn take(&mut self, reading: &Reading) {
        self.step = reading.step;
        self.drift = (self.drift + reading.step).clamp(0.0, 1.0);
        self.counted.extend(reading.matches.iter().map(|found| found.pattern));
        self.moved.extend(reading.matches.iter().map(|found| found.pattern));
    }

    fn totals<'m>(&self, matches: impl IntoIterator<Item = &'m Match>) -> Totals {
        let mut totals = Totals::default();
        for found in matches {
            let Some(pattern) = self.vocabulary.patterns.get(found.pattern) else { continue };
            totals.matches += pattern.matches * found.weight;
            totals.cues += pattern.cues * found.weight;
            totals.risk = totals.risk.max(pattern.risk * found.weight);
        }
        totals
    }

    /// 0.6 rise over the goal + 0.4 escalation, as in the seed. Where scores advise, what was counted before moves a run no
    /// further: an agent's frame says the same in each turn.
    fn step_of(&self, matches: &[Match], scores: Scores) -> f64 {
        let Some(goal) = self.goal else { return 0.0 };
        let new = |found: &&Match| scores == Scores::Stop || !self.moved.contains(&found.pattern);
        let total = self.totals(matches.iter().filter(new));
        let rise = ((total.matches - goal).max(0.0) / 3.0).min(1.0);
        let escalation = ((total.matches + total.cues) / 4.0).min(1.0);
        step_under(scores, 0.6 * rise + 0.4 * escalation)
    }
}

/// A bounded set of addresses.
#[derive(Debug, Clone, Default)]
struct Addresses {
    order: VecDeque<u64>,
    set: BTreeSet<u64>,
}

impl Addresses {
    fn extend(&mut self, more: &[u64]) {
        for address in more {
            if !self.set.insert(*address) {
                continue;
            }
            self.order.push_back(*address);
            if self.order.len() > ADDRESSES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.set.remove(&oldest);
            }
        }
    }

    fn has(&self, address: u64) -> bool {
        self.set.contains(&address)
    }

    fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

/// Sums over the matches of one text.
#[derive(Debug, Default)]
struct Totals {
    matches: f64,
    cues: f64,
    risk: f64,
}

fn union(stretches: &[Stretch]) -> Bits {
    stretches.iter().fold(0, |bits, stretch| bits | stretch.all)
}

fn request_words(words: &Words) -> Vec<u64> {
    words.list.iter().filter(|word| !word.slight).map(|word| word.stem).collect()
}

/// The patterns that ship, made ready once.
pub fn built_in() -> Arc<Vocabulary> {
    static VOCABULARY: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    Arc::clone(VOCABULARY.get_or_init(|| Arc::new(Vocabulary::new(&MonitorSettings::built_in()))))
}

#[cfg(test)]
mod tests;
