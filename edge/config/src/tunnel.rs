//! `[tunnel]`: the TUN device that carries the inner packets.

use crate::Prefix;
use crate::reader::Value;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;

/// Overhead of a zoned packet in octets, without the overhead of the suites of its zones: outer
/// IPv6 header 40, UDP 8, SPI and sequence number 8, seven map words 28, next header 1 (DESIGN
/// section 3).
pub const ZONED_OVERHEAD: u16 = 85;

/// Overhead of the suites of two zones with AEADs, in octets. Plain ESP never needs more.
const TWO_ICVS: u16 = 32;

/// Returns the longest inner packet that fits in 1500 octets for any inner header, if the suites of
/// all zones add this many octets ([`crate::Peer::zone_overhead`]): 1380 with two AEADs, and
/// without zones. The result is never below the IPv6 minimum MTU; outer packets that are then too
/// long are fragmented.
pub const fn default_mtu(zone_overhead: u16) -> u16 {
    let zone_overhead = if zone_overhead < TWO_ICVS {
        TWO_ICVS
    } else {
        zone_overhead
    };
    let fits = (1500 - ZONED_OVERHEAD).saturating_sub(zone_overhead) / 4 * 4;
    if fits < 1280 { 1280 } else { fits }
}

/// Most worker threads of one daemon. The limit is below that of `resources` (64), so each thread
/// can have a child SA of its own.
const MOST_WORKERS: u32 = 32;

/// The limit on the length of outer packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtu {
    /// No limit: a router that cannot forward a packet fragments it.
    Off,
    /// The path MTU that routers report by ICMP.
    Icmp,
    /// The path MTU that probes find.
    Probe,
}

impl PathMtu {
    pub(crate) const WORDS: [(&str, Self); 3] = [
        ("probe", Self::Probe),
        ("icmp", Self::Icmp),
        ("off", Self::Off),
    ];
}

/// The number of packets in a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// As many as the kernel can exchange at once.
    Auto,
    /// One, at least at the tunnel device and for sent packets.
    Off,
}

impl Offload {
    pub(crate) const WORDS: [(&str, Self); 2] = [("auto", Self::Auto), ("off", Self::Off)];
}

/// The tunnel device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// `name`: the device's name, 1 to 15 characters. Default `strata0`.
    pub name: String,
    /// `mtu`: length of the longest inner packet in octets, 1280 to 9000. Default [`default_mtu`].
    pub mtu: u16,
    /// `clamp`: true if TCP connections through the tunnel have their MSS clamped to fit `mtu`.
    /// Default true: most paths drop ICMP somewhere, so path MTU discovery of the endpoints is
    /// unreliable.
    pub clamp: bool,
    /// `path_mtu`: `probe` sends packets that no router has to fragment, no longer than the
    /// interface allows and than probes come through; `icmp` sends them no longer than routers
    /// report; `off` does neither. Default `probe`: many paths drop fragments, ICMP, or both.
    pub path_mtu: PathMtu,
    /// `offload`: `auto` exchanges packets with the kernel in bulk where it can; `off` exchanges
    /// them one by one, for kernels and drivers with faulty offloads. Default `auto`.
    pub offload: Offload,
    /// `workers`: number of threads that seal and open packets, 1 to 32, each with a device queue
    /// and SAs of its own. Default 1.
    pub workers: NonZeroU8,
    /// `addresses`: our inner addresses, set on the device with their prefix lengths. Default none:
    /// the host's existing addresses are used.
    pub addresses: Vec<Prefix>,
    /// `dns`: name servers that programs use while a tunnel is up. Default none: the name servers
    /// stay unchanged.
    pub dns: Vec<IpAddr>,
    /// `resolver`: the file with the list of name servers. Default none: the service that manages
    /// the list on this machine is asked to change it.
    pub resolver: Option<PathBuf>,
    /// `resolve_via`: name servers that are asked for the names of peers, outside of all tunnels.
    /// Default none: those of the network.
    pub resolve_via: Vec<IpAddr>,
}

impl Tunnel {
    /// Creates the device with the default of each key. `zone_overhead` is the largest overhead of
    /// any peer's zones.
    pub(crate) fn new(zone_overhead: u16) -> Self {
        Self {
            name: "strata0".to_owned(),
            mtu: default_mtu(zone_overhead),
            clamp: true,
            path_mtu: PathMtu::Probe,
            offload: Offload::Auto,
            workers: NonZeroU8::MIN,
            addresses: Vec::new(),
            dns: Vec::new(),
            resolver: None,
            resolve_via: Vec::new(),
        }
    }
}

pub(crate) fn mtu(value: &Value<'_>) -> Option<u16> {
    u16::try_from(value.number(1280..=9000)?).ok()
}

pub(crate) fn workers(value: &Value<'_>) -> Option<NonZeroU8> {
    let number = value.number(1..=MOST_WORKERS)?;
    u8::try_from(number).ok().and_then(NonZeroU8::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_mtu_fits_1500_with_the_longest_map_over_ipv6() {
        let (ipv6, udp, spi_and_sequence, next_header, icv) = (40, 8, 8, 1, 16);
        let map = 4 * (8 - 1);
        for zones in 2..=8 {
            let icvs = zones * icv;
            let mtu = default_mtu(icvs);
            let outer = ipv6 + udp + spi_and_sequence + map + next_header + icvs + mtu;
            assert!((1490..=1500).contains(&outer), "{outer}");
        }
        assert_eq!(default_mtu(32), 1380);
        assert_eq!(default_mtu(8 * 96), 1280, "IPv6 wants that");
    }

    #[test]
    fn the_default_mtu_fits_1500_with_blocks_and_the_longest_icv_over_ipv6() {
        let (ipv6, udp, spi_and_sequence, iv, icv) = (40, 8, 8, 16, 32);
        let text = (default_mtu(32) + 2).next_multiple_of(16);
        let outer = ipv6 + udp + spi_and_sequence + iv + text + icv;
        assert!((1490..=1500).contains(&outer), "{outer}");
    }
}
