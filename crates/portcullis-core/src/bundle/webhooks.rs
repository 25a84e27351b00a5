//! Reads `[[approvals.webhook]]` of `portcullis.toml`: who else is told of what waits for a person.
//!
//! ```toml
//! [[approvals.webhook]]
//! name = "oncall"
//! url = "https://hooks.example/portcullis"        # http for loopback only
//! secret_file = "/etc/portcullis/oncall.secret"   # `whsec_` and base64, readable by the daemon alone
//! rules = ["access/payments"]                     # what holds the call; all if absent
//! tools = ["pay_*"]
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::approvals::{fits, patterns};
use super::toml_table::{Field, File, Table};

/// The most webhooks of a bundle.
pub const WEBHOOKS_MAX: usize = 8;
/// The longest name, in bytes: it is part of a path of `/v1`.
const NAME_BYTES_MAX: usize = 64;

/// An endpoint that is told of requests for approval, and may answer them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// Where messages go.
    pub url: String,
    /// The file with the secret that both sides sign with.
    pub secret_file: PathBuf,
    /// The rules that hold what it is told of, as findings name them, `*` at the end standing for any rest; empty: any.
    pub rules: BTreeSet<String>,
    /// The tools that wait, in the same way; empty: any.
    pub tools: BTreeSet<String>,
}

impl Webhook {
    /// Whether it is told of a request for this tool that this rule holds.
    #[must_use]
    pub fn wants(&self, rule: Option<&str>, tool: &str) -> bool {
        let named = |names: &BTreeSet<String>, name: &str| names.iter().any(|pattern| fits(pattern, name));
        (self.rules.is_empty() || rule.is_some_and(|rule| named(&self.rules, rule)))
            && (self.tools.is_empty() || named(&self.tools, tool))
    }
}

/// Reads the tables. What is wrong is reported, and the table left out.
pub(super) fn read(file: &File<'_>, tables: Vec<Table<'_, '_>>) -> Vec<Webhook> {
    if let Some(first) = tables.get(WEBHOOKS_MAX) {
        file.report(file.at(first.span.clone(), format!("there are more than {WEBHOOKS_MAX} webhooks")));
    }
    let mut names = BTreeSet::new();
    let mut webhooks = Vec::new();
    for table in tables.into_iter().take(WEBHOOKS_MAX) {
        let span = table.span.clone();
        let Some(webhook) = read_one(file, table) else { continue };
        if !names.insert(webhook.name.clone()) {
            file.report(file.at(span, format!("there are two webhooks named `{}`", webhook.name)));
        }
        webhooks.push(webhook);
    }
    webhooks
}

fn read_one(file: &File<'_>, mut table: Table<'_, '_>) -> Option<Webhook> {
    let (name, url, secret) = (table.string("name"), table.string("url"), table.string("secret_file"));
    for (field, given) in [("name", &name), ("url", &url), ("secret_file", &secret)] {
        if given.is_none() {
            table.missing(field);
        }
    }
    let rules = patterns(file, table.strings("rules"));
    let tools = patterns(file, table.strings("tools"));
    table.finish();
    let name = checked(file, name?, |name| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(plain);
        (!fits).then_some("a name has lower-case letters, digits and `-`, at most 64")
    });
    let url = checked(file, url?, not_an_address);
    let secret = checked(file, secret?, |path| {
        (!Path::new(path).is_absolute()).then_some("the path of the secret must be absolute")
    });
    Some(Webhook { name: name?, url: url?, secret_file: PathBuf::from(secret?), rules, tools })
}

fn checked(
    file: &File<'_>,
    field: Field<String>,
    wrong: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let Some(why) = wrong(&field.value) else { return Some(field.value) };
    file.report(file.at(field.span, format!("`{}`: {why}", field.value)));
    None
}

/// What is wrong with an address that secrets travel to.
pub(super) fn not_an_address(url: &str) -> Option<&'static str> {
    if url.len() > 2_048 || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("an address has at most 2048 bytes and no spaces");
    }
    if url.starts_with("https://") {
        return None;
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return Some("the address must begin with `https://`");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    match host {
        Some("localhost" | "127.0.0.1" | "::1") => None,
        _ => Some("`http` goes to loopback only: what is held would travel in clear; use `https://`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_told_in_clear() {
        for fine in
            ["https://hooks.example/x", "http://127.0.0.1:8080/", "http://[::1]/a", "http://localhost"]
        {
            assert_eq!(not_an_address(fine), None, "{fine}");
        }
        for wrong in
            ["http://hooks.example", "http://127.0.0.1.example/", "http://localhost@evil/", "ftp://x", ""]
        {
            assert!(not_an_address(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_webhook_is_told_of_what_it_wants() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let webhook = Webhook {
            name: "n".into(),
            url: "https://h".into(),
            secret_file: "/s".into(),
            rules: set(&["access/*"]),
            tools: set(&["pay_*"]),
        };
        assert!(webhook.wants(Some("access/payments"), "pay_bill"));
        assert!(!webhook.wants(Some("access/payments"), "mail") && !webhook.wants(None, "pay_bill"));
        assert!(Webhook { rules: set(&[]), tools: set(&[]), ..webhook }.wants(None, ""));
    }
}
