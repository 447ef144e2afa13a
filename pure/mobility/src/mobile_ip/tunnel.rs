//! Both ends of the tunnels: which packets go in, where they go, and what may come out.
//!
//! A table is changed by its engine and asked for every packet, which costs no allocation. What the
//! header outside is to say is in an [`Outer`]; the packet itself stays where it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, Outer, Refusal, spend_hop, take_out, whole};

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
        }
    }
}

impl fmt::Display for TunnelDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::NoTunnel => f.write_str("no mobile node is registered for it"),
            Self::Spoofed => f.write_str("it came from where the mobile node it names is not"),
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
    /// How many were dropped.
    pub dropped: BTreeMap<TunnelDrop, u64>,
}

impl TunnelCounters {
    fn drop(&mut self, why: TunnelDrop) -> TunnelDrop {
        *self.dropped.entry(why).or_default() += 1;
        why
    }
}

/// Where a tunnel of a home agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) care_of: Ipv4Addr,
    pub(super) egress: Egress,
    /// Whether packets may come back.
    pub(super) reverse: bool,
}

/// The home agent's end: what comes for a home address goes to each of its care-of addresses.
#[derive(Debug)]
pub struct HomeTunnel {
    address: Ipv4Addr,
    homes: BTreeMap<Ipv4Addr, Vec<End>>,
    counters: TunnelCounters,
}

impl HomeTunnel {
    pub(super) fn new(address: Ipv4Addr) -> Self {
        Self {
            address,
            homes: BTreeMap::new(),
            counters: TunnelCounters::default(),
        }
    }

    /// From now on a home address has these ends.
    pub(super) fn set(&mut self, home: Ipv4Addr, ends: Vec<End>) {
        match ends.is_empty() {
            true => self.homes.remove(&home),
            false => self.homes.insert(home, ends),
        };
    }

    /// Tells of each header with which a datagram is to be sent.
    pub fn encapsulate(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(Outer),
    ) -> Result<(), TunnelDrop> {
        let destination = whole(datagram).map(|header| v4(header.destination()));
        let destination = destination.map_err(|why| self.counters.drop(why.into()))?;
        let Some(ends) = self.homes.get(&destination) else {
            return Err(self.counters.drop(TunnelDrop::NoTunnel));
        };
        let mut last = Ok(());
        for end in ends {
            match Outer::around(datagram, (self.address, end.care_of), end.egress) {
                Ok(outer) => {
                    self.counters.sent += 1;
                    each(outer);
                }
                Err(why) => last = Err(self.counters.drop(why.into())),
            }
        }
        last
    }

    /// Takes a datagram out that came from `outer_source` in a header with an ECN field. It has to be of
    /// "a mobility binding whose care-of address is the source of the outer header, and whose mobile node
    /// address is the source of the inner header" (RFC 3024 section 4.3.2).
    pub fn decapsulate<'a>(
        &mut self,
        outer_source: Ipv4Addr,
        ecn: Ecn,
        inner: &'a mut [u8],
    ) -> Result<&'a mut [u8], TunnelDrop> {
        let verdict = whole(inner).map_err(TunnelDrop::from).and_then(|header| {
            let ends = self.homes.get(&v4(header.source()));
            let is_bound = |end: &End| end.care_of == outer_source && end.reverse;
            match ends.is_some_and(|ends| ends.iter().any(is_bound)) {
                true => Ok(()),
                false => Err(TunnelDrop::Spoofed),
            }
        });
        finish(&mut self.counters, verdict, ecn, inner)
    }

    /// What happened to packets.
    pub const fn counters(&self) -> &TunnelCounters {
        &self.counters
    }
}

/// The foreign agent's end: what a visitor sends goes to its home agent, what comes from there for a
/// visitor goes to it, or after it to where it has gone.
///
/// What another foreign agent sends after a visitor is given to that visitor or dropped: it goes no further, so
/// there is no circle of agents.
#[derive(Debug)]
pub struct VisitorTunnel {
    care_of: Ipv4Addr,
    visitors: BTreeMap<Ipv4Addr, Stay>,
    /// Those that come from another foreign agent, and which: it sends after them what it still gets.
    followed: BTreeMap<Ipv4Addr, Ipv4Addr>,
    counters: TunnelCounters,
}

/// A visitor.
#[derive(Clone, Copy, Debug)]
struct Stay {
    home_agent: Ipv4Addr,
    egress: Egress,
    /// The care-of address of where it has gone.
    gone: Option<Ipv4Addr>,
}

