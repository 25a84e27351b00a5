//! The words of a tool's name, and which of them says what the tool does.

use portcullis_core::infer::words_of;

use crate::classes::Classes;
use crate::deed::Deed;
use crate::lexicon::Lexicon;
use crate::words::{hash, stem_hash};

/// Last words of names of tools that only read, whatever stands before.
const LOOKS: [&str; 6] = ["lookup", "finder", "calculator", "calc", "viewer", "inquiry"];
/// Verbs of reading that name a thing as often.
const LISTS: [&str; 12] = [
    "list", "view", "report", "search", "audit", "scan", "query", "record", "monitor", "index", "count",
    "log",
];
/// Last words of names that say what is done, whatever was looked at before: `suggest_save`, `count_enter`.
const ENDS: [&str; 24] = [
    "write", "update", "save", "add", "enter", "delete", "remove", "create", "send", "replace", "insert",
    "edit", "apply", "submit", "cancel", "approve", "grant", "revoke", "enable", "disable", "assign",
    "clear", "publish", "unlock",
];
/// What may follow the word that says what is looked at: `history_of_today`.
const TAILS: [&str; 9] = ["by", "for", "of", "in", "at", "from", "to", "today", "now"];

/// A word of a name.
pub(crate) struct NameWord {
    /// As it is spelt, in lower case.
    pub(crate) spelt: String,
    pub(crate) hash: u64,
    /// Stem of its base.
    pub(crate) stem: u64,
    /// Number of the piece of the name, between points, slashes and double underscores, that it stands in.
    pub(crate) piece: usize,
    /// What it does as a verb, and whether it surely is one.
    pub(crate) deed: Option<(Deed, bool)>,
    /// A thing whose change is grave.
    pub(crate) grave: bool,
    pub(crate) classes: Classes,
}

impl NameWord {
    fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.hash == hash(word.as_bytes()))
    }
}

/// A name as words.
pub(crate) struct Name {
    pub(crate) words: Vec<NameWord>,
    /// Number of the word that says what is done.
    pub(crate) verb: Option<usize>,
}

impl Name {
    /// Reads a name, without the part of a server.
    pub(crate) fn of(lexicon: &Lexicon, name: &str) -> Self {
        let words = words(lexicon, name);
        let verb = verb_of(&words);
        Self { words, verb }
    }

    /// The word that says what is done.
    pub(crate) fn verb_word(&self) -> Option<&NameWord> {
        self.words.get(self.verb?)
    }

    /// The word before it in the same piece.
    pub(crate) fn before_verb(&self) -> Option<&NameWord> {
        let before = self.words.get(self.verb?.checked_sub(1)?)?;
        (Some(before.piece) == self.verb_word().map(|verb| verb.piece)).then_some(before)
    }

    /// Whether one of its words has one of these stems.
    pub(crate) fn has(&self, lexicon: &Lexicon, words: &[&str]) -> bool {
        words.iter().any(|word| {
            let stem = lexicon.base(stem_hash(word));
            self.words.iter().any(|own| own.stem == stem)
        })
    }

    /// Whether its verb is one of these.
    pub(crate) fn does(&self, words: &[&str]) -> bool {
        self.verb_word().is_some_and(|verb| words.iter().any(|word| verb.stem == stem_hash(word)))
    }

    /// Whether one of its words is of a class.
    pub(crate) fn is(&self, class: Classes) -> bool {
        self.words.iter().any(|word| word.classes.is(class))
    }

    /// Whether its own piece is a verb and no thing: `expenses.approve`.
    pub(crate) fn is_bare(&self) -> bool {
        let last = self.words.last().map(|word| word.piece);
        self.words.iter().filter(|word| Some(word.piece) == last).count() == 1
            && self.verb == self.words.len().checked_sub(1)
    }
}

