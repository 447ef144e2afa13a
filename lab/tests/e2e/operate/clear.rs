//! Packets in clear with a claimed inner address are dropped, counted and reported with their
//! source.
//!
//! The host between the endpoints takes the inner addresses of either end, and sends from them.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, TUNNEL_KEY, Terms};
use lab::process::until;
use lab::testbed::{find_binary, find_command};
use lab::transfer::transfer;
use lab::walk::{CARE_OF, Ends, HOME_AGENT, UPLINKS, Walk, agent_config};
use os::{Family, clear};
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Payload of every packet with a claimed address.
const CLAIM: &str = "this must not be believed";

/// Addresses of the host between the endpoints: towards the mobile node, and towards the gateway.
const NEAR: [&str; 2] = ["10.3.0.1", "2001:db8:3::1"];
const FAR: &str = "192.0.2.2";

/// Time after which a datagram without a verdict is sent again.
const AGAIN: Duration = Duration::from_secs(5);

/// Adds the addresses `inside` to the host between, with routes to `target` through its neighbour
/// `via`.
fn claim_to_be(pair: &Pair, inside: [&str; 2], target: [&str; 2], via: [&str; 2]) -> Result<()> {
    let netlink = pair.between.netns().netlink()?;
    for family in [0, 1] {
        netlink.add_address("lo", inside[family].parse()?)?;
        pair.between.route(target[family], via[family])?;
    }
    Ok(())
}

/// Adds the mobile node's addresses to the host between, with routes to the gateway.
fn claim_to_be_mobile(pair: &Pair) -> Result<()> {
    let gateway = ["192.0.2.1", "2001:db8:2::1"];
    claim_to_be(pair, MOBILE, pair::PROTECTED, gateway)
}

/// Returns the number of packets that a host's guard dropped.
fn dropped(host: &Host) -> Result<Option<u64>> {
    host.inside(|| Ok(clear::dropped()?))
}

/// Sends a datagram in clear from an address of one host to an address of another. Returns whether
/// it arrives, as soon as it arrived or was dropped. While a daemon replaces the guard, a drop may
/// be counted in the one that goes, so the datagram is sent again.
fn arrives(sender: &Host, from: &str, victim: &Host, to: &str, guard: &Host) -> Result<bool> {
    arrives_by(sender, (from, 0), victim, to, guard)
}

/// The same, from a port of the sender's choice.
fn arrives_by(
    sender: &Host,
    (from, port): (&str, u16),
    victim: &Host,
    to: &str,
    guard: &Host,
) -> Result<bool> {
    let socket = victim.inside(|| Ok(UdpSocket::bind((to, 0))?))?;
    let target = socket.local_addr()?;
    let before = dropped(guard)?;
    let claim = sender.inside(|| Ok(UdpSocket::bind(SocketAddr::new(from.parse()?, port))?))?;
    socket.set_nonblocking(true)?;
    let mut again = Instant::now();
    until("a packet or a drop", DEADLINE, || {
        if again <= Instant::now() {
            claim.send_to(CLAIM.as_bytes(), target)?;
            again += AGAIN;
        }
        let arrived = socket.recv(&mut [0; 64]).is_ok();
        let verdict = arrived || dropped(guard)? != before;
        Ok(verdict.then_some(arrived))
    })
}

/// Returns, per family, whether the gateway accepts packets from the host between.
fn is_believed(pair: &Pair) -> Result<[bool; 2]> {
    let (between, gateway) = (&pair.between, &pair.gateway);
    let believed = |family: usize| {
        let (from, to) = (MOBILE[family], GATEWAY[family]);
        arrives(between, from, gateway, to, gateway)
    };
    Ok([believed(0)?, believed(1)?])
}

/// Returns a gateway configuration whose peer has `remote` instead of the mobile node's addresses.
fn gateway_of(remote: &str) -> String {
    let config = pair::gateway_config(Terms::PLAIN);
    config.replace(
        r#"remote = ["10.1.0.2/32", "fd00:1::2/128"]"#,
        &format!("remote = {remote}"),
    )
}

