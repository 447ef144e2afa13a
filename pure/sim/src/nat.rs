//! A NAT: one outer address for the hosts behind it (RFC 4787).
//!
//! An inner socket has one outer port for all its peers (endpoint-independent mapping), kept alive
//! by outgoing packets. Incoming packets pass only from peers that the socket has sent to (address
//! and port-dependent filtering). A mapping expires after too long a silence. [`Nat::rebind`]
//! removes all mappings, like the restart of a home router, and later packets get other ports.

use model::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::{checksum, ip, tcp, udp};

/// New mappings get the ports above this one.
const FIRST_PORT: u16 = 20_000;

/// A NAT; see the module's documentation.
#[derive(Clone, Debug)]
pub struct Nat {
    outer: Ipv4Addr,
    lifetime: Duration,
    mappings: BTreeMap<Inner, Mapping>,
    next_port: u16,
    counters: NatCounters,
}

/// Counters of a NAT, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatCounters {
    /// Outgoing packets translated.
    pub outward: u64,
    /// Incoming packets translated.
    pub inward: u64,
    /// Incoming packets dropped: no mapping, or a peer that the mapping has not sent to.
    pub uninvited: u64,
    /// Packets dropped because they have no ports to translate.
    pub untranslatable: u64,
}

/// A protocol and a socket behind the NAT.
type Inner = (u8, SocketAddrV4);

#[derive(Clone, Debug)]
struct Mapping {
    port: u16,
    used: Instant,
    peers: BTreeSet<SocketAddrV4>,
}

impl Nat {
    /// Creates a NAT with an outer address. Mappings live for `lifetime` after the last outgoing
    /// packet.
    pub fn new(outer: Ipv4Addr, lifetime: Duration) -> Self {
        Self {
            outer,
            lifetime,
            mappings: BTreeMap::new(),
            next_port: FIRST_PORT,
            counters: NatCounters::default(),
        }
    }

    /// Removes every mapping. New ones get ports that were not used before.
    pub fn rebind(&mut self) {
        self.mappings.clear();
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &NatCounters {
        &self.counters
    }

    /// Translates the source of an outgoing packet. Returns `false` to drop it.
    pub(crate) fn outward(&mut self, packet: &mut [u8], now: Instant) -> bool {
        let Some(Ends {
            protocol,
            source,
            destination,
        }) = Ends::from_packet(packet)
        else {
            self.counters.untranslatable += 1;
            return false;
        };
        self.expire(now);
        let mapping = self.mappings.entry((protocol, source)).or_insert_with(|| {
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            Mapping {
                port: self.next_port,
                used: now,
                peers: BTreeSet::new(),
            }
        });
        mapping.used = now;
        mapping.peers.insert(destination);
        let outer = SocketAddrV4::new(self.outer, mapping.port);
        rewrite(packet, Field::Source, outer);
        self.counters.outward += 1;
        true
    }

    /// Translates the destination of an incoming packet. Returns `false` to drop it.
    pub(crate) fn inward(&mut self, packet: &mut [u8], now: Instant) -> bool {
        let Some(Ends {
            protocol,
            source,
            destination,
        }) = Ends::from_packet(packet)
        else {
            self.counters.untranslatable += 1;
            return false;
        };
        self.expire(now);
        let mut mappings = self.mappings.iter();
        let invited = mappings.find(|((of, _), mapping)| {
            let ours = *destination.ip() == self.outer && mapping.port == destination.port();
            *of == protocol && ours && mapping.peers.contains(&source)
        });
        let Some(((_, inner), _)) = invited else {
            self.counters.uninvited += 1;
            return false;
        };
        rewrite(packet, Field::Destination, *inner);
        self.counters.inward += 1;
        true
    }

    fn expire(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.mappings
            .retain(|_, mapping| now - mapping.used < lifetime);
    }
}

/// Protocol and sockets of a packet.
struct Ends {
    protocol: u8,
    source: SocketAddrV4,
    destination: SocketAddrV4,
}

impl Ends {
    fn from_packet(packet: &[u8]) -> Option<Self> {
        let header = ip::Header::parse(packet).ok()?;
        let flow = header.flow();
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (flow.source, flow.destination) else {
            return None;
        };
        let known = [tcp::PROTOCOL, udp::PROTOCOL].contains(&flow.protocol) && flow.ports_visible;
        known.then(|| Self {
            protocol: flow.protocol,
            source: SocketAddrV4::new(source, flow.source_port),
            destination: SocketAddrV4::new(destination, flow.destination_port),
        })
    }
}

#[derive(Clone, Copy)]
enum Field {
    Source,
    Destination,
}

/// Writes another socket into a packet and updates both checksums.
fn rewrite(packet: &mut [u8], field: Field, to: SocketAddrV4) {
    const ADDRESSES_AT: usize = 12;
    const CHECKSUM_AT: usize = 10;
    let second = match field {
        Field::Source => 0,
        Field::Destination => 1,
    };
    let Ok(header) = ip::Header::parse(packet) else {
        return;
    };
    let (transport, protocol) = (header.header_len(), header.protocol());
    let transport_sum = checksum::offset(protocol).map(|at| transport + at);
    let [a, b, c, d] = to.ip().octets();
    let address_at = ADDRESSES_AT + 4 * second;
    let words = [
        (address_at, [a, b], true),
        (address_at + 2, [c, d], true),
        (transport + 2 * second, to.port().to_be_bytes(), false),
    ];
    for (at, new, in_header) in words {
        let old = word(packet, at);
        packet[at..at + 2].copy_from_slice(&new);
        let header_sum = in_header.then_some(CHECKSUM_AT);
        for sum_at in header_sum.into_iter().chain(transport_sum) {
            let sum = word(packet, sum_at);
            // A UDP datagram without a checksum keeps none.
            if sum != 0 || protocol != udp::PROTOCOL || sum_at == CHECKSUM_AT {
                let updated = checksum::updated(sum, old, u16::from_be_bytes(new));
                packet[sum_at..sum_at + 2].copy_from_slice(&updated.to_be_bytes());
            }
        }
    }
}

fn word(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram;

    const OUTER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
    const LIFETIME: Duration = Duration::from_secs(30);

    fn socket(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    /// Sends a datagram out from `inner`. Returns the socket that the peer sees.
    fn out(nat: &mut Nat, inner: &str, peer: &str, now: Instant) -> SocketAddrV4 {
        let mut packet = datagram::udp(socket(inner), socket(peer), b"out");
        assert!(nat.outward(&mut packet, now));
        let header = ip::Header::parse(&packet).unwrap();
        assert!(header.checksum_is_right());
        Ends::from_packet(&packet).unwrap().source
    }

    /// Returns the inner socket that an answer from `peer` reaches, if it passes.
    fn back(nat: &mut Nat, peer: &str, to: SocketAddrV4, now: Instant) -> Option<SocketAddrV4> {
        let mut packet = datagram::udp(socket(peer), to, b"back");
        let passes = nat.inward(&mut packet, now);
        passes.then(|| Ends::from_packet(&packet).unwrap().destination)
    }

    #[test]
    fn answers_find_their_way_back_and_strangers_none() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        let seen = out(&mut nat, "10.0.0.2:4500", "192.0.2.1:4500", at(0));
        assert_eq!(*seen.ip(), OUTER);
        let inner = Some(socket("10.0.0.2:4500"));
        assert_eq!(back(&mut nat, "192.0.2.1:4500", seen, at(1)), inner);
        assert_eq!(back(&mut nat, "192.0.2.1:4501", seen, at(1)), None);
        assert_eq!(back(&mut nat, "192.0.2.2:4500", seen, at(1)), None);
        assert_eq!(nat.counters().uninvited, 2);
    }

    #[test]
    fn a_socket_has_one_port_for_all_peers_and_two_sockets_have_two() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        let first = out(&mut nat, "10.0.0.2:4500", "192.0.2.1:4500", at(0));
        assert_eq!(
            out(&mut nat, "10.0.0.2:4500", "192.0.2.9:500", at(0)),
            first
        );
        assert_ne!(
            out(&mut nat, "10.0.0.3:4500", "192.0.2.1:4500", at(0)),
            first
        );
    }

