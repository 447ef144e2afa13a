//! Zoned ESP (DESIGN section 3): the map that each packet carries, and where everything is.
//!
//! A datagram is cut into *runs*, each in one zone. The map has a word for every run but the last,
//! which belongs to the payload zone and has the rest of the datagram. On the wire the runs of a
//! zone stand together, in datagram order, and make up the text of its *body*; bodies stand in
//! ascending order of their serials, the payload zone last:
//!
//! ```text
//! SPI | Seq | Map | text_1 ICV_1 | text_2 ICV_2 | … | text_P ICV_P
//! ```
//!
//! One [`Map`] and one length say where every octet is: [`Layout`] works it out for the sealing
//! end (from the datagram's length), for the opening end (from the packet's) and for a licensed
//! node. Nothing here knows keys; a map that parsed is well-formed, not yet true.

use crate::esp::{HEADER_LEN, ICV_LEN};
use model::{Suite, ZoneId};
use std::ops::Range;

/// Runs of a datagram at most.
pub const MAX_RUNS: usize = 8;
/// Agreed zones at most; two at least.
pub const MAX_ZONES: usize = 8;
/// Octets of a map at most.
pub const MAX_MAP_LEN: usize = WORD_LEN * (MAX_RUNS - 1);
/// Octets in front of the payload zone's text at most: header, map, and what each other zone adds
/// to its runs (an ICV, and one next header among them all).
pub const MAX_OVERHEAD: usize = HEADER_LEN + MAX_MAP_LEN + 1 + (MAX_ZONES - 1) * ICV_LEN;

const WORD_LEN: usize = 4;
const OVERLAY: u8 = 0x80;
const CHECKSUM_LEFT_OUT: u8 = 0x40;
const RESERVED: u8 = 0x30;
const RUN_COUNT: u8 = 0x0f;

/// Octets of a datagram in a row that are in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The zone.
    pub zone: ZoneId,
    /// How many octets, at least 1.
    pub len: u16,
}

/// A well-formed map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    payload_zone: ZoneId,
    checksum_left_out: bool,
    words: [Run; MAX_RUNS - 1],
    /// Words that describe a run: one less than there are runs.
    described: usize,
}

/// How octets fail to be a map. Each has its own drop reason at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMap {
    /// The packet ends inside the map.
    #[error("the packet ends inside the zone map")]
    Truncated,
    /// An overlay of a writer, which no grant here allows.
    #[error("the packet has an overlay, and nobody was granted to write")]
    Overlay,
    /// A reserved bit is set.
    #[error("a reserved bit of the zone map is set")]
    Reserved,
    /// No run, or more than eight.
    #[error("the zone map has no run or more than eight")]
    RunCount,
    /// A zone that was not agreed.
    #[error("the zone map names a zone that was not agreed")]
    UnknownZone,
    /// A run without octets.
    #[error("the zone map has an empty run")]
    EmptyRun,
    /// The first of several runs is not in the designated zone.
    #[error("the first run is not in the designated zone")]
    First,
    /// Two runs in a row are in the same zone.
    #[error("two neighbouring runs are in the same zone")]
    Neighbours,
    /// The last run that has a word is in the payload zone, as its neighbour without a word is.
    #[error("the last word of the zone map names the payload zone")]
    Last,
    /// One run only, but not exactly as an opaque packet's has to be written.
    #[error("the map of an opaque packet has a zone, a length or a flag of its own")]
    Opaque,
    /// The bodies that the map promises do not fit into the packet.
    #[error("the bodies of the zones do not fit into the packet")]
    Bodies,
}

impl Map {
    /// The map of a datagram that is hidden from every licensed node.
    pub const fn opaque(payload_zone: ZoneId) -> Self {
        Self {
            payload_zone,
            checksum_left_out: false,
            words: [Run {
                zone: payload_zone,
                len: 0,
            }; MAX_RUNS - 1],
            described: 0,
        }
    }

    /// The map of two runs or more: `runs` are all but the last.
    pub fn new(
        payload_zone: ZoneId,
        runs: &[Run],
        checksum_left_out: bool,
    ) -> Result<Self, BadMap> {
        let mut map = Self {
            checksum_left_out,
            described: runs.len(),
            ..Self::opaque(payload_zone)
        };
        if runs.is_empty() {
            return Err(BadMap::RunCount);
        }
        map.words
            .get_mut(..runs.len())
            .ok_or(BadMap::RunCount)?
            .copy_from_slice(runs);
        map.check()?;
        Ok(map)
    }

