//! The composition: commands, inputs and outputs. `junction.rs` connects the engines.

use crate::children::Children;
use crate::config::{Config, Inside, Peer, Policy, Role};
use crate::cover::Cover;
use crate::grants::Grants;
use crate::initiations::Initiations;
use crate::level::Levels;
use crate::migration::Migration;
use crate::mobile_ip::MobileIp;
use crate::moving::Moving;
use crate::path_mtu::PathMtus;
use crate::peers::{Peers, Refused, Retry};
use crate::rivals::Rivals;
use crate::silence::Silences;
use crate::succession::Succession;
use crate::transit::Transit;
use crate::whereabouts::Whereabouts;
use crate::{Event, Side, Verdict, migration};
use crypto::{Rng, Secret, UnixTime};
use esp::{Packet, Sink, Spd, WorkerHandle, Workers};
use ike::{Sender, UnknownChild};
use model::{
    CsaId, Deadline, Encapsulation, Grant, IkeSaId, Instant, Lease, LeaseChange, Path, Transmit,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A command named a peer that is not configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no such peer")]
pub struct UnknownPeer;

/// The SAs that [`Node::rekey`] renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rekey {
    /// The child SAs, which carry the traffic.
    Children,
    /// The IKE SA.
    Ike,
}

/// The reason why a rekey is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRekey {
    /// The peer is not configured.
    #[error("the configuration has no such peer")]
    UnknownPeer,
    /// The IKE SA is not up.
    #[error("the peer is not up")]
    NotUp,
    /// The peer is a licensed node or a gateway of ours, without child SAs.
    #[error("the peer has no tunnel, only an IKE SA")]
    NoChild,
}

/// The reason why a re-authentication is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotReauthenticate {
    /// The peer is not configured.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The IKE engine cannot re-authenticate the SA.
    #[error(transparent)]
    Ike(#[from] ike::CannotReauthenticate),
}

/// The reason why a redirection is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRedirect {
    /// The peer is not configured.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// The IKE engine cannot redirect the peer.
    #[error(transparent)]
    Ike(#[from] ike::CannotRedirect),
}

/// A host in all of its roles. The crate's documentation explains how to drive it.
pub struct Node {
    /// Names of the peers that the configuration wants up.
    pub(crate) start: BTreeSet<String>,
    pub(crate) wishes: Peers,
    /// IKE, and the configuration of the peers.
    pub(crate) ike: ike::Engine,
    pub(crate) workers: Workers,
    worker: WorkerHandle,
    pub(crate) grants: Grants,
    pub(crate) transit: Transit,
    pub(crate) mobile_ip: Option<MobileIp>,
    pub(crate) children: Children,
    pub(crate) succession: Succession,
    pub(crate) moving: Moving,
    pub(crate) whereabouts: Whereabouts,
    pub(crate) migration: Migration,
    pub(crate) cover: Cover,
    pub(crate) levels: Levels,
    pub(crate) path_mtus: PathMtus,
    pub(crate) silences: Silences,
    pub(crate) initiations: Initiations,
    pub(crate) rivals: Rivals,
    /// Settings that peers assign to us, by IKE SA, with the names of the peers.
    pub(crate) inside: BTreeMap<IkeSaId, (String, Inside)>,
    pub(crate) rng: Rng,
    /// Local address for each remote one, known before an initiation if NAT detection has to be
    /// truthful.
    pub(crate) sources: BTreeMap<IpAddr, IpAddr>,
    pub(crate) encapsulation: Encapsulation,
    ike_port: u16,
    pub(crate) natt_port: u16,
    pub(crate) grant_lifetime: Duration,
    pub(crate) key_log: bool,
    /// True if keys leave only after their grant was recorded.
    pub(crate) recording: bool,
    /// Grants that wait for their record, with the node's name and the IKE SA to send them on.
    pub(crate) unrecorded: Vec<(String, IkeSaId, Grant<Secret>)>,
    /// The last refusal of an unknown peer.
    pub(crate) stranger: Option<Refused>,
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
}

