//! Hooks of coding agents: what Claude Code tells a hook on standard input, and what a hook may answer.
//!
//! One process is started for each event and gets one JSON object. [`parse`] reads it: the arguments of a tool
//! strictly, because they are judged; what a tool answered as it is, because it has already happened. Fields that we
//! do not know are left alone, events that we do not know are [`HookEvent::Other`], unless they are about a tool
//! call.
//!
//! ```text
//! {"session_id":"…","cwd":"/home/u/p","hook_event_name":"PreToolUse","tool_name":"Bash",
//!  "tool_input":{"command":"ls"},"tool_use_id":"toolu_…","permission_mode":"default","transcript_path":"…"}
//! ```
//!
//! The answer is one JSON object on standard output and exit code 0 ([`decision`], [`prompt_blocked`],
//! [`ResultAnswer`], [`NO_OPINION`]). Exit code 2 blocks what the event is about, with the reason on standard error.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::fields::{self, FieldError};
use crate::strict::{self, StrictError};

/// Largest input of a hook, in bytes.
pub const INPUT_BYTES_MAX: usize = 16 << 20;
/// Longest text of a tool's answer, a prompt or a reply that is kept, in bytes. What is longer is cut and says so.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Longest name of a session, call, event, mode or tool, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Longest folder, in bytes.
pub const FOLDER_BYTES_MAX: usize = 4096;

/// The answer that leaves everything to the client.
pub const NO_OPINION: &str = "{}";

/// One event of an agent session.
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    /// The client's session.
    pub session: String,
    /// The agent's working directory, absolute.
    pub directory: Option<String>,
    /// How the client asks its user: `default`, `plan`, `acceptEdits`, `auto`, `dontAsk`, `bypassPermissions`.
    pub permission_mode: Option<String>,
    /// The event's name as sent.
    pub name: String,
    /// The agent goes on because it was kept from stopping, and wants to stop again.
    pub kept_going: bool,
    /// What happened.
    pub event: HookEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    /// A session began, or continues.
    SessionStart,
    /// The user said something.
    Prompt(String),
    /// The agent wants to call a tool.
    PreToolUse(HookCall),
    /// A tool answered.
    PostToolUse(HookCall, ToolResponse),
    /// A tool failed, with the client's words for it.
    PostToolUseFailure(HookCall, String),
    /// The client did not make the call: its user or its own rules said no.
    PermissionDenied(HookCall),
    /// The agent has finished its turn, with its reply if the client reports it.
    Stop(Option<String>),
    /// The session ended.
    SessionEnd,
    /// Something else.
    Other,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// The tool: a built-in one of the client, or `mcp__SERVER__TOOL`.
    pub tool: String,
    /// The arguments: an object, read strictly.
    pub arguments: Value,
    /// The client's id of the call; clients before 2.0.43 send none.
    pub id: Option<String>,
}

impl HookCall {
    /// Whether the tool is one of an MCP server. The client checks no schema of what is to be shown instead of its
    /// results.
    #[must_use]
    pub fn is_mcp(&self) -> bool {
        self.tool.starts_with("mcp__")
    }
}

/// What a tool answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResponse {
    /// The words, or the JSON text of what is not a string.
    pub text: String,
    /// Whether the text is JSON, as the client sent it.
    pub json: bool,
}

impl ToolResponse {
    /// What the client can show in its place so that the agent reads `text` instead. `None` if that would be a value
    /// of another shape, which the client ignores.
    #[must_use]
    pub fn replaced_by(&self, text: &str) -> Option<Value> {
        if !self.json {
            return Some(text.into());
        }
        let before = serde_json::from_str(&self.text).ok()?;
        let after = serde_json::from_str(text).ok()?;
        same_shape(&before, &after).then_some(after)
    }
}

/// Whether two values differ at most in what their strings say. Both were parsed, which bounds their depth.
fn same_shape(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_shape(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same_shape(one, other)))
        }
        (one, other) => one == other,
    }
}

