//! Entries that someone changed after they were installed, and settings by which an agent starts none.
//!
//! An entry with another matcher, with a condition, with a command that ends otherwise, or that nobody waits for lets calls pass
//! that the gate never judges. So each is compared with what an installation writes for the command that is found in it.

use portcullis_wire::hook::Agent;
use serde_json::{Map, Value};

use super::agents;
use super::command::{SMALL, hooks_of, is_own, is_plain, own_command};

/// Members that change nothing but what people see.
const SHOWN: [&str; 4] = ["name", "description", "statusMessage", "comment"];
/// Options of the hook that an installation writes, and whether a value follows.
const OPTIONS: [(&str, bool); 7] = [
    ("--agent", true),
    ("--home", true),
    ("--bundle", true),
    ("--policy", true),
    ("--ask", false),
    ("--defer", false),
    ("--uncontained", false),
];
/// Longest value that is shown, in characters.
const VALUE_MAX: usize = 60;

/// One event of an agent.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) agent: Agent,
    pub(super) event: &'static str,
    pub(super) blocks: bool,
}

/// What becomes of an event.
pub(super) enum Found {
    /// No entry tells it to the gate.
    Nothing,
    /// An entry does, by this command.
    Whole(String),
    /// One would, were it not for this.
    Changed(String),
}

impl Told {
    /// What the entries of the event do. If there are several, one that was not changed suffices.
    pub(super) fn by(self, entries: &[Value]) -> Found {
        let mut changed = None;
        for entry in entries {
            for hook in hooks_of(entry) {
                let Some(command) = own_command(hook) else { continue };
                match self.difference(entry, hook, command) {
                    None => return Found::Whole(command.to_owned()),
                    Some(why) => changed = changed.or(Some(format!("{}: {why}", self.event))),
                }
            }
        }
        changed.map_or(Found::Nothing, Found::Changed)
    }

    /// What is different in an entry from what an installation would write, if anything.
    fn difference(self, entry: &Value, hook: &Value, command: &str) -> Option<String> {
        let base = match self.blocks {
            false => Some(command),
            true => command.strip_suffix(agents::unanswered(self.agent)),
        };
        let Some(base) = base else {
            return Some(
                "its command does not end as `install` writes it, so a failure may let a call pass".into(),
            );
        };
        if let Some(why) = in_command(self.agent, base) {
            return Some(why);
        }
        let expected = agents::entry(self.agent, self.event, self.blocks, base);
        let whole = || members(&expected, entry);
        let inner = || hooks_of(&expected).first().and_then(|expected| members(expected, hook));
        whole().or_else(inner)
    }
}

/// The first member of an object that is different from the expected one.
fn members(expected: &Value, found: &Value) -> Option<String> {
    let nothing = Map::new();
    let expected = expected.as_object().unwrap_or(&nothing);
    let found = found.as_object().unwrap_or(&nothing);
    let names = expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name)));
    names
        .filter(|name| *name != "hooks" && !SHOWN.contains(&name.as_str()))
        .find_map(|name| member(name, expected.get(name), found.get(name)))
}

fn member(name: &str, expected: Option<&Value>, found: Option<&Value>) -> Option<String> {
    let shown = |value: &Value| {
        let text = value.to_string();
        let cut = text.chars().count() > VALUE_MAX;
        let text: String = text.chars().take(VALUE_MAX).collect();
        if cut { format!("`{text}…`") } else { format!("`{text}`") }
    };
    match (expected, found) {
        (Some(expected), Some(found)) if expected == found => None,
        (Some(expected), Some(found)) if name.starts_with("timeout") => {
            let enough = expected.as_f64().zip(found.as_f64()).is_some_and(|(least, given)| given >= least);
            (!enough).then(|| format!("`{name}` is {}, less than {}", shown(found), shown(expected)))
        }
        (Some(expected), Some(found)) => {
            Some(format!("`{name}` is {} instead of {}", shown(found), shown(expected)))
        }
        (Some(expected), None) => {
            Some(format!("`{name}` is not there; `install` writes {}", shown(expected)))
        }
        (None, None | Some(Value::Null | Value::Bool(false))) => None,
        // Of Kimi Code: what is slow or dies is a denial. Releases that do not know it refuse the file.
        (None, Some(found)) if name == "fail_mode" && found == "closed" => None,
        (None, Some(found)) => Some(format!("`{name}` is {}, which `install` does not write", shown(found))),
    }
}

/// What is different in a command line from what an installation would write.
pub(super) fn in_command(agent: Agent, command: &str) -> Option<String> {
    let Some(words) = words(command) else {
        return Some("its command does more than start the hook".to_owned());
    };
    let mut words = words.iter().map(String::as_str);
    let program = words.next().unwrap_or_default();
    let is_small = program.rsplit('/').next() == Some(SMALL);
    if !is_small && words.next() != Some("hook") {
        return Some("its command does not start the hook".to_owned());
    }
    let mut answered = Agent::ClaudeCode.id().to_owned();
    while let Some(word) = words.next() {
        let Some((option, has_value)) = OPTIONS.iter().find(|(option, _)| *option == word) else {
            return Some(format!("its command has `{word}`, which `install` does not write"));
        };
        let value = if *has_value { words.next() } else { Some("") };
        match (*option, value) {
            (option, None) => return Some(format!("its command has nothing after `{option}`")),
            ("--agent", Some(named)) => named.clone_into(&mut answered),
            _ => {}
        }
    }
    (answered != agent.id()).then(|| format!("its command answers as for `{answered}`"))
}

/// The words of a command line as [`super::command::command`] writes them; `None` of any other.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next().filter(|letter| *letter == '\'')?),
            letter if is_plain(letter) => word.get_or_insert_default().push(letter),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

/// The setting in the same file by which the agent starts no hooks, or not this one.
pub(super) fn switched_off(root: &Value) -> Option<String> {
    let is_on = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    if let Some(name) =
        ["disableAllHooks", "hooksDisabled"].into_iter().find(|name| root.get(name).is_some_and(is_on))
    {
        return Some(format!("`{name}` turns all hooks off"));
    }
    // Of Gemini CLI, which names single hooks by name or command.
    let config = root.get("hooksConfig")?;
    if config.get("enabled").is_some_and(|enabled| *enabled != true) {
        return Some("`hooksConfig.enabled` turns all hooks off".to_owned());
    }
    let disabled = config.get("disabled").and_then(Value::as_array)?;
    let ours = |name: &str| name == "portcullis" || is_own(name);
    let is_named = disabled.iter().filter_map(Value::as_str).any(ours);
    is_named.then(|| "`hooksConfig.disabled` names the hook".to_owned())
}

#[cfg(test)]
mod tests;
