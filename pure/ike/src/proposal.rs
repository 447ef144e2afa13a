//! Offering and choosing algorithms (RFC 7296 sections 2.7 and 3.3).
//!
//! A menu says which transforms are acceptable, by type, the best first. Choosing goes through the
//! offered proposals in their order and takes, for every type of the menu, the first acceptable
//! transform. A proposal that lacks a type of the menu is passed over, and so is one with a type
//! that is not on it: what we do not understand we do not agree to. The one exception is NONE,
//! which may stand for integrity beside an AEAD and for a key exchange where there is none.

use crate::config::Peer;
use model::{Group, Spi, Suite};
use wire::ike::{EsnId, GroupId, IntegrityId, PrfId, Proposal, Protocol, Transform, TransformType};

/// SPIs below are reserved (RFC 4303 section 2.1).
const FIRST_SPI: u32 = 256;

/// A choice for an IKE SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IkeChoice {
    pub(crate) suite: Suite,
    pub(crate) group: Group,
    /// What to answer.
    pub(crate) answer: Proposal,
}

/// What is acceptable for an IKE SA, each the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IkeMenu {
    pub(crate) suites: Vec<Suite>,
    pub(crate) groups: Vec<Group>,
}

/// A choice for an ESP SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EspChoice {
    pub(crate) suite: Suite,
    pub(crate) implicit_iv: bool,
    /// The key exchange that makes its keys fresh, if there is one.
    pub(crate) group: Option<GroupId>,
    /// Where its sender receives.
    pub(crate) peer_spi: Spi,
    /// What to answer.
    pub(crate) answer: Proposal,
}

/// What we offer for an IKE SA: one proposal, any of our suites with any of our groups.
pub(crate) fn offer_ike(menu: &IkeMenu) -> Proposal {
    offer(Protocol::IKE, Vec::new(), menu.courses())
}

/// What we offer for an ESP SA: each suite without an IV on the wire, if the peer can, or with one;
/// and any of the groups, or none.
pub(crate) fn offer_esp(suites: &[Suite], groups: &[GroupId], spi: Spi) -> Proposal {
    let spi = spi.0.to_be_bytes().to_vec();
    let mut menu = esp_menu(suites);
    if !groups.is_empty() {
        menu.push(group_course(groups));
    }
    offer(Protocol::ESP, spi, menu)
}

/// Chooses from an initiator's offer.
pub(crate) fn choose_ike(offered: &[Proposal], allowed: &IkeMenu) -> Option<IkeChoice> {
    let menu = allowed.courses();
    offered.iter().find_map(|proposal| {
        let fits = proposal.protocol == Protocol::IKE && proposal.spi.is_empty();
        let transforms = fits.then(|| pick(proposal, &menu))??;
        Some(IkeChoice {
            suite: suite_of(&transforms, &allowed.suites)?.0,
            group: group_of(&transforms, &allowed.groups)?,
            answer: answer(proposal, Vec::new(), transforms),
        })
    })
}

/// Chooses from an initiator's offer; `spi` is where we shall receive.
pub(crate) fn choose_esp(
    offered: &[Proposal],
    allowed: &[Suite],
    groups: &[GroupId],
    spi: Spi,
) -> Option<EspChoice> {
    offered.iter().find_map(|proposal| {
        let mut menu = esp_menu(allowed);
        if proposal.transforms.iter().any(is_group) {
            menu.push(group_course(groups));
        }
        let peer_spi = esp_spi(proposal)?;
        let transforms = pick(proposal, &menu)?;
        let (suite, implicit_iv) = suite_of(&transforms, allowed)?;
        Some(EspChoice {
            suite,
            implicit_iv,
            group: transforms.iter().find(names_group).map(|t| GroupId(t.id)),
            peer_spi,
            answer: answer(proposal, spi.0.to_be_bytes().to_vec(), transforms),
        })
    })
}

/// What we offer for the successor of an IKE SA (RFC 7296 section 2.18): as for the first one, with
/// the SPI that it is to have on our side.
pub(crate) fn offer_successor(menu: &IkeMenu, spi: u64) -> Proposal {
    Proposal {
        spi: spi.to_be_bytes().to_vec(),
        ..offer_ike(menu)
    }
}

/// Chooses from an initiator's offer for a successor; gives the initiator's SPI as well.
pub(crate) fn choose_successor(
    offered: &[Proposal],
    allowed: &IkeMenu,
    spi: u64,
) -> Option<(IkeChoice, u64)> {
    offered.iter().find_map(|proposal| {
        let (bare, theirs) = without_spi(proposal)?;
        let mut choice = choose_ike(&[bare], allowed)?;
        choice.answer.spi = spi.to_be_bytes().to_vec();
        Some((choice, theirs))
    })
}

