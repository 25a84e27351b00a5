//! How far a person's yes reaches.

use serde::{Deserialize, Serialize};

use crate::effect::ResourceKind;
use crate::finding::Finding;
use crate::limits::{FINDING_RESOURCES_MAX, NAME_BYTES_MAX};

/// How far a grant reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// This action with these arguments, once.
    Once,
    /// Every call of this tool for the rest of the run.
    Tool(String),
    /// What these rules hold against these resources, for the rest of the run, whichever call touches them.
    Effects(Vec<GrantedEffects>),
}

/// Resources that a rule no longer holds a call for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantedEffects {
    /// The rule, as findings name it. Rules are about one kind of effect each, so it says what may be done.
    pub rule: String,
    /// The resources, as findings name them: `path /etc/hosts`.
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

/// Whether a name means the same thing every time. The name of something that could not be read, or that a variable
/// holds, does not.
fn is_fixed(resource: &str) -> bool {
    !resource.starts_with(ResourceKind::Unknown.as_str()) && !resource.contains(['$', '`'])
}

impl GrantScope {
    /// Whether a grant of this scope answers a finding, once it holds for the action.
    pub fn answers(&self, finding: &Finding) -> bool {
        let Self::Effects(granted) = self else { return true };
        let Some(wanted) = GrantedEffects::of(finding) else { return false };
        let given = |resource: &String| {
            granted.iter().any(|given| given.rule == wanted.rule && given.resources.contains(resource))
        };
        wanted.resources.iter().all(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

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
