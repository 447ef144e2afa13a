//! The composition: commands, inputs, outputs, and the one place where engines meet.

use crate::config::{Config, Peer, Policy, Role};
use crate::grants::Grants;
use crate::peers::Peers;
use crate::status::{ChildStatus, CsaStatus, GrantStatus, HeldGrant, PeerState, PeerStatus};
use crate::succession::Succession;
use crate::transit::Transit;
use crate::{Event, KeyLog, Side, TransitCounters, Verdict, keylog};
use crypto::{Rng, Secret, UnixTime};
use esp::{Packet, Sink, Spd, Traffic, Unusable, Worker};
use model::{ChildSa, ChildSaId, Deadline, Grant, Identity, IkeSaId, Instant, Path, Transmit};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::ike::RefusalCode;

/// A command named a peer that the configuration does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer")]
pub struct UnknownPeer;

/// What [`Node::rekey`] makes new keys for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rekey {
    /// The child SAs, which carry the traffic.
    Children,
    /// The IKE SA.
    Ike,
}

/// Why no new keys are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRekey {
    /// The configuration does not have the peer.
    #[error("the configuration has no such peer")]
    UnknownPeer,
    /// There is no IKE SA.
    #[error("it is not up")]
    NotUp,
    /// It is a licensed node or a gateway of ours.
    #[error("it carries no traffic of ours, only IKE")]
    NoChild,
}

/// One host: see the crate's documentation for how to drive it.
pub struct Node {
    pub(crate) peers: Vec<Peer>,
    /// Names of the peers that the configuration wants up.
    pub(crate) start: Vec<String>,
    pub(crate) wishes: Peers,
    pub(crate) ike: ike::Engine,
    pub(crate) worker: Worker,
    pub(crate) grants: Grants,
    pub(crate) transit: Transit,
    pub(crate) children: BTreeMap<ChildSaId, Child>,
    succession: Succession,
    rng: Rng,
    ike_port: u16,
    pub(crate) grant_lifetime: Duration,
    key_log: bool,
    /// Why somebody who is no configured peer was last refused.
    stranger: Option<(Instant, String)>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

/// What the composition remembers of a child SA.
pub(crate) struct Child {
    pub(crate) peer: String,
    ike: IkeSaId,
    /// Newest packet that `ike` was told about.
    heard: Option<Instant>,
    status: ChildStatus,
}

impl Node {
    /// A node that wants the peers of `config.start` up. `seed` is all the randomness it will
    /// ever have: 32 octets from the operating system in production.
    pub fn new(config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        let spd = spd(config.policies, &config.peers);
        let ike_config = ike::Config {
            natt_port: config.natt_port,
            credential: config.credential,
            trust: config.trust,
            ..ike::Config::new(config.identity, config.peers.clone())
        };
        let mut node = Self {
            wishes: Peers::default(),
            ike: ike::Engine::new(ike_config, rng.array(), now),
            start: wanted(&config.start, &config.peers),
            peers: config.peers,
            worker: Worker::new(spd),
            grants: Grants::default(),
            transit: Transit::new(config.snoop),
            children: BTreeMap::new(),
            succession: Succession::default(),
            rng,
            ike_port: config.ike_port,
            grant_lifetime: config.grant_lifetime,
            key_log: config.key_log,
            stranger: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        };
        for peer in &node.peers {
            node.wishes.know(&peer.name, is_reachable(peer));
        }
        for name in &node.start {
            node.wishes.want(name, true, now);
        }
        node.initiate_due(now);
        node
    }

    // Commands.

    /// Tells what the wall clock shows: certificates are valid or not by it. Until then none is.
    pub const fn set_wall_clock(&mut self, today: UnixTime) {
        self.ike.set_wall_clock(today);
    }

    /// Wants a peer up, and keeps it up. Errors if there is no such peer.
    pub fn up(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, true, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, false);
        self.initiate_due(now);
        Ok(())
    }