fn gateway(pair: &Pair, config: &str) -> Result<Daemon> {
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let daemon = pair.gateway.stratad(config)?;
    daemon.strata("status")?;
    Ok(daemon)
}

fn claims(status: &Value) -> &[Value] {
    let claims = status["status"]["clear"].as_array();
    claims.map_or(&[], Vec::as_slice)
}

// Works: no-clear-input
// Weakness: 118
#[lab::test]
fn what_claims_to_be_a_peer_is_dropped_and_told_with_its_source() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    ensure!(
        claims(&tunnel.gateway.strata("status")?).is_empty(),
        "claims at the start"
    );
    ensure!(is_believed(&pair)? == [false, false]);
    let status = tunnel.gateway.strata("status")?;
    ensure!(
        status["status"]["drops"]["system_enter_in_clear"] == 2,
        "{status}"
    );
    for address in MOBILE {
        let claim = claims(&status)
            .iter()
            .find(|claim| claim["address"] == address);
        let claim = claim.with_context(|| status.to_string())?;
        ensure!(
            claim["peer"] == "alice" && claim["interface"] == "eth0",
            "{claim}"
        );
        ensure!(
            claim["packets"] == 1 && claim["link"].is_string(),
            "{claim}"
        );
        let known = claim["from"].as_array().context("no addresses")?;
        ensure!(known.iter().any(|known| known == FAR), "{claim}");
    }
    let text = tunnel.gateway.strata_text("status")?;
    ensure!(
        text.contains("1 packet in clear claimed to be alice, 10.1.0.2, by eth0 from "),
        "{text}"
    );
    let metrics = tunnel.gateway.strata_text("metrics")?;
    ensure!(metrics.contains("\"enter_in_clear\"} 2"), "{metrics}");
    let log = tunnel.gateway.process();
    log.wait_for_log("1 packet in clear claimed to be alice, 10.1.0.2", DEADLINE)?;
    // The tunnel works with the same inner addresses.
    for address in GATEWAY {
        transfer(&pair.mobile, &pair.gateway, address, 100_000)?;
    }
    ensure!(
        dropped(&pair.gateway)? == Some(2),
        "the tunnel lost packets"
    );
    Ok(())
}

// Works: no-clear-input
// Weakness: 118
#[lab::test]
fn what_is_forwarded_to_hosts_behind_is_judged_as_well() -> Result<()> {
    let pair = Pair::new("clear")?;
    let behind = pair.add_host_behind_mobile()?;
    let lan = ["10.1.0.128/25", "fd00:1::8000/113"];
    claim_to_be(&pair, GATEWAY, lan, ["10.3.0.2", "2001:db8:3::2"])?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let local = "local = [\"10.1.0.128/25\", \"fd00:1::8000/113\", ";
    let mobile = pair.mobile.stratad(&config.replace("local = [", local))?;
    mobile.strata("status")?;
    for family in [0, 1] {
        let to = pair::BEHIND[family];
        let arrives = |from| arrives(&pair.between, from, &behind, to, &pair.mobile);
        ensure!(!arrives(GATEWAY[family])?, "{to} believed it");
        ensure!(arrives(NEAR[family])?, "{to} hears nothing else");
    }
    ensure!(dropped(&pair.mobile)? == Some(2));
    Ok(())
}

/// Returns a mobile node's configuration between hosts: the mode, the peer's outer address, and the
/// inner addresses, its own first.
fn host_config(mode: &str, outside: &str, [ours, theirs]: [&str; 2]) -> String {
    let length = if ours.contains(':') { 128 } else { 32 };
    let addresses = match mode {
        // In transport mode the kernel has the address already.
        "transport" => String::new(),
        _ => format!("addresses = [\"{ours}/{length}\"]"),
    };
    format!(
        r#"
[node]
id = "alice@example.net"
[tunnel]
{addresses}
[peer.office]
address = "{outside}"
id = "gw.example.net"
psk = "tunnel.psk"
mode = "{mode}"
local = ["{ours}/{length}"]
remote = ["{theirs}/{length}"]
zones = "refuse"
start = "manual"
"#
    )
}

