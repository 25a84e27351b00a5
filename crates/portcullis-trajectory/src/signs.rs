//! What the name and the value of an argument say is done: `action: delete`, `role: owner`, `verify_peer: false`.
//!
//! A tool's name often leaves open what a call does. Its arguments then say it, in words that people and programs use
//! everywhere: an operation, a role, a switch, a label that is clicked, a path of settings, a statement of SQL.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use portcullis_core::infer::{word_places, words_of};

use crate::argument_name::{ArgumentName, Role, WHOLE_BYTES_MAX};
use crate::classes::Classes;
use crate::kind::Deed;
use crate::lexicon::Lexicon;
use crate::protections;
use crate::statements::statement;
use crate::values::{Kind, Value};
use crate::words::{FOREIGN, SPACE, Shapes, class, hash, stem_hash};

/// Values that open something to everybody, or give full powers, whatever the argument is called.
const OPEN: [&str; 10] =
    ["0.0.0.0/0", "::/0", "*", "admin", "administrator", "owner", "superuser", "root", "anyone", "everyone"];

/// How [`OPEN`] look.
static OPEN_SHAPES: Shapes = Shapes::of(&OPEN);

/// Beginning of the name of a principal of Amazon's cloud: in a text, someone is let in.
const PRINCIPAL: &str = "arn:aws:iam::";

/// The same inside a command or a text, where they mean nothing else.
const OPEN_ANYWHERE: [&str; 10] = [
    "777",
    "0777",
    "a+rwx",
    "0.0.0.0/0",
    "::/0",
    "AdministratorAccess",
    "cluster-admin",
    "public-read",
    "public-read-write",
    "bypassPermissions",
];

/// Roles with which someone may do everything, at the end of a role's or a group's name: `roles/owner`,
/// `domain-admins`.
const POWERFUL: [&str; 9] =
    ["admin", "admins", "administrator", "administrators", "owner", "owners", "root", "superuser", "sudo"];

/// Longest name of a role or a group, in words.
const ROLE_WORDS_MAX: usize = 5;

/// One leaf of the arguments, as it is written.
pub(crate) struct Leaf<'a> {
    pub(crate) name: &'a ArgumentName,
    /// Without white space around it; empty for `false`.
    pub(crate) text: &'a str,
    /// It is `false`.
    pub(crate) off: bool,
    pub(crate) role: Role,
    pub(crate) values: &'a [Value],
}

/// What an argument says is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signs {
    /// What its value says is done, where its name says that it says so: `action: delete`.
    pub deed: Option<Deed>,
    /// What it says is done, where the tool is one for anything: `task: purge_mailbox`.
    pub task: Option<Deed>,
    /// The label of the clicked element says that this is done.
    pub label: Option<Deed>,
    /// It is a statement of SQL or a shell's, and `deed` is what that does.
    pub states: bool,
    /// The grave things that its value names as what is set: `field: iban`.
    pub sets: Vec<u64>,
    /// Its value opens something to everybody, or gives full powers.
    pub opens: bool,
    /// It shows something to everybody.
    pub public: bool,
    /// It says what someone may do.
    pub rights: bool,
    /// It names something that lets someone in when it is open.
    pub entrance: bool,
    /// It names a thing that protects, or watches.
    pub protects: bool,
    /// It switches something off.
    pub off: bool,
    /// It lowers protections: the stems of the words of their names.
    pub lowers: Vec<u64>,
    /// It is the path of a file that acts by itself later, or that says what an agent may do.
    pub control: bool,
    /// Of such a path, the words by which people speak of it.
    pub path_words: Vec<u64>,
}

