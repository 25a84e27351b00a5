//! Mechanical repair: exact, minimal, verified, and honest.
//!
//! Each family proposes changed texts, the smallest first ([`candidate`]). One is taken when the contract then holds,
//! every contract that held still does, and the change is honest: no word is lost that does not stand elsewhere, and none
//! is added but what a contract demands word for word. Where a candidate breaks others, those are repaired first with the
//! target protected, or all of it is rolled back. Contracts that hold only ever grow in number, so it ends, and nothing
//! is ever broken.
//!
//! What would be writing is left alone: taking words out, putting examples in, choosing an answer, padding to a length.

mod candidate;
mod difference;
mod layout;
mod length;
mod marks;
mod whole;

use std::cell::Cell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Reading, check, check_family};
use crate::conflict::conflicts;
use crate::context::Context;
use crate::contract::{Contract, Verdict};
use crate::family::Family;
use crate::limits::{
    MAX_CANDIDATES, MAX_CHECKED_BYTES, MAX_COMPOUND_BREAKS, MAX_COMPOUND_CANDIDATES, MAX_EDITS,
    MAX_REPAIR_BYTES, MAX_STATEMENTS, MAX_STEP_RATIO,
};
pub use candidate::StepKind;
use candidate::{Candidate, Surroundings};
pub use difference::{Edit, difference};

/// One step of a repair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RepairStep")]
pub struct Step {
    /// The contract it was for.
    pub contract: String,
    /// How it changes the reply.
    pub kind: StepKind,
    /// What was done.
    pub what: String,
    /// How much of the reply it changed, as [`Repair::edit_ratio`] counts.
    pub edit_ratio: f64,
}

/// A contract that fails still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unrepaired {
    /// The contract.
    pub contract: String,
    /// Why: no mechanical repair, a conflict, or every candidate would break something or lose words.
    pub reason: String,
}

/// A repaired reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repair {
    /// The reply after all steps; the original where nothing could be done.
    pub text: String,
    /// Changes on the original, in order, that make the text of it.
    pub edits: Vec<Edit>,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// What fails still. Judged contracts are not among them.
    pub unrepaired: Vec<Unrepaired>,
    /// Characters taken out and put in, over the characters of both texts; indentation is not counted. 0 to 1.
    pub edit_ratio: f64,
}

/// Repairs a reply as far as code can. The context may be a prompt alone.
///
/// Judged contracts are left alone, and so are those that the context does not suffice for. A reply that is empty or longer than [`MAX_REPAIR_BYTES`], or with more than
/// [`MAX_STATEMENTS`] exact contracts, is returned as it is; after [`MAX_CHECKED_BYTES`] no more is tried.
#[must_use]
pub fn repair<'a>(contracts: &[Contract], reply: &str, context: impl Into<Context<'a>>) -> Repair {
    repair_within(contracts, reply, context, MAX_CHECKED_BYTES)
}

/// As [`repair`], for who has less time: no more is tried once so many bytes were read.
#[must_use]
pub fn repair_within<'a>(
    contracts: &[Contract],
    reply: &str,
    context: impl Into<Context<'a>>,
    bytes_max: usize,
) -> Repair {
    let context = context.into();
    let exact: Vec<&Contract> = contracts.iter().filter(|contract| !contract.is_judged(&context)).collect();
    let too_many = exact.len() > MAX_STATEMENTS;
    let given_way = if too_many { Vec::new() } else { given_way(contracts, &context) };
    let aside: usize =
        exact.iter().filter_map(|contract| contract.family()).map(|family| context.bytes_for(family)).sum();
    let engine = Engine { contracts: &exact, context, aside, given_way, bytes_max, checked: Cell::new(0) };
    let start = engine.state(reply.to_owned(), Vec::new());
    let refused = if reply.trim().is_empty() {
        Some("the reply is empty".to_owned())
    } else if too_many {
        Some(format!("more than {MAX_STATEMENTS} contracts are not repaired at once"))
    } else if reply.len() > MAX_REPAIR_BYTES {
        Some(format!("the reply has {} bytes; more than {MAX_REPAIR_BYTES} are not repaired", reply.len()))
    } else {
        None
    };
    if let Some(reason) = refused {
        return engine.finished(reply, start, |_| reason.clone());
    }
    // What gives way comes last, so that it finds what it must not break.
    let gives_way =
        |at: &usize| exact.get(*at).is_some_and(|contract| engine.given_way.contains(&contract.id));
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by_key(|&at| (exact.get(at).and_then(|contract| contract.family()).map_or(0, rank), at));
    order.sort_by_key(gives_way);
    let forward_order = order.clone();
    order.reverse();
    order.sort_by_key(gives_way);
    let forward = engine.run(start.clone(), &forward_order);
    let backward = engine.run(start, &order);
    let score = |state: &State| state.held.iter().filter(|held| **held).count();
    let best = match score(&backward).cmp(&score(&forward)) {
        std::cmp::Ordering::Greater => backward,
        _ => forward,
    };
    let ways = best.held.clone();
    // What holds needs none, and looking for one costs as much as a repair.
    let reason =
        |at| if ways.get(at) == Some(&true) { String::new() } else { engine.reason(at, &best, &ways) };
    let reasons: Vec<String> = (0..exact.len()).map(reason).collect();
    engine.finished(reply, best, |at| reasons.get(at).cloned().unwrap_or_default())
}

