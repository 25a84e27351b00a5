//! Reads a request.
//!
//! A request is cut into sentences and these into clauses. In each, words are placed in *slots*, wherever they stand: when,
//! who, how many, which tool, which value of which argument, what came before (`clause`). Anchors say what kind of
//! statement it is (`anchors`): it forbids, narrows, obliges, allows. Slots and anchors make rules (`frames`, `limits`,
//! `sequences`). What is then left over decides (`decide`): a rule is never made of half a sentence, but the reading is
//! offered as a canonical sentence (`canonical`), which somebody has to accept.

mod anchors;
mod approval;
pub(crate) mod canonical;
mod clause;
mod content;
mod context;
mod decide;
mod frames;
mod lexicon;
mod limits;
mod look;
mod names;
mod order;
mod over_time;
mod people;
mod quantity;
mod scope;
mod sequences;
mod times;
mod tools;
mod values;
mod words;

use std::ops::Range;

use self::context::Context;
use crate::answers::Answer;
use crate::draft::{Put, Question, REQUEST_BYTES_MAX, RULES_MAX, Refusal, Topic};
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
        let mut edits: Vec<(Question, String)> = Vec::new();
        left.retain(|answer| {
            let question = reading.questions.iter().find(|question| question.id == answer.question);
            let edit = question.filter(|question| !is_default(question, &answer.text));
            edits.extend(edit.map(|question| (question.clone(), offered(question, &answer.text))));
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
            text = match canonical::all(&answer) {
                Some(_) => instead(&text, &question, &answer),
                None => edited(&text, &question, &answer),
            };
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

/// The request with canonical sentences in place of the sentence that is asked about.
fn instead(text: &str, question: &Question, answer: &str) -> String {
    let Range { start, end } = sentence_at(text, question.span.start);
    let (before, after) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
    let after = after.strip_prefix(['.', '!', '?']).unwrap_or(after);
    format!("{before}{}{after}", answer.trim())
}

/// The sentence at a place of a request, in bytes.
fn sentence_at(text: &str, at: usize) -> Range<usize> {
    let clauses = words::clauses(text);
    let sentences = clauses.iter().map(|clause| clause.sentence.clone());
    sentences.into_iter().find(|sentence| sentence.contains(&at)).unwrap_or(0..text.len())
}

/// What a question asks about: the sentence around its words.
pub(crate) fn sentence_of<'t>(text: &'t str, question: &Question) -> &'t str {
    text.get(sentence_at(text, question.span.start)).unwrap_or_default()
}

/// The reading that a number stands for, or the answer itself.
fn offered(question: &Question, answer: &str) -> String {
    let number = answer.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.and_then(|place| question.offers.get(place)).map_or_else(|| answer.to_owned(), String::clone)
}

