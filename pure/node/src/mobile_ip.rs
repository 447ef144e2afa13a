//! Mobile IPv4 (RFC 5944) beside the tunnels: one of its three engines, if the configuration wants one.
//!
//! A tunnel is made between addresses that stay: it is within what is carried here, and a move is nothing to it. What is said
//! here is of use elsewhere: `junction.rs` has requests repeated when there is a way, `whereabouts.rs` hears where a
//! mobile node is, and `migration.rs` sends tokens along with its requests.

mod part;

pub(crate) use part::MobileIp;

use crate::Node;
use model::{Instant, TrafficSelector};
use part::Engine;
use std::net::Ipv4Addr;
use wire::ecn::Ecn;

pub use mobility::mobile_ip::{
    Algorithm, Arrival, Association, Attachment, Dropped, Enclosed, Envelope, ForeignAgentConfig,
    ForeignEvent, HomeAgentConfig, HomeEvent, Keepalives, MobileEvent, MobileNodeConfig, Nat,
    NtpTime, Place, Registration, Remote, Replay, Station, TakenOut, Transmit, TunnelDrop, Visitor,
    room,
};
pub use wire::mobile_ip::{Lifetime, PORT, TunnelData, message};

/// What a host is to it.
#[derive(Clone, Debug)]
pub enum Config {
    /// It keeps its address wherever it is.
    MobileNode(MobileNodeConfig),
    /// It is visited.
    ForeignAgent(ForeignAgentConfig),
    /// It stands in for those who are away.
    HomeAgent(HomeAgentConfig),
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// To a mobile node.
    MobileNode(MobileEvent),
    /// To a foreign agent's visitor.
    ForeignAgent(ForeignEvent),
    /// To one of a home agent's.
    HomeAgent(HomeEvent),
    /// Somebody was denied, or not believed, for a reason that a person can read.
    Refused(String),
}

/// How things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Of a mobile node.
    MobileNode {
        /// Its address.
        home: Ipv4Addr,
        /// Its home agent.
        home_agent: Ipv4Addr,
        /// Where it is registered.
        registrations: Vec<Registration>,
        /// By whom it sends.
        route: Option<Attachment>,
    },
    /// Of a foreign agent.
    ForeignAgent {
        /// Where tunnels to its visitors end.
        care_of: Ipv4Addr,
        /// Whom it serves.
        visitors: Vec<Stay>,
    },
    /// Of a home agent.
    HomeAgent {
        /// Its address.
        address: Ipv4Addr,
        /// Its mobile nodes, and where each is.
        homes: Vec<(Ipv4Addr, Vec<Place>)>,
    },
}

/// A visitor of a foreign agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Who it is.
    pub visitor: Visitor,
    /// Until when it is served unless it registers again; `None` if that does not end.
    pub until: Option<Instant>,
    /// The foreign agent to which what comes for it is sent on.
    pub gone_to: Option<Ipv4Addr>,
    /// Whether its tunnel is in UDP.
    pub is_in_udp: bool,
}

impl Node {
    // Commands.

    /// Tells the time of day, by which registrations and tokens are known to be new.
    pub fn set_time_of_day(&mut self, time: NtpTime, now: Instant) {
        self.migration.set_time(time, now);
        if let Some(part) = &mut self.mobile_ip {
            part.set_time(time, now);
        }
    }

    /// Ends all registrations of a mobile node; [`MobileEvent::Deregistered`] follows. Gives false if there is
    /// nothing to wait for.
    pub fn deregister(&mut self, now: Instant) -> bool {
        let part = self.mobile_ip.as_mut().map(|part| &mut part.engine);
        let Some(Engine::MobileNode(node)) = part else {
            return false;
        };
        node.deregister(now);
        self.drain(now);
        true
    }

    /// Tells a foreign agent which addresses the host needs itself, besides those of its peers: its own, the networks of its
    /// interfaces, next hops and name servers. No visitor is at home there.
    pub fn set_reserved(&mut self, reserved: Vec<TrafficSelector>, now: Instant) {
        if let Some(part) = &mut self.mobile_ip {
            part.reserved = reserved;
        }
        self.reserve();
        self.drain(now);
    }

    /// Tells it again, for peers may be others.
    pub(crate) fn reserve(&mut self) {
        let Some(part) = &mut self.mobile_ip else {
            return;
        };
        if let Engine::ForeignAgent(agent) = &mut part.engine {
            let peers = self.peers.iter().filter_map(|peer| peer.address);
            let peers = peers.filter_map(|address| {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                TrafficSelector::from_prefix(address, bits)
            });
            agent.set_reserved(part.reserved.iter().cloned().chain(peers).collect());
        }
    }

    // Inputs.

