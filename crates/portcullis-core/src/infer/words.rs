//! The English that inference knows: how names and sentences fall into words, and what verbs do.

use std::ops::Range;

/// Most words of a name, and of a description, that are looked at.
pub const WORDS_MAX: usize = 64;
/// Room for most words of English.
const WORD_BYTES: usize = 12;

/// What a verb does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
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
    pub(super) fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Check | Self::Calculate)
    }
}

/// What a verb does, and whether the word is as often a noun (`post_list`, `order_history`).
pub(super) fn verb_class(word: &str) -> Option<(Class, bool)> {
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
        | "leave" | "subscribe" | "unsubscribe" | "block" | "unblock" | "follow" | "unfollow"
        | "checkout" | "place" | "make" | "do" | "perform" | "control" | "manage" | "adjust" | "import"
        | "complete" | "archive" | "restore" | "publish" | "toggle" | "alter" | "confirm" | "swap"
        | "overwrite" => Class::Modify,
        "write" | "append" | "save" | "store" | "download" | "upload" | "move" | "copy" | "mkdir"
        | "touch" | "backup" | "unzip" | "export" => Class::File,
        "send" | "reply" | "forward" | "notify" | "invite" | "tweet" | "broadcast" | "announce" => {
            Class::Send
        }
        "delete" | "remove" | "clear" | "purge" | "drop" | "destroy" | "erase" | "wipe" | "truncate"
        | "uninstall" | "trash" | "prune" | "discard" | "rm" => Class::Delete,
        "run" | "execute" | "exec" | "eval" | "invoke" | "launch" | "spawn" | "install" | "bash"
        | "shell" | "terminal" | "powershell" | "kill" | "terminate" => Class::Execute,
        "pay" | "purchase" | "buy" | "refund" | "withdraw" | "donate" | "deposit" | "remit" | "reimburse" => {
            Class::Pay
        }
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
pub(super) fn is_vague(word: &str) -> bool {
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

/// Verbs that hand a file to someone else rather than write one.
pub(super) fn is_outward(word: &str) -> bool {
    matches!(
        word,
        "push" | "pull" | "share" | "publish" | "post" | "submit" | "transfer" | "grant" | "revoke"
    )
}

/// Lower-case words of one piece of a name: snake, kebab, camel. At most [`WORDS_MAX`].
pub fn words_of(piece: &str) -> Vec<String> {
    let mut letters = piece.chars().peekable();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::with_capacity(WORD_BYTES);
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                let after_small = before.is_lowercase() || before.is_ascii_digit();
                after_small
                    || (before.is_uppercase() && letters.peek().is_some_and(|after| after.is_lowercase()))
            });
        before = Some(letter);
        if (starts_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::replace(&mut word, String::with_capacity(WORD_BYTES)));
        }
        if words.len() >= WORDS_MAX {
            return words;
        }
        if letter.is_alphanumeric() {
            match letter.is_ascii() {
                true => word.push(letter.to_ascii_lowercase()),
                false => word.extend(letter.to_lowercase()),
            }
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether an argument of this name says in which folder a call runs. Readers of effects take it for that folder.
pub fn is_working_directory(name: &str) -> bool {
    let words = words_of(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        ["cwd"]
            | ["workdir"]
            | ["chdir"]
            | [.., "working" | "work" | "current", "dir" | "directory"]
            | ["workingdir"]
            | ["workingdirectory"]
    )
}

/// Where the words of one piece of a name stand, as [`words_of`] cuts it, if it is of ASCII; no word is copied.
pub fn word_places(piece: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = piece.as_bytes();
    let mut at = 0;
    let next = move || {
        at += bytes.get(at..)?.iter().position(u8::is_ascii_alphanumeric)?;
        let start = at;
        at += 1;
        while let Some(letter) = bytes.get(at).filter(|letter| letter.is_ascii_alphanumeric()) {
            let before = bytes.get(at - 1).is_some_and(|before| !before.is_ascii_uppercase());
            let small_follows = || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if letter.is_ascii_uppercase() && (before || small_follows()) {
                break;
            }
            at += 1;
        }
        Some(start..at)
    };
    std::iter::from_fn(next).take(WORDS_MAX)
}

/// The pieces of a name between `.`, `/`, `:` and `__`, each as words.
pub(super) fn segments(name: &str) -> Vec<Vec<String>> {
    let pieces = name.split("__").flat_map(|piece| piece.split(['.', '/', ':']));
    pieces.map(words_of).filter(|words| !words.is_empty()).take(WORDS_MAX).collect()
}

/// The words of a description's first sentence, lower-case.
pub(super) fn prose(description: &str) -> Vec<String> {
    let end = description.find(". ").or_else(|| description.find(".\n")).unwrap_or(description.len());
    let sentence = description.get(..end).unwrap_or(description);
    let words = sentence.split(|letter: char| !letter.is_alphanumeric() && letter != '-' && letter != '\'');
    words.filter(|word| !word.is_empty()).take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// The verb that a word of prose is a form of: as it is, or the third person.
pub(super) fn prose_verb(word: &str) -> Option<(String, Class, bool)> {
    let mut forms = vec![word.to_owned()];
    if let Some(stem) = word.strip_suffix("ies") {
        forms.push(format!("{stem}y"));
    }
    forms.extend(word.strip_suffix("es").map(str::to_owned));
    forms.extend(word.strip_suffix('s').map(str::to_owned));
    forms.into_iter().find_map(|form| verb_class(&form).map(|(class, noun)| (form, class, noun)))
}

pub(super) fn is_filler(word: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_however_they_are_written() {
        assert_eq!(
            words_of("get_userInfo-fromHTTPServer2"),
            ["get", "user", "info", "from", "http", "server2"]
        );
        assert_eq!(segments("mcp__git.hub__listIssues").len(), 4);
        assert_eq!(words_of("__"), Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn places_are_those_of_the_words(name in "[a-cA-C1_ -]{0,20}") {
            let placed: Vec<String> =
                word_places(&name).map(|place| name.get(place).unwrap().to_lowercase()).collect();
            proptest::prop_assert_eq!(placed, words_of(&name));
        }
    }
}
