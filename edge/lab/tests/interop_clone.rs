//! Clones of an IKE SA (RFC 7791), looked at by tshark: neither strongSwan nor libreswan has them. tshark opens
//! what both ends say with the keys of one, and knows the notifies by the RFC's names.

use anyhow::{Result, ensure};
use lab::pair::{NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config, mobile_config, peer};
use lab::runner;
use lab::testbed::find_command;
use lab::tshark;
use lab::wiretap::{Seen, Wiretap, write_capture};
use os::Family;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    runner::run(lab::tests![tshark_knows_what_a_hand_over_says])
}

/// The old IKE SA stays until nothing is under way on it.
const LEFT: Duration = Duration::from_secs(20);

/// In clear, and the last packet of the capture.
const MARKER: &str = "the last packet";

fn tshark_knows_what_a_hand_over_says() -> Result<()> {
    let pair = Pair::new("clones")?;
    pair.add_second_wire()?;
    let tap = Wiretap::open(&pair.gateway)?;
    let tunnel = start(&pair)?;
    let keys = pair.mobile.directory().join("keys");
    let keylog = format!("keylog {}", keys.display());
    tunnel.mobile.strata_text(&keylog)?;
    tunnel.up()?;
    tunnel.mobile.strata("move office --soft --from 10.4.0.2")?;
    let done = |paths: &Value| paths["paths"]["tunnels"][0]["local"] == "10.4.0.2:4500";
    tunnel.mobile.wait_until("paths", LEFT, done)?;
    let alone = |status: &Value| peer(status)["ike_sas"] == 1;
    tunnel.mobile.wait_until("status", LEFT, alone)?;
    capture(&pair, &tap)?;
    let text = read(&pair, &keys)?;
    let count = |name: &str| {
        text.matches(&format!("Notify Message Type: {name}"))
            .count()
    };
    ensure!(count("CLONE_IKE_SA_SUPPORTED (16432)") == 2, "{text}");
    ensure!(count("CLONE_IKE_SA (16433)") == 1, "{text}");
    ensure!(count("UPDATE_SA_ADDRESSES (16400)") == 1, "{text}");
    ensure!(!text.contains("Malformed"), "{text}");
    // Protocol and SPI size are zero (section 6).
    let clone = "Protocol ID: RESERVED (0)\n        SPI Size: 0\n        \
                 Notify Message Type: CLONE_IKE_SA (16433)";
    let plain: Vec<_> = text.lines().map(str::trim).collect();
    let wanted: Vec<_> = clone.lines().map(str::trim).collect();
    ensure!(plain.windows(3).any(|lines| lines == wanted), "{text}");
    Ok(())
}

fn start(pair: &Pair) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let allowed = |config: String| config.replacen("psk =", "clone = true\npsk =", 1);
    let gateway = allowed(gateway_config(Terms::PLAIN));
    let mobile = allowed(mobile_config(Family::V4, Terms::PLAIN, "manual"));
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&gateway)?,
        mobile: pair.mobile.stratad(&mobile)?,
    })
}

/// Writes down what has passed.
fn capture(pair: &Pair, tap: &Wiretap) -> Result<()> {
    const DISCARD: &str = "192.0.2.1:9";
    pair.mobile.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok(socket.send_to(MARKER.as_bytes(), DISCARD)?)
    })?;
    let seen = tap.read_until(LEFT, |seen: &Seen| seen.has_text(MARKER))?;
    write_capture(&pair.mobile.directory().join("wire.pcap"), &seen)
}

/// All that tshark has to say about it.
fn read(pair: &Pair, keys: &Path) -> Result<String> {
    let mut command = pair.mobile.command(find_command("tshark", "tshark")?);
    command.env("WIRESHARK_CONFIG_DIR", keys);
    command.args(["-r", "wire.pcap", "-Y", "isakmp", "-O", "isakmp"]);
    pair.mobile.run_command(command, tshark::DEADLINE)
}
