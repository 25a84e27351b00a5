//! Settings in JSON, with the events under `hooks` or alone in the file. Whatever else is in the file stays as it is
//! written: see [`super::edit`].

use std::fs;
use std::path::Path;

use portcullis_wire::hook::Agent;
use serde_json::Value;

use super::agents::{self, Form, Place};
use super::changed::{Told, switched_off};
use super::command::{command, hooks_of, own_command};
use super::document::{Document, Member, Mistake, Node};
use super::edit::{Edit, Layout, edited, on_one_line, put_into, take_out, was_empty};
use super::{Change, InstallError, Settings, Standing, standing_of, text_of};

/// Under which name settings have the events.
const HOOKS: &str = "hooks";
const VERSION: &str = "version";

/// What an agent's settings hold.
struct Held {
    agent: Agent,
    place: &'static Place,
    document: Document,
}

/// What of a list is ours.
struct Ours {
    /// The entries that are, as they stand in the list.
    gone: Vec<bool>,
    /// Hooks in entries that have others as well.
    inner: Vec<Edit>,
    number: usize,
}

pub(super) fn install(settings: &Settings) -> Result<Change, InstallError> {
    let Settings { agent, file, .. } = settings;
    let command = command(settings)?;
    let before = text_of(file)?;
    let held = Held::read(*agent, file, before.clone(), Some(&command))?;
    if before.is_none() {
        held.shadows_nothing(file)?;
    }
    let unfit = |why: String| InstallError::unfit(file, &why);
    let (rest, replaced) = held.without_ours().map_err(unfit)?;
    let after = if held.is_installed(&command, replaced) {
        before.clone()
    } else {
        let fresh = before.is_none() || rest.is_none();
        let held = Held::read(*agent, file, rest, None)?;
        Some(held.with(&command, fresh))
    };
    Ok(Change { command: Some(command), ..held.change(file, replaced, before, after) })
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let before = text_of(path)?;
    let held = Held::read(agent, path, before.clone(), None)?;
    let (rest, removed) = held.without_ours().map_err(|why| InstallError::unfit(path, &why))?;
    let after = match rest {
        _ if removed == 0 => before.clone(),
        // What a link leads to is kept elsewhere on purpose.
        None if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => Some("{}\n".to_owned()),
        rest => rest,
    };
    Ok(held.change(path, removed, before, after))
}

pub(super) fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let held = Held::read(agent, path, text_of(path)?, None)?;
    let mut found = Vec::new();
    for (event, blocks) in held.place.events {
        found.push((*event, Told { agent, event, blocks: *blocks }.by(&held.entries(event))));
    }
    let root = held.document.root.as_ref().map_or(Value::Null, |root| held.document.value(root));
    Ok(match (standing_of(found), switched_off(&root)) {
        (Standing::Absent, _) => Standing::Absent,
        (_, Some(why)) => Standing::Changed(why),
        (standing, None) => standing,
    })
}

impl Held {
    /// Reads a file's text; `command` is that of an installation, for the entries that are to be added by hand.
    fn read(
        agent: Agent,
        path: &Path,
        text: Option<String>,
        command: Option<&str>,
    ) -> Result<Self, InstallError> {
        let place = agents::place(agent);
        let read =
            |text, comments| Document::read(text, comments).map(|document| Self { agent, place, document });
        let held = read(text.unwrap_or_default(), place.comments).map_err(|mistake| match mistake {
            Mistake::Other(why) => InstallError::unfit(path, &why),
            Mistake::Comment(at) => {
                let why = format!(
                    "{at}; {} is not known to read settings with comments: take them out",
                    agent.name()
                );
                let entries = command.zip(read(String::new(), false).ok());
                let by_hand = entries.map(|(command, empty)| empty.with(command, true));
                InstallError::Unfit { path: path.to_owned(), why, by_hand }
            }
        })?;
        held.has_each_once().map_err(|why| InstallError::unfit(path, &why))?;
        Ok(held)
    }

    fn members(&self) -> &[Member] {
        self.document.root.as_ref().and_then(Node::members).unwrap_or_default()
    }

    /// The object that holds the events.
    fn events(&self) -> Option<&Node> {
        match self.place.form {
            Form::Events => self.document.root.as_ref(),
            _ => self.members().iter().find(|member| member.name == HOOKS).map(|member| &member.value),
        }
    }

    /// The list of an event.
    fn list(&self, event: &str) -> Option<&Node> {
        let members = self.events().and_then(Node::members)?;
        members.iter().find(|member| member.name == event).map(|member| &member.value)
    }

