//! IKE SAs: established, replaced and ended.

use super::ending;
use crate::node::Node;
use crate::peers::Retry;
use crate::{Dropped, Ending, Event, KeyLog, keylog};
use model::{IkeSaId, Instant};
use std::net::{IpAddr, SocketAddr};

impl Node {
    pub(super) fn ike_up(&mut self, sa: IkeSaId, peer: String, now: Instant) {
        let is_new = self.established(&peer).is_none();
        self.wishes.up(&peer, sa, now);
        self.log_ike_keys(sa);
        self.events.push_back(Event::PeerUp { peer: peer.clone() });
        self.whereabouts.stir(&peer);
        let known = self.peer(&peer).filter(|_| is_new);
        if let Some(identity) = known.map(|peer| peer.identity.clone()) {
            self.whereabouts.forget_neighbours(&identity);
        }
        self.tell_neighbours(sa, now);
        self.distribute(&peer, now);
    }

    pub(super) fn ike_replaced(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, now: Instant) {
        self.log_ike_keys(sa);
        self.go_by(old, sa, &peer, now);
        self.events.push_back(Event::Reauthenticated { peer });
    }

    /// Moves everything from the old SA to the new one, except the old SA's children and grants.
    /// Those stay until the old SA is down.
    fn go_by(&mut self, old: IkeSaId, sa: IkeSaId, peer: &str, now: Instant) {
        self.wishes.up(peer, sa, now);
        self.whereabouts.stir(peer);
        self.grants.node_lost(old, now);
        self.distribute(peer, now);
    }

    /// Records a clone of an IKE SA, which does not carry any child SA yet.
    pub(super) fn ike_cloned(&mut self, old: IkeSaId, sa: IkeSaId, peer: String) {
        self.log_ike_keys(sa);
        if let Some(lent) = self.inside.get(&old).cloned() {
            self.inside.insert(sa, lent);
        }
        self.events.push_back(Event::Cloned { peer });
    }

    /// Records that a clone carries everything that the old SA carried.
    pub(super) fn handed_over(&mut self, old: IkeSaId, sa: IkeSaId, peer: String, now: Instant) {
        self.moving.hand_over(old, sa);
        self.go_by(old, sa, &peer, now);
        let path = self.ike.sa(sa).map(|sa| sa.path);
        self.events
            .extend(path.map(|path| Event::HandedOver { peer, path }));
    }

    /// Records that an initiation continues with another gateway. An existing SA stays until the
    /// new one is up.
    pub(super) fn redirected(
        &mut self,
        old: IkeSaId,
        sa: IkeSaId,
        peer: String,
        to: IpAddr,
        now: Instant,
    ) {
        self.begun_instead(old, sa, &peer, now);
        self.events.push_back(Event::Redirected { peer, to });
    }

    /// Records that an initiation continues over TCP.
    pub(super) fn fell_back(
        &mut self,
        old: IkeSaId,
        sa: IkeSaId,
        peer: String,
        to: SocketAddr,
        now: Instant,
    ) {
        self.begun_instead(old, sa, &peer, now);
        self.events.push_back(Event::FellBack { peer, to });
    }

    fn begun_instead(&mut self, old: IkeSaId, sa: IkeSaId, peer: &str, now: Instant) {
        self.initiations.begun(sa, now);
        let entry = self.wishes.get(peer);
        if entry.is_some_and(|entry| entry.sa == Some(old) && entry.up_since.is_none()) {
            self.wishes.started(peer, sa);
        }
    }

    pub(super) fn ike_down(
        &mut self,
        sa: IkeSaId,
        peer: String,
        why: &ike::DownReason,
        now: Instant,
    ) {
        let ending = ending(why);
        let retry = match why.is_wrong_key() {
            true => Retry::Hurried,
            false => Retry::Usual,
        };
        let why = why.to_string();
        let children = self.children.of_peer(&peer);
        let children = children.filter(|(_, child)| child.ike == sa);
        let children: Vec<_> = children.map(|(id, _)| id).collect();
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
        self.silences.forget(sa);
        self.fall_back(&peer, sa, now);
        self.whereabouts.stir(&peer);
        if self.established(&peer).is_some_and(|other| other != sa) {
            self.keep_inside(&peer, lent);
        } else {
            self.wishes.down(&peer, Some(sa), why.clone(), retry, now);
            let peer = peer.clone();
            self.events.push_back(Event::PeerDown { peer, why });
        }
        self.distribute(&peer, now);
    }

    /// Handles the end of an IKE SA that another one replaced. The peer may have assigned other
    /// addresses there.
    fn keep_inside(&mut self, peer: &str, gone: Option<(String, ike::Inside)>) {
        let kept = self.inside.values().find(|(name, _)| name == peer);
        if let (Some((_, gone)), Some((_, kept))) = (gone, kept)
            && gone != *kept
        {
            let (peer, addresses) = (peer.to_owned(), kept.addresses);
            self.events.push_back(Event::Configured { peer, addresses });
        }
    }

    /// Switches to a remaining IKE SA. After a simultaneous initiation or a clone, the SA that
    /// ended may be the latest one, or the one on which grants were sent.
    fn fall_back(&mut self, peer: &str, gone: IkeSaId, now: Instant) {
        let entry = self.wishes.get(peer);
        let without = entry.is_some_and(|entry| entry.sa.is_none_or(|sa| sa == gone));
        let is_up = |sa: &ike::SaStatus| sa.since.is_some() && !sa.leaving;
        let other = self.ike.sas_of(peer).find(is_up).map(|sa| sa.id);
        if let Some(other) = other.filter(|_| without) {
            self.wishes.up(peer, other, now);
        }
    }

    pub(super) fn configured(&mut self, sa: IkeSaId, peer: String, inside: ike::Inside) {
        let addresses = inside.addresses;
        self.inside.insert(sa, (peer.clone(), inside));
        self.events.push_back(Event::Configured { peer, addresses });
    }

    pub(super) fn ike_rekeyed(&mut self, sa: IkeSaId, peer: String) {
        self.log_ike_keys(sa);
        self.events.push_back(Event::IkeRekeyed { peer });
    }

    pub(crate) fn established(&self, name: &str) -> Option<IkeSaId> {
        self.wishes
            .get(name)
            .filter(|entry| entry.up_since.is_some())?
            .sa
    }

    /// Returns the name of the peer of an IKE SA, even if the SA is not the newest.
    pub(crate) fn name(&self, sa: IkeSaId) -> Option<String> {
        self.ike.sa(sa)?.peer
    }

    /// Reports the keys of an IKE SA, if the key log is on.
    pub(crate) fn log_ike_keys(&mut self, sa: IkeSaId) {
        let keys = self.ike.key_log(sa).filter(|_| self.key_log);
        if let Some(keys) = keys {
            let line = keylog::ike_line(&keys).map(KeyLog::Ike);
            self.events.extend(line.map(Event::KeyLog));
        }
    }
}
