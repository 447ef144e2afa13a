//! Tunnels that move to other addresses (RFC 4555), with the traffic inside.

use anyhow::{Result, bail, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, GATEWAY, MOBILE, Pair, Terms, Tunnel};
use lab::process::DEADLINE;
use lab::transfer::{in_parts, transfer};
use os::Family;
use serde_json::Value;
use std::time::Duration;

const MB: usize = 1_000_000;

/// Octets read before an event, and after it.
const PART: usize = 8 * MB;

/// Local addresses of the mobile node on its two networks.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

// Works: mobike
#[lab::test]
fn a_download_goes_on_when_its_interface_is_taken_down() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    goes_on_when_the_interface_is_taken_down(&pair, &tunnel)
}

/// The node keeps its keys but sees no packets, because they take another path. They are not lost.
// Works: mobike
#[lab::test]
fn a_zoned_download_goes_on_past_the_licensed_node() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    let licensed = pair.start_licensed(pair::LICENSED)?;
    let tunnel = pair.start_up(Terms::LICENSED)?;
    let holds = |zones: &Value| zones["zones"]["held"][0].is_object();
    licensed.wait_until("zones", DEADLINE, holds)?;
    goes_on_when_the_interface_is_taken_down(&pair, &tunnel)?;
    ensure!(
        holds(&licensed.strata("zones")?),
        "the keys are still there"
    );
    Ok(())
}

fn goes_on_when_the_interface_is_taken_down(pair: &Pair, tunnel: &Tunnel) -> Result<()> {
    let before = spis(tunnel)?;
    download(pair, || pair.mobile.run("ip link set eth0 down").map(drop))?;
    leaves_from(&tunnel.mobile, CELL)?;
    arrives_from(&tunnel.gateway, CELL)?;
    ensure!(spis(tunnel)? == before, "the tunnel was made anew");
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], MB as u64)
}

// Works: mobike
#[lab::test]
fn strata_move_takes_a_tunnel_to_another_address_and_back() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let before = spis(&tunnel)?;
    for from in [CELL, WIFI, CELL] {
        let moved = || {
            let moved = tunnel
                .mobile
                .strata(&format!("move office --from {from}"))?;
            let local = format!("{from}:4500");
            ensure!(moved["move"]["local"] == local.as_str(), "{moved}");
            Ok(())
        };
        download(&pair, moved)?;
        arrives_from(&tunnel.gateway, from)?;
    }
    // Without an address the command selects the path that the routes prefer.
    tunnel.mobile.strata("move office")?;
    arrives_from(&tunnel.gateway, WIFI)?;
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    Ok(())
}

// Refuses: mobike
#[lab::test]
fn an_address_from_which_nothing_leaves_is_refused_with_those_that_work() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let refusal = refused(&tunnel.mobile, "move office --from 10.1.0.2")?;
    for word in [
        "packets to the peer cannot leave from that address",
        WIFI,
        CELL,
    ] {
        ensure!(refusal.contains(word), "{word:?} is not in {refusal}");
    }
    let nobody = refused(&tunnel.mobile, "move nobody")?;
    ensure!(nobody.contains("no such peer"), "{nobody}");
    tunnel.mobile.strata("down office")?;
    let down = refused(&tunnel.mobile, "move office")?;
    ensure!(down.contains("strata up office"), "{down}");
    Ok(())
}

// Refuses: mobike
#[lab::test]
fn the_end_that_was_called_cannot_move_the_tunnel() -> Result<()> {
    let pair = Pair::new("mobike")?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let refusal = refused(&tunnel.gateway, "move alice")?;
    ensure!(refusal.contains("other end"), "{refusal}");
    let paths = tunnel.gateway.strata("paths")?;
    ensure!(
        paths["paths"]["tunnels"][0]["moved_by"] == "peer",
        "{paths}"
    );
    Ok(())
}

/// Without MOBIKE, liveness detects the silence and the tunnel is set up again.
// Refuses: mobike
#[lab::test]
fn without_mobike_a_tunnel_is_made_anew() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    let gateway = pair.start_gateway(Terms::PLAIN)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let mobile = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    let mobile = mobile.replace("start = ", "mobike = \"off\"\nstart = ");
    let mobile = pair.mobile.stratad(&mobile)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let tunnel = Tunnel { mobile, gateway };
    let refusal = refused(&tunnel.mobile, "move office")?;
    ensure!(refusal.contains("mobike = \\\"on\\\""), "{refusal}");
    let before = spis(&tunnel)?;
    pair.mobile.run("ip link set eth0 down")?;
    let anew = |status: &Value| pair::is_up(status) && spi(status) != before[0];
    tunnel.mobile.wait_until("status", DEADLINE, anew)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], MB as u64)
}

// Works: mobike
#[lab::test]
fn a_tunnel_behind_a_nat_moves() -> Result<()> {
    let pair = Pair::new("mobike")?;
    pair.add_second_wire()?;
    translate(&pair)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let before = spis(&tunnel)?;
    download(&pair, || pair.mobile.run("ip link set eth0 down").map(drop))?;
    leaves_from(&tunnel.mobile, CELL)?;
    let paths = tunnel.gateway.strata("paths")?;
    let remote = paths["paths"]["tunnels"][0]["remote"].as_str();
    ensure!(
        remote.is_some_and(|remote| remote.starts_with("192.0.2.2:")),
        "not behind the NAT: {paths}"
    );
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    Ok(())
}

