//! The children that a peer may have: the first, which its role describes, more of the same kind (RFC 9611),
//! those beside them, and the slots of licensed nodes.

use crate::config::{ChildPolicy, Peer, PeerRole, ZonePolicy};
use model::{Mode, TrafficSelector};
use std::time::Duration;
use wire::ike::NotifyType;

/// What is said of one child. What is said of the peer holds for all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy<'p> {
    /// `None` for the first.
    pub(crate) name: Option<&'p str>,
    pub(crate) local: &'p [TrafficSelector],
    pub(crate) remote: &'p [TrafficSelector],
    pub(crate) zones: &'p ZonePolicy,
    pub(crate) mode: Mode,
    pub(crate) lifetime: Duration,
    pub(crate) pfs: bool,
    pub(crate) auto: bool,
}

impl Peer {
    /// Whether the IKE SA stays whose first child was refused so in IKE_AUTH: "the IKE SA is still created as
    /// usual" (RFC 7296 section 1.2), and is of use if there are other children. Without an address there is
    /// none of them either.
    pub(crate) fn goes_on_after(&self, refusal: NotifyType) -> bool {
        let of_first = matches!(
            refusal,
            NotifyType::NO_PROPOSAL_CHOSEN
                | NotifyType::TS_UNACCEPTABLE
                | NotifyType::SINGLE_PAIR_REQUIRED
        );
        of_first && !self.children.is_empty()
    }

    /// Its children, the first one first; none for a role without.
    pub(crate) fn policies(&self) -> impl Iterator<Item = Policy<'_>> {
        let first = match &self.role {
            PeerRole::Vpn {
                local,
                remote,
                zones,
                mode,
                ..
            } => Some(Policy {
                name: None,
                local,
                remote,
                zones,
                mode: *mode,
                lifetime: self.lifetimes.child,
                pfs: self.lifetimes.pfs,
                auto: true,
            }),
            PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => None,
        };
        first.into_iter().flat_map(|first| {
            let others = self.children.iter().map(move |child| first.beside(child));
            let firsts = std::iter::once(first).chain(first.additional(self.resources));
            firsts.chain(others).chain(first.slots(&self.slots))
        })
    }

    /// Whether its IKE SA may move with all its children: MOBIKE "supports only tunnel mode IPsec SAs"
    /// (RFC 4555 section 1.2), of which BEET is one but for the form of its packets.
    pub(crate) fn may_move(&self) -> bool {
        self.mobike && self.policies().all(|policy| policy.mode != Mode::Transport)
    }

    /// One of them.
    pub(crate) fn policy(&self, name: Option<&str>) -> Option<Policy<'_>> {
        self.policies().find(|policy| policy.name == name)
    }
}

impl<'p> Policy<'p> {
    /// Another child of the same peer.
    fn beside(self, child: &'p ChildPolicy) -> Self {
        let ChildPolicy {
            name,
            local,
            remote,
            mode,
            lifetime,
            pfs,
            auto,
        } = child;
        Self {
            name: Some(name),
            local,
            remote,
            mode: *mode,
            lifetime: *lifetime,
            pfs: *pfs,
            auto: *auto,
            ..self
        }
    }
}
