//! Sentences that could not be read, and canonical sentences in their place.
//!
//! Whoever restates a sentence, an operator or a model, answers a question about it with canonical sentences. They are
//! checked here before they are offered: each has to be read in one way, to name tools and arguments that there are, and to
//! have a form in a bundle.

use crate::draft::{Draft, Question};
use crate::english;
use crate::read::{self, canonical};
use crate::rule::{Asks, Condition, Rule};
use crate::spec::Spec;

/// How canonical sentences are written, for people and models.
pub const FORMS: &str = "\
A call of TOOLS is denied, always.
A call of TOOLS is denied if CONDITIONS.
A call of TOOLS is held until a person approves it if CONDITIONS.
A call of TOOLS is held until somebody with the role `ROLE` approves it if CONDITIONS.

TOOLS, ROLES and VALUES are names in back-ticks: `a`, `b` or `c`.
CONDITIONS are joined by `, and `. All of them have to hold. A condition is one of
  the caller has the role ROLES
  the caller does not have the role ROLES
  `ARGUMENT` is VALUES                          (is not)
  `ARGUMENT` is more than NUMBER                (at least, less than, at most, exactly)
  `ARGUMENT` is at `example.com` or below       (is not; `at exactly` for the domain alone)
  `ARGUMENT` is in the folder `/a/b`            (is not)
  `ARGUMENT` is a file named `x.txt` or `*.pem` (is not)
  `ARGUMENT` begins with VALUES                 (does not begin with)
  `ARGUMENT` contains VALUES                    (does not contain)
  `ARGUMENT` is given                           (is missing or empty)
  `ARGUMENT` has more than NUMBER entries       (at least, less than, at most, exactly)
  the time is on Monday or Friday, from 08:00 and before 17:30 (UTC+01:00)   (is not; days or hours alone)
  (CONDITION; or CONDITION)
and at most one about what happened before, at the end:
  it would be more than NUMBER times with the same `ARGUMENT` within 1 day in all runs of the principal
  `AMOUNT` of all such calls with the same `ARGUMENT` would come to more than NUMBER within 7 days in all runs of the principal
  `TOOL` was called before with the same `ARGUMENT` in the run
  `TOOL` has not succeeded before with a `ARGUMENT OF TOOL` equal to its `ARGUMENT` in the run
  `TOOL` whose `ARGUMENT OF TOOL` is VALUES has not succeeded before in the run
`once` stands for 1 time. `with the same` and `within` may be left out. Within 7 days or less, limits are in all runs of the
principal; other questions about what happened before are in the run.";

/// A sentence that is open, and the question by whose answer it can be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open<'d> {
    /// The first question about it that has no default.
    pub question: &'d Question,
    /// The sentence.
    pub sentence: &'d str,
}

/// The sentences of a draft that somebody has to restate or to answer questions about, in their order.
pub fn open(draft: &Draft) -> Vec<Open<'_>> {
    let mut found: Vec<Open<'_>> = Vec::new();
    for question in draft.blocking_questions() {
        let sentence = read::sentence_of(&draft.read_as, question);
        if found.iter().all(|known| known.sentence.as_ptr() != sentence.as_ptr()) {
            found.push(Open { question, sentence });
        }
    }
    found
}

/// Reads canonical sentences, one or more, and writes them as they are offered.
///
/// # Errors
/// Why they are none, for whoever wrote them.
pub fn restated(text: &str, spec: &Spec) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("there is no sentence".to_owned());
    }
    let mut sentences = Vec::new();
    for line in lines {
        let rules = canonical::all(line).ok_or_else(|| format!("not in one of the forms: {line}"))?;
        for rule in rules {
            unknown(&rule, spec)?;
            sentences.push(english::sentence(&rule));
        }
    }
    Ok(sentences.join(" "))
}

/// What a rule names that is not there, or what has no form.
fn unknown(rule: &Rule, spec: &Spec) -> Result<(), String> {
    let known = |tool: &String| match spec.tool(tool) {
        Some(_) => Ok(()),
        None => Err(format!("there is no tool `{tool}`")),
    };
    rule.tools.iter().try_for_each(known)?;
    let has = |tools: &[String], argument: &str| {
        let without =
            tools.iter().find(|tool| spec.tool(tool).is_some_and(|tool| tool.argument(argument).is_none()));
        without.map_or(Ok(()), |tool| Err(format!("`{tool}` has no argument `{argument}`")))
    };
    rule.when.iter().flat_map(arguments).try_for_each(|name| has(&rule.tools, name))?;
    if let Some(past) = &rule.past {
        let before = match &past.asks {
            Asks::After(tools) | Asks::Before(tools) => tools,
            Asks::Count(_) | Asks::Sum(..) => &rule.tools,
        };
        before.iter().try_for_each(known)?;
        past.earlier.iter().flat_map(arguments).try_for_each(|name| has(before, name))?;
        if let Some((earlier, judged)) = &past.same {
            has(before, earlier)?;
            has(&rule.tools, judged)?;
        }
        if let Asks::Sum(amount, _) = &past.asks {
            has(&rule.tools, amount)?;
        }
    }
    if rule.has_form() {
        return Ok(());
    }
    let why = "beside a question about what happened before, a rule can have roles that are exempt, and arguments that are \
        equal to values or compare with an amount";
    Err(format!("{why}: {}", english::sentence(rule)))
}

