//! The child SAs that a peer may have: the first, which its role describes, further ones for the
//! same traffic (RFC 9611), additional ones, and the slots of licensed nodes.

use crate::config::{ChildPolicy, Peer, PeerRole, Slot, ZonePolicy};
use crate::domain::Domain;
use crate::extension::{live_path, path_traffic, resource};
use model::{Licence, Mode, Path, TrafficSelector};
use std::borrow::Cow;
use std::time::Duration;
use wire::ike::NotifyType;

/// Policy of one child SA. Settings of the peer apply to all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy<'p> {
    /// Name of the child SA; `None` for the first.
    pub(crate) name: Option<&'p str>,
    pub(crate) local: &'p [TrafficSelector],
    pub(crate) remote: &'p [TrafficSelector],
    pub(crate) zones: &'p ZonePolicy,
    /// The domain whose nodes the child SA is for, one at a time.
    pub(crate) domain: Option<&'p Domain>,
    pub(crate) mode: Mode,
    pub(crate) lifetime: Duration,
    pub(crate) pfs: bool,
    pub(crate) auto: bool,
}

impl Peer {
    /// Returns true if the IKE SA stays up although its first child SA was refused with this notify
    /// in IKE_AUTH: "the IKE SA is still created as usual" (RFC 7296 section 1.2). It is useful if
    /// there are other child SAs. A missing inner address would prevent those too.
    pub(crate) fn goes_on_after(&self, refusal: NotifyType) -> bool {
        let of_first = matches!(
            refusal,
            NotifyType::NO_PROPOSAL_CHOSEN
                | NotifyType::TS_UNACCEPTABLE
                | NotifyType::SINGLE_PAIR_REQUIRED
        );
        of_first && !self.children.is_empty()
    }

    /// Returns the policies of its child SAs, the first one first. Roles without child SAs have
    /// none.
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
                domain: None,
                mode: *mode,
                lifetime: self.lifetimes.child,
                pfs: self.lifetimes.pfs,
                auto: true,
            }),
            PeerRole::Licensed | PeerRole::Gateway | PeerRole::Neighbour => None,
        };
        first.into_iter().flat_map(|first| {
            let slots = self.slots.iter().map(move |slot| first.slot(slot));
            let others = self.children.iter().map(move |child| first.beside(child));
            let more = resource::names(self.features.resources).map(move |name| first.named(name));
            let most = self.features.paths;
            let paths = live_path::names(most).chain(path_traffic::names_of_peer(most));
            let paths = paths.map(move |name| first.on_path(name, first.remote));
            let rules = self.rules.iter().enumerate();
            let rules = rules.flat_map(move |(index, rule)| {
                let names = path_traffic::names_of_rule(index, most);
                names.map(move |name| first.on_path(name, &rule.remote))
            });
            let firsts = std::iter::once(first).chain(more);
            let firsts = firsts.chain(paths).chain(rules);
            firsts.chain(others).chain(slots)
        })
    }

    /// Returns the selectors of child SAs in transport mode, ours first: these have the outer
    /// addresses that either end may have.
    pub fn outside(&self) -> impl Iterator<Item = (&[TrafficSelector], &[TrafficSelector])> {
        let outside = self
            .policies()
            .filter(|policy| policy.mode == Mode::Transport);
        outside.map(|policy| (policy.local, policy.remote))
    }

    /// Returns the policy of one child SA.
    pub(crate) fn policy(&self, name: Option<&str>) -> Option<Policy<'_>> {
        self.policies().find(|policy| policy.name == name)
    }
}

impl<'p> Policy<'p> {
    /// Returns the zones, with the licences of a domain's node if these licences are for one.
    pub(crate) fn zones_for(&self, licences: &[Licence]) -> Cow<'p, ZonePolicy> {
        match self.domain {
            Some(domain) => domain.zones_for(self.zones, licences),
            None => Cow::Borrowed(self.zones),
        }
    }

    /// Returns the policy of another child SA for the same traffic.
    fn named(self, name: &'p str) -> Self {
        let name = Some(name);
        Self { name, ..self }
    }

    /// Returns the policy of a child SA for this traffic of the first one, on a path that the
    /// caller chooses.
    fn on_path(self, name: &'p str, remote: &'p [TrafficSelector]) -> Self {
        Self {
            remote,
            auto: false,
            ..self.named(name)
        }
    }

    /// Returns the policy of a slot for the traffic of this child SA.
    fn slot(self, slot: &'p Slot) -> Self {
        Self {
            zones: &slot.zones,
            domain: slot.domain.as_ref(),
            auto: false,
            ..self.named(&slot.name)
        }
    }

    /// Returns the policy of the child SA of a further path. Its zones are those of the slot whose
    /// nodes are on the path.
    pub(crate) fn on(self, path: Path, peer: &'p Peer) -> Self {
        let here = peer.slot_on(path);
        Self {
            zones: here.map_or(self.zones, |slot| &slot.zones),
            ..self
        }
    }

    /// Returns the policy of an additional child SA of the same peer.
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
