//! The keys of the tables of Mobile IP. All of them need a restart, because existing registrations
//! refer to the old values.

use super::show::{list, or, secret, text};
use super::{
    Described, Effect, Key, Read, SECOND, Section, Shown, describe, put, settings, small, time,
};
use crate::mobility::{host, keepalive, lifetime, mobile_node, networks};
use crate::{
    Agent, Association, ForeignAgent, HomeAgent, ListedHomeAgent, Mobile, MobileNode, Mobility,
    Prefix, Replay, Resident,
};

/// The keys of `[mobile_node]`.
pub(crate) const MOBILE_NODE: &[Key<MobileNode>] = &[
    Key {
        name: "home_address",
        about: "our permanent address; set on the loopback device",
        example: r#""10.66.0.7""#,
        effect: Effect::Restart,
        read: Read::Required(|value, node| put(&mut node.home_address, host(value))),
        show: |node| text(node.home_address),
    },
    Key {
        name: "home_agent",
        about: "router that tunnels packets for the home address to us",
        example: r#""192.0.2.1""#,
        effect: Effect::Restart,
        read: Read::Required(mobile_node::home_agent),
        show: |node| text(node.home_agent),
    },
    Key {
        name: "interfaces",
        about: "devices on which we look for foreign agents, preferred first",
        example: r#"["wlan0"]"#,
        effect: Effect::Restart,
        read: Read::Required(|value, node| {
            put(&mut node.interfaces, mobile_node::interfaces(value))
        }),
        show: |node| list(&node.interfaces),
    },
    Key {
        name: "key",
        about: "With the home agent: a number, the same at both ends, and a file in this folder, \
            mode 0600; create the file with (umask 077; head -c 32 /dev/urandom | base64 > \
            home.key)",
        example: r#"{ spi = 4097, secret = "home.key" }"#,
        effect: Effect::Restart,
        read: Read::Required(|value, node| put(&mut node.key, Association::read(value))),
        show: |node| association(Some(&node.key)),
    },
    Key {
        name: "key.secret",
        about: "",
        example: "",
        effect: Effect::Restart,
        read: Read::Part,
        show: |node| association_secret(Some(&node.key)),
    },
    Key {
        name: "replay",
        about: "needs correct clocks at both ends; \"nonces\": any clock",
        example: r#""nonces""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, node| put(&mut node.replay, Replay::read(value))),
        show: |node| text(node.replay.word()),
    },
    Key {
        name: "lifetime",
        about: "lifetime of a registration; it is renewed in time",
        example: r#""10m""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, node| put(&mut node.lifetime, lifetime(value))),
        show: |node| text(time(node.lifetime)),
    },
    Key {
        name: "simultaneous",
        about: "true: while two agents are in reach, packets arrive through both. Reverse paths \
            must not be checked strictly (`rp_filter`)",
        example: "true",
        effect: Effect::Restart,
        read: Read::Optional(|value, node| put(&mut node.simultaneous, value.boolean())),
        show: |node| text(node.simultaneous),
    },
];

