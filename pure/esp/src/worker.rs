//! One thread's part of the data plane: its SAs, its policies, its counters.

use crate::drop::DropReason;
use crate::ecn;
use crate::foreign::Foreign;
use crate::inbound::Share;
use crate::key::Unusable;
use crate::lane::Lane;
use crate::level::{self, LevelStatus};
use crate::link::Link;
use crate::order::Order;
use crate::packet::Packet;
use crate::policy::Spd;
use crate::reach::{Elsewhere, Reach};
use crate::report::{Counters, Report, SaTraffic};
use crate::room::{Fit, PathMtu};
use crate::sa::{Sa, SaStatus};
use crate::scratch::Scratch;
use crate::source::Source;
use crypto::Secret;
use model::{ChildSa, ChildSaId, Dscp, Flow, Instant, LevelChoice, Path, Sizes, Spi, ZoneId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use wire::content::Content;
use wire::ecn::Ecn;
use wire::esp::{FIRST_SPI, Header};
use wire::too_big::TooBig;
use wire::{ip, mss, tcp};

/// SAs that a processor keeps near with all they need, which is some kilobytes each.
const CACHED: usize = 256;

/// Packets whose SAs memory is asked for at once.
const AT_ONCE: usize = 64;

/// Where packets go. Each packet of a batch is handed to exactly one of these, in order, and is the
/// caller's again when the call returns.
pub trait Sink {
    /// An ESP packet to send on `path`, from the SPI on: in UDP it is the payload. The header outside
    /// is to have its [class](Packet::class), where there is one.
    fn transmit(&mut self, packet: &mut Packet, path: Path);
    /// An inner datagram for this host or the network behind it: one that was opened, or what the
    /// source of a datagram hears that is too long.
    fn deliver(&mut self, packet: &mut Packet);
    /// A packet that goes nowhere. What the buffer holds is nobody's to read.
    fn dropped(&mut self, packet: &mut Packet, why: DropReason);
    /// Whether a datagram may be delivered whose [checksum](Packet::checksum) is left. All others get whole ones.
    fn makes_checksums(&self) -> bool {
        false
    }
    /// What was to be sent leaves now. Until this returns nobody else seals on the same SAs, so packets leave
    /// in the order of their numbers whoever seals.
    fn flush(&mut self) {}
}

/// Seals and opens. Owns its SAs by value: control speaks to it between batches.
pub struct Worker {
    spd: Spd,
    /// The security association database, by inbound SPI (RFC 4301 section 4.4.2), which is ours to draw. In
    /// boxes: a map keeps room for as much again, and an SA is large.
    sas: FxHashMap<Spi, Box<Sa>>,
    /// Those that other workers own, by inbound SPI.
    elsewhere: FxHashMap<Spi, Elsewhere>,
    /// The inbound SPI of each that has SAs beside, by those of these.
    beside: FxHashMap<Spi, Spi>,
    /// The inbound SPI of each, by the name that control gives it, which no other ever had.
    by_id: BTreeMap<ChildSaId, Spi>,
    /// The inbound SPIs of those with each peer.
    by_peer: BTreeMap<String, Vec<Spi>>,
    /// Those that protect packets. All others only open what comes.
    order: Order,
    /// What TCP segments have to fit, if those that begin a connection are to say so.
    clamp: Option<u16>,
    /// What class the packets to each peer ask for outside, if not the default.
    classes: BTreeMap<String, Dscp>,
    /// How long the datagrams to each peer are to look, if not as long as they are.
    sizes: BTreeMap<String, Sizes>,
    /// How to choose among the levels that are agreed on with each peer, if not as by default.
    levels: BTreeMap<String, LevelChoice>,
    counters: Counters,
    reports: VecDeque<Report>,
    scratch: Scratch,
}

/// What becomes of a datagram that is to be sealed.
enum Outcome {
    /// It is a packet, to be sent this way.
    Sealed(Path),
    /// It has become what its source is to hear.
    Answered,
    /// Another worker owns the SA that protects it.
    Elsewhere(usize),
}

impl Worker {
    /// A worker without SAs.
    pub fn new(spd: Spd) -> Self {
        Self {
            spd,
            sas: FxHashMap::default(),
            elsewhere: FxHashMap::default(),
            beside: FxHashMap::default(),
            by_id: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            order: Order::default(),
            clamp: None,
            classes: BTreeMap::new(),
            sizes: BTreeMap::new(),
            levels: BTreeMap::new(),
            counters: Counters::new(),
            reports: VecDeque::new(),
            scratch: Scratch::new(),
        }
    }

    // Commands.

    /// Takes an SA into service. From now on it is the newest.
    pub fn install(&mut self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        let id = sa.id;
        self.install_beside(sa)?;
        self.prefer(id);
        Ok(())
    }

    /// Takes an SA into service for packets that come. It protects none until [`Self::prefer`];
    /// the first one that comes is told by [`Report::Confirmed`].
    pub fn install_beside(&mut self, sa: ChildSa<Secret>) -> Result<(), Unusable> {
        let spi = sa.inbound.spi;
        let besides = sa.opaque.iter().chain(&sa.integrity);
        let besides: Vec<_> = besides.map(|beside| beside.inbound.spi).collect();
        self.are_free(spi, &besides)?;
        let dscp = self.classes.get(&sa.peer).copied().unwrap_or_default();
        let mut installed = Sa::new(sa, dscp)?;
        let choice = self.levels.get(&installed.peer);
        installed
            .outbound
            .choose(choice.copied().unwrap_or_default());
        let report = installed.look_like(self.sizes.get(&installed.peer));
        self.reports.extend(report);
        self.by_id.insert(installed.id, spi);
        let theirs = self.by_peer.entry(installed.peer.clone()).or_default();
        theirs.push(spi);
        self.beside
            .extend(besides.into_iter().map(|beside| (beside, spi)));
        self.sas.insert(spi, Box::new(installed));
        Ok(())
    }

    /// Learns of another worker's SA: from the next [`Self::prefer`] on it protects what it covers.
    pub(crate) fn learn(&mut self, spi: Spi, sa: Elsewhere) {
        self.by_id.insert(sa.id, spi);
        self.elsewhere.insert(spi, sa);
    }

    /// Whether an SA is this one's own.
    pub(crate) fn owns(&self, id: ChildSaId) -> bool {
        self.sa(id).is_some()
    }

    /// From now on an SA protects whatever it covers, before all others.
    pub fn prefer(&mut self, id: ChildSaId) {
        self.retire(id);
        let Some(spi) = self.by_id.get(&id) else {
            return;
        };
        if let Some(sa) = self.sas.get_mut(spi) {
            let turn = self.order.push(&sa.carries.remote, *spi);
            (sa.unconfirmed, sa.turn) = (false, Some(turn));
        } else if let Some(sa) = self.elsewhere.get_mut(spi) {
            sa.turn = Some(self.order.push(&sa.carries.remote, *spi));
        }
    }

    /// From now on an SA protects nothing, but opens what comes.
    pub fn retire(&mut self, id: ChildSaId) {
        let Some(spi) = self.by_id.get(&id) else {
            return;
        };
        let here = self.sas.get_mut(spi);
        let here = here.map(|sa| (&sa.carries, &mut sa.turn));
        let elsewhere = self.elsewhere.get_mut(spi);
        let elsewhere = elsewhere.map(|sa| (&sa.carries, &mut sa.turn));
        if let Some((carries, turn)) = here.or(elsewhere)
            && let Some(turn) = turn.take()
        {
            self.order.remove(&carries.remote, turn);
        }
    }

    /// From now on an SA seals whole datagrams in its payload zone: somebody who has the keys of the
    /// other zones may not read them any more. What writers append to packets that come is read, and not
    /// done any more, and what is injected is not believed.
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

    /// From now on other ciphers than the agreed ones protect an SA, both ways: see [`Foreign`].
    pub fn make_foreign(&mut self, id: ChildSaId, make: impl Fn(ZoneId) -> Box<dyn Foreign>) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.cipher.make_foreign(&make);
            sa.inbound.cipher.make_foreign(&make);
        }
    }

    /// From now on the designated zone of a foreign SA has what `content` finds in UDP as well. The zones
    /// of all others have what was agreed on, and nothing else.
    pub fn recognise(&mut self, id: ChildSaId, content: Box<dyn Content>) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.recognise(content);
        }
    }

    /// Forgets an SA and its keys.
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

    /// Other policies from now on. SAs carry what they were made for.
    pub fn set_policies(&mut self, spd: Spd) {
        self.spd = spd;
    }

    /// What class the packets to each peer ask for outside from now on; those to others have the default.
    pub fn set_classes(&mut self, classes: BTreeMap<String, Dscp>) {
        for sa in self.sas.values_mut() {
            sa.dscp = classes.get(&sa.peer).copied().unwrap_or_default();
        }
        self.classes = classes;
    }

    /// How long the datagrams to each peer look from now on; those to others look as long as they are.
    pub fn set_sizes(&mut self, sizes: BTreeMap<String, Sizes>) {
        for spi in self.by_id.values() {
            if let Some(sa) = self.sas.get_mut(spi) {
                let report = sa.look_like(sizes.get(&sa.peer));
                self.reports.extend(report);
            }
        }
        self.sizes = sizes;
    }

    /// How to choose among the levels that are agreed on with each peer from now on; with others as by
    /// default.
    pub fn set_levels(&mut self, levels: BTreeMap<String, LevelChoice>) {
        for sa in self.sas.values_mut() {
            let choice = levels.get(&sa.peer).copied().unwrap_or_default();
            sa.outbound.choose(choice);
        }
        self.levels = levels;
    }

    /// From now on TCP connections through a tunnel have segments that fit this MTU ([`mss::clamp`]),
    /// whoever begins them; with `None` the segments that their ends agree on.
    pub fn set_clamp(&mut self, mtu: Option<u16>) {
        self.clamp = mtu;
    }

    /// Sends an SA's packets another way from now on, which they may be cut on.
    pub fn move_path(&mut self, id: ChildSaId, path: Path) {
        if let Some(sa) = self.sa_mut(id) {
            sa.path = path;
            sa.source = Source::default();
            sa.outbound.give_room(PathMtu::Any, path);
        }
    }

    /// Has the next datagram that an SA seals reported as [`Report::Sends`].
    pub fn watch(&mut self, id: ChildSaId) {
        if let Some(sa) = self.sa_mut(id) {
            sa.watched = true;
        }
    }

    /// Says how long the packets of an SA may be from now on; gives the longest datagram that fits, if
    /// there is one.
    pub fn set_path_mtu(&mut self, id: ChildSaId, mtu: PathMtu) -> Option<u16> {
        let sa = self.sa_mut(id)?;
        sa.outbound.give_room(mtu, sa.path);
        sa.outbound.room.longest()
    }

    /// Gives no packet of an SA a number up to this one any more. No number is ever given twice, so this is
    /// harmless; it is for tests of what comes late.
    pub fn skip_to(&mut self, id: ChildSaId, number: u64) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.skip_to(number);
        }
    }

    // Inputs.

    /// Inner datagrams on their way out.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        self.seal_own(batch, sink, now, |_, _| {});
    }

    /// The same, but for those that other workers' SAs protect: each is told by its place in the batch, with
    /// whose it is, and is left as it was.
    pub(crate) fn seal_own(
        &mut self,
        batch: &mut [Packet],
        sink: &mut impl Sink,
        now: Instant,
        mut elsewhere: impl FnMut(usize, usize),
    ) {
        // Errors are to be few (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)): of a flood of
        // datagrams that are too long one in each batch is answered.
        let mut answered = false;
        let destination = |octets: &[u8]| Some(ip::Header::parse(octets).ok()?.destination());
        let spi = |to| self.order.newest_first(to).next();
        self.prefetch(batch, destination, spi, Sa::SEALING);
        for (place, packet) in batch.iter_mut().enumerate() {
            match self.seal_one(packet, answered, now) {
                Ok(Outcome::Sealed(path)) => sink.transmit(packet, path),
                Ok(Outcome::Answered) => {
                    answered = true;
                    sink.deliver(packet);
                }
                Ok(Outcome::Elsewhere(owner)) => elsewhere(place, owner),
                Err(why) => self.dropped(packet, why, sink),
            }
        }
    }

    /// ESP packets that came in, from the SPI on.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        let spi = |octets: &[u8]| Some(Header::parse(octets)?.spi);
        self.prefetch(batch, spi, Some, Sa::OPENING);
        let leave = sink.makes_checksums();
        for packet in batch {
            match self.open_one(packet, leave, now) {
                Ok(()) => sink.deliver(packet),
                Err(why) => self.dropped(packet, why, sink),
            }
        }
    }

    /// Covers the silence towards a peer, if there was nothing but that since this was last asked: makes a
    /// packet a dummy of the SA that protects what goes there now, and says where that goes.
    pub fn cover(&mut self, peer: &str, packet: &mut Packet) -> Option<Path> {
        let (silence, newest) = self.silence(peer);
        let (_, spi) = newest.filter(|_| silence)?;
        self.dummy(spi, packet)
    }

    /// Whether there was nothing but silence towards a peer since this was last asked, and the SA that would
    /// cover it, with its turn.
    pub(crate) fn silence(&mut self, peer: &str) -> (bool, Option<(u64, Spi)>) {
        let (mut silence, mut newest) = (true, None);
        for spi in self.by_peer.get(peer).into_iter().flatten() {
            if let Some(sa) = self.sas.get_mut(spi) {
                silence &= std::mem::replace(&mut sa.silent, true);
                let covering = sa.turn.filter(|_| sa.outbound.sizes.is_some());
                newest = newest.max(covering.map(|turn| (turn, *spi)));
            }
        }
        (silence, newest)
    }

    /// Makes a packet a dummy of an SA, and says where that goes.
    pub(crate) fn dummy(&mut self, spi: Spi, packet: &mut Packet) -> Option<Path> {
        let sa = self.sas.get_mut(&spi)?;
        let made = sa.outbound.dummy(packet, &mut self.scratch);
        if !made.is_ok_and(|made| made) {
            return None;
        }
        (packet.ecn, packet.dscp) = (Ecn::NotEct, sa.dscp.outside(0));
        packet.whole = sa.outbound.room.take(0, true) == Fit::Whole;
        self.counters.covered += 1;
        Some(sa.path)
    }

    // Outputs.

    /// What control has to act upon.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Whether [`Self::poll_report`] has something.
    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// When the last new authentic packet of an SA came: liveness costs nothing while traffic
    /// flows (RFC 7296 section 2.4).
    pub fn last_inbound(&self, id: ChildSaId) -> Option<Instant> {
        self.sa(id)?.heard()
    }

    /// Returns the times of the first and the last datagram that an SA sealed since a packet arrived on it.
    pub fn unanswered(&self, id: ChildSaId) -> Option<[Instant; 2]> {
        self.sa(id)?.unanswered
    }

    /// Returns the path of the newest packet of an SA, if the SA sends elsewhere.
    pub fn stray(&self, id: ChildSaId) -> Option<Path> {
        self.sa(id)?.source.stray()
    }

    /// What an SA carried.
    pub fn traffic(&self, id: ChildSaId) -> Option<SaTraffic> {
        self.sa(id).map(Sa::traffic)
    }

    /// What goes without encryption on an SA, if anything may.
    pub fn level(&self, id: ChildSaId) -> Option<LevelStatus> {
        let sa = self.sa(id)?;
        let both = sa.integrity.as_ref().zip(sa.outbound.integrity.as_ref());
        both.map(|(opening, sealing)| level::status(opening, sealing))
    }

    /// How good the way is on which packets of a composite SA come, if that is of any consequence.
    pub fn link(&self, id: ChildSaId) -> Option<Link> {
        self.sa(id)?.outbound.link()
    }

    /// How every SA stands, oldest first.
    pub fn sa_status(&self) -> impl Iterator<Item = SaStatus> + '_ {
        let mut sas: Vec<_> = self.sas.values().collect();
        sas.sort_by_key(|sa| sa.id);
        sas.into_iter().map(|sa| sa.status())
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    // Inside.

    /// Asks memory for the SAs of a batch, if they are in no cache: `key` finds in a packet what `spi` is looked
    /// up by. Each step is done for all packets before the next, and is short: while memory is slow with one
    /// packet, a processor goes on with others. What is asked for in vain does no harm.
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

    /// Whether nobody receives on these SPIs yet, which are an SA's own and those of the SAs beside.
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
        let fit = sa.outbound.room.take(octets, may_be_cut);
        match fit {
            Fit::TooLong(_) if answered => return Err(DropReason::TooLong),
            Fit::TooLong(longest) => {
                answer(packet, longest, &mut self.counters)?;
                return Ok(Outcome::Answered);
            }
            Fit::Whole | Fit::Fragments => packet.whole = fit == Fit::Whole,
        }
        (packet.ecn, packet.dscp) = (Ecn::from_bits(tos), sa.dscp.outside(tos >> 2));
        let mtu = sa.outbound.segments_fit(self.clamp);
        clamp(packet, &flow, mtu, &mut self.counters);
        let sealed = sa.outbound.seal(packet, version, &mut self.scratch, now)?;
        sa.silent = false;
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
        Ok(Outcome::Sealed(sa.path))
    }

    /// The checksum of the datagram is made here, unless it is to be left where zones left it out.
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
        let sa = self.sas.get_mut(spi).ok_or(DropReason::UnknownSpi)?;
        let (pair, octets) = (sa.pair, packet.len());
        let inbound = sa.opening(header.spi);
        let flow = inbound.open(packet, header, pair, &mut self.scratch, now)?;
        let (share, advance) = (inbound.share, inbound.advance());
        sa.outbound.judge(advance);
        if advance > 0 {
            sa.unanswered = None;
        }
        if let Some(from) = packet.path.filter(|_| advance > 0)
            && sa.source.note(from, sa.path, now)
        {
            let strays = Report::Strays(sa.id, from, octets);
            self.reports.push_back(strays);
        }
        // Who makes packets of its own says nothing about the peer.
        if sa.unconfirmed && share != Share::Injected {
            sa.unconfirmed = false;
            self.reports.push_back(Report::Confirmed(sa.id));
        }
        self.counters.written += u64::from(share == Share::Written);
        self.counters.injected += u64::from(share == Share::Injected);
        let flow = flow.ok_or(DropReason::Dummy)?;
        if !sa.carries.covers_inbound(&flow) {
            return Err(DropReason::InnerSelectorMismatch);
        }
        if let Err(why) = sa.admit(header, packet, now) {
            let first = sa.integrity.as_mut().is_some_and(|beside| beside.tell());
            self.reports
                .extend(first.then_some(Report::LevelRefused(sa.id)));
            return Err(why);
        }
        let inner = Ecn::of(packet.octets());
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
        sa.inbound.traffic.count(packet.len());
        self.counters.opened.count(packet.len());
        Ok(())
    }

    /// The SA that protects a packet: the newest that covers it, or that one's lane for its flow. Of lanes those
    /// here are taken before others.
    fn protecting(&self, flow: &Flow) -> Option<Spi> {
        let newest_first = self.order.newest_first(flow.destination);
        let newest_first = newest_first.filter_map(|spi| Some((spi, self.reach(spi)?)));
        let mut covering = newest_first.filter(|(_, reach)| reach.carries.covers_outbound(flow));
        let (spi, newest) = covering.next()?;
        let Some(lane) = newest.lane else {
            return Some(spi);
        };
        // Of a lane the newest counts, wherever the others are.
        let mut met = lane.bit();
        let beside = covering.filter(|(_, other)| {
            let other = other.lane.filter(|other| lane.is_beside(other));
            let bit = other.map_or(0, Lane::bit);
            let is_new = bit & !met != 0;
            met |= bit;
            is_new
        });
        let lanes = std::iter::once((spi, newest)).chain(beside);
        let lightest = lanes.min_by_key(|(_, reach)| {
            let weight = reach.lane.map(|lane| lane.weight(flow));
            (reach.is_elsewhere, weight)
        });
        lightest.map(|(spi, _)| spi)
    }

    fn reach(&self, spi: Spi) -> Option<Reach<'_>> {
        let here = self.sas.get(&spi).map(|sa| Reach::here(sa));
        here.or_else(|| self.elsewhere.get(&spi).map(Reach::elsewhere))
    }

    pub(crate) fn dropped(&mut self, packet: &mut Packet, why: DropReason, sink: &mut impl Sink) {
        self.counters.drop(why);
        sink.dropped(packet, why);
    }
}

/// Turns a datagram that is too long into what its source is to hear.
fn answer(packet: &mut Packet, longest: u16, counters: &mut Counters) -> Result<(), DropReason> {
    packet.make_checksum()?;
    let told = TooBig::about(packet.octets(), longest).ok_or(DropReason::TooLong)?;
    packet.fill(told.octets());
    counters.too_long += 1;
    Ok(())
}

/// Has a segment that begins a TCP connection offer what fits, if it is to.
fn clamp(packet: &mut Packet, flow: &Flow, mtu: Option<u16>, counters: &mut Counters) {
    if let Some(mtu) = mtu.filter(|_| flow.protocol == tcp::PROTOCOL) {
        counters.clamped += u64::from(mss::clamp(packet.octets_mut(), mtu));
    }
}
