//! `traffic`: what goes by which interface, with several live paths to a peer.

use crate::peer::selectors;
use crate::reader::Value;
use crate::{Config, Peer};
use model::TrafficSelector;
use std::fmt;

/// Traffic that goes by one interface while packets can leave there. One entry of `traffic`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceTraffic {
    /// `interface`: the interface.
    pub interface: String,
    /// `remote`: the peer's end of the traffic, a part of `remote` of the peer.
    pub remote: Vec<TrafficSelector>,
}

/// Written as `wwan0: 10.8.0.0/16 protocol 17 ports 5060-5061`.
impl fmt::Display for InterfaceTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remote: Vec<_> = self.remote.iter().map(ToString::to_string).collect();
        write!(f, "{}: {}", self.interface, remote.join(", "))
    }
}

/// Reads the list.
pub(crate) fn traffic(value: &Value<'_>) -> Option<Vec<InterfaceTraffic>> {
    value.list(|entry| {
        let mut table = entry.table()?;
        let interface = table.required("interface", "\"wwan0\"", Value::interface);
        let example = "[\"10.8.0.0/16 udp 5060-5061\"]";
        let remote = table.required("remote", example, selectors);
        table.finish();
        Some(InterfaceTraffic {
            interface: interface?,
            remote: remote?,
        })
    })
}

/// Checks the traffic of interfaces against the rest of the configuration.
pub(crate) fn check(peer: &Peer, config: &Config, root: &Value<'_>) {
    let name = &peer.party.name;
    let Some(place) = root.at(&["peer", name, "traffic"]) else {
        return;
    };
    if peer.traffic.is_empty() {
        return;
    }
    for (_, problem, fix) in obstacles(peer)
        .into_iter()
        .filter(|(is_there, ..)| *is_there)
    {
        place.fault::<()>(problem, fix);
    }
    for (index, (entry, place)) in peer.traffic.iter().zip(place.elements()).enumerate() {
        check_entry(peer, config, entry, &place);
        check_beside(entry, &peer.traffic[..index], &place);
    }
}

/// Returns what stands in the way, each with true if it is there, and what to change.
fn obstacles(peer: &Peer) -> [(bool, String, &'static str); 4] {
    let paths = peer.features.paths;
    [
        (
            paths < 2,
            "there is one path at a time, which carries all traffic".to_owned(),
            "add `paths = 2` at both ends, or remove `traffic`",
        ),
        (
            peer.address.is_none(),
            "the end that initiates chooses the paths, and there is no `address` to connect to"
                .to_owned(),
            "write `traffic` at the other end, or add `address = \"192.0.2.1\"`",
        ),
        (
            peer.zones.all_licences().next().is_some(),
            "a licensed node is on one path, and would miss the traffic of the others".to_owned(),
            "remove `traffic`, or `licences`",
        ),
        (
            paths >= 2 && peer.traffic.len() > usize::from(paths),
            format!(
                "{} interfaces, but {paths} paths at a time: the traffic of some has none",
                peer.traffic.len()
            ),
            "raise `paths` at both ends, up to 4, or remove interfaces",
        ),
    ]
}

fn check_entry(peer: &Peer, config: &Config, entry: &InterfaceTraffic, place: &Value<'_>) {
    if entry.interface == config.tunnel.name {
        place.fault::<()>(
            format!(
                "{} is the device of the tunnels themselves",
                entry.interface
            ),
            "name the interface by which packets reach the peer, such as \"wwan0\"",
        );
    }
    let is_within = |part: &&TrafficSelector| {
        let mut all = peer.remote.iter();
        all.any(|whole| whole.intersection(part).as_ref() == Some(*part))
    };
    if let Some(part) = entry.remote.iter().find(|part| !is_within(part)) {
        place.fault::<()>(
            format!(
                "{part} is not in `remote` of [peer.{}], so the tunnel does not carry it",
                peer.party.name
            ),
            "list parts of `remote`, each within one of its entries",
        );
    }
}

/// Checks that no packet has two interfaces.
fn check_beside(entry: &InterfaceTraffic, others: &[InterfaceTraffic], place: &Value<'_>) {
    if others
        .iter()
        .any(|other| other.interface == entry.interface)
    {
        place.fault::<()>(
            format!("{} is listed twice", entry.interface),
            "list all of its traffic in one `remote`",
        );
    }
    let common = |other: &InterfaceTraffic| {
        let mut pairs = other.remote.iter().flat_map(|one| {
            let ours = entry.remote.iter();
            ours.filter_map(|own| own.intersection(one))
        });
        Some((other.interface.clone(), pairs.next()?))
    };
    let others = others
        .iter()
        .filter(|other| other.interface != entry.interface);
    if let Some((other, both)) = others.filter_map(common).next() {
        place.fault::<()>(
            format!("{both} is also traffic of {other}, but a packet takes one interface"),
            "remove it from one of the two",
        );
    }
}
