//! Reads `[authority]` of `portcullis.toml`.
//!
//! ```toml
//! [authority]
//! identities = ["emma@example.com", "DE89 3704 0044 0532 0130 00"]  # the user's own addresses, accounts and names
//! domains = ["example.com"]                       # organisations: their addresses and pages, and all below them
//! recipients = ["bob@partner.example", "#team"]   # who may be written to, paid, invited
//! hosts = ["api.partner.example"]                 # exactly these hosts
//! directories = ["crm/search_contacts"]           # tools whose fields may be believed about who someone is
//! ```
//!
//! An entry names one thing. What could name everybody (a wildcard, an ending such as `co.uk`, a domain where
//! strangers have pages or addresses) is a mistake rather than a wide permission.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::diagnostic::Diagnostic;
use super::toml_table::{File, Table};
use crate::limits::{AUTHORITY_ENTRIES_MAX, NAME_BYTES_MAX};
use crate::site;

/// The people, organisations and tools that the operator vouches for. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthoritySettings {
    /// The user's own addresses, accounts and names, each in the form of [`normal_party`].
    pub identities: BTreeSet<String>,
    /// Organisations by domain, lower case: their mail addresses and hosts, and those below them.
    pub domains: BTreeSet<String>,
    /// Who may be written to, paid or invited, each in the form of [`normal_party`].
    pub recipients: BTreeSet<String>,
    /// Hosts, exactly these: names in lower case, addresses as they are usually written.
    pub hosts: BTreeSet<String>,
    /// Tools whose fields may be believed about who someone is: `server/tool`, or `tool` of any server.
    pub directories: BTreeSet<String>,
}

impl AuthoritySettings {
    /// Whether the bundle names this address, account or name: an identity, a recipient, or an address at one of
    /// the domains.
    pub fn names_party(&self, party: &str) -> bool {
        if self.identities.is_empty() && self.recipients.is_empty() && self.domains.is_empty() {
            return false;
        }
        let party = normal_party(party);
        self.identities.contains(&party)
            || self.recipients.contains(&party)
            || mail_domain(&party).is_some_and(|domain| self.is_in_domain(domain))
    }

    /// Whether the bundle names this host: one of the hosts, or one of the domains or below it.
    pub fn names_host(&self, host: &str) -> bool {
        if self.hosts.is_empty() && self.domains.is_empty() {
            return false;
        }
        let host = normal_host(host);
        self.hosts.contains(&host) || self.is_in_domain(&host)
    }

    /// Whether the fields of what this tool returns may be believed about who someone is. A tool whose server is
    /// not known is one only by its bare name.
    pub fn is_directory(&self, server: Option<&str>, tool: &str) -> bool {
        self.directories.iter().any(|entry| match entry.rsplit_once('/') {
            Some((of, name)) => server == Some(of) && name == tool,
            None => entry == tool,
        })
    }

    fn is_in_domain(&self, host: &str) -> bool {
        self.domains.iter().any(|domain| site::is_within(host, domain))
    }
}

/// One spelling for one party: account numbers that look like an IBAN in upper case without white space, everything
/// else in lower case with single spaces.
pub fn normal_party(text: &str) -> String {
    let compact: String = text.split_whitespace().collect();
    if is_iban(&compact) {
        return compact.to_ascii_uppercase();
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    text.strip_prefix("mailto:").map(str::to_owned).unwrap_or(text)
}

/// Two letters, two digits, and letters and digits. The check digits are not looked at: an account with wrong ones
/// is named all the same.
fn is_iban(compact: &str) -> bool {
    let letters = compact.as_bytes();
    (15..=34).contains(&letters.len())
        && letters.iter().all(u8::is_ascii_alphanumeric)
        && letters.iter().take(2).all(u8::is_ascii_alphabetic)
        && letters.iter().skip(2).take(2).all(u8::is_ascii_digit)
}

/// The domain of a text that is one mail address and nothing else. A name with `%` or `!` in it may be a route to
/// another domain, and `?` and `&` begin what `mailto:` hands on.
fn mail_domain(party: &str) -> Option<&str> {
    let (name, domain) = party.split_once('@')?;
    let plain = |text: &str| {
        !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "@,;:<>()[]\"\\/%!?&".contains(c))
    };
    (plain(name) && plain(domain) && domain.split('.').all(|label| !label.is_empty())).then_some(domain)
}

