//! Invariant 1: no (key, nonce) pair is ever used twice.

use super::world::{GATEWAY, Hop, LICENSED, MOBILE, Policies, World};
use crate::Rekey;
use crypto::Rng;
use model::Keys;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Whose keys: the sender, both SPIs, and the message ID of an exchange that has keys of its own.
type Sealer = (usize, [u8; 16], Option<[u8; 4]>);

/// Every (key, sequence number) that sealed something, over the life of the world. The nonce is
/// salt and sequence number and the salt is a part of the key, so this pair is what must not recur.
#[derive(Default)]
pub struct Ledger {
    keys: BTreeMap<(usize, u32), Vec<u8>>,
    used: BTreeSet<(Vec<u8>, u32)>,
    /// IKE: sender and both SPIs (which stand for its key) and the IV, with what was sealed.
    messages: BTreeMap<(Sealer, [u8; 8]), Vec<u8>>,
    pub seen: usize,
}

impl Ledger {
    /// Looks up the keys of the SAs that exist now. An SPI may come again, with other keys.
    pub fn learn(&mut self, world: &World) {
        for who in [MOBILE, GATEWAY] {
            for (_, csa) in world.nodes[who].grants.iter() {
                let Keys::Zoned(zones) = &csa.outbound.keys else {
                    continue;
                };
                let keys: Vec<_> = zones.iter().map(|zone| zone.key.expose()).collect();
                let distinct: BTreeSet<_> = keys.iter().collect();
                assert_eq!(distinct.len(), keys.len(), "two zones share a key");
                self.keys.insert((who, csa.outbound.spi.0), keys.concat());
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

    /// A protected IKE message: its IV follows the header and the SK payload's own (RFC 5282
    /// section 3). The same IV may come again only with the same octets: a retransmission.
    fn enter_message(&mut self, who: usize, message: Vec<u8>) {
        const SK: u8 = 46;
        const IKE_INTERMEDIATE: u8 = 43;
        if message[16] != SK {
            return;
        }
        // Each such exchange makes all keys anew (RFC 9370 section 2.2.2), and its IVs begin again.
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

#[test]
fn no_key_and_nonce_pair_is_used_twice_over_a_day_of_losses_and_restarts() {
    let mut world = World::connected(Policies::default());
    let mut ledger = Ledger::default();
    let mut dice = Rng::from_seed([42; 32]);
    let bad = Hop {
        lost: 100,
        repeated: 50,
        delayed: 100,
    };
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
            3 => drop(world.nodes[MOBILE].down("gw", world.now)),
            4 => drop(world.nodes[MOBILE].up("gw", world.now)),
            5 => drop(world.nodes[MOBILE].rekey("gw", Rekey::Children, world.now)),
            6 => drop(world.nodes[MOBILE].rekey("gw", Rekey::Ike, world.now)),
            7 => drop(world.nodes[GATEWAY].rekey("alice", Rekey::Children, world.now)),
            8 => drop(world.nodes[GATEWAY].rekey("fa", Rekey::Ike, world.now)),
            9 => drop(world.nodes[MOBILE].reauthenticate("gw", world.now)),
            10 => drop(world.nodes[GATEWAY].reauthenticate("fa", world.now)),
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
