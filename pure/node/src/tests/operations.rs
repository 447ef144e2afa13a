//! Random operations, in any order, on two endpoints, a licensed node and the network between them.
//! The invariants are checked after every step. At the end both ends have to agree, and traffic has
//! to flow.
//!
//! A failure is reduced to the shortest list of operations that still fails. The list goes into
//! `FOUND`, under a name that describes the defect. To run other seeds and more lists:
//! `STRATA_OPERATIONS=SEED,LISTS cargo test -p node --lib operations`.

use super::clone;
use super::ledger::Ledger;
use super::level::grant;
use super::world::{
    Flight, GATEWAY, Hop, Hosts, LICENSED, MOBILE, NAMES, Nat, Policies, World, address, fixed_map,
    license,
};
use crate::Rekey::Children;
use crypto::Rng;
use model::{MapKind, Mode, Path, ZoneId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// One operation. A choice among existing things accepts any number.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// An application sends a burst.
    Send {
        from: usize,
        datagrams: u8,
        octets: u16,
    },
    /// Both hops lose, repeat and delay packets, in per mille.
    Weather {
        lost: u16,
        repeated: u16,
        delayed: u16,
    },
    /// Time passes.
    Wait { millis: u64 },
    /// The operator of the mobile node requests the tunnel, or closes it.
    Tunnel { up: bool },
    /// The gateway's operator brings the licensed node up or down.
    Licence { given: bool },
    /// The gateway closes the tunnel and refuses the mobile node, or accepts it again.
    Gate { open: bool },
    /// An end rekeys the tunnel or its IKE SA.
    Rekey { who: usize, ike: bool },
    /// The mobile node hands its tunnel over to a clone of its IKE SA.
    HandOver,
    /// A host reloads its configuration, with or without a licence.
    Reconfigure { who: usize, licensed: bool },
    /// A process is killed, and another takes its place.
    Restart { who: usize },
    /// A host is cut off, or reconnected.
    Power { who: usize, on: bool },
    /// The mobile node appears with another address.
    Rebind { address: u8 },
    /// An old datagram is replayed, from its source or from elsewhere.
    Replay { which: u8, elsewhere: bool },
    /// An old datagram is replayed with one bit flipped.
    Flip { which: u8, bit: u16 },
    /// The operator of an end requests the second tunnel, or closes it. Worlds with this operation
    /// have one.
    Voice { who: usize, open: bool },
    /// Random octets are sent to the IKE and ESP inputs.
    Garbage { to: usize, octets: u16, seed: u8 },
}

use Operation::*;

/// Name of the tunnel at each end.
const TUNNELS: [&str; 2] = ["gw", "alice"];

/// Lists that failed in the past.
const FOUND: &[(&str, &[Operation])] = &[
    (
        "who is too busy to answer looks for the mobile node where a NAT had it before",
        &[
            Rebind { address: 1 },
            Rekey { who: 1, ike: true },
            Rekey { who: 0, ike: false },
        ],
    ),
    (
        "a rekey on the IKE SA that was cloned replaces the child of the clone, with its licences",
        &[
            Send {
                from: 0,
                datagrams: 9,
                octets: 0,
            },
            Weather {
                lost: 146,
                repeated: 17,
                delayed: 187,
            },
            Rekey { who: 0, ike: true },
            Send {
                from: 1,
                datagrams: 7,
                octets: 1,
            },
            HandOver,
            Wait { millis: 680 },
            Reconfigure {
                who: 0,
                licensed: false,
            },
            Wait { millis: 0 },
        ],
    ),
];

fn operation() -> impl Strategy<Value = Operation> {
    let host = 0..3_usize;
    let end = 0..2_usize;
    prop_oneof![
        8 => (end, 1..12_u8, 0..1300_u16)
            .prop_map(|(from, datagrams, octets)| Send { from, datagrams, octets }),
        3 => (0..400_u16, 0..300_u16, 0..500_u16)
            .prop_map(|(lost, repeated, delayed)| Weather { lost, repeated, delayed }),
        4 => (0..3_000_u64).prop_map(|millis| Wait { millis }),
        3 => (0..200_u64).prop_map(|seconds| Wait { millis: seconds * 1000 }),
        1 => (0..3_u64).prop_map(|days| Wait { millis: days * 86_400_000 }),
        2 => any::<bool>().prop_map(|up| Tunnel { up }),
        2 => any::<bool>().prop_map(|given| Licence { given }),
        2 => any::<bool>().prop_map(|open| Gate { open }),
        4 => (0..2_usize, any::<bool>()).prop_map(|(who, ike)| Rekey { who, ike }),
        2 => Just(HandOver),
        2 => (0..2_usize, any::<bool>())
            .prop_map(|(who, licensed)| Reconfigure { who, licensed }),
        3 => host.clone().prop_map(|who| Restart { who }),
        3 => (host.clone(), any::<bool>()).prop_map(|(who, on)| Power { who, on }),
        2 => (0..4_u8).prop_map(|address| Rebind { address }),
        5 => (any::<u8>(), any::<bool>())
            .prop_map(|(which, elsewhere)| Replay { which, elsewhere }),
        5 => (any::<u8>(), any::<u16>()).prop_map(|(which, bit)| Flip { which, bit }),
        2 => (0..2_usize, any::<bool>()).prop_map(|(who, open)| Voice { who, open }),
        2 => (host, 0..1500_u16, any::<u8>())
            .prop_map(|(to, octets, seed)| Garbage { to, octets, seed }),
    ]
}

