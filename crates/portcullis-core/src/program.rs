//! Guard programs: what they are told, what they may answer, and how they are asked.
//!
//! A program answers *deny*, *hold* or nothing. There is no word for anything else, so that a program can only narrow
//! what the other guards leave. It runs outside of the pure core: a guard asks for its answer as a [fact](crate::fact),
//! and the driver of the run has it computed. Question and answer are recorded. What a program is told follows from the
//! bundle, the run and the action; the question names these, so that an answer is never taken for one about something
//! else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Action;
use crate::bundle::EngineSettings;
use crate::effect::Effect;
use crate::fact::FactRequest;
use crate::id::Digest;
use crate::principal::{Attribute, Principal};
use crate::state::RunState;
use crate::time::Timestamp;

/// The source of facts that answers for all programs of a bundle.
pub const SOURCE: &str = "program";
/// The source of facts that answers for one engine of a bundle.
pub const ENGINE_SOURCE: &str = "engine";
/// Most bytes of what a program is told. An action with more is denied where there are programs.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// Most objections of one program to one action.
pub const OBJECTIONS_MAX: usize = 16;
/// Most reasons of one objection.
pub const REASONS_MAX: usize = 16;
/// Most programs, and executables that are asked beside them, of one bundle.
pub const PROGRAMS_MAX: usize = 256;

/// What a program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// The action is not to happen.
    Deny,
    /// A person decides.
    Hold,
}

/// One objection of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objection {
    /// The program: its file without folder and ending.
    pub program: String,
    /// What it asks for.
    pub says: Says,
    /// Why, in its own words, which may quote arguments.
    pub reasons: Vec<String>,
    /// The resources that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// A program that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The program.
    pub program: String,
    /// Why, with the place in its file.
    pub why: String,
}

/// What all programs of a bundle say of an action. Programs without an objection are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Objections, in the order of the programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<Objection>,
    /// Programs that failed. Each is a denial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

/// What programs are told of an action.
#[derive(Debug, Serialize)]
pub struct Input<'a> {
    /// What is about to happen.
    pub action: Told<'a>,
    /// The run so far.
    pub run: Run<'a>,
    /// On whose behalf.
    pub principal: Party<'a>,
}

/// A principal, as programs are told of it: roles and attributes are there where it has none, too.
#[derive(Debug, Serialize)]
pub struct Party<'a> {
    /// Its name.
    pub id: &'a str,
    /// Its roles.
    pub roles: &'a [String],
    /// Its attributes.
    pub attributes: &'a BTreeMap<String, Attribute>,
}

impl<'a> From<&'a Principal> for Party<'a> {
    fn from(Principal { id, roles, attributes }: &'a Principal) -> Self {
        Self { id, roles, attributes }
    }
}

/// The action, as programs are told of it.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    /// The tool, or nothing for a thinking step.
    pub tool: Option<&'a str>,
    /// The server that offers it, where the surface knows it.
    pub server: Option<&'a str>,
    /// Its type, where the registry has it.
    #[serde(rename = "type")]
    pub type_: Option<&'a str>,
    /// Whether it counts as a side effect.
    pub side_effecting: bool,
    /// How dangerous it is, 0 to 1, where the registry has it.
    pub risk: Option<f64>,
    /// The arguments.
    pub args: &'a Value,
    /// What the agent said it was about to do.
    pub planned: Option<&'a str>,
    /// What it would touch.
    pub effects: Vec<Touched<'a>>,
    /// When, to the minute, in UTC: `2026-11-28T14:36Z`.
    pub at: String,
}

/// An effect, as programs are told of it.
#[derive(Debug, Serialize)]
pub struct Touched<'a> {
    /// What is done.
    pub verb: &'static str,
    /// To what sort of thing.
    pub kind: &'static str,
    /// To which.
    pub name: &'a str,
    /// Properties of the effect and of the resource; those of the resource come first where both have one.
    pub attributes: BTreeMap<&'static str, &'a Attribute>,
}