/// Checks a responder's choice from [`offer_successor`]; gives the responder's SPI as well.
pub(crate) fn check_successor(
    answered: &[Proposal],
    offered: &IkeMenu,
) -> Option<(IkeChoice, u64)> {
    let [proposal] = answered else { return None };
    let (bare, theirs) = without_spi(proposal)?;
    Some((check_ike(&[bare], offered)?, theirs))
}

/// A proposal for a successor as one for a first IKE SA, and the SPI it had.
fn without_spi(proposal: &Proposal) -> Option<(Proposal, u64)> {
    let spi = u64::from_be_bytes(proposal.spi.as_slice().try_into().ok()?);
    let bare = Proposal {
        spi: Vec::new(),
        ..proposal.clone()
    };
    (spi != 0).then_some((bare, spi))
}

/// Checks a responder's choice from [`offer_ike`]: one proposal, one transform of each type, all
/// of them offered.
pub(crate) fn check_ike(answered: &[Proposal], offered: &IkeMenu) -> Option<IkeChoice> {
    let [proposal] = answered else { return None };
    let choice = choose_ike(answered, offered)?;
    is_final(proposal, &choice.answer).then_some(choice)
}

/// Checks a responder's choice from [`offer_esp`].
pub(crate) fn check_esp(
    answered: &[Proposal],
    suites: &[Suite],
    groups: &[GroupId],
) -> Option<EspChoice> {
    let [proposal] = answered else { return None };
    let choice = choose_esp(answered, suites, groups, Spi(0))?;
    is_final(proposal, &choice.answer).then_some(choice)
}

/// How the wire names a group.
pub(crate) const fn group_id(group: Group) -> GroupId {
    match group {
        Group::X25519 => GroupId::CURVE25519,
        Group::P256 => GroupId::SECP256R1,
    }
}

/// What the wire calls a group.
pub(crate) fn group_named(id: GroupId) -> Option<Group> {
    [Group::X25519, Group::P256]
        .into_iter()
        .find(|group| group_id(*group) == id)
}

/// The groups for a key exchange with a peer, the best first.
pub(crate) fn groups_of(peer: &Peer) -> Vec<GroupId> {
    peer.groups.iter().map(|group| group_id(*group)).collect()
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

    fn courses(&self) -> Menu {
        let suites = self.suites.iter();
        let groups = self.groups.iter();
        vec![
            suites.map(|&s| Transform::suite(s, false)).collect(),
            vec![Transform::prf(PrfId::HMAC_SHA2_256)],
            groups.map(|&g| Transform::group(group_id(g))).collect(),
        ]
    }
}

fn add_new<T: Copy + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(*one);
        }
    }
}

/// The acceptable transforms of each type, the best first.
type Menu = Vec<Vec<Transform>>;

fn esp_menu(suites: &[Suite]) -> Menu {
    let both = |&suite| [true, false].map(|implicit| Transform::suite(suite, implicit));
    vec![
        suites.iter().flat_map(both).collect(),
        vec![Transform::esn(EsnId::NO)],
    ]
}

/// Any of the groups, or no key exchange.
fn group_course(groups: &[GroupId]) -> Vec<Transform> {
    let none = std::iter::once(&GroupId::NONE);
    let course = groups.iter().chain(none);
    course.map(|group| Transform::group(*group)).collect()
}

fn is_group(transform: &Transform) -> bool {
    transform.kind == TransformType::KE
}

fn names_group(transform: &&Transform) -> bool {
    is_group(transform) && transform.id != GroupId::NONE.0
}

fn offer(protocol: Protocol, spi: Vec<u8>, menu: Menu) -> Proposal {
    Proposal {
        number: 1,
        protocol,
        spi,
        transforms: menu.concat(),
    }
}