/// Ids of contracts that give way in a conflict: the lowest of each set, the later among equals.
fn given_way(contracts: &[Contract], context: &Context<'_>) -> Vec<String> {
    let place = |id: &str| contracts.iter().position(|contract| contract.id == id).unwrap_or_default();
    conflicts(contracts, *context)
        .iter()
        .filter_map(|conflict| {
            conflict
                .contracts
                .iter()
                .min_by_key(|id| {
                    let at = place(id);
                    (contracts.get(at).map(|contract| contract.priority), std::cmp::Reverse(at))
                })
                .cloned()
        })
        .collect()
}

/// The order of families: what others count comes before, wraps come last.
const fn rank(family: &Family) -> u32 {
    match family {
        Family::Responses { .. } => 0,
        Family::Words { .. }
        | Family::Characters { .. }
        | Family::LetterCount { .. }
        | Family::KeywordCount { .. } => 1,
        Family::Options { .. }
        | Family::Includes { .. }
        | Family::Excludes { .. }
        | Family::Placeholders { .. } => 2,
        Family::Sentences { .. } => 3,
        Family::SentenceLength { .. } => 4,
        Family::Sections { .. } => 5,
        Family::Title => 6,
        Family::Highlights { .. } => 7,
        Family::CapitalWords { .. } => 8,
        Family::Bullets { .. } => 9,
        Family::Postscript { .. } => 10,
        Family::ParagraphWord { .. } => 11,
        Family::Paragraphs { .. } => 12,
        Family::BeginsWith { .. } => 13,
        Family::EndsWith { .. } => 14,
        Family::RepeatRequest { .. } => 15,
        Family::Without { .. } => 16,
        Family::NoSentenceCapitals | Family::AllCapitals { .. } | Family::AllLowercase { .. } => 17,
        Family::Language { .. } => 18,
        Family::Cites { .. } | Family::Grounded { .. } | Family::Refuses { .. } | Family::Names { .. } => 18,
        Family::Quoted => 19,
        Family::Yaml => 20,
        Family::Json => 21,
    }
}

/// A text, which contracts hold on it, and how it came about.
#[derive(Clone)]
struct State {
    text: String,
    held: Vec<bool>,
    steps: Vec<Step>,
}

struct Engine<'a> {
    contracts: &'a [&'a Contract],
    context: Context<'a>,
    /// Bytes beside the reply that all contracts read, each time they are checked.
    aside: usize,
    given_way: Vec<String>,
    /// Bytes that may be checked.
    bytes_max: usize,
    /// Bytes checked so far.
    checked: Cell<usize>,
}