/// Why an input cannot be read. What it is about must not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// Longer than [`INPUT_BYTES_MAX`].
    #[error("the hook input exceeds the limit of {INPUT_BYTES_MAX} bytes")]
    TooLarge,
    /// Not UTF-8.
    #[error("the hook input is not UTF-8 from byte {0}")]
    InvalidUtf8(usize),
    /// No JSON object, or one that says a field twice.
    #[error("the hook input cannot be read: {0}")]
    Field(#[from] FieldError),
    /// A field that has to be there is not, or is something else.
    #[error("the hook input needs `{field}`: {expected}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A field is longer than its limit.
    #[error("`{field}` has {bytes} bytes, more than the limit of {limit}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An unknown event about a tool call.
    #[error("unknown tool event `{0}`; `PreToolUse` is the one that is judged")]
    UnknownCall(String),
    /// The arguments are ambiguous.
    #[error("`tool_input` cannot be read: {0} of it")]
    Arguments(#[from] StrictError),
}

const FIELDS: [&str; 12] = [
    "session_id",
    "cwd",
    "permission_mode",
    "hook_event_name",
    "tool_name",
    "tool_input",
    "tool_use_id",
    "tool_response",
    "error",
    "prompt",
    "last_assistant_message",
    "stop_hook_active",
];

/// Reads one input.
///
/// # Errors
/// [`HookError`] if it cannot be read, or two readers could read it differently.
pub fn parse(input: &[u8]) -> Result<HookInput, HookError> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(HookError::TooLarge);
    }
    let text = std::str::from_utf8(input).map_err(|error| HookError::InvalidUtf8(error.valid_up_to()))?;
    let [session, cwd, mode, name, tool, arguments, id, response, error, prompt, reply, active] =
        fields::read(text, &FIELDS)?;
    let name = required("hook_event_name", name)?;
    let call = || {
        let id = optional("tool_use_id", id, NAME_BYTES_MAX)?;
        let tool = optional("tool_name", tool, NAME_BYTES_MAX)?;
        let tool = tool.filter(|tool| !tool.is_empty());
        let tool = tool.ok_or(HookError::Missing { field: "tool_name", expected: "the name of a tool" })?;
        let arguments = match fields::present(arguments) {
            None => Value::Object(Map::new()),
            Some(raw) if raw.get().starts_with('{') => strict::parse_str(raw.get(), INPUT_BYTES_MAX)?,
            Some(_) => return Err(HookError::Missing { field: "tool_input", expected: "an object" }),
        };
        Ok(HookCall { tool, arguments, id })
    };
    let event = match name.as_str() {
        "SessionStart" => HookEvent::SessionStart,
        "SessionEnd" => HookEvent::SessionEnd,
        "UserPromptSubmit" => HookEvent::Prompt(
            said(prompt).ok_or(HookError::Missing { field: "prompt", expected: "what the user said" })?,
        ),
        "PreToolUse" => HookEvent::PreToolUse(call()?),
        "PostToolUse" => HookEvent::PostToolUse(
            call()?,
            ToolResponse {
                text: said(response).unwrap_or_default(),
                json: fields::present(response).is_some_and(|raw| fields::string(raw).is_none()),
            },
        ),
        "PostToolUseFailure" => HookEvent::PostToolUseFailure(call()?, said(error).unwrap_or_default()),
        "PermissionDenied" => HookEvent::PermissionDenied(call()?),
        "Stop" => HookEvent::Stop(said(reply).filter(|reply| !reply.is_empty())),
        // Its prompt asks the user, and the call is judged by its own event.
        "PermissionRequest" => HookEvent::Other,
        // An event of another name, or of another client, may stand before a call: leaving it without an opinion
        // would let the call pass.
        _ if fields::present(tool).is_some() || fields::present(arguments).is_some() => {
            return Err(HookError::UnknownCall(name));
        }
        _ => HookEvent::Other,
    };
    let directory = optional("cwd", cwd, FOLDER_BYTES_MAX)?.filter(|folder| !folder.is_empty());
    if directory.as_ref().is_some_and(|folder| !folder.starts_with('/')) {
        return Err(HookError::Missing { field: "cwd", expected: "an absolute path" });
    }
    Ok(HookInput {
        session: required("session_id", session)?,
        directory,
        permission_mode: optional("permission_mode", mode, NAME_BYTES_MAX)?,
        name,
        kept_going: fields::present(active).is_some_and(|raw| raw.get() != "false"),
        event,
    })
}

/// A text that has to be there.
fn required(field: &'static str, raw: Option<&RawValue>) -> Result<String, HookError> {
    let text = optional(field, raw, NAME_BYTES_MAX)?.filter(|text| !text.is_empty());
    text.ok_or(HookError::Missing { field, expected: "text" })
}

