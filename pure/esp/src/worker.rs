//! One thread's part of the data plane: its SAs, policies and counters.

use crate::claims;
use crate::command::PeerSettings;
use crate::drop::DropReason;
use crate::ecn;
use crate::foreign::Foreign;
use crate::inbound::Share;
use crate::key::Unusable;
use crate::lane::Lane;
use crate::level::{self, LevelStatus};
use crate::link::Link;
use crate::observed::Observed;
use crate::order::Order;
use crate::packet::Packet;
use crate::policy::{Protected, Spd};
use crate::reach::{Reach, RemoteSa};
use crate::report::{Counters, Report, SaTraffic};
use crate::room::{Fit, PathMtu};
use crate::sa::{Sa, SaStatus};
use crate::scratch::Scratch;
use crate::source::Sight;
use crypto::Secret;
use model::{ChildSa, ChildSaId, Df, Flow, Instant, LevelChoice, Path, PeerId, Spi, ZoneId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::content::Content;
use wire::ecn::Ecn;
use wire::esp::{FIRST_SPI, Header};
use wire::fragments::fragments;
use wire::probe::{Kind, Probe};
use wire::too_big::TooBig;
use wire::{ip, mss, tcp};

/// Number of SAs that a processor cache holds with all their data, some kilobytes each.
const CACHED: usize = 256;

/// Length of the longest piece of a datagram, in octets.
const LONGEST: usize = 65_535;

/// Packets whose SAs are prefetched together.
const AT_ONCE: usize = 64;

/// Pause between two reports of packets without an SA.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(10);

/// The destination of packets. Each packet of a batch is passed to exactly one of these methods, in
/// order, and is the caller's again when the call returns. Only a datagram that is too long for its
/// path, and may be fragmented, is passed to [`Sink::transmit`] in pieces instead.
pub trait Sink {
    /// Sends an ESP packet on `path`. The packet starts with the SPI: in UDP it is the payload. The
    /// outer header gets the packet's [class](Packet::class), if there is an outer header.
    fn transmit(&mut self, packet: &mut Packet, path: Path);
    /// Delivers an inner datagram to this host or the network behind it: an opened one, or the
    /// error message for the source of a datagram that is too long.
    fn deliver(&mut self, packet: &mut Packet);
    /// Reports a dropped packet. The content of its buffer must not be used.
    fn dropped(&mut self, packet: &mut Packet, why: DropReason);
    /// Returns true if dropped packets are reported by [`Sink::dropped_of`].
    fn names_peers(&self) -> bool {
        false
    }
    /// Reports a dropped packet with the peer whose SA or policy it is for, if known.
    fn dropped_of(&mut self, packet: &mut Packet, why: DropReason, _peer: Option<PeerId>) {
        self.dropped(packet, why);
    }
    /// Returns true if a datagram may be delivered with its [checksum](Packet::checksum) omitted.
    /// All others are delivered with a complete one.
    fn makes_checksums(&self) -> bool {
        false
    }
    /// Returns the number of packets that the system has refused to send, of those that left the
    /// queue.
    fn refused(&self) -> u64 {
        0
    }
    /// Sends all queued packets now. Until this returns no other thread seals on the same SAs, so
    /// packets leave in the order of their numbers.
    fn flush(&mut self) {}
}

/// Seals and opens packets. It owns its SAs by value; control calls it between batches.
pub struct Worker {
    spd: Spd,
    /// The security association database, by inbound SPI (RFC 4301 section 4.4.2), which this end
    /// chooses. Boxed because an SA is large and a map keeps spare room for its values.
    sas: FxHashMap<Spi, Box<Sa>>,
    /// SAs of other workers, by inbound SPI.
    elsewhere: FxHashMap<Spi, RemoteSa>,
    /// The inbound SPI of an SA, by the inbound SPIs of its companion SAs.
    beside: FxHashMap<Spi, Spi>,
    /// The inbound SPI of an SA, by its id, which control never reuses.
    by_id: BTreeMap<ChildSaId, Spi>,
    /// The inbound SPIs of all SAs with a peer.
    by_peer: FxHashMap<PeerId, Vec<Spi>>,
    /// SAs eligible for sending, in order of preference. All others are receive-only.
    order: Order,
    /// The MTU that TCP segments are clamped to; `None` disables clamping.
    clamp: Option<u16>,
    /// Settings of the peers that do not have the default.
    peers: BTreeMap<PeerId, PeerSettings>,
    counters: Counters,
    reports: VecDeque<Report>,
    /// No packet of an unknown SPI is reported before this time.
    unknown_from: Instant,
    scratch: Scratch,
    /// The buffer of pieces of datagrams, once there was one.
    piece: Option<Packet>,
}

/// The outcome of sealing a datagram.
enum Outcome {
    /// Sealed into a packet for this path.
    Sealed(Path),
    /// Replaced by the error message to its source.
    Answered,
    /// Fragmented; all pieces are sent.
    Cut,
    /// Another worker owns the SA that protects it.
    Elsewhere(usize),
}

impl Worker {
    /// Creates a worker without SAs.
    pub fn new(spd: Spd) -> Self {
        Self {
            spd,
            sas: FxHashMap::default(),
            elsewhere: FxHashMap::default(),
            beside: FxHashMap::default(),
            by_id: BTreeMap::new(),
            by_peer: FxHashMap::default(),
            order: Order::default(),
            clamp: None,
            peers: BTreeMap::new(),
            counters: Counters::new(),
            reports: VecDeque::new(),
            unknown_from: Instant::ZERO,
            scratch: Scratch::new(),
            piece: None,
        }
    }

    // Commands.

    /// Installs an SA and prefers it for sending.
    pub fn install(&mut self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        let id = sa.id;
        self.install_beside(sa)?;
        self.prefer(id);
        Ok(())
    }

    /// Installs an SA for receiving. It is not used for sending before [`Self::prefer`];
    /// [`Report::Confirmed`] announces its first authentic packet.
    pub fn install_beside(&mut self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        let spi = sa.inbound.spi;
        let besides = sa.opaque.iter().chain(&sa.integrity);
        let besides: Vec<_> = besides.map(|beside| beside.inbound.spi).collect();
        self.are_free(spi, &besides)?;
        let settings = settings(&self.peers, sa.peer);
        let mut installed = Sa::new(sa, settings.dscp)?;
        installed.claims = self.spd.contested(installed.peer);
        installed.outbound.choose(settings.level);
        self.reports.extend(installed.look_like(settings.sizes));
        self.by_id.insert(installed.id, spi);
        let theirs = self.by_peer.entry(installed.peer).or_default();
        theirs.push(spi);
        self.beside
            .extend(besides.into_iter().map(|beside| (beside, spi)));
        self.sas.insert(spi, Box::new(installed));
        Ok(())
    }

    /// Records another worker's SA, which is eligible for sending from the next [`Self::prefer`].
    pub(crate) fn learn(&mut self, spi: Spi, mut sa: RemoteSa) {
        sa.claims = self.spd.contested(sa.peer);
        self.by_id.insert(sa.id, spi);
        self.elsewhere.insert(spi, sa);
    }

    /// Returns true if this worker owns an SA.
    pub(crate) fn owns(&self, id: ChildSaId) -> bool {
        self.sa(id).is_some()
    }

    /// Prefers an SA over all others with its peer for the traffic that it covers.
    pub fn prefer(&mut self, id: ChildSaId) {
        let Some(spi) = self.by_id.get(&id) else {
            return;
        };
        let here = self.sas.get_mut(spi);
        let here = here.map(|sa| {
            sa.unconfirmed = false;
            (sa.peer, &sa.carries.remote, &mut sa.turn)
        });
        let elsewhere = self.elsewhere.get_mut(spi);
        let elsewhere = elsewhere.map(|sa| (sa.peer, &sa.carries.remote, &mut sa.turn));
        if let Some((peer, remote, turn)) = here.or(elsewhere) {
            // Added before its earlier turn is removed, so that the peer keeps its place.
            let later = self.order.push(peer, remote, *spi);
            if let Some(earlier) = turn.replace(later) {
                self.order.remove(peer, remote, earlier);
            }
        }
    }

    /// Stops the use of an SA for sending. It still opens packets.
    pub fn retire(&mut self, id: ChildSaId) {
        let Some(spi) = self.by_id.get(&id) else {
            return;
        };
        let here = self.sas.get_mut(spi);
        let here = here.map(|sa| (sa.peer, &sa.carries.remote, &mut sa.turn));
        let elsewhere = self.elsewhere.get_mut(spi);
        let elsewhere = elsewhere.map(|sa| (sa.peer, &sa.carries.remote, &mut sa.turn));
        if let Some((peer, remote, turn)) = here.or(elsewhere)
            && let Some(turn) = turn.take()
        {
            self.order.remove(peer, remote, turn);
        }
    }

    /// Makes all further packets of an SA opaque, because a licensed node that has the keys of the
    /// other zones lost its licence. Overlays on inbound packets are still verified, but no longer
    /// applied, and injected packets are refused.
    pub fn make_opaque(&mut self, id: ChildSaId) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.make_opaque();
            if let Some(writers) = &mut sa.inbound.writers {
                writers.heeded = false;
            }
            if let Some(injectors) = &mut sa.inbound.injectors {
                injectors.heeded = false;
            }
        }
    }

    /// Replaces the agreed ciphers of an SA by others, in both directions: see [`Foreign`].
    pub fn make_foreign(&mut self, id: ChildSaId, make: impl Fn(ZoneId) -> Box<dyn Foreign>) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.cipher.make_foreign(&make);
            sa.inbound.cipher.make_foreign(&make);
        }
    }

    /// Adds headers that `content` finds in UDP to the designated zone of a foreign SA. The zones
    /// of all other SAs stay as agreed.
    pub fn recognise(&mut self, id: ChildSaId, content: Box<dyn Content>) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.recognise(content);
        }
    }

    /// Removes an SA and its keys.
    pub fn remove(&mut self, id: ChildSaId) {
        self.retire(id);
        let Some(spi) = self.by_id.remove(&id) else {
            return;
        };
        self.elsewhere.remove(&spi);
        let Some(sa) = self.sas.remove(&spi) else {
            return;
        };
        for beside in sa.besides() {
            self.beside.remove(&beside.spi());
        }
        if let Entry::Occupied(mut theirs) = self.by_peer.entry(sa.peer) {
            theirs.get_mut().retain(|spi| *spi != sa.inbound.spi());
            if theirs.get().is_empty() {
                theirs.remove();
            }
        }
    }

    /// Replaces the policies. SAs keep the traffic that they were created for.
    pub fn set_policies(&mut self, spd: Spd) {
        for sa in self.sas.values_mut() {
            sa.claims = spd.contested(sa.peer);
        }
        for sa in self.elsewhere.values_mut() {
            sa.claims = spd.contested(sa.peer);
        }
        self.spd = spd;
    }

    /// Replaces the settings of all peers; peers that are not listed get the default. Returns the
    /// peers whose padding has changed.
    pub fn set_peers(&mut self, peers: BTreeMap<PeerId, PeerSettings>) -> BTreeSet<PeerId> {
        for spi in self.by_id.values() {
            if let Some(sa) = self.sas.get_mut(spi) {
                let settings = settings(&peers, sa.peer);
                sa.dscp = settings.dscp;
                sa.outbound.choose(settings.level);
                self.reports.extend(sa.look_like(settings.sizes));
            }
        }
        let before = std::mem::replace(&mut self.peers, peers);
        let sizes = |of, peer: &PeerId| settings(of, *peer).sizes;
        let peers = before.keys().chain(self.peers.keys());
        let changed = peers.filter(|peer| sizes(&before, peer) != sizes(&self.peers, peer));
        changed.copied().collect()
    }

    /// Sets the settings of one peer, which has no SA yet or none any more.
    pub fn set_peer(&mut self, peer: PeerId, settings: PeerSettings) {
        match settings == PeerSettings::default() {
            true => drop(self.peers.remove(&peer)),
            false => drop(self.peers.insert(peer, settings)),
        }
    }

    /// Sets a peer's choice among the agreed levels.
    pub fn set_level(&mut self, peer: PeerId, choice: LevelChoice) {
        self.peers.entry(peer).or_default().level = choice;
        for spi in self.by_peer.get(&peer).into_iter().flatten() {
            if let Some(sa) = self.sas.get_mut(spi) {
                sa.outbound.choose(choice);
            }
        }
    }

    /// Limits the segment size of new TCP connections through a tunnel to this MTU
    /// ([`mss::clamp`]), for both directions of opening; `None` leaves the segment size to the
    /// endpoints.
    pub fn set_clamp(&mut self, mtu: Option<u16>) {
        self.clamp = mtu;
    }

    /// Moves an SA's packets to another path, on which they may be fragmented. In transport mode,
    /// path, selectors and lookup change in one step: no packet meets some of them.
    pub fn move_path(&mut self, id: ChildSaId, path: Path) {
        let Some(spi) = self.by_id.get(&id) else {
            return;
        };
        let here = self.sas.get_mut(spi).and_then(|sa| {
            let before = sa.take_path(path)?;
            Some((before, &sa.carries, sa.turn?))
        });
        let elsewhere = self.elsewhere.get_mut(spi).and_then(|sa| {
            let before = sa.take_path(path)?;
            Some((before, &sa.carries, sa.turn?))
        });
        if let Some((before, now, turn)) = here.or(elsewhere) {
            self.order.relocate(&before.remote, &now.remote, turn, *spi);
        }
    }

    /// Has the next datagram that an SA seals reported as [`Report::Sends`].
    pub fn watch(&mut self, id: ChildSaId) {
        if let Some(sa) = self.sa_mut(id) {
            sa.watched = true;
        }
    }

    /// Sets the path MTU of an SA. Returns the longest datagram of a new TCP connection that fits,
    /// if there is a limit.
    pub fn set_path_mtu(&mut self, id: ChildSaId, mtu: PathMtu) -> Option<u16> {
        let sa = self.sa_mut(id)?;
        sa.outbound.give_room(mtu, sa.path);
        sa.outbound.room.segments()
    }

    /// Skips an SA's sequence numbers up to this one. Harmless, because numbers are never reused;
    /// for tests of late packets.
    pub fn skip_to(&mut self, id: ChildSaId, number: u64) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.skip_to(number);
        }
    }

    // Inputs.

    /// Seals a batch of outbound inner datagrams.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.seal_own(batch, sink, now, |_, _| {});
    }

    /// Seals a batch, except for datagrams that other workers' SAs protect. For each of those,
    /// calls `elsewhere` with its place in the batch and the owner, and leaves the datagram
    /// unchanged.
    pub(crate) fn seal_own(
        &mut self,
        batch: &mut [Packet],
        sink: &mut impl Sink,
        now: Instant,
        mut elsewhere: impl FnMut(usize, usize),
    ) {
        // Error messages are rate limited (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)):
        // each batch answers at most one datagram that is too long.
        let mut answered = false;
        let destination = |octets: &[u8]| Some(ip::Header::parse(octets).ok()?.destination());
        let spi = |to| self.order.preferred(to).next();
        self.prefetch(batch, destination, spi, Sa::SEALING);
        for (place, packet) in batch.iter_mut().enumerate() {
            match self.seal_one(packet, answered, sink, now) {
                Ok(Outcome::Sealed(path)) => sink.transmit(packet, path),
                Ok(Outcome::Answered) => {
                    answered = true;
                    sink.deliver(packet);
                }
                Ok(Outcome::Cut) => {}
                Ok(Outcome::Elsewhere(owner)) => elsewhere(place, owner),
                Err(why) => self.dropped(packet, why, sink),
            }
        }
    }

    /// Opens a batch of inbound ESP packets, which start with the SPI.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        let spi = |octets: &[u8]| Some(Header::parse(octets)?.spi);
        self.prefetch(batch, spi, Some, Sa::OPENING);
        let (leave, names) = (sink.makes_checksums(), sink.names_peers());
        for packet in batch {
            // An opened packet has no SPI any more.
            let spi = Header::parse(packet.octets()).filter(|_| names);
            match self.open_one(packet, leave, now) {
                Ok(()) => sink.deliver(packet),
                Err(why) => {
                    self.counters.drop(why);
                    match names {
                        true => sink.dropped_of(packet, why, spi.and_then(|at| self.peer(at.spi))),
                        false => sink.dropped(packet, why),
                    }
                }
            }
        }
    }

    /// Covers silence towards a peer: if nothing was sealed since the last call, turns `packet`
    /// into a dummy of the SA that currently protects the peer's traffic, and returns the path.
    pub fn cover(&mut self, peer: PeerId, packet: &mut Packet) -> Option<Path> {
        let (silence, newest) = self.silence(peer);
        let (_, spi) = newest.filter(|_| silence)?;
        self.dummy(spi, packet)
    }

    /// Returns true if nothing was sealed for a peer since the last call, and the SA that would
    /// cover the silence, with the number of its turn.
    pub(crate) fn silence(&mut self, peer: PeerId) -> (bool, Option<(u64, Spi)>) {
        let (mut silence, mut newest) = (true, None);
        for spi in self.by_peer.get(&peer).into_iter().flatten() {
            if let Some(sa) = self.sas.get_mut(spi) {
                silence &= std::mem::replace(&mut sa.silent, true);
                let covering = sa.turn.filter(|_| sa.outbound.sizes.is_some());
                newest = newest.max(covering.map(|turn| (turn.number(), *spi)));
            }
        }
        (silence, newest)
    }

    /// Turns a packet into a dummy of an SA, and returns the path.
    pub(crate) fn dummy(&mut self, spi: Spi, packet: &mut Packet) -> Option<Path> {
        let sa = self.sas.get_mut(&spi)?;
        let made = sa.outbound.dummy(packet, &mut self.scratch);
        if !made.is_ok_and(|made| made) {
            return None;
        }
        (packet.ecn, packet.dscp) = (Ecn::NotEct, sa.dscp.outside(0));
        packet.df = sa.outbound.df(0);
        self.counters.covered += 1;
        Some(sa.path)
    }

    /// Turns a packet into the notice that an SA's next packet is a probe, and returns the path.
    /// `None` for another worker's SA, and if its peer measures no losses: it has no zones.
    pub fn notice(&mut self, id: ChildSaId, packet: &mut Packet) -> Option<Path> {
        let sa = self.sas.get_mut(self.by_id.get(&id)?)?;
        let path = sa.path;
        if path.is_stream() || !sa.outbound.is_zoned() {
            return None;
        }
        let made = sa.outbound.notice(packet, path, &mut self.scratch);
        (packet.ecn, packet.dscp) = (Ecn::NotEct, sa.dscp.outside(0));
        packet.df = Df::Clear;
        made.is_ok_and(|made| made).then_some(path)
    }

    /// Turns a packet into a probe of an SA's path, an echo, a ping or its answer, and returns the
    /// path. `None` for another worker's SA, and if there is no room for it. The MTU of a stream's
    /// path is none of ours.
    pub fn probe(&mut self, id: ChildSaId, probe: Probe, packet: &mut Packet) -> Option<Path> {
        let sa = self.sas.get_mut(self.by_id.get(&id)?)?;
        let path = sa.path;
        if path.is_stream() && probe.kind.is_of_mtu() {
            return None;
        }
        let made = sa.outbound.probe(packet, probe, path, &mut self.scratch);
        if !made.is_ok_and(|made| made) {
            return None;
        }
        (packet.ecn, packet.dscp) = (Ecn::NotEct, sa.dscp.outside(0));
        packet.df = match probe.kind {
            Kind::Probe => Df::Probe,
            Kind::Echo | Kind::Notice | Kind::Ping | Kind::Answer => Df::Clear,
        };
        Some(path)
    }

    // Outputs.

    /// Returns the next report for control.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns true if [`Self::poll_report`] will return a report.
    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Returns the time of the last new authentic packet of an SA, so that liveness checks cost
    /// nothing while traffic flows (RFC 7296 section 2.4).
    pub fn last_inbound(&self, id: ChildSaId) -> Option<Instant> {
        self.sa(id)?.heard()
    }

    /// Returns true if one of the last packets of an SA had this header.
    pub fn has_sent(&self, id: ChildSaId, header: Header) -> Option<bool> {
        Some(self.sa(id)?.outbound.has_sent(header))
    }

    /// Returns what was observed of an SA.
    pub fn observed(&self, id: ChildSaId) -> Option<Observed> {
        let sa = self.sa(id)?;
        Some(Observed {
            heard: sa.heard(),
            unanswered: sa.unanswered,
            longest_unanswered: sa.unanswered.map(|_| sa.longest_unanswered),
            stray: sa.source.stray(),
            hides_lengths: sa.outbound.sizes.is_some(),
            traffic: sa.traffic(),
            pace: sa.pace,
            level: self.level(id),
            link: self.link(id),
        })
    }

    /// Returns the traffic of an SA.
    pub fn traffic(&self, id: ChildSaId) -> Option<SaTraffic> {
        self.sa(id).map(Sa::traffic)
    }

    /// Returns the state of unencrypted traffic on an SA, if a grant allows any.
    pub fn level(&self, id: ChildSaId) -> Option<LevelStatus> {
        let sa = self.sa(id)?;
        let both = sa.integrity.as_ref().zip(sa.outbound.integrity.as_ref());
        both.map(|(opening, sealing)| level::status(opening, sealing))
    }

    /// Returns the quality of the path on which a composite SA's packets arrive, if it affects the
    /// level.
    pub fn link(&self, id: ChildSaId) -> Option<Link> {
        self.sa(id)?.outbound.link()
    }

    /// Returns the state of every SA, oldest first.
    pub fn sa_status(&self) -> impl Iterator<Item = SaStatus> + '_ {
        let mut sas: Vec<_> = self.sas.values().collect();
        sas.sort_by_key(|sa| sa.id);
        sas.into_iter().map(|sa| sa.status())
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    // Inside.

    /// Prefetches the SAs of a batch, if there are too many for the cache. `key` extracts from a
    /// packet the value that `spi` looks up. Each step runs for all packets before the next and is
    /// short, so that memory accesses of several packets overlap. A useless prefetch does no harm.
    fn prefetch<K>(
        &self,
        batch: &[Packet],
        key: impl Fn(&[u8]) -> Option<K>,
        spi: impl Fn(K) -> Option<Spi>,
        [itself, pointed_to]: [fn(&Sa); 2],
    ) {
        if self.sas.len() <= CACHED {
            return;
        }
        for packets in batch.chunks(AT_ONCE) {
            let keys = packets.iter().filter_map(|packet| key(packet.octets()));
            let keys: SmallVec<[_; AT_ONCE]> = keys.collect();
            let spis: SmallVec<[_; AT_ONCE]> = keys.into_iter().filter_map(&spi).collect();
            let sas = spis.iter().filter_map(|spi| self.sas.get(spi));
            let sas: SmallVec<[_; AT_ONCE]> = sas.collect();
            sas.iter().for_each(|sa| itself(sa));
            sas.iter().for_each(|sa| pointed_to(sa));
        }
    }

    /// Checks that these SPIs, of an SA and of its companion SAs, are not in use.
    fn are_free(&self, own: Spi, besides: &[Spi]) -> Result<(), Unusable> {
        let taken = |spi| self.sas.contains_key(&spi) || self.beside.contains_key(&spi);
        let mut spis = [&[own], besides].concat();
        spis.sort();
        let distinct = spis.is_sorted_by(|a, b| a < b);
        match distinct && !spis.iter().any(|spi| *spi < FIRST_SPI || taken(*spi)) {
            true => Ok(()),
            false => Err(Unusable::Spi),
        }
    }

    fn sa(&self, id: ChildSaId) -> Option<&Sa> {
        self.sas.get(self.by_id.get(&id)?).map(Box::as_ref)
    }

    fn sa_mut(&mut self, id: ChildSaId) -> Option<&mut Sa> {
        self.sas.get_mut(self.by_id.get(&id)?).map(Box::as_mut)
    }

    fn seal_one(
        &mut self,
        packet: &mut Packet,
        answered: bool,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Result<Outcome, DropReason> {
        let header = ip::Header::parse(packet.octets());
        let header = header.map_err(|_| DropReason::DatagramMalformed)?;
        if header.total_len() != packet.len() {
            return Err(DropReason::DatagramMalformed);
        }
        let (flow, version, octets) = (header.flow(), header.version(), packet.len());
        let (tos, may_be_cut) = (header.tos(), header.may_be_fragmented());
        self.spd.admit(&flow)?;
        let spi = self.protecting(&flow);
        let spi = spi.ok_or_else(|| self.spd.without_sa(&flow))?;
        let Some(sa) = self.sas.get_mut(&spi) else {
            let sa = self.elsewhere.get(&spi).ok_or(DropReason::NoSa)?;
            return Ok(Outcome::Elsewhere(sa.owner));
        };
        let is_tcp = flow.protocol == tcp::PROTOCOL;
        match sa.outbound.room.take(octets, version, may_be_cut, is_tcp) {
            Fit::TooLong(_) if answered => return Err(DropReason::TooLong),
            Fit::TooLong(longest) => {
                // The path may carry it, which only a search of its MTU shows.
                let watched = std::mem::take(&mut sa.watched);
                self.reports.extend(watched.then_some(Report::Sends(sa.id)));
                answer(packet, longest, &mut self.counters)?;
                return Ok(Outcome::Answered);
            }
            Fit::Cut(longest) if self.cut(packet, spi, longest, tos, sink, now)? => {
                return Ok(Outcome::Cut);
            }
            Fit::Cut(_) | Fit::Sent => {}
        }
        self.seal_on(spi, packet, &flow, version, tos, now)
            .map(Outcome::Sealed)
    }

    /// Seals a datagram on an SA of this worker, and returns the path.
    fn seal_on(
        &mut self,
        spi: Spi,
        packet: &mut Packet,
        flow: &Flow,
        version: u8,
        tos: u8,
        now: Instant,
    ) -> Result<Path, DropReason> {
        let octets = packet.len();
        let sa = self.sas.get_mut(&spi).ok_or(DropReason::NoSa)?;
        (packet.ecn, packet.dscp) = (Ecn::from_bits(tos), sa.dscp.outside(tos >> 2));
        packet.df = sa.outbound.df(octets);
        let mtu = sa.outbound.segments_fit(self.clamp);
        clamp(packet, flow, mtu, &mut self.counters);
        sa.keep_pace(now);
        self.reports.extend(sa.spend()?);
        let sealed = sa.outbound.seal(packet, version, &mut self.scratch, now)?;
        sa.silent = false;
        let before = sa.unanswered.map_or(0, |_| sa.longest_unanswered);
        sa.longest_unanswered = before.max(octets);
        let [first, _] = sa.unanswered.unwrap_or([now; 2]);
        sa.unanswered = Some([first, now]);
        if std::mem::take(&mut sa.watched) {
            self.reports.push_back(Report::Sends(sa.id));
        }
        if sealed.spent {
            self.reports.push_back(Report::LevelSpent(sa.id));
        }
        if sealed.rekey_soon {
            self.reports.push_back(Report::RekeySoon(sa.id));
        }
        self.counters.sealed.count(octets);
        self.counters.opaque += u64::from(sealed.opaque);
        if sealed.padding > 0 {
            self.counters.padded.count(sealed.padding);
        }
        Ok(sa.path)
    }

    /// Fragments a datagram that is too long, and seals and sends the pieces (RFC 4301 section 8.1:
    /// "fragment (before or after encryption per configuration)"). Returns false if the SA carries
    /// no pieces: without an IP header of their own (RFC 4303 section 3.3.4), or with selectors
    /// that need ports, which only the first piece has.
    fn cut(
        &mut self,
        packet: &mut Packet,
        spi: Spi,
        longest: u16,
        tos: u8,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Result<bool, DropReason> {
        let sa = self.sas.get(&spi).ok_or(DropReason::NoSa)?;
        if sa.outbound.is_bare() {
            return Ok(false);
        }
        packet.make_checksum()?;
        let mut pieces = fragments(packet.octets(), longest).peekable();
        let flow = pieces.peek().and_then(|piece| ip::flow(piece));
        let Some(flow) = flow.filter(|flow| sa.carries.covers_outbound(flow)) else {
            return Ok(false);
        };
        let mut buffer = self
            .piece
            .take()
            .unwrap_or_else(|| Packet::with_capacity(LONGEST));
        self.counters.cut += 1;
        let sent = pieces.try_for_each(|piece| {
            buffer.fill(&piece);
            let path = self.seal_on(spi, &mut buffer, &flow, 4, tos, now)?;
            sink.transmit(&mut buffer, path);
            Ok(())
        });
        self.piece = Some(buffer);
        sent.map(|()| true)
    }

    /// Reports a packet of no SA, a hundred times a second at most.
    fn report_unknown(&mut self, spi: Spi, packet: &Packet, now: Instant) {
        if let Some(path) = packet.path.filter(|_| self.unknown_from <= now) {
            self.unknown_from = now + UNKNOWN_PAUSE;
            let report = Report::Unknown(spi, path, packet.len());
            self.reports.push_back(report);
        }
    }

    /// Opens one packet. Computes the datagram's checksum, unless `leave` allows zones to omit it.
    fn open_one(
        &mut self,
        packet: &mut Packet,
        leave: bool,
        now: Instant,
    ) -> Result<(), DropReason> {
        let header = Header::parse(packet.octets()).ok_or(DropReason::Runt)?;
        if header.spi < FIRST_SPI {
            return Err(DropReason::ReservedSpi);
        }
        let spi = self.beside.get(&header.spi).unwrap_or(&header.spi);
        let Some(sa) = self.sas.get_mut(spi) else {
            self.report_unknown(header.spi, packet, now);
            return Err(DropReason::UnknownSpi);
        };
        let (pair, octets) = (sa.pair, packet.len());
        let inbound = sa.opening(header.spi);
        let flow = inbound.open(packet, header, pair, &mut self.scratch, now)?;
        let (share, advance, number) = (inbound.share, inbound.advance(), inbound.number());
        let lost = u64::from(sa.noticed.passes(header.spi, number, advance));
        sa.outbound.judge(advance - lost);
        // An injected packet is no evidence of the peer.
        let is_peers = share != Share::Injected;
        let is_newest = advance > 0;
        if is_peers && is_newest {
            sa.unanswered = None;
        }
        if let Some(from) = packet.path.filter(|_| is_peers) {
            let sight = Sight {
                from,
                spi: header.spi,
                number,
                is_newest,
            };
            if sa.source.note(&sight, sa.path, now) {
                let strays = Report::Strays(sa.id, from, octets);
                self.reports.push_back(strays);
            }
        }
        if sa.unconfirmed && is_peers {
            sa.unconfirmed = false;
            self.reports.push_back(Report::Confirmed(sa.id));
        }
        self.counters.written += u64::from(share == Share::Written);
        self.counters.injected += u64::from(share == Share::Injected);
        let Some(flow) = flow else {
            let report = sa.note_dummy(header.spi, packet.octets(), now);
            self.counters.probes += u64::from(Probe::read(packet.octets()).is_some());
            self.reports.extend(report);
            return Err(DropReason::Dummy);
        };
        sa.came_between(packet)?;
        let reply = flow.reversed();
        let is_anothers = is_anothers(sa.claims.as_deref(), &self.spd, &reply);
        if !sa.carries.covers_inbound(&flow) || is_anothers {
            return Err(DropReason::InnerSelectorMismatch);
        }
        if let Err(why) = sa.admit(header, packet, now) {
            let first = sa.integrity.as_mut().is_some_and(|beside| beside.tell());
            self.reports
                .extend(first.then_some(Report::LevelRefused(sa.id)));
            return Err(why);
        }
        self.reports.extend(sa.spend()?);
        let inner = Ecn::from_packet(packet.octets());
        let unused = self.counters.congestion.count(inner, packet.ecn);
        if unused && std::mem::take(&mut sa.fits) {
            self.reports.push_back(Report::UnusedEcn(sa.id));
        }
        ecn::leave(packet, inner)?;
        let mtu = sa.outbound.segments_fit(self.clamp);
        clamp(packet, &flow, mtu, &mut self.counters);
        if !leave {
            packet.make_checksum()?;
        }
        sa.keep_pace(now);
        sa.inbound.traffic.count(packet.len());
        self.counters.opened.count(packet.len());
        Ok(())
    }

    /// Returns the SA that protects a packet, or its lane for the flow. Lanes of this worker
    /// precede others.
    fn protecting(&self, flow: &Flow) -> Option<Spi> {
        let (spi, newest) = self.covering(flow).next()?;
        let Some(lane) = newest.lane else {
            return Some(spi);
        };
        // Per lane only the newest SA counts, whichever worker owns the others.
        let mut met = lane.bit();
        let beside = self.covering(flow).filter(|(_, other)| {
            let other = other.lane.filter(|other| lane.is_beside(other));
            let bit = other.map_or(0, Lane::bit);
            let is_new = bit & !met != 0;
            met |= bit;
            is_new
        });
        let lanes = std::iter::once((spi, newest)).chain(beside);
        let lightest = lanes.min_by_key(|(_, reach)| {
            let weight = reach.lane.map(|lane| lane.weight(flow));
            let narrowed = reach.lane.is_some_and(|lane| lane.narrowed);
            (!narrowed, reach.is_elsewhere, weight)
        });
        lightest.map(|(spi, _)| spi)
    }

    /// Returns the SAs that cover an outbound packet, in order of preference, unless another peer
    /// claims it more narrowly.
    fn covering(&self, flow: &Flow) -> impl Iterator<Item = (Spi, Reach<'_>)> {
        let preferred = self.order.preferred(flow.destination);
        let preferred = preferred.filter_map(|spi| Some((spi, self.reach(spi)?)));
        let covering = preferred.filter(|(_, reach)| reach.carries.covers_outbound(flow));
        covering.filter(|(_, reach)| !is_anothers(reach.claims, &self.spd, flow))
    }

    fn reach(&self, spi: Spi) -> Option<Reach<'_>> {
        let here = self.sas.get(&spi).map(|sa| Reach::here(sa));
        here.or_else(|| self.elsewhere.get(&spi).map(Reach::elsewhere))
    }

    /// Returns the peer of an inbound SA.
    fn peer(&self, spi: Spi) -> Option<PeerId> {
        let spi = self.beside.get(&spi).unwrap_or(&spi);
        self.sas.get(spi).map(|sa| sa.peer)
    }

    /// Drops an outbound datagram.
    pub(crate) fn dropped(&mut self, packet: &mut Packet, why: DropReason, sink: &mut impl Sink) {
        self.counters.drop(why);
        if !sink.names_peers() {
            return sink.dropped(packet, why);
        }
        let flow = ip::flow(packet.octets());
        let peer = flow.and_then(|flow| self.spd.peer(&flow));
        sink.dropped_of(packet, why, peer);
    }
}