impl<'a> From<&'a Effect> for Touched<'a> {
    fn from(effect: &'a Effect) -> Self {
        let all = effect.attributes.iter().chain(&effect.resource.attributes);
        Self {
            verb: effect.verb.as_str(),
            kind: effect.resource.kind.as_str(),
            name: &effect.resource.name,
            attributes: all.map(|(name, value)| (*name, value)).collect(),
        }
    }
}

/// The run, as programs are told of it.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    /// Steps so far.
    pub steps: u32,
    /// Side effects so far.
    pub side_effects: u32,
    /// Name of its runtime policy.
    pub policy: &'a str,
    /// The surface that opened it.
    pub surface: &'a str,
    /// Where what it has seen came from: `user`, `tool:mail`, `unknown`.
    pub labels: Vec<String>,
    /// What the user asked since the reply before, where the run remembers it.
    pub request: Option<String>,
}

/// The question whose answer is that of all programs of a bundle on an action.
pub fn request(programs: Digest, action: &Action, run: &RunState, at: Timestamp) -> FactRequest {
    // The run is named by how far it has come: what programs are told of it follows from that.
    let (programs, action) = (short(programs), short(action.digest()));
    let question = format!("{programs} on {action} after {} at {}", run.seq(), minute(at));
    FactRequest { source: SOURCE.to_owned(), question }
}

/// The question whose answer is that of an engine of a bundle on an action. What an engine would say at another time
/// nobody knows, so the question names no time.
pub fn engine_request(engine: &EngineSettings, action: &Action) -> FactRequest {
    let executable = engine.sha256.get(..DIGITS).unwrap_or(&engine.sha256);
    let question = format!("{} {executable} on {}", engine.name, short(action.digest()));
    FactRequest { source: ENGINE_SOURCE.to_owned(), question }
}

/// The name of the engine that a question is put to.
pub fn engine_of(question: &str) -> &str {
    question.split_once(' ').map_or(question, |(name, _)| name)
}

/// Hex digits of a digest in a question.
const DIGITS: usize = 32;

/// Enough of a digest to tell one from another within a run.
fn short(digest: Digest) -> String {
    let digest = digest.to_string();
    digest.get(..DIGITS).unwrap_or(&digest).to_owned()
}

/// The time as programs are told of it. No finer, so that it seldom moves on between question and decision.
pub fn minute(at: Timestamp) -> String {
    let text = at.without_fraction();
    text.rsplit_once(':').map_or_else(|| text.clone(), |(minute, _)| format!("{minute}Z"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::ActionId;

    #[test]
    fn a_question_names_programs_action_run_and_minute() {
        let action = |path: &str| {
            Action::new(ActionId::from_bytes([1; 16]), Some("read".to_owned()), json!({"path": path}), None)
        };
        let (run, at) = (RunState::new(), Timestamp::from_micros(1_764_340_619_000_000));
        let asked = |programs: u8, path: &str, at| {
            request(Digest::from_bytes([programs; 32]), &action(path), &run, at).question
        };
        let one = asked(1, "/a", at);
        assert!(one.ends_with(" after 0 at 2025-11-28T14:36Z"), "{one}");
        assert_eq!(one, asked(1, "/a", Timestamp::from_micros(1_764_340_601_000_000)));
        for other in [
            asked(2, "/a", at),
            asked(1, "/b", at),
            asked(1, "/a", Timestamp::from_micros(1_764_340_661_000_000)),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn an_answer_has_no_word_that_widens() {
        for word in ["allow", "permit", "grant", "warn"] {
            let answer = json!({"objections": [{"program": "x", "says": word, "reasons": []}]});
            assert!(serde_json::from_value::<Answer>(answer).is_err(), "{word}");
        }
        assert_eq!(serde_json::from_value::<Answer>(json!({})).unwrap(), Answer::default());
    }
}
