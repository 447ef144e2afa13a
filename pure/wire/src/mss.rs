//! MSS clamping: lowers the segment size that the ends of a TCP connection announce (RFC 879,
//! RFC 6691) to the size that fits a tunnel.
//!
//! The MTU of a tunnel is below that of the links at both ends. The ends would learn of it by ICMP,
//! which many networks drop. Then a connection is established, and stalls at its first long segment
//! (RFC 4459 section 3.2). A segment size that fits from the start needs no ICMP.
//!
//! A size is only ever lowered, never added. A SYN without the option stays unchanged: its sender
//! accepts 536 octets, or 1220 over IPv6 (RFC 9293 section 3.7.1), which fits every tunnel, and
//! another option would make the segment longer.
//!
//! A SYN with a signature stays unchanged as well. The MAC of TCP-AO covers options (RFC 5925
//! section 5.1), and either kind of signature forbids changes on the path, so path MTU discovery
//! has to find the size. Malformed options stay unchanged, because the receiver's interpretation is
//! unknown.

use crate::tcp::{self, Flags, OptionValue};
use crate::{checksum, ip};

/// The signatures of TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925).
const SIGNATURES: [u8; 2] = [19, 29];

/// An announced segment size that is too large.
struct Offer {
    /// Offset of the TCP header in the datagram.
    segment: usize,
    /// Offset of the size in the TCP header.
    size: usize,
    /// The largest size that fits.
    limit: u16,
}

/// Lowers the segment size that a SYN announces to the size that fits a tunnel of this MTU, and
/// updates the TCP checksum. Returns true if it did. All other octets stay unchanged.
pub fn clamp(datagram: &mut [u8], mtu: u16) -> bool {
    let mut lowered = false;
    // Lower repeated options as well, because no standard defines which of them counts.
    while let Some(offer) = Offer::find(datagram, mtu) {
        let segment = &mut datagram[offer.segment..];
        let limit = offer.limit.to_be_bytes();
        checksum::rewrite(segment, offer.size, limit, tcp::CHECKSUM_OFFSET);
        lowered = true;
    }
    lowered
}

