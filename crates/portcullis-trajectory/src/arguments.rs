//! The arguments of a call as values, words and numbers, each with what its name says that it is for.

use std::sync::Arc;

use portcullis_core::bundle::AuthoritySettings;
use serde_json::Value as Json;

pub use crate::argument_name::Role;
use crate::argument_name::{ArgumentName, ArgumentNames, WHOLE_BYTES_MAX};
use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::numbers::numbers;
use crate::signs::{Leaf, Signs};
use crate::values::{Kind, Value, normal_hash, values};
use crate::words::{Shape, WORDS_MAX, Word, each};

/// Most leaves of one call's arguments that are looked at.
pub const ARGUMENTS_MAX: usize = 64;
/// Deepest nesting that is looked at.
pub const DEPTH_MAX: usize = 16;
/// More words than this make an argument a text.
pub const TARGET_WORDS_MAX: usize = 12;
/// Most values of one argument that are looked at.
pub const PARTS_MAX: usize = 256;
/// Most words of a text that are looked at.
pub const TEXT_WORDS_MAX: usize = 64;
/// Leaves that the arguments of most calls have room in.
const LEAVES: usize = 8;

/// One leaf among the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What it is for.
    pub role: Role,
    /// Its name refers to a thing whose change is grave.
    pub grave: bool,
    /// Its name may as well be that of an argument which narrows down what is asked for.
    pub narrows: bool,
    /// What its name and value say is done.
    pub signs: Signs,
    /// Its name is that of an argument of an order or a payment.
    pub amount: bool,
    /// It holds a file that goes along.
    pub attached: bool,
    /// A word of it names something private.
    pub secretive: bool,
    /// The things in its name.
    pub things: Arc<[u64]>,
    /// Of these, those whose change is grave.
    pub grave_things: Vec<u64>,
    /// The values in it; a short one without any is a value as a whole.
    pub values: Vec<Value>,
    /// Stems of its words, without those that say nothing.
    pub stems: Vec<u64>,
    /// Its numbers.
    pub numbers: Vec<u64>,
    /// Whether it has more than two letters or digits.
    pub speaks: bool,
}

impl Argument {
    /// Whether it holds a text rather than what the call is done to.
    pub fn is_content(&self) -> bool {
        self.role == Role::Content
    }
}

/// The leaves of a call's arguments, at most [`ARGUMENTS_MAX`]. What is left out is reported by the second value.
pub(crate) fn arguments(
    lexicon: &Lexicon,
    names: &ArgumentNames,
    authority: &AuthoritySettings,
    json: &Json,
) -> (Vec<Argument>, bool) {
    let mut reader =
        Reader { lexicon, names, authority, found: Vec::with_capacity(LEAVES), spoken: Vec::new() };
    let whole = reader.flatten("", json, 0);
    // Beside a `repo`, the `owner` is half of its name.
    if json.get("repo").is_some()
        && let Some(owner) = json.get("owner").and_then(Json::as_str)
    {
        let hash = normal_hash(owner);
        for argument in
            reader.found.iter_mut().filter(|own| own.values.iter().any(|value| value.hash == hash))
        {
            argument.grave = false;
            argument.grave_things.clear();
        }
    }
    (reader.found, !whole)
}

struct Reader<'a> {
    lexicon: &'a Lexicon,
    names: &'a ArgumentNames,
    authority: &'a AuthoritySettings,
    found: Vec<Argument>,
    /// The words of the leaf that is read.
    spoken: Vec<Word>,
}

/// What of a text the bundle vouches for: a person or an account as a whole, or the host of a link.
fn is_vouched_for(authority: &AuthoritySettings, text: &str, value: &Value) -> bool {
    let written = text.get(value.range.clone()).unwrap_or_default();
    let host = || {
        let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
        rest.split(['/', '?', '#', ':']).next().unwrap_or_default()
    };
    match value.kind {
        Kind::Url => authority.names_host(host()),
        _ => authority.names_party(written),
    }
}

