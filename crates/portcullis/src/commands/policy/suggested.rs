//! `--suggest`: a model restates what the compiler cannot read. It is offered as an answer, and somebody has to give it.

use std::fmt::Write as _;

use portcullis_assist::restate::{Sentence, restate};
use portcullis_compile::answers::{Answer, Suggester};
use portcullis_compile::draft::{Draft, Question};
use portcullis_compile::restate::{FORMS, open, restated};
use portcullis_compile::spec::Spec;
use serde_json::json;

use super::written::{digest, kept};
use crate::daemon::runtime;
use crate::failure::Failure;
use crate::model::ModelArgs;

/// Most sentences that a model is asked about.
const SENTENCES_MAX: usize = 16;

/// What a model suggests.
pub(super) struct Suggestions {
    /// Questions by id, and the canonical sentences that would answer them.
    of: Vec<(String, String)>,
    /// Who suggests them.
    by: Suggester,
}

/// Asks about each sentence of a draft that is open.
pub(super) fn suggestions(draft: &Draft, spec: &Spec, model: &ModelArgs) -> Result<Suggestions, Failure> {
    let cassette = kept(model)?;
    let Some(opened) = model.open()? else { return Err(Failure::usage("no model is named")) };
    let tools = json!(draft.tools).to_string();
    let mut of = Vec::new();
    {
        let metered = opened.metered();
        let runtime = runtime()?;
        for open in open(draft).into_iter().take(SENTENCES_MAX) {
            let asked =
                Sentence { sentence: open.sentence, request: &draft.request, tools: &tools, forms: FORMS };
            let said = runtime.block_on(restate(&metered, &asked, &|text| restated(text, spec)));
            let said = said.map_err(|error| Failure::no(format!("the model gave no answer: {error}")))?;
            of.extend(said.map(|sentences| (open.question.id.clone(), sentences)));
        }
    }
    // It is whole once nobody writes to it.
    drop(opened);
    let cassette = digest(cassette)?;
    Ok(Suggestions { of, by: Suggester { model: model.name().to_owned(), cassette } })
}

impl Suggestions {
    /// Answers in which `suggestion` stands for what was suggested are given as the sentences, with who suggested them.
    ///
    /// # Errors
    /// Nothing was suggested for the question.
    pub(super) fn put_into(&self, answers: &mut [Answer]) -> Result<(), Failure> {
        for answer in answers.iter_mut().filter(|answer| answer.text.eq_ignore_ascii_case("suggestion")) {
            let of = self.of.iter().find(|(question, _)| *question == answer.question);
            let Some((_, sentences)) = of else {
                return Err(Failure::usage(format!(
                    "nothing is suggested for the question `{}`",
                    answer.question
                )));
            };
            answer.text.clone_from(sentences);
            answer.suggested_by = Some(self.by.clone());
        }
        Ok(())
    }

    /// Shows what was suggested with the questions that are still open.
    pub(super) fn show_in(&self, draft: &mut Draft) {
        for (id, sentences) in &self.of {
            let open = |question: &&mut Question| question.id == *id && question.default.is_none();
            if let Some(question) = draft.questions.iter_mut().find(open) {
                let _infallible = write!(question.text, "\n  suggestion, by {}: {sentences}", self.by.model);
            }
        }
    }
}