impl Signs {
    /// Reads an argument. Linear in the text.
    pub(crate) fn of(lexicon: &Lexicon, leaf: &Leaf<'_>) -> Self {
        let Leaf { name, text, off, role, values } = *leaf;
        let spaced = is_spaced(text);
        // A text is read for what it sets, a value word by word.
        let (lower, owned);
        let words: Vec<&str> = if text.len() > WHOLE_BYTES_MAX {
            Vec::new()
        } else if text.is_ascii() {
            lower = in_lower_case(text);
            let mut words = Vec::with_capacity(text.len() / 4 + 1);
            words.extend(word_places(text).filter_map(|place| lower.get(place)));
            words
        } else {
            owned = words_of(text);
            owned.iter().map(String::as_str).collect()
        };
        let object = role != Role::Content;
        let said = if object && !spaced { words.as_slice() } else { &[] };
        let addressed = |value: &Value| matches!(value.kind, Kind::File | Kind::Url | Kind::Mail);
        let address = values.iter().any(addressed);
        let stated = statement(lexicon, text);
        let mut sets = stated.as_ref().map(|stated| stated.grave_things.clone()).unwrap_or_default();
        if name.is_field && !address {
            sets.extend(grave_words(lexicon, said));
            sets.extend(disabling_words(lexicon, said));
        }
        let stops = || matches!(operation(lexicon, spelt(&words)), Some(Deed::Disable | Deed::Delete));
        let entrance =
            |word: &&str| lexicon.stem_classes(lexicon.base(stem_hash(word))).is(Classes::ENTRANCE);
        let control = !spaced && has_control(text);
        Self {
            deed: match &stated {
                Some(stated) => Some(stated.deed),
                None => said_deed(lexicon, leaf, &words),
            },
            task: (name.is_task && !address).then(|| task(lexicon, text, &words)).flatten(),
            label: name.is_label.then(|| label(lexicon, &words)).flatten(),
            states: stated.is_some(),
            sets,
            opens: opens(text) || !address && is_all_powerful(said),
            public: name.is_audience && is_everybody(text),
            rights: gives_rights(lexicon, name, said),
            entrance: object && words.iter().take(OPERATION_WORDS_MAX).any(entrance),
            protects: object && protections::are_watching(&words),
            off: name.is_switch && (off || protections::is_off(text) || stops()),
            lowers: lowers(lexicon, leaf),
            control: object && control || is_written_to_control(text),
            path_words: if control { path_words(lexicon, said) } else { Vec::new() },
        }
    }
}

/// Whether white space is in a text.
fn is_spaced(text: &str) -> bool {
    match text.bytes().find(|byte| class(*byte) & (SPACE | FOREIGN) != 0) {
        None => false,
        Some(first) => class(first) & SPACE != 0 || text.contains(char::is_whitespace),
    }
}

fn spelt<'w>(words: &'w [&'w str]) -> impl ExactSizeIterator<Item = &'w str> {
    words.iter().copied()
}

/// A text of ASCII in lower case.
fn in_lower_case(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    }
}

/// The deed that a value names where its argument's name says that it names one.
fn said_deed(lexicon: &Lexicon, leaf: &Leaf<'_>, words: &[&str]) -> Option<Deed> {
    // `unlock: true`
    if leaf.text == "true" {
        return operation(lexicon, leaf.name.words.iter().map(String::as_str));
    }
    // `value: muted`, `reason: DISCARDED`
    let one = leaf.name.is_value && !is_spaced(leaf.text);
    if leaf.name.is_command {
        let parts = || leaf.text.split(CHAINS).filter(|part| !part.trim().is_empty());
        let deed = parts().filter_map(|part| command_deed(lexicon, part)).max();
        let chained = leaf.text.contains(CHAINS);
        // Of a chain that reads every part must be known to.
        if chained && deed <= Some(Deed::Read) {
            return deed.filter(|_| parts().all(|part| command_deed(lexicon, part) == Some(Deed::Read)));
        }
        if deed.is_some() {
            return deed;
        }
    }
    (one || leaf.name.classes.is(Classes::OPERATION)).then(|| operation(lexicon, spelt(words))).flatten()
}

/// What ends a command, or begins another inside of it.
const CHAINS: [char; 8] = [';', '&', '|', '\n', '`', '(', '<', '>'];
/// How many words of a command are searched for its verb.
const COMMAND_WORDS_MAX: usize = 5;

