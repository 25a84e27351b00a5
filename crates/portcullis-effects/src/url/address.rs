//! What addresses and names say about where a machine is.
//!
//! Ranges: the special-purpose address registries for IPv4 and IPv6 (RFC 6890), shared address space (RFC 6598),
//! translation of IPv4 in IPv6 (RFC 6052, 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214).

use std::net::{Ipv4Addr, Ipv6Addr};

/// What is known of a host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub(super) loopback: bool,
    pub(super) private: bool,
    pub(super) metadata: bool,
    pub(super) address: bool,
}

impl Facts {
    /// What either says.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            loopback: self.loopback || other.loopback,
            private: self.private || other.private,
            metadata: self.metadata || other.metadata,
            address: self.address || other.address,
        }
    }
}

/// Where clouds tell machines their credentials.
const METADATA_V4: [[u8; 4]; 8] = [
    [169, 254, 169, 254],
    // Containers and pods at AWS.
    [169, 254, 170, 2],
    [169, 254, 170, 23],
    // Alibaba, Tencent, Scaleway, Oracle, Azure's wire server.
    [100, 100, 100, 200],
    [169, 254, 0, 23],
    [169, 254, 42, 42],
    [192, 0, 0, 192],
    [168, 63, 129, 16],
];

const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0023),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
];

const METADATA_NAMES: [&str; 7] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
];

/// Names that the hosts file of common systems gives to this machine.
const LOOPBACK_NAMES: [&str; 8] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "localhost4.localdomain4",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];

/// Top-level names that no public name server knows.
const PRIVATE_DOMAINS: [&str; 10] = [
    "internal",
    "local",
    "localdomain",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "home.arpa",
    "in-addr.arpa",
];

pub(super) fn of_v4(v4: Ipv4Addr) -> Facts {
    let [a, b, c, _] = v4.octets();
    let metadata = METADATA_V4.contains(&v4.octets());
    let private = match a {
        0 => !v4.is_unspecified(),
        10 => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b, c) == (0, 0),
        198 => matches!(b, 18 | 19),
        // Multicast, reserved and broadcast addresses do not leave the network either.
        _ => a >= 224,
    };
    // Connecting to 0.0.0.0 reaches this machine.
    Facts { loopback: a == 127 || v4.is_unspecified(), private: private || metadata, metadata, address: true }
}

pub(super) fn of_v6(v6: Ipv6Addr) -> Facts {
    let metadata = METADATA_V6.contains(&v6);
    let first = v6.segments().first().copied().unwrap_or_default();
    let private = first & 0xfe00 == 0xfc00 || first & 0xff80 == 0xfe80 || first & 0xff00 == 0xff00;
    let loopback = v6.is_loopback() || v6.is_unspecified();
    let own = Facts { loopback, private: private || metadata, metadata, address: true };
    if loopback {
        return own;
    }
    embedded(v6).into_iter().flatten().map(of_v4).fold(own, Facts::or)
}

/// The IPv4 addresses that an IPv6 address stands for or goes through.
fn embedded(v6: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match v6.segments() {
        // Mapped, compatible, translated.
        [0, 0, 0, 0, 0, 0xffff | 0, g, h] | [0, 0, 0, 0, 0xffff, 0, g, h] => [v4(g, h), None],
        [0x64, 0xff9b, 0 | 1, .., g, h] => [v4(g, h), None],
        [0x2002, b, c, ..] => [v4(b, c), None],
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, c, d, .., g, h] => [v4(c, d), v4(!g, !h)],
        [.., 0 | 0x200, 0x5efe, g, h] => [v4(g, h), None],
        _ => [None, None],
    }
}

pub(super) fn of_name(name: &str) -> Facts {
    let in_domain = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let loopback = LOOPBACK_NAMES.contains(&name) || in_domain("localhost");
    let metadata = METADATA_NAMES.contains(&name);
    // A single word is looked up in the network's own domain.
    let private =
        !loopback && (!name.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| in_domain(domain)));
    Facts { loopback, private: private || metadata, metadata, address: false }
}
