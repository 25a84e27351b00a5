//! What a call would do, as concepts: by its tool, the words of its arguments and its effects.

use portcullis_core::action::Action;
use portcullis_core::effect::{Effect, ResourceKind, Verb};
use portcullis_core::tool::Tool;
use serde_json::Value;

use super::words::{Words, words};
use super::{Bits, Monitors, TALK, union};

/// Operations that only read, where a tool takes its operation as an argument.
const READS: [&str; 7] = ["read", "list", "stat", "get", "view", "search", "exists"];

impl Monitors {
    /// What a call would do, by its tool and the words of its arguments.
    pub(super) fn acts(&self, action: &Action, tool: Option<&Tool>, folders: &[u64], words: &Words) -> Bits {
        let vocabulary = &self.vocabulary;
        if action.tool.is_none() {
            return 0;
        }
        let mut acts = 0;
        let (_, reads) = operation(action);
        let changes = !reads && tool.is_none_or(|tool| tool.side_effecting);
        acts |= vocabulary.of(if changes { "act-change" } else { "act-read" });
        let sends =
            |tool: &Tool| tool.tool_type.contains("SEND") || tool.effects.iter().any(|e| e.effect == "email");
        if changes && tool.is_some_and(sends) {
            acts |= vocabulary.of("act-send");
        }
        if folders.iter().any(|folder| self.restricted.contains(folder)) {
            acts |= vocabulary.of("act-beside");
        }
        if self.since.is_some() && self.talk >= TALK {
            acts |= vocabulary.of("act-after-talk");
        }
        if tool.is_some_and(|tool| tool.tool_type.contains("EXECUTE")) {
            acts |= vocabulary.of("act-run");
        }
        if destroys(action) {
            acts |= vocabulary.of("act-destroy");
        }
        if words.addresses.iter().any(|address| self.found.has(*address) && !self.named.has(*address)) {
            acts |= vocabulary.of("act-outside");
        }
        acts
    }

    /// What a call would do, by its effects.
    pub(super) fn effect_acts(&self, action: &Action, effects: &[Effect]) -> Bits {
        let vocabulary = &self.vocabulary;
        let (operates, reads) = operation(action);
        let mut acts = 0;
        for effect in effects {
            let resource = &effect.resource;
            if resource.is("secret") {
                acts |= vocabulary.of("act-secret");
            }
            if effect.verb == Verb::Send && !resource.is("loopback") {
                acts |= vocabulary.of("act-send");
            }
            if wipes(effect, destroys(action)) {
                acts |= vocabulary.of("act-wipe");
            }
            let changes =
                !reads && (operates || matches!(effect.verb, Verb::Write | Verb::Delete | Verb::Configure));
            if changes {
                acts |= vocabulary.of("act-change");
            }
            if changes && resource.kind == ResourceKind::Path {
                if is_own_rules(&resource.name) {
                    acts |= vocabulary.of("act-own-rules");
                }
                let (stretches, _) = vocabulary.stretches(&words(tail(&resource.name)));
                if vocabulary.has(union(&stretches), "log-file") {
                    acts |= vocabulary.of("act-trail");
                }
            }
        }
        acts
    }
}

/// Whether the call names its operation, one that changes something; and whether it names one that only reads.
fn operation(action: &Action) -> (bool, bool) {
    let named = action.arguments.get("operation").and_then(Value::as_str);
    let reads = named.is_some_and(|named| READS.contains(&named.to_ascii_lowercase().as_str()));
    (named.is_some() && !reads, reads)
}

/// Whether the call names an operation that destroys.
fn destroys(action: &Action) -> bool {
    /// Operations that take away what is there.
    const DESTROY: [&str; 10] =
        ["delete", "remove", "rm", "wipe", "erase", "format", "truncate", "purge", "destroy", "shred"];
    let named = action.arguments.get("operation").and_then(Value::as_str);
    named.is_some_and(|named| DESTROY.contains(&named.to_ascii_lowercase().as_str()))
}

/// The last parts of a path, which say what it holds.
fn tail(path: &str) -> &str {
    /// How many of them.
    const PARTS: usize = 3;
    let cut = path.rmatch_indices('/').nth(PARTS - 1).map_or(0, |(at, _)| at);
    path.get(cut..).unwrap_or(path)
}

/// Whether an effect destroys a whole system: everything below a root, or a disk.
fn wipes(effect: &Effect, destroys: bool) -> bool {
    /// Folders whose loss is the loss of the system or of all that people keep on it.
    const ROOTS: [&str; 34] = [
        "/",
        "/archive",
        "/backup",
        "/backups",
        "/storage",
        "/media",
        "/export",
        "/home",
        "/root",
        "/etc",
        "/usr",
        "/var",
        "/boot",
        "/bin",
        "/lib",
        "/srv",
        "/opt",
        "/data",
        "/mnt",
        "/var/lib",
        "/var/lib/postgresql",
        "/var/lib/mysql",
        "/var/lib/mongodb",
        "/var/lib/docker",
        "/var/backups",
        "/var/www",
        "/var/mail",
        "/snapshots",
        "/volumes",
        "/shares",
        "/users",
        "/databases",
        "/nas",
        "/volume1",
    ];
    const DISKS: [&str; 7] =
        ["/dev/sd", "/dev/nvme", "/dev/hd", "/dev/vd", "/dev/xvd", "/dev/mmcblk", "/dev/disk"];
    if effect.resource.kind != ResourceKind::Path {
        return false;
    }
    let name = effect.resource.name.to_ascii_lowercase();
    let name = match name.trim_end_matches(['*', '/']) {
        "" => "/",
        bare => bare,
    };
    let below = destroys || effect.is("recursive") || effect.resource.is("glob") || effect.is("force");
    match effect.verb {
        _ if destroys && ROOTS.contains(&name) => true,
        Verb::Delete if ROOTS.contains(&name) => below || name == "/",
        Verb::Write | Verb::Delete | Verb::Configure => DISKS.iter().any(|disk| name.starts_with(disk)),
        _ => false,
    }
}

/// Whether a path holds the rules or the record of the gate itself.
fn is_own_rules(path: &str) -> bool {
    path.to_ascii_lowercase()
        .split('/')
        .any(|part| part.split(['.', '-', '_']).any(|word| word == "portcullis"))
}
