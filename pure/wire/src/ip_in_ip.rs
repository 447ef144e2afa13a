//! IP in IP (RFC 2003): tunnels a datagram to a host that is away from its address.
//!
//! The outer header is an IPv4 header without options. A socket for protocol 4 makes the kernel
//! write it, and [`Outer`] defines its fields. The inner datagram does not change, except for its
//! ECN field at the end of the tunnel (RFC 6040 section 4.2).
//!
//! Its time to live is decremented "if the tunneling is being done as part of forwarding the
//! datagram" (section 3.1). For datagrams read from a TUN device, the kernel has already done that.
//! Others need [`spend_hop`].

use crate::checksum::Sum;
use crate::ecn::Ecn;
use crate::ip::{self, Header, V4_HEADER_LEN};
use crate::mobile_ip::TunnelData;
use std::net::{IpAddr, Ipv4Addr};

/// The IP protocol number.
pub const PROTOCOL: u8 = 4;
/// Octets that a tunnel adds.
pub const HEADER_LEN: usize = V4_HEADER_LEN;
/// Octets that a tunnel in UDP adds to these (RFC 3519 section 4.2): the UDP header and the header
/// of a MIP Tunnel Data Message.
pub const UDP_LEN: usize = 8 + TunnelData::LEN;
/// Time to live of outer headers (section 3.1: "a value appropriate for delivery").
const TTL: u8 = 64;
/// Offset of the time to live.
const TTL_AT: usize = 8;

/// The reason why a datagram is not tunnelled, or is dropped at the end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// Not a whole IPv4 datagram with a right header checksum.
    #[error("it is not a whole IPv4 datagram with a valid header")]
    Malformed,
    /// The time to live is zero: "An encapsulator MUST NOT encapsulate a datagram with TTL = 0",
    /// and none may leave a tunnel.
    #[error("its time to live has expired")]
    Expired,
    /// The source of the datagram is the end of the tunnel: "The router MUST NOT tunnel the
    /// datagram" (section 3.2).
    #[error("its source is the end of the tunnel")]
    Loop,
    /// With another header, the datagram would exceed the maximum length.
    #[error("with another header it would exceed the maximum length")]
    TooLong,
    /// The outer header has a congestion mark, but the transport inside understands only losses
    /// (RFC 6040).
    #[error("a router marked it as congested, and its transport does not support ECN")]
    Congested,
}

/// Capability of the other end of a tunnel (RFC 6040 section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// The egress copies congestion marks to the inner header: the ECN field is copied ("normal
    /// mode").
    PassesMarks,
    /// The egress may ignore marks: outer headers are not ECN-capable ("compatibility mode").
    #[default]
    Unknown,
}

/// The outer header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Address of the start of the tunnel.
    pub source: Ipv4Addr,
    /// Address of the end of the tunnel.
    pub destination: Ipv4Addr,
    /// Type of service of the inner header, with its ECN field if the egress copies marks.
    pub tos: u8,
    /// True if no router may fragment the packet. It "MUST be set in the outer IP header" if the
    /// inner header sets it.
    pub dont_fragment: bool,
    /// Length of the whole packet in octets.
    pub total_len: u16,
}

impl Outer {
    /// Returns the outer header for a datagram in a tunnel from `ends.0` to `ends.1`.
    pub fn around(
        datagram: &[u8],
        ends: (Ipv4Addr, Ipv4Addr),
        egress: Egress,
    ) -> Result<Self, Refusal> {
        let header = whole(datagram)?;
        if header.source() == IpAddr::V4(ends.1) {
            return Err(Refusal::Loop);
        }
        Self::new(&header, datagram, ends, egress)
    }

    /// Returns the same for a tunnel in UDP (RFC 3519 section 4.2). Its packets are never
    /// fragmented, because fragments do not pass a NAT. A datagram that is too long is fragmented
    /// before ([`crate::fragments`]), as in section 4.8.
    ///
    /// The other end may be the address of a NAT, which many hosts share. So a datagram with this
    /// source need not come from the end of the tunnel.
    pub fn around_in_udp(
        datagram: &[u8],
        ends: (Ipv4Addr, Ipv4Addr),
        egress: Egress,
    ) -> Result<Self, Refusal> {
        let outer = Self::new(&whole(datagram)?, datagram, ends, egress)?;
        let total_len = outer.total_len.checked_add(UDP_LEN as u16);
        Ok(Self {
            total_len: total_len.ok_or(Refusal::TooLong)?,
            dont_fragment: true,
            ..outer
        })
    }

