//! `mode`: the part of a packet that a tunnel seals, and the settings that it requires.

use crate::reader::Value;
use crate::{Address, Addressing, Peer};
use model::{Mode, TrafficSelector, one_pair};

pub(crate) fn mode(value: &Value<'_>) -> Option<Mode> {
    value.choice(&Mode::ALL.map(|mode| (mode.name(), mode)))
}

/// The settings of a peer's tunnel that depend on its mode.
struct Terms<'a> {
    mode: Mode,
    local: &'a [TrafficSelector],
    remote: &'a [TrafficSelector],
    /// The value at which faults are reported.
    place: Option<Value<'a>>,
}

/// Checks the rules between modes and all other settings of a peer's table.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let name = peer.party.name.as_str();
    let at = |keys: &[&str]| root.at(&[&["peer", name], keys].concat());
    let first = Terms {
        mode: peer.mode,
        local: &peer.local,
        remote: &peer.remote,
        place: at(&["mode"]),
    };
    let others = peer.children.iter().map(|child| Terms {
        mode: child.mode,
        local: &child.local,
        remote: &child.remote,
        place: at(&["child", &child.name, "mode"]).or_else(|| at(&["child", &child.name])),
    });
    for terms in std::iter::once(first).chain(others) {
        if terms.mode != Mode::Tunnel
            && let Some(place) = &terms.place
            && let Some((what, fix)) = fault(peer, &terms)
        {
            place.fault::<()>(what, fix);
        }
    }
}

fn fault(peer: &Peer, terms: &Terms<'_>) -> Option<(String, String)> {
    let mode = terms.mode;
    let told = |what: String, fix: String| Some((what, fix));
    if peer.addressing != Addressing::Fixed {
        return told(
            format!(
                "{mode} mode requires a fixed address at each end, and one of them is assigned dynamically"
            ),
            "list the two addresses in `local` and `remote`, or write `mode = \"tunnel\"`"
                .to_owned(),
        );
    }
    if mode == Mode::Transport {
        return elsewhere(peer, terms.remote).or_else(|| not_hosts(terms));
    }
    if one_pair(terms.local, terms.remote).is_none() {
        return told(
            format!("{mode} mode requires exactly one address at each end, of the same family"),
            "list one in `local` and one in `remote`, like [\"10.1.0.2/32\"]".to_owned(),
        );
    }
    None
}

/// Returns the fault of a tunnel in transport mode that does not end at the peer's own address.
fn elsewhere(peer: &Peer, remote: &[TrafficSelector]) -> Option<(String, String)> {
    let address = peer.address.as_ref();
    if let Some(name) = address.and_then(Address::name) {
        return Some((
            "transport mode carries only packets to the peer's `address`, and that is a name"
                .to_owned(),
            format!("write the address of {name}, or `mode = \"tunnel\"`"),
        ));
    }
    if let Some(on) = address.and_then(Address::link) {
        return Some((
            format!(
                "transport mode carries packets to the peer's `address`, and programs send those to {on} by {} alone",
                on.interface
            ),
            "write `mode = \"tunnel\"`, or a global address".to_owned(),
        ));
    }
    let several = one_pair(remote, remote).is_none();
    let Some(address) = address.and_then(Address::ip) else {
        return (!several).then(|| {
            (
            "transport mode carries only packets to the peer's `address`, and there is none"
                .to_owned(),
            "add `address = \"192.0.2.1\"`, with `start = \"manual\"` if the peer connects to us"
                .to_owned(),
        )
        });
    };
    let length = if address.is_ipv4() { 32 } else { 128 };
    let is_there = remote.iter().any(|one| one.first == address);
    (!is_there || !remote.iter().all(is_host)).then(|| {
        (
            "transport mode carries only packets to the peer's `address`".to_owned(),
            format!("write `remote = [\"{address}/{length}\"]`"),
        )
    })
}

/// Returns the fault of a tunnel in transport mode whose ends are not lists of hosts. A peer may
/// have any address of its list, and moves among them.
fn not_hosts(terms: &Terms<'_>) -> Option<(String, String)> {
    let both = || terms.local.iter().chain(terms.remote);
    let family = terms.local.first().map(|one| one.first.is_ipv4());
    let fits = |one: &TrafficSelector| is_host(one) && Some(one.first.is_ipv4()) == family;
    let listed = !terms.local.is_empty() && !terms.remote.is_empty();
    (!listed || !both().all(fits)).then(|| {
        (
            "transport mode requires single addresses at each end, all of the same family"
                .to_owned(),
            "list one in `local` and one in `remote`, like [\"10.1.0.2/32\"], or all that the host \
             may have"
                .to_owned(),
        )
    })
}

fn is_host(selector: &TrafficSelector) -> bool {
    selector.first == selector.last
}
