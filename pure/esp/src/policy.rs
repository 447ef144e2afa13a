//! The security policy database (RFC 4301 section 4.4.1), apart from the SAs' own selectors. Bypass
//! and discard policies apply first. Packets that match an SA are protected. All others are
//! dropped, so no packet routed into the tunnel ever leaves unencrypted.

use crate::claims::{Claims, Contest, Width};
use crate::drop::DropReason;
use crate::prefetch::prefetch;
use model::{Flow, PeerId, Selectors, TrafficSelector};
use std::sync::Arc;

/// The action of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet belongs in clear, outside the tunnel. Routing takes care of that, so such a
    /// packet in the tunnel is dropped.
    Bypass,
    /// The packet is dropped.
    Discard,
}

/// An exception to protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The action on matching packets.
    pub action: Action,
    /// The remote end of matching packets.
    pub remote: TrafficSelector,
}

/// The traffic that an SA carries, or will carry once it is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// The local end.
    pub local: Selectors,
    /// The remote end.
    pub remote: Selectors,
}

impl Protected {
    /// Prefetches the selectors.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.local[..]);
        prefetch(&self.remote[..]);
    }

    /// Returns true if an outbound packet matches.
    pub(crate) fn covers_outbound(&self, flow: &Flow) -> bool {
        covers(&self.local, &self.remote, flow)
    }

    /// Returns true if an inbound packet matches (RFC 4301 section 5.2 step 4).
    pub(crate) fn covers_inbound(&self, flow: &Flow) -> bool {
        covers(&self.remote, &self.local, flow)
    }
}

fn covers(from: &[TrafficSelector], to: &[TrafficSelector], flow: &Flow) -> bool {
    from.iter().any(|selector| selector.covers_source(flow))
        && to.iter().any(|selector| selector.covers_destination(flow))
}

/// The policy database of a host. Workers share it.
#[derive(Clone, Debug, Default)]
pub struct Spd {
    policies: Arc<[Policy]>,
    protected: Arc<[(PeerId, Protected)]>,
    contest: Contest,
}

impl Spd {
    /// Creates the database. Of the exceptions in `policies` the first match applies. `protected`
    /// is the traffic of the configured peers' SAs, up or not, with the peer of each.
    pub fn new(policies: Vec<Policy>, protected: Vec<(PeerId, Protected)>) -> Self {
        Self {
            policies: policies.into(),
            contest: Contest::new(&protected),
            protected: protected.into(),
        }
    }

    /// Returns what a peer's configuration claims, if other peers' claims differ from it and meet
    /// it.
    pub(crate) fn contested(&self, peer: PeerId) -> Option<Claims> {
        self.contest.for_peer(peer)
    }

    /// Returns the size of the narrowest claim on an outbound packet, among those that are
    /// contested.
    pub(crate) fn narrowest(&self, flow: &Flow) -> Width {
        self.contest.narrowest(flow)
    }

    /// Checks the policies before the lookup of an SA for an outbound packet.
    pub(crate) fn admit(&self, flow: &Flow) -> Result<(), DropReason> {
        let mut policies = self.policies.iter();
        let policy = policies.find(|policy| policy.remote.covers_destination(flow));
        match policy.map(|policy| policy.action) {
            Some(Action::Bypass) => Err(DropReason::BypassNotRouted),
            Some(Action::Discard) => Err(DropReason::DiscardPolicy),
            None => Ok(()),
        }
    }

    /// Returns the drop reason for an outbound packet that matches no SA.
    pub(crate) fn without_sa(&self, flow: &Flow) -> DropReason {
        match self.peer(flow) {
            Some(_) => DropReason::NoSa,
            None => DropReason::NoPolicy,
        }
    }

    /// Returns a peer whose configuration covers an outbound packet.
    pub(crate) fn peer(&self, flow: &Flow) -> Option<PeerId> {
        let mut protected = self.protected.iter();
        let covering = protected.find(|(_, protected)| protected.covers_outbound(flow));
        covering.map(|(peer, _)| *peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: [u8; 4], length: u8) -> TrafficSelector {
        TrafficSelector::from_prefix(address.into(), length).unwrap()
    }

    fn flow(destination: [u8; 4]) -> Flow {
        Flow {
            source: [10, 1, 0, 1].into(),
            destination: destination.into(),
            protocol: 6,
            source_port: 1000,
            destination_port: 80,
            ports_visible: true,
        }
    }

    #[test]
    fn the_first_policy_that_matches_wins() {
        let policy = |action, length| Policy {
            action,
            remote: prefix([10, 8, 0, 0], length),
        };
        let spd = Spd::new(
            vec![policy(Action::Bypass, 24), policy(Action::Discard, 16)],
            vec![],
        );
        assert_eq!(
            spd.admit(&flow([10, 8, 0, 1])),
            Err(DropReason::BypassNotRouted)
        );
        assert_eq!(
            spd.admit(&flow([10, 8, 1, 1])),
            Err(DropReason::DiscardPolicy)
        );
        assert_eq!(spd.admit(&flow([10, 9, 0, 1])), Ok(()));
    }

    #[test]
    fn a_packet_for_a_peer_that_is_down_is_told_from_one_nobody_speaks_of() {
        let protected = Protected {
            local: vec![prefix([10, 1, 0, 0], 16)].into(),
            remote: vec![prefix([10, 8, 0, 0], 16)].into(),
        };
        let spd = Spd::new(vec![], vec![(PeerId(0), protected)]);
        assert_eq!(spd.without_sa(&flow([10, 8, 0, 1])), DropReason::NoSa);
        assert_eq!(spd.without_sa(&flow([10, 9, 0, 1])), DropReason::NoPolicy);
    }

    #[test]
    fn selectors_are_turned_round_for_what_comes_in() {
        let protected = Protected {
            local: vec![prefix([10, 8, 0, 0], 16)].into(),
            remote: vec![prefix([10, 1, 0, 0], 16)].into(),
        };
        let inbound = flow([10, 8, 0, 1]);
        assert!(protected.covers_inbound(&inbound) && !protected.covers_outbound(&inbound));
    }
    /// RFC 4301 section 4.4.1.3: each end's own selectors decide which packets it may send.
    // Weakness: 98
    #[test]
    fn echo_requests_go_one_way_and_their_replies_the_other() {
        let only = |kind: u16, address| TrafficSelector {
            protocol: 1,
            ports: kind..=kind,
            ..prefix(address, 16)
        };
        let protected = Protected {
            local: vec![only(0x0800, [10, 1, 0, 0])].into(),
            remote: vec![only(0, [10, 8, 0, 0])].into(),
        };
        let message = |from: [u8; 4], to: [u8; 4], kind| Flow {
            source: from.into(),
            protocol: 1,
            source_port: kind,
            destination_port: kind,
            ..flow(to)
        };
        let (ours, theirs) = ([10, 1, 0, 1], [10, 8, 0, 1]);
        assert!(protected.covers_outbound(&message(ours, theirs, 0x0800)));
        assert!(!protected.covers_outbound(&message(ours, theirs, 0)));
        assert!(protected.covers_inbound(&message(theirs, ours, 0)));
        assert!(!protected.covers_inbound(&message(theirs, ours, 0x0800)));
    }
}
