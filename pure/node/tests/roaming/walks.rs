//! Random walks: after any sequence of operations both ends agree, the session is alive, and no
//! agent has read packets that were not for it.

use super::hosts::{AGENT, AGENTS, HOME, HOSTS, MOBILE, Policies};
use super::world::{Hop, Hosts, World};
use node::{Handover, Rekey};
use std::time::Duration;

/// Number of walks in the suite, and in its long form.
const WALKS: [u64; 2] = [300, 10_000];
const THREADS: u64 = 4;

/// Hand-over modes, with an equal share each.
const WAYS: [Handover; 3] = [Handover::Push, Handover::Pkd, Handover::Dkm];

/// Time of recovery in seconds.
const PATIENCE: u32 = 300;

/// Exchange that distributes keys to nodes.
const KEY_DISTRIBUTE: u8 = 240;

/// Number of operations in a walk.
const STEPS: u32 = 12;

/// Number of agents that share keys, if any do.
const HOLDERS: usize = 2;

// Recovers: handover
// Weakness: S27
// Weakness: S34
#[test]
fn walks_end_with_ends_that_agree() {
    walk_all("roaming_walks", |seed| {
        Policies::new(WAYS[seed as usize % WAYS.len()])
    });
}

/// The same number of walks with agents that share keys: few agents ever hold the keys of a slot.
// Recovers: handover-shared
// Weakness: S31
#[test]
fn walks_among_agents_that_share_keys_end_with_ends_that_agree() {
    walk_all("roaming_shared_walks", |seed| {
        let mut policies = Policies::shared(HOLDERS);
        if seed % 2 == 0 {
            // More agents are near than may hold the keys.
            policies.neighbours = Policies::new(Handover::Pkd).neighbours;
        }
        policies
    });
}

/// The same number of walks with a mobile node that licenses the agents by their domain, and learns
/// where they are: nobody reads behind it either.
// Recovers: licence-domain
#[test]
fn walks_of_a_mobile_node_that_licenses_a_domain_end_with_ends_that_agree() {
    walk_all("roaming_domain_walks", |seed| {
        Policies::by_domain(WAYS[seed as usize % 2], 1 + (seed / 2 % 4) as u8)
    });
}

fn walk_all(name: &str, policies: impl Fn(u64) -> Policies + Sync) {
    let policies = &policies;
    let [few, all] = WALKS;
    let walks = effort::runs(name, few, all);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let walks = walks.clone();
            scope.spawn(move || {
                let mine = walks.filter(|seed| seed % THREADS == thread);
                mine.for_each(|seed| walk(policies(seed), seed));
            });
        }
    });
}

/// Negative control: without a rekey before another agent gets the keys. Home is configured to
/// allow all agents.
#[test]
#[should_panic(expected = "3 agents have the key of")]
fn the_world_sees_keys_that_too_many_share() {
    let mut world = World::at(Policies::shared(HOLDERS + 1), 0);
    for agent in [1, 2] {
        world.move_to(agent);
        assert!(world.run_until(Duration::from_secs(20), |world| world.reads(agent)));
    }
    world.holders.assert_few(HOLDERS);
}

/// Negative control: an agent gets keys without ever being near. Home assumes neighbours that the
/// agents do not name.
#[test]
#[should_panic(expected = "and was not near")]
fn the_world_sees_keys_of_an_agent_that_is_not_near() {
    let mut world = World::new(Policies::shared(HOLDERS), 7);
    world.policies.neighbours[0].clear();
    world.set_link(0, true);
    world.run_for(Duration::from_secs(10));
    world.holders.assert_few(HOLDERS);
}

/// A move by DKM without new keys from the gateway, so that both ends use the full two seconds.
fn move_without_new_keys(timeless: Option<usize>) -> World {
    let mut world = World::at(Policies::new(Handover::Dkm), 0);
    world.silent_in = Some((HOME, KEY_DISTRIBUTE));
    world.move_to(1);
    assert!(world.run_until(Duration::from_secs(20), |world| world.is_at(1)));
    world.timeless = timeless;
    for seq in 0..30 {
        world.segment(MOBILE, seq);
        world.segment(HOME, seq);
        world.run_for(Duration::from_millis(100));
    }
    world
}

