//! The only function that decides which octets of a datagram may be visible to licensed nodes
//! (DESIGN section 3).
//!
//! [`classify`] returns the exact extents of the headers, or *opaque*: then the whole datagram goes
//! to the payload zone. A datagram is opaque if there is any doubt about the end of its headers,
//! because nodes on the path could resolve the doubt differently. TCP options that carry secrets
//! are cut out of the header.

use crate::checksum::{self, Checksum};
use crate::tcp::{OptionAt, OptionValue};
use crate::{ip, tcp, udp};
use std::ops::Range;

/// The header octets of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extents {
    /// The whole datagram is hidden, for this reason.
    Opaque(OpaqueReason),
    /// The headers have these extents.
    Clear(Clear),
}

/// Extents of the headers of a whole, well-formed TCP or UDP packet over IP without options.
///
/// Offsets count octets from the start of the datagram, or of [the octets behind its IP
/// header](Clear::without_ip). Everything behind the headers is payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clear {
    /// The IP header.
    pub ip: Range<usize>,
    /// The transport header with its options.
    pub transport: Range<usize>,
    /// Options inside the transport header that carry secrets.
    pub secret: Secrets,
    /// IP protocol number of the transport.
    pub protocol: u8,
    /// Offset of the checksum, if there is one. It would reveal 16 bits of the payload.
    pub checksum_at: Option<usize>,
}

impl Clear {
    /// Returns the extents relative to the end of the IP header, as transport and BEET mode seal
    /// only the octets behind it.
    pub fn without_ip(mut self) -> Self {
        let start = self.ip.end;
        let back = |range: &mut Range<usize>| *range = range.start - start..range.end - start;
        back(&mut self.transport);
        self.secret.ranges[..self.secret.count]
            .iter_mut()
            .for_each(back);
        self.checksum_at = self.checksum_at.map(|at| at - start);
        self.ip = 0..0;
        self
    }
}

/// The reason why a datagram is opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum OpaqueReason {
    /// The IP header or a length in it is inconsistent.
    #[error("malformed IP header")]
    MalformedIp,
    /// A fragment, even the first.
    #[error("fragment")]
    Fragment,
    /// IPv4 options or IPv6 extension headers.
    #[error("IP options or extension headers")]
    Options,
    /// A transport protocol without support here.
    #[error("unknown transport")]
    Transport,
    /// A TCP or UDP header or a TCP option is inconsistent.
    #[error("malformed transport header")]
    MalformedTransport,
    /// The receiver could not restore the transport checksum to its original value.
    #[error("wrong transport checksum")]
    Checksum,
    /// There are more separate secret options than a map has runs for.
    #[error("too many secret options")]
    ManySecrets,
}

/// Returns the extents of the headers of a datagram. A checksum that was left out cannot make it
/// opaque, because the checksum is correct by construction.
#[inline]
pub fn classify(datagram: &[u8], checksum: Checksum) -> Extents {
    match clear(datagram, checksum) {
        Ok(clear) => Extents::Clear(clear),
        Err(why) => Extents::Opaque(why),
    }
}

fn clear(datagram: &[u8], checksum: Checksum) -> Result<Clear, OpaqueReason> {
    let header = ip::Header::parse(datagram).map_err(|_| OpaqueReason::MalformedIp)?;
    if header.total_len() != datagram.len() || !header.checksum_is_right() {
        return Err(OpaqueReason::MalformedIp);
    }
    if header.is_fragment() {
        return Err(OpaqueReason::Fragment);
    }
    if header.has_options() {
        return Err(OpaqueReason::Options);
    }
    let start = header.header_len();
    let (transport_len, secret, has_checksum) = match header.protocol() {
        tcp::PROTOCOL => tcp_extents(header.payload(), start)?,
        udp::PROTOCOL => udp_extents(&header, checksum)?,
        _ => return Err(OpaqueReason::Transport),
    };
    let checksum_at = has_checksum
        .then(|| checksum_at(&header, datagram, checksum))
        .transpose()?;
    Ok(Clear {
        ip: 0..start,
        transport: start..start + transport_len,
        secret,
        protocol: header.protocol(),
        checksum_at,
    })
}

