//! Says of a reply which work is not shown to be done.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::memory::Memory;
use portcullis_core::verdict::Verdict;
use portcullis_core::work::{ItemId, ItemState, WorkItem};
use serde::{Deserialize, Serialize};

/// ## What it does
/// Where a reply may say that something is done, the criteria of the run's open work items are run, and what is missing is
/// written below the reply: which item, which criterion, and what was found.
///
/// ## Why it matters
/// An agent that says that it is done is often wrong. The reader of the reply has nothing but the agent's word for it.
///
/// ## Fires on
/// A reply with a word such as *done*, *fixed* or *passes*, in a run with [work items](../work.md) that were started or
/// claimed and are not verified, and the reply that a surface calls the last one, whatever it says. The verdict is
/// *modify*: the reply passes, with lines below it. Where the surface can no longer change the reply, the verdict is
/// *warn* and the surface gets the lines beside it. The wording decides nothing but whether to look.
///
/// ## Does not cover
/// Work that nobody made an item of. What a reply claims beyond the items. Words for *done* in languages that the gate does
/// not know; the last reply is looked at in any language. Checks that take longer than 20 s: the lines say that.
///
/// ## Configuration
/// None. A run without work items is not touched.
///
/// ## False positives
/// A reply that says of another thing that it is done gets the lines, too; they are true all the same. A repair of a
/// contract that adds something at the very end of the same reply conflicts with them, and the reply is denied.
///
/// ## References
/// Seed 003, deterministic verification. OWASP ASI09, LLM09.
#[derive(Debug)]
pub struct OpenWork;

/// What the rules of its findings begin with, which is its name.
pub const RULE: &str = "output/open-work";
/// The source that runs criteria.
pub const SOURCE: &str = "work-items";

/// Longest title, and longest thing that is missing, in characters.
const LINE_CHARS_MAX: usize = 300;

static META: GuardMeta = GuardMeta {
    id: RULE,
    hooks: &[Hook::Output],
    owasp: &["ASI09", "LLM09"],
    unfaithful_to: Some(Unfaithful::History),
};

/// The question that its source is asked.
#[must_use]
pub fn request() -> FactRequest {
    FactRequest { source: SOURCE.to_owned(), question: "unshown".to_owned() }
}

/// What its source answers: what is not shown to be done. Nothing where nobody has to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unshown {
    /// The items.
    pub items: Vec<UnshownItem>,
    /// Whether the reply can still be changed.
    pub replaces: bool,
}

/// An item that is not shown to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnshownItem {
    /// Which.
    pub item: ItemId,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    pub state: ItemState,
    /// What is missing, a line for each thing.
    pub missing: Vec<String>,
}

impl UnshownItem {
    /// What is missing of an item. The words are somebody else's, and stay on their line.
    #[must_use]
    pub fn of(item: &WorkItem, missing: Vec<String>) -> Self {
        let missing = missing.iter().map(|one| line(one)).collect();
        Self { item: item.id, title: line(&item.title), state: item.state, missing }
    }
}

impl Unshown {
    /// The items in words, one a line.
    #[must_use]
    pub fn told(&self) -> String {
        let mut told = String::from("Not shown to be done:");
        for UnshownItem { item, title, state, missing } in &self.items {
            let state = state.as_str().replace('_', " ");
            told.push_str(&format!("\n- {item} {title} ({state})"));
            let mut before = ": ";
            for one in missing {
                told.push_str(before);
                told.push_str(one);
                before = "; ";
            }
        }
        told
    }
}

fn line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()
}

/// Whether an item was begun and is not shown to be done: what a reply could claim.
#[must_use]
pub fn is_unshown(item: &WorkItem) -> bool {
    item.is_open() && item.state != ItemState::Pending
}

impl<M: Memory> Guard<M> for OpenWork {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[SOURCE]
    }

    fn wants(&self, context: &Context<'_, M>, pending: &Pending<'_>) -> Vec<FactRequest> {
        let is_reply = matches!(pending.subject, Subject::Output { .. });
        match is_reply && context.run.works().items().any(is_unshown) {
            true => vec![request()],
            false => Vec::new(),
        }
    }

    fn decide(
        &self,
        _context: &Context<'_, M>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(text) = pending.subject.text() else { return Ok(Vec::new()) };
        let unshown: Unshown = match facts.get(&request()) {
            None => return Ok(Vec::new()),
            Some(FactAnswer::Known(answer)) => serde_json::from_value(answer.clone())
                .map_err(|_| GuardFailure("what is said of work items is not of its form".to_owned()))?,
            Some(FactAnswer::Failed(why)) => {
                let message = format!("work items are open, and their criteria were not checked: {why}");
                return Ok(vec![Finding::new(RULE, Verdict::Warn, message)]);
            }
        };
        if unshown.items.is_empty() {
            return Ok(Vec::new());
        }
        let told = unshown.told();
        let verdict = if unshown.replaces { Verdict::Modify } else { Verdict::Warn };
        let mut finding = Finding::new(RULE, verdict, told.clone())
            .instead("a reply that says what is missing, or a claim with evidence");
        if unshown.replaces {
            let span = Span { pointer: TEXT.to_owned(), start: text.len(), end: text.len() };
            finding.edits.push(SpanEdit { span, replacement: format!("\n\n{told}") });
        }
        Ok(vec![finding])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_item_stay_on_their_line() {
        let item = UnshownItem {
            item: ItemId(1),
            title: line("fix\n- #2 the rest (verified)\u{1b}[2K"),
            state: ItemState::Claimed,
            missing: vec![line(&format!("one\r\ntwo {}", "x".repeat(400))), line("three")],
        };
        let told = Unshown { items: vec![item], replaces: true }.told();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(
            lines[1].starts_with("- #1 fix - #2 the rest (verified)[2K (claimed): one two xxx"),
            "{told}"
        );
        assert!(lines[1].ends_with("x; three") && lines[1].chars().count() < 400, "{told}");
    }
}
