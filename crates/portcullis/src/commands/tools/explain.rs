//! `portcullis tools list` and `explain`: what the bundle says about tools, and how their arguments are read.

use portcullis_core::bundle::{Bundle, nearest};
use portcullis_core::effect::{Effect, Effects};
use portcullis_core::principal::Attribute;
use portcullis_core::tool::Tool;
use portcullis_effects::arguments::{Explained, explain as explain_arguments};
use portcullis_effects::{Surroundings, read_call};
use serde_json::{Value, json};

use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

pub(super) const EXAMPLES: &str = "\
Examples:
  portcullis tools explain send_email
  portcullis tools explain Bash --bundle examples/developer \\
      --arguments '{\"command\": \"rm -r build\"}'

Arguments are read for the effects of a call where `effects` of the tool in the bundle says so. Where the bundle says \
nothing, names, formats and the description decide. What is done to a path, host or address follows from the tool's \
name and type; SQL, command lines and code say it themselves.

With --arguments the effects of that call are shown, each with the text that it was read from. Nothing is called. \
Relative paths start from --directory, or else from the bundle's workspace.

Exit codes: 0 shown, 1 the bundle has no such tool, 3 the bundle could not be read, 64 usage.";

/// Longest stretch of the arguments that is shown with an effect, in bytes.
const STRETCH_BYTES_MAX: usize = 60;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    bundle: BundleArg,
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// Name or id of the tool
    tool: String,
    #[command(flatten)]
    bundle: BundleArg,
    /// Arguments of a call, as a JSON object
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Working directory of that call
    #[arg(long, value_name = "DIR", requires = "arguments")]
    directory: Option<String>,
}

pub(super) fn list(args: &ListArgs, global: &Global) -> Result<u8, Failure> {
    let opened = args.bundle.open(global)?;
    let mut out = Out::new();
    let tools: Vec<&Tool> = opened.bundle.registry.iter().collect();
    let widest =
        |text: fn(&Tool) -> &str| tools.iter().map(|tool| text(tool).chars().count()).max().unwrap_or(0);
    let (ids, types) = (widest(|tool| &tool.id), widest(|tool| &tool.tool_type));
    for tool in &tools {
        let arguments = explain_arguments(tool);
        if global.json {
            out.json(&described(tool, &arguments))?;
            continue;
        }
        let effects = if tool.side_effecting { "side effects" } else { "" };
        let held: Vec<String> = arguments
            .iter()
            .map(|found| format!("{}: {}", clean_line(&found.argument), found.holds))
            .collect();
        let line = format!(
            "{:ids$}  {:types$}  {effects:12}  risk {:<4}  {}",
            clean_line(&tool.id),
            clean_line(&tool.tool_type),
            tool.risk,
            held.join(", ")
        );
        out.line(format_args!("{}", line.trim_end()))?;
    }
    out.finish()?;
    Ok(exit::YES)
}

pub(super) fn explain(args: &ExplainArgs, global: &Global) -> Result<u8, Failure> {
    let opened = args.bundle.open(global)?;
    let Some(tool) = opened.bundle.registry.get(&args.tool) else {
        return Err(no_such_tool(&opened.bundle, &args.tool));
    };
    let arguments = explain_arguments(tool);
    let call = args.arguments.as_deref().map(parse).transpose()?;
    let effects = call.as_ref().map(|call| effects_of(&opened.bundle, tool, call, args.directory.as_deref()));
    let mut out = Out::new();
    if global.json {
        let mut record = described(tool, &arguments);
        if let (Some(record), Some(effects)) = (record.as_object_mut(), &effects) {
            record.insert("call_effects".into(), json!(effects));
        }
        out.json(&record)?;
    } else {
        show_tool(&mut out, tool, &arguments)?;
        if let (Some(call), Some(effects)) = (&call, &effects) {
            show_effects(&mut out, call, effects)?;
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

fn no_such_tool(bundle: &Bundle, name: &str) -> Failure {
    let known: Vec<&str> = bundle.registry.iter().map(|tool| tool.id.as_str()).collect();
    let help = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`portcullis tools list` shows the tools of the bundle".to_owned(),
    };
    Failure::no(format!("there is no tool `{name}` in the bundle")).help(help)
}

fn parse(text: &str) -> Result<Value, Failure> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(Failure::usage("--arguments is not a JSON object")),
        Err(error) => Err(Failure::usage(format!("--arguments is not JSON: {error}"))),
    }
    .map_err(|failure| failure.help("for example --arguments '{\"path\": \"notes.txt\"}'"))
}

