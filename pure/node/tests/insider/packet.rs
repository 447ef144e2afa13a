//! Insiders on the data plane: a holder of an SA's keys seals whatever a script of octets
//! describes, with any map and any texts. An endpoint delivers or drops each packet once. A
//! licensed node opens or refuses it.
//!
//! ```text
//! script = kind (1) | packet, ...
//! packet = step (1) | words (1) | words | zones (1) | length (2) and text of each zone
//!          | [grant and counter (8) | length (2) and text of an overlay]
//!        | step (1) | 255 | grant (2) | length (2) and text of what is injected
//! ```
//!
//! An overlay is present if the kind is 128 or more: then a holder of all keys may write as well.
//! With bit 64 it may inject.

use super::bench::{
    EXPLICIT, Kind, TO_ALICE, TO_BOB, alices_sa, bobs_sa, endpoint, fix, injected, key,
    mapped_packet, open, overlaid, plain_packet, root, root_inj, three_zones, two_zones,
    with_injectors, with_writers,
};
use crypto::Secret;
use esp::{Licensed, Scratch};
use model::{CsaId, Grant, GrantHalf, MapKind, Spi, ZoneId};
use std::time::Duration;

const MOST_PACKETS: usize = 16;

/// The map of an SA with a fixed map, and its words.
const FIXED: (u8, u16) = (1, 40);
const FIXED_WORDS: [u8; 4] = [0x42, 1, 0, 40];

/// Plays one script to the end. Returns the number of delivered packets.
pub fn play(script: &[u8]) -> u64 {
    let mut script = Script(script);
    let first = script.octet();
    let number = usize::from(first) % 4;
    let kind = [EXPLICIT, two_zones(), three_zones(), two_zones()][number].clone();
    let is_fixed = number == 3;
    let more = !zones(&kind).is_empty() && !is_fixed;
    let (writes, injects) = (first & 128 != 0 && more, first & 64 != 0 && more);
    let mut bobs = bobs_sa(&kind);
    if is_fixed {
        (_, bobs) = fix(alices_sa(&kind), bobs, &[FIXED]);
    }
    let agreed = bobs.agreement.as_ref();
    let map = agreed.map_or(MapKind::Changeable, |agreed| agreed.map.clone());
    let bobs = if writes { with_writers(bobs) } else { bobs };
    let mut bob = endpoint(if injects { with_injectors(bobs) } else { bobs });
    let mut node = licensed(&kind, map);
    let mut scratch = Scratch::new();
    let mut seq = 0_u32;
    for _ in 0..MOST_PACKETS {
        if script.0.is_empty() {
            break;
        }
        seq = seq.wrapping_add(script.octet().into());
        let made = injects && script.0.first() == Some(&255);
        let mut packet = match made {
            true => script.injected(seq),
            false => script.packet(&kind, is_fixed, seq),
        };
        if writes && !made && packet.len() > 8 {
            let number = script.number();
            packet = overlaid(&packet, &root(TO_BOB), number, script.text());
        }
        let _ = open(&mut bob, &packet);
        if let Some(Ok(view)) = node.as_mut().map(|node| node.open(&packet, &mut scratch)) {
            assert!(view.payload_len() <= view.datagram_len());
            assert_eq!(
                view.zone(payload_zone(&kind)),
                None,
                "it has no key for that"
            );
        }
    }
    bob.counters().opened.packets
}

fn zones(kind: &Kind) -> &[(model::ZoneSelector, model::ZoneSuite)] {
    match kind {
        Kind::Plain { .. } => &[],
        Kind::Zoned(zones) => zones,
    }
}

fn payload_zone(kind: &Kind) -> ZoneId {
    ZoneId(zones(kind).len() as u8)
}

/// Returns a node with the keys of every zone except the payload's.
fn licensed(kind: &Kind, map: MapKind) -> Option<Licensed> {
    let (_, headers) = zones(kind).split_last()?;
    let half = |spi: u32| GrantHalf {
        spi: Spi(spi),
        zones: (1..)
            .zip(headers)
            .map(|(zone, (_, suite))| (ZoneId(zone), *suite, key(spi, zone, *suite)))
            .collect(),
        overlay: None,
        injection: None,
    };
    let mut node = Licensed::new();
    let grant = Grant {
        map,
        csa: CsaId(1),
        line: CsaId(1),
        grant: 1,
        payload_zone: payload_zone(kind),
        suites: zones(kind).iter().map(|(_, suite)| *suite).collect(),
        window: 4096,
        lifetime: Duration::from_secs(60),
        onward: None,
        from_gateway: half(TO_ALICE),
        to_gateway: half(TO_BOB),
    };
    node.install(grant).expect("the grant is sound");
    Some(node)
}

