//! `[[policy]]` and `[listen]`: bypassed traffic, discarded traffic, and the addresses on which a
//! daemon answers.
//!
//! A tap runs on the host between the endpoints. For bypassed traffic this host has addresses
//! inside the prefixes that the gateway protects.

use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::transfer::transfer;
use lab::wiretap::{Seen, Wiretap};
use os::Family;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Addresses of the host between, inside the gateway's protected prefixes.
const BYPASSED: [&str; 2] = ["10.8.10.1", "fd00:8::a:1"];

/// A port of [`EXCEPTIONS`], and a port outside them.
const DISCARDED: u16 = 9050;
const PROTECTED: u16 = 9100;

const EXCEPTIONS: &str = r#"
[[policy]]
action = "bypass"
remote = "10.8.10.0/24"
[[policy]]
action = "bypass"
remote = "fd00:8::a:0/112"
[[policy]]
action = "discard"
remote = "10.8.0.0/16"
protocol = "udp"
ports = "9000-9099"
[[policy]]
action = "discard"
remote = "fd00:8::/64"
protocol = "udp"
ports = "9000-9099"
"#;

/// Payload of every packet that must not be seen in clear.
const SECRET: &str = "this must not be seen";

/// Payload that ends each look at the wire, in each family, sent in clear to the host between.
const MARKER: &str = "the last packet of this look";
const BETWEEN: [&str; 2] = ["10.3.0.1", "2001:db8:3::1"];

/// With a tunnel to the gateway; with the lock and without.
// Works: exceptions
#[lab::test]
fn what_is_bypassed_goes_in_clear_and_comes_back() -> Result<()> {
    let bed = Bed::new()?;
    let mobile = bed.start("")?;
    for address in BYPASSED {
        send(&bed.pair.mobile, address, PROTECTED)?;
        ensure!(!bed.look()?.touch(address)?, "{address} is not protected");
    }
    drop(mobile);
    for lock in ["", "leak = \"never\"\n"] {
        let _mobile = bed.start(&format!("{lock}{EXCEPTIONS}"))?;
        for (bypassed, protected) in BYPASSED.into_iter().zip(GATEWAY) {
            transfer(&bed.pair.mobile, &bed.pair.between, bypassed, 10_000)?;
            ensure!(bed.look()?.touch(bypassed)?, "where did it pass?");
            transfer(&bed.pair.mobile, &bed.pair.gateway, protected, 10_000)?;
            ensure!(!bed.look()?.touch(protected)?, "{protected} in clear");
        }
    }
    Ok(())
}

// Works: exceptions
#[lab::test]
fn what_is_discarded_goes_nowhere_and_is_counted() -> Result<()> {
    let bed = Bed::new()?;
    let mobile = bed.start("")?;
    for address in GATEWAY {
        let arrived = bed.arrives(address, DISCARDED)?;
        ensure!(arrived, "{address} is not reached without a policy either");
    }
    ensure!(discarded(&mobile)? == 0, "counted without a policy");
    drop(mobile);
    let mobile = bed.start(EXCEPTIONS)?;
    for (address, count) in GATEWAY.into_iter().zip(1..) {
        ensure!(!bed.arrives(address, DISCARDED)?, "{address} was reached");
        ensure!(discarded(&mobile)? == count, "not counted");
        // TCP instead of UDP.
        let at = (address, DISCARDED);
        let listener = bed.pair.gateway.inside(|| Ok(TcpListener::bind(at)?))?;
        bed.pair.mobile.inside(|| Ok(TcpStream::connect(at)?))?;
        listener.accept()?;
    }
    ensure!(!bed.look()?.tell_secrets(), "what is discarded was seen");
    Ok(())
}

// Works: exceptions
#[lab::test]
fn the_first_match_wins() -> Result<()> {
    let bed = Bed::new()?;
    let [narrow, wide] = policies();
    let mobile = bed.start(&format!("{narrow}{wide}"))?;
    transfer(&bed.pair.mobile, &bed.pair.between, BYPASSED[0], 10_000)?;
    ensure!(bed.look()?.touch(BYPASSED[0])?, "where did it pass?");
    send(&bed.pair.mobile, GATEWAY[0], PROTECTED)?;
    mobile.wait_until("status", DEADLINE, |status| {
        status["status"]["drops"]["esp_discard_policy"] == 1
    })?;
    ensure!(!bed.look()?.tell_secrets(), "what is discarded was seen");
    Ok(())
}

/// The routes of the bypass would take effect before the discard.
// Refuses: exceptions
#[lab::test]
fn a_bypass_of_what_was_discarded_is_refused_with_the_fix() -> Result<()> {
    let bed = Bed::new()?;
    let [narrow, wide] = policies();
    let refused = bed.start(&format!("{wide}{narrow}"));
    let refusal = refused.err().context("it was not refused")?;
    let refusal = format!("{refusal:#}");
    ensure!(
        refusal.contains("move the bypass before the discard"),
        "{refusal}"
    );
    Ok(())
}

