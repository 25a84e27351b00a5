//! Reads `[oauth]` of `portcullis.toml`: whose access tokens open `/mcp`, and on whose behalf.
//!
//! ```toml
//! [oauth]
//! resource = "https://gate.example/mcp"       # the gate's own address, as clients know it; http for loopback only
//! scopes = ["mcp"]                            # what a token must have
//!
//! [[oauth.issuer]]
//! url = "https://login.example/tenant"        # exactly as it says of itself
//! claim = "sub"                               # the claim that names the subject
//! prefix = "login:"                           # every subject is a principal of this name and the claim; absent: listed ones
//! roles_claim = "groups"
//! roles = { "ai-analysts" = "analyst" }       # a value of that claim, and the role that it gives
//! policy = "NAME"
//!
//! [[oauth.subject]]
//! issuer = "https://login.example/tenant"
//! subject = "8a6f…"                           # the value of the claim
//! principal = "alice"
//! roles = ["analyst"]
//! attributes = { department = "compliance" }
//! policy = "NAME"
//! ```
//!
//! A token never decides on approvals: its principals are those of agents.

use std::collections::{BTreeMap, BTreeSet};

use super::placed::{GivenAttribute, Placed, name_field, placed};
use super::toml_table::{Field, File, Table};
use super::webhooks::not_an_address;
use crate::principal::Principal;

/// The most issuers of a bundle: the keys of each are fetched and kept.
pub const ISSUERS_MAX: usize = 8;
/// The most subjects of a bundle.
pub const SUBJECTS_MAX: usize = 4_096;
/// The most scopes that are required.
const SCOPES_MAX: usize = 32;
/// The longest prefix, subject, claim or scope, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Whose access tokens are believed, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthSettings {
    /// The gate's own address, which a token must be meant for.
    pub resource: String,
    /// The scopes that a token must have.
    pub scopes: Vec<String>,
    /// Who issues them.
    pub issuers: Vec<Issuer>,
    /// Whom a token is known to stand for.
    pub subjects: Vec<Subject>,
}

/// An authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Its issuer identifier.
    pub url: String,
    /// The claim that names the subject.
    pub claim: String,
    /// What the name of a principal begins with that no entry lists; none: only listed subjects are known.
    pub prefix: Option<String>,
    /// The claim with the values that give roles.
    pub roles_claim: Option<String>,
    /// From a value of that claim to a role.
    pub roles: BTreeMap<String, String>,
    /// The runtime policy of the runs of its subjects, instead of the default.
    pub policy: Option<String>,
}

/// A subject of an issuer, and the principal that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The issuer.
    pub issuer: String,
    /// What the issuer calls it.
    pub subject: String,
    /// The principal.
    pub principal: Principal,
    /// The runtime policy of its runs, instead of the issuer's or the default.
    pub policy: Option<String>,
}

/// The settings, with what other parts of the bundle have to be held to.
#[derive(Default)]
pub(super) struct Read {
    pub(super) settings: Option<OauthSettings>,
    pub(super) policies: Vec<Placed<String>>,
    pub(super) attributes: Vec<GivenAttribute>,
}

/// Reads the table. What is wrong is reported.
pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> Read {
    let span = table.span.clone();
    let resource = address(file, &mut table, "resource");
    let scopes = table.strings("scopes").unwrap_or_default();
    let (mut policies, mut attributes) = (Vec::new(), Vec::new());
    let issuers = table.tables("issuer");
    let subjects = table.tables("subject");
    table.finish();
    for (what, count, limit) in
        [("issuers", issuers.len(), ISSUERS_MAX), ("subjects", subjects.len(), SUBJECTS_MAX)]
    {
        if count > limit {
            file.report(file.at(span.clone(), format!("there are more than {limit} {what}")));
            return Read::default();
        }
    }
    if issuers.is_empty() {
        file.report(
            file.at(span, "`[oauth]` has no issuer")
                .help("name whose tokens are believed, in a table [[oauth.issuer]]"),
        );
        return Read::default();
    }
    let scopes = checked_scopes(file, scopes);
    let issuers: Vec<Issuer> =
        issuers.into_iter().filter_map(|table| issuer(file, table, &mut policies)).collect();
    unique(file, issuers.iter().map(|issuer| issuer.url.clone()), "issuers");
    let urls: BTreeSet<&str> = issuers.iter().map(|issuer| issuer.url.as_str()).collect();
    let subjects: Vec<Subject> = subjects
        .into_iter()
        .filter_map(|table| subject(file, table, &urls, &mut policies, &mut attributes))
        .collect();
    unique(file, subjects.iter().map(|of| format!("{} {}", of.issuer, of.subject)), "subjects");
    let settings = resource.map(|resource| OauthSettings { resource, scopes, issuers, subjects });
    Read { settings, policies, attributes }
}

