//! MSS clamping: the links of a host behind the mobile node have an MTU of 1500 octets, and no
//! source learns that the tunnel has less.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms, Tunnel};
use lab::plain;
use lab::process::until;
use lab::transfer::{connect, transfer};
use os::Family;
use std::io::{ErrorKind, Read, Write};

const OCTETS: u64 = 1_000_000;

/// Rules on the mobile node: they drop the ICMP errors that report the tunnel's MTU.
const BLACK_HOLE: &str = "table inet hole {
  chain out {
    type filter hook output priority 0
    icmp type destination-unreachable icmp code frag-needed counter drop
    icmpv6 type packet-too-big counter drop
  }
}
";

/// Returns both configurations. The gateway offers the MSS of its links, as a server behind it
/// would.
fn configs(terms: Terms<'_>, tunnel: &str) -> [String; 2] {
    let network = "\"10.1.0.0/24\", \"fd00:1::/64\"";
    let hosts = "\"10.1.0.2/32\", \"fd00:1::2/128\"";
    let mobile = pair::mobile_config(Family::V4, terms, "manual");
    let gateway = pair::gateway_config(terms);
    let table = |config: String, line: &str| plain::in_table(&config, "[tunnel]", line);
    [
        table(mobile, tunnel).replace(
            &format!("local = [{hosts}]"),
            &format!("local = [{network}]"),
        ),
        table(gateway, "mtu = 1500\npath_mtu = \"off\"").replace(
            &format!("remote = [{hosts}]"),
            &format!("remote = [{network}]"),
        ),
    ]
}

/// Starts a tunnel and brings it up, with a host behind the mobile node.
fn start(terms: Terms<'_>, tunnel: &str) -> Result<(Pair, Host, Tunnel)> {
    let pair = Pair::new("clamp")?;
    let behind = pair.add_host_behind_mobile()?;
    pair.mobile.file("hole.nft", BLACK_HOLE)?;
    pair.mobile.run("nft -f hole.nft")?;
    let tunnel = plain::start_with(&pair, &configs(terms, tunnel))?;
    tunnel.up()?;
    Ok((pair, behind, tunnel))
}

fn clamped(daemon: &Daemon) -> Result<u64> {
    let status = daemon.strata("status")?;
    let count = &status["status"]["clamped"];
    count.as_u64().with_context(|| status.to_string())
}

/// Returns the number of packets too long for the tunnel, whose ICMP errors were dropped.
fn too_long(pair: &Pair) -> Result<u64> {
    let rules = pair.mobile.run("nft list table inet hole")?;
    let counts = rules.split("counter packets ").skip(1);
    let counts = counts.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    Ok(counts.sum())
}

fn passes(pair: &Pair, behind: &Host) -> Result<()> {
    for (address, source) in GATEWAY.into_iter().zip(pair::BEHIND) {
        transfer(behind, &pair.gateway, address, OCTETS)?;
        transfer(&pair.gateway, behind, source, OCTETS)?;
    }
    ensure!(too_long(pair)? == 0, "packets were too long");
    Ok(())
}

/// Fails unless a connection comes up and none of its data arrives, in spite of retransmissions.
fn stands_still(pair: &Pair, behind: &Host) -> Result<()> {
    for address in GATEWAY {
        let before = too_long(pair)?;
        let (mut near, mut far) = connect(behind, &pair.gateway, address)?;
        // A single segment.
        near.write_all(&[7; 1400])?;
        until("the fourth try", DEADLINE, || {
            Ok((too_long(pair)? >= before + 4).then_some(()))
        })?;
        far.set_nonblocking(true)?;
        let read = far.read(&mut [0; 1]).map_err(|error| error.kind());
        ensure!(read == Err(ErrorKind::WouldBlock), "{address}: {read:?}");
    }
    Ok(())
}

// Works: mss-clamping
#[lab::test]
fn a_transfer_from_behind_passes_where_nobody_is_told_the_mtu() -> Result<()> {
    let (pair, behind, tunnel) = start(Terms::PLAIN, "")?;
    passes(&pair, &behind)?;
    // On each of four connections both ends offer an MSS too large for the tunnel. The mobile node
    // lowers both offers, the gateway none.
    let (mobile, gateway) = (clamped(&tunnel.mobile)?, clamped(&tunnel.gateway)?);
    ensure!(mobile >= 8 && gateway == 0, "{mobile}, {gateway}");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Works: mss-clamping
#[lab::test]
fn a_transfer_from_behind_passes_in_zones() -> Result<()> {
    let (pair, behind, tunnel) = start(Terms::ZONED, "")?;
    passes(&pair, &behind)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

// Refuses: mss-clamping
#[lab::test]
fn without_clamping_it_stands_still() -> Result<()> {
    let (pair, behind, tunnel) = start(Terms::PLAIN, "clamp = false")?;
    stands_still(&pair, &behind)?;
    ensure!(clamped(&tunnel.mobile)? == 0);
    // Control: once the ICMP errors reach the sources, the transfer succeeds.
    pair.mobile.run("nft delete table inet hole")?;
    transfer(&behind, &pair.gateway, GATEWAY[0], OCTETS)
}

// Works: mss-clamping
#[lab::test]
fn a_reload_turns_it_on_for_the_next_connection() -> Result<()> {
    let (pair, behind, tunnel) = start(Terms::PLAIN, "clamp = false")?;
    stands_still(&pair, &behind)?;
    let [mobile, _] = configs(Terms::PLAIN, "");
    let text = tunnel.mobile.change(&mobile)?;
    let line = "~ tunnel.clamp false -> true (applied)";
    ensure!(text.contains(line), "{text}");
    transfer(&behind, &pair.gateway, GATEWAY[0], OCTETS)
}

// Refuses: mss-clamping
#[lab::test]
fn what_turns_it_on_is_a_truth_value() -> Result<()> {
    let (_pair, _behind, tunnel) = start(Terms::PLAIN, "")?;
    let [mobile, _] = configs(Terms::PLAIN, "clamp = \"on\"");
    tunnel.mobile.configure(&mobile)?;
    tunnel.mobile.refuses("reload", "write true or false")
}