// Works: no-clear-input
// Weakness: 118
#[lab::test]
fn in_transport_mode_the_peers_own_address_is_not_believed_in_clear() -> Result<()> {
    let pair = Pair::new("clear")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    for (family, [ours, theirs]) in [
        ["10.3.0.2", "192.0.2.1"],
        ["2001:db8:3::2", "2001:db8:2::1"],
    ]
    .into_iter()
    .enumerate()
    {
        let config = host_config("transport", theirs, [ours, theirs]);
        let mut mobile = pair.mobile.stratad(&config)?;
        mobile.strata("status")?;
        let from = |sender, from| arrives(sender, from, &pair.mobile, ours, &pair.mobile);
        ensure!(!from(&pair.gateway, theirs)?, "{theirs} is believed");
        ensure!(from(&pair.between, NEAR[family])?, "nobody else is heard");
        ensure!(dropped(&pair.mobile)? == Some(1));
        mobile.stop()?;
    }
    Ok(())
}

// Works: no-clear-input
// Weakness: 118
#[lab::test]
fn in_beet_mode_the_peers_address_inside_is_not_believed_in_clear() -> Result<()> {
    let pair = Pair::new("clear")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    claim_to_be(&pair, GATEWAY, MOBILE, ["10.3.0.2", "2001:db8:3::2"])?;
    for family in [0, 1] {
        let (ours, theirs) = (MOBILE[family], GATEWAY[family]);
        let config = host_config("beet", "192.0.2.1", [ours, theirs]);
        let mut mobile = pair.mobile.stratad(&config)?;
        mobile.strata("status")?;
        let from = |from| arrives(&pair.between, from, &pair.mobile, ours, &pair.mobile);
        ensure!(!from(theirs)?, "{theirs} is believed");
        ensure!(from(NEAR[family])?, "nobody else is heard");
        ensure!(dropped(&pair.mobile)? == Some(1));
        mobile.stop()?;
    }
    Ok(())
}

/// Forwarded packets belong to other tunnels, unless they claim an inner address in clear. A claim
/// with a port of IKE is a claim.
// Works: no-clear-input
// Weakness: 118
// Weakness: 171
#[lab::test]
fn a_licensed_node_with_peers_of_its_own_passes_tunnels_and_no_claims() -> Result<()> {
    let pair = Pair::new("clear")?;
    pair.between.secret("tunnel.psk", TUNNEL_KEY)?;
    let own = r#"
[peer.branch]
id = "branch.example.net"
psk = "tunnel.psk"
local = ["192.0.2.0/24", "2001:db8:2::/64"]
remote = ["10.9.9.0/24", "fd09:9::/64"]
"#;
    pair.between.secret("node.psk", pair::NODE_KEY)?;
    let node = pair::licensed_config(pair::LICENSED) + own;
    let node = pair.start_licensed_as(&node)?;
    let mut tunnel = pair.start_up(Terms::LICENSED)?;
    for address in GATEWAY {
        transfer(&pair.mobile, &pair.gateway, address, 100_000)?;
    }
    ensure!(
        dropped(&pair.between)? == Some(0),
        "the tunnel lost packets"
    );
    // Its ports are free from here on.
    tunnel.mobile.stop()?;
    let (sender, victim) = (&pair.mobile, &pair.gateway);
    let netlink = sender.netns().netlink()?;
    for [claimed, outside, target] in [
        ["10.9.9.9", "10.3.0.2", "192.0.2.1"],
        ["fd09:9::9", "2001:db8:3::2", "2001:db8:2::1"],
    ] {
        netlink.add_address("lo", claimed.parse()?)?;
        for port in [0, 500, 4500] {
            let arrives = |from| arrives_by(sender, (from, port), victim, target, &pair.between);
            ensure!(!arrives(claimed)?, "{claimed} passed from port {port}");
            ensure!(arrives(outside)?, "{outside} did not pass from port {port}");
        }
    }
    let status = node.strata("status")?;
    for claim in claims(&status) {
        ensure!(
            claim["peer"] == "branch" && claim["packets"] == 3,
            "{claim}"
        );
    }
    ensure!(claims(&status).len() == 2, "{status}");
    Ok(())
}

