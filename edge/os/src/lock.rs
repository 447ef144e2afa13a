//! The lock: packets of protected prefixes pass through the tunnel or not at all.
//!
//! Routes ([`crate::routes`]) make packets *find* the tunnel. They are consulted last, and others
//! write them too: a rule before ours, an address on a network of the attacker's choice (whose
//! broadcast address the local table sends out of it), a program that binds to an interface. So
//! `leak = "never"` is enforced a second time, at a point that every packet passes on any route: in
//! a table of nftables. It holds without a running process, and only [`remove`] opens it again.
//!
//! Outbound (after routing, for packets made here and for forwarded ones), a packet to a protected
//! address is dropped unless it leaves through the tunnel or carries our mark, as the encapsulated
//! ones do. That exempts packets and not an address: traffic of programs to the peer's own address
//! is protected like the rest (TunnelCrack calls the contrary "ServerIP").
//!
//! Inbound, outside the tunnel, a packet *to* an inner address is dropped, because the kernel would
//! accept it on any interface (CVE-2019-14899). So is a packet that claims to come *from* a
//! protected address. The longest prefix decides, as in a routing table.
//!
//! Four kinds pass even if everything is protected, because the outer network needs them: neighbour
//! discovery, the renewal of our own address by DHCP, and, inbound, IKE, ESP and routers' reports
//! about them, and the answers of the name servers that we ask where a peer is.

use crate::nftables;
use crate::routes::{MARK, Service};
use crate::{Error, Family, Prefix, program};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// Name of the table, in the family `inet`.
const TABLE: &str = "strata";

/// The table in the notation of nft(8).
pub const NAME: &str = "table inet strata";

/// The locked prefixes, with their exceptions. Packets with the mark of [`crate::routes`] may pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The TUN of protected packets.
    pub device: String,
    /// Prefixes that are reachable through the tunnel or not at all.
    pub protected: Vec<Prefix>,
    /// Prefixes inside them that are reachable as if there were no tunnel.
    pub bypassed: Vec<Prefix>,
    /// Services that are reachable as if there were no tunnel, whatever prefix they are in.
    pub services: Vec<Service>,
    /// Our inner addresses.
    pub inside: Vec<IpAddr>,
    /// UDP ports on which encapsulated packets arrive.
    pub ports: Vec<u16>,
    /// True if encapsulated packets also arrive without UDP.
    pub esp: bool,
    /// TCP port of listeners for encapsulated packets.
    pub stream_port: Option<u16>,
    /// Remote ends of outgoing TCP streams with encapsulated packets.
    pub streams: Vec<SocketAddr>,
    /// Name servers that we ask for the addresses of peers.
    pub resolvers: Vec<IpAddr>,
}

/// Packets that the lock has dropped since it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Packets that would have left outside the tunnel.
    pub leaving: u64,
    /// Packets from outside the tunnel to an inner address.
    pub to_inside: u64,
    /// Packets from outside the tunnel that claimed a protected source address.
    pub from_protected: u64,
}

impl Lock {
    /// Sets or replaces the lock, without a gap in between.
    pub fn set(&self) -> Result<(), Error> {
        require_nft()?;
        program::run("nft", &["-f", "-"], &self.rules()).map(drop)
    }

    fn rules(&self) -> String {
        let Self { device, .. } = self;
        let mut rules = format!(
            "add table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n\
             counter leaving {{ }}\ncounter to_inside {{ }}\ncounter from_protected {{ }}\n\
             chain vital {{\n\
             icmpv6 type {{ 133-137, 143 }} accept\n\
             udp sport 68 udp dport 67 accept\nudp sport 67 udp dport 68 accept\n\
             udp sport 546 udp dport 547 accept\nudp sport 547 udp dport 546 accept\n\
             }}\n\
             chain leaving {{\ntype filter hook postrouting priority filter\n\
             oifname {{ \"lo\", \"{device}\" }} accept\nmeta mark {MARK} accept\njump vital\n"
        );
        self.decide(&mut rules, "daddr", "leaving");
        rules.push_str("}\nchain arrived {\n");
        let _ = writeln!(rules, "iifname {{ \"lo\", \"{device}\" }} accept");
        for address in &self.inside {
            let word = word(Family::from_address(*address));
            let _ = writeln!(rules, "{word} daddr {address} counter name to_inside drop");
        }
        rules.push_str("jump vital\n");
        for port in &self.ports {
            let _ = writeln!(rules, "udp dport {port} accept");
        }
        if self.esp {
            rules.push_str("meta l4proto esp accept\n");
        }
        if let Some(port) = self.stream_port {
            let _ = writeln!(rules, "tcp dport {port} accept");
        }
        for end in &self.streams {
            let (word, ip, port) = (word(Family::from_address(end.ip())), end.ip(), end.port());
            let _ = writeln!(rules, "{word} saddr {ip} tcp sport {port} accept");
        }
        for server in &self.resolvers {
            let word = word(Family::from_address(*server));
            let _ = writeln!(rules, "{word} saddr {server} udp sport 53 accept");
        }
        // IPv6 is reassembled only behind this hook, and only a first fragment has ports.
        rules.push_str(
            "frag frag-off > 0 meta l4proto udp accept\n\
             icmp type { 3, 11, 12 } accept\nicmpv6 type { 1, 2, 3, 4 } accept\n",
        );
        self.decide(&mut rules, "saddr", "from_protected");
        rules.push_str("}\n");
        for hook in ["input", "forward"] {
            let _ = writeln!(
                rules,
                "chain {hook} {{\ntype filter hook {hook} priority filter\njump arrived\n}}"
            );
        }
        rules.push_str("}\n");
        rules
    }