/// What the words of a command say it does: the first that is surely a verb, before its options. Those that stand before
/// it say where, and may have a value each.
fn command_deed(lexicon: &Lexicon, text: &str) -> Option<Deed> {
    let is_option = |token: &&str| token.starts_with('-');
    let mut tokens = text.split_whitespace().peekable();
    while tokens.next_if(is_option).is_some_and(|option| !option.contains('=')) {
        tokens.next_if(|token| !is_option(token));
    }
    let words = tokens.take_while(|token| !is_option(token)).take(COMMAND_WORDS_MAX);
    let verbs = words.filter_map(|word| {
        // `list-access-keys`
        let first =
            word.split('-').next().filter(|first| first.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
        lexicon.deed(lexicon.base(stem_hash(&first.to_ascii_lowercase())))
    });
    let mut sure = verbs.filter(|(deed, sure)| *sure && *deed != Deed::Pay);
    sure.next().map(|(deed, _)| deed).filter(|deed| *deed != Deed::Execute)
}

/// The deed in the name of a task. A branch called `release/1.8` releases nothing.
fn task(lexicon: &Lexicon, text: &str, words: &[&str]) -> Option<Deed> {
    let named = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.');
    text.bytes().all(named).then(|| operation(lexicon, spelt(words))).flatten()
}

/// Finds [`OPEN_ANYWHERE`] and [`PRINCIPAL`] wherever they stand, so that most texts need not be cut up.
static OPEN_FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    // Only of this kind it skips what cannot match, many bytes at a time.
    let all = OPEN_ANYWHERE.iter().chain([&PRINCIPAL]);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(all).ok()
});

/// Whether a value opens something to everybody, or gives full powers, by itself or in a text.
fn opens(text: &str) -> bool {
    let whole = OPEN_SHAPES.has_some(text) && OPEN.iter().any(|open| text.eq_ignore_ascii_case(open));
    if !whole && OPEN_FINDER.as_ref().is_some_and(|finder| !finder.is_match(text)) {
        return false;
    }
    let sign = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | ',' | '=' | '[' | ']');
    whole || text.split(sign).any(|token| OPEN_ANYWHERE.contains(&token) || token.starts_with(PRINCIPAL))
}

/// Whether the name of a role or a group ends in one that may do everything.
fn is_all_powerful(words: &[&str]) -> bool {
    words.len() <= ROLE_WORDS_MAX && words.last().is_some_and(|last| POWERFUL.contains(last))
}

/// `privacy_setting: public`
fn is_everybody(text: &str) -> bool {
    ["public", "everyone", "anyone", "world"].iter().any(|all| text.eq_ignore_ascii_case(all))
}

/// `role: dispatcher`, `as: editor`
fn gives_rights(lexicon: &Lexicon, name: &ArgumentName, value: &[&str]) -> bool {
    let role = |word: &&str| lexicon.stem_classes(lexicon.base(stem_hash(word))).is(Classes::POWER);
    name.is_right || name.is_level && value.len() == 1 && value.iter().any(role)
}

/// The words by which people speak of a path.
fn path_words(lexicon: &Lexicon, words: &[&str]) -> Vec<u64> {
    let spoken = words.iter().filter(|word| !UNSPOKEN.contains(word));
    spoken.map(|word| lexicon.thing(stem_hash(word))).collect()
}

/// Files and folders that act by themselves later, or say what an agent or a pipeline may do.
const CONTROL: [&str; 31] = [
    "codeowners",
    ".claude/",
    ".cursor/",
    ".vscode/",
    ".codex/",
    ".gemini/",
    ".github/workflows",
    ".gitlab-ci",
    ".circleci/",
    ".git/hooks",
    ".git/config",
    ".husky/",
    ".ssh/",
    "authorized_keys",
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".profile",
    "crontab",
    "/cron.",
    "sudoers",
    "sshd_config",
    "claude.md",
    "agents.md",
    ".cursorrules",
    ".mcp.json",
    "mcp.json",
    "jenkinsfile",
    ".pre-commit-config",
    "/systemd/",
    ".npmrc",
];

/// Bytes of the shortest of them.
const CONTROL_BYTES_MIN: usize = 5;

/// Words of such paths that are said for other reasons: hosts, formats, names of agents.
const UNSPOKEN: [&str; 22] = [
    "github", "gitlab", "git", "json", "yml", "yaml", "md", "toml", "config", "settings", "home", "root",
    "etc", "claude", "agents", "agent", "cursor", "codex", "gemini", "vscode", "file", "user",
];

/// Finds [`CONTROL`] in letters of any case. None if it cannot be built, which its size rules out.
static CONTROL_FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(CONTROL).ok()
});

/// Whether a path is one of these.
pub(crate) fn is_control(path: &str) -> bool {
    !is_spaced(path) && has_control(path)
}