fn words(lexicon: &Lexicon, name: &str) -> Vec<NameWord> {
    // `PermitDesk_UpdateCase`
    let title = |part: &str| part.starts_with(|first: char| first.is_ascii_uppercase());
    let titled = name.split_once('_').is_some_and(|(server, tool)| {
        title(server) && title(tool) && server.bytes().any(|byte| byte.is_ascii_lowercase())
    });
    let pieces = name
        .split("__")
        .flat_map(|piece| piece.split(['.', '/', ':']))
        .flat_map(move |piece| piece.splitn(if titled { 2 } else { 1 }, '_'));
    let spelt = pieces
        .enumerate()
        .flat_map(|(piece, text)| words_of(text).into_iter().map(move |word| (piece, word)));
    let mut found: Vec<NameWord> = spelt
        .map(|(piece, spelt)| {
            let (hash, stem) = (hash(spelt.as_bytes()), lexicon.base(stem_hash(&spelt)));
            let classes = lexicon.classes_of(hash, stem);
            let deed = lexicon.deed(stem).filter(|_| !classes.is(Classes::NOUN));
            NameWord { spelt, hash, stem, piece, deed, grave: lexicon.is_grave(hash, stem), classes }
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
fn verb_of(words: &[NameWord]) -> Option<usize> {
    // `permit_lookup` permits nothing.
    let last = words.len().checked_sub(1)?;
    if words.get(last)?.is_any(&LOOKS) {
        return Some(last);
    }
    let mut start = words.len();
    let mut found = None;
    for piece in words.chunk_by(|one, next| one.piece == next.piece).rev() {
        start -= piece.len();
        // What stands before the tool's own piece is its server: a verb only where it can be nothing else.
        let own = start + piece.len() == words.len();
        let sure = |at: &usize| own || matches!(piece.get(*at).and_then(|word| word.deed), Some((_, true)));
        found = found.or_else(|| Some(start + verb_in(piece).filter(sure)?));
    }
    found
}

/// The same in one piece.
fn verb_in(piece: &[NameWord]) -> Option<usize> {
    let find = |of: &dyn Fn(&NameWord) -> bool| piece.iter().position(of);
    let last = piece.len().checked_sub(1)?;
    let end = piece.get(last)?;
    if let Some(sure) = find(&|word| matches!(word.deed, Some((_, true)))) {
        let verb = piece.get(sure)?;
        let executes = matches!(verb.deed, Some((Deed::Execute, _)));
        let reads = matches!(verb.deed, Some((Deed::Read, _)));
        let ends = match end.deed {
            _ if reads && end.is_any(&ENDS) => true,
            // `list_send` sends to a list, `search_replace` replaces.
            Some((deed, true)) if deed.changes() => {
                sure == 0 && verb.is_any(&LISTS) && !end.spelt.ends_with('s')
            }
            // `run_view` views a run, `run_query` runs a query.
            Some((Deed::Read, true)) => executes && sure > 0,
            _ => false,
        };
        return Some(if ends { last } else { sure });
    }
    // `order_history` is not an order.
    let noun = piece.iter().rposition(|word| word.deed.is_some())?;
    let reads = piece.get(noun)?.deed.is_some_and(|(deed, _)| !deed.changes());
    let tail = piece.get(noun + 1..).unwrap_or_default();
    if reads && tail.first().is_none_or(|word| word.is_any(&TAILS)) {
        return Some(noun);
    }
    // `alarm_schedule` schedules, and does not alarm anyone; `bank.transactions` moves no money.
    let acts =
        |word: &NameWord| word.deed.is_some_and(|(deed, _)| deed != Deed::Pay || !word.spelt.ends_with('s'));
    find(&|word| acts(word) && !word.grave).or_else(|| find(&acts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::built_in;

    fn verb(name: &str) -> Option<String> {
        Name::of(&built_in(), name).verb_word().map(|word| word.spelt.clone())
    }

    #[test]
    fn the_word_that_says_what_is_done_is_found() {
        for (name, word) in [
            ("send_mail", "send"),
            ("mcp__files__delete_file", "delete"),
            ("FarmDesk.createJobs", "create"),
            ("PermitDesk_UpdateCase", "update"),
            ("permit_registry_lookup", "lookup"),
            ("order_history", "history"),
            ("gh_run_view", "view"),
            ("run_query", "run"),
            ("list_send", "send"),
            ("list_updates", "list"),
            ("headline_suggest_save", "save"),
            ("offer_extend", "extend"),
            ("termin_loeschen", "loeschen"),
            ("maison_alarme_planifier", "planifier"),
        ] {
            assert_eq!(verb(name).as_deref(), Some(word), "{name}");
        }
        assert_eq!(verb("wheelhouse"), None);
        assert_eq!(verb("bank.transactions"), None);
    }
}
