//! The Tool Registry: tools that changed, that wait to be classified, that are configured; the form of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::diff::of_texts;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::policies::encoded;
use portcullis_console::tools::{self as pages, Changed, Editing, Fields, Registry, Row, Waiting};
use portcullis_core::bundle::Bundle;
use portcullis_core::infer::{Hints, Inferred, infer};
use portcullis_core::tool::{ArgsSchema, Tool};
use portcullis_session::listings::{ChangedTool, KnownTool};
use portcullis_session::surface::ToolWords;
use serde::Deserialize;
use serde_json::Value;

use super::desk::{self, Changes, Depth, Standing, check, toml_text};
use super::policies::{Pressed, Shown, draft, file_of, free, press_save, trouble, types};
use super::visitor::{Form, Visitor};
use super::{Seen, page};
use crate::daemon::tools::accepted;

/// Tools that wait to be classified and are shown.
const WAITING_MAX: usize = 100;
/// Largest schema in the form, in bytes.
const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// The order of the values of a tool, for one that is added.
const ORDER: [&str; 8] =
    ["id", "name", "type", "description", "side_effecting", "risk", "trusted", "enabled"];

fn schema_text(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_default()
}

fn arguments(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

pub(super) async fn list(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(wanted): Query<Shown>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    shown(&seen, &visitor, wanted.told("Tool")).await
}

async fn shown(seen: &Seen, visitor: &Visitor, told: Option<Told>) -> Response {
    let standing = match desk::standing(seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(seen, visitor, &why).await,
    };
    let listings = Arc::clone(&seen.shared.listings);
    let read = tokio::task::spawn_blocking(move || Ok((listings.changes()?, listings.known()?))).await;
    let read = match read {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => {
            let error: portcullis_session::listings::ListingsError = error;
            Err(error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    let (changes, known, told) = match read {
        Ok((changes, known)) => (changes, known, told),
        Err(why) => {
            let told = Told::bad("What servers list cannot be read.", why);
            (
                portcullis_session::listings::ChangedTools { changed: Vec::new(), short: String::new() },
                Vec::new(),
                Some(told),
            )
        }
    };
    let registry = &standing.bundle.registry;
    let is_changed =
        |tool: &Tool| changes.changed.iter().any(|change| change.tool == tool.id || change.tool == tool.name);
    let status = match &told {
        Some(told) if told.standing == portcullis_console::marks::Standing::Bad => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    let page = Registry {
        changed: changes.changed.iter().map(changed).collect(),
        all: changes.short.clone(),
        waiting: known
            .iter()
            .filter(|tool| is_unclassified(&standing.bundle, tool))
            .take(WAITING_MAX)
            .filter_map(waiting)
            .collect(),
        rows: registry.iter().map(|tool| row(tool, is_changed(tool))).collect(),
        unknown: standing.bundle.unknown_tools.as_str().to_owned(),
        accepts: visitor.session.role >= Role::Approver,
        draft: draft(visitor, &standing, told),
    };
    page::framed_as(status, seen, visitor, Some(Place::Tools), Place::Tools.name(), pages::registry(&page))
        .await
}

/// Whether a tool that a server lists is in no registry. Among tools stand a server's instructions, which are none.
pub(super) fn is_unclassified(bundle: &Bundle, tool: &KnownTool) -> bool {
    bundle.registry.get(&tool.tool).is_none() && tool.tool != portcullis_wire::mcp::list::INSTRUCTIONS
}

fn row(tool: &Tool, changed: bool) -> Row {
    Row {
        id: tool.id.clone(),
        name: tool.name.clone(),
        kind: tool.tool_type.clone(),
        description: tool.description.clone(),
        side_effecting: tool.side_effecting,
        risk: tool.risk,
        args: arguments(tool.args.as_value()),
        enabled: tool.enabled,
        changed,
        inferred: tool.inferred,
    }
}

fn changed(change: &ChangedTool) -> Changed {
    let (old, new) = (&change.accepted, &change.offered);
    let mut diffs = Vec::new();
    if change.unreadable.is_none() {
        let mut add = |name: &str, old: &str, new: &str| {
            if old != new {
                diffs.push(of_texts(name, Some(old), Some(new)));
            }
        };
        add("description", &old.description, &new.description);
        add("arguments", &schema_text(&old.input_schema), &schema_text(&new.input_schema));
        let rest = |words: &ToolWords| words.rest.as_ref().map(schema_text).unwrap_or_default();
        add("all else", &rest(old), &rest(new));
    }
    Changed {
        server: change.server.clone(),
        tool: change.tool.clone(),
        digest: change.digest.to_string(),
        short: change.short.clone(),
        means: if change.unreadable.is_none() { means(&change.tool, old, new) } else { Vec::new() },
        unreadable: change.unreadable.clone(),
        diffs,
    }
}

/// What a change means for what calls would touch, as far as names, descriptions and schemas say.
fn means(tool: &str, old: &ToolWords, new: &ToolWords) -> Vec<String> {
    let read = |words: &ToolWords| infer(tool, &words.description, &words.input_schema, &Hints::default());
    let (before, after): (Inferred, Inferred) = (read(old), read(new));
    let mut means = Vec::new();
    let had: BTreeMap<&str, &str> =
        before.effects.iter().map(|effect| (effect.argument.as_str(), effect.effect.as_str())).collect();
    let known = arguments(&old.input_schema);
    for argument in arguments(&new.input_schema).iter().filter(|argument| !known.contains(argument)) {
        let effect = after.effects.iter().find(|effect| effect.argument == *argument);
        means.push(match effect {
            Some(effect) => format!("New argument `{argument}`, which is read as {}: every policy that speaks of that will see it.", effect.effect),
            None => format!("New argument `{argument}`."),
        });
    }
    for effect in after.effects.iter().filter(|effect| known.contains(&effect.argument)) {
        match had.get(effect.argument.as_str()) {
            Some(before) if **before == *effect.effect => {}
            _ => means.push(format!("The argument `{}` is now read as {}.", effect.argument, effect.effect)),
        }
    }
    if before.tool_type != after.tool_type {
        means.push(format!(
            "By its words it was {} and is {}. What the registry says of it stays.",
            before.tool_type, after.tool_type
        ));
    }
    means
}

fn waiting(tool: &KnownTool) -> Option<Waiting> {
    let words = tool.accepted.as_ref()?;
    let drafted = infer(&tool.tool, &words.description, &words.input_schema, &Hints::default());
    let side = if drafted.side_effecting { "side effects" } else { "no side effects" };
    Some(Waiting {
        server: tool.server.clone(),
        tool: tool.tool.clone(),
        description: words.description.clone(),
        args: arguments(&words.input_schema),
        proposed: format!("{}, {side}, {:.1}", drafted.tool_type, drafted.risk),
    })
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    /// A tool of the registry.
    #[serde(default)]
    id: String,
    /// A tool that a server lists.
    #[serde(default)]
    tool: String,
    #[serde(default)]
    server: String,
    /// `yes`: the form comes with the tool disabled, to be looked at and saved.
    #[serde(default)]
    disable: String,
}

fn fields_of(tool: &Tool) -> Fields {
    Fields {
        id: tool.id.clone(),
        name: tool.name.clone(),
        kind: tool.tool_type.clone(),
        description: tool.description.clone(),
        risk: tool.risk.to_string(),
        side_effecting: tool.side_effecting,
        enabled: tool.enabled,
        schema: schema_text(tool.args.as_value()),
    }
}

fn blank() -> Fields {
    let schema =
        schema_text(&serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false}));
    Fields { risk: "0.5".to_owned(), side_effecting: true, enabled: true, schema, ..Fields::default() }
}

pub(super) async fn edit(State(seen): State<Seen>, visitor: Visitor, Query(which): Query<Which>) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let mut given = Given {
        new: true,
        path: String::new(),
        fields: blank(),
        reasons: Vec::new(),
        refused: None,
        told: None,
    };
    // A tool that a server lists may be one of the registry.
    let listed = Some(which.tool.as_str()).filter(|tool| standing.bundle.registry.get(tool).is_some());
    let id = if which.id.is_empty() { listed.unwrap_or_default() } else { which.id.as_str() };
    if !id.is_empty() {
        let Some(tool) = standing.bundle.registry.get(id) else {
            return page::nothing_here(State(seen), visitor).await;
        };
        given.new = false;
        given.fields = fields_of(tool);
        given.path = file_of(&standing, "tools/", "tool", &["id", "name"], &tool.id).unwrap_or_default();
    } else if !which.tool.is_empty() {
        let listings = Arc::clone(&seen.shared.listings);
        let known = tokio::task::spawn_blocking(move || listings.known()).await;
        let known = known.ok().and_then(Result::ok).unwrap_or_default();
        let found = known
            .into_iter()
            .find(|tool| tool.tool == which.tool && (which.server.is_empty() || tool.server == which.server));
        let words = found.and_then(|tool| tool.accepted).unwrap_or_default();
        let drafted = infer(&which.tool, &words.description, &words.input_schema, &Hints::default());
        let schema =
            if words.input_schema.is_null() { blank().schema } else { schema_text(&words.input_schema) };
        given.fields = Fields {
            id: which.tool.clone(),
            name: which.tool.clone(),
            kind: drafted.tool_type,
            description: words.description,
            risk: drafted.risk.to_string(),
            side_effecting: drafted.side_effecting,
            enabled: true,
            schema,
        };
        given.reasons = drafted.reasons;
    }
    given.fields.enabled &= which.disable != "yes";
    rendered(&seen, &visitor, &standing, given, None).await
}

struct Given {
    new: bool,
    path: String,
    fields: Fields,
    reasons: Vec<String>,
    refused: Option<String>,
    told: Option<Told>,
}

/// What the form changes; nothing while it says nothing yet, or its schema is none.
fn changes(standing: &Standing, given: &mut Given) -> Changes {
    let fields = &given.fields;
    if fields.name.is_empty() && fields.id.is_empty() {
        return Changes::new();
    }
    let schema = match read_schema(&fields.schema) {
        Ok(schema) => schema,
        Err(why) => {
            given.refused = Some(why);
            return Changes::new();
        }
    };
    if given.path.is_empty() {
        given.path = match standing.files.keys().find(|path| *path == "tools/console.toml") {
            Some(path) => path.clone(),
            None => "tools/console.toml".to_owned(),
        };
    }
    let text = standing.text(&given.path);
    let changed =
        if given.new { Some(added(&text, fields, &schema)) } else { set(standing, &text, fields, &schema) };
    match changed {
        Some(text) => [(given.path.clone(), Some(text))].into(),
        None => {
            given.refused = Some("TOML has no value for `null`, which stands in it.".to_owned());
            Changes::new()
        }
    }
}

fn read_schema(text: &str) -> Result<Value, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("It has more than {SCHEMA_BYTES_MAX} bytes."));
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("Line {}, column {}: {what}.", error.line(), error.column())
    })?;
    ArgsSchema::compile(&schema).map_err(|why| format!("It is {why}."))?;
    Ok(schema)
}

