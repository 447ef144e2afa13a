//! ESP without UDP if neither end detects a NAT (RFC 7296 section 2.23): packets on the wire, the
//! effect of a NAT, and a licensed node on the path.

use anyhow::{Result, bail, ensure};
use lab::certified::strata;
use lab::pair::{self, DEADLINE, GATEWAY, LICENSED, MOBILE, Pair, Terms, Tunnel, segments};
use lab::plain;
use lab::transfer::transfer;
use lab::volley::volleys;
use lab::wiretap::Wiretap;
use os::Family;
use serde_json::Value;

const HONEST: &str = "[listen]\nencapsulation = \"nat\"\n";
const ALWAYS: &str = "[listen]\nencapsulation = \"always\"\n";

const OCTETS: u64 = 300_000;

/// Local addresses of the mobile node on its two networks.
const WIFI: &str = "10.3.0.2";
const CELL: &str = "10.4.0.2";

/// Starts both ends with these `[listen]` tables and brings the tunnel up.
fn start(pair: &Pair, outer: Family, terms: Terms<'_>, listen: [&str; 2]) -> Result<Tunnel> {
    up(
        pair,
        &[
            format!(
                "{}{}",
                pair::mobile_config(outer, terms, "manual"),
                listen[0]
            ),
            format!("{}{}", pair::gateway_config(terms), listen[1]),
        ],
    )
}

fn up(pair: &Pair, configs: &[String; 2]) -> Result<Tunnel> {
    let tunnel = plain::start_with(pair, configs)?;
    tunnel.up()?;
    Ok(tunnel)
}

fn honest(pair: &Pair) -> Result<Tunnel> {
    start(pair, Family::V4, Terms::PLAIN, [HONEST; 2])
}

/// Counts the ESP packets that passed with UDP and without.
fn seen(tap: &Wiretap) -> Result<[usize; 2]> {
    let mut count = [0; 2];
    while let Some(packet) = tap.next()? {
        count[0] += usize::from(packet.esp().is_some());
        count[1] += usize::from(packet.esp_without_udp().is_some());
    }
    Ok(count)
}

/// Returns the encapsulation of the newest child SA at each end.
fn carriers(tunnel: &Tunnel) -> Result<[Value; 2]> {
    let newest = |children: Vec<Value>| children.last().map(|child| child["carrier"].clone());
    Ok(tunnel
        .children()?
        .map(|all| newest(all).unwrap_or_default()))
}

/// Transfers octets in each direction; returns the ESP packets seen with UDP and without.
fn carry(pair: &Pair) -> Result<[usize; 2]> {
    let tap = Wiretap::open(&pair.between)?;
    transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], OCTETS)?;
    seen(&tap)
}

/// Returns true if only one encapsulation was used, by more than 100 packets.
fn all(count: usize, other: usize) -> bool {
    count > 100 && other == 0
}

// Works: plain-esp
#[lab::test]
fn where_there_is_no_nat_a_tap_sees_esp_without_udp() -> Result<()> {
    for outer in Family::ALL {
        let pair = Pair::new("encapsulation")?;
        let tunnel = start(&pair, outer, Terms::PLAIN, [HONEST; 2])?;
        let [with, without] = carry(&pair)?;
        ensure!(
            all(without, with),
            "{outer}: {with} with UDP, {without} without"
        );
        ensure!(carriers(&tunnel)? == ["ip"; 2], "{outer}");
        let text = tunnel.mobile.strata_text("status office")?;
        ensure!(text.contains(", without UDP"), "{text}");
        pair::no_drops(&tunnel.gateway.strata("status")?)?;
    }
    // Control: the default encapsulation.
    let pair = Pair::new("encapsulation")?;
    let tunnel = pair.start_up(Terms::PLAIN)?;
    let [with, without] = carry(&pair)?;
    ensure!(all(with, without), "{with} with UDP, {without} without");
    ensure!(carriers(&tunnel)? == ["udp"; 2]);
    Ok(())
}

// Refuses: plain-esp
#[lab::test]
fn behind_a_nat_it_sees_udp() -> Result<()> {
    let pair = Pair::new("encapsulation")?;
    translate(&pair, "wireless")?;
    let tunnel = honest(&pair)?;
    let [with, without] = carry(&pair)?;
    ensure!(all(with, without), "{with} with UDP, {without} without");
    ensure!(carriers(&tunnel)? == ["udp"; 2]);
    Ok(())
}

// Refuses: plain-esp
#[lab::test]
fn either_end_gets_udp_that_wants_it_always() -> Result<()> {
    for listen in [[HONEST, ALWAYS], [ALWAYS, HONEST]] {
        let pair = Pair::new("encapsulation")?;
        let _tunnel = start(&pair, Family::V4, Terms::PLAIN, listen)?;
        let [with, without] = carry(&pair)?;
        ensure!(all(with, without), "{with} with UDP, {without} without");
    }
    Ok(())
}

/// Control: a node without a licence on the same path.
// Works: plain-esp
#[lab::test]
fn a_licensed_node_reads_esp_without_udp_as_well() -> Result<()> {
    for (terms, reads) in [(Terms::LICENSED, true), (Terms::ZONED, false)] {
        let pair = Pair::new("encapsulation")?;
        let licensed = pair.start_licensed(LICENSED)?;
        let tunnel = start(&pair, Family::V4, terms, [HONEST; 2])?;
        let holds = |zones: &Value| zones["zones"]["held"][0].is_object() == reads;
        licensed.wait_until("zones", DEADLINE, holds)?;
        let [with, without] = carry(&pair)?;
        ensure!(all(without, with), "{with} with UDP, {without} without");
        let segments = segments(&licensed)?;
        ensure!((segments > 100) == reads, "{segments} segments");
        ensure!(carriers(&tunnel)? == ["ip"; 2]);
    }
    Ok(())
}