/// Returns the offset of the checksum. The checksum has to be exactly the value that the receiver
/// computes: ones' complement has two zeros, and restoring must not repair a corrupted packet.
fn checksum_at(
    header: &ip::Header<'_>,
    datagram: &[u8],
    checksum: Checksum,
) -> Result<usize, OpaqueReason> {
    let at = checksum::place(header).ok_or(OpaqueReason::MalformedTransport)?;
    if checksum == Checksum::Left {
        return Ok(at);
    }
    let right = checksum::of_transport(header).ok_or(OpaqueReason::MalformedTransport)?;
    match datagram[at..at + 2] == right.to_be_bytes() {
        true => Ok(at),
        false => Err(OpaqueReason::Checksum),
    }
}

type TransportExtents = (usize, Secrets, bool);

fn udp_extents(ip: &ip::Header<'_>, checksum: Checksum) -> Result<TransportExtents, OpaqueReason> {
    let malformed = OpaqueReason::MalformedTransport;
    let header = udp::Header::parse(ip.payload()).ok_or(malformed)?;
    if usize::from(header.len) != ip.payload().len() {
        return Err(malformed);
    }
    match (header.checksum, ip.version()) {
        _ if checksum == Checksum::Left => Ok((udp::HEADER_LEN, Secrets::default(), true)),
        (0, 4) => Ok((udp::HEADER_LEN, Secrets::default(), false)),
        // RFC 6935 allows zero over IPv6 only for tunnels whose both ends agreed on it.
        (0, _) => Err(OpaqueReason::Checksum),
        _ => Ok((udp::HEADER_LEN, Secrets::default(), true)),
    }
}

fn tcp_extents(segment: &[u8], start: usize) -> Result<TransportExtents, OpaqueReason> {
    let malformed = OpaqueReason::MalformedTransport;
    let header = tcp::Header::parse(segment).ok_or(malformed)?;
    let mut secrets = Secrets::default();
    let mut end = tcp::MIN_HEADER_LEN;
    for option in header.options() {
        let option = option.map_err(|_| malformed)?;
        end = option.offset + option.len;
        if is_secret(&option) {
            secrets.push(start + option.offset..start + end)?;
        }
    }
    // After the end of the list, RFC 9293 section 3.1 requires zeros. Other octets have no known
    // meaning.
    let padding = &segment[end..header.header_len];
    let mut after_no_operations = padding.iter().skip_while(|octet| **octet == 1);
    if after_no_operations.any(|octet| *octet != 0) {
        return Err(malformed);
    }
    Ok((header.header_len, secrets, true))
}

/// Returns true if an option carries, or might carry, keys, tokens, cookies or octets of the
/// payload. An option is public only if it is known to carry none of them. MD5 signatures and
/// TCP-AO (digests of the payload), alternate checksums, TCP Fast Open, and all unknown or
/// experimental options are therefore secret.
fn is_secret(option: &OptionAt<'_>) -> bool {
    const MPTCP: u8 = 30;
    match option.value {
        OptionValue::Mss(_)
        | OptionValue::WindowScale(_)
        | OptionValue::SackPermitted
        | OptionValue::Sack(_)
        | OptionValue::Timestamps { .. } => false,
        OptionValue::Other(data) if option.kind == MPTCP => !is_public_mptcp(data, option.len),
        OptionValue::Other(_) => true,
    }
}

