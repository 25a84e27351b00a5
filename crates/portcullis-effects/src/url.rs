//! URLs.
//!
//! What counts is the machine that a request goes to. It is named by its canonical host name or address, however
//! it was written: `http://0x7f.1/`, `http://127.0.0.1.` and `http://[::ffff:127.0.0.1]/` are one host. Where
//! programs disagree about the host of a text (backslashes, several `@`, octal numbers, white space within),
//! `resolved` is false. What a name resolves to is not asked: a name that someone's name server maps to a
//! private address is a name.

mod address;

use std::borrow::Cow;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use url::{Host, Url};

use crate::limits::TEXT_BYTES_MAX;
use crate::{Sink, Surroundings};

/// Most schemes in front of each other that are taken off: `view-source:jar:https://…`.
const WRAPPERS_MAX: usize = 4;
/// Most URLs that are read from one text.
const URLS_MAX: usize = 256;
/// Longest host name that is read, in bytes; name servers know names of up to 253.
const HOST_BYTES_MAX: usize = 1024;
/// Longest path of a URL that is kept, in bytes.
const PATH_BYTES_MAX: usize = 4096;

/// Reads `text` as a URL that is fetched.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_as(Verb::Read, text, surroundings, sink);
}

/// Reads `text` as a URL to whose host `verb` is done. `file:` URLs are paths, `mailto:` is mail.
pub fn read_as(verb: Verb, text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let whole = 0..text.len();
    let padding = |c: char| c <= ' ';
    let trimmed = text.trim_matches(padding);
    let begins = text.len() - text.trim_start_matches(padding).len();
    let scheme = scheme_of(trimmed).unwrap_or_default().to_ascii_lowercase();
    match scheme.as_str() {
        "file" => return crate::path::read_as(verb, trimmed, surroundings, &mut sink.part(begins)),
        "mailto" => return crate::mail::read(text, surroundings, sink),
        _ => {}
    }
    match resource(text, surroundings) {
        Some(host) => sink.add(Effect::new(verb, host), whole.clone()),
        None => {
            sink.unknown("url", unreadable(trimmed), whole.clone());
            // Tools that fetch often take a path as well.
            if trimmed.starts_with(['/', '.', '~']) && !trimmed.starts_with("//") {
                crate::path::read_as(verb, trimmed, surroundings, &mut sink.part(begins));
            }
        }
    }
    // White space within: either nothing to the reader, or there are several.
    let mut from = 0;
    let tokens = trimmed.split_ascii_whitespace().skip(1).take(URLS_MAX);
    for token in tokens.filter(|token| token.contains("://")) {
        let Some(at) = text.get(from..).and_then(|rest| rest.find(token)) else { continue };
        let start = from + at;
        from = start + token.len();
        match resource(token, surroundings) {
            Some(host) => sink.add(Effect::new(verb, host), start..from),
            None if token.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) => {
                crate::path::read_as(verb, token, surroundings, &mut sink.part(start));
            }
            None => sink.unknown("url", unreadable(token), start..from),
        }
    }
}

fn unreadable(text: &str) -> String {
    match scheme_of(text) {
        _ if text.is_empty() => "the URL is empty".to_owned(),
        _ if text.len() > TEXT_BYTES_MAX => format!("the URL is longer than {TEXT_BYTES_MAX} bytes"),
        Some(scheme) if scheme.len() <= 32 => format!("`{}:` names no host", scheme.to_ascii_lowercase()),
        _ => "the text is not a URL with a host".to_owned(),
    }
}

/// The machine that the URL in `text` leads to, with all attributes of hosts, or `None` if it names no machine
/// (`data:`, `file:`, a relative reference) or cannot be read.
pub fn resource(text: &str, surroundings: &Surroundings<'_>) -> Option<Resource> {
    let _ = surroundings;
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut text = text.trim_matches(|c: char| c <= ' ');
    for _ in 0..WRAPPERS_MAX {
        let Some(inner) = wrapped(text) else { break };
        text = inner;
    }
    let doubtful = is_doubtful(text);
    let text: Cow<'_, str> = complete(text)?;
    let scheme = scheme_of(&text)?.to_ascii_lowercase();
    if is_hostless(&scheme) {
        return None;
    }
    // Schemes that the standard does not know have hosts that it leaves as they are.
    let (host, url) = match Url::parse(&text) {
        Ok(url) => (url.host_str()?.to_owned(), Some(url)),
        Err(_) => (authority_host(&text)?.to_owned(), None),
    };
    let canonical = host_resource(&host)?;
    // As it was written it may have another meaning to others (`010.0.0.1`).
    let host = match authority_host(&text).and_then(host_resource) {
        Some(written) if written.name == canonical.name => written,
        _ => canonical,
    };
    // What other schemes have in place of a host may be a bucket or a device.
    let named = is_web(&scheme) || default_port(&scheme).is_some();
    let private = host.is("private") && (named || host.is("address"));
    let resolved = host.is("resolved") && named && !doubtful && url.is_some();
    let userinfo = authority(&text).contains('@');
    let port = match &url {
        Some(url) => url.port_or_known_default().or_else(|| default_port(&scheme)),
        None => None,
    };
    let path = url.as_ref().map(|url| url.path()).filter(|path| path.len() <= PATH_BYTES_MAX);
    let mut host = host
        .with("private", private)
        .with("resolved", resolved)
        .with("userinfo", userinfo)
        .with("scheme", scheme);
    if let Some(port) = port {
        host = host.with("port", i64::from(port));
    }
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        host = host.with("path", path);
    }
    Some(host)
}

