//! The composition: commands, inputs and outputs. `dispatch.rs` joins the engines and the owners.

use crate::config::{Config, Peer, Policy, Role};
use crate::licensing::Licensing;
use crate::mobile_ip::MobileIp;
use crate::owners::Owners;
use crate::path_mtu::PathMtus;
use crate::plane::Plane;
use crate::transit::Transit;
use crate::tunnels::desired::UnknownPeer;
use crate::tunnels::level::NoLevel;
use crate::tunnels::moving::CannotMove;
use crate::tunnels::outside::Outside;
use crate::tunnels::{TunnelConfig, Tunnels};
use crate::{Event, Side, Verdict};
use crypto::{Rng, UnixTime};
use esp::{Command, Packet, Sink, Spd, WorkerHandle};
use ike::{Sender, UnknownChild};
use mobility::Way;
use model::{CsaId, Deadline, IkeSaId, Instant, Lease, LeaseChange, Path, Signal, Transmit};
use std::collections::VecDeque;
use std::net::IpAddr;

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
    /// IKE, and the configuration of the peers.
    pub(crate) ike: ike::Engine,
    pub(crate) plane: Plane,
    pub(crate) own: Owners,
    pub(crate) path_mtus: PathMtus,
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
}

impl Node {
    /// Creates a node that brings up the peers of `config.start`. `seed` is its only source of
    /// randomness: 32 octets from the operating system in production.
    pub fn new(mut config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        let ike_config = config.take_ike();
        let plane = Plane::new(config.workers, &spd(config.policies, &ike_config.peers));
        plane.apply(Command::Classes(config.classes));
        plane.set_sizes(&config.sizes);
        plane.apply(Command::Clamp(config.clamp));
        let outside = Outside::new(config.encapsulation, config.ike_port, config.natt_port);
        let tunnels = TunnelConfig {
            start: config.start,
            cover: config.cover,
            levels: config.levels,
        };
        let tunnels = Tunnels::new(tunnels, outside, config.key_log, &ike_config.peers, now);
        plane.apply(Command::Levels(tunnels.levels()));
        let mut node = Self {
            ike: ike::Engine::new(ike_config, rng.array(), now),
            plane,
            path_mtus: PathMtus::new(config.path_mtu),
            own: Owners {
                tunnels,
                licensing: Licensing::new(config.grant_lifetime, config.places, config.neighbours),
                transit: Transit::new(config.snoop, config.window, config.stand_in),
                mobile_ip: config
                    .mobile_ip
                    .map(|config| MobileIp::new(config, &mut rng, now)),
                rng,
            },
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        };
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
        self.own.tunnels.want(peer, true, now)?;
        self.ike.bar(peer, false, now);
        self.initiate_due(now);
        Ok(())
    }

