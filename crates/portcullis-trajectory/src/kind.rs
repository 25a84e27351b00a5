//! The kind of a call: what its tool does, to what, read from the tool's name and description.

use portcullis_core::infer::words_of;

use crate::classes::Classes;
use crate::lexicon::{Families, Lexicon};
use crate::words::{Word, hash, stem_hash, words};

/// Most words of a description that are looked at.
pub const DESCRIPTION_WORDS_MAX: usize = 40;
/// Longest description that is looked at, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;
/// The families whose damage cannot be undone by asking.
const GRAVE: [&str; 6] = ["pay", "unlock", "delete", "trade", "execute", "buy"];
/// Names of at most this many words can be those of a tool that hands over to a person.
const HANDOVER_WORDS_MAX: usize = 4;

/// What is known of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolView<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says it does.
    pub description: &'a str,
    /// Its type in the registry.
    pub tool_type: &'a str,
    /// Whether it changes something.
    pub side_effecting: bool,
}

impl<'a> ToolView<'a> {
    /// A tool of which only the name is known: nobody classified it, so it changes something.
    pub fn unknown(name: &'a str) -> Self {
        Self { name, description: "", tool_type: "OTHER", side_effecting: true }
    }
}

/// What a tool does, to what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallKind {
    /// Families of its verbs, and of the nouns that they govern.
    pub families: Families,
    /// Stems of its verbs.
    pub verbs: Vec<u64>,
    /// The things in its name.
    pub objects: Vec<u64>,
    /// The further things in the first sentence of its description.
    pub described: Vec<u64>,
    /// Hash of the whole name in lower case.
    pub name: u64,
    /// It changes something.
    pub changes: bool,
    /// It fetches what a URL names.
    pub fetches: bool,
    /// What it does cannot be undone by asking: money, execution, doors, deletion, trade.
    pub grave: bool,
    /// It deals with what is nobody else's business.
    pub secretive: bool,
    /// Something leaves with it: it sends, publishes, shares or pays.
    pub sends: bool,
    /// It only thinks, looks for tools, or hands over to a person.
    pub harmless: bool,
}

impl CallKind {
    /// Reads the kind of a tool's calls.
    pub fn of(lexicon: &Lexicon, tool: &ToolView<'_>) -> Self {
        let name = words_of(tool.name.rsplit("__").next().unwrap_or(tool.name));
        let stems: Vec<u64> = name.iter().map(|word| lexicon.base(stem_hash(word))).collect();
        let description = first_sentence(tool.description);
        let is_verb = |stem: &u64| !lexicon.verb(*stem).is_empty();
        let introduces = Classes::FUNCTION.or(Classes::TOOLISH);
        let said = description
            .iter()
            .find(|word| !lexicon.classes(word).is(introduces))
            .map(|word| lexicon.base(word.stem));
        // The verb of the name: the one that the description says too, else the first, else the first word.
        let named = said
            .filter(|said| stems.contains(said))
            .or_else(|| stems.iter().copied().find(is_verb))
            .or(stems.first().copied());
        let mut verbs: Vec<u64> = named.into_iter().collect();
        verbs.extend(said.filter(|said| is_verb(said) && Some(*said) != named));
        let empty = Classes::FUNCTION.or(Classes::GENERIC);
        let mut kind = Self { verbs, name: hash(tool.name.to_lowercase().as_bytes()), ..Self::default() };
        for (word, stem) in name.iter().zip(&stems) {
            let thing = lexicon.thing(*stem);
            let says = !lexicon.classes_of(hash(word.as_bytes()), stem_hash(word)).is(empty);
            if Some(*stem) != named && says && !kind.objects.contains(&thing) {
                kind.objects.push(thing);
            }
        }
        for word in &description {
            let thing = lexicon.thing(word.stem);
            let known = kind.verbs.contains(&lexicon.base(word.stem)) || kind.objects.contains(&thing);
            if !lexicon.classes(word).is(empty) && !known && !kind.described.contains(&thing) {
                kind.described.push(thing);
            }
        }
        kind.weigh(lexicon, tool, &name, &stems);
        kind
    }

    /// Whether it is the kind of the tool with exactly this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == hash(name.to_lowercase().as_bytes())
    }

    /// What follows from the words.
    fn weigh(&mut self, lexicon: &Lexicon, tool: &ToolView<'_>, name: &[String], stems: &[u64]) {
        let family = |name: &str| lexicon.family(name);
        let verbs = self.verbs.iter().fold(Families::NONE, |all, verb| all.or(lexicon.verb(*verb)));
        let looks = family("read").or(family("visit"));
        self.changes = tool.side_effecting;
        self.families = if self.changes {
            stems.iter().fold(verbs, |all, stem| all.or(lexicon.noun(*stem)))
        } else {
            verbs.both(looks)
        };
        let web = name.iter().any(|word| word.starts_with("web") || word == "url" || word == "page");
        self.fetches = tool.tool_type == "WEB_FETCH" || web && self.families.meets(family("visit"));
        if self.fetches {
            self.families = self.families.or(family("visit"));
        }
        self.grave = self.changes && GRAVE.iter().any(|name| verbs.meets(family(name)));
        let secretive = |stem: &u64| lexicon.stem_classes(*stem).is(Classes::SECRETIVE);
        self.secretive = stems.iter().chain(&self.described).any(secretive);
        let outward = family("send").or(family("publish")).or(family("share")).or(family("pay"));
        self.sends = self.changes && self.families.meets(outward);
        let verb_is = |names: &[&str]| names.iter().any(|name| self.verbs.contains(&stem_hash(name)));
        let thing_is = |name: &str| stems.contains(&stem_hash(name));
        self.harmless = verb_is(&["think", "plan", "reflect"])
            || stems.len() <= HANDOVER_WORDS_MAX && thing_is("human")
            || thing_is("tool") && verb_is(&["search", "find", "list"]);
    }
}

/// The words of a description's first sentence.
fn first_sentence(description: &str) -> Vec<Word> {
    let cut = description.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    let text = description.get(..cut).unwrap_or_default();
    let mut found = words(text.split(". ").next().unwrap_or_default());
    found.truncate(DESCRIPTION_WORDS_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::BUILT_IN;

    fn kind(name: &str, description: &str, side_effecting: bool) -> (Lexicon, CallKind) {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let tool = ToolView { name, description, tool_type: "OTHER", side_effecting };
        let kind = CallKind::of(&lexicon, &tool);
        (lexicon, kind)
    }

    #[test]
    fn the_name_says_what_a_tool_does() {
        let (lexicon, send) = kind("send_money", "Sends a transaction to the recipient.", true);
        assert!(send.families.meets(lexicon.family("send")) && send.families.meets(lexicon.family("pay")));
        assert!(send.sends && !send.fetches);
        let (_, grant) = kind("SmartLockGrantGuestAccess", "Grant access to a guest.", true);
        assert_eq!(grant.verbs, [stem_hash("grant")]);
        assert!(grant.objects.contains(&stem_hash("guest")) && grant.secretive);
        let (lexicon, read) = kind("get_scheduled_transactions", "Get the list of transactions.", false);
        assert!(!read.families.meets(lexicon.family("pay")) && !read.grave);
        let (_, page) = kind("get_webpage", "Returns the content of the webpage.", false);
        assert!(!page.sends);
        let (_, think) = kind("think", "Think about it.", true);
        assert!(think.harmless);
        assert!(kind("transfer_to_human_agents", "", true).1.harmless);
        assert!(!kind("", "", true).1.harmless);
    }
}