    /// Wants a peer down: deletes its SAs, and until [`Self::up`] neither end brings it back: if the
    /// peer begins it is refused. There are several SAs if both ends began at once.
    pub fn down(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, false, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, true);
        let sas = self.ike.sas();
        let with_peer = sas.filter(|sa| sa.peer.as_deref() == Some(peer));
        let ids: Vec<_> = with_peer.map(|sa| sa.id).collect();
        ids.into_iter().for_each(|sa| self.ike.close(sa, now));
        self.drain(now);
        Ok(())
    }

    /// Deletes every SA. The deletes are in [`Node::poll_transmit`]; nobody waits for answers.
    pub fn shutdown(&mut self, now: Instant) {
        for peer in &self.peers {
            self.wishes.want(&peer.name, false, now);
        }
        self.ike.shutdown(now);
        self.drain(now);
    }

    /// Starts or stops telling keys of new SAs by [`Event::KeyLog`]; started, it also tells the
    /// keys of the IKE SAs that exist.
    pub fn set_key_log(&mut self, on: bool) {
        self.key_log = on;
        if on {
            let established: Vec<_> = self
                .wishes
                .iter()
                .filter_map(|(_, entry)| entry.up_since.and(entry.sa))
                .collect();
            established.into_iter().for_each(|sa| self.log_ike_keys(sa));
        }
    }

    /// Makes new keys with a peer: for its child SAs, or for the IKE SA itself.
    pub fn rekey(&mut self, peer: &str, what: Rekey, now: Instant) -> Result<(), CannotRekey> {
        self.peer(peer).ok_or(CannotRekey::UnknownPeer)?;
        let sa = self.established(peer).ok_or(CannotRekey::NotUp)?;
        match what {
            Rekey::Ike => self.ike.rekey_ike(sa, now),
            Rekey::Children => {
                let ours = self.children.iter().filter(|(_, child)| child.ike == sa);
                let current = ours.filter(|(_, child)| !child.status.draining);
                let current: Vec<_> = current.map(|(id, _)| *id).collect();
                if current.is_empty() {
                    return Err(CannotRekey::NoChild);
                }
                for child in current {
                    self.ike.rekey_child(sa, child, now);
                }
            }
        }
        self.drain(now);
        Ok(())
    }

    // Inputs.

    /// An IKE message, without a non-ESP marker.
    pub fn handle_datagram(&mut self, path: Path, message: &[u8], now: Instant) {
        self.ike.handle_datagram(path, message, now);
        self.drain(now);
    }

    /// A deadline has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell_liveness(now);
        self.ike.handle_timeout(now);
        for gateway in self.transit.handle_timeout(now) {
            self.events.push_back(Event::GrantDropped { gateway });
        }
        for name in self.grants.renew(self.grant_lifetime, now) {
            self.distribute(&name, now);
        }
        self.initiate_due(now);
    }

    /// Inner datagrams on their way out: what policy says is protected is sealed into the sink.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink) {
        self.worker.seal(batch, sink);
    }

    /// Payloads of UDP port 4500 that [`is_esp`](wire::esp::is_esp): opened into the sink.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.worker.open(batch, sink, now);
        if self.worker.has_reports() {
            self.drain(now);
        }
    }

    /// A diverted IP packet of somebody else, from one side of a licensed node. The packet is
    /// only changed by putting back the TTL that the detour costs.
    pub fn transit(&mut self, from: Side, packet: &mut [u8], now: Instant) -> Verdict {
        let (verdict, learnt) = self.transit.handle(from, packet, now);
        if let Some((source, destination)) = learnt {
            self.events.push_back(Event::PairLearnt {
                from,
                source,
                destination,
            });
        }
        verdict
    }

    // Outputs.

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next packet that SNOOP sends again, as it was, and the side it is to leave by.
    pub fn poll_resend(&mut self) -> Option<(Side, Vec<u8>)> {
        self.transit.poll_resend()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Node::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reports = self.worker.has_reports().then_some(Deadline {
            at: Instant::ZERO,
            reason: "the data plane has something to say",
        });
        let engines = [
            self.ike.poll_timeout(),
            self.transit.poll_timeout(),
            self.wishes.poll_timeout(),
            self.grants.poll_timeout(self.grant_lifetime),
            self.succession.poll_timeout(),
            reports,
        ];
        engines.into_iter().flatten().min()
    }

    // Getters.

    /// Every configured peer, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.peers
            .iter()
            .filter_map(|peer| self.peer_status(peer))
            .collect()
    }

    /// When and why somebody who is no configured peer was last refused.
    pub const fn refused_stranger(&self) -> Option<&(Instant, String)> {
        self.stranger.as_ref()
    }

    /// What the last attempt with a peer showed.
    pub fn attempt(&self, peer: &str) -> Option<&ike::Attempt> {
        self.ike.attempt(peer)
    }

    /// What the last attempt of somebody showed who has not proved to be any peer.
    pub const fn stranger(&self) -> Option<&ike::Attempt> {
        self.ike.stranger()
    }

    /// Composite SAs of this endpoint.
    pub fn composite_sas(&self) -> Vec<CsaStatus> {
        let holders = |csa: &crate::grants::Csa| {
            let status = |holder: &crate::grants::Holder| GrantStatus {
                name: holder.name.clone(),
                node: holder.node.clone(),
                state: holder.state,
                refusal: holder.refusal.clone(),
                since: holder.since,
                licences: csa.licences(&holder.node).cloned().collect(),
            };
            csa.holders.iter().map(status).collect()
        };
        let status = |csa: &crate::grants::Csa| CsaStatus {
            csa: csa.id,
            peer: csa.peer.clone(),
            inbound: csa.inbound.spi,
            outbound: csa.outbound.spi,
            agreement: csa.agreement.clone(),
            grants: holders(csa),
        };
        self.grants.iter().map(status).collect()
    }

    /// Grants that this licensed node holds.
    pub fn held_grants(&self) -> Vec<HeldGrant> {
        self.transit.held().collect()
    }

    /// Flows under SNOOP.
    pub fn flows(&self) -> Vec<pep::FlowStatus> {
        self.transit
            .snoop()
            .map_or_else(Vec::new, |snoop| snoop.flows().collect())
    }

    /// Counters of the data plane.
    pub fn esp_counters(&self) -> &esp::Counters {
        self.worker.counters()
    }

    /// Counters of the IKE engine.
    pub fn ike_counters(&self) -> &ike::Counters {
        self.ike.counters()
    }

    /// Counters of the licensed node.
    pub fn transit_counters(&self) -> &TransitCounters {
        self.transit.counters()
    }

    /// Counters of SNOOP, if it is on.
    pub fn snoop_counters(&self) -> Option<&pep::Counters> {
        self.transit.snoop().map(pep::Snoop::counters)
    }

    // Inside.

    fn peer(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    fn peer_status(&self, peer: &Peer) -> Option<PeerStatus> {
        let entry = self.wishes.get(&peer.name)?;
        let state = match (entry.up_since, entry.sa) {
            (Some(_), _) => PeerState::Up,
            (None, Some(_)) => PeerState::Connecting,
            (None, None) => PeerState::Down,
        };
        let children = self
            .children
            .iter()
            .filter(|(_, child)| child.peer == peer.name);
        Some(PeerStatus {
            name: peer.name.clone(),
            identity: peer.identity.clone(),
            state,
            remote: self.remote(peer, entry.sa),
            since: entry.up_since,
            refusal: entry.refusal.clone(),
            children: children
                .map(|(id, child)| self.child_status(*id, child))
                .collect(),
        })
    }

    /// Where the IKE SA's messages go; before there is one, where the configuration says.
    fn remote(&self, peer: &Peer, sa: Option<IkeSaId>) -> Option<SocketAddr> {
        let current = self.ike.sas().find(|status| Some(status.id) == sa);
        let configured = peer
            .address
            .map(|address| SocketAddr::new(address, ike::PORT));
        current.map(|status| status.path.remote).or(configured)
    }

    fn child_status(&self, id: ChildSaId, child: &Child) -> ChildStatus {
        let carried = self.worker.traffic(id).unwrap_or_default();
        ChildStatus {
            received: carried.opened,
            sent: carried.sealed,
            ..child.status.clone()
        }
    }

    pub(crate) fn initiate_due(&mut self, now: Instant) {
        for name in self.wishes.due(now) {
            let Some(address) = self.peer(&name).and_then(|peer| peer.address) else {
                continue;
            };
            match self.ike.initiate(&name, self.first_path(address), now) {
                Ok(sa) => self.wishes.started(&name, sa),
                Err(misuse) => self.wishes.down(&name, None, misuse.to_string(), now),
            }
        }
        self.drain(now);
    }

    /// Where an initiation starts: our address is left to the operating system.
    fn first_path(&self, remote: IpAddr) -> Path {
        let local = match remote {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Path {
            local: SocketAddr::new(local, self.ike_port),
            remote: SocketAddr::new(remote, ike::PORT),
        }
    }

    /// Lets IKE know which peers were heard through ESP, so that liveness checks cost nothing
    /// while traffic flows (RFC 7296 section 2.4).
    fn tell_liveness(&mut self, now: Instant) {
        for (id, child) in &mut self.children {
            let heard = self.worker.last_inbound(*id);
            if heard > child.heard {
                child.heard = heard;
                self.ike.note_inbound(child.ike, heard.unwrap_or(now));
            }
        }
    }

    /// Turns what the engines have to say into commands for each other. Only place where they
    /// are asked.
    pub(crate) fn drain(&mut self, now: Instant) {
        while let Some(report) = self.worker.poll_report() {
            self.handle_report(report, now);
        }
        while let Some(event) = self.ike.poll_event() {
            self.handle_ike(event, now);
        }
        self.switch(now);
        while let Some(transmit) = self.ike.poll_transmit() {
            self.transmits.push_back(transmit);
        }
    }

    fn handle_ike(&mut self, event: ike::Event, now: Instant) {
        match event {
            ike::Event::IkeUp { sa, peer, .. } => self.ike_up(sa, peer, now),
            ike::Event::IkeDown { sa, peer, why } => self.ike_down(sa, peer, &why, now),
            ike::Event::ChildUp(child) => self.child_up(*child, now),
            ike::Event::ChildRekeyed { old, new } => self.child_rekeyed(old, *new, now),
            ike::Event::ChildRetired { child } => self.child_retired(child),
            ike::Event::IkeRekeyed { sa, peer } => self.ike_rekeyed(sa, peer),
            ike::Event::ChildDown { child } => self.child_down(child, now),
            ike::Event::Granted { sa, gateway, grant } => self.granted(sa, gateway, grant, now),
            ike::Event::PathMoved { children, path, .. } => self.path_moved(&children, path),
            ike::Event::GrantAccepted { sa, csa, .. } => self.grant_answered(sa, csa, None, now),
            ike::Event::GrantRefused { sa, csa, why, .. } => {
                self.grant_answered(sa, csa, Some(why.to_string()), now)
            }
            ike::Event::Revoked { sa, csa } => self.revoked(sa, csa),
            ike::Event::Refused { peer, why } => {
                let peer = peer.or_else(|| self.claimed(&why));
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
            esp::Report::Confirmed(id) => self.succession.confirm(id),
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

    fn refused(&mut self, peer: Option<String>, why: String, now: Instant) {
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
        self.distribute(&peer, now);
    }

    fn ike_down(&mut self, sa: IkeSaId, peer: String, why: &ike::DownReason, now: Instant) {
        let why = why.to_string();
        let children: Vec<_> = self
            .children
            .iter()
            .filter(|(_, child)| child.ike == sa)
            .map(|(id, _)| *id)
            .collect();
        children
            .into_iter()
            .for_each(|child| self.child_down(child, now));
        for gateway in self.transit.gateway_lost(sa) {
            self.events.push_back(Event::GrantDropped { gateway });
        }
        self.grants.node_lost(sa, now);
        self.wishes.down(&peer, Some(sa), why.clone(), now);
        self.events.push_back(Event::PeerDown {
            peer: peer.clone(),
            why,
        });
        self.fall_back(&peer, now);
    }

    /// Of two IKE SAs that were made at once the one that goes may be the one that came last, or
    /// that grants went by.
    fn fall_back(&mut self, peer: &str, now: Instant) {
        let without = self
            .wishes
            .get(peer)
            .is_some_and(|entry| entry.sa.is_none());
        let is_up = |sa: &ike::SaStatus| sa.since.is_some() && sa.peer.as_deref() == Some(peer);
        let other = self.ike.sas().find(is_up).map(|sa| sa.id);
        if let Some(other) = other.filter(|_| without) {
            self.wishes.up(peer, other, now);
        }
        self.distribute(peer, now);
    }

    fn child_up(&mut self, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildUp {
            peer: child.peer.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
        });
        let id = child.id;
        self.install(child, None, now);
        self.worker.prefer(id);
    }

    /// A child takes the place of another, step by step.
    fn child_rekeyed(&mut self, old: ChildSaId, child: ChildSa<Secret>, now: Instant) {
        self.events.push_back(Event::ChildRekeyed {
            peer: child.peer.clone(),
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
        });
        let agreement = child.agreement.as_ref();
        let licensed = agreement.is_some_and(|agreement| !agreement.licences.is_empty());
        let (id, ours) = (child.id, child.initiator);
        self.succession.begin(id, old, ours, licensed, now);
        self.note_draining(old);
        self.install(child, Some(old), now);
    }

    /// The peer deleted what was replaced: its successor carries everything from now on.
    fn child_retired(&mut self, old: ChildSaId) {
        if let Some(new) = self.succession.heir_of(old) {
            self.prefer(new);
        }
        self.worker.retire(old);
        self.note_draining(old);
    }

    fn note_draining(&mut self, old: ChildSaId) {
        if let Some(old) = self.children.get_mut(&old) {
            old.status.draining = true;
        }
    }

    /// Sends on those successors from now on that peers and licensed nodes are ready for.
    fn switch(&mut self, now: Instant) {
        for id in self.succession.ready(|id| self.grants.settled(id), now) {
            self.prefer(id);
        }
    }

    fn prefer(&mut self, id: ChildSaId) {
        self.worker.prefer(id);
        self.succession.settle(id);
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
        let licensed = self
            .peers
            .iter()
            .filter(|peer| matches!(peer.role, Role::Licensed));
        self.grants.enter(
            &child,
            old,
            licensed.map(|peer| (&peer.name, &peer.identity)),
            &mut self.rng,
            now,
        );
        let status = ChildStatus {
            inbound: child.inbound.spi,
            outbound: child.outbound.spi,
            zoned: child.agreement.is_some(),
            local: child.local.clone(),
            remote: child.remote.clone(),
            path: child.path,
            draining: false,
            received: Traffic::default(),
            sent: Traffic::default(),
        };
        let (id, peer, ike) = (child.id, child.peer.clone(), child.ike);
        if let Err(unusable) = self.worker.install_beside(child) {
            self.refused(Some(peer), unusable.to_string(), now);
            return self.ike.close(ike, now);
        }
        self.children.insert(
            id,
            Child {
                peer,
                ike,
                heard: None,
                status,
            },
        );
        let names: Vec<_> = self.peers.iter().map(|peer| peer.name.clone()).collect();
        names.iter().for_each(|name| self.distribute(name, now));
    }

    fn child_down(&mut self, id: ChildSaId, now: Instant) {
        if let Some(new) = self.succession.heir_of(id) {
            self.prefer(new);
        }
        self.succession.settle(id);
        self.worker.remove(id);
        if let Some((csa, nodes)) = self.grants.remove(id) {
            for name in nodes {
                if let Some(sa) = self.established(&name) {
                    self.ike.revoke(sa, csa, now);
                }
            }
        }
        if let Some(child) = self.children.remove(&id) {
            // One that was replaced is missed by nobody.
            if !child.status.draining {
                self.events.push_back(Event::ChildDown { peer: child.peer });
            }
        }
    }

    /// Sends a licensed node whatever it is owed, if its IKE SA is up.
    pub(crate) fn distribute(&mut self, name: &str, now: Instant) {
        let Some(sa) = self.established(name) else {
            return;
        };
        for grant in self.grants.take_pending(name, sa, self.grant_lifetime, now) {
            self.ike.distribute(sa, grant, now);
        }
    }

    fn established(&self, name: &str) -> Option<IkeSaId> {
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
        let peer = csa.peer.clone();
        self.events.push_back(match refusal {
            None => Event::Granted { node, peer, rights },
            Some(why) => Event::GrantRefused { node, why },
        });
    }

    /// KEY_DISTRIBUTE arrived: the keys may be used at once.
    fn granted(&mut self, sa: IkeSaId, identity: Identity, grant: Grant<Secret>, now: Instant) {
        let Some(gateway) = self.name(sa) else { return };
        let zones = grant
            .from_gateway
            .zones
            .iter()
            .map(|(zone, ..)| *zone)
            .collect();
        let name = (grant.csa, grant.grant);
        let installed = self
            .transit
            .install(sa, gateway.clone(), identity, grant, now);
        let refusal = match installed {
            Ok(()) => {
                self.events.push_back(Event::GrantHeld { gateway, zones });
                None
            }
            Err(unusable) => {
                self.revoked(sa, name.0);
                self.refused(Some(gateway), unusable.to_string(), now);
                Some(refusal_code(unusable))
            }
        };
        self.ike.answer_grant(sa, name, refusal, now);
    }

    /// A grant is not ours any more.
    fn revoked(&mut self, sa: IkeSaId, csa: model::CsaId) {
        if let Some(gateway) = self.transit.revoke(sa, csa) {
            self.events.push_back(Event::GrantDropped { gateway });
        }
    }

    /// Name of the peer whose IKE SA this is, be it the newest or not.
    fn name(&self, sa: IkeSaId) -> Option<String> {
        self.ike.sas().find(|status| status.id == sa)?.peer
    }

    fn path_moved(&mut self, children: &[ChildSaId], path: Path) {
        for id in children {
            self.worker.move_path(*id, path);
            if let Some(child) = self.children.get_mut(id) {
                child.status.path = path;
            }
        }
    }

    fn log_ike_keys(&mut self, sa: IkeSaId) {
        if let Some(keys) = self.ike.key_log(sa) {
            let line = keylog::ike_line(&keys).map(KeyLog::Ike);
            self.events.extend(line.map(Event::KeyLog));
        }
    }
}

/// The policies of a host, and what its peers are to carry.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[Peer]) -> Spd {
    let vpn = |peer: &&Peer| matches!(peer.role, Role::Vpn { .. });
    Spd::new(policies, peers.iter().filter(vpn).map(protected).collect())
}

/// What a gateway is told of a grant that cannot be used.
const fn refusal_code(why: Unusable) -> RefusalCode {
    match why {
        Unusable::Crowded => RefusalCode::TOO_MANY_GRANTS,
        Unusable::KeyLength | Unusable::Zones | Unusable::NoDesignatedZone | Unusable::Spi => {
            RefusalCode::INVALID_GRANT
        }
    }
}

/// Everybody to be up without a word from the operator. Licensed nodes always are: keys must be able
/// to leave as soon as they exist.
pub(crate) fn wanted(start: &[String], peers: &[Peer]) -> Vec<String> {
    let licensed = peers
        .iter()
        .filter(|peer| matches!(peer.role, Role::Licensed));
    let licensed = licensed.map(|peer| peer.name.clone());
    licensed.chain(start.iter().cloned()).collect()
}

/// Whether we can begin with a peer. With a gateway whose grants we take we never do.
pub(crate) const fn is_reachable(peer: &Peer) -> bool {
    peer.address.is_some() && !matches!(peer.role, Role::Gateway)
}

/// Selectors that must never leave in clear, even while the peer is down.
fn protected(peer: &Peer) -> esp::Protected {
    match &peer.role {
        Role::Vpn { local, remote, .. } => esp::Protected {
            local: local.clone(),
            remote: remote.clone(),
        },
        Role::Licensed | Role::Gateway => esp::Protected::default(),
    }
}
