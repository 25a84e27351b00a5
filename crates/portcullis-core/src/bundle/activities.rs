//! Activities: what people do, described by the words with which they ask for it.
//!
//! ```toml
//! [[activity]]
//! name = "book-hotel"
//! scope = "intent"                        # or "literal": only what its verbs say
//! verbs = ["book", "reserve"]             # name the activity when done to one of its objects
//! objects = ["hotel", "room"]             # what it is done to
//! phrases = ["place to stay"]             # name it by themselves
//! cues = ["# night", "check-in"]          # circumstances; two of them are enough where no object is named
//! apart = ["hotel manager"]               # are something else, although such words are in them
//! ```
//!
//! Words are written in the singular, verbs in the infinitive; `#` stands for any number.

use std::ops::Deref;

use super::diagnostic::Diagnostic;
use super::toml_table::{File, Table};
use crate::lexicon::Lexicon;

/// Something that people do, recognised in a task in plain language: `activities/*.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Unique name: `book-hotel`.
    pub name: String,
    /// How far the activity reaches.
    pub scope: ActivityScope,
    /// Whether it counts only where no other activity is named: shopping is what remains when one buys something
    /// that is neither a flight nor a car.
    pub yields: bool,
    words: Vec<(WordRole, String)>,
}

/// Whether only the words of the activity count, or also what clearly leads to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActivityScope {
    /// The verbs of the activity.
    Literal,
    /// Any step towards it: to look for a flight is part of booking one.
    #[default]
    Intent,
}

/// What a word or phrase says about an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordRole {
    /// `verbs`: names the activity when done to one of its objects.
    Verb,
    /// `verbs_of_anything`: names it whatever it is done to, unless that belongs to another activity.
    VerbOfAnything,
    /// `objects`: what it is done to.
    Object,
    /// `general`: an object that says nothing of what it is, such as *item*; counts where nothing else does.
    General,
    /// `phrases`: names it by itself.
    Phrase,
    /// `cues`: a circumstance of it.
    Cue,
    /// `apart`: something else, although words of the activity are in it.
    Apart,
}

/// Activities with their words in one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activities {
    list: Vec<Activity>,
    /// Which activity and what the phrase says about it.
    lexicon: Lexicon<(usize, WordRole)>,
}

impl Activities {
    /// Prepares activities for matching.
    pub fn new(list: Vec<Activity>) -> Self {
        let mut lexicon = Lexicon::default();
        for (number, activity) in list.iter().enumerate() {
            for (role, phrase) in &activity.words {
                let verb = matches!(role, WordRole::Verb | WordRole::VerbOfAnything);
                lexicon.add(phrase, verb, (number, *role));
            }
        }
        Self { list, lexicon }
    }

    /// The words of all.
    pub fn lexicon(&self) -> &Lexicon<(usize, WordRole)> {
        &self.lexicon
    }
}

impl Deref for Activities {
    type Target = [Activity];

    fn deref(&self) -> &[Activity] {
        &self.list
    }
}

const ROLES: [(&str, WordRole); 7] = [
    ("verbs", WordRole::Verb),
    ("verbs_of_anything", WordRole::VerbOfAnything),
    ("objects", WordRole::Object),
    ("general", WordRole::General),
    ("phrases", WordRole::Phrase),
    ("cues", WordRole::Cue),
    ("apart", WordRole::Apart),
];

/// The name of what no activity describes.
const RESERVED: &str = "other";

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<(Activity, Diagnostic)> {
    table.tables("activity").into_iter().filter_map(|table| read_activity(file, table)).collect()
}

fn read_activity(file: &File<'_>, mut table: Table<'_, '_>) -> Option<(Activity, Diagnostic)> {
    let name = super::placed::name_field(file, &mut table, "name");
    let scopes = [("literal", ActivityScope::Literal), ("intent", ActivityScope::Intent)];
    let scope = table.word("scope", &scopes).unwrap_or_default();
    let yields = table.boolean("yields").unwrap_or(false);
    let mut words = Vec::new();
    for (field, role) in ROLES {
        for word in table.strings(field).unwrap_or_default() {
            if word.value.chars().any(|c| c.is_alphanumeric() || matches!(c, '#' | '$')) {
                words.push((role, word.value));
            } else {
                file.report(file.at(word.span, format!("`{}` contains no word", word.value)));
            }
        }
    }
    let span = table.span.clone();
    table.finish();
    if words.is_empty() {
        file.report(file.at(span, "the activity has no words, so no task can match it"));
    }
    let name = name?;
    if name.value == RESERVED {
        let message = format!("the name `{RESERVED}` is reserved for tasks that match no activity");
        file.report(file.at(name.span.clone(), message));
    }
    let place = file.at(name.span, "");
    Some((Activity { name: name.value, scope, yields, words }, place))
}