fn risk(text: &str) -> String {
    let text = text.trim();
    if text.parse::<f64>().is_ok_and(f64::is_finite) { text.to_owned() } else { toml_text::string(text) }
}

/// The text with a new entry at its end.
fn added(text: &str, fields: &Fields, schema: &Value) -> String {
    let id = if fields.id.is_empty() { &fields.name } else { &fields.id };
    let gap = if text.is_empty() { "" } else { "\n" };
    let args = toml_text::value(schema).unwrap_or_else(|| "{}".to_owned());
    format!(
        "{text}{gap}[[tool]]\nid = {}\nname = {}\ntype = {}\ndescription = {}\nside_effecting = {}\nrisk = {}\nenabled = {}\nargs = {args}\n",
        toml_text::string(id),
        toml_text::string(&fields.name),
        toml_text::string(&fields.kind),
        toml_text::string(&fields.description),
        fields.side_effecting,
        risk(&fields.risk),
        fields.enabled,
    )
}

/// The text with what differs in an entry.
fn set(standing: &Standing, text: &str, fields: &Fields, schema: &Value) -> Option<String> {
    let old = standing.bundle.registry.get(&fields.id)?;
    let was = fields_of(old);
    let mut text = text.to_owned();
    let find = |text: &str| toml_text::find(text, "tool", &["id", "name"], &fields.id);
    let mut put = |key: &str, value: String| {
        let entry = find(&text)?;
        text = entry.set(&text, key, &value, &ORDER);
        Some(())
    };
    if was.name != fields.name {
        // An entry without an id of its own has its name as the id, which stays.
        put("id", toml_text::string(&fields.id))?;
        put("name", toml_text::string(&fields.name))?;
    }
    if was.kind != fields.kind {
        put("type", toml_text::string(&fields.kind))?;
    }
    if was.description != fields.description {
        put("description", toml_text::string(&fields.description))?;
    }
    if was.side_effecting != fields.side_effecting {
        put("side_effecting", fields.side_effecting.to_string())?;
    }
    if was.risk != fields.risk {
        put("risk", risk(&fields.risk))?;
    }
    if was.enabled != fields.enabled {
        put("enabled", fields.enabled.to_string())?;
    }
    // Whoever saves the form has confirmed the entry.
    if old.inferred {
        put("inferred", "false".to_owned())?;
    }
    if *schema != *old.args.as_value() {
        let value = toml_text::value(schema)?;
        let entry = find(&text)?;
        if entry.has("args") {
            text = entry.without(&text, "args");
        }
        text = find(&text)?.set(&text, "args", &value, &ORDER);
    }
    Some(text)
}

