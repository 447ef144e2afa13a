//! Traffic that the configuration allows several peers to carry.
//!
//! Of two claims on a packet the narrower one counts, as of two routes. The claims are those of the
//! configuration: a peer that negotiates less gains nothing by it. Of equal claims, the order of
//! the SAs decides (`order.rs`). A broader claim counts while the narrower peer has no SA.

use crate::policy::Protected;
use model::{Breadth, Flow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the configuration allows a peer to carry.
pub(crate) type Claims = Arc<[Protected]>;

/// Size of the narrowest claim on a packet, by its remote end and then by its local end. `None` is
/// the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    Claimed { remote: Breadth, local: Breadth },
    Unclaimed,
}

/// Returns the size of the narrowest claim on an outbound packet.
pub(crate) fn width(claims: &[Protected], flow: &Flow) -> Width {
    let widths = claims.iter().filter_map(|claim| {
        let remote = claim
            .remote
            .iter()
            .filter(|end| end.covers_destination(flow));
        let local = claim.local.iter().filter(|end| end.covers_source(flow));
        Some(Width::Claimed {
            remote: remote.map(|end| end.breadth()).min()?,
            local: local.map(|end| end.breadth()).min()?,
        })
    });
    widths.min().unwrap_or(Width::Unclaimed)
}

/// Returns the claims of the peers that share destinations with others, unless all of these claim
/// the same. Sorted by their first address, claims that share destinations are neighbours: a
/// gateway may have ten thousand peers.
pub(crate) fn contested(claims: &[(String, Protected)]) -> BTreeMap<String, Claims> {
    let ends = claims.iter().flat_map(|(peer, claim)| {
        let ends = claim.remote.iter();
        ends.map(move |remote| (remote, &claim.local, peer.as_str()))
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by_key(|(remote, ..)| remote.first);
    let mut contested = BTreeSet::new();
    let mut rest = &ends[..];
    while let Some(&(first, local, owner)) = rest.first() {
        let mut last = first.last;
        let touching = rest.iter().take_while(|(remote, ..)| {
            let touches = remote.first <= last;
            last = last.max(remote.last);
            touches
        });
        let (together, others) = rest.split_at(touching.count());
        let differ = together
            .iter()
            .any(|(remote, ours, _)| (*remote, *ours) != (first, local));
        if differ && together.iter().any(|(.., peer)| *peer != owner) {
            contested.extend(together.iter().map(|(.., peer)| *peer));
        }
        rest = others;
    }
    let mut by_peer: BTreeMap<String, Vec<Protected>> = BTreeMap::new();
    for (peer, claim) in claims
        .iter()
        .filter(|(peer, _)| contested.contains(peer.as_str()))
    {
        by_peer.entry(peer.clone()).or_default().push(claim.clone());
    }
    let shared = by_peer
        .into_iter()
        .map(|(peer, claims)| (peer, claims.into()));
    shared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TrafficSelector;
    use std::net::IpAddr;

    fn prefix(text: &str) -> TrafficSelector {
        let (address, length) = text.split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        TrafficSelector::from_prefix(address, length.parse().unwrap()).unwrap()
    }

    fn claim(local: &str, remote: &[&str]) -> Protected {
        Protected {
            local: vec![prefix(local)],
            remote: remote.iter().map(|text| prefix(text)).collect(),
        }
    }

    /// Names of the peers with contested claims.
    fn contested_of(claims: &[(&str, Protected)]) -> Vec<String> {
        let claims: Vec<_> = claims
            .iter()
            .map(|(peer, claim)| ((*peer).to_owned(), claim.clone()))
            .collect();
        contested(&claims).into_keys().collect()
    }

    #[test]
    fn claims_that_meet_are_contested_if_they_differ() {
        let all = "0.0.0.0/0";
        let branch = |remote: &[&str]| claim(all, remote);
        let apart = [
            ("a", branch(&["10.1.0.0/16", "fd00:1::/32"])),
            ("b", branch(&["10.2.0.0/16"])),
            ("c", branch(&["fd00:2::/32"])),
        ];
        assert!(contested_of(&apart).is_empty());
        let same = [
            ("a", branch(&["10.1.0.0/16"])),
            ("b", branch(&["10.1.0.0/16"])),
        ];
        assert!(contested_of(&same).is_empty());
        let own = [("a", branch(&["10.1.0.0/16", "10.1.2.0/24"]))];
        assert!(contested_of(&own).is_empty());
        let inside = [
            ("a", branch(&["10.0.0.0/8"])),
            ("b", branch(&["10.1.0.0/16"])),
            ("c", branch(&["10.2.0.0/16"])),
            ("d", branch(&["192.168.0.0/16"])),
        ];
        assert_eq!(contested_of(&inside), ["a", "b", "c"]);
        let local = [
            ("a", claim("10.8.0.0/16", &["10.1.0.0/16"])),
            ("b", claim("10.8.1.0/24", &["10.1.0.0/16"])),
        ];
        assert_eq!(contested_of(&local), ["a", "b"]);
    }

    #[test]
    fn the_narrower_of_two_claims_is_that_of_fewer_addresses_protocols_and_ports() {
        let flow = Flow {
            source: [10, 8, 0, 1].into(),
            destination: [10, 1, 0, 1].into(),
            protocol: 6,
            source_port: 1000,
            destination_port: 443,
            ports_visible: true,
        };
        let of = |claim: Protected| width(&[claim], &flow);
        let service = |protocol, ports| Protected {
            remote: vec![TrafficSelector {
                protocol,
                ports,
                ..prefix("10.1.0.0/16")
            }],
            ..claim("10.8.0.0/16", &[])
        };
        let narrowest_first = [
            of(claim("0.0.0.0/0", &["10.1.0.1/32"])),
            of(service(6, 443..=443)),
            of(service(6, 0..=u16::MAX)),
            of(claim("10.8.0.0/16", &["10.1.0.0/16"])),
            of(claim("10.0.0.0/8", &["10.1.0.0/16"])),
            of(claim("10.8.0.0/16", &["0.0.0.0/0"])),
            of(claim("10.9.0.0/16", &["10.1.0.0/16"])),
        ];
        assert!(
            narrowest_first.is_sorted_by(|a, b| a < b),
            "{narrowest_first:?}"
        );
        let both = [claim("10.8.0.0/16", &["0.0.0.0/0"]), service(6, 443..=443)];
        assert_eq!(width(&both, &flow), narrowest_first[1]);
    }
}
