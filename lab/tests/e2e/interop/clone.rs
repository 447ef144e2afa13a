//! Clones of an IKE SA (RFC 7791), examined by tshark, because neither strongSwan nor libreswan
//! supports them. tshark decrypts the messages of both ends with one end's keys, and finds the
//! notifies in the format of section 6. Version 4.0 has no names for their numbers.

use anyhow::{Result, ensure};
use lab::pair::{NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel, gateway_config, mobile_config, peer};
use lab::process::DEADLINE;
use lab::testbed::find_command;
use lab::wiretap::{Seen, Wiretap, write_capture};
use os::Family;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;

/// Payload of the last packet of the capture, in clear.
const MARKER: &str = "the last packet";

// Works: clone
#[lab::test(repeated)]
fn tshark_finds_what_a_hand_over_says() -> Result<()> {
    let text = seen(true, |tunnel| {
        tunnel.mobile.strata("move office --soft --from 10.4.0.2")?;
        let done = |paths: &Value| paths["paths"]["tunnels"][0]["local"] == "10.4.0.2:4500";
        tunnel.mobile.wait_until("paths", DEADLINE, done)?;
        let alone = |status: &Value| peer(status)["ike_sas"] == 1;
        tunnel
            .mobile
            .wait_until("status", DEADLINE, alone)
            .map(drop)
    })?;
    let exchanges: Vec<_> = text.split("Exchange type: ").skip(1).collect();
    let says = |exchange: &str, number| {
        let of = exchanges.iter().filter(|of| of.starts_with(exchange));
        of.map(|of| notifies(of, number)).sum::<usize>()
    };
    ensure!(says("IKE_AUTH", SUPPORTED) == 2, "{text}");
    ensure!(says("CREATE_CHILD_SA", CLONE) == 1, "{text}");
    let all = notifies(&text, SUPPORTED) + notifies(&text, CLONE);
    ensure!(all == 3, "{text}");
    ensure!(text.contains("UPDATE_SA_ADDRESSES (16400)"), "{text}");
    ensure!(!text.contains("Malformed"), "{text}");
    Ok(())
}

// Refuses: clone
#[lab::test(repeated)]
fn tshark_finds_that_an_end_which_does_not_allow_it_says_nothing() -> Result<()> {
    let text = seen(false, |tunnel| {
        let asked = "move office --soft --from 10.4.0.2";
        tunnel.mobile.refuses(asked, "clone = true")
    })?;
    ensure!(notifies(&text, SUPPORTED) == 1, "only who begins: {text}");
    ensure!(notifies(&text, CLONE) == 0, "{text}");
    Ok(())
}

/// Returns tshark's output for a tunnel and the events in `happen`. The gateway allows clones or
/// not.
fn seen(allowed: bool, happen: impl FnOnce(&Tunnel) -> Result<()>) -> Result<String> {
    let pair = Pair::new("clones")?;
    pair.add_second_wire()?;
    let tap = Wiretap::open(&pair.gateway)?;
    let tunnel = start(&pair, allowed)?;
    let keys = pair.mobile.directory().join("keys");
    let keylog = format!("keylog {}", keys.display());
    tunnel.mobile.strata_text(&keylog)?;
    tunnel.up()?;
    happen(&tunnel)?;
    capture(&pair, &tap)?;
    read(&pair, &keys)
}

const SUPPORTED: u16 = 16432;
const CLONE: u16 = 16433;

/// Counts the notifies of a type with neither protocol nor SPI nor data.
fn notifies(text: &str, number: u16) -> usize {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let number = format!("({number})");
    let fits = |lines: &&[&str]| {
        let named = lines[2].starts_with("Notify Message Type: ") && lines[2].ends_with(&number);
        let about_nothing = lines[..2] == ["Protocol ID: RESERVED (0)", "SPI Size: 0"];
        named && about_nothing && lines[3] == "Notification DATA: <MISSING>"
    };
    lines.windows(4).filter(fits).count()
}

fn start(pair: &Pair, allowed: bool) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let with = |config: String, allowed: bool| {
        let line = format!("clone = {allowed}\npsk =");
        config.replacen("psk =", &line, 1)
    };
    let gateway = with(gateway_config(Terms::PLAIN), allowed);
    let mobile = with(mobile_config(Family::V4, Terms::PLAIN, "manual"), true);
    Ok(Tunnel {
        gateway: pair.gateway.stratad(&gateway)?,
        mobile: pair.mobile.stratad(&mobile)?,
    })
}

/// Writes the packets that have passed to a capture file.
fn capture(pair: &Pair, tap: &Wiretap) -> Result<()> {
    const DISCARD: &str = "192.0.2.1:9";
    pair.mobile.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        Ok(socket.send_to(MARKER.as_bytes(), DISCARD)?)
    })?;
    let seen = tap.read_until(DEADLINE, |seen: &Seen| seen.has_text(MARKER))?;
    write_capture(&pair.mobile.directory().join("wire.pcap"), &seen)
}

/// Returns tshark's complete output for the capture.
fn read(pair: &Pair, keys: &Path) -> Result<String> {
    let mut command = pair.mobile.command(find_command("tshark", "tshark")?);
    command.env("WIRESHARK_CONFIG_DIR", keys);
    command.args(["-r", "wire.pcap", "-Y", "isakmp", "-O", "isakmp"]);
    pair.mobile.run_command(command, DEADLINE)
}