impl Engine<'_> {
    /// Counts bytes that are checked; whether there are some left.
    fn spend(&self, bytes: usize) -> bool {
        self.checked.set(self.checked.get().saturating_add(bytes));
        self.checked.get() <= self.bytes_max
    }

    fn state(&self, text: String, steps: Vec<Step>) -> State {
        self.spend(text.len().saturating_mul(self.contracts.len()).saturating_add(self.aside));
        let reading = Reading::new(&text);
        let held =
            self.contracts.iter().map(|contract| reading.check(contract, self.context).holds()).collect();
        State { text, held, steps }
    }

    fn run(&self, mut state: State, order: &[usize]) -> State {
        // Every round but the last makes one more contract hold.
        for _ in 0..=self.contracts.len() {
            let before = state.text.clone();
            for &at in order {
                let failing = state.held.get(at) == Some(&false);
                if failing && let Some(next) = self.attempt(&state, at, 2) {
                    state = next;
                }
            }
            if state.text == before {
                break;
            }
        }
        state
    }

    /// A state in which contract `at` holds and nothing is broken.
    fn attempt(&self, state: &State, at: usize, depth: usize) -> Option<State> {
        let family = self.contracts.get(at)?.family()?;
        let mut compound = Vec::new();
        for candidate in self.candidates(state, family).into_iter().take(MAX_CANDIDATES) {
            let Some(next) = self.taken(state, &candidate, at) else { continue };
            let broken = broken(&state.held, &next.held);
            if broken.is_empty() {
                return Some(next);
            }
            if broken.len() <= MAX_COMPOUND_BREAKS && depth > 0 && compound.len() < MAX_COMPOUND_CANDIDATES {
                compound.push((next, broken));
            }
        }
        compound.into_iter().find_map(|(mut next, broken)| {
            for other in broken {
                next = self.attempt(&next, other, depth - 1)?;
            }
            let whole = self::broken(&state.held, &next.held).is_empty() && next.held.get(at) == Some(&true);
            whole.then_some(next)
        })
    }

    /// The state after a candidate, if contract `at` holds then and the change is honest and small enough.
    fn taken(&self, state: &State, candidate: &Candidate, at: usize) -> Option<State> {
        let contract = self.contracts.get(at)?;
        let family = contract.family()?;
        let holds = self.spend(candidate.text.len())
            && candidate.text != state.text
            && check(contract, &candidate.text, self.context).holds();
        if !holds || !candidate.is_honest(&state.text, family, self.context.prompt) {
            return None;
        }
        let (_, edit_ratio) = difference(&state.text, &candidate.text);
        let is_large = candidate.kind == StepKind::Layout
            && edit_ratio > MAX_STEP_RATIO
            && !is_case_only(&state.text, &candidate.text);
        if is_large {
            return None;
        }
        let mut steps = state.steps.clone();
        let (contract, what) = (contract.id.clone(), candidate.what.to_owned());
        steps.push(Step { contract, kind: candidate.kind, what, edit_ratio });
        Some(self.state(candidate.text.clone(), steps))
    }

    fn candidates(&self, state: &State, family: &Family) -> Vec<Candidate> {
        let text = state.text.as_str();
        // What proposes candidates reads the text once an edit.
        if !self.spend(text.len().saturating_mul(MAX_EDITS)) {
            return Vec::new();
        }
        let context = Surroundings { contracts: self.contracts, prompt: self.context.prompt };
        let holds = |text: &str| check_family(family, text, self.context).holds();
        let mut out = match family {
            Family::Responses { count, separator } => marks::responses(text, *count, separator),
            Family::Sentences { count } => length::sentence_count(text, count, context),
            Family::SentenceLength { count } => length::sentence_length(text, count, context),
            Family::Sections { marker, count } => marks::sections(text, marker, count),
            Family::Title => marks::title(text, context),
            Family::Highlights { count } => marks::highlights(text, count),
            Family::CapitalWords { count } => whole::capitals(text, count),
            Family::Bullets { count } => marks::bullets(text, count, context),
            Family::Postscript { marker } => marks::postscript(text, marker),
            Family::ParagraphWord { paragraph, word, within, total } => {
                layout::paragraph_word(text, *paragraph, word, *within, *total, context)
            }
            Family::Paragraphs { count, divider } => layout::paragraphs(text, count, *divider),
            Family::Options { options } => whole::options(text, options),
            Family::Includes { keywords } => whole::includes(text, keywords),
            Family::Placeholders { .. } => whole::placeholders(text),
            Family::BeginsWith { phrase } => whole::begins(text, phrase),
            Family::EndsWith { phrase } => whole::ends(text, phrase),
            Family::RepeatRequest { request } => {
                whole::repeats(text, request.as_deref().or(self.context.prompt))
            }
            Family::Without { mark } => whole::without(text, *mark),
            Family::NoSentenceCapitals => whole::sentence_capitals(text, |text| {
                !self.spend(0)
                    || !broken(&state.held, &self.state(text.to_owned(), Vec::new()).held).is_empty()
            }),
            Family::AllCapitals { .. } => whole::upper(text),
            Family::AllLowercase { .. } => whole::lower(text),
            Family::Quoted => whole::quoted(text),
            Family::Yaml => whole::yaml(text),
            Family::Json => whole::json(text),
            Family::Words { .. }
            | Family::Characters { .. }
            | Family::LetterCount { .. }
            | Family::KeywordCount { .. }
            | Family::Excludes { .. }
            | Family::Language { .. } => Vec::new(),
            Family::Cites { .. }
            | Family::Grounded { .. }
            | Family::Refuses { .. }
            | Family::Names { .. } => return Vec::new(),
        };
        if is_capped(family) {
            out.extend(length::without_duplicates(text, holds));
        }
        if let Some(unescaped) = whole::unescaped(text).filter(|_| *family != Family::Json) {
            let inner = State { text: unescaped.text.clone(), held: state.held.clone(), steps: Vec::new() };
            let further: Vec<Candidate> = self
                .candidates_once(&inner, family)
                .into_iter()
                .map(|candidate| Candidate { kind: StepKind::Format, ..candidate })
                .collect();
            out.push(unescaped);
            out.extend(further);
        }
        out
    }

    /// Candidates on a text whose escapes are read already.
    fn candidates_once(&self, state: &State, family: &Family) -> Vec<Candidate> {
        if state.text.contains("\\n") { Vec::new() } else { self.candidates(state, family) }
    }

    fn finished(&self, reply: &str, state: State, reason: impl Fn(usize) -> String) -> Repair {
        let (edits, edit_ratio) = difference(reply, &state.text);
        let unrepaired = self
            .contracts
            .iter()
            .enumerate()
            .filter(|(at, _)| state.held.get(*at) == Some(&false))
            // What does not apply does not fail.
            .filter(|(_, contract)| check(contract, &state.text, self.context).verdict == Verdict::Fail)
            .map(|(at, contract)| Unrepaired { contract: contract.id.clone(), reason: reason(at) })
            .collect();
        Repair { text: state.text, edits, steps: state.steps, unrepaired, edit_ratio }
    }

    fn reason(&self, at: usize, state: &State, held: &[bool]) -> String {
        let Some(contract) = self.contracts.get(at) else { return String::new() };
        let Some(family) = contract.family() else { return String::new() };
        if let Some(why) = no_repair(family) {
            return why.to_owned();
        }
        if !self.spend(0) {
            let bytes = self.bytes_max;
            return format!("the search stopped after {bytes} bytes: repair fewer contracts at once");
        }
        if self.given_way.contains(&contract.id) {
            return "it conflicts with earlier contracts: see the conflicts".to_owned();
        }
        let mut breaks: Vec<&str> = Vec::new();
        let candidates = self.candidates(state, family);
        let none = candidates.is_empty();
        for candidate in candidates.iter().take(MAX_CANDIDATES) {
            let next = self.state(candidate.text.clone(), Vec::new());
            if next.held.get(at) == Some(&true) {
                breaks.extend(
                    broken(held, &next.held)
                        .into_iter()
                        .filter_map(|at| self.contracts.get(at))
                        .map(|contract| contract.id.as_str()),
                );
            }
        }
        breaks.sort_unstable();
        breaks.dedup();
        if none || breaks.is_empty() {
            "the reply has nothing that could be marked, joined or split to meet it".to_owned()
        } else {
            format!("every change that would meet it breaks {}", breaks.join(", "))
        }
    }
}

