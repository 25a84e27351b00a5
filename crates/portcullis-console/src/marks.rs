//! Signs: verdicts have colour, shape and word; outlined shapes go ahead, filled ones do not.

use maud::{Markup, PreEscaped, html};
use portcullis_core::event::Enforced;
use portcullis_core::verdict::Verdict;

/// The shapes, once a page.
const SPRITE: &str = include_str!("../assets/sprite.svg");
/// The gate, beside the name and beside what a grant is bound to.
const GATE: &str = include_str!("../assets/gate.svg");

pub(crate) fn sprite() -> Markup {
    PreEscaped(SPRITE.to_owned())
}

pub(crate) fn gate() -> Markup {
    PreEscaped(GATE.to_owned())
}

fn glyph(name: &str) -> Markup {
    html! { svg .gl aria-hidden="true" { use href={ "#" (name) } {} } }
}

/// A verdict: its shape and its word.
#[must_use]
pub fn verdict(verdict: Verdict) -> Markup {
    let word = verdict.as_str();
    html! { span class={ "v " (word) } { (glyph(&format!("v-{word}"))) (word) } }
}

/// The same as a tag.
#[must_use]
pub fn tag(verdict: Verdict) -> Markup {
    let word = verdict.as_str();
    html! { span class={ "v tag " (word) } { (glyph(&format!("v-{word}"))) (word) } }
}

/// The shape of a verdict alone, for a place that has the word beside it.
#[must_use]
pub fn shape(verdict: Verdict) -> Markup {
    glyph(&format!("v-{}", verdict.as_str()))
}

/// Verdict and enforcement in one stroke: it arrives, and goes on as far as the call did.
#[must_use]
pub fn gate_mark(verdict: Verdict, enforced: Option<Enforced>) -> Markup {
    let word = verdict.as_str();
    let (said, out, class) = match enforced {
        Some(Enforced::Executed) => ("executed", "M30 8H39M36 5 39 8 36 11", "out"),
        Some(Enforced::Replaced) => {
            ("passed on in part", "M30 8H32.5M35 8H39M36.5 5.5 39 8 36.5 10.5M32 11.5 35.5 4.5", "out")
        }
        Some(Enforced::Held) => ("held", "M31 8H40", "out dash"),
        Some(Enforced::Withheld) => ("withheld", "M33 2.5V13.5", "out"),
        Some(Enforced::LetPass) => ("let pass", "M30 8H39M36 5 39 8 36 11", "out ghost"),
        Some(Enforced::Asked) => ("left to the client’s prompt", "M31 8H40", "out ghost"),
        None => ("not enforced yet", "M31 8H34", "out ghost"),
    };
    html! {
        svg class={ "gm " (word) } viewBox="0 0 40 16" role="img" aria-label={ (word) ", " (said) } {
            rect .bg x="0" y="-1" width="40" height="18" {}
            path .in d="M1 8H10" {}
            use href={ "#v-" (word) } x="12" y="0" width="16" height="16" {}
            path class=(class) d=(out) {}
        }
    }
}

/// How something that is no verdict stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Bad,
    /// Nothing to say.
    Idle,
    /// Somebody should look.
    Alert,
}

impl Standing {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Bad => "bad",
            Self::Idle => "idle",
            Self::Alert => "alert",
        }
    }
}

/// A result that is no verdict: sign and word.
#[must_use]
pub fn result(standing: Standing, word: &str) -> Markup {
    let class = standing.as_str();
    html! { span class={ "res " (class) } { (glyph(&format!("i-{class}"))) (word) } }
}

/// A note that stays in the page.
#[must_use]
pub fn note(standing: Standing, body: &Markup) -> Markup {
    let class = standing.as_str();
    let role = if standing == Standing::Bad { "alert" } else { "status" };
    html! { div class={ "note " (class) } role=(role) { (glyph(&format!("i-{class}"))) div { (body) } } }
}
