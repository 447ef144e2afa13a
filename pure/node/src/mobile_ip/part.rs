//! The engine for the host's role: commands, inputs, outputs and status.

use super::{Config, Event, Status, Stay};
use crate::effects::{IkeCommand, Turn};
use crate::tunnels::desired::Refused;
use crypto::Rng;
use mobility::mobile_ip::{
    Arrival, Attachment, Counters, Dropped, Enclosed, Envelope, ForeignAgent, ForeignEvent,
    HomeAgent, Keepalives, MobileEvent, MobileNode, NtpTime, Remote, Station, TakenOut, Transmit,
    TunnelCounters, TunnelDrop, Visitor,
};
use model::{Deadline, Instant, TrafficSelector};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::ecn::Ecn;

/// A timeout does not replace a reported reason that is more recent than this.
const FRESH: Duration = Duration::from_secs(60);

/// The engine, and the latest refusal.
pub(crate) struct MobileIp {
    engine: Engine,
    refusal: Option<Refused>,
    /// Source of the message that is handled now.
    source: Option<SocketAddr>,
    /// Addresses that a foreign agent's host needs itself, apart from those of its peers.
    reserved: Vec<TrafficSelector>,
    /// Counters at the time of the latest refusal.
    seen: Counters,
    refused: Option<Refused>,
    has_time: bool,
}

enum Engine {
    MobileNode(Box<MobileNode>),
    ForeignAgent(Box<ForeignAgent>),
    HomeAgent(Box<HomeAgent>),
}

impl MobileIp {
    pub(crate) fn new(config: Config, rng: &mut Rng, now: Instant) -> Self {
        let seed = rng.array();
        let engine = match config {
            Config::MobileNode(config) => {
                Engine::MobileNode(Box::new(MobileNode::new(config, seed, now)))
            }
            Config::ForeignAgent(config) => {
                Engine::ForeignAgent(Box::new(ForeignAgent::new(config, seed, now)))
            }
            Config::HomeAgent(config) => Engine::HomeAgent(Box::new(HomeAgent::new(config, seed))),
        };
        Self {
            engine,
            refusal: None,
            source: None,
            reserved: Vec::new(),
            seen: Counters::default(),
            refused: None,
            has_time: false,
        }
    }

    /// Sets the time of day. A home agent follows it. A mobile node takes it once: later the time
    /// of its home agent takes precedence.
    pub(crate) fn set_time(&mut self, time: NtpTime, now: Instant) {
        match &mut self.engine {
            Engine::HomeAgent(agent) => agent.set_wall_clock(time, now),
            Engine::MobileNode(node) if !self.has_time => node.set_wall_clock(time, now),
            Engine::MobileNode(_) | Engine::ForeignAgent(_) => {}
        }
        self.has_time = true;
    }

    /// Ends all registrations of a mobile node. Returns false if there is nothing to wait for.
    pub(crate) fn deregister(&mut self, now: Instant) -> bool {
        let Engine::MobileNode(node) = &mut self.engine else {
            return false;
        };
        node.deregister(now);
        true
    }

    /// Sets the addresses that a foreign agent's host needs itself, apart from those of its peers.
    pub(crate) fn set_reserved(&mut self, reserved: Vec<TrafficSelector>, ike: &ike::Engine) {
        self.reserved = reserved;
        self.reserve(ike);
    }

    /// Sets the reserved addresses again, because the peers may have changed.
    pub(crate) fn reserve(&mut self, ike: &ike::Engine) {
        if let Engine::ForeignAgent(agent) = &mut self.engine {
            let peers = ike.peers().iter().filter_map(|peer| peer.address);
            let peers = peers.filter_map(|address| {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                TrafficSelector::from_prefix(address, bits)
            });
            agent.set_reserved(self.reserved.iter().cloned().chain(peers).collect());
        }
    }

    // Inputs.

    /// Handles an ICMP message from a station of a link.
    pub(crate) fn handle_discovery(
        &mut self,
        interface: u32,
        source: Ipv4Addr,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        match &mut self.engine {
            Engine::MobileNode(node) => {
                node.handle_advertisement(interface, source, station, octets, now);
            }
            Engine::ForeignAgent(agent) => agent.handle_solicitation(interface, octets, now),
            Engine::HomeAgent(_) => {}
        }
    }

