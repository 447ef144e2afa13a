//! The Internet checksum (RFC 1071), its incremental form (RFC 1624) and the one piece of
//! knowledge zoned ESP needs about transports: where they keep theirs.
//!
//! A checksum over a hidden payload tells 16 bits of it to whoever reads the header, so it is left
//! out of licensed zones and computed again by the receiver (DESIGN section 3).

use crate::{ip, tcp, udp};
use std::net::IpAddr;

/// Whether the checksum of a TCP or UDP packet is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// It is there, right or wrong.
    #[default]
    Made,
    /// It is left to whoever needs it: the packet is to have one that is right, and what is in its place
    /// says nothing. Only packets that [have a place for one](place) are without.
    Left,
}

/// A ones' complement sum under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The pseudo-header of TCP and UDP (RFC 9293 section 3.1, RFC 8200 section 8.1).
    pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Self {
        Self::default()
            .address(source)
            .address(destination)
            .plus(u64::from(protocol) + len as u64)
    }

    /// The sum with octets added. Only the last piece may have an odd number of them.
    pub fn with(self, octets: &[u8]) -> Self {
        let word = |word: [u8; 4]| u64::from(u32::from_le_bytes(word));
        // Sums of any width of word, in any order of octets, fold to the same 16 bits (RFC 1071 section
        // 2 (B) and (C)), so a processor may take many at once. No packet is long enough to overflow.
        let mut words = octets.chunks_exact(4);
        let sum = words.by_ref().fold(0_u64, |sum, octets| {
            sum.wrapping_add(word([octets[0], octets[1], octets[2], octets[3]]))
        });
        let mut tail = [0; 4];
        tail[..words.remainder().len()].copy_from_slice(words.remainder());
        let swapped = folded(sum.wrapping_add(word(tail))).swap_bytes();
        self.plus(swapped.into())
    }

    /// The checksum: the complement of the folded sum.
    pub const fn finish(self) -> u16 {
        !folded(self.0)
    }

    /// The folded sum itself, which is what a device that makes a checksum wants of the pseudo-header.
    pub const fn fold(self) -> u16 {
        folded(self.0)
    }

    fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => self.plus(v4.to_bits().into()),
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                self.plus((bits >> 64) as u64).plus(bits as u64)
            }
        }
    }

    /// A 64-bit sum with end-around carry never overflows, however much is added.
    const fn plus(self, more: u64) -> Self {
        let (sum, carry) = self.0.overflowing_add(more);
        Self(sum + carry as u64)
    }
}

/// A sum with end-around carry in 16 bits.
const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The checksum after one of the 16-bit words it covers has changed (RFC 1624 equation 3).
pub const fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(!checksum as u64 + !old as u64 + new as u64).finish()
}

/// Writes two octets at `at` that the checksum at `field` covers, and lets that follow. Both places
/// are counted from the first word that is summed: a value that begins at an odd one is in the halves
/// of two words, and counts with its octets swapped (RFC 1071 section 2 (B)).
///
/// # Panics
/// A place is not in the octets.
pub fn rewrite(octets: &mut [u8], at: usize, value: [u8; 2], field: usize) {
    let read = |octets: &[u8], at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
    let (mut old, mut new) = (read(octets, at), u16::from_be_bytes(value));
    if at % 2 == 1 {
        (old, new) = (old.swap_bytes(), new.swap_bytes());
    }
    let sum = updated(read(octets, field), old, new);
    octets[at..at + 2].copy_from_slice(&value);
    octets[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Where a transport keeps its checksum, from the start of its header. `None` for protocols whose
/// checksum is not this one or that have none. SCTP's CRC-32c is not left out: its packets are
/// opaque.
pub const fn offset(protocol: u8) -> Option<usize> {
    match protocol {
        tcp::PROTOCOL => Some(tcp::CHECKSUM_OFFSET),
        udp::PROTOCOL => Some(udp::CHECKSUM_OFFSET),
        _ => None,
    }
}

/// What the checksum of a whole TCP or UDP packet should be, whatever the field holds now. `None`
/// for fragments, other transports and packets too short to hold the field.
pub fn of_transport(header: &ip::Header<'_>) -> Option<u16> {
    let (at, segment) = (field(header)?, header.payload());
    let sum = Sum::pseudo_header(
        header.source(),
        header.destination(),
        header.protocol(),
        segment.len(),
    );
    let checksum = sum.with(&segment[..at]).with(&segment[at + 2..]).finish();
    match (header.protocol(), checksum) {
        // Zero would say that there is no checksum (RFC 768).
        (udp::PROTOCOL, 0) => Some(0xffff),
        _ => Some(checksum),
    }
}

/// Writes the right transport checksum into a datagram that went without. `false` if it has no
/// place for one.
#[must_use]
pub fn restore(datagram: &mut [u8]) -> bool {
    let made = ip::Header::parse(datagram)
        .ok()
        .and_then(|header| Some((place(&header)?, of_transport(&header)?)));
    let Some((at, checksum)) = made else {
        return false;
    };
    datagram[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Where in a whole packet the transport's checksum is. `None` for fragments, other transports and packets too
/// short to hold it.
pub fn place(header: &ip::Header<'_>) -> Option<usize> {
    Some(header.header_len() + field(header)?)
}

/// Where the field is in the payload of a packet that holds all of it.
fn field(header: &ip::Header<'_>) -> Option<usize> {
    let at = offset(header.protocol())?;
    (!header.is_fragment() && header.payload().len() >= at + 2).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One word after the other, as RFC 1071 section 1 tells it.
    fn naive(octets: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in octets.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(!Sum::default().with(&octets).finish(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_is_updated_to_zero() {
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_restored_udp_checksum_is_never_zero() {
        // Chosen so that the sum is 0xffff: addresses, protocol, length twice and ports.
        let mut datagram = vec![
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // IP
            0xff, 0xde, 0, 0, 0, 8, 0, 0, // UDP
        ];
        assert!(restore(&mut datagram));
        assert_eq!(datagram[26..], [0xff, 0xff]);
    }

    #[test]
    fn a_packet_without_a_place_for_it_is_not_restored() {
        let icmp = [
            0x45, 0, 0, 24, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 0, 0,
        ];
        let mut short_tcp = icmp;
        short_tcp[9] = 6;
        for mut datagram in [icmp, short_tcp] {
            let before = datagram;
            assert!(!restore(&mut datagram));
            assert_eq!(datagram, before);
        }
    }

    proptest! {
        #[test]
        fn wide_words_sum_as_narrow_ones(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Sum::default().with(&octets).finish(), naive(&octets));
        }

        #[test]
        fn an_updated_checksum_still_verifies(mut octets in any::<[u8; 16]>(), new in any::<u16>()) {
            let before = naive(&octets);
            let old = u16::from_be_bytes([octets[4], octets[5]]);
            octets[4..6].copy_from_slice(&new.to_be_bytes());
            let verified = Sum::default().with(&octets).with(&updated(before, old, new).to_be_bytes());
            prop_assert_eq!(verified.finish(), 0);
        }

        #[test]
        fn a_checksum_follows_what_is_written_at_even_and_odd_places(
            mut octets in any::<[u8; 16]>(),
            at in 2_usize..15,
            value in any::<[u8; 2]>(),
        ) {
            octets[..2].fill(0);
            let sum = naive(&octets);
            octets[..2].copy_from_slice(&sum.to_be_bytes());
            rewrite(&mut octets, at, value, 0);
            prop_assert_eq!(&octets[at..at + 2], value);
            prop_assert_eq!(naive(&octets), 0);
        }
    }
}
