//! The shipped examples are read by people: they must be correct, and free of warnings.

use super::Folder;
use crate::{Action, Mobility, Stance, Start};
use model::{Right, ZoneId};
use std::net::IpAddr;

#[test]
fn the_example_of_a_mobile_node_connects_and_shows_its_headers_to_one_node() {
    let config = Folder::new()
        .load(include_str!("../../examples/mobile.toml"))
        .unwrap();
    assert_eq!(config.warnings, []);
    let [office] = config.peers.as_slice() else {
        panic!("one peer, not {:?}", config.peers);
    };
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    assert_eq!(office.address, Some(address.into()));
    assert_eq!(
        (office.start, office.zones.stance),
        (Start::Auto, Stance::Require)
    );
    let [licence] = office.zones.licences.as_slice() else {
        panic!("one licence, not {:?}", office.zones.licences);
    };
    assert_eq!(
        (licence.zone, licence.right),
        (ZoneId::DESIGNATED, Right::Read)
    );
    assert_eq!(
        config.policies[0].remote.to_string(),
        "10.8.9.0/24 protocol 6 ports 25-25"
    );
    assert_eq!(config.policies[1].action, Action::Bypass);
    assert_eq!(config.tunnel.addresses[0].to_string(), "10.1.0.2/32");
}

#[test]
fn the_example_of_a_gateway_waits_for_its_peer_and_has_the_licensed_nodes_key() {
    let config = Folder::new()
        .load(include_str!("../../examples/gateway.toml"))
        .unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(
        (&config.peers[0].address, config.peers[0].start),
        (&None, Start::Manual)
    );
    assert_eq!(
        config.licensed[0].party.identity,
        config.peers[0].zones.licences[0].node
    );
    assert_eq!(
        config.licensed[0].party.psk.as_ref().unwrap().expose(),
        b"9f86d081884c7d659a2feaa0c55ad015"
    );
}

#[test]
fn the_example_of_a_licensed_node_diverts_and_snoops() {
    let config = Folder::new()
        .load(include_str!("../../examples/licensed.toml"))
        .unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(config.gateways[0].party.name, "gw");
    assert_eq!(config.divert.unwrap().wireless, "wlan0");
    assert_eq!(config.snoop.unwrap().octets, 16 << 20);
}

#[test]
fn the_examples_of_mobile_ip_fit_together() {
    let folder = Folder::new();
    let load = |text| {
        let config = folder.load(text).unwrap();
        assert_eq!(config.warnings, []);
        config
    };
    let mobile = load(include_str!("../../examples/mobile_node.toml"));
    let foreign = load(include_str!("../../examples/foreign_agent.toml"));
    let home = load(include_str!("../../examples/home_agent.toml"));
    let (
        Some(Mobility::MobileNode(node)),
        Some(Mobility::ForeignAgent(agent)),
        Some(Mobility::HomeAgent(gateway)),
    ) = (&mobile.mobility, &foreign.mobility, &home.mobility)
    else {
        panic!("each has its table");
    };
    let [alice] = &gateway.mobiles[..] else {
        panic!("{:?}", gateway.mobiles);
    };
    assert_eq!(node.home_address, alice.mobile.home_address);
    assert_eq!((&node.key, node.replay), (&alice.mobile.key, alice.replay));
    assert_eq!(
        (node.home_agent, agent.home_agents[0].agent.address),
        (gateway.address, gateway.address)
    );
    assert_eq!(foreign.divert.unwrap().wireless, agent.interface);
    // The inner tunnel belongs to a mobile node and its gateway.
    assert_eq!(
        mobile.peers[0].address,
        Some(IpAddr::from(gateway.address).into())
    );
    assert_eq!(mobile.peers[0].party.identity, home.identity);
    assert_eq!(home.peers[0].party.identity, mobile.identity);
    assert_eq!(mobile.peers[0].local, home.peers[0].remote);
    assert_eq!(foreign.gateways[0].party.identity, home.identity);
}

/// Lines that are commented out in the examples are correct too.
#[test]
fn what_the_examples_of_mobile_ip_leave_out_can_be_written() {
    let folder = Folder::new();
    folder.key("cafe.key", b"d7a8fbb307d7809469ca9abcb0082e4f", 0o600);
    folder.key("office.key", b"8d5651e46d3cdb762d02d0bf37c9e592", 0o600);
    folder.key("bar.key", b"5994471abb01112afcc18159f6cc74b4", 0o600);
    for (text, associations) in [
        (include_str!("../../examples/mobile_node.toml"), 2),
        (include_str!("../../examples/foreign_agent.toml"), 3),
        (include_str!("../../examples/home_agent.toml"), 2),
    ] {
        let said = |line: &str| {
            let words = line.strip_prefix("# ")?;
            let key = words.split([' ', '.']).next()?;
            let known = words.starts_with('[') || words.contains(" = ") && !key.is_empty();
            known.then(|| words.to_owned())
        };
        let mut lines: Vec<_> = text
            .lines()
            .map(|line| said(line).unwrap_or(line.into()))
            .collect();
        // A table has only one `key`.
        lines.dedup_by(|second, first| second.starts_with("key = ") && first.starts_with("key = "));
        let config = folder.load(&lines.join("\n")).unwrap();
        assert_eq!(config.warnings, []);
        let keys = config.mobility.as_ref().map(Mobility::associations);
        assert_eq!(keys.unwrap().len(), associations);
    }
}

#[test]
fn both_ends_and_the_node_of_the_examples_fit_together() {
    let folder = Folder::new();
    let mobile = folder
        .load(include_str!("../../examples/mobile.toml"))
        .unwrap();
    let gateway = folder
        .load(include_str!("../../examples/gateway.toml"))
        .unwrap();
    let licensed = folder
        .load(include_str!("../../examples/licensed.toml"))
        .unwrap();
    assert_eq!(mobile.peers[0].party.identity, gateway.identity);
    assert_eq!(gateway.peers[0].party.identity, mobile.identity);
    assert_eq!(mobile.peers[0].local, gateway.peers[0].remote);
    assert_eq!(mobile.peers[0].remote, gateway.peers[0].local);
    assert_eq!(
        mobile.peers[0].zones.licences,
        gateway.peers[0].zones.licences
    );
    assert_eq!(gateway.licensed[0].party.identity, licensed.identity);
    assert_eq!(licensed.gateways[0].party.identity, gateway.identity);
}