    /// Handles a routed UDP datagram to an agent.
    pub(crate) fn handle_registration(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        self.source = Some(arrival.source.into());
        match &mut self.engine {
            Engine::ForeignAgent(agent) => agent.handle_datagram(arrival, octets, now),
            Engine::HomeAgent(agent) => agent.handle_datagram(arrival, octets, now),
            Engine::MobileNode(_) => {}
        }
    }

    /// Handles a UDP datagram from a station of a link.
    pub(crate) fn handle_nearby(
        &mut self,
        arrival: &Arrival,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        self.source = Some(arrival.source.into());
        match &mut self.engine {
            Engine::ForeignAgent(agent) => agent.handle_nearby(arrival, station, octets, now),
            Engine::MobileNode(node) => {
                let source = *arrival.source.ip();
                node.handle_reply(arrival.interface, source, station, octets, now);
            }
            Engine::HomeAgent(_) => {}
        }
    }

    /// Records that an interface of a mobile node works or does not work any more.
    pub(crate) fn handle_link(&mut self, interface: u32, works: bool, now: Instant) {
        if let Engine::MobileNode(node) = &mut self.engine {
            match works {
                true => node.interface_found(interface, now),
                false => node.interface_lost(interface, now),
            }
        }
    }

    /// Encapsulates a datagram into the tunnels of an agent: see [`crate::Node::encapsulate`].
    pub(crate) fn encapsulate(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(Envelope),
        now: Instant,
    ) {
        match &mut self.engine {
            Engine::ForeignAgent(agent) => {
                if let Ok(envelope) = agent.tunnel().encapsulate(datagram, now) {
                    each(envelope);
                }
            }
            // The tunnel has already counted a dropped datagram.
            Engine::HomeAgent(agent) => drop(agent.tunnel().encapsulate(datagram, each)),
            Engine::MobileNode(_) => {}
        }
    }

