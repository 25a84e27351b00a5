//! What is around every page: the bar, the places, the theme.

use maud::{DOCTYPE, Markup, html};

use crate::Role;
use crate::assets;
use crate::foreign::shown;
use crate::log::{self, Forked};
use crate::marks::{self, Standing, result};
use crate::when;

/// Where in the console a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// What is going on.
    Overview,
    /// What agents do and did.
    Runs,
    /// What waits for a person.
    Approvals,
    /// The documents that replies are checked against.
    Setup,
    /// What each tool may do.
    Tools,
    /// What agents may do.
    Policies,
    /// Rehearsed agents.
    Simulation,
    /// Whether replies are borne out.
    Verification,
    /// Runs as files.
    Audit,
    /// Results of evaluations.
    Evaluation,
    /// Who may sign in.
    People,
}

impl Place {
    const ALL: [Self; 11] = [
        Self::Overview,
        Self::Runs,
        Self::Approvals,
        Self::Setup,
        Self::Tools,
        Self::Policies,
        Self::Simulation,
        Self::Verification,
        Self::Audit,
        Self::Evaluation,
        Self::People,
    ];

    const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Runs => "/runs",
            Self::Approvals => "/approvals",
            Self::Setup => "/setup",
            Self::Tools => "/tools",
            Self::Policies => "/policies",
            Self::Simulation => "/simulate",
            Self::Verification => "/verification",
            Self::Audit => "/audit",
            Self::Evaluation => "/evaluation",
            Self::People => "/people",
        }
    }

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Runs => "Runs",
            Self::Approvals => "Approvals",
            Self::Setup => "System Setup",
            Self::Tools => "Tool Registry",
            Self::Policies => "Policy Editor",
            Self::Simulation => "Simulation Runner",
            Self::Verification => "Verification Results",
            Self::Audit => "Audit Log & Exports",
            Self::Evaluation => "Evaluation",
            Self::People => "People",
        }
    }

    /// Who finds it among the places.
    const fn least(self) -> Role {
        match self {
            Self::Overview | Self::Runs | Self::Approvals => Role::Viewer,
            Self::Setup
            | Self::Tools
            | Self::Policies
            | Self::Simulation
            | Self::Verification
            | Self::Audit
            | Self::Evaluation => Role::Approver,
            Self::People => Role::Admin,
        }
    }
}

/// Light, dark, or as the system has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system has it.
    #[default]
    Auto,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    /// The word in the form and in the cookie.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == name)
    }

    fn attribute(self) -> Option<&'static str> {
        (self != Self::Auto).then_some(self.as_str())
    }
}

/// What every page of somebody who signed in shows besides its own content.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Who is signed in.
    pub name: String,
    /// As what.
    pub role: Role,
    /// Goes with every form, and shows that it comes from a page of this session.
    pub csrf: String,
    /// Light or dark.
    pub theme: Theme,
    /// What waits for a person.
    pub waits: Waits,
    /// How the gate stands.
    pub gate: GateStands,
}

/// What waits for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many requests.
    pub count: usize,
    /// How long the oldest has waited, in seconds.
    pub oldest_s: u64,
}

/// How the gate stands, on every page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateStands {
    /// Verdicts of new runs are enforced rather than noted.
    pub enforcing: bool,
    /// The beginning of the bundle's digest.
    pub bundle: String,
    /// Why nothing can be recorded, or `None` if it can.
    pub unrecorded: Option<String>,
    /// How many freezes are in force.
    pub freezes: usize,
    /// A witness saw another tree than the log has.
    pub forked: Option<Forked>,
    /// The release.
    pub version: String,
}

/// A page.
#[derive(Debug)]
pub struct Page<'a> {
    /// Where it is, if it is one of the places.
    pub place: Option<Place>,
    /// What it is called.
    pub title: &'a str,
    /// Its content.
    pub body: Markup,
}

impl Frame {
    /// The whole document.
    #[must_use]
    pub fn page(&self, page: &Page<'_>) -> String {
        let waiting = match self.waits.count {
            0 => String::new(),
            count => format!("({count}) "),
        };
        let title = format!("{waiting}{} · Portcullis", page.title);
        let content = html! {
            (self.bar())
            (self.places(page.place))
            main #main { (self.worst(page.place)) (page.body) }
            (self.tabs(page.place))
        };
        document(&title, self.theme, None, &content)
    }

    /// Above everything else on every page. The page of the log says it in its place.
    fn worst(&self, current: Option<Place>) -> Markup {
        match (&self.gate.forked, current) {
            (None, _) | (_, Some(Place::Audit)) => html! {},
            (Some(forked), Some(Place::Overview)) => html! { section { (log::forked(forked)) } },
            (Some(_), _) => html! { section { (log::forked_in_short()) } },
        }
    }