    /// Reads the map at the front of `octets`, which are what follows the sequence number.
    pub fn parse(octets: &[u8], payload_zone: ZoneId) -> Result<Self, BadMap> {
        let &[flags, zone, high, low] = octets.first_chunk().ok_or(BadMap::Truncated)?;
        if flags & RESERVED != 0 {
            return Err(BadMap::Reserved);
        }
        if flags & OVERLAY != 0 {
            return Err(BadMap::Overlay);
        }
        match usize::from(flags & RUN_COUNT) {
            1 if [flags, zone, high, low] == [1, payload_zone.0, 0, 0] => {
                Ok(Self::opaque(payload_zone))
            }
            1 => Err(BadMap::Opaque),
            count @ 2..=MAX_RUNS => {
                let mut map = Self::opaque(payload_zone);
                map.checksum_left_out = flags & CHECKSUM_LEFT_OUT != 0;
                map.described = count - 1;
                map.read_words(octets)?;
                map.check()?;
                Ok(map)
            }
            _ => Err(BadMap::RunCount),
        }
    }

    fn read_words(&mut self, octets: &[u8]) -> Result<(), BadMap> {
        let words = octets.get(..self.wire_len()).ok_or(BadMap::Truncated)?;
        for (i, word) in words.chunks_exact(WORD_LEN).enumerate() {
            if i > 0 && word[0] != 0 {
                return Err(BadMap::Reserved);
            }
            self.words[i] = Run {
                zone: ZoneId(word[1]),
                len: u16::from_be_bytes([word[2], word[3]]),
            };
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BadMap> {
        let runs = &self.words[..self.described];
        let agreed = ZoneId::DESIGNATED..=self.payload_zone;
        if runs.iter().any(|run| !agreed.contains(&run.zone)) {
            return Err(BadMap::UnknownZone);
        }
        if runs.iter().any(|run| run.len == 0) {
            return Err(BadMap::EmptyRun);
        }
        if runs[0].zone != ZoneId::DESIGNATED {
            return Err(BadMap::First);
        }
        if runs.windows(2).any(|pair| pair[0].zone == pair[1].zone) {
            return Err(BadMap::Neighbours);
        }
        if runs[runs.len() - 1].zone == self.payload_zone {
            return Err(BadMap::Last);
        }
        Ok(())
    }

    /// Writes the map at the front of `out`, which has room for [`Map::wire_len`] octets. These
    /// are also the octets that are authenticated: there is no overlay bit to clear.
    ///
    /// # Panics
    /// If there is no such room.
    pub fn write(&self, out: &mut [u8]) {
        let words = self.words[..self.described.max(1)].iter();
        for (word, run) in out[..self.wire_len()].chunks_exact_mut(WORD_LEN).zip(words) {
            word[..2].copy_from_slice(&[0, run.zone.0]);
            word[2..].copy_from_slice(&run.len.to_be_bytes());
        }
        let left_out = if self.checksum_left_out {
            CHECKSUM_LEFT_OUT
        } else {
            0
        };
        out[0] = left_out | self.run_count() as u8;
    }

    /// Octets on the wire.
    pub fn wire_len(&self) -> usize {
        WORD_LEN * self.described.max(1)
    }

    /// How many runs there are, the last one included.
    pub fn run_count(&self) -> usize {
        self.described + 1
    }

    /// The runs that have a length: all but the last.
    pub fn described(&self) -> &[Run] {
        &self.words[..self.described]
    }

    /// Octets of the datagram before the last run.
    pub fn described_len(&self) -> usize {
        self.described()
            .iter()
            .map(|run| usize::from(run.len))
            .sum()
    }

    /// Whether the whole datagram is in the payload zone.
    pub fn is_opaque(&self) -> bool {
        self.described == 0
    }

    /// Whether the transport checksum is zero in the datagram and to be restored.
    pub fn checksum_left_out(&self) -> bool {
        self.checksum_left_out
    }

    /// The lowest zone present, whose text ends with the next header.
    pub fn next_header_zone(&self) -> ZoneId {
        match self.is_opaque() {
            true => self.payload_zone,
            false => ZoneId::DESIGNATED,
        }
    }

    /// Octets of text that the map promises for a zone: its described runs, and the next header.
    fn promised(&self, zone: ZoneId) -> usize {
        let runs = self.described().iter().filter(|run| run.zone == zone);
        let octets: usize = runs.map(|run| usize::from(run.len)).sum();
        octets + usize::from(zone == self.next_header_zone())
    }
}

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
                start = layout.push(zone, start, promised, icv_len(*suite));
            }
        }
        let icv_len = icv_len(*suites.last()?);
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
            let is_last = i == self.map.described;
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

