//! `[foreign_agent]`: the foreign agent of mobile nodes that visit this router.

use super::{Agent, Association, HOME_ADDRESS, Nat, nat, unique};
use crate::Prefix;
use crate::keys::{FOREIGN_AGENT, FOREIGN_NEIGHBOUR, LISTED, LISTED_AGENT, MOBILE};
use crate::reader::{Table, Value};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A router through which visitors register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignAgent {
    /// `interface`: the device on which visitors are.
    pub interface: String,
    /// `address`: the care-of address, to which home agents tunnel visitors' packets.
    pub address: Ipv4Addr,
    /// `advertise`: interval of agent advertisements, 100 ms to 10 min. Default 1 s.
    pub advertise: Duration,
    /// `lifetime`: the longest registration, 10 s to 18 h. Default 5 min.
    pub lifetime: Duration,
    /// `visitors`: most visitors at once, 1 to 10,000. Default 1000.
    pub visitors: u32,
    /// `nat`: the condition under which home agents are asked for tunnels in UDP, which traverse
    /// NATs. Default `never`.
    pub nat: Nat,
    /// `keepalive`: keepalive interval of such a tunnel, 10 s to 1 h, or less if the home agent
    /// asks for it. Default the home agent's interval, or 110 s.
    pub keepalive: Option<Duration>,
    /// `homes`: the home networks of visitors, or `anybody`, which is an empty list here. Required
    /// if no home agent is listed, because any station on the link can name a home agent of its
    /// own. Default all networks of the listed home agents.
    pub homes: Vec<Prefix>,
    /// `[foreign_agent.home.NAME]`, sorted by name: the home agents whose mobile nodes are
    /// accepted. Default any home agent, limited by `homes`.
    pub home_agents: Vec<ListedHomeAgent>,
    /// `[foreign_agent.mobile.NAME]`, sorted by name: mobile nodes that share a key with us. Others
    /// are accepted without authentication.
    pub mobiles: Vec<Mobile>,
    /// `[foreign_agent.neighbour.NAME]`, sorted by name: foreign agents that visitors come from or
    /// move to. Each forwards packets that still arrive for a departed visitor, if the visitor has
    /// asked for it with its own key.
    pub neighbours: Vec<Agent>,
}

/// A home agent whose mobile nodes are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHomeAgent {
    /// The agent.
    pub agent: Agent,
    /// `homes`: the home networks of its mobile nodes, for which no other home agent is accepted.
    /// Default all that no other home agent has.
    pub homes: Vec<Prefix>,
}

/// A mobile node that shares a key with us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobile {
    /// The table's name.
    pub name: String,
    /// `home_address`: the node's home address.
    pub home_address: Ipv4Addr,
    /// `key`: the association with the node.
    pub key: Association,
}

impl ForeignAgent {
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let second = Duration::from_secs(1);
        let mut agent = Self {
            interface: String::new(),
            address: Ipv4Addr::UNSPECIFIED,
            advertise: second,
            lifetime: 300 * second,
            visitors: 1000,
            nat: Nat::default(),
            keepalive: None,
            homes: Vec::new(),
            home_agents: Vec::new(),
            mobiles: Vec::new(),
            neighbours: Vec::new(),
        };
        let mut table = value.table()?;
        let is_whole = table.read(FOREIGN_AGENT, &mut agent);
        agent.nat = nat::read(&mut table, &["keepalive"]);
        let home_agents = table.named("home", ListedHomeAgent::read);
        let is_anybodys = home_agents.as_ref().is_some_and(Vec::is_empty);
        let homes = homes(&mut table, is_anybodys);
        let mobiles = table.named("mobile", Mobile::read);
        let ours = agent.address;
        let neighbours = table.named("neighbour", |name, table| neighbour(name, table, ours));
        table.finish();
        let all = home_agents.as_deref().unwrap_or_default();
        unique(value, "home", all, "address", |home| home.agent.place());
        distinct(value, all);
        let all = mobiles.as_deref().unwrap_or_default();
        unique(value, "mobile", all, HOME_ADDRESS, Mobile::place);
        let all = neighbours.as_deref().unwrap_or_default();
        unique(value, "neighbour", all, "address", Agent::place);
        agent.homes = homes?;
        agent.home_agents = home_agents?;
        agent.mobiles = mobiles?;
        agent.neighbours = neighbours?;
        is_whole.then_some(agent)
    }
}

