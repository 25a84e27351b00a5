//! Whether what was read of a sentence is a rule, a question with readings to choose from, or only a question.
//!
//! A sentence makes rules if every word of it was placed and only one reading fits. Otherwise nothing is taken: the reading
//! is offered in canonical sentences, and the words that it leaves out are named.

use super::clause;
use super::context::Context;
use super::words::Clause;
use crate::draft::{Put, Topic};
use crate::english;
use crate::rule::Rule;

/// Most readings of one sentence that are worked out.
const READINGS_MAX: usize = 4;
/// The answer that takes a sentence out of the request.
const LEFT_OUT: &str = "leave out";
/// Most words that a question names.
const WORDS_MAX: usize = 8;

/// Reads the clauses of one sentence.
pub(super) fn sentence(context: &mut Context<'_>, clauses: &[Clause]) {
    let Some(span) = clauses.first().map(|clause| clause.sentence.clone()) else { return };
    let before = context.clone();
    let counts = context.counts();
    read(context, clauses);
    if context.blocked_from(counts) {
        return;
    }
    let own = written(context.rules_from(counts.0));
    let mut readings = vec![own];
    if !context.ties.is_empty() {
        for choice in 0..context.ties.len().min(READINGS_MAX) {
            let mut other = before.clone();
            other.choice = Some(choice);
            read(&mut other, clauses);
            readings.push(written(other.rules_from(counts.0)));
        }
    }
    let mut offers: Vec<String> = Vec::new();
    for reading in readings {
        if !reading.is_empty() && !offers.contains(&reading) {
            offers.push(reading);
        }
    }
    let words: Vec<String> =
        context.unplaced.iter().map(|(word, _)| format!("`{word}`")).take(WORDS_MAX).collect();
    if words.is_empty() && context.unmade.is_empty() && offers.len() < 2 {
        for span in std::mem::take(&mut context.beside) {
            let text = "this says nothing that a call could be stopped by, and is left out";
            context.ask_or(Topic::Meaning, span, text, "left out", Put::Sentence);
        }
        return;
    }
    let ties = std::mem::take(&mut context.ties);
    context.take_back(counts);
    let listed: Vec<String> =
        offers.iter().enumerate().map(|(number, offer)| format!("\n  {}: {offer}", number + 1)).collect();
    let listed = listed.concat();
    let words = words.join(", ");
    if offers.is_empty() {
        let what = if words.is_empty() { "this".to_owned() } else { words };
        let text = format!(
            "what does {what} mean here? say it by tools, arguments, amounts, roles or times, or leave it out\n  1: {LEFT_OUT}"
        );
        context.offer(Topic::Meaning, span, text, vec![LEFT_OUT.to_owned()]);
    } else if offers.len() > 1 && !ties.is_empty() {
        let text = format!("which of {} is meant?{listed}", ties.join(", "));
        context.offer(Topic::Tool, span, text, offers);
    } else {
        let left = match context.unplaced.len() {
            0 => "a part of this was".to_owned(),
            1 => format!("{words} was"),
            _ => format!("{words} were"),
        };
        let text = format!("is this what is meant? {left} not understood{listed}");
        context.offer(Topic::Reading, span, text, offers);
    }
}

fn read(context: &mut Context<'_>, clauses: &[Clause]) {
    context.unplaced.clear();
    context.unmade.clear();
    context.beside.clear();
    context.ties.clear();
    for clause in clauses {
        clause::read(context, clause);
    }
}

fn written(rules: &[Rule]) -> String {
    rules.iter().map(english::sentence).collect::<Vec<_>>().join(" ")
}