/// Mobile IP's registrations, the packets that it tunnels, and those between a visitor and its
/// agent are in clear by design. They carry the IPsec tunnel, whose inner addresses are accepted
/// from the tunnel only.
// Works: no-clear-input
// Weakness: 118
#[lab::test]
fn mobile_ip_passes_in_clear_and_what_claims_to_be_its_tunnel_does_not() -> Result<()> {
    let walk = Walk::new("clear")?;
    walk.agents[0].secret("tunnel.psk", TUNNEL_KEY)?;
    let own = r#"
[peer.branch]
id = "branch.example.net"
psk = "tunnel.psk"
local = ["192.0.2.0/24"]
remote = ["10.9.9.0/24"]
"#;
    let _agent = walk.start_licensed_agent_with(0, own)?;
    let ends = Ends::start(&walk, "")?;
    ends.is_at(CARE_OF[0])?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], 100_000)?;
    transfer(&walk.home, &walk.mobile, MOBILE[0], 100_000)?;
    // This transfer uses Mobile IP without the IPsec tunnel.
    transfer(&walk.mobile, &walk.home, HOME_AGENT, 100_000)?;
    let agent = &walk.agents[0];
    for host in [&walk.mobile, agent, &walk.home] {
        ensure!(dropped(host)? == Some(0), "something was dropped");
    }
    agent.run(&format!("ip route add {} dev wl0", MOBILE[0]))?;
    walk.between.route(GATEWAY[0], "192.0.2.1")?;
    let netlink = agent.netns().netlink()?;
    for (claimed, victim, target) in [
        (GATEWAY[0], &walk.mobile, MOBILE[0]),
        (MOBILE[0], &walk.home, GATEWAY[0]),
    ] {
        netlink.add_address("lo", claimed.parse()?)?;
        let is_believed = arrives(agent, claimed, victim, target, victim)?;
        ensure!(!is_believed, "{claimed} is believed");
        netlink.delete_address("lo", claimed.parse()?)?;
    }
    Ok(())
}

/// The foreign agent's own tunnel covers its home agent, whose answers come from port 434 to a port
/// that the kernel chose for the agent.
// Works: no-clear-input
// Weakness: 170
#[lab::test]
fn a_foreign_agent_hears_its_home_agent_and_no_claim_from_the_same_port() -> Result<()> {
    let walk = Walk::new("clear")?;
    walk.agents[0].secret("tunnel.psk", TUNNEL_KEY)?;
    let own = format!(
        r#"
[peer.branch]
id = "branch.example.net"
psk = "tunnel.psk"
local = ["{}/32"]
remote = ["10.9.9.0/24", "{HOME_AGENT}/32"]
"#,
        CARE_OF[0]
    );
    let _agent = walk.agents[0].stratad(&(agent_config(0) + &own))?;
    let ends = Ends::start(&walk, "")?;
    ends.is_at(CARE_OF[0])?;
    transfer(&walk.mobile, &walk.home, GATEWAY[0], 100_000)?;
    transfer(&walk.mobile, &walk.home, HOME_AGENT, 100_000)?;
    let (between, agent) = (&walk.between, &walk.agents[0]);
    ensure!(dropped(agent)? == Some(0), "something was dropped");
    between
        .netns()
        .netlink()?
        .add_address("lo", "10.9.9.9/32".parse()?)?;
    for port in [0, 434] {
        let is_believed = |from| arrives_by(between, (from, port), agent, CARE_OF[0], agent);
        ensure!(!is_believed("10.9.9.9")?, "believed from port {port}");
        ensure!(is_believed(UPLINKS[0][1])?, "nothing else from port {port}");
    }
    Ok(())
}