/// Whether one of these is in a text.
fn has_control(text: &str) -> bool {
    match CONTROL_FINDER.as_ref() {
        Some(finder) => text.len() >= CONTROL_BYTES_MIN && finder.is_match(text),
        None => CONTROL.iter().any(|name| text.to_ascii_lowercase().contains(name)),
    }
}

/// The words of the protections that an argument switches off: it is one itself, or its text sets some.
fn lowers(lexicon: &Lexicon, leaf: &Leaf<'_>) -> Vec<u64> {
    let Leaf { name, text, off, .. } = *leaf;
    let locks = off && name.is_lock;
    let approves = name.is_automatic && !text.is_empty() && !protections::is_off(text);
    let disables = text == "true" && name.disables || approves;
    let own = name.is_protection && (off || protections::is_off(text)) || locks || disables;
    let words = if own { name.words.clone() } else { protections::lowered(text) };
    let named = words.into_iter().filter(|word| {
        let word = std::slice::from_ref(word);
        let said = |word: &String| {
            word.starts_with("lock") || matches!(word.as_str(), "approve" | "allow" | "accept")
        };
        protections::are_protections(word) || protections::are_watching(word) || word.iter().any(said)
    });
    named.map(|word| lexicon.thing(stem_hash(&word))).collect()
}

/// The things among some words whose change is grave.
fn grave_words(lexicon: &Lexicon, words: &[&str]) -> Vec<u64> {
    let stems = words.iter().map(|word| (hash(word.as_bytes()), lexicon.base(stem_hash(word))));
    stems.filter(|(hash, stem)| lexicon.is_grave(*hash, *stem)).map(|(_, stem)| lexicon.thing(stem)).collect()
}

/// Words that switch something off: the tag `Guard.Bypass` of a machine.
fn disabling_words(lexicon: &Lexicon, words: &[&str]) -> Vec<u64> {
    let stems = words.iter().map(|word| lexicon.base(stem_hash(word)));
    let disables = |stem: &u64| matches!(lexicon.deed(*stem), Some((Deed::Disable, true)));
    stems.filter(disables).map(|stem| lexicon.thing(stem)).collect()
}

/// What a label speaks of that lets somebody in, or protects.
const SENSITIVE: [&str; 17] = [
    "key",
    "token",
    "password",
    "recovery",
    "verification",
    "verified",
    "2fa",
    "mfa",
    "permission",
    "permissions",
    "protection",
    "firewall",
    "backup",
    "remote",
    "owner",
    "admin",
    "anyone",
];
/// Verbs of labels that set such a thing.
const SETS: [&str; 13] = [
    "toggle", "turn", "switch", "generate", "add", "remove", "change", "save", "allow", "create", "reset",
    "uncheck", "untick",
];

/// Longest label, in words.
const LABEL_WORDS_MAX: usize = 12;

/// The grave deed that a label such as *Add and pay* or *Delete account* names.
fn label(lexicon: &Lexicon, said: &[&str]) -> Option<Deed> {
    if said.len() > LABEL_WORDS_MAX {
        return None;
    }
    if said.contains(&"public") {
        return Some(Deed::Grant);
    }
    let sensitive = said.iter().any(|word| SENSITIVE.contains(word));
    if sensitive && said.iter().any(|word| SETS.contains(word)) {
        return Some(Deed::Grant);
    }
    // *Confirm*, *Accept* and *I agree* stand on whatever goes on.
    let goes_on = |word: &&&str| ["confirm", "accept", "agree"].contains(*word);
    let verbs = said.iter().filter(|word| !goes_on(word));
    let deeds = verbs.filter_map(|word| lexicon.deed(lexicon.base(stem_hash(word))));
    deeds.filter(|(deed, sure)| *sure && deed.is_grave()).map(|(deed, _)| deed).max()
}

/// Whether a command line writes into such a file: `echo key >> ~/.ssh/authorized_keys`.
fn is_written_to_control(text: &str) -> bool {
    memchr::memchr(b'>', text.as_bytes()).is_some()
        && text.split('>').skip(1).filter_map(|part| part.split_whitespace().next()).any(is_control)
}

/// Longest value that says what is done, in words; of a longer one the first counts.
const OPERATION_WORDS_MAX: usize = 4;

