//! An event that is looked at: what is recorded of it, what its call was read to do and did, where its values come from.

use maud::{Markup, html};
use portcullis_core::verdict::Verdict;

use crate::foreign::{self, shown};
use crate::marks::{self, Standing, result};
use crate::run::{Text, struck};
use crate::when;

/// What is shown of a value, in characters.
const VALUE_CHARS: usize = 120;

/// The event that is looked at.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its number.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// Names and values.
    pub facts: Vec<(&'static str, String)>,
    /// The findings.
    pub findings: Vec<Found>,
    /// What the call would touch, and what was seen of it.
    pub effects: Vec<Effect>,
    /// Where the values of a call come from.
    pub origins: Vec<ValueOrigin>,
    /// The line as it is stored.
    pub line: String,
    /// Its texts, by name.
    pub texts: Vec<(String, Text)>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it requires.
    pub verdict: Verdict,
    /// The rule.
    pub rule: String,
    /// Why.
    pub message: String,
    /// A person's yes, or the user's, answered it.
    pub answered: bool,
    /// Events that it rests on.
    pub evidence: Vec<u64>,
}

/// Something that a call would do, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// `write path /srv/app`.
    pub what: String,
    /// Whether it was read in the call, or `None` where that cannot be told any more.
    pub predicted: Option<bool>,
    /// Whether it was seen, or `None` where such things are not seen.
    pub observed: Option<bool>,
}

/// A value of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueOrigin {
    /// Which argument it is.
    pub argument: String,
    /// The value.
    pub value: String,
    /// Where it was seen before.
    pub from: Vec<Origin>,
}

/// Where a value was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The event.
    pub seq: u64,
    /// Whose words it is in.
    pub who: Who,
    /// The words around it.
    pub before: String,
    /// The value, as it stands there.
    pub named: String,
    /// See [`Self::before`].
    pub after: String,
    /// How the text came into the run, in words.
    pub handed_on: Option<String>,
}

/// Whose words something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user's.
    User,
    /// The operator's.
    Operator,
    /// The agent's.
    Agent,
    /// A tool's or a server's.
    Tool,
}

