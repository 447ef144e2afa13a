//! Random walks: whatever happens on the way, in the end both ends agree, the session lives, and nobody has read
//! what was not for him.

use super::hosts::{AGENT, AGENTS, HOME, HOSTS, MOBILE, Policies};
use super::world::{Hop, World};
use node::{Handover, Rekey};
use std::time::Duration;

/// How many walks the suite makes, together with those of other threads.
const WALKS: u64 = 10_000;
const THREADS: u64 = 4;

/// What happens in a walk.
const STEPS: u32 = 12;

#[test]
fn ten_thousand_walks_end_with_ends_that_agree() {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mine = (0..WALKS).filter(|seed| seed % THREADS == thread);
                mine.for_each(walk);
            });
        }
    });
}

/// The same verdict where ends do go on in a slot that was left: as DKM has them do, for its two seconds.
#[test]
#[should_panic(expected = "fa.example.net has the key of")]
fn the_world_sees_what_is_sealed_for_an_agent_that_was_left() {
    let mut world = World::at(Policies::new(Handover::Dkm), 0);
    world.move_to(1);
    assert!(world.run_until(Duration::from_secs(20), |world| world.is_at(1)));
    assert!(world.traffic_flows());
    world.assert_nobody_read_behind();
}

fn walk(seed: u64) {
    let mut policies = Policies::new(match seed % 2 {
        0 => Handover::Push,
        _ => Handover::Pkd,
    });
    policies.simultaneous = seed.is_multiple_of(3);
    let mut world = World::new(policies, seed);
    world.set_link(0, true);
    let mut seq = 0;
    for _ in 0..STEPS {
        happen(&mut world);
        let pause = u64::from(world.rng.u16() % 3000);
        for _ in 0..3 {
            seq += 1;
            world.segment(MOBILE, seq);
            world.segment(HOME, seq);
            world.run_for(Duration::from_millis(pause / 3));
        }
    }
    let agent = usize::from(world.rng.u16()) % AGENTS;
    (world.wireless, world.wired) = (Hop::default(), Hop::default());
    world.off = [false; HOSTS];
    world.move_to(agent);
    let agree = |world: &World| world.is_at(agent) && world.readers() == [Some(agent); 2];
    let agreed = world.run_until(Duration::from_secs(300), agree);
    let readers = world.readers();
    assert!(agreed, "walk {seed}: {readers:?} at agent {agent}");
    // An agent that has begun anew does not know its visitor until that asks again.
    let mut tries = 0..60;
    assert!(
        tries.any(|_| world.traffic_flows()),
        "walk {seed}: nothing passes"
    );
    world.assert_nobody_read_behind();
}

fn happen(world: &mut World) {
    let chance = |world: &mut World, of: u16| world.rng.u16() % of;
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
            world.off[agent] = !world.off[agent];
        }
        9 => {
            let end = usize::from(chance(world, 2));
            let name = ["office", "alice"][end];
            // There may be nothing to make new keys of just then.
            let _ = world.command(end, |node, now| node.rekey(name, Rekey::Children, now));
        }
        _ => {
            let bad = |world: &mut World| Hop {
                lost: chance(world, 300),
                repeated: chance(world, 200),
                delayed: chance(world, 300),
            };
            (world.wireless, world.wired) = (bad(world), bad(world));
        }
    }
}
