//! Mobile IP of a node: commands, inputs, outputs and getters.

use super::*;
use crate::Node;

impl Node {
    // Commands.

    /// Sets the time of day, which proves that registrations and tokens are recent.
    pub fn set_time_of_day(&mut self, time: NtpTime, now: Instant) {
        self.own.licensing.migration().set_time(time, now);
        if let Some(part) = &mut self.own.mobile_ip {
            part.set_time(time, now);
        }
    }

    /// Ends all registrations of a mobile node; [`MobileEvent::Deregistered`] follows. Returns
    /// false if there is nothing to wait for.
    pub fn deregister(&mut self, now: Instant) -> bool {
        let part = self.own.mobile_ip.as_mut().map(|part| &mut part.engine);
        let Some(Engine::MobileNode(node)) = part else {
            return false;
        };
        node.deregister(now);
        self.drain(now);
        true
    }

    /// Sets the addresses that a foreign agent's host needs itself, apart from those of its peers:
    /// its own, the networks of its interfaces, next hops and name servers. A visitor cannot have a
    /// home address among them.
    pub fn set_reserved(&mut self, reserved: Vec<TrafficSelector>, now: Instant) {
        if let Some(part) = &mut self.own.mobile_ip {
            part.reserved = reserved;
        }
        self.reserve();
        self.drain(now);
    }

    /// Sets the reserved addresses again, because the peers may have changed.
    pub(crate) fn reserve(&mut self) {
        let Some(part) = &mut self.own.mobile_ip else {
            return;
        };
        if let Engine::ForeignAgent(agent) = &mut part.engine {
            let peers = self.ike.peers().iter().filter_map(|peer| peer.address);
            let peers = peers.filter_map(|address| {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                TrafficSelector::from_prefix(address, bits)
            });
            agent.set_reserved(part.reserved.iter().cloned().chain(peers).collect());
        }
    }

    // Inputs.

