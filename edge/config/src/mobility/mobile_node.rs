//! `[mobile_node]`: this machine is reached at its home address wherever it is.

use super::{Agent, Association, HOME_ADDRESS, Replay, host, lifetime, unique};
use crate::reader::Value;
use std::net::Ipv4Addr;
use std::time::Duration;

/// A host that registers where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNode {
    /// `home_address`: where it is reached.
    pub home_address: Ipv4Addr,
    /// `home_agent`: who stands in for it there.
    pub home_agent: Ipv4Addr,
    /// `interfaces`: where it listens for foreign agents. The first that has one is preferred.
    pub interfaces: Vec<String>,
    /// `key`: with the home agent.
    pub key: Association,
    /// `replay`: as the home agent has it in its table for us. Default `timestamps`.
    pub replay: Replay,
    /// `lifetime`: how long a registration is to count, 10 s to 18 h. It is renewed before. Default 5 min.
    pub lifetime: Duration,
    /// `simultaneous`: while two foreign agents are heard, packets come by both. Default false.
    pub simultaneous: bool,
    /// `[mobile_node.agent.NAME]`, sorted by name: foreign agents with which there is a key. Others are taken
    /// without.
    pub agents: Vec<Agent>,
}

impl MobileNode {
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let mut table = value.table()?;
        let home_address = table.required(HOME_ADDRESS, "\"10.66.0.7\"", host);
        let home_agent = table.required("home_agent", "\"192.0.2.1\"", |value| {
            other_than(value, home_address)
        });
        let interfaces = table.required("interfaces", "[\"wlan0\"]", interfaces);
        let key = Association::required(&mut table);
        let replay = table.optional("replay", Replay::read);
        let lifetime = table.optional("lifetime", lifetime);
        let simultaneous = table.optional("simultaneous", Value::boolean);
        let agents = table.named("agent", Agent::read);
        table.finish();
        unique(
            value,
            "agent",
            agents.as_deref().unwrap_or_default(),
            "address",
            Agent::place,
        );
        Some(Self {
            home_address: home_address?,
            home_agent: home_agent?,
            interfaces: interfaces?,
            key: key?,
            replay: replay.unwrap_or_default(),
            lifetime: lifetime.unwrap_or(Duration::from_secs(300)),
            simultaneous: simultaneous.unwrap_or(false),
            agents: agents?,
        })
    }
}

fn other_than(value: &Value<'_>, home: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
    let agent = host(value)?;
    match home == Some(agent) {
        true => value.fault(
            "this is our own `home_address`",
            "write the address of the router that stands in for us",
        ),
        false => Some(agent),
    }
}

fn interfaces(value: &Value<'_>) -> Option<Vec<String>> {
    let interfaces = value.list(Value::interface)?;
    if interfaces.is_empty() {
        return value.fault("is empty", "list at least one device, like \"wlan0\"");
    }
    for (index, place) in value.elements().enumerate() {
        if interfaces[..index].contains(&interfaces[index]) {
            return place.fault(
                format!("`{}` is there already", interfaces[index]),
                "name each device once, the preferred one first",
            );
        }
    }
    Some(interfaces)
}
