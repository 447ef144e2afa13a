//! Offering and choosing algorithms (RFC 7296 sections 2.7 and 3.3) from those that
//! [`crate::allowed_suites`] declares acceptable.
//!
//! An offer has a proposal for each kind of suite, in our order of preference. Choosing goes
//! through the kinds in our order as well, and takes the first that any offered proposal has. Each
//! kind occurs twice if an additional key exchange is optional: `AllowedIkeSuites::parts`.

use crate::allowed_suites::{AllowedEspSuites, AllowedIkeSuites, AllowedSuites, group_id, kems_of};
use crypto::Prf;
use model::{EspSuite, Group, Kem, Spi, Suite};
use wire::ike::{EsnId, GroupId, Proposal, Protocol, Transform, TransformType};

/// Smallest usable SPI (RFC 4303 section 2.1 reserves those below).
const FIRST_SPI: u32 = 256;

/// A choice for an IKE SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IkeChoice {
    pub(crate) suite: Suite,
    pub(crate) prf: Prf,
    pub(crate) group: Group,
    /// The additional key exchanges, in their order.
    pub(crate) kems: Vec<Kem>,
    /// Proposal to answer with.
    pub(crate) answer: Proposal,
}

/// A choice for an ESP SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EspChoice {
    pub(crate) suite: EspSuite,
    pub(crate) implicit_iv: bool,
    /// True if sequence numbers are extended.
    pub(crate) esn: bool,
    /// Group of the child SA's own key exchange, if there is one.
    pub(crate) group: Option<GroupId>,
    /// The additional key exchanges after it, in their order.
    pub(crate) kems: Vec<Kem>,
    /// SPI on which the sender of the proposal receives.
    pub(crate) peer_spi: Spi,
    /// Proposal to answer with.
    pub(crate) answer: Proposal,
}

/// Returns our offer for an IKE SA: any of our suites with any of our groups.
pub(crate) fn offer_ike(menu: &AllowedIkeSuites) -> Vec<Proposal> {
    offer(
        Protocol::IKE,
        &[],
        menu.parts().iter().map(AllowedSuites::ike),
    )
}

/// Returns our offer for an ESP SA: each suite, with an implicit IV preferred for AEADs; any of the
/// groups, or none unless an additional key exchange has to follow; and extended sequence numbers,
/// if wanted.
pub(crate) fn offer_esp(menu: &AllowedEspSuites, spi: Spi) -> Vec<Proposal> {
    let parts = menu.parts();
    let menus = parts.iter().map(|part| match part.groups.is_empty() {
        true => AllowedSuites::esp(part),
        false => AllowedSuites::esp(part).exchanging(part),
    });
    offer(Protocol::ESP, &spi.0.to_be_bytes(), menus)
}

/// Returns our offer for the successor of an IKE SA (RFC 7296 section 2.18): as for the first one,
/// with our SPI of the successor.
pub(crate) fn offer_successor(menu: &AllowedIkeSuites, spi: u64) -> Vec<Proposal> {
    let menus = menu.parts();
    let menus = menus.iter().map(AllowedSuites::ike);
    offer(Protocol::IKE, &spi.to_be_bytes(), menus)
}

/// Chooses from an initiator's offer for an IKE SA.
pub(crate) fn choose_ike(offered: &[Proposal], allowed: &AllowedIkeSuites) -> Option<IkeChoice> {
    allowed.parts().iter().find_map(|part| {
        let menu = AllowedSuites::ike(part);
        offered.iter().find_map(|proposal| {
            let fits = proposal.protocol == Protocol::IKE && proposal.spi.is_empty();
            let transforms = fits.then(|| menu.pick(proposal))??;
            Some(IkeChoice {
                suite: ike_suite_of(&transforms, &part.suites)?,
                // The only one that we offer.
                prf: Prf::HmacSha256,
                group: group_of(&transforms, &part.groups)?,
                kems: kems_of(&transforms),
                answer: answer(proposal, Vec::new(), transforms),
            })
        })
    })
}

/// Chooses from an initiator's offer for an ESP SA; `spi` is the SPI on which we shall receive.
pub(crate) fn choose_esp(
    offered: &[Proposal],
    allowed: &AllowedEspSuites,
    spi: Spi,
) -> Option<EspChoice> {
    allowed.parts().iter().find_map(|part| {
        let mut offered = offered.iter();
        offered.find_map(|proposal| {
            let menu = match proposal.transforms.iter().any(is_group) {
                true => AllowedSuites::esp(part).exchanging(part),
                false => AllowedSuites::esp(part),
            };
            let peer_spi = esp_spi(proposal)?;
            let transforms = menu.pick(proposal)?;
            let (suite, implicit_iv) = esp_suite_of(&transforms, &part.suites)?;
            Some(EspChoice {
                suite,
                implicit_iv,
                esn: transforms.contains(&Transform::esn(EsnId::YES)),
                group: transforms.iter().find(names_group).map(|t| GroupId(t.id)),
                kems: kems_of(&transforms),
                peer_spi,
                answer: answer(proposal, spi.0.to_be_bytes().to_vec(), transforms),
            })
        })
    })
}

