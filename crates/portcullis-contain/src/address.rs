//! Which addresses a name may lead to.
//!
//! From IANA's registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890 and its successors), with the
//! addresses at which clouds give credentials to whoever asks. A name is in the hands of whoever runs its name server,
//! so that a permitted name must not become a way to what is inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portcullis_core::host::Reach;

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One of the public internet.
    Public,
    /// One of a private network, or of this machine: in words.
    Private(&'static str),
    /// One that no name leads to, whatever the profile says of the name: in words.
    Never(&'static str),
}

use Kind::{Never, Private, Public};

/// Where clouds answer questions about the machine, with its credentials.
const METADATA_V4: &[Ipv4Addr] = &[
    // Most clouds; containers of AWS; Alibaba; Oracle; Azure's agent, which has a public address.
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: &[Ipv6Addr] = &[
    // AWS, its pods, Google.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// IPv4: start, length of the prefix, what it is. The first that fits counts.
const V4: &[(Ipv4Addr, u32, Kind)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, Never("an address of no host (RFC 791)")),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private("an address of a private network (RFC 1918)")),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Private("an address behind a carrier's translation (RFC 6598)")),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Private("this machine's loopback (RFC 1122)")),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Never("a link-local address (RFC 3927)")),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private("an address of a private network (RFC 1918)")),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Never("an address of protocols (RFC 6890)")),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Never("an address for documentation (RFC 5737)")),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Never("an address of relays (RFC 7526)")),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private("an address of a private network (RFC 1918)")),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Private("an address for benchmarks (RFC 2544)")),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Never("an address for documentation (RFC 5737)")),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Never("an address for documentation (RFC 5737)")),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Never("a multicast address (RFC 5771)")),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Never("a reserved address (RFC 1112)")),
    (Ipv4Addr::new(0, 0, 0, 0), 0, Public),
];

/// IPv6, likewise. Only 2000::/3 is given out (RFC 4291), so all else is none that a name has.
const V6: &[(Ipv6Addr, u32, Kind)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Never("an address of no host (RFC 4291)")),
    (Ipv6Addr::LOCALHOST, 128, Private("this machine's loopback (RFC 4291)")),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private("an address of a private network (RFC 4193)")),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Never("a link-local address (RFC 4291)")),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Never("a multicast address (RFC 4291)")),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Never("an address of protocols (RFC 2928)")),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Never("an address for documentation (RFC 3849)")),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Never("an address for documentation (RFC 9637)")),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public),
    (Ipv6Addr::UNSPECIFIED, 0, Never("a reserved address (RFC 4291)")),
];

/// IPv6 addresses that stand for an IPv4 address: start, length of the prefix, and how many bits the IPv4 address is
/// from the right. Mapped, translated, NAT64 (RFC 6052 and 2765), 6to4 (RFC 3056), and the old compatible form.
const EMBEDDED: &[(Ipv6Addr, u32, u32)] = &[
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 0),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, 0),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 0),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 80),
    (Ipv6Addr::UNSPECIFIED, 96, 0),
];

/// Why a name that may reach so far may not lead to this address; nothing where it may.
#[must_use]
pub fn refusal(reach: Reach, address: IpAddr) -> Option<&'static str> {
    match (reach, kind(address)) {
        (Reach::Literal, _) => None,
        (Reach::Loopback, _) => (!address.is_loopback()).then_some("not this machine's loopback"),
        (_, Public) | (Reach::Private, Private(_)) => None,
        (_, Private(what) | Never(what)) => Some(what),
    }
}

/// Whether `private:` before the name would let it lead there.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn is_private(address: IpAddr) -> bool {
    matches!(kind(address), Private(_))
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Kind {
    if METADATA_V4.contains(&address) {
        return Never("the address of a cloud's metadata");
    }
    let is_in = |start: Ipv4Addr, length: u32| {
        (address.to_bits() ^ start.to_bits()).checked_shr(32 - length).unwrap_or(0) == 0
    };
    let found = V4.iter().find(|(start, length, _)| is_in(*start, *length));
    found.map_or(Never("an unknown address"), |(_, _, kind)| *kind)
}

fn kind_of_v6(address: Ipv6Addr) -> Kind {
    if METADATA_V6.contains(&address) {
        return Never("the address of a cloud's metadata");
    }
    let is_in = |start: Ipv6Addr, length: u32| {
        (address.to_bits() ^ start.to_bits()).checked_shr(128 - length).unwrap_or(0) == 0
    };
    let special = address.is_unspecified() || address.is_loopback();
    let embedded = EMBEDDED.iter().find(|(start, length, _)| is_in(*start, *length) && !special);
    if let Some((_, _, right)) = embedded {
        let bits = (address.to_bits() >> right) & u128::from(u32::MAX);
        return u32::try_from(bits).map_or(Never("an unknown address"), |bits| kind_of_v4(bits.into()));
    }
    let found = V6.iter().find(|(start, length, _)| is_in(*start, *length));
    found.map_or(Never("an unknown address"), |(_, _, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reach: Reach, address: &str) -> bool {
        refusal(reach, address.parse().unwrap()).is_some()
    }

    #[test]
    fn a_public_name_leads_to_public_addresses_only() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(!refused(Reach::Public, address), "{address}");
        }
        for address in PRIVATE.iter().chain(NEVER) {
            assert!(refused(Reach::Public, address), "{address}");
        }
    }

    const PRIVATE: &[&str] = &[
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "::1",
        "fc00::",
        "fdff:ffff::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::1",
        "2002:7f00:1::",
        "::10.0.0.1",
        "::ffff:0:192.168.0.1",
    ];
    const NEVER: &[&str] = &[
        "0.0.0.0",
        "0.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "192.0.2.1",
        "192.88.99.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:2::1",
        "2001:20::1",
        "2001:db8::1",
        "3fff::1",
        "100::1",
        "64:ff9b:1::1",
        "5f00::1",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "::ffff:0.0.0.0",
        "4000::1",
    ];

    #[test]
    fn a_private_name_leads_to_private_networks_and_never_to_metadata() {
        for address in PRIVATE {
            assert!(!refused(Reach::Private, address), "{address}");
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in NEVER {
            assert!(refused(Reach::Private, address), "{address}");
            assert!(refused(Reach::Loopback, address), "{address}");
            assert!(!refused(Reach::Literal, address), "{address}");
        }
        assert!(!refused(Reach::Loopback, "127.0.0.1") && !refused(Reach::Loopback, "::1"));
        assert!(refused(Reach::Loopback, "10.0.0.1") && refused(Reach::Loopback, "1.1.1.1"));
    }
}
