//! `[peer.NAME.child.NAME]`: an additional tunnel with a peer.

use crate::keys::CHILD;
use crate::peer::{Addressing, Peer, Start};
use crate::reader::{Table, Value};
use model::{Mode, TrafficSelector};
use std::time::Duration;

/// Most additional tunnels of a peer.
pub(crate) const MOST: usize = 16;

/// An additional child SA of a peer, with keys of its own. The peer's table has its identity and
/// its suites.
#[derive(Clone, Debug)]
pub struct Child {
    /// The table's name, unique within the peer's.
    pub name: String,
    /// `local`: our prefixes that the tunnel carries. Default those of the peer's table.
    pub local: Vec<TrafficSelector>,
    /// `remote`: the peer's prefixes that the tunnel carries. Default those of the peer's table.
    pub remote: Vec<TrafficSelector>,
    /// The source of inner addresses, as in the peer's table.
    pub addressing: Addressing,
    /// `mode`: the part of a packet that the tunnel seals. Default that of the peer's table.
    pub mode: Mode,
    /// `start`: the event that makes us request the tunnel. Default `auto`: whenever the peer's
    /// first tunnel comes up, by the end that initiated.
    pub start: Start,
    /// `rekey`: lifetime of the tunnel's keys, 1 s to 24 h. Default that of the peer's table.
    pub rekey: Duration,
    /// `pfs`: true if each rekey has a key exchange of its own, provided that the peer does the
    /// same; with `kem`, also an additional key exchange. Default that of the peer's table.
    pub pfs: bool,
}

impl Child {
    /// Reads the table. Keys that are left out have the value of the peer's table; its selectors
    /// may still be unknown.
    pub(crate) fn read(name: &str, mut table: Table<'_>, peer: &Peer) -> Option<Self> {
        let mut child = Self {
            name: name.to_owned(),
            local: Vec::new(),
            remote: Vec::new(),
            addressing: peer.addressing.clone(),
            mode: peer.mode,
            start: Start::Auto,
            rekey: peer.rekey,
            pfs: peer.pfs,
        };
        let is_whole = table.read(CHILD, &mut child);
        let carries_own = ["local", "remote"].map(|key| table.value(key).is_some());
        if carries_own == [false, false] {
            table.whole().fault::<()>(
                "`local` and `remote` are missing, so this tunnel carries nothing of its own",
                "add `remote = [\"10.9.0.0/16\"]` or `local`, with prefixes that the peer's table does not carry",
            );
        }
        table.finish();
        (is_whole && carries_own != [false, false]).then_some(child)
    }

    /// Fills in the selectors of the peer's table that this table leaves out.
    pub(crate) fn complete(&mut self, local: &[TrafficSelector], remote: &[TrafficSelector]) {
        for (own, peers) in [(&mut self.local, local), (&mut self.remote, remote)] {
            if own.is_empty() {
                *own = peers.to_vec();
            }
        }
    }
}

/// Checks a peer's tunnels against each other. No two may carry the same traffic, because a packet
/// has one route, and an assigned inner address cannot be split by prefixes.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let table = |child: &Child| root.at(&["peer", &peer.party.name, "child", &child.name]);
    for (index, child) in peer.children.iter().enumerate() {
        let Some(table) = table(child) else {
            continue;
        };
        if index >= MOST {
            table.fault::<()>(
                format!("more than {MOST} tunnels in addition to the first"),
                "carry several prefixes in each tunnel: `remote` is a list",
            );
        }
        let lent = match peer.addressing {
            Addressing::Fixed => None,
            Addressing::Requested => table
                .at(&["local"])
                .map(|value| (value, "the peer assigns us")),
            Addressing::Lent(_) => table
                .at(&["remote"])
                .map(|value| (value, "we assign the peer")),
        };
        if let Some((value, whose)) = lent {
            value.fault::<()>(
                format!("each tunnel with this peer uses the address that {whose}"),
                "remove this key; the prefixes of the other end distinguish the tunnels",
            );
        }
        let others = peer.children[..index].iter();
        let others = others.map(|other| {
            (
                format!("[peer.{}.child.{}]", peer.party.name, other.name),
                &other.local[..],
                &other.remote[..],
            )
        });
        let first = (
            format!("[peer.{}]", peer.party.name),
            &peer.local[..],
            &peer.remote[..],
        );
        let mut all = std::iter::once(first).chain(others);
        let overlaps = |(_, local, remote): &(String, &[_], &[_])| {
            common(local, &child.local).is_some() && common(remote, &child.remote).is_some()
        };
        if let Some((name, local, remote)) = all.find(overlaps) {
            let ends = common(local, &child.local).zip(common(remote, &child.remote));
            let what =
                ends.map_or_else(String::new, |(ours, theirs)| format!("{ours} <-> {theirs}"));
            table.fault::<()>(
                format!("{name} also carries {what}, but each packet needs exactly one tunnel"),
                "remove it from `local` or `remote` of one of the two",
            );
        }
    }
}

/// Returns a selector that both lists have in common.
fn common(some: &[TrafficSelector], others: &[TrafficSelector]) -> Option<TrafficSelector> {
    let mut parts = some
        .iter()
        .flat_map(|one| others.iter().filter_map(|other| one.intersection(other)));
    parts.next()
}
