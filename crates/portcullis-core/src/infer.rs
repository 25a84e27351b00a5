//! Inference of a tool's classification from what its server says about it: name, description, argument
//! schema and hints.
//!
//! It drafts; people decide. Everything it reads was written by the server, so it follows two rules. The
//! *name* decides, because it is what the agent calls and what a person sees; the other evidence can make a
//! tool look more dangerous than its name, never less. And whatever is not understood is taken to have side
//! effects. The words it knows are general English verbs, nothing of any one server.
//!
//! The order of evidence, each step recorded in [`Inferred::reasons`]:
//! 1. the verb of the name: its first word or the first word after a prefix (`server.`, `mcp__server__`). A
//!    verb further in (`git_push`) counts at once where it changes things, and only with the description's
//!    support where it reads, since the unknown word before it may be the real verb;
//! 2. the first verb of the description: decides where the name has none, supports or raises otherwise;
//! 3. a changing verb after `and`, `or`, `then`, in the name or the description's first sentence: raises;
//! 4. the arguments: a shell command, code or SQL makes the tool as dangerous as what can be written in it; a
//!    password handed to a verb such as *verify* makes it act;
//! 5. the hints: `readOnlyHint: false` and `destructiveHint` raise; `readOnlyHint: true` is noted, no more.

use serde_json::{Map, Value};

/// What an argument of a tool may hold.
pub const EFFECTS: [&str; 7] = ["sql", "shell", "path", "url", "email", "money", "code"];

/// Tool types that inference can answer, besides the seed's six.
pub const TOOL_TYPES: [&str; 5] = ["EXECUTE", "PAY", "DELETE", "MODIFY", "OTHER"];

/// Most words of a name, and of a description, that are looked at.
pub const WORDS_MAX: usize = 64;
/// Most arguments of a schema that are looked at.
pub const ARGUMENTS_MAX: usize = 256;
/// The risk of a tool about which nothing is understood.
pub const UNKNOWN_RISK: f64 = 0.5;
/// Least risk of a tool with side effects whose server calls it destructive.
pub const DESTRUCTIVE_RISK: f64 = 0.8;
/// What is added to the risk where only the description, not the name, says what the tool does.
pub const DESCRIBED_ONLY_RISK: f64 = 0.1;

/// An argument and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectArgument {
    /// Name of the argument.
    pub argument: String,
    /// One of [`EFFECTS`].
    pub effect: String,
}

/// What a server claims about a tool (`annotations` of the Model Context Protocol). Claims, not facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`: the tool changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: what it changes cannot be undone.
    pub destructive: Option<bool>,
    /// `idempotentHint`: calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// `openWorldHint`: it reaches beyond a closed system.
    pub open_world: Option<bool>,
}

/// A drafted classification.
#[derive(Debug, Clone, PartialEq)]
pub struct Inferred {
    /// One of the registry's seed types or of [`TOOL_TYPES`].
    pub tool_type: String,
    /// Whether it changes something, or may.
    pub side_effecting: bool,
    /// 0 to 1.
    pub risk: f64,
    /// Arguments whose contents say what a call would touch.
    pub effects: Vec<EffectArgument>,
    /// Why, in the order in which the evidence was weighed.
    pub reasons: Vec<String>,
}

/// What a verb does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    /// Looks something up, unless a secret is handed to it.
    Check,
    Calculate,
    Modify,
    File,
    Send,
    Delete,
    Execute,
    Pay,
}

impl Class {
    fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Check | Self::Calculate)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Verb {
    word: String,
    class: Class,
    from_description: bool,
}

