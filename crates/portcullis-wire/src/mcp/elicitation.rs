//! Questions to the user through an MCP client of 2025-06-18 or 2025-11-25: `elicitation/create` in form mode.
//!
//! The client's own host shows the form and answers. What comes back is the user's word as far as the host is trusted
//! with that, and never an approver's.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{V_2025_06_18, V_2026_07_28};
use crate::fields::{self, FieldError};

/// The request.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// The most that the user may say beside yes or no, in characters.
pub const WORDS_CHARS_MAX: usize = 2_000;

/// Whether revisions of this time ask the client in a request of the server's. Revisions are dates, so they compare as
/// text.
#[must_use]
pub fn asks_in_requests(version: &str) -> bool {
    (V_2025_06_18..V_2026_07_28).contains(&version)
}

/// Whether a client says in its `initialize` that it shows forms: an `elicitation` without any mode, or with `form`.
///
/// # Errors
/// [`FieldError`] if the parameters are no objects or say one of these fields twice.
pub fn shows_forms(params: Option<&RawValue>) -> Result<bool, FieldError> {
    let Some(params) = fields::present(params) else { return Ok(false) };
    let [capabilities] = fields::read(params.get(), &["capabilities"])?;
    let Some(capabilities) = fields::present(capabilities) else { return Ok(false) };
    let [elicitation] = fields::read(capabilities.get(), &["elicitation"])?;
    let Some(elicitation) = fields::present(elicitation) else { return Ok(false) };
    let [form, url] = fields::read(elicitation.get(), &["form", "url"])?;
    Ok(fields::present(form).is_some() || fields::present(url).is_none())
}

/// The request that shows a text and asks for yes or no, and for words; without newline.
#[must_use]
pub fn ask(id: &str, message: &str) -> Vec<u8> {
    let schema = json!({
        "type": "object",
        "properties": {
            "confirm": {
                "type": "boolean", "title": "Go ahead",
                "description": "Yes lets this call go ahead, once",
            },
            "answer": {
                "type": "string", "title": "Answer", "maxLength": WORDS_CHARS_MAX,
                "description": "What the agent should know; may be left empty",
            },
        },
        "required": ["confirm"],
    });
    let params = json!({"message": message, "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": id, "method": ELICITATION_CREATE, "params": params})
        .to_string()
        .into_bytes()
}

/// Tells the client that a question is no longer waited for; without newline.
#[must_use]
pub fn withdraw(id: &str, why: &str) -> Vec<u8> {
    let params = json!({"requestId": id, "reason": why});
    json!({"jsonrpc": "2.0", "method": super::CANCELLED, "params": params}).to_string().into_bytes()
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, with words if there are any.
    Yes(Option<String>),
    /// No.
    No(Option<String>),
    /// Nothing: the form was dismissed.
    Nothing,
}

/// Reads the answer to [`ask`]. Only a form that was accepted with `confirm` true is a yes.
///
/// # Errors
/// [`FieldError`] if it is none.
pub fn read_answer(result: &RawValue) -> Result<Answer, FieldError> {
    #[derive(Deserialize)]
    struct Given {
        action: Action,
        content: Option<Form>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Action {
        Accept,
        Decline,
        Cancel,
    }
    #[derive(Deserialize)]
    struct Form {
        confirm: bool,
        answer: Option<String>,
    }
    let unreadable = |error: serde_json::Error| FieldError::Json(error.to_string());
    let Given { action, content } = serde_json::from_str(result.get()).map_err(unreadable)?;
    let words = |form: Form| {
        let words = form.answer.filter(|words| !words.trim().is_empty());
        words.map(|words| words.chars().take(WORDS_CHARS_MAX).collect())
    };
    match (action, content) {
        (Action::Accept, Some(form)) if form.confirm => Ok(Answer::Yes(words(form))),
        (Action::Accept, Some(form)) => Ok(Answer::No(words(form))),
        (Action::Accept, None) => Err(FieldError::Json("an accepted form needs `content`".to_owned())),
        (Action::Decline, _) => Ok(Answer::No(None)),
        (Action::Cancel, _) => Ok(Answer::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_a_client_that_shows_forms_is_asked() {
        let shows = |capabilities: &str| {
            shows_forms(Some(&raw(&format!(r#"{{"capabilities":{capabilities}}}"#)))).unwrap()
        };
        assert!(shows(r#"{"elicitation":{}}"#));
        assert!(shows(r#"{"elicitation":{"form":{}}}"#));
        assert!(shows(r#"{"elicitation":{"form":{},"url":{}}}"#));
        assert!(!shows(r#"{"elicitation":{"url":{}}}"#));
        assert!(!shows(r#"{"elicitation":null}"#));
        assert!(!shows("{}"));
        assert!(!shows_forms(None).unwrap());
        assert!(shows_forms(Some(&raw(r#"{"capabilities":{"elicitation":{},"elicitation":{}}}"#))).is_err());
        assert!(asks_in_requests("2025-06-18") && asks_in_requests("2025-11-25"));
        assert!(!asks_in_requests("2025-03-26") && !asks_in_requests("2026-07-28"));
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        let read = |text: &str| read_answer(&raw(text));
        let yes = r#"{"action":"accept","content":{"confirm":true,"answer":"the staging one"}}"#;
        assert_eq!(read(yes), Ok(Answer::Yes(Some("the staging one".into()))));
        assert_eq!(
            read(r#"{"action":"accept","content":{"confirm":true,"answer":" "}}"#),
            Ok(Answer::Yes(None))
        );
        assert_eq!(read(r#"{"action":"accept","content":{"confirm":false}}"#), Ok(Answer::No(None)));
        assert_eq!(read(r#"{"action":"decline"}"#), Ok(Answer::No(None)));
        assert_eq!(read(r#"{"action":"decline","content":{"confirm":true}}"#), Ok(Answer::No(None)));
        assert_eq!(read(r#"{"action":"cancel"}"#), Ok(Answer::Nothing));
        for unreadable in [
            "{}",
            r#"{"action":"yes"}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"accept","content":{"answer":"yes"}}"#,
            r#"{"action":"accept","content":{"confirm":"true"}}"#,
            r#"{"action":"accept","content":{"confirm":false,"confirm":true}}"#,
            r#"{"action":"decline","action":"accept","content":{"confirm":true}}"#,
        ] {
            assert!(read(unreadable).is_err(), "{unreadable}");
        }
    }
}
