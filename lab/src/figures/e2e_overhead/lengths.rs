//! Lengths of datagrams in ESP: as computed, and on the wire between two daemons.

use crate::bait::DISCARD;
use crate::pair::{Pair, TUNNEL_KEY, Tunnel};
use crate::wiretap::{Seen, Wiretap};
use ::wire::esp::HEADER_LEN;
use ::wire::{ip, udp};
use anyhow::{Result, ensure};
use model::{Mode, Suite};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Pad length and next header (RFC 4303 section 2).
const TRAILER: usize = 2;
/// Alignment of the text (RFC 4303 section 2.4).
const ALIGNMENT: usize = 4;
/// Suite of all packets.
const SUITE: Suite = Suite::Aes128Gcm16;

/// IP and UDP headers, of a datagram as of the packet around it.
const HEADERS: usize = ip::V4_HEADER_LEN + udp::HEADER_LEN;

/// Longest inner packet that is carried, in octets.
const MTU: usize = 1400;

/// Time after which a datagram counts as lost.
const SILENCE: Duration = Duration::from_secs(20);

/// Outer addresses of the mobile node and of the gateway.
const OUTER: [&str; 2] = ["10.3.0.2", "192.0.2.1"];
/// Inner addresses in tunnel mode.
const INNER: [&str; 2] = ["10.1.0.2", "10.8.0.1"];

/// Returns the octets of a packet that carries a datagram of `octets` octets, its IP header
/// included. Two peers of Strata use implicit IVs (RFC 8750).
pub(super) fn packet(mode: Mode, octets: usize) -> usize {
    HEADERS + HEADER_LEN + encrypted(mode, octets) + SUITE.icv_len()
}

/// Returns the encrypted octets of that packet, with padding.
pub(super) fn encrypted(mode: Mode, octets: usize) -> usize {
    let inside = match mode {
        Mode::Tunnel => octets,
        Mode::Transport | Mode::Beet => octets - ip::V4_HEADER_LEN,
    };
    (inside + TRAILER).next_multiple_of(ALIGNMENT)
}

/// Returns the encrypted octets of a packet on the wire.
pub(super) fn encrypted_in(packet: usize) -> usize {
    packet.saturating_sub(HEADERS + HEADER_LEN + SUITE.icv_len())
}

/// Sends datagrams of these lengths from the mobile node to the gateway. Returns the length of the
/// packet of each, as the kernel at the gateway received it.
pub(super) fn on_the_wire(mode: Mode, datagrams: &[usize]) -> Result<Vec<usize>> {
    let pair = Pair::new("overhead")?;
    let ends = match mode {
        Mode::Tunnel => INNER,
        Mode::Transport | Mode::Beet => OUTER,
    };
    let _tunnel = start(&pair, mode, ends)?;
    let [from, to] = ends.map(str::parse::<IpAddr>);
    let (from, to) = (from?, to?);
    let bind = |address, port| Ok(UdpSocket::bind((address, port))?);
    let far = pair.gateway.inside(|| bind(to, DISCARD))?;
    let near = pair.mobile.inside(|| bind(from, 0))?;
    far.set_read_timeout(Some(SILENCE))?;
    let tap = Wiretap::open(&pair.gateway)?;
    let mut buffer = [0; MTU];
    for octets in datagrams {
        near.send_to(&buffer[..octets - HEADERS], (to, DISCARD))?;
        far.recv(&mut buffer)?;
    }
    let seen = tap.rest()?;
    let is_sent = |seen: &&Seen| seen.source.to_string() == OUTER[0] && seen.esp().is_some();
    let packets: Vec<_> = seen.iter().filter(is_sent).collect();
    let lengths: Vec<_> = packets.iter().map(|seen| seen.octets.len()).collect();
    let are_all = lengths.len() == datagrams.len();
    ensure!(are_all, "{datagrams:?} were in packets of {lengths:?}");
    Ok(lengths)
}

/// Starts both daemons with a tunnel in this mode, and without packets but those of datagrams.
fn start(pair: &Pair, mode: Mode, inside: [&str; 2]) -> Result<Tunnel> {
    for host in [&pair.mobile, &pair.gateway] {
        host.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        host.secret("tunnel.psk", TUNNEL_KEY)?;
    }
    let tunnel = Tunnel {
        gateway: pair.gateway.stratad(&config(1, mode, inside))?,
        mobile: pair.mobile.stratad(&config(0, mode, inside))?,
    };
    tunnel.up()?;
    Ok(tunnel)
}

/// Returns the configuration of an end: 0 is the mobile node, 1 the gateway.
fn config(end: usize, mode: Mode, inside: [&str; 2]) -> String {
    let (ids, peers) = (["alice@example.net", "gw.example.net"], ["office", "alice"]);
    let other = 1 - end;
    // The kernel has the outer addresses already.
    let own = match mode {
        Mode::Tunnel => format!("addresses = [\"{}/32\"]", inside[end]),
        Mode::Transport | Mode::Beet => String::new(),
    };
    format!(
        r#"
[node]
id = "{id}"
[tunnel]
{own}
mtu = {MTU}
path_mtu = "off"
[peer.{peer}]
address = "{address}"
id = "{peer_id}"
psk = "tunnel.psk"
suite = "{suite}"
zones = "refuse"
local = ["{local}/32"]
remote = ["{remote}/32"]
mode = "{mode}"
start = "manual"
"#,
        id = ids[end],
        peer = peers[end],
        address = OUTER[other],
        peer_id = ids[other],
        suite = SUITE.name(),
        local = inside[end],
        remote = inside[other],
        mode = mode.name(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted by hand: outer headers, SPI and sequence number, text, ICV.
    #[test]
    fn transport_mode_saves_the_inner_header() {
        assert_eq!(packet(Mode::Tunnel, 60), 28 + 8 + (60 + 2 + 2) + 16);
        assert_eq!(packet(Mode::Transport, 60), 28 + 8 + (40 + 2 + 2) + 16);
        for octets in 40..=MTU {
            let [tunnel, transport] =
                [Mode::Tunnel, Mode::Transport].map(|one| packet(one, octets));
            assert_eq!(tunnel - transport, 20, "{octets}");
            assert_eq!(encrypted_in(tunnel), encrypted(Mode::Tunnel, octets));
        }
    }
}
