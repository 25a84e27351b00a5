//! What became of calls: whether a result failed, what is odd about it, and whether a reply claims what did not happen.

use std::collections::BTreeMap;

use portcullis_core::event::OutcomeStatus;

/// Tools whose results are remembered.
pub(super) const TOOLS_MAX: usize = 256;
/// Results of a tool before their size says anything.
const RESULTS_MIN: u32 = 5;
/// How many times larger than any before a result must be to be odd.
const GROWTH: usize = 16;
/// How much of a result is looked at for words of failure, in bytes.
const HEAD_BYTES: usize = 512;

/// Something odd in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anomaly {
    /// It is many times larger than any result of this tool before.
    Size,
    /// It has many words of failure.
    Failure,
    /// It speaks to an assistant and tells it what to do.
    Order,
}

impl Anomaly {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "it is many times larger than any earlier result of this tool",
            Self::Failure => "it contains several words that report a failure",
            Self::Order => "it gives instructions to an assistant",
        }
    }
}

/// What a reply says of the latest call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It was done, and it had failed.
    Failed,
    /// It was done, and it was never executed.
    NotExecuted,
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    largest: usize,
    results: u32,
}

/// What is remembered of outcomes.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcomes {
    sizes: BTreeMap<String, Size>,
    /// How the latest call with a tool ended.
    latest: Option<OutcomeStatus>,
    latest_failed: bool,
}

/// Words of failure, whole and lower case.
const FAILURES: [&str; 9] = [
    "error",
    "failed",
    "failure",
    "denied",
    "unauthorized",
    "unexpected",
    "malformed",
    "invalid",
    "exception",
];

/// Whether the result says of itself that the call failed: it begins with a word of failure.
pub(super) fn says_failed(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let first: String = text.chars().take_while(|c| c.is_alphanumeric()).take(HEAD_BYTES).collect();
    FAILURES.contains(&first.to_lowercase().as_str())
}

fn failures(text: &str) -> usize {
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or(text).to_lowercase();
    let mut words: Vec<&str> =
        head.split(|c: char| !c.is_alphanumeric()).filter(|word| FAILURES.contains(word)).collect();
    words.sort_unstable();
    words.dedup();
    words.len()
}

impl Outcomes {
    pub(super) fn status(&mut self, tool: Option<&str>, status: OutcomeStatus) {
        if tool.is_some() {
            self.latest = Some(status);
            self.latest_failed = false;
        }
    }

    pub(super) fn result(&mut self, tool: Option<&str>, bytes: usize, failed: bool) {
        let Some(tool) = tool else { return };
        self.latest_failed = failed;
        if self.sizes.len() >= TOOLS_MAX && !self.sizes.contains_key(tool) {
            return;
        }
        let size = self.sizes.entry(tool.to_owned()).or_default();
        size.largest = size.largest.max(bytes);
        size.results = size.results.saturating_add(1);
    }

    pub(super) fn anomalies(&self, tool: Option<&str>, text: &str) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let known = tool.and_then(|tool| self.sizes.get(tool));
        if known.is_some_and(|size| {
            size.results >= RESULTS_MIN && text.len() > size.largest.max(1).saturating_mul(GROWTH)
        }) {
            found.push(Anomaly::Size);
        }
        /// The seed's scale: a third for each word.
        const FAILURES_ODD: usize = 3;
        if failures(text) >= FAILURES_ODD {
            found.push(Anomaly::Failure);
        }
        found
    }

    /// Whether a reply claims success of a call that had none. It does where it says *done* in one of the usual ways and
    /// says nothing of a failure.
    pub(super) fn claim(&self, text: &str) -> Option<Claim> {
        /// How replies say that something was done.
        const DONE: [&str; 10] = [
            "i have sent",
            "i've sent",
            "has been sent",
            "was sent",
            "successfully",
            "i have completed",
            "is done",
            "all done",
            "has been completed",
            "as requested",
        ];
        /// How they say that it was not.
        const NOT: [&str; 10] = [
            "could not",
            "couldn't",
            "unable",
            "failed",
            "cannot",
            "can't",
            "was not",
            "wasn't",
            "not able",
            "error",
        ];
        let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or(text).to_lowercase();
        let claims = DONE.iter().any(|done| head.contains(done)) || head.starts_with("done");
        if !claims || NOT.iter().any(|not| head.contains(not)) {
            return None;
        }
        match self.latest? {
            OutcomeStatus::NotExecuted => Some(Claim::NotExecuted),
            OutcomeStatus::Error | OutcomeStatus::Timeout => Some(Claim::Failed),
            _ => self.latest_failed.then_some(Claim::Failed),
        }
    }
}
