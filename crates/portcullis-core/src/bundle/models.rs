//! Reads `[second_opinion]` and `[per_action]` of `portcullis.toml`: models that are asked about calls.
//!
//! ```toml
//! [second_opinion]                        # about what would be held on one kind of evidence alone
//! endpoint = "https://models.example/v1"  # an OpenAI-compatible server
//! model = "NAME"
//! key_env = "MODELS_KEY"                  # the daemon's environment variable with the key
//! time_ms = 3000                          # how long a call waits for the answer
//!
//! [per_action]                            # has a program written and run for each call of these tools
//! endpoint = "https://models.example/v1"
//! model = "NAME"
//! time_ms = 20000
//! tools = ["refund"]
//! requests = "..."                        # what is to be guarded, in plain language
//! specification = "..."                   # what the agent is for
//! ```

use super::toml_table::{File, Table};

/// A model and how long a call waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallModel {
    /// The server's address.
    pub endpoint: String,
    /// The model's name, as the server knows it.
    pub model: String,
    /// The variable of the daemon's environment with the key.
    pub key_env: Option<String>,
    /// Most milliseconds for one call.
    pub time_ms: u32,
}

/// Programs that a model writes for single calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerAction {
    /// Who writes them.
    pub model: CallModel,
    /// The tools whose calls they are written for.
    pub tools: Vec<String>,
    /// Guard requests.
    pub requests: String,
    /// What the agent is for.
    pub specification: String,
}

/// The models that are asked about calls; none unless they are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallModels {
    /// Asked about calls which would be held on one kind of evidence alone; none: they are held.
    pub second_opinion: Option<CallModel>,
    /// Writes programs for single calls.
    pub per_action: Option<PerAction>,
}

/// Milliseconds for an answer of one word.
const OPINION_MS: u32 = 3_000;
/// Milliseconds for a plan, a program and its errors.
const PROGRAM_MS: u32 = 20_000;
/// Most milliseconds that can be given: clients of the gate wait 30 s for an answer.
const TIME_MS_MAX: u32 = 25_000;
/// Bytes of a text about guarding: some twenty pages.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Tools with programs of their own.
const TOOLS_MAX: usize = 256;

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> CallModels {
    let opinion = table.table("second_opinion");
    let per_action = table.table("per_action");
    CallModels {
        second_opinion: opinion.and_then(|table| second_opinion(file, table)),
        per_action: per_action.and_then(|table| self::per_action(file, table)),
    }
}

fn second_opinion(file: &File<'_>, mut table: Table<'_, '_>) -> Option<CallModel> {
    let model = model(file, &mut table, OPINION_MS);
    table.finish();
    model
}

fn per_action(file: &File<'_>, mut table: Table<'_, '_>) -> Option<PerAction> {
    let span = table.span.clone();
    let wrong = |message: String| file.report(file.at(span.clone(), message));
    let model = model(file, &mut table, PROGRAM_MS);
    let tools: Vec<String> =
        table.strings("tools").unwrap_or_default().into_iter().map(|field| field.value).collect();
    let requests = table.string("requests").map(|field| field.value).unwrap_or_default();
    let specification = table.string("specification").map(|field| field.value).unwrap_or_default();
    if tools.is_empty() || tools.len() > TOOLS_MAX {
        wrong(format!("`tools` names the tools that programs are written for, at most {TOOLS_MAX}"));
    }
    if requests.trim().is_empty() {
        wrong("`requests` says in plain language what is to be guarded".to_owned());
    }
    for (name, text) in [("requests", &requests), ("specification", &specification)] {
        if text.len() > TEXT_BYTES_MAX {
            wrong(format!("`{name}` has more than {TEXT_BYTES_MAX} bytes"));
        }
    }
    table.finish();
    Some(PerAction { model: model?, tools, requests, specification })
}

fn model(file: &File<'_>, table: &mut Table<'_, '_>, usual_ms: u32) -> Option<CallModel> {
    let span = table.span.clone();
    let endpoint = table.string("endpoint").map(|field| field.value);
    let model = table.string("model").map(|field| field.value);
    let key_env = table.string("key_env").map(|field| field.value);
    let time_ms = table.integer("time_ms", 1).unwrap_or(usual_ms);
    for (field, value) in [("endpoint", &endpoint), ("model", &model)] {
        if value.is_none() {
            table.missing(field);
        }
    }
    let wrong = |message: String| file.report(file.at(span.clone(), message));
    if endpoint
        .as_ref()
        .is_some_and(|address| !address.starts_with("http://") && !address.starts_with("https://"))
    {
        wrong("`endpoint` is not an address such as `https://models.example/v1`".to_owned());
    }
    if time_ms > TIME_MS_MAX {
        wrong(format!("`time_ms` is over {TIME_MS_MAX}: clients do not wait longer"));
    }
    Some(CallModel { endpoint: endpoint?, model: model?, key_env, time_ms })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bundle::Bundle;

    const MODEL: &str = "endpoint = \"https://models.example/v1\"\nmodel = \"m\"\n";

    fn load(main: &str) -> Result<Bundle, String> {
        let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 1\n";
        let main = format!("version = 1\n{main}");
        let files: BTreeMap<String, Vec<u8>> =
            [("portcullis.toml", main.as_str()), ("policies/p.toml", policy)]
                .map(|(path, text)| (path.to_owned(), text.into()))
                .into();
        Bundle::load(&files).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn models_about_calls_are_off_unless_they_are_named() {
        let bundle = load("").unwrap();
        assert_eq!(bundle.call_models, CallModels::default());
        let bundle = load(&format!("[second_opinion]\n{MODEL}")).unwrap();
        assert_eq!(bundle.call_models.second_opinion.unwrap().time_ms, OPINION_MS);
        let per_action = format!("[per_action]\n{MODEL}tools = ['refund']\nrequests = 'No refunds.'\n");
        let bundle = load(&per_action).unwrap();
        assert_eq!(bundle.call_models.per_action.unwrap().tools, ["refund"]);
    }

    #[test]
    fn what_is_missing_or_too_much_is_said() {
        for (main, says) in [
            ("[second_opinion]\nmodel = 'm'\n".to_owned(), "endpoint"),
            ("[second_opinion]\nendpoint = 'models'\nmodel = 'm'\n".to_owned(), "not an address"),
            (format!("[second_opinion]\n{MODEL}time_ms = 60000\n"), "is over 25000"),
            (format!("[second_opinion]\n{MODEL}tools = ['x']\n"), "tools"),
            (format!("[per_action]\n{MODEL}requests = 'x'\n"), "`tools` names"),
            (format!("[per_action]\n{MODEL}tools = ['x']\n"), "`requests` says"),
        ] {
            let mistakes = load(&main).unwrap_err();
            assert!(mistakes.contains(says), "{main}: {mistakes}");
        }
    }
}
