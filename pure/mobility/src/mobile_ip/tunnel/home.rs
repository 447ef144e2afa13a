//! The home agent's end of its tunnels.

use super::{Envelope, Remote, TakenOut, TunnelCounters, TunnelDrop, finish, v4};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, whole};
use wire::mobile_ip::echo;

/// One tunnel endpoint of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) to: Remote,
    pub(crate) egress: Egress,
    /// True if packets may return through this tunnel.
    pub(crate) reverse: bool,
}

/// The home agent's end: sends packets for a home address to each of its care-of addresses.
#[derive(Debug)]
pub struct HomeTunnel {
    address: Ipv4Addr,
    homes: BTreeMap<Ipv4Addr, Vec<End>>,
    counters: TunnelCounters,
}

impl HomeTunnel {
    pub(crate) fn new(address: Ipv4Addr) -> Self {
        Self {
            address,
            homes: BTreeMap::new(),
            counters: TunnelCounters::default(),
        }
    }

    /// Sets the tunnel endpoints of a home address.
    pub(crate) fn set(&mut self, home: Ipv4Addr, ends: Vec<End>) {
        match ends.is_empty() {
            true => self.homes.remove(&home),
            false => self.homes.insert(home, ends),
        };
    }

    /// Calls `each` with the encapsulation of every copy of a datagram.
    pub fn encapsulate(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(Envelope),
    ) -> Result<(), TunnelDrop> {
        let destination = whole(datagram).map(|header| v4(header.destination()));
        let destination = destination.map_err(|why| self.counters.drop(why.into()))?;
        let Some(ends) = self.homes.get(&destination) else {
            return Err(self.counters.drop(TunnelDrop::NoTunnel));
        };
        let mut last = Ok(());
        for end in ends {
            match Envelope::around(datagram, (self.address, end.to), end.egress) {
                Ok(envelope) => {
                    self.counters.sent += 1;
                    each(envelope);
                }
                Err(why) => last = Err(self.counters.drop(why.into())),
            }
        }
        last
    }

    /// Decapsulates a datagram that came from `from`, with ECN field `ecn` in the outer header. The
    /// datagram must match "a mobility binding whose care-of address is the source of the outer
    /// header, and whose mobile node address is the source of the inner header" (RFC 3024 section
    /// 4.3.2). In UDP, "the outer IP addresses and UDP port numbers exactly match the values used
    /// for the tunnel" (RFC 3519 section 4.3). A keepalive becomes its own answer.
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
    ) -> Result<TakenOut<'a>, TunnelDrop> {
        let inner = from.open(octets).map_err(|why| self.counters.drop(why))?;
        let found = whole(inner).map_err(TunnelDrop::from).and_then(|header| {
            let ends = self.homes.get(&v4(header.source()));
            let end = ends.and_then(|ends| ends.iter().find(|end| end.to == from));
            end.copied().ok_or(TunnelDrop::Spoofed)
        });
        if let (Remote::Udp(_), Ok(end)) = (from, found)
            && echo::answer(inner, self.address)
        {
            return self.answered(inner, end);
        }
        let verdict = found.and_then(|end| end.reverse.then_some(()).ok_or(TunnelDrop::Spoofed));
        let datagram = finish(&mut self.counters, verdict, ecn, inner)?;
        Ok(TakenOut {
            datagram,
            onward: None,
        })
    }

    /// "The remote UDP tunnel endpoint MUST use two-way keepalives consisting of UDP encapsulated
    /// ICMP Echo Request/Reply messages" (RFC 3519 section 4.9), independent of the host's policy
    /// for other echo requests.
    fn answered<'a>(&mut self, answer: &'a mut [u8], end: End) -> Result<TakenOut<'a>, TunnelDrop> {
        let envelope = Envelope::around(answer, (self.address, end.to), end.egress);
        let envelope = envelope.map_err(|why| self.counters.drop(why.into()))?;
        self.counters.keepalives.answered += 1;
        Ok(TakenOut {
            datagram: answer,
            onward: Some(envelope),
        })
    }

    /// Returns the packet counters.
    pub const fn counters(&self) -> &TunnelCounters {
        &self.counters
    }
}