    fn new(
        header: &Header<'_>,
        datagram: &[u8],
        (source, destination): (Ipv4Addr, Ipv4Addr),
        egress: Egress,
    ) -> Result<Self, Refusal> {
        let total_len = u16::try_from(header.total_len() + HEADER_LEN);
        let ecn = match egress {
            Egress::PassesMarks => Ecn::from_packet(datagram),
            Egress::Unknown => Ecn::NotEct,
        };
        Ok(Self {
            source,
            destination,
            tos: header.tos() & !0x03 | ecn.bits(),
            dont_fragment: !header.may_be_fragmented(),
            total_len: total_len.map_err(|_| Refusal::TooLong)?,
        })
    }

    /// Returns the octets of the header. The identification serves reassembly (RFC 6864).
    pub fn octets(&self, identification: u16) -> [u8; HEADER_LEN] {
        let mut octets = [0; HEADER_LEN];
        octets[0] = 0x45;
        octets[1] = self.tos;
        octets[2..4].copy_from_slice(&self.total_len.to_be_bytes());
        octets[4..6].copy_from_slice(&identification.to_be_bytes());
        octets[6] = if self.dont_fragment { 0x40 } else { 0 };
        octets[TTL_AT] = TTL;
        octets[9] = PROTOCOL;
        octets[12..16].copy_from_slice(&self.source.octets());
        octets[16..20].copy_from_slice(&self.destination.octets());
        let sum = Sum::default().with(&octets).finish();
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        octets
    }
}

/// Removes a datagram from a tunnel. Returns its octets, with the ECN field combined from both
/// headers (RFC 6040 figure 4). "The TTL in the inner IP header is not changed when decapsulating."
pub fn take_out(inner: &mut [u8], outer: Ecn) -> Result<&mut [u8], Refusal> {
    let len = whole(inner)?.total_len();
    let datagram = &mut inner[..len];
    let was = Ecn::from_packet(datagram);
    let is = match (was, outer) {
        (Ecn::NotEct, Ecn::Ce) => return Err(Refusal::Congested),
        (Ecn::NotEct, _) => Ecn::NotEct,
        (_, outer) => was.max(outer),
    };
    if is != was {
        is.write(datagram);
    }
    Ok(datagram)
}

/// Decrements the time to live of a datagram that the kernel has not forwarded before the tunnel.
pub fn spend_hop(datagram: &mut [u8]) -> Result<(), Refusal> {
    let ttl = whole(datagram)?.ttl() - 1;
    ip::replace(datagram, TTL_AT, ttl);
    match ttl {
        0 => Err(Refusal::Expired),
        _ => Ok(()),
    }
}

