//! `[mobile_node]`, `[foreign_agent]` and `[home_agent]`: Mobile IPv4 (RFC 5944), which keeps a
//! host reachable at one address wherever it is. A machine has one of the three roles.

mod association;
mod foreign_agent;
mod home_agent;
pub(crate) mod mobile_node;
mod nat;

pub use association::{Agent, Algorithm, Association, Replay};
pub use foreign_agent::{ForeignAgent, ListedHomeAgent, Mobile};
pub use home_agent::{HomeAgent, Resident};
pub use mobile_node::MobileNode;
pub use nat::Nat;

pub(crate) use foreign_agent::networks;
pub(crate) use nat::keepalive;

use crate::reader::{Table, Value};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The device between a home or foreign agent and its Mobile IP tunnels. `[divert] wired` may name
/// it.
pub const MOBILE_DEVICE: &str = "strata-mobile";

/// The role of this machine in Mobile IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mobility {
    /// `[mobile_node]`.
    MobileNode(MobileNode),
    /// `[foreign_agent]`.
    ForeignAgent(ForeignAgent),
    /// `[home_agent]`.
    HomeAgent(HomeAgent),
}

/// The tables of the three roles, at most one of which may be present.
const TABLES: [&str; 3] = ["mobile_node", "foreign_agent", "home_agent"];

impl Mobility {
    /// Reads the table that is present.
    pub(crate) fn read(file: &mut Table<'_>) -> Option<Self> {
        let values = TABLES.map(|table| file.value(table).map(|value| (table, value)));
        let mut there = values.into_iter().flatten();
        let (table, value) = there.next()?;
        for (_, other) in there {
            other.fault::<()>(
                format!("[{table}] is also present, and a machine has one of the three roles"),
                "remove one of the two",
            );
        }
        match table {
            "mobile_node" => MobileNode::read(&value).map(Self::MobileNode),
            "foreign_agent" => ForeignAgent::read(&value).map(Self::ForeignAgent),
            _ => HomeAgent::read(&value).map(Self::HomeAgent),
        }
    }

    /// Returns true if the file has any of the tables, faulty or not.
    pub(crate) fn is_in(root: &Value<'_>) -> bool {
        TABLES.iter().any(|table| root.at(&[table]).is_some())
    }

    /// Returns the home addresses of hosts that may be elsewhere, with the path of the key of each.
    pub(crate) fn homes(&self) -> Vec<(Ipv4Addr, Vec<&str>)> {
        match self {
            Self::MobileNode(node) => vec![(node.home_address, vec!["mobile_node", HOME_ADDRESS])],
            // Visitors' home addresses are configured at their home agents.
            Self::ForeignAgent(_) => Vec::new(),
            Self::HomeAgent(agent) => {
                let path = |name| vec!["home_agent", "mobile", name, HOME_ADDRESS];
                let mobiles = agent.mobiles.iter();
                let homes = mobiles.map(|Resident { mobile, .. }| {
                    (mobile.home_address, path(mobile.name.as_str()))
                });
                homes.collect()
            }
        }
    }

    /// Returns every security association, with the name of its table.
    pub(crate) fn associations(&self) -> Vec<(String, &Association)> {
        match self {
            Self::MobileNode(node) => {
                let ours = ("mobile_node".to_owned(), &node.key);
                let agents = named("mobile_node.agent", &node.agents);
                [ours].into_iter().chain(agents).collect()
            }
            Self::ForeignAgent(agent) => {
                let homes = agent.home_agents.iter().map(|home| &home.agent);
                let mobiles = agent.mobiles.iter();
                let mobiles = mobiles
                    .map(|mobile| (format!("foreign_agent.mobile.{}", mobile.name), &mobile.key));
                mobiles
                    .chain(named("foreign_agent.home", homes))
                    .chain(named("foreign_agent.neighbour", &agent.neighbours))
                    .collect()
            }
            Self::HomeAgent(agent) => {
                let mobiles = agent.mobiles.iter().map(|resident| &resident.mobile);
                let mobiles = mobiles
                    .map(|mobile| (format!("home_agent.mobile.{}", mobile.name), &mobile.key));
                mobiles
                    .chain(named("home_agent.foreign", &agent.foreign))
                    .collect()
            }
        }
    }
}

/// The key of the home address in the tables of hosts.
const HOME_ADDRESS: &str = "home_address";

/// Returns the security associations of the agents that have one.
fn named<'a>(
    kind: &'static str,
    agents: impl IntoIterator<Item = &'a Agent>,
) -> impl Iterator<Item = (String, &'a Association)> {
    let keyed = agents
        .into_iter()
        .filter_map(|agent| Some((&agent.name, agent.key.as_ref()?)));
    keyed.map(move |(name, key)| (format!("{kind}.{name}"), key))
}

/// Reads the lifetime of a registration. Its 16 bits end at 65,535, which means infinity (RFC 5944
/// section 3.3).
pub(crate) fn lifetime(value: &Value<'_>) -> Option<Duration> {
    let second = Duration::from_secs(1);
    let limits: RangeInclusive<Duration> = 10 * second..=65_534 * second;
    value.duration(limits)
}

/// Reads a unicast address of a host: Mobile IPv4 has IPv4 addresses only.
pub(crate) fn host(value: &Value<'_>) -> Option<Ipv4Addr> {
    value.accepts(|| "IPv4 address".to_owned());
    let text = value.text()?;
    let Ok(address) = text.parse::<Ipv4Addr>() else {
        return value.fault(
            format!("`{}` is not an IPv4 address", text.escape_debug()),
            "write it like \"192.0.2.1\"; Mobile IPv4 has no other addresses, and names are not looked up",
        );
    };
    let nobody = address.octets()[0] == 0
        || address.is_loopback()
        || address.is_multicast()
        || address.is_broadcast();
    match nobody {
        true => value.fault(
            format!("{address} cannot be the address of a host"),
            "write a unicast address",
        ),
        false => Some(address),
    }
}

/// Records a fault if two entries have the same address, which would make the choice ambiguous.
fn unique<'a, T>(
    table: &Value<'_>,
    kind: &str,
    all: &'a [T],
    key: &str,
    of: impl Fn(&'a T) -> (&'a str, Ipv4Addr),
) {
    for (index, one) in all.iter().enumerate() {
        let (name, address) = of(one);
        let mut before = all[..index].iter().map(&of);
        if let Some((other, _)) = before.find(|(_, same)| *same == address)
            && let Some(value) = table.at(&[kind, name, key])
        {
            value.fault::<()>(
                format!("`{kind}.{other}` has the same address"),
                "give each its own address, or remove one of the two tables",
            );
        }
    }
}
