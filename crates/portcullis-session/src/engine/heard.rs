//! What user and operator said, sentence by sentence.
//!
//! Who opens a run for a delegated agent gives it a task. What of it the user said is the user's word there, too; the
//! rest is the word of an agent.

use std::collections::HashSet;
use std::ops::Range;

use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_core::label::Label;
use portcullis_core::memory::Texts;
use portcullis_detect::sentences;

/// Sentences of each that are remembered. Further ones count as an agent's where they are handed on.
const SENTENCES_MAX: usize = 4_096;

/// The sentences, as digests.
#[derive(Debug, Default)]
pub(super) struct Heard {
    user: HashSet<Digest>,
    operator: HashSet<Digest>,
}

impl Heard {
    /// Takes an event into account that is now part of the run, with its texts.
    pub(super) fn learn(&mut self, event: &Event, texts: &Texts) {
        let EventBody::Input { label } = &event.body else { return };
        let (Some(said), Some(text)) = (self.of_mut(label), texts.get("text")) else { return };
        for sentence in sentences(text).filter_map(|place| text.get(place)) {
            if said.len() < SENTENCES_MAX {
                said.insert(digest(sentence));
            }
        }
    }

    /// Whether all of a text was said by the one with that label, sentence by sentence and in whatever order.
    pub(super) fn all_of(&self, text: &str, label: &Label) -> bool {
        let said = match label {
            Label::User => &self.user,
            Label::Operator => &self.operator,
            Label::Tool(_) | Label::Server(_) | Label::Run(_) | Label::Unknown => return false,
        };
        let mut last = 0;
        for place in sentences(text) {
            let Range { start, end } = place;
            let (Some(between), Some(sentence)) = (text.get(last..start), text.get(start..end)) else {
                return false;
            };
            if !between.trim().is_empty() || !said.contains(&digest(sentence)) {
                return false;
            }
            last = end;
        }
        last > 0 && text.get(last..).is_some_and(|rest| rest.trim().is_empty())
    }

    fn of_mut(&mut self, label: &Label) -> Option<&mut HashSet<Digest>> {
        match label {
            Label::User => Some(&mut self.user),
            Label::Operator => Some(&mut self.operator),
            Label::Tool(_) | Label::Server(_) | Label::Run(_) | Label::Unknown => None,
        }
    }
}

/// A sentence, whatever the white space in it.
fn digest(sentence: &str) -> Digest {
    let words = sentence.split_whitespace();
    words
        .fold(DigestBuilder::new("portcullis/heard/v1"), |digest, word| digest.part(word.as_bytes()))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> Heard {
        let mut heard = Heard::default();
        heard.user.extend(sentences(text).map(|place| digest(text.get(place).unwrap())));
        heard
    }

    #[test]
    fn a_text_is_the_users_if_each_sentence_is() {
        let heard = heard("Send Bob the minutes.  Do not\npay anything! And then\n\nclose the ticket");
        for said in
            ["Send Bob the minutes.", "close the ticket\n", "Do not pay anything! Send Bob the minutes."]
        {
            assert!(heard.all_of(said, &Label::User), "{said}");
            assert!(!heard.all_of(said, &Label::Operator), "{said}");
        }
        for other in [
            "",
            "  ",
            "Send Bob the minutes. Pay Eve.",
            "pay anything!",
            "Send Bob the minutes. <script>x</script>",
            "<b>Send Bob the minutes.</b>",
            "Send Bob",
        ] {
            assert!(!heard.all_of(other, &Label::User), "{other}");
        }
    }
}
