//! The licensed node's side: decrypts the granted zones of a packet in a copy, and returns a view.
//! The packet itself is never modified, and nothing here decides about forwarding. With a grant to
//! write, an overlay requests changes.

use crate::aad::Aad;
use crate::foreign::{Foreign, Make};
use crate::guard::Guard;
use crate::injection::Injector;
use crate::key::{Unusable, payload_zone};
use crate::overlay::{self, Writer};
use crate::replay::Replay;
use crate::scratch::Scratch;
use crate::view::{Direction, View, put_together};
use crypto::Secret;
use model::{CsaId, Frame, Grant, GrantHalf, Spi, ZoneId, ZoneSuite};
use std::collections::BTreeMap;
use wire::esp::{HEADER_LEN, Header};
use wire::zoned::{BadMap, BadOverlay, Body, Layout, MAX_MAP_LEN, MAX_ZONES, Map, Overlay, mark};

/// The grants of a node. Several may share an SPI, because receivers choose SPIs independently.
/// Each costs one trial per packet, so the caller limits their number.
#[derive(Default)]
pub struct Licensed {
    halves: BTreeMap<Spi, Vec<LicensedHalf>>,
}

/// The reason why a packet was not opened. It is forwarded anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// It is too short for ESP.
    #[error("too short to be an ESP packet")]
    Runt,
    /// No grant has its SPI.
    #[error("no grant has this SPI")]
    NoGrant,
    /// All of it is in the payload zone, which is not licensed.
    #[error("the whole packet is in the payload zone")]
    Opaque,
    /// Its map is malformed.
    #[error(transparent)]
    BadMap(#[from] BadMap),
    /// A licensed zone failed authentication.
    #[error("the ICV of zone {0} is wrong")]
    BadIcv(ZoneId),
    /// The octets behind its bodies are not a valid overlay.
    #[error(transparent)]
    BadOverlay(#[from] BadOverlay),
}

/// The reason why a node originates nothing: no overlay, so the packet is forwarded as received, or
/// no injected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// The grant does not include this right.
    #[error("the grant does not include this right")]
    NotGranted,
    /// The packet has an overlay already, and can have only one.
    #[error("the packet already has the overlay of another writer")]
    Another,
    /// The field is not in the designated zone.
    #[error("the designated zone has no TCP window to write")]
    NoWindow,
    /// The grant's counters are used up.
    #[error("the counters of the grant are used up")]
    Exhausted,
}

impl Licensed {
    /// Creates a node without grants.
    pub fn new() -> Self {
        Self::default()
    }

    /// Installs a grant. It replaces an older one of the same composite SA and keeps its replay
    /// windows, so packets seen before do not become new again. Overlay counters continue too,
    /// unless the grant has another number and therefore another key. A refused grant changes
    /// nothing. The caller revokes a grant at the end of its lifetime, and gives each composite SA
    /// a unique id, because two gateways may use the same one.
    pub fn install(&mut self, grant: Grant<Secret>) -> Result<(), Unusable> {
        let mut from = LicensedHalf::new(&grant, &grant.from_gateway, Direction::FromGateway)?;
        let mut to = LicensedHalf::new(&grant, &grant.to_gateway, Direction::ToGateway)?;
        for old in self.halves.values_mut().flatten() {
            for new in [&mut from, &mut to] {
                if (old.csa, old.direction, old.spi) == (new.csa, new.direction, new.spi) {
                    std::mem::swap(&mut old.replay, &mut new.replay);
                    new.go_on(old);
                }
            }
        }
        self.revoke(grant.csa);
        for half in [from, to] {
            self.halves.entry(half.spi).or_default().push(half);
        }
        Ok(())
    }

    /// Removes the keys of a composite SA.
    pub fn revoke(&mut self, csa: CsaId) {
        self.halves.retain(|_, candidates| {
            candidates.retain(|half| half.csa != csa);
            !candidates.is_empty()
        });
    }

    /// Replaces the granted ciphers of a composite SA by others: see [`Foreign`].
    pub fn make_foreign(&mut self, csa: CsaId, make: impl Fn(ZoneId) -> Box<dyn Foreign>) {
        let halves = self.halves.values_mut().flatten();
        for half in halves.filter(|half| half.csa == csa) {
            half.make_foreign(&make);
        }
    }

