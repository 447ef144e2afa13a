//! Mobile IPv4 (RFC 5944): a host keeps its address wherever it is.
//!
//! A [`MobileNode`] hears which foreign agents are on its links, chooses one, and has it pass a request
//! on to its home agent. The [`HomeAgent`] then sends what comes for the home address through a tunnel to
//! the [`ForeignAgent`], who gives it to the mobile node, and takes what the foreign agent sends back in
//! the same tunnel (RFC 3024). What each end of it lets pass is in [`HomeTunnel`] and [`VisitorTunnel`].
//!
//! * The home network is virtual (section 2.3): nobody is ever a neighbour there, and going home is a
//!   deregistration.
//! * Care-of addresses are those of foreign agents, packets are tunnelled back always, and in IP in IP.
//! * Behind a NAT ([`Nat`]) a foreign agent asks for tunnels in UDP (RFC 3519), which end where a request came from. It is
//!   believed by its key alone, for any host that hears a request can add that to a copy. The address is authenticated by
//!   nothing, but to change it a request that is authentic and new has to be changed on its way (section 6.1.1): of two
//!   copies from two places one at most is granted, and neither a packet nor a keepalive moves anything. Registrations by
//!   such tunnels are short for that ([`HomeAgentConfig::nat_lifetime`]).
//! * An advertisement is not authenticated. So it moves no mobile node whose registration works, neither to another agent
//!   nor to another [`Station`] of the link, and what a false agent can do is what it could do anyway on that link: not
//!   deliver.
//! * Foreign agents that are each other's neighbours send after a visitor what still comes for it when it has gone
//!   from one to the other, for some seconds: if it has said so in a note, by the key that it shares with the one it
//!   leaves.
//! * What changes a binding is authentic between mobile node and home agent, and fresh. What a foreign
//!   agent believes is authentic as far as it has keys.

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

/// A part of a duration that chance chooses.
fn part_of(duration: Duration, rng: &mut Rng) -> Duration {
    let nanos = duration.as_nanos().saturating_mul(rng.u32().into()) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Whether one host can have this address.
const fn is_host(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    !(octets[0] == 0 || address.is_loopback() || octets[0] >= 224)
}
