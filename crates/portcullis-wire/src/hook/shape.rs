//! How an agent says what happens: the names of its fields, its events and its tools, as one table an agent.
//!
//! What tables can say is read here; the rest is in an agent's [`Shape::adapt`]. The gate judges in one vocabulary, that of
//! the tools of Claude Code, so that a bundle is written once: what an agent calls its shell, its editor and their
//! arguments is translated, and translated back where arguments are changed.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{
    Agent, Answer, FOLDER_BYTES_MAX, HookCall, HookError, HookEvent, HookInput, INPUT_BYTES_MAX,
    NAME_BYTES_MAX, Replaces, TEXT_BYTES_MAX, ToolResponse, arguments, claude_code,
};
use crate::fields::{self, FieldError};
use crate::strict;

/// Most folders that an agent works in.
const ROOTS_MAX: usize = 1_024;
/// How many fields are read.
const FIELDS: usize = 14;

/// What an agent calls the fields of an event.
pub(super) struct Names {
    pub(super) session: &'static str,
    pub(super) directory: &'static str,
    /// Folders, of which the first stands for a directory that is not told.
    pub(super) roots: &'static str,
    pub(super) mode: &'static str,
    pub(super) event: &'static str,
    /// Empty: the event's name says it, after `pre_` or `post_`.
    pub(super) tool: &'static str,
    pub(super) arguments: &'static str,
    pub(super) id: &'static str,
    pub(super) response: &'static str,
    pub(super) error: &'static str,
    pub(super) prompt: &'static str,
    pub(super) reply: &'static str,
    pub(super) kept_going: &'static str,
    /// Of which server a tool is.
    pub(super) server: &'static str,
    /// Members that hold the fields which are not beside them. The first one that is there counts.
    pub(super) inner: &'static [&'static str],
}

impl Names {
    /// What Claude Code calls them, and others after it.
    pub(super) const CLAUDE: Self = Self {
        session: "session_id",
        directory: "cwd",
        roots: "workspace_roots",
        mode: "permission_mode",
        event: "hook_event_name",
        tool: "tool_name",
        arguments: "tool_input",
        id: "tool_use_id",
        response: "tool_response",
        error: "error",
        prompt: "prompt",
        reply: "last_assistant_message",
        kept_going: "stop_hook_active",
        server: "mcp_context",
        inner: &[],
    };

    const fn all(&self) -> [&'static str; FIELDS] {
        [
            self.session,
            self.directory,
            self.roots,
            self.mode,
            self.event,
            self.tool,
            self.arguments,
            self.id,
            self.response,
            self.error,
            self.prompt,
            self.reply,
            self.kept_going,
            self.server,
        ]
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    SessionStart,
    SessionEnd,
    Prompt,
    /// The user said something if the event tells it; else the agent goes on with what it has.
    Submitted,
    /// A call is about to be made.
    Before,
    /// A call was made.
    After,
    /// A call was made and failed.
    Failed,
    /// A call was not made.
    NotMade,
    /// The agent wants to stop.
    Stop,
    /// It names a tool, and another event judges the call.
    Aside,
}

/// A tool of an agent's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// What the agent calls it.
    pub(super) theirs: &'static str,
    /// What bundles call it.
    pub(super) ours: &'static str,
    /// Arguments of other names: the agent's, and those of bundles.
    pub(super) arguments: Renamed,
}

/// One tool of an agent's own.
pub(super) const fn known(theirs: &'static str, ours: &'static str, arguments: Renamed) -> Known {
    Known { theirs, ours, arguments }
}

/// Arguments of other names: the agent's, and those of bundles. One that names the folder of the call has to be here,
/// whatever its name ([`arguments`]).
pub(super) type Renamed = &'static [(&'static str, &'static str)];

/// What an agent lets a hook do besides keeping a call from being made, and what it does of its own.
pub(super) struct Powers {
    /// See [`Agent::asks`].
    pub(super) asks: bool,
    /// See [`Agent::runs_contained`].
    pub(super) runs_contained: bool,
    /// See [`Agent::changes_arguments`].
    pub(super) changes_arguments: bool,
    /// Changed arguments are put over those of the call, so that none can be taken away.
    pub(super) merges_arguments: bool,
    /// See [`Agent::withholds_prompts`].
    pub(super) withholds_prompts: bool,
    /// What it puts in the place of results.
    pub(super) replaces: Replaces,
    /// It does so of servers' tools alone.
    pub(super) replaces_servers_only: bool,
    /// It does so of failures, too.
    pub(super) replaces_failures: bool,
    /// It shows the user a text beside any answer.
    pub(super) shows_notes: bool,
    /// See [`Agent::hides_outcomes`].
    pub(super) hides_outcomes: bool,
    /// See [`Agent::tells_denials_as_failures`].
    pub(super) tells_denials_as_failures: bool,
    /// Whatever is said becomes a part of the conversation.
    pub(super) reads_any_output: bool,
    /// See [`Agent::refusal`].
    pub(super) denies_by_code: bool,
    /// It stops whatever a hook says.
    pub(super) stops_anyway: bool,
}

