//! Segmentation in user space: a large packet from the kernel becomes the segments, or datagrams,
//! that it stands for, exactly as the kernel would have segmented it.
//!
//! Transport checksums are left to a later stage ([`Checksum::Left`]), so no octet of payload is
//! read here.

use crate::virtio::{Front, Kind};
use wire::checksum::{self, Checksum, Sum};
use wire::ip::{Header, V6_HEADER_LEN};
use wire::tcp::Flags;
use wire::{tcp, udp};

/// The length of a packet, and the state of its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Length in octets.
    pub len: usize,
    /// State of the checksum, as the device reported it.
    pub checksum: Checksum,
}

/// Segments a packet from a device that has this header, and returns the number of packets. `None`
/// if the header and the packet do not match, or there is no space.
pub(crate) fn cut(
    front: Front,
    packet: &mut [u8],
    spaces: &mut [impl AsMut<[u8]>],
    outlines: &mut [Outline],
) -> Option<usize> {
    if front.kind != Kind::One {
        return Uncut::new(front, packet)?.cut(usize::from(front.size), spaces, outlines);
    }
    let checksum = single(front, packet)?;
    let space = spaces.first_mut()?.as_mut().get_mut(..packet.len())?;
    space.copy_from_slice(packet);
    let len = packet.len();
    *outlines.first_mut()? = Outline { len, checksum };
    Some(1)
}

/// Returns the state of a single packet's checksum. A checksum that is not at the place of TCP's or
/// UDP's is completed here.
fn single(front: Front, packet: &mut [u8]) -> Option<Checksum> {
    let Some((start, offset)) = front.checksum else {
        return Some(Checksum::Made);
    };
    let (start, at) = (usize::from(start), usize::from(start) + usize::from(offset));
    if Header::parse(packet).is_ok_and(|header| is_usual(&header, packet.len(), (start, at))) {
        return Some(Checksum::Left);
    }
    packet.get(at..at + 2)?;
    // The field holds the sum of the pseudo-header. A UDP checksum of zero means none (RFC 768), so
    // the other representation of zero is used.
    let sum = match Sum::default().with(packet.get(start..)?).finish() {
        0 => 0xffff,
        sum => sum,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Some(Checksum::Made)
}

/// Returns true if a later stage can complete the checksum at this place from the packet alone.
fn is_usual(header: &Header<'_>, len: usize, (start, at): (usize, usize)) -> bool {
    let payload = header.payload();
    let whole = match header.protocol() {
        udp::PROTOCOL => udp::Header::parse(payload).map(|udp| usize::from(udp.len)),
        _ => Some(payload.len()),
    };
    header.total_len() == len
        && !header.has_options()
        && header.header_len() == start
        && checksum::place(header) == Some(at)
        && whole == Some(payload.len())
}

/// A packet that stands for many.
struct Uncut<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    /// Offset of the transport header.
    transport: usize,
    is_v4: bool,
    is_tcp: bool,
}

impl<'a> Uncut<'a> {
    fn new(front: Front, packet: &'a [u8]) -> Option<Self> {
        let header = Header::parse(packet).ok()?;
        if header.total_len() != packet.len() || header.is_fragment() {
            return None;
        }
        let (transport, segment) = (header.header_len(), header.payload());
        let len = match (front.kind, header.version(), header.protocol()) {
            (Kind::TcpV4, 4, tcp::PROTOCOL) | (Kind::TcpV6, 6, tcp::PROTOCOL) => {
                tcp::Header::parse(segment)?.header_len
            }
            (Kind::Udp, _, udp::PROTOCOL) => udp::HEADER_LEN,
            _ => return None,
        };
        let (headers, payload) = packet.split_at_checked(transport + len)?;
        Some(Self {
            headers,
            payload,
            transport,
            is_v4: header.version() == 4,
            is_tcp: front.kind != Kind::Udp,
        })
    }

