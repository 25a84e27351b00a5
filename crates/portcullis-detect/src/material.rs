//! Training material from a grammar: a TOML file of slots and templates, from which labelled sentences are drawn.
//!
//! Public sets of attacks are few, alike, and often without a licence. A grammar that was written for the purpose
//! covers the ways of saying a thing, is read in five minutes, and belongs to nobody else. The draw is the same every
//! time.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::train::Example;

/// Sentences of one grammar and label.
const SENTENCES: usize = 100_000;
/// Bytes of one sentence.
const SENTENCE_BYTES: usize = 1024;
/// Slots that are filled in one sentence.
const FILLED: usize = 64;

/// What is wrong with a grammar.
#[derive(Debug, thiserror::Error)]
pub enum GrammarError {
    /// It is no TOML of this form.
    #[error("the grammar cannot be read: {0}")]
    Form(#[from] toml::de::Error),
    /// A slot that is named and not defined, or has no filling.
    #[error("the grammar has no filling for the slot `{0}`")]
    Slot(String),
    /// No template, or more sentences than may be drawn.
    #[error("`{0}` needs a template and a count of at most {SENTENCES}")]
    Part(&'static str),
    /// Slots that fill each other without an end, or a sentence too long.
    #[error("the template `{0}` has no end")]
    Endless(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grammar {
    slots: BTreeMap<String, Vec<String>>,
    wanted: Part,
    innocent: Part,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    templates: Vec<String>,
    count: usize,
}

/// Draws the sentences of a grammar: different ones, at most as many of a label as it says, in a fixed order.
///
/// # Errors
/// The text is no grammar, or one without an end.
pub fn draw(text: &str) -> Result<Vec<Example>, GrammarError> {
    let Grammar { slots, wanted, innocent } = toml::from_str(text)?;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut out = Vec::new();
    for (name, part, label) in [("wanted", wanted, true), ("innocent", innocent, false)] {
        if part.templates.is_empty() || part.count > SENTENCES {
            return Err(GrammarError::Part(name));
        }
        let mut seen = BTreeSet::new();
        // Twice as many draws as sentences: a small grammar runs out of new ones.
        for template in part.templates.iter().cycle().take(part.count * 2) {
            let text = capital(&fill(template, &slots, &mut random)?);
            if seen.len() < part.count && seen.insert(text.clone()) {
                out.push(Example { text, label });
            }
        }
    }
    Ok(out)
}

fn fill(
    template: &str,
    slots: &BTreeMap<String, Vec<String>>,
    random: &mut Random,
) -> Result<String, GrammarError> {
    let mut text = template.to_owned();
    for _ in 0..FILLED {
        let Some((before, rest)) = text.split_once('{') else { return Ok(text) };
        let Some((name, after)) = rest.split_once('}') else { return Ok(text) };
        let fillings = slots.get(name).filter(|fillings| !fillings.is_empty());
        let filling = fillings.and_then(|fillings| fillings.get(random.below(fillings.len())));
        let filling = filling.ok_or_else(|| GrammarError::Slot(name.to_owned()))?;
        text = format!("{before}{filling}{after}");
        if text.len() > SENTENCE_BYTES {
            break;
        }
    }
    Err(GrammarError::Endless(template.to_owned()))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Numbers that look random and are the same every time (xorshift, G. Marsaglia, 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from((self.0 >> 11) % limit).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_grammars_give_different_sentences_of_both_labels() {
        for text in
            [include_str!("../data/order-training.toml"), include_str!("../data/override-training.toml")]
        {
            let drawn = draw(text).unwrap();
            let wanted = drawn.iter().filter(|example| example.label).count();
            assert!(wanted > 5_000 && drawn.len() - wanted > 3_000, "{wanted} of {}", drawn.len());
            assert_eq!(draw(text).unwrap(), drawn);
        }
    }

    #[test]
    fn a_grammar_without_an_end_or_filling_is_refused() {
        let of = |slots: &str, template: &str| {
            let part = format!("{{ templates = ['{template}'], count = 3 }}");
            draw(&format!("wanted = {part}\ninnocent = {part}\n[slots]\n{slots}"))
        };
        assert!(matches!(of("a = ['{a} {a}']", "{a}"), Err(GrammarError::Endless(_))));
        assert!(matches!(of("a = []", "{a}"), Err(GrammarError::Slot(_))));
        assert!(matches!(of("a = ['x']", "{b}"), Err(GrammarError::Slot(_))));
        assert_eq!(of("a = ['x', 'y']", "{a}").unwrap().len(), 4);
    }
}