impl Powers {
    /// None of them.
    pub(super) const NONE: Self = Self {
        asks: false,
        runs_contained: false,
        changes_arguments: false,
        merges_arguments: false,
        withholds_prompts: false,
        replaces: Replaces::Nothing,
        replaces_servers_only: false,
        replaces_failures: false,
        shows_notes: false,
        hides_outcomes: false,
        tells_denials_as_failures: false,
        reads_any_output: false,
        denies_by_code: false,
        stops_anyway: false,
    };
}

/// One agent: what it says, and how it is answered.
pub(super) struct Shape {
    pub(super) agent: Agent,
    /// The word on the command line.
    pub(super) id: &'static str,
    /// What people call it.
    pub(super) name: &'static str,
    pub(super) powers: Powers,
    pub(super) names: &'static Names,
    pub(super) events: &'static [(&'static str, Kind)],
    pub(super) tools: &'static [Known],
    /// What the tables cannot say of a call. It gets the value of [`Names::server`].
    pub(super) adapt: fn(&mut HookCall, Option<&RawValue>) -> Result<(), HookError>,
    /// What a tool answered, and whether it failed.
    pub(super) answered: fn(Option<&RawValue>) -> (ToolResponse, bool),
    /// An answer in its words.
    pub(super) fields: fn(&Answer, &HookEvent) -> Map<String, Value>,
}

/// For agents whose calls the tables describe.
pub(super) fn as_it_is(_: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    Ok(())
}

/// For agents that tell failures by an event of their own, or not at all.
pub(super) fn any_response(raw: Option<&RawValue>) -> (ToolResponse, bool) {
    (response(raw), false)
}

/// The text, or the JSON text of what is not a string.
pub(super) fn response(raw: Option<&RawValue>) -> ToolResponse {
    ToolResponse {
        text: said(raw).unwrap_or_default(),
        json: fields::present(raw).is_some_and(|raw| fields::string(raw).is_none()),
    }
}

impl Shape {
    /// Reads one input.
    pub(super) fn parse(&self, input: &[u8]) -> Result<HookInput, HookError> {
        if input.len() > INPUT_BYTES_MAX {
            return Err(HookError::TooLarge);
        }
        let text = std::str::from_utf8(input).map_err(|error| HookError::InvalidUtf8(error.valid_up_to()))?;
        let names = self.names;
        let [
            session,
            cwd,
            roots,
            mode,
            name,
            tool,
            arguments,
            id,
            response,
            error,
            prompt,
            reply,
            active,
            server,
        ] = self.read(text)?;
        let name = required(names.event, name)?;
        let directory = self.directory(cwd, roots)?;
        let call = || self.call(&name, [tool, arguments, id, server], directory.as_deref());
        let kind = self.events.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let event = match kind {
            Some(Kind::SessionStart) => HookEvent::SessionStart,
            Some(Kind::SessionEnd) => HookEvent::SessionEnd,
            Some(Kind::Prompt) => {
                let said = spoken(prompt);
                HookEvent::Prompt(
                    said.ok_or(HookError::Missing { field: names.prompt, expected: "what the user said" })?,
                )
            }
            Some(Kind::Submitted) => spoken(prompt).map_or(HookEvent::Other, HookEvent::Prompt),
            Some(Kind::Before) => HookEvent::PreToolUse(call()?),
            Some(Kind::After) => match (self.answered)(response) {
                (response, false) => HookEvent::PostToolUse(call()?, response),
                (response, true) => HookEvent::PostToolUseFailure(call()?, response.text),
            },
            Some(Kind::Failed) => HookEvent::PostToolUseFailure(call()?, said(error).unwrap_or_default()),
            Some(Kind::NotMade) => HookEvent::PermissionDenied(call()?),
            Some(Kind::Stop) => HookEvent::Stop(said(reply).filter(|reply| !reply.is_empty())),
            Some(Kind::Aside) => HookEvent::Other,
            // An event of another name, or of another agent, may stand before a call: leaving it without an opinion
            // would let the call pass.
            None if fields::present(tool).is_some() || fields::present(arguments).is_some() => {
                return Err(HookError::UnknownCall { name, judged: self.judged() });
            }
            None => HookEvent::Other,
        };
        Ok(HookInput {
            agent: self.agent,
            session: required(names.session, session)?,
            directory,
            permission_mode: optional(names.mode, mode, NAME_BYTES_MAX)?,
            kept_going: self.powers.stops_anyway
                || fields::present(active).is_some_and(|raw| !matches!(raw.get(), "false" | "0")),
            name,
            event,
        })
    }

