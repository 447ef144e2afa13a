//! Connects the engines: events of one become commands for the others.

mod children;
mod licences;
mod sas;

use crate::mobile_ip::{self, MobileEvent};
use crate::node::Node;
use crate::peers::Refused;
use crate::{Ending, Event};
use model::Instant;
use std::net::SocketAddr;

impl Node {
    /// Turns the events of the engines into commands for each other. This is the only place where
    /// they are polled.
    pub(crate) fn drain(&mut self, now: Instant) {
        while let Some(report) = self.workers.poll_report() {
            self.handle_report(report, now);
        }
        loop {
            while let Some(event) = self.ike.poll_event() {
                self.handle_ike(event, now);
            }
            if self.take_steps(now) || self.hand_over_late(now) {
                continue;
            }
            let part = self.mobile_ip.as_mut();
            if let Some(event) = part.and_then(|part| part.poll_event(now)) {
                if let mobile_ip::Event::MobileNode(MobileEvent::Route(Some(_))) = event {
                    // Not at once: the driver first has to install routes.
                    self.ike.hasten(now);
                }
                self.whereabouts.note_mobile_ip(&event);
                self.events.push_back(Event::MobileIp(event));
                continue;
            }
            if self.migrate(now) {
                continue;
            }
            self.switch(now);
            if !self.follow(now) {
                break;
            }
        }
        while let Some(transmit) = self.ike.poll_transmit() {
            self.transmits.push_back(transmit);
        }
    }

    fn handle_ike(&mut self, event: ike::Event, now: Instant) {
        match event {
            ike::Event::IkeUp { sa, peer, .. } => self.ike_up(sa, peer, now),
            ike::Event::IkeReplaced { old, sa, peer } => self.ike_replaced(old, sa, peer, now),
            ike::Event::IkeCloned { old, sa, peer } => self.ike_cloned(old, sa, peer),
            ike::Event::IkeHandedOver { old, sa, peer } => self.handed_over(old, sa, peer, now),
            ike::Event::Redirected { old, sa, peer, to } => {
                self.redirected(old, sa, peer, to, now);
            }
            ike::Event::FellBack { old, sa, peer, to } => {
                self.fell_back(old, sa, peer, to, now);
            }
            ike::Event::IkeDown { sa, peer, why } => self.ike_down(sa, peer, &why, now),
            ike::Event::Configured { sa, peer, inside } => self.configured(sa, peer, inside),
            ike::Event::ChildUp(child) => self.child_up(*child, now),
            ike::Event::ChildRekeyed { old, new } => self.child_rekeyed(old, *new, now),
            ike::Event::ChildAssured { child } => self.succession.confirm(child),
            ike::Event::ChildRetired { child } => self.child_retired(child),
            ike::Event::IkeRekeyed { sa, peer } => self.ike_rekeyed(sa, peer),
            ike::Event::ChildDown { child, why } => {
                self.child_down(child, why.as_ref().map_or_else(deleted, ending), now);
            }
            ike::Event::Granted { sa, gateway, grant } => self.granted(sa, gateway, grant, now),
            ike::Event::Mobile {
                sa,
                decides: true,
                path,
                addresses,
            } => self.mobile(sa, path, addresses, now),
            // The other end tracks our addresses.
            ike::Event::Mobile { decides: false, .. } => {}
            ike::Event::PathMoved { sa, children, path } => self.path_moved(sa, &children, path),
            ike::Event::PathSilent { sa, .. } => self.path_silent(sa, now),
            ike::Event::PathAnswers { sa, path } => self.path_answers(sa, path),
            ike::Event::MoveRefused { sa, .. } => self.move_refused(sa),
            ike::Event::GrantAccepted { sa, csa, .. } => self.grant_answered(sa, csa, None, now),
            ike::Event::GrantRefused { sa, csa, why, .. } => {
                self.grant_answered(sa, csa, Some(why.to_string()), now)
            }
            ike::Event::Revoked { sa, csa } => self.revoked(sa, csa),
            ike::Event::GivenBack { sa, csa } => self.given_back(sa, csa, now),
            ike::Event::Neighbours { node, neighbours } => {
                self.whereabouts.note_neighbours(node, neighbours);
            }
            ike::Event::KeysAsked { sa, node, token } => self.keys_asked(sa, node, &token, now),
            ike::Event::KeysAnswered { sa, token, answer } => {
                self.keys_answered(sa, &token, answer, now);
            }
            ike::Event::Displaced { peer, old, new } => self.displaced(peer, old, new, now),
            ike::Event::Refused { peer, from, why } => {
                let peer = peer.or_else(|| self.claimed(&why));
                self.not_licensed(peer.as_deref(), &why);
                self.refused_from(peer, from, why.to_string(), now);
            }
        }
    }

