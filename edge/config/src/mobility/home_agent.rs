//! `[home_agent]`: the home agent of mobile nodes that are away.

use super::{Agent, HOME_ADDRESS, Mobile, Nat, Replay, nat, unique};
use crate::keys::{HOME_AGENT, HOME_AGENT_FOREIGN, HOME_AGENT_MOBILE, RESIDENT};
use crate::reader::{Table, Value};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A router that tracks the care-of addresses of mobile nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeAgent {
    /// `address`: the address at which mobile nodes and foreign agents reach the home agent.
    pub address: Ipv4Addr,
    /// `lifetime`: the longest registration, 10 s to 18 h. Default 10 min.
    pub lifetime: Duration,
    /// `bindings`: most simultaneous bindings of a mobile node, 1 to 8. Packets for the node go to
    /// each. Default 2.
    pub bindings: u8,
    /// `nat`: the condition under which foreign agents behind a NAT get tunnels in UDP. Default
    /// `never`.
    pub nat: Nat,
    /// `nat_lifetime`: the longest registration through a NAT, 10 s to 18 h. Default 1 min.
    pub nat_lifetime: Duration,
    /// `keepalive`: keepalive interval of such a tunnel that is requested, 10 s to 1 h. Default the
    /// other end's interval.
    pub keepalive: Option<Duration>,
    /// `[home_agent.mobile.NAME]`, sorted by name: the mobile nodes that are at home here.
    pub mobiles: Vec<Resident>,
    /// `[home_agent.foreign.NAME]`, sorted by name: foreign agents that share a key with us. Others
    /// are accepted without authentication.
    pub foreign: Vec<Agent>,
}

/// A mobile node that is at home here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The mobile node.
    pub mobile: Mobile,
    /// `replay`: the replay protection, the same as at the mobile node. Default `timestamps`.
    pub replay: Replay,
}

impl HomeAgent {
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let mut agent = Self {
            address: Ipv4Addr::UNSPECIFIED,
            lifetime: Duration::from_secs(600),
            bindings: 2,
            nat: Nat::default(),
            nat_lifetime: Duration::from_secs(60),
            keepalive: None,
            mobiles: Vec::new(),
            foreign: Vec::new(),
        };
        let mut table = value.table()?;
        let is_whole = table.read(HOME_AGENT, &mut agent);
        agent.nat = nat::read(&mut table, &["nat_lifetime", "keepalive"]);
        let mobiles = table.named("mobile", Resident::read);
        let foreign = table.named("foreign", |name, table| {
            Agent::read(name, table, HOME_AGENT_FOREIGN)
        });
        table.finish();
        let all = foreign.as_deref().unwrap_or_default();
        unique(value, "foreign", all, "address", Agent::place);
        let all = mobiles.as_deref().unwrap_or_default();
        unique(value, "mobile", all, HOME_ADDRESS, |one| one.mobile.place());
        if !is_whole {
            return None;
        }
        agent.mobiles = mobiles?;
        agent.foreign = foreign?;
        if agent.mobiles.is_empty() {
            return value.fault(
                "this home agent has no mobile nodes",
                "add [home_agent.mobile.NAME] with `home_address` and `key`",
            );
        }
        Some(agent)
    }
}

impl Resident {
    fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut resident = Self {
            mobile: Mobile::new(name),
            replay: Replay::default(),
        };
        let mut is_whole = table.read(HOME_AGENT_MOBILE, &mut resident.mobile);
        is_whole &= table.read(RESIDENT, &mut resident);
        table.finish();
        is_whole.then_some(resident)
    }
}
