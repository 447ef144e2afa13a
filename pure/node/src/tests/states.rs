//! `docs/states/peer.md` and `docs/states/grant.md`: how far a peer is, and how far a grant, as
//! they were seen to change. Every test with a world is held against the pages.

use super::world::{GATEWAY, LICENSED, MOBILE, Policies, World, licence};
use crate::{Node, Stance};
use crypto::Rng;
use model::CsaId;
use pages::Machine;
use std::collections::BTreeMap;
use std::time::Duration;

const PEER: (&str, &str) = (
    "states/peer.md",
    "# A peer\n\n\
     What `strata status` shows of each configured peer: whether there is an IKE SA with it. A peer \
     that is wanted and has an address is tried again after each failure, with pauses of one second \
     to one minute.\n\n\
     | state | meaning |\n|---|---|\n\
     | Down | there is no IKE SA |\n\
     | Connecting | we began one |\n\
     | Up | both ends proved who they are |\n\n",
);

const GRANT: (&str, &str) = (
    "states/grant.md",
    "# A grant\n\n\
     What a gateway knows of each licensed node and composite SA that it owes keys. A grant that \
     was lost with the node's IKE SA is owed again, under a fresh number.\n\n\
     | state | meaning |\n|---|---|\n\
     | Pending | it waits for the IKE SA with the node |\n\
     | Sent | it left and is not answered |\n\
     | Held | the node acknowledged the keys |\n\
     | Refused | the node refused, or there is nothing it could be given |\n\n",
);

/// What was last seen of each host, and every change since the beginning.
#[derive(Default)]
pub struct Watch {
    peers: Machine,
    grants: Machine,
    seen: [Seen; 3],
}

#[derive(Default)]
struct Seen {
    peers: BTreeMap<String, String>,
    grants: BTreeMap<(CsaId, String), String>,
}

impl Watch {
    /// Looks at a host after something was done to it.
    pub fn look(&mut self, who: usize, node: &Node, cause: &str) {
        let peers = node.peers().into_iter();
        let peers = peers
            .map(|peer| (peer.name, format!("{:?}", peer.state)))
            .collect();
        let csas = node.composite_sas().into_iter();
        let grants = csas.flat_map(|csa| {
            let grants = csa.grants.into_iter();
            grants.map(move |grant| ((csa.csa, grant.name), format!("{:?}", grant.state)))
        });
        let now = Seen {
            peers,
            grants: grants.collect(),
        };
        let before = std::mem::replace(&mut self.seen[who], now);
        note(&mut self.peers, &before.peers, &self.seen[who].peers, cause);
        note(
            &mut self.grants,
            &before.grants,
            &self.seen[who].grants,
            cause,
        );
    }

    /// A process died: what it knew is gone without having ended.
    pub fn forget(&mut self, who: usize) {
        self.seen[who] = Seen::default();
    }

    /// Fails if a page lacks what was seen.
    pub fn assert_documented(&self) {
        if std::env::var_os(pages::UPDATE).is_some() {
            return;
        }
        for ((page, _), machine) in [(PEER, &self.peers), (GRANT, &self.grants)] {
            let documented = Machine::read(page);
            let unknown: Vec<_> = machine.without(&documented).collect();
            assert!(
                unknown.is_empty(),
                "docs/{page} does not know {unknown:#?}\nIf the change is right, add a story to \
                 tests/states.rs, then write the page anew:\n  {}=1 cargo test -p node \
                 tests::states",
                pages::UPDATE
            );
        }
    }
}

fn note<K: Ord>(
    machine: &mut Machine,
    before: &BTreeMap<K, String>,
    now: &BTreeMap<K, String>,
    cause: &str,
) {
    for (key, state) in now {
        machine.note(before.get(key).map(String::as_str), Some(state), cause);
    }
    for (_, state) in before.iter().filter(|(key, _)| !now.contains_key(key)) {
        machine.note(Some(state), None, cause);
    }
}

/// Everything that is known to make a difference.
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
    || World::connected(payload_alone()),
    refused,
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

/// An operator takes a peer down and up again, also while it is being made.
fn told(who: usize, peer: &str) -> World {
    let mut world = World::connected(Policies::default());
    // Long enough to come up, and not.
    for millis in [480, 0, 480] {
        tell(&mut world, who, peer, false);
        minutes(&mut world, 1);
        tell(&mut world, who, peer, true);
        world.run_for(Duration::from_millis(millis));
    }
    world
}

/// A licence for the payload without the headers: there is nothing to tell packets apart by.
fn payload_alone() -> Policies {
    let payload = vec![licence("fa.example.net", 2)];
    Policies {
        mobile: payload.clone(),
        gateway: payload,
        ..Policies::default()
    }
}

/// The gateway comes back with another opinion about zones.
fn refused() -> World {
    let mut world = World::connected(Policies::default());
    world.policies.stance = Stance::Refuse;
    world.restart(GATEWAY);
    minutes(&mut world, 5);
    world
}

/// Whatever can happen, in an order that nobody thought of.
fn storm(seed: u64) -> World {
    let policies = match seed % 3 {
        0 => payload_alone(),
        _ => Policies::default(),
    };
    let mut world = World::seeded(policies, seed);
    let mut octets = [0; 32];
    octets[..8].copy_from_slice(&seed.to_be_bytes());
    let mut rng = Rng::from_seed(octets);
    for _ in 0..60 {
        let (who, on) = ((rng.u32() % 3) as usize, rng.u32() % 3 > 0);
        let lost = (rng.u32() % 500) as u16;
        match rng.u32() % 7 {
            0 => world.restart(who),
            1 => world.off[who] = !on,
            2 => world.wired.lost = lost,
            3 => world.wireless.lost = lost,
            4 => tell(&mut world, MOBILE, "gw", on),
            5 => tell(&mut world, GATEWAY, "fa", on),
            _ => tell(&mut world, GATEWAY, "alice", on),
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
