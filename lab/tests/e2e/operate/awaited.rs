//! Interfaces, addresses and routes that come after the daemon: it starts without them, `strata
//! status` shows what it waits for, and it continues when they exist.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::transfer::transfer;
use lab::walk::{CARE_OF, Ends, HOME_KEY, Walk};
use os::Family;
use serde_json::Value;

const OCTETS: u64 = 10_000;

// Recovers: licensed-node
// Weakness: 144
#[lab::test]
fn a_licensed_node_diverts_as_soon_as_its_interfaces_exist() -> Result<()> {
    let pair = Pair::new("awaited")?;
    pair.between.run("ip link set wireless name unnamed")?;
    pair.between.run("ip link set wired name unnamed2")?;
    let mut node = pair.start_licensed(pair::LICENSED)?;
    let wireless = "the interface wireless (`divert.wireless`)";
    waits_for(&node, &["the interface wired (`divert.wired`)", wireless])?;
    pair.between.run("ip link set unnamed2 name wired")?;
    waits_for(&node, &[wireless])?;
    pair.between.run("ip link set unnamed name wireless")?;
    waits_for(&node, &[])?;
    let log = node.process().log();
    ensure!(log.contains(&format!("waiting for {wireless}")), "{log}");
    ensure!(log.contains(&format!("found {wireless}")), "{log}");
    let _tunnel = pair.start_up(Terms::LICENSED)?;
    node.wait_until("zones", DEADLINE, pair::holds_a_grant)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    ensure!(pair::segments(&node)? > 0, "no headers were read");
    Ok(())
}

// Recovers: listen-addresses
// Weakness: 144
#[lab::test]
fn a_tunnel_comes_up_once_the_address_to_listen_on_exists() -> Result<()> {
    let pair = Pair::new("awaited")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let listen = "[listen]\naddresses = [\"10.3.0.9\"]\n";
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let mobile = pair.mobile.stratad(&format!("{config}{listen}"))?;
    waits_for(&mobile, &["the address 10.3.0.9 (`listen.addresses`)"])?;
    pair.mobile.run("ip addr add 10.3.0.9/24 dev eth0")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    waits_for(&mobile, &[])?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)
}

#[lab::test]
fn a_tunnel_comes_up_once_there_is_a_route_to_its_peer() -> Result<()> {
    let pair = Pair::new("awaited")?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    pair.mobile.run("ip route del default")?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    let route = "a route to 192.0.2.1 (`peer.office`)";
    waits_for(&mobile, &[route])?;
    pair.mobile.route("default", "10.3.0.1")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    waits_for(&mobile, &[])?;
    // The same while the daemon runs.
    pair.mobile.run("ip route del default")?;
    waits_for(&mobile, &[route])?;
    pair.mobile.route("default", "10.3.0.1")?;
    waits_for(&mobile, &[])
}

// Weakness: 144
#[lab::test]
fn a_foreign_agent_serves_visitors_as_soon_as_its_interface_exists() -> Result<()> {
    let walk = Walk::new("awaited")?;
    let rename = |from: &str, to: &str| {
        let rename = format!("ip link set {from} name {to}");
        walk.agents[0].run(&rename).map(drop)
    };
    rename("wl0", "later")?;
    let agent = walk.start_agent(0)?;
    let interface = ["the interface wl0 (`foreign_agent.interface`)"];
    waits_for(&agent, &interface)?;
    rename("later", "wl0")?;
    waits_for(&agent, &[])?;
    let ends = Ends::start(&walk, "")?;
    ends.is_at(CARE_OF[0])?;
    // The same while the daemon runs.
    rename("wl0", "away")?;
    waits_for(&agent, &interface)?;
    rename("away", "wl0")?;
    waits_for(&agent, &[])?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], OCTETS)
}

#[lab::test]
fn an_agent_waits_for_its_address() -> Result<()> {
    let walk = Walk::new("awaited")?;
    walk.home.run("ip addr del 192.0.2.1/24 dev eth0")?;
    let _agent = walk.start_agent(0)?;
    let home = walk.start_home(Terms::PLAIN)?;
    waits_for(&home, &["the address 192.0.2.1 (`home_agent.address`)"])?;
    walk.home.run("ip addr add 192.0.2.1/24 dev eth0")?;
    walk.home.route("default", "192.0.2.2")?;
    waits_for(&home, &[])?;
    let ends = Ends::start_with(&walk, home, "")?;
    ends.is_at(CARE_OF[0])
}

