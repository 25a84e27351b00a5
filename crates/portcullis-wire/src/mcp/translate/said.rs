//! What a request of a client without sessions says that a translation has to know.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::edit::edited;
use crate::fields;
use crate::mcp::elicitation::ELICITATION_CREATE;
use crate::mcp::{META_CLIENT_CAPABILITIES, META_LOG_LEVEL, ROOTS_LIST, SAMPLING_CREATE};

/// What a request says that matters here.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its parameters, without what a retry adds.
    pub(super) call: Value,
    pub(super) level: Option<String>,
    /// What the client can be asked.
    pub(super) can: Vec<&'static str>,
    pub(super) state: Option<String>,
    /// Answers to what was asked, as written.
    pub(super) answers: BTreeMap<String, String>,
}

impl Said {
    pub(super) fn of(params: &RawValue) -> Result<Self, fields::FieldError> {
        let [meta, state, answers] =
            fields::read(params.get(), &["_meta", "requestState", "inputResponses"])?;
        let [level, capabilities] = match fields::present(meta) {
            Some(meta) => fields::read(meta.get(), &[META_LOG_LEVEL, META_CLIENT_CAPABILITIES])?,
            None => [None, None],
        };
        let capabilities = match fields::present(capabilities) {
            Some(capabilities) => fields::read(capabilities.get(), &["elicitation", "sampling", "roots"])?,
            None => [None; 3],
        };
        let methods = [ELICITATION_CREATE, SAMPLING_CREATE, ROOTS_LIST];
        let can = methods.into_iter().zip(capabilities).filter(|(_, can)| fields::present(*can).is_some());
        let answers = match fields::present(answers) {
            Some(answers) => fields::read_with_rest::<0>(answers.get(), &[])?.1,
            None => Vec::new(),
        };
        let call = edited(params.get(), &["_meta", "requestState", "inputResponses"], &[])?;
        let call =
            RawValue::from_string(call).map_err(|error| fields::FieldError::Json(error.to_string()))?;
        Ok(Self {
            call: fields::value(&call)?,
            can: can.map(|(method, _)| method).collect(),
            level: fields::present(level).map(|level| level.get().to_owned()),
            state: state.and_then(fields::string).map(std::borrow::Cow::into_owned),
            answers: answers.into_iter().map(|(name, answer)| (name, answer.get().to_owned())).collect(),
        })
    }
}
