//! `[home_agent]`: this router stands in for mobile nodes that are away.

use super::{Agent, Association, HOME_ADDRESS, Nat, Replay, host, lifetime, nat, unique};
use crate::reader::{Table, Value};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A router that knows where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeAgent {
    /// `address`: where mobile nodes and foreign agents reach it.
    pub address: Ipv4Addr,
    /// `lifetime`: the longest registration, 10 s to 18 h. Default 10 min.
    pub lifetime: Duration,
    /// `bindings`: at how many places one may be at once, 1 to 8: packets for it go to each. Default 2.
    pub bindings: u8,
    /// `nat`: whether foreign agents behind a NAT get their tunnels in UDP. Default `never`.
    pub nat: Nat,
    /// `nat_lifetime`: the longest registration through a NAT, 10 s to 18 h. Default 1 min.
    pub nat_lifetime: Duration,
    /// `keepalive`: after how long such a tunnel is to be kept alive, 10 s to 1 h. Default what the other end has.
    pub keepalive: Option<Duration>,
    /// `[home_agent.mobile.NAME]`, sorted by name: whom it stands in for.
    pub mobiles: Vec<Resident>,
    /// `[home_agent.foreign.NAME]`, sorted by name: foreign agents with which there is a key. Others are taken
    /// without.
    pub foreign: Vec<Agent>,
}

/// A mobile node that is at home here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The table's name.
    pub name: String,
    /// `home_address`: where it is reached.
    pub home_address: Ipv4Addr,
    /// `key`: with it.
    pub key: Association,
    /// `replay`: as it has it. Default `timestamps`.
    pub replay: Replay,
}

impl HomeAgent {
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let address = table.required("address", "\"192.0.2.1\"", host);
        let longest = table.optional("lifetime", lifetime);
        let bindings = table.optional("bindings", |value| value.number(1..=8));
        let nat = table.optional("nat", Nat::read);
        let nat_lifetime = table.optional("nat_lifetime", lifetime);
        let keepalive = table.optional("keepalive", nat::keepalive);
        nat::needed(&mut table, nat, &["nat_lifetime", "keepalive"]);
        let mobiles = table.named("mobile", Resident::read);
        let foreign = table.named("foreign", Agent::read);
        table.finish();
        let all = foreign.as_deref().unwrap_or_default();
        unique(value, "foreign", all, "address", Agent::place);
        let all = mobiles.as_deref().unwrap_or_default();
        unique(value, "mobile", all, HOME_ADDRESS, Resident::place);
        let agent = Self {
            address: address?,
            lifetime: longest.unwrap_or(Duration::from_secs(600)),
            bindings: bindings.map_or(2, |bindings| bindings as u8),
            nat: nat.unwrap_or_default(),
            nat_lifetime: nat_lifetime.unwrap_or(Duration::from_secs(60)),
            keepalive,
            mobiles: mobiles?,
            foreign: foreign?,
        };
        if agent.mobiles.is_empty() {
            return value.fault(
                "there is nobody to stand in for",
                "add [home_agent.mobile.NAME] with `home_address` and `key`",
            );
        }
        Some(agent)
    }
}

impl Resident {
    fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let home_address = table.required(HOME_ADDRESS, "\"10.66.0.7\"", host);
        let key = Association::required(&mut table);
        let replay = table.optional("replay", Replay::read);
        table.finish();
        Some(Self {
            name: name.to_owned(),
            home_address: home_address?,
            key: key?,
            replay: replay.unwrap_or_default(),
        })
    }

    fn place(&self) -> (&str, Ipv4Addr) {
        (&self.name, self.home_address)
    }
}
