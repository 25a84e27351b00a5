//! Runs that open others: whether the records of several runs agree on it, and whether a tree of them is whole.
//!
//! A run that opens another one says so in an event (`child-opened`), and the first event of the other one names that
//! event by number and link. When the other one has ended, the first says with which event and link (`child-closed`). So
//! neither record can be exchanged, nor the end of the other one cut off, without the first saying otherwise. The rules
//! are in `specs/transparency-log.md` §7.1.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chain::{Digest, Id};
use crate::event::Event;

/// The name of the file that says that an export is a tree.
pub const TREE_FILE: &str = "tree";
/// The first line of that file.
pub const TREE_FORMAT: &str = "portcullis-tree/v1";
/// The most runs that one run opens, the most ends of them, and the most ends of its own, that are followed.
pub const KIN_MAX: usize = 1 << 16;

/// What was done to runs that open others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KinAttack {
    /// The records do not agree on who opened whom, or how one ended.
    KinMismatched,
    /// A run of the tree is not there.
    KinMissing,
    /// A run is there that is not of the tree.
    KinForeign,
    /// The file that names the root of the tree is not of its form.
    TreeMalformed,
}

impl fmt::Display for KinAttack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Serialize::serialize(self, f)
    }
}

/// A run, and an event that is named with its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Named {
    run: Id,
    seq: u64,
    link: Digest,
}

/// The end of a run, as the one that opened it has it: without a link where it never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct End {
    run: Id,
    count: u64,
    #[serde(default)]
    link: Option<Digest>,
}

/// What the record of one run says of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kin {
    /// The run that opened it, with the event that says so.
    parent: Option<Named>,
    /// The runs that it opened, with the event of its own.
    opened: Vec<Named>,
    /// How they ended, with the number of the event that says so.
    closed: Vec<(u64, End)>,
    /// The links of the events that ended its own segments.
    ends: BTreeMap<u64, Digest>,
    /// The first event whose body says any of this, and not in its form.
    malformed: Option<u64>,
}

#[derive(Deserialize)]
struct Line<B> {
    body: B,
}

#[derive(Deserialize)]
struct Opened {
    parent: Option<Named>,
}

#[derive(Deserialize)]
struct Child {
    run: Id,
}

impl Kin {
    /// Takes an event that follows from the chain; an error when there are more than are followed.
    pub(crate) fn event(&mut self, line: &[u8], event: &Event<'_>, link: Digest) -> Result<(), ()> {
        match (&*event.kind, event.body.text("change")) {
            ("run-opened", _) if event.body.has("parent") => match body::<Opened>(line) {
                Some(Opened { parent: Some(parent) }) => self.parent = Some(parent),
                _ => self.is_malformed(event.seq),
            },
            ("config", Ok("child-opened")) => match body::<Child>(line) {
                Some(Child { run }) => self.opened.push(Named { run, seq: event.seq, link }),
                None => self.is_malformed(event.seq),
            },
            ("config", Ok("child-closed")) => match body::<End>(line) {
                Some(end) => self.closed.push((event.seq, end)),
                None => self.is_malformed(event.seq),
            },
            ("run-closed", _) => drop(self.ends.insert(event.seq, link)),
            _ => {}
        }
        let most = self.opened.len().max(self.closed.len()).max(self.ends.len());
        if most > KIN_MAX { Err(()) } else { Ok(()) }
    }

    fn is_malformed(&mut self, seq: u64) {
        self.malformed.get_or_insert(seq);
    }

    /// Whether a run was opened and never began.
    fn never_began(&self, run: Id) -> bool {
        self.closed.iter().any(|(_, end)| end.run == run && end.count == 0)
    }
}

/// The body of a line that was read before, strictly.
fn body<'a, B: Deserialize<'a>>(line: &'a [u8]) -> Option<B> {
    serde_json::from_slice::<Line<B>>(line).ok().map(|line| line.body)
}

/// A run of an export of several.
#[derive(Debug, Clone, Copy)]
pub struct Member<'k> {
    /// The run.
    pub run: Id,
    /// What its record says of others.
    pub kin: &'k Kin,
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KinFailure {
    /// What was done.
    pub attack: KinAttack,
    /// The place among the members of the run that it is found in, or `None` for the file [`TREE_FILE`].
    pub member: Option<usize>,
    /// The event of that run that says so.
    pub seq: Option<u64>,
    /// What was expected, and what was found instead.
    pub message: String,
}

