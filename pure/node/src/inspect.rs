//! Status that is put together from several owners and engines.

use crate::config::Role;
use crate::licensing::distribution::licences;
use crate::licensing::grants::{Csa, Holder};
use crate::owners::Owners;
use crate::plane::Plane;
use crate::status::{
    ChildStatus, CsaStatus, GrantStatus, PeerNumbers, PeerStatus, SILENT, UserCount,
};
use crate::tunnels::children::Child;
use crate::tunnels::desired::PeerState;
use ike::{SaStatus, is_slot};
use model::{Carrier, ChildSaId, PeerId, PeerNames};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The owners and the engines, to be read.
pub(crate) struct View<'a> {
    pub names: &'a PeerNames,
    pub own: &'a Owners,
    pub ike: &'a ike::Engine,
    pub plane: &'a Plane,
}

impl View<'_> {
    /// Returns the status of every configured peer, in the order of the configuration, then of
    /// every user.
    pub fn peers(&self) -> Vec<PeerStatus> {
        let mut children: BTreeMap<PeerId, Vec<ChildStatus>> = BTreeMap::new();
        for (id, child) in self.own.tunnels.children().iter() {
            let of_peer = children.entry(child.peer).or_default();
            of_peer.push(self.child_status(id, child));
        }
        let status = |peer: &ike::Peer| {
            let children = children.remove(&peer.id);
            self.peer_status(peer, children.unwrap_or_default())
        };
        let all = self.ike.peers().iter().chain(self.ike.users());
        all.filter_map(status).collect()
    }

    /// Returns the status of one peer, without visiting others.
    pub fn peer(&self, id: PeerId) -> Option<PeerStatus> {
        let children = self.own.tunnels.children().of_peer(id);
        let children = children.map(|(id, child)| self.child_status(id, child));
        self.peer_status(self.ike.peer(id)?, children.collect())
    }

    /// Returns the numbers of every peer, in the order of [`Self::peers`].
    pub fn numbers(&self) -> impl Iterator<Item = PeerNumbers> {
        let peers = self.ike.peers().iter().chain(self.ike.users());
        peers.filter_map(|peer| self.numbers_of(peer))
    }

    fn numbers_of(&self, peer: &ike::Peer) -> Option<PeerNumbers> {
        let entry = self.own.tunnels.entry(peer.id)?;
        let current = entry.sa.and_then(|sa| self.ike.sa(sa));
        let up = current.as_ref().filter(|_| entry.up_since.is_some());
        let tally = self.own.tunnels.tally().of(peer.id);
        let mut numbers = PeerNumbers {
            peer: peer.id,
            users: self.user_count(peer),
            has_tunnels: peer.users.is_none() && matches!(peer.role, Role::Vpn { .. }),
            state: entry.state(),
            tunnels: 0,
            unencrypted: false,
            silent: current.as_ref().is_some_and(is_silent),
            heard: up.and_then(|sa| sa.heard),
            round_trip: up.and_then(|sa| sa.round_trip),
            path_mtu: None,
            traffic: tally.gone,
            lost: up.and_then(|sa| self.own.tunnels.lost(sa.id, sa.path)),
            live_paths: self.own.tunnels.count_live_paths(peer.id),
            rekeys: tally.rekeys,
            hand_overs: tally.hand_overs,
        };
        for (id, child) in self.own.tunnels.children().of_peer(peer.id) {
            let seen = self.plane.observed(id);
            let limit = self.own.path_mtus.limit(id).map(|limit| limit.outside);
            numbers.traffic.add(seen.traffic);
            numbers.tunnels += usize::from(!child.status.draining);
            let suite = child.status.suite.filter(|_| !child.status.draining);
            numbers.unencrypted |= suite.is_some_and(|suite| !suite.encrypts());
            numbers.heard = up.and(numbers.heard.max(seen.heard));
            numbers.path_mtu = [numbers.path_mtu, limit].into_iter().flatten().min();
        }
        Some(numbers)
    }

    /// Returns the composite SAs of this endpoint.
    pub fn composite_sas(&self) -> Vec<CsaStatus> {
        let holders = |csa: &Csa| {
            let status = |holder: &Holder| GrantStatus {
                peer: holder.peer,
                node: holder.node.clone(),
                state: holder.state,
                refusal: holder.refusal.as_deref().cloned(),
                since: holder.since,
                licences: csa.licences(&holder.node).cloned().collect(),
            };
            csa.holders.iter().map(status).collect()
        };
        let missing = |child: &ChildSaId, csa: &Csa| {
            let child = self.own.tunnels.children().get(*child);
            let current = child.is_some_and(|child| !child.status.draining);
            let path = child.map(|child| child.status.path);
            let mut ours = licences(csa, path, self.ike);
            ours.retain(|licence| current && !csa.agreement.licences.contains(licence));
            ours
        };
        let status = |(child, csa): (&ChildSaId, &Csa)| CsaStatus {
            missing: missing(child, csa),
            csa: csa.id,
            peer: csa.peer,
            child: csa.child.clone(),
            inbound: csa.inbound.spi,
            outbound: csa.outbound.spi,
            opaque: csa.opaque,
            integrity: csa.integrity,
            level: self.plane.observed(*child).level,
            signal: self.own.tunnels.signal(csa.peer),
            link: self.plane.observed(*child).link,
            agreement: csa.agreement.clone(),
            grants: holders(csa),
        };
        self.own.licensing.grants().iter().map(status).collect()
    }

    /// Returns the number of users of a table that stands for many identities.
    fn user_count(&self, peer: &ike::Peer) -> Option<UserCount> {
        let users = peer.users.as_ref()?;
        Some(UserCount {
            here: self.ike.count_users(peer.id),
            most: users.most,
        })
    }

    fn peer_status(&self, peer: &ike::Peer, children: Vec<ChildStatus>) -> Option<PeerStatus> {
        let entry = self.own.tunnels.entry(peer.id)?;
        let state = match entry.state() {
            PeerState::Down if self.own.naming.is_searching(peer.id) => PeerState::Connecting,
            state => state,
        };
        let current = entry.sa.and_then(|sa| self.ike.sa(sa));
        let kems = current.as_ref().map(|sa| sa.kems.clone());
        let up = current.as_ref().filter(|_| state == PeerState::Up);
        let is_up = |name: &String| {
            children
                .iter()
                .any(|child| child.name.as_ref() == Some(name))
        };
        let named = peer.children.iter().map(|child| &child.name);
        let missing = named.filter(|name| state == PeerState::Up && !is_up(name));
        let missing = missing.cloned().collect();
        let packets = children.iter().filter_map(|child| child.heard);
        let heard = up.and_then(|sa| packets.chain(sa.heard).max());
        Some(PeerStatus {
            name: self.names.name(peer.id).to_owned(),
            table: self
                .ike
                .table_of(peer.id)
                .map(|table| self.names.name(table).to_owned()),
            users: self.user_count(peer),
            windows: up.map(|sa| sa.windows),
            clones: up.is_some_and(|sa| sa.clones),
            sas: self.ike.count_up(peer.id),
            identity: peer.identity.clone(),
            state,
            remote: remote(peer, current.as_ref()),
            naming: self.own.naming.status(peer.id),
            carrier: current.as_ref().map_or(Carrier::Udp, |sa| sa.path.carrier),
            since: entry.up_since,
            heard,
            silent: current.as_ref().is_some_and(is_silent),
            rivals: self.own.tunnels.rivals(peer.id),
            ppk: current.as_ref().is_some_and(|sa| sa.ppk),
            kems: kems.unwrap_or_default(),
            refusal: entry.refusal.as_deref().cloned(),
            addresses: current.and_then(|sa| sa.addresses).unwrap_or_default(),
            children,
            missing,
        })
    }

    fn child_status(&self, id: ChildSaId, child: &Child) -> ChildStatus {
        let seen = self.plane.observed(id);
        let limit = self.own.path_mtus.limit(id);
        let is_slot = is_slot(child.status.name.as_deref());
        ChildStatus {
            waiting: is_slot && self.own.licensing.sent_on(child.peer) != Some(id),
            heard: seen.heard,
            path_mtu: limit.map(|limit| limit.outside),
            path_mtu_origin: self.own.path_mtus.origin(child.status.path),
            mtu: limit.map(|limit| limit.inside),
            received: seen.traffic.opened,
            sent: seen.traffic.sealed,
            pace: seen.pace,
            ..child.status.clone()
        }
    }
}

const fn is_silent(sa: &SaStatus) -> bool {
    sa.tries >= SILENT
}

/// Returns the remote address of the IKE SA or, without an IKE SA, the configured one.
fn remote(peer: &ike::Peer, sa: Option<&SaStatus>) -> Option<SocketAddr> {
    let configured = peer
        .address
        .map(|address| SocketAddr::new(address, ike::PORT));
    sa.map(|sa| sa.path.remote).or(configured)
}