    /// The folder in which the agent works.
    fn directory(
        &self,
        cwd: Option<&RawValue>,
        roots: Option<&RawValue>,
    ) -> Result<Option<String>, HookError> {
        let names = self.names;
        let directory = optional(names.directory, cwd, FOLDER_BYTES_MAX)?.filter(|folder| !folder.is_empty());
        let directory = match directory {
            Some(directory) => Some(directory),
            None => first(names.roots, roots)?,
        };
        if directory.as_ref().is_some_and(|folder| !folder.starts_with('/')) {
            return Err(HookError::Missing { field: names.directory, expected: "an absolute path" });
        }
        Ok(directory)
    }

    /// The event before a call.
    fn judged(&self) -> &'static str {
        self.events.iter().find(|(_, kind)| *kind == Kind::Before).map_or("", |(name, _)| name)
    }

    /// The fields of an event, whether they stand in it or in one of its objects.
    fn read<'a>(&self, text: &'a str) -> Result<[Option<&'a RawValue>; FIELDS], HookError> {
        let mut found = fields::read(text, &self.names.all())?;
        for name in self.names.inner {
            let [inner] = fields::read(text, &[*name])?;
            if let Some(inner) = fields::present(inner) {
                let inside = fields::read(inner.get(), &self.names.all())?;
                found.iter_mut().zip(inside).for_each(|(found, inside)| *found = found.or(inside));
                break;
            }
        }
        Ok(found)
    }

    fn call(
        &self,
        event: &str,
        [tool, arguments, id, server]: [Option<&RawValue>; 4],
        directory: Option<&str>,
    ) -> Result<HookCall, HookError> {
        let names = self.names;
        let id = optional(names.id, id, NAME_BYTES_MAX)?;
        let tool = match names.tool {
            "" => event.split_once('_').map(|(_, tool)| tool.to_owned()),
            field => optional(field, tool, NAME_BYTES_MAX)?,
        };
        let tool = tool.filter(|tool| !tool.is_empty());
        let tool = tool.ok_or(HookError::Missing { field: names.tool, expected: "the name of a tool" })?;
        let arguments = match fields::present(arguments) {
            None => Value::Object(Map::new()),
            Some(raw) if raw.get().starts_with('{') => strict::parse_str(raw.get(), INPUT_BYTES_MAX)
                .map_err(|why| {
                    let field = names.arguments;
                    HookError::Arguments { field, why }
                })?,
            Some(_) => return Err(HookError::Missing { field: names.arguments, expected: "an object" }),
        };
        let mut call = HookCall { tool, arguments, id, theirs: None };
        self.translate(&mut call, directory)?;
        lists_here(&mut call);
        (self.adapt)(&mut call, server)?;
        Ok(call)
    }

    /// Puts a tool of the agent's own and its arguments into the words of bundles.
    fn translate(&self, call: &mut HookCall, directory: Option<&str>) -> Result<(), HookError> {
        let Some(known) = self.tools.iter().find(|known| known.theirs == call.tool) else {
            self.not_foreign(call)?;
            // What is left of those that bundles describe is called by an agent without a table.
            let ours = call.tool.clone();
            return if claude_code::TOOLS.contains(&ours.as_str()) {
                arguments::keep_known(call, &ours, &[], directory)
            } else {
                Ok(())
            };
        };
        arguments::keep_known(call, known.ours, known.arguments, directory)?;
        let theirs = std::mem::replace(&mut call.tool, known.ours.to_owned());
        if let Some(arguments) = call.arguments.as_object_mut() {
            rename(arguments, known.arguments.iter().map(|(theirs, ours)| (*theirs, *ours)))?;
        }
        call.theirs = Some(Theirs { tool: theirs, renamed: known.arguments });
        Ok(())
    }

    /// A tool that only bundles call so: taking it for theirs would judge arguments that nobody has described.
    fn not_foreign(&self, call: &HookCall) -> Result<(), HookError> {
        // An agent without a table calls its tools as bundles do.
        let ours = !self.tools.is_empty() && claude_code::TOOLS.contains(&call.tool.as_str());
        if ours { Err(HookError::ForeignTool(call.tool.clone())) } else { Ok(()) }
    }
}