/// Drafts the classification of a tool; see the module for how. Pure, total and bounded.
#[must_use]
pub fn infer(name: &str, description: &str, schema: &Value, hints: &Hints) -> Inferred {
    let mut reasons = Vec::new();
    let tool =
        Words { name: segments(name), description: prose(description), properties: properties(schema) };
    let mut verb = tool.verb(&mut reasons);
    if let Some(found) = &verb
        && !found.class.changes()
        && let Some(raised) = tool.raised(found, &mut reasons)
    {
        verb = Some(raised);
    }
    let effects = tool.effects(verb.as_ref());
    let mut tool_type = verb.as_ref().map_or("OTHER", |verb| tool.tool_type(verb, &effects));
    let mut side_effecting = verb.as_ref().is_none_or(|verb| verb.class.changes());
    let mut by_arguments = |kinds: &[&str], to: &'static str| {
        let Some(found) = effects.iter().find(|effect| kinds.contains(&effect.effect.as_str())) else {
            return;
        };
        reasons.push(format!("argument `{}` holds {}: it can change things", found.argument, found.effect));
        (tool_type, side_effecting) = (to, true);
    };
    by_arguments(&["sql"], "QUERY_DB");
    by_arguments(&["shell", "code"], "EXECUTE");

    let mut risk = risk_of(tool_type);
    if verb.as_ref().is_some_and(|verb| verb.from_description) {
        risk = (risk + DESCRIBED_ONLY_RISK).min(1.0);
    }
    match (hints.read_only, side_effecting) {
        (Some(true), true) => reasons.push("the server says read-only; not trusted".to_owned()),
        (Some(true), false) => reasons.push("the server says read-only, which agrees".to_owned()),
        (Some(false), false) => {
            reasons.push("the server itself says that it is not read-only".to_owned());
            (tool_type, side_effecting, risk) = ("OTHER", true, risk.max(UNKNOWN_RISK));
        }
        _ => {}
    }
    if hints.destructive == Some(true) && side_effecting && hints.read_only != Some(true) {
        reasons.push("the server says destructive".to_owned());
        risk = risk.max(DESTRUCTIVE_RISK);
    }
    Inferred { tool_type: tool_type.to_owned(), side_effecting, risk, effects, reasons }
}

fn risk_of(tool_type: &str) -> f64 {
    match tool_type {
        "CALCULATE" => 0.05,
        "RETRIEVE_DOCS" => 0.1,
        "WEB_FETCH" => 0.3,
        "QUERY_DB" | "WRITE_FILE" | "MODIFY" => 0.5,
        "SEND_EMAIL" => 0.7,
        "DELETE" => 0.8,
        "EXECUTE" | "PAY" => 0.9,
        _ => UNKNOWN_RISK,
    }
}

/// What a verb does, and whether the word is as often a noun (`post_list`, `order_history`).
fn verb_class(word: &str) -> Option<(Class, bool)> {
    let class = match word {
        "get" | "list" | "read" | "search" | "find" | "fetch" | "query" | "view" | "show" | "lookup"
        | "look" | "retrieve" | "describe" | "inspect" | "browse" | "visit" | "count" | "display"
        | "preview" | "compare" | "diff" | "explain" | "summarize" | "summarise" | "analyze" | "analyse"
        | "grep" | "glob" | "cat" | "ls" | "stat" | "peek" | "poll" | "monitor" | "recall" | "detect"
        | "identify" | "recommend" | "suggest" | "translate" | "classify" | "discover" | "enumerate"
        | "observe" | "echo" | "is" | "has" | "whoami" | "return" | "provide" | "see" => Class::Read,
        "check" | "verify" | "validate" => Class::Check,
        "calculate" | "compute" | "convert" | "multiply" | "divide" | "subtract" | "estimate" => {
            Class::Calculate
        }
        "create" | "add" | "insert" | "update" | "set" | "edit" | "modify" | "change" | "rename" | "put"
        | "patch" | "replace" | "merge" | "sync" | "reset" | "enable" | "disable" | "cancel"
        | "reschedule" | "reserve" | "submit" | "push" | "pull" | "clone" | "assign" | "grant" | "revoke"
        | "approve" | "reject" | "accept" | "close" | "lock" | "unlock" | "login" | "logout"
        | "authenticate" | "authorize" | "register" | "upsert" | "trigger" | "click" | "press" | "fill"
        | "drag" | "turn" | "stop" | "start" | "pause" | "resume" | "configure" | "deploy" | "join"
        | "leave" | "subscribe" | "unsubscribe" | "block" | "unblock" | "follow" | "unfollow" | "make"
        | "do" | "perform" | "control" | "manage" | "adjust" | "import" | "complete" | "archive"
        | "restore" | "publish" | "toggle" | "alter" | "confirm" | "swap" | "overwrite" => Class::Modify,
        "write" | "append" | "save" | "store" | "download" | "upload" | "move" | "copy" | "mkdir"
        | "touch" | "backup" | "unzip" | "export" => Class::File,
        "send" | "reply" | "forward" | "notify" | "invite" | "tweet" | "broadcast" | "announce" => {
            Class::Send
        }
        "delete" | "remove" | "clear" | "purge" | "drop" | "destroy" | "erase" | "wipe" | "truncate"
        | "uninstall" | "trash" | "prune" | "discard" | "rm" => Class::Delete,
        "run" | "execute" | "exec" | "eval" | "invoke" | "launch" | "spawn" | "install" | "bash"
        | "shell" | "terminal" | "powershell" | "kill" | "terminate" => Class::Execute,
        "pay" | "purchase" | "buy" | "checkout" | "refund" | "withdraw" | "donate" | "deposit" | "remit"
        | "reimburse" => Class::Pay,
        "order" | "book" | "transfer" | "schedule" | "post" | "share" | "comment" => {
            return Some((Class::Modify, true));
        }
        "email" | "mail" | "message" | "text" => return Some((Class::Send, true)),
        "charge" | "bid" | "trade" => return Some((Class::Pay, true)),
        _ => return None,
    };
    Some((class, false))
}

