//! Both ends of the tunnels: encapsulation, destinations, and the checks on decapsulation.
//!
//! The engines change the tables. Packets only query them, without allocation. An [`Envelope`]
//! describes the outer header; the packet itself is not copied.

mod home;
mod visitor;

pub(super) use home::End;
pub use home::HomeTunnel;
pub(super) use visitor::IdleAction;
pub use visitor::VisitorTunnel;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, Outer, Refusal, take_out};
use wire::mobile_ip::TunnelData;

/// The reason why a packet did not pass a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TunnelDrop {
    /// Its header forbids tunnelling.
    Refused(Refusal),
    /// There is no tunnel for its address.
    NoTunnel,
    /// Its source address belongs to another tunnel: "the home agent MUST silently discard the
    /// packet and SHOULD log the event as a security exception" (RFC 3024 section 4.3.2).
    Spoofed,
    /// The UDP payload has another encapsulation than was agreed: "the packet MUST be dropped" (RFC
    /// 3519 section 3.3).
    OtherEncapsulation,
}

impl TunnelDrop {
    /// Returns the counter's name, in snake case.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused(Refusal::Malformed) => "malformed",
            Self::Refused(Refusal::Expired) => "expired",
            Self::Refused(Refusal::Loop) => "loop",
            Self::Refused(Refusal::TooLong) => "too_long",
            Self::Refused(Refusal::Congested) => "congested",
            Self::NoTunnel => "no_tunnel",
            Self::Spoofed => "spoofed",
            Self::OtherEncapsulation => "other_encapsulation",
        }
    }
}

impl fmt::Display for TunnelDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::NoTunnel => f.write_str("no mobile node is registered for it"),
            Self::Spoofed => f.write_str("its source is not where the mobile node is registered"),
            Self::OtherEncapsulation => f.write_str("the UDP payload is not an IPv4 datagram"),
        }
    }
}

impl From<Refusal> for TunnelDrop {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

/// Counters of packets in tunnels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Copies that entered tunnels.
    pub sent: u64,
    /// Packets that left tunnels.
    pub received: u64,
    /// Packets among these that were forwarded to a visitor's new agent.
    pub forwarded: u64,
    /// Keepalives of UDP tunnels.
    pub keepalives: Keepalives,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<TunnelDrop, u64>,
}

/// Keepalive counters of UDP tunnels (RFC 3519 section 4.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalives {
    /// Echo requests sent.
    pub sent: u64,
    /// Answers: received by a foreign agent, or sent by a home agent.
    pub answered: u64,
    /// Tunnels lost after several unanswered echo requests in a row.
    pub lost: u64,
}

impl TunnelCounters {
    fn drop(&mut self, why: TunnelDrop) -> TunnelDrop {
        *self.dropped.entry(why).or_default() += 1;
        why
    }
}

/// The datagram size that every link carries (RFC 8200 section 5). IPv6 requires it, and tunnels
/// apply the same minimum to IPv4.
const LEAST: u16 = 1280;

/// Returns the largest datagram that fits a tunnel with the path MTU a router reported, less
/// `added` octets of headers. Returns `None` if the result is too small to be credible: any host
/// that knows the two addresses can forge the report (RFC 4301 section 8.2.1). Packets are then
/// fragmented on the path without loss, and no source is notified.
pub fn room(path_mtu: u16, added: u16) -> Option<u16> {
    let room = path_mtu.saturating_sub(added);
    (room >= LEAST).then_some(room)
}

/// The other end of a tunnel, and its encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remote {
    /// IP in IP (RFC 2003).
    Ip(Ipv4Addr),
    /// IP in UDP (RFC 3519 section 4.2).
    Udp(SocketAddrV4),
}

impl Remote {
    /// Returns the address of the other end.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::Ip(address) => address,
            Self::Udp(end) => *end.ip(),
        }
    }

    /// Returns address and port of a UDP tunnel.
    pub const fn udp(self) -> Option<SocketAddrV4> {
        match self {
            Self::Ip(_) => None,
            Self::Udp(end) => Some(end),
        }
    }

    /// Returns the datagram in a packet from this end: a UDP payload has a header of its own.
    pub(super) fn open(self, octets: &mut [u8]) -> Result<&mut [u8], TunnelDrop> {
        match self {
            Self::Ip(_) => Ok(octets),
            Self::Udp(_) => match TunnelData::parse(octets) {
                Ok(TunnelData::IP_IN_UDP) => Ok(&mut octets[TunnelData::LEN..]),
                Ok(_) => Err(TunnelDrop::OtherEncapsulation),
                Err(_) => Err(Refusal::Malformed.into()),
            },
        }
    }
}

/// The encapsulation of a datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The outer IP header.
    pub outer: Outer,
    /// The destination port of a UDP tunnel; `None` for IP in IP. [`TunnelData::IP_IN_UDP`]
    /// precedes the datagram, and the source port is the registration port (RFC 3519 section 2).
    pub port: Option<u16>,
}

impl Envelope {
    fn around(
        datagram: &[u8],
        (here, there): (Ipv4Addr, Remote),
        egress: Egress,
    ) -> Result<Self, Refusal> {
        let ends = (here, there.address());
        Ok(match there {
            Remote::Ip(_) => Self {
                outer: Outer::around(datagram, ends, egress)?,
                port: None,
            },
            Remote::Udp(end) => Self {
                outer: Outer::around_in_udp(datagram, ends, egress)?,
                port: Some(end.port()),
            },
        })
    }
}

/// A decapsulated datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct TakenOut<'a> {
    /// The datagram.
    pub datagram: &'a mut [u8],
    /// The encapsulation for its next hop; `None` if its own header decides.
    pub onward: Option<Envelope>,
}

/// Completes the decapsulation of a datagram, if the verdict allows it. `ecn` is the ECN field of
/// the outer header.
fn finish<'a>(
    counters: &mut TunnelCounters,
    verdict: Result<(), TunnelDrop>,
    ecn: Ecn,
    inner: &'a mut [u8],
) -> Result<&'a mut [u8], TunnelDrop> {
    match verdict.and_then(|()| Ok(take_out(inner, ecn)?)) {
        Ok(datagram) => {
            counters.received += 1;
            Ok(datagram)
        }
        Err(why) => Err(counters.drop(why)),
    }
}

/// Returns an address of a header that is known to be IPv4.
const fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