    /// Handles an ICMP message from a station of a link, received on an interface of Mobile IP: an
    /// agent advertisement or solicitation.
    pub fn handle_discovery(
        &mut self,
        interface: u32,
        source: Ipv4Addr,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        match self.own.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::MobileNode(node)) => {
                node.handle_advertisement(interface, source, station, octets, now);
            }
            Some(Engine::ForeignAgent(agent)) => agent.handle_solicitation(interface, octets, now),
            Some(Engine::HomeAgent(_)) | None => {}
        }
        self.drain(now);
    }

    /// Handles a routed UDP datagram to an agent: for port 434, or an answer to a message from
    /// another port.
    pub fn handle_registration(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        match self.own.mobile_ip.as_mut().map(|part| part.hears(arrival)) {
            Some(Engine::ForeignAgent(agent)) => agent.handle_datagram(arrival, octets, now),
            Some(Engine::HomeAgent(agent)) => agent.handle_datagram(arrival, octets, now),
            Some(Engine::MobileNode(_)) | None => {}
        }
        self.drain(now);
    }

    /// Handles a UDP datagram from a station of a link: from an agent to a mobile node, or from a
    /// visitor to a foreign agent. Messages of agents are not accepted there.
    pub fn handle_nearby(
        &mut self,
        arrival: &Arrival,
        station: Station,
        octets: &[u8],
        now: Instant,
    ) {
        match self.own.mobile_ip.as_mut().map(|part| part.hears(arrival)) {
            Some(Engine::ForeignAgent(agent)) => agent.handle_nearby(arrival, station, octets, now),
            Some(Engine::MobileNode(node)) => {
                let source = *arrival.source.ip();
                node.handle_reply(arrival.interface, source, station, octets, now);
            }
            Some(Engine::HomeAgent(_)) | None => {}
        }
        self.drain(now);
    }

    /// Records that an interface of a mobile node works or does not work any more.
    pub fn handle_link(&mut self, interface: u32, works: bool, now: Instant) {
        if let Some(Engine::MobileNode(node)) =
            self.own.mobile_ip.as_mut().map(|part| &mut part.engine)
        {
            match works {
                true => node.interface_found(interface, now),
                false => node.interface_lost(interface, now),
            }
        }
        self.drain(now);
    }

    /// Encapsulates a datagram into the tunnels of a home or foreign agent. Calls `each` with every
    /// header to send it with. A dropped datagram is counted.
    pub fn encapsulate(&mut self, datagram: &[u8], mut each: impl FnMut(Envelope), now: Instant) {
        match self.own.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => {
                if let Ok(envelope) = agent.tunnel().encapsulate(datagram, now) {
                    each(envelope);
                }
            }
            // The tunnel has already counted a dropped datagram.
            Some(Engine::HomeAgent(agent)) => drop(agent.tunnel().encapsulate(datagram, each)),
            Some(Engine::MobileNode(_)) | None => {}
        }
    }

    /// Decapsulates a packet from the other end of a tunnel. Returns the datagram if it may leave
    /// the tunnel, with the header to forward it with, if there is one. For UDP encapsulation
    /// `octets` is the whole payload, which begins with [`message::TUNNEL_DATA`].
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Option<TakenOut<'a>> {
        match self.own.mobile_ip.as_mut().map(|part| &mut part.engine) {
            Some(Engine::ForeignAgent(agent)) => {
                let taken = agent.decapsulate(from, ecn, octets, now).ok()?;
                if taken.is_none() {
                    self.drain(now);
                }
                taken
            }
            Some(Engine::HomeAgent(agent)) => agent.tunnel().decapsulate(from, ecn, octets).ok(),
            Some(Engine::MobileNode(_)) | None => None,
        }
    }

    // Outputs.

    /// Returns the next registration message to send.
    pub fn poll_registration(&mut self) -> Option<Transmit> {
        match &mut self.own.mobile_ip.as_mut()?.engine {
            Engine::MobileNode(node) => node.poll_transmit(),
            Engine::ForeignAgent(agent) => agent.poll_transmit(),
            Engine::HomeAgent(agent) => agent.poll_transmit(),
        }
    }

    // Getters.

    /// Returns the status, with the latest refusal or failure; `None` without a role in Mobile
    /// IPv4.
    pub fn mobile_ip(&self) -> Option<(Status, Option<&Refused>)> {
        let part = self.own.mobile_ip.as_ref()?;
        Some((part.status(), part.refusal.as_ref()))
    }

    /// Returns the numbers of packets encapsulated (counting each copy), decapsulated, and
    /// forwarded for visitors that have left.
    pub fn tunnelled(&self) -> Option<(u64, u64, u64)> {
        let counters = self.own.mobile_ip.as_ref()?.tunnel_counters()?;
        Some((counters.sent, counters.received, counters.forwarded))
    }

    /// Returns the counters of keepalives in UDP tunnels.
    pub fn keepalives(&self) -> Option<Keepalives> {
        Some(self.own.mobile_ip.as_ref()?.tunnel_counters()?.keepalives)
    }

    /// Returns the numbers of dropped messages and packets, by the label of the reason. Some labels
    /// occur for both.
    pub fn mobile_ip_drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let part = self.own.mobile_ip.as_ref();
        let messages = part.into_iter().flat_map(|part| &part.counters().dropped);
        let messages = messages.map(|(why, count)| (why.label(), *count));
        let tunnel = part.and_then(MobileIp::tunnel_counters);
        let packets = tunnel.into_iter().flat_map(|tunnel| &tunnel.dropped);
        messages.chain(packets.map(|(why, count)| (why.label(), *count)))
    }

    /// Returns the number of accepted registrations and the numbers of denied ones by code.
    pub fn registrations(&self) -> Option<(u64, impl Iterator<Item = (u8, u64)>)> {
        let counters = self.own.mobile_ip.as_ref()?.counters();
        let denied = counters.denied.iter();
        let denied = denied.map(|(code, count)| (code.number(), *count));
        Some((counters.accepted, denied))
    }
}
