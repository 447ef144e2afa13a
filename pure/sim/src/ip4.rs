//! Address functions for routing.

use std::net::{IpAddr, Ipv4Addr};
use wire::ip;

/// Returns the destination of an IPv4 packet, or `None` for anything else.
pub(crate) fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    match ip::Header::parse(packet).ok()?.destination() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Returns true if an address is in a network.
pub(crate) fn is_in(address: Ipv4Addr, network: Ipv4Addr, length: u8) -> bool {
    let bits = |address: Ipv4Addr| u32::from(address).checked_shr(32 - u32::from(length.min(32)));
    bits(address).unwrap_or(0) == bits(network).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_share_its_prefix() {
        let network = Ipv4Addr::new(10, 3, 0, 0);
        assert!(is_in(Ipv4Addr::new(10, 3, 255, 1), network, 16));
        assert!(!is_in(Ipv4Addr::new(10, 4, 0, 1), network, 16));
        assert!(is_in(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::UNSPECIFIED, 0));
        assert!(is_in(network, network, 32));
        assert!(!is_in(Ipv4Addr::new(10, 3, 0, 1), network, 32));
    }
}
