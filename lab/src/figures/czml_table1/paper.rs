//! Table 1 of the paper, as printed and corrected.
//!
//! The paper's table 2 follows from its table 1 everywhere if the brackets round down, and nowhere
//! if they round up. The constants are then, for AES-CBC in transport mode: an IP header (20), SPI
//! and sequence number (8), an IV for each zone (16), the map (4), a block that the TCP header
//! always fills, and for each zone a block for the remainder. They contain no ICV, neither that of
//! IPsec nor the two of the zones. The last block is superfluous if there is no remainder.

use super::cost::Cost;

/// Sealed octets of a packet, by zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    /// Octets of headers, in the first zone.
    pub headers: usize,
    /// Octets of the payload in the first zone: the paper's m.
    pub first: usize,
    /// Octets of the payload in the second zone: the paper's n.
    pub second: usize,
}

/// A block cipher with an HMAC.
pub(super) struct Suite {
    /// Its name.
    pub name: &'static str,
    /// Octets of a block, and of an IV.
    pub block: usize,
}

/// Octets before the map.
const SPI_AND_SEQUENCE: usize = 8;
const MAP: usize = 4;
/// Octets of the ICV of HMAC-MD5-96.
const ICV: usize = 12;
/// Pad length and next header.
const TRAILER: usize = 2;

/// Suite of the paper's table 1.
pub(super) const AES_CBC: Suite = Suite {
    name: "AES-CBC with HMAC-MD5-96 (computed only)",
    block: 16,
};

/// Suites of its measurements with blocks of 64 bits.
pub(super) const SHORT_BLOCKS: Suite = Suite {
    name: "DES-CBC or 3DES-CBC or RC5-32-CBC with HMAC-MD5-96 (computed only)",
    block: 8,
};

/// Returns the lengths that table 1 prints for tunnel mode and IPv4.
pub(super) fn printed(m: usize, n: usize) -> Cost {
    formula([92, 128], 10, m, n)
}

fn formula([plain, zoned]: [usize; 2], over: usize, m: usize, n: usize) -> Cost {
    let down = |octets: usize| octets / 16 * 16;
    Cost {
        plain: plain + down(m + n + over),
        zoned: zoned + down(m + over) + down(n + 2),
    }
}

/// Returns the lengths with all parts (RFC 4303 section 2), after an outer IP header of this
/// length.
pub(super) const fn corrected(suite: &Suite, outer: usize, sealed: Sealed) -> Cost {
    let Suite { block, .. } = suite;
    let front = outer + SPI_AND_SEQUENCE;
    let whole = sealed.headers + sealed.first + sealed.second;
    let zones = [sealed.headers + sealed.first, sealed.second];
    Cost {
        plain: front + text(*block, whole),
        zoned: front + MAP + text(*block, zones[0]) + text(*block, zones[1]),
    }
}

/// Returns the octets of an IV, of the text in whole blocks, and of an ICV.
const fn text(block: usize, octets: usize) -> usize {
    block + (octets + TRAILER).next_multiple_of(block) + ICV
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::ops::RangeInclusive;

    const TRANSPORT: ([usize; 2], usize) = ([76, 112], 6);
    const TUNNEL: ([usize; 2], usize) = ([92, 128], 10);

    /// Returns lengths with every remainder of both.
    fn lengths() -> impl Iterator<Item = (usize, usize)> {
        (0..64).flat_map(|m| (0..64).map(move |n| (m, n)))
    }

    fn range(values: impl Iterator<Item = i64>) -> RangeInclusive<i64> {
        let values: BTreeSet<_> = values.collect();
        values.first().copied().unwrap()..=values.last().copied().unwrap()
    }

    #[test]
    fn the_papers_table_2_follows_from_table_1_with_brackets_that_round_down() {
        for ((constants, over), plain, zoned) in
            [(TRANSPORT, 27..=42, 50..=80), (TUNNEL, 47..=62, 70..=100)]
        {
            let cost = |(m, n)| formula(constants, over, m, n);
            let more = |(m, n), octets: usize| octets as i64 - (40 + m + n) as i64;
            assert_eq!(range(lengths().map(|at| more(at, cost(at).plain))), plain);
            assert_eq!(range(lengths().map(|at| more(at, cost(at).zoned))), zoned);
            let added: BTreeSet<_> = lengths().map(|at| cost(at).added()).collect();
            assert_eq!(added, BTreeSet::from([20, 36, 52]));
        }
        assert_eq!(printed(7, 90), formula(TUNNEL.0, TUNNEL.1, 7, 90));
    }

    #[test]
    fn with_brackets_that_round_up_table_2_would_be_another() {
        let up = |octets: usize| octets.next_multiple_of(16) as i64;
        let added = |(m, n): (usize, usize)| 36 + up(m + 10) + up(n + 2) - up(m + n + 10);
        let added: BTreeSet<_> = lengths().map(added).collect();
        assert_eq!(added, BTreeSet::from([36, 52, 68]));
    }

    #[test]
    fn with_the_second_icv_zones_add_32_48_or_64_octets_in_either_mode() {
        for headers in [20, 40] {
            let added = lengths().map(|(first, second)| {
                let sealed = Sealed {
                    headers,
                    first,
                    second,
                };
                corrected(&AES_CBC, 20, sealed).added()
            });
            let added: BTreeSet<_> = added.collect();
            assert_eq!(added, BTreeSet::from([32, 48, 64]));
        }
    }

    /// The lengths of a segment of 536 octets, counted by hand.
    #[test]
    fn a_corrected_packet_has_every_part() {
        let sealed = Sealed {
            headers: 40,
            first: 0,
            second: 496,
        };
        let cost = corrected(&AES_CBC, 20, sealed);
        assert_eq!(cost.plain, 20 + 8 + 16 + 544 + 12);
        assert_eq!(cost.zoned, 20 + 8 + 4 + (16 + 48 + 12) + (16 + 512 + 12));
    }
}