    fn handle_report(&mut self, report: esp::Report, now: Instant) {
        match report {
            esp::Report::RekeySoon(id) => {
                if let Some(child) = self.children.get(id) {
                    self.ike.rekey_child(child.ike, id, now);
                }
            }
            esp::Report::Confirmed(id) => {
                self.succession.confirm(id);
                if let Some(child) = self.children.get(id) {
                    self.ike.note_inbound(child.ike, now);
                }
            }
            esp::Report::Probe(id, probe) => self.handle_probe(id, probe, now),
            esp::Report::Sends(id) => {
                self.probe_path_of(id, now);
                let ike = self.children.get(id).map(|child| child.ike);
                ike.into_iter()
                    .for_each(|sa| self.silences.sends(sa, id, now));
            }
            esp::Report::Strays(id, from, octets) => {
                let ike = self.children.get(id).map(|child| child.ike);
                ike.into_iter()
                    .for_each(|sa| self.ike.note_stray(sa, from, octets, now));
            }
            esp::Report::UnusedEcn(id) => {
                let child = self.children.get(id);
                self.events.extend(child.map(|child| Event::EcnUnused {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::Unpadded(id) => {
                let child = self.children.get(id);
                self.events.extend(child.map(|child| Event::Unpadded {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::LevelSpent(id) => {
                let child = self.children.get(id);
                self.events.extend(child.map(|child| Event::LevelSpent {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::LevelRefused(id) => {
                let child = self.children.get(id);
                self.events.extend(child.map(|child| Event::LevelRefused {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
        }
    }

    /// Returns the peer that a refused initiator claimed to be. While that peer is up, only the
    /// peer itself can change its status, so that unknown peers cannot write there.
    fn claimed(&self, why: &ike::Refusal) -> Option<String> {
        let claimed = why.claimed()?;
        let peer = self.ike.peers_named(claimed).next()?;
        let up = self.wishes.get(&peer.name)?.up_since.is_some();
        (!up).then(|| peer.name.clone())
    }

    pub(crate) fn refused(&mut self, peer: Option<String>, why: String, now: Instant) {
        self.refused_from(peer, None, why, now);
    }

    /// Records a refusal. `from` is the source of a message that is not authenticated.
    fn refused_from(
        &mut self,
        peer: Option<String>,
        from: Option<SocketAddr>,
        why: String,
        now: Instant,
    ) {
        let refused = Refused {
            at: now,
            from,
            why: why.clone(),
        };
        match &peer {
            Some(name) => self.wishes.refused(name, refused),
            None => self.stranger = Some(refused),
        }
        self.events.push_back(Event::Refused { peer, from, why });
    }
}

/// Reason for a child SA that one end deleted on its own.
fn deleted() -> Ending {
    Ending::Down("the tunnel was deleted".to_owned())
}

/// Reason for all children of an IKE SA that ended.
fn ending(why: &ike::DownReason) -> Ending {
    match why {
        ike::DownReason::Reconfigured | ike::DownReason::Removed => Ending::Reconfigured,
        ike::DownReason::LifetimeOver => Ending::LifetimeOver,
        why => Ending::Down(why.to_string()),
    }
}
