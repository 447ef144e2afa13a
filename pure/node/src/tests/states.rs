//! `docs/states/peer.md` and `docs/states/grant.md`: the states of peers and grants, with the
//! transitions observed in tests.

use super::grants::crowded;
use super::record::{answer, asked, recording};
use super::watch::{GRANT, PEER, Watch};
use super::world::{GATEWAY, Hosts, LICENSED, MOBILE, Policies, World, licence, license};
use crate::{Config, Stance};
use crypto::{Rng, Secret};
use std::time::Duration;

/// Scenarios that are known to cause different transitions.
const STORIES: &[fn() -> World] = &[
    || restarted(MOBILE),
    || restarted(GATEWAY),
    || restarted(LICENSED),
    || cut_off(MOBILE),
    || cut_off(GATEWAY),
    || cut_off(LICENSED),
    || told(MOBILE, "gw"),
    || told(GATEWAY, "alice"),
    || told(GATEWAY, "fa"),
    || repeated(MOBILE, "gw"),
    || repeated(GATEWAY, "fa"),
    || World::connected(payload_alone()),
    refused,
    crowded,
    withheld,
    || changed(MOBILE),
    || changed(GATEWAY),
    || changed_unanswered(|config| drop(config.peers.remove(0))),
    || changed_unanswered(|config| drop(config.peers.pop())),
    || told_unanswered("alice"),
    || told_unanswered("fa"),
    || {
        let mut world = World::connected(Policies::default());
        minutes(&mut world, 120);
        world
    },
];

fn minutes(world: &mut World, minutes: u64) {
    world.run_for(Duration::from_secs(60 * minutes));
}

fn restarted(who: usize) -> World {
    let mut world = World::connected(Policies::default());
    world.restart(who);
    minutes(&mut world, 5);
    world
}

fn cut_off(who: usize) -> World {
    let mut world = World::connected(Policies::default());
    world.off[who] = true;
    minutes(&mut world, 20);
    world.off[who] = false;
    minutes(&mut world, 5);
    world
}

/// An operator takes a peer down and up again, even while it is being established.
fn told(who: usize, peer: &str) -> World {
    let mut world = World::connected(Policies::default());
    // Long enough to be established, and not long enough.
    for millis in [480, 0, 480] {
        tell(&mut world, who, peer, false);
        minutes(&mut world, 1);
        tell(&mut world, who, peer, true);
        world.run_for(Duration::from_millis(millis));
    }
    world
}

/// Both ends re-authenticate on an operator's command.
fn repeated(who: usize, peer: &str) -> World {
    let mut world = World::connected(Policies::default());
    let asked = world.command(who, |node, now| node.reauthenticate(peer, now));
    assert_eq!(asked, Ok(()));
    minutes(&mut world, 1);
    world
}

/// A licence for the payload without the headers: the node could not distinguish packets.
fn payload_alone() -> Policies {
    let payload = vec![licence("fa.example.net", 2)];
    Policies {
        mobile: payload.clone(),
        gateway: payload,
        ..Policies::default()
    }
}

/// The gateway restarts with another policy about zones.
fn refused() -> World {
    let mut world = World::connected(Policies::default());
    world.policies.stance = Stance::Refuse;
    world.restart(GATEWAY);
    minutes(&mut world, 5);
    world
}

/// The gateway cannot record its grants at first, and then it can.
fn withheld() -> World {
    let mut world = recording();
    minutes(&mut world, 1);
    let due = asked(&world)[0];
    answer(&mut world, due, Err("the disk is full".to_owned()));
    world.command(GATEWAY, |node, now| node.set_recording(true, now));
    let due = asked(&world)[1];
    answer(&mut world, due, Ok(()));
    world
}

/// An operator changes the configuration of an endpoint, with and without pauses in between.
fn changed(who: usize) -> World {
    const CHANGES: [fn(&mut Config); 6] = [
        |config| config.start.clear(),
        |config| drop(config.peers.remove(0)),
        |config| drop(config.peers.pop()),
        |config| {
            config
                .peers
                .iter_mut()
                .for_each(|peer| peer.ike.psk = Some(Secret::new(vec![7; 32])))
        },
        |config| config.identity = "new.example.net".parse().expect("an identity"),
        |config| config.peers[0].name.push('2'),
    ];
    let mut world = World::connected(Policies::default());
    for change in CHANGES {
        for millis in [0, 3, 60_000] {
            world.reconfigure(who, change);
            world.run_for(Duration::from_millis(millis));
            world.reconfigure(who, |_| {});
            world.run_for(Duration::from_millis(millis));
        }
    }
    world
}

/// The same while a licensed node has not acknowledged its keys.
fn changed_unanswered(change: fn(&mut Config)) -> World {
    let mut world = unanswered();
    world.reconfigure(GATEWAY, change);
    minutes(&mut world, 1);
    world
}

/// An operator takes a peer down while its licensed node has not answered.
fn told_unanswered(peer: &str) -> World {
    let mut world = unanswered();
    tell(&mut world, GATEWAY, peer, false);
    minutes(&mut world, 1);
    world
}

/// A world in which the licensed node does not answer KEY_DISTRIBUTE.
fn unanswered() -> World {
    const KEY_DISTRIBUTE: u8 = 240;
    let mut world = World::new(Policies::default());
    world.silent_in = Some((LICENSED, KEY_DISTRIBUTE));
    world.run_for(Duration::from_secs(10));
    world
}

/// Random operations in an arbitrary order.
fn storm(seed: u64) -> World {
    let policies = match seed % 3 {
        0 => payload_alone(),
        _ => Policies::default(),
    };
    let mut world = World::seeded(policies, seed);
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_be_bytes());
    let mut rng = Rng::from_seed(octets);
    octets[8] = 1;
    let mut repeating = Rng::from_seed(octets);
    for _ in 0..60 {
        let (who, on) = ((rng.u32() % 3) as usize, !rng.u32().is_multiple_of(3));
        let lost = (rng.u32() % 500) as u16;
        match rng.u32() % 8 {
            0 => world.restart(who),
            1 => world.off[who] = !on,
            2 => world.wired.lost = lost,
            3 => world.wireless.lost = lost,
            4 => tell(&mut world, MOBILE, "gw", on),
            5 => tell(&mut world, GATEWAY, "fa", on),
            6 => tell(&mut world, GATEWAY, "alice", on),
            _ => license(&mut world, who % 2, on),
        }
        if repeating.u32().is_multiple_of(3) {
            let (who, peer) = [(MOBILE, "gw"), (GATEWAY, "fa")][(repeating.u32() % 2) as usize];
            // Some of the peers may not be up.
            let _ = world.command(who, |node, now| node.reauthenticate(peer, now));
        }
        world.run_for(Duration::from_millis((rng.u32() % 40_000).into()));
    }
    world
}

fn tell(world: &mut World, who: usize, peer: &str, up: bool) {
    let told = world.command(who, |node, now| match up {
        true => node.up(peer, now),
        false => node.down(peer, now),
    });
    told.expect("it is configured");
}

#[test]
fn the_pages_tell_every_change_of_a_peer_and_of_a_grant() {
    let mut all = Watch::default();
    let storms = (0..150).map(storm);
    for world in STORIES.iter().map(|story| story()).chain(storms) {
        all.peers.extend(world.watch.peers.clone());
        all.grants.extend(world.watch.grants.clone());
    }
    for ((page, introduction), machine) in [(PEER, all.peers), (GRANT, all.grants)] {
        pages::check(
            page,
            &[pages::HEAD, introduction, &machine.render()].concat(),
        );
    }
}