/// The world under test, with its observations.
struct Trial {
    world: World,
    ledger: Ledger,
    /// Datagrams sent into a tunnel and not delivered yet, by host.
    outstanding: [BTreeSet<Vec<u8>>; 2],
    sent: u32,
}

impl Trial {
    fn new(voice: bool, (map, mode): (MapKind, Mode)) -> Self {
        let policies = Policies {
            voice,
            kem: voice,
            esn: [voice; 2],
            map,
            mode,
            levels: [voice.then(|| grant(30, 600, 3)); 2],
            every: 2,
            ..Policies::default()
        };
        Self {
            world: World::connected(policies),
            ledger: Ledger::default(),
            outstanding: Default::default(),
            sent: 0,
        }
    }

    fn apply(&mut self, operation: Operation) {
        let world = &mut self.world;
        match operation {
            Send {
                from,
                datagrams,
                octets,
            } => self.send(from, datagrams, octets),
            Weather {
                lost,
                repeated,
                delayed,
            } => {
                let hop = Hop::PERFECT
                    .losing(lost)
                    .repeating(repeated)
                    .delaying(delayed);
                (world.wireless, world.wired) = (hop, hop);
            }
            Wait { millis } => world.run_for(Duration::from_millis(millis)),
            Tunnel { up: true } => world
                .command(MOBILE, |node, now| node.up("gw", now))
                .unwrap(),
            Tunnel { up: false } => world
                .command(MOBILE, |node, now| node.down("gw", now))
                .unwrap(),
            Licence { given: true } => world
                .command(GATEWAY, |node, now| node.up("fa", now))
                .unwrap(),
            Licence { given: false } => world
                .command(GATEWAY, |node, now| node.down("fa", now))
                .unwrap(),
            Gate { open: true } => world
                .command(GATEWAY, |node, now| node.up("alice", now))
                .unwrap(),
            Gate { open: false } => world
                .command(GATEWAY, |node, now| node.down("alice", now))
                .unwrap(),
            Rekey { who, ike } => {
                let what = if ike { crate::Rekey::Ike } else { Children };
                // Refused while there is no SA to rekey.
                let _ = world.command(who, |node, now| node.rekey(TUNNELS[who], what, now));
            }
            HandOver => {
                // Refused while there is no SA to hand over.
                let _ = clone::hand_over(world);
            }
            Reconfigure { who, licensed } => license(world, who, licensed),
            Restart { who } => world.restart(who),
            Power { who, on } => world.off[who] = !on,
            Rebind { address } => {
                world.nat = Nat {
                    outside: [192, 0, 2, 2 + address].into(),
                    shift: u16::from(address) * 1000,
                };
            }
            Replay { which, elsewhere } => self.replay(which, elsewhere),
            Flip { which, bit } => self.flip(which, bit),
            Voice { who, open } => {
                let said = world.command(who, |node, now| match open {
                    true => node.open_child(TUNNELS[who], "voice", now),
                    false => node.close_child(TUNNELS[who], "voice", now),
                });
                said.unwrap();
            }
            Garbage { to, octets, seed } => self.throw(to, octets, seed),
        }
    }

    fn send(&mut self, from: usize, datagrams: u8, octets: u16) {
        for _ in 0..datagrams {
            self.sent += 1;
            let payload = vec![self.sent as u8; octets.into()];
            self.ledger.learn(&self.world);
            let datagram = self.world.segment(from, self.sent * 1400, &payload);
            let datagram = self.world.carried(&datagram);
            self.outstanding[from].insert(datagram);
        }
    }

    fn past(&self, which: u8) -> Option<Flight> {
        let past = &self.world.past;
        let index = past.len().checked_sub(1 + usize::from(which))?;
        past.get(index).cloned()
    }

    fn replay(&mut self, which: u8, elsewhere: bool) {
        let Some(mut flight) = self.past(which) else {
            return;
        };
        if elsewhere {
            flight.path.local = "192.0.2.99:4500".parse().unwrap();
        }
        self.world.inject(flight);
    }

    fn flip(&mut self, which: u8, bit: u16) {
        let Some(mut flight) = self.past(which) else {
            return;
        };
        let bit = usize::from(bit) % (flight.payload.len() * 8);
        flight.payload[bit / 8] ^= 1 << (bit % 8);
        self.world.inject(flight);
    }

