//! Where everything is in a packet, from its map and one length.

use super::{BadMap, MAX_ZONES, Map, Run};
use crate::esp::HEADER_LEN;
use model::{Suite, ZoneId};
use std::ops::Range;

/// Where one zone's text and ICV are, in octets from the SPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    zone: u8,
    start: usize,
    text_len: usize,
    icv_len: usize,
}

impl Body {
    /// The zone.
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone)
    }

    /// What is encrypted.
    pub fn text(&self) -> Range<usize> {
        self.start..self.start + self.text_len
    }

    /// The integrity check value.
    pub fn icv(&self) -> Range<usize> {
        self.text().end..self.end()
    }

    /// Text and ICV.
    pub fn all(&self) -> Range<usize> {
        self.start..self.end()
    }

    fn end(&self) -> usize {
        self.start + self.text_len + self.icv_len
    }
}

/// Where every octet of one packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    map: Map,
    bodies: [Body; MAX_ZONES],
    present: usize,
}

impl Layout {
    /// The layout that a datagram of `datagram_len` octets will have. `None` if the map describes
    /// more octets than there are. `suites` are those of the agreed zones, in ascending serial.
    pub fn of_datagram(map: Map, suites: &[Suite], datagram_len: usize) -> Option<Self> {
        let last_run = datagram_len.checked_sub(map.described_len())?;
        Self::build(map, suites, |_, promised, _| Some(promised + last_run))
    }

    /// The layout of a received packet of `packet_len` octets, from the SPI to the end.
    pub fn of_packet(map: Map, suites: &[Suite], packet_len: usize) -> Result<Self, BadMap> {
        Self::build(map, suites, |start, promised, icv_len| {
            let text_len = packet_len.checked_sub(start + icv_len)?;
            (text_len >= promised).then_some(text_len)
        })
        .ok_or(BadMap::Bodies)
    }

    /// `payload_len` says how long the payload zone's text is, given where it starts, how much of
    /// it the map promises and how long its ICV is.
    fn build(
        map: Map,
        suites: &[Suite],
        payload_len: impl FnOnce(usize, usize, usize) -> Option<usize>,
    ) -> Option<Self> {
        let mut layout = Self {
            map,
            bodies: [Body::default(); MAX_ZONES],
            present: 0,
        };
        let mut start = HEADER_LEN + map.wire_len();
        for (zone, suite) in (1..map.payload_zone.0).zip(suites) {
            let promised = map.promised(ZoneId(zone));
            if promised > 0 {
                start = layout.push(zone, start, promised, suite.icv_len());
            }
        }
        let icv_len = suites.last()?.icv_len();
        let promised = map.promised(map.payload_zone);
        let text_len = payload_len(start, promised, icv_len)?;
        layout.push(map.payload_zone.0, start, text_len, icv_len);
        Some(layout)
    }

    fn push(&mut self, zone: u8, start: usize, text_len: usize, icv_len: usize) -> usize {
        let body = Body {
            zone,
            start,
            text_len,
            icv_len,
        };
        self.bodies[self.present] = body;
        self.present += 1;
        body.end()
    }

    /// The map it was made from.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Octets from the SPI to the end of the payload zone's ICV.
    pub fn packet_len(&self) -> usize {
        self.payload().end()
    }

    /// Octets of the datagram.
    pub fn datagram_len(&self) -> usize {
        let texts: usize = self.bodies().iter().map(|body| body.text_len).sum();
        texts - 1 // the next header
    }

    /// The present zones in wire order, the payload zone last.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies[..self.present]
    }

    /// The payload zone's body, which is always present.
    pub fn payload(&self) -> &Body {
        &self.bodies[self.present - 1]
    }

    /// A zone's body, if it is present.
    pub fn body(&self, zone: ZoneId) -> Option<&Body> {
        self.bodies().iter().find(|body| body.zone() == zone)
    }

    /// Where the next header is: the last octet of the lowest zone's text.
    pub fn next_header_at(&self) -> usize {
        self.bodies[0].text().end - 1
    }

    /// Where each run of the datagram is in the packet, in datagram order, the last run included.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let mut taken = [0; MAX_ZONES + 1];
        let mut at = 0;
        let last = Run {
            zone: self.map.payload_zone,
            len: 0,
        };
        let runs = self.map.described().iter().copied().chain([last]);
        runs.enumerate().map(move |(i, run)| {
            let is_last = i == self.map.described().len();
            let len = match is_last {
                true => self.datagram_len() - self.map.described_len(),
                false => run.len.into(),
            };
            let body = self.body(run.zone).map_or(0, |body| body.start);
            let start = body + taken[usize::from(run.zone.0)];
            taken[usize::from(run.zone.0)] += len;
            at += len;
            Place {
                zone: run.zone,
                datagram: at - len..at,
                packet: start..start + len,
            }
        })
    }
}

