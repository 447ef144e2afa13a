//! Random walks of two ends.
//!
//! Both ends may initiate, move, rekey, delete and restart at any time, over a network that loses,
//! duplicates and reorders. Then the network recovers, and after some time both ends agree. Finally
//! one end deletes everything, and nothing is left. No child's key is ever used for another child.
//!
//! The operations on whole nodes, with a licensed node and its grants, are in `node`. Here the
//! exchanges collide in every order. To run other walks, or one that failed:
//! `STRATA_WALKS=FIRST,COUNT cargo test -p ike --lib walk`.

use super::mobike::{CELL, roaming, to};
use super::pair::{Host, LEFT, Pair, Side, keys_of};
use super::rekey::{rekey_child, rekey_ike};
use super::*;
use crate::{Engine, Event, SaState};
use crypto::Rng;
use model::Kem;
use std::collections::BTreeSet;

/// Nodes that may have licences.
const NODES: [&str; 2] = ["fa.example.net", "fb.example.net"];

/// Events in one walk.
const STEPS: u32 = 12;

/// A walk and its number.
struct Walk {
    pair: Pair,
    rng: Rng,
    number: u32,
    /// Inbound keys of all children that the left end has had, from the first `seen` of its events.
    keys: BTreeSet<Vec<Vec<u8>>>,
    seen: usize,
    restarts: u8,
}

fn ends(number: u32) -> (Config, Config) {
    let (mut left, mut right) = roaming();
    if number.is_multiple_of(7) {
        (left, right) = mode::mobile_ends(Mode::Beet);
    }
    if number.is_multiple_of(21) {
        (left, right) = mode::zoned_ends(Mode::Beet);
    }
    for config in [&mut left, &mut right] {
        let peer = &mut config.peers[0];
        peer.liveness = Duration::from_secs(20);
        peer.features.clones = !number.is_multiple_of(7);
        if number.is_multiple_of(4) {
            peer.kems = vec![Some(Kem::MlKem512)];
        }
        // Additional children have key exchanges that continue, or one end requests none.
        if number.is_multiple_of(8) {
            peer.kems.push(None);
        }
        if number.is_multiple_of(9) {
            peer.features.resources = 3;
        }
        peer.features.esn = number.is_multiple_of(6);
        peer.window = [1, 4, 64][number as usize % 3];
    }
    if number.is_multiple_of(5) {
        right.peers[0].window = 2;
    }
    if number.is_multiple_of(12) {
        right.peers[0].features.esn = false;
    }
    if number.is_multiple_of(16) {
        right.peers[0].lifetimes.pfs = false;
    }
    if number.is_multiple_of(20) {
        left.peers[0].kems = vec![None, Some(Kem::MlKem512)];
    }
    if is_zoned(number) {
        for config in [&mut left, &mut right] {
            let zones = zones_of(config);
            *zones = two_zones(Stance::Require, NODES[0]);
            if number.is_multiple_of(2) {
                zones.map = fixed_map(52);
            }
            if number.is_multiple_of(3) {
                zones.level = Some(grant());
            }
        }
    }
    if number.is_multiple_of(3) {
        let (with, against) = children::ends();
        left.peers[0].children = with.peers[0].children.clone();
        right.peers[0].children = against.peers[0].children.clone();
    }
    (left, right)
}

/// Returns true for walks in which licences change. Those in BEET mode have other zones.
const fn is_zoned(number: u32) -> bool {
    number % 5 == 1 && !number.is_multiple_of(7)
}

fn fresh(side: Side, number: u32, restarts: u8) -> Host {
    let (left, right) = ends(number);
    let config = match side {
        Side::Left => left,
        Side::Right => right,
    };
    Host::seeded(config, number as u8, 10 + 2 * restarts + side as u8)
}

