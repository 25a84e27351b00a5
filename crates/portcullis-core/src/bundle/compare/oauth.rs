//! Whose access tokens are believed, and on whose behalf.

use std::collections::BTreeMap;

use super::{Direction, Found};
use crate::bundle::{Issuer, OauthSettings, Subject};

impl Found {
    pub(super) fn oauth(&mut self, old: Option<&OauthSettings>, new: Option<&OauthSettings>) {
        let (old, new) = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) => (old, new),
            (old, new) => {
                let shown =
                    |of: Option<&OauthSettings>| of.map_or("none".to_owned(), |of| of.resource.clone());
                let direction = if new.is_some() { Direction::Loosened } else { Direction::Tightened };
                return self.push("[oauth]", shown(old), shown(new), direction);
            }
        };
        let OauthSettings { resource, scopes, issuers, subjects } = old;
        self.value("[oauth] resource", resource, &new.resource);
        for scope in scopes.iter().filter(|scope| !new.scopes.contains(scope)) {
            self.push("[oauth] scopes", format!("`{scope}`"), "-".into(), Direction::Loosened);
        }
        for scope in new.scopes.iter().filter(|scope| !scopes.contains(scope)) {
            self.push("[oauth] scopes", "-".into(), format!("`{scope}`"), Direction::Tightened);
        }
        let by_url = |all: &[Issuer]| -> BTreeMap<String, String> {
            all.iter().map(|of| (of.url.clone(), format!("{of:?}"))).collect()
        };
        self.widening("[oauth] issuer", &by_url(issuers), &by_url(&new.issuers));
        let by_name = |all: &[Subject]| -> BTreeMap<String, String> {
            all.iter().map(|of| (format!("{} of {}", of.subject, of.issuer), format!("{of:?}"))).collect()
        };
        self.widening("[oauth] subject", &by_name(subjects), &by_name(&new.subjects));
    }

    /// What lets somebody in: one more is looser, one less tighter.
    fn widening(&mut self, part: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        for (name, before) in old {
            match new.get(name) {
                Some(after) if after == before => {}
                Some(after) => {
                    self.push(format!("{part} `{name}`"), before.clone(), after.clone(), Direction::Changed);
                }
                None => {
                    self.push(
                        format!("{part} `{name}`"),
                        "there".into(),
                        "gone".into(),
                        Direction::Tightened,
                    );
                }
            }
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            self.push(format!("{part} `{name}`"), "none".into(), "added".into(), Direction::Loosened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(scopes: &[&str], issuers: &[&str]) -> OauthSettings {
        let issuer = |url: &&str| Issuer {
            url: (*url).to_owned(),
            claim: "sub".to_owned(),
            prefix: Some(String::new()),
            roles_claim: None,
            roles: BTreeMap::new(),
            policy: None,
        };
        OauthSettings {
            resource: "https://gate.example/mcp".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            issuers: issuers.iter().map(issuer).collect(),
            subjects: Vec::new(),
        }
    }

    #[test]
    fn one_more_issuer_is_looser_and_one_more_scope_tighter() {
        let directions = |old: Option<&OauthSettings>, new: Option<&OauthSettings>| {
            let mut found = Found(Vec::new());
            found.oauth(old, new);
            found.0.into_iter().map(|difference| difference.direction).collect::<Vec<_>>()
        };
        let one = settings(&["a"], &["https://x"]);
        assert_eq!(directions(Some(&one), Some(&one)), []);
        assert_eq!(directions(None, Some(&one)), [Direction::Loosened]);
        assert_eq!(directions(Some(&one), None), [Direction::Tightened]);
        let more = settings(&["a", "b"], &["https://x", "https://y"]);
        assert_eq!(directions(Some(&one), Some(&more)), [Direction::Tightened, Direction::Loosened]);
        assert_eq!(directions(Some(&more), Some(&one)), [Direction::Loosened, Direction::Tightened]);
    }
}