/// Reads the file that names the root of a tree.
///
/// # Errors
/// It is not of its form.
pub fn root_of(file: &[u8]) -> Result<Id, KinFailure> {
    let text = str::from_utf8(file).unwrap_or_default();
    let id = text.strip_prefix(TREE_FORMAT).and_then(|rest| rest.strip_prefix("\nrun "));
    id.and_then(|id| id.strip_suffix('\n')?.parse().ok()).ok_or_else(|| {
        let message = format!("expected the line `{TREE_FORMAT}` and the line `run ID`, and nothing else");
        KinFailure { attack: KinAttack::TreeMalformed, member: None, seq: None, message }
    })
}

/// The file that names the root of a tree.
#[must_use]
pub fn tree_file(root: Id) -> String {
    format!("{TREE_FORMAT}\nrun {root}\n")
}

/// Whether the records of several runs agree with each other and, with a root, whether they are that run and all runs
/// below it. Each of them was verified on its own, and none is there twice.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(members: &[Member<'_>], root: Option<Id>) -> Result<(), KinFailure> {
    let places: BTreeMap<Id, usize> =
        members.iter().enumerate().map(|(place, member)| (member.run, place)).collect();
    let found = |run: Id| places.get(&run).and_then(|place| members.get(*place));
    for (place, member) in members.iter().enumerate() {
        let fail = |attack, seq, message: String| {
            Err(KinFailure { attack, member: Some(place), seq: Some(seq), message })
        };
        let mismatched = |seq, message| fail(KinAttack::KinMismatched, seq, message);
        let Kin { parent, opened, closed, malformed, .. } = member.kin;
        if let Some(seq) = *malformed {
            return mismatched(seq, "the event does not say which run it is about".to_owned());
        }
        if let Some(parent) = parent
            && let Some(other) = found(parent.run)
        {
            let says = Named { run: member.run, ..*parent };
            if !other.kin.opened.contains(&says) {
                let message = format!("run `{}` did not open this one with event {}", parent.run, parent.seq);
                return mismatched(1, message);
            }
        }
        let mut known = BTreeSet::new();
        for child in opened {
            let by = Some(Named { run: member.run, ..*child });
            if !known.insert(child.run) {
                return mismatched(child.seq, format!("run `{}` was opened before", child.run));
            }
            match found(child.run) {
                Some(other) if other.kin.parent != by => {
                    let message = format!("run `{}` does not say that this event opened it", child.run);
                    return mismatched(child.seq, message);
                }
                None if root.is_some() && !member.kin.never_began(child.run) => {
                    let message = format!("run `{}`, which this run opened, is not there", child.run);
                    return fail(KinAttack::KinMissing, child.seq, message);
                }
                _ => {}
            }
        }
        for (seq, end) in closed {
            let before = opened.iter().any(|child| child.run == end.run && child.seq < *seq);
            let there = found(end.run);
            let ended = match (end.count, end.link) {
                (0, None) => there.is_none(),
                (1.., Some(link)) => there.is_none_or(|other| other.kin.ends.get(&end.count) == Some(&link)),
                _ => false,
            };
            if !before || !ended {
                let message = format!("run `{}` did not end like this: event {}", end.run, end.count);
                return mismatched(*seq, message);
            }
        }
    }
    root.map_or(Ok(()), |root| whole(members, &places, root))
}

/// Whether the root is there, and every other run below it.
fn whole(members: &[Member<'_>], places: &BTreeMap<Id, usize>, root: Id) -> Result<(), KinFailure> {
    let mut open: Vec<usize> = places.get(&root).copied().into_iter().collect();
    if open.is_empty() {
        let (attack, message) = (KinAttack::KinMissing, format!("run `{root}` is not there"));
        return Err(KinFailure { attack, member: None, seq: None, message });
    }
    let mut reached = BTreeSet::new();
    while let Some(place) = open.pop() {
        if reached.insert(place)
            && let Some(member) = members.get(place)
        {
            open.extend(member.kin.opened.iter().filter_map(|child| places.get(&child.run)));
        }
    }
    match (0..members.len()).find(|place| !reached.contains(place)) {
        None => Ok(()),
        Some(place) => {
            let message = format!("the run is not below run `{root}`");
            Err(KinFailure { attack: KinAttack::KinForeign, member: Some(place), seq: None, message })
        }
    }
}
