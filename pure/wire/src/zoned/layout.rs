//! Where everything is in a packet, from its map and one length.

use super::{BadMap, MAX_PADDING, MAX_ZONES, Map};
use crate::esp::HEADER_LEN;
use model::{Frame, Run, ZoneId};
use std::ops::Range;

/// Where the parts of one zone are, in octets from the SPI. As small as it can be: there are many to a
/// packet, and they are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    zone: u8,
    iv_len: u8,
    icv_len: u8,
    start: u32,
    plain_len: u32,
    text_len: u32,
}

impl Body {
    /// The zone.
    #[inline]
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone)
    }

    /// The IV, which most suites have none of.
    #[inline]
    pub fn iv(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.iv_len)
    }

    /// What is encrypted.
    #[inline]
    pub fn text(&self) -> Range<usize> {
        let start = self.iv().end;
        start..start + self.text_len as usize
    }

    /// The front of the text: the zone's runs, and perhaps the next header.
    #[inline]
    pub fn plain(&self) -> Range<usize> {
        let start = self.iv().end;
        start..start + self.plain_len as usize
    }

    /// The end of the text: padding and its length, if the suite encrypts whole blocks.
    #[inline]
    pub fn padding(&self) -> Range<usize> {
        self.plain().end..self.text().end
    }

    /// The integrity check value.
    #[inline]
    pub fn icv(&self) -> Range<usize> {
        self.text().end..self.end()
    }

    /// IV, text and ICV.
    #[inline]
    pub fn all(&self) -> Range<usize> {
        self.start as usize..self.end()
    }

    /// Octets of IV and ICV.
    #[inline]
    fn beside_text(&self) -> usize {
        usize::from(self.iv_len) + usize::from(self.icv_len)
    }

    #[inline]
    fn end(&self) -> usize {
        self.start as usize + self.text_len as usize + self.beside_text()
    }
}

/// Where every octet of one packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    map: Map,
    bodies: [Body; MAX_ZONES],
    present: usize,
    /// Octets that are in other zones than the payload's.
    shown: usize,
    /// What stands around the text of the payload zone.
    frame: Frame,
}

