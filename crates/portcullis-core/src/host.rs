//! Hosts as profiles name them, and as a request names one.
//!
//! Both are brought to one form first: lower case, IDNA's ASCII form, no dot at the end. A name whose last label is a
//! number is none, since resolvers take it for an address in an old spelling.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use idna::AsciiDenyList;

/// Longest name, and longest label of one, in bytes (RFC 1035, 2.3.4).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// Longest text of a rule, in bytes: a name of another script is longer than its ASCII form.
const RULE_BYTES_MAX: usize = 1024;
/// Ports that are meant where none is named: those of HTTP and HTTPS.
const PORTS: [u16; 2] = [80, 443];
/// What lets a name have addresses of private networks.
const PRIVATE: &str = "private:";

/// A host that somebody wants to reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, in its one form.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Which hosts of a profile a request may reach, and at which addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    host: RuleHost,
    port: Option<u16>,
    private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RuleHost {
    This(Host),
    /// Everything below this name, itself aside.
    Below(String),
}

/// Which addresses a name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Those of the public internet.
    Public,
    /// Those of private networks and of this machine too.
    Private,
    /// This machine's loopback, and it alone: the rule names `localhost`.
    Loopback,
    /// The address that the rule names.
    Literal,
}

impl Host {
    /// Reads a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// # Errors
    /// It is neither: what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            let address = address.ok_or_else(|| format!("`{text}` is no IPv6 address in brackets"))?;
            return Ok(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return match address {
                IpAddr::V4(_) => Ok(Self::Address(address)),
                IpAddr::V6(_) => Err(format!("`{text}`: put an IPv6 address in brackets")),
            };
        }
        name(text).map(Self::Name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl HostRule {
    /// Reads a rule: `name`, `*.name`, an address, each also with `:port`, and a name also behind `private:`.
    ///
    /// # Errors
    /// It is none: what is wrong, and what can be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("`{text}`: {what}"));
        if text.len() > RULE_BYTES_MAX {
            return Err(format!("a host of more than {RULE_BYTES_MAX} bytes"));
        }
        if text.contains(['/', '@', '?', '#']) {
            return wrong("give a host, such as `example.org` or `example.org:8443`, not a URL");
        }
        let (private, rest) = match text.strip_prefix(PRIVATE) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = split_port(rest).map_err(|why| format!("`{text}`: {why}"))?;
        let host = match host.strip_prefix("*.") {
            Some(below) => RuleHost::Below(name(below)?),
            None if host == "*" => return wrong("name the hosts; `*.example.org` stands for all below one"),
            None => RuleHost::This(Host::parse(host)?),
        };
        match &host {
            RuleHost::This(Host::Address(_)) if private => {
                wrong("an address that is named is reached without `private:`")
            }
            RuleHost::This(Host::Address(address)) if address.is_unspecified() || address.is_multicast() => {
                wrong("this is the address of no host")
            }
            _ => Ok(Self { host, port, private }),
        }
    }

    /// Which addresses a request for this host and port may lead to; nothing where the rule is not about it.
    #[must_use]
    pub fn reach(&self, host: &Host, port: u16) -> Option<Reach> {
        let is_port = self.port.map_or(PORTS.contains(&port), |own| own == port);
        let is_host = match (&self.host, host) {
            (RuleHost::This(own), host) => own == host,
            (RuleHost::Below(own), Host::Name(name)) => {
                name.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (RuleHost::Below(_), Host::Address(_)) => false,
        };
        (is_port && is_host).then(|| match &self.host {
            RuleHost::This(Host::Address(_)) => Reach::Literal,
            RuleHost::This(Host::Name(name)) if name == "localhost" => Reach::Loopback,
            _ if self.private => Reach::Private,
            _ => Reach::Public,
        })
    }

    /// The host that it names, where it names one and not those below it.
    #[must_use]
    pub fn host(&self) -> Option<&Host> {
        match &self.host {
            RuleHost::This(host) => Some(host),
            RuleHost::Below(_) => None,
        }
    }
}

/// Splits a port off. Without one there is none; brackets belong to the host.
///
/// # Errors
/// What stands behind the colon is no port.
pub fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => return Ok((text, None)),
    };
    if host.contains(':') && !host.starts_with('[') {
        return Err("put an IPv6 address in brackets".to_owned());
    }
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port @ 1..) if is_number => Ok((host, Some(port))),
        _ => Err(format!("`{port}` is no port; ports are 1 to 65535")),
    }
}