    #[test]
    fn a_mapping_lives_as_long_as_something_goes_out() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        let seen = out(&mut nat, "10.0.0.2:1", "192.0.2.1:2", at(0));
        assert_eq!(out(&mut nat, "10.0.0.2:1", "192.0.2.1:2", at(29)), seen);
        assert!(back(&mut nat, "192.0.2.1:2", seen, at(58)).is_some());
        assert_eq!(
            back(&mut nat, "192.0.2.1:2", seen, at(59)),
            None,
            "in is not out"
        );
        assert_ne!(out(&mut nat, "10.0.0.2:1", "192.0.2.1:2", at(60)), seen);
    }

    #[test]
    fn a_rebound_nat_gives_another_port_and_the_old_one_is_dead() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        let before = out(&mut nat, "10.0.0.2:1", "192.0.2.1:2", at(0));
        nat.rebind();
        assert_eq!(back(&mut nat, "192.0.2.1:2", before, at(0)), None);
        assert_ne!(out(&mut nat, "10.0.0.2:1", "192.0.2.1:2", at(0)), before);
    }

    #[test]
    fn a_transport_checksum_follows_and_a_missing_one_stays_missing() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        let mut header = vec![0; tcp::MIN_HEADER_LEN];
        header[..4].copy_from_slice(&[0, 80, 0, 81]);
        header[12] = 0x50;
        let ends = ["10.0.0.2:80", "192.0.2.1:81"].map(|text| *socket(text).ip());
        let mut packet = datagram::tcp(ends[0], ends[1], &header, b"payload");
        assert!(nat.outward(&mut packet, at(0)));
        let right = checksum::of_transport(&ip::Header::parse(&packet).unwrap());
        let sum_at = ip::V4_HEADER_LEN + tcp::CHECKSUM_OFFSET;
        assert_eq!(right, Some(word(&packet, sum_at)));
        let mut packet = datagram::udp(socket("10.0.0.2:1"), socket("192.0.2.1:2"), b"");
        assert!(nat.outward(&mut packet, at(0)));
        assert_eq!(word(&packet, ip::V4_HEADER_LEN + udp::CHECKSUM_OFFSET), 0);
    }

    #[test]
    fn what_has_no_ports_is_dropped_and_counted() {
        let mut nat = Nat::new(OUTER, LIFETIME);
        assert!(!nat.outward(&mut [0x45, 0, 0], at(0)));
        assert!(!nat.inward(&mut [], at(0)));
        assert_eq!(nat.counters().untranslatable, 2);
    }
}
