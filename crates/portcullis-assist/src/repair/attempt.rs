//! Texts that a repair goes through: each rewrite, and those that may become the result.

use crate::judge::{Detection, Judgement};

/// One rewrite by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The text, after mechanical repair; none where the answer could not be read as one.
    pub reply: Option<String>,
    /// What holds of it; none for parts that are only merged. Judged contracts are undecided where nobody asked.
    pub judgements: Option<Vec<Judgement>>,
}

/// A text that may become the result, and what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// 0, or the number of the attempt.
    pub(super) number: usize,
    pub(super) reply: String,
    pub(super) detection: Detection,
    /// Whether judged contracts were asked about, or there are none.
    pub(super) judged: bool,
}
