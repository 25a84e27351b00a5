//! What the pages that change the bundle have in common: a text with numbered lines, what stands above a form, how it is
//! saved.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::foreign::{sentence, shown};
use crate::frame::csrf;
use crate::marks::{Standing, note};

/// What a form that changes the bundle carries.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Goes with every form of the session.
    pub csrf: String,
    /// The digest of the files on which the page was opened.
    pub base: String,
    /// The digest of those that the page shows as the outcome.
    pub shown: String,
    /// Why nothing can be saved here.
    pub closed: Option<String>,
    /// Whether whoever looks may change anything.
    pub may: bool,
    /// What is to be said of what was pressed before.
    pub told: Option<Told>,
}

/// Something to be said above a page.
#[derive(Debug, Clone)]
pub struct Told {
    /// How it stands.
    pub standing: Standing,
    /// The first words, as promised.
    pub first: String,
    /// What else there is to say.
    pub rest: String,
}

impl Told {
    /// Something that worked.
    #[must_use]
    pub fn good(first: impl Into<String>, rest: impl Into<String>) -> Self {
        Self { standing: Standing::Ok, first: first.into(), rest: rest.into() }
    }

    /// Something that did not.
    #[must_use]
    pub fn bad(first: impl Into<String>, rest: impl Into<String>) -> Self {
        Self { standing: Standing::Bad, first: first.into(), rest: rest.into() }
    }

    /// As a note.
    #[must_use]
    pub fn view(&self) -> Markup {
        note(
            self.standing,
            &html! { p { @if !self.first.is_empty() { b { (shown(&self.first)) } " " } (sentence(&self.rest)) } },
        )
    }
}

/// What stands above every page that changes something.
#[must_use]
pub fn above(draft: &Draft) -> Markup {
    html! {
        div .stack.above data-part="above" {
            @if let Some(told) = &draft.told { (told.view()) }
            @if let Some(closed) = &draft.closed { (note(Standing::Alert, &html! { p { (sentence(closed)) } })) }
            @if !draft.may { (note(Standing::Idle, &html! { p { "Changing this takes the role editor." } })) }
        }
    }
}

/// The hidden fields of a form that changes the bundle.
#[must_use]
pub fn fields(draft: &Draft) -> Markup {
    html! {
        (csrf(&draft.csrf))
        span hidden data-part="hidden" {
            input type="hidden" name="base" value=(draft.base);
            input type="hidden" name="shown" value=(draft.shown);
        }
    }
}

/// The buttons below the outcome: save what is shown, or look again.
#[must_use]
pub fn save(draft: &Draft, form: &str, word: &str, cancel: &str) -> Markup {
    html! {
        @if draft.may {
            div .row.savebar {
                @if draft.closed.is_none() { button .btn.main type="submit" form=(form) name="do" value="save" { (word) } }
                button .btn type="submit" form=(form) name="do" value="check" { "Check" }
                a .btn.plain href=(cancel) { "Discard" }
                span .hint { "What is saved is what is shown here. It becomes an event in each run that it reaches, and is recorded with your name." }
            }
        }
    }
}

/// A text with numbered lines, the wrong ones marked.
#[derive(Debug)]
pub struct Text<'a> {
    /// The name of its field.
    pub name: &'a str,
    /// What it is called, for who cannot see it.
    pub label: &'a str,
    /// The text.
    pub text: &'a str,
    /// Lines with a mistake, from 1.
    pub wrong: &'a BTreeSet<usize>,
    /// Whether it can only be read.
    pub readonly: bool,
    /// The least lines.
    pub rows: usize,
}

/// The text as it is edited.
#[must_use]
pub fn text(text: &Text<'_>) -> Markup {
    let lines = text.text.lines().count().max(1) + 1;
    let rows = lines.max(text.rows);
    html! {
        div .panel.editor data-part="text" {
            pre .gutter aria-hidden="true" {
                @for line in 1..=rows {
                    @if text.wrong.contains(&line) { span .bad { (line) } } @else { (line) }
                    "\n"
                }
            }
            textarea name=(text.name) rows=(rows) spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label=(text.label)
                aria-invalid=[(!text.wrong.is_empty()).then_some("true")] readonly[text.readonly] data-lines=(text.rows) {
                // A browser drops the first line break of a text.
                "\n" (text.text)
            }
        }
    }
}
