//! Reading a policy: words between blanks, names that are bytes, and nothing defined after it is used.

use std::collections::{HashMap, HashSet};

use super::{
    Group, Member, POLICY_BYTES_MAX, POLICY_ITEMS_MAX, Policy, PolicyLog, PolicyWitness, TrustPolicy,
};
use crate::log::checkpoint::Checkpoint;
use crate::log::key::{KeyKind, VerifierKey};
use crate::log::text::{TextError, TextLines, decimal, hash};
use crate::log::tree::TreeHead;

/// The name that stands for no witnesses.
const NONE: &[u8] = b"none";

/// What has been read.
struct Reader<'a> {
    trust: TrustPolicy,
    quorum_read: bool,
    names: HashMap<&'a [u8], Member>,
    /// Names that a group has as a member. A witness that counted twice would make a quorum of one.
    used: HashSet<&'a [u8]>,
}

pub(super) fn read(bytes: &[u8], ours: bool) -> Result<TrustPolicy, TextError> {
    let policy = Policy { logs: Vec::new(), witnesses: Vec::new(), groups: Vec::new(), quorum: None };
    let trust = TrustPolicy { policy, admins: Vec::new(), remembered: Vec::new(), revoked: Vec::new() };
    let mut reader = Reader { trust, quorum_read: false, names: HashMap::new(), used: HashSet::new() };
    let mut lines = TextLines::new(bytes, POLICY_BYTES_MAX)?;
    while let Some((place, line)) = lines.next_bytes()? {
        if line.iter().any(|byte| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f) {
            return Err(place.error("the line has a control character other than a tab"));
        }
        let words: Vec<&[u8]> =
            line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with(b"#") => {}
            words => reader.line(words, ours).map_err(|message| place.error(message))?,
        }
    }
    if reader.quorum_read {
        Ok(reader.trust)
    } else {
        Err(lines
            .place()
            .error("the policy ends without `quorum NAME`; write `quorum none` to ask for no witness"))
    }
}

