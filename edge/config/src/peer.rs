//! `[peer.NAME]`: the other end of a tunnel, and what both of us would show to others.

use crate::Party;
use crate::reader::{Table, Value};
use model::{Licence, Right, Suite, TrafficSelector, ZoneId};
use std::net::IpAddr;
use std::time::Duration;

/// The zone `headers`: IP and transport header, without options that carry secrets.
pub const HEADERS: ZoneId = ZoneId(1);
/// The zone `payload`: everything else.
pub const PAYLOAD: ZoneId = ZoneId(2);

/// A VPN peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who it is.
    pub party: Party,
    /// `address`: where it listens. With it we connect, without it we wait for the peer.
    pub address: Option<IpAddr>,
    /// `local`: prefixes of ours that the tunnel carries.
    pub local: Vec<TrafficSelector>,
    /// `remote`: prefixes of the peer's that the tunnel carries.
    pub remote: Vec<TrafficSelector>,
    /// `start`: when to connect. Default `auto` with an address; always `manual` without one.
    pub start: Start,
    /// `leak`: when `remote` may be reached outside the tunnel. Default `stopped`.
    pub leak: Leak,
    /// `rekey`: how long keys of the tunnel are used, 1 s to 24 h. Default 1 h.
    pub rekey: Duration,
    /// `pfs`: whether its new keys come from a key exchange of their own, where the peer does the
    /// same. Default true.
    pub pfs: bool,
    /// `zones` and `licences`.
    pub zones: ZonePolicy,
}

/// When to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `auto`: when the daemon starts, and again whenever the tunnel is lost.
    Auto,
    /// `manual`: when `strata up` says so.
    Manual,
}

/// When traffic that the tunnel protects may leave outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// `never`: not even when the daemon was stopped in good order, until it is unlocked.
    Never,
    /// `stopped`: when the daemon was stopped in good order; not before, and not after a crash.
    Stopped,
}

/// What is asked about zones, and who may read what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePolicy {
    /// `zones`: default `refuse`.
    pub stance: Stance,
    /// `licences`: who may do what with which zone if the peer agrees, sorted and without
    /// duplicates. Default nobody. Written as
    /// `[{ node = "fa.example.net", zones = ["headers"], right = "read" }]`.
    pub licences: Vec<Licence>,
}

/// Whether packets are sealed in zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// `accept`: if the peer can, else plain ESP.
    Accept,
    /// `require`: or there is no tunnel.
    Require,
    /// `refuse`: always plain ESP.
    Refuse,
}

impl Peer {
    pub(crate) fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let party = Party::read(name, &mut table);
        let address = table.optional("address", Value::address);
        let local = table.required("local", "[\"10.1.0.2/32\"]", selectors);
        let remote = table.required("remote", "[\"10.8.0.0/16\"]", selectors);
        let start = start(&mut table, address);
        let leak = [("never", Leak::Never), ("stopped", Leak::Stopped)];
        let leak = table.optional("leak", |value| value.choice(&leak));
        let second = Duration::from_secs(1);
        let rekey = table.optional("rekey", |value| value.duration(second..=second * 86_400));
        let pfs = table.optional("pfs", Value::boolean);
        let suites = party.as_ref().map_or(&[][..], |party| &party.suites);
        let zones = ZonePolicy::read(&mut table, suites);
        table.finish();
        Some(Self {
            party: party?,
            address,
            local: local?,
            remote: remote?,
            start,
            leak: leak.unwrap_or(Leak::Stopped),
            rekey: rekey.unwrap_or(second * 3600),
            pfs: pfs.unwrap_or(true),
            zones: zones?,
        })
    }
}

fn selectors(value: &Value<'_>) -> Option<Vec<TrafficSelector>> {
    let prefixes = value.list(Value::prefix)?;
    if prefixes.is_empty() {
        return value.fault(
            "names no prefix",
            "list at least one, like [\"10.8.0.0/16\"]",
        );
    }
    Some(
        prefixes
            .into_iter()
            .map(|prefix| prefix.selector())
            .collect(),
    )
}

fn start(table: &mut Table<'_>, address: Option<IpAddr>) -> Start {
    let choices = [("auto", Start::Auto), ("manual", Start::Manual)];
    let waits = table.value("address").is_none();
    let start = table.optional("start", |value| match value.choice(&choices)? {
        Start::Auto if waits => value.fault(
            "there is no `address` to connect to",
            "add `address = \"192.0.2.1\"`, or leave `start` out: the peer connects to us",
        ),
        start => Some(start),
    });
    let default = if address.is_some() {
        Start::Auto
    } else {
        Start::Manual
    };
    start.unwrap_or(default)
}

impl ZonePolicy {
    fn read(table: &mut Table<'_>, suites: &[Suite]) -> Option<Self> {
        let choices = [
            ("accept", Stance::Accept),
            ("require", Stance::Require),
            ("refuse", Stance::Refuse),
        ];
        let no_aead = suites.iter().find(|suite| suite.hash().is_some());
        let stance = table.optional("zones", |value| match (value.choice(&choices)?, no_aead) {
            (Stance::Accept | Stance::Require, Some(suite)) => value.fault(
                format!("zones need an AEAD, and `suite` allows {suite}, which is none"),
                format!("leave {suite} out of `suite`, or write `zones = \"refuse\"`"),
            ),
            (stance, _) => Some(stance),
        });
        let refused = table.value("zones").is_none() || stance == Some(Stance::Refuse);
        let licences = table.optional("licences", |value| {
            let licences = value.list(licence)?.concat();
            if refused && !licences.is_empty() {
                return value.fault(
                    "licences speak of zones, and this peer's packets have none",
                    "add `zones = \"accept\"` or `zones = \"require\"`, or remove the licences",
                );
            }
            Some(licences)
        });
        let mut licences = licences.unwrap_or_default();
        licences.sort();
        licences.dedup();
        Some(Self {
            stance: stance.unwrap_or(Stance::Refuse),
            licences,
        })
    }
}

/// One entry of `licences`: one licence for each of its zones.
fn licence(value: &Value<'_>) -> Option<Vec<Licence>> {
    let mut table = value.table()?;
    let node = table.required("node", "\"fa.example.net\"", Value::identity);
    let zones = table.required("zones", "[\"headers\"]", licensed_zones);
    let right = table.required("right", "\"read\"", |value| {
        value.choice(&[("read", Right::Read)])
    });
    table.finish();
    let (node, right) = (node?, right?);
    let licence = |zone| Licence {
        node: node.clone(),
        zone,
        right,
    };
    Some(zones?.into_iter().map(licence).collect())
}

/// Zones by name. The payload is never meant by anything but its own name, and never alone: the
/// other zones are found by the designated one (DESIGN sections 3 and 4).
fn licensed_zones(value: &Value<'_>) -> Option<Vec<ZoneId>> {
    let zones = value.list(|zone| zone.choice(&[("headers", HEADERS), ("payload", PAYLOAD)]))?;
    if !zones.contains(&HEADERS) {
        return value.fault(
            "a node opens nothing without the zone `headers`",
            "add \"headers\", or remove this licence",
        );
    }
    Some(zones)
}