/// The arguments that a condition names.
fn arguments(condition: &Condition) -> Vec<&str> {
    match condition {
        Condition::Argument(name, _) => vec![name],
        Condition::Not(inner) => arguments(inner),
        Condition::Any(all) | Condition::All(all) => all.iter().flat_map(arguments).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answers::Answer;

    fn spec() -> Spec {
        Spec::of_json(&json!([
            {"name": "deploy", "arguments": {"version": {"type": "string"}, "target": {"type": "string"}}},
            {"name": "issue_refund", "arguments": {"customer": {"type": "string"}, "amount": {"type": "number"}}},
        ]))
        .unwrap()
    }

    #[test]
    fn each_form_is_read_and_written_back() {
        for sentence in [
            "A call of `deploy` is denied, always.",
            "A call of `deploy` or `issue_refund` is held until somebody with the role `lead` approves it if the caller does not have the role `ops` or `sre`.",
            "A call of `issue_refund` is held until a person approves it if `amount` is more than 99.5, and `customer` is missing or empty.",
            "A call of `deploy` is denied if the time is not on Monday or Friday, from 08:00 and before 17:30 (UTC+01:00).",
            "A call of `deploy` is denied if (`target` is `prod`; or `version` begins with `v0`), and `target` is not at `example.com` or below.",
            "A call of `deploy` is denied if `version` is in the folder `/a`, and `target` is not a file named `*.pem`, and `target` contains `x`.",
            "A call of `issue_refund` is denied if the caller does not have the role `lead`, and it would be more than 3 times with the same `customer` within 1 day in all runs of the principal.",
            "A call of `issue_refund` is denied if `amount` of all such calls with the same `customer` would come to more than 500 within 7 days in all runs of the principal.",
            "A call of `deploy` is denied if `target` is `prod`, and `deploy` whose `target` is `staging` has not succeeded before with the same `version` in the run.",
            "A call of `issue_refund` is denied if `deploy` was called before with a `version` equal to its `customer` within 30 days in the run.",
        ] {
            assert_eq!(restated(sentence, &spec()).as_deref(), Ok(sentence));
        }
    }

    #[test]
    fn what_names_nothing_that_is_there_is_told_so() {
        for (sentence, why) in [
            ("Refunds are denied.", "not in one of the forms"),
            ("A call of `refund` is denied, always.", "no tool `refund`"),
            ("A call of `deploy` is denied if `amount` is more than 3.", "no argument `amount`"),
            (
                "A call of `deploy` is denied if it would be more than 3 times with the same `customer` in the run.",
                "no argument",
            ),
            (
                "A call of `deploy` is denied if the caller has the role `ops`, and it would be more than once in the run.",
                "can have roles that are exempt",
            ),
            ("A call of `deploy` is denied, always. And nothing else.", "not in one of the forms"),
            ("", "no sentence"),
        ] {
            let error = restated(sentence, &spec()).unwrap_err();
            assert!(error.contains(why), "{sentence}: {error}");
        }
    }

    #[test]
    fn a_canonical_answer_takes_the_place_of_its_sentence() {
        let request = "Only leads may issue refunds. Refunds shan't be silly. Deployments wait for a human.";
        let draft = Draft::compile("x", request, &spec(), &[]);
        let all = open(&draft);
        let silly = all.iter().find(|open| open.sentence.contains("silly")).unwrap();
        let text = "A call of `issue_refund` is denied if `amount` is more than 50.".to_owned();
        let answer = Answer { text: text.clone(), ..Answer::accepting(&silly.question.id) };
        let again = Draft::compile("x", request, &spec(), &[answer]);
        assert!(again.meaning.contains(&text), "{:?} {:?}", again.meaning, again.questions);
        assert!(
            !again.read_as.contains("silly") && again.read_as.contains("Deployments wait"),
            "{}",
            again.read_as
        );
    }
}
