//! Packet loss of moves in a flow of a thousand packets a second to the mobile node. The lab's
//! `mml-handoff-loss` measures the same on a kernel; this test runs in virtual time.

use super::world::World;
use super::*;
use std::collections::BTreeSet;

/// Number of moves, as in the lab.
const MOVES: usize = 100;
/// Time with both links up, and then with one, in milliseconds.
const PHASE: u64 = 1100;
/// Delay of one hop in this world, in milliseconds: from home to a foreign agent, and from there to
/// the mobile node.
const LINK: u64 = 5;

/// A copy of a packet in transit through a foreign agent.
struct Copy {
    number: u64,
    agent: usize,
    /// Milliseconds since it was sent.
    age: u64,
}

/// The world, and a packet flow from home into it.
struct Flow {
    world: World,
    underway: Vec<Copy>,
    sent: u64,
    came: BTreeSet<u64>,
    /// Milliseconds since the last new packet arrived.
    silence: u64,
    longest: u64,
}

impl Flow {
    fn new(simultaneous: bool) -> Self {
        let config = MobileNodeConfig {
            simultaneous,
            ..mobile_config()
        };
        let mut world = World::with(2, 9, config, home_config());
        world.heard = vec![Some(WLAN[0]), None];
        world.mobile.interface_lost(WLAN[1], world.now);
        world.run_for(millis(5_000));
        world.assert_at(0);
        Self {
            world,
            underway: Vec::new(),
            sent: 0,
            came: BTreeSet::new(),
            silence: 0,
            longest: 0,
        }
    }

    /// Moves back and forth. The new link is up for a while before the old one is cut.
    fn travel(&mut self) {
        for number in 0..MOVES {
            let (left, right) = (number % 2, 1 - number % 2);
            self.world.heard[right] = Some(WLAN[right]);
            let now = self.world.now;
            self.world.mobile.interface_found(WLAN[right], now);
            self.run_for(PHASE);
            self.world.heard[left] = None;
            let now = self.world.now;
            self.world.mobile.interface_lost(WLAN[left], now);
            self.run_for(PHASE);
            assert_eq!(self.world.home.care_of(HOME), [agent(right as u8)]);
        }
        self.underway.clear();
    }

    fn run_for(&mut self, count: u64) {
        for _ in 0..count {
            self.world.run_for(millis(1));
            self.step();
        }
    }

    /// Advances packets in transit by a millisecond, and sends the next one to each care-of
    /// address.
    fn step(&mut self) {
        self.silence += 1;
        let mut arrived = Vec::new();
        let world = &self.world;
        self.underway.retain_mut(|copy| {
            copy.age += 1;
            if copy.age == LINK && !world.has_visitor(copy.agent) {
                return false;
            }
            if copy.age == 2 * LINK && world.heard[copy.agent].is_some() {
                arrived.push(copy.number);
            }
            copy.age < 2 * LINK
        });
        for number in arrived {
            let is_first = self.came.is_empty();
            if self.came.insert(number) {
                if !is_first {
                    self.longest = self.longest.max(self.silence);
                }
                self.silence = 0;
            }
        }
        for care_of in self.world.home.care_of(HOME) {
            let agents = 0..self.world.foreign.len();
            let agent = agents.into_iter().find(|&n| agent(n as u8) == care_of);
            self.underway.push(Copy {
                number: self.sent,
                agent: agent.expect("it is one of them"),
                age: 0,
            });
        }
        self.sent += 1;
    }

    /// Returns the lost packets, without those in transit at the end.
    fn lost(&self) -> u64 {
        self.sent - 2 * LINK - self.came.len() as u64
    }
}

/// Lost are the packets in transit, and those sent until home learns of the move: a round trip for
/// each move to the less preferred agent. A move to the other agent happens while the old link is
/// still up.
#[test]
fn with_one_binding_a_move_loses_what_a_round_trip_holds() {
    let mut flow = Flow::new(false);
    flow.travel();
    let round_trip = 4 * LINK;
    // The packet sent in the millisecond of the home agent's update already takes the new path.
    assert_eq!(flow.lost(), MOVES as u64 / 2 * (round_trip - 1));
    assert_eq!(flow.longest, round_trip);
}

// Recovers: mobile-ip
#[test]
fn with_simultaneous_bindings_no_move_loses_a_packet() {
    let mut flow = Flow::new(true);
    flow.travel();
    assert_eq!((flow.lost(), flow.longest), (0, 1));
}
