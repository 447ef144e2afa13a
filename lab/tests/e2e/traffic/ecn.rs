//! Congestion marks through a tunnel (RFC 6040). Kernel sockets set and read the inner field,
//! tshark reads the outer one, and the kernel of the router sets the marks.

use anyhow::{Result, ensure};
use lab::host::Host;
use lab::pair::{self, DEADLINE, GATEWAY, MOBILE, Pair, Terms, Tunnel};
use lab::process::until;
use lab::transfer::transfer;
use lab::wiretap::{Wiretap, write_capture};
use lab::{plain, tshark};
use model::Path;
use os::{Datagrams, Family};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;
const ALL: [u8; 4] = [NOT_ECT, ECT_1, ECT_0, CE];

/// Rules of a congested router, for the host between.
const CONGESTED: &str = "ip ecn != not-ect ip ecn set ce\nip6 ecn != not-ect ip6 ecn set ce";

/// Rules of a broken router, which marks packets that are not ECN-capable.
const BROKEN: &str = "udp dport 4500 ip ecn set ce";

/// Few enough octets for a tap to keep every packet.
const OCTETS: u64 = 500_000;

/// Makes the host between rewrite packets in transit.
fn write_on_the_way(pair: &Pair, rules: &str) -> Result<()> {
    let hook = "type filter hook forward priority 0";
    let table = format!("table inet hop {{\nchain pass {{\n{hook}\n{rules}\n}}\n}}\n");
    pair.between.file("hop.nft", &table)?;
    pair.between.run("nft -f hop.nft").map(drop)
}

/// Returns the ECN field with which a datagram arrives, according to the receiver's kernel; `None`
/// if it was lost although a later datagram arrived.
fn came(from: (&Host, &str), to: (&Host, &str), ecn: u8) -> Result<Option<u8>> {
    let bind = |(host, address): (&Host, &str)| {
        let address: IpAddr = address.parse()?;
        host.inside(|| Ok(Datagrams::udp(SocketAddr::new(address, 0), None)?))
    };
    let (near, mut far) = (bind(from)?, bind(to)?);
    let path = Path::udp(near.local(), far.local());
    near.send(path, ecn, b"datagram")?;
    // This datagram is ECN-capable, so a mark never causes its loss.
    near.send(path, ECT_0, b"last")?;
    let mut fields = Vec::new();
    until("a datagram", DEADLINE, || {
        let mut last = false;
        let read = far.recv(|arrival, payload| match payload == b"last" {
            true => last = true,
            false => fields.push(arrival.ecn),
        });
        Ok(read.is_ok().then_some(last).filter(|last| *last).map(drop))
    })?;
    ensure!(fields.len() <= 1, "{fields:?}");
    Ok(fields.pop())
}

/// Sends every field in each direction and family, and compares the received fields.
fn ensure_come(pair: &Pair, expected: [Option<u8>; 4]) -> Result<()> {
    for (mobile, gateway) in MOBILE.into_iter().zip(GATEWAY) {
        let (mobile, gateway) = ((&pair.mobile, mobile), (&pair.gateway, gateway));
        for (from, to) in [(mobile, gateway), (gateway, mobile)] {
            for (sent, expected) in ALL.into_iter().zip(expected) {
                let came = came(from, to, sent)?;
                ensure!(came == expected, "{sent} to {} came as {came:?}", to.1);
            }
        }
    }
    Ok(())
}

const AS_SENT: [Option<u8>; 4] = [Some(NOT_ECT), Some(ECT_1), Some(ECT_0), Some(CE)];
const MARKED: [Option<u8>; 4] = [Some(NOT_ECT), Some(CE), Some(CE), Some(CE)];

fn congestion(status: &Value, kind: &str) -> u64 {
    let count = &status["status"]["congestion"][kind];
    count.as_u64().unwrap_or_default()
}

/// IKE packets are not ECN-capable. Each ESP packet copies the field of its datagram.
// Works: ecn
// Answers: sight-none
#[lab::test]
fn the_field_outside_is_that_inside() -> Result<()> {
    let pair = Pair::new("ecn")?;
    let tap = Wiretap::open(&pair.between)?;
    let configs = [
        pair::mobile_config(Family::V4, Terms::PLAIN, "manual"),
        pair::gateway_config(Terms::PLAIN),
    ];
    // Probes are packets without ECN.
    let configs = configs.map(|config| plain::in_table(&config, "[tunnel]", "path_mtu = \"off\""));
    let tunnel = plain::start_with(&pair, &configs)?;
    tunnel.up()?;
    ensure_come(&pair, AS_SENT)?;
    let seen = tap.rest()?;
    let folder = pair.mobile.directory();
    write_capture(&folder.join("wire.pcap"), &seen)?;
    let fields = |filter: &str| {
        let field = "ip.dsfield.ecn";
        tshark::fields(&pair.mobile, folder, "wire.pcap", &[], filter, field)
    };
    for from in ["10.3.0.2", "192.0.2.1"] {
        let mut outside = fields(&format!("esp && ip.src == {from}"))?;
        outside.sort();
        // Each of the four datagrams is followed by one with ECT(0), in two families, and seen on
        // two wires.
        let expected = [("0", 4), ("1", 4), ("2", 20), ("3", 4)];
        let expected: Vec<_> = expected
            .into_iter()
            .flat_map(|(ecn, count)| vec![ecn; count])
            .collect();
        ensure!(outside == expected, "{outside:?}");
    }
    let ike = fields("isakmp && !icmp")?;
    ensure!(
        ike.len() >= 8 && ike.iter().all(|ecn| ecn == "0"),
        "{ike:?}"
    );
    Ok(())
}

