//! Reads `[contain]`, `[profile.NAME]` and `[server."NAME".contain]` of `portcullis.toml`: what runs contained, and how.
//!
//! ```toml
//! [contain]
//! default = "project"          # of command lines for which nothing below says otherwise; "none": they are not
//! below = "hold"               # where the machine does not reach a profile's level: "deny", "hold" or "uncontained"
//! more = "warn"                # what did more than was predicted, where it matters: "warn", "review" or "deny"
//! [contain.tools]
//! Bash = "project"             # by the tool that the command line is given to
//! [contain.commands]
//! npm = "fetch"                # by the program, or the program and its subcommand
//! "git push" = "none"
//!
//! [profile.data]               # the fields are in `profiles`
//! extends = "project"
//! read = ["/srv/data"]
//!
//! [server."files".contain]     # the server itself: a profile of its own, or `profile = "NAME"`
//! extends = "read-only"
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::diagnostic::Diagnostic;
use super::placed::{Placed, placed};
use super::profiles::{self, Stated, built_in_profile};
use super::servers::{self, McpServer};
use super::snapshot::Bundle;
use super::toml_table::{Field, File, Table};
use crate::action::Action;
use crate::effect::{Effect, Effects, ResourceKind, Verb};
use crate::event::Place;
use crate::fact::{FactAnswer, FactRequest, Facts};
use crate::limits::NAME_BYTES_MAX;
use crate::principal::Attribute;
use crate::profile::{Git, Level, Places, Profile, allowing, join};
use crate::tool::Tool;
use crate::verdict::Verdict;

/// Most profiles of a bundle, most servers, and most entries of each table of `[contain]`.
const ENTRIES_MAX: usize = 1_024;
/// The word for no profile.
const NONE: &str = "none";
/// The effect of an argument that holds a command line.
const SHELL: &str = "shell";
/// The built-in profiles, for who misspelt one.
const BUILT_IN: [&str; 4] = ["read-only", "project", "git", "fetch"];
/// What names of servers' own profiles begin with, so that they are no other's.
const SERVER: &str = "server/";
/// The source of facts that knows which level the machine reaches.
pub const CONTAIN_SOURCE: &str = "contain";

/// What runs contained.
#[derive(Debug, Clone, Default)]
pub struct ContainSettings {
    /// The profile of command lines for which nothing else is said; `None`: they are not contained.
    pub default: Option<String>,
    /// What becomes of a call where the machine does not reach the level of its profile.
    pub below: Below,
    /// What becomes of what did more than was predicted of it, where it matters.
    pub more: OnMore,
    /// Profiles by tool; `None`: its command lines are not contained.
    pub tools: BTreeMap<String, Option<String>>,
    /// Profiles by program, or by program and subcommand with a space between.
    pub commands: BTreeMap<String, Option<String>>,
    /// The profiles of servers themselves, by their names.
    pub servers: BTreeMap<String, Profile>,
    /// The profiles that the bundle states, with what they extend. Their paths are not [placed](Profile::at).
    pub profiles: BTreeMap<String, Profile>,
    /// Where each of its profiles is, and whether something uses it.
    pub(super) places: BTreeMap<String, (Diagnostic, bool)>,
}

/// What becomes of a contained call that did more than was predicted, where it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OnMore {
    /// It is noted, and counts against the tool.
    #[default]
    Warn,
    /// A person should look at it; its result is withheld.
    Review,
    /// Its result is withheld.
    Deny,
}

impl OnMore {
    /// The verdict on it.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Warn => Verdict::Warn,
            Self::Review => Verdict::Review,
            Self::Deny => Verdict::Deny,
        }
    }
}

/// What becomes of a call where the machine does not reach the level of its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Below {
    /// It is judged as if nothing could be contained; the record and `portcullis doctor` say so.
    Uncontained,
    /// A person decides.
    #[default]
    Hold,
    /// It is denied.
    Deny,
}

/// The question which level the surface of a run can run a command line at, here and now.
#[must_use]
pub fn level_request() -> FactRequest {
    FactRequest { source: CONTAIN_SOURCE.to_owned(), question: "level".to_owned() }
}

/// The answer to it: each level with whether it is reached.
#[must_use]
pub fn level_answer(reached: Level) -> FactAnswer {
    let levels = [Level::Process, Level::Namespace];
    FactAnswer::Known(
        levels.map(|level| (level.to_string(), Value::Bool(level <= reached))).into_iter().collect(),
    )
}

/// Programs that run git.
const GITS: [&str; 4] = ["git", "gh", "glab", "hub"];

/// Whether git runs in this, and does not push. Where such a call is exempt from containment, git is to start nothing of
/// the project by itself; what a person let be pushed is checked by the project's hook.
#[must_use]
pub fn runs_git(effects: &Effects) -> bool {
    let is_git = |effect: &Effect| {
        effect.resource.kind == ResourceKind::Command && GITS.contains(&effect.resource.name.as_str())
    };
    let pushes =
        |effect: &Effect| effect.resource.kind == ResourceKind::Repository && effect.verb == Verb::Send;
    effects.iter().any(is_git) && !effects.iter().any(pushes)
}