/// Checks that no home network belongs to two home agents.
fn distinct(table: &Value<'_>, all: &[ListedHomeAgent]) {
    for (index, one) in all.iter().enumerate() {
        let others = all[..index].iter();
        let mut both = others.filter(|other| one.shares_homes(other));
        if let (Some(other), Some(value)) =
            (both.next(), table.at(&["home", &one.agent.name, "homes"]))
        {
            value.fault::<()>(
                format!(
                    "`home.{}` has mobile nodes of these networks",
                    other.agent.name
                ),
                "list each network at the home agent that it belongs to",
            );
        }
    }
}

/// Reads `homes`, which is required if any home agent is accepted.
fn homes(table: &mut Table<'_>, is_anybodys: bool) -> Option<Vec<Prefix>> {
    match table.value("homes") {
        None if is_anybodys => table.whole().fault(
            "no mobile node can register: neither a home agent nor a home network is listed",
            "add [foreign_agent.home.NAME] with the `address` of a home agent, or `homes = [\"10.66.0.0/16\"]` to accept \
             mobile nodes of these networks; `homes = \"anybody\"` accepts any home address from any station on the link",
        ),
        None => Some(Vec::new()),
        Some(value) if !value.is_text() => networks(&value),
        Some(value) => {
            value.choice(&[("anybody", ())])?;
            match is_anybodys {
                true => Some(Vec::new()),
                false => value.fault(
                    "home agents are listed, and only their mobile nodes can register",
                    "remove `homes`, or the [foreign_agent.home.NAME] tables",
                ),
            }
        }
    }
}

pub(crate) fn networks(value: &Value<'_>) -> Option<Vec<Prefix>> {
    let networks = value.list(Value::prefix)?;
    let is_one = |network: &Prefix| network.address().is_ipv4() && network.length() > 0;
    match !networks.is_empty() && networks.iter().all(is_one) {
        true => Some(networks),
        false => value.fault(
            "not a list of IPv4 networks",
            "list at least one, like \"10.66.0.0/16\"; `homes = \"anybody\"` accepts every address",
        ),
    }
}

/// Reads a neighbour, which must be another agent and have a key: only an authenticated agent may
/// redirect packets.
fn neighbour(name: &str, mut table: Table<'_>, ours: Ipv4Addr) -> Option<Agent> {
    let mut agent = Agent::new(name);
    let is_whole = table.read(FOREIGN_NEIGHBOUR, &mut agent);
    if let (true, Some(value)) = (agent.address == ours, table.value("address"))
        && !ours.is_unspecified()
    {
        value.fault::<()>(
            "this is our own `address`",
            "write the care-of address of the other foreign agent",
        );
    }
    table.finish();
    (is_whole && agent.address != ours).then_some(agent)
}

impl ListedHomeAgent {
    fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut home = Self {
            agent: Agent::new(name),
            homes: Vec::new(),
        };
        let mut is_whole = table.read(LISTED, &mut home);
        is_whole &= table.read(LISTED_AGENT, &mut home.agent);
        table.finish();
        is_whole.then_some(home)
    }

    fn shares_homes(&self, other: &Self) -> bool {
        let others = || other.homes.iter().map(|home| home.selector());
        let mut homes = self.homes.iter().map(|home| home.selector());
        homes.any(|home| others().any(|other| home.intersection(&other).is_some()))
    }
}

impl Mobile {
    fn read(name: &str, mut table: Table<'_>) -> Option<Self> {
        let mut mobile = Self::new(name);
        let is_whole = table.read(MOBILE, &mut mobile);
        table.finish();
        is_whole.then_some(mobile)
    }

    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            home_address: Ipv4Addr::UNSPECIFIED,
            key: Association::none(),
        }
    }

    pub(super) fn place(&self) -> (&str, Ipv4Addr) {
        (&self.name, self.home_address)
    }
}