fn broken(before: &[bool], after: &[bool]) -> Vec<usize> {
    before
        .iter()
        .zip(after)
        .enumerate()
        .filter(|(_, (before, after))| **before && !**after)
        .map(|(at, _)| at)
        .collect()
}

fn is_case_only(before: &str, after: &str) -> bool {
    before.to_lowercase() == after.to_lowercase()
}

/// Families whose upper bound fewer words can meet.
const fn is_capped(family: &Family) -> bool {
    match family {
        Family::Words { count }
        | Family::Characters { count }
        | Family::Sentences { count }
        | Family::KeywordCount { count, .. }
        | Family::LetterCount { count, .. }
        | Family::CapitalWords { count } => count.below.is_some(),
        _ => false,
    }
}

/// Why a family has no mechanical repair, or `None` if it has one.
#[must_use]
pub const fn no_repair(family: &Family) -> Option<&'static str> {
    match family {
        Family::Excludes { .. } => Some("removing or replacing a word requires rewriting"),
        Family::Language { .. } => Some("translating requires rewriting"),
        Family::Cites { .. } => Some("only the author knows which document a sentence is based on"),
        Family::Grounded { .. } => Some("replacing it with what the documents say requires rewriting"),
        Family::Refuses { .. } => Some("refusing requires rewriting, and changes what the reply says"),
        Family::Names { .. } => Some("removing or replacing a name requires rewriting"),
        Family::Words { count } | Family::Characters { count } if count.below.is_none() => {
            Some("lengthening a reply requires rewriting")
        }
        Family::LetterCount { count, .. } | Family::KeywordCount { count, .. } if count.below.is_none() => {
            Some("adding letters or words requires rewriting")
        }
        _ => None,
    }
}