/// The event beside the timeline.
pub(crate) fn panel(chosen: &Chosen, run: &str) -> Markup {
    html! {
        section .panel.pad aria-labelledby="h-event" {
            div .sh { h2 #h-event { "Event " (when::count(chosen.seq)) ", " (chosen.kind) } }
            dl .facts { @for (name, value) in &chosen.facts { dt { (name) } dd { (shown(value)) } } }
            @if !chosen.findings.is_empty() {
                h3 .under { "Findings" }
                ul .list {
                    @for finding in &chosen.findings {
                        li {
                            (marks::verdict(finding.verdict)) " " span .dig { (shown(&finding.rule)) }
                            p .small { (foreign::sentence(&finding.message)) @if finding.answered { " " span .muted { "(answered by a person)" } } }
                            @for seq in &finding.evidence { a .small href={ "/runs/" (run) "?at=" (seq) "&event=" (seq) "#e" (seq) } { "event " (when::count(*seq)) } " " }
                        }
                    }
                }
            }
            (effects(chosen))
            (origins(&chosen.origins, run))
            @for (name, text) in &chosen.texts { h3 .under { (name) } (foreign_text(text)) }
            details .under { summary { "The line as it is stored" } pre .code.fold tabindex="0" { (shown(&chosen.line)) } }
        }
    }
}

fn foreign_text(text: &Text) -> Markup {
    html! { div .foreign.small { @if !text.by.is_empty() { span .by { (shown(&text.by)) } } (struck(text)) @if text.cut { "…" } } }
}

/// What the call was read to do beside what was seen of it.
fn effects(chosen: &Chosen) -> Markup {
    let observed = chosen.effects.iter().any(|effect| effect.observed.is_some());
    let more = chosen
        .effects
        .iter()
        .filter(|effect| effect.observed == Some(true) && effect.predicted == Some(false));
    let more = more.count();
    html! {
        @if !chosen.effects.is_empty() {
            h3 .under { "Effects" }
            @if observed {
                p .small { @match more {
                    0 => { (result(Standing::Ok, "nothing beyond what was predicted")) }
                    1 => { (result(Standing::Alert, "1 thing that was not predicted")) }
                    more => { (result(Standing::Alert, &format!("{more} things that were not predicted"))) }
                } }
                div .scroll tabindex="0" role="region" aria-label="Effects" { table .eff {
                    thead { tr { th scope="col" { "Effect" } th scope="col" { "Predicted" } th scope="col" { "Observed" } } }
                    tbody { @for effect in &chosen.effects {
                        tr .more[effect.observed == Some(true) && effect.predicted == Some(false)] {
                            td .wrap.mono { (shown(&effect.what)) }
                            td { (seen(effect.predicted, "not known")) }
                            td { (seen(effect.observed, "cannot be seen")) }
                        }
                    } }
                } }
            } @else {
                ul .list { @for effect in &chosen.effects { li .wrap.mono.small { (shown(&effect.what)) } } }
                p .small.muted { "As they were read; it did not run contained, so nobody looked at what it did." }
            }
        }
    }
}

fn seen(is: Option<bool>, unknown: &str) -> Markup {
    match is {
        Some(true) => result(Standing::Ok, "yes"),
        Some(false) => result(Standing::Idle, "no"),
        None => html! { span .muted { (unknown) } },
    }
}

/// Where the values of a call come from, as a graph from left to right: who said it, the value, the argument.
fn origins(values: &[ValueOrigin], run: &str) -> Markup {
    html! {
        @if !values.is_empty() {
            h3 .under { "Where its values come from" }
            @for value in values {
                div .prov {
                    ol .prov-from {
                        @if value.from.is_empty() { li .nowhere { (result(Standing::Idle, "seen nowhere before")) } }
                        @for origin in &value.from { (origin_of(origin, run)) }
                    }
                    (edges(value.from.len().max(1)))
                    div .prov-value { code .wrap { (foreign::start(&value.value, VALUE_CHARS)) } span .by { "is " (shown(&value.argument)) } }
                }
            }
        }
    }
}

fn origin_of(origin: &Origin, run: &str) -> Markup {
    let (standing, word) = match origin.who {
        Who::User => (Standing::Ok, "the user said it"),
        Who::Operator => (Standing::Ok, "the operator said it"),
        Who::Agent => (Standing::Idle, "the agent said it"),
        Who::Tool => (Standing::Alert, "a tool returned it"),
    };
    html! {
        li {
            (result(standing, word)) " "
            a href={ "/runs/" (run) "?at=" (origin.seq) "&event=" (origin.seq) "#e" (origin.seq) } { "event " (when::count(origin.seq)) }
            span .sub.foreign { (shown(&origin.before)) mark { (shown(&origin.named)) } (shown(&origin.after)) }
            @if let Some(handed) = &origin.handed_on { span .by { (shown(handed)) } }
        }
    }
}

/// Lines from each of several origins to one value.
fn edges(count: usize) -> Markup {
    let middle = count as f64 / 2.0;
    html! {
        svg .prov-edges viewBox={ "0 0 10 " (count) } preserveAspectRatio="none" aria-hidden="true" {
            @for place in 0..count {
                @let at = place as f64 + 0.5;
                path .edge d={ "M0 " (at) "C5 " (at) " 5 " (middle) " 10 " (middle) } {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Chosen {
        Chosen {
            seq: 7,
            kind: "proposed".into(),
            facts: Vec::new(),
            findings: Vec::new(),
            effects: Vec::new(),
            origins: Vec::new(),
            line: String::new(),
            texts: Vec::new(),
        }
    }

    #[test]
    fn what_was_observed_and_not_predicted_stands_out() {
        let effect = |what: &str, predicted, observed| Effect {
            what: what.into(),
            predicted: Some(predicted),
            observed,
        };
        let effects =
            vec![effect("write path /a", true, Some(true)), effect("send host <x>", false, Some(true))];
        let html = panel(&Chosen { effects, ..event() }, "r").into_string();
        assert!(
            html.contains("1 thing that was not predicted") && html.contains("send host &lt;x&gt;"),
            "{html}"
        );
        let effects = vec![effect("write path /a", true, None)];
        let html = panel(&Chosen { effects, ..event() }, "r").into_string();
        assert!(html.contains("nobody looked") && !html.contains("Observed"), "{html}");
    }

    #[test]
    fn where_a_value_comes_from_is_drawn_and_said() {
        let origin = |seq, who| Origin {
            seq,
            who,
            before: "send it to <b>".into(),
            named: "a@example.com".into(),
            after: String::new(),
            handed_on: None,
        };
        let value = |from| ValueOrigin { argument: "recipient".into(), value: "a@example.com".into(), from };
        let origins = vec![value(vec![origin(2, Who::User), origin(5, Who::Tool)]), value(Vec::new())];
        let html = panel(&Chosen { origins, ..event() }, "r").into_string();
        for part in ["the user said it", "a tool returned it", "seen nowhere before", "&lt;b&gt;", "event=5"]
        {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert_eq!(html.matches("class=\"edge\"").count(), 3);
        assert!(!html.contains("style="), "{html}");
    }
}