// Weakness: 144
#[lab::test]
fn a_mobile_node_waits_for_its_interface_and_a_foreign_agent_for_its_address() -> Result<()> {
    let walk = Walk::new("awaited")?;
    walk.mobile.run("ip link set m0 name later")?;
    walk.agents[0].run(&format!("ip addr del {}/24 dev wl0", CARE_OF[0]))?;
    let agent = walk.start_agent(0)?;
    let address = format!("the address {} (`foreign_agent.address`)", CARE_OF[0]);
    waits_for(&agent, &[&address])?;
    let home = walk.start_home(Terms::PLAIN)?;
    let mut mobile = walk.start_mobile(HOME_KEY, "", Terms::PLAIN)?;
    let interface = "the interface m0 (`mobile_node.interfaces`)";
    let route = "a route to 192.0.2.1 (`peer.office`)";
    waits_for(&mobile, &[interface, route])?;
    walk.mobile.run("ip link set later name m0")?;
    walk.set_link(0, true)?;
    waits_for(&mobile, &[route])?;
    walk.agents[0].run(&format!("ip addr add {}/24 dev wl0", CARE_OF[0]))?;
    waits_for(&agent, &[])?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    waits_for(&mobile, &[])?;
    let log = mobile.process().log();
    ensure!(log.contains(&format!("found {interface}")), "{log}");
    let ends = Ends { home, mobile };
    ends.is_at(CARE_OF[0])?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], OCTETS)
}

// Recovers: failures
// Weakness: 155
#[lab::test]
fn a_host_that_no_longer_forwards_is_shown_until_it_does() -> Result<()> {
    let pair = Pair::new("awaited")?;
    let node = pair.start_licensed(pair::LICENSED)?;
    let is_shown = |status: &Value| {
        let errors = status["status"]["errors"].as_array();
        let mut errors = errors.into_iter().flatten();
        errors.any(|error| error["task"] == "forwarding")
    };
    let settings = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    for setting in settings {
        ensure!(!is_shown(&node.strata("status")?), "one family is enough");
        pair.between.sysctl(setting, "0")?;
    }
    ensure!(is_shown(&node.strata("status")?));
    let text = node.strata_text("status")?;
    ensure!(
        text.contains("fix: sysctl -w net.ipv4.ip_forward=1"),
        "{text}"
    );
    pair.between.sysctl(settings[0], "1")?;
    ensure!(!is_shown(&node.strata("status")?));
    Ok(())
}

// Recovers: failures
// Weakness: 155
#[lab::test]
fn a_reverse_path_that_turns_strict_is_shown_until_it_is_loose() -> Result<()> {
    let pair = Pair::new("awaited")?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let covers = config.replace("remote = [", "remote = [\"192.0.2.0/24\", ");
    let setting = "net.ipv4.conf.eth0.rp_filter";
    for of in ["net.ipv4.conf.all.rp_filter", setting] {
        pair.mobile.sysctl(of, "0")?;
    }
    let mobile = pair.mobile.stratad(&covers)?;
    let file = pair.mobile.directory().join("strata.toml");
    let doctor = format!("doctor {}", file.display());
    let is_shown =
        || -> Result<bool> { Ok(pair::has_error(&mobile.strata("status")?, "reverse_path")) };
    ensure!(!is_shown()?, "the setting is right");
    pair.mobile.sysctl(setting, "1")?;
    ensure!(is_shown()?, "{}", mobile.strata_text("status")?);
    let text = mobile.strata_text("status")?;
    let fix = format!("sysctl -w {setting}=2");
    let error = "error: this host checks reverse paths strictly: a tunnel covers";
    ensure!(text.contains(error) && text.contains(&fix), "{text}");
    let found = mobile
        .strata_text(&doctor)
        .map_err(|found| format!("{found:#}"));
    let found = found.expect_err("the doctor found nothing");
    ensure!(found.matches(&fix).count() == 1, "{found}");
    pair.mobile.sysctl(setting, "2")?;
    ensure!(!is_shown()?, "{}", mobile.strata_text("status")?);
    Ok(())
}

/// Waits until `strata status` shows that the daemon waits for exactly these.
fn waits_for(daemon: &Daemon, awaited: &[&str]) -> Result<()> {
    daemon.wait_until("status", DEADLINE, |status| waiting(status) == awaited)?;
    let text = daemon.strata_text("status")?;
    let shown: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("error: waiting for "))
        .collect();
    ensure!(shown == awaited, "{text}");
    Ok(())
}

/// Returns all errors of a status that the daemon waits for something.
fn waiting(status: &Value) -> Vec<&str> {
    let errors = status["status"]["errors"].as_array();
    let errors = errors.into_iter().flatten();
    let errors = errors.filter(|error| error["task"] == "wait");
    let what = errors.filter_map(|error| error["what"].as_str());
    what.filter_map(|what| what.strip_prefix("waiting for "))
        .collect()
}