/// Control of the first test.
// Refuses: no-clear-input
#[lab::test]
fn what_no_tunnel_carries_and_what_is_bypassed_arrives_in_clear() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    let bypass = |remote| format!("[[policy]]\naction = \"bypass\"\nremote = \"{remote}\"\n");
    let bypasses = bypass("10.1.0.2/32") + &bypass("fd00:1::2/128");
    let wide = gateway_of(r#"["10.1.0.0/24", "fd00:1::/64"]"#);
    for (config, believed) in [
        (gateway_of(r#"["10.1.0.3/32", "fd00:1::3/128"]"#), true),
        (wide.clone(), false),
        (wide + &bypasses, true),
    ] {
        let _gateway = gateway(&pair, &config)?;
        ensure!(is_believed(&pair)? == [believed; 2], "{config}");
    }
    Ok(())
}

// Recovers: no-clear-input
// Weakness: 118
#[lab::test]
fn the_guard_outlives_a_killed_daemon_and_ends_with_an_orderly_stop() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    let before = pair::traces(&pair.gateway)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.process().crash()?;
    // The inner addresses have gone with the device; a host behind the gateway would have kept its
    // own.
    let netlink = pair.gateway.netns().netlink()?;
    for address in GATEWAY {
        netlink.add_address("lo", address.parse()?)?;
    }
    ensure!(is_believed(&pair)? == [false, false]);
    for address in GATEWAY {
        netlink.delete_address("lo", address.parse()?)?;
    }
    tunnel.gateway.start_again()?;
    // The mobile node notices the restart and comes back. The guard changes with the tunnel.
    tunnel.gateway.wait_until("status", DEADLINE, pair::is_up)?;
    ensure!(is_believed(&pair)? == [false, false]);
    tunnel.gateway.stop()?;
    ensure!(pair::traces(&pair.gateway)? == before, "something is left");
    Ok(())
}

// Works: no-clear-input
#[lab::test]
fn a_reload_changes_what_is_believed_and_loses_no_count() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    let daemon = gateway(&pair, &gateway_of(r#"["10.1.0.3/32", "fd00:1::3/128"]"#))?;
    ensure!(is_believed(&pair)? == [true, true]);
    let both = gateway_of(r#"["10.1.0.2/31", "fd00:1::2/127"]"#);
    daemon.change(&both)?;
    ensure!(is_believed(&pair)? == [false, false]);
    daemon.change(&pair::gateway_config(Terms::PLAIN))?;
    ensure!(is_believed(&pair)? == [false, false]);
    let status = daemon.strata("status")?;
    ensure!(
        status["status"]["drops"]["system_enter_in_clear"] == 4,
        "{status}"
    );
    Ok(())
}

/// The daemon restores the guard on a notification, three times a minute at most, then not until a
/// reload.
// Recovers: no-clear-input
// Weakness: 119
#[lab::test]
fn a_guard_that_another_program_removes_is_told_and_comes_back() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    let mut daemon = gateway(&pair, &pair::gateway_config(Terms::PLAIN))?;
    let guarded = || pair.gateway.inside(|| Ok(clear::fingerprint()?));
    let is_back = || {
        until("the guard", DEADLINE, || {
            let back = is_believed(&pair)? == [false, false];
            Ok(back.then_some(()))
        })
    };
    for culprit in [
        "nft flush table inet strata_clear",
        "nft delete table inet strata_clear",
        "nft flush ruleset",
    ] {
        pair.gateway.run(culprit)?;
        is_back()?;
    }
    let told = "restoring what another program removed: nftables table inet strata_clear";
    daemon.process().wait_for_log(told, DEADLINE)?;
    pair.gateway.run("nft flush table inet strata_clear")?;
    let gave_up = |status: &Value| {
        let removed = status["status"]["removed"].as_array();
        removed.is_some_and(|removed| {
            removed
                .iter()
                .any(|one| one == "nftables table inet strata_clear")
        })
    };
    daemon.wait_until("status", DEADLINE, gave_up)?;
    ensure!(is_believed(&pair)? == [true, true], "it was put back");
    let before = guarded()?;
    daemon.strata_text("reload")?;
    ensure!(guarded()? != before, "it was not put back");
    ensure!(is_believed(&pair)? == [false, false]);
    Ok(())
}

/// As on a kernel without nftables. The daemon keeps trying to install the guard, and reports the
/// fault meanwhile.
// Recovers: no-clear-input
// Weakness: 131
#[lab::test]
fn a_guard_that_cannot_be_set_up_is_a_fault_that_stays_until_it_can() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let config = pair::gateway_config(Terms::PLAIN);
    let start = |times: &str| {
        let faults = format!("fail=guard:{times}");
        pair.gateway.stratad_with(&config, &["--faults", &faults])
    };
    let is_told = |daemon: &Daemon| -> Result<bool> {
        let status = daemon.strata("status")?;
        let text = daemon.strata_text("status")?;
        let file = pair.gateway.directory().join("strata.toml");
        let doctor = daemon.strata_text(&format!("doctor {}", file.display()));
        let doctor = doctor.unwrap_or_else(|error| format!("{error:#}"));
        let told = [
            status["status"]["unguarded"].is_string(),
            text.contains(
                "error: packets in clear with a source address inside a tunnel are not dropped",
            ),
            doctor.contains("the filter for packets in clear could not be installed"),
            pair::has_error(&status, "filter"),
        ];
        ensure!(told == [told[0]; 4], "{status}{text}{doctor}");
        Ok(told[0])
    };
    let mut daemon = start("1000000")?;
    ensure!(is_told(&daemon)?, "nobody is told");
    ensure!(is_believed(&pair)? == [true, true], "control");
    daemon.strata_text("reload")?;
    ensure!(is_told(&daemon)?, "nobody is told any more");
    daemon.stop()?;
    let daemon = start("1")?;
    let set_up = |status: &Value| status["status"]["unguarded"].is_null();
    daemon.wait_until("status", DEADLINE, set_up)?;
    ensure!(!is_told(&daemon)?);
    ensure!(is_believed(&pair)? == [false, false]);
    Ok(())
}

// Refuses: no-clear-input
// Weakness: 118
#[lab::test]
fn the_guard_does_not_need_the_program_nft() -> Result<()> {
    let pair = Pair::new("clear")?;
    claim_to_be_mobile(&pair)?;
    pair.gateway.secret("tunnel.psk", TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let socket = pair.gateway.directory().join("api.sock");
    let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
    let config = pair::gateway_config(Terms::PLAIN) + &control;
    let config = pair.gateway.file("strata.toml", &config)?;
    let hide = format!(
        "mount --bind /dev/null {} && exec {} --config {}",
        find_command("nft", "nftables")?.display(),
        find_binary("stratad")?.display(),
        config.display()
    );
    let mut command = pair.gateway.command("unshare");
    command.args(["--mount", "sh", "-c", &hide]);
    let mut daemon = pair.gateway.start("stratad", command)?;
    daemon.wait_for_log("runs as", DEADLINE)?;
    ensure!(is_believed(&pair)? == [false, false]);
    daemon.terminate(DEADLINE)?;
    ensure!(dropped(&pair.gateway)?.is_none(), "the guard is left");
    Ok(())
}
