//! Policies: what is in force, the editor of a runtime policy, the editor of any other file, versions, drafts.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::editor::{self, Draft, Text};
use crate::foreign::{sentence, shown};
use crate::frame::csrf;
use crate::marks::{Standing, result};
use crate::outcome::{self, Outcome};

/// The parts of the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    /// Runtime policies.
    #[default]
    Limits,
    /// Cedar.
    Access,
    /// Starlark.
    Programs,
    /// All other files of rules, and tests.
    Files,
    /// What was, and who changed it.
    Versions,
}

impl Tab {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Limits, Self::Access, Self::Programs, Self::Files, Self::Versions];

    /// The word in addresses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Access => "access",
            Self::Programs => "programs",
            Self::Files => "files",
            Self::Versions => "versions",
        }
    }

    /// The tab of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|tab| tab.as_str() == name).unwrap_or_default()
    }

    /// The tab on which a file is listed.
    #[must_use]
    pub fn of_file(path: &str) -> Self {
        match path.split('/').next() {
            Some("access") => Self::Access,
            Some("programs") => Self::Programs,
            _ => Self::Files,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Limits => "Limits",
            Self::Access => "Access, Cedar",
            Self::Programs => "Programs, Starlark",
            Self::Files => "Other files, tests",
            Self::Versions => "Versions",
        }
    }
}

/// A runtime policy in a row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The types of tools that it allows.
    pub types: Vec<String>,
    /// The most steps.
    pub max_steps: u32,
    /// The most side effects.
    pub max_side_effects: u32,
    /// Whether each side effect is held.
    pub approval: bool,
    /// Restricted keywords.
    pub keywords: usize,
    /// Whether a reply that fails verification is held.
    pub escalate: bool,
    /// It governs runs that ask for none.
    pub default: bool,
    /// Its file.
    pub file: String,
}

/// A file in a row.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Its lines.
    pub lines: usize,
    /// What is in it, in words.
    pub holds: String,
}

/// A version in a row.
#[derive(Debug, Clone)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// When, in words.
    pub at: String,
    /// Who.
    pub by: Option<String>,
    /// What they said.
    pub what: String,
    /// The beginning of its digest.
    pub digest: String,
    /// It is what is in force.
    pub now: bool,
}

/// A draft that was made of what people did.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// Names it.
    pub id: String,
    /// What it would change.
    pub heading: String,
    /// What it rests on.
    pub because: String,
    /// Where it is looked at.
    pub open: String,
    /// It allows more.
    pub looser: bool,
}

/// The page.
#[derive(Debug, Default)]
pub struct List {
    /// Which part.
    pub tab: Tab,
    /// The runtime policies.
    pub policies: Vec<Row>,
    /// The files of the tab.
    pub files: Vec<File>,
    /// How many files each tab has.
    pub counts: BTreeMap<&'static str, usize>,
    /// The versions, the newest first.
    pub versions: Vec<Version>,
    /// The drafts.
    pub drafts: Vec<Proposal>,
    /// Where the bundle is.
    pub place: String,
    /// The beginning of its digest.
    pub digest: String,
    /// Forms.
    pub draft: Draft,
}

/// The page of policies.
#[must_use]
pub fn list(list: &List) -> Markup {
    html! {
        div .head {
            div { h1 { "Policy Editor" } p { "What agents may do: limits, access rules, programs. In " span .mono { (shown(&list.place)) } ", bundle " span .dig { (list.digest) } "." } }
            @if list.draft.may { div .acts { a .btn.main href="/policies/edit" { "New Policy" } } }
        }
        (editor::above(&list.draft))
        nav .tabs aria-label="Parts of the bundle" {
            @for tab in Tab::ALL {
                a href={ "/policies?tab=" (tab.as_str()) } aria-current=[(tab == list.tab).then_some("page")] {
                    (tab.words()) @if let Some(count) = list.counts.get(tab.as_str()) { " " span .muted { (count) } }
                }
            }
        }
        @match list.tab {
            Tab::Limits => { (limits(list)) (drafts(list)) }
            Tab::Versions => { (versions(list)) }
            tab => { (files(list, tab)) }
        }
    }
}

