//! What a tool does: read from its name, raised by whatever else is known of it.
//!
//! The name decides, since it is what the agent calls and what a person sees. A tool changes something unless its name
//! says that it only reads; description, schema and type can make a tool look graver, never less grave. A name without
//! any known verb is that of a tool which changes something.

use crate::classes::Classes;
pub use crate::deed::Deed;
use crate::lexicon::{Families, Lexicon};
use crate::names::{Name, NameWord};
use crate::protections;
use crate::words::{Word, hash, stem_hash, words};

/// Most words of a description that are looked at.
pub const DESCRIPTION_WORDS_MAX: usize = 40;
/// Longest description that is looked at, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 1_024;
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
    /// Whether a person said so, rather than a server or a guess.
    pub declared: bool,
}

impl<'a> ToolView<'a> {
    /// An unclassified tool, of which only the name is known.
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
    /// The things in its name whose change is grave.
    pub grave_things: Vec<u64>,
    /// Its own piece of the name is a verb and no thing: `expenses.approve`.
    pub bare: bool,
    /// It searches the web: addresses among its results are its own.
    pub searches: bool,
    /// It makes things safer: what it is done to makes it no graver.
    pub safe: bool,
    /// It puts something on record.
    pub entry: bool,
    /// It deals with something private.
    pub secretive: bool,
    /// It only thinks, looks for tools, or hands over to a person.
    pub harmless: bool,
    /// It talks with someone: what it returns is what they say.
    pub talks: bool,
    /// It deals with a cart, which is not paid yet.
    pub cart: bool,
    /// It deals with what protects or watches.
    pub protects: bool,
    /// It deals with something that lets someone in when it is open.
    pub entrance: bool,
    /// It is one for anything: its arguments say what is done.
    pub general: bool,
    /// Its verb is *open*.
    pub opens: bool,
    /// It switches something off.
    pub off: bool,
    /// It types into what a page or an app shows, or submits it.
    pub types: bool,
    /// It clicks on what a page or an app shows.
    pub clicks: bool,
    /// Its results are the words of the author of a page, whatever their form.
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
            grave_things: Vec::new(),
            bare: false,
            searches: false,
            safe: false,
            entry: false,
            secretive: false,
            harmless: false,
            talks: false,
            cart: false,
            protects: false,
            entrance: false,
            general: false,
            opens: false,
            off: false,
            types: false,
            clicks: false,
            fetches: false,
        }
    }
}

impl CallKind {
    /// Reads the kind of a tool's calls.
    pub fn of(lexicon: &Lexicon, tool: &ToolView<'_>) -> Self {
        let name = Name::of(lexicon, tool.name);
        let mut kind = Self { name: hash(tool.name.to_lowercase().as_bytes()), ..Self::default() };
        if let Some(word) = name.verb_word() {
            kind.verbs.push(word.stem);
            (kind.deed, kind.known) = (word.deed.map_or(Deed::Change, |(deed, _)| deed), word.deed.is_some());
            kind.sure = word.deed.is_some_and(|(_, sure)| sure);
        }
        kind.bare = name.is_bare();
        kind.entry = kind.has_verb(lexicon, Classes::ENTRY);
        kind.take_objects(lexicon, &name);
        kind.take_description(lexicon, &first_sentence(tool.description));
        kind.raise(lexicon, &name);
        kind.register(&name, tool);
        kind.weigh(lexicon, &name);
        kind.describe(lexicon, &name, tool);
        kind
    }

