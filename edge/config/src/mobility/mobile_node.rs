//! `[mobile_node]`: a machine that stays reachable at its home address wherever it is.

use super::{Agent, Association, HOME_ADDRESS, Replay, host, lifetime, unique};
use crate::reader::Value;
use std::net::Ipv4Addr;
use std::time::Duration;

/// A host that registers its care-of address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNode {
    /// `home_address`: the address at which the host stays reachable.
    pub home_address: Ipv4Addr,
    /// `home_agent`: address of the home agent.
    pub home_agent: Ipv4Addr,
    /// `interfaces`: the devices on which the host listens for foreign agents. The first with an
    /// agent is preferred.
    pub interfaces: Vec<String>,
    /// `key`: the association with the home agent.
    pub key: Association,
    /// `replay`: the replay protection, the same as in the home agent's table for us. Default
    /// `timestamps`.
    pub replay: Replay,
    /// `lifetime`: requested lifetime of a registration, 10 s to 18 h. It is renewed before its
    /// end. Default 5 min.
    pub lifetime: Duration,
    /// `simultaneous`: true if packets arrive through both agents while two are heard. Default
    /// false.
    pub simultaneous: bool,
    /// `[mobile_node.agent.NAME]`, sorted by name: foreign agents that share a key with us. Others
    /// are accepted without authentication.
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
            "write the address of the home agent",
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
                format!("`{}` is listed twice", interfaces[index]),
                "name each device once, the preferred one first",
            );
        }
    }
    Some(interfaces)
}
