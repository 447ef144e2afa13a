//! `[tunnel]`: the device through which protected packets come and go.

use crate::Prefix;
use crate::reader::{Table, Value};
use std::net::IpAddr;
use std::path::PathBuf;

/// What fits in 1500 octets whatever the inner packet is: outer IPv6 header 40, UDP 8, SPI and
/// sequence number 8, seven map words 28, two ICVs 32, next header 1 (DESIGN section 3). That
/// leaves 1383; plain ESP needs less, and each more of the zones an ICV.
pub const fn default_mtu(zones: u16) -> u16 {
    1380 - 16 * zones.saturating_sub(2)
}

/// The device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// `name`: the device's name, 1 to 15 characters. Default `strata0`.
    pub name: String,
    /// `mtu`: longest inner packet, 1280 to 9000. Default [`default_mtu`].
    pub mtu: u16,
    /// `addresses`: our addresses inside, set on the device with their prefix lengths. Default
    /// none: addresses that the host has anyway.
    pub addresses: Vec<Prefix>,
    /// `dns`: name servers that programs ask while a tunnel is up. Default none: whom they ask
    /// anyway.
    pub dns: Vec<IpAddr>,
    /// `resolver`: the file with the list of name servers. Default none: whoever keeps the list on
    /// this machine is asked to change it.
    pub resolver: Option<PathBuf>,
}

impl Tunnel {
    /// `zones`: so many has a peer that has the most.
    pub(crate) fn read(value: Option<Value<'_>>, zones: u16) -> Option<Self> {
        let mut tunnel = Self {
            name: "strata0".to_owned(),
            mtu: default_mtu(zones),
            addresses: Vec::new(),
            dns: Vec::new(),
            resolver: None,
        };
        let Some(value) = value else {
            return Some(tunnel);
        };
        let mut table: Table<'_> = value.table()?;
        if let Some(name) = table.optional("name", Value::interface) {
            tunnel.name = name;
        }
        if let Some(mtu) = table.optional("mtu", |value| value.number(1280..=9000)) {
            tunnel.mtu = mtu as u16;
        }
        if let Some(addresses) =
            table.optional("addresses", |value| value.list(Value::interface_address))
        {
            tunnel.addresses = addresses;
        }
        if let Some(servers) = table.optional("dns", |value| value.list(Value::address)) {
            tunnel.dns = servers;
        }
        tunnel.resolver = table.optional("resolver", Value::absolute_path);
        table.finish();
        Some(tunnel)
    }
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
            let outer =
                ipv6 + udp + spi_and_sequence + map + next_header + icvs + default_mtu(zones);
            assert!((1490..=1500).contains(&outer), "{outer}");
            assert!(default_mtu(zones) >= 1280, "IPv6 wants that");
        }
    }

    #[test]
    fn the_default_mtu_fits_1500_with_blocks_and_the_longest_icv_over_ipv6() {
        let (ipv6, udp, spi_and_sequence, iv, icv) = (40, 8, 8, 16, 32);
        let text = (default_mtu(2) + 2).next_multiple_of(16);
        let outer = ipv6 + udp + spi_and_sequence + iv + text + icv;
        assert!((1490..=1500).contains(&outer), "{outer}");
    }
}
