//! What a tool does: read from its name, raised by whatever else is known of it.
//!
//! The name decides, since it is what the agent calls and what a person sees. A tool changes something unless its name
//! says that it only reads; description, schema and type can make a tool look graver, never less grave. A name without
//! any known verb is that of a tool which changes something.

use portcullis_core::infer::words_of;

use crate::classes::Classes;
use crate::lexicon::{Families, Lexicon};
use crate::words::{Word, hash, stem_hash, words};

/// Most words of a description that are looked at.
pub const DESCRIPTION_WORDS_MAX: usize = 40;
/// Longest description that is looked at, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;
/// Names of at most this many words can be those of a tool that hands over to a person.
const HANDOVER_WORDS_MAX: usize = 4;

/// What a call does, as far as its tool's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Deed {
    /// Makes something known to the agent, and changes nothing.
    Read,
    /// Goes to what a URL names.
    Visit,
    /// Changes something.
    Change,
    /// Runs a program.
    Execute,
    /// Something leaves for somebody.
    Send,
    /// Money is moved or committed.
    Pay,
    /// Something ends or is removed.
    Delete,
    /// Somebody may do more than before, or a protection is given up.
    Grant,
    /// Something or somebody stops working, or stops being heard.
    Disable,
}

impl Deed {
    /// The deed of this name in the data.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "visit" => Self::Visit,
            "change" => Self::Change,
            "execute" => Self::Execute,
            "send" => Self::Send,
            "pay" => Self::Pay,
            "delete" => Self::Delete,
            "grant" => Self::Grant,
            "disable" => Self::Disable,
            _ => return None,
        })
    }

    /// Whether it changes something by itself.
    pub const fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Visit)
    }

    /// Whether it is grave whatever it is done to.
    pub const fn is_grave(self) -> bool {
        matches!(self, Self::Pay | Self::Delete | Self::Grant | Self::Disable)
    }
}

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
    /// Whether a person said so, rather than a server or a guess.
    pub declared: bool,
}

impl<'a> ToolView<'a> {
    /// A tool of which only the name is known: nobody classified it.
    pub fn unknown(name: &'a str) -> Self {
        Self { name, description: "", tool_type: "OTHER", side_effecting: true, declared: false }
    }
}

/// What a tool does, to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallKind {
    /// What its name says that it does.
    pub deed: Deed,
    /// Whether a word of the name says so; otherwise the deed is what is assumed.
    pub known: bool,
    /// Whether that word is surely a verb: `order` is as often a thing.
    pub sure: bool,
    /// Families of its verbs, and of the nouns that they govern.
    pub families: Families,
    /// Families of its verbs alone.
    pub verb_families: Families,
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
    /// Its name speaks of a thing whose change is grave.
    pub grave: bool,
    /// Its own piece of the name is a verb and no thing: `expenses.approve`.
    pub bare: bool,
    /// It searches the web: addresses among its results are its own.
    pub searches: bool,
    /// It makes things safer: what it is done to makes it no graver.
    pub safe: bool,
    /// It puts something on record.
    pub entry: bool,
    /// It deals with what is nobody else's business.
    pub secretive: bool,
    /// It only thinks, looks for tools, or hands over to a person.
    pub harmless: bool,
    /// Its results are the words of whoever wrote a page, whatever their form.
    pub fetches: bool,
}

impl Default for CallKind {
    fn default() -> Self {
        Self {
            deed: Deed::Change,
            known: false,
            sure: false,
            families: Families::NONE,
            verb_families: Families::NONE,
            verbs: Vec::new(),
            objects: Vec::new(),
            described: Vec::new(),
            name: 0,
            changes: true,
            grave: false,
            bare: false,
            searches: false,
            safe: false,
            entry: false,
            secretive: false,
            harmless: false,
            fetches: false,
        }
    }
}

/// A word of a name.
struct NameWord {
    hash: u64,
    stem: u64,
    /// Number of the piece of the name, between points, slashes and double underscores, that it stands in.
    piece: usize,
    deed: Option<(Deed, bool)>,
}

impl CallKind {
    /// Reads the kind of a tool's calls.
    pub fn of(lexicon: &Lexicon, tool: &ToolView<'_>) -> Self {
        let name = name_words(lexicon, tool.name);
        let description = first_sentence(tool.description);
        let verb = verb_of(&name);
        let mut kind = Self { name: hash(tool.name.to_lowercase().as_bytes()), ..Self::default() };
        if let Some(word) = verb.and_then(|at| name.get(at)) {
            kind.verbs.push(word.stem);
            (kind.deed, kind.known) = (word.deed.map_or(Deed::Change, |(deed, _)| deed), word.deed.is_some());
            kind.sure = word.deed.is_some_and(|(_, sure)| sure);
        }
        kind.take_objects(lexicon, &name, verb);
        let last = name.last().map(|word| word.piece);
        kind.bare = name.iter().filter(|word| Some(word.piece) == last).count() == 1
            && verb == name.len().checked_sub(1);
        kind.take_description(lexicon, &description);
        kind.entry = kind.verbs.iter().any(|verb| lexicon.stem_classes(*verb).is(Classes::ENTRY));
        kind.raise(lexicon, &name, verb, tool);
        kind.weigh(lexicon, &name, tool);
        kind
    }