impl Node {
    /// Creates a node that brings up the peers of `config.start`. `seed` is its only source of
    /// randomness: 32 octets from the operating system in production.
    pub fn new(mut config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        let ike_config = config.take_ike();
        let spd = spd(config.policies, &ike_config.peers);
        let workers = Workers::new(config.workers, &spd);
        workers.set_classes(&config.classes);
        workers.set_sizes(&config.sizes);
        workers.set_clamp(config.clamp);
        let levels = Levels::new(config.levels);
        workers.set_levels(&levels.choices());
        let reachable = ike_config.peers.iter();
        let reachable = reachable.map(|peer| (peer.name.clone(), is_reachable(peer)));
        let mut node = Self {
            wishes: Peers::new(reachable),
            start: wanted(config.start, &ike_config.peers),
            ike: ike::Engine::new(ike_config, rng.array(), now),
            worker: workers.handle(0),
            workers,
            grants: Grants::default(),
            transit: Transit::new(config.snoop, config.window, config.stand_in),
            children: Children::default(),
            succession: Succession::default(),
            moving: Moving::default(),
            whereabouts: Whereabouts::new(config.places, config.neighbours),
            migration: Migration::default(),
            cover: Cover::default(),
            levels,
            path_mtus: PathMtus::new(config.path_mtu),
            silences: Silences::default(),
            initiations: Initiations::default(),
            rivals: Rivals::default(),
            inside: BTreeMap::new(),
            mobile_ip: config
                .mobile_ip
                .map(|config| MobileIp::new(config, &mut rng, now)),
            rng,
            sources: BTreeMap::new(),
            encapsulation: config.encapsulation,
            ike_port: config.ike_port,
            natt_port: config.natt_port,
            grant_lifetime: config.grant_lifetime,
            key_log: config.key_log,
            recording: false,
            unrecorded: Vec::new(),
            stranger: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        };
        node.cover.set(config.cover, std::iter::empty(), now);
        for name in &node.start {
            node.wishes.want(name, true, now);
        }
        node.initiate_known(now);
        node
    }

    // Commands.

    /// Sets the wall clock, which decides the validity of certificates. Until then no certificate
    /// is valid.
    pub const fn set_wall_clock(&mut self, today: UnixTime) {
        self.ike.set_wall_clock(today);
    }

    /// Restores the leases that an earlier node reported. Call before anything except
    /// [`Self::set_wall_clock`].
    pub fn restore_leases(&mut self, leases: Vec<Lease>) {
        self.ike.restore_leases(leases);
    }