/// The level that the answer gives. Without one nothing can be contained.
#[must_use]
pub fn level_of(facts: &Facts) -> Level {
    let Some(FactAnswer::Known(value)) = facts.get(&level_request()) else { return Level::None };
    let is_reached = |level: Level| value.get(level.as_str()) == Some(&Value::Bool(true));
    match (is_reached(Level::Process), is_reached(Level::Namespace)) {
        (true, true) => Level::Namespace,
        (true, false) => Level::Process,
        (false, _) => Level::None,
    }
}

impl Bundle {
    /// The profile that an action of a run runs under, if it is permitted; `None` if the bundle contains no such action.
    ///
    /// # Errors
    /// As [`ContainSettings::profile_for`].
    #[must_use]
    pub fn contained(
        &self,
        place: Option<&Place>,
        action: &Action,
        effects: &Effects,
    ) -> Option<Result<Profile, String>> {
        let tool = self.registry.get(action.tool()?)?;
        let folder =
            |of_run: Option<&String>, of_bundle: Option<&String>| of_run.or(of_bundle).map(PathBuf::from);
        let workspace =
            folder(place.and_then(|place| place.workspace.as_ref()), self.effects.workspace.as_ref());
        let home = folder(place.and_then(|place| place.home.as_ref()), self.effects.home.as_ref());
        let workspace = workspace.as_deref();
        let places = Places { workspace, home: home.as_deref(), here: workspace };
        self.contain.profile_for(tool, effects, &places)
    }
}

impl ContainSettings {
    /// The profile of that name: the bundle's, or a built-in one.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<Profile> {
        self.profiles.get(name).cloned().or_else(|| built_in_profile(name))
    }

    /// Whether calls of this tool hold a command line, which can be contained.
    #[must_use]
    pub fn can_contain(tool: &Tool) -> bool {
        tool.effects.iter().any(|argument| argument.effect == SHELL)
    }

    /// The profile that a call of a tool with these effects runs under, if they are permitted: what the bundle says,
    /// and what the effects need besides. `None` if the bundle contains no such call.
    ///
    /// # Errors
    /// The bundle contains such calls, but not this one: why.
    #[must_use]
    pub fn profile_for(
        &self,
        tool: &Tool,
        effects: &Effects,
        places: &Places<'_>,
    ) -> Option<Result<Profile, String>> {
        let of_tool = self.tools.get(&tool.name).or_else(|| self.tools.get(&tool.id));
        let base = of_tool.unwrap_or(&self.default).as_deref().filter(|_| Self::can_contain(tool))?;
        let mut named: Vec<&str> = Vec::new();
        for (command, profile) in self.commands_of(effects) {
            match profile {
                Some(profile) if named.contains(&profile) => {}
                Some(profile) => named.push(profile),
                // What else the line does must be in its text: an exempt command is no way out for the others.
                None if effects.are_seen() => {
                    return Some(Err(format!("the bundle does not contain `{command}`")));
                }
                None => {}
            }
        }
        if named.is_empty() {
            named.push(base);
        }
        let mut profiles = named.into_iter().filter_map(|name| self.profile(name));
        let first = profiles.next()?;
        let profile = profiles.fold(first, join).at(places);
        let mut allowed = profile.and_then(|profile| allowing(profile, effects, places));
        // Beside something that may write anything, nobody can tell what git wrote.
        if let Ok(profile) = &mut allowed
            && !effects.are_seen()
        {
            profile.git = Git::Held;
        }
        Some(allowed)
    }

    /// The programs of a line for which the bundle has a profile, or none, in its own words.
    fn commands_of<'s>(&'s self, effects: &Effects) -> Vec<(&'s str, Option<&'s str>)> {
        let mut all = Vec::new();
        for effect in effects.iter().filter(|effect| effect.verb == Verb::Execute) {
            let resource = &effect.resource;
            if resource.kind != ResourceKind::Command {
                continue;
            }
            let whole = match resource.attributes.get("subcommand") {
                Some(Attribute::Text(subcommand)) => format!("{} {subcommand}", resource.name),
                _ => resource.name.clone(),
            };
            let found =
                self.commands.get_key_value(&whole).or_else(|| self.commands.get_key_value(&resource.name));
            all.extend(found.map(|(command, profile)| (command.as_str(), profile.as_deref())));
        }
        all
    }
}

/// What was read, and the tools that it names.
pub(super) type Read = (ContainSettings, Vec<Placed<String>>, BTreeMap<String, McpServer>);

