//! The zone map: the zone of every octet of a datagram, with a word for every run but the last.

use super::overlay::BIT as OVERLAY;
use super::{MAX_MAP_LEN, MAX_RUNS, WORD_LEN};
use model::{Run, ZoneId};

const CHECKSUM_LEFT_OUT: u8 = 0x40;
const RESERVED: u8 = 0x30;
const RUN_COUNT: u8 = 0x0f;

/// A well-formed map. It is small because it is copied.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Map {
    pub(super) payload_zone: ZoneId,
    checksum_left_out: bool,
    /// Number of words that describe a run: one less than the number of runs.
    described: u8,
    /// True if each packet carries the map. A map that is fixed in the SA is not on the wire.
    carried: bool,
    words: [Run; MAX_RUNS - 1],
}

/// The reason why octets are not a map. The receiver counts each as a drop reason of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMap {
    /// The packet ends inside the map.
    #[error("the packet ends inside the zone map")]
    Truncated,
    /// The packet still has an overlay, because no grant permits writing.
    #[error("the packet has an overlay, but no node has a grant to write")]
    Overlay,
    /// A reserved bit is set.
    #[error("a reserved bit of the zone map is set")]
    Reserved,
    /// There is no run, or more than eight.
    #[error("the zone map has no run or more than eight")]
    RunCount,
    /// The map names a zone that was not negotiated.
    #[error("the zone map names a zone that was not agreed")]
    UnknownZone,
    /// A run has no octets.
    #[error("the zone map has an empty run")]
    EmptyRun,
    /// The first of several runs is not in the designated zone.
    #[error("the first run is not in the designated zone")]
    First,
    /// Two consecutive runs are in the same zone.
    #[error("two neighbouring runs are in the same zone")]
    Neighbours,
    /// The last word names the payload zone, which also holds the run without a word.
    #[error("the last word of the zone map names the payload zone")]
    Last,
    /// A map with a single run differs from the only form for opaque packets.
    #[error("the map of an opaque packet has a zone, a length or a flag of its own")]
    Opaque,
    /// The bodies that the map requires do not fit into the packet.
    #[error("the bodies of the zones do not fit into the packet")]
    Bodies,
}

/// Ignores words without a run.
impl PartialEq for Map {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let of = |map: &Self| (map.payload_zone, map.carried);
        of(self) == of(other) && self.is_like(other)
    }
}

impl Map {
    /// Returns the map of a datagram that is hidden from every licensed node.
    pub const fn opaque(payload_zone: ZoneId) -> Self {
        Self {
            payload_zone,
            checksum_left_out: false,
            words: [Run {
                zone: payload_zone,
                len: 0,
            }; MAX_RUNS - 1],
            described: 0,
            carried: true,
        }
    }

    /// Returns the fixed map of an SA, which packets do not carry. `runs` are all but the last run;
    /// without any, the map is that of an opaque SA.
    pub fn fixed(payload_zone: ZoneId, runs: &[Run]) -> Result<Self, BadMap> {
        let map = match runs {
            [] => Self::opaque(payload_zone),
            runs => Self::new(payload_zone, runs, true)?,
        };
        Ok(Self {
            carried: false,
            ..map
        })
    }

