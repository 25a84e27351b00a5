//! Entries, their normal forms, and the message for each error.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::*;
use crate::bundle::Bundle;

fn load(authority: &str) -> Result<Bundle, Vec<String>> {
    let policy = "[[policy]]\nname='p'\nallowed_types=[]\nmax_steps=1\nmax_side_effects=0\n";
    let tool = "[[tool]]\nname='search_contacts'\ntype='QUERY_DB'\nside_effecting=false\n";
    let main = format!("version = 1\n[authority]\n{authority}");
    let files = [("portcullis.toml", main.as_str()), ("policies/p.toml", policy), ("tools/t.toml", tool)];
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
    Bundle::load(&files).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

fn settings(authority: &str) -> AuthoritySettings {
    load(authority).unwrap().authority
}

#[track_caller]
fn check(authority: &str, expect: &Expect) {
    expect.assert_eq(&load(authority).expect_err("the bundle has a mistake").join("\n"));
}

#[test]
fn nobody_is_named_unless_the_bundle_does() {
    let settings = settings("");
    assert_eq!(settings, AuthoritySettings::default());
    assert!(!settings.names_party("") && !settings.names_host("") && !settings.is_directory(None, ""));
}

#[test]
fn entries_have_one_spelling() {
    let settings = settings(
        "identities = [' Emma@Example.com ', 'de89 3704 0044 0532 0130 00', 'Emma  Johnson']\n\
         domains = ['Example.COM', 'partner.example.']\n\
         recipients = ['#Team', '@Bob', 'mailto:bob@other.example']\n\
         hosts = ['API.Other.example', 'github.com', '10.0.0.1', '[::FFFF:10.0.0.2]', '0:0::1']\n\
         directories = ['crm/search_contacts', 'example/people/Find', 'search_contacts']\n",
    );
    let list = |list: &BTreeSet<String>| list.iter().cloned().collect::<Vec<_>>().join(", ");
    assert_eq!(list(&settings.identities), "DE89370400440532013000, emma johnson, emma@example.com");
    assert_eq!(list(&settings.domains), "example.com, partner.example");
    assert_eq!(list(&settings.recipients), "#team, @bob, bob@other.example");
    assert_eq!(list(&settings.hosts), "10.0.0.1, 10.0.0.2, ::1, api.other.example, github.com");
    assert_eq!(list(&settings.directories), "crm/search_contacts, example/people/Find, search_contacts");
}

#[test]
fn parties_are_named_one_by_one_or_by_their_domain() {
    let settings = settings(
        "identities = ['emma@gmail.com', 'DE89 3704 0044 0532 0130 00']\n\
         domains = ['example.com']\nrecipients = ['#team', 'bob@partner.example']\n",
    );
    for own in ["EMMA@gmail.com", "mailto:emma@gmail.com", "de89370400440532013000"] {
        assert!(settings.names_party(own), "{own}");
    }
    for named in ["#Team", "bob@partner.example", "anybody@example.com", "anybody@mail.example.com"] {
        assert!(settings.names_party(named), "{named}");
    }
    for other in [
        "mallory@gmail.com",
        "eve@partner.example",
        "eve@notexample.com",
        "example.com",
        "@example.com",
        "eve@evil.example,bob@example.com",
        "eve@evil.example@example.com",
        "eve <eve@evil.example> bob@example.com",
        "eve%evil.example@example.com",
        "mailto:?to=eve&cc=bob@example.com",
    ] {
        assert!(!settings.names_party(other), "{other}");
    }
}

#[test]
fn hosts_are_exact_and_domains_include_what_is_below_them() {
    let settings = settings("domains = ['example.com']\nhosts = ['api.partner.example', '::1']\n");
    for named in ["example.com", "WWW.Example.com.", "api.partner.example", "[::1]"] {
        assert!(settings.names_host(named), "{named}");
    }
    for other in ["partner.example", "v2.api.partner.example", "notexample.com", "example.com.evil.example"] {
        assert!(!settings.names_host(other), "{other}");
    }
}

#[test]
fn directories_are_tools_of_a_server_or_of_any() {
    let settings = settings("directories = ' crm/find , whois , example/people/find '\n");
    assert!(settings.is_directory(Some("crm"), "find") && settings.is_directory(Some("any"), "whois"));
    assert!(settings.is_directory(None, "whois") && settings.is_directory(Some("example/people"), "find"));
    for (server, tool) in [(None, "find"), (None, "crm/find"), (Some("mail"), "find"), (Some("crm"), "Find")]
    {
        assert!(!settings.is_directory(server, tool), "{server:?} {tool}");
    }
}

#[test]
fn an_unknown_key_is_a_mistake() {
    check(
        "domain = ['example.com']\n",
        &expect!["portcullis.toml:3:1: unknown field `domain` in the authority (did you mean `domains`?)"],
    );
    check(
        "domains = [1]\nhosts = true\n",
        &expect![[r#"
        portcullis.toml:3:12: `domains` must be a list of strings, found 1
        portcullis.toml:4:9: `hosts` must be a list of strings, found boolean"#]],
    );
}

#[test]
fn an_entry_has_a_word_and_fits() {
    check(
        "identities = ['', ' ']\nrecipients = ['#']\ndirectories = ['--']\n",
        &expect![[r#"
        portcullis.toml:3:15: `identities` has an empty entry
        portcullis.toml:3:19: `identities` has an empty entry
        portcullis.toml:4:15: `#` contains no letter or digit
        portcullis.toml:5:16: `--` contains no letter or digit"#]],
    );
    let long = format!("recipients = ['{}']\n", "a".repeat(NAME_BYTES_MAX + 1));
    check(&long, &expect!["portcullis.toml:3:15: an entry of `recipients` must have 1 to 256 bytes"]);
    let many = |entries| {
        let entries: Vec<String> = (0..entries).map(|number| format!("'a{number}'")).collect();
        format!("recipients = [{}]\n", entries.join(", "))
    };
    assert_eq!(settings(&many(AUTHORITY_ENTRIES_MAX)).recipients.len(), AUTHORITY_ENTRIES_MAX);
    check(
        &many(AUTHORITY_ENTRIES_MAX + 2),
        &expect!["portcullis.toml:3:4001: more than 512 entries in `recipients`"],
    );
}

#[test]
fn a_pattern_is_a_mistake_in_every_list() {
    check(
        "identities = ['*']\ndomains = ['*', '*.example.com', '*.co.uk', 'exam?le.com']\n\
         recipients = ['*@example.com', 'bob@*']\nhosts = ['*.partner.example']\n\
         directories = ['crm/*']\n",
        &expect![[r#"
            portcullis.toml:3:15: `*` is a pattern; `identities` takes exact names (list each one)
            portcullis.toml:4:12: `*` is a pattern; `domains` takes exact names (list each one)
            portcullis.toml:4:17: `*.example.com` is a pattern; `domains` takes exact names (write `example.com`, which includes its subdomains)
            portcullis.toml:4:34: `*.co.uk` is a pattern; `domains` takes exact names (list each one)
            portcullis.toml:4:45: `exam?le.com` is a pattern; `domains` takes exact names (list each one)
            portcullis.toml:5:15: `*@example.com` is a pattern; `recipients` takes exact names (name the organisation under `domains`: `example.com`)
            portcullis.toml:5:32: `bob@*` is a pattern; `recipients` takes exact names (list each one)
            portcullis.toml:6:10: `*.partner.example` is a pattern; `hosts` takes exact names (name the organisation under `domains`: `partner.example`)
            portcullis.toml:7:16: `crm/*` is a pattern; `directories` takes exact names (list each one)"#]],
    );
}

#[test]
fn an_ending_is_no_domain_and_no_host() {
    for list in ["domains", "hosts"] {
        let entries = "['com', 'co.uk', 'github.io', 'localhost']";
        let mistakes = load(&format!("{list} = {entries}\n")).unwrap_err();
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
    }
    check(
        "hosts = ['com', 'Co.UK']\ndomains = ['github.io']\n",
        &expect![[r#"
            portcullis.toml:4:12: `github.io` is a public suffix, not a domain (name the exact host under `hosts`, such as `example.github.io`)
            portcullis.toml:3:10: `com` is a name without a dot, not a host (write the whole name, such as `example.com`)
            portcullis.toml:3:17: `Co.UK` is a public suffix, not a host (write the whole name, such as `example.co.uk`)"#]],
    );
}

#[test]
fn a_url_or_an_address_is_no_domain_and_no_host() {
    check(
        "domains = ['https://Bob@www.example.com:8080/a?b', 'example.com/', 'example.com:443', 'a@example.com']\n\
         hosts = ['http://api.example.com', 'api.example.com:80', 'a@example.com', '[::1]:80']\n",
        &expect![[r#"
            portcullis.toml:3:12: `https://Bob@www.example.com:8080/a?b` is a URL or has a path; `domains` takes a domain (write `www.example.com`)
            portcullis.toml:3:52: `example.com/` is a URL or has a path; `domains` takes a domain (write `example.com`)
            portcullis.toml:3:68: `example.com:443` has a port; `domains` takes a domain (write `example.com`)
            portcullis.toml:3:87: `a@example.com` is a mail address; `domains` takes a domain (write `example.com`, or put the address under `recipients`)
            portcullis.toml:4:10: `http://api.example.com` is a URL or has a path; `hosts` takes a host (write `api.example.com`)
            portcullis.toml:4:36: `api.example.com:80` has a port; `hosts` takes a host (write `api.example.com`)
            portcullis.toml:4:58: `a@example.com` is a mail address; `hosts` takes a host (write `example.com`, or put the address under `recipients`)
            portcullis.toml:4:75: `[::1]:80` is not a valid host name (write letters, digits and hyphens between single dots, such as `www.example.com`)"#]],
    );
    check(
        "domains = ['10.0.0.1', '::1', '.example.com', 'a b.example', 'münchen.example']\nhosts = ['10.1', 'a..b.example']\n",
        &expect![[r#"
            portcullis.toml:3:12: `10.0.0.1` is an IP address, not a domain (put it under `hosts`)
            portcullis.toml:3:24: `::1` is an IP address, not a domain (put it under `hosts`)
            portcullis.toml:3:31: `.example.com` is not a valid domain name (write letters, digits and hyphens between single dots, such as `www.example.com`)
            portcullis.toml:3:47: `a b.example` is not a valid domain name (write letters, digits and hyphens between single dots, such as `www.example.com`)
            portcullis.toml:3:62: `münchen.example` is not a valid domain name (write its ASCII form, whose labels begin with `xn--`)
            portcullis.toml:4:10: `10.1` is not a valid host name (write letters, digits and hyphens between single dots, such as `www.example.com`)
            portcullis.toml:4:18: `a..b.example` is not a valid host name (write letters, digits and hyphens between single dots, such as `www.example.com`)"#]],
    );
}

#[test]
fn a_domain_that_strangers_share_names_nobody() {
    check(
        "domains = ['github.com', 'acme.github.io', 'gmail.com']\n",
        &expect![[r#"
        portcullis.toml:3:12: anyone can publish or have an address at `github.com`, so it does not identify an organisation (name the exact host under `hosts`, the address under `recipients`, or the owner's domain)
        portcullis.toml:3:26: anyone can publish or have an address at `acme.github.io`, so it does not identify an organisation (name the exact host under `hosts`, the address under `recipients`, or the owner's domain)
        portcullis.toml:3:44: anyone can publish or have an address at `gmail.com`, so it does not identify an organisation (name the exact host under `hosts`, the address under `recipients`, or the owner's domain)"#]],
    );
    assert_eq!(settings("hosts = ['github.com', 'acme.github.io']\n").hosts.len(), 2);
}

#[test]
fn a_party_is_an_address_an_account_or_a_name() {
    check(
        "identities = ['Emma <Emma@example.com>', 'emma@', '@']\n\
         recipients = ['a@b@c', 'https://hooks.example.com/x', 'a@example.com b@example.com']\n",
        &expect![[r#"
            portcullis.toml:3:15: `Emma <Emma@example.com>` is not a mail address (write the address alone: `emma@example.com`)
            portcullis.toml:3:42: `emma@` is not a mail address (write one address, such as `bob@partner.example`)
            portcullis.toml:3:51: `@` contains no letter or digit
            portcullis.toml:4:15: `a@b@c` is not a mail address (write one address, such as `bob@partner.example`)
            portcullis.toml:4:24: `https://hooks.example.com/x` is a URL, not an address, an account or a name (name its host under `hosts`: `hooks.example.com`)
            portcullis.toml:4:55: `a@example.com b@example.com` is not a mail address (write one address, such as `bob@partner.example`)"#]],
    );
    assert_eq!(settings("recipients = ['@bob@social.example', 'root@localhost']\n").recipients.len(), 2);
}

#[test]
fn a_directory_is_a_tool() {
    check(
        "directories = ['/find', 'crm/', 'crm//find', 'https://crm.example/find', 'crm / find', 'github.com/find']\n",
        &expect![[r#"
            portcullis.toml:3:16: `/find` is not `server/tool` or the name of a tool (such as `crm/search_contacts`)
            portcullis.toml:3:25: `crm/` is not `server/tool` or the name of a tool (such as `crm/search_contacts`)
            portcullis.toml:3:33: `crm//find` is not `server/tool` or the name of a tool (such as `crm/search_contacts`)
            portcullis.toml:3:46: `https://crm.example/find` is not `server/tool` or the name of a tool (such as `crm/search_contacts`)
            portcullis.toml:3:74: `crm / find` is not `server/tool` or the name of a tool (such as `crm/search_contacts`)
            portcullis.toml:3:88: `github.com` is a public hosting domain, not a tool server (write the server's own name, such as `crm/search_contacts`)"#]],
    );
}

#[test]
fn what_stands_twice_or_names_no_listed_tool_is_a_lint() {
    let bundle = load(
        "identities = ['emma@example.com']\nrecipients = ['emma@example.com', 'Bob', 'bob']\n\
         directories = ['crm/search_contacts', 'crm/serch_contacts', 'whois']\n",
    );
    let lints = bundle.unwrap().lint();
    let shown: Vec<String> = lints
        .iter()
        .filter(|lint| lint.diagnostic.file == "portcullis.toml")
        .map(|lint| format!("{}: {}", lint.name, lint.diagnostic))
        .collect();
    expect![[r#"
        double-entry: portcullis.toml:4:42: `bob` is listed twice in `recipients` (remove one of them)
        unlisted-directory: portcullis.toml:5:39: `crm/serch_contacts` in `directories` is a tool that `tools/` does not list (did you mean `search_contacts`?)
        unlisted-directory: portcullis.toml:5:61: `whois` in `directories` is a tool that `tools/` does not list (list the tool, or remove the entry)"#]].assert_eq(&shown.join("\n"));
}
