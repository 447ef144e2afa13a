//! TCP headers (RFC 9293 section 3.1), their options, and sequence numbers that wrap.
//!
//! This module only reads: [`crate::mss`] changes segments. Checksums belong to
//! [`crate::checksum`]: a licensed node sees them zeroed (DESIGN section 3).

use std::fmt;
use std::ops::Add;

/// Octets of a header without options.
pub const MIN_HEADER_LEN: usize = 20;
/// Offset of the control bits in the header.
pub const FLAGS_OFFSET: usize = 13;
/// Offset of the window in the header.
pub const WINDOW_OFFSET: usize = 14;
/// Offset of the checksum in the header.
pub const CHECKSUM_OFFSET: usize = 16;
/// The IP protocol number.
pub const PROTOCOL: u8 = 6;

/// A TCP header whose data offset lies inside the octets it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first payload octet (of the SYN, if there is one).
    pub seq: Seq,
    /// The next octet the sender of this segment expects; meaningful with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The control bit before those: AE, part of the counter of congestion marks (RFC 9768
    /// section 3.1), or NS.
    pub accurate: bool,
    /// Receive window as it is on the wire, not scaled (RFC 7323 section 2).
    pub window: u16,
    /// Octets of the header with its options, 20 to 60.
    pub header_len: usize,
    /// The options with their padding, 0 to 40 octets.
    pub options: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header at the front of `octets`. `None` if it is truncated or its data offset is
    /// below five words. The octets behind the header may be missing.
    pub fn parse(octets: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; MIN_HEADER_LEN] = octets.first_chunk()?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        let options = octets.get(MIN_HEADER_LEN..header_len)?;
        Some(Self {
            source_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            destination_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            seq: Seq::read([fixed[4], fixed[5], fixed[6], fixed[7]]),
            ack: Seq::read([fixed[8], fixed[9], fixed[10], fixed[11]]),
            flags: Flags(fixed[13]),
            accurate: fixed[12] & 1 != 0,
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            header_len,
            options,
        })
    }

    /// Iterates over the options in wire order, without no-operations and without octets behind the
    /// end of the list. The iterator ends after the first malformed option.
    pub fn options(&self) -> Options<'a> {
        Options {
            octets: self.options,
            at: 0,
        }
    }

    /// Returns timestamp and echo (RFC 7323 section 3.2), if the header has them.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        let mut options = self.options().map_while(Result::ok);
        options.find_map(|option| match option.value {
            OptionValue::Timestamps { value, echo } => Some((value, echo)),
            _ => None,
        })
    }

    /// Returns the length of a segment with `payload_len` octets in sequence space: SYN and FIN
    /// count one each (RFC 9293 section 3.4).
    pub fn sequence_len(&self, payload_len: usize) -> u32 {
        let controls =
            u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN));
        u32::try_from(payload_len)
            .unwrap_or(u32::MAX)
            .saturating_add(controls)
    }
}

/// The control bits of the header's fourteenth octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is meaningful.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is meaningful.
    pub const URG: Self = Self(0x20);
    /// Congestion was experienced (RFC 3168 section 6.1).
    pub const ECE: Self = Self(0x40);
    /// The congestion window was reduced.
    pub const CWR: Self = Self(0x80);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A sequence number. Comparisons are modulo 2^32 (RFC 9293 section 3.4), so there is no total
/// order and no `Ord`: two numbers compare right if they are less than 2^31 apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the distance from `other`; negative if this is before it.
    pub const fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Returns true if this is before `other`.
    pub const fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }

    /// Returns true if this is after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }

    /// Returns the later of both.
    pub const fn later(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    const fn read(octets: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(octets))
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, rhs: u32) -> Self {
        Self(self.0.wrapping_add(rhs))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An option and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionAt<'a> {
    /// Offset in octets from the start of the TCP header: 20 or more.
    pub offset: usize,
    /// Length in octets, kind and length included.
    pub len: usize,
    /// Kind of the option.
    pub kind: u8,
    /// Content of the option.
    pub value: OptionValue<'a>,
}