/// A text that may be left out.
fn optional(field: &'static str, raw: Option<&RawValue>, limit: usize) -> Result<Option<String>, HookError> {
    let Some(raw) = fields::present(raw) else { return Ok(None) };
    let text = fields::string(raw).ok_or(HookError::Missing { field, expected: "text" })?;
    if text.len() > limit {
        return Err(HookError::TooLong { field, bytes: text.len(), limit });
    }
    Ok(Some(text.into_owned()))
}

/// What someone said: the text, or the JSON text of what is not a string. Half of a surrogate pair, which cannot be
/// decoded, leaves the text as it was sent.
fn said(raw: Option<&RawValue>) -> Option<String> {
    let raw = fields::present(raw)?;
    let mut text = fields::string(raw).map_or_else(|| raw.get().to_owned(), std::borrow::Cow::into_owned);
    if text.len() > TEXT_BYTES_MAX {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str(&format!("\n[cut by the gate: {bytes} bytes in all]"));
    }
    Some(text)
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It is made without asking anyone, with these arguments where they are not those of the agent.
    Allow(Option<Value>),
    /// The call is not made, and the agent is told why.
    Deny(String),
    /// The client asks its user, who is told why, and makes it with these arguments where they are not those of the agent.
    Ask(String, Option<Value>),
}

/// The answer to `PreToolUse`, one line without its end.
#[must_use]
pub fn decision(decision: &Decision) -> String {
    let mut output = json!({"hookEventName": "PreToolUse"});
    let fields: Vec<(&str, Value)> = match decision {
        Decision::Allow(None) => vec![("permissionDecision", "allow".into())],
        Decision::Allow(Some(arguments)) => {
            vec![("permissionDecision", "allow".into()), ("updatedInput", arguments.clone())]
        }
        Decision::Deny(why) => {
            vec![("permissionDecision", "deny".into()), ("permissionDecisionReason", why.as_str().into())]
        }
        Decision::Ask(why, arguments) => {
            let updated = arguments.iter().map(|arguments| ("updatedInput", arguments.clone()));
            let asks =
                [("permissionDecision", "ask".into()), ("permissionDecisionReason", why.as_str().into())];
            asks.into_iter().chain(updated).collect()
        }
    };
    if let Some(output) = output.as_object_mut() {
        output.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    json!({ "hookSpecificOutput": output }).to_string()
}

/// The answer to `UserPromptSubmit` that keeps the prompt from the agent; the user is told why.
#[must_use]
pub fn prompt_blocked(why: &str) -> String {
    json!({"decision": "block", "reason": why}).to_string()
}

/// An answer that changes nothing, and that the user is shown a text beside.
#[must_use]
pub fn note_for_user(text: &str) -> String {
    json!({"systemMessage": text}).to_string()
}

/// The answer to `PostToolUse` or `PostToolUseFailure`: what the agent is told of a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultAnswer {
    /// Shown instead of the result. Clients show it for tools of MCP servers; for others since 2.1.121, where it has
    /// the shape of the tool's result; and never for a failure.
    pub instead: Option<Value>,
    /// Shown beside the result.
    pub reason: Option<String>,
    /// Shown beside the result, and the only text shown beside a failure.
    pub context: Option<String>,
}

impl ResultAnswer {
    /// The answer, one line without its end. `failed` selects which of the two events it is for.
    #[must_use]
    pub fn line(self, call: &HookCall, failed: bool) -> String {
        let Self { instead, reason, context } = self;
        let name = if failed { "PostToolUseFailure" } else { "PostToolUse" };
        let mut output = Map::from_iter([("hookEventName".to_owned(), name.into())]);
        let mut answer = Map::new();
        if let Some(context) = context {
            output.insert("additionalContext".into(), context.into());
        }
        if let Some(reason) = reason.filter(|_| !failed) {
            answer.insert("decision".into(), "block".into());
            answer.insert("reason".into(), reason.into());
        }
        if let Some(instead) = instead.filter(|_| !failed) {
            if call.is_mcp() {
                // What clients before 2.1.121 call it.
                output.insert("updatedMCPToolOutput".into(), instead.clone());
            }
            output.insert("updatedToolOutput".into(), instead);
        }
        answer.insert("hookSpecificOutput".into(), output.into());
        Value::Object(answer).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &Value) -> Result<HookInput, HookError> {
        parse(value.to_string().as_bytes())
    }