/// The machine of that name or address, without scheme and port: what `ping` and `ssh` are given. `None` if the
/// text is nothing like a name.
pub fn host_resource(text: &str) -> Option<Resource> {
    if text.is_empty() || text.len() > HOST_BYTES_MAX {
        return None;
    }
    // `fe80::1%eth0`: the zone says through which interface.
    let bare = match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => Cow::Owned(format!("[{}]", inside.split('%').next().unwrap_or_default())),
        None if text.matches(':').count() > 1 => {
            Cow::Owned(format!("[{}]", text.split('%').next().unwrap_or_default()))
        }
        None => Cow::Borrowed(text),
    };
    let (name, facts, certain) = match Host::parse(&bare) {
        Ok(Host::Ipv4(v4)) => {
            let octal = text.split('.').any(|part| part.len() > 1 && part.starts_with('0') && !is_hex(part));
            let decimal = octal.then(|| decimal_reading(text)).flatten();
            let facts = address::of_v4(v4).or(decimal.map(address::of_v4).unwrap_or_default());
            (v4.to_string(), facts, !octal)
        }
        Ok(Host::Ipv6(v6)) => match v6.to_ipv4_mapped() {
            Some(v4) => (v4.to_string(), address::of_v4(v4), true),
            None => (v6.to_string(), address::of_v6(v6), true),
        },
        Ok(Host::Domain(domain)) => {
            let name = domain.strip_suffix('.').unwrap_or(&domain).to_owned();
            let facts = address::of_name(&name);
            let certain = is_name(&name) && !has_deviation(text);
            (name, facts, certain)
        }
        Err(_) => {
            let name: String =
                text.chars().flat_map(|c| c.escape_default()).collect::<String>().to_lowercase();
            (name, address::Facts::default(), false)
        }
    };
    if name.is_empty() {
        return None;
    }
    Some(
        Resource::new(ResourceKind::Host, name)
            .with("loopback", facts.loopback)
            .with("private", facts.private)
            .with("metadata", facts.metadata)
            .with("address", facts.address)
            .with("userinfo", false)
            .with("resolved", certain),
    )
}

/// Whether the name has the letters of a host name and no empty labels.
fn is_name(name: &str) -> bool {
    name.split('.').all(|label| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    })
}

/// Characters that the two versions of international domain names map to different names.
fn has_deviation(text: &str) -> bool {
    text.contains(['ß', 'ẞ', 'ς', '\u{200c}', '\u{200d}'])
}

fn is_hex(part: &str) -> bool {
    part.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
}

/// What programs see that know no octal numbers: `010.0.0.1` is `10.0.0.1` to them.
fn decimal_reading(text: &str) -> Option<std::net::Ipv4Addr> {
    let mut parts = text.trim_end_matches('.').split('.').map(|part| part.parse::<u8>().ok());
    let octets = [parts.next()??, parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then(|| octets.into())
}

/// What stands before the first colon, if that can be a scheme.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let letters = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (letters && scheme.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(scheme)
}

/// Schemes that carry a URL: `view-source:https://example.com`.
fn wrapped(text: &str) -> Option<&str> {
    let scheme = scheme_of(text)?;
    let rest = text.get(scheme.len() + 1..)?;
    if rest.starts_with(['/', '\\']) {
        return None;
    }
    let inner = scheme_of(rest)?;
    rest.get(inner.len()..).is_some_and(|rest| rest.starts_with("://")).then_some(rest)
}

