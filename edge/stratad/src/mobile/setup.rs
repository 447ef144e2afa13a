//! Conversion of the configuration to that of the engines.

use config::{Agent, Mobility};
use crypto::Secret;
use model::TrafficSelector;
use node::mobile_ip::{
    Algorithm, Association, Config, ForeignAgentConfig, HomeAgentConfig, Lifetime,
    MobileNodeConfig, Nat, Replay,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The interface of an agent; a mobile node's interfaces are numbered as listed.
pub(super) const INTERFACE: u32 = 0;

/// Most requests that a foreign agent keeps pending at home agents.
const PENDING: usize = 256;

/// Returns the configuration of this host's role.
pub fn part(from: &Mobility) -> Config {
    match from {
        Mobility::MobileNode(node) => Config::MobileNode(mobile_node(node)),
        Mobility::ForeignAgent(agent) => Config::ForeignAgent(foreign_agent(agent)),
        Mobility::HomeAgent(agent) => Config::HomeAgent(home_agent(agent)),
    }
}

fn mobile_node(from: &config::MobileNode) -> MobileNodeConfig {
    MobileNodeConfig {
        home: from.home_address,
        home_agent: from.home_agent,
        key: association(&from.key, from.replay),
        agent_keys: keys(&from.agents),
        interfaces: (0..).take(from.interfaces.len()).collect(),
        lifetime: Lifetime::from_duration(from.lifetime),
        simultaneous: from.simultaneous,
    }
}

fn foreign_agent(from: &config::ForeignAgent) -> ForeignAgentConfig {
    ForeignAgentConfig {
        interface: INTERFACE,
        address: from.address,
        care_of: from.address,
        interval: from.advertise,
        lifetime: Lifetime::from_duration(from.lifetime),
        home_agents: from.home_agents.iter().map(vouching).collect(),
        homes: from
            .homes
            .iter()
            .map(|network| network.selector())
            .collect(),
        home_keys: keys(from.home_agents.iter().map(|home| &home.agent)),
        mobile_keys: from
            .mobiles
            .iter()
            .map(|mobile| {
                (
                    mobile.home_address,
                    association(&mobile.key, config::Replay::default()),
                )
            })
            .collect(),
        neighbours: keys(&from.neighbours),
        nat: nat(from.nat),
        keepalive: from.keepalive,
        visitors: from.visitors as usize,
        pending: PENDING,
    }
}

fn home_agent(from: &config::HomeAgent) -> HomeAgentConfig {
    HomeAgentConfig {
        address: from.address,
        lifetime: Lifetime::from_duration(from.lifetime),
        bindings: from.bindings.into(),
        reverse_tunnel_required: true,
        mobiles: from
            .mobiles
            .iter()
            .map(|config::Resident { mobile, replay }| {
                (mobile.home_address, association(&mobile.key, *replay))
            })
            .collect(),
        foreign: keys(&from.foreign),
        nat: nat(from.nat),
        nat_lifetime: Lifetime::from_duration(from.nat_lifetime),
        keepalive: from.keepalive,
    }
}

const fn nat(from: config::Nat) -> Nat {
    match from {
        config::Nat::Never => Nat::Never,
        config::Nat::Detect => Nat::Detect,
        config::Nat::Always => Nat::Always,
    }
}

/// Returns a home agent's address, and the networks of its mobile nodes.
fn vouching(listed: &config::ListedHomeAgent) -> (Ipv4Addr, Vec<TrafficSelector>) {
    let homes = listed.homes.iter().map(|network| network.selector());
    (listed.agent.address, homes.collect())
}

fn keys<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> BTreeMap<Ipv4Addr, Association> {
    let keyed = agents
        .into_iter()
        .filter_map(|agent| Some((agent.address, agent.key.as_ref()?)));
    keyed
        .map(|(address, key)| (address, association(key, config::Replay::default())))
        .collect()
}

fn association(from: &config::Association, replay: config::Replay) -> Association {
    Association {
        spi: from.spi,
        algorithm: match from.algorithm {
            config::Algorithm::HmacSha256 => Algorithm::HmacSha256,
            config::Algorithm::HmacMd5 => Algorithm::HmacMd5,
        },
        key: Secret::new(from.secret.expose().to_vec()),
        replay: match replay {
            config::Replay::Timestamps => Replay::TIMESTAMPS,
            config::Replay::Nonces => Replay::Nonces,
        },
    }
}