/// The one form of a name.
fn name(text: &str) -> Result<String, String> {
    let wrong = |what: &str| format!("`{text}` is no host name: {what}");
    let bare = text.strip_suffix('.').unwrap_or(text);
    if bare.len() > RULE_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let name = idna::domain_to_ascii_cow(bare.as_bytes(), AsciiDenyList::URL)
        .map_err(|_| wrong("it has characters that names do not have"))?;
    if name.len() > NAME_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(known)
    };
    if !name.split('.').all(is_label) {
        return Err(wrong("its labels have 1 to 63 letters, digits, `-` and `_`"));
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").map(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if hexadecimal.unwrap_or(last.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(wrong("it ends with a number; write an address as `192.0.2.1`"));
    }
    Ok(name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reach(rule: &str, host: &str, port: u16) -> Option<Reach> {
        HostRule::parse(rule).unwrap().reach(&Host::parse(host).unwrap(), port)
    }

    #[test]
    fn a_name_stands_for_itself_and_the_ports_of_the_web() {
        for (host, port) in [("pypi.test", 80), ("PyPI.Test.", 443)] {
            assert_eq!(reach("pypi.test", host, port), Some(Reach::Public), "{host}:{port}");
        }
        for (host, port) in [
            ("pypi.test", 8080),
            ("files.pypi.test", 443),
            ("notpypi.test", 443),
            ("pypi.test.evil.test", 443),
        ] {
            assert_eq!(reach("pypi.test", host, port), None, "{host}:{port}");
        }
        assert_eq!(reach("git.test:9418", "git.test", 9418), Some(Reach::Public));
        assert_eq!(reach("git.test:9418", "git.test", 443), None);
    }

    #[test]
    fn a_star_stands_for_everything_below_a_name() {
        for host in ["a.files.test", "a.b.files.test", "A.FILES.TEST."] {
            assert_eq!(reach("*.files.test", host, 443), Some(Reach::Public), "{host}");
        }
        for host in ["files.test", "afiles.test", "files.test.evil.test"] {
            assert_eq!(reach("*.files.test", host, 443), None, "{host}");
        }
        assert_eq!(reach("*.files.test:8443", "a.files.test", 8443), Some(Reach::Public));
        assert_eq!(reach("*.files.test:8443", "a.files.test", 443), None);
    }

    #[test]
    fn addresses_private_names_and_the_loopback_are_named_literally() {
        assert_eq!(reach("127.0.0.1:8000", "127.0.0.1", 8000), Some(Reach::Literal));
        assert_eq!(reach("[::1]:8000", "[0:0::1]", 8000), Some(Reach::Literal));
        assert_eq!(reach("127.0.0.1:8000", "[::ffff:127.0.0.1]", 8000), None);
        assert_eq!(reach("private:registry.test:8080", "registry.test", 8080), Some(Reach::Private));
        assert_eq!(reach("private:*.corp.test", "a.corp.test", 443), Some(Reach::Private));
        assert_eq!(reach("localhost:8000", "LOCALHOST.", 8000), Some(Reach::Loopback));
        assert_eq!(reach("*.localhost", "a.localhost", 80), Some(Reach::Public));
    }

    #[test]
    fn other_scripts_have_one_form() {
        assert_eq!(reach("bücher.test", "xn--bcher-kva.test", 443), Some(Reach::Public));
        assert_eq!(reach("*.BÜCHER.test", "a.xn--bcher-kva.test", 443), Some(Reach::Public));
        assert_eq!(reach("xn--bcher-kva.test", "XN--BCHER-KVA.test", 443), Some(Reach::Public));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for rule in [
            "",
            "*",
            "*.",
            "*.*.test",
            "a.*.test",
            "https://a.test",
            "a.test/path",
            "user@a.test",
            "a.test:0",
            "a.test:65536",
            "a.test:",
            "a.test:+80",
            ":80",
            "::1",
            "::1:80",
            "[::1",
            "[::1%eth0]:80",
            "0.0.0.0",
            "[::]:80",
            "224.0.0.1",
            "private:127.0.0.1",
            "private:",
            "a..test",
            ".a.test",
            "a b.test",
            "127.1",
            "0x7f.1",
            "2130706433",
            "a.0x7f",
            "10.0.0.0/8",
            "a%2etest",
            "xn--a.test",
            "a.test:80:90",
        ] {
            assert!(HostRule::parse(rule).is_err(), "`{rule}` is a rule");
        }
        assert!(HostRule::parse(&format!("{}.test", "a".repeat(64))).is_err());
        assert!(HostRule::parse(&"a.".repeat(200)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_host_has_two_forms(text in "\\PC{0,40}") {
            let _rule = HostRule::parse(&text);
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()).unwrap(), host);
            }
        }
    }
}