impl Walk {
    fn new(number: u32) -> Self {
        let (left, right) = ends(number);
        let mut seed = [7; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        Self {
            pair: Pair::seeded(left, right, number as u8),
            rng: Rng::from_seed(seed),
            number,
            keys: BTreeSet::new(),
            seen: 0,
            restarts: 0,
        }
    }

    fn chance(&mut self, of: u32) -> u32 {
        self.rng.u32() % of
    }

    /// Performs one event, often together with the next.
    fn step(&mut self) {
        let side = [Side::Left, Side::Right][self.chance(2) as usize];
        match self.chance(16) {
            0..=3 => self.rekey(side, rekey_ike),
            4..=7 => self.rekey(side, rekey_child),
            8 => self.close(side),
            9 => self.restart(side),
            10 | 11 => self.move_left(),
            12 => self.pair.lose(),
            13 => self.weather(),
            14 => self.hand_over(),
            15 if self.number.is_multiple_of(3) => self.open_or_close(side),
            15 if is_zoned(self.number) => self.license(side),
            _ => {}
        }
        self.begin_if_down(side);
        let millis = [0, 10, 25, 300, 3000, 40_000][self.chance(6) as usize];
        self.pair.run_for(Duration::from_millis(millis));
        self.look();
    }

    fn weather(&mut self) {
        let [lost, repeated, delayed] = [(); 3].map(|()| self.chance(400) as u16);
        self.pair.hop = self
            .pair
            .hop
            .losing(lost)
            .repeating(repeated)
            .delaying(delayed);
    }

    fn rekey(&mut self, side: Side, rekey: fn(&mut Pair, Side)) {
        let host = self.pair.host(side);
        if host.up() == 1 && !host.children().is_empty() {
            rekey(&mut self.pair, side);
        }
    }

    /// Opens or closes the additional child, as an operator would.
    fn open_or_close(&mut self, side: Side) {
        let open = self.chance(2) == 0;
        let peer = self.pair.host(side).engine.config.peers[0].id;
        let said = self.pair.with(side, |engine, now| match open {
            true => engine.open_child(peer, "voice", now),
            false => engine.close_child(peer, "voice", now),
        });
        said.expect("it is configured");
    }

    /// Reloads an end's configuration, with licences for any of two nodes.
    fn license(&mut self, side: Side) {
        let which = self.chance(4);
        let nodes = NODES.into_iter().zip([1, 2]);
        let nodes = nodes.filter(|(_, bit)| which & bit != 0);
        let mut config = (*self.pair.host(side).engine.config).clone();
        zones_of(&mut config).licences = nodes.map(|(node, _)| licence(node)).collect();
        let reconfigure = |engine: &mut Engine, now| engine.reconfigure(config, now);
        assert_eq!(self.pair.with(side, reconfigure), []);
    }

    /// Returns true if the newest child has the licences that both ends have.
    fn is_licensed(&mut self) -> bool {
        let wanted = [Side::Left, Side::Right].map(|side| {
            let mut config = (*self.pair.host(side).engine.config).clone();
            zones_of(&mut config).licences.clone()
        });
        let [mut both, theirs] = wanted;
        both.retain(|licence| theirs.contains(licence));
        let ends = [&self.pair.left, &self.pair.right];
        let agreed = |host: &Host| Some(host.newest().agreement.as_ref()?.licences.clone());
        ends.into_iter()
            .all(|host| agreed(host) == Some(both.clone()))
    }

    fn close(&mut self, side: Side) {
        let sas = self.sas(side);
        for sa in sas {
            self.pair.with(side, |engine, now| engine.close(sa, now));
        }
    }

    fn sas(&mut self, side: Side) -> Vec<model::IkeSaId> {
        let sas = self.pair.host(side).engine.sas();
        let up = sas.filter(|sa| sa.state == SaState::Established);
        up.map(|sa| sa.id).collect()
    }

    /// Restarts an end without notice.
    fn restart(&mut self, side: Side) {
        self.restarts += 1;
        let host = fresh(side, self.number, self.restarts);
        self.look();
        self.pair.restart(side, host);
        if side == Side::Left {
            self.seen = 0;
        }
    }

    /// Hands SAs over to another path. This works only for SAs that this end initiated, that may be
    /// cloned, and that are not being replaced.
    fn hand_over(&mut self) {
        let path = to([LEFT, CELL][self.chance(2) as usize]);
        for sa in self.sas(Side::Left) {
            let cloned = |engine: &mut Engine, now| engine.hand_over(sa, path, now).is_ok();
            self.pair.with(Side::Left, cloned);
        }
    }

    /// Moves the SAs that the left end initiated.
    fn move_left(&mut self) {
        let path = to([LEFT, CELL][self.chance(2) as usize]);
        for sa in self.sas(Side::Left) {
            let moved = |engine: &mut Engine, now| engine.move_to(sa, path, now).is_ok();
            self.pair.with(Side::Left, moved);
        }
    }

    /// Initiates from an end without SAs; sometimes both ends initiate at once.
    fn begin_if_down(&mut self, side: Side) {
        if self.pair.host(side).engine.sas().next().is_none() {
            self.pair.initiate(side);
        }
    }

    /// Checks "no key twice" for the children of the left end, over all restarts.
    fn look(&mut self) {
        let events = &self.pair.left.events[self.seen..];
        let children = events.iter().filter_map(|event| match event {
            Event::ChildUp(child) => Some(&**child),
            Event::ChildRekeyed { new, .. } => Some(&**new),
            _ => None,
        });
        for child in children {
            for half in [&child.inbound, &child.outbound] {
                assert!(self.keys.insert(keys_of(half)), "a key came twice");
            }
        }
        self.seen = self.pair.left.events.len();
    }

    /// Restores the network; an end that stays down initiates again.
    fn calm_down(&mut self) {
        self.pair.hop = self.pair.hop.healed();
        for (side, peer) in [(Side::Left, "gateway"), (Side::Right, "mobile")] {
            self.pair
                .with(side, |engine, now| engine.bar(peer_id(peer), false, now));
        }
        for _ in 0..6 {
            self.pair.run_for(Duration::from_secs(200));
            self.begin_if_down(Side::Left);
        }
        self.pair.run_for(Duration::from_secs(200));
        self.look();
    }

    fn is_agreed(&self) -> bool {
        let (left, right) = (&self.pair.left, &self.pair.right);
        let spis = |host: &Host| {
            let mut up = host.engine.sas();
            up.find(|sa| sa.state == SaState::Established)
                .map(|sa| (sa.spi_i, sa.spi_r))
        };
        let both: &[Option<&str>] = &[None, Some("voice")];
        let names = match self.number.is_multiple_of(3) {
            true => both,
            false => &both[..1],
        };
        let one = left.up() == 1 && right.up() == 1;
        // Children for the same traffic have names of their own at each end.
        let fit = match self.number.is_multiple_of(9) {
            true => resource::all_fit(&self.pair, names.len() + 2),
            false => children::agree(&self.pair, names),
        };
        one && spis(left) == spis(right) && fit
    }

    /// Ends all SAs; returns true if nothing is left.
    fn end(&mut self) -> bool {
        self.close(Side::Left);
        self.pair.run_for(Duration::from_secs(400));
        let left_over = |host: &Host| host.engine.sas().count() + host.children().len();
        left_over(&self.pair.left) + left_over(&self.pair.right) == 0
    }
}

fn walk(number: u32) {
    let mut walk = Walk::new(number);
    walk.pair.initiate(Side::Left);
    for _ in 0..STEPS {
        walk.step();
    }
    walk.calm_down();
    let told = || format!("walk {number}: STRATA_WALKS={number},1");
    assert!(walk.is_agreed(), "{}", told());
    if is_zoned(number) {
        assert!(walk.is_licensed(), "other licences in {}", told());
    }
    assert!(walk.end(), "something is left over in {}", told());
}

#[test]
fn whatever_meets_in_any_order_both_ends_agree_and_every_sa_ends() {
    let walks = effort::runs("walks", 500, 10_000);
    let walks = walks.start as u32..walks.end as u32;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mine = (walks.start + thread..walks.end).step_by(threads as usize);
            scope.spawn(move || mine.for_each(walk));
        }
    });
}