impl Reader<'_> {
    fn flatten(&mut self, name: &str, json: &Json, depth: usize) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        match json {
            Json::String(text) => self.push(name, text, false),
            Json::Number(number) => self.push(name, &number.to_string(), false),
            Json::Bool(on) => self.push(name, if *on { "true" } else { "" }, !on),
            // Of `args: [delete, pvc, data-0]` the first says what is done.
            Json::Array(items) if matches!(name, "args" | "argv" | "command" | "cmd") => {
                let words: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
                if words.len() == items.len() && words.len() > 1 {
                    self.push(name, &words.join(" "), false);
                }
                let named =
                    items.iter().enumerate().map(|(at, item)| (if at == 0 { name } else { "" }, item));
                named.into_iter().all(|(name, item)| self.flatten(name, item, depth + 1))
            }
            Json::Array(items) => items.iter().all(|item| self.flatten(name, item, depth + 1)),
            Json::Object(map) => map.iter().all(|(key, item)| self.flatten(key, item, depth + 1)),
            Json::Null => true,
        }
    }

    fn push(&mut self, name: &str, text: &str, off: bool) -> bool {
        let room = self.found.len() < ARGUMENTS_MAX;
        if room {
            let name = self.names.get(self.lexicon, name);
            self.spoken.clear();
            self.spoken.extend(each(text).take(TEXT_WORDS_MAX.min(WORDS_MAX)));
            let mut argument = argument(self.lexicon, &name, text, off, &self.spoken);
            for value in &mut argument.values {
                value.vouched = is_vouched_for(self.authority, text, value);
            }
            self.found.push(argument);
        }
        room
    }
}

fn argument(lexicon: &Lexicon, name: &ArgumentName, text: &str, off: bool, spoken: &[Word]) -> Argument {
    let of = |class: Classes| name.classes.is(class);
    let target = name.last.is(Classes::TARGET);
    let role = match () {
        () if of(Classes::CONTENT) && !target || spoken.len() > TARGET_WORDS_MAX => Role::Content,
        () if target || of(Classes::TARGET) && !of(Classes::CONTENT) && !of(Classes::SOURCE) => Role::Target,
        () => Role::Object,
    };
    let mut found = values(text);
    found.truncate(PARTS_MAX);
    let trimmed = text.trim();
    if found.is_empty() && (2..=WHOLE_BYTES_MAX).contains(&trimmed.len()) && role != Role::Content {
        found.push(Value {
            kind: Kind::Quoted,
            hash: normal_hash(text),
            host: None,
            link: false,
            query: false,
            person: None,
            iban: false,
            vouched: false,
            range: 0..text.len(),
        });
    }
    let (mut stems, mut secretive) = (Vec::with_capacity(spoken.len()), false);
    for word in spoken {
        let said = lexicon.argument_word(word);
        secretive |= said.secretive;
        let number = word.shape.is(Shape::DIGIT) && word.shape.is(Shape::SHORT);
        if !number && !said.is_function {
            stems.push(said.thing);
        }
    }
    let signs = Signs::of(lexicon, &Leaf { name, text: trimmed, off, role, values: &found });
    let mut grave_things = name.grave_things.clone();
    grave_things.extend(&signs.sets);
    Argument {
        role,
        grave: !grave_things.is_empty(),
        narrows: of(Classes::QUERY),
        signs,
        amount: of(Classes::AMOUNT),
        attached: of(Classes::ATTACHMENT) && trimmed.len() > 2,
        secretive,
        things: Arc::clone(&name.things),
        grave_things,
        values: found,
        stems,
        numbers: numbers(text).into_iter().map(|(hash, _)| hash).take(PARTS_MAX).collect(),
        speaks: trimmed.len() > 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lexicon::BUILT_IN;

    #[test]
    fn leaves_are_found_and_bounded() {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        let read =
            |json: &Json| arguments(&lexicon, &ArgumentNames::default(), &AuthoritySettings::default(), json);
        let (found, cut) = read(&json!({"to": ["a@b.com"], "body": "hello there", "n": 5, "x": null}));
        assert_eq!((found.len(), cut), (3, false));
        assert!(found[0].role == Role::Target && found[0].values[0].kind == Kind::Mail);
        assert_eq!(found[1].role, Role::Content);
        let many: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(read(&json!(many)).0.len(), ARGUMENTS_MAX);
        let mut deep = json!("x");
        for _ in 0..50 {
            deep = json!([deep]);
        }
        assert_eq!(read(&deep), (Vec::new(), true));
    }
}