    /// Decapsulates a packet of a tunnel: see [`crate::Node::decapsulate`]. Returns `Ok(None)` for
    /// a message that concerns the tunnel itself.
    pub(crate) fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Result<Option<TakenOut<'a>>, TunnelDrop> {
        match &mut self.engine {
            Engine::ForeignAgent(agent) => agent.decapsulate(from, ecn, octets, now),
            Engine::HomeAgent(agent) => {
                let taken = agent.tunnel().decapsulate(from, ecn, octets);
                taken.map(Some)
            }
            Engine::MobileNode(_) => Ok(None),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.engine {
            Engine::MobileNode(node) => node.handle_timeout(now),
            Engine::ForeignAgent(agent) => agent.handle_timeout(now),
            Engine::HomeAgent(agent) => agent.handle_timeout(now),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        match &self.engine {
            Engine::MobileNode(node) => node.poll_timeout(),
            Engine::ForeignAgent(agent) => agent.poll_timeout(),
            Engine::HomeAgent(agent) => agent.poll_timeout(),
        }
    }

    // Outputs.

    /// Returns the next registration message to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        match &mut self.engine {
            Engine::MobileNode(node) => node.poll_transmit(),
            Engine::ForeignAgent(agent) => agent.poll_transmit(),
            Engine::HomeAgent(agent) => agent.poll_transmit(),
        }
    }

    /// Returns the next event.
    pub(crate) fn poll_event(&mut self, turn: &mut Turn<'_>) -> Option<Event> {
        let event = self.next_event(turn.now)?;
        if let Event::MobileNode(MobileEvent::Route(Some(_))) = event {
            // Not at once: the driver first has to install routes.
            turn.add(IkeCommand::Hasten);
        }
        Some(event)
    }

    fn next_event(&mut self, now: Instant) -> Option<Event> {
        self.judge(now);
        if let Some(refused) = self.refused.take() {
            return Some(Event::Refused(refused));
        }
        let event = match &mut self.engine {
            Engine::MobileNode(node) => Event::MobileNode(node.poll_event()?),
            Engine::ForeignAgent(agent) => Event::ForeignAgent(agent.poll_event()?),
            Engine::HomeAgent(agent) => Event::HomeAgent(agent.poll_event()?),
        };
        if let Event::ForeignAgent(ForeignEvent::Unheard(visitor)) = event {
            let home_agent = visitor.home_agent;
            let why = format!("nothing comes back in UDP from the home agent {home_agent}");
            self.refusal = Some(Refused {
                at: now,
                from: None,
                why: why.into(),
            });
        }
        if let Event::ForeignAgent(ForeignEvent::Unproved(claim)) = event {
            let Visitor {
                home, home_agent, ..
            } = claim;
            let why = format!(
                "another mobile node has {home}, and the home agent {home_agent} is not on its route"
            );
            self.refusal = Some(Refused {
                at: now,
                from: None,
                why: why.into(),
            });
        }
        if let Event::MobileNode(MobileEvent::Silent(at)) = event {
            let is_fresh = |refused: &Refused| now.since(refused.at) < FRESH;
            if !self.refusal.as_ref().is_some_and(is_fresh) {
                let why = format!("nothing came back through the foreign agent {}", at.agent);
                self.refusal = Some(Refused {
                    at: now,
                    from: None,
                    why: why.into(),
                });
            }
        }
        Some(event)
    }

    /// Returns the agent that a mobile node currently sends a request to.
    pub(crate) fn poll_asked(&mut self) -> Option<Attachment> {
        match &mut self.engine {
            Engine::MobileNode(node) => node.poll_asked(),
            Engine::ForeignAgent(_) | Engine::HomeAgent(_) => None,
        }
    }

    /// Encloses octets in the next request to an agent.
    pub(crate) fn enclose(&mut self, at: Attachment, octets: Vec<u8>) -> bool {
        match &mut self.engine {
            Engine::MobileNode(node) => node.enclose(at, octets),
            Engine::ForeignAgent(_) | Engine::HomeAgent(_) => false,
        }
    }

    /// Returns octets that a visitor enclosed in its request to this foreign agent.
    pub(crate) fn poll_enclosed(&mut self) -> Option<Enclosed> {
        match &mut self.engine {
            Engine::ForeignAgent(agent) => agent.poll_enclosed(),
            Engine::MobileNode(_) | Engine::HomeAgent(_) => None,
        }
    }

    /// Returns the care-of addresses for a peer at this address, the newest first; `None` if Mobile
    /// IP does not serve the peer here.
    pub(crate) fn care_of(&self, peer: IpAddr) -> Option<Vec<IpAddr>> {
        match &self.engine {
            Engine::MobileNode(node) => {
                let route = node.route();
                Some(route.map(|at| at.care_of.into()).into_iter().collect())
            }
            Engine::HomeAgent(agent) => {
                let mut homes = agent.bindings();
                let (_, bindings) = homes.find(|(home, _)| IpAddr::from(*home) == peer)?;
                let places: Vec<_> = bindings.map(|place| place.care_of.into()).collect();
                Some(places.into_iter().rev().collect())
            }
            Engine::ForeignAgent(_) => None,
        }
    }

    /// Returns true if a peer at this address is a mobile node of this home agent that has no
    /// binding.
    pub(crate) fn is_unbound(&self, peer: IpAddr) -> bool {
        let is_home_agent = matches!(self.engine, Engine::HomeAgent(_));
        is_home_agent && self.care_of(peer).is_some_and(|places| places.is_empty())
    }

    /// Derives from the counters whether a message was refused since the last call.
    fn judge(&mut self, now: Instant) {
        let from = self.source.take();
        let counters = self.counters();
        if *counters == self.seen {
            return;
        }
        let counters = counters.clone();
        let seen = std::mem::replace(&mut self.seen, counters);
        let denied = self.seen.denied.iter();
        let mut denied = denied.filter(|(code, count)| seen.denied.get(code) != Some(count));
        let dropped = self.seen.dropped.iter();
        let dropped = dropped.filter(|(why, count)| seen.dropped.get(why) != Some(count));
        let mut unproved = dropped.filter(|(why, _)| is_refusal(**why));
        let denied = denied.next().map(|(code, _)| code.to_string());
        let unproved = unproved.next().map(|(why, _)| why.to_string());
        // A mobile node reports a denial by an event of its own.
        let is_told = matches!(self.engine, Engine::MobileNode(_)) && denied.is_some();
        if let Some(why) = denied.or(unproved) {
            let refused = Refused {
                at: now,
                from,
                why: why.into(),
            };
            self.refused = (!is_told).then(|| refused.clone());
            self.refusal = Some(refused);
        }
    }

    const fn counters(&self) -> &Counters {
        match &self.engine {
            Engine::MobileNode(node) => node.counters(),
            Engine::ForeignAgent(agent) => agent.counters(),
            Engine::HomeAgent(agent) => agent.counters(),
        }
    }

    const fn tunnel_counters(&self) -> Option<&TunnelCounters> {
        match &self.engine {
            Engine::MobileNode(_) => None,
            Engine::ForeignAgent(agent) => Some(agent.tunnel_counters()),
            Engine::HomeAgent(agent) => Some(agent.tunnel_counters()),
        }
    }

    // Status.

    /// Returns the latest refusal or failure.
    pub(crate) const fn refusal(&self) -> Option<&Refused> {
        self.refusal.as_ref()
    }

    /// Returns the numbers of packets encapsulated, decapsulated, and forwarded for visitors that
    /// have left.
    pub(crate) fn tunnelled(&self) -> Option<(u64, u64, u64)> {
        let counters = self.tunnel_counters()?;
        Some((counters.sent, counters.received, counters.forwarded))
    }

    /// Returns the counters of keepalives in UDP tunnels.
    pub(crate) fn keepalives(&self) -> Option<Keepalives> {
        Some(self.tunnel_counters()?.keepalives)
    }

    /// Returns the numbers of dropped messages and packets, by the label of the reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let messages = self.counters().dropped.iter();
        let messages = messages.map(|(why, count)| (why.label(), *count));
        let tunnel = self.tunnel_counters().into_iter();
        let packets = tunnel.flat_map(|tunnel| &tunnel.dropped);
        messages.chain(packets.map(|(why, count)| (why.label(), *count)))
    }

    /// Returns the number of accepted registrations and the numbers of denied ones by code.
    pub(crate) fn registrations(&self) -> (u64, impl Iterator<Item = (u8, u64)>) {
        let counters = self.counters();
        let denied = counters.denied.iter();
        let denied = denied.map(|(code, count)| (code.number(), *count));
        (counters.accepted, denied)
    }

    pub(crate) fn status(&self) -> Status {
        match &self.engine {
            Engine::MobileNode(node) => Status::MobileNode {
                home: node.config().home,
                home_agent: node.config().home_agent,
                registrations: node.standing().collect(),
                route: node.route(),
            },
            Engine::ForeignAgent(agent) => Status::ForeignAgent {
                care_of: agent.config().care_of,
                visitors: agent
                    .visitors()
                    .map(|visitor| {
                        let home = visitor.home;
                        Stay {
                            visitor,
                            until: agent.until(home),
                            gone_to: agent.gone_to(home),
                            is_in_udp: agent.is_in_udp(home),
                        }
                    })
                    .collect(),
            },
            Engine::HomeAgent(agent) => Status::HomeAgent {
                address: agent.config().address,
                homes: agent
                    .bindings()
                    .map(|(home, bindings)| (home, bindings.collect()))
                    .collect(),
            },
        }
    }
}

/// Returns true for drops of messages whose sender claims to be known, or violates what neighbours
/// agreed on. All other drops concern unknown senders.
const fn is_refusal(why: Dropped) -> bool {
    matches!(
        why,
        Dropped::NotAuthenticMobile
            | Dropped::NotAuthenticForeign
            | Dropped::StrangeForeign
            | Dropped::StrangeNeighbour
            | Dropped::NoNoteKey
            | Dropped::OldNote
            | Dropped::NotSentOn
            | Dropped::NeighbourSilent
            | Dropped::UnknownMobile
            | Dropped::NoClock
    )
}