fn issuer(file: &File<'_>, mut table: Table<'_, '_>, policies: &mut Vec<Placed<String>>) -> Option<Issuer> {
    let url = address(file, &mut table, "url");
    let claim = text(file, table.string("claim")).unwrap_or_else(|| "sub".to_owned());
    let prefix = text(file, table.string("prefix"));
    let roles_claim = text(file, table.string("roles_claim"));
    let roles = table.entries("roles").unwrap_or_default();
    let policy = table.string("policy").map(|field| placed(file, field));
    let span = table.span.clone();
    table.finish();
    if roles_claim.is_none() && !roles.is_empty() {
        file.report(file.at(span, "`roles` needs `roles_claim`: the claim whose values give them"));
    }
    let name = policy.as_ref().map(|policy| policy.value.clone());
    policies.extend(policy);
    let roles = roles.into_iter().map(|(value, role)| (value.value, role.value)).collect();
    Some(Issuer { url: url?, claim, prefix, roles_claim, roles, policy: name })
}

fn subject(
    file: &File<'_>,
    mut table: Table<'_, '_>,
    issuers: &BTreeSet<&str>,
    policies: &mut Vec<Placed<String>>,
    attributes: &mut Vec<GivenAttribute>,
) -> Option<Subject> {
    let (issuer, subject) = (table.string("issuer"), table.string("subject"));
    for (field, given) in [("issuer", &issuer), ("subject", &subject)] {
        if given.is_none() {
            table.missing(field);
        }
    }
    let principal = name_field(file, &mut table, "principal");
    let roles = table.strings("roles").unwrap_or_default();
    let given = table.attributes("attributes").unwrap_or_default();
    let policy = table.string("policy").map(|field| placed(file, field));
    table.finish();
    let (issuer, subject) = (issuer?, text(file, subject)?);
    if !issuers.contains(issuer.value.as_str()) {
        let message = format!("`{}` is not an issuer of this bundle", issuer.value);
        let known = issuers.iter().copied();
        file.report(file.at(issuer.span, message).did_you_mean(&issuer.value, known));
    }
    let principal = Principal {
        id: principal?.value,
        roles: roles.into_iter().map(|role| role.value).collect(),
        attributes: given.iter().map(|(name, value)| (name.value.clone(), value.clone())).collect(),
    };
    let name = policy.as_ref().map(|policy| policy.value.clone());
    policies.extend(policy);
    attributes
        .extend(given.into_iter().map(|(name, value)| GivenAttribute { name: placed(file, name), value }));
    Some(Subject { issuer: issuer.value, subject, principal, policy: name })
}

/// An address without a query or a fragment: issuers and resources have none.
fn address(file: &File<'_>, table: &mut Table<'_, '_>, name: &'static str) -> Option<String> {
    let Some(field) = table.string(name) else {
        table.missing(name);
        return None;
    };
    let wrong = not_an_address(&field.value).or_else(|| {
        field
            .value
            .contains(['?', '#', '@', '"', '\\'])
            .then_some("an address here is scheme, host and path alone")
    });
    let Some(why) = wrong else { return Some(field.value) };
    file.report(file.at(field.span, format!("`{}`: {why}", field.value)));
    None
}

fn text(file: &File<'_>, field: Option<Field<String>>) -> Option<String> {
    let field = field?;
    if (1..=TEXT_BYTES_MAX).contains(&field.value.len()) && !field.value.chars().any(char::is_control) {
        return Some(field.value);
    }
    file.report(
        file.at(field.span, format!("it must have 1 to {TEXT_BYTES_MAX} bytes and no control characters")),
    );
    None
}