/// Returns true for DSS without a checksum, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL and MP_TCPRST
/// in their specified lengths (RFC 8684 section 3). MP_CAPABLE, MP_JOIN and MP_FASTCLOSE carry keys
/// and tokens.
fn is_public_mptcp(data: &[u8], len: usize) -> bool {
    match (data.first().map(|first| first >> 4), len) {
        (Some(2), len) => dss_len(data) == Some(len),
        (Some(3), 8 | 10 | 16 | 18 | 20 | 22 | 28 | 30) | (Some(4), 4..) => true,
        (Some(5), 3 | 4) | (Some(6), 12) | (Some(8), 4) => true,
        _ => false,
    }
}

/// Returns the length of a DSS option without its checksum, which covers the payload ("The presence
/// of the checksum can be inferred from the length of the option", RFC 8684 section 3.3). `None` if
/// a reserved flag is set.
fn dss_len(data: &[u8]) -> Option<usize> {
    const ACK: u8 = 0x01;
    const LONG_ACK: u8 = 0x02;
    const MAP: u8 = 0x04;
    const LONG_SEQ: u8 = 0x08;
    const FIN: u8 = 0x10;
    let &[first, flags, ..] = data else {
        return None;
    };
    let has = |flag| flags & flag != 0;
    let number = |is_long| if is_long { 8 } else { 4 };
    let ack = if has(ACK) { number(has(LONG_ACK)) } else { 0 };
    let map = if has(MAP) {
        number(has(LONG_SEQ)) + 4 + 2
    } else {
        0
    };
    let reserved = first & 0x0f != 0 || flags & !(ACK | LONG_ACK | MAP | LONG_SEQ | FIN) != 0;
    (!reserved).then_some(4 + ack + map)
}

/// Separate ranges of secret options: at most three, because a map has eight runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    ranges: [Range<usize>; 3],
    count: usize,
}