    /// Refuses what agents would read in more than one way, or not at all, on the way to our entries.
    fn has_each_once(&self) -> Result<(), String> {
        let hooks = self.document.only(self.members(), HOOKS)?;
        if hooks.is_some() && self.place.form == Form::Events {
            return Err(
                "it has `hooks`, which is not read in this file; move what is in it to the top".to_owned()
            );
        }
        let Some(events) = self.events() else { return Ok(()) };
        let Some(members) = events.members() else {
            return Err("`hooks` is not an object, `{…}`".to_owned());
        };
        for (event, _) in self.place.events {
            let list = self.document.only(members, event)?;
            if list.is_some_and(|list| list.value.elements().is_none()) {
                return Err(format!("`{event}` is not a list, `[…]`"));
            }
        }
        Ok(())
    }

    /// Refuses to make the file if hooks in files beside it would no longer be read.
    fn shadows_nothing(&self, path: &Path) -> Result<(), InstallError> {
        for name in self.place.shadows {
            let other = path.with_file_name(name);
            let text = text_of(&other)?.unwrap_or_default();
            let read = Document::read(text, true).map_err(|mistake| match mistake {
                Mistake::Comment(why) | Mistake::Other(why) => InstallError::unfit(&other, &why),
            })?;
            let members = read.root.as_ref().and_then(Node::members).unwrap_or_default();
            if members.iter().any(|member| member.name == HOOKS || name.ends_with("hooks.json")) {
                let why =
                    format!("its hooks would no longer be read: move them to `{}` first", path.display());
                return Err(InstallError::unfit(&other, &why));
            }
        }
        Ok(())
    }

    /// The entries of an event.
    fn entries(&self, event: &str) -> Vec<Value> {
        let elements = self.list(event).and_then(Node::elements).unwrap_or_default();
        elements.iter().map(|element| self.document.value(element)).collect()
    }

    /// Whether our entries are there, each once and as an installation writes it, and no others: `number` is that of all.
    fn is_installed(&self, command: &str, number: usize) -> bool {
        let is_written = |(event, blocks): &(&str, bool)| {
            self.entries(event).contains(&agents::entry(self.agent, event, *blocks, command))
        };
        number == self.place.events.len() && self.place.events.iter().all(is_written) && !self.lacks_version()
    }

    fn lacks_version(&self) -> bool {
        self.place.version.is_some() && !self.members().iter().any(|member| member.name == VERSION)
    }

    /// The text with our entries; of a file that is `fresh`, made for them.
    fn with(&self, command: &str, fresh: bool) -> String {
        let layout = Layout::of(&self.document);
        let version = self.place.version.filter(|_| self.lacks_version());
        let version = version.map(|version| format!("\"{VERSION}\": {version}"));
        let whole = |indent: &str| match self.place.form {
            Form::Events => self.made_events(&layout, indent, command),
            _ => {
                let events = self.made_events(&layout, &layout.deeper(indent), command);
                let hooks = format!("\"{HOOKS}\": {}", layout.made(['{', '}'], &events, indent));
                // Behind our events, so that it is known again for ours.
                [hooks].into_iter().chain(version.clone()).collect()
            }
        };
        let Some(root) = &self.document.root else {
            let made = layout.made(['{', '}'], &whole(&layout.deeper("")), "");
            if fresh {
                return format!("{made}\n");
            }
            // An empty file is known again by the line break before ours, which one carriage return must not become part of.
            let blank = &self.document.text;
            let line = if blank.ends_with('\r') { "\r\n" } else { layout.line };
            return format!("{blank}{line}{made}");
        };
        let mut edits = Vec::new();
        match self.events() {
            None => {
                let indent = layout.indent_in(&self.document, root);
                edits.extend(put_into(&self.document, &layout, root, &whole(&indent)));
            }
            Some(events) => {
                edits.extend(self.put_into_events(&layout, events, command));
                edits.extend(version.iter().flat_map(|version| {
                    put_into(&self.document, &layout, root, std::slice::from_ref(version))
                }));
            }
        }
        edited(&self.document.text, edits)
    }

    /// An entry as it stands on its line.
    fn entry(&self, (event, blocks): (&str, bool), command: &str) -> String {
        on_one_line(&agents::entry(self.agent, event, blocks, command))
    }

    /// Members for all events, for an object that has none.
    fn made_events(&self, layout: &Layout, indent: &str, command: &str) -> Vec<String> {
        let member = |event: &(&str, bool)| {
            let list = layout.made(['[', ']'], &[self.entry(*event, command)], indent);
            format!("\"{}\": {list}", event.0)
        };
        self.place.events.iter().map(member).collect()
    }