#[test]
fn by_dkm_who_was_left_may_read_for_two_seconds() {
    move_without_new_keys(None)
        .witness
        .assert_nobody_read_behind();
}

/// Negative control: with no time allowed.
#[test]
#[should_panic(expected = "fa.example.net has the key of")]
fn the_witness_sees_what_is_sealed_for_an_agent_that_was_left() {
    let mut world = move_without_new_keys(None);
    world.witness.allowed = Duration::ZERO;
    world.witness.assert_nobody_read_behind();
}

#[test]
#[should_panic(expected = "gw.example.net seals for {1}")]
fn the_witness_sees_an_end_that_goes_on_for_longer() {
    let world = move_without_new_keys(Some(HOME));
    world.witness.assert_nobody_read_behind();
}

#[test]
#[should_panic(expected = "fb.example.net keeps")]
fn the_witness_sees_an_agent_that_keeps_for_longer_what_it_has_of_another_one() {
    move_without_new_keys(Some(AGENT + 1));
}

fn walk(mut policies: Policies, seed: u64) {
    let shared = policies.holders[HOME];
    policies.simultaneous = (seed / WAYS.len() as u64).is_multiple_of(3);
    let mut world = World::new(policies, seed);
    world.set_link(0, true);
    let mut seq = 0;
    for _ in 0..STEPS {
        happen(&mut world);
        let pause = u64::from(world.network.rng.u16() % 3000);
        for _ in 0..3 {
            seq += 1;
            world.segment(MOBILE, seq);
            world.segment(HOME, seq);
            world.run_for(Duration::from_millis(pause / 3));
        }
    }
    let agent = usize::from(world.network.rng.u16()) % AGENTS;
    (world.wireless, world.wired) = (Hop::PERFECT, Hop::PERFECT);
    for host in 0..HOSTS {
        if world.off[host] {
            world.switch(host);
        }
    }
    world.move_to(agent);
    // An end that has lost the other needs time to detect it.
    let lives = (0..PATIENCE).any(|_| {
        let agree = world.is_at(agent) && world.reads(agent);
        let lives = agree && world.traffic_flows();
        world.run_for(Duration::from_secs(1));
        lives
    });
    let readers = world.readers();
    assert!(lives, "walk {seed}: {readers:?} at agent {agent}");
    match shared {
        Some(most) => world.holders.assert_few(most),
        None => world.witness.assert_nobody_read_behind(),
    }
}

fn happen(world: &mut World) {
    let chance = |world: &mut World, of: u16| world.network.rng.u16() % of;
    match chance(world, 12) {
        0..=4 => {
            let agent = usize::from(chance(world, AGENTS as u16));
            world.move_to(agent);
        }
        5 => {
            let link = usize::from(chance(world, AGENTS as u16));
            world.set_link(link, !world.links[link]);
        }
        6 => {
            let agent = usize::from(chance(world, AGENTS as u16));
            world.restart(AGENT + agent);
        }
        7 => world.restart(HOME),
        8 => {
            let agent = AGENT + usize::from(chance(world, AGENTS as u16));
            world.switch(agent);
        }
        9 => {
            let end = usize::from(chance(world, 2));
            let name = ["office", "alice"][end];
            let what = chance(world, 3);
            // There may be nothing to rekey at the moment.
            let _ = world.command(end, |node, now| match what {
                0 => node.rekey(name, Rekey::Children, now).is_ok(),
                1 => node.rekey(name, Rekey::Ike, now).is_ok(),
                _ => node.reauthenticate(name, now).is_ok(),
            });
        }
        _ => {
            let bad = |world: &mut World| Hop {
                lost: chance(world, 300),
                repeated: chance(world, 200),
                delayed: chance(world, 300),
                ..Hop::PERFECT
            };
            (world.wireless, world.wired) = (bad(world), bad(world));
        }
    }
}