    /// Returns true if both maps have the same runs, as a datagram for an SA with a fixed map must
    /// have.
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.checksum_left_out, self.described()) == (other.checksum_left_out, other.described())
    }

    /// Returns a map of two runs or more. `runs` are all but the last.
    pub fn new(
        payload_zone: ZoneId,
        runs: &[Run],
        checksum_left_out: bool,
    ) -> Result<Self, BadMap> {
        let mut map = Self {
            checksum_left_out,
            described: runs.len() as u8,
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

    /// Reads the map at the front of `octets`, which start behind the sequence number.
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
                map.described = count as u8 - 1;
                map.read_words(octets)?;
                map.check()?;
                Ok(map)
            }
            _ => Err(BadMap::RunCount),
        }
    }

    /// Returns true if packets carry the map and `octets` start with it.
    #[inline]
    pub fn is_at(&self, octets: &[u8]) -> bool {
        let mut own = [0; MAX_MAP_LEN];
        self.write(&mut own);
        self.carried && octets.starts_with(&own[..self.len()])
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
        let runs = self.described();
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

    /// Writes the map to the front of `out`, which needs [`Map::len`] octets. The same octets are
    /// authenticated, also for a fixed map: the overlay bit is clear.
    ///
    /// # Panics If `out` is too short.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        let words = self.words[..self.word_count()].iter();
        for (word, run) in out[..self.len()].chunks_exact_mut(WORD_LEN).zip(words) {
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

    /// Returns the octets of the map's words.
    #[expect(clippy::len_without_is_empty, reason = "no map is empty")]
    #[inline]
    pub fn len(&self) -> usize {
        WORD_LEN * self.word_count()
    }

    /// Returns the number of words. An opaque packet has one as well, which describes no run.
    #[inline]
    fn word_count(&self) -> usize {
        usize::from(self.described.max(1))
    }

    /// Returns the octets on the wire: none for a fixed map.
    #[inline]
    pub fn wire_len(&self) -> usize {
        if self.carried { self.len() } else { 0 }
    }

    /// Returns the number of runs, the last one included.
    #[inline]
    pub fn run_count(&self) -> usize {
        usize::from(self.described) + 1
    }

    /// Returns the runs that have a length: all but the last.
    #[inline]
    pub fn described(&self) -> &[Run] {
        &self.words[..usize::from(self.described)]
    }

    /// Returns the octets of the datagram before the last run.
    #[inline]
    pub fn described_len(&self) -> usize {
        self.described()
            .iter()
            .map(|run| usize::from(run.len))
            .sum()
    }

    /// Returns true if the whole datagram is in the payload zone.
    #[inline]
    pub fn is_opaque(&self) -> bool {
        self.described == 0
    }

    /// Returns true if the transport checksum is zero in the datagram and has to be restored.
    #[inline]
    pub fn checksum_left_out(&self) -> bool {
        self.checksum_left_out
    }

    /// Returns the lowest zone present, whose text ends with the next header.
    #[inline]
    pub fn next_header_zone(&self) -> ZoneId {
        match self.is_opaque() {
            true => self.payload_zone,
            false => ZoneId::DESIGNATED,
        }
    }

    /// Returns the octets of text that the map requires in a zone: its described runs, and the next
    /// header.
    #[inline]
    pub(super) fn promised(&self, zone: ZoneId) -> usize {
        let runs = self.described().iter().filter(|run| run.zone == zone);
        let octets: usize = runs.map(|run| usize::from(run.len)).sum();
        octets + usize::from(zone == self.next_header_zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: ZoneId = ZoneId(3);

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
    fn a_fixed_map_is_not_on_the_wire_and_has_the_words_of_one_that_is() {
        let runs = [run(1, 20), run(2, 32)];
        let (fixed, carried) = (Map::fixed(P, &runs), Map::new(P, &runs, true));
        let (fixed, carried) = (fixed.unwrap(), carried.unwrap());
        assert_eq!((fixed.wire_len(), fixed.len()), (0, carried.wire_len()));
        assert!(fixed.is_like(&carried));
        let words = |map: Map| {
            let mut words = [0; MAX_MAP_LEN];
            map.write(&mut words);
            words
        };
        assert_eq!(words(fixed), words(carried));
        let others = [
            Map::new(P, &runs, false),
            Map::new(P, &runs[..1], true),
            Map::new(P, &[run(1, 20), run(2, 20)], true),
            Ok(Map::opaque(P)),
        ];
        assert!(others.into_iter().all(|map| !fixed.is_like(&map.unwrap())));
    }

    #[test]
    fn a_fixed_map_without_runs_is_that_of_an_opaque_sa_of_one_zone() {
        let map = Map::fixed(ZoneId(1), &[]).unwrap();
        assert!(map.is_opaque());
        assert_eq!(map.wire_len(), 0);
        let mut words = [0xff; 4];
        map.write(&mut words);
        assert_eq!(words, [1, 1, 0, 0]);
        assert_eq!(Map::fixed(P, &[run(2, 1)]), Err(BadMap::First));
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
    }
}
