//! Addresses that are bound to a link, as people write them: `fe80::1%eth0` (RFC 4007 section 11).

use std::net::{IpAddr, SocketAddr};

/// Formats an address with the interface that it belongs to, if it is link-local.
pub fn host_on(address: IpAddr, link: Option<&str>) -> String {
    match (address, link) {
        (IpAddr::V6(v6), Some(link)) if v6.is_unicast_link_local() => format!("{v6}%{link}"),
        _ => address.to_string(),
    }
}

/// Formats an address and port in the same way.
pub fn place_on(place: SocketAddr, link: Option<&str>) -> String {
    match (place, link) {
        (SocketAddr::V6(v6), Some(_)) if v6.ip().is_unicast_link_local() => {
            format!("[{}]:{}", host_on(place.ip(), link), place.port())
        }
        _ => place.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_local_address_is_shown_with_its_interface() {
        let place = |text: &str, link| place_on(text.parse().unwrap(), link);
        let eth0 = Some("eth0");
        assert_eq!(place("[fe80::1]:4500", eth0), "[fe80::1%eth0]:4500");
        assert_eq!(place("[fe80::1]:4500", None), "[fe80::1]:4500");
        assert_eq!(place("[2001:db8::1]:500", eth0), "[2001:db8::1]:500");
        assert_eq!(place("192.0.2.1:500", eth0), "192.0.2.1:500");
        let host = |text: &str| host_on(text.parse().unwrap(), eth0);
        assert_eq!(host("fe80::1"), "fe80::1%eth0");
        assert_eq!(host("192.0.2.1"), "192.0.2.1");
    }
}
