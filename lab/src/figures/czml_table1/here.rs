//! Computed lengths of our packets, and the padding in them.

use super::cost::Cost;
use ::wire::esp::HEADER_LEN;
use ::wire::zoned::{Layout, Map};
use ::wire::{ip, tcp, udp};
use model::{Run, Suite, ZoneId, ZoneSuite};
use os::Family;

/// Pad length and next header (RFC 4303 section 2).
const TRAILER: usize = 2;
/// Alignment of a plain packet's text (RFC 4303 section 2.4).
const ALIGNMENT: usize = 4;
/// Alignment with AES-CBC.
const BLOCK: usize = 16;
/// Number of zones: headers and the rest, as for every peer.
const ZONES: usize = 2;

/// Returns the index of a family in tables of both families.
pub(super) const fn place(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

/// Returns the octets of an IP header without options.
pub(super) const fn ip_header(family: Family) -> usize {
    match family {
        Family::V4 => ip::V4_HEADER_LEN,
        Family::V6 => ip::V6_HEADER_LEN,
    }
}

/// Returns the octets of the headers of a TCP segment without options.
pub(super) const fn headers(family: Family) -> usize {
    ip_header(family) + tcp::MIN_HEADER_LEN
}

/// Returns the lengths of a segment of `octets` octets, headers included, in a tunnel of its own
/// family. `None` if the segment is too short.
pub(super) fn computed(suite: Suite, family: Family, octets: usize) -> Option<Cost> {
    // All ESP is in UDP.
    let outer = ip_header(family) + udp::HEADER_LEN;
    let text = octets + plain_padding(suite, octets) + TRAILER;
    // Two peers of Strata use implicit IVs (RFC 8750).
    let iv = ZoneSuite::from(suite).iv_len();
    Some(Cost {
        plain: outer + HEADER_LEN + iv + text + suite.icv_len(),
        zoned: outer + layout(suite, family, octets)?.packet_len(),
    })
}

/// Returns the octets of padding in both forms of that packet.
pub(super) fn padding(suite: Suite, family: Family, octets: usize) -> Option<Cost> {
    let layout = layout(suite, family, octets)?;
    // The last octet of a body's padding is its length.
    let zones = layout
        .bodies()
        .iter()
        .map(|body| body.padding().len().saturating_sub(1));
    Some(Cost {
        plain: plain_padding(suite, octets),
        zoned: zones.sum(),
    })
}

fn plain_padding(suite: Suite, octets: usize) -> usize {
    let alignment = match suite.hash() {
        Some(_) => BLOCK,
        None => ALIGNMENT,
    };
    let text = octets + TRAILER;
    text.next_multiple_of(alignment) - text
}

fn layout(suite: Suite, family: Family, octets: usize) -> Option<Layout> {
    let headers = Run {
        zone: ZoneId::DESIGNATED,
        len: headers(family) as u16,
    };
    // The omission of the checksum does not change the length.
    let map = Map::new(ZoneId(ZONES as u8), &[headers], true).ok()?;
    Layout::of_datagram(map, &[ZoneSuite::from(suite); ZONES], octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Sha2;

    /// The expected numbers are counted by hand: a map and an ICV, less a pad length. With CBC, an
    /// IV and another pad length are added.
    #[test]
    fn zones_add_the_same_to_each_length_but_for_padding() {
        for (suite, expected) in [
            (Suite::Aes128Gcm16, 4 + 16 - 1),
            (Suite::Aes256Cbc(Sha2::Sha384), 4 + 16 + 24 + 1),
        ] {
            for (family, shortest) in [(Family::V4, 40), (Family::V6, 60)] {
                for octets in shortest..shortest + 40 {
                    let cost = computed(suite, family, octets).unwrap();
                    let padding = padding(suite, family, octets).unwrap();
                    assert_eq!(cost.added() - padding.added(), expected, "{octets}");
                }
                assert_eq!(computed(suite, family, shortest - 1), None);
            }
        }
    }

    #[test]
    fn a_bare_segment_in_blocks_counted_by_hand() {
        let cost = computed(Suite::Aes128Cbc(Sha2::Sha256), Family::V4, 40).unwrap();
        assert_eq!(cost.plain, 28 + 8 + 16 + 48 + 16);
        assert_eq!(cost.zoned, 28 + 8 + 4 + (16 + 48 + 16) + (16 + 16 + 16));
    }

    #[test]
    fn a_bare_segment_counted_by_hand() {
        let cost = computed(Suite::ChaCha20Poly1305, Family::V4, 40).unwrap();
        assert_eq!(cost.plain, 28 + 8 + 40 + 2 + 2 + 16);
        assert_eq!(cost.zoned, 28 + 8 + 4 + 40 + 1 + 16 + 16);
    }
}
