//! `[peer.NAME.child.NAME]`: a tunnel with a peer beside the first one.

use crate::mode;
use crate::peer::{Addressing, Peer, Start, selectors};
use crate::reader::{Table, Value};
use model::{Mode, TrafficSelector};
use std::time::Duration;

/// So many tunnels beside the first are enough for anybody.
pub(crate) const MOST: usize = 16;

/// A child SA of a peer's beside the first, with keys of its own. Who the peer is and what protects
/// the packets is said in the peer's table.
#[derive(Clone, Debug)]
pub struct Child {
    /// The table's name, unique within the peer's.
    pub name: String,
    /// `local`: prefixes of ours that it carries. Default those of the peer's table.
    pub local: Vec<TrafficSelector>,
    /// `remote`: prefixes of the peer's that it carries. Default those of the peer's table.
    pub remote: Vec<TrafficSelector>,
    /// `mode`: what of a packet it seals. Default that of the peer's table.
    pub mode: Mode,
    /// `start`: when to ask for it. Default `auto`: whenever the peer's first tunnel is up, by who
    /// connected.
    pub start: Start,
    /// `rekey`: how long its keys are used, 1 s to 24 h. Default that of the peer's table.
    pub rekey: Duration,
    /// `pfs`: whether its keys come from a key exchange of their own, where the peer does the same; with
    /// `kem`, from that one as well.
    /// Default that of the peer's table.
    pub pfs: bool,
}

/// What a table says; the rest is as in the peer's.
pub(crate) struct Draft {
    name: String,
    local: Option<Vec<TrafficSelector>>,
    remote: Option<Vec<TrafficSelector>>,
    mode: Option<Mode>,
    start: Option<Start>,
    rekey: Option<Duration>,
    pfs: Option<bool>,
}

impl Draft {
    pub fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let named = ["local", "remote"].map(|key| table.value(key).is_some());
        if named == [false, false] {
            table.whole().fault::<()>(
                "it says nothing of what it carries, which is what it is for",
                "add `remote = [\"10.9.0.0/16\"]`, or `local`: what the peer's own table does not carry",
            );
        }
        let local = table.optional("local", selectors);
        let remote = table.optional("remote", selectors);
        let mode = table.optional("mode", mode::mode);
        let start = [("auto", Start::Auto), ("manual", Start::Manual)];
        let start = table.optional("start", |value| value.choice(&start));
        let second = Duration::from_secs(1);
        let rekey = table.optional("rekey", |value| value.duration(second..=second * 86_400));
        let pfs = table.optional("pfs", Value::boolean);
        table.finish();
        let whole = named == [local.is_some(), remote.is_some()];
        (whole && named != [false, false]).then(|| Self {
            name: name.to_owned(),
            local,
            remote,
            mode,
            start,
            rekey,
            pfs,
        })
    }

    /// With what the peer's table says, of which the selectors may not be known yet.
    pub fn beside(self, mode: Mode, rekey: Duration, pfs: bool) -> Child {
        Child {
            name: self.name,
            local: self.local.unwrap_or_default(),
            remote: self.remote.unwrap_or_default(),
            mode: self.mode.unwrap_or(mode),
            start: self.start.unwrap_or(Start::Auto),
            rekey: self.rekey.unwrap_or(rekey),
            pfs: self.pfs.unwrap_or(pfs),
        }
    }
}

impl Child {
    /// What the peer's table says where this one says nothing.
    pub(crate) fn complete(&mut self, local: &[TrafficSelector], remote: &[TrafficSelector]) {
        for (own, peers) in [(&mut self.local, local), (&mut self.remote, remote)] {
            if own.is_empty() {
                *own = peers.to_vec();
            }
        }
    }
}

/// Rules between a peer's tunnels: none carries anything of another, for a packet has one way to go,
/// and what one end lends the other is not chosen by prefixes.
pub(crate) fn check(peer: &Peer, root: &Value<'_>) {
    let table = |child: &Child| root.at(&["peer", &peer.party.name, "child", &child.name]);
    for (index, child) in peer.children.iter().enumerate() {
        let Some(table) = table(child) else {
            continue;
        };
        if index >= MOST {
            table.fault::<()>(
                format!("more than {MOST} tunnels beside the first"),
                "carry more prefixes by each: `remote` is a list",
            );
        }
        let lent = match peer.addressing {
            Addressing::Fixed => None,
            Addressing::Requested => table
                .at(&["local"])
                .map(|value| (value, "the peer lends us")),
            Addressing::Lent(_) => table
                .at(&["remote"])
                .map(|value| (value, "we lend the peer")),
        };
        if let Some((value, whose)) = lent {
            value.fault::<()>(
                format!("it is the address that {whose}, in each of its tunnels"),
                "remove it; tell them apart by the other end's prefixes",
            );
        }
        let others = peer.children[..index].iter();
        let others = others.map(|other| {
            (
                format!("[peer.{}.child.{}]", peer.party.name, other.name),
                &other.local,
                &other.remote,
            )
        });
        let first = (
            format!("[peer.{}]", peer.party.name),
            &peer.local,
            &peer.remote,
        );
        let mut all = std::iter::once(first).chain(others);
        let overlaps = |(_, local, remote): &(String, &Vec<_>, &Vec<_>)| {
            common(local, &child.local).is_some() && common(remote, &child.remote).is_some()
        };
        if let Some((name, local, remote)) = all.find(overlaps) {
            let ends = common(local, &child.local).zip(common(remote, &child.remote));
            let what =
                ends.map_or_else(String::new, |(ours, theirs)| format!("{ours} <-> {theirs}"));
            table.fault::<()>(
                format!("{name} carries {what} as well: a packet has one tunnel to go by"),
                "take it out of `local` or `remote` of one of the two",
            );
        }
    }
}

/// Something that both have.
fn common(some: &[TrafficSelector], others: &[TrafficSelector]) -> Option<TrafficSelector> {
    let mut parts = some
        .iter()
        .flat_map(|one| others.iter().filter_map(|other| one.intersection(other)));
    parts.next()
}
