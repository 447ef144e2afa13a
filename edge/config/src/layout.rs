//! `layout` and `level` against the modes of a peer's tunnels: in each mode, packets begin with
//! another header.

use crate::reader::Value;
use crate::{Peer, Stance};
use model::{Mode, ZoneSelector};

/// Checks a peer's zones against the modes of its tunnels. A fault that several tunnels share is
/// reported once.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    if peer.zones.stance == Stance::Refuse {
        return;
    }
    let modes = || std::iter::once(peer.mode).chain(peer.children.iter().map(|child| child.mode));
    let at = |key: &str| root.at(&["peer", &peer.party.name, key]);
    if let (Some(place), Some((what, fix))) =
        (at("layout"), modes().find_map(|mode| begin(peer, mode)))
    {
        place.fault::<()>(what, fix);
    }
    if let (Some(place), Some((what, fix))) =
        (at("licences"), modes().find_map(|mode| length(peer, mode)))
    {
        place.fault::<()>(what, fix);
    }
    let class = root.at(&["peer", &peer.party.name, "level", "integrity", "dscp"]);
    if let (Some(place), Some(mode)) = (class, modes().find(|mode| *mode != Mode::Tunnel)) {
        place.fault::<()>(
            format!("`dscp` selects no packets in {mode} mode, which omits the IP header"),
            "select packets by `ports` or `protocol`, or write `mode = \"tunnel\"`",
        );
    }
}

/// Checks that the first zone covers the start of the packet, where nodes look for all others, and
/// that no zone is without effect.
fn begin(peer: &Peer, mode: Mode) -> Option<(String, String)> {
    let (first, _) = *peer.zones.layout.first()?;
    let in_a_tunnel = mode == Mode::Tunnel;
    let asks_for_ip = peer
        .zones
        .layout
        .iter()
        .any(|(zone, _)| *zone == ZoneSelector::Ip);
    if asks_for_ip && !in_a_tunnel {
        return Some((
            format!("zone `ip` is empty in {mode} mode, which omits the IP header"),
            "write \"headers\" or \"transport\", or `mode = \"tunnel\"`".to_owned(),
        ));
    }
    (!first.begins(mode)).then(|| {
        let fix = match in_a_tunnel {
            true => "begin with \"ip\", \"headers\" or \"octets 0-27\"",
            false => "begin with \"headers\", \"transport\" or \"octets 0-3\"",
        };
        let packet = if in_a_tunnel {
            "a packet".to_owned()
        } else {
            format!("a packet in {mode} mode")
        };
        (
            format!("`{first}` does not cover the start of {packet}"),
            fix.to_owned(),
        )
    })
}

/// Refuses licences with a padded payload outside tunnel mode. Without an IP header, only a node
/// that reads the payload could know the segment's length.
fn length(peer: &Peer, mode: Mode) -> Option<(String, String)> {
    let (_, suite) = peer.layout().last()?;
    let unknown =
        mode != Mode::Tunnel && suite.iv_len() > 0 && peer.zones.all_licences().next().is_some();
    unknown.then(|| {
        (
            format!("in {mode} mode, a licensed node cannot find the length of a payload that {suite} pads"),
            "give the payload a suite without padding, like { zone = \"payload\", suite = \"aes128gcm16\" } in `layout` at both ends, or remove `licences`".to_owned(),
        )
    })
}
