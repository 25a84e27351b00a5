//! Who may do what with which token.

use super::{Direction, Found};
use crate::bundle::{Bundle, Credential, OauthSettings};
use crate::principal::{CredentialKind, Principal};

impl Found {
    /// Whoever is let in: by tokens of this bundle's own, and of others.
    pub(super) fn callers(&mut self, old: (&[Credential], Option<&OauthSettings>), new: &Bundle) {
        self.credentials(old.0, &new.credentials);
        self.oauth(old.1, new.oauth.as_ref());
    }

    fn credentials(&mut self, old: &[Credential], new: &[Credential]) {
        for credential in old {
            match new.iter().find(|other| other.token_sha256 == credential.token_sha256) {
                Some(other) => self.credential(credential, other),
                None => self.push(part(credential), shown(credential), "gone".into(), Direction::Tightened),
            }
        }
        for credential in new.iter().filter(|new| !old.iter().any(|old| old.token_sha256 == new.token_sha256))
        {
            self.push(part(credential), "none".into(), shown(credential), Direction::Loosened);
        }
        // Where no approver is mapped, the token of the machine decides.
        let approvers = |all: &[Credential]| all.iter().any(|of| of.kind == CredentialKind::Approver);
        let decides =
            |mapped: bool| if mapped { "mapped approvers" } else { "the token in the state folder" };
        self.flag_of("who decides approvals", approvers(old), approvers(new), decides);
    }

    fn credential(&mut self, old: &Credential, new: &Credential) {
        let Credential { token_sha256: _, kind, principal, policy } = old;
        let of = |field: &str| format!("{} {field}", part(old));
        let rank = |kind: CredentialKind| u32::from(kind == CredentialKind::Agent);
        self.ranked(of("kind"), rank(*kind), rank(new.kind), kind, &new.kind);
        let Principal { id, roles, attributes } = principal;
        self.value(of("principal"), id, &new.principal.id);
        for role in new.principal.roles.iter().filter(|role| !roles.contains(role)) {
            self.push(of("roles"), "-".into(), format!("`{role}`"), Direction::Loosened);
        }
        // A role may be what an access policy forbids.
        for role in roles.iter().filter(|role| !new.principal.roles.contains(role)) {
            self.push(of("roles"), format!("`{role}`"), "-".into(), Direction::Changed);
        }
        self.value(of("attributes"), attributes, &new.principal.attributes);
        if *policy != new.policy {
            let shown = |policy: &Option<String>| match policy {
                Some(name) => format!("`{name}`"),
                None => "the default".to_owned(),
            };
            // The policy it was bound to holds for it no longer.
            let direction = if policy.is_some() { Direction::Loosened } else { Direction::Tightened };
            self.push(of("policy"), shown(policy), shown(&new.policy), direction);
        }
    }

    /// A switch of which `true` is the stricter position, with words for the positions.
    fn flag_of(&mut self, part: &str, old: bool, new: bool, words: fn(bool) -> &'static str) {
        if old != new {
            let direction = if new { Direction::Tightened } else { Direction::Loosened };
            self.push(part, words(old).to_owned(), words(new).to_owned(), direction);
        }
    }
}

fn part(credential: &Credential) -> String {
    format!("credential of `{}`", credential.principal.id)
}

fn shown(credential: &Credential) -> String {
    let kind = match credential.kind {
        CredentialKind::Agent => "agent",
        CredentialKind::Approver => "approver",
    };
    match &credential.policy {
        Some(policy) => format!("{kind}, policy `{policy}`"),
        None => kind.to_owned(),
    }
}
