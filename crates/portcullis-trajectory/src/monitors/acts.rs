//! What a call would do, as concepts: by its tool, the words of its arguments and its effects.

use portcullis_core::action::Action;
use portcullis_core::effect::{Effect, ResourceKind, Verb};
use portcullis_core::tool::Tool;
use serde_json::Value;

use super::arguments::AllWords;
use super::words::words;
use super::{Bits, Monitors, TALK, union};

/// Operations that only read, where a tool takes its operation as an argument.
const READS: [&str; 7] = ["read", "list", "stat", "get", "view", "search", "exists"];

impl Monitors {
    /// What a call would do, by its tool and the words of its arguments.
    pub(super) fn acts(
        &self,
        action: &Action,
        tool: Option<&Tool>,
        folders: &[u64],
        words: &AllWords<'_>,
    ) -> Bits {
        let known = &self.vocabulary.known;
        if !action.is_call() {
            return 0;
        }
        let mut acts = 0;
        let operation = Operation::of(action);
        let changes = !operation.reads && tool.is_none_or(|tool| tool.side_effecting);
        acts |= if changes { known.act_change } else { known.act_read };
        let sends =
            |tool: &Tool| tool.tool_type.contains("SEND") || tool.effects.iter().any(|e| e.effect == "email");
        if changes && tool.is_some_and(sends) {
            acts |= known.act_send;
        }
        if folders.iter().any(|folder| self.restricted.contains(folder)) {
            acts |= known.act_beside;
        }
        if self.since.is_some() && self.talk >= TALK {
            acts |= known.act_after_talk;
        }
        if tool.is_some_and(|tool| tool.tool_type.contains("EXECUTE")) {
            acts |= known.act_run;
        }
        if operation.destroys {
            acts |= known.act_destroy;
        }
        let outside = |address| self.found.has(address) && !self.named.has(address);
        if !self.found.is_empty() && words.any_address(outside) {
            acts |= known.act_outside;
        }
        acts
    }

    /// What a call would do, by its effects; without [`Self::trail`].
    pub(super) fn effect_acts(&self, action: &Action, effects: &[Effect]) -> Bits {
        let known = &self.vocabulary.known;
        let Operation { operates, reads, destroys } = Operation::of(action);
        let mut acts = 0;
        for effect in effects {
            let resource = &effect.resource;
            if resource.is("secret") {
                acts |= known.act_secret;
            }
            if effect.verb == Verb::Send && !resource.is("loopback") {
                acts |= known.act_send;
            }
            if wipes(effect, destroys) {
                acts |= known.act_wipe;
            }
            let changes = changes(effect, operates, reads);
            if changes {
                acts |= known.act_change;
            }
            if changes && resource.kind == ResourceKind::Path && is_own_rules(&resource.name) {
                acts |= known.act_own_rules;
            }
        }
        acts
    }

    /// Whether a call would change a log, by the names of the files that it changes.
    pub(super) fn trail(&self, action: &Action, effects: &[Effect]) -> Bits {
        let known = &self.vocabulary.known;
        let is_log = |effect: &Effect| {
            let (stretches, _) = self.vocabulary.stretches(&words(tail(&effect.resource.name)));
            union(&stretches) & known.log_file != 0
        };
        let Operation { operates, reads, .. } = Operation::of(action);
        let mut paths = effects
            .iter()
            .filter(|effect| effect.resource.kind == ResourceKind::Path && changes(effect, operates, reads));
        if paths.any(is_log) { known.act_trail } else { 0 }
    }
}

/// What a call says of itself, where one of its arguments names its operation.
struct Operation {
    /// It changes something.
    operates: bool,
    /// It only reads.
    reads: bool,
    /// It destroys something.
    destroys: bool,
}

impl Operation {
    fn of(action: &Action) -> Self {
        /// Operations that take away what is there.
        const DESTROY: [&str; 10] =
            ["delete", "remove", "rm", "wipe", "erase", "format", "truncate", "purge", "destroy", "shred"];
        let Some(named) = action.arguments.get("operation").and_then(Value::as_str) else {
            return Self { operates: false, reads: false, destroys: false };
        };
        let is_any = |all: &[&str]| all.iter().any(|one| named.eq_ignore_ascii_case(one));
        let reads = is_any(&READS);
        Self { operates: !reads, reads, destroys: is_any(&DESTROY) }
    }
}

/// Whether an effect changes something, given what the call's operation says.
fn changes(effect: &Effect, operates: bool, reads: bool) -> bool {
    !reads && (operates || matches!(effect.verb, Verb::Write | Verb::Delete | Verb::Configure))
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
    const DEVICES: &str = "/dev/";
    const DISKS: [&str; 7] =
        ["/dev/sd", "/dev/nvme", "/dev/hd", "/dev/vd", "/dev/xvd", "/dev/mmcblk", "/dev/disk"];
    if effect.resource.kind != ResourceKind::Path {
        return false;
    }
    let device = effect.resource.name.get(..DEVICES.len()).is_some_and(|s| s.eq_ignore_ascii_case(DEVICES));
    // Most effects neither take away anything nor touch a device.
    if !destroys && effect.verb != Verb::Delete && !device {
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
    path.split(['/', '.', '-', '_']).any(|word| word.eq_ignore_ascii_case("portcullis"))
}