    /// Whether it is the kind of the tool with exactly this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == hash(name.to_lowercase().as_bytes())
    }

    fn take_objects(&mut self, lexicon: &Lexicon, name: &[NameWord], verb: Option<usize>) {
        let empty = Classes::FUNCTION.or(Classes::GENERIC);
        for (at, word) in name.iter().enumerate() {
            let thing = lexicon.thing(word.stem);
            let says = !lexicon.classes_of(word.hash, word.stem).is(empty);
            if Some(at) != verb && says && !self.objects.contains(&thing) {
                self.objects.push(thing);
            }
        }
    }

    fn take_description(&mut self, lexicon: &Lexicon, description: &[Word]) {
        let empty = Classes::FUNCTION.or(Classes::GENERIC).or(Classes::TOOLISH);
        for word in description {
            let thing = lexicon.thing(word.stem);
            let known = self.verbs.contains(&lexicon.base(word.stem)) || self.objects.contains(&thing);
            if !lexicon.classes(word).is(empty) && !known && !self.described.contains(&thing) {
                self.described.push(thing);
            }
        }
    }

    /// What nouns and further verbs of the name, and what is registered of the tool, make of its deed.
    fn raise(&mut self, lexicon: &Lexicon, name: &[NameWord], verb: Option<usize>, tool: &ToolView<'_>) {
        let reads = !self.deed.changes();
        // To make a payment is to pay, to place an order is to buy.
        let last = name.last().and_then(|word| word.deed);
        let commits = matches!(self.deed, Deed::Change | Deed::Send | Deed::Execute);
        if commits && matches!(last, Some((Deed::Pay, _))) {
            self.deed = Deed::Pay;
        }
        // To create a post is to post it.
        let message = |word: &NameWord| word.deed.is_some_and(|(deed, sure)| deed == Deed::Send && !sure);
        if self.deed == Deed::Change
            && self.entry
            && name.iter().enumerate().any(|(at, word)| Some(at) != verb && message(word))
        {
            self.deed = Deed::Send;
        }
        // To add a member is to let them in.
        let power = |word: &NameWord| lexicon.stem_classes(word.stem).is(Classes::POWER);
        let adds = self
            .verbs
            .iter()
            .any(|verb| ["add", "insert", "put", "attach", "join"].iter().any(|add| *verb == stem_hash(add)));
        if self.deed == Deed::Change && adds && name.iter().any(power) {
            self.deed = Deed::Grant;
        }
        // `find_and_delete`, `check_then_pay`.
        let joined = |at: &usize| {
            at.checked_sub(1)
                .and_then(|at| name.get(at))
                .is_some_and(|word| [hash(b"and"), hash(b"or"), hash(b"then")].contains(&word.hash))
        };
        let further = (0..name.len()).filter(|at| Some(*at) != verb && joined(at));
        let raised = further.filter_map(|at| name.get(at)?.deed).map(|(deed, _)| deed).max();
        if let Some(deed) = raised.filter(|deed| deed.changes() && *deed > self.deed) {
            self.deed = deed;
        }
        if reads && !self.deed.changes() && !tool.declared && !self.known {
            self.deed = Deed::Change;
        }
        self.deed = match tool.tool_type {
            "PAY" if self.deed.changes() => Deed::Pay,
            "DELETE" if self.deed == Deed::Change => Deed::Delete,
            "EXECUTE" if self.deed == Deed::Change => Deed::Execute,
            "SEND_EMAIL" if self.deed == Deed::Change => Deed::Send,
            _ => self.deed,
        };
        self.changes = self.deed.changes();
        if tool.declared {
            self.changes = tool.side_effecting;
            self.deed = match (self.changes, self.deed) {
                (false, Deed::Visit) => Deed::Visit,
                (false, _) => Deed::Read,
                (true, deed) if !deed.changes() => Deed::Change,
                (true, deed) => deed,
            };
        }
    }

    fn weigh(&mut self, lexicon: &Lexicon, name: &[NameWord], tool: &ToolView<'_>) {
        let verbs = self.verbs.iter().fold(Families::NONE, |all, verb| all.or(lexicon.verb(*verb)));
        let nouns = name.iter().fold(Families::NONE, |all, word| all.or(lexicon.noun(word.stem)));
        self.verb_families = verbs;
        self.families = if self.changes { verbs.or(nouns) } else { verbs };
        let of = |class: Classes| name.iter().any(|word| lexicon.classes_of(word.hash, word.stem).is(class));
        self.safe = self.verbs.iter().any(|verb| lexicon.stem_classes(*verb).is(Classes::SAFE));
        // What no verb does anything to is looked at.
        self.grave = of(Classes::GRAVE) && !self.safe && self.known;
        self.secretive = of(Classes::SECRETIVE);
        let is = |word: &NameWord, names: &[&str]| names.iter().any(|name| word.stem == stem_hash(name));
        let any = |names: &[&str]| name.iter().any(|word| is(word, names));
        let web = tool.tool_type == "WEB_FETCH" || any(&["url", "web", "webpage", "page", "browser"]);
        // What a browser answers is the page's, whatever was done there.
        let browses = any(&["click", "input", "press", "scroll", "hover", "tap", "fill", "type", "browser"]);
        self.fetches = self.deed == Deed::Visit || web && !self.changes || browses;
        self.searches = any(&["search", "google", "bing", "duckduckgo", "brave", "tavily"])
            && !self.changes
            && any(&[
                "web",
                "internet",
                "online",
                "google",
                "bing",
                "duckduckgo",
                "brave",
                "tavily",
                "websearch",
                "engine",
            ]);
        self.harmless = any(&["think", "plan", "reflect", "todo"]) && name.len() <= 2
            || name.len() <= HANDOVER_WORDS_MAX && any(&["human", "humans"])
            || any(&["tool", "tools"]) && any(&["search", "find", "list", "route"])
            || name.len() == 1 && any(&["finish", "answer", "done", "respond"]);
        if self.harmless {
            (self.changes, self.deed) = (false, Deed::Read);
        }
    }
}

