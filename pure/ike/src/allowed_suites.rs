//! Acceptable algorithms, and picking from them (RFC 7296 sections 2.7 and 3.3).
//!
//! A menu has a course for each type of transform: the acceptable transforms, in order of
//! preference. Picking from a proposal takes the first acceptable transform of each course. A
//! proposal that lacks a type of the menu is skipped, and so is a proposal with a type that is not
//! on the menu: we do not agree to anything that we do not understand. The one exception is NONE,
//! which may stand for integrity with an AEAD, and for a key exchange where there is none.
//!
//! Suites without encryption are a menu of their own. An offer has suites of one kind only, and an
//! offer with a suite that encrypts never yields one that does not: no end that could encrypt is
//! brought to do without.
//!
//! Any cipher of a proposal combines with any integrity transform of the same proposal. Suites
//! therefore share a proposal only if they have the same HMAC, or none: `proposable`. AEADs and
//! other ciphers may never share a proposal (section 3.3).
//!
//! An additional key exchange (RFC 9370) has a transform type of its own. A peer that does not know
//! this type skips the whole proposal. If the additional exchange is optional, a proposal with it
//! is therefore followed by one without: [`AllowedIkeSuites::parts`]. For a child SA it accompanies
//! a group and never NONE.

use crate::config::Peer;
use model::{EspSuite, Group, Kem, Sha2, Suite};
use wire::ike::{EsnId, GroupId, IntegrityId, PrfId, Proposal, Transform, TransformType};

/// Acceptable algorithms for an IKE SA, each in order of preference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedIkeSuites {
    pub(crate) suites: Vec<Suite>,
    pub(crate) groups: Vec<Group>,
    /// Methods for an additional key exchange; `None` among them makes it optional.
    pub(crate) kems: Vec<Option<Kem>>,
}

impl AllowedIkeSuites {
    /// Returns the algorithms that a peer allows.
    pub(crate) fn of(peer: &Peer) -> Self {
        Self {
            suites: peer.suites.clone(),
            groups: peer.groups.clone(),
            kems: peer.kems.clone(),
        }
    }

    /// Returns the algorithms that any of the peers allows: the identity of an initiator is known
    /// only in IKE_AUTH.
    pub(crate) fn of_all(peers: &[Peer]) -> Self {
        let mut menu = Self::default();
        for peer in peers {
            add_new(&mut menu.suites, &peer.suites);
            add_new(&mut menu.groups, &peer.groups);
            add_new(&mut menu.kems, &peer.kems);
        }
        menu
    }

    /// Splits the menu into one part per proposal, in order of preference: all parts with an
    /// additional key exchange come before all without.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let parts = parts(&self.suites, &self.kems).into_iter();
        let parts = parts.map(|(suites, kems)| Self {
            suites,
            groups: self.groups.clone(),
            kems,
        });
        parts.collect()
    }
}

/// Acceptable algorithms for an ESP SA, each in order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedEspSuites {
    pub(crate) suites: Vec<EspSuite>,
    /// Groups for a key exchange of its own. Empty: its keys come from those of the IKE SA.
    pub(crate) groups: Vec<GroupId>,
    /// Methods for an additional key exchange after that; `None` among them makes it optional.
    pub(crate) kems: Vec<Option<Kem>>,
    /// True if extended sequence numbers are wanted. They are optional.
    pub(crate) esn: bool,
}

impl AllowedEspSuites {
    /// Creates a menu without key exchanges and extended sequence numbers.
    #[cfg(test)]
    pub(crate) fn plain(suites: &[Suite]) -> Self {
        Self {
            suites: encrypted(suites),
            groups: Vec::new(),
            kems: vec![None],
            esn: false,
        }
    }

