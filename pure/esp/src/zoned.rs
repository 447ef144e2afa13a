//! Sealing and opening of packets of a composite SA (DESIGN section 3).
//!
//! The last run of a datagram, which is nearly all of it, never moves. The runs before it are
//! copied aside, the zones are laid out in the room before the last run, and every body is
//! encrypted in place. Opening reverses this: all bodies are verified first, then the runs before
//! the last one are gathered and written in front of it.

use crate::aad::Aad;
use crate::division::{Division, Found};
use crate::drop::DropReason;
use crate::foreign::Make;
use crate::guard::{Guard, is_padding};
use crate::key::{Unusable, payload_zone};
use crate::packet::Packet;
use crate::padding::pad;
use crate::prefetch::prefetch;
use crate::scratch::Scratch;
use crypto::Secret;
use model::{Frame, ZoneAgreement, ZoneId, ZoneKey};
use std::ops::Range;
use wire::checksum::Checksum;
use wire::classify::{Clear, Extents, classify};
use wire::content::Content;
use wire::esp::{HEADER_LEN, Header, next_header};
use wire::probe;
use wire::zoned::{Body, Layout, MAX_MAP_LEN, MAX_PADDING, Map, WORD_LEN};

const NEXT_HEADER_LEN: usize = 1;

/// One direction of a composite SA.
pub(crate) struct Zoned {
    /// By serial, from 1.
    frames: Vec<Frame>,
    guards: Vec<Guard>,
    payload_zone: ZoneId,
    division: Division,
    /// True if all datagrams are entirely in the payload zone.
    pub(crate) opaque: bool,
    /// The map of every packet, if the map is fixed.
    fixed: Option<Map>,
    last: Box<Last>,
}

/// The structure of the last packet, as a cache: most packets differ from the one before only in
/// their lengths. It may come from an unauthentic packet, so no other packet's treatment depends on
/// it.
struct Last {
    /// The headers of the last datagram that was not opaque, and the header found behind them.
    shown: Option<(Clear, Option<Found>)>,
    /// The map of that datagram, or the fixed map.
    map: Map,
    layout: Layout,
}

/// The division of a datagram among the zones.
pub(crate) struct Divided {
    /// True if headers are visible, as in the last map. Otherwise the datagram is opaque.
    shown: bool,
    /// The offset of the checksum, if it is omitted.
    left_out_at: Option<usize>,
}

impl Divided {
    /// Returns true if the packet includes the datagram's checksum, if that has one.
    pub const fn has_checksum(&self) -> bool {
        self.left_out_at.is_none()
    }
}

impl Zoned {
    pub fn new(agreement: &ZoneAgreement, keys: &[ZoneKey<Secret>]) -> Result<Self, Unusable> {
        let (payload_zone, fixed) = payload_zone(agreement.zones.len(), &agreement.map)?;
        let serials = (1..=payload_zone.0).map(ZoneId);
        let agreed = agreement.zones.iter().map(|zone| (zone.id, zone.suite));
        let ascending = agreed.clone().map(|(zone, _)| zone).eq(serials);
        if !ascending || !agreed.eq(keys.iter().map(|key| (key.zone, key.suite))) {
            return Err(Unusable::Zones);
        }
        let guards = keys.iter().map(|key| Guard::new(key.suite, &key.key));
        let frames: Vec<_> = keys.iter().map(|key| key.suite.frame()).collect();
        let map = fixed.unwrap_or(Map::opaque(payload_zone));
        let layout = Layout::of_map(map, &frames).ok_or(Unusable::Zones)?;
        Ok(Self {
            frames,
            guards: guards.collect::<Result<_, _>>()?,
            payload_zone,
            division: Division::new(agreement),
            opaque: fixed.is_some_and(|map| map.is_opaque()),
            fixed,
            last: Box::new(Last {
                shown: None,
                map,
                layout,
            }),
        })
    }

    /// Prefetches the parts behind pointers.
    pub fn prefetch(&self) {
        prefetch(&self.frames[..]);
        prefetch(&self.guards[..]);
        prefetch(&*self.last);
        self.division.prefetch();
    }

