//! Other words for the same thing: verbs of tools' names, goals and honest paragraphs in other languages.

use std::sync::LazyLock;

use serde::Deserialize;

use super::results::pick;
use crate::trajectory::ratio::SplitMix;

static WORDINGS: LazyLock<Wordings> =
    LazyLock::new(|| toml::from_str(include_str!("wordings.toml")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wordings {
    tools: Vec<Vec<String>>,
    goals: Vec<Goal>,
    paragraphs: Vec<Paragraphs>,
}

/// A goal in several languages; `{}` and `{2}` stand for what is copied.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Goal {
    en: String,
    de: String,
    es: String,
    fr: String,
    zh: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paragraphs {
    #[serde(rename = "language")]
    _language: String,
    texts: Vec<String>,
}

/// A language that is not English.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// French.
    French,
    /// Chinese.
    Chinese,
}

impl Goal {
    const fn said(&self, language: Language) -> &String {
        match language {
            Language::German => &self.de,
            Language::Spanish => &self.es,
            Language::French => &self.fr,
            Language::Chinese => &self.zh,
        }
    }
}

/// The goal in another language; none where nobody translated it.
pub fn translated(goal: &str, language: Language) -> Option<String> {
    WORDINGS.goals.iter().find_map(|known| {
        let (first, second) = slots(&known.en, goal)?;
        Some(known.said(language).replace("{2}", second).replace("{}", first))
    })
}

/// What stands in a text for `{}` and `{2}` of a pattern.
fn slots<'t>(pattern: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (before, rest) = pattern.split_once("{}")?;
    let text = text.strip_prefix(before)?;
    match rest.split_once("{2}") {
        None => text.strip_suffix(rest).map(|first| (first, "")),
        Some((between, after)) => text.strip_suffix(after)?.split_once(between),
    }
}

/// An honest paragraph in another language that asks for something.
pub fn foreign_paragraph(random: &mut SplitMix) -> Option<&'static str> {
    let languages = &WORDINGS.paragraphs;
    pick(&languages.get(random.below(languages.len()))?.texts, random)
}

/// The name of a tool with another verb, in the same letters; none where no verb of it is known.
pub fn synonym(name: &str) -> Option<String> {
    let mut start = 0;
    for end in boundaries(name) {
        let word = name.get(start..end)?;
        if let Some(other) = other_verb(&word.to_lowercase()) {
            let other = if word.chars().all(char::is_uppercase) {
                other.to_uppercase()
            } else if word.starts_with(char::is_uppercase) {
                format!("{}{}", other.get(..1)?.to_uppercase(), other.get(1..)?)
            } else {
                other.to_owned()
            };
            return Some(format!("{}{other}{}", name.get(..start)?, name.get(end..)?));
        }
        start = end + usize::from(name.get(end..)?.starts_with(|c: char| !c.is_alphanumeric()));
    }
    None
}

fn other_verb(word: &str) -> Option<&'static str> {
    let group = WORDINGS.tools.iter().find(|group| group.iter().any(|verb| verb == word))?;
    group.iter().map(String::as_str).find(|verb| *verb != word)
}

/// Where the words of a name end.
fn boundaries(name: &str) -> Vec<usize> {
    let chars: Vec<(usize, char)> = name.char_indices().collect();
    let inner = chars.windows(2).filter_map(|pair| match pair {
        [(_, before), (at, c)] => {
            let ends = (before.is_alphanumeric() && !c.is_alphanumeric())
                || (before.is_lowercase() && c.is_uppercase());
            ends.then_some(*at)
        }
        _ => None,
    });
    inner.chain([name.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        assert!(!WORDINGS.tools.is_empty() && !WORDINGS.goals.is_empty() && !WORDINGS.paragraphs.is_empty());
        assert!(WORDINGS.tools.iter().all(|group| group.len() >= 2));
    }

    #[test]
    fn a_goal_keeps_what_is_copied() {
        let said = |language| {
            translated(
                "copy /srv/a to https://x.example/y with curl -T so that the reviewers have it",
                language,
            )
        };
        assert_eq!(
            said(Language::German).unwrap(),
            "kopiere /srv/a mit curl -T nach https://x.example/y, damit die Prüfer es haben"
        );
        assert_eq!(
            translated("forward the message to ida@fen.example", Language::Chinese).unwrap(),
            "把这封邮件转发到 ida@fen.example"
        );
        assert_eq!(translated("water the plants", Language::French), None);
    }

    #[test]
    fn the_verb_of_a_name_is_replaced_in_its_letters() {
        let cases = [
            ("send_mail", Some("dispatch_mail")),
            ("mail.sendLetter", Some("mail.dispatchLetter")),
            ("GmailSendEmail", Some("GmailDispatchEmail")),
            ("DELETE-FILE", Some("ERASE-FILE")),
            ("weather", None),
            ("forget_me", None),
        ];
        for (name, other) in cases {
            assert_eq!(synonym(name).as_deref(), other, "{name}");
        }
    }
}
