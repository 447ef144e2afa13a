//! `at` of `licences`, `handover`, `holders` and `[handover] neighbours`: licences that follow a
//! mobile node from place to place.

use crate::reader::Value;
use crate::zone::Licences;
use model::{Identity, Licence, Right, TrafficSelector, ZoneId};
use std::net::IpAddr;

/// Most neighbours that a node reports to a gateway.
const MOST_NEIGHBOURS: usize = 32;

/// Most nodes, or licences, in one offer.
const MOST_SHARED: usize = 32;

/// The licences of a node that apply where the tunnel passes it, and the addresses of that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The node.
    pub node: Identity,
    /// `at`: care-of addresses, or outer addresses of the mobile node, that identify the place.
    pub at: Vec<TrafficSelector>,
    /// The node's licences at that place, sorted and without duplicates.
    pub licences: Vec<Licence>,
}

impl Slot {
    /// Returns the node's rights, independent of its identity.
    fn rights(&self) -> impl Iterator<Item = (ZoneId, Right)> {
        let licences = self.licences.iter();
        licences.map(|licence| (licence.zone, licence.right))
    }
}

/// The time at which nodes of such places receive their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// `push`: after the mobile node has arrived, from the gateway.
    #[default]
    Push,
    /// `pkd`: before the mobile node arrives, from the gateway, based on the neighbours that nodes
    /// report.
    Pkd,
    /// `dkm`: after the mobile node has arrived, first from the previous node, then from the
    /// gateway.
    Dkm,
}

impl Handover {
    pub(crate) const CHOICES: [(&'static str, Self); 3] =
        [("push", Self::Push), ("pkd", Self::Pkd), ("dkm", Self::Dkm)];

    /// Returns the word for it in the file.
    pub fn name(self) -> &'static str {
        let mut choices = Self::CHOICES.into_iter();
        let found = choices.find(|(_, choice)| *choice == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Reads `at`: the places where a licence applies.
pub(crate) fn at(value: &Value<'_>) -> Option<Vec<TrafficSelector>> {
    let places = places(value)?;
    match places.is_empty() {
        true => value.fault(
            "lists no place, so the licence would never apply",
            "list care-of addresses, or prefixes of the mobile node's own address, like [\"198.51.100.2\"]; without `at` the licence applies everywhere",
        ),
        false => Some(places),
    }
}

/// Reads addresses and prefixes.
pub(crate) fn places(value: &Value<'_>) -> Option<Vec<TrafficSelector>> {
    value.list(|value| match value.text()?.parse::<IpAddr>() {
        Ok(address) => {
            value.accepts(|| "IP address".to_owned());
            TrafficSelector::from_prefix(address, if address.is_ipv4() { 32 } else { 128 })
        }
        Err(_) => Some(value.prefix()?.selector()),
    })
}

/// Sorts licences into those for everywhere and those for the place of one node.
pub(crate) fn sort(value: &Value<'_>, all: Vec<Licences>) -> Option<(Vec<Licence>, Vec<Slot>)> {
    let (mut everywhere, mut slots): (Vec<Licence>, Vec<Slot>) = Default::default();
    for Licences {
        node, at, licences, ..
    } in all
    {
        let Some(at) = at else {
            everywhere.extend(licences);
            continue;
        };
        match slots.iter_mut().find(|slot| slot.node == node) {
            None => slots.push(Slot { node, at, licences }),
            Some(slot) if slot.at == at => slot.licences.extend(licences),
            Some(_) => {
                return value.fault(
                    format!("the licences of {node} have different `at`"),
                    "write the same `at` in all of its licences, with every address of its place",
                );
            }
        }
    }
    let twice = slots
        .iter()
        .find(|slot| everywhere.iter().any(|licence| licence.node == slot.node));
    if let Some(Slot { node, .. }) = twice {
        return value.fault(
            format!("{node} has one licence with `at` and one without, which applies everywhere"),
            "write the same `at` in all of its licences, or in none",
        );
    }
    let tidy = |licences: &mut Vec<Licence>| {
        licences.sort();
        licences.dedup();
    };
    tidy(&mut everywhere);
    slots.iter_mut().for_each(|slot| tidy(&mut slot.licences));
    Some((everywhere, slots))
}

/// Reads `handover`: the time at which nodes receive their keys.
pub(crate) fn handover(value: &Value<'_>, slots: &[Slot]) -> Option<Handover> {
    let handover = value.choice(&Handover::CHOICES)?;
    let reads = |slot: &Slot| {
        slot.rights()
            .filter(|(_, right)| *right == Right::Read)
            .count()
    };
    let all: usize = slots.iter().map(reads).sum();
    let fewest = slots.iter().map(reads).min().unwrap_or_default();
    // Each node learns the licences of all others that it may hand keys on to.
    match handover == Handover::Dkm && all - fewest > MOST_SHARED {
        true => value.fault(
            "too many licences have `at`: a node that hands keys on cannot learn them all, so some nodes would get no keys",
            "with `\"dkm\"` license at most 33 nodes to read, fewer if each has several zones; or write `handover = \"pkd\"`",
        ),
        false => Some(handover),
    }
}

/// Groups the slots whose nodes have the same rights.
pub(crate) fn groups(slots: &[Slot]) -> Vec<Vec<&Slot>> {
    let mut groups: Vec<Vec<&Slot>> = Vec::new();
    for slot in slots {
        let mut others = groups.iter_mut();
        match others.find(|group| group[0].rights().eq(slot.rights())) {
            Some(group) => group.push(slot),
            None => groups.push(vec![slot]),
        }
    }
    groups
}

/// Reads `holders`: the number of nodes that hold shared keys at once.
pub(crate) fn holders(
    value: &Value<'_>,
    handover: Option<Handover>,
    everywhere: &[Licence],
    slots: &[Slot],
) -> Option<usize> {
    let most = value.number(2..=MOST_SHARED as u32)?;
    if handover != Some(Handover::Pkd) {
        return value.fault(
            "`holders` requires `handover = \"pkd\"`: only then do nodes share keys that they get in advance",
            "write `handover = \"pkd\"`, or remove `holders` to give each node its own keys",
        );
    }
    let groups = groups(slots);
    if groups.iter().all(|group| group.len() < 2) {
        return value.fault(
            "no two nodes have the same `zones` and `right`, so none of them share keys",
            "give them the same `zones` and `right`, or remove `holders`",
        );
    }
    let licences = |group: &Vec<&Slot>| {
        let there = group.iter().map(|slot| slot.licences.len());
        everywhere.len() + there.sum::<usize>()
    };
    if groups.iter().map(licences).any(|count| count > MOST_SHARED) {
        return value.fault(
            "more licences would share keys than both ends can negotiate at once",
            "license at most 32 nodes with the same `zones` and `right`, fewer if each has several",
        );
    }
    usize::try_from(most).ok()
}

/// Reads `[handover] neighbours`: the licensed nodes to which mobile nodes may move from this one.
pub(crate) fn neighbours(value: &Value<'_>) -> Option<Vec<Identity>> {
    let neighbours = value.list(Value::identity)?;
    match neighbours.len() {
        0..=MOST_NEIGHBOURS => Some(neighbours),
        _ => value.fault(
            "lists more neighbours than a gateway accepts",
            "list at most 32, those to which mobile nodes move most often",
        ),
    }
}