    /// Divides a datagram, or if `bare` the octets behind its IP header. Returns `None` if the
    /// fixed map does not fit.
    pub fn divide(&mut self, packet: &Packet, bare: bool) -> Option<Divided> {
        if self.opaque {
            return self.hidden();
        }
        let datagram = packet.octets();
        let Extents::Clear(clear) = classify(datagram, packet.checksum) else {
            return self.hidden();
        };
        let (datagram, clear) = match bare {
            true => (&datagram[clear.ip.end..], clear.without_ip()),
            false => (datagram, clear),
        };
        let (checksum_at, found) = (clear.checksum_at, self.division.find(datagram, &clear));
        let known = self.last.shown.as_ref();
        if !known.is_some_and(|(last_clear, last)| (last_clear, last) == (&clear, &found)) {
            let Ok(map) = self.division.map(&clear, found) else {
                return self.hidden();
            };
            if self.fixed.is_some_and(|fixed| !fixed.is_like(&map)) {
                return None;
            }
            self.last.map = self.fixed.unwrap_or(map);
            self.last.shown = Some((clear, found));
        }
        Some(Divided {
            shown: true,
            left_out_at: checksum_at.filter(|_| self.last.map.checksum_left_out()),
        })
    }

    /// Returns the division with the whole datagram in the payload zone, unless a fixed map
    /// excludes it.
    fn hidden(&self) -> Option<Divided> {
        let may_be = self.fixed.is_none_or(|fixed| fixed.is_opaque());
        may_be.then_some(Divided {
            shown: false,
            left_out_at: None,
        })
    }

    /// Replaces the ciphers of the zones by foreign ones.
    pub fn make_foreign(&mut self, make: Make<'_>) {
        let zones = (1..).map(ZoneId).zip(&mut self.frames);
        for ((zone, frame), guard) in zones.zip(&mut self.guards) {
            let cipher = make(zone);
            (*frame, *guard) = (cipher.frame(), Guard::Foreign(cipher));
        }
        self.lay_out(self.last.map);
    }

    /// Adds a recognised header to the designated zone, if foreign ciphers protect the zones.
    pub fn recognise(&mut self, content: Box<dyn Content>) {
        let mut guards = self.guards.iter();
        if guards.all(|guard| matches!(guard, Guard::Foreign(_))) {
            self.division.recognise(content);
        }
    }

    /// Seals a datagram. Returns true if the packet is opaque, and the number of padding octets
    /// that hide the datagram's length. The packet looks like that of a datagram of `size` octets.
    pub fn seal(
        &mut self,
        packet: &mut Packet,
        divided: Divided,
        size: Option<usize>,
        header: Header,
        next_header: u8,
        scratch: &mut Scratch,
    ) -> Result<(bool, usize), DropReason> {
        let fits = match size {
            None => self.fit(&divided, packet.len()),
            Some(size) => self.fill(self.map_of(&divided), packet.len(), size),
        };
        if !fits {
            return Err(DropReason::DatagramMalformed);
        }
        let layout = &self.last.layout;
        let left_out = layout.map().checksum_left_out();
        match divided.left_out_at.filter(|_| left_out) {
            Some(at) => packet.octets_mut()[at..at + 2].fill(0),
            // Padding to `size` made the datagram opaque. It still has its IP header: without one,
            // there is no padding to a size.
            None => packet.make_checksum()?,
        }
        packet.checksum = Checksum::Made;
        let padding = pad(packet, layout.datagram_len())?;
        self.close(packet, header, next_header, scratch)?;
        Ok((self.last.layout.map().is_opaque(), padding))
    }

    /// Creates a dummy packet. It looks like that of a datagram of `size` octets with the map of
    /// the last one.
    pub fn dummy(
        &mut self,
        packet: &mut Packet,
        size: usize,
        header: Header,
        scratch: &mut Scratch,
    ) -> Result<(), DropReason> {
        let shown = self.fixed.is_some() || !self.opaque;
        let like_the_last = Divided {
            shown,
            left_out_at: None,
        };
        if !self.fill(self.map_of(&like_the_last), 0, size) {
            return Err(DropReason::TooBig);
        }
        packet.set_len(0);
        pad(packet, self.last.layout.datagram_len())?;
        self.close(packet, header, next_header::NONE, scratch)
    }

    /// Sets the layout to that of a probe whose packet has at most `octets` octets, or to that of
    /// an echo, which is as short as possible. Nothing is shown, unless the map is fixed. Returns
    /// `false` if there is no such layout.
    pub fn lay_out_probe(&mut self, octets: Option<usize>) -> bool {
        let map = self.fixed.unwrap_or(Map::opaque(self.payload_zone));
        let Some(octets) = octets else {
            let len = probe::LEN.max(map.described_len());
            return self.fill(map, probe::LEN, len);
        };
        let layout = Layout::filling(map, &self.frames, octets);
        let layout = layout.filter(|layout| layout.datagram_len() >= probe::LEN);
        if let Some(layout) = layout {
            self.last.layout = layout;
        }
        layout.is_some()
    }

