//! `paths`: several paths to a peer that carry packets at the same time.

use crate::reader::Value;
use crate::tfc::Tfc;
use crate::{Config, Mobility, Peer, Tcp};
use model::Mode;

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
}

/// Returns the settings that exclude several paths, each with true if it is there.
fn obstacles(peer: &Peer, config: &Config) -> [(bool, &'static str); 8] {
    let has_licences = peer.zones.all_licences().next().is_some();
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
        (has_licences, "`licences`: a licensed node is on one path"),
        (
            is_mobile_ip,
            "[mobile_node], which gives the tunnel one address",
        ),
    ]
}