/// The content of an option. A known kind with a length that this kind never has is
/// [`OptionValue::Other`]: receivers skip it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue<'a> {
    /// Kind 2: maximum segment size (RFC 9293 section 3.7.1).
    Mss(u16),
    /// Kind 3: shift of the window field (RFC 7323 section 2.2).
    WindowScale(u8),
    /// Kind 4 (RFC 2018 section 2).
    SackPermitted,
    /// Kind 5 (RFC 2018 section 3).
    Sack(SackBlocks<'a>),
    /// Kind 8 (RFC 7323 section 3.2).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's clock, echoed.
        echo: u32,
    },
    /// Any other option: the data behind kind and length.
    Other(&'a [u8]),
}

impl<'a> OptionValue<'a> {
    fn read(kind: u8, data: &'a [u8]) -> Self {
        match (kind, data) {
            (2, &[a, b]) => Self::Mss(u16::from_be_bytes([a, b])),
            (3, &[shift]) => Self::WindowScale(shift),
            (4, []) => Self::SackPermitted,
            (5, blocks) if !blocks.is_empty() && blocks.len() % SACK_BLOCK_LEN == 0 => {
                Self::Sack(SackBlocks { octets: blocks })
            }
            (8, &[a, b, c, d, e, f, g, h]) => Self::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            (_, data) => Self::Other(data),
        }
    }
}

/// The options of a header; see [`Header::options`].
#[derive(Clone, Debug)]
pub struct Options<'a> {
    octets: &'a [u8],
    at: usize,
}

/// An option whose length is below 2 or reaches beyond the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TCP option {kind} at octet {offset} has a length that does not fit the header")]
pub struct MalformedOption {
    /// Kind of the option.
    pub kind: u8,
    /// Offset in octets from the start of the TCP header.
    pub offset: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<OptionAt<'a>, MalformedOption>;

    fn next(&mut self) -> Option<Self::Item> {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        while self.octets.get(self.at) == Some(&NO_OPERATION) {
            self.at += 1;
        }
        let start = self.at;
        let offset = MIN_HEADER_LEN + start;
        let kind = *self.octets.get(start)?;
        self.at = self.octets.len();
        if kind == END {
            return None;
        }
        let len = usize::from(self.octets.get(start + 1).copied().unwrap_or(0));
        let Some(data) = self.octets.get(start + 2..start + len) else {
            return Some(Err(MalformedOption { kind, offset }));
        };
        self.at = start + len;
        let value = OptionValue::read(kind, data);
        Some(Ok(OptionAt {
            offset,
            len,
            kind,
            value,
        }))
    }
}

const SACK_BLOCK_LEN: usize = 8;

/// The blocks of a SACK option in wire order: (first octet, octet after the last). They are not
/// validated: a block may be empty, inverted, duplicate (RFC 2883) or meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlocks<'a> {
    octets: &'a [u8],
}

