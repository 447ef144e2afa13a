//! A licensed node's side: it opens the zones it was granted, in a copy, and says what it saw.
//! The packet itself is never touched and nothing here decides whether it goes on.

use crate::aad::Aad;
use crate::guard::Guard;
use crate::key::{Unusable, payload_zone};
use crate::replay::Replay;
use crate::scratch::Scratch;
use crate::view::{Direction, View, put_together};
use crypto::Secret;
use model::{CsaId, Grant, GrantHalf, Spi, ZoneId, ZoneSuite};
use std::collections::BTreeMap;
use wire::esp::{HEADER_LEN, Header};
use wire::zoned::{BadMap, Body, Layout, MAX_ZONES, Map};

/// How many grants may share an SPI: receivers behind one NAT choose theirs without knowing of each
/// other, and each costs a trial (DESIGN section 7).
const CANDIDATES: usize = 4;

/// The grants a node holds.
#[derive(Default)]
pub struct Licensed {
    halves: BTreeMap<Spi, Vec<LicensedHalf>>,
}

/// Why a packet was not opened. It is forwarded all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// Too short to be ESP.
    #[error("too short to be an ESP packet")]
    Runt,
    /// No grant speaks of its SPI.
    #[error("no grant has this SPI")]
    NoGrant,
    /// Everything in it is in the payload zone, which is not licensed.
    #[error("all of the packet is in the payload zone")]
    Opaque,
    /// Its map is none.
    #[error(transparent)]
    BadMap(#[from] BadMap),
    /// A licensed zone is not what an endpoint sealed.
    #[error("the ICV of zone {0} is wrong")]
    BadIcv(ZoneId),
}

impl Licensed {
    /// A node without grants.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a grant into use, in place of an older one of the same composite SA, whose windows
    /// stay where they are: what was seen under it is not new again. The caller revokes it when
    /// its lifetime is over.
    pub fn install(&mut self, grant: Grant<Secret>) -> Result<(), Unusable> {
        let mut from = LicensedHalf::new(&grant, &grant.from_gateway, Direction::FromGateway)?;
        let mut to = LicensedHalf::new(&grant, &grant.to_gateway, Direction::ToGateway)?;
        for old in self.halves.values_mut().flatten() {
            for new in [&mut from, &mut to] {
                if (old.csa, old.direction, old.spi) == (new.csa, new.direction, new.spi) {
                    std::mem::swap(&mut old.replay, &mut new.replay);
                }
            }
        }
        self.revoke(grant.csa);
        for half in [from, to] {
            let candidates = self.halves.entry(half.spi).or_default();
            if candidates.len() == CANDIDATES {
                self.revoke(grant.csa);
                return Err(Unusable::Crowded);
            }
            candidates.push(half);
        }
        Ok(())
    }

    /// Forgets the keys of a composite SA.
    pub fn revoke(&mut self, csa: CsaId) {
        self.halves.retain(|_, candidates| {
            candidates.retain(|half| half.csa != csa);
            !candidates.is_empty()
        });
    }

    /// Opens what is licensed of an ESP packet, from the SPI on. Every licensed zone is
    /// authenticated before any is shown.
    pub fn open<'s>(
        &mut self,
        packet: &[u8],
        scratch: &'s mut Scratch,
    ) -> Result<View<'s>, NotOpened> {
        let header = Header::parse(packet).ok_or(NotOpened::Runt)?;
        let candidates = self.halves.get_mut(&header.spi).ok_or(NotOpened::NoGrant)?;
        let mut failure = NotOpened::NoGrant;
        for half in candidates {
            match half.verify(packet, header, scratch) {
                Ok(layout) => return Ok(half.view(header, layout, scratch)),
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }
}

/// One direction of a granted composite SA.
struct LicensedHalf {
    csa: CsaId,
    direction: Direction,
    spi: Spi,
    suites: Vec<ZoneSuite>,
    payload_zone: ZoneId,
    guards: Vec<(ZoneId, Guard)>,
    replay: Replay,
}

impl LicensedHalf {
    fn new(
        grant: &Grant<Secret>,
        half: &GrantHalf<Secret>,
        direction: Direction,
    ) -> Result<Self, Unusable> {
        let payload_zone = payload_zone(grant.suites.len())?;
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
        let keys = half.zones.iter();
        let guards = keys.map(|(zone, suite, key)| Ok((*zone, Guard::new(*suite, key)?)));
        Ok(Self {
            csa: grant.csa,
            direction,
            spi: half.spi,
            suites: grant.suites.clone(),
            payload_zone,
            guards: guards.collect::<Result<_, Unusable>>()?,
            replay: Replay::new(grant.window),
        })
    }

    /// Opens every licensed zone that is present, in a copy of the packet.
    fn verify(
        &self,
        packet: &[u8],
        header: Header,
        scratch: &mut Scratch,
    ) -> Result<Layout, NotOpened> {
        let map = Map::parse(&packet[HEADER_LEN..], self.payload_zone)?;
        let layout = Layout::of_packet(map, &self.suites, packet.len())?;
        if self.present(&layout).next().is_none() {
            return Err(NotOpened::Opaque);
        }
        scratch.copy.clear();
        scratch.copy.extend_from_slice(packet);
        let mut aad = Aad::new(&mut scratch.aad, header, &layout);
        for body in &layout.bodies()[..layout.bodies().len() - 1] {
            aad.add_body(&packet[body.all()]);
        }
        for (zone, guard, body) in self.present(&layout) {
            let aad_of_zone = aad.of(zone, self.payload_zone);
            let (copy, room) = (&mut scratch.copy, &mut scratch.mac);
            guard
                .open(header.seq, aad_of_zone, copy, body, room)
                .map_err(|_| NotOpened::BadIcv(zone))?;
        }
        Ok(layout)
    }

    fn present<'l>(
        &'l self,
        layout: &'l Layout,
    ) -> impl Iterator<Item = (ZoneId, &'l Guard, &'l Body)> {
        self.guards
            .iter()
            .filter_map(|(zone, guard)| Some((*zone, guard, layout.body(*zone)?)))
    }

    /// Moves the node's own window, which only authentic packets reach, and shows the packet.
    fn view<'s>(
        &mut self,
        header: Header,
        mut layout: Layout,
        scratch: &'s mut Scratch,
    ) -> View<'s> {
        let fresh = self.replay.take(header.seq).is_ok();
        let mut opened = [false; MAX_ZONES + 1];
        for (zone, _) in &self.guards {
            opened[usize::from(zone.0)] = true;
        }
        let Scratch { copy, headers, .. } = scratch;
        let headers = put_together(&mut layout, &opened, copy, headers);
        View {
            csa: self.csa,
            direction: self.direction,
            header,
            fresh,
            highest: self.replay.highest(),
            window: self.replay.window(),
            layout,
            opened,
            headers,
            copy,
        }
    }
}