/// The text with a scheme, where people leave it out, or `None` if there is no host in it.
fn complete(text: &str) -> Option<Cow<'_, str>> {
    let slashes = |text: &str| text.starts_with(['/', '\\']);
    if text.is_empty() {
        return None;
    }
    if slashes(text) {
        let second = text.get(1..).unwrap_or_default();
        return slashes(second).then(|| Cow::Owned(format!("http:{text}")));
    }
    let Some(scheme) = scheme_of(text) else { return complete_bare(text) };
    let rest = text.get(scheme.len() + 1..).unwrap_or_default();
    if rest.starts_with("//") {
        return Some(Cow::Borrowed(text));
    }
    if is_web(&scheme.to_ascii_lowercase()) {
        return Some(Cow::Borrowed(text));
    }
    // `localhost:8080/x` and `example.com:80`, not `data:1`.
    let port = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()) && !is_hostless(scheme)
    {
        return Some(Cow::Owned(format!("http://{text}")));
    }
    // `user:password@host/x`.
    let authority = text.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.contains('@') && !is_hostless(scheme) {
        return Some(Cow::Owned(format!("http://{text}")));
    }
    // `host:path` as `scp` writes it; a name without a dot is more likely a scheme.
    if scheme.contains('.') && !rest.is_empty() {
        return Some(Cow::Owned(format!("ssh://{scheme}/{}", rest.trim_start_matches('/'))));
    }
    None
}

/// Schemes whose URLs the standard takes apart itself; in lower case.
fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

/// Schemes that never have a host.
fn is_hostless(scheme: &str) -> bool {
    let hostless =
        ["about", "blob", "chrome", "data", "javascript", "mailto", "sms", "tel", "urn", "vbscript", "file"];
    hostless.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn complete_bare(text: &str) -> Option<Cow<'_, str>> {
    if text.starts_with(['.', '#', '?', '~', '&', '=']) {
        return None;
    }
    let authority = text.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // `git@github.com:owner/name`: after the colon stands no port.
    if let Some((user, host_and_path)) = text.split_once('@')
        && !user.contains(['/', ':'])
        && let Some((host, path)) = host_and_path.split_once(':')
        && !host.contains(['/', '[', '@'])
        && !path.starts_with(|c: char| c.is_ascii_digit())
    {
        return Some(Cow::Owned(format!("ssh://{user}@{host}/{}", path.trim_start_matches('/'))));
    }
    if authority.contains(char::is_whitespace) && !authority.contains(['\t', '\n', '\r']) {
        return None;
    }
    let named = authority.contains(['.', '@', '[', ':', '。', '．', '%'])
        || authority.eq_ignore_ascii_case("localhost");
    let number = authority.bytes().all(|b| b.is_ascii_digit()) && authority.len() > 5 || is_hex(authority);
    (named || number).then(|| Cow::Owned(format!("http://{text}")))
}

/// What stands between `//` and the path, as the common readings see it.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or(text, |(_, rest)| rest);
    rest.trim_start_matches(['/', '\\']).split(['/', '?', '#', '\\']).next().unwrap_or_default()
}

fn authority_host(text: &str) -> Option<&str> {
    let authority = authority(text);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.find(']') {
        Some(end) => host.get(..=end)?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

/// Whether programs disagree about the host of the text.
fn is_doubtful(text: &str) -> bool {
    let before_path = text.split(['?', '#']).next().unwrap_or_default();
    text.chars().any(|c| c.is_control() || c.is_whitespace() && c != ' ')
        || before_path.contains(['\\', ' '])
        || authority(text).matches('@').count() > 1
        || authority(text).contains(['$', '{', '}', '*', '<', '>'])
        || (["http:", "https:", "ws:", "wss:", "ftp:"].iter())
            .filter_map(|scheme| text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme)))
            .any(|scheme| {
                text.get(scheme.len()..)
                    .is_some_and(|rest| !rest.starts_with("//") || rest.starts_with("///"))
            })
        || {
            // `http://a.example;b@c.example` and `http://a.example:80#@c.example`.
            let tail = text.get(before_path.len()..).unwrap_or_default();
            before_path.matches('/').count() <= 2 && tail.split('/').next().unwrap_or_default().contains('@')
        }
}

fn default_port(scheme: &str) -> Option<u16> {
    Some(match scheme {
        "ssh" | "sftp" | "scp" | "git+ssh" | "ssh+git" | "rsync+ssh" => 22,
        "telnet" => 23,
        "smtp" => 25,
        "gopher" => 70,
        "git+http" => 80,
        "ldap" => 389,
        "git+https" => 443,
        "smb" | "cifs" => 445,
        "ldaps" => 636,
        "rsync" => 873,
        "mysql" | "mariadb" => 3306,
        "svn" => 3690,
        "postgres" | "postgresql" => 5432,
        "amqp" => 5672,
        "redis" => 6379,
        "git" => 9418,
        "mongodb" => 27_017,
        _ => return None,
    })
}