fn once(text: &str, spec: &Spec) -> Reading {
    let mut context = Context::new(spec);
    let clauses = words::clauses(text);
    context.roles = words::roles(&clauses);
    for clauses in clauses.chunk_by(|one, other| one.sentence == other.sentence) {
        let span = clauses.first().map_or(0..0, |clause| clause.sentence.clone());
        let sentence = text.get(span.clone()).unwrap_or_default();
        let rule =
            canonical::read(sentence).filter(|rule| rule.tools.iter().all(|tool| spec.tool(tool).is_some()));
        match rule {
            Some(rule) => {
                context.last_tools.clone_from(&rule.tools);
                context.rule(span, &rule.tools, rule.when, rule.past, rule.stop);
            }
            None if sentence.starts_with(canonical::START) => {
                let message =
                    "this begins as a canonical sentence does, and does not go on so, or names no tool";
                context.ask(Topic::Meaning, span, message, Put::Replace);
            }
            None => decide::sentence(&mut context, clauses),
        }
    }
    context.finish(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> serde_json::Value {
        let text = json!({"type": "string"});
        json!([
            {"name": "release_firmware", "description": "Roll firmware out to devices",
             "arguments": {"ring": {"type": "string", "description": "Ring"}, "build": {"type": "string", "description": "Build"}}},
            {"name": "record_inspection", "description": "Record the result of an inspection",
             "arguments": {"vehicle_id": {"type": "string", "description": "Vehicle"}, "outcome": {"type": "string", "description": "Outcome", "values": ["pass", "fail"]}}},
            {"name": "rent_vehicle", "description": "Rent a vehicle out",
             "arguments": {"vehicle_id": {"type": "string", "description": "Vehicle"}, "days": {"type": "integer", "description": "Days"}}},
            {"name": "order_diesel", "description": "Order diesel for a depot",
             "arguments": {"depot": {"type": "string", "description": "Depot"}, "litres": {"type": "number", "description": "Litres"}}},
            {"name": "get_depot", "description": "Show a depot", "arguments": {"depot": text}},
        ])
    }

    fn meaning(request: &str) -> Vec<String> {
        let spec = Spec::of_json(&tools()).unwrap();
        let reading = read(request, &spec, &[]);
        let open: Vec<&str> = reading
            .questions
            .iter()
            .filter(|question| question.default.is_none())
            .map(|question| question.text.as_str())
            .chain(reading.refusals.iter().map(|refusal| refusal.message.as_str()))
            .collect();
        assert!(open.is_empty(), "{request}: {open:?}");
        reading.rules.iter().map(crate::english::sentence).collect()
    }

    #[test]
    fn orders_tell_calls_of_one_tool_apart_by_a_value() {
        let request = "Firmware may be released to the ring `fleet` only after the same build was released to the ring `lab`.";
        assert_eq!(
            meaning(request),
            [
                "A call of `release_firmware` is denied if `ring` is `fleet`, and `release_firmware` whose `ring` is `lab` has not succeeded before with the same `build` in the run."
            ]
        );
    }

    #[test]
    fn earlier_calls_are_told_apart_by_a_value() {
        let request = "Never rent a vehicle out after an inspection of the same vehicle was recorded with the outcome `fail`.";
        assert_eq!(
            meaning(request),
            [
                "A call of `rent_vehicle` is denied if `record_inspection` whose `outcome` is `fail` was called before with the same `vehicle_id` in the run."
            ]
        );
    }

    #[test]
    fn limits_over_time_have_exempt_roles() {
        let request = "At most three orders of diesel per depot within 24 hours, except for dispatchers.";
        assert_eq!(
            meaning(request),
            [
                "A call of `order_diesel` is denied if the caller does not have the role `dispatcher`, and it would be more than 3 times with the same `depot` within 1 day in all runs of the principal."
            ]
        );
    }

    #[test]
    fn numbers_of_a_number_argument_are_added_up() {
        let request = "At most 9000 litres of diesel per depot within 7 days.";
        assert_eq!(
            meaning(request),
            [
                "A call of `order_diesel` is denied if `litres` of all such calls with the same `depot` would come to more than 9000 within 7 days in all runs of the principal."
            ]
        );
    }

    #[test]
    fn who_is_excluded_after_only_is_not_exempt() {
        let request = "Renting a vehicle out is only for clerks, not for trainees.";
        assert_eq!(
            meaning(request),
            ["A call of `rent_vehicle` is denied if the caller does not have the role `clerk`."]
        );
    }

    #[test]
    fn remarks_are_left_out() {
        for request in [
            "No diesel may be ordered on Sundays, they close at lunch anyway.",
            "No diesel may be ordered on Sundays (it would sit in the yard), no joke.",
        ] {
            let rules = meaning(request);
            assert_eq!(rules.len(), 1, "{request}: {rules:?}");
        }
    }

    #[test]
    fn canonical_sentences_are_read_back() {
        let all = [
            "A call of `release_firmware` is denied if `ring` is `fleet`, and `release_firmware` whose `ring` is `lab` and whose `build` is not `7` has not succeeded before with the same `build` in the run.",
            "A call of `order_diesel` is denied if the caller does not have the role `a` or `b`, and `litres` is more than 5, and it would be more than 3 times within 1 day in all runs of the principal.",
        ];
        for sentence in all {
            let rule = canonical::read(sentence).unwrap();
            assert_eq!(crate::english::sentence(&rule), sentence);
        }
    }

    #[test]
    fn what_a_sequence_cannot_say_is_refused() {
        let spec = Spec::of_json(&tools()).unwrap();
        let request = "A call of `order_diesel` is denied if the caller has the role `intern`, and it would be more than 3 times within 1 day in all runs of the principal.";
        assert_eq!(read(request, &spec, &[]).refusals.len(), 1);
    }
}