impl Iterator for SackBlocks<'_> {
    type Item = (Seq, Seq);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[a, b, c, d, e, f, g, h], rest) =
            self.octets.split_first_chunk::<SACK_BLOCK_LEN>()?;
        self.octets = rest;
        Some((Seq::read([a, b, c, d]), Seq::read([e, f, g, h])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header_with(options: &[u8]) -> Vec<u8> {
        let mut octets = vec![
            0x1f, 0x90, 0xc0, 0x01, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0x12, 0x72, 0x10, 0xab,
            0xcd, 0, 0,
        ];
        octets.extend_from_slice(options);
        octets[12] = ((octets.len() / 4) as u8) << 4;
        octets
    }

    #[test]
    fn the_fixed_fields_are_where_rfc_9293_draws_them() {
        let octets = header_with(&[]);
        let header = Header::parse(&octets).unwrap();
        assert_eq!(
            (header.source_port, header.destination_port),
            (8080, 0xc001)
        );
        assert_eq!((header.seq, header.ack), (Seq(1), Seq(u32::MAX)));
        assert!(header.flags.contains(Flags::SYN.union(Flags::ACK)));
        assert!(!header.flags.intersects(Flags::FIN.union(Flags::RST)));
        assert_eq!((header.window, header.header_len), (0x7210, 20));
        assert_eq!(header.sequence_len(10), 11);
    }

    #[test]
    fn a_header_cut_short_or_with_a_data_offset_below_five_is_none() {
        let mut octets = header_with(&[1, 1, 1, 0]);
        assert!(Header::parse(&octets).is_some());
        assert!(Header::parse(&octets[..23]).is_none());
        assert!(Header::parse(&octets[..19]).is_none());
        octets[12] = 0x40;
        assert!(Header::parse(&octets).is_none());
    }

    #[test]
    fn options_of_a_linux_syn_are_read_with_their_places() {
        let octets = header_with(&[
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 7,
        ]);
        let header = Header::parse(&octets).unwrap();
        let read: Vec<_> = header
            .options()
            .map(|option| option.map(|o| (o.offset, o.len, o.value)).unwrap())
            .collect();
        assert_eq!(
            read,
            [
                (20, 4, OptionValue::Mss(1460)),
                (24, 2, OptionValue::SackPermitted),
                (26, 10, OptionValue::Timestamps { value: 7, echo: 9 }),
                (37, 3, OptionValue::WindowScale(7)),
            ]
        );
    }

    #[test]
    fn sack_blocks_are_read_in_wire_order() {
        let mut options = vec![1, 1, 5, 18];
        for edge in [5_u32, 6, u32::MAX, 3] {
            options.extend(edge.to_be_bytes());
        }
        let octets = header_with(&options);
        let option = Header::parse(&octets).unwrap().options().next().unwrap();
        let OptionValue::Sack(blocks) = option.unwrap().value else {
            panic!("not SACK")
        };
        let blocks: Vec<_> = blocks.collect();
        assert_eq!(blocks, [(Seq(5), Seq(6)), (Seq(u32::MAX), Seq(3))]);
    }

    #[test]
    fn a_known_kind_with_a_length_it_never_has_is_other() {
        for (kind, len) in [(2, 3), (3, 4), (4, 4), (5, 2), (5, 9), (8, 9)] {
            let mut options = vec![1; 12];
            (options[0], options[1]) = (kind, len);
            let octets = header_with(&options);
            let first = Header::parse(&octets).unwrap().options().next().unwrap();
            let first = first.unwrap();
            assert!(matches!(first.value, OptionValue::Other(_)), "{first:?}");
            assert_eq!(first.kind, kind);
        }
    }

    #[test]
    fn a_malformed_option_ends_the_list_with_an_error() {
        for (len, options) in [(0, 2), (1, 2), (5, 2), (40, 2)] {
            let octets = header_with(&[3, 3, 7, 1, options, len, 0, 0]);
            let header = Header::parse(&octets).unwrap();
            let read: Vec<_> = header.options().skip(1).collect();
            assert_eq!(
                read,
                [Err(MalformedOption {
                    kind: 2,
                    offset: 24
                })]
            );
        }
        let octets = header_with(&[1, 1, 1, 8]);
        assert!(
            Header::parse(&octets)
                .unwrap()
                .options()
                .next()
                .unwrap()
                .is_err()
        );
    }

    #[test]
    fn nothing_after_the_end_of_the_list_is_read() {
        let octets = header_with(&[0, 3, 3, 7]);
        assert!(Header::parse(&octets).unwrap().options().next().is_none());
    }

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        let (before, after) = (Seq(u32::MAX - 1), Seq(3));
        assert!(before.is_before(after) && after.is_after(before));
        assert_eq!(after.since(before), 5);
        assert_eq!(before + 5, after);
        assert_eq!(before.later(after), after);
        assert!(!before.is_before(before) && !before.is_after(before));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic_and_options_never_overlap(
            octets in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let Some(header) = Header::parse(&octets) else { return Ok(()) };
            let mut end = MIN_HEADER_LEN;
            for option in header.options() {
                let Ok(option) = option else { break };
                prop_assert!(option.offset >= end && option.len >= 2);
                end = option.offset + option.len;
                prop_assert!(end <= header.header_len);
                prop_assert_eq!(octets[option.offset], option.kind);
            }
        }
    }
}