    /// Creates a dummy packet of the layout's length that begins with `body`.
    pub fn seal_probe(
        &mut self,
        packet: &mut Packet,
        body: &[u8],
        header: Header,
        scratch: &mut Scratch,
    ) -> Result<(), DropReason> {
        packet.set_len(0);
        pad(packet, self.last.layout.datagram_len())?;
        packet.octets_mut()[..body.len()].copy_from_slice(body);
        self.close(packet, header, next_header::NONE, scratch)
    }

    /// Seals a datagram of the layout's length in the layout's zones.
    fn close(
        &self,
        packet: &mut Packet,
        header: Header,
        next_header: u8,
        scratch: &mut Scratch,
    ) -> Result<(), DropReason> {
        let layout = &self.last.layout;
        let mut aad = Aad::new(&mut scratch.aad, header, layout);
        lay_out(packet, layout, &mut scratch.copy)?;
        let octets = packet.octets_mut();
        octets[..HEADER_LEN].copy_from_slice(&header.octets());
        if self.fixed.is_none() {
            layout.map().write(&mut octets[HEADER_LEN..]);
        }
        octets[layout.next_header_at()] = next_header;
        for body in layout.bodies() {
            let aad_of_zone = aad.for_zone(body.zone(), self.payload_zone);
            let guard = self.guard(body);
            guard.seal(header.seq, aad_of_zone, octets, body, &mut scratch.mac);
            aad.add_body(&octets[body.all()]);
        }
        Ok(())
    }

    /// Verifies every ICV and decrypts in place. After an error no part of the packet is used.
    pub fn verify(
        &mut self,
        packet: &mut [u8],
        header: Header,
        scratch: &mut Scratch,
    ) -> Result<(), DropReason> {
        self.read(packet)?;
        let layout = &self.last.layout;
        let mut aad = Aad::new(&mut scratch.aad, header, layout);
        // The payload zone's ICV covers the other bodies as they were on the wire.
        let others = layout.bodies().len() - 1;
        for body in &layout.bodies()[..others] {
            aad.add_body(&packet[body.all()]);
        }
        for body in layout.bodies() {
            let aad_of_zone = aad.for_zone(body.zone(), self.payload_zone);
            self.guard(body)
                .open(header.seq, aad_of_zone, packet, body, &mut scratch.mac)
                .map_err(|_| self.bad_icv(body.zone()))?;
        }
        Ok(())
    }

    /// Returns the layout of the packet opened last.
    pub fn layout(&self) -> &Layout {
        &self.last.layout
    }

    /// Reassembles the datagram of an authentic, decrypted packet. Returns its next header, and
    /// true if its checksum was omitted.
    pub fn assemble(
        &mut self,
        packet: &mut Packet,
        scratch: &mut Scratch,
    ) -> Result<(u8, bool), DropReason> {
        let (octets, layout) = (packet.octets(), &mut self.last.layout);
        take_padding_off(octets, layout)?;
        let map = layout.map();
        let next_header = octets[layout.next_header_at()];
        let (described, last_run) = (map.described_len(), last_run_at(layout));
        let front = last_run - described;
        if let Some(only) = only_run(layout) {
            packet.octets_mut().copy_within(only, front);
        } else {
            scratch.copy.clear();
            for place in layout.places().take(map.run_count() - 1) {
                scratch.copy.extend_from_slice(&octets[place.packet]);
            }
            packet.octets_mut()[front..last_run].copy_from_slice(&scratch.copy);
        }
        packet.cut(front, layout.datagram_len());
        Ok((next_header, map.checksum_left_out()))
    }

    /// Sets the layout to that of an inbound packet.
    fn read(&mut self, packet: &[u8]) -> Result<(), DropReason> {
        let octets = &packet[HEADER_LEN..];
        if self.fixed.is_none() && !self.last.layout.map().is_at(octets) {
            self.lay_out(Map::parse(octets, self.payload_zone)?);
        }
        Ok(self.last.layout.fit_packet(packet.len())?)
    }

    /// Sets the layout to that of a datagram. Returns `false` if it has none.
    fn fit(&mut self, divided: &Divided, len: usize) -> bool {
        let last = &self.last;
        let laid_out = match divided.shown {
            true => *last.layout.map() == last.map,
            false => last.layout.map().is_opaque(),
        };
        if !laid_out {
            self.lay_out(self.map_of(divided));
        }
        self.last.layout.fit_datagram(len)
    }

