//! How far a person's yes reaches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::ResourceKind;
use crate::finding::Finding;
use crate::id::ActionId;
use crate::limits::{FINDING_RESOURCES_MAX, GRANTED_RESOURCES_MAX, NAME_BYTES_MAX};
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// What a request for approval is about, and a grant is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// An action.
    Action(ActionId),
    /// A reply: the number of the event that has its text.
    Text(u64),
}

impl About {
    /// The action, unless it is about a text.
    #[must_use]
    pub fn action(self) -> Option<ActionId> {
        match self {
            Self::Action(action) => Some(action),
            Self::Text(_) => None,
        }
    }
}

/// How far a grant reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// This action with these arguments, once.
    Once,
    /// This action with these arguments, as often as it is proposed.
    Arguments,
    /// Every call of this tool for the rest of the run.
    Tool(String),
    /// What these rules hold against these resources, for the rest of the run, whichever call touches them.
    Effects(Vec<GrantedEffects>),
    /// The same for all resources whose names fit a [pattern](fits). Only calls that are read completely, and by which
    /// nothing leaves, are covered.
    Pattern(Vec<GrantedEffects>),
}

/// Resources that a rule no longer holds a call for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct GrantedEffects {
    /// The rule, as findings name it. Rules are about one kind of effect each, so it says what may be done.
    pub rule: String,
    /// The resources, as findings name them: `path /etc/hosts`. Of a pattern: `path /srv/app/*`.
    pub resources: Vec<String>,
}

impl GrantedEffects {
    /// What would have to be granted so that a finding no longer holds a call, or `None` if it does not name all the
    /// resources that it is about, if a name may mean something else next time, or if no policy asked for it: an
    /// effect that merely was not permitted may be of any kind.
    pub fn of(finding: &Finding) -> Option<Self> {
        let certain =
            |resource: &String| resource.len() + char::MAX.len_utf8() <= NAME_BYTES_MAX && is_fixed(resource);
        let resources = &finding.resources;
        let whole = !resources.is_empty() && resources.len() < FINDING_RESOURCES_MAX;
        let whole = whole && !finding.policies.is_empty();
        (whole && resources.iter().all(certain))
            .then(|| Self { rule: finding.rule.to_string(), resources: resources.clone() })
    }
}

/// What a grant would have to cover so that these findings no longer hold the call, or `None` if one of them cannot
/// be granted by its effects or names too many.
pub fn held_for(findings: &[Finding]) -> Option<Vec<GrantedEffects>> {
    let held = findings.iter().filter(|finding| finding.effective() == Verdict::Review);
    let effects: Vec<GrantedEffects> = held.map(GrantedEffects::of).collect::<Option<_>>()?;
    let resources: usize = effects.iter().map(|granted| granted.resources.len()).sum();
    (resources <= GRANTED_RESOURCES_MAX && !effects.is_empty()).then_some(effects)
}

/// Whether a name means the same thing every time. The name of something that could not be read, or that a variable
/// holds, does not.
fn is_fixed(resource: &str) -> bool {
    !resource.starts_with(ResourceKind::Unknown.as_str()) && !resource.contains(['$', '`'])
}

/// Whether the name of a resource fits a pattern: the same name, or, where the pattern ends in `/*` or `.*`, one that
/// goes on after that sign.
pub fn fits(pattern: &str, resource: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => {
            let rest = resource.strip_prefix(start).unwrap_or_default();
            !rest.is_empty() && !rest.split('/').any(|part| part == "..")
        }
        None => pattern == resource,
    }
}

/// Why a text is no pattern that may be granted, or `None` if it is one. Only what stays on the machine or in the
/// database may be granted by a pattern: a pattern of recipients or hosts would let data leave to somebody nobody has
/// seen.
pub fn not_a_pattern(pattern: &str) -> Option<&'static str> {
    let kinds = [ResourceKind::Path, ResourceKind::Table, ResourceKind::Column];
    let Some((kind, name)) = pattern.split_once(' ') else {
        return Some("a pattern is a kind of resource and a name: `path /srv/app/*`");
    };
    if !kinds.iter().any(|known| known.as_str() == kind) {
        return Some("patterns are for paths, tables and columns only");
    }
    let Some(start) = name.strip_suffix('*') else {
        return (name.contains('*') || name.is_empty()).then_some(STAR_LAST);
    };
    let separator = if kind == ResourceKind::Path.as_str() { '/' } else { '.' };
    match start.strip_suffix(separator) {
        None => {
            Some("`*` stands for what follows a `/` in a path, or a `.` in the name of a table or column")
        }
        Some("") => Some("a pattern must name a folder, database or table"),
        Some(folder) if folder.contains('*') => Some(STAR_LAST),
        Some(_) => None,
    }
}

const STAR_LAST: &str = "`*` may stand at the end only";

