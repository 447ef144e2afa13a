//! No packet to or from a protected prefix leaves in clear in any state of the tunnel. A tap on the
//! host between the endpoints looks for bait packets.

use anyhow::{Result, bail, ensure};
use lab::bait::{self, BETWEEN, DISCARD, SECRET, leak, leaks, no_leak, round, socket};
use lab::daemon::Daemon;
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms};
use lab::testbed::{find_binary, find_command};
use lab::transfer::transfer;
use lab::wiretap::{Seen, Wiretap};
use nix::sys::socket::{setsockopt, sockopt};
use os::Family;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Control of the detector: the tap sees the same packets without protection.
#[lab::test]
fn without_a_daemon_the_tap_sees_clear_packets() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let seen = round(&pair.mobile, &tap, &GATEWAY)?;
    for destination in GATEWAY {
        let destination: IpAddr = destination.parse()?;
        let secret_to_it = |seen: &Seen| seen.destination == destination && seen.has_text(SECRET);
        ensure!(seen.iter().any(secret_to_it), "not seen: {destination}");
    }
    ensure!(!leaks(&seen).is_empty(), "the detector is blind");
    Ok(())
}

/// Control of the detector: a working tunnel causes no false alarm.
#[lab::test]
fn an_open_tunnel_shows_only_esp() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _tunnel = pair.start_up(Terms::ZONED)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 100_000)?;
    let seen = round(&pair.mobile, &tap, &GATEWAY)?;
    let to_gateway = |seen: &&Seen| seen.destination.to_string() == "192.0.2.1";
    ensure!(
        seen.iter().filter(to_gateway).count() > 50,
        "the tunnel was not used"
    );
    no_leak(&seen)
}

// Works: no-leak
#[lab::test]
fn nothing_leaks_before_the_tunnel_comes_up() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?;
    let status = mobile.strata("status")?;
    ensure!(pair::is_down(&status), "{status}");
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

#[lab::test]
fn nothing_leaks_after_down() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.mobile.strata("down office")?;
    tunnel
        .mobile
        .wait_until("status", DEADLINE, pair::is_down)?;
    tunnel
        .gateway
        .wait_until("status", DEADLINE, pair::is_down)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    no_leak(&round_of_the_gateway(&pair, &tap)?)
}

// Recovers: liveness
#[lab::test]
fn nothing_leaks_while_the_peer_is_dead() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.process().crash()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

#[lab::test]
fn nothing_leaks_after_the_peer_was_refused() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let tunnel = pair.start(Family::V4, Terms::ZONED, Terms::PLAIN)?;
    if tunnel.up().is_ok() {
        bail!("zones were required of a peer that has none, and it came up");
    }
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

// Recovers: no-leak
#[lab::test]
fn nothing_leaks_after_the_daemon_was_killed() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.mobile.process().crash()?;
    // The inner address went with the device; a program may still send from another address.
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// Packets are sent all the time, not at one moment.
// Recovers: no-leak
#[lab::test]
fn nothing_leaks_while_a_killed_daemon_starts_again() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let mut mobile = pair.start_mobile(Family::V4, Terms::PLAIN, "auto")?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    mobile.process().crash()?;
    bait::lay_while(&pair.mobile, &GATEWAY, || {
        mobile.start_again()?;
        mobile.wait_until("status", DEADLINE, pair::is_up)
    })?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

#[lab::test]
fn the_gateway_leaks_nothing_after_it_was_killed() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    tunnel.gateway.process().crash()?;
    no_leak(&round_of_the_gateway(&pair, &tap)?)
}

/// The meaning of `leak = "stopped"`, the default, and the control of the next test.
#[lab::test]
fn an_orderly_stop_opens_what_is_not_locked() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    start_unlocked(&pair)?.stop()?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

// Works: no-leak
#[lab::test]
fn a_lock_outlives_every_end_of_the_daemon() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    let mut mobile = start_locked(&pair)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.strata("down office")?;
    mobile.wait_until("status", DEADLINE, pair::is_down)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.stop()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.start_again()?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    mobile.process().crash()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

#[lab::test]
fn a_lock_holds_before_the_first_start() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    pair.mobile
        .secret("tunnel.psk", "not yet used by anybody")?;
    let config = pair.mobile.file("strata.toml", &locked_config())?;
    stratad(
        &pair.mobile,
        &format!("--lock --config {}", config.display()),
    )?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// The unit that locks runs at every boot.
#[lab::test]
fn a_lock_of_nothing_is_no_failure_and_blocks_nothing() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let before = pair::traces(&pair.mobile)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let open = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    let config = pair.mobile.file("strata.toml", &open)?;
    let said = stratad(
        &pair.mobile,
        &format!("--lock --config {}", config.display()),
    )?;
    ensure!(said.contains("nothing to block"), "{said}");
    ensure!(
        pair::traces(&pair.mobile)? == before,
        "something was changed"
    );
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

