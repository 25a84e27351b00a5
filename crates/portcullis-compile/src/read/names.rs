//! Names of roles.

use std::ops::Range;

use super::context::Context;
use super::look::Look;
use super::people::{ANYBODY, ARTICLES};
use crate::draft::{Put, Topic};

/// `not something just anybody should do`: some may, and nobody knows who. Whether it says so.
pub(super) fn unnamed(context: &mut Context<'_>, look: &Look) -> bool {
    let Some(found) = look.find(&["just anybody|anyone|everybody|everyone"]) else { return false };
    context.ask(Topic::Who, look.span(&found), "who may? name a role", Put::Replace);
    true
}

/// The roles in a noun phrase: `doctors and nurses`, `people with the role x`.
pub(super) fn roles(look: &Look, range: Range<usize>) -> Vec<String> {
    let mut found: Vec<Vec<String>> = vec![Vec::new()];
    let words = look.slice(range);
    // `members of the finance team` are `finance_team`, and `people with the role x` are `x`.
    let role = words.iter().position(|word| ["role", "roles"].contains(&word.text.as_str()));
    for (place, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        if [",", "and", "or", "&", "nor"].contains(&text) {
            found.push(Vec::new());
        } else if word.quoted {
            found.push(vec![word.text.clone()]);
            found.push(Vec::new());
        } else {
            let keeps = ["staff", "team", "group", "member", "members", "employees", "of"].contains(&text)
                && found.last().is_some_and(|last| !last.is_empty())
                && place + 1 >= words.len().min(place + 1);
            let is_of = text == "of"
                && found.last().is_some_and(|last| !last.is_empty())
                && role.is_none()
                && !words
                    .iter()
                    .take(place)
                    .any(|word| ["members", "member", "anyone", "people"].contains(&word.text.as_str()));
            let alone = words.len() == 1;
            if (!ARTICLES.contains(&text) || keeps && text != "of" || is_of || alone)
                && let Some(last) = found.last_mut()
            {
                last.push(text.trim_end_matches("'s").to_owned());
            }
        }
    }
    let named = found.into_iter().filter(|words| !words.is_empty()).map(|words| name(&words));
    /// Words that are in no name of a role.
    const NONE: &[&str] = &[
        "be",
        "by",
        "to",
        "they",
        "whenever",
        "way",
        "named",
        "is",
        "are",
        "been",
        "than",
        "not",
        "it",
        "we",
        "specified",
    ];
    named
        .filter(|name| {
            !name.split('_').any(|part| NONE.contains(&part)) && name.chars().any(char::is_alphabetic)
        })
        .filter(|name| {
            !name.is_empty() && !ANYBODY.contains(&name.as_str()) || name == "customer" || name == "member"
        })
        .collect()
}

/// The name of a role: in the singular, in lower case, with underscores.
fn name(words: &[String]) -> String {
    let head = words.iter().position(|word| word == "of").unwrap_or(words.len());
    let each = words.iter().enumerate().map(
        |(place, word)| {
            if place + 1 == head { singular(word) } else { word.clone() }
        },
    );
    each.collect::<Vec<_>>().join("_").replace(['-', ' '], "_")
}

fn singular(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies") {
        return format!("{rest}y");
    }
    let keeps = ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) || word.contains('_');
    match word.strip_suffix('s') {
        Some(rest) if !keeps => match rest {
            _ if ["ches", "shes", "sses", "xes"].iter().any(|end| word.ends_with(end)) => {
                rest.trim_end_matches('e').to_owned()
            }
            _ => rest.to_owned(),
        },
        _ => match word {
            "people" => "person".to_owned(),
            "men" => "man".to_owned(),
            word => word.to_owned(),
        },
    }
}
