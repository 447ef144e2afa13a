//! Split routes: prefixes that the gateway announces are routed into the tunnel, other traffic
//! bypasses it (RFC 7296 section 3.15.2).

use anyhow::{Result, bail, ensure};
use lab::certified::strata;
use lab::daemon::Daemon;
use lab::lending::{
    ALICE, Borrower, SERVER, black_holes, borrower_config, led_into_tunnel, lender_config,
};
use lab::pair::{self, PROTECTED, Pair, TUNNEL_KEY, is_up, traces};
use lab::process::{DEADLINE, until};
use lab::transfer::transfer;
use serde_json::{Value, json};
use std::fs;

const OCTETS: u64 = 1_000_000;

/// An address behind the gateway, and the gateway's outer address, which is outside the announced
/// prefixes.
const BEHIND: &str = "10.8.0.1";
const BEFORE: &str = "192.0.2.1";

const EVERYTHING: &str = r#"["0.0.0.0/0"]"#;

const SPLIT: &str = "routes = \"subnets\"\n";

/// Returns the gateway's configuration: its `local` prefixes, and the subnets that it announces.
fn gateway(pair: &Pair, local: &str, subnets: &str) -> String {
    lender_config(&pair.gateway, r#"["10.9.0.0/24"]"#)
        .replace(
            &format!("local = {PROTECTED:?}"),
            &format!("local = {local}"),
        )
        .replace("[pool.office]\n", &format!("[pool.office]\n{subnets}\n"))
}

/// Returns a mobile node's configuration that allows everything in the tunnel, with additional
/// lines.
fn mobile(start: &'static str, lines: &str) -> String {
    let everything = format!("remote = {EVERYTHING}");
    let config = borrower_config(&Borrower { start, ..ALICE });
    config.replace(&format!("remote = {PROTECTED:?}"), &everything) + lines
}

/// Starts both daemons; the mobile node connects at once.
fn start(pair: &Pair, local: &str, subnets: &str) -> Result<(Daemon, Daemon)> {
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let gateway = pair.gateway.stratad(&gateway(pair, local, subnets))?;
    let mobile = pair.mobile.stratad(&mobile("auto", SPLIT))?;
    Ok((gateway, mobile))
}

/// Waits until exactly these prefixes are routed into the tunnel and it is up.
fn led(pair: &Pair, mobile: &Daemon, prefixes: &[&str]) -> Result<()> {
    let told = |status: &Value| {
        let routes = &pair::peer(status)["routes"];
        is_up(status) && routes["prefixes"] == json!(prefixes)
    };
    mobile.wait_until("status", DEADLINE, told)?;
    let short = |prefix: &&str| match *prefix {
        "0.0.0.0/0" => "default".to_owned(),
        prefix => prefix.trim_end_matches("/32").to_owned(),
    };
    let expected: Vec<_> = prefixes.iter().map(short).collect();
    // The status may change before the routes do.
    until("the routes", DEADLINE, || {
        Ok((led_into_tunnel(&pair.mobile)? == expected).then_some(()))
    })
}

/// Transfers octets to an address of the gateway. Returns whether the tunnel carried them; it must
/// carry all or none.
fn goes_in(pair: &Pair, mobile: &Daemon, address: &str) -> Result<bool> {
    let sent = || -> Result<u64> {
        let status = mobile.strata("status")?;
        let children = pair::children(&status);
        let sent = children
            .iter()
            .filter_map(|child| child["sent"]["octets"].as_u64());
        Ok(sent.sum())
    };
    let before = sent()?;
    transfer(&pair.mobile, &pair.gateway, address, OCTETS)?;
    match sent()? - before {
        0 => Ok(false),
        OCTETS.. => Ok(true),
        some => bail!("{some} octets of {OCTETS} went into the tunnel"),
    }
}

// Works: split-routes
#[lab::test]
fn what_is_behind_the_gateway_goes_in_and_all_else_goes_beside() -> Result<()> {
    let pair = Pair::new("split")?;
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let lender = gateway(&pair, EVERYTHING, "subnets = [\"10.8.0.0/16\"]");
    let _gateway = pair.gateway.stratad(&lender)?;
    let daemon = pair.mobile.stratad(&mobile("manual", SPLIT))?;
    let status = daemon.strata("status")?;
    let routes = &pair::peer(&status)["routes"];
    ensure!(routes["reason"] == "awaited", "{status}");
    ensure!(led_into_tunnel(&pair.mobile)?.is_empty(), "nobody said so");
    daemon.strata("up office --wait")?;
    led(&pair, &daemon, &["10.8.0.0/16"])?;
    let carried = &pair::children(&daemon.strata("status")?)[0]["remote"];
    ensure!(*carried == json!(["0.0.0.0/0"]), "{carried}");
    ensure!(goes_in(&pair, &daemon, BEHIND)?, "it went beside");
    ensure!(!goes_in(&pair, &daemon, BEFORE)?, "it went in");
    let text = daemon.strata_text("status office")?;
    let line = "  routes    10.8.0.0/16: announced by the peer\n";
    ensure!(text.contains(line), "{text}");
    // Control: the same tunnel carries both without split routes.
    let text = daemon.change(&mobile("manual", ""))?;
    let line = "~ peer.office.routes subnets -> remote (applied)";
    ensure!(text.contains(line), "{text}");
    ensure!(led_into_tunnel(&pair.mobile)? == ["default"]);
    ensure!(goes_in(&pair, &daemon, BEFORE)?, "it went beside");
    ensure!(goes_in(&pair, &daemon, BEHIND)?, "it went beside");
    daemon.configure(&mobile("manual", SPLIT))?;
    daemon.strata("reload")?;
    led(&pair, &daemon, &["10.8.0.0/16"])?;
    ensure!(!goes_in(&pair, &daemon, BEFORE)?, "it went in");
    Ok(())
}

/// A peer with a leased address learns the list only when it connects, so its tunnel is set up
/// again.
// Works: split-routes
#[lab::test]
fn another_list_makes_other_routes_without_a_restart() -> Result<()> {
    let pair = Pair::new("split")?;
    let (daemon, mobile) = start(&pair, EVERYTHING, "subnets = [\"10.8.0.0/16\"]")?;
    led(&pair, &mobile, &["10.8.0.0/16"])?;
    for (list, in_behind, in_before) in [
        (&["10.8.0.0/16", "192.0.2.1/32"][..], true, true),
        (&["192.0.2.1/32"][..], false, true),
        (&["10.8.0.0/16"][..], true, false),
    ] {
        let subnets = format!("subnets = {list:?}");
        let text = daemon.change(&gateway(&pair, EVERYTHING, &subnets))?;
        ensure!(text.contains("~ pool.office.subnets "), "{text}");
        led(&pair, &mobile, list)?;
        daemon.wait_until("status", DEADLINE, is_up)?;
        if in_behind {
            ensure!(goes_in(&pair, &mobile, BEHIND)?, "it went beside: {list:?}");
        }
        let there = goes_in(&pair, &mobile, BEFORE)?;
        ensure!(there == in_before, "{list:?}");
    }
    Ok(())
}

// Refuses: split-routes
#[lab::test]
fn what_the_tunnel_does_not_carry_is_never_led_into_it() -> Result<()> {
    let pair = Pair::new("split")?;
    let subnets = "subnets = [\"10.8.0.0/16\", \"192.0.2.0/24\"]";
    let (gateway, mut mobile) = start(&pair, r#"["10.8.0.0/16"]"#, subnets)?;
    led(&pair, &mobile, &["10.8.0.0/16"])?;
    ensure!(goes_in(&pair, &mobile, BEHIND)?, "it went beside");
    ensure!(!goes_in(&pair, &mobile, BEFORE)?, "it went in");
    let status = mobile.strata("status")?;
    let beyond = &pair::peer(&status)["routes"]["beyond"];
    ensure!(*beyond == json!(["192.0.2.0/24"]), "{status}");
    let words = "the tunnel does not carry all of 192.0.2.0/24: add it to `local` of the peer";
    let text = mobile.strata_text("status office")?;
    ensure!(text.contains(words), "{text}");
    mobile.process().wait_for_log(words, DEADLINE)?;
    let warnings = gateway.strata("status")?["status"]["warnings"].to_string();
    let words = "the pool of alice announces 192.0.2.0/24, which its tunnel does not carry";
    ensure!(warnings.contains(words), "{warnings}");
    Ok(())
}

/// The gateway announces its own traffic selectors.
// Works: split-routes
#[lab::test]
fn a_gateway_without_a_list_has_everything() -> Result<()> {
    let pair = Pair::new("split")?;
    let (_gateway, mobile) = start(&pair, EVERYTHING, "")?;
    led(&pair, &mobile, &["0.0.0.0/0"])?;
    ensure!(goes_in(&pair, &mobile, BEHIND)?, "it went beside");
    ensure!(goes_in(&pair, &mobile, BEFORE)?, "it went beside");
    Ok(())
}

// Works: split-routes
#[lab::test]
fn a_name_server_beside_the_tunnel_is_not_asked() -> Result<()> {
    let former = "nameserver 192.0.2.53\n";
    for (subnets, asked) in [("10.8.0.0/16", true), ("10.8.0.1/32", false)] {
        let pair = Pair::new("split")?;
        let file = pair.mobile.file("resolv.conf", former)?;
        for host in [&pair.mobile, &pair.gateway] {
            host.secret("tunnel.psk", TUNNEL_KEY)?;
        }
        let subnets = format!("subnets = [\"{subnets}\"]");
        let _gateway = pair
            .gateway
            .stratad(&gateway(&pair, EVERYTHING, &subnets))?;
        let tunnel = format!("[tunnel]\nresolver = \"{}\"\n", file.display());
        let config = mobile("manual", SPLIT).replace("[tunnel]\n", &tunnel);
        let daemon = pair
            .mobile
            .stratad(&format!("{config}dns = \"from-peer\"\n"))?;
        daemon.strata("up office --wait")?;
        let text = fs::read_to_string(&file)?;
        let named = text.contains(&format!("nameserver {SERVER}"));
        ensure!(named == asked, "{subnets}: {text}");
    }
    Ok(())
}

/// Traffic that used the tunnel must not leave in clear meanwhile.
// Recovers: split-routes
#[lab::test]
fn a_lost_tunnel_keeps_its_routes_until_it_is_back() -> Result<()> {
    let pair = Pair::new("split")?;
    let (mut gateway, mobile) = start(&pair, EVERYTHING, "subnets = [\"10.8.0.0/16\"]")?;
    led(&pair, &mobile, &["10.8.0.0/16"])?;
    gateway.process().crash()?;
    mobile.wait_until("status", DEADLINE, |status| !is_up(status))?;
    ensure!(black_holes(&pair.mobile)? == ["10.8.0.0/16"]);
    gateway.start_again()?;
    led(&pair, &mobile, &["10.8.0.0/16"])?;
    gateway.wait_until("status", DEADLINE, is_up)?;
    ensure!(goes_in(&pair, &mobile, BEHIND)?, "it went beside");
    Ok(())
}

// Recovers: split-routes
#[lab::test]
fn kill_9_leaves_nothing_open_and_the_next_stop_nothing_at_all() -> Result<()> {
    let pair = Pair::new("split")?;
    let before = traces(&pair.mobile)?;
    let (mut gateway, mut mobile) = start(&pair, EVERYTHING, "subnets = [\"10.8.0.0/16\"]")?;
    led(&pair, &mobile, &["10.8.0.0/16"])?;
    gateway.process().crash()?;
    mobile.process().crash()?;
    let gone = || Ok(led_into_tunnel(&pair.mobile)?.is_empty().then_some(()));
    until("the device to go", DEADLINE, gone)?;
    ensure!(black_holes(&pair.mobile)? == ["10.8.0.0/16"]);
    // The new daemon has no list yet, but it blocks the same prefixes as its predecessor.
    mobile.start_again()?;
    ensure!(led_into_tunnel(&pair.mobile)? == ["10.8.0.0/16"]);
    let status = mobile.strata("status")?;
    let routes = &pair::peer(&status)["routes"]["prefixes"];
    ensure!(*routes == json!(["10.8.0.0/16"]), "{status}");
    mobile.stop()?;
    let after = traces(&pair.mobile)?;
    ensure!(after == before, "{after:#?}");
    Ok(())
}

// Recovers: split-routes
#[lab::test]
fn routes_come_over_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 50_000.0);
    let pair = Pair::with_lossy_hop("split", hop)?;
    let (_gateway, mobile) = start(&pair, EVERYTHING, "subnets = [\"10.8.0.0/16\"]")?;
    for _ in 0..5 {
        led(&pair, &mobile, &["10.8.0.0/16"])?;
        mobile.strata("down office")?;
        mobile.strata("up office")?;
    }
    led(&pair, &mobile, &["10.8.0.0/16"])
}

// Refuses: split-routes
#[lab::test]
fn what_cannot_be_split_is_told_with_the_fix() -> Result<()> {
    let pair = Pair::new("split")?;
    pair.mobile.secret("tunnel.psk", TUNNEL_KEY)?;
    let fixed = mobile("manual", SPLIT).replace("\"dynamic\"", "\"10.1.0.2/32\"");
    let held = mobile("manual", &format!("{SPLIT}leak = \"never\"\n"));
    let unknown = mobile("manual", "routes = \"subnet\"\n");
    for (config, words) in [
        (fixed, "write `local = [\"dynamic\"]`"),
        (held, "list the protected subnets in `remote`"),
        (unknown, "did you mean `subnets`?"),
    ] {
        pair.mobile.file("strata.toml", &config)?;
        let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
            bail!("it was taken: {config}");
        };
        let refusal = format!("{refusal:?}");
        ensure!(refusal.contains("peer.office.routes"), "{refusal}");
        ensure!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    Ok(())
}