    /// Segments the packet into ones with `size` octets of payload, and returns their number.
    fn cut(
        &self,
        size: usize,
        spaces: &mut [impl AsMut<[u8]>],
        outlines: &mut [Outline],
    ) -> Option<usize> {
        if size == 0 {
            return None;
        }
        let count = self.payload.len().div_ceil(size).max(1);
        let spaces = spaces.get_mut(..count)?;
        let places = spaces.iter_mut().zip(outlines.get_mut(..count)?);
        for (index, (space, outline)) in places.enumerate() {
            let from = index * size;
            let to = self.payload.len().min(from + size);
            let len = self.headers.len() + to - from;
            let packet = space.as_mut().get_mut(..len)?;
            let (headers, payload) = packet.split_at_mut(self.headers.len());
            payload.copy_from_slice(&self.payload[from..to]);
            headers.copy_from_slice(self.headers);
            self.adapt(headers, (index, from), len, index + 1 == count);
            *outline = Outline {
                len,
                checksum: Checksum::Left,
            };
        }
        Some(count)
    }

    /// Adapts the headers to one segment: its length, its index, and the offset of its payload.
    fn adapt(&self, headers: &mut [u8], (index, from): (usize, usize), len: usize, is_last: bool) {
        let (ip, transport) = headers.split_at_mut(self.transport);
        if self.is_v4 {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
            ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            ip[10..12].fill(0);
            let sum = Sum::default().with(ip).finish();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            ip[4..6].copy_from_slice(&((len - V6_HEADER_LEN) as u16).to_be_bytes());
        }
        if self.is_tcp {
            let number = &mut transport[4..8];
            let first = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
            number.copy_from_slice(&first.wrapping_add(from as u32).to_be_bytes());
            // Only the first segment has CWR, and only the last has FIN and PSH.
            if index > 0 {
                transport[tcp::FLAGS_OFFSET] &= !Flags::CWR.0;
            }
            if !is_last {
                transport[tcp::FLAGS_OFFSET] &= !Flags::FIN.union(Flags::PSH).0;
            }
        } else {
            let len = (len - self.transport) as u16;
            transport[4..6].copy_from_slice(&len.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{KINDS, Sample, made};
    use crate::virtio::FRONT_LEN;
    use proptest::prelude::*;

    fn front(sample: &Sample, size: u16) -> Front {
        let kind = match (sample.udp, sample.six) {
            (true, _) => Kind::Udp,
            (false, true) => Kind::TcpV6,
            (false, false) => Kind::TcpV4,
        };
        let start = sample.front() as u16;
        let offset = sample.checksum_at() as u16 - start;
        Front {
            kind,
            headers: sample.headers() as u16,
            size,
            checksum: Some((start, offset)),
        }
    }

    fn all(front: Front, packet: &mut [u8]) -> Option<Vec<(Vec<u8>, Checksum)>> {
        let mut spaces = vec![vec![0xee; 2000]; 100];
        let mut outlines = [Outline::default(); 100];
        let count = cut(front, packet, &mut spaces, &mut outlines)?;
        let packets = spaces.iter().zip(outlines).take(count);
        Some(
            packets
                .map(|(space, outline)| (space[..outline.len].to_vec(), outline.checksum))
                .collect(),
        )
    }

    /// With all checksums completed, each segment equals a packet that was sent alone.
    #[test]
    fn each_piece_is_the_packet_that_would_have_been_sent_alone() {
        for kind in KINDS {
            for (payload, size) in [(5001, 1000_u16), (3000, 1000), (999, 1000), (7, 1)] {
                let mut whole = Sample::new(kind, 0xffff_f000, payload);
                // FIN, PSH, ACK, ECE and CWR.
                (whole.flags, whole.id) = (0xd9, 0xfffe);
                let pieces = all(front(&whole, size), &mut whole.unsealed()).unwrap();
                let count = payload.div_ceil(size.into());
                assert_eq!(pieces.len(), count);
                for (index, (piece, checksum)) in pieces.iter().enumerate() {
                    let from = index * usize::from(size);
                    let (mut alone, number) = (whole.clone(), whole.number);
                    alone.number = number.wrapping_add(from as u32);
                    alone.payload = (payload - from).min(size.into());
                    alone.id = whole.id.wrapping_add(index as u16);
                    alone.flags &= if index == 0 { 0xff } else { 0x7f };
                    alone.flags &= if index + 1 == count { 0xff } else { 0xf6 };
                    assert_eq!(*checksum, Checksum::Left);
                    assert_eq!(
                        made(piece, *checksum),
                        alone.packet(&[]),
                        "{kind:?} {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_single_packet_is_without_its_checksum_only_where_the_device_says_so() {
        for kind in KINDS {
            let sample = Sample::new(kind, 0, 100);
            let whole = sample.packet(&[]);
            let told = all(Front::default(), &mut whole.clone()).unwrap();
            assert_eq!(told, [(whole.clone(), Checksum::Made)]);
            let mut front = front(&sample, 0);
            front.kind = Kind::One;
            let left = all(front, &mut sample.unsealed()).unwrap();
            assert_eq!(left, [(sample.unsealed(), Checksum::Left)]);
            assert_eq!(made(&left[0].0, Checksum::Left), whole);
        }
    }

    /// Only a checksum at a known place can be completed later.
    #[test]
    fn a_checksum_in_another_place_is_made_at_once() {
        let front = Front {
            checksum: Some((20, 2)),
            ..Front::default()
        };
        // ICMP has no pseudo-header.
        let mut packet = Sample::new((false, false), 0, 4).packet(&[(9, 1)]);
        packet[22..24].fill(0);
        let told = all(front, &mut packet.clone()).unwrap();
        let (octets, checksum) = &told[0];
        assert_eq!(*checksum, Checksum::Made);
        assert_eq!(Sum::default().with(&octets[20..]).finish(), 0);
        assert_eq!(
            (&octets[..22], &octets[24..]),
            (&packet[..22], &packet[24..])
        );
    }

    #[test]
    fn what_has_no_space_or_does_not_fit_its_header_is_refused() {
        let sample = Sample::new((false, false), 0, 5000);
        let whole = sample.unsealed();
        let good = front(&sample, 1000);
        assert!(all(good, &mut whole.clone()).is_some());
        for (kind, size) in [
            (Kind::TcpV6, 1000),
            (Kind::Udp, 1000),
            (Kind::TcpV4, 0),
            (Kind::TcpV4, 49),
            (Kind::TcpV4, 3000),
            (Kind::One, 0),
        ] {
            let front = Front { kind, size, ..good };
            assert_eq!(all(front, &mut whole.clone()), None, "{kind:?} {size}");
        }
        assert_eq!(all(good, &mut whole[..4000].to_vec()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn nothing_that_a_device_hands_over_does_harm(
            header in any::<[u8; FRONT_LEN]>(),
            kind in prop_oneof![Just(0_u8), Just(1), Just(4), Just(5), Just(0x81), any::<u8>()],
            place in prop_oneof![Just((20_u16, 16_u16)), Just((40, 6)), any::<(u16, u16)>()],
            size in prop_oneof![Just(1000_u16), 0..40_u16, any::<u16>()],
            sample in any::<(bool, bool)>(),
            payload in 0..4000_usize,
            lies in proptest::collection::vec((0..80_usize, any::<u8>()), 0..4),
            len in prop_oneof![3 => Just(usize::MAX), 1 => 0..80_usize],
        ) {
            let mut packet = Sample::new(sample, 0, payload).packet(&lies);
            packet.truncate(len);
            let mut read = [&header[..], &packet].concat();
            read[1] = kind;
            read[4..6].copy_from_slice(&size.to_ne_bytes());
            read[6..8].copy_from_slice(&place.0.to_ne_bytes());
            read[8..10].copy_from_slice(&place.1.to_ne_bytes());
            if let Some((front, packet)) = Front::read(&mut read) {
                let packets = all(front, packet).unwrap_or_default();
                for (packet, checksum) in packets {
                    made(&packet, checksum);
                }
            }
        }
    }
}