/// Reads the header of a datagram that may be in a tunnel.
pub fn whole(datagram: &[u8]) -> Result<Header<'_>, Refusal> {
    let header = Header::parse(datagram).map_err(|_| Refusal::Malformed)?;
    if header.version() != 4 || !header.checksum_is_right() {
        return Err(Refusal::Malformed);
    }
    match header.ttl() {
        0 => Err(Refusal::Expired),
        _ => Ok(header),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENDS: (Ipv4Addr, Ipv4Addr) =
        (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2));

    /// Returns a datagram from 10.0.0.1 to 10.0.0.2.
    fn datagram(tos: u8, flags: u8, ttl: u8) -> Vec<u8> {
        let mut octets = vec![0x45, tos, 0, 24, 0, 1, flags, 0, ttl, 253, 0, 0];
        octets.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4]);
        let sum = Sum::default().with(&octets[..20]).finish();
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        octets
    }

    fn around(datagram: &[u8]) -> Result<Outer, Refusal> {
        Outer::around(datagram, ENDS, Egress::PassesMarks)
    }

    #[test]
    fn the_header_outside_has_the_class_and_the_df_bit_of_the_datagram() {
        for (tos, flags) in [(0xb8, 0x40), (0, 0)] {
            let outer = around(&datagram(tos, flags, 64)).unwrap();
            let octets = outer.octets(7);
            let mut whole = octets.to_vec();
            whole.extend(datagram(tos, flags, 64));
            let header = Header::parse(&whole).unwrap();
            assert!(header.checksum_is_right() && header.total_len() == 44);
            assert_eq!((header.tos(), header.protocol()), (tos, 4));
            assert_eq!(header.may_be_fragmented(), flags == 0);
            assert_eq!(header.source(), IpAddr::V4(ENDS.0));
            assert_eq!(header.destination(), IpAddr::V4(ENDS.1));
            assert_eq!(header.payload(), datagram(tos, flags, 64));
        }
    }

    #[test]
    fn marks_are_invited_only_where_whoever_takes_it_out_passes_them_on() {
        let inner = datagram(0xb8 | Ecn::Ect0.bits(), 0, 64);
        assert_eq!(around(&inner).unwrap().tos, 0xba);
        let outer = Outer::around(&inner, ENDS, Egress::Unknown).unwrap();
        assert_eq!(outer.tos, 0xb8);
    }

    #[test]
    fn a_datagram_whose_time_is_over_is_neither_put_in_nor_taken_out() {
        assert_eq!(around(&datagram(0, 0, 0)), Err(Refusal::Expired));
        let mut inner = datagram(0, 0, 0);
        assert_eq!(take_out(&mut inner, Ecn::NotEct), Err(Refusal::Expired));
    }

    #[test]
    fn a_datagram_from_where_the_tunnel_ends_is_not_sent_back_there() {
        let ends = (ENDS.0, Ipv4Addr::new(10, 0, 0, 1));
        let refused = Outer::around(&datagram(0, 0, 64), ends, Egress::Unknown);
        assert_eq!(refused, Err(Refusal::Loop));
    }

    #[test]
    fn a_datagram_from_the_address_of_a_nat_goes_to_whoever_is_behind_it() {
        let ends = (ENDS.0, Ipv4Addr::new(10, 0, 0, 1));
        let outer = Outer::around_in_udp(&datagram(0, 0, 64), ends, Egress::Unknown).unwrap();
        assert_eq!(outer.destination, ends.1);
        assert_eq!(usize::from(outer.total_len), 24 + HEADER_LEN + UDP_LEN);
        assert!(outer.dont_fragment);
    }

    #[test]
    fn a_datagram_with_a_wrong_header_is_refused() {
        let mut wrong = datagram(0, 0, 64);
        wrong[10] ^= 1;
        assert_eq!(around(&wrong), Err(Refusal::Malformed));
        assert_eq!(around(&datagram(0, 0, 64)[..23]), Err(Refusal::Malformed));
        let mut six = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
        six.extend([0; 32]);
        assert_eq!(around(&six), Err(Refusal::Malformed));
    }

    #[test]
    fn a_datagram_that_fills_the_length_field_is_too_long_for_another_header() {
        let mut long = datagram(0, 0, 64);
        long.resize(65_530, 0);
        long[2..4].copy_from_slice(&65_530_u16.to_be_bytes());
        long[10..12].fill(0);
        let sum = Sum::default().with(&long[..20]).finish();
        long[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(around(&long), Err(Refusal::TooLong));
    }

    /// RFC 6040 figure 4.
    #[test]
    fn a_datagram_comes_out_with_the_more_severe_of_both_ecn_fields() {
        for was in Ecn::ALL {
            for outer in Ecn::ALL {
                let mut inner = datagram(was.bits(), 0, 64);
                let taken = take_out(&mut inner, outer);
                if (was, outer) == (Ecn::NotEct, Ecn::Ce) {
                    assert_eq!(taken, Err(Refusal::Congested));
                    continue;
                }
                let expected = if was == Ecn::NotEct {
                    was
                } else {
                    was.max(outer)
                };
                let datagram = taken.unwrap();
                assert_eq!(Ecn::from_packet(datagram), expected);
                assert!(Header::parse(datagram).unwrap().checksum_is_right());
            }
        }
    }

    #[test]
    fn octets_behind_the_datagram_do_not_come_out() {
        let mut inner = datagram(0, 0, 64);
        inner.extend([9; 5]);
        assert_eq!(take_out(&mut inner, Ecn::NotEct).unwrap().len(), 24);
    }

    #[test]
    fn a_hop_is_spent_with_a_right_checksum_and_the_last_one_ends_the_way() {
        let mut inner = datagram(0, 0, 2);
        assert_eq!(spend_hop(&mut inner), Ok(()));
        assert_eq!(whole(&inner).unwrap().ttl(), 1);
        assert_eq!(spend_hop(&mut inner), Err(Refusal::Expired));
    }

    proptest! {
        #[test]
        fn any_octets_are_taken_without_panic(
            mut octets in proptest::collection::vec(any::<u8>(), 0..80),
            ecn in 0..4_u8,
        ) {
            if let Some(first) = octets.first_mut() {
                *first = 0x45;
            }
            let _ = around(&octets);
            let _ = spend_hop(&mut octets);
            let _ = take_out(&mut octets, Ecn::from_bits(ecn));
        }
    }
}