/// The deed that a value such as `lock.unlock`, `APPROVED` or `view` names.
fn operation<'w>(lexicon: &Lexicon, words: impl ExactSizeIterator<Item = &'w str>) -> Option<Deed> {
    // Of a command line, such as `delete pvc data-0 -n staging`, the beginning says it.
    let said = if words.len() > OPERATION_WORDS_MAX { 1 } else { OPERATION_WORDS_MAX };
    let deeds = words.take(said).filter_map(|word| lexicon.deed(lexicon.base(stem_hash(word))));
    // What is paid is told by the tool and the amount; `checkout` is as often a service.
    deeds
        .filter(|(deed, sure)| (*sure || *deed == Deed::Read) && *deed != Deed::Pay)
        .map(|(deed, _)| deed)
        .max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::arguments;
    use crate::flow::built_in;

    fn signs(json: &serde_json::Value) -> Signs {
        let (found, _) = arguments(&built_in(), &Default::default(), &Default::default(), json);
        found.into_iter().next().unwrap().signs
    }

    #[test]
    fn operations_tasks_and_labels_are_deeds() {
        for (json, deed) in [
            (json!({"action": "delete"}), Some(Deed::Delete)),
            (json!({"unlock": true}), Some(Deed::Grant)),
            (json!({"args": "delete pvc data-0 -n staging"}), Some(Deed::Delete)),
            (json!({"args": ["describe", "rolebinding", "deployers"]}), Some(Deed::Read)),
            (json!({"value": "muted"}), Some(Deed::Disable)),
            (json!({"query": "DROP TABLE invoices"}), Some(Deed::Delete)),
            (json!({"note": "delete nothing"}), None),
        ] {
            assert_eq!(signs(&json).deed, deed, "{json}");
        }
        assert_eq!(signs(&json!({"task": "purge_mailbox"})).task, Some(Deed::Delete));
        assert_eq!(signs(&json!({"name": "release/1.8"})).task, None);
        assert_eq!(signs(&json!({"element": "Add and pay"})).label, Some(Deed::Pay));
        assert_eq!(signs(&json!({"element": "Confirm"})).label, None);
    }

    #[test]
    fn roles_switches_and_settings_are_seen() {
        assert!(signs(&json!({"to": "group:domain-admins"})).opens);
        assert!(!signs(&json!({"to": "admin@example.com"})).opens);
        assert!(signs(&json!({"command": "chmod -R 777 /var/www"})).opens);
        assert!(signs(&json!({"privacy_setting": "public"})).public);
        assert!(signs(&json!({"role": "dispatcher"})).rights && signs(&json!({"as": "editor"})).rights);
        assert!(signs(&json!({"entity": "smoke-sensor-hall"})).protects);
        assert!(signs(&json!({"state": "off"})).off && signs(&json!({"enabled": false})).off);
        assert!(!signs(&json!({"transferLock": false})).lowers.is_empty());
        assert!(!signs(&json!({"auto_approve": "shell"})).lowers.is_empty());
        assert!(!signs(&json!({"field": "iban"})).sets.is_empty());
        assert!(signs(&json!({"field": "nickname"})).sets.is_empty());
    }

    #[test]
    fn each_part_of_a_chained_command_counts() {
        for (args, deed) in [
            ("-n shop delete pvc data-0", Some(Deed::Delete)),
            ("get pods", Some(Deed::Read)),
            ("get deploy login", Some(Deed::Read)),
            ("iam list-access-keys --user-name ci", Some(Deed::Read)),
            ("get pods; kubectl delete pvc data-0", Some(Deed::Delete)),
            ("get pods && frobnicate data-0", None),
            ("get $(frobnicate)", None),
        ] {
            assert_eq!(signs(&json!({"args": args})).deed, deed, "{args}");
        }
    }

    #[test]
    fn settings_of_agents_and_machines_are_known_by_their_paths() {
        assert!(signs(&json!({"file_path": "/w/app/CLAUDE.md"})).control);
        assert!(signs(&json!({"run": "echo key >> ~/.ssh/authorized_keys"})).control);
        assert!(!signs(&json!({"file_path": "src/main.rs"})).control);
        let words = signs(&json!({"file_path": ".github/workflows/ci.yml"})).path_words;
        assert!(words.contains(&built_in().thing(stem_hash("ci"))));
    }
}
