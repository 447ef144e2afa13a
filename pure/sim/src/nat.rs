//! A NAT: one outer address for the hosts behind it (RFC 4787).
//!
//! An inner socket gets one outer port for all its peers (endpoint-independent mapping), kept
//! alive by what goes out. From outside only those peers reach it that it has sent to (address and
//! port-dependent filtering). A mapping that was silent for too long is gone; so are all after
//! [`Nat::rebind`], as when a home router restarts, and whoever sends next gets another port.

use model::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use wire::{checksum, ip, tcp, udp};

/// The first outer port that is given away.
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

/// Packets of a NAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatCounters {
    /// Translated on their way out.
    pub outward: u64,
    /// Translated on their way in.
    pub inward: u64,
    /// Dropped on their way in: no mapping, or from a stranger.
    pub uninvited: u64,
    /// Dropped because they have no ports to translate.
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
    /// A NAT with this address outside, whose mappings live for `lifetime` after the last packet
    /// out.
    pub fn new(outer: Ipv4Addr, lifetime: Duration) -> Self {
        Self {
            outer,
            lifetime,
            mappings: BTreeMap::new(),
            next_port: FIRST_PORT,
            counters: NatCounters::default(),
        }
    }

    /// Forgets every mapping. New ones get ports that were not used before.
    pub fn rebind(&mut self) {
        self.mappings.clear();
    }

    /// What it did.
    pub const fn counters(&self) -> &NatCounters {
        &self.counters
    }

    /// Translates the source of a packet from inside; `false` drops it.
    pub(crate) fn outward(&mut self, packet: &mut [u8], now: Instant) -> bool {
        let Some(Ends {
            protocol,
            source,
            destination,
        }) = Ends::of(packet)
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

    /// Translates the destination of a packet from outside; `false` drops it.
    pub(crate) fn inward(&mut self, packet: &mut [u8], now: Instant) -> bool {
        let Some(Ends {
            protocol,
            source,
            destination,
        }) = Ends::of(packet)
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

/// Where a packet goes from and to.
struct Ends {
    protocol: u8,
    source: SocketAddrV4,
    destination: SocketAddrV4,
}

impl Ends {
    fn of(packet: &[u8]) -> Option<Self> {
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

/// Writes another socket into a packet and lets both checksums follow.
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