    fn input(name: &str, more: &Value) -> Value {
        let mut input = json!({
            "session_id": "s", "transcript_path": "/t", "cwd": "/p", "permission_mode": "default",
            "hook_event_name": name, "novel": {"a": [1]},
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    }

    #[test]
    fn every_event_is_read() {
        let call =
            HookCall { tool: "Bash".into(), arguments: json!({"command": "ls"}), id: Some("c".into()) };
        let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "c"});
        let with = |more: Value| {
            let mut tool = tool.clone();
            tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            tool
        };
        for (name, more, event) in [
            ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
            ("SessionEnd", json!({"reason": "exit"}), HookEvent::SessionEnd),
            ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
            ("PreToolUse", tool.clone(), HookEvent::PreToolUse(call.clone())),
            (
                "PostToolUse",
                with(json!({"tool_response": {"stdout": "x"}})),
                HookEvent::PostToolUse(
                    call.clone(),
                    ToolResponse { text: r#"{"stdout":"x"}"#.into(), json: true },
                ),
            ),
            (
                "PostToolUse",
                with(json!({"tool_response": "x\ny"})),
                HookEvent::PostToolUse(call.clone(), ToolResponse { text: "x\ny".into(), json: false }),
            ),
            (
                "PostToolUseFailure",
                with(json!({"error": "no", "is_interrupt": false})),
                HookEvent::PostToolUseFailure(call.clone(), "no".into()),
            ),
            ("PermissionDenied", tool.clone(), HookEvent::PermissionDenied(call.clone())),
            ("Stop", json!({"stop_hook_active": false}), HookEvent::Stop(None)),
            ("Stop", json!({"last_assistant_message": "done"}), HookEvent::Stop(Some("done".into()))),
            ("SubagentStop", json!({}), HookEvent::Other),
            ("Notification", json!({"message": "m"}), HookEvent::Other),
            ("PreCompact", json!({"trigger": "auto"}), HookEvent::Other),
            ("NotYetInvented", json!({}), HookEvent::Other),
            ("PermissionRequest", tool.clone(), HookEvent::Other),
        ] {
            let read = read(&input(name, &more)).unwrap();
            assert_eq!((read.name.as_str(), read.event), (name, event));
            assert_eq!((read.session.as_str(), read.directory.as_deref()), ("s", Some("/p")));
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("").starts_with("the hook input cannot be read"));
        assert!(refused("[]").starts_with("the hook input cannot be read"));
        assert!(refused(r#"{"session_id":"s"}"#).contains("`hook_event_name`"));
        assert!(refused(r#"{"hook_event_name":"Stop"}"#).contains("`session_id`"));
        let twice = r#"{"session_id":"s","hook_event_name":"Stop","hook_event_name":"PreToolUse"}"#;
        assert!(refused(twice).contains("occurs twice"));
        let case = r#"{"session_id":"s","hook_event_name":"Stop","Hook_Event_Name":"PreToolUse"}"#;
        assert!(refused(case).contains("only in case"));
        let arguments = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","command":"rm"}}"#;
        assert!(refused(arguments).contains("duplicate key `command`"), "{}", refused(arguments));
        let error = |name, more| read(&input(name, &more)).unwrap_err().to_string();
        assert!(error("PreToolUse", json!({"tool_input": {}})).contains("`tool_name`"));
        assert!(error("PreToolUse", json!({"tool_name": "T", "tool_input": "x"})).contains("`tool_input`"));
        assert!(error("Stop", json!({"cwd": "relative"})).contains("`cwd`"));
        assert!(error("UserPromptSubmit", json!({})).contains("`prompt`"));
        assert!(error("Stop", json!({"session_id": "s".repeat(300)})).contains("more than the limit"));
        assert_eq!(parse(&vec![b' '; INPUT_BYTES_MAX + 1]), Err(HookError::TooLarge));
        assert_eq!(parse(b"{\xff"), Err(HookError::InvalidUtf8(1)));
    }

    #[test]
    fn an_unknown_event_about_a_call_is_refused() {
        for name in ["preToolUse", "pre_tool_use", "BeforeTool", "NotYetInvented"] {
            for more in [json!({"tool_name": "Bash"}), json!({"tool_input": {"command": "ls"}})] {
                let error = read(&input(name, &more)).unwrap_err();
                assert_eq!(error, HookError::UnknownCall(name.to_owned()), "{more}");
            }
        }
    }

    #[test]
    fn what_has_happened_is_kept_whatever_it_looks_like() {
        let text = r#"{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"T","tool_input":{},"tool_response":"\ud800"}"#;
        let HookEvent::PostToolUse(_, content) = parse(text.as_bytes()).unwrap().event else { panic!() };
        assert_eq!(content, ToolResponse { text: r#""\ud800""#.into(), json: true });
        assert_eq!(content.replaced_by(r#""\ud800 cut""#), None);
        let long = input("Stop", &json!({"last_assistant_message": "ä".repeat(TEXT_BYTES_MAX / 2 + 1)}));
        let HookEvent::Stop(Some(reply)) = read(&long).unwrap().event else { panic!() };
        assert!(reply.ends_with("bytes in all]") && reply.len() < TEXT_BYTES_MAX + 64);
    }

    #[test]
    fn answers_have_the_documented_form() {
        let parsed = |answer: &Decision| serde_json::from_str::<Value>(&decision(answer)).unwrap();
        assert_eq!(
            parsed(&Decision::Deny("no".into())),
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}})
        );
        assert_eq!(
            parsed(&Decision::Allow(Some(json!({"a": 1})))),
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}})
        );
        assert_eq!(
            parsed(&Decision::Ask("?".into(), None))["hookSpecificOutput"]["permissionDecision"],
            "ask"
        );
        assert_eq!(parsed(&Decision::Allow(None))["hookSpecificOutput"]["permissionDecision"], "allow");
    }

    #[test]
    fn a_result_is_replaced_by_one_of_its_shape() {
        let response = |text: &str, json| ToolResponse { text: text.into(), json };
        assert_eq!(response("a b", false).replaced_by("a [cut]"), Some("a [cut]".into()));
        let bash = response(r#"{"stdout":"a b","isImage":false,"more":[1.0,null,"c"]}"#, true);
        let cut = r#"{"stdout":"a [cut]","isImage":false,"more":[1.0,null,"d"]}"#;
        assert_eq!(bash.replaced_by(cut), Some(serde_json::from_str(cut).unwrap()));
        for other in [
            r#"{"stdout":"a [cut]","isImage":true,"more":[1.0,null,"d"]}"#,
            r#"{"stdout":["a"],"isImage":false,"more":[1.0,null,"d"]}"#,
            r#"{"stdout":"a","isImage":false,"more":[1.0,null]}"#,
            r#"{"stdout":"a","isImage":false}"#,
            r#"{"stdout":"a","isImage":false,"less":[1.0,null,"c"]}"#,
            r#"{"stdout":"a [cut "quoted"]","isImage":false}"#,
            "a",
            "",
        ] {
            assert_eq!(bash.replaced_by(other), None, "{other}");
        }
        assert_eq!(response("{\n[cut by the gate]", true).replaced_by("{}"), None);
    }

    #[test]
    fn answers_about_results_have_the_documented_form() {
        let line = |tool: &str, answer: ResultAnswer, failed| {
            let call = HookCall { tool: tool.into(), arguments: json!({}), id: None };
            serde_json::from_str::<Value>(&answer.line(&call, failed)).unwrap()
        };
        let whole = ResultAnswer {
            instead: Some("cut".into()),
            reason: Some("why".into()),
            context: Some("where".into()),
        };
        assert_eq!(
            line("Read", whole.clone(), false),
            json!({"decision": "block", "reason": "why", "hookSpecificOutput": {
                "hookEventName": "PostToolUse", "additionalContext": "where", "updatedToolOutput": "cut"}})
        );
        let output = &line("mcp__a__b", whole.clone(), false)["hookSpecificOutput"];
        assert_eq!(
            (&output["updatedToolOutput"], &output["updatedMCPToolOutput"]),
            (&json!("cut"), &json!("cut"))
        );
        assert_eq!(
            line("mcp__a__b", whole, true),
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "where"}})
        );
        assert_eq!(prompt_blocked("no \"way\""), r#"{"decision":"block","reason":"no \"way\""}"#);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