// Refuses: mobike
#[lab::test]
fn a_nat_is_refused_where_it_is_forbidden() -> Result<()> {
    let pair = Pair::new("mobike")?;
    let gateway = pair.start_gateway(Terms::PLAIN)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let mobile = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let mobile = mobile.replace("start = ", "nat = \"forbidden\"\nstart = ");
    let mobile = pair.mobile.stratad(&mobile)?;
    let tunnel = Tunnel { mobile, gateway };
    tunnel.up()?;
    tunnel.mobile.strata("down office")?;
    translate(&pair)?;
    let refusal = refused(&tunnel.mobile, "up office --wait")?;
    ensure!(refusal.contains("translates our address"), "{refusal}");
    let told = |status: &Value| pair::refusal(status).contains("forbids NATs");
    tunnel
        .gateway
        .wait_until("status", DEADLINE, told)
        .map(drop)
}

/// Enables NAT at the host between: it replaces the source address of the mobile node's packets.
fn translate(pair: &Pair) -> Result<()> {
    let rules = pair.between.file(
        "nat.nft",
        "table ip nat {\n  chain out {\n    type nat hook postrouting priority 100\n    \
         oifname \"wired\" masquerade\n  }\n}\n",
    )?;
    let nft = format!("nft -f {}", rules.display());
    pair.between.run(&nft).map(drop)
}

/// The mobile node gets no indication: its own interface is up, and its packets vanish.
// Recovers: mobike
#[lab::test]
fn a_gateway_whose_wire_is_cut_is_found_at_its_other_address() -> Result<()> {
    const OTHER: &str = "198.51.100.1";
    let pair = Pair::new("mobike")?;
    pair.add_second_gateway_wire()?;
    pair.gateway.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", "of nobody who is there")?;
    let listen = format!("[listen]\naddresses = [\"192.0.2.1\", \"{OTHER}\"]\n");
    let gateway = pair::gateway_config(Terms::PLAIN);
    let gateway = pair.gateway.stratad(&format!("{gateway}{listen}"))?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    let tunnel = Tunnel { mobile, gateway };
    let before = spis(&tunnel)?;
    download(&pair, || {
        pair.between.run("ip link set wired down").map(drop)
    })?;
    let there = format!("{OTHER}:4500");
    let found = |paths: &Value| paths["paths"]["tunnels"][0]["remote"] == there.as_str();
    let paths = tunnel.mobile.wait_until("paths", DEADLINE, found)?;
    let silent = "silent";
    let candidates = &paths["paths"]["tunnels"][0]["candidates"];
    ensure!(candidates[0]["standing"] == silent, "{paths}");
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    Ok(())
}

// Recovers: mobike
#[lab::test]
fn a_tunnel_moves_over_hops_that_lose_packets() -> Result<()> {
    let hop = sim::Settings {
        rate: std::num::NonZeroU64::new(20_000_000),
        delay: Duration::from_millis(5),
        queue: 100,
        // One in sixteen full packets is lost.
        bit_error_rate: 1.0 / 200_000.0,
    };
    let pair = Pair::with_lossy_hop("mobike", hop)?;
    let _hop = pair.add_second_lossy_hop(hop)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let before = spis(&tunnel)?;
    for from in [CELL, WIFI, CELL, WIFI, CELL] {
        tunnel
            .mobile
            .strata(&format!("move office --from {from}"))?;
        arrives_from(&tunnel.gateway, from)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    }
    ensure!(spis(&tunnel)? == before, "the tunnel was made anew");
    Ok(())
}

/// Runs a download in two parts, with an event in between; all of it must arrive.
fn download(pair: &Pair, mut happen: impl FnMut() -> Result<()>) -> Result<()> {
    let hosts = (&pair.gateway, &pair.mobile);
    in_parts(hosts, MOBILE[0], (2, PART), |_| happen())
}

fn refused(daemon: &Daemon, words: &str) -> Result<String> {
    match daemon.strata(words) {
        Ok(answer) => bail!("`strata {words}` was not refused: {answer}"),
        Err(refusal) => Ok(format!("{refusal:?}")),
    }
}

/// Returns the inbound SPIs of the only child SA at the mobile node and at the gateway.
fn spis(tunnel: &Tunnel) -> Result<[Value; 2]> {
    let spi = |daemon: &Daemon| Ok::<_, anyhow::Error>(spi(&daemon.strata("status")?));
    Ok([spi(&tunnel.mobile)?, spi(&tunnel.gateway)?])
}

fn spi(status: &Value) -> Value {
    pair::peer(status)["children"][0]["spi_in"].clone()
}

/// Waits until the mobile node's tunnel uses a local address.
fn leaves_from(mobile: &Daemon, address: &str) -> Result<()> {
    let local = format!("{address}:4500");
    let there = |paths: &Value| paths["paths"]["tunnels"][0]["local"] == local.as_str();
    mobile.wait_until("paths", DEADLINE, there).map(drop)
}

/// Waits until the gateway's tunnel uses a remote address.
fn arrives_from(gateway: &Daemon, address: &str) -> Result<()> {
    let remote = format!("{address}:4500");
    let there = |paths: &Value| paths["paths"]["tunnels"][0]["remote"] == remote.as_str();
    gateway.wait_until("paths", DEADLINE, there).map(drop)
}
