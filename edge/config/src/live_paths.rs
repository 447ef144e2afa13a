//! `paths`: several paths to a peer that carry packets at the same time.

use crate::reader::Value;
use crate::tfc::Tfc;
use crate::{Config, Handover, Mobility, Peer, Slot, Tcp};
use model::{Identity, Mode};
use std::collections::BTreeSet;

/// Refuses what several live paths do not work with.
pub(crate) fn check(peer: &Peer, config: &Config, root: &Value<'_>) {
    let name = &peer.party.name;
    let Some(place) = root.at(&["peer", name, "paths"]) else {
        return;
    };
    let obstacles = obstacles(peer, config).into_iter();
    for (_, obstacle) in obstacles.filter(|(is_there, _)| peer.features.paths > 1 && *is_there) {
        place.fault::<()>(
            format!("several live paths do not work with {obstacle}"),
            format!("remove `paths` from [peer.{name}], or the other key"),
        );
    }
    let licences = root.at(&["peer", name, "licences"]);
    if let (Some(licences), Some([one, other])) = (licences, at_one_place(peer)) {
        licences.fault::<()>(
            format!("{one} and {other} have an address in common in `at`"),
            "write `at` so that no two nodes are at one place: with `paths`, a path has the keys of \
             one of them",
        );
    }
}

/// Returns two nodes that a path between the addresses of both would license.
fn at_one_place(peer: &Peer) -> Option<[&Identity; 2]> {
    let slots = peer.zones.slots.iter().filter(|_| peer.features.paths > 1);
    let slots: Vec<_> = slots.collect();
    let meets = |one: &Slot, other: &Slot| {
        let mut places = one.at.iter();
        places.any(|place| other.at.iter().any(|at| place.intersection(at).is_some()))
    };
    slots.iter().enumerate().find_map(|(index, one)| {
        let other = slots[..index].iter().find(|other| meets(one, other))?;
        Some([&other.node, &one.node])
    })
}

/// Returns the nodes that get the keys of every path.
pub(crate) fn on_every_path(peer: &Peer) -> BTreeSet<&Identity> {
    let licences = peer.zones.licences.iter();
    let licences = licences.filter(|_| peer.features.paths > 1);
    licences.map(|licence| &licence.node).collect()
}

/// Returns the settings that exclude several paths, each with true if it is there.
fn obstacles(peer: &Peer, config: &Config) -> [(bool, &'static str); 10] {
    let is_mobile_ip = matches!(config.mobility, Some(Mobility::MobileNode(_)));
    [
        (
            !peer.features.mobike,
            "`mobike = \"off\"`: MOBIKE adds them",
        ),
        (
            peer.features.clones,
            "`clone`, which moves all packets to one path",
        ),
        (
            peer.resources > Some(1),
            "`resources`: each path has one tunnel",
        ),
        (peer.tcp != Tcp::Off, "`tcp`: they are over UDP"),
        (
            peer.tfc != Tfc::Off,
            "`tfc`: they are checked by packets of another length",
        ),
        (
            peer.mode == Mode::Transport,
            "`mode = \"transport\"`, which binds the tunnel to one pair of addresses",
        ),
        (
            !peer.zones.domains.is_empty(),
            "`licences` for a domain: name each node, with `at`",
        ),
        (
            peer.zones.holders.is_some(),
            "`holders`: the nodes on different paths share no keys",
        ),
        (
            peer.zones.handover == Handover::Dkm,
            "`handover = \"dkm\"`, whose tokens go with Mobile IP",
        ),
        (
            is_mobile_ip,
            "[mobile_node], which gives the tunnel one address",
        ),
    ]
}
