//! What is acceptable, and picking from it (RFC 7296 sections 2.7 and 3.3).
//!
//! A menu has a course for each type of transform: those that are acceptable, the best first. Picking
//! from a proposal takes the first acceptable transform of each course. A proposal that lacks a type
//! of the menu is passed over, and so is one with a type that is not on it: what we do not understand
//! we do not agree to. The one exception is NONE, which may stand for integrity beside an AEAD and
//! for a key exchange where there is none.
//!
//! Any cipher of a proposal goes with any integrity transform of it, so suites stand in one proposal
//! only if they have the same HMAC, or none: [`proposable`]. AEADs and others may never share one
//! (section 3.3).

use crate::config::Peer;
use model::{Group, Suite};
use wire::ike::{EsnId, GroupId, IntegrityId, PrfId, Proposal, Transform, TransformType};

/// What is acceptable for an IKE SA, each the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IkeMenu {
    pub(crate) suites: Vec<Suite>,
    pub(crate) groups: Vec<Group>,
}

impl IkeMenu {
    /// What a peer allows.
    pub(crate) fn of(peer: &Peer) -> Self {
        Self {
            suites: peer.suites.clone(),
            groups: peer.groups.clone(),
        }
    }

    /// What any of the peers allows: who an initiator is comes out only in IKE_AUTH.
    pub(crate) fn of_all(peers: &[Peer]) -> Self {
        let mut menu = Self::default();
        for peer in peers {
            add_new(&mut menu.suites, &peer.suites);
            add_new(&mut menu.groups, &peer.groups);
        }
        menu
    }
}

fn add_new<T: Copy + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// How the wire names a group.
pub(crate) const fn group_id(group: Group) -> GroupId {
    match group {
        Group::X25519 => GroupId::CURVE25519,
        Group::P256 => GroupId::SECP256R1,
        Group::P384 => GroupId::SECP384R1,
    }
}

/// What the wire calls a group.
pub(crate) fn group_named(id: GroupId) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group_id(*group) == id)
}

/// The groups for a key exchange with a peer, the best first.
pub(crate) fn groups_of(peer: &Peer) -> Vec<GroupId> {
    peer.groups.iter().map(|group| group_id(*group)).collect()
}

/// Suites by the proposals they stand in, which are ordered as their first suites are.
pub(crate) fn proposable(suites: &[Suite]) -> Vec<Vec<Suite>> {
    let mut proposals: Vec<Vec<Suite>> = Vec::new();
    for &suite in suites {
        let fits =
            |others: &&mut Vec<Suite>| others.iter().all(|other| other.hash() == suite.hash());
        match proposals.iter_mut().find(fits) {
            Some(others) => others.push(suite),
            None => proposals.push(vec![suite]),
        }
    }
    proposals
}

/// The acceptable transforms of each type, the best first.
pub(crate) struct Menu(Vec<Vec<Transform>>);

impl Menu {
    /// For an IKE SA: suites that stand in one proposal, any of the groups.
    pub(crate) fn ike(suites: &[Suite], groups: &[Group]) -> Self {
        let mut courses = vec![suites.iter().map(|&s| Transform::suite(s, false)).collect()];
        courses.extend(integrity(suites));
        courses.push(vec![Transform::prf(PrfId::HMAC_SHA2_256)]);
        courses.push(
            groups
                .iter()
                .map(|&g| Transform::group(group_id(g)))
                .collect(),
        );
        Self(courses)
    }

    /// For an ESP SA: suites that stand in one proposal, those without an IV on the wire first.
    pub(crate) fn esp(suites: &[Suite]) -> Self {
        let forms = |&suite: &Suite| {
            let implicit = suite
                .hash()
                .is_none()
                .then(|| Transform::suite(suite, true));
            implicit.into_iter().chain([Transform::suite(suite, false)])
        };
        let mut courses = vec![suites.iter().flat_map(forms).collect()];
        courses.extend(integrity(suites));
        courses.push(vec![Transform::esn(EsnId::NO)]);
        Self(courses)
    }

    /// The same with a key exchange of any of the groups, or none.
    pub(crate) fn with_groups(mut self, groups: &[GroupId]) -> Self {
        let none = std::iter::once(&GroupId::NONE);
        let course = groups.iter().chain(none);
        self.0
            .push(course.map(|group| Transform::group(*group)).collect());
        self
    }

    /// Everything on it.
    pub(crate) fn transforms(self) -> Vec<Transform> {
        self.0.concat()
    }

    /// The best of each course that a proposal has; the cipher is the first. `None` if it is to be
    /// passed over.
    pub(crate) fn pick(&self, proposal: &Proposal) -> Option<Vec<Transform>> {
        let mut picked = Vec::new();
        for course in &self.0 {
            let offered = |transform: &&Transform| proposal.transforms.contains(transform);
            picked.push(course.iter().find(offered)?.clone());
        }
        let kinds = proposal.transforms.iter().map(|transform| transform.kind);
        let mut others: Vec<_> = kinds
            .filter(|kind| picked.iter().all(|transform| transform.kind != *kind))
            .collect();
        others.sort_unstable();
        others.dedup();
        for kind in others {
            let none = none_of(kind)?;
            proposal.transforms.contains(&none).then_some(())?;
            picked.push(none);
        }
        Some(picked)
    }
}

/// The course of the HMAC that suites of one proposal share.
fn integrity(suites: &[Suite]) -> Option<Vec<Transform>> {
    let first = suites.first().copied()?;
    Transform::integrity(first).map(|transform| vec![transform])
}

fn none_of(kind: TransformType) -> Option<Transform> {
    match kind {
        TransformType::INTEG => Some(Transform::plain(kind, IntegrityId::NONE.0)),
        TransformType::KE => Some(Transform::plain(kind, GroupId::NONE.0)),
        _ => None,
    }
}