/// What came out of a tunnel.
#[derive(Debug, PartialEq, Eq)]
pub struct TakenOut<'a> {
    /// The datagram.
    pub datagram: &'a mut [u8],
    /// The header with which it is to be sent on; `None` if it goes where its own says.
    pub onward: Option<Outer>,
}

impl VisitorTunnel {
    pub(super) fn new(care_of: Ipv4Addr) -> Self {
        Self {
            care_of,
            visitors: BTreeMap::new(),
            followed: BTreeMap::new(),
            counters: TunnelCounters::default(),
        }
    }

    pub(super) fn insert(&mut self, home: Ipv4Addr, home_agent: Ipv4Addr, egress: Egress) {
        let stay = Stay {
            home_agent,
            egress,
            gone: None,
        };
        self.visitors.insert(home, stay);
    }

    pub(super) fn remove(&mut self, home: Ipv4Addr) {
        self.visitors.remove(&home);
    }

    /// From now on what comes for a visitor goes on to this care-of address, or stays here again.
    pub(super) fn send_after(&mut self, home: Ipv4Addr, gone: Option<Ipv4Addr>) {
        if let Some(stay) = self.visitors.get_mut(&home) {
            stay.gone = gone;
        }
    }

    /// From now on an agent may send after somebody what it gets, or nobody may.
    pub(super) fn follow(&mut self, home: Ipv4Addr, previous: Option<Ipv4Addr>) {
        match previous {
            Some(previous) => self.followed.insert(home, previous),
            None => self.followed.remove(&home),
        };
    }

    /// The header with which a datagram of a visitor is to be sent ("direct delivery", RFC 3024 section
    /// 5.1).
    pub fn encapsulate(&mut self, datagram: &[u8]) -> Result<Outer, TunnelDrop> {
        let outer = whole(datagram)
            .map_err(TunnelDrop::from)
            .and_then(|header| {
                let visitor = self.visitors.get(&v4(header.source()));
                let stay = visitor.ok_or(TunnelDrop::NoTunnel)?;
                let ends = (self.care_of, stay.home_agent);
                Ok(Outer::around(datagram, ends, stay.egress)?)
            });
        match outer {
            Ok(outer) => {
                self.counters.sent += 1;
                Ok(outer)
            }
            Err(why) => Err(self.counters.drop(why)),
        }
    }

    /// Takes a datagram out that came from `outer_source` in a header with an ECN field: it has to be for
    /// a visitor, and from the visitor's own home agent or the agent that it comes from.
    pub fn decapsulate<'a>(
        &mut self,
        outer_source: Ipv4Addr,
        ecn: Ecn,
        inner: &'a mut [u8],
    ) -> Result<TakenOut<'a>, TunnelDrop> {
        let verdict = whole(inner).map_err(TunnelDrop::from).and_then(|header| {
            let home = v4(header.destination());
            let stay = self.visitors.get(&home);
            let gone = stay.and_then(|stay| stay.gone);
            match (stay, self.followed.get(&home)) {
                (Some(stay), _) if stay.home_agent == outer_source => Ok(gone),
                (_, Some(&previous)) if previous == outer_source && gone.is_none() => Ok(None),
                (None, None) => Err(TunnelDrop::NoTunnel),
                _ => Err(TunnelDrop::Spoofed),
            }
        });
        let gone = verdict.as_ref().ok().copied().flatten();
        let datagram = finish(&mut self.counters, verdict.map(drop), ecn, inner)?;
        let onward = gone.map(|next| self.onward(datagram, next)).transpose()?;
        Ok(TakenOut { datagram, onward })
    }

    /// No kernel forwards it, so its time to live is ours to spend.
    fn onward(&mut self, datagram: &mut [u8], next: Ipv4Addr) -> Result<Outer, TunnelDrop> {
        let outer = spend_hop(datagram)
            .and_then(|()| Outer::around(datagram, (self.care_of, next), Egress::PassesMarks));
        match outer {
            Ok(outer) => {
                self.counters.sent += 1;
                self.counters.forwarded += 1;
                Ok(outer)
            }
            Err(why) => Err(self.counters.drop(why.into())),
        }
    }

    /// What happened to packets.
    pub const fn counters(&self) -> &TunnelCounters {
        &self.counters
    }
}

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
