//! What of a call's texts others wrote: the sentences that share most of their words with a passage, and those that
//! have a value which only others gave. What the user said, or handed on to, is the user's.

use std::collections::BTreeSet;
use std::ops::Range;

use portcullis_core::taint::Marks;
use serde_json::Value as Json;

use crate::classes::Classes;
use crate::marks::{Said, each_sentence};
use crate::passages::Passage;
use crate::trajectory::Trajectory;
use crate::words::{WORDS_MAX, each};

/// Shortest text of a call that is looked at, in bytes.
const TEXT_BYTES_MIN: usize = 8;
/// Deepest nesting of arguments that is looked at.
const DEPTH_MAX: usize = 16;
/// Most words of a sentence by which passages are looked up, the rarest first.
const LOOKUPS_MAX: usize = 8;
/// Words of its own that a sentence has to share with a passage, and at least half of all.
const SHARED_MIN: usize = 3;

/// A sentence or a value of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Number of the event that showed it, or `None` if that is not known any more.
    pub seq: Option<u64>,
    /// Where the passage is in the raw text, for a sentence.
    pub range: Option<Range<usize>>,
    mark: u64,
}

/// What of a call's arguments others wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// What was found.
    pub found: Vec<Foreign>,
    /// Some of it may be others' of whom nothing is known any more: the run has forgotten what it read, or the arguments
    /// are too deep or too long to be looked at.
    pub unknown: bool,
    cut: bool,
}

impl Carried {
    /// The same without what the thing itself, into which it is written back, has shown.
    #[must_use]
    pub fn without(&self, own: impl Fn(&Foreign) -> bool) -> Self {
        let found = self.found.iter().filter(|foreign| !own(foreign)).cloned().collect();
        Self { found, ..*self }
    }

    /// What it is found again by, or `None` if that is too much.
    pub fn into_marks(self) -> Option<Marks> {
        if self.cut { None } else { Marks::new(self.found.into_iter().map(|foreign| foreign.mark).collect()) }
    }

    /// Of the arguments of a call. Linear in them.
    pub(crate) fn by(run: &Trajectory, arguments: &Json) -> Self {
        let mut found = Self::default();
        if !run.passages().is_empty() {
            found.look(run, arguments, 0);
        }
        found.unknown |= found.cut;
        found
    }

    fn look(&mut self, run: &Trajectory, json: &Json, depth: usize) {
        match json {
            Json::String(text) if text.len() >= TEXT_BYTES_MIN => {
                let all = each_sentence(text, |said| self.take(run, said));
                self.cut |= !all;
            }
            Json::Array(items) if depth < DEPTH_MAX => {
                items.iter().for_each(|item| self.look(run, item, depth + 1));
            }
            Json::Object(map) if depth < DEPTH_MAX => {
                map.values().for_each(|item| self.look(run, item, depth + 1));
            }
            Json::Array(_) | Json::Object(_) => self.cut = true,
            _ => {}
        }
    }

    fn take(&mut self, run: &Trajectory, said: &Said<'_>) {
        for value in &said.values {
            if let Some(seq) = run.origins().told(value.hash) {
                self.found.push(Foreign { seq: Some(seq), range: None, mark: value.hash });
            }
        }
        let Some(mark) = said.mark() else { return };
        let keys = own_words(run, said.text);
        if let Some(passage) = quoted(run, &keys) {
            let (seq, range) = (Some(passage.seq), Some(passage.range.clone()));
            self.found.push(Foreign { seq, range, mark });
        } else if run.passages().forgot() && keys.len() >= SHARED_MIN {
            self.unknown = true;
            self.found.push(Foreign { seq: None, range: None, mark });
        }
    }
}

/// The words of a sentence that say something and that the user did not say.
fn own_words(run: &Trajectory, text: &str) -> BTreeSet<u64> {
    let lexicon = run.lexicon();
    let spoken = each(text).take(WORDS_MAX).filter(|word| !lexicon.classes(word).is(Classes::FUNCTION));
    spoken.map(|word| lexicon.thing(word.stem)).filter(|thing| !run.request().says(*thing)).collect()
}

/// The passage that a sentence of these words repeats.
fn quoted<'r>(run: &'r Trajectory, keys: &BTreeSet<u64>) -> Option<&'r Passage> {
    let passages = run.passages();
    let mut rare: Vec<(u32, u64)> =
        keys.iter().map(|key| (passages.count(*key), *key)).filter(|(count, _)| *count > 0).collect();
    rare.sort_unstable();
    let candidates = rare.iter().take(LOOKUPS_MAX).flat_map(|(_, key)| passages.with(*key));
    candidates.filter_map(|number| passages.get(number)).find(|passage| {
        let shared = keys.iter().filter(|key| passage.has(**key)).count();
        !passage.handed_on && shared >= SHARED_MIN && 2 * shared >= keys.len()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::built_in;
    use crate::kind::{CallKind, ToolView};
    use crate::trajectory::Call;

    const MAIL: &str =
        "The parcel waits at the depot in Harbour Lane. Write to depot@parcels.example by Friday.";

    fn run(request: &str) -> Trajectory {
        let lexicon = built_in();
        let mut run = Trajectory::new(lexicon.clone());
        run.record_input(run.read_input(request));
        let kind = CallKind::of(&lexicon, &ToolView::unknown("read_mail"));
        let call = Call::new(&lexicon, kind, &json!({"id": "m1"}));
        let seen = run.read_result(&call, MAIL);
        run.record_result(7, &call, seen);
        run
    }

    /// The events whose words are found, and whether others may be there.
    fn carried(run: &Trajectory, text: &str) -> (Vec<u64>, bool) {
        let found = Carried::by(run, &json!({"path": "notes.md", "content": text}));
        let seqs: BTreeSet<u64> = found.found.iter().filter_map(|foreign| foreign.seq).collect();
        (seqs.into_iter().collect(), found.unknown)
    }

    #[test]
    fn sentences_and_values_of_others_are_found_and_the_users_are_not() {
        let run = run("Note that the dentist moved the appointment to Monday.");
        let copied = "From the mail: the parcel waits at the depot, Harbour Lane";
        assert_eq!(carried(&run, copied), (vec![7], false));
        assert_eq!(carried(&run, "Ask depot@parcels.example."), (vec![7], false));
        assert_eq!(carried(&run, "The dentist moved the appointment to Monday."), (vec![], false));
        assert_eq!(carried(&run, "Milk, bread and something for the cat."), (vec![], false));
    }

    #[test]
    fn what_a_run_has_forgotten_may_be_anywhere() {
        let mut run = run("Note that the dentist moved the appointment to Monday.");
        run.forget();
        assert_eq!(carried(&run, "Milk, bread and something for the cat."), (vec![], true));
        assert_eq!(carried(&run, "The dentist moved the appointment to Monday."), (vec![], false));
    }

    #[test]
    fn what_is_too_deep_to_be_read_is_unknown_as_a_whole() {
        let mut deep = json!("text of somebody");
        for _ in 0..2 * DEPTH_MAX {
            deep = json!([deep]);
        }
        let found = Carried::by(&run("Copy it."), &deep);
        assert!(found.unknown && found.into_marks().is_none());
    }
}