    /// Brings a peer up with its children, and keeps it up. Errors if there is no such peer.
    pub fn up(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, true, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, false, now);
        self.initiate_due(now);
        Ok(())
    }

    /// Takes a peer down: deletes its SAs (more than one if both ends initiated at
    /// once). Neither end brings the peer back until [`Self::up`]: the peer's initiations are
    /// refused.
    pub fn down(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, false, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, true, now);
        self.close_all(peer, now);
        Ok(())
    }

    /// Brings up an additional child SA of a peer, and keeps it up while the peer is.
    pub fn open_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.ike.open_child(peer, child, now)?;
        self.drain(now);
        Ok(())
    }

    /// Deletes an additional child SA of a peer. Neither end brings it back until
    /// [`Self::open_child`] or [`Self::up`].
    pub fn close_child(
        &mut self,
        peer: &str,
        child: &str,
        now: Instant,
    ) -> Result<(), UnknownChild> {
        self.ike.close_child(peer, child, now)?;
        self.drain(now);
        Ok(())
    }

    /// Deletes all SAs with a peer because this host cannot do its part. `why` is the
    /// human-readable reason. A peer that should be up is retried.
    pub fn withdraw(&mut self, peer: &str, why: String, now: Instant) {
        self.close_all(peer, now);
        self.refused(Some(peer.to_owned()), why, now);
    }

    /// Deletes every SA. The deletes are in [`Node::poll_transmit`]. There is no need to wait for
    /// the answers.
    pub fn shutdown(&mut self, now: Instant) {
        for peer in self.ike.peers() {
            self.wishes.want(&peer.name, false, now);
        }
        self.ike.shutdown(now);
        self.drain(now);
    }

    /// Turns reports of keys by [`Event::KeyLog`] on or off. Turning them on also reports the keys
    /// of the established IKE SAs.
    pub fn set_key_log(&mut self, on: bool) {
        self.key_log = on;
        if on {
            let established = self.wishes.iter();
            let established = established.filter_map(|entry| entry.up_since.and(entry.sa));
            let mut established: Vec<_> = established.collect();
            established.sort_unstable();
            established.into_iter().for_each(|sa| self.log_ike_keys(sa));
        }
    }

    /// Turns recording on or off. While it is on, keys for licensed nodes wait for [`Node::give`]
    /// before they leave. Grants that were withheld so far are offered again.
    pub fn set_recording(&mut self, on: bool, now: Instant) {
        self.recording = on;
        self.grants.owe_withheld(now);
        let names: Vec<_> = self.ike.licensed().map(|node| node.name.clone()).collect();
        names.iter().for_each(|name| self.distribute(name, now));
        self.drain(now);
    }

    /// Answers [`Event::Giving`]: releases the keys, or withholds them with a human-readable
    /// reason. Keys whose SA has ended in the meantime do not leave in either case.
    pub fn give(&mut self, csa: CsaId, grant: u16, recorded: Result<(), String>, now: Instant) {
        if grant == migration::TOKEN {
            return self.give_token(csa, recorded, now);
        }
        let asked =
            |(_, _, due): &(String, IkeSaId, Grant<Secret>)| (due.csa, due.grant) == (csa, grant);
        let Some(index) = self.unrecorded.iter().position(asked) else {
            return;
        };
        let (name, sa, due) = self.unrecorded.remove(index);
        match recorded {
            _ if !self.grants.is_due(csa, &name, sa) => {}
            Ok(()) => self.ike.distribute(sa, due, now),
            Err(why) => self.grants.withhold(&name, csa, why, now),
        }
        self.drain(now);
    }

    /// Rekeys the child SAs of a peer, or its IKE SA.
    pub fn rekey(&mut self, peer: &str, what: Rekey, now: Instant) -> Result<(), CannotRekey> {
        self.peer(peer).ok_or(CannotRekey::UnknownPeer)?;
        let sa = self.established(peer).ok_or(CannotRekey::NotUp)?;
        match what {
            Rekey::Ike => self.ike.rekey_ike(sa, now),
            Rekey::Children => {
                let ours = self.children.of_peer(peer);
                let ours = ours.filter(|(_, child)| child.ike == sa);
                let current = ours.filter(|(_, child)| !child.status.draining);
                let current: Vec<_> = current.map(|(id, _)| id).collect();
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

    /// Re-authenticates a peer without losing packets: a new IKE SA replaces the current one.
    /// Errors if the other end has to initiate.
    pub fn reauthenticate(&mut self, peer: &str, now: Instant) -> Result<(), CannotReauthenticate> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer);
        let sa = sa.ok_or(ike::CannotReauthenticate::NotUp)?;
        self.ike.reauthenticate(sa, now)?;
        self.drain(now);
        Ok(())
    }

    /// Redirects a peer that initiated to another gateway (RFC 5685). The peer has left when its
    /// SAs are down.
    pub fn redirect(&mut self, peer: &str, to: IpAddr, now: Instant) -> Result<(), CannotRedirect> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer).ok_or(ike::CannotRedirect::NotUp)?;
        self.ike.redirect(sa, to, now)?;
        self.drain(now);
        Ok(())
    }

    /// Skips all outbound sequence numbers up to `number` on every SA, as if the packets had been
    /// sent. For tests of late packets.
    pub fn skip_numbers(&mut self, number: u64) {
        for (id, _) in self.children.iter() {
            self.workers.skip_to(id, number);
        }
    }

    // Inputs.

    /// Handles an IKE message, without the non-ESP marker.
    pub fn handle_datagram(&mut self, path: Path, message: &[u8], now: Instant) {
        self.ike.handle_datagram(path, message, now);
        self.drain(now);
    }

    /// Classifies the sender of an IKE message, so that the driver can choose a queue for it.
    pub fn sender(&self, path: Path, message: &[u8], now: Instant) -> Sender {
        self.ike.sender(path, message, now)
    }

    /// Handles an initial message that has to be repeated with a cookie. Returns the answer to
    /// send.
    pub fn ask_for_cookie(&mut self, path: Path, message: &[u8], now: Instant) -> Option<Transmit> {
        self.ike.ask_for_cookie(path, message, now)
    }

    /// Handles a stream that was closed or could not be opened.
    pub fn handle_disconnected(&mut self, path: Path, now: Instant) {
        self.ike.handle_disconnected(path, now);
        self.drain(now);
    }

    /// Handles all deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell_liveness(now);
        self.break_silences(now);
        self.tell_unanswered(now);
        self.ike.handle_timeout(now);
        self.moving.handle_timeout(now);
        self.look_up(now);
        self.whereabouts.handle_timeout(now);
        self.cover.handle_timeout(now);
        self.forget_path_mtus(now);
        if let Some(mobile_ip) = &mut self.mobile_ip {
            mobile_ip.handle_timeout(now);
        }
        for held in self.transit.handle_timeout(now) {
            self.expired(held, now);
        }
        for name in self.grants.renew(self.grant_lifetime, now) {
            self.distribute(&name, now);
        }
        self.initiate_due(now);
    }

    /// Seals outbound inner datagrams into the sink, as far as policy protects them.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.worker.seal(batch, sink, now);
        if self.workers.has_reports() {
            self.drain(now);
        }
    }

    /// Opens payloads of UDP port 4500 that [`is_esp`](wire::esp::is_esp) into the sink.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.worker.open(batch, sink, now);
        if self.workers.has_reports() {
            self.drain(now);
        }
    }

    /// Handles a diverted IP packet of other hosts, from one side of a licensed node.
    pub fn transit(&mut self, from: Side, packet: &[u8], now: Instant) -> Verdict {
        let verdict = self.transit.handle(from, packet, now);
        self.tell_pairs();
        verdict
    }

    /// Returns the handle of another thread, numbered from 1, that seals and opens concurrently
    /// with this node. Call [`Node::handle_timeout`] at once when
    /// [`esp::WorkerHandle::has_reports`] returns true.
    pub fn worker(&self, number: usize) -> WorkerHandle {
        self.workers.handle(number)
    }

    // Outputs.

    /// Returns the next lease to store. Store it before sending anything from
    /// [`Node::poll_transmit`], because a peer may use its address as soon as it knows it.
    pub fn poll_lease(&mut self) -> Option<LeaseChange> {
        self.ike.poll_lease()
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next packet that a licensed node sends by itself, and the side to send it to: a
    /// retransmission of SNOOP, a packet with an overlay, or an injected packet.
    pub fn poll_resend(&mut self) -> Option<(Side, Vec<u8>)> {
        self.transit.poll_resend()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call to [`Node::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reports = self.workers.has_reports().then_some(Deadline {
            at: Instant::ZERO,
            reason: "read reports of the data plane",
        });
        let engines = [
            self.ike.poll_timeout(),
            self.transit.poll_timeout(),
            self.wishes.poll_timeout(),
            self.grants.poll_timeout(self.grant_lifetime),
            self.succession.poll_timeout(),
            self.moving.poll_timeout(),
            self.whereabouts.poll_timeout(),
            self.cover.poll_timeout(),
            self.path_mtus.poll_timeout(),
            self.silences.poll_timeout(),
            self.initiations.poll_timeout(),
            self.mobile_ip.as_ref().and_then(MobileIp::poll_timeout),
            reports,
        ];
        engines.into_iter().flatten().min()
    }

    // Internals.

    /// Deletes every SA with a peer.
    fn close_all(&mut self, peer: &str, now: Instant) {
        let ids: Vec<_> = self.ike.sas_of(peer).map(|sa| sa.id).collect();
        ids.into_iter().for_each(|sa| self.ike.close(sa, now));
        self.drain(now);
    }

    pub(crate) fn peer(&self, name: &str) -> Option<&Peer> {
        self.ike.peer(name)
    }

    pub(crate) fn initiate_due(&mut self, now: Instant) {
        for name in self.wishes.due(now) {
            let Some(address) = self.peer(&name).and_then(|peer| peer.address) else {
                continue;
            };
            match self.ike.initiate(&name, self.first_path(address), now) {
                Ok(sa) => {
                    self.wishes.started(&name, sa);
                    self.initiations.begun(sa, now);
                }
                Err(misuse) => {
                    let why = misuse.to_string();
                    self.wishes.down(&name, None, why, Retry::Usual, now);
                }
            }
        }
        self.drain(now);
    }

    /// Initiates due peers at once or, if NAT detection needs the local address, after the driver
    /// has reported the routes.
    pub(crate) fn initiate_known(&mut self, now: Instant) {
        match self.encapsulation {
            Encapsulation::Always => self.initiate_due(now),
            Encapsulation::ForNat => self.events.push_back(Event::WaysWanted { of: None }),
        }
    }

    /// Returns the path of an initiation. The operating system chooses the local address, unless
    /// the peer needs it for NAT detection.
    fn first_path(&self, remote: IpAddr) -> Path {
        let open = match remote {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let local = self.sources.get(&remote).copied().unwrap_or(open);
        Path::udp(
            SocketAddr::new(local, self.ike_port),
            SocketAddr::new(remote, ike::PORT),
        )
    }

    /// Reports peers that were heard through ESP to IKE, and the path of their newest packet, so
    /// that liveness checks cost nothing while traffic flows (RFC 7296 section 2.4). Only peers
    /// that are due for a check are looked at.
    fn tell_liveness(&mut self, now: Instant) {
        let due: Vec<_> = self.ike.due(now).collect();
        for (sa, children) in due {
            let mut newest = None;
            for id in children {
                let heard = self.workers.last_inbound(id);
                newest = newest.max(heard.map(|heard| (heard, id)));
                let child = self.children.get_mut(id);
                if let Some(child) = child.filter(|child| heard > child.heard) {
                    child.heard = heard;
                    self.ike.note_inbound(child.ike, heard.unwrap_or(now));
                }
            }
            let stray = newest.and_then(|(_, id)| self.workers.stray(id));
            self.ike.note_newest(sa, stray);
        }
    }
}

/// Builds the policy database from the host's policies and the selectors of its peers.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[Peer]) -> Spd {
    Spd::new(policies, peers.iter().flat_map(protected).collect())
}

/// Returns the peers that are brought up without a command. Licensed nodes and neighbours are
/// always among them, because keys must be able to leave as soon as they exist or are requested.
pub(crate) fn wanted(start: Vec<String>, peers: &[Peer]) -> BTreeSet<String> {
    let licensed = peers
        .iter()
        .filter(|peer| matches!(peer.role, Role::Licensed | Role::Neighbour));
    let licensed = licensed.map(|peer| peer.name.clone());
    licensed.chain(start).collect()
}

/// Returns true if we can initiate with a peer. With a gateway whose grants we accept we never do.
pub(crate) const fn is_reachable(peer: &Peer) -> bool {
    peer.address.is_some() && !matches!(peer.role, Role::Gateway)
}

/// Returns the selectors that must never leave unencrypted, even while the peer is down.
fn protected(peer: &Peer) -> impl Iterator<Item = (String, esp::Protected)> {
    let first = match &peer.role {
        Role::Vpn { local, remote, .. } => Some((local.clone(), remote.clone())),
        Role::Licensed | Role::Gateway | Role::Neighbour => None,
    };
    let others = peer.children.iter();
    let others = others.map(|child| (child.local.clone().into(), child.remote.clone().into()));
    let all = first.into_iter().chain(others);
    all.map(|(local, remote)| (peer.name.clone(), esp::Protected { local, remote }))
}
