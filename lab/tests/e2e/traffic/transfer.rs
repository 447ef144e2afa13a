//! Octets leave a tunnel as they entered it.

use anyhow::{Result, ensure};
use lab::pair::{GATEWAY, MOBILE, Pair, Terms};
use lab::transfer::transfer;
use os::Family;

const MB: u64 = 1_000_000;

/// Index of a family in the arrays of [`lab::pair`].
const IPV4: usize = 0;
const IPV6: usize = 1;

// Works: tunnel
#[lab::test]
fn two_hundred_mb_pass_a_plain_tunnel() -> Result<()> {
    two_hundred_mb_pass(Terms::PLAIN, "plain")
}

// Works: zones
#[lab::test]
fn two_hundred_mb_pass_a_zoned_tunnel() -> Result<()> {
    two_hundred_mb_pass(Terms::ZONED, "zoned")
}

/// Transfers from the gateway to the mobile node, as a download does.
fn two_hundred_mb_pass(terms: Terms<'_>, kind: &str) -> Result<()> {
    let pair = Pair::new("transfer")?;
    let tunnel = pair.start_up(terms)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[IPV4], 200 * MB)?;
    for (child, direction) in tunnel
        .children()?
        .iter()
        .flatten()
        .zip(["received", "sent"])
    {
        ensure!(child["kind"] == kind, "{child}");
        let octets = child[direction]["octets"].as_u64();
        ensure!(octets >= Some(200 * MB), "{direction}: {child}");
    }
    Ok(())
}

#[lab::test]
fn wires_of_mtu_1500_are_passed() -> Result<()> {
    wires_of_mtu_are_passed(1500)
}

#[lab::test]
fn wires_of_mtu_1400_are_passed() -> Result<()> {
    wires_of_mtu_are_passed(1400)
}

/// Less than the tunnel's own MTU with the overhead of ESP: such packets leave as fragments.
// Works: tunnel
#[lab::test]
fn wires_of_mtu_1280_are_passed() -> Result<()> {
    wires_of_mtu_are_passed(1280)
}

fn wires_of_mtu_are_passed(mtu: u32) -> Result<()> {
    for (outer, terms) in cases() {
        let pair = Pair::new("mtu")?;
        pair.set_mtu(mtu)?;
        let tunnel = pair.start(outer, terms, terms)?;
        tunnel.up()?;
        each_way(&pair, IPV4, 2 * MB)?;
    }
    Ok(())
}

#[lab::test]
fn ipv4_passes_over_ipv4() -> Result<()> {
    passes(IPV4, Family::V4)
}

// Works: tunnel
#[lab::test]
fn ipv6_passes_over_ipv4() -> Result<()> {
    passes(IPV6, Family::V4)
}

#[lab::test]
fn ipv4_passes_over_ipv6() -> Result<()> {
    passes(IPV4, Family::V6)
}

#[lab::test]
fn ipv6_passes_over_ipv6() -> Result<()> {
    passes(IPV6, Family::V6)
}

fn passes(inner: usize, outer: Family) -> Result<()> {
    for terms in [Terms::PLAIN, Terms::ZONED] {
        let pair = Pair::new("families")?;
        let tunnel = pair.start(outer, terms, terms)?;
        tunnel.up()?;
        each_way(&pair, inner, 10 * MB)?;
    }
    Ok(())
}

fn cases() -> impl Iterator<Item = (Family, Terms<'static>)> {
    let terms = [Terms::PLAIN, Terms::ZONED];
    Family::ALL
        .into_iter()
        .flat_map(move |outer| terms.map(|terms| (outer, terms)))
}

fn each_way(pair: &Pair, inner: usize, octets: u64) -> Result<()> {
    transfer(&pair.mobile, &pair.gateway, GATEWAY[inner], octets)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[inner], octets)
}
