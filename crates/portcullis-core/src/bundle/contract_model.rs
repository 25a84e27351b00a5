//! Reads `[contracts]` of `portcullis.toml`.
//!
//! ```toml
//! [contracts]
//! endpoint = "https://models.example/v1"  # an OpenAI-compatible server
//! model = "NAME"
//! key_env = "MODELS_KEY"                  # the daemon's environment variable with the key
//! calls = 20                              # most calls for one request, or one text at the gate
//! time_s = 60                             # most seconds
//! ```

use super::diagnostic::Diagnostic;
use super::toml_table::{File, Table};

/// The model that contracts and `/v1/contracts` may ask, and what one request or one text may use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractModel {
    /// The server's address.
    pub endpoint: String,
    /// The model's name, as the server knows it.
    pub model: String,
    /// The variable of the daemon's environment with the key.
    pub key_env: Option<String>,
    /// Most calls for one request or text.
    pub calls: u32,
    /// Most seconds for one request or text.
    pub time_s: u32,
}

/// Calls unless said otherwise.
const CALLS: u32 = 20;
/// Seconds unless said otherwise.
const TIME_S: u32 = 60;
/// Most seconds that can be given: longer than any client waits for an answer.
const TIME_S_MAX: u32 = 600;

pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> Option<ContractModel> {
    let span = table.span.clone();
    let endpoint = table.string("endpoint").map(|field| field.value);
    let model = table.string("model").map(|field| field.value);
    let key_env = table.string("key_env").map(|field| field.value);
    let calls = table.integer("calls", 1).unwrap_or(CALLS);
    let time_s = table.integer("time_s", 1).unwrap_or(TIME_S);
    for (field, value) in [("endpoint", &endpoint), ("model", &model)] {
        if value.is_none() {
            table.missing(field);
        }
    }
    let wrong = |message: String| -> Diagnostic { file.at(span.clone(), message) };
    if endpoint
        .as_ref()
        .is_some_and(|address| !address.starts_with("http://") && !address.starts_with("https://"))
    {
        file.report(wrong("`endpoint` is not an address such as `https://models.example/v1`".to_owned()));
    }
    if time_s > TIME_S_MAX {
        file.report(wrong(format!("`time_s` is over {TIME_S_MAX}")));
    }
    table.finish();
    Some(ContractModel { endpoint: endpoint?, model: model?, key_env, calls, time_s })
}
