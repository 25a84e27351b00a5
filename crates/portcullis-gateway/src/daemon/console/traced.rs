//! What is known of a call beyond its events: what it was read to do beside what was seen of it, and where its values
//! come from.
//!
//! Values are looked for in the texts that came before, as they stand there. That says where a value was seen, not what
//! the guards made of it: what they rest on is in their findings.

use std::collections::BTreeSet;

use portcullis_console::approvals::SeenOf;
use portcullis_console::event::{Effect, Origin, ValueOrigin, Who};
use portcullis_core::aside::OBSERVED;
use portcullis_core::event::{Event, EventBody, Proposed};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::label::Label;
use portcullis_core::observed::{ConnectionVerdict, FileChangeHow, Observed, Seen as Extent};
use portcullis_ledger::{LedgerError, Reader};
use portcullis_session::engine::Proposal;
use serde_json::Value;

use super::index::{Index, Kind};

/// Values of a call that are traced.
const VALUES_MAX: usize = 8;
/// Shortest and longest value that names something, in bytes.
const VALUE_BYTES: std::ops::RangeInclusive<usize> = 3..=200;
/// Texts before the call that are looked through, the latest.
const TEXTS_MAX: usize = 120;
/// What is read of them together, in bytes.
const READ_BYTES_MAX: u64 = 2 << 20;
/// Places of a value that are shown: the first ones.
const ORIGINS_MAX: usize = 3;
/// Words around a value, in characters.
const AROUND_CHARS: usize = 40;
/// Effects that are listed.
const EFFECTS_MAX: usize = 40;
/// Events of a call that are looked through for what was seen of it.
const EVENTS_MAX: usize = 64;

/// What was found of a call.
#[derive(Debug, Default)]
pub(super) struct Traced {
    /// The call as it was proposed, for who can read what it would touch.
    pub(super) proposal: Option<Proposal>,
    /// What was seen of it, where it ran contained and has ended.
    observed: Option<Observed>,
    /// Where its values come from.
    pub(super) origins: Vec<ValueOrigin>,
}

impl Traced {
    /// Looks into the call that an event is, or belongs to.
    pub(super) fn of(
        reader: &dyn Reader,
        run: RunId,
        index: &Index,
        seq: u64,
    ) -> Result<Option<Self>, LedgerError> {
        let Some(action) = entry(index, seq).and_then(|entry| entry.action) else { return Ok(None) };
        let of_call = |seq: &u64| {
            entry(index, *seq).is_some_and(|entry| entry.kind == Kind::Call && entry.action == Some(action))
        };
        let Some(call) = (1..=seq).rev().find(of_call) else { return Ok(None) };
        let Some(event) = event(reader, run, call)? else { return Ok(None) };
        let EventBody::Proposed(proposed) = &event.body else { return Ok(None) };
        let arguments =
            text(reader, run, &event, "arguments")?.and_then(|text| serde_json::from_str(&text).ok());
        let Some(arguments) = arguments else { return Ok(None) };
        let origins = if call == seq { origins(reader, run, index, call, &arguments)? } else { Vec::new() };
        let observed = observed(reader, run, index, call, action)?;
        let planned = text(reader, run, &event, "planned")?;
        Ok(Some(Self { proposal: Some(proposal(proposed, arguments, planned)), observed, origins }))
    }

    /// What it was read to do, where that is known, beside what was seen.
    pub(super) fn effects(&self, predicted: Option<&[String]>) -> Vec<Effect> {
        let seen = self.observed.as_ref().map(done);
        let files = self.observed.as_ref().is_some_and(|observed| observed.files.seen == Extent::All);
        let was_seen = |what: &str| match &seen {
            Some(seen) if seen.iter().any(|done| covers(what, done)) => Some(true),
            // What can be seen was not.
            Some(_) if files && ["write path ", "delete path "].iter().any(|verb| what.starts_with(verb)) => {
                Some(false)
            }
            _ => None,
        };
        let mut effects: Vec<Effect> = predicted
            .unwrap_or_default()
            .iter()
            .map(|what| Effect { what: what.clone(), predicted: Some(true), observed: was_seen(what) })
            .collect();
        for done in seen.into_iter().flatten() {
            if !effects.iter().any(|effect| covers(&effect.what, &done)) {
                let known = predicted.map(|_| false);
                effects.push(Effect { what: done, predicted: known, observed: Some(true) });
            }
        }
        effects.truncate(EFFECTS_MAX);
        effects
    }
}

fn proposal(proposed: &Proposed, arguments: Value, planned: Option<String>) -> Proposal {
    Proposal {
        tool: proposed.tool.clone(),
        server: proposed.server.clone(),
        arguments,
        planned,
        directory: proposed.directory.clone(),
        ..Proposal::default()
    }
}

fn entry(index: &Index, seq: u64) -> Option<&super::index::Entry> {
    index.entries.get(usize::try_from(seq.checked_sub(1)?).ok()?)
}

fn event(reader: &dyn Reader, run: RunId, seq: u64) -> Result<Option<Event>, LedgerError> {
    let stored = reader.events(run, seq.saturating_sub(1), 1)?;
    Ok(stored.first().and_then(|stored| Event::from_line(&stored.line).ok()))
}