    /// Writes one line for each prefix, the longest first: the first match decides.
    fn decide(&self, rules: &mut String, address: &str, counter: &str) {
        let protected = self.protected.iter().map(|prefix| (prefix, true));
        let bypassed = self.bypassed.iter().map(|prefix| (prefix, false));
        let ports = if address == "daddr" { "dport" } else { "sport" };
        for service in &self.services {
            let (prefix, protocol) = (service.prefix, service.protocol);
            let ports = service.ports.as_ref().map_or_else(String::new, |range| {
                format!("th {ports} {}-{} ", range.start(), range.end())
            });
            let word = word(prefix.family());
            let _ = writeln!(
                rules,
                "{word} {address} {prefix} meta l4proto {protocol} {ports}accept"
            );
        }
        let mut prefixes: Vec<_> = protected.chain(bypassed).collect();
        prefixes.sort_by_key(|(prefix, protected)| (u8::MAX - prefix.length, !protected));
        for (prefix, protected) in prefixes {
            let word = word(prefix.family());
            let verdict = match protected {
                true => format!("counter name {counter} drop"),
                false => "accept".to_owned(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(rules, "{word} {address} {prefix} {verdict}");
        }
    }
}

/// Removes the lock, ours or a predecessor's. Without `nft` there can be none.
pub fn remove() -> Result<(), Error> {
    if !is_possible() {
        return Ok(());
    }
    let rules = format!("add table inet {TABLE}\ndelete table inet {TABLE}\n");
    program::run("nft", &["-f", "-"], &rules).map(drop)
}

/// Returns the table with its chains as nft lists it, without counters and values that packets add;
/// `None` if there is none. Equal listings mean equal behaviour.
pub fn listing() -> Result<Option<String>, Error> {
    if !is_possible() || !is_set()? {
        return Ok(None);
    }
    let what = ["--stateless", "--terse", "list", "table", "inet", TABLE];
    program::run("nft", &what, "").map(Some)
}

/// Returns true if a notification of nftables is about the table.
pub(crate) fn is_changed_by(message: &[u8]) -> bool {
    nftables::is_about(message, TABLE)
}

fn is_set() -> Result<bool, Error> {
    let tables = program::run("nft", &["list", "tables", "inet"], "")?;
    Ok(tables.lines().any(|line| line == NAME))
}

/// Returns the packets that the lock has dropped; `None` if nothing is locked.
pub fn stopped() -> Result<Option<Stopped>, Error> {
    require_nft()?;
    if !is_set()? {
        return Ok(None);
    }
    let listing = program::run("nft", &["list", "counters", "table", "inet", TABLE], "")?;
    Ok(Some(Stopped {
        leaving: packets(&listing, "leaving"),
        to_inside: packets(&listing, "to_inside"),
        from_protected: packets(&listing, "from_protected"),
    }))
}

/// Finds a counter in the listing, where each is `counter NAME { packets N bytes M }` over several
/// lines.
fn packets(listing: &str, counter: &str) -> u64 {
    let mut words = listing.split_whitespace();
    let number = words
        .find(|word| *word == counter)
        .and_then(|_| words.nth(2));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns true if this machine can lock: the program `nft` is installed.
pub fn is_possible() -> bool {
    program::exists("nft")
}

fn require_nft() -> Result<(), Error> {
    match is_possible() {
        true => Ok(()),
        false => Err(Error::NoFilter),
    }
}

/// Returns the name of a family's header in nftables.
const fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_service_is_asked_first_then_the_longest_prefix_and_of_two_equal_ones_the_protected() {
        let lock = Lock {
            protected: prefixes(&["10.8.0.0/16", "0.0.0.0/0", "10.8.9.0/24"]),
            bypassed: prefixes(&["10.0.0.0/8", "10.8.10.0/24", "10.8.9.0/24"]),
            services: vec![
                Service {
                    prefix: "10.8.0.0/16".parse().unwrap(),
                    protocol: 6,
                    ports: Some(22..=23),
                },
                Service {
                    prefix: "fd00::/16".parse().unwrap(),
                    protocol: 58,
                    ports: None,
                },
            ],
            ..Lock::default()
        };
        let mut rules = String::new();
        lock.decide(&mut rules, "daddr", "c");
        let expected = "\
ip daddr 10.8.0.0/16 meta l4proto 6 th dport 22-23 accept
ip6 daddr fd00::/16 meta l4proto 58 accept
ip daddr 10.8.9.0/24 counter name c drop
ip daddr 10.8.10.0/24 accept
ip daddr 10.8.9.0/24 accept
ip daddr 10.8.0.0/16 counter name c drop
ip daddr 10.0.0.0/8 accept
ip daddr 0.0.0.0/0 counter name c drop
";
        assert_eq!(rules, expected);
    }

    #[test]
    fn counters_are_read_by_their_names() {
        let listing = "table inet strata {\n\tcounter leaving {\n\t\tpackets 7 bytes 420\n\t}\n\
                       \tcounter to_inside {\n\t\tpackets 12 bytes 1\n\t}\n}\n";
        assert_eq!(packets(listing, "leaving"), 7);
        assert_eq!(packets(listing, "to_inside"), 12);
        assert_eq!(packets(listing, "from_protected"), 0);
    }
}