    /// Returns the algorithms to offer a peer with these groups: those without encryption, if any
    /// are given, or those with encryption.
    pub(crate) fn to_offer(peer: &Peer, groups: Vec<GroupId>, unencrypted: &[EspSuite]) -> Self {
        match unencrypted {
            [] => Self::of(peer, groups, encrypted(&peer.suites)),
            some => Self::of(peer, groups, some.to_vec()),
        }
    }

    /// Returns the algorithms to choose from the offer of a peer. Those without encryption are
    /// accepted only if the offer has no others.
    pub(crate) fn to_choose(
        peer: &Peer,
        groups: Vec<GroupId>,
        unencrypted: &[EspSuite],
        offered: &[Proposal],
    ) -> Self {
        match encrypts(offered) {
            true => Self::to_offer(peer, groups, &[]),
            false => Self::to_offer(peer, groups, unencrypted),
        }
    }

    /// Returns all algorithms that the configuration of a peer names.
    pub(crate) fn configured(peer: &Peer) -> Self {
        let unencrypted = peer.unencrypted.iter().flat_map(|some| &some.suites);
        let suites = unencrypted.copied().chain(encrypted(&peer.suites));
        Self::of(peer, Vec::new(), suites.collect())
    }

    /// Returns these suites with these groups. Without a key exchange, there is no additional one
    /// either.
    fn of(peer: &Peer, groups: Vec<GroupId>, suites: Vec<EspSuite>) -> Self {
        let kems = match groups.is_empty() {
            true => vec![None],
            false => peer.kems.clone(),
        };
        Self {
            suites,
            groups,
            kems,
            esn: peer.features.esn,
        }
    }

    /// Splits the menu into one part per proposal, as [`AllowedIkeSuites::parts`] does.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let parts = parts(&self.suites, &self.kems).into_iter();
        let parts = parts.map(|(suites, kems)| Self {
            suites,
            groups: self.groups.clone(),
            kems,
            esn: self.esn,
        });
        parts.collect()
    }
}

/// Returns these suites as suites of ESP.
fn encrypted(suites: &[Suite]) -> Vec<EspSuite> {
    suites.iter().copied().map(EspSuite::from).collect()
}

/// Returns true if an offer has a cipher that encrypts.
pub(crate) fn encrypts(offered: &[Proposal]) -> bool {
    let mut transforms = offered.iter().flat_map(|proposal| &proposal.transforms);
    transforms.any(Transform::encrypts)
}

/// The suites and methods of a proposal.
type Part<S> = (Vec<S>, Vec<Option<Kem>>);

/// Returns the suites and methods of each proposal.
fn parts<S: Copy + Into<EspSuite>>(suites: &[S], kems: &[Option<Kem>]) -> Vec<Part<S>> {
    let some: Vec<_> = kems.iter().copied().filter(Option::is_some).collect();
    let with = (!some.is_empty()).then_some(some);
    let without = kems.contains(&None).then(|| vec![None]);
    let kems = with.into_iter().chain(without);
    let parts = kems.flat_map(|kems| {
        let suites = proposable(suites).into_iter();
        suites.map(move |suites| (suites, kems.clone()))
    });
    parts.collect()
}

fn add_new<T: Copy + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// Returns the wire's number of a group.
pub(crate) const fn group_id(group: Group) -> GroupId {
    match group {
        Group::X25519 => GroupId::CURVE25519,
        Group::P256 => GroupId::SECP256R1,
        Group::P384 => GroupId::SECP384R1,
        Group::Modp3072 => GroupId::MODP_3072,
        Group::Modp2048 => GroupId::MODP_2048,
    }
}

/// Returns the group that a number on the wire stands for.
pub(crate) fn group_named(id: GroupId) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group_id(*group) == id)
}

/// Returns the groups for a key exchange with a peer, in order of preference.
pub(crate) fn groups_of(peer: &Peer) -> Vec<GroupId> {
    peer.groups.iter().map(|group| group_id(*group)).collect()
}