impl Secrets {
    /// Iterates over the ranges in ascending order. Header octets separate any two of them.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges[..self.count].iter().cloned()
    }

    /// Returns true if there are no secret options.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, range: Range<usize>) -> Result<(), OpaqueReason> {
        if let Some(last) = self.ranges[..self.count].last_mut()
            && last.end == range.start
        {
            last.end = range.end;
            return Ok(());
        }
        let free = self.ranges.get_mut(self.count);
        *free.ok_or(OpaqueReason::ManySecrets)? = range;
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Sum;
    use proptest::prelude::*;

    fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u16;
        let mut packet = vec![
            0x45,
            0,
            (len >> 8) as u8,
            len as u8,
            0,
            1,
            0x40,
            0,
            64,
            protocol,
        ];
        packet.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = Sum::default().with(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        let _ = checksum::restore(&mut packet);
        packet
    }

    fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 64];
        packet.extend([[0xfd; 16], [0xfc; 16]].concat());
        packet.extend(payload);
        let _ = checksum::restore(&mut packet);
        packet
    }

    fn tcp_with(options: &[u8], payload: &[u8]) -> Vec<u8> {
        assert_eq!(options.len() % 4, 0);
        let mut segment = vec![0; 20];
        segment[12] = (5 + options.len() as u8 / 4) << 4;
        segment.extend(options);
        segment.extend(payload);
        segment
    }

    fn secrets_of(options: &[u8]) -> Result<Vec<Range<usize>>, OpaqueReason> {
        match classify(&v4(6, &tcp_with(options, b"payload")), Checksum::Made) {
            Extents::Clear(clear) => Ok(clear.secret.iter().collect()),
            Extents::Opaque(why) => Err(why),
        }
    }

    #[test]
    fn headers_of_tcp_and_udp_are_found_over_both_families() {
        let udp = [0, 1, 0, 2, 0, 10, 0, 0, 5, 6];
        let cases = [
            (v4(6, &tcp_with(&[1; 12], b"x")), 20, 52, Some(36)),
            (v6(6, &tcp_with(&[], b"")), 40, 60, Some(56)),
            (v4(17, &udp), 20, 28, Some(26)),
            (v6(17, &udp), 40, 48, Some(46)),
        ];
        for (packet, ip_end, end, checksum_at) in cases {
            let Extents::Clear(clear) = classify(&packet, Checksum::Made) else {
                panic!("opaque: {packet:02x?}")
            };
            assert_eq!((clear.ip, clear.transport), (0..ip_end, ip_end..end));
            assert_eq!(clear.checksum_at, checksum_at);
            assert!(clear.secret.is_empty());
        }
    }

    #[test]
    fn a_udp_packet_without_checksum_over_ipv4_is_clear_and_keeps_none() {
        let mut packet = v4(17, &[0, 1, 0, 2, 0, 9, 0, 0, 5]);
        packet[26..28].fill(0);
        let Extents::Clear(clear) = classify(&packet, Checksum::Made) else {
            panic!("opaque")
        };
        assert_eq!(clear.checksum_at, None);
        let mut over_six = v6(17, &[0, 1, 0, 2, 0, 9, 0, 0, 5]);
        over_six[46..48].fill(0);
        assert_eq!(
            classify(&over_six, Checksum::Made),
            Extents::Opaque(OpaqueReason::Checksum)
        );
    }

    /// The field's value does not matter either: UDP's zero for "no checksum" is ignored.
    #[test]
    fn a_checksum_that_is_left_is_not_held_against_a_datagram() {
        let udp = [0, 1, 0, 2, 0, 10, 0, 0, 5, 6];
        let tcp = tcp_with(&[], b"payload");
        for whole in [v4(17, &udp), v6(17, &udp), v4(6, &tcp), v6(6, &tcp)] {
            let expected = classify(&whole, Checksum::Made);
            let Extents::Clear(Clear { checksum_at, .. }) = expected else {
                panic!("opaque: {whole:02x?}")
            };
            let at = checksum_at.unwrap();
            for instead in [[0, 0], [0xab, 0xcd]] {
                let mut left = whole.clone();
                left[at..at + 2].copy_from_slice(&instead);
                assert_eq!(classify(&left, Checksum::Left), expected);
                assert_ne!(classify(&left, Checksum::Made), expected);
            }
        }
    }

    // Weakness: S13
    // Answers: licence-opaque
    #[test]
    fn whatever_is_in_doubt_is_opaque() {
        let good = v4(6, &tcp_with(&[], b"payload"));
        let changed = |at: usize, value: u8, mend: bool| {
            let mut packet = good.clone();
            packet[at] = value;
            if mend {
                packet[10..12].fill(0);
                let sum = Sum::default().with(&packet[..20]).finish();
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            packet
        };
        let with_options = {
            let mut packet = v4(6, &[&[1, 1, 1, 0], &tcp_with(&[], b"")[..]].concat());
            packet[0] = 0x46;
            packet[10..12].fill(0);
            let sum = Sum::default().with(&packet[..24]).finish();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet
        };
        let mut trailing = good.clone();
        trailing.push(0);
        let cases = [
            (changed(8, 63, false), OpaqueReason::MalformedIp),
            (trailing, OpaqueReason::MalformedIp),
            (Vec::new(), OpaqueReason::MalformedIp),
            (changed(6, 0x20, true), OpaqueReason::Fragment),
            (changed(7, 1, true), OpaqueReason::Fragment),
            (with_options, OpaqueReason::Options),
            (v6(60, &[6, 0, 0, 0, 0, 0, 0, 0]), OpaqueReason::Options),
            (v4(1, &[8, 0, 0, 0, 0, 0, 0, 0]), OpaqueReason::Transport),
            (v4(132, &[0; 12]), OpaqueReason::Transport),
            (changed(32, 0x40, false), OpaqueReason::MalformedTransport),
            (changed(32, 0xf0, false), OpaqueReason::MalformedTransport),
            (v4(6, &[0; 19]), OpaqueReason::MalformedTransport),
            (
                v4(17, &[0, 1, 0, 2, 0, 8, 0, 0, 5]),
                OpaqueReason::MalformedTransport,
            ),
            (changed(46, 0, false), OpaqueReason::Checksum),
            (changed(37, 0, false), OpaqueReason::Checksum),
        ];
        for (packet, why) in cases {
            assert_eq!(
                classify(&packet, Checksum::Made),
                Extents::Opaque(why),
                "{packet:02x?}"
            );
        }
    }

    // Weakness: S13
    // Answers: licence-hidden-header
    #[test]
    fn secret_options_are_cut_out_and_public_ones_stay() {
        // The options of every SYN: MSS, SACK permitted, timestamps, window scale.
        let syn = [
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 7,
        ];
        assert_eq!(secrets_of(&syn), Ok(vec![]));
        let secret: [(&[u8], Range<usize>); 6] = [
            (&[30, 4, 0x01, 0x81, 1, 1, 1, 1], 40..44),  // MP_CAPABLE
            (&[1, 1, 30, 4, 0x10, 0, 1, 1], 42..46),     // MP_JOIN
            (&[30, 4, 0x70, 0, 1, 1, 1, 1], 40..44),     // MP_FASTCLOSE
            (&[34, 6, 1, 2, 3, 4, 1, 1], 40..46),        // TFO cookie
            (&[29, 4, 1, 2, 1, 1, 1, 1], 40..44),        // TCP-AO
            (&[254, 4, 0xf9, 0x89, 1, 1, 1, 1], 40..44), // experimental
        ];
        for (options, range) in secret {
            assert_eq!(secrets_of(options), Ok(Vec::from([range])), "{options:?}");
        }
        let mut md5 = vec![19, 18];
        md5.extend([7; 16]);
        md5.extend([1, 1]);
        assert_eq!(secrets_of(&md5).unwrap().first(), Some(&(40..58)));
    }

    /// Returns an option of `len` octets with this data, padded with no-operations.
    fn option(kind: u8, data: &[u8], len: usize) -> Vec<u8> {
        let mut option = vec![kind, len as u8];
        option.extend(data);
        option.resize(len, 0);
        option.resize(len.next_multiple_of(4), 1);
        option
    }

    fn alone(range: Range<usize>) -> Vec<Range<usize>> {
        [range].into()
    }

    /// RFC 8684 section 3.3: the checksum is present if the option is two octets longer than its
    /// flags imply.
    // Weakness: 107
    // Weakness: S13
    // Answers: licence-hidden-header
    #[test]
    fn the_checksum_of_a_data_sequence_signal_is_secret_and_its_numbers_are_not() {
        for flags in 0..0x20 {
            let (ack, map) = (flags & 1 != 0, flags & 4 != 0);
            let ack = if ack { 4 + 2 * (flags & 2) } else { 0 };
            let map = if map { 10 + (flags & 8) / 2 } else { 0 };
            let len = usize::from(4 + ack + map);
            let dss = |len| secrets_of(&option(30, &[0x20, flags], len));
            assert_eq!(dss(len), Ok(vec![]), "{flags:#x}");
            assert_eq!(dss(len + 2), Ok(alone(40..40 + len + 2)), "{flags:#x}");
        }
        assert_eq!(secrets_of(&option(30, &[0x21, 0], 4)), Ok(alone(40..44)));
        assert_eq!(secrets_of(&option(30, &[0x20, 0x20], 4)), Ok(alone(40..44)));
    }

    /// Public are only options whose content and length an RFC defines: none of their octets come
    /// from the payload.
    // Weakness: 107
    // Weakness: S13
    #[test]
    fn every_option_of_another_kind_or_length_than_these_is_secret() {
        for kind in 2..=u8::MAX {
            for len in 2..=40 {
                let public = match kind {
                    2 => len == 4,
                    3 => len == 3,
                    4 => len == 2,
                    5 => len % 8 == 2 && len > 2,
                    8 => len == 10,
                    _ => false,
                };
                // The data does not start like a public subtype of MPTCP.
                let found = secrets_of(&option(kind, &[0xff; 38][..len - 2], len));
                let expected = if public { vec![] } else { alone(40..40 + len) };
                assert_eq!(found, Ok(expected), "kind {kind}, {len} octets");
            }
        }
        for subtype in 0..=15_u8 {
            for len in 3..=40 {
                let public = match subtype {
                    // Without flags, as here, the option has no further fields.
                    2 => len == 4,
                    3 => [8, 10, 16, 18, 20, 22, 28, 30].contains(&len),
                    4 => len >= 4,
                    5 => len <= 4,
                    6 => len == 12,
                    8 => len == 4,
                    _ => false,
                };
                let found = secrets_of(&option(30, &[subtype << 4], len));
                let expected = if public { vec![] } else { alone(40..40 + len) };
                assert_eq!(found, Ok(expected), "subtype {subtype}, {len} octets");
            }
        }
    }

    /// Transport and BEET mode seal the same octets in both versions of IP.
    #[test]
    fn without_the_ip_header_extents_are_counted_from_what_follows_it() {
        let segment = tcp_with(&[1, 1, 34, 6, 1, 2, 3, 4, 2, 4, 5, 0xb4], b"x");
        for packet in [v4(6, &segment), v6(6, &segment)] {
            let Extents::Clear(clear) = classify(&packet, Checksum::Made) else {
                panic!("opaque: {packet:02x?}")
            };
            let clear = clear.without_ip();
            assert_eq!((clear.ip, clear.transport), (0..0, 0..32));
            assert_eq!(clear.checksum_at, Some(16));
            assert_eq!(clear.secret.iter().next(), Some(22..28));
        }
    }

    #[test]
    fn neighbouring_secrets_are_one_and_a_fourth_makes_it_opaque() {
        let two = [34, 4, 1, 2, 29, 4, 1, 2, 1, 29, 2, 1];
        assert_eq!(secrets_of(&two), Ok(vec![40..48, 49..51]));
        let four = [34, 2, 1, 34, 2, 1, 34, 2, 1, 34, 2, 1];
        assert_eq!(secrets_of(&four), Err(OpaqueReason::ManySecrets));
    }

    // Weakness: S13
    #[test]
    fn octets_hidden_behind_the_end_of_the_options_make_it_opaque() {
        assert_eq!(secrets_of(&[3, 3, 7, 0, 0, 0, 0, 0]), Ok(vec![]));
        let hidden = secrets_of(&[3, 3, 7, 0, 1, 2, 3, 4]);
        assert_eq!(hidden, Err(OpaqueReason::MalformedTransport));
    }

    proptest! {
        // Weakness: S13
        #[test]
        fn no_octet_beyond_the_headers_is_ever_in_an_extent(
            six in any::<bool>(),
            protocol in prop_oneof![Just(6_u8), Just(17), any::<u8>()],
            offset in 0..16_u8,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut payload = payload;
            if let Some(octet) = payload.get_mut(12) {
                *octet = offset << 4;
            }
            let packet = if six { v6(protocol, &payload) } else { v4(protocol, &payload) };
            if let Extents::Clear(clear) = classify(&packet, Checksum::Made) {
                let ip_len = if six { 40 } else { 20 };
                let transport_len = match protocol {
                    6 => usize::from(offset) * 4,
                    _ => 8,
                };
                prop_assert_eq!(clear.ip.clone(), 0..ip_len);
                prop_assert_eq!(clear.transport.clone(), ip_len..ip_len + transport_len);
                prop_assert_eq!(clear.without_ip().transport, 0..transport_len);
            }
        }

        #[test]
        fn any_octets_are_classified_without_panic(
            first in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let mut octets = vec![first];
            octets.extend(rest);
            classify(&octets, Checksum::Made);
        }
    }
}