    fn bar(&self) -> Markup {
        let gate = &self.gate;
        html! {
            header .bar {
                a .brand href="/" aria-label="Portcullis, overview" { (marks::gate()) span { "Portcullis" } }
                ul .state {
                    li {
                        @if gate.unrecorded.is_some() { (result(Standing::Bad, "nothing is recorded")) }
                        @else if gate.freezes > 0 { (result(Standing::Bad, "frozen")) }
                        @else if gate.enforcing { (result(Standing::Ok, "enforcing")) }
                        @else { (result(Standing::Alert, "only observing")) }
                    }
                    li { "bundle " span .dig { (gate.bundle) } }
                    @if gate.forked.is_some() { li { (result(Standing::Bad, "log contradicted")) } }
                    @else if gate.unrecorded.is_none() { li { (result(Standing::Ok, "record durable")) } }
                }
                (self.waits.link())
                span .who { (shown(&self.name)) ", " (self.role.as_str()) }
            }
        }
    }

    fn places(&self, current: Option<Place>) -> Markup {
        let entry = |place: Place| {
            html! {
                a href=(place.path()) aria-current=[(Some(place) == current).then_some("page")] {
                    (place.name())
                    @if place == Place::Approvals {
                        span .n data-waiting="" hidden[self.waits.count == 0] { (self.waits.count) }
                    }
                }
            }
        };
        html! {
            nav .nav aria-label="Pages" {
                ul {
                    @for place in Place::ALL.into_iter().filter(|place| place.least() <= self.role) {
                        li .gap[matches!(place, Place::Setup | Place::People)] { (entry(place)) }
                    }
                }
                div .foot {
                    (self.themes())
                    form method="post" action="/sign-out" {
                        (csrf(&self.csrf))
                        button .btn.plain.small type="submit" { "Sign out" }
                    }
                    span { (self.gate.version) }
                }
            }
        }
    }

    fn themes(&self) -> Markup {
        html! {
            form method="post" action="/theme" {
                (csrf(&self.csrf))
                span .seg role="group" aria-label="Light or dark" {
                    @for theme in Theme::ALL {
                        button type="submit" name="theme" value=(theme.as_str())
                            aria-pressed=(if theme == self.theme { "true" } else { "false" }) {
                            (capital(theme.as_str()))
                        }
                    }
                }
            }
        }
    }

    fn tabs(&self, current: Option<Place>) -> Markup {
        html! {
            nav .tabbar aria-label="Pages on a phone" {
                @for place in [Place::Overview, Place::Runs, Place::Approvals] {
                    a href=(place.path()) aria-current=[(Some(place) == current).then_some("page")] {
                        span {
                            (place.name())
                            @if place == Place::Approvals {
                                " " span .n data-waiting="" hidden[self.waits.count == 0] { (self.waits.count) }
                            }
                        }
                    }
                }
                (self.more(current))
            }
        }
    }

    /// What has no tab of its own on a phone.
    fn more(&self, current: Option<Place>) -> Markup {
        let others = Place::ALL.into_iter().skip(3);
        html! {
            details .more-tab {
                summary { "More" }
                div .more-menu {
                    @for place in others.filter(|place| place.least() <= self.role) {
                        a href=(place.path()) aria-current=[(Some(place) == current).then_some("page")] { (place.name()) }
                    }
                    (self.themes())
                    form method="post" action="/sign-out" {
                        (csrf(&self.csrf))
                        button .tab type="submit" { "Sign out" }
                    }
                }
            }
        }
    }
}

impl Waits {
    /// What waits is a link, never only a number.
    fn link(self) -> Markup {
        html! {
            a .waits .quiet[self.count == 0] href="/approvals" data-live="waits" data-count=(self.count) {
                @if self.count == 0 {
                    span { "nothing waits" }
                } @else {
                    (marks::shape(portcullis_core::verdict::Verdict::Review))
                    span {
                        (self.count) " waiting"
                        span .only-wide { ", oldest " (when::span(self.oldest_s)) }
                    }
                }
            }
        }
    }
}

/// The field that shows that a form comes from a page of this session.
#[must_use]
pub fn csrf(token: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(token); }
}

/// A document around content of any kind.
pub(crate) fn document(title: &str, theme: Theme, body_class: Option<&str>, content: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme.attribute()] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(assets::style_path());
                script src=(assets::script_path()) defer {}
            }
            body class=[body_class] {
                (marks::sprite())
                a .skip href="#main" { "Skip to content" }
                (content)
            }
        }
    }
    .into_string()
}

/// A page that says why there is no other: something is missing, refused or broken.
#[must_use]
pub fn trouble(heading: &str, what: &str, next: &Markup) -> Markup {
    html! {
        div .head { div { h1 { (heading) } p { (shown(what)) } } }
        div .row { (next) }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