/// The keys of `[mobile_node.agent.NAME]`.
pub(crate) const MOBILE_NODE_AGENT: &[Key<Agent>] = &[
    address("its care-of address", r#""192.0.2.1""#),
    key("the same as in its table for us"),
    SECRET,
];

/// The keys of `[foreign_agent]`.
pub(crate) const FOREIGN_AGENT: &[Key<ForeignAgent>] = &[
    Key {
        name: "interface",
        about: "device on which visitors register",
        example: r#""wlan0""#,
        effect: Effect::Restart,
        read: Read::Required(|value, agent| put(&mut agent.interface, value.interface())),
        show: |agent| text(&agent.interface),
    },
    Key {
        name: "address",
        about: "care-of address, to which home agents tunnel",
        example: r#""198.51.100.2""#,
        effect: Effect::Restart,
        read: Read::Required(|value, agent| put(&mut agent.address, host(value))),
        show: |agent| text(agent.address),
    },
    Key {
        name: "advertise",
        about: "interval of advertisements",
        example: r#""2s""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| {
            put(
                &mut agent.advertise,
                value.duration(SECOND / 10..=600 * SECOND),
            )
        }),
        show: |agent| text(time(agent.advertise)),
    },
    Key {
        name: "lifetime",
        about: "longest registration",
        example: r#""10m""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.lifetime, lifetime(value))),
        show: |agent| text(time(agent.lifetime)),
    },
    Key {
        name: "visitors",
        about: "most visitors at the same time",
        example: "100",
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.visitors, value.number(1..=10_000))),
        show: |agent| text(agent.visitors),
    },
    Key {
        name: "nat",
        about: "ask home agents for tunnels in UDP, which pass a NAT (RFC 3519). \"always\": \
            demand tunnels in UDP. Default \"never\"",
        example: r#""detect""#,
        effect: Effect::Restart,
        read: Read::Together,
        show: |agent| text(agent.nat.word()),
    },
    Key {
        name: "keepalive",
        about: "silence after which a keepalive is sent in such a tunnel; less than the timeout of \
            the NAT. Default: the value of the home agent, or 110 s",
        example: r#""50s""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.keepalive, keepalive(value).map(Some))),
        show: |agent| or("none", agent.keepalive.map(time)),
    },
    Key {
        name: "homes",
        about: "home networks of visitors. Required if no home agent is listed below, because any \
            station can name its own home agent. \"anybody\": every address that this router does \
            not use. Default: any address, with the listed home agents",
        example: r#"["10.66.0.0/16"]"#,
        effect: Effect::Restart,
        read: Read::Part,
        show: |agent| homes(&agent.homes),
    },
];

/// The keys of `[foreign_agent.home.NAME]`.
pub(crate) const LISTED_AGENT: &[Key<Agent>] = &[
    address("address of the home agent", r#""192.0.2.1""#),
    key(
        "authenticates messages between the two agents; default: none. `nat` requires it at both \
            ends",
    ),
    SECRET,
];

/// The key of `[foreign_agent.home.NAME]` that other agents lack.
pub(crate) const LISTED: &[Key<ListedHomeAgent>] = &[Key {
    name: "homes",
    about: "home networks of its mobile nodes; default: all that no other home agent has",
    example: r#"["10.66.0.0/16"]"#,
    effect: Effect::Restart,
    read: Read::Sound(|value, home| put(&mut home.homes, networks(value))),
    show: |home| list(&home.homes),
}];

/// The keys of `[foreign_agent.mobile.NAME]`.
pub(crate) const MOBILE: &[Key<Mobile>] = &[
    home_address("its home address"),
    mobile_key("the same as at the mobile node"),
    MOBILE_SECRET,
];

/// The keys of `[foreign_agent.neighbour.NAME]`.
pub(crate) const FOREIGN_NEIGHBOUR: &[Key<Agent>] = &[
    address("its care-of address", r#""203.0.113.2""#),
    required_key("the same as in its table for this agent"),
    SECRET,
];

/// The keys of `[home_agent]`.
pub(crate) const HOME_AGENT: &[Key<HomeAgent>] = &[
    Key {
        name: "address",
        about: "our address for mobile nodes and foreign agents",
        example: r#""192.0.2.1""#,
        effect: Effect::Restart,
        read: Read::Required(|value, agent| put(&mut agent.address, host(value))),
        show: |agent| text(agent.address),
    },
    Key {
        name: "lifetime",
        about: "longest registration",
        example: r#""5m""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.lifetime, lifetime(value))),
        show: |agent| text(time(agent.lifetime)),
    },
    Key {
        name: "bindings",
        about: "most care-of addresses of a mobile node; each gets all packets",
        example: "3",
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.bindings, small(value, 1..=8))),
        show: |agent| text(agent.bindings),
    },
    Key {
        name: "nat",
        about: "foreign agents behind a NAT get tunnels in UDP (RFC 3519) if they request them and \
            have a key below, because any host that receives a registration could forge the \
            request. An attacker who modifies the address of a registration on the path gets the \
            packets until the next one. \"always\": also agents that demand UDP without a NAT. \
            Default \"never\"",
        example: r#""detect""#,
        effect: Effect::Restart,
        read: Read::Together,
        show: |agent| text(agent.nat.word()),
    },
    Key {
        name: "nat_lifetime",
        about: "longest registration of such a tunnel",
        example: r#""2m""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.nat_lifetime, lifetime(value))),
        show: |agent| text(time(agent.nat_lifetime)),
    },
    Key {
        name: "keepalive",
        about: "silence after which agents send a keepalive in such a tunnel",
        example: r#""50s""#,
        effect: Effect::Restart,
        read: Read::Optional(|value, agent| put(&mut agent.keepalive, keepalive(value).map(Some))),
        show: |agent| or("none", agent.keepalive.map(time)),
    },
];

