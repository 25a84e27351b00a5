//! From a list of tools to the files of a bundle. Touches nothing.
//!
//! Everything a server says ends up inside quoted values that a TOML serializer wrote, or in comments without
//! control characters: a name with quotes and newlines in it is a name, not another field.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::infer::{EffectArgument, infer};
use portcullis_core::limits::NAME_BYTES_MAX;
use portcullis_core::tool::ArgsSchema;
use portcullis_wire::mcp::list::ListedTool;
use serde::Serialize;
use serde_json::{Value, json};

use super::{disclosures, programs, sample};

/// Name of the drafted runtime policy.
pub(super) const POLICY: &str = "Default";
/// Limits of the drafted policy: enough for a day's work, and an end for an agent that runs in circles.
const MAX_STEPS: u32 = 500;
const MAX_SIDE_EFFECTS: u32 = 50;
/// Longest comment line made of a server's words, and longest file name, in characters.
const COMMENT_CHARS_MAX: usize = 200;
const FILE_NAME_CHARS_MAX: usize = 64;

/// A tool and what was inferred about it.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftedTool {
    /// Its name.
    pub name: String,
    /// Its type.
    pub tool_type: String,
    /// Whether it changes something, or may.
    pub side_effecting: bool,
    /// 0 to 1.
    pub risk: f64,
    /// Why, in words.
    pub reasons: Vec<String>,
}

/// The files of a bundle and what to say about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendering {
    /// Text by path, with `/` between components.
    pub files: BTreeMap<String, String>,
    /// The tools in it.
    pub tools: Vec<DraftedTool>,
    /// What could not be taken over as the server says it.
    pub warnings: Vec<String>,
}

/// Field order is the order in the file; tables come last, as TOML wants it.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    r#type: &'a str,
    description: &'a str,
    side_effecting: bool,
    risk: f64,
    enabled: bool,
    inferred: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    effects: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

#[derive(Serialize)]
struct ToolFile<'a> {
    tool: [Entry<'a>; 1],
}

/// Drafts a bundle for the tools of one server.
#[must_use]
pub fn render(tools: &[ListedTool], server: &str) -> Rendering {
    render_with(tools, server, true)
}

/// The same without cases of calls that the drafted access policies stop.
pub(super) fn without_out_of_bounds(tools: &[ListedTool], server: &str) -> Rendering {
    render_with(tools, server, false)
}

fn render_with(tools: &[ListedTool], server: &str, out_of_bounds: bool) -> Rendering {
    let mut rendering = Rendering::default();
    let (text, mut examples) = tool_file(tools, server, &mut rendering);
    if !out_of_bounds {
        examples.iter_mut().for_each(|example| example.out_of_bounds.clear());
    }
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let types: BTreeSet<&str> = rendering.tools.iter().map(|tool| tool.tool_type.as_str()).collect();
    rendering.files.insert(format!("tools/{}.toml", file_name(server)), text);
    rendering.files.insert("portcullis.toml".to_owned(), MAIN.to_owned());
    rendering.files.insert("policies/default.toml".to_owned(), policy(&types));
    rendering.files.insert("access/default.cedar".to_owned(), ACCESS.to_owned());
    rendering.files.insert("tests/example.md".to_owned(), test(&examples, &names));
    rendering
}

/// Drafts the tools of one more server, with cases for them, for a bundle that has the files in `taken`.
pub(super) fn more_tools(tools: &[ListedTool], server: &str, taken: &BTreeMap<String, Vec<u8>>) -> Rendering {
    let mut rendering = Rendering::default();
    let (text, examples) = tool_file(tools, server, &mut rendering);
    let cases = format!("# The tools of `{}`\n{}", comment(server), two_cases(&examples));
    for (folder, ending, text) in [("tools", "toml", text), ("tests", "md", cases)] {
        rendering.files.insert(free_name(folder, &file_name(server), ending, taken), text);
    }
    rendering
}