    /// Opens the licensed zones of an ESP packet, which starts with the SPI. All licensed zones are
    /// authenticated before any is shown. The grant that opened the last packet of an SPI is tried
    /// first, so grants that do not match delay a matching one only on its first packet.
    pub fn open<'s>(
        &mut self,
        packet: &[u8],
        scratch: &'s mut Scratch,
    ) -> Result<View<'s>, NotOpened> {
        let header = Header::parse(packet).ok_or(NotOpened::Runt)?;
        let candidates = self.halves.get_mut(&header.spi).ok_or(NotOpened::NoGrant)?;
        let mut failure = NotOpened::NoGrant;
        for index in 0..candidates.len() {
            match candidates[index].verify(packet, header, scratch) {
                Ok((written, layout)) => {
                    candidates.swap(0, index);
                    return Ok(candidates[0].view((header, written), layout, scratch));
                }
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }

    /// Creates an overlay that asks the endpoint to lower the window in a packet's TCP header.
    /// `packet` is the packet of the view, starting with the SPI.
    pub fn lower_window(
        &mut self,
        view: &View<'_>,
        packet: &[u8],
        window: u16,
    ) -> Result<Overlay, NotWritten> {
        let halves = self.halves.get_mut(&view.header.spi);
        let mut halves = halves.into_iter().flatten();
        let half = halves.find(|half| half.csa == view.csa && half.direction == view.direction);
        let writer = half.and_then(|half| half.writer.as_mut());
        let writer = writer.ok_or(NotWritten::NotGranted)?;
        if view.written {
            return Err(NotWritten::Another);
        }
        let at = overlay::window_at(view.copy, &view.layout).and_then(|at| u8::try_from(at).ok());
        let at = at.ok_or(NotWritten::NoWindow)?;
        let [high, low] = window.to_be_bytes();
        writer
            .seal(&[at, 2, high, low], packet, (view.header, &view.layout))
            .ok_or(NotWritten::Exhausted)
    }

    /// Creates a packet, starting with the SPI, that repeats to one end of a composite SA what the
    /// other end has sent before. `headers` are those of a datagram without the header that its
    /// mode omits, and `next_header` is the protocol of the first.
    pub fn inject(
        &mut self,
        csa: CsaId,
        direction: Direction,
        (headers, next_header): (&[u8], u8),
    ) -> Result<Vec<u8>, NotWritten> {
        let mut halves = self.halves.values_mut().flatten();
        let half = halves.find(|half| half.csa == csa && half.direction == direction);
        let injector = half.and_then(|half| half.injector.as_mut());
        let injector = injector.ok_or(NotWritten::NotGranted)?;
        let packet = injector.seal(headers, next_header);
        packet.ok_or(NotWritten::Exhausted)
    }
}

/// One direction of a granted composite SA.
struct LicensedHalf {
    csa: CsaId,
    direction: Direction,
    spi: Spi,
    frames: Vec<Frame>,
    payload_zone: ZoneId,
    /// The map of every packet, if the map is fixed.
    fixed: Option<Map>,
    guards: Vec<(ZoneId, Guard)>,
    replay: Replay,
    /// Present if the grant includes writing.
    writer: Option<Writer>,
    /// Present if the grant includes injecting.
    injector: Option<Injector>,
}

impl LicensedHalf {
    fn new(
        grant: &Grant<Secret>,
        half: &GrantHalf<Secret>,
        direction: Direction,
    ) -> Result<Self, Unusable> {
        let (payload_zone, fixed) = payload_zone(grant.suites.len(), &grant.map)?;
        let as_agreed = |zone: ZoneId, suite: &ZoneSuite| {
            let place = usize::from(zone.0).checked_sub(1);
            place.and_then(|place| grant.suites.get(place)) == Some(suite)
        };
        let mut zones = half.zones.iter();
        if payload_zone != grant.payload_zone || !zones.all(|(z, suite, _)| as_agreed(*z, suite)) {
            return Err(Unusable::Zones);
        }
        if half.zones.first().map(|zone| zone.0) != Some(ZoneId::DESIGNATED) {
            return Err(Unusable::NoDesignatedZone);
        }
        let writer = half.overlay.as_ref();
        let writer = writer
            .map(|key| Writer::new(grant.grant, key))
            .transpose()?;
        let injector = half.injection.as_ref();
        let injector = injector
            .map(|key| Injector::new(half.spi, grant.grant, key))
            .transpose()?;
        let keys = half.zones.iter();
        let guards = keys.map(|(zone, suite, key)| Ok((*zone, Guard::new(*suite, key)?)));
        Ok(Self {
            csa: grant.csa,
            direction,
            spi: half.spi,
            frames: grant.suites.iter().map(|suite| suite.frame()).collect(),
            payload_zone,
            fixed,
            guards: guards.collect::<Result<_, Unusable>>()?,
            replay: Replay::new(grant.window),
            writer,
            injector,
        })
    }

