//! Mobile IPv4 (RFC 5944): a host keeps its address while it moves between networks.
//!
//! A [`MobileNode`] discovers foreign agents on its links, selects one, and registers with its home
//! agent through it. The [`HomeAgent`] then tunnels packets for the home address to the
//! [`ForeignAgent`], which delivers them to the mobile node. Packets from the mobile node return
//! through the same tunnel (RFC 3024). [`HomeTunnel`] and [`VisitorTunnel`] decide which packets
//! may pass at each end.
//!
//! * The home network is virtual (section 2.3): mobile nodes never attach to it, and returning home
//!   is a deregistration.
//! * Care-of addresses belong to foreign agents. Packets are always reverse tunnelled, in IP in IP
//!   unless a NAT requires UDP.
//! * Behind a NAT ([`Nat`]) a foreign agent requests UDP tunnels (RFC 3519), which end at the
//!   source of the request. The home agent accepts such a request only if the foreign agent's key
//!   authenticates it, because any host that overhears a request could add one to a copy. The
//!   source address itself is not authenticated. An attacker can change it only by modifying an
//!   authentic, new request in transit (section 6.1.1): of two copies from two sources at most one
//!   is granted, and neither packets nor keepalives move a tunnel. Registrations through such
//!   tunnels are therefore short ([`HomeAgentConfig::nat_lifetime`]).
//! * Advertisements are not authenticated. They never move a mobile node whose registration works,
//!   neither to another agent nor to another [`Station`] of the link. A false agent can do no more
//!   than any station on that link can: fail to deliver.
//! * When a visitor moves between two neighbouring foreign agents, the previous agent forwards its
//!   remaining packets for some seconds. The visitor authorizes this by a note, authenticated with
//!   the key that it shares with the previous agent.
//! * Every change of a binding is authenticated between mobile node and home agent, and fresh. A
//!   foreign agent authenticates messages where it has keys.

mod agents;
mod attempt;
mod beacon;
mod clock;
mod counters;
mod foreign_agent;
mod freshness;
mod home_agent;
mod keepalive;
mod key;
mod limiter;
mod mobile_node;
mod nat;
mod pending;
mod search;
mod station;
#[cfg(test)]
mod tests;
mod transmit;
mod tunnel;

pub use clock::NtpTime;
pub use counters::{Counters, Dropped};
pub use foreign_agent::{Enclosed, ForeignAgent, ForeignAgentConfig, ForeignEvent, Visitor};
pub use freshness::Replay;
pub use home_agent::{HomeAgent, HomeAgentConfig, HomeEvent, Place};
pub use key::{Algorithm, Association};
pub use mobile_node::{Attachment, MobileEvent, MobileNode, MobileNodeConfig, Registration};
pub use nat::Nat;
pub use station::Station;
pub use transmit::{Arrival, Transmit};
pub use tunnel::{
    Envelope, HomeTunnel, Keepalives, Remote, TakenOut, TunnelCounters, TunnelDrop, VisitorTunnel,
    room,
};

use crypto::Rng;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Returns a random part of a duration.
fn part_of(duration: Duration, rng: &mut Rng) -> Duration {
    let nanos = duration.as_nanos().saturating_mul(rng.u32().into()) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns true if an address can belong to a single host.
const fn is_host(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    !(octets[0] == 0 || address.is_loopback() || octets[0] >= 224)
}
