//! The composition: commands, inputs and outputs. `dispatch.rs` joins the engines and the owners.

use crate::config::{Config, Inside, Role, Settings, bypassed, spd};
use crate::inspect::View;
use crate::licensing::Licensing;
use crate::licensing::migration::MigrationCounters;
use crate::mobile_ip::{
    self, Arrival, Envelope, Keepalives, MobileIp, NtpTime, Remote, Station, TakenOut,
};
use crate::naming::lookup::Sources;
use crate::naming::{Naming, Query, QueryId};
use crate::owners::Owners;
use crate::path_mtu::PathMtus;
use crate::ping::{CannotPing, PingId, PingReport, Pings};
use crate::plane::Plane;
use crate::status::{CsaStatus, HeldGrant, PeerNumbers, PeerStatus, Totals};
use crate::transit::{Transit, TransitCounters};
use crate::tunnels::desired::{Refused, UnknownPeer};
use crate::tunnels::level::NoLevel;
use crate::tunnels::moving::{CannotMove, Goal, PathsStatus};
use crate::tunnels::outside::Outside;
use crate::tunnels::tally::SetUps;
use crate::tunnels::{TunnelConfig, Tunnels};
use crate::{
    CannotReauthenticate, CannotRedirect, CannotRekey, Event, ProbeCounts, Rekey, Side, Verdict,
};
use crypto::{Rng, UnixTime};
use esp::{Command, Packet, Sink, WorkerHandle};
use ike::{Destination, Incarnation, Sender, UnknownChild};
use mobility::{Reported, Way};
use model::{
    CsaId, Deadline, IkeSaId, Instant, Lease, LeaseChange, Path, PeerId, PeerNames, Signal,
    TrafficSelector, Transmit,
};
use resumption::{Handle, Operation, Outcome, ReferenceKey, TicketKeys, Usage};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;
use std::sync::Arc;
use wire::ecn::Ecn;
use wire::quoted::Quoted;

/// A host in all of its roles. The crate's documentation explains how to drive it.
pub struct Node {
    /// The names of all peers that were ever configured. Drivers have copies.
    pub(crate) names: Arc<PeerNames>,
    /// Settings of the peers that stand for many identities, for their users.
    pub(crate) tables: Settings,
    /// IKE, and the configuration of the peers.
    pub(crate) ike: ike::Engine,
    pub(crate) plane: Plane,
    pub(crate) own: Owners,
    pub(crate) rng: Rng,
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
}

