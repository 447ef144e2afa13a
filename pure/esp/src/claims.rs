//! Traffic that the configuration allows several peers to carry.
//!
//! Of two claims on a packet the narrower one counts, as of two routes, whether its peer has an SA
//! or not: what a tunnel protects leaves through it or not at all. The claims are those of the
//! configuration, so a peer that negotiates less gains nothing by it. Of equal claims, the order of
//! the SAs decides (`order.rs`).

use crate::policy::Protected;
use model::{Breadth, Flow, PeerId, TrafficSelector};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Traffic that the configuration allows a peer to carry.
pub(crate) type Claims = Arc<[Protected]>;

/// Size of the narrowest claim on a packet, by its remote end and then by its local end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    Claimed { remote: Breadth, local: Breadth },
    Unclaimed,
}

/// The claims of the peers that share destinations with others, unless all of these claim the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contest {
    by_peer: BTreeMap<PeerId, Claims>,
    /// The remote ends of all these claims, by their first address.
    ends: Arc<[End]>,
}

/// One remote end of claims.
#[derive(Debug)]
struct End {
    remote: TrafficSelector,
    /// The local ends of all claims with this remote end.
    local: Vec<TrafficSelector>,
    /// The nearest end before this one that has its first address.
    around: Option<usize>,
}

impl Contest {
    /// Finds the contested claims, each with its peer. Sorted by their first
    /// address, claims that share destinations are neighbours: a gateway may have ten thousand
    /// peers.
    pub fn new(claims: &[(PeerId, Protected)]) -> Self {
        let ends = claims.iter().flat_map(|(peer, claim)| {
            let ends = claim.remote.iter();
            ends.map(move |remote| (remote, &claim.local[..], *peer))
        });
        let mut ends: Vec<_> = ends.collect();
        // Equal ends are neighbours, and an end precedes those within it.
        ends.sort_by_key(|(remote, ..)| {
            let ports = (*remote.ports.start(), *remote.ports.end());
            (remote.first, Reverse(remote.last), remote.protocol, ports)
        });
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
            let mut differ = together.iter();
            let differ = differ.any(|(remote, ours, _)| (*remote, *ours) != (first, local));
            if differ && together.iter().any(|(.., peer)| *peer != owner) {
                contested.extend(together.iter().map(|(.., peer)| *peer));
            }
            rest = others;
        }
        ends.retain(|(.., peer)| contested.contains(peer));
        let mut by_peer: BTreeMap<PeerId, Vec<Protected>> = BTreeMap::new();
        let theirs = claims.iter();
        for (peer, claim) in theirs.filter(|(peer, _)| contested.contains(peer)) {
            by_peer.entry(*peer).or_default().push(claim.clone());
        }
        let by_peer = by_peer.into_iter();
        Self {
            by_peer: by_peer
                .map(|(peer, claims)| (peer, claims.into()))
                .collect(),
            ends: nested(&ends).into(),
        }
    }

    /// Returns the claims of a peer, if they are contested.
    pub fn for_peer(&self, peer: PeerId) -> Option<Claims> {
        self.by_peer.get(&peer).cloned()
    }

    /// Returns the size of the narrowest contested claim on an outbound packet.
    pub fn narrowest(&self, flow: &Flow) -> Width {
        let mut ends = self
            .ends
            .partition_point(|end| end.remote.first <= flow.destination);
        let mut narrowest = Width::Unclaimed;
        while let Some(end) = ends.checked_sub(1).and_then(|last| self.ends.get(last)) {
            let one = std::slice::from_ref(&end.remote);
            narrowest = narrowest.min(width_of(&end.local, one, flow));
            ends = end.around.map_or(0, |around| around + 1);
        }
        narrowest
    }
}

/// Returns sorted ends, each with the one around it. All ends with an address are found from the
/// last one that begins before it.
fn nested(sorted: &[(&TrafficSelector, &[TrafficSelector], PeerId)]) -> Vec<End> {
    let (mut ends, mut open): (Vec<End>, Vec<usize>) = (Vec::new(), Vec::new());
    for &(remote, local, _) in sorted {
        if let Some(same) = ends.last_mut().filter(|last| last.remote == *remote) {
            let new = local.iter().filter(|end| !same.local.contains(end));
            let new: Vec<_> = new.cloned().collect();
            same.local.extend(new);
            continue;
        }
        while open
            .last()
            .is_some_and(|last| ends[*last].remote.last < remote.first)
        {
            open.pop();
        }
        let around = open.last().copied();
        open.push(ends.len());
        ends.push(End {
            remote: remote.clone(),
            local: local.to_vec(),
            around,
        });
    }
    ends
}