    /// Whether it is the kind of the tool with exactly this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == hash(name.to_lowercase().as_bytes())
    }

    fn has_verb(&self, lexicon: &Lexicon, class: Classes) -> bool {
        self.verbs.iter().any(|verb| lexicon.stem_classes(*verb).is(class))
    }

    fn take_objects(&mut self, lexicon: &Lexicon, name: &Name) {
        let empty = Classes::FUNCTION.or(Classes::GENERIC);
        for (at, word) in name.words.iter().enumerate() {
            let thing = lexicon.thing(word.stem);
            if Some(at) != name.verb && !word.classes.is(empty) && !self.objects.contains(&thing) {
                self.objects.push(thing);
            }
        }
        // `FarmDesk.createJobs`: who speaks of FarmDesk means it.
        let own = name.verb_word().map(|word| word.piece);
        for piece in name.words.chunk_by(|one, next| one.piece == next.piece) {
            let joined: String = piece.iter().map(|word| word.spelt.as_str()).collect();
            if piece.len() > 1 && piece.first().map(|word| word.piece) != own {
                self.objects.push(lexicon.thing(stem_hash(&joined)));
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

    /// What nouns and further verbs of the name make of its deed.
    fn raise(&mut self, lexicon: &Lexicon, name: &Name) {
        if self.pays(lexicon, name) {
            self.deed = Deed::Pay;
        }
        // `format_disk`
        const DISKS: [&str; 7] = ["disk", "drive", "partition", "volume", "fs", "usb", "card"];
        if self.deed == Deed::Change && name.has(lexicon, &["format"]) && name.has(lexicon, &DISKS) {
            self.deed = Deed::Delete;
        }
        // Cells, tags and items of a cart are merged, unlocked and removed all day, and so is the lock of a file.
        const LIGHT: [&str; 12] = [
            "cell",
            "pane",
            "row",
            "column",
            "sheet",
            "tag",
            "label",
            "duplicate",
            "contact",
            "pdf",
            "paragraph",
            "slide",
        ];
        let file =
            name.has(lexicon, &["file", "doc", "document"]) && name.has(lexicon, &["lock", "checkout"]);
        let cart = name.has(lexicon, &["cart", "basket"]) && matches!(self.deed, Deed::Delete | Deed::Pay);
        let light = matches!(self.deed, Deed::Grant | Deed::Disable) && name.has(lexicon, &LIGHT);
        if light || file || cart && !name.has(lexicon, &["checkout", "pay", "buy", "order", "purchase"]) {
            self.deed = Deed::Change;
        }
        // An account is closed for good.
        if name.does(&["close"]) && name.has(lexicon, &["account"]) {
            self.deed = Deed::Delete;
        }
        // To create a post is to post it.
        let beside = |at: usize| name.verb.is_some_and(|verb| verb.abs_diff(at) == 1);
        let message = |word: &NameWord| matches!(word.deed, Some((Deed::Send, false)));
        let posts = name.words.iter().enumerate().any(|(at, word)| beside(at) && message(word));
        if self.deed == Deed::Change && self.entry && posts && !name.words.iter().any(|word| word.grave) {
            self.deed = Deed::Send;
        }
        // To open a door is to let someone in.
        self.opens = name.does(&["open"]);
        self.entrance = name.is(Classes::ENTRANCE);
        if self.opens && self.entrance {
            self.deed = Deed::Grant;
        }
        // To add a member is to let them in.
        let power = |word: &NameWord| {
            matches!(word.deed, Some((Deed::Grant, true)))
                || lexicon.stem_classes(word.stem).is(Classes::POWER)
        };
        let adds = name.does(&["add", "insert", "put", "attach", "join"]);
        if self.deed == Deed::Change && adds && name.words.iter().any(power) {
            self.deed = Deed::Grant;
        }
        self.raise_by_further_verbs(name);
    }

    /// Whether it moves money by the noun beside its verb: to make a payment is to pay, to place an order is to buy.
    fn pays(&self, lexicon: &Lexicon, name: &Name) -> bool {
        let labels = self.has_verb(lexicon, Classes::SAFE);
        let commits = matches!(self.deed, Deed::Change | Deed::Send | Deed::Execute) && !labels;
        let pays = |word: &NameWord| matches!(word.deed, Some((Deed::Pay, _)));
        let work = name.has(lexicon, &["work"]);
        // `ueberweisung_ausfuehren`; who creates an invoice asks for money.
        let carries_out = self.has_verb(lexicon, Classes::VAGUE);
        let before = name.before_verb().is_some_and(|word| pays(word) && word.stem != stem_hash("invoice"));
        commits && (name.words.last().is_some_and(pays) && !work || carries_out && before)
    }

    /// `find_and_delete`, `check_then_pay`.
    fn raise_by_further_verbs(&mut self, name: &Name) {
        let joins = |word: &NameWord| ["and", "or", "then"].contains(&word.spelt.as_str());
        let pairs = name.words.iter().zip(name.words.iter().skip(1));
        let further = pairs.filter(|(before, _)| joins(before)).filter_map(|(_, word)| word.deed);
        if let Some((deed, _)) = further.max_by_key(|(deed, _)| *deed) {
            self.deed = if deed.changes() { self.deed.max(deed) } else { self.deed };
        }
    }

    /// What is registered of the tool: it raises, and lowers only where a person said so.
    fn register(&mut self, name: &Name, tool: &ToolView<'_>) {
        let grave = name.words.iter().any(|word| word.grave);
        self.deed = match tool.tool_type {
            "PAY" if self.deed.changes() => Deed::Pay,
            "DELETE" if self.deed == Deed::Change => Deed::Delete,
            "EXECUTE" if self.deed == Deed::Change => Deed::Execute,
            "SEND_EMAIL" if self.deed == Deed::Change && !grave => Deed::Send,
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

    /// How grave it is by what it deals with.
    fn weigh(&mut self, lexicon: &Lexicon, name: &Name) {
        let verbs = self.verbs.iter().fold(Families::NONE, |all, verb| all.or(lexicon.verb(*verb)));
        let nouns = name.words.iter().fold(Families::NONE, |all, word| all.or(lexicon.noun(word.stem)));
        self.verb_families = verbs;
        self.families = if self.changes { verbs.or(nouns) } else { verbs };
        // What is written on something, and the lock of a file, make it no graver.
        self.safe = self.has_verb(lexicon, Classes::SAFE)
            || self.entry && name.has(lexicon, &["note", "comment", "draft", "label", "tag"])
            || name.has(lexicon, &["file"]) && name.has(lexicon, &["lock"]);
        // What no verb does anything to is looked at.
        if self.known && !self.safe {
            // To trigger is to run, and a trigger acts by itself.
            let runs = |word: &NameWord| self.deed == Deed::Execute && self.verbs.contains(&word.stem);
            let grave = name.words.iter().filter(|word| word.grave && !runs(word));
            self.grave_things = grave.map(|word| lexicon.thing(word.stem)).collect();
        }
    }

    /// What else its name says.
    fn describe(&mut self, lexicon: &Lexicon, name: &Name, tool: &ToolView<'_>) {
        const ENGINES: [&str; 5] = ["google", "bing", "duckduckgo", "brave", "tavily"];
        let any = |names: &[&str]| name.has(lexicon, names);
        self.secretive = name.is(Classes::SECRETIVE);
        self.protects =
            name.words.iter().any(|word| protections::are_watching(std::slice::from_ref(&word.spelt)));
        self.off = any(&["off", "mute", "snooze", "silence", "suspend", "pause"]);
        self.clicks = any(&["click", "tap", "press", "invoke", "menu", "act", "ui"]);
        self.talks = any(&["chat", "ask", "talk", "converse", "consult", "call"]);
        self.cart = any(&["cart", "basket"]);
        self.general = !self.known
            || self.deed == Deed::Execute
            || self.has_verb(lexicon, Classes::VAGUE.or(Classes::OPEN));
        let web = tool.tool_type == "WEB_FETCH" || any(&["url", "web", "webpage", "page", "browser"]);
        // What a browser answers is the page's, whatever was done there.
        let browses = any(&["click", "input", "press", "scroll", "hover", "tap", "fill", "type", "browser"]);
        self.types = any(&["fill", "type", "input", "submit"]) && (web || browses || any(&["form"]));
        self.fetches = self.deed == Deed::Visit || web && !self.changes || browses;
        let online = any(&["web", "internet", "online", "websearch", "engine"]) || any(&ENGINES);
        self.searches = (any(&["search"]) || any(&ENGINES)) && !self.changes && online;
        let few = name.words.len();
        self.harmless = any(&["think", "plan", "reflect", "todo"]) && few <= 2
            || few <= HANDOVER_WORDS_MAX && any(&["human", "humans"])
            || any(&["tool", "tools"]) && any(&["search", "find", "list", "route"])
            || few == 1 && any(&["finish", "answer", "done", "respond"]);
        if self.harmless {
            (self.changes, self.deed) = (false, Deed::Read);
        }
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

    fn deed(name: &str) -> (Deed, bool) {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let kind = CallKind::of(&lexicon, &ToolView::unknown(name));
        (kind.deed, kind.deed.is_grave() || !kind.grave_things.is_empty() && kind.changes)
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
