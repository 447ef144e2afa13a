//! The order in which addresses are tried, and those that are not.

use model::TrafficSelector;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Most addresses of a name that are tried.
pub(super) const MOST: usize = 8;

/// Prefixes that are shorter cover the Internet, in two halves at most, and with it every peer.
const DEFAULT: u8 = 1;

/// Returns the addresses in the order in which to try them: IPv6 and IPv4 alternate, IPv6 first
/// (RFC 8305 section 4). Before them is the address at which the peer was last up, and behind them
/// are those at which an attempt failed.
pub(super) fn ordered(
    addresses: &[IpAddr],
    good: Option<IpAddr>,
    failed: &BTreeSet<IpAddr>,
) -> Vec<IpAddr> {
    let mut seen = BTreeSet::new();
    let known = addresses.iter().filter(|address| seen.insert(**address));
    let (v6, v4): (Vec<IpAddr>, Vec<IpAddr>) = known.copied().partition(IpAddr::is_ipv6);
    let longer = v6.len().max(v4.len());
    let pairs = (0..longer).flat_map(|place| [v6.get(place), v4.get(place)]);
    let mut ordered: Vec<_> = pairs.flatten().copied().collect();
    let rank = |address: &IpAddr| match (failed.contains(address), good == Some(*address)) {
        (true, _) => 2,
        (false, true) => 0,
        (false, false) => 1,
    };
    ordered.sort_by_key(rank);
    ordered.truncate(MOST);
    ordered
}

/// Returns true if an address belongs inside a tunnel, so that no peer can be there: a name server
/// of the inside has answered. An operator may list it as an exception.
pub(super) fn is_inside(
    address: IpAddr,
    peers: &[ike::Peer],
    bypassed: &[TrafficSelector],
) -> bool {
    let covers = |selector: &TrafficSelector| selector.contains(address, 0, None);
    let mut inside = peers.iter().flat_map(carried);
    inside.any(|selector| covers(selector) && !is_default(selector)) && !bypassed.iter().any(covers)
}

fn carried(peer: &ike::Peer) -> impl Iterator<Item = &TrafficSelector> {
    let first = match &peer.role {
        ike::PeerRole::Vpn { remote, .. } => &remote[..],
        ike::PeerRole::Licensed | ike::PeerRole::Gateway | ike::PeerRole::Neighbour => &[],
    };
    let others = peer.children.iter().flat_map(|child| &child.remote);
    first.iter().chain(others)
}

/// Returns true for a default route, or half of it.
fn is_default(selector: &TrafficSelector) -> bool {
    let prefixes = selector.prefixes();
    prefixes.iter().all(|(_, length)| *length <= DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Identity;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_and_what_failed_comes_last() {
        let found = addresses(&["192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.1"]);
        let nothing = BTreeSet::new();
        assert_eq!(
            ordered(&found, None, &nothing),
            addresses(&["2001:db8::1", "192.0.2.1", "192.0.2.2"])
        );
        assert_eq!(
            ordered(&found, Some(found[1]), &nothing),
            addresses(&["192.0.2.2", "2001:db8::1", "192.0.2.1"])
        );
        let failed = [found[1], found[2]].into();
        assert_eq!(
            ordered(&found, Some(found[1]), &failed),
            addresses(&["192.0.2.1", "2001:db8::1", "192.0.2.2"])
        );
    }

    #[test]
    fn a_flood_of_addresses_is_cut_off() {
        let many: Vec<IpAddr> = (0..1000_u32).map(|n| IpAddr::V4(n.into())).collect();
        assert_eq!(ordered(&many, None, &BTreeSet::new()), many[..MOST]);
    }

    #[test]
    fn an_address_of_the_inside_is_none_unless_it_is_an_exception() {
        let prefix = |text: &str, length| {
            TrafficSelector::from_prefix(text.parse().unwrap(), length).unwrap()
        };
        let peer = |remote: Vec<TrafficSelector>| {
            let identity: Identity = "gw.example.net".parse().unwrap();
            let role = ike::PeerRole::Vpn {
                local: Vec::new().into(),
                remote: remote.into(),
                addressing: ike::Addressing::Fixed,
                zones: ike::ZonePolicy::default().into(),
                mode: model::Mode::Tunnel,
            };
            ike::Peer::new(model::PeerId(0), identity, role)
        };
        let inside = "10.8.0.1".parse().unwrap();
        let is_inside = |remote, bypassed: &[_]| is_inside(inside, &[peer(remote)], bypassed);
        let network = || vec![prefix("10.8.0.0", 16)];
        assert!(is_inside(network(), &[]));
        assert!(!is_inside(network(), &[prefix("10.8.0.1", 32)]));
        assert!(!is_inside(vec![prefix("10.9.0.0", 16)], &[]));
        let halves = vec![prefix("0.0.0.0", 1), prefix("128.0.0.0", 1)];
        for all in [vec![prefix("0.0.0.0", 0)], halves] {
            assert!(!is_inside(all, &[]), "each peer is there");
        }
    }
}
