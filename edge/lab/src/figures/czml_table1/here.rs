//! How long packets of ours have to be, and what is padding in them.

use super::cost::Cost;
use ::wire::esp::HEADER_LEN;
use ::wire::zoned::{Layout, Map, Run};
use ::wire::{ip, tcp, udp};
use model::{Suite, ZoneId};
use os::Family;

/// Pad length and next header (RFC 4303 section 2).
const TRAILER: usize = 2;
/// What a plain packet's text is padded to (RFC 4303 section 2.4).
const ALIGNMENT: usize = 4;
/// Headers and the rest: the zones of every peer.
const ZONES: usize = 2;

/// Where a table of both families has this one.
pub(super) const fn place(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

/// Octets of an IP header without options.
pub(super) const fn ip_header(family: Family) -> usize {
    match family {
        Family::V4 => ip::V4_HEADER_LEN,
        Family::V6 => ip::V6_HEADER_LEN,
    }
}

/// Those of the headers of a TCP segment without options.
pub(super) const fn headers(family: Family) -> usize {
    ip_header(family) + tcp::MIN_HEADER_LEN
}

/// What a segment of so many octets, headers included, becomes in a tunnel of its own family. `None`
/// for one that is too short.
pub(super) fn computed(suite: Suite, family: Family, octets: usize) -> Option<Cost> {
    // All ESP is in UDP.
    let outer = ip_header(family) + udp::HEADER_LEN;
    let headers = Run {
        zone: ZoneId::DESIGNATED,
        len: headers(family) as u16,
    };
    // That the checksum is left out costs nothing.
    let map = Map::new(ZoneId(ZONES as u8), &[headers], true).ok()?;
    let layout = Layout::of_datagram(map, &[suite; ZONES], octets)?;
    Some(Cost {
        // Two of us use implicit IVs (RFC 8750).
        plain: outer + HEADER_LEN + octets + padding(octets) + TRAILER + suite.icv_len(),
        zoned: outer + layout.packet_len(),
    })
}

/// Octets of padding in a plain packet. Zones have none.
pub(super) const fn padding(octets: usize) -> usize {
    let text = octets + TRAILER;
    text.next_multiple_of(ALIGNMENT) - text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a map, an ICV, and no pad length.
    #[test]
    fn zones_add_nineteen_octets_and_save_the_padding() {
        for (family, shortest) in [(Family::V4, 40), (Family::V6, 60)] {
            for octets in shortest..shortest + 8 {
                let cost = computed(Suite::Aes128Gcm16, family, octets).unwrap();
                let added = cost.added() + padding(octets) as i64;
                assert_eq!(added, 4 + 16 - 1, "{octets}");
            }
            assert_eq!(computed(Suite::Aes128Gcm16, family, shortest - 1), None);
        }
    }

    #[test]
    fn a_bare_segment_counted_by_hand() {
        let cost = computed(Suite::ChaCha20Poly1305, Family::V4, 40).unwrap();
        assert_eq!(cost.plain, 28 + 8 + 40 + 2 + 2 + 16);
        assert_eq!(cost.zoned, 28 + 8 + 4 + 40 + 1 + 16 + 16);
    }
}