    fn map_of(&self, divided: &Divided) -> Map {
        match divided.shown {
            true => self.last.map,
            false => self.fixed.unwrap_or(Map::opaque(self.payload_zone)),
        }
    }

    /// Sets the layout to that of packets with a map, of any length.
    fn lay_out(&mut self, map: Map) {
        // There are frames: without any, construction fails.
        if let Some(layout) = Layout::of_map(map, &self.frames) {
            self.last.layout = layout;
        }
    }

    fn guard(&self, body: &Body) -> &Guard {
        &self.guards[usize::from(body.zone().0) - 1]
    }

    fn bad_icv(&self, zone: ZoneId) -> DropReason {
        match zone {
            zone if zone == self.payload_zone => DropReason::BadIcvPayload,
            ZoneId::DESIGNATED => DropReason::BadIcvDesignated,
            _ => DropReason::BadIcvOther,
        }
    }

    /// Sets the layout to that of a packet as long as all packets with a datagram of `size` octets,
    /// independent of their maps. A datagram that does not fit, because its map is longer than
    /// usual, becomes opaque and then fits. Returns `false` if that fails too.
    fn fill(&mut self, map: Map, len: usize, size: usize) -> bool {
        let usual = WORD_LEN * (self.frames.len() - 1);
        let packet_len = self.overhead(usual) + size;
        let filled = |map| {
            let layout = Layout::filling(map, &self.frames, packet_len);
            layout.filter(|layout| layout.datagram_len() >= len)
        };
        let opaque = self.fixed.is_none().then(|| Map::opaque(self.payload_zone));
        let layout = filled(map).or_else(|| filled(opaque?));
        if let Some(layout) = layout {
            self.last.layout = layout;
        }
        layout.is_some()
    }

    /// Returns the longest datagram whose packet has at most `packet` octets with any map.
    pub fn longest(&self, packet: usize) -> usize {
        packet.saturating_sub(self.overhead(MAX_MAP_LEN))
    }

    /// Returns the overhead of a packet with all zones and a map of `map_len` octets, if packets
    /// carry one.
    fn overhead(&self, map_len: usize) -> usize {
        let map_len = if self.fixed.is_none() { map_len } else { 0 };
        let frames = self.frames.iter().map(|frame| frame.overhead());
        HEADER_LEN + map_len + NEXT_HEADER_LEN + frames.sum::<usize>()
    }
}

/// Removes the padding of the payload zone from the layout of a decrypted packet. All padding must
/// have the prescribed content, so that it carries no information.
fn take_padding_off(octets: &[u8], layout: &mut Layout) -> Result<(), DropReason> {
    if let Some(&len) = octets[layout.payload().padding()].last() {
        let len = Some(usize::from(len)).filter(|len| *len < MAX_PADDING);
        let datagram_len = len.and_then(|len| layout.datagram_len().checked_sub(len));
        if !datagram_len.is_some_and(|len| layout.cut(len)) {
            return Err(DropReason::BadPadding);
        }
    }
    let mut padding = layout.bodies().iter().map(|body| &octets[body.padding()]);
    match padding.all(is_padding) {
        true => Ok(()),
        false => Err(DropReason::BadPadding),
    }
}

/// Makes room around a datagram's last run, and copies the other runs to their places.
fn lay_out(packet: &mut Packet, layout: &Layout, copy: &mut Vec<u8>) -> Result<(), DropReason> {
    let described = layout.map().described_len();
    let front = last_run_at(layout) - described;
    packet.grow(front, layout.packet_len() - front - layout.datagram_len())?;
    let octets = packet.octets_mut();
    if let Some(only) = only_run(layout) {
        octets.copy_within(front..front + described, only.start);
        return Ok(());
    }
    copy.clear();
    copy.extend_from_slice(&octets[front..front + described]);
    for place in layout.places().take(layout.map().run_count() - 1) {
        octets[place.packet].copy_from_slice(&copy[place.datagram]);
    }
    Ok(())
}

/// Returns the place of the run before the last one, if it is the only one. It overlaps no other
/// run, so no copy is necessary.
fn only_run(layout: &Layout) -> Option<Range<usize>> {
    let [_] = layout.map().described() else {
        return None;
    };
    layout.places().next().map(|place| place.packet)
}

/// Returns the offset of the last run in the packet: at the end of the payload zone, before padding
/// and next header if present. Octets before it in the datagram are also before it in the packet.
fn last_run_at(layout: &Layout) -> usize {
    let last_run = layout.datagram_len() - layout.map().described_len();
    let next_header = usize::from(layout.map().is_opaque());
    layout.payload().plain().end - next_header - last_run
}