async fn rendered(
    seen: &Seen,
    visitor: &Visitor,
    standing: &Standing,
    mut given: Given,
    checked: Option<desk::Checked>,
) -> Response {
    let checked = match checked {
        Some(checked) => checked,
        None => {
            let changes = changes(standing, &mut given);
            match check(seen, standing, &changes, Depth::Runs).await {
                Ok(checked) => checked,
                Err(why) => return trouble(seen, visitor, &why).await,
            }
        }
    };
    let status = if given.told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let title = if given.new { "New Tool" } else { "Tool" };
    let page = Editing {
        new: given.new,
        path: if given.path.is_empty() { free(standing, "tools/", "console") } else { given.path },
        fields: given.fields,
        types: types(&standing.bundle),
        schema_refused: given.refused,
        reasons: given.reasons,
        draft: Draft { shown: checked.after, ..draft(visitor, standing, given.told) },
        outcome: checked.outcome,
    };
    page::framed_as(status, seen, visitor, Some(Place::Tools), title, pages::edit(&page)).await
}

pub(super) async fn save(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let new = form.get("new") == "yes";
    let said = |name: &str| form.get(name).trim().replace("\r\n", "\n");
    let fields = Fields {
        id: said("id"),
        name: said("name"),
        kind: said("kind"),
        description: said("description"),
        risk: said("risk"),
        side_effecting: form.get("side_effecting") == "yes",
        enabled: form.get("enabled") == "yes",
        schema: form.get("schema").replace("\r\n", "\n"),
    };
    let mut path = String::new();
    if !new {
        if standing.bundle.registry.get(&fields.id).is_none() {
            return page::nothing_here(State(seen), visitor).await;
        }
        path = file_of(&standing, "tools/", "tool", &["id", "name"], &fields.id).unwrap_or_default();
    }
    let mut given = Given { new, path, fields, reasons: Vec::new(), refused: None, told: None };
    let changes = changes(&standing, &mut given);
    let checked = match check(&seen, &standing, &changes, Depth::Runs).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    if form.get("do") == "save" {
        if let Some(why) = &given.refused {
            given.told = Some(Told::bad("Invalid JSON for arguments schema.", why.clone()));
        } else if changes.is_empty() {
            given.told = Some(Told::bad("", "A tool has a name: write one."));
        } else {
            match press_save(&seen, &visitor, &form, &changes, &checked).await {
                Pressed::Saved(version) => {
                    let verb = if new { "added" } else { "updated" };
                    let to =
                        format!("/tools?saved={version}&verb={verb}&name={}", encoded(&given.fields.name));
                    return Redirect::to(&to).into_response();
                }
                Pressed::Not(why) => given.told = Some(Told::bad("Not saved.", why)),
            }
        }
    }
    rendered(&seen, &visitor, &standing, given, Some(checked)).await
}