/// A script being read; zeros follow its end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn octet(&mut self) -> u8 {
        let (&octet, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        octet
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    fn text(&mut self) -> &'a [u8] {
        let len = u16::from_be_bytes([self.octet(), self.octet()]);
        self.take(usize::from(len) % 2048)
    }

    fn number(&mut self) -> u64 {
        let octets = [(); 8].map(|()| self.octet());
        u64::from_be_bytes(octets)
    }

    fn injected(&mut self, counter: u32) -> Vec<u8> {
        let [_, high, low] = [(); 3].map(|()| self.octet());
        let grant = u16::from_be_bytes([high, low]);
        injected(&root_inj(TO_BOB), (grant, counter), self.text())
    }

    /// With a fixed map the map's description is still read, but has no effect.
    fn packet(&mut self, kind: &Kind, is_fixed: bool, seq: u32) -> Vec<u8> {
        let words = usize::from(self.octet() % 9);
        let map = self.take(4 * words);
        let map = if is_fixed { &FIXED_WORDS } else { map };
        let mask = self.octet();
        if zones(kind).is_empty() {
            return plain_packet(seq, self.text());
        }
        let present = (1..)
            .zip(zones(kind))
            .filter(|(zone, _)| mask & (1 << zone) == 0);
        let keys: Vec<(u8, Secret)> = present
            .map(|(zone, (_, suite))| (zone, key(TO_BOB, zone, *suite)))
            .collect();
        let texts: Vec<&[u8]> = keys.iter().map(|_| self.text()).collect();
        mapped_packet(&keys, seq, (map, !is_fixed), &texts)
    }
}

/// Returns scripts of valid packets: opaque and in two runs, each also padded and followed by a
/// dummy, and one with a fixed map.
pub fn honest() -> Vec<Vec<u8>> {
    let mut datagram = vec![
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0x66, 0xc4, 10, 1, 0, 2, 10, 8, 0, 1,
    ];
    datagram.extend([
        0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0,
    ]);
    let plain = [&[0, 1, 0, 0, 0, 44][..], &datagram, &[1, 2, 2, 4]].concat();
    let opaque = [&[1, 1, 1, 1, 2, 0, 0, 2, 0, 41][..], &datagram, &[4]].concat();
    let clear = [&[1, 1, 1, 2, 1, 0, 40, 0, 0, 41][..], &datagram, &[4, 0, 0]].concat();
    let fixed = [&[3, 1, 0, 0, 0, 41][..], &datagram, &[4, 0, 0]].concat();
    let padding = [0; 200];
    let padded_plain = [
        &[0, 1, 0, 0, 0, 244][..],
        &datagram,
        &padding,
        &[1, 2, 2, 4],
    ]
    .concat();
    let dummy_plain = [1, 0, 0, 0, 6, 7, 7, 1, 2, 2, 59];
    let padded_clear = [
        &[1, 1, 1, 2, 1, 0, 40, 0, 0, 41][..],
        &datagram,
        &[4, 0, 200],
        &padding,
    ];
    let dummy_clear = [
        &[1, 1, 2, 1, 0, 40, 0, 0, 41][..],
        &datagram,
        &[59, 0, 200],
        &padding,
    ];
    // With the right to write: the window of the segment is lowered.
    let written = [
        &[129, 1, 1, 0x42, 1, 0, 40, 0, 0, 41][..],
        &datagram,
        &[4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 4, 34, 2, 0, 9],
    ]
    .concat();
    // With the right to inject: the segment arrives, and then its header is injected again.
    let mut said = [&datagram[..], &[4]].concat();
    said[36..38].fill(0);
    let repeated = [
        &[65, 1, 1, 0x42, 1, 0, 40, 0, 0, 41][..],
        &datagram,
        &[4, 0, 0, 1, 255, 0, 1, 0, 41],
        &said,
    ]
    .concat();
    vec![
        plain,
        opaque,
        clear,
        [&padded_plain[..], &dummy_plain].concat(),
        [padded_clear.concat(), dummy_clear.concat()].concat(),
        fixed,
        written,
        repeated,
    ]
}