/// Verbs that say little by themselves: "run a search", "make a list", "start a query".
fn is_vague(word: &str) -> bool {
    matches!(
        word,
        "run"
            | "execute"
            | "make"
            | "do"
            | "perform"
            | "start"
            | "send"
            | "submit"
            | "set"
            | "put"
            | "turn"
            | "leave"
            | "complete"
            | "invoke"
            | "launch"
            | "close"
            | "manage"
            | "control"
    )
}

/// Lower-case words of one piece of a name: snake, kebab, camel.
fn words_of(piece: &str) -> Vec<String> {
    let letters: Vec<char> = piece.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after_small = before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit());
        let ends_acronym = before.is_some_and(|before| before.is_uppercase())
            && letters.get(at + 1).is_some_and(|after| after.is_lowercase());
        let starts_word = letter.is_uppercase() && (after_small || ends_acronym);
        if (starts_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if words.len() >= WORDS_MAX {
            return words;
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The pieces of a name between `.`, `/`, `:` and `__`, each as words.
fn segments(name: &str) -> Vec<Vec<String>> {
    let pieces = name.split("__").flat_map(|piece| piece.split(['.', '/', ':']));
    pieces.map(words_of).filter(|words| !words.is_empty()).take(WORDS_MAX).collect()
}

/// The words of a description's first sentence, lower-case.
fn prose(description: &str) -> Vec<String> {
    let end = description.find(". ").or_else(|| description.find(".\n")).unwrap_or(description.len());
    let sentence = description.get(..end).unwrap_or(description);
    let words = sentence.split(|letter: char| !letter.is_alphanumeric() && letter != '-' && letter != '\'');
    words.filter(|word| !word.is_empty()).take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// The verb that a word of prose is a form of: as it stands, or the third person.
fn prose_verb(word: &str) -> Option<(String, Class, bool)> {
    let mut forms = vec![word.to_owned()];
    if let Some(stem) = word.strip_suffix("ies") {
        forms.push(format!("{stem}y"));
    }
    forms.extend(word.strip_suffix("es").map(str::to_owned));
    forms.extend(word.strip_suffix('s').map(str::to_owned));
    forms.into_iter().find_map(|form| verb_class(&form).map(|(class, noun)| (form, class, noun)))
}

fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "this"
            | "tool"
            | "function"
            | "method"
            | "action"
            | "will"
            | "can"
            | "allows"
            | "allow"
            | "lets"
            | "enables"
            | "helps"
            | "you"
            | "user"
            | "users"
            | "the"
            | "a"
            | "an"
            | "to"
            | "used"
            | "use"
            | "for"
            | "it"
            | "that"
            | "which"
            | "api"
            | "please"
            | "safely"
            | "securely"
            | "quickly"
            | "simply"
            | "recursively"
    )
}

fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let empty = Map::new();
    let object = schema.as_object();
    let listed = object.and_then(|object| object.get("properties")).and_then(Value::as_object);
    // A bare property map has no `properties`; all that it holds are arguments.
    let bare = object.filter(|object| !object.contains_key("type") && object.values().all(Value::is_object));
    let map = listed.or(bare).map_or_else(Vec::new, |map| map.iter().take(ARGUMENTS_MAX).collect());
    drop(empty);
    map.into_iter().map(|(name, property)| (name.as_str(), property)).collect()
}
