//! The foreign agent's end of its tunnels.

use super::{Envelope, Remote, TakenOut, TunnelCounters, TunnelDrop, finish, v4};
use crate::mobile_ip::keepalive::{Due, Keepalive};
use crypto::Rng;
use model::Instant;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use wire::ecn::Ecn;
use wire::ip_in_ip::{Egress, spend_hop, whole};
use wire::mobile_ip::TunnelData;
use wire::mobile_ip::echo::Echo;

/// The foreign agent's end: sends a visitor's packets to its home agent. Packets from the home
/// agent go to the visitor, or to its new agent after a move.
///
/// A packet that another foreign agent forwards is delivered to its visitor or dropped. It is never
/// forwarded again, so agents cannot form a loop.
#[derive(Debug)]
pub struct VisitorTunnel {
    care_of: Ipv4Addr,
    visitors: BTreeMap<Ipv4Addr, Stay>,
    /// Visitors that came from another foreign agent, with the care-of address of that agent, which
    /// forwards their remaining packets.
    followed: BTreeMap<Ipv4Addr, Ipv4Addr>,
    /// The identifier and cookie of our keepalives.
    echo: Echo,
    counters: TunnelCounters,
}

/// A visitor.
#[derive(Clone, Copy, Debug)]
struct Stay {
    home_agent: Remote,
    egress: Egress,
    /// Keepalives of a UDP tunnel, until the tunnel is lost. A visitor that is still here then
    /// registers again.
    keepalive: Option<Keepalive>,
    /// The time of the visitor's last registration here.
    since: Instant,
    /// The last packet from the home agent for this visitor, and the first keepalive sent after it.
    heard: Option<Instant>,
    asked: Option<Instant>,
    /// The care-of address that the visitor has moved to.
    gone: Option<Ipv4Addr>,
}

/// An action for an idle UDP tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdleAction {
    /// Send these octets to the home agent.
    Ask(SocketAddrV4, Vec<u8>),
    /// The home agent has answered no keepalive: this visitor's tunnel is lost.
    Lost(Ipv4Addr),
}

impl VisitorTunnel {
    pub(crate) fn new(care_of: Ipv4Addr, rng: &mut Rng) -> Self {
        Self {
            care_of,
            visitors: BTreeMap::new(),
            followed: BTreeMap::new(),
            echo: Echo {
                identifier: rng.u16(),
                sequence: 0,
                cookie: rng.u64(),
            },
            counters: TunnelCounters::default(),
        }
    }

    /// Adds a visitor or renews its registration; `keepalive` belongs to a UDP tunnel.
    pub(crate) fn insert(
        &mut self,
        home: Ipv4Addr,
        (home_agent, keepalive): (Remote, Option<Keepalive>),
        egress: Egress,
        now: Instant,
    ) {
        let stay = Stay {
            home_agent,
            egress,
            keepalive,
            since: now,
            heard: None,
            asked: None,
            gone: None,
        };
        self.visitors.insert(home, stay);
    }

    pub(crate) fn remove(&mut self, home: Ipv4Addr) {
        self.visitors.remove(&home);
    }

    /// Forwards a visitor's packets to this care-of address; `None` delivers them here again.
    pub(crate) fn send_after(&mut self, home: Ipv4Addr, gone: Option<Ipv4Addr>) {
        if let Some(stay) = self.visitors.get_mut(&home) {
            stay.gone = gone;
        }
    }

    /// Allows an agent to forward packets for a visitor; `None` withdraws the permission.
    pub(crate) fn follow(&mut self, home: Ipv4Addr, previous: Option<Ipv4Addr>) {
        match previous {
            Some(previous) => self.followed.insert(home, previous),
            None => self.followed.remove(&home),
        };
    }

    /// Returns true if a visitor has a UDP tunnel.
    pub(crate) fn is_in_udp(&self, home: Ipv4Addr) -> bool {
        let stay = self.visitors.get(&home);
        stay.is_some_and(|stay| matches!(stay.home_agent, Remote::Udp(_)))
    }

    /// Returns the encapsulation of a visitor's datagram ("direct delivery", RFC 3024 section 5.1).
    pub fn encapsulate(&mut self, datagram: &[u8], now: Instant) -> Result<Envelope, TunnelDrop> {
        let envelope = whole(datagram)
            .map_err(TunnelDrop::from)
            .and_then(|header| {
                let visitor = self.visitors.get_mut(&v4(header.source()));
                let stay = visitor.ok_or(TunnelDrop::NoTunnel)?;
                let ends = (self.care_of, stay.home_agent);
                let envelope = Envelope::around(datagram, ends, stay.egress)?;
                if let Some(keepalive) = &mut stay.keepalive {
                    keepalive.note_sent(now);
                }
                Ok(envelope)
            });
        match envelope {
            Ok(envelope) => {
                self.counters.sent += 1;
                Ok(envelope)
            }
            Err(why) => Err(self.counters.drop(why)),
        }
    }