/// Scopes as RFC 6749 has them: no spaces, quotes or backslashes.
fn checked_scopes(file: &File<'_>, scopes: Vec<Field<String>>) -> Vec<String> {
    let fits = |scope: &str| {
        let plain = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        (1..=TEXT_BYTES_MAX).contains(&scope.len()) && scope.bytes().all(plain)
    };
    if let Some(beyond) = scopes.get(SCOPES_MAX) {
        file.report(file.at(beyond.span.clone(), format!("there are more than {SCOPES_MAX} scopes")));
    }
    for scope in scopes.iter().filter(|scope| !fits(&scope.value)) {
        file.report(file.at(scope.span.clone(), format!("`{}` is not a scope", scope.value)));
    }
    scopes.into_iter().map(|scope| scope.value).collect()
}

fn unique(file: &File<'_>, names: impl Iterator<Item = String>, what: &str) {
    let mut seen = BTreeSet::new();
    for name in names {
        if seen.contains(&name) {
            file.report(file.at(0..0, format!("there are two {what} `{name}`")));
        }
        seen.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::bundle::Bundle;

    const POLICY: &str = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";

    fn load(oauth: &str) -> Result<Bundle, Vec<String>> {
        let files =
            [("portcullis.toml", format!("version = 1\n{oauth}")), ("policies/p.toml", POLICY.into())];
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect();
        Bundle::load(&files).map_err(|found| found.into_iter().map(|found| found.message).collect())
    }

    #[test]
    fn issuers_and_subjects_are_read() {
        let bundle = load(
            "[oauth]\nresource = 'https://gate.example/mcp'\nscopes = ['mcp']\n\
             [[oauth.issuer]]\nurl = 'https://login.example'\nprefix = 'login:'\nroles_claim = 'groups'\n\
             roles = { analysts = 'analyst' }\n\
             [[oauth.subject]]\nissuer = 'https://login.example'\nsubject = 'u1'\nprincipal = 'alice'\npolicy = 'p'\n",
        )
        .unwrap();
        let oauth = bundle.oauth.unwrap();
        assert_eq!(
            (oauth.issuers[0].claim.as_str(), oauth.issuers[0].prefix.as_deref()),
            ("sub", Some("login:"))
        );
        assert_eq!(oauth.issuers[0].roles["analysts"], "analyst");
        assert_eq!(oauth.subjects[0].principal.id, "alice");
        assert_eq!(load("").unwrap().oauth, None);
    }

    #[test]
    fn mistakes_are_found_when_the_bundle_is_loaded() {
        let issuer = "[[oauth.issuer]]\nurl = 'https://login.example'\n";
        let resource = "[oauth]\nresource = 'https://gate.example/mcp'\n";
        let subject = "[[oauth.subject]]\nissuer = 'https://login.example'\nsubject = 'u'\nprincipal = 'a'\n";
        for (oauth, says) in [
            (format!("[oauth]\n{issuer}"), "has no `resource`"),
            (resource.to_owned(), "has no issuer"),
            (format!("[oauth]\nresource = 'http://gate.example/mcp'\n{issuer}"), "loopback"),
            (format!("[oauth]\nresource = 'https://gate.example/mcp?x'\n{issuer}"), "host and path alone"),
            (format!("{resource}[[oauth.issuer]]\nurl = 'http://10.0.0.1'\n"), "loopback"),
            (format!("{resource}{issuer}{issuer}"), "two issuers"),
            (format!("{resource}{issuer}{subject}{subject}"), "two subjects"),
            (format!("{resource}{issuer}{}", subject.replace("login.ex", "other.ex")), "is not an issuer"),
            (format!("{resource}{issuer}{subject}policy = 'q'\n"), "q"),
            (format!("{resource}{issuer}roles = {{ a = 'b' }}\n"), "needs `roles_claim`"),
            (
                format!(
                    "{resource}{issuer}{subject}attributes = {{ level = 1 }}\n[access]\nattributes = {{ a = 'text' }}\n"
                ),
                "level",
            ),
            (format!("[oauth]\nresource = 'https://g'\nscopes = ['a b\"']\n{issuer}"), "not a scope"),
            (format!("{resource}{issuer}kind = 'approver'\n"), "unknown field"),
        ] {
            let found = load(&oauth).expect_err(&oauth).join("; ");
            assert!(found.contains(says), "{oauth}: {found}");
        }
    }
}