/// Returns the wire's number of a method for an additional key exchange.
pub(crate) const fn kem_id(kem: Kem) -> GroupId {
    match kem {
        Kem::MlKem512 => GroupId::ML_KEM_512,
        Kem::MlKem768 => GroupId::ML_KEM_768,
        Kem::MlKem1024 => GroupId::ML_KEM_1024,
    }
}

/// Returns the methods for additional key exchanges among transforms, in the order of the exchanges
/// (RFC 9370 section 2.2.2).
pub(crate) fn kems_of(transforms: &[Transform]) -> Vec<Kem> {
    let additional = transforms.iter().filter(|one| one.kind.is_additional());
    let mut additional: Vec<_> = additional.map(|one| (one.kind, one.id)).collect();
    additional.sort_unstable();
    let kem = |id| Kem::ALL.into_iter().find(|kem| kem_id(*kem).0 == id);
    additional
        .into_iter()
        .filter_map(|(_, id)| kem(id))
        .collect()
}

/// Groups suites by proposal. Proposals are ordered by their first suites.
fn proposable<S: Copy + Into<EspSuite>>(suites: &[S]) -> Vec<Vec<S>> {
    let kind = |suite: S| {
        let suite: EspSuite = suite.into();
        (suite.hash(), suite.encrypts())
    };
    let mut proposals: Vec<Vec<S>> = Vec::new();
    for &suite in suites {
        let fits = |others: &&mut Vec<S>| {
            let mut others = others.iter().copied();
            others.all(|other| kind(other) == kind(suite))
        };
        match proposals.iter_mut().find(fits) {
            Some(others) => others.push(suite),
            None => proposals.push(vec![suite]),
        }
    }
    proposals
}

/// Acceptable transforms of one proposal.
pub(crate) struct AllowedSuites {
    /// The transforms of each type, in order of preference.
    courses: Vec<Vec<Transform>>,
    /// The methods for additional key exchanges. If there are any, at least one has to take place.
    kems: Vec<Kem>,
}

impl AllowedSuites {
    /// Creates the menu of one proposal for an IKE SA.
    pub(crate) fn ike(part: &AllowedIkeSuites) -> Self {
        let suites = part.suites.iter();
        let mut courses = vec![suites.map(|&s| Transform::suite(s, false)).collect()];
        courses.extend(integrity(
            part.suites.first().and_then(|suite| suite.hash()),
        ));
        courses.push(vec![Transform::prf(PrfId::HMAC_SHA2_256)]);
        let groups = part.groups.iter();
        courses.push(groups.map(|&g| Transform::group(group_id(g))).collect());
        let kems = part.kems.iter().copied().flatten().collect();
        Self { courses, kems }
    }

    /// Creates the menu of one proposal for an ESP SA, suites with implicit IV first. An initiator
    /// that supports extended sequence numbers "will usually include two ESN transforms" (RFC 7296
    /// section 3.3.2).
    pub(crate) fn esp(part: &AllowedEspSuites) -> Self {
        let suites = &part.suites;
        let forms = |&suite: &EspSuite| {
            let implicit = suite.may_omit_iv().then(|| Transform::esp(suite, true));
            implicit.into_iter().chain([Transform::esp(suite, false)])
        };
        let mut courses = vec![suites.iter().flat_map(forms).collect()];
        courses.extend(integrity(suites.first().and_then(|suite| suite.hash())));
        let extended = part.esn.then_some(EsnId::YES);
        let numbers = extended.into_iter().chain([EsnId::NO]);
        courses.push(numbers.map(Transform::esn).collect());
        let kems = Vec::new();
        Self { courses, kems }
    }

    /// Adds a key exchange of any of the groups or none, or one of the groups followed by an
    /// additional key exchange.
    pub(crate) fn exchanging(mut self, part: &AllowedEspSuites) -> Self {
        self.kems = part.kems.iter().copied().flatten().collect();
        let none = self.kems.is_empty().then_some(&GroupId::NONE);
        let course = part.groups.iter().chain(none);
        self.courses
            .push(course.map(|group| Transform::group(*group)).collect());
        self
    }