// Recovers: exceptions
#[lab::test]
fn exceptions_hold_while_a_daemon_is_dead_and_after_it() -> Result<()> {
    let bed = Bed::new()?;
    let mut mobile = bed.start(EXCEPTIONS)?;
    mobile.process().crash()?;
    for (bypassed, protected) in BYPASSED.into_iter().zip(GATEWAY) {
        transfer(&bed.pair.mobile, &bed.pair.between, bypassed, 10_000)?;
        for port in [DISCARDED, PROTECTED] {
            // An error at once is as good as a packet that never leaves.
            let _ = send(&bed.pair.mobile, protected, port);
        }
    }
    ensure!(!bed.look()?.tell_secrets(), "seen while the daemon is dead");
    mobile.start_again()?;
    mobile.strata_text("up office --wait")?;
    for (bypassed, protected) in BYPASSED.into_iter().zip(GATEWAY) {
        transfer(&bed.pair.mobile, &bed.pair.between, bypassed, 10_000)?;
        let arrived = bed.arrives(protected, DISCARDED)?;
        ensure!(!arrived, "{protected} was reached");
    }
    ensure!(discarded(&mobile)? == 2, "not counted");
    Ok(())
}

/// A bypass of some TCP ports only, which leaves the rest of their prefixes protected.
const SERVICES: &str = r#"
[[policy]]
action = "bypass"
remote = "10.8.0.0/16"
protocol = "tcp"
ports = "9400-9410"
[[policy]]
action = "bypass"
remote = "fd00:8::/64"
protocol = "tcp"
ports = 9400
"#;

/// Returns true if a TCP connection in clear reaches the host between at a port.
fn reaches(bed: &Bed, address: &str, port: u16) -> Result<bool> {
    let at = SocketAddr::new(address.parse()?, port);
    let listener = bed.pair.between.inside(|| Ok(TcpListener::bind(at)?))?;
    let wait = Duration::from_millis(500);
    let dial = || Ok(TcpStream::connect_timeout(&at, wait).is_ok());
    let reached = bed.pair.mobile.inside(dial)?;
    ensure!(!reached || listener.accept().is_ok());
    Ok(reached)
}

/// With the lock and without, and while the daemon is dead; the bypass ends with its configuration.
// Works: exceptions
#[lab::test]
fn a_service_is_bypassed_and_what_is_beside_it_is_not() -> Result<()> {
    for lock in ["", "leak = \"never\"\n"] {
        let bed = Bed::new()?;
        let before = pair::traces(&bed.pair.mobile)?;
        let mut mobile = bed.start(&format!("{lock}{SERVICES}"))?;
        let only_services = || -> Result<()> {
            for address in BYPASSED {
                ensure!(reaches(&bed, address, 9400)?, "{address} is not reached");
                ensure!(bed.look()?.touch(address)?, "where did it pass?");
                ensure!(!reaches(&bed, address, 9411)?, "another port of {address}");
                // An error at once is as good as a packet that never leaves.
                let _ = send(&bed.pair.mobile, address, 9400);
                ensure!(!bed.look()?.tell_secrets(), "UDP to {address} in clear");
            }
            Ok(())
        };
        only_services()?;
        ensure!(
            reaches(&bed, BYPASSED[0], 9410)?,
            "the last port of the range"
        );
        transfer(&bed.pair.mobile, &bed.pair.gateway, GATEWAY[0], 10_000)?;
        mobile.process().crash()?;
        only_services().context("the daemon is dead")?;
        mobile.start_again()?;
        mobile.strata_text("up office --wait")?;
        only_services().context("the daemon is back")?;
        let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
        mobile.change(&format!("{config}{lock}"))?;
        for address in BYPASSED {
            ensure!(!reaches(&bed, address, 9400)?, "it is bypassed still");
        }
        mobile.stop()?;
        if lock.is_empty() {
            ensure!(
                pair::traces(&bed.pair.mobile)? == before,
                "something is left"
            );
        }
    }
    Ok(())
}

/// The gateway has two addresses in each family, and lists one of them.
// Works: listen-addresses
#[lab::test]
fn a_daemon_answers_on_the_addresses_of_its_list_only() -> Result<()> {
    const FIRST: [&str; 2] = ["192.0.2.1", "2001:db8:2::1"];
    const SECOND: [&str; 2] = ["192.0.2.3", "2001:db8:2::3"];
    let pair = Pair::new("listen")?;
    for (family, address) in [("-4", "192.0.2.3/24"), ("-6", "2001:db8:2::3/64 nodad")] {
        let add = format!("ip {family} address add {address} dev eth0");
        pair.gateway.run(&add)?;
    }
    for name in ["tunnel.psk", "node.psk"] {
        pair.gateway.secret(name, pair::TUNNEL_KEY)?;
    }
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let everywhere = pair::gateway_config(Terms::PLAIN);
    let gateway = pair.gateway.stratad(&everywhere)?;
    are_reached(&pair, SECOND)?;
    drop(gateway);
    let list = format!("{everywhere}[listen]\naddresses = {FIRST:?}\n");
    let _gateway = pair.gateway.stratad(&list)?;
    are_reached(&pair, FIRST)?;
    for address in SECOND {
        for port in [500, 4500] {
            let at = SocketAddr::new(address.parse()?, port);
            let answer = pair.mobile.inside(|| {
                let socket = socket(at)?;
                socket.connect(at)?;
                socket.send(SECRET.as_bytes())?;
                Ok(socket.recv(&mut [0; 64]).map_err(|error| error.kind()))
            })?;
            let closed = answer == Err(ErrorKind::ConnectionRefused);
            ensure!(closed, "{at} is open: {answer:?}");
        }
    }
    Ok(())
}