/// Returns the size of the narrowest of a peer's claims on an outbound packet.
pub(crate) fn width(claims: &[Protected], flow: &Flow) -> Width {
    let widths = claims
        .iter()
        .map(|claim| width_of(&claim.local, &claim.remote, flow));
    widths.min().unwrap_or(Width::Unclaimed)
}

fn width_of(local: &[TrafficSelector], remote: &[TrafficSelector], flow: &Flow) -> Width {
    let remote = remote.iter().filter(|end| end.covers_destination(flow));
    let local = local.iter().filter(|end| end.covers_source(flow));
    let [remote, local] = [
        remote.map(TrafficSelector::breadth).min(),
        local.map(TrafficSelector::breadth).min(),
    ];
    remote
        .zip(local)
        .map_or(Width::Unclaimed, |(remote, local)| Width::Claimed {
            remote,
            local,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn prefix(text: &str) -> TrafficSelector {
        let (address, length) = text.split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        TrafficSelector::from_prefix(address, length.parse().unwrap()).unwrap()
    }

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);
    const C: PeerId = PeerId(2);
    const D: PeerId = PeerId(3);

    fn claim(local: &str, remote: &[&str]) -> Protected {
        Protected {
            local: vec![prefix(local)].into(),
            remote: remote.iter().map(|text| prefix(text)).collect(),
        }
    }

    /// Peers with contested claims.
    fn contested_of(claims: &[(PeerId, Protected)]) -> Vec<PeerId> {
        Contest::new(claims).by_peer.into_keys().collect()
    }

    #[test]
    fn claims_that_meet_are_contested_if_they_differ() {
        let all = "0.0.0.0/0";
        let branch = |remote: &[&str]| claim(all, remote);
        let apart = [
            (A, branch(&["10.1.0.0/16", "fd00:1::/32"])),
            (B, branch(&["10.2.0.0/16"])),
            (C, branch(&["fd00:2::/32"])),
        ];
        assert!(contested_of(&apart).is_empty());
        let same = [(A, branch(&["10.1.0.0/16"])), (B, branch(&["10.1.0.0/16"]))];
        assert!(contested_of(&same).is_empty());
        let own = [(A, branch(&["10.1.0.0/16", "10.1.2.0/24"]))];
        assert!(contested_of(&own).is_empty());
        let inside = [
            (A, branch(&["10.0.0.0/8"])),
            (B, branch(&["10.1.0.0/16"])),
            (C, branch(&["10.2.0.0/16"])),
            (D, branch(&["192.168.0.0/16"])),
        ];
        assert_eq!(contested_of(&inside), [A, B, C]);
        let local = [
            (A, claim("10.8.0.0/16", &["10.1.0.0/16"])),
            (B, claim("10.8.1.0/24", &["10.1.0.0/16"])),
        ];
        assert_eq!(contested_of(&local), [A, B]);
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
            }]
            .into(),
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

    /// A range among the first addresses of 10.0.0.0, at either end of a claim.
    fn range() -> impl Strategy<Value = TrafficSelector> {
        (0..12_u8, 0..6_u8, any::<bool>()).prop_map(|(first, more, is_tcp)| TrafficSelector {
            protocol: if is_tcp { 6 } else { 0 },
            ports: 0..=u16::MAX,
            first: [10, 0, 0, first].into(),
            last: [10, 0, 0, first + more].into(),
        })
    }

    proptest! {
        /// A search through all contested claims finds the same.
        // Weakness: 135
        #[test]
        fn the_narrowest_claim_of_all_is_found(
            claims in vec((0..4_u8, vec(range(), 1..3), vec(range(), 1..3)), 1..12),
        ) {
            let claims: Vec<_> = claims
                .into_iter()
                .map(|(peer, local, remote)| {
                    let [local, remote] = [local, remote].map(Into::into);
                    (PeerId(peer.into()), Protected { local, remote })
                })
                .collect();
            let contest = Contest::new(&claims);
            let contested: Vec<_> = contest.by_peer.values().flat_map(|own| own.iter().cloned()).collect();
            for [source, destination] in (0..18).flat_map(|a| (0..18).map(move |b| [a, b])) {
                let flow = Flow {
                    source: [10, 0, 0, source].into(),
                    destination: [10, 0, 0, destination].into(),
                    protocol: 6,
                    source_port: 1000,
                    destination_port: 80,
                    ports_visible: true,
                };
                prop_assert_eq!(contest.narrowest(&flow), width(&contested, &flow));
            }
        }
    }
}