fn text(reader: &dyn Reader, run: RunId, event: &Event, name: &str) -> Result<Option<String>, LedgerError> {
    let Some(payload) = event.payloads.get(name).filter(|payload| payload.bytes <= READ_BYTES_MAX) else {
        return Ok(None);
    };
    let stored = reader.payload(run, payload.commitment)?;
    Ok(stored.map(|stored| String::from_utf8_lossy(stored.bytes()).into_owned()))
}

/// What was seen of a call that ran contained, once it ended.
fn observed(
    reader: &dyn Reader,
    run: RunId,
    index: &Index,
    call: u64,
    action: ActionId,
) -> Result<Option<Observed>, LedgerError> {
    let own = (call..=index.last()).filter(|seq| {
        entry(index, *seq).is_some_and(|entry| entry.action == Some(action) && entry.kind == Kind::Notable)
    });
    for seq in own.take(EVENTS_MAX) {
        let Some(event) = event(reader, run, seq)? else { continue };
        if let EventBody::Observed(_) = event.body
            && let Some(read) = text(reader, run, &event, OBSERVED)?
            && let Ok(observed) = serde_json::from_str(&read)
        {
            return Ok(Some(observed));
        }
    }
    Ok(None)
}

/// What was seen of a call that ran contained, in words: how it ended, and what it did.
pub(super) fn seen_of(
    reader: &dyn Reader,
    run: RunId,
    index: &Index,
    call: u64,
) -> Result<Option<SeenOf>, LedgerError> {
    let Some(action) =
        entry(index, call).filter(|entry| entry.kind == Kind::Call).and_then(|entry| entry.action)
    else {
        return Ok(None);
    };
    let observed = observed(reader, run, index, call, action)?;
    Ok(observed.map(|observed| {
        let mut did = done(&observed);
        did.extend(
            observed
                .connections
                .iter()
                .filter(|one| one.verdict != ConnectionVerdict::Permitted)
                .map(|one| format!("refused: send host {}", one.host)),
        );
        let more = did.len().saturating_sub(EFFECTS_MAX);
        did.truncate(EFFECTS_MAX);
        SeenOf { profile: observed.profile, did, more }
    }))
}

/// What was done, named as effects are.
fn done(observed: &Observed) -> Vec<String> {
    let mut names = BTreeSet::new();
    for change in &observed.files.changes {
        let verb = if change.how == FileChangeHow::Deleted { "delete" } else { "write" };
        names.insert(format!("{verb} path {}", change.path.display()));
    }
    for connection in &observed.connections {
        if connection.verdict == ConnectionVerdict::Permitted {
            names.insert(format!("send host {}", connection.host));
        }
    }
    names.into_iter().collect()
}

/// Whether what was read names what was done: the same thing, a folder that it is in, or an address at its host.
fn covers(read: &str, done: &str) -> bool {
    if read == done {
        return true;
    }
    if let Some(host) = done.strip_prefix("send host ") {
        return read.split(['/', '@', ' ', ':']).any(|part| part == host);
    }
    let within = done.strip_prefix(read);
    within.is_some_and(|rest| rest.starts_with('/') || read.ends_with('/'))
}

/// Where the values of a call were seen before.
fn origins(
    reader: &dyn Reader,
    run: RunId,
    index: &Index,
    call: u64,
    arguments: &Value,
) -> Result<Vec<ValueOrigin>, LedgerError> {
    let mut values: Vec<ValueOrigin> = Vec::new();
    leaves(arguments, String::new(), &mut values);
    if values.is_empty() {
        return Ok(values);
    }
    let before = index.texts.partition_point(|seq| *seq < call);
    let texts = index.texts.get(before.saturating_sub(TEXTS_MAX)..before).unwrap_or_default();
    let (mut bytes, mut spoke) = (0, None);
    for seq in texts {
        let Some(event) = event(reader, run, *seq)? else { continue };
        let (who, name) = match &event.body {
            EventBody::Input { label: Label::Operator } => (Who::Operator, "text"),
            EventBody::Input { .. } => (Who::User, "text"),
            EventBody::Output {} => (Who::Agent, "text"),
            _ => (Who::Tool, "content"),
        };
        bytes += event.payloads.get(name).map_or(0, |payload| payload.bytes);
        if bytes > READ_BYTES_MAX {
            break;
        }
        let Some(text) = text(reader, run, &event, name)? else { continue };
        let handed_on = (who == Who::Tool).then(|| came(index, *seq, spoke)).flatten();
        for value in values.iter_mut().filter(|value| value.from.len() < ORIGINS_MAX) {
            let Some((before, named, after)) = around(&text, &value.value) else { continue };
            value.from.push(Origin { seq: *seq, who, before, named, after, handed_on: handed_on.clone() });
        }
        if who == Who::User {
            spoke = Some(*seq);
        }
    }
    Ok(values)
}

