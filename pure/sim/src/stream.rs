//! The octets of a connection: a function of a seed and an offset, so that a receiver can verify
//! the value and the position of every octet.

/// An endless stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    seed: u64,
}

impl Stream {
    /// Returns the stream of a seed. Streams of two seeds have nothing in common.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns `len` octets of the stream from `start`.
    pub fn octets(&self, start: u64, len: usize) -> Vec<u8> {
        const WORD: u64 = 8;
        let skipped = (start % WORD) as usize;
        let mut octets = Vec::with_capacity(skipped + len + WORD as usize);
        let mut index = start / WORD;
        while octets.len() < skipped + len {
            octets.extend_from_slice(&self.word(index).to_be_bytes());
            index += 1;
        }
        octets.truncate(skipped + len);
        octets.drain(..skipped);
        octets
    }

    /// Returns true if `octets` are those of the stream from `start`.
    pub fn is_at(&self, start: u64, octets: &[u8]) -> bool {
        self.octets(start, octets.len()) == octets
    }

    /// SplitMix64: its counter form needs no state.
    fn word(&self, index: u64) -> u64 {
        let mut z = self.seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_a_stream_is_where_it_belongs_and_nowhere_else() {
        let stream = Stream::new(7);
        let whole = stream.octets(0, 100);
        for (start, len) in [(0, 8), (1, 30), (7, 2), (16, 0), (93, 7)] {
            assert_eq!(stream.octets(start as u64, len), whole[start..start + len]);
        }
        assert!(stream.is_at(5, &whole[5..50]));
        assert!(!stream.is_at(6, &whole[5..50]));
        assert!(!Stream::new(8).is_at(5, &whole[5..50]));
    }
}