/// Chooses from an initiator's offer for a successor. Returns the initiator's SPI as well.
pub(crate) fn choose_successor(
    offered: &[Proposal],
    allowed: &AllowedIkeSuites,
    spi: u64,
) -> Option<(IkeChoice, u64)> {
    let offered: Vec<_> = offered.iter().filter_map(without_spi).collect();
    let bare: Vec<_> = offered.iter().map(|(bare, _)| bare.clone()).collect();
    let mut choice = choose_ike(&bare, allowed)?;
    let number = choice.answer.number;
    let (_, theirs) = offered.iter().find(|(bare, _)| bare.number == number)?;
    choice.answer.spi = spi.to_be_bytes().to_vec();
    Some((choice, *theirs))
}

/// Checks a responder's choice from [`offer_ike`]: one proposal that we offered, with one transform
/// of each type, all of which we offered.
pub(crate) fn check_ike(answered: &[Proposal], offered: &AllowedIkeSuites) -> Option<IkeChoice> {
    let [proposal] = answered else { return None };
    let offered = offered_as(proposal, offered.parts())?;
    let choice = choose_ike(answered, &offered)?;
    is_final(proposal, &choice.answer).then_some(choice)
}

/// Checks a responder's choice from [`offer_esp`].
pub(crate) fn check_esp(answered: &[Proposal], offered: &AllowedEspSuites) -> Option<EspChoice> {
    let [proposal] = answered else { return None };
    let offered = offered_as(proposal, offered.parts())?;
    let choice = choose_esp(answered, &offered, Spi(0))?;
    let lacks = choice.kems.is_empty() && !offered.kems.contains(&None);
    (!lacks && is_final(proposal, &choice.answer)).then_some(choice)
}

/// Checks a responder's choice from [`offer_successor`]. Returns the responder's SPI as well.
pub(crate) fn check_successor(
    answered: &[Proposal],
    offered: &AllowedIkeSuites,
) -> Option<(IkeChoice, u64)> {
    let [proposal] = answered else { return None };
    let (bare, theirs) = without_spi(proposal)?;
    Some((check_ike(&[bare], offered)?, theirs))
}

/// Converts a proposal for a successor into one for a first IKE SA, and returns its SPI.
fn without_spi(proposal: &Proposal) -> Option<(Proposal, u64)> {
    let spi = u64::from_be_bytes(proposal.spi.as_slice().try_into().ok()?);
    let bare = Proposal {
        spi: Vec::new(),
        ..proposal.clone()
    };
    (spi != 0).then_some((bare, spi))
}

/// Creates a proposal for each menu, numbered from 1.
fn offer(
    protocol: Protocol,
    spi: &[u8],
    menus: impl Iterator<Item = AllowedSuites>,
) -> Vec<Proposal> {
    let proposals = menus.zip(1..).map(|(menu, number)| Proposal {
        number,
        protocol,
        spi: spi.to_vec(),
        transforms: menu.transforms(),
    });
    proposals.collect()
}

/// Returns the part that we offered under the number of the answered proposal.
fn offered_as<T>(answered: &Proposal, proposals: Vec<T>) -> Option<T> {
    let place = usize::from(answered.number).checked_sub(1)?;
    proposals.into_iter().nth(place)
}

fn is_group(transform: &Transform) -> bool {
    transform.kind == TransformType::KE
}

fn names_group(transform: &&Transform) -> bool {
    is_group(transform) && transform.id != GroupId::NONE.0
}

/// Returns the suite whose cipher was picked.
fn ike_suite_of(picked: &[Transform], suites: &[Suite]) -> Option<Suite> {
    let cipher = picked.first()?;
    let mut suites = suites.iter().copied();
    suites.find(|&suite| *cipher == Transform::suite(suite, false))
}

/// Returns the suite whose cipher was picked, and true if its IV is implicit.
fn esp_suite_of(picked: &[Transform], suites: &[EspSuite]) -> Option<(EspSuite, bool)> {
    let cipher = picked.first()?;
    suites.iter().find_map(|&suite| {
        [false, true]
            .into_iter()
            .find(|&implicit| *cipher == Transform::esp(suite, implicit))
            .map(|implicit| (suite, implicit))
    })
}

/// Returns the group among the picked transforms.
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

/// Returns true if an answer leaves no choice open, and has no additional key exchange other than
/// the one we request.
fn is_final(answered: &Proposal, picked: &Proposal) -> bool {
    let asked = |one: &Transform| !one.kind.is_additional() || one.kind == TransformType::ADDKE1;
    answered.transforms.len() == picked.transforms.len() && answered.transforms.iter().all(asked)
}
