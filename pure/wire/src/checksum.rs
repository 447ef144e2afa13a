//! The Internet checksum (RFC 1071), its incremental form (RFC 1624), and its place in transport
//! headers.
//!
//! A checksum reveals 16 bits of the hidden payload to every reader of the header. Licensed zones
//! therefore leave it out, and the receiver computes it again (DESIGN section 3).

use crate::{ip, tcp, udp};
use std::net::IpAddr;

/// State of the checksum field of a TCP or UDP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The field holds a checksum, right or wrong.
    #[default]
    Made,
    /// The checksum is left out: the field has no meaning, and a later stage computes the checksum.
    /// Only packets that [have a place for one](place) can be in this state.
    Left,
}

/// A ones' complement sum in progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Returns the sum of the pseudo-header of TCP and UDP (RFC 9293 section 3.1, RFC 8200
    /// section 8.1).
    pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Self {
        Self::default()
            .address(source)
            .address(destination)
            .plus(u64::from(protocol) + len as u64)
    }

    /// Returns the sum with `octets` added. Only the last piece may have an odd length.
    pub fn with(self, octets: &[u8]) -> Self {
        let word = |word: [u8; 4]| u64::from(u32::from_le_bytes(word));
        // Words of any width and byte order fold to the same 16 bits (RFC 1071 section 2 (B) and
        // (C)), so the processor can add several at once. No packet is long enough to overflow the
        // sum.
        let mut words = octets.chunks_exact(4);
        let sum = words.by_ref().fold(0_u64, |sum, octets| {
            sum.wrapping_add(word([octets[0], octets[1], octets[2], octets[3]]))
        });
        let mut tail = [0; 4];
        tail[..words.remainder().len()].copy_from_slice(words.remainder());
        let swapped = folded(sum.wrapping_add(word(tail))).swap_bytes();
        self.plus(swapped.into())
    }

    /// Returns the checksum: the complement of the folded sum.
    pub const fn finish(self) -> u16 {
        !folded(self.0)
    }

    /// Returns the folded sum itself: the value that checksum offload expects for the
    /// pseudo-header.
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

    /// Adds with end-around carry, so the 64-bit sum never overflows.
    const fn plus(self, more: u64) -> Self {
        let (sum, carry) = self.0.overflowing_add(more);
        Self(sum + carry as u64)
    }
}

/// Folds a sum to 16 bits with end-around carry.
const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Returns the checksum after a change of one 16-bit word that it covers (RFC 1624 equation 3).
pub const fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(!checksum as u64 + !old as u64 + new as u64).finish()
}

/// Writes two octets at `at` and updates the checksum at `field` that covers them. Both offsets
/// count from the first word of the sum. A value at an odd offset spans two words, so it counts
/// with its octets swapped (RFC 1071 section 2 (B)).
///
/// # Panics If an offset is out of bounds.
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

/// Returns the offset of the checksum in a transport header, or `None` for protocols with another
/// checksum or none. SCTP's CRC-32c is never left out, because SCTP packets are opaque.
pub const fn offset(protocol: u8) -> Option<usize> {
    match protocol {
        tcp::PROTOCOL => Some(tcp::CHECKSUM_OFFSET),
        udp::PROTOCOL => Some(udp::CHECKSUM_OFFSET),
        _ => None,
    }
}

/// Returns the correct checksum of a whole TCP or UDP packet, independent of the field's value.
/// `None` for fragments, other transports and packets too short to hold the field.
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
        // Zero would mean that there is no checksum (RFC 768).
        (udp::PROTOCOL, 0) => Some(0xffff),
        _ => Some(checksum),
    }
}

/// Writes the correct transport checksum into a datagram that was sent without one. Returns `false`
/// if it has no place for one.
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

/// Returns the offset of the transport checksum in a whole packet. `None` for fragments, other
/// transports and packets too short to hold it.
pub fn place(header: &ip::Header<'_>) -> Option<usize> {
    Some(header.header_len() + field(header)?)
}

/// Returns the offset of the field in the payload of an unfragmented packet.
fn field(header: &ip::Header<'_>) -> Option<usize> {
    let at = offset(header.protocol())?;
    (!header.is_fragment() && header.payload().len() >= at + 2).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds one word after the other, as in RFC 1071 section 1.
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
