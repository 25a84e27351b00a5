//! The page of policies: what is in force, by tabs.

use axum::extract::{Query, State};
use axum::response::Response;
use portcullis_console::Role;
use portcullis_console::editor::Told;
use portcullis_console::frame::Place;
use portcullis_console::policies::{self as pages, File, List, Row, Tab};
use serde::Deserialize;

use super::super::desk::{self, Standing, short};
use super::super::visitor::Visitor;
use super::super::{Seen, page};
use super::{draft, drafts, file_of, trouble, versions};

/// Versions that are listed.
const VERSIONS: usize = 100;

#[derive(Debug, Default, Deserialize)]
pub(in super::super) struct Shown {
    #[serde(default)]
    tab: String,
    saved: Option<u64>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    verb: String,
}

impl Shown {
    /// What is said of what was just saved.
    pub(in super::super) fn told(&self, what: &str) -> Option<Told> {
        let version = self.saved?;
        let verb = match self.verb.as_str() {
            "created" => "created",
            "added" => "added",
            _ => "updated",
        };
        let first = format!("{what} '{}' {verb} successfully!", self.name);
        Some(Told::good(
            first,
            format!(
                "It is in force as version {version} of the bundle, for new runs and for those that are open."
            ),
        ))
    }
}

pub(in super::super) async fn list(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(wanted): Query<Shown>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let tab = Tab::from_name(&wanted.tab);
    let told = wanted.told(if tab == Tab::Limits { "Policy" } else { "File" });
    let mut list = List {
        tab,
        policies: rows(&standing),
        files: files(&standing, tab),
        place: standing.place(),
        digest: short(&standing.digest()).to_owned(),
        draft: draft(&visitor, &standing, told),
        ..List::default()
    };
    for tab in [Tab::Access, Tab::Programs, Tab::Files] {
        list.counts.insert(tab.as_str(), files(&standing, tab).len());
    }
    list.counts.insert(Tab::Limits.as_str(), list.policies.len());
    if tab == Tab::Limits {
        list.drafts = drafts::all(&seen, &standing).await;
    }
    match versions::listed(&seen, &standing) {
        Ok(mut all) => {
            list.counts.insert(Tab::Versions.as_str(), all.len());
            all.truncate(VERSIONS);
            list.versions = all;
        }
        Err(why) => list.draft.told = Some(Told::bad("The versions cannot be read.", why)),
    }
    page::framed(&seen, &visitor, Place::Policies, Place::Policies.name(), pages::list(&list)).await
}

fn rows(standing: &Standing) -> Vec<Row> {
    let bundle = &standing.bundle;
    let row = |policy: &portcullis_core::policy::RuntimePolicy| Row {
        name: policy.name.clone(),
        types: policy.allowed_types.iter().cloned().collect(),
        max_steps: policy.max_steps,
        max_side_effects: policy.max_side_effects,
        approval: policy.approval_for_side_effects,
        keywords: policy.restricted_keywords.len(),
        escalate: policy.escalate_on_verification_fail,
        default: bundle.default_policy() == policy.name,
        file: file_of(standing, "policies/", "policy", &["name"], &policy.name).unwrap_or_default(),
    };
    bundle.policies().iter().map(row).collect()
}

fn files(standing: &Standing, tab: Tab) -> Vec<File> {
    let own = |path: &&String| {
        !path.starts_with("policies/") && Tab::of_file(path) == tab && desk::is_own_path(path)
    };
    standing
        .files
        .keys()
        .filter(own)
        .map(|path| {
            let text = standing.text(path);
            File { path: path.clone(), lines: text.lines().count(), holds: holds(path, &text) }
        })
        .collect()
}

/// What is in a file, counted roughly: it is a line in a table.
fn holds(path: &str, text: &str) -> String {
    let count = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
    match path.split('/').next().unwrap_or_default() {
        "access" => format!("{} `permit`, {} `forbid`", count("permit"), count("forbid")),
        "programs" => format!("{} functions", count("def ")),
        "tests" => format!("{} cases", count("```run")),
        "tools" => format!("{} tools", count("[[tool]]")),
        "plans" => format!("{} plans", count("[[plan]]")),
        "sequences" => format!("{} rules about what happened before", count("[[sequence]]")),
        "contracts" => format!("{} contracts", count("[[contract]]")),
        _ => "settings and documents".to_owned(),
    }
}