/// What the agent calls a tool and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theirs {
    /// The tool.
    pub tool: String,
    pub(super) renamed: Renamed,
}

impl Theirs {
    /// Arguments in the agent's words. `None` if two would have one name.
    pub(super) fn words(&self, arguments: &Value) -> Option<Value> {
        let mut arguments = arguments.as_object()?.clone();
        rename(&mut arguments, self.renamed.iter().map(|(theirs, ours)| (*ours, *theirs))).ok()?;
        Some(Value::Object(arguments))
    }
}

/// Gives members other names.
fn rename(
    members: &mut Map<String, Value>,
    names: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<(), HookError> {
    let moved: Vec<(&str, Value)> =
        names.filter_map(|(from, to)| members.remove(from).map(|value| (to, value))).collect();
    for (to, value) in moved {
        if members.insert(to.to_owned(), value).is_some() {
            return Err(HookError::TwoNames(to));
        }
    }
    Ok(())
}

/// The first of several folders, if they are told.
fn first(field: &'static str, raw: Option<&RawValue>) -> Result<Option<String>, HookError> {
    let Some(raw) = fields::present(raw) else { return Ok(None) };
    let folders = fields::read_array(raw.get(), field, ROOTS_MAX)?;
    optional(field, folders.first().copied(), FOLDER_BYTES_MAX)
}

/// A text that has to be there.
fn required(field: &'static str, raw: Option<&RawValue>) -> Result<String, HookError> {
    let text = optional(field, raw, NAME_BYTES_MAX)?.filter(|text| !text.is_empty());
    text.ok_or(HookError::Missing { field, expected: "text" })
}

/// A text that may be left out.
pub(super) fn optional(
    field: &'static str,
    raw: Option<&RawValue>,
    limit: usize,
) -> Result<Option<String>, HookError> {
    let Some(raw) = fields::present(raw) else { return Ok(None) };
    let text = fields::string(raw).ok_or(HookError::Missing { field, expected: "text" })?;
    if text.len() > limit {
        return Err(HookError::TooLong { field, bytes: text.len(), limit });
    }
    Ok(Some(text.into_owned()))
}

/// What someone said: the text, or the JSON text of what is not a string. Half of a surrogate pair, which cannot be
/// decoded, leaves the text as it was sent.
pub(super) fn said(raw: Option<&RawValue>) -> Option<String> {
    let raw = fields::present(raw)?;
    let mut text = fields::string(raw).map_or_else(|| raw.get().to_owned(), std::borrow::Cow::into_owned);
    if text.len() > TEXT_BYTES_MAX {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str(&format!("\n[cut by the gate: {bytes} bytes in all]"));
    }
    Some(text)
}

/// What the user said, which may be sent in parts: `[{"type": "text", "text": …}, …]`. Parts that are no text, such as
/// images, leave it as it was sent.
fn spoken(raw: Option<&RawValue>) -> Option<String> {
    let part = |part: &Value| {
        let text = part.get("text").filter(|_| part["type"] == "text");
        text.and_then(Value::as_str).map(str::to_owned)
    };
    let parts = fields::present(raw).filter(|raw| raw.get().len() <= TEXT_BYTES_MAX);
    let parts = parts.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
    let texts = parts.and_then(|parts| parts.iter().map(part).collect::<Option<Vec<_>>>());
    texts.map(|texts| texts.join("\n")).or_else(|| said(raw))
}

/// A listing of which no folder is named is one of the folder in which the agent works.
fn lists_here(call: &mut HookCall) {
    if let ("LS", Some(arguments)) = (call.tool.as_str(), call.arguments.as_object_mut()) {
        arguments.entry("path").or_insert_with(|| ".".into());
    }
}

/// Fields of an object within an event.
pub(super) fn within<'a, const N: usize>(
    raw: Option<&'a RawValue>,
    known: &[&'static str; N],
) -> Result<[Option<&'a RawValue>; N], FieldError> {
    fields::present(raw).map_or(Ok([None; N]), |raw| fields::read(raw.get(), known))
}