    fn make_foreign(&mut self, make: Make<'_>) {
        for (zone, frame) in (1..).map(ZoneId).zip(&mut self.frames) {
            *frame = make(zone).frame();
        }
        for (zone, guard) in &mut self.guards {
            *guard = Guard::Foreign(make(*zone));
        }
    }

    /// Continues the counters of a previous installation of the same grant.
    fn go_on(&mut self, old: &mut Self) {
        let grant = |half: &Self| half.writer.as_ref().map(Writer::grant);
        if grant(self) == grant(old) {
            std::mem::swap(&mut self.writer, &mut old.writer);
        }
        let grant = |half: &Self| half.injector.as_ref().map(Injector::grant);
        if grant(self) == grant(old) {
            std::mem::swap(&mut self.injector, &mut old.injector);
        }
    }

    /// Returns the offset of a packet's overlay, if it has one. A packet without a map has no bit
    /// for one.
    fn overlay_at(&self, packet: &[u8]) -> Result<Option<usize>, BadOverlay> {
        match self.fixed {
            Some(_) => Ok(None),
            None => Ok(Overlay::read(packet)?.map(|(end, _)| end)),
        }
    }

    /// Opens all licensed zones of a packet in a copy without the overlay. Also returns true if the
    /// packet has an overlay.
    fn verify(
        &self,
        packet: &[u8],
        header: Header,
        scratch: &mut Scratch,
    ) -> Result<(bool, Layout), NotOpened> {
        let end = self.overlay_at(packet)?;
        let packet = &packet[..end.unwrap_or(packet.len())];
        // If the packet shows no zone, only the front with the map is copied.
        let (front, rest) = packet.split_at(packet.len().min(HEADER_LEN + MAX_MAP_LEN));
        scratch.copy.clear();
        scratch.copy.extend_from_slice(front);
        let map = match self.fixed {
            Some(map) => map,
            None => {
                mark(&mut scratch.copy, false);
                Map::parse(&scratch.copy[HEADER_LEN..], self.payload_zone)?
            }
        };
        let layout = Layout::of_packet(map, &self.frames, packet.len())?;
        if self.present(&layout).next().is_none() {
            return Err(NotOpened::Opaque);
        }
        scratch.copy.extend_from_slice(rest);
        let mut aad = Aad::new(&mut scratch.aad, header, &layout);
        for body in &layout.bodies()[..layout.bodies().len() - 1] {
            aad.add_body(&packet[body.all()]);
        }
        for (zone, guard, body) in self.present(&layout) {
            let aad_of_zone = aad.for_zone(zone, self.payload_zone);
            let (copy, room) = (&mut scratch.copy, &mut scratch.mac);
            guard
                .open(header.seq, aad_of_zone, copy, body, room)
                .map_err(|_| NotOpened::BadIcv(zone))?;
        }
        Ok((end.is_some(), layout))
    }

    fn present<'l>(
        &'l self,
        layout: &'l Layout,
    ) -> impl Iterator<Item = (ZoneId, &'l Guard, &'l Body)> {
        self.guards
            .iter()
            .filter_map(|(zone, guard)| Some((*zone, guard, layout.body(*zone)?)))
    }

    /// Updates the node's own replay window, which only authentic packets reach, and builds the
    /// view.
    fn view<'s>(
        &mut self,
        (header, written): (Header, bool),
        mut layout: Layout,
        scratch: &'s mut Scratch,
    ) -> View<'s> {
        let fresh = self.replay.take(header.seq.into()).is_ok();
        let mut opened = [false; MAX_ZONES + 1];
        for (zone, _) in &self.guards {
            opened[usize::from(zone.0)] = true;
        }
        let Scratch { copy, headers, .. } = scratch;
        let headers = put_together(&mut layout, (&opened, self.direction), copy, headers);
        View {
            csa: self.csa,
            direction: self.direction,
            header,
            fresh,
            highest: self.replay.highest(),
            window: self.replay.window(),
            layout,
            written,
            opened,
            headers,
            copy,
        }
    }
}