    /// An ICMP message came from a station of a link, by one of Mobile IP's interfaces: a router says that it is here, or is
    /// asked.
    pub fn handle_discovery(
        &mut self,
        interface: u32,
        source: Ipv4Addr,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        match self.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::MobileNode(node)) => {
                node.handle_advertisement(interface, source, station, octets, now);
            }
            Some(Engine::ForeignAgent(agent)) => agent.handle_solicitation(interface, octets, now),
            Some(Engine::HomeAgent(_)) | None => {}
        }
        self.drain(now);
    }

    /// A UDP datagram came by routes to an agent, for port 434 or as an answer to what was sent from another one.
    pub fn handle_registration(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        match self.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => agent.handle_datagram(arrival, octets, now),
            Some(Engine::HomeAgent(agent)) => agent.handle_datagram(arrival, octets, now),
            Some(Engine::MobileNode(_)) | None => {}
        }
        self.drain(now);
    }

    /// The same from a station of a link: to a mobile node from an agent, or to a foreign agent from visitors. There agents
    /// are not believed.
    pub fn handle_nearby(
        &mut self,
        arrival: &Arrival,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        match self.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => agent.handle_nearby(arrival, station, octets, now),
            Some(Engine::MobileNode(node)) => {
                let source = *arrival.source.ip();
                node.handle_reply(arrival.interface, source, station, octets, now);
            }
            Some(Engine::HomeAgent(_)) | None => {}
        }
        self.drain(now);
    }

    /// One of a mobile node's interfaces works from now on, or does not.
    pub fn handle_link(&mut self, interface: u32, works: bool, now: Instant) {
        if let Some(Engine::MobileNode(node)) = self.mobile_ip.as_mut().map(|part| &mut part.engine)
        {
            match works {
                true => node.interface_found(interface, now),
                false => node.interface_lost(interface, now),
            }
        }
        self.drain(now);
    }

    /// A datagram that is to go into a home or foreign agent's tunnels: tells of each header with which it is to be
    /// sent. One that is dropped is counted.
    pub fn encapsulate(&mut self, datagram: &[u8], mut each: impl FnMut(Envelope), now: Instant) {
        match self.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => {
                if let Ok(envelope) = agent.tunnel().encapsulate(datagram, now) {
                    each(envelope);
                }
            }
            // What was dropped is counted there.
            Some(Engine::HomeAgent(agent)) => drop(agent.tunnel().encapsulate(datagram, each)),
            Some(Engine::MobileNode(_)) | None => {}
        }
    }

    /// What came in a tunnel of theirs, from the other end: gives the datagram, if it may come out there, and the
    /// header with which it is to be sent on, if it may. What is in UDP is the whole payload, which begins with
    /// [`message::TUNNEL_DATA`].
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Option<TakenOut<'a>> {
        match self.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => {
                agent.tunnel().decapsulate(from, ecn, octets, now).ok()?
            }
            Some(Engine::HomeAgent(agent)) => agent.tunnel().decapsulate(from, ecn, octets).ok(),
            Some(Engine::MobileNode(_)) | None => None,
        }
    }

    // Outputs.

    /// The next message to or from an agent.
    pub fn poll_registration(&mut self) -> Option<Transmit> {
        match &mut self.mobile_ip.as_mut()?.engine {
            Engine::MobileNode(node) => node.poll_transmit(),
            Engine::ForeignAgent(agent) => agent.poll_transmit(),
            Engine::HomeAgent(agent) => agent.poll_transmit(),
        }
    }

    // Getters.

    /// How things are, and what was last refused or failed; `None` if we take no part in it.
    pub fn mobile_ip(&self) -> Option<(Status, Option<&(Instant, String)>)> {
        let part = self.mobile_ip.as_ref()?;
        Some((part.status(), part.refusal.as_ref()))
    }

    /// Packets of tunnels: how many copies went in, how many came out, and how many were both, for who has gone.
    pub fn tunnelled(&self) -> Option<(u64, u64, u64)> {
        let counters = self.mobile_ip.as_ref()?.tunnel_counters()?;
        Some((counters.sent, counters.received, counters.forwarded))
    }

    /// What kept tunnels in UDP alive.
    pub fn keepalives(&self) -> Option<Keepalives> {
        Some(self.mobile_ip.as_ref()?.tunnel_counters()?.keepalives)
    }

    /// Why messages and packets were dropped, and how often: the label of each reason, of which some are of both.
    pub fn mobile_ip_drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let part = self.mobile_ip.as_ref();
        let messages = part.into_iter().flat_map(|part| &part.counters().dropped);
        let messages = messages.map(|(why, count)| (why.label(), *count));
        let tunnel = part.and_then(MobileIp::tunnel_counters);
        let packets = tunnel.into_iter().flat_map(|tunnel| &tunnel.dropped);
        messages.chain(packets.map(|(why, count)| (why.label(), *count)))
    }

    /// Registrations that were accepted, and how often others were denied by which code.
    pub fn registrations(&self) -> Option<(u64, impl Iterator<Item = (u8, u64)>)> {
        let counters = self.mobile_ip.as_ref()?.counters();
        let denied = counters.denied.iter();
        let denied = denied.map(|(code, count)| (code.number(), *count));
        Some((counters.accepted, denied))
    }
}