// Refuses: no-leak
#[lab::test]
fn unlocking_is_refused_while_a_daemon_runs_and_opens_after_it() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let before = pair::traces(&pair.mobile)?;
    let mut mobile = start_locked(&pair)?;
    let refusal = stratad(&pair.mobile, "--unlock").expect_err("a daemon runs");
    ensure!(
        format!("{refusal:#}").contains("stop it first"),
        "{refusal:#}"
    );
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.stop()?;
    ensure!(pair::traces(&pair.mobile)? != before, "nothing was locked");
    stratad(&pair.mobile, "--unlock")?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    ensure!(pair::traces(&pair.mobile)? == before, "something is left");
    Ok(())
}

// Recovers: no-leak
#[lab::test]
fn a_start_without_the_key_opens_what_was_locked() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    start_locked(&pair)?.stop()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    start_unlocked(&pair)?.stop()?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// DHCP's option 121 sets such routes (TunnelVision). Strata's table has precedence over the main
/// one.
// Weakness: 79
#[lab::test]
fn a_more_specific_route_attracts_nothing() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    pair.mobile.route("10.8.0.1/32", BETWEEN[0])?;
    pair.mobile.route("fd00:8::1/128", BETWEEN[1])?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    let mut mobile = start_unlocked(&pair)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    mobile.process().crash()?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// Another VPN may add such a rule. Rules have precedence over routes, but not over the lock.
// Works: no-leak
#[lab::test]
fn a_rule_of_somebody_else_attracts_nothing_that_is_locked() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    for family in ["", "-6 "] {
        let rule = format!("ip {family}rule add pref 100 lookup main");
        pair.mobile.run(&rule)?;
    }
    let mobile = start_unlocked(&pair)?;
    leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    drop(mobile);
    let _mobile = start_locked(&pair)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)
}

/// The attacker's network assigns an address in a protected prefix (TunnelCrack's LocalNet). Its
/// broadcast address is in the local table, which precedes every other table.
// Works: no-leak
// Weakness: 79
#[lab::test]
fn a_local_network_of_the_attackers_attracts_nothing_that_is_locked() -> Result<()> {
    const BROADCAST: &str = "10.8.0.255";
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    for (host, device, [v4, v6]) in [
        (&pair.mobile, "eth0", ["10.8.0.77/24", "fd00:8::77/64"]),
        (&pair.between, "wireless", ["10.8.0.1/24", "fd00:8::1/64"]),
    ] {
        host.run(&format!("ip address add {v4} brd + dev {device}"))?;
        host.run(&format!("ip address add {v6} dev {device} nodad"))?;
    }
    let destinations = [GATEWAY[0], GATEWAY[1], BROADCAST];
    let mobile = start_unlocked(&pair)?;
    no_leak(&round(&pair.mobile, &tap, &GATEWAY)?)?;
    leak(&round(&pair.mobile, &tap, &[BROADCAST])?)?;
    drop(mobile);
    let _mobile = start_locked(&pair)?;
    no_leak(&round(&pair.mobile, &tap, &destinations)?)
}

/// A socket bound to an interface ignores routes through others, and also IPv6 blackhole routes.
#[lab::test]
fn a_program_bound_to_the_interface_leaks_nothing_that_is_locked() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let bound = |destination: &str| {
        let destination = SocketAddr::new(destination.parse()?, DISCARD);
        pair.mobile.inside(|| {
            let socket = socket(destination)?;
            setsockopt(&socket, sockopt::BindToDevice, &"eth0".into())?;
            // An error at once is as good as a packet that never leaves.
            let _ = socket.send_to(SECRET.as_bytes(), destination);
            Ok(())
        })
    };
    let attempt = || {
        GATEWAY.iter().try_for_each(|address| bound(address))?;
        round(&pair.mobile, &tap, &[])
    };
    let mobile = start_unlocked(&pair)?;
    leak(&attempt()?)?;
    drop(mobile);
    let _mobile = start_locked(&pair)?;
    no_leak(&attempt()?)
}

/// A mark exempts packets from the tunnel, not the peer's address, which an attacker may have
/// chosen (TunnelCrack's ServerIP).
// Works: no-leak
// Weakness: 79
#[lab::test]
fn the_peers_own_address_is_no_hole() -> Result<()> {
    const PEER: &str = "192.0.2.1";
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    leak(&round(&pair.mobile, &tap, &[PEER])?)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    for config in [
        pair::mobile_config(Family::V4, Terms::PLAIN, "auto"),
        locked_config(),
    ] {
        let config = config.replace("remote = [", "remote = [\"192.0.2.0/24\", ");
        let mobile = pair.mobile.stratad(&config)?;
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        no_leak(&round(&pair.mobile, &tap, &[PEER])?)?;
    }
    Ok(())
}

