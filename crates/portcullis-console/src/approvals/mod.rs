//! What waits for a person: the queue, and one request.
//!
//! A request is shown in the order in which it is decided: what would happen in a sentence of ours, why it is held, what
//! it would touch, the call exactly, what came before, and the decision. Refusing stands at the top, granting below
//! everything that is granted, and nothing is shortened on the way there.

mod decide;
mod request;
mod together;

use maud::{Markup, html};

pub use self::decide::{Decided, Offer};
pub use self::request::{Before, Request, Seen, SeenOf, Wanted, sentence, typed_word};
pub use self::together::{Outcome, Together, outcome, together};

use crate::Role;
use crate::foreign::shown;
use crate::marks::{Standing, note};
use crate::when;

/// Seconds after which a request has waited long.
const OLD_S: u64 = 180;

/// Which requests a list has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    /// Those that wait.
    #[default]
    Waiting,
    /// Those that somebody decided.
    Decided,
    /// Those that nobody answered in time.
    Lapsed,
}

impl Tab {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Decided, Self::Lapsed];

    /// The word in the address.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Decided => "decided",
            Self::Lapsed => "lapsed",
        }
    }

    /// The list of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tab| tab.as_str() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Decided => "Decided",
            Self::Lapsed => "Lapsed",
        }
    }
}

/// A request in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The approval.
    pub id: String,
    /// What would happen.
    pub sentence: String,
    /// The tool; empty for a reply.
    pub tool: String,
    /// On whose behalf.
    pub principal: String,
    /// The rule that holds it.
    pub rule: String,
    /// How long it has waited, or how long ago it was decided, in seconds.
    pub age_s: u64,
    /// What became of it, in a word; empty while it waits.
    pub became: String,
}

/// The page.
#[derive(Debug)]
pub struct Inbox<'a> {
    /// Which list.
    pub tab: Tab,
    /// The list.
    pub items: &'a [Item],
    /// More wait than the bundle puts before people in an hour: how many, and what to say about them.
    pub queued: Option<String>,
    /// The open request.
    pub open: Option<&'a Request>,
    /// What happened with the last answer.
    pub told: Option<(Standing, Markup)>,
    /// How the person decided so far.
    pub habit: Option<Habit>,
    /// May the person decide?
    pub role: Role,
    /// Goes with every form.
    pub csrf: &'a str,
}

/// How somebody decided so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habit {
    /// Requests that were decided.
    pub decided: u64,
    /// Those that were granted.
    pub granted: u64,
    /// Half of them took at most so many seconds.
    pub median_s: u64,
}

/// The inbox, with the open request beside it.
#[must_use]
pub fn inbox(inbox: &Inbox<'_>) -> Markup {
    html! {
        div .head {
            div { h1 { "Approvals" } }
            div .acts.small.muted data-keys="inbox" hidden {}
        }
        @if let Some((standing, told)) = &inbox.told { section { (note(*standing, told)) } }
        div .inbox {
            div .stack {
                (tabs(inbox))
                (queue(inbox))
                (alike(inbox))
            }
            @match inbox.open {
                Some(request) => { (request::page(request, inbox.role, inbox.csrf)) }
                None => { (nothing(inbox)) }
            }
            @if let Some(habit) = inbox.habit.filter(|habit| habit.decided > 0) { (habit_panel(habit)) }
        }
    }
}

fn tabs(inbox: &Inbox<'_>) -> Markup {
    html! {
        nav .tabs aria-label="Which requests" data-live="tabs" {
            @for tab in Tab::ALL {
                a href={ "/approvals?show=" (tab.as_str()) } aria-current=[(tab == inbox.tab).then_some("page")] {
                    (tab.name())
                    @if tab == Tab::Waiting && inbox.tab == Tab::Waiting { " " (inbox.items.len()) }
                }
            }
        }
    }
}

fn queue(inbox: &Inbox<'_>) -> Markup {
    let open = inbox.open.map(|request| request.id.as_str());
    html! {
        section .panel.queue aria-label=(inbox.tab.name()) data-live="queue" {
            @if inbox.items.is_empty() { p .pad.muted { (empty(inbox.tab)) } }
            ul {
                @for item in inbox.items {
                    li data-id=(item.id) {
                        a href={ "/approvals/" (item.id) } aria-current=[(open == Some(item.id.as_str())).then_some("true")] {
                            b { (shown(&item.sentence)) }
                            @if item.became.is_empty() {
                                span .age .old[item.age_s >= OLD_S] data-age=(item.age_s) { (when::span(item.age_s)) }
                            } @else {
                                span .age { (item.became) }
                            }
                            span .meta {
                                @if item.tool.is_empty() { "reply" } @else { (shown(&item.tool)) }
                                " · " (shown(&item.principal)) " · " (shown(&item.rule))
                            }
                        }
                    }
                }
            }
        }
        @if let Some(queued) = &inbox.queued { p .small.soft { (queued) } }
    }
}

fn empty(tab: Tab) -> &'static str {
    match tab {
        Tab::Waiting => "Nothing waits for a person.",
        Tab::Decided => "Nobody has decided anything yet.",
        Tab::Lapsed => "No request has lapsed.",
    }
}

/// Requests that may be decided together: of the same tool, rule and principal.
fn alike(inbox: &Inbox<'_>) -> Markup {
    let open = inbox.open.and_then(|open| inbox.items.iter().find(|item| item.id == open.id));
    let open = open.filter(|_| inbox.tab == Tab::Waiting && inbox.role >= Role::Approver);
    let count = open.map_or(0, |open| inbox.items.iter().filter(|item| are_alike(open, item)).count());
    html! {
        @if let Some(open) = open.filter(|_| count > 1) {
            p .small {
                (count) " requests have this tool, rule and principal. "
                a href={ "/approvals/together?like=" (open.id) } { "Look at them together" }
            }
        }
    }
}

/// Whether two requests may be decided together.
#[must_use]
pub fn are_alike(one: &Item, other: &Item) -> bool {
    !one.tool.is_empty()
        && one.tool == other.tool
        && one.rule == other.rule
        && one.principal == other.principal
        && one.became.is_empty()
        && other.became.is_empty()
}

fn nothing(inbox: &Inbox<'_>) -> Markup {
    let text = match (inbox.tab, inbox.items.is_empty()) {
        (Tab::Waiting, true) => {
            "A call waits here when its verdict is review: when a policy wants a person’s yes, or when nobody has said what a tool does. It appears without reloading."
        }
        (_, true) => "What was decided, and what lapsed, stays here and in the record of its run.",
        (_, false) => "Choose a request to see all of it.",
    };
    html! { section .panel.pad.ask-none { p .soft { (text) } } }
}

fn habit_panel(habit: Habit) -> Markup {
    html! {
        section .panel.pad.habit {
            h2 { "How you decided" }
            dl .facts {
                dt { "decided" } dd { (when::count(habit.decided)) ", of them " (when::count(habit.granted)) " granted" }
                dt { "time to decide" } dd { (when::span(habit.median_s)) " in the middle" }
            }
        }
    }
}