/// Returns the settings of a peer.
fn settings(peers: &BTreeMap<PeerId, PeerSettings>, peer: PeerId) -> PeerSettings {
    peers.get(&peer).copied().unwrap_or_default()
}

/// Returns true if another peer claims an outbound packet more narrowly than the peer of an SA.
fn is_anothers(claims: Option<&[Protected]>, spd: &Spd, flow: &Flow) -> bool {
    claims.is_some_and(|claims| spd.narrowest(flow) < claims::width(claims, flow))
}

/// Turns a datagram that is too long into the error message for its source.
fn answer(packet: &mut Packet, longest: u16, counters: &mut Counters) -> Result<(), DropReason> {
    packet.make_checksum()?;
    let told = TooBig::about(packet.octets(), longest).ok_or(DropReason::TooLong)?;
    packet.fill(told.octets());
    counters.too_long += 1;
    Ok(())
}

/// Lowers the maximum segment size in a segment that opens a TCP connection, if clamping is on.
fn clamp(packet: &mut Packet, flow: &Flow, mtu: Option<u16>, counters: &mut Counters) {
    if let Some(mtu) = mtu.filter(|_| flow.protocol == tcp::PROTOCOL) {
        counters.clamped += u64::from(mss::clamp(packet.octets_mut(), mtu));
    }
}
