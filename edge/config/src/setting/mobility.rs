//! The tables of Mobile IP. All their keys need a restart, because existing registrations refer to
//! the old values.

use super::{Effect, Section, Setting, Value, list, restart, time};
use crate::{
    Agent, Association, ForeignAgent, HomeAgent, ListedHomeAgent, Mobile, MobileNode, Mobility,
    Prefix, Psk, Resident,
};
use std::time::Duration;

pub(super) fn sections(mobility: &Mobility) -> Vec<Section> {
    match mobility {
        Mobility::MobileNode(node) => mobile_node(node),
        Mobility::ForeignAgent(agent) => foreign_agent(agent),
        Mobility::HomeAgent(agent) => home_agent(agent),
    }
}

fn mobile_node(node: &MobileNode) -> Vec<Section> {
    let MobileNode {
        home_address,
        home_agent,
        interfaces,
        key,
        replay,
        lifetime,
        simultaneous,
        agents,
    } = node;
    let mut settings = vec![
        restart("home_address", home_address),
        restart("home_agent", home_agent),
        restart("interfaces", list(interfaces)),
        restart("replay", replay.word()),
        restart("lifetime", time(*lifetime)),
        restart("simultaneous", simultaneous),
    ];
    settings.extend(association(Some(key)));
    let agents = agents.iter().map(|one| agent("mobile_node.agent", one));
    [section("mobile_node", settings)]
        .into_iter()
        .chain(agents)
        .collect()
}

fn foreign_agent(foreign: &ForeignAgent) -> Vec<Section> {
    let ForeignAgent {
        interface,
        address,
        advertise,
        lifetime,
        visitors,
        nat,
        keepalive,
        homes,
        home_agents,
        mobiles,
        neighbours,
    } = foreign;
    let settings = vec![
        restart("interface", interface),
        restart("address", address),
        restart("advertise", time(*advertise)),
        restart("lifetime", time(*lifetime)),
        restart("visitors", visitors),
        restart("nat", nat.word()),
        restart("keepalive", kept(*keepalive)),
        restart("homes", homes_of(homes)),
    ];
    let home_agents = home_agents.iter().map(listed_home_agent);
    let neighbours = neighbours.iter();
    let neighbours = neighbours.map(|one| agent("foreign_agent.neighbour", one));
    [section("foreign_agent", settings)]
        .into_iter()
        .chain(home_agents)
        .chain(mobiles.iter().map(mobile))
        .chain(neighbours)
        .collect()
}

fn listed_home_agent(listed: &ListedHomeAgent) -> Section {
    let ListedHomeAgent { agent: of, homes } = listed;
    let mut section = agent("foreign_agent.home", of);
    section.settings.push(restart("homes", list(homes)));
    section
}

fn homes_of(homes: &[Prefix]) -> String {
    match homes.is_empty() {
        true => "anybody".to_owned(),
        false => list(homes),
    }
}

fn mobile(mobile: &Mobile) -> Section {
    let Mobile {
        name,
        home_address,
        key,
    } = mobile;
    let mut settings = vec![restart("home_address", home_address)];
    settings.extend(association(Some(key)));
    section(&format!("foreign_agent.mobile.{name}"), settings)
}

fn home_agent(home: &HomeAgent) -> Vec<Section> {
    let HomeAgent {
        address,
        lifetime,
        bindings,
        nat,
        nat_lifetime,
        keepalive,
        mobiles,
        foreign,
    } = home;
    let settings = vec![
        restart("address", address),
        restart("lifetime", time(*lifetime)),
        restart("bindings", bindings),
        restart("nat", nat.word()),
        restart("nat_lifetime", time(*nat_lifetime)),
        restart("keepalive", kept(*keepalive)),
    ];
    let foreign = foreign.iter().map(|one| agent("home_agent.foreign", one));
    [section("home_agent", settings)]
        .into_iter()
        .chain(mobiles.iter().map(resident))
        .chain(foreign)
        .collect()
}

/// Formats the keepalive interval of a tunnel, or `none` if it is left out.
fn kept(keepalive: Option<Duration>) -> String {
    keepalive.map_or_else(|| "none".to_owned(), time)
}

fn resident(resident: &Resident) -> Section {
    let Resident {
        name,
        home_address,
        key,
        replay,
    } = resident;
    let mut settings = vec![
        restart("home_address", home_address),
        restart("replay", replay.word()),
    ];
    settings.extend(association(Some(key)));
    section(&format!("home_agent.mobile.{name}"), settings)
}

fn agent(kind: &str, agent: &Agent) -> Section {
    let Agent { name, address, key } = agent;
    let mut settings = vec![restart("address", address)];
    settings.extend(association(key.as_ref()));
    section(&format!("{kind}.{name}"), settings)
}

/// Formats a security association without its secret.
fn association(key: Option<&Association>) -> [Setting; 2] {
    let shown = key.map(|key| {
        let Association {
            spi,
            secret: _,
            algorithm,
        } = key;
        format!("{spi} {}", algorithm.word())
    });
    [
        restart("key", shown.as_deref().unwrap_or("none")),
        secret("key.secret", key.map(|key| &key.secret)),
    ]
}

fn secret(key: &str, value: Option<&Psk>) -> Setting {
    Setting {
        key: key.to_owned(),
        value: Value::Psk(value.cloned()),
        effect: Effect::Restart,
    }
}

fn section(name: &str, settings: Vec<Setting>) -> Section {
    Section {
        name: name.to_owned(),
        whole: Some(Effect::Restart),
        settings,
    }
}