impl Layout {
    /// The layout that a datagram of `datagram_len` octets will have. `None` if the map describes
    /// more octets than there are. `suites` are those of the agreed zones, in ascending serial, or what
    /// these put around texts.
    pub fn of_datagram<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        datagram_len: usize,
    ) -> Option<Self> {
        let mut layout = Self::of_map(map, suites)?;
        layout.fit_datagram(datagram_len).then_some(layout)
    }

    /// The layout of the longest packet that has `packet_len` octets at most, and of a datagram as long as
    /// there is room for. `None` if the map describes more than that.
    pub fn filling<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        packet_len: usize,
    ) -> Option<Self> {
        let fits = |less| Self::of_packet(map, suites, packet_len.checked_sub(less)?).ok();
        (0..MAX_PADDING).find_map(fits)
    }

    /// The layout of a received packet of `packet_len` octets, from the SPI to the end. If the
    /// payload zone has padding, how much of it is known only when it is opened: until
    /// [`Layout::cut`] the datagram is as long as it could be.
    pub fn of_packet<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        packet_len: usize,
    ) -> Result<Self, BadMap> {
        let mut layout = Self::of_map(map, suites).ok_or(BadMap::Bodies)?;
        layout.fit_packet(packet_len)?;
        Ok(layout)
    }

    /// The layout that all packets with a map have in common: only the last body of each is as long as that
    /// packet wants it. Here it is as long as the map promises. `None` without suites.
    pub fn of_map<S: Copy + Into<Frame>>(map: Map, suites: &[S]) -> Option<Self> {
        let mut layout = Self {
            map,
            bodies: [Body::default(); MAX_ZONES],
            present: 0,
            shown: 0,
            frame: (*suites.last()?).into(),
        };
        for (zone, suite) in (1..map.payload_zone.0).zip(suites) {
            let promised = map.promised(ZoneId(zone));
            if promised > 0 {
                layout.push(zone, (*suite).into(), promised);
                layout.shown += promised;
            }
        }
        let promised = map.promised(map.payload_zone);
        layout.push(map.payload_zone.0, layout.frame, promised);
        Some(layout)
    }

    /// Gives the last body what a datagram of this length has for it. `false`, and all is as before, if the
    /// map describes more octets than there are.
    #[must_use]
    #[inline]
    pub fn fit_datagram(&mut self, datagram_len: usize) -> bool {
        let fits = datagram_len >= self.map.described_len();
        if fits {
            // The next header has its place in one of the texts.
            self.set_payload(datagram_len + 1 - self.shown);
        }
        fits
    }

    /// Gives the last body what is left for it in a received packet of this length.
    #[inline]
    pub fn fit_packet(&mut self, packet_len: usize) -> Result<(), BadMap> {
        let payload = self.payload();
        let around = payload.start as usize + payload.beside_text();
        let text_len = packet_len.checked_sub(around);
        let plain_len = text_len.and_then(|len| self.frame.plain_len(len));
        let promised = self.map.promised(self.map.payload_zone);
        let plain_len = plain_len.filter(|len| *len >= promised);
        self.set_payload(plain_len.ok_or(BadMap::Bodies)?);
        Ok(())
    }

    fn push(&mut self, zone: u8, frame: Frame, plain_len: usize) {
        self.bodies[self.present] = Body {
            zone,
            iv_len: frame.iv_len,
            icv_len: frame.icv_len,
            start: self.end() as u32,
            plain_len: plain_len as u32,
            text_len: frame.text_len(plain_len) as u32,
        };
        self.present += 1;
    }

    #[inline]
    fn set_payload(&mut self, plain_len: usize) {
        let payload = &mut self.bodies[self.present - 1];
        payload.plain_len = plain_len as u32;
        payload.text_len = self.frame.text_len(plain_len) as u32;
    }

    /// Where the next body begins.
    fn end(&self) -> usize {
        let front = HEADER_LEN + self.map.wire_len();
        self.bodies().last().map_or(front, Body::end)
    }

    /// Says how long the datagram really is, which is less than it seemed by the payload zone's
    /// padding: that of blocks, and what hides a length (RFC 4303 section 2.7). `false`, and all is as
    /// before, if it cannot be of this length.
    #[must_use]
    pub fn cut(&mut self, datagram_len: usize) -> bool {
        let excess = self.datagram_len().checked_sub(datagram_len);
        let payload = &mut self.bodies[self.present - 1];
        let left = excess.and_then(|excess| payload.plain().len().checked_sub(excess));
        match left {
            Some(left) if left >= self.map.promised(self.map.payload_zone) => {
                payload.plain_len = left as u32;
                true
            }
            _ => false,
        }
    }

    /// The map it was made from.
    #[inline]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Octets from the SPI to the end of the payload zone's ICV.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.payload().end()
    }

    /// Octets of the datagram.
    #[inline]
    pub fn datagram_len(&self) -> usize {
        self.shown + self.payload().plain_len as usize - 1 // the next header
    }

    /// The present zones in wire order, the payload zone last.
    #[inline]
    pub fn bodies(&self) -> &[Body] {
        &self.bodies[..self.present]
    }

    /// The payload zone's body, which is always present.
    #[inline]
    pub fn payload(&self) -> &Body {
        &self.bodies[self.present - 1]
    }

    /// A zone's body, if it is present.
    #[inline]
    pub fn body(&self, zone: ZoneId) -> Option<&Body> {
        self.bodies().iter().find(|body| body.zone() == zone)
    }

    /// Where the next header is: the last octet of the lowest zone before its padding.
    #[inline]
    pub fn next_header_at(&self) -> usize {
        self.bodies[0].plain().end - 1
    }

    /// Where each run of the datagram is in the packet, in datagram order, the last run included.
    #[inline]
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
            let body = self.body(run.zone).map_or(0, |body| body.plain().start);
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
    use model::{Hmac, Sha2, ZoneSuite};
    use proptest::prelude::*;

    const P: ZoneId = ZoneId(3);
    const SUITES: [ZoneSuite; 3] = [ZoneSuite::Aes128Gcm16; 3];

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

    const BLOCKS: ZoneSuite = ZoneSuite::Aes128Cbc(Hmac {
        hash: Sha2::Sha256,
        whole: false,
    });

    #[test]
    fn blocks_have_an_iv_before_them_and_padding_behind_the_next_header() {
        let suites = [BLOCKS, ZoneSuite::Aes128Gmac, BLOCKS];
        let map = Map::new(P, &[run(1, 40), run(2, 8)], false).unwrap();
        let layout = Layout::of_datagram(map, &suites, 60).unwrap();
        let [first, second, payload] = layout.bodies() else {
            panic!("three zones")
        };
        assert_eq!((first.iv(), first.plain()), (16..32, 32..73));
        assert_eq!((first.padding(), first.icv()), (73..80, 80..96));
        assert_eq!((second.text(), second.padding()), (96..104, 104..104));
        assert_eq!((payload.iv(), payload.plain()), (120..136, 136..148));
        assert_eq!((layout.next_header_at(), layout.packet_len()), (72, 168));
    }

    #[test]
    fn a_received_payload_in_blocks_may_be_as_long_as_its_blocks_until_it_is_cut() {
        let suites = [ZoneSuite::Aes128Gcm16, BLOCKS];
        let payload = ZoneId(2);
        let map = Map::new(payload, &[run(1, 40)], false).unwrap();
        let sealed = Layout::of_datagram(map, &suites, 60).unwrap();
        let mut received = Layout::of_packet(map, &suites, sealed.packet_len()).unwrap();
        assert_eq!(received.datagram_len(), 40 + 31);
        for impossible in [0, 39, 72] {
            assert!(!received.cut(impossible), "{impossible}");
        }
        assert!(received.cut(60));
        assert_eq!(received, sealed);
        // Whole blocks only, and one at least.
        for len in sealed.packet_len() - 15..sealed.packet_len() {
            let cut = Layout::of_packet(map, &suites, len);
            assert_eq!(cut, Err(BadMap::Bodies), "{len}");
        }
    }

    #[test]
    fn a_filling_layout_has_the_length_that_is_wanted_or_what_whole_blocks_leave_of_it() {
        let map = Map::new(ZoneId(2), &[run(1, 40)], false).unwrap();
        let aead = [ZoneSuite::Aes128Gcm16; 2];
        let blocks = [ZoneSuite::Aes128Gcm16, BLOCKS];
        for wanted in 150..200 {
            let filling = Layout::filling(map, &aead, wanted).unwrap();
            assert_eq!(filling.packet_len(), wanted);
            let len = filling.datagram_len();
            assert_eq!(Layout::of_datagram(map, &aead, len), Some(filling));
            let filling = Layout::filling(map, &blocks, wanted).unwrap();
            assert!((wanted - 15..=wanted).contains(&filling.packet_len()));
            let one_more = Layout::of_datagram(map, &blocks, filling.datagram_len() + 1).unwrap();
            assert!(one_more.packet_len() > wanted);
        }
        assert_eq!(Layout::filling(map, &aead, 84), None);
        assert_eq!(Layout::filling(map, &blocks, 3), None);
    }

    #[test]
    fn octets_that_hide_a_length_are_cut_off_whatever_the_suite() {
        let map = Map::new(ZoneId(2), &[run(1, 40)], false).unwrap();
        for suite in [ZoneSuite::Aes128Gcm16, BLOCKS] {
            let mut padded = Layout::filling(map, &[suite; 2], 1400).unwrap();
            let packet_len = padded.packet_len();
            assert!(padded.cut(40) && padded.datagram_len() == 40);
            assert_eq!(padded.packet_len(), packet_len);
            assert!(padded.payload().plain().is_empty());
        }
    }

    proptest! {
        #[test]
        fn places_cover_datagram_and_texts_without_overlap(
            lens in proptest::collection::vec(1..60_u16, 1..=7),
            zones in proptest::collection::vec(1..=3_u8, 7),
            suites in proptest::sample::subsequence(ZoneSuite::all().collect::<Vec<_>>(), 3),
            rest in 0..500_usize,
        ) {
            let mut runs: Vec<Run> = lens.iter().zip(zones).map(|(len, zone)| run(zone, *len)).collect();
            runs[0].zone = ZoneId(1);
            let Ok(map) = Map::new(P, &runs, false) else { return Ok(()) };
            let len = map.described_len() + rest;
            let layout = Layout::of_datagram(map, &suites, len).unwrap();
            let mut received = Layout::of_packet(map, &suites, layout.packet_len()).unwrap();
            prop_assert!(received.cut(len));
            prop_assert_eq!(received, layout);
            prop_assert!(received.fit_datagram(len + 7) && received.fit_datagram(len));
            prop_assert_eq!(received, layout);
            prop_assert!(!received.fit_datagram(map.described_len() - 1));
            prop_assert!(received.fit_packet(0).is_err());
            prop_assert_eq!(received, layout);
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
                prop_assert!(covered[body.plain()].iter().all(|n| *n == 1));
                for beside in [body.iv(), body.padding(), body.icv()] {
                    prop_assert!(covered[beside].iter().all(|n| *n == 0));
                }
            }
            prop_assert_eq!(covered.iter().sum::<usize>(), len + 1);
        }
    }
}