/// The kernel accepts packets for any of its addresses on any interface. On a network of its own an
/// attacker can thus find the owner of an inner address and inject packets (CVE-2019-14899).
// Weakness: 79
#[lab::test]
fn what_comes_from_outside_for_an_address_inside_is_dropped_and_counted() -> Result<()> {
    let pair = Pair::new("leak")?;
    let inside = [("10.3.0.1", MOBILE[0]), ("2001:db8:3::1", MOBILE[1])];
    let protected = [(GATEWAY[0], "10.3.0.2"), (GATEWAY[1], "2001:db8:3::2")];
    for address in ["10.8.0.1/32", "fd00:8::1/128"] {
        let netlink = pair.between.netns().netlink()?;
        netlink.add_address("lo", address.parse()?)?;
    }
    pair.between.route("10.1.0.2/32", "10.3.0.2")?;
    pair.between.route("fd00:1::2/128", "2001:db8:3::2")?;
    let attacks = [inside, protected].concat();
    let open = start_unlocked(&pair)?;
    for (from, to) in &attacks {
        inject(&pair, from, to)?.recv(&mut [0; 64])?;
    }
    drop(open);
    let locked = start_locked(&pair)?;
    let inject = |(from, to): &(&str, &str)| inject(&pair, from, to);
    let victims: Vec<_> = attacks.iter().map(inject).collect::<Result<_>>()?;
    locked.wait_until("status", DEADLINE, |status| {
        let drops = &status["status"]["drops"];
        drops["system_enter_to_inside"] == 2 && drops["system_enter_from_protected"] == 2
    })?;
    for victim in victims {
        victim.set_nonblocking(true)?;
        ensure!(victim.recv(&mut [0; 64]).is_err(), "received {victim:?}");
    }
    Ok(())
}

/// Neighbour discovery works and ESP arrives, but nothing else.
#[lab::test]
fn a_lock_of_everything_lets_the_tunnel_work() -> Result<()> {
    let pair = Pair::new("leak")?;
    let tap = Wiretap::open(&pair.between)?;
    let _gateway = pair.start_gateway(Terms::PLAIN)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    for outer in Family::ALL {
        let config = pair::mobile_config(outer, Terms::PLAIN, "auto");
        let remote = "remote = [\"0.0.0.0/0\", \"::/0\"]\nleak = \"never\" #";
        let config = config.replace("remote = ", remote);
        let mobile = pair.mobile.stratad(&config)?;
        mobile.wait_until("status", DEADLINE, pair::is_up)?;
        for address in GATEWAY {
            transfer(&pair.mobile, &pair.gateway, address, 100_000)?;
        }
        BETWEEN
            .iter()
            .try_for_each(|address| bait::lay(&pair.mobile, address))?;
        // Sent after the bait, on the same path.
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], 10_000)?;
        let seen = tap.rest()?;
        no_leak(&seen)?;
        let drops = &mobile.strata("status")?["status"]["drops"];
        ensure!(drops["system_enter_from_protected"].is_null(), "{drops}");
    }
    Ok(())
}

// Refuses: no-leak
#[lab::test]
fn without_nft_a_lock_is_refused_before_anything_is_set_up() -> Result<()> {
    let pair = Pair::new("leak")?;
    let before = pair::traces(&pair.mobile)?;
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let socket = pair.mobile.directory().join("api.sock");
    let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
    let config = pair
        .mobile
        .file("strata.toml", &(locked_config() + &control))?;
    let hide = format!(
        "mount --bind /dev/null {} && exec {} --config {}",
        find_command("nft", "nftables")?.display(),
        find_binary("stratad")?.display(),
        config.display()
    );
    let mut command = pair.mobile.command("unshare");
    command.args(["--mount", "sh", "-c", &hide]);
    let refusal = pair.mobile.run_command(command, DEADLINE);
    let refusal = format!("{:#}", refusal.expect_err("there is no nft"));
    ensure!(refusal.contains("apt-get install nftables"), "{refusal}");
    ensure!(pair::traces(&pair.mobile)? == before, "something is left");
    Ok(())
}

/// Sends a datagram from an address of the host between to an address of the mobile node; returns
/// the receiving socket.
fn inject(pair: &Pair, from: &str, to: &str) -> Result<UdpSocket> {
    let victim = pair.mobile.inside(|| Ok(UdpSocket::bind((to, 0))?))?;
    victim.set_read_timeout(Some(DEADLINE))?;
    let target = victim.local_addr()?;
    pair.between.inside(|| {
        UdpSocket::bind((from, 0))?.send_to(SECRET.as_bytes(), target)?;
        Ok(())
    })?;
    Ok(victim)
}

fn locked_config() -> String {
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "auto");
    format!("{config}leak = \"never\"\n")
}

fn start_locked(pair: &Pair) -> Result<Daemon> {
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    ready(pair.mobile.stratad(&locked_config())?)
}

fn start_unlocked(pair: &Pair) -> Result<Daemon> {
    ready(pair.start_mobile(Family::V4, Terms::PLAIN, "manual")?)
}

/// Waits for an answer. The socket exists before set-up is complete; the answer comes after it.
fn ready(daemon: Daemon) -> Result<Daemon> {
    daemon.strata("status")?;
    Ok(daemon)
}

fn stratad(host: &Host, words: &str) -> Result<String> {
    let mut command = host.command(find_binary("stratad")?);
    command.args(words.split_whitespace());
    host.run_command(command, DEADLINE)
}

/// A round at the gateway, which sends the marker.
fn round_of_the_gateway(pair: &Pair, tap: &Wiretap) -> Result<Vec<Seen>> {
    round(&pair.gateway, tap, &MOBILE)
}
