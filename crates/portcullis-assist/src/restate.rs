//! A sentence of a request for rules, restated in a form that is read in one way.
//!
//! The model only suggests: a person accepts what it says, or does not. What it writes is checked by whoever knows the forms,
//! and shown to it again once if it is in none of them.

use crate::model::{Finish, Model, ModelError, Request};
use crate::tag::{fenced, without_thoughts};

/// Tokens of some sentences.
const TOKENS: u32 = 2_048;
/// How often it may write.
const ROUNDS: usize = 2;
/// The answer where a sentence cannot be restated.
const UNSURE: &str = "UNSURE";

const SYSTEM: &str = "You restate a sentence of a request for rules about the calls of an agent's tools. You write sentences \
in the forms that are given, one a line, and nothing else. They stop exactly the calls that the sentence wants stopped. You add \
no number, role, window or value that the request does not name. Where the sentence leaves something open, wants nothing \
stopped, or has no form, you write UNSURE alone.";

/// What is to be restated.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'a> {
    /// The sentence.
    pub sentence: &'a str,
    /// The request that it stands in.
    pub request: &'a str,
    /// The tools with their arguments.
    pub tools: &'a str,
    /// The forms.
    pub forms: &'a str,
}

/// Asks for a sentence in the forms, and once more with what is wrong with the answer. None where there is no good one.
///
/// # Errors
/// The model gave no answer.
pub async fn restate(
    model: &dyn Model,
    asked: &Sentence<'_>,
    check: &(dyn Fn(&str) -> Result<String, String> + Sync),
) -> Result<Option<String>, ModelError> {
    let mut wrong = None;
    for _ in 0..ROUNDS {
        let completion = model.complete(&request(asked, wrong.as_ref())).await?;
        let text = without_thoughts(&completion.text).trim().trim_matches('\n').to_owned();
        if completion.finish == Finish::Length || text == UNSURE {
            return Ok(None);
        }
        match check(&text) {
            Ok(sentences) => return Ok(Some(sentences)),
            Err(why) => wrong = Some((text, why)),
        }
    }
    Ok(None)
}

fn request(asked: &Sentence<'_>, wrong: Option<&(String, String)>) -> Request {
    let mut user = format!(
        "{}\n\n{}\n\n{}\n\nThe sentence to restate:\n{}",
        fenced("forms", asked.forms),
        fenced("tools", asked.tools),
        fenced("request", asked.request),
        fenced("sentence", asked.sentence)
    );
    if let Some((text, why)) = wrong {
        user.push_str(&format!(
            "\n\nThis answer was no good:\n{}\n{}",
            fenced("answer", text),
            fenced("error", why)
        ));
    }
    Request::new(SYSTEM, user, TOKENS)
}