/// One spelling for one host.
fn normal_host(text: &str) -> String {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => text.strip_suffix('.').unwrap_or(text).to_lowercase(),
    }
}

/// An entry with its place, for [lints](super::lint).
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The list that contains it.
    pub(super) list: &'static str,
    pub(super) value: String,
    pub(super) place: Diagnostic,
}

pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> (AuthoritySettings, Vec<Entry>) {
    let mut entries = Vec::new();
    let mut list = |name, check| read_list(file, &mut table, name, check, &mut entries);
    let settings = AuthoritySettings {
        identities: list("identities", party),
        domains: list("domains", domain),
        recipients: list("recipients", party),
        hosts: list("hosts", host),
        directories: list("directories", directory),
    };
    table.finish();
    (settings, entries)
}

/// Why an entry is a mistake, and what to write instead.
struct Wrong {
    message: String,
    help: Option<String>,
}

impl Wrong {
    fn new(message: String) -> Self {
        Self { message, help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Reads an entry of the list of that name in its normal form.
type Check = fn(&str, &str) -> Result<String, Wrong>;

fn read_list(
    file: &File<'_>,
    table: &mut Table<'_, '_>,
    name: &'static str,
    check: Check,
    entries: &mut Vec<Entry>,
) -> BTreeSet<String> {
    let fields = table.strings(name).unwrap_or_default();
    if let Some(field) = fields.get(AUTHORITY_ENTRIES_MAX) {
        let message = format!("more than {AUTHORITY_ENTRIES_MAX} entries in `{name}`");
        file.report(file.at(field.span.clone(), message));
    }
    let mut list = BTreeSet::new();
    for field in fields.into_iter().take(AUTHORITY_ENTRIES_MAX) {
        let place = file.at(field.span, "");
        match general(name, field.value.trim()).and_then(|()| check(name, field.value.trim())) {
            Ok(value) => {
                list.insert(value.clone());
                entries.push(Entry { list: name, value, place });
            }
            Err(Wrong { message, help }) => file.report(Diagnostic { message, help, ..place }),
        }
    }
    list
}

/// What holds for the entries of every list.
fn general(list: &str, text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err(Wrong::new(format!("`{list}` has an empty entry")));
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(Wrong::new(format!("an entry of `{list}` must have 1 to {NAME_BYTES_MAX} bytes")));
    }
    if text.contains('*') || (text.contains('?') && !text.contains('/')) {
        let wrong = Wrong::new(format!("`{text}` is a pattern; `{list}` takes exact names"));
        let rest = text.trim_start_matches(['*', '@', '.', '?']);
        return Err(match (list, rest.contains(['*', '?']) || site::is_public_suffix(rest)) {
            ("domains", false) => wrong.help(format!("write `{rest}`, which includes its subdomains")),
            ("hosts" | "recipients" | "identities", false) => {
                wrong.help(format!("name the organisation under `domains`: `{rest}`"))
            }
            _ => wrong.help("list each one"),
        });
    }
    if !text.contains(char::is_alphanumeric) {
        return Err(Wrong::new(format!("`{text}` contains no letter or digit")));
    }
    Ok(())
}

/// An entry of `identities` or `recipients`.
fn party(_: &str, text: &str) -> Result<String, Wrong> {
    let party = normal_party(text);
    if party.contains("://") {
        let wrong = Wrong::new(format!("`{text}` is a URL, not an address, an account or a name"));
        return Err(wrong.help(format!("name its host under `hosts`: `{}`", host_of(&party))));
    }
    // What begins with the sign is the name of an account: `@bob`, `@bob@social.example`.
    let after = party.strip_prefix('@').unwrap_or(&party);
    if !after.contains('@') || mail_domain(after).is_some() {
        return Ok(party);
    }
    let wrong = Wrong::new(format!("`{text}` is not a mail address"));
    let inner = party.split(['<', '>']).nth(1).filter(|inner| mail_domain(inner).is_some());
    Err(wrong.help(match inner {
        Some(inner) => format!("write the address alone: `{inner}`"),
        None => "write one address, such as `bob@partner.example`".to_owned(),
    }))
}

/// An entry of `domains`.
fn domain(list: &str, text: &str) -> Result<String, Wrong> {
    let name = host(list, text)?;
    if name.parse::<IpAddr>().is_ok() {
        let wrong = Wrong::new(format!("`{text}` is an IP address, not a domain"));
        return Err(wrong.help("put it under `hosts`"));
    }
    if site::is_shared(&name) {
        let wrong = Wrong::new(format!(
            "anyone can publish or have an address at `{name}`, so it does not identify an organisation"
        ));
        return Err(wrong.help(
            "name the exact host under `hosts`, the address under `recipients`, or the owner's domain",
        ));
    }
    Ok(name)
}

/// An entry of `hosts`.
fn host(list: &str, text: &str) -> Result<String, Wrong> {
    let what = if list == "domains" { "domain" } else { "host" };
    let name = normal_host(text);
    if name.parse::<IpAddr>().is_ok() {
        return Ok(name);
    }
    if name.contains(['/', '\\', '?', '#']) {
        let wrong = Wrong::new(format!("`{text}` is a URL or has a path; `{list}` takes a {what}"));
        return Err(wrong.help(format!("write `{}`", host_of(&name))));
    }
    if let Some((_, behind)) = name.rsplit_once('@') {
        let wrong = Wrong::new(format!("`{text}` is a mail address; `{list}` takes a {what}"));
        return Err(wrong.help(format!("write `{behind}`, or put the address under `recipients`")));
    }
    if let Some((before, _)) = name.split_once(':').filter(|(before, _)| !before.starts_with('[')) {
        let wrong = Wrong::new(format!("`{text}` has a port; `{list}` takes a {what}"));
        return Err(wrong.help(format!("write `{before}`")));
    }
    labels(text, &name, what)?;
    if site::is_public_suffix(&name) {
        let why = if name.contains('.') { "a public suffix" } else { "a name without a dot" };
        let wrong = Wrong::new(format!("`{text}` is {why}, not a {what}"));
        return Err(wrong.help(match site::is_shared(&name) {
            true => format!("name the exact host under `hosts`, such as `example.{name}`"),
            false => format!("write the whole name, such as `example.{name}`"),
        }));
    }
    Ok(name)
}

/// That a name has the letters of a host name.
fn labels(text: &str, name: &str, what: &str) -> Result<(), Wrong> {
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if name.split('.').all(label) && !number {
        return Ok(());
    }
    let wrong = Wrong::new(format!("`{text}` is not a valid {what} name"));
    Err(wrong.help(match name.is_ascii() {
        true => "write letters, digits and hyphens between single dots, such as `www.example.com`",
        false => "write its ASCII form, whose labels begin with `xn--`",
    }))
}

/// The host of something like a URL.
fn host_of(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next().unwrap_or_default()
}

/// An entry of `directories`. The part before the last slash is the server, whose name may contain slashes.
fn directory(_: &str, text: &str) -> Result<String, Wrong> {
    let named = |part: &str| part.trim() == part && part.contains(char::is_alphanumeric);
    if text.contains("://") || !text.split('/').all(named) {
        let wrong = Wrong::new(format!("`{text}` is not `server/tool` or the name of a tool"));
        return Err(wrong.help("such as `crm/search_contacts`"));
    }
    let server =
        text.split('/').next().filter(|server| text != *server && site::is_shared(&server.to_lowercase()));
    if let Some(server) = server {
        let wrong = Wrong::new(format!("`{server}` is a public hosting domain, not a tool server"));
        return Err(wrong.help("write the server's own name, such as `crm/search_contacts`"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
