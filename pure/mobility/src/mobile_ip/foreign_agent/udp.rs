//! UDP tunnels (RFC 3519 section 4.5), for an agent behind a NAT.
//!
//! Requests and packets for a home agent leave from one port, so they share one NAT mapping. If the
//! NAT drops the mapping, the home agent's packets are lost until it learns of another. Only a
//! request changes that, and only a mobile node can sign one. The agent therefore restarts the
//! sequence numbers of its advertisements, as after losing its list of visitors.

use super::{ForeignAgent, ForeignEvent};
use crate::mobile_ip::keepalive::Keepalive;
use crate::mobile_ip::transmit::ROUTED;
use crate::mobile_ip::tunnel::IdleAction;
use crate::mobile_ip::{Nat, Remote, Transmit};
use model::Instant;
use std::net::{Ipv4Addr, SocketAddrV4};
use wire::ip_in_ip;
use wire::mobile_ip::{PORT, Request, UdpTunnelReply, UdpTunnelRequest};

impl ForeignAgent {
    /// Appends the request for a UDP tunnel. It is placed "after the Mobile-Home Authentication
    /// Extension" and "before the Foreign-Home Authentication Extension".
    pub(super) fn ask_for_udp(&self, request: &Request, octets: &mut Vec<u8>) {
        if self.config.nat == Nat::Never || request.is_deregistration() {
            return;
        }
        let asked = UdpTunnelRequest {
            forced: self.config.nat == Nat::Always,
            through_agent: false,
            encapsulation: ip_in_ip::PROTOCOL,
        };
        asked.append(octets);
    }

    /// Returns the tunnel to a home agent that has accepted a registration. Without a UDP tunnel
    /// reply packets are not in UDP (section 3.1.1), nor if none was requested (section 4.7).
    pub(super) fn tunnel_to(
        &mut self,
        home_agent: Ipv4Addr,
        said: Option<UdpTunnelReply>,
        now: Instant,
    ) -> (Remote, Option<Keepalive>) {
        self.unheard.remove(&home_agent);
        let said = said.filter(|_| self.config.nat != Nat::Never);
        // "It MUST NOT be set in advertisements from foreign agents which are not situated behind a
        // NAT" (section 3.4).
        self.is_behind_nat = said.is_some_and(|said| said.assents() && !said.forced);
        match said.filter(|said| said.assents()) {
            None => (Remote::Ip(home_agent), None),
            Some(said) => {
                let keepalive = Keepalive::new(self.config.keepalive, said.keepalive, now);
                let end = SocketAddrV4::new(home_agent, PORT);
                (Remote::Udp(end), Some(keepalive))
            }
        }
    }

    /// Sends keepalives through idle tunnels, and asks visitors of lost tunnels to register again.
    pub(super) fn keep_alive(&mut self, now: Instant) {
        for waning in self.tunnel.due(now) {
            match waning {
                IdleAction::Ask(home_agent, octets) => self.transmits.push_back(Transmit::Udp {
                    interface: None,
                    station: None,
                    source: SocketAddrV4::new(self.config.care_of, PORT),
                    destination: home_agent,
                    ttl: ROUTED,
                    octets,
                }),
                IdleAction::Lost(home) => self.lose(home, now),
            }
        }
    }

    /// Handles a lost tunnel. Visitors are asked only once until the home agent accepts a
    /// registration again, so an unreachable home agent does not cause constant requests.
    fn lose(&mut self, home: Ipv4Addr, now: Instant) {
        let Some(entry) = self
            .visitors
            .get(&home)
            .filter(|entry| entry.gone.is_none())
        else {
            return;
        };
        let visitor = entry.visitor;
        if self.unheard.insert(visitor.home_agent) {
            self.beacon.begin_anew(&mut self.rng, now);
        }
        self.events.push_back(ForeignEvent::Unheard(visitor));
    }
}