impl GrantScope {
    /// Whether a grant of this scope answers a finding, once it holds for the action.
    pub fn answers(&self, finding: &Finding) -> bool {
        let (granted, same): (_, fn(&str, &str) -> bool) = match self {
            Self::Once | Self::Arguments | Self::Tool(_) => return true,
            Self::Effects(granted) => (granted, |given, resource| given == resource),
            Self::Pattern(granted) => (granted, fits),
        };
        let Some(wanted) = GrantedEffects::of(finding) else { return false };
        let given = |resource: &String| {
            let of_rule = granted.iter().filter(|given| given.rule == wanted.rule);
            of_rule.flat_map(|given| &given.resources).any(|given| same(given, resource))
        };
        wanted.resources.iter().all(given)
    }

    /// The resources that it names, by rule.
    pub fn resources_mut(&mut self) -> Option<&mut Vec<GrantedEffects>> {
        match self {
            Self::Effects(granted) | Self::Pattern(granted) => Some(granted),
            Self::Once | Self::Arguments | Self::Tool(_) => None,
        }
    }
}

/// How long a grant lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lasting {
    /// It can be claimed until then. `None`: for as long as the bundle lets grants last; grants of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// It ends with the task: with the next thing that the user says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, resources: &[&str]) -> Finding {
        Finding::new(rule.to_owned(), Verdict::Review, "held")
            .against(resources.iter().map(|r| (*r).to_owned()))
            .by_policies(["p".to_owned()])
    }

    #[test]
    fn a_grant_for_effects_answers_what_it_names_and_nothing_else() {
        let granted = GrantedEffects::of(&finding("access/outside", &["path /a", "path /b"])).unwrap();
        let scope = GrantScope::Effects(vec![granted]);
        assert!(scope.answers(&finding("access/outside", &["path /a"])));
        assert!(scope.answers(&finding("access/outside", &["path /b", "path /a"])));
        assert!(!scope.answers(&finding("access/outside", &["path /a", "path /c"])));
        assert!(!scope.answers(&finding("access/delete", &["path /a"])), "another rule");
        assert!(!scope.answers(&finding("runtime-policy/approval", &[])), "no effects at all");
        assert!(GrantScope::Once.answers(&finding("runtime-policy/approval", &[])));
        let text = serde_json::to_string(&scope).unwrap();
        let expected = r#"{"effects":[{"rule":"access/outside","resources":["path /a","path /b"]}]}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<GrantScope>(&text).unwrap(), scope);
    }

    #[test]
    fn a_pattern_covers_what_lies_below_it() {
        let granted = |resources: &[&str]| GrantedEffects {
            rule: "access/outside".to_owned(),
            resources: resources.iter().map(|resource| (*resource).to_owned()).collect(),
        };
        let scope = GrantScope::Pattern(vec![granted(&["path /srv/app/*", "table shop.*"])]);
        for covered in ["path /srv/app/a", "path /srv/app/b/c", "table shop.orders"] {
            assert!(scope.answers(&finding("access/outside", &[covered])), "{covered}");
        }
        for other in
            ["path /srv/app", "path /srv/app/", "path /srv/apps/a", "path /srv", "table shops.orders"]
        {
            assert!(!scope.answers(&finding("access/outside", &[other])), "{other}");
        }
        assert!(!scope.answers(&finding("access/outside", &["path /srv/app/a", "path /etc/x"])));
        assert!(!scope.answers(&finding("access/delete", &["path /srv/app/a"])));
    }

    #[test]
    fn what_leaves_or_could_be_anything_is_not_granted_by_a_pattern() {
        for good in ["path /srv/*", "path /srv/a", "table shop.*", "column shop.orders.*"] {
            assert_eq!(not_a_pattern(good), None, "{good}");
        }
        for bad in [
            "recipient *@example.com",
            "host *.example.com",
            "path /*",
            "path *",
            "path /srv*",
            "path /srv/*/x",
            "path /srv/*/*",
            "table *",
            "table .*",
            "path",
            "path ",
            "",
        ] {
            assert!(not_a_pattern(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_may_be_something_else_next_time_is_not_granted_by_its_effects() {
        let long = format!("path /{}", "x".repeat(NAME_BYTES_MAX));
        for resource in ["unknown shell", "path $HOME/x", "path `pwd`/x", long.as_str()] {
            assert_eq!(GrantedEffects::of(&finding("r/x", &["path /a", resource])), None, "{resource}");
        }
        let many: Vec<String> = (0..=FINDING_RESOURCES_MAX).map(|number| format!("path /{number}")).collect();
        let many = finding("r/x", &[]).against(many);
        assert_eq!(GrantedEffects::of(&many), None, "some may have been left out");
        let default = Finding::new("r/x", Verdict::Review, "held").against(["path /a".to_owned()]);
        assert_eq!(GrantedEffects::of(&default), None, "no policy says which effect it is about");
    }
}
