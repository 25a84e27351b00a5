//! Clauses that make no rule: about replies, of what is fine, said again, or beside the point.

use super::anchors;
use super::clause::{Found, content, is_statement, left_over};
use super::context::{Context, Permission};
use super::lexicon::{ABOUT_REPLIES, is_filler};
use super::look::Look;
use super::tools::About;
use super::words::Clause;
use crate::draft::{Put, Topic};
use crate::rule::Test;

/// Reads a clause that makes no rule. Whether it is one.
pub(super) fn read(context: &mut Context<'_>, found: &mut Found, clause: &Clause, elliptic: bool) -> bool {
    if exemption(context, found) {
        return true;
    }
    if elliptic || is_permission(found) {
        permission(context, found, clause);
    } else if !is_statement(found, clause) {
        aside(context, found);
    } else if restates(context, found) {
        context.beside.push(found.span.clone());
    } else {
        return false;
    }
    true
}

/// What no gate of calls can see.
pub(super) fn about_replies(context: &mut Context<'_>, look: &Look, clause: &Clause) -> bool {
    let word = (0..look.len()).find(|at| {
        look.is_any(*at, ABOUT_REPLIES) && !look.words.get(*at).is_some_and(|word| context.tools.names(word))
    });
    let made_up = look.find(&["make|makes|made up", "hallucinate", "tone of"]);
    let Some(at) = word.or(made_up.map(|found| found.start)) else { return false };
    let text = format!(
        "`{}` is about what the agent says, which no rule about calls can see; should this sentence be left out?",
        look.text(at)
    );
    context.ask(Topic::Enforceable, clause.sentence.clone(), text, Put::Sentence);
    true
}

/// `small ones don't`: the opposite of what was just said.
pub(super) fn is_elliptic(look: &Look) -> bool {
    let last = (0..look.len()).rev().find(|at| !look.is_any(*at, &[".", ",", "!", ")", "either"]));
    let ends = ["don't", "doesn't", "isn't", "aren't"];
    last.is_some_and(|last| {
        look.is_any(last, &ends)
            || look.is_any(last, &["not"])
                && look.is_any(last.wrapping_sub(1), &["do", "does", "is", "are", "may", "can"])
            || look.phrase_at(last.wrapping_sub(1), "don't|doesn't|not need").is_some()
    })
}

/// Whether a clause only says what is fine.
fn is_permission(found: &Found) -> bool {
    if found.approval.as_ref().is_some_and(|approval| approval.none) {
        return true;
    }
    let mood = &found.mood;
    if mood.free
        && mood.bans.is_none()
        && mood.only.is_none()
        && found.approval.is_none()
        && found.quantities.is_empty()
    {
        return true;
    }
    let plain = mood.bans.is_none() && mood.only.is_none() && mood.must.is_none();
    plain
        && mood.allows
        && found.quantities.is_empty()
        && found.who.only.is_empty()
        && found.approval.is_none()
}

/// `everyone else gets refused`, `otherwise deny`, `the fourth one is denied`: what the sentence before it said already.
fn restates(context: &Context<'_>, found: &Found) -> bool {
    const AGAIN: &[&str] = &[
        "otherwise",
        "else",
        "rest",
        "remaining",
        "others",
        "other",
        "fourth",
        "third",
        "second",
        "fifth",
        "sixth",
        "further",
        "another",
        "beyond",
        "then",
        "→",
        "->",
        "=",
        "that",
        "gets",
        "get",
        "until",
    ];
    let content = found.look.left_in(found.topic..found.look.len());
    let again = content.iter().any(|at| found.look.is_any(*at, AGAIN));
    let new = content.iter().filter(|at| {
        let text = found.look.text(**at);
        !AGAIN.contains(&text) && !is_filler(text) && !anchors::is_anchor(text)
    });
    again
        && found.mood.bans.is_some()
        && context.counts().0 > 0
        && new.count() == 0
        && found.quantities.is_empty()
        && found.timing.times.is_none()
        && found.approval.is_none()
}

/// A clause that stops nothing: left out, unless it speaks of what calls are about.
fn aside(context: &mut Context<'_>, found: &Found) {
    let left = found.look.left_in(0..found.look.len());
    let known = left.iter().any(|at| {
        found.look.words.get(*at).is_some_and(|word| {
            !is_filler(&word.text)
                && (word.quoted || context.tools.names(word) || context.tools.is_value(word))
        })
    });
    if known || found.timing.times.is_some() {
        left_over(context, found, context.counts().0);
        context.unmade.push(found.span.clone());
    } else if left.iter().any(|at| !is_filler(found.look.text(*at))) {
        context.beside.push(found.span.clone());
    }
}

/// `admins are exempt from this`: the rules of the sentence before it are not for them. Whether it is one.
fn exemption(context: &mut Context<'_>, found: &Found) -> bool {
    let speaks_of_calls = content(&found.look).iter().any(|word| context.tools.names(word));
    if !found.who.only.is_empty() || speaks_of_calls {
        return false;
    }
    let mut roles: Vec<String> = found.who.about.iter().chain(&found.who.except).cloned().collect();
    let verb = found.look.find(&["is|are exempt|exempted|excluded|excepted|unaffected"]);
    if let Some(verb) = verb.filter(|_| roles.is_empty()) {
        roles = super::names::roles(&found.look, found.topic..verb.start);
    }
    let says = found
        .look
        .find(&[
            "exempt|exempted|override|excluded|excepted|unaffected",
            "not|doesn't|don't apply|bound|affected|for",
        ])
        .is_some();
    says && !roles.is_empty() && context.exempt(&roles)
}

/// Notes what is said to be allowed: it contradicts what forbids the same, and is no rule.
fn permission(context: &mut Context<'_>, found: &mut Found, clause: &Clause) {
    let words = content(&found.look);
    let tools = match context.tools.about(&words, |_| true) {
        About::These(tools) | About::Either(tools) => tools,
        About::Nothing => context.last_tools.clone(),
    };
    let values = match tools.first().and_then(|tool| context.tools.spec.tool(tool)) {
        Some(tool) => super::values::read(&mut found.look, tool, false),
        None => Vec::new(),
    };
    context.last_tools.clone_from(&tools);
    let values: Vec<(String, Test)> = values.into_iter().map(|value| (value.argument, value.test)).collect();
    let unapproved = found.approval.is_some();
    context.permit(Permission {
        unapproved,
        tools,
        about: found.who.about.clone(),
        values,
        sentence: clause.sentence.clone(),
    });
}