fn limits(list: &List) -> Markup {
    html! {
        section aria-labelledby="h-p" {
            div .sh { h2 #h-p { "Defined Runtime Policies" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Defined Runtime Policies" {
                table .t.pols {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Types of tools" } th .nums scope="col" { "Most steps" } th .nums scope="col" { "Side effects" } th scope="col" { "Each approved" } th .nums scope="col" { "Keywords" } th scope="col" { "Failed checks" } th scope="col" { "File" } } }
                    tbody { @for row in &list.policies { tr {
                        th .wrap scope="row" { a href={ "/policies/edit?name=" (encoded(&row.name)) } { (shown(&row.name)) } @if row.default { " " span .muted { "default" } } }
                        td .mono.soft.wrap { (row.types.join(", ")) }
                        td .nums { (row.max_steps) }
                        td .nums { (row.max_side_effects) }
                        td { @if row.approval { b { "yes" } } @else { span .muted { "no" } } }
                        td .nums { (row.keywords) }
                        td { @if row.escalate { "held" } @else { span .muted { "warned of" } } }
                        td .mono.soft.nowrap { (shown(&row.file)) }
                    } } }
                }
            }
        }
    }
}

fn drafts(list: &List) -> Markup {
    html! {
        section aria-labelledby="h-dr" {
            div .sh { h2 #h-dr { "Drafts from what people did" } p { "made of repeated denials and grants; nothing changes before you save it" } }
            div .panel {
                @if list.drafts.is_empty() { p .pad.soft { "None. A rule that people overrule nearly always, or that denies the same thing again and again, becomes a draft here." } }
                ul .drafts { @for draft in &list.drafts {
                    li {
                        p { b { (sentence(&draft.heading)) } " " @if draft.looser { (result(Standing::Alert, "less strict")) } }
                        p .soft { (sentence(&draft.because)) }
                        @if list.draft.may {
                            form .row method="post" action="/policies/dismiss" {
                                (csrf(&list.draft.csrf))
                                input type="hidden" name="draft" value=(draft.id);
                                a .btn.small href=(draft.open) { "Look at it" }
                                button .btn.small type="submit" { "Dismiss" }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn files(list: &List, tab: Tab) -> Markup {
    let (folder, new) = match tab {
        Tab::Access => ("access/", "access/rules.cedar"),
        Tab::Programs => ("programs/", "programs/rule.star"),
        _ => ("", "tests/rules.md"),
    };
    html! {
        section aria-labelledby="h-f" {
            div .sh {
                h2 #h-f { @if folder.is_empty() { "Files" } @else { "Files in " span .mono { (folder) } } }
                @if list.draft.may { a .more href={ "/policies/file?path=" (new) "&new=yes" } { "New file" } }
            }
            div .panel.scroll tabindex="0" role="region" aria-label="Files" {
                table .t {
                    thead { tr { th scope="col" { "File" } th scope="col" { "Holds" } th .nums scope="col" { "Lines" } } }
                    tbody {
                        @if list.files.is_empty() { tr { td colspan="3" .muted { "None yet." } } }
                        @for file in &list.files { tr {
                            th scope="row" { a .mono href={ "/policies/file?path=" (encoded(&file.path)) } { (shown(&file.path)) } }
                            td .soft { (sentence(&file.holds)) }
                            td .nums { (file.lines) }
                        } }
                    }
                }
            }
        }
    }
}

fn versions(list: &List) -> Markup {
    html! {
        section aria-labelledby="h-v" {
            div .sh { h2 #h-v { "Versions" } p { "written by this console, and what it found" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Versions" {
                table .t.cards {
                    thead { tr { th scope="col" { "Version" } th scope="col" { "When" } th scope="col" { "By" } th scope="col" { "Changed" } th scope="col" { "Digest" } th scope="col" { span .sr { "Act" } } } }
                    tbody {
                        @if list.versions.is_empty() { tr { td colspan="6" .muted { "Nothing was changed here yet. The first change keeps what it found as version 1." } } }
                        @for version in &list.versions { tr {
                            td .nowrap { b { (version.number) } @if version.now { " in force" } }
                            td .nowrap { (version.at) }
                            td .nowrap { @match &version.by { Some(by) => { (shown(by)) } None => { span .muted { "not here" } } } }
                            td .wrap { (sentence(&version.what)) }
                            td .dig { (version.digest) }
                            td .nums.nowrap { a href={ "/policies/version?number=" (version.number) } { "compare" @if !version.now { ", roll back" } span .sr { " version " (version.number) } } }
                        } }
                    }
                }
            }
        }
    }
}

/// The fields of a runtime policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Unique, and permanent.
    pub name: String,
    /// Types of tools.
    pub types: BTreeSet<String>,
    /// At least 1.
    pub max_steps: String,
    /// At least 0.
    pub max_side_effects: String,
    /// Whether each side effect is held.
    pub approval: bool,
    /// Separated by commas.
    pub keywords: String,
    /// Whether a reply that fails verification is held.
    pub escalate: bool,
}

impl Fields {
    /// All of them as one text: what a form said when it was made.
    #[must_use]
    pub fn together(&self) -> String {
        let types: Vec<&str> = self.types.iter().map(String::as_str).collect();
        [
            self.name.trim(),
            &types.join(" "),
            self.max_steps.trim(),
            self.max_side_effects.trim(),
            if self.approval { "approval" } else { "" },
            &keywords(&self.keywords).join(","),
            if self.escalate { "escalate" } else { "" },
        ]
        .join("|")
    }
}

/// Keywords that are separated by commas: trimmed, without empty ones.
#[must_use]
pub fn keywords(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|keyword| !keyword.is_empty()).collect()
}

/// The editor of a runtime policy.
#[derive(Debug, Default)]
pub struct Editing {
    /// It does not exist yet.
    pub new: bool,
    /// The file.
    pub path: String,
    /// The form.
    pub fields: Fields,
    /// The types of tools that there are.
    pub types: Vec<String>,
    /// The file as a text.
    pub text: String,
    /// Lines of the text with mistakes.
    pub wrong: BTreeSet<usize>,
    /// What it would mean.
    pub outcome: Outcome,
    /// Forms.
    pub draft: Draft,
}

/// The editor of a runtime policy.
#[must_use]
pub fn edit(page: &Editing) -> Markup {
    let heading = if page.new { "New Policy" } else { page.fields.name.as_str() };
    html! {
        div .head { div { p .crumbs { a href="/policies" { "Policies" } " / " (shown(heading)) } h1 { (shown(heading)) } p { "Form and text are two views of one draft. What recorded runs would have met stands below." } } div .acts { a .btn href={ "/simulate?policy=" (encoded(&page.fields.name)) } { "Try on a plan" } } }
        (editor::above(&page.draft))
        form #draft method="post" action="/policies/edit" data-draft="" {
            (editor::fields(&page.draft))
            input type="hidden" name="path" value=(page.path);
            @if page.new { input type="hidden" name="new" value="yes"; }
            div .cols.pol {
                section aria-labelledby="h-f" { div .sh { h2 #h-f { "Form" } } (form(page)) }
                section aria-labelledby="h-t" {
                    div .sh { h2 #h-t { "Text" } p .mono { (shown(&page.path)) } }
                    (editor::text(&Text { name: "text", label: &page.path, text: &page.text, wrong: &page.wrong, readonly: !page.draft.may, rows: 14 }))
                }
            }
        }
        (editor::save(&page.draft, "draft", "Save Policy", "/policies"))
        (outcome::view(&page.outcome))
    }
}

fn form(page: &Editing) -> Markup {
    let fields = &page.fields;
    let types: BTreeSet<&str> =
        page.types.iter().map(String::as_str).chain(fields.types.iter().map(String::as_str)).collect();
    html! {
        div .panel.pad.form data-part="form" {
            input type="hidden" name="was" value=(fields.together());
            div .field { label for="pn" { "Name" } input #pn type="text" name="name" value=(fields.name) maxlength="200" readonly[!page.new] aria-describedby="pn-h" autocomplete="off"; span .hint #pn-h { @if page.new { "Unique, and permanent from the first save: records refer to it." } @else { "Permanent: records refer to it." } } }
            fieldset .field { legend { "Types of tools it may use" } div .types {
                @for kind in types { label .check { input type="checkbox" name="type" value=(kind) checked[fields.types.contains(kind)]; span { (shown(kind)) } } }
            } }
            div .two {
                div .field { label for="ms" { "Most steps" } input .n #ms type="text" name="max_steps" value=(fields.max_steps) inputmode="numeric" autocomplete="off"; }
                div .field { label for="mx" { "Most side effects" } input .n #mx type="text" name="max_side_effects" value=(fields.max_side_effects) inputmode="numeric" autocomplete="off"; }
            }
            div .field { label for="kw" { "Restricted keywords" } input #kw type="text" name="keywords" value=(fields.keywords) autocomplete="off"; span .hint { "Separated by commas; parts of words: “wire” is also found in “wireless”." } }
            label .check { input type="checkbox" name="approval" value="yes" checked[fields.approval]; span { "A person approves each side effect" } }
            label .check { input type="checkbox" name="escalate" value="yes" checked[fields.escalate]; span { "Raise to review when a reply fails verification" } }
        }
    }
}

/// The editor of any file.
#[derive(Debug, Default)]
pub struct FileEditing {
    /// It does not exist yet.
    pub new: bool,
    /// The file.
    pub path: String,
    /// As a text.
    pub text: String,
    /// Lines with mistakes.
    pub wrong: BTreeSet<usize>,
    /// What it would mean.
    pub outcome: Outcome,
    /// Forms.
    pub draft: Draft,
}

/// The editor of a file.
#[must_use]
pub fn file(page: &FileEditing) -> Markup {
    let back = format!("/policies?tab={}", Tab::of_file(&page.path).as_str());
    html! {
        div .head { div { p .crumbs { a href="/policies" { "Policies" } " / " a href=(back) { (Tab::of_file(&page.path).words()) } " / " (shown(&page.path)) } h1 .mono { (shown(&page.path)) } p { (says(&page.path)) } } }
        (editor::above(&page.draft))
        form #draft .stack method="post" action="/policies/file" data-draft="" {
            (editor::fields(&page.draft))
            @if page.new {
                input type="hidden" name="new" value="yes";
                div .field { label for="pp" { "File" } input #pp .mono type="text" name="path" value=(page.path) maxlength="200" spellcheck="false" autocomplete="off"; }
            } @else { input type="hidden" name="path" value=(page.path); }
            (editor::text(&Text { name: "text", label: &page.path, text: &page.text, wrong: &page.wrong, readonly: !page.draft.may, rows: 16 }))
        }
        (editor::save(&page.draft, "draft", "Save file", &back))
        (outcome::view(&page.outcome))
    }
}

fn says(path: &str) -> &'static str {
    match path.split('/').next().unwrap_or_default() {
        "access" => "Who may do what to which resource, in Cedar.",
        "programs" => "A condition that has to be computed, in Starlark. A program can only narrow.",
        "tests" => "Cases: a transcript, and the verdict that it must get.",
        "tools" => "The registry: what each tool may do to the world.",
        "plans" => "Plans of the simulator.",
        _ => "A file of the bundle.",
    }
}

/// A version beside what is in force.
#[derive(Debug, Default)]
pub struct Compared {
    /// The version.
    pub version: Option<Version>,
    /// What putting it back would mean.
    pub outcome: Outcome,
    /// What it had changed, against the version before.
    pub then: Vec<crate::diff::FileDiff>,
    /// Forms.
    pub draft: Draft,
}

/// A version, and the button that puts it back.
#[must_use]
pub fn version(page: &Compared) -> Markup {
    let Some(version) = &page.version else { return html! {} };
    html! {
        div .head { div {
            p .crumbs { a href="/policies" { "Policies" } " / " a href="/policies?tab=versions" { "Versions" } " / " (version.number) }
            h1 { "Version " (version.number) }
            p { (sentence(&version.what)) ", " (version.at) @if let Some(by) = &version.by { " by " (shown(by)) } "." }
        } }
        (editor::above(&page.draft))
        @if !page.then.is_empty() {
            section aria-labelledby="h-then" { div .sh { h2 #h-then { "What it changed then" } } div .stack { @for file in &page.then { (crate::diff::view(file)) } } }
        }
        @if version.now { p .soft { "This version is in force." } }
        @else {
            div .sh { h2 { "What rolling back to it would mean" } }
            (outcome::view(&page.outcome))
            @if page.draft.may && page.draft.closed.is_none() {
                form .row.savebar method="post" action="/policies/version" {
                    (editor::fields(&page.draft))
                    input type="hidden" name="number" value=(version.number);
                    button .btn.main type="submit" { "Roll back to version " (version.number) }
                    span .hint { "Writes a new version with the files of this one; nothing is lost." }
                }
            }
        }
    }
}

/// A text within an address.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.extend(char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_apart_from_what_it_was() {
        let fields = Fields { name: "a".into(), keywords: " x ,, y".into(), ..Fields::default() };
        let same = Fields { keywords: "x,y".into(), ..fields.clone() };
        assert_eq!(fields.together(), same.together());
        assert_ne!(fields.together(), Fields { approval: true, ..fields.clone() }.together());
        assert_eq!(encoded("A b/ü&"), "A%20b/%C3%BC%26");
    }

    #[test]
    fn the_name_of_a_policy_cannot_be_typed_over() {
        let page = |new| edit(&Editing { new, ..Editing::default() }).into_string();
        assert!(page(false).contains("readonly") && !page(true).contains("maxlength=\"200\" readonly"));
    }
}