/// Octets of ICV after a zone's text. AEADs have no IV of their own in zoned ESP.
const fn icv_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes128Gcm16 | Suite::Aes256Gcm16 => ICV_LEN,
    }
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
    fn two_runs_take_four_octets_and_each_more_takes_four() {
        let parse = |octets: &[u8]| Map::parse(octets, P).map(|map| map.wire_len());
        assert_eq!(parse(&[0x01, 3, 0, 0]), Ok(4));
        assert_eq!(parse(&[0x02, 1, 0, 40]), Ok(4));
        assert_eq!(parse(&[0x43, 1, 0, 20, 0, 2, 0, 32]), Ok(8));
    }

    #[test]
    fn every_violation_has_its_own_name() {
        let long = [
            0x09, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1,
        ];
        let cases: [(&[u8], BadMap); 21] = [
            (&[], BadMap::Truncated),
            (&[0x02, 1, 0], BadMap::Truncated),
            (&[0x03, 1, 0, 1, 0, 2, 0], BadMap::Truncated),
            (&[0x82, 1, 0, 1], BadMap::Overlay),
            (&[0x12, 1, 0, 1], BadMap::Reserved),
            (&[0x22, 1, 0, 1], BadMap::Reserved),
            (&[0x21, 3, 0, 0], BadMap::Reserved),
            (&[0x03, 1, 0, 1, 1, 2, 0, 1], BadMap::Reserved),
            (&[0x00, 1, 0, 1], BadMap::RunCount),
            (&long, BadMap::RunCount),
            (&[0x02, 0, 0, 1], BadMap::UnknownZone),
            (&[0x02, 4, 0, 1], BadMap::UnknownZone),
            (&[0x03, 1, 0, 1, 0, 4, 0, 1], BadMap::UnknownZone),
            (&[0x02, 1, 0, 0], BadMap::EmptyRun),
            (&[0x02, 2, 0, 1], BadMap::First),
            (&[0x03, 1, 0, 1, 0, 1, 0, 1], BadMap::Neighbours),
            (&[0x03, 1, 0, 1, 0, 3, 0, 1], BadMap::Last),
            (&[0x01, 1, 0, 0], BadMap::Opaque),
            (&[0x01, 3, 0, 1], BadMap::Opaque),
            (&[0x41, 3, 0, 0], BadMap::Opaque),
            (&[0x03, 1, 0, 1, 0, 2, 0, 0], BadMap::EmptyRun),
        ];
        for (octets, expected) in cases {
            assert_eq!(Map::parse(octets, P), Err(expected), "{octets:02x?}");
        }
    }

    #[test]
    fn an_endpoint_cannot_build_a_map_it_would_not_accept() {
        assert_eq!(Map::new(P, &[], false), Err(BadMap::RunCount));
        let nine = [run(1, 1), run(2, 1)].repeat(4);
        assert_eq!(Map::new(P, &nine, false), Err(BadMap::RunCount));
        assert_eq!(Map::new(P, &[run(2, 1)], false), Err(BadMap::First));
        assert_eq!(Map::new(P, &[run(1, 0)], false), Err(BadMap::EmptyRun));
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
        fn what_parses_writes_the_same_octets(
            count in 1..=8_u8,
            flags in prop_oneof![Just(0_u8), Just(0x40)],
            words in proptest::collection::vec((1..=4_u8, 0..300_u16), 7),
        ) {
            let mut octets = Vec::new();
            for (zone, len) in words {
                octets.extend([0, zone, (len >> 8) as u8, len as u8]);
            }
            octets[0] = flags | count;
            if let Ok(map) = Map::parse(&octets, P) {
                let mut written = [0xff; MAX_MAP_LEN];
                map.write(&mut written);
                prop_assert_eq!(&written[..map.wire_len()], &octets[..map.wire_len()]);
            }
        }

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
