//! The log and the status file of a real OpenVPN server.

use super::{OCTETS, analysed};
use anyhow::{Result, ensure};
use lab::host::Host;
use lab::openvpn::{INNER, OpenVpn, tunnels};
use lab::process::{DEADLINE, until};
use lab::testbed::Testbed;
use lab::transfer::transfer;
use lab::wire;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;

/// A name that is in no list of names to avoid.
const BOB: &str = "bob/192.0.2.9:1 smith, jr";

/// Marks of ends in the log, and of a client that a new connection of its own replaces.
const ENDED: &str = " received, client-instance ";
const REPLACED: &str = "MULTI: new connection by client 'ann' will cause";

/// A server, and a client at each of its two links, of which the second has IPv6.
struct Network {
    _bed: Testbed,
    server: Host,
    ann: Host,
    bob: Host,
}

impl Network {
    fn new() -> Result<Self> {
        let bed = Testbed::new("logs")?;
        let [server, ann, bob] = ["server", "ann", "bob"].map(|name| bed.host(name));
        let (server, ann, bob) = (server?, ann?, bob?);
        let to_ann = server.end("eth0", &["192.0.2.2/24"]);
        wire::veth(to_ann, ann.end("eth0", &["192.0.2.1/24"]))?;
        let to_bob = server.end("eth1", &["2001:db8::2/64"]);
        wire::veth(to_bob, bob.end("eth0", &["2001:db8::1/64"]))?;
        Ok(Self {
            _bed: bed,
            server,
            ann,
            bob,
        })
    }
}

/// Two clients at once, of which one ends and one is killed, and one that is replaced.
// Works: logs
#[lab::test]
fn the_log_of_openvpn_has_the_sessions_that_its_clients_had() -> Result<()> {
    let net = Network::new()?;
    let mut server = OpenVpn::start(&net.server, "status-version 2\nreneg-sec 2\n")?;
    let mut ann = server.connect(&net.ann, "192.0.2.2", "ann")?;
    let mut bob = server.connect(&net.bob, "2001:db8::2", BOB)?;
    for client in [&net.ann, &net.bob] {
        transfer(client, &net.server, INNER, OCTETS)?;
    }
    // They rekey, which is no session.
    server.wait_for_log("VERIFY OK: depth=0", 4)?;
    let up = status(&server, 2 * OCTETS)?;
    expect(&up, "openvpn-status", 2, 2)?;

    bob.crash()?;
    ann.signal(Signal::SIGTERM)?;
    server.wait_for_log(ENDED, 2)?;
    server.connect(&net.ann, "192.0.2.2", "ann")?.crash()?;
    let _ann = server.connect(&net.ann, "192.0.2.2", "ann")?;
    server.wait_for_log(REPLACED, 1)?;
    server.stop()?;

    let log = server.log_path();
    let happened = tunnels(&net.ann) + tunnels(&net.bob);
    ensure!(happened == 4, "{happened}");
    expect(&analysed(&[&log])?, "openvpn", happened, 0)?;
    // The verdict depends on the lines: without the last one, a session has no end.
    let text = fs::read_to_string(&log)?;
    let lines = text
        .lines()
        .filter(|line| !line.ends_with(" process exiting"));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let fewer = net.server.file("fewer.log", &lines)?;
    expect(&analysed(&[&fewer])?, "openvpn", happened, 1)?;
    Ok(())
}

/// A killed server leaves sessions without an end, and a refused password no session at all.
// Recovers: logs
#[lab::test]
fn the_log_of_an_openvpn_that_was_killed_has_sessions_without_an_end() -> Result<()> {
    let net = Network::new()?;
    net.server
        .file("check.sh", "#!/bin/sh\ngrep -q right \"$1\"\n")?;
    net.server.run("chmod 755 check.sh")?;
    let check = net.server.directory().join("check.sh");
    let lines = format!(
        "script-security 2\nauth-user-pass-verify {} via-file\n",
        check.display()
    );
    let mut server = OpenVpn::start(&net.server, &lines)?;
    let ask = |host: &Host, password: &str| -> Result<String> {
        let file = host.secret("password", &format!("name\n{password}\n"))?;
        Ok(format!("auth-user-pass {}\n", file.display()))
    };
    let wrong = ask(&net.bob, "wrong")?;
    let mut bob = server.client(&net.bob, "2001:db8::2", "bob", &wrong)?;
    bob.wait(DEADLINE)?;
    let right = ask(&net.ann, "right")?;
    let mut ann = server.client(&net.ann, "192.0.2.2", "ann", &right)?;
    ann.wait_for_log("Initialization Sequence Completed", DEADLINE)?;
    server.wait_for_log(ENDED, 1)?;
    server.crash()?;
    ann.crash()?;

    let log = server.log_path();
    let text = fs::read_to_string(&log)?;
    ensure!(text.contains("[bob] Peer Connection Initiated"), "{text}");
    expect(&analysed(&[&log])?, "openvpn", tunnels(&net.ann), 1)?;
    OpenVpn::start(&net.server, &lines)?.stop()?;
    expect(&analysed(&[&log])?, "openvpn", tunnels(&net.ann), 1)
}

/// Waits until the status file has so many octets, and returns its analysis.
fn status(server: &OpenVpn, octets: u64) -> Result<Value> {
    until("octets in the status file", DEADLINE, || {
        // It may be empty while it is written.
        let analysis = analysed(&[&server.status_path()]).ok();
        let enough = |analysis: &Value| {
            let received = analysis["table"]["received"]["sum"].as_f64();
            received >= Some(octets as f64)
        };
        Ok(analysis.filter(enough))
    })
}

fn expect(analysis: &Value, format: &str, connections: usize, not_ended: u64) -> Result<()> {
    let source = &analysis["source"];
    ensure!(source["files"][0]["format"] == format, "{source}");
    ensure!(source["unreadable"] == 0, "{source}");
    let table = &analysis["table"];
    ensure!(table["connections"] == connections, "{table}");
    ensure!(table["not_ended"] == not_ended, "{table}");
    Ok(())
}
