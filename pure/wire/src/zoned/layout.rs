//! Positions of all parts of a packet, from its map and one length.

use super::{BadMap, MAX_PADDING, MAX_ZONES, Map};
use crate::esp::HEADER_LEN;
use model::{Frame, Run, ZoneId};
use std::ops::Range;

/// Positions of the parts of one zone, in octets from the SPI. The fields are small because a
/// packet has several bodies, and they are copied.
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
    /// Returns the zone.
    #[inline]
    pub fn zone(&self) -> ZoneId {
        ZoneId(self.zone)
    }

    /// Returns the IV, which is empty for most suites.
    #[inline]
    pub fn iv(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.iv_len)
    }

    /// Returns the ciphertext.
    #[inline]
    pub fn text(&self) -> Range<usize> {
        let start = self.iv().end;
        start..start + self.text_len as usize
    }

    /// Returns the front of the text: the zone's runs, and in the lowest zone the next header.
    #[inline]
    pub fn plain(&self) -> Range<usize> {
        let start = self.iv().end;
        start..start + self.plain_len as usize
    }

    /// Returns the end of the text: padding and its length, if the suite encrypts whole blocks.
    #[inline]
    pub fn padding(&self) -> Range<usize> {
        self.plain().end..self.text().end
    }

    /// Returns the integrity check value.
    #[inline]
    pub fn icv(&self) -> Range<usize> {
        self.text().end..self.end()
    }

    /// Returns IV, text and ICV.
    #[inline]
    pub fn all(&self) -> Range<usize> {
        self.start as usize..self.end()
    }

    /// Returns the octets of IV and ICV.
    #[inline]
    fn beside_text(&self) -> usize {
        usize::from(self.iv_len) + usize::from(self.icv_len)
    }

    #[inline]
    fn end(&self) -> usize {
        self.start as usize + self.text_len as usize + self.beside_text()
    }
}

/// Positions of every octet of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    map: Map,
    bodies: [Body; MAX_ZONES],
    present: usize,
    /// Octets in all zones but the payload zone.
    shown: usize,
    /// Frame of the payload zone's text.
    frame: Frame,
}

impl Layout {
    /// Returns the layout for a datagram of `datagram_len` octets. `None` if the map describes more
    /// octets than the datagram has. `suites` are the suites of the agreed zones in ascending
    /// serial, or their frames.
    pub fn of_datagram<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        datagram_len: usize,
    ) -> Option<Self> {
        let mut layout = Self::of_map(map, suites)?;
        layout.fit_datagram(datagram_len).then_some(layout)
    }

    /// Returns the layout of the longest packet of at most `packet_len` octets, with the longest
    /// datagram that fits. `None` if the map describes more octets than that.
    pub fn filling<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        packet_len: usize,
    ) -> Option<Self> {
        let fits = |less| Self::of_packet(map, suites, packet_len.checked_sub(less)?).ok();
        (0..MAX_PADDING).find_map(fits)
    }

    /// Returns the layout of a received packet of `packet_len` octets, counted from the SPI. If the
    /// payload zone has padding, its length is known only after decryption: until [`Layout::cut`],
    /// the datagram has the largest possible length.
    pub fn of_packet<S: Copy + Into<Frame>>(
        map: Map,
        suites: &[S],
        packet_len: usize,
    ) -> Result<Self, BadMap> {
        let mut layout = Self::of_map(map, suites).ok_or(BadMap::Bodies)?;
        layout.fit_packet(packet_len)?;
        Ok(layout)
    }

    /// Returns the layout that all packets with this map share. Only the last body depends on the
    /// packet: here it has the length that the map requires. `None` without suites.
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

    /// Sets the length of the last body for a datagram of this length. Returns `false`, and changes
    /// nothing, if the map describes more octets than that.
    #[must_use]
    #[inline]
    pub fn fit_datagram(&mut self, datagram_len: usize) -> bool {
        let fits = datagram_len >= self.map.described_len();
        if fits {
            // One of the texts includes the next header.
            self.set_payload(datagram_len + 1 - self.shown);
        }
        fits
    }

    /// Sets the length of the last body to the rest of a received packet of this length.
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

    /// Returns the start of the next body.
    fn end(&self) -> usize {
        let front = HEADER_LEN + self.map.wire_len();
        self.bodies().last().map_or(front, Body::end)
    }

    /// Sets the true length of the datagram, which is shorter than it seemed. The payload zone also
    /// holds padding to whole blocks, and padding that hides a length (RFC 4303 section 2.7).
    /// Returns `false`, and changes nothing, if the length is impossible.
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

    /// Returns the map of the layout.
    #[inline]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns the length from the SPI to the end of the payload zone's ICV, in octets.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.payload().end()
    }

    /// Returns the length of the datagram in octets.
    #[inline]
    pub fn datagram_len(&self) -> usize {
        self.shown + self.payload().plain_len as usize - 1 // the next header
    }

    /// Returns the present zones in wire order, the payload zone last.
    #[inline]
    pub fn bodies(&self) -> &[Body] {
        &self.bodies[..self.present]
    }

    /// Returns the payload zone's body, which is always present.
    #[inline]
    pub fn payload(&self) -> &Body {
        &self.bodies[self.present - 1]
    }

    /// Returns a zone's body, if it is present.
    #[inline]
    pub fn body(&self, zone: ZoneId) -> Option<&Body> {
        self.bodies().iter().find(|body| body.zone() == zone)
    }

    /// Returns the offset of the next header: the last octet of the lowest zone before its padding.
    #[inline]
    pub fn next_header_at(&self) -> usize {
        self.bodies[0].plain().end - 1
    }

    /// Returns the position of each run in datagram order, the last run included.
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

/// Position of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Zone of the run.
    pub zone: ZoneId,
    /// Octets of the datagram, counted from its start.
    pub datagram: Range<usize>,
    /// Octets of the packet, counted from the SPI.
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
        // Only whole blocks are valid, and at least one.
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