/// Where one run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its zone.
    pub zone: ZoneId,
    /// In octets from the start of the datagram.
    pub datagram: Range<usize>,
    /// In octets from the SPI.
    pub packet: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: ZoneId = ZoneId(3);
    const SUITES: [Suite; 3] = [Suite::Aes128Gcm16; 3];

    fn run(zone: u8, len: u16) -> Run {
        Run {
            zone: ZoneId(zone),
            len,
        }
    }

    #[test]
    fn bodies_stand_in_ascending_order_and_the_payload_has_what_remains() {
        // ip | secret | transport | secret | transport | rest
        let runs = [run(1, 20), run(3, 5), run(2, 7), run(3, 2), run(2, 4)];
        let map = Map::new(P, &runs, true).unwrap();
        let layout = Layout::of_datagram(map, &SUITES, 100).unwrap();
        let bodies: Vec<_> = layout.bodies().iter().map(|b| (b.zone, b.text())).collect();
        assert_eq!(bodies, [(1, 28..49), (2, 65..76), (3, 92..161)]);
        assert_eq!((layout.packet_len(), layout.datagram_len()), (177, 100));
        assert_eq!(layout.next_header_at(), 48);
        let places: Vec<_> = layout.places().map(|p| (p.datagram, p.packet)).collect();
        assert_eq!(
            places,
            [
                (0..20, 28..48),
                (20..25, 92..97),
                (25..32, 65..72),
                (32..34, 97..99),
                (34..38, 72..76),
                (38..100, 99..161),
            ]
        );
        assert_eq!(Layout::of_packet(map, &SUITES, 177), Ok(layout));
    }

    #[test]
    fn an_empty_payload_zone_is_present_all_the_same() {
        let map = Map::new(P, &[run(1, 40)], false).unwrap();
        let layout = Layout::of_datagram(map, &SUITES, 40).unwrap();
        assert_eq!(layout.payload().text(), 69..69);
        assert_eq!(layout.packet_len(), 85);
        assert_eq!(Layout::of_packet(map, &SUITES, 84), Err(BadMap::Bodies));
        assert_eq!(Layout::of_datagram(map, &SUITES, 39), None);
    }

    #[test]
    fn an_opaque_packet_has_one_body_that_ends_with_the_next_header() {
        let layout = Layout::of_datagram(Map::opaque(P), &SUITES, 28).unwrap();
        assert_eq!(layout.bodies().len(), 1);
        assert_eq!(layout.payload().text(), 12..41);
        assert_eq!((layout.next_header_at(), layout.packet_len()), (40, 57));
        let opaque = Map::opaque(P);
        assert_eq!(Layout::of_packet(opaque, &SUITES, 28), Err(BadMap::Bodies));
    }

    proptest! {
        #[test]
        fn places_cover_datagram_and_texts_without_overlap(
            lens in proptest::collection::vec(1..60_u16, 1..=7),
            zones in proptest::collection::vec(1..=3_u8, 7),
            rest in 0..500_usize,
        ) {
            let mut runs: Vec<Run> = lens.iter().zip(zones).map(|(len, zone)| run(zone, *len)).collect();
            runs[0].zone = ZoneId(1);
            let Ok(map) = Map::new(P, &runs, false) else { return Ok(()) };
            let len = map.described_len() + rest;
            let layout = Layout::of_datagram(map, &SUITES, len).unwrap();
            let mut covered = vec![0; layout.packet_len()];
            let mut at = 0;
            for place in layout.places() {
                prop_assert_eq!(place.datagram.start, at);
                prop_assert_eq!(place.datagram.len(), place.packet.len());
                at = place.datagram.end;
                covered[place.packet].iter_mut().for_each(|n| *n += 1);
            }
            prop_assert_eq!(at, len);
            covered[layout.next_header_at()] += 1;
            for body in layout.bodies() {
                prop_assert!(covered[body.text()].iter().all(|n| *n == 1));
                prop_assert!(covered[body.icv()].iter().all(|n| *n == 0));
            }
            prop_assert_eq!(covered.iter().sum::<usize>(), len + 1);
        }
    }
}