fn effects_of(bundle: &Bundle, tool: &Tool, call: &Value, directory: Option<&str>) -> Effects {
    let settings = &bundle.effects;
    let workspace = settings.workspace.as_deref();
    let surroundings = Surroundings {
        settings,
        workspace,
        home: settings.home.as_deref(),
        directory: directory.or(workspace),
    };
    read_call(Some(tool), &tool.name, call, &surroundings)
}

fn described(tool: &Tool, arguments: &[Explained]) -> Value {
    json!({
        "id": tool.id,
        "name": tool.name,
        "type": tool.tool_type,
        "description": tool.description,
        "side_effecting": tool.side_effecting,
        "risk": tool.risk,
        "enabled": tool.enabled,
        "inferred": tool.inferred,
        "arguments": arguments,
    })
}

fn show_tool(out: &mut Out, tool: &Tool, arguments: &[Explained]) -> Result<(), Failure> {
    let (strong, faint) = (out::STRONG, out::FAINT);
    out.line(format_args!("{strong}{}{strong:#}  {}", clean_line(&tool.id), clean_line(&tool.description)))?;
    let side_effects = if tool.side_effecting { "has side effects" } else { "has no side effects" };
    let enabled = if tool.enabled { "" } else { ", disabled" };
    let who = if tool.inferred { "; inferred, and not confirmed" } else { "" };
    let tool_type = clean_line(&tool.tool_type);
    out.line(format_args!("  type {tool_type}, {side_effects}, risk {}{enabled}{who}", tool.risk))?;
    if arguments.is_empty() {
        return out.line(format_args!("  no argument is known to say what a call touches"));
    }
    let names = arguments.iter().map(|found| found.argument.chars().count()).max().unwrap_or(0);
    for found in arguments {
        let verbs: Vec<&str> = found.verbs.iter().map(|verb| verb.as_str()).collect();
        let verbs = if verbs.is_empty() { "its text says what is done".to_owned() } else { verbs.join(", ") };
        let said = if found.declared { "" } else { "inferred: " };
        out.line(format_args!(
            "  {:names$}  {:5}  {verbs}  {faint}{said}{}{faint:#}",
            clean_line(&found.argument),
            found.holds.as_str(),
            clean_line(&found.why)
        ))?;
    }
    Ok(())
}

fn show_effects(out: &mut Out, call: &Value, effects: &Effects) -> Result<(), Failure> {
    let faint = out::FAINT;
    if effects.is_empty() {
        return out.line(format_args!("the call touches nothing that is known"));
    }
    out.line(format_args!("{}:", out::count(effects.len(), "effect", "effects")))?;
    for effect in effects.iter() {
        let name = effect.to_string();
        let notes = notes(effect);
        out.line(format_args!("  {}{}", clean_line(&name), clean_line(&notes)))?;
        if let Some(span) = &effect.span {
            let stretch = stretch(call, &span.pointer, span.start, span.end);
            out.line(format_args!(
                "      {faint}{}  {}{faint:#}",
                clean_line(&span.pointer),
                clean_line(&stretch)
            ))?;
        }
    }
    Ok(())
}

/// Attributes in brackets: true ones by name, of `resolved`, `known` and `catalogued` when they are false.
fn notes(effect: &Effect) -> String {
    let mut notes = Vec::new();
    for (name, value) in effect.resource.attributes.iter().chain(&effect.attributes) {
        match value {
            Attribute::Boolean(flag) if matches!(*name, "resolved" | "known" | "catalogued") => {
                if !flag {
                    notes.push(format!("not {name}"));
                }
            }
            Attribute::Boolean(true) => notes.push((*name).to_owned()),
            Attribute::Boolean(false) => {}
            Attribute::Integer(value) => notes.push(format!("{name} {value}")),
            Attribute::Decimal(value) => notes.push(format!("{name} {value}")),
            Attribute::Text(value) => notes.push(format!("{name} `{value}`")),
        }
    }
    if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) }
}

/// The text that an effect was read from, cut if it is long.
fn stretch(call: &Value, pointer: &str, start: usize, end: usize) -> String {
    let value = pointer.strip_prefix("/arguments").and_then(|pointer| call.pointer(pointer));
    let whole = match value {
        Some(Value::String(text)) => text.get(start..end).unwrap_or(text).to_owned(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    match whole.split_at_checked(whole.floor_char_boundary(STRETCH_BYTES_MAX)) {
        Some((cut, rest)) if !rest.is_empty() => format!("{cut}…"),
        _ => whole,
    }
}