    /// Returns all transforms of the menu. We request at most one additional key exchange.
    pub(crate) fn transforms(self) -> Vec<Transform> {
        let kems = self.kems.iter();
        let additional = kems.map(|kem| additional(TransformType::ADDKE1, Some(*kem)));
        let additional: Vec<_> = additional.collect();
        [self.courses.concat(), additional].concat()
    }

    /// Picks the best transform of each course that a proposal has. The cipher is the first.
    /// Returns `None` if the proposal has to be skipped.
    pub(crate) fn pick(&self, proposal: &Proposal) -> Option<Vec<Transform>> {
        let mut picked = Vec::new();
        for course in &self.courses {
            let offered = |transform: &&Transform| proposal.transforms.contains(transform);
            picked.push(course.iter().find(offered)?.clone());
        }
        let kinds = proposal.transforms.iter().map(|transform| transform.kind);
        let mut others: Vec<_> = kinds
            .filter(|kind| picked.iter().all(|transform| transform.kind != *kind))
            .collect();
        others.sort_unstable();
        others.dedup();
        let (exchanges, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|kind| kind.is_additional());
        for kind in others {
            let none = none_of(kind)?;
            proposal.transforms.contains(&none).then_some(())?;
            picked.push(none);
        }
        picked.extend(self.pick_kems(&exchanges, proposal)?);
        Some(picked)
    }

    /// Picks a method, or NONE, for each of these types of additional key exchange.
    fn pick_kems(&self, kinds: &[TransformType], proposal: &Proposal) -> Option<Vec<Transform>> {
        let methods = || self.kems.iter().copied().map(Some).chain([None]);
        let offered = |&kind: &TransformType| {
            let offered = |method: &Option<Kem>| {
                let transform = additional(kind, *method);
                proposal.transforms.contains(&transform)
            };
            methods().filter(offered).collect::<Vec<_>>()
        };
        let offered: Vec<_> = kinds.iter().map(offered).collect();
        let picked = distinct(&offered, &mut Vec::new())?;
        let lacks = picked.iter().all(Option::is_none) && !self.kems.is_empty();
        let kinds = kinds.iter().zip(picked);
        (!lacks).then(|| {
            kinds
                .map(|(kind, method)| additional(*kind, method))
                .collect()
        })
    }
}

/// Picks one method of each list, the first ones if possible, and none twice except NONE: the
/// choice "MUST NOT contain duplicated algorithms" (RFC 9370 section 2.2.1). There are at most
/// seven lists of four.
fn distinct(offered: &[Vec<Option<Kem>>], taken: &mut Vec<Kem>) -> Option<Vec<Option<Kem>>> {
    let Some((first, rest)) = offered.split_first() else {
        return Some(Vec::new());
    };
    first.iter().find_map(|&method| {
        if method.is_some_and(|kem| taken.contains(&kem)) {
            return None;
        }
        let before = taken.len();
        taken.extend(method);
        let others = distinct(rest, taken);
        taken.truncate(before);
        Some([vec![method], others?].concat())
    })
}

/// Returns the transform of an additional key exchange, or NONE.
fn additional(kind: TransformType, method: Option<Kem>) -> Transform {
    Transform::plain(kind, method.map_or(GroupId::NONE, kem_id).0)
}

/// Returns the course of the HMAC that the suites of one proposal share.
fn integrity(hash: Option<Sha2>) -> Option<Vec<Transform>> {
    hash.map(|hash| vec![Transform::hmac(hash)])
}

fn none_of(kind: TransformType) -> Option<Transform> {
    match kind {
        TransformType::INTEG => Some(Transform::plain(kind, IntegrityId::NONE.0)),
        TransformType::KE => Some(Transform::plain(kind, GroupId::NONE.0)),
        _ => None,
    }
}