    /// Takes a peer down: deletes its SAs (more than one if both ends initiated at
    /// once). Neither end brings the peer back until [`Self::up`]: the peer's initiations are
    /// refused.
    pub fn down(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.own.tunnels.want(peer, false, now)?;
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
            // Each peer of the engine is known.
            let _ = self.own.tunnels.want(&peer.name, false, now);
        }
        self.ike.shutdown(now);
        self.drain(now);
    }

    /// Turns reports of keys by [`Event::KeyLog`] on or off. Turning them on also reports the keys
    /// of the established IKE SAs.
    pub fn set_key_log(&mut self, on: bool) {
        let keys = self.own.tunnels.set_key_log(on, &self.ike);
        self.events.extend(keys);
    }

    /// Turns recording on or off. While it is on, keys for licensed nodes wait for [`Node::give`]
    /// before they leave. Grants that were withheld so far are offered again.
    pub fn set_recording(&mut self, on: bool, now: Instant) {
        self.turn(now, |own, turn| {
            let distribution = own.licensing.distribution();
            distribution.set_recording(on, &own.tunnels, turn);
        });
        self.drain(now);
    }

    /// Answers [`Event::Giving`]: releases the keys, or withholds them with a human-readable
    /// reason. Keys whose SA has ended in the meantime do not leave in either case.
    pub fn give(&mut self, csa: CsaId, grant: u16, recorded: Result<(), String>, now: Instant) {
        self.turn(now, |own, turn| {
            let mobile_ip = own.mobile_ip.as_mut();
            own.licensing
                .give(csa, grant, recorded, mobile_ip, &own.tunnels, turn);
        });
        self.drain(now);
    }

    /// Rekeys the child SAs of a peer, or its IKE SA.
    pub fn rekey(&mut self, peer: &str, what: Rekey, now: Instant) -> Result<(), CannotRekey> {
        self.peer(peer).ok_or(CannotRekey::UnknownPeer)?;
        let sa = self.established(peer).ok_or(CannotRekey::NotUp)?;
        match what {
            Rekey::Ike => self.ike.rekey_ike(sa, now),
            Rekey::Children => {
                let lasting = self.own.tunnels.lasting_children(peer, sa);
                if lasting.is_empty() {
                    return Err(CannotRekey::NoChild);
                }
                for child in lasting {
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

    /// Moves a peer's tunnel so that it leaves from an address, or by the best way there is. The
    /// peer is told even if that is the way it takes.
    pub fn move_peer(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let sa = self.own.tunnels.movable(peer, &self.ike)?;
        let path = self.own.tunnels.moving().choose(sa, from)?;
        self.drain(now);
        Ok(path)
    }

    /// The same without a pause: a clone of the IKE SA (RFC 7791) goes there, and takes its place
    /// with the same children once these work. If nothing comes of it, all stays where it is. While
    /// another hand-over is on its way, or the SA before drains, this one waits.
    pub fn hand_over(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let sa = self.own.tunnels.movable(peer, &self.ike)?;
        let (path, _) = self.start_hand_over(sa, from, now)?;
        self.drain(now);
        Ok(path)
    }

    /// Selects the protection of packets to a peer from now on, among the agreed levels. Packets
    /// that may not go unencrypted are zoned.
    pub fn choose_level(&mut self, peer: &str, signal: Signal) -> Result<(), NoLevel> {
        let role = self.ike.peer(peer).map(|peer| &peer.role);
        let theirs = self.own.licensing.grants().iter();
        let theirs = theirs.filter(|(_, csa)| csa.peer == peer);
        let agreed = theirs.map(|(_, csa)| csa.agreement.level.is_some());
        let levels = self.own.tunnels.choose_level(peer, role, agreed, signal)?;
        self.plane.apply(Command::Levels(levels));
        Ok(())
    }

    /// Skips all outbound sequence numbers up to `number` on every SA, as if the packets had been
    /// sent. For tests of late packets.
    pub fn skip_numbers(&mut self, number: u64) {
        for (id, _) in self.own.tunnels.children().iter() {
            self.plane.apply(Command::SkipTo(id, number));
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

    /// The addresses of peers to which ways are wanted, those in use before others.
    pub fn remotes(&self) -> Vec<IpAddr> {
        self.own.tunnels.remotes(&self.ike)
    }

    /// The addresses of the peer of one tunnel, to which ways are wanted.
    pub fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        self.own.tunnels.remotes_of(sa)
    }

    /// By which pairs of addresses packets can leave now to the peer of one tunnel, for each of
    /// [`Self::remotes_of`] the best first.
    pub fn handle_ways_of(&mut self, sa: IkeSaId, ways: &[Way], now: Instant) {
        self.own.tunnels.moving().handle_ways(sa, ways);
        self.drain(now);
    }

    /// By which pairs of addresses packets can leave now: all of them, for each of
    /// [`Self::remotes`] the best first.
    pub fn handle_ways(&mut self, ways: &[Way], now: Instant) {
        self.own.tunnels.handle_ways(ways);
        self.initiate_due(now);
    }

    /// Handles all deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.turn(now, |own, turn| own.tunnels.tell_liveness(turn));
        let silent = self.turn(now, |own, turn| own.tunnels.break_silences(turn));
        self.doubt_paths(&silent, now);
        self.turn(now, |own, turn| own.tunnels.tell_unanswered(turn));
        self.ike.handle_timeout(now);
        self.turn(now, |own, turn| own.tunnels.handle_timeout(turn));
        self.own.licensing.handle_timeout(now);
        self.forget_path_mtus(now);
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.handle_timeout(now);
        }
        for held in self.own.transit.handle_timeout(now) {
            self.expired(held, now);
        }
        self.turn(now, |own, turn| {
            let distribution = own.licensing.distribution();
            distribution.handle_timeout(&own.tunnels, turn);
        });
        self.initiate_due(now);
    }

    /// Seals outbound inner datagrams into the sink, as far as policy protects them.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.plane.seal(batch, sink, now);
        if self.plane.has_reports() {
            self.drain(now);
        }
    }

    /// Opens payloads of UDP port 4500 that [`is_esp`](wire::esp::is_esp) into the sink.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.plane.open(batch, sink, now);
        if self.plane.has_reports() {
            self.drain(now);
        }
    }

    /// Handles a diverted IP packet of other hosts, from one side of a licensed node.
    pub fn transit(&mut self, from: Side, packet: &[u8], now: Instant) -> Verdict {
        let verdict = self.own.transit.handle(from, packet, now);
        while let Some(pair) = self.own.transit.poll_event() {
            self.events.push_back(pair);
        }
        verdict
    }

    /// Handles the failure to carry out [`Event::PairLearnt`]. The pair is reported again if its
    /// packets still pass later.
    pub fn handle_not_diverted(&mut self, wired: IpAddr, wireless: IpAddr, now: Instant) {
        self.own.transit.not_diverted(wired, wireless, now);
    }

    /// Returns the handle of another thread, numbered from 1, that seals and opens concurrently
    /// with this node. Call [`Node::handle_timeout`] at once when
    /// [`esp::WorkerHandle::has_reports`] returns true.
    pub fn worker(&self, number: usize) -> WorkerHandle {
        self.plane.worker(number)
    }

    /// Sends the dummy packets, probes and echoes that are due, using `packet` as the buffer. Call
    /// after each [`Node::handle_timeout`].
    pub fn cover(&mut self, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some(peer) = self.own.tunnels.pop_cover() {
            if let Some(path) = self.plane.cover(&peer, packet) {
                sink.transmit(packet, path);
            }
        }
        self.send_probes(packet, sink);
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
        self.own.transit.poll_resend()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call to [`Node::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let reports = self.plane.has_reports().then_some(Deadline {
            at: Instant::ZERO,
            reason: "read reports of the data plane",
        });
        let engines = [
            self.ike.poll_timeout(),
            self.own.tunnels.poll_timeout(),
            self.own.licensing.poll_timeout(),
            self.own.transit.poll_timeout(),
            self.own.mobile_ip.as_ref().and_then(MobileIp::poll_timeout),
            self.path_mtus.poll_timeout(),
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

    pub(crate) fn established(&self, peer: &str) -> Option<IkeSaId> {
        self.own.tunnels.established(peer)
    }

    fn initiate_due(&mut self, now: Instant) {
        for name in self.own.tunnels.take_due(now) {
            let Some(address) = self.peer(&name).and_then(|peer| peer.address) else {
                continue;
            };
            // An attempt that was refused may have been redirected.
            let refused = self.own.tunnels.current(&name);
            let refused = refused.and_then(|sa| self.ike.sa(sa));
            let there = refused.as_ref().map(|sa| sa.path.remote.ip());
            let path = self.own.tunnels.outside();
            let path = path.first_path(there.unwrap_or(address));
            match self.ike.initiate(&name, path, now) {
                Ok(sa) => self.own.tunnels.started(&name, sa, now),
                // The refused attempt, or one before it, continues after all.
                Err(_) if refused.is_some() => self.own.tunnels.put_off(&name, now),
                Err(misuse) => self.own.tunnels.not_started(&name, misuse.to_string(), now),
            }
        }
        self.drain(now);
    }

    /// Initiates due peers at once or, if NAT detection needs the local address, after the driver
    /// has reported the routes.
    pub(crate) fn initiate_known(&mut self, now: Instant) {
        match self.own.tunnels.outside().is_honest() {
            false => self.initiate_due(now),
            true => self.events.push_back(Event::WaysWanted { of: None }),
        }
    }
}

/// Builds the policy database from the host's policies and the selectors of its peers.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[Peer]) -> Spd {
    Spd::new(policies, peers.iter().flat_map(protected).collect())
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
