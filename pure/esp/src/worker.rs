//! One thread's part of the data plane: its SAs, its policies, its counters.

use crate::drop::DropReason;
use crate::ecn;
use crate::inbound::Inbound;
use crate::key::Unusable;
use crate::lane::Lane;
use crate::order::Order;
use crate::outbound::Outbound;
use crate::packet::Packet;
use crate::pair::Pair;
use crate::policy::{Protected, Spd};
use crate::report::{Counters, Report, SaTraffic};
use crate::room::{Fit, PathMtu, Room};
use crate::scratch::Scratch;
use crypto::Secret;
use model::{ChildSa, ChildSaId, Dscp, Flow, Instant, Path, Sizes, Spi};
use std::collections::{BTreeMap, VecDeque};
use wire::ecn::Ecn;
use wire::esp::{FIRST_SPI, Header};
use wire::too_big::TooBig;
use wire::{ip, mss, tcp};

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
}

/// Seals and opens. Owns its SAs by value: control speaks to it between batches.
pub struct Worker {
    spd: Spd,
    /// The security association database, by inbound SPI (RFC 4301 section 4.4.2). In boxes: a map
    /// keeps room for as much again, and an SA is large.
    sas: BTreeMap<Spi, Box<Sa>>,
    /// The inbound SPI of each, by the name that control gives it, which no other ever had.
    by_id: BTreeMap<ChildSaId, Spi>,
    /// Those that protect packets. All others only open what comes.
    order: Order,
    /// What TCP segments have to fit, if those that begin a connection are to say so.
    clamp: Option<u16>,
    /// What class the packets to each peer ask for outside, if not the default.
    classes: BTreeMap<String, Dscp>,
    /// How long the datagrams to each peer are to look, if not as long as they are.
    sizes: BTreeMap<String, Sizes>,
    counters: Counters,
    reports: VecDeque<Report>,
    scratch: Scratch,
}

/// One child SA.
struct Sa {
    id: ChildSaId,
    peer: String,
    path: Path,
    dscp: Dscp,
    carries: Protected,
    /// If it is one of several for the same traffic.
    lane: Option<Lane>,
    /// Whose header is left out, if one is.
    pair: Option<Pair>,
    /// Whether the peer takes padding behind datagrams.
    takes_padding: bool,
    inbound: Inbound,
    outbound: Outbound,
    /// To be reported when the first packet comes.
    unconfirmed: bool,
    /// Whether nothing was sealed since [`Worker::cover`] was last asked.
    silent: bool,
    /// Whether the ECN fields of all packets that came fit: the first that do not are reported.
    fits: bool,
    /// Its place among those that protect packets.
    turn: Option<u64>,
}

/// How one SA stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaStatus {
    /// The SA.
    pub id: ChildSaId,
    /// SPI of packets to us.
    pub inbound: Spi,
    /// SPI of packets from us.
    pub outbound: Spi,
    /// Where its packets go.
    pub path: Path,
    /// Highest sequence number received, 0 before the first.
    pub highest_received: u32,
    /// Last sequence number sent, 0 before the first.
    pub last_sent: u32,
    /// When the last new authentic packet came.
    pub last_inbound: Option<Instant>,
    /// What it carried.
    pub traffic: SaTraffic,
}