impl Node {
    /// Creates a node that brings up the peers of `config.start`. `seed` is its only source of
    /// randomness: 32 octets from the operating system in production.
    pub fn new(mut config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        let mut names = PeerNames::default();
        let (ike_config, mut settings) = config.take_peers(&mut names);
        let tables = settings.of_tables(&ike_config.peers);
        let bypassed = bypassed(&config.policies);
        let plane = Plane::new(config.workers, &spd(config.policies, &ike_config.peers));
        plane.apply(Command::Clamp(config.clamp));
        let outside = Outside::new(config.encapsulation, config.ike_port, config.natt_port);
        let tunnels = TunnelConfig {
            start: settings.start,
            named: settings.hosts.keys().copied().collect(),
            cover: settings.cover,
        };
        let mut tunnels = Tunnels::new(tunnels, outside, config.key_log, &ike_config.peers, now);
        tunnels.set_levels(&mut settings.packets);
        tunnels.set_ports(settings.ports);
        plane.set_peers(&settings.packets);
        let mut node = Self {
            names: names.into(),
            tables,
            ike: ike::Engine::new(ike_config, rng.array(), now),
            plane,
            own: Owners {
                tunnels,
                redirects: Naming::of_redirects(bypassed.clone()),
                naming: Naming::new(settings.hosts, bypassed),
                licensing: Licensing::new(
                    config.grant_lifetime,
                    settings.places,
                    config.neighbours,
                ),
                transit: Transit::new(config.snoop, config.window, config.stand_in),
                mobile_ip: config
                    .mobile_ip
                    .map(|config| MobileIp::new(config, &mut rng, now)),
                path_mtus: PathMtus::new(config.path_mtu),
                pings: Pings::default(),
            },
            rng,
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

    /// Sets the incarnation of the node, so that its peers notice at once if it is killed. Call
    /// before anything except [`Self::set_wall_clock`] and [`Self::restore_leases`].
    pub fn set_incarnation(&mut self, incarnation: Incarnation) {
        self.ike.set_incarnation(incarnation);
    }

    /// Sets the address at which a peer with a name was last up, as [`Event::NameProved`] told an
    /// earlier process.
    pub fn restore_address(&mut self, name: &str, address: IpAddr) {
        self.own.naming.restore(name, address);
    }

    /// Brings a peer up with its children, and keeps it up. Errors if there is no such peer.
    pub fn up(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        let peer = self.id(peer)?;
        self.own.tunnels.want(peer, true, now)?;
        self.ike.bar(peer, false, now);
        self.initiate_due(now);
        Ok(())
    }

    /// Takes a peer down, with its users if it stands for many identities: deletes its SAs (more
    /// than one if both ends initiated at once). Neither end brings the peer back until
    /// [`Self::up`]: the peer's initiations are refused.
    pub fn down(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        let peer = self.id(peer)?;
        self.own.tunnels.want(peer, false, now)?;
        self.stop_looking(peer);
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
        let peer = self.id(peer).map_err(|_| UnknownChild)?;
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
        let peer = self.id(peer).map_err(|_| UnknownChild)?;
        self.ike.close_child(peer, child, now)?;
        self.drain(now);
        Ok(())
    }

    /// Deletes all SAs with a peer because this host cannot do its part. `why` is the
    /// human-readable reason. A peer that should be up is retried.
    pub fn withdraw(&mut self, peer: PeerId, why: String, now: Instant) {
        self.close_all(peer, now);
        self.refused(Some(peer), why, now);
    }

    /// Deletes every SA. The deletes are in [`Node::poll_transmit`]. There is no need to wait for
    /// the answers.
    pub fn shutdown(&mut self, now: Instant) {
        for peer in self.ike.peers() {
            // Each peer of the engine is known.
            let _ = self.own.tunnels.want(peer.id, false, now);
            let namings = self.own.namings().into_iter();
            namings.for_each(|naming| naming.end(peer.id));
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
        let peer = self.id(peer).map_err(|_| CannotRekey::UnknownPeer)?;
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
        let peer = self.id(peer)?;
        let sa = self.established(peer);
        let sa = sa.ok_or(ike::CannotReauthenticate::NotUp)?;
        self.ike.reauthenticate(sa, now)?;
        self.drain(now);
        Ok(())
    }

    /// Redirects a peer that initiated to another gateway (RFC 5685). The peer has left when its
    /// SAs are down.
    pub fn redirect(
        &mut self,
        peer: &str,
        to: Destination,
        now: Instant,
    ) -> Result<(), CannotRedirect> {
        let peer = self.id(peer)?;
        let sa = self.established(peer).ok_or(ike::CannotRedirect::NotUp)?;
        self.ike.redirect(sa, to, now)?;
        self.drain(now);
        Ok(())
    }

    /// Pings a peer through its tunnel. [`Self::take_ping`] returns the report when it is over.
    pub fn ping(
        &mut self,
        peer: &str,
        count: NonZeroU16,
        now: Instant,
    ) -> Result<PingId, CannotPing> {
        let peer = self.id(peer).map_err(|_| CannotPing::UnknownPeer)?;
        let begun = self.pings(now, |pings, sas, turn| pings.begin(peer, count, sas, turn));
        self.drain(now);
        begun
    }

    /// Returns the report of a ping that is over, once.
    pub fn take_ping(&mut self, id: PingId) -> Option<PingReport> {
        self.own.pings.take(id)
    }

    /// Moves a peer's tunnel so that it leaves from an address, or by the best way there is. The
    /// peer is told even if that is the way it takes.
    pub fn move_peer(
        &mut self,
        peer: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, CannotMove> {
        let sa = self.own.tunnels.movable(self.id(peer)?, &self.ike)?;
        let path = self.own.tunnels.moving().choose(sa, from, now)?;
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
        let or_hard = false;
        self.start_asked(peer, Goal::Asked { from, or_hard }, now)
    }

    /// The same, or with a pause if it is not possible without one. Returns the path, and false if
    /// there is a pause.
    pub fn hand_over_or_move(
        &mut self,
        peer: &str,
        from: IpAddr,
        now: Instant,
    ) -> Result<(Path, bool), CannotMove> {
        let goal = Goal::Asked {
            from: Some(from),
            or_hard: true,
        };
        use ike::CannotMove::{Enough, NotByClone, NotCloned};
        match self.start_asked(peer, goal, now) {
            Err(CannotMove::Ike(NotCloned | Enough | NotByClone)) => {
                Ok((self.move_peer(peer, Some(from), now)?, false))
            }
            handed_over => Ok((handed_over?, true)),
        }
    }

    /// Handles the signal of a network with these local addresses, in per cent, which an external
    /// source reports, such as a connection manager. Tunnels leave a weak one without a pause if
    /// another path works. The report expires after half a minute.
    pub fn handle_signal(
        &mut self,
        locals: &[IpAddr],
        percent: u8,
        by: Option<&str>,
        now: Instant,
    ) {
        self.turn(now, |own, turn| {
            own.tunnels.handle_signal(locals, percent, by, turn);
        });
        self.drain(now);
    }

    /// Returns the signal of a local address, if a source reports it.
    pub fn signal(&self, local: IpAddr) -> Option<&Reported> {
        self.own.tunnels.signal_of(local)
    }

    fn start_asked(&mut self, peer: &str, goal: Goal, now: Instant) -> Result<Path, CannotMove> {
        let sa = self.own.tunnels.movable(self.id(peer)?, &self.ike)?;
        let started = self.start_hand_over(sa, goal, now)?;
        self.drain(now);
        let (path, _) = started.ok_or(ike::CannotMove::NotUp)?;
        Ok(path)
    }

    /// Selects the protection of packets to a peer from now on, among the agreed levels. Packets
    /// that may not go unencrypted are zoned.
    pub fn choose_level(&mut self, peer: &str, signal: Signal) -> Result<(), NoLevel> {
        let peer = self.id(peer).map_err(|_| NoLevel::UnknownPeer)?;
        let role = self.ike.peer(peer).map(|peer| &peer.role);
        let theirs = self.own.licensing.grants().iter();
        let theirs = theirs.filter(|(_, csa)| csa.peer == peer);
        let agreed = theirs.map(|(_, csa)| csa.agreement.level.is_some());
        let choice = self.own.tunnels.choose_level(peer, role, agreed, signal)?;
        self.plane.apply(Command::Level(peer, choice));
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

    /// Ends the sessions that a peer or the user with an identity may resume, or all. Tunnels stay
    /// up, and the next one takes a full exchange. Errors if there is no such peer.
    pub fn end_sessions(&mut self, peer: Option<&str>) -> Result<(), UnknownPeer> {
        let Some(name) = peer else {
            self.ike.end_sessions(None);
            return Ok(());
        };
        if let Ok(peer) = self.id(name) {
            self.ike.end_sessions(Some(peer));
            return Ok(());
        }
        // The user may not be here.
        let Ok(identity) = name.parse();
        self.ike.claimed(&identity).ok_or(UnknownPeer)?;
        self.ike.end_sessions_of(&identity);
        Ok(())
    }

    /// Sets the key of the references that name sessions in their store.
    pub fn refer_by(&mut self, key: ReferenceKey) {
        self.ike.refer_by(key);
    }

    /// Sets the keys of tickets by value that an earlier process has kept.
    pub fn seal_by(&mut self, keys: TicketKeys, now: Instant) {
        self.ike.seal_by(keys, now);
    }

    /// Handles the outcome of a request to the store of sessions.
    pub fn handle_stored(&mut self, outcome: Outcome, now: Instant) {
        self.ike.handle_stored(outcome, now);
        self.drain(now);
    }

    /// Handles what the driver knows of a name, after [`Event::NameWanted`] with the same peer.
    pub fn handle_name_sources(
        &mut self,
        peer: PeerId,
        name: &str,
        sources: &Sources,
        now: Instant,
    ) {
        self.turn(now, |own, turn| {
            for naming in own.namings() {
                naming.handle_sources(peer, name, sources, turn);
            }
        });
        self.initiate_named(now);
    }

    /// Handles the answer of a name server to one message of a query.
    pub fn handle_name_reply(&mut self, query: QueryId, message: &[u8], now: Instant) {
        self.turn(now, |own, turn| {
            for naming in own.namings() {
                naming.handle_reply(query, message, turn);
            }
        });
        self.initiate_named(now);
    }

    /// Handles a query that could not be sent, or that its server has refused.
    pub fn handle_name_unsent(&mut self, query: QueryId, why: String, now: Instant) {
        self.turn(now, |own, turn| {
            for naming in own.namings() {
                naming.handle_unsent(query, &why, turn);
            }
        });
        self.initiate_named(now);
    }

    /// Handles a change of interfaces, addresses or routes: the names of peers that are not up are
    /// looked up again. [`Self::handle_ways`] follows, if ways are wanted.
    pub fn handle_network_change(&mut self, now: Instant) {
        let idle = self.turn(now, |own, turn| own.naming.handle_change(turn));
        for peer in idle {
            self.own.tunnels.hasten(peer, now);
        }
        self.initiate_due(now);
    }

    /// The addresses of peers to which ways are wanted, those in use before others.
    pub fn remotes(&self) -> Vec<IpAddr> {
        let mut remotes = self.own.tunnels.remotes(&self.ike);
        let named = self.own.naming.candidates();
        let named = named.chain(self.own.redirects.candidates());
        let named: BTreeSet<_> = named.filter(|one| !remotes.contains(one)).collect();
        remotes.extend(named);
        remotes
    }

    /// The addresses of the peer of one tunnel, to which ways are wanted.
    pub fn remotes_of(&self, sa: IkeSaId) -> &[IpAddr] {
        self.own.tunnels.remotes_of(sa)
    }

    /// By which pairs of addresses packets can leave now to the peer of one tunnel, for each of
    /// [`Self::remotes_of`] the best first.
    pub fn handle_ways_of(&mut self, sa: IkeSaId, ways: &[Way], now: Instant) {
        self.own.tunnels.moving().handle_ways(sa, ways, now);
        self.own.tunnels.live().stir_all();
        self.drain(now);
    }

    /// Sets the interfaces of the addresses of this host, which rules for the traffic of live paths
    /// name.
    pub fn set_interfaces(&mut self, interfaces: BTreeMap<IpAddr, String>, now: Instant) {
        self.own.tunnels.set_interfaces(interfaces);
        self.drain(now);
    }

    /// By which pairs of addresses packets can leave now: all of them, for each of
    /// [`Self::remotes`] the best first.
    pub fn handle_ways(&mut self, ways: &[Way], now: Instant) {
        self.own.tunnels.handle_ways(ways, now);
        // The best of each comes first, and is the last to be entered.
        let best = ways.iter().rev().map(|way| (way.remote, way.local));
        let best: BTreeMap<_, _> = best.collect();
        let remotes = self.remotes().into_iter();
        self.ike
            .set_sources(remotes.map(|remote| (remote, best.get(&remote).copied())));
        for naming in self.own.namings() {
            naming.handle_ways(|remote| best.contains_key(remote));
        }
        self.initiate_due(now);
    }

    /// Handles all deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.turn(now, |own, turn| own.tunnels.tell_liveness(turn));
        let silent = self.turn(now, |own, turn| own.tunnels.break_silences(turn));
        self.path_mtus(now, |path_mtus, sas, turn| {
            path_mtus.doubt(&silent, sas, turn);
        });
        self.turn(now, |own, turn| own.tunnels.judge_initiations(turn));
        self.turn(now, |own, turn| {
            for naming in own.namings() {
                naming.handle_timeout(turn);
            }
        });
        self.ike.handle_timeout(now);
        self.turn(now, |own, turn| own.tunnels.handle_timeout(turn));
        self.own.licensing.handle_timeout(now);
        self.path_mtus(now, PathMtus::handle_timeout);
        self.pings(now, Pings::handle_timeout);
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

    /// Sends the dummy packets, probes, pings and answers that are due, using `packet` as the
    /// buffer. Call after each [`Node::handle_timeout`].
    pub fn cover(&mut self, packet: &mut Packet, sink: &mut impl Sink) {
        while let Some(peer) = self.own.tunnels.pop_cover() {
            if let Some(path) = self.plane.cover(peer, packet) {
                sink.transmit(packet, path);
            }
        }
        self.own.path_mtus.send_probes(&self.plane, packet, sink);
        for (sa, answered) in self.own.pings.send(&self.plane, packet, sink) {
            self.ike.note_pings(sa, answered);
        }
    }

    // Inputs of path MTU discovery.

    /// Handles a router's report that a packet was too long. It changes nothing unless it quotes a
    /// recent packet of an SA on its path.
    pub fn handle_too_big(&mut self, report: Quoted, now: Instant) {
        self.path_mtus(now, |path_mtus, sas, turn| {
            path_mtus.handle_too_big(report, sas, turn);
        });
    }

    /// Handles the MTU of the interface by which a path leaves, after a packet was too long for it
    /// or after [`Node::poll_path_mtu`].
    pub fn handle_interface_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        self.path_mtus(now, |path_mtus, sas, turn| {
            path_mtus.handle_interface(path, mtu, sas, turn);
        });
    }

    /// Has the system asked again for the MTUs of all paths: interfaces or routes have changed.
    pub fn remeasure_paths(&mut self) {
        self.own.path_mtus.remeasure();
    }

    /// Reports that the system's path MTU for a Mobile IP tunnel is implausibly small. The value is
    /// counted and reported once in ten minutes, for as long as the system remembers it.
    pub fn disbelieve_path_mtu(&mut self, path: Path, mtu: u16, now: Instant) {
        self.path_mtus(now, |path_mtus, _, turn| {
            path_mtus.disbelieve(path, mtu, turn);
        });
    }

    // Commands and inputs of Mobile IP.

    /// Sets the time of day, which proves that registrations and tokens are recent.
    pub fn set_time_of_day(&mut self, time: NtpTime, now: Instant) {
        self.own.licensing.migration().set_time(time, now);
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.set_time(time, now);
        }
    }

    /// Ends all registrations of a mobile node; [`mobile_ip::MobileEvent::Deregistered`] follows.
    /// Returns false if there is nothing to wait for.
    pub fn deregister(&mut self, now: Instant) -> bool {
        let mobile_ip = self.own.mobile_ip.as_mut();
        let waits = mobile_ip.is_some_and(|mobile_ip| mobile_ip.deregister(now));
        self.drain(now);
        waits
    }

    /// Sets the addresses that a foreign agent's host needs itself, apart from those of its peers:
    /// its own, the networks of its interfaces, next hops and name servers. A visitor cannot have a
    /// home address among them.
    pub fn set_reserved(&mut self, reserved: Vec<TrafficSelector>, now: Instant) {
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.set_reserved(reserved, &self.ike);
        }
        self.drain(now);
    }

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
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.handle_discovery(interface, source, station, octets, now);
        }
        self.drain(now);
    }