/// A changed tool is accepted as it is shown, or all of them.
pub(super) async fn accept(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let listings = Arc::clone(&seen.shared.listings);
    let given = ["all", "tool", "server", "digest"].map(|name| form.get(name).to_owned());
    let put = tokio::task::spawn_blocking(move || {
        let [all, tool, server, digest] = given;
        match all.is_empty() {
            true => listings.accept(&tool, Some(&server), Some(&digest)).map(|one| vec![one]),
            false => listings.accept_all(&all),
        }
    });
    let by = visitor.session.principal.id.clone();
    let told = match put.await {
        Err(error) => Told::bad("Not accepted.", error.to_string()),
        Ok(Err(error)) => Told::bad("Not accepted.", format!("{error}.")),
        Ok(Ok(all)) => {
            let names: Vec<String> = all.iter().map(|one| format!("`{}`", one.tool)).collect();
            let said = format!("{by} accepts the changed tools {} in the console", names.join(", "));
            let recorded = super::people::record(&seen, visitor.session.principal.clone(), said).await;
            let mut told =
                Told::good("Accepted.", format!("{} may be called as described now.", names.join(", ")));
            if let Err(failure) = recorded {
                told = Told::bad("Accepted, and not recorded:", failure.told().1);
            }
            for one in all {
                if let Err(failure) = accepted(&seen.shared, one, &by).await {
                    told = Told::bad("Accepted, and a live run could not be told:", failure.told().1);
                }
            }
            told
        }
    };
    shown(&seen, &visitor, Some(told)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_what_it_means() {
        let words = |description: &str, schema: Value| ToolWords {
            description: description.into(),
            input_schema: schema,
            rest: None,
        };
        let old = words(
            "Sends an email.",
            serde_json::json!({"type": "object", "properties": {"to": {"type": "string"}}}),
        );
        let new = words(
            "Sends an email.",
            serde_json::json!({"type": "object", "properties": {"to": {"type": "string"}, "bcc": {"type": "string", "description": "email address"}, "path": {"type": "string"}}}),
        );
        let said = means("send_email", &old, &new).join("\n");
        assert!(said.contains("New argument `bcc`, which is read as email"), "{said}");
        assert!(said.contains("New argument `path`, which is read as path"), "{said}");
        assert!(means("send_email", &old, &old).is_empty());
    }

    #[test]
    fn a_schema_that_is_none_says_where() {
        let why = read_schema("{\n  \"query\" \"x\"\n}").unwrap_err();
        assert!(why.starts_with("Line 2, column 11: expected"), "{why}");
        assert!(read_schema("{\"type\": 5}").is_err());
        assert!(read_schema("{\"query\": {\"type\": \"string\"}}").is_ok());
    }
}
