//! The composition: commands, inputs, outputs. How engines meet is in `junction.rs`.

use crate::config::{Config, Inside, Peer, Policy, Role};
use crate::cover::Cover;
use crate::grants::Grants;
use crate::level::Levels;
use crate::migration::Migration;
use crate::mobile_ip::MobileIp;
use crate::moving::Moving;
use crate::path_mtu::PathMtus;
use crate::peers::Peers;
use crate::silence::Silences;
use crate::status::ChildStatus;
use crate::succession::Succession;
use crate::transit::Transit;
use crate::whereabouts::Whereabouts;
use crate::{Event, Side, Verdict, migration};
use crypto::{Rng, Secret, UnixTime};
use esp::{Packet, Seat, Sink, Spd, Workers};
use ike::{Sender, UnknownChild};
use model::{
    ChildSaId, CsaId, Deadline, Encapsulation, Grant, IkeSaId, Instant, Lease, LeaseChange, Path,
    Transmit,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

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

/// Why both ends do not prove anew who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotReauthenticate {
    /// The configuration does not have the peer.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// It cannot be done, or not here.
    #[error(transparent)]
    Ike(#[from] ike::CannotReauthenticate),
}

/// Why a peer is not sent to another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRedirect {
    /// The configuration does not have the peer.
    #[error(transparent)]
    UnknownPeer(#[from] UnknownPeer),
    /// It cannot be done, or not here.
    #[error(transparent)]
    Ike(#[from] ike::CannotRedirect),
}

/// One host: see the crate's documentation for how to drive it.
pub struct Node {
    pub(crate) peers: Vec<Peer>,
    /// Names of the peers that the configuration wants up.
    pub(crate) start: Vec<String>,
    pub(crate) wishes: Peers,
    pub(crate) ike: ike::Engine,
    pub(crate) workers: Workers,
    seat: Seat,
    pub(crate) grants: Grants,
    pub(crate) transit: Transit,
    pub(crate) mobile_ip: Option<MobileIp>,
    pub(crate) children: BTreeMap<ChildSaId, Child>,
    pub(crate) succession: Succession,
    pub(crate) moving: Moving,
    pub(crate) whereabouts: Whereabouts,
    pub(crate) migration: Migration,
    pub(crate) cover: Cover,
    pub(crate) levels: Levels,
    pub(crate) path_mtus: PathMtus,
    pub(crate) silences: Silences,
    /// What peers lend us, by IKE SA, and who they are.
    pub(crate) inside: BTreeMap<IkeSaId, (String, Inside)>,
    pub(crate) rng: Rng,
    /// Where packets to a peer leave from, if its SA is to know before it begins.
    pub(crate) sources: BTreeMap<IpAddr, IpAddr>,
    pub(crate) encapsulation: Encapsulation,
    ike_port: u16,
    pub(crate) natt_port: u16,
    pub(crate) grant_lifetime: Duration,
    pub(crate) key_log: bool,
    /// Whether no key leaves that is not recorded.
    pub(crate) recording: bool,
    /// The grants that wait for that, with whom they are for.
    pub(crate) unrecorded: Vec<(String, IkeSaId, Grant<Secret>)>,
    /// Why somebody who is no configured peer was last refused.
    pub(crate) stranger: Option<(Instant, String)>,
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
}

/// What the composition remembers of a child SA.
pub(crate) struct Child {
    pub(crate) peer: String,
    pub(crate) ike: IkeSaId,
    /// Newest packet that `ike` was told about.
    pub(crate) heard: Option<Instant>,
    /// Whether nothing may be sent on it any more.
    pub(crate) retired: bool,
    pub(crate) status: ChildStatus,
}

impl Node {
    /// A node that wants the peers of `config.start` up. `seed` is all the randomness it will
    /// ever have: 32 octets from the operating system in production.
    pub fn new(config: Config, seed: [u8; 32], now: Instant) -> Self {
        let mut rng = Rng::from_seed(seed);
        let ike_config = config.for_ike();
        let spd = spd(config.policies, &config.peers);
        let workers = Workers::new(config.workers, &spd);
        workers.set_classes(&config.classes);
        workers.set_sizes(&config.sizes);
        workers.set_clamp(config.clamp);
        let levels = Levels::new(config.levels);
        workers.set_levels(&levels.choices());
        let mut node = Self {
            wishes: Peers::default(),
            ike: ike::Engine::new(ike_config, rng.array(), now),
            start: wanted(&config.start, &config.peers),
            peers: config.peers,
            seat: workers.seat(0),
            workers,
            grants: Grants::default(),
            transit: Transit::new(config.snoop, config.window, config.stand_in),
            children: BTreeMap::new(),
            succession: Succession::default(),
            moving: Moving::default(),
            whereabouts: Whereabouts::new(config.places, config.neighbours),
            migration: Migration::default(),
            cover: Cover::default(),
            levels,
            path_mtus: PathMtus::new(config.path_mtu),
            silences: Silences::default(),
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
        for peer in &node.peers {
            node.wishes.know(&peer.name, is_reachable(peer));
        }
        for name in &node.start {
            node.wishes.want(name, true, now);
        }
        node.initiate_known(now);
        node
    }

    // Commands.

    /// Tells what the wall clock shows: certificates are valid or not by it. Until then none is.
    pub const fn set_wall_clock(&mut self, today: UnixTime) {
        self.ike.set_wall_clock(today);
    }

    /// Takes up the leases that an earlier node told, before anything else but the wall clock.
    pub fn restore_leases(&mut self, leases: Vec<Lease>) {
        self.ike.restore_leases(leases);
    }

    /// Wants a peer up, with its children, and keeps it up. Errors if there is no such peer.
    pub fn up(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, true, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, false, now);
        self.initiate_due(now);
        Ok(())
    }

    /// Wants a peer down: deletes its SAs, and until [`Self::up`] neither end brings it back: if the
    /// peer begins it is refused. There are several SAs if both ends began at once.
    pub fn down(&mut self, peer: &str, now: Instant) -> Result<(), UnknownPeer> {
        self.wishes.want(peer, false, now).ok_or(UnknownPeer)?;
        self.ike.bar(peer, true, now);
        self.close_all(peer, now);
        Ok(())
    }

    /// Wants a child of a peer's beside the first up, and keeps it up while the peer is.
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

    /// Deletes a child of a peer's beside the first; until [`Self::open_child`] or [`Self::up`] neither
    /// end brings it back.
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

    /// Ends what was agreed with a peer, as our host cannot do its part of it, for a reason that a
    /// person can read. A peer that is wanted is tried again.
    pub fn withdraw(&mut self, peer: &str, why: String, now: Instant) {
        self.close_all(peer, now);
        self.refused(Some(peer.to_owned()), why, now);
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

    /// Whether keys wait before they leave for licensed nodes until [`Node::give`] says that this is
    /// recorded. Those that did not leave so far are asked for again.
    pub fn set_recording(&mut self, on: bool, now: Instant) {
        self.recording = on;
        self.grants.owe_withheld(now);
        let names: Vec<_> = self.peers.iter().map(|peer| peer.name.clone()).collect();
        names.iter().for_each(|name| self.distribute(name, now));
        self.drain(now);
    }

    /// Answers [`Event::Giving`]: the keys leave, or they do not for a reason that a person can read.
    /// What has ended meanwhile does not leave in any case.
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

    /// Makes a new IKE SA that takes the place of the one with a peer, if it is ours to make: both ends
    /// prove anew who they are, and no packet is lost.
    pub fn reauthenticate(&mut self, peer: &str, now: Instant) -> Result<(), CannotReauthenticate> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer);
        let sa = sa.ok_or(ike::CannotReauthenticate::NotUp)?;
        self.ike.reauthenticate(sa, now)?;
        self.drain(now);
        Ok(())
    }

    /// Sends a peer that began to another gateway (RFC 5685). It has gone when its SAs are down.
    pub fn redirect(&mut self, peer: &str, to: IpAddr, now: Instant) -> Result<(), CannotRedirect> {
        self.peer(peer).ok_or(UnknownPeer)?;
        let sa = self.established(peer).ok_or(ike::CannotRedirect::NotUp)?;
        self.ike.redirect(sa, to, now)?;
        self.drain(now);
        Ok(())
    }

    /// Gives no packet of any SA a number up to this one any more, as if so many had been sent: for tests of
    /// what comes late.
    pub fn skip_numbers(&mut self, number: u64) {
        for id in self.children.keys() {
            self.workers.skip_to(*id, number);
        }
    }

    // Inputs.

    /// An IKE message, without a non-ESP marker.
    pub fn handle_datagram(&mut self, path: Path, message: &[u8], now: Instant) {
        self.ike.handle_datagram(path, message, now);
        self.drain(now);
    }

    /// What is known of the sender of an IKE message, and so where the message may wait.
    pub fn sender(&self, path: Path, message: &[u8], now: Instant) -> Sender {
        self.ike.sender(path, message, now)
    }

    /// Handles a first message that has to come again with a cookie; gives the answer to send.
    pub fn ask_for_cookie(&mut self, path: Path, message: &[u8], now: Instant) -> Option<Transmit> {
        self.ike.ask_for_cookie(path, message, now)
    }

    /// A stream that was to be made for something to send is lost, or could not be made.
    pub fn handle_disconnected(&mut self, path: Path, now: Instant) {
        self.ike.handle_disconnected(path, now);
        self.drain(now);
    }

    /// A deadline has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell_liveness(now);
        self.break_silences(now);
        self.ike.handle_timeout(now);
        self.moving.handle_timeout(now);
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

    /// Inner datagrams on their way out: what policy says is protected is sealed into the sink.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.seat.seal(batch, sink, now);
        if self.workers.has_reports() {
            self.drain(now);
        }
    }

    /// Payloads of UDP port 4500 that [`is_esp`](wire::esp::is_esp): opened into the sink.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.seat.open(batch, sink, now);
        if self.workers.has_reports() {
            self.drain(now);
        }
    }

    /// A diverted IP packet of somebody else, from one side of a licensed node.
    pub fn transit(&mut self, from: Side, packet: &[u8], now: Instant) -> Verdict {
        let verdict = self.transit.handle(from, packet, now);
        self.tell_pairs();
        verdict
    }

    /// A place for another thread that seals and opens beside this node, from 1: it may do so while the node
    /// does anything else. [`esp::Seat::has_reports`] says when the node wants [`Node::handle_timeout`] at once.
    pub fn seat(&self, number: usize) -> Seat {
        self.workers.seat(number)
    }

    // Outputs.

    /// The next lease to remember, before anything of [`Node::poll_transmit`] is sent: whoever gets an
    /// address may use it from then on.
    pub fn poll_lease(&mut self) -> Option<LeaseChange> {
        self.ike.poll_lease()
    }

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
        let reports = self.workers.has_reports().then_some(Deadline {
            at: Instant::ZERO,
            reason: "the data plane has something to say",
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
            self.mobile_ip.as_ref().and_then(MobileIp::poll_timeout),
            reports,
        ];
        engines.into_iter().flatten().min()
    }

    // Inside.

    /// Deletes every SA with a peer.
    fn close_all(&mut self, peer: &str, now: Instant) {
        let sas = self.ike.sas();
        let with_peer = sas.filter(|sa| sa.peer.as_deref() == Some(peer));
        let ids: Vec<_> = with_peer.map(|sa| sa.id).collect();
        ids.into_iter().for_each(|sa| self.ike.close(sa, now));
        self.drain(now);
    }

    pub(crate) fn peer(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
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

    /// The same as soon as it is known where packets leave from, if that matters.
    pub(crate) fn initiate_known(&mut self, now: Instant) {
        match self.encapsulation {
            Encapsulation::Always => self.initiate_due(now),
            Encapsulation::ForNat => self.events.push_back(Event::WaysWanted),
        }
    }

    /// Where an initiation starts: our address is left to the operating system, unless the peer is to
    /// tell by it whether there is a NAT.
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

    /// Lets IKE know which peers were heard through ESP before it asks them, so that liveness checks
    /// cost nothing while traffic flows (RFC 7296 section 2.4), and where from. Those whose time has not come need not
    /// be looked at.
    fn tell_liveness(&mut self, now: Instant) {
        let due: Vec<_> = self.ike.due(now).collect();
        for (sa, children) in due {
            let mut newest = None;
            for id in children {
                let heard = self.workers.last_inbound(id);
                newest = newest.max(heard.map(|heard| (heard, id)));
                let child = self.children.get_mut(&id);
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

/// The policies of a host, and what its peers are to carry.
pub(crate) fn spd(policies: Vec<Policy>, peers: &[Peer]) -> Spd {
    Spd::new(policies, peers.iter().flat_map(protected).collect())
}

/// Everybody to be up without a word from the operator. Licensed nodes and our neighbours always are: keys must be
/// able to leave as soon as they exist, or are asked for.
pub(crate) fn wanted(start: &[String], peers: &[Peer]) -> Vec<String> {
    let licensed = peers
        .iter()
        .filter(|peer| matches!(peer.role, Role::Licensed | Role::Neighbour));
    let licensed = licensed.map(|peer| peer.name.clone());
    licensed.chain(start.iter().cloned()).collect()
}

/// Whether we can begin with a peer. With a gateway whose grants we take we never do.
pub(crate) const fn is_reachable(peer: &Peer) -> bool {
    peer.address.is_some() && !matches!(peer.role, Role::Gateway)
}

/// Selectors that must never leave in clear, even while the peer is down.
fn protected(peer: &Peer) -> impl Iterator<Item = esp::Protected> {
    let first = match &peer.role {
        Role::Vpn { local, remote, .. } => Some((local, remote)),
        Role::Licensed | Role::Gateway | Role::Neighbour => None,
    };
    let others = peer.children.iter();
    let others = others.map(|child| (&child.local, &child.remote));
    first
        .into_iter()
        .chain(others)
        .map(|(local, remote)| esp::Protected {
            local: local.clone(),
            remote: remote.clone(),
        })
}