/// A path that no file of the bundle has.
fn free_name(folder: &str, name: &str, ending: &str, taken: &BTreeMap<String, Vec<u8>>) -> String {
    let mut path = format!("{folder}/{name}.{ending}");
    let mut number = 2;
    while taken.contains_key(&path) {
        path = format!("{folder}/{name}-{number}.{ending}");
        number += 1;
    }
    path
}

/// The file of a server's tools, and calls of them for examples.
fn tool_file(tools: &[ListedTool], server: &str, rendering: &mut Rendering) -> (String, Vec<Example>) {
    let mut text = format!(
        "# The tools of the server `{}`, as it described them when this draft was made.\n\
         #\n\
         # Everything marked `inferred` was concluded from names, descriptions and schemas, all written by the\n\
         # server. Read it, correct it, and take the mark away: `type` is what policies allow or not,\n\
         # `side_effecting` what they hold and count.\n",
        comment(server)
    );
    let mut names = BTreeSet::new();
    let mut examples = Vec::new();
    for tool in tools {
        if tool.name.trim().is_empty() || tool.name.len() > NAME_BYTES_MAX {
            let shown = comment(&tool.name);
            rendering
                .warnings
                .push(format!("`{shown}` was left out: names have 1 to {NAME_BYTES_MAX} bytes"));
        } else if !names.insert(tool.name.as_str()) {
            rendering
                .warnings
                .push(format!("`{}` is listed twice; the first entry counts", comment(&tool.name)));
        } else {
            examples.extend(push_tool(tool, &mut text, rendering));
        }
    }
    (text, examples)
}

/// Adds a tool; returns a call of it for the example.
fn push_tool(tool: &ListedTool, text: &mut String, rendering: &mut Rendering) -> Option<Example> {
    let mut inferred = infer(&tool.name, &tool.description, &tool.input_schema, &tool.hints);
    let (args, mut notes) = match arguments(&tool.input_schema) {
        Ok(args) => (Some(args), Vec::new()),
        Err(why) => (None, vec![format!("any arguments are accepted: {why}")]),
    };
    notes.extend(programs::raise(tool, args.is_some(), &mut inferred));
    notes.extend(disclosures::raise(tool, &mut inferred));
    rendering.warnings.extend(notes.iter().map(|note| format!("`{}`: {note}", comment(&tool.name))));
    let example = args.as_ref().and_then(|args| {
        let arguments = sample::arguments(&ArgsSchema::compile(args).ok()?, &inferred.effects)?;
        let out_of_bounds = out_of_bounds(args, &inferred.effects);
        Some(Example { tool: tool.name.clone(), arguments, held: inferred.side_effecting, out_of_bounds })
    });
    let effects = inferred.effects.iter().map(|e| (e.argument.as_str(), e.effect.as_str())).collect();
    let entry = Entry {
        name: &tool.name,
        r#type: &inferred.tool_type,
        description: &tool.description,
        side_effecting: inferred.side_effecting,
        // Two digits: 0.8 rather than 0.7999999999999999.
        risk: (inferred.risk * 100.0).round() / 100.0,
        enabled: true,
        inferred: true,
        effects,
        args,
    };
    let entry = match toml::to_string(&ToolFile { tool: [entry] }) {
        Ok(entry) => entry,
        Err(error) => {
            rendering.warnings.push(format!("`{}` was left out: {error}", comment(&tool.name)));
            return None;
        }
    };
    notes.splice(0..0, inferred.reasons.iter().cloned());
    text.push_str(&format!("\n# {}\n{entry}", comment(&notes.join("; "))));
    rendering.tools.push(DraftedTool {
        name: tool.name.clone(),
        tool_type: inferred.tool_type,
        side_effecting: inferred.side_effecting,
        risk: inferred.risk,
        reasons: inferred.reasons,
    });
    example
}