impl Worker {
    /// A worker without SAs.
    pub fn new(spd: Spd) -> Self {
        Self {
            spd,
            sas: BTreeMap::new(),
            by_id: BTreeMap::new(),
            order: Order::default(),
            clamp: None,
            classes: BTreeMap::new(),
            sizes: BTreeMap::new(),
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
        if spi < FIRST_SPI || self.sas.contains_key(&spi) {
            return Err(Unusable::Spi);
        }
        let mut installed = Sa {
            pair: Pair::of(&sa)?,
            id: sa.id,
            path: sa.path,
            takes_padding: sa.takes_padding,
            lane: Lane::of(&sa),
            dscp: self.classes.get(&sa.peer).copied().unwrap_or_default(),
            peer: sa.peer,
            inbound: Inbound::new(&sa.inbound, sa.agreement.as_ref())?,
            outbound: Outbound::new(&sa.outbound, sa.agreement.as_ref())?,
            carries: Protected {
                local: sa.local,
                remote: sa.remote,
            },
            unconfirmed: true,
            silent: true,
            fits: true,
            turn: None,
        };
        let report = installed.look_like(self.sizes.get(&installed.peer));
        self.reports.extend(report);
        self.by_id.insert(installed.id, spi);
        self.sas.insert(spi, Box::new(installed));
        Ok(())
    }

    /// From now on an SA protects whatever it covers, before all others.
    pub fn prefer(&mut self, id: ChildSaId) {
        self.retire(id);
        let spi = self.by_id.get(&id);
        if let Some(sa) = spi.and_then(|spi| self.sas.get_mut(spi)) {
            let turn = self.order.push(&sa.carries.remote, sa.inbound.spi());
            (sa.unconfirmed, sa.turn) = (false, Some(turn));
        }
    }

    /// From now on an SA protects nothing, but opens what comes.
    pub fn retire(&mut self, id: ChildSaId) {
        let spi = self.by_id.get(&id);
        if let Some(sa) = spi.and_then(|spi| self.sas.get_mut(spi))
            && let Some(turn) = sa.turn.take()
        {
            self.order.remove(&sa.carries.remote, turn);
        }
    }

    /// From now on an SA seals whole datagrams in its payload zone: somebody who has the keys of the
    /// other zones may not read them any more.
    pub fn make_opaque(&mut self, id: ChildSaId) {
        if let Some(sa) = self.sa_mut(id) {
            sa.outbound.make_opaque();
        }
    }

    /// Forgets an SA and its keys.
    pub fn remove(&mut self, id: ChildSaId) {
        self.retire(id);
        if let Some(spi) = self.by_id.remove(&id) {
            self.sas.remove(&spi);
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
        for sa in self.sas.values_mut() {
            let report = sa.look_like(sizes.get(&sa.peer));
            self.reports.extend(report);
        }
        self.sizes = sizes;
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
            sa.outbound.give_room(PathMtu::Any, path);
        }
    }

    /// Says how long the packets of an SA may be from now on; gives the longest datagram that fits, if
    /// there is one.
    pub fn set_path_mtu(&mut self, id: ChildSaId, mtu: PathMtu) -> Option<u16> {
        let sa = self.sa_mut(id)?;
        sa.outbound.give_room(mtu, sa.path);
        sa.outbound.room.longest()
    }

    // Inputs.

    /// Inner datagrams on their way out.
    pub fn seal(&mut self, batch: &mut [Packet], sink: &mut impl Sink) {
        // Errors are to be few (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)): of a flood of
        // datagrams that are too long one in each batch is answered.
        let mut answered = false;
        for packet in batch {
            match self.seal_one(packet, answered) {
                Ok(Some(path)) => sink.transmit(packet, path),
                Ok(None) => {
                    answered = true;
                    sink.deliver(packet);
                }
                Err(why) => self.dropped(packet, why, sink),
            }
        }
    }

    /// ESP packets that came in, from the SPI on.
    pub fn open(&mut self, batch: &mut [Packet], sink: &mut impl Sink, now: Instant) {
        for packet in batch {
            match self.open_one(packet, now) {
                Ok(()) => sink.deliver(packet),
                Err(why) => self.dropped(packet, why, sink),
            }
        }
    }

    /// Covers the silence towards a peer, if there was nothing but that since this was last asked: makes a
    /// packet a dummy of the SA that protects what goes there now, and says where that goes.
    pub fn cover(&mut self, peer: &str, packet: &mut Packet) -> Option<Path> {
        let theirs = self.sas.values_mut().filter(|sa| sa.peer == peer);
        let silence = theirs.map(|sa| std::mem::replace(&mut sa.silent, true));
        // All of them are asked, not those up to the first.
        if !silence.fold(true, |all, silent| all & silent) {
            return None;
        }
        let covering = self
            .sas
            .values_mut()
            .filter(|sa| sa.peer == peer && sa.turn.is_some() && sa.outbound.sizes.is_some());
        let sa = covering.max_by_key(|sa| sa.turn)?;
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
        self.sa(id)?.inbound.heard()
    }

    /// What an SA carried.
    pub fn traffic(&self, id: ChildSaId) -> Option<SaTraffic> {
        self.sa(id).map(Sa::traffic)
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

    fn sa(&self, id: ChildSaId) -> Option<&Sa> {
        self.sas.get(self.by_id.get(&id)?).map(Box::as_ref)
    }

    fn sa_mut(&mut self, id: ChildSaId) -> Option<&mut Sa> {
        self.sas.get_mut(self.by_id.get(&id)?).map(Box::as_mut)
    }

    /// Where a packet goes then; `None` if it has become what the datagram's source is to hear.
    fn seal_one(
        &mut self,
        packet: &mut Packet,
        answered: bool,
    ) -> Result<Option<Path>, DropReason> {
        let header = ip::Header::parse(packet.octets());
        let header = header.map_err(|_| DropReason::DatagramMalformed)?;
        if header.total_len() != packet.len() {
            return Err(DropReason::DatagramMalformed);
        }
        let (flow, version, octets) = (header.flow(), header.version(), packet.len());
        let (tos, may_be_cut) = (header.tos(), header.may_be_fragmented());
        self.spd.admit(&flow)?;
        let sa = protecting(&self.order, &mut self.sas, &flow)
            .ok_or_else(|| self.spd.without_sa(&flow))?;
        let fit = sa.outbound.room.take(octets, may_be_cut);
        match fit {
            Fit::TooLong(_) if answered => return Err(DropReason::TooLong),
            Fit::TooLong(longest) => {
                answer(packet, longest, &mut self.counters)?;
                return Ok(None);
            }
            Fit::Whole | Fit::Fragments => packet.whole = fit == Fit::Whole,
        }
        (packet.ecn, packet.dscp) = (Ecn::from_bits(tos), sa.dscp.outside(tos >> 2));
        let mtu = segments_fit(self.clamp, sa.outbound.room);
        clamp(packet, &flow, mtu, &mut self.counters);
        let form = (version, sa.pair.is_some());
        let sealed = sa.outbound.seal(packet, form, &mut self.scratch)?;
        sa.silent = false;
        if sealed.rekey_soon {
            self.reports.push_back(Report::RekeySoon(sa.id));
        }
        self.counters.sealed.count(octets);
        self.counters.opaque += u64::from(sealed.opaque);
        if sealed.padding > 0 {
            self.counters.padded.count(sealed.padding);
        }
        Ok(Some(sa.path))
    }

    fn open_one(&mut self, packet: &mut Packet, now: Instant) -> Result<(), DropReason> {
        let header = Header::parse(packet.octets()).ok_or(DropReason::Runt)?;
        if header.spi < FIRST_SPI {
            return Err(DropReason::ReservedSpi);
        }
        let sa = self
            .sas
            .get_mut(&header.spi)
            .ok_or(DropReason::UnknownSpi)?;
        let scratch = &mut self.scratch;
        let flow = sa.inbound.open(packet, header, sa.pair, scratch, now)?;
        if sa.unconfirmed {
            sa.unconfirmed = false;
            self.reports.push_back(Report::Confirmed(sa.id));
        }
        let flow = flow.ok_or(DropReason::Dummy)?;
        if !sa.carries.covers_inbound(&flow) {
            return Err(DropReason::InnerSelectorMismatch);
        }
        let inner = Ecn::of(packet.octets());
        let unused = self.counters.congestion.count(inner, packet.ecn);
        if unused && std::mem::take(&mut sa.fits) {
            self.reports.push_back(Report::UnusedEcn(sa.id));
        }
        ecn::leave(packet, inner)?;
        let mtu = segments_fit(self.clamp, sa.outbound.room);
        clamp(packet, &flow, mtu, &mut self.counters);
        sa.inbound.traffic.count(packet.len());
        self.counters.opened.count(packet.len());
        Ok(())
    }

    fn dropped(&mut self, packet: &mut Packet, why: DropReason, sink: &mut impl Sink) {
        self.counters.drop(why);
        sink.dropped(packet, why);
    }
}

/// Turns a datagram that is too long into what its source is to hear.
fn answer(packet: &mut Packet, longest: u16, counters: &mut Counters) -> Result<(), DropReason> {
    let told = TooBig::about(packet.octets(), longest).ok_or(DropReason::TooLong)?;
    packet.fill(told.octets());
    counters.too_long += 1;
    Ok(())
}

/// What TCP segments have to fit, if those that begin a connection are to say so: the tunnel's device,
/// and what is known of the path.
fn segments_fit(clamp: Option<u16>, room: Room) -> Option<u16> {
    let longest = room.longest().unwrap_or(u16::MAX);
    clamp.map(|mtu| mtu.min(longest))
}

/// Has a segment that begins a TCP connection offer what fits, if it is to.
fn clamp(packet: &mut Packet, flow: &Flow, mtu: Option<u16>, counters: &mut Counters) {
    if let Some(mtu) = mtu.filter(|_| flow.protocol == tcp::PROTOCOL) {
        counters.clamped += u64::from(mss::clamp(packet.octets_mut(), mtu));
    }
}

/// The SA that protects a packet: the newest that covers it, or that one's lane for its flow.
fn protecting<'s>(
    order: &Order,
    sas: &'s mut BTreeMap<Spi, Box<Sa>>,
    flow: &Flow,
) -> Option<&'s mut Sa> {
    let newest_first = order.newest_first(flow.destination);
    let newest_first = newest_first.filter_map(|spi| sas.get(&spi));
    let mut covering = newest_first.filter(|sa| sa.carries.covers_outbound(flow));
    let newest = covering.next()?;
    let chosen = newest.lane.as_ref().and_then(|lane| {
        let weight = |other: &Lane| lane.is_beside(other).then(|| other.weight(flow));
        let beside = covering.filter_map(|sa| Some((weight(sa.lane.as_ref()?)?, sa)));
        let first = std::iter::once((lane.weight(flow), newest));
        // Of a lane the newest is the first, and of those that weigh the same the first is taken.
        first.chain(beside).min_by_key(|(weight, _)| *weight)
    });
    let spi = chosen.map_or(newest, |(_, sa)| sa).inbound.spi();
    sas.get_mut(&spi).map(Box::as_mut)
}

impl Sa {
    /// Has datagrams look like one of these sizes from now on, if that can be: only a whole datagram says
    /// how long it is, and only a peer that was not told otherwise takes the rest off (RFC 4303 section
    /// 2.7).
    fn look_like(&mut self, sizes: Option<&Sizes>) -> Option<Report> {
        let sizes = sizes.copied().filter(|_| self.pair.is_none());
        self.outbound.sizes = sizes.filter(|_| self.takes_padding);
        (sizes != self.outbound.sizes).then_some(Report::Unpadded(self.id))
    }

    fn traffic(&self) -> SaTraffic {
        SaTraffic {
            sealed: self.outbound.traffic,
            opened: self.inbound.traffic,
        }
    }

    fn status(&self) -> SaStatus {
        SaStatus {
            id: self.id,
            inbound: self.inbound.spi(),
            outbound: self.outbound.spi(),
            path: self.path,
            highest_received: self.inbound.highest(),
            last_sent: self.outbound.used(),
            last_inbound: self.inbound.heard(),
            traffic: self.traffic(),
        }
    }
}