/// Checks the fields before, during and after marking by a router.
fn marks(outer: Family, terms: Terms<'_>) -> Result<()> {
    let pair = Pair::new("ecn")?;
    let tunnel = pair.start(outer, terms, terms)?;
    tunnel.up()?;
    ensure_come(&pair, AS_SENT)?;
    write_on_the_way(&pair, CONGESTED)?;
    ensure_come(&pair, MARKED)?;
    for daemon in [&tunnel.mobile, &tunnel.gateway] {
        let status = daemon.strata("status")?;
        ensure!(congestion(&status, "marked") >= 4, "{status}");
        ensure!(congestion(&status, "dangerous") == 0, "{status}");
        ensure!(congestion(&status, "unused") == 0, "{status}");
        pair::no_drops(&status)?;
    }
    pair.between.run("nft delete table inet hop")?;
    ensure_come(&pair, AS_SENT)
}

// Works: ecn
#[lab::test]
fn a_mark_on_the_way_gets_to_the_receiver_in_a_plain_tunnel() -> Result<()> {
    marks(Family::V4, Terms::PLAIN)
}

// Works: ecn
#[lab::test]
fn a_mark_on_the_way_gets_to_the_receiver_in_zones() -> Result<()> {
    marks(Family::V4, Terms::ZONED)
}

// Works: ecn
#[lab::test]
fn a_mark_on_the_way_gets_to_the_receiver_over_ipv6() -> Result<()> {
    marks(Family::V6, Terms::ZONED)
}

/// The node opens headers and forwards packets with their field, also if its own router sets marks.
// Works: ecn
#[lab::test]
fn a_licensed_node_passes_every_field() -> Result<()> {
    let pair = Pair::new("ecn")?;
    let licensed = pair.start_licensed(pair::LICENSED)?;
    let _tunnel = pair.start_up(Terms::LICENSED)?;
    let holds = |zones: &Value| {
        let held = zones["zones"]["held"].as_array();
        held.is_some_and(|held| !held.is_empty())
    };
    licensed.wait_until("zones", DEADLINE, holds)?;
    ensure_come(&pair, AS_SENT)?;
    write_on_the_way(&pair, CONGESTED)?;
    ensure_come(&pair, MARKED)
}

/// Kernel counter of segments that TCP's peer reported as marked CE.
const TOLD: &str = "TCPDeliveredCE";

// Works: ecn
#[lab::test]
fn tcp_of_both_kernels_slows_down_by_marks_and_loses_nothing() -> Result<()> {
    let pair = Pair::new("ecn")?;
    let tunnel = pair.start_up(Terms::ZONED)?;
    let carry = |ecn: &str| -> Result<u64> {
        for host in [&pair.mobile, &pair.gateway] {
            host.sysctl("net.ipv4.tcp_ecn", ecn)?;
        }
        let before = pair.mobile.tcp_count(TOLD)?;
        transfer(&pair.mobile, &pair.gateway, GATEWAY[0], OCTETS)?;
        Ok(pair.mobile.tcp_count(TOLD)? - before)
    };
    ensure!(carry("1")? == 0, "nobody marks anything yet");
    write_on_the_way(&pair, CONGESTED)?;
    let without = carry("0")?;
    ensure!(without == 0, "{without} of a transport that knows no marks");
    ensure!(carry("1")? > 0, "nobody told the sender");
    pair::no_drops(&tunnel.gateway.strata("status")?)
}

/// "If the inner ECN field is Not-ECT and the outer ECN field is CE, the decapsulator MUST drop the
/// packet." ECN-capable datagrams are marked as if by a congested router.
// Refuses: ecn
#[lab::test]
fn a_router_that_marks_who_cannot_understand_is_counted_and_told() -> Result<()> {
    let pair = Pair::new("ecn")?;
    let mut tunnel = pair.start_up(Terms::PLAIN)?;
    write_on_the_way(&pair, BROKEN)?;
    ensure_come(&pair, [None, Some(CE), Some(CE), Some(CE)])?;
    let Tunnel { mobile, gateway } = &mut tunnel;
    for daemon in [mobile, gateway] {
        let status = daemon.strata("status")?;
        ensure!(congestion(&status, "dangerous") == 2, "{status}");
        let drops = &status["status"]["drops"];
        ensure!(drops["esp_congested"] == 2, "{drops}");
        let words = "sets ECN fields against RFC 6040";
        daemon.process().wait_for_log(words, DEADLINE)?;
        let log = daemon.process().log();
        ensure!(log.matches(words).count() == 1, "{log}");
        let metrics = daemon.strata_text("metrics")?;
        let line = "strata_esp_congestion_total{kind=\"dangerous\"} 2";
        ensure!(metrics.contains(line), "{metrics}");
    }
    Ok(())
}

/// "since there is not a one-to-one relationship between outer IP packets and inner ESP/IP messages
/// when using TCP encapsulation" (RFC 9329 section 9.5).
// Recovers: ecn
#[lab::test]
fn in_a_stream_every_field_stays_as_it_was() -> Result<()> {
    let pair = Pair::new("ecn")?;
    let [mobile, gateway] = plain::configs("tcp = \"always\"", "");
    let tunnel = plain::start_with(&pair, &[mobile, format!("{gateway}[listen]\ntcp = 4500\n")])?;
    tunnel.up()?;
    ensure_come(&pair, AS_SENT)?;
    write_on_the_way(&pair, CONGESTED)?;
    ensure_come(&pair, AS_SENT)?;
    pair::no_drops(&tunnel.gateway.strata("status")?)
}