/// Arguments that name what the drafted access policies speak of, with the rule that stops them.
fn out_of_bounds(args: &Value, effects: &[EffectArgument]) -> Vec<(Value, &'static str)> {
    let Ok(schema) = ArgsSchema::compile(args) else { return Vec::new() };
    let of = |(effect, text, verdict): &(&str, &str, &'static str)| {
        let held = effects.iter().find(|held| held.effect == *effect)?;
        Some((sample::arguments_with(&schema, effects, &held.argument, text)?, *verdict))
    };
    OUT_OF_BOUNDS.iter().filter_map(of).collect()
}

/// What an argument holds, an example that is out of bounds, and the verdict on it.
const OUT_OF_BOUNDS: [(&str, &str, &str); 4] = [
    ("path", "/srv/app/.env", "review access/secrets"),
    ("url", "http://169.254.169.254/latest/meta-data/", "deny access/metadata"),
    ("url", "http://10.0.0.7/admin", "review access/internal-hosts"),
    ("shell", "cat ~/.ssh/id_ed25519", "review access/secrets"),
];

/// The schema as a bundle can hold it, or why it cannot.
fn arguments(schema: &Value) -> Result<Value, String> {
    let mut schema = match schema {
        Value::Object(_) => schema.clone(),
        _ => json!({}),
    };
    if let Some(object) = schema.as_object_mut() {
        // The protocol wants it there; without it the bundle would read a map of properties.
        object.entry("type").or_insert_with(|| "object".into());
    }
    without_nulls(&mut schema)?;
    ArgsSchema::compile(&schema)?;
    Ok(schema)
}

/// TOML has neither `null` nor numbers beyond 64 bits. A `null` that only informs is dropped.
fn without_nulls(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Null => Err("the schema holds `null`, which TOML does not have".to_owned()),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            Err(format!("the schema holds {number}, which TOML does not have"))
        }
        Value::Array(items) => items.iter_mut().try_for_each(without_nulls),
        Value::Object(map) => {
            map.retain(|key, value| !(value.is_null() && matches!(key.as_str(), "default" | "example")));
            map.values_mut().try_for_each(without_nulls)
        }
        _ => Ok(()),
    }
}

