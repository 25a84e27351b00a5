//! What a text that is an argument does, where it is a statement of SQL or a command line of a shell that the effects do
//! not read: `UPDATE products SET price = 1`, `Remove-Item -Recurse share`, `delete pvc data-0 -n staging`.
//!
//! The effects read SQL and commands where a tool's schema says that an argument holds them. Tools that nobody described
//! take them in arguments of any name, and then the text alone says what it is.

use portcullis_core::infer::words_of;

use crate::kind::Deed;
use crate::lexicon::Lexicon;
use crate::words::{Shapes, hash, stem_hash};

/// Longer texts are no statements, but files, in bytes.
const BYTES_MAX: usize = 8_192;
/// Most words of a statement that are looked at.
const WORDS_MAX: usize = 48;

/// How the first words of statements of SQL look, in letters of any case.
static VERB_SHAPES: Shapes =
    Shapes::of(&["delete", "truncate", "drop", "grant", "create", "revoke", "update", "insert", "alter"]);

/// What a statement does, and which grave things it sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) deed: Deed,
    pub(crate) grave_things: Vec<u64>,
}

/// The statement that a text is, if it is one.
pub(crate) fn statement(lexicon: &Lexicon, text: &str) -> Option<Statement> {
    if text.len() > BYTES_MAX {
        return None;
    }
    sql(lexicon, text).or_else(|| cmdlet(lexicon, text))
}

/// A statement of SQL that changes something, by its first words.
fn sql(lexicon: &Lexicon, text: &str) -> Option<Statement> {
    let mut words = text.split_whitespace().take(WORDS_MAX);
    // Nearly no text begins so.
    if !VERB_SHAPES.has_some(words.clone().next()?) {
        return None;
    }
    let (first, second) = (words.next()?, words.next()?);
    let is = |word: &str, of: &str| word.eq_ignore_ascii_case(of);
    let object = || {
        ["table", "database", "schema", "view", "index", "user", "role", "policy", "trigger", "function"]
            .iter()
            .any(|kind| is(second, kind))
    };
    let has = |word: &str| words.clone().any(|one| is(one, word));
    let deed = match first {
        _ if is(first, "delete") && is(second, "from") => Deed::Delete,
        _ if is(first, "truncate") => Deed::Delete,
        _ if is(first, "drop") && object() => Deed::Delete,
        _ if (is(first, "grant") && has("to"))
            || is(first, "create") && (is(second, "user") || is(second, "role")) =>
        {
            Deed::Grant
        }
        _ if is(first, "revoke") && has("from") => Deed::Delete,
        _ if is(first, "update") && has("set") => Deed::Change,
        _ if is(first, "insert") && is(second, "into") => Deed::Change,
        _ if is(first, "alter") && object() => Deed::Change,
        _ => return None,
    };
    // What stands before an equals sign is set.
    let set = text.split('=').take(WORDS_MAX).filter_map(|part| part.split_whitespace().next_back());
    Some(Statement { deed, grave_things: grave_words(lexicon, set) })
}

/// A command of PowerShell, `Verb-Noun` and its parameters.
fn cmdlet(lexicon: &Lexicon, text: &str) -> Option<Statement> {
    memchr::memchr(b'-', text.as_bytes())?;
    let command = text.split(['|', ';', '\n']).map(str::trim).find_map(|command| {
        let name = command.split_whitespace().next()?;
        let (verb, noun) = name.split_once('-')?;
        let letters = |part: &str| part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // `Set-Mailbox`, and no `WELCOME-IT`.
        let title = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_uppercase())
                && part.bytes().any(|byte| byte.is_ascii_lowercase())
        };
        (letters(verb) && letters(noun) && title(verb) && title(noun)).then_some((verb, noun, command))
    });
    let (verb, noun, command) = command?;
    let verb = words_of(verb);
    let deed = verb.first().and_then(|verb| lexicon.deed(lexicon.base(stem_hash(verb))));
    let (deed, _) = deed.filter(|(deed, sure)| *sure && deed.changes())?;
    let parameters = command.split_whitespace().filter_map(|word| word.strip_prefix('-'));
    let grave_things = grave_words(lexicon, parameters.take(WORDS_MAX).chain([noun]));
    Some(Statement { deed, grave_things })
}

fn grave_words<'t>(lexicon: &Lexicon, names: impl Iterator<Item = &'t str>) -> Vec<u64> {
    let words = names.flat_map(words_of);
    let grave = words.filter_map(|word| {
        let stem = lexicon.base(stem_hash(&word));
        lexicon.is_grave(hash(word.as_bytes()), stem).then(|| lexicon.thing(stem))
    });
    grave.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flow::built_in;

    #[test]
    fn statements_are_told_by_their_first_words() {
        let read = |text: &str| {
            statement(&built_in(), text).map(|found| (found.deed, !found.grave_things.is_empty()))
        };
        assert_eq!(read("DROP TABLE public.invoices CASCADE"), Some((Deed::Delete, false)));
        assert_eq!(read("update products set price = price * 1.08"), Some((Deed::Change, true)));
        assert_eq!(read("UPDATE notes SET body = 'x' WHERE id = 4"), Some((Deed::Change, false)));
        assert_eq!(read("grant all on schema hr to intern"), Some((Deed::Grant, false)));
        assert_eq!(
            read("Set-Mailbox -Identity cfo -ForwardingSmtpAddress x@y.example"),
            Some((Deed::Change, true))
        );
        assert_eq!(read("Remove-Item -Recurse \\\\fs01\\scans"), Some((Deed::Delete, false)));
        assert_eq!(read("Get-ADUser -Identity jholt"), None);
        assert_eq!(read("SELECT * FROM orders"), None);
        assert_eq!(read("Drop by when you are near, and update me on the set"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            statement(&built_in(), &text);
        }
    }
}