/// How a tool's text came into the run: the call that it answers, and what the user had said last.
fn came(index: &Index, seq: u64, spoke: Option<u64>) -> Option<String> {
    let action = entry(index, seq)?.action?;
    let call = (1..seq).rev().find(|seq| {
        entry(index, *seq).is_some_and(|entry| entry.kind == Kind::Call && entry.action == Some(action))
    })?;
    let tool = entry(index, call)?.name.as_deref()?;
    let words = spoke.map_or_else(String::new, |spoke| {
        format!(", which the agent called after the user’s words in event {spoke}")
    });
    Some(format!("result of {tool}{words}"))
}

/// Texts of a call that can name something, with where they stand.
fn leaves(value: &Value, at: String, found: &mut Vec<ValueOrigin>) {
    if found.len() >= VALUES_MAX {
        return;
    }
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match value {
        Value::String(text) if VALUE_BYTES.contains(&text.len()) && !text.contains('\n') => {
            let known = found.iter().any(|value| value.value == *text);
            if !known {
                found.push(ValueOrigin { argument: at, value: text.clone(), from: Vec::new() });
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, item)| leaves(item, below(&place.to_string()), found))
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| leaves(member, below(name), found))
        }
        _ => {}
    }
}

/// The first place of a value in a text, with the words around it. Upper and lower case are the same where both are ASCII.
fn around(text: &str, value: &str) -> Option<(String, String, String)> {
    let at = text.find(value).or_else(|| text.to_ascii_lowercase().find(&value.to_ascii_lowercase()))?;
    let (before, rest) = text.split_at_checked(at)?;
    let (named, after) = rest.split_at_checked(value.len())?;
    let start = before.char_indices().rev().nth(AROUND_CHARS).map(|(at, _)| at);
    let end = after.char_indices().nth(AROUND_CHARS).map(|(at, _)| at);
    let before =
        start.map_or_else(|| before.to_owned(), |at| format!("…{}", before.get(at..).unwrap_or_default()));
    let after =
        end.map_or_else(|| after.to_owned(), |at| format!("{}…", after.get(..at).unwrap_or_default()));
    Some((before, named.to_owned(), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_done_is_held_against_what_was_read() {
        for (read, done, is) in [
            ("write path /srv/app", "write path /srv/app", true),
            ("write path /srv/app", "write path /srv/app/a/b", true),
            ("write path /srv/app", "write path /srv/application", false),
            ("write path /srv/app", "delete path /srv/app", false),
            ("send url https://api.example.com/v1", "send host api.example.com", true),
            ("send host example.com", "send host api.example.com", false),
        ] {
            assert_eq!(covers(read, done), is, "{read}, {done}");
        }
        let changed = |path: &str| json!({ "path": path, "how": "made" });
        let observed = json!({
            "level": "process", "profile": "p", "ended": { "status": 0 }, "wall_ms": 1, "cpu_ms": 1, "survivors": 0,
            "limits": [], "put_back": [], "programs": { "seen": "nothing", "started": [] },
            "files": { "seen": "all", "changes": [changed("/w/a"), changed("/home/x/.bashrc")] },
            "connections": [{ "host": "evil.example", "port": 443, "sent": 1, "received": 1, "verdict": "permitted" }],
            "refused": { "seen": "nothing", "attempts": [] },
        });
        let traced =
            Traced { observed: Some(serde_json::from_value(observed).unwrap()), ..Traced::default() };
        let predicted =
            ["write path /w".to_owned(), "delete path /w/b".to_owned(), "read path /w/c".to_owned()];
        let effects = traced.effects(Some(&predicted));
        let told: Vec<_> =
            effects.iter().map(|one| (one.what.as_str(), one.predicted, one.observed)).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(
            told,
            [
                ("write path /w", yes, yes),
                ("delete path /w/b", yes, no),
                ("read path /w/c", yes, None),
                ("send host evil.example", no, yes),
                ("write path /home/x/.bashrc", no, yes),
            ]
        );
        let later = traced.effects(None);
        assert!(later.iter().all(|effect| effect.predicted.is_none() && effect.observed == yes), "{later:?}");
    }

    #[test]
    fn values_are_found_with_the_words_around_them() {
        let mut values = Vec::new();
        let call =
            json!({ "to": ["Ann@Example.com", "ab"], "body": "two\nlines", "n": 4, "cc": "Ann@Example.com" });
        leaves(&call, String::new(), &mut values);
        let named: Vec<_> =
            values.iter().map(|value| (value.argument.as_str(), value.value.as_str())).collect();
        assert_eq!(named, [("to.0", "Ann@Example.com")]);
        let (before, named, after) = around("Größe: write to ann@example.com.", "Ann@Example.com").unwrap();
        assert_eq!(
            (before.as_str(), named.as_str(), after.as_str()),
            ("Größe: write to ", "ann@example.com", ".")
        );
        let long = format!("{}x{}", "ä".repeat(100), "ö".repeat(100));
        let (before, _, after) = around(&long, "x").unwrap();
        assert_eq!((before.chars().count(), after.chars().count()), (AROUND_CHARS + 2, AROUND_CHARS + 1));
        assert_eq!(around("nothing", "x"), None);
    }
}
