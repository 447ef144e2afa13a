//! Invariant 1: no (key, nonce) pair is ever used twice.

use super::level::grant;
use super::world::{GATEWAY, Hop, Hosts, LICENSED, MOBILE, Policies, World, fixed_map};
use crate::Rekey;
use crypto::Rng;
use model::{Keys, LevelGrant, MapKind, Mode};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Sender, both SPIs, and the message ID for an exchange with its own keys.
type Sealer = (usize, [u8; 16], Option<[u8; 4]>);

/// Every (key, sequence number) that sealed a packet during the life of the world. The nonce is
/// salt and sequence number, and the salt is a part of the key, so this pair must never recur.
#[derive(Default)]
pub struct Ledger {
    keys: BTreeMap<(usize, u32), Vec<u8>>,
    used: BTreeSet<(Vec<u8>, u32)>,
    /// IKE messages: sender, both SPIs (which identify the key) and IV, with the sealed octets.
    messages: BTreeMap<(Sealer, [u8; 8]), Vec<u8>>,
    pub seen: usize,
}

impl Ledger {
    /// Looks up the keys of the current SAs. An SPI can be reused with other keys.
    pub fn learn(&mut self, world: &World) {
        for who in [MOBILE, GATEWAY] {
            for (_, csa) in world.nodes[who].own.licensing.grants().iter() {
                let Keys::Zoned(zones) = &csa.outbound.keys else {
                    continue;
                };
                let keys: Vec<_> = zones.iter().map(|zone| zone.key.expose()).collect();
                let distinct: BTreeSet<_> = keys.iter().collect();
                assert_eq!(distinct.len(), keys.len(), "two zones share a key");
                let keys = keys.concat();
                // The keys of companion SAs are derived from these and differ, which `ike` ensures.
                let besides = [(csa.opaque, "opaque"), (csa.integrity, "integrity")];
                for (spis, name) in besides {
                    let keys = [&keys[..], name.as_bytes()].concat();
                    let outbound = spis.map(|(_, outbound)| ((who, outbound.0), keys));
                    self.keys.extend(outbound);
                }
                self.keys.insert((who, csa.outbound.spi.0), keys);
            }
        }
    }

    pub fn enter(&mut self, world: &mut World) {
        for (who, packet) in world.sealed.drain(..) {
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            let (spi, seq) = (word(0), word(4));
            let key = self
                .keys
                .get(&(who, spi))
                .expect("every SA is known to the ledger")
                .clone();
            assert!(
                self.used.insert((key, seq)),
                "SPI {spi:08x} sequence number {seq} sealed twice"
            );
            self.seen += 1;
        }
        for (who, message) in world.ike.drain(..) {
            self.enter_message(who, message);
        }
    }

    /// Enters a protected IKE message. Its IV follows the header and the SK payload's own (RFC 5282
    /// section 3). The same IV may recur only with the same octets: a retransmission.
    fn enter_message(&mut self, who: usize, message: Vec<u8>) {
        const SK: u8 = 46;
        const IKE_INTERMEDIATE: u8 = 43;
        if message[16] != SK {
            return;
        }
        // Each such exchange replaces all keys (RFC 9370 section 2.2.2), and its IVs restart.
        let number: [u8; 4] = message[20..24].try_into().unwrap();
        let keys = (message[18] == IKE_INTERMEDIATE).then_some(number);
        let spis = message[..16].try_into().unwrap();
        let iv = message[32..40].try_into().unwrap();
        let first = self
            .messages
            .entry(((who, spis, keys), iv))
            .or_insert_with(|| message.clone());
        assert_eq!(*first, message, "an IV of an IKE SA sealed two messages");
    }
}

// Weakness: 75
// Weakness: S3
#[test]
fn no_key_and_nonce_pair_is_used_twice_over_a_day_of_losses_and_restarts() {
    a_day(MapKind::Changeable, Mode::Tunnel, None);
}

/// Every second packet uses the companion SA until its grant is used up. Then all packets are
/// zoned.
#[test]
fn no_pair_is_used_twice_where_some_go_without_encryption() {
    let level = Some(grant(20, 3600, u16::MAX));
    a_day(MapKind::Changeable, Mode::Tunnel, level);
    a_day(MapKind::Changeable, Mode::Beet, level);
}

/// Segments have the length of the map, or are sealed in the companion SA.
#[test]
fn no_pair_is_used_twice_where_the_map_is_fixed() {
    for len in [40, 44] {
        a_day(fixed_map(len), Mode::Tunnel, None);
    }
}

/// The SA of a datagram is selected before its header is removed and before it gets a number.
// Recovers: zones-in-modes
#[test]
fn no_pair_is_used_twice_where_the_ip_header_is_left_behind() {
    a_day(MapKind::Changeable, Mode::Beet, None);
    a_day(fixed_map(20), Mode::Beet, None);
}

fn a_day(map: MapKind, mode: Mode, level: Option<LevelGrant>) {
    let mut world = World::connected(Policies {
        map,
        mode,
        levels: [level; 2],
        every: 2,
        ..Policies::default()
    });
    let mut ledger = Ledger::default();
    let mut dice = Rng::from_seed([42; 32]);
    let bad = Hop::PERFECT.losing(100).repeating(50).delaying(100);
    (world.wireless, world.wired) = (bad, bad);
    for minute in 0..24 * 60 {
        ledger.learn(&world);
        for index in 0..4 {
            let from = if dice.u16().is_multiple_of(2) {
                MOBILE
            } else {
                GATEWAY
            };
            world.segment(from, minute * 10_000 + index * 1000, &[0; 1000]);
        }
        ledger.enter(&mut world);
        match dice.u16() % 60 {
            0 => world.restart(MOBILE),
            1 => world.restart(GATEWAY),
            2 => world.restart(LICENSED),
            3 => drop(world.command(MOBILE, |node, now| node.down("gw", now))),
            4 => drop(world.command(MOBILE, |node, now| node.up("gw", now))),
            5 => drop(world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Children, now))),
            6 => drop(world.command(MOBILE, |node, now| node.rekey("gw", Rekey::Ike, now))),
            7 => drop(world.command(GATEWAY, |node, now| {
                node.rekey("alice", Rekey::Children, now)
            })),
            8 => drop(world.command(GATEWAY, |node, now| node.rekey("fa", Rekey::Ike, now))),
            9 => drop(world.command(MOBILE, |node, now| node.reauthenticate("gw", now))),
            10 => drop(world.command(GATEWAY, |node, now| node.reauthenticate("fa", now))),
            _ => {}
        }
        world.run_for(Duration::from_secs(60));
        world.delivered = Default::default();
    }
    assert!(
        ledger.seen > 1000,
        "only {} packets were sealed",
        ledger.seen
    );
    assert!(
        ledger.keys.len() > 100,
        "only {} SAs were made",
        ledger.keys.len()
    );
    assert!(
        ledger.messages.len() > 1000,
        "only {} IKE messages were protected",
        ledger.messages.len()
    );
}
