//! A router between a site and a tunnel uses the tunnel itself: its routes prefer an address of the
//! machine inside `local`, which may come later, go and come back.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::pair::{self, DEADLINE, GATEWAY, Pair, Terms};
use lab::process::until;
use lab::transfer::transfer;
use os::Family;

/// The site behind the mobile node, which has an address in it.
const SITE: &str = r#"["10.1.0.128/25", "fd00:1::8000/113"]"#;

/// The mobile node's addresses in the site, on `lan0`.
const ROUTER: [&str; 2] = ["10.1.0.129", "fd00:1::8001"];

const ALICE: &str = r#"["10.1.0.2/32", "fd00:1::2/128"]"#;

const OCTETS: u64 = 10_000;

// Weakness: 143
#[lab::test]
fn a_router_of_a_site_reaches_the_other_site_itself() -> Result<()> {
    let pair = Pair::new("sources")?;
    let behind = pair.add_host_behind_mobile()?;
    let (mobile, _gateway) = start(&pair)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    prefers(&pair, ROUTER.map(Some))?;
    for (address, own) in GATEWAY.into_iter().zip(ROUTER) {
        transfer(&pair.mobile, &pair.gateway, address, OCTETS)?;
        transfer(&pair.gateway, &pair.mobile, own, OCTETS)?;
        transfer(&behind, &pair.gateway, address, OCTETS)?;
    }
    pair::no_drops(&mobile.strata("status")?)
}

/// Without the address the routes stay, so that nothing leaves in clear.
// Weakness: 143
#[lab::test]
fn an_address_may_come_later_go_and_come_back() -> Result<()> {
    let pair = Pair::new("sources")?;
    let (mut mobile, _gateway) = start(&pair)?;
    mobile.wait_until("status", DEADLINE, pair::is_up)?;
    prefers(&pair, [None; 2])?;
    let _behind = pair.add_host_behind_mobile()?;
    for _ in 0..2 {
        prefers(&pair, ROUTER.map(Some))?;
        for address in GATEWAY {
            transfer(&pair.mobile, &pair.gateway, address, OCTETS)?;
        }
        pair.mobile.run("ip addr flush dev lan0 scope global")?;
        prefers(&pair, [None; 2])?;
        pair.mobile.run("ip addr add 10.1.0.129/25 dev lan0")?;
        pair.mobile
            .run("ip addr add fd00:1::8001/113 dev lan0 nodad")?;
    }
    prefers(&pair, ROUTER.map(Some))?;
    let log = mobile.process().log();
    ensure!(!log.contains("another program removed"), "{log}");
    Ok(())
}

/// While a link is down, its address is not used.
#[lab::test]
fn an_address_counts_while_its_interface_is_up() -> Result<()> {
    let pair = Pair::new("sources")?;
    let _behind = pair.add_host_behind_mobile()?;
    let (_mobile, _gateway) = start(&pair)?;
    prefers(&pair, ROUTER.map(Some))?;
    pair.mobile.run("ip link set lan0 down")?;
    prefers(&pair, [None; 2])?;
    pair.mobile.run("ip link set lan0 up")?;
    // The kernel removes global IPv6 addresses of a link that goes down.
    prefers(&pair, [Some(ROUTER[0]), None])
}

/// Starts both ends with a site behind the mobile node, and without addresses of its tunnel.
fn start(pair: &Pair) -> Result<(Daemon, Daemon)> {
    let gateway = pair::gateway_config(Terms::PLAIN).replace(ALICE, SITE);
    pair.gateway.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    pair.gateway.secret("node.psk", pair::NODE_KEY)?;
    let gateway = pair.gateway.stratad(&gateway)?;
    let mobile = pair::mobile_config(Family::V4, Terms::PLAIN, "auto")
        .replace(&format!("[tunnel]\naddresses = {ALICE}\n"), "")
        .replace(ALICE, SITE);
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    Ok((pair.mobile.stratad(&mobile)?, gateway))
}

/// Waits until the routes into the tunnel prefer these addresses, one of each family.
fn prefers(pair: &Pair, sources: [Option<&str>; 2]) -> Result<()> {
    let families = ["ip", "ip -6"].into_iter().zip(sources);
    let mut families = families.zip(pair::PROTECTED);
    families.try_for_each(|((ip, source), prefix)| {
        let what = format!("the source {source:?} of the route to {prefix}");
        until(&what, DEADLINE, || {
            let route = pair
                .mobile
                .run(&format!("{ip} route show table 7296 dev strata0"))?;
            let route = route.lines().find(|line| line.starts_with(prefix));
            let shown = route.map(|route| route.split_once(" src "));
            let shown = shown.map(|shown| shown.and_then(|(_, rest)| rest.split(' ').next()));
            Ok((shown == Some(source)).then_some(()))
        })
    })
}
