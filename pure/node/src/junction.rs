//! Where the engines meet: what one of them says becomes commands for the others.

use crate::config::Role;
use crate::grants::Gone;
use crate::mobile_ip::{self, MobileEvent};
use crate::node::{Child, Node};
use crate::status::ChildStatus;
use crate::succession::Heir;
use crate::{Dropped, Ending, Event, HeldGrant, KeyLog, keylog};
use crypto::Secret;
use esp::{Traffic, Unusable};
use ike::is_slot;
use model::{ChildSa, ChildSaId, Grant, Identity, IkeSaId, Instant};
use std::net::{IpAddr, SocketAddr};
use wire::ike::RefusalCode;

impl Node {
    /// Turns what the engines have to say into commands for each other. Only place where they
    /// are asked.
    pub(crate) fn drain(&mut self, now: Instant) {
        while let Some(report) = self.workers.poll_report() {
            self.handle_report(report, now);
        }
        loop {
            while let Some(event) = self.ike.poll_event() {
                self.handle_ike(event, now);
            }
            if self.take_steps(now) {
                continue;
            }
            let part = self.mobile_ip.as_mut();
            if let Some(event) = part.and_then(|part| part.poll_event(now)) {
                if let mobile_ip::Event::MobileNode(MobileEvent::Route(Some(_))) = event {
                    // Not at once: first the driver has to lead packets there.
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
            ike::Event::Redirected { old, sa, peer, to } => self.redirected(old, sa, peer, to),
            ike::Event::FellBack { old, sa, peer, to } => self.fell_back(old, sa, peer, to),
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
            } => self.mobile(sa, path, addresses),
            // Where we are to be found is for the other end to know.
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
            ike::Event::Neighbours { node, neighbours } => {
                self.whereabouts.note_neighbours(node, neighbours);
            }
            ike::Event::KeysAsked { sa, node, token } => self.keys_asked(sa, node, &token, now),
            ike::Event::KeysAnswered { sa, token, answer } => {
                self.keys_answered(sa, &token, answer, now);
            }
            ike::Event::Refused { peer, why } => {
                let peer = peer.or_else(|| self.claimed(&why));
                self.not_licensed(peer.as_deref(), &why);
                self.refused(peer, why.to_string(), now);
            }
        }
    }

    fn handle_report(&mut self, report: esp::Report, now: Instant) {
        match report {
            esp::Report::RekeySoon(id) => {
                if let Some(child) = self.children.get(&id) {
                    self.ike.rekey_child(child.ike, id, now);
                }
            }
            esp::Report::Confirmed(id) => {
                self.succession.confirm(id);
                if let Some(child) = self.children.get(&id) {
                    self.ike.note_inbound(child.ike, now);
                }
            }
            esp::Report::UnusedEcn(id) => {
                let child = self.children.get(&id);
                self.events.extend(child.map(|child| Event::EcnUnused {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::Unpadded(id) => {
                let child = self.children.get(&id);
                self.events.extend(child.map(|child| Event::Unpadded {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::LevelSpent(id) => {
                let child = self.children.get(&id);
                self.events.extend(child.map(|child| Event::LevelSpent {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
            esp::Report::LevelRefused(id) => {
                let child = self.children.get(&id);
                self.events.extend(child.map(|child| Event::LevelRefused {
                    peer: child.peer.clone(),
                    child: child.status.name.clone(),
                }));
            }
        }
    }

    /// The peer that somebody who was refused claimed to be. While that peer is up its line in the
    /// status is its own: strangers cannot write there.
    fn claimed(&self, why: &ike::Refusal) -> Option<String> {
        let claimed = why.claimed()?;
        let peer = self.peers.iter().find(|peer| peer.identity == *claimed)?;
        let up = self.wishes.get(&peer.name)?.up_since.is_some();
        (!up).then(|| peer.name.clone())
    }

    pub(crate) fn refused(&mut self, peer: Option<String>, why: String, now: Instant) {
        match &peer {
            Some(name) => self.wishes.refused(name, why.clone(), now),
            None => self.stranger = Some((now, why.clone())),
        }
        self.events.push_back(Event::Refused { peer, why });
    }

    fn ike_up(&mut self, sa: IkeSaId, peer: String, now: Instant) {
        self.wishes.up(&peer, sa, now);
        if self.key_log {
            self.log_ike_keys(sa);
        }
        self.events.push_back(Event::PeerUp { peer: peer.clone() });
        self.whereabouts.stir(&peer);
        self.tell_neighbours(sa, now);
        self.distribute(&peer, now);
    }

    fn ike_replaced(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, now: Instant) {
        if self.key_log {
            self.log_ike_keys(sa);
        }
        self.go_by(old, sa, &peer, now);
        self.events.push_back(Event::Reauthenticated { peer });
    }

    /// What went by the old one goes by the new one from now on. The old one's children and grants stay
    /// until it is down.
    fn go_by(&mut self, old: IkeSaId, sa: IkeSaId, peer: &str, now: Instant) {
        self.wishes.up(peer, sa, now);
        self.whereabouts.stir(peer);
        self.grants.node_lost(old, now);
        self.distribute(peer, now);
    }

    /// There is another one, which carries nothing yet.
    fn ike_cloned(&mut self, old: IkeSaId, sa: IkeSaId, peer: String) {
        if self.key_log {
            self.log_ike_keys(sa);
        }
        if let Some(lent) = self.inside.get(&old).cloned() {
            self.inside.insert(sa, lent);
        }
        self.events.push_back(Event::Cloned { peer });
    }

    /// It carries all that the other one did.
    fn handed_over(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, now: Instant) {
        self.moving.hand_over(old, sa);
        self.go_by(old, sa, &peer, now);
        let path = self.ike.sa(sa).map(|sa| sa.path);
        self.events
            .extend(path.map(|path| Event::HandedOver { peer, path }));
    }

    /// What was being made is made at another gateway. What is up stays until it is.
    fn redirected(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, to: IpAddr) {
        self.begun_instead(old, sa, &peer);
        self.events.push_back(Event::Redirected { peer, to });
    }

    /// What was being made is made in a stream.
    fn fell_back(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, to: SocketAddr) {
        self.begun_instead(old, sa, &peer);
        self.events.push_back(Event::FellBack { peer, to });
    }

    fn begun_instead(&mut self, old: IkeSaId, sa: IkeSaId, peer: &str) {
        let entry = self.wishes.get(peer);
        if entry.is_some_and(|entry| entry.sa == Some(old) && entry.up_since.is_none()) {
            self.wishes.started(peer, sa);
        }
    }

    fn ike_down(&mut self, sa: IkeSaId, peer: String, why: &ike::DownReason, now: Instant) {
        let ending = ending(why);
        let why = why.to_string();
        let children: Vec<_> = self
            .children
            .iter()
            .filter(|(_, child)| child.ike == sa)
            .map(|(id, _)| *id)
            .collect();
        children
            .into_iter()
            .for_each(|child| self.child_down(child, ending.clone(), now));
        let lent = self.inside.remove(&sa);
        for held in self.transit.gateway_lost(sa) {
            self.dropped(held, Dropped::GatewayGone);
        }
        for (lost, node) in self.grants.node_lost(sa, now) {
            self.events.push_back(Event::GrantEnded {
                sa: lost,
                node,
                given: true,
                why: Ending::NodeGone(why.clone()),
            });
        }
        self.moving.forget(sa);
        self.fall_back(&peer, sa, now);
        self.whereabouts.stir(&peer);
        if self.established(&peer).is_some_and(|other| other != sa) {
            self.keep_inside(&peer, lent);
        } else {
            self.wishes.down(&peer, Some(sa), why.clone(), now);
            let peer = peer.clone();
            self.events.push_back(Event::PeerDown { peer, why });
        }
        self.distribute(&peer, now);
    }

    /// An IKE SA is gone that another has the place of. By that one the peer may lend other addresses.
    fn keep_inside(&mut self, peer: &str, gone: Option<(String, ike::Inside)>) {
        let kept = self.inside.values().find(|(name, _)| name == peer);
        if let (Some((_, gone)), Some((_, kept))) = (gone, kept)
            && gone != *kept
        {
            let (peer, addresses) = (peer.to_owned(), kept.addresses);
            self.events.push_back(Event::Configured { peer, addresses });
        }
    }

    /// Of two IKE SAs that were made at once, or cloned, the one that goes may be the one that came last,
    /// or that grants went by.
    fn fall_back(&mut self, peer: &str, gone: IkeSaId, now: Instant) {
        let entry = self.wishes.get(peer);
        let without = entry.is_some_and(|entry| entry.sa.is_none_or(|sa| sa == gone));
        let is_up = |sa: &ike::SaStatus| {
            sa.since.is_some() && !sa.leaving && sa.peer.as_deref() == Some(peer)
        };
        let other = self.ike.sas().find(is_up).map(|sa| sa.id);
        if let Some(other) = other.filter(|_| without) {
            self.wishes.up(peer, other, now);
        }
    }

    fn configured(&mut self, sa: IkeSaId, peer: String, inside: ike::Inside) {
        let addresses = inside.addresses;
        self.inside.insert(sa, (peer.clone(), inside));
        self.events.push_back(Event::Configured { peer, addresses });
    }

    fn child_up(&mut self, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildUp {
            peer: child.peer.clone(),
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            mode: child.mode,
        });
        let id = child.id;
        if child.resource.is_some_and(|number| number > 0) || is_slot(child.name.as_deref()) {
            self.succession.begin(id, beside(&child), now);
            return self.install(child, None, now);
        }
        self.install(child, None, now);
        self.prefer(id);
    }

    /// A child takes the place of another, step by step.
    fn child_rekeyed(&mut self, old: ChildSaId, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildRekeyed {
            peer: child.peer.clone(),
            child: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            exchanges: child.exchanges.clone(),
        });
        let before = self.children.get(&old);
        let heir = Heir {
            old: Some(old),
            anew: before.is_some_and(|before| before.ike != child.ike),
            ..beside(&child)
        };
        let new = child.id;
        self.succession.begin(new, heir, now);
        self.set_draining(old, true);
        self.install(child, Some(old), now);
        self.limit_others(new, now);
    }

    /// One that was replaced is deleted: its successor carries everything from now on. One without is
    /// missed when nothing of it can come any more.
    fn child_retired(&mut self, old: ChildSaId) {
        if let Some(new) = self.succession.heir_of(old) {
            self.prefer(new);
        }
        self.workers.retire(old);
        if let Some(child) = self.children.get_mut(&old) {
            child.retired = true;
            self.whereabouts.stir(&child.peer);
        }
    }

    fn set_draining(&mut self, child: ChildSaId, draining: bool) {
        if let Some(child) = self.children.get_mut(&child) {
            child.status.draining = draining;
        }
    }

    /// Sends on those successors from now on that peers and licensed nodes are ready for.
    fn switch(&mut self, now: Instant) {
        let is_awaited = |peer: &str, node: &Identity| self.whereabouts.is_awaited(peer, node);
        let settled = |id| self.grants.settled(id, is_awaited);
        for id in self.succession.ready(settled, now) {
            self.prefer(id);
        }
    }

    /// Sends on a child from now on. On a slot only where its node is, and then before the first child.
    pub(crate) fn prefer(&mut self, id: ChildSaId) {
        self.succession.settle(id);
        let Some(child) = self.children.get(&id) else {
            return;
        };
        if is_slot(child.status.name.as_deref()) {
            return self.whereabouts.stir(&child.peer);
        }
        if !self.grants.is_closed(id) {
            self.workers.prefer(id);
        }
        if let Some(slot) = self.whereabouts.sent_on(&child.peer) {
            self.workers.prefer(slot);
        }
    }

    fn ike_rekeyed(&mut self, sa: IkeSaId, peer: String) {
        if self.key_log {
            self.log_ike_keys(sa);
        }
        self.events.push_back(Event::IkeRekeyed { peer });
    }

    /// Enters a child in every book; packets that come on it are opened from now on.
    fn install(&mut self, child: ChildSa<Secret>, old: Option<ChildSaId>, now: Instant) {
        if self.key_log {
            let lines = keylog::esp_lines(&child);
            self.events.extend(
                lines
                    .into_iter()
                    .map(|line| Event::KeyLog(KeyLog::Esp(line))),
            );
        }
        let name = child.name.as_deref();
        let licensed = self.peers.iter().filter(|node| {
            node.role == Role::Licensed && self.is_given(&child.peer, name, &node.identity)
        });
        let licensed: Vec<_> = licensed
            .map(|node| (node.name.clone(), node.identity.clone()))
            .collect();
        let onward = self.onward(&child.peer, name);
        self.grants.enter(
            (&child, onward),
            old,
            licensed.iter().map(|(name, node)| (name, node)),
            &mut self.rng,
            now,
        );
        if is_slot(name) {
            self.whereabouts.stir(&child.peer);
        }
        self.licensed(&child);
        let status = ChildStatus {
            name: child.name.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            esn: child.outbound.keys.is_extended(),
            mode: child.mode,
            local: child.local.clone(),
            remote: child.remote.clone(),
            path: child.path,
            exchanges: child.exchanges.clone(),
            draining: false,
            waiting: false,
            path_mtu: None,
            mtu: None,
            received: Traffic::default(),
            sent: Traffic::default(),
        };
        let (id, peer, ike) = (child.id, child.peer.clone(), child.ike);
        let zoned = child.agreement.is_some();
        if let Err(unusable) = self.workers.install_beside(child) {
            self.refused(Some(peer), unusable.to_string(), now);
            return self.ike.close(ike, now);
        }
        self.cover.begin(&peer, now);
        self.children.insert(
            id,
            Child {
                peer,
                ike,
                heard: None,
                retired: false,
                status,
            },
        );
        self.measure(id);
        // Nobody is owed keys of an SA without zones.
        if zoned {
            self.limit(id, Ending::Reconfigured, now);
            let names: Vec<_> = self.peers.iter().map(|peer| peer.name.clone()).collect();
            names.iter().for_each(|name| self.distribute(name, now));
        }
    }

    /// Tells who may read a child, if anybody may.
    fn licensed(&mut self, child: &ChildSa<Secret>) {
        let agreed = self.grants.of(child.id);
        let Some(csa) = agreed.filter(|csa| !csa.agreement.licences.is_empty()) else {
            return;
        };
        let lifetime = self
            .peer(&child.peer)
            .map_or_else(Default::default, |peer| {
                let mut beside = peer.children.iter();
                let own = beside.find(|policy| child.name.as_ref() == Some(&policy.name));
                own.map_or(peer.lifetimes.child, |policy| policy.lifetime)
            });
        self.events.push_back(Event::Licensed {
            sa: csa.name(),
            agreement: csa.agreement.clone(),
            lifetime,
        });
    }

    /// Tells which licences of ours are not the peer's as well.
    fn not_licensed(&mut self, peer: Option<&str>, why: &ike::Refusal) {
        let Some(peer) = peer.and_then(|name| self.peer(name)) else {
            return;
        };
        let Role::Vpn { zones, .. } = &peer.role else {
            return;
        };
        let licences = match why {
            ike::Refusal::LicenceNotAccepted(licence) => std::slice::from_ref(licence),
            ike::Refusal::ZonesNotAgreed => &zones.licences[..],
            _ => return,
        };
        let told = licences.iter().filter_map(|licence| {
            let place = usize::from(licence.zone.0).checked_sub(1)?;
            Some(Event::NotLicensed {
                peer: peer.name.clone(),
                licence: licence.clone(),
                zone: zones.zones.get(place)?.0,
                why: why.to_string(),
            })
        });
        let told: Vec<_> = told.collect();
        self.events.extend(told);
    }

    fn child_down(&mut self, id: ChildSaId, why: Ending, now: Instant) {
        let heir = self.succession.heir_of(id);
        if let Some(new) = heir {
            self.prefer(new);
        }
        // What was to take the place of another and never did leaves it where it was.
        let before = self.succession.predecessor(id);
        if let Some(old) = before {
            self.set_draining(old, false);
        }
        self.succession.settle(id);
        self.workers.remove(id);
        let replaced = self.children.get(&id);
        let replaced = replaced.is_some_and(|child| child.status.draining);
        self.revoke(id, if replaced { Ending::Rekeyed } else { why }, now);
        if let Some(child) = self.children.remove(&id) {
            self.whereabouts.forget(&child.peer, id);
            if self.children.values().all(|other| other.peer != child.peer) {
                self.cover.end(&child.peer);
            }
            // One that was replaced is missed by nobody, nor is one where there is still that whose place
            // it was to take, or had taken.
            let missed = !child.status.draining && heir.or(before).is_none();
            let missed = missed && !self.is_relieved(&child);
            if missed {
                self.events.push_back(Event::ChildDown {
                    peer: child.peer,
                    child: child.status.name,
                });
            }
        }
    }

    /// Takes back the keys of a child that is gone.
    fn revoke(&mut self, child: ChildSaId, why: Ending, now: Instant) {
        if let Some(gone) = self.grants.remove(child) {
            self.take_back(gone, &why, now);
        }
    }

    /// Tells licensed nodes, and whoever listens to us, that licences are gone.
    pub(crate) fn take_back(&mut self, gone: Gone, why: &Ending, now: Instant) {
        for name in gone.told {
            if let Some(sa) = self.established(&name) {
                self.ike.revoke(sa, gone.sa.csa, now);
            }
        }
        for (node, given) in gone.licensed {
            self.events.push_back(Event::GrantEnded {
                sa: gone.sa.clone(),
                node,
                given,
                why: why.clone(),
            });
        }
    }

    /// Whether a child that is gone leaves another one in its place: that of the IKE SA that its own was
    /// cloned from, which carries all again.
    fn is_relieved(&mut self, gone: &Child) -> bool {
        let same = |child: &&mut Child| {
            let name = (&child.peer, &child.status.name) == (&gone.peer, &gone.status.name);
            name && child.ike != gone.ike && child.status.draining
        };
        let mut others = self.children.values_mut();
        let other = others.find(same);
        other.map(|other| other.status.draining = false).is_some()
    }

    /// Sends a licensed node whatever it is owed, if its IKE SA is up.
    pub(crate) fn distribute(&mut self, name: &str, now: Instant) {
        let Some(sa) = self.established(name) else {
            return;
        };
        for due in self.grants.take_pending(name, sa, self.grant_lifetime, now) {
            if !self.recording {
                self.ike.distribute(sa, due.grant, now);
                continue;
            }
            self.events.push_back(Event::Giving {
                sa: due.sa,
                node: due.node,
                rights: due.rights,
                lifetime: due.grant.lifetime,
                grant: due.grant.grant,
            });
            self.unrecorded.push((name.to_owned(), sa, due.grant));
        }
    }

    pub(crate) fn established(&self, name: &str) -> Option<IkeSaId> {
        self.wishes
            .get(name)
            .filter(|entry| entry.up_since.is_some())?
            .sa
    }

    /// A licensed node answered KEY_DISTRIBUTE; `refusal` is why not.
    fn grant_answered(
        &mut self,
        sa: IkeSaId,
        csa: model::CsaId,
        refusal: Option<String>,
        now: Instant,
    ) {
        let Some(name) = self.name(sa) else { return };
        let answered = self.grants.answered(&name, csa, refusal.clone(), now);
        let Some((csa, node)) = answered else {
            return;
        };
        let rights = csa
            .licences(&node)
            .map(|licence| (licence.zone, licence.right))
            .collect();
        let sa = csa.name();
        self.events.push_back(match refusal {
            None => Event::Granted { sa, node, rights },
            Some(why) => Event::GrantRefused { sa, node, why },
        });
    }

    /// KEY_DISTRIBUTE arrived: the keys may be used at once.
    fn granted(&mut self, sa: IkeSaId, identity: Identity, grant: Grant<Secret>, now: Instant) {
        let Some(gateway) = self.name(sa) else { return };
        let name = (grant.csa, grant.grant);
        let installed = self
            .transit
            .install(sa, gateway.clone(), identity, grant, now);
        let refusal = match installed {
            Ok(held) => {
                self.events.push_back(Event::GrantHeld(held));
                None
            }
            Err(unusable) => {
                if let Some(held) = self.transit.revoke(sa, name.0) {
                    self.dropped(held, Dropped::Unusable);
                }
                self.events.push_back(Event::GrantUnusable {
                    gateway: gateway.clone(),
                    csa: name.0,
                    why: unusable.to_string(),
                });
                self.refused(Some(gateway), unusable.to_string(), now);
                Some(refusal_code(unusable))
            }
        };
        self.ike.answer_grant(sa, name, refusal, now);
    }

    /// A grant is not ours any more.
    fn revoked(&mut self, sa: IkeSaId, csa: model::CsaId) {
        if let Some(held) = self.transit.revoke(sa, csa) {
            self.dropped(held, Dropped::Revoked);
        }
    }

    pub(crate) fn dropped(&mut self, held: HeldGrant, why: Dropped) {
        self.events.push_back(Event::GrantDropped { held, why });
    }

    /// Name of the peer whose IKE SA this is, be it the newest or not.
    pub(crate) fn name(&self, sa: IkeSaId) -> Option<String> {
        self.ike.sa(sa)?.peer
    }

    pub(crate) fn log_ike_keys(&mut self, sa: IkeSaId) {
        if let Some(keys) = self.ike.key_log(sa) {
            let line = keylog::ike_line(&keys).map(KeyLog::Ike);
            self.events.extend(line.map(Event::KeyLog));
        }
    }
}

/// A child for traffic that others carry as long as it cannot.
fn beside(child: &ChildSa<Secret>) -> Heir {
    let agreement = child.agreement.as_ref();
    Heir {
        old: None,
        ours: child.initiator,
        anew: false,
        licensed: agreement.is_some_and(|agreement| !agreement.licences.is_empty()),
    }
}

/// Why the keys of a child are of no use any more that one of the ends has deleted alone.
fn deleted() -> Ending {
    Ending::Down("the tunnel was deleted".to_owned())
}

/// Why those of all children of an IKE SA are.
fn ending(why: &ike::DownReason) -> Ending {
    match why {
        ike::DownReason::Reconfigured | ike::DownReason::Removed => Ending::Reconfigured,
        ike::DownReason::LifetimeOver => Ending::LifetimeOver,
        why => Ending::Down(why.to_string()),
    }
}

/// What a gateway is told of a grant that cannot be used.
const fn refusal_code(why: Unusable) -> RefusalCode {
    match why {
        Unusable::Crowded => RefusalCode::TOO_MANY_GRANTS,
        Unusable::KeyLength
        | Unusable::NoAead
        | Unusable::Zones
        | Unusable::NoDesignatedZone
        | Unusable::Mode
        | Unusable::Spi => RefusalCode::INVALID_GRANT,
    }
}