/// Words of a server in a comment: one line, nothing that TOML forbids there.
fn comment(text: &str) -> String {
    text.chars().take(COMMENT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn file_name(server: &str) -> String {
    let name: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(FILE_NAME_CHARS_MAX)
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

const MAIN: &str = "\
# Drafted by `portcullis init`. Unknown fields are errors, so that a typing error is not a weaker policy.
version = 1

# enforce: verdicts are carried out. observe: they are recorded, and everything passes.
mode = \"enforce\"

# The runtime policy of runs that ask for none; see policies/.
policy = \"Default\"

# Tools that tools/ does not list: review (a person decides), deny, or allow.
unknown_tools = \"review\"
";

const ACCESS: &str = "\
// Drafted by `portcullis init`. What is out of bounds whichever tool reaches for it; everything else is left to
// policies/. `portcullis policy schema` lists what policies can speak of, docs/access.md explains them.
//
// review: a person decides. deny: nobody is asked.

@id(\"secrets\")
@decision(\"review\")
@reason(\"touches a place where credentials are kept: .env, keys, tokens, password stores\")
forbid (principal, action, resource is Path)
when { resource.secret };

@id(\"secret-settings\")
@decision(\"review\")
@reason(\"touches a setting that holds credentials\")
forbid (principal, action, resource is Setting)
when { resource.secret };

@id(\"secret-variables\")
@decision(\"review\")
@reason(\"reads an environment variable that holds a credential\")
forbid (principal, action == Action::\"read\", resource is Environment)
when { resource.secret };

// Its tokens and keys end the run under any bundle; this is about the rest, the record of all runs among it.
@id(\"gate-state\")
@reason(\"touches the state of the gate that judges it\")
forbid (principal, action, resource is Path)
when { resource.gate };

@id(\"gate-command\")
@decision(\"review\")
@reason(\"operates the gate that judges it\")
forbid (principal, action == Action::\"execute\", resource == Command::\"portcullis\");

@id(\"control-files\")
@decision(\"review\")
@reason(\"changes what runs by itself, or what decides about an agent\")
forbid (principal, action in [Action::\"write\", Action::\"delete\", Action::\"configure\"], resource is Path)
when { resource.control && !resource.gate };

@id(\"metadata\")
@reason(\"asks a cloud metadata service, which hands out credentials\")
forbid (principal, action, resource is Host)
when { resource.metadata };

// Addresses of private networks and of this machine, and names that only an internal name service knows.
@id(\"internal-hosts\")
@decision(\"review\")
@reason(\"reaches into an internal network\")
forbid (principal, action, resource is Host)
when {
  !resource.metadata &&
  (resource.private || resource.loopback || !resource.resolved ||
   resource.name like \"*.internal\" || resource.name like \"*.local\" || resource.name like \"*.localdomain\" ||
   resource.name like \"*.lan\" || resource.name like \"*.intranet\" || resource.name like \"*.corp\" ||
   resource.name like \"*.home\" || resource.name like \"*.home.arpa\" || resource.name like \"*.private\" ||
   !resource.address && !(resource.name like \"*.*\"))
};
";

fn policy(types: &BTreeSet<&str>) -> String {
    let fallback = BTreeSet::from(["RETRIEVE_DOCS"]);
    let types = if types.is_empty() { &fallback } else { types };
    let types: Vec<String> = types.iter().map(|name| toml::Value::from(*name).to_string()).collect();
    format!(
        "# Reading passes; what changes something waits for a person (`portcullis approvals list`).\n\
         # Take a type out of `allowed_types` to deny its tools altogether.\n\n\
         [[policy]]\n\
         name = \"{POLICY}\"\n\
         allowed_types = [{}]\n\
         max_steps = {MAX_STEPS}\n\
         max_side_effects = {MAX_SIDE_EFFECTS}\n\
         approval_for_side_effects = true\n\
         # Found anywhere in the planned action or the arguments, in upper or lower case.\n\
         restricted_keywords = []\n",
        types.join(", ")
    )
}

/// A call that fits its schema.
struct Example {
    tool: String,
    arguments: Value,
    held: bool,
    /// Calls that the drafted access policies stop, with the verdict on each.
    out_of_bounds: Vec<(Value, &'static str)>,
}

fn test(examples: &[Example], names: &BTreeSet<&str>) -> String {
    let mut text = "# What this policy must say\n\n\
                    Run with `portcullis policy test`. Add a case for everything that must never happen, and for\n\
                    everything that must keep working.\n"
        .to_owned();
    text.push_str(&two_cases(examples));
    for (_, _, verdict) in OUT_OF_BOUNDS {
        let stopped = examples.iter().filter(|example| !example.held).find_map(|example| {
            let (arguments, _) = example.out_of_bounds.iter().find(|(_, stops)| *stops == verdict)?;
            Some((example, arguments))
        });
        if let Some((example, arguments)) = stopped {
            let rule = verdict.rsplit('/').next().unwrap_or(verdict);
            text.push_str(&case(&format!("out of bounds: {rule}"), &example.tool, arguments, verdict));
        }
    }
    let mut tool = "a_tool_that_nobody_classified".to_owned();
    while names.contains(tool.as_str()) {
        tool.push('_');
    }
    text.push_str(&case(
        "so does a tool that nobody classified",
        &tool,
        &json!({}),
        "review registry/unknown-tool",
    ));
    text
}

/// A call that reads and one that does not.
fn two_cases(examples: &[Example]) -> String {
    let reading = examples.iter().find(|example| !example.held);
    let changing = examples.iter().find(|example| example.held);
    let of = |example: Option<&Example>, title: &str, verdict: &str| {
        example.map(|example| case(title, &example.tool, &example.arguments, verdict)).unwrap_or_default()
    };
    of(reading, "reading passes", "allow")
        + &of(changing, "a side effect waits for a person", "review runtime-policy/approval")
}

fn case(title: &str, tool: &str, arguments: &Value, verdict: &str) -> String {
    format!("\n## {title}\n\n```run\ncall {} {arguments} => {verdict}\n```\n", Value::from(tool))
}
