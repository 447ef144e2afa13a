//! Segments of chosen lengths through a tunnel, with the lengths on the wire as tshark reads them.

use super::here::{headers, ip_header, place};
use crate::pair::{self, GATEWAY, MOBILE, NODE_KEY, Pair, TUNNEL_KEY, Terms, Tunnel};
use crate::transfer::connect;
use crate::tshark;
use crate::wiretap::{Wiretap, write_capture};
use anyhow::{Context, Result, ensure};
use model::Suite;
use os::Family;
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// Largest inner packet, in octets, that fits into 1500 octets with CBC zones and IPv6.
pub(super) const MTU: usize = 1340;

const FILE: &str = "wire.pcap";

/// The mobile node's outer address in each family.
const OUTSIDE: [&str; 2] = ["10.3.0.2", "2001:db8:3::2"];

/// Sends TCP segments of these lengths, headers included, through a tunnel with inner and outer
/// addresses of one family. Returns the length on the wire for each inner length, outer IP header
/// included.
pub(super) fn lengths(
    suite: Suite,
    family: Family,
    terms: Terms<'_>,
    segments: &[usize],
) -> Result<BTreeMap<usize, usize>> {
    let pair = Pair::new("table")?;
    // Otherwise every segment would have twelve octets of options.
    pair.mobile.sysctl("net.ipv4.tcp_timestamps", "0")?;
    let _tunnel = tunnel(&pair, suite, family, terms)?;
    let tap = Wiretap::open(&pair.gateway)?;
    send(&pair, family, segments)?;
    // Every segment that has arrived has passed the tap.
    let seen = tap.rest()?;
    write_capture(&pair.gateway.directory().join(FILE), &seen)?;
    let [inside, outside] = [
        (MOBILE[place(family)], "tcp"),
        (OUTSIDE[place(family)], "esp"),
    ]
    .map(|(source, protocol)| read(&pair, family, source, protocol));
    match_up(&inside?, &outside?)
}

/// Starts both daemons with a tunnel of this suite alone.
fn tunnel(pair: &Pair, suite: Suite, family: Family, terms: Terms<'_>) -> Result<Tunnel> {
    let with = |config: String| {
        // Probes of the path MTU would be counted as segments.
        let lengths = format!("[tunnel]\nmtu = {MTU}\npath_mtu = \"off\"");
        let config = config.replace("[tunnel]", &lengths);
        let secret = "psk = \"tunnel.psk\"";
        config.replace(secret, &format!("{secret}\nsuite = \"{}\"", suite.name()))
    };
    for host in [&pair.mobile, &pair.gateway] {
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    pair.gateway.secret("node.psk", NODE_KEY)?;
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&with(pair::gateway_config(terms)))?,
        mobile: pair
            .mobile
            .stratad(&with(pair::mobile_config(family, terms, "manual")))?,
    };
    tunnel.up()?;
    Ok(tunnel)
}

/// Sends segments from the mobile node to the gateway, each after the previous one has arrived. The
/// last segment of the handshake has the shortest possible length.
fn send(pair: &Pair, family: Family, segments: &[usize]) -> Result<()> {
    let (mut near, mut far) = connect(&pair.mobile, &pair.gateway, GATEWAY[place(family)])?;
    near.set_nodelay(true)?;
    for length in segments {
        let mut payload = vec![0; length - headers(family)];
        near.write_all(&payload)?;
        far.read_exact(&mut payload)?;
    }
    Ok(())
}

/// Returns the lengths of the packets in the capture with this source and protocol, in their order.
fn read(pair: &Pair, family: Family, source: &str, protocol: &str) -> Result<Vec<usize>> {
    // IPv6 has the length of the payload, without the header.
    let (name, field, header) = match family {
        Family::V4 => ("ip", "ip.len", 0),
        Family::V6 => ("ipv6", "ipv6.plen", ip_header(family)),
    };
    let no_keys = pair.gateway.directory().join("no-keys");
    let filter = format!("{name}.src == {source} && {protocol}");
    let lengths = tshark::fields(&pair.gateway, &no_keys, FILE, &[], &filter, field)?;
    let length = |text: &String| {
        let length: usize = text
            .parse()
            .with_context(|| format!("tshark said {text}"))?;
        Ok(length + header)
    };
    lengths.iter().map(length).collect()
}

/// Matches the n-th inner packet with the n-th outer one. Inner packets of one length must have one
/// outer length. Surplus outer packets are allowed: a retransmitted segment may still be under way.
fn match_up(inside: &[usize], outside: &[usize]) -> Result<BTreeMap<usize, usize>> {
    let told = || format!("{inside:?} were in {outside:?}");
    ensure!(inside.len() <= outside.len(), "{}", told());
    let mut lengths = BTreeMap::new();
    for (inner, outer) in inside.iter().zip(outside) {
        let first = *lengths.entry(*inner).or_insert(*outer);
        ensure!(first == *outer, "{}", told());
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_matched_in_their_order() {
        let lengths = match_up(&[52, 40, 64], &[97, 85, 109, 109]).unwrap();
        assert_eq!(lengths, BTreeMap::from([(40, 85), (52, 97), (64, 109)]));
    }

    #[test]
    fn a_packet_that_came_in_none_or_of_two_lengths_is_no_measurement() {
        assert!(match_up(&[40, 40], &[85]).is_err());
        assert!(match_up(&[40, 40], &[85, 86]).is_err());
    }
}
