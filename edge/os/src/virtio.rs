//! The virtio header in front of each packet of a device with offload (virtio 1.2 section 5.1.6,
//! `linux/virtio_net.h`): it describes packets that are not segmented, or lack their checksums.

/// Length of the header in octets.
pub(crate) const FRONT_LEN: usize = 10;

/// The checksum is incomplete: it covers everything from one offset on, and its place is at
/// another, which now holds the sum of the pseudo-header.
const NEEDS_CHECKSUM: u8 = 1;
/// The kernel's flag for TCP segments with CWR, which only the first may have. It shares the octet
/// of the kind.
const ECN: u8 = 0x80;

/// The kind of packets that are joined in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A single packet.
    #[default]
    One,
    TcpV4,
    TcpV6,
    Udp,
}

impl Kind {
    const fn from_octet(octet: u8) -> Option<Self> {
        match octet & !ECN {
            0 => Some(Self::One),
            1 => Some(Self::TcpV4),
            4 => Some(Self::TcpV6),
            5 => Some(Self::Udp),
            _ => None,
        }
    }

    const fn octet(self) -> u8 {
        match self {
            Self::One => 0,
            Self::TcpV4 => 1,
            Self::TcpV6 => 4,
            Self::Udp => 5,
        }
    }
}

/// The content of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front {
    pub kind: Kind,
    /// Length of all headers. The kernel's value is not always right.
    pub headers: u16,
    /// Octets of payload in each joined packet but the last.
    pub size: u16,
    /// The offset at which the checksum's coverage begins, and the offset of its place from there,
    /// if the checksum is incomplete.
    pub checksum: Option<(u16, u16)>,
}

impl Front {
    /// Reads a header, and returns the packet after it. `None` if there is none, or if its kind was
    /// not enabled.
    pub fn read(octets: &mut [u8]) -> Option<(Self, &mut [u8])> {
        let (front, packet) = octets.split_first_chunk_mut::<FRONT_LEN>()?;
        let [flags, kind, headers @ .., s0, s1, c0, c1, o0, o1] = *front;
        let word = u16::from_ne_bytes;
        let front = Self {
            kind: Kind::from_octet(kind)?,
            headers: word(headers),
            size: word([s0, s1]),
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some((word([c0, c1]), word([o0, o1]))),
        };
        Some((front, packet))
    }

    /// Returns the header's octets.
    pub fn octets(self) -> [u8; FRONT_LEN] {
        let (start, offset) = self.checksum.unwrap_or_default();
        let flags = if self.checksum.is_some() {
            NEEDS_CHECKSUM
        } else {
            0
        };
        let mut octets = [0; FRONT_LEN];
        octets[..2].copy_from_slice(&[flags, self.kind.octet()]);
        let words = [self.headers, self.size, start, offset];
        for (place, word) in octets[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in [Kind::One, Kind::TcpV4, Kind::TcpV6, Kind::Udp] {
            for checksum in [None, Some((40, 16))] {
                let front = Front {
                    kind,
                    headers: 60,
                    size: 1340,
                    checksum,
                };
                let mut octets = [&front.octets()[..], &[7]].concat();
                assert_eq!(Front::read(&mut octets), Some((front, &mut [7][..])));
                octets[1] |= ECN;
                assert_eq!(Front::read(&mut octets), Some((front, &mut [7][..])));
            }
        }
    }

    #[test]
    fn what_was_not_asked_for_or_is_cut_short_is_not_read() {
        let mut octets = Front::default().octets();
        assert_eq!(Front::read(&mut octets[..FRONT_LEN - 1]), None);
        octets[1] = 3;
        assert_eq!(Front::read(&mut octets), None);
    }
}