/// Fails unless a tunnel to the gateway comes up and carries data at an address of each family.
fn are_reached(pair: &Pair, addresses: [&str; 2]) -> Result<()> {
    for (outer, address) in Family::ALL.into_iter().zip(addresses) {
        let there = format!("\naddress = {address:?} #");
        let config = pair::mobile_config(outer, Terms::PLAIN, "manual");
        let config = config.replace("\naddress = ", &there);
        let mobile = pair.mobile.stratad(&config)?;
        mobile.strata_text("up office --wait")?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)?;
    }
    Ok(())
}

/// The hosts with a tap between them and a running gateway.
struct Bed {
    pair: Pair,
    tap: Wiretap,
    _gateway: Daemon,
}

impl Bed {
    fn new() -> Result<Self> {
        let pair = Pair::new("policy")?;
        for (address, length) in BYPASSED.into_iter().zip([32, 128]) {
            let netlink = pair.between.netns().netlink()?;
            netlink.add_address("lo", format!("{address}/{length}").parse()?)?;
        }
        pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
        Ok(Self {
            tap: Wiretap::open(&pair.between)?,
            _gateway: pair.start_gateway(Terms::PLAIN)?,
            pair,
        })
    }

    /// Starts the mobile node with additional lines in its configuration, and brings the tunnel up.
    fn start(&self, lines: &str) -> Result<Daemon> {
        let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
        let mobile = self.pair.mobile.stratad(&format!("{config}{lines}"))?;
        mobile.strata_text("up office --wait")?;
        Ok(mobile)
    }

    /// Returns true if a datagram from the mobile node arrives at an address of the gateway. A
    /// second datagram, sent after it, must arrive.
    fn arrives(&self, address: &str, port: u16) -> Result<bool> {
        let bind = |port| -> Result<UdpSocket> {
            let socket = UdpSocket::bind((address, port))?;
            socket.set_read_timeout(Some(DEADLINE))?;
            Ok(socket)
        };
        let gateway = &self.pair.gateway;
        let (asked, later) = gateway.inside(|| Ok((bind(port)?, bind(PROTECTED)?)))?;
        send(&self.pair.mobile, address, port)?;
        send(&self.pair.mobile, address, PROTECTED)?;
        later.recv(&mut [0; 64])?;
        asked.set_nonblocking(true)?;
        Ok(asked.recv(&mut [0; 64]).is_ok())
    }

    /// Returns the packets that have passed since the last look.
    fn look(&self) -> Result<Look> {
        let mut seen = Vec::new();
        for address in BETWEEN {
            let to = SocketAddr::new(address.parse()?, PROTECTED);
            let mark = || Ok(socket(to)?.send_to(MARKER.as_bytes(), to).map(drop)?);
            self.pair.mobile.inside(mark)?;
            let is_marker = |seen: &Seen| seen.destination == to.ip() && seen.has_text(MARKER);
            seen.extend(self.tap.read_until(DEADLINE, is_marker)?);
        }
        Ok(Look(seen))
    }
}

/// Packets as seen between the endpoints.
struct Look(Vec<Seen>);

impl Look {
    /// Returns true if it contains packets to or from an address.
    fn touch(&self, address: &str) -> Result<bool> {
        let address: IpAddr = address.parse()?;
        let seen = |seen: &Seen| seen.destination == address || seen.source == address;
        Ok(self.0.iter().any(seen))
    }

    fn tell_secrets(&self) -> bool {
        self.0.iter().any(|seen| seen.has_text(SECRET))
    }
}

/// Returns a bypass policy, and a discard policy for a wider prefix.
fn policies() -> [String; 2] {
    let policy =
        |action, remote| format!("[[policy]]\naction = \"{action}\"\nremote = \"{remote}\"\n");
    [
        policy("bypass", "10.8.10.0/24"),
        policy("discard", "10.8.0.0/16"),
    ]
}

/// Returns the number of packets that the mobile node has discarded by policy.
fn discarded(mobile: &Daemon) -> Result<u64> {
    let status = mobile.strata("status")?;
    let count = &status["status"]["drops"]["esp_discard_policy"];
    Ok(count.as_u64().unwrap_or(0))
}

fn send(from: &Host, address: &str, port: u16) -> Result<()> {
    let to = SocketAddr::new(address.parse()?, port);
    from.inside(|| Ok(socket(to)?.send_to(SECRET.as_bytes(), to).map(drop)?))
}

/// Returns a UDP socket of the destination's family.
fn socket(to: SocketAddr) -> Result<UdpSocket> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(DEADLINE))?;
    Ok(socket)
}