/// The words of a name, without the part of a server.
fn name_words(lexicon: &Lexicon, name: &str) -> Vec<NameWord> {
    let pieces = name.split("__").flat_map(|piece| piece.split(['.', '/', ':']));
    let words = pieces
        .enumerate()
        .flat_map(|(piece, text)| words_of(text).into_iter().map(move |word| (piece, word)));
    let mut found: Vec<NameWord> = words
        .map(|(piece, word)| {
            let stem = lexicon.base(stem_hash(&word));
            NameWord { hash: hash(word.as_bytes()), stem, piece, deed: lexicon.deed(stem) }
        })
        .collect();
    // `mcp__server__tool`
    if name.starts_with("mcp__") && found.iter().any(|word| word.piece > 1) {
        found.retain(|word| word.piece > 1);
    }
    found
}

/// The word that says what is done: in the last piece that has one, the first that is surely a verb, else the first that
/// may be one.
fn verb_of(name: &[NameWord]) -> Option<usize> {
    let last = name.last()?.piece;
    for piece in (0..=last).rev() {
        let own = || name.iter().enumerate().filter(|(_, word)| word.piece == piece);
        let verb = |sure: bool| {
            own().find(|(_, word)| word.deed.is_some_and(|(_, verb)| verb || !sure)).map(|(at, _)| at)
        };
        if let Some(sure) = verb(true) {
            return Some(sure);
        }
        // `order_history` is no order.
        let noun = own().rev().find(|(_, word)| word.deed.is_some());
        if let Some((at, _)) = noun.filter(|(_, word)| word.deed.is_some_and(|(deed, _)| !deed.changes())) {
            return Some(at);
        }
        if let Some(maybe) = verb(false) {
            return Some(maybe);
        }
    }
    None
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

    fn deed(name: &str) -> (Deed, bool) {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let kind = CallKind::of(&lexicon, &ToolView::unknown(name));
        (kind.deed, kind.deed.is_grave() || kind.grave && kind.changes)
    }

    #[test]
    fn the_name_says_what_a_tool_does() {
        for (name, expected, grave) in [
            ("send_money", Deed::Send, false),
            ("make_payment", Deed::Pay, true),
            ("get_scheduled_transactions", Deed::Read, false),
            ("order_history", Deed::Read, false),
            ("SmartLockGrantGuestAccess", Deed::Grant, true),
            ("update_spending_limit", Deed::Change, true),
            ("update_order_status", Deed::Change, false),
            ("mailbox.list_unread", Deed::Read, false),
            ("find_and_delete", Deed::Delete, true),
            ("mcp__files__read_file", Deed::Read, false),
            ("frobnicate", Deed::Change, false),
            ("calendar.event.create", Deed::Change, false),
        ] {
            assert_eq!(deed(name), (expected, grave), "{name}");
        }
    }
}