fn pick(proposal: &Proposal, menu: &Menu) -> Option<Vec<Transform>> {
    let mut picked = Vec::new();
    for course in menu {
        let best = course
            .iter()
            .find(|transform| proposal.transforms.contains(transform))?;
        picked.push(best.clone());
    }
    let mut others: Vec<_> = proposal
        .transforms
        .iter()
        .map(|transform| transform.kind)
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

fn none_of(kind: TransformType) -> Option<Transform> {
    match kind {
        TransformType::INTEG => Some(Transform::plain(kind, IntegrityId::NONE.0)),
        TransformType::KE => Some(Transform::plain(kind, GroupId::NONE.0)),
        _ => None,
    }
}

/// The suite among the picked transforms, and whether its IV is implicit.
fn suite_of(picked: &[Transform], allowed: &[Suite]) -> Option<(Suite, bool)> {
    let cipher = picked.first()?;
    allowed.iter().find_map(|&suite| {
        [false, true]
            .into_iter()
            .find(|&implicit| *cipher == Transform::suite(suite, implicit))
            .map(|implicit| (suite, implicit))
    })
}

/// The group among the picked transforms.
fn group_of(picked: &[Transform], allowed: &[Group]) -> Option<Group> {
    let taken = |group: &&Group| picked.contains(&Transform::group(group_id(**group)));
    allowed.iter().find(taken).copied()
}

fn esp_spi(proposal: &Proposal) -> Option<Spi> {
    let octets = proposal.spi.as_slice().try_into().ok()?;
    let spi = u32::from_be_bytes(octets);
    (proposal.protocol == Protocol::ESP && spi >= FIRST_SPI).then_some(Spi(spi))
}

fn answer(proposal: &Proposal, spi: Vec<u8>, transforms: Vec<Transform>) -> Proposal {
    Proposal {
        number: proposal.number,
        protocol: proposal.protocol,
        spi,
        transforms,
    }
}

/// An answer repeats the number and leaves no choice open.
fn is_final(answered: &Proposal, picked: &Proposal) -> bool {
    answered.number == 1 && answered.transforms.len() == picked.transforms.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ike::{Attribute, EncryptionId};

    const BOTH: [Suite; 2] = [Suite::Aes256Gcm16, Suite::Aes128Gcm16];
    const SPI: Spi = Spi(0x1000);

    fn menu(suites: &[Suite], groups: &[Group]) -> IkeMenu {
        IkeMenu {
            suites: suites.to_vec(),
            groups: groups.to_vec(),
        }
    }

    /// Both suites with X25519.
    fn both() -> IkeMenu {
        menu(&BOTH, &[Group::X25519])
    }

    fn only(suite: Suite) -> IkeMenu {
        menu(&[suite], &[Group::X25519])
    }

    #[test]
    fn our_own_offer_is_chosen_and_the_answer_passes() {
        let choice = choose_ike(&[offer_ike(&both())], &only(Suite::Aes128Gcm16)).unwrap();
        assert_eq!(choice.suite, Suite::Aes128Gcm16);
        assert_eq!(choice.answer.transforms.len(), 3);
        let answer = std::slice::from_ref(&choice.answer);
        assert_eq!(check_ike(answer, &both()), Some(choice.clone()));
    }

    #[test]
    fn the_responders_order_decides_between_suites() {
        let choice = choose_esp(
            &[offer_esp(&BOTH, &[], SPI)],
            &[Suite::Aes128Gcm16],
            &[],
            Spi(999),
        );
        let choice = choice.unwrap();
        assert_eq!((choice.suite, choice.peer_spi), (Suite::Aes128Gcm16, SPI));
        assert!(choice.implicit_iv);
        assert_eq!(choice.answer.spi, 999_u32.to_be_bytes());
    }

    #[test]
    fn a_peer_without_implicit_ivs_gets_explicit_ones() {
        let mut offered = offer_esp(&BOTH, &[], SPI);
        offered
            .transforms
            .retain(|transform| transform.id != EncryptionId::AES_GCM_16_IIV.0);
        let choice = choose_esp(&[offered], &BOTH, &[], Spi(999)).unwrap();
        assert_eq!(
            (choice.suite, choice.implicit_iv),
            (Suite::Aes256Gcm16, false)
        );
    }

    #[test]
    fn an_unknown_type_or_attribute_makes_a_proposal_unacceptable() {
        let mut strange = offer_ike(&both());
        strange
            .transforms
            .push(Transform::plain(TransformType(6), 35));
        let mut marked = offer_ike(&only(Suite::Aes128Gcm16));
        marked.transforms[0]
            .attributes
            .push(Attribute::KeyLength(128));
        assert_eq!(choose_ike(&[strange.clone(), marked], &both()), None);
        let plain = Proposal {
            number: 2,
            ..offer_ike(&both())
        };
        let choice = choose_ike(&[strange, plain], &both()).unwrap();
        assert_eq!(choice.answer.number, 2);
    }

    #[test]
    fn none_may_stand_for_integrity_beside_an_aead() {
        let mut offered = offer_esp(&BOTH, &[], SPI);
        let hmac = IntegrityId::HMAC_SHA2_256_128.0;
        offered
            .transforms
            .push(Transform::plain(TransformType::INTEG, hmac));
        assert_eq!(choose_esp(&[offered.clone()], &BOTH, &[], SPI), None);
        offered
            .transforms
            .push(Transform::plain(TransformType::INTEG, 0));
        let choice = choose_esp(&[offered], &BOTH, &[], SPI).unwrap();
        assert_eq!(choice.answer.transforms.len(), 3);
    }

    #[test]
    fn extended_sequence_numbers_and_reserved_spis_are_refused() {
        let mut extended = offer_esp(&BOTH, &[], SPI);
        extended.transforms.pop();
        extended.transforms.push(Transform::esn(EsnId::YES));
        assert_eq!(choose_esp(&[extended], &BOTH, &[], SPI), None);
        assert_eq!(
            choose_esp(&[offer_esp(&BOTH, &[], Spi(255))], &BOTH, &[], SPI),
            None
        );
    }

    #[test]
    fn an_answer_that_leaves_a_choice_or_was_not_offered_is_refused() {
        assert_eq!(check_ike(&[offer_ike(&both())], &both()), None);
        let one = || offer_ike(&only(Suite::Aes128Gcm16));
        assert!(check_ike(&[one()], &both()).is_some());
        assert_eq!(check_ike(&[one()], &only(Suite::Aes256Gcm16)), None);
        assert_eq!(check_ike(&[one(), one()], &both()), None);
        assert_eq!(check_ike(&[Proposal { number: 2, ..one() }], &both()), None);
    }

    #[test]
    fn the_responders_order_decides_between_groups_and_every_suite_is_chosen() {
        let suites = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm16];
        let offered = [offer_ike(&menu(&suites, &[Group::X25519, Group::P256]))];
        let ours = menu(&BOTH, &[Group::P256, Group::X25519]);
        let choice = choose_ike(&offered, &ours).unwrap();
        assert_eq!(
            (choice.suite, choice.group),
            (Suite::Aes256Gcm16, Group::P256)
        );
        let ours = only(Suite::ChaCha20Poly1305);
        let choice = choose_ike(&offered, &ours).unwrap();
        assert_eq!(
            (choice.suite, choice.group),
            (ours.suites[0], Group::X25519)
        );
        let plain = Transform::plain(TransformType::ENCR, EncryptionId::CHACHA20_POLY1305.0);
        assert_eq!(choice.answer.transforms[0], plain);
    }

    #[test]
    fn a_key_exchange_for_a_child_is_made_where_both_want_one() {
        let group = GroupId::CURVE25519;
        let chosen = |offered: &[GroupId], ours: &[GroupId]| {
            let offer = offer_esp(&BOTH, offered, SPI);
            let choice = choose_esp(&[offer], &BOTH, ours, Spi(999)).unwrap();
            let answer = std::slice::from_ref(&choice.answer);
            let checked = check_esp(answer, &BOTH, offered).unwrap();
            assert_eq!(checked.group, choice.group);
            choice.group
        };
        assert_eq!(chosen(&[group], &[group]), Some(group));
        assert_eq!(chosen(&[group], &[]), None);
        assert_eq!(chosen(&[], &[group]), None);
        let mut only = offer_esp(&BOTH, &[group], SPI);
        only.transforms.pop();
        assert_eq!(choose_esp(&[only], &BOTH, &[], SPI), None);
    }

    #[test]
    fn the_offer_for_a_successor_carries_an_spi_and_a_first_one_none() {
        let offered = [offer_successor(&both(), 7)];
        assert_eq!(choose_ike(&offered, &both()), None);
        let (choice, theirs) = choose_successor(&offered, &both(), 8).unwrap();
        assert_eq!(theirs, 7);
        let (_, ours) = check_successor(&[choice.answer], &both()).unwrap();
        assert_eq!(ours, 8);
        for bare in [offer_successor(&both(), 0), offer_ike(&both())] {
            assert_eq!(choose_successor(&[bare], &both(), 8), None);
        }
    }

    /// CVE-2014-9221 and its like: no number of a group means anything but itself.
    #[test]
    fn every_other_group_is_just_not_ours() {
        for id in (0..=u16::MAX).filter(|&id| id != GroupId::CURVE25519.0) {
            let mut offered = offer_ike(&both());
            offered.transforms.pop();
            offered.transforms.push(Transform::group(GroupId(id)));
            assert_eq!(choose_ike(&[offered], &both()), None, "{id}");
        }
    }
}