impl<'a> Reader<'a> {
    fn line(&mut self, words: &[&'a [u8]], ours: bool) -> Result<(), String> {
        let policy = &mut self.trust.policy;
        match words {
            [b"log", vkey, url @ ..] if url.len() < 2 => {
                let key = key(vkey, KeyKind::Ed25519)?;
                if policy.logs.iter().any(|log| log.key.public() == key.public()) {
                    return Err("the key of this log is already in the policy".to_owned());
                }
                bounded(policy.logs.len(), "logs")?;
                policy.logs.push(PolicyLog { key, url: url.first().map(|url| url.to_vec()) });
            }
            [b"witness", name, vkey, url @ ..] if url.len() < 2 => {
                let key = key(vkey, KeyKind::Cosignature)?;
                if policy.witnesses.iter().any(|witness| witness.key.public() == key.public()) {
                    return Err("the key of this witness is already in the policy".to_owned());
                }
                bounded(policy.witnesses.len(), "witnesses")?;
                let place = policy.witnesses.len();
                let url = url.first().map(|url| url.to_vec());
                policy.witnesses.push(PolicyWitness { name: name.to_vec(), key, url });
                self.define(name, Member::Witness(place))?;
            }
            [b"group", name, needed, members @ ..] if !members.is_empty() => {
                self.group(name, needed, members)?;
            }
            [b"quorum", name] => {
                if std::mem::replace(&mut self.quorum_read, true) {
                    return Err("a second quorum; a policy has one".to_owned());
                }
                let quorum = if *name == NONE { None } else { Some(self.member(name)?) };
                self.trust.policy.quorum = quorum;
            }
            [b"admin" | b"remember" | b"revoked", ..] if ours => self.ours(words)?,
            _ => {
                let ours = if ours { ", `admin`, `remember` or `revoked`" } else { "" };
                return Err(format!(
                    "expected `log VKEY [URL]`, `witness NAME VKEY [URL]`, `group NAME all|any|K MEMBER...`, \
                     `quorum NAME`{ours}"
                ));
            }
        }
        Ok(())
    }

    fn define(&mut self, name: &'a [u8], member: Member) -> Result<(), String> {
        if name == NONE {
            return Err("the name `none` stands for no witnesses; choose another".to_owned());
        }
        if self.names.insert(name, member).is_some() {
            return Err(format!("`{}` is defined twice", shown(name)));
        }
        Ok(())
    }

    fn member(&self, name: &[u8]) -> Result<Member, String> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| format!("`{}` is not a witness or group defined above this line", shown(name)))
    }

    fn group(&mut self, name: &'a [u8], needed: &[u8], names: &[&'a [u8]]) -> Result<(), String> {
        bounded(self.trust.policy.groups.len(), "groups")?;
        bounded(names.len() - 1, "members of a group")?;
        let needed = match needed {
            b"all" => names.len(),
            b"any" => 1,
            number => {
                let number = std::str::from_utf8(number).map_err(|_| "expected `all`, `any` or a number")?;
                usize::try_from(decimal(number)?).unwrap_or(usize::MAX)
            }
        };
        if needed == 0 || needed > names.len() {
            return Err(format!(
                "{needed} of {} members; at least 1 and at most all are needed",
                names.len()
            ));
        }
        let mut members = Vec::with_capacity(names.len());
        for member in names {
            members.push(self.member(member)?);
            if !self.used.insert(member) {
                return Err(format!("`{}` is already a member; it would count twice", shown(member)));
            }
        }
        let place = self.trust.policy.groups.len();
        self.trust.policy.groups.push(Group { name: name.to_vec(), needed, members });
        self.define(name, Member::Group(place))
    }

    /// The lines that plain policies do not have.
    fn ours(&mut self, words: &[&[u8]]) -> Result<(), String> {
        let words: Vec<&str> = words
            .iter()
            .map(|word| std::str::from_utf8(word))
            .collect::<Result<_, _>>()
            .map_err(|_| "the line is not UTF-8".to_owned())?;
        let trust = &mut self.trust;
        match words.as_slice() {
            ["admin", vkey] => {
                bounded(trust.admins.len(), "admins")?;
                let key = key(vkey.as_bytes(), KeyKind::Ed25519)?;
                if trust.admins.iter().any(|admin| admin.public() == key.public()) {
                    return Err("the key of this admin is already in the policy".to_owned());
                }
                trust.admins.push(key);
            }
            ["remember", origin, size, root] => {
                bounded(trust.remembered.len(), "remembered checkpoints")?;
                let head = TreeHead { size: decimal(size)?, root: hash(root)? };
                let known = Checkpoint::new(origin, head)?;
                let same = |other: &&Checkpoint| other.origin() == *origin && other.size() == head.size;
                if trust.remembered.iter().any(|other| same(&other)) {
                    return Err("a tree of this origin and size is remembered already".to_owned());
                }
                trust.remembered.push(known);
            }
            ["revoked", key, index] => {
                bounded(trust.revoked.len(), "revoked keys")?;
                let key = key.parse().map_err(|error| format!("key `{key}`: {error}"))?;
                if trust.revoked.iter().any(|(other, _)| *other == key) {
                    return Err("the key is revoked already".to_owned());
                }
                trust.revoked.push((key, decimal(index)?));
            }
            _ => {
                return Err(
                    "expected `admin VKEY`, `remember ORIGIN SIZE ROOT` or `revoked KEY INDEX`".to_owned()
                );
            }
        }
        Ok(())
    }
}

fn key(vkey: &[u8], kind: KeyKind) -> Result<VerifierKey, String> {
    let text = std::str::from_utf8(vkey).map_err(|_| "the key is not UTF-8".to_owned())?;
    let key: VerifierKey = text.parse().map_err(|error| format!("{error}"))?;
    if key.kind() == kind {
        return Ok(key);
    }
    Err(match kind {
        KeyKind::Ed25519 => format!("`{text}` is the key of a witness; logs and admins have type 0x01"),
        KeyKind::Cosignature => format!("`{text}` is the key of a log; witnesses have type 0x04"),
    })
}

fn bounded(count: usize, what: &str) -> Result<(), String> {
    if count < POLICY_ITEMS_MAX { Ok(()) } else { Err(format!("more than {POLICY_ITEMS_MAX} {what}")) }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}