    fn put_into_events(&self, layout: &Layout, events: &Node, command: &str) -> Vec<Edit> {
        let indent = layout.indent_in(&self.document, events);
        let made = self.made_events(layout, &indent, command);
        let mut edits = Vec::new();
        let mut missing = Vec::new();
        for (event, made) in self.place.events.iter().zip(made) {
            match self.list(event.0) {
                Some(list) => {
                    edits.extend(put_into(&self.document, layout, list, &[self.entry(*event, command)]));
                }
                None => missing.push(made),
            }
        }
        if !missing.is_empty() {
            edits.extend(put_into(&self.document, layout, events, &missing));
        }
        edits
    }

    /// The text without what an earlier installation put in, and how many hooks that were; no text if it was all of the file.
    fn without_ours(&self) -> Result<(Option<String>, usize), String> {
        let (rest, number) = self.cut(true);
        let reads = |rest: &Option<String>| {
            rest.as_ref().is_none_or(|rest| Document::read(rest.clone(), self.place.comments).is_ok())
        };
        if number == 0 || reads(&rest) {
            return Ok((rest, number));
        }
        // A comment would go on into what followed our entry.
        let (rest, number) = self.cut(false);
        if reads(&rest) {
            return Ok((rest, number));
        }
        Err("the entries of the hook cannot be told from what stands around them; take them out by hand"
            .to_owned())
    }

    fn cut(&self, blanks: bool) -> (Option<String>, usize) {
        let document = &self.document;
        let whole = (Some(document.text.clone()), 0);
        let (Some(root), Some(events)) = (&document.root, self.events()) else { return whole };
        let mut edits = Vec::new();
        let mut number = 0;
        let mut gone = Vec::new();
        for member in events.members().unwrap_or_default() {
            // What is under the name of no event is looked into as well: it may have been one.
            let ours = self.ours(&member.value, blanks);
            number += ours.number;
            let all = ours.number > 0 && ours.gone.iter().all(|gone| *gone);
            let is_made = all && !was_empty(document, &member.value);
            if !is_made {
                edits.extend(ours.inner);
                edits.extend(take_out(document, &member.value, &ours.gone, blanks));
            }
            gone.push(is_made);
        }
        if number == 0 {
            return whole;
        }
        let is_made = gone.iter().all(|gone| *gone) && !was_empty(document, events);
        let (object, gone) = match (is_made, self.place.form) {
            (false, _) => (events, gone),
            (true, Form::Events) => (root, gone),
            (true, _) => (root, self.ours_at_the_top()),
        };
        let is_made =
            std::ptr::eq(object, root) && gone.iter().all(|gone| *gone) && !was_empty(document, root);
        if is_made {
            // The line break before it is ours: see `with`.
            let before = document.before(root.range.start);
            let blank = before.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            return (blank.map(str::to_owned), number);
        }
        edits.extend(take_out(document, object, &gone, blanks));
        (Some(edited(&document.text, edits)), number)
    }

    /// What is ours of a value that may be the list of an event.
    fn ours(&self, list: &Node, blanks: bool) -> Ours {
        let mut ours = Ours { gone: Vec::new(), inner: Vec::new(), number: 0 };
        for element in list.elements().unwrap_or_default() {
            let entry = self.document.value(element);
            let own: Vec<bool> = hooks_of(&entry).iter().map(|hook| own_command(hook).is_some()).collect();
            let number = own.iter().filter(|own| **own).count();
            let all = number > 0 && number == own.len();
            if number > 0 && !all {
                // As read, the last one of a name counts.
                let hooks = element.members().unwrap_or_default().iter().rfind(|member| member.name == HOOKS);
                ours.inner.extend(
                    hooks.into_iter().flat_map(|hooks| take_out(&self.document, &hooks.value, &own, blanks)),
                );
            }
            ours.number += number;
            ours.gone.push(all);
        }
        ours
    }

    /// What is ours at the top of the settings: the events, and the version that was put behind them.
    fn ours_at_the_top(&self) -> Vec<bool> {
        let mut after_ours = false;
        let ours = |member: &Member| {
            let is_version = || {
                let value = self.document.value(&member.value);
                member.name == VERSION && self.place.version.is_some_and(|version| value == version)
            };
            let is_ours = member.name == HOOKS || after_ours && is_version();
            after_ours = member.name == HOOKS;
            is_ours
        };
        self.members().iter().map(ours).collect()
    }

    fn change(&self, path: &Path, replaced: usize, before: Option<String>, after: Option<String>) -> Change {
        let events = self.place.events.iter().map(|(event, _)| *event).collect();
        Change { file: path.to_owned(), events, replaced, before, after, ..Change::default() }
    }
}