/// Takes the three tables out of the main file, with where servers are.
pub(super) fn read(file: &File<'_>, main: &mut Table<'_, '_>) -> Read {
    let mut stated = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (name, table) in limited(file, main.named_tables("profile"), "profiles") {
        check_name(file, &name);
        if name.value == NONE {
            file.report(file.at(name.span.clone(), "`none` stands for no profile; choose another name"));
        }
        places.insert(name.value.clone(), (file.at(name.span, ""), false));
        stated.insert(name.value, Stated::read(file, table));
    }
    let mut contained = Vec::new();
    let (mut mcp_servers, mut server_places) = (BTreeMap::new(), BTreeMap::new());
    for (name, mut table) in limited(file, main.named_tables("server"), "servers") {
        check_name(file, &name);
        if let Some(server) = servers::read(file, &name, &mut table) {
            server_places.insert(name.value.clone(), file.at(name.span.clone(), ""));
            mcp_servers.insert(name.value.clone(), server);
        }
        contained.extend(table.table("contain").map(|table| (name, table)));
        table.finish();
    }
    servers::check(file, &mcp_servers, &server_places);
    let mut settings = ContainSettings::default();
    for profile in stated.values() {
        mark(&mut places, profile.extends.as_ref().map(|extends| extends.value.as_str()));
    }
    settings.profiles = profiles::flat(file, &stated);
    settings.places = places;
    settings.servers = contained
        .into_iter()
        .filter_map(|(name, table)| {
            Some((name.value.clone(), server(file, &name.value, table, &stated, &mut settings)?))
        })
        .collect();
    let tools = main.table("contain").map(|table| contain(file, table, &mut settings)).unwrap_or_default();
    (settings, tools, mcp_servers)
}

/// `[contain]`; the tools that it names.
fn contain(file: &File<'_>, mut table: Table<'_, '_>, settings: &mut ContainSettings) -> Vec<Placed<String>> {
    let default = table.string("default");
    settings.below = table
        .word("below", &[("deny", Below::Deny), ("hold", Below::Hold), ("uncontained", Below::Uncontained)])
        .unwrap_or_default();
    let more = [("warn", OnMore::Warn), ("review", OnMore::Review), ("deny", OnMore::Deny)];
    settings.more = table.word("more", &more).unwrap_or_default();
    let tools = limited(file, table.entries("tools").unwrap_or_default(), "tools");
    let commands = limited(file, table.entries("commands").unwrap_or_default(), "commands");
    table.finish();
    settings.default = default.and_then(|name| chosen(file, name, settings));
    let mut named = Vec::with_capacity(tools.len());
    for (tool, profile) in tools {
        let profile = chosen(file, profile, settings);
        settings.tools.insert(tool.value.clone(), profile);
        named.push(placed(file, tool));
    }
    for (command, profile) in commands {
        if command.value.is_empty() || command.value.contains('/') || command.value.split(' ').count() > 2 {
            let message = format!("`{}` is no program, as in `npm`, or `git push`", command.value);
            file.report(file.at(command.span.clone(), message));
        }
        let profile = chosen(file, profile, settings);
        settings.commands.insert(command.value, profile);
    }
    named
}

/// A profile by its name; `None` for `none`, and for one that does not exist, which is reported.
fn chosen(file: &File<'_>, name: Field<String>, settings: &mut ContainSettings) -> Option<String> {
    if name.value == NONE {
        return None;
    }
    mark(&mut settings.places, Some(&name.value));
    if settings.profile(&name.value).is_none() && !settings.places.contains_key(&name.value) {
        let known = settings.places.keys().map(String::as_str).chain(BUILT_IN).chain([NONE]);
        let message = format!("there is no profile `{}`", name.value);
        file.report(file.at(name.span, message).did_you_mean(&name.value, known));
    }
    Some(name.value)
}

/// `[server."NAME".contain]`: a profile of its own, or the name of one.
fn server(
    file: &File<'_>,
    server: &str,
    mut table: Table<'_, '_>,
    stated: &BTreeMap<String, Stated>,
    settings: &mut ContainSettings,
) -> Option<Profile> {
    if let Some(name) = table.string("profile") {
        table.finish();
        let name = chosen(file, name, settings)?;
        return settings.profile(&name);
    }
    let name = format!("{SERVER}{server}");
    let own = Stated::read(file, table);
    mark(&mut settings.places, own.extends.as_ref().map(|extends| extends.value.as_str()));
    profiles::flat_one(file, &name, &own, stated)
}

fn mark(places: &mut BTreeMap<String, (Diagnostic, bool)>, name: Option<&str>) {
    if let Some((_, used)) = name.and_then(|name| places.get_mut(name)) {
        *used = true;
    }
}

fn check_name(file: &File<'_>, name: &Field<String>) {
    if name.value.trim().is_empty() || name.value.len() > NAME_BYTES_MAX || name.value.starts_with(SERVER) {
        let message = format!("a name has 1 to {NAME_BYTES_MAX} bytes, and does not begin with `{SERVER}`");
        file.report(file.at(name.span.clone(), message));
    }
}

fn limited<T>(file: &File<'_>, mut all: Vec<(Field<String>, T)>, what: &str) -> Vec<(Field<String>, T)> {
    if let Some((first, _)) = all.get(ENTRIES_MAX) {
        file.report(file.at(first.span.clone(), format!("there are more than {ENTRIES_MAX} {what}")));
    }
    all.truncate(ENTRIES_MAX);
    all
}