    /// Handles a routed UDP datagram to an agent: for port 434, or an answer to a message from
    /// another port.
    pub fn handle_registration(&mut self, arrival: &Arrival, octets: &[u8], now: Instant) {
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.handle_registration(arrival, octets, now);
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
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.handle_nearby(arrival, station, octets, now);
        }
        self.drain(now);
    }

    /// Records that an interface of a mobile node works or does not work any more.
    pub fn handle_link(&mut self, interface: u32, works: bool, now: Instant) {
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.handle_link(interface, works, now);
        }
        self.drain(now);
    }

    /// Encapsulates a datagram into the tunnels of a home or foreign agent. Calls `each` with every
    /// header to send it with. A dropped datagram is counted.
    pub fn encapsulate(&mut self, datagram: &[u8], each: impl FnMut(Envelope), now: Instant) {
        if let Some(mobile_ip) = &mut self.own.mobile_ip {
            mobile_ip.encapsulate(datagram, each, now);
        }
    }

    /// Decapsulates a packet from the other end of a tunnel. Returns the datagram if it may leave
    /// the tunnel, with the header to forward it with, if there is one. For UDP encapsulation
    /// `octets` is the whole payload, which begins with [`crate::mobile_ip::message::TUNNEL_DATA`].
    pub fn decapsulate<'a>(
        &mut self,
        from: Remote,
        ecn: Ecn,
        octets: &'a mut [u8],
        now: Instant,
    ) -> Option<TakenOut<'a>> {
        let mobile_ip = self.own.mobile_ip.as_mut()?;
        let taken = mobile_ip.decapsulate(from, ecn, octets, now).ok()?;
        if taken.is_none() {
            self.drain(now);
        }
        taken
    }

    // Outputs.

    /// Returns the next lease to store. Store it before sending anything from
    /// [`Node::poll_transmit`], because a peer may use its address as soon as it knows it.
    pub fn poll_lease(&mut self) -> Option<LeaseChange> {
        self.ike.poll_lease()
    }

    /// Returns the use of a session's last full exchange so far, if its tunnel is up.
    pub fn session_usage(&self, handle: &Handle, now: Instant) -> Option<Usage> {
        self.ike.session_usage(handle, now)
    }

    /// Returns the next request to the store of sessions. [`Self::handle_stored`] takes its
    /// outcome.
    pub fn poll_store(&mut self) -> Option<Operation> {
        self.ike.poll_store()
    }

    /// Returns the next query for a name server.
    pub fn poll_query(&mut self) -> Option<Query> {
        let mut namings = self.own.namings().into_iter();
        namings.find_map(Naming::poll_query)
    }

    /// Returns the addresses of a peer with a name, as far as known.
    pub fn addresses_of(&self, peer: PeerId) -> Vec<IpAddr> {
        self.own.naming.addresses_of(peer)
    }

    /// Returns true if the answer to a query is still of use.
    pub fn is_asking(&self, query: QueryId) -> bool {
        self.own.naming.is_asking(query) || self.own.redirects.is_asking(query)
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

    /// Returns the next path whose interface the system should be asked for: its MTU goes to
    /// [`Node::handle_interface_mtu`].
    pub fn poll_path_mtu(&mut self) -> Option<Path> {
        self.own.path_mtus.poll_wanted()
    }

    /// Returns the next registration message of Mobile IP to send.
    pub fn poll_registration(&mut self) -> Option<mobile_ip::Transmit> {
        self.own.mobile_ip.as_mut()?.poll_transmit()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns true if [`Node::poll_event`] has an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
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
            self.own.naming.poll_timeout(),
            self.own.redirects.poll_timeout(),
            self.own.licensing.poll_timeout(),
            self.own.transit.poll_timeout(),
            self.own.mobile_ip.as_ref().and_then(MobileIp::poll_timeout),
            self.own.path_mtus.poll_timeout(),
            self.own.pings.poll_timeout(),
            reports,
        ];
        engines.into_iter().flatten().min()
    }

    // Status.

    fn view(&self) -> View<'_> {
        View {
            names: &self.names,
            own: &self.own,
            ike: &self.ike,
            plane: &self.plane,
        }
    }

    /// Returns the names of all peers that were ever configured.
    pub const fn names(&self) -> &Arc<PeerNames> {
        &self.names
    }

    /// Returns the name of a peer, even if the peer is no longer configured.
    pub fn name(&self, peer: PeerId) -> &str {
        self.names.name(peer)
    }

    /// Returns the status of every configured peer, in the order of the configuration, then of
    /// every user.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.view().peers()
    }

    /// Returns the names of the configured peers and of every user, sorted.
    pub fn peer_names(&self) -> Vec<&str> {
        let peers = self.ike.peers().iter().chain(self.ike.users());
        let mut names: Vec<_> = peers.map(|peer| self.name(peer.id)).collect();
        names.sort_unstable();
        names
    }

    /// Returns the status of the peer with a name, without visiting others.
    pub fn peer_named(&self, name: &str) -> Option<PeerStatus> {
        self.view().peer(self.id(name).ok()?)
    }

    /// Returns the numbers of configured peers, in the order of the configuration, of `most` peers
    /// at most.
    pub fn peer_numbers(&self, most: usize) -> Vec<PeerNumbers> {
        self.view().numbers().take(most).collect()
    }

    /// Returns the numbers of peers, SAs and grants.
    pub fn totals(&self) -> Totals {
        Totals {
            peers: self.ike.peers().len(),
            users: self.ike.users().count(),
            up: self.own.tunnels.count_up(),
            children: self.own.tunnels.children().len(),
            grants: self.own.transit.held().count(),
        }
    }

    /// Returns how long the set-ups of IKE SAs took.
    pub const fn set_ups(&self) -> &SetUps {
        self.own.tunnels.tally().set_ups()
    }

    /// Returns the gateways of this licensed node, each with the number of packets that their
    /// grants opened.
    pub fn opened_for(&self) -> impl Iterator<Item = (PeerId, u64)> {
        let opened = self.own.transit.opened_for();
        let peers = self.ike.peers().iter();
        let gateways = peers.filter(|peer| matches!(peer.role, Role::Gateway));
        gateways.map(move |peer| (peer.id, opened.get(&peer.id).copied().unwrap_or_default()))
    }

    /// Returns true if the tunnel with the peer of this name is up.
    pub fn is_up(&self, peer: &str) -> bool {
        let entry = self.id(peer).ok().and_then(|id| self.own.tunnels.entry(id));
        entry.is_some_and(|entry| entry.up_since.is_some())
    }

    /// Returns the composite SAs of this endpoint.
    pub fn composite_sas(&self) -> Vec<CsaStatus> {
        self.view().composite_sas()
    }

    /// Returns true if any child SA is up.
    pub fn has_tunnel(&self) -> bool {
        !self.own.tunnels.children().is_empty()
    }

    /// Returns the last refusal of an unknown peer.
    pub const fn refused_stranger(&self) -> Option<&Refused> {
        self.own.tunnels.stranger()
    }

    /// Returns the last attempt to establish an IKE SA with a peer.
    pub fn attempt(&self, peer: &str) -> Option<ike::Attempt> {
        self.ike.attempt(self.id(peer).ok()?)
    }

    /// Returns the last attempt of an initiator that has not authenticated as any peer.
    pub const fn stranger(&self) -> Option<&ike::Attempt> {
        self.ike.stranger()
    }

    /// Returns the addresses and other settings that peers assign to us, with the peers.
    pub fn inside(&self) -> impl Iterator<Item = &(PeerId, Inside)> {
        self.own.tunnels.assigned()
    }

    /// Returns every lease of our pools.
    pub fn leases(&self) -> impl Iterator<Item = Lease> {
        self.ike.leases()
    }

    /// Returns the grants that this licensed node holds.
    pub fn held_grants(&self) -> Vec<HeldGrant> {
        self.own.transit.held().collect()
    }

    /// Returns the flows under SNOOP.
    pub fn flows(&self) -> Vec<pep::FlowStatus> {
        self.own
            .transit
            .snoop()
            .map_or_else(Vec::new, |snoop| snoop.flows().collect())
    }

    /// Returns the streams that IKE SAs use. Any other stream is obsolete, or not yet in use.
    pub fn streams(&self) -> impl Iterator<Item = Path> {
        self.ike.streams()
    }

    /// Returns the counters of the data plane.
    pub fn esp_counters(&self) -> esp::Counters {
        self.plane.counters()
    }

    /// Returns the peer whose IKE SA a message belongs to, if the peer is known. The message, sent
    /// or received, is not necessarily authentic.
    pub fn peer_of(&self, message: &[u8]) -> Option<PeerId> {
        self.ike.peer_of(message)
    }

    /// Returns the paths of the tunnels that are up, and those that they could take.
    pub fn paths(&self) -> Vec<PathsStatus> {
        self.own.tunnels.paths(&self.ike)
    }

    /// Returns the counters of key migration.
    pub const fn migrations(&self) -> &MigrationCounters {
        self.own.licensing.migrations()
    }

    /// Returns the counters of the IKE engine.
    pub fn ike_counters(&self) -> &ike::Counters {
        self.ike.counters()
    }

    /// Returns the counters of the licensed node.
    pub fn transit_counters(&self) -> &TransitCounters {
        self.own.transit.counters()
    }

    /// Returns the counters of SNOOP, if it is on.
    pub fn snoop_counters(&self) -> Option<&pep::Counters> {
        self.own.transit.snoop().map(pep::Snoop::counters)
    }

    /// Returns the counters of probes.
    pub const fn probe_counts(&self) -> ProbeCounts {
        self.own.path_mtus.counts()
    }

    /// Returns the number of implausible and refuted reports of path MTUs.
    pub const fn disbelieved_path_mtus(&self) -> u64 {
        self.own.path_mtus.disbelieved()
    }

    /// Returns the status of Mobile IPv4, with the latest refusal or failure; `None` without a
    /// role.
    pub fn mobile_ip(&self) -> Option<(mobile_ip::Status, Option<&Refused>)> {
        let mobile_ip = self.own.mobile_ip.as_ref()?;
        Some((mobile_ip.status(), mobile_ip.refusal()))
    }

    /// Returns the numbers of packets encapsulated (counting each copy), decapsulated, and
    /// forwarded for visitors that have left.
    pub fn tunnelled(&self) -> Option<(u64, u64, u64)> {
        self.own.mobile_ip.as_ref()?.tunnelled()
    }

    /// Returns the counters of keepalives in UDP tunnels.
    pub fn keepalives(&self) -> Option<Keepalives> {
        self.own.mobile_ip.as_ref()?.keepalives()
    }

    /// Returns the numbers of dropped messages and packets of Mobile IP, by the label of the
    /// reason. Some labels occur for both.
    pub fn mobile_ip_drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mobile_ip = self.own.mobile_ip.iter();
        mobile_ip.flat_map(MobileIp::drops)
    }

    /// Returns the number of accepted registrations and the numbers of denied ones by code.
    pub fn registrations(&self) -> Option<(u64, impl Iterator<Item = (u8, u64)>)> {
        Some(self.own.mobile_ip.as_ref()?.registrations())
    }

    /// Returns true if a table stands for an identity.
    pub fn stands_for(&self, table: &str, identity: &str) -> bool {
        let Ok(identity) = identity.parse();
        let claimed = self.ike.claimed(&identity);
        let of = claimed.map(|peer| self.ike.table_of(peer).unwrap_or(peer));
        of.is_some() && of == self.id(table).ok()
    }

    // Internals.

    /// Deletes every SA with a peer and, if it stands for many identities, with its users.
    fn close_all(&mut self, peer: PeerId, now: Instant) {
        let peers = [peer].into_iter().chain(self.ike.users_of(peer));
        let sas = peers.flat_map(|peer| self.ike.sas_of(peer)).map(|sa| sa.id);
        for sa in sas.collect::<Vec<_>>() {
            self.ike.close(sa, now);
        }
        self.drain(now);
    }

    /// Returns the identifier of a configured peer or a user.
    pub(crate) fn id(&self, peer: &str) -> Result<PeerId, UnknownPeer> {
        let id = self.names.id(peer);
        id.filter(|id| self.ike.peer(*id).is_some())
            .ok_or(UnknownPeer)
    }

    pub(crate) fn established(&self, peer: PeerId) -> Option<IkeSaId> {
        self.own.tunnels.established(peer)
    }

    /// Returns the IKE SA with a peer, if it is up.
    #[cfg(test)]
    pub(crate) fn sa_with(&self, peer: &str) -> Option<IkeSaId> {
        self.established(self.id(peer).ok()?)
    }

    /// Ends all lookups for a peer.
    fn stop_looking(&mut self, peer: PeerId) {
        let namings = self.own.namings().into_iter();
        namings.for_each(|naming| naming.end(peer));
    }

    fn initiate_due(&mut self, now: Instant) {
        for peer in self.own.tunnels.take_due(now) {
            let Some(address) = self.ike.peer(peer).and_then(|peer| peer.address) else {
                self.turn(now, |own, turn| own.naming.begin(peer, turn));
                continue;
            };
            // An attempt that was refused may have been redirected.
            let refused = self.own.tunnels.current(peer);
            let refused = refused.and_then(|sa| self.ike.sa(sa));
            let there = refused.as_ref().map(|sa| sa.path.remote.ip());
            let path = self.own.tunnels.outside();
            let path = path.first_path(peer, there.unwrap_or(address));
            match self.ike.initiate(peer, path, now) {
                Ok(sa) => self.own.tunnels.started(peer, sa, now),
                // The refused attempt, or one before it, continues after all.
                Err(_) if refused.is_some() => self.own.tunnels.put_off(peer, now),
                Err(misuse) => {
                    let why = misuse.to_string().into();
                    self.own.tunnels.not_started(peer, why, now);
                }
            }
        }
        self.initiate_named(now);
    }

    /// Initiates at the addresses of names that are due.
    fn initiate_named(&mut self, now: Instant) {
        while let Some(start) = self.own.naming.take_start(&self.ike, now) {
            let (peer, outside) = (start.peer, self.own.tunnels.outside());
            let path = outside.first_path(peer, start.address);
            let begun = match start.beside {
                true => self.ike.initiate_beside(peer, path, now),
                false => self.ike.initiate(peer, path, now),
            };
            match begun {
                Ok(sa) => {
                    self.own.tunnels.started(peer, sa, now);
                    self.own.naming.started(&start, sa, now);
                }
                // Another attempt is answered, and its outcome decides.
                Err(_) => self.own.tunnels.put_off(peer, now),
            }
        }
        while let Some(start) = self.own.redirects.take_start(&self.ike, now) {
            match self.ike.follow(start.peer, start.address, now) {
                Ok(sa) => self.own.redirects.started(&start, sa, now),
                Err(_) => self.own.redirects.end(start.peer),
            }
        }
        self.drain(now);
    }

    /// Initiates due peers at once or, if NAT detection needs the local address, after the driver
    /// has reported the routes. Peers whose sessions are resumed need it later.
    pub(crate) fn initiate_known(&mut self, now: Instant) {
        let honest = self.own.tunnels.outside().is_honest();
        if !honest {
            self.initiate_due(now);
        }
        let resumes = |peer: &ike::Peer| peer.resumption != ike::Resumption::Off;
        if honest || self.ike.peers().iter().any(resumes) {
            self.events.push_back(Event::WaysWanted { of: None });
        }
    }
}