    fn throw(&mut self, to: usize, octets: u16, seed: u8) {
        let mut rng = Rng::from_seed([seed; 32]);
        let port = if seed.is_multiple_of(2) { 500 } else { 4500 };
        let path = Path::udp(
            "192.0.2.99:4500".parse().unwrap(),
            SocketAddr::new(address(to), port),
        );
        self.world.inject(Flight {
            path,
            payload: (0..octets).map(|_| rng.u16() as u8).collect(),
            passed: to != GATEWAY,
        });
    }

    /// Checks the invariants that are visible from outside.
    fn check(&mut self) {
        self.ledger.enter(&mut self.world);
        for (from, to) in [(MOBILE, GATEWAY), (GATEWAY, MOBILE)] {
            for datagram in std::mem::take(&mut self.world.delivered[to]) {
                let datagram = self.world.carried(&datagram);
                assert!(
                    self.outstanding[from].remove(&datagram),
                    "{} was given what nobody sent, or twice",
                    NAMES[to]
                );
            }
        }
        for held in self.world.nodes[LICENSED].held_grants() {
            assert_eq!(held.zones, [ZoneId::DESIGNATED], "keys to a payload");
        }
        self.check_bounds();
    }

    /// Checks that a few peers cost few SAs, grants and flows, whatever they do.
    fn check_bounds(&mut self) {
        for node in &self.world.nodes {
            let children: usize = node.peers().iter().map(|peer| peer.children.len()).sum();
            assert!(children <= 16, "{children} child SAs");
            assert!(node.composite_sas().len() <= 16);
            assert!(node.held_grants().len() <= 16);
            assert!(node.flows().len() <= 256);
        }
        self.world.events = Default::default();
        self.world.dropped = Default::default();
    }

    /// Ends the disturbances and checks that the world recovers within a few minutes.
    fn settle(&mut self) {
        let world = &mut self.world;
        let tunnels = 1 + usize::from(world.policies.voice);
        (world.wireless, world.wired) = (Hop::PERFECT, Hop::PERFECT);
        world.off = [false; 3];
        for who in [MOBILE, GATEWAY] {
            license(world, who, true);
        }
        world
            .command(GATEWAY, |node, now| node.up("alice", now))
            .unwrap();
        world
            .command(MOBILE, |node, now| node.up("gw", now))
            .unwrap();
        world
            .command(GATEWAY, |node, now| node.up("fa", now))
            .unwrap();
        world.run_for(Duration::from_secs(300));
        // A rekey may be in progress.
        for _ in 0..60 {
            if world.tunnel_is_up() && world.nodes[LICENSED].held_grants().len() == tunnels {
                break;
            }
            world.run_for(Duration::from_secs(1));
        }
        self.check();
        assert!(self.world.tunnel_is_up(), "no tunnel after five minutes");
        assert_eq!(
            self.world.spis(MOBILE),
            self.world.spis(GATEWAY),
            "different SAs"
        );
        assert_eq!(self.world.nodes[LICENSED].held_grants().len(), tunnels);
        self.outstanding = Default::default();
        self.send(MOBILE, 5, 100);
        self.send(GATEWAY, 5, 1300);
        self.world.run_for(Duration::from_secs(1));
        self.check();
        assert!(
            self.outstanding.iter().all(BTreeSet::is_empty),
            "traffic does not arrive"
        );
    }
}

fn run(operations: &[Operation]) {
    let voice = |operation: &Operation| matches!(operation, Voice { .. });
    // The kind depends only on the length of the list, so that a failure can be reproduced.
    let kind = match operations.len() % 4 {
        0 => (fixed_map(40), Mode::Tunnel),
        1 => (MapKind::Changeable, Mode::Beet),
        _ => (MapKind::Changeable, Mode::Tunnel),
    };
    let mut trial = Trial::new(operations.iter().any(voice), kind);
    for operation in operations {
        trial.apply(*operation);
        trial.check();
    }
    trial.settle();
}

#[test]
fn whatever_happens_in_any_order_both_ends_agree_in_the_end() {
    // The first number is the seed of all lists.
    let lists = effort::runs("operations", 12, 1_000);
    let (seed, lists) = (lists.start, (lists.end - lists.start) as u32);
    println!("seed {seed}, {lists} lists of operations");
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_be_bytes());
    let config = Config {
        cases: lists,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &octets);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let lists = prop::collection::vec(operation(), 1..40);
    let outcome = runner.run(&lists, |operations| {
        run(&operations);
        Ok::<(), TestCaseError>(())
    });
    if let Err(TestError::Fail(why, operations)) = outcome {
        panic!("{why}\nto be added to FOUND, under a name:\n&{operations:?}");
    }
    outcome.expect("the lists can be made");
}

#[test]
fn lists_that_failed_once_do_not_fail_again() {
    for (name, operations) in FOUND {
        println!("{name}");
        run(operations);
    }
}
