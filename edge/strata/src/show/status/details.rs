//! All that is known of one peer, as a block of lines.

use super::{of_users, reason};
use crate::show::paths::by;
use crate::show::state;
use crate::text::{Paint, clean, octets, plural, rate, span};
use control::{
    Carrier, Child, ChildKind, ChildMode, MtuOrigin, Peer, PeerKind, PeerState, Traffic, place_on,
};
use std::fmt::Write;
use std::net::IpAddr;

/// Formats a peer. Writing to a `String` cannot fail.
pub fn show(text: &mut String, peer: &Peer, paint: Paint) {
    let kind = match peer.kind {
        PeerKind::Vpn => "peer",
        PeerKind::Licensed => "licensed",
        PeerKind::Gateway => "gateway",
        PeerKind::Neighbour => "neighbour",
    };
    let name = paint.bold(&clean(&peer.name));
    let since = peer
        .since_seconds
        .map_or(String::new(), |seconds| format!(" for {}", span(seconds)));
    let silent = match (peer.silent, peer.state) {
        (false, _) | (true, PeerState::Down) => String::new(),
        (true, PeerState::Connecting) => paint.doubtful(", no answer yet"),
        (true, PeerState::Up) => paint.doubtful(", silent"),
    };
    let state = match peer.users {
        Some(users) => of_users(users),
        None => state(peer.state, paint),
    };
    let _ = writeln!(text, "\n{kind} {name}  {state}{since}{silent}");
    let _ = writeln!(text, "  identity  {}", clean(&peer.identity));
    if let Some(table) = &peer.table {
        let _ = writeln!(text, "  table     {}", clean(table));
    }
    if let Some(remote) = peer.remote {
        let (remote, by) = (
            place_on(remote, peer.interface.as_deref()),
            by(peer.carrier),
        );
        let _ = writeln!(text, "  remote    {}{by}", clean(&remote));
    }
    if let Some(lookup) = &peer.lookup {
        let (name, told) = (clean(&lookup.name), super::lookup(lookup));
        let _ = writeln!(text, "  name      {name}: {told}");
    }
    if let Some(heard) = peer.heard_seconds {
        let _ = writeln!(text, "  heard     {} ago", span(heard));
    }
    if peer.ppk {
        text.push_str("  ppk       in all keys\n");
    }
    if !peer.kem.is_empty() {
        let kems: Vec<_> = peer.kem.iter().map(|kem| clean(kem)).collect();
        let _ = writeln!(text, "  kem       {} in all keys", kems.join(", "));
    }
    if let Some(window) = peer
        .window
        .filter(|window| window.ours.max(window.theirs) > 1)
    {
        let _ = writeln!(
            text,
            "  window    {} requests to the peer at once, {} from it",
            window.theirs, window.ours
        );
    }
    if peer.ike_sas > 1 {
        let _ = writeln!(text, "  ike       {} IKE SAs at once", peer.ike_sas);
    }
    if !peer.inside.is_empty() {
        let _ = writeln!(text, "  inside    {}", addresses(&peer.inside));
    }
    if let Some(routes) = &peer.routes {
        let _ = writeln!(text, "  routes    {}", clean(&routes.to_string()));
    }
    if let Some(refusal) = &peer.last_refusal {
        let _ = writeln!(text, "  {}    {}", paint.bad("failed"), reason(refusal));
    }
    for child in &peer.children {
        show_child(text, child, paint);
    }
    for child in &peer.missing {
        let _ = writeln!(text, "  child     {}, down", clean(child));
    }
}

fn show_child(text: &mut String, child: &Child, paint: Paint) {
    let kind = match child.kind {
        ChildKind::Plain => "plain",
        ChildKind::Zoned => "zoned",
    };
    let clear = match (child.unencrypted, &child.suite) {
        (true, Some(suite)) => {
            let told = format!("NOT ENCRYPTED ({})", clean(suite));
            let left = child
                .packets_left
                .map(|left| format!(" for {left} more packets"));
            format!(", {}{}", paint.bad(&told), left.unwrap_or_default())
        }
        _ => String::new(),
    };
    let mode = match child.mode {
        ChildMode::Tunnel => "",
        ChildMode::Transport => ", transport mode",
        ChildMode::Beet => ", BEET mode",
    };
    let numbers = if child.esn { ", ESN" } else { "" };
    let (spi_in, spi_out) = (clean(&child.spi_in), clean(&child.spi_out));
    let draining = match (child.draining, child.waiting) {
        (true, _) => ", being replaced",
        (false, true) => ", not in use yet",
        (false, false) => "",
    };
    let without = match child.carrier {
        Carrier::Ip => ", without UDP",
        Carrier::Udp | Carrier::Tcp => "",
    };
    if let Some(name) = &child.name {
        let _ = writeln!(text, "  child     {}", clean(name));
    }
    let (local, remote) = (list(&child.local), list(&child.remote));
    let _ = writeln!(
        text,
        "  sa        {kind}{clear}{mode}{numbers}, in {spi_in}, out {spi_out}{without}{draining}"
    );
    if !child.key_exchanges.is_empty() {
        let all: Vec<_> = child.key_exchanges.iter().map(|one| clean(one)).collect();
        let _ = writeln!(text, "  pfs       {}", all.join(", "));
    }
    let _ = writeln!(text, "  carries   {local} <-> {remote}");
    if let (Some(inside), Some(outside)) = (child.mtu, child.path_mtu) {
        let origin = child.path_mtu_origin.map_or("", origin);
        let _ = writeln!(text, "  mtu       {inside}, of {outside} outside{origin}");
    }
    let (received, sent) = (traffic(child.received), traffic(child.sent));
    let rates = [child.received_per_second, child.sent_per_second].map(now);
    let _ = writeln!(text, "  received  {received}{}", rates[0]);
    let _ = writeln!(text, "  sent      {sent}{}", rates[1]);
}

/// Returns where the MTU of a path comes from.
const fn origin(origin: MtuOrigin) -> &'static str {
    match origin {
        MtuOrigin::Interface => " (interface)",
        MtuOrigin::Reported => " (reported)",
        MtuOrigin::Probed => " (probed)",
        MtuOrigin::Searching => " (searching)",
        MtuOrigin::Safe => " (safe default)",
    }
}

/// Formats selectors on one line.
pub(super) fn list(selectors: &[String]) -> String {
    let clean: Vec<_> = selectors.iter().map(|selector| clean(selector)).collect();
    clean.join(", ")
}

/// Formats addresses on one line.
pub fn addresses(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// Formats the rate of traffic, if there is any now.
fn now(octets_per_second: u64) -> String {
    match octets_per_second {
        0 => String::new(),
        octets => format!(", {} now", rate(octets)),
    }
}

fn traffic(traffic: Traffic) -> String {
    format!(
        "{} in {}",
        octets(traffic.octets),
        plural(traffic.packets, "packet")
    )
}
