//! The ECN field (RFC 3168 section 5): the last two bits of the IPv4 type of service and of the
//! IPv6 traffic class.

use crate::ip;

/// ECN codepoint, in the order of severity of RFC 6040 section 4.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ecn {
    /// Not ECN-capable: the transport detects congestion only by loss.
    #[default]
    NotEct,
    /// ECT(0): the transport understands congestion marks.
    Ect0,
    /// ECT(1): the transport understands congestion marks.
    Ect1,
    /// Congestion experienced: a router on the path would otherwise have dropped the packet.
    Ce,
}

impl Ecn {
    /// All codepoints.
    pub const ALL: [Self; 4] = [Self::NotEct, Self::Ect0, Self::Ect1, Self::Ce];

    /// Reads the codepoint of the field. All other bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns the bits of the field.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// Returns the codepoint of an IP packet, or `NotEct` for other octets.
    pub fn from_packet(packet: &[u8]) -> Self {
        match packet {
            [first, second, ..] if first >> 4 == 4 => Self::from_bits(*second),
            [first, second, ..] if first >> 4 == 6 => Self::from_bits(second >> 4),
            _ => Self::NotEct,
        }
    }

    /// Writes the codepoint into an IP packet and updates the IPv4 header checksum. Other octets
    /// stay unchanged.
    pub fn write(self, packet: &mut [u8]) {
        let second = match *packet {
            [first, second, ..] if first >> 4 == 4 => second & !0x03 | self.bits(),
            [first, second, ..] if first >> 4 == 6 => second & !0x30 | self.bits() << 4,
            _ => return,
        };
        ip::replace(packet, 1, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: [u8; 20] = [
        0x45, 0xb8, 0, 20, 0, 1, 0x40, 0, 63, 59, 0x26, 0xf4, 10, 0, 0, 1, 10, 0, 0, 2,
    ];

    fn v6() -> Vec<u8> {
        let mut packet = vec![0x6b, 0x8f, 0xff, 0xff, 0, 0, 59, 64]; // the flow label is all ones
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet
    }

    #[test]
    fn the_codepoints_are_those_of_rfc_3168_figure_1() {
        for (bits, ecn) in [
            (0, Ecn::NotEct),
            (1, Ecn::Ect1),
            (2, Ecn::Ect0),
            (3, Ecn::Ce),
        ] {
            assert_eq!((Ecn::from_bits(bits), ecn.bits()), (ecn, bits));
            assert_eq!(Ecn::from_bits(0xfc | bits), ecn, "DSCP is nothing of it");
        }
    }

    #[test]
    fn writing_it_changes_no_other_field_and_keeps_the_checksum_right() {
        for before in [V4.to_vec(), v6()] {
            for from in Ecn::ALL {
                for to in Ecn::ALL {
                    let mut packet = before.clone();
                    from.write(&mut packet);
                    to.write(&mut packet);
                    let header = ip::Header::parse(&packet).unwrap();
                    assert_eq!(Ecn::from_packet(&packet), to);
                    assert_eq!(header.tos(), 0xb8 | to.bits());
                    assert!(header.checksum_is_right());
                    Ecn::NotEct.write(&mut packet);
                    assert_eq!(packet, before);
                }
            }
        }
    }

    /// The receiver has to detect the wrong checksum, so a write must not repair it.
    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = V4;
        packet[10] ^= 1;
        Ecn::Ce.write(&mut packet);
        assert!(!ip::Header::parse(&packet).unwrap().checksum_is_right());
    }

    proptest! {
        #[test]
        fn any_octets_are_read_and_written_without_panic(
            first in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut octets = vec![first];
            octets.extend(rest);
            for ecn in Ecn::ALL {
                ecn.write(&mut octets);
                if ip::Header::parse(&octets).is_ok() {
                    prop_assert_eq!(Ecn::from_packet(&octets), ecn);
                }
            }
        }
    }
}