impl Offer {
    /// Finds the first announced size that is too large.
    fn find(datagram: &[u8], mtu: u16) -> Option<Self> {
        let header = ip::Header::parse(datagram).ok()?;
        if header.protocol() != tcp::PROTOCOL || header.is_fragment() {
            return None;
        }
        let segment = tcp::Header::parse(header.payload())?;
        if !segment.flags.contains(Flags::SYN) {
            return None;
        }
        // Both headers count without options, even if they have some (RFC 6691 section 2).
        let fixed = match header.version() {
            4 => ip::V4_HEADER_LEN,
            _ => ip::V6_HEADER_LEN,
        } + tcp::MIN_HEADER_LEN;
        let limit = mtu.checked_sub(fixed as u16)?;
        let mut longer = None;
        for option in segment.options() {
            let option = option.ok()?;
            match option.value {
                _ if SIGNATURES.contains(&option.kind) => return None,
                OptionValue::Mss(size) if size > limit => {
                    longer.get_or_insert(option.offset + 2);
                }
                _ => {}
            }
        }
        longer.map(|size| Self {
            segment: header.header_len(),
            size,
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SYN: u8 = 0x02;
    const SYN_ACK: u8 = 0x12;
    const OFFER: [u8; 4] = [2, 4, 5, 0xb4];

    /// Builds a packet from a segment.
    type Packet = fn(&[u8]) -> Vec<u8>;

    /// Segment sizes that fit an MTU of 1380 (RFC 6691).
    const FITS: [(Packet, u16); 2] = [(v4, 1340), (v6, 1320)];

    fn segment(flags: u8, options: &[u8]) -> Vec<u8> {
        let mut options = options.to_vec();
        options.resize(options.len().next_multiple_of(4), 0);
        let words = (5 + options.len() / 4) as u8;
        let mut segment = vec![0x1f, 0x90, 0xc0, 0x01, 1, 2, 3, 4, 5, 6, 7, 8];
        segment.extend([words << 4, flags, 0x72, 0x10, 0, 0, 0, 0]);
        segment.extend(options);
        segment
    }

    fn v4(segment: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x45,
            0,
            0,
            20 + segment.len() as u8,
            0,
            1,
            0x40,
            0,
            64,
            6,
            0,
            0,
        ];
        packet.extend([10, 1, 0, 1, 10, 8, 0, 1]);
        summed(packet, segment)
    }

    fn v6(segment: &[u8]) -> Vec<u8> {
        v6_behind(6, &[], segment)
    }

    fn v6_behind(next: u8, extensions: &[u8], segment: &[u8]) -> Vec<u8> {
        let len = (extensions.len() + segment.len()) as u8;
        let mut packet = vec![0x60, 0, 0, 0, 0, len, next, 64];
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet.extend(extensions);
        summed(packet, segment)
    }

    fn summed(mut packet: Vec<u8>, segment: &[u8]) -> Vec<u8> {
        packet.extend(segment);
        let _ = checksum::restore(&mut packet);
        packet
    }

    /// Returns the first size that a packet announces, and true if its checksum is right.
    fn offers(packet: &[u8]) -> (Option<u16>, bool) {
        let header = ip::Header::parse(packet).unwrap();
        let segment = tcp::Header::parse(header.payload()).unwrap();
        let size = segment
            .options()
            .find_map(|option| match option.ok()?.value {
                OptionValue::Mss(size) => Some(size),
                _ => None,
            });
        let field = &header.payload()[tcp::CHECKSUM_OFFSET..][..2];
        let right =
            checksum::of_transport(&header) == Some(u16::from_be_bytes([field[0], field[1]]));
        (size, right)
    }

    fn stays(mut packet: Vec<u8>) {
        let before = packet.clone();
        assert!(!clamp(&mut packet, 1380));
        assert_eq!(packet, before);
    }

    #[test]
    fn a_syn_and_a_syn_ack_offer_what_fits() {
        for flags in [SYN, SYN_ACK, SYN | 0xc0] {
            for (packet, fits) in FITS {
                let mut packet = packet(&segment(flags, &OFFER));
                let len = packet.len();
                assert!(clamp(&mut packet, 1380));
                assert_eq!((packet.len(), offers(&packet)), (len, (Some(fits), true)));
                stays(packet);
            }
        }
    }

    #[test]
    fn nothing_but_the_size_and_the_checksum_is_changed() {
        let options = [
            1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 2, 4, 5, 0xb4,
        ];
        let before = v4(&segment(SYN, &options));
        let mut after = before.clone();
        assert!(clamp(&mut after, 1380));
        let differ = (0..before.len()).filter(|at| before[*at] != after[*at]);
        let (checksum, size) = (20 + 16, 20 + 20 + 18);
        assert!(
            differ
                .into_iter()
                .all(|at| [checksum, size].contains(&(at & !1)))
        );
    }

    /// No-operations in front can move the option to any offset.
    #[test]
    fn the_checksum_is_right_wherever_the_option_is() {
        for before in 0..12 {
            for (packet, fits) in FITS {
                let options = [&[1; 12][..before], &OFFER].concat();
                let mut packet = packet(&segment(SYN, &options));
                assert!(clamp(&mut packet, 1380));
                assert_eq!(offers(&packet), (Some(fits), true), "at {before}");
            }
        }
    }

    /// The receiver has to detect the wrong checksum, so clamping must not repair it.
    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = v4(&segment(SYN, &OFFER));
        packet[37] ^= 1;
        assert!(clamp(&mut packet, 1380));
        assert_eq!(offers(&packet), (Some(1340), false));
    }

    #[test]
    fn an_offer_that_fits_is_never_raised() {
        for (packet, fits) in FITS {
            for size in [0, 1, 536, fits - 1, fits] {
                let [high, low] = size.to_be_bytes();
                stays(packet(&segment(SYN, &[2, 4, high, low])));
            }
        }
    }

    #[test]
    fn a_syn_without_the_option_stays() {
        stays(v4(&segment(SYN, &[])));
        stays(v6(&segment(SYN_ACK, &[4, 2, 3, 3, 7])));
        // Octets behind the end of the list are not an option.
        stays(v4(&segment(SYN, &[0, 2, 4, 5, 0xb4])));
    }

    #[test]
    fn a_segment_that_begins_no_connection_stays() {
        for flags in [0x10, 0x18, 0x11, 0x04, 0] {
            stays(v4(&segment(flags, &OFFER)));
        }
    }

    // Refuses: mss-clamping
    #[test]
    fn a_signed_syn_stays() {
        let ao = [&OFFER[..], &[29, 16], &[7; 14]].concat();
        let md5 = [&[19, 18][..], &[7; 16], &OFFER].concat();
        for options in [ao, md5] {
            stays(v4(&segment(SYN, &options)));
            stays(v6(&segment(SYN_ACK, &options)));
        }
    }

    // Refuses: mss-clamping
    #[test]
    fn options_that_cannot_be_read_stay() {
        for bad in [[9, 0, 0, 0], [9, 1, 0, 0], [9, 44, 0, 0], [1, 1, 1, 9]] {
            stays(v4(&segment(SYN, &[OFFER, bad].concat())));
            stays(v4(&segment(SYN, &[bad, OFFER].concat())));
        }
        // Sizes of one octet and of three.
        stays(v4(&segment(SYN, &[2, 3, 255, 1])));
        stays(v4(&segment(SYN, &[2, 5, 255, 255, 255])));
    }

    #[test]
    fn of_two_offers_neither_is_longer_than_fits() {
        let mut packet = v4(&segment(SYN, &[OFFER, [2, 4, 255, 255]].concat()));
        assert!(clamp(&mut packet, 1380));
        assert_eq!(packet[40..48], [2, 4, 5, 0x3c, 2, 4, 5, 0x3c]);
        assert_eq!(offers(&packet), (Some(1340), true));
    }

    /// Options reduce the room for the segment, but RFC 6691 leaves that to the sender.
    #[test]
    fn extension_headers_and_ip_options_stay_and_do_not_hide_the_segment() {
        let destination = [6, 0, 1, 4, 0, 0, 0, 0];
        let mut packet = v6_behind(60, &destination, &segment(SYN, &OFFER));
        let before = packet.clone();
        assert!(clamp(&mut packet, 1380));
        assert_eq!(packet[..48], before[..48]);
        assert_eq!(offers(&packet), (Some(1320), true));
        let mut packet = v4(&segment(SYN, &OFFER));
        packet.splice(20..20, [1, 1, 1, 1]);
        (packet[0], packet[3]) = (0x46, packet[3] + 4);
        assert!(clamp(&mut packet, 1380));
        assert_eq!(offers(&packet), (Some(1340), true));
    }

    /// A later fragment has no TCP header, and the first may have only a part of it.
    #[test]
    fn fragments_stay() {
        for field in [[0x20, 0], [0, 5]] {
            let mut packet = v4(&segment(SYN, &OFFER));
            packet[6..8].copy_from_slice(&field);
            stays(packet);
        }
        let fragment = [6, 0, 0, 1, 0, 0, 0, 1];
        stays(v6_behind(44, &fragment, &segment(SYN, &OFFER)));
    }

    #[test]
    fn what_is_no_tcp_stays() {
        let mut packet = v4(&segment(SYN, &OFFER));
        packet[9] = 17;
        stays(packet);
        stays(v4(&segment(SYN, &OFFER)[..22]));
    }

    proptest! {
        #[test]
        fn any_segment_has_its_length_afterwards_and_a_right_checksum(
            flags in any::<u8>(),
            mut options in proptest::collection::vec(any::<u8>(), 0..=40),
            offer_at in 0_usize..40,
            mtu in any::<u16>(),
        ) {
            for (place, octet) in options.iter_mut().skip(offer_at).zip(OFFER) {
                *place = octet;
            }
            for (packet, _) in FITS {
                let before = packet(&segment(flags, &options));
                let mut after = before.clone();
                let lowered = clamp(&mut after, mtu);
                prop_assert_eq!(lowered, after != before);
                prop_assert_eq!(after.len(), before.len());
                prop_assert!(offers(&after).1);
            }
        }

        #[test]
        fn any_octets_are_taken_without_panic(
            mut octets in proptest::collection::vec(any::<u8>(), 0..120),
            first in prop_oneof![Just(0x45_u8), Just(0x60)],
            mtu in any::<u16>(),
        ) {
            clamp(&mut octets, mtu);
            if let Some(front) = octets.first_mut() {
                *front = first;
            }
            clamp(&mut octets, mtu);
        }
    }
}
