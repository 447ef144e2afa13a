//! The lock: packets of protected prefixes pass through the tunnel or not at all.
//!
//! Routes ([`crate::routes`]) say how packets *find* the tunnel. They are asked last, and others
//! write them as well: a rule before ours, an address on a network of the attacker's choice (whose
//! broadcast address the local table sends out of it), a program that binds to an interface. So
//! what is promised by `leak = "never"` is said a second time, where every packet passes whichever
//! way it found: in a table of nftables. Nobody has to be alive for it to hold, and only
//! [`remove`] opens it again.
//!
//! On its way out (after routing, for packets made here and for those forwarded) a packet to a
//! protected address is dropped unless it leaves through the tunnel or carries our mark, which the
//! encapsulated ones do. That exempts packets and not an address: what a program sends to the
//! peer's own address is protected like the rest (TunnelCrack calls the contrary "ServerIP").
//!
//! On its way in, outside the tunnel, a packet *to* an address inside is dropped, for the kernel
//! would take it on any interface (CVE-2019-14899), and so is one that claims to come *from* a
//! protected address. The longest prefix decides, as in a routing table.
//!
//! Three kinds pass even where everything is protected, because without them there is no outer
//! network: neighbour discovery, the renewal of our own address by DHCP, and, inwards, IKE, ESP
//! and what routers report about them.

use crate::nftables;
use crate::routes::{MARK, Service};
use crate::{Error, Family, Prefix, program};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// Name of the table, in the family `inet`.
const TABLE: &str = "strata";

/// The table, as nft(8) names it.
pub const NAME: &str = "table inet strata";

/// What is locked. The mark of packets that may pass is that of [`crate::routes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// The TUN through which protected packets come and go.
    pub device: String,
    /// Prefixes that are reached through it or not at all.
    pub protected: Vec<Prefix>,
    /// Prefixes within them that are reached as if there were no tunnel.
    pub bypassed: Vec<Prefix>,
    /// Services that are, wherever they are.
    pub services: Vec<Service>,
    /// Our addresses inside.
    pub inside: Vec<IpAddr>,
    /// UDP ports at which encapsulated packets arrive.
    pub ports: Vec<u16>,
    /// Whether they arrive without UDP as well.
    pub esp: bool,
    /// The TCP port at which they arrive in streams.
    pub stream_port: Option<u16>,
    /// The far ends of streams of our own, in which they arrive as well.
    pub streams: Vec<SocketAddr>,
}

/// Packets that the lock has dropped since it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// They were about to leave outside the tunnel.
    pub leaving: u64,
    /// They came from outside the tunnel and were for an address inside.
    pub to_inside: u64,
    /// They came from outside the tunnel and claimed to be from a protected address.
    pub from_protected: u64,
}

impl Lock {
    /// Locks, or changes what is locked; there is no moment in between at which anything is open.
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
            let word = word(Family::of(*address));
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
            let (word, ip, port) = (word(Family::of(end.ip())), end.ip(), end.port());
            let _ = writeln!(rules, "{word} saddr {ip} tcp sport {port} accept");
        }
        // IPv6 is put together only behind this point, and only a first fragment has ports.
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

    /// One line for each prefix, the longest first: the first that fits decides.
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

/// Opens what was locked, by us or by a predecessor. Without `nft` nothing can have been.
pub fn remove() -> Result<(), Error> {
    if !is_possible() {
        return Ok(());
    }
    let rules = format!("add table inet {TABLE}\ndelete table inet {TABLE}\n");
    program::run("nft", &["-f", "-"], &rules).map(drop)
}

/// The table with its chains as nft writes it, without counts and what packets add to it; `None` if there is none. Two
/// that are equal do the same.
pub fn listing() -> Result<Option<String>, Error> {
    if !is_possible() || !is_set()? {
        return Ok(None);
    }
    let what = ["--stateless", "--terse", "list", "table", "inet", TABLE];
    program::run("nft", &what, "").map(Some)
}

/// Whether a notification of nftables is about the table.
pub(crate) fn is_changed_by(message: &[u8]) -> bool {
    nftables::is_about(message, TABLE)
}

fn is_set() -> Result<bool, Error> {
    let tables = program::run("nft", &["list", "tables", "inet"], "")?;
    Ok(tables.lines().any(|line| line == NAME))
}

/// What the lock has dropped; `None` if nothing is locked.
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

/// The listing has `counter NAME { packets N bytes M }` for each, over several lines.
fn packets(listing: &str, counter: &str) -> u64 {
    let mut words = listing.split_whitespace();
    let number = words
        .find(|word| *word == counter)
        .and_then(|_| words.nth(2));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Whether this machine can lock: the program that filters is there.
pub fn is_possible() -> bool {
    program::exists("nft")
}

fn require_nft() -> Result<(), Error> {
    match is_possible() {
        true => Ok(()),
        false => Err(Error::NoFilter),
    }
}

/// What nftables calls a family's header.
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
