//! `[mobile_node]`: a machine that stays reachable at its home address wherever it is.

use super::{Agent, Association, Replay, host, unique};
use crate::keys::{MOBILE_NODE, MOBILE_NODE_AGENT};
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
        let mut node = Self {
            home_address: Ipv4Addr::UNSPECIFIED,
            home_agent: Ipv4Addr::UNSPECIFIED,
            interfaces: Vec::new(),
            key: Association::none(),
            replay: Replay::default(),
            lifetime: Duration::from_secs(300),
            simultaneous: false,
            agents: Vec::new(),
        };
        let mut table = value.table()?;
        let is_whole = table.read(MOBILE_NODE, &mut node);
        let agents = table.named("agent", |name, table| {
            Agent::read(name, table, MOBILE_NODE_AGENT)
        });
        table.finish();
        unique(
            value,
            "agent",
            agents.as_deref().unwrap_or_default(),
            "address",
            Agent::place,
        );
        node.agents = agents?;
        is_whole.then_some(node)
    }
}

/// Reads `home_agent`, which is another host.
pub(crate) fn home_agent(value: &Value<'_>, node: &mut MobileNode) -> Option<()> {
    let agent = host(value)?;
    if agent == node.home_address {
        return value.fault(
            "this is our own `home_address`",
            "write the address of the home agent",
        );
    }
    node.home_agent = agent;
    Some(())
}

pub(crate) fn interfaces(value: &Value<'_>) -> Option<Vec<String>> {
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