/// The keys of `[home_agent.mobile.NAME]`.
pub(crate) const HOME_AGENT_MOBILE: &[Key<Mobile>] = &[
    home_address("an outer address, so in no `remote` and no pool"),
    mobile_key("the same as at the mobile node, also its `algorithm`"),
    MOBILE_SECRET,
];

/// The key of `[home_agent.mobile.NAME]` that other mobile nodes lack.
pub(crate) const RESIDENT: &[Key<Resident>] = &[Key {
    name: "replay",
    about: "the same as at the mobile node",
    example: r#""nonces""#,
    effect: Effect::Restart,
    read: Read::Optional(|value, resident| put(&mut resident.replay, Replay::read(value))),
    show: |resident| text(resident.replay.word()),
}];

/// The keys of `[home_agent.foreign.NAME]`.
pub(crate) const HOME_AGENT_FOREIGN: &[Key<Agent>] = &[
    address("its care-of address", r#""192.0.2.1""#),
    key("the same as in its table for us"),
    SECRET,
];

const fn address(about: &'static str, example: &'static str) -> Key<Agent> {
    Key {
        name: "address",
        about,
        example,
        effect: Effect::Restart,
        read: Read::Required(|value, agent| put(&mut agent.address, host(value))),
        show: |agent| text(agent.address),
    }
}

const fn key(about: &'static str) -> Key<Agent> {
    Key {
        read: Read::Sound(|value, agent| put(&mut agent.key, Association::read(value).map(Some))),
        ..required_key(about)
    }
}

const fn required_key(about: &'static str) -> Key<Agent> {
    Key {
        name: "key",
        about,
        example: r#"{ spi = 4097, secret = "home.key" }"#,
        effect: Effect::Restart,
        read: Read::Required(|value, agent| {
            put(&mut agent.key, Association::read(value).map(Some))
        }),
        show: |agent| association(agent.key.as_ref()),
    }
}

const SECRET: Key<Agent> = Key {
    name: "key.secret",
    about: "",
    example: "",
    effect: Effect::Restart,
    read: Read::Part,
    show: |agent| association_secret(agent.key.as_ref()),
};

const fn home_address(about: &'static str) -> Key<Mobile> {
    Key {
        name: "home_address",
        about,
        example: r#""10.66.0.7""#,
        effect: Effect::Restart,
        read: Read::Required(|value, mobile| put(&mut mobile.home_address, host(value))),
        show: |mobile| text(mobile.home_address),
    }
}

const fn mobile_key(about: &'static str) -> Key<Mobile> {
    Key {
        name: "key",
        about,
        example: r#"{ spi = 4097, secret = "home.key" }"#,
        effect: Effect::Restart,
        read: Read::Required(|value, mobile| put(&mut mobile.key, Association::read(value))),
        show: |mobile| association(Some(&mobile.key)),
    }
}

const MOBILE_SECRET: Key<Mobile> = Key {
    name: "key.secret",
    about: "",
    example: "",
    effect: Effect::Restart,
    read: Read::Part,
    show: |mobile| association_secret(Some(&mobile.key)),
};

pub(super) fn describe_all(all: &mut Vec<Described>) {
    describe("mobile_node", MOBILE_NODE, all);
    describe("mobile_node.agent.NAME", MOBILE_NODE_AGENT, all);
    describe("foreign_agent", FOREIGN_AGENT, all);
    describe("foreign_agent.home.NAME", LISTED_AGENT, all);
    describe("foreign_agent.home.NAME", LISTED, all);
    describe("foreign_agent.mobile.NAME", MOBILE, all);
    describe("foreign_agent.neighbour.NAME", FOREIGN_NEIGHBOUR, all);
    describe("home_agent", HOME_AGENT, all);
    describe("home_agent.mobile.NAME", HOME_AGENT_MOBILE, all);
    describe("home_agent.mobile.NAME", RESIDENT, all);
    describe("home_agent.foreign.NAME", HOME_AGENT_FOREIGN, all);
}

pub(super) fn sections(mobility: &Mobility) -> Vec<Section> {
    match mobility {
        Mobility::MobileNode(node) => {
            let mut sections = vec![section("mobile_node", MOBILE_NODE, node)];
            let agents = node.agents.iter();
            sections.extend(
                agents.map(|one| named("mobile_node.agent", &one.name, MOBILE_NODE_AGENT, one)),
            );
            sections
        }
        Mobility::ForeignAgent(agent) => {
            let mut sections = vec![section("foreign_agent", FOREIGN_AGENT, agent)];
            let homes = agent.home_agents.iter();
            sections.extend(homes.map(|home| {
                let of = &home.agent;
                let mut section = named("foreign_agent.home", &of.name, LISTED_AGENT, of);
                section.settings.extend(settings(LISTED, home));
                section
            }));
            let mobiles = agent.mobiles.iter();
            sections
                .extend(mobiles.map(|one| named("foreign_agent.mobile", &one.name, MOBILE, one)));
            let neighbours = agent.neighbours.iter();
            sections
                .extend(neighbours.map(|one| {
                    named("foreign_agent.neighbour", &one.name, FOREIGN_NEIGHBOUR, one)
                }));
            sections
        }
        Mobility::HomeAgent(agent) => {
            let mut sections = vec![section("home_agent", HOME_AGENT, agent)];
            let mobiles = agent.mobiles.iter();
            sections.extend(mobiles.map(|resident| {
                let of = &resident.mobile;
                let mut section = named("home_agent.mobile", &of.name, HOME_AGENT_MOBILE, of);
                section.settings.extend(settings(RESIDENT, resident));
                section
            }));
            let foreign = agent.foreign.iter();
            sections.extend(
                foreign.map(|one| named("home_agent.foreign", &one.name, HOME_AGENT_FOREIGN, one)),
            );
            sections
        }
    }
}

fn named<T>(kind: &str, name: &str, keys: &[Key<T>], of: &T) -> Section {
    section(&format!("{kind}.{name}"), keys, of)
}

fn section<T>(name: &str, keys: &[Key<T>], of: &T) -> Section {
    Section {
        name: name.to_owned(),
        whole: Some(Effect::Restart),
        settings: settings(keys, of),
    }
}

/// Shows a security association without its secret.
fn association(key: Option<&Association>) -> Shown {
    let shown = |key: &Association| {
        let Association {
            spi,
            secret: _,
            algorithm,
        } = key;
        format!("{spi} {}", algorithm.word())
    };
    or("none", key.map(shown))
}

fn association_secret(key: Option<&Association>) -> Shown {
    secret(key.map(|key| &key.secret))
}

fn homes(homes: &[Prefix]) -> Shown {
    match homes.is_empty() {
        true => text("anybody"),
        false => list(homes),
    }
}