// Recovers: plain-esp
#[lab::test]
fn a_move_behind_a_nat_and_back_changes_it_and_goes_on() -> Result<()> {
    let pair = Pair::new("encapsulation")?;
    pair.add_second_wire()?;
    let mut tunnel = honest(&pair)?;
    let before = tunnel.spis()?;
    // Packets through the second wire are translated, packets through the first are not.
    translate(&pair, "wireless2")?;
    for (to, carrier) in [(CELL, "udp"), (WIFI, "ip"), (CELL, "udp")] {
        tunnel.mobile.strata(&format!("move office --from {to}"))?;
        for end in [&tunnel.mobile, &tunnel.gateway] {
            let is = |status: &Value| pair::children(status)[0]["carrier"] == carrier;
            end.wait_until("status", DEADLINE, is)?;
        }
        let counted = carry(&pair)?;
        let [used, other] = match carrier {
            "udp" => counted,
            _ => [counted[1], counted[0]],
        };
        ensure!(all(used, other), "from {to}: {counted:?}");
    }
    let told = "without UDP";
    tunnel.mobile.process().wait_for_log(told, DEADLINE)?;
    ensure!(tunnel.spis()? == before, "the tunnel was made anew");
    Ok(())
}

// Recovers: plain-esp
#[lab::test]
fn no_datagram_is_lost_while_it_gets_new_keys() -> Result<()> {
    let pair = Pair::new("encapsulation")?;
    let mut tunnel = honest(&pair)?;
    let ends = ((&pair.mobile, MOBILE[0]), (&pair.gateway, GATEWAY[0]));
    volleys(ends.0, ends.1, || {
        (0..5).try_for_each(|round| tunnel.rekey(round))
    })?;
    ensure!(carriers(&tunnel)? == ["ip"; 2]);
    Ok(())
}

// Recovers: plain-esp
#[lab::test]
fn a_download_comes_through_a_lossy_hop() -> Result<()> {
    let hop = pair::hop(1.0 / 300_000.0);
    let pair = Pair::with_lossy_hop("encapsulation", hop)?;
    let tunnel = honest(&pair)?;
    transfer(&pair.gateway, &pair.mobile, MOBILE[0], 1_000_000)?;
    ensure!(carriers(&tunnel)? == ["ip"; 2]);
    Ok(())
}

/// Compares the tunnel's MTU with and without UDP, on a path of 1,400 octets.
// Works: plain-esp
#[lab::test]
fn packets_fit_the_path_with_eight_octets_more() -> Result<()> {
    let mut rooms = Vec::new();
    for listen in [ALWAYS, HONEST] {
        let pair = Pair::new("encapsulation")?;
        let configs = plain::configs("", "").map(|config| {
            config.replace("[tunnel]", "[tunnel]\nclamp = false\npath_mtu = \"icmp\"") + listen
        });
        let tunnel = up(&pair, &configs)?;
        pair.between.run("ip link set wired mtu 1400")?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
        let known = |status: &Value| pair::children(status)[0]["mtu"].is_u64();
        let status = tunnel.mobile.wait_until("status", DEADLINE, known)?;
        rooms.push(
            pair::children(&status)[0]["mtu"]
                .as_u64()
                .unwrap_or_default(),
        );
    }
    ensure!(rooms[1] == rooms[0] + 8, "{rooms:?}");
    Ok(())
}

// Works: plain-esp
#[lab::test]
fn a_lock_of_everything_lets_esp_without_udp_in() -> Result<()> {
    for outer in Family::ALL {
        let pair = Pair::new("encapsulation")?;
        let everything = "remote = [\"0.0.0.0/0\", \"::/0\"]\nleak = \"never\" #";
        let mobile = pair::mobile_config(outer, Terms::PLAIN, "manual");
        let mobile = mobile.replace("remote = ", everything);
        let gateway = pair::gateway_config(Terms::PLAIN);
        let tunnel = up(&pair, &[mobile + HONEST, gateway + HONEST])?;
        let [with, without] = carry(&pair)?;
        ensure!(
            all(without, with),
            "{outer}: {with} with UDP, {without} without"
        );
        let drops = &tunnel.mobile.strata("status")?["status"]["drops"];
        ensure!(drops["system_enter_from_protected"].is_null(), "{drops}");
    }
    Ok(())
}

// Refuses: plain-esp
#[lab::test]
fn a_word_that_is_none_is_told_with_those_that_are() -> Result<()> {
    let pair = Pair::new("encapsulation")?;
    let config = pair::mobile_config(Family::V4, Terms::PLAIN, "manual");
    pair.mobile.secret("tunnel.psk", pair::TUNNEL_KEY)?;
    let wrong = HONEST.replace("nat", "never");
    pair.mobile
        .file("strata.toml", &format!("{config}{wrong}"))?;
    let Err(refusal) = strata(&pair.mobile, "check strata.toml") else {
        bail!("it was taken");
    };
    let refusal = format!("{refusal:?}");
    for words in ["listen.encapsulation", "always", "nat"] {
        ensure!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    Ok(())
}

/// Enables NAT at the host between, for packets from one of its interfaces to the gateway.
fn translate(pair: &Pair, from: &str) -> Result<()> {
    let rules = format!(
        "table ip nat {{\n chain marked {{\n  type filter hook prerouting priority 0\n  iifname \"{from}\" meta mark set 7\n }}\n \
         chain out {{\n  type nat hook postrouting priority 100\n  oifname \"wired\" meta mark 7 masquerade\n }}\n}}\n"
    );
    pair.between.file("nat.nft", &rules)?;
    pair.between.run("nft -f nat.nft").map(drop)
}
