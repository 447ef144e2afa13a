//! Both ends of the tunnels: which packets go in, where they go, and what may come out.
//!
//! A table is changed by its engine and asked for every packet, which costs no allocation. What the
//! header outside is to say is in an [`Envelope`]; the packet itself stays where it is.

mod home;
mod visitor;

pub(super) use home::End;
pub use home::HomeTunnel;
pub use visitor::VisitorTunnel;
pub(super) use visitor::Waning;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, Outer, Refusal, take_out};
use wire::mobile_ip::TunnelData;

/// Why a packet did not pass a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TunnelDrop {
    /// Its header forbids it.
    Refused(Refusal),
    /// No tunnel is there for it.
    NoTunnel,
    /// It came out of a tunnel that is not the one of whom it names: "the home agent MUST silently discard
    /// the packet and SHOULD log the event as a security exception" (RFC 3024 section 4.3.2).
    Spoofed,
    /// It is in UDP in another way than was agreed on: "the packet MUST be dropped" (RFC 3519 section 3.3).
    OtherEncapsulation,
}

impl TunnelDrop {
    /// The name of its counter, in snake case.
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
            Self::Spoofed => f.write_str("it came from where the mobile node it names is not"),
            Self::OtherEncapsulation => f.write_str("what is in UDP is no IPv4 datagram"),
        }
    }
}

impl From<Refusal> for TunnelDrop {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

/// What happened to packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// How many copies went into tunnels.
    pub sent: u64,
    /// How many came out.
    pub received: u64,
    /// How many of these went on to where a visitor has gone.
    pub forwarded: u64,
    /// Of tunnels in UDP.
    pub keepalives: Keepalives,
    /// How many were dropped.
    pub dropped: BTreeMap<TunnelDrop, u64>,
}

/// What keeps tunnels in UDP alive (RFC 3519 section 4.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalives {
    /// How many left.
    pub sent: u64,
    /// How many were answered: by a home agent, or to its other end.
    pub answered: u64,
    /// How often a tunnel was lost, for several in a row were not.
    pub lost: u64,
}

impl TunnelCounters {
    fn drop(&mut self, why: TunnelDrop) -> TunnelDrop {
        *self.dropped.entry(why).or_default() += 1;
        why
    }
}

/// What every link takes (RFC 8200 section 5): IPv6 demands it, and a tunnel keeps as much for IPv4.
const LEAST: u16 = 1280;

/// How long a datagram may be in a tunnel by what a router says of its path, of which headers take `added`. `None` if that
/// is too little to be believed: any host can say so in a router's name (RFC 4301 section 8.2.1), and knows the two
/// addresses that it needs. Then packets are cut on their way, which loses none, and no source is told.
pub fn room(path_mtu: u16, added: u16) -> Option<u16> {
    let room = path_mtu.saturating_sub(added);
    (room >= LEAST).then_some(room)
}

/// The other end of a tunnel, and what the tunnel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remote {
    /// IP in IP (RFC 2003).
    Ip(Ipv4Addr),
    /// IP in UDP (RFC 3519 section 4.2).
    Udp(SocketAddrV4),
}

impl Remote {
    /// Its address.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Self::Ip(address) => address,
            Self::Udp(end) => *end.ip(),
        }
    }

    /// Address and port, if it is in UDP.
    pub const fn udp(self) -> Option<SocketAddrV4> {
        match self {
            Self::Ip(_) => None,
            Self::Udp(end) => Some(end),
        }
    }

    /// The datagram in what came from there: a UDP payload has a header of its own.
    fn open(self, octets: &mut [u8]) -> Result<&mut [u8], TunnelDrop> {
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

/// With what a datagram is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The header outside.
    pub outer: Outer,
    /// The port, if it is in UDP there: with [`TunnelData::IP_IN_UDP`] in front of it, and from the port of registrations
    /// (RFC 3519 section 2). `None` if it is in IP.
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

/// What came out of a tunnel.
#[derive(Debug, PartialEq, Eq)]
pub struct TakenOut<'a> {
    /// The datagram.
    pub datagram: &'a mut [u8],
    /// With what it is to be sent on; `None` if it goes where its own header says.
    pub onward: Option<Envelope>,
}

/// Takes a datagram out of a tunnel in whose header was an ECN field, if it may come out.
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

/// An address of a header that was seen to be IPv4's.
const fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
