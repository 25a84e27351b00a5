//! Reads a request.
//!
//! A request is cut into clauses. In each, words are looked for that say one thing: when, who, how many, after what; each
//! takes its words away. What is left has to be the tool and its object. A word that nothing was made of, and that is
//! neither a tool's nor empty of content, is a question: a rule is never made of half a sentence.

mod clause;
mod content;
mod context;
mod events;
mod lexicon;
mod limits;
mod look;
mod names;
mod orders;
mod people;
mod quantity;
mod required;
mod rest;
mod scope;
mod times;
mod tools;
mod values;
mod words;

use std::ops::Range;

use self::context::Context;
use crate::answers::Answer;
use crate::draft::{Put, Question, REQUEST_BYTES_MAX, RULES_MAX, Refusal};
use crate::rule::Rule;
use crate::spec::Spec;

/// How often answers may raise new questions.
const ROUNDS_MAX: usize = 16;

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The request with the answers in it; spans are places of this text.
    pub text: String,
    /// The rules.
    pub rules: Vec<Rule>,
    /// What is open.
    pub questions: Vec<Question>,
    /// What cannot be stated or read.
    pub refusals: Vec<Refusal>,
}

/// Reads a request about tools, with what was answered.
pub fn read(request: &str, spec: &Spec, answers: &[Answer]) -> Reading {
    if request.len() > REQUEST_BYTES_MAX {
        return refused(
            request,
            format!("the request has {} bytes; the limit is {REQUEST_BYTES_MAX}", request.len()),
        );
    }
    let mut reading = once(request, spec);
    let mut left: Vec<&Answer> = answers.iter().filter(|answer| !answer.accepts()).collect();
    for _ in 0..ROUNDS_MAX {
        let mut edits: Vec<(Question, &str)> = Vec::new();
        left.retain(|answer| {
            let question = reading.questions.iter().find(|question| question.id == answer.question);
            let edit = question.filter(|question| !is_default(question, &answer.text));
            edits.extend(edit.map(|question| (question.clone(), answer.text.as_str())));
            edit.is_none()
        });
        if edits.is_empty() {
            break;
        }
        edits.sort_by_key(|(question, _)| std::cmp::Reverse(question.span.start));
        // Of two about the same words, the first counts; what is left of the other is asked again.
        edits.dedup_by(|later, first| later.0.span.end > first.0.span.start);
        let mut text = reading.text.clone();
        for (question, answer) in edits {
            text = edited(&text, &question, answer);
        }
        reading = once(&text, spec);
    }
    let accepted = |question: &Question| {
        let mut given = answers.iter().filter(|answer| answer.question == question.id);
        question.default.is_some()
            && given.any(|answer| answer.accepts() || is_default(question, &answer.text))
    };
    reading.questions.retain(|question| !accepted(question));
    if reading.rules.len() > RULES_MAX {
        return refused(
            request,
            format!("the request has {} rules; the limit is {RULES_MAX}", reading.rules.len()),
        );
    }
    reading
}

fn refused(request: &str, message: String) -> Reading {
    let refusal = Refusal { span: 0..0, message, help: "split it into several requests".to_owned() };
    Reading { text: request.to_owned(), refusals: vec![refusal], ..Reading::default() }
}

fn is_default(question: &Question, text: &str) -> bool {
    question.default.as_deref().is_some_and(|default| default.eq_ignore_ascii_case(text.trim()))
}

/// The request with an answer in it.
fn edited(text: &str, question: &Question, answer: &str) -> String {
    let Range { start, end } = question.span;
    let (before, words, after) = (
        text.get(..start).unwrap_or_default(),
        text.get(start..end).unwrap_or_default(),
        text.get(end..).unwrap_or_default(),
    );
    let answer = answer.trim().trim_end_matches('.');
    match question.put {
        Put::Replace => format!("{before}{answer}{after}"),
        Put::Append | Put::Choice => format!("{before}{words} {answer}{after}"),
        Put::Sentence => {
            let lower = answer.to_lowercase();
            let takes_out = [
                "drop",
                "remove",
                "delete",
                "ignore",
                "without",
                "skip",
                "leave out",
                "none",
                "understood",
                "not needed",
            ];
            let out = takes_out.iter().any(|word| lower.starts_with(word));
            let answer = if out { "" } else { answer };
            let after = if out { after.trim_start_matches(['.', '!', ' ']) } else { after };
            format!("{before}{answer}{after}")
        }
    }
}

fn once(text: &str, spec: &Spec) -> Reading {
    let mut context = Context::new(spec);
    let clauses = words::clauses(text);
    for (place, clause) in clauses.iter().enumerate() {
        clause::read(&mut context, clause, clauses.get(place + 1));
    }
    context.finish(text)
}