    /// Decapsulates a datagram that came from `from`, with ECN field `ecn` in the outer header. Its
    /// destination must be a visitor, and `from` the visitor's home agent or its previous foreign
    /// agent. Returns `None` for the answer to a keepalive.
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Result<Option<TakenOut<'a>>, TunnelDrop> {
        let inner = from.open(octets).map_err(|why| self.counters.drop(why))?;
        let verdict = whole(inner).map_err(TunnelDrop::from).and_then(|header| {
            let home = v4(header.destination());
            let mut stay = self.visitors.get_mut(&home);
            let gone = stay.as_ref().and_then(|stay| stay.gone);
            let is_home = stay.as_ref().map(|stay| stay.home_agent == from);
            match (is_home, self.followed.get(&home)) {
                (Some(true), _) => {
                    if let Some(stay) = &mut stay {
                        stay.note_heard(now);
                    }
                    Ok(gone)
                }
                (_, Some(&previous)) if Remote::Ip(previous) == from && gone.is_none() => Ok(None),
                (None, None) => Err(TunnelDrop::NoTunnel),
                _ => Err(TunnelDrop::Spoofed),
            }
        });
        if verdict.is_ok() && self.is_answer(from, inner) {
            self.counters.keepalives.answered += 1;
            return Ok(None);
        }
        let gone = verdict.as_ref().ok().copied().flatten();
        let datagram = finish(&mut self.counters, verdict.map(drop), ecn, inner)?;
        let onward = gone.map(|next| self.onward(datagram, next)).transpose()?;
        Ok(Some(TakenOut { datagram, onward }))
    }

    fn is_answer(&self, from: Remote, inner: &[u8]) -> bool {
        let is_ours =
            |echo: Echo| (echo.identifier, echo.cookie) == (self.echo.identifier, self.echo.cookie);
        matches!(from, Remote::Udp(_)) && Echo::answered_by(inner).is_some_and(is_ours)
    }

    /// Decrements the TTL, because no kernel forwards this datagram.
    fn onward(&mut self, datagram: &mut [u8], next: Ipv4Addr) -> Result<Envelope, TunnelDrop> {
        let ends = (self.care_of, Remote::Ip(next));
        let envelope = spend_hop(datagram)
            .and_then(|()| Envelope::around(datagram, ends, Egress::PassesMarks));
        match envelope {
            Ok(envelope) => {
                self.counters.sent += 1;
                self.counters.forwarded += 1;
                Ok(envelope)
            }
            Err(why) => Err(self.counters.drop(why.into())),
        }
    }

    /// Returns the actions for idle UDP tunnels.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<IdleAction> {
        let (mut all, mut silent) = (Vec::new(), Vec::new());
        for (&home, stay) in &mut self.visitors {
            let (Remote::Udp(home_agent), Some(keepalive)) = (stay.home_agent, &mut stay.keepalive)
            else {
                continue;
            };
            match keepalive.due(now) {
                None => {}
                Some(Due::Ask(sequence)) => {
                    stay.asked.get_or_insert(now);
                    self.counters.keepalives.sent += 1;
                    let echo = Echo {
                        sequence,
                        ..self.echo
                    };
                    let mut octets = TunnelData::IP_IN_UDP.octets().to_vec();
                    octets.extend(echo.request(home, *home_agent.ip()));
                    all.push(IdleAction::Ask(home_agent, octets));
                }
                Some(Due::Lost) => {
                    stay.keepalive = None;
                    silent.push((home, *stay));
                }
            }
        }
        for (home, stay) in silent {
            if !self.is_elsewhere(&stay) {
                self.counters.keepalives.lost += 1;
                all.push(IdleAction::Lost(home));
            }
        }
        all
    }

    /// Returns true if a visitor whose home agent is silent has registered elsewhere. That is so if
    /// the home agent has meanwhile sent packets for another visitor, through a NAT mapping that is
    /// no newer: all visitors share one mapping. RFC 3519 section 4.10 requires a new registration
    /// only if the mapping is lost.
    fn is_elsewhere(&self, silent: &Stay) -> bool {
        let last = silent.heard.unwrap_or(silent.since);
        let mut theirs = self.visitors.values();
        theirs.any(|stay| {
            let is_same = stay.home_agent == silent.home_agent && stay.since <= last;
            is_same && silent.asked.is_some() && stay.heard >= silent.asked
        })
    }

    /// Returns the time of the next call to [`Self::due`].
    pub(crate) fn next(&self) -> Option<Instant> {
        let keepalives = self.visitors.values().filter_map(|stay| stay.keepalive);
        keepalives.map(|keepalive| keepalive.next()).min()
    }

    /// Returns the packet counters.
    pub const fn counters(&self) -> &TunnelCounters {
        &self.counters
    }
}

impl Stay {
    /// Records a packet from the home agent for this visitor.
    const fn note_heard(&mut self, now: Instant) {
        self.heard = Some(now);
        self.asked = None;
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.note_heard(now);
        }
    }
}
